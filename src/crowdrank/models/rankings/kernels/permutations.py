"""Random rankings of the items of each query, drawn in proportion to what annotators' rankings make of them.

A ranking weighs the exponential of what each of its pairs costs: annotators who placed ``a`` above ``b`` with pull
``t`` add ``t`` to the cost of every ranking that has ``b`` above ``a``. All that matters of many annotators is thus one
table for each query, ``lead[a, b]``: the log odds of ``a`` against ``b`` before the other items are thought of. It is
made again in each call, in room for the largest query, so memory never grows with the number of queries.

Items of a query are numbered 0, 1, ... within it, places count from 0, the best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.numbering import mix_bits
from ....kernels.threads import over_bounds, read_only
from ....protocols import Counts, Floats, Ints
from .ranked_lists import RankedLists, query_bounds

SMALLEST = 1e-300
"""Floor of the exponential of a score, which keeps ratios of sums of them defined."""

_CELLS_PER_THREAD = 1_000_000
_ITEMS_PER_MOVE = 16
"""Items of a query for which one more is moved in each sweep: long rankings mix slowly by neighbours alone."""

_LARGEST_FACTOR, _LEAST_LOG_WEIGHT = 1e10, -100.0
_STRIDE, _BITS, _UNIT = np.uint64(0x9E3779B97F4A7C15), np.uint64(11), 2.0**-53


class Chains(NamedTuple):
    """A ranking of each query that goes from call to call, and where its random numbers stand.

    ``order`` (n_items,) holds the items of each query by their numbers, best first; ``state`` (n_queries,) is advanced
    by every draw, so no query's draws depend on another's.
    """

    order: Ints
    state: NDArray[np.uint64]


class SweepMeans(NamedTuple):
    """What a call of sweeps saw: mean distance of each list, (n_lists,), and mean place of each item, (n_items,)."""

    distance: Floats
    place: Floats


def sweep(
    lists: RankedLists,
    pull: Floats,
    chains: Chains,
    chosen: Counts,
    n_sweeps: int,
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    best: Ints | None = None,
) -> SweepMeans:
    """Carry the chains of the chosen queries on, and return mean Kendall distances and places over the sweeps.

    A sweep looks at neighbours, those at even places first, and swaps each pair with its conditional probability; then
    it takes an item out, where there are many several in turn, and puts it back at a place drawn from its conditional
    distribution. Pairs of one parity do not touch each other, so all this leaves the distribution as it is.

    Parameters
    ----------
    lists, pull
        The rankings, and what each disagreement with a list costs, negative for annotators who are mostly right,
        (n_lists,). Items that a list ties, or lacks, cost nothing.
    chains
        Changed in place.
    chosen, n_sweeps
        Queries to work on, and the number of sweeps for each; what is not chosen has distance and place 0.
    scores
        Plackett-Luce scores of the items, (n_items,): a ranking is as much likelier as they make it.
    draws
        Filled with the place of each item in some of the sweeps, evenly spread, (n_draws, n_items).
    best
        Filled with the most probable ranking that a sweep ended with, items by their numbers, best first, (n_items,).
    """
    means = SweepMeans(np.zeros(len(pull)), np.zeros(len(chains.order)))
    top = np.empty(0, np.int32) if best is None else best
    strength = np.empty(0) if scores is None else strengths(scores, lists.offsets)
    kept = np.empty((0, len(chains.order)), np.float32) if draws is None else draws
    table, pulls, weights, which = lists.views(), read_only(pull), read_only(strength), read_only(chosen)
    sweep_queries: Any = _sweep_queries

    def work(begin: int, end: int) -> None:
        sweep_queries(*table, pulls, weights, which[begin:end], n_sweeps, *chains, *means, kept, top)

    cost = lists.work()[chosen] + n_sweeps * lists.sizes[chosen]
    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))
    return means


def strengths(scores: Floats, offsets: Counts) -> Floats:
    """Return the exponentials of scores (n_items,), the largest of each query being 1 and none below the floor."""
    filled = np.diff(offsets) > 0
    top = np.repeat(np.maximum.reduceat(scores, offsets[:-1][filled]), np.diff(offsets)[filled])
    strength: Floats = np.maximum(np.exp(scores - top), SMALLEST)
    return strength


def improve_orders(lists: RankedLists, pull: Floats, order: Ints) -> None:
    """Change orders (n_items,) in place until no item could be put elsewhere at a smaller cost, query by query."""
    table, pulls = lists.views(), read_only(pull)
    improve_queries: Any = _improve_queries
    bounds = query_bounds(lists.work(), _CELLS_PER_THREAD)
    over_bounds(lambda begin, end: improve_queries(*table, pulls, np.arange(begin, end), order), bounds)


@njit(cache=True, nogil=True)
def uniform(state: Any, query: int) -> Any:
    """Return the next uniform number in [0, 1) of a query's stream; ``state`` (n_queries,) is advanced."""
    state[query] += _STRIDE
    return np.float64(mix_bits(state[query]) >> _BITS) * _UNIT


