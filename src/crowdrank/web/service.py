"""The running service: a campaign, its door and counters, the way from a call to the database, what annotators see.

Annotators see a request with its contents, and themselves; never an item's id, never another's judgment.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import sqlalchemy as sa

from . import submitting
from .access import Access
from .collection import Collection, Fault, savepoint, sql
from .submitting import LABELS, Claim, Stored, Submission, shown_answer
from .training import feedback, next_practice

log = logging.getLogger("crowdrank.web")
_BOUNDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = record.msg if isinstance(record.msg, dict) else {"event": "log", "message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            # where, not what: a message may hold what somebody sent
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = "" if trace is None else f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
            fields = {**fields, "error": record.exc_info[0].__name__, "where": where}
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return json.dumps({"at": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower(), **fields})


def log_to_stderr(*, calls: bool = True) -> None:
    """Write the log to standard error, single calls only where wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("crowdrank.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "crowdrank.web" and calls else logging.WARNING)


class Telemetry:
    """What the service counts."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self.buckets: Counter[tuple[str, float]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.events: Counter[str] = Counter()

    def call(self, route: str, status: int, seconds: float) -> None:
        """Count a call and how long it took."""
        self.calls[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        bound = next((bound for bound in _BOUNDS if seconds <= bound), float("inf"))
        self.buckets[route, bound] += 1

    def text(self, gauges: dict[str, Any]) -> str:
        """Return everything in the text format of Prometheus."""
        lines = ["# TYPE crowdrank_calls_total counter"]
        for (route, status), number in sorted(self.calls.items()):
            lines.append(f'crowdrank_calls_total{{route="{route}",status="{status}"}} {number}')
        lines.append("# TYPE crowdrank_call_seconds histogram")
        for route in sorted(self.seconds):
            below = 0
            for bound in (*_BOUNDS, float("inf")):
                below += self.buckets[route, bound]
                name = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'crowdrank_call_seconds_bucket{{route="{route}",le="{name}"}} {below}')
            lines.append(f'crowdrank_call_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'crowdrank_call_seconds_count{{route="{route}"}} {below}')
        for name, number in sorted(self.events.items()):
            lines += [f"# TYPE crowdrank_{name}_total counter", f"crowdrank_{name}_total {number}"]
        for name, value in gauges.items():
            if value is not None:
                lines += [f"# TYPE crowdrank_{name} gauge", f"crowdrank_{name} {value}"]
        return "\n".join(lines) + "\n"


_MOST_CONTENTS = 5_000
"""Contents of items that are kept in memory."""


def shown_requests(
    collection: Collection, connection: sa.Connection, requests: list[int], annotator: int
) -> list[dict[str, Any]]:
    """Return requests that an annotator holds as they see them."""
    if not requests:
        return []
    held = {row.id: row for row in sql.held_with_queries.rows(connection, annotator=annotator)}
    # contents that are not known yet are read at once, not one by one
    item_contents(collection, connection, [item for one in requests for item in json.loads(held[one].shown)["order"]])
    return [_show_request(collection, connection, held[request]) for request in requests]


def shown_request(collection: Collection, connection: sa.Connection, request: int) -> dict[str, Any]:
    """Return a request as its annotator sees it."""
    return _show_request(collection, connection, sql.request_with_query.first(connection, request=request))


def _show_request(
    collection: Collection, connection: sa.Connection, row: Any, place: str = "requests"
) -> dict[str, Any]:
    """A request as its annotator sees it, from its row."""
    request = row.id
    shown, settings = json.loads(row.shown), collection.settings
    contents = item_contents(collection, connection, shown["order"])
    items = []
    for label, (content, content_type, _) in zip(LABELS, contents, strict=False):
        is_file = content_type in ("image", "audio") and not content.startswith("https://")
        served = content_type == "html" or is_file
        path = f"/api/v1/{place}/{request}/items/{label}"
        items.append({"label": label, "content": path if served else content, "content_type": content_type})
    return {
        "id": request, "kind": settings.kind, "query": _shown_query(contents[0]), "items": items,
        "scale": _scale(settings), "question": settings.question, "seed": shown["seed"],
        "lease_until": row.lease_until, **_more_of(settings),
    }  # fmt: skip


def _shown_query(content: tuple[str, str, str]) -> dict[str, str]:
    """What a request says of its query, never its id; where items are more than plain text, it may be Markdown too."""
    return {"content": content[2], "content_type": "text" if content[1] == "text" else "markdown"}


def shown_item(
    collection: Collection,
    connection: sa.Connection,
    annotator: int,
    request: int,
    label: str,
    *,
    practice: bool = False,
) -> Any:
    """Return content and type of an item of a request that the annotator holds or answered."""
    if sql.annotator.first(connection, annotator=annotator).state == "removed":
        raise Fault("forbidden", "you are no longer part of this campaign; ask its owner")
    if practice:
        row = next((one for one in sql.practice.rows(connection, annotator=annotator) if one.id == request), None)
    else:
        row = sql.request_with_query.first(connection, request=request)
        row = None if row is None or row.annotator != annotator else row
    order = [] if row is None else json.loads(row.shown)["order"]
    place = LABELS.find(label) if len(label) == 1 else -1
    if not 0 <= place < len(order):
        raise Fault("not_found", "there is no such item of a request of yours")
    return item_contents(collection, connection, [order[place]])[0]


def item_contents(collection: Collection, connection: sa.Connection, items: list[int]) -> list[tuple[str, str, str]]:
    """Return content, type and the query's content of items, which never change."""
    cache = collection.contents
    # other threads may empty the cache at any moment, so what was found in it is held here
    contents = {item: cache.get(item) for item in items}
    new = [item for item, content in contents.items() if content is None]
    if new:
        if len(cache) > _MOST_CONTENTS:
            cache.clear()
        for row in sql.item_contents.rows(connection, items=new, campaign=collection.id):
            contents[row.id] = cache[row.id] = (row.content, row.content_type, row.query_content)
    return [content for content in (contents[item] for item in items) if content is not None]


def about_me(collection: Collection, connection: sa.Connection, annotator: int) -> dict[str, Any]:
    """Return what an annotator may know of themselves and of the campaign."""
    me = sql.annotator.first(connection, annotator=annotator)
    if me is None or me.state == "removed":
        raise Fault("forbidden", "you are no longer part of this campaign; ask its owner")
    settings = collection.settings
    recent = sql.recent_judgments.rows(connection, annotator=annotator, limit=submitting.MAX_UNDO)
    seconds = sorted(row.seconds for row in recent if row.seconds is not None)
    facts: dict[str, Any] = {
        "name": me.name, "kind": me.kind, "n_answered": me.n_answered, "message": me.message,
        "n_open": sql.n_held.number(connection, annotator=annotator),
        "recent": [
            {
                "submission": row.submission, "seq": row.seq, "request": row.request, "at": row.at,
                "answer": shown_answer(settings, json.loads(row.shown)["order"], json.loads(row.answer)),
            }
            for row in recent
        ],
        "pace": seconds[len(seconds) // 2] if seconds else None,
        "campaign": {
            "name": settings.name, "kind": settings.kind, "question": settings.question,
            "state": sql.campaign_state.first(connection, campaign=collection.id).state,
            "guidelines": settings.guidelines, "scale": _scale(settings), "lease_seconds": settings.lease_seconds,
            "listen": settings.listen, "show_quality": settings.show_quality, "training": settings.training,
            **welcome(settings),
        },
        "trained": me.trained_at is not None,
        "consented": me.consented_at is not None or not settings.guidelines or me.kind == "program",
    }  # fmt: skip
    if settings.show_quality:
        row = sql.annotator_quality.first(connection, campaign=collection.id, name=me.name)
        facts["quality"] = None if row is None else json.loads(row.row).get("quality")
    return facts


def shown_practice(collection: Collection, connection: sa.Connection, annotator: int) -> dict[str, Any]:
    """Return what an annotator practises on next, as they see a request."""
    found = next_practice(collection, connection, annotator)
    row = found.pop("row", None)
    if row is None:
        return found
    shown = _show_request(collection, connection, _Shown(row.id, row.shown, 0, ""), "training")
    return {**found, "request": shown}


def welcome(settings: Any) -> dict[str, Any]:
    """Return what people read before they join."""
    names = ("name", "kind", "about", "asked_by", "duration", "pay", "per_person", "language")
    return {name: getattr(settings, name) for name in names}


def completion(collection: Collection, connection: sa.Connection, annotator: int, reason: str | None) -> Any:
    """Return the code and the way back of a person who is done, ``None`` while there is more to do."""
    given = collection.settings.completion
    me = sql.annotator.first(connection, annotator=annotator)
    if not given or reason not in ("goal", "done", "judged_all", "budget") or not me.n_answered:
        return None
    code = given.get("code", "")
    url = given.get("url", "").replace("{code}", quote(code, safe="")).replace("{id}", quote(me.external, safe=""))
    return {"code": code, "url": url}


_MOST_SHOWN = 300
"""Characters of an item in a list of one's own answers."""


def own_history(
    collection: Collection, connection: sa.Connection, annotator: int, before: int, limit: int, search: str
) -> dict[str, Any]:
    """Return own judgments behind a number, the latest first, whose contents, answer or comment have these words."""
    found: list[dict[str, Any]] = []
    words = search.casefold()
    while len(found) < limit:
        rows = sql.own_history.rows(connection, annotator=annotator, before=before, limit=200)
        for row in rows:
            before = row.seq
            one = own_judgment(collection, connection, row)
            texts = [one["request"]["query"]["content"], one["comment"], json.dumps(one["answer"], ensure_ascii=False)]
            texts += [item["content"] for item in one["request"]["items"]]
            if words and not any(words in text.casefold() for text in texts):
                continue
            for item in one["request"]["items"]:
                item["content"] = item["content"][:_MOST_SHOWN]
            found.append(one)
            if len(found) == limit:
                return {"judgments": found, "next_before": before}
        if len(rows) < 200:
            break
    return {"judgments": found, "next_before": None}


def own_judgment(collection: Collection, connection: sa.Connection, row: Any) -> dict[str, Any]:
    """Return a judgment as its annotator sees it, with the request that it answers."""
    shown = _show_request(collection, connection, _Shown(row.request, row.shown, 0, row.query))
    answer = shown_answer(collection.settings, json.loads(row.shown)["order"], json.loads(row.answer))
    return {
        "submission": row.submission, "seq": row.seq, "at": row.at, "seconds": row.seconds, "comment": row.comment,
        "changed": row.replaces is not None, "answer": answer, "request": shown,
    }  # fmt: skip


class _Shown(NamedTuple):
    """What a request is shown from."""

    id: int
    shown: str
    lease_until: int
    query: str


def _more_of(settings: Any) -> dict[str, Any]:
    """What a request says besides where there are several questions, or one that somebody may not be able to answer."""
    if settings.questions:
        return {"questions": [asdict(one) for one in settings.questions]}
    return {"cant_tell": True} if settings.cant_tell else {}


def _scale(settings: Any) -> Any:
    """What may be answered: names of grades, whether ties are allowed, or nothing to choose from."""
    if settings.kind == "grade":
        return list(settings.grades)
    if settings.kind == "ranking":
        return None
    return {"ties": settings.ties} | ({"strength": list(settings.strength)} if settings.strength else {})


Result = TypeVar("Result")


class Service:
    """All that routes need."""

    def __init__(
        self, collection: Collection, public_url: str, *, behind_proxy: bool = False, login_header: str = ""
    ) -> None:
        self.collection = collection
        self.access = Access(collection, public_url, behind_proxy=behind_proxy, login_header=login_header)
        self.place = urlsplit(public_url).path
        """Where the pages of this campaign are, below the root where there are several."""
        self.telemetry = Telemetry()
        self.started = time.monotonic()
        self.probed = float("-inf")
        self.refit: Any = None
        self.webhook: Any = None

    async def write(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Run an operation of (collection, connection, ...); it is durable once this returns."""
        collection = self.collection
        return await asyncio.wrap_future(collection.store.submit(lambda c: operation(collection, c, *args, **keys)))

    async def read(self, operation: Callable[[sa.Connection], Result]) -> Result:
        """Run an operation of (connection) that only reads."""
        return await asyncio.wrap_future(self.collection.store.submit_read(operation))

    async def submit(
        self, annotator: int, submission: Submission, *, next: bool
    ) -> tuple[Stored, dict[str, Any] | None, dict[str, Any] | None]:
        """Keep a judgment and, where asked for, give out the next request and tell how a check went."""
        if self.collection.store.dialect == "sqlite":
            stored, following = await self.write(_submit, annotator, submission, next)
        else:
            stored = await self.write(submitting.submit, annotator, submission)
            following = await self.claim(annotator) if next else None
        self.telemetry.events["replays" if stored.replayed else "judgments"] += 1
        if self.collection.settings.check_feedback and stored.known is not None:
            order, kept = stored.known
            told = await self.read(lambda c: feedback(self.collection, c, order, kept))
            scale = _scale(self.collection.settings)
            return stored, following, {**told, "scale": scale}
        return stored, following, None

    async def submit_all(self, annotator: int, submissions: list[Submission]) -> list[Stored | Fault]:
        """Keep several judgments in one transaction; each is kept or refused on its own."""
        answers = await self.write(_submit_all, annotator, submissions)
        for one in answers:
            if isinstance(one, Stored):
                self.telemetry.events["replays" if one.replayed else "judgments"] += 1
        return answers

    async def claim(self, annotator: int, n: int = 1, lease_seconds: int | None = None) -> dict[str, Any]:
        """Give out requests, as the annotator sees them."""

        def give_out(collection: Collection, connection: sa.Connection) -> dict[str, Any]:
            claimed = submitting.claim(collection, connection, annotator, n, lease_seconds)
            return _show_requests(collection, connection, claimed, annotator)

        return await self.write(give_out)


def _submit(
    collection: Collection, connection: sa.Connection, annotator: int, submission: Submission, next: bool
) -> tuple[Stored, dict[str, Any] | None]:
    """Keep a judgment and give out the next request in one transaction."""
    stored = submitting.submit(collection, connection, annotator, submission, next=next)
    following = None if stored.next is None else _show_requests(collection, connection, stored.next, annotator)
    return stored, following


def _submit_all(
    collection: Collection, connection: sa.Connection, annotator: int, submissions: list[Submission]
) -> list[Stored | Fault]:
    """Keep several judgments, all at once where that can be, else each in a savepoint of its own."""
    who = submitting.active_annotator(connection, annotator)
    if connection.dialect.name == "postgresql":
        # all targets before the campaign, in the order of their numbers: the order of all operations
        sql.lock_targets.run(connection, requests=[one.request for one in submissions])
    at_once = submitting.keep_all(collection, connection, who, submissions)
    if at_once is not None:
        return at_once
    answers: list[Stored | Fault] = []
    for one in submissions:
        try:
            with savepoint(connection):
                answers.append(submitting.keep(collection, connection, who, one, locked=True))
        except Fault as fault:
            answers.append(fault)
    return answers


def _show_requests(
    collection: Collection, connection: sa.Connection, given_out: Claim, annotator: int
) -> dict[str, Any]:
    """Requests as the annotator sees them, or why there are none."""
    answer: dict[str, Any] = {"requests": shown_requests(collection, connection, given_out.requests, annotator)}
    if given_out.reason is not None:
        answer["reason"] = given_out.reason
    if given_out.retry_after is not None:
        answer["retry_after"] = round(given_out.retry_after, 1)
    if not given_out.requests and (code := completion(collection, connection, annotator, given_out.reason)):
        answer["completion"] = code
    return answer
