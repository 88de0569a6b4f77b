"""What a report is made of: sections with a heading that states a finding, pictures and tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from ..review.findings import Finding
from .drawing import Display
from .svg import inline_svg
from .tables import Table


@dataclass(frozen=True)
class Picture:
    """A display with what it shows in words, ready to stand in the page."""

    svg: Markup
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
    """Return a display as a picture; ``key`` tells it from all others of the page."""
    return Picture(Markup(inline_svg(display, prefix=key)), caption, wide)


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
