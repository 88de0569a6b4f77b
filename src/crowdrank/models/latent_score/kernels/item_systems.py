"""Linear systems of the item step: a diagonal less weights between compared items, solved in blocks or by iteration.

The matrix is ``diag(diagonal) - E``, where ``E`` has ``pair_weight`` at each pair of items that were compared, in the
compressed rows of :mod:`~crowdrank.kernels.pairs`. Items of different queries are never compared. An inverse solves
systems, and has its diagonal and its entries at compared pairs, exactly or approximately.

The Schur complement of annotators is what marginalising them takes off the curvature of scores. Each judgment has a
mixed second derivative in its cell's score and each of the parameters of its annotator, discrimination, bias and
coefficients of covariates. These cross terms (n_judgments, p) are turned and scaled so that the parameters are
independent and have variance 1. That of an annotator and an item is the sum over the annotator's judgments of the item,
negative for the second item of a pair. With these sums in the columns of ``U``, marginalising takes off ``U U'``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit

from ....kernels.laplacian import laplacian_product, laplacian_products, solve_together
from ....kernels.threads import bind, one_blas_thread, over_bounds, read_only, sum_over_bounds, views
from ....protocols import Counts, Floats, Ints
from .ordinal import Cells, ResponseModel, lapse_probability, level_probabilities

# threshold (sample): items of a query whose matrix is held, latent_score
MAX_BLOCK_ITEMS = 700
"""Queries with more items than this are not inverted."""

# threshold (sample): cells of all such matrices
_MAX_BLOCK_CELLS = 8_000_000
# threshold (sample): products to invert them
_MAX_INVERSION_PRODUCTS = 4e9
# threshold (equal): items of a query whose matrix is inverted at once
_MAX_STACKED_ITEMS = 64
_MIN_PROBABILITY = 1e-12
_MAX_LOOPED_ITEMS = 64


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
            return conjugate_gradient(product, diagonal, columns[:, 0], accuracy=self._accuracy)[0][:, None]
        products = laplacian_products(graph.starts, graph.second, self._bend, diagonal)
        return solve_together(products, diagonal[:, None], columns, accuracy=self._accuracy)


def cross_terms(
    cells: Cells, model: ResponseModel, gap: Floats, variance: Floats, adapt: Floats, root: Floats | None = None
) -> Floats:
    """Return the cross term of each judgment in its cell's score and its annotator's parameters, (n_judgments, p).

    ``adapt`` (n_annotators, 3) has how far the bias moves with the discrimination, the standard deviation of the
    discrimination, and that of the bias given the discrimination; the rest is as in :func:`~.ordinal.item_pass`. With
    covariates ``root`` (n_annotators, p, p) is a root of the covariance of the parameters, and ``adapt`` is not used.
    """
    root = np.empty((0, 2, 2)) if root is None else root
    terms = np.empty((len(cells.annotator_side), root.shape[1]))
    given = views(gap, variance, adapt, root)
    over_bounds(bind(_fill_cross_terms, cells, model.views(), *given, terms), cells.parts)
    return terms


@njit(cache=True, nogil=True)
def _fill_cross_terms(cells, model, gap, variance, adapt, root, terms, begin, end):
    """Fill in the cross terms of the judgments of cells begin to end."""
    _, _, bounds, annotator_side, level, weight, _, values = cells
    own, favourites, centre, cuts, scale, _, shifts, clarity = model
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        clear = clarity[cell] if clarity.size else 1.0
        for row in range(bounds[cell], bounds[cell + 1]):
            a, side, y = annotator_side[row] >> 2, 1.0 - (annotator_side[row] & 3), level[row]
            eta = own[a, 0] * d + side * own[a, 5]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + side * own[a, 3]) + abs(side) * own[a, 4]
            if shifts.size:
                eta += shifts[row, 0]
                spread += d * shifts[row, 1] + shifts[row, 2]
            flat, upper, lower = level_probabilities(eta, spread, own[a, 6], centre, cuts, y, clear)
            rho, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            if lapse > 0.0:
                seen = (1.0 - lapse) * max(upper - lower, _MIN_PROBABILITY)
                rho *= seen / (seen + lapse * lapse_probability(favourites, a, y, cuts.size - y, side))
            h = rho * clear * flat * (upper * (1.0 - upper) + lower * (1.0 - lower))
            of_bias = side * h * own[a, 0]
            of_alpha = h * own[a, 0] * scale * d - rho * clear * scale * (upper + lower - 1.0)
            if root.size:
                for m in range(terms.shape[1]):
                    turned = of_alpha * root[a, 0, m] + of_bias * root[a, 1, m]
                    for c in range(values.shape[1]):
                        turned += h * own[a, 0] * values[row, c] * root[a, 2 + c, m]
                    terms[row, m] = turned
                continue
            terms[row, 0] = (of_alpha - adapt[a, 0] * of_bias) * adapt[a, 1]
            terms[row, 1] = of_bias * adapt[a, 2]


def schur_blocks(cells: Cells, terms: Floats, n_annotators: int, firsts: Counts, size: int) -> Floats:
    """Return what is taken off the matrices of queries of ``size`` items from ``firsts`` on, (n, size, size)."""
    blocks = np.zeros((len(firsts), size, size))
    begins, ends = np.searchsorted(cells.first, firsts), np.searchsorted(cells.first, firsts + size)
    most = int(np.max(cells.bounds[ends] - cells.bounds[begins], initial=0))
    place, present = np.full(n_annotators, -1, np.int64), np.empty(min(most, n_annotators), np.int64)
    p, firsts = terms.shape[1], read_only(firsts)
    rows, each = np.zeros((p * len(present), size)), read_only(terms)
    if size <= _MAX_LOOPED_ITEMS:
        _fill_blocks(cells, each, begins, ends, firsts, place, present, rows, blocks)
        return blocks
    for number, (begin, end, first) in enumerate(zip(begins, ends, firsts, strict=True)):
        n = _gather_rows(cells, each, begin, end, first, place, present, rows)
        blocks[number] = rows[: p * n].T @ rows[: p * n]
        _clear_rows(place, present, rows, p, n)
    return blocks


@njit(cache=True, nogil=True)
def _gather_rows(cells, terms, begin, end, item, place, present, rows):
    """Add up the cross terms of each annotator and item from ``item`` on, p rows each; return how many annotators."""
    n, p = 0, terms.shape[1]
    for cell in range(begin, end):
        i, j = cells.first[cell] - item, cells.second[cell] - item if cells.second.size else -1
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            a = cells.annotator_side[row] >> 2
            if place[a] < 0:
                place[a] = n
                present[n] = a
                n += 1
            at = p * place[a]
            for m in range(p):
                rows[at + m, i] += terms[row, m]
                if j >= 0:
                    rows[at + m, j] -= terms[row, m]
    return n


@njit(cache=True, nogil=True)
def _clear_rows(place, present, rows, p, n):
    """Clear what the next query starts from."""
    for number in range(n):
        place[present[number]] = -1
        rows[p * number : p * (number + 1)] = 0.0


@njit(cache=True, nogil=True)
def _fill_blocks(cells, terms, begins, ends, firsts, place, present, rows, blocks):
    """Fill in the blocks of small queries, where annotators judge few of the items each."""
    size, p = blocks.shape[1], terms.shape[1]
    for query in range(firsts.size):
        n = _gather_rows(cells, terms, begins[query], ends[query], firsts[query], place, present, rows)
        for number in range(p * n):
            for i in range(size):
                value = rows[number, i]
                if value != 0.0:
                    for j in range(size):
                        blocks[query, i, j] += value * rows[number, j]
        _clear_rows(place, present, rows, p, n)


def schur_products(parts: list[tuple[Cells, Floats]], n_annotators: int, columns: Floats) -> Floats:
    """Return what is taken off, times columns (n_items, n), from the judgments and cross terms of each kind."""
    image, n = np.zeros(columns.shape), columns.shape[1]
    for cells, terms in parts:
        each, shape = read_only(terms), (terms.shape[1] * n_annotators, n)
        (between,) = sum_over_bounds(bind(_gather_columns, cells, each, read_only(columns)), cells.parts, shape)
        (part,) = sum_over_bounds(bind(_spread_columns, cells, each, read_only(between)), cells.parts, columns.shape)
        image += part
    return image


@njit(cache=True, nogil=True)
def _gather_columns(cells, terms, columns, begin, end, between):
    """Add to each annotator's parameters what cells begin to end send."""
    p = terms.shape[1]
    for cell in range(begin, end):
        i, j = cells.first[cell], cells.second[cell] if cells.second.size else -1
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            at = p * (cells.annotator_side[row] >> 2)
            for m in range(columns.shape[1]):
                value = columns[i, m] - columns[j, m] if j >= 0 else columns[i, m]
                for c in range(p):
                    between[at + c, m] += terms[row, c] * value


