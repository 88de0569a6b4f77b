"""Training rows: query after query with their targets, and their features, in blocks of rows, never copied whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import JudgmentError, ParameterError
from ..kernels.threads import even_bounds, over_bounds, read_only
from ..metrics.queries import Groups, dense_codes, group_rows, one_dimensional
from ..protocols import AnyFloats, Counts, Floats, Ints
from ..wording import one_of

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


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows of a matrix query after query, with what each is to be ranked by; the matrix itself is not moved.

    Place ``p`` of every array is row ``rows[p]`` of the matrix. Rows of weight 0 are left out.

    Parameters
    ----------
    n_rows
        Number of rows of the matrix.
    rows
        Row of the matrix at each place; ``None`` where the matrix has that order already.
    offsets
        Places of query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``.
    target
        Grade, gain or score of each place, larger is better.
    weight
        How often each place counts; ``None`` where all count once.
    item
        Number of the item at each place, where items have several rows; ``None`` where each has one. Items of
        different queries have different numbers, and those of a query follow each other.
    n_items
        Number of items of each query.

    Examples
    --------
    >>> lists = Lists.of(4, [2, 0, 1, 1], qid=["b", "a", "b", "a"])
    >>> lists.rows.tolist(), lists.offsets.tolist(), lists.target.tolist()
    ([1, 3, 0, 2], [0, 2, 4], [0.0, 1.0, 2.0, 1.0])
    """

    n_rows: int
    rows: Counts | None
    offsets: Counts
    target: Floats
    weight: Floats | None
    item: Ints | None
    n_items: Counts

    @classmethod
    def of(
        cls,
        n_rows: int,
        y: ArrayLike | None,
        qid: Any = None,
        item: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        what: str = "",
    ) -> Self:
        """Return the lists of rows with targets ``y``; ``what`` stands before the names in messages."""
        target = _column(y, n_rows, f"{what}y", "target")
        groups = group_queries(qid, n_rows, f"{what}qid")
        weight = None if sample_weight is None else _weights(sample_weight, n_rows, f"{what}sample_weight")
        codes = None if item is None else dense_codes(_ids(item, n_rows, f"{what}item"), f"{what}item")[0]
        rows, offsets = groups.rows, groups.offsets
        if weight is not None and not weight.all():
            # leave out rows of weight 0, and queries that lose all theirs
            rows = np.arange(n_rows) if rows is None else rows
            keep = weight[rows] != 0
            rows, offsets = rows[keep], read_only(np.unique(np.concatenate([[0], np.cumsum(keep)])[offsets]))
        if rows is not None:
            target = target[rows]
            weight, codes = None if weight is None else weight[rows], None if codes is None else codes[rows]
        numbers, n_items = _item_numbers(codes, offsets)
        weight = None if weight is None else read_only(weight)
        return cls(n_rows, rows, offsets, read_only(target), weight, numbers, n_items)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def n_places(self) -> int:
        """Number of rows that are not left out."""
        return len(self.target)

    @property
    def query(self) -> Ints:
        """Number of the query of each place."""
        return np.repeat(np.arange(self.n_queries, dtype=np.int32), np.diff(self.offsets))

    @property
    def weights(self) -> Floats:
        """Weight of each place, 1 where none was given."""
        return np.ones(self.n_places) if self.weight is None else self.weight

    def item_weights(self) -> Floats:
        """Return the weight of each query's rows for each of its items, 1 where each has one row without a weight."""
        return np.add.reduceat(self.weights, self.offsets[:-1]) / self.n_items

    def query_weights(self) -> Floats:
        """Return the share of each query in what is learned, adding up to 1.

        It goes by :meth:`item_weights`: queries count equally where there are no weights, however many rows they have,
        and a constant weight of a query's rows is a weight of the query.
        """
        weight = self.item_weights()
        return weight / weight.sum()

    @property
    def has_contrast(self) -> bool:
        """Whether two items of a query have unequal targets."""
        top, bottom = (pick.reduceat(self.target, self.offsets[:-1]) for pick in (np.maximum, np.minimum))
        return bool(((top > bottom) & (self.n_items > 1)).any())

    def expect_contrast(self) -> None:
        """Refuse targets that are equal within every query, from which nothing can be learned."""
        if self.n_places == 1:
            raise JudgmentError("nothing to learn from 1 sample (one row); a ranker needs two items of one query")
        if not self.has_contrast:
            queries = "1 query" if self.n_queries == 1 else f"each of the {self.n_queries:,} queries"
            raise JudgmentError(
                f"nothing to learn: the targets y of all items are equal within {queries}; "
                "check y and qid, or give queries with better and worse items"
            )

    def take(self, queries: Counts) -> Lists:
        """Return the lists of some queries, in this order; they are of the same matrix."""
        sizes, n_items = np.diff(self.offsets)[queries], self.n_items[queries]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        place = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][queries] - offsets[:-1], sizes)
        part = replace(self._at(place), offsets=read_only(offsets), n_items=read_only(n_items))
        if part.item is None:
            return part
        moved = np.concatenate([[0], np.cumsum(n_items)])[:-1] - self.item_offsets[:-1][queries]
        return replace(part, item=read_only((part.item + np.repeat(moved, sizes)).astype(np.int32)))

    def best_first(self, rng: np.random.Generator | None = None) -> Lists:
        """Return the lists with the places of each query by falling target, equal ones shuffled if there is a rng."""
        tie = np.arange(self.n_places) if rng is None else rng.permutation(self.n_places)
        return self._at(np.lexsort((tie, -self.target, self.query)))

    def _at(self, place: Counts) -> Lists:
        """Some places, in this order."""
        rows = place if self.rows is None else self.rows[place]
        weight = None if self.weight is None else read_only(self.weight[place])
        item = None if self.item is None else read_only(self.item[place])
        return replace(self, rows=rows, target=read_only(self.target[place]), weight=weight, item=item)

    def tie_starts(self) -> Counts:
        """Return the first place with the same query and target as each place; best first order is needed."""
        new = np.ones(self.n_places, np.bool_)
        new[1:] = np.diff(self.target) != 0
        new[self.offsets[:-1]] = True
        starts = np.flatnonzero(new)
        return np.repeat(starts, np.diff(np.append(starts, self.n_places)))

    def on_items(self, values: Floats) -> Floats:
        """Return the mean value of each item's places, by weight, query after query; ``item_offsets`` bound them."""
        if self.item is None:
            return values
        total = np.bincount(self.item, self.weights, int(self.n_items.sum()))
        return np.bincount(self.item, values * self.weights, len(total)) / total

    @property
    def item_offsets(self) -> Counts:
        """Items of query ``q`` are ``item_offsets[q]`` up to ``item_offsets[q + 1]``."""
        return np.concatenate([[0], np.cumsum(self.n_items)])


