"""Orders of items by majorities: quicksort (Condorcet fusion), the greedy order, and standings in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.numbering import Numbers, mix_bits
from ....kernels.segments import ranking_standings
from ....kernels.threads import bind, views
from ....protocols import Bools, Counts, Floats, Ints


class Links(NamedTuple):
    """Every pair twice, once with each of its items.

    The neighbours of item ``i`` are ``other[starts[i]:starts[i + 1]]``, in rising order; ``lead`` is over links, what
    the item has over the neighbour, and has the opposite sign on the way back.
    """

    starts: Counts
    other: Ints
    lead: NDArray[Any]


def link_pairs(starts: Counts, second: Ints, lead: NDArray[Any]) -> Links:
    """Return the links of all pairs, given the lead of the lower item in each, (n_pairs,)."""
    n_items = len(starts) - 1
    numbers = np.diff(starts) + np.bincount(second, minlength=n_items)
    places = np.concatenate([[0], np.cumsum(numbers)])
    other, ahead = np.empty(2 * len(second), np.int32), np.empty(2 * len(second), lead.dtype)
    bind(_fill_links, *views(starts, second, lead), places[:-1].copy(), other, ahead)()
    return Links(places, other, ahead)


@njit(cache=True, nogil=True)
def _fill_links(starts, second, lead, place, other, ahead):
    """Fill in both links of each pair, first those that lead down; ``place`` (n_items,) is where an item's begin."""
    for i in range(place.size):
        for pair in range(starts[i], starts[i + 1]):
            at = place[second[pair]]
            other[at], ahead[at] = i, -lead[pair]
            place[second[pair]] = at + 1
    for i in range(place.size):
        for pair in range(starts[i], starts[i + 1]):
            at = place[i]
            other[at], ahead[at] = second[pair], lead[pair]
            place[i] = at + 1


def majority_ranks(links: Links, numbers: Numbers, items: Ints, bounds: Counts, salt: np.uint64) -> Ints:
    """Return the rank of each item, (n_items,), counted from 1 within its stretch; 0 for those not in ``items``.

    Quicksort: items that beat the pivot go ahead of it, items that it beat behind it, and a coin decides on the others.
    Pivots and coins are drawn from structure ``numbers``, see :mod:`~crowdrank.kernels.numbering`, so names do not
    matter; items with the same number are one pivot and share a rank.

    ``lead`` of the links is 1 where the item won the majority and -1 where it lost; ``items`` are sorted stretch by
    stretch, which ``bounds`` limit; ``salt`` makes the draws of one run.
    """
    ranks = np.zeros(len(links.starts) - 1, np.int32)
    bind(_sort_all, *views(*links, numbers), bounds, salt, items.copy(), ranks)()
    return ranks


@njit(cache=True, nogil=True)
def _sort_all(starts, other, lead, numbers, bounds, salt, order, ranks):
    """Sort each stretch of the order in place, and fill in ranks, (n_items,)."""
    votes, spare = np.zeros(ranks.size, np.int32), np.empty(order.size, np.int32)
    begins, ends = np.empty(order.size + 1, np.int64), np.empty(order.size + 1, np.int64)
    for stretch in range(bounds.size - 1):
        begins[0], ends[0], n_open = bounds[stretch], bounds[stretch + 1], 1
        while n_open > 0:
            n_open -= 1
            begin, end = begins[n_open], ends[n_open]
            if begin == end:
                continue
            ahead, behind = _split(starts, other, lead, numbers, salt, order, begin, end, votes, spare)
            for at in range(ahead, behind):
                ranks[order[at]] = ahead - bounds[stretch] + 1
            # the longer part first, so few stay open
            longer = ahead - begin >= end - behind
            begins[n_open], ends[n_open] = (begin, ahead) if longer else (behind, end)
            begins[n_open + 1], ends[n_open + 1] = (behind, end) if longer else (begin, ahead)
            n_open += 2


