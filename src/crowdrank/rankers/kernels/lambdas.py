"""LambdaRank's slopes: each pair of items pulls its scores apart by what nDCG would gain or lose if they swapped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ...kernels.threads import even_bounds, over_bounds, read_only
from ...protocols import Counts, Floats, Ints

_PAIRS_PER_THREAD = 1_000_000
_LEAST = 1e-300


class LambdaLists(NamedTuple):
    """What does not change from step to step; one entry per place, per item or per query.

    Over places: ``gain``, ``weight`` and the ``item`` each belongs to; over queries: the bounds of its places
    (``offsets``) and items (``item_offsets``), the mean weight of an item and the inverse of the ideal DCG.
    ``discount`` is over ranks; pairs with neither item among the first ``truncation`` ranks do not count. ``bounds``
    are those of the stretches of queries that threads share.
    """

    gain: Floats
    weight: Floats
    item: Ints
    offsets: Counts
    item_offsets: Counts
    item_weight: Floats
    inverse_ideal: Floats
    discount: Floats
    truncation: int
    bounds: Counts


def lambda_lists(
    gain: Floats,
    weight: Floats,
    item: Ints | None,
    offsets: Counts,
    item_offsets: Counts,
    ideal: Floats,
    truncation: int,
) -> LambdaLists:
    """Return the lists laid out for :func:`lambda_slopes`; ``ideal`` (n_queries,) is the ideal DCG, on items."""
    n_items = np.diff(item_offsets)
    item_weight = np.add.reduceat(weight, offsets[:-1]) / n_items
    inverse = np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    discount = 1.0 / np.log2(np.arange(2.0, max(int(n_items.max(initial=0)), 1) + 2.0))
    number = np.arange(len(gain), dtype=np.int32) if item is None else item
    pairs = np.diff(offsets) * np.minimum(np.diff(offsets), truncation * np.diff(offsets) / n_items)
    return LambdaLists(
        read_only(gain), read_only(weight), read_only(number), read_only(offsets), read_only(item_offsets),
        read_only(item_weight), read_only(inverse), read_only(discount), truncation, _shares(pairs),
    )  # fmt: skip


def _shares(pairs: Floats) -> Counts:
    """Bounds of stretches of queries with about equally many pairs, one for each thread that pays."""
    total = np.concatenate([[0.0], np.cumsum(pairs)])
    wanted = even_bounds(int(total[-1]), _PAIRS_PER_THREAD)
    bounds = np.searchsorted(total, wanted)
    bounds[0], bounds[-1] = 0, len(pairs)
    return bounds


def lambda_slopes(lists: LambdaLists, scores: Floats, sigma: float, normalize: bool) -> tuple[Floats, Floats]:
    r"""Return the slope and curvature of the loss in the score of each place, (n_places,) each.

    A pair of rows of different items, the first with the larger gain, adds :math:`-\lambda` to the slope of the first
    and :math:`\lambda` to that of the second,

    .. math:: \lambda = w_a w_b \frac{|g_a - g_b| \, |D(r_a) - D(r_b)|}{\text{ideal}}
              \cdot \frac{\sigma}{1 + e^{\sigma (s_a - s_b)}},

    where ranks :math:`r` are those of items by the mean score of their rows. Weights are relative to the mean weight of
    an item of the query, which then multiplies all slopes: copies of every row change nothing but the number of rows.
    With ``normalize`` pairs are divided by how far apart their scores are, and those of a query by their sum, as
    LightGBM does it.
    """
    slopes, bends = np.zeros(len(scores)), np.zeros(len(scores))
    values = read_only(np.ascontiguousarray(scores, np.float64))

    def work(first: int, last: int) -> None:
        _slopes(*lists[:-1], values, float(sigma), bool(normalize), first, last, slopes, bends)

    over_bounds(work, lists.bounds)
    return slopes, bends


@njit(cache=True, nogil=True)
def _slopes(
    gain: Floats, weight: Floats, item: Ints, offsets: Counts, item_offsets: Counts, item_weight: Floats,
    inverse_ideal: Floats, discount: Floats, truncation: int, scores: Floats, sigma: float, normalize: bool,
    first: int, last: int, slopes: Floats, bends: Floats,
) -> None:  # fmt: skip
    """Fill slopes and curvatures of the places of queries first..last-1."""
    longest = 0
    for query in range(first, last):
        longest = max(longest, offsets[query + 1] - offsets[query])
    row, rank = np.empty(longest, np.int64), np.empty(longest, np.int64)
    sorted_rows: Any = np.empty((7, longest))
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        if inverse_ideal[query] == 0.0 or item_offsets[query + 1] - item_offsets[query] < 2:
            continue
        _sort(item, weight, scores, begin, end, item_offsets[query], item_offsets[query + 1], row, rank)
        n = end - begin
        s, e, g, w, d, slope, bend = sorted_rows
        top = scores[begin + row[0]]
        for place in range(n):
            here = begin + row[place]
            s[place], g[place] = scores[here], gain[here]
            e[place] = max(np.exp(sigma * (scores[here] - top)), _LEAST)
            w[place], d[place] = weight[here] / item_weight[query], discount[rank[place]]
            slope[place] = bend[place] = 0.0
        apart = normalize and s[0] != s[n - 1]
        if truncation >= item_offsets[query + 1] - item_offsets[query]:
            total = _all_pairs(n, np.argsort(-g[:n], kind="mergesort"), sorted_rows, sigma, inverse_ideal[query], apart)
        else:
            total = _pairs(n, rank, s, e, g, w, d, sigma, inverse_ideal[query], truncation, apart, slope, bend)
        factor = item_weight[query]
        if normalize and total > 0.0:
            factor *= np.log2(1.0 + total) / total
        for place in range(n):
            slopes[begin + row[place]] = factor * slope[place]
            bends[begin + row[place]] = factor * bend[place]


@njit(cache=True, nogil=True)
def _sort(
    item: Ints, weight: Floats, scores: Floats, begin: int, end: int, first_item: int, last_item: int,
    row: Counts, rank: Counts,
) -> None:  # fmt: skip
    """Write the rows of a query by falling score of their item, from 0 on, and the rank of each one's item, from 0."""
    n, n_items = end - begin, last_item - first_item
    if n == n_items:
        row[:n] = np.argsort(-scores[begin:end], kind="mergesort")
        rank[:n] = np.arange(n)
        return
    total, mean = np.zeros(n_items), np.zeros(n_items)
    for place in range(begin, end):
        total[item[place] - first_item] += weight[place]
        mean[item[place] - first_item] += weight[place] * scores[place]
    order = np.argsort(-mean / total, kind="mergesort")
    place_of = np.empty(n_items, np.int64)
    place_of[order] = np.arange(n_items)
    of_row = np.empty(n, np.int64)
    for place in range(begin, end):
        of_row[place - begin] = place_of[item[place] - first_item]
    row[:n] = np.argsort(of_row, kind="mergesort")
    rank[:n] = of_row[row[:n]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
def _pairs(
    n: int, rank: Counts, s: Floats, e: Floats, g: Floats, w: Floats, d: Floats, sigma: float, inverse: float,
    truncation: int, apart: bool, slope: Floats, bend: Floats,
) -> float:  # fmt: skip
    """Add up slopes and curvatures over pairs of rows, sorted by the rank of their items; return the slopes' sum."""
    total = 0.0
    following = 0
    for i in range(n):
        if rank[i] >= truncation:
            break
        # copies of an item form no pair
        while following < n and rank[following] == rank[i]:
            following += 1
        own_slope, own_bend = 0.0, 0.0
        for j in range(following, n):
            gap = g[i] - g[j]
            change = abs(gap) * (d[i] - d[j]) * inverse * w[i] * w[j]
            if apart:
                change /= 0.01 + abs(s[i] - s[j])
            ahead = e[i] / (e[i] + e[j])
            wrong = 1.0 - ahead if gap > 0.0 else ahead
            pull = sigma * wrong * change
            curve = sigma * sigma * wrong * (1.0 - wrong) * change
            sign = -1.0 if gap > 0.0 else 1.0
            own_slope += sign * pull
            slope[j] -= sign * pull
            own_bend += curve
            bend[j] += curve
            total += 2.0 * pull
        slope[i] += own_slope
        bend[i] += own_bend
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})
def _all_pairs(n: int, order: Counts, rows: Any, sigma: float, inverse: float, apart: bool) -> float:
    """The same for all pairs of unequal gain, the rows taken by falling gain, so equal ones are passed over."""
    sorted_rows = np.zeros((7, n))
    s, e, g, w, d, slope, bend = sorted_rows
    for place in range(n):
        for what in range(5):
            sorted_rows[what, place] = rows[what, order[place]]
    total, lower = 0.0, 0
    for i in range(n):
        while lower < n and g[lower] == g[i]:
            lower += 1
        own_slope, own_bend = 0.0, 0.0
        for j in range(lower, n):
            # rows of one item have one discount, so they form no pair
            change = (g[i] - g[j]) * abs(d[i] - d[j]) * w[j]
            if apart:
                change /= 0.01 + abs(s[i] - s[j])
            wrong = e[j] / (e[i] + e[j])
            pull = wrong * change
            curve = pull * (1.0 - wrong)
            own_slope += pull
            slope[j] += w[i] * pull
            own_bend += curve
            bend[j] += w[i] * curve
        slope[i] -= w[i] * own_slope
        bend[i] += w[i] * own_bend
        total += w[i] * own_slope
    factor = sigma * inverse
    for place in range(n):
        rows[5, order[place]] = factor * slope[place]
        rows[6, order[place]] = factor * sigma * bend[place]
    return 2.0 * factor * total
