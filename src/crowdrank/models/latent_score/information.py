"""What one more judgment would tell: information about a difference of scores, or a score, that an answer has.

Here is the exact form, in nats: the expected reduction of entropy of the answer, averaged over where the scores may be.
The quick one, ``log(1 + alpha^2 v P (1 - P))`` with the variance ``v`` of the difference and the probability ``P`` that
this annotator prefers the left item, is in :mod:`crowdrank.schemes.kernels.choosing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.consensus import Consensus
from ...errors import ParameterError
from ...protocols import Floats, Ints

_POINTS = 15
_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Answerers:
    """How annotators answer one kind, as a fitted consensus tells: arrays are (n_annotators,) unless said otherwise.

    Parameters
    ----------
    alpha, alpha_sd, bias, spread, lapse
        Discrimination, with the kind's own scale in it, and its standard deviation, bias, spread (as a factor) and
        probability of a lapse.
    favourites
        Answers without looking, (n_annotators, K), or ``None``.
    centre, cuts
        Cuts between the levels are at ``centre + spread (cuts - centre)``, (K-1,).
    """

    alpha: Floats
    alpha_sd: Floats
    bias: Floats
    spread: Floats
    lapse: Floats
    favourites: Floats | None
    centre: float
    cuts: Floats

    @classmethod
    def of(cls, consensus: Consensus, kind: str = "preference") -> Answerers:
        """Return how the annotators of a consensus by ``latent_score`` answer a kind.

        The last entry of every array is somebody not seen before: the crowd's mean.
        """
        learned = consensus.learned
        if learned is None or "alpha" not in learned[1]:
            raise ParameterError(
                f"a consensus of {consensus.method} knows no discrimination of annotators; use latent_score"
            )
        found, estimates = learned[1], consensus.estimates
        scale = float(estimates.get(f"scale_{kind}", 1.0))
        n = len(found["alpha"])

        def habit(name: str, usual: float, crowd: str | None = None) -> Floats:
            own = found.get(f"{name}_{kind}", found.get(name, np.full(n, usual)))
            return np.append(own, _of_crowd(estimates, crowd, kind, usual))

        answers = found.get(f"lapse_answers_{kind}", found.get("lapse_answers"))
        favourites = None if answers is None else np.vstack([answers, np.mean(answers, axis=0)])
        cuts = estimates.get(f"cuts_{kind}", estimates.get("cuts"))
        return cls(
            alpha=scale * np.append(found["alpha"], float(np.mean(found["alpha"])) if n else 1.0),
            alpha_sd=scale * np.append(found["alpha_sd"], float(estimates.get("alpha_sd", 0.5))),
            bias=habit("bias", 0.0, "mean_bias"), spread=habit("spread", 1.0), lapse=habit("lapse", 0.0, "mean_lapse"),
            favourites=favourites, centre=_of_crowd(estimates, "centre", kind, 0.0),
            cuts=np.array([0.0] if cuts is None else cuts, np.float64),
        )  # fmt: skip

    def chances(self, annotator: Ints, value: Floats) -> Floats:
        """Return the probability of each level for annotators who see scores or differences, (..., K)."""
        a, seen = np.asarray(annotator), np.asarray(value, np.float64)
        eta = self.alpha[a] * seen + self.bias[a]
        h = self.centre + self.spread[a][..., None] * (self.cuts - self.centre)
        below = 0.5 + 0.5 * np.tanh(0.5 * (h - eta[..., None]))
        ends = np.concatenate([np.zeros((*below.shape[:-1], 1)), below, np.ones((*below.shape[:-1], 1))], axis=-1)
        chances = np.maximum(np.diff(ends, axis=-1), 0.0)
        if self.favourites is not None:
            lapse = self.lapse[a][..., None]
            chances = (1.0 - lapse) * chances + lapse * self.favourites[a]
        return chances


def _of_crowd(estimates: Any, name: str | None, kind: str, usual: float) -> float:
    """An estimate of the whole crowd, of the kind if there are several."""
    return usual if name is None else float(estimates.get(f"{name}_{kind}", estimates.get(name, usual)))


def pair_spread(consensus: Consensus, left: Ints, right: Ints) -> tuple[Floats, Floats]:
    """Return the difference of the scores of pairs of item codes of one query each, and its variance."""
    if consensus.std_error is None:
        raise ParameterError(f"a consensus of {consensus.method} has no standard errors; use latent_score")
    variance = consensus.std_error[left] ** 2 + consensus.std_error[right] ** 2
    if consensus.covariance is not None:
        query, offsets = consensus.items.query[left], consensus.items.offsets
        for number in np.unique(query):
            block, rows = consensus.covariance[number], np.flatnonzero(query == number)
            if block is not None:
                variance[rows] -= 2.0 * block[left[rows] - offsets[number], right[rows] - offsets[number]]
    return consensus.scores[left] - consensus.scores[right], np.maximum(variance, 0.0)


def expected_information(answerers: Answerers, annotator: Ints, mean: Floats, variance: Floats) -> Floats:
    """Return the expected information of an answer about a score, or a difference, of given mean and variance.

    The entropy of the answer less what of it is left once the score is known, by 15-point quadrature.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    weights = weights / weights.sum()
    whole, within = 0.0, 0.0
    deviation = np.sqrt(variance)
    for point, weight in zip(points, weights, strict=True):
        chances = answerers.chances(annotator, mean + deviation * point)
        whole, within = whole + weight * chances, within + weight * _entropy(chances)
    return np.maximum(_entropy(np.asarray(whole)) - within, 0.0)


def _entropy(chances: Floats) -> Floats:
    """Entropy over the last axis, in nats."""
    entropy: Floats = -(chances * np.log(np.maximum(chances, _LEAST))).sum(axis=-1)
    return entropy
