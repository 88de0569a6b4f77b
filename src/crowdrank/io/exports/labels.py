"""Tools in which things are labelled: doccano, Prodigy, Labelbox, Label Studio and Argilla; and results back to two."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, combinations, islice, pairwise, repeat
from pathlib import PurePosixPath
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...data.consensus import Consensus
from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ...wording import counted, first_few, option, percent
from ..read_options import SIDES, ReadOptions
from ..sources import ZIP, Source
from . import EXPORTS
from . import cells as foreign
from .cells import as_number, as_text, first_text, message_text, pair_columns, side
from .imported import Answer, Cells, Collector, Imported, as_labels, choose_question, refuse_kind
from .streaming import Record, check_shape, records, text_members


def doccano(rows: Collector) -> Imported:
    """Return the labels of each text as classes; texts without a label are left out.

    An archive has a file for each member; one alone, or called ``all``, is nobody's.
    """
    answers, members = list[Answer](), list[str | None]()
    for part in text_members(rows.source) if rows.source.data[:4] == ZIP else [rows.source]:
        stem = PurePosixPath(part.name).stem
        members.append(None if part is rows.source or stem == "all" else stem)
        for number, record in enumerate(records(part, shape=rows.export.shape), 1):
            item = first_text(record, "id", "text") or str(number)
            given = _labels_by_annotator(record, part.suffix == ".csv") if rows.is_wanted(record) else {}
            for person, labels in given.items():
                rows.n_read += 1
                if labels:
                    answers.append((rows.hold(record), item, labels, {"annotator": person or members[-1]}))
                else:
                    rows.drop("no label")
    if None in members:
        rows.roles["annotator"] = "user"
        if not any(cells["annotator"] for *_, cells in answers):
            rows.note("nobody")
    # labels are classes, also the bare numbers that old files have in their place
    return rows.finish("grade", classes=not rows.add_classes(answers))


def _labels_by_annotator(record: Mapping[str, Any], joined: bool) -> dict[str | None, list[str]]:
    """Who gave which labels to a text."""
    if isinstance(record.get("annotations"), list) and not record.keys() & {"label", "labels", "cats"}:
        by_person: dict[str | None, list[str]] = {} if record["annotations"] else {None: []}
        for one in record["annotations"]:
            by_person.setdefault(as_text(one.get("user")), []).extend(as_labels(one.get("label")))
        return by_person
    given = record.get("label", record.get("labels", record.get("cats", record.get("entities"))))
    labels = given.split("#") if isinstance(given, str) and joined else given
    if isinstance(labels, list) and any(isinstance(one, list | Mapping) for one in labels):
        refuse_kind("the labels are", [labels])
    return {None: as_labels(labels)}


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
    # id of each option -> what it names, in the order in which they were shown
    options: dict[str, str]
    chosen: list[str]
    cells: Cells


def prodigy(rows: Collector) -> Imported:
    """Return chosen options as classes or preferences, or accept and reject as 1 and 0."""
    choices: list[_Choice] = []
    several = False
    for record in filter(rows.is_wanted, records(rows.source, shape=rows.export.shape)):
        rows.n_read += 1
        answer, cells = as_text(record.get("answer")), rows.cells_of(record)
        if answer not in ("accept", "reject"):
            rows.drop("ignore" if answer == "ignore" else "without an answer")
        elif all(isinstance(record.get(name), Mapping | str) for name in ("accept", "reject")):
            # which of two contents was taken, by the letters of their files or else by what they say
            letters = {str(side): letter for letter, side in (record.get("mapping") or {}).items()}
            accepted, rejected = (letters.get(side) or message_text(record[side]) for side in ("accept", "reject"))
            cells["query"] = message_text(record.get("input")) or first_text(record, "id", "_input_hash")
            winner, loser = (accepted, rejected) if answer == "accept" else (rejected, accepted)
            rows.roles |= {"winner": "what answer names", "loser": "the other one", "query": "input"}
            alike = winner is None or loser is None or winner == loser
            rows.add_unless("without two contents" if alike else None, record, winner=winner, loser=loser, **cells)
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
    compared = rows.options.kind in (None, "preference") and _are_compared(choices)
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
    for choice in choices:
        for key, name in choice.options.items():
            names.setdefault(key, set()).add(name)
    things = [key for key, held in names.items() if "tie" not in (side(key), *map(side, held))]
    in_all = set(things).intersection(*(choice.options for choice in choices))
    return any(len(names[key]) > 1 for key in things) or (len(things) > 1 and not in_all)


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


def labelbox(rows: Collector) -> Imported:
    """Return one judgment for each label of a classification question; boxes and other marks are not read."""
    first = islice(records(rows.source, shape=rows.export.shape), 10_000)
    labels = [label for record in first for _, label in _labels(rows, record)]
    # questions with choices before those answered in words
    asked = [name for part in ("choices", "answers") for label in labels for name in label[part]]
    if labels and not asked:
        kind = unsupported_kind(label["marks"] for label in labels)
        none = "no label answers a classification question; export labels with one"
        raise JudgmentError(none if kind is None else not_supported("the labels are", kind, other=False))
    wanted = rows.choose_question(asked)
    several: list[Answer] = []
    for record in filter(rows.is_wanted, records(rows.source, shape=rows.export.shape)):
        for held, label in _labels(rows, record):
            rows.n_read += 1
            answer, item = label["answers"].get(wanted), label["item"]
            cells = {word: label[word] for word in ("annotator", "time", "duration")}
            if label["skipped"] or answer is None:
                rows.drop("skipped" if label["skipped"] else f"without an answer to {wanted!r}")
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


def _labels(rows: Collector, record: Record) -> Iterator[tuple[Record, Record]]:
    """The labels of one data row, or the one label of an older record: all fields around it, and what it says.

    That is, by question, ``answers``: a text or a list of labels. ``choices`` are the questions that were answered by a
    choice, ``marks`` what was drawn on the item.
    """
    if "Label" in record:
        marks = record["Label"]
        held = marks if isinstance(marks, Mapping) else {}
        answers: dict[str | None, Any] = {}
        for one in held.get("classifications") or ():
            choice = one.get("answer", one.get("answers"))
            listed = choice if isinstance(choice, list) else [choice]
            texts = [as_text(each.get("title") if isinstance(each, Mapping) else each) for each in listed]
            answers[as_text(one.get("title"))] = texts if isinstance(choice, list) else texts[0]
        answers.pop(None, None)
        yield record, rows.cells_of(record) | {
            "skipped": record.get("Skipped") is True or marks == "Skip",
            "gold": False, "answers": answers, "choices": (),
            "marks": [part for one in held.get("objects") or () for part in one.values()],
        }  # fmt: skip
        return
    item = first_text(record.get("data_row") or {}, "external_id", "global_key", "id")
    for label in (one for project in (record.get("projects") or {}).values() for one in project.get("labels") or ()):
        parts = ("label_details", "performance_details", "annotations")
        details, work, marks = (label.get(name) or {} for name in parts)
        given = {name: one for one in marks.get("classifications") or () if (name := as_text(one.get("name")))}
        said: dict[str, Any] = {}
        for name, one in given.items():
            # the name of the choice, those of several, or a text
            text, choices = one.get("text_answer"), one.get("checklist_answers")
            if one.get("radio_answer"):
                said[name] = first_text(one["radio_answer"], "name", "value")
            elif choices is not None:
                said[name] = [as_text(each.get("name")) for each in choices]
            else:
                said[name] = as_text(text.get("content") if isinstance(text, Mapping) else text)
        yield {**record, **label}, {
            "item": item, "annotator": foreign.as_person(details.get("created_by")), "time": details.get("created_at"),
            "duration": work.get("seconds_to_create"), "skipped": work.get("skipped") is True,
            "gold": any(part.get("is_benchmark_reference") is True for part in (label, details, work)),
            "answers": said, "choices": [name for name, one in given.items() if "text_answer" not in one],
            "marks": [part for one in marks.get("objects") or () for part in (one, *one.values())],
        }  # fmt: skip


# Label Studio: the full JSON export with its tasks and annotations; JSON-MIN, CSV and TSV with a row for each --------


# type of a result -> the key of its value
_ANSWERS = {"pairwise": "selected"} | {name: name for name in ("rating", "choices", "taxonomy", "ranker", "number")}
_REGION = {"start", "end", "x", "y", "points", "labels", "start_offset"}
_ROW_KEYS = {"annotation_id", "annotator", "lead_time", "created_at", "updated_at", "id", "inner_id", "agreement"}
_TASK: Any = EXPORTS["label-studio"].shape
_MANY_SKIPPED = 0.05
_FIRST_TASKS = 1000  # so many tasks are looked through for questions before the first is read

Tasks = Iterator[tuple[Record, list[Record]]]


def label_studio(rows: Collector) -> Imported:
    """Return the answers to one question; skipped annotations are left out, ground truth is the truth."""
    first = next(records(rows.source), {})
    if "annotations" in first or "completions" in first or isinstance(first.get("task"), dict):
        rows.title += " (annotations[].result)"
        read_tasks = partial(tasks, rows.source)
    elif {"annotation_id", "annotator"} <= first.keys():
        rows.note("short_format")
        read_tasks = partial(_rows, rows.source, _answer_fields(rows))
        rows.title += " with one row per annotation (annotation_id)"
    else:
        raise JudgmentError("no annotations and no annotation_id; export the project as JSON")
    options, (name, kind) = rows.options, _question(rows, read_tasks)
    labels: list[Answer] = []
    parts: list[dict[str, Any]] = []
    n_bare = n_predictions = n_gold_lists = 0
    named, sides = {"left", "right"} <= options.columns.keys(), ("", "")

    def context(task: Record) -> str:
        """What the task asks about: its context, else its id."""
        found = foreign.context_of(data_of(task))
        rows.roles["query"] = f"data.{found[0]}" if found else "id"
        return (found[1] if found else as_text(task.get("id"))) or "1"

    def pair(task: Record, value: Any) -> Cells | str:
        """Which of two sides was chosen."""
        nonlocal sides
        word, data = as_text(value[0] if isinstance(value, list) and value else value), data_of(task)
        winner = options.codes.get(word or "", side(word))
        if winner is None:
            return "without an answer" if word is None else "with an answer that names no side"
        if not any(sides) and not named:
            sides = pair_columns(plain_fields(data), "data.") or _refuse_sides(rows, task)
        rows.roles |= {"left": f"data.{sides[0]}", "right": f"data.{sides[1]}", "winner": "value.selected"}
        left, right = (as_text(data.get(one)) for one in sides)
        if not named and None in (left, right):
            return f"without {sides[0]} or {sides[1]}"
        if left == right and not named:
            return "with the same item on both sides"
        return {"query": context(task), "left": left, "right": right, "winner": winner}

    def judgments(task: Record, value: Any, cells: Cells, gold: bool) -> Iterator[Cells | str]:
        """What an answer says of its task, or why it says nothing."""
        nonlocal n_gold_lists
        if kind == "pairwise":
            yield pair(task, value)
        elif kind == "ranker":
            # best first; several buckets are refused, as their order is not in the file
            if isinstance(value, Mapping):
                buckets = _named_buckets(value)
                if len(buckets) > 1:
                    rows.refuse("buckets", named=first_few(map(repr, buckets)), levels=option("levels", list(buckets)))
                value = next(iter(buckets.values()), [])
            query, names = context(task), value if isinstance(value, list) else []
            rows.roles |= {"item": "value.ranker", "rank": "place in value.ranker"}
            places = list(enumerate(names, 1)) if gold else _places(names)
            yield from ({"query": query, "item": one, "rank": place} for place, one in places or ())
            if places is None:
                yield "naming an item twice" if names else "without an answer"
        elif kind == "buckets":
            # each item with the name of its bucket as the grade
            query = context(task)
            rows.roles |= {"item": "value.ranker[]", "grade": "bucket of value.ranker"}
            graded = [(one, bucket) for bucket, ids in _named_buckets(value).items() for one in as_labels(ids)]
            yield from ({"query": query, "item": one, "grade": bucket} for one, bucket in graded)
            if not graded:
                yield "without an answer"
        else:
            # a number, or the labels that were chosen, of a taxonomy paths that are joined
            rows.roles |= {"item": "id", "grade": f"value.{_ANSWERS[kind]}"}
            number, chosen, numbered = as_number(value), as_labels(value), kind in ("rating", "number")
            if kind == "taxonomy":
                paths = value if isinstance(value, list) else []
                paths = paths if all(isinstance(path, list) for path in paths) else [paths]
                chosen = [path for path in (" / ".join(as_labels(path)) for path in paths) if path]
            if not chosen or (numbered and number is None):
                yield "without an answer"
            elif numbered or (gold and len(chosen) == 1):
                yield {"item": task.get("id"), "grade": number if numbered else chosen[0]}
            elif gold:
                n_gold_lists += 1
            else:
                labels.append((rows.hold(task), as_text(task.get("id")), chosen, cells))

    rows.roles["annotator"] = "completed_by"
    for task, answered in read_tasks():
        n_bare += not answered
        n_predictions += len(task.get("predictions") or ())
        for annotation in (one for one in answered if rows.is_wanted(one, task)):
            rows.n_read += 1
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                rows.drop("skipped")
                continue
            given = [one for one in results_of(annotation) if one.kind in _ANSWERS]
            new = next((one.name for one in given if one.name != name), None)
            if new is not None and options.answer is None:
                choose_question([name, new], None)
            mine = [one for one in given if one.name == name]
            whole = [one for one in mine if not (_REGION & one.value.keys())]
            if not whole:
                rows.drop("about a part of the task" if mine else "without an answer")
                parts += [one.value for one in mine]
                continue
            who = foreign.as_person(annotation.get("completed_by", annotation.get("created_username")))
            duration = as_number(annotation.get("lead_time"))
            cells = {"annotator": who, "time": annotation.get("created_at"), "duration": duration}
            gold = bool(annotation.get("ground_truth") or annotation.get("honeypot"))
            # an answer about one of several images or paragraphs of a task is about that one
            read = [one for one in whole if one.whole.get("item_index") is not None] or whole[:1]
            rows.n_read += len(whole) - 1
            rows.drop("answered twice", len(whole) - len(read))
            for result in read:
                place = as_text(result.whole.get("item_index"))
                about = task if place is None else task | {"id": f"{as_text(task.get('id'))}[{place}]"}
                # what the user names may be a field of the annotation too
                about = annotation | about if options.columns else about
                for answer in judgments(about, result.value.get(_ANSWERS[result.kind]), cells, gold):
                    if isinstance(answer, str):
                        rows.drop(answer)
                    elif gold:
                        rows.truth.append(answer)
                    else:
                        rows.add(about, **answer, **cells)
    if parts and rows.n_read == rows.dropped.total():
        refuse_kind(f"the answers to {name!r} are about", parts, "regions", other=True)
    rows.add_classes(labels)
    rows.roles |= {"time": "created_at", "duration": "lead_time"}
    if n_bare:
        rows.notes.append(f"{counted(n_bare, 'task')} without annotations")
    if n_gold_lists:
        rows.notes.append(f"{n_gold_lists:,} ground truths with several labels are not used")
    if n_predictions:
        rows.notes.append(f"{counted(n_predictions, 'prediction')} ignored")
    skipped = rows.dropped["skipped"] / max(rows.n_read, 1)
    if kind == "pairwise" and skipped > _MANY_SKIPPED:
        rows.note("many_skipped", share=percent(skipped))
    return rows.finish({"pairwise": "preference", "ranker": "ranking"}.get(kind, "grade"))


def _question(rows: Collector, read_tasks: Callable[[], Tasks]) -> tuple[str, str]:
    """Name and type of the question that is meant."""
    options, types = rows.options, dict[str, str]()
    # of each question, whether each answer names a side, and the choices of tasks with two sides
    sided: dict[str, bool] = {}
    words: dict[str, dict[str, None]] = {}
    others: dict[str, list[Any]] = {}
    for task, annotation in ((task, one) for task, answered in islice(read_tasks(), _FIRST_TASKS) for one in answered):
        for name, kind, value, whole in results_of(annotation):
            if name is None or kind not in _ANSWERS:
                others.setdefault(name or kind, []).append({**whole, **value, kind: True})
                continue
            types.setdefault(name, kind)
            chosen = as_labels(value.get("choices"))
            try:
                two = pair_columns(plain_fields(data_of(task))) is not None
            except JudgmentError:  # fields of several pairs
                two = True
            sided[name] = sided.get(name, True) and len(chosen) == 1 and side(chosen[0]) is not None and two
            if kind == "choices" and two:
                words.setdefault(name, {}).update(dict.fromkeys(chosen))
    if not types and others:
        name, values = next(iter(others.items()))
        refuse_kind(f"the answers to {name!r} are", values, "regions")
    name = rows.choose_question(types)
    if types[name] == "ranker" and options.levels is not None:
        return name, "buckets"
    # choices of a side, which other than pairwise may be a tie
    if types[name] == "choices" and (sided[name] or (options.codes and name in words)):
        return name, "pairwise"
    codes = {word: side(word) for word in words.get(name, ())}
    if any(codes.values()) and not options.columns:
        # some choices name a side and others do not
        unclear = first_few(repr(word) for word, which in codes.items() if which is None)
        meant = option("winner_codes", {word: which or "tie" for word, which in codes.items()})
        rows.refuse("unclear_sides", name=name, unclear=unclear, codes=meant, tasks=option("columns", {"item": "id"}))
    return name, types[name]


def _refuse_sides(rows: Collector, task: Record) -> NoReturn:
    """Refuse a task of pairs whose sides no names of fields tell; two entries of a list are proposed."""
    data = data_of(task)
    listed = next((name for name, value in data.items() if isinstance(value, list) and len(value) == 2), None)
    fields = [name for name in plain_fields(data) if name.lower() not in foreign.CONTEXTS]
    paths: list[Any] = [f"data.{name}" for name in fields] if len(fields) == 2 else [..., ...]
    for place, value in enumerate(data[listed] if listed is not None else ()):
        paths[place] = f"data.{listed}.{place}"
        if isinstance(value, Mapping):
            # what names an entry of a list
            names = [name for name in ("model", "id", "name", "title", "text", "body") if as_text(value.get(name))]
            paths[place] += f".{names[0] if names else next(iter(value), 'id')}"
    sides = option("columns", dict(zip(SIDES, paths, strict=True)))
    rows.refuse("no_sides", task=task.get("id"), fields=first_few(map(repr, data)), sides=sides)


def tasks(source: Source) -> Tasks:
    """Each task of a full export with its annotations."""
    for number, task in enumerate(records(source, shape=_TASK), 1):
        if isinstance(task.get("task"), dict) and "result" in task:
            # as written to a target storage: an annotation with its task inside
            check_shape(task, {"task": _TASK, **_TASK["annotations"][0]}, f"record {number}")
            yield {"id": number} | task["task"], [task]
            continue
        listed = task.get("annotations", task.get("completions"))
        yield ({"id": number} | task if task.get("id") is None else task), listed or []


def _rows(source: Source, fields: list[str]) -> Tasks:
    """Each row of the short formats as a task with one annotation."""
    for row in records(source):
        data = {name.removeprefix("_data_"): row[name] for name in row if name not in _ROW_KEYS and name not in fields}
        results = [_result(name, _cell(row.get(name)), data) for name in fields]
        annotation = {"completed_by": row.get("annotator"), "result": [one for one in results if one]}
        yield {"id": row.get("id"), "data": data}, [annotation | {k: row.get(k) for k in ("created_at", "lead_time")}]


def _answer_fields(rows: Collector) -> list[str]:
    """Fields of a row that hold answers: by their shape, else because they differ between annotators of one task."""
    first, answer = list(islice(records(rows.source), _FIRST_TASKS)), rows.options.answer
    names = [name for name in dict.fromkeys(name for row in first for name in row) if name not in _ROW_KEYS]
    shaped = [name for name in names if any(_result(name, _cell(row.get(name)), {}, shaped=True) for row in first)]
    if answer is not None:
        return [answer] if answer in names else shaped or names
    varying: list[str] = []
    classes: list[str] = []
    for name in names:
        given = [(as_text(row.get("id")), word) for row in first if (word := as_text(row.get(name)))]
        if len(set(given)) > len({task for task, _ in given}):
            varying.append(name)
            words = [word for _, word in given]
            # a choice stands there as plain text, and so does a comment, of which hardly two are the same
            if name not in shaped and 2 * len(set(words)) <= len(words) and foreign.is_scale(words):
                classes.append(name)
    if shaped:
        return [*shaped, *classes]
    if len(varying) == 1:
        return varying
    for name in names:
        values = [_cell(row.get(name)) for row in first]
        if unsupported_kind(values) in ("regions", "spans", "relations"):
            refuse_kind(f"{name!r} holds", values)
    likely = option("answer", (varying or names or ["choice"])[0])
    return rows.refuse("which_field", names=first_few(map(repr, names)), answer=likely)


def _result(name: str, value: Any, data: Mapping[str, Any], *, shaped: bool = False) -> dict[str, Any] | None:
    """A cell as the result of a full export; ``shaped`` takes only cells that no data field would hold."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, Mapping):
        kind = next((kind for kind, key in _ANSWERS.items() if key in first), None)
        return {"from_name": name, "type": kind, "value": dict(first)} if kind else None
    if shaped or first is None:
        return None
    if str(first).lower() in ("left", "right") and pair_columns(data):
        return {"from_name": name, "type": "pairwise", "value": {"selected": first}}
    if as_number(first) is not None:
        return {"from_name": name, "type": "rating", "value": {"rating": first}}
    return {"from_name": name, "type": "choices", "value": {"choices": value}}


