"""Feature matrices, dense or sparse: read in blocks of rows, never copied whole; how they are scaled and multiplied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import JudgmentError, ParameterError
from ..protocols import AnyFloats, Counts, Floats
from ..wording import one_of
from .lists import Lists

BLOCK_CELLS = 1 << 18
"""Cells of a block: as 64-bit numbers they fit the second-level cache of the processors we measured on."""

_MAX_ABS_VALUE = 1e100
"""The square of a larger number times another such square would be infinite."""

_ROUNDING_SHARE = 1e-12

SCALES = ("overall", "query", "none")

_CONSTANT_SHARE = 1e-12
"""A column whose spread is so small against its values is constant but for rounding."""

_READY_CELLS = 1 << 22
"""Matrices up to this size are scaled once and kept, 32 MB at most; larger ones a block at a time in each pass."""

_BLOCKS_PER_THREAD = 4

Result = TypeVar("Result")


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
        block: AnyFloats = part.toarray() if self.sparse else part
        return block

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
        for start, values in self._stored_cells() if self.sparse else self._dense():
            size = np.abs(values)
            wrong = size > largest if missing else ~(size <= largest)
            if wrong.any():
                first = int(np.argmax(wrong))
                row, column = self._place(start + first)
                raise JudgmentError(f"{self.column(column)} is {_describe_value(float(values.flat[first]), row + 1)}")

    def _dense(self) -> Iterator[tuple[int, AnyFloats]]:
        """Blocks of rows with the number of cells before each."""
        for begin, end in pairwise(self.bounds(self.n_rows)):
            yield int(begin) * self.n_features, self.values[begin:end]

    def _stored_cells(self) -> Iterator[tuple[int, AnyFloats]]:
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
        shift = self.first_row(lists)
        return moments_of(*self.moment_sums(lists, shift), shift)

    def first_row(self, lists: Lists) -> Floats:
        """Return the numbers of the first row, about which sums are exact enough; 0 where they are missing."""
        first: Floats = np.nan_to_num(self.block(lists.rows, 0, 1)[0].astype(np.float64))
        return first

    def moment_sums(self, lists: Lists, shift: Floats) -> tuple[Floats, Floats]:
        """Return the sums about some row that moments are made of, (4, n_features), and each column's largest size."""
        sums = np.zeros((4, self.n_features))
        largest = np.zeros(self.n_features)
        for first, last in pairwise(self.query_bounds(lists.offsets).tolist()):
            begin, end = int(lists.offsets[first]), int(lists.offsets[last])
            values = self.block(lists.rows, begin, end).astype(np.float64)
            largest = np.fmax(largest, np.fmax(np.fmax.reduce(values), -np.fmin.reduce(values)))
            values -= shift
            weight = None if lists.weight is None else lists.weight[begin:end, None]
            sums += _sums(values, weight, lists.offsets[first:last] - begin)
        return sums, largest


def moments_of(sums: Floats, largest: Floats, shift: Floats) -> Moments:
    """Return the moments that follow from sums about some row."""
    total, first_sum, between, within = sums
    total = np.maximum(total, np.finfo(np.float64).tiny)
    mean = first_sum / total
    variance = np.maximum(between / total - mean**2, 0.0) + within / total
    return Moments(mean + shift, np.sqrt(within / total), np.sqrt(variance), largest)


def _describe_value(value: float, row: int) -> str:
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


@dataclass(frozen=True, eq=False)
class Scaling:
    """What was learned of the features' scales; it travels with the ranker.

    Parameters
    ----------
    kind
        ``"overall"``: a feature less its mean, by its standard deviation within queries; ``"query"``: from 0 at the
        lowest to 1 at the highest value within each query; ``"none"``: as it is.
    centre, spread
        One number per feature, which ``"overall"`` takes off and divides by.
    """

    kind: str
    centre: Floats
    spread: Floats

    @property
    def per_query(self) -> bool:
        """Whether rows can be scaled only together with the others of their query."""
        return self.kind == "query"

    def apply(self, block: AnyFloats, starts: Counts) -> Floats:
        """Return rows of whole queries on their scale, as a new array; ``starts`` are the queries' first rows.

        Missing values (NaN) stay missing, and a feature that is constant (in its query) becomes 0.
        """
        if self.kind == "none":
            return block.astype(np.float64)
        if self.kind == "overall":
            scaled: Floats = block - self.centre
            scaled /= self.spread
            return scaled
        values = block.astype(np.float64)
        low, high = (pick.reduceat(values, starts, axis=0) for pick in (np.fmin, np.fmax))
        width = high - low
        varies = width > _CONSTANT_SHARE * np.maximum(abs(low), abs(high))
        factor = np.divide(1.0, width, out=np.zeros_like(width), where=varies)
        sizes = np.diff(np.append(starts, len(values)))
        values -= np.repeat(low, sizes, axis=0)
        values *= np.repeat(factor, sizes, axis=0)
        return values


