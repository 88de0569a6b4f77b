"""JSON tables: one object per line, or one array of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import polars as pl

from ..data.column_names import is_known_name
from ..data.files import plain
from ..errors import JudgmentError
from .sources import Source, without_panics

_INT64 = 1 << 63
_DOUBTFUL = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escapes that may be half characters, which polars turns into something else without a word."""

Mixed = dict[str, int]
"""Columns that hold both text and numbers -> first row of the kind that came later."""


def read_lines(source: Source) -> tuple[pl.DataFrame, Mixed]:
    """Return the table of a file with one JSON object per line, and its columns of mixed kinds.

    A file that is one object may hold the table as a list of objects, or by columns, as pandas writes it.
    """
    rows = _unwrap_rows(source)
    if rows is not None:
        return _frame(source, rows)
    return lines_table(source)


def lines_table(source: Source, *, first_line: int = 1) -> tuple[pl.DataFrame, Mixed]:
    """Return the table of one JSON object per line; errors count lines from ``first_line``."""
    frame = _fast(source)
    if frame is not None:
        doubtful = [name for name, dtype in frame.schema.items() if dtype == pl.String and _has_bare(source, name)]
        if not doubtful:
            return frame, {}
    return _frame(source, list(_objects(source, first_line)))


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
        raise JudgmentError(f"{source.name}: {line} is broken JSON ({_reason(error)}); {_SHAPE}") from None


def has_lines(source: Source) -> bool:
    """Return whether a file surely has one object per line and is not one object that holds a table."""
    head = source.data[source.start : source.start + _LOOKED_AT]
    first = head.split(b"\n", 1)[0].strip()
    return source.suffix in (".jsonl", ".ndjson") or (first.endswith(b"}") and len(head) < len(source.data))


def _unwrap_rows(source: Source) -> list[dict[str, Any]] | None:
    """The rows inside a file that is one JSON object; ``None`` where it is none, or is a row itself."""
    if has_lines(source):
        return None
    try:
        parsed = _parse(source.text())
    except (ValueError, RecursionError):
        return None
    return rows_inside(parsed) if isinstance(parsed, dict) else None


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


_LOOKED_AT = 1 << 16

_SHAPE = 'give an array of objects, or one object such as {"item": "a", "grade": 1} on each line'


def _fast(source: Source) -> pl.DataFrame | None:
    """The table as polars reads it, or ``None`` where it fails or may have read something else than was written."""
    if source.start or source.data.find(b"\0") >= 0 or _DOUBTFUL.search(source.data):
        return None
    try:
        with without_panics():
            frame = pl.read_ndjson(source.place, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    if not frame.width or not frame.height:
        return None
    # integers beyond 64 bits can only be ids, and a column of nothing but null is blank text
    odd = [name for name, dtype in frame.schema.items() if dtype in (pl.Int128, pl.Null)]
    return frame.with_columns(pl.col(name).cast(pl.String) for name in odd)


def _has_bare(source: Source, name: str) -> bool:
    """Whether a key is somewhere followed by a number or a truth value, where its column was read as text."""
    key = re.escape(json.dumps(name, ensure_ascii=False).encode())
    return re.search(key + rb"\s*:\s*[-0-9tf]", source.data) is not None or b"\\" in key


def _objects(source: Source, first_line: int) -> Iterator[dict[str, Any]]:
    """The object of each line that is not blank."""
    for number, line in enumerate(source.text().split("\n"), first_line):
        if not line.strip():
            continue
        try:
            row = _parse(line)
        except (ValueError, RecursionError) as error:
            raise JudgmentError(
                f"{source.name}: line {number} is broken JSON ({_reason(error)}); correct or remove that line"
            ) from None
        if not isinstance(row, dict):
            raise JudgmentError(f"{source.name}: line {number} is {json_kind(row)}, not an object; {_SHAPE}")
        yield row


def _parse(text: str) -> Any:
    """JSON as the standard has it, without NaN and Infinity."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    """Refuse a constant that is no JSON."""
    raise ValueError(f"{constant} is not a JSON number; use null")


def _reason(error: Exception) -> str:
    """What is wrong with the JSON, in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return plain(error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:200]).lower()


def json_kind(value: Any) -> str:
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
        number = next(number for number, row in enumerate(rows, 1) if not _whole_characters(row))
        raise JudgmentError(f"{source.name}: row {number} holds half of a character; correct its escapes") from None
    except pl.exceptions.PolarsError as error:
        raise JudgmentError(f"{source.name} is not a table ({_reason(error)}); {_SHAPE}") from None


def _whole_characters(row: dict[str, Any]) -> bool:
    """Whether all text of a row can be written as UTF-8."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(name: str, values: list[Any], mixed: Mixed) -> pl.Series:
    """One column; values of several kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or -_INT64 <= value < _INT64 for value in values):
        return pl.Series(name, values, pl.Int64)
    if kinds and kinds <= {int, float} and float in kinds:
        return pl.Series(name, [None if value is None else _float(value) for value in values], pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds and kinds <= {list, dict}:
        try:
            # a Series of dicts would have the fields of the first one only
            return pl.from_dicts([{name: value} for value in values], infer_schema_length=None)[name]
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            pass
    if str in kinds and len(kinds) > 1:
        first = next(value for value in values if value is not None)
        mixed[name] = 1 + next(
            row
            for row, value in enumerate(values)
            if value is not None and isinstance(value, str) != isinstance(first, str)
        )
    return pl.Series(name, [_text(value) for value in values], pl.String)


def _float(value: float) -> float:
    """A number as a float; one too large for it as infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(value: Any) -> str | None:
    """A value of any kind as text."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