def _cell(value: object) -> Any:
    """A cell of CSV that holds JSON as what it means; any other as it is."""
    return foreign.parse_json(value, value) if isinstance(value, str) and value[:1] in ("[", "{") else value


class Result(NamedTuple):
    """One answer of an annotation: its question and type, what it says, and all that there is of it."""

    name: str | None
    kind: str
    value: dict[str, Any]
    whole: dict[str, Any]


def results_of(annotation: Mapping[str, Any]) -> list[Result]:
    """The results of an annotation."""
    listed = annotation.get("result") or ()
    named = ((as_text(one.get("from_name")), str(one.get("type", "")).lower(), one) for one in listed)
    return [Result(name, kind, one.get("value") or {}, one) for name, kind, one in named]


def data_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a task."""
    return task.get("data") or {}


def plain_fields(data: Mapping[str, Any]) -> list[str]:
    """Names of the fields of a task's data that hold text or numbers."""
    return [name for name, value in data.items() if isinstance(value, str | int | float)]


def _places(names: list[Any], ranks: list[Any] | None = None) -> list[tuple[Any, str]] | None:
    """Ranks and items of a ranking, best first or with its ranks; ``None`` where it cannot be read."""
    items = [item for name in names if (item := as_text(name)) is not None]
    ranks = list(range(1, len(names) + 1)) if ranks is None else ranks
    whole = items and len(set(items)) == len(names) == len(ranks)
    return list(zip(ranks, items, strict=True)) if whole else None


