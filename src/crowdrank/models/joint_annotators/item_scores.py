"""Where the scores of items come from: equal for all, from features, or from features and an effect of each item.

Each score model has parameters (a vector; its negative is the mirror image), the scores they stand for, their log
prior, and the Newton step of an M-step. :class:`ItemFeatures` holds the scaled features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...data.features import Features
from ...data.judgments import Judgments
from ...protocols import Bools, Counts, Floats, Ints

if TYPE_CHECKING:
    from ...rankers.training_rows import Scaling
    from .kernels.pair_patterns import Expectation, PairPatterns

_LONGEST_WEIGHT_STEP = 5.0
_MOST_SOLVED_FEATURES = 32
"""Up to this many features the Newton step solves the whole matrix; above, it takes conjugate gradients."""

_GRADIENT_ACCURACY = 0.1
"""Conjugate gradients stop at this share of the gradient: the next Newton step corrects the rest."""


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Scaled features of each item of some judgments.

    Parameters
    ----------
    scaling
        How features are scaled.
    values
        Scaled features of each item, (n_items, n_features), 0 for items without any.
    row
        Row of each item in the features, -1 for items without any.
    """

    scaling: Scaling
    values: Floats
    row: Ints

    @classmethod
    def of(cls, features: Features, judgments: Judgments) -> ItemFeatures:
        """Return the features of the items, on the scale of those that were judged; missing numbers are refused."""
        from ...rankers.training_rows import Lists, Matrix, learn_scaling

        row = np.asarray(features.items.codes_of(judgments.items, "features", "judgments"))
        used = np.flatnonzero(features.match(judgments, so="are taken as average ones") >= 0)
        features.expect_numbers(row[row >= 0])
        matrix = Matrix(np.ascontiguousarray(features.matrix[row[used]]))
        lists = Lists.of(len(used), np.zeros(len(used)), judgments.items.query[used])
        scaling = learn_scaling("overall", matrix, lists)
        values = np.zeros((len(row), len(features.names)))
        present = np.flatnonzero(row >= 0)
        values[present] = scaling.apply(features.matrix[row[present]], np.zeros(1, np.int64))
        return cls(scaling, values, row.astype(np.int32))

    def centre_by_query(self, judged: Bools, offsets: Counts) -> Floats:
        """Return the values less the mean of the judged items of each query, 0 for items without features."""
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        has = self.row >= 0
        use = judged & has
        number = np.maximum(np.bincount(query[use], minlength=len(offsets) - 1), 1)
        centred = np.zeros_like(self.values)
        for column, values in zip(centred.T, self.values.T, strict=True):
            means = np.bincount(query[use], values[use], len(number)) / number
            column[has] = values[has] - means[query[has]]
        return centred


