"""Linear rankers: one weight per feature, found by Newton steps on a convex loss of the scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

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
    loss: ScoreLoss


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
            self.weights_, self.trace_ = self._solve(design, lists, self._follower(watch))
        self.n_iter_ = self.trace_.n_iter

    def _solve(
        self, design: Design, lists: Lists, follow: Callable[[int, float, Floats], bool]
    ) -> tuple[Floats, Trace]:
        """The weights where loss and penalty are least."""
        share = np.repeat(lists.query_weights() / np.diff(lists.offsets), np.diff(lists.offsets))
        evaluate, direction = penalised_objective(design, self._loss(lists), share, self.used_ridge, self.tol)
        steps = 0

        def follow_and_step(here: Point) -> Floats:
            nonlocal steps
            follow(steps, -here.value, here.weights)
            steps += 1
            return direction(here)

        start = np.zeros(design.n_features)
        weights, best, trace = newton(
            evaluate, follow_and_step, start, tol=self.tol, max_iter=self.max_iter, what=method_name(self)
        )
        follow(steps, -best.value, weights)
        return weights, trace

    def _follower(self, watch: Watch) -> Callable[[int, float, Floats], bool]:
        """What takes note of an iterate, measured on the validation rows if there are any."""
        held = watch.held
        if held is None:
            return lambda step, objective, weights: watch.note(step, objective=objective)
        design = Design(held.matrix, held.lists.rows, held.lists.offsets, self.scaling_)
        return lambda step, objective, weights: watch.note(step, objective=objective, scores=design.scores(weights))


def usual_ridge(ridge: float, scale: str) -> float:
    """Return the ridge that does to features of some scale what this one does with ``scale="overall"``."""
    return ridge * (_QUERY_SCALE_SPREAD**2 if scale == "query" else 1.0)


def penalised_objective(
    design: Design, loss: Callable[[Floats], ScoreLoss], share: Floats, ridge: float, tol: float
) -> tuple[Callable[[Floats], Point], Callable[[Point], Floats]]:
    """Return functions that evaluate the objective and give the Newton step from an evaluated point.

    ``share`` is about what each place adds to the curvature.
    """

    def evaluate(weights: Floats) -> Point:
        here = loss(design.scores(weights))
        value = -here.value - 0.5 * ridge * float(weights @ weights)
        return Point(value, -design.pulls(here.slopes) - ridge * weights, -here.value, weights, here)

    def direction(here: Point) -> Floats:
        if design.n_features <= _MAX_DIRECT_FEATURES:
            from scipy.linalg import cho_factor, cho_solve

            curvature = design.curvature(here.loss.bend)
            curvature.flat[:: design.n_features + 1] += ridge
            step: Floats = cho_solve(cho_factor(curvature, overwrite_a=True), here.gradient)
            return step
        return _approximate_step(design, here, share, ridge, tol)

    return evaluate, direction


def _approximate_step(design: Design, here: Point, share: Floats, ridge: float, tol: float) -> Floats:
    """The Newton step by conjugate gradients, no more exact than it need be."""
    from ..kernels.laplacian import newton_step

    last = len(design.offsets) - 1

    def product(along: Floats) -> Floats:
        return design.pulls(here.loss.bend(0, last, design.scores(along)[:, None])[:, 0]) + ridge * along

    return newton_step(product, design.squares(share) + ridge, here.gradient, tol=tol, longest=np.inf)
