"""Hot loop of choosing pairs of items, and whom to ask about them, by what each preference would tell."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ...protocols import Counts, Floats, Ints


class Pairs(NamedTuple):
    """Pairs to choose from: items and query of each, (n_pairs,).

    ``link`` is what the order of each counts by itself, where its query has no covariances; ``draw``, a share of
    the largest worth too small for anything else, decides between pairs of equal worth. Annotators who judged pair p
    already are ``judged_by[starts[p]:starts[p + 1]]``.
    """

    left: Ints
    right: Ints
    query: Ints
    link: Floats
    draw: Floats
    starts: Counts
    judged_by: Ints


class Scores(NamedTuple):
    """Score and variance of each item, (n_items,), and covariances.

    Those of query q, row by row, begin at ``cells[block[q]]``, -1 where there are none; its items are ``offsets[q]`` up
    to ``offsets[q + 1]``. ``stake`` holds, in the same places, C L C for the covariances C and the Laplacian L of what
    the order of each pair counts; where there are no covariances, ``pull`` (n_items,) is the diagonal of L.
    """

    score: Floats
    variance: Floats
    pull: Floats
    cells: Floats
    stake: Floats
    block: Counts
    offsets: Counts


class Annotators(NamedTuple):
    """Mean and mean square of each annotator's discrimination, price and capacity, (n_annotators,).

    They come by falling square for a unit of money. ``known``: nobody is asked twice about a pair; otherwise the one
    annotator stands for anybody.
    """

    alpha: Floats
    square: Floats
    price: Floats
    capacity: Counts
    known: bool


@njit(cache=True, nogil=True)
def _difference_variance(pairs, scores, pair):
    """Variance of the difference of the scores of a pair."""
    of, one, other = pairs.query[pair], pairs.left[pair], pairs.right[pair]
    start = scores.block[of]
    if start < 0:
        return float(scores.variance[one] + scores.variance[other])
    first, size = scores.offsets[of], scores.offsets[of + 1] - scores.offsets[of]
    i, j, cells = one - first, other - first, scores.cells
    return float(cells[start + i * size + i] + cells[start + j * size + j] - 2 * cells[start + i * size + j])


@njit(cache=True, nogil=True)
def _reach(pairs, scores, pair):
    """What all orders that a preference about a pair touches count, for a unit of its weight."""
    of, one, other = pairs.query[pair], pairs.left[pair], pairs.right[pair]
    start = scores.block[of]
    if start < 0:
        v, w = scores.variance[one], scores.variance[other]
        return float(v * v * scores.pull[one] + w * w * scores.pull[other] + 2 * v * w * pairs.link[pair])
    first, size = scores.offsets[of], scores.offsets[of + 1] - scores.offsets[of]
    i, j, stake = one - first, other - first, scores.stake
    return float(stake[start + i * size + i] + stake[start + j * size + j] - 2 * stake[start + i * size + j])


@njit(cache=True, nogil=True)
def _weight(gap, spread, alpha, square):
    """Expected curvature of a preference in the difference: the square of alpha times P (1 - P), with P predictive."""
    kappa = 1 / math.sqrt(1 + math.pi / 8 * square * spread)
    chance = 1 / (1 + math.exp(-min(abs(kappa * alpha * gap), 500.0)))
    return square * chance * (1 - chance)


@njit(cache=True, nogil=True)
def _best(pairs, scores, annotators, pair, latest, former, by, budget):
    """Most that a preference about a pair can be worth for a unit of money, whose it is, and its weight."""
    spread, reach = _difference_variance(pairs, scores, pair), _reach(pairs, scores, pair)
    gap = scores.score[pairs.left[pair]] - scores.score[pairs.right[pair]]
    best, who, heaviest = -1.0, -1, 0.0
    for a in range(len(annotators.alpha)):
        price = annotators.price[a]
        # no preference tells more than one about an even pair, and the rest have smaller squares for their price
        if annotators.square[a] * reach / 4 <= best * price:
            break
        if annotators.capacity[a] <= 0 or price > budget * (1 + 1e-12):
            continue
        if annotators.square[a] * reach <= best * price * (4 + annotators.square[a] * spread):
            continue
        weight = _weight(gap, spread, annotators.alpha[a], annotators.square[a])
        worth = weight / (1 + weight * spread) * reach / price
        if worth <= best:
            continue
        free = True
        if annotators.known:
            for row in range(pairs.starts[pair], pairs.starts[pair + 1]):
                free = free and pairs.judged_by[row] != a
            other = latest
            while free and other >= 0:
                free = by[other] != a
                other = former[other]
        if free:
            best, who, heaviest = worth, a, weight
    return best, who, heaviest


@njit(cache=True, nogil=True)
def _anticipate_preference(pairs, scores, pair, weight):
    """Shrink the variances of a query, and what is still to decide, as a preference of that weight will."""
    of, one, other = pairs.query[pair], pairs.left[pair], pairs.right[pair]
    share = weight / (1 + weight * _difference_variance(pairs, scores, pair))
    start = scores.block[of]
    if start < 0:
        scores.variance[one] -= share * scores.variance[one] ** 2
        scores.variance[other] -= share * scores.variance[other] ** 2
        return
    first, size = scores.offsets[of], scores.offsets[of + 1] - scores.offsets[of]
    pull, push = np.empty(size), np.empty(size)
    for k in range(size):
        row = start + k * size - first
        pull[k] = scores.cells[row + one] - scores.cells[row + other]
        push[k] = scores.stake[row + one] - scores.stake[row + other]
    reach = push[one - first] - push[other - first]
    for k in range(size):
        push[k] -= 0.5 * share * reach * pull[k]
    for k in range(size):
        for m in range(size):
            scores.cells[start + k * size + m] -= share * pull[k] * pull[m]
            scores.stake[start + k * size + m] -= share * (pull[k] * push[m] + push[k] * pull[m])


@njit(cache=True, nogil=True)
def _sink(heap, value, place):
    """Move an entry of a heap down until none below it is larger."""
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and value[heap[child + 1]] > value[heap[child]]:
            child += 1
        if value[heap[child]] <= value[heap[place]]:
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@njit(cache=True, nogil=True)
def worths(pairs, scores, square):
    """Return what the preference of one annotator of that mean square discrimination is worth, (n_pairs,)."""
    value = np.empty(len(pairs.left))
    for pair in range(len(value)):
        spread = _difference_variance(pairs, scores, pair)
        gap = scores.score[pairs.left[pair]] - scores.score[pairs.right[pair]]
        weight = _weight(gap, spread, math.sqrt(square), square)
        value[pair] = weight / (1 + weight * spread) * _reach(pairs, scores, pair)
    return value


@njit(cache=True, nogil=True)
def spreads(pairs, scores):
    """Return the variance of the difference of the scores of each pair, (n_pairs,)."""
    variances = np.empty(len(pairs.left))
    for pair in range(len(variances)):
        variances[pair] = max(_difference_variance(pairs, scores, pair), 0.0)
    return variances


@njit(cache=True, nogil=True)
def choose_pairs(pairs, scores, annotators, budget, least, most):
    r"""Choose pairs and annotators one after the other, by worth for a unit of money given those before.

    A preference of annotator a about items i and j has the weight :math:`w = E[\alpha_a^2] P (1 - P)`. It shrinks the
    covariance C of the scores of the query to :math:`C - c c^T w / (1 + w V)`, where c is the difference of the columns
    of i and j and V the variance of their difference, and is worth :math:`c^T L c \, w / (1 + w V)`, so what is
    like it becomes worth less. A pair is looked at again only when it comes up, as worths hardly ever rise.

    Parameters
    ----------
    pairs, scores, annotators
        What there is to choose from; variances, covariances and capacities are changed.
    budget, least, most
        What may be spent, the least worth of a unit of money, and how many preferences to choose at most.

    Returns
    -------
    tuple
        Pair, annotator, worth and weight of each choice, shape (n_chosen,) each.
    """
    n_pairs = len(pairs.left)
    chosen, by, information, heavy = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most), np.empty(most)
    latest, former = np.full(n_pairs, -1, np.int64), np.full(most, -1, np.int64)
    value, heap = np.empty(n_pairs), np.arange(n_pairs)
    for pair in range(n_pairs):
        value[pair] = _best(pairs, scores, annotators, pair, -1, former, by, budget)[0]
    edge = pairs.draw * (value.max() if n_pairs > 0 else 0.0)
    for pair in range(n_pairs):
        value[pair] += edge[pair]
    for place in range(n_pairs // 2 - 1, -1, -1):
        _sink(heap, value, place)
    number = 0
    while number < most and n_pairs > 0:
        pair = heap[0]
        best, who, weight = _best(pairs, scores, annotators, pair, latest[pair], former, by, budget)
        if best + edge[pair] < value[pair]:
            value[pair] = best + edge[pair]
            _sink(heap, value, 0)
            continue
        if who < 0 or best < least:
            break
        chosen[number], by[number], information[number], heavy[number] = pair, who, best * annotators.price[who], weight
        former[number], latest[pair] = latest[pair], number
        number += 1
        budget -= annotators.price[who]
        annotators.capacity[who] -= 1
        _anticipate_preference(pairs, scores, pair, weight)
    return chosen[:number], by[:number], information[:number], heavy[:number]


# What the order of a pair decides

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
        first, last, start = scores.offsets[query], scores.offsets[query + 1], scores.block[query]
        size, whole = last - first, 0.0
        # the variance of each score against the mean of its query
        for i in range(size):
            if start < 0:
                variance[first + i] = scores.variance[first + i]
                continue
            shared = 0.0
            for j in range(size):
                shared += scores.cells[start + i * size + j]
            variance[first + i] = scores.cells[start + i * size + i] - 2 * shared / size
            whole += shared / size / size
        if start >= 0:
            variance[first:last] = np.maximum(variance[first:last] + whole, 0.0)
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
            slope = _slope(score[i] - score[j], covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
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
