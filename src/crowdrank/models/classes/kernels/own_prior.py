"""Matrices around annotators' own accuracies: those shrunk so, and the prior's parameters, from expected counts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import bind, views
from ....protocols import Floats

_MIN_WEIGHT, _MAX_WEIGHT = 0.05, 1e4
_MIN_COUNT = 1e-6
_EASE_PULL = 0.5
"""Precision of the log odds by which a level is easier than others."""

_MAX_LOG_ODDS = 9.0
_N_SWEEPS, _N_NEWTON_STEPS = 3, 3
_FIRST_STEP, _STEP_GROWTH, _MOST_SECANTS, _TOL_OF_LOG_WEIGHT = 0.1, 4.0, 50, 1e-9
_SERIES_FROM = 10.0
"""From here on the asymptotic series of the digamma function has all digits."""

_MIN_NUMBER = 1e-300
"""Shares of heavy grades may round to 1, of which the odds are as large as numbers go."""


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
    ability, ease, errors = (np.array(begin[place], np.float64, order="C") for place in (0, 2, 3))
    mean, n_levels, (counts, shares) = float(begin[1]), len(level), views(counts, level / level.sum())

    def count_up() -> tuple[Floats, Floats, Floats]:
        right, total = np.zeros((2, len(ability), n_levels))
        crowd = np.zeros((n_levels, n_levels))
        _count_up(counts, ability, ease, errors, row_weight, right, total, crowd)
        return right, total, crowd

    # kernels that call each other are compiled twice, and those that make arrays or add them up take longer
    for _ in range(_N_SWEEPS):
        right, total, crowd = count_up()
        mean = _raise_abilities(right, total, ability, ease, mean, own_weight, *added)
        _change_ease(right, total, ability, ease, shares)
        # shares of the given levels among the wrong grades for each level, one wrong grade added
        errors[:] = crowd + 1.0 / max(n_levels - 1, 1)
        np.fill_diagonal(errors, 0.0)
        errors /= np.maximum(errors.sum(axis=1, keepdims=True), 1e-300)
        _keep_grades_in_favour(ease, errors, mean, ease.copy())
    right, total, _ = count_up()
    return Accuracies(ability, mean, ease, errors, right.sum(axis=1), total.sum(axis=1))


def likeliest_weight(counts: Floats, centre: Floats, expected: float, spread: float, near: float = 0.0) -> float:
    """Return the weight of a Dirichlet prior around rows that makes counts likeliest, shrunk to the expected one.

    The search begins at a former weight ``near``, where there is one: steps that grow find where the slope of the
    likelihood changes its sign, secants within them the digits.
    """
    n_levels = counts.shape[-1]
    rows, centres = views(counts.reshape(-1, n_levels), centre.reshape(-1, n_levels))
    bounds = math.log(_MIN_WEIGHT), math.log(_MAX_WEIGHT)

    def slope(log_weight: float) -> float:
        return float(_slope(rows, centres, log_weight, math.log(expected), spread))

    high = min(max(math.log(near or expected), bounds[0]), bounds[1])
    at_high = slope(high)
    rises = at_high > 0.0
    low, at_low, step = high, at_high, _FIRST_STEP
    while (at_high > 0.0) == rises:
        if high == bounds[rises]:
            return _MAX_WEIGHT if rises else _MIN_WEIGHT
        low, at_low = high, at_high
        high = min(max(high + (step if rises else -step), bounds[0]), bounds[1])
        at_high, step = slope(high), _STEP_GROWTH * step
    middle = high
    for _ in range(_MOST_SECANTS):
        last, middle = middle, low - at_low * (high - low) / (at_high - at_low)
        value = slope(middle)
        if value == 0.0 or abs(middle - last) < _TOL_OF_LOG_WEIGHT:
            break
        # a bound that stays counts half, or it would stay for good
        if (value > 0.0) == rises:
            low, at_low, at_high = middle, value, at_high if last == high else at_high / 2.0
        else:
            high, at_high, at_low = middle, value, at_low if last == low else at_low / 2.0
    return math.exp(middle)


@njit(cache=True, nogil=True)
def _count_up(counts, ability, ease, errors, row_weight, right, total, crowd):
    """Fill in right grades and all grades that count one level up, by annotator and level, the crowd's by both levels.

    The three are 0.
    """
    for a in range(ability.size):
        for j in range(ease.size):
            chance = _probability(ability[a] + ease[j])
            for k in range(ease.size):
                share = chance if j == k else (1.0 - chance) * errors[j, k]
                number = _count_above(counts[a, j, k], row_weight * share)
                total[a, j] += number
                crowd[j, k] += number
                if j == k:
                    right[a, j] = number


@njit(cache=True, nogil=True)
def _raise_abilities(right, total, ability, ease, mean, own_weight, up, down):
    """Take Newton steps towards each annotator's likeliest log odds; return those of their mean."""
    share = _probability(mean)
    for a in range(ability.size):
        for _ in range(_N_NEWTON_STEPS):
            own = _probability(ability[a])
            slope, bend = own_weight * (share - own), own_weight * own * (1.0 - own)
            for j in range(ease.size):
                chance = _probability(ability[a] + ease[j])
                slope += right[a, j] - total[a, j] * chance
                bend += total[a, j] * chance * (1.0 - chance)
            at = ability[a] + min(max(slope / bend, -1.0), 1.0)
            ability[a] = min(max(at, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
        # what annotators are worth at a level of ordinary ease, as grades of the level above
        everything, chance = 0.0, _probability(ability[a])
        for j in range(ease.size):
            everything += total[a, j]
        up += _count_above(everything * chance, own_weight * share)
        down += _count_above(everything - everything * chance, own_weight * (1.0 - share))
    return _log_odds(up / (up + down))


@njit(cache=True, nogil=True)
def _change_ease(right, total, ability, ease, level):
    """Take a Newton step of the ease of each level, whose mean over items is 0."""
    mean = 0.0
    for j in range(ease.size):
        slope, bend = -_EASE_PULL * ease[j], _EASE_PULL
        for a in range(ability.size):
            chance = _probability(ability[a] + ease[j])
            slope += right[a, j] - total[a, j] * chance
            bend += total[a, j] * chance * (1.0 - chance)
        ease[j] += min(max(slope / bend, -1.0), 1.0)
        mean += ease[j] * level[j]
    for j in range(ease.size):
        ease[j] -= mean


@njit(cache=True, nogil=True)
def _keep_grades_in_favour(ease, errors, mean, before):
    """Raise the ease of levels where a grade would speak against the level that it names; ``before`` is a copy."""
    n_levels = ease.size
    for _ in range(n_levels):
        raised = False
        for k in range(n_levels):
            most = 0.0
            for j in range(n_levels):
                most = max(most, (1.0 - _probability(mean + before[j])) * errors[j, k])
            right = _probability(mean + before[k])
            if right < most:
                ease[k] = _log_odds(most) - mean
                raised = raised or right < most - 1e-12
        for k in range(n_levels):
            if raised:
                before[k] = ease[k]
            else:
                ease[k] = before[k]
        if not raised:
            break


@njit(cache=True, nogil=True)
def _slope(counts, centre, log_weight, expected, spread):
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
def _count_above(count, prior):
    """How many of expected grades count one level up: of up to one all, of more fewer."""
    if count <= 1.0:
        return count
    return min(count, prior * (_digamma(count + prior) - _digamma(prior)))


@njit(cache=True, nogil=True)
def _digamma(value):
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
def _probability(log_odds):
    """Probability of log odds."""
    return 0.5 + 0.5 * math.tanh(0.5 * log_odds)


@njit(cache=True, nogil=True)
def _log_odds(probability):
    """Log odds of a probability, kept off 0 and 1."""
    inside = min(max(probability, 1e-9), 1.0 - 1e-9)
    return math.log(inside / (1.0 - inside))


def shrink_matrices(
    counts: Floats, given: Floats, before: Floats, *, skill_weight: float, matrix_weight: float
) -> tuple[Floats, float]:
    """Return the matrices that follow from expected counts (n_annotators, n_levels, n_levels), and the largest change.

    ``given`` (n_annotators,) is the weight of each annotator's grades: one without any says nothing, and has ones
    throughout. The weights are grades that the mean accuracy is worth in each annotator's own, and the crowd's row in
    each annotator's.
    """
    n_levels = counts.shape[1]
    crowd = np.where(np.eye(n_levels, dtype=bool), 2.0, 1.0 / max(n_levels - 1, 1))
    matrices = np.ones(counts.shape)
    shrink = bind(_shrink, *views(counts, given, before), skill_weight, matrix_weight, crowd, matrices)
    return matrices, float(shrink())


@njit(cache=True, nogil=True)
def _shrink(counts, given, before, skill_weight, matrix_weight, crowd, matrices):
    """Fill in the matrices, which are 1; ``crowd`` has what is added to the crowd's counts."""
    n_annotators, n_levels = matrices.shape[0], matrices.shape[1]
    right, total = 2.0, 3.0
    for a in range(n_annotators):
        total += given[a]
        for j in range(n_levels):
            if given[a] > 0.0:
                right += counts[a, j, j]
                for k in range(n_levels):
                    crowd[j, k] += counts[a, j, k]
    mean, change = right / total, 0.0
    for j in range(n_levels):
        wrong = 0.0
        for k in range(n_levels):
            wrong += crowd[j, k] if k != j else 0.0
        # log odds of being right at this level beside those of the mean, then the shares of the levels where wrong
        crowd[j, j] = math.log(crowd[j, j] / max(wrong, _MIN_NUMBER)) - math.log(mean / max(1.0 - mean, _MIN_NUMBER))
        for k in range(n_levels):
            crowd[j, k] /= wrong if k != j else 1.0
    for a in range(n_annotators):
        own = 0.0
        for j in range(n_levels):
            own += counts[a, j, j]
        own = (own + skill_weight * mean) / (given[a] + skill_weight)
        ability = math.log(own / max(1.0 - own, _MIN_NUMBER))
        for j in range(n_levels):
            # the annotator's log odds, and by how much the level is easier than others
            chance = 1.0 / (1.0 + math.exp(-ability - crowd[j, j]))
            number = matrix_weight
            for k in range(n_levels):
                number += counts[a, j, k]
            for k in range(n_levels):
                centre = chance if j == k else (1.0 - chance) * crowd[j, k]
                if given[a] > 0.0:
                    matrices[a, j, k] = (counts[a, j, k] + matrix_weight * centre) / number
                change = max(change, abs(matrices[a, j, k] - before[a, j, k]))
    return change
