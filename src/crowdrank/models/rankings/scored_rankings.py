"""True rankings that features tell something of, learned along with the annotators who scatter around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ...data.consensus import Trace
from ...protocols import Counts, Floats, Ints, Progress
from .mallows_crowd import Expected, MallowsCrowd, Sampler

_DRAWN = 10_000
_MOVES, _STEP, _EPOCHS, _SETTLED = 500, 0.01, 50, 0.01
"""Of the printed procedure: moves of a chain, step and passes of the descent, change to stop at for each parameter."""


class Learner(Protocol):
    """What learns weights of features from rankings, as :class:`~crowdrank.learning.LuceWeights` does."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        ...

    @property
    def offsets(self) -> Counts:
        """Bounds of each query's places."""
        ...

    def scores(self, weights: Floats, /) -> Floats:
        """Return the score of each place."""
        ...

    def penalty(self, weights: Floats, /) -> float:
        """Return what the prior of the weights takes off the log-likelihood."""
        ...

    def from_orders(self, orders: Counts, start: Floats, /) -> Floats:
        """Return the weights under which orders of each query's places are most likely."""
        ...

    def from_sets(self, sets: Floats, start: Floats, /) -> Floats:
        """Return the same for random orders, given the chances of sets to come first."""
        ...

    def descended(self, order: Counts, visits: Counts, start: Floats, /, *, step: float, n_epochs: int) -> Floats:
        """Return the weights after stochastic gradient steps."""
        ...


