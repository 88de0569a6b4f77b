"""Any list of texts in the order of a question: the same engine, with features of the texts learning along."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ..data.column_names import plain_name
from ..data.frames import to_frame
from ..errors import DataWarning, ParameterError
from ..features.extraction import texts as features_of_texts
from ..features.raw_items import CONTENT_COLUMNS
from ..io.tables import read_table
from .answers import Answers
from .running import JudgeRun, judge

_MIN_THINGS_TO_LEARN = 30
"""Fewer things are all asked about, so that features would tell nothing more."""


def sort(
    things: Any, ask: str, models: Any, *, goal: str = "top-10", orders: str = "random",
    columns: Mapping[str, str] | None = None, **given: Any,
) -> JudgeRun:  # fmt: skip
    """Order texts by a question, such as which is more urgent, and ask models about few of them.

    Features of the texts (style and words) learn along: most things are never asked about, and have the score that
    their texts predict.

    Parameters
    ----------
    things
        A list of texts; or a table or file with text [, item]; or a text file with a thing on each line.
    ask
        The question, which two texts are shown with.
    models
        As for :func:`judge`.
    goal
        What should be sure: the first places (``"top-10"``), the ``"best"`` or the whole ``"order"``.
    orders
        One order of each pair at ``"random"``, or ``"both"``.
    columns
        Our word (item, content) -> name of the column.
    **given
        Further arguments of :func:`judge`, such as ``calls``, ``budget`` and ``out``.

    Examples
    --------
    >>> def more_urgent(question):
    ...     first, second = (text.count("!") for text in question.texts)
    ...     return {"winner": "A" if first > second else "B" if second > first else "tie"}
    >>> things = ["later", "soon!", "now!!", "at once!!!"]
    >>> sort(things, "Which is more urgent?", more_urgent, goal="best", calls=30).consensus.order()[0]
    '4'
    """
    table = _table(things, columns)
    if len(table) >= _MIN_THINGS_TO_LEARN:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            given["features"] = features_of_texts(table, columns={"item": "item", "text": "content"})
    return judge(table, models, question=ask, goal=goal, orders=orders, **given)


def _table(things: Any, columns: Mapping[str, str] | None) -> pl.DataFrame:
    """Things as a table of item and content; those without an id are numbered."""
    if isinstance(things, str | os.PathLike):
        if Path(things).suffix.lower() in (".txt", ".md"):
            lines = Path(things).read_text("utf-8").splitlines()
            return _table([line for line in lines if line.strip()], None)
        frame = read_table(things)
    elif isinstance(things, list | tuple) and all(isinstance(one, str) for one in things):
        frame = pl.DataFrame({"content": list(things)})
    else:
        frame = to_frame(things)
    if not len(frame):
        raise ParameterError("there is nothing to sort; give a row or a line for each thing")
    names = {plain_name(name) for name in frame.columns}
    content = (columns or {}).get("content")
    if (content is not None or names & {"content", *CONTENT_COLUMNS["text"]}) and frame.width == 1:
        frame = frame.with_columns(item=pl.Series([str(row) for row in range(1, len(frame) + 1)]))
    answers = Answers.of(frame, columns)
    if answers.recurs:
        raise ParameterError("an item stands twice in the list; give each thing an id of its own")
    return pl.DataFrame({"item": answers.item, "content": answers.content})