def _named_buckets(value: object) -> dict[str, list[Any]]:
    """Buckets by name, without the one of what was not sorted."""
    buckets = value if isinstance(value, Mapping) else {}
    return {str(name): ids for name, ids in buckets.items() if name != "_" and isinstance(ids, list)}


# Argilla: records of version 2, nested, flat or column by column, and feedback data sets of version 1 ----------------


# fields of a record in flat layouts that nobody is shown
_OWN = ("id", "status", "_server_id", "external_id", "metadata")

# record, what was shown of it, its id, value, person
_Answer = tuple[Any, Mapping[str, Any], str | None, Any, str | None]


def argilla(rows: Collector) -> Imported:
    """Return the submitted answers to one question; suggestions are ignored."""
    name = rows.choose_question(_questions(rows.source))
    kept = {status.lower() for status in rows.options.keep or ("submitted",)}
    answers, without_status = list[_Answer](), False
    for item, record in _argilla_records(rows.source):
        for response in _responses(record).get(name, ()) if rows.is_wanted(record) else ():
            rows.n_read += 1
            status = as_text(response.get("status"))
            without_status |= status is None
            if status is not None and status.lower() not in kept:
                rows.drop(status.lower())
            elif response.get("value") is None:
                rows.drop("without an answer")
            else:
                # what annotators were shown stands among the keys of a record in flat layouts
                shown = record["fields"] if isinstance(record.get("fields"), Mapping) else record
                answers.append((rows.hold(record), shown, item, response["value"], as_text(response.get("user_id"))))
    if without_status:
        rows.note("no_status")
    rows.roles |= {"annotator": "user_id", "item": "external_id or id"}
    return rows.finish("preference" if _add_pairs(rows, name, answers) else _add(rows, name, answers))


