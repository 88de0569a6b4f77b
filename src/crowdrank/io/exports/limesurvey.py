"""LimeSurvey: the table of responses, its columns called by question codes or by the questions themselves."""

from __future__ import annotations

import re

import polars as pl

from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_seconds
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import text_table
from .surveys import add_survey, is_scale

_TITLE = "LimeSurvey responses (id, submitdate, lastpage)"
_ROW = re.compile(r"(.*?)\s*\[([^\[\]]+)\]", re.DOTALL)
_CODED = re.compile(r"(.+?)\[[^\]]*\]\.?\s+(.*?)\s*\[([^\[\]]+)\]", re.DOTALL)
"""Codes and texts together: rate[SQ001]. How useful? [Saw]."""

_NOT_ANSWERS = re.compile(r"(?i).*(\[other\]|\[comment\]|comment\]|time)")
WHO, SENT = ("id", "response id"), ("submitdate", "date submitted")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one judgment for each filled cell of a question with several rows; responses not sent are left out."""
    rows = Collector(source, options, unit="response")
    frame = chosen_rows(rows, text_table(source))
    who, sent = (next((one for one in frame.columns if one.lower() in names), None) for names in (WHO, SENT))
    if who is None or sent is None:
        raise JudgmentError("the columns id and submitdate are missing; export the responses with them")
    done = frame[sent].is_not_null() & (frame[sent].fill_null("") != "1980-01-01 00:00:00")
    if not done.all() and options.keep is None:
        rows.drop("not submitted", int((~done).sum()))
        frame = frame.filter(done)
    if not frame.height:
        raise JudgmentError(f"no response was submitted; to read them all the same: {option('keep', ['incomplete'])}")
    questions = _questions(frame)
    items = questions[choose_question(questions, options.answer)]
    cells = {"annotator": frame[who]}
    rows.roles["annotator"] = who
    times = pl.Series([as_seconds(value) for value in frame[sent].to_list()], dtype=pl.Float64)
    if not times.null_count():
        cells["time"] = times
        rows.roles["time"] = sent
    return rows.finish(add_survey(rows, frame, items, cells), title=_TITLE)


def _questions(frame: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Questions with several rows, and the row of each column."""
    rows: dict[str, dict[str, str]] = {}
    for name in frame.columns:
        match = _CODED.fullmatch(name) or _ROW.fullmatch(name)
        if match and not _NOT_ANSWERS.fullmatch(name):
            rows.setdefault(match[1], {})[name] = match[match.lastindex or 2].strip()
    scales = {
        asked: items
        for asked, items in rows.items()
        if len(items) > 1 and is_scale([value for name in items for value in frame[name].drop_nulls().to_list()])
    }
    if not scales:
        raise JudgmentError(
            f"no question has several rows, with columns such as rate[SQ001] and rate[SQ002]; the columns are "
            f"{first_few(map(repr, frame.columns), shown=40)}"
        )
    return scales
