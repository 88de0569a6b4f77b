"""Quicksort by majority: items beaten by the pivot go behind it, those that beat it go ahead, a coin moves the others.

Pivots and coins are drawn from the structure numbers of the items, see :mod:`~crowdrank.kernels.structure`, so that
names do not matter; items that have the same number are one pivot and end in the same place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.structure import Numbers, mixed
from ....kernels.threads import read_only
from ....protocols import Counts, Ints
from .links import Links


def majority_ranks(links: Links, numbers: Numbers, items: Ints, bounds: Counts, salt: np.uint64) -> Ints:
    """Return the rank of each item, (n_items,), counted from 1 within its stretch; 0 for those not in ``items``.

    ``lead`` of the links is 1 where the item won the majority and -1 where it lost; ``items`` are sorted stretch by
    stretch, which ``bounds`` limit; ``salt`` makes the draws of one run.
    """
    ranks = np.zeros(len(links.starts) - 1, np.int32)
    rows, other, lead = read_only(links.starts), read_only(links.other), read_only(links.lead)
    _sort_all(rows, other, lead, read_only(numbers), bounds, salt, items.copy(), ranks)
    return ranks


@njit(cache=True, nogil=True)
def _sort_all(
    starts: Counts, other: Ints, lead: Any, numbers: Any, bounds: Counts, salt: Any, order: Ints, ranks: Ints
) -> None:
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
            # the longer part first, so that few stay open
            longer = ahead - begin >= end - behind
            begins[n_open], ends[n_open] = (begin, ahead) if longer else (behind, end)
            begins[n_open + 1], ends[n_open + 1] = (behind, end) if longer else (begin, ahead)
            n_open += 2


@njit(cache=True, nogil=True)
def _split(
    starts: Counts, other: Ints, lead: Any, numbers: Any, salt: Any, order: Ints, begin: int, end: int, votes: Ints,
    spare: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Arrange a part of the order about its pivot; return where the pivot begins and ends."""
    pivot, least = numbers[order[begin]], mixed(numbers[order[begin]] ^ salt)
    for at in range(begin + 1, end):
        draw = mixed(numbers[order[at]] ^ salt)
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
        elif votes[item] < 0 or (votes[item] == 0 and mixed(least + mixed(numbers[item] + salt)) & np.uint64(1)):
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
