"""Pausing, opening and closing a campaign."""

from __future__ import annotations

import sqlalchemy as sa

from .collection import Collection, Statement, record_event
from .faults import Fault

_LOCK = Statement("SELECT state FROM campaign WHERE id = :campaign", "FOR UPDATE")
_STATE = Statement("UPDATE campaign SET state = :state, changes = changes + 1 WHERE id = :campaign")
_HELD = Statement(
    "SELECT r.id, r.target, r.seat, r.cost FROM request r JOIN target t ON t.id = r.target "
    "WHERE t.campaign = :campaign AND r.state = 'offered' ORDER BY r.target, r.id",
    "FOR UPDATE OF t",
)
_END = Statement("UPDATE request SET state = 'expired', ended_at = :now, cost = 0 WHERE id = :request")
_FREE = Statement("UPDATE target SET taken = taken - 1, priority = priority + 1 WHERE id = :target")
_GIVE_BACK = Statement("UPDATE campaign SET reserved = reserved - :cost WHERE id = :campaign")
_ANY_LEFT = Statement("SELECT 1 FROM target WHERE campaign = :campaign AND taken < wanted AND is_check = 0 LIMIT 1")
_ANY_HELD = Statement(
    "SELECT 1 FROM request r JOIN target t ON t.id = r.target WHERE +t.campaign = :campaign "
    "AND r.state = 'offered' LIMIT 1"
)


def set_campaign_state(collection: Collection, connection: sa.Connection, state: str, actor: str) -> None:
    """Open, pause or close a campaign; closing ends every request that is held, and is for good."""
    cost = 0
    if state == "closed":
        # targets first, the campaign last: the order of all operations
        now = collection.now(connection)
        for row in _HELD.rows(connection, campaign=collection.id):
            _END.run(connection, request=row.id, now=now)
            if row.seat is not None:
                _FREE.run(connection, target=row.target)
            cost += row.cost
    former = _LOCK.first(connection, campaign=collection.id).state
    if former == "closed":
        if state == "closed":
            return
        raise Fault("closed", "the campaign is closed for good; start another to ask more")
    if former == state:
        return
    _STATE.run(connection, campaign=collection.id, state=state)
    if cost:
        _GIVE_BACK.run(connection, campaign=collection.id, cost=cost)
    record_event(collection, connection, actor, state)


def nothing_left(collection: Collection, connection: sa.Connection) -> bool:
    """Return whether nothing is open and nothing is held, so that a campaign may close itself."""
    named = {"campaign": collection.id}
    return _ANY_LEFT.first(connection, **named) is None and _ANY_HELD.first(connection, **named) is None
