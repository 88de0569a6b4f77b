"""Numbers that distinguish items by their preferences alone, whatever their names.

Random draws that depend on these numbers are the same for every naming of the items. Each round mixes into an item's
number those of its neighbours, with a label for each link, until no round tells more items apart [Weisfeiler68]_. Items
that keep the same number have preferences that look alike however far one follows them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Ints
from .threads import read_only

Numbers: TypeAlias = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HIGH, _MIDDLE, _LOW = np.uint64(30), np.uint64(27), np.uint64(31)

_MAX_PAIR_VISITS = 1 << 27
"""Pairs looked at in all rounds together; long chains of preferences may need more, and then names decide."""


@njit(cache=True, nogil=True)
def mix_bits(value: Any) -> Any:
    """Return a number whose every bit depends on all bits of the value [Steele14]_."""
    value = value + _STEP
    value = (value ^ (value >> _HIGH)) * _FIRST
    value = (value ^ (value >> _MIDDLE)) * _SECOND
    return value ^ (value >> _LOW)


def structure_numbers(starts: Counts, second: Ints, up: Numbers, down: Numbers, offsets: Counts) -> Numbers:
    """Return a number for each item, (n_items,), the same for items of a query whose preferences look alike.

    ``up`` and ``down`` (n_pairs,) label a pair as its lower item and as the other one sees it; ``offsets`` bound the
    items of the queries. What other queries hold changes nothing.
    """
    rows, columns, above, below = read_only(starts), read_only(second), read_only(up), read_only(down)
    n_items, query = len(starts) - 1, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    linked = np.diff(starts) > 0
    linked[second] = True
    sizes = np.bincount(query[linked], minlength=len(offsets) - 1)
    numbers, before = np.zeros(n_items, np.uint64), np.minimum(sizes, 1)
    active, rounds, visits = sizes > 1, 1, 0
    while active.any():
        # looking for what is new takes longer than a round, so it is done after 1, 2, 4, ... of them
        for _ in range(rounds):
            numbers = _refine_once(rows, columns, above, below, numbers, active[query] & linked)
        rounds, visits = 2 * rounds, visits + rounds * len(second)
        distinct = _count_distinct(numbers, query, linked, len(sizes))
        active &= (distinct > before) & (distinct < sizes)
        before = distinct
        if visits > _MAX_PAIR_VISITS and active.any():
            open_items = np.flatnonzero(active[query] & linked)
            numbers[open_items] += open_items.astype(np.uint64)
            break
    return numbers


def _count_distinct(numbers: Numbers, query: Counts, linked: Bools, n_queries: int) -> Counts:
    """How many different numbers the linked items of each query have."""
    query, numbers = query[linked], numbers[linked]
    order = np.lexsort((numbers, query))
    query, numbers = query[order], numbers[order]
    new = np.ones(len(order), bool)
    new[1:] = (query[1:] != query[:-1]) | (numbers[1:] != numbers[:-1])
    return np.bincount(query[new], minlength=n_queries)


def _refine_once(starts: Counts, second: Ints, up: Numbers, down: Numbers, numbers: Numbers, active: Bools) -> Numbers:
    """The numbers after one more round, for active items."""
    sums = np.zeros(len(numbers), np.uint64)
    following = numbers.copy()
    _refine(starts, second, up, down, read_only(numbers), read_only(active), sums, following)
    return following


@njit(cache=True, nogil=True)
def _refine(
    starts: Counts, second: Ints, up: Any, down: Any, numbers: Any, active: Bools, sums: Any, following: Any
) -> None:
    """Fill in the following number of each active item, (n_items,); sums that wrap do not depend on their order."""
    for i in range(active.size):
        if active[i]:
            for pair in range(starts[i], starts[i + 1]):
                j = second[pair]
                sums[i] += mix_bits(numbers[j] ^ up[pair])
                sums[j] += mix_bits(numbers[i] ^ down[pair])
    for i in range(active.size):
        if active[i]:
            following[i] = mix_bits(mix_bits(numbers[i]) + sums[i])
