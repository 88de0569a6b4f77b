"""A consensus on its way back to where the votes came from: predictions for Label Studio, suggestions for Argilla."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ...data.consensus import Consensus
from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text, at_path, context_of, pair_columns, side
from .imported import choose_question
from .labels import argilla_records, data_of, questions, responses_to, results_of, tasks

_TYPES = ("pairwise", "rating", "number", "choices", "taxonomy", "ranker")
_HALF = 0.5

Records = list[dict[str, Any]]


class Answers:
    """What a consensus says of each item; queries and items go by their text."""

    def __init__(self, consensus: Consensus) -> None:
        self.consensus = consensus
        frame = consensus.frame()
        asked = frame["query"].to_list() if "query" in frame.columns else [None] * frame.height
        keys = [(as_text(query), as_text(item)) for query, item in zip(asked, frame["item"].to_list(), strict=True)]
        self.rows = dict(zip(keys, frame.iter_rows(named=True), strict=True))
        self.by_query: dict[str | None, list[str]] = {}
        self.by_item: dict[str | None, list[str | None]] = {}
        for query, item in keys:
            self.by_query.setdefault(query, []).append(item or "")
            self.by_item.setdefault(item, []).append(query)
        items = consensus.items
        codes = zip(
            [None] * len(items) if items.single else items.query_ids().to_list(), items.ids.to_list(), strict=True
        )
        self.codes = {(as_text(query), as_text(item)): code for code, (query, item) in enumerate(codes)}

    def row(self, query: str | None, item: str | None) -> dict[str, Any] | None:
        """The row of an item, whose query the consensus may not name."""
        return self.rows.get((query, item)) or self.rows.get((None, item))

    def value(self, query: str | None, item: str | None) -> tuple[Any, float | None] | None:
        """Grade or class of an item, else its score, with how sure it is."""
        row = self.row(query, item)
        if row is None or ("grade" in row and row["grade"] is None):
            return None
        return row.get("grade", row["score"]), row.get("confidence")

    def expect_scale(self, given: list[float]) -> None:
        """Refuse scores for grades where they are not on the scale of the answers, as those of pairs are not."""
        scores = self.consensus.scores
        graded = any("grade" in row for row in self.rows.values())
        if not graded and given and not (min(given) <= scores.min() and scores.max() <= max(given)):
            raise JudgmentError(
                f"the scores of {self.consensus.method} are not on the scale of the answers, {min(given):g} to "
                f"{max(given):g}; aggregate with {option('want', 'grade')}"
            )

    def winner(self, query: str | None, left: str | None, right: str | None) -> tuple[str, float | None] | None:
        """The better side of two, with the probability that it is; ``None`` where they tie or are not known."""
        one, other = self.row(query, left), self.row(query, right)
        if one is None or other is None or one["score"] == other["score"]:
            return None
        if one["score"] > other["score"]:
            return "left", self.probability(query, left, right)
        return "right", self.probability(query, right, left)

    def probability(self, query: str | None, first: str | None, second: str | None) -> float | None:
        """How probable it is that one item stands above another; ``None`` where the method says nothing of it."""
        if self.consensus.uncertainty is None:
            return None
        codes = [self.codes.get((query, item), self.codes.get((None, item), -1)) for item in (first, second)]
        return float(self.consensus.beats_each(np.array(codes[:1]), np.array(codes[1:]))[0])


def label_studio_tasks(consensus: Consensus, source: Source, options: ReadOptions) -> tuple[Records, list[str]]:
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
    tasks_out, missing = Records(), 0
    for task, _ in tasks(source):
        answer = _prediction(answers, task, kinds[name], options)
        missing += answer is None
        if answer is not None:
            value, sure = answer
            names = {"from_name": name, "to_name": targets[name], "type": kinds[name]}
            result = {"id": f"crowdrank-{task['id']}", **names, "value": value}
            prediction: dict[str, Any] = {"model_version": f"crowdrank {consensus.method}", "result": [result]}
            prediction |= {} if sure is None else {"score": sure}
            tasks_out.append({"id": task["id"], "data": data_of(task), "predictions": [prediction]})
    if not tasks_out:
        raise JudgmentError(
            f"{source.name}: no task is an item of the result ({_some(answers)}); were these the votes it came from?"
        )
    return tasks_out, [f"{missing} tasks without a prediction: ties, or items that the result lacks"] if missing else []


def _prediction(
    answers: Answers, task: Mapping[str, Any], kind: str, options: ReadOptions
) -> tuple[Any, float | None] | None:
    """Value of a prediction for a task, with its confidence."""
    data, item = data_of(task), as_text(task.get("id"))
    context = context_of(data)
    query = context[1] if context else item
    if kind == "pairwise":
        sides = _sides(task, data, options)
        chosen = None if sides is None else answers.winner(query, *sides)
        return None if chosen is None else ({"selected": chosen[0]}, chosen[1])
    if kind == "ranker":
        order = answers.by_query.get(query, answers.by_query.get(None, []))
        return ({"ranker": order}, _least_sure(answers, query, order)) if order else None
    labels = _labels(answers, item)
    if labels is not None and kind in ("choices", "taxonomy"):
        chosen_labels, sure = labels
        return ({kind: _as_choices(chosen_labels, kind)}, sure) if chosen_labels else None
    value = answers.value(None, item)
    if value is None:
        return None
    if kind in ("rating", "number"):
        number = as_number(value[0])
        return None if number is None else ({kind: round(number) if kind == "rating" else number}, value[1])
    return {kind: _as_choices([str(value[0])], kind)}, value[1]


def _as_choices(labels: list[str], kind: str) -> list[Any]:
    """Labels as a result holds them: paths where they are of a taxonomy."""
    return [label.split(" / ") for label in labels] if kind == "taxonomy" else labels


def _labels(answers: Answers, item: str | None) -> tuple[list[str], float | None] | None:
    """Labels that an item has by a consensus with a query for each of them; ``None`` where it is not such a one."""
    asked = [(query, answers.rows[query, item]) for query in answers.by_item.get(item, []) if query is not None]
    if not asked:
        return None
    given = [query for query, row in asked if (as_number(row.get("grade", row["score"])) or 0.0) > _HALF]
    sure = [row["confidence"] for _, row in asked if row.get("confidence") is not None]
    return given, min(sure) if sure else None


def _sides(
    task: Mapping[str, Any], data: Mapping[str, Any], options: ReadOptions
) -> tuple[str | None, str | None] | None:
    """The two items of a task."""
    if {"left", "right"} <= options.columns.keys():
        return as_text(at_path(task, options.columns["left"])), as_text(at_path(task, options.columns["right"]))
    names = pair_columns(name for name, value in data.items() if isinstance(value, str | int | float))
    return None if names is None else (as_text(data[names[0]]), as_text(data[names[1]]))


def _least_sure(answers: Answers, query: str | None, order: list[str]) -> float | None:
    """The smallest probability that an item of an order stands above the next."""
    known = [answers.probability(query, *pair) for pair in pairwise(order)]
    return min((one for one in known if one is not None), default=None)


def argilla_suggestions(consensus: Consensus, source: Source, options: ReadOptions) -> tuple[Records, list[str]]:
    """Return records with a suggestion each, as Argilla reads them, and what there is to say about them."""
    answers = Answers(consensus)
    name = choose_question(questions(source), options.answer)
    given = [response.get("value") for _, record in argilla_records(source) for response in responses_to(record, name)]
    numbers = [number for value in given if (number := as_number(value)) is not None]
    if numbers and any(answers.row(None, item) for item, _ in argilla_records(source)):
        answers.expect_scale(numbers)
    labels = {value for value in given if isinstance(value, str)}
    lists = any(isinstance(value, list | Mapping) for value in given)
    suggestions, missing = Records(), 0
    for item, record in argilla_records(source):
        answer = _suggestion(answers, item, numbers, lists=lists) or _preferred_label(
            answers, _fields(record), item, labels
        )
        missing += answer is None
        if answer is not None:
            value, sure = answer
            suggestion = {"value": value, "score": sure, "agent": "crowdrank"}
            suggestions.append({"id": item, "fields": _fields(record), "suggestions": {name: suggestion}})
    if not suggestions:
        raise JudgmentError(
            f"{source.name}: no record is an item of the result ({_some(answers)}); were these the votes it came from?"
        )
    return suggestions, [f"{missing} records without a suggestion: the result lacks them"] if missing else []


def _suggestion(answers: Answers, item: str, numbers: list[float], *, lists: bool) -> tuple[Any, float | None] | None:
    """Value of a suggestion for a record, with its confidence."""
    if lists:
        labels = _labels(answers, item)
        if labels is not None:
            return labels
        order = answers.by_query.get(item, [])
        return (order, _least_sure(answers, item, order)) if order else None
    value = answers.value(None, item)
    if value is None:
        return None
    number = as_number(value[0]) if numbers else None
    if number is None:
        return str(value[0]), value[1]
    return round(min(max(number, min(numbers)), max(numbers))), value[1]


def _preferred_label(
    answers: Answers, fields: Mapping[str, Any], item: str, labels: set[str]
) -> tuple[str, float | None] | None:
    """The label that names the better of two fields of a record, where the labels do name them."""
    if not any(map(side, labels)) and not labels & fields.keys():
        return None
    names = pair_columns(fields)
    if names is None:
        return None
    context = context_of(fields)
    chosen = answers.winner(context[1] if context else item, *(as_text(fields[name]) for name in names))
    called = {side(label, names): label for label in sorted(labels)}
    return None if chosen is None or chosen[0] not in called else (called[chosen[0]], chosen[1])


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record shows: its fields, or in flat layouts the values that are plain text."""
    fields = record.get("fields")
    if isinstance(fields, Mapping):
        return dict(fields)
    aside = ("id", "external_id", "status", "_server_id", "metadata")
    return {
        name: value
        for name, value in record.items()
        if isinstance(value, str) and name not in aside and ".suggestion" not in name and "-suggestion" not in name
    }


def _some(answers: Answers) -> str:
    """The first items of a result."""
    return first_few([repr(item) for _, item in list(answers.rows)[:3]], len(answers.rows), 3)
