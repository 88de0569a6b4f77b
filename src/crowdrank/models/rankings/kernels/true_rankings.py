"""True rankings of the items of each query, given rankings by annotators: laid out, drawn at random, summed over.

A ranking weighs the exponential of what each of its pairs costs: annotators who placed ``a`` above ``b`` with pull
``t`` add ``t`` to the cost of every ranking that has ``b`` above ``a``. All that matters of many annotators is thus one
table for each query, ``lead[a, b]``: the log odds of ``a`` against ``b`` before the other items are thought of. It is
made again in each call, in room for the largest query, so memory never grows with the number of queries. Distances that
are no sums over pairs are counted list by list.

Items of a query are numbered 0, 1, ... within it, places count from 0, the best. Random draws go by the numbers of
items, so numbering them by their ids would let a name decide on the result. Items, rankings and annotators are
distinguished by what they are in the rankings: each gets a colour, a hash of the colours of those it has to do with,
again and again until no more colours appear (colour refinement). Items of a query are then numbered by colour, and its
random numbers start from the colours of all of them.

First the layout; then chains by Kendall's distance, by other distances, and as printed in [Wu11]_; exact sums over all
rankings of few items, by sets of items, and listed one by one. Last the expected distance to the truth of rankings with
a dispersion, and the dispersion from that: a ranking of n items has the probability exp(theta d) / Z(n, theta), d being
its distance to the truth. The Kendall distance counts the pairs in the wrong order, the Cayley distance the fewest
swaps of two items that put it right, the footrule how far items are from their places, and the Spearman distance the
squares of that; the last two have no closed form, and rankings are counted by their distance. The more negative theta,
the better the annotator; 0 is guessing, above 0 reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.numbering import mix_bits
from ....kernels.segments import set_starts
from ....kernels.threads import bind, even_bounds, over_bounds, read_only, views
from ....protocols import AnyFloats, Counts, Floats, Ints

Colours = NDArray[np.uint64]

_MOST_REFINEMENTS = 8
_CELLS_PER_THREAD = 1_000_000

_SMALLEST = 1e-300
"""Floor of the exponential of a score, which keeps ratios of sums of them defined."""

_ITEMS_PER_MOVE = 16
"""Items of a query for which one more is moved in each sweep: long rankings mix slowly by neighbours alone."""

_LARGEST_FACTOR, _LEAST_LOG_WEIGHT = 1e10, -100.0
_STRIDE, _BITS, _UNIT = np.uint64(0x9E3779B97F4A7C15), np.uint64(11), 2.0**-53

KINDS = ("cayley", "footrule", "spearman")

_ROUNDING_SHIFT = 1.5 * 2.0**20
"""Added and taken off again it leaves multiples of 2 ** -32, sums of which below two million are exact in any order."""

MOST_LISTED_ITEMS = 8
"""Largest query whose rankings are listed: 40,320 of them."""

# threshold (sample): distances of all rankings of small queries that are held, other than Kendall's
MOST_CELLS = 200_000_000
"""Most distances that are held, a byte each; queries beyond are sampled."""


class RankedLists(NamedTuple):
    """Rankings as lists of rows, the lists of a query side by side.

    Parameters
    ----------
    offsets
        Items of query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``, (n_queries + 1,).
    queries
        Lists of query ``q`` are ``queries[q]`` up to ``queries[q + 1]``, (n_queries + 1,).
    starts
        Rows of list ``l`` are ``starts[l]`` up to ``starts[l + 1]``, (n_lists + 1,).
    item
        Number of the row's item within its query, (n_rows,).
    rank
        Never falling within a list, equal where items tie, (n_rows,).
    """

    offsets: Counts
    queries: Counts
    starts: Counts
    item: Ints
    rank: Ints

    @property
    def sizes(self) -> Counts:
        """Number of items of each query."""
        return np.diff(self.offsets)

    def work(self) -> Counts:
        """Number of pairs of items and of pairs of rows of each query, which is what a pass over them costs."""
        rows = np.diff(self.starts)
        pairs = np.concatenate([[0], np.cumsum(rows * rows)])[self.queries]
        return self.sizes**2 + np.diff(pairs)


class RankingLayout(NamedTuple):
    """Rankings laid out, and how to find one's way back.

    Parameters
    ----------
    lists
        The rankings that put some item above another, with the items that they rank.
    item, ranking
        Code of each item and number of each list as they were given, (n_items,) and (n_lists,).
    twin
        The first of the items that an item cannot be distinguished from by any ranking, (n_items,).
    seeds
        Start of each query's random numbers, (n_queries,).
    """

    lists: RankedLists
    item: Counts
    ranking: Counts
    twin: Counts
    seeds: Colours


def arrange(
    item: Ints,
    rank: Ints,
    starts: Counts,
    query: Ints,
    n_queries: int,
    features: tuple[Floats, Ints, Floats],
    seed: int,
    *,
    shades: Colours | None = None,
) -> RankingLayout:
    """Return rankings laid out by structure.

    Parameters
    ----------
    item, rank
        Code of each row's item and its rank, rising within each ranking, (n_rows,).
    starts
        Rows of ranking ``r`` are ``starts[r]`` up to ``starts[r + 1]``, (n_rankings + 1,).
    query, n_queries
        Query of each item, never falling, (n_all_items,), and the number of queries.
    features
        Weight and annotator of each ranking, and a number of each annotator that tells those apart who are not to be
        taken as alike.
    seed
        Decides on the random numbers along with the structure.
    shades
        Equal for items that are alike in all but the rankings, (n_all_items,); ``None`` where all are.
    """
    telling = np.flatnonzero(rank[starts[1:] - 1] != rank[starts[:-1]])
    row, length = _rows_of(starts, telling)
    codes, number = np.unique(item[row].astype(np.int64), return_inverse=True)
    weight, annotator, special = features
    of_ranking = (weight[telling], annotator[telling], special)
    plain = np.zeros(len(codes), np.uint64) if shades is None else shades[codes]
    colours = _colours(np.repeat(np.arange(len(length)), length), number, rank[row], of_ranking, plain)
    by_colour = np.lexsort((colours[0], query[codes]))
    codes, shade = codes[by_colour], colours[0][by_colour]
    within = query[codes]
    offsets = _offsets(np.bincount(within, minlength=n_queries))
    place = np.empty(len(codes), np.int64)
    place[by_colour] = np.arange(len(codes)) - offsets[within]
    of_list = query[item[starts[telling]]] if len(telling) else np.empty(0, np.int64)
    order = np.lexsort((colours[1], of_list))
    queries = _offsets(np.bincount(of_list, minlength=n_queries))
    rows, length = _rows_of(_offsets(length), order)
    placed, ranks = place[number][rows], rank[row][rows]
    # tied items by their new numbers
    again = np.lexsort((placed, ranks, np.repeat(np.arange(len(length)), length)))
    lists = RankedLists(offsets, queries, _offsets(length), placed[again].astype(np.int32), ranks[again])
    same = np.concatenate([[False], (shade[1:] == shade[:-1]) & (within[1:] == within[:-1])])[: len(codes)]
    twin = np.maximum.accumulate(np.where(same, 0, np.arange(len(codes)))) if len(codes) else codes
    of_seed = _mix_each(np.full(n_queries, seed % 2**64, np.uint64))
    seeds = _mix_each(_sums(_mix_each(shade), within, n_queries) + of_seed)
    return RankingLayout(lists, codes, telling[order], twin, seeds)


def row_colours(matrix: AnyFloats, row: Ints) -> Colours:
    """Return a number for each of some rows of a matrix, the same for equal ones, and 0 for row -1; (n,)."""
    colours = np.zeros(len(row), np.uint64)
    for column in matrix.T:
        # adding 0 makes one of the two zeros
        colours = _mix_each(colours ^ (column[row] + 0.0).astype(np.float64).view(np.uint64))
    colours[row < 0] = 0
    return colours


def query_bounds(work: Counts, smallest: int) -> Counts:
    """Return the bounds of stretches of queries with about equal work (n_queries,), one for each thread."""
    climbed = _offsets(work)
    bounds = np.searchsorted(climbed, even_bounds(int(climbed[-1]), smallest))
    bounds[0], bounds[-1] = 0, len(work)
    return bounds


def _offsets(counts: Counts) -> Counts:
    """Bounds of groups of the given sizes."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _rows_of(starts: Counts, chosen: Counts) -> tuple[Counts, Counts]:
    """Rows of the chosen lists, one list after the other, and the length of each."""
    length = np.diff(starts)[chosen]
    head = _offsets(length)
    return np.repeat(starts[:-1][chosen] - head[:-1], length) + np.arange(head[-1]), length


