"""Linear systems of the item step: a diagonal less weights between compared items, solved in blocks or by iteration.

The matrix is ``diag(diagonal) - E``, where ``E`` has ``pair_weight`` at each pair of items that were compared, in the
compressed rows of :mod:`~crowdrank.kernels.pairs`. Items of different queries are never compared. An inverse solves
systems, and has its diagonal and its entries at compared pairs, exactly or approximately.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ....kernels.laplacian import laplacian_product, laplacian_products, solve_together
from ....kernels.threads import one_blas_thread
from ....protocols import Counts, Floats, Ints

MAX_BLOCK_ITEMS = 700
"""Queries with more items than this are not inverted."""

_MAX_BLOCK_CELLS = 8_000_000
_MAX_INVERSION_PRODUCTS = 4e9
_MAX_STACKED_ITEMS = 64


class Graph(NamedTuple):
    """Compared pairs in compressed rows, and the bounds of the queries' items."""

    starts: Counts
    first: Ints
    second: Ints
    offsets: Counts

    @property
    def invertible(self) -> bool:
        """Whether all queries together are small enough to be inverted in every round."""
        sizes = np.diff(self.offsets).astype(np.float64)
        small = sizes.max(initial=0.0) <= MAX_BLOCK_ITEMS
        return bool(small and (sizes**2).sum() <= _MAX_BLOCK_CELLS and (sizes**3).sum() <= _MAX_INVERSION_PRODUCTS)


class Inverse(Protocol):
    """The inverse of a matrix."""

    variance: Floats
    covariance: Floats

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        ...


def invert(graph: Graph, pair_weight: Floats, diagonal: Floats, *, accuracy: float) -> Inverse:
    """Return the inverse; ``variance`` (n_items,) is its diagonal, ``covariance`` (n_pairs,) that of compared pairs.

    It is exact where no query is large. Otherwise both are the first terms of a series, and systems are solved by
    conjugate gradients to this ``accuracy``.
    """
    if not len(graph.second):
        return Diagonal(diagonal)
    if graph.invertible:
        return DenseBlocks(graph, pair_weight, diagonal)
    return ConjugateGradients(graph, pair_weight, diagonal, accuracy)


class Diagonal:
    """The inverse where no items are compared."""

    def __init__(self, diagonal: Floats) -> None:
        self.variance, self.covariance = 1.0 / diagonal, np.empty(0)

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        return columns * self.variance[:, None]


class DenseBlocks:
    """The inverse of each query's matrix, those of equally large queries together."""

    def __init__(self, graph: Graph, pair_weight: Floats, diagonal: Floats) -> None:
        flat, base, self._groups = _query_blocks(graph, pair_weight, diagonal)
        for _, block in self._groups:
            invert_all(block)
        size = np.repeat(np.diff(graph.offsets), np.diff(graph.offsets))
        within = np.arange(len(diagonal)) - np.repeat(graph.offsets[:-1], np.diff(graph.offsets))
        self.variance = flat[base + within * (size + 1)]
        place = base[graph.first] + within[graph.first] * size[graph.first] + within[graph.second]
        self.covariance = flat[place]

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        image = np.empty(columns.shape)
        for items, block in self._groups:
            image[items] = block @ columns[items]
        return image


def _query_blocks(
    graph: Graph, pair_weight: Floats, diagonal: Floats
) -> tuple[Floats, Counts, list[tuple[Counts, Floats]]]:
    """Matrices of all queries in one array, the start of each item's, and the items and matrices by size of query."""
    sizes = np.diff(graph.offsets)
    order = np.argsort(sizes, kind="stable")
    starts = np.empty(len(sizes), np.int64)
    starts[order] = np.concatenate([[0], np.cumsum(sizes[order] ** 2)[:-1]])
    flat, base = np.zeros(int((sizes**2).sum())), np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    within = np.arange(len(diagonal)) - np.repeat(graph.offsets[:-1], sizes)
    one, other = graph.first, graph.second
    flat[base[one] + within[one] * size[one] + within[other]] = -pair_weight
    flat[base[one] + within[other] * size[one] + within[one]] = -pair_weight
    flat[base + within * (size + 1)] = diagonal
    return flat, base, list(_blocks_by_size(flat, graph.offsets, order, starts))


