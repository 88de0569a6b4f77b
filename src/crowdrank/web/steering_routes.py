"""The routes of those who run a campaign: items, reviews, people, pay, settings, the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from . import steering
from .access import Caller
from .campaign_file import media_file
from .collection import Fault, must_be, sql
from .overview import course_and_findings
from .routes import (
    API,
    SANDBOX,
    Answer,
    Id,
    JsonRoute,
    Owner,
    Reviewer,
    Running,
    Viewer,
    attachment_headers,
    view_answer,
)
from .service import Service

steering_router = APIRouter(prefix=API, route_class=JsonRoute, default_response_class=Answer, tags=["owner"])

Page = Annotated[int, Field(ge=0, le=1_000_000), must_be("the number of a page")]
Share = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), must_be("a number from 0 to 10")]


async def _act(service: Service, caller: Caller, operation: Callable[..., Any], *args: Any) -> Any:
    """What an operation of somebody who runs the campaign returns; settings and items are followed at once."""
    result = await service.write(operation, *args, caller.label)
    collection = service.collection
    state = await service.read(lambda c: sql.campaign_state.first(c, campaign=collection.id))
    if state.revision != collection.revision:
        await service.read(lambda c: collection.follow(c, state.revision))
    if service.refit is not None:
        service.refit.wake()
    return result


@steering_router.get("/items")
async def items(
    request: Request, service: Running, caller: Viewer, search: str = "", sort: steering.Sort = "rank",
    descending: bool = False, page: Page = 0, which: str = "all", question: str = "",
) -> Response:  # fmt: skip
    """Show a page of items with content and consensus, searched and sorted here."""
    given = (search[:200], sort, descending, page, which, question)
    return await view_answer(service, request, steering.items_view, *given)


@steering_router.get("/items/{item}")
async def item(request: Request, service: Running, caller: Viewer, item: Id) -> Response:
    """Show an item with everything that was said of it."""
    return await view_answer(service, request, steering.item_view, item)


@steering_router.get("/items/{item}/content", response_class=Response)
async def item_content(service: Running, caller: Viewer, item: Id) -> Response:
    """Serve the file of an image or a sound, or the sandboxed page, of an item."""
    collection = service.collection
    row = await service.read(lambda c: sql.item.first(c, item=item, campaign=collection.id))
    file = None if row is None else media_file(collection.folder, row.content, row.content_type)
    headers = {"content-security-policy": SANDBOX}
    if row is not None and row.content_type == "html":
        return Response(row.content.encode("utf-8", "replace"), 200, headers, "text/html; charset=utf-8")
    if file is None:
        raise Fault("not_found", "this item has no file")
    return Response(file[0].read_bytes(), 200, headers, file[1])


@steering_router.post("/items")
async def add_items(service: Running, caller: Owner, body: steering.Added) -> dict[str, int]:
    """Add items to the campaign while it runs."""
    return {"added": await _act(service, caller, steering.add_items, body.items)}


@steering_router.post("/items/{item}")
async def mend_item(service: Running, caller: Owner, item: Id, body: steering.Mended) -> dict[str, bool]:
    """Show something else of an item from now on."""
    await _act(service, caller, steering.mend_item, item, body)
    return {"mended": True}


@steering_router.get("/review")
async def review(request: Request, service: Running, caller: Viewer) -> Response:
    """Show what is disputed or was reported, and what was decided."""
    return await view_answer(service, request, steering.review_view)


@steering_router.post("/review")
async def decide(service: Running, caller: Reviewer, body: steering.Decision) -> dict[str, bool]:
    """Decide what is right; the next fit takes it as known."""
    await _act(service, caller, steering.decide, body)
    return {"decided": True}


@steering_router.get("/review/known", response_class=Response)
async def decisions(service: Running, caller: Viewer) -> Response:
    """Give the decisions as a table, as ``crowdrank aggregate --known`` takes those on grades."""
    collection = service.collection
    text = await service.read(lambda c: steering.reviews_csv(collection, c))
    return Response(text, 200, attachment_headers("known.csv"), "text/csv; charset=utf-8")


@steering_router.get("/people")
async def people(request: Request, service: Running, caller: Viewer) -> Response:
    """Show who takes part, with quality, pace, agreement over time and cost."""
    return await view_answer(service, request, steering.people_view)


@steering_router.post("/annotators/{annotator}/message")
async def message(service: Running, caller: Owner, annotator: Id, body: steering.Message) -> dict[str, bool]:
    """Show an annotator a message on their page."""
    await _act(service, caller, steering.send_message, annotator, body.text)
    return {"sent": True}


@steering_router.get("/pay", response_class=Response)
async def pay(
    service: Running, caller: Owner, format: str = "json", bonus: Share = 0.0, bonus_from: Share = 0.8,
    unit: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), must_be("what a unit of cost is worth")] = 1.0,
) -> Response:  # fmt: skip
    """Say what each annotator is owed, with a bonus by quality; csv, prolific and mturk are tables to pay by."""
    if format not in ("json", "csv", "prolific", "mturk"):
        raise Fault("invalid", "format must be one of json, csv, prolific, mturk", field="format")
    collection = service.collection
    rows = await service.read(lambda c: steering.pay_rows(collection, c, bonus, bonus_from))
    if format == "json":
        return Answer(rows)
    text = steering.pay_csv(rows["pay"], format, unit)
    return Response(text, 200, attachment_headers(f"pay-{format}.csv"), "text/csv; charset=utf-8")


@steering_router.post("/settings")
async def settings(service: Running, caller: Owner, body: steering.Changes) -> dict[str, Any]:
    """Put other settings into force without a restart; new guidelines have to be accepted anew."""
    changed = await _act(service, caller, steering.change_settings, body)
    return {"settings": changed.plain()}


@steering_router.get("/settings")
async def current_settings(service: Running, caller: Viewer) -> dict[str, Any]:
    """Say what the campaign asks, of whom, at what cost."""
    return {"settings": service.collection.settings.plain()}


@steering_router.get("/events")
async def events(
    service: Running, caller: Viewer,
    before: Annotated[int, Field(ge=0, le=2**62), must_be("the number of an event")] = 2**62,
) -> dict[str, Any]:  # fmt: skip
    """List what happened, the latest first: who did what and when."""
    collection = service.collection
    return await service.read(lambda c: steering.events_view(collection, c, before))


@steering_router.get("/course")
async def course(request: Request, service: Running, caller: Viewer) -> Response:
    """Show findings, how doubt fell with money, and what the next judgments are expected to buy."""
    return await view_answer(service, request, course_and_findings)
