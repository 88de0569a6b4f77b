"""Stochastic gradient steps on the likelihood of rankings by ordered choices (Plackett-Luce), query by query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import read_only
from ....protocols import Counts, Floats

_SMALLEST = 1e-300


def descend(
    matrix: Floats, order: Counts, offsets: Counts, visits: Counts, weights: Floats, step: float, n_epochs: int
) -> Floats:
    """Return the weights after so many passes over the queries, with one step of fixed length for each query.

    Parameters
    ----------
    matrix
        Features of each place, (n_places, n_features).
    order, offsets
        Places of each query, best first, (n_places,), those of query ``q`` from ``offsets[q]`` up to
        ``offsets[q + 1]``.
    visits
        Queries in the order in which a pass visits them.
    weights, step, n_epochs
        Where to begin, (n_features,), the length of the steps, and the number of passes.
    """
    found = weights.copy()
    arrays = read_only(matrix), read_only(order), read_only(offsets), read_only(visits)
    run: Any = _descend
    run(*arrays, found, step, n_epochs)
    return found


@njit(cache=True, nogil=True)
def _descend(matrix: Any, order: Any, offsets: Any, visits: Any, weights: Floats, step: float, n_epochs: int) -> None:
    """Change the weights in place."""
    longest = 0
    for query in visits:
        longest = max(longest, offsets[query + 1] - offsets[query])
    scores, slopes = np.empty(longest), np.empty(longest)
    for _ in range(n_epochs):
        for query in visits:
            rows = order[offsets[query] : offsets[query + 1]]
            for p in range(rows.size):
                scores[p] = 0.0
                for c in range(weights.size):
                    scores[p] += matrix[rows[p], c] * weights[c]
            _slopes(scores, rows.size, slopes)
            for p in range(rows.size):
                for c in range(weights.size):
                    weights[c] += step * slopes[p] * matrix[rows[p], c]


@njit(cache=True, nogil=True)
def _slopes(scores: Floats, n: int, slopes: Floats) -> None:
    """Fill in the derivatives of the log-likelihood of a ranking, best first, by its scores, which are used up."""
    top = -np.inf
    for p in range(n):
        top = max(top, scores[p])
    rest = 0.0
    for p in range(n - 1, -1, -1):
        scores[p] = max(np.exp(scores[p] - top), _SMALLEST)
        rest += scores[p]
        slopes[p] = rest
    rate = 0.0
    for p in range(n):
        rate += 1.0 / slopes[p]
        slopes[p] = 1.0 - scores[p] * rate