def _add_pairs(rows: Collector, question: str, answers: list[_Answer]) -> bool:
    """Add labels that name a side of two fields as preferences; return whether they do.

    Labels of which only some name a side, or that are numbers, are asked about.
    """
    texts = {value for *_, value, _ in answers if isinstance(value, str)}
    if not texts or any(not isinstance(value, str) for *_, value, _ in answers) or "item" in rows.options.columns:
        return False
    shown = [name for name, value in answers[0][1].items() if isinstance(value, str) and name not in _OWN]
    given = rows.options.columns
    try:
        sides = (given["left"], given["right"]) if {"left", "right"} <= given.keys() else pair_columns(shown)
    except JudgmentError:
        # several pairs are asked about only where an answer names a side
        if any(map(side, texts)):
            raise
        return False
    if sides is None:
        return False
    sides = sides[0].removeprefix("fields."), sides[1].removeprefix("fields.")
    named = {text: rows.options.codes.get(text) or side(text, sides) for text in texts}
    if None in named.values():
        if not any(named.values()) and not all(text.isdecimal() for text in texts):
            return False
        unclear = sorted(text for text, word in named.items() if word is None)
        free = [word for word in ("left", "right", "tie") if word not in named.values()]
        guess = dict(zip(unclear, [*free, *["tie"] * len(unclear)], strict=False))
        meant = {text: word or guess[text] for text, word in sorted(named.items())}
        called, ways = first_few(map(repr, unclear)), option("winner_codes", meant)
        problem = f"{question!r} chooses between {sides[0]!r} and {sides[1]!r}, but neither is called {called}"
        classes = f"or for classes of records: {option('columns', {'item': 'id'})}"
        raise JudgmentError(f"{problem}; say what that means: {ways}, {classes}")
    rows.roles |= {"left": sides[0], "right": sides[1], "winner": question}
    rows.roles.pop("item", None)
    for record, held, item, value, person in answers:
        context = foreign.context_of(held)
        rows.roles["query"] = context[0] if context else "id"
        pair = {word: as_text(held.get(name)) for word, name in zip(("left", "right"), sides, strict=True)}
        alike = None in pair.values() or pair["left"] == pair["right"]
        cells = {"query": context[1] if context else item, **pair, "winner": named[value], "annotator": person}
        rows.add_unless("without two different sides" if alike else None, record, **cells)
    return True


