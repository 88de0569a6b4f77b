"""Any table a user holds, as a polars frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ..errors import JudgmentError
from ..wording import either


def to_frame(data: Any) -> pl.DataFrame:
    """Return a polars frame from anything that speaks the Arrow C interface, a dict of columns, or dicts as rows.

    Examples
    --------
    >>> to_frame({"item": ["a", "b"], "grade": [1, 2]}).shape
    (2, 2)
    >>> to_frame({"item": item, "grade": 1} for item in "abc").shape
    (3, 2)
    """
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, Mapping):
        splits = [name for name, value in data.items() if _makes_frame(value)]
        if splits:
            raise JudgmentError(
                f"this {type(data).__name__} holds the tables {either(map(repr, splits), 'and')}; choose one, as in "
                f"data[{splits[0]!r}]"
            )
        return pl.DataFrame([_column(str(name), values) for name, values in _of_one_length(data).items()])
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(data)
        except Exception as error:
            raise JudgmentError(_cannot_convert(data)) from error
    if hasattr(data, "to_polars"):
        # a data set of Hugging Face, whose rows may be a choice among those of its Arrow table
        return to_frame(data.to_polars())
    if isinstance(data, Iterable) and not hasattr(data, "dtype") and not hasattr(data, "frame"):
        rows = list(data)
        if are_rows(rows):
            return pl.DataFrame([_column(name, cells) for name, cells in _columns_of_rows(rows).items()])
    raise JudgmentError(
        f"a {type(data).__name__} is not a table; give a pandas, polars, pyarrow or duckdb frame, a dict of columns, "
        "or a list of dicts, one per row"
    )


def are_rows(data: Sequence[Any]) -> bool:
    """Return whether these are the rows of one table rather than tables: dicts of single values, or tuples."""

    def is_row(one: Any) -> bool:
        cells = one.values() if isinstance(one, Mapping) else ()
        single = any(isinstance(cell, str) or not hasattr(cell, "__len__") for cell in cells)
        return single or isinstance(one, tuple | list)

    return bool(data) and all(map(is_row, data))


def _makes_frame(value: Any) -> bool:
    """Whether a value is a table itself."""
    return hasattr(value, "to_polars") or isinstance(value, pl.DataFrame | pl.LazyFrame)


def _columns_of_rows(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The columns of dicts or named tuples, blank where a row lacks one."""
    named = [row._asdict() if hasattr(row, "_asdict") else row for row in rows]
    for number, row in enumerate(named, 1):
        if not isinstance(row, Mapping):
            raise JudgmentError(
                f"row {number} is a {type(row).__name__}, which does not name its columns; give each row as a dict, or "
                "call from_rows, as in Preferences.from_rows(rows) with (annotator, query, left, right, winner) or "
                "Grades.from_rows(rows) with (annotator, query, item, grade)"
            )
    names = dict.fromkeys(name for row in named for name in row)
    return {str(name): [row.get(name) for row in named] for name in names}


def _of_one_length(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The same columns, once it is clear that they are of one length."""
    lengths = {}
    for name, values in data.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise JudgmentError(f"column {name!r} is not a sequence of values; give a list or an array")
        lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        raise JudgmentError(
            "columns differ in length: " + ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
        )
    return data


def _column(name: str, values: Any) -> pl.Series:
    """One column of a dict of columns."""
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
            return pl.Series(name, [None if value is None else float(value) for value in values])
        raise JudgmentError(_half_character_message(name, values) or _mixed_types_message(name)) from error


def _half_character_message(name: str, values: Any) -> str | None:
    """Sentence for a column in which a text holds a lone surrogate, which no encoding can store."""
    for row, value in enumerate(values, 1):
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            what = f"row {row} of column {name!r} holds half of a character (a lone surrogate)"
            return f"{what}; correct it, or replace it by text.encode('utf-8', 'replace').decode()"
    return None


def _mixed_types_message(name: str) -> str:
    """Sentence for a column whose values are of several types."""
    return f"column {name!r} mixes integers, text or other kinds of values; turn it into text first"


def _cannot_convert(data: Any) -> str:
    """Sentence naming the column that keeps a foreign frame from being read."""
    for name in getattr(data, "columns", ()):
        kinds = {type(value) for value in list(data[name])[:100_000] if value is not None and value == value}
        half = _half_character_message(str(name), list(data[name])) if str in kinds else None
        if half is not None:
            return half
        if len(kinds) > 1:
            return _mixed_types_message(str(name))
    what = f"this {type(data).__name__} could not be read through the Arrow interface"
    return f"{what}; convert its columns to text or numbers"
