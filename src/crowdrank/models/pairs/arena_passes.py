"""Crowd-BT and the multinomial preference model over parts by annotator, for one query with most judgments.

Parts keep their annotators and the scores are shared: a pass finds the best annotators and returns the curvature of the
scores, or, where these are many, its diagonal, and later passes multiply the curvature with vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import settle_ties
from ...data.judgments import Preferences
from ...data.parted import PartColumns, PartedFit
from ...fitting import newton
from ...protocols import Blocks, Floats, Statistics, method_name
from .annotator_fit import MIN_GAIN, START_ROUNDS, start_agreement, start_scores, start_sums, start_surplus, support
from .annotator_model import MAX_REVERSALS
from .annotator_passes import MAX_INNER_STEPS, MAX_STEP, AnnotatorPasses, PairPart

MAX_TABLE_ITEMS = 2_000
"""Items up to which the curvature of the scores is a table of their squares."""

_N_PROBES = 32
_LEAST_CURVATURE = 1e-12
_MAX_NEWTON_STEP = 8.0


class ArenaPasses(AnnotatorPasses):
    """Parts by annotator of one query: scores are shared, and each part keeps the parameters of its annotators."""

    def lay_out(self, part: Preferences) -> PairPart:
        """Return the preferences sorted by pair, their annotators numbered within the part."""
        by = part.row_annotator
        annotators, code = np.unique(by, return_inverse=True)
        model = self.method._model(part, code.astype(np.int32), self.all_trusted[annotators])
        # the pull of the scores is added once
        return PairPart(part, replace(model, ridge=0.0), annotators.astype(np.int32))

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores of all items and the parameters of the annotators."""
        method, former, whole = self.method, self._former_own(), self.judged.n_items <= MAX_TABLE_ITEMS
        direction: Callable[[_SharedPoint], Floats] = _dense_direction
        if not whole:
            direction = partial(self._approximate_direction, sums)
        scores = self._first_point(sums)
        if self.start is not None:
            known = np.append(self.start.scores, np.nan)[
                self.start.items.codes(self.judged.items.query_ids(), self.judged.items.ids)
            ]
            scores = np.where(np.isnan(known), scores, known)
            sums.total(partial(_former_parameters, former))
        n_iter, values = 0, list[float]()
        for _ in range(MAX_REVERSALS):
            scores, best, trace = newton(
                partial(self._evaluate, sums, whole), direction, scores - scores.mean(), tol=method.tol,
                max_iter=method.max_iter, what=method_name(method),
            )  # fmt: skip
            n_iter, values = n_iter + trace.n_iter, [*values, *(trace.log_likelihood or ())]
            gain, by_trusted = sums.total(partial(_gain_of_reversal, scores))
            gain = by_trusted if self.trusted.any() else gain if self.start is None else 0.0
            if gain <= MIN_GAIN:
                break
            scores = -scores
            sums.total(_reverse_parameters)
        own, given = self._own_of_parts(sums.each(_parameters))
        columns = self._columns(scores, best, sums)
        trace = replace(trace, n_iter=n_iter, log_likelihood=tuple(values))
        return PartedFit(columns, trace, self._quality(sums, own, given))

    def _first_point(self, sums: Blocks) -> Floats:
        """Scores to begin with, and parameters as states of the parts."""
        scores: Floats | None = None
        for _ in range(START_ROUNDS):
            scores = start_scores(*sums.total(partial(_rough_parameters, scores)))
            scores -= scores.mean()
        sums.total(partial(_rough_parameters, scores))
        assert scores is not None
        (shrinkage,) = sums.each(_shrinkage)[0]
        shrunk: Floats = scores * shrinkage
        return shrunk

    def _evaluate(self, sums: Blocks, whole: bool, scores: Floats) -> _SharedPoint:
        """The objective at some scores, the annotators being the best for them."""
        value, gradient, curvature = sums.total(partial(_best_parameters, scores, self.tol, whole))
        ridge = self.method.ridge
        curvature = curvature + (ridge * np.eye(len(scores)) if whole else ridge)
        value -= 0.5 * ridge * float(np.square(scores).sum())
        return _SharedPoint(round(value, 8), gradient - ridge * scores, curvature, scores)

    def _products(self, sums: Blocks, scores: Floats, columns: Floats) -> Floats:
        """The curvature at some scores times columns, (n_items, n)."""
        (image,) = sums.total(partial(_curvature_products, scores, columns))
        product: Floats = image + self.method.ridge * columns
        return product

    def _approximate_direction(self, sums: Blocks, here: _SharedPoint) -> Floats:
        """The Newton step by conjugate gradients, each of which is a pass."""
        from ...kernels.laplacian import newton_step

        diagonal = np.maximum(here.curvature, _LEAST_CURVATURE)
        step = newton_step(
            lambda vector: self._products(sums, here.scores, vector[:, None])[:, 0], diagonal, here.gradient,
            tol=self.method.tol,
        )  # fmt: skip
        step = step - step.mean()
        step = step if float((step * here.gradient).sum()) > 0.0 else here.gradient / diagonal
        return step * min(1.0, _MAX_NEWTON_STEP / float(np.max(np.abs(step), initial=1e-300)))

    def _own_of_parts(self, parts: list[Statistics]) -> tuple[Floats, Floats]:
        """Parameters and weights of all annotators from those of the parts."""
        own, given = np.full(self.n_own, float(self.prior().default())), np.zeros(self.n_own)
        for annotators, values, weights in parts:
            own[annotators], given[annotators] = values, weights
        return own, given

    def _columns(self, scores: Floats, best: _SharedPoint, sums: Blocks) -> list[PartColumns]:
        """Scores and standard errors, centred; the same for all parts, since these share their items."""
        n, first = len(scores), self.judged.part(0)
        if best.curvature.ndim == 1:
            from ...kernels.laplacian import probed_diagonal

            variance = probed_diagonal(
                partial(self._products, sums, scores), np.maximum(best.curvature, _LEAST_CURVATURE), np.array([0, n]),
                n_probes=_N_PROBES, along=scores - scores.mean(),
            )  # fmt: skip
            return [PartColumns(settle_ties(self.method, first, scores - scores.mean()), np.sqrt(variance))]
        centre = np.eye(n) - 1.0 / n
        covariance = np.einsum(
            "ij,jk,kl->il", centre, np.linalg.pinv(best.curvature, hermitian=True), centre, optimize=True
        )
        std_error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return [PartColumns(settle_ties(self.method, first, scores - scores.mean()), std_error)]


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


