"""Google Forms: the table of responses to a grid question."""

from __future__ import annotations

import re

import polars as pl

from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_seconds
from .crowd_tables import chosen_rows, labels_in
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import text_table
from .surveys import add_survey

_TITLE = "Google Forms responses (questions with [rows])"
_GRID = re.compile(r"(.*?)\s*\[(.+)\]", re.DOTALL)
_WHO = re.compile(r"(?i)e-?mail|username|nombre de usuario|nutzername|benutzername|nom d'utilisateur")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one judgment for each filled cell of a grid question."""
    rows = Collector(source, options, unit="response")
    frame = chosen_rows(rows, text_table(source))
    questions: dict[str, dict[str, str]] = {}
    for name in frame.columns:
        if match := _GRID.fullmatch(name):
            questions.setdefault(match[1] or "the grid", {})[name] = match[2].strip()
    question = choose_question(questions, options.answer)
    items = questions[question]
    who = None if "annotator" in options.columns else _who(frame, items)
    people = frame[who] if who else pl.Series([str(number) for number in range(1, frame.height + 1)])
    cells = {"annotator": people}
    rows.roles["annotator"] = who or "number of the row"
    times = pl.Series([as_seconds(value) for value in frame.to_series(0).to_list()], dtype=pl.Float64)
    if times.null_count() < len(times):
        cells["time"] = times
        rows.roles["time"] = frame.columns[0]
    labels = labels_in(pl.concat([frame[name] for name in items]).drop_nulls(), ", ")
    if labels is not None and not options.nominal:
        named = list(dict.fromkeys(label for given in labels for label in given))
        raise JudgmentError(
            f"the grid has boxes, of which several may be ticked ({first_few(map(repr, named))}); ask for one answer "
            f"in each row, or take what was ticked together as a class with {option('nominal', True)}"
        )
    kind = add_survey(rows, frame, items, cells)
    return rows.finish(kind, title=_TITLE, metric=question)


def _who(frame: pl.DataFrame, items: dict[str, str]) -> str | None:
    """The column of e-mail addresses or user names, by its title, or by what it holds."""
    free = [name for name in frame.columns[1:] if name not in items and frame[name].null_count() == 0]
    named = [name for name in free if _WHO.search(name)]
    held = [name for name in free if frame[name].str.contains(r"^\S+@\S+\.\S+$").all()]
    return next(iter(named + held), None)