class ScoreModel(Protocol):
    """What expectation-maximisation needs of a score model."""

    @property
    def hinge(self) -> bool:
        """Whether scores are fitted by the smoothed hinge instead of the likelihood."""
        ...

    def start(self) -> Floats:
        """Return the parameters at which all scores are equal."""
        ...

    def scores(self, parameters: Floats) -> Floats:
        """Return the scores, (n_items,)."""
        ...

    def log_prior(self, parameters: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        ...

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the Newton step from some parameters, and the gain that its slope promises."""
        ...


@dataclass(frozen=True)
class EqualScores:
    """All items alike, so preferences alone decide a pair; there are no parameters."""

    n_items: int
    hinge: bool = False

    def start(self) -> Floats:
        """Return no parameters."""
        return np.empty(0)

    def scores(self, parameters: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(self.n_items)

    def log_prior(self, parameters: Floats) -> float:
        """Return 0."""
        return 0.0

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return no step."""
        return parameters, 0.0


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Weighted sums of features (JAM); the parameters are the weights.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query.
    ridge
        Precision of the normal prior of the weights.
    hinge
        Whether weights are fitted by the smoothed hinge instead of the logistic loss.
    """

    matrix: Floats
    ridge: float
    hinge: bool = False

    def start(self) -> Floats:
        """Return zero weights."""
        return np.zeros(self.matrix.shape[1])

    def scores(self, parameters: Floats) -> Floats:
        """Return the weighted sums."""
        scores: Floats = np.einsum("ip,p->i", self.matrix, parameters)
        return scores

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the weights."""
        return -0.5 * self.ridge * float(parameters @ parameters)

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the step of the weights."""
        gradient = np.einsum("ip,i->p", self.matrix, here.gradient) - self.ridge * parameters
        solve = self._solve_directly if len(parameters) <= _MOST_SOLVED_FEATURES else self._solve_iteratively
        step = np.clip(solve(pairs, here, gradient), -_LONGEST_WEIGHT_STEP, _LONGEST_WEIGHT_STEP)
        return step, float(gradient @ step)

    def _solve_directly(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """The step from the whole matrix of second derivatives."""
        curvature = self.matrix.T @ pairs.curvature(here)[1](self.matrix)
        curvature.flat[:: len(gradient) + 1] += self.ridge
        return np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)

    def _solve_iteratively(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """The step by conjugate gradients, for many features."""
        from ...kernels.laplacian import conjugate_gradient

        over_items = pairs.curvature(here)[0]
        diagonal = np.einsum("ip,i,ip->p", self.matrix, here.degree, self.matrix) + self.ridge

        def product(vector: Floats) -> Floats:
            return self.matrix.T @ over_items(self.matrix @ vector) + self.ridge * vector

        return conjugate_gradient(product, diagonal, gradient, accuracy=_GRADIENT_ACCURACY)


@dataclass(frozen=True, eq=False)
class ItemEffectScores:
    r"""Weighted sums of features plus an effect of each item; the parameters are the scores themselves.

    With :math:`s = X w + u`, :math:`w \sim N(0, 1 / \text{ridge})` and :math:`u \sim N(0, \text{spread}^2)` the scores
    are normal, and their log prior is the squared length of what features do not explain.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query; 0 for unjudged ones.
    ridge
        Precision of the normal prior of the weights.
    spread
        Standard deviation of the item effects.
    judged
        Which items were judged, (n_items,).
    """

    matrix: Floats
    ridge: float
    spread: float
    judged: Bools
    hinge: bool = False

    @cached_property
    def explained_directions(self) -> Floats:
        """Directions of scores that features explain, (n_items, n_features); times its transpose, a projection."""
        from scipy.linalg import solve_triangular

        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        directions: Floats = solve_triangular(np.linalg.cholesky(square), self.matrix.T, lower=True).T
        return np.ascontiguousarray(directions)

    @cached_property
    def n_free(self) -> float:
        """Degrees of freedom of the item effects: judged items less those that features can explain."""
        return max(float(self.judged.sum() - (self.explained_directions**2).sum()), 1.0)

    def start(self) -> Floats:
        """Return equal scores."""
        return np.zeros(len(self.matrix))

    def scores(self, parameters: Floats) -> Floats:
        """Return the parameters."""
        return parameters

    def residuals(self, scores: Floats) -> Floats:
        """Return the part of the scores that features do not explain."""
        rest: Floats = scores - self.explained_directions @ (self.explained_directions.T @ scores)
        return rest

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the scores, the weights integrated out."""
        return -0.5 * float(parameters @ self.residuals(parameters)) / self.spread**2

    def weights(self, scores: Floats) -> Floats:
        """Return the most probable weights given scores."""
        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        return np.linalg.solve(square, self.matrix.T @ scores).astype(np.float64, copy=False)

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the step of the scores."""
        gradient = here.gradient - self.residuals(parameters) / self.spread**2
        step = self.solve(pairs, here, gradient)
        return step, float(gradient @ step)

    def solve(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """Return the curvature's inverse times the gradient, by conjugate gradients."""
        from ...kernels.laplacian import conjugate_gradient

        over_items = pairs.curvature(here)[0]
        precision = self.spread**-2

        def product(vector: Floats) -> Floats:
            return over_items(vector) + precision * self.residuals(vector)

        return conjugate_gradient(product, here.degree + precision, gradient, accuracy=_GRADIENT_ACCURACY)
