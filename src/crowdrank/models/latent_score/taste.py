"""Tastes of annotators who judge much and are not trusted: what they have in common against those who are.

Annotator j of many judgments sees scores ``alpha s + c + d_j``, where ``s`` are the scores that trusted annotators see,
``c`` is a taste that all such annotators share and ``d_j`` their own, normal with unknown standard deviations. Without
tastes a thousand judgments of one program would pass for a thousand independent ones. Each such annotator's judgments
become scores with a covariance first; then the scores are integrated over a grid of alpha and the standard deviations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...covariate_design import CovariateDesign
from ...data.judgments import Preferences
from ...protocols import Bools, Counts, Floats, Ints
from .layout import preference_levels
from .rounds import ScoreFit

MIN_JUDGMENTS_PER_ITEM = 10.0
"""Judgments per item from which on an annotator who is not trusted has a taste."""

MAX_ITEMS = 700
"""Items up to which tastes are learned."""

_MANY_ITEMS = 100
_GRID = {
    "alpha": np.linspace(0.0, 2.0, 9), "own": np.array([0.0, 0.15, 0.3, 0.5, 0.8, 1.2]),
    "common": np.array([0.0, 0.15, 0.3, 0.5, 0.8, 1.2]), "score": np.array([0.5, 0.67, 0.9, 1.2, 1.6]),
}  # fmt: skip
_COARSE_GRID = {
    "alpha": np.linspace(0.0, 2.0, 6), "own": np.array([0.0, 0.3, 0.6, 1.0]),
    "common": np.array([0.0, 0.4, 0.8]), "score": np.array([0.6, 1.0, 1.6]),
}  # fmt: skip
_RIDGE = 1e-2
_FREE_LEVEL = 100.0
"""Variance of the level of an annotator's scores, which says nothing."""

_MAX_RATIO = 2.0
_MAX_NEWTON_STEPS = 30
_MAX_STEP = 2.0
_TOLERANCE = 1e-6
_MIN_WEIGHT = 1e-5
_CELLS_AT_ONCE = 4_000_000


class TasteFit(NamedTuple):
    """Scores and their covariance, both centred, and the posterior means of alpha and the standard deviations."""

    scores: Floats
    covariance: Floats
    estimates: dict[str, float]


class _Seen(NamedTuple):
    """Scores that each annotator of many judgments sees, (n, m), and the inverses of their covariances at a grid."""

    scores: Floats
    covariance: Floats


class _OtherPreferences(NamedTuple):
    """Preferences of the others: slope and offset of the predictor, and the cuts below and above the level."""

    first: Counts
    second: Counts
    slope: Floats
    offset: Floats
    below: Floats
    above: Floats
    weight: Floats


class _Prior(NamedTuple):
    """What those with a taste say of the scores at points of the grid: a normal of this precision and pull."""

    precision: Floats
    pull: Floats
    constant: Floats