@njit(cache=True, nogil=True)
def fill_lead(starts: Any, item: Any, rank: Any, pull: Any, first: int, last: int, n: int, lead: Floats) -> None:
    """Fill ``lead[:n, :n]`` with the log odds of each pair that the lists from first up to last make."""
    for a in range(n):
        for b in range(n):
            lead[a, b] = 0.0
    ranks = np.empty(n, np.int32)
    for one in range(first, last):
        gain = -pull[one]
        if _ranks_all(starts, item, rank, one, ranks):
            # neighbouring cells one after the other, which is several times faster
            for a in range(n):
                for b in range(a):
                    lead[a, b] += gain * ((ranks[a] < ranks[b]) - np.float64(ranks[a] > ranks[b]))
            continue
        for row in range(starts[one], starts[one + 1]):
            a = item[row]
            for other in range(row + 1, starts[one + 1]):
                if rank[other] != rank[row]:
                    lead[a, item[other]] += gain
    for a in range(n):
        for b in range(a):
            lead[a, b] -= lead[b, a]
            lead[b, a] = -lead[a, b]


@njit(cache=True, nogil=True)
def _ranks_all(starts: Any, item: Any, rank: Any, one: int, ranks: Any) -> bool:
    """Fill in the rank of each item if the list has all of them, and return whether it has."""
    if starts[one + 1] - starts[one] != ranks.size:
        return False
    for row in range(starts[one], starts[one + 1]):
        ranks[item[row]] = rank[row]
    return True


@njit(cache=True, nogil=True)
def luce_gain(order: Any, weight: Any, upper: int, lower: int) -> float:
    """Return the gain in Plackett-Luce log probability by swapping the items at two places."""
    # what remains is added up from the bottom, never taken off, which would leave rounding where scores lie far apart
    rest, gain = 0.0, 0.0
    for p in range(order.size - 1, lower, -1):
        rest += weight[order[p]]
    before, after = rest + weight[order[lower]], rest + weight[order[upper]]
    for p in range(lower, upper, -1):
        gain += np.log(before / after)
        before, after = before + weight[order[p - 1]], after + weight[order[p - 1]]
    return gain


@njit(cache=True, nogil=True)
def largest_query(offsets: Any, chosen: Any) -> int:
    """Number of items of the largest of the chosen queries."""
    largest = 0
    for query in chosen:
        largest = max(largest, offsets[query + 1] - offsets[query])
    return largest


