"""Losses of the scores of lists, with their slopes and curvature, whatever gives the scores.

First the losses as rankers take them; then LambdaRank's pairs, weighed by the nDCG of a swap, and whole lists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from ...kernels.ranking_measures import ideal_gain
from ...kernels.segments import set_starts
from ...kernels.threads import bind, even_bounds, over_bounds, pair_bounds, read_only, views
from ...protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from ..training_rows import Lists

LOGISTIC, HINGE = 0, 1

_WORK_PER_THREAD = 2_000_000
"""In steps of about a nanosecond, so starting a thread does not take longer than it saves."""

_LEAST = 1e-300
"""What exponentials far below the highest are taken for, so that none is 0."""


class ScoreLoss(NamedTuple):
    """A convex loss at some scores: its value, its slope in each score, and what multiplies by its curvature."""

    value: float
    slopes: Floats
    bend: Callable[[int, int, Floats], Floats]
    """``bend(first, last, block)``: rows of queries ``first`` up to ``last`` times the second derivative."""


def best_of_query(lists: Lists) -> Callable[[Floats], ScoreLoss]:
    """Return the mean over queries of the cross entropy of the chances to be best that targets and scores give."""
    offsets, weight, factor = lists.offsets, lists.weights, lists.query_weights()
    on_places = np.repeat(factor, np.diff(offsets))
    wanted = on_places * choice_chances(lists.target, weight, offsets)[0]

    def loss(scores: Floats) -> ScoreLoss:
        chances, level = choice_chances(scores, weight, offsets)
        bend = partial(bend_chances, chances, factor, offsets)
        return ScoreLoss(float(factor @ level - wanted @ scores), on_places * chances - wanted, bend)

    return loss


def better_first(lists: Lists, *, ties_together: bool = True) -> Callable[[Floats], ScoreLoss]:
    """Return the negative log-likelihood that better items are chosen before lower ones, for lists best first."""
    tie = lists.tie_starts() if ties_together else np.arange(lists.n_places)
    # weights are in the sum over places already, so queries need none of their own
    factor = np.full(lists.n_queries, 1 / lists.item_weights().sum())
    return ordered_choices(lists.weights, tie, lists.offsets, factor)


def likely_orders(orders: Counts, offsets: Counts) -> Callable[[Floats], ScoreLoss]:
    """Return the negative log-likelihood of whole orders of each query's places, the mean over queries and orders.

    ``orders`` (n_orders, n_places) hold the places of each query, best first; those of query ``q`` are ``offsets[q]``
    up to ``offsets[q + 1]``.
    """
    factor = np.full(len(offsets) - 1, 1 / (len(orders) * (len(offsets) - 1)))
    at = ordered_choices(np.ones(orders.shape[1]), np.arange(orders.shape[1]), offsets, factor)

    def loss(scores: Floats) -> ScoreLoss:
        total, slopes, bends = 0.0, np.zeros(len(scores)), []
        for order in orders:
            of_order = at(scores[order])
            total += of_order.value
            slopes[order] += of_order.slopes
            bends.append(of_order.bend)

        def bend(first: int, last: int, block: Floats) -> Floats:
            bent, here = np.zeros_like(block), slice(offsets[first], offsets[last])
            for order, bend_order in zip(orders, bends, strict=True):
                rows = order[here] - offsets[first]
                bent[rows] += bend_order(first, last, block[rows])
            return bent

        return ScoreLoss(total, slopes, bend)

    return loss


def likely_sets(sets: Floats, offsets: Counts) -> Callable[[Floats], ScoreLoss]:
    """Return the expected negative log-likelihood of the orders of each query's places, the mean over queries.

    ``sets`` are the chances of each query's 2^n sets of places to be the first ones of its order.
    """
    rest = sets, offsets, np.full(len(offsets) - 1, 1 / (len(offsets) - 1))
    return lambda scores: ScoreLoss(*choose_from_sets(scores, *rest), partial(bend_sets, scores, *rest))


def ordered_choices(weight: Floats, tie: Counts, offsets: Counts, factor: Floats) -> Callable[[Floats], ScoreLoss]:
    """Return the negative log-likelihood that the better places are chosen before the lower ones.

    ``tie`` (n_places,) is the first place with the same target. Each place is chosen from those with its own or a
    lower target; the lowest targets of a query are what remains and are not chosen.
    """
    return _query_losses(_choose, _bend_choices, (weight, tie, offsets, factor), offsets, 12)


def better_of_pairs(
    weight: Floats, tie: Counts, item: Ints | None, offsets: Counts, factor: Floats, loss: int
) -> Callable[[Floats], ScoreLoss]:
    """Return the loss of the pairs of each query, by the product of their weights, for places best first.

    ``loss`` of a pair whose scores differ by z, the better less the worse: LOGISTIC is log(1 + exp(-z)), HINGE is 0
    from 1 on, (1 - z)**2 / 2 from 0 to 1 and 1/2 - z below.
    """
    inputs = weight, tie, _items(item), offsets, factor, loss
    return _query_losses(_lose, _bend_pairs, inputs, offsets, 6, pairs=True)


def swap_gains(
    lists: Lists, gain: Floats, *, truncation: int | None, sigma: float, normalize: bool
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return what gives LambdaRank's slopes, and the curvature that goes with them, at scores of the places.

    See :func:`lambda_slopes`; ranks, truncation and the ideal DCG count items.
    """
    longest = int(lists.n_items.max())
    places = longest if truncation is None else min(truncation, longest)
    discount = 1.0 / np.log2(np.arange(2.0, places + 2.0))
    ideal = ideal_gain(lists.on_items(gain), lists.item_offsets, places, False, discount)
    n_items = lists.n_items
    item_weight = lists.item_weights()
    inverse = np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    by_rank = 1.0 / np.log2(np.arange(2.0, longest + 2.0))
    item = np.arange(len(gain), dtype=np.int32) if lists.item is None else lists.item
    sizes = np.diff(lists.offsets)
    pairs = sizes * np.minimum(sizes, places * sizes / n_items)
    arrays = gain, lists.weights, item, lists.offsets, lists.item_offsets, item_weight, inverse, by_rank
    layout = LambdaLists._make([*map(read_only, arrays), places])
    return partial(lambda_slopes, layout, pair_bounds(np.append(0.0, np.cumsum(pairs))), float(sigma), bool(normalize))


