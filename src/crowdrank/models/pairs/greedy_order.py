"""Greedy order: repeatedly place the item with the largest balance of wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...pair_counts import count_preferences, warn_apart
from ...quality import held_out

_UNITS_PER_SHARE = 2.0**40
_EQUAL_UNITS = 1 << 20
"""Shares are multiples of 2 ** -40, whose sums are exact, and potentials that differ by a millionth are equal."""


@dataclass(frozen=True, kw_only=True)
class GreedyOrder:
    r"""Greedy order: repeatedly place the item with the largest balance of wins.

    With :math:`p_{ij}` the share of preferences against item :math:`j` that item :math:`i` won, its potential is

    .. math:: \pi_i = \sum_j (p_{ij} - p_{ji}),

    over the items of its query that are not yet placed, of which the one with the largest is placed next. An order made
    so agrees with the preferences at least half as well as the best one [Cohen99]_. The score is the standing in it,
    (items below - items above) / (items - 1): 1 for the first and -1 for the last.

    When to use
    -----------
    Use it as a baseline with a guarantee: at least half of the best possible agreement with the preferences. It has no
    scores with a unit and no standard errors; ``bradley_terry`` has both.

    Notes
    -----
    A pair that has not met has :math:`p_{ij} = p_{ji} = 1/2` and adds nothing, so only the potentials of items
    that met the one just placed change. With a heap that takes steps in proportion to the pairs that met times
    :math:`\log n`, and no table of all pairs.

    Items whose potentials are equal are placed together, in the order of the shares they have against each other, where
    the paper takes any one of them; those equal in that too share a place. So names do not matter, and on
    simulated preferences Kendall's tau is .00 to .03 higher. The order is made from the top: reversed preferences
    need not reverse it.

    A tie is half a win for each side. An unjudged item has score 0, the middle. There are no standard errors; use the
    bootstrap. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "z", "x"), ("cy", "q", "y", "z", "y")]
    >>> GreedyOrder().fit(Preferences.from_rows(rows)).scores.tolist()
    [1.0, 0.0, -1.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the standings in the order; warns of groups that never met."""
        from .kernels.majority_orders import greedy_ranks, link_pairs, rank_standings

        expect(preferences, self)
        pair_counts, items = count_preferences(preferences, "split"), preferences.items
        warn_apart(items, pair_counts)
        lead = np.rint(pair_counts.margin / pair_counts.number * _UNITS_PER_SHARE).astype(np.int64)
        judged = pair_counts.wins + pair_counts.losses > 0
        ranks = greedy_ranks(link_pairs(pair_counts.starts, pair_counts.second, lead), judged, _EQUAL_UNITS)
        standings = rank_standings(ranks, items.query, items.n_queries)
        return Consensus.of(self, preferences, standings, quality=held_out(self, preferences))
