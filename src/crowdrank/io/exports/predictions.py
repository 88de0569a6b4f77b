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
from .labels import argilla_records, data_of, plain_fields, questions, responses_to, results_of, tasks

_TYPES = ("pairwise", "rating", "number", "choices", "taxonomy", "ranker")
_HALF = 0.5

Records = list[dict[str, Any]]
Answer = tuple[Any, float | None]
"""What is predicted, and how sure it is."""


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

    def value(self, item: str | None) -> Answer | None:
        """Grade or class of an item, else its score, with how sure it is."""
        row = self.row(None, item)
        if row is None or ("grade" in row and row["grade"] is None):
            return None
        return row.get("grade", row["score"]), row.get("confidence")

    def labels(self, item: str | None) -> Answer | None:
        """Labels that an item has by a consensus with a query for each of them; ``None`` where it is not such a one."""
        asked = [(query, self.rows[query, item]) for query in self.by_item.get(item, []) if query is not None]
        if not asked:
            return None
        given = [query for query, row in asked if (as_number(row.get("grade", row["score"])) or 0.0) > _HALF]
        sure = [row["confidence"] for _, row in asked if row.get("confidence") is not None]
        return given, min(sure) if sure else None

    def order(self, query: str | None) -> Answer | None:
        """Items of a query, best first, with the smallest probability that one stands above the next."""
        order = self.by_query.get(query, [])
        known = [self.probability(query, *pair) for pair in pairwise(order)]
        return (order, min((one for one in known if one is not None), default=None)) if order else None

    def expect_scale(self, given: list[float]) -> None:
        """Refuse scores for grades where they are not on the scale of the answers, as those of pairs are not."""
        scores = self.consensus.scores
        graded = any("grade" in row for row in self.rows.values())
        if not graded and given and not (min(given) <= scores.min() and scores.max() <= max(given)):
            raise JudgmentError(
                f"the scores of {self.consensus.method} are not on the scale of the answers, {min(given):g} to "
                f"{max(given):g}; aggregate with {option('want', 'grade')}"
            )

    def winner(self, query: str | None, left: str | None, right: str | None) -> Answer | None:
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

    def expect_any(self, made: Records, source: Source, what: str) -> None:
        """Refuse a file of which nothing is an item of the consensus."""
        if not made:
            some = first_few([repr(item) for _, item in list(self.rows)[:3]], len(self.rows), 3)
            raise JudgmentError(
                f"{source.name}: no {what} is an item of the result ({some}); were these the votes it came from?"
            )


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
    answers.expect_any(tasks_out, source, "task")
    return tasks_out, [f"{missing} tasks without a prediction: ties, or items that the result lacks"] if missing else []


def _prediction(answers: Answers, task: Mapping[str, Any], kind: str, options: ReadOptions) -> Answer | None:
    """Value of a prediction for a task, with its confidence."""
    data, item = data_of(task), as_text(task.get("id"))
    context = context_of(data)
    query = context[1] if context else item
    if kind == "pairwise":
        if {"left", "right"} <= options.columns.keys():
            sides = [as_text(at_path(task, options.columns[side])) for side in ("left", "right")]
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
        fields = _fields(record)
        if lists:
            answer = answers.labels(item) or answers.order(item)
        else:
            answer = answers.value(item)
            number = as_number(answer[0]) if answer is not None and numbers else None
            if answer is not None:
                whole = str(answer[0]) if number is None else round(min(max(number, min(numbers)), max(numbers)))
                answer = whole, answer[1]
        answer = answer or _preferred_label(answers, fields, item, labels)
        missing += answer is None
        if answer is not None:
            suggestion = {"value": answer[0], "score": answer[1], "agent": "crowdrank"}
            suggestions.append({"id": item, "fields": fields, "suggestions": {name: suggestion}})
    answers.expect_any(suggestions, source, "record")
    return suggestions, [f"{missing} records without a suggestion: the result lacks them"] if missing else []


def _preferred_label(answers: Answers, fields: Mapping[str, Any], item: str, labels: set[str]) -> Answer | None:
    """The label that names the better of two fields of a record, where the labels do name them."""
    names = pair_columns(fields) if any(map(side, labels)) or labels & fields.keys() else None
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
    plain = {name: value for name, value in record.items() if isinstance(value, str) and name not in aside}
    return {name: value for name, value in plain.items() if ".suggestion" not in name and "-suggestion" not in name}
