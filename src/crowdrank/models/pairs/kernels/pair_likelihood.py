"""Likelihoods of preferences between pairs of items, with all that Newton's method needs.

First Bradley-Terry with Davidson's ties, evaluated on the counts of each pair. Then models in which every annotator has
a parameter, evaluated on preferences sorted by pair: two items with scores ``u`` and ``v`` have a gap ``t``, and an
annotator with parameter ``a`` prefers the first of them with a probability that depends on ``x = a t`` only:

- ``"mixture"``: ``t = tanh((u - v) / 2)`` and probability ``(1 + x) / 2``, which is Crowd-BT with ``a = 2 eta - 1``;
- ``"slope"``: ``t = u - v`` and probability ``1 / (1 + exp(-x))``.

A tie counts half for each side. Then preferences one by one, with covariates or steps of strength, and the counts of
many resamples at once. Last the multinomial preference model: a batch is the preferences of one annotator in one query.
With scores ``s`` and adherence ``t`` of the annotator, a pair ``(i, j)`` is drawn with probability proportional to
``exp(t (s_i - s_j))``, and the log-likelihood of a batch of ``N`` preferences with net wins ``w`` (wins less losses of
each item) is ``t w's - N log Z``, where ``Z``, the sum over all pairs, is the product of two sums over items less their
number. So no pass needs more than the items of each query.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.laplacian import Product, solve_together
from ....kernels.pairs import PreferencesByPair, group_leader, settle_groups
from ....kernels.threads import bind, dot, even_bounds, pair_bounds, read_only, sum_over_bounds, views
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
    n, bend, strength = len(scores), np.empty(len(second)), np.empty(len(second))
    # exponentials of items and not of pairs; scores are centred, so they stay in range
    given = views(starts, second, margin, number, scores, np.exp(0.5 * scores))
    add = bind(_evaluate_ties, *given, tie, bend, strength)
    (gradient, degree, cross), sums = sum_over_bounds(add, pair_bounds(starts), (3, n), 3)
    value = float(sums[0]) - dot(number, np.log(strength, out=strength)) + (n_ties * np.log(tie) if n_ties else 0.0)
    return TieModel(value, gradient, n_ties - float(sums[1]), bend, degree, cross, float(sums[2]))


@njit(cache=True, nogil=True)
def _evaluate_ties(starts, second, margin, number, scores, root, tie, bend, strength, begin, end, of_items, sums):
    """Fill bend and strength, (n_pairs,), and add to gradient, degree and cross, (3, n_items), and sums, (3,)."""
    gradient, degree, cross = of_items[0], of_items[1], of_items[2]
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

    value, (gradient, degree), (slope, own_bend), cross = sum_over_bounds(
        bind(run, preferences, level, parameter, bend, tie_in), preferences.parts,
        1, (2, n_items), (2, n_annotators), (n_items if dense else 0, n_annotators),
    )  # fmt: skip
    return Curve(float(value[0]), gradient, slope, bend, degree, own_bend, cross, tie_in)


@cache
def _compile_pass(mixture: bool) -> Any:
    """The pass over preferences of one of the two models."""

    @njit(cache=True, nogil=True)
    def run(preferences, level, own, bend, tie_in, begin, end, value, of_items, of_annotators, cross):
        """Fill bend and tie_in and add to the rest the terms of the pairs of items begin to end."""
        starts, second, bounds, code, weight, _ = preferences
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
def _gap(mixture, one, other):
    """The gap between two levels, and its derivative by the first score."""
    if not mixture:
        return one - other, 1.0
    share = 1.0 / (one + other)
    return (one - other) * share, 2.0 * one * other * share * share


@njit(cache=True, nogil=True)
def _preference(mixture, won, x):
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
    add = bind(_add_joint_product, preferences, *views(curve.tie_in, bend, items, own))
    to_items, to_own = sum_over_bounds(add, preferences.parts, len(items), len(own))
    return to_items, to_own


@njit(cache=True, nogil=True)
def _add_joint_product(preferences, tie_in, bend, items, own, begin, end, to_items, to_own):
    """Add to both images the terms of the pairs of items begin to end."""
    starts, second, bounds, code, _, _ = preferences
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
    begins = preferences.bounds[preferences.starts]
    most = int(np.max(begins[firsts + size] - begins[firsts], initial=0))
    rows = np.zeros((min(most, len(variances)), size))
    bind(_fill_explained, preferences, *views(tie_in, variances, firsts), place, rows, blocks)()
    return blocks


@njit(cache=True, nogil=True)
def _fill_explained(preferences, tie_in, variances, firsts, place, rows, blocks):
    """Add to the block of each query; ``place`` (n_annotators,) is -1 and ``rows`` 0, before and after."""
    starts, second, bounds, code, _, _ = preferences
    who = np.empty(rows.shape[0], np.int64)
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
    bind(_adapt_table, *views(cross, variances, columns), between, image)()
    return image


@njit(cache=True, nogil=True)
def _adapt_table(cross, variances, columns, between, image):
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
    (tied, weights), parts = views(tie_in, bend), preferences.parts

    def products(columns: Floats) -> Floats:
        given, n = read_only(columns), columns.shape[1]
        (sent,) = sum_over_bounds(bind(_gather, preferences, tied, given), parts, (len(variances), n))
        spread = bind(_add_adapted_products, preferences, tied, weights, given, read_only(variances[:, None] * sent))
        (taken,) = sum_over_bounds(spread, parts, columns.shape)
        return diagonal[:, None] * columns - taken

    return products


@njit(cache=True, nogil=True)
def _gather(preferences, tie_in, columns, begin, end, between):
    """Add to each annotator what the pairs of items begin to end send."""
    starts, second, bounds, code, _, _ = preferences
    for i in range(begin, end):
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for row in range(bounds[pair], bounds[pair + 1]):
                k, weight = np.uint32(code[row] >> 2), tie_in[row]
                for m in range(columns.shape[1]):
                    between[k, m] += weight * (columns[i, m] - columns[j, m])


@njit(cache=True, nogil=True)
def _add_adapted_products(preferences, tie_in, bend, columns, between, begin, end, image):
    """Add to the items of the pairs of items begin to end what annotators send, and what their neighbours are."""
    starts, second, bounds, code, _, _ = preferences
    own, sent = np.empty(image.shape[1]), np.empty(image.shape[1])
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


_ROWS_PER_THREAD = 100_000
_LARGE_PRODUCT = 1e250
_BLOCK = 512
"""So many rows are worked on at once, column by column."""


class ControlledModel(NamedTuple):
    """The log-likelihood at one point, its gradient, and the curvature of the negated log-likelihood.

    Over pairs: ``pull``, the gradient in the difference of their scores, and ``bend``, the curvature. ``gradient`` (k,)
    and ``curvature`` (k, k) are of the coefficients, the last of which are the logarithm of the tie parameter or the
    free cuts where there are any; ``cross`` (n_pairs, k) is the curvature of both.
    """

    log_likelihood: float
    pull: Floats
    bend: Floats
    gradient: Floats
    curvature: Floats
    cross: Floats


def turned_values(values: Floats, sign: Floats, order: Counts, has_side: bool) -> Floats:
    """Return covariates (n, k) in this order as (k, n), each times its sign; with ``has_side`` the sign itself last."""
    turned, sign = np.empty((values.shape[1] + has_side, len(order))), sign[order]
    for row, column in zip(turned, values.T, strict=False):
        np.multiply(column[order], sign, out=row)
    turned[values.shape[1] :] = sign
    return turned


class _Rows(NamedTuple):
    """Preferences with their covariates, what they are evaluated at, and room for what is said of pairs.

    ``cuts`` are none where preferences have no steps, and ``width`` is how far each is from the one below.
    """

    pair: Ints
    outcome: Floats
    weight: Floats
    values: Floats
    gap: Floats
    coefficients: Floats
    tie: float
    cuts: Floats
    has_ties: bool
    width: Floats
    pull: Floats
    bend: Floats
    cross: Floats


def evaluate_controlled(
    pair: Ints, outcome: Floats, weight: Floats, values: Floats, gap: Floats, coefficients: Floats, tie: float,
    cuts: Floats | None = None, has_ties: bool = False,
) -> ControlledModel:  # fmt: skip
    """Evaluate preferences with covariates.

    Parameters
    ----------
    pair, outcome, weight, values
        Of each preference: number of its pair, rising; 1, 0 or -1 for a win of the pair's first item, a tie or a loss;
        weight; and covariates of first against second, (k, n).
    gap
        Difference of the scores of each pair.
    coefficients
        Of the covariates, (k,).
    tie
        Davidson's tie parameter; 0 counts a tie as half a win of each.
    cuts, has_ties
        Of graded preferences, whose ``outcome`` is the signed step, the rising cuts between steps 0 and 1, 1 and 2, and
        so on; the first is free only where there are ties.
    """
    n_pairs, k = len(gap), values.shape[0] + (int(tie > 0) if cuts is None else len(cuts) - 1 + has_ties)
    pull, bend, cross = np.zeros(n_pairs), np.zeros(n_pairs), np.zeros((n_pairs, k))
    cuts = np.empty(0) if cuts is None else cuts
    width = np.diff(cuts, prepend=-cuts[:1])
    if not (width[0 if has_ties else 1 :] > 0.0).all():
        return ControlledModel(-np.inf, pull, bend, np.zeros(k), np.zeros((k, k)), cross)
    given = (pair, outcome, weight, np.ascontiguousarray(values), gap, coefficients)
    rows = _Rows(*given, tie, cuts, has_ties, width, pull, bend, cross)
    # a pair belongs to one thread
    bounds = even_bounds(len(pair), _ROWS_PER_THREAD)
    bounds[1:-1] = np.searchsorted(pair, pair[bounds[1:-1]])
    value, gradient, lower = sum_over_bounds(bind(_evaluate, rows), bounds, 1, k, (k, k))
    lower = np.tril(lower)
    return ControlledModel(float(value[0]), pull, bend, gradient, lower + np.tril(lower, -1).T, cross)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _fill_odds(start, stop, pair, gap, coefficients, values, odds):
    """Fill in the log odds of the first item, from start to stop: the gap of scores and what the covariates add."""
    for place in range(stop - start):
        odds[place] = gap[pair[start + place]]
    for c in range(values.shape[0]):
        coefficient, column = coefficients[c], values[c, start:stop]
        for place in range(stop - start):
            odds[place] += coefficient * column[place]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_columns(start, stop, slope, bent, values, bent_value, gradient, curvature):
    """Add slopes and curvatures of preferences in their log odds to those in the coefficients."""
    for c in range(values.shape[0]):
        column, sum_of = values[c, start:stop], 0.0
        for place in range(stop - start):
            sum_of += slope[place] * column[place]
            bent_value[place] = bent[place] * column[place]
        gradient[c] += sum_of
        for other in range(c + 1):
            second, sum_of = values[other, start:stop], 0.0
            for place in range(stop - start):
                sum_of += bent_value[place] * second[place]
            curvature[c, other] += sum_of


@njit(cache=True, nogil=True)
def _add_pairs(start, stop, pair, slope, bent, values, pull, bend, cross):
    """Add slopes and curvatures to those in the pairs, which follow each other."""
    begin = start
    while begin < stop:
        at, end = pair[begin], begin + 1
        while end < stop and pair[end] == at:
            end += 1
        for row in range(begin, end):
            pull[at] += slope[row - start]
            bend[at] += bent[row - start]
        for c in range(values.shape[0]):
            sum_of = 0.0
            for row in range(begin, end):
                sum_of += bent[row - start] * values[c, row]
            cross[at, c] += sum_of
        begin = end


@njit(cache=True, nogil=True)
def _evaluate(rows, begin, end, value, gradient, curvature):
    """Add the log-likelihood of rows begin to end, and what it says of coefficients and pairs."""
    pair, values, total, product = rows.pair, rows.values, 0.0, 1.0
    ratios, logs = 1.0 / np.expm1(rows.width), np.log(-np.expm1(-rows.width))
    odds, slope, bent, room = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(begin, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        _fill_odds(start, stop, pair, rows.gap, rows.coefficients, values, odds)
        if rows.cuts.size:
            total = _take_graded(rows, ratios, logs, start, stop, odds, slope, bent, gradient, curvature, total)
        elif rows.tie > 0.0:
            total = _take_davidson(rows, start, stop, odds, slope, bent, gradient, curvature, total)
        else:
            total, product = _take_split(rows, start, stop, odds, slope, bent, total, product)
        _add_columns(start, stop, slope, bent, values, room, gradient, curvature)
        _add_pairs(start, stop, pair, slope, bent, values, rows.pull, rows.bend, rows.cross)
    value[0] += total - np.log(product)


@njit(cache=True, nogil=True)
def _take_split(rows, start, stop, odds, slope, bent, total, product):
    """Ties as half a win of each; fill in slope and curvature in the odds, and return the log-likelihood so far."""
    for row in range(start, stop):
        eta = odds[row - start]
        small = np.exp(-abs(eta))
        less = 1.0 / (1.0 + small)
        p = less if eta > 0 else small * less
        share, w = 0.5 + 0.5 * rows.outcome[row], rows.weight[row]
        total += w * (share * eta - max(eta, 0.0))
        if w == 1.0:
            # one logarithm for many rows
            product *= 1.0 + small
            if product > _LARGE_PRODUCT:
                total -= np.log(product)
                product = 1.0
        else:
            total -= w * np.log1p(small)
        slope[row - start], bent[row - start] = w * (share - p), w * small * less * less
    return total, product


@njit(cache=True, nogil=True)
def _take_davidson(rows, start, stop, odds, slope, bent, gradient, curvature, total):
    """Ties as a third outcome."""
    values, tie, k, log_tie = rows.values, rows.tie, rows.values.shape[0], np.log(rows.tie)
    for row in range(start, stop):
        eta = odds[row - start]
        # all three terms less the larger of the first two
        half = 0.5 * abs(eta)
        big, little, even = 1.0, np.exp(-2.0 * half), tie * np.exp(-half)
        sum_of = big + little + even
        win = (big if eta > 0 else little) / sum_of
        loss = (little if eta > 0 else big) / sum_of
        drawn, lead, w, y = even / sum_of, win - loss, rows.weight[row], rows.outcome[row]
        reached = 0.5 * y * eta if y != 0 else log_tie
        total += w * (reached - half - np.log(sum_of))
        slope[row - start], bent[row - start] = 0.5 * w * (y - lead), 0.25 * w * (win + loss - lead * lead)
        of_tie = -0.5 * w * drawn * lead
        rows.cross[rows.pair[row], k] += of_tie
        gradient[k] += w * ((1.0 if y == 0 else 0.0) - drawn)
        curvature[k, k] += w * drawn * (1.0 - drawn)
        for c in range(k):
            curvature[k, c] += of_tie * values[c, row]
    return total


@njit(cache=True, nogil=True)
def _take_graded(rows, ratios, logs, start, stop, odds, slopes, curves, gradient, curvature, total):
    """Outcomes in steps: which cuts a logistic variable lies between, turned so that the step is not below 0.

    Between cuts at distances ``a`` and ``b`` the logarithm of the chance is ``log s(b) + log s(-a) +
    log(1 - exp(a - b))`` with ``s`` the logistic function: three concave terms.
    """
    cuts, top = rows.cuts, rows.cuts.size
    for row in range(start, stop):
        w, sign, step = rows.weight[row], 1.0 if rows.outcome[row] >= 0 else -1.0, int(abs(rows.outcome[row]))
        eta = odds[row - start]
        a = (cuts[step - 1] if step > 0 else -cuts[0]) - sign * eta
        small = np.exp(-abs(a))
        above = 1.0 / (1.0 + small) if a > 0.0 else small / (1.0 + small)
        total -= w * (max(a, 0.0) + np.log1p(small))
        below = ratio = 0.0
        if step < top:
            b, ratio = cuts[step] - sign * eta, ratios[step]
            small = np.exp(-abs(b))
            below = small / (1.0 + small) if b > 0.0 else 1.0 / (1.0 + small)
            total += w * (logs[step] - max(-b, 0.0) - np.log1p(small))
        # of the lower and the upper cut: slope, curvature, and curvature with the turned log odds
        of_a, of_b = above * (1.0 - above), below * (1.0 - below)
        slope, bent, together = (-above - ratio, below + ratio), (of_a, of_b), ratio * (1.0 + ratio)
        slopes[row - start], curves[row - start] = w * sign * (above - below), w * (of_a + of_b)
        _add_cuts(rows, row, step, w * sign, slope, bent, together, gradient, curvature)
    return total


@njit(inline="always")
def _add_cuts(rows, row, step, signed, slope, bent, together, gradient, curvature):
    """Add what a preference of this step tells of its lower and its upper cut; ``signed`` is its weight, turned."""
    w, values, k = rows.weight[row], rows.values, rows.values.shape[0]
    base = k if rows.has_ties else k - 1
    top = len(gradient) - base
    for side in range(2):
        # the lower cut of a tie is the upper one negated
        column, turn = base + max(step - 1 + side, 0), -1.0 if step == 0 and side == 0 else 1.0
        if column < k or step - 1 + side == top:
            continue
        gradient[column] += w * turn * slope[side]
        rows.cross[rows.pair[row], column] -= signed * turn * bent[side]
        curvature[column, column] += w * (bent[side] + together)
        for c in range(k):
            curvature[column, c] -= signed * turn * bent[side] * values[c, row]
    if step == 0:
        curvature[base, base] += 2.0 * w * together
    elif step < top and base + step - 1 >= k:
        curvature[base + step, base + step - 1] -= w * together


@njit(cache=True, nogil=True)
def join_pairs(starts, second, number, group, most, n_joins):
    """Fill the groups of each resample, (n_items, n_resamples) numbered upwards, and the joins, (n_resamples,).

    Pairs that a resample has no preference about, ``number`` (n_pairs, n_resamples), do not connect.
    """
    for resample in range(group.shape[1]):
        own = group[:, resample]
        for i in range(own.size):
            if n_joins[resample] >= most:
                break
            for pair in range(starts[i], starts[i + 1]):
                if number[pair, resample] > 0:
                    a, b = group_leader(own, i), group_leader(own, second[pair])
                    if a != b:
                        n_joins[resample] += 1
                        own[max(a, b)] = min(a, b)
        settle_groups(own)


@njit(cache=True, nogil=True)
def count_resamples(copies, unit, weight, surprise, row_starts, starts, second, number, lead):
    """Add the rows of each pair to its number of preferences, (n_pairs, n_resamples), and to its items' lead.

    A row counts ``weight`` (n_rows,) times the copies of its unit, (n_resamples, n_units) as they are drawn; the lead
    of an item, (n_items, n_resamples), is what it won beyond expectation: ``surprise`` (n_rows,) of that for the lower
    item. The rows of a pair are ``row_starts[pair]`` up to the next.
    """
    n_resamples = copies.shape[0]
    drawn, own = np.empty(n_resamples, np.float32), np.empty(n_resamples, np.float32)
    for i in range(starts.size - 1):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for row in range(row_starts[pair], row_starts[pair + 1]):
                of, counted, gain = np.uint32(unit[row]), weight[row], surprise[row]
                # a loop of its own, so the next one can use vectors
                for k in range(n_resamples):
                    drawn[k] = counted * copies[k, of]
                for k in range(n_resamples):
                    number[pair, k] += drawn[k]
                    own[k] += gain * drawn[k]
                    lead[j, k] -= gain * drawn[k]
        for k in range(n_resamples):
            lead[i, k] += own[k]


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_resamples(starts, second, number, expected, strength, drift, bend, degree):
    """Evaluate the Bradley-Terry model of each resample.

    ``strength`` (n_items, n_resamples) is the exponential of the scores, ``expected`` (n_pairs,) the chance of the
    lower item that the lead was taken from. Adds to ``drift`` by how much the wins to expect of each item are more than
    that; fills ``bend`` (n_pairs, n_resamples) with the curvature of each pair and adds it to ``degree`` of both items.
    """
    n_resamples = number.shape[1]
    own, bent = np.empty(n_resamples), np.empty(n_resamples)
    for i in range(starts.size - 1):
        own[:] = 0.0
        bent[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, chance = np.uint32(second[pair]), expected[pair]
            for k in range(n_resamples):
                win = strength[i, k] / (strength[i, k] + strength[j, k])
                more = number[pair, k] * (win - chance)
                curve = number[pair, k] * win * (1.0 - win)
                own[k] += more
                drift[j, k] -= more
                bend[pair, k] = curve
                bent[k] += curve
                degree[j, k] += curve
        for k in range(n_resamples):
            drift[i, k] += own[k]
            degree[i, k] += bent[k]


def solve_resamples(
    starts: Counts, second: Ints, bend: Any, diagonal: Floats, right: Floats, *, accuracy: float
) -> Floats:
    """Solve the system of each resample, its matrix the Laplacian of ``bend`` with ``diagonal``, as one would alone.

    See :func:`~crowdrank.kernels.laplacian.solve_together`.
    """

    def product(along: Floats) -> Floats:
        neighbours = np.zeros_like(along)
        _add_neighbours(starts, second, bend, along, neighbours)
        return diagonal * along - neighbours

    return solve_together(product, diagonal, right, accuracy=accuracy)


@njit(cache=True, nogil=True)
def _add_neighbours(starts, second, bend, vector, neighbours):
    """Add to each item, (n_items, n_resamples), the vector at its neighbours times the weight of the pair."""
    n_resamples = vector.shape[1]
    own = np.empty(n_resamples)
    for i in range(starts.size - 1):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for k in range(n_resamples):
                weight = bend[pair, k]
                own[k] += weight * vector[j, k]
                neighbours[j, k] += weight * vector[i, k]
        for k in range(n_resamples):
            neighbours[i, k] += own[k]


# The multinomial preference model: every preference is drawn among all ordered pairs of its query's items

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
    amount, won = np.broadcast_to(preferences.amount, len(pair)), preferences.amount * preferences.outcome
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
    add = bind(_evaluate_batches, batches, batches.longest, *views(scores[batches.item], own), sums)
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
def _evaluate_batches(batches, longest, level, own, sums, begin, end, value, of_items, of_own):
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
