"""The compiled pass over many pairs of judgments, of which two annotators gave either one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...protocols import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def add_events(
    first: Ints, second: Ints, pair: Ints, thing: Ints, annotator: Ints, code: Ints, cell: Ints, wrong: Bools,
    confusion: Floats, whole: Floats, parts: Floats, begin: int, end: int, sums: Floats,
) -> None:  # fmt: skip
    """Add the events from begin to end to the sums, (n_pairs, 8)."""
    n = confusion.shape[1]
    chance, of_one, of_other = np.empty(n), np.empty(n), np.empty(n)
    for event in range(begin, end):
        one, other = first[event], second[event]
        _classes(whole[thing[one]], parts, cell[one], cell[other], chance)
        a, b = confusion[annotator[one]], confusion[annotator[other]]
        alike, spread_one, spread_other = _predict(a, b, chance, of_one, of_other)
        overlap = 0.0
        for y in range(n):
            overlap += of_one[y] * of_other[y]
        level = 2.0 * overlap - alike
        y, z, to = code[one], code[other], sums[pair[event]]
        to[0] += 1.0
        to[1] += y == z
        to[2] += (y == z) - of_one[z] - of_other[y] + level
        for y in range(n):
            for z in range(n):
                joint = 0.0
                for k in range(n):
                    joint += chance[k] * a[k, y] * b[k, z]
                deviation = (y == z) - of_one[z] - of_other[y] + level
                to[3] += joint * deviation * deviation
                to[4] += joint * deviation * deviation * deviation
        to[5] += np.sqrt(max(spread_one * spread_other, 0.0))
        to[6] += wrong[one] or wrong[other]
        to[7] += wrong[one] and wrong[other] and code[one] == code[other]


@njit(cache=True, nogil=True)
def _classes(whole: Floats, parts: Floats, one: int, other: int, chance: Floats) -> None:
    """Fill in the probability of each class, (n_classes,), without the judgments of two cells."""
    top = -np.inf
    for k in range(chance.size):
        chance[k] = whole[k] - parts[one, k]
        if other != one:
            chance[k] -= parts[other, k]
        top = max(top, chance[k])
    norm = 0.0
    for k in range(chance.size):
        chance[k] = np.exp(chance[k] - top)
        norm += chance[k]
    for k in range(chance.size):
        chance[k] /= norm


@njit(cache=True, nogil=True)
def _predict(a: Floats, b: Floats, chance: Floats, of_one: Floats, of_other: Floats) -> Any:
    """Fill in the probabilities of both judgments; return that of agreeing and either's spread in a class."""
    alike, spread_one, spread_other = 0.0, 1.0, 1.0
    for y in range(chance.size):
        of_one[y], of_other[y] = 0.0, 0.0
        for k in range(chance.size):
            of_one[y] += chance[k] * a[k, y]
            of_other[y] += chance[k] * b[k, y]
            alike += chance[k] * a[k, y] * b[k, y]
            spread_one -= chance[k] * a[k, y] * a[k, y]
            spread_other -= chance[k] * b[k, y] * b[k, y]
    return alike, spread_one, spread_other
