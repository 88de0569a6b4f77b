"""What every route has in common: who may call it, how it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .access import NOBODY, Caller
from .faults import Fault
from .service import Service

Handler = Callable[[Service, Request, Caller], Awaitable[Response]]

ROLES = {
    "open": ("open", "person", "program", "owner"),
    "annotator": ("person", "program"),
    "person": ("person",),
    "program": ("program",),
    "owner": ("owner",),
}
"""Who may call a route of each role."""


@dataclass(frozen=True)
class Route:
    """A route of the service.

    Parameters
    ----------
    method, path
        What is called.
    role
        Who may call it: a key of :data:`ROLES`.
    handler
        What answers.
    """

    method: str
    path: str
    role: str
    handler: Handler


async def answer(service: Service, route: Route, request: Request) -> Response:
    """Return what a route answers; refuse callers who may not use it."""
    try:
        caller = await service.access.identify(request, service.read)
    except Fault:
        # guesses at tokens are counted by the address they come from
        service.access.expect_rate(request, NOBODY)
        raise
    request.scope["caller"] = caller
    if route.role != "open" or caller.role != "open":
        service.access.expect_rate(request, caller)
    if caller.role not in ROLES[route.role]:
        if caller.role == "open":
            raise Fault("unauthorized", "this needs a token; join by an invite link, or send Authorization: Bearer")
        raise Fault("forbidden", f"this is for the {route.role}, and you are a {caller.role}")
    if caller.by_cookie and request.method not in ("GET", "HEAD"):
        service.access.expect_same_site(request)
    return await route.handler(service, request, caller)


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON, which nobody keeps."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        text.encode("utf-8", "replace"), status, {"cache-control": "no-store", **(headers or {})}, "application/json"
    )


def number(request: Request, name: str) -> int:
    """Return a number that stands in the path."""
    text = request.path_params[name]
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise Fault("not_found", f"{name} must be a number")
    return int(text)


def whole(value: Any, name: str, low: int, high: int) -> int:
    """Return a whole number of the body; refuse another value."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Fault("invalid", f"{name} must be a whole number from {low} to {high}", field=name)
    return value
