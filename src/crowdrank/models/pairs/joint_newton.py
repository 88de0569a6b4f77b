"""Scores and a parameter of every annotator, fitted together by Newton's method and the right way round."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS, Trace
from ...errors import ConvergenceWarning
from ...fitting import newton
from ...pair_counts import Contests
from ...protocols import Bools, Counts, Floats
from ...standard_errors import score_spread
from .annotator_priors import OwnPrior
from .orientation import rough_start, turned_parts

if TYPE_CHECKING:
    from ...kernels.answers import Answers
    from ...kernels.laplacian import Product
    from ...kernels.probes import Products

_ROUGHLY = 0.3
"""Tolerance of a climb that is but the start of another one."""

_LONGEST_STEP = 1.0
_MOST_TURNS = 4
_CROWDED_ITEMS = 1_500
_PAIRS_A_SQUARE = 4
_PROBES = 32
"""They leave one or two per cent of a standard error to chance."""


class JointPoint(Protocol):
    """The objective at one point, its gradient, the parameters, and the curvature in each of them by itself."""

    @property
    def value(self) -> float:
        """The objective, priors included."""
        ...

    @property
    def gradient(self) -> Floats:
        """Gradient of the objective."""
        ...

    @property
    def log_likelihood(self) -> float:
        """The objective itself: it is what never falls."""
        ...

    @property
    def scores(self) -> Floats:
        """The scores."""
        ...

    @property
    def own(self) -> Floats:
        """The parameters of the annotators."""
        ...

    @property
    def own_bend(self) -> Floats:
        """Negated second derivative in each of them."""
        ...


Evaluated = TypeVar("Evaluated", bound=JointPoint)


@dataclass(frozen=True, eq=False)
class JointModel(ABC, Generic[Evaluated]):
    """What models of answers share whose points have the scores, then the annotators' parameters, and perhaps more.

    Parameters
    ----------
    answers, contests
        The answers, sorted by pair, and their counts.
    prior
        Prior of the annotators' parameters.
    ridge
        Precision of the normal prior of scores.
    offsets
        Bounds of the items of each query.
    """

    answers: Answers
    contests: Contests
    prior: OwnPrior
    ridge: float
    offsets: Counts

    @abstractmethod
    def evaluate(self, point: Floats) -> Evaluated:
        """Return the objective with its derivatives."""

    @abstractmethod
    def curvature(self, here: Evaluated) -> tuple[Product, Floats]:
        """Return what multiplies the curvature with a vector, and a diagonal like its own that is above 0."""

    @abstractmethod
    def score_curvature(self, here: Evaluated, room: Floats) -> tuple[Products, Floats]:
        """Return what multiplies the curvature in the scores when all else adapts with columns, and its diagonal.

        ``room`` (n_annotators,) is the variance of each parameter when all else is fixed.
        """

    @abstractmethod
    def blocks(self, here: Evaluated, room: Floats, firsts: Counts, size: int) -> Floats:
        """Return what to take off the matrices of ``laplacian`` for queries of this size, as in score_spread."""

    @abstractmethod
    def laplacian(self, here: Evaluated) -> tuple[Floats, Floats]:
        """Return the curvature of each pair, and its sum at each item, as far as the matrix is a Laplacian of pairs."""

    @abstractmethod
    def chances(self, point: Floats) -> Floats:
        """Return how likely each annotator is to order an average pair as the scores do."""

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return what else a point says."""
        return {}

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.contests.wins)

    @property
    def n_own(self) -> int:
        """Number of annotators."""
        return len(self.prior.sure)

    @property
    def n_answers(self) -> Floats:
        """How many answers each annotator gave."""
        weight = self.answers.weight if self.answers.weight.size else None
        return np.bincount(self.answers.annotator, weight, self.n_own).astype(np.float64)

    @property
    def levels(self) -> Contests:
        """The contests with groups whose level the likelihood leaves free."""
        return self.contests

    def scores(self, point: Floats) -> Floats:
        """Return the scores of a point."""
        return point[: self.n_items]

    def own(self, point: Floats) -> Floats:
        """Return the annotators' parameters of a point."""
        return point[self.n_items : self.n_items + self.n_own]

    def joined(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts."""
        return np.concatenate([scores, own])

    def rough(self) -> tuple[Floats, Floats]:
        """Return scores and parameters near the majority's side."""
        return rough_start(self.answers, self.levels, self.prior)

    def completed(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts, what is NaN guessed from the answers."""
        if np.isnan(scores).any() or np.isnan(own).any():
            rough = self.rough()
            scores, own = np.where(np.isnan(scores), rough[0], scores), np.where(np.isnan(own), rough[1], own)
        return self.joined(self.levels.centred(scores), np.clip(own, self.prior.low, self.prior.high))

    def maximum(self, start: Floats | None, *, tol: float, max_iter: int, what: str) -> tuple[Floats, Evaluated, Trace]:
        """Return where the objective is largest, climbing from a start, or from the majority's side."""
        point = self.first_point(max_iter) if start is None else start
        direction = partial(self.direction, tol=tol)
        n_iter, values, turned = 0, list[float](), point
        for _ in range(_MOST_TURNS):
            point, best, trace = newton(self.evaluate, direction, turned, tol=tol, max_iter=max_iter, what=what)
            n_iter, values = n_iter + trace.n_iter, [*values, *(trace.log_likelihood or ())]
            better = self.turned(point, settled=start is not None)
            if better is None:
                break
            turned = better
        return point, best, replace(trace, n_iter=n_iter, log_likelihood=tuple(values))

    def rough_maximum(self, max_iter: int) -> Floats:
        """Return about where the objective is largest, for a climb to begin at."""
        with warnings.catch_warnings():
            # the climb that matters is the one that follows
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.maximum(None, tol=_ROUGHLY, max_iter=max_iter, what="")[0]

    def first_point(self, max_iter: int) -> Floats:
        """Return where to begin the climb."""
        if not self.prior.sure.any():
            return self.joined(*self.rough())
        # the others by themselves first: who is known to be good then says which way round they are
        crowd = replace(self, answers=self.answers.without(self.prior.sure), prior=self.prior.unsure())
        point = crowd.rough_maximum(max_iter)
        turned = self.turned(point)
        point = point if turned is None else turned
        usual = self.prior.from_surplus(self.prior.guess()[0])
        self.own(point)[self.prior.sure] = usual[self.prior.sure]
        return point

    def direction(self, here: Evaluated, tol: float) -> Floats:
        """Return the Newton step, within the bounds of the parameters."""
        from ...kernels.laplacian import newton_step

        product, diagonal = self.curvature(here)
        gradient, stuck = here.gradient, self.n_items + np.flatnonzero(self.stuck(here))
        if len(stuck):
            gradient, diagonal[stuck] = gradient.copy(), np.inf
            gradient[stuck] = 0.0
        step = self._within(newton_step(product, diagonal, gradient, tol=tol), here)
        if float((gradient * step).sum()) > 0.0:
            return step
        # cut short by bounds, a step may lead downwards, but not along the gradient
        step = gradient / diagonal
        return self._within(step * min(1.0, _LONGEST_STEP / float(np.max(np.abs(step), initial=1.0))), here)

    def _within(self, step: Floats, here: Evaluated) -> Floats:
        """The step with scores that stay centred in their group and parameters that stay within bounds."""
        n = self.n_items
        # a small ridge would leave the level of a group to rounding
        step[:n] = self.levels.centred(step[:n])
        own = step[n : n + self.n_own]
        own[:] = np.clip(here.own + own, self.prior.low, self.prior.high) - here.own
        return step

    def stuck(self, here: Evaluated) -> Bools:
        """Return which parameters stand at a bound that they are drawn beyond."""
        pull = here.gradient[self.n_items : self.n_items + self.n_own]
        return ((here.own >= self.prior.high) & (pull > 0)) | ((here.own <= self.prior.low) & (pull < 0))

    def turned(self, point: Floats, *, settled: bool = False) -> Floats | None:
        """Return a better point with some scores turned round, ``None`` where there is none to be seen."""
        parts = self.scores(point), self.own(point)
        turn_items, turn_own = turned_parts(self.answers, self.levels, self.prior, *parts, settled=settled)
        if not turn_items.any():
            return None
        point = point.copy()
        self.scores(point)[turn_items] *= -1.0
        own = self.own(point)
        own[turn_own] = np.clip(-own[turn_own], self.prior.low, self.prior.high)
        return point

    def spread(self, best: Evaluated) -> tuple[Floats, tuple[Floats | None, ...]]:
        """Return standard errors and covariances of the scores, with all else free to adapt.

        In the covariance of a query the scores of other queries are fixed, by whose answers annotators are known too.
        """
        # annotators at a bound do not adapt
        fixed = self.stuck(best) | (best.own_bend <= 0.0)
        room = np.where(fixed, 0.0, 1.0 / np.where(fixed, 1.0, best.own_bend))
        bend, degree = self.laplacian(best)
        pairs = (self.answers.starts, self.answers.second, bend, degree)

        def less(firsts: Counts, size: int, flat: bool) -> Floats:
            # between two sides that are equally good there is no maximum, but with annotators as they are
            return self.blocks(best, np.zeros(self.n_own) if flat else room, firsts, size)

        # where most pairs have met, passing through them is what takes long
        crowded = _PAIRS_A_SQUARE * len(self.answers.second) >= self.n_items**2
        return score_spread(
            *pairs, self.ridge, self.offsets, probe=partial(self._probed, best, room), less=less,
            exact=_CROWDED_ITEMS if crowded else COVARIANCE_ITEMS,
        )  # fmt: skip

    def _probed(self, best: Evaluated, room: Floats) -> Floats:
        """Variance of each score, by probes."""
        from ...kernels.probes import probed_diagonal

        products, diagonal = self.score_curvature(best, room)
        # how far all scores lie apart is what annotators leave open most
        return probed_diagonal(products, diagonal, self.offsets, n_probes=_PROBES, along=best.scores)
