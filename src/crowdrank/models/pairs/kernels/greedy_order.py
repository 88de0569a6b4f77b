"""The greedy order of linked items: the one with the largest potential first, then without it the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import read_only
from ....protocols import Bools, Counts, Ints
from .links import Links


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
    rows, other, lead = read_only(links.starts), read_only(links.other), read_only(links.lead)
    _take_all(rows, other, lead, potential, queue, place, slack, turn, inner)
    return _ranks(waiting, turn, inner, slack)


def _ranks(items: Counts, turn: Ints, inner: Counts, slack: int) -> Ints:
    """Rank of each of the items by turn and then by inner lead, the same where both are equal."""
    order = items[np.lexsort((-inner[items], turn[items]))]
    new = (np.diff(turn[order]) != 0) | (np.diff(inner[order]) < -slack)
    ranks = np.zeros(len(turn), np.int32)
    ranks[order] = 1 + np.concatenate([[0], np.cumsum(new)])[: len(order)]
    return ranks


@njit(cache=True, nogil=True)
def _take_all(
    starts: Counts, other: Ints, lead: Any, potential: Counts, queue: Ints, place: Ints, slack: int, turn: Ints,
    inner: Counts,
) -> None:  # fmt: skip
    """Fill in the turn at which each item is taken, from 1, and its lead over those taken with it, (n_items,) each.

    ``queue`` is a heap by potential, and ``place`` says where in it an item waits, -1 where it does not.
    """
    size, now, n_taken = queue.size, 0, 0
    taken = np.empty(queue.size, np.int32)
    while size > 0:
        limit, first, now = potential[queue[0]] - slack, n_taken, now + 1
        while size > 0 and potential[queue[0]] >= limit:
            item, size = queue[0], size - 1
            _settle(potential, queue, place, size, 0, queue[size])
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
                    _settle(potential, queue, place, size, place[there], there)


@njit(cache=True, nogil=True)
def _settle(potential: Counts, queue: Ints, place: Ints, size: int, at: int, item: int) -> None:
    """Put an item where it belongs in a heap of so many, beginning at a free place."""
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
