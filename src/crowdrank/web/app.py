"""The web application: its routes and pages, who may call them, what may be sent, what every answer carries."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from inspect import Signature, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import CrowdrankError
from . import access, overview, steering, submitting
from .access import NOBODY, Caller
from .campaign_file import Json, media_file, must_be
from .collection import Body, Fault, Id, JudgmentNumber, Session, expect_found, log, record_event, refusal, sql
from .service import Service, about_me, answer_practice, own_history, shown_item, shown_practice, shown_request, welcome
from .setup import set_campaign_state
from .submitting import MAX_BATCH, MAX_REASON, Comment, Stored, Submission
from .transfer import FORMATS, IMPORTED, export, import_file, judgment_page

API = "/api/v1"
IMPORT_PATH = f"{API}/import"
MAX_BODY = 256 * 1024
MAX_IMPORT = 64 * 1024 * 1024
MAX_DEPTH = 20
BODY_SECONDS = 30.0

ROLES = {
    "open": ("open", "person", "program", *access.STAFF),
    "annotator": ("person", "program"),
    "program": ("program",),
    "viewer": access.STAFF,
    "reviewer": ("owner", "reviewer"),
    "owner": ("owner",),
}
"""Who may call a route of each role."""


class Allow:
    """The dependency of every route: who is calling, refused where they may not."""

    def __init__(self, role: str) -> None:
        self.role = role

    async def __call__(self, request: Request) -> Caller:
        """Return the caller."""
        access = running(request).access
        try:
            caller = await access.identify(request, running(request).read)
        except Fault:
            # guesses at tokens are counted by the address they come from
            access.expect_rate(request, NOBODY)
            if request.scope["below"] or len(request.app.state.services) == 1:
                raise
            # a token of another campaign of the same service
            caller = NOBODY
        request.scope["caller"] = caller
        if self.role != "open" or caller.role != "open":
            access.expect_rate(request, caller)
        if caller.role not in ROLES[self.role]:
            if caller.role == "open":
                raise Fault("unauthorized", "this needs a token; join by an invite link, or send Authorization: Bearer")
            raise Fault("forbidden", f"this is for the {self.role}, and you are a {caller.role}")
        if caller.by_cookie and request.method not in ("GET", "HEAD"):
            access.expect_same_site(request)
        return caller


def running(request: Request) -> Service:
    """Return the service that a call came to."""
    return request.scope["service"]


Running = Annotated[Service, Depends(running)]
Anyone = Annotated[Caller, Depends(Allow("open"))]
Annotator = Annotated[Caller, Depends(Allow("annotator"))]
Program = Annotated[Caller, Depends(Allow("program"))]
Viewer = Annotated[Caller, Depends(Allow("viewer"))]
Reviewer = Annotated[Caller, Depends(Allow("reviewer"))]
Owner = Annotated[Caller, Depends(Allow("owner"))]


class Answer(JSONResponse):
    """An answer in JSON."""

    def render(self, content: Any) -> bytes:
        """Return the text; a lone half of a character does not break it."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


class JsonRequest(Request):
    """A call whose body is JSON, whatever its content type says: curl's own is that of a form."""

    @property
    def headers(self) -> Headers:
        """The headers, with the content type of the body."""
        return Headers({**super().headers, "content-type": "application/json"})

    async def json(self) -> Any:
        """Return the object that is sent; refuse what is none, or nested too deeply."""
        try:
            # NaN and Infinity, which are no JSON, are no whole numbers either
            body = json.loads(await self.body(), parse_constant=int)
        except (ValueError, RecursionError):
            raise Fault("not_json", "the body is not JSON") from None
        if not isinstance(body, dict):
            raise Fault("not_json", "the body must be a JSON object")
        level: list[Any] = [body]
        for _ in range(MAX_DEPTH + 1):
            containers = [one for one in level if isinstance(one, dict | list)]
            level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
        if level:
            raise Fault("not_json", f"the body is nested deeper than {MAX_DEPTH}")
        return body


