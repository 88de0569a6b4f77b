"""Multinomial preference model: a softmax over all pairs of a query, with an adherence per annotator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...data.judgments import Preferences
from ...errors import ParameterError
from ...pair_counts import PairCounts
from ...protocols import Bools, Counts, Floats, Ints
from ...wording import expect_above, expect_choices
from .crowd_bt import SOLVERS, AnnotatorMethod, AnnotatorPrior, ModelPoint, PairwiseModel

if TYPE_CHECKING:
    from ...kernels.laplacian import Product, Products
    from .kernels.pair_likelihood import Batches

_MODELS = ("multinomial", "logistic")
_TIES = ("ignore", "split")
_COUNTS = ("preferences", "ranks")
_MOST_LOG_CONFIDENCE = 2.0
_DEFAULT_SURPLUS = 0.6
_SURPLUS_STRENGTH = 10.0
_TRUSTED_PRECISION = 40.0
_START_SHRINKAGE = 0.25
"""Among all pairs, scores differ less than rough ones."""


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
        Largest number of steps; raise it where a warning says that the fit did not converge.
    count
        ``"preferences"``: each counts once, or by its weight; ``"ranks"``: by how far apart its two items stand in the
        annotator's own order of the query, half the difference of their wins less losses there. A preference against
        that order counts nothing.
    confidence
        Whether items have a confidence :math:`c`, such that :math:`s_i - s_j` counts
        :math:`(c_i + c_j) / 2` times, for the multinomial model with printed steps.
    solver
        ``"newton"``: to the maximum; ``"printed"``: gradient steps of scores, adherences and logarithms of confidences
        from equal scores at a fixed rate, as [Niu15]_ fits its baseline. They have no standard errors.
    learning_rate
        Length of the printed steps per unit of the gradient.

    Notes
    -----
    We follow the papers as others quote and implement them, not their own text: the distribution over all pairs and the
    adherence of each annotator. By default we leave out a confidence per item, which a handful of preferences per item
    cannot determine, and counts that grow with the difference of two ranks. Scores and adherences are fitted together,
    to convergence. ``mpm-paper`` is the baseline of [Niu15]_: with both, adherences in each query, next to no priors,
    and printed steps at its rate for MIREX, 0.1; for TREC it takes 0.0001. How confidences enter, and how many steps
    there are, is not printed there. With confidences a step takes as long as all pairs of the queries of all annotators
    together, and confidences stay between 0.14 and 7.4.

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
    count: str = "preferences"
    confidence: bool = False
    solver: str = "newton"
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        expect_choices(self, model=_MODELS, ties=_TIES, count=_COUNTS, solver=SOLVERS)
        expect_above(self, 0, "alpha", "ridge", hint="use a small one such as 1e-6 for none")
        expect_above(self, 0, "learning_rate")
        if self.confidence and (self.model, self.solver) != ("multinomial", "printed"):
            raise ParameterError("confidence=True goes with model='multinomial' and solver='printed'")

    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> MultinomialModel | PairwiseModel:
        """The model of preferences, given the number of the parameter that each depends on."""
        if self.count == "ranks":
            preferences, kept = count_by_ranks(preferences)
            code = code[kept]
        multinomial = ConfidentModel if self.confidence else MultinomialModel
        kind = multinomial if self.model == "multinomial" else PairwiseModel
        return kind.of(preferences, code, self.prior_of(trusted), ties=self.ties, ridge=self.ridge)

    def prior_of(self, trusted: Bools) -> NormalPrior:
        """Return the prior of the adherences."""
        return NormalPrior(self.alpha, trusted)

    def accuracies_at(self, gap: float, own: Floats, prior: AnnotatorPrior) -> Floats:
        """Return the probability that annotators order an average pair as the scores do."""
        # of the two ways to order a pair, the odds are those of twice the difference
        return 0.5 + 0.5 * np.tanh(gap * own) if self.model == "multinomial" else super().accuracies_at(gap, own, prior)


def count_by_ranks(preferences: Preferences) -> tuple[Preferences, Counts]:
    """Return the preferences that agree with the annotator's own order, weighed by differences in it, and which.

    The order is by wins less losses in the query, half of which is the rank where all pairs were judged. Ties stay.
    """
    n, outcome = preferences.n_items, preferences.outcome.astype(np.float64)
    key = preferences.row_annotator.astype(np.int64) * n
    cells, place = np.unique(np.concatenate([key + preferences.left, key + preferences.right]), return_inverse=True)
    net = np.bincount(place, np.concatenate([outcome, -outcome]), len(cells))
    left, right = np.split(net[place], 2)
    apart = np.where(outcome == 0, 1.0, 0.5 * outcome * (left - right))
    kept = np.flatnonzero(apart > 0)
    return replace(preferences.select(kept), weight=(preferences.row_weight * apart)[kept]), kept


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

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the surplus of a usual annotator."""
        return np.full(len(self.precision), _DEFAULT_SURPLUS), _SURPLUS_STRENGTH * self.precision

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return slopes in proportion."""
        return surplus / _DEFAULT_SURPLUS


@dataclass(frozen=True, eq=False)
class MultinomialModel(PairwiseModel):
    """Preferences drawn among all ordered pairs of the judged items of their query."""

    start_shrinkage: ClassVar[float] = _START_SHRINKAGE
    thins: ClassVar[bool] = False

    @property
    def query(self) -> Ints:
        """Query of each item."""
        return self.judged.items.query

    @cached_property
    def batches(self) -> Batches:
        """The preferences of each annotator in each query."""
        from .kernels.pair_likelihood import batch_preferences

        return batch_preferences(self.preferences, self.n_own, self.query, len(self.offsets) - 1)

    @cached_property
    def levels(self) -> PairCounts:
        """The pair counts with all judged items of a query as one group, since the model relates them all."""
        first = np.full(len(self.offsets) - 1, self.n_items, np.int32)
        item = self.batches.item
        np.minimum.at(first, self.query[item], item)
        group = np.arange(self.n_items, dtype=np.int32)
        group[item] = first[self.query[item]]
        return self.pair_counts._replace(group=group)

    def gap_sums(self, scores: Floats) -> tuple[float, float]:
        """Return the sum over preferences of the differences of scores, and their number."""
        gap = np.abs(scores[self.preferences.first] - scores[self.preferences.second])
        decided = np.diff(self.preferences.bounds)
        return float((gap * decided).sum()), float(decided.sum())

    def evaluate(self, point: Floats) -> ModelPoint:
        """Return the objective with its derivatives."""
        from .kernels.pair_likelihood import evaluate_adherence

        scores, own = self.scores(point), self.own(point)
        evaluated = evaluate_adherence(self.batches, scores, own)
        log_prior, pull, least = self.log_prior(own)
        value = evaluated.log_likelihood + log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient = np.concatenate([evaluated.gradient - self.ridge * scores, evaluated.own_gradient + pull])
        bend, flat = evaluated.own_bend + least, np.zeros(len(self.preferences.second))
        # the matrix is no Laplacian of the pairs that were asked: only its diagonal is there
        return ModelPoint(
            value, gradient, scores, own, bend, least, np.ones(len(own)), flat, evaluated.degree, evaluated
        )

    def curvature(self, here: ModelPoint) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and its diagonal."""
        from .kernels.pair_likelihood import adherence_product

        n, nobody = self.n_items, np.empty(0)

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n:]
            to_items, to_own, _ = adherence_product(self.batches, here.curve, here.scores, here.own, items, own, nobody)
            return np.concatenate([to_items + self.ridge * items, to_own + here.own_bend * own])

        return product, np.concatenate([here.curve.degree + self.ridge, here.own_bend])

    def score_curvature(self, here: ModelPoint, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when annotators adapt to each query."""
        product = self._adapted_product(here, variances, self.batches)
        taken = product(np.zeros(self.n_items))[1]

        def products(columns: Floats) -> Floats:
            return np.stack([product(np.ascontiguousarray(column))[0] for column in columns.T], axis=1)

        return products, here.curve.degree + self.ridge - taken

    def _adapted_product(
        self, here: ModelPoint, variances: Floats, batches: Batches
    ) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Function that multiplies the curvature of these batches, with how much adapting lowers its diagonal."""
        from .kernels.pair_likelihood import adherence_product

        nobody = np.zeros(self.n_own)

        def product(vector: Floats) -> tuple[Floats, Floats]:
            image, _, taken = adherence_product(batches, here.curve, here.scores, here.own, vector, nobody, variances)
            return image + self.ridge * vector, taken

        return product

    def explained_blocks(self, here: ModelPoint, variances: Floats, firsts: Counts, size: int) -> Floats:
        """Return the diagonal less the curvature of queries of this size."""
        keep = np.isin(self.batches.query, self.query[firsts])
        part = replace(here, curve=here.curve._replace(sums=here.curve.sums[keep]))
        product = self._adapted_product(part, variances, self.batches.only(keep))
        items = firsts[:, None] + np.arange(size)
        blocks = np.empty((len(firsts), size, size))
        for place in range(size):
            # queries do not meet, so one product has a column of each
            single = np.zeros(self.n_items)
            single[items[:, place]] = 1.0
            blocks[:, :, place] = (here.curve.degree + self.ridge)[items] * single[items] - product(single)[0][items]
        return blocks


class ConfidentModel(MultinomialModel):
    """The same with a confidence of each item, whose logarithms stand behind the annotators' parameters in a point."""

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and confidences of 1."""
        return np.concatenate([scores, own, np.zeros(self.n_items)])

    def within_bounds(self, point: Floats) -> Floats:
        """Return the point with parameters and confidences between their bounds."""
        confidence = point[self.n_items + self.n_own :]
        np.clip(confidence, -_MOST_LOG_CONFIDENCE, _MOST_LOG_CONFIDENCE, out=confidence)
        return super().within_bounds(point)

    def evaluate(self, point: Floats) -> ModelPoint:
        """Return the objective with its gradient; it has no curvature."""
        from .kernels.pair_likelihood import expect_leads

        n, scores, own, rows = self.n_items, self.scores(point), self.own(point), self.preferences
        confidence = np.exp(point[n + self.n_own :])
        value, gradient, own_gradient, of_confidence = expect_leads(self.batches, scores, own, confidence)
        first, second = rows.first[rows.pair], rows.second[rows.pair]
        won = rows.outcome * rows.amount
        gap, factor = scores[first] - scores[second], 0.5 * (confidence[first] + confidence[second])
        adherence = own[rows.annotator]
        value += float((won * adherence * factor * gap).sum())
        own_gradient = own_gradient + np.bincount(rows.annotator, won * factor * gap, self.n_own)
        for side, sign in ((first, 1.0), (second, -1.0)):
            gradient += np.bincount(side, sign * won * adherence * factor, n)
            of_confidence += np.bincount(side, 0.5 * won * adherence * gap, n)
        log_prior, pull, bend = self.log_prior(own)
        value += log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        parts = [gradient - self.ridge * scores, own_gradient + pull, confidence * of_confidence]
        nothing = np.zeros(n)
        return ModelPoint(value, np.concatenate(parts), scores, own, bend, bend, bend, nothing, nothing, None)
