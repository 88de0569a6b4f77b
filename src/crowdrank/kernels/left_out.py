"""Preferences counted by pair and by the part that their annotator is left out with, and agreement with the others."""

import numba
import numpy as np


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
