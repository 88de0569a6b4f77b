"""Standard errors and covariances of scores whose curvature is a graph Laplacian."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..data.consensus import COVARIANCE_ITEMS
from ..protocols import Counts, Floats, Ints

_BLOCK_CELLS = 4_000_000


def score_spread(
    starts: Counts,
    second: Ints,
    bend: Floats,
    degree: Floats,
    ridge: float,
    offsets: Counts,
    shift: Floats | None = None,
) -> tuple[Floats, tuple[Floats | None, ...]]:
    """Return the standard error of each item's centred score, and the covariance block of each query not too large.

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
    """
    from ..kernels.laplacian import centred_inverse_diagonal, centred_inverses

    matrix = (starts, second, bend, degree, ridge, offsets)
    shift = np.zeros(len(degree)) if shift is None else shift
    sizes = np.diff(offsets)
    large = sizes.max(initial=0) > COVARIANCE_ITEMS
    variance = centred_inverse_diagonal(*matrix) if large else np.zeros(len(degree))
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for queries in _alike(sizes):
        inverses = centred_inverses(*matrix, queries)
        places = offsets[queries][:, None] + np.arange(inverses.shape[1])
        variance[places] = np.diagonal(inverses, axis1=1, axis2=2)
        inverses += shift[places][:, :, None] * shift[places][:, None, :]
        for query, inverse in zip(queries, inverses, strict=True):
            blocks[query] = inverse
    return np.sqrt(np.maximum(variance, 0.0) + shift**2), tuple(blocks)


def _alike(sizes: Counts) -> Iterator[Counts]:
    """Groups of queries of the same size that have a covariance, each small enough to be inverted together."""
    for size in np.unique(sizes[(sizes > 0) & (sizes <= COVARIANCE_ITEMS)]):
        queries = np.flatnonzero(sizes == size)
        yield from np.array_split(queries, -(-len(queries) * int(size) ** 2 // _BLOCK_CELLS))