def _add(rows: Collector, question: str, answers: list[_Answer]) -> str:
    """Add the answers, by what their values are, and return their kind."""
    values = [value for *_, value, _ in answers]
    lists = [value for value in values if isinstance(value, list | Mapping)]
    if not lists:
        rows.roles["grade"] = question
        for record, _, item, value, person in answers:
            number = as_number(value)
            rows.add(record, item=item, grade=value if number is None else number, annotator=person)
        return "grade"
    if any(_ranks(value) is not None for value in lists) or _are_orders(lists, rows.options.kind):
        rows.roles |= {"rank": question, "query": rows.roles["item"], "item": f"{question}.value"}
        longest = max((len(value) for value in lists if isinstance(value, list)), default=0)
        for record, _, item, value, person in answers:
            names, ranks = _ranks(value) or (value if isinstance(value, list) else [], None)
            places = _places(names, ranks) if ranks is not None or len(names) >= longest else None
            for rank, named in places or ():
                rows.add(record, item=named, rank=rank, query=item, annotator=person)
            if places is None:
                rows.drop("with an incomplete ranking")
        return "ranking"
    if any(isinstance(one, Mapping) for value in lists for one in (value if isinstance(value, list) else [value])):
        refuse_kind(f"the answers to {question!r} are", values, other=True)
    rows.add_labels([(held, item, as_labels(value), {"annotator": person}) for held, _, item, value, person in answers])
    rows.roles |= {"grade": question, "query": "the label"}
    return "grade"