class LambdaLists(NamedTuple):
    """What does not change from step to step; one entry per place, per item or per query.

    Over places: ``gain``, ``weight`` and the ``item`` each belongs to; over queries: the bounds of its places
    (``offsets``) and items (``item_offsets``), the mean weight of an item and the inverse of the ideal DCG.
    ``discount`` is over ranks; pairs with neither item among the first ``truncation`` ranks do not count.
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


def lambda_slopes(
    lists: LambdaLists, bounds: Counts, sigma: float, normalize: bool, scores: Floats
) -> tuple[Floats, Floats]:
    r"""Return the slope and curvature of the loss in the score of each place, (n_places,) each.

    A pair of rows of different items, the first with the larger gain, adds :math:`-\lambda` to the slope of the first
    and :math:`\lambda` to that of the second,

    .. math:: \lambda = w_a w_b \frac{|g_a - g_b| \, |D(r_a) - D(r_b)|}{\text{ideal}}
              \cdot \frac{\sigma}{1 + e^{\sigma (s_a - s_b)}},

    where ranks :math:`r` are those of items by the mean score of their rows. Weights are relative to the mean weight of
    an item of the query, which then multiplies all slopes: copies of every row change nothing but the number of rows.
    With ``normalize`` pairs are divided by how far apart their scores are, and those of a query by their sum, as
    LightGBM does it. ``bounds`` are those of the stretches of queries that threads share.
    """
    slopes, bends = np.zeros(len(scores)), np.zeros(len(scores))
    values = read_only(np.ascontiguousarray(scores, np.float64))
    over_bounds(lambda first, last: _slopes(lists, values, sigma, normalize, first, last, slopes, bends), bounds)
    return slopes, bends


@njit(cache=True, nogil=True)
def _slopes(lists, scores, sigma, normalize, first, last, slopes, bends):
    """Fill slopes and curvatures of the places of queries first..last-1."""
    gain, weight, item, offsets, item_offsets, item_weight, inverse_ideal, discount, truncation = lists
    longest = _longest(offsets, first, last)
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
def _sort(item, weight, scores, begin, end, first_item, last_item, row, rank):
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
def _pairs(n, rank, s, e, g, w, d, sigma, inverse, truncation, apart, slope, bend):
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
def _all_pairs(n, order, rows, sigma, inverse, apart):
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


def _over_queries(
    kernel: Any, inputs: tuple[Any, ...], outputs: tuple[Floats, ...], offsets: Counts, first: int, last: int,
    steps: int, *, pairs: bool = False,
) -> None:  # fmt: skip
    """Let a kernel fill the outputs for queries first..last-1, in threads, at so many steps for a place or a pair."""
    arrays = [read_only(one) if isinstance(one, np.ndarray) else one for one in inputs]
    sizes = np.diff(offsets[first : last + 1])
    work = np.concatenate([[0], np.cumsum(steps * (sizes * sizes // 2 if pairs else sizes))])
    inner = first + np.searchsorted(work, even_bounds(int(work[-1]), _WORK_PER_THREAD))[:-1]
    over_bounds(lambda begin, end: kernel(*arrays, begin, end, *outputs), np.unique(np.append(inner, last)))


def _query_losses(
    evaluate: Any, bend: Any, inputs: tuple[Any, ...], offsets: Counts, steps: int, *, pairs: bool = False
) -> Callable[[Floats], ScoreLoss]:
    """What gives the loss at some scores, by a kernel for each query's value and slopes, and one for its curvature."""

    def loss(scores: Floats) -> ScoreLoss:
        given, value, slopes = (scores, *inputs), np.empty(len(offsets) - 1), np.zeros(len(scores))
        _over_queries(evaluate, given, (value, slopes), offsets, 0, len(value), steps, pairs=pairs)
        return ScoreLoss(float(value.sum()), slopes, partial(_bend_block, bend, given, offsets, pairs))

    return loss