def group_queries(qid: Any, n_rows: int, name: str = "qid") -> Groups:
    """Return how rows are brought together by query; without ids all are one query."""
    if qid is None:
        return Groups(read_only(np.array([0, n_rows], np.int64)), None, None)
    return group_rows(_ids(qid, n_rows, name))


def _ids(values: Any, n_rows: int, name: str) -> Any:
    """Ids as a column, or a sentence about its length."""
    column = values if hasattr(values, "shape") or isinstance(values, Sequence) else list(values)
    if len(column) != n_rows:
        raise JudgmentError(f"{name} has {len(column):,} entries for {n_rows:,} rows of X; give one id for each row")
    return one_dimensional(column, n_rows, name)


def _column(values: ArrayLike | None, n_rows: int, name: str, what: str) -> Floats:
    """Finite numbers, one a row."""
    from sklearn.utils.validation import column_or_1d

    if values is None:
        raise JudgmentError(f"{name} is missing; a ranker requires y to be passed, but the target y is None")
    try:
        column: Floats = np.ascontiguousarray(column_or_1d(values, warn=True), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise JudgmentError(f"{name} cannot be read as numbers ({error}); give one {what} for each row") from error
    if len(column) != n_rows:
        raise JudgmentError(
            f"{name} has {len(column):,} entries for {n_rows:,} rows of X; give one {what} for each row"
        )
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        shown = "NaN" if np.isnan(column[row]) else f"{column[row]:g}inity"
        raise JudgmentError(f"{name} is {shown} in row {row + 1}; give that row a {what} or leave it out")
    return column


def _weights(values: Any, n_rows: int, name: str) -> Floats:
    """Weights of at least 0, not all of them 0; one number serves for all rows."""
    if isinstance(values, int | float):
        values = np.full(n_rows, values)
    weight = _column(values, n_rows, name, "weight")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise JudgmentError(f"{name} is negative ({weight[row]:g}) in row {row + 1}; give weights of at least 0")
    if not weight.any():
        raise JudgmentError(f"{name} is zero in every row; give at least two rows of a query a weight above 0")
    return weight


def _item_numbers(codes: Counts | None, offsets: Counts) -> tuple[Ints | None, Counts]:
    """Number of the item at each place, ``None`` where each has a place of its own, and the items of each query."""
    sizes: NDArray[np.int64] = np.diff(offsets)
    if codes is None:
        return None, read_only(sizes)
    query = np.repeat(np.arange(len(sizes)), sizes)
    known, number = np.unique(query * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    if len(known) == len(codes):
        return None, read_only(sizes)
    n_items = np.bincount(known // (int(codes.max()) + 1), minlength=len(sizes))
    return read_only(number.astype(np.int32)), read_only(n_items)


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
        return part.toarray() if self.sparse else part

    def bounds(self, n_places: int) -> Counts:
        """Return the bounds of blocks of about equally many rows."""
        return np.arange(0, n_places + self._block_rows, self._block_rows).clip(max=n_places)

    def query_bounds(self, offsets: Counts) -> Counts:
        """Return the bounds, as numbers of queries, of blocks of whole queries; a block is larger for a longer one."""
        return np.unique(np.append(np.searchsorted(offsets, self.bounds(int(offsets[-1]))), len(offsets) - 1))

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
        cells = self.values.data if self.sparse else self.values
        for begin, end in pairwise((0, len(cells)) if self.sparse else self.bounds(self.n_rows).tolist()):
            size = np.abs(cells[begin:end])
            wrong = size > largest if missing else ~(size <= largest)
            if not wrong.any():
                continue
            first = int(np.argmax(wrong))
            value = float(cells[begin:end].flat[first])
            if self.sparse:
                row = int(np.searchsorted(self.values.indptr, first, side="right")) - 1
                column = self.values.indices[first]
            else:
                row, column = begin + first // self.n_features, first % self.n_features
            where = f"in row {row + 1}"
            if np.isnan(value):
                advice = "give it a number, leave the row out, or use lambda_mart, which takes missing values"
                raise JudgmentError(f"{self.column(column)} is NaN {where}; {advice}")
            shown = "infinity (inf)" if np.isinf(value) else f"{value:g}, which is too large,"
            raise JudgmentError(
                f"{self.column(column)} is {shown} {where}; give it another number or leave the row out"
            )

    def moments(self, lists: Lists) -> Moments:
        """Return what scaling needs to know of each column; rows count by their weight, missing values not at all."""
        if not self.sparse:
            shift = self.first_row(lists)
            return moments_of(*self.moment_sums(lists, shift), shift)
        from scipy import sparse

        # through sums that leave the zeros alone
        weight, values = lists.weights, self.values
        rows = np.arange(lists.n_places) if lists.rows is None else lists.rows
        choose = sparse.csr_array((weight, rows, lists.offsets), shape=(lists.n_queries, values.shape[0]))
        by_query = np.add.reduceat(weight, lists.offsets[:-1])
        sums = sparse.csr_array(choose @ values)
        squares = np.asarray(values.multiply(values).T @ np.bincount(rows, weight, values.shape[0])).ravel()
        between = np.asarray(sums.multiply(sums).T @ (1 / by_query)).ravel()
        mean = np.asarray(sums.sum(axis=0)).ravel() / weight.sum()
        within = np.maximum(squares - between, 0.0) / weight.sum()
        # what is left of two nearly equal sums is rounding
        within[within <= _ROUNDING_SHARE * squares / weight.sum()] = 0.0
        overall = np.maximum(squares / weight.sum() - mean**2, 0.0)
        largest = np.asarray(abs(values).max(axis=0).todense()).ravel()
        return Moments(mean, np.sqrt(within), np.sqrt(overall), largest)

    def first_row(self, lists: Lists) -> Floats:
        """Return the numbers of the first row, about which sums are exact enough; 0 where they are missing."""
        return np.nan_to_num(self.block(lists.rows, 0, 1)[0].astype(np.float64))

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
        """Return the transposed product with one slope per place, which add up to 0 in a query: one per feature."""
        if self.is_streamed:
            return self.matrix.values.T @ self._on_rows(slopes) / self.scaling.spread
        return self._sum(lambda part, block: block.T @ slopes[part.begin : part.end])

    def squares(self, slopes: Floats) -> Floats:
        """Return the sum of slope times squared feature over the places: one number per feature."""
        if self.is_streamed:
            values = self.matrix.values
            return values.multiply(values).T @ self._on_rows(slopes) / self.scaling.spread**2
        return self._sum(lambda part, block: np.square(block).T @ slopes[part.begin : part.end])

    def curvature(self, bend: Callable[[int, int, Floats], Floats]) -> Floats:
        """Return the products of every two columns through ``bend``, (n_features, n_features).

        ``bend(first, last, block)`` multiplies the rows of queries ``first`` up to ``last`` by the curvature of a loss
        in the scores.
        """
        product = self._sum(lambda part, block: block.T @ bend(part.first, part.last, block), whole_queries=True)
        return 0.5 * (product + product.T)

    def _sum(self, product: Callable[[_Stretch, Floats], Floats], whole_queries: bool = False) -> Floats:
        """Sum of what is made of each block of rows."""

        def add(stretches: list[_Stretch]) -> Floats:
            return reduce(np.add, (product(part, self._block(part)) for part in stretches))

        return reduce(np.add, self._in_threads(add, self._stretches(whole_queries or self.scaling.per_query)))

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
        bounds = even_bounds(len(stretches), _BLOCKS_PER_THREAD)
        return over_bounds(lambda first, last: work(stretches[first:last]), bounds)


def scoring_design(matrix: Matrix, qid: Any, scaling: Scaling) -> Design:
    """Return the rows of a matrix to be scored; scaling that does not look at queries leaves them in their order."""
    if scaling.per_query:
        groups = group_queries(qid, matrix.n_rows)
        return Design(matrix, groups.rows, groups.offsets, scaling)
    return Design(matrix, None, np.array([0, matrix.n_rows], np.int64), scaling)
