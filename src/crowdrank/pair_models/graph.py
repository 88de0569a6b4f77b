"""Which items the contests leave without a level of their own: undefeated ones, one-way groups, groups apart."""

from __future__ import annotations

import warnings

import numpy as np

from ..data.index import Items
from ..data.intake import short
from ..errors import DataWarning
from ..protocols import Bools, Ints
from .contests import Contests

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
    heads = judged & (contests.group == np.arange(len(items)))
    loose = heads & (np.bincount(items.query, heads, items.n_queries) > 1)[items.query]
    if loose.any():
        _warn(
            f"{int(loose.sum())} groups of items were never compared with each other, those of {named(items, loose)}; "
            "their scores cannot be compared across groups: ask for preferences between them",
            depth,
        )


def named(items: Items, chosen: Bools) -> str:
    """Return the ids of the first five items chosen, then how many more there are."""
    codes = np.flatnonzero(chosen)
    ids, queries = items.ids.gather(codes[:_SHOWN]).to_list(), items.query_ids().gather(codes[:_SHOWN]).to_list()
    shown = [short(i) if items.single else f"{short(i)} (query {short(q)})" for i, q in zip(ids, queries, strict=True)]
    more = [f"{len(codes) - _SHOWN} more"] if len(codes) > _SHOWN else []
    return ", ".join([*shown, *more])


def _one_way(contests: Contests, alone: Bools) -> list[tuple[Bools, str]]:
    """Groups of several items that won, or lost, every contest with the rest of those they are connected with."""
    from ..kernels.laplacian import reached

    pairs = (contests.starts, contests.second)
    won, lost = contests.margin > -contests.number, contests.margin < contests.number
    heads = contests.group == np.arange(len(contests.group))
    if (reached(*pairs, won, lost, heads) & reached(*pairs, lost, won, heads)).all():
        return []
    part = _mutual(contests, won, lost)
    first = np.repeat(np.arange(len(part), dtype=np.int32), np.diff(contests.starts))
    second = contests.second
    apart = part[first] != part[second]
    found = []
    for down, up, word in ((lost, won, "won"), (won, lost, "lost")):
        # a part that nobody outside holds anything against, where its items do not stand alone anyway
        hurt = np.zeros(len(part), bool)
        hurt[part[first[apart & down]]] = hurt[part[second[apart & up]]] = True
        free = ~hurt[part] & ~alone
        met = np.zeros(len(part), bool)
        met[part[first[apart]]] = met[part[second[apart]]] = True
        free &= met[part]
        found += [(free & (part == number), word) for number in np.unique(part[free])[:_SHOWN]]
    return found


def _mutual(contests: Contests, won: Bools, lost: Bools) -> Ints:
    """Number of the strongly connected part that each item is in, where a win leads from winner to loser."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(contests.group)
    first, second = np.repeat(np.arange(n, dtype=np.int32), np.diff(contests.starts)), contests.second
    rows = np.concatenate([first[won], second[lost]])
    columns = np.concatenate([second[won], first[lost]])
    graph = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n, n))
    parts: Ints = connected_components(graph, directed=True, connection="strong")[1]
    return parts


def _warn(message: str, depth: int) -> None:
    """Warn about the preferences at the caller of fit."""
    warnings.warn(message, DataWarning, stacklevel=depth + 1)
