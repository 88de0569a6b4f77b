"""One pass of the difficulty model over grades by item: levels and ease of items, and slopes for the annotators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.confusion import EXACT_SUM_SHIFT, PackedGrades
from ....kernels.threads import bind, sum_over_parts, views
from ....protocols import Floats, Ints

_MAX_NEWTON_STEP = 1.0
_MAX_HALVINGS = 20
_OBJECTIVE_SLACK = 1e-9
_MAX_PRODUCT = 1e100
_PART_ROWS = 1 << 14


class DifficultyPass(NamedTuple):
    """What a pass finds.

    Parameters
    ----------
    objective
        Logarithm of the items' marginal likelihood with the prior of their ease.
    slope
        Derivative of the expected log-likelihood by each annotator's ability, the ease being the new one,
        (n_annotators,).
    bend
        Curvature of a parabola below the expected log-likelihood that touches it, (n_annotators,).
    shares
        Expected number of graded items of each level, (n_levels,).
    """

    objective: float
    slope: Floats
    bend: Floats
    shares: Floats


def difficulty_pass(
    grades: PackedGrades,
    annotators: NDArray[np.uint32],
    levels: NDArray[np.uint8],
    ability: Floats,
    log_ease: Floats,
    log_guess: Floats,
    log_prior: Floats,
    known: Ints,
    ease_prior: tuple[float, float],
    probabilities: Floats,
    better_ease: Floats,
    *,
    lucky: bool,
) -> DifficultyPass:
    """Return sums over the rows; fill in the probability of each level and a better log ease for each graded item.

    ``annotators`` and ``levels`` (n,) are those of the rows. ``ability`` (n_annotators,) and ``log_ease`` (n_items,)
    are the present estimates; an annotator knows an item's level with the logistic function of ability times ease as
    the probability. ``log_guess`` (n_annotators, n_levels) is the logarithm of the probability of each answer where it
    is not known: of each wrong one, or, with ``lucky``, of each whatsoever. ``log_prior`` (n_levels,) is the class
    prior, ``known`` (n_items,) a level or -1, ``ease_prior`` mean and precision of the log ease. ``probabilities``
    (n_items, n_levels); ``better_ease`` (n_items,) is a Newton step ahead, halved until the expected log-likelihood
    does not fall.
    """
    n_annotators, n_levels = len(ability), len(log_prior)
    rows = grades.starts, annotators, levels, grades.code, grades.weight
    given = views(ability, log_ease, log_guess.ravel(), log_prior, known)
    add = bind(_difficulty_pass, *rows, *given, *ease_prior, lucky, grades.most, probabilities, better_ease)
    # bounds of the stretches of items that are added up apart, which depend on the grades only
    n_rows = int(grades.starts[-1])
    n_parts = max(1, n_rows // max(_PART_ROWS, n_annotators))
    parts = np.searchsorted(grades.starts, np.linspace(0, n_rows, n_parts + 1).astype(np.int64))
    parts[0], parts[-1] = 0, len(grades.starts) - 1
    sums = sum_over_parts(add, parts, 2 * n_annotators + n_levels + 1)
    slope, bend = sums[:n_annotators], sums[n_annotators : 2 * n_annotators]
    return DifficultyPass(float(sums[-1]), slope, bend, sums[2 * n_annotators : -1])


@njit(cache=True, nogil=True)
def _difficulty_pass(
    starts, who, level, cell, weight, ability, log_ease, log_guess, log_prior, known, mean, precision, lucky, most_rows,
    probabilities, better_ease, begin, end, sums,
):  # fmt: skip
    """Fill in probabilities and better_ease of items begin to end; add slope, bend, shares, objective to sums."""
    n_levels, n_annotators = log_prior.size, ability.size
    share, right, knows = np.empty(n_levels), np.empty(most_rows), np.empty(most_rows)
    objective = 0.0
    for i in range(begin, end):
        first, last = starts[i], starts[i + 1]
        if first == last:
            continue
        for k in range(n_levels):
            share[k] = log_prior[k]
        ease, off = np.exp(log_ease[i]), log_ease[i] - mean
        wrong = _look(who, weight, first, last, ability, ease, knows)
        value = _evidence(who, level, cell, weight, first, last, ability, ease, log_guess, lucky, share, right)
        value += wrong + _to_shares(share, known[i]) - 0.5 * precision * off * off
        objective += (value + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
        for k in range(n_levels):
            probabilities[i, k] = share[k]
            sums[2 * n_annotators + k] += (share[k] + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
        for row in range(first, last):
            right[row - first] *= share[level[row]]
        better_ease[i], ease = _better_ease(
            who, weight, first, last, ability, right, knows, wrong, log_ease[i], ease, mean, precision
        )
        for row in range(first, last):
            a, w = who[row], weight[row] if weight.size else 1.0
            x, sure = ability[a] * ease, knows[row - first]
            curve = (sure - 0.5) / x if abs(x) > 1e-3 else 0.25
            sums[a] += w * (((right[row - first] - sure) * ease + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
            sums[n_annotators + a] += w * ((curve * ease * ease + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
    sums[2 * n_annotators + n_levels] += objective


@njit(cache=True, nogil=True)
def _look(who, weight, first, last, ability, ease, knows):
    """Fill in the probability that each row is known; return the logarithm of the probability that none is."""
    wrong, logs, product = 0.0, 0.0, 1.0
    for row in range(first, last):
        x = ability[who[row]] * ease
        small = np.exp(-abs(x))
        share = 1.0 / (1.0 + small)
        knows[row - first] = share if x > 0 else small * share
        if weight.size:
            wrong -= weight[row] * ((max(x, 0.0) + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
            logs += weight[row] * np.log1p(small)
        else:
            # one logarithm for many rows
            wrong -= (max(x, 0.0) + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
            product *= 1.0 + small
            if product > _MAX_PRODUCT:
                logs += np.log(product)
                product = 1.0
    return wrong - logs - np.log(product)


@njit(cache=True, nogil=True)
def _evidence(who, level, cell, weight, first, last, ability, ease, log_guess, lucky, share, right):
    """Add to each level's share what its rows speak for it, and fill in how likely a row is known if its level is true.

    Returns the log-likelihood of the guesses if all rows were guesses.
    """
    guessed = 0.0
    for row in range(first, last):
        w, guess = weight[row] if weight.size else 1.0, log_guess[cell[row]]
        gain, sure = ability[who[row]] * ease - guess, 1.0
        if lucky:
            small = np.exp(-abs(gain))
            sure = (1.0 if gain > 0 else small) / (1.0 + small)
            gain = max(gain, 0.0) + np.log1p(small)
        right[row - first] = sure
        share[level[row]] += w * ((gain + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
        guessed += w * ((guess + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
    return guessed


@njit(cache=True, nogil=True)
def _to_shares(share, fixed):
    """Turn logarithms into shares that sum to one and return the logarithm of their sum; a known level is certain."""
    if fixed >= 0:
        certain = share[fixed]
        for k in range(share.size):
            share[k] = 1.0 if k == fixed else 0.0
        return certain
    top = share[0]
    for k in range(1, share.size):
        top = max(top, share[k])
    norm = 0.0
    for k in range(share.size):
        share[k] = np.exp(share[k] - top)
        norm += share[k]
    for k in range(share.size):
        share[k] /= norm
    return top + np.log(norm)


@njit(cache=True, nogil=True)
def _better_ease(who, weight, first, last, ability, right, knows, wrong, start, ease, mean, precision):
    """Log ease and ease after a Newton step, halved until the expectation does not fall; ``knows`` is then of there."""
    off = start - mean
    value, slope, bend = wrong - 0.5 * precision * off * off, -precision * off, precision
    speaks = 0.0
    for row in range(first, last):
        w, able = weight[row] if weight.size else 1.0, ability[who[row]]
        x, true, sure = able * ease, right[row - first], knows[row - first]
        speaks += w * ((true * able + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
        slope += w * (((true - sure) * x + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
        bend += w * ((sure * (1.0 - sure) * x * x + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT)
    value += speaks * ease
    step = min(max(slope / bend, -_MAX_NEWTON_STEP), _MAX_NEWTON_STEP)
    for _ in range(_MAX_HALVINGS):
        ease, off = np.exp(start + step), start + step - mean
        there = _look(who, weight, first, last, ability, ease, knows) + speaks * ease - 0.5 * precision * off * off
        if there >= value - _OBJECTIVE_SLACK:
            return start + step, ease
        step *= 0.5
    ease = np.exp(start)
    _look(who, weight, first, last, ability, ease, knows)
    return start, ease
