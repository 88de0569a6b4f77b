"""Feature matrices, dense or sparse, read a block of rows at a time so that they are never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import JudgmentError
from ..protocols import AnyFloats, Counts, Floats
from .lists import Lists

BLOCK_CELLS = 1 << 18
"""Cells of a block: as 64-bit numbers they fit the second-level cache of the processors we measured on."""

_MAX_ABS_VALUE = 1e100
"""The square of a larger number times another such square would be infinite."""

_ROUNDING_SHARE = 1e-12


class Matrix:
    """Numbers of 32 or 64 bits, one row a training row or item, one column a feature.

    Parameters
    ----------
    values
        A two-dimensional numpy array, or a sparse matrix of scipy in compressed rows.
    names
        Names of the columns, ``None`` where they have none.
    """

    def __init__(self, values: Any, names: tuple[str, ...] | None = None) -> None:
        self.values = values
        self.names = names
        self.sparse = not isinstance(values, np.ndarray)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def block(self, rows: Counts | None, begin: int, end: int) -> AnyFloats:
        """Return the rows at places ``begin`` up to ``end`` of ``rows`` (of the matrix itself if None), dense."""
        part = self.values[begin:end] if rows is None else self.values[rows[begin:end]]
        found: AnyFloats = part.toarray() if self.sparse else part
        return found

    def bounds(self, n_places: int) -> Counts:
        """Return the bounds of blocks of about equally many rows."""
        return np.arange(0, n_places + self._block_rows, self._block_rows).clip(max=n_places)

    def query_bounds(self, offsets: Counts) -> Counts:
        """Return the bounds, as numbers of queries, of blocks of whole queries; a block is larger for a longer one."""
        wanted = self.bounds(int(offsets[-1]))
        return np.unique(np.append(np.searchsorted(offsets, wanted), len(offsets) - 1))

    @property
    def _block_rows(self) -> int:
        """Rows of a block."""
        return max(1, BLOCK_CELLS // max(self.n_features, 1))

    def column(self, number: int) -> str:
        """Return what to call a column in a message."""
        name = "" if self.names is None else f" ({self.names[number]!r})"
        return f"column {number + 1}{name} of X"

    def expect_finite(self, *, missing: bool = False) -> None:
        """Refuse infinity, and NaN unless values may be ``missing``, naming the first column and row."""
        largest = min(_MAX_ABS_VALUE, float(np.finfo(self.values.dtype).max))
        for start, values in self._stored() if self.sparse else self._dense():
            size = np.abs(values)
            wrong = size > largest if missing else ~(size <= largest)
            if wrong.any():
                first = int(np.argmax(wrong))
                row, column = self._place(start + first)
                raise JudgmentError(f"{self.column(column)} is {_described(float(values.flat[first]), row + 1)}")

    def _dense(self) -> Iterator[tuple[int, AnyFloats]]:
        """Blocks of rows with the number of cells before each."""
        for begin, end in pairwise(self.bounds(self.n_rows)):
            yield int(begin) * self.n_features, self.values[begin:end]

    def _stored(self) -> Iterator[tuple[int, AnyFloats]]:
        """The stored cells of a sparse matrix."""
        yield 0, self.values.data

    def _place(self, cell: int) -> tuple[int, int]:
        """Row and column of a cell, counted along the rows; of stored cells only where the matrix is sparse."""
        if not self.sparse:
            return divmod(cell, self.n_features)
        return int(np.searchsorted(self.values.indptr, cell, side="right")) - 1, int(self.values.indices[cell])

    def moments(self, lists: Lists) -> Moments:
        """Return what scaling needs to know of each column; rows count by their weight, missing values not at all."""
        if self.sparse:
            return _sparse_moments(self.values, lists)
        shift = np.nan_to_num(self.block(lists.rows, 0, 1)[0].astype(np.float64))
        sums = np.zeros((4, self.n_features))
        largest = np.zeros(self.n_features)
        for first, last in pairwise(self.query_bounds(lists.offsets).tolist()):
            begin, end = int(lists.offsets[first]), int(lists.offsets[last])
            values = self.block(lists.rows, begin, end).astype(np.float64)
            largest = np.fmax(largest, np.fmax(np.fmax.reduce(values), -np.fmin.reduce(values)))
            values -= shift
            weight = None if lists.weight is None else lists.weight[begin:end, None]
            sums += _sums(values, weight, lists.offsets[first:last] - begin)
        total, first_sum, between, within = sums
        total = np.maximum(total, np.finfo(np.float64).tiny)
        mean = first_sum / total
        variance = np.maximum(between / total - mean**2, 0.0) + within / total
        return Moments(mean + shift, np.sqrt(within / total), np.sqrt(variance), largest)


def _described(value: float, row: int) -> str:
    """What is wrong with a value, in which row, and what to do."""
    if np.isnan(value):
        return f"NaN in row {row}; give it a number, leave the row out, or use lambda_mart, which takes missing values"
    shown = "infinity (inf)" if np.isinf(value) else f"{value:g}, which is too large,"
    return f"{shown} in row {row}; give it another number or leave the row out"


class Moments(NamedTuple):
    """Of each column the mean, the standard deviation within queries and over all rows, and the largest size."""

    mean: Floats
    within: Floats
    overall: Floats
    largest: Floats


def _sums(values: Floats, weight: Floats | None, starts: Counts) -> Floats:
    """Sums over rows of the weight, the values, the squared query means and the squares about them; (4, columns)."""
    sizes = np.diff(np.append(starts, len(values)))
    if np.isnan(np.add.reduce(values)).any():
        gaps = np.isnan(values)
        weight, values = np.where(gaps, 0.0, 1.0 if weight is None else weight), np.where(gaps, 0.0, values)
    weights = sizes[:, None].astype(np.float64) if weight is None else np.add.reduceat(weight, starts)
    sums = np.add.reduceat(values if weight is None else weight * values, starts)
    means = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    values = values - np.repeat(means, sizes, axis=0)
    np.square(values, out=values)
    rest = np.add.reduce(values if weight is None else weight * values)
    return np.stack(np.broadcast_arrays(weights.sum(0), sums.sum(0), (sums * means).sum(0), rest))


def _sparse_moments(values: Any, lists: Lists) -> Moments:
    """The same of a sparse matrix, through sums that leave its zeros alone."""
    from scipy import sparse

    weight = lists.weights
    rows = np.arange(lists.n_places) if lists.rows is None else lists.rows
    choose = sparse.csr_array((weight, rows, lists.offsets), shape=(lists.n_queries, values.shape[0]))
    by_query = np.add.reduceat(weight, lists.offsets[:-1])
    sums = sparse.csr_array(choose @ values)
    on_rows = np.bincount(rows, weight, values.shape[0])
    squares = np.asarray(values.multiply(values).T @ on_rows).ravel()
    between = np.asarray(sums.multiply(sums).T @ (1 / by_query)).ravel()
    mean = np.asarray(sums.sum(axis=0)).ravel() / weight.sum()
    within = np.maximum(squares - between, 0.0) / weight.sum()
    # what is left of two nearly equal sums is rounding
    within[within <= _ROUNDING_SHARE * squares / weight.sum()] = 0.0
    overall = np.maximum(squares / weight.sum() - mean**2, 0.0)
    largest = np.asarray(abs(values).max(axis=0).todense()).ravel()
    return Moments(mean, np.sqrt(within), np.sqrt(overall), largest)
