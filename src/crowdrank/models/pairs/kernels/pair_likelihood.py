"""Likelihoods of preferences between pairs of items, with all that Newton's method needs.

First Bradley-Terry with Davidson's ties, evaluated on the counts of each pair. Then models in which every annotator has
a parameter, evaluated on preferences sorted by pair: two items with scores ``u`` and ``v`` have a gap ``t``, and an
annotator with parameter ``a`` prefers the first of them with a probability that depends on ``x = a t`` only:

- ``"mixture"``: ``t = tanh((u - v) / 2)`` and probability ``(1 + x) / 2``, which is Crowd-BT with ``a = 2 eta - 1``;
- ``"slope"``: ``t = u - v`` and probability ``1 / (1 + exp(-x))``.

A tie counts half for each side.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.laplacian import Product
from ....kernels.pairs import PreferencesByPair
from ....kernels.threads import dot, over_bounds, pair_bounds, read_only, total
from ....protocols import Bools, Counts, Floats, Ints

_MIN_PRODUCT = 1e-200


class TieModel(NamedTuple):
    """Davidson's model at one point: log-likelihood, gradient, and the curvature of the negated log-likelihood.

    The curvature in the scores is the graph Laplacian with weight ``bend`` on each pair, whose diagonal is ``degree``;
    ``cross`` (n_items,) and ``tie_bend`` are its entries for the logarithm of the tie parameter.
    """

    log_likelihood: float
    gradient: Floats
    tie_gradient: float
    bend: Floats
    degree: Floats
    cross: Floats
    tie_bend: float


def evaluate_ties(
    starts: Counts, second: Ints, margin: Floats, number: Floats, scores: Floats, tie: float, n_ties: float
) -> TieModel:
    r"""Evaluate Davidson's model with ``tie`` parameter :math:`\nu`, which is Bradley-Terry when that is 0.

    Pairs are in compressed rows, see :mod:`~crowdrank.kernels.pairs`. ``margin`` (wins less losses of the lower item)
    and ``number`` (wins, losses and ties, as they count) are over pairs; ``n_ties`` is the weight of all ties where
    they inform the tie parameter, else 0.
    """
    bend, strength = np.empty(len(second)), np.empty(len(second))
    # exponentials of items and not of pairs; scores are centred, so they stay in range
    root = np.exp(0.5 * scores)
    rows, columns, ahead, counted, at, exponential = (
        read_only(array) for array in (starts, second, margin, number, scores, root)
    )

    def work(begin: int, end: int) -> Floats:
        gradient, degree, cross, sums = parts = np.zeros((4, max(len(scores), 3)))
        _evaluate_ties(
            rows, columns, ahead, counted, at, exponential, tie, begin, end,
            bend, strength, gradient, degree, cross, sums,
        )  # fmt: skip
        return parts

    gradient, degree, cross, sums = total(over_bounds(work, pair_bounds(starts)))
    value = float(sums[0]) - dot(number, np.log(strength, out=strength)) + (n_ties * np.log(tie) if n_ties else 0.0)
    n = len(scores)
    return TieModel(value, gradient[:n], n_ties - float(sums[1]), bend, degree[:n], cross[:n], float(sums[2]))


@njit(cache=True, nogil=True)
def _evaluate_ties(
    starts: Any, second: Any, margin: Any, number: Any, scores: Any, root: Any, tie: float, begin: int, end: int,
    bend: Floats, strength: Floats, gradient: Floats, degree: Floats, cross: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill bend and strength, (n_pairs,), and add to gradient, degree, cross, (n_items,), and sums, (3,)."""
    value = expected_ties = tie_bend = 0.0
    for i in range(begin, end):
        score, own, slope, bent, crossing = scores[i], root[i], 0.0, 0.0, 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            here, ahead, other = number[pair], margin[pair], root[j]
            strength[pair] = own * own + other * other + tie * own * other
            share = 1.0 / strength[pair]
            win, loss, tied = own * own * share, other * other * share, tie * own * other * share
            value += 0.5 * (ahead * (score - scores[j]) + here * (score + scores[j]))
            half = 0.5 * (ahead - here * (win - loss))
            slope += half
            gradient[j] -= half
            curve = here * (win * loss + 0.25 * tied * (win + loss))
            bend[pair] = curve
            bent += curve
            degree[j] += curve
            if tie > 0.0:
                expected_ties += here * tied
                tie_bend += here * tied * (1.0 - tied)
                crossed = 0.5 * here * (win - loss) * tied
                crossing -= crossed
                cross[j] += crossed
        gradient[i] += slope
        degree[i] += bent
        cross[i] += crossing
    sums[0] += value
    sums[1] += expected_ties
    sums[2] += tie_bend


