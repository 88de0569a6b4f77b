"""Resamples of judgments, several at once: drawn, connected, counted by pair, fitted by Newton steps.

An array over resamples has them in its last dimension unless it says otherwise, so that the innermost loop runs over
neighbouring cells. Pairs are in the compressed rows of :mod:`~crowdrank.kernels.pairs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Floats, Ints
from .laplacian import solve_together

_BITS = 13
_BLOCK = 1 << _BITS
"""Units whose draws are tallied together, so that their counters stay in the nearest cache."""


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
def _tally(places: Any, ends: Counts, counts: Any) -> None:
    """Add the draws of each block, (n_draws,), to the counts of its units, (n_units,)."""
    begin = 0
    for block in range(ends.size):
        within = counts[block << _BITS :]
        for draw in range(begin, ends[block]):
            within[places[draw] & (_BLOCK - 1)] += np.uint8(1)
        begin = ends[block]


@njit(cache=True, nogil=True)
def mark_drawn(items: Any, drawn: Any, judged: Any) -> None:
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
def _root(group: Any, item: int) -> int:
    """The item that leads the group, the way to it shortened."""
    while group[item] != item:
        group[item] = group[group[item]]
        item = group[item]
    return item


@njit(cache=True, nogil=True)
def _settle(group: Any) -> None:
    """Name each item's group by its leader; leaders come first, so that theirs is settled."""
    for item in range(group.size):
        group[item] = group[group[item]]


@njit(cache=True, nogil=True)
def _join_rows(first: Any, second: Any, drawn: Any, group: Ints, most: int) -> int:
    """Join the groups of the two items of each drawn row; return how often there were two."""
    n_joins = 0
    for row in range(first.size):
        if n_joins >= most:
            break
        if not drawn[row]:
            continue
        a, b = _root(group, first[row]), _root(group, second[row])
        if a != b:
            n_joins += 1
            group[max(a, b)] = min(a, b)
    _settle(group)
    return n_joins


@njit(cache=True, nogil=True)
def join_pairs(starts: Counts, second: Ints, number: Any, group: Ints, most: int, n_joins: Counts) -> None:
    """Fill the groups of each resample, (n_items, n_resamples) numbered upwards, and the joins, (n_resamples,).

    Pairs that a resample has no contest of, ``number`` (n_pairs, n_resamples), do not connect.
    """
    for resample in range(group.shape[1]):
        own = group[:, resample]
        for i in range(own.size):
            if n_joins[resample] >= most:
                break
            for pair in range(starts[i], starts[i + 1]):
                if number[pair, resample] > 0:
                    a, b = _root(own, i), _root(own, second[pair])
                    if a != b:
                        n_joins[resample] += 1
                        own[max(a, b)] = min(a, b)
        _settle(own)


@njit(cache=True, nogil=True)
def count_resamples(
    copies: Any, unit: Ints, weight: Any, surprise: Any, row_starts: Counts, starts: Counts, second: Ints,
    number: Any, lead: Any,
) -> None:  # fmt: skip
    """Add the rows of each pair to its number of contests, (n_pairs, n_resamples), and to its items' lead.

    A row counts ``weight`` (n_rows,) times the copies of its unit, (n_resamples, n_units) as they are drawn; the lead
    of an item, (n_items, n_resamples), is what it won beyond expectation: ``surprise`` (n_rows,) of that for the lower
    item. The rows of a pair are ``row_starts[pair]`` up to the next.
    """
    n_resamples = copies.shape[0]
    drawn, own = np.empty(n_resamples, np.float32), np.empty(n_resamples, np.float32)
    for i in range(starts.size - 1):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for row in range(row_starts[pair], row_starts[pair + 1]):
                of, counted, gain = np.uint32(unit[row]), weight[row], surprise[row]
                # a loop of its own, so that the next one can use vectors
                for k in range(n_resamples):
                    drawn[k] = counted * copies[k, of]
                for k in range(n_resamples):
                    number[pair, k] += drawn[k]
                    own[k] += gain * drawn[k]
                    lead[j, k] -= gain * drawn[k]
        for k in range(n_resamples):
            lead[i, k] += own[k]


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_resamples(
    starts: Counts, second: Ints, number: Any, expected: Floats, strength: Floats, drift: Floats, bend: Any,
    degree: Floats,
) -> None:  # fmt: skip
    """Evaluate the Bradley-Terry model of each resample.

    ``strength`` (n_items, n_resamples) is the exponential of the scores, ``expected`` (n_pairs,) the chance of the
    lower item that the lead was taken from. Adds to ``drift`` by how much the wins to expect of each item are more than
    that; fills ``bend`` (n_pairs, n_resamples) with the curvature of each pair and adds it to ``degree`` of both items.
    """
    n_resamples = number.shape[1]
    own, bent = np.empty(n_resamples), np.empty(n_resamples)
    for i in range(starts.size - 1):
        own[:] = 0.0
        bent[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, chance = np.uint32(second[pair]), expected[pair]
            for k in range(n_resamples):
                win = strength[i, k] / (strength[i, k] + strength[j, k])
                more = number[pair, k] * (win - chance)
                curve = number[pair, k] * win * (1.0 - win)
                own[k] += more
                drift[j, k] -= more
                bend[pair, k] = curve
                bent[k] += curve
                degree[j, k] += curve
        for k in range(n_resamples):
            drift[i, k] += own[k]
            degree[i, k] += bent[k]


def solve_resamples(
    starts: Counts, second: Ints, bend: Any, diagonal: Floats, right: Floats, *, accuracy: float
) -> Floats:
    """Solve the system of each resample, its matrix the Laplacian of ``bend`` with ``diagonal``, as one would alone.

    See :func:`~crowdrank.kernels.laplacian.solve_together`.
    """

    def product(along: Floats) -> Floats:
        neighbours = np.zeros_like(along)
        _add_neighbours(starts, second, bend, along, neighbours)
        return diagonal * along - neighbours

    return solve_together(product, diagonal, right, accuracy=accuracy)


@njit(cache=True, nogil=True)
def _add_neighbours(starts: Counts, second: Ints, bend: Any, vector: Floats, neighbours: Floats) -> None:
    """Add to each item, (n_items, n_resamples), the vector at its neighbours times the weight of the pair."""
    n_resamples = vector.shape[1]
    own = np.empty(n_resamples)
    for i in range(starts.size - 1):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for k in range(n_resamples):
                weight = bend[pair, k]
                own[k] += weight * vector[j, k]
                neighbours[j, k] += weight * vector[i, k]
        for k in range(n_resamples):
            neighbours[i, k] += own[k]
