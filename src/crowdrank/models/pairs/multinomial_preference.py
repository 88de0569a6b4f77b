"""Multinomial preference model: a softmax over all pairs of a query, with an adherence per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...data.judgments import Preferences
from ...protocols import Bools, Floats, Ints
from ...wording import expect_above, expect_choices
from .annotator_fit import AnnotatorMethod, AnnotatorPrior
from .annotator_model import PairwiseModel
from .multinomial_likelihood import MultinomialModel

_MODELS = ("multinomial", "logistic")
_TIES = ("ignore", "split")
_DEFAULT_SURPLUS = 0.6
_SURPLUS_STRENGTH = 10.0
_TRUSTED_PRECISION = 40.0


@dataclass(frozen=True, kw_only=True)
class MultinomialPreference(AnnotatorMethod):
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
        Precision of the prior of :math:`\theta`; raise it where annotators gave few preferences.
    ridge
        Pull of the scores towards each other, as precision of a normal prior; raise it where preferences are few.
    per_query
        Whether each annotator has a separate adherence in each query.
    tol
        Largest change of a score or an adherence in the last step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps; raise it where a warning says that the fit did not converge.

    Notes
    -----
    We follow the papers as others quote and implement them, not their own text: the distribution over all pairs and the
    adherence of each annotator. We leave out a confidence per item, which scales the differences of its score and which
    a handful of preferences per item cannot determine, and counts that grow with the difference of two ranks: a
    preference counts once, or by its weight. Scores and adherences are fitted together, to convergence.

    In the multinomial model the choice of pairs is informative: a score grows with the wins less the losses of an item,
    so an item is more extreme the more often it was compared. That fits pairs which annotators chose themselves and is
    wrong where pairs were assigned, some more often than others. There use ``"logistic"``, in which
    annotators differ in slope: on three of nine public sets (tau, nDCG or accuracy) it is better by .03 to .14, on the
    others the two are within .01 of each other.

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

    parameter: ClassVar[str] = "adherence"
    model: str = "multinomial"
    ties: str = "ignore"
    alpha: float = 1.0
    ridge: float = 0.5
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100

    def __post_init__(self) -> None:
        expect_choices(self, model=_MODELS, ties=_TIES)
        expect_above(self, 0, "alpha", "ridge", hint="use a small one such as 1e-6 for none")

    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> MultinomialModel | PairwiseModel:
        """The model of preferences, given the number of the parameter that each depends on."""
        kind = MultinomialModel if self.model == "multinomial" else PairwiseModel
        return kind.of(preferences, code, self.prior_of(trusted), ties=self.ties, ridge=self.ridge)

    def prior_of(self, trusted: Bools) -> NormalPrior:
        """Return the prior of the adherences."""
        return NormalPrior(self.alpha, trusted)

    def accuracies_at(self, gap: float, own: Floats, prior: AnnotatorPrior) -> Floats:
        """Return the probability that annotators order an average pair as the scores do."""
        # of the two ways to order a pair, the odds are those of twice the difference
        return 0.5 + 0.5 * np.tanh(gap * own) if self.model == "multinomial" else super().accuracies_at(gap, own, prior)


@dataclass(frozen=True, eq=False)
class NormalPrior:
    r"""Slopes with normal priors around 1, kept between -3 and 5.

    Parameters
    ----------
    alpha
        Reciprocal of the variance.
    trusted
        Who is known to be good, (n_annotators,): their slopes vary as little, for their size, as the log odds of the
        trusted do.
    """

    model: ClassVar[str] = "slope"
    low: ClassVar[float] = -3.0
    high: ClassVar[float] = 5.0
    alpha: float
    trusted: Bools

    @cached_property
    def precision(self) -> Floats:
        """Precision of each annotator's prior."""
        return np.where(self.trusted, np.maximum(_TRUSTED_PRECISION, self.alpha), self.alpha)

    @property
    def sign_cost(self) -> Floats:
        """What the log prior loses for each unit of slope whose sign is reversed."""
        return 2.0 * self.precision

    def default(self) -> Floats:
        """Return a slope of 1."""
        return np.array(1.0)

    def transform(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the slopes themselves."""
        return own, np.ones(len(own)), np.zeros(len(own))

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        away = own - 1.0
        return -0.5 * float((self.precision * away**2).sum()), -self.precision * away, self.precision

    def without_trusted(self) -> NormalPrior:
        """Return the prior with nobody known to be good."""
        return NormalPrior(self.alpha, np.zeros_like(self.trusted))

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the surplus of a usual annotator."""
        return np.full(len(self.precision), _DEFAULT_SURPLUS), _SURPLUS_STRENGTH * self.precision

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return slopes in proportion."""
        return surplus / _DEFAULT_SURPLUS
