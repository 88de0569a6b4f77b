"""Objects of a file one after the other, in bounded memory: JSON lines, arrays, documents, Parquet and text tables."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ...data.files import plain
from ...errors import JudgmentError
from ...wording import either
from ..delimited import read_delimited
from ..sources import Source, plain_line_ends
from ..tables import json_kind, read_source, table_format

_BLOCK = 1 << 20
_NEAR_END = 16
"""So many characters before the end of what was read, a complaint may be about a value that goes on behind it."""

_BETWEEN = re.compile(r"[\s,]*")
_ROWS_AT_ONCE = 10_000

Record = dict[str, Any]

Shape = Any
"""What a nested value must be before it is walked: ``{}`` an object, with shapes of some of its fields (``"*"`` means
all); ``[]`` a list, with the shape of its entries; a class, one of that; a tuple, any of these; ``None``, whatever.
"""

EACH = "*"


def check_shape(value: Any, shape: Shape, where: str, path: str = "") -> None:
    """Refuse a value that is not of the shape that its reader walks; fields may be missing or null, entries may not.

    Examples
    --------
    >>> check_shape({"games": [{"score": 1}], "judge": 3}, {"games": [{}]}, "record 1")
    >>> check_shape({"games": 1.5}, {"games": [{}]}, "record 1")
    Traceback (most recent call last):
    crowdrank.errors.JudgmentError: record 1: 'games' holds a number where an array is needed; export the file again
    """
    if shape is None:
        return
    allowed = shape if isinstance(shape, tuple) else (shape,)
    fitting = next((one for one in allowed if isinstance(value, one if isinstance(one, type) else type(one))), None)
    if fitting is None:
        kinds = either([json_kind(one() if isinstance(one, type) else one) for one in allowed])
        holds = f"{json_kind(value)} where {kinds} is needed; export the file again"
        raise JudgmentError(f"{where}: {path!r} holds {holds}" if path else f"{where} is {holds}")
    if isinstance(fitting, dict):
        for name, inner in fitting.items():
            for key in value if name == EACH else (name,):
                if name == EACH or value.get(key) is not None:
                    check_shape(value[key], inner, where, f"{path}.{key}" if path else str(key))
    elif isinstance(fitting, list) and fitting:
        for place, entry in enumerate(value):
            check_shape(entry, fitting[0], where, f"{path}[{place}]")


def records(source: Source, fields: Sequence[str] | None = None, shape: Shape = None) -> Iterator[Record]:
    """Yield each object of a file, or each row of a table, once its nested values are known to have their shape.

    ``fields`` spares the other columns of a Parquet file.
    """
    for number, record in enumerate(_records(source, fields), 1):
        check_shape(record, shape, f"record {number}")
        yield record


def _records(source: Source, fields: Sequence[str] | None) -> Iterator[Record]:
    """Each object or row, as it is."""
    form = table_format(source)
    if form in ("json", "jsonl"):
        for number, value in enumerate(json_values(source), 1):
            if not isinstance(value, dict):
                raise JudgmentError(
                    f"{source.name}: record {number} is not a JSON object; give the file as it was exported"
                )
            yield value
        return
    if form == "parquet":
        wanted = None if fields is None else (lambda names: [name for name in names if name in set(fields)] or names)
        frame = read_source(source, choose=wanted)[0]
    else:
        frame = read_delimited(source)
    for start in range(0, frame.height, _ROWS_AT_ONCE):
        yield from frame.slice(start, _ROWS_AT_ONCE).iter_rows(named=True)


def json_values(source: Source) -> Iterator[Any]:
    """Yield the elements of an array, or the values that stand one after the other, such as one on each line."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    texts = _text_blocks(source)
    text, more = next(texts, ""), True
    at = len(text) - len(text.lstrip())
    in_array = text[at : at + 1] == "["
    at += in_array
    number = 0
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if at < len(text) and not (in_array and text[at] == "]"):
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                if not more or not _may_go_on(error, text):
                    raise _broken_record(source, number + 1, error) from None
            else:
                number += 1
                yield value
                continue
        elif at < len(text):
            return
        if not more:
            if in_array:
                raise _broken_record(source, number + 1, None)
            return
        # a value larger than what was read asks for twice as much, so that it is not tried too often
        wanted = max(_BLOCK, 2 * (len(text) - at))
        text, at = text[at:], 0
        while len(text) < wanted and more:
            block = next(texts, None)
            more = block is not None
            text += block or ""


