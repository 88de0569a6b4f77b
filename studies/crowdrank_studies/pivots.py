"""Figures of a study as tables that people read: a row for each method, a column for each measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from .outcomes import OVER

_MAX_ROWS_SHOWN_WHOLE = 40
"""Places of up to this many figures are shown whole; of larger ones only what the paper prints."""

_MAX_COLUMNS_WITH_SPREAD, _MAX_COLUMNS = 6, 12
"""Up to this many columns leave room for the spread; no table has more of them than this, where it can be helped."""

_MAX_COLUMNS_WITHOUT_ROWS = 4
_FIGURES = ("paper", "ours", "spread", "difference", "n", "over")


@dataclass(frozen=True)
class Pivot:
    """A table of figures, the printed ones in brackets.

    Parameters
    ----------
    place, said
        Where the figures stand in the paper, and what all of them have in common.
    over
        What repetitions are over.
    heads
        Names of the columns: labels first, of which there are ``n_labels``, then one for each column of figures.
    rows
        The cells.
    """

    place: str
    said: tuple[str, ...]
    over: tuple[str, ...]
    heads: tuple[str, ...]
    n_labels: int
    rows: tuple[tuple[str, ...], ...]

    @property
    def title(self) -> str:
        """Place, what is said of all figures, and what their spread is."""
        spread = " and ".join(OVER[over] for over in self.over)
        return f"{self.place} ({'; '.join([*self.said, spread])})"


def pivots(frame: pl.DataFrame, *, everything: bool = False) -> Iterator[Pivot]:
    """Return a table for each place of a paper with printed figures, or with few of ours; or for all of them."""
    for place in frame.partition_by("place", maintain_order=True):
        if everything or place["paper"].is_not_null().any() or len(place) <= _MAX_ROWS_SHOWN_WHOLE:
            yield _pivot(place)


def _pivot(place: pl.DataFrame) -> Pivot:
    """The table of one place."""
    printed = place.filter(pl.col("paper").is_not_null())
    shown = printed if len(place) > _MAX_ROWS_SHOWN_WHOLE and len(printed) else place
    labels = [c for c in shown.columns if c not in (*_FIGURES, "place", "p") and shown[c].null_count() < len(shown)]
    several = [label for label in labels if shown[label].n_unique() > 1]
    over = tuple(shown["over"].unique(maintain_order=True).to_list())
    across = max(several, key=lambda label: _crossing(shown, label)) if several else labels[-1]
    said = tuple(
        f"{label} {shown[label][0]}" if label != "measure" else str(shown[label][0])
        for label in labels
        if label not in several and (several or label != across)
    )
    rows = [label for label in several if label != across]
    columns = shown[across].unique(maintain_order=True).to_list()
    groups = shown.partition_by(rows, maintain_order=True, as_dict=True) if rows else {(): shown}
    cells = []
    for names, group in groups.items():
        of = {
            row[across]: figure(row, spread=len(columns) <= _MAX_COLUMNS_WITH_SPREAD)
            for row in group.iter_rows(named=True)
        }
        cells.append((*(str(name or "") for name in names), *(of.get(column, "") for column in columns)))
    heads = (*rows, *(str(column) for column in columns))
    if not rows and len(columns) > _MAX_COLUMNS_WITHOUT_ROWS:
        # a single row of many figures reads better from top to bottom
        return Pivot(str(place["place"][0]), said, over, (across, "ours"), 1, tuple(zip(heads, cells[0], strict=True)))
    return Pivot(str(place["place"][0]), said, over, heads, len(rows), tuple(cells))


def _crossing(frame: pl.DataFrame, label: str) -> tuple[int, bool]:
    """How well the values of a label stand beside each other: many, but not too many, measures first."""
    n = frame[label].n_unique()
    return n if n <= _MAX_COLUMNS else -n, label == "measure"


def figure(row: dict[str, Any], *, spread: bool) -> str:
    """Return ours with its spread and a p value, and the printed figure in brackets."""
    digits = 1 if max(abs(row["ours"]), abs(row["paper"] or 0.0)) >= 10 else 3
    text = f"{row['ours']:.{digits}f}"
    if spread and row["spread"] is not None:
        text += f" ± {row['spread']:.{digits}f}"
    if row.get("p"):
        text += ", p < 0.001" if float(row["p"]) == 0.0 else f", p {row['p']}"
    return text if row["paper"] is None else f"{text} ({row['paper']:g})"
