"""Standard errors and covariances of scores whose curvature is a graph Laplacian."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .data.consensus import COVARIANCE_ITEMS
from .protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.laplacian import Product

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
        How far each score moves when a parameter beside the scores moves by one standard error.
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
    shift = np.zeros(len(degree)) if shift is None else shift
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
        inverses += shift[places][:, :, None] * shift[places][:, None, :]
        for query, inverse in zip(queries, inverses, strict=True):
            blocks[query] = inverse
    return np.sqrt(np.maximum(variance, 0.0) + shift**2), tuple(blocks)


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
