"""Routes of the owner: watch, invite, pause, close, carry judgments in and out."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..errors import CrowdrankError
from . import overview, people
from .calls import API, IMPORT_PATH, Answer, Anyone, Id, JsonRoute, Owner, Running
from .collection import record_event
from .exporting import FORMATS, export, judgment_page
from .faults import Body, Fault, must_be
from .importing import FORMATS as IMPORTED
from .importing import import_file
from .service import Service
from .setup import set_campaign_state

_REPORT_SECONDS = 600.0
_MARGIN = "a difference of scores from 0 on, with format=pairs"
_REST = "'keep', or 'uncount' with state 'removed'"

router = APIRouter(route_class=JsonRoute, default_response_class=Answer, tags=["owner"])


class AnnotatorState(Body):
    """What becomes of an annotator, and of their judgments."""

    state: Annotated[Literal["active", "paused", "removed"], must_be("'active', 'paused' or 'removed'")]
    judgments: Annotated[Literal["keep", "uncount"], must_be(_REST)] = "keep"


class CampaignState(Body):
    """What becomes of the campaign."""

    state: Annotated[Literal["open", "paused", "closed"], must_be("'open', 'paused' or 'closed'")]


class MadeInvite(Body):
    """A new invite, whose token is shown this once."""

    id: int
    token: str
    link: str


async def _view(service: Service, request: Request, view: Callable[..., dict[str, Any]], *args: Any) -> Response:
    """What a view shows, or that nothing has changed since the caller last looked."""
    collection = service.collection
    tag = await service.read(lambda c: overview.version_of(collection, c))
    etag = f'"{tag}"'
    if request.headers.get("if-none-match") == etag:
        return Response(None, 304, {"etag": etag, "cache-control": "no-cache"})
    content = await service.read(lambda c: view(collection, c, *args))
    return Answer(content, headers={"etag": etag, "cache-control": "no-cache"})


@router.get(f"{API}/campaign")
async def campaign(request: Request, service: Running, caller: Owner) -> Response:
    """Show progress, money and forecast."""
    return await _view(service, request, overview.campaign_view)


@router.get(f"{API}/consensus")
async def consensus(request: Request, service: Running, caller: Owner, query: str | None = None) -> Response:
    """Show the latest consensus."""
    return await _view(service, request, overview.consensus_view, query)


@router.get(f"{API}/quality")
async def quality(request: Request, service: Running, caller: Owner) -> Response:
    """Show the quality of annotators."""
    return await _view(service, request, overview.quality_view)


@router.get(f"{API}/agreement")
async def agreement(request: Request, service: Running, caller: Owner) -> Response:
    """Show how far annotators agree."""
    return await _view(service, request, overview.agreement_view)


@router.get(f"{API}/annotators")
async def annotators(request: Request, service: Running, caller: Owner) -> Response:
    """List who takes part."""
    return await _view(service, request, overview.annotators_view)


@router.get(f"{API}/skipped")
async def list_skipped(request: Request, service: Running, caller: Owner) -> Response:
    """List what several annotators skipped."""
    return await _view(service, request, overview.skipped_view)


@router.get(f"{API}/spares")
async def spares(request: Request, service: Running, caller: Owner) -> Response:
    """List judgments that came too late for a seat."""
    return await _view(service, request, overview.spares_view)


@router.get(f"{API}/invites")
async def invites(service: Running, caller: Owner) -> dict[str, Any]:
    """List invites."""
    collection = service.collection
    return await service.read(lambda c: overview.invites_view(collection, c))


@router.post(f"{API}/invites")
async def invite(service: Running, caller: Owner, body: people.Invite | None = None) -> MadeInvite:
    """Make an invite."""
    made, token = await service.write(people.new_invite, body or people.Invite())
    return MadeInvite(id=made, token=token, link=f"{service.access.public_url}/j/#{token}")


@router.post(f"{API}/invites/{{invite}}/revoke")
async def revoke(service: Running, caller: Owner, invite: Id) -> dict[str, bool]:
    """Let nobody join by an invite any more."""
    await service.write(people.revoke_invite, invite)
    return {"revoked": True}


@router.post(f"{API}/annotators/{{annotator}}")
async def annotator(service: Running, caller: Owner, annotator: Id, body: AnnotatorState) -> dict[str, Any]:
    """Let an annotator go on, pause, or leave with or without their judgments."""
    if body.judgments == "uncount" and body.state != "removed":
        raise Fault("invalid", f"judgments must be {_REST}", field="judgments")
    await service.write(people.set_annotator_state, annotator, body.state)
    uncounted = 0
    while body.judgments == "uncount" and (some := await service.write(people.uncount_some, annotator)):
        uncounted += some
    return {"state": body.state, "uncounted": uncounted}


@router.post(f"{API}/campaign/state")
async def state(service: Running, caller: Owner, body: CampaignState) -> CampaignState:
    """Open, pause or close the campaign."""
    await service.write(set_campaign_state, body.state, "owner")
    if service.refit is not None:
        service.refit.wake()
    return body


@router.get(f"{API}/judgments")
async def judgments(
    service: Running,
    caller: Owner,
    after: Annotated[int, Field(ge=0, le=2**62), must_be("the number of a judgment")] = 0,
    limit: Annotated[
        int, Field(ge=1, le=overview.MAX_PAGE), must_be(f"a whole number from 1 to {overview.MAX_PAGE}")
    ] = 1000,
) -> dict[str, Any]:
    """List judgments in the order of their numbers, a page at a time."""
    collection = service.collection
    return await service.read(lambda c: judgment_page(collection, c, after, limit))


@router.get(f"{API}/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Owner) -> Any:
    """Describe every route, for programs that write programs."""
    return request.app.openapi()


@router.get("/healthz")
async def healthz(service: Running, caller: Anyone) -> dict[str, Any]:
    """Say whether the service works."""
    collection = service.collection
    seq = await service.read(lambda c: overview.fit_view(collection, c, 0))
    return {"ok": True, "fit_age": seq["age"], "writer_queue": collection.store.n_waiting}


@router.get("/metrics", response_class=Response)
async def metrics(service: Running, caller: Owner) -> Response:
    """Give the counters to Prometheus."""
    collection = service.collection
    view = await service.read(lambda c: overview.campaign_view(collection, c))
    gauges = {
        "writer_queue": collection.store.n_waiting, "fit_age_seconds": view["fit"]["age"],
        "fit_newer_judgments": view["fit"]["newer"], "judgments": view["seq"], "cost_spent": view["cost"]["spent"],
        "cost_reserved": view["cost"]["reserved"], "targets_open": view["targets"]["open"],
        "requests_offered": view["requests"].get("offered", 0),
    }  # fmt: skip
    return Response(service.telemetry.text(gauges), 200, media_type="text/plain; version=0.0.4")


@router.get(f"{API}/export", response_class=Response)
async def export_judgments(
    service: Running,
    caller: Owner,
    format: str = "jsonl",
    which: str = "counted",
    upto: Annotated[int | None, Field(ge=0, lt=10**18), must_be("the number of a judgment")] = None,
    margin: Annotated[float | None, Field(ge=0, allow_inf_nan=False), must_be(_MARGIN)] = None,
) -> Response:
    """Stream what was collected; with ``margin``, pairs of items whose scores are that far apart."""
    if margin is not None and format != "pairs":
        raise Fault("invalid", f"margin must be {_MARGIN}", field="margin")
    if format == "parquet":
        return await _parquet(service, which, upto)
    pieces = export(service.collection, format, which, upto, margin)
    # what cannot be exported is said before the answer has begun
    first = await asyncio.to_thread(next, pieces, b"")
    await service.write(record_event, "owner", "export", {"format": format, "which": which})
    kind, name, _ = FORMATS[format]
    return StreamingResponse(chain([first], pieces), 200, _attachment_headers(name), kind)


@router.post(IMPORT_PATH)
async def import_judgments(
    request: Request,
    service: Running,
    caller: Owner,
    format: str = "native",
    name: str = "",
    answer: str | None = None,
    levels: str | None = None,
    column: Annotated[list[str] | None, Query()] = None,
) -> dict[str, Any]:
    """Take in judgments from elsewhere; ``levels`` with commas, ``column`` like ``annotator=Who``, repeatable."""
    if format not in IMPORTED:
        raise Fault("invalid", f"format must be one of {', '.join(IMPORTED)}", field="format")
    columns = [one.partition("=") for one in column or []]
    if not all(equals for _, equals, _ in columns):
        raise Fault("invalid", "column must be like annotator=Who", field="column")
    named = {word: of for word, _, of in columns}
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


@router.get(f"{API}/report", response_class=Response)
async def report(service: Running, caller: Owner) -> Response:
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
        process = await asyncio.create_subprocess_exec(
            *command, stdout=nothing, stderr=nothing, preexec_fn=_lower_priority
        )
        try:
            await asyncio.wait_for(process.wait(), _REPORT_SECONDS)
        except TimeoutError:
            process.kill()
            raise Fault("busy", "the report took too long; export the judgments and make it elsewhere") from None
        if not page.exists():
            raise Fault("internal", "the report could not be made; export the judgments and try crowdrank aggregate")
        # the report carries its script and style inside, so it is a file to keep and no page of ours
        headers = {**_attachment_headers("report.html"), "content-security-policy": "sandbox"}
        return Response(page.read_bytes(), 200, headers, "text/html; charset=utf-8")


async def _parquet(service: Service, which: str, upto: int | None) -> Response:
    """The same rows as JSON lines in a Parquet file."""
    import polars as pl

    pieces = export(service.collection, "jsonl", which, upto)

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            lines, file = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
            _write(lines, pieces)
            if lines.stat().st_size:
                pl.scan_ndjson(lines, infer_schema_length=10_000).sink_parquet(file)
            else:
                pl.DataFrame().write_parquet(file)
            return file.read_bytes()

    return Response(
        await asyncio.to_thread(make), 200, _attachment_headers("judgments.parquet"), "application/octet-stream"
    )


def _write(path: Path, pieces: Any) -> None:
    """Write pieces to a file."""
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)


def _lower_priority() -> None:
    """Let annotators go first."""
    os.nice(10)


def _attachment_headers(name: str) -> dict[str, str]:
    """Headers of a file to keep."""
    return {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