class Curve(NamedTuple):
    """The log-likelihood at one point, its gradient, and the curvature of the negated log-likelihood.

    In the scores the curvature is the graph Laplacian with weight ``bend`` (n_pairs,), whose diagonal is ``degree``
    (n_items,); in the parameters it is the diagonal ``own_bend`` (n_annotators,). Between the two it is
    ``cross`` (n_items, n_annotators), or else, where that is empty, ``tie_in`` (n_preferences,): what a preference adds
    to the entry of its lower item and subtracts from that of the higher one.
    """

    log_likelihood: float
    gradient: Floats
    own_gradient: Floats
    bend: Floats
    degree: Floats
    own_bend: Floats
    cross: Floats
    tie_in: Floats


def evaluate_preferences(
    preferences: PreferencesByPair, model: str, scores: Floats, own: Floats, *, dense: bool
) -> Curve:
    """Return the log-likelihood of preferences with all that Newton's method needs.

    ``scores`` (n_items,) and ``own`` (n_annotators,), between -1 and 1 for the mixture, are the parameters; ``dense``
    tells whether to fill in the matrix ``cross`` or the list ``tie_in``.
    """
    n_items, n_annotators, mixture = len(scores), len(own), model == "mixture"
    bend, tie_in = np.empty(len(preferences.second)), np.empty(0 if dense else len(preferences.code))
    # exponentials of items and not of pairs; scores are centred, so they stay in range
    level, parameter, run = read_only(np.exp(scores) if mixture else scores), read_only(own), _compile_pass(mixture)

    def work(begin: int, end: int) -> list[Floats]:
        sums = [np.zeros(1), np.zeros((2, n_items)), np.zeros((2, n_annotators))]
        cross = np.zeros((n_items if dense else 0, n_annotators))
        run(*preferences[:5], level, parameter, begin, end, bend, tie_in, *sums, cross)
        return [*sums, cross]

    threads = over_bounds(work, preferences.parts)
    value, (gradient, degree), (slope, own_bend), cross = (
        total([parts[place] for parts in threads]) for place in range(4)
    )
    return Curve(float(value[0]), gradient, slope, bend, degree, own_bend, cross, tie_in)


@cache
def _compile_pass(mixture: bool) -> Any:
    """The pass over preferences of one of the two models."""

    @njit(cache=True, nogil=True)
    def run(
        starts: Any, second: Any, bounds: Any, code: Any, weight: Any, level: Any, own: Any, begin: int, end: int,
        bend: Any, tie_in: Any, value: Any, of_items: Any, of_annotators: Any, cross: Any,
    ) -> None:  # fmt: skip
        """Fill bend and tie_in and add to the rest the terms of the pairs of items begin to end."""
        logs, product, weighted, dense = 0.0, 1.0, weight.size > 0, cross.shape[0] > 0
        for i in range(begin, end):
            for pair in range(starts[i], starts[i + 1]):
                j = np.uint32(second[pair])
                gap, turn = _gap(mixture, level[i], level[j])
                slope = bent = 0.0
                for row in range(bounds[pair], bounds[pair + 1]):
                    k, won = np.uint32(code[row] >> 2), (code[row] & 3) - 1.0
                    a, amount = own[k], weight[row] if weighted else 1.0
                    x = a * gap
                    chance, push, pull = _preference(mixture, won, x)
                    # one logarithm for many preferences
                    product *= 1.0 if weighted else chance
                    if weighted or product < _MIN_PRODUCT:
                        logs += amount * np.log(chance) if weighted else np.log(product)
                        product = 1.0
                    push, pull = amount * push, amount * pull
                    slope += a * push
                    bent += a * a * pull
                    of_annotators[0, k] += gap * push
                    of_annotators[1, k] += gap * gap * pull
                    joint = (x * pull - push) * turn
                    if dense:
                        cross[i, k] += joint
                        cross[j, k] -= joint
                    else:
                        tie_in[row] = joint
                slope *= turn
                bent = bent * turn * turn + (gap * slope if mixture else 0.0)
                bend[pair] = bent
                of_items[0, i] += slope
                of_items[0, j] -= slope
                of_items[1, i] += bent
                of_items[1, j] += bent
        value[0] += logs + np.log(product)

    return run


@njit(cache=True, nogil=True)
def _gap(mixture: bool, one: float, other: float) -> tuple[float, float]:
    """The gap between two levels, and its derivative by the first score."""
    if not mixture:
        return one - other, 1.0
    share = 1.0 / (one + other)
    return (one - other) * share, 2.0 * one * other * share * share


