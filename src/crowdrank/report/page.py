"""What a report is made of: sections with a heading that states a finding, pictures and tables."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from ..errors import MissingExtraError, warn
from ..review.findings import Finding
from .drawing import NARROW, Display, inline_svg, short

TEMPLATES = Path(__file__).parent / "templates"
COLUMNS = Path(__file__).with_name("columns.csv")
"""The columns of every table of the pages: title, decimals of numbers, and what a reader may need to know."""

_NOT_DRAWN = "<p>Not drawn here: pictures need <code>pip install 'crowdrank[plots]'</code>.</p>"


@dataclass(frozen=True)
class Picture:
    """A display with what it shows in words, ready to stand in the page."""

    svg: Markup
    narrow: Markup | None
    caption: str
    wide: bool = True


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Parameters
    ----------
    key
        Name that no other section has.
    kicker
        What the section is about, in a word or two.
    heading
        What was found, in a sentence.
    sentences
        What else there is to say.
    pictures, tables
        What shows it.
    facts
        Names and values, such as parameters.
    commands
        Commands to copy.
    """

    key: str
    kicker: str
    heading: str
    sentences: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = field(default=())


def picture(display: Display, caption: str, key: str, *, wide: bool = True) -> Picture:
    """Return a display as a picture; ``key`` distinguishes it from all others of the page.

    What is too wide for a telephone is drawn once more, unless it has no room there.
    """
    narrow = None
    try:
        drawn = inline_svg(display, prefix=key)
    except MissingExtraError:
        warn("the report has no pictures, which matplotlib draws; install it with pip install 'crowdrank[plots]'")
        return Picture(Markup(_NOT_DRAWN), None, caption, wide)
    if display.size[0] > NARROW:
        with contextlib.suppress(UserWarning):
            narrow = Markup(inline_svg(display, prefix=f"{key}-narrow", narrow=True))
    return Picture(Markup(drawn), narrow, caption, wide)


def headline(sentence: str, finding: Finding | None = None) -> str:
    """Return a sentence with a capital, unless it begins with an id, which stays as it is.

    Examples
    --------
    >>> headline("all items have the same score")
    'All items have the same score'
    """
    starts = [str(one) for one in finding.ids[:1]] if finding is not None else []
    if any(sentence.startswith(start) for start in starts) or (finding is not None and finding.about == "method"):
        return sentence
    return sentence[:1].upper() + sentence[1:]


def as_sentences(texts: Iterable[str | Finding]) -> tuple[str, ...]:
    """Return texts and findings as sentences of the page, with a capital and a full stop."""
    return tuple(f"{headline(*((one, None) if isinstance(one, str) else (one.sentence, one)))}." for one in texts)


def provenance(
    facts: Sequence[tuple[str, str]], command: str | None, heading: str = "", pictures: tuple[Picture, ...] = ()
) -> Section:
    """Return the section on how a page was made: from what, by which version, when, and by which command."""
    words = ("making", "How this was made", heading or "How this was made")
    return Section(*words, (), pictures, facts=(*facts, *origin()), commands=(command,) if command else ())


def origin() -> list[tuple[str, str]]:
    """Return which version made a page, and when."""
    from .. import __version__

    now = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), UTC)
    return [("version", f"crowdrank {__version__}"), ("made", f"{now:%Y-%m-%d %H:%M} UTC")]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: title, numbers on top, findings, sections; nothing in it comes from outside."""

    title: str
    lead: str
    cards: Sequence[tuple[str, str]]
    summary: str
    advice: Sequence[str]
    findings: Sequence[Finding]
    sections: Sequence[Section | None]

    def render(self) -> str:
        """Return it as text."""
        from .. import __version__

        script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
        # the page says which script may run, so none from the data could even if it stood there
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))
        sections = [section for section in self.sections if section is not None]
        around = {"script": Markup(script), "script_hash": f"sha256-{digest}", "style": style, "version": __version__}
        return render_template("report.html.j2", **{**vars(self), "sections": sections}, **around)


def render_template(name: str, **words: object) -> str:
    """Return the page of a template, everything that is put into it escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(name).render(**words)


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


def columns_of(table: str, **words: str) -> tuple[Column, ...]:
    """Return the columns that ``columns.csv`` lists for a table; ``words`` stand for what titles have in braces."""
    columns = []
    for row in csv.DictReader(COLUMNS.read_text(encoding="utf-8").splitlines()):
        if row["table"] == table:
            digits = int(row["digits"]) if row["digits"] else None
            kind = "link" if row["name"] == "link" else "text"
            columns.append(Column(row["name"], row["title"].format(**words), digits, kind, row["hint"]))
    return tuple(columns)


def plain_columns(frame: pl.DataFrame) -> tuple[Column, ...]:
    """Return columns by the names of a table, numbers that are no counts with three decimals."""
    return tuple(
        Column(name, name.replace("_", " "), 3 if dtype.is_float() else 0 if dtype.is_integer() else None)
        for name, dtype in frame.schema.items()
    )


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
        return [[cell_text(*pair) for pair in zip(row, self.columns, strict=True)] for row in self.rows[:PAGE]]

    def data(self) -> Markup:
        """Return all rows as JSON that can stand within a page."""
        looks = zip(self.columns, self.styles, strict=True)
        columns = [{"kind": column.kind, "digits": column.digits, "style": style} for column, style in looks]
        return embed_json({"page": PAGE, "columns": columns, "rows": self.rows})

    @property
    def styles(self) -> list[str]:
        """What the cells of each column look like: numbers, text, or text that needs room."""
        styles = []
        for place, column in enumerate(self.columns):
            wide = column.kind == "text" and any(len(str(row[place])) > _MAX_SHORT_CHARACTERS for row in self.rows)
            styles.append("number" if column.digits is not None else "text wide" if wide else "text")
        return styles


def embed_json(value: object) -> Markup:
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
        return [None if value is None else short(value, LONGEST) or "?" for value in values.to_list()]
    numbers = values.cast(pl.Float64).to_list()
    finite = [None if value is None or not math.isfinite(value) else round(value, column.digits) for value in numbers]
    return [int(value) if value is not None and column.digits == 0 else value for value in finite]


def _fitting(rows: list[list[Any]], most: int) -> list[list[Any]]:
    """The first rows, as many as there is room for."""
    room = most
    for number, row in enumerate(rows):
        room -= len(json.dumps(row, ensure_ascii=False).encode()) + 1
        if room < 0:
            return rows[:number]
    return rows
