"""Mechanical Turk: the CSV of a batch's results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_text, as_truth
from .crowd_tables import add_answers, chosen_rows, only_input, without_status
from .imported import Collector, Imported
from .streaming import frame_of, text_rows

_TITLE = "Mechanical Turk batch results (HITId, WorkerId, Answer.*)"
_ASIDE = re.compile(r"(?i)^(comments?|feedback|suggestions?)|^submit|time$|^(ip|useragent|browser)$")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the answers of all assignments that were not rejected."""
    lines = text_rows(source)
    # the header ends in Approve and Reject, for which no row has cells
    frame = frame_of(lines[1:], lines[0], source)
    rows = Collector(source, options, unit="assignment")
    frame = without_status(rows, chosen_rows(rows, frame), "AssignmentStatus", None, ["Rejected"])
    frame = _with_questions(frame)
    answer = _answer(frame, options.answer)
    inputs = {name.removeprefix("Input."): name for name in frame.columns if name.startswith("Input.")}
    cells = {"annotator": "WorkerId", "time": "SubmitTime", "duration": "WorkTimeInSeconds"}
    kind = add_answers(rows, frame, answer, inputs, cells, item=only_input(frame, inputs) or "HITId")
    return rows.finish(kind, title=_TITLE)


def _answer(frame: pl.DataFrame, wanted: str | None) -> str:
    """The column of answers: the one asked for, or the only one that is no comment and no time."""
    names = [name for name in frame.columns if name.startswith("Answer.")]
    if not names:
        raise JudgmentError("there is no column Answer.*; give the file of results as Mechanical Turk wrote it")
    if wanted is not None:
        known = next((name for name in (wanted, f"Answer.{wanted}") if name in names), None)
        if known is None:
            raise JudgmentError(
                f"there is no Answer column {wanted!r}; there are {first_few(map(repr, names), shown=20)}"
            )
        return known
    answers = [
        n for n in names if not _ASIDE.search(n.removeprefix("Answer.")) and frame[n].null_count() < frame.height
    ]
    if len(answers) == 1:
        return answers[0]
    listed = first_few([repr(name.removeprefix("Answer.")) for name in answers or names], shown=20)
    first = (answers or names)[0].removeprefix("Answer.")
    raise JudgmentError(f"which Answer column is meant? there are {listed}; choose one with {option('answer', first)}")


def _with_questions(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with one column for a question whose options have a true or false column each, or that is JSON."""
    frame = _without_json(frame)
    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        if name.startswith("Answer.") and name.count(".") > 1:
            groups.setdefault(name.rsplit(".", 1)[0], []).append(name)
    for question, names in groups.items():
        cells = {value for name in names for value in frame[name].drop_nulls().unique().to_list()}
        if len(names) < 2 or not cells or any(as_truth(value) is None for value in cells):
            continue
        chosen = [
            [name.rsplit(".", 1)[1] for name, value in zip(names, row, strict=True) if as_truth(value)]
            for row in frame.select(names).iter_rows()
        ]
        several = any(len(options) > 1 for options in chosen)
        answers = [json.dumps(options) if several else options[0] if options else None for options in chosen]
        column = pl.Series(question, answers, dtype=pl.String)
        frame = frame.drop(names).with_columns(column)
    return frame


def _without_json(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with the answers that newer forms put into one JSON cell as columns of their own."""
    name = "Answer.taskAnswers"
    if name not in frame.columns:
        return frame
    answers_by_row = [_task_answers(value) for value in frame[name].to_list()]
    keys = dict.fromkeys(key for answers in answers_by_row for key in answers)
    columns = [pl.Series(f"Answer.{key}", [one.get(key) for one in answers_by_row], dtype=pl.String) for key in keys]
    return frame.drop(name).with_columns(columns)


def _task_answers(value: str | None) -> dict[str, str | None]:
    """The answers in a JSON cell by question; of a group of boxes or buttons the one that is on."""
    try:
        parsed: Any = json.loads(value or "{}")
    except (ValueError, RecursionError):
        return {}
    parsed = parsed[0] if isinstance(parsed, list) and parsed else parsed
    if not isinstance(parsed, Mapping):
        return {}
    answers: dict[str, str | None] = {}
    for key, answer in parsed.items():
        if isinstance(answer, Mapping):
            on = [str(name) for name, flag in answer.items() if flag is True]
            boxes = answer and all(isinstance(flag, bool) for flag in answer.values())
            answers[str(key)] = (on[0] if len(on) == 1 else None) if boxes else as_text(answer.get("label", answer))
        else:
            answers[str(key)] = as_text(answer)
    return answers