@njit(cache=True, nogil=True)
def _sweep_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, strength: Any, chosen: Any, n_sweeps: int,
    orders: Any, state: Any, distance: Floats, place: Floats, draws: Any, best: Any,
) -> None:  # fmt: skip
    """Sweep the chosen queries; fill in distance, place, draws and best."""
    size = largest_query(offsets, chosen)
    lead, above, since = np.empty((size, size)), np.empty((size, size), np.int32), np.empty((size, size), np.int32)
    odds, room = np.empty((size, size)), np.empty((3, size))
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        first, last = queries[query], queries[query + 1]
        order = orders[head : head + n]
        fill_lead(starts, item, rank, pull, first, last, n, lead)
        weight = strength[head : head + n] if strength.size else strength
        # looked up again and again, unless there are more pairs than will be looked at
        ready, n_kept, value, most = n <= n_sweeps, 0, 0.0, -np.inf
        for a in range(n):
            for b in range(n):
                above[a, b], since[a, b] = 0, 0
                if ready:
                    odds[a, b] = np.exp(lead[a, b])
        for time in range(n_sweeps if n > 1 else 0):
            for parity in range(2):
                value += _swap_neighbours(order, lead, odds, ready, weight, parity, state, query, time, above, since)
            for _ in range(1 + n // _ITEMS_PER_MOVE):
                value += _move_one(order, lead, weight, state, query, time, above, since, room)
            if best.size and value > most:
                most = value
                best[head : head + n] = order
            # the last of the sweeps that share a draw is kept
            if (time + 1) * draws.shape[0] >= (n_kept + 1) * n_sweeps:
                for p in range(n):
                    draws[n_kept, head + order[p]] = p
                n_kept += 1
        for p in range(n):
            for below in range(p + 1, n):
                a, b = order[p], order[below]
                above[a, b] += n_sweeps - since[a, b]
        fill_means(starts, item, rank, first, last, above, n_sweeps, distance, place[head : head + n])


@njit(cache=True, nogil=True)
def fill_means(
    starts: Any, item: Any, rank: Any, first: int, last: int, above: Any, n_sweeps: int, distance: Floats, place: Floats
) -> None:  # fmt: skip
    """Fill in mean distances and places from how often each item stood above each other one."""
    for a in range(place.size):
        total = 0
        for b in range(place.size):
            total += above[b, a]
        place[a] = total / n_sweeps
    ranks = np.empty(place.size, np.int32)
    for one in range(first, last):
        total = 0
        if _ranks_all(starts, item, rank, one, ranks):
            for a in range(place.size):
                for b in range(a):
                    total += (ranks[a] < ranks[b]) * (n_sweeps - above[a, b]) + (ranks[a] > ranks[b]) * above[a, b]
        else:
            for row in range(starts[one], starts[one + 1]):
                a = item[row]
                for other in range(row + 1, starts[one + 1]):
                    if rank[other] != rank[row]:
                        total += n_sweeps - above[a, item[other]]
        distance[one] = total / n_sweeps


@njit(cache=True, nogil=True)
def _swap_neighbours(
    order: Any, lead: Any, odds: Any, ready: bool, weight: Any, parity: int, state: Any, query: int, time: int,
    above: Any, since: Any,
) -> Any:  # fmt: skip
    """Swap pairs of neighbours whose upper place has the parity, each with its conditional probability.

    Returns the logarithm of how much more probable the ranking has become.
    """
    n, scored, rest, gain = order.size, weight.size > 0, 0.0, 0.0
    # from the bottom, so what lies below a pair is added up and never taken off
    upper = n - 2 - (n - 2 - parity) % 2
    if scored and upper == n - 3:
        rest = weight[order[n - 1]]
    while upper >= 0:
        a, b = order[upper], order[upper + 1]
        chance, ratio = odds[a, b] if ready else np.exp(lead[a, b]), 1.0
        if scored:
            ratio = (rest + weight[a]) / (rest + weight[b])
            chance *= ratio
            rest += weight[a] + weight[b]
        if uniform(state, query) * (1.0 + chance) < 1.0:
            order[upper], order[upper + 1] = b, a
            above[a, b] += time - since[a, b]
            since[b, a] = time
            gain -= lead[a, b] + (np.log(ratio) if scored else 0.0)
        upper -= 2
    return gain


@njit(cache=True, nogil=True)
def _move_one(
    order: Any, lead: Any, weight: Any, state: Any, query: int, time: int, above: Any, since: Any, room: Floats
) -> Any:
    """Take a random item out and put it back at a place drawn from its conditional distribution.

    Returns the logarithm of how much more probable the ranking has become.
    """
    n, start = order.size, int(uniform(state, query) * order.size)
    place, moved = start, order[start]
    _fill_room(order, lead, weight, place, room)
    goal = _draw_place(room, n, uniform(state, query))
    while place < goal:
        passed = order[place + 1]
        order[place] = passed
        above[moved, passed] += time - since[moved, passed]
        since[passed, moved] = time
        place += 1
    while place > goal:
        passed = order[place - 1]
        order[place] = passed
        above[passed, moved] += time - since[passed, moved]
        since[moved, passed] = time
        place -= 1
    order[goal] = moved
    return room[0, goal] - room[0, start] + np.log(room[1, goal] / room[1, start])


@njit(cache=True, nogil=True)
def _fill_room(order: Any, lead: Any, weight: Any, place: int, room: Floats) -> None:
    """Fill in what the item at a place would weigh at each place: the exponential of room[0], times room[1]."""
    n, scored, moved, below, factor = order.size, weight.size > 0, order[place], 0.0, 1.0
    # upwards, from the last place: what it gains by standing above one more item
    room[0, n - 1], room[1, n - 1] = 0.0, 1.0
    for goal in range(n - 2, -1, -1):
        passed = order[goal + 1] if goal >= place else order[goal]
        room[0, goal] = room[0, goal + 1] + lead[moved, passed]
        if scored:
            factor *= (below + weight[moved]) / (below + weight[passed])
            below += weight[passed]
            # a logarithm only where the product would run out of range
            if factor > _LARGEST_FACTOR or factor * _LARGEST_FACTOR < 1.0:
                room[0, goal] += np.log(factor)
                factor = 1.0
        room[1, goal] = factor


@njit(cache=True, nogil=True)
def _draw_place(room: Floats, n: int, share: float) -> int:
    """Place drawn by the weights in ``room``, whose running sums go to room[2]; ``share`` is uniform."""
    top = room[0, 0]
    for goal in range(1, n):
        top = max(top, room[0, goal])
    total = 0.0
    for goal in range(n):
        # what lies further below is lost in the sum anyway
        if room[0, goal] - top > _LEAST_LOG_WEIGHT:
            total += np.exp(room[0, goal] - top) * room[1, goal]
        room[2, goal] = total
    goal = 0
    while goal < n - 1 and room[2, goal] <= share * total:
        goal += 1
    return goal


@njit(cache=True, nogil=True)
def _improve_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, chosen: Any, orders: Any
) -> None:
    """Improve the orders of the chosen queries by moving single items as long as that helps."""
    size = largest_query(offsets, chosen)
    lead = np.empty((size, size))
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        fill_lead(starts, item, rank, pull, queries[query], queries[query + 1], n, lead)
        order, better = orders[head : head + n], True
        while better:
            better = False
            for place in range(n):
                better |= _move_best(order, lead, place)


@njit(cache=True, nogil=True)
def _move_best(order: Any, lead: Any, place: int) -> bool:
    """Put the item at a place where it does best, and return whether that is elsewhere."""
    moved, goal, most = order[place], place, 1e-9
    gain = 0.0
    for other in range(place - 1, -1, -1):
        gain += lead[moved, order[other]]
        if gain > most:
            goal, most = other, gain
    gain = 0.0
    for other in range(place + 1, order.size):
        gain -= lead[moved, order[other]]
        if gain > most:
            goal, most = other, gain
    step = 1 if goal > place else -1
    for other in range(place, goal, step):
        order[other] = order[other + step]
    order[goal] = moved
    return goal != place
