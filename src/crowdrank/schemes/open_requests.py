"""Requests that are out and not answered yet, from a table such as schemes themselves give."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.column_names import understand_items, understand_pairs
from ..data.frames import to_frame
from ..data.judgments import Grades
from ..errors import JudgmentError
from ..protocols import Ints
from .situation import OpenRequests


def open_requests(judgments: Any, table: Any) -> OpenRequests:
    """Return what a table says was asked for: [query,] item (or left, right) [, annotator] [, n_more].

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 0)])
    >>> open_requests(grades, {"query": ["q"], "item": ["x"], "n_more": [2]}).things["item"].tolist()
    [0, 0]
    """
    frame = to_frame(table)
    if isinstance(judgments, Grades):
        names = understand_items(frame.columns)
        sides = {"item": names["item"]}
    else:
        columns = understand_pairs(frame.columns)
        if columns is None:
            raise JudgmentError("the open requests name no left and right item; preferences are asked about pairs")
        names, sides = columns, {"left": columns["left"], "right": columns["right"]}
    if not judgments.items.single and "query" not in names:
        raise JudgmentError("the open requests have no query column but the judgments name queries; add it")
    query = frame[names["query"]] if "query" in names and not judgments.items.single else None
    codes = {side: judgments.items.codes(query, frame[name]) for side, name in sides.items()}
    for side, of_side in codes.items():
        if len(of_side) and of_side.min() < 0:
            row = int(np.argmin(of_side))
            raise JudgmentError(
                f"row {row + 1} of the open requests asks about {frame[sides[side]][row]!r}, which is not a known "
                "item; leave it out, or name it in the list of items"
            )
    number = _numbers(frame)
    things: dict[str, Ints] = {side: np.repeat(of_side, number) for side, of_side in codes.items()}
    who = frame["annotator"].gather(np.repeat(np.arange(len(frame)), number)) if "annotator" in frame.columns else None
    return OpenRequests(things, None if who is None or who.dtype == pl.Null else who)


def _numbers(frame: pl.DataFrame) -> Any:
    """How many judgments each row asks for."""
    if "n_more" not in frame.columns:
        return np.ones(len(frame), np.int64)
    number = frame["n_more"].cast(pl.Int64, strict=False)
    bad = number.is_null() | (number < 0)
    if bad.any():
        raise JudgmentError(
            f"row {int(bad.arg_max() or 0) + 1} of the open requests has an n_more that is not a whole number; "
            "correct it"
        )
    return number.to_numpy()
