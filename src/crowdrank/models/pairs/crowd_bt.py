"""Crowd-BT: the Bradley-Terry model with one reliability per annotator, from right over guessing to reversed.

First what it shares with the multinomial preference model: a method that estimates scores together with one parameter
per annotator, in memory and over blocks. Then Crowd-BT, and its model with Newton steps and standard errors. Then the
start on the majority's side, and which way round scores and annotators are: reversed scores with every annotator
reversed explain preferences equally well, only the priors of the annotators decide, and a fit that starts on the wrong
side would end there. Last the fits over many blocks, by query and by annotator.

In memory Newton steps move scores and annotators together. Over many blocks each product of such a step would be a pass
over all judgments, so there one side is the best for each value of the other: by query, blocks keep the scores of their
items and annotators are shared; by annotator, for one query with most judgments, it is the other way round.

Measured with Crowd-BT on 5,000 to 200,000 preferences in six blocks: the Newton steps of memory would be 71 to 78
passes (12 to 17 points, 59 to 61 products), these are 23 or 24; in memory they would take 4 to 15 times the processor
time of Newton steps. Scores agree to 1e-6.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS, Consensus, Trace, settle_ties
from ...data.index import Index, Items
from ...data.judgments import Preferences, align_judgments, expect, stack_judgments
from ...data.parted import PartColumns, PartedFit, sample_queries, share_of_rows
from ...errors import ConvergenceWarning, ParameterError
from ...fitting import OneBlock, Step, accelerate, ascend, newton, warn_unconverged
from ...pair_counts import PairCounts, sort_and_count, warn_unbounded
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, StepResult, method_name
from ...quality import TRUSTED, LearnedQuality, trusted_annotators, warn_near_chance
from ...standard_errors import ScoreGradients, score_standard_errors
from ...wording import expect_above, expect_choices, option

if TYPE_CHECKING:
    from ...kernels.laplacian import Product, Products
    from ...kernels.pairs import PreferencesByPair
    from .kernels.pair_likelihood import TieModel
    from .multinomial_preference import NormalPrior

_TIES = ("split", "ignore", "davidson")
SOLVERS = ("newton", "printed")
_PRIOR_COUNTS = (8.0, 2.0)
_MIN_DISTANCE_OF_ETA = 1e-9

_MAX_ITEMS_WITHOUT_THREADS = 64
_THINNING_STEP = 4
# threshold (equal): preferences of which a part gives the first point
_MIN_PREFERENCES_TO_THIN = 400_000
_MIN_PREFERENCES_PER_PARAMETER = 10
Model: TypeAlias = "PairwiseModel"
AnnotatorPrior: TypeAlias = "BetaPrior | NormalPrior"
"""Prior of the annotators' parameters, and how a parameter enters the likelihood."""

_QUALITY_TOL = 1e-2
"""Tolerance of the fits for held-out quality: agreement with scores needs no more digits."""

_QUALITY_PRECISION = 1e-6
"""How exact the scores of such a fit are where it comes to items that are alike, relative to their range."""

_ROUGH_TOL = 0.3
"""Tolerance of a fit that only gives the start of another."""

_SHARE_OF_TOL = 1e-2
"""Passes stop at this share of the tolerance of Newton steps, since their errors shrink by a factor, not by squares."""

_START_ROUNDS = 2
_START_PRIOR_WEIGHT = 1.0
_START_MAX_SURPLUS = 0.9
_MIN_GAIN = 1e-6
"""Gain of the objective from which scores are reversed."""

_MAX_SURPLUS = 1 - 1e-12
_MAX_CELLS_PER_PREFERENCE = 4
_MAX_REVERSALS = 4
_MAX_STEP = 1.0
_MAX_INNER_STEPS = 50
_MAX_NEWTON_STEP = 8.0
_LEAST_CURVATURE = 1e-12
# threshold (sample): items of a query with a covariance where most pairs have met, crowd_bt, multinomial_preference
_MAX_EXACT_ITEMS_OF_DENSE_PAIRS = 1_500
_MAX_SQUARE_PER_PAIR = 4
_N_PROBES = 32
"""Random probes of the inverse; they leave one or two per cent of a standard error to chance."""

# threshold (equal): items whose curvature is a table where parts by annotator share scores
MAX_TABLE_ITEMS = 2_000
"""Items up to which the curvature of shared scores is a table of their squares."""


