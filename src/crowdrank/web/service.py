"""The running service: a campaign, its door and counters, the way from a call to the database, what annotators see.

Annotators see a request with its contents, and themselves; never an item's id, never another's judgment.
Before the real work they may practise on items of known truth: what was expected is told after each.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from itertools import combinations
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from . import submitting
from .access import Access
from .campaign_file import Json
from .collection import Fault, Session, expect_found, record_event, savepoint, sql
from .overview import check_result
from .submitting import LABELS, Claim, Stored, Submission, active_annotator, kept_answer, shown_answer, shown_value

_BOUNDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, math.inf)


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = record.msg if isinstance(record.msg, dict) else {"event": "log", "message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            # where, not what: a message may hold what somebody sent
            inmost = list(traceback.walk_tb(record.exc_info[2]))[-1:]
            where = "".join(f"{frame.f_code.co_name}:{line}" for frame, line in inmost)
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
        self.buckets[route, next(bound for bound in _BOUNDS if seconds <= bound)] += 1

    def text(self, gauges: Json) -> str:
        """Return everything in the text format of Prometheus."""
        lines = ["# TYPE crowdrank_calls_total counter"]
        for (route, status), number in sorted(self.calls.items()):
            lines.append(f'crowdrank_calls_total{{route="{route}",status="{status}"}} {number}')
        lines.append("# TYPE crowdrank_call_seconds histogram")
        for route in sorted(self.seconds):
            below = 0
            for bound in _BOUNDS:
                below += self.buckets[route, bound]
                name = "+Inf" if bound == math.inf else f"{bound:g}"
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


def shown_request(db: Session, request: int) -> Json:
    """Return a request as its annotator sees it."""
    row = sql.request_with_query.first(db, request=request)
    return _show_request(db, row.id, row.shown, row.lease_until)


def _show_request(db: Session, request: int, shown: str, lease_until: int, place: str = "requests") -> Json:
    """A request as its annotator sees it: never an id of the owner's; with html or a file as the path to it."""
    order, settings = json.loads(shown), db.settings
    contents = item_contents(db, order["order"])
    items = []
    for label, (content, content_type, _) in zip(LABELS, contents, strict=False):
        is_file = content_type in ("image", "audio") and not content.startswith("https://")
        path = f"/api/v1/{place}/{request}/items/{label}"
        content = path if is_file or content_type == "html" else content
        items.append({"label": label, "content": content, "content_type": content_type})
    # where items are more than plain text, the query may be Markdown too
    query = {"content": contents[0][2], "content_type": "text" if contents[0][1] == "text" else "markdown"}
    more: Json = {"cant_tell": True} if settings.cant_tell else {}
    if settings.questions:
        more = {"questions": [asdict(one) for one in settings.questions]}
    return {
        "id": request, "kind": settings.kind, "query": query, "items": items, "scale": _scale(settings),
        "question": settings.question, "seed": order["seed"], "lease_until": lease_until, **more,
    }  # fmt: skip


def shown_item(db: Session, annotator: int, request: int, label: str, *, practice: bool = False) -> Any:
    """Return content and type of an item of a request that the annotator holds or answered."""
    submitting.expect_active(sql.annotator.first(db, annotator=annotator))
    rows = sql.requests.rows(db, requests=[request], annotator=annotator)
    if practice:
        rows = [one for one in sql.practice.rows(db, annotator=annotator) if one.id == request]
    order = json.loads(rows[0].shown)["order"] if rows else []
    place = LABELS.find(label) if len(label) == 1 else -1
    if not 0 <= place < len(order):
        raise Fault("not_found", "there is no such item of a request of yours")
    return item_contents(db, [order[place]])[0]


def item_contents(db: Session, items: list[int]) -> list[tuple[str, str, str]]:
    """Return content, type and the query's content of items, which never change."""
    cache = db.collection.contents
    # other threads may empty the cache at any moment, so what was found in it is held here
    contents = {item: cache.get(item) for item in items}
    new = [item for item, content in contents.items() if content is None]
    if new:
        if len(cache) > _MOST_CONTENTS:
            cache.clear()
        for row in sql.item_contents.rows(db, items=new):
            contents[row.id] = cache[row.id] = (row.content, row.content_type, row.query_content)
    return [content for content in (contents[item] for item in items) if content is not None]


