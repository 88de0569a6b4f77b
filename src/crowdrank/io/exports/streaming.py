"""Files of other tools: how they begin, what archives hold, and their objects or rows one after the other."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from ...data.files import plain
from ...errors import JudgmentError
from ...wording import either
from .. import tables
from ..delimited import long_cells, read_delimited, separator_in
from ..sources import OLD_SPREADSHEET, ZIP, Source, plain_line_ends, without_panics
from .cells import as_text

_BLOCK = 1 << 20
_BEGINNING_BYTES, _BEGINNING_OBJECTS, _SHEET_ROWS = 1 << 16, 20, 6
_SMALL_SHEET_BYTES = 1 << 20  # up to which a sheet is looked into unasked: it has to be read as a whole for that
_MOST_BYTES = 1 << 31  # of a file in an archive
_ROWS_AT_ONCE = 10_000

PACKED = (ZIP, OLD_SPREADSHEET)  # first bytes of files that are looked into: archives and spreadsheets
_TEXTS = (".jsonl", ".json", ".csv")
_ZSTD = 93  # zip's number for it
_BETWEEN = re.compile(r"[\s,]*")
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)

Record = dict[str, Any]

# what a nested value must be before it is walked, as ``exports.toml`` says
Shape = Any


# how a file begins --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beginning:
    """The first objects of a file, or the first rows of a table."""

    objects: tuple[Mapping[str, Any], ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def has(self, *names: str) -> bool:
        """Whether an object, or the header, has all these fields."""
        return set(names) <= set(self.header) or any(set(names) <= one.keys() for one in self.objects)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, or the fields of the first object."""
        return self.header or (tuple(self.objects[0]) if self.objects else ())


def look(source: Source) -> Beginning:
    """Return the beginning of a file."""
    if source.data[:4] in PACKED:
        return _look_into(source)
    form = tables.table_format(source)
    if form == "parquet":
        try:
            with without_panics():
                schema = source.scan().collect_schema()
        except (Exception, pl.exceptions.PanicException) as error:  # a store's own packages raise errors of their own
            if source.table is not None:
                raise source.unreadable(error) from None
            return Beginning()
        return Beginning(objects=({name: _empty_value(dtype) for name, dtype in schema.items()},))
    text = source.data[source.start : source.start + _BEGINNING_BYTES].decode("utf-8", errors="replace")
    if form != "csv":
        objects = [one for one in first_objects(text) if isinstance(one, dict)]
        return Beginning(objects=tuple((_split_rows(objects[0]) if objects else None) or objects))
    try:
        rows = [row for row in _csv_rows(text, source.suffix, 5) if any(row)]
    except csv.Error:
        rows = []
    return Beginning(header=tuple(rows[0]), rows=tuple(map(tuple, rows[1:]))) if rows else Beginning()


def first_objects(text: str) -> list[Any]:
    """Return the first values of JSON text that may be cut off: of an array, of lines, or one document.

    Examples
    --------
    >>> first_objects('[{"a": 1}, {"b": [1, 2'), first_objects('{"a": 1}\\n{"b": 2}\\n{"c')
    ([{'a': 1}], [{'a': 1}, {'b': 2}])
    >>> first_objects('{"a": {"b": "c')
    [{'a': {}}]
    """
    in_array, values = text.lstrip()[:1] == "[", list[Any]()
    with suppress(JudgmentError):
        for value in islice(_values_in("", iter([text])), _BEGINNING_OBJECTS):
            # some write one list of objects for each person
            values += value if in_array and isinstance(value, list) else [value]
    if values:
        return values[:_BEGINNING_OBJECTS]
    try:
        value = json.loads(_close_json(text))
    except (ValueError, RecursionError):
        return []
    return value[:_BEGINNING_OBJECTS] if isinstance(value, list) else [value]


def _close_json(text: str) -> str:
    """Cut-off JSON up to its last whole value, with what is open closed."""
    closers, whole, closed = "", 0, ""
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "{[":
            closers = ("}" if mark == "{" else "]") + closers
        elif mark in "}]":
            closers = closers[1:]
        elif mark != ",":
            continue
        # before a comma a value has ended
        whole, closed = match.start() if mark == "," else match.end(), closers
        if not closers:
            break
    return text[:whole] + closed


def _split_rows(document: Record) -> list[Record] | None:
    """The rows of a table whose columns are named once, as pandas, MLflow and Weights & Biases write it."""
    columns, data = document.get("columns"), document.get("data")
    split = isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data)
    numbered = all(isinstance(one, dict) and "".join(one).isdigit() for one in document.values())
    return tables.rows_inside(document) if (split and data) or numbered else None


def _csv_rows(text: str, suffix: str, most: int | None = None) -> list[list[str]]:
    """Stripped cells of the rows of a text table, or of the first of them."""
    separator = separator_in(text.lstrip("\n").split("\n", 1)[0], suffix)
    with long_cells():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        return [[cell.strip() for cell in row] for row in islice(reader, most)]


