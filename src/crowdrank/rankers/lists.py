"""Training rows query after query, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import JudgmentError
from ..kernels.threads import read_only
from ..metrics.queries import Groups, dense_codes, group_rows, one_dimensional
from ..protocols import Bools, Counts, Floats, Ints


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
            rows, offsets = _leave_out(weight == 0, rows, offsets)
        if rows is not None:
            target = target[rows]
            weight, codes = None if weight is None else weight[rows], None if codes is None else codes[rows]
        numbers, n_items = _item_numbers(codes, offsets)
        return cls(
            n_rows, rows, offsets, read_only(target), None if weight is None else read_only(weight), numbers, n_items
        )

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
        weights: Floats = np.add.reduceat(self.weights, self.offsets[:-1]) / self.n_items
        return weights

    def query_weights(self) -> Floats:
        """Return the share of each query in what is learned, adding up to 1.

        It goes by :meth:`item_weights`: queries count equally where there are no weights, however many rows they have,
        and a constant weight of a query's rows is a weight of the query.
        """
        weight = self.item_weights()
        shares: Floats = weight / weight.sum()
        return shares

    def expect_contrast(self) -> None:
        """Refuse targets that are equal within every query, from which nothing can be learned."""
        if self.n_places == 1:
            raise JudgmentError("nothing to learn from 1 sample (one row); a ranker needs two items of one query")
        top, bottom = (pick.reduceat(self.target, self.offsets[:-1]) for pick in (np.maximum, np.minimum))
        if not ((top > bottom) & (self.n_items > 1)).any():
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
        item = None
        if self.item is not None:
            moved = np.concatenate([[0], np.cumsum(n_items)])[:-1] - self.item_offsets[:-1][queries]
            item = read_only((self.item[place] + np.repeat(moved, sizes)).astype(np.int32))
        return replace(
            self, rows=place if self.rows is None else self.rows[place], offsets=read_only(offsets), item=item,
            target=read_only(self.target[place]), n_items=read_only(n_items),
            weight=None if self.weight is None else read_only(self.weight[place]),
        )  # fmt: skip

    def best_first(self, rng: np.random.Generator | None = None) -> Lists:
        """Return the lists with the places of each query by falling target, equal ones shuffled if there is a rng."""
        tie = np.arange(self.n_places) if rng is None else rng.permutation(self.n_places)
        order = np.lexsort((tie, -self.target, self.query))
        rows = order if self.rows is None else self.rows[order]
        return replace(
            self, rows=rows, target=read_only(self.target[order]),
            weight=None if self.weight is None else read_only(self.weight[order]),
            item=None if self.item is None else read_only(self.item[order]),
        )  # fmt: skip

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


def _leave_out(left_out: Bools, rows: Counts | None, offsets: Counts) -> tuple[Counts, Counts]:
    """Rows and offsets with some rows of the matrix left out, and queries that lose all theirs."""
    rows = np.arange(len(left_out)) if rows is None else rows
    keep = ~left_out[rows]
    ends = np.concatenate([[0], np.cumsum(keep)])[offsets]
    return rows[keep], read_only(np.unique(ends))


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
