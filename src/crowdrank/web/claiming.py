"""Giving out requests: what an annotator holds already, or the best open target that they have not seen.

A target has numbered seats: one is given with a request, freed when that ends, and taken over by the oldest spare
judgment.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from .collection import Collection, Statement
from .faults import Fault
from .store import AgainError

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


MAX_BATCH = 200
"""Requests that a program may hold at once, and judgments that it may send at once."""

_MAX_EXPIRED = 50

_ANNOTATOR = Statement(
    "SELECT id, name, kind, state, cost, n_answered, consented_at, joined_at FROM annotator WHERE id = :annotator",
    "FOR UPDATE",
)
_CAMPAIGN = Statement("SELECT state, budget, reserved FROM campaign WHERE id = :campaign")
_EXPIRED = Statement(
    "SELECT id, target, seat, cost FROM request WHERE state = 'offered' AND lease_until <= :now "
    "ORDER BY lease_until LIMIT :limit"
)
_EXPIRE = Statement(
    "UPDATE request SET state = 'expired', ended_at = :now, cost = 0 "
    "WHERE id = :request AND state = 'offered' AND lease_until <= :now"
)
_RESERVE = Statement(
    "UPDATE campaign SET reserved = reserved + :cost, changes = changes + :changes "
    "WHERE id = :campaign AND reserved + :cost <= budget"
)
_MINE = Statement("SELECT id FROM request WHERE annotator = :annotator AND state = 'offered' ORDER BY id")
_UNSEEN = (
    "NOT EXISTS (SELECT 1 FROM request r WHERE r.target = t.id AND r.annotator = :annotator "
    "AND r.state IN ('offered', 'answered', 'skipped'))"
)
_OPEN = Statement(
    "SELECT t.id, t.items, t.taken FROM target t WHERE t.campaign = :campaign AND t.taken < t.wanted "
    f"AND t.is_check = 0 AND {_UNSEEN} ORDER BY t.priority DESC, t.shuffle LIMIT :limit",
    "FOR UPDATE OF t SKIP LOCKED",
)
_MEANT = Statement(
    "SELECT t.id, t.items, t.taken FROM target t WHERE +t.campaign = :campaign AND t.id IN :targets "
    f"AND t.taken < t.wanted AND t.is_check = 0 AND {_UNSEEN} ORDER BY t.priority DESC, t.shuffle LIMIT :limit",
    "FOR UPDATE OF t SKIP LOCKED",
)
_CHECK = Statement(
    "SELECT t.id, t.items FROM target t WHERE t.campaign = :campaign AND t.is_check = 1 AND t.shuffle >= :draw "
    f"AND {_UNSEEN} ORDER BY t.shuffle LIMIT 1"
)
_ANY_UNSEEN = Statement(
    "SELECT 1 FROM target t WHERE t.campaign = :campaign AND t.taken < t.wanted AND t.is_check = 0 "
    f"AND {_UNSEEN} LIMIT 1"
)
_ANY_OPEN = Statement(
    "SELECT 1 FROM target t WHERE t.campaign = :campaign AND t.taken < t.wanted AND t.is_check = 0 LIMIT 1"
)
_EARLIEST_LEASE = Statement(
    "SELECT MIN(o.lease_until) AS lease FROM request o JOIN target t ON t.id = o.target WHERE o.state = 'offered' "
    f"AND +t.campaign = :campaign AND t.is_check = 0 AND {_UNSEEN}"
)
_INSERT = Statement(
    "INSERT INTO request (target, annotator, seat, state, shown, offered_at, lease_until, lease_most, cost) "
    "VALUES (:target, :annotator, :seat, 'offered', :shown, :now, :until, :most, :cost)"
)


@dataclass(frozen=True)
class Claim:
    """Requests that an annotator holds now, or why there are none and when to ask again."""

    requests: list[int]
    reason: str | None = None
    retry_after: float | None = None


def active_annotator(connection: sa.Connection, annotator: int) -> Any:
    """Return an annotator, locked; refuse one who was removed."""
    row = _ANNOTATOR.first(connection, annotator=annotator)
    if row is None or row.state == "removed":
        raise Fault("forbidden", "you are no longer part of this campaign; ask its owner")
    return row


def claim(
    collection: Collection, connection: sa.Connection, annotator: int, n: int = 1, lease_seconds: int | None = None
) -> Claim:
    """Return requests for an annotator: those they hold, and new ones up to the number asked for."""
    who = active_annotator(connection, annotator)
    return claim_for(collection, connection, who, n, lease_seconds)


def claim_for(
    collection: Collection, connection: sa.Connection, who: Any, n: int = 1, lease_seconds: int | None = None
) -> Claim:
    """Return the same for an annotator whose row is locked already."""
    if collection.settings.guidelines and who.kind == "person" and who.consented_at is None:
        raise Fault("consent_needed", "read the guidelines and accept them first")
    campaign = _CAMPAIGN.first(connection, campaign=collection.id)
    if campaign.state != "open" or who.state == "paused":
        return Claim([], "done" if campaign.state == "closed" else "paused", None if campaign.state == "closed" else 30)
    now = collection.now(connection)
    # on PostgreSQL freed targets stay locked until the end, so only a few are freed at a time
    freed = free_expired(collection, connection, now, _MAX_EXPIRED if connection.dialect.name == "sqlite" else 5)
    held = [row.id for row in _MINE.rows(connection, annotator=who.id)]
    limit = collection.settings.open_limit
    if who.kind == "program":
        limit = max(limit, n)
    more = min(n if who.kind == "person" else n - len(held), limit - len(held))
    affordable, new = more, list[int]()
    if more > 0:
        if who.cost:
            affordable = min(more, (campaign.budget - campaign.reserved + freed.cost) // who.cost)
        lease = collection.lease if lease_seconds is None else lease_seconds * 1_000_000
        if _offer(collection, connection, who, affordable, now, lease):
            former = set(held)
            new = [row.id for row in _MINE.rows(connection, annotator=who.id) if row.id not in former]
    reserve(collection, connection, who.cost * len(new) - freed.cost, freed.promoted)
    if held or new:
        return Claim([*held, *new] if who.kind == "person" else [*held, *new][: max(n, len(new))])
    return _why_nothing(collection, connection, who, affordable, now)


def reserve(collection: Collection, connection: sa.Connection, cost: int, changes: int = 0) -> None:
    """Reserve or give back money, the last thing an operation does: nobody else can until it is committed."""
    if not cost and not changes:
        return
    if not _RESERVE.run(connection, campaign=collection.id, cost=cost, changes=changes).rowcount:
        raise AgainError


@dataclass(frozen=True)
class Freed:
    """What requests gave back whose lease was over."""

    number: int = 0
    cost: int = 0
    promoted: int = 0


def free_expired(collection: Collection, connection: sa.Connection, now: int, limit: int) -> Freed:
    """End requests whose lease is over and free their seats; the caller gives back what was reserved."""
    number = cost = promoted = 0
    # targets are locked in the order of their numbers, so that two calls cannot wait for each other
    for row in sorted(_EXPIRED.rows(connection, now=now, limit=limit), key=attrgetter("target", "id")):
        lock_target(connection, row.target)
        if not _EXPIRE.run(connection, request=row.id, now=now).rowcount:
            continue
        number, cost = number + 1, cost + row.cost
        if row.seat is not None:
            promoted += free_seat(collection, connection, row.target)
    return Freed(number, cost, promoted)


def _offer(collection: Collection, connection: sa.Connection, who: Any, number: int, now: int, lease: int) -> int:
    """Number of new requests for an annotator, each with a seat of its own, or about an item of known truth."""
    n_checks = 0
    for _ in range(sum(random.random() < collection.settings.checks for _ in range(number))):
        target = _unseen_check(collection, connection, who.id)
        if target is None:
            break
        _INSERT.run_many(connection, [_request_row(who, target, None, now, lease)])
        n_checks += 1
    if number <= n_checks:
        return n_checks
    targets = _open_targets(collection, connection, who.id, number - n_checks)
    seats = take_seats(connection, targets)
    if seats is None:
        raise AgainError
    rows = [_request_row(who, target, seat, now, lease) for target, seat in zip(targets, seats, strict=True)]
    _INSERT.run_many(connection, rows)
    return n_checks + len(rows)


def _open_targets(collection: Collection, connection: sa.Connection, annotator: int, number: int) -> list[Any]:
    """The best open targets that an annotator has not seen: those that the scheme means for them, then the others."""
    named = {"campaign": collection.id, "annotator": annotator, "limit": number}
    meant = collection.meant.get(annotator)
    rows = _MEANT.rows(connection, targets=meant, **named) if meant else []
    if len(rows) == number:
        return rows
    seen = {row.id for row in rows}
    others = [row for row in _OPEN.rows(connection, **named) if row.id not in seen]
    return [*rows, *others[: number - len(rows)]]


def _unseen_check(collection: Collection, connection: sa.Connection, annotator: int) -> Any:
    """A target of known truth, drawn at random, that the annotator has not seen."""
    for draw in (random.getrandbits(31), 0):
        check = _CHECK.first(connection, campaign=collection.id, annotator=annotator, draw=draw)
        if check is not None:
            return check
    return None


def _request_row(who: Any, target: Any, seat: int | None, now: int, lease: int) -> dict[str, Any]:
    """Values of a new request; the order in which items are shown is drawn and kept."""
    order = json.loads(target.items)
    seed = random.getrandbits(31)
    random.Random(seed).shuffle(order)
    return {
        "target": target.id, "annotator": who.id, "seat": seat, "shown": json.dumps({"order": order, "seed": seed}),
        "now": now, "until": now + lease, "most": now + 3 * lease, "cost": who.cost,
    }  # fmt: skip


def _why_nothing(collection: Collection, connection: sa.Connection, who: Any, affordable: int, now: int) -> Claim:
    """Why there is nothing for an annotator, and when to ask again."""
    named = {"campaign": collection.id, "annotator": who.id}
    if _ANY_UNSEEN.first(connection, **named) is not None:
        if affordable <= 0:
            return Claim([], "budget")
        # somebody else has it locked at this moment
        return Claim([], "all_leased", 1.0)
    lease = _EARLIEST_LEASE.first(connection, **named).lease
    if lease is not None:
        return Claim([], "all_leased", max(1.0, (lease - now) / 1e6))
    wait = None if collection.rule is not None else 15.0
    if _ANY_OPEN.first(connection, campaign=collection.id) is not None:
        return Claim([], "judged_all", wait)
    return Claim([], "done", wait)
