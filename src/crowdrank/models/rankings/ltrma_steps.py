"""The steps of LTRMA-ML: weights of the features, and true rankings given annotators and weights.

:class:`LuceWeights` is the step of the ranker (ListMLE). :class:`ScoredTruths` alternates it with the expectation over
true rankings and the dispersions of :class:`~crowdrank.models.rankings.mallows_crowd.MallowsCrowd`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import polars as pl

from ...data.consensus import Trace
from ...data.features import Features
from ...data.judgments import Rankings
from ...fitting import newton
from ...protocols import AnyFloats, Counts, Floats, Ints, Progress
from ...rankers.linear import BlockLoss, LinearScore, penalise, usual_ridge
from ...rankers.losses import ScoreLoss, likely_orders, likely_sets
from ...rankers.training_rows import Design, Lists, Matrix, Scaling, learn_scaling
from .mallows_crowd import PRINTED_CHANGE, Expectation, MallowsCrowd, Sampler

_MOST_NEWTON_STEPS = 100
_RIDGE_PER_FEATURE = 0.1
_MOST_DRAWN_PLACES = 10_000
"""Places over all draws of a soft step: many items make up for few draws."""

_PRINTED_STEP, _PRINTED_EPOCHS = 0.01, 50
"""Step and passes of the printed procedure's descent."""