class JsonRoute(APIRoute):
    """A route that takes JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a call."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return answer


def limit_body(receive: Receive, scope: Scope) -> Receive:
    """Return what reads a call and refuses a body that is too long or too slow."""
    most = MAX_IMPORT if scope["path"] == IMPORT_PATH else MAX_BODY
    announced = Headers(scope=scope).get("content-length", "")
    size, deadline, whole = 0, 0.0, False

    async def read() -> Message:
        nonlocal size, deadline, whole
        if whole:
            # an answer that is streamed waits here for the caller to go away
            return await receive()
        clock = asyncio.get_running_loop().time
        deadline = deadline or clock() + (BODY_SECONDS if most == MAX_BODY else 20 * BODY_SECONDS)
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise Fault("bad_request", "the body did not arrive in time; send it again") from None
        size, whole = size + len(message.get("body", b"")), not message.get("more_body", False)
        if size > most or (announced.isdigit() and int(announced) > most):
            raise Fault("too_large", f"the body is over {most // 1024} kB; send less at a time")
        return message

    return read


_AT_ONCE = 20
"""Judgments of a batch that are handed to the writer together, so that people are not kept waiting."""

SANDBOX = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

annotator_router = APIRouter(prefix=API, route_class=JsonRoute, default_response_class=Answer, tags=["annotators"])


class Joining(Body):
    """An invite, and a name to go by."""

    invite: Annotated[str, Field(pattern="^cr[ia]_", max_length=200), must_be("the part of the link behind #")]
    name: access.Name | None = None
    external: access.PanelId = ""
    session: access.PanelId = ""


class Wanted(Body):
    """How many requests to hold, and for how long."""

    n: Annotated[int, Field(ge=1, le=MAX_BATCH), must_be(f"a whole number from 1 to {MAX_BATCH}")] = 1
    lease_seconds: Annotated[int | None, must_be("a whole number of seconds")] = None


Reason = Annotated[str, Field(max_length=MAX_REASON), must_be(f"a text of up to {MAX_REASON} characters")]


class Skipped(Body):
    """Why a request is given back."""

    reason: Reason = ""
    text: Reason = ""


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
    kind: Literal["grade", "preference", "ranking"]
    query: dict[str, str]
    items: list[ShownItem]
    scale: Any
    question: str
    seed: int
    lease_until: int
    questions: list[Json] | None = None
    cant_tell: bool | None = None


class Given(BaseModel):
    """Requests that the annotator holds; where there are none, why, and when to ask again."""

    requests: list[ShownRequest]
    reason: str | None = None
    retry_after: float | None = None
    completion: dict[str, str] | None = None


class Kept(BaseModel):
    """A judgment that is on disk; ``next`` where it was asked for."""

    seq: int
    replayed: bool
    counted: bool
    withdrawn: bool = False
    next: Given | None = None
    feedback: Json | None = None


@annotator_router.post("/join")
async def join(request: Request, service: Running, caller: Anyone, body: Joining) -> Response:
    """Make an annotator of anyone who holds an invite; people get a cookie, programs the token itself."""
    service.access.expect_own_page_or_program(request)
    if body.invite.startswith(access.ANNOTATOR):
        # a personal link: the browser gets the cookie of the annotator whose it is
        known = await service.access.of_token(body.invite, service.read, by_cookie=False)
        if known.role != "person":
            raise Fault("unauthorized", "this link is not for a person; send the token as Authorization: Bearer")
        return Answer({"annotator": known.name}, headers={"set-cookie": service.access.cookie_header(body.invite)})
    if caller.role == "person":
        return Answer({"annotator": caller.name})
    try:
        # who holds an invite is let in, whoever else tries from the same address
        await service.read(access.expect_invite, body.invite)
        joined = await service.write(access.join, body.invite, body.name, body.external, body.session)
    except Fault as fault:
        # who shares an address with somebody who guesses still gets in by a good invite
        address = service.access.address(request)
        if fault.kind == "unauthorized":
            wait = service.access.buckets.wait(("join", address), *access.FAILED_JOINS)
            if wait:
                raise Fault("too_many", "too many attempts to join; wait a minute", retry_after=wait) from None
        raise
    service.access.forget(joined.id)
    if joined.kind == "program":
        return Answer({"annotator": joined.name, "token": joined.token})
    return Answer({"annotator": joined.name}, headers={"set-cookie": service.access.cookie_header(joined.token)})


class Invited(Body):
    """An invite."""

    invite: Annotated[str, Field(max_length=200), must_be("the part of the link behind #")]


@annotator_router.post("/welcome")
async def welcome_page(request: Request, service: Running, caller: Anyone, body: Invited) -> Json:
    """Say what an invite is for, before anybody joins."""
    row = await service.read(access.expect_invite, body.invite)
    return {**welcome(service.collection.settings), "named": row.name is not None, "used_up": row.uses_left < 1}


@annotator_router.post("/me/link")
async def own_link(request: Request, service: Running, caller: Annotator) -> dict[str, str]:
    """Give the link by which a person goes on in another browser; whoever has it is them."""
    if not caller.by_cookie:
        raise Fault("forbidden", "this is for people; a program keeps its token")
    return {"link": f"{service.access.public_url}/j/#{service.access.token_of(request)}"}


@annotator_router.get("/history")
async def history(
    service: Running,
    caller: Annotator,
    before: JudgmentNumber = 2**62,
    limit: Annotated[int, Field(ge=1, le=200), must_be("a whole number from 1 to 200")] = 50,
    search: overview.Search = "",
) -> Json:
    """List own judgments, the latest first; what was changed or withdrawn is not among them."""
    return await service.read(own_history, caller.annotator, before, limit, search)


@annotator_router.get("/requests/{request}")
async def one_request(service: Running, caller: Annotator, request: Id) -> ShownRequest:
    """Show a request of one's own again, such as one to be answered anew."""
    await service.read(shown_item, caller.annotator, request, "a")
    return ShownRequest.model_validate(await service.read(shown_request, request))


