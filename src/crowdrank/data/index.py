"""Ids at the edge, codes 0..n-1 inside: annotators, queries, and items within their query."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl

from ..errors import JudgmentError, UnknownNameError
from ..protocols import Counts, Ints

NO_QUERY = ""
"""Id of the one query of judgments that name none."""

_TABLE_CELLS = 1 << 26
_SAMPLE = 50_000
_LONG = 2_000_000


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
        return _look_up([self.ids], [id_series(values)])

    def code(self, value: str | int, what: str = "id") -> int:
        """Return the code of one id, or say which known id is nearest."""
        found = int(self.codes(pl.Series([value]))[0])
        if found < 0:
            raise UnknownNameError(f"there is no {what} {value!r}{_nearest(str(value), self.ids)}")
        return found


@dataclass(frozen=True, eq=False)
class Items:
    """Items within their queries, sorted by query and then item, so that the items of a query are contiguous.

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
        """Whether there is but the one unnamed query."""
        return self.n_queries == 1 and self.queries.ids[0] == NO_QUERY

    def query_ids(self) -> pl.Series:
        """Return the query id of each item."""
        return self.queries.ids.gather(self.query).alias("query")

    def frame(self) -> pl.DataFrame:
        """Return a table of query and item, in code order; without the query where there is but the unnamed one."""
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
        return _look_up([self.query_ids(), self.ids], [id_series(query), id_series(item)])

    def code(self, item: str | int, query: str | int | None = None) -> int:
        """Return the code of one item; the query may be left out where there is but one."""
        if query is None and self.n_queries != 1:
            raise UnknownNameError(f"item {item!r} needs its query (query=...): there are {self.n_queries} queries")
        where = 0 if query is None else self.queries.code(query, "query")
        start, stop = self.offsets[where], self.offsets[where + 1]
        within = self.ids.slice(int(start), int(stop - start))
        found = int(_look_up([within], [pl.Series([item])])[0])
        if found < 0:
            place = "" if self.single else f" in query {self.queries.ids[where]!r}"
            raise UnknownNameError(f"there is no item {item!r}{place}{_nearest(str(item), within)}")
        return int(start) + found


def id_series(values: pl.Series) -> pl.Series:
    """Return ids as text or 64-bit integers; whole floats become integers, anything else text."""
    dtype = values.dtype
    if dtype == pl.String or dtype == pl.Int64:
        return values
    if dtype.is_integer():
        return values.cast(pl.Int64)
    if dtype.is_float():
        values = values.fill_nan(None)
        whole = values.drop_nulls()
        if (whole == whole.round()).all() and (whole.abs() < 2.0**53).all():
            return values.cast(pl.Int64)
    if dtype == pl.Null:
        return values.cast(pl.String)
    if dtype == pl.Object or dtype.is_nested():
        raise JudgmentError(f"column {values.name!r} mixes kinds of values; turn its ids into text")
    return values.cast(pl.String)


Coded: TypeAlias = tuple[list[Ints], pl.Series]
"""Codes of some columns over their common ids, and the ids in sorted order."""


def factorize(columns: Sequence[pl.Series]) -> Coded:
    """Return the codes of each column over their common ids, and the ids in sorted order.

    Text is stripped of surrounding white space; a missing or blank id has code -1.
    """
    return factorize_groups([columns])[0]


def factorize_groups(groups: Sequence[Sequence[pl.Series]]) -> list[Coded]:
    """Factorize several groups of columns at once, each over its own ids, on all cores."""
    coded: list[Coded | None] = []
    texts: list[list[pl.Series]] = []
    for columns in groups:
        series = [id_series(column) for column in columns]
        if any(s.dtype != series[0].dtype for s in series):
            series = [s.cast(pl.String) for s in series]
        integers = series[0].dtype == pl.Int64
        coded.append(_factorize_integers(series) if integers else None)
        texts += [] if integers else [series]
    encoded = iter(_encode(texts))
    return [_code_texts(*next(encoded)) if done is None else done for done in coded]