@njit(cache=True, nogil=True)
def _split(starts, other, lead, numbers, salt, order, begin, end, votes, spare):
    """Arrange a part of the order about its pivot; return where the pivot begins and ends."""
    pivot, least = numbers[order[begin]], mix_bits(numbers[order[begin]] ^ salt)
    for at in range(begin + 1, end):
        draw = mix_bits(numbers[order[at]] ^ salt)
        if draw < least:
            pivot, least = numbers[order[at]], draw
    for at in range(begin, end):
        item = order[at]
        if numbers[item] == pivot:
            for link in range(starts[item], starts[item + 1]):
                votes[other[link]] += lead[link]
    ahead, n_pivots, n_behind = begin, 0, 0
    for at in range(begin, end):
        item = order[at]
        if numbers[item] == pivot:
            spare[end - 1 - n_pivots] = item
            n_pivots += 1
        elif votes[item] < 0 or (votes[item] == 0 and mix_bits(least + mix_bits(numbers[item] + salt)) & np.uint64(1)):
            order[ahead] = item
            ahead += 1
        else:
            spare[begin + n_behind] = item
            n_behind += 1
    for number in range(n_pivots):
        item = spare[end - 1 - number]
        order[ahead + number] = item
        for link in range(starts[item], starts[item + 1]):
            votes[other[link]] = 0
    for number in range(n_behind):
        order[ahead + n_pivots + number] = spare[begin + number]
    return ahead, ahead + n_pivots


def greedy_ranks(links: Links, judged: Bools, slack: int) -> Ints:
    """Return the rank of each judged item, (n_items,), 0 for others; ranks of different queries are not to be compared.

    The potential of an item is the sum of its leads, whole numbers, over the judged items that are not yet placed.
    Those whose potentials differ from the largest by no more than ``slack`` are placed together, in the order of their
    leads over each other; equal ones share a rank.
    """
    # sums of whole numbers do not depend on their order
    climbed = np.concatenate([[0], np.cumsum(links.lead)])
    potential = climbed[links.starts[1:]] - climbed[links.starts[:-1]]
    waiting = np.flatnonzero(judged)
    # begun with the largest ahead, the queue is in order
    queue = waiting[np.argsort(-potential[waiting])].astype(np.int32)
    place = np.full(len(judged), -1, np.int32)
    place[queue] = np.arange(len(queue))
    turn, inner = np.zeros(len(judged), np.int32), np.zeros(len(judged), np.int64)
    bind(_place_all, *views(*links), potential, queue, place, slack, turn, inner)()
    # by turn and then by inner lead, the same where both are equal
    order = waiting[np.lexsort((-inner[waiting], turn[waiting]))]
    new = (np.diff(turn[order]) != 0) | (np.diff(inner[order]) < -slack)
    ranks = np.zeros(len(turn), np.int32)
    ranks[order] = 1 + np.concatenate([[0], np.cumsum(new)])[: len(order)]
    return ranks


@njit(cache=True, nogil=True)
def _place_all(starts, other, lead, potential, queue, place, slack, turn, inner):
    """Fill in the turn at which each item is taken, from 1, and its lead over those taken with it, (n_items,) each.

    ``queue`` is a heap by potential, and ``place`` says where in it an item waits, -1 where it does not.
    """
    size, now, n_taken = queue.size, 0, 0
    taken = np.empty(queue.size, np.int32)
    while size > 0:
        limit, first, now = potential[queue[0]] - slack, n_taken, now + 1
        while size > 0 and potential[queue[0]] >= limit:
            item, size = queue[0], size - 1
            _sift(potential, queue, place, size, 0, queue[size])
            place[item], turn[item], taken[n_taken] = -1, now, item
            n_taken += 1
        for number in range(first, n_taken):
            item = taken[number]
            for link in range(starts[item], starts[item + 1]):
                there = other[link]
                if turn[there] == now:
                    inner[item] += lead[link]
                elif place[there] >= 0:
                    potential[there] += lead[link]
                    _sift(potential, queue, place, size, place[there], there)


@njit(cache=True, nogil=True)
def _sift(potential, queue, place, size, at, item):
    """Put an item at its place in a heap of this size, starting from a free place."""
    if at >= size:
        return
    key = potential[item]
    while at > 0 and potential[queue[(at - 1) // 2]] < key:
        queue[at] = queue[(at - 1) // 2]
        place[queue[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and potential[queue[child + 1]] > potential[queue[child]]:
            child += 1
        if potential[queue[child]] <= key:
            break
        queue[at] = queue[child]
        place[queue[at]] = at
        at = child
    queue[at] = item
    place[item] = at


def rank_standings(ranks: Ints, query: Ints, n_queries: int) -> Floats:
    """Return the standing of each item among the ranked ones of its query, 1 for the first and -1 for the last.

    ``ranks`` and ``query`` are (n_items,); ranks count from 1 within a query, equal ones share a place, and items with
    rank 0 have standing 0.
    """
    ranked = np.flatnonzero(ranks)
    query = query[ranked]
    order = ranked[np.lexsort((ranks[ranked], query))]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=n_queries))])
    standings = np.zeros(len(ranks))
    standings[order] = ranking_standings(ranks[order], bounds)
    return standings