class AnnotatorMethod(ABC):
    """Base of methods that estimate scores together with a parameter of each annotator.

    A method is a dataclass over this class with its hyper-parameters, among them those below. It names the parameter,
    returns the model of preferences, and may show users the parameter on another scale than the model's.
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-7
    parameter: ClassVar[str]
    printed_bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    ties: str
    per_query: bool
    tol: float
    max_iter: int
    solver: str
    learning_rate: float

    @abstractmethod
    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> Model:
        """The model of preferences, given the number of the parameter that each depends on, and whose are trusted."""

    @abstractmethod
    def prior_of(self, trusted: Bools) -> AnnotatorPrior:
        """Return the prior of the parameters, given whose are trusted."""

    def accuracies_at(self, gap: float, own: Floats, prior: AnnotatorPrior) -> Floats:
        """Return the probability that annotators order an average pair as the scores do, from ``gap_sums``."""
        mixture = prior.model == "mixture"
        return 0.5 + 0.5 * (gap * prior.transform(own)[0] if mixture else np.tanh(np.arctanh(gap) * own))

    def _to_parameter(self, own: Floats) -> Floats:
        """The parameter that users see, from the model's."""
        return own

    def _from_parameter(self, parameter: Floats) -> Floats:
        """The model's parameter, from the one that users see."""
        return parameter

    def _maximise(self, model: Model, point: Floats | None, tol: float) -> tuple[Floats, Any, Trace]:
        """The point of scores and annotators: the maximum, or where the printed steps end.

        These begin at equal scores and usual annotators, and step on the scale of the parameter that users see.
        """
        rest: Any = {"tol": tol, "max_iter": self.max_iter, "what": method_name(self)}
        if self.solver == "newton":
            return model.maximise(point, **rest)
        n, last = model.n_items, model.n_items + model.n_own

        def move(here: Floats, step: Floats) -> Floats:
            following, parameter = here + step, self._to_parameter(here[n:last])
            # by the chain rule the gradient on the other scale is that of the model divided by the slope
            moved = parameter + step[n:last] / self._parameter_slope(parameter)
            following[n:last] = self._from_parameter(np.clip(moved, *self.printed_bounds))
            return model.within_bounds(following)

        start = model.join(np.zeros(n), np.full(last - n, float(model.prior.default())))
        return ascend(model.evaluate, start, learning_rate=self.learning_rate, move=move, **rest)

    def _parameter_slope(self, parameter: Floats) -> Floats:
        """Derivative of the parameter that users see by the model's."""
        return np.ones(len(parameter))

    def fit(self, preferences: Preferences, *, start: Consensus | None = None, trusted: Any | None = None) -> Consensus:
        """Return scores and annotators; warns of items and groups that only the ridge keeps finite.

        ``start`` is a former consensus of this method to continue from; ``trusted`` has the ids of annotators known to
        be good.
        """
        expect(preferences, self)
        is_trusted, former = trusted_annotators(preferences, trusted), None
        if start is not None:
            scores = _former_scores(start.items, start.scores, preferences.items)
            former = scores, self.former_parameters(start, preferences.annotators)
        model, owner, point = self._problem(preferences, is_trusted, former)
        point, best, trace = self._maximise(model, point, self.tol)
        scores, own, number = model.scores(point), model.own(point), model.n_preferences
        warn_unbounded(preferences.items, model.orient_pair_counts(own))
        if trusted is None:
            gap, n_decided = model.gap_sums(scores)
            warn_near_chance(method_name(self), self.accuracies_at(gap / max(n_decided, 1.0), own, model.prior), number)
        # printed steps end where they end: there is no maximum whose curvature would say how sure scores are
        std_error, covariance = (None, None) if self.solver == "printed" else model.standard_errors(best)
        quality, n = None, preferences.n_annotators
        if n:
            # annotators without preferences keep the prior; queries of the others weigh by number of preferences
            weight = np.where(np.bincount(owner, number, n)[owner] > 0, number, 1.0)
            sums, total = np.bincount(owner, weight * self._to_parameter(own), n), np.bincount(owner, weight, n)
            idle = np.full(n, float(self._to_parameter(model.prior.default())))
            parameter = np.divide(sums, total, out=idle, where=total > 0)
            quality = self._quality(preferences, is_trusted, scores, parameter)
        return Consensus.of(
            self, preferences, scores, trace=trace, std_error=std_error, covariance=covariance, quality=quality,
            estimates=model.estimates(point),
        )  # fmt: skip

    def over_blocks(
        self, judged: Any, *, start: Consensus | None = None, trusted: Any | None = None, **given: Any
    ) -> BlockFit:
        """Return the fit over blocks of preferences, by query or by annotator."""
        name = method_name(self)
        if self.solver == "printed":
            raise ParameterError(
                f"{name} takes printed steps over judgments in memory; leave solver out for packed ones"
            )
        if self.per_query:
            raise ParameterError(
                f"{name} with per_query takes each query by itself, so packed judgments gain nothing; leave per_query "
                "out, or fit a file for each query"
            )
        if judged.by != "query" and self.ties == "davidson":
            raise ParameterError(
                f"{name} with ties='davidson' goes over judgments packed by query; pack them so, or take ties='split'"
            )
        if judged.by != "query" and judged.n_queries > 1:
            raise ParameterError(
                f"{name} over judgments packed by annotator takes one query, and there are {judged.n_queries:,}; "
                "pack them by query, or use bradley_terry"
            )
        fit, sure = _FitByQuery if judged.by == "query" else _FitByAnnotator, trusted_annotators(judged, trusted)
        over = fit(self, judged, start, sure if len(sure) else np.zeros(1, bool), _SHARE_OF_TOL * self.tol)
        return BlockFit(over.lay_out, over.solve)

    def scores(self, preferences: Preferences) -> Floats:
        """Return the scores only, without standard errors, for repeated fits."""
        expect(preferences, self)
        return self._refit(preferences, np.zeros(preferences.n_annotators, bool))

    def _refit(
        self, part: Preferences, trusted: Bools, start: tuple[Floats, Floats] | None = None, tol: float | None = None
    ) -> Floats:
        """The scores at the maximum."""
        model, _, point = self._problem(part, trusted, start)
        return model.scores(self._maximise(model, point, tol or self.tol)[0])

    def _problem(
        self, preferences: Preferences, trusted: Bools, start: tuple[Floats, Floats] | None
    ) -> tuple[Model, Ints, Floats | None]:
        """The model, the annotator that each parameter belongs to, and the point to start from if scores are given.

        ``start`` are scores and annotators' parameters, NaN where they are not known.
        """
        n, code = max(preferences.n_annotators, 1), preferences.row_annotator
        owner = np.arange(n, dtype=np.int32)
        if self.per_query:
            query = preferences.items.query[preferences.left]
            cells, places = np.unique(query.astype(np.int64) * n + code, return_inverse=True)
            code, owner = places.astype(np.int32), (cells % n).astype(np.int32)
        model = self._model(preferences, code, np.append(trusted, False)[owner])
        if start is None:
            return model, owner, None
        scores, own = start[0], self._from_parameter(np.append(start[1], np.nan)[owner])
        if np.isnan(scores).any() or np.isnan(own).any():
            rough = model.rough_start()
            scores, own = np.where(np.isnan(scores), rough[0], scores), np.where(np.isnan(own), rough[1], own)
        own = np.clip(own, model.prior.low, model.prior.high)
        return model, owner, model.join(model.levels.centre(scores), own)

    def _quality(
        self, preferences: Preferences, trusted: Bools, scores: Floats, parameter: Floats, given: Floats | None = None
    ) -> LearnedQuality:
        """Quality of the annotators, held out; ``given`` weighs all their preferences where these are a sample."""
        refit = partial(self._refit, trusted=trusted, start=(scores, parameter), tol=max(self.tol, _QUALITY_TOL))
        parameters = {self.parameter: parameter}
        return LearnedQuality(preferences, refit, parameters, precision=_QUALITY_PRECISION, n_judgments=given)

    def former_parameters(self, former: Consensus, ids: Index) -> Floats:
        """Return the parameters that a former consensus has of annotators, NaN for new ones."""
        if former.learned is None:
            return np.full(len(ids), np.nan)
        annotators, parameters = former.learned
        if self.parameter not in parameters:
            raise ParameterError(
                f"start= is a consensus of {former.method}, which has no {self.parameter} of annotators; start from a "
                "consensus of the same method, or leave start= out"
            )
        return np.append(parameters[self.parameter], np.nan)[annotators.codes(ids.ids)]


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
        Largest number of steps; raise it where a warning says that the fit did not converge.
    solver
        ``"newton"``: to the maximum; ``"printed"``: gradient steps of scores and :math:`\eta` from equal scores at a
        fixed rate, as [Niu15]_ fits its baseline. They have no standard errors.
    learning_rate
        Length of the printed steps per unit of the gradient.

    Notes
    -----
    ``crowd-bt-paper`` is the baseline of [Niu15]_: an :math:`\eta` in each query, printed steps at its rate, 0.01, next
    to no priors; :math:`\eta` begins at 0.8, since neither start nor number of steps is printed,
    and stays between 0.001 and 0.999.

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
    printed_bounds: ClassVar[tuple[float, float]] = (1e-3, 1.0 - 1e-3)
    ties: str = "split"
    prior: tuple[float, float] | None = None
    ridge: float = 0.25
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100
    solver: str = "newton"
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        expect_choices(self, ties=_TIES, solver=SOLVERS)
        expect_above(self, 0, "learning_rate")
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

    def _parameter_slope(self, parameter: Floats) -> Floats:
        """Derivative of a probability by its log odds."""
        return parameter * (1.0 - parameter)

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
        return ScoreGradients.of_preferences(preferences.left, preferences.right, slope, self.ridge)


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

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the mean surplus, and the reciprocal of its variance."""
        strength = self.alpha + self.beta
        surplus = self.sign_cost / strength
        return surplus, (strength + 1.0) / np.maximum(1.0 - surplus**2, 1e-6)

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return log odds."""
        return 2.0 * np.arctanh(surplus)


