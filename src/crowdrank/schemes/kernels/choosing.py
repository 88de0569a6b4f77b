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
