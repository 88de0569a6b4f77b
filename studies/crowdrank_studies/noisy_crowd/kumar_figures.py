"""Figures printed by Kumar and Lease, in per cent."""

from __future__ import annotations

SEED_SIZE = 800
EXTRA = (0, 800, 1600, 3200, 6400)
"""Items graded at first, and further grades that are bought."""

QUICK_EXTRA = (0, 800, 1600, 3200)
"""Those of a quick run."""

CLEAN = dict(zip(EXTRA, (30.9, 33.5, 36.4, 36.9, 38.3), strict=True))
"""Rank accuracy of single labelling without noise; the mean over L above 0 is printed too."""

CLEAN_MEAN = 36.3

COLUMNS = ("SL rank", "MV rank", "MV label", "NB rank", "NB label")

_TABLE = """
N(0.7,0.2) | 21.2
23.5 27.6 61.8 25.2 62.3
29.0 27.3 63.6 28.6 75.3
33.0 27.0 70.2 30.6 90.6
35.3 26.4 77.0 30.4 96.9
30.2 27.1 68.1 28.7 81.2
N(0.5,0.2) | 21.1
23.7 24.5 52.6 22.2 54.7
28.8 28.0 54.2 25.6 66.4
31.7 24.5 55.1 29.1 81.3
36.1 26.5 58.4 31.0 90.1
30.1 25.9 55.0 27.0 73.1
N(0.4,0.2) | 17.0
19.5 22.6 46.8 22.9 49.0
25.8 24.0 44.7 23.9 61.4
30.4 22.7 44.4 28.4 76.1
34.0 21.9 39.5 27.0 85.7
27.4 22.8 43.85 25.6 68.0
lnN(0.4,0.2) | 18.4
21.1 22.3 40.6 21.7 41.1
26.9 23.4 40.1 22.2 40.0
27.9 19.8 35.8 21.7 37.1
28.6 19.7 30.5 21.8 36.7
26.1 21.3 36.7 21.8 38.7
U(0.2,0.6) | 17.7
19.0 21.3 37.4 20.5 38.5
26.6 21.1 33.8 17.1 35.6
26.7 18.8 29.6 19.8 35.2
26.4 17.3 23.9 23.2 32.4
24.7 19.6 31.1 20.1 35.4
"""

MEAN = "mean"
"""Stands for L where a figure is the mean over all L above 0."""


def _read(text: str) -> dict[tuple[str, str, str], float]:
    """(noise, column, L) -> printed figure."""
    figures: dict[tuple[str, str, str], float] = {}
    budgets = [*map(str, EXTRA[1:]), MEAN]
    lines = iter(text.strip().splitlines())
    for line in lines:
        noise, _, first = line.partition(" | ")
        figures[noise, "SL rank", "0"] = float(first)
        for extra in budgets:
            for column, value in zip(COLUMNS, next(lines).split(), strict=True):
                figures[noise, column, extra] = float(value)
    return figures


TABLE_1 = _read(_TABLE)
