"""Arrays as a user has them, arranged so that the items of a query lie side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ..data.index import factorize
from ..errors import JudgmentError, ParameterError
from ..kernels.threads import even_bounds, over_bounds, read_only
from ..protocols import Bools, Counts, Floats
from ..wording import one_of

_ITEMS_PER_THREAD = 100_000  # about a millisecond of the fastest kernel, ten times what starting a thread takes

Ids: TypeAlias = "ArrayLike | None"
"""Ids of the queries, items or annotators of rows, of any type; ``None`` for one query, or where nobody is named."""

EMPTY = {"zero": 0.0, "one": 1.0, "skip": np.nan}


@dataclass(frozen=True)
class Arranged:
    """Truth and scores, query after query.

    Parameters
    ----------
    truth, scores
        One entry per item, read-only.
    offsets
        Items of the q-th query are ``offsets[q]`` up to ``offsets[q + 1]``.
    by_id
        Brings queries into the order of their ids; None when they are in it already.
    """

    truth: Floats
    scores: Floats
    offsets: Counts
    by_id: Counts | None = None

    @property
    def longest(self) -> int:
        """Number of items of the largest query."""
        return int(np.diff(self.offsets).max())

    def sums(self, values: NDArray[Any]) -> Floats:
        """Return the sum over each query of one value per item."""
        return np.add.reduceat(values, self.offsets[:-1], dtype=np.float64)

    def report(self, values: Floats, defined: Bools, empty: str, per_query: bool) -> float | Floats:
        """Return the values in order of query ids, or their mean; `empty` says what undefined queries count."""
        ordered = (values, defined) if self.by_id is None else (values[self.by_id], defined[self.by_id])
        return summary(*ordered, empty, per_query)


def summary(values: Floats, defined: Bools, empty: str, per_query: bool) -> float | Floats:
    """Return the values of all queries, or their mean; `empty` says what undefined ones count."""
    values = np.where(defined, values, EMPTY[one_of(empty, EMPTY, "empty")])
    if per_query:
        return values
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else float("nan")


def arrange(truth: ArrayLike, scores: ArrayLike, qid: Ids = None) -> Arranged:
    """Return truth and scores query after query.

    Both are one-dimensional with `qid` of the same length (None: one query), or both are tables of queries x items.
    """
    truth, scores = numbers(truth, "truth"), numbers(scores, "scores")
    if truth.shape != scores.shape:
        raise JudgmentError(f"truth has shape {truth.shape} and scores {scores.shape}; give one score for each item")
    if truth.ndim > 2 or truth.ndim == 0:
        wanted = "give one value per item, or a table of queries x items"
        raise JudgmentError(f"truth has {truth.ndim} dimensions; {wanted}")
    if truth.size == 0:
        raise JudgmentError("there is no item to measure; truth and scores are empty")
    if truth.ndim == 2:
        if qid is not None:
            remedy = "leave it out for a table, whose rows are queries"
            raise ParameterError(f"qid goes with one-dimensional truth and scores; {remedy}")
        offsets = np.arange(0, truth.size + 1, truth.shape[1], dtype=np.int64)
        return Arranged(read_only(truth.ravel()), read_only(scores.ravel()), read_only(offsets))
    if qid is None:
        return Arranged(read_only(truth), read_only(scores), read_only(np.array([0, len(truth)], np.int64)))
    groups = group_rows(one_dimensional(qid, len(truth), "qid"))
    if groups.rows is not None:
        truth, scores = truth[groups.rows], scores[groups.rows]
    return Arranged(read_only(truth), read_only(scores), groups.offsets, groups.by_id)


class Groups(NamedTuple):
    """Rows query after query: ``rows`` brings them there, ``None`` where they are; the rest as in :class:`Arranged`."""

    offsets: Counts
    rows: Counts | None
    by_id: Counts | None


def group_rows(qid: NDArray[Any] | pl.Series) -> Groups:
    """Return how rows are brought together by query; they stay where each query's are next to each other already."""
    # rows whose id differs from that of the row before
    changes = qid[1:].ne_missing(qid[:-1]).to_numpy() if isinstance(qid, pl.Series) else qid[1:] != qid[:-1]
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1]).astype(np.int64)
    codes, n_queries = dense_codes(qid[starts], "qid", starts)
    ends = np.append(starts, len(qid))
    if n_queries == len(starts):
        return Groups(read_only(ends), None, None if bool((codes[1:] > codes[:-1]).all()) else np.argsort(codes))
    from ..kernels.ranking_measures import gather

    offsets, rows = gather(read_only(np.repeat(codes, np.diff(ends))), n_queries)
    return Groups(read_only(offsets), rows, None)


