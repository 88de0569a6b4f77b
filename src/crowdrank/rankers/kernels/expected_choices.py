"""Expected log-likelihood of rankings by ordered choices (Plackett-Luce) where it is known which sets come first.

Whatever the order, each item is chosen once, from those that do not stand above it. Over random rankings the expected
log-likelihood thus needs nothing but the chance of each set of items to be the first ones. Sets of a query of n items
are numbered 0 up to 2^n - 1, item k being the bit of 2^k; those of all queries follow each other in ``sets``. Items of
query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``, and ``factor`` (n_queries,) are weights of queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...kernels.segments import set_starts
from ...kernels.threads import read_only
from ...protocols import Counts, Floats

_SMALLEST = 1e-300


def choose_from_sets(scores: Floats, sets: Floats, offsets: Counts, factor: Floats) -> tuple[float, Floats]:
    """Return the expected negative log-likelihood at scores (n_items,), and its slopes (n_items,)."""
    slopes = np.zeros(len(scores))
    arrays = (read_only(array) for array in (scores, sets, set_starts(np.diff(offsets)), offsets, factor))
    choose: Any = _choose
    return float(choose(*arrays, slopes)), slopes


def bend_sets(
    block: Floats, scores: Floats, sets: Floats, offsets: Counts, factor: Floats, first: int, last: int
) -> Floats:
    """Return rows of the items of queries ``first`` up to ``last`` multiplied by the curvature in the scores."""
    bent = np.zeros_like(block)
    arrays = (read_only(array) for array in (block, scores, sets, set_starts(np.diff(offsets)), offsets, factor))
    bend: Any = _bend
    bend(*arrays, first, last, bent)
    return bent


@njit(cache=True, nogil=True)
def _strengths(scores: Any, begin: int, end: int, strength: Floats) -> float:
    """Fill in the exponentials of the scores below the highest, which is returned."""
    top = -np.inf
    for i in range(begin, end):
        top = max(top, scores[i])
    for i in range(begin, end):
        strength[i - begin] = max(np.exp(scores[i] - top), _SMALLEST)
    return top


@njit(cache=True, nogil=True)
def _remaining_strength(strength: Any, n: int, members: int) -> float:
    """Strength of the items that are not in a set."""
    rest = 0.0
    for b in range(n):
        rest += 0.0 if members >> b & 1 else strength[b]
    return rest


@njit(cache=True, nogil=True)
def _longest(offsets: Any) -> int:
    """Number of items of the largest query."""
    most = 0
    for query in range(offsets.size - 1):
        most = max(most, offsets[query + 1] - offsets[query])
    return most


@njit(cache=True, nogil=True)
def _choose(scores: Any, sets: Any, starts: Any, offsets: Any, factor: Any, slopes: Floats) -> float:
    """Fill in the slopes and return the value."""
    strength, value = np.empty(_longest(offsets)), 0.0
    for query in range(factor.size):
        begin, n = offsets[query], offsets[query + 1] - offsets[query]
        top = _strengths(scores, begin, begin + n, strength)
        for b in range(n):
            value += factor[query] * (top - scores[begin + b])
            slopes[begin + b] = -factor[query]
        for members in range((1 << n) - 1):
            chance = factor[query] * sets[starts[query] + members]
            if chance > 0.0:
                rest = _remaining_strength(strength, n, members)
                value += chance * np.log(rest)
                for b in range(n):
                    if not members >> b & 1:
                        slopes[begin + b] += chance * strength[b] / rest
    return value


@njit(cache=True, nogil=True)
def _bend(
    block: Any, scores: Any, sets: Any, starts: Any, offsets: Any, factor: Any, first: int, last: int, bent: Floats
) -> None:
    """Fill in the rows of queries first..last-1."""
    width, strength, base = block.shape[1], np.empty(_longest(offsets)), offsets[first]
    mean = np.empty(width)
    for query in range(first, last):
        begin, n = offsets[query], offsets[query + 1] - offsets[query]
        _strengths(scores, begin, begin + n, strength)
        for members in range((1 << n) - 1):
            chance = factor[query] * sets[starts[query] + members]
            if chance > 0.0:
                rest = _remaining_strength(strength, n, members)
                mean[:] = 0.0
                for b in range(n):
                    if not members >> b & 1:
                        for c in range(width):
                            mean[c] += strength[b] / rest * block[begin - base + b, c]
                for b in range(n):
                    if not members >> b & 1:
                        share = chance * strength[b] / rest
                        for c in range(width):
                            bent[begin - base + b, c] += share * (block[begin - base + b, c] - mean[c])
