"""Grades sorted by item, the layout that passes over items read, and sums that no order of the rows can change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocols import Counts, Floats, Ints
from .threads import even_bounds, read_only

GRID = 2.0**-32
"""Terms are rounded to multiples of this before they are added, so that sums below two million are exact."""

_ROWS_PER_THREAD = 100_000


class ItemRows(NamedTuple):
    """Grades by item, then annotator, then level; an annotator's equal grades of an item are one row.

    Parameters
    ----------
    starts
        Rows of item ``i`` are ``starts[i]`` up to ``starts[i + 1]``, (n_items + 1,).
    annotator, level
        Codes of each row, (n,).
    weight
        Weight of each row, (n,); empty where all weigh one.
    """

    starts: Counts
    annotator: NDArray[np.uint32]
    level: NDArray[np.uint8]
    weight: Floats

    @property
    def bounds(self) -> Counts:
        """Bounds of stretches of items with about equally many rows, one stretch for each thread."""
        bounds = np.searchsorted(self.starts, even_bounds(int(self.starts[-1]), _ROWS_PER_THREAD))
        bounds[0], bounds[-1] = 0, len(self.starts) - 1
        return bounds

    def cells(self, n_levels: int) -> NDArray[np.uint32]:
        """Return the place of each row in a table of annotators by levels, (n,)."""
        return read_only(self.annotator * np.uint32(n_levels) + self.level)


def item_rows(
    item: Ints, annotator: Ints, level: Ints, weight: Floats | None, n_items: int, n_annotators: int, n_levels: int
) -> ItemRows:
    """Return rows (n,) in the order of their items; in whatever order they come, the result is the same."""
    key = (item.astype(np.int64) * n_annotators + annotator) * n_levels + level
    if weight is None:
        key = np.sort(key)
        amount = np.empty(0)
    else:
        order = np.lexsort((weight, key))
        key, amount = key[order], weight[order].astype(np.float64)
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    if len(first) < len(key):
        ends = np.append(first[1:], len(key))
        amount = np.add.reduceat(amount, first) if weight is not None else (ends - first).astype(np.float64)
        key = key[first]
    rest, codes = np.divmod(key, n_levels)
    starts = np.searchsorted(rest, np.arange(n_items + 1, dtype=np.int64) * n_annotators)
    return ItemRows(
        read_only(starts.astype(np.int64)), read_only((rest % n_annotators).astype(np.uint32)),
        read_only(codes.astype(np.uint8)), read_only(amount),
    )  # fmt: skip


def on_grid(values: Floats) -> Floats:
    """Return values rounded to multiples of the grid."""
    rounded: Floats = np.rint(values / GRID) * GRID
    return rounded
