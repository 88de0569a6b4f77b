"""Crowd-BT: the Bradley-Terry model with one reliability per annotator, from right over guessing to reversed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences
from ...errors import ParameterError
from ...protocols import Bools, Floats, Ints
from ...quality import TRUSTED
from ...standard_errors import ScoreGradients
from ...wording import expect_above, one_of, option
from .annotator_fit import AnnotatorMethod
from .annotator_model import PairwiseModel

_TIES = ("split", "ignore", "davidson")
_PRIOR_COUNTS = (8.0, 2.0)
_MIN_DISTANCE_OF_ETA = 1e-9


@dataclass(frozen=True, kw_only=True)
class CrowdBT(AnnotatorMethod):
    r"""Crowd-BT: Bradley-Terry with a probability per annotator of reporting what they see.

    Annotator :math:`k` puts item :math:`i` above item :math:`j` of the same query with probability

    .. math:: P_k(i \succ j) = \eta_k \, \sigma(s_i - s_j) + (1 - \eta_k) \, \sigma(s_j - s_i),
              \qquad \sigma(x) = \frac{1}{1 + e^{-x}},

    where :math:`s` are the scores and :math:`\eta_k` the annotator's probability of reporting what they see: 1 is
    perfect, 1/2 is guessing, which gives the preferences no weight, and 0 is reversed, which reverses them [Chen13]_.
    Scores and annotators maximise the log-likelihood with a beta prior on :math:`\eta` and a normal one on :math:`s`.

    With ``ties="davidson"`` a tie has the strength :math:`\nu e^{(s_i + s_j)/2}` beside the two items' own
    [Davidson70]_. Its probability is the same from both sides, so :math:`\eta` does not enter it: ties inform the
    scores only, decided preferences scores and annotators.

    When to use
    -----------
    Use it for preferences by a crowd with some guessers or reversed annotators, each with ten preferences or more. With
    fewer the prior decides; use ``bradley_terry`` there. ``latent_score`` also learns side bias, ties and
    lapses.

    Parameters
    ----------
    ties
        ``"split"``: half a win for each side; ``"ignore"``: as if not asked; ``"davidson"``: a third outcome that says
        the two are close.
    prior
        Right and wrong preferences that each annotator starts with, (8, 2) by default: the parameters of the beta prior
        of :math:`\eta`. Raise both where annotators gave few preferences.
    ridge
        Pull of the scores towards each other, as precision of a normal prior; raise it where preferences are few.
    per_query
        Whether each annotator has a separate :math:`\eta` in each query.
    tol
        Largest change of a score, or of the log odds of :math:`\eta`, in the last step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps; raise it where a warning says that the fit did not converge.

    Notes
    -----
    Scores and annotators are updated together by Newton steps on the observed information; from 400,000 preferences on,
    the start is a fit of every fourth pair. The trace has the objective, priors included, which never falls.
    :math:`\eta` is the mode of its posterior on the scale of log odds, so annotators without preferences have the mean
    of the prior.

    The default ridge was chosen on seven public sets of preferences: among 0.1, 0.25, 0.5, 1 and 2 it predicts
    preferences held out best on three, and on the others its mean log-likelihood is below the best by .0004 to .0034.

    Reversed scores with every :math:`\eta` replaced by :math:`1 - \eta` explain preferences equally well, and only the
    prior says that most annotators are not reversed. The fit starts on the majority's side; at its end, items and
    annotators connected by preferences are reversed where the prior favours that, and so are groups of items never
    compared with others if the annotators, as estimated elsewhere, contradict them. A crowd of which most are reversed
    looks like a good crowd: name some annotators known to be good with ``trusted=``. They start with 95 right and 5
    wrong preferences, and they alone decide which way round the others are. Where annotators contradict each other
    evenly, scores stay between the sides, and standard errors take the annotators as known.

    Standard errors and covariances are those of scores centred in their query, from the observed information, priors
    included, with :math:`\eta` and :math:`\nu` free to adapt; where there are several queries, with the scores of the
    others as they are. They are exact for queries of up to 700 items (1,500 where most pairs have met). Larger ones
    have no covariance, and their standard errors are estimated from 32 random probes of the inverse, which leaves one
    or two per cent to chance [Bekas07]_. Memory grows with the number of preferences.

    Quality is held-out agreement, as for every method; :math:`\eta` is its parameter ``eta``, with ``per_query`` its
    mean over an annotator's preferences. Preferences without annotators count as given by one.

    Examples
    --------
    >>> from itertools import combinations
    >>> order = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> consensus = CrowdBT().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["eta"].round(2).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [0.9, 0.89, 0.89, 0.37])
    """

    parameter: ClassVar[str] = "eta"
    ties: str = "split"
    prior: tuple[float, float] | None = None
    ridge: float = 0.25
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100

    def __post_init__(self) -> None:
        one_of(self.ties, _TIES, "ties")
        if self.prior is not None and not (np.shape(self.prior) == (2,) and self.prior[0] > self.prior[1] > 0):
            raise ParameterError(
                f"prior={self.prior} must be more right than wrong preferences, both above 0, such as (8, 2)"
            )
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-6 for none")

    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> PairwiseModel:
        """The model of preferences, given the number of the parameter that each depends on."""
        return PairwiseModel.of(preferences, code, self.prior_of(trusted), ties=self.ties, ridge=self.ridge)

    def prior_of(self, trusted: Bools) -> BetaPrior:
        """Return the prior of the log odds."""
        return BetaPrior(self.prior or _PRIOR_COUNTS, trusted)

    def _to_parameter(self, own: Floats) -> Floats:
        """Probabilities from their log odds."""
        return 0.5 + 0.5 * np.tanh(0.5 * own)

    def _from_parameter(self, parameter: Floats) -> Floats:
        """Log odds of probabilities."""
        within = np.clip(parameter, _MIN_DISTANCE_OF_ETA, 1.0 - _MIN_DISTANCE_OF_ETA)
        return np.log(within / (1.0 - within))

    def score_gradients(self, preferences: Preferences, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the preferences in the scores, at the consensus."""
        if self.per_query or self.ties == "davidson":
            setting = "per_query=True" if self.per_query else "ties='davidson'"
            raise ParameterError(
                f"crowd_bt has no cluster-robust errors with {setting}; leave that out, or use "
                f"{option('bootstrap', 200)} with {option('resample', 'annotator')}"
            )
        gap = consensus.scores[preferences.left] - consensus.scores[preferences.right]
        eta = np.full(len(gap), _PRIOR_COUNTS[0] / sum(_PRIOR_COUNTS))
        if preferences.n_annotators and consensus.learned is not None:
            eta = consensus.learned[1]["eta"][preferences.annotator]
        ahead = 0.5 + 0.5 * np.tanh(0.5 * gap)
        left = eta * ahead + (1.0 - eta) * (1.0 - ahead)
        bend = (2.0 * eta - 1.0) * ahead * (1.0 - ahead)
        # a split tie is half a win for each side
        win = 0.5 * (1.0 + preferences.outcome)
        slope = preferences.row_weight * bend * (win / left - (1.0 - win) / (1.0 - left))
        slope = np.where(preferences.outcome == 0, 0.0, slope) if self.ties == "ignore" else slope
        row = np.arange(len(preferences))
        both = np.concatenate([preferences.left, preferences.right])
        return ScoreGradients(np.tile(row, 2), both, np.concatenate([slope, -slope]), self.ridge)