class Commented(Body):
    """What an annotator says about a judgment."""

    comment: Comment


@annotator_router.post("/judgments/{submission}/comment")
async def comment(service: Running, caller: Annotator, submission: str, body: Commented) -> dict[str, str]:
    """Keep a comment on one's own judgment; it can be changed."""
    await service.write(submitting.set_comment, caller.annotator, submission[:64].lower(), body.comment)
    return {"comment": body.comment}


@annotator_router.post("/consent")
async def accept(service: Running, caller: Annotator) -> dict[str, bool]:
    """Accept the guidelines."""
    await service.write(lambda db: sql.consent.run(db, annotator=caller.annotator, now=db.now()))
    return {"consented": True}


@annotator_router.post("/requests", response_model=Given, response_model_exclude_unset=True)
async def requests(service: Running, caller: Annotator, body: Wanted | None = None) -> Json:
    """Give out requests."""
    wanted = body or Wanted()
    most = 3 * service.collection.settings.lease_seconds
    if wanted.lease_seconds is not None and not 5 <= wanted.lease_seconds <= most:
        raise Fault("invalid", f"lease_seconds must be a whole number from 5 to {most}", field="lease_seconds")
    return await service.claim(caller.annotator, wanted.n, wanted.lease_seconds)


@annotator_router.post("/requests/{request}/extend")
async def extend_request(service: Running, caller: Annotator, request: Id) -> dict[str, int]:
    """Hold a request for longer."""
    return {"lease_until": await service.write(submitting.extend, caller.annotator, request)}


@annotator_router.post("/requests/{request}/skip")
async def skip_request(service: Running, caller: Annotator, request: Id, body: Skipped | None = None) -> dict[str, str]:
    """Give a request back for good."""
    parts = [] if body is None else [body.reason, body.text]
    # on one line, without characters that steer a terminal or that a database refuses
    plain = ("".join(letter if letter.isprintable() else " " for letter in part).strip() for part in parts)
    return {"state": await service.write(submitting.skip, caller.annotator, request, ": ".join(filter(None, plain)))}


class Practised(Body):
    """An answer to practice."""

    answer: Any = None


@annotator_router.post("/training")
async def training(service: Running, caller: Annotator) -> Json:
    """Give what to practise on next, or say that it is passed or failed."""
    return await service.write(shown_practice, caller.annotator)


@annotator_router.post("/training/{request}")
async def practise(service: Running, caller: Annotator, request: Id, body: Practised) -> Json:
    """Keep an answer to practice, and tell what was expected and why."""
    return await service.write(answer_practice, caller.annotator, request, body.answer)


@annotator_router.get("/training/{request}/items/{label}", response_class=Response)
@annotator_router.get("/requests/{request}/items/{label}", response_class=Response)
async def item(call: Request, service: Running, caller: Annotator, request: Id, label: str) -> Response:
    """Serve an image, a sound or a sandboxed page that a request shows, or that there is to practise on."""
    practice = call.scope["route"].path.startswith(f"{API}/training/")
    shown = await service.read(shown_item, caller.annotator, request, label, practice=practice)
    return _content(service, shown[0], shown[1], {"cache-control": "private, max-age=3600"})


def _content(service: Service, content: str, content_type: str, headers: dict[str, str]) -> Response:
    """The file of an image or a sound, or the sandboxed page, of an item."""
    headers = {**headers, "content-security-policy": SANDBOX}
    if content_type == "html":
        return Response(content.encode("utf-8", "replace"), 200, headers, "text/html; charset=utf-8")
    file = media_file(service.collection.folder, content, content_type)
    if file is None:
        raise Fault("not_found", "this item has no file")
    return FileResponse(file[0], media_type=file[1], headers=headers)


@annotator_router.post("/judgments", name="judgments", response_model=Kept, response_model_exclude_unset=True)
async def keep_judgment(service: Running, caller: Annotator, body: Judgment) -> Json:
    """Keep a judgment."""
    return await service.submit(caller.annotator, body, next=body.next is True)