def about_me(db: Session, annotator: int) -> Json:
    """Return what an annotator may know of themselves and of the campaign."""
    me = submitting.expect_active(sql.annotator.first(db, annotator=annotator))
    settings = db.settings
    recent = sql.recent_judgments.rows(db, annotator=annotator, limit=submitting.MAX_UNDO)
    seconds = sorted(row.seconds for row in recent if row.seconds is not None)
    facts: Json = {
        "name": me.name, "kind": me.kind, "n_answered": me.n_answered, "message": me.message,
        "n_open": sql.n_held.number(db, annotator=annotator),
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
            "state": sql.campaign_state.first(db).state,
            "guidelines": settings.guidelines, "scale": _scale(settings), "lease_seconds": settings.lease_seconds,
            "listen": settings.listen, "show_quality": settings.show_quality, "training": settings.training,
            **welcome(settings),
        },
        "trained": me.trained_at is not None,
        "consented": me.consented_at is not None or not settings.guidelines or me.kind == "program",
    }  # fmt: skip
    if settings.show_quality:
        row = sql.annotator_quality.first(db, name=me.name)
        facts["quality"] = None if row is None else json.loads(row.row).get("quality")
    return facts


def welcome(settings: Any) -> Json:
    """Return what people read before they join."""
    names = ("name", "kind", "about", "asked_by", "duration", "pay", "per_person", "language")
    return {name: getattr(settings, name) for name in names}


def completion(db: Session, annotator: int, reason: str | None) -> Any:
    """Return the code and the way back of a person who is done, ``None`` while there is more to do."""
    given = db.settings.completion
    me = sql.annotator.first(db, annotator=annotator)
    if not given or reason not in ("goal", "done", "judged_all", "budget") or not me.n_answered:
        return None
    code = given.get("code", "")
    url = given.get("url", "").replace("{code}", quote(code, safe="")).replace("{id}", quote(me.external, safe=""))
    return {"code": code, "url": url}


_MOST_SHOWN = 300
"""Characters of an item in a list of one's own answers."""


def own_history(db: Session, annotator: int, before: int, limit: int, search: str) -> Json:
    """Return own judgments behind a number, the latest first, whose contents, answer or comment have these words."""
    found: list[Json] = []
    words = search.casefold()
    while rows := sql.own_history.rows(db, annotator=annotator, before=before, limit=200):
        for row in rows:
            before = row.seq
            one = {
                "submission": row.submission, "seq": row.seq, "at": row.at, "seconds": row.seconds,
                "comment": row.comment, "changed": row.replaces is not None,
                "answer": shown_answer(db.settings, json.loads(row.shown)["order"], json.loads(row.answer)),
                "request": _show_request(db, row.request, row.shown, 0),
            }  # fmt: skip
            texts = [one["request"]["query"]["content"], one["comment"], json.dumps(one["answer"], ensure_ascii=False)]
            texts += [item["content"] for item in one["request"]["items"]]
            if words and not any(words in text.casefold() for text in texts):
                continue
            for item in one["request"]["items"]:
                item["content"] = item["content"][:_MOST_SHOWN]
            found.append(one)
            if len(found) == limit:
                return {"judgments": found, "next_before": before}
    return {"judgments": found, "next_before": None}


def _scale(settings: Any) -> Any:
    """What may be answered: names of grades, whether ties are allowed, or nothing to choose from."""
    if settings.kind == "grade":
        return list(settings.grades)
    if settings.kind == "ranking":
        return None
    return {"ties": settings.ties} | ({"strength": list(settings.strength)} if settings.strength else {})


_MOST_PAIRS = 2_000


