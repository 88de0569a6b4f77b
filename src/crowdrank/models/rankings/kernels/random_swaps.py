"""Random rankings of the items of each query, weighed by their distances to annotators' rankings.

The Cayley distance of two rankings of m items is m less the number of cycles of the permutation that leads from the
places in the one to those in the other, so swapping two items changes it by one: down where both are in one cycle,
which falls apart, and up where they are in two, which merge. The footrule adds up how far items are from their places,
the Spearman distance the squares of that, and a swap changes them at two places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.threads import over_bounds, read_only
from ....protocols import Counts, Floats, Ints
from .permutations import Chains, SweepMeans, luce_gain, strengths, uniform
from .ranked_lists import RankedLists, query_bounds

KINDS = ("cayley", "footrule", "spearman")
_CELLS_PER_THREAD = 1_000_000


def swap_randomly(
    lists: RankedLists,
    pull: Floats,
    chains: Chains,
    slots: Counts,
    chosen: Counts,
    n_sweeps: int,
    distance: str = "cayley",
    *,
    scores: Floats | None = None,
    draws: NDArray[np.float32] | None = None,
    best: Ints | None = None,
) -> SweepMeans:
    """Carry the chains on by this many sweeps, and return mean distances and places over them.

    A sweep tries to swap as many random pairs of places as there are items, and takes each swap with the probability of
    Metropolis' rule. A list that lacks items is held against the ranking of those that it has; items that a list ties
    stand in some order within it, which is drawn along with the rest.

    Parameters
    ----------
    lists, pull, chains, chosen, n_sweeps, scores, draws, best
        As for :func:`crowdrank.models.rankings.kernels.permutations.sweep`.
    slots
        Place of each row's item in its list, ties ordered at first in some way, (n_rows,); changed in place.
    distance
        One of ``KINDS``.
    """
    means = SweepMeans(np.zeros(len(pull)), np.zeros(len(chains.order)))
    kept = np.empty((0, len(chains.order)), np.float32) if draws is None else draws
    top = np.empty(0, np.int32) if best is None else best
    weights = read_only(np.empty(0) if scores is None else strengths(scores, lists.offsets))
    table, pulls, which = lists.views(), read_only(pull), read_only(chosen)
    swap_queries: Any = _swap_queries
    kind = KINDS.index(distance)

    def work(begin: int, end: int) -> None:
        swap_queries(*table, pulls, weights, which[begin:end], kind, n_sweeps, *chains, slots, *means, kept, top)

    cost = n_sweeps * (np.diff(lists.queries) * lists.sizes**2)[chosen]
    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))
    return means


@njit(cache=True, nogil=True)
def _swap_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, strength: Any, chosen: Any,
    kind: int, n_sweeps: int, orders: Any, state: Any, slots: Any, distance: Floats, place: Floats, draws: Any,
    best: Any,
) -> None:  # fmt: skip
    """Sweep the chosen queries; fill in distance, place, draws and best."""
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
                value += _try_swap(
                    order, begins, local, image, far, moved, seen, pull[first:last], weight, state, query, kind
                )
            value += _order_ties(begins, ranks, image, far, own, state, query, kind)
            if best.size and value > most:
                most = value
                best[head : head + n] = order
            for one in range(last - first):
                distance[first + one] += far[one] / n_sweeps
            for p in range(n):
                place[head + order[p]] += p / n_sweeps
            if (time + 1) * draws.shape[0] >= (n_kept + 1) * n_sweeps:
                for p in range(n):
                    draws[n_kept, head + order[p]] = p
                n_kept += 1
        for one in range(last - first):
            for row in range(begins[one], begins[one + 1]):
                slots[starts[first] + row] = image[begins[one] + local[one, members[row]]]


@njit(cache=True, nogil=True)
def _local_places(order: Any, begins: Any, members: Any, slots: Any) -> Any:
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
def permutation_distance(image: Any, seen: Any, kind: int) -> Any:
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
def _misplacement(place: int, slot: int, kind: int) -> Any:
    """What an item adds to the footrule or the Spearman distance."""
    return abs(place - slot) if kind == 1 else (place - slot) ** 2


@njit(cache=True, nogil=True)
def _change(image: Any, x: int, y: int, kind: int) -> Any:
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
def _shift(image: Any, x: int, y: int) -> None:
    """Move the image at place x to place y, those between making room."""
    step = 1 if y > x else -1
    kept = image[x]
    for at in range(x, y, step):
        image[at] = image[at + step]
    image[y] = kept


@njit(cache=True, nogil=True)
def _try_swap(
    order: Any,
    begins: Any,
    local: Any,
    image: Any,
    far: Any,
    moved: Any,
    seen: Any,
    pull: Any,
    weight: Any,
    state: Any,
    query: int,
    kind: int,
) -> float:
    """Propose to swap two random places, do so or not, and return by how much the log weight has grown."""
    n = order.size
    upper, lower = int(uniform(state, query) * n), int(uniform(state, query) * (n - 1))
    lower += lower >= upper
    upper, lower = min(upper, lower), max(upper, lower)
    a, b, gain = order[upper], order[lower], luce_gain(order, weight, upper, lower) if weight.size else 0.0
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
    if gain < 0.0 and uniform(state, query) >= np.exp(gain):
        return 0.0
    order[upper], order[lower] = b, a
    for one in range(far.size):
        far[one] += moved[one]
        _follow(order, upper, lower, a, b, local[one], image[begins[one] : begins[one + 1]])
    return gain


@njit(cache=True, nogil=True)
def _follow(order: Any, upper: int, lower: int, a: int, b: int, local: Any, image: Any) -> None:
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
def _order_ties(
    begins: Any, rank: Any, image: Any, far: Any, pull: Any, state: Any, query: int, kind: int
) -> float:  # fmt: skip
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
            other = slot - 1 - int(uniform(state, query) * tied)
            x, y = 0, 0
            for p in range(part.size):
                x = p if part[p] == slot else x
                y = p if part[p] == other else y
            change = _change(part, x, y, kind)
            gain = pull[one] * change
            if gain >= 0.0 or uniform(state, query) < np.exp(gain):
                part[x], part[y] = part[y], part[x]
                far[one] += change
                total += gain
    return total
