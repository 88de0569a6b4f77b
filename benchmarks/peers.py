"""Peers' methods for preferences and rankings in the shape of our aggregators, so that both go through one harness.

None of them knows queries, so each query is fitted alone, as their users must. What a peer cannot take (ties, weights)
is prepared the way its documentation suggests: a tie is dropped where only winners can be given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Peer:
    """A function of one query's judgments, (items of the query, judgments) to scores, fitted query by query."""

    name: str
    kinds: ClassVar[tuple[str, ...]] = ("preference", "ranking")
    fit_query: Callable[[int, Any, int], Any] | None = None

    def scores(self, judgments: Any) -> Any:
        """The scores of all items, 0 for those of a query that the peer fails on or that has no judgments."""
        assert self.fit_query is not None
        of_all = np.zeros(judgments.n_items)
        first = judgments.left if judgments.kind == "preference" else judgments.item[judgments.offsets[:-1]]
        query = judgments.items.query[first]
        order = np.argsort(query, kind="stable")
        bounds = np.searchsorted(query[order], np.arange(judgments.n_queries + 1))
        for number in range(judgments.n_queries):
            rows = order[bounds[number] : bounds[number + 1]]
            # a whole weight is that many judgments, which every peer can be given
            rows = np.repeat(rows, np.rint(judgments.row_weight[rows]).astype(np.int64))
            start, stop = judgments.items.offsets[number : number + 2]
            if len(rows):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores = np.asarray(self.fit_query(int(stop - start), judgments.select(rows), int(start)), float)
                of_all[start:stop] = np.where(np.isfinite(scores), scores, 0.0)
        return of_all

    def fit(self, judgments: Any) -> Any:
        """The scores as a consensus."""
        from crowdrank.data.consensus import Consensus

        return Consensus(items=judgments.items, scores=self.scores(judgments), method=self.name)


def evalica(method: str) -> Peer:
    """A method of evalica, ties included, with its defaults."""

    def fit_query(n: int, preferences: Any, start: int) -> Any:
        import evalica as peer

        winner = {1: peer.Winner.X, 0: peer.Winner.Draw, -1: peer.Winner.Y}
        winners = [winner[int(outcome)] for outcome in preferences.outcome]
        left, right = (preferences.left - start).tolist(), (preferences.right - start).tolist()
        scores = getattr(peer, method)(left, right, winners).scores
        all_scores = np.full(n, np.nan)
        all_scores[scores.index.to_numpy()] = scores.to_numpy()
        return np.where(np.isnan(all_scores), np.nanmean(all_scores), all_scores)

    return Peer(f"evalica {method}", fit_query)


def choix_pairs(method: str, alpha: float) -> Peer:
    """A method of choix for pairs; ties are dropped, alpha keeps unconnected items finite."""

    def fit_query(n: int, preferences: Any, start: int) -> Any:
        import choix

        won = preferences.outcome != 0
        first = np.where(preferences.outcome > 0, preferences.left, preferences.right)[won] - start
        second = np.where(preferences.outcome > 0, preferences.right, preferences.left)[won] - start
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        return getattr(choix, method)(n, pairs, alpha=alpha) if pairs else np.zeros(n)

    return Peer(f"choix {method}", fit_query)


def choix_rankings(method: str, alpha: float) -> Peer:
    """A method of choix for rankings; items of equal rank stand in the order of their ids."""

    def fit_query(n: int, rankings: Any, start: int) -> Any:
        import choix

        bounds = rankings.offsets
        orders = [tuple((rankings.item[a:b] - start).tolist()) for a, b in pairwise(bounds)]
        orders = [order for order in orders if len(order) > 1]
        return getattr(choix, method)(n, orders, alpha=alpha) if orders else np.zeros(n)

    return Peer(f"choix {method}", fit_query)


def crowdkit(method: str) -> Peer:
    """A pairwise method of crowd-kit with its defaults; ties are dropped."""

    def fit_query(n: int, preferences: Any, start: int) -> Any:
        import pandas as pd
        from crowdkit import aggregation

        won = preferences.outcome != 0
        left, right = preferences.left[won] - start, preferences.right[won] - start
        if not won.any():
            return np.zeros(n)
        label = np.where(preferences.outcome[won] > 0, left, right)
        rows = {"worker": preferences.annotator[won], "left": left, "right": right, "label": label}
        made = getattr(aggregation, method)(n_iter=100)
        scores = made.fit_predict(pd.DataFrame(rows))
        all_scores = np.full(n, float(scores.mean()))
        all_scores[scores.index.to_numpy()] = scores.to_numpy()
        return all_scores

    return Peer(f"crowd-kit {method}", fit_query)


PREFERENCE_PEERS = (
    evalica("bradley_terry"),
    evalica("elo"),
    evalica("newman"),
    evalica("average_win_rate"),
    choix_pairs("ilsr_pairwise", 0.01),
    choix_pairs("rank_centrality", 0.01),
    crowdkit("BradleyTerry"),
    crowdkit("NoisyBradleyTerry"),
)
RANKING_PEERS = (choix_rankings("ilsr_rankings", 0.01),)
