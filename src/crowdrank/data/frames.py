"""Any table a user holds, as a polars frame, with a row per answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import polars as pl

from ..errors import JudgmentError
from ..wording import either, option
from .column_names import person_column


def to_frame(data: Any) -> pl.DataFrame:
    """Return a polars frame from anything that speaks the Arrow C interface, a dict of columns, or dicts as rows.

    Examples
    --------
    >>> to_frame({"item": ["a", "b"], "grade": [1, 2]}).shape
    (2, 2)
    >>> to_frame({"item": item, "grade": 1} for item in "abc").shape
    (3, 2)
    """
    if isinstance(data, pl.DataFrame | pl.LazyFrame):
        return data if isinstance(data, pl.DataFrame) else data.collect()
    if isinstance(data, Mapping):
        tables = (pl.DataFrame, pl.LazyFrame)
        splits = [name for name, value in data.items() if hasattr(value, "to_polars") or isinstance(value, tables)]
        if splits:
            what = f"this {type(data).__name__} holds the tables {either(map(repr, splits), 'and')}"
            raise JudgmentError(f"{what}; choose one, as in data[{splits[0]!r}]")
        for name, values in data.items():
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise JudgmentError(f"column {name!r} is not a sequence of values; give a list or an array")
        if len({len(values) for values in data.values()}) > 1:
            lengths = ", ".join(f"{name!r} has {len(values)}" for name, values in data.items())
            raise JudgmentError(f"columns differ in length: {lengths}")
        return pl.DataFrame([_column(str(name), values) for name, values in data.items()])
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(data)
        except Exception as error:
            raise JudgmentError(_cannot_convert(data)) from error
    if hasattr(data, "to_polars"):
        # a data set of Hugging Face, whose rows may be a choice among those of its Arrow table
        return to_frame(data.to_polars())
    if isinstance(data, Iterable) and not hasattr(data, "dtype") and not hasattr(data, "frame"):
        rows = [_named_cells(row) for row in data]
        if are_rows(rows):
            for number, row in enumerate(rows, 1):
                if not isinstance(row, Mapping):
                    what = f"row {number} is a {type(row).__name__}, which does not name its columns"
                    pairs = "Preferences.from_rows(rows) with (annotator, query, left, right, winner)"
                    remedy = f"{pairs} or Grades.from_rows(rows) with (annotator, query, item, grade)"
                    raise JudgmentError(f"{what}; give each row as a dict, or call from_rows, as in {remedy}")
            # blank where a row lacks a column
            names = dict.fromkeys(name for row in rows for name in row)
            return pl.DataFrame([_column(str(name), [row.get(name) for row in rows]) for name in names])
    what = f"a {type(data).__name__} is not a table; give a pandas, polars, pyarrow or duckdb frame"
    raise JudgmentError(f"{what}, a dict of columns, or a list of dicts, pydantic models or dataclasses, one per row")


def _named_cells(row: Any) -> Any:
    """A row as a dict, where it is a named tuple, a pydantic model or a dataclass."""
    if hasattr(row, "_asdict"):
        return row._asdict()
    if hasattr(type(row), "model_dump"):
        return row.model_dump(mode="json")
    # judgments are dataclasses too, and no rows
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) and not hasattr(row, "frame") else row


def are_rows(data: Sequence[Any]) -> bool:
    """Return whether these are the rows of one table rather than tables: dicts of single values, or tuples."""

    def is_row(one: Any) -> bool:
        cells = one.values() if isinstance(one, Mapping) else ()
        single = any(isinstance(cell, str) or not hasattr(cell, "__len__") for cell in cells)
        return single or isinstance(one, tuple | list)

    return bool(data) and all(map(is_row, map(_named_cells, data)))


def _column(name: str, values: Any) -> pl.Series:
    """One column of a dict of columns."""
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
            return pl.Series(name, [None if value is None else float(value) for value in values])
        raise JudgmentError(_half_character_message(name, values) or _MIXED_TYPES.format(name)) from error


def _half_character_message(name: str, values: Any) -> str | None:
    """Sentence for a column in which a text holds a lone surrogate, which no encoding can store."""
    for row, value in enumerate(values, 1):
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            what = f"row {row} of column {name!r} holds half of a character (a lone surrogate)"
            return f"{what}; correct it, or replace it by text.encode('utf-8', 'replace').decode()"
    return None


_MIXED_TYPES = "column {!r} mixes integers, text or other kinds of values; turn it into text first"


def _cannot_convert(data: Any) -> str:
    """Sentence naming the column that keeps a foreign frame from being read."""
    for name in getattr(data, "columns", ()):
        kinds = {type(value) for value in list(data[name])[:100_000] if value is not None and value == value}
        half = _half_character_message(str(name), list(data[name])) if str in kinds else None
        if half is not None or len(kinds) > 1:
            return half or _MIXED_TYPES.format(str(name))
    what = f"this {type(data).__name__} could not be read through the Arrow interface"
    return f"{what}; convert its columns to text or numbers"


_FEWEST_RANKED, _FEWEST_PEOPLE = 3, 2
"""Two numbers once each may well be grades, and one person's numbers too."""


