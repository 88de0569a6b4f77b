"""Routes of annotators: join, get requests, answer, skip, undo."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from . import people
from .access import FAILED_JOINS
from .calls import API, Annotator, Answer, Anyone, Id, JsonRoute, Program, Running
from .campaign_file import media_file
from .claiming import MAX_BATCH
from .collection import Statement
from .faults import Body, Fault, must_be, refusal
from .service import about_me, shown_item, shown_request
from .submitting import MAX_REASON, Stored, Submission, extend, shown_answer, skip, withdraw

_AT_ONCE = 20
"""Judgments of a batch that are handed to the writer together, so that people are not kept waiting."""

_SHOWN = Statement("SELECT shown FROM request WHERE id = :request")
_SANDBOX = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

router = APIRouter(prefix=API, route_class=JsonRoute, default_response_class=Answer, tags=["annotators"])


class Joining(Body):
    """An invite, and a name to go by."""

    invite: Annotated[str, Field(pattern="^cri_", max_length=200), must_be("the part of the link behind #")]
    name: people.Name | None = None


class Wanted(Body):
    """How many requests to hold, and for how long."""

    n: Annotated[int, Field(ge=1, le=MAX_BATCH), must_be(f"a whole number from 1 to {MAX_BATCH}")] = 1
    lease_seconds: Annotated[int | None, must_be("a whole number of seconds")] = None


class Skipped(Body):
    """Why a request is given back."""

    reason: Annotated[str, Field(max_length=MAX_REASON), must_be(f"a text of up to {MAX_REASON} characters")] = ""
    text: Annotated[str, Field(max_length=MAX_REASON), must_be(f"a text of up to {MAX_REASON} characters")] = ""


class Judgment(Submission):
    """A judgment as it is sent, and whether the next request is wanted in the same answer."""

    next: Any = False


class Batch(Body):
    """Several judgments; each is kept or refused on its own."""

    judgments: Annotated[
        list[Any], Field(min_length=1, max_length=MAX_BATCH), must_be(f"a list of 1 to {MAX_BATCH} judgments")
    ]


class ShownItem(BaseModel):
    """An item as an annotator sees it; content is a path where it is a file or a page."""

    label: str
    content: str
    content_type: str


class ShownRequest(BaseModel):
    """A request as an annotator sees it."""

    id: int
    kind: str
    query: dict[str, str]
    items: list[ShownItem]
    scale: Any
    question: str
    seed: int
    lease_until: int


class Given(BaseModel):
    """Requests that the annotator holds; where there are none, why, and when to ask again."""

    requests: list[ShownRequest]
    reason: str | None = None
    retry_after: float | None = None


class Kept(BaseModel):
    """A judgment that is on disk; ``next`` where it was asked for."""

    seq: int
    replayed: bool
    counted: bool
    withdrawn: bool = False
    next: Given | None = None


@router.post("/join")
async def join(request: Request, service: Running, caller: Anyone, body: Joining) -> Response:
    """Make an annotator of anyone who holds an invite; people get a cookie, programs the token itself."""
    service.access.expect_own_page_or_program(request)
    if caller.role == "person":
        return Answer({"annotator": caller.name})
    address = service.access.address(request)
    wait = service.access.buckets.wait(("join", address), *FAILED_JOINS, take=0.0)
    if wait:
        raise Fault("too_many", "too many attempts to join; wait a minute", retry_after=wait)
    try:
        joined = await service.write(people.join, body.invite, body.name)
    except Fault as fault:
        if fault.kind == "unauthorized":
            service.access.buckets.wait(("join", address), *FAILED_JOINS)
        raise
    if joined.kind == "program":
        return Answer({"annotator": joined.name, "token": joined.token})
    return Answer({"annotator": joined.name}, headers={"set-cookie": service.access.cookie_header(joined.token)})


@router.post("/consent")
async def accept(service: Running, caller: Annotator) -> dict[str, bool]:
    """Accept the guidelines."""
    await service.write(people.consent, caller.annotator)
    return {"consented": True}


@router.post("/requests", response_model=Given, response_model_exclude_unset=True)
async def requests(service: Running, caller: Annotator, body: Wanted | None = None) -> dict[str, Any]:
    """Give out requests."""
    wanted = body or Wanted()
    most = 3 * service.collection.settings.lease_seconds
    if wanted.lease_seconds is not None and not 5 <= wanted.lease_seconds <= most:
        raise Fault("invalid", f"lease_seconds must be a whole number from 5 to {most}", field="lease_seconds")
    return await service.claim(caller.annotator, wanted.n, wanted.lease_seconds)


@router.post("/requests/{request}/extend")
async def extend_request(service: Running, caller: Annotator, request: Id) -> dict[str, int]:
    """Hold a request for longer."""
    return {"lease_until": await service.write(extend, caller.annotator, request)}


@router.post("/requests/{request}/skip")
async def skip_request(service: Running, caller: Annotator, request: Id, body: Skipped | None = None) -> dict[str, str]:
    """Give a request back for good."""
    parts = [] if body is None else [body.reason, body.text]
    # on one line, without characters that steer a terminal or that a database refuses
    plain = ("".join(letter if letter.isprintable() else " " for letter in part).strip() for part in parts)
    return {"state": await service.write(skip, caller.annotator, request, ": ".join(filter(None, plain)))}


@router.get("/requests/{request}/items/{label}", response_class=Response)
async def item(service: Running, caller: Annotator, request: Id, label: str) -> Response:
    """Serve an image, a sound or a sandboxed page that a request shows."""
    collection = service.collection
    shown = await service.read(lambda c: shown_item(collection, c, caller.annotator, request, label))
    content, content_type, _ = shown
    headers = {"cache-control": "private, max-age=3600", "content-security-policy": _SANDBOX}
    if content_type == "html":
        return Response(content.encode("utf-8", "replace"), 200, headers, "text/html; charset=utf-8")
    file = media_file(collection.folder, content, content_type)
    if file is None:
        raise Fault("not_found", "this item has no file")
    return FileResponse(file[0], media_type=file[1], headers=headers)


@router.post("/judgments", response_model=Kept, response_model_exclude_unset=True)
async def judgments(service: Running, caller: Annotator, body: Judgment) -> dict[str, Any]:
    """Keep a judgment."""
    stored, following = await service.submit(caller.annotator, body, next=body.next is True)
    return _stored_answer(stored) | ({} if following is None else {"next": following})


@router.post("/judgments/batch")
async def batch(service: Running, caller: Program, body: Batch) -> dict[str, Any]:
    """Keep up to 200 judgments, each answered on its own."""
    answers: list[dict[str, Any]] = [{}] * len(body.judgments)
    submissions: list[tuple[int, Submission]] = []
    for place, row in enumerate(body.judgments):
        try:
            submissions.append((place, Submission.model_validate(row)))
        except ValidationError as error:
            fault = refusal(error.errors()[0])
            answers[place] = {"status": fault.status, **fault.plain()}
    for start in range(0, len(submissions), _AT_ONCE):
        part = submissions[start : start + _AT_ONCE]
        kept = await service.submit_all(caller.annotator, [one for _, one in part])
        for (place, _), one in zip(part, kept, strict=True):
            answers[place] = (
                {"status": one.status, **one.plain()}
                if isinstance(one, Fault)
                else {"status": 200, **_stored_answer(one)}
            )
    return {"results": answers}


@router.post("/judgments/{submission}/withdraw")
async def withdraw_judgment(service: Running, caller: Annotator, submission: str) -> dict[str, Any]:
    """Take a judgment back; its request is offered again with the old answer."""
    return await service.write(_withdraw, caller.annotator, submission[:64].lower())


@router.get("/me")
async def me(service: Running, caller: Annotator) -> dict[str, Any]:
    """Say what an annotator may know of themselves."""
    collection = service.collection
    return await service.read(lambda c: about_me(collection, c, caller.annotator))


def _stored_answer(stored: Stored) -> dict[str, Any]:
    """A kept judgment as it is answered."""
    answer = {"seq": stored.seq, "replayed": stored.replayed, "counted": stored.counted}
    return {**answer, "withdrawn": True} if stored.withdrawn else answer


def _withdraw(collection: Any, connection: Any, annotator: int, submission: str) -> dict[str, Any]:
    """The request of a judgment that was taken back, and the old answer."""
    request, kept = withdraw(collection, connection, annotator, submission)
    order = json.loads(_SHOWN.first(connection, request=request).shown)["order"]
    old = shown_answer(collection.settings, order, json.loads(kept))
    return {"request": shown_request(collection, connection, request), "answer": old}
