"""Weights of features under which rankings are most likely, found again and again as the rankings change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...fitting import newton
from ...protocols import AnyFloats, Counts, Floats, Ints
from ...rankers.design import Design
from ...rankers.linear import penalised, usual_ridge
from ...rankers.lists import Lists
from ...rankers.losses import ScoreLoss, likely_orders, likely_sets
from ...rankers.matrix import Matrix
from ...rankers.scaling import Scaling, learn_scaling

_MOST_STEPS = 100
_FREEDOM = 0.1


@dataclass(frozen=True, eq=False)
class LuceWeights:
    """Scaled features of items query after query, and the weights that make rankings of them likely.

    The likelihood is that of ordered choices (Plackett-Luce): of the items that are left, one comes next with
    probability proportional to the exponential of its score, the weighted sum of its features.

    Parameters
    ----------
    design
        The features, one row a place.
    ridge, tol
        Pull of the weights towards 0, against a mean over queries, and the largest change of one in the last step.
    what
        Name of the method, for a warning.
    """

    design: Design
    ridge: float
    tol: float
    what: str

    @classmethod
    def of(
        cls, values: AnyFloats, query: Ints | Counts, *, scale: str, ridge: float | None, tol: float, what: str
    ) -> Self:
        """Return them for rows of numbers with the query of each, never falling.

        The ridge ``None`` is a tenth for each feature, spread over the queries: however many features there are, scores
        that spread by about 3 within queries are what is expected beforehand.
        """
        matrix = Matrix(values)
        lists = Lists.of(matrix.n_rows, np.zeros(matrix.n_rows), query)
        if ridge is None:
            ridge = usual_ridge(_FREEDOM * matrix.n_features / lists.n_queries, scale)
        return cls(Design(matrix, None, lists.offsets, learn_scaling(scale, matrix, lists)), ridge, tol, what)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.design.n_features

    @property
    def offsets(self) -> Counts:
        """Places of query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``; queries without places do not count."""
        return self.design.offsets

    @property
    def scaling(self) -> Scaling:
        """The scaling of the features."""
        return self.design.scaling

    def scores(self, weights: Floats) -> Floats:
        """Return the score of each place."""
        return self.design.scores(weights)

    def penalty(self, weights: Floats) -> float:
        """Return what the ridge takes off the log-likelihood of all queries."""
        return 0.5 * self.ridge * (len(self.offsets) - 1) * float(weights @ weights)

    def from_orders(self, orders: Counts, start: Floats) -> Floats:
        """Return the weights under which orders (n_orders, n_places) of each query's places are most likely."""
        return self._likeliest(likely_orders(orders, self.offsets), start)

    def from_sets(self, sets: Floats, start: Floats) -> Floats:
        """Return the weights under which random orders are most likely, whose sets of first places have these chances.

        ``sets`` has 2^n chances for each query of n places.
        """
        return self._likeliest(likely_sets(sets, self.offsets), start)

    def descended(self, order: Counts, visits: Counts, start: Floats, *, step: float, n_epochs: int) -> Floats:
        """Return the weights after stochastic gradient steps on the likelihood of one order of each query's places.

        ``order`` (n_places,) holds the places of each query, best first, and ``visits`` the queries in their turn.
        """
        from .kernels.stochastic_choices import descend

        rows = np.concatenate([block for _, _, block in self.design.blocks()])
        return descend(rows, order, self.offsets, visits, start, step, n_epochs)

    def _likeliest(self, loss: Callable[[Floats], ScoreLoss], start: Floats) -> Floats:
        """The weights where the loss of the scores and the ridge are least."""
        sizes = np.diff(self.offsets)
        share = np.repeat(1 / (len(sizes) * sizes), sizes)
        evaluate, direction = penalised(self.design, loss, share, self.ridge, self.tol)
        return newton(evaluate, direction, start, tol=self.tol, max_iter=_MOST_STEPS, what=self.what)[0]
