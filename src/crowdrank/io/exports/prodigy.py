"""Prodigy: one JSON object per line, with what was accepted, rejected or ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ...wording import option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_text, message_text
from .imported import Collector, Imported
from .pair_columns import side
from .questions import add_labels, as_labels
from .streaming import Shape, records

_TITLE = "a Prodigy data set (_input_hash, _task_hash, answer)"
_CODE = re.compile(r"\w|\d+|(option|choice|answer|response|output|model|text)[_\s-]?\w", re.IGNORECASE)
"""Ids of options that stand for their place and name nothing."""

_SHAPE: Shape = {"options": [{}], "config": {}, "mapping": {}}
_MANUAL = ("_manual", "relations", "text_input")
"""Ends of the names of views in which something is drawn or written."""


def read(source: Source, options: ReadOptions) -> Imported:
    """Return chosen options as classes, or accept and reject as 1 and 0."""
    rows = Collector(source, options)
    choices: list[_Choice] = []
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
                shown = {as_text(one.get("id")) or "": _name_of(one) for one in record.get("options") or ()}
                choices.append(
                    _Choice(where, as_text(record.get("_input_hash")), _context(record), shown, chosen, cells)
                )
        elif not record.get("_is_binary") and _is_drawn(record):
            raise JudgmentError(not_supported("the answers are", _kind_of_marks(record), other=False))
        else:
            rows.roles |= {"item": "_task_hash", "grade": "answer (1 if accepted, else 0)", "query": "label"}
            query = {"query": label} if (label := as_text(record.get("label"))) else {}
            rows.add(where, item=record.get("_task_hash"), grade=int(answer == "accept"), **query, **cells)
    compared = options.kind in (None, "preference") and _are_compared(choices)
    if compared:
        _add_preferences(rows, choices)
    elif choices:
        _add_classes(rows, choices, several=several)
    rows.roles |= {"annotator": "_annotator_id or _session_id", "time": "_timestamp"}
    return rows.finish("preference" if compared or "loser" in rows.roles else "grade", title=_TITLE)


def _is_drawn(record: Mapping[str, Any]) -> bool:
    """Whether something was drawn or written, which the answer only confirms."""
    view = str(record.get("_view_id", ""))
    return view.endswith(_MANUAL) or (view == "blocks" and any(map(record.get, ("spans", "relations", "user_input"))))


def _kind_of_marks(record: Mapping[str, Any]) -> str:
    """What was drawn or written."""
    if record.get("relations"):
        return "relations"
    return unsupported_kind([record.get("spans")]) or ("spans" if "spans" in record else "texts")


class _Choice(NamedTuple):
    """What one annotator chose of the options of a task."""

    record: Any
    item: str | None
    asked: str | None
    options: dict[str, str]
    """Id of each option -> what it names, in the order in which they were shown."""
    chosen: list[str]
    cells: dict[str, Any]


def _name_of(option: Mapping[str, Any]) -> str:
    """What an option shows, else its id."""
    names = (as_text(option.get(key)) for key in ("text", "label", "image", "audio", "video", "html", "id"))
    return next((name for name in names if name is not None), "")


def _context(record: Mapping[str, Any]) -> str | None:
    """What a task asks about."""
    asked = (message_text(record.get(name)) for name in ("prompt", "question", "query", "input", "text"))
    return next((text for text in asked if text), None) or as_text(record.get("_input_hash"))


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
    rows.notes.append(
        "the options differ between tasks, so what was chosen is preferred to the other options of its task; if "
        f"options are classes of the task: {option('kind', 'grade')}"
    )


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


def _add_classes(rows: Collector, choices: list[_Choice], *, several: bool) -> None:
    """Chosen options: one class each, or a query for each option where several may be chosen."""
    answers = [(one.record, one.item, one.chosen, one.cells) for one in choices]
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
