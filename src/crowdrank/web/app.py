"""The web application: its routes, its pages, and what every answer carries."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import CrowdrankError
from .collection import Fault, refusal
from .routes import API, Answer, Anyone, annotator_router, limit_body, owner_router
from .service import Service, log

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