@dataclass(frozen=True, eq=False)
class ModelPoint:
    """The objective, priors included, at one point: its gradient, the parameters, and the parts of its curvature.

    ``own_bend`` is the annotators' own curvature, ``own_least`` the prior's part of it, and ``slope`` the derivative of
    the likelihood's parameter of each annotator by that of the point. ``bend`` (n_pairs,) and ``degree`` (n_items,) are
    those of the Laplacian, and ``curve`` is what the likelihood's own kernel returned. ``ties`` is Davidson's model of
    all preferences where it explains which of them are ties.
    """

    value: float
    gradient: Floats
    scores: Floats
    own: Floats
    own_bend: Floats
    own_least: Floats
    slope: Floats
    bend: Floats
    degree: Floats
    curve: Any
    ties: TieModel | None = None

    @property
    def log_likelihood(self) -> float:
        """The objective, priors included, which never falls from step to step."""
        return self.value


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """Preferences whose odds depend on the pair and on a parameter of the annotator.

    Its points hold the scores, then the annotators' parameters, and perhaps more.

    Parameters
    ----------
    judged
        The preferences as they were given, ties included.
    preferences, pair_counts
        The preferences that the model takes, sorted by pair, and their counts.
    prior
        Prior of the annotators' parameters.
    ridge
        Precision of the normal prior of scores.
    offsets
        Bounds of the items of each query.
    tied
        Number of ties of each pair where Davidson's model explains them; the point then ends with the logarithm of its
        parameter.
    dense
        Whether there is room for a table of items and annotators.
    flat
        Whether to leave the density of the annotators' prior out, which is then added once for all blocks.
    """

    start_shrinkage: ClassVar[float] = 1.0
    """By how much rough scores are drawn together."""

    thins: ClassVar[bool] = True
    """Whether a fit of some of the pairs comes near that of all."""

    judged: Preferences
    preferences: PreferencesByPair
    pair_counts: PairCounts
    prior: AnnotatorPrior
    ridge: float
    offsets: Counts
    tied: Floats | None
    dense: bool
    flat: bool = False

    @classmethod
    def of(cls, preferences: Preferences, annotator: Ints, prior: AnnotatorPrior, *, ties: str, ridge: float) -> Self:
        """Return the model of preferences by annotators with these codes; ``ties`` as for Bradley-Terry."""
        by_pair, pair_counts, tied = sort_and_count(preferences, annotator, ties)
        dense = _table_fits(preferences.n_items, len(prior.trusted), len(by_pair.code))
        return cls(preferences, by_pair, pair_counts, prior, ridge, preferences.items.offsets, tied, dense)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.pair_counts.wins)

    @property
    def n_own(self) -> int:
        """Number of annotators' parameters."""
        return len(self.prior.trusted)

    @property
    def n_preferences(self) -> Floats:
        """Number of preferences that each parameter enters."""
        weight = self.preferences.weight if self.preferences.weight.size else None
        return np.bincount(self.preferences.annotator, weight, self.n_own).astype(np.float64)

    @property
    def levels(self) -> PairCounts:
        """The pair counts with the groups whose level the likelihood leaves free."""
        return self.pair_counts

    def scores(self, point: Floats) -> Floats:
        """Return the scores of a point."""
        return point[: self.n_items]

    def own(self, point: Floats) -> Floats:
        """Return the annotators' parameters of a point."""
        return point[self.n_items : self.n_items + self.n_own]

    def within_bounds(self, point: Floats) -> Floats:
        """Return the point with parameters between their bounds."""
        own = self.own(point)
        np.clip(own, self.prior.low, self.prior.high, out=own)
        return point

    def log_prior(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of annotators' parameters, its gradient and its negated second derivatives."""
        if self.flat:
            return 0.0, np.zeros(len(own)), np.zeros(len(own))
        return self.prior.log_density(own)

    def rough_start(self) -> tuple[Floats, Floats]:
        """Return scores and parameters on the majority's side."""
        blocks = OneBlock(self)
        own = _majority_start(blocks, self.prior)
        return blocks.state[0], own

    def gap_sums(self, scores: Floats) -> tuple[float, float]:
        """Return the sum over preferences of how far apart their items are, at most 1 each, and their number."""
        gap = np.tanh(0.5 * np.abs(scores[self.preferences.first] - scores[self.preferences.second]))
        decided = np.diff(self.preferences.bounds)
        return float((gap * decided).sum()), float(decided.sum())

    def maximise(
        self, start: Floats | None, *, tol: float, max_iter: int, what: str
    ) -> tuple[Floats, ModelPoint, Trace]:
        """Return the maximum of the objective, from a start or from the majority's side."""
        point = self.first_point(max_iter) if start is None else start
        direction = partial(self.newton_direction, tol=tol)
        climb = partial(newton, self.evaluate, direction, tol=tol, max_iter=max_iter, what=what)
        return _climb_and_reverse(climb, partial(self.reverse_if_better, settled=start is not None), point)

    def maximise_roughly(self, max_iter: int) -> Floats:
        """Return a point near the maximum, for the fit proper to start from."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.maximise(None, tol=_ROUGH_TOL, max_iter=max_iter, what="")[0]

    def newton_direction(self, here: ModelPoint, tol: float, *, scores_only: bool = False) -> Floats:
        """Return the Newton step, within the bounds of the parameters; all but the scores may stay as they are."""
        from ...kernels.laplacian import newton_step

        n, m = self.n_items, self.n_own
        product, diagonal = self.curvature(here)
        fixed = np.arange(n, len(diagonal)) if scores_only else n + np.flatnonzero(self.at_bound(here))
        gradient = here.gradient
        if len(fixed):
            gradient, diagonal[fixed] = gradient.copy(), np.inf
            gradient[fixed] = 0.0

        def within(step: Floats) -> Floats:
            # a small ridge would leave the level of a group to rounding
            step[:n] = self.levels.centre(step[:n])
            own = step[n : n + m]
            own[:] = np.clip(here.own + own, self.prior.low, self.prior.high) - here.own
            return step

        step = within(newton_step(product, diagonal, gradient, tol=tol))
        if float((gradient * step).sum()) > 0.0:
            return step
        # clipped at the bounds, a Newton step may lead downwards; a gradient step does not
        step = gradient / diagonal
        return within(step * min(1.0, _MAX_STEP / float(np.max(np.abs(step), initial=1.0))))

    def at_bound(self, here: ModelPoint) -> Bools:
        """Return which parameters are at a bound with a gradient pointing beyond it."""
        pull = here.gradient[self.n_items : self.n_items + self.n_own]
        return ((here.own >= self.prior.high) & (pull > 0)) | ((here.own <= self.prior.low) & (pull < 0))

    def own_variances(self, here: ModelPoint) -> Floats:
        """Return the variance of each annotator's parameter when all else is fixed; at a bound it does not adapt."""
        fixed = self.at_bound(here) | (here.own_bend <= 0.0)
        return np.where(fixed, 0.0, 1.0 / np.where(fixed, 1.0, here.own_bend))

    def reverse_if_better(self, point: Floats, *, settled: bool = False) -> Floats | None:
        """Return a better point with some scores reversed, ``None`` if there is none."""
        blocks = OneBlock(self, (self.scores(point),))
        own = _reverse(blocks, self.prior, self.own(point), settled=settled)
        if own is None:
            return None
        point = point.copy()
        self.scores(point)[:] = blocks.state[0]
        self.own(point)[:] = own
        return point

    def orient_pair_counts(self, own: Floats) -> PairCounts:
        """Return the pair counts with the preferences of reversed annotators reversed."""
        reverse = own < 0
        if not reverse.any():
            return self.pair_counts
        from ...kernels.pairs import OutcomeCounts, item_totals

        number, rows = self.pair_counts.number, self.preferences
        change = np.where(reverse[rows.annotator], -2.0 * rows.outcome * rows.amount, 0.0)
        margin = self.pair_counts.margin + np.bincount(rows.pair, change, len(number))
        wins, losses = 0.5 * (number + margin), 0.5 * (number - margin)
        pairs = (self.preferences.starts, self.preferences.second)
        won, lost = item_totals(OutcomeCounts(*pairs, wins, losses, np.zeros(len(wins))))
        return self.pair_counts._replace(margin=margin, wins=won, losses=lost)

    def standard_errors(self, best: ModelPoint) -> tuple[Floats, tuple[Floats | None, ...]]:
        """Return standard errors and covariances of the scores, with all else free to adapt.

        The covariance of a query takes the scores of other queries as fixed.
        """
        variances = self.own_variances(best)
        pairs = (self.preferences.starts, self.preferences.second, best.bend, best.degree)

        def probe() -> Floats:
            from ...kernels.laplacian import probed_diagonal

            products, diagonal = self.score_curvature(best, variances)
            # annotators leave the scale of all scores most uncertain
            return probed_diagonal(products, diagonal, self.offsets, n_probes=_N_PROBES, along=best.scores)

        def less(firsts: Counts, size: int, flat: bool) -> Floats:
            # halfway between two equally good sides there is a maximum only if annotators are taken as fixed
            return self.explained_blocks(best, np.zeros(self.n_own) if flat else variances, firsts, size)

        # with many pairs, products with them take longer than inverting the matrix
        dense = _MAX_SQUARE_PER_PAIR * len(self.preferences.second) >= self.n_items**2
        return score_standard_errors(
            *pairs, self.ridge, self.offsets, probe=probe, less=less,
            exact=_MAX_EXACT_ITEMS_OF_DENSE_PAIRS if dense else COVARIANCE_ITEMS,
        )  # fmt: skip

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and an even tie parameter."""
        return np.concatenate([scores, own, [0.0] if self.tied is not None else []])

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return the tie parameter of a point where the model has one."""
        return {} if self.tied is None else {"tie": float(np.exp(point[-1]))}

    def first_point(self, max_iter: int) -> Floats:
        """Return the point to start from: that of a fit of every fourth pair where these are many."""
        from ...kernels.pairs import connected_groups

        if self.prior.trusted.any():
            # the others by themselves first; then the trusted annotators decide which way round they are
            others = self.preferences.without(self.prior.trusted)
            nobody = replace(self.prior, trusted=np.zeros_like(self.prior.trusted))
            point = replace(self, preferences=others, prior=nobody).maximise_roughly(max_iter)
            better = self.reverse_if_better(point)
            point = point if better is None else better
            usual = self.prior.from_surplus(self.prior.expected_surplus()[0])
            self.own(point)[self.prior.trusted] = usual[self.prior.trusted]
            return point
        enough = _THINNING_STEP * _MIN_PREFERENCES_PER_PARAMETER * (self.n_items + self.n_own)
        if not self.thins or len(self.preferences.code) < max(_MIN_PREFERENCES_TO_THIN, enough):
            return self.join(*self.rough_start())
        preferences, pair_counts = self.preferences.every(_THINNING_STEP), self.pair_counts
        pair_counts = pair_counts._replace(
            starts=preferences.starts, second=preferences.second, margin=pair_counts.margin[::_THINNING_STEP],
            number=pair_counts.number[::_THINNING_STEP],
            group=connected_groups(preferences.starts, preferences.second, self.offsets),
        )  # fmt: skip
        part = replace(
            self, preferences=preferences, pair_counts=pair_counts,
            tied=None if self.tied is None else self.tied[::_THINNING_STEP],
            dense=_table_fits(self.n_items, self.n_own, len(preferences.code)),
        )  # fmt: skip
        return part.maximise_roughly(max_iter)

    def evaluate(self, point: Floats) -> ModelPoint:
        """Return the objective with its derivatives."""
        from .kernels.pair_likelihood import evaluate_preferences, evaluate_ties

        scores, own = self.scores(point), self.own(point)
        transform, slope, turn = self.prior.transform(own)
        curve = evaluate_preferences(self.preferences, self.prior.model, scores, transform, dense=self.dense)
        log_prior, pull, least = self.log_prior(own)
        value = curve.log_likelihood + log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient, bend, degree, rest = curve.gradient - self.ridge * scores, curve.bend, curve.degree, np.empty(0)
        every: TieModel | None = None
        if self.tied is not None:
            # which preferences are ties: the model of all of them, less that of the decided ones
            counts, tie, n_ties = self.pair_counts, float(point[-1]), float(self.tied.sum())
            pairs, level = (counts.starts, counts.second), np.zeros(len(counts.second))
            every = evaluate_ties(*pairs, level, counts.number, scores, float(np.exp(tie)), n_ties)
            decided = evaluate_ties(*pairs, level, counts.number - self.tied, scores, 0.0, 0.0)
            value += every.log_likelihood - decided.log_likelihood - 0.5 * self.ridge * tie**2
            gradient = gradient + every.gradient - decided.gradient
            bend, degree = bend + every.bend - decided.bend, degree + every.degree - decided.degree
            rest = np.array([every.tie_gradient - self.ridge * tie])
        gradient = np.concatenate([gradient, curve.own_gradient * slope + pull, rest])
        own_bend = curve.own_bend * slope**2 - curve.own_gradient * turn + least
        return ModelPoint(value, gradient, scores, own, own_bend, least, slope, bend, degree, curve, every)

    def curvature(self, here: ModelPoint) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and a positive diagonal like its own."""
        from ...kernels.laplacian import laplacian_product
        from .kernels.pair_likelihood import joint_product

        n, m, pairs = self.n_items, self.n_own, self.preferences
        of_items, between = here.degree + self.ridge, here.curve.cross
        in_scores = laplacian_product(pairs.starts, pairs.second, here.bend, of_items)
        diagonal = [np.maximum(here.degree, 0.0) + self.ridge, np.maximum(here.own_bend, here.own_least)]
        cross, corner = np.empty(0), 0.0
        if here.ties is not None:
            cross, corner = here.ties.cross, here.ties.tie_bend + self.ridge
            diagonal.append(np.array([corner]))

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n : n + m]
            if self.dense:
                # a matrix product would wake the threads of the linear algebra library, which then wait on a core
                to_items = in_scores(items) + np.einsum("ik,k->i", between, here.slope * own)
                to_own = np.einsum("ik,i->k", between, items)
            else:
                to_items, to_own = joint_product(pairs, here.curve, here.bend, items, here.slope * own)
                to_items += of_items * items
            image = [to_items, here.slope * to_own + here.own_bend * own]
            if here.ties is not None:
                image[0] += vector[-1] * cross
                image.append(np.array([float((cross * items).sum()) + vector[-1] * corner]))
            return np.concatenate(image)

        return product, np.concatenate(diagonal)

    def score_curvature(self, here: ModelPoint, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when all else adapts to them."""
        from ...kernels.laplacian import laplacian_products
        from .kernels.pair_likelihood import adapted_products, adapted_table_products

        preferences, n, (tied, tie_variance) = self.preferences, self.n_items, self._tie_variance(here)
        diagonal, scale = here.degree + self.ridge, variances * here.slope**2
        in_scores = laplacian_products(preferences.starts, preferences.second, here.bend, diagonal)
        adapted = adapted_products(preferences, here.curve.tie_in, here.bend, diagonal, scale)

        def products(columns: Floats) -> Floats:
            taken = np.outer(tie_variance * tied, np.einsum("i,im->m", tied, columns))
            if not self.dense:
                return adapted(columns) - taken
            return in_scores(columns) - adapted_table_products(here.curve.cross, scale, columns) - taken

        if self.dense:
            taken = np.einsum("ik,ik,k->i", here.curve.cross, here.curve.cross, scale)
        else:
            # several preferences of one annotator about an item are taken as by different ones
            squares = here.curve.tie_in**2 * scale[preferences.annotator]
            of_pairs = np.bincount(preferences.pair, squares, len(preferences.second))
            taken = np.bincount(preferences.first, of_pairs, n) + np.bincount(preferences.second, of_pairs, n)
        return products, diagonal - taken - tie_variance * tied**2

    def _tie_variance(self, here: ModelPoint) -> tuple[Floats, float]:
        """Curvature between tie parameter and scores, and the variance of its logarithm when all else is fixed."""
        if here.ties is None:
            return np.zeros(self.n_items), 0.0
        return here.ties.cross, 1.0 / (here.ties.tie_bend + self.ridge)

    def explained_blocks(self, here: ModelPoint, variances: Floats, firsts: Counts, size: int) -> Floats:
        """Return by how much annotators and the tie parameter lower the curvature of queries of this size."""
        scale = variances * here.slope**2
        if self.dense:
            from ...kernels.threads import one_blas_thread

            blocks = np.empty((len(firsts), size, size))
            with one_blas_thread() if size > _MAX_ITEMS_WITHOUT_THREADS else nullcontext():
                for block, first in zip(blocks, firsts, strict=True):
                    cross = here.curve.cross[first : first + size]
                    np.matmul(cross * scale, cross.T, out=block)
        else:
            from .kernels.pair_likelihood import explained_curvature

            blocks = explained_curvature(self.preferences, here.curve.tie_in, scale, firsts, size)
        tied, tie_variance = self._tie_variance(here)
        if tie_variance:
            part = tied[firsts[:, None] + np.arange(size)]
            blocks += tie_variance * part[:, :, None] * part[:, None, :]
        return blocks


def _table_fits(n_items: int, n_own: int, n_preferences: int) -> bool:
    """Whether a table of items and annotators is as fast to pass through as the preferences."""
    return n_items * n_own <= _MAX_CELLS_PER_PREFERENCE * n_preferences


# The start on the majority's side, and which way round


def _climb_and_reverse(
    climb: Callable[[Floats], Any], reverse: Callable[[Floats], Floats | None], point: Floats
) -> Any:
    """What climbs lead to, begun again where ``reverse`` finds a better point; the trace is that of all of them."""
    n_iter, values = 0, list[float]()
    for number in range(_MAX_REVERSALS):
        point, *best, trace = climb(point)
        n_iter, values = n_iter + trace.n_iter, [*values, *(trace.log_likelihood or ())]
        better = reverse(point) if number + 1 < _MAX_REVERSALS else None
        if better is None:
            break
        point = better
    return point, *best, replace(trace, n_iter=n_iter, log_likelihood=tuple(values))


def _former_scores(items: Items, scores: Floats, here: Items) -> Floats:
    """Scores that a former consensus has of the items here, NaN for new ones."""
    return np.append(scores, np.nan)[items.codes(here.query_ids(), here.ids)]


def _majority_start(blocks: Blocks, prior: AnnotatorPrior) -> Floats:
    """Rough parameters of annotators, and rough scores as the states of blocks.

    Scores are the mean outcomes of an item, with annotators weighed by the prior first, and then by how their
    preferences agree with the first scores.
    """
    surplus = prior.expected_surplus()[0]

    def agreement(model: Model, state: Any) -> StepResult:
        scores = model.levels.centre(_start_scores(*_start_sums(model.preferences, surplus)))
        return _start_agreement(model.preferences, scores, model.n_own), (model.start_shrinkage * scores,)

    for _ in range(_START_ROUNDS):
        surplus = _start_surplus(prior, *blocks.total(agreement))
    return np.clip(prior.from_surplus(surplus), prior.low, prior.high)


def _start_sums(preferences: PreferencesByPair, surplus: Floats) -> tuple[Floats, Floats]:
    """Return by how much each item is ahead, and the weight of its preferences, annotators weighed by their surplus."""
    first, second, pair, amount = preferences.first, preferences.second, preferences.pair, preferences.amount
    n_items, n_pairs, surplus = len(preferences.starts) - 1, len(second), surplus[preferences.annotator]
    lead = np.bincount(pair, amount * preferences.outcome * surplus, n_pairs)
    weight = np.bincount(pair, amount * surplus**2, n_pairs)
    ahead: Any = np.bincount(first, lead, n_items) - np.bincount(second, lead, n_items)
    total: Any = np.bincount(first, weight, n_items) + np.bincount(second, weight, n_items)
    return ahead, total


def _start_scores(ahead: Floats, weight: Floats) -> Floats:
    """Return rough scores from the sums of the items."""
    mean = ahead / (weight + _START_PRIOR_WEIGHT)
    return 2.0 * np.arctanh(np.clip(mean, -_START_MAX_SURPLUS, _START_MAX_SURPLUS))


def _start_agreement(preferences: PreferencesByPair, scores: Floats, n_annotators: int) -> tuple[Floats, Floats]:
    """Return how far each annotator agrees with scores, and the sum of squares that this is measured by."""
    by, amount = preferences.annotator, preferences.amount
    gap = np.tanh(0.5 * (scores[preferences.first] - scores[preferences.second]))[preferences.pair]
    agree: Any = np.bincount(by, amount * preferences.outcome * gap, n_annotators)
    squares: Any = np.bincount(by, amount * gap**2, n_annotators)
    return agree, squares


def _start_surplus(prior: AnnotatorPrior, agree: Floats, squares: Floats) -> Floats:
    """Return the surplus of right over wrong preferences that agreement suggests, shrunk towards the prior's."""
    known, strength = prior.expected_surplus()
    return np.clip((agree + strength * known) / (squares + strength), -_START_MAX_SURPLUS, _START_MAX_SURPLUS)


def _reverse(blocks: Blocks, prior: AnnotatorPrior, own: Floats, *, settled: bool) -> Floats | None:
    """The parameters with those reversed that are better so, as are the scores; ``None`` where none are.

    A component is all items and annotators that preferences connect. It is reversed if its trusted annotators
    contradict the scores or, without any and if the side is not settled, if the priors do. If no component is, single
    groups of items that were never compared with others are reversed where the annotators, as estimated from the
    others, contradict them.
    """
    component, n_groups = _components(blocks, len(own))
    active, n = component >= 0, len(own)
    gain = np.zeros(n) if settled else -np.bincount(component[active], (prior.sign_cost * own)[active], n)
    decided = np.zeros(n, bool)
    decided[component[active & prior.trusted]] = True
    if decided.any():
        (agreement,) = blocks.total(lambda model, state: ((_agreement(model, state[0]),), None))
        of_trusted = np.where(prior.trusted, agreement, 0.0)
        gain[decided] = -np.bincount(component[active], of_trusted[active], n)[decided]
    reverse = active & (gain[component] > _MIN_GAIN)

    def reverse_components(model: Model, state: Any) -> StepResult:
        of_items, label = _connected_parts(model)
        turned = np.zeros(model.n_items + 1, bool)
        turned[label[reverse & (label >= 0)]] = True
        return (0.0,), (np.where(turned[of_items], -state[0], state[0]),)

    def reverse_groups(model: Model, state: Any) -> StepResult:
        (scores,), group = state, model.levels.group
        supported = _support(model, scores, model.prior.transform(own)[0])
        gains = -np.bincount(group[model.preferences.first][model.preferences.pair], supported, len(scores))
        turned = gains[group] > _MIN_GAIN
        return (float(turned.sum()),), (np.where(turned, -scores, scores),)

    if reverse.any():
        blocks.total(reverse_components)
        return np.where(reverse & ~prior.trusted, np.clip(-own, prior.low, prior.high), own)
    if n_groups == len(np.unique(component[active])):
        return None
    (n_reversed,) = blocks.total(reverse_groups)
    return own if n_reversed else None


def _components(blocks: Blocks, n_own: int) -> tuple[Ints, int]:
    """The component that preferences connect each annotator to, -1 without any, and the number of groups of items."""
    from ...kernels.pairs import join_rows
    from ...kernels.threads import views

    def links(model: Model, state: Any) -> StepResult:
        label = _connected_parts(model)[1]
        annotators = np.flatnonzero(label >= 0)
        n_groups = len(np.unique(model.levels.group[model.preferences.second]))
        return (annotators.astype(np.int32), label[annotators], float(n_groups)), None

    of_blocks, nodes, n_nodes, n_groups = list[Ints](), list[Ints](), n_own, 0
    for annotators, label, number in blocks.each(links):
        labels, place = np.unique(label, return_inverse=True)
        of_blocks.append(annotators)
        nodes.append((n_nodes + place).astype(np.int32))
        n_nodes, n_groups = n_nodes + len(labels), n_groups + int(number)
    rows, columns = views(np.concatenate(of_blocks), np.concatenate(nodes))
    component = join_rows(rows, columns, np.ones(len(rows), bool), n_nodes)[0][:n_own]
    component[np.bincount(rows, minlength=n_own) == 0] = -1
    return component, n_groups


def _agreement(model: Model, scores: Floats) -> Floats:
    """How the preferences of each annotator, taken as those of a good one, support the scores."""
    supported = _support(model, scores, np.ones(model.n_own))
    return np.bincount(model.preferences.annotator, supported, model.n_own).astype(np.float64, copy=False)


def _support(model: Model, scores: Floats, transformed: Floats) -> Floats:
    """Log-likelihood of each preference given the scores less that given reversed scores, up to rounding."""
    preferences, prior = model.preferences, model.prior
    gap = scores[preferences.first] - scores[preferences.second]
    gap = np.tanh(0.5 * gap) if prior.model == "mixture" else gap
    x = transformed[preferences.annotator] * gap[preferences.pair] * preferences.outcome
    support = 2.0 * np.arctanh(np.clip(x, -_MAX_SURPLUS, _MAX_SURPLUS)) if prior.model == "mixture" else x
    return support * preferences.amount


def _connected_parts(model: Model) -> tuple[Ints, Ints]:
    """The lowest item that each item and each annotator is connected with; -1 for annotators without preferences."""
    from ...kernels.pairs import join_rows
    from ...kernels.threads import views

    preferences, group, n_items = model.preferences, model.levels.group, model.n_items
    # annotators come after the items
    heads, annotators = views(group[preferences.first][preferences.pair], n_items + preferences.annotator)
    most = len(np.unique(group[preferences.second])) + model.n_own - 1
    part, _ = join_rows(heads, annotators, np.ones(len(heads), bool), n_items + model.n_own, most)
    return part[group], np.where(part[n_items:] < n_items, part[n_items:], -1)


# Fits over many blocks


class _Slopes(NamedTuple):
    """The objective, slopes and curvatures in the parameters, and the part of the latter that is the prior's."""

    value: float
    slope: Floats
    bend: Floats
    least: Floats


@dataclass(frozen=True, eq=False)
class _FitByBlocks:
    """What both ways of cutting preferences share; a block is its model.

    ``trusted`` is of each annotator's parameter, of one where none are named; ``tol`` is the tolerance of the passes.
    """

    method: Any
    judged: Any
    start: Consensus | None
    trusted: Bools
    tol: float

    def former_own(self) -> Floats:
        """Return the parameters of a former consensus, NaN where there are none."""
        if self.start is None or not len(self.judged.annotators):
            return np.full(len(self.trusted), np.nan)
        return self.method._from_parameter(self.method.former_parameters(self.start, self.judged.annotators))

    def quality(self, blocks: Blocks, own: Floats, given: Floats) -> LearnedQuality | None:
        """Return the quality of the annotators, held out on a sample of the queries where preferences are many.

        Of one query it is on every so many preferences.
        """
        if not len(self.judged.annotators):
            return None
        share, by = share_of_rows(self.judged.rows), self.judged.by

        def sample(model: Model, state: Any) -> StepResult:
            if by == "annotator":
                return (model.judged.select(np.arange(0, len(model.judged), max(1, round(1.0 / share)))),), None
            return (sample_queries(model.judged, given, share),), None

        samples = [part for (part,) in blocks.read(sample)]
        whole: Any = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
        nothing = np.full(whole.n_items, np.nan)
        return self.method._quality(whole, self.trusted, nothing, self.method._to_parameter(own), given)


class _FitByQuery(_FitByBlocks):
    """Blocks by query: annotators are shared, and each block keeps the scores of its items.

    A step finds the best scores for given annotators and returns the slopes of the annotators.
    """

    def lay_out(self, part: Preferences) -> Model:
        """Return the model of a block, without the prior of annotators."""
        model: Model = self.method._model(part, part.row_annotator, self.trusted)
        return replace(model, flat=True)

    def solve(self, blocks: Blocks) -> PartedFit:
        """Return the scores of all items and the parameters of the annotators."""
        method, start, n = self.method, self.start, len(self.trusted)
        prior, own = method.prior_of(self.trusted), self.former_own()

        def weights(model: Model, state: Any) -> StepResult:
            of_all = np.bincount(model.judged.row_annotator, model.judged.weight, model.n_own).astype(np.float64)
            return (model.n_preferences, of_all), None

        def reverse(point: Floats) -> Floats | None:
            better = _reverse(blocks, prior, point[:n], settled=start is not None)
            return None if better is None else np.append(better, point[n:])

        number, given = blocks.total(weights)
        rough = _majority_start(blocks, prior)
        if start is not None:
            items, former = start.items, start.scores

            def begin_with_former(model: Model, state: Any) -> StepResult:
                known = _former_scores(items, former, model.judged.items)
                return (0.0,), (model.levels.centre(np.where(np.isnan(known), state[0], known)),)

            blocks.total(begin_with_former)
        own = np.where(np.isnan(own), rough, np.clip(own, prior.low, prior.high))
        first = np.append(own, np.zeros(1 if method.ties == "davidson" else 0))
        point, trace = _climb_and_reverse(partial(self._climb, blocks, prior, number), reverse, first)
        own, tie = point[:n], point[n:]
        if not trace.converged:
            warn_unconverged(method_name(method), method.max_iter, trace.change, method.tol)
        slopes = self._slopes(blocks, prior, point)
        gap, n_decided = blocks.total(lambda model, state: (model.gap_sums(state[0]), None))
        if not self.trusted.any():
            accuracies = method.accuracies_at(gap / max(n_decided, 1.0), own, prior)
            warn_near_chance(method_name(method), accuracies, number)
        columns = [PartColumns(*part) for part in blocks.read(partial(_read_scores, method, own, tie, slopes))]
        estimates = {"tie": float(np.exp(tie[0]))} if len(tie) else {}
        return PartedFit(columns, trace, self.quality(blocks, own, given), estimates=estimates)

    def _climb(self, blocks: Blocks, prior: AnnotatorPrior, number: Floats, point: Floats) -> tuple[Floats, Trace]:
        """The parameters of largest likelihood, a tie parameter at their end, the scores being the best for each."""
        n = len(self.trusted)
        free = np.full(len(point) - n, np.inf)
        low, high = (np.append(np.full(n, end), far) for end, far in ((prior.low, -free), (prior.high, free)))

        def step(point: Floats) -> Step:
            here = self._slopes(blocks, prior, point)
            move = np.clip(here.slope / np.maximum(here.bend, here.least), -_MAX_STEP, _MAX_STEP)
            return Step(round(here.value, 8), np.clip(point + move, low, high))

        scale = np.sqrt(np.append(number, np.full(len(free), number.sum())) + 1.0)
        return accelerate(step, point, lower=low, upper=high, scale=scale, tol=self.tol, max_iter=self.method.max_iter)

    def _slopes(self, blocks: Blocks, prior: AnnotatorPrior, point: Floats) -> _Slopes:
        """The objective at the best scores, priors included, with slopes and curvatures of the parameters."""
        (own, tie), tol = np.split(point, [len(self.trusted)]), self.tol

        def at_best_scores(model: Model, state: Any) -> StepResult:
            if not len(model.pair_counts.second):
                return (0.0, np.zeros(len(point)), np.zeros(len(point))), (np.zeros(model.n_items),)
            direction = partial(model.newton_direction, tol=tol, scores_only=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                begin = np.concatenate([state[0], point])
                best: Any = newton(model.evaluate, direction, begin, tol=tol, max_iter=_MAX_INNER_STEPS)[1]
            value, slope, bend = best.value, best.gradient[model.n_items :], best.own_bend
            if len(tie):
                # the pull of the tie parameter is added once
                value += 0.5 * model.ridge * float(tie[0]) ** 2
                slope = slope + np.append(np.zeros(len(own)), model.ridge * tie)
                bend = np.append(bend, best.ties.tie_bend)
            return (value, slope, bend), (best.scores,)

        value, slope, bend = blocks.total(at_best_scores)
        log_prior, pull, least = prior.log_density(own)
        ridge = np.full(len(tie), self.method.ridge)
        pull, least = np.append(pull, -ridge * tie), np.append(least, ridge)
        return _Slopes(value + log_prior - 0.5 * float((ridge * tie**2).sum()), slope + pull, bend + least, least)


def _read_scores(method: Any, own: Floats, tie: Floats, slopes: _Slopes, model: Model, state: Any) -> StepResult:
    """Scores and standard errors of the items of a block; annotators adapt as far as all blocks let them."""
    (scores,) = state
    if not len(model.pair_counts.second):
        return (scores, np.full(len(scores), 1.0 / np.sqrt(model.ridge)), None, None, None), None
    here: Any = model.evaluate(np.concatenate([scores, own, tie]))
    gradient = np.concatenate([here.gradient[: model.n_items], slopes.slope])
    here = replace(here, own_bend=slopes.bend[: len(own)], gradient=gradient)
    if len(tie):
        here = replace(here, ties=here.ties._replace(tie_bend=float(slopes.bend[-1]) - model.ridge))
    return (settle_ties(method, model.judged, scores), model.standard_errors(here)[0], None, None, None), None


class _FitByAnnotator(_FitByBlocks):
    """Blocks by annotator of one query: scores are shared, and each block keeps the parameters of its annotators.

    A step finds the best annotators and returns the curvature of the scores, or, where these are many, its diagonal,
    and later steps multiply the curvature with vectors.
    """

    def lay_out(self, part: Preferences) -> Model:
        """Return the model of a block, its annotators numbered within it, without the pull of scores."""
        annotators, code = np.unique(part.row_annotator, return_inverse=True)
        model: Model = self.method._model(part, code.astype(np.int32), self.trusted[annotators])
        return replace(model, ridge=0.0)

    def solve(self, blocks: Blocks) -> PartedFit:
        """Return the scores of all items and the parameters of the annotators."""
        method, former, whole = self.method, self.former_own(), self.judged.n_items <= MAX_TABLE_ITEMS
        start: Floats | None = None

        def begin(model: Model, state: Any) -> StepResult:
            """Sums for rough scores, by how annotators agree with the former ones; their parameters are the state."""
            prior, preferences = model.prior, model.preferences
            surplus = prior.expected_surplus()[0]
            if start is not None:
                surplus = _start_surplus(prior, *_start_agreement(preferences, start, model.n_own))
            return _start_sums(preferences, surplus), (np.clip(prior.from_surplus(surplus), prior.low, prior.high),)

        def begin_with_former(model: Model, state: Any) -> StepResult:
            own = former[np.unique(model.judged.row_annotator)]
            return (0.0,), (np.clip(np.where(np.isnan(own), state[0], own), model.prior.low, model.prior.high),)

        for _ in range(_START_ROUNDS):
            start = _start_scores(*blocks.total(begin))
            start -= start.mean()
        blocks.total(begin)
        assert start is not None
        ((shrinkage,), *_) = blocks.each(lambda model, state: ((float(model.start_shrinkage),), None))
        scores = start * shrinkage
        if self.start is not None:
            known = _former_scores(self.start.items, self.start.scores, self.judged.items)
            scores = np.where(np.isnan(known), scores, known)
            blocks.total(begin_with_former)

        def climb(scores: Floats) -> Any:
            rest: Any = {"tol": method.tol, "max_iter": method.max_iter, "what": method_name(method)}
            evaluate, direction = partial(self._evaluate, blocks, whole), partial(self._direction, blocks)
            return newton(evaluate, direction, scores - scores.mean(), **rest)

        def reverse_parameters(model: Model, state: Any) -> StepResult:
            prior, (own,) = model.prior, state
            return (0.0,), (np.where(prior.trusted, own, np.clip(-own, prior.low, prior.high)),)

        def reverse(scores: Floats) -> Floats | None:
            def gains(model: Model, state: Any) -> StepResult:
                by_trusted = -float(_agreement(model, scores)[model.prior.trusted].sum())
                return (-float((model.prior.sign_cost * state[0]).sum()), by_trusted), None

            # by the priors, and by what the trusted say
            gain, by_trusted = blocks.total(gains)
            gain = by_trusted if self.trusted.any() else gain if self.start is None else 0.0
            if gain <= _MIN_GAIN:
                return None
            blocks.total(reverse_parameters)
            return -scores

        def parameters(model: Model, state: Any) -> StepResult:
            """The annotators of a block, their parameters and the weights of their preferences."""
            weights = np.bincount(model.judged.row_annotator, model.judged.weight).astype(np.float64)
            annotators = np.unique(model.judged.row_annotator)
            return (annotators, state[0], weights[annotators]), None

        scores, best, trace = _climb_and_reverse(climb, reverse, scores)
        n, n_own, centred = len(scores), len(self.trusted), scores - scores.mean()
        own, given = np.full(n_own, float(method.prior_of(self.trusted).default())), np.zeros(n_own)
        for annotators, own_here, weights in blocks.each(parameters):
            own[annotators], given[annotators] = own_here, weights
        if whole:
            centre = np.eye(n) - 1.0 / n
            inverse = np.linalg.pinv(best.curvature, hermitian=True)
            variance = np.maximum(np.diag(np.einsum("ij,jk,kl->il", centre, inverse, centre, optimize=True)), 0.0)
        else:
            from ...kernels.laplacian import probed_diagonal

            diagonal = np.maximum(best.curvature, _LEAST_CURVATURE)
            products = partial(self._products, blocks, scores)
            variance = probed_diagonal(products, diagonal, np.array([0, n]), n_probes=_N_PROBES, along=centred)
        # the same for all blocks, since these share their items
        columns = [PartColumns(settle_ties(method, self.judged.part(0), centred), np.sqrt(variance))]
        return PartedFit(columns, trace, self.quality(blocks, own, given))

    def _evaluate(self, blocks: Blocks, whole: bool, scores: Floats) -> _SharedPoint:
        """The objective at some scores, the annotators being the best for them, who are the new state.

        The ``whole`` curvature lets annotators adapt; otherwise it is the diagonal, annotators held fixed.
        """
        tol, ridge, n = self.tol, self.method.ridge, len(scores)

        def at_best_annotators(model: Model, state: Any) -> StepResult:
            (own,) = state
            if not len(model.preferences.code):
                return (0.0, np.zeros(n), np.zeros((n, n) if whole else n)), (own,)
            for _ in range(_MAX_INNER_STEPS):
                here = model.evaluate(np.concatenate([scores, own]))
                move = here.gradient[n : n + model.n_own] / np.maximum(here.own_bend, model.prior.log_density(own)[2])
                following = np.clip(own + np.clip(move, -_MAX_STEP, _MAX_STEP), model.prior.low, model.prior.high)
                change, own = float(np.abs(following - own).max(initial=0.0)), following
                if change <= tol:
                    break
            here = model.evaluate(np.concatenate([scores, own]))
            if not whole:
                return (here.value, here.gradient[:n], np.maximum(here.degree, 0.0)), (own,)
            curvature, first, second = np.diag(here.degree), model.preferences.first, model.preferences.second
            curvature[first, second] -= here.bend
            curvature[second, first] -= here.bend
            curvature -= model.explained_blocks(here, model.own_variances(here), np.zeros(1, np.int64), n)[0]
            return (here.value, here.gradient[:n], curvature), (own,)

        value, gradient, curvature = blocks.total(at_best_annotators)
        curvature = curvature + (ridge * np.eye(n) if whole else ridge)
        value -= 0.5 * ridge * float(np.square(scores).sum())
        return _SharedPoint(round(value, 8), gradient - ridge * scores, curvature, scores)

    def _products(self, blocks: Blocks, scores: Floats, columns: Floats) -> Floats:
        """The curvature at some scores times columns, (n_items, n), annotators adapting."""

        def product(model: Model, state: Any) -> StepResult:
            if not len(model.preferences.code):
                return (np.zeros(columns.shape),), None
            here = model.evaluate(np.concatenate([scores, state[0]]))
            return (model.score_curvature(here, model.own_variances(here))[0](columns),), None

        (image,) = blocks.total(product)
        return image + self.method.ridge * columns

    def _direction(self, blocks: Blocks, here: _SharedPoint) -> Floats:
        """The Newton step: by the whole matrix, along positive curvature, or by conjugate gradients, each a pass."""
        from ...kernels.laplacian import newton_step

        step: Floats
        if here.curvature.ndim == 2:
            values, vectors = np.linalg.eigh(here.curvature)
            size = np.maximum(np.abs(values), 1e-12)
            step = np.einsum("ij,j->i", vectors, np.einsum("ji,j->i", vectors, here.gradient) / size)
        else:
            diagonal = np.maximum(here.curvature, _LEAST_CURVATURE)
            step = newton_step(
                lambda vector: self._products(blocks, here.scores, vector[:, None])[:, 0], diagonal, here.gradient,
                tol=self.method.tol,
            )  # fmt: skip
            step = step - step.mean()
            step = step if float((step * here.gradient).sum()) > 0.0 else here.gradient / diagonal
        return step * min(1.0, _MAX_NEWTON_STEP / float(np.max(np.abs(step), initial=1e-300)))


class _SharedPoint(NamedTuple):
    """The objective at shared scores with its derivatives; of many scores, the diagonal of the curvature alone."""

    value: float
    gradient: Floats
    curvature: Floats
    scores: Floats

    @property
    def log_likelihood(self) -> float:
        """The objective itself."""
        return self.value
