"""Standard errors and covariances of scores: from a curvature that is a graph Laplacian, and cluster-robust ones."""

from __future__ import annotations

from collections.abc import Callable
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
    from .kernels.laplacian import centred_inverse_diagonal, centred_inverses, laplacian_product

    matrix = (starts, second, bend, degree, ridge, offsets)
    shift = np.zeros((len(degree), 0)) if shift is None else shift
    sizes = np.diff(offsets)
    variance = np.zeros(len(degree))
    if sizes.max(initial=0) > exact:
        product = product or laplacian_product(starts, second, bend, degree + ridge)
        variance = probe() if probe else centred_inverse_diagonal(product, degree + ridge, offsets)
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for size in np.unique(sizes[(sizes > 0) & (sizes <= exact)]).tolist():
        alike = np.flatnonzero(sizes == size)
        # groups small enough to be inverted together
        for queries in np.array_split(alike, -(-len(alike) * size**2 // _MAX_BLOCK_CELLS)):
            taken = None if less is None else less(offsets[queries], size, False)
            inverses = centred_inverses(*matrix, queries, taken)
            flat = queries[np.isnan(inverses[:, 0, 0])]
            if less is not None and len(flat):
                inverses[np.isin(queries, flat)] = centred_inverses(*matrix, flat, less(offsets[flat], size, True))
            places = offsets[queries][:, None] + np.arange(size)
            variance[places] = np.diagonal(inverses, axis1=1, axis2=2)
            if size > COVARIANCE_ITEMS:
                continue
            if shift.shape[1]:
                inverses += shift[places] @ shift[places].swapaxes(1, 2)
            for query, inverse in zip(queries, inverses, strict=True):
                blocks[query] = inverse
    return np.sqrt(np.maximum(variance, 0.0) + (shift**2).sum(axis=1)), tuple(blocks)


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
    shared, everybody = gradients.shared, np.unique(cluster)
    if shared is not None:
        # how far each cluster moves what all judgments share, gathered query by query
        n, code = len(everybody), np.searchsorted(everybody, cluster)
        shared_sums = np.column_stack([np.bincount(code, column, n) for column in shared.value.T])
        own = shared_sums @ shared.inverse
    for number, model in enumerate(covariance):
        assert model is not None, "large queries are refused before"
        block = model
        rows = order[bounds[number] : bounds[number + 1]]
        of_rows = cluster[gradients.judgment[rows]]
        known = np.unique(of_rows) if shared is None else everybody
        numbers[number] = len(known)
        part = slice(int(offsets[number]), int(offsets[number + 1]))
        if len(known) > 1:
            place = (np.searchsorted(known, of_rows), gradients.item[rows] - offsets[number])
            sums: Any = coo_matrix((gradients.value[rows], place), shape=(len(known), len(model))).tocsr()
            if shared is not None:
                sums = sums.toarray() + shared_sums @ shared.direction[part].T
                own = own + sums @ model @ shared.direction[part]
            moves = sums @ model
            more = len(known) / (len(known) - 1.0)
            block = student_factor(len(known)) * (more * moves.T @ moves + gradients.prior * model @ model)
        blocks[number] = block
        std_error[part] = np.sqrt(np.maximum(np.diagonal(block), 0.0))
    of_shared = np.empty(0)
    if shared is not None:
        factor = student_factor(n) * n / (n - 1.0) if n > 1 else 1.0
        of_shared = np.sqrt(factor * (own**2).sum(axis=0))
    return ClusterErrors(tuple(blocks), std_error, numbers, of_shared)


def student_factor(n_clusters: int) -> float:
    """Return the factor on variances that makes normal intervals of 95 % those of Student's t."""
    from scipy.special import ndtri, stdtrit

    return float((stdtrit(n_clusters - 1, 0.975) / ndtri(0.975)) ** 2)