def over_queries(
    kernel: Callable[..., NDArray[Any]], columns: Sequence[Floats], offsets: Counts, *rest: Any
) -> NDArray[Any]:
    """Return what a kernel finds for all queries, a share of them in each thread when there are many items.

    `columns` have one entry per item; the kernel takes them, then the offsets of its queries, then the rest, and
    releases the interpreter lock.
    """

    def some(begin: int, end: int) -> NDArray[Any]:
        own = offsets[begin : end + 1]
        return kernel(*(column[own[0] : own[-1]] for column in columns), read_only(own - own[0]), *rest)

    bounds = np.unique(np.searchsorted(offsets, even_bounds(int(offsets[-1]), _ITEMS_PER_THREAD)))
    return kernel(*columns, offsets, *rest) if len(bounds) < 3 else np.concatenate(over_bounds(some, bounds))


def share(part: Floats, whole: Floats) -> Floats:
    """Return part by whole, 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def numbers(values: ArrayLike, name: str) -> Floats:
    """Return values as a contiguous array of floats, or say which is not a number."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        odd = f"{name} cannot be read as an array of numbers ({error})"
        raise JudgmentError(f"{odd}; give one number for each item") from error
    # the minimum of an array with a NaN is NaN, which saves a pass and a temporary array
    if array.size and np.isnan(array.min()):
        first = np.argwhere(np.isnan(array))[0].tolist()
        place = ", ".join(f"{what} {number + 1}" for what, number in zip(("row", "column"), first, strict=False))
        odd = f"{name} is missing or not a number (NaN) in {place}"
        raise JudgmentError(f"{odd}; leave that item out or give it a value")
    return array


def one_dimensional(values: Any, n: int, name: str) -> NDArray[Any] | pl.Series:
    """Return ids of any type as a column of n entries."""
    column = values if isinstance(values, pl.Series) else np.asarray(values)
    if column.shape != (n,):
        raise JudgmentError(f"{name} has shape {column.shape} for {n} rows; give one id for each row")
    return column


def dense_codes(ids: NDArray[Any] | pl.Series, name: str, rows: Counts | None = None) -> tuple[Counts, int]:
    """Return codes 0..n-1 in the order of the sorted ids, and n; `rows` are the user's row numbers, for the message."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.uint64:  # may not fit the signed integers that polars looks up
        unique, inverse = np.unique(ids, return_inverse=True)
        return inverse.astype(np.int64), len(unique)
    try:
        series = pl.Series(ids.tolist() if isinstance(ids, np.ndarray) and ids.dtype.kind == "O" else ids)
        (codes,), known = factorize([series])
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise JudgmentError(f"{name} mixes kinds of ids; turn them all into text or into integers") from error
    if (codes < 0).any():
        first = int(np.argmax(codes < 0))
        row = first if rows is None else int(rows[first])
        raise JudgmentError(f"{name} is missing in row {row + 1}; give every row an id or drop that row")
    return codes.astype(np.int64), len(known)


def cutoff(k: int | None, longest: int) -> int:
    """Return how many places of a ranking are read, at most those of the longest query."""
    if k is None:
        return longest
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"k={k!r} is not a cutoff; give a whole number of at least 1, or None for no cutoff")
    return min(int(k), longest)
