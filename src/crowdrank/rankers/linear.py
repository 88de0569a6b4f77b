"""Linear rankers: one weight per feature, found by Newton steps on a convex loss of the scores.

The fit is one, over one block of rows or many.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..data.consensus import Trace
from ..fitting import newton
from ..kernels.threads import one_blas_thread
from ..protocols import BlockFit, Blocks, Floats, Statistics, method_name
from ..wording import expect_above, expect_at_least, one_of
from .estimator import Watch, WeightedFeatures
from .training_rows import SCALES, Design, Lists, Matrix, Scaling, learn_scaling, moments_of, scaling_by

if TYPE_CHECKING:
    from .kernels.losses import ScoreLoss

_MAX_DIRECT_FEATURES = 512
"""Up to this many features Newton's equations are solved outright, beyond by conjugate gradients."""

_QUERY_SCALE_SPREAD = 0.25
"""About the standard deviation of a feature that runs from 0 to 1 within each query."""

Follow = Callable[[int, float, Floats], bool]
"""Takes note of an iterate: number of the step, objective, weights."""


class LinearRanker(WeightedFeatures):
    """Base of the linear rankers; one gives the loss of its scores.

    A ranker has the parameters ``scale``, ``ridge``, ``tol`` and ``max_iter``, and ``weights_`` once it is fitted.
    """

    _usual_ridge: ClassVar[float]

    scale: str
    ridge: float | None
    tol: float
    max_iter: int

    def _loss(self, lists: Lists) -> Callable[[Floats], ScoreLoss]:
        """What returns the loss at the scores of the lists' places."""
        raise NotImplementedError

    def _divisor(self, lists: Lists) -> float:
        """What the loss of the lists is divided by, the weight of all items: parts count by their share of it."""
        return float(lists.item_weights().sum())

    @property
    def used_ridge(self) -> float:
        """The ridge, the usual one where none is given."""
        return usual_ridge(self._usual_ridge, self.scale) if self.ridge is None else self.ridge

    def _order_lists(self, lists: Lists) -> Lists:
        """The lists in the order that the loss needs."""
        return lists

    def check(self) -> None:
        """Refuse parameters outside their range."""
        one_of(self.scale, SCALES, "scale")
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-9 for none")
        expect_above(self, 0, "tol")
        expect_at_least(self, 1, "max_iter")

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Scale the features and find the weights."""
        lists = self._order_lists(lists)
        # blocks are shared among threads already, and a library's own would wait for each other on a busy machine
        with one_blas_thread():
            self.scaling_ = learn_scaling(self.scale, matrix, lists)
            design = Design(matrix, lists.rows, lists.offsets, self.scaling_)
            self.weights_, self.trace_ = self._solve(design, lists, self.follower(watch))
        self.n_iter_ = self.trace_.n_iter

    def _solve(self, design: Design, lists: Lists, follow: Follow) -> tuple[Floats, Trace]:
        """The weights where loss and penalty are least."""
        return self.descend(BlockLoss(design, self._loss(lists), share_of_places(lists)).alone(), follow)

    def descend(self, rows: RowLoss, follow: Follow) -> tuple[Floats, Trace]:
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

    def over_blocks(self, n_features: int, follower: Callable[[Scaling], Follow]) -> BlockFit:
        """Return the fit to rows in parts of whole queries, which stand in the order that the loss needs.

        ``follower``, given the scaling, returns what takes note of every step.
        """

        def solve(blocks: Blocks) -> tuple[Floats, Scaling, Trace]:
            divisors, first_rows = zip(
                *blocks.each(lambda part, _: ((self._divisor(part.lists), part.matrix.first_row(part.lists)), None)),
                strict=True,
            )
            divisor, shift, moments = float(np.sum(divisors)), first_rows[0], None
            if self.scale == "overall":
                each = blocks.each(lambda part, _: (part.matrix.moment_sums(part.lists, shift), None))
                sums, largest = zip(*each, strict=True)
                moments = moments_of(np.sum(sums, axis=0), np.max(largest, axis=0), shift)
            scaling = scaling_by(self.scale, moments, n_features)

            def total(question: Callable[[BlockLoss], Statistics]) -> Statistics:
                # what a part answers counts by its share of what the loss is divided by
                def share(part: RowsPart, state: Any) -> tuple[Statistics, Any]:
                    rows, own = part.loss(self, scaling)
                    return tuple(own / divisor * statistic for statistic in question(rows)), None

                return blocks.total(share)

            weights, trace = self.descend(RowLoss(n_features, total), follower(scaling))
            return weights, scaling, trace

        return BlockFit(RowsPart, solve)

    def follower(self, watch: Watch) -> Follow:
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
    return np.repeat(lists.query_weights() / np.diff(lists.offsets), np.diff(lists.offsets))


class BlockLoss:
    """The loss of a block of rows as a function of the weights; ``share`` is about what places add to the curvature.

    What it returns are statistics: tuples, added over blocks where there are several.
    """

    def __init__(self, design: Design, loss: Callable[[Floats], ScoreLoss], share: Floats) -> None:
        self.design, self._loss, self._share = design, loss, share
        self._here: tuple[bytes, ScoreLoss] | None = None

    def alone(self) -> RowLoss:
        """Return the loss of the only block."""
        return RowLoss(self.design.n_features, lambda question: question(self))

    def _at(self, weights: Floats) -> ScoreLoss:
        """The loss in the scores; that of the last weights is kept, since their curvature is asked for next."""
        if self._here is None or self._here[0] != weights.tobytes():
            self._here = weights.tobytes(), self._loss(self.design.scores(weights))
        return self._here[1]

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Return the loss, and its slope in each weight."""
        here = self._at(weights)
        return here.value, self.design.pulls(here.slopes)

    def curvature(self, weights: Floats) -> tuple[Floats]:
        """Return the second derivatives, (n_features, n_features)."""
        return (self.design.curvature(self._at(weights).bend),)

    def product(self, weights: Floats, along: Floats) -> tuple[Floats]:
        """Return the second derivatives times a vector."""
        last = len(self.design.offsets) - 1
        bent = self._at(weights).bend(0, last, self.design.scores(along)[:, None])
        return (self.design.pulls(bent[:, 0]),)

    def diagonal(self) -> tuple[Floats]:
        """Return about the diagonal of the second derivatives."""
        return (self.design.squares(self._share),)