def _dense_direction(here: _SharedPoint) -> Floats:
    """The Newton step by the whole matrix, along positive curvature."""
    values, vectors = np.linalg.eigh(here.curvature)
    size = np.maximum(np.abs(values), 1e-12)
    step: Floats = np.einsum("ij,j->i", vectors, np.einsum("ji,j->i", vectors, here.gradient) / size)
    return step * min(1.0, _MAX_NEWTON_STEP / float(np.max(np.abs(step), initial=1e-300)))


def _rough_parameters(scores: Floats | None, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Sums for rough scores, with the annotators' agreement with former ones, whose parameters are the new state."""
    model = part.model
    prior, preferences = model.prior, model.preferences
    surplus = prior.expected_surplus()[0]
    if scores is not None:
        surplus = start_surplus(prior, *start_agreement(preferences, scores, model.n_own))
    own = np.clip(prior.from_surplus(surplus), prior.low, prior.high)
    return start_sums(preferences, surplus), (own,)


def _shrinkage(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """By how much rough scores are drawn together."""
    return (float(part.model.start_shrinkage),), None


def _former_parameters(former: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Parameters of a former consensus as the state, the rough ones for new annotators."""
    own = former[part.annotators]
    return (0.0,), (np.clip(np.where(np.isnan(own), state[0], own), part.model.prior.low, part.model.prior.high),)


def _best_parameters(scores: Floats, tol: float, whole: bool, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The objective, gradient and curvature of the scores at the best annotators, who are the new state.

    The ``whole`` curvature lets annotators adapt; otherwise it is the diagonal, annotators held fixed.
    """
    model, (own,), n = part.model, state, len(scores)
    if not len(model.preferences.code):
        return (0.0, np.zeros(n), np.zeros((n, n) if whole else n)), (own,)
    for _ in range(MAX_INNER_STEPS):
        here = model.evaluate(np.concatenate([scores, own]))
        least = model.prior.log_density(own)[2]
        move = here.gradient[n : n + model.n_own] / np.maximum(here.own_bend, least)
        following = np.clip(own + np.clip(move, -MAX_STEP, MAX_STEP), model.prior.low, model.prior.high)
        change, own = float(np.abs(following - own).max(initial=0.0)), following
        if change <= tol:
            break
    here = model.evaluate(np.concatenate([scores, own]))
    bend, degree = model.laplacian(here)
    if not whole:
        return (here.value, here.gradient[:n], np.maximum(degree, 0.0)), (own,)
    variances = _variances(model, here)
    curvature = np.diag(degree)
    first, second = model.preferences.first, model.preferences.second
    curvature[first, second] -= bend
    curvature[second, first] -= bend
    curvature -= model.explained_blocks(here, variances, np.zeros(1, np.int64), n)[0]
    return (here.value, here.gradient[:n], curvature), (own,)


def _variances(model: Any, here: Any) -> Floats:
    """Variance of each annotator's parameter when all else is fixed, 0 at a bound."""
    fixed = model.at_bound(here) | (here.own_bend <= 0.0)
    return np.where(fixed, 0.0, 1.0 / np.where(fixed, 1.0, here.own_bend))


def _curvature_products(scores: Floats, columns: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The curvature of the scores, annotators adapting, times columns."""
    model = part.model
    if not len(model.preferences.code):
        return (np.zeros(columns.shape),), None
    here = model.evaluate(np.concatenate([scores, state[0]]))
    return (model.score_curvature(here, _variances(model, here))[0](columns),), None


def _gain_of_reversal(scores: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """What reversing everything gains: by the priors, and by what the trusted say."""
    model, (own,) = part.model, state
    agreement = np.bincount(
        model.preferences.annotator, support(model.preferences, model.prior, scores, np.ones(model.n_own)), model.n_own
    )
    by_trusted = -float(agreement[model.prior.trusted].sum())
    return (-float((model.prior.sign_cost * own).sum()), by_trusted), None


def _reverse_parameters(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Reverse all annotators but the trusted."""
    prior, (own,) = part.model.prior, state
    return (0.0,), (np.where(prior.trusted, own, np.clip(-own, prior.low, prior.high)),)


def _parameters(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The annotators of a part, their parameters and the weights of their preferences."""
    return (part.annotators, state[0], part.annotator_weights), None