def _bend_block(
    kernel: Any, inputs: tuple[Any, ...], offsets: Counts, pairs: bool, first: int, last: int, block: Floats
) -> Floats:
    """The rows of queries first..last-1 multiplied by the curvature of a loss."""
    bent = np.zeros_like(block)
    _over_queries(
        kernel, (block, *inputs, offsets[first]), (bent,), offsets, first, last, 2 * block.shape[1], pairs=pairs
    )
    return bent


@njit(cache=True, nogil=True)
def _longest(offsets, first, last):
    """Places of the longest of queries first..last-1."""
    longest = 0
    for query in range(first, last):
        longest = max(longest, offsets[query + 1] - offsets[query])
    return longest


def choice_chances(scores: Floats, weight: Floats, offsets: Counts) -> tuple[Floats, Floats]:
    """Return the chance of each place to be chosen of its query, (n_places,), and the log of the weighted sum of
    exponentials of each query, (n_queries,).
    """
    chances, level = np.empty(len(scores)), np.empty(len(offsets) - 1)
    _over_queries(_chances, (scores, weight, offsets), (chances, level), offsets, 0, len(level), 8)
    return chances, level


@njit(cache=True, nogil=True)
def _chances(scores, weight, offsets, first, last, chances, level):
    """Fill chances and level for queries first..last-1."""
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        top = -np.inf
        for i in range(begin, end):
            top = max(top, scores[i])
        total = 0.0
        for i in range(begin, end):
            chances[i] = weight[i] * np.exp(scores[i] - top)
            total += chances[i]
        for i in range(begin, end):
            chances[i] /= total
        level[query] = top + np.log(total)


def bend_chances(chances: Floats, factor: Floats, offsets: Counts, first: int, last: int, block: Floats) -> Floats:
    """Return the block multiplied by the curvature of the cross entropy."""
    return _bend_block(_bend_chances, (chances, factor, offsets), offsets, False, first, last, block)


@njit(cache=True, nogil=True)
def _bend_chances(block, chances, factor, offsets, base, first, last, bent):
    """Fill the rows of queries first..last-1; the block begins at place base."""
    width = block.shape[1]
    mean = np.empty(width)
    for query in range(first, last):
        mean[:] = 0.0
        for i in range(offsets[query], offsets[query + 1]):
            for c in range(width):
                mean[c] += chances[i] * block[i - base, c]
        for i in range(offsets[query], offsets[query + 1]):
            share = factor[query] * chances[i]
            for c in range(width):
                bent[i - base, c] = share * (block[i - base, c] - mean[c])


@njit(cache=True, nogil=True)
def _masses(scores, weight, begin, end, mass):
    """Fill mass[: end - begin] with weighted exponentials of the scores below the highest, which is returned."""
    top = -np.inf
    for i in range(begin, end):
        top = max(top, scores[i])
    for i in range(begin, end):
        mass[i - begin] = weight[i] * max(np.exp(scores[i] - top), _LEAST)
    return top


