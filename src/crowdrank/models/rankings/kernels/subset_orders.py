"""Exact sums over all rankings of the items of small queries, by dynamic programming over sets of items.

What the next item of a ranking adds to its weight depends on which items stand above it and not on their order, so that
sums over n! rankings take 2^n n^2 steps. Weights are those of :mod:`crowdrank.models.rankings.kernels.permutations`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.segments import set_starts
from ....kernels.threads import over_bounds, read_only
from ....protocols import Counts, Floats, Ints
from .permutations import fill_lead, largest_query, strengths, uniform
from .ranked_lists import RankedLists, query_bounds

_ROUNDING_SHIFT = 1.5 * 2.0**20
"""Added and taken off again it leaves multiples of 2 ** -32, sums of which below two million are exact in any order."""

_CELLS_PER_THREAD = 50_000


class OrderSums(NamedTuple):
    """Expectations over all rankings.

    Parameters
    ----------
    log_total
        Logarithm of the sum of the weights of all rankings of each query, each disagreement weighing its pull,
        (n_queries,); 0 for queries that were left out, as are all following entries.
    distance
        Expectation Kendall distance of each list, (n_lists,).
    place, spread
        Mean and variance of the place of each item, (n_items,).
    """

    log_total: Floats
    distance: Floats
    place: Floats
    spread: Floats


def sum_orders(
    lists: RankedLists,
    pull: Floats,
    chosen: Counts,
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    state: NDArray[np.uint64] | None = None,
    best: Ints | None = None,
    sets: Floats | None = None,
) -> OrderSums:
    """Return expectations over all rankings of the chosen queries, of some 15 items at most.

    Parameters
    ----------
    lists, pull, chosen, scores
        As for :func:`crowdrank.models.rankings.kernels.permutations.sweep`.
    draws, state
        Filled with the places of the items in independent random rankings, (n_draws, n_items), drawn by the streams
        ``state`` (n_queries,).
    best
        Filled with the most probable ranking, items by their numbers, best first, (n_items,).
    sets
        Filled with the chance of each set of items to be the first ones, 2^n for each query, bounded by
        :func:`~crowdrank.kernels.segments.set_starts`.
    """
    n_items = int(lists.offsets[-1])
    sums = OrderSums(np.zeros(len(lists.queries) - 1), np.zeros(len(pull)), np.zeros(n_items), np.zeros(n_items))
    weights = read_only(np.empty(0) if scores is None else strengths(scores, lists.offsets))
    kept = np.empty((0, n_items), np.float32) if draws is None else draws
    streams = np.empty(0, np.uint64) if state is None else state
    top, firsts = np.empty(0, np.int32) if best is None else best, np.empty(0) if sets is None else sets
    begins = read_only(set_starts(lists.sizes) if sets is not None else np.zeros(1, np.int64))
    table, pulls, which = lists.views(), read_only(pull), read_only(chosen)
    sum_queries: Any = _sum_queries

    def work(begin: int, end: int) -> None:
        sum_queries(*table, pulls, weights, which[begin:end], *sums, kept, streams, top, firsts, begins)

    sizes = lists.sizes[chosen]
    cost = sizes * 2**sizes + lists.work()[chosen] // 16
    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))
    return sums


@njit(cache=True, nogil=True)
def _sum_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, strength: Any, chosen: Any,
    log_total: Floats, distance: Floats, place: Floats, spread: Floats, draws: Any, state: Any, best: Any,
    sets: Any, begins: Any,
) -> None:  # fmt: skip
    """Fill in what is known of the chosen queries."""
    size = largest_query(offsets, chosen)
    lead, above = np.empty((size, size)), np.empty((size, size))
    step, total = np.empty((1 << size, size)), np.empty(1 << size)
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        first, last = queries[query], queries[query + 1]
        fill_lead(starts, item, rank, pull, first, last, n, lead)
        _fill_steps(lead, strength[head : head + n] if strength.size else strength, n, step)
        if best.size:
            _fill_best(step, n, total, best[head : head + n])
        log_total[query] = _sum_below(step, n, total)
        _sum_above(step, n, total, above, spread[head : head + n])
        if sets.size:
            sets[begins[query] : begins[query + 1]] = total[: 1 << n]
        _fill_places(above, n, place[head : head + n], spread[head : head + n])
        for one in range(first, last):
            for row in range(starts[one], starts[one + 1]):
                a = item[row]
                for other in range(row + 1, starts[one + 1]):
                    if rank[other] != rank[row]:
                        distance[one] += above[item[other], a]
                        # the lead knows differences only: half of each pair's pull is common to both of its orders
                        log_total[query] += 0.5 * pull[one]
        for draw in range(draws.shape[0]):
            _draw_order(step, n, state, query, draws[draw, head : head + n])


@njit(cache=True, nogil=True)
def _fill_steps(lead: Any, weight: Any, n: int, step: Floats) -> None:
    """Fill ``step[s, b]`` with the log weight of putting item b next below the set of items s, of which it is none."""
    for b in range(n):
        step[0, b] = 0.0
    for above in range(1, 1 << n):
        lowest = 0
        while not above >> lowest & 1:
            lowest += 1
        for b in range(n):
            step[above, b] = step[above & (above - 1), b] + 0.5 * lead[lowest, b]
    if weight.size:
        for above in range(1 << n):
            rest = 0.0
            for b in range(n):
                rest += 0.0 if above >> b & 1 else weight[b]
            for b in range(n):
                if not above >> b & 1:
                    step[above, b] += np.log(weight[b] / rest)


@njit(cache=True, nogil=True)
def _fill_best(step: Any, n: int, most: Floats, order: Any) -> None:
    """Fill in the ranking of the largest weight; ``most[s]`` becomes the largest log weight below the set s."""
    full = (1 << n) - 1
    most[full] = 0.0
    for above in range(full - 1, -1, -1):
        most[above] = -np.inf
        for b in range(n):
            if not above >> b & 1:
                most[above] = max(most[above], step[above, b] + most[above | 1 << b])
    above = 0
    for place in range(n):
        for b in range(n):
            if not above >> b & 1 and step[above, b] + most[above | 1 << b] == most[above]:
                order[place] = b
                above |= 1 << b
                break


@njit(cache=True, nogil=True)
def _sum_below(step: Floats, n: int, total: Floats) -> Any:
    """Turn the log weights of steps into their probabilities, and return the log sum over all rankings.

    ``total[s]`` becomes the log sum over the orders of what stands below the set s.
    """
    full = (1 << n) - 1
    total[full] = 0.0
    for above in range(full - 1, -1, -1):
        top, summed = -np.inf, 0.0
        for b in range(n):
            if not above >> b & 1:
                step[above, b] += total[above | 1 << b]
                top = max(top, step[above, b])
        for b in range(n):
            if not above >> b & 1:
                step[above, b] = np.exp(step[above, b] - top)
                summed += step[above, b]
        for b in range(n):
            step[above, b] = 0.0 if above >> b & 1 else step[above, b] / summed
        total[above] = top + np.log(summed)
    return total[0]


@njit(cache=True, nogil=True)
def _sum_above(step: Any, n: int, chance: Floats, above: Floats, spread: Floats) -> None:
    """Add up the chances of each item to stand above each other one, and the squares of places from the middle one.

    ``chance[s]`` becomes the probability that the items of the set s are the first ones of a ranking.
    """
    full = (1 << n) - 1
    for members in range(full + 1):
        chance[members] = 1.0 if members == 0 else 0.0
    for a in range(n):
        for b in range(n):
            above[a, b] = 0.0
    share = np.empty(n)
    for members in range(full):
        number = 0
        for a in range(n):
            number += members >> a & 1
        far = (number - 0.5 * (n - 1)) ** 2
        for b in range(n):
            # steps to items that are there already have no probability
            share[b] = chance[members] * step[members, b]
            chance[members | 1 << b] += share[b]
            spread[b] += share[b] * far
        for a in range(n):
            if members >> a & 1:
                for b in range(n):
                    above[a, b] += share[b]


@njit(cache=True, nogil=True)
def _fill_places(above: Floats, n: int, place: Floats, spread: Floats) -> None:
    """Round the chances of pairs, and fill in mean and variance of the places."""
    for a in range(n):
        for b in range(a):
            # neither the order of the items nor that of the sums is felt any more
            chance = (above[a, b] / (above[a, b] + above[b, a]) + _ROUNDING_SHIFT) - _ROUNDING_SHIFT
            above[a, b], above[b, a] = chance, 1.0 - chance
    for b in range(n):
        for a in range(n):
            place[b] += above[a, b]
        spread[b] = max(0.0, spread[b] - (place[b] - 0.5 * (n - 1)) ** 2)


@njit(cache=True, nogil=True)
def _draw_order(step: Any, n: int, state: Any, query: int, place: Any) -> None:
    """Fill in the places of the items in a random ranking."""
    members = 0
    for goal in range(n):
        reached, chosen, share = 0.0, -1, uniform(state, query)
        for b in range(n):
            # the last one that can come next stands in for what rounding leaves over
            if step[members, b] > 0.0 and (chosen < 0 or reached <= share):
                chosen = b
            reached += step[members, b]
        place[chosen] = goal
        members |= 1 << chosen
