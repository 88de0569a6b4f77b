"""One pass of the difficulty model over grades by item: levels and ease of items, and slopes for the annotators."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..protocols import Floats, Ints
from .item_rows import ItemRows, on_grid
from .threads import over_bounds, read_only, total

_ROUND = 1.5 * 2.0**20
"""A number added and taken off again leaves a multiple of the grid, 2 ** -32."""

_LONGEST_STEP = 1.0
_MOST_HALVINGS = 20
_TINY = 1e-9


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
    rows: ItemRows,
    ability: Floats,
    log_ease: Floats,
    log_prior: Floats,
    known: Ints,
    ease_prior: tuple[float, float],
    probabilities: Floats,
    new_ease: Floats,
) -> DifficultyPass:
    """Fill in the probability of each level for each graded item and the item's better log ease, (n_items,).

    ``ability`` (n_annotators,) and ``log_ease`` (n_items,) are the present estimates, ``log_prior`` (n_levels,) the
    class prior, ``known`` (n_items,) a level or -1, ``ease_prior`` the mean and precision of the log ease; an item's
    log ease makes a Newton step, halved until the expected log-likelihood does not fall.
    """
    n_annotators, n_levels = len(ability), len(log_prior)
    abilities, eases, log_shares, clamp = (
        read_only(on_grid(ability)), read_only(log_ease), read_only(on_grid(log_prior)), read_only(known),
    )  # fmt: skip
    most_rows = int(np.diff(rows.starts).max(initial=0))

    def work(begin: int, end: int) -> Floats:
        sums = np.zeros(2 * n_annotators + n_levels + 1)
        _difficulty_pass(
            rows.starts, rows.annotator, rows.level, rows.weight, abilities, eases, log_shares, clamp, *ease_prior,
            begin, end, np.empty((2, most_rows)), probabilities, new_ease, sums,
        )  # fmt: skip
        return sums

    sums = total(over_bounds(work, rows.bounds))
    slope, bend = sums[:n_annotators], sums[n_annotators : 2 * n_annotators]
    return DifficultyPass(float(sums[-1]), slope, bend, sums[2 * n_annotators : -1])


@njit(cache=True, nogil=True)
def _difficulty_pass(
    starts: Any, annotator: Any, level: Any, weight: Any, ability: Any, log_ease: Any, log_prior: Any, known: Any,
    mean: float, precision: float, begin: int, end: int, scratch: Floats, probabilities: Floats, new_ease: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """Fill probabilities and new_ease of items begin to end; add slope, bend, shares and objective to sums in turn."""
    n_levels, n_annotators = log_prior.size, ability.size
    share = np.empty(n_levels)
    right, correct = scratch[0], scratch[1]
    objective = 0.0
    for i in range(begin, end):
        first, last = starts[i], starts[i + 1]
        if first == last:
            continue
        who, answer, amount = annotator[first:last], level[first:last], weight[first : min(last, weight.size)]
        for k in range(n_levels):
            share[k] = log_prior[k]
        ease = np.exp(log_ease[i])
        missed = _level_evidence(who, answer, amount, ability, ease, np.log(n_levels - 1.0), share, correct)
        off = log_ease[i] - mean
        objective += (missed + _to_shares(share, known[i]) - 0.5 * precision * off * off + _ROUND) - _ROUND
        for k in range(n_levels):
            probabilities[i, k] = share[k]
            share[k] = (share[k] + _ROUND) - _ROUND
            sums[2 * n_annotators + k] += share[k]
        for row in range(last - first):
            right[row] = share[answer[row]]
        better = _better_ease(who, amount, ability, right, correct, log_ease[i], mean, precision)
        new_ease[i] = better
        ease = np.exp(better)
        for row in range(last - first):
            a, w = who[row], amount[row] if amount.size else 1.0
            x = ability[a] * ease
            sums[a] += (w * (right[row] - correct[row]) * ease + _ROUND) - _ROUND
            curve = (correct[row] - 0.5) / x if abs(x) > 1e-3 else 0.25
            sums[n_annotators + a] += (w * curve * ease * ease + _ROUND) - _ROUND
    sums[2 * n_annotators + n_levels] += objective


@njit(cache=True, nogil=True)
def _level_evidence(
    who: Any, answer: Any, amount: Any, ability: Any, ease: float, spread: float, share: Floats, correct: Floats
) -> Any:
    """Add each row's log odds of a hit to its level's share, fill in its probability; return the rest."""
    missed = 0.0
    for row in range(who.size):
        w = amount[row] if amount.size else 1.0
        x = ability[who[row]] * ease
        small = np.exp(-abs(x))
        correct[row] = (1.0 if x > 0 else small) / (1.0 + small)
        share[answer[row]] += (w * (x + spread) + _ROUND) - _ROUND
        missed -= (w * (max(x, 0.0) + np.log1p(small) + spread) + _ROUND) - _ROUND
    return missed


@njit(cache=True, nogil=True)
def _to_shares(share: Floats, fixed: int) -> Any:
    """Turn logarithms into shares that sum to one and return the logarithm of their sum; a known level is certain."""
    if fixed >= 0:
        found = share[fixed]
        for k in range(share.size):
            share[k] = 1.0 if k == fixed else 0.0
        return found
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
def _better_ease(
    who: Any, amount: Any, ability: Any, right: Floats, correct: Floats, start: float, mean: float, precision: float
) -> Any:
    """Log ease after a Newton step, halved until the expectation does not fall; fills in ``correct`` there."""
    value, slope, bend = _ease_slope(who, amount, ability, right, correct, start, mean, precision)
    step = min(max(slope / bend, -_LONGEST_STEP), _LONGEST_STEP)
    for _ in range(_MOST_HALVINGS):
        there, _, _ = _ease_slope(who, amount, ability, right, correct, start + step, mean, precision)
        if there >= value - _TINY:
            return start + step
        step *= 0.5
    _ease_slope(who, amount, ability, right, correct, start, mean, precision)
    return start


@njit(cache=True, nogil=True)
def _ease_slope(
    who: Any, amount: Any, ability: Any, right: Floats, correct: Floats, log_ease: float, mean: float, precision: float
) -> Any:
    """Expected log-likelihood of an item at a log ease with its derivative and a curvature that is never below zero."""
    ease, off = np.exp(log_ease), log_ease - mean
    value, slope, bend = -0.5 * precision * off * off, -precision * off, precision
    for row in range(who.size):
        w = amount[row] if amount.size else 1.0
        x = ability[who[row]] * ease
        small = np.exp(-abs(x))
        hit = (1.0 if x > 0 else small) / (1.0 + small)
        correct[row] = hit
        value += (w * (right[row] * x - max(x, 0.0) - np.log1p(small)) + _ROUND) - _ROUND
        slope += (w * (right[row] - hit) * x + _ROUND) - _ROUND
        bend += (w * hit * (1.0 - hit) * x * x + _ROUND) - _ROUND
    return value, slope, bend
