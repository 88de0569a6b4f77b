"""Figures printed by Yang et al.; nDCG in per cent."""

from __future__ import annotations

CUTOFFS = (3, 1, 5, 10)
"""Places of the nDCG, in the order of the printed columns."""

COSTS = ("labelling", "training", "Fair- : Good+")

_ACCURACY = {
    "table 1": """
        If-good-3     49.55 46.23 51.81 55.38
        11-overlap    49.30 45.77 51.60 55.09
        Good-till-bad 49.22 45.72 51.73 55.23
        Highest-3     49.16 45.75 51.49 55.01
        3-overlap     49.00 45.52 51.51 54.90
        If-good-x3    48.98 45.25 51.26 54.82
        Mv3           48.87 45.07 51.36 54.93
        Mv11          48.69 45.25 51.11 54.58
        Baseline      48.60 45.18 51.02 54.51""",
    "table 2": """
        If-good-3     45.99 45.03 47.53 50.53
        Highest-3     45.97 44.87 47.48 50.43
        11-overlap    45.96 44.93 47.57 50.58
        Mv11          45.89 44.97 47.56 50.58
        If-good-x3    45.80 44.73 47.40 50.13
        3-overlap     45.78 44.77 47.54 50.50
        Mv3           45.66 44.83 47.09 49.83
        Good-till-bad 45.58 44.88 47.05 49.86
        Baseline      45.53 44.72 46.93 49.69""",
    "table 3": """
        If-good-3     45.93 44.63 47.65 50.37
        3-overlap     45.91 44.70 47.59 50.35
        11-overlap    45.48 44.31 47.02 49.97
        Mv11          45.42 44.46 47.16 50.09
        If-good-x3    44.80 43.78 46.42 49.26
        Highest-3     44.77 43.52 46.49 49.44
        Mv3           44.45 43.48 46.11 49.12
        Baseline      44.01 42.96 45.56 48.30""",
    "table 4": """
        If-good-3     45.93 44.64 47.65 50.38
        11-overlap    45.89 44.69 47.60 50.33
        Mv11          45.48 44.30 47.10 49.95
        Highest-3     45.40 44.49 47.14 50.07
        If-good-x3    44.79 43.78 46.40 49.25
        3-overlap     44.76 43.51 46.48 49.43
        Baseline      44.45 43.47 46.09 49.10
        Mv3           44.02 42.95 45.54 48.28""",
    "table 5": """
        If-good-2     48.57 50.53 48.56 50.02
        If-good-3     48.41 50.33 48.48 49.89
        Baseline      48.20 50.32 48.31 49.65
        If-good-x3    48.16 50.04 48.18 49.61""",
}

_COSTS = {
    "table 6": """
        Baseline      1    1    3.72
        3-overlap     3    3    3.71
        Mv3           3    1    4.49
        Mv11          11   1    4.37
        If-good-3     1.41 1.41 2.24
        If-good-x3    1    1.41 2.24
        Highest-3     3    1    1.78
        Good-till-bad 1.87 1.87 1.38
        11-overlap    11   11   4.37""",
    "table 7": """
        Baseline      1    1    3.51
        3-overlap     3    3    3.47
        Mv3           3    1    4.16
        Mv11          11   1    4.17
        If-good-3     1.45 1.45 2.09
        If-good-x3    1    1.45 2.09
        Highest-3     3    1    1.58
        Good-till-bad 1.98 1.98 1.23
        11-overlap    11   11   4.17""",
    "table 8": """
        Baseline      1    1    3.18
        If-good-2     1.23 1.23 2.09
        If-good-3     1.48 1.48 2.15
        If-good-x3    1    1.48 1.06""",
}


def _read(text: str, columns: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Setting -> column -> printed figure."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {name: dict(zip(columns, map(float, values), strict=True)) for name, *values in lines}


ACCURACY = {
    place: _read(text, tuple(f"nDCG@{cutoff}" for cutoff in CUTOFFS)) for place, text in _ACCURACY.items()
}  # fmt: skip
"""Table -> setting -> measure -> nDCG in per cent."""

COST = {place: _read(text, COSTS) for place, text in _COSTS.items()}
"""Table -> setting -> cost: grades and training rows per item, and rows below Good for each one from there on."""

MISPRINTS = {
    ("table 6", "11-overlap", "Fair- : Good+"),
    ("table 7", "11-overlap", "Fair- : Good+"),
    ("table 6", "If-good-x3", "Fair- : Good+"),
    ("table 7", "If-good-x3", "Fair- : Good+"),
    ("table 6", "Good-till-bad", "Fair- : Good+"),
    ("table 7", "Good-till-bad", "Fair- : Good+"),
}
"""Ratios that cannot be: all grades have the baseline's ratio and not the vote's, a weight of 3 divides it by 3, and an
item that is asked about until the first Fair- has one of them at most."""
