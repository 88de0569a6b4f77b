"""The items of a campaign: what annotators see of each, and what is known of it."""

from __future__ import annotations

import math
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..io.tables import read_table
from ..wording import either

CONTENT_TYPES = ("text", "markdown", "image", "audio", "html")
MAX_CONTENT = 200_000
"""Characters of one item's content, so that a page of twenty stays under 4 MB."""

_COLUMNS = ("query", "item", "content", "content_type", "query_content", "truth")


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of a query with what is shown of it, and its truth where that is known."""

    query: str
    item: str
    content: str
    content_type: str = "text"
    query_content: str = ""
    truth: float | None = None


def read_items(folder: Path, name: str) -> tuple[Item, ...]:
    """Return the items in a table: query, item, content [, content_type, query_content, truth]."""
    table = read_table(folder / name)
    for column in ("item", "content"):
        if column not in table.columns:
            raise ParameterError(
                f"{name} has no column {column!r} (its columns: {either(table.columns, 'and')}); "
                f"rename the one that holds it to {column}"
            )
    rows = table.select(column for column in _COLUMNS if column in table.columns).iter_rows(named=True)
    items = tuple(_item(row, f"{name}, row {number}", folder) for number, row in enumerate(rows, 1))
    seen: set[tuple[str, str]] = set()
    asked: dict[str, str] = {}
    for number, one in enumerate(items, 1):
        if (one.query, one.item) in seen:
            raise ParameterError(f"{name}, row {number} repeats item {one.item!r} (query {one.query!r}); drop it")
        seen.add((one.query, one.item))
        if asked.setdefault(one.query, one.query_content) != one.query_content:
            raise ParameterError(
                f"{name}, row {number} has another query_content than the rows of query {one.query!r} before it; "
                "give all rows of a query the same"
            )
    if not items:
        raise ParameterError(f"{name} has no items; add a row for each")
    return items


def _item(row: dict[str, Any], where: str, folder: Path) -> Item:
    """The item of one row."""
    cells = {key: "" if value is None else str(value) for key, value in row.items()}
    if not cells["item"].strip():
        raise ParameterError(f"{where} has no item id; fill it in")
    if not cells["content"].strip():
        raise ParameterError(f"{where} (item {cells['item']!r}) has no content for annotators to see; fill it in")
    kind = cells.get("content_type") or "text"
    if kind not in CONTENT_TYPES:
        raise ParameterError(f"{where} has content_type {kind!r}; use {either(CONTENT_TYPES)}")
    for key in ("content", "query_content"):
        if len(cells.get(key, "")) > MAX_CONTENT:
            raise ParameterError(f"{where} has a {key} of over {MAX_CONTENT:,} characters; shorten it or link a file")
    if kind in ("image", "audio"):
        _expect_media(cells["content"], kind, where, folder)
    return Item(
        query=cells.get("query", ""), item=cells["item"], content=cells["content"], content_type=kind,
        query_content=cells.get("query_content", ""), truth=_truth(cells.get("truth", ""), where),
    )  # fmt: skip


def _truth(text: str, where: str) -> float | None:
    """A truth as a number, ``None`` where the cell is blank."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(f"{where} has truth {text!r}, which is not a number; correct it or leave it blank")
    return value


def _expect_media(content: str, kind: str, where: str, folder: Path) -> None:
    """Refuse an image or audio file that is not in the campaign's folder."""
    if kind == "image" and content.startswith("https://"):
        return
    if media_file(folder, content, kind) is None:
        raise ParameterError(
            f"{where} names {kind} file {content!r}, which is not a file of that type in the campaign's folder; "
            "put it there and give its name relative to the folder"
        )


def media_file(folder: Path, content: str, kind: str) -> tuple[Path, str] | None:
    """Return the file of an image or audio item and its type, ``None`` where it is not inside the folder."""
    root = folder.resolve()
    try:
        path = (root / content).resolve()
        inside = path.is_relative_to(root) and path.is_file()
    except (OSError, ValueError):
        return None
    media_type = mimetypes.guess_type(path.name)[0] or ""
    # pictures that hold script are not shown as such: a reader of the page must not run it
    fits = media_type.startswith(f"{kind}/") and media_type != "image/svg+xml"
    return (path, media_type) if inside and fits else None
