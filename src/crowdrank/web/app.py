"""The web application: its routes, its pages, and what every answer carries."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import CrowdrankError
from . import annotator_routes, owner_routes, page_routes, transfer_routes
from .faults import Fault
from .routes import Route, answer, as_json
from .service import Service
from .telemetry import log

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
}

ROUTES: tuple[Route, ...] = (
    *annotator_routes.ROUTES,
    *owner_routes.ROUTES,
    *transfer_routes.ROUTES,
    *page_routes.ROUTES,
)
"""Every route there is."""


def make_app(service: Service, *, start: Callable[[], Any] | None = None, stop: Callable[[], Any] | None = None) -> Any:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if start is not None:
            start()
        yield
        if stop is not None:
            stop()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    for route in ROUTES:
        app.add_api_route(route.path, _endpoint(service, route), methods=[route.method], response_model=None)
    app.add_exception_handler(Fault, _on_fault)
    app.add_exception_handler(CrowdrankError, _on_user_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_error)
    return Guard(app, service)


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[Response]]:
    """What the framework calls for a route."""

    async def endpoint(request: Request) -> Response:
        request.scope["crowdrank_route"] = route.path
        return await answer(service, route, request)

    return endpoint


async def _on_fault(request: Request, error: Any) -> Response:
    """A fault as an answer."""
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    if error.kind == "unauthorized":
        headers["www-authenticate"] = "Bearer"
    return as_json(error.plain(), error.status, headers)


async def _on_error(request: Request, error: Any) -> Response:
    """An error of ours as an answer that says nothing of what was sent."""
    fault = Fault("internal", "something went wrong here; try again, and tell the owner if it happens again")
    return await _on_fault(request, fault)


async def _on_user_error(request: Request, error: Any) -> Response:
    """A mistake in what was sent, found deeper down, as an answer."""
    return as_json({"error": {"type": "invalid", "message": str(error)}}, 422)


async def _on_http_error(request: Request, error: Any) -> Response:
    """A path or method that does not exist, as an answer."""
    kind = {404: "not_found", 405: "not_found"}.get(error.status_code, "bad_request")
    words = "there is nothing here" if kind == "not_found" else "this call cannot be understood"
    return as_json({"error": {"type": kind, "message": words}}, error.status_code)


class Guard:
    """Around everything: headers of safety, a line in the log, a count, and no traceback for anyone."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((k, v) for k, v in _HEADERS.items() if k not in given)]
                if self.service.access.secure:
                    message["headers"].append((b"strict-transport-security", b"max-age=31536000"))
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            log.exception({"event": "error", "route": scope.get("crowdrank_route", "")})
            if not started:
                await (await _on_error(Request(scope), None))(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - began
            route = scope.get("crowdrank_route", "none")
            self.service.telemetry.call(route, status, seconds)
            caller = scope.get("caller")
            log.info({
                "event": "call", "method": scope["method"], "route": route, "status": status,
                "ms": round(seconds * 1000, 1), "who": "open" if caller is None else caller.label,
            })  # fmt: skip
