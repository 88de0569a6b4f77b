"""The multinomial preference model: every preference is drawn among all ordered pairs of its query's items.

A batch is the preferences of one annotator in one query. With scores ``s`` and adherence ``t`` of the annotator, a pair
``(i, j)`` is drawn with probability proportional to ``exp(t (s_i - s_j))``, and the log-likelihood of a batch of ``N``
preferences with net wins ``w`` (wins less losses of each item) is ``t w's - N log Z``, where ``Z``, the sum over all
pairs, is the product of two sums over items less their number. So no pass needs more than the items of each query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.pairs import PreferencesByPair
from ....kernels.threads import bind, pair_bounds, read_only, sum_over_bounds, views
from ....protocols import Bools, Counts, Floats, Ints

# threshold (equal): annotators of queries numbered by a table
_MAX_TABLE_CELLS = 1 << 22
_CELLS_PER_KEY = 4
_MIN_POWER = 1e-250


class Batches(NamedTuple):
    """The preferences of each annotator in each query, as net wins.

    ``item`` has the items that were judged, query after query, those of query ``q`` from ``offsets[q]`` up to the
    next. Over batches are the ``query``, the annotator's parameter ``own``, and the ``number`` of preferences. The net
    wins of a batch are those from ``starts`` (n_batches + 1,) on: ``place`` within the query's items, and ``net``.
    ``parts`` bounds stretches of batches that take about equally long, one for each thread.
    """

    item: Ints
    offsets: Counts
    query: Ints
    own: Ints
    number: Floats
    starts: Counts
    place: Ints
    net: Floats
    parts: Counts

    @classmethod
    def of(cls, item: Ints, offsets: Counts, query: Ints, *rest: Any) -> Batches:
        """Return the batches with the parts for threads; ``rest`` are the columns from ``own`` to ``net``."""
        parts = pair_bounds(np.concatenate([[0], np.cumsum(np.diff(offsets)[query])]))
        columns: Any = (*views(item, offsets, query, *rest), parts)
        return cls(*columns)

    @property
    def longest(self) -> int:
        """Number of judged items of the largest query."""
        return int(np.max(np.diff(self.offsets), initial=0))

    def only(self, keep: Bools) -> Batches:
        """Return some of the batches; queries and their items stay."""
        cells, sizes = np.repeat(keep, np.diff(self.starts)), np.diff(self.starts)[keep]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        numbers = self.query[keep], self.own[keep], self.number[keep]
        return Batches.of(self.item, self.offsets, *numbers, starts, self.place[cells], self.net[cells])


def batch_preferences(preferences: PreferencesByPair, n_own: int, query: Ints, n_queries: int) -> Batches:
    """Return the batches of preferences; ``query`` (n_items,) is that of each item, and its items are contiguous."""
    n_items, first, second = len(query), preferences.first, preferences.second
    judged = np.zeros(n_items, bool)
    judged[first], judged[second] = True, True
    item = np.flatnonzero(judged).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(query[item], minlength=n_queries))])
    pair, by = preferences.pair, preferences.annotator.astype(np.int64)
    amount = preferences.weight if preferences.weight.size else np.ones(len(pair))
    won = amount * preferences.outcome
    batch_of, batches = _number_keys(query[first][pair].astype(np.int64) * n_own + by, n_queries * n_own)
    number = np.bincount(batch_of, amount, len(batches)).astype(np.float64)
    rank = np.cumsum(judged) - 1 - offsets[query]
    width = int(np.max(np.diff(offsets), initial=1))
    keys = [batch_of * width + rank[side][pair] for side in (first, second)]
    cell_of, cells = _number_keys(np.concatenate(keys), len(batches) * width)
    net = np.bincount(cell_of, np.concatenate([won, -won]), len(cells)).astype(np.float64)
    starts = np.searchsorted(cells, np.arange(len(batches) + 1) * width)
    query_of, own = (part.astype(np.int32) for part in np.divmod(batches, n_own))
    return Batches.of(item, offsets, query_of, own, number, starts, (cells % width).astype(np.int32), net)


def _number_keys(keys: Counts, n: int) -> tuple[Counts, Counts]:
    """Number of each key among the distinct ones, and these in rising order; keys are below n."""
    if n > max(_MAX_TABLE_CELLS, _CELLS_PER_KEY * len(keys)):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return numbers, distinct
    table = np.zeros(n, bool)
    table[keys] = True
    distinct = np.flatnonzero(table)
    place = np.cumsum(table) - 1
    return place[keys], distinct


class Adherence(NamedTuple):
    """The log-likelihood at one point, its gradient, and diagonals of the curvature of the negated log-likelihood.

    ``sums`` (n_batches, 5) are kept for products: two sums over items, the same weighed by scores, and ``Z``, each
    relative to its largest power.
    """

    log_likelihood: float
    gradient: Floats
    own_gradient: Floats
    degree: Floats
    own_bend: Floats
    sums: Floats


def evaluate_adherence(batches: Batches, scores: Floats, own: Floats) -> Adherence:
    """Return the log-likelihood of batches with its derivatives; ``scores`` (n_items,), ``own`` (n_annotators,)."""
    sums = np.zeros((len(batches.own), 5))
    add = bind(_evaluate, batches, batches.longest, *views(scores[batches.item], own), sums)
    value, of_items, of_own = sum_over_bounds(add, batches.parts, 1, (2, len(batches.item)), (2, len(own)))
    gradient, degree = np.zeros(len(scores)), np.zeros(len(scores))
    gradient[batches.item], degree[batches.item] = of_items
    return Adherence(float(value[0]), gradient, of_own[0], degree, of_own[1], read_only(sums))


@njit(cache=True, nogil=True)
def _ends(level, first, last, t):
    """The largest and smallest exponent of a batch: what all are taken relative to, so no power overflows."""
    highest = lowest = t * level[first]
    for i in range(first + 1, last):
        highest, lowest = max(highest, t * level[i]), min(lowest, t * level[i])
    return highest, lowest


@njit(cache=True, nogil=True)
def _evaluate(batches, longest, level, own, sums, begin, end, value, of_items, of_own):
    """Fill in the sums and add to the rest the terms of batches begin to end."""
    _, offsets, query, of, number, starts, place, net, _ = batches
    powers = np.empty((2, longest))
    for batch in range(begin, end):
        first, last = offsets[query[batch]], offsets[query[batch] + 1]
        t, n = own[of[batch]], number[batch]
        up = down = up_s = down_s = up_ss = down_ss = 0.0
        highest, lowest = _ends(level, first, last, t)
        least = np.exp(lowest - highest)
        for i in range(first, last):
            s = level[i]
            a = np.exp(t * s - highest)
            b = least / a if least > _MIN_POWER else np.exp(lowest - t * s)
            powers[0, i - first], powers[1, i - first] = a, b
            up, down = up + a, down + b
            up_s, down_s = up_s + a * s, down_s + b * s
            up_ss, down_ss = up_ss + a * s * s, down_ss + b * s * s
        norm = up * down - (last - first) * least
        mean = (up_s * down - up * down_s) / norm
        square = (up_ss * down - 2.0 * up_s * down_s + up * down_ss) / norm
        sums[batch, 0], sums[batch, 1], sums[batch, 2], sums[batch, 3], sums[batch, 4] = up, down, up_s, down_s, norm
        won = 0.0
        for cell in range(starts[batch], starts[batch + 1]):
            won += net[cell] * level[first + place[cell]]
            of_items[0, first + place[cell]] += t * net[cell]
        value[0] += t * won - n * (np.log(norm) + highest - lowest)
        of_own[0, of[batch]] += won - n * mean
        of_own[1, of[batch]] += n * (square - mean * mean)
        for i in range(first, last):
            a, b = powers[0, i - first], powers[1, i - first]
            expected = (a * down - b * up) / norm
            of_items[0, i] -= n * t * expected
            of_items[1, i] += n * t * t * ((a * down + b * up - 2.0 * least) / norm - expected * expected)


def adherence_product(
    batches: Batches, here: Adherence, scores: Floats, own: Floats, items: Floats, annotators: Floats, variances: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the product of the curvature, without its part in the parameters alone, with a vector.

    That is (n_items,) and (n_annotators,) for ``items`` and ``annotators``. With ``variances`` (n_annotators,), the
    variance of each parameter, annotators adapt instead, to each query by itself, and the third result (n_items,) is
    what this takes off the diagonal.
    """
    given = views(here.sums, scores[batches.item], own, items[batches.item], annotators, variances)
    add = bind(_multiply, batches, batches.longest, *given)
    of_items, of_own = sum_over_bounds(add, batches.parts, (2, len(batches.item)), len(own))
    image, taken = np.zeros(len(scores)), np.zeros(len(scores))
    image[batches.item], taken[batches.item] = of_items
    return image, of_own, taken