def _questions(source: Source) -> list[str]:
    """The questions that somebody has answered, of the first records."""
    return [name for _, record in islice(_argilla_records(source), 1000) for name in _responses(record)]


def _responses(record: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The answers to each question in any of the layouts, with value, user_id and status."""
    responses = record.get("responses")
    if isinstance(responses, Mapping):
        return {name: _answer_objects(value) or [] for name, value in responses.items() if value}
    answers: dict[str, list[Mapping[str, Any]]] = {}
    for one in responses if isinstance(responses, list) else ():
        values = one.get("values") if isinstance(one, Mapping) else None
        for name, value in values.items() if isinstance(values, Mapping) else ():
            given = value.get("value") if isinstance(value, Mapping) else value
            answers.setdefault(name, []).append({**one, "value": given})
    for key, value in record.items():
        name = key.removesuffix(".responses")
        if name != key and value and not isinstance(responses, list):
            parts = (record.get(f"{key}.{part}") for part in ("users", "status"))
            people, statuses = (chain(part if isinstance(part, list) else [], repeat(None)) for part in parts)
            each = zip(value if isinstance(value, list) else (), people, statuses, strict=False)
            answers[name] = [{"value": value, "user_id": who, "status": status} for value, who, status in each]
        elif key != "responses" and (objects := _answer_objects(value)):
            answers.setdefault(key, objects)
    return answers


def _answer_objects(value: object) -> list[Mapping[str, Any]] | None:
    """Answers as objects: a list of them, or an object of lists, which is how Parquet and the Hub store them."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "user_id" in one for one in value):
        return [one for one in value if "value" in one or "status" in one]
    if isinstance(value, Mapping) and isinstance(value.get("user_id"), list) and isinstance(value.get("value"), list):
        people, values, statuses = value["user_id"], value["value"], value.get("status")
        statuses = statuses if isinstance(statuses, list) else [None] * len(values)
        if len(people) == len(values) == len(statuses):
            each = zip(people, values, statuses, strict=True)
            return [{"user_id": who, "value": one, "status": status} for who, one, status in each]
    return None


def _ranks(value: object) -> tuple[list[Any], list[Any]] | None:
    """Names and ranks of a ranking that says both."""
    if isinstance(value, Mapping) and isinstance(value.get("rank"), list) and isinstance(value.get("value"), list):
        return value["value"], value["rank"]
    places = value if isinstance(value, list) else []
    if places and all(isinstance(one, Mapping) and {"rank", "value"} <= one.keys() for one in places):
        return [one["value"] for one in places], [one["rank"] for one in places]
    return None


def _are_orders(lists: list[Any], kind: str | None) -> bool:
    """Whether the lists order the same names, rather than choose some of them.

    Drafts of rankings may lack names; where most lists name all, in several orders, it is asked what they are.
    """
    named = [[str(one) for one in names] for names in lists if isinstance(names, list)]
    known = {name for names in named for name in names}
    whole = [tuple(names) for names in named if len(names) == len(known) and set(names) == known]
    if len(known) < 2 or kind is not None:
        return kind == "ranking"
    if len(whole) == len(lists):
        return True
    if 2 * len(whole) > len(lists) and len(set(whole)) > 1:
        names_all = f"{counted(len(whole), 'answer')} of {len(lists):,} name all of"
        names_all += f" {first_few(map(repr, sorted(known)))}, in different orders"
        rankings = f"rankings, of which some are not finished ({option('kind', 'ranking')})"
        labels = f"labels, of which some answers give all ({option('kind', 'grade')})"
        raise JudgmentError(f"{names_all}: are they {rankings}, or {labels}?")
    return False


def _argilla_records(source: Source) -> Iterator[tuple[str, Record]]:
    """The records with their ids, else numbers, also of a file that holds one list for each field."""
    each = records(source)
    first = list(islice(each, 2))
    lists = first[0] if len(first) == 1 else {}
    lengths = {len(value) if isinstance(value, list) else None for value in lists.values()}
    if len(lists) > 1 and len(lengths) == 1 and None not in lengths:
        n = max(map(len, lists.values()))
        first = [{name: value[place] for name, value in lists.items()} for place in range(n)]
    for number, record in enumerate(chain(first, each), 1):
        yield first_text(record, "external_id", "id", "_server_id") or str(number), record


# a consensus on its way back: predictions for Label Studio, suggestions for Argilla ----------------------------------


_TYPES = ("pairwise", "rating", "number", "choices", "taxonomy", "ranker")
_HALF = 0.5

# what is predicted, and how sure it is
Said = tuple[Any, float | None]


class Answers:
    """What a consensus says of each item; queries and items go by their text."""

    def __init__(self, consensus: Consensus) -> None:
        self.consensus = consensus
        self.rows: dict[tuple[str | None, str | None], Record] = {}
        self.by_query: dict[str | None, list[Record]] = {}
        self.by_item: dict[str | None, list[Record]] = {}
        codes = consensus._best_first().tolist()
        for code, row in zip(codes, consensus.frame().iter_rows(named=True), strict=True):
            query, item = as_text(row.get("query")), as_text(row["item"])
            row |= {"query": query, "item": item, "code": code}
            self.rows[query, item] = row
            self.by_query.setdefault(query, []).append(row)
            self.by_item.setdefault(item, []).append(row)

    def value(self, item: str | None) -> Said | None:
        """Grade or class of an item, else its score, with how sure it is."""
        row = self.rows.get((None, item))
        if row is None or ("grade" in row and row["grade"] is None):
            return None
        return row.get("grade", row["score"]), row.get("confidence")

    def labels(self, item: str | None) -> Said | None:
        """Labels that an item has by a consensus with a query for each of them; ``None`` where it is not such a one."""
        asked = [row for row in self.by_item.get(item, []) if row["query"] is not None]
        if not asked:
            return None
        given = [row["query"] for row in asked if (as_number(row.get("grade", row["score"])) or 0.0) > _HALF]
        return given, min((sure for row in asked if (sure := row.get("confidence")) is not None), default=None)

    def order(self, query: str | None) -> Said | None:
        """Items of a query, best first, with the smallest probability that one stands above the next."""
        order = self.by_query.get(query, [])
        known = (self.probability(*pair) for pair in pairwise(order))
        sure = min((one for one in known if one is not None), default=None)
        return ([row["item"] or "" for row in order], sure) if order else None

    def expect_scale(self, given: list[float]) -> None:
        """Refuse scores for grades where they are not on the scale of the answers, as those of pairs are not."""
        scores = self.consensus.scores
        graded = any("grade" in row for row in self.rows.values())
        if not graded and given and not (min(given) <= scores.min() and scores.max() <= max(given)):
            scale = f"the scale of the answers, {min(given):g} to {max(given):g}"
            remedy = f"aggregate with {option('want', 'grade')}"
            raise JudgmentError(f"the scores of {self.consensus.method} are not on {scale}; {remedy}")

    def winner(self, query: str | None, left: str | None, right: str | None) -> Said | None:
        """The better side of two, with the probability that it is; ``None`` where they tie or are not known."""
        # the consensus may not name the query
        one, other = (self.rows.get((query, item)) or self.rows.get((None, item)) for item in (left, right))
        if one is None or other is None or one["score"] == other["score"]:
            return None
        if one["score"] > other["score"]:
            return "left", self.probability(one, other)
        return "right", self.probability(other, one)

    def probability(self, first: Record, second: Record) -> float | None:
        """How probable it is that one item stands above another; ``None`` where the method says nothing of it."""
        if self.consensus.uncertainty is None:
            return None
        return float(self.consensus.beats_each(*(np.array([row["code"]]) for row in (first, second)))[0])

    def expect_any(self, made: list[Record], source: Source, what: str) -> None:
        """Refuse a file of which nothing is an item of the consensus."""
        if not made:
            some = first_few([repr(item) for _, item in list(self.rows)[:3]], len(self.rows), 3)
            problem = f"{source.name}: no {what} is an item of the result ({some})"
            raise JudgmentError(f"{problem}; were these the votes it came from?")


def label_studio_tasks(consensus: Consensus, source: Source, options: ReadOptions) -> tuple[list[Record], list[str]]:
    """Return tasks with a prediction each, as Label Studio imports them, and what there is to say about them."""
    answers, kinds, targets = Answers(consensus), dict[str, str](), dict[str, str]()
    scale: dict[str, list[float | None]] = {}
    for annotation in (one for _, answered in tasks(source) for one in answered):
        for name, kind, value, result in results_of(annotation):
            if name is not None and kind in _TYPES:
                kinds.setdefault(name, kind)
                targets.setdefault(name, as_text(result.get("to_name")) or "")
                scale.setdefault(name, []).append(as_number(value.get(kind)))
    name = choose_question(kinds, options.answer)
    if kinds[name] in ("rating", "number"):
        answers.expect_scale([number for number in scale[name] if number is not None])
    tasks_out, missing = list[Record](), 0
    for task, _ in tasks(source):
        answer = _prediction(answers, task, kinds[name], options)
        if answer is None:
            missing += 1
            continue
        names = {"from_name": name, "to_name": targets[name], "type": kinds[name]}
        result = {"id": f"crowdrank-{task['id']}", **names, "value": answer[0]}
        prediction: Record = {"model_version": f"crowdrank {consensus.method}", "result": [result]}
        prediction |= {} if answer[1] is None else {"score": answer[1]}
        tasks_out.append({"id": task["id"], "data": data_of(task), "predictions": [prediction]})
    answers.expect_any(tasks_out, source, "task")
    return tasks_out, [f"{missing} tasks without a prediction: ties, or items that the result lacks"] if missing else []


def _prediction(answers: Answers, task: Mapping[str, Any], kind: str, options: ReadOptions) -> Said | None:
    """Value of a prediction for a task, with its confidence."""
    data, item = data_of(task), as_text(task.get("id"))
    context = foreign.context_of(data)
    query = context[1] if context else item
    if kind == "pairwise":
        if {*SIDES} <= options.columns.keys():
            sides = [as_text(foreign.at_path(task, options.columns[side])) for side in SIDES]
        else:
            sides = [as_text(data[name]) for name in pair_columns(plain_fields(data)) or ()]
        chosen = answers.winner(query, *sides) if sides else None
        return None if chosen is None else ({"selected": chosen[0]}, chosen[1])
    if kind == "ranker":
        order = answers.order(query if query in answers.by_query else None)
        return None if order is None else ({"ranker": order[0]}, order[1])
    value = answers.labels(item) if kind in ("choices", "taxonomy") else None
    if value is None:
        value = answers.value(item)
        if value is None:
            return None
        if kind in ("rating", "number"):
            number = as_number(value[0])
            return None if number is None else ({kind: round(number) if kind == "rating" else number}, value[1])
        value = [str(value[0])], value[1]
    # labels of a taxonomy are paths
    labels = [label.split(" / ") for label in value[0]] if kind == "taxonomy" else value[0]
    return ({kind: labels}, value[1]) if labels else None


def argilla_suggestions(consensus: Consensus, source: Source, options: ReadOptions) -> tuple[list[Record], list[str]]:
    """Return records with a suggestion each, as Argilla reads them, and what there is to say about them."""
    answers = Answers(consensus)
    name = choose_question(_questions(source), options.answer)
    each = (_responses(record).get(name, ()) for _, record in _argilla_records(source))
    given = [response.get("value") for responses in each for response in responses]
    numbers = [number for value in given if (number := as_number(value)) is not None]
    if numbers and any((None, item) in answers.rows for item, _ in _argilla_records(source)):
        answers.expect_scale(numbers)
    labels = {value for value in given if isinstance(value, str)}
    lists = any(isinstance(value, list | Mapping) for value in given)
    suggestions, missing = list[Record](), 0
    for item, record in _argilla_records(source):
        fields = _fields(record)
        answer = answers.labels(item) or answers.order(item) if lists else answers.value(item)
        if answer is not None and not lists:
            number = as_number(answer[0]) if numbers else None
            whole = str(answer[0]) if number is None else round(min(max(number, min(numbers)), max(numbers)))
            answer = whole, answer[1]
        names_fields = any(map(side, labels)) or labels & fields.keys()
        if answer is None and names_fields and (names := pair_columns(fields)) is not None:
            # the label that names the better of two fields, where the labels do name them
            context = foreign.context_of(fields)
            chosen = answers.winner(context[1] if context else item, *(as_text(fields[name]) for name in names))
            called = {side(label, names): label for label in sorted(labels)}
            answer = (called[chosen[0]], chosen[1]) if chosen is not None and chosen[0] in called else None
        if answer is None:
            missing += 1
        else:
            suggestion = {"value": answer[0], "score": answer[1], "agent": "crowdrank"}
            suggestions.append({"id": item, "fields": fields, "suggestions": {name: suggestion}})
    answers.expect_any(suggestions, source, "record")
    return suggestions, [f"{missing} records without a suggestion: the result lacks them"] if missing else []


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record shows: its fields, or in flat layouts the values that are plain text."""
    fields = record.get("fields")
    if isinstance(fields, Mapping):
        return dict(fields)
    plain = {name: value for name, value in record.items() if isinstance(value, str) and name not in _OWN}
    return {name: value for name, value in plain.items() if ".suggestion" not in name and "-suggestion" not in name}