def _empty_value(dtype: Any) -> Any:
    """A value of the shape that a column's type says."""
    if isinstance(dtype, pl.List):
        return [_empty_value(dtype.inner)]
    if isinstance(dtype, pl.Struct):
        return {field.name: _empty_value(field.dtype) for field in dtype.fields}
    return ""


# archives and sheets ------------------------------------------------------------------------------------------------


def _look_into(source: Source) -> Beginning:
    """The beginning of a sheet, or of the first JSON or CSV file in a zip archive."""
    if tables.is_sheet(source):
        # the first rows of the first sheet; none where it is large, damaged or the package for it is missing
        if len(source.data) > _SMALL_SHEET_BYTES:
            return Beginning()
        try:
            from python_calamine import CalamineError, CalamineWorkbook
        except ImportError:
            return Beginning()
        try:
            page = CalamineWorkbook.from_filelike(io.BytesIO(source.data[:])).get_sheet_by_index(0)
            cells = page.to_python(skip_empty_area=False, nrows=_SHEET_ROWS)
        except (CalamineError, *tables.DAMAGED_ARCHIVE):
            return Beginning()
        rows = [tuple(map(str, row)) for row in cells if any(cell != "" for cell in row)]
        return Beginning(header=rows[0], rows=tuple(rows[1:])) if rows else Beginning()
    names = tables.member_names(source)
    if "_journal/start.json" in names or "header.json" in names:
        # an .eval log of Inspect
        return Beginning(objects=({"eval": {"model": "", "task": ""}, "samples": []},))
    parts = text_members(source, _BEGINNING_BYTES, 1) if names else []
    beginning = look(parts[0]) if parts else Beginning()
    # in an archive a table of texts and labels is doccano's too
    return Beginning(objects=({"text": "", "label": []},)) if {"text", "label"} <= set(beginning.header) else beginning


def sheet_as_text(source: Source, sheet: str | None) -> Source:
    """Return a sheet as the text table that it would be in CSV."""
    memory = io.BytesIO()
    tables.read_sheet(source, sheet).write_csv(memory)
    return Source(source.name, ".csv", memory.getvalue(), None)


def text_members(source: Source, most: int = _MOST_BYTES, files: int | None = None, pattern: str = "*") -> list[Source]:
    """Return the JSON and CSV files of an archive, or the first of them, each up to so many bytes of it."""
    members: list[Source] = []
    try:
        with tables.open_archive(source) as archive:
            for name in archive.namelist():
                suffix = PurePosixPath(name).suffix.lower()
                if suffix not in _TEXTS or name.startswith("__MACOSX") or len(members) == files:
                    continue
                if not fnmatchcase(name, pattern):
                    continue
                data = _member_bytes(archive, name, most)
                if data.strip():
                    members.append(Source(name, suffix, data, None))
    except (*tables.DAMAGED_ARCHIVE, pl.exceptions.PolarsError):
        raise JudgmentError(f"{source.name} is a damaged zip archive; copy or download it again") from None
    return members


def _member_bytes(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """The beginning of a file in an archive; polars unpacks zstd, which zipfile does not before Python 3.14."""
    info = archive.getinfo(name)
    if info.compress_type != _ZSTD:
        with archive.open(name) as handle:
            return handle.read(most)
    file = archive.fp
    if file is None:
        raise zipfile.BadZipFile
    file.seek(info.header_offset)
    n_name, n_extra = struct.unpack("<26x2H", file.read(30))
    file.seek(n_name + n_extra, io.SEEK_CUR)
    packed = file.read(info.compress_size)
    # no control character stands in JSON, so each line is one cell
    lines = pl.read_csv(packed, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String})
    return "\n".join(line or "" for line in lines["line"]).encode()[:most]


# objects and rows ---------------------------------------------------------------------------------------------------


def records(source: Source, fields: Sequence[str] | None = None, shape: Shape = None) -> Iterator[Record]:
    """Yield each object of a file, or each row of a table, once its nested values are known to have their shape.

    ``fields`` spares the other columns of a Parquet file.
    """
    for number, record in enumerate(_records(source, fields), 1):
        check_shape(record, shape, f"record {number}")
        yield record


def _records(source: Source, fields: Sequence[str] | None) -> Iterator[Record]:
    """Each object or row, as it is."""
    form = tables.table_format(source)
    if form in ("json", "jsonl"):
        for number, value in enumerate(json_values(source), 1):
            if not isinstance(value, dict):
                problem = f"{source.name}: record {number} is not a JSON object"
                raise JudgmentError(f"{problem}; give the file as it was exported")
            yield from _split_rows(value) or [value]
        return
    if form == "parquet":
        wanted = None if fields is None else (lambda names: [name for name in names if name in set(fields)] or names)
        frame = tables.read_source(source, choose=wanted)[0]
    else:
        frame = read_delimited(source)
    for start in range(0, frame.height, _ROWS_AT_ONCE):
        yield from frame.slice(start, _ROWS_AT_ONCE).iter_rows(named=True)