@njit(cache=True, nogil=True)
def _multiply(batches, longest, sums, level, own, vector, annotators, variances, begin, end, of_items, of_own):
    """Add to the products the terms of batches begin to end."""
    _, offsets, query, of, number, starts, place, net, _ = batches
    spare = np.empty((3, longest))
    for batch in range(begin, end):
        first, last = offsets[query[batch]], offsets[query[batch] + 1]
        t, n, k = own[of[batch]], number[batch], of[batch]
        up, down, up_s, down_s, norm = sums[batch]
        mean = (up_s * down - up * down_s) / norm
        up_v = down_v = joint = 0.0
        highest, lowest = _ends(level, first, last, t)
        least = np.exp(lowest - highest)
        for i in range(first, last):
            at, s, v = i - first, level[i], vector[i]
            a = np.exp(t * s - highest)
            b = least / a if least > _MIN_POWER else np.exp(lowest - t * s)
            expected = (a * down - b * up) / norm
            spare[0, at], spare[1, at] = a, b
            # second derivative by score and parameter, net wins aside
            spare[2, at] = n * expected + n * t * (
                (a * (s * down - down_s) + b * (s * up - up_s)) / norm - expected * mean
            )
            up_v, down_v = up_v + a * v, down_v + b * v
        for cell in range(starts[batch], starts[batch + 1]):
            spare[2, place[cell]] -= net[cell]
        for i in range(first, last):
            joint += spare[2, i - first] * vector[i]
        sent = annotators[k]
        if variances.size:
            sent = -variances[k] * joint
        of_own[k] += joint
        along = (up_v * down - up * down_v) / norm
        for i in range(first, last):
            at, v = i - first, vector[i]
            a, b, c = spare[0, at], spare[1, at], spare[2, at]
            expected = (a * down - b * up) / norm
            bent = (a * (v * down - down_v) + b * (v * up - up_v)) / norm - expected * along
            of_items[0, i] += n * t * t * bent + c * sent
            if variances.size:
                of_items[1, i] += variances[k] * c * c