@njit(cache=True, nogil=True)
def _choose(scores, weight, tie, offsets, factor, first, last, value, slopes):
    """Fill value and slopes for queries first..last-1."""
    longest = _longest(offsets, first, last)
    mass, below = np.empty(longest), np.empty(longest)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        value[query] = 0.0
        if begin == end:
            continue
        top = _masses(scores, weight, begin, end, mass)
        # sums from the bottom up, never by subtraction, which would leave rounding where scores lie far apart
        rest = 0.0
        for i in range(end - 1, begin - 1, -1):
            rest += mass[i - begin]
            below[i - begin] = rest
        rate, loss = 0.0, 0.0
        lowest = tie[end - 1]
        for i in range(begin, end):
            chosen = i < lowest
            if chosen:
                left = below[tie[i] - begin]
                loss += weight[i] * (top + np.log(left) - scores[i])
                if tie[i] == i:
                    rate += _tie_weight(weight, tie, i, end) / left
            slopes[i] = factor[query] * (mass[i - begin] * rate - (weight[i] if chosen else 0.0))
        value[query] = factor[query] * loss


@njit(cache=True, nogil=True)
def _tie_weight(weight, tie, start, end):
    """Weight of the places tied with the one at start."""
    total = 0.0
    for i in range(start, end):
        if tie[i] != start:
            break
        total += weight[i]
    return total


@njit(cache=True, nogil=True)
def _bend_choices(block, scores, weight, tie, offsets, factor, base, first, last, bent):
    """Fill the rows of queries first..last-1; the block begins at place base."""
    width, longest = block.shape[1], _longest(offsets, first, last)
    mass, below, total = np.empty(longest), np.empty(longest), np.empty(width)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        if begin == end:
            continue
        _masses(scores, weight, begin, end, mass)
        rest = 0.0
        total[:] = 0.0
        for i in range(end - 1, begin - 1, -1):
            rest += mass[i - begin]
            below[i - begin] = rest
            for c in range(width):
                total[c] += mass[i - begin] * block[i - base, c]
            if tie[i] == i:  # the mean row of those to choose from, kept in the place of its first
                for c in range(width):
                    bent[i - base, c] = total[c] / rest
        rate = 0.0
        total[:] = 0.0
        for i in range(begin, end):
            if tie[i] == i and i < tie[end - 1]:
                step = _tie_weight(weight, tie, i, end) / below[i - begin]
                rate += step
                for c in range(width):
                    total[c] += step * bent[i - base, c]
            share = factor[query] * mass[i - begin]
            for c in range(width):
                bent[i - base, c] = share * (rate * block[i - base, c] - total[c])


def pair_weights(weight: Floats, tie: Counts, item: Ints | None, offsets: Counts) -> Floats:
    """Return the sum of the weights of each query's pairs, (n_queries,): places of unequal target and item."""
    total = np.empty(len(offsets) - 1)
    _over_queries(_add_pairs, (weight, tie, _items(item), offsets), (total,), offsets, 0, len(total), 1, pairs=True)
    return total


def _items(item: Ints | None) -> Ints:
    """The items, none where each place has its own."""
    return np.empty(0, np.int32) if item is None else item


@njit(cache=True, nogil=True)
def _add_pairs(weight, tie, item, offsets, first, last, total):
    """Fill total for queries first..last-1."""
    for query in range(first, last):
        total[query] = 0.0
        for j in range(offsets[query], offsets[query + 1]):
            for i in range(offsets[query], tie[j]):
                if item.size == 0 or item[i] != item[j]:
                    total[query] += weight[i] * weight[j]


@njit(cache=True, nogil=True)
def _lose(scores, weight, tie, item, offsets, factor, loss, first, last, value, slopes):
    """Fill value and add to slopes for queries first..last-1."""
    for query in range(first, last):
        lost = 0.0
        for j in range(offsets[query], offsets[query + 1]):
            pull = 0.0
            for i in range(offsets[query], tie[j]):
                if item.size and item[i] == item[j]:
                    continue
                z = scores[i] - scores[j]
                if loss == LOGISTIC:
                    small = np.exp(-abs(z))
                    height = np.log1p(small) + max(-z, 0.0)
                    slope = (small if z > 0 else 1.0) / (1.0 + small)
                else:
                    slope = min(max(1.0 - z, 0.0), 1.0)
                    height = slope * (1.0 - z) - 0.5 * slope * slope
                lost += weight[i] * weight[j] * height
                push = factor[query] * weight[i] * weight[j] * slope
                slopes[i] -= push
                pull += push
            slopes[j] += pull
        value[query] = factor[query] * lost