def _blocks_by_size(flat: Floats, offsets: Counts, order: Counts, starts: Counts) -> Iterator[tuple[Counts, Floats]]:
    """Items (queries, size) and matrices (queries, size, size) of equally large queries."""
    sizes = np.diff(offsets)
    for size in np.unique(sizes[sizes > 0]).tolist():
        queries = order[sizes[order] == size]
        block = flat[starts[queries[0]] :][: len(queries) * size * size].reshape(len(queries), size, size)
        yield offsets[queries][:, None] + np.arange(size), block


def query_matrices(graph: Graph, pair_weight: Floats, diagonal: Floats, queries: Counts) -> Floats:
    """Return the matrices of equally large queries, (n of ``queries``, size, size)."""
    size = int(graph.offsets[queries[0] + 1] - graph.offsets[queries[0]])
    items = graph.offsets[queries][:, None] + np.arange(size)
    begins, ends = graph.starts[items[:, 0]], graph.starts[items[:, -1] + 1]
    number = np.repeat(np.arange(len(queries)), ends - begins)
    pair = np.arange(len(number)) + np.repeat(begins - np.cumsum(ends - begins) + (ends - begins), ends - begins)
    one, other = graph.first[pair] - items[number, 0], graph.second[pair] - items[number, 0]
    matrices = np.zeros((len(queries), size, size))
    matrices[number, one, other] = -pair_weight[pair]
    matrices[number, other, one] = -pair_weight[pair]
    matrices[:, np.arange(size), np.arange(size)] = diagonal[items]
    return matrices


def invert_all(matrices: Floats) -> None:
    """Invert symmetric positive definite matrices, (n, size, size), in place."""
    if matrices.shape[1] <= _MAX_STACKED_ITEMS:
        try:
            matrices[:] = np.linalg.inv(matrices)
        except np.linalg.LinAlgError:  # weights of very different size leave some directions to rounding
            matrices[:] = np.linalg.pinv(matrices, hermitian=True)
        return
    from scipy.linalg.lapack import dpotrf, dpotri

    with one_blas_thread():
        for matrix in matrices:
            factor, failed = dpotrf(matrix.T, lower=1)
            if failed:
                matrix[:] = np.linalg.pinv(matrix, hermitian=True)
                continue
            inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
            matrix[:] = np.tril(inverse) + np.tril(inverse, -1).T


class ConjugateGradients:
    """The inverse of a matrix with large queries: systems by conjugate gradients, entries by the first terms."""

    def __init__(self, graph: Graph, pair_weight: Floats, diagonal: Floats, accuracy: float) -> None:
        self._graph, self._bend, self._diagonal, self._accuracy = graph, pair_weight, diagonal, accuracy
        one, other, n = graph.first, graph.second, len(diagonal)
        square = pair_weight**2
        paths = np.bincount(one, square / diagonal[other], n) + np.bincount(other, square / diagonal[one], n)
        self.variance = 1.0 / diagonal + paths / diagonal**2
        self.covariance = pair_weight / (diagonal[one] * diagonal[other])

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        graph, diagonal = self._graph, self._diagonal
        if columns.shape[1] == 1:
            from ....kernels.laplacian import conjugate_gradient

            product = laplacian_product(graph.starts, graph.second, self._bend, diagonal)
            return conjugate_gradient(product, diagonal, columns[:, 0], accuracy=self._accuracy)[:, None]
        products = laplacian_products(graph.starts, graph.second, self._bend, diagonal)
        return solve_together(products, diagonal[:, None], columns, accuracy=self._accuracy)