def _encode(groups: list[list[pl.Series]]) -> list[tuple[pl.Series, list[pl.Series]]]:
    """For each group its distinct texts, and for each of its columns the number of each cell's text (null: missing).

    Numbers go by first appearance. A sorted sample appears first, so that long columns with few different texts have
    them numbered in sorted order and need no second pass.
    """
    # polars forgets categories with the last series that uses them, so the samples must live till the end
    categories = [pl.Categories.random() for _ in groups]
    samples, jobs = [], []
    for known, series in zip(categories, groups, strict=True):
        dtype = pl.Categorical(known)
        sample = [s.gather_every(max(1, len(s) // _SAMPLE)).rename("id") for s in series]
        samples.append(pl.concat(sample).drop_nulls().unique().sort().cast(dtype))
        jobs += [(s, dtype) for s in series]
    encoded = iter(_on_all_cores(jobs))
    return [
        _vocabulary(known, series, [next(encoded) for _ in series])
        for known, series, _ in zip(categories, groups, samples, strict=True)
    ]


def _vocabulary(
    known: pl.Categories, series: list[pl.Series], numbers: list[pl.Series]
) -> tuple[pl.Series, list[pl.Series]]:
    """The distinct texts of a group of encoded columns in order of their numbers, and the columns' numbers."""
    highest = [int(column.max()) for column in numbers if column.null_count() < len(column)]  # type: ignore[arg-type]
    if max(highest, default=0) < _SAMPLE:
        return known.to_series().cast(pl.String), numbers
    # polars lists categories one by one; of very many it is quicker to look up a row that has each
    place = np.zeros(max(highest) + 1, np.int64)
    offset = 0
    for column in numbers:
        rows = np.flatnonzero(column.is_not_null().to_numpy()) if column.null_count() else np.arange(len(column))
        place[column.drop_nulls().to_numpy()] = rows + offset
        offset += len(column)
    return pl.concat([s.rename("id") for s in series]).gather(place), numbers


def _on_all_cores(jobs: list[tuple[pl.Series, pl.Categorical]]) -> list[pl.Series]:
    """Encode each column; long ones by threads, as polars encodes a column on one core and lets the others run."""
    if sum(len(s) for s, _ in jobs) < _SAMPLE:
        return [s.cast(dtype).to_physical() for s, dtype in jobs]
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda job: job[0].cast(job[1]).to_physical(), jobs))


def _code_texts(vocabulary: pl.Series, numbers: list[pl.Series]) -> Coded:
    """Codes over the sorted texts from numbers over the vocabulary."""
    table, ids = _sorted_codes(vocabulary)
    identical = bool((table == np.arange(len(table))).all())
    return [
        column.to_numpy().view(np.int32) if identical and not column.null_count() else _gather(table, column)
        for column in numbers
    ], ids


def _sorted_codes(values: pl.Series) -> tuple[Ints, pl.Series]:
    """Code of each value over the stripped, sorted values (-1 for blank), and those values."""
    stripped = values.str.strip_chars()
    stripped = stripped.set(stripped == "", None)
    table = (stripped.rank("dense").cast(pl.Int64) - 1).fill_null(-1).cast(pl.Int32)
    return table.to_numpy(), stripped.drop_nulls().unique().sort().alias("id")


def _gather(table: Ints, numbers: pl.Series) -> Ints:
    """Entry of the table at each number, -1 where the number is null."""
    codes: Ints
    if numbers.null_count():
        codes = np.append(table, np.int32(-1))[numbers.fill_null(len(table)).to_numpy()]
    else:
        codes = table[numbers.to_numpy()]
    return codes


def _factorize_integers(series: list[pl.Series]) -> tuple[list[Ints], pl.Series]:
    """Codes over sorted integer ids, by table where their range is small."""
    together = pl.concat([s.rename("id") for s in series])
    present = together.drop_nulls()
    ids = present.unique().sort()
    if not len(ids):
        return [np.full(len(s), -1, np.int32) for s in series], ids.alias("id")
    low, high = int(ids[0]), int(ids[-1])
    if high - low < min(_TABLE_CELLS, 4 * len(together) + 1024):
        table = np.full(high - low + 1, -1, np.int32)
        table[ids.to_numpy() - low] = np.arange(len(ids), dtype=np.int32)
        codes = [_gather(table, s - low) for s in series]
    else:
        codes = [_look_up([ids], [s]) for s in series]
    return codes, ids.alias("id")


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
    numbers, cells = _number_cells(parts, len(queries), len(ids))
    return Items(queries, (cells // len(ids)).astype(np.int32), ids.gather(cells % len(ids)).alias("item")), numbers


def compact(codes: Ints, ids: pl.Series) -> tuple[Ints, pl.Series]:
    """Return codes over those ids only that occur, and these ids."""
    present = np.bincount(codes, minlength=len(ids)) > 0 if len(codes) else np.zeros(len(ids), bool)
    if present.all():
        return codes, ids
    return (np.cumsum(present) - 1).astype(np.int32)[codes], ids.filter(pl.Series(present))


def _number_cells(parts: Sequence[tuple[Ints, Ints]], n_rows: int, n_columns: int) -> tuple[list[Ints], Counts]:
    """Number the cells (row, column) that occur, in rising order; return each entry's number and the cells."""
    if n_rows * n_columns > _TABLE_CELLS:
        keys = [pl.Series(row.astype(np.int64) * n_columns + column) for row, column in parts]
        cells = pl.concat(keys).unique().sort()
        return [_look_up([cells], [key]) for key in keys], cells.to_numpy()
    table = np.zeros(n_rows * n_columns, np.int32)
    mark, read = _cell_passes(sum(len(row) for row, _ in parts))
    for row, column in parts:
        mark(row, column, n_columns, table)
    occupied = np.flatnonzero(table)
    table[occupied] = np.arange(len(occupied), dtype=np.int32)
    return [read(row, column, n_columns, table) for row, column in parts], occupied


def _cell_passes(n: int) -> tuple[Callable[..., None], Callable[..., Ints]]:
    """Functions that mark cells of a table and read them; compiled ones are worth their import for long columns."""
    if n >= _LONG:
        from ..kernels.cells import mark_cells, read_cells

        return mark_cells, read_cells

    def mark(row: Ints, column: Ints, n_columns: int, table: Ints) -> None:
        table[row.astype(np.int64) * n_columns + column] = 1

    def read(row: Ints, column: Ints, n_columns: int, table: Ints) -> Ints:
        found: Ints = table[row.astype(np.int64) * n_columns + column]
        return found

    return mark, read


def _look_up(known: list[pl.Series], wanted: list[pl.Series]) -> Ints:
    """Position of each wanted row among the known rows, -1 where there is none; mixed types compare as text."""
    left, right = {}, {}
    for number, (have, want) in enumerate(zip(known, wanted, strict=True)):
        if have.dtype != want.dtype:
            have, want = have.cast(pl.String), want.cast(pl.String)
        if have.dtype == pl.String:
            want = want.str.strip_chars()
        left[f"k{number}"], right[f"k{number}"] = want, have
    position = pl.int_range(len(known[0]), dtype=pl.Int32, eager=True)
    table = pl.DataFrame(right).with_columns(position=position)
    joined = pl.DataFrame(left).join(table, on=list(left), how="left", maintain_order="left")
    return joined["position"].fill_null(-1).to_numpy()


def _nearest(wanted: str, ids: pl.Series) -> str:
    """Clause that names the nearest known id, or nothing when none is near."""
    sample = ids.head(10_000).cast(pl.String).to_list()
    near = difflib.get_close_matches(wanted, sample, n=1, cutoff=0.6)
    return (
        f"; did you mean {near[0]!r}?"
        if near
        else f"; there are {len(ids)} ids, the first is {sample[0]!r}"
        if sample
        else ""
    )