@annotator_router.post("/judgments/batch")
async def batch(service: Running, caller: Program, body: Batch) -> Json:
    """Keep up to 200 judgments, each answered on its own."""
    answers: list[Json] = [{}] * len(body.judgments)
    submissions: list[tuple[int, Submission]] = []
    for place, row in enumerate(body.judgments):
        try:
            submissions.append((place, Submission.model_validate(row)))
        except ValidationError as error:
            fault = refusal(error.errors()[0])
            answers[place] = {"status": fault.status, **fault.plain()}
    for start in range(0, len(submissions), _AT_ONCE):
        part = submissions[start : start + _AT_ONCE]
        kept: list[Stored | Fault]
        try:
            kept = await service.submit_all(caller.annotator, [one for _, one in part])
        except Fault as fault:
            if not start:
                raise
            # earlier parts are on disk, so what failed is said of these alone
            kept = [fault] * len(part)
        for (place, _), one in zip(part, kept, strict=True):
            answers[place] = {"status": one.status if isinstance(one, Fault) else 200, **one.plain()}
    return {"results": answers}


@annotator_router.post("/judgments/{submission}/withdraw")
async def withdraw_judgment(service: Running, caller: Annotator, submission: str) -> Json:
    """Take a judgment back; its request is offered again with the old answer."""

    def withdraw(db: Session) -> Json:
        request, kept = submitting.withdraw(db, caller.annotator, submission[:64].lower())
        order = json.loads(sql.request_shown.first(db, request=request).shown)["order"]
        old = submitting.shown_answer(db.settings, order, json.loads(kept))
        return {"request": shown_request(db, request), "answer": old}

    return await service.write(withdraw)


@annotator_router.get("/me")
async def me(service: Running, caller: Annotator) -> Json:
    """Say what an annotator may know of themselves."""
    return await service.read(about_me, caller.annotator)


_REPORT_SECONDS = 600.0
_PROBE_SECONDS = 5.0
"""How long a write that went through shows that others do."""

_MARGIN = "a difference of scores from 0 on, with format=pairs"
_REST = "'keep', or 'uncount' with state 'removed'"

owner_router = APIRouter(route_class=JsonRoute, default_response_class=Answer, tags=["owner"])


class AnnotatorState(Body):
    """What becomes of an annotator, and of their judgments."""

    state: Literal["active", "paused", "removed"]
    judgments: Annotated[Literal["keep", "uncount"], must_be(_REST)] = "keep"


class CampaignState(Body):
    """What becomes of the campaign."""

    state: Literal["open", "paused", "closed"]


class MadeInvite(Body):
    """A new invite, whose token is shown this once."""

    id: int
    token: str
    link: str


