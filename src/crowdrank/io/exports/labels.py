"""Tools in which things are labelled: doccano, Prodigy and Labelbox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ...wording import option
from ..sources import ZIP, Source
from .cells import as_person, as_text, first_text, message_text, side
from .imported import Cells, Collector, Imported, as_labels
from .streaming import EACH, Record, Shape, records, text_members

Labelled = list[tuple[Any, str | None, list[str], Cells]]  # record, item, labels, further cells


def doccano(rows: Collector) -> Imported:
    """Return the labels of each text as classes; texts without a label are left out.

    An archive has a file for each member; one alone, or called ``all``, is nobody's.
    """
    members: list[tuple[str | None, Source]] = [(None, rows.source)]
    if rows.source.data[:4] == ZIP:
        parts = [(PurePosixPath(part.name).stem, part) for part in text_members(rows.source)]
        members = [(None if stem == "all" else stem, part) for stem, part in parts]
    answers: Labelled = []
    for member, part in members:
        for number, record in enumerate(records(part, shape={"annotations": ([{}], str)}), 1):
            if not rows.is_wanted(record):
                continue
            item = first_text(record, "id", "text") or str(number)
            for person, labels in _labels_by_annotator(record, part.suffix == ".csv"):
                rows.n_read += 1
                if labels:
                    answers.append((rows.hold(record), item, labels, {"annotator": person or member}))
                else:
                    rows.drop("no label")
    nobody = any(member is None for member, _ in members)
    if nobody and not any(cells["annotator"] for *_, cells in answers):
        rows.note("nobody")
    rows.roles |= {"annotator": "user"} if nobody else {}
    # labels are classes, also the bare numbers that old files have in their place
    return rows.finish("grade", classes=not rows.add_classes(answers))


def _labels_by_annotator(record: Mapping[str, Any], joined: bool) -> Iterator[tuple[str | None, list[str]]]:
    """Who gave which labels to a text."""
    annotations = record.get("annotations")
    if "label" not in record and "labels" not in record and "cats" not in record and isinstance(annotations, list):
        by_person: dict[str | None, list[str]] = {}
        for one in annotations:
            by_person.setdefault(as_text(one.get("user")), []).extend(as_labels(one.get("label")))
        yield from by_person.items() if by_person else [(None, [])]
        return
    labels = record.get("label", record.get("labels", record.get("cats", record.get("entities"))))
    if isinstance(labels, str) and joined:
        labels = labels.split("#")
    if isinstance(labels, list) and any(isinstance(one, list | Mapping) for one in labels):
        raise JudgmentError(not_supported("the labels are", unsupported_kind([labels]) or "spans", other=False))
    yield None, as_labels(labels)


# ids of options that stand for their place and name nothing
_CODE = re.compile(r"\w|\d+|(option|choice|answer|response|output|model|text)[_\s-]?\w", re.IGNORECASE)
_SHOWN = ("text", "label", "image", "audio", "video", "html", "id")
# ends of the names of views in which something is drawn or written
_MANUAL = ("_manual", "relations", "text_input")


class _Choice(NamedTuple):
    """What one annotator chose of the options of a task."""

    record: Any
    item: str | None
    asked: str | None
    options: dict[str, str]
    """Id of each option -> what it names, in the order in which they were shown."""
    chosen: list[str]
    cells: dict[str, Any]


def prodigy(rows: Collector) -> Imported:
    """Return chosen options as classes or preferences, or accept and reject as 1 and 0."""
    options = rows.options
    choices: list[_Choice] = []
    several = False
    for record in records(rows.source, shape={"options": [{}], "config": {}, "mapping": {}}):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        answer = as_text(record.get("answer"))
        cells = {"annotator": first_text(record, "_annotator_id", "_session_id"), "time": record.get("_timestamp")}
        if answer not in ("accept", "reject"):
            rows.drop("ignore" if answer == "ignore" else "without an answer")
        elif all(isinstance(record.get(name), Mapping | str) for name in ("accept", "reject")):
            _add_comparison(rows, record, answer, cells)
        elif "accept" in record or "options" in record:
            chosen = as_labels(record.get("accept") or [])
            several |= len(chosen) > 1 or (record.get("config") or {}).get("choice_style") == "multiple"
            if answer == "reject":
                rows.drop("reject")
                continue
            # what an option shows, else its id
            offered = record.get("options") or ()
            shown = {as_text(one.get("id")) or "": first_text(one, *_SHOWN) or "" for one in offered}
            asked = (message_text(record.get(name)) for name in ("prompt", "question", "query", "input", "text"))
            item = as_text(record.get("_input_hash"))
            about = next((text for text in asked if text), None) or item
            choices.append(_Choice(rows.hold(record), item, about, shown, chosen, cells))
        elif not record.get("_is_binary") and (marks := _marks(record)) is not None:
            raise JudgmentError(not_supported("the answers are", marks, other=False))
        else:
            rows.roles |= {"item": "_task_hash", "grade": "answer (1 if accepted, else 0)", "query": "label"}
            query = {"query": label} if (label := as_text(record.get("label"))) else {}
            rows.add(record, item=record.get("_task_hash"), grade=int(answer == "accept"), **query, **cells)
    compared = options.kind in (None, "preference") and _are_compared(choices)
    if compared:
        _add_preferences(rows, choices)
    elif choices:
        rows.roles |= {"item": "_input_hash", "grade": "accept"}
        answers = [(one.record, one.item, one.chosen, one.cells) for one in choices]
        if several:
            # a query for each option
            rows.add_labels(answers)
            rows.roles["query"] = "the option"
        else:
            rows.drop("without an option", sum(not one.chosen for one in choices))
            rows.add_classes([one for one in answers if one[2]])
    rows.roles |= {"annotator": "_annotator_id or _session_id", "time": "_timestamp"}
    return rows.finish("preference" if compared or "loser" in rows.roles else "grade")


def _marks(record: Mapping[str, Any]) -> str | None:
    """What was drawn or written, which the answer only confirms; ``None`` where it is the answer."""
    view = str(record.get("_view_id", ""))
    in_blocks = view == "blocks" and any(map(record.get, ("spans", "relations", "user_input")))
    if not view.endswith(_MANUAL) and not in_blocks:
        return None
    if record.get("relations"):
        return "relations"
    return unsupported_kind([record.get("spans")]) or ("spans" if "spans" in record else "texts")


def _are_compared(choices: list[_Choice]) -> bool:
    """Whether options are things to compare and no classes of the task: ids name several things, or none is in all."""
    names: dict[str, set[str]] = {}
    for key, name in (pair for choice in choices for pair in choice.options.items()):
        names.setdefault(key, set()).add(name)
    in_all = set(names).intersection(*(choice.options for choice in choices))
    things = [key for key, held in names.items() if "tie" not in (side(key), *map(side, held))]
    return any(len(names[key]) > 1 for key in things) or (len(things) > 1 and not in_all.intersection(things))


def _add_preferences(rows: Collector, choices: list[_Choice]) -> None:
    """Each chosen option wins over each other one of its task; an id that is a letter or number names nothing."""
    coded = all(_CODE.fullmatch(key) or side(key) is not None for choice in choices for key in choice.options)
    what = "text of the option" if coded else "id of the option"
    for choice in choices:
        names = {key: name if coded else key for key, name in choice.options.items()}
        ties = {key for key, name in names.items() if "tie" in (side(key), side(name))}
        things = [key for key in names if key not in ties]
        tied, pairs = bool(ties & set(choice.chosen)), list[tuple[str, str, str]]()
        for left, right in combinations(things, 2):
            won = (left in choice.chosen) - (right in choice.chosen)
            if names[left] != names[right] and (won or tied):
                pairs.append((names[left], names[right], "tie" if tied else "left" if won > 0 else "right"))
        if not pairs:
            rows.drop("without two different options" if choice.chosen else "without an option")
        for left, right, winner in pairs:
            rows.add(choice.record, query=choice.asked, left=left, right=right, winner=winner, **choice.cells)
    rows.roles |= {"left": what, "right": what, "winner": "accept", "query": "text or prompt of the task"}
    rows.note("compared", kind=option("kind", "grade"))


def _add_comparison(rows: Collector, record: dict[str, Any], answer: str, cells: dict[str, Any]) -> None:
    """Add which of two contents was taken, by the letters of their files or else by what they say."""
    letters = {str(side): letter for letter, side in (record.get("mapping") or {}).items()}
    names = {side: letters.get(side) or message_text(record[side]) for side in ("accept", "reject")}
    asked = message_text(record.get("input")) or first_text(record, "id", "_input_hash")
    winner, loser = names[answer], names["reject" if answer == "accept" else "accept"]
    rows.roles |= {"winner": "what answer names", "loser": "the other one", "query": "input"}
    alike = winner is None or loser is None or winner == loser
    rows.add_unless("without two contents" if alike else None, record, query=asked, winner=winner, loser=loser, **cells)


_FIRST_RECORDS = 10_000
_MARKS: Shape = {
    "classifications": [{"radio_answer": {}, "checklist_answers": [{}]}],
    "objects": [{}],
    "relationships": [],
}
_LABEL: Shape = {"label_details": {}, "performance_details": {}, "annotations": _MARKS}
_DATA_ROW: Shape = {
    "data_row": {},
    "projects": {EACH: {"labels": [_LABEL]}},
    "Label": ({"classifications": [{}], "objects": [{}]}, str),
}


def labelbox(rows: Collector) -> Imported:
    """Return one judgment for each label of a classification question; boxes and other marks are not read."""
    first = islice(records(rows.source, shape=_DATA_ROW), _FIRST_RECORDS)
    labels = [label for record in first for _, label in _labels(record)]
    # questions with choices before those answered in words
    asked = [name for part in ("choices", "answers") for label in labels for name in label[part]]
    if labels and not asked:
        kind = unsupported_kind(label["marks"] for label in labels)
        if kind is not None:
            raise JudgmentError(not_supported("the labels are", kind, other=False))
        raise JudgmentError("no label answers a classification question; export labels with one")
    wanted = rows.choose_question(asked)
    several: Labelled = []
    for record in records(rows.source, shape=_DATA_ROW):
        for held, label in _labels(record) if rows.is_wanted(record) else ():
            rows.n_read += 1
            answer, item = label["answers"].get(wanted), label["item"]
            cells = {"annotator": as_person(label["annotator"]), "time": label["time"], "duration": label["duration"]}
            if label["skipped"]:
                rows.drop("skipped")
            elif answer is None:
                rows.drop(f"without an answer to {wanted!r}")
            elif label["gold"]:
                rows.truth.append({"item": item, "grade": "; ".join(as_labels(answer))})
            elif isinstance(answer, list):
                several.append((held, item, as_labels(answer), cells))
            else:
                rows.add(held, item=item, grade=answer, **cells)
    if several:
        rows.add_labels(several)
    rows.roles["grade"] = wanted
    return rows.finish("grade")


def _labels(record: Record) -> Iterator[tuple[Record, Record]]:
    """The labels of one data row, or the one label of an older record: all fields around it, and what it says.

    That is, by question, ``answers``: a text or a list of labels. ``choices`` are the questions that were answered by a
    choice, ``marks`` what was drawn on the item.
    """
    if "Label" in record:
        marks = record["Label"]
        held = marks if isinstance(marks, Mapping) else {}
        answers: dict[str, Any] = {}
        for one in held.get("classifications") or ():
            if (name := as_text(one.get("title"))) is not None:
                choice = one.get("answer", one.get("answers"))
                listed = choice if isinstance(choice, list) else [choice]
                texts = [as_text(each.get("title") if isinstance(each, Mapping) else each) for each in listed]
                answers[name] = texts if isinstance(choice, list) else texts[0]
        words = {"annotator": "Created By", "time": "Created At", "duration": "Seconds to Label"}
        yield record, {word: record.get(name) for word, name in words.items()} | {
            "item": first_text(record, "External ID", "DataRow ID"),
            "skipped": record.get("Skipped") is True or marks == "Skip",
            "gold": False, "answers": answers, "choices": (),
            "marks": [part for one in held.get("objects") or () for part in one.values()],
        }  # fmt: skip
        return
    item = first_text(record.get("data_row") or {}, "external_id", "global_key", "id")
    for label in (one for project in (record.get("projects") or {}).values() for one in project.get("labels") or ()):
        details, work, marks = (label.get(name) or {} for name in _LABEL)
        given = {name: one for one in marks.get("classifications") or () if (name := as_text(one.get("name")))}
        yield {**record, **label}, {
            "item": item, "annotator": details.get("created_by"), "time": details.get("created_at"),
            "duration": work.get("seconds_to_create"), "skipped": work.get("skipped") is True,
            "gold": any(part.get("is_benchmark_reference") is True for part in (label, details, work)),
            "answers": {name: _answer(one) for name, one in given.items()},
            "choices": [name for name, one in given.items() if "text_answer" not in one],
            "marks": [part for one in marks.get("objects") or () for part in (one, *one.values())],
        }  # fmt: skip


def _answer(given: Mapping[str, Any]) -> Any:
    """What a classification says: the name of the choice, those of several, or a text."""
    if choice := given.get("radio_answer"):
        return first_text(choice, "name", "value")
    if (choices := given.get("checklist_answers")) is not None:
        return [as_text(one.get("name")) for one in choices]
    text = given.get("text_answer")
    return as_text(text.get("content") if isinstance(text, Mapping) else text)
