"""Scores of many texts from preferences between few: a Gaussian process over their features, by Laplace's method."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.judgments import Preferences
from ..protocols import Counts, Floats

_SHARES = (0.1, 0.5, 0.9)
_SPREADS = (1.0, 3.0, 9.0)
"""Share of the variance of scores that features may explain, and their variance, in squared log-odds."""

_LEAST_PROBABILITY = 1e-3
"""Variances and shares that are less probable than this are left out."""

_STEPS = 30
_TOLERANCE = 1e-6


def learn_scores(preferences: Preferences, features: Features) -> Consensus:
    r"""Return scores of all items, those that nobody compared by what their features tell.

    Scores have a normal prior with covariance :math:`\sigma^2 (\lambda X X^\top + (1 - \lambda) I)` for standardised
    features X, the rows of which have length 1, so that no item is less sure than another before it is compared. Of two
    items that differ by d the first wins with a probability in proportion to :math:`e^{d/2}`, the second to
    :math:`e^{-d/2}`, and a tie to :math:`\nu`, which follows from how many there are: where most comparisons are ties,
    those that are not tell the more. The posterior is taken for normal at its mode, and averaged over a small grid of
    variances and shares that features explain by their evidence.
    """
    rows = features.items.codes(None, preferences.items.ids)
    matrix = np.where(np.isfinite(features.matrix), features.matrix, 0.0)[rows]
    deviation = matrix.std(axis=0)
    matrix = (matrix - matrix.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    known = np.unique(np.concatenate([preferences.left, preferences.right]))
    place = np.zeros(preferences.n_items, np.int64)
    place[known] = np.arange(len(known))
    left, right = place[preferences.left], place[preferences.right]
    linear, own = matrix[known] @ matrix[known].T, np.eye(len(known))
    grid = list(product(_SHARES, _SPREADS))
    priors = [spread * (share * linear + (1 - share) * own) for share, spread in grid]
    outcome = preferences.outcome.astype(np.float64)
    fits = [_mode(prior, left, right, outcome) for prior in priors]
    evidence = np.array([fit[0] for fit in fits])
    probability = np.exp(evidence - evidence.max())
    probability /= probability.sum()
    scores, squares = np.zeros(preferences.n_items), np.zeros(preferences.n_items)
    for weight, (share, spread), prior, (_, pull, curvature) in zip(probability, grid, priors, fits, strict=True):
        if weight < _LEAST_PROBABILITY:
            continue
        # covariance of each item with those that were compared
        cross = spread * share * (matrix @ matrix[known].T)
        cross[known] = prior
        # (K + W^-1)^-1 = W - W (K^-1 + W)^-1 W, for the curvature W, which is singular
        inner = np.linalg.solve(own + curvature @ prior, curvature)
        before = spread * (share * (matrix**2).sum(axis=1) + (1 - share))
        mean = cross @ pull
        scores += weight * mean
        squares += weight * (before - np.einsum("ij,ij->i", cross @ inner, cross) + mean**2)
    return Consensus(
        items=preferences.items, scores=scores - scores.mean(), method="latent_score",
        std_error=np.sqrt(np.maximum(squares - scores**2, 1e-12)),
        estimates={"share_of_features": float(probability @ [share for share, _ in grid])},
    )  # fmt: skip


def _mode(prior: Floats, left: Counts, right: Counts, outcome: Floats) -> tuple[float, Floats, Floats]:
    """Log evidence, gradient of the log-likelihood and its curvature at the mode of the posterior, by Newton steps."""
    n, n_ties = len(prior), int((outcome == 0).sum())
    scores, pull, curvature = np.zeros(n), np.zeros(n), np.zeros((n, n))
    tie = 2 * n_ties / max(len(outcome) - n_ties, 1)
    for _ in range(_STEPS):
        half = np.clip(scores[left] - scores[right], -500, 500) / 2
        cosh, sinh = np.cosh(half), np.sinh(half)
        whole = 2 * cosh + tie
        slope, weight = 0.5 * outcome - sinh / whole, (0.5 * cosh * whole - sinh**2) / whole**2
        curvature = np.zeros((n, n))
        for one, other, sign in ((left, left, 1), (right, right, 1), (left, right, -1), (right, left, -1)):
            np.add.at(curvature, (one, other), sign * weight)
        gradient = np.bincount(left, slope, n) - np.bincount(right, slope, n)
        target = curvature @ scores + gradient
        # the mode is the prior times a pull, which at the end is the gradient itself
        pull = target - curvature @ np.linalg.solve(np.eye(n) + prior @ curvature, prior @ target)
        change = prior @ pull - scores
        scores = scores + change
        if n_ties:
            tie = n_ties / float((1 / whole).sum())
        if np.abs(change).max() < _TOLERANCE:
            break
    half = np.clip(scores[left] - scores[right], -500, 500) / 2
    likelihood = float((outcome * half - np.log(2 * np.cosh(half) + tie)).sum()) + n_ties * np.log(max(tie, 1e-12))
    factor, lower = cho_factor(prior + 1e-9 * np.trace(prior) / n * np.eye(n))
    fit = -0.5 * float(scores @ cho_solve((factor, lower), scores))
    size = -0.5 * float(np.linalg.slogdet(np.eye(n) + prior @ curvature)[1])
    return likelihood + fit + size, pull, curvature