@njit(cache=True, nogil=True)
def _preference(mixture: bool, won: float, x: float) -> tuple[float, float, float]:
    """The probability of a preference and, of its logarithm, the slope in x and the negated second derivative."""
    if mixture:
        share = 1.0 / (1.0 - x * x)
        chance = 0.5 + 0.5 * won * x if won != 0.0 else np.sqrt(0.25 / share)
        return chance, (won - x) * share, (1.0 - 2.0 * won * x + x * x) * share * share
    up = 1.0 / (1.0 + np.exp(-x))
    pull = up * (1.0 - up)
    chance = up if won > 0.0 else 1.0 - up if won < 0.0 else np.sqrt(pull)
    return chance, 0.5 * (1.0 + won) - up, pull


def joint_product(
    preferences: PreferencesByPair, curve: Curve, bend: Floats, items: Floats, own: Floats
) -> tuple[Floats, Floats]:
    """Return the product of the curvature, without its diagonal, with a vector of items and one of annotators.

    The curvature between the two is that of ``curve.tie_in``, that of the pairs is ``bend`` (n_pairs,).
    """
    columns = (
        preferences.starts,
        preferences.second,
        preferences.bounds,
        preferences.code,
        read_only(curve.tie_in),
        read_only(bend),
    )
    vectors = (read_only(items), read_only(own))

    def work(begin: int, end: int) -> list[Floats]:
        image = [np.zeros(len(items)), np.zeros(len(own))]
        _add_joint_product(*columns, *vectors, begin, end, *image)
        return image

    threads = over_bounds(work, preferences.parts)
    to_items, to_own = (total([parts[place] for parts in threads]) for place in range(2))
    return to_items, to_own


@njit(cache=True, nogil=True)
def _add_joint_product(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, bend: Any, items: Any, own: Any, begin: int,
    end: int, to_items: Any, to_own: Any,
) -> None:  # fmt: skip
    """Add to both images the terms of the pairs of items begin to end."""
    for i in range(begin, end):
        value, received = items[i], 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            gap, sent = value - items[j], 0.0
            for row in range(bounds[pair], bounds[pair + 1]):
                k = np.uint32(code[row] >> 2)
                sent += tie_in[row] * own[k]
                to_own[k] += tie_in[row] * gap
            received += sent - bend[pair] * items[j]
            to_items[j] -= sent + bend[pair] * value
        to_items[i] += received


def reversed_margins(preferences: PreferencesByPair, is_reversed: Bools) -> Floats:
    """Return the change of each pair's margin when the preferences of some annotators are reversed, (n_pairs,)."""
    change = np.zeros(len(preferences.second))
    columns = (preferences.starts, preferences.bounds, preferences.code, preferences.weight, read_only(is_reversed))

    def work(begin: int, end: int) -> None:
        _fill_reversed_margins(*columns, begin, end, change)

    over_bounds(work, preferences.parts)
    return change


@njit(cache=True, nogil=True)
def _fill_reversed_margins(
    starts: Any, bounds: Any, code: Any, weight: Any, is_reversed: Any, begin: int, end: int, change: Any
) -> None:
    """Fill in the changes of the pairs of items begin to end."""
    for pair in range(starts[begin], starts[end]):
        for row in range(bounds[pair], bounds[pair + 1]):
            if is_reversed[code[row] >> 2]:
                change[pair] -= 2.0 * ((code[row] & 3) - 1.0) * (weight[row] if weight.size else 1.0)


def explained_curvature(
    preferences: PreferencesByPair, tie_in: Floats, variances: Floats, firsts: Counts, size: int
) -> Floats:
    """Return by how much annotators who adapt lower the curvature of the scores, (n_queries, size, size).

    That is, for each query of ``size`` items from ``firsts[q]`` on, the sum over annotators of ``v c c'``, where ``v``
    is the variance of the annotator's parameter and ``c`` (size,) the curvature between it and each item, from the
    annotator's preferences in this query.
    """
    blocks = np.zeros((len(firsts), size, size))
    place = np.full(len(variances), -1, np.int64)
    columns = (preferences.starts, preferences.second, preferences.bounds, preferences.code, read_only(tie_in))
    most = int(
        np.max(
            preferences.bounds[preferences.starts[firsts + size]] - preferences.bounds[preferences.starts[firsts]],
            initial=0,
        )
    )
    rows = np.zeros((min(most, len(variances)), size))
    who = np.empty(len(rows), np.int64)
    _fill_explained(*columns, read_only(variances), read_only(firsts), place, rows, who, blocks)
    return blocks


