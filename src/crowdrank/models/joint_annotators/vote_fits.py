"""Fits of votes on pairs: the right way round, with the likeliest spread of items, with rates by cluster of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...protocols import Floats
from .ballots import Ballots
from .item_scores import EqualScores, FeatureScores, ItemScores, ScoreModel
from .item_spread import averaged_fit
from .pair_clusters import cluster_pairs
from .votes import Climb, FlipPrior, State, VoteModel, right_way_round

_ROUGHLY = 1e-3


class VoteFit(NamedTuple):
    """A model and where its climb ended; voter ``k * n_clusters + d`` is voter ``k`` in cluster ``d`` of the pairs."""

    model: VoteModel
    climb: Climb
    n_clusters: int

    @property
    def scores(self) -> Floats:
        """Score of each item, (n_items,)."""
        return self.model.items.scores(self.climb.state.point)

    @property
    def odds(self) -> Floats:
        """Log odds of the lower item that the votes of each pattern add up to."""
        return self.model.odds(self.climb.state.flips)

    @property
    def weights(self) -> Floats:
        """Weight of each feature, none where features say nothing."""
        items, point = self.model.items, self.climb.state.point
        return items.weights(point) if isinstance(items, ItemScores) else point

    @property
    def probabilities(self) -> Floats:
        """Probability that the lower item of each pair is the better."""
        from .kernels.vote_patterns import pair_probabilities

        return pair_probabilities(self.model.votes, self.scores, self.odds)

    def leads(self) -> Floats:
        """Return each item's mean lead in probability over those it was compared with, 0 where there are none."""
        votes, lead, n = self.model.votes, 2.0 * self.probabilities - 1.0, len(self.scores)
        first, second = votes.first, votes.second
        sums = np.bincount(first, lead, n) - np.bincount(second, lead, n)
        found: Floats = sums / np.maximum(np.bincount(first, minlength=n) + np.bincount(second, minlength=n), 1)
        return found

    def flips(self, n_annotators: int) -> tuple[Floats, Floats]:
        """Return the rate of each annotator, the mean over votes, and the rate in each cluster.

        Those who gave no vote have the rate 1/2, and in a cluster their overall one.
        """
        votes, shape = self.model.votes, (-1, self.n_clusters)
        number = votes.sums(self.model.n_voters).reshape(shape)[:n_annotators]
        rates = self.climb.state.flips.reshape(shape)[:n_annotators]
        total = number.sum(axis=1)
        means = np.divide((number * rates).sum(axis=1), total, out=np.full(n_annotators, 0.5), where=total > 0)
        return means, np.where(total[:, None] > 0, rates, 0.5)


@dataclass(frozen=True)
class VoteFitter:
    """How votes are fitted.

    Parameters
    ----------
    n_clusters, folded, seed
        As for :func:`~crowdrank.models.joint_annotators.pair_clusters.cluster_pairs`; with 1 there are no clusters.
    cluster_alpha
        Number of votes that a voter's overall rate counts for in each cluster.
    tol, max_iter
        As for :meth:`~crowdrank.models.joint_annotators.votes.VoteModel.climb`.
    what
        Name of the method.
    told
        Told of the number of passes.
    """

    n_clusters: int | None
    folded: bool
    seed: int
    cluster_alpha: float
    tol: float
    max_iter: int
    what: str
    told: Callable[[int], None] | None = None

    def fit(self, ballots: Ballots, items: ScoreModel) -> VoteFit:
        """Return the fit of votes with scores from some model."""
        model = VoteModel(ballots.votes, items, ballots.prior)
        found = self._turned(model, ballots.sure)
        if isinstance(items, ItemScores):
            model, found = self._spread(model, found)
        if self.n_clusters == 1 or isinstance(items, EqualScores):
            return VoteFit(model, found, 1)
        return self._clustered(model, found, ballots.prior.fixed)

    def _turned(self, model: VoteModel, sure: bool) -> Climb:
        """A first fit, the right way round; a rough one where the spread is to be found yet."""
        rough = isinstance(model.items, ItemScores)

        def climb(start: State) -> Climb:
            if rough:
                return model.climb(start, tol=max(self.tol, _ROUGHLY), max_iter=self.max_iter, told=self.told)
            return self._climb(model, start)

        return right_way_round(model, climb(model.start()), sure, climb)

    def _climb(self, model: VoteModel, start: State) -> Climb:
        """A climb that warns if it does not arrive."""
        return model.climb(start, tol=self.tol, max_iter=self.max_iter, what=self.what, told=self.told)

    def _spread(self, model: VoteModel, found: Climb) -> tuple[VoteModel, Climb]:
        """The likeliest scores with the spread and the rates that are likeliest when scores are averaged over."""
        best = averaged_fit(model, found.state, tol=self.tol)
        model = replace(model, items=best.items, prior=model.prior.settled(best.flips))
        return model, _after(found, self._climb(model, State(best.scores, best.flips)))

    def _clustered(self, model: VoteModel, found: Climb, fixed: Floats) -> VoteFit:
        """The fit with rates of their own in each cluster, drawn towards the voter's overall rate."""
        items = model.items
        assert isinstance(items, FeatureScores | ItemScores)
        part = cluster_pairs(model.votes, items.matrix, self.n_clusters, folded=self.folded, seed=self.seed)
        n = self.n_clusters or int(part.max(initial=0)) + 1
        flips = np.repeat(found.state.flips, n)
        prior = FlipPrior(self.cluster_alpha * flips, self.cluster_alpha * (1 - flips), np.repeat(fixed, n))
        model = replace(model, votes=model.votes.split(part, n), prior=prior)
        return VoteFit(model, _after(found, self._climb(model, State(found.state.point, flips))), n)


def _after(former: Climb, climb: Climb) -> Climb:
    """The climb, with the passes of a former one counted in."""
    return climb._replace(trace=replace(climb.trace, n_iter=former.trace.n_iter + climb.trace.n_iter))