def document(source: Source, shape: Shape = None) -> Any:
    """Return what a file with one JSON value holds."""
    values = list(json_values(source)) if source.data[:1] != b"[" else [list(json_values(source))]
    value = values[0] if len(values) == 1 else values
    check_shape(value, shape, "the file")
    return value


def text_rows(source: Source) -> list[list[str]]:
    """Return the rows of a text table as they are, however long each is; rows without any cell are left out."""
    text = source.text()
    first = re.sub(r'"[^"]*"', "", text.lstrip("\n").split("\n", 1)[0])
    separator = max(("\t,;|" if source.suffix in (".tsv", ".tab") else ",\t;|"), key=first.count)
    limit = csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise JudgmentError(f"{source.name} is not readable CSV ({plain(str(error))}); export it again") from None
    finally:
        csv.field_size_limit(limit)
    rows = [row for row in rows if any(row)]
    if len(rows) < 2:
        raise source.no_rows()
    return rows


def text_table(source: Source) -> pl.DataFrame:
    """Return a table with all cells as text, blank ones null, from a text table or objects of plain values."""
    if table_format(source) == "csv":
        return read_delimited(source)
    from .cells import as_text

    rows = list(records(source))
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise source.no_rows()
    return pl.DataFrame({name: pl.Series([as_text(row.get(name)) for row in rows], dtype=pl.String) for name in names})


def frame_of(rows: list[list[str]], names: Sequence[str], source: Source) -> pl.DataFrame:
    """Return rows of text as a table; cells that a short row lacks are null, cells too many are refused."""
    width = len(names)
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise JudgmentError(f"{source.name}: column {doubled!r} appears twice in the header; rename one of them")
    long = next((number for number, row in enumerate(rows, 1) if any(row[width:])), None)
    if long is not None:
        raise JudgmentError(
            f"{source.name}: row {long} has {len(rows[long - 1])} cells where the header has {width}; export it again"
        )
    padded = [[cell or None for cell in row[:width]] + [None] * (width - len(row)) for row in rows]
    return pl.DataFrame(padded, schema=dict.fromkeys(names, pl.String), orient="row")


def _text_blocks(source: Source) -> Iterator[str]:
    """The text of a file block by block, without a byte-order mark and with plain line ends."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = source.start
    for begin in range(start, max(len(source.data), start + 1), _BLOCK):
        block = _bytes(source, begin)
        try:
            text = decoder.decode(block, final=begin + _BLOCK >= len(source.data))
        except UnicodeDecodeError as error:
            raise source.not_utf8(begin + max(error.start, 0)) from None
        yield plain_line_ends(text)


def _bytes(source: Source, begin: int) -> bytes:
    """A block of bytes, read from the file where there is one, so that no mapped pages stay in memory."""
    if source.path is None:
        return source.data[begin : begin + _BLOCK]
    with source.path.open("rb") as handle:
        handle.seek(begin)
        return handle.read(_BLOCK)


def _may_go_on(error: Exception, text: str) -> bool:
    """Whether broken JSON may only be cut off where reading stopped."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - _NEAR_END


def _broken_record(source: Source, number: int, error: Exception | None) -> JudgmentError:
    """The error for a record that is no JSON."""
    if error is None:
        why = "the array is not closed"
    elif isinstance(error, RecursionError):
        why = "nested too deeply"
    else:
        why = plain(error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:100]).lower()
    return JudgmentError(
        f"{source.name}: record {number} is broken JSON ({why}); was the file cut off? export it again"
    )
