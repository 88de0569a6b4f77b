"""Practice before the real work: items of known truth, what was expected after each, and a mark to reach."""

from __future__ import annotations

import json
import math
import random
from itertools import combinations
from typing import Any

import sqlalchemy as sa

from .collection import Collection, Fault, record_event, sql
from .overview import check_result
from .submitting import active_annotator, kept_answer, shown_value

_MOST_PAIRS = 2_000


def next_practice(collection: Collection, connection: sa.Connection, annotator: int) -> dict[str, Any]:
    """Return how far an annotator is, and the row of what they practise on next, begun here where it is new."""
    who = active_annotator(connection, annotator)
    if not collection.settings.training or who.kind != "person" or who.trained_at is not None:
        return {"state": "passed"}
    targets = _targets(collection, connection)
    n_asked = min(collection.settings.training, len(targets))
    rows = sql.practice.rows(connection, annotator=annotator)
    number = max((row.round for row in rows), default=1)
    mine = [row for row in rows if row.round == number]
    if len(mine) >= n_asked and all(row.answer is not None for row in mine):
        if number >= collection.settings.training_rounds:
            return {"state": "failed"}
        number, mine = number + 1, []
    row = next((row for row in mine if row.answer is None), None)
    if row is None:
        draws = random.Random(f"{collection.settings.seed} {annotator} {number}")
        # those with an explanation teach most
        draws.shuffle(targets)
        targets.sort(key=lambda target: not target[1])
        seen = {one.items for one in mine}
        items = next(items for items, _ in targets[:n_asked] if json.dumps(items) not in seen)
        order = draws.sample(items, len(items))
        shown = json.dumps({"order": order, "seed": draws.getrandbits(31)})
        row = sql.begin_practice.first(
            connection, annotator=annotator, items=json.dumps(items), shown=shown, round=number,
            now=collection.now(connection),
        )  # fmt: skip
    answered = [one for one in mine if one.answer is not None]
    return {"state": "going", "n": len(answered) + 1, "of": n_asked, "row": row}


def answer_practice(
    collection: Collection, connection: sa.Connection, annotator: int, number: int, answer: Any
) -> dict[str, Any]:
    """Keep an answer to practice, and return what was expected, why, and how far the annotator is."""
    active_annotator(connection, annotator)
    rows = sql.practice.rows(connection, annotator=annotator)
    row = next((one for one in rows if one.id == number), None)
    if row is None:
        raise Fault("not_found", "there is no such practice of yours")
    order = json.loads(row.shown)["order"]
    if row.answer is None:
        kept = kept_answer(collection.settings, order, answer)
        told = feedback(collection, connection, order, kept)
        sql.end_practice.run(
            connection, practice=number, answer=json.dumps(kept), right=int(told["right"]),
            now=collection.now(connection),
        )  # fmt: skip
    else:
        # sent before; the first answer stands
        told = feedback(collection, connection, order, json.loads(row.answer))
    mine = [one for one in sql.practice.rows(connection, annotator=annotator) if one.round == row.round]
    n_asked = min(collection.settings.training, len(_targets(collection, connection)))
    n_right, needed = sum(one.is_right or 0 for one in mine), math.ceil(collection.settings.pass_mark * n_asked - 1e-9)
    state = "going"
    if sum(one.answer is not None for one in mine) >= n_asked:
        state = "passed" if n_right >= needed else "again"
        if state == "again" and row.round >= collection.settings.training_rounds:
            state = "failed"
        if state == "passed":
            sql.set_trained.run(connection, annotator=annotator, now=collection.now(connection))
        detail = {"state": state, "right": n_right, "of": n_asked}
        record_event(collection, connection, f"annotator {annotator}", "training", detail)
    return {**told, "state": state, "n_right": n_right, "of": n_asked, "needed": needed}


def feedback(
    collection: Collection, connection: sa.Connection, order: list[int], kept: dict[str, Any]
) -> dict[str, Any]:
    """Return whether an answer on items of known truth is right, what was expected, and why."""
    rows = {row.id: row for row in sql.known_items.rows(connection, campaign=collection.id)}
    truths = {item: rows[item].truth for item in order}
    right, _ = check_result(collection, kept, list(order), truths)
    expected: dict[str, Any] = {"grade": round(truths[order[0]])}
    if collection.settings.kind == "preference":
        expected = {"winner": "a" if truths[order[0]] > truths[order[1]] else "b"}
    elif collection.settings.kind == "ranking":
        levels = sorted(set(truths.values()), reverse=True)
        groups = [[item for item in order if truths[item] == level] for level in levels]
        expected = shown_value(order, {"order": groups})
    why = "\n\n".join(filter(None, (rows[item].explanation for item in order)))
    return {"right": bool(right), "expected": expected, "explanation": why}


def _targets(collection: Collection, connection: sa.Connection) -> list[tuple[list[int], bool]]:
    """What can be practised on, and whether it is explained: items, pairs or sets of known truth."""
    queries: dict[str, list[Any]] = {}
    for row in sql.known_items.rows(connection, campaign=collection.id):
        queries.setdefault(row.query, []).append(row)
    found: list[list[Any]] = []
    for rows in queries.values():
        if collection.settings.kind == "grade":
            found += [[row] for row in rows]
        elif collection.settings.kind == "preference":
            found += [list(pair) for pair in combinations(rows, 2) if pair[0].truth != pair[1].truth]
        elif len({row.truth for row in rows}) > 1:
            found.append(rows[: collection.settings.set_size])
    return [([row.id for row in rows], any(row.explanation for row in rows)) for rows in found[:_MOST_PAIRS]]
