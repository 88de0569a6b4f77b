"""Standard errors and covariances of scores: from a curvature that is a graph Laplacian, and cluster-robust ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .data.consensus import COVARIANCE_ITEMS
from .protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.laplacian import Product

# threshold (equal): cells of matrices inverted at once, preferences
_MAX_BLOCK_CELLS = 4_000_000


def score_standard_errors(
    starts: Counts,
    second: Ints,
    bend: Floats,
    degree: Floats,
    ridge: float,
    offsets: Counts,
    shift: Floats | None = None,
    product: Product | None = None,
    probe: Callable[[], Floats] | None = None,
    less: Callable[[Counts, int, bool], Floats] | None = None,
    exact: int = COVARIANCE_ITEMS,
) -> tuple[Floats, tuple[Floats | None, ...]]:
    """Return the standard error of each item's centred score, and the covariance of each query that is not too large.

    Parameters
    ----------
    starts, second, bend, degree
        Pairs in compressed rows with the curvature of each, and its sum at each item.
    ridge
        Curvature of the prior.
    offsets
        Bounds of the items of each query.
    shift
        How far each score moves when one of k parameters beside the scores moves by a standard error, (n_items, k).
    product
        What multiplies the whole matrix with a vector, where the pairs are those of queries with a covariance only.
    probe
        Gives the variance of each score where there is a query too large to be inverted, in another way than usual.
    less
        What is to be taken off the matrices that are inverted; called with the queries' first items, their size, and
        whether to take less than that, because it left no curvature in some direction.
    exact
        Largest number of items whose matrix is inverted.
    """
    from .kernels.laplacian import centred_inverse_diagonal, laplacian_product

    matrix = (starts, second, bend, degree, ridge, offsets)
    shift = np.zeros((len(degree), 0)) if shift is None else shift
    sizes = np.diff(offsets)
    variance = np.zeros(len(degree))
    if sizes.max(initial=0) > exact:
        product = product or laplacian_product(starts, second, bend, degree + ridge)
        variance = probe() if probe else centred_inverse_diagonal(product, degree + ridge, offsets)
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for queries in _equal_sizes(sizes, exact):
        inverses = _invert_blocks(matrix, queries, less)
        places = offsets[queries][:, None] + np.arange(inverses.shape[1])
        variance[places] = np.diagonal(inverses, axis1=1, axis2=2)
        if inverses.shape[1] > COVARIANCE_ITEMS:
            continue
        if shift.shape[1]:
            inverses += shift[places] @ shift[places].swapaxes(1, 2)
        for query, inverse in zip(queries, inverses, strict=True):
            blocks[query] = inverse
    return np.sqrt(np.maximum(variance, 0.0) + (shift**2).sum(axis=1)), tuple(blocks)


def _invert_blocks(
    matrix: tuple[Counts, Ints, Floats, Floats, float, Counts],
    queries: Counts,
    less: Callable[[Counts, int, bool], Floats] | None,
) -> Floats:
    """Inverses of the matrices of equally large queries."""
    from .kernels.laplacian import centred_inverses

    if less is None:
        return centred_inverses(*matrix, queries)
    offsets = matrix[-1]
    size = int(offsets[queries[0] + 1] - offsets[queries[0]])
    inverses = centred_inverses(*matrix, queries, less(offsets[queries], size, False))
    flat = np.isnan(inverses[:, 0, 0])
    if flat.any():
        part = queries[flat]
        inverses[flat] = centred_inverses(*matrix, part, less(offsets[part], size, True))
    return inverses


def _equal_sizes(sizes: Counts, most: int) -> Iterator[Counts]:
    """Groups of queries of equal size, up to ``most`` items, each small enough to be inverted together."""
    for size in np.unique(sizes[(sizes > 0) & (sizes <= most)]):
        queries = np.flatnonzero(sizes == size)
        yield from np.array_split(queries, -(-len(queries) * int(size) ** 2 // _MAX_BLOCK_CELLS))


# Cluster-robust covariances


class SharedGradients(NamedTuple):
    """Gradients of the judgments in k numbers that scores are estimated with.

    ``value`` is (n_judgments, k), ``direction`` (n_items, k) is how the scores, given the others, lean on a gradient in
    them, and ``inverse`` (k, k) is their covariance at known scores.
    """

    value: Floats
    direction: Floats
    inverse: Floats

    @classmethod
    def of(cls, value: Floats, cross: Floats, curvature: Floats) -> SharedGradients:
        """Return them from the curvature in scores and shared numbers, (n_items, k), and that in the latter."""
        inverse = np.asarray(np.linalg.inv(curvature), np.float64)
        return cls(value, -cross @ inverse, inverse)


class ScoreGradients(NamedTuple):
    """Gradients of the judgments' log-likelihoods in the scores, at the estimate: a term per judgment and item.

    ``judgment``, ``item`` and ``value`` are equally long, weights included. ``prior`` is the precision of the normal
    prior of each score. ``shared`` is of what all judgments share besides, such as coefficients of covariates.
    """

    judgment: Counts
    item: Counts | Ints
    value: Floats
    prior: float
    shared: SharedGradients | None = None

    @classmethod
    def of_preferences(
        cls, left: Ints, right: Ints, slope: Floats, prior: float, judgment: Counts | None = None
    ) -> ScoreGradients:
        """Return the gradients of preferences from their slopes in left less right; ``judgment`` numbers them."""
        rows = np.arange(len(slope)) if judgment is None else judgment
        return cls(np.tile(rows, 2), np.concatenate([left, right]), np.concatenate([slope, -slope]), prior)


class ClusterErrors(NamedTuple):
    """Cluster-robust covariances by query, the standard errors, and the number of clusters of each query.

    ``of_shared`` (k,) are the standard errors of what all judgments share.
    """

    covariance: tuple[Floats | None, ...]
    std_error: Floats
    n_clusters: Counts
    of_shared: Floats


def cluster_robust(
    covariance: tuple[Floats | None, ...], offsets: Counts, gradients: ScoreGradients, cluster: Ints
) -> ClusterErrors:
    """Return covariances that hold where the judgments of a cluster depend on each other, others do not.

    The sandwich ``B M B`` with ``B`` the model's covariance and ``M`` the sum of squares of the clusters' summed
    gradients, and ``B P B`` beside it for the prior ``P``, which pulls whatever the judgments are [Liang86]_. With
    ``C`` clusters ``M`` is multiplied by ``C / (C - 1)``, and the whole so that normal 95 % intervals are those of
    Student's t with ``C - 1`` degrees of freedom: few clusters say little of how they differ. A query with one cluster
    keeps the model's covariance.

    Parameters
    ----------
    covariance
        The model's covariance of the scores of each query.
    offsets
        Bounds of the items of each query.
    gradients
        Gradients of the judgments.
    cluster
        Cluster of each judgment.
    """
    from scipy.sparse import coo_matrix

    query = np.searchsorted(offsets, gradients.item, side="right") - 1
    order = np.argsort(query, kind="stable")
    bounds = np.searchsorted(query[order], np.arange(len(offsets)))
    blocks, numbers = list(covariance), np.zeros(len(covariance), np.int64)
    std_error = np.zeros(int(offsets[-1]))
    shared = None if gradients.shared is None else _SharedMoves(gradients.shared, cluster)
    for number, model in enumerate(covariance):
        assert model is not None, "large queries are refused before"
        block = model
        rows = order[bounds[number] : bounds[number + 1]]
        known, code = np.unique(cluster[gradients.judgment[rows]], return_inverse=True)
        if shared is not None:
            known, code = shared.clusters, np.searchsorted(shared.clusters, cluster[gradients.judgment[rows]])
        numbers[number] = len(known)
        if len(known) > 1:
            place = (code, gradients.item[rows] - offsets[number])
            shape = (len(known), len(model))
            sums = coo_matrix((gradients.value[rows], place), shape=shape).tocsr()
            moves = sums @ model if shared is None else shared.moves(sums, model, int(offsets[number]))
            more = len(known) / (len(known) - 1.0)
            block = student_factor(len(known)) * (more * moves.T @ moves + gradients.prior * model @ model)
        blocks[number] = block
        part = slice(int(offsets[number]), int(offsets[number + 1]))
        std_error[part] = np.sqrt(np.maximum(np.diagonal(block), 0.0))
    return ClusterErrors(tuple(blocks), std_error, numbers, np.empty(0) if shared is None else shared.standard_errors())


class _SharedMoves:
    """How far each cluster moves what all judgments share, gathered query by query."""

    def __init__(self, shared: SharedGradients, cluster: Ints) -> None:
        self.clusters, code = np.unique(cluster, return_inverse=True)
        n = len(self.clusters)
        self.sums = np.column_stack([np.bincount(code, column, n) for column in shared.value.T])
        self.direction = shared.direction
        self.own = self.sums @ shared.inverse

    def moves(self, sums: Any, model: Floats, first: int) -> Floats:
        """Return how far each cluster moves the scores of the query whose first item this is."""
        direction = self.direction[first : first + len(model)]
        moves: Floats = (sums.toarray() + self.sums @ direction.T) @ model
        self.own = self.own + moves @ direction
        return moves

    def standard_errors(self) -> Floats:
        """Return the standard errors of what is shared."""
        n = len(self.clusters)
        factor = student_factor(n) * n / (n - 1.0) if n > 1 else 1.0
        return np.asarray(np.sqrt(factor * (self.own**2).sum(axis=0)), np.float64)


def student_factor(n_clusters: int) -> float:
    """Return the factor on variances that makes normal intervals of 95 % those of Student's t."""
    from scipy.special import ndtri, stdtrit

    return float((stdtrit(n_clusters - 1, 0.975) / ndtri(0.975)) ** 2)