class RowLoss(NamedTuple):
    """The loss of training rows, wherever they are: number of weights, and what adds a block's answers over blocks."""

    n_features: int
    total: Callable[[Callable[[BlockLoss], Statistics]], Statistics]


class Point(NamedTuple):
    """The objective at some weights, to be raised: less the loss, less the penalty."""

    value: float
    gradient: Floats
    log_likelihood: float
    weights: Floats


def penalise(rows: RowLoss, ridge: float, tol: float) -> tuple[Callable[[Floats], Point], Callable[[Point], Floats]]:
    """Return functions that evaluate the penalised objective and give the Newton step from an evaluated point."""
    n_features, total = rows

    def evaluate(weights: Floats) -> Point:
        loss, slopes = total(methodcaller("loss", weights))
        value = -float(loss) - 0.5 * ridge * float(weights @ weights)
        return Point(value, -slopes - ridge * weights, -float(loss), weights)

    def direction(here: Point) -> Floats:
        if n_features <= _MAX_DIRECT_FEATURES:
            from scipy.linalg import cho_factor, cho_solve

            (curvature,) = total(methodcaller("curvature", here.weights))
            curvature.flat[:: n_features + 1] += ridge
            return cho_solve(cho_factor(curvature, overwrite_a=True), here.gradient)
        from ..kernels.laplacian import newton_step

        def product(along: Floats) -> Floats:
            return total(methodcaller("product", here.weights, along))[0] + ridge * along

        (diagonal,) = total(methodcaller("diagonal"))
        # by conjugate gradients, no more exact than it need be
        return newton_step(product, diagonal + ridge, here.gradient, tol=tol, longest=np.inf)

    return evaluate, direction


class RowsPart:
    """The rows of some whole queries, and their loss once the scaling is known; a part keeps it from step to step."""

    def __init__(self, part: tuple[Matrix, Lists]) -> None:
        self.matrix, self.lists = part
        self._kept: dict[bytes, tuple[BlockLoss, float]] = {}

    def loss(self, ranker: LinearRanker, scaling: Scaling) -> tuple[BlockLoss, float]:
        """Return the loss of the rows, and what it is divided by."""
        key = scaling.centre.tobytes() + scaling.spread.tobytes()
        if key not in self._kept:
            design = Design(self.matrix, self.lists.rows, self.lists.offsets, scaling)
            rows = BlockLoss(design, ranker._loss(self.lists), share_of_places(self.lists))
            self._kept[key] = rows, ranker._divisor(self.lists)
        return self._kept[key]
