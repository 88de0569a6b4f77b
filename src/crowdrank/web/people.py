"""Who takes part: invites, joining, consent, and what the owner does about annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import sqlalchemy as sa
from pydantic import AfterValidator, Field

from .access import ANNOTATOR, INVITE, new_token, token_hash
from .claiming import free_seat, lock_target, reserve
from .collection import Collection, Statement, record_event
from .faults import Body, Fault, must_be

MAX_NAME = 80
MAX_USES = 10_000
_MICROSECONDS_PER_DAY = 86_400_000_000
_UNCOUNTED_AT_ONCE = 100

_INVITE = Statement(
    "SELECT id, kind, name, uses_left, expires_at, revoked_at FROM invite "
    "WHERE token_hash = :hash AND campaign = :campaign",
    "FOR UPDATE",
)
_USE = Statement("UPDATE invite SET uses_left = uses_left - 1 WHERE id = :invite AND uses_left > 0")
_NAMED = Statement("SELECT 1 FROM annotator WHERE campaign = :campaign AND name = :name")
_N_ANNOTATORS = Statement("SELECT COUNT(*) AS n FROM annotator WHERE campaign = :campaign")
_JOIN = Statement(
    "INSERT INTO annotator (campaign, name, kind, token_hash, cost, joined_at) "
    "VALUES (:campaign, :name, :kind, :hash, :cost, :now) RETURNING id"
)
_NEW_INVITE = Statement(
    "INSERT INTO invite (campaign, token_hash, kind, name, uses_left, expires_at, created_at) "
    "VALUES (:campaign, :hash, :kind, :name, :uses, :expires, :now) RETURNING id"
)
_REVOKE = Statement(
    "UPDATE invite SET revoked_at = COALESCE(revoked_at, :now) WHERE id = :invite AND campaign = :campaign"
)
_CONSENT = Statement("UPDATE annotator SET consented_at = COALESCE(consented_at, :now) WHERE id = :annotator")
_STATE = Statement("UPDATE annotator SET state = :state WHERE id = :annotator AND campaign = :campaign")
_HELD = Statement(
    "SELECT id, target, seat, cost FROM request WHERE annotator = :annotator AND state = 'offered' "
    "ORDER BY target LIMIT 500"
)
_END = Statement("UPDATE request SET state = 'expired', ended_at = :now, cost = 0 WHERE id = :request")
_COUNTED = Statement(
    "SELECT submission, request, target FROM judgment WHERE annotator = :annotator AND counted = 1 "
    "AND withdrawn_at IS NULL ORDER BY target LIMIT :limit"
)
_UNSEAT = Statement("UPDATE request SET seat = NULL WHERE id = :request")
_UNCOUNT = Statement("UPDATE judgment SET counted = 0 WHERE submission = :submission")


def _printable_name(text: str) -> str:
    """A name that somebody chose, as it is shown."""
    name = " ".join(text.split())
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ValueError(text)
    return name


Name = Annotated[str, AfterValidator(_printable_name), must_be(f"1 to {MAX_NAME} printable characters")]


class Invite(Body):
    """An invite that the owner wants."""

    kind: Annotated[Literal["person", "program"], must_be("'person' or 'program'")] = "person"
    uses: Annotated[int, Field(ge=1, le=MAX_USES), must_be(f"a whole number from 1 to {MAX_USES}")] = 1
    days: Annotated[int, Field(ge=1, le=3650), must_be("a whole number from 1 to 3650")] = 30
    name: Name | None = None


@dataclass(frozen=True)
class Joined:
    """A new annotator, with the token that is shown once."""

    id: int
    name: str
    kind: str
    token: str


def join(collection: Collection, connection: sa.Connection, invite: str, name: str | None) -> Joined:
    """Make an annotator of anyone who holds an invite; uses, expiry and revocation are checked here and now."""
    now = collection.now(connection)
    row = _INVITE.first(connection, hash=token_hash(invite), campaign=collection.id)
    if row is None or row.revoked_at is not None or row.expires_at <= now:
        raise Fault("unauthorized", "this invite is not valid, or not any more; ask for another")
    if not _USE.run(connection, invite=row.id).rowcount:
        raise Fault("unauthorized", "this invite has no uses left; ask for another")
    chosen = row.name or name
    if chosen is None:
        chosen = f"{row.kind} {_N_ANNOTATORS.number(connection, campaign=collection.id) + 1}"
    if _NAMED.first(connection, campaign=collection.id, name=chosen) is not None:
        raise Fault("name_taken", "somebody has this name already; choose another", field="name")
    token = new_token(ANNOTATOR)
    new = _JOIN.first(
        connection, campaign=collection.id, name=chosen, kind=row.kind, hash=token_hash(token),
        cost=collection.settings.cost[row.kind], now=now,
    )  # fmt: skip
    record_event(collection, connection, f"annotator {new.id}", "joined", {"kind": row.kind})
    return Joined(int(new.id), chosen, row.kind, token)


def consent(collection: Collection, connection: sa.Connection, annotator: int) -> None:
    """Write down that an annotator accepts the guidelines."""
    _CONSENT.run(connection, annotator=annotator, now=collection.now(connection))


def new_invite(collection: Collection, connection: sa.Connection, wanted: Invite) -> tuple[int, str]:
    """Return the number and the token of a new invite."""
    if wanted.name is not None and wanted.uses > 1:
        raise Fault("invalid", "an invite with a name can be used once; leave the name or uses out", field="uses")
    token, now = new_token(INVITE), collection.now(connection)
    row = _NEW_INVITE.first(
        connection, campaign=collection.id, hash=token_hash(token), kind=wanted.kind, name=wanted.name,
        uses=wanted.uses, expires=now + wanted.days * _MICROSECONDS_PER_DAY, now=now,
    )  # fmt: skip
    detail = {"invite": int(row.id), "kind": wanted.kind, "uses": wanted.uses}
    record_event(collection, connection, "owner", "invite", detail)
    return int(row.id), token


def revoke_invite(collection: Collection, connection: sa.Connection, invite: int) -> None:
    """Let nobody join by an invite any more."""
    if not _REVOKE.run(connection, invite=invite, campaign=collection.id, now=collection.now(connection)).rowcount:
        raise Fault("not_found", "there is no such invite")
    record_event(collection, connection, "owner", "revoked", {"invite": invite})


def set_annotator_state(collection: Collection, connection: sa.Connection, annotator: int, state: str) -> None:
    """Let an annotator go on, pause or leave; what they hold is free at once when they leave."""
    if not _STATE.run(connection, annotator=annotator, campaign=collection.id, state=state).rowcount:
        raise Fault("not_found", "there is no such annotator")
    record_event(collection, connection, "owner", state, {"annotator": annotator})
    if state != "removed":
        return
    now, cost, promoted = collection.now(connection), 0, 0
    for row in _HELD.rows(connection, annotator=annotator):
        lock_target(connection, row.target)
        _END.run(connection, request=row.id, now=now)
        cost += row.cost
        if row.seat is not None:
            promoted += free_seat(collection, connection, row.target)
    reserve(collection, connection, -cost, promoted)


def uncount_some(collection: Collection, connection: sa.Connection, annotator: int) -> int:
    """Let some judgments of a removed annotator count no more; return how many, 0 once none is left."""
    rows = _COUNTED.rows(connection, annotator=annotator, limit=_UNCOUNTED_AT_ONCE)
    for row in rows:
        target = lock_target(connection, row.target)
        _UNCOUNT.run(connection, submission=row.submission)
        if not target.is_check:
            _UNSEAT.run(connection, request=row.request)
            free_seat(collection, connection, row.target)
    reserve(collection, connection, 0, len(rows))
    return len(rows)
