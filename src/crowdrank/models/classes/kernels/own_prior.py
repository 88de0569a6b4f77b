"""Hyper-parameters of the prior around annotators' own accuracies, from expected counts of true and given levels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import read_only
from ....protocols import Floats

_MIN_WEIGHT, _MAX_WEIGHT = 0.05, 1e4
_MIN_COUNT = 1e-6
_EASE_PULL = 0.5
"""Precision of the log odds by which a level is easier than others."""

_MAX_LOG_ODDS = 9.0
_N_SWEEPS, _N_NEWTON_STEPS = 3, 3
_N_HALVINGS, _MOST_SECANTS, _TOL_OF_LOG_WEIGHT = 6, 50, 1e-11
_SERIES_FROM = 10.0
"""From here on the asymptotic series of the digamma function has all digits."""


class Accuracies(NamedTuple):
    """What sweeps find.

    Parameters
    ----------
    ability
        Log odds of each annotator's accuracy, (n_annotators,).
    mean
        Log odds of the mean accuracy.
    ease
        Log odds by which each level is easier than others, (n_levels,).
    errors
        Share of each level among the crowd's wrong grades for a level, (n_levels, n_levels).
    right, total
        Of each annotator, how many right grades and grades count one level up, (n_annotators,).
    """

    ability: Floats
    mean: float
    ease: Floats
    errors: Floats
    right: Floats
    total: Floats


def sweep_accuracies(
    counts: Floats, level: Floats, begin: tuple[Floats, float, Floats, Floats], *, row_weight: float,
    own_weight: float, added: tuple[float, float],
) -> Accuracies:  # fmt: skip
    """Return abilities, their mean, the ease of levels and the errors after a few sweeps over all of them.

    Parameters
    ----------
    counts, level
        Expected grades by annotator, true and given level, and expected items of each level.
    begin
        Ability, mean, ease and errors to begin with.
    row_weight, own_weight
        Grades that the prior of a row is worth, and that the mean accuracy is worth in one's own.
    added
        Right and wrong grades added to those of the crowd.
    """
    ability, mean, ease, errors = begin
    swept = _sweep(
        read_only(counts), read_only(level / level.sum()), read_only(ability), mean, read_only(ease),
        read_only(errors), row_weight, own_weight, *added,
    )  # fmt: skip
    return Accuracies(*swept)


def likeliest_weight(counts: Floats, centre: Floats, expected: float, spread: float) -> float:
    """Return the weight of a Dirichlet prior around rows that makes counts likeliest, shrunk to the expected one."""
    n_levels = counts.shape[-1]
    rows, centres = counts.reshape(-1, n_levels), centre.reshape(-1, n_levels)
    return float(_find_weight(read_only(rows), read_only(centres), math.log(expected), spread))


@njit(cache=True, nogil=True)
def _sweep(
    counts: Any, level: Any, first_ability: Any, mean: float, first_ease: Any, first_errors: Any, row_weight: float,
    own_weight: float, n_right: float, n_wrong: float,
) -> Any:  # fmt: skip
    ability, ease, errors = first_ability.copy(), first_ease.copy(), first_errors.copy()
    for _ in range(_N_SWEEPS):
        right, total, crowd = _count_up(counts, ability, ease, errors, row_weight)
        share = _probability(mean)
        ability = _raise_abilities(right, total, ability, ease, share, own_weight)
        up, down = n_right, n_wrong
        for a in range(ability.size):
            # what annotators are worth at a level of ordinary ease, as grades of the level above
            everything, chance = total[a].sum(), _probability(ability[a])
            up += _count_above(everything * chance, own_weight * share)
            down += _count_above(everything - everything * chance, own_weight * (1.0 - share))
        mean = _log_odds(up / (up + down))
        ease = _change_ease(right, total, ability, ease, level)
        errors = _error_shares(crowd)
        _keep_grades_in_favour(ease, errors, mean)
    right, total, _ = _count_up(counts, ability, ease, errors, row_weight)
    return ability, mean, ease, errors, right.sum(axis=1), total.sum(axis=1)


@njit(cache=True, nogil=True)
def _count_up(counts: Any, ability: Any, ease: Any, errors: Any, row_weight: float) -> Any:
    """Right grades and all grades that count one level up, by annotator and level, and the crowd's by both levels."""
    n_annotators, n_levels = ability.size, ease.size
    right, total = np.zeros((n_annotators, n_levels)), np.zeros((n_annotators, n_levels))
    crowd = np.zeros((n_levels, n_levels))
    for a in range(n_annotators):
        for j in range(n_levels):
            chance = _probability(ability[a] + ease[j])
            for k in range(n_levels):
                share = chance if j == k else (1.0 - chance) * errors[j, k]
                number = _count_above(counts[a, j, k], row_weight * share)
                total[a, j] += number
                crowd[j, k] += number
                if j == k:
                    right[a, j] = number
    return right, total, crowd


