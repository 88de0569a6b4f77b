"""Ids at the edge, codes 0..n-1 inside: annotators, queries, and items within their query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import JudgmentError, UnknownNameError
from ..protocols import Counts, Ints
from ..wording import counted, nearest
from .coding import LONG, compact, factorize, id_series, look_up

NO_QUERY = ""
"""Id of the one query of judgments that name none."""

_TABLE_CELLS = 1 << 26
_CELLS_PER_ENTRY = 16
"""Cells of a table for each entry up to which it takes less time and memory than sorting the entries."""


@dataclass(frozen=True, eq=False)
class Index:
    """Unique ids in sorted order; the position of an id is its code.

    Examples
    --------
    >>> index = Index.of(pl.Series(["bob", "ann", "bob"]))
    >>> list(index), index.code("bob")
    (['ann', 'bob'], 1)
    """

    ids: pl.Series

    @classmethod
    def of(cls, values: pl.Series) -> Index:
        """Return the index of the distinct ids of a column."""
        return cls(factorize([values])[1])

    @classmethod
    def empty(cls) -> Index:
        """Return an index without ids."""
        return cls(pl.Series(dtype=pl.String))

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.ids.to_list())

    def codes(self, values: pl.Series) -> Ints:
        """Return the code of each value, -1 where it is unknown; integers and text are compared as text."""
        return look_up([self.ids], [id_series(values)])

    def code(self, value: str | int, what: str = "id") -> int:
        """Return the code of one id, or say which known id is nearest."""
        code = int(self.codes(pl.Series([value]))[0])
        if code < 0:
            raise UnknownNameError(f"there is no {what} {value!r}{_nearest(str(value), self.ids)}")
        return code


@dataclass(frozen=True, eq=False)
class Items:
    """Items within their queries, sorted by query and then item, so the items of a query are contiguous.

    Parameters
    ----------
    queries
        Index of the queries.
    query
        Query code of each item, never falling.
    ids
        Item id of each item; the same id may stand in several queries.
    """

    queries: Index
    query: Ints
    ids: pl.Series

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_queries(self) -> int:
        """Number of queries, those without an item included."""
        return len(self.queries)

    @cached_property
    def offsets(self) -> Counts:
        """Bounds of each query: its items are ``offsets[q]`` up to ``offsets[q + 1]``."""
        counts = np.bincount(self.query, minlength=self.n_queries)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def single(self) -> bool:
        """Whether the only query is the unnamed one."""
        return self.n_queries == 1 and self.queries.ids[0] == NO_QUERY

    @cached_property
    def numbers(self) -> NDArray[np.uint64]:
        """A random number for each item that its ids decide, from which samples are drawn, (n_items,)."""
        of_query = self.queries.ids.cast(pl.String).hash(0).to_numpy()[self.query]
        numbers: NDArray[np.uint64] = self.ids.cast(pl.String).hash(1).to_numpy() * np.uint64(3) + of_query
        return numbers

    def query_ids(self) -> pl.Series:
        """Return the query id of each item."""
        return self.queries.ids.gather(self.query).alias("query")

    def frame(self) -> pl.DataFrame:
        """Return a table of query and item, in code order; without the query where that is the unnamed one only."""
        columns = {} if self.single else {"query": self.query_ids()}
        return pl.DataFrame({**columns, "item": self.ids})

    def codes(self, query: pl.Series | None, item: pl.Series) -> Ints:
        """Return the code of each (query, item), -1 where unknown; a missing query means the only one."""
        if query is None:
            if self.n_queries != 1:
                raise JudgmentError(
                    f"a table without a query column does not fit {self.n_queries} queries; add the column"
                )
            query = pl.select(pl.repeat(self.queries.ids[0], len(item), dtype=self.queries.ids.dtype)).to_series()
        return look_up([self.query_ids(), self.ids], [id_series(query), id_series(item)])

    def codes_of(self, other: Items, mine: str, theirs: str) -> Ints:
        """Return the code here of each of other items, -1 where unknown; ``mine`` and ``theirs`` name both in messages.

        Where one side names no query, both may have only one, and items alone are compared.
        """
        if not (self.single or other.single):
            return self.codes(other.query_ids(), other.ids)
        if self.n_queries > 1 or other.n_queries > 1:
            bare, several = (mine, theirs) if self.single else (theirs, mine)
            raise JudgmentError(f"the {bare} name no query but the {several} have several; add the query column")
        return self.codes(None, other.ids)

    def code(self, item: str | int, query: str | int | None = None) -> int:
        """Return the code of one item; the query may be left out where there is only one."""
        if query is None and self.n_queries != 1:
            raise UnknownNameError(f"item {item!r} needs its query (query=...): there are {self.n_queries} queries")
        where = 0 if query is None else self.queries.code(query, "query")
        start, stop = self.offsets[where], self.offsets[where + 1]
        within = self.ids.slice(int(start), int(stop - start))
        code = int(look_up([within], [pl.Series([item])])[0])
        if code < 0:
            place = "" if self.single else f" in query {self.queries.ids[where]!r}"
            raise UnknownNameError(f"there is no item {item!r}{place}{_nearest(str(item), within)}")
        return int(start) + code


class _Indexed(Protocol):
    """What has items and annotators."""

    @property
    def items(self) -> Items:
        """Items within their queries."""
        ...

    @property
    def annotators(self) -> Index:
        """Annotators."""
        ...


class Sized:
    """How many items, queries and annotators there are in something that has items and annotators."""

    @property
    def n_items(self: _Indexed) -> int:
        """Number of items, over all queries."""
        return len(self.items)

    @property
    def n_queries(self: _Indexed) -> int:
        """Number of queries."""
        return self.items.n_queries

    @property
    def n_annotators(self: _Indexed) -> int:
        """Number of annotators; 0 where the judgments do not say who gave them."""
        return len(self.annotators)

    def _sizes(self: _Indexed, counts: dict[str, int]) -> str:
        """Counts of judgments, then of items, queries and annotators, with their nouns."""
        counts = counts | {"item": len(self.items)}
        counts |= {} if self.items.single else {"query": self.items.n_queries}
        counts |= {"annotator": len(self.annotators)} if len(self.annotators) else {}
        return ", ".join(counted(number, word) for word, number in counts.items())


def build_items(
    queries: Index, parts: Sequence[tuple[Ints, Ints]], ids: pl.Series, *, complete: bool = False
) -> tuple[Items, list[Ints]]:
    """Return the items found within their queries, and the item code of each entry of each part.

    A part is a pair of equally long arrays: query codes, and codes over ``ids``. ``complete``: every id occurs.
    """
    if len(queries) == 1:
        used = [code for _, code in parts]
        if not complete:
            joined, ids = compact(np.concatenate(used), ids)
            used = np.split(joined, np.cumsum([len(code) for code in used])[:-1])
        return Items(queries, np.zeros(len(ids), np.int32), ids.alias("item")), used
    numbers, query, item = _number_cells(parts, len(queries), len(ids))
    return Items(queries, query, ids.gather(item).alias("item")), numbers


def _number_cells(parts: Sequence[tuple[Ints, Ints]], n_rows: int, n_columns: int) -> tuple[list[Ints], Ints, Ints]:
    """Number the cells (row, column) that occur, in rising order; return each entry's number and the cells."""
    n_entries = sum(len(row) for row, _ in parts)
    if n_entries >= LONG and n_rows * n_columns <= min(_TABLE_CELLS, _CELLS_PER_ENTRY * n_entries):
        from ..kernels.cells import mark_cells, number_cells, read_cells

        table = np.zeros((n_rows, n_columns), np.int32)
        for row, column in parts:
            mark_cells(row, column, table)
        of_cells = number_cells(table)
        return [read_cells(row, column, table) for row, column in parts], *of_cells
    keys = np.concatenate([row.astype(np.int64) * n_columns + column for row, column in parts])
    cells, places = np.unique(keys, return_inverse=True)
    cuts = np.cumsum([len(row) for row, _ in parts])[:-1]
    rows, columns = np.divmod(cells, max(n_columns, 1))
    return np.split(places.astype(np.int32), cuts), rows.astype(np.int32), columns.astype(np.int32)


def _nearest(wanted: str, ids: pl.Series) -> str:
    """Clause that names the nearest known id, or nothing when none is near."""
    sample = ids.head(10_000).cast(pl.String).to_list()
    near = nearest(wanted, sample, cutoff=0.6)
    return (
        f"; did you mean {near!r}?"
        if near
        else f"; there are {len(ids)} ids, the first is {sample[0]!r}"
        if sample
        else ""
    )
