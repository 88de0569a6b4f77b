"""What the order of each pair of items decides: hot loops over the pairs of all queries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..protocols import Floats
from .choosing import Pairs, Scores

_COARSE, _FINE = 65, 129
"""Scores at which the items above are counted: over the whole query, and then where the edge may lie."""

_WIDTH, _BINS = 0.75, 7
"""Where two equal scores lie is averaged over so many bins, each so many standard deviations wide."""

_NEIGHBOURS = 200
"""Of more items that an item may trade places with, so many are looked at, evenly spread."""

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
def _centred(scores: Scores, query: int, variance: Floats) -> None:
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
def _above(score: Floats, variance: Floats, value: float) -> tuple[float, float]:
    """Mean and variance of the number of items above a value."""
    mean, spread = 0.0, 0.0
    for i in range(score.size):
        chance = 0.5 * math.erfc((value - score[i]) / math.sqrt(2 * variance[i] + 1e-300))
        mean += chance
        spread += chance * (1 - chance)
    return mean, spread


@njit(cache=True, nogil=True)
def _edge(score: Floats, variance: Floats, k: int, total: Floats) -> tuple[float, float]:
    """Fill in the integral of the probability of the edge of a query; return where it begins, and its step."""
    low, high = np.inf, -np.inf
    for i in range(score.size):
        reach = 4 * math.sqrt(variance[i])
        low, high = min(low, score[i] - reach), max(high, score[i] + reach)
    step = max((high - low) / (_COARSE - 1), 1e-12)
    first, last = _COARSE - 1, 0
    for place in range(_COARSE):
        mean, spread = _above(score, variance, low + place * step)
        # between two points the number may pass k unseen
        if mean >= k - 1.5 - 4 * math.sqrt(spread):
            last = max(last, place)
        if mean <= k + 1.5 + 4 * math.sqrt(spread):
            first = min(first, place)
    low, high = low + (min(first, last) - 1) * step, low + (max(first, last) + 1) * step
    step, former = (high - low) / (_FINE - 1), 0.0
    for place in range(_FINE):
        mean, spread = _above(score, variance, low + place * step)
        scale = math.sqrt(2 * max(spread - _TIED, _ROUNDED))
        chance = 0.5 * (math.erf((k + 0.5 - mean) / scale) - math.erf((k - 0.5 - mean) / scale))
        if place > 0:
            total[place] = total[place - 1] + step * 0.5 * (chance + former)
        former = chance
    return low, step


@njit(cache=True, nogil=True)
def edges_of(scores: Scores, k: int) -> Edges:
    """Return where the edge of the first ``k`` places of each query lies; with 0 the whole order counts.

    Two items that are equal at x trade places at the edge if k - 1 others are above x; the number of items above x is
    taken as normal, two at a tie as one above and one below. No more than k items have no edge.
    """
    n_queries = len(scores.offsets) - 1
    variance = np.zeros(len(scores.score))
    low, step, total = np.zeros(n_queries), np.ones(n_queries), np.zeros((n_queries, _FINE if k > 0 else 0))
    for query in range(n_queries):
        _centred(scores, query, variance)
        first, last = scores.offsets[query], scores.offsets[query + 1]
        if 0 < k < last - first:
            low[query], step[query] = _edge(scores.score[first:last], variance[first:last], k, total[query])
    return Edges(low, step, total, variance)


@njit(cache=True, nogil=True)
def _until(edges: Edges, query: int, value: float) -> float:
    """Integral of the probability of the edge up to a value."""
    total, place = edges.total[query], (value - edges.low[query]) / edges.step[query]
    if place <= 0:
        return 0.0
    if place >= total.size - 1:
        return float(total[-1])
    floor = int(place)
    return float(total[floor] + (place - floor) * (total[floor + 1] - total[floor]))


@njit(cache=True, nogil=True)
def _at_edge(edges: Edges, scores: Scores, query: int, one: int, other: int) -> float:
    """Probability that two items would be at the edge if they were equal; 1 where the whole order counts."""
    if edges.total.shape[1] == 0:
        return 1.0
    v, w = edges.variance[one], edges.variance[other]
    if v + w <= 0:
        return 0.0
    centre = (scores.score[one] * w + scores.score[other] * v) / (v + w)
    scale = math.sqrt(v * w / (v + w)) + 1e-12
    found, whole = 0.0, 0.0
    former = _until(edges, query, centre - 0.5 * _BINS * _WIDTH * scale)
    for place in range(_BINS):
        away = (place - 0.5 * (_BINS - 1)) * _WIDTH
        here = _until(edges, query, centre + (away + 0.5 * _WIDTH) * scale)
        weight = math.exp(-0.5 * away * away)
        found += weight * (here - former) / (_WIDTH * scale)
        whole += weight
        former = here
    return min(found / whole, 1.0)


@njit(cache=True, nogil=True)
def _stake(edges: Edges, scores: Scores, query: int, one: int, other: int, spread: float) -> float:
    """How fast the expected number of wrong orders falls with the variance of the difference d of a pair.

    Answers narrow d down to a variance v; its order is then wrong with an expected probability of about
    p(d = 0) sqrt(2 v / pi), where p is today's density. This is the slope at today's variance.
    """
    gap = scores.score[one] - scores.score[other]
    if spread <= 0 or gap * gap > 100 * spread:
        return 0.0
    slope = math.exp(-0.5 * gap * gap / spread) / (2 * math.pi * spread)
    return slope * _at_edge(edges, scores, query, one, other)


@njit(cache=True, nogil=True)
def at_edge(pairs: Pairs, scores: Scores, edges: Edges) -> Floats:
    """Return the probability that the order of each pair decides what counts, were the two equal, (n_pairs,)."""
    found = np.empty(len(pairs.left))
    for pair in range(len(found)):
        found[pair] = _at_edge(edges, scores, pairs.query[pair], pairs.left[pair], pairs.right[pair])
    return found


@njit(cache=True, nogil=True)
def links(pairs: Pairs, scores: Scores, edges: Edges) -> Floats:
    """Return what the order of each pair counts where its query has no covariances, otherwise 0, (n_pairs,)."""
    found = np.zeros(len(pairs.left))
    for pair in range(len(found)):
        query, one, other = pairs.query[pair], pairs.left[pair], pairs.right[pair]
        if scores.block[query] < 0:
            spread = scores.variance[one] + scores.variance[other]
            found[pair] = _stake(edges, scores, query, one, other, spread)
    return found


@njit(cache=True, nogil=True)
def set_stakes(scores: Scores, edges: Edges) -> None:
    """Fill in ``stake`` and ``pull`` of the scores."""
    for query in range(len(scores.offsets) - 1):
        first, size, start = (
            scores.offsets[query],
            scores.offsets[query + 1] - scores.offsets[query],
            scores.block[query],
        )
        if start < 0:
            _set_pulls(scores, edges, query)
            continue
        covariance = scores.cells[start : start + size * size].reshape(size, size)
        worth = np.zeros((size, size))
        for i in range(size):
            for j in range(i):
                spread = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
                slope = _stake(edges, scores, query, first + i, first + j, spread)
                worth[i, j] = worth[j, i] = -slope
                worth[i, i] += slope
                worth[j, j] += slope
        scores.stake[start : start + size * size] = np.dot(np.dot(covariance, worth), covariance).ravel()


@njit(cache=True, nogil=True)
def _set_pulls(scores: Scores, edges: Edges, query: int) -> None:
    """Fill in what the orders of each item of a query with all others count, as far as they are open."""
    first, last = scores.offsets[query], scores.offsets[query + 1]
    if first == last:
        return
    order = first + np.argsort(scores.score[first:last])
    rising, widest = scores.score[order], scores.variance[first:last].max()
    for place in range(len(order)):
        one = order[place]
        reach = 4 * math.sqrt(scores.variance[one] + widest)
        begin = np.searchsorted(rising, scores.score[one] - reach)
        end = np.searchsorted(rising, scores.score[one] + reach, side="right")
        step, found = max(1, (end - begin) // _NEIGHBOURS), 0.0
        for near in range(begin + (place - begin) % step, end, step):
            other = order[near]
            if other != one:
                found += _stake(edges, scores, query, one, other, scores.variance[one] + scores.variance[other])
        scores.pull[one] = step * found
