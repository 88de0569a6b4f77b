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


@numba.njit(cache=True, nogil=True)
def number_pairs(starts, second):  # type: ignore[no-untyped-def]
    """Return the number of each pair of items in a table.

    Parameters
    ----------
    starts : (n_items + 1,) int64, second : (n_pairs,) int32
        Pairs by their lower item, in compressed rows.

    Returns
    -------
    (n_items, n_items) int32
        Number of the pair (lower, higher); -1 where the two were never compared.
    """
    n = len(starts) - 1
    table = np.full((n, n), -1, np.int32)
    for first in range(n):
        for pair in range(starts[first], starts[first + 1]):
            table[first, second[pair]] = pair
    return table


@numba.njit(cache=True, nogil=True)
def count_by_fold(left, right, outcome, weight, fold, numbers, counts):  # type: ignore[no-untyped-def]
    """Add the weight of each preference to its fold, pair and outcome (loss, tie, win of the lower item).

    Parameters
    ----------
    left, right : (n,) int32, outcome : (n,) int8, fold : (n,) int8
        Preferences, and the fold of each; below 0 for none.
    weight : (n,) or (0,) float64
        Weights; none are ones.
    numbers : (n_items, n_items) int32
        Numbers of the pairs.
    counts : (n_folds, n_pairs, 3) float64
        Added to.
    """
    weighted = len(weight) > 0
    for row in range(len(left)):
        if fold[row] < 0:
            continue
        one, other, result = left[row], right[row], outcome[row]
        if one > other:
            one, other, result = other, one, -result
        counts[fold[row], numbers[one, other], result + 1] += weight[row] if weighted else 1.0


@numba.njit(cache=True, nogil=True)
def add_agreement(left, right, outcome, weight, annotator, fold, scores, covered, agree, total):  # type: ignore[no-untyped-def]
    """Add up, for each annotator, the preferences that the scores of the others order alike, and all that can be told.

    Parameters
    ----------
    left, right, annotator : (n,) int32, outcome : (n,) int8, weight : (n,) or (0,) float64
        Preferences.
    fold : (n_annotators,) int8
        Fold of each annotator.
    scores, covered : (n_folds, n_items) float64, bool
        Scores without each fold, and which items these tell of.
    agree, total : (n_annotators,) float64
        Added to; equal scores count half.
    """
    weighted = len(weight) > 0
    for row in range(len(left)):
        part = fold[annotator[row]]
        one, other = left[row], right[row]
        if outcome[row] == 0 or not (covered[part, one] and covered[part, other]):
            continue
        each = weight[row] if weighted else 1.0
        gap = scores[part, one] - scores[part, other]
        total[annotator[row]] += each
        if gap == 0.0:
            agree[annotator[row]] += 0.5 * each
        elif (gap > 0.0) == (outcome[row] > 0):
            agree[annotator[row]] += each


@numba.njit(cache=True, nogil=True)
def add_likeness(left, right, outcome, weight, annotator, n_items, like, company):  # type: ignore[no-untyped-def]
    """Add up, for each annotator, the share of preferences about their items like theirs, and the weight of all these.

    Parameters
    ----------
    left, right, annotator : (n,) int32, outcome : (n,) int8, weight : (n,) or (0,) float64
        Preferences, each of which counts for both its items; no weights are ones.
    n_items : int
        Number of items.
    like, company : (n_annotators,) float64
        Added to.
    """
    weighted = len(weight) > 0
    cells, of_item = np.zeros((n_items, 3)), np.zeros(n_items)
    for row in range(len(left)):
        each = weight[row] if weighted else 1.0
        cells[left[row], 1 + outcome[row]] += each
        cells[right[row], 1 - outcome[row]] += each
    for item in range(n_items):
        of_item[item] = cells[item, 0] + cells[item, 1] + cells[item, 2]
    for row in range(len(left)):
        each = weight[row] if weighted else 1.0
        one, other = left[row], right[row]
        like[annotator[row]] += each * (
            cells[one, 1 + outcome[row]] / of_item[one] + cells[other, 1 - outcome[row]] / of_item[other]
        )
        company[annotator[row]] += each * (of_item[one] + of_item[other])
