"""Sums of regression trees over rows of features."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...kernels.threads import even_bounds, over_bounds, read_only
from ...protocols import Floats, Ints

MISSING_LEFT = 1
"""Bit of a split: a missing value (NaN) goes left."""

ZERO_LEFT = 2
"""Bit of a split: 0 goes left."""

OF_CATEGORIES = 4
"""Bit of a split on categories."""

_ZERO = float(np.float32(1e-35))
"""LightGBM takes a number no larger than this for 0."""

_BLOCK_ROWS = 256
_CELLS_PER_THREAD = 100_000


class TreeArrays(NamedTuple):
    """Trees one after the other, ``n_splits`` and ``n_splits + n_trees`` long.

    Over splits: the ``feature`` and ``threshold`` that are compared, a value no larger going left, the ``bits`` for
    missing values and 0, and two ``children`` each, left and right: the number of a split, or ``~leaf``. ``roots`` has
    the first child of each tree, and ``values`` those of the leaves. A split on categories has the number of a set
    for a threshold, whose members go left: bits of ``category_words`` from ``category_starts`` on.
    """

    feature: Ints
    threshold: Floats
    bits: NDArray[np.uint8]
    children: Ints
    roots: Ints
    values: Floats
    category_starts: Ints
    category_words: NDArray[np.uint32]


def sum_trees(trees: TreeArrays, rows: NDArray[np.floating], n_threads: int) -> Floats:
    """Return the sum of the trees' leaves for each row, (n_rows,), added in the order of the trees; 0 threads for all.

    The order of the sums is LightGBM's, and so are the results, to the last bit.
    """
    trees = TreeArrays._make(read_only(array) for array in trees)
    sums = np.empty(len(rows))
    bounds = even_bounds(len(rows), max(1, _CELLS_PER_THREAD // max(len(trees.roots), 1)))
    if 0 < n_threads < len(bounds) - 1:
        bounds = np.linspace(0, len(rows), n_threads + 1).astype(np.int64)
    # in LightGBM 0 can count as missing; where it does not, its side is that of the threshold
    numeric = trees.bits < OF_CATEGORIES
    zero_apart = bool((((trees.bits & ZERO_LEFT > 0) != (trees.threshold >= 0)) & numeric).any())
    sum_rows = _sum_for(len(trees.category_words) > 0)

    def sum_blocks(begin: int, end: int) -> None:
        # a block of rows at a time, so that it stays in the cache
        for first in range(begin, end, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, end)
            sum_rows(trees, zero_apart, np.array(rows[first:last], np.float64, order="C"), sums[first:last])

    over_bounds(sum_blocks, bounds)
    return sums


@cache
def _sum_for(by_category: bool) -> Any:
    """The sums, compiled with what splits on categories need only where there are some."""

    @njit(cache=True, nogil=True)
    def run(trees, zero_apart, rows, sums):
        """Add up the leaves that each row falls into, tree after tree; numbers next to 0 become 0 in the rows.

        Members of the set of a category go left, others, missing and negative ones right.
        """
        feature, threshold, bits, children, roots, values, category_starts, category_words = trees
        for row in range(rows.shape[0]):
            for column in range(rows.shape[1]):
                if abs(rows[row, column]) <= _ZERO:
                    rows[row, column] = 0.0
        sums[:] = 0.0
        for root in roots:
            for row in range(len(rows)):
                node = root
                while node >= 0:
                    # an unsigned number saves the check for counting from the end
                    split = np.uintp(node)
                    value = rows[np.uintp(row), np.uintp(feature[split])]
                    left = value <= threshold[split]
                    if by_category and bits[split] & OF_CATEGORIES:
                        members = int(threshold[split])
                        start, end = category_starts[members], category_starts[members + 1]
                        left = False
                        if 0.0 <= value < 32.0 * (end - start):
                            category = int(value)
                            left = (category_words[start + category // 32] >> np.uint32(category % 32)) & 1 == 1
                    elif value != value:
                        left = bits[split] & MISSING_LEFT != 0
                    elif zero_apart and value == 0.0:
                        left = bits[split] & ZERO_LEFT != 0
                    node = children[np.uintp(2) * split + (np.uintp(0) if left else np.uintp(1))]
                sums[row] += values[~node]

    return run
