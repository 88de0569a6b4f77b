"""Scores from preferences by the Bradley-Terry model, with annotators who are right, guess, or answer the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...errors import ParameterError
from ...protocols import Bools, Floats, Ints
from .annotator_fit import Learner
from .annotator_likelihood import AnnotatedModel
from .annotator_priors import BetaPrior

_TIES = ("split", "ignore", "davidson")
_PRIOR = (8.0, 2.0)
_NEAREST = 1e-9


@dataclass(frozen=True, kw_only=True)
class CrowdBT:
    r"""Crowd-BT: Bradley-Terry with a probability per annotator of reporting what they see.

    Annotator :math:`k` puts item :math:`i` above item :math:`j` of the same query with probability

    .. math:: P_k(i \succ j) = \eta_k \, \sigma(s_i - s_j) + (1 - \eta_k) \, \sigma(s_j - s_i),
              \qquad \sigma(x) = \frac{1}{1 + e^{-x}},

    where :math:`s` are the scores and :math:`\eta_k` is the annotator's own: 1 for those who say what they see, 1/2 for
    those who guess, who are left aside, and 0 for those who say the reverse, who are turned round [Chen13]_. Scores and
    annotators maximise the log-likelihood with a beta prior of :math:`\eta` and a normal one of :math:`s`.

    With ``ties="davidson"`` a tie has the strength :math:`\nu e^{(s_i + s_j)/2}` beside the two items' own
    [Davidson70]_. It looks the same from both sides, so that :math:`\eta` does not enter: whether there is a tie tells
    of the items alone, and what is decided tells of the annotator as above.

    When to use
    -----------
    Use it for preferences by a crowd with some guessers or reversed annotators, each with ten answers or more. With
    fewer answers each the prior decides; use ``bradley_terry`` there. ``latent_score`` also learns side bias, ties and
    lapses.

    Parameters
    ----------
    ties
        ``"split"``: half a win for each side; ``"ignore"``: as if not asked; ``"davidson"``: a third outcome that says
        the two are close.
    prior
        Right and wrong answers that each annotator begins with, (8, 2) unless said: parameters of the beta prior of
        :math:`\eta`. Raise both where annotators answer little.
    ridge
        Pull of the scores towards each other, as precision of a normal prior; raise it where preferences are few.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of a score, or of the log odds of :math:`\eta`, in the last step.
    max_iter
        Most Newton steps to take.

    Notes
    -----
    Scores and annotators are moved together by Newton steps on the observed information; from 400,000 answers on, the
    climb begins on every fourth pair. The trace has the objective, priors included, which never falls. :math:`\eta` is
    the mode of its posterior on the scale of log odds, so that annotators without answers have the mean of the prior.

    The default ridge was chosen on seven public sets of preferences: among 0.1, 0.25, 0.5, 1 and 2 it predicts
    preferences held out best on three, and on the others its mean log-likelihood is below the best by .0004 to .0034.

    Scores turned round with every :math:`\eta` turned into :math:`1 - \eta` explain preferences equally well, and only
    the prior says that most annotators mean what they say. The climb begins on the majority's side; at its end, items
    and annotators connected by answers are turned round where the prior favours that, and so are groups of items never
    compared with others if the annotators, as known from elsewhere, speak against them. Most of a crowd reversed looks
    like a good crowd: name some annotators known to be good with ``trusted=``. They begin with 95 right answers and 5
    wrong ones, and their answers alone decide which way round the others are. Where annotators contradict each other
    evenly, scores stay between the sides, and standard errors take the annotators as known.

    Standard errors and covariances are those of scores centred in their query, from the observed information, priors
    included, with :math:`\eta` and :math:`\nu` free to adapt; where there are several queries, with the scores of the
    others as they are. They are exact for queries of up to 700 items (1,500 where most pairs have met). Larger ones
    have no covariance, and their standard errors are estimated from 32 random probes of the inverse, which leaves one
    or two per cent to chance [Bekas07]_. Memory grows with the number of preferences.

    Quality is held-out agreement, as for every method; :math:`\eta` is its parameter ``eta``, with ``per_query`` its
    mean over an annotator's answers. Preferences without annotators are all by one.

    Examples
    --------
    >>> from itertools import combinations
    >>> order = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> consensus = CrowdBT().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["eta"].round(2).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [0.9, 0.89, 0.89, 0.37])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-10
    ties: str = "split"
    prior: tuple[float, float] | None = None
    ridge: float = 0.25
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100

    def __post_init__(self) -> None:
        if self.ties not in _TIES:
            raise ParameterError(f"ties={self.ties!r} is not known; use one of {', '.join(map(repr, _TIES))}")
        if self.prior is not None and not (np.shape(self.prior) == (2,) and self.prior[0] > self.prior[1] > 0):
            raise ParameterError(
                f"prior={self.prior} must be more right than wrong answers, both above 0, as (8, 2) is"
            )
        if not self.ridge > 0:
            raise ParameterError(f"ridge={self.ridge} must be above 0; use a small one such as 1e-6 for none")

    def fit(self, preferences: Preferences, *, start: Consensus | None = None, trusted: Any | None = None) -> Consensus:
        """Return scores and annotators; warns of items and groups that only the ridge keeps finite.

        ``start`` is a former consensus of this method to go on from; ``trusted`` has the ids of annotators known to be
        good.
        """
        expect(preferences, self)
        return self._learner().fit(preferences, start, trusted)

    def scores(self, preferences: Preferences) -> Floats:
        """Return the scores alone, for whoever fits many times and needs no standard errors."""
        expect(preferences, self)
        return self._learner().scores(preferences)

    def _learner(self) -> Learner:
        """What fits it."""
        return Learner(self, "crowd_bt", "eta", self._model, _eta, _log_odds, self.per_query, self.tol, self.max_iter)

    def _model(self, preferences: Preferences, code: Ints, sure: Bools) -> AnnotatedModel:
        """The model of preferences that depend on the parameters with these numbers."""
        prior = BetaPrior(self.prior or _PRIOR, sure)
        return AnnotatedModel.of(preferences, code, prior, ties=self.ties, ridge=self.ridge)


def _eta(odds: Floats) -> Floats:
    """Probabilities from their log odds."""
    return 0.5 + 0.5 * np.tanh(0.5 * odds)


def _log_odds(eta: Floats) -> Floats:
    """Log odds of probabilities."""
    within = np.clip(eta, _NEAREST, 1.0 - _NEAREST)
    return np.log(within / (1.0 - within))
