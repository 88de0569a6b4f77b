"""What every route has in common: who may call it, what may be sent, how it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from .access import NOBODY, Caller
from .faults import Fault
from .service import Service

API = "/api/v1"
IMPORT_PATH = f"{API}/import"
MAX_BODY = 256 * 1024
MAX_IMPORT = 64 * 1024 * 1024
MAX_DEPTH = 20
BODY_SECONDS = 30.0

ROLES = {
    "open": ("open", "person", "program", "owner"),
    "annotator": ("person", "program"),
    "program": ("program",),
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
            raise
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
    service: Service = request.app.state.service
    return service


Running = Annotated[Service, Depends(running)]
Anyone = Annotated[Caller, Depends(Allow("open"))]
Annotator = Annotated[Caller, Depends(Allow("annotator"))]
Program = Annotated[Caller, Depends(Allow("program"))]
Owner = Annotated[Caller, Depends(Allow("owner"))]


Id = Annotated[int, Field(ge=0, lt=10**18)]
"""A number in the path."""


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
            body = json.loads(await self.body(), parse_constant=_refuse_constant)
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


def _refuse_constant(name: str) -> Any:
    """Refuse numbers that JSON does not have."""
    raise ValueError(name)


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
