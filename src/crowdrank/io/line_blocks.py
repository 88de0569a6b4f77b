"""Long files of JSON lines, read some megabytes at a time and with long text cut, so that little memory is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import polars as pl

from .records import Mixed, lines_table
from .sources import Source

_BLOCK_BYTES = 16 << 20
_LONG_CELL_BYTES = 256
_SHOWN_CHARACTERS = 80


class LongTable(NamedTuple):
    """The table of a long file."""

    frame: pl.DataFrame
    mixed: Mixed
    cut: frozenset[str]
    """Columns with text that was cut: equal cells are still equal, different ones still different."""


def read_long_lines(source: Source, whole: Callable[[str], bool], block_bytes: int | None = None) -> LongTable | None:
    """Return the table of a long file; ``None`` where its blocks do not fit together, and it must be read in one go.

    Parameters
    ----------
    source
        A file with one JSON object on each line.
    whole
        Says of which columns the cells are needed as they are. Of others, text beyond 256 bytes is cut to its first
        characters and a hash, and lists and objects are kept in one block only.
    block_bytes
        Bytes to read at a time.
    """
    parts: list[pl.DataFrame] = []
    mixed: Mixed = {}
    cut: set[str] = set()
    nested: set[str] = set()
    n_rows = 0
    for block, line in _blocks(source, block_bytes or _BLOCK_BYTES):
        if not block.data[:].strip():
            continue
        frame, in_block = lines_table(block, first_line=line)
        mixed = {name: n_rows + row for name, row in in_block.items()} | mixed
        n_rows += len(frame)
        spared = [name for name, dtype in frame.schema.items() if dtype.is_nested() and not whole(name)]
        frame = frame.drop(name for name in spared if name in nested)
        nested.update(spared)
        frame, names = _cut_text(frame, whole)
        cut.update(names)
        parts.append(frame)
    if not parts:
        return None
    table = _together(parts, mixed)
    return None if table is None else LongTable(table, mixed, frozenset(cut))


def _blocks(source: Source, size: int) -> Iterator[tuple[Source, int]]:
    """Whole lines of the file, and the number of the first of them."""
    begin, line = source.start, 1
    while begin < len(source.data):
        end = source.data.find(b"\n", min(begin + size, len(source.data)))
        end = len(source.data) if end < 0 else end + 1
        data = source.data[begin:end]
        source.release(end)
        yield Source(source.name, source.suffix, data, None, source.encoding), line
        line += data.count(b"\n")
        begin = end


def _cut_text(frame: pl.DataFrame, whole: Callable[[str], bool]) -> tuple[pl.DataFrame, list[str]]:
    """The rows with long text cut, and the columns in which that was done."""
    names = [
        column.name
        for column in frame.iter_columns()
        if column.dtype == pl.String and not whole(column.name) and (column.str.len_bytes() > _LONG_CELL_BYTES).any()
    ]
    short = [
        pl.when(pl.col(name).str.len_bytes() > _LONG_CELL_BYTES)
        .then(
            pl.concat_str(
                pl.col(name).str.head(_SHOWN_CHARACTERS),
                pl.lit("… "),
                pl.col(name).hash(0).cast(pl.String),
                pl.lit(" "),
                pl.col(name).hash(1).cast(pl.String),
            )
        )
        .otherwise(pl.col(name))
        .alias(name)
        for name in names
    ]
    return frame.with_columns(short), names


def _together(parts: list[pl.DataFrame], mixed: Mixed) -> pl.DataFrame | None:
    """The rows of all blocks, in which a column of text and numbers is text; ``None`` where they do not fit."""
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    kinds: dict[str, pl.DataType] = {}
    for name in names:
        dtypes = [part.schema[name] for part in parts if name in part.columns and not _is_blank(part[name])]
        if len(set(dtypes)) <= 1:
            continue
        if all(dtype.is_numeric() for dtype in dtypes):
            kinds[name] = pl.Float64()
        elif not any(dtype.is_nested() for dtype in dtypes):
            kinds[name] = pl.String()
            _note_mixed(name, parts, mixed)
    try:
        aligned = [
            part.with_columns(
                pl.lit(None).alias(name) if _is_blank(part[name]) else pl.col(name).cast(kinds.get(name, dtype))
                for name, dtype in part.schema.items()
            )
            for part in parts
        ]
        frame = pl.concat(aligned, how="diagonal_relaxed", rechunk=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return frame.with_columns(pl.col(name).cast(pl.String) for name in names if frame.schema[name] == pl.Null)


def _note_mixed(name: str, parts: list[pl.DataFrame], mixed: Mixed) -> None:
    """Remember the first row of text below numbers, or of numbers below text."""
    text: bool | None = None
    row = 1
    for part in parts:
        if name in part.columns and not _is_blank(part[name]):
            is_text = part.schema[name] == pl.String
            if text is not None and is_text != text:
                at = part[name].is_not_null().arg_max() or 0
                mixed.setdefault(name, row + at)
                return
            text = is_text
        row += len(part)


def _is_blank(column: pl.Series) -> bool:
    """Whether no cell is filled, so that a column's type says nothing."""
    return column.null_count() == len(column)
