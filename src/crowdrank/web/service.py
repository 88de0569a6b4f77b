"""The running service: a campaign, its door, its counters, and the way from a call to the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from .access import Access
from .claiming import Claim, active_annotator, claim
from .collection import Collection, Statement
from .faults import Fault
from .store import savepoint
from .submitting import Stored, Submission, keep, keep_all, submit
from .telemetry import Telemetry
from .views import shown_requests

Result = TypeVar("Result")

_LATEST_FIT = Statement(
    "SELECT id, seq, changes, method, summary, finished_at, is_final FROM fit WHERE campaign = :campaign "
    "AND finished_at IS NOT NULL AND error IS NULL ORDER BY id DESC LIMIT 1"
)
_LOCK_TARGETS = Statement(
    "SELECT t.id FROM target t WHERE t.id IN (SELECT r.target FROM request r WHERE r.id IN :requests) ORDER BY t.id",
    "FOR UPDATE",
)


class Service:
    """All that routes need."""

    def __init__(self, collection: Collection, public_url: str, *, behind_proxy: bool = False) -> None:
        self.collection = collection
        self.access = Access(collection, public_url, behind_proxy=behind_proxy)
        self.telemetry = Telemetry()
        self.started = time.monotonic()
        self.refit: Any = None

    async def write(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Run an operation of (collection, connection, ...); it is durable once this returns."""
        collection = self.collection
        return await asyncio.wrap_future(collection.store.submit(lambda c: operation(collection, c, *args, **keys)))

    async def read(self, operation: Callable[[sa.Connection], Result]) -> Result:
        """Run an operation of (connection) that only reads."""
        return await asyncio.wrap_future(self.collection.store.submit_read(operation))

    async def submit(
        self, annotator: int, submission: Submission, *, next: bool
    ) -> tuple[Stored, dict[str, Any] | None]:
        """Keep a judgment and, where asked for, give out the next request."""
        if self.collection.store.dialect == "sqlite":
            stored, following = await self.write(_submit, annotator, submission, next)
        else:
            stored = await self.write(submit, annotator, submission)
            following = await self.claim(annotator) if next else None
        self.telemetry.events["replays" if stored.replayed else "judgments"] += 1
        return stored, following

    async def submit_all(self, annotator: int, submissions: list[Submission]) -> list[Stored | Fault]:
        """Keep several judgments in one transaction; each is kept or refused on its own."""
        answers = await self.write(_submit_all, annotator, submissions)
        for one in answers:
            if isinstance(one, Stored):
                self.telemetry.events["replays" if one.replayed else "judgments"] += 1
        return answers

    async def claim(self, annotator: int, n: int = 1, lease_seconds: int | None = None) -> dict[str, Any]:
        """Give out requests, as the annotator sees them."""
        return await self.write(_claim, annotator, n, lease_seconds)


def latest_fit(collection: Collection, connection: sa.Connection) -> Any:
    """Return the latest fit that came to an end, or ``None``."""
    return _LATEST_FIT.first(connection, campaign=collection.id)


def _submit(
    collection: Collection, connection: sa.Connection, annotator: int, submission: Submission, next: bool
) -> tuple[Stored, dict[str, Any] | None]:
    """Keep a judgment and give out the next request in one transaction."""
    stored = submit(collection, connection, annotator, submission, next=next)
    following = None if stored.next is None else _show_requests(collection, connection, stored.next, annotator)
    return stored, following


def _submit_all(
    collection: Collection, connection: sa.Connection, annotator: int, submissions: list[Submission]
) -> list[Stored | Fault]:
    """Keep several judgments, all at once where that can be, else each in a savepoint of its own."""
    who = active_annotator(connection, annotator)
    if connection.dialect.name == "postgresql":
        # all targets before the campaign, in the order of their numbers: the order of all operations
        _LOCK_TARGETS.run(connection, requests=[one.request for one in submissions])
    at_once = keep_all(collection, connection, who, submissions)
    if at_once is not None:
        return at_once
    answers: list[Stored | Fault] = []
    for one in submissions:
        try:
            with savepoint(connection):
                answers.append(keep(collection, connection, who, one, locked=True))
        except Fault as fault:
            answers.append(fault)
    return answers


def _claim(
    collection: Collection, connection: sa.Connection, annotator: int, n: int, lease_seconds: int | None
) -> dict[str, Any]:
    """Give out requests."""
    return _show_requests(collection, connection, claim(collection, connection, annotator, n, lease_seconds), annotator)


def _show_requests(
    collection: Collection, connection: sa.Connection, given_out: Claim, annotator: int
) -> dict[str, Any]:
    """Requests as the annotator sees them, or why there are none."""
    answer: dict[str, Any] = {"requests": shown_requests(collection, connection, given_out.requests, annotator)}
    if given_out.reason is not None:
        answer["reason"] = given_out.reason
    if given_out.retry_after is not None:
        answer["retry_after"] = round(given_out.retry_after, 1)
    return answer
