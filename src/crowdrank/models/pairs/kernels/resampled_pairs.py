"""Bradley-Terry on several resamples at once: connected, counted by pair, fitted by Newton steps.

Arrays over resamples have them in the last dimension unless they say otherwise, so the innermost loop runs over
neighbouring cells. Pairs are in the compressed rows of :mod:`~crowdrank.kernels.pairs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.laplacian import solve_together
from ....kernels.resampling import group_leader, settle_groups
from ....protocols import Counts, Floats, Ints


@njit(cache=True, nogil=True)
def join_pairs(starts: Counts, second: Ints, number: Any, group: Ints, most: int, n_joins: Counts) -> None:
    """Fill the groups of each resample, (n_items, n_resamples) numbered upwards, and the joins, (n_resamples,).

    Pairs that a resample has no preference about, ``number`` (n_pairs, n_resamples), do not connect.
    """
    for resample in range(group.shape[1]):
        own = group[:, resample]
        for i in range(own.size):
            if n_joins[resample] >= most:
                break
            for pair in range(starts[i], starts[i + 1]):
                if number[pair, resample] > 0:
                    a, b = group_leader(own, i), group_leader(own, second[pair])
                    if a != b:
                        n_joins[resample] += 1
                        own[max(a, b)] = min(a, b)
        settle_groups(own)


@njit(cache=True, nogil=True)
def count_resamples(
    copies: Any, unit: Ints, weight: Any, surprise: Any, row_starts: Counts, starts: Counts, second: Ints,
    number: Any, lead: Any,
) -> None:  # fmt: skip
    """Add the rows of each pair to its number of preferences, (n_pairs, n_resamples), and to its items' lead.

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
                # a loop of its own, so the next one can use vectors
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
