"""Labelbox: exported labels, as lines of data rows or in the older list of labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_person, as_text
from .imported import Collector, Imported
from .questions import add_labels, as_labels, choose_question
from .streaming import EACH, Shape, records

_TITLE = "Labelbox export (data_row, projects.labels)"
_FIRST_RECORDS = 10_000
_ANSWER: Shape = {"radio_answer": {}, "checklist_answers": [{}]}
_MARKS: Shape = {"classifications": [_ANSWER], "objects": [{}], "relationships": []}
_LABEL: Shape = {"label_details": {}, "performance_details": {}, "annotations": _MARKS}
_SHAPE: Shape = {
    "data_row": {},
    "projects": {EACH: {"labels": [_LABEL]}},
    "Label": ({"classifications": [{}], "objects": [{}]}, str),
}


class _Label(NamedTuple):
    """The label of one person on one item."""

    record: Mapping[str, Any]
    item: str | None
    annotator: str | None
    time: Any
    duration: Any
    skipped: bool
    gold: bool
    answers: dict[str, Any]
    """Question -> what was answered: a text, or a list of labels."""
    choices: tuple[str, ...] = ()
    """The questions that were answered by a choice."""
    marks: Any = None
    """What was drawn on the item."""


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one judgment for each label of a classification question; boxes and other marks are not read."""
    rows = Collector(source, options, unit="label")
    wanted = choose_question(_questions(source), options.answer)
    several: list[tuple[Any, str | None, list[str], dict[str, Any]]] = []
    for record in records(source, shape=_SHAPE):
        for label in _labels(record) if rows.is_wanted(record) else ():
            rows.n_read += 1
            answer = label.answers.get(wanted)
            if label.skipped:
                rows.drop("skipped")
            elif answer is None:
                rows.drop(f"without an answer to {wanted!r}")
            elif label.gold:
                rows.truth.append({"item": label.item, "grade": "; ".join(as_labels(answer))})
            else:
                cells = {"annotator": label.annotator, "time": label.time, "duration": label.duration}
                if isinstance(answer, list):
                    several.append((label.record, label.item, as_labels(answer), cells))
                else:
                    rows.add(label.record, item=label.item, grade=answer, **cells)
    if several:
        add_labels(rows, several)
    rows.roles |= {"item": "data_row.external_id, else data_row.id", "grade": wanted, "annotator": "created_by"}
    rows.roles |= {"time": "created_at", "duration": "seconds_to_create"}
    return rows.finish("grade", title=_TITLE)


def _questions(source: Source) -> list[str]:
    """The questions that labels of the first records answer, those with choices before those answered in words."""
    labels = [label for record in islice(records(source, shape=_SHAPE), _FIRST_RECORDS) for label in _labels(record)]
    asked = [name for label in labels for name in label.choices] + [name for label in labels for name in label.answers]
    if labels and not asked:
        kind = unsupported_kind(label.marks for label in labels)
        if kind is not None:
            raise JudgmentError(not_supported("the labels are", kind, other=False))
        raise JudgmentError("no label answers a classification question; export labels with one")
    return asked


def _labels(record: Mapping[str, Any]) -> Iterator[_Label]:
    """The labels of one data row, or the one label of an older record."""
    if "Label" in record:
        yield _old_label(record)
        return
    row = record.get("data_row") or {}
    item = as_text(row.get("external_id")) or as_text(row.get("global_key")) or as_text(row.get("id"))
    for project in (record.get("projects") or {}).values():
        for label in project.get("labels") or ():
            yield _label(record, item, label)


def _label(record: Mapping[str, Any], item: str | None, label: Mapping[str, Any]) -> _Label:
    """One label of a data row."""
    details, work, marks = (label.get(name) or {} for name in _LABEL)
    given = marks.get("classifications") or ()
    answers = {name: _answer(one) for one in given if (name := as_text(one.get("name"))) is not None}
    return _Label(
        {**record, **label}, item, as_person(details.get("created_by")), details.get("created_at"),
        work.get("seconds_to_create"), work.get("skipped") is True,
        any(part.get("is_benchmark_reference") is True for part in (label, details, work)), answers,
        tuple(name for name in answers if any(one.get("name") == name and "text_answer" not in one for one in given)),
        [part for one in marks.get("objects") or () for part in (one, *one.values())],
    )  # fmt: skip


def _answer(given: Mapping[str, Any]) -> Any:
    """What a classification says: the name of the choice, those of several, or a text."""
    if choice := given.get("radio_answer"):
        return as_text(choice.get("name")) or as_text(choice.get("value"))
    if (choices := given.get("checklist_answers")) is not None:
        return [as_text(one.get("name")) for one in choices]
    text = given.get("text_answer")
    return as_text(text.get("content") if isinstance(text, Mapping) else text)


def _old_label(record: Mapping[str, Any]) -> _Label:
    """The label of an older export, which has one record each."""
    marks = record.get("Label")
    given = marks.get("classifications") or () if isinstance(marks, Mapping) else ()
    answers: dict[str, Any] = {}
    for one in given:
        if (name := as_text(one.get("title"))) is not None:
            choice = one.get("answer", one.get("answers"))
            texts = [as_text(each.get("title")) if isinstance(each, Mapping) else as_text(each)
                     for each in (choice if isinstance(choice, list) else [choice])]  # fmt: skip
            answers[name] = texts if isinstance(choice, list) else texts[0]
    item = as_text(record.get("External ID")) or as_text(record.get("DataRow ID"))
    return _Label(
        record, item, as_person(record.get("Created By")), record.get("Created At"), record.get("Seconds to Label"),
        record.get("Skipped") is True or marks == "Skip", False, answers, (),
        [part for one in (marks.get("objects") or () if isinstance(marks, Mapping) else ()) for part in one.values()],
    )  # fmt: skip
