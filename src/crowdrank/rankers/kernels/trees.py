"""Sums of regression trees over rows of features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...kernels.threads import even_bounds, over_bounds, read_only
from ...protocols import Floats, Ints

MISSING_LEFT = 1
"""Bit of a split: a missing value (NaN) goes left."""

ZERO_LEFT = 2
"""Bit of a split: 0 goes left."""

_ZERO = float(np.float32(1e-35))
"""LightGBM takes a number no larger than this for 0."""

_BLOCK_ROWS = 256
_CELLS_PER_THREAD = 100_000


class TreeArrays(NamedTuple):
    """Trees one after the other, ``n_splits`` and ``n_splits + n_trees`` long.

    Over splits: the ``feature`` and ``threshold`` that are compared, a value no larger going left, the ``bits`` for
    missing values and 0, and two ``children`` each, left and right: the number of a split, or ``~leaf``. ``roots`` has
    the first child of each tree, and ``values`` those of the leaves.
    """

    feature: Ints
    threshold: Floats
    bits: NDArray[np.uint8]
    children: Ints
    roots: Ints
    values: Floats


def sum_trees(trees: TreeArrays, rows: NDArray[np.floating], n_threads: int) -> Floats:
    """Return the sum of the trees' leaves for each row, (n_rows,), added in the order of the trees; 0 threads for all.

    The order of the sums is LightGBM's, and so are the results, to the last bit.
    """
    feature, threshold, bits, children, roots, values = trees
    trees = TreeArrays(
        read_only(feature), read_only(threshold), read_only(bits), read_only(children), read_only(roots),
        read_only(values),
    )  # fmt: skip
    found = np.empty(len(rows))
    bounds = even_bounds(len(rows), max(1, _CELLS_PER_THREAD // max(len(trees.roots), 1)))
    if 0 < n_threads < len(bounds) - 1:
        bounds = np.linspace(0, len(rows), n_threads + 1).astype(np.int64)
    # in LightGBM 0 can count as missing; where it does not, its side is that of the threshold
    zero_apart = bool(((trees.bits & ZERO_LEFT > 0) != (trees.threshold >= 0)).any())
    over_bounds(lambda begin, end: _sum_blocks(trees, zero_apart, rows, begin, end, found), bounds)
    return found


def _sum_blocks(
    trees: TreeArrays, zero_apart: bool, rows: NDArray[np.floating], begin: int, end: int, found: Floats
) -> None:
    """Put the sums of some rows where they belong, a block of rows at a time so that it stays in the cache."""
    for first in range(begin, end, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, end)
        block = np.array(rows[first:last], np.float64, order="C")
        _sum_rows(*trees, zero_apart, block, found[first:last])


@njit(cache=True, nogil=True)
def _sum_rows(
    feature: Ints,
    threshold: Floats,
    bits: NDArray[np.uint8],
    children: Ints,
    roots: Ints,
    values: Floats,
    zero_apart: bool,
    rows: Floats,
    found: Floats,
) -> None:
    """Add up the leaves that each row falls into, tree after tree; numbers next to 0 become 0 in the rows."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            if abs(rows[row, column]) <= _ZERO:
                rows[row, column] = 0.0
    found[:] = 0.0
    for root in roots:
        for row in range(len(rows)):
            node = root
            while node >= 0:
                # an unsigned number saves the check for counting from the end
                split = np.uintp(node)
                value = rows[np.uintp(row), np.uintp(feature[split])]
                left = value <= threshold[split]
                if value != value:
                    left = bits[split] & MISSING_LEFT != 0
                elif zero_apart and value == 0.0:
                    left = bits[split] & ZERO_LEFT != 0
                node = children[np.uintp(2) * split + (np.uintp(0) if left else np.uintp(1))]
            found[row] += values[~node]
