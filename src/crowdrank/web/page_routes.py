"""The pages: files that come with the package, served as they are."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from .access import Caller
from .faults import Fault
from .routes import Route
from .service import Service

FOLDER = Path(__file__).parent / "pages"
_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip


@cache
def _file(name: str) -> tuple[bytes, str, str] | None:
    """Contents, type and tag of a file of the pages, ``None`` where there is no such file."""
    known = {path.name: path for path in FOLDER.iterdir() if path.suffix in _TYPES}
    if name not in known:
        return None
    data = known[name].read_bytes()
    return data, _TYPES[known[name].suffix], f'"{hashlib.sha256(data).hexdigest()[:16]}"'


def _serve_file(name: str, request: Request) -> Response:
    """A file, or that the browser has it already."""
    content = _file(name)
    if content is None:
        raise Fault("not_found", "there is nothing here")
    data, kind, tag = content
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, kind)


async def annotate(service: Service, request: Request, caller: Caller) -> Response:
    """Serve the annotator's page."""
    return _serve_file("annotate.html", request)


async def owner(service: Service, request: Request, caller: Caller) -> Response:
    """Serve the owner's page."""
    return _serve_file("owner.html", request)


async def static(service: Service, request: Request, caller: Caller) -> Response:
    """Serve script, style and pictures of the pages."""
    return _serve_file(request.path_params["name"], request)


ROUTES = (
    Route("GET", "/", "open", annotate),
    Route("GET", "/j/", "open", annotate),
    Route("GET", "/owner/", "open", owner),
    Route("GET", "/static/{name}", "open", static),
)
