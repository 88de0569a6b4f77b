"""Ids at the edge, codes 0..n-1 inside: annotators, queries, and items within their query."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import JudgmentError, UnknownNameError
from ..protocols import Counts, Ints
from ..wording import counted, nearest

NO_QUERY = ""
"""Id of the one query of judgments that name none."""

# threshold (equal): the same range for each judgment
_CELLS_PER_ENTRY = 16
"""Cells of a table for each entry up to which it takes less time and memory than sorting the entries."""


# threshold (equal): cells of text, or items, coded by compiled passes
LONG = 500_000
"""From this many cells on compiled passes are worth the time that loading them takes."""

# threshold (equal): cells of text up to which they are coded one by one
_FEW = 200
"""Up to this many cells of text are coded one by one."""

_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What polars strips texts of; Python would strip four separators more."""

# threshold (equal): rows looked at for the commonest ids of long columns
_MAX_ROWS_SAMPLED = 50_000
_SEEDS = (0, 1)
_KEY_BYTES = 8
# threshold (equal): range of integer ids, or queries times items, that a table holds
_TABLE_CELLS = 1 << 26


def id_series(values: pl.Series) -> pl.Series:
    """Return ids as text or 64-bit integers; whole floats become integers, anything else text."""
    dtype = values.dtype
    if dtype in (pl.String, pl.Int64):
        return values
    if dtype.is_integer():
        whole = values.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == values.null_count() else values.cast(pl.String)
    if dtype.is_float():
        values = values.fill_nan(None)
        whole = values.drop_nulls()
        if (whole == whole.round()).all() and (whole.abs() < 2.0**53).all():
            return values.cast(pl.Int64)
    if dtype == pl.Object or dtype.is_nested():
        raise JudgmentError(f"column {values.name!r} holds lists or other compound values; give a plain value per row")
    try:
        return values.cast(pl.Int64 if isinstance(dtype, pl.Duration) else pl.String)
    except pl.exceptions.PolarsError:
        what = "bytes that are not UTF-8" if dtype == pl.Binary else f"values of type {dtype}"
        raise JudgmentError(f"column {values.name!r} holds {what}; turn them into text or numbers first") from None


def plain_cells(values: pl.Series) -> pl.Series:
    """Return a column as numbers, truth values or text, whatever type a file gave it."""
    if values.dtype.is_decimal():
        return values.cast(pl.Float64)
    plain = values.dtype in (pl.String, pl.Boolean) or values.dtype.is_numeric()
    return values if plain else id_series(values).cast(pl.String)


Coded: TypeAlias = tuple[list[Ints], pl.Series]
"""Codes of some columns over their common ids, and the ids in sorted order."""


def factorize(columns: Sequence[pl.Series]) -> Coded:
    """Return the codes of each column over their common ids, and the ids in sorted order.

    Text is stripped of surrounding white space; a missing or blank id has code -1.
    """
    return factorize_groups([columns])[0]


def factorize_groups(groups: Sequence[Sequence[pl.Series]], *, ordered: bool = True) -> list[Coded]:
    """Factorize several groups of columns at once, each over its own ids, on all cores.

    Without ``ordered`` the ids of a long column stand in the order that takes least time.
    """
    series = [[id_series(column) for column in columns] for columns in groups]
    series = [g if len({c.dtype for c in g}) == 1 else [c.cast(pl.String) for c in g] for g in series]
    texts = [columns for columns in series if columns[0].dtype != pl.Int64]
    n_cells = sum(len(column) for columns in texts for column in columns)
    if n_cells >= LONG:
        # texts are distinguished by two hashes of 64 bits; those of a sample are numbered first, in sorted order, so
        # columns with few different texts need no second pass
        samples = [_sample(columns) for columns in texts]
        jobs = [(*sample, column) for sample, columns in zip(samples, texts, strict=True) for column in columns]
        with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
            numbered = iter(list(pool.map(lambda job: _number_texts(*job), jobs)))
        coded: Iterator[Coded] = iter([_merge_codes([next(numbered) for _ in columns], ordered) for columns in texts])
    else:
        coded = map(_code_few if n_cells <= _FEW else _by_category, texts)
    return [_factorize_integers(columns) if columns[0].dtype == pl.Int64 else next(coded) for columns in series]


def _code_few(series: list[pl.Series]) -> Coded:
    """Codes of a few texts; with so few cells, any call of polars costs more than all of this."""
    columns = [[(text or "").strip(_WHITE_SPACE) for text in column.to_list()] for column in series]
    ids = sorted({text for column in columns for text in column} - {""})
    places = {text: place for place, text in enumerate(ids)}
    codes = [np.array([places.get(text, -1) for text in column], np.int32) for column in columns]
    return codes, pl.Series("id", ids, pl.String)


