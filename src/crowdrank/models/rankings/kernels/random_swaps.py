"""The plainest sampler of rankings: swap two random places, or not, by Metropolis' rule.

It is what [Wu11]_ and [Klementiev08]_ print. Weights of rankings are those of :mod:`crowdrank.kernels.permutations`,
whose sweeps mix far sooner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.permutations import Chains, Swept, fill_lead, largest_query, luce_gain, read_out, strengths, uniform
from ....kernels.ranked_lists import RankedLists, query_bounds
from ....kernels.threads import over_bounds, read_only
from ....protocols import Counts, Floats, Ints

_CELLS_PER_THREAD = 1_000_000


def swap_places(
    lists: RankedLists,
    pull: Floats,
    chains: Chains,
    chosen: Counts,
    n_moves: int,
    *,
    scores: Floats | None = None,
    best: Ints | None = None,
) -> Swept:
    """Begin with a random ranking of each chosen query, and return mean Kendall distances and places over the moves.

    Parameters are those of :func:`crowdrank.kernels.permutations.sweep`.
    """
    found = Swept(np.zeros(len(pull)), np.zeros(len(chains.order)))
    top = np.empty(0, np.int32) if best is None else best
    weights = read_only(np.empty(0) if scores is None else strengths(scores, lists.offsets))
    table, pulls, which = lists.views(), read_only(pull), read_only(chosen)
    swap_queries: Any = _swap_queries

    def work(begin: int, end: int) -> None:
        swap_queries(*table, pulls, weights, which[begin:end], n_moves, *chains, *found, top)

    cost = lists.work()[chosen] + n_moves * lists.sizes[chosen]
    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))
    return found


@njit(cache=True, nogil=True)
def _swap_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, strength: Any, chosen: Any, n_moves: int,
    orders: Any, state: Any, distance: Floats, place: Floats, best: Any,
) -> None:  # fmt: skip
    """Move the chosen queries; fill in distance, place and best."""
    size = largest_query(offsets, chosen)
    lead, above, since = np.empty((size, size)), np.empty((size, size), np.int32), np.empty((size, size), np.int32)
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        first, last = queries[query], queries[query + 1]
        order, value, most = orders[head : head + n], 0.0, -np.inf
        fill_lead(starts, item, rank, pull, first, last, n, lead)
        weight = strength[head : head + n] if strength.size else strength
        above[:n, :n], since[:n, :n] = 0, 0
        _shuffle(order, state, query)
        for time in range(n_moves if n > 1 else 0):
            value += _try_swap(order, lead, weight, state, query, time, above, since)
            if best.size and value > most:
                most = value
                best[head : head + n] = order
        for p in range(n):
            for below in range(p + 1, n):
                above[order[p], order[below]] += n_moves - since[order[p], order[below]]
        read_out(starts, item, rank, first, last, above, n_moves, distance, place[head : head + n])


@njit(cache=True, nogil=True)
def _shuffle(order: Any, state: Any, query: int) -> None:
    """Put the items of a query in a random order."""
    for p in range(order.size - 1, 0, -1):
        other = int(uniform(state, query) * (p + 1))
        order[p], order[other] = order[other], order[p]


@njit(cache=True, nogil=True)
def _try_swap(order: Any, lead: Any, weight: Any, state: Any, query: int, time: int, above: Any, since: Any) -> Any:
    """Propose to swap two random places, do so or not, and return by how much the log weight has grown."""
    n = order.size
    upper, lower = int(uniform(state, query) * n), int(uniform(state, query) * (n - 1))
    lower += lower >= upper
    upper, lower = min(upper, lower), max(upper, lower)
    a, b = order[upper], order[lower]
    gain = lead[b, a] + (luce_gain(order, weight, upper, lower) if weight.size else 0.0)
    for p in range(upper + 1, lower):
        gain += lead[order[p], a] + lead[b, order[p]]
    if gain < 0.0 and uniform(state, query) >= np.exp(gain):
        return 0.0
    for p in range(upper + 1, lower + 1):
        above[a, order[p]] += time - since[a, order[p]]
        since[order[p], a] = time
    for p in range(upper + 1, lower):
        above[order[p], b] += time - since[order[p], b]
        since[b, order[p]] = time
    order[upper], order[lower] = b, a
    return gain
