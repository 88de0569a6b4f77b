"""Routes of annotators: join, get requests, answer, skip, undo."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from . import people
from .access import FAILED_JOINS, Caller
from .answers import shown_answer
from .bodies import read_json
from .claiming import MAX_BATCH
from .collection import Statement
from .faults import Fault
from .items import media_file
from .routes import Route, as_json, number, whole
from .service import Service
from .skipping import MAX_REASON, extend, skip
from .submitting import Stored, Submission, withdraw
from .views import about_me, shown_item, shown_request

_AT_ONCE = 20
"""Judgments of a batch that are handed to the writer together, so that people are not kept waiting."""

_SHOWN = Statement("SELECT shown FROM request WHERE id = :request")
_SANDBOX = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


async def join(service: Service, request: Request, caller: Caller) -> Response:
    """Make an annotator of anyone who holds an invite; people get a cookie, programs the token itself."""
    service.access.expect_own_page_or_program(request)
    body = await read_json(request)
    if caller.role == "person":
        return as_json({"annotator": caller.name})
    address = service.access.address(request)
    wait = service.access.buckets.wait(("join", address), *FAILED_JOINS, take=0.0)
    if wait:
        raise Fault("too_many", "too many attempts to join; wait a minute", retry_after=wait)
    invite = body.get("invite")
    if not isinstance(invite, str) or not invite.startswith("cri_") or len(invite) > 200:
        service.access.buckets.wait(("join", address), *FAILED_JOINS)
        raise Fault("invalid", "invite must be the part of the link behind #", field="invite")
    name = people.checked_name(body.get("name"))
    try:
        joined = await service.write(people.join, invite, name)
    except Fault as fault:
        if fault.kind == "unauthorized":
            service.access.buckets.wait(("join", address), *FAILED_JOINS)
        raise
    if joined.kind == "program":
        return as_json({"annotator": joined.name, "token": joined.token})
    return as_json({"annotator": joined.name}, headers={"set-cookie": service.access.cookie_header(joined.token)})


async def accept(service: Service, request: Request, caller: Caller) -> Response:
    """Accept the guidelines."""
    await read_json(request)
    await service.write(people.consent, caller.annotator)
    return as_json({"consented": True})


async def requests(service: Service, request: Request, caller: Caller) -> Response:
    """Give out requests."""
    body = await read_json(request)
    n = whole(body.get("n", 1), "n", 1, MAX_BATCH)
    lease = body.get("lease_seconds")
    if lease is not None:
        lease = whole(lease, "lease_seconds", 5, 3 * service.collection.settings.lease_seconds)
    return as_json(await service.claim(caller.annotator, n, lease))


async def extend_request(service: Service, request: Request, caller: Caller) -> Response:
    """Hold a request for longer."""
    await read_json(request)
    return as_json({"lease_until": await service.write(extend, caller.annotator, number(request, "request"))})


async def skip_request(service: Service, request: Request, caller: Caller) -> Response:
    """Give a request back for good."""
    body = await read_json(request)
    parts = [body.get("reason", ""), body.get("text", "")]
    if not all(isinstance(part, str) and len(part) <= MAX_REASON for part in parts):
        raise Fault("invalid", f"reason and text must be texts of up to {MAX_REASON} characters", field="reason")
    reason = ": ".join(_printable(part) for part in parts if part.strip())
    state = await service.write(skip, caller.annotator, number(request, "request"), reason)
    return as_json({"state": state})


async def item(service: Service, request: Request, caller: Caller) -> Response:
    """Serve an image, a sound or a sandboxed page that a request shows."""
    held, label, collection = number(request, "request"), request.path_params["label"], service.collection
    shown = await service.read(lambda c: shown_item(collection, c, caller.annotator, held, label))
    content, content_type, _ = shown
    headers = {"cache-control": "private, max-age=3600", "content-security-policy": _SANDBOX}
    if content_type == "html":
        return Response(content.encode("utf-8", "replace"), 200, headers, "text/html; charset=utf-8")
    file = media_file(collection.folder, content, content_type)
    if file is None:
        raise Fault("not_found", "this item has no file")
    return FileResponse(file[0], media_type=file[1], headers=headers)


async def judgments(service: Service, request: Request, caller: Caller) -> Response:
    """Keep a judgment."""
    body = await read_json(request)
    return as_json(await _keep_judgment(service, caller, body))


async def batch(service: Service, request: Request, caller: Caller) -> Response:
    """Keep up to 200 judgments, each answered on its own."""
    body = await read_json(request)
    rows = body.get("judgments")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_BATCH:
        raise Fault("invalid", f"judgments must be a list of 1 to {MAX_BATCH} judgments", field="judgments")
    answers: list[dict[str, Any]] = [{}] * len(rows)
    submissions: list[tuple[int, Submission]] = []
    for place, row in enumerate(rows):
        try:
            submissions.append((place, Submission.of(row)))
        except Fault as fault:
            answers[place] = {"status": fault.status, **fault.plain()}
    for start in range(0, len(submissions), _AT_ONCE):
        part = submissions[start : start + _AT_ONCE]
        kept = await service.submit_all(caller.annotator, [one for _, one in part])
        for (place, _), one in zip(part, kept, strict=True):
            answers[place] = (
                {"status": one.status, **one.plain()} if isinstance(one, Fault) else {"status": 200, **_as_answer(one)}
            )
    return as_json({"results": answers})


async def withdraw_judgment(service: Service, request: Request, caller: Caller) -> Response:
    """Take a judgment back; its request is offered again with the old answer."""
    await read_json(request)
    return as_json(await service.write(_withdraw, caller.annotator, request.path_params["submission"][:64].lower()))


async def me(service: Service, request: Request, caller: Caller) -> Response:
    """Say what an annotator may know of themselves."""
    collection = service.collection
    return as_json(await service.read(lambda c: about_me(collection, c, caller.annotator)))


async def _keep_judgment(service: Service, caller: Caller, body: Any) -> dict[str, Any]:
    """What is answered to one judgment."""
    submission = Submission.of(body)
    stored, following = await service.submit(caller.annotator, submission, next=body.get("next") is True)
    answer = _as_answer(stored)
    if following is not None:
        answer["next"] = following
    return answer


def _as_answer(stored: Stored) -> dict[str, Any]:
    """A kept judgment as it is answered."""
    answer = {"seq": stored.seq, "replayed": stored.replayed, "counted": stored.counted}
    return {**answer, "withdrawn": True} if stored.withdrawn else answer


def _withdraw(collection: Any, connection: Any, annotator: int, submission: str) -> dict[str, Any]:
    """The request of a judgment that was taken back, and the old answer."""
    request, kept = withdraw(collection, connection, annotator, submission)
    order = json.loads(_SHOWN.first(connection, request=request).shown)["order"]
    old = shown_answer(collection.settings, order, json.loads(kept))
    return {"request": shown_request(collection, connection, request), "answer": old}


def _printable(text: str) -> str:
    """Text on one line, without characters that steer a terminal or that a database refuses."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


ROUTES = (
    Route("POST", "/api/v1/join", "open", join),
    Route("POST", "/api/v1/consent", "annotator", accept),
    Route("POST", "/api/v1/requests", "annotator", requests),
    Route("POST", "/api/v1/requests/{request}/extend", "annotator", extend_request),
    Route("POST", "/api/v1/requests/{request}/skip", "annotator", skip_request),
    Route("GET", "/api/v1/requests/{request}/items/{label}", "annotator", item),
    Route("POST", "/api/v1/judgments", "annotator", judgments),
    Route("POST", "/api/v1/judgments/batch", "program", batch),
    Route("POST", "/api/v1/judgments/{submission}/withdraw", "annotator", withdraw_judgment),
    Route("GET", "/api/v1/me", "annotator", me),
)
