"""Tables in files: CSV, TSV, Parquet, JSON and spreadsheets, each also gzipped, or from standard input."""

from __future__ import annotations

import datetime
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

import polars as pl

from ..data.column_names import is_known_name
from ..data.files import PathLike, plain
from ..errors import JudgmentError, MissingExtraError
from ..wording import either, first_few, option
from . import sources
from .delimited import read_delimited
from .notices import say
from .sources import Names, NotUtf8Error, Source, show_value

_PARQUET = b"PAR1"
_TEXT_SUFFIXES = {".csv", ".tsv", ".tab", ".psv"}
_PARQUET_SUFFIXES = {".parquet", ".pq"}

Result = TypeVar("Result")

# given a table's column names, returns the ones worth reading
Choose = Callable[[list[str]], list[str]]


def read_table(
    path: PathLike, *, text_ids: bool = True, names: Names = None, separator: str | None = None, encoding: str = "utf-8"
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
    source = sources.open_source(path, archives=True)
    if encoding.lower() not in ("utf-8", "utf8") and table_format(source) not in ("parquet", "excel"):
        source = sources.as_utf8(source, encoding)
    frame, _ = read_source(source, names=names, separator=separator)
    for name in frame.columns if not text_ids else ():
        # text of nothing but numbers as integers or floats
        for dtype in (pl.Int64, pl.Float64) if frame.schema[name] == pl.String else ():
            numbers = frame[name].cast(dtype, strict=False)
            if numbers.null_count() == frame[name].null_count():
                frame = frame.with_columns(numbers)
                break
    return frame


def read_source(
    source: Source,
    *,
    names: Names = None,
    separator: str | None = None,
    choose: Choose | None = None,
    sheet: str | None = None,
    skip_rows: int = 0,
) -> tuple[pl.DataFrame, Mixed]:
    """Return the table in an opened file, and which columns mix text and numbers; ``choose`` spares Parquet columns."""
    form = table_format(source)
    if form == "excel":
        return read_sheet(source, sheet, names, skip_rows=skip_rows), {}
    if form == "parquet":
        if source.table is None and source.data[:4] != _PARQUET:
            raise JudgmentError(f"{source.name} is not a Parquet file, despite its name; check what wrote it")
        try:
            with sources.without_panics():
                scan = source.scan()
                frame = (scan if choose is None else scan.select(choose(scan.collect_schema().names()))).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
            raise source.unreadable(error) from None
        if not frame.height or not frame.width:
            raise source.no_rows()
        return frame, {}
    if form == "csv":
        return in_any_encoding(source, partial(read_delimited, names=names, separator=separator)), {}
    return in_any_encoding(source, read_array if form == "json" else read_lines)


def in_any_encoding(source: Source, read: Callable[[Source], Result]) -> Result:
    """Return what a reader makes of a file, which is read as Windows-1252 where it is not UTF-8."""
    try:
        return read(source)
    except NotUtf8Error:
        changed, word = sources.as_windows_text(source)
        result = read(changed)
    other = option("encoding", "NAME")
    say(f"{source.name}: not UTF-8, so read as Windows-1252, as in {show_value(word)}; {other} names another encoding")
    return result


def table_format(source: Source) -> str:
    """Return ``"excel"``, ``"parquet"``, ``"json"`` (an array), ``"jsonl"`` or ``"csv"`` for what a file holds."""
    if source.data[:4] == _PARQUET or source.suffix in _PARQUET_SUFFIXES:
        return "parquet"
    if source.data[:4] in (sources.ZIP, sources.OLD_SPREADSHEET):
        if source.suffix in _SHEET_SUFFIXES or is_sheet(source):
            return "excel"
        raise sources.not_unpacked(source.name, sources.ZIP)
    if source.suffix in _TEXT_SUFFIXES:
        return "csv"
    first = source.data[source.start : source.start + 4096].lstrip()[:1]
    if source.suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    if first == b"[" or (source.suffix == ".json" and first != b"{"):
        return "json"
    return "jsonl" if first == b"{" else "csv"


# JSON: one object per line, or one array of objects ------------------------------------------------------------------


_INT64 = 1 << 63
_LOOKED_AT = 1 << 16
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_SHAPE = 'give an array of objects, or one object such as {"item": "a", "grade": 1} on each line'
# escapes that may be half characters, which polars turns into something else without a word
_DOUBTFUL = re.compile(rb"\\u[dD][89a-fA-F]")

# columns that hold both text and numbers -> first row of the kind that came later
Mixed = dict[str, int]


def read_lines(source: Source) -> tuple[pl.DataFrame, Mixed]:
    """Return the table of a file with one JSON object per line, and its columns of mixed kinds.

    A file that is one object may hold the table as a list of objects, or by columns, as pandas writes it.
    """
    rows = None
    if not has_lines(source):
        with suppress(ValueError, RecursionError):
            parsed = _parse(source.text())
            rows = rows_inside(parsed) if isinstance(parsed, dict) else None
    return lines_table(source) if rows is None else _frame(source, rows)


def lines_table(source: Source, *, first_line: int = 1) -> tuple[pl.DataFrame, Mixed]:
    """Return the table of one JSON object per line; errors count lines from ``first_line``."""
    frame = _fast(source)
    if frame is not None:
        # a key that is somewhere followed by a number or a truth value, where its column was read as text, is doubtful
        texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        keys = [re.escape(json.dumps(name, ensure_ascii=False).encode()) for name in texts]
        if not any(b"\\" in key or re.search(key + rb"\s*:\s*[-0-9tf]", source.data) for key in keys):
            return frame, {}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(source.text().split("\n"), first_line):
        if not line.strip():
            continue
        try:
            row = _parse(line)
        except (ValueError, RecursionError) as error:
            problem = f"{source.name}: line {number} is broken JSON ({json_problem(error)})"
            raise JudgmentError(f"{problem}; correct or remove that line") from None
        if not isinstance(row, dict):
            raise JudgmentError(f"{source.name}: line {number} is {json_kind(row)}, not an object; {_SHAPE}")
        rows.append(row)
    return _frame(source, rows)


def read_array(source: Source) -> tuple[pl.DataFrame, Mixed]:
    """Return the table of a JSON array of objects, and its columns of mixed kinds."""
    rows = read_document(source)
    if not isinstance(rows, list):
        raise JudgmentError(f"{source.name} holds {json_kind(rows)} where an array was expected; {_SHAPE}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise JudgmentError(f"{source.name}: entry {number} of the array is {json_kind(row)}; {_SHAPE}")
    return _frame(source, rows)


def read_document(source: Source) -> Any:
    """Return what a file with one JSON value holds."""
    text = source.text()
    try:
        return _parse(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "it"
        raise JudgmentError(f"{source.name}: {line} is broken JSON ({json_problem(error)}); {_SHAPE}") from None


def has_lines(source: Source) -> bool:
    """Return whether a file surely has one object per line and is not one object that holds a table."""
    head = source.data[source.start : source.start + _LOOKED_AT]
    first = head.split(b"\n", 1)[0].strip()
    return source.suffix in (".jsonl", ".ndjson") or (first.endswith(b"}") and len(head) < len(source.data))


def rows_inside(document: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a table that one object holds: its only list of objects, numbered rows, or columns.

    Examples
    --------
    >>> rows_inside({"item": {"0": "x", "1": "y"}, "grade": {"0": 1, "1": 2}})
    [{'item': 'x', 'grade': 1}, {'item': 'y', 'grade': 2}]
    >>> rows_inside({"item": ["x", "y"], "grade": [1, 2]}) == rows_inside({"n": 2, "rows": [{"item": "x", "grade": 1},
    ... {"item": "y", "grade": 2}]})
    True
    >>> rows_inside({"item": "x", "grade": 1}) is None
    True
    """
    lists = {name: value for name, value in document.items() if isinstance(value, list) and value}
    records = [value for value in lists.values() if all(isinstance(one, dict) for one in value)]
    if len(records) == 1 and not any(is_known_name(name) for name in document if document[name] is not records[0]):
        return records[0]
    if all(name.isdigit() and isinstance(row, dict) for name, row in document.items()):
        return list(document.values())
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        # as pandas, Weights & Biases and MLflow write a table
        return [dict(zip(map(str, columns), row, strict=False)) for row in data]
    if len(document) > 1 and all(isinstance(value, dict) and value for value in document.values()):
        keys = [list(value) for value in document.values()]
        if all(one == keys[0] for one in keys):
            return [{name: document[name][key] for name in document} for key in keys[0]]
    if len(lists) == len(document) > 1 and len({len(value) for value in lists.values()}) == 1:
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return None


def _fast(source: Source) -> pl.DataFrame | None:
    """The table as polars reads it, or ``None`` where it fails or may have read something else than was written."""
    if source.start or source.data.find(b"\0") >= 0 or _DOUBTFUL.search(source.data):
        return None
    try:
        with sources.without_panics():
            frame = pl.read_ndjson(source.place, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    if not frame.width or not frame.height:
        return None
    # integers beyond 64 bits can only be ids, and a column of nothing but null is blank text
    odd = [name for name, dtype in frame.schema.items() if dtype in (pl.Int128, pl.Null)]
    return frame.with_columns(pl.col(name).cast(pl.String) for name in odd)


def _parse(text: str) -> Any:
    """JSON as the standard has it, without NaN and Infinity."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    """Refuse a constant that is no JSON."""
    raise ValueError(f"{constant} is not a JSON number; use null")


def json_problem(error: Exception) -> str:
    """Return what is wrong with JSON, in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return plain(error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:200]).lower()


def json_kind(value: object) -> str:
    """Return JSON's word for a value, with its article."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _frame(source: Source, rows: list[dict[str, Any]]) -> tuple[pl.DataFrame, Mixed]:
    """Columns of all keys in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise JudgmentError(f"{source.name} holds no rows with any column; {_SHAPE}")
    mixed: Mixed = {}
    try:
        return pl.DataFrame([_column(name, [row.get(name) for row in rows], mixed) for name in names]), mixed
    except UnicodeEncodeError:
        texts = (json.dumps(row, ensure_ascii=False) for row in rows)
        number = next(number for number, text in enumerate(texts, 1) if _HALF_CHARACTER.search(text))
        raise JudgmentError(f"{source.name}: row {number} holds half of a character; correct its escapes") from None
    except pl.exceptions.PolarsError as error:
        raise JudgmentError(f"{source.name} is not a table ({json_problem(error)}); {_SHAPE}") from None


def _column(name: str, values: list[Any], mixed: Mixed) -> pl.Series:
    """One column; values of several kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or -_INT64 <= value < _INT64 for value in values):
        return pl.Series(name, values, pl.Int64)
    if kinds and kinds <= {int, float} and float in kinds:
        # by its text, as a number too large for a float is infinite
        return pl.Series(name, [float(str(one)) if isinstance(one, int) else one for one in values], pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds and kinds <= {list, dict}:
        try:
            # a Series of dicts would have the fields of the first one only
            return pl.from_dicts([{name: value} for value in values], infer_schema_length=None)[name]
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            pass
    if str in kinds and len(kinds) > 1:
        is_text = ((row, isinstance(value, str)) for row, value in enumerate(values, 1) if value is not None)
        first = next(is_text)[1]
        mixed[name] = next(row for row, text in is_text if text != first)
    texts = [one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in values]
    return pl.Series(name, texts, pl.String)


# long files of JSON lines, some megabytes at a time and with long text cut -------------------------------------------


_BLOCK_BYTES = 16 << 20
_LONG_CELL_BYTES = 256
_SHOWN_CHARACTERS = 80


class LongTable(NamedTuple):
    """The table of a long file."""

    frame: pl.DataFrame
    mixed: Mixed
    # columns with text that was cut: equal cells are still equal, different ones still different
    cut: frozenset[str]


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
    parts, cut, nested, texts = list[pl.DataFrame](), set[str](), set[str](), set[str]()
    mixed: Mixed = {}
    kinds: dict[str, pl.DataType] = {}
    n_rows = 0
    for _, line, data in source.blocks(block_bytes or _BLOCK_BYTES):
        if not data.strip():
            continue
        block = Source(source.name, source.suffix, data, None, source.encoding)
        frame, in_block = lines_table(block, first_line=line)
        mixed = {name: n_rows + row for name, row in in_block.items()} | mixed
        spared = [name for name, dtype in frame.schema.items() if dtype.is_nested() and not whole(name)]
        frame = frame.drop(name for name in spared if name in nested)
        nested.update(spared)
        # a column without a filled cell says nothing of its type
        blank = [column.name for column in frame if column.null_count() == len(frame)]
        frame = frame.with_columns(pl.lit(None).alias(name) for name in blank)
        for name in (name for name in frame.columns if name not in blank):
            dtype = frame.schema[name]
            known, is_text = kinds.setdefault(name, dtype), dtype == pl.String
            if dtype != known and not (dtype.is_nested() or known.is_nested()):
                # a column of text and numbers is text; the first row below the other kind is kept
                texts.update([] if dtype.is_numeric() and known.is_numeric() else [name])
                if is_text != (known == pl.String):
                    mixed.setdefault(name, n_rows + 1 + int(frame[name].is_not_null().arg_max() or 0))
            long = frame[name].str.len_bytes() > _LONG_CELL_BYTES if is_text and not whole(name) else pl.Series([False])
            if long.any():
                cell = pl.col(name)
                hashes = [cell.hash(seed).cast(pl.String) for seed in (0, 1)]
                short = pl.concat_str(cell.str.head(_SHOWN_CHARACTERS), pl.lit("… "), hashes[0], pl.lit(" "), hashes[1])
                frame = frame.with_columns(pl.when(long).then(short).otherwise(cell).alias(name))
                cut.add(name)
        n_rows += len(frame)
        parts.append(frame)
    if not parts:
        return None
    try:
        parts = [part.cast({name: pl.String() for name in part.columns if name in texts}) for part in parts]
        table = pl.concat(parts, how="diagonal_relaxed", rechunk=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return LongTable(table.with_columns(pl.col(pl.Null).cast(pl.String)), mixed, frozenset(cut))


# sheets of Excel and OpenDocument files, as the text that they would have in CSV -------------------------------------


_SHEET_SUFFIXES = {".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"}
# how names of the parts of a spreadsheet begin, which is a zip archive
_SHEET_PARTS = ("xl/", "content.xml")
# what a damaged or strange archive may lead to
DAMAGED_ARCHIVE = (
    zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError, LookupError, zlib.error,
    struct.error,
)  # fmt: skip


def open_archive(source: Source) -> zipfile.ZipFile:
    """Return a zip archive, by its path where it has one, so that it is not held in memory."""
    return zipfile.ZipFile(io.BytesIO(source.data[:]) if source.path is None else source.path)


def member_names(source: Source) -> list[str]:
    """Return the names of all files in an archive, none where it is damaged."""
    try:
        with open_archive(source) as archive:
            return archive.namelist()
    except DAMAGED_ARCHIVE:
        return []


def is_sheet(source: Source) -> bool:
    """Return whether a file is a spreadsheet, by what is in it."""
    old = source.data[:4] == sources.OLD_SPREADSHEET
    return old or any(name.startswith(_SHEET_PARTS) for name in member_names(source))


def read_sheet(source: Source, sheet: str | None = None, names: Names = None, *, skip_rows: int = 0) -> pl.DataFrame:
    """Return the table of one sheet, the first unless it is named; a blank cell is null.

    Rows with one cell above a header of several, such as a title, are passed over, which is said.

    Parameters
    ----------
    source
        The opened file.
    sheet
        Name of the sheet.
    names
        Column names, for a sheet without a header line.
    skip_rows
        Rows above the header.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        problem = f"{source.name} is an Excel file"
        raise MissingExtraError(f"{problem}; pip install 'crowdrank[excel]', or save the sheet as CSV") from None
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(source.data[:]))
        known = book.sheet_names
        if not known:
            raise source.no_rows()
        if sheet is None and len(known) > 1:
            rest, which = first_few(map(repr, known[1:])), option("sheet", known[1])
            say(f"{source.name}: sheet {known[0]!r} is read; there is also {rest} ({which})")
        elif sheet is not None and sheet not in known:
            sheets = either(map(repr, known), "and")
            raise JudgmentError(f"{source.name} has no sheet {sheet!r}; its sheets are {sheets}")
        page = book.get_sheet_by_name(sheet or known[0])
        merged = getattr(page, "merged_cell_ranges", None) or []
        rows = page.to_python(skip_empty_area=False)[skip_rows:]
    except JudgmentError:
        raise
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile):
        raise JudgmentError(f"{source.name} is a truncated or damaged Excel file; save or copy it again") from None
    merged = [one for one in merged if one[1][0] >= skip_rows + _title_rows(rows)]
    if merged:
        (first_row, first_column), (last_row, last_column) = merged[0]
        place = f"{_letters(first_column)}{first_row + 1}:{_letters(last_column)}{last_row + 1}"
        raise JudgmentError(f"{source.name}: cells {place} are merged; unmerge them, so that each row is one judgment")
    cells = [[_cell_text(cell) for cell in row] for row in rows]
    if names is None and (above := _title_rows(cells)):
        say(sources.title_note(source, next(cell for row in cells[:above] for cell in row if cell is not None)))
        cells = cells[above:]
    filled = [row for row in cells if any(cell is not None for cell in row)]
    if not filled:
        raise source.no_rows()
    width = max(number + 1 for row in filled for number, cell in enumerate(row) if cell is not None)
    if names is None:
        header, filled = [*filled[0], *[None] * width][:width], filled[1:]
        names = [cell or f"column_{number}" for number, cell in enumerate(header, 1)]
    elif len(names) != width:
        raise JudgmentError(f"{source.name} has {width} columns where {len(names)} names were given")
    if not filled:
        raise source.no_rows()
    return rows_table(source, filled, names)


def _title_rows(rows: list[list[Any]]) -> int:
    """How many rows with at most one filled cell stand above the first one of several, which is not the last."""
    filled = [sum(cell is not None and str(cell).strip() != "" for cell in row) for row in rows]
    first = next((number for number, n in enumerate(filled) if n > 1), 0)
    return first if any(filled[:first]) and sum(n > 1 for n in filled[first:]) > 1 else 0


def rows_table(source: Source, rows: list[list[str | None]], names: Sequence[str]) -> pl.DataFrame:
    """Return rows of text as a table, in which cells that a short row lacks are null."""
    doubled = next((name for name in names if list(names).count(name) > 1), None)
    if doubled is not None:
        raise JudgmentError(f"{source.name}: column {doubled!r} appears twice in the header; rename one of them")
    full = [[*row, *[None] * len(names)][: len(names)] for row in rows]
    return pl.DataFrame(full, schema=dict.fromkeys(names, pl.String), orient="row")


def _cell_text(cell: Any) -> str | None:
    """A cell as CSV has it: whole numbers without a point, dates as 2024-05-01, blanks as nothing."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1 << 53 else repr(cell)
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time() and cell.tzinfo is None
        return cell.date().isoformat() if midnight else cell.isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).strip() or None


def _letters(column: int) -> str:
    """A column as spreadsheets call it: A, B, ..., AA."""
    return (_letters(column // 26 - 1) if column > 25 else "") + chr(65 + column % 26)
