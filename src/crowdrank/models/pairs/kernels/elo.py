"""Elo scores: one update for each preference, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import read_only
from ....protocols import Floats, Ints, Outcomes

_CELLS = 128.0
_REACH = 36.0
_LAST = 2 * _REACH * _CELLS - 1e-9


def elo_scores(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, n_items: int, gain: float) -> Floats:
    """Return the scores (n_items,) in natural log odds after all rows (n,), beginning with 0.

    A row moves its left item up, and its right item down, by ``gain`` times its weight times what the outcome (1, 1/2
    or 0) exceeds the expectation ``1 / (1 + exp(right - left))`` by.
    """
    scores = np.zeros(n_items)
    one, other, result = read_only(left.view(np.uint32)), read_only(right.view(np.uint32)), read_only(outcome)
    table = logistic_table().ravel()
    if weight is None:
        _update(one, other, result, read_only(gain * table), 0.5 * gain, scores)
    else:
        _update_weighted(one, other, result, read_only(gain * weight), read_only(table), scores)
    return scores


def logistic_table() -> Floats:
    """Return coefficients, lowest first, of a cubic for the logistic function less one half on each cell, (n_cells, 4).

    Cells are 1/128 wide, from -36 to 36, and the variable runs from 0 to 1 in each. The cubic meets the function at the
    cell's Chebyshev nodes, and is within 1e-12 of it between them.
    """
    begin = np.arange(2 * _REACH * _CELLS) / _CELLS - _REACH
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)
    values = 0.5 * np.tanh(0.5 * (begin[:, None] + nodes / _CELLS))
    return values @ np.linalg.inv(np.vander(nodes, increasing=True)).T


@njit(cache=True, nogil=True, fastmath={"contract"})
def excess(gap: float, table: Floats) -> Any:
    """Return the logistic function of the gap less one half, times whatever the table was multiplied with."""
    # a call of exp for each row would take three times as long as all the rest
    place = gap * _CELLS + _REACH * _CELLS
    place = place if place > 0.0 else 0.0
    place = place if place < _LAST else _LAST
    cell = np.int64(place)
    x = place - cell
    at = np.uint64(4) * np.uint64(cell)
    return table[at] + x * (table[at + np.uint64(1)] + x * (table[at + np.uint64(2)] + x * table[at + np.uint64(3)]))


@njit(cache=True, nogil=True, fastmath={"contract"})
def _update(left: Any, right: Any, outcome: Outcomes, table: Floats, half: float, scores: Floats) -> None:
    """Move the scores, (n_items,), row after row, (n,); the table is multiplied with the gain."""
    for row in range(left.size):
        i, j = left[row], right[row]
        a, b = scores[i], scores[j]
        move = half * outcome[row] - excess(a - b, table)
        scores[i] = a + move
        scores[j] = b - move


@njit(cache=True, nogil=True, fastmath={"contract"})
def _update_weighted(left: Any, right: Any, outcome: Outcomes, gain: Floats, table: Floats, scores: Floats) -> None:
    """Move the scores, (n_items,), row after row, (n,), each with a gain of its own."""
    for row in range(left.size):
        i, j = left[row], right[row]
        a, b = scores[i], scores[j]
        move = gain[row] * (0.5 * outcome[row] - excess(a - b, table))
        scores[i] = a + move
        scores[j] = b - move
