"""Linear rankers: one weight per feature, found by Newton steps on a convex loss of the scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ..data.consensus import Trace
from ..fitting import newton
from ..protocols import Floats, method_name
from ..wording import expect_above, expect_at_least, one_of
from .linear_score import WeightedFeatures
from .lists import Lists
from .losses import ScoreLoss
from .matrix import SCALES, Design, Matrix, learn_scaling
from .stopping import Watch

_MAX_DIRECT_FEATURES = 512
"""Up to this many features Newton's equations are solved outright, beyond by conjugate gradients."""

_QUERY_SCALE_SPREAD = 0.25
"""About the standard deviation of a feature that runs from 0 to 1 within each query."""


class Point(NamedTuple):
    """The objective at some weights, to be raised: less the loss, less the penalty."""

    value: float
    gradient: Floats
    log_likelihood: float
    weights: Floats
    loss: Any
    """What the rows keep of the loss at the weights."""


class RowLoss(Protocol):
    """The loss of training rows as a function of the weights, wherever the rows are."""

    @property
    def n_features(self) -> int:
        """Number of weights."""
        ...

    def at(self, weights: Floats) -> tuple[float, Floats, Any]:
        """Return the loss, its slope in each weight, and what the two next need to know."""
        ...

    def curvature(self, here: Any) -> Floats:
        """Return the second derivatives, (n_features, n_features)."""
        ...

    def product(self, here: Any, along: Floats) -> Floats:
        """Return the second derivatives times a vector."""
        ...

    def diagonal(self) -> Floats:
        """Return about the diagonal of the second derivatives."""
        ...


