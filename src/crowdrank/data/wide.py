"""Tables with one column per annotator, as panels of LLM judges are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ..errors import JudgmentError
from .frames import to_frame


def unpivot(data: Any, annotators: Sequence[str], answer: str) -> pl.DataFrame:
    """Return one row per filled cell, with the column's name as annotator and its value as ``answer``.

    Examples
    --------
    >>> unpivot({"item": ["x", "y"], "gpt": [1, 2], "kim": [3, None]}, ["gpt", "kim"], "grade").rows()
    [('x', 'gpt', 1), ('y', 'gpt', 2), ('x', 'kim', 3)]
    """
    if isinstance(annotators, str):
        raise JudgmentError(f"annotators={annotators!r} is one text; give a list of the columns that hold answers")
    frame = to_frame(data)
    absent = [name for name in annotators if name not in frame.columns]
    if not annotators or absent:
        said = f"there is no column {absent[0]!r}" if absent else "annotators= is empty"
        raise JudgmentError(
            f"{said}; annotators= names the columns that hold answers, out of {', '.join(frame.columns)}"
        )
    kinds = {frame[name].dtype == pl.String for name in annotators}
    if len(kinds) > 1:
        frame = frame.with_columns(pl.col(list(annotators)).cast(pl.String))
    index = [name for name in frame.columns if name not in annotators]
    long = frame.unpivot(on=list(annotators), index=index, variable_name="annotator", value_name=answer)
    filled = pl.col(answer).is_not_null()
    if long[answer].dtype == pl.String:
        filled &= pl.col(answer).str.strip_chars() != ""
    elif long[answer].dtype.is_float():
        filled &= pl.col(answer).is_not_nan()
    return long.filter(filled)
