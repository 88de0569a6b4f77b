"""The sampler and the gradient descent of LTRMA as printed in [Wu11]_, for comparison.

The sampler, which [Klementiev08]_ prints too, swaps two random places, or not, by Metropolis' rule. Weights of rankings
are those of :mod:`~crowdrank.models.rankings.kernels.permutations`, whose sweeps mix far sooner. The descent takes
gradient steps on the Plackett-Luce likelihood of one ranking per query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import over_bounds, read_only
from ....protocols import Counts, Floats, Ints
from .permutations import Chains, SweepMeans, fill_lead, fill_means, largest_query, luce_gain, strengths, uniform
from .ranked_lists import RankedLists, query_bounds

_SMALLEST_STRENGTH = 1e-300
_CELLS_PER_THREAD = 1_000_000


def swap_places(
    lists: RankedLists,
    pull: Floats,
    chains: Chains,
    chosen: Counts,
    n_moves: int,
    *,
    scores: Floats | None = None,
    best: Ints | None = None,
) -> SweepMeans:
    """Begin with a random ranking of each chosen query, and return mean Kendall distances and places over the moves.

    Parameters are those of :func:`crowdrank.models.rankings.kernels.permutations.sweep`.
    """
    means = SweepMeans(np.zeros(len(pull)), np.zeros(len(chains.order)))
    top = np.empty(0, np.int32) if best is None else best
    weights = read_only(np.empty(0) if scores is None else strengths(scores, lists.offsets))
    table, pulls, which = lists.views(), read_only(pull), read_only(chosen)
    swap_queries: Any = _swap_queries

    def work(begin: int, end: int) -> None:
        swap_queries(*table, pulls, weights, which[begin:end], n_moves, *chains, *means, top)

    cost = lists.work()[chosen] + n_moves * lists.sizes[chosen]
    over_bounds(work, query_bounds(cost, _CELLS_PER_THREAD))
    return means


@njit(cache=True, nogil=True)
def _swap_queries(
    offsets: Any, queries: Any, starts: Any, item: Any, rank: Any, pull: Any, strength: Any, chosen: Any, n_moves: int,
    orders: Any, state: Any, distance: Floats, place: Floats, best: Any,
) -> None:  # fmt: skip
    """Move the chosen queries; fill in distance, place and best."""
    size = largest_query(offsets, chosen)
    lead, above, since = np.empty((size, size)), np.empty((size, size), np.int32), np.empty((size, size), np.int32)
    for query in chosen:
        head, n = offsets[query], offsets[query + 1] - offsets[query]
        first, last = queries[query], queries[query + 1]
        order, value, most = orders[head : head + n], 0.0, -np.inf
        fill_lead(starts, item, rank, pull, first, last, n, lead)
        weight = strength[head : head + n] if strength.size else strength
        above[:n, :n], since[:n, :n] = 0, 0
        _shuffle(order, state, query)
        for time in range(n_moves if n > 1 else 0):
            value += _try_swap(order, lead, weight, state, query, time, above, since)
            if best.size and value > most:
                most = value
                best[head : head + n] = order
        for p in range(n):
            for below in range(p + 1, n):
                above[order[p], order[below]] += n_moves - since[order[p], order[below]]
        fill_means(starts, item, rank, first, last, above, n_moves, distance, place[head : head + n])


@njit(cache=True, nogil=True)
def _shuffle(order: Any, state: Any, query: int) -> None:
    """Put the items of a query in a random order."""
    for p in range(order.size - 1, 0, -1):
        other = int(uniform(state, query) * (p + 1))
        order[p], order[other] = order[other], order[p]


@njit(cache=True, nogil=True)
def _try_swap(order: Any, lead: Any, weight: Any, state: Any, query: int, time: int, above: Any, since: Any) -> Any:
    """Propose to swap two random places, do so or not, and return by how much the log weight has grown."""
    n = order.size
    upper, lower = int(uniform(state, query) * n), int(uniform(state, query) * (n - 1))
    lower += lower >= upper
    upper, lower = min(upper, lower), max(upper, lower)
    a, b = order[upper], order[lower]
    gain = lead[b, a] + (luce_gain(order, weight, upper, lower) if weight.size else 0.0)
    for p in range(upper + 1, lower):
        gain += lead[order[p], a] + lead[b, order[p]]
    if gain < 0.0 and uniform(state, query) >= np.exp(gain):
        return 0.0
    for p in range(upper + 1, lower + 1):
        above[a, order[p]] += time - since[a, order[p]]
        since[order[p], a] = time
    for p in range(upper + 1, lower):
        above[order[p], b] += time - since[order[p], b]
        since[b, order[p]] = time
    order[upper], order[lower] = b, a
    return gain


def descend(
    matrix: Floats, order: Counts, offsets: Counts, visits: Counts, weights: Floats, step: float, n_epochs: int
) -> Floats:
    """Return the weights after this many passes over the queries, with one step of fixed length for each query.

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
    descended = weights.copy()
    arrays = read_only(matrix), read_only(order), read_only(offsets), read_only(visits)
    run: Any = _descend
    run(*arrays, descended, step, n_epochs)
    return descended


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
        scores[p] = max(np.exp(scores[p] - top), _SMALLEST_STRENGTH)
        rest += scores[p]
        slopes[p] = rest
    rate = 0.0
    for p in range(n):
        rate += 1.0 / slopes[p]
        slopes[p] = 1.0 - scores[p] * rate