def shown_practice(db: Session, annotator: int) -> Json:
    """Return how far an annotator is, and what they practise on next as they see a request, begun here if new."""
    who = active_annotator(db, annotator)
    if not db.settings.training or who.kind != "person" or who.trained_at is not None:
        return {"state": "passed"}
    targets = _targets(db)
    n_asked = min(db.settings.training, len(targets))
    rows = sql.practice.rows(db, annotator=annotator)
    number = max((row.round for row in rows), default=1)
    mine = [row for row in rows if row.round == number]
    if len(mine) >= n_asked and all(row.answer is not None for row in mine):
        if number >= db.settings.training_rounds:
            return {"state": "failed"}
        number, mine = number + 1, []
    row = next((row for row in mine if row.answer is None), None)
    if row is None:
        draws = random.Random(f"{db.settings.seed} {annotator} {number}")
        # those with an explanation teach most
        draws.shuffle(targets)
        targets.sort(key=lambda target: not target[1])
        seen = {one.items for one in mine}
        items = next(items for items, _ in targets[:n_asked] if json.dumps(items) not in seen)
        order = draws.sample(items, len(items))
        shown = json.dumps({"order": order, "seed": draws.getrandbits(31)})
        about = {"items": json.dumps(items), "shown": shown, "round": number}
        row = sql.begin_practice.first(db, annotator=annotator, **about, now=db.now())
    n_answered = sum(one.answer is not None for one in mine)
    shown_row = _show_request(db, row.id, row.shown, 0, "training")
    return {"state": "going", "n": n_answered + 1, "of": n_asked, "request": shown_row}


def answer_practice(db: Session, annotator: int, number: int, answer: Any) -> Json:
    """Keep an answer to practice, and return what was expected, why, and how far the annotator is."""
    active_annotator(db, annotator)
    rows = sql.practice.rows(db, annotator=annotator)
    row = expect_found(next((one for one in rows if one.id == number), None), "practice of yours")
    order = json.loads(row.shown)["order"]
    # of what was sent before the first answer stands
    kept = kept_answer(db.settings, order, answer) if row.answer is None else json.loads(row.answer)
    told = feedback(db, order, kept)
    if row.answer is None:
        right = int(told["right"])
        sql.end_practice.run(db, practice=number, answer=json.dumps(kept), right=right, now=db.now())
    mine = [one for one in sql.practice.rows(db, annotator=annotator) if one.round == row.round]
    n_asked = min(db.settings.training, len(_targets(db)))
    n_right, needed = sum(one.is_right or 0 for one in mine), math.ceil(db.settings.pass_mark * n_asked - 1e-9)
    state = "going"
    if sum(one.answer is not None for one in mine) >= n_asked:
        state = "passed" if n_right >= needed else "again"
        if state == "again" and row.round >= db.settings.training_rounds:
            state = "failed"
        if state == "passed":
            sql.set_trained.run(db, annotator=annotator, now=db.now())
        detail = {"state": state, "right": n_right, "of": n_asked}
        record_event(db, f"annotator {annotator}", "training", detail)
    return {**told, "state": state, "n_right": n_right, "of": n_asked, "needed": needed}


def feedback(db: Session, order: list[int], kept: Json) -> Json:
    """Return whether an answer on items of known truth is right, what was expected, and why."""
    rows = {row.id: row for row in sql.known_items.rows(db)}
    truths = {item: rows[item].truth for item in order}
    right, _ = check_result(db.settings, kept, list(order), truths)
    expected: Json = {"grade": round(truths[order[0]])}
    if db.settings.kind == "preference":
        expected = {"winner": "a" if truths[order[0]] > truths[order[1]] else "b"}
    elif db.settings.kind == "ranking":
        levels = sorted(set(truths.values()), reverse=True)
        groups = [[item for item in order if truths[item] == level] for level in levels]
        expected = shown_value(order, {"order": groups})
    why = "\n\n".join(filter(None, (rows[item].explanation for item in order)))
    return {"right": bool(right), "expected": expected, "explanation": why}


def _targets(db: Session) -> list[tuple[list[int], bool]]:
    """What can be practised on, and whether it is explained: items, pairs or sets of known truth."""
    queries: dict[str, list[Any]] = {}
    for row in sql.known_items.rows(db):
        queries.setdefault(row.query, []).append(row)
    found: list[list[Any]] = []
    for rows in queries.values():
        if db.settings.kind == "grade":
            found += [[row] for row in rows]
        elif db.settings.kind == "preference":
            found += [list(pair) for pair in combinations(rows, 2) if pair[0].truth != pair[1].truth]
        elif len({row.truth for row in rows}) > 1:
            found.append(rows[: db.settings.set_size])
    return [([row.id for row in rows], any(row.explanation for row in rows)) for rows in found[:_MOST_PAIRS]]


