"""Diagonal of an inverse from products with many random vectors at once.

One pass over pairs and answers serves all vectors, which stand side by side as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from ..protocols import Counts, Floats, Ints
from .answers import Answers
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


def adapted_table(cross: Floats, room: Floats, columns: Floats) -> Floats:
    """Return products of ``cross diag(room) cross'`` with columns (n_items, n); cross is (n_items, n_annotators)."""
    between, image = np.zeros((len(room), columns.shape[1])), np.zeros(columns.shape)
    _adapt_table(read_only(cross), read_only(room), read_only(columns), between, image)
    return image


@njit(cache=True, nogil=True)
def _adapt_table(cross: Any, room: Any, columns: Any, between: Any, image: Any) -> None:
    """Fill in what lies between the two factors, and the image; both are 0."""
    for i in range(cross.shape[0]):
        for k in range(cross.shape[1]):
            for m in range(columns.shape[1]):
                between[k, m] += cross[i, k] * columns[i, m]
    for k in range(room.size):
        for m in range(columns.shape[1]):
            between[k, m] *= room[k]
    for i in range(cross.shape[0]):
        for k in range(cross.shape[1]):
            for m in range(columns.shape[1]):
                image[i, m] += cross[i, k] * between[k, m]


def answer_products(answers: Answers, tie_in: Floats, bend: Floats, diagonal: Floats, room: Floats) -> Products:
    """Return what multiplies a Laplacian, less what annotators who adapt take off it, with columns.

    As :func:`laplacian_products` less :func:`adapted_table`, where ``tie_in`` stands for the table, see
    :mod:`~crowdrank.models.pairs.kernels.annotated_pairs`.
    """
    pairs = (answers.starts, answers.second, answers.bounds, answers.code, read_only(tie_in))
    weights = read_only(bend)

    def products(columns: Floats) -> Floats:
        given, n = read_only(columns), columns.shape[1]

        def gather(begin: int, end: int) -> Floats:
            between = np.zeros((len(room), n))
            _gather(*pairs, given, begin, end, between)
            return between

        between = read_only(room[:, None] * total(over_bounds(gather, answers.parts)))

        def spread(begin: int, end: int) -> Floats:
            image = np.zeros(columns.shape)
            _spread(*pairs, weights, given, between, begin, end, np.empty((2, n)), image)
            return image

        image: Floats = diagonal[:, None] * columns - total(over_bounds(spread, answers.parts))
        return image

    return products


@njit(cache=True, nogil=True)
def _gather(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, columns: Any, begin: int, end: int, between: Any
) -> None:
    """Add to each annotator what the pairs of items begin to end send."""
    for i in range(begin, end):
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            for row in range(bounds[pair], bounds[pair + 1]):
                k, weight = np.uint32(code[row] >> 2), tie_in[row]
                for m in range(columns.shape[1]):
                    between[k, m] += weight * (columns[i, m] - columns[j, m])


@njit(cache=True, nogil=True)
def _spread(
    starts: Any, second: Any, bounds: Any, code: Any, tie_in: Any, bend: Any, columns: Any, between: Any, begin: int,
    end: int, spare: Any, image: Any,
) -> None:  # fmt: skip
    """Add to the items of the pairs of items begin to end what annotators send, and what their neighbours are."""
    own, sent = spare[0], spare[1]
    for i in range(begin, end):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, bent = np.uint32(second[pair]), bend[pair]
            sent[:] = 0.0
            for row in range(bounds[pair], bounds[pair + 1]):
                k, weight = np.uint32(code[row] >> 2), tie_in[row]
                for m in range(sent.size):
                    sent[m] += weight * between[k, m]
            for m in range(sent.size):
                own[m] += sent[m] + bent * columns[j, m]
                image[j, m] += bent * columns[i, m] - sent[m]
        for m in range(sent.size):
            image[i, m] += own[m]
