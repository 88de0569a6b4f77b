"""Routes of the owner: watch, invite, pause, close, take out what was collected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from . import overview, people
from .access import Caller
from .bodies import read_json
from .ending import set_campaign_state
from .faults import Fault
from .routes import Route, as_json, number, whole
from .service import Service

View = Callable[..., dict[str, Any]]


async def _view(service: Service, request: Request, view: View, *args: Any) -> Response:
    """What a view shows, or that nothing has changed since the caller last looked."""
    collection = service.collection
    tag = await service.read(lambda c: overview.version_of(collection, c))
    etag = f'"{tag}"'
    if request.headers.get("if-none-match") == etag:
        return Response(None, 304, {"etag": etag, "cache-control": "no-cache"})
    content = await service.read(lambda c: view(collection, c, *args))
    return as_json(content, headers={"etag": etag, "cache-control": "no-cache"})


async def campaign(service: Service, request: Request, caller: Caller) -> Response:
    """Show progress, money and forecast."""
    return await _view(service, request, overview.campaign_view)


async def consensus(service: Service, request: Request, caller: Caller) -> Response:
    """Show the latest consensus."""
    return await _view(service, request, overview.consensus_view, request.query_params.get("query"))


async def quality(service: Service, request: Request, caller: Caller) -> Response:
    """Show the quality of annotators."""
    return await _view(service, request, overview.quality_view)


async def agreement(service: Service, request: Request, caller: Caller) -> Response:
    """Show how far annotators agree."""
    return await _view(service, request, overview.agreement_view)


async def annotators(service: Service, request: Request, caller: Caller) -> Response:
    """List who takes part."""
    return await _view(service, request, overview.annotators_view)


async def list_skipped(service: Service, request: Request, caller: Caller) -> Response:
    """List what several annotators skipped."""
    return await _view(service, request, overview.skipped_view)


async def spares(service: Service, request: Request, caller: Caller) -> Response:
    """List judgments that came too late for a seat."""
    return await _view(service, request, overview.spares_view)


async def invites(service: Service, request: Request, caller: Caller) -> Response:
    """List invites."""
    collection = service.collection
    return as_json(await service.read(lambda c: overview.invites_view(collection, c)))


async def invite(service: Service, request: Request, caller: Caller) -> Response:
    """Make an invite, whose token is shown this once."""
    body = await read_json(request)
    made, token = await service.write(people.new_invite, body)
    return as_json({"id": made, "token": token, "link": f"{service.access.public_url}/j/#{token}"})


async def revoke(service: Service, request: Request, caller: Caller) -> Response:
    """Let nobody join by an invite any more."""
    await read_json(request)
    await service.write(people.revoke_invite, number(request, "invite"))
    return as_json({"revoked": True})


async def annotator(service: Service, request: Request, caller: Caller) -> Response:
    """Let an annotator go on, pause, or leave with or without their judgments."""
    body = await read_json(request)
    state, rest = body.get("state"), body.get("judgments", "keep")
    if state not in ("active", "paused", "removed"):
        raise Fault("invalid", "state must be 'active', 'paused' or 'removed'", field="state")
    if rest not in ("keep", "uncount") or (rest == "uncount" and state != "removed"):
        raise Fault("invalid", "judgments must be 'keep', or 'uncount' with state 'removed'", field="judgments")
    who = number(request, "annotator")
    await service.write(people.set_annotator_state, who, state)
    uncounted = 0
    while rest == "uncount":
        some = await service.write(people.uncount_some, who)
        uncounted += some
        if not some:
            break
    return as_json({"state": state, "uncounted": uncounted})


async def state(service: Service, request: Request, caller: Caller) -> Response:
    """Open, pause or close the campaign."""
    body = await read_json(request)
    wanted = body.get("state")
    if wanted not in ("open", "paused", "closed"):
        raise Fault("invalid", "state must be 'open', 'paused' or 'closed'", field="state")
    await service.write(set_campaign_state, wanted, "owner")
    if service.refit is not None:
        service.refit.wake()
    return as_json({"state": wanted})


async def judgments(service: Service, request: Request, caller: Caller) -> Response:
    """List judgments in the order of their numbers, a page at a time."""
    from .exporting import judgment_page

    after = whole(_digits(request, "after", 0), "after", 0, 2**62)
    limit = whole(_digits(request, "limit", 1000), "limit", 1, overview.MAX_PAGE)
    collection = service.collection
    return as_json(await service.read(lambda c: judgment_page(collection, c, after, limit)))


async def healthz(service: Service, request: Request, caller: Caller) -> Response:
    """Say whether the service works."""
    collection = service.collection
    seq = await service.read(lambda c: overview.fit_view(collection, c, 0))
    return as_json({"ok": True, "fit_age": seq["age"], "writer_queue": collection.store.n_waiting})


async def metrics(service: Service, request: Request, caller: Caller) -> Response:
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


def _digits(request: Request, name: str, default: int) -> Any:
    """A number of the query string."""
    text = request.query_params.get(name)
    return default if text is None else int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


ROUTES = (
    Route("GET", "/api/v1/campaign", "owner", campaign),
    Route("POST", "/api/v1/campaign/state", "owner", state),
    Route("GET", "/api/v1/consensus", "owner", consensus),
    Route("GET", "/api/v1/quality", "owner", quality),
    Route("GET", "/api/v1/agreement", "owner", agreement),
    Route("GET", "/api/v1/judgments", "owner", judgments),
    Route("GET", "/api/v1/skipped", "owner", list_skipped),
    Route("GET", "/api/v1/spares", "owner", spares),
    Route("GET", "/api/v1/annotators", "owner", annotators),
    Route("POST", "/api/v1/annotators/{annotator}", "owner", annotator),
    Route("GET", "/api/v1/invites", "owner", invites),
    Route("POST", "/api/v1/invites", "owner", invite),
    Route("POST", "/api/v1/invites/{invite}/revoke", "owner", revoke),
    Route("GET", "/healthz", "open", healthz),
    Route("GET", "/metrics", "owner", metrics),
)
