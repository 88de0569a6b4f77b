"""Items whose place among the others of their query the judgments leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.coding import LONG
from ..data.index import Items
from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..pair_counts import one_way_parts
from ..protocols import Ints

RELATIONS = ("apart", "won", "lost")


def open_groups(judgments: Judgments) -> pl.DataFrame:
    """Return query, item, group and relation of each such item; grades lie on one scale and leave nothing open."""
    nothing = np.zeros(0, np.int32)
    if isinstance(judgments, Grades) or not len(judgments):
        return _table(judgments.items, nothing, nothing, nothing)
    winner, loser = _wins(judgments) if isinstance(judgments, Preferences) else _neighbours(judgments)
    items = judgments.items
    group = _connect_items(winner, loser, len(items))
    judged = np.zeros(len(items), bool)
    judged[winner] = judged[loser] = True
    codes = np.flatnonzero(judged)
    heads = codes[np.unique(group[codes], return_index=True)[1]]
    number = np.bincount(items.query[heads], minlength=items.n_queries)
    part, won, lost = one_way_parts(winner, loser, len(items))
    kinds = [(judged & (number > 1)[items.query], group), (won, part), (lost, part)]
    members = [np.flatnonzero(mask) for mask, _ in kinds]
    groups = [own[code] for code, (_, own) in zip(members, kinds, strict=True)]
    relation = np.repeat(np.arange(len(kinds)), [len(code) for code in members])
    return _table(items, np.concatenate(members), np.concatenate(groups), relation)


def _table(items: Items, code: Any, group: Any, relation: Any) -> pl.DataFrame:
    """Rows with ids, groups numbered from 1 in the order of the rows."""
    number = pl.struct("relation", "group").rank("dense").cast(pl.Int64)
    columns: dict[str, Any] = {} if items.single else {"query": items.query_ids().gather(code)}
    columns |= {"item": items.ids.gather(code), "group": np.asarray(group, np.int64), "relation": relation}
    frame = pl.DataFrame(columns).with_columns(group=number)
    return frame.with_columns(relation=pl.Series(RELATIONS).gather(frame["relation"]))


def _connect_items(winner: Ints, loser: Ints, n: int) -> Ints:
    """Number of the group of items that preferences connect each of ``n`` items with."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(winner), bool), (winner, loser)), shape=(n, n))
    groups: Ints = connected_components(graph, directed=False)[1]
    return groups


def _wins(preferences: Preferences) -> tuple[Ints, Ints]:
    """Winner and loser of comparisons, each pair at least once; a tie is a win of either."""
    if len(preferences) < LONG:
        left, right, outcome = preferences.left, preferences.right, preferences.outcome
        forth, back = outcome >= 0, outcome <= 0
        return np.append(left[forth], right[back]), np.append(right[forth], left[back])
    from ..kernels.pairs import count_pairs

    counts = count_pairs(preferences.left, preferences.right, preferences.outcome, None, preferences.items.offsets)
    first, second = counts.first, counts.second
    forth, back = counts.wins + counts.ties > 0, counts.losses + counts.ties > 0
    return np.append(first[forth], second[back]), np.append(second[forth], first[back])


def _neighbours(rankings: Rankings) -> tuple[Ints, Ints]:
    """The same between neighbours in rankings, from which ways lead on as from all pairs."""
    inside = np.diff(rankings.ranking) == 0
    better, worse = rankings.item[:-1][inside], rankings.item[1:][inside]
    tied = (rankings.rank[1:] == rankings.rank[:-1])[inside]
    return np.append(better, worse[tied]), np.append(worse, better[tied])