def _add_view(path: str, view: Callable[..., Json], words: str, role: str = "viewer", name: str = "") -> None:
    """Add the route of a view: a call gives what it takes besides the transaction.

    It answers with what the view shows, or that the caller has that already; the tag is of the content, less what the
    clock changes.
    """

    async def show(request: Request, service: Running, **given: Any) -> Response:
        answer = Answer(await service.read(view, **given))
        still = re.sub(rb'"(now|age|finish|estimated_finish)":[\d.]+', b"", bytes(answer.body))
        etag = f'"{hashlib.sha256(still).hexdigest()[:24]}"'
        headers = {"etag": etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(None, 304, headers)
        answer.headers.update(headers)
        return answer

    own, of_view = (signature(one, eval_str=True).parameters for one in (show, view))
    left_out = ("db", *getattr(view, "keywords", ()))
    taken = [one.replace(kind=one.KEYWORD_ONLY) for one in of_view.values() if one.name not in left_out]
    show.__signature__ = Signature([own["request"], own["service"], *taken])  # type: ignore[attr-defined]
    allow = [Depends(Allow(role))]
    owner_router.add_api_route(f"{API}/{path}", show, name=name or path, description=words, dependencies=allow)


_of_questions = "Show the latest consensus, of one of several questions where it is named."
_add_view("consensus", overview.consensus_view, _of_questions)
_add_view("quality", overview.quality_view, "Show the quality of annotators.")
_add_view("agreement", overview.agreement_view, "Show how far annotators agree.")
_add_view("campaign", overview.campaign_view, "Show progress, money and forecast.")
_add_view("annotators", partial(overview.list_view, name="annotators"), "List who takes part.")
_add_view("skipped", overview.skipped_view, "List what several annotators skipped.")
_add_view("spares", overview.spares_view, "List judgments that came too late for a seat.")
_add_view("review", steering.review_view, "Show what is disputed or was reported, and what was decided.")
_add_view("people", steering.people_view, "Show who takes part, with quality, pace, agreement over time and cost.")
_add_view("course", overview.course_and_findings, "Show findings, how doubt fell with money, and what more buys.")
_add_view("invites", partial(overview.list_view, name="invites"), "List invites.", "owner")
_add_view("members", partial(overview.list_view, name="members"), "List who helps to run the campaign.", "owner")
_add_view("judgments", judgment_page, "List judgments in the order of their numbers, a page at a time.")
_add_view("events", steering.events_view, "List what happened, the latest first: who did what and when.")
_add_view("comments", overview.comments_view, "List comments that have these words, the latest first.")
_add_view("items", steering.items_view, "Show a page of items with content and consensus, searched and sorted here.")
_add_view("items/{item}", steering.item_view, "Show an item with everything that was said of it.", name="one_item")
_add_view("settings", overview.settings_view, "Say what the campaign asks, of whom, at what cost.")


@owner_router.post(f"{API}/invites")
async def invite(service: Running, caller: Owner, body: access.Invite | None = None) -> MadeInvite:
    """Make an invite."""
    made, token = await service.write(access.new_invite, body or access.Invite())
    return MadeInvite(id=made, token=token, link=f"{service.access.public_url}/j/#{token}")


@owner_router.post(f"{API}/invites/{{invite}}/revoke")
async def revoke(service: Running, caller: Owner, invite: Id) -> dict[str, bool]:
    """Let nobody join by an invite any more."""
    await service.write(access.revoke_invite, invite)
    return {"revoked": True}


@owner_router.post(f"{API}/annotators/{{annotator}}")
async def annotator(service: Running, caller: Owner, annotator: Id, body: AnnotatorState) -> Json:
    """Let an annotator go on, pause, or leave with or without their judgments."""
    if body.judgments == "uncount" and body.state != "removed":
        raise Fault("invalid", f"judgments must be {_REST}", field="judgments")
    await service.write(access.set_annotator_state, annotator, body.state)
    uncounted = 0
    while body.judgments == "uncount" and (some := await service.write(access.uncount_some, annotator)):
        uncounted += some
    return {"state": body.state, "uncounted": uncounted}


@owner_router.post(f"{API}/annotators/{{annotator}}/link")
async def personal_link(service: Running, caller: Owner, annotator: Id) -> MadeInvite:
    """Make a link that lets an annotator in again, once; what they used before opens nothing then."""
    made, token = await service.write(access.new_invite, access.Invite(), annotator)
    return MadeInvite(id=made, token=token, link=f"{service.access.public_url}/j/#{token}")


@owner_router.post(f"{API}/campaign/state")
async def state(service: Running, caller: Owner, body: CampaignState) -> CampaignState:
    """Open, pause or close the campaign."""
    await service.write(set_campaign_state, body.state, "owner")
    if service.refit is not None:
        service.refit.wake()
    return body


@owner_router.get(f"{API}/campaigns")
async def campaigns(request: Request, service: Running, caller: Anyone) -> Json:
    """List the campaigns of this service that the caller has a part in."""
    listed = []
    for one in request.app.state.services:
        with suppress(Fault):
            who = await one.access.identify(request, one.read)
            row = await one.read(sql.campaign.first)
            facts = {"name": row.name, "place": one.place, "kind": row.kind, "state": row.state, "role": who.role}
            if who.role in access.STAFF:
                facts |= {"judgments": row.seq, "spent": row.spent, "budget": row.budget}
            if who.role != "open":
                listed.append(facts)
    return {"campaigns": listed, "several": len(request.app.state.services) > 1}


@owner_router.post(f"{API}/members")
async def member(service: Running, caller: Owner, body: access.Member) -> MadeInvite:
    """Give somebody a token of their own as owner, reviewer or viewer."""
    made, token = await service.write(access.new_member, body, caller.label)
    return MadeInvite(id=made, token=token, link=f"{service.access.public_url}/owner/#{token}")


@owner_router.post(f"{API}/members/{{member}}/revoke")
async def revoke_member(service: Running, caller: Owner, member: Id) -> dict[str, bool]:
    """Let somebody help no more."""
    await service.write(access.revoke_member, member, caller.label)
    return {"revoked": True}


@owner_router.get(f"{API}/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Viewer) -> Any:
    """Describe every route, for programs that write programs."""
    return request.app.openapi()


@owner_router.get("/healthz")
async def healthz(request: Request, service: Running, caller: Anyone) -> Json:
    """Say whether the service works: answers are read and can be kept."""
    for one in request.app.state.services:
        if one.probed + _PROBE_SECONDS < time.monotonic():
            await one.write(sql.touch_campaign.run)
            one.probed = time.monotonic()
    fit = await service.read(overview.fit_view, 0)
    return {"ok": True, "fit_age": fit["age"], "writer_queue": service.collection.store.n_waiting}


@owner_router.get("/metrics", response_class=Response)
async def metrics(service: Running, caller: Viewer) -> Response:
    """Give the counters to Prometheus."""
    view = await service.read(overview.campaign_view)
    gauges = {
        "writer_queue": service.collection.store.n_waiting, "fit_age_seconds": view["fit"]["age"],
        "fit_newer_judgments": view["fit"]["newer"], "judgments": view["seq"], "cost_spent": view["cost"]["spent"],
        "cost_reserved": view["cost"]["reserved"], "targets_open": view["targets"]["open"],
        "requests_offered": view["requests"].get("offered", 0),
    }  # fmt: skip
    return Response(service.telemetry.text(gauges), 200, media_type="text/plain; version=0.0.4")


@owner_router.get(f"{API}/export", response_class=Response)
async def export_judgments(
    service: Running,
    caller: Viewer,
    format: str = "jsonl",
    which: Literal["counted", "all"] = "counted",
    upto: Annotated[int | None, Field(ge=0, lt=10**18), must_be("the number of a judgment")] = None,
    margin: Annotated[float | None, Field(ge=0, allow_inf_nan=False), must_be(_MARGIN)] = None,
    external: bool = False,
    question: str = "",
) -> Response:
    """Stream what was collected; with ``margin``, pairs of items whose scores are that far apart."""
    if margin is not None and format != "pairs":
        raise Fault("invalid", f"margin must be {_MARGIN}", field="margin")
    lines = "jsonl" if format == "parquet" else format
    pieces = export(service.collection, lines, which, upto, margin, external=external, question=question)
    if format == "parquet":
        return attachment("judgments.parquet", await asyncio.to_thread(_parquet, pieces), "application/octet-stream")
    # what cannot be exported is said before the answer has begun
    first = await asyncio.to_thread(next, pieces, b"")
    await service.write(record_event, "owner", "export", {"format": format, "which": which})
    kind, name, _ = FORMATS[format]
    return StreamingResponse(chain([first], pieces), 200, attachment_headers(name), kind)


@owner_router.post(IMPORT_PATH)
async def import_judgments(
    request: Request,
    service: Running,
    caller: Owner,
    format: str = "native",
    name: str = "",
    answer: str | None = None,
    levels: str | None = None,
    column: Annotated[list[Annotated[str, Field(pattern="=")]] | None, Query(), must_be("like annotator=Who")] = None,
) -> Json:
    """Take in judgments from elsewhere; ``levels`` with commas, ``column`` like ``annotator=Who``, repeatable."""
    if format not in IMPORTED:
        raise Fault("invalid", f"format must be one of {', '.join(IMPORTED)}", field="format")
    named = dict(one.split("=", 1) for one in column or [])
    given = {"answer": answer, "levels": levels.split(",") if levels is not None else None, "columns": named or None}
    options = {key: value for key, value in given.items() if value is not None}
    safe = re.sub(r"[^\w.-]", "_", Path(name).name)[-80:].lstrip(".") or "import"
    data = await request.body()
    if not data.strip():
        raise Fault("invalid", "the body is empty; send the file", field="body")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / safe
        path.write_bytes(data)
        try:
            counts = await asyncio.to_thread(import_file, service.collection, path, format, options)
        except CrowdrankError as error:
            # the caller knows the file by its name, not by where it lies for a moment
            error.args = tuple(str(one).replace(f"{folder}{os.sep}", "") for one in error.args)
            raise
        return {**counts, "notes": [one.replace(f"{folder}{os.sep}", "") for one in counts["notes"]]}


@owner_router.get(f"{API}/report", response_class=Response)
async def report(service: Running, caller: Viewer) -> Response:
    """Make the full report of everything that counts, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        votes, page = Path(folder) / "judgments.jsonl", Path(folder) / "report.html"
        await asyncio.to_thread(_write, votes, export(service.collection, "jsonl", "counted", None))
        if not votes.stat().st_size:
            raise Fault("not_found", "there is no report yet; it comes after the first judgments")
        settings = service.collection.settings
        options = ("--method", settings.method, "--seed", str(settings.seed), "--report", str(page), "-q")
        out = str(Path(folder) / "consensus.csv")
        command = [sys.executable, "-m", "crowdrank", "aggregate", str(votes), *options, "-o", out]
        nothing = asyncio.subprocess.DEVNULL
        # annotators go first
        lower: Json = {"creationflags": getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)}
        if hasattr(os, "nice"):
            lower["preexec_fn"] = partial(os.nice, 10)
        process = await asyncio.create_subprocess_exec(*command, stdout=nothing, stderr=nothing, **lower)
        try:
            await asyncio.wait_for(process.wait(), _REPORT_SECONDS)
        except TimeoutError:
            process.kill()
            raise Fault("busy", "the report took too long; export the judgments and make it elsewhere") from None
        if not page.exists():
            raise Fault("internal", "the report could not be made; export the judgments and try crowdrank aggregate")
        # the report carries its script and style inside, so it is a file to keep and no page of ours
        answer = attachment("report.html", page.read_bytes(), "text/html; charset=utf-8")
        answer.headers["content-security-policy"] = "sandbox"
        return answer


def _parquet(pieces: Iterable[bytes]) -> bytes:
    """JSON lines as a Parquet file."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        lines, file = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        _write(lines, pieces)
        if lines.stat().st_size:
            pl.scan_ndjson(lines, infer_schema_length=10_000).sink_parquet(file)
        else:
            pl.DataFrame().write_parquet(file)
        return file.read_bytes()


def _write(path: Path, pieces: Any) -> None:
    """Write pieces to a file."""
    with path.open("wb") as file:
        file.writelines(pieces)


def attachment_headers(name: str) -> dict[str, str]:
    """Headers of a file to keep."""
    return {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}


def attachment(name: str, content: bytes | str, kind: str = "text/csv; charset=utf-8") -> Response:
    """Return the answer that is a file to keep."""
    return Response(content, 200, attachment_headers(name), kind)


Share = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), must_be("a number from 0 to 10")]