def _colours(
    number: Counts, item: Counts, rank: Ints, features: tuple[Floats, Ints, Floats], of_item: Colours
) -> tuple[Colours, Colours]:
    """Colours of items and lists, refined from those of items until no more of them are distinguished."""
    weight, annotator, special = features
    of_list, of_annotator = weight.view(np.uint64), special.view(np.uint64)
    place, known = _mix_each(rank.astype(np.uint64)), 0
    for _ in range(_MOST_REFINEMENTS):
        rows = _sums(_mix_each(of_item[item] ^ place), number, len(of_list))
        of_list = _mix_each(of_list + rows + _mix_each(of_annotator)[annotator])
        of_item = _mix_each(of_item + _sums(_mix_each(of_list[number] ^ place), item, len(of_item)))
        of_annotator = _mix_each(of_annotator + _sums(of_list, annotator, len(of_annotator)))
        n_colours = len(np.unique(of_item)) + len(np.unique(of_list))
        if n_colours == known:
            break
        known = n_colours
    return of_item, of_list


_mix_each = mix_bits.py_func
"""Hash of each value; this short a sum is not worth compiling."""


def _sums(values: Colours, group: Counts | Ints, n: int) -> Colours:
    """Sums over groups, which wrap, so their order does not matter; exact for two million values each."""
    parts = (values >> np.uint64(32), values & np.uint64(0xFFFFFFFF))
    high, low = (np.bincount(group, part.astype(np.float64), n).astype(np.uint64) for part in parts)
    return (high << np.uint64(32)) + low


def _over_queries(
    kernel: Any, lists: RankedLists, pull: Floats, scores: Floats | None, chosen: Counts, cost: Counts, *rest: Any
) -> None:
    """Run a kernel over the chosen queries, about equally costly ones in each thread; it fills the arrays in rest."""
    weights = np.empty(0)
    if scores is not None:
        # exponentials of the scores, the largest of each query being 1
        filled = np.diff(lists.offsets) > 0
        top = np.maximum.reduceat(scores, lists.offsets[:-1][filled])
        weights = np.maximum(np.exp(scores - np.repeat(top, lists.sizes[filled])), _SMALLEST)
    columns: Any = RankedLists(*views(*lists))
    pulls, strength, which = views(pull, weights, chosen)

    def work(begin: int, end: int) -> None:
        kernel(columns, pulls, strength, which[begin:end], *rest)

    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))


class Chains(NamedTuple):
    """A ranking of each query that goes from call to call, and where its random numbers stand.

    ``order`` (n_items,) holds the items of each query by their numbers, best first; ``state`` (n_queries,) is advanced
    by every draw, so no query's draws depend on another's. ``slots`` (n_rows,) is the place of each row's item in its
    list, ties ordered in some way, which Kendall's distance does not need.
    """

    order: Ints
    state: NDArray[np.uint64]
    slots: Counts = np.empty(0, np.int64)


