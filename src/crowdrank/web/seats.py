"""The numbered seats of a target: given with a request, freed when it ends, taken over by the oldest spare judgment."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from .collection import Collection, Statement

_LOCK_TARGET = Statement("SELECT id, wanted, taken, most, is_check FROM target WHERE id = :target", "FOR UPDATE")
_SEATS = Statement(
    "SELECT target, seat FROM request WHERE target IN :targets AND state IN ('offered', 'answered') "
    "AND seat IS NOT NULL"
)
_TAKE_ONE = Statement(
    "UPDATE target SET taken = taken + 1, priority = priority - 1 "
    "WHERE id = :target AND taken < wanted AND is_check = 0"
)
_TAKE = Statement(
    "UPDATE target SET taken = taken + 1, priority = priority - 1 "
    "WHERE id = :target AND taken < wanted AND is_check = 0 RETURNING taken"
)
_FREE = Statement("UPDATE target SET taken = taken - 1, priority = priority + 1 WHERE id = :target")
_WANT = Statement("UPDATE target SET wanted = :wanted WHERE id = :target")
_GRADES = Statement(
    "SELECT j.answer FROM judgment j JOIN request r ON r.id = j.request "
    "WHERE j.target = :target AND j.counted = 1 AND j.withdrawn_at IS NULL ORDER BY r.seat"
)
_OLDEST_SPARE = Statement(
    "SELECT j.submission, j.request FROM judgment j JOIN request r ON r.id = j.request "
    "JOIN annotator a ON a.id = j.annotator WHERE j.target = :target AND j.counted = 0 AND j.withdrawn_at IS NULL "
    "AND r.state = 'answered' AND r.seat IS NULL AND a.state <> 'removed' ORDER BY j.seq LIMIT 1"
)
_SEAT_REQUEST = Statement("UPDATE request SET seat = :seat WHERE id = :request")
_COUNT = Statement("UPDATE judgment SET counted = 1 WHERE submission = :submission")
_STATE = Statement("SELECT state FROM campaign WHERE id = :campaign")


def lock_target(connection: sa.Connection, target: int) -> Any:
    """Return a target's counters; until the transaction ends nobody else changes them or its requests."""
    return _LOCK_TARGET.first(connection, target=target)


def take_seat(connection: sa.Connection, target: int, wish: int | None = None) -> int | None:
    """Return a free seat of a locked target, the wished one where it is free; ``None`` where all are taken."""
    row = _TAKE.first(connection, target=target)
    if row is None:
        return None
    if row.taken == 1:
        return wish or 1
    used = {row.seat for row in _SEATS.rows(connection, targets=[target])}
    return wish if wish is not None and wish not in used else _lowest_free(used)


def take_seats(connection: sa.Connection, targets: list[Any]) -> list[int] | None:
    """Return a free seat of each of some locked targets; ``None`` where one of them has none."""
    if _TAKE_ONE.run_many(connection, [{"target": target.id} for target in targets]) < len(targets):
        return None
    used: dict[int, set[int]] = {target.id: set() for target in targets if target.taken}
    if used:
        for row in _SEATS.rows(connection, targets=list(used)):
            used[row.target].add(row.seat)
    return [_lowest_free(used.get(target.id, set())) for target in targets]


def _lowest_free(used: set[int]) -> int:
    """The lowest seat that nobody has."""
    return next(seat for seat in range(1, len(used) + 2) if seat not in used)


def free_seat(collection: Collection, connection: sa.Connection, target: int) -> int:
    """Give back a seat of a locked target whose request has just lost it; return how many spares count from now on."""
    _FREE.run(connection, target=target)
    return settle_target(collection, connection, target)


def settle_target(collection: Collection, connection: sa.Connection, target: int) -> int:
    """Bring what a locked target wants up to date with its judgments; spares count while it wants more.

    Returns how many judgments count from now on that did not before, the oldest first.
    """
    promoted = 0
    while True:
        row = lock_target(connection, target)
        if row.is_check:
            return promoted
        wanted = _n_wanted(collection, connection, target, row)
        if wanted != row.wanted:
            _WANT.run(connection, target=target, wanted=wanted)
        if row.taken >= wanted or _STATE.first(connection, campaign=collection.id).state == "closed":
            return promoted
        spare = _OLDEST_SPARE.first(connection, target=target)
        if spare is None:
            return promoted
        seat = take_seat(connection, target)
        assert seat is not None
        _SEAT_REQUEST.run(connection, request=spare.request, seat=seat)
        _COUNT.run(connection, submission=spare.submission)
        promoted += 1


def settle_after_answer(collection: Collection, connection: sa.Connection, target: int) -> None:
    """Bring what a target wants up to date after one more judgment; a rule that merely counts has nothing to do."""
    rule = collection.rule
    if rule is not None and collection.settings.kind == "grade" and hasattr(rule.rule, "good_from"):
        settle_target(collection, connection, target)


def _n_wanted(collection: Collection, connection: sa.Connection, target: int, row: Any) -> int:
    """How many judgments a target should have: what the rule says of its grades, never fewer than are taken."""
    rule = collection.rule
    if rule is None:
        return int(row.wanted)
    grades: list[float] = []
    if collection.settings.kind == "grade":
        grades = [json.loads(one.answer)["grade"] for one in _GRADES.rows(connection, target=target)]
    return max(int(row.taken), min(rule.n_wanted(grades), collection.settings.overlap_max, int(row.most)))