class Learned(NamedTuple):
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
    learner: Learner
    item: Counts
    what: str

    def scores(self, weights: Floats) -> Floats:
        """Return scores of the crowd's items; those without features have the mean of their query."""
        query, known = self.crowd.item_query, self.learner.scores(weights)
        n = len(self.crowd.arranged.lists.sizes)
        number = np.maximum(np.bincount(query[self.item], minlength=n), 1)
        found: Floats = (np.bincount(query[self.item], known, n) / number)[query]
        found[self.item] = known
        return found

    def places(self, order: Ints) -> Counts:
        """Return each query's items, best first by their numbers, as places of the learner."""
        return self._placed(order + self.crowd.arranged.lists.offsets[self.crowd.item_query])

    def _placed(self, item: Counts) -> Counts:
        """Items of the crowd as places of the learner, those without features left out."""
        place = np.full(len(self.crowd.arranged.item), -1)
        place[self.item] = np.arange(len(self.item))
        return place[item][place[item] >= 0]

    def carried(
        self, step: str, *, n_sweeps: int, n_draws: int, tol: float, n_iter: int, progress: Progress | None = None
    ) -> Learned:
        """Return what is learned by turns from Borda's order, with chains that go on from turn to turn.

        With ``step="hard"`` weights are learned from the most probable ranking, with ``"soft"`` from all of them by
        their probability, ``n_draws`` standing for them where they are sampled. Both kinds of parameters are averaged
        over the second half of the turns, unless all queries are exact and changes come down to ``tol`` before.
        """
        crowd, sampler, sampled = self.crowd, self.crowd.begin(), len(self.crowd.sampled) > 0
        start = np.zeros(self.learner.n_features)
        theta, weights = crowd.start, self.learner.from_orders(self.places(sampler.chains.order)[None], start)
        states, distances, values = [np.concatenate([theta, weights])], [], []
        for done in range(n_iter):
            found, following = self._turn(step, n_sweeps * crowd.times, n_draws, theta, weights, sampler)
            if not sampled:
                values.append(crowd.objective(theta, found.log_total, scored=True) - self.learner.penalty(weights))
            theta, weights = crowd.dispersions(theta, found.distance), following
            states.append(np.concatenate([theta, weights]))
            distances.append(crowd.totals(found.distance))
            if progress is not None:
                progress(done + 1, n_iter, self.what)
            change = float(np.abs(states[-1] - states[-2]).max())
            if not sampled and change <= tol:
                return Learned(theta, weights, Trace(done + 1, True, change, tuple(values)), sampler)
        half = n_iter // 2
        change, settled = crowd.drift(distances[half:], self.what, n_iter)
        mean = np.mean(states[half + 1 :], axis=0)
        trace = Trace(n_iter, settled, change, None if sampled else tuple(values))
        return Learned(mean[: len(theta)], mean[len(theta) :], trace, sampler)

    def _turn(
        self, step: str, n_sweeps: int, n_draws: int, theta: Floats, weights: Floats, sampler: Sampler
    ) -> tuple[Expected, Floats]:
        """Expected distances, and the weights that go with the rankings they are expected over."""
        crowd, n_items, sizes = self.crowd, len(self.crowd.arranged.item), self.crowd.arranged.lists.sizes
        expected = partial(crowd.expect, theta, sampler, n_sweeps, scores=self.scores(weights))
        if step == "hard":
            best = np.empty(n_items, np.int32)
            found = expected(best=best)
            return found, self.learner.from_orders(self.places(best)[None], weights)
        if not len(crowd.sampled) and len(self.item) == n_items:
            sets = np.zeros(int((2**sizes).sum()))
            found = expected(sets=sets)
            return found, self.learner.from_sets(sets[np.repeat(sizes > 0, 2**sizes)], weights)
        # many items make up for few draws
        draws = np.zeros((max(1, min(n_draws, _DRAWN // n_items)), n_items), np.float32)
        found = expected(draws=draws)
        orders = np.stack([self._placed(np.lexsort((draw, crowd.item_query))) for draw in draws])
        return found, self.learner.from_orders(orders, weights)

    def printed(self, *, n_iter: int, seed: int, progress: Progress | None = None) -> Learned:
        """Return what is learned as [Wu11]_ prints it: chains begin anew at random, and stop by its rules."""
        crowd, m, rng = self.crowd, self.learner.n_features, np.random.default_rng(seed)
        sampler, theta, weights = crowd.begin(), -rng.random(len(crowd.start)), np.full(m, 1 / m)
        best, ranked = np.empty(len(crowd.item_query), np.int32), np.unique(crowd.item_query[self.item])
        # in an order that no name decides on
        visits = np.argsort(crowd.arranged.seeds[ranked])
        for done in range(n_iter):
            following = crowd.dispersions(theta, self._moved(theta, weights, sampler, rng, best))
            moved, theta = float(np.linalg.norm(following - theta)), following
            self._moved(theta, weights, sampler, rng, best)
            learned = self.learner.descended(self.places(best), visits, weights, step=_STEP, n_epochs=_EPOCHS)
            turned, weights = float(np.linalg.norm(learned - weights)), learned
            if progress is not None:
                progress(done + 1, n_iter, self.what)
            settled = moved < _SETTLED * len(theta) and turned < _SETTLED * m
            if settled:
                break
        return Learned(theta, weights, Trace(done + 1, settled, max(moved, turned)), sampler, best)

    def _moved(self, theta: Floats, weights: Floats, sampler: Sampler, rng: np.random.Generator, best: Ints) -> Floats:
        """Mean distances over random swaps from a random start; the best ranking seen goes to ``best``."""
        crowd, scores = self.crowd, self.scores(weights)
        lists, pull = crowd.arranged.lists, theta[crowd.annotator] * crowd.weight
        if crowd.distance == "kendall":
            from .kernels.random_swaps import swap_places

            ranked = np.flatnonzero(lists.sizes)
            return swap_places(lists, pull, sampler.chains, ranked, _MOVES, scores=scores, best=best).distance
        from .kernels.cayley import swap_randomly

        sampler.chains.order[:] = crowd.by_score(rng.random(len(scores)))
        n_sweeps = max(1, round(_MOVES / float(lists.sizes[lists.sizes > 0].mean())))
        return swap_randomly(lists, pull, *sampler, n_sweeps, scores=scores, best=best).distance
