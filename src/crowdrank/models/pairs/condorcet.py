"""Condorcet fusion: quicksort of the items by majority preference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...pair_counts import count_preferences, warn_apart
from ...quality import held_out
from ...wording import expect_at_least


@dataclass(frozen=True, kw_only=True)
class Condorcet:
    r"""Condorcet fusion: quicksort of the items by majority preference.

    Item :math:`i` goes ahead of item :math:`j` of its query if it won more of their preferences than it lost, and the
    order is that of a quicksort with this comparison [Montague02]_: a pivot is drawn, the items that it loses to go
    ahead of it and those that it wins against behind it, and both parts are sorted in the same way. Where two items
    have not met, or are even, a coin decides. The score is the standing in the order,

    .. math:: \frac{\text{items below} - \text{items above}}{\text{items} - 1},

    1 for the first and -1 for the last, as the mean over ``n_runs`` sorts.

    When to use
    -----------
    Use it to reproduce Condorcet fusion as a baseline, or where each pair was judged often enough for its majority to
    be sure. Avoid it where most pairs never met: coins decide there, and ``bradley_terry`` is far better.

    Parameters
    ----------
    n_runs
        Number of sorts to average. One is the published method; with more, coins and pivots average out.
    seed
        Seed of the random draws.

    Notes
    -----
    The sort never looks at most of the pairs, and where few pairs were compared it tosses coins: of 300 items with 40
    preferences each, one sort has a Kendall's tau of .04 with the truth and the mean of 200 sorts .46, against .75 for
    :class:`~crowdrank.models.pairs.bradley_terry.BradleyTerry`. It takes steps in proportion to the pairs that met plus
    :math:`n \log n`, and no table of all pairs.

    Pivots and coins are drawn by what an item won and lost against whom, and whom those met, so neither names nor
    the order of rows matter. Items that cannot be distinguished in this way, as in a cycle of three, share a place.

    Ties count for neither side, so they can only make a majority smaller; an even pair is one that has not met.
    An unjudged item has score 0, the middle. There are no standard errors; use the bootstrap. Annotators are not
    needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("cy", "q", "x", "z", "x")]
    >>> Condorcet().fit(Preferences.from_rows(rows)).scores.tolist()
    [1.0, 0.0, -1.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)
    n_runs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "n_runs")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the mean standings; warns of groups that never met, between which only coins decide."""
        from ...kernels.numbering import structure_numbers
        from .kernels.majority_orders import link_pairs, majority_ranks, rank_standings

        expect(preferences, self)
        pair_counts, items = count_preferences(preferences, "split"), preferences.items
        warn_apart(items, pair_counts)
        lead = pair_counts.majorities()
        met = lead != 0
        starts, second = np.concatenate([[0], np.cumsum(met)])[pair_counts.starts], pair_counts.second[met]
        won = lead[met] > 0
        links = link_pairs(starts, second, lead[met].astype(np.int8))
        numbers = structure_numbers(starts, second, won.astype(np.uint64), (~won).astype(np.uint64), items.offsets)
        judged = np.flatnonzero(pair_counts.wins + pair_counts.losses > 0).astype(np.int32)
        bounds, total = np.searchsorted(judged, items.offsets), np.zeros(len(items))
        for salt in np.random.default_rng(self.seed).integers(0, 2**64, self.n_runs, dtype=np.uint64):
            ranks = majority_ranks(links, numbers, judged, bounds, salt)
            total += rank_standings(ranks, items.query, items.n_queries)
        return Consensus.of(self, preferences, total / self.n_runs, quality=held_out(self, preferences))
