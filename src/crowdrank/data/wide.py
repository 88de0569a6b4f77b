"""Tables with one column per annotator, as panels of LLM judges are stored, or one per item, as surveys are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..errors import JudgmentError
from ..wording import option
from .column_names import person_column
from .frames import to_frame

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
    kinds = {frame[name].dtype == pl.String for name in annotators}
    if len(kinds) > 1:
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
    numbers = [column.cast(pl.Float64, strict=False) for column in columns]
    if across:
        full = pl.DataFrame([column.alias(str(n)) for n, column in enumerate(numbers)]).drop_nulls()
        answers = [list(row) for row in full.iter_rows()]
    else:
        answers = [column.to_list() for column in numbers]
    size = len(answers[0]) if answers else 0
    wanted = [float(number) for number in range(1, size + 1)]
    if size < _FEWEST_RANKED or len(answers) < _FEWEST_PEOPLE:
        return
    if all(None not in given and sorted(given) == wanted for given in answers):
        raise JudgmentError(
            f"every {by} gives 1 to {size} once: ranks with 1 for the best ({option('kind', 'ranking')}), or grades "
            f"with {size} for the best ({option('kind', 'grade')})?"
        )


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
