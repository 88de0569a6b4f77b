"""The model that Crowd-BT maximises: scores, one parameter per annotator, and perhaps one for ties.

First what models with a parameter per annotator share: start, Newton steps, orientation, standard errors. Then the
likelihood of Crowd-BT, in which the odds of a preference depend on its pair and on a parameter of the annotator.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS, Trace
from ...data.judgments import Preferences
from ...errors import ConvergenceWarning
from ...fitting import newton
from ...pair_counts import PairCounts, sort_and_count
from ...protocols import Bools, Counts, Floats, Ints
from ...standard_errors import score_standard_errors
from .annotator_fit import AnnotatorPrior, majority_start, parts_to_reverse

if TYPE_CHECKING:
    from ...kernels.laplacian import Product, Products
    from ...kernels.pairs import PreferencesByPair
    from .kernels.pair_likelihood import Curve, TieModel

_ROUGH_TOL = 0.3
"""Tolerance of a fit that only gives the start of another."""

_MAX_STEP = 1.0
MAX_REVERSALS = 4
_MAX_EXACT_ITEMS_OF_DENSE_PAIRS = 1_500
_MAX_SQUARE_PER_PAIR = 4
_N_PROBES = 32
"""Random probes of the inverse; they leave one or two per cent of a standard error to chance."""

_MAX_CELLS_PER_PREFERENCE = 4
_MAX_ITEMS_WITHOUT_THREADS = 64
_THINNING_STEP = 4
_MIN_PREFERENCES_TO_THIN = 400_000
_MIN_PREFERENCES_PER_PARAMETER = 10


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

    start_shrinkage: ClassVar[float] = 1.0
    """By how much rough scores are drawn together."""

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
        scores, own = majority_start(self.preferences, self.levels, self.prior)
        return self.start_shrinkage * scores, own

    def gap_sums(self, scores: Floats) -> tuple[float, float]:
        """Return the sum over preferences of how far apart their items are, at most 1 each, and their number."""
        gap = np.tanh(0.5 * np.abs(scores[self.preferences.first] - scores[self.preferences.second]))
        decided = np.diff(self.preferences.bounds)
        return float((gap * decided).sum()), float(decided.sum())

    def complete(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts; NaN are replaced by a guess from the preferences."""
        if np.isnan(scores).any() or np.isnan(own).any():
            rough = self.rough_start()
            scores, own = np.where(np.isnan(scores), rough[0], scores), np.where(np.isnan(own), rough[1], own)
        return self.join(self.levels.centre(scores), np.clip(own, self.prior.low, self.prior.high))

    def maximise(self, start: Floats | None, *, tol: float, max_iter: int, what: str) -> tuple[Floats, Point, Trace]:
        """Return the maximum of the objective, from a start or from the majority's side."""
        point = self.first_point(max_iter) if start is None else start
        direction = partial(self.newton_direction, tol=tol)
        n_iter, values, begin = 0, list[float](), point
        for _ in range(MAX_REVERSALS):
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
        step[:n] = self.levels.centre(step[:n])
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
        from ...kernels.laplacian import probed_diagonal

        products, diagonal = self.score_curvature(best, variances)
        # annotators leave the scale of all scores most uncertain
        return probed_diagonal(products, diagonal, self.offsets, n_probes=_N_PROBES, along=best.scores)


class TieModels(NamedTuple):
    """Davidson's model of which preferences are ties: that of all preferences, less that of the decided ones."""

    every: TieModel
    decided: TieModel


@dataclass(frozen=True, eq=False)
class PairwisePoint(ModelPoint):
    """The objective at one point, and the parts of its curvature.

    ``slope`` is the derivative of the likelihood's parameter of each annotator by that of the point, ``own_least`` the
    prior's part of ``own_bend``; ``bend`` and ``degree`` are those of the Laplacian.
    """

    own_least: Floats
    slope: Floats
    curve: Curve
    bend: Floats
    degree: Floats
    ties: TieModels | None


