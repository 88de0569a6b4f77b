"""Tables of the report: the first rows as they stand in the page, all rows as data for its script."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from markupsafe import Markup

from ..data.files import plain

PAGE = 25
"""Rows that are shown at a time."""

LONGEST = 120
_MAX_SHORT_CHARACTERS = 24
_SHORTEST = 10
MOST_BYTES = 1_100_000
"""So large may the data of one table be; what comes after that is left out, and the page says so."""


@dataclass(frozen=True)
class Column:
    """A column: its title, what its cells are, and how many decimals numbers have."""

    name: str
    title: str
    digits: int | None = None
    kind: str = "text"
    hint: str = ""


@dataclass(frozen=True)
class Table:
    """A table that can be sorted and searched.

    Parameters
    ----------
    key
        Name that no other table of the page has.
    caption
        What the table holds.
    columns
        Its columns.
    rows
        Cells of each row, in the order of the columns: text, a number or ``None``.
    n_rows
        How many rows there would be if none had been left out.
    """

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Any]] = field(repr=False)
    n_rows: int = 0

    @classmethod
    def of(
        cls, key: str, caption: str, frame: pl.DataFrame, columns: tuple[Column, ...], most: int = MOST_BYTES
    ) -> Table:
        """Return the table of a frame, with those of the columns that it has something in, as far as there is room."""
        kept = tuple(c for c in columns if c.name in frame.columns and frame[c.name].null_count() < max(len(frame), 1))
        # no row is shorter than this, so more cannot fit
        cells = [_cells(frame[column.name].head(most // _SHORTEST), column) for column in kept]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return cls(key, caption, kept, _fitting(rows, most), len(frame))

    @property
    def n_left_out(self) -> int:
        """How many rows there was no room for."""
        return self.n_rows - len(self.rows)

    @property
    def first(self) -> list[list[str]]:
        """The first rows as they are shown."""
        return [
            [cell_text(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows[:PAGE]
        ]

    def data(self) -> Markup:
        """Return all rows as JSON that can stand within a page."""
        columns = [
            {"kind": column.kind, "digits": column.digits, "style": style}
            for column, style in zip(self.columns, self.styles, strict=True)
        ]
        return embed_json({"page": PAGE, "columns": columns, "rows": self.rows})

    @property
    def styles(self) -> list[str]:
        """What the cells of each column look like: numbers, text, or text that needs room."""
        long = [
            any(len(str(row[place])) > _MAX_SHORT_CHARACTERS for row in self.rows) for place in range(len(self.columns))
        ]
        return [
            "number" if column.digits is not None else "text wide" if wide and column.kind == "text" else "text"
            for column, wide in zip(self.columns, long, strict=True)
        ]


def embed_json(value: Any) -> Markup:
    """Return a value as JSON that cannot end the element it stands in, nor begin another.

    Examples
    --------
    >>> str(embed_json({"item": "</script>"}))
    '{"item":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def cell_text(cell: Any, column: Column) -> str:
    """Return a cell as it is shown, by the same rule as the script of the page."""
    if cell is None:
        return ""
    if column.digits is None:
        return str(cell)
    return f"{cell:,.{column.digits}f}"


def _cells(values: pl.Series, column: Column) -> list[Any]:
    """Cells that JSON can hold: numbers rounded, text on one line and not too long."""
    if column.digits is None:
        return [None if value is None else _text(value) for value in values.to_list()]
    numbers = values.cast(pl.Float64).to_list()
    finite = [None if value is None or not math.isfinite(value) else round(value, column.digits) for value in numbers]
    return [int(value) if value is not None and column.digits == 0 else value for value in finite]


def _text(value: Any) -> str:
    """A text on one line, cut where it is very long."""
    text = plain(" ".join(str(value)[: 4 * LONGEST].split())) or "?"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _fitting(rows: list[list[Any]], most: int) -> list[list[Any]]:
    """The first rows, as many as there is room for."""
    room = most
    for number, row in enumerate(rows):
        room -= len(json.dumps(row, ensure_ascii=False).encode()) + 1
        if room < 0:
            return rows[:number]
    return rows
