"""Scores from preferences that annotators draw from one distribution, each adhering to it more or less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...errors import ParameterError
from ...protocols import Bools, Floats, Ints
from .annotator_fit import Learner
from .annotator_likelihood import AnnotatedModel
from .annotator_priors import NormalPrior
from .multinomial_likelihood import AdherentModel

_MODELS = ("multinomial", "logistic")
_TIES = ("ignore", "split")


@dataclass(frozen=True, kw_only=True)
class MultinomialPreference:
    r"""Multinomial preference model (MPM): a softmax over all pairs, with an adherence per annotator.

    Every preference of annotator :math:`k` is drawn among all ordered pairs of the judged items of its query,

    .. math:: P_k(i \succ j) = \frac{\exp(\theta_k (s_i - s_j))}{\sum_{a \ne b} \exp(\theta_k (s_a - s_b))},

    where :math:`s` are the scores and :math:`\theta_k` says how closely the annotator adheres to them: 0 is guessing,
    below 0 reversed. This is the multinomial preference model, MPM [Volkovs12]_ [Volkovs14]_. Scores and adherences
    maximise the log-likelihood with normal priors, :math:`\theta_k` around 1 and between -3 and 5.

    When to use
    -----------
    Use the multinomial form where annotators chose themselves which pairs to compare, and ``model="logistic"`` where
    pairs were assigned. For assigned pairs ``crowd_bt`` and ``latent_score`` are the usual choice.

    Parameters
    ----------
    model
        ``"multinomial"``: as above; ``"logistic"``: given the pair, the first item wins with probability
        :math:`1 / (1 + \exp(-\theta_k (s_i - s_j)))`.
    ties
        ``"ignore"``: as if not asked; ``"split"``: half a preference for each side.
    alpha
        Precision of the prior of :math:`\theta`; raise it where annotators answer little.
    ridge
        Pull of the scores towards each other, as precision of a normal prior; raise it where preferences are few.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of a score or an adherence in the last step.
    max_iter
        Most Newton steps to take.

    Notes
    -----
    The papers are taken as others quote and implement them, not from their own text. Taken are the distribution over
    all pairs and the adherence of each annotator. Left out are a confidence of each item, which scales the differences
    of its score and which a handful of preferences per item cannot determine, and counts that grow with the difference
    of two ranks: a preference counts once, or by its weight. Scores and adherences are fitted together, to convergence.

    In the multinomial model it tells something which pairs there are preferences for at all: a score grows with the
    wins less the losses of an item, so that an item is the more extreme the more often it was compared. That fits
    pairs which annotators chose themselves and is wrong where somebody else chose them, some more often. There use
    ``"logistic"``, in which annotators differ in slope: on three of nine public sets (tau, nDCG or accuracy) it is
    better by .03 to .14, on the others the two are within .01 of each other.

    The trace has the objective, priors included, which never falls. A pass of the multinomial model takes as long as
    there are items in the queries of all annotators together; 10,000 items and 1,000 annotators of one query take
    seconds a step. It builds no table of pairs.

    Which side is up, ``trusted=`` (annotators whose adherence varies by a sixth around 1), standard errors, covariances
    and quality, whose parameter ``adherence`` is :math:`\theta`, are as for
    :class:`~crowdrank.models.pairs.crowd_bt.CrowdBT`. An annotator without preferences has adherence 1.

    Examples
    --------
    >>> from itertools import combinations
    >>> order = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> consensus = MultinomialPreference().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["adherence"].round(2).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [0.94, 0.92, 0.86, -0.84])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-10
    model: str = "multinomial"
    ties: str = "ignore"
    alpha: float = 1.0
    ridge: float = 0.5
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100

    def __post_init__(self) -> None:
        for name, known in (("model", _MODELS), ("ties", _TIES)):
            if getattr(self, name) not in known:
                choice = ", ".join(map(repr, known))
                raise ParameterError(f"{name}={getattr(self, name)!r} is not known; use one of {choice}")
        for name in ("alpha", "ridge"):
            if not getattr(self, name) > 0:
                raise ParameterError(
                    f"{name}={getattr(self, name)} must be above 0; use a small one such as 1e-6 for none"
                )

    def fit(self, preferences: Preferences, *, start: Consensus | None = None, trusted: Any | None = None) -> Consensus:
        """Return scores and adherences; warns of items and groups that only the ridge keeps finite.

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
        return Learner(
            self,
            "multinomial_preference",
            "adherence",
            self._model,
            _same,
            _same,
            self.per_query,
            self.tol,
            self.max_iter,
        )

    def _model(self, preferences: Preferences, code: Ints, sure: Bools) -> AdherentModel | AnnotatedModel:
        """The model of preferences that depend on the parameters with these numbers."""
        kind = AdherentModel if self.model == "multinomial" else AnnotatedModel
        return kind.of(preferences, code, NormalPrior(self.alpha, sure), ties=self.ties, ridge=self.ridge)


def _same(adherence: Floats) -> Floats:
    """The parameter as it is."""
    return adherence
