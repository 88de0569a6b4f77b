"""Toloka: the TSV of a pool's assignments."""

from __future__ import annotations

import polars as pl

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .crowd_tables import add_answers, chosen_rows, only_input, without_status
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import text_table

_TITLE = "Toloka assignments (INPUT:*, OUTPUT:*)"
_KEPT = ("APPROVED", "ACCEPTED", "SUBMITTED")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the answers of accepted assignments; golden answers are the truth."""
    frame = text_table(source)
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


def _join_inputs(frame: pl.DataFrame, names: list[str]) -> pl.Series:
    """All inputs of a row as one id."""
    return frame.select(pl.concat_str(names, separator=" | ", ignore_nulls=True).alias("INPUT:*")).to_series()
