"""What else may happen to a request that is held: its lease is extended, or it is skipped."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from .claiming import active_annotator, reserve
from .collection import Collection, Statement
from .faults import Fault
from .seats import free_seat, lock_target

_REQUEST = Statement(
    "SELECT id, target, annotator, seat, state, cost, lease_until, lease_most FROM request WHERE id = :request"
)
_EXTEND = Statement("UPDATE request SET lease_until = :until WHERE id = :request AND state = 'offered'")
_OTHER = Statement(
    "SELECT 1 FROM request WHERE target = :target AND annotator = :annotator AND id <> :request "
    "AND state IN ('offered', 'answered', 'skipped')"
)
_SKIP = Statement(
    "UPDATE request SET state = 'skipped', ended_at = :now, cost = 0, reason = :reason WHERE id = :request"
)
_ONE_MORE_SKIP = Statement("UPDATE target SET n_skipped = n_skipped + 1 WHERE id = :target")

MAX_REASON = 500


def extend(collection: Collection, connection: sa.Connection, annotator: int, request: int) -> int:
    """Hold a request for longer, three times the usual lease in all; return until when."""
    active_annotator(connection, annotator)
    row = _own_request(connection, annotator, request)
    lock_target(connection, row.target)
    row = _own_request(connection, annotator, request)
    now = collection.now(connection)
    if row.state != "offered" or row.lease_until <= now:
        raise Fault("lease_over", "this request is no longer held for you; you can still send your answer, or go on")
    until = max(row.lease_until, min(now + collection.lease, row.lease_most))
    _EXTEND.run(connection, request=request, until=until)
    return int(until)


def skip(collection: Collection, connection: sa.Connection, annotator: int, request: int, reason: str) -> str:
    """Give a request back for good: its seat and money are free, and it never returns to this annotator."""
    active_annotator(connection, annotator)
    row = _own_request(connection, annotator, request)
    lock_target(connection, row.target)
    row = _own_request(connection, annotator, request)
    if row.state == "skipped":
        return "skipped"
    if row.state == "answered":
        raise Fault("already_answered", "this request was answered; withdraw the judgment first")
    other = _OTHER.first(connection, target=row.target, annotator=annotator, request=request)
    if row.state == "expired" and other is not None:
        return "expired"
    _SKIP.run(connection, request=request, now=collection.now(connection), reason=reason[:MAX_REASON])
    _ONE_MORE_SKIP.run(connection, target=row.target)
    if row.state == "offered":
        promoted = free_seat(collection, connection, row.target) if row.seat is not None else 0
        reserve(collection, connection, -row.cost, promoted)
    return "skipped"


def _own_request(connection: sa.Connection, annotator: int, request: int) -> Any:
    """A request of the annotator's; anybody else's is not there."""
    row = _REQUEST.first(connection, request=request)
    if row is None or row.annotator != annotator:
        raise Fault("not_found", "there is no such request of yours")
    return row
