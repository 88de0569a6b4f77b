"""Survey tables with one row per respondent and one column per item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ...data.frames import refuse_ranks
from ...errors import JudgmentError
from ...wording import counted, first_few, option
from .cells import as_number
from .imported import Collector
from .set_columns import are_places

_MOST_WORDS = 12


def is_scale(values: Sequence[str]) -> bool:
    """Whether answers are numbers or few words, and no free text."""
    return bool(values) and (all(as_number(value) is not None for value in values) or len(set(values)) <= _MOST_WORDS)


def add_survey(rows: Collector, frame: pl.DataFrame, items: Mapping[str, str], cells: Mapping[str, pl.Series]) -> str:
    """Add one judgment for each filled cell of the columns ``items`` (column -> item); return the kind.

    Where every respondent gives each number from 1 on once, these may be ranks, which count the other way round than
    grades: that is asked and not assumed.
    """
    rows.survey = True
    if (places := places_of(frame, items)) is not None:
        return _add_places(rows, frame, places, cells)
    kind = rows.options.kind or "grade"
    frame = frame.with_columns(_without_endings(frame[name]) for name in items)
    if _are_boxes(frame, list(items)):
        return _add_boxes(rows, frame, items, cells)
    if rows.options.kind is None:
        refuse_ranks([frame[name] for name in items], by="respondent", across=True)
    if kind not in ("grade", "ranking"):
        raise JudgmentError(f"the file holds grades or ranks of items, not {kind}s; leave {option('kind')} out")
    cells = dict(cells) | _chosen_columns(rows, frame)
    word, blank = ("grade" if kind == "grade" else "rank"), 0
    for column, item in items.items():
        filled = frame[column].is_not_null()
        blank += int((~filled).sum())
        parts: dict[str, Any] = {name: series.filter(filled) for name, series in cells.items()}
        answers = frame[column].filter(filled)
        value = answers.cast(pl.Float64, strict=False) if word == "rank" else answers
        rows.add_frame(pl.DataFrame({word: value, **parts}).with_columns(item=pl.lit(item)))
    rows.roles["item"] = "one column each"
    rows.roles[word] = ", ".join(list(items)[:3]) + (", ..." if len(items) > 3 else "")
    if blank:
        rows.notes.append(f"{counted(blank, 'blank cell')} not judged")
    return kind


def places_of(frame: pl.DataFrame, items: Mapping[str, str]) -> dict[str, int] | None:
    """Return the place of each column whose row is a place (1, 2, ...) and whose cells are the items put there."""
    if not are_places(list(items.values())):
        return None
    places = {column: int(re.sub(r"\D", "", row)) for column, row in items.items()}
    cells = frame.select(list(items))
    given = [[value for value in row if value is not None] for row in cells.iter_rows()]
    words = all(as_number(value) is None for row in given for value in row)
    return places if words and any(given) and all(len(set(row)) == len(row) for row in given) else None


def _add_places(rows: Collector, frame: pl.DataFrame, places: Mapping[str, int], cells: Mapping[str, pl.Series]) -> str:
    """Add a ranking for each respondent: the item in each place."""
    if rows.options.kind not in (None, "ranking"):
        raise JudgmentError(f"the file holds rankings, not {rows.options.kind}s; leave {option('kind')} out")
    cells = dict(cells) | _chosen_columns(rows, frame)
    for column, place in places.items():
        filled = frame[column].is_not_null()
        parts = {name: series.filter(filled) for name, series in cells.items()}
        rows.add_frame(
            pl.DataFrame({"item": frame[column].filter(filled), **parts}).with_columns(rank=pl.lit(float(place)))
        )
    rows.roles |= {"item": "what was put in each place", "rank": "one column for each place"}
    return "ranking"


def _without_endings(answers: pl.Series) -> pl.Series:
    """Places such as 1st and 2nd as numbers; other answers as they are."""
    numbers = answers.str.extract(r"(?i)^\s*(\d+)\s*(?:st|nd|rd|th|\.|º|ª|er|e)\s*$")
    return numbers if numbers.null_count() == answers.null_count() < len(answers) else answers


def _are_boxes(frame: pl.DataFrame, names: list[str]) -> bool:
    """Whether the columns are boxes of one question, each blank or ticked."""
    held = [frame[name].drop_nulls().unique().to_list() for name in names]
    blank = sum(frame[name].null_count() for name in names)
    ticks = {cell for cells in held for cell in cells}
    are_marks = len(ticks) > 1 or ticks <= {"1", "x", "X", "Y", "true", "TRUE", "True"}
    return frame.height > 1 and blank > 0 and all(len(cells) < 2 for cells in held) and bool(ticks) and are_marks


def _add_boxes(rows: Collector, frame: pl.DataFrame, items: Mapping[str, str], cells: Mapping[str, pl.Series]) -> str:
    """Add a grade of 1 for each box that was ticked, and of 0 for those left blank by who ticked another."""
    answered = frame.select(pl.any_horizontal(pl.col(list(items)).is_not_null())).to_series()
    parts = {name: series.filter(answered) for name, series in (dict(cells) | _chosen_columns(rows, frame)).items()}
    for column, item in items.items():
        ticked = frame[column].filter(answered).is_not_null().cast(pl.Int8).cast(pl.String)
        rows.add_frame(pl.DataFrame({"grade": ticked, **parts}).with_columns(item=pl.lit(item)))
    rows.roles |= {"item": "one column each", "grade": "1 where ticked"}
    rows.notes.append("each column is ticked or blank: grade 1 if it was ticked, 0 if only others were")
    if not answered.all():
        rows.drop("without an answer", int((~answered).sum()))
    return "grade"


def _chosen_columns(rows: Collector, frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Columns that the user names for a word; items and answers are the columns of the question."""
    columns: dict[str, pl.Series] = {}
    for word, name in rows.options.columns.items():
        if word in ("item", "grade", "rank") or name not in frame.columns:
            raise JudgmentError(
                f"{option('columns', {word: name})} names no column of respondents; there are "
                f"{first_few(map(repr, frame.columns), shown=40)}"
            )
        columns[word] = frame[name]
    return columns
