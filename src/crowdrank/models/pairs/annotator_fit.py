"""Fit scores together with one parameter per annotator: what Crowd-BT and the multinomial preference model share.

First the steps of ``fit``; then the model that they maximise: start, Newton steps, orientation, standard errors.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS, Consensus, Trace
from ...data.judgments import Preferences
from ...errors import ConvergenceWarning, ParameterError
from ...fitting import newton
from ...pair_counts import PairCounts, warn_unbounded
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import LearnedQuality, trusted_annotators, warn_near_chance
from ...standard_errors import score_standard_errors
from .orientation import AnnotatorPrior, majority_start, parts_to_reverse

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from ...kernels.pairs import PreferencesByPair
    from ...kernels.probes import Products

_QUALITY_TOL = 1e-2
"""Tolerance of the fits for held-out quality: agreement with scores needs no more digits."""

_ROUGH_TOL = 0.3
"""Tolerance of a fit that only gives the start of another."""

_MAX_STEP = 1.0
_MAX_REVERSALS = 4
_MAX_EXACT_ITEMS_OF_DENSE_PAIRS = 1_500
_MAX_SQUARE_PER_PAIR = 4
_N_PROBES = 32
"""Random probes of the inverse; they leave one or two per cent of a standard error to chance."""


@dataclass(frozen=True, eq=False)
class AnnotatorFit:
    """The fit of a method that estimates a parameter of each annotator.

    Parameters
    ----------
    method
        The method.
    name, parameter
        Its name, and that of its parameter.
    model
        Returns the model of preferences, given them, the number of the parameter that each depends on, and which
        parameters are those of trusted annotators.
    to_parameter, from_parameter
        From the model's scale of a parameter to the one that users see, and back.
    per_query
        Whether annotators count as different ones in each query.
    tol, max_iter
        As for :func:`~crowdrank.fitting.newton`.
    """

    method: Any
    name: str
    parameter: str
    model: Callable[[Preferences, Ints, Bools], AnnotatorModel[Any]]
    to_parameter: Callable[[Floats], Floats]
    from_parameter: Callable[[Floats], Floats]
    per_query: bool
    tol: float
    max_iter: int

    def fit(self, preferences: Preferences, start: Consensus | None, trusted: Any | None) -> Consensus:
        """Return the consensus; warns of what the preferences leave undetermined."""
        is_trusted = trusted_annotators(preferences, trusted)
        maximum = self.maximise(preferences, is_trusted, self._former_start(start, preferences))
        model, point = maximum.model, maximum.point
        warn_unbounded(preferences.items, model.orient_pair_counts(model.own(point)), depth=4)
        if trusted is None:
            warn_near_chance(self.name, model.accuracies(point), model.n_preferences)
        own, scores = self.annotator_parameters(maximum, preferences), model.scores(point)
        std_error, covariance = model.standard_errors(maximum.best)
        rough = replace(self, tol=max(self.tol, _QUALITY_TOL))
        refit = partial(rough.scores, trusted=is_trusted, start=_Start(scores, own))
        quality = LearnedQuality(preferences, refit, {self.parameter: own}) if preferences.n_annotators else None
        return Consensus.of(
            self.method, preferences, scores, trace=maximum.trace, std_error=std_error, covariance=covariance,
            quality=quality, estimates=model.estimates(point),
        )  # fmt: skip

    def scores(self, preferences: Preferences, trusted: Bools | None = None, start: _Start | None = None) -> Floats:
        """Return the scores only."""
        trusted = np.zeros(preferences.n_annotators, bool) if trusted is None else trusted
        maximum = self.maximise(preferences, trusted, start)
        return maximum.model.scores(maximum.point)

    def maximise(self, preferences: Preferences, trusted: Bools, start: _Start | None) -> _Maximum:
        """Return the maximum of the objective."""
        code, owner = _parameter_codes(preferences, self.per_query)
        model = self.model(preferences, code, np.append(trusted, False)[owner])
        point = None
        if start is not None:
            point = model.complete(start.scores, self.from_parameter(np.append(start.own, np.nan)[owner]))
        point, best, trace = model.maximise(point, tol=self.tol, max_iter=self.max_iter, what=self.name)
        return _Maximum(model, point, best, trace, owner)

    def annotator_parameters(self, maximum: _Maximum, preferences: Preferences) -> Floats:
        """Return each annotator's parameter; with one per query, their mean over the annotator's preferences."""
        n, model, owner = preferences.n_annotators, maximum.model, maximum.owner
        if not n:
            return np.empty(0)
        own, number = self.to_parameter(model.own(maximum.point)), model.n_preferences
        # annotators without preferences keep the prior; queries of the others weigh by number of preferences
        weight = np.where(np.bincount(owner, number, n)[owner] > 0, number, 1.0)
        sums, total = np.bincount(owner, weight * own, n), np.bincount(owner, weight, n)
        idle = np.full(n, float(self.to_parameter(model.prior.default())))
        means: Floats = np.divide(sums, total, out=idle, where=total > 0)
        return means

    def _former_start(self, former: Consensus | None, preferences: Preferences) -> _Start | None:
        """Scores and parameters of a former consensus, NaN for new items and annotators."""
        if former is None:
            return None
        items, own = preferences.items, np.full(preferences.n_annotators, np.nan)
        scores = np.append(former.scores, np.nan)[former.items.codes(items.query_ids(), items.ids)]
        if former.learned is None:
            return _Start(scores, own)
        annotators, parameters = former.learned
        if self.parameter not in parameters:
            raise ParameterError(
                f"start= is a consensus of {former.method}, which has no {self.parameter} of annotators; start from a "
                "consensus of the same method, or leave start= out"
            )
        codes = annotators.codes(preferences.annotators.ids)
        return _Start(scores, np.append(parameters[self.parameter], np.nan)[codes])


class _Start(NamedTuple):
    """Scores and annotators' parameters to begin with, NaN where they are not known."""

    scores: Floats
    own: Floats