@dataclass(frozen=True, eq=False)
class LuceWeights:
    """Scaled features of items query after query, and the weights that make rankings of them likely.

    The likelihood is that of ordered choices (Plackett-Luce): of the items that are left, one comes next with
    probability proportional to the exponential of its score, the weighted sum of its features.

    Parameters
    ----------
    design
        The features, one row per place.
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
            ridge = usual_ridge(_RIDGE_PER_FEATURE * matrix.n_features / lists.n_queries, scale)
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
        return self._maximise(likely_orders(orders, self.offsets), start)

    def from_sets(self, sets: Floats, start: Floats) -> Floats:
        """Return the weights under which random orders are most likely, whose sets of first places have these chances.

        ``sets`` has 2^n chances for each query of n places.
        """
        return self._maximise(likely_sets(sets, self.offsets), start)

    def descend(self, order: Counts, visits: Counts, start: Floats, *, step: float, n_epochs: int) -> Floats:
        """Return the weights after stochastic gradient steps on the likelihood of one order of each query's places.

        ``order`` (n_places,) holds the places of each query, best first, and ``visits`` the queries in their turn.
        """
        from .kernels.printed_procedure import descend

        rows = np.concatenate([block for _, _, block in self.design.blocks()])
        return descend(rows, order, self.offsets, visits, start, step, n_epochs)

    def _maximise(self, loss: Callable[[Floats], ScoreLoss], start: Floats) -> Floats:
        """The weights where the loss of the scores and the ridge are least."""
        sizes = np.diff(self.offsets)
        share = np.repeat(1 / (len(sizes) * sizes), sizes)
        rows = BlockLoss(self.design, loss, share).alone()
        evaluate, direction = penalise(rows, self.ridge, self.tol)
        return newton(evaluate, direction, start, tol=self.tol, max_iter=_MOST_NEWTON_STEPS, what=self.what)[0]


class Estimates(NamedTuple):
    """Dispersions (n_annotators,) and weights (n_features,), how they were found, and where the chains stand.

    ``order``, items by their numbers, is the printed procedure's own estimate of the true rankings.
    """

    theta: Floats
    weights: Floats
    trace: Trace
    sampler: Sampler
    order: Ints | None = None


@dataclass(frozen=True, eq=False)
class ScoredTruths:
    """Annotators around true rankings, of which scores by features tell how probable they are beforehand.

    Parameters
    ----------
    crowd
        The annotators.
    learner
        Finds the weights of the features.
    item
        The crowd's item at each of the learner's places; items without features have none.
    what
        Name of the method, for a warning.
    """

    crowd: MallowsCrowd
    learner: LuceWeights
    item: Counts
    what: str

    def scores(self, weights: Floats) -> Floats:
        """Return scores of the crowd's items; those without features have the mean of their query."""
        query, known = self.crowd.item_query, self.learner.scores(weights)
        n = len(self.crowd.arranged.lists.sizes)
        number = np.maximum(np.bincount(query[self.item], minlength=n), 1)
        means: Floats = (np.bincount(query[self.item], known, n) / number)[query]
        means[self.item] = known
        return means

    def places(self, order: Ints) -> Counts:
        """Return each query's items, best first by their numbers, as places of the learner."""
        return self._places_of(order + self.crowd.arranged.lists.offsets[self.crowd.item_query])

    def _places_of(self, item: Counts) -> Counts:
        """Items of the crowd as places of the learner, those without features left out."""
        place = np.full(len(self.crowd.arranged.item), -1)
        place[self.item] = np.arange(len(self.item))
        return place[item][place[item] >= 0]

    def learn_by_turns(
        self, step: str, *, n_sweeps: int, n_draws: int, tol: float, n_iter: int, progress: Progress | None = None
    ) -> Estimates:
        """Return estimates that start from Borda's order, with chains that are carried on between iterations.

        With ``step="hard"`` weights are learned from the most probable ranking, with ``"soft"`` from all of them by
        their probability, ``n_draws`` standing for them where they are sampled. Both kinds of parameters are averaged
        over the second half of the iterations, unless all queries are exact and changes fall to ``tol`` before.
        """
        crowd, sampler, sampled = self.crowd, self.crowd.start_chains(), len(self.crowd.sampled) > 0
        start = np.zeros(self.learner.n_features)
        theta, weights = crowd.start, self.learner.from_orders(self.places(sampler.chains.order)[None], start)
        factor = crowd.sweep_factor
        states, distances, values = [np.concatenate([theta, weights])], [], []
        for done in range(n_iter):
            expectation, following = self._expect_and_learn(step, n_sweeps * factor, n_draws, theta, weights, sampler)
            if not sampled:
                values.append(
                    crowd.objective(theta, expectation.log_total, scored=True) - self.learner.penalty(weights)
                )
            theta, weights = crowd.dispersions(theta, expectation.distance), following
            states.append(np.concatenate([theta, weights]))
            distances.append(crowd.annotator_distances(expectation.distance))
            if progress is not None:
                progress(done + 1, n_iter, self.what)
            change = float(np.abs(states[-1] - states[-2]).max())
            if not sampled and change <= tol:
                return Estimates(theta, weights, Trace(done + 1, True, change, tuple(values)), sampler)
        half = n_iter // 2
        change, settled = crowd.drift(distances[half:], self.what, n_iter)
        mean = np.mean(states[half + 1 :], axis=0)
        trace = Trace(n_iter, settled, change, None if sampled else tuple(values))
        return Estimates(mean[: len(theta)], mean[len(theta) :], trace, sampler)

    def _expect_and_learn(
        self, step: str, n_sweeps: int, n_draws: int, theta: Floats, weights: Floats, sampler: Sampler
    ) -> tuple[Expectation, Floats]:
        """Expected distances (E-step), and the weights learned from the same rankings (the ranker's M-step)."""
        crowd, n_items, sizes = self.crowd, len(self.crowd.arranged.item), self.crowd.arranged.lists.sizes
        expect = partial(crowd.expect, theta, sampler, n_sweeps, scores=self.scores(weights))
        if step == "hard":
            best = np.empty(n_items, np.int32)
            expectation = expect(best=best)
            return expectation, self.learner.from_orders(self.places(best)[None], weights)
        if not len(crowd.sampled) and len(self.item) == n_items:
            sets = np.zeros(int((2**sizes).sum()))
            expectation = expect(sets=sets)
            return expectation, self.learner.from_sets(sets[np.repeat(sizes > 0, 2**sizes)], weights)
        draws = np.zeros((max(1, min(n_draws, _MOST_DRAWN_PLACES // n_items)), n_items), np.float32)
        expectation = expect(draws=draws)
        orders = np.stack([self._places_of(np.lexsort((draw, crowd.item_query))) for draw in draws])
        return expectation, self.learner.from_orders(orders, weights)

    def learn_as_printed(self, *, n_iter: int, seed: int, progress: Progress | None = None) -> Estimates:
        """Return the estimates by the procedure of [Wu11]_: new random chains in each iteration, its stopping rule."""
        crowd, m, rng = self.crowd, self.learner.n_features, np.random.default_rng(seed)
        sampler, theta, weights = crowd.start_chains(), -rng.random(len(crowd.start)), np.full(m, 1 / m)
        best, ranked = np.empty(len(crowd.item_query), np.int32), np.unique(crowd.item_query[self.item])
        # in an order that does not depend on names
        visits = np.argsort(crowd.arranged.seeds[ranked])
        for done in range(n_iter):
            printed = partial(crowd.distances_as_printed, sampler=sampler, rng=rng, best=best)
            following = crowd.dispersions(theta, printed(theta, scores=self.scores(weights)))
            moved, theta = float(np.linalg.norm(following - theta)), following
            printed(theta, scores=self.scores(weights))
            learned = self.learner.descend(
                self.places(best), visits, weights, step=_PRINTED_STEP, n_epochs=_PRINTED_EPOCHS
            )
            turned, weights = float(np.linalg.norm(learned - weights)), learned
            if progress is not None:
                progress(done + 1, n_iter, self.what)
            settled = moved < PRINTED_CHANGE * len(theta) and turned < PRINTED_CHANGE * m
            if settled:
                break
        return Estimates(theta, weights, Trace(done + 1, settled, max(moved, turned)), sampler, best)


def unranked_scores(rankings: Rankings, features: Features, crowd: MallowsCrowd, ranker: LinearScore) -> Floats:
    """Return scores of items that nobody ranked, 0 for all others, from the ranker's Plackett-Luce scores.

    By these an item stands above another with some probability. The score is the number of ranked items (of items,
    where none of the query is ranked) that it is expected to stand above, less half of them.
    """
    row = features.items.codes_of(rankings.items, "features", "judgments")
    known = (row >= 0) & np.isfinite(features.matrix[row]).all(axis=1)
    expected, free = np.zeros(rankings.n_items), np.ones(rankings.n_items, bool)
    free[crowd.arranged.item] = False
    if not (free & known).any():
        return expected
    table, scores = pl.DataFrame(features.matrix[row[known]], schema=list(features.names)), np.zeros(rankings.n_items)
    scores[known] = ranker.predict(table, rankings.items.query[known])
    for query in np.unique(rankings.items.query[free & known]):
        here = np.arange(*rankings.items.offsets[query : query + 2])
        others = here[known[here] & (free[here].all() | ~free[here])]
        ours = here[free[here] & known[here]]
        # half of the hyperbolic tangent of half a gap is the logistic function less a half
        expected[ours] = 0.5 * np.tanh(0.5 * np.subtract.outer(scores[ours], scores[others])).sum(axis=1)
    return expected
