"""Which items the contests leave without a level of their own: undefeated ones, one-way groups, groups apart."""

from __future__ import annotations

import warnings

import numpy as np

from .data.index import Items
from .data.naming import named
from .errors import DataWarning
from .pair_counts import Contests
from .protocols import Bools, Ints

_SHOWN = 5


def warn_unbounded(items: Items, contests: Contests, *, held_by: str = "only the ridge keeps", depth: int = 3) -> None:
    """Name the items that won or lost everything, the groups that did so together, and the groups that never met.

    ``held_by`` says what keeps the scores finite, ``depth`` how many calls up the warning points.
    """
    judged = contests.wins + contests.losses > 0
    winners = judged & (contests.losses == 0)
    losers = judged & (contests.wins == 0)
    for extreme, word in ((winners, "won"), (losers, "lost")):
        if extreme.any():
            _warn(f"{named(items, extreme)} {word} every contest, so that {held_by} the score finite", depth)
    for members, word in _one_way(contests, winners | losers | ~judged):
        text = f"the {int(members.sum())} items {named(items, members)} {word} every contest with the others of their"
        _warn(f"{text} query, so that {held_by} the two groups together", depth)
    warn_apart(items, contests, depth=depth + 1)


def warn_apart(items: Items, contests: Contests, *, depth: int = 3) -> None:
    """Name the groups of items of a query that were never compared with each other."""
    heads = (contests.wins + contests.losses > 0) & (contests.group == np.arange(len(items)))
    loose = heads & (np.bincount(items.query, heads, items.n_queries) > 1)[items.query]
    if loose.any():
        _warn(
            f"{int(loose.sum())} groups of items were never compared with each other, those of {named(items, loose)}; "
            "their scores cannot be compared across groups: ask for preferences between them",
            depth,
        )


def _one_way(contests: Contests, alone: Bools) -> list[tuple[Bools, str]]:
    """Groups of several items that won, or lost, every contest with the rest of those they are connected with."""
    from .kernels.laplacian import reached

    pairs, n = (contests.starts, contests.second), len(contests.group)
    won, lost = contests.margin > -contests.number, contests.margin < contests.number
    heads = contests.group == np.arange(n)
    if (reached(*pairs, won, lost, heads) & reached(*pairs, lost, won, heads)).all():
        return []
    first, second = np.repeat(np.arange(n, dtype=np.int32), np.diff(contests.starts)), contests.second
    part, winning, losing = one_way_parts(np.append(first[won], second[lost]), np.append(second[won], first[lost]), n)
    found = []
    for free, word in ((winning & ~alone, "won"), (losing & ~alone, "lost")):
        found += [(free & (part == number), word) for number in np.unique(part[free])[:_SHOWN]]
    return found


def one_way_parts(winner: Ints, loser: Ints, n: int) -> tuple[Ints, Bools, Bools]:
    """Return the part of each of ``n`` items in which wins lead both ways, and whether it won, or lost, all contests.

    A contest is a win of ``winner`` over ``loser``, a tie one of either; those within a part do not count, and a part
    that met no other neither won nor lost.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(winner), bool), (winner, loser)), shape=(n, n))
    part: Ints = connected_components(graph, directed=True, connection="strong")[1]
    apart = part[winner] != part[loser]
    beat, beaten = np.zeros(n, bool), np.zeros(n, bool)
    beat[part[winner[apart]]] = True
    beaten[part[loser[apart]]] = True
    return part, (beat & ~beaten)[part], (beaten & ~beat)[part]


def _warn(message: str, depth: int) -> None:
    """Warn about the preferences at the caller of fit."""
    warnings.warn(message, DataWarning, stacklevel=depth + 1)