def sweep(
    lists: RankedLists,
    pull: Floats,
    chains: Chains,
    chosen: Counts,
    n_sweeps: int,
    how: str = "kendall",
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    best: Ints | None = None,
) -> OrderSums:
    """Carry the chains of the chosen queries on, and return mean distances and places over the sweeps.

    By Kendall's distance a sweep looks at neighbours, those at even places first, and swaps each pair with its
    conditional probability; then it takes an item out, where there are many several in turn, and puts it back at a
    place drawn from its conditional distribution. Pairs of one parity do not touch each other, so all this leaves the
    distribution as it is. By another distance it tries to swap as many random pairs of places as there are items, and
    takes each swap with the probability of Metropolis' rule. A list that lacks items is then held against the ranking
    of those that it has; items that a list ties stand in some order within it, which is drawn along with the rest.

    Parameters
    ----------
    lists, pull
        The rankings, and what each disagreement with a list costs, negative for annotators who are mostly right,
        (n_lists,). Items that a list ties, or lacks, cost nothing.
    chains
        Changed in place.
    chosen, n_sweeps
        Queries to work on, and the number of sweeps for each; what is not chosen has distance and place 0.
    how
        The distance, ``"kendall"`` or one of ``KINDS``; or ``"printed"``: Kendall's, each chain begun with a random
        ranking, one random pair of places in each sweep.
    scores
        Plackett-Luce scores of the items, (n_items,): a ranking is as much likelier as they make it.
    draws
        Filled with the place of each item in some of the sweeps, evenly spread, (n_draws, n_items).
    best
        Filled with the most probable ranking that a sweep ended with, items by their numbers, best first, (n_items,).
    """
    n_items = len(chains.order)
    means = OrderSums(np.zeros(1), np.zeros(len(pull)), np.zeros(n_items), np.zeros(n_items))
    kept = np.empty((0, n_items), np.float32) if draws is None else draws
    rest = (n_sweeps, *chains[:2], means.distance, means.place, kept, np.empty(0, np.int32) if best is None else best)
    if how in KINDS:
        cost = n_sweeps * (np.diff(lists.queries) * lists.sizes**2)[chosen]
        _over_queries(_swap_queries, lists, pull, scores, chosen, cost, *rest, KINDS.index(how), chains.slots)
    else:
        cost = lists.work()[chosen] + n_sweeps * lists.sizes[chosen]
        _over_queries(_sweep_queries, lists, pull, scores, chosen, cost, *rest, how == "printed")
    return means


def improve_orders(lists: RankedLists, pull: Floats, order: Ints) -> None:
    """Change orders (n_items,) in place until no item could be put elsewhere at a smaller cost, query by query."""
    _over_queries(_improve_queries, lists, pull, None, np.arange(len(lists.sizes)), lists.work(), order)


@njit(cache=True, nogil=True)
def _uniform(state, query):
    """Return the next uniform number in [0, 1) of a query's stream; ``state`` (n_queries,) is advanced."""
    state[query] += _STRIDE
    return np.float64(mix_bits(state[query]) >> _BITS) * _UNIT


@njit(cache=True, nogil=True)
def _draw_places(n, state, query):
    """Return two random places, the upper one first."""
    upper, lower = int(_uniform(state, query) * n), int(_uniform(state, query) * (n - 1))
    lower += lower >= upper
    return min(upper, lower), max(upper, lower)


@njit(cache=True, nogil=True)
def _fill_lead(lists, pull, query, lead):
    """Fill the part of ``lead`` for the items of a query with the log odds of each pair that its lists make."""
    _, _, starts, item, rank = lists
    n = lists.offsets[query + 1] - lists.offsets[query]
    lead[:n, :n] = 0.0
    ranks = np.empty(n, np.int32)
    for one in range(lists.queries[query], lists.queries[query + 1]):
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
def _ranks_all(starts, item, rank, one, ranks):
    """Fill in the rank of each item if the list has all of them, and return whether it has."""
    if starts[one + 1] - starts[one] != ranks.size:
        return False
    for row in range(starts[one], starts[one + 1]):
        ranks[item[row]] = rank[row]
    return True


@njit(cache=True, nogil=True)
def _luce_gain(order, weight, upper, lower):
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
def _largest_query(offsets, chosen):
    """Number of items of the largest of the chosen queries."""
    largest = 0
    for query in chosen:
        largest = max(largest, offsets[query + 1] - offsets[query])
    return largest