def with_tastes(judgments: Preferences, trusted: Bools) -> Bools:
    """Return which annotators have tastes: not trusted, and with ten or more judgments per item."""
    n = judgments.n_annotators
    pairs = np.concatenate([judgments.left, judgments.right]).astype(np.int64)
    both = np.unique(np.tile(judgments.annotator.astype(np.int64), 2) * judgments.n_items + pairs)
    n_items = np.bincount(both // max(judgments.n_items, 1), minlength=n)
    number = np.bincount(judgments.annotator, judgments.row_weight, n)
    heavy: Bools = (number >= MIN_JUDGMENTS_PER_ITEM * np.maximum(n_items, 2)) & ~trusted
    return heavy


def fit_tastes(
    judgments: Preferences, heavy: Bools, people: Preferences, fit: ScoreFit, design: CovariateDesign | None
) -> TasteFit:
    """Return the scores of trusted annotators' judgments and those with tastes together.

    ``people`` are the judgments of the others, and ``fit`` is the fit to them, whose annotators are taken as they are.
    """
    seen = _seen_scores(judgments, heavy, design)
    preferences = _other_preferences(people, fit, None if design is None else design.of_part(people))
    grid = _GRID if judgments.n_items <= _MANY_ITEMS else _COARSE_GRID
    common = grid["common"] if len(seen.scores) > 1 else np.zeros(1)
    points = np.stack(np.meshgrid(grid["own"], common, grid["alpha"], grid["score"], indexing="ij"), -1).reshape(-1, 4)
    at_once = max(1, _CELLS_AT_ONCE // max(judgments.n_items**2, len(preferences.first)))
    parts = np.array_split(points, -(-len(points) // at_once))
    scores, evidence = [], []
    for part in parts:
        prior = _prior(seen, part)
        best, value = _laplace(preferences, prior)[:2]
        scores.append(best)
        evidence.append(value + _log_prior(part, len(seen.scores) > 1))
    whole, log_weight = np.concatenate(scores), np.concatenate(evidence)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return _mixture(preferences, seen, points, whole, weight)


def _mixture(preferences: _OtherPreferences, seen: _Seen, points: Floats, scores: Floats, weight: Floats) -> TasteFit:
    """Mean and covariance over the grid."""
    mean = weight @ scores
    covariance = np.zeros((len(mean), len(mean)))
    used = np.flatnonzero(weight > _MIN_WEIGHT)
    for place in used:
        curvature = _slopes(preferences, scores[place : place + 1])[2][0] + _prior(seen, points[[place]]).precision[0]
        off = scores[place] - mean
        covariance += weight[place] * (np.linalg.inv(curvature) + off[:, None] * off)
    covariance /= weight[used].sum()
    covariance -= covariance.mean(axis=0, keepdims=True)
    covariance -= covariance.mean(axis=1, keepdims=True)
    own, common, alpha, score = (float(value) for value in weight @ points)
    parameters = {"alpha": alpha, "own_sd": own, "common_sd": common, "score_sd": score}
    return TasteFit(mean - mean.mean(), covariance, parameters)


# Annotators with tastes


def _seen_scores(judgments: Preferences, heavy: Bools, design: CovariateDesign | None) -> _Seen:
    """Bradley-Terry scores of each annotator alone, all brought to about the same spread."""
    fits = [_own_scores(judgments, judgments.annotator == a, design) for a in np.flatnonzero(heavy)]
    spread = np.array([max(float(s @ s - np.trace(v)) / len(s), 0.05 * float(s @ s) / len(s)) for s, v in fits]) ** 0.5
    spread = np.maximum(spread, 1e-6)
    ratio = np.clip(spread / np.exp(np.log(spread).mean()), 1.0 / _MAX_RATIO, _MAX_RATIO)
    scores = np.stack([s for s, _ in fits]) / ratio[:, None]
    level = np.full(fits[0][1].shape, _FREE_LEVEL / len(fits[0][0]))
    return _Seen(scores, np.stack([v for _, v in fits]) / ratio[:, None, None] ** 2 + level)


def _own_scores(judgments: Preferences, rows: Bools, design: CovariateDesign | None) -> tuple[Floats, Floats]:
    """Scores of one annotator's preferences at equal covariates, and their covariance; ties are half a win of each."""
    left, right, n = judgments.left[rows], judgments.right[rows], judgments.n_items
    weight, won = judgments.row_weight[rows], 0.5 * (1.0 + judgments.outcome[rows])
    values = judgments.shown[rows].astype(np.float64)[:, None]
    values = values if design is None else np.column_stack([values, design.values[rows]])
    k = values.shape[1]
    point, change = np.zeros(n + k), np.inf
    curvature = np.eye(n + k)
    for _ in range(_MAX_NEWTON_STEPS):
        eta = point[left] - point[right] + values @ point[n:]
        expected = 1.0 / (1.0 + np.exp(-np.clip(eta, -50.0, 50.0)))
        rest, bend = weight * (won - expected), weight * expected * (1.0 - expected)
        gradient = np.concatenate([np.bincount(left, rest, n) - np.bincount(right, rest, n), rest @ values])
        gradient -= _RIDGE * point
        curvature = _curvature(left, right, bend, values, n)
        step = np.linalg.solve(curvature, gradient)
        change = float(np.abs(step).max())
        point = point + step * min(1.0, _MAX_STEP / max(change, 1e-300))
        if change < _TOLERANCE:
            break
    covariance = np.asarray(np.linalg.inv(curvature)[:n, :n], np.float64)
    covariance = covariance - covariance.mean(axis=0, keepdims=True)
    scores = point[:n] - point[:n].mean()
    return scores, covariance - covariance.mean(axis=1, keepdims=True)


def _curvature(left: Ints, right: Ints, bend: Floats, values: Floats, n: int) -> Floats:
    """Curvature in scores, side and coefficients."""
    k = values.shape[1]
    whole = np.zeros((n + k, n + k))
    pair = np.bincount(left.astype(np.int64) * n + right, bend, n * n).reshape(n, n)
    pair = pair + pair.T
    whole[:n, :n] = np.diag(pair.sum(axis=1)) - pair
    bent = bend[:, None] * values
    for c in range(k):
        whole[:n, n + c] = np.bincount(left, bent[:, c], n) - np.bincount(right, bent[:, c], n)
    whole[n:, :n] = whole[:n, n:].T
    whole[n:, n:] = bent.T @ values
    whole.flat[:: n + k + 1] += _RIDGE
    return whole


def _prior(seen: _Seen, points: Floats) -> _Prior:
    """What those with tastes, and the prior of scores, say at points of own and common taste, alpha and spread.

    The scores they see are normal around ``alpha s``, their covariances are block-diagonal but for the common taste.
    """
    m = seen.scores.shape[1]
    precision, pull = np.empty((len(points), m, m)), np.empty((len(points), m))
    constant, former = np.empty(len(points)), (np.nan, np.nan)
    summed = np.zeros((m, m)), np.zeros(m), 0.0
    for place, (own, common, alpha, spread) in enumerate(points):
        if (own, common) != former:
            summed, former = _sums(seen, float(own), float(common)), (own, common)
        inner, linear, rest = summed
        precision[place] = alpha**2 * inner + np.eye(m) / spread**2
        pull[place] = alpha * linear
        constant[place] = -0.5 * rest - m * np.log(spread)
    return _Prior(precision, pull, constant)


def _sums(seen: _Seen, own: float, common: float) -> tuple[Floats, Floats, float]:
    """Precision and pull on what all see, and twice the negative log-density at 0, where tastes are this large."""
    m = seen.scores.shape[1]
    covariance = seen.covariance + own**2 * np.eye(m)
    inverse = np.linalg.inv(covariance)
    total, pulled = inverse.sum(axis=0), np.einsum("jab,jb->a", inverse, seen.scores)
    rest = float(np.einsum("ja,jab,jb->", seen.scores, inverse, seen.scores))
    rest += float(np.linalg.slogdet(covariance)[1].sum())
    if common == 0.0:
        return total, pulled, rest
    shared = np.linalg.inv(np.eye(m) / common**2 + total)
    rest += float(np.linalg.slogdet(np.eye(m) + common**2 * total)[1]) - float(pulled @ shared @ pulled)
    return total - total @ shared @ total, pulled - total @ shared @ pulled, rest


def _log_prior(points: Floats, several: bool) -> Floats:
    """Log-density of the priors: alpha around 1, half-normal tastes, log-normal spread of scores."""
    own, common, alpha, spread = points.T
    value: Floats = -0.5 * ((alpha - 1.0) / 0.5) ** 2 - 0.5 * own**2 - 0.5 * (np.log(spread) / 0.5) ** 2
    return value - 0.5 * common**2 if several else value


# The others


def _other_preferences(people: Preferences, fit: ScoreFit, design: CovariateDesign | None) -> _OtherPreferences:
    """Preferences of the other annotators, as these were estimated."""
    state = fit.state
    habits, who = state.kinds[0], people.annotator
    level = preference_levels(people)[0]
    cuts = habits.centre + np.exp(habits.spread[who])[:, None] * habits.cuts
    bounds = np.column_stack([np.full(len(level), -np.inf), cuts, np.full(len(level), np.inf)])
    row = np.arange(len(level))
    offset = people.shown * habits.bias[who]
    if design is not None and habits.control is not None:
        offset = offset + (design.values * habits.control.own[who]).sum(axis=1)
    return _OtherPreferences(
        people.left.astype(np.int64), people.right.astype(np.int64), state.alpha[who], offset,
        bounds[row, level], bounds[row, level + 1], np.array(people.row_weight, np.float64),
    )  # fmt: skip


def _slopes(preferences: _OtherPreferences, scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood, gradient and curvature in the scores at points, (n, m)."""
    from scipy.special import expit

    n, m = scores.shape
    eta = preferences.slope * (scores[:, preferences.first] - scores[:, preferences.second]) + preferences.offset
    upper, lower = expit(preferences.above - eta), expit(preferences.below - eta)
    value = np.log(np.maximum(upper - lower, 1e-12)) @ preferences.weight
    slope = preferences.weight * preferences.slope * (upper + lower - 1.0)
    bend = preferences.weight * preferences.slope**2 * (upper * (1.0 - upper) + lower * (1.0 - lower))
    gradient, curvature = np.zeros((n, m)), np.zeros((n, m * m))
    place = preferences.first * m + preferences.second
    for at in range(n):
        gradient[at] = np.bincount(preferences.first, slope[at], m) - np.bincount(preferences.second, slope[at], m)
        curvature[at] = np.bincount(place, bend[at], m * m)
    pair = curvature.reshape(n, m, m)
    pair = -(pair + pair.transpose(0, 2, 1))
    pair[:, np.arange(m), np.arange(m)] = -pair.sum(axis=2)
    return value, gradient, pair


def _laplace(preferences: _OtherPreferences, prior: _Prior) -> tuple[Floats, Floats]:
    """The scores where preferences and prior are most likely at each point, and the logarithm of the evidence."""
    scores = np.asarray(np.linalg.solve(prior.precision, prior.pull[:, :, None])[:, :, 0], np.float64)
    for _ in range(_MAX_NEWTON_STEPS):
        _, gradient, curvature = _slopes(preferences, scores)
        gradient += prior.pull - np.einsum("gab,gb->ga", prior.precision, scores)
        step = np.asarray(np.linalg.solve(curvature + prior.precision, gradient[:, :, None])[:, :, 0], np.float64)
        longest = np.abs(step).max(axis=1, keepdims=True)
        scores = scores + step * np.minimum(1.0, _MAX_STEP / np.maximum(longest, 1e-300))
        if float(longest.max()) < 1e-4:
            break
    value, _, curvature = _slopes(preferences, scores)
    value = value + prior.constant + (prior.pull * scores).sum(axis=1)
    value -= 0.5 * np.einsum("ga,gab,gb->g", scores, prior.precision, scores)
    value -= 0.5 * np.linalg.slogdet(curvature + prior.precision)[1]
    return scores, np.asarray(value, np.float64)