def unpivot(data: Any, annotators: Sequence[str], answer: str, *, of: str = "annotator") -> pl.DataFrame:
    """Return one row per filled cell, with the column's name as annotator and its value as ``answer``.

    ``of`` says what the columns stand for, such as ``"item"`` in a survey.

    Examples
    --------
    >>> unpivot({"item": ["x", "y"], "gpt": [1, 2], "kim": [3, None]}, ["gpt", "kim"], "grade").rows()
    [('x', 'gpt', 1), ('y', 'gpt', 2), ('x', 'kim', 3)]
    """
    if isinstance(annotators, str):
        raise JudgmentError(f"{of}s={annotators!r} is one text; give a list of the columns that hold answers")
    frame = to_frame(data)
    absent = [name for name in annotators if name not in frame.columns]
    if not annotators or absent:
        said = f"there is no column {absent[0]!r}" if absent else f"{of}s= is empty"
        raise JudgmentError(f"{said}; {of}s= names the columns that hold answers, out of {', '.join(frame.columns)}")
    if of in annotators:
        raise JudgmentError(f"the column {of!r} is among those of answers; name the columns of answers alone")
    if len({frame[name].dtype == pl.String for name in annotators}) > 1:
        frame = frame.with_columns(pl.col(list(annotators)).cast(pl.String))
    index = [name for name in frame.columns if name not in annotators]
    long = frame.unpivot(on=list(annotators), index=index, variable_name=of, value_name=answer)
    filled = pl.col(answer).is_not_null()
    if long[answer].dtype == pl.String:
        filled &= pl.col(answer).str.strip_chars() != ""
    elif long[answer].dtype.is_float():
        filled &= pl.col(answer).is_not_nan()
    return long.filter(filled)


def refuse_ranks(columns: Sequence[pl.Series], *, by: str, across: bool) -> None:
    """Ask what is meant where everybody gives each number from 1 on once: ranks count the other way round than grades.

    The answers of one person stand in a column, or ``across`` the columns in one row.

    Examples
    --------
    >>> refuse_ranks([pl.Series([1, 2]), pl.Series([3, 1]), pl.Series([2, 3])], by="respondent", across=True)
    Traceback (most recent call last):
    crowdrank.errors.JudgmentError: every respondent gives 1 to 3 once: ranks with 1 for the best (kind='ranking'), or grades with 3 for the best (kind='grade')?
    """  # noqa: E501
    table = pl.DataFrame([one.cast(pl.Float64, strict=False).alias(str(n)) for n, one in enumerate(columns)])
    rows: Iterable[Any] = table.drop_nulls().iter_rows() if across else (column.drop_nulls() for column in table)
    answers = list(map(sorted, rows))
    size = len(answers[0]) if answers and across else len(table)
    wanted = [float(number) for number in range(1, size + 1)]
    few = size < _FEWEST_RANKED or len(answers) < _FEWEST_PEOPLE
    if not few and all(given == wanted for given in answers):
        what = f"every {by} gives 1 to {size} once: ranks with 1 for the best ({option('kind', 'ranking')})"
        raise JudgmentError(f"{what}, or grades with {size} for the best ({option('kind', 'grade')})?")


def survey_rows(data: Any, items: Sequence[str], columns: Mapping[str, str]) -> pl.DataFrame:
    """Return one row per filled cell of a survey: item, grade and annotator, by the row's number if nobody is named.

    Examples
    --------
    >>> survey_rows({"tea": [5, 4], "milk": [2, None]}, ["tea", "milk"], {}).select("item", "grade", "annotator").rows()
    [('tea', 5, '1'), ('tea', 4, '2'), ('milk', 2, '1')]
    """
    frame = to_frame(data)
    rest = [name for name in frame.columns if name not in items]
    who = columns.get("annotator") or person_column(rest)
    if who is not None and who not in frame.columns:
        raise JudgmentError(f"there is no column {who!r} to say who answered; name one of {', '.join(map(repr, rest))}")
    number = pl.Series("annotator", range(1, len(frame) + 1)).cast(pl.String)
    person = number if who is None else frame[who].alias("annotator")
    kept = [name for name in columns.values() if name in rest and name != who]
    return unpivot(frame.select(*items, *kept).with_columns(person), items, "grade", of="item")
