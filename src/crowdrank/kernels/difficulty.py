"""One pass of the difficulty model over grades by item: levels and ease of items, and slopes for the annotators."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Floats, Ints
from .confusion import PackedGrades
from .threads import even_bounds, over_bounds, read_only, total

_ROUND = 1.5 * 2.0**20
"""Added and taken off again it leaves multiples of 2 ** -32, sums of which below two million are exact in any order."""

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
    are the present estimates; an annotator knows an item's
    level with the logistic function of ability times ease as the probability. ``log_guess`` (n_annotators, n_levels)
    is the logarithm of the probability of each answer where it is not known: of each wrong one, or, with ``lucky``, of
    each whatsoever. ``log_prior`` (n_levels,) is the class prior, ``known`` (n_items,) a level or -1, ``ease_prior``
    mean and precision of the log ease. ``probabilities`` (n_items, n_levels); ``better_ease`` (n_items,) is a Newton
    step ahead, halved until the expected log-likelihood does not fall.
    """
    n_annotators, n_levels = len(ability), len(log_prior)
    abilities, eases, guesses, log_shares, clamp = (
        read_only(array) for array in (ability, log_ease, log_guess.ravel(), log_prior, known)
    )
    most_rows = int(np.diff(grades.starts).max(initial=0))

    def work(begin: int, end: int) -> list[Floats]:
        found = []
        for part in range(begin, end):
            sums = np.zeros(2 * n_annotators + n_levels + 1)
            _difficulty_pass(
                grades.starts, annotators, levels, grades.code, grades.weight, abilities, eases, guesses, log_shares,
                clamp, *ease_prior, lucky, grades.parts[part], grades.parts[part + 1], np.empty((3, most_rows)),
                probabilities, better_ease, sums,
            )  # fmt: skip
            found.append(sums)
        return found

    threads = over_bounds(work, even_bounds(len(grades.parts) - 1, 1))
    sums = total([part for parts in threads for part in parts])
    slope, bend = sums[:n_annotators], sums[n_annotators : 2 * n_annotators]
    return DifficultyPass(float(sums[-1]), slope, bend, sums[2 * n_annotators : -1])


@njit(cache=True, nogil=True)
def _difficulty_pass(
    starts: Any, annotator: Any, level: Any, cell: Any, weight: Any, ability: Any, log_ease: Any, log_guess: Any,
    log_prior: Any, known: Any, mean: float, precision: float, lucky: bool, begin: int, end: int, scratch: Floats,
    probabilities: Floats, better_ease: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill in probabilities and better_ease of items begin to end; add slope, bend, shares, objective to sums."""
    n_levels, n_annotators = log_prior.size, ability.size
    share = np.empty(n_levels)
    objective = 0.0
    for i in range(begin, end):
        first, last = starts[i], starts[i + 1]
        if first == last:
            continue
        who, answer, amount = annotator[first:last], level[first:last], weight[first : min(last, weight.size)]
        right, knows, wrong = scratch[0, : last - first], scratch[1, : last - first], scratch[2, : last - first]
        for k in range(n_levels):
            share[k] = log_prior[k]
        ease = np.exp(log_ease[i])
        _look(who, ability, ease, knows, wrong)
        value = _evidence(who, answer, cell[first:last], amount, ability, ease, log_guess, lucky, wrong, share, right)
        off = log_ease[i] - mean
        value += _to_shares(share, known[i]) - 0.5 * precision * off * off
        objective += (value + _ROUND) - _ROUND
        for k in range(n_levels):
            probabilities[i, k] = share[k]
            sums[2 * n_annotators + k] += (share[k] + _ROUND) - _ROUND
        for row in range(last - first):
            right[row] *= share[answer[row]]
        better_ease[i] = _better_ease(who, amount, ability, right, knows, wrong, log_ease[i], mean, precision)
        ease = np.exp(better_ease[i])
        for row in range(last - first):
            a, w = who[row], amount[row] if amount.size else 1.0
            x = ability[a] * ease
            curve = (knows[row] - 0.5) / x if abs(x) > 1e-3 else 0.25
            sums[a] += w * (((right[row] - knows[row]) * ease + _ROUND) - _ROUND)
            sums[n_annotators + a] += w * ((curve * ease * ease + _ROUND) - _ROUND)
    sums[2 * n_annotators + n_levels] += objective


@njit(cache=True, nogil=True)
def _look(who: Any, ability: Any, ease: float, knows: Floats, wrong: Floats) -> None:
    """Fill in the probability that each row is known, and the logarithm of the probability that it is not."""
    for row in range(who.size):
        x = ability[who[row]] * ease
        small = np.exp(-abs(x))
        knows[row] = (1.0 if x > 0 else small) / (1.0 + small)
        wrong[row] = -max(x, 0.0) - np.log1p(small)


@njit(cache=True, nogil=True)
def _evidence(
    who: Any, answer: Any, cell: Any, amount: Any, ability: Any, ease: float, log_guess: Any, lucky: bool,
    wrong: Floats, share: Floats, right: Floats,
) -> Any:  # fmt: skip
    """Add to each level's share what its rows speak for it, and fill in how likely a row is known if its level is true.

    Returns the log-likelihood of the rows if all were wrong.
    """
    value = 0.0
    for row in range(who.size):
        w, guess = amount[row] if amount.size else 1.0, log_guess[cell[row]]
        gain, right[row] = ability[who[row]] * ease - guess, 1.0
        if lucky:
            small = np.exp(-abs(gain))
            right[row] = (1.0 if gain > 0 else small) / (1.0 + small)
            gain = max(gain, 0.0) + np.log1p(small)
        share[answer[row]] += w * ((gain + _ROUND) - _ROUND)
        value += w * ((guess + wrong[row] + _ROUND) - _ROUND)
    return value


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
    who: Any, amount: Any, ability: Any, right: Floats, knows: Floats, wrong: Floats, start: float, mean: float,
    precision: float,
) -> Any:  # fmt: skip
    """Log ease after a Newton step, halved until the expectation does not fall; ``knows`` is what it is there."""
    value, slope, bend = _expectation(who, amount, ability, right, knows, wrong, start, mean, precision)
    step = min(max(slope / bend, -_LONGEST_STEP), _LONGEST_STEP)
    for _ in range(_MOST_HALVINGS):
        _look(who, ability, np.exp(start + step), knows, wrong)
        there = _expectation(who, amount, ability, right, knows, wrong, start + step, mean, precision)[0]
        if there >= value - _TINY:
            return start + step
        step *= 0.5
    _look(who, ability, np.exp(start), knows, wrong)
    return start


@njit(cache=True, nogil=True)
def _expectation(
    who: Any, amount: Any, ability: Any, right: Floats, knows: Floats, wrong: Floats, log_ease: float, mean: float,
    precision: float,
) -> Any:  # fmt: skip
    """Expected log-likelihood of an item at a log ease with its derivative and a curvature that is above zero."""
    ease, off = np.exp(log_ease), log_ease - mean
    value, slope, bend = -0.5 * precision * off * off, -precision * off, precision
    for row in range(who.size):
        w, x = amount[row] if amount.size else 1.0, ability[who[row]] * ease
        value += w * ((right[row] * x + wrong[row] + _ROUND) - _ROUND)
        slope += w * (((right[row] - knows[row]) * x + _ROUND) - _ROUND)
        bend += w * ((knows[row] * (1.0 - knows[row]) * x * x + _ROUND) - _ROUND)
    return value, slope, bend