async def _act(service: Service, caller: Caller, operation: Callable[..., Any], *args: Any) -> Any:
    """What an operation of somebody who runs the campaign returns; settings and items are followed at once."""
    result = await service.write(operation, *args, caller.label)
    await service.read(service.collection.follow)
    if service.refit is not None:
        service.refit.wake()
    return result


@owner_router.get(f"{API}/items/{{item}}/content", response_class=Response)
async def item_content(service: Running, caller: Viewer, item: Id) -> Response:
    """Serve the file of an image or a sound, or the sandboxed page, of an item."""
    row = expect_found(await service.read(sql.item.first, item=item), "item")
    return _content(service, row.content, row.content_type, {})


@owner_router.post(f"{API}/items")
async def add_items(service: Running, caller: Owner, body: steering.Added) -> dict[str, int]:
    """Add items to the campaign while it runs."""
    return {"added": await _act(service, caller, steering.add_items, body.items)}


@owner_router.post(f"{API}/items/{{item}}")
async def mend_item(service: Running, caller: Owner, item: Id, body: steering.Mended) -> dict[str, bool]:
    """Show something else of an item from now on."""
    await _act(service, caller, steering.mend_item, item, body)
    return {"mended": True}


@owner_router.post(f"{API}/review")
async def decide(service: Running, caller: Reviewer, body: steering.Decision) -> dict[str, bool]:
    """Decide what is right; the next fit takes it as known."""
    await _act(service, caller, steering.decide, body)
    return {"decided": True}