Result = TypeVar("Result")


class Service:
    """All that routes need."""

    def __init__(self, access: Access) -> None:
        self.access, self.collection = access, access.collection
        self.place = urlsplit(access.public_url).path
        """Where the pages of this campaign are, below the root where there are several."""
        self.telemetry = Telemetry()
        self.started = time.monotonic()
        self.probed = float("-inf")
        self.refit: Any = None

    async def write(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Run an operation of (db, ...); it is durable once this returns."""
        return await asyncio.wrap_future(self.collection.submit(operation, *args, **keys))

    async def read(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Run an operation of (db, ...) that only reads."""
        return await asyncio.wrap_future(self.collection.submit_read(operation, *args, **keys))

    async def submit(self, annotator: int, submission: Submission, *, next: bool) -> Json:
        """Keep a judgment and, where asked for, give out the next request and tell how a check went."""
        together = next and self.collection.store.dialect == "sqlite"

        def keep(db: Session) -> tuple[Stored, Json]:
            stored = submitting.submit(db, annotator, submission, next=together)
            return stored, {} if stored.next is None else {"next": _show_requests(db, stored.next, annotator)}

        stored, more = await self.write(keep)
        if next and not together:
            more["next"] = await self.claim(annotator)
        self.telemetry.events["replays" if stored.replayed else "judgments"] += 1
        if self.collection.settings.check_feedback and stored.known is not None:
            told = await self.read(feedback, *stored.known)
            more["feedback"] = {**told, "scale": _scale(self.collection.settings)}
        return {**stored.plain(), **more}

    async def submit_all(self, annotator: int, submissions: list[Submission]) -> list[Stored | Fault]:
        """Keep several judgments in one transaction; each is kept or refused on its own."""
        answers = await self.write(_submit_all, annotator, submissions)
        stored = [one for one in answers if isinstance(one, Stored)]
        self.telemetry.events.update("replays" if one.replayed else "judgments" for one in stored)
        return answers

    async def claim(self, annotator: int, n: int = 1, lease_seconds: int | None = None) -> Json:
        """Give out requests, as the annotator sees them."""
        return await self.write(
            lambda db: _show_requests(db, submitting.claim(db, annotator, n, lease_seconds), annotator)
        )


def _submit_all(db: Session, annotator: int, submissions: list[Submission]) -> list[Stored | Fault]:
    """Keep several judgments, all at once where that can be, else each in a savepoint of its own."""
    who = active_annotator(db, annotator)
    if not db.is_sqlite:
        # all targets before the campaign, in the order of their numbers: the order of all operations
        sql.lock_targets.run(db, requests=[one.request for one in submissions])
    at_once = submitting.keep_all(db, who, submissions)
    if at_once is not None:
        return at_once
    answers: list[Stored | Fault] = []
    for one in submissions:
        try:
            with savepoint(db.connection):
                answers.append(submitting.keep(db, who, one, locked=True))
        except Fault as fault:
            answers.append(fault)
    return answers


def _show_requests(db: Session, given_out: Claim, annotator: int) -> Json:
    """Requests as the annotator sees them, or why there are none."""
    shown = []
    if given_out.requests:
        held = {row.id: row for row in sql.held_with_queries.rows(db, annotator=annotator)}
        rows = [held[one] for one in given_out.requests]
        # contents that are not known yet are read at once, not one by one
        item_contents(db, [item for row in rows for item in json.loads(row.shown)["order"]])
        shown = [_show_request(db, row.id, row.shown, row.lease_until) for row in rows]
    answer: Json = {"requests": shown}
    if given_out.reason is not None:
        answer["reason"] = given_out.reason
    if given_out.retry_after is not None:
        answer["retry_after"] = round(given_out.retry_after, 1)
    if not given_out.requests and (code := completion(db, annotator, given_out.reason)):
        answer["completion"] = code
    return answer