@njit(cache=True, nogil=True)
def _raise_abilities(right: Any, total: Any, ability: Any, ease: Any, share: float, own_weight: float) -> Any:
    """Newton steps towards each annotator's likeliest log odds."""
    raised = ability.copy()
    for a in range(ability.size):
        for _ in range(_N_NEWTON_STEPS):
            own = _probability(raised[a])
            slope, bend = own_weight * (share - own), own_weight * own * (1.0 - own)
            for j in range(ease.size):
                chance = _probability(raised[a] + ease[j])
                slope += right[a, j] - total[a, j] * chance
                bend += total[a, j] * chance * (1.0 - chance)
            at = raised[a] + min(max(slope / bend, -1.0), 1.0)
            raised[a] = min(max(at, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
    return raised


@njit(cache=True, nogil=True)
def _change_ease(right: Any, total: Any, ability: Any, ease: Any, level: Any) -> Any:
    """A Newton step of the ease of each level, whose mean over items is 0."""
    changed, mean = ease.copy(), 0.0
    for j in range(ease.size):
        slope, bend = -_EASE_PULL * ease[j], _EASE_PULL
        for a in range(ability.size):
            chance = _probability(ability[a] + ease[j])
            slope += right[a, j] - total[a, j] * chance
            bend += total[a, j] * chance * (1.0 - chance)
        changed[j] += min(max(slope / bend, -1.0), 1.0)
        mean += changed[j] * level[j]
    return changed - mean


@njit(cache=True, nogil=True)
def _error_shares(crowd: Any) -> Any:
    """Shares of the given levels among the wrong grades for each level, one wrong grade added."""
    n_levels = len(crowd)
    shares = np.zeros((n_levels, n_levels))
    for j in range(n_levels):
        for k in range(n_levels):
            if j != k:
                shares[j, k] = crowd[j, k] + 1.0 / (n_levels - 1)
        shares[j] /= max(shares[j].sum(), 1e-300)
    return shares


@njit(cache=True, nogil=True)
def _keep_grades_in_favour(ease: Any, errors: Any, mean: float) -> None:
    """Raise the ease of levels where a grade would speak against the level that it names."""
    n_levels = ease.size
    for _ in range(n_levels):
        raised, before = False, ease.copy()
        for k in range(n_levels):
            most = 0.0
            for j in range(n_levels):
                most = max(most, (1.0 - _probability(mean + before[j])) * errors[j, k])
            right = _probability(mean + before[k])
            if right < most:
                ease[k] = _log_odds(most) - mean
                raised = raised or right < most - 1e-12
        if not raised:
            ease[:] = before
            break


@njit(cache=True, nogil=True)
def _find_weight(counts: Any, centre: Any, expected: float, spread: float) -> float:
    """Where the slope is 0: halving finds the neighbourhood, secants within it the digits."""
    low, high = math.log(_MIN_WEIGHT), math.log(_MAX_WEIGHT)
    at_low, at_high = _slope(counts, centre, low, expected, spread), _slope(counts, centre, high, expected, spread)
    if at_low <= 0.0:
        return _MIN_WEIGHT
    if at_high >= 0.0:
        return _MAX_WEIGHT
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2.0
        value = _slope(counts, centre, middle, expected, spread)
        if value > 0.0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    last = middle
    for _ in range(_MOST_SECANTS):
        middle = low - at_low * (high - low) / (at_high - at_low)
        value = _slope(counts, centre, middle, expected, spread)
        if value == 0.0 or abs(middle - last) < _TOL_OF_LOG_WEIGHT:
            break
        # a bound that stays counts half, or it would stay for good
        if value > 0.0:
            low, at_low, at_high = middle, value, at_high if last == high else at_high / 2.0
        else:
            high, at_high, at_low = middle, value, at_low if last == low else at_low / 2.0
        last = middle
    return math.exp(middle)


@njit(cache=True, nogil=True)
def _slope(counts: Any, centre: Any, log_weight: float, expected: float, spread: float) -> float:
    """Slope of the log-likelihood of a weight, with its prior, by its logarithm."""
    weight, slope = math.exp(log_weight), (expected - log_weight) / spread**2
    for row in range(len(counts)):
        total = 0.0
        for k in range(counts.shape[1]):
            total += counts[row, k]
            if counts[row, k] > _MIN_COUNT:
                slope += _count_above(counts[row, k], weight * centre[row, k])
        if total > _MIN_COUNT:
            slope -= _count_above(total, weight)
    return slope


@njit(cache=True, nogil=True)
def _count_above(count: float, prior: float) -> float:
    """How many of expected grades count one level up: of up to one all, of more fewer."""
    if count <= 1.0:
        return count
    return min(count, prior * (_digamma(count + prior) - _digamma(prior)))


@njit(cache=True, nogil=True)
def _digamma(value: float) -> float:
    """Derivative of the log gamma function at a positive number."""
    below = 0.0
    while value < _SERIES_FROM:
        below += 1.0 / value
        value += 1.0
    square = 1.0 / (value * value)
    series = 1 / 240 - square * (1 / 132 - square * 691 / 32760)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * series)))
    return math.log(value) - 0.5 / value - series - below


@njit(cache=True, nogil=True)
def _probability(log_odds: float) -> float:
    """Probability of log odds."""
    return 0.5 + 0.5 * math.tanh(0.5 * log_odds)


@njit(cache=True, nogil=True)
def _log_odds(probability: float) -> float:
    """Log odds of a probability, kept off 0 and 1."""
    inside = min(max(probability, 1e-9), 1.0 - 1e-9)
    return math.log(inside / (1.0 - inside))