@owner_router.get(f"{API}/review/known", response_class=Response)
async def decisions(service: Running, caller: Viewer) -> Response:
    """Give the decisions as a table, as ``crowdrank aggregate --known`` takes those on grades."""
    return attachment("known.csv", await service.read(steering.reviews_csv))


@owner_router.post(f"{API}/annotators/{{annotator}}/message")
async def message(service: Running, caller: Owner, annotator: Id, body: steering.Message) -> dict[str, bool]:
    """Show an annotator a message on their page."""
    await _act(service, caller, steering.send_message, annotator, body.text)
    return {"sent": True}


PayFormat = Annotated[Literal["json", "csv", "prolific", "mturk"], must_be("one of json, csv, prolific, mturk")]


@owner_router.get(f"{API}/pay", response_class=Response)
async def pay(
    service: Running, caller: Owner, format: PayFormat = "json", bonus: Share = 0.0, bonus_from: Share = 0.8,
    unit: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), must_be("what a unit of cost is worth")] = 1.0,
) -> Response:  # fmt: skip
    """Say what each annotator is owed, with a bonus by quality; csv, prolific and mturk are tables to pay by."""
    rows = await service.read(steering.pay_rows, bonus, bonus_from)
    if format == "json":
        return Answer(rows)
    return attachment(f"pay-{format}.csv", steering.pay_csv(rows["pay"], format, unit))


@owner_router.post(f"{API}/settings")
async def settings(service: Running, caller: Owner, body: steering.Changes) -> Json:
    """Put other settings into force without a restart; new guidelines have to be accepted anew."""
    changed = await _act(service, caller, steering.change_settings, body)
    return {"settings": changed.plain()}


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; media-src 'self'; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page may load: its own script and style, nothing inline."""

_HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}

HEADER_SECONDS = 10.0

PAGES = Path(__file__).parent / "pages"
_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".json": "application/json; charset=utf-8",
}  # fmt: skip


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Contents, type and tag of each file of the pages."""
    files = {path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in PAGES.iterdir() if path.suffix in _TYPES}
    return {name: (data, kind, f'"{hashlib.sha256(data).hexdigest()[:16]}"') for name, (data, kind) in files.items()}


def _serve_file(name: str, request: Request) -> Response:
    """A file, or that the browser has it already."""
    if name not in _files():
        raise Fault("not_found", "there is nothing here")
    data, kind, tag = _files()[name]
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, kind)