def check_shape(value: object, shape: Shape, where: str, path: str = "", *, or_text: bool = False) -> None:
    """Refuse a value that is not of the shape that its reader walks; fields may be missing or null, entries may not.

    Examples
    --------
    >>> check_shape({"games": [{"score": 1}], "judge": 3}, {"games": [{}]}, "record 1")
    >>> check_shape({"games": 1.5}, {"games": [{}]}, "record 1")
    Traceback (most recent call last):
    crowdrank.errors.JudgmentError: record 1: 'games' holds a number where an array is needed; export the file again
    """
    if shape is None or (or_text and isinstance(value, str)):
        return
    if not isinstance(value, type(shape)):
        kinds = either(map(tables.json_kind, [shape, ""] if or_text else [shape]))
        holds = f"{tables.json_kind(value)} where {kinds} is needed; export the file again"
        raise JudgmentError(f"{where}: {path!r} holds {holds}" if path else f"{where} is {holds}")
    if isinstance(value, list):
        for place, entry in enumerate(value):
            check_shape(entry, shape[0] if shape else None, where, f"{path}[{place}]")
        return
    for name, inner in shape.items():
        known = name.removesuffix("?")
        for key in value if name == "*" else (known,):
            if name == "*" or value.get(key) is not None:
                check_shape(value[key], inner, where, f"{path}.{key}" if path else str(key), or_text=name != known)


def json_values(source: Source) -> Iterator[Any]:
    """Yield the elements of an array, or the values that stand one after the other, such as one on each line."""
    return _values_in(source.name, _text_blocks(source))


def _values_in(name: str, texts: Iterator[str]) -> Iterator[Any]:
    """The same of a text that comes in blocks."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    text = next(texts, "")
    at = len(text) - len(text.lstrip())
    in_array = text[at : at + 1] == "["
    at += in_array
    number = 1
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if in_array and text[at : at + 1] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            # a value larger than what was read asks for twice as much, so that it is not tried too often
            text, at, length = text[at:], 0, len(text) - at
            wanted = max(_BLOCK, 2 * length)
            while len(text) < wanted and (block := next(texts, None)) is not None:
                text += block
            if len(text) > length:
                continue
            if not text and not in_array:
                return
            why = f"broken JSON ({tables.json_problem(error)})" if text else "broken JSON (the array is not closed)"
            raise JudgmentError(f"{name}: record {number} is {why}; was the file cut off? export it again") from None
        number += 1
        yield value


def _text_blocks(source: Source) -> Iterator[str]:
    """The text of a file block by block, without a byte-order mark and with plain line ends.

    Blocks are read from the file where there is one, so that no mapped pages stay in memory.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(source.start, max(len(source.data), source.start + 1), _BLOCK):
        if source.path is None:
            block = source.data[begin : begin + _BLOCK]
        else:
            with source.path.open("rb") as handle:
                handle.seek(begin)
                block = handle.read(_BLOCK)
        try:
            text = decoder.decode(block, final=begin + _BLOCK >= len(source.data))
        except UnicodeDecodeError as error:
            raise source.not_utf8(begin + max(error.start, 0)) from None
        yield plain_line_ends(text)


def document(source: Source, shape: Shape = None) -> Any:
    """Return what a file with one JSON value holds."""
    values = list(json_values(source)) if source.data[:1] != b"[" else [list(json_values(source))]
    value = values[0] if len(values) == 1 else values
    check_shape(value, shape, "the file")
    return value


def text_rows(source: Source) -> list[list[str]]:
    """Return the rows of a text table as they are, however long each is; rows without any cell are left out."""
    try:
        rows = [row for row in _csv_rows(source.text(), source.suffix) if any(row)]
    except csv.Error as error:
        raise JudgmentError(f"{source.name} is not readable CSV ({plain(str(error))}); export it again") from None
    if len(rows) < 2:
        raise source.no_rows()
    return rows


def text_table(source: Source) -> pl.DataFrame:
    """Return a table with all cells as text, blank ones null, from a text table or objects of plain values."""
    if tables.table_format(source) == "csv":
        return read_delimited(source)
    table = text_columns(list(records(source)))
    if not table.width:
        raise source.no_rows()
    return table


def text_columns(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return objects as a table of text."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: pl.Series([as_text(row.get(name)) for row in rows], dtype=pl.String) for name in names})


def frame_of(rows: list[list[str]], names: Sequence[str], source: Source) -> pl.DataFrame:
    """Return rows of text as a table; cells that a short row lacks are null, cells too many are refused."""
    long = next((number for number, row in enumerate(rows, 1) if any(row[len(names) :])), None)
    if long is not None:
        wanted = f"where the header has {len(names)}; export it again"
        raise JudgmentError(f"{source.name}: row {long} has {len(rows[long - 1])} cells {wanted}")
    return tables.rows_table(source, [[cell or None for cell in row] for row in rows], names)