@njit(cache=True, nogil=True)
def _spread_columns(cells, terms, between, begin, end, image):
    """Add to the items of cells begin to end what annotators send."""
    p, sent = terms.shape[1], np.empty(image.shape[1])
    for cell in range(begin, end):
        sent[:] = 0.0
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            at = p * (cells.annotator_side[row] >> 2)
            for m in range(sent.size):
                send = terms[row, 0] * between[at, m]
                for c in range(1, p):
                    send += terms[row, c] * between[at + c, m]
                sent[m] += send
        i, j = cells.first[cell], cells.second[cell] if cells.second.size else -1
        for m in range(sent.size):
            image[i, m] += sent[m]
            if j >= 0:
                image[j, m] -= sent[m]


def shared_cross(cells: Cells, terms: Floats, pulls: Floats, n_items: int) -> Floats:
    """Return the curvature in each item's score and each of k shared coefficients, (n_items, k).

    ``pulls`` (n_annotators, p, k) says how the shared coefficients move the parameters of annotators, on the scale of
    the cross terms.
    """
    image = np.zeros((n_items, pulls.shape[2]))
    _add_shared_cross(cells, read_only(terms), read_only(pulls), image)
    return image


@njit(cache=True, nogil=True)
def _add_shared_cross(cells, terms, pulls, image):
    """Add the terms of all judgments to their items."""
    for cell in range(cells.first.size):
        i, j = cells.first[cell], cells.second[cell]
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            a = cells.annotator_side[row] >> 2
            for c in range(image.shape[1]):
                value = 0.0
                for m in range(terms.shape[1]):
                    value += terms[row, m] * pulls[a, m, c]
                image[i, c] += value
                image[j, c] -= value
