"""What the order of each pair of items decides: hot loops over the pairs of all queries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ...protocols import Floats

_COARSE, _FINE = 65, 129
"""Scores at which the items above are counted: over the whole query, and then where the edge may lie."""

_WIDTH, _BINS = 0.75, 7
"""Where two equal scores lie is averaged over this many bins, each this many standard deviations wide."""

_NEIGHBOURS = 200
"""Of more items that an item may trade places with, this many are looked at, evenly spread."""

_TIED, _ROUNDED = 0.5, 1 / 12
"""Variance that the two items of a tie add to the number above them, and that of rounding to a whole number."""


class Edges(NamedTuple):
    """Where the edge of the first k places of each query may lie.

    ``total[q]`` is the integral of the probability of the edge from the score ``low[q]`` on, every ``step[q]``; it has
    no columns where the whole order counts. ``variance`` (n_items,) is that of each score against its query's mean.
    """

    low: Floats
    step: Floats
    total: Floats
    variance: Floats


@njit(cache=True, nogil=True)
def _fill_centred_variances(scores, query, variance):
    """Fill in the variance of each score of a query against their mean."""
    first, last, start = scores.offsets[query], scores.offsets[query + 1], scores.block[query]
    size = last - first
    if start < 0:
        variance[first:last] = scores.variance[first:last]
        return
    whole = 0.0
    for i in range(size):
        shared = 0.0
        for j in range(size):
            shared += scores.cells[start + i * size + j]
        variance[first + i] = scores.cells[start + i * size + i] - 2 * shared / size
        whole += shared / size / size
    for i in range(first, last):
        variance[i] = max(variance[i] + whole, 0.0)


@njit(cache=True, nogil=True)
def _above(score, width, value):
    """Mean and variance of the number of items above a value; widths are standard deviations times sqrt(2)."""
    mean, spread = 0.0, 0.0
    for i in range(score.size):
        chance = 0.5 * math.erfc((value - score[i]) / width[i])
        mean += chance
        spread += chance * (1 - chance)
    return mean, spread


@njit(cache=True, nogil=True)
def _edge(score, variance, k, total):
    """Fill in the integral of the probability of the edge of a query; return where it begins, and its step."""
    low, high, width = np.inf, -np.inf, np.sqrt(2 * variance + 1e-300)
    for i in range(score.size):
        reach = 4 * math.sqrt(variance[i])
        low, high = min(low, score[i] - reach), max(high, score[i] + reach)
    step = max((high - low) / (_COARSE - 1), 1e-12)
    first, last = _COARSE - 1, 0
    for place in range(_COARSE):
        mean, spread = _above(score, width, low + place * step)
        # between two points the number may pass k unseen
        if mean >= k - 1.5 - 4 * math.sqrt(spread):
            last = max(last, place)
        if mean <= k + 1.5 + 4 * math.sqrt(spread):
            first = min(first, place)
    low, high = low + (min(first, last) - 1) * step, low + (max(first, last) + 1) * step
    step, former = (high - low) / (_FINE - 1), 0.0
    for place in range(_FINE):
        mean, spread = _above(score, width, low + place * step)
        scale = math.sqrt(2 * max(spread - _TIED, _ROUNDED))
        chance = 0.5 * (math.erf((k + 0.5 - mean) / scale) - math.erf((k - 0.5 - mean) / scale))
        if place > 0:
            total[place] = total[place - 1] + step * 0.5 * (chance + former)
        former = chance
    return low, step


@njit(cache=True, nogil=True)
def edges_of(scores, k):
    """Return where the edge of the first ``k`` places of each query lies; with 0 the whole order counts.

    Two items that are equal at x trade places at the edge if k - 1 others are above x; the number of items above x is
    taken as normal, two at a tie as one above and one below. No more than k items have no edge.
    """
    n_queries = len(scores.offsets) - 1
    variance = np.zeros(len(scores.score))
    low, step, total = np.zeros(n_queries), np.ones(n_queries), np.zeros((n_queries, _FINE if k > 0 else 0))
    for query in range(n_queries):
        _fill_centred_variances(scores, query, variance)
        first, last = scores.offsets[query], scores.offsets[query + 1]
        if 0 < k < last - first:
            low[query], step[query] = _edge(scores.score[first:last], variance[first:last], k, total[query])
    return Edges(low, step, total, variance)


@njit(cache=True, nogil=True)
def _until(total, place):
    """Integral of the probability of the edge up to a place in its table."""
    if place <= 0:
        return 0.0
    if place >= total.size - 1:
        return float(total[-1])
    floor = int(place)
    return float(total[floor] + (place - floor) * (total[floor + 1] - total[floor]))


@njit(cache=True, nogil=True)
def _at_edge(total, low, step, one, other, v, w):
    """Probability that items of two scores with variances v and w would be at the edge if they were equal."""
    if v + w <= 0:
        return 0.0
    centre = ((one * w + other * v) / (v + w) - low) / step
    scale = (math.sqrt(v * w / (v + w)) + 1e-12) / step
    inside, whole = 0.0, 0.0
    former = _until(total, centre - 0.5 * _BINS * _WIDTH * scale)
    for place in range(_BINS):
        away = (place - 0.5 * (_BINS - 1)) * _WIDTH
        here = _until(total, centre + (away + 0.5 * _WIDTH) * scale)
        weight = math.exp(-0.5 * away * away)
        inside += weight * (here - former) / (_WIDTH * scale * step)
        whole += weight
        former = here
    return min(inside / whole, 1.0)


@njit(cache=True, nogil=True)
def _slope(gap, spread):
    """How fast the expected number of wrong orders falls with the variance of the difference d of a pair.

    Preferences narrow d down to a variance v; its order is then wrong with an expected probability of about
    p(d = 0) sqrt(2 v / pi), where p is today's density. This is the slope at today's variance.
    """
    if spread <= 0 or gap * gap > 100 * spread:
        return 0.0
    return math.exp(-0.5 * gap * gap / spread) / (2 * math.pi * spread)


@njit(cache=True, nogil=True)
def at_edge(pairs, scores, edges):
    """Return the probability that the order of each pair decides what counts, were the two equal, (n_pairs,)."""
    score, variance, probability = scores.score, edges.variance, np.ones(len(pairs.left))
    if edges.total.shape[1] == 0:
        return probability
    for pair in range(len(probability)):
        query, i, j = pairs.query[pair], pairs.left[pair], pairs.right[pair]
        total, low, step = edges.total[query], edges.low[query], edges.step[query]
        probability[pair] = _at_edge(total, low, step, score[i], score[j], variance[i], variance[j])
    return probability


@njit(cache=True, nogil=True)
def links(pairs, scores, edges):
    """Return what the order of each pair counts where its query has no covariances, otherwise 0, (n_pairs,)."""
    left, right, query, block = pairs.left, pairs.right, pairs.query, scores.block
    score, variance, probability = scores.score, scores.variance, np.zeros(len(pairs.left))
    for pair in range(len(probability)):
        if block[query[pair]] < 0:
            i, j = left[pair], right[pair]
            probability[pair] = _slope(score[i] - score[j], variance[i] + variance[j])
    return probability * at_edge(pairs, scores, edges)


@njit(cache=True, nogil=True)
def set_stakes(scores, edges):
    """Fill in ``stake`` and ``pull`` of the scores."""
    for query in range(len(scores.offsets) - 1):
        first, last, start = scores.offsets[query], scores.offsets[query + 1], scores.block[query]
        score, centred = scores.score[first:last], edges.variance[first:last]
        total, low, step = edges.total[query], edges.low[query], edges.step[query]
        if first == last:
            continue
        if start < 0:
            scores.pull[first:last] = _pulls(score, scores.variance[first:last], total, low, step)
            continue
        size = last - first
        covariance = scores.cells[start : start + size * size].reshape(size, size)
        worth = _laplacian(score, covariance, centred, total, low, step)
        scores.stake[start : start + size * size] = np.dot(np.dot(covariance, worth), covariance).ravel()


@njit(cache=True, nogil=True)
def _laplacian(score, covariance, centred, total, low, step):
    """Laplacian of what the order of each pair of items of a query counts, (n, n)."""
    worth = np.zeros(covariance.shape)
    for i in range(score.size):
        for j in range(i):
            spread = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
            slope = _slope(score[i] - score[j], spread)
            if slope > 0 and total.size > 0:
                slope *= _at_edge(total, low, step, score[i], score[j], centred[i], centred[j])
            worth[i, j] = worth[j, i] = -slope
            worth[i, i] += slope
            worth[j, j] += slope
    return worth


@njit(cache=True, nogil=True)
def _pulls(score, variance, total, low, step):
    """What the orders of each item of a query with all others count, as far as they are open, (n,)."""
    order, pulls = np.argsort(score), np.zeros(score.size)
    rising, spread, widest = score[order], variance[order], variance.max()
    for place in range(score.size):
        one, v, sums = rising[place], spread[place], 0.0
        reach = 4 * math.sqrt(v + widest)
        begin, end = np.searchsorted(rising, one - reach), np.searchsorted(rising, one + reach, side="right")
        stride = max(1, (end - begin) // _NEIGHBOURS)
        for near in range(begin + (place - begin) % stride, end, stride):
            if near != place:
                slope = _slope(one - rising[near], v + spread[near])
                if slope > 0 and total.size > 0:
                    slope *= _at_edge(total, low, step, one, rising[near], v, spread[near])
                sums += slope
        pulls[order[place]] = stride * sums
    return pulls
