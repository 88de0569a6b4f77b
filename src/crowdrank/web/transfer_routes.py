"""Routes that carry judgments in and out, and the full report."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..errors import CrowdrankError
from .access import Caller
from .bodies import MAX_IMPORT, read_body
from .collection import record_event
from .exporting import FORMATS, export
from .faults import Fault
from .importing import FORMATS as IMPORTED
from .importing import import_file
from .routes import Route, as_json
from .service import Service

_REPORT_SECONDS = 600.0


async def export_judgments(service: Service, request: Request, caller: Caller) -> Response:
    """Stream what was collected."""
    given = request.query_params
    format, which, upto = given.get("format", "jsonl"), given.get("which", "counted"), given.get("upto")
    if upto is not None and not (upto.isascii() and upto.isdigit() and len(upto) < 19):
        raise Fault("invalid", "upto must be the number of a judgment", field="upto")
    last = None if upto is None else int(upto)
    margin = _margin(given.get("margin"), format)
    if format == "parquet":
        return await _parquet(service, which, last)
    pieces = export(service.collection, format, which, last, margin)
    # what cannot be exported is said before the answer has begun
    first = await asyncio.to_thread(next, pieces, b"")
    await service.write(record_event, "owner", "export", {"format": format, "which": which})
    kind, name, _ = FORMATS[format]
    return StreamingResponse(chain([first], pieces), 200, _attachment_headers(name), kind)


def _margin(text: str | None, format: str) -> float | None:
    """How far apart the scores of pairs must be, ``None`` for pairs of single judgments."""
    if text is None:
        return None
    try:
        margin = float(text)
    except ValueError:
        margin = math.nan
    if format != "pairs" or not 0 <= margin < math.inf:
        raise Fault("invalid", "margin must be a difference of scores from 0 on, with format=pairs", field="margin")
    return margin


async def import_judgments(service: Service, request: Request, caller: Caller) -> Response:
    """Take in judgments from elsewhere."""
    format = request.query_params.get("format", "native")
    if format not in IMPORTED:
        raise Fault("invalid", f"format must be one of {', '.join(IMPORTED)}", field="format")
    options = _read_options(request)
    name = re.sub(r"[^\w.-]", "_", Path(request.query_params.get("name", "")).name)[-80:].lstrip(".") or "import"
    data = await read_body(request, MAX_IMPORT)
    if not data.strip():
        raise Fault("invalid", "the body is empty; send the file", field="body")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            counts = await asyncio.to_thread(import_file, service.collection, path, format, options)
        except CrowdrankError as error:
            # the caller knows the file by its name, not by where it lies for a moment
            error.args = tuple(str(one).replace(f"{folder}{os.sep}", "") for one in error.args)
            raise
        return as_json({**counts, "notes": [one.replace(f"{folder}{os.sep}", "") for one in counts["notes"]]})


def _read_options(request: Request) -> dict[str, Any]:
    """How the file is to be read: ``answer``, ``levels`` (with commas) and ``column`` (``word=name``, repeatable)."""
    given, options = request.query_params, dict[str, Any]()
    if "answer" in given:
        options["answer"] = given["answer"]
    if "levels" in given:
        options["levels"] = given["levels"].split(",")
    columns = [one.partition("=") for one in given.getlist("column")]
    if not all(equals for _, equals, _ in columns):
        raise Fault("invalid", "column must be like annotator=Who", field="column")
    if columns:
        options["columns"] = {word: name for word, _, name in columns}
    return options


async def report(service: Service, request: Request, caller: Caller) -> Response:
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


ROUTES = (
    Route("GET", "/api/v1/export", "owner", export_judgments),
    Route("POST", "/api/v1/import", "owner", import_judgments),
    Route("GET", "/api/v1/report", "owner", report),
)