@njit(cache=True, nogil=True)
def _bend_pairs(block, scores, weight, tie, item, offsets, factor, loss, base, first, last, bent):
    """Add to the rows of queries first..last-1; the block begins at place base."""
    width = block.shape[1]
    for query in range(first, last):
        for j in range(offsets[query], offsets[query + 1]):
            for i in range(offsets[query], tie[j]):
                if item.size and item[i] == item[j]:
                    continue
                z = scores[i] - scores[j]
                if loss == LOGISTIC:
                    small = np.exp(-abs(z))
                    bend = small / (1.0 + small) ** 2
                else:
                    bend = 1.0 if 0.0 < z < 1.0 else 0.0
                if bend == 0.0:
                    continue
                bend *= factor[query] * weight[i] * weight[j]
                for c in range(width):
                    step = bend * (block[i - base, c] - block[j - base, c])
                    bent[i - base, c] += step
                    bent[j - base, c] -= step


@njit(cache=True, nogil=True)
def descend_queries(features, wanted, weight, offsets, order, rate, weights):
    """Change the weights (n_features,) by a step down the top-one cross entropy of each query, in the order given.

    ``features`` (n_places, n_features) and ``wanted``, the chance of each place by its target, (n_places,).
    """
    for query in order:
        first, last = offsets[query], offsets[query + 1]
        chance, top, total = np.empty(last - first), -np.inf, 0.0
        for place in range(first, last):
            score = 0.0
            for column in range(weights.size):
                score += features[place, column] * weights[column]
            chance[place - first] = score
            top = max(top, score)
        for place in range(first, last):
            chance[place - first] = weight[place] * np.exp(chance[place - first] - top)
            total += chance[place - first]
        for place in range(first, last):
            slope = chance[place - first] / total - wanted[place]
            for column in range(weights.size):
                weights[column] -= rate * slope * features[place, column]


def choose_from_sets(scores: Floats, sets: Floats, offsets: Counts, factor: Floats) -> tuple[float, Floats]:
    """Return the expected negative log-likelihood at scores (n_items,), and its slopes (n_items,)."""
    slopes, ones = np.zeros(len(scores)), np.ones(len(scores))
    given = views(scores, ones, sets, set_starts(np.diff(offsets)), offsets, factor)
    return float(bind(_choose_from_set, *given, slopes)()), slopes


def bend_sets(
    scores: Floats, sets: Floats, offsets: Counts, factor: Floats, first: int, last: int, block: Floats
) -> Floats:
    """Return rows of the items of queries ``first`` up to ``last`` multiplied by the curvature in the scores."""
    bent, ones = np.zeros_like(block), np.ones(len(scores))
    given = views(block, scores, ones, sets, set_starts(np.diff(offsets)), offsets, factor)
    bind(_bend, *given, first, last, bent)()
    return bent


@njit(cache=True, nogil=True)
def _remaining_strength(strength, n, members):
    """Strength of the items that are not in a set."""
    rest = 0.0
    for b in range(n):
        rest += 0.0 if members >> b & 1 else strength[b]
    return rest


@njit(cache=True, nogil=True)
def _choose_from_set(scores, ones, sets, starts, offsets, factor, slopes):
    """Fill in the slopes and return the value."""
    strength, value = np.empty(_longest(offsets, 0, factor.size)), 0.0
    for query in range(factor.size):
        begin, n = offsets[query], offsets[query + 1] - offsets[query]
        top = _masses(scores, ones, begin, begin + n, strength)
        for b in range(n):
            value += factor[query] * (top - scores[begin + b])
            slopes[begin + b] = -factor[query]
        for members in range((1 << n) - 1):
            chance = factor[query] * sets[starts[query] + members]
            if chance > 0.0:
                rest = _remaining_strength(strength, n, members)
                value += chance * np.log(rest)
                for b in range(n):
                    if not members >> b & 1:
                        slopes[begin + b] += chance * strength[b] / rest
    return value


@njit(cache=True, nogil=True)
def _bend(block, scores, ones, sets, starts, offsets, factor, first, last, bent):
    """Fill in the rows of queries first..last-1."""
    width, strength, base = block.shape[1], np.empty(_longest(offsets, first, last)), offsets[first]
    mean = np.empty(width)
    for query in range(first, last):
        begin, n = offsets[query], offsets[query + 1] - offsets[query]
        _masses(scores, ones, begin, begin + n, strength)
        for members in range((1 << n) - 1):
            chance = factor[query] * sets[starts[query] + members]
            if chance > 0.0:
                rest = _remaining_strength(strength, n, members)
                mean[:] = 0.0
                for b in range(n):
                    if not members >> b & 1:
                        for c in range(width):
                            mean[c] += strength[b] / rest * block[begin - base + b, c]
                for b in range(n):
                    if not members >> b & 1:
                        share = chance * strength[b] / rest
                        for c in range(width):
                            bent[begin - base + b, c] += share * (block[begin - base + b, c] - mean[c])
