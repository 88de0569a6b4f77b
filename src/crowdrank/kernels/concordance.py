"""Pairs that two orders of the same things agree on, group by group, counted in n log n steps.

Rows enter a Fenwick tree by their place in one order while they are passed in the other.
"""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def concordance(offsets, grade, place, weight, agree, total):  # type: ignore[no-untyped-def]
    """Weigh the pairs of each group with unequal grades, and those that the places order the same way.

    Rows are sorted by group and then by grade. A pair weighs the product of its weights; equal places count half.

    Parameters
    ----------
    offsets : (n_groups + 1,) int64
        Rows of group g are ``offsets[g]`` to ``offsets[g + 1]``.
    grade : (n_rows,) float64
        Never falling within a group.
    place : (n_rows,) int64
        Place of each row by the other order, 0 (worst) to the group's size less one; equal where that order ties.
    weight : (n_rows,) float64
    agree, total : (n_groups,) float64
        Filled with the weight of the agreeing pairs and of all pairs.
    """
    tree = _empty_tree(offsets)
    for g in range(len(offsets) - 1):
        start, stop = offsets[g], offsets[g + 1]
        n = stop - start
        tree[: n + 1] = 0.0
        below = 0.0
        i = start
        while i < stop:
            j = i
            while j < stop and grade[j] == grade[i]:
                agree[g] += weight[j] * _weight_below(tree, place[j])
                total[g] += weight[j] * below
                j += 1
            for row in range(i, j):
                below += weight[row]
                _add(tree, n, place[row], weight[row])
            i = j


@numba.njit(cache=True, nogil=True)
def row_concordance(offsets, grade, place, weight):  # type: ignore[no-untyped-def]
    """Return each row's pairs in agreement, all its pairs, and those it is above less those below, (n_rows,) each.

    Arguments are as in :func:`concordance`; a row's pair weighs as much as the other row.
    """
    n_rows = len(grade)
    agree, total, lean = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
    tree = _empty_tree(offsets)
    for g in range(len(offsets) - 1):
        start, stop = offsets[g], offsets[g + 1]
        n = stop - start
        for upward in (True, False):
            tree[: n + 1] = 0.0
            seen = 0.0
            i = 0
            while i < n:
                j = i
                level = grade[start + i if upward else stop - 1 - i]
                while j < n and grade[start + j if upward else stop - 1 - j] == level:
                    row = start + j if upward else stop - 1 - j
                    lower = _weight_below(tree, place[row])
                    agree[row] += lower if upward else seen - lower
                    total[row] += seen
                    lean[row] += seen if upward else -seen
                    j += 1
                for step in range(i, j):
                    row = start + step if upward else stop - 1 - step
                    seen += weight[row]
                    _add(tree, n, place[row], weight[row])
                i = j
    return agree, total, lean


@numba.njit(cache=True, nogil=True)
def _empty_tree(offsets):  # type: ignore[no-untyped-def]
    """Return a Fenwick tree with room for the largest group."""
    largest = 0
    for g in range(len(offsets) - 1):
        largest = max(largest, offsets[g + 1] - offsets[g])
    return np.zeros(largest + 1)


@numba.njit(cache=True, nogil=True)
def _weight_below(tree, place):  # type: ignore[no-untyped-def]
    """Return the weight that was added at lower places, and half of that at this one."""
    up_to, before, k = 0.0, 0.0, place + 1
    while k > 0:
        up_to += tree[k]
        k -= k & -k
    k = place
    while k > 0:
        before += tree[k]
        k -= k & -k
    return 0.5 * (up_to + before)


@numba.njit(cache=True, nogil=True)
def _add(tree, n, place, weight):  # type: ignore[no-untyped-def]
    """Add weight at one of n places."""
    k = place + 1
    while k <= n:
        tree[k] += weight
        k += k & -k
