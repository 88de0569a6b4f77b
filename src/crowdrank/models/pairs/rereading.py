"""Bradley-Terry scores of some items from all their preferences, with the other items as a fit has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.index import Items
from ...data.judgments import Preferences, expect
from ...fitting import newton
from ...pair_counts import PairCounts, count_preferences
from ...protocols import Bools, Floats

if TYPE_CHECKING:
    from .kernels.pair_likelihood import TieModel


class _Point(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs."""

    value: float
    log_likelihood: float
    gradient: Floats
    model: TieModel


@dataclass(frozen=True, eq=False)
class Rereading:
    """Newton steps of some scores; the other scores, and the tie parameter, are those of the fit.

    Parameters
    ----------
    method
        The method.
    items, scores
        Items of the fit and their scores.
    tie
        Tie parameter, 0 where the model has none.
    """

    method: Any
    items: Items
    scores: Floats
    tie: float

    def __call__(self, preferences: Preferences, free: Bools) -> tuple[Consensus, Bools]:
        """Return the scores of the ``free`` items of these preferences, and which of them they say something of.

        The other items keep the scores of the fit; preferences with others that it does not know do not count.
        """
        expect(preferences, self.method)
        former = self.items.codes_of(preferences.items, "consensus", "judgments")
        usable = free | (former >= 0)
        counts = count_preferences(
            preferences.select(usable[preferences.left] & usable[preferences.right]), self.method.ties
        )
        free = free & (counts.wins + counts.losses > 0)
        scores = np.where(former >= 0, self.scores[former], 0.0)
        if free.any():
            scores = self._solve(counts, scores, free)
        return Consensus.of(self.method, preferences, scores), free

    def _solve(self, counts: PairCounts, scores: Floats, free: Bools) -> Floats:
        """Scores where the free ones gain no more."""
        from ...kernels.laplacian import laplacian_product, newton_step
        from .kernels.pair_likelihood import evaluate_ties

        method, pairs = self.method, (counts.starts, counts.second)

        def evaluate(point: Floats) -> _Point:
            model = evaluate_ties(*pairs, counts.margin, counts.number, point, self.tie, counts.n_ties or 0.0)
            value = model.log_likelihood - 0.5 * method.ridge * float(np.square(point).sum())
            gradient = np.where(free, model.gradient - method.ridge * point, 0.0)
            return _Point(value, model.log_likelihood, gradient, model)

        def direction(here: _Point) -> Floats:
            diagonal = np.where(free, here.model.degree + method.ridge, 1.0)
            whole = laplacian_product(*pairs, here.model.bend, diagonal)
            return newton_step(
                lambda step: np.where(free, whole(np.where(free, step, 0.0)), step), diagonal, here.gradient,
                tol=method.tol,
            )  # fmt: skip

        return newton(evaluate, direction, scores, tol=method.tol, max_iter=method.max_iter, what="bradley_terry")[0]
