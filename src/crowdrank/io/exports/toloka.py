"""Toloka: the assignments of a pool, as the TSV or as the API returns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from ..tables import table_format
from .cells import as_text
from .crowd_tables import add_answers, chosen_rows, only_input, without_status
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import Shape, records, text_table

_TITLE = "Toloka assignments (INPUT:*, OUTPUT:*)"
_KEPT = ("APPROVED", "ACCEPTED", "SUBMITTED")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the answers of accepted assignments; golden answers are the truth."""
    frame = _assignments(source)
    rows = Collector(source, options, unit="row")
    if "ASSIGNMENT:worker_id" not in frame.columns and any(name.startswith("CONFIDENCE:") for name in frame.columns):
        raise JudgmentError("this is an aggregated result, without the answers of workers; download the assignments")
    frame = without_status(rows, chosen_rows(rows, frame), "ASSIGNMENT:status", _KEPT, [])
    outputs = [n.removeprefix("OUTPUT:") for n in frame.columns if n.startswith("OUTPUT:")]
    filled = [name for name in outputs if frame[f"OUTPUT:{name}"].null_count() < frame.height]
    wanted = None if options.answer is None else options.answer.removeprefix("OUTPUT:")
    answer = choose_question(filled or outputs, wanted)
    inputs = {name.removeprefix("INPUT:"): name for name in frame.columns if name.startswith("INPUT:")}
    submitted = "ASSIGNMENT:submitted"
    time = submitted if submitted in frame.columns and not frame[submitted].null_count() else "ASSIGNMENT:started"
    cells = {"annotator": "ASSIGNMENT:worker_id", "time": time}
    item = only_input(frame, inputs) or "ASSIGNMENT:task_id"
    if item not in frame.columns:
        # default downloads lack the task's id: the inputs together are the task
        frame = frame.with_columns(_join_inputs(frame, list(inputs.values())))
        item = "INPUT:*"
    kind = add_answers(rows, frame, f"OUTPUT:{answer}", inputs, cells, item=item, gold=f"GOLDEN:{answer}")
    return rows.finish(kind, title=_TITLE)


_SOLUTION: Shape = {"output_values": {}}
_SHAPE: Shape = {"tasks": [{"input_values": {}, "known_solutions": [_SOLUTION]}], "solutions": [_SOLUTION]}


def _assignments(source: Source) -> pl.DataFrame:
    """The table of answers; assignments as the API returns them get a row for each of their tasks."""
    first = next(records(source), {}) if table_format(source) != "csv" else {}
    if not isinstance(first.get("solutions"), list):
        return text_table(source)
    rows = [row for assignment in records(source, shape=_SHAPE) for row in _rows_of(assignment)]
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({n: pl.Series([as_text(row.get(n)) for row in rows], dtype=pl.String) for n in names})


def _rows_of(assignment: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each task of an assignment, under the names that the TSV has."""
    of_assignment = {word: assignment.get(name) for word, name in _ASSIGNMENT.items()}
    for task, solution in zip(assignment.get("tasks") or (), assignment.get("solutions") or (), strict=False):
        known = task.get("known_solutions") or []
        parts = {
            "INPUT": task.get("input_values"),
            "OUTPUT": solution.get("output_values"),
            # of several right answers none is the right one
            "GOLDEN": known[0].get("output_values") if len(known) == 1 else None,
        }
        cells = {f"{part}:{name}": value for part, held in parts.items() for name, value in (held or {}).items()}
        yield (
            cells
            | {f"ASSIGNMENT:{word}": value for word, value in of_assignment.items()}
            | {"ASSIGNMENT:task_id": task.get("id")}
        )


_ASSIGNMENT = {
    "worker_id": "user_id", "status": "status", "started": "created", "submitted": "submitted", "assignment_id": "id",
}  # fmt: skip
"""Name in the TSV -> name in the API."""


def _join_inputs(frame: pl.DataFrame, names: list[str]) -> pl.Series:
    """All inputs of a row as one id."""
    return frame.select(pl.concat_str(names, separator=" | ", ignore_nulls=True).alias("INPUT:*")).to_series()