pages = APIRouter(include_in_schema=False)
"""The pages: files that come with the package, served as they are."""


@pages.get("/")
@pages.get("/j/")
@pages.get("/owner/")
async def page(request: Request, caller: Anyone) -> Response:
    """Serve the page of annotators or of owners; of several campaigns, the list of those that one has a part in."""
    above = len(request.app.state.services) > 1 and not request.scope["below"]
    name = "campaigns" if above else "owner" if request.scope["path"] == "/owner/" else "annotate"
    return _serve_file(f"{name}.html", request)


@pages.get("/static/{name}")
async def static(request: Request, caller: Anyone, name: str) -> Response:
    """Serve script, style and pictures of the pages."""
    return _serve_file(name, request)


_ABOVE = ("/", "/owner/", "/healthz", "/metrics", f"{API}/campaigns")
"""What the service answers as a whole where it has several campaigns."""

ROUTERS = (annotator_router, owner_router, pages)


def make_app(*services: Service, start: Callable[[], Any] | None = None, stop: Callable[[], Any] | None = None) -> Any:
    """Return the application of one campaign, or of several, each below a place of its own."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if start is not None:
            start()
        yield
        if stop is not None:
            stop()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    app.state.services = services
    for router in ROUTERS:
        app.include_router(router)
    for kind in (Fault, RequestValidationError, CrowdrankError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer_error)
    return Guard(app, services)


async def _answer_error(request: Request, error: Any) -> Response:
    """What went wrong as an answer; of errors of ours it says nothing of what was sent."""
    status = None
    if isinstance(error, HTTPException) and isinstance(error.__cause__, Fault):
        # a body that was refused while it was read
        error = error.__cause__
    if isinstance(error, RequestValidationError):
        error = refusal(error.errors()[0])
    elif isinstance(error, HTTPException):
        status, nothing = error.status_code, Fault("not_found", "there is nothing here")
        error = nothing if status in (404, 405) else Fault("bad_request", "this call cannot be understood")
    elif not isinstance(error, CrowdrankError):
        error = Fault("internal", "something went wrong here; try again, and tell the owner if it happens again")
    elif not isinstance(error, Fault):
        # a mistake in what was sent, found deeper down
        error = Fault("invalid", str(error))
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    if error.kind == "unauthorized":
        headers["www-authenticate"] = "Bearer"
    return Answer(error.plain(), status or error.status, headers)


class Guard:
    """Around everything: headers of safety, a line in the log, a count, and no traceback for anyone."""

    def __init__(self, app: ASGIApp, services: Sequence[Service]) -> None:
        self.app = app
        self.services = {service.place: service for service in services}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        # the campaign that a call is about is named by the beginning of its path
        parts = scope["path"].split("/", 3)
        below = scope["path"].startswith("/c/") and "/".join(parts[:3]) in self.services
        service = self.services["/".join(parts[:3])] if below else next(iter(self.services.values()))
        scope = {**scope, "service": service, "below": below}
        if below:
            scope["path"] = f"/{parts[3]}" if len(parts) > 3 else "/"
        elif len(self.services) > 1 and scope["path"] not in _ABOVE and not scope["path"].startswith("/static/"):
            scope["path"] = "/none"
        began = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((k, v) for k, v in _HEADERS.items() if k not in given)]
                if service.access.secure:
                    message["headers"].append((b"strict-transport-security", b"max-age=31536000"))
            await send(message)

        try:
            await self.app(scope, limit_body(receive, scope), send_with_headers)
        except Exception:
            # whoever called has had an answer by the handler of all errors
            log.exception({"event": "error", "route": _route_of(scope)})
        finally:
            seconds = time.perf_counter() - began
            route = _route_of(scope)
            service.telemetry.call(route, status, seconds)
            caller = scope.get("caller")
            log.info({
                "event": "call", "method": scope["method"], "route": route, "status": status,
                "ms": round(seconds * 1000, 1), "who": "open" if caller is None else caller.label,
            })  # fmt: skip


def _route_of(scope: Scope) -> str:
    """The path of the route that a call went to, with the names of its parts."""
    return getattr(scope.get("route"), "path", "none")


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that ends connections whose headers do not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first headers."""
        super().connection_made(transport)
        self._expect_headers(soon=True)

    def data_received(self, data: bytes) -> None:
        """Take in what arrived; headers that have begun must be whole soon."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers(soon=True)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_headers(soon=False)

    def on_response_complete(self) -> None:
        """Be patient with a caller who thinks before the next call."""
        self._expect_headers(soon=False)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the caller."""
        self._expect_headers(soon=False)
        super().connection_lost(exc)

    def _expect_headers(self, *, soon: bool) -> None:
        """End the connection where no headers arrive soon, or cease to wait for any."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if soon:
            self._deadline = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.transport.close)
