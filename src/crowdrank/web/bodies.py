"""Bodies of calls: counted while they are read, and refused where they are no JSON of reasonable depth."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from .faults import Fault

MAX_BODY = 256 * 1024
MAX_IMPORT = 64 * 1024 * 1024
MAX_DEPTH = 20
BODY_SECONDS = 30.0


async def read_body(request: Request, most: int = MAX_BODY) -> bytes:
    """Return the body of a call; refuse one that is too long or too slow."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise Fault("too_large", f"the body is over {most // 1024} kB; send less at a time")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS if most == MAX_BODY else 20 * BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise Fault("too_large", f"the body is over {most // 1024} kB; send less at a time")
                parts.append(part)
    except TimeoutError:
        raise Fault("bad_request", "the body did not arrive in time; send it again") from None
    except ClientDisconnect:
        raise Fault("bad_request", "the connection ended before the body did") from None
    return b"".join(parts)


async def read_json(request: Request) -> dict[str, Any]:
    """Return the object that a call sends; an empty body is an empty object."""
    raw = await read_body(request)
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Fault("not_json", "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Fault("not_json", "the body must be a JSON object")
    if _depth(body) > MAX_DEPTH:
        raise Fault("not_json", f"the body is nested deeper than {MAX_DEPTH}")
    return body


def _refuse_constant(name: str) -> Any:
    """Refuse numbers that JSON does not have."""
    raise ValueError(name)


def _depth(value: Any) -> int:
    """How deep a value is nested, no further than matters."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH + 1:
        depth += 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return depth
