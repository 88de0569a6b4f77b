"""Preferences as contests, counted by pair of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .data.judgments import Preferences
from .protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.pairs import PairCounts


class Contests(NamedTuple):
    """Counts of pairs in compressed rows, as the ties rule sees them; no tie parameter where ``n_ties`` is ``None``.

    ``second``, ``margin`` (wins less losses of the lower item) and ``number`` are over pairs; ``wins``, ``losses`` and
    ``group``, the lowest item that an item is connected with by contests, are over items.
    """

    starts: Counts
    second: Ints
    margin: Floats
    number: Floats
    wins: Floats
    losses: Floats
    n_ties: float | None
    group: Ints

    def centred(self, values: Floats) -> Floats:
        """Values less the mean of their group: the likelihood leaves a group's level free, the ridge puts it at 0."""
        sums = np.bincount(self.group, values, len(values))
        return values - (sums / np.maximum(np.bincount(self.group, minlength=len(values)), 1))[self.group]


def count_contests(preferences: Preferences, ties: str) -> Contests:
    """Return the pairs with their contests, and what each item won and lost in all.

    ``ties`` is ``"split"`` (half a win for each side), ``"ignore"``, or ``"davidson"``, which splits and counts them.
    """
    from .kernels.pairs import count_pairs

    offsets = preferences.items.offsets
    counts = count_pairs(preferences.left, preferences.right, preferences.outcome, preferences.weight, offsets)
    return contests_of(counts, ties, offsets)


def contests_of(counts: PairCounts, ties: str, offsets: Counts) -> Contests:
    """Return the contests of pairs that are counted already; ``offsets`` bound the items of the queries."""
    from .kernels.laplacian import connected_groups
    from .kernels.pairs import item_totals

    if ties == "ignore" and counts.ties.any():
        counts = counts.keep(counts.wins + counts.losses > 0)
        counts = counts._replace(ties=np.zeros_like(counts.wins))
    wins, losses = item_totals(counts)
    number = counts.wins + counts.losses + counts.ties
    n_ties = float(counts.ties.sum()) if ties == "davidson" else None
    group = connected_groups(counts.starts, counts.second, offsets)
    return Contests(counts.starts, counts.second, counts.wins - counts.losses, number, wins, losses, n_ties, group)