class _Maximum(NamedTuple):
    """A model, its best point and how it was reached; ``owner`` is the annotator that each parameter belongs to."""

    model: AnnotatorModel[Any]
    point: Floats
    best: Any
    trace: Trace
    owner: Ints


def _parameter_codes(preferences: Preferences, per_query: bool) -> tuple[Ints, Ints]:
    """Number of the parameter that each preference depends on, and the annotator that each parameter belongs to."""
    n = preferences.n_annotators
    by = preferences.annotator if n else np.zeros(len(preferences), np.int32)
    if not per_query:
        return by, np.arange(max(n, 1), dtype=np.int32)
    query = preferences.items.query[preferences.left]
    cells, code = np.unique(query.astype(np.int64) * max(n, 1) + by, return_inverse=True)
    return code.astype(np.int32), (cells % max(n, 1)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class ModelPoint:
    """The objective, priors included, at one point: its gradient, the parameters, and the annotators' own curvature."""

    value: float
    gradient: Floats
    scores: Floats
    own: Floats
    own_bend: Floats

    @property
    def log_likelihood(self) -> float:
        """The objective, priors included, which never falls from step to step."""
        return self.value


Point = TypeVar("Point", bound=ModelPoint)


@dataclass(frozen=True, eq=False)
class AnnotatorModel(ABC, Generic[Point]):
    """A model whose points hold the scores, then the annotators' parameters, and perhaps more.

    Parameters
    ----------
    preferences, pair_counts
        The preferences, sorted by pair, and their counts.
    prior
        Prior of the annotators' parameters.
    ridge
        Precision of the normal prior of scores.
    offsets
        Bounds of the items of each query.
    """

    preferences: PreferencesByPair
    pair_counts: PairCounts
    prior: AnnotatorPrior
    ridge: float
    offsets: Counts

    @abstractmethod
    def evaluate(self, point: Floats) -> Point:
        """Return the objective with its derivatives."""

    @abstractmethod
    def curvature(self, here: Point) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and a positive diagonal like its own."""

    @abstractmethod
    def score_curvature(self, here: Point, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when all else adapts to them.

        ``variances`` (n_annotators,) are those of the parameters when all else is fixed.
        """

    @abstractmethod
    def explained_blocks(self, here: Point, variances: Floats, firsts: Counts, size: int) -> Floats:
        """Return what to subtract from the matrices of ``laplacian`` for queries of this size."""

    @abstractmethod
    def laplacian(self, here: Point) -> tuple[Floats, Floats]:
        """Return the curvature of each pair and its sum at each item, as far as the matrix is a Laplacian."""

    @abstractmethod
    def accuracies(self, point: Floats) -> Floats:
        """Return the probability that each annotator orders an average pair as the scores do."""

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return further estimates of a point."""
        return {}

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

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts."""
        return np.concatenate([scores, own])

    def rough_start(self) -> tuple[Floats, Floats]:
        """Return scores and parameters on the majority's side."""
        return majority_start(self.preferences, self.levels, self.prior)

    def complete(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts; NaN are replaced by a guess from the preferences."""
        if np.isnan(scores).any() or np.isnan(own).any():
            rough = self.rough_start()
            scores, own = np.where(np.isnan(scores), rough[0], scores), np.where(np.isnan(own), rough[1], own)
        return self.join(self.levels.centred(scores), np.clip(own, self.prior.low, self.prior.high))

    def maximise(self, start: Floats | None, *, tol: float, max_iter: int, what: str) -> tuple[Floats, Point, Trace]:
        """Return the maximum of the objective, from a start or from the majority's side."""
        point = self.first_point(max_iter) if start is None else start
        direction = partial(self.newton_direction, tol=tol)
        n_iter, values, begin = 0, list[float](), point
        for _ in range(_MAX_REVERSALS):
            point, best, trace = newton(self.evaluate, direction, begin, tol=tol, max_iter=max_iter, what=what)
            n_iter, values = n_iter + trace.n_iter, [*values, *(trace.log_likelihood or ())]
            better = self.reverse_if_better(point, settled=start is not None)
            if better is None:
                break
            begin = better
        return point, best, replace(trace, n_iter=n_iter, log_likelihood=tuple(values))

    def maximise_roughly(self, max_iter: int) -> Floats:
        """Return a point near the maximum, for the fit proper to start from."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.maximise(None, tol=_ROUGH_TOL, max_iter=max_iter, what="")[0]

    def first_point(self, max_iter: int) -> Floats:
        """Return the point to start from."""
        if not self.prior.trusted.any():
            return self.join(*self.rough_start())
        # the others by themselves first; then the trusted annotators decide which way round they are
        others = self.preferences.without(self.prior.trusted)
        point = replace(self, preferences=others, prior=self.prior.without_trusted()).maximise_roughly(max_iter)
        better = self.reverse_if_better(point)
        point = point if better is None else better
        usual = self.prior.from_surplus(self.prior.expected_surplus()[0])
        self.own(point)[self.prior.trusted] = usual[self.prior.trusted]
        return point

    def newton_direction(self, here: Point, tol: float) -> Floats:
        """Return the Newton step, within the bounds of the parameters."""
        from ...kernels.laplacian import newton_step

        product, diagonal = self.curvature(here)
        gradient, fixed = here.gradient, self.n_items + np.flatnonzero(self.at_bound(here))
        if len(fixed):
            gradient, diagonal[fixed] = gradient.copy(), np.inf
            gradient[fixed] = 0.0
        step = self._clip_step(newton_step(product, diagonal, gradient, tol=tol), here)
        if float((gradient * step).sum()) > 0.0:
            return step
        # clipped at the bounds, a Newton step may lead downwards; a gradient step does not
        step = gradient / diagonal
        return self._clip_step(step * min(1.0, _MAX_STEP / float(np.max(np.abs(step), initial=1.0))), here)

    def _clip_step(self, step: Floats, here: Point) -> Floats:
        """The step with scores centred in their group and parameters within bounds."""
        n = self.n_items
        # a small ridge would leave the level of a group to rounding
        step[:n] = self.levels.centred(step[:n])
        own = step[n : n + self.n_own]
        own[:] = np.clip(here.own + own, self.prior.low, self.prior.high) - here.own
        return step

    def at_bound(self, here: Point) -> Bools:
        """Return which parameters are at a bound with a gradient pointing beyond it."""
        pull = here.gradient[self.n_items : self.n_items + self.n_own]
        return ((here.own >= self.prior.high) & (pull > 0)) | ((here.own <= self.prior.low) & (pull < 0))

    def reverse_if_better(self, point: Floats, *, settled: bool = False) -> Floats | None:
        """Return a better point with some scores reversed, ``None`` if there is none."""
        parts = self.scores(point), self.own(point)
        items, annotators = parts_to_reverse(self.preferences, self.levels, self.prior, *parts, settled=settled)
        if not items.any():
            return None
        point = point.copy()
        self.scores(point)[items] *= -1.0
        own = self.own(point)
        own[annotators] = np.clip(-own[annotators], self.prior.low, self.prior.high)
        return point

    def orient_pair_counts(self, own: Floats) -> PairCounts:
        """Return the pair counts with the preferences of reversed annotators reversed."""
        reverse = own < 0
        if not reverse.any():
            return self.pair_counts
        from ...kernels.pairs import OutcomeCounts, item_totals
        from .kernels.pair_likelihood import reversed_margins

        margin, number = self.pair_counts.margin + reversed_margins(self.preferences, reverse), self.pair_counts.number
        wins, losses = 0.5 * (number + margin), 0.5 * (number - margin)
        pairs = (self.preferences.starts, self.preferences.second)
        won, lost = item_totals(OutcomeCounts(*pairs, wins, losses, np.zeros(len(wins))))
        return self.pair_counts._replace(margin=margin, wins=won, losses=lost)

    def standard_errors(self, best: Point) -> tuple[Floats, tuple[Floats | None, ...]]:
        """Return standard errors and covariances of the scores, with all else free to adapt.

        The covariance of a query takes the scores of other queries as fixed.
        """
        # annotators at a bound do not adapt
        fixed = self.at_bound(best) | (best.own_bend <= 0.0)
        variances = np.where(fixed, 0.0, 1.0 / np.where(fixed, 1.0, best.own_bend))
        bend, degree = self.laplacian(best)
        pairs = (self.preferences.starts, self.preferences.second, bend, degree)

        def less(firsts: Counts, size: int, flat: bool) -> Floats:
            # halfway between two equally good sides there is a maximum only if annotators are taken as fixed
            return self.explained_blocks(best, np.zeros(self.n_own) if flat else variances, firsts, size)

        # with many pairs, products with them take longer than inverting the matrix
        dense = _MAX_SQUARE_PER_PAIR * len(self.preferences.second) >= self.n_items**2
        return score_standard_errors(
            *pairs, self.ridge, self.offsets, probe=partial(self._probe_variances, best, variances), less=less,
            exact=_MAX_EXACT_ITEMS_OF_DENSE_PAIRS if dense else COVARIANCE_ITEMS,
        )  # fmt: skip

    def _probe_variances(self, best: Point, variances: Floats) -> Floats:
        """Variance of each score, estimated by random probes."""
        from ...kernels.probes import probed_diagonal

        products, diagonal = self.score_curvature(best, variances)
        # annotators leave the scale of all scores most uncertain
        return probed_diagonal(products, diagonal, self.offsets, n_probes=_N_PROBES, along=best.scores)
