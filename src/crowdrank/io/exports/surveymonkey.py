"""SurveyMonkey: the table of individual responses, with two header rows."""

from __future__ import annotations

import re

import polars as pl

from ...errors import JudgmentError
from ...wording import first_few
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_seconds
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import frame_of, text_rows
from .surveys import add_survey, is_scale

_TITLE = "SurveyMonkey responses (Respondent ID, Collector ID and two header rows)"
_ASIDE = re.compile(r"(?i)open-ended response|other \(.*\)|response|comments?.*")
_TIMES = ("End Date", "Date Modified", "Start Date", "Date Created")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one judgment for each filled cell of a question with several rows; addresses are not read."""
    lines = text_rows(source)
    if len(lines) < 3:
        raise JudgmentError("two header rows and no response; export it once somebody has answered")
    width = max(map(len, lines))
    first, second = (line + [""] * (width - len(line)) for line in lines[:2])
    columns: dict[str, tuple[str, str]] = {}
    question = ""
    names = []
    for place, (title, row) in enumerate(zip(first, second, strict=True)):
        question = title or question
        name = f"{question} [{row}]" if row else question
        name = name if name not in names and name else f"{name} ({place + 1})"
        names.append(name)
        if row and not _ASIDE.fullmatch(row):
            columns[name] = (question, row)
    rows = Collector(source, options, unit="response")
    frame = chosen_rows(rows, frame_of([line[:width] for line in lines[2:]], names, source))
    questions: dict[str, dict[str, str]] = {}
    for name, (asked, row) in columns.items():
        questions.setdefault(asked, {})[name] = row
    items = _scales(frame, questions)
    chosen = items[choose_question(items, options.answer)]
    who = next((name for name in names if re.sub(r"[^a-z]", "", name.lower()) == "respondentid"), None)
    if who is None:
        raise JudgmentError("no column is called Respondent ID; export all responses with it")
    cells = {"annotator": frame[who]}
    rows.roles["annotator"] = who
    when = next((name for name in _TIMES if name in names and frame[name].null_count() == 0), None)
    if when is not None:
        cells["time"] = pl.Series([as_seconds(value) for value in frame[when].to_list()], dtype=pl.Float64)
        rows.roles["time"] = when
    return rows.finish(add_survey(rows, frame, chosen, cells), title=_TITLE)


def _scales(frame: pl.DataFrame, questions: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The questions with several rows that are answered by numbers or few words."""
    scales = {}
    for asked, items in questions.items():
        values = [value for name in items for value in frame[name].drop_nulls().to_list()]
        if len(items) > 1 and is_scale(values):
            scales[asked] = items
    if not scales:
        named = f" ({first_few(map(repr, questions))})" if questions else ""
        raise JudgmentError(
            f"no question{named} has several rows that are rated or ranked: a ranking needs a matrix or ranking "
            "question, with one column for each row"
        )
    return scales
