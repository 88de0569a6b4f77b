"""Bradley-Terry with covariates or strengths, preference by preference: log-likelihood, gradient and curvature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import even_bounds, over_bounds, read_only, total
from ....protocols import Counts, Floats, Ints

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
    turned = np.empty((values.shape[1] + has_side, len(order)))
    rows = (read_only(values), read_only(sign), read_only(order))
    over_bounds(lambda begin, end: _fill_turned(*rows, begin, end, turned), even_bounds(len(order), _ROWS_PER_THREAD))
    return turned


@njit(cache=True, nogil=True)
def _fill_turned(values, sign, order, begin, end, turned):  # type: ignore[no-untyped-def]
    """Fill columns begin to end."""
    k = values.shape[1]
    for place in range(begin, end):
        row = order[place]
        for c in range(turned.shape[0]):
            turned[c, place] = sign[row] * (values[row, c] if c < k else 1.0)


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
    rows: Any = (pair, outcome, weight, np.ascontiguousarray(values), gap, coefficients)
    rows = (*rows, *((tie,) if cuts is None else (cuts, has_ties)))
    add: Any = _evaluate_graded if cuts is not None else _evaluate_davidson if tie > 0 else _evaluate

    def work(begin: int, end: int) -> tuple[float, Floats, Floats]:
        gradient, curvature = np.zeros(k), np.zeros((k, k))
        return float(add(begin, end, *rows, pull, bend, gradient, curvature, cross)), gradient, curvature

    # a pair belongs to one thread
    bounds = even_bounds(len(pair), _ROWS_PER_THREAD)
    bounds[1:-1] = np.searchsorted(pair, pair[bounds[1:-1]])
    threads = over_bounds(work, bounds)
    lower = np.tril(total([part[2] for part in threads]))
    gradient, value = total([part[1] for part in threads]), sum(part[0] for part in threads)
    return ControlledModel(value, pull, bend, gradient, lower + np.tril(lower, -1).T, cross)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _fill_odds(start, stop, pair, gap, coefficients, values, odds):  # type: ignore[no-untyped-def]
    """Fill in the log odds of the first item, from start to stop: the gap of scores and what the covariates add."""
    for place in range(stop - start):
        odds[place] = gap[pair[start + place]]
    for c in range(values.shape[0]):
        coefficient, column = coefficients[c], values[c, start:stop]
        for place in range(stop - start):
            odds[place] += coefficient * column[place]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_columns(start, stop, slope, bent, values, bent_value, gradient, curvature):  # type: ignore[no-untyped-def]
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
def _add_pairs(start, stop, pair, slope, bent, values, pull, bend, cross):  # type: ignore[no-untyped-def]
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
def _evaluate(  # type: ignore[no-untyped-def]
    begin, end, pair, outcome, weight, values, gap, coefficients, tie, pull, bend, gradient, curvature, cross
):  # fmt: skip
    """Ties as half a win of each."""
    total, product = 0.0, 1.0
    odds, slope, bent, room = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(begin, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        _fill_odds(start, stop, pair, gap, coefficients, values, odds)
        for row in range(start, stop):
            eta = odds[row - start]
            small = np.exp(-abs(eta))
            less = 1.0 / (1.0 + small)
            p = less if eta > 0 else small * less
            share, w = 0.5 + 0.5 * outcome[row], weight[row]
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
        _add_columns(start, stop, slope, bent, values, room, gradient, curvature)
        _add_pairs(start, stop, pair, slope, bent, values, pull, bend, cross)
    return total - np.log(product)


@njit(cache=True, nogil=True)
def _evaluate_davidson(  # type: ignore[no-untyped-def]
    begin, end, pair, outcome, weight, values, gap, coefficients, tie, pull, bend, gradient, curvature, cross
):  # fmt: skip
    """Ties as a third outcome."""
    total, k, log_tie = 0.0, values.shape[0], np.log(tie)
    odds, slope, bent, room = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(begin, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        _fill_odds(start, stop, pair, gap, coefficients, values, odds)
        for row in range(start, stop):
            at, eta = pair[row], odds[row - start]
            # all three terms less the larger of the first two
            half = 0.5 * abs(eta)
            big, little, even = 1.0, np.exp(-2.0 * half), tie * np.exp(-half)
            sum_of = big + little + even
            win = (big if eta > 0 else little) / sum_of
            loss = (little if eta > 0 else big) / sum_of
            drawn, lead, w, y = even / sum_of, win - loss, weight[row], outcome[row]
            reached = 0.5 * y * eta if y != 0 else log_tie
            total += w * (reached - half - np.log(sum_of))
            slope[row - start], bent[row - start] = 0.5 * w * (y - lead), 0.25 * w * (win + loss - lead * lead)
            of_tie = -0.5 * w * drawn * lead
            cross[at, k] += of_tie
            gradient[k] += w * ((1.0 if y == 0 else 0.0) - drawn)
            curvature[k, k] += w * drawn * (1.0 - drawn)
            for c in range(k):
                curvature[k, c] += of_tie * values[c, row]
        _add_columns(start, stop, slope, bent, values, room, gradient, curvature)
        _add_pairs(start, stop, pair, slope, bent, values, pull, bend, cross)
    return total


@njit(cache=True, nogil=True)
def _evaluate_graded(  # type: ignore[no-untyped-def]
    begin, end, pair, outcome, weight, values, gap, coefficients, cuts, has_ties, pull, bend, gradient, curvature,
    cross
):  # fmt: skip
    """Outcomes in steps: which cuts a logistic variable lies between, turned so that the step is not below 0.

    Between cuts at distances ``a`` and ``b`` the logarithm of the chance is ``log s(b) + log s(-a) +
    log(1 - exp(a - b))`` with ``s`` the logistic function: three concave terms.
    """
    total, top = 0.0, len(cuts)
    width = np.empty(top)
    width[0], width[1:] = 2.0 * cuts[0], np.diff(cuts)
    if (not width[0] > 0.0 and has_ties) or not (width[1:] > 0.0).all():
        return -np.inf
    ratios, logs = 1.0 / np.expm1(width), np.log(-np.expm1(-width))
    odds, slopes, curves, room = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(begin, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        _fill_odds(start, stop, pair, gap, coefficients, values, odds)
        for row in range(start, stop):
            w, sign, step = weight[row], 1.0 if outcome[row] >= 0 else -1.0, int(abs(outcome[row]))
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
            of_cuts = slope, bent, together
            _add_cuts(row, pair[row], step, w * sign, w, of_cuts, values, has_ties, gradient, curvature, cross)
        _add_columns(start, stop, slopes, curves, values, room, gradient, curvature)
        _add_pairs(start, stop, pair, slopes, curves, values, pull, bend, cross)
    return total


@njit(inline="always")
def _add_cuts(  # type: ignore[no-untyped-def]
    row, at, step, signed, w, of_cuts, values, has_ties, gradient, curvature, cross
):  # fmt: skip
    """Add what a preference of this step tells of its lower and its upper cut; ``signed`` is its weight, turned."""
    k, (slope, bent, together) = values.shape[0], of_cuts
    base = k if has_ties else k - 1
    top = len(gradient) - base
    for side in range(2):
        # the lower cut of a tie is the upper one negated
        column, turn = base + max(step - 1 + side, 0), -1.0 if step == 0 and side == 0 else 1.0
        if column < k or step - 1 + side == top:
            continue
        gradient[column] += w * turn * slope[side]
        cross[at, column] -= signed * turn * bent[side]
        curvature[column, column] += w * (bent[side] + together)
        for c in range(k):
            curvature[column, c] -= signed * turn * bent[side] * values[c, row]
    if step == 0:
        curvature[base, base] += 2.0 * w * together
    elif step < top and base + step - 1 >= k:
        curvature[base + step, base + step - 1] -= w * together
