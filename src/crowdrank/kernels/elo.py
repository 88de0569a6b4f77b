"""Elo scores: one update for each preference, in order."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numba import njit

from ..protocols import Floats, Ints, Outcomes
from .threads import read_only

_STEP = 1 / 32
_REACH = 36
_DEGREE = 5


def elo_scores(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, n_items: int, gain: float) -> Floats:
    """Return the scores (n_items,) in natural log odds after all rows (n,), beginning with 0.

    A row moves its left item up, and its right item down, by ``gain`` times its weight times what the outcome (1, 1/2
    or 0) exceeds the expectation ``1 / (1 + exp(right - left))`` by.
    """
    scores = np.zeros(n_items)
    one, other, result = read_only(left.view(np.uint32)), read_only(right.view(np.uint32)), read_only(outcome)
    table = _logistic_table().ravel()
    if weight is None:
        _update(one, other, result, read_only(gain * table), 0.5 * gain, scores)
    else:
        _update_weighted(one, other, result, read_only(gain * weight), read_only(table), scores)
    return scores


def _logistic_table() -> Floats:
    """Coefficients, lowest first, of the logistic function less one half on each cell of width 1/32 from -36 to 36.

    The variable runs from 0 to 1 in a cell; Taylor's polynomial about its middle is within 1e-14 of the truth.
    """
    middles = (np.arange(2 * _REACH / _STEP) + 0.5) * _STEP - _REACH
    # the derivative of a polynomial in the logistic function p is another, since p' = p - p^2
    polynomial, about_middle = np.polynomial.Polynomial([0.0, 1.0]), []
    for order in range(_DEGREE + 1):
        about_middle.append(polynomial(1 / (1 + np.exp(-middles))))
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([0.0, 1.0, -1.0]) * (_STEP / (order + 1))
    about_middle[0] = 0.5 * np.tanh(0.5 * middles)
    table = np.zeros((len(middles), _DEGREE + 1))
    for power in range(_DEGREE + 1):
        for lower in range(power + 1):
            table[:, lower] += about_middle[power] * comb(power, lower) * (-0.5) ** (power - lower)
    return table


@njit(cache=True, nogil=True, fastmath={"contract"})
def _excess(gap: float, table: Floats) -> Any:
    """Logistic function of the gap less one half, times whatever the table was multiplied with."""
    # a call of exp for each row would take three times as long as all the rest
    place = gap / _STEP + _REACH / _STEP
    place = place if place > 0.0 else 0.0
    place = place if place < 2 * _REACH / _STEP - 1e-9 else 2 * _REACH / _STEP - 1e-9
    cell = np.uint64(place)
    x = place - np.float64(cell)
    at = cell * np.uint64(6)
    low = table[at] + table[at + np.uint64(1)] * x
    middle = table[at + np.uint64(2)] + table[at + np.uint64(3)] * x
    high = table[at + np.uint64(4)] + table[at + np.uint64(5)] * x
    return low + x * x * (middle + x * x * high)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _update(left: Any, right: Any, outcome: Outcomes, table: Floats, half: float, scores: Floats) -> None:
    """Move the scores, (n_items,), row after row, (n,); the table is multiplied with the gain."""
    for row in range(left.size):
        i, j = left[row], right[row]
        a, b = scores[i], scores[j]
        move = half * outcome[row] - _excess(a - b, table)
        scores[i] = a + move
        scores[j] = b - move


@njit(cache=True, nogil=True, fastmath={"contract"})
def _update_weighted(left: Any, right: Any, outcome: Outcomes, gain: Floats, table: Floats, scores: Floats) -> None:
    """Move the scores, (n_items,), row after row, (n,), each with a gain of its own."""
    for row in range(left.size):
        i, j = left[row], right[row]
        a, b = scores[i], scores[j]
        move = gain[row] * (0.5 * outcome[row] - _excess(a - b, table))
        scores[i] = a + move
        scores[j] = b - move