def expect_leads(
    batches: Batches, scores: Floats, own: Floats, confidence: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """Return the part of the log-likelihood that all pairs of a query are in, and its gradients.

    A pair ``(i, j)`` is drawn with probability proportional to ``exp(t (c_i + c_j) / 2 (s_i - s_j))`` for confidences
    ``c`` (n_items,). Gradients are by scores, annotators and confidences.
    """
    add = bind(_expect_pairs, batches, *views(scores[batches.item], confidence[batches.item], own))
    value, of_items, of_own = sum_over_bounds(add, batches.parts, 1, (2, len(batches.item)), len(own))
    gradients = np.zeros((2, len(scores)))
    gradients[:, batches.item] = of_items
    return float(value[0]), gradients[0], of_own, gradients[1]


@njit(cache=True, nogil=True)
def _expect_pairs(batches, level, sure, own, begin, end, value, of_items, of_own):
    """Add the terms of batches begin to end; both orders of a pair are taken together."""
    _, offsets, query, of, number, _, _, _, _ = batches
    for batch in range(begin, end):
        first, last = offsets[query[batch]], offsets[query[batch] + 1]
        t, n = own[of[batch]], number[batch]
        top, norm = 0.0, 0.0
        for a in range(first, last):
            for b in range(a + 1, last):
                top = max(top, abs(0.5 * t * (sure[a] + sure[b]) * (level[a] - level[b])))
        for a in range(first, last):
            for b in range(a + 1, last):
                size = abs(0.5 * t * (sure[a] + sure[b]) * (level[a] - level[b]))
                norm += np.exp(size - top) + np.exp(-size - top)
        value[0] -= n * (np.log(norm) + top)
        for a in range(first, last):
            for b in range(a + 1, last):
                gap, factor = level[a] - level[b], 0.5 * (sure[a] + sure[b])
                power = t * factor * gap
                lead = n * (np.exp(power - top) - np.exp(-power - top)) / norm
                of_items[0, a] -= t * factor * lead
                of_items[0, b] += t * factor * lead
                of_items[1, a] -= 0.5 * t * gap * lead
                of_items[1, b] -= 0.5 * t * gap * lead
                of_own[of[batch]] -= factor * gap * lead
