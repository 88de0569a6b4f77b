"""The matrix that a linear ranker multiplies: rows of whole queries, scaled when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from ..protocols import Counts, Floats
from .matrix import Matrix
from .scaling import Scaling

Result = TypeVar("Result")

_READY_CELLS = 1 << 22
"""Matrices up to this size are scaled once and kept, 32 MB at most; larger ones a block at a time in each pass."""

_BLOCKS_PER_THREAD = 4


class _Stretch(NamedTuple):
    """Places begin..end-1, and the queries first..last-1 that they are where whole queries are needed."""

    begin: int
    end: int
    first: int = 0
    last: int = 0


class Design:
    """Scaled features, one row per place, and the products that fitting and predicting need.

    Products are of 64 bits whatever the matrix has: a block is widened, never the whole matrix.

    Parameters
    ----------
    matrix
        The features as they came.
    rows
        Row of the matrix at each place; ``None`` for all rows in their order.
    offsets
        Places of query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``.
    scaling
        The scaling to apply.
    """

    def __init__(self, matrix: Matrix, rows: Counts | None, offsets: Counts, scaling: Scaling) -> None:
        self.matrix, self.rows, self.offsets, self.scaling = matrix, rows, offsets, scaling
        self._ready: Floats | None = None
        if self.n_places * matrix.n_features <= _READY_CELLS:
            self._ready = scaling.apply(matrix.block(rows, 0, self.n_places), offsets[:-1])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.matrix.n_features

    @property
    def n_places(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    @property
    def streamed(self) -> bool:
        """Whether a sparse matrix is multiplied as it is, and the scale put on the other factor."""
        return self._ready is None and self.matrix.sparse

    def scores(self, weights: Floats) -> Floats:
        """Return the product with one weight a feature: one score a place."""
        if self.streamed:
            raw = weights / self.scaling.spread
            found: Floats = self.matrix.values @ raw - float(self.scaling.centre @ raw)
            return found if self.rows is None else found[self.rows]
        scores = np.empty(self.n_places)

        def fill(stretches: list[_Stretch]) -> None:
            for part in stretches:
                np.matmul(self._block(part), weights, out=scores[part.begin : part.end])

        self._in_threads(fill, self._stretches(self.scaling.per_query))
        return scores

    def pulls(self, slopes: Floats) -> Floats:
        """Return the transposed product with one slope a place, those of a query adding up to 0: one pull a feature."""
        if self.streamed:
            found: Floats = self.matrix.values.T @ self._on_rows(slopes) / self.scaling.spread
            return found

        def add(stretches: list[_Stretch]) -> Floats:
            return _sum([self._block(part).T @ slopes[part.begin : part.end] for part in stretches])

        return _sum(self._in_threads(add, self._stretches(self.scaling.per_query)))

    def curvature(self, bend: Callable[[int, int, Floats], Floats]) -> Floats:
        """Return the products of every two columns through ``bend``, (n_features, n_features).

        ``bend(first, last, block)`` multiplies the rows of queries ``first`` up to ``last`` by the curvature of a loss
        in the scores.
        """

        def add(stretches: list[_Stretch]) -> Floats:
            found = np.zeros((self.n_features, self.n_features))
            for part in stretches:
                block = self._block(part)
                found += block.T @ bend(part.first, part.last, block)
            return found

        found = _sum(self._in_threads(add, self._stretches(True)))
        return 0.5 * (found + found.T)

    def squares(self, slopes: Floats) -> Floats:
        """Return the sum of slope times squared feature over the places: one number per feature."""
        if self.streamed:
            values = self.matrix.values
            found: Floats = values.multiply(values).T @ self._on_rows(slopes) / self.scaling.spread**2
            return found

        def add(stretches: list[_Stretch]) -> Floats:
            return _sum([np.square(self._block(part)).T @ slopes[part.begin : part.end] for part in stretches])

        return _sum(self._in_threads(add, self._stretches(self.scaling.per_query)))

    def blocks(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield the scaled rows block by block: first place, last place and one more, rows."""
        for part in self._stretches(self.scaling.per_query):
            yield part.begin, part.end, self._block(part)

    def _on_rows(self, values: Floats) -> Floats:
        """One value a place as one value a row of the matrix."""
        if self.rows is None:
            return values
        found = np.zeros(self.matrix.n_rows)
        found[self.rows] = values
        return found

    def _stretches(self, whole_queries: bool) -> list[_Stretch]:
        """All places, cut into blocks."""
        if whole_queries:
            bounds, offsets = self.matrix.query_bounds(self.offsets).tolist(), self.offsets
            return [_Stretch(int(offsets[one]), int(offsets[last]), one, last) for one, last in pairwise(bounds)]
        if self._ready is not None:
            return [_Stretch(0, self.n_places)]
        return [_Stretch(begin, end) for begin, end in pairwise(self.matrix.bounds(self.n_places).tolist())]

    def _block(self, part: _Stretch) -> Floats:
        """Scaled rows of the places."""
        if self._ready is not None:
            return self._ready[part.begin : part.end]
        starts = self.offsets[part.first : part.last] - part.begin if self.scaling.per_query else np.zeros(1, np.int64)
        return self.scaling.apply(self.matrix.block(self.rows, part.begin, part.end), starts)

    @staticmethod
    def _in_threads(work: Callable[[list[_Stretch]], Result], stretches: list[_Stretch]) -> list[Result]:
        """What the work finds for each thread's share of the stretches."""
        from ..kernels.threads import even_bounds, over_bounds

        bounds = even_bounds(len(stretches), _BLOCKS_PER_THREAD)
        return over_bounds(lambda first, last: work(stretches[first:last]), bounds)


def _sum(parts: list[Floats]) -> Floats:
    """Sum of arrays of one shape."""
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found
