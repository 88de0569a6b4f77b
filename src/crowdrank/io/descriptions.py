"""Text and links of items, from a table about them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..data.columns import plain_name, understand_items
from ..data.files import PathLike
from ..data.frames import to_frame
from ..data.guessing import understand
from ..data.index import Items
from ..errors import JudgmentError
from . import exports
from .preflib import SUFFIXES
from .sources import open_source
from .tables import read_source, read_table

TEXT = ("text", "title", "name", "content", "description", "summary", "body", "passage", "snippet", "answer_text")
LINK = ("url", "link", "href", "uri")
"""Names of columns that hold the text, and the link, of an item; the first that there is counts."""

_WEB = re.compile(r"https?://[^\s\x00-\x1f]+", re.IGNORECASE)


def describe_items(table: Any, items: Items) -> pl.DataFrame:
    """Return text and link of each item in the order of their codes, null where there is none.

    Parameters
    ----------
    table
        A frame or file with an item column, a query column if it has one, and text or link under one of their names.
    items
        The items to describe; where queries were taken as one, any row of an item will do.

    Examples
    --------
    >>> from ..data.index import Index
    >>> import numpy as np
    >>> items = Items(Index(pl.Series([""])), np.zeros(2, np.int32), pl.Series(["x", "y"]))
    >>> describe_items({"item": ["y"], "title": ["Why?"], "url": ["https://example.org/y"]}, items).rows()
    [(None, None), ('Why?', 'https://example.org/y')]
    """
    frame = read_table(table) if isinstance(table, str | os.PathLike) else to_frame(table)
    named = understand_items(frame.columns)
    plain = {plain_name(name): name for name in reversed(frame.columns)}
    free = {word: name for word, name in plain.items() if name not in named.values()}
    chosen = {
        what: next((free[word] for word in words if word in free), None)
        for what, words in (("text", TEXT), ("link", LINK))
    }
    keys = ["item"] if items.single or "query" not in named else ["query", "item"]
    columns = {key: frame[named[key]].cast(pl.String) for key in keys}
    columns |= {
        what: pl.repeat(None, len(frame), dtype=pl.String, eager=True) if name is None else frame[name].cast(pl.String)
        for what, name in chosen.items()
    }
    known = pl.DataFrame(columns).unique(keys, keep="first", maintain_order=True)
    wanted = pl.DataFrame({"query": items.query_ids().cast(pl.String), "item": items.ids.cast(pl.String)})
    described = wanted.join(known, on=keys, how="left", maintain_order="left")
    return described.select("text", pl.col("link").map_elements(web_link, return_dtype=pl.String))


def describe_votes(
    paths: Sequence[PathLike], kind: str | None = None, columns: Mapping[str, str] | None = None
) -> pl.DataFrame | None:
    """Return query, item, text and link from files of judgments that tell them too, ``None`` where none does.

    For grades and rankings the columns are called as for :func:`describe_items`; for preferences with the side before
    or behind, as in ``left_text`` or ``url_b``. Standard input cannot be read again and is passed over.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("left,right,winner,left_text,right_text\\nx,y,left,Why not?,Why?\\n")
    >>> describe_votes([path]).rows()
    [('x', 'Why not?', None), ('y', 'Why?', None)]
    """
    tables = [table for path in paths if str(path) != "-" for table in _describe_file(path, kind, columns)]
    return pl.concat(tables, how="diagonal") if tables else None


def _describe_file(path: PathLike, kind: str | None, columns: Mapping[str, str] | None) -> list[pl.DataFrame]:
    """What one file of judgments tells of items, a table for each side."""
    try:
        source = open_source(path, archives=True)
        if source.suffix in SUFFIXES or exports.detect(source) is not None:
            return []
        frame = read_source(source)[0]
        understood = understand(frame, kind, columns)
    except JudgmentError:
        # read with options that say more, so that its columns are not these
        return []
    free = {plain_name(name): name for name in reversed(understood.ignored)}
    tables = []
    sides = ("winner", "loser") if "loser" in understood.columns else ("item", "left", "right")
    for side in sides:
        if side not in understood.columns:
            continue
        by_part = {}
        for what, words in (("text", TEXT), ("link", LINK)):
            named = [form.format(word) for word in words for form in _FORMS[side]]
            by_part[what] = next((free[name] for name in named if name in free), None)
        if not any(by_part.values()):
            continue
        query = {"query": frame[understood.columns["query"]].cast(pl.String)} if "query" in understood.columns else {}
        empty = pl.repeat(None, len(frame), dtype=pl.String, eager=True)
        cells = {what: empty if name is None else frame[name].cast(pl.String) for what, name in by_part.items()}
        table = pl.DataFrame({**query, "item": frame[understood.columns[side]].cast(pl.String), **cells})
        tables.append(table.unique([*query, "item"], keep="first", maintain_order=True))
    return tables


_FORMS = {
    "item": ("{}",),
    "left": ("left_{}", "{}_left", "{}_a", "a_{}"),
    "right": ("right_{}", "{}_right", "{}_b", "b_{}"),
    "winner": ("winner_{}", "{}_winner", "chosen_{}", "{}_chosen"),
    "loser": ("loser_{}", "{}_loser", "rejected_{}", "{}_rejected"),
}
"""Which item -> how columns about it are called."""


def web_link(text: str) -> str | None:
    """Return a text that is the address of a web page, ``None`` for any other, scripts and files among them.

    Examples
    --------
    >>> web_link(" https://example.org/a "), web_link("javascript:alert(1)")
    ('https://example.org/a', None)
    """
    address = text.strip()
    return address if _WEB.fullmatch(address) else None
