"""Preferences that were held out, against scores of their items."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize_scalar

from crowdrank.data.features import Features
from crowdrank.data.judgments import Preferences
from crowdrank.joint import LatentScore
from crowdrank.protocols import Bools, Floats

_MAX_SCALE = 50.0


def fit_scores(train: Preferences, features: Features | None) -> Floats:
    """Return scores of all items by latent_score, with or without features; 0 where nothing is known of an item."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus = LatentScore().fit(train, features).consensus
    assert consensus is not None
    codes = consensus.items.codes_of(train.items, "scores", "preferences")
    scores: Floats = np.asarray(consensus.scores, np.float64)[codes]
    return scores


def gaps(scores: Floats, votes: Preferences, chosen: Bools) -> Floats:
    """Return how much better the preferred item is, of the chosen votes that are decided."""
    rows = np.flatnonzero(chosen & (votes.outcome != 0))
    lead: Floats = (scores[votes.left[rows]] - scores[votes.right[rows]]) * votes.outcome[rows]
    return lead


def accuracy(gap: Floats) -> float:
    """Return the share of votes that scores agree with; equal scores agree with half."""
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))


def log_likelihood(gap: Floats) -> float:
    """Return the mean log-likelihood of votes, the scale of each half fitted to the other."""
    halves = gap[::2], gap[1::2]

    def mean(scale: float, half: Floats) -> float:
        return float(-np.logaddexp(0.0, -scale * half).mean())

    sums = []
    for own, other in (halves, halves[::-1]):
        unit = max(float(other.std()), 1e-12)
        best = minimize_scalar(lambda scale, other=other, unit=unit: -mean(scale / unit, other), bounds=(0, _MAX_SCALE))
        sums.append(mean(float(best.x) / unit, own) * len(own))
    return float(sum(sums) / len(gap))
