"""Tables in files: CSV, TSV, Parquet and JSON, each also gzipped, or from standard input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import polars as pl

from ..data.files import PathLike
from ..errors import JudgmentError
from ..wording import option
from .delimited import read_delimited
from .notices import say
from .records import Mixed, read_array, read_lines
from .sources import (
    OLD_SPREADSHEET,
    ZIP,
    NotUtf8Error,
    Source,
    as_utf8,
    as_windows_text,
    open_source,
    show_value,
    without_panics,
)

_PARQUET = b"PAR1"
_TEXT_SUFFIXES = {".csv", ".tsv", ".tab", ".psv"}
_PARQUET_SUFFIXES = {".parquet", ".pq"}

Result = TypeVar("Result")

Choose = Callable[[list[str]], list[str]]
"""Given a table's column names, returns the ones worth reading."""


def read_table(
    path: PathLike,
    *,
    text_ids: bool = True,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> pl.DataFrame:
    """Return the table in a file, whatever its format.

    The format is told from the contents and, for text, from the name: CSV (also separated by tabs, ``;`` or ``|``),
    Parquet, JSON with one object per line, or a JSON array of objects. Any of them may be gzipped.

    Parameters
    ----------
    path
        Name of the file; ``-`` reads standard input.
    text_ids
        In CSV, keep every cell as text, so that ``007`` stays ``007``. ``False`` turns columns that hold nothing but
        numbers into numbers.
    names
        Column names of a CSV file that has no header line.
    separator
        What stands between the cells of a CSV file; ``None`` tells it from the first line.
    encoding
        How the characters of a text file are stored, as in ``"latin-1"``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("item; grade\\n007; 3\\n008; 1\\n")
    >>> read_table(path).rows()
    [('007', '3'), ('008', '1')]
    """
    source = open_source(path, archives=True)
    if encoding.lower() not in ("utf-8", "utf8") and table_format(source) not in ("parquet", "excel"):
        source = as_utf8(source, encoding)
    frame, _ = read_source(source, names=names, separator=separator)
    return frame if text_ids else _with_numbers(frame)


def read_source(
    source: Source,
    *,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    choose: Choose | None = None,
    sheet: str | None = None,
    skip_rows: int = 0,
) -> tuple[pl.DataFrame, Mixed]:
    """Return the table in an opened file, and which columns mix text and numbers; ``choose`` spares Parquet columns."""
    form = table_format(source)
    if form == "excel":
        from .spreadsheets import read_sheet

        return read_sheet(source, sheet, names, skip_rows=skip_rows), {}
    if form == "parquet":
        return _read_parquet(source, choose), {}
    with_text = partial(_read_text, form=form, names=names, separator=separator)
    return in_any_encoding(source, with_text)


def in_any_encoding(source: Source, read: Callable[[Source], Result]) -> Result:
    """Return what a reader makes of a file, which is read as Windows-1252 where it is not UTF-8."""
    try:
        return read(source)
    except NotUtf8Error:
        changed, word = as_windows_text(source)
        result = read(changed)
    other = option("encoding", "NAME")
    say(f"{source.name}: not UTF-8, so read as Windows-1252, as in {show_value(word)}; {other} names another encoding")
    return result


def _read_text(
    source: Source, form: str, names: Sequence[str] | None, separator: str | None
) -> tuple[pl.DataFrame, Mixed]:
    """The table of a text file."""
    if form == "csv":
        return read_delimited(source, names=names, separator=separator), {}
    return read_array(source) if form == "json" else read_lines(source)


def table_format(source: Source) -> str:
    """Return ``"excel"``, ``"parquet"``, ``"json"`` (an array), ``"jsonl"`` or ``"csv"`` for what a file holds."""
    if source.data[:4] == _PARQUET or source.suffix in _PARQUET_SUFFIXES:
        return "parquet"
    if source.data[:4] in (ZIP, OLD_SPREADSHEET):
        from .spreadsheets import is_spreadsheet

        if is_spreadsheet(source):
            return "excel"
    if source.suffix in _TEXT_SUFFIXES:
        return "csv"
    first = source.data[source.start : source.start + 4096].lstrip()[:1]
    if source.suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    if first == b"[" or (source.suffix == ".json" and first != b"{"):
        return "json"
    return "jsonl" if first == b"{" else "csv"


def _read_parquet(source: Source, choose: Choose | None) -> pl.DataFrame:
    """The table of a Parquet file."""
    if source.data[:4] != _PARQUET:
        raise JudgmentError(f"{source.name} is not a Parquet file, despite its name; check what wrote it")
    try:
        with without_panics():
            columns = choose(list(pl.read_parquet_schema(source.place))) if choose is not None else None
            frame = pl.read_parquet(source.place, columns=columns, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError):
        raise JudgmentError(f"{source.name} is a truncated or damaged Parquet file; write or copy it again") from None
    if not frame.height or not frame.width:
        raise source.no_rows()
    return frame


def _with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with text columns of nothing but numbers turned into integers or floats."""
    columns = []
    for column in frame.iter_columns():
        if column.dtype == pl.String:
            for dtype in (pl.Int64, pl.Float64):
                numbers = column.cast(dtype, strict=False)
                if numbers.null_count() == column.null_count():
                    column = numbers
                    break
        columns.append(column)
    return pl.DataFrame(columns)