@njit(cache=True, nogil=True)
def _sweep_queries(lists, pull, strength, chosen, n_sweeps, orders, state, distance, place, draws, best, printed):
    """Sweep the chosen queries; fill in distance, place, draws and best."""
    offsets, size = lists.offsets, _largest_query(lists.offsets, chosen)
    lead, above, since = np.empty((size, size)), np.empty((size, size), np.int32), np.empty((size, size), np.int32)
    odds, room = np.empty((size, size)), np.empty((3, size))
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        order = orders[head : head + n]
        _fill_lead(lists, pull, query, lead)
        weight = strength[head : head + n] if strength.size else strength
        # looked up again and again, unless there are more pairs than will be looked at
        ready, n_kept, value, most = n <= n_sweeps and not printed, 0, 0.0, -np.inf
        above[:n, :n], since[:n, :n] = 0, 0
        if ready:
            odds[:n, :n] = np.exp(lead[:n, :n])
        if printed:
            for p in range(n - 1, 0, -1):
                other = int(_uniform(state, query) * (p + 1))
                order[p], order[other] = order[other], order[p]
        for time in range(n_sweeps if n > 1 else 0):
            if printed:
                value += _try_swap_as_printed(order, lead, weight, state, query, time, above, since)
            else:
                for parity in range(2):
                    value += _swap_neighbours(
                        order, lead, odds, ready, weight, parity, state, query, time, above, since
                    )
                for _ in range(1 + n // _ITEMS_PER_MOVE):
                    value += _move_one(order, lead, weight, state, query, time, above, since, room)
            most, n_kept = _keep(order, head, time, n_sweeps, value, most, best, n_kept, draws)
        for p in range(n):
            for below in range(p + 1, n):
                a, b = order[p], order[below]
                above[a, b] += n_sweeps - since[a, b]
        _fill_means(lists, query, above, n_sweeps, distance, place[head : head + n])


@njit(cache=True, nogil=True)
def _keep(order, head, time, n_sweeps, value, most, best, n_kept, draws):
    """Keep the order of a query after a sweep if it is the best so far, or due as a draw; return its value, and those.

    The last of the sweeps that share a draw is kept.
    """
    if best.size and value > most:
        most = value
        best[head : head + order.size] = order
    if (time + 1) * draws.shape[0] >= (n_kept + 1) * n_sweeps:
        for p in range(order.size):
            draws[n_kept, head + order[p]] = p
        n_kept += 1
    return most, n_kept


@njit(cache=True, nogil=True)
def _fill_means(lists, query, above, n_sweeps, distance, place):
    """Fill in mean distances and places from how often each item stood above each other one."""
    _, _, starts, item, rank = lists
    for a in range(place.size):
        total = 0
        for b in range(place.size):
            total += above[b, a]
        place[a] = total / n_sweeps
    ranks = np.empty(place.size, np.int32)
    for one in range(lists.queries[query], lists.queries[query + 1]):
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
def _swap_neighbours(order, lead, odds, ready, weight, parity, state, query, time, above, since):
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
        if _uniform(state, query) * (1.0 + chance) < 1.0:
            order[upper], order[upper + 1] = b, a
            above[a, b] += time - since[a, b]
            since[b, a] = time
            gain -= lead[a, b] + (np.log(ratio) if scored else 0.0)
        upper -= 2
    return gain


@njit(cache=True, nogil=True)
def _move_one(order, lead, weight, state, query, time, above, since, room):
    """Take a random item out and put it back at a place drawn from its conditional distribution.

    Returns the logarithm of how much more probable the ranking has become.
    """
    start = int(_uniform(state, query) * order.size)
    place, moved = start, order[start]
    goal = _draw_goal(order, lead, weight, place, room, state, query)
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
def _draw_goal(order, lead, weight, place, room, state, query):
    """Return a place for the item at ``place``, drawn by what it would weigh at each: the exponential of room[0], times
    room[1]; their running sums are room[2].
    """
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
    top = room[0, 0]
    for goal in range(1, n):
        top = max(top, room[0, goal])
    total = 0.0
    for goal in range(n):
        # what lies further below is lost in the sum anyway
        if room[0, goal] - top > _LEAST_LOG_WEIGHT:
            total += np.exp(room[0, goal] - top) * room[1, goal]
        room[2, goal] = total
    goal, share = 0, _uniform(state, query)
    while goal < n - 1 and room[2, goal] <= share * total:
        goal += 1
    return goal


@njit(cache=True, nogil=True)
def _improve_queries(lists, pull, strength, chosen, orders):
    """Improve the orders of the chosen queries by moving single items as long as that helps."""
    offsets, size = lists.offsets, _largest_query(lists.offsets, chosen)
    lead = np.empty((size, size))
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        _fill_lead(lists, pull, query, lead)
        order, better = orders[head : head + n], True
        while better:
            better = False
            for place in range(n):
                better |= _move_best(order, lead, place)


@njit(cache=True, nogil=True)
def _move_best(order, lead, place):
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


@njit(cache=True, nogil=True)
def _swap_queries(lists, pull, strength, chosen, n_sweeps, orders, state, distance, place, draws, best, kind, slots):
    """Sweep the chosen queries; fill in distance, place, draws and best."""
    offsets, queries, starts, item, rank = lists
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        first, last = queries[query], queries[query + 1]
        if n < 2:
            continue
        order, weight = orders[head : head + n], strength[head : head + n] if strength.size else strength
        begins = starts[first : last + 1] - starts[first]
        members, ranks = item[starts[first] : starts[last]], rank[starts[first] : starts[last]]
        local, image = _local_places(order, begins, members, slots[starts[first] : starts[last]])
        own, moved, n_kept, value, most = pull[first:last], np.zeros(last - first, np.int64), 0, 0.0, -np.inf
        far, seen = np.empty(last - first, np.int64), np.empty(n, np.bool_)
        for one in range(last - first):
            far[one] = permutation_distance(image[begins[one] : begins[one + 1]], seen, kind)
        for time in range(n_sweeps):
            for _ in range(n):
                value += _try_swap(order, begins, local, image, far, moved, seen, own, weight, state, query, kind)
            value += _order_ties(begins, ranks, image, far, own, state, query, kind)
            most, n_kept = _keep(order, head, time, n_sweeps, value, most, best, n_kept, draws)
            for one in range(last - first):
                distance[first + one] += far[one] / n_sweeps
            for p in range(n):
                place[head + order[p]] += p / n_sweeps
        for one in range(last - first):
            for row in range(begins[one], begins[one + 1]):
                slots[starts[first] + row] = image[begins[one] + local[one, members[row]]]


@njit(cache=True, nogil=True)
def _local_places(order, begins, members, slots):
    """Place of each item among those of each list, -1 where it is none, and the slot of the item at each such place."""
    local = np.full((begins.size - 1, order.size), -1, np.int32)
    image = np.empty(members.size, np.int32)
    for one in range(begins.size - 1):
        for row in range(begins[one], begins[one + 1]):
            local[one, members[row]] = slots[row]
        reached = 0
        for p in range(order.size):
            slot = local[one, order[p]]
            if slot >= 0:
                image[begins[one] + reached] = slot
                local[one, order[p]] = reached
                reached += 1
    return local, image


@njit(cache=True, nogil=True)
def permutation_distance(image, seen, kind):
    """Return the distance of a permutation from the identity; ``seen`` is room for as many marks."""
    if kind > 0:
        total = 0
        for at in range(image.size):
            total += _misplacement(at, image[at], kind)
        return total
    seen[: image.size] = False
    cycles = 0
    for begin in range(image.size):
        at = begin
        cycles += not seen[at]
        while not seen[at]:
            seen[at] = True
            at = image[at]
    return image.size - cycles


@njit(cache=True, nogil=True)
def _misplacement(place, slot, kind):
    """What an item adds to the footrule or the Spearman distance."""
    return abs(place - slot) if kind == 1 else (place - slot) ** 2


@njit(cache=True, nogil=True)
def _change(image, x, y, kind):
    """Change of the distance by exchanging the images of two places."""
    if kind > 0:
        before = _misplacement(x, image[x], kind) + _misplacement(y, image[y], kind)
        return _misplacement(x, image[y], kind) + _misplacement(y, image[x], kind) - before
    at = image[x]
    while at != x:
        if at == y:
            return -1
        at = image[at]
    return 1


@njit(cache=True, nogil=True)
def _shift(image, x, y):
    """Move the image at place x to place y, those between making room."""
    step = 1 if y > x else -1
    kept = image[x]
    for at in range(x, y, step):
        image[at] = image[at + step]
    image[y] = kept


@njit(cache=True, nogil=True)
def _try_swap(order, begins, local, image, far, moved, seen, pull, weight, state, query, kind):
    """Propose to swap two random places, do so or not, and return by how much the log weight has grown."""
    upper, lower = _draw_places(order.size, state, query)
    a, b, gain = order[upper], order[lower], _luce_gain(order, weight, upper, lower) if weight.size else 0.0
    for one in range(far.size):
        x, y, moved[one] = local[one, a], local[one, b], 0
        part = image[begins[one] : begins[one + 1]]
        if x >= 0 and y >= 0:
            moved[one] = _change(part, x, y, kind)
        elif x >= 0 or y >= 0:
            # one of the two passes the list's items that stand between
            between = 0
            for p in range(upper + 1, lower):
                between += local[one, order[p]] >= 0
            if between:
                x, y = (x, x + between) if x >= 0 else (y, y - between)
                _shift(part, x, y)
                moved[one] = permutation_distance(part, seen, kind) - far[one]
                _shift(part, y, x)
        gain += pull[one] * moved[one]
    if gain < 0.0 and _uniform(state, query) >= np.exp(gain):
        return 0.0
    order[upper], order[lower] = b, a
    for one in range(far.size):
        far[one] += moved[one]
        _follow(order, upper, lower, a, b, local[one], image[begins[one] : begins[one + 1]])
    return gain


@njit(cache=True, nogil=True)
def _follow(order, upper, lower, a, b, local, image):
    """Bring a list's places up to date after items a and b were swapped, a from the upper place."""
    x, y = local[a], local[b]
    if x >= 0 and y >= 0:
        local[a], local[b] = y, x
        image[x], image[y] = image[y], image[x]
    elif x >= 0 or y >= 0:
        between = 0
        for p in range(upper + 1, lower):
            between += local[order[p]] >= 0
        reached = x if x >= 0 else y - between
        _shift(image, x if x >= 0 else y, x + between if x >= 0 else y - between)
        for p in range(upper, lower + 1):
            if local[order[p]] >= 0:
                local[order[p]] = reached
                reached += 1


@njit(cache=True, nogil=True)
def _order_ties(begins, rank, image, far, pull, state, query, kind):
    """Propose, for each item tied with the one before it in its list, to swap it with a random one of those tied.

    Returns by how much the log weight has grown.
    """
    total = 0.0
    for one in range(far.size):
        part, head = image[begins[one] : begins[one + 1]], begins[one]
        tied = 0
        for slot in range(1, part.size):
            tied = tied + 1 if rank[head + slot] == rank[head + slot - 1] else 0
            if tied == 0:
                continue
            other = slot - 1 - int(_uniform(state, query) * tied)
            x, y = 0, 0
            for p in range(part.size):
                x = p if part[p] == slot else x
                y = p if part[p] == other else y
            change = _change(part, x, y, kind)
            gain = pull[one] * change
            if gain >= 0.0 or _uniform(state, query) < np.exp(gain):
                part[x], part[y] = part[y], part[x]
                far[one] += change
                total += gain
    return total


@njit(cache=True, nogil=True)
def _try_swap_as_printed(order, lead, weight, state, query, time, above, since):
    """Propose to swap two random places, do so or not, and return by how much the log weight has grown."""
    upper, lower = _draw_places(order.size, state, query)
    a, b = order[upper], order[lower]
    gain = lead[b, a] + (_luce_gain(order, weight, upper, lower) if weight.size else 0.0)
    for p in range(upper + 1, lower):
        gain += lead[order[p], a] + lead[b, order[p]]
    if gain < 0.0 and _uniform(state, query) >= np.exp(gain):
        return 0.0
    for p in range(upper + 1, lower + 1):
        above[a, order[p]] += time - since[a, order[p]]
        since[order[p], a] = time
    for p in range(upper + 1, lower):
        above[order[p], b] += time - since[order[p], b]
        since[b, order[p]] = time
    order[upper], order[lower] = b, a
    return gain


def descend(
    matrix: Floats, order: Counts, offsets: Counts, visits: Counts, weights: Floats, step: float, n_epochs: int
) -> Floats:
    """Return the weights after this many passes over the queries, with one step of fixed length for each query.

    Parameters
    ----------
    matrix
        Features of each place, (n_places, n_features).
    order, offsets
        Places of each query, best first, (n_places,), those of query ``q`` from ``offsets[q]`` up to
        ``offsets[q + 1]``.
    visits
        Queries in the order in which a pass visits them.
    weights, step, n_epochs
        Where to begin, (n_features,), the length of the steps, and the number of passes.
    """
    descended: Any = weights.copy()
    bind(_descend, *views(matrix, order, offsets, visits), descended, step, n_epochs)()
    return np.asarray(descended)


@njit(cache=True, nogil=True)
def _descend(matrix, order, offsets, visits, weights, step, n_epochs):
    """Change the weights in place."""
    longest = _largest_query(offsets, visits)
    scores, slopes = np.empty(longest), np.empty(longest)
    for _ in range(n_epochs):
        for query in visits:
            rows = order[offsets[query] : offsets[query + 1]]
            for p in range(rows.size):
                scores[p] = 0.0
                for c in range(weights.size):
                    scores[p] += matrix[rows[p], c] * weights[c]
            _slopes(scores, rows.size, slopes)
            for p in range(rows.size):
                for c in range(weights.size):
                    weights[c] += step * slopes[p] * matrix[rows[p], c]


@njit(cache=True, nogil=True)
def _slopes(scores, n, slopes):
    """Fill in the derivatives of the log-likelihood of a ranking, best first, by its scores, which are used up."""
    top = -np.inf
    for p in range(n):
        top = max(top, scores[p])
    rest = 0.0
    for p in range(n - 1, -1, -1):
        scores[p] = max(np.exp(scores[p] - top), _SMALLEST)
        rest += scores[p]
        slopes[p] = rest
    rate = 0.0
    for p in range(n):
        rate += 1.0 / slopes[p]
        slopes[p] = 1.0 - scores[p] * rate


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
        As for :func:`sweep`.
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
    kept = np.empty((0, n_items), np.float32) if draws is None else draws
    streams = np.empty(0, np.uint64) if state is None else state
    top, firsts = np.empty(0, np.int32) if best is None else best, np.empty(0) if sets is None else sets
    begins = read_only(set_starts(lists.sizes) if sets is not None else np.zeros(1, np.int64))
    sizes, rest = lists.sizes[chosen], (*sums, kept, streams, top, firsts, begins)
    # a cell of these takes as long as twenty of a chain's
    cost = 20 * (sizes * 2**sizes + lists.work()[chosen] // 16)
    _over_queries(_sum_queries, lists, pull, scores, chosen, cost, *rest)
    return sums


@njit(cache=True, nogil=True)
def _sum_queries(lists, pull, strength, chosen, log_total, distance, place, spread, draws, state, best, sets, begins):
    """Fill in what is known of the chosen queries."""
    offsets, queries, starts, item, rank = lists
    size = _largest_query(offsets, chosen)
    lead, above = np.empty((size, size)), np.empty((size, size))
    step, total = np.empty((1 << size, size)), np.empty(1 << size)
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        _fill_lead(lists, pull, query, lead)
        _fill_steps(lead, strength[head : head + n] if strength.size else strength, n, step)
        if best.size:
            _fill_best(step, n, total, best[head : head + n])
        log_total[query] = _sum_below(step, n, total)
        _sum_above(step, n, total, above, spread[head : head + n])
        if sets.size:
            sets[begins[query] : begins[query + 1]] = total[: 1 << n]
        _fill_places(above, n, place[head : head + n], spread[head : head + n])
        for one in range(queries[query], queries[query + 1]):
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
def _fill_steps(lead, weight, n, step):
    """Fill ``step[s, b]`` with the log weight of putting item b next below the set of items s, of which it is none."""
    step[0, :n] = 0.0
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
def _fill_best(step, n, most, order):
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
def _sum_below(step, n, total):
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
def _sum_above(step, n, chance, above, spread):
    """Add up the chances of each item to stand above each other one, and the squares of places from the middle one.

    ``chance[s]`` becomes the probability that the items of the set s are the first ones of a ranking.
    """
    full = (1 << n) - 1
    chance[: full + 1], above[:n, :n] = 0.0, 0.0
    chance[0] = 1.0
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
def _fill_places(above, n, place, spread):
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
def _draw_order(step, n, state, query, place):
    """Fill in the places of the items in a random ranking."""
    members = 0
    for goal in range(n):
        reached, chosen, share = 0.0, -1, _uniform(state, query)
        for b in range(n):
            # the last one that can come next stands in for what rounding leaves over
            if step[members, b] > 0.0 and (chosen < 0 or reached <= share):
                chosen = b
            reached += step[members, b]
        place[chosen] = goal
        members |= 1 << chosen


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
    small: Counts = ranked[(sizes <= min(most_items, MOST_LISTED_ITEMS)) & ~has_ties[ranked]]
    factorials = np.cumprod(np.maximum(np.arange(MOST_LISTED_ITEMS + 1), 1))
    cells = np.cumsum(factorials[lists.sizes[small]] * np.diff(lists.queries)[small])
    return small[cells <= MOST_CELLS]


def list_orders(lists: RankedLists, chosen: Counts, distance: str) -> list[NDArray[np.uint8]]:
    """Return the distances of all rankings of each chosen query to its lists, (n_lists, n_orders)."""
    kind, tables = KINDS.index(distance), []
    for query in chosen.tolist():
        n, (first, last) = int(lists.sizes[query]), lists.queries[query : query + 2]
        orders, _ = all_places(n)
        table = np.empty((last - first, len(orders)), np.uint8)
        begin = lists.starts[first : last + 1] - lists.starts[first]
        _fill_distances(orders, begin, lists.item[lists.starts[first] : lists.starts[last]], kind, table)
        tables.append(table)
    return tables


def sum_listed(
    lists: RankedLists,
    chosen: Counts,
    distances: list[NDArray[np.uint8]],
    pull: Floats,
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    state: NDArray[np.uint64] | None = None,
    best: Ints | None = None,
) -> OrderSums:
    """Return expectations over all rankings of the chosen queries.

    ``distances`` are those of :func:`list_orders`, other parameters those of :func:`sum_orders`.
    """
    log_total, distance = np.zeros(len(lists.sizes)), np.zeros(len(pull))
    place, spread = np.zeros((2, int(lists.offsets[-1])))
    for query, table in zip(chosen.tolist(), distances, strict=True):
        head, tail = lists.offsets[query : query + 2]
        first, last = lists.queries[query : query + 2]
        orders, places = all_places(int(tail - head))
        logs = np.zeros(len(orders))
        if scores is not None:
            # Plackett-Luce
            own = scores[head:tail]
            strength = np.maximum(np.exp(own - own.max()), _SMALLEST)[orders]
            left = np.cumsum(strength[:, ::-1], axis=1)[:, ::-1]
            logs = (np.log(strength) - np.log(left)).sum(axis=1)
        logs = _log_weights(table, pull[first:last], logs)
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
            drawn = np.searchsorted(climbed, [_uniform(state, query) * climbed[-1] for _ in range(len(draws))])
            draws[:, head:tail] = places[np.minimum(drawn, len(orders) - 1)]
    return OrderSums(log_total, distance, place, spread)


@njit(cache=True, nogil=True)
def _log_weights(table, pull, begin):
    """Logarithm of the weight of each ranking, each unit of distance weighing the list's pull."""
    logs = begin.copy()
    for one in range(table.shape[0]):
        for order in range(table.shape[1]):
            logs[order] += pull[one] * table[one, order]
    return logs


@njit(cache=True, nogil=True)
def _mean_distances(table, weight):
    """Expected distance of each list."""
    means = np.zeros(table.shape[0])
    for one in range(table.shape[0]):
        for order in range(table.shape[1]):
            means[one] += weight[order] * table[one, order]
    return means


@njit(cache=True, nogil=True)
def _fill_distances(orders, begin, item, kind, table):
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


# How far rankings lie from the truth on average, given a dispersion, and the dispersion from that

_SERIES_BELOW = 0.01
"""Where l theta is below this, differences of nearly equal numbers are replaced by the first terms of their series."""

_LARGEST_EXPONENT = 700.0
"""Exponentials of more would overflow; what is divided by them is 0 anyway."""

_LEAST_GRID_THETA = 1e-7
_N_GRID = 1200
_N_HALVINGS = 50


class DistanceTable(NamedTuple):
    """Expected distances on a grid of dispersions, for rankings of several sizes.

    Parameters
    ----------
    theta
        Rising dispersions, (n_grid,).
    mean, slope
        Expected distance and its derivative, (n_sizes, n_grid).
    """

    theta: Floats
    mean: Floats
    slope: Floats

    @property
    def guessing(self) -> Floats:
        """Expected distance of rankings drawn at random, (n_sizes,)."""
        return self.mean[:, np.searchsorted(self.theta, 0.0)]


class SizeCounts(NamedTuple):
    """Weight of each annotator's rankings by size, in compressed rows.

    Entries of annotator ``j`` are ``starts[j]`` up to ``starts[j + 1]``, (n_annotators + 1,); ``row`` is that of the
    table of distances and ``weight`` the number of such rankings, (n_entries,) each.
    """

    starts: Counts
    row: Counts
    weight: Floats


def size_cells(
    starts: Counts, rank: Ints, annotator: Ints, weight: Floats, *, ties: bool
) -> tuple[Ints, Counts, Floats]:
    """Return annotator, size and weight of each ranking, and of what rankings tie with negative weight.

    Items that a ranking ties are a ranking of their own whose order is unknown: their expected distance is taken off,
    so that what remains is that of the pairs in an order, as long as the distance is a sum over pairs.

    Parameters
    ----------
    starts, rank
        Rows of ranking ``l`` are ``starts[l]`` up to ``starts[l + 1]``, their ranks rise.
    annotator, weight
        Of each ranking, (n_lists,).
    ties
        Whether to take off those of tied items.
    """
    length = np.diff(starts)
    if not ties:
        return annotator, length, weight
    number = np.repeat(np.arange(len(length)), length)
    new = np.append(True, (np.diff(rank) != 0) | (np.diff(number) != 0))[: len(rank)]
    begin = np.flatnonzero(new)
    run, of = np.diff(begin, append=len(rank)), number[begin]
    columns = (annotator, annotator[of]), (length, run), (weight, -weight[of])
    who, what, much = (np.concatenate(column) for column in columns)
    return who, what, much


def count_cells(cells_of: Sequence[tuple[Any, Any, Floats]], n: int) -> tuple[Counts, SizeCounts]:
    """Return the rising sizes, 2 among them, and how many of each size each of ``n`` annotators gave, from cells."""
    who, what, much = (np.concatenate(column) for column in zip(*cells_of, strict=True))
    sizes, row = np.unique(np.append(what, 2), return_inverse=True)
    use = (what > 1) & (much != 0)
    cells, entry = np.unique(who[use].astype(np.int64) * len(sizes) + row[:-1][use], return_inverse=True)
    totals = np.bincount(entry, much[use], len(cells)).astype(np.float64, copy=False)
    return sizes, SizeCounts(np.searchsorted(cells, np.arange(n + 1) * len(sizes)), cells % len(sizes), totals)


def kendall_terms(theta: Floats, size: int) -> tuple[Floats, Floats]:
    """Return what the ``size``-th item adds to the expected Kendall distance, and the derivative of that."""
    x = np.abs(theta)
    near = x * size < _SERIES_BELOW
    safe = np.where(near, 1.0, x)
    one, all_of_them = np.minimum(safe, _LARGEST_EXPONENT), np.minimum(size * safe, _LARGEST_EXPONENT)
    mean = 1.0 / np.expm1(one) - size / np.expm1(all_of_them)
    slope = 0.25 / np.sinh(one / 2) ** 2 - 0.25 * size**2 / np.sinh(all_of_them / 2) ** 2
    series = (size - 1) / 2 - x * (size**2 - 1) / 12 + x**3 * (size**4 - 1) / 720
    # far out both parts are limited to the same exponential, the second a little above the first
    mean = np.where(near, series, np.maximum(mean, 0.0))
    slope = np.where(near, (size**2 - 1) / 12 - x**2 * (size**4 - 1) / 240, slope)
    # turned over, a ranking is as far from the turned truth, where theta has the other sign
    return np.where(theta > 0, (size - 1) - mean, mean), slope


def cayley_terms(theta: Floats, size: int) -> tuple[Floats, Floats]:
    """Return what the ``size``-th item adds to the expected Cayley distance, and the derivative of that."""
    stays = 1.0 / (1.0 + (size - 1) * np.exp(np.minimum(theta, _LARGEST_EXPONENT)))
    return 1.0 - stays, stays * (1.0 - stays)


TERMS: dict[str, Callable[[Floats, int], tuple[Floats, Floats]]] = {"kendall": kendall_terms, "cayley": cayley_terms}
"""Distances whose expectation is a sum over items."""


@cache
def distance_counts(size: int, distance: str) -> tuple[Floats, Floats]:
    """Return the footrule or Spearman distances that rankings of some items have to one, and how many have each.

    Places are filled one after the other, and what the next one adds depends on which items are left and not on their
    order, so that counting n! rankings takes 2^n n steps for each distance.
    """
    power = {"footrule": 1, "spearman": 2}[distance]
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) ** power
    most = int(steps[np.arange(size), np.arange(size)[::-1]].sum())
    counts = _count_orders(steps.astype(np.int64), most)
    reached = np.flatnonzero(counts)
    return reached.astype(np.float64), counts[reached]


@njit(cache=True, nogil=True)
def _count_orders(steps, most):
    """Number of permutations by the sum of what each place adds, (most + 1,)."""
    n = steps.shape[0]
    counts = np.zeros((1 << n, most + 1))
    counts[0, 0] = 1.0
    for used in range((1 << n) - 1):
        place = 0
        for item in range(n):
            place += (used >> item) & 1
        for item in range(n):
            if not (used >> item) & 1:
                step = steps[place, item]
                for total in range(most + 1 - step):
                    counts[used | (1 << item), total + step] += counts[used, total]
    return counts[(1 << n) - 1]


def _weighed_counts(theta: Floats, size: int, distance: str) -> tuple[Floats, Floats, Floats]:
    """Distances, the probability of each at each dispersion, (n_theta, n_distances), and the logarithm of Z."""
    far, number = distance_counts(size, distance)
    logs = np.log(number) + theta[:, None] * far
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return far, weights / total, (top + np.log(total))[:, 0]


def _counted_moments(theta: Floats, size: int, distance: str) -> tuple[Floats, Floats]:
    """Expected distance of rankings of a size at each dispersion, and its derivative, the variance."""
    far, chance, _ = _weighed_counts(theta, size, distance)
    mean = chance @ far
    return mean, np.maximum(chance @ far**2 - mean**2, 0.0)


def expected_distance(theta: Floats | float, n_items: int, distance: str = "kendall") -> Floats:
    """Return the expected distance to the truth of a ranking of this many items, for each dispersion."""
    theta = np.asarray(theta, np.float64)
    if distance not in TERMS:
        mean = _counted_moments(theta.ravel(), n_items, distance)[0] if n_items > 1 else 0.0 * theta.ravel()
        return mean.reshape(theta.shape)
    terms = [TERMS[distance](theta, size)[0] for size in range(2, n_items + 1)]
    return np.sum(terms or [0.0 * theta], axis=0)


def log_normalisers(theta: Floats, n_items: int, distance: str = "kendall") -> Floats:
    """Return log Z for 0 up to ``n_items`` items, (n_annotators, n_items + 1)."""
    size = np.arange(1, max(n_items, 1) + 1)
    if distance == "cayley":
        terms = np.log1p((size - 1) * np.exp(np.minimum(theta, _LARGEST_EXPONENT))[:, None])
    elif distance == "kendall":
        terms = _kendall_normalisers(theta, size)
    else:
        logs = [_weighed_counts(theta, one, distance)[2] for one in size[1:].tolist()]
        return np.stack([np.zeros(len(theta))] * 2 + logs, axis=1)[:, : n_items + 1]
    return np.concatenate([np.zeros((len(theta), 1)), np.cumsum(terms, axis=1)], axis=1)[:, : n_items + 1]


def _kendall_normalisers(theta: Floats, size: Counts) -> Floats:
    """What each item adds to log Z of the Kendall distance, (n_annotators, n_sizes)."""
    x = np.abs(theta)[:, None]
    near = x * size < _SERIES_BELOW
    safe = np.where(near, 1.0, x)
    ratio = np.log(
        np.expm1(-np.minimum(safe * size, _LARGEST_EXPONENT)) / np.expm1(-np.minimum(safe, _LARGEST_EXPONENT))
    )
    terms = np.where(near, np.log(size) - x * (size - 1) / 2 + x**2 * (size**2 - 1) / 24, ratio)
    return terms + np.maximum(theta, 0.0)[:, None] * (size - 1)


def distance_table(sizes: Counts, bound: float, *, both: bool, distance: str) -> DistanceTable:
    """Return expected distances for rankings of rising sizes, from ``bound`` up to 0, or -``bound`` if ``both``.

    The grid is dense at 0 on the scale of logarithms, since with many items the distance falls fast there.
    """
    steps = np.geomspace(min(_LEAST_GRID_THETA, -bound / 2), -bound, _N_GRID)
    theta = np.concatenate([-steps[::-1], [0.0], steps if both else []])
    mean, slope = np.zeros((2, len(sizes), len(theta)))
    if distance not in TERMS:
        for place, size in enumerate(sizes.tolist()):
            if size > 1:
                mean[place], slope[place] = _counted_moments(theta, size, distance)
        return DistanceTable(theta, mean, slope)
    total, change = np.zeros((2, len(theta)))
    terms, place = TERMS[distance], 0
    for size in range(1, int(sizes[-1]) + 1):
        if size > 1:
            more, steeper = terms(theta, size)
            total, change = total + more, change + steeper
        if size == sizes[place]:
            mean[place], slope[place] = total, change
            place += 1
    return DistanceTable(theta, mean, slope)


def solve_dispersions(table: DistanceTable, counts: SizeCounts, wanted: Floats, former: Floats) -> Floats:
    """Return the dispersion at which each annotator's expected distances add up to what is wanted, (n_annotators,).

    Beyond either end of the grid it is that end; annotators without rankings keep the former one. Between two points of
    the grid the expectation is taken as the cubic with its values and slopes there, which is right to some 1e-7 of it.
    """
    solved = former.copy()
    bind(_solve, *views(*table, *counts, wanted), solved)()
    return solved


@njit(cache=True, nogil=True)
def _weighted_sum(values, row, weight, first, last, point):
    """Sum of an annotator's entries of a table at a point of the grid."""
    total = 0.0
    for entry in range(first, last):
        total += weight[entry] * values[row[entry], point]
    return total


@njit(cache=True, nogil=True)
def _solve(theta, mean, slope, starts, row, weight, wanted, solved):
    """Fill in the dispersions."""
    last = theta.size - 1
    for one in range(solved.size):
        entries = (starts[one], starts[one + 1])
        if entries[0] == entries[1]:
            continue
        low, high = 0, last
        if wanted[one] <= _weighted_sum(mean, row, weight, entries[0], entries[1], low):
            solved[one] = theta[low]
            continue
        if wanted[one] >= _weighted_sum(mean, row, weight, entries[0], entries[1], high):
            solved[one] = theta[high]
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _weighted_sum(mean, row, weight, entries[0], entries[1], middle) <= wanted[one]:
                low = middle
            else:
                high = middle
        width = theta[high] - theta[low]
        begin = _weighted_sum(mean, row, weight, entries[0], entries[1], low)
        rise = _weighted_sum(mean, row, weight, entries[0], entries[1], high) - begin
        enter = _weighted_sum(slope, row, weight, entries[0], entries[1], low) * width
        leave = _weighted_sum(slope, row, weight, entries[0], entries[1], high) * width
        solved[one] = theta[low] + width * _crossing(wanted[one] - begin, rise, enter, leave)


@njit(cache=True, nogil=True)
def _crossing(goal, rise, enter, leave):
    """Where in 0 to 1 the rising cubic from 0 to ``rise``, with these slopes at its ends, reaches the goal."""
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        height = middle * (enter + middle * (3 * rise - 2 * enter - leave + middle * (enter + leave - 2 * rise)))
        if height <= goal:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
