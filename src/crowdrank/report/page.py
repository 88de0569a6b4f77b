"""What a report is made of: sections with a heading that states a finding, pictures and tables."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from ..review.findings import Finding
from .drawing import Display
from .page_tables import Table
from .svg import NARROW, inline_svg

TEMPLATES = Path(__file__).parent / "templates"


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
    drawn, narrow = inline_svg(display, prefix=key), None
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


def origin() -> list[tuple[str, str]]:
    """Return which version made a page, and when."""
    from .. import __version__

    now = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), UTC)
    return [("version", f"crowdrank {__version__}"), ("made", f"{now:%Y-%m-%d %H:%M} UTC")]


def render_page(
    *,
    title: str,
    lead: str,
    cards: Sequence[tuple[str, str]],
    summary: str,
    advice: Sequence[str],
    findings: Sequence[Finding],
    sections: Sequence[Section],
) -> str:
    """Return a page as text: title, numbers on top, findings, sections; nothing in it comes from outside."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from .. import __version__

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    # the page says which script may run, so none from the data could even if it stood there
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        title=title,
        lead=lead,
        cards=cards,
        summary=summary,
        advice=advice,
        findings=findings,
        sections=sections,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        version=__version__,
    )
