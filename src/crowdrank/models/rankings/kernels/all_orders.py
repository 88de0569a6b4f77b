"""Exact sums over all rankings of the items of small queries, for distances that are no sums over pairs.

All n! rankings of a query are listed with their distance to each of its lists, so n is 8 at most.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....protocols import Counts, Floats, Ints
from .permutations import SMALLEST, uniform
from .random_swaps import KINDS, permutation_distance
from .ranked_lists import RankedLists
from .subset_orders import OrderSums

MOST_ITEMS = 8
"""Largest query that is listed: 40,320 rankings."""

# threshold (sample): distances of all rankings of small queries that are held, other than Kendall's
MOST_CELLS = 200_000_000
"""Most distances that are held, a byte each; queries beyond are sampled."""


class ListedOrders(NamedTuple):
    """Distances of all rankings of some queries to their lists, (n_lists, n_orders) for each of ``chosen``."""

    chosen: Counts
    distances: list[NDArray[np.uint8]]


@cache
def all_places(n: int) -> tuple[Ints, Floats]:
    """Return all rankings of some items, as items best first, (n!, n), and the place of each item, (n!, n)."""
    orders = np.array(list(permutations(range(n))), np.int32).reshape(-1, n)
    return orders, np.argsort(orders, axis=1).astype(np.float64)


def listable(lists: RankedLists, ranked: Counts, most_items: int) -> Counts:
    """Return the queries, of those chosen, that can be listed: small ones in which no list has ties."""
    length = np.diff(lists.starts)
    number = np.repeat(np.arange(len(length)), length)
    tied = np.zeros(len(length), bool)
    tied[number[1:][(np.diff(lists.rank) == 0) & (np.diff(number) == 0)]] = True
    query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))
    has_ties = np.bincount(query, tied, len(lists.sizes)) > 0
    sizes = lists.sizes[ranked]
    small: Counts = ranked[(sizes <= min(most_items, MOST_ITEMS)) & ~has_ties[ranked]]
    factorials = np.cumprod(np.maximum(np.arange(MOST_ITEMS + 1), 1))
    cells = np.cumsum(factorials[lists.sizes[small]] * np.diff(lists.queries)[small])
    return small[cells <= MOST_CELLS]


def list_orders(lists: RankedLists, chosen: Counts, distance: str) -> ListedOrders:
    """Return the distances of all rankings of the chosen queries to their lists."""
    kind, tables, fill = KINDS.index(distance), [], _fill_distances
    for query in chosen.tolist():
        n, (first, last) = int(lists.sizes[query]), lists.queries[query : query + 2]
        orders, _ = all_places(n)
        table = np.empty((last - first, len(orders)), np.uint8)
        begin = lists.starts[first : last + 1] - lists.starts[first]
        fill(orders, begin, lists.item[lists.starts[first] : lists.starts[last]], kind, table)
        tables.append(table)
    return ListedOrders(chosen, tables)


def sum_listed(
    lists: RankedLists,
    listed: ListedOrders,
    pull: Floats,
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    state: NDArray[np.uint64] | None = None,
    best: Ints | None = None,
) -> OrderSums:
    """Return expectations over all rankings of the listed queries.

    Parameters are those of :func:`crowdrank.models.rankings.kernels.subset_orders.sum_orders`.
    """
    log_total, distance = np.zeros(len(lists.sizes)), np.zeros(len(pull))
    place, spread = np.zeros((2, int(lists.offsets[-1])))
    for query, table in zip(listed.chosen.tolist(), listed.distances, strict=True):
        head, tail = lists.offsets[query : query + 2]
        first, last = lists.queries[query : query + 2]
        orders, places = all_places(int(tail - head))
        logs = _log_weights(table, pull[first:last], _luce_logs(orders, scores, head, tail))
        top = float(logs.max())
        weight = np.exp(logs - top)
        total = float(weight.sum())
        weight /= total
        log_total[query] = top + np.log(total)
        distance[first:last] = _mean_distances(table, weight)
        place[head:tail] = weight @ places
        spread[head:tail] = np.maximum(weight @ places**2 - place[head:tail] ** 2, 0.0)
        if best is not None:
            best[head:tail] = orders[int(np.argmax(logs))]
        if draws is not None:
            assert state is not None
            climbed = np.cumsum(weight)
            drawn = np.searchsorted(climbed, [uniform(state, query) * climbed[-1] for _ in range(len(draws))])
            draws[:, head:tail] = places[np.minimum(drawn, len(orders) - 1)]
    return OrderSums(log_total, distance, place, spread)


def _luce_logs(orders: Ints, scores: Floats | None, head: int, tail: int) -> Floats:
    """Logarithm of the Plackett-Luce probability of each ranking, 0 without scores."""
    if scores is None:
        return np.zeros(len(orders))
    own = scores[head:tail]
    strength = np.maximum(np.exp(own - own.max()), SMALLEST)[orders]
    left = np.cumsum(strength[:, ::-1], axis=1)[:, ::-1]
    logs: Floats = (np.log(strength) - np.log(left)).sum(axis=1)
    return logs


@njit(cache=True, nogil=True)
def _log_weights(table: Any, pull: Any, begin: Any) -> Any:
    """Logarithm of the weight of each ranking, each unit of distance weighing the list's pull."""
    logs = begin.copy()
    for one in range(table.shape[0]):
        for order in range(table.shape[1]):
            logs[order] += pull[one] * table[one, order]
    return logs


@njit(cache=True, nogil=True)
def _mean_distances(table: Any, weight: Any) -> Any:
    """Expected distance of each list."""
    means = np.zeros(table.shape[0])
    for one in range(table.shape[0]):
        for order in range(table.shape[1]):
            means[one] += weight[order] * table[one, order]
    return means


@njit(cache=True, nogil=True)
def _fill_distances(orders: Any, begin: Any, item: Any, kind: int, table: Any) -> None:
    """Fill in the distance of each ranking, with the items of a list alone, to that list."""
    n = orders.shape[1]
    slot, image, seen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
    for one in range(begin.size - 1):
        slot[:] = -1
        m = begin[one + 1] - begin[one]
        for row in range(m):
            slot[item[begin[one] + row]] = row
        for order in range(orders.shape[0]):
            reached = 0
            for p in range(n):
                if slot[orders[order, p]] >= 0:
                    image[reached] = slot[orders[order, p]]
                    reached += 1
            table[one, order] = permutation_distance(image[:m], seen, kind)
