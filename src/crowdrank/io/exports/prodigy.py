"""Prodigy: one JSON object per line, with what was accepted, rejected or ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_text, message_text
from .imported import Collector, Imported
from .questions import add_labels, as_labels
from .streaming import Shape, records

_TITLE = "a Prodigy data set (_input_hash, _task_hash, answer)"
_SHAPE: Shape = {"options": [{}], "config": {}, "mapping": {}}
_MANUAL = ("_manual", "relations", "text_input")
"""Ends of the names of views in which something is drawn or written."""


def read(source: Source, options: ReadOptions) -> Imported:
    """Return chosen options as classes, or accept and reject as 1 and 0."""
    rows = Collector(source, options)
    answers: list[tuple[Any, str | None, list[str], dict[str, Any]]] = []
    several = False
    for record in records(source, shape=_SHAPE):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        answer = as_text(record.get("answer"))
        cells = {
            "annotator": as_text(record.get("_annotator_id")) or as_text(record.get("_session_id")),
            "time": record.get("_timestamp"),
        }
        where = record if options.columns else None
        if answer not in ("accept", "reject"):
            rows.drop("ignore" if answer == "ignore" else "without an answer")
        elif _is_comparison(record):
            _add_comparison(rows, record, answer, cells)
        elif "accept" in record or "options" in record:
            chosen = as_labels(record.get("accept") or [])
            several |= len(chosen) > 1 or (record.get("config") or {}).get("choice_style") == "multiple"
            if answer == "reject":
                rows.drop("reject")
            else:
                answers.append((where, as_text(record.get("_input_hash")), chosen, cells))
        elif str(record.get("_view_id", "")).endswith(_MANUAL) and not record.get("_is_binary"):
            raise JudgmentError(
                f"the answers are {record['_view_id']} annotations; only choices, and yes and no, can be aggregated"
            )
        else:
            rows.roles |= {"item": "_task_hash", "grade": "answer (1 if accepted, else 0)", "query": "label"}
            query = {"query": label} if (label := as_text(record.get("label"))) else {}
            rows.add(where, item=record.get("_task_hash"), grade=int(answer == "accept"), **query, **cells)
    _add_choices(rows, answers, several=several)
    rows.roles |= {"annotator": "_annotator_id or _session_id", "time": "_timestamp"}
    return rows.finish("preference" if "loser" in rows.roles else "grade", title=_TITLE)


def _is_comparison(record: Mapping[str, Any]) -> bool:
    """Whether a task shows two contents, one to accept and one to reject, as the compare view does."""
    return all(isinstance(record.get(name), Mapping | str) for name in ("accept", "reject"))


def _add_comparison(rows: Collector, record: dict[str, Any], answer: str, cells: dict[str, Any]) -> None:
    """Add which of two contents was taken, by the letters of their files or else by what they say."""
    letters = {str(side): letter for letter, side in (record.get("mapping") or {}).items()}
    names = {side: letters.get(side) or message_text(record[side]) for side in ("accept", "reject")}
    asked = message_text(record.get("input")) or as_text(record.get("id")) or as_text(record.get("_input_hash"))
    winner, loser = names[answer], names["reject" if answer == "accept" else "accept"]
    rows.roles |= {"winner": "what answer names", "loser": "the other one", "query": "input"}
    if winner is None or loser is None or winner == loser:
        rows.drop("without two contents")
    else:
        rows.add(record, query=asked, winner=winner, loser=loser, **cells)


def _add_choices(rows: Collector, answers: list[Any], *, several: bool) -> None:
    """Chosen options: one class each, or a query for each option where several may be chosen."""
    if not answers:
        return
    rows.roles |= {"item": "_input_hash", "grade": "accept"}
    if several:
        add_labels(rows, answers)
        rows.roles["query"] = "the option"
        return
    for record, item, chosen, cells in answers:
        if chosen:
            rows.add(record, item=item, grade=chosen[0], **cells)
        else:
            rows.drop("without an option")