def learn_scaling(kind: str, matrix: Matrix, lists: Lists, *, within: bool = True) -> Scaling:
    """Return the scaling of some kind for the rows that are learned from.

    For ``"overall"`` the spread is what a linear ranker sees of a feature: its standard deviation about each query's
    mean. Where that is 0 throughout, or ``within`` is false, it is the standard deviation about the
    mean of all rows, and where that is 0 too, 1.
    """
    one_of(kind, SCALES, "scale")
    if kind == "query" and matrix.sparse:
        raise ParameterError(
            "scale='query' takes off each query's lowest value, which fills a sparse matrix; "
            "use scale='overall', or a dense matrix as X.toarray() makes it"
        )
    return scaling_by(kind, matrix.moments(lists) if kind == "overall" else None, matrix.n_features, within=within)


def scaling_by(kind: str, moments: Moments | None, n_features: int, *, within: bool = True) -> Scaling:
    """Return the scaling of some kind; ``moments`` are those of the columns for ``"overall"``."""
    centre, spread = np.zeros(n_features), np.ones(n_features)
    if moments is not None:
        centre, smallest = moments.mean, _CONSTANT_SHARE * moments.largest
        spread = np.where(within & (moments.within > smallest), moments.within, moments.overall)
        spread[spread <= smallest] = 1.0
    return Scaling(kind, centre, spread)


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
    def is_streamed(self) -> bool:
        """Whether a sparse matrix is multiplied as it is, and the scale put on the other factor."""
        return self._ready is None and self.matrix.sparse

    def scores(self, weights: Floats) -> Floats:
        """Return the product with one weight per feature: one score per place."""
        if self.is_streamed:
            raw = weights / self.scaling.spread
            of_rows: Floats = self.matrix.values @ raw - float(self.scaling.centre @ raw)
            return of_rows if self.rows is None else of_rows[self.rows]
        scores = np.empty(self.n_places)

        def fill(stretches: list[_Stretch]) -> None:
            for part in stretches:
                np.matmul(self._block(part), weights, out=scores[part.begin : part.end])

        self._in_threads(fill, self._stretches(self.scaling.per_query))
        return scores

    def pulls(self, slopes: Floats) -> Floats:
        """Return the transposed product with one slope per place, which add up to 0 in a query: one pull per "
        "feature."""
        if self.is_streamed:
            pulls: Floats = self.matrix.values.T @ self._on_rows(slopes) / self.scaling.spread
            return pulls

        def add(stretches: list[_Stretch]) -> Floats:
            return _sum([self._block(part).T @ slopes[part.begin : part.end] for part in stretches])

        return _sum(self._in_threads(add, self._stretches(self.scaling.per_query)))

    def curvature(self, bend: Callable[[int, int, Floats], Floats]) -> Floats:
        """Return the products of every two columns through ``bend``, (n_features, n_features).

        ``bend(first, last, block)`` multiplies the rows of queries ``first`` up to ``last`` by the curvature of a loss
        in the scores.
        """

        def add(stretches: list[_Stretch]) -> Floats:
            product = np.zeros((self.n_features, self.n_features))
            for part in stretches:
                block = self._block(part)
                product += block.T @ bend(part.first, part.last, block)
            return product

        product = _sum(self._in_threads(add, self._stretches(True)))
        return 0.5 * (product + product.T)

    def squares(self, slopes: Floats) -> Floats:
        """Return the sum of slope times squared feature over the places: one number per feature."""
        if self.is_streamed:
            values = self.matrix.values
            sums: Floats = values.multiply(values).T @ self._on_rows(slopes) / self.scaling.spread**2
            return sums

        def add(stretches: list[_Stretch]) -> Floats:
            return _sum([np.square(self._block(part)).T @ slopes[part.begin : part.end] for part in stretches])

        return _sum(self._in_threads(add, self._stretches(self.scaling.per_query)))

    def blocks(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield the scaled rows block by block: first place, last place and one more, rows."""
        for part in self._stretches(self.scaling.per_query):
            yield part.begin, part.end, self._block(part)

    def _on_rows(self, values: Floats) -> Floats:
        """One value per place as one value per row of the matrix."""
        if self.rows is None:
            return values
        on_rows = np.zeros(self.matrix.n_rows)
        on_rows[self.rows] = values
        return on_rows

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
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