@dataclass(frozen=True, eq=False)
class BetaPrior:
    r"""Probabilities :math:`\eta` with beta priors; the parameters are their log odds.

    The density is that of the log odds, so the mode without preferences is the mean of the prior.

    Parameters
    ----------
    counts
        The two parameters of the beta distribution.
    trusted
        Who is known to be good, (n_annotators,), and has the prior of the trusted.
    """

    model: ClassVar[str] = "mixture"
    low: ClassVar[float] = -30.0
    high: ClassVar[float] = 30.0
    counts: tuple[float, float]
    trusted: Bools

    @cached_property
    def alpha(self) -> Floats:
        """First parameter of each annotator's prior."""
        return np.where(self.trusted, TRUSTED[0], self.counts[0])

    @cached_property
    def beta(self) -> Floats:
        """Second parameter of each annotator's prior."""
        return np.where(self.trusted, TRUSTED[1], self.counts[1])

    @property
    def sign_cost(self) -> Floats:
        """What the log prior loses for each unit of log odds whose sign is reversed."""
        return self.alpha - self.beta

    def default(self) -> Floats:
        """Return the log odds of the prior's mean."""
        return np.asarray(np.log(self.counts[0] / self.counts[1]))

    def transform(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return 2 eta - 1 and its derivatives."""
        value = np.tanh(0.5 * own)
        slope = 0.5 * (1.0 - value**2)
        return value, slope, -value * slope

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        share = 0.5 + 0.5 * np.tanh(0.5 * own)
        logs = self.alpha * np.logaddexp(0.0, -own) + self.beta * np.logaddexp(0.0, own)
        strength = self.alpha + self.beta
        return -float(logs.sum()), self.alpha - strength * share, strength * share * (1.0 - share)

    def without_trusted(self) -> BetaPrior:
        """Return the prior with nobody known to be good."""
        return BetaPrior(self.counts, np.zeros_like(self.trusted))

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the mean surplus, and the reciprocal of its variance."""
        strength = self.alpha + self.beta
        surplus = self.sign_cost / strength
        return surplus, (strength + 1.0) / np.maximum(1.0 - surplus**2, 1e-6)

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return log odds."""
        return 2.0 * np.arctanh(surplus)
