"""Resamples of judgments: how often each was drawn, what is judged in them, and which items they connect."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Ints

_BITS = 13
_BLOCK = 1 << _BITS
"""Units whose draws are tallied together, so their counters stay in the nearest cache."""


def draw_alike(n_units: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return how often each of ``n_units`` is drawn when as many are drawn with replacement, (n_units,).

    How many draws fall into each block of 8192 units is multinomial, and where within it takes 13 random bits a draw:
    a third of the time of drawing from all units at once.
    """
    sizes = np.full(-(-n_units // _BLOCK), _BLOCK)
    sizes[-1] += n_units - int(sizes.sum())
    ends = np.cumsum(rng.multinomial(n_units, sizes / n_units))
    n_full = int(ends[-2]) if len(ends) > 1 else 0
    counts = np.zeros(n_units, np.uint8)
    _tally(rng.bit_generator.random_raw(-(-n_full // 4)).view(np.uint16), ends[:-1], counts)
    last = rng.integers(0, sizes[-1], n_units - n_full, dtype=np.uint16)
    _tally(last, np.array([len(last)]), counts[(len(sizes) - 1) << _BITS :])
    return counts


@njit(cache=True, nogil=True)
def _tally(places: NDArray[np.uint16], ends: Counts, counts: NDArray[np.uint8]) -> None:
    """Add the draws of each block, (n_draws,), to the counts of its units, (n_units,)."""
    begin = 0
    for block in range(ends.size):
        within = counts[block << _BITS :]
        for draw in range(begin, ends[block]):
            within[places[draw] & (_BLOCK - 1)] += np.uint8(1)
        begin = ends[block]


@njit(cache=True, nogil=True)
def mark_drawn(items: Ints, drawn: Bools, judged: Bools) -> None:
    """Mark the items, (n_items,), of the rows that were drawn, (n_rows,)."""
    for row in range(items.size):
        # without a branch, which could not be foreseen
        judged[items[row]] |= drawn[row]


def join_rows(first: Ints, second: Ints, drawn: Bools, n_items: int, most: int | None = None) -> tuple[Ints, int]:
    """Return the lowest item that each item is connected with by drawn rows, (n_items,), and how many joins it took.

    With ``most`` joins nothing is left to join, and the rest of the rows is not looked at.
    """
    group = np.arange(n_items, dtype=np.int32)
    return group, _join_rows(first, second, drawn, group, n_items if most is None else most)


@njit(cache=True, nogil=True)
def group_leader(group: Ints, item: int) -> int:
    """Return the item that leads the group of an item; shortens the way to it."""
    while group[item] != item:
        group[item] = group[group[item]]
        item = group[item]
    return item


@njit(cache=True, nogil=True)
def settle_groups(group: Ints) -> None:
    """Name each item's group by its leader; leaders come first, so theirs is settled."""
    for item in range(group.size):
        group[item] = group[group[item]]


@njit(cache=True, nogil=True)
def _join_rows(first: Ints, second: Ints, drawn: Bools, group: Ints, most: int) -> int:
    """Join the groups of the two items of each drawn row; return how often there were two."""
    n_joins = 0
    for row in range(first.size):
        if n_joins >= most:
            break
        if not drawn[row]:
            continue
        a, b = group_leader(group, first[row]), group_leader(group, second[row])
        if a != b:
            n_joins += 1
            group[max(a, b)] = min(a, b)
    settle_groups(group)
    return n_joins
