"""Diagonal of an inverse from products with many random vectors at once.

One pass over pairs serves all vectors, which stand side by side as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from ..protocols import Counts, Floats, Ints
from .laplacian import solve_together
from .threads import over_bounds, pair_bounds, read_only, total

_ACCURACY = 1e-2

Products: TypeAlias = Callable[[Floats], Floats]


def probed_diagonal(
    products: Products,
    diagonal: Floats,
    offsets: Counts | None,
    *,
    n_probes: int,
    along: Floats | None = None,
    plain: Products | None = None,
) -> Floats:
    """Estimate the diagonal (n_items,) of the inverse on centred scores, see [Bekas07]_.

    ``products`` multiplies the matrix, whose own diagonal is ``diagonal``, with the columns of (n_items, n) arrays;
    ``offsets`` bound the items of each query, or are ``None`` where scores are not centred. As in
    :func:`~crowdrank.kernels.laplacian.centred_inverse_diagonal`, the inverse is compared with its two-term series,
    that of the matrix ``plain`` if there is one, which then has the diagonal. ``along`` (n_items,), centred, is a
    direction in which the inverse is large; its part is not left to chance.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (n_probes, len(diagonal))).T.copy()
    centred, scale, share = signs, diagonal[:, None], np.zeros(len(diagonal))
    if offsets is not None:
        query, sizes = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), np.maximum(np.diff(offsets), 1)
        means = np.stack([np.bincount(query, column, len(sizes)) / sizes for column in signs.T], axis=1)
        centred, share = signs - means[query], 1.0 / sizes[query]

    def series(columns: Floats) -> Floats:
        return (2 * columns - (plain or products)(columns / scale)) / scale

    certain = np.zeros((len(diagonal), 1))
    if along is not None and along.any():
        certain = along[:, None] / np.sqrt(along @ products(along[:, None])[:, 0])
    ones = series(np.ones((len(diagonal), 1)))[:, 0]
    known = 1 / diagonal - ones * share + certain[:, 0] ** 2
    solution = solve_together(products, diagonal[:, None], centred, accuracy=_ACCURACY)
    chance = signs * (solution - series(centred) - certain * (certain[:, 0] @ centred))
    estimate: Floats = np.maximum(known + chance.mean(axis=1), (1 - share) / diagonal)
    return estimate


def laplacian_products(starts: Counts, second: Ints, bend: Floats, diagonal: Floats) -> Products:
    """Return what multiplies a matrix as in :mod:`~crowdrank.kernels.laplacian` with columns."""
    rows, partners, weights, bounds = read_only(starts), read_only(second), read_only(bend), pair_bounds(starts)

    def products(columns: Floats) -> Floats:
        given = read_only(columns)

        def work(begin: int, end: int) -> Floats:
            neighbours = np.zeros(columns.shape)
            _adjacent(rows, partners, weights, given, begin, end, np.empty(columns.shape[1]), neighbours)
            return neighbours

        image: Floats = diagonal[:, None] * columns - total(over_bounds(work, bounds))
        return image

    return products


@njit(cache=True, nogil=True)
def _adjacent(
    starts: Any, second: Any, bend: Any, columns: Any, begin: int, end: int, own: Any, neighbours: Any
) -> None:
    """Add to each item the columns at its neighbours times the weight of the pair."""
    for i in range(begin, end):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, weight = second[pair], bend[pair]
            for m in range(own.size):
                own[m] += weight * columns[j, m]
                neighbours[j, m] += weight * columns[i, m]
        for m in range(own.size):
            neighbours[i, m] += own[m]