def _sample(series: list[pl.Series]) -> tuple[pl.Series, int]:
    """Sorted texts of a sample of rows, none where the sample is unlikely to hold them all, and how many are likely."""
    rows = pl.concat([s.gather_every(max(1, len(s) // _MAX_ROWS_SAMPLED)).rename("id") for s in series])
    distinct = rows.drop_nulls().unique()
    if 10 * len(distinct) < len(rows):
        return distinct.sort(), len(distinct)
    return distinct.head(0), len(distinct) if 2 * len(distinct) < len(rows) else max(len(s) for s in series)


def _number_texts(known: pl.Series, n_likely: int, column: pl.Series) -> tuple[pl.Series, Ints]:
    """The distinct texts of a column, known ones first, and the number of each cell's; a missing text is blank.

    A table for about ``n_likely`` texts, which stays in the cache, is tried before one that holds as many as cells.
    """
    from ..kernels.numbering import number_hashes

    cells = column.fill_null("") if column.null_count() else column
    of_known, of_cells = ([texts.hash(seed).to_numpy() for seed in _SEEDS] for texts in (known, cells))
    numbers = np.empty(len(cells), np.int32)
    new = np.array([-1])
    most = len(known) + len(cells)
    for capacity in dict.fromkeys((min(4 * n_likely + 1024, most), most)):
        new = number_hashes(of_known[0], of_known[1], of_cells[0], of_cells[1], capacity, numbers)
        if not len(new) or new[0] >= 0:
            break
    return pl.concat([known.alias("id"), cells.gather(new).alias("id")]), numbers


def _merge_codes(columns: list[tuple[pl.Series, Ints]], ordered: bool) -> Coded:
    """Codes over the stripped texts of all columns of a group, sorted if so asked."""
    stripped = [texts.str.strip_chars() for texts, _ in columns]
    texts, numbers = columns[0]
    if len(columns) == 1 and stripped[0].equals(texts) and not (texts == "").any():
        # different and none blank, so that nothing but their order is left to find
        if not ordered:
            return [numbers], texts.alias("id")
        if (order := _short_order(texts)) is not None:
            places = np.empty(len(order), np.int32)
            places[order] = np.arange(len(order), dtype=np.int32)
            return [places[numbers]], texts.gather(order).alias("id")
    together = pl.concat(stripped)
    ids = together.filter(together != "").unique().alias("id")
    ids = ids.sort() if ordered else ids
    places_of = [None if texts.equals(ids) else _places(ids, texts) for texts in stripped]
    pairs = zip(places_of, columns, strict=True)
    return [numbers if places is None else places[numbers] for places, (_, numbers) in pairs], ids


def _short_order(texts: pl.Series) -> Ints | None:
    """The order of different texts that share all but their last eight bytes, as most ids do; ``None`` of others."""
    from ..kernels.segments import key_order

    longest = texts.str.len_bytes().max()
    first, last, n_shared = str(texts.min()), str(texts.max()), 0
    while n_shared < len(first) and first[n_shared] == last[n_shared]:
        n_shared += 1
    if not isinstance(longest, int) or longest > n_shared + _KEY_BYTES:
        return None
    own = texts.str.slice(n_shared).str.pad_end(_KEY_BYTES, "\0").cast(pl.Binary)
    keys = own.bin.reinterpret(dtype=pl.UInt64, endianness="big")
    if keys.null_count():
        return None
    order = key_order(keys.to_numpy().copy())
    rising = keys.to_numpy()[order]
    # texts that end with zero bytes look alike
    return None if (rising[1:] == rising[:-1]).any() else order


def _places(ids: pl.Series, texts: pl.Series) -> Ints:
    """Place of each text among the ids, -1 for a blank one."""
    places = _number_texts(ids, len(ids), texts)[1]
    return np.where(places < len(ids), places, np.int32(-1))


def _by_category(series: list[pl.Series]) -> Coded:
    """Codes of short columns of text over their stripped and sorted texts, by numbering them as categories first."""
    categories = pl.Categories.random()
    # polars forgets categories with the last series that uses them, so the encoded columns are kept till the end
    encoded = [column.cast(pl.Categorical(categories)) for column in series]
    stripped = categories.to_series().cast(pl.String).str.strip_chars()
    order = stripped.arg_sort()
    rising = stripped.gather(order)
    # stripping may have made texts equal, or blank
    new = (rising != rising.shift(1)).fill_null(True) & (rising != "")
    table = np.empty(len(stripped), np.int32)
    table[order.to_numpy()] = new.cast(pl.Int32).cum_sum().to_numpy() - 1
    return [_gather(table, column.to_physical()) for column in encoded], rising.filter(new).alias("id")


def _gather(table: Ints, numbers: pl.Series) -> Ints:
    """Entry of the table at each number, -1 where the number is null."""
    filled = np.append(table, np.int32(-1)) if numbers.null_count() else table
    return filled[numbers.fill_null(len(table)).to_numpy()]


def _factorize_integers(series: list[pl.Series]) -> Coded:
    """Codes over sorted integer ids, by table where their range is small."""
    together = pl.concat([s.rename("id") for s in series])
    ids = together.drop_nulls().unique().sort()
    low, high = (int(ids[0]), int(ids[-1])) if len(ids) else (0, -1)
    if high - low < min(_TABLE_CELLS, 4 * len(together) + 1024):
        table = np.full(high - low + 1, -1, np.int32)
        table[ids.to_numpy() - low] = np.arange(len(ids), dtype=np.int32)
        return [_gather(table, s - low) for s in series], ids
    return [look_up([ids], [s]) for s in series], ids


def compact(codes: Ints, ids: pl.Series) -> tuple[Ints, pl.Series]:
    """Return codes over those ids only that occur, and these ids."""
    present = np.bincount(codes, minlength=len(ids)) > 0
    if present.all():
        return codes, ids
    return (np.cumsum(present) - 1).astype(np.int32)[codes], ids.filter(pl.Series(present))


def look_up(known: list[pl.Series], wanted: list[pl.Series]) -> Ints:
    """Position of each wanted row among the known rows, -1 where there is none; mixed types compare as text."""
    left, right = {}, {}
    for number, (have, want) in enumerate(zip(known, wanted, strict=True)):
        if have.dtype != want.dtype:
            have, want = have.cast(pl.String), want.cast(pl.String)
        left[f"k{number}"] = want.str.strip_chars() if have.dtype == pl.String else want
        right[f"k{number}"] = have
    table = pl.DataFrame(right).with_columns(position=pl.int_range(len(known[0]), dtype=pl.Int32, eager=True))
    joined = pl.DataFrame(left).join(table, on=list(left), how="left", maintain_order="left")
    return joined["position"].fill_null(-1).to_numpy()


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

    def code(self, value: str | int, what: str = "id", where: str = "") -> int:
        """Return the code of one id, or say which known id is nearest; ``where`` follows the id in that message."""
        code = int(self.codes(pl.Series([value]))[0])
        if code < 0:
            raise UnknownNameError(f"there is no {what} {value!r}{where}{_nearest(str(value), self.ids)}")
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
        return np.append(0, np.cumsum(np.bincount(self.query, minlength=self.n_queries))).astype(np.int64)

    def span(self, query: int) -> slice:
        """Return where the items of a query stand."""
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))

    def query_number(self, query: str | int | None) -> int:
        """Return the code of the query named, or of the first one."""
        return 0 if query is None else self.queries.code(query, "query")

    @property
    def single(self) -> bool:
        """Whether the only query is the unnamed one."""
        return self.n_queries == 1 and self.queries.ids[0] == NO_QUERY

    @cached_property
    def numbers(self) -> NDArray[np.uint64]:
        """A random number for each item that its ids decide, from which samples are drawn, (n_items,)."""
        of_query = self.queries.ids.cast(pl.String).hash(0).to_numpy()[self.query]
        return self.ids.cast(pl.String).hash(1).to_numpy() * np.uint64(3) + of_query

    def query_ids(self) -> pl.Series:
        """Return the query id of each item."""
        return self.queries.ids.gather(self.query).alias("query")

    def query_column(self, code: Ints | None = None) -> dict[str, pl.Series]:
        """Return the column of query ids of all items, or of some; none where the only query is the unnamed one."""
        query = self.query if code is None else self.query[code]
        return {} if self.single else {"query": self.queries.ids.gather(query)}

    def id_columns(self) -> dict[str, pl.Series]:
        """Return the columns of a table of all items: query, unless that is the unnamed one only, and item."""
        return {**self.query_column(), "item": self.ids}

    def frame(self) -> pl.DataFrame:
        """Return a table of query and item, in code order; without the query where that is the unnamed one only."""
        return pl.DataFrame(self.id_columns())

    def codes(self, query: pl.Series | None, item: pl.Series) -> Ints:
        """Return the code of each (query, item), -1 where unknown; a missing query means the only one."""
        if query is not None:
            return look_up([self.query_ids(), self.ids], [id_series(query), id_series(item)])
        if self.n_queries != 1:
            raise JudgmentError(f"a table without a query column does not fit {self.n_queries} queries; add the column")
        return look_up([self.ids], [id_series(item)])

    def codes_of(self, other: Items, mine: str, theirs: str) -> Ints:
        """Return the code here of each of other items, -1 where unknown; ``mine`` and ``theirs`` name both in messages.

        Where one side names no query, both may have only one, and items alone are compared.
        """
        if not (self.single or other.single):
            return self.codes(other.query_ids(), other.ids)
        if self.n_queries > 1 or other.n_queries > 1:
            bare, several = (mine, theirs) if self.single else (theirs, mine)
            raise JudgmentError(f"there is no query in the {bare} but several in the {several}; add the query column")
        return self.codes(None, other.ids)

    def code(self, item: str | int, query: str | int | None = None) -> int:
        """Return the code of one item; the query may be left out where there is only one."""
        if query is None and self.n_queries != 1:
            raise UnknownNameError(f"item {item!r} needs its query (query=...): there are {self.n_queries} queries")
        number = self.query_number(query)
        span = self.span(number)
        where = "" if self.single else f" in query {self.queries.ids[number]!r}"
        return int(span.start) + Index(self.ids[span]).code(item, "item", where)


class _Indexed(Protocol):
    """What has items and annotators."""

    @property
    def items(self) -> Items:
        """Items within their queries."""

    @property
    def annotators(self) -> Index:
        """Annotators."""


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
    bounds = np.cumsum([len(code) for _, code in parts])[:-1]
    if len(queries) == 1:
        used = [code for _, code in parts]
        if not complete:
            joined, ids = compact(np.concatenate(used), ids)
            used = np.split(joined, bounds)
        return Items(queries, np.zeros(len(ids), np.int32), ids.alias("item")), used
    # the cells of a table of queries and ids that occur are numbered, row by row
    n_entries, n_cells = sum(len(query) for query, _ in parts), len(queries) * len(ids)
    if n_entries >= LONG and n_cells <= min(_TABLE_CELLS, _CELLS_PER_ENTRY * n_entries):
        from ..kernels.numbering import mark_cells, number_cells, read_cells

        table = np.zeros((len(queries), len(ids)), np.int32)
        for query, code in parts:
            mark_cells(query, code, table)
        rows, columns = number_cells(table)
        numbers = [read_cells(query, code, table) for query, code in parts]
    else:
        keys = np.concatenate([query.astype(np.int64) * len(ids) + code for query, code in parts])
        cells, places = np.unique(keys, return_inverse=True)
        numbers = np.split(places.astype(np.int32), bounds)
        rows, columns = (part.astype(np.int32) for part in np.divmod(cells, max(len(ids), 1)))
    return Items(queries, rows, ids.gather(columns).alias("item")), numbers


def code_items(query: pl.Series | None, item: pl.Series, blank: str) -> tuple[Items, Ints]:
    """Return the items of the rows of a table, and the code of each row's; ``None`` means one query.

    ``blank`` is the complaint of a blank id, with a place for the word and one for the row.
    """
    (codes,), ids = factorize([item.alias("item")])
    of_query, query_ids = np.zeros(len(item), np.int32), pl.Series("id", [NO_QUERY])
    if query is not None:
        (of_query,), query_ids = factorize([query.alias("query")])
    for word, numbers in (("item", codes), ("query", of_query)):
        if (row := first_row(numbers < 0)) is not None:
            raise JudgmentError(blank.format(word, row + 1))
    items, (code,) = build_items(Index(query_ids), [(of_query, codes)], ids)
    return items, code


def first_row(mask: Any) -> int | None:
    """Return the number of the first row that is true, from 0, ``None`` where none is."""
    rows = np.flatnonzero(mask)
    return int(rows[0]) if len(rows) else None


def _nearest(wanted: str, ids: pl.Series) -> str:
    """Clause that names the nearest known id, or the first where none is near."""
    sample = ids.head(10_000).cast(pl.String).to_list()
    if near := nearest(wanted, sample, cutoff=0.6):
        return f"; did you mean {near!r}?"
    if len(sample) == 1:
        return f"; there is only {sample[0]!r}"
    return f"; there are {len(ids)} ids, the first is {sample[0]!r}" if sample else ""


def lock_arrays(thing: Any, names: Iterable[str], types: Mapping[str, type] | None = None) -> None:
    """Make arrays of a frozen dataclass read-only, from its constructor; with ``types`` contiguous and of these too."""
    for name in names:
        if (values := getattr(thing, name)) is not None:
            array = np.asarray(values) if types is None else np.ascontiguousarray(values, types.get(name))
            view = array.view()
            view.flags.writeable = False
            set_fields(thing, **{name: view})


def set_fields(thing: Any, **values: Any) -> None:
    """Give a frozen dataclass, or a copy of one that nobody else has yet, fields made of what it was given."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def run_starts(keys: Sequence[Any]) -> Counts:
    """Return where a row differs from the one before in any of the keys, the first row included."""
    new = np.ones(len(keys[0]), bool)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(new)
