"""An order of items by quicksort, in which the majority of preferences decides who goes ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...errors import ParameterError
from ...pair_counts import Contests, count_contests
from ...pair_groups import warn_apart
from ...protocols import Floats
from ...quality import held_out
from .standings import place_standings

_EVEN = 1e-9
"""Margins of sums of weights, as a share of the contests, that are rounding rather than a majority."""


@dataclass(frozen=True, kw_only=True)
class Condorcet:
    r"""Condorcet fusion: quicksort of the items by majority preference.

    Item :math:`i` goes ahead of item :math:`j` of its query where it won more of their contests than it lost, and the
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
        Start of the random draws.

    Notes
    -----
    The sort never looks at most of the pairs, and where few pairs were compared it tosses coins: of 300 items with 40
    contests each, one sort has a Kendall's tau of .04 with the truth and the mean of 200 sorts .46, against .75 for
    :class:`~crowdrank.models.pairs.bradley_terry.BradleyTerry`. It takes steps in proportion to the pairs that met plus
    :math:`n \log n`, and no table of all pairs.

    Pivots and coins are drawn by what an item won and lost against whom, and whom those met, so that neither names nor
    the order of rows matter. Items that cannot be told apart in this way, as in a cycle of three, share a place.

    Ties count for neither side, so that they can only make a majority smaller; an even pair is one that has not met.
    An unjudged item has score 0, the middle. There are no standard errors; use the bootstrap. Annotators are not
    needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("cy", "q", "x", "z", "x")]
    >>> Condorcet().fit(Preferences.from_rows(rows)).scores.tolist()
    [1.0, 0.0, -1.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    n_runs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_runs < 1:
            raise ParameterError(f"n_runs={self.n_runs} must be at least 1")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the mean standings; warns of groups that never met, between which only coins decide."""
        expect(preferences, self)
        contests = count_contests(preferences, "split")
        warn_apart(preferences.items, contests)
        scores = _mean_standings(preferences, contests, self)
        return Consensus.of(self, preferences, scores, quality=held_out(self, preferences))


def _mean_standings(preferences: Preferences, contests: Contests, method: Condorcet) -> Floats:
    """Mean over the sorts of each item's standing."""
    from ...kernels.structure import structure_numbers
    from .kernels.links import both_ways
    from .kernels.majority_sort import majority_ranks

    items, met = preferences.items, np.abs(contests.margin) > _EVEN * contests.number
    starts, second = np.concatenate([[0], np.cumsum(met)])[contests.starts], contests.second[met]
    won = contests.margin[met] > 0
    links = both_ways(starts, second, np.where(won, 1, -1).astype(np.int8))
    numbers = structure_numbers(starts, second, won.astype(np.uint64), (~won).astype(np.uint64), items.offsets)
    judged = np.flatnonzero(contests.wins + contests.losses > 0).astype(np.int32)
    bounds = np.searchsorted(judged, items.offsets)
    rng = np.random.default_rng(method.seed)
    total = np.zeros(len(items))
    for salt in rng.integers(0, 2**64, method.n_runs, dtype=np.uint64):
        total += place_standings(majority_ranks(links, numbers, judged, bounds, salt), items)
    return total / method.n_runs