class LinearRanker(WeightedFeatures):
    """Base of the linear rankers; one gives the loss of its scores.

    A ranker has the parameters ``scale``, ``ridge``, ``tol`` and ``max_iter``, and ``weights_`` once it is fitted.
    """

    _usual_ridge: ClassVar[float]

    scale: str
    ridge: float | None
    tol: float
    max_iter: int

    @abstractmethod
    def _loss(self, lists: Lists) -> Callable[[Floats], ScoreLoss]:
        """What returns the loss at the scores of the lists' places."""

    @abstractmethod
    def _divisor(self, lists: Lists) -> float:
        """What the loss of the lists is divided by: parts of the lists count by their share of it."""

    @property
    def used_ridge(self) -> float:
        """The ridge, the usual one where none is given."""
        if self.ridge is not None:
            return self.ridge
        return usual_ridge(self._usual_ridge, self.scale)

    def _order_lists(self, lists: Lists) -> Lists:
        """The lists in the order that the loss needs."""
        return lists

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        one_of(self.scale, SCALES, "scale")
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-9 for none")
        expect_above(self, 0, "tol")
        expect_at_least(self, 1, "max_iter")

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Scale the features and find the weights."""
        from ..kernels.threads import one_blas_thread

        lists = self._order_lists(lists)
        # blocks are shared among threads already, and a library's own would wait for each other on a busy machine
        with one_blas_thread():
            self.scaling_ = learn_scaling(self.scale, matrix, lists)
            design = Design(matrix, lists.rows, lists.offsets, self.scaling_)
            self.weights_, self.trace_ = self._solve(design, lists, self.follower(watch))
        self.n_iter_ = self.trace_.n_iter

    def _solve(
        self, design: Design, lists: Lists, follow: Callable[[int, float, Floats], bool]
    ) -> tuple[Floats, Trace]:
        """The weights where loss and penalty are least."""
        return self.descend(HeldRows(design, self._loss(lists), share_of_places(lists)), follow)

    def descend(self, rows: RowLoss, follow: Callable[[int, float, Floats], bool]) -> tuple[Floats, Trace]:
        """Return the weights where loss and penalty are least, by Newton steps."""
        evaluate, direction = penalise(rows, self.used_ridge, self.tol)
        steps = 0

        def follow_and_step(here: Point) -> Floats:
            nonlocal steps
            follow(steps, -here.value, here.weights)
            steps += 1
            return direction(here)

        start = np.zeros(rows.n_features)
        weights, best, trace = newton(
            evaluate, follow_and_step, start, tol=self.tol, max_iter=self.max_iter, what=method_name(self)
        )
        follow(steps, -best.value, weights)
        return weights, trace

    def follower(self, watch: Watch) -> Callable[[int, float, Floats], bool]:
        """Return what takes note of an iterate, measured on the validation rows if there are any."""
        held = watch.held
        if held is None:
            return lambda step, objective, weights: watch.note(step, objective=objective)
        design = Design(held.matrix, held.lists.rows, held.lists.offsets, self.scaling_)
        return lambda step, objective, weights: watch.note(step, objective=objective, scores=design.scores(weights))


def usual_ridge(ridge: float, scale: str) -> float:
    """Return the ridge that does to features of some scale what this one does with ``scale="overall"``."""
    return ridge * (_QUERY_SCALE_SPREAD**2 if scale == "query" else 1.0)


def share_of_places(lists: Lists) -> Floats:
    """Return about what each place adds to the curvature."""
    shares: Floats = np.repeat(lists.query_weights() / np.diff(lists.offsets), np.diff(lists.offsets))
    return shares


@dataclass(frozen=True, eq=False)
class HeldRows:
    """The loss of rows in memory; ``share`` is about what each place adds to the curvature."""

    design: Design
    loss: Callable[[Floats], ScoreLoss]
    share: Floats

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return self.design.n_features

    def at(self, weights: Floats) -> tuple[float, Floats, ScoreLoss]:
        """Return the loss, its slope in each weight, and the loss in the scores."""
        here = self.loss(self.design.scores(weights))
        return here.value, self.design.pulls(here.slopes), here

    def curvature(self, here: ScoreLoss) -> Floats:
        """Return the second derivatives, (n_features, n_features)."""
        return self.design.curvature(here.bend)

    def product(self, here: ScoreLoss, along: Floats) -> Floats:
        """Return the second derivatives times a vector."""
        last = len(self.design.offsets) - 1
        return self.design.pulls(here.bend(0, last, self.design.scores(along)[:, None])[:, 0])

    def diagonal(self) -> Floats:
        """Return about the diagonal of the second derivatives."""
        return self.design.squares(self.share)


def penalised_objective(
    design: Design, loss: Callable[[Floats], ScoreLoss], share: Floats, ridge: float, tol: float
) -> tuple[Callable[[Floats], Point], Callable[[Point], Floats]]:
    """Return :func:`penalise` of rows in memory; ``share`` is about what each place adds to the curvature."""
    return penalise(HeldRows(design, loss, share), ridge, tol)


def penalise(rows: RowLoss, ridge: float, tol: float) -> tuple[Callable[[Floats], Point], Callable[[Point], Floats]]:
    """Return functions that evaluate the penalised objective and give the Newton step from an evaluated point."""

    def evaluate(weights: Floats) -> Point:
        loss, slopes, here = rows.at(weights)
        value = -loss - 0.5 * ridge * float(weights @ weights)
        return Point(value, -slopes - ridge * weights, -loss, weights, here)

    def direction(here: Point) -> Floats:
        if rows.n_features <= _MAX_DIRECT_FEATURES:
            from scipy.linalg import cho_factor, cho_solve

            curvature = rows.curvature(here.loss)
            curvature.flat[:: rows.n_features + 1] += ridge
            step: Floats = cho_solve(cho_factor(curvature, overwrite_a=True), here.gradient)
            return step
        return _approximate_step(rows, here, ridge, tol)

    return evaluate, direction


def _approximate_step(rows: RowLoss, here: Point, ridge: float, tol: float) -> Floats:
    """The Newton step by conjugate gradients, no more exact than it need be."""
    from ..kernels.laplacian import newton_step

    def product(along: Floats) -> Floats:
        return rows.product(here.loss, along) + ridge * along

    return newton_step(product, rows.diagonal() + ridge, here.gradient, tol=tol, longest=np.inf)
