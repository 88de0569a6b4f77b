"""Tables of judgments too long to be held: their rows some at a time, understood by the first of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from ..data.columns import Understood
from ..data.covariates import covariate_columns
from ..data.files import PathLike
from ..errors import JudgmentError
from .delimited import Scan, scan_delimited
from .judgments import Table, open_votes, read_one, source_name
from .notices import say
from .plain_tables import plain_rows, with_house_words
from .preflib import SUFFIXES
from .read_options import ReadOptions
from .sources import Source, blaming, without_panics
from .tables import table_format

LONG_BYTES = 64 << 20
"""Bytes of a text file from which on it is read some rows at a time."""

LONG_ROWS = 2_000_000
"""Rows of a Parquet file from which on it is read some rows at a time."""

ROWS_AT_ONCE = 1_000_000
"""Rows of a long table that are held at a time."""

BYTES_AT_ONCE = 24 << 20
"""Bytes in the cells of these rows, from which on fewer of them are held."""

_BATCHES_AT_ONCE = 10
"""Batches that these rows are read in; polars reads a few of them ahead."""

_TEXT_BYTES_AT_ONCE = 1 << 20
"""Bytes of a text file that one core of polars reads at a time."""

_HEAD = 100_000
"""Rows of a long table that say what its columns are."""


class Rows(NamedTuple):
    """Some rows of a file under the house's words."""

    table: Table
    first: int
    """Rows of the file that stand before them."""
    file: int
    """Number of the file, from 0."""


def table_chunks(paths: Sequence[PathLike], options: ReadOptions, rows: int = ROWS_AT_ONCE) -> Iterator[Rows]:
    """Yield the rows of files, those of long plain tables (Parquet, CSV) some at a time.

    Exports of other tools, and tables that must be turned as a whole, are held as a whole.
    """
    for number, path in enumerate(paths):
        source = open_votes(path, options.encoding)
        if source.suffix in SUFFIXES:
            raise JudgmentError(f"{source.name} is a PrefLib file; write it as a table of rankings first")
        long = None if _must_be_whole(source, options) else _Long.of(source, options)
        if long is None:
            yield from _cut(read_one(source, options), rows, number)
            continue
        with blaming(source.name):
            yield from long.chunks(rows, number)


def _must_be_whole(source: Source, options: ReadOptions) -> bool:
    """Whether a file must be read as a whole, or may be as it is short."""
    said = (options.wide, options.strength, options.where, options.add_columns, options.answer, options.swapped)
    turned = any(said) or options.missing is not None or options.skip_rows > 0
    place, form = source.place, table_format(source)
    if turned or isinstance(place, bytes) or form not in ("parquet", "csv"):
        return True
    if form == "csv" and len(source.data) < LONG_BYTES:
        return True
    try:
        if form == "parquet" and pl.scan_parquet(place, glob=False).select(pl.len()).collect().item() < LONG_ROWS:
            return True
    except (pl.exceptions.PolarsError, OSError):
        return True
    return source_name(source, options) is not None


def _cut(table: Table, rows: int, number: int) -> Iterator[Rows]:
    """The rows of a table that was read as a whole, some at a time."""
    for start in range(0, len(table.frame), rows):
        yield Rows(table._replace(frame=table.frame.slice(start, rows), plain=None), start, number)


class _Long(NamedTuple):
    """A long plain table whose columns are understood."""

    source: Source
    options: ReadOptions
    scan: pl.LazyFrame
    understood: Understood
    columns: list[str]
    text: Scan | None

    @classmethod
    def of(cls, source: Source, options: ReadOptions) -> _Long | None:
        """Look at the first rows; ``None`` where all rows are needed to understand the table."""
        text = scan_delimited(source, names=options.header) if table_format(source) == "csv" else None
        if text is None and table_format(source) == "csv":
            return None
        place = source.place
        if isinstance(place, bytes):
            return None
        try:
            with without_panics(), blaming(source.name):
                scan = pl.scan_parquet(place, glob=False) if text is None else text.frame
                head = scan.head(_HEAD).collect()
                plain = plain_rows(head, {}, options, source)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            return None
        names = list(plain.understood.columns.values())
        if not set(names) <= set(head.columns):
            return None
        say(f"{source.name}: {plain.understood.sentence()}")
        for note in plain.notes:
            say(f"{source.name}: {note}")
        levels = options.levels if options.levels is not None else plain.levels
        wanted = [*names, *covariate_columns(head, options.covariates), *([text.last] if text else [])]
        if plain.levels is not None:
            # these are turned round already
            options = replace(options, small_is_good=None)
        return cls(source, replace(options, levels=levels), scan, plain.understood, list(dict.fromkeys(wanted)), text)

    def chunks(self, rows: int, number: int) -> Iterator[Rows]:
        """The rows, some at a time."""
        first = 0
        doubtful = self.text is not None
        if self.text is not None:
            # polars cuts a long text into longer pieces, and has no parameter for it
            os.environ.setdefault("POLARS_CSV_CHUNK_SIZE", f"{_TEXT_BYTES_AT_ONCE}")
        size = max(rows // _BATCHES_AT_ONCE, 1)
        batches = self.scan.select(self.columns).collect_batches(chunk_size=size, maintain_order=True)
        while (batch := self._next(batches, rows)) is not None:
            if doubtful and self.text is not None and batch[self.text.last].null_count():
                if self.text.is_ragged():
                    self._complain()
                doubtful = False
            frame = with_house_words(batch, self.understood, self.options, self.source)
            blank = pl.all_horizontal(pl.all().is_null())
            frame = frame.filter(~blank) if self.text is not None else frame
            table = Table(self.source, self.understood.kind, frame, self.options.nominal, self.options.levels)
            first += len(batch)
            before = first - len(batch)
            # the rows go before the next ones are read
            del batch, frame
            yield Rows(table, before, number)
            del table

    def _next(self, batches: Iterator[pl.DataFrame], rows: int) -> pl.DataFrame | None:
        """So many of the next rows, fewer where their cells are long; ``None`` at the end."""
        held, n_rows, n_bytes = list[pl.DataFrame](), 0, 0
        try:
            while n_rows < rows and n_bytes < BYTES_AT_ONCE and (batch := next(batches, None)) is not None:
                held.append(batch)
                n_rows, n_bytes = n_rows + len(batch), n_bytes + int(batch.estimated_size())
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            self._complain()
        return pl.concat(held) if held else None

    def _complain(self) -> None:
        """Say what is wrong with a file that polars cannot read: the careful reader names the row."""
        read_one(self.source, self.options)
        raise JudgmentError("the file cannot be read some rows at a time; check what wrote it")