@njit(cache=True, nogil=True)
def _fill_explained(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, variances: Any, firsts: Any,
    place: Any, rows: Any, who: Any, blocks: Any,
) -> None:  # fmt: skip
    """Add to the block of each query; ``place`` (n_annotators,) is -1 and ``rows`` 0, before and after."""
    size = blocks.shape[1]
    for query in range(firsts.size):
        first, n_rows = firsts[query], 0
        for i in range(first, first + size):
            for pair in range(starts[i], starts[i + 1]):
                for row in range(bounds[pair], bounds[pair + 1]):
                    k = code[row] >> 2
                    if place[k] < 0:
                        place[k] = n_rows
                        who[n_rows] = k
                        n_rows += 1
                    rows[place[k], i - first] += tie_in[row]
                    rows[place[k], second[pair] - first] -= tie_in[row]
        for number in range(n_rows):
            for i in range(size):
                if rows[number, i] != 0.0:
                    scaled = variances[who[number]] * rows[number, i]
                    for j in range(size):
                        blocks[query, i, j] += scaled * rows[number, j]
            rows[number] = 0.0
            place[who[number]] = -1


def adapted_table_products(cross: Floats, variances: Floats, columns: Floats) -> Floats:
    """Return ``cross diag(variances) cross'`` times columns (n_items, n); ``cross`` is (n_items, n_annotators)."""
    between, image = np.zeros((len(variances), columns.shape[1])), np.zeros(columns.shape)
    _adapt_table(read_only(cross), read_only(variances), read_only(columns), between, image)
    return image


@njit(cache=True, nogil=True)
def _adapt_table(cross: Any, variances: Any, columns: Any, between: Any, image: Any) -> None:
    """Fill in what lies between the two factors, and the image; both are 0."""
    for i in range(cross.shape[0]):
        for k in range(cross.shape[1]):
            for m in range(columns.shape[1]):
                between[k, m] += cross[i, k] * columns[i, m]
    for k in range(variances.size):
        for m in range(columns.shape[1]):
            between[k, m] *= variances[k]
    for i in range(cross.shape[0]):
        for k in range(cross.shape[1]):
            for m in range(columns.shape[1]):
                image[i, m] += cross[i, k] * between[k, m]


def adapted_products(
    preferences: PreferencesByPair, tie_in: Floats, bend: Floats, diagonal: Floats, variances: Floats
) -> Product:
    """Return the function that multiplies a Laplacian, lowered by annotators who adapt, with columns.

    As :func:`laplacian_products` less :func:`adapted_table_products`, where ``tie_in`` stands for the table, see
    :class:`Curve`.
    """
    pairs = (preferences.starts, preferences.second, preferences.bounds, preferences.code, read_only(tie_in))
    weights = read_only(bend)

    def products(columns: Floats) -> Floats:
        given, n = read_only(columns), columns.shape[1]

        def gather(begin: int, end: int) -> Floats:
            between = np.zeros((len(variances), n))
            _gather(*pairs, given, begin, end, between)
            return between

        between = read_only(variances[:, None] * total(over_bounds(gather, preferences.parts)))

        def spread(begin: int, end: int) -> Floats:
            image = np.zeros(columns.shape)
            _add_adapted_products(*pairs, weights, given, between, begin, end, np.empty((2, n)), image)
            return image

        image: Floats = diagonal[:, None] * columns - total(over_bounds(spread, preferences.parts))
        return image

    return products


@njit(cache=True, nogil=True)
def _gather(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, columns: Any, begin: int, end: int, between: Any
) -> None:
    """Add to each annotator what the pairs of items begin to end send."""
    for i in range(begin, end):
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for row in range(bounds[pair], bounds[pair + 1]):
                k, weight = np.uint32(code[row] >> 2), tie_in[row]
                for m in range(columns.shape[1]):
                    between[k, m] += weight * (columns[i, m] - columns[j, m])


@njit(cache=True, nogil=True)
def _add_adapted_products(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, bend: Any, columns: Any, between: Any, begin: int,
    end: int, spare: Any, image: Any,
) -> None:  # fmt: skip
    """Add to the items of the pairs of items begin to end what annotators send, and what their neighbours are."""
    own, sent = spare[0], spare[1]
    for i in range(begin, end):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, bent = np.uint32(second[pair]), bend[pair]
            sent[:] = 0.0
            for row in range(bounds[pair], bounds[pair + 1]):
                k, weight = np.uint32(code[row] >> 2), tie_in[row]
                for m in range(sent.size):
                    sent[m] += weight * between[k, m]
            for m in range(sent.size):
                own[m] += sent[m] + bent * columns[j, m]
                image[j, m] += bent * columns[i, m] - sent[m]
        for m in range(sent.size):
            image[i, m] += own[m]
