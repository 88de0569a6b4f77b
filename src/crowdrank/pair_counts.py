"""Preferences counted by pair of items, and which items the counts leave without a bounded score."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .data.index import Items
from .data.judgments import Preferences
from .data.naming import first_ids
from .errors import warn
from .protocols import Bools, Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.pairs import OutcomeCounts, PreferencesByPair

MAX_STRENGTHS = 7
"""Strengths of preferences that have a step of their own."""

_MAX_GROUPS_SHOWN = 5

_MIN_MAJORITY_SHARE = 1e-9
"""Margins of sums of weights, as a share of the preferences, that are rounding rather than a majority."""


class PairCounts(NamedTuple):
    """Preferences counted by pair, in the compressed rows of :mod:`~crowdrank.kernels.pairs`, after the ties rule.

    Over pairs: ``second``, ``margin`` (wins less losses of the lower item) and ``number`` of preferences. Over items:
    ``wins``, ``losses`` and ``group``, the lowest item that preferences connect an item with. ``n_ties`` is ``None``
    where the model has no tie parameter.
    """

    starts: Counts
    second: Ints
    margin: Floats
    number: Floats
    wins: Floats
    losses: Floats
    n_ties: float | None
    group: Ints

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def majorities(self) -> Counts:
        """Return 1 for each pair whose lower item won more of its preferences, -1 if it lost more, 0 if it is even."""
        clear = np.abs(self.margin) > _MIN_MAJORITY_SHARE * self.number
        return np.where(clear, np.sign(self.margin), 0).astype(np.int64)

    def centre(self, values: Floats) -> Floats:
        """Return values less the mean of their group, whose level only the ridge determines."""
        sums = np.bincount(self.group, values, len(values))
        return values - (sums / np.maximum(np.bincount(self.group, minlength=len(values)), 1))[self.group]


def count_preferences(preferences: Preferences, ties: str) -> PairCounts:
    """Return the counts of each pair, and the wins and losses of each item.

    ``ties`` is ``"split"`` (half a win for each side), ``"ignore"``, or ``"davidson"``, which splits and counts them.
    """
    from .kernels.pairs import count_pairs

    offsets = preferences.items.offsets
    outcomes = count_pairs(preferences.left, preferences.right, preferences.outcome, preferences.weight, offsets)
    return apply_ties_rule(outcomes, ties, offsets)


def strength_steps(preferences: Preferences) -> tuple[Floats, Ints]:
    """Return the strengths of decided preferences, rising, and the step of each: 1, 2, ...

    Beyond seven strengths they are cut into seven steps of about equal weight.
    """
    return steps_of_strengths(*strength_weights(preferences))


def strength_weights(preferences: Preferences) -> tuple[Floats, Floats]:
    """Return the strengths of decided preferences, rising, and the weight of the preferences of each."""
    if preferences.strength is None:
        return np.empty(0), np.empty(0)
    decided = preferences.outcome != 0
    sizes, number = np.unique(preferences.strength[decided], return_inverse=True)
    return sizes, np.bincount(number, preferences.row_weight[decided], len(sizes)).astype(np.float64)


def steps_of_strengths(sizes: Floats, weight: Floats) -> tuple[Floats, Ints]:
    """Return strengths and the step of each: 1, 2, ..., given the weight of the preferences of each."""
    if len(sizes) <= MAX_STRENGTHS:
        return sizes, np.arange(1, len(sizes) + 1, dtype=np.int32)
    share = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    # what lies on a bound up to rounding is above it
    step = np.unique(np.floor(MAX_STRENGTHS * share + 1e-9), return_inverse=True)[1]
    return sizes, (step + 1).astype(np.int32)


def sort_and_count(
    preferences: Preferences, annotator: Ints, ties: str
) -> tuple[PreferencesByPair, PairCounts, Floats | None]:
    """Return preferences sorted by pair, their pair counts and, with Davidson's model, the ties of each pair.

    ``annotator`` numbers the parameter that each preference depends on; ``ties`` as above.
    """
    from .kernels.pairs import sort_by_pair

    if ties == "ignore" and not preferences.outcome.all():
        keep = preferences.outcome != 0
        preferences, annotator = preferences.select(keep), annotator[keep]
    columns = (preferences.left, preferences.right, preferences.outcome, annotator, preferences.weight)
    by_pair, counts = sort_by_pair(*columns, preferences.n_items, ties=ties == "split")
    tied = counts.ties if ties == "davidson" else None
    return by_pair, apply_ties_rule(counts, ties, preferences.items.offsets), tied


def apply_ties_rule(outcomes: OutcomeCounts, ties: str, offsets: Counts) -> PairCounts:
    """Return pair counts from counted outcomes; ``ties`` as above, ``offsets`` bound the items of the queries."""
    from .kernels.pairs import connected_groups, item_totals

    if ties == "ignore" and outcomes.ties.any():
        outcomes = outcomes.keep(outcomes.wins + outcomes.losses > 0)
        outcomes = outcomes._replace(ties=np.zeros_like(outcomes.wins))
    wins, losses = item_totals(outcomes)
    number = outcomes.wins + outcomes.losses + outcomes.ties
    n_ties = float(outcomes.ties.sum()) if ties == "davidson" else None
    group = connected_groups(outcomes.starts, outcomes.second, offsets)
    margin = outcomes.wins - outcomes.losses
    return PairCounts(outcomes.starts, outcomes.second, margin, number, wins, losses, n_ties, group)


def warn_unbounded(items: Items, pair_counts: PairCounts) -> None:
    """Warn of items that won or lost everything, of groups that did so together, and of groups that never met."""
    judged = pair_counts.wins + pair_counts.losses > 0
    winners = judged & (pair_counts.losses == 0)
    losers = judged & (pair_counts.wins == 0)
    for extreme, word in ((winners, "won"), (losers, "lost")):
        if extreme.any():
            warn(open_place(first_ids(items, extreme), int(extreme.sum()), word))
    named = [np.arange(len(items)) == one for one in np.flatnonzero(winners | losers)[:_MAX_GROUPS_SHOWN]]
    for members, word in _one_way_groups(pair_counts, winners | losers | ~judged):
        rest = judged & ~members & (pair_counts.group == pair_counts.group[np.argmax(members)])
        # that the rest won says that these lost
        if not any(np.array_equal(rest, one) for one in named):
            names = f"the {int(members.sum()):,} items {first_ids(items, members)}"
            warn(open_place(names, int(members.sum()), word, group=True))
            named.append(members)
    warn_apart(items, pair_counts)


def open_place(names: str, number: int, word: str, *, group: bool = False) -> str:
    """Return the sentence that so many items, or a group of them, ``won`` or ``lost`` all, so their place is open.

    Examples
    --------
    >>> open_place("'x'", 1, "won")
    "'x' won every preference, so how far ahead it is remains open: compare it with the items next to it"
    """
    far = "ahead" if word == "won" else "behind"
    they, them = ("it is", "it") if number == 1 else ("they are", "them")
    where = " against the others of their query" if group else ""
    so = f"how far {far} {they} remains open: compare {them} with the items next to {them}"
    return f"{names} {word} every preference{where}, so {so}"


def warn_apart(items: Items, pair_counts: PairCounts) -> None:
    """Warn of groups of items of a query that were never compared with each other."""
    heads = (pair_counts.wins + pair_counts.losses > 0) & (pair_counts.group == np.arange(len(items)))
    loose = heads & (np.bincount(items.query, heads, items.n_queries) > 1)[items.query]
    if loose.any():
        what = f"{int(loose.sum())} groups of items were never compared with each other"
        remedy = f"those of {first_ids(items, loose)}; their scores cannot be compared across groups"
        warn(f"{what}, {remedy}: ask for preferences between them")


def _one_way_groups(pair_counts: PairCounts, alone: Bools) -> list[tuple[Bools, str]]:
    """Groups of several items that won, or lost, every preference against the rest of their connected group."""
    from .kernels.pairs import reachable_items

    pairs, n = (pair_counts.starts, pair_counts.second), len(pair_counts.group)
    won, lost = pair_counts.margin > -pair_counts.number, pair_counts.margin < pair_counts.number
    heads = pair_counts.group == np.arange(n)
    if (reachable_items(*pairs, won, lost, heads) & reachable_items(*pairs, lost, won, heads)).all():
        return []
    first, second = pair_counts.first, pair_counts.second
    part, winning, losing = one_way_parts(np.append(first[won], second[lost]), np.append(second[won], first[lost]), n)
    groups = []
    for free, word in ((winning & ~alone, "won"), (losing & ~alone, "lost")):
        groups += [(free & (part == number), word) for number in np.unique(part[free])[:_MAX_GROUPS_SHOWN]]
    return groups


def one_way_parts(winner: Ints, loser: Ints, n: int) -> tuple[Ints, Bools, Bools]:
    """Return the strongly connected part of each of ``n`` items, and whether the part won, or lost, against all others.

    Row by row ``winner`` won against ``loser``; a tie is one win for each. Wins within a part do not count, and a part
    that met no other neither won nor lost.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(winner), bool), (winner, loser)), shape=(n, n))
    part: Ints = connected_components(graph, directed=True, connection="strong")[1]
    apart = part[winner] != part[loser]
    beat, beaten = np.zeros((2, n), bool)
    beat[part[winner[apart]]] = True
    beaten[part[loser[apart]]] = True
    return part, (beat & ~beaten)[part], (beaten & ~beat)[part]
