"""Where the scores of items come from in a model of votes: nowhere, from features, or from features and the items.

Each kind has points (a vector, its negative being the mirror image), the scores that a point stands for, the logarithm
of its prior, and a Newton step for what a pass over the votes has found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...protocols import Bools, Floats

if TYPE_CHECKING:
    from .kernels.vote_patterns import VotePass, VotePatterns

_LONGEST_WEIGHT = 5.0
_MOST_SOLVED = 32
_INEXACT = 0.1


class ScoreModel(Protocol):
    """What a model of scores has to tell."""

    @property
    def hinge(self) -> bool:
        """Whether scores are fitted by the smoothed hinge, in place of the likelihood."""
        ...

    def start(self) -> Floats:
        """Return the point at which all scores are equal."""
        ...

    def scores(self, point: Floats) -> Floats:
        """Return the scores of a point, (n_items,)."""
        ...

    def favour(self, point: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        ...

    def step(self, votes: VotePatterns, here: VotePass, point: Floats) -> tuple[Floats, float]:
        """Return the Newton step from a point, and the gain that its slope promises."""
        ...


@dataclass(frozen=True)
class EqualScores:
    """All items alike, so that votes alone tell which one of a pair is the better; a point is empty."""

    n_items: int
    hinge: bool = False

    def start(self) -> Floats:
        """Return the empty point."""
        return np.empty(0)

    def scores(self, point: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(self.n_items)

    def favour(self, point: Floats) -> float:
        """Return nothing."""
        return 0.0

    def step(self, votes: VotePatterns, here: VotePass, point: Floats) -> tuple[Floats, float]:
        """Return no step."""
        return point, 0.0


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Weighted sums of features; a point has the weights.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query.
    ridge
        Precision of the normal prior of the weights.
    hinge
        Whether weights are fitted by the smoothed hinge, in place of the logistic loss.
    """

    matrix: Floats
    ridge: float
    hinge: bool = False

    def start(self) -> Floats:
        """Return no weight on anything."""
        return np.zeros(self.matrix.shape[1])

    def scores(self, point: Floats) -> Floats:
        """Return the weighted sums."""
        found: Floats = np.einsum("ip,p->i", self.matrix, point)
        return found

    def favour(self, point: Floats) -> float:
        """Return the log prior of the weights."""
        return -0.5 * self.ridge * float(point @ point)

    def step(self, votes: VotePatterns, here: VotePass, point: Floats) -> tuple[Floats, float]:
        """Return the step of the weights."""
        gradient = np.einsum("ip,i->p", self.matrix, here.pull) - self.ridge * point
        step = (self._solved if len(point) <= _MOST_SOLVED else self._approached)(votes, here, gradient)
        step = np.clip(step, -_LONGEST_WEIGHT, _LONGEST_WEIGHT)
        return step, float(gradient @ step)

    def _solved(self, votes: VotePatterns, here: VotePass, gradient: Floats) -> Floats:
        """The step from the whole matrix of second derivatives."""
        from ...kernels.probes import laplacian_products

        products = laplacian_products(votes.starts, votes.second, here.bend, here.degree)
        curvature = self.matrix.T @ products(self.matrix)
        curvature.flat[:: len(gradient) + 1] += self.ridge
        return np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)

    def _approached(self, votes: VotePatterns, here: VotePass, gradient: Floats) -> Floats:
        """The step by conjugate gradients, for many features."""
        from ...kernels.laplacian import conjugate_gradient, laplacian_product

        through = laplacian_product(votes.starts, votes.second, here.bend, here.degree)
        diagonal = np.einsum("ip,i,ip->p", self.matrix, here.degree, self.matrix) + self.ridge

        def product(vector: Floats) -> Floats:
            return self.matrix.T @ through(self.matrix @ vector) + self.ridge * vector

        return conjugate_gradient(product, diagonal, gradient, accuracy=_INEXACT)


@dataclass(frozen=True, eq=False)
class ItemScores:
    r"""Weighted sums of features plus something of each item's own; a point has the scores themselves.

    With :math:`s = X w + u`, :math:`w \sim N(0, 1 / \text{ridge})` and :math:`u \sim N(0, \text{spread}^2)` the scores
    are normal, and what their log prior takes off is the part of them that features do not explain.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query; 0 for unjudged ones.
    ridge
        Precision of the normal prior of the weights.
    spread
        Standard deviation of the items' own part.
    judged
        Which items were judged, (n_items,).
    """

    matrix: Floats
    ridge: float
    spread: float
    judged: Bools
    hinge: bool = False

    @cached_property
    def explained(self) -> Floats:
        """Directions of scores that features explain, (n_items, n_features): times its transpose, a projection."""
        from scipy.linalg import solve_triangular

        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        found: Floats = solve_triangular(np.linalg.cholesky(square), self.matrix.T, lower=True).T
        return np.ascontiguousarray(found)

    @cached_property
    def room(self) -> float:
        """How many items there are beyond those that features could explain however they were judged."""
        return max(float(self.judged.sum() - (self.explained**2).sum()), 1.0)

    def start(self) -> Floats:
        """Return equal scores."""
        return np.zeros(len(self.matrix))

    def scores(self, point: Floats) -> Floats:
        """Return the point."""
        return point

    def rest(self, scores: Floats) -> Floats:
        """Return what features leave unexplained of scores."""
        found: Floats = scores - self.explained @ (self.explained.T @ scores)
        return found

    def favour(self, point: Floats) -> float:
        """Return the log prior of the scores, the weights integrated out."""
        return -0.5 * float(point @ self.rest(point)) / self.spread**2

    def weights(self, scores: Floats) -> Floats:
        """Return the likeliest weights given scores."""
        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        return np.linalg.solve(square, self.matrix.T @ scores).astype(np.float64, copy=False)

    def step(self, votes: VotePatterns, here: VotePass, point: Floats) -> tuple[Floats, float]:
        """Return the step of the scores."""
        from ...kernels.laplacian import conjugate_gradient

        gradient = here.pull - self.rest(point) / self.spread**2
        product, diagonal = self.curvature(votes, here)
        step = conjugate_gradient(product, diagonal, gradient, accuracy=_INEXACT)
        return step, float(gradient @ step)

    def curvature(self, votes: VotePatterns, here: VotePass) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return what multiplies the curvature with a vector, and a diagonal like its own."""
        from ...kernels.laplacian import laplacian_product

        through = laplacian_product(votes.starts, votes.second, here.bend, here.degree)
        precision = self.spread**-2
        return lambda vector: through(vector) + precision * self.rest(vector), here.degree + precision