@dataclass(frozen=True, eq=False)
class PairwiseModel(AnnotatorModel[PairwisePoint]):
    """Preferences whose odds depend on the pair and on a parameter of the annotator.

    Parameters
    ----------
    tied
        Number of ties of each pair where Davidson's model explains them; the point then ends with the logarithm of its
        parameter.
    dense
        Whether there is room for a table of items and annotators.
    """

    tied: Floats | None
    dense: bool

    @classmethod
    def of(
        cls, preferences: Preferences, annotator: Ints, prior: AnnotatorPrior, *, ties: str, ridge: float
    ) -> PairwiseModel:
        """Return the model of preferences by annotators with these codes; ``ties`` as for Bradley-Terry."""
        by_pair, pair_counts, tied = sort_and_count(preferences, annotator, ties)
        dense = _table_fits(preferences.n_items, len(prior.trusted), len(by_pair.code))
        return cls(by_pair, pair_counts, prior, ridge, preferences.items.offsets, tied, dense)

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and an even tie parameter."""
        return np.concatenate([scores, own, [0.0] if self.tied is not None else []])

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return the tie parameter of a point where the model has one."""
        return {} if self.tied is None else {"tie": float(np.exp(point[-1]))}

    def first_point(self, max_iter: int) -> Floats:
        """Return the point to start from: that of a fit of every fourth pair where these are many."""
        enough = _THINNING_STEP * _MIN_PREFERENCES_PER_PARAMETER * (self.n_items + self.n_own)
        few = len(self.preferences.code) < max(_MIN_PREFERENCES_TO_THIN, enough)
        if few or self.prior.trusted.any():
            return super().first_point(max_iter)
        from ...kernels.laplacian import connected_groups

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

    def evaluate(self, point: Floats) -> PairwisePoint:
        """Return the objective with its derivatives."""
        from .kernels.pair_likelihood import evaluate_preferences

        scores, own = self.scores(point), self.own(point)
        transform, slope, turn = self.prior.transform(own)
        curve = evaluate_preferences(self.preferences, self.prior.model, scores, transform, dense=self.dense)
        log_prior, pull, least = self.prior.log_density(own)
        value = curve.log_likelihood + log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient, bend, degree, rest = curve.gradient - self.ridge * scores, curve.bend, curve.degree, np.empty(0)
        ties = self._tie_models(point)
        if ties is not None:
            every, decided = ties
            value += every.log_likelihood - decided.log_likelihood - 0.5 * self.ridge * float(point[-1]) ** 2
            gradient = gradient + every.gradient - decided.gradient
            bend, degree = bend + every.bend - decided.bend, degree + every.degree - decided.degree
            rest = np.array([every.tie_gradient - self.ridge * float(point[-1])])
        gradient = np.concatenate([gradient, curve.own_gradient * slope + pull, rest])
        own_bend = curve.own_bend * slope**2 - curve.own_gradient * turn + least
        return PairwisePoint(value, gradient, scores, own, own_bend, least, slope, curve, bend, degree, ties)

    def _tie_models(self, point: Floats) -> TieModels | None:
        """Davidson's model at a point, if ties have a parameter."""
        if self.tied is None:
            return None
        from .kernels.pair_likelihood import evaluate_ties

        c, scores = self.pair_counts, self.scores(point)
        pairs, level, n_ties = (c.starts, c.second), np.zeros(len(c.second)), float(self.tied.sum())
        every = evaluate_ties(*pairs, level, c.number, scores, float(np.exp(point[-1])), n_ties)
        return TieModels(every, evaluate_ties(*pairs, level, c.number - self.tied, scores, 0.0, 0.0))

    def curvature(self, here: PairwisePoint) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and a positive diagonal like its own."""
        n, m, joint = self.n_items, self.n_own, self._joint_product(here)
        diagonal = [np.maximum(here.degree, 0.0) + self.ridge, np.maximum(here.own_bend, here.own_least)]
        cross, corner = np.empty(0), 0.0
        if here.ties is not None:
            cross, corner = here.ties.every.cross, here.ties.every.tie_bend + self.ridge
            diagonal.append(np.array([corner]))

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n : n + m]
            to_items, to_own = joint(items, here.slope * own)
            image = [to_items, here.slope * to_own + here.own_bend * own]
            if here.ties is not None:
                image[0] += vector[-1] * cross
                image.append(np.array([float((cross * items).sum()) + vector[-1] * corner]))
            return np.concatenate(image)

        return product, np.concatenate(diagonal)

    def _joint_product(self, here: PairwisePoint) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
        """Product with the curvature in scores and the likelihood's parameters, without the diagonal of the latter."""
        from ...kernels.laplacian import laplacian_product
        from .kernels.pair_likelihood import joint_product

        diagonal, cross = here.degree + self.ridge, here.curve.cross
        in_scores = laplacian_product(self.preferences.starts, self.preferences.second, here.bend, diagonal)

        def joint(items: Floats, own: Floats) -> tuple[Floats, Floats]:
            if not self.dense:
                to_items, to_own = joint_product(self.preferences, here.curve, here.bend, items, own)
                return to_items + diagonal * items, to_own
            # a matrix product would wake the threads of the linear algebra library, which then wait on a core
            return in_scores(items) + np.einsum("ik,k->i", cross, own), np.einsum("ik,i->k", cross, items)

        return joint

    def laplacian(self, here: PairwisePoint) -> tuple[Floats, Floats]:
        """Return the curvature of each pair, and its sum at each item."""
        return here.bend, here.degree

    def score_curvature(self, here: PairwisePoint, variances: Floats) -> tuple[Products, Floats]:
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

    def _tie_variance(self, here: PairwisePoint) -> tuple[Floats, float]:
        """Curvature between tie parameter and scores, and the variance of its logarithm when all else is fixed."""
        if here.ties is None:
            return np.zeros(self.n_items), 0.0
        return here.ties.every.cross, 1.0 / (here.ties.every.tie_bend + self.ridge)

    def explained_blocks(self, here: PairwisePoint, variances: Floats, firsts: Counts, size: int) -> Floats:
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
