"""Pictures as text within a page: scalable, with colours that follow the light or dark of the page."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any
from xml.etree import ElementTree

from .drawing import AMBER, BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE, RULE, SKY, STYLE, Display, draw_figure

VARIABLES = {
    BLUE: "blue", ORANGE: "orange", GREEN: "green", PURPLE: "purple", SKY: "sky", AMBER: "amber", GREY: "grey",
    INK: "ink", RULE: "rule", PAPER: "paper",
}  # fmt: skip
"""Colour of a picture -> variable of the page's style that stands for it."""

_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_BY_NAME = {colour.lower(): f"var(--{name})" for colour, name in VARIABLES.items()}
_POINTER = re.compile(r"url\(#([^)]+)\)|^#(.+)$")
_FONT = re.compile(r"font-family:[^;]*;?\s*")
_SCALE = 1.45
"""Pixels of the page for a point of the picture: letters of a picture are nearly as large as those of the text."""

_UNWANTED = ("metadata", "style")


def inline_svg(display: Display, *, prefix: str) -> str:
    """Return a display as an SVG element to stand within a page; ``prefix`` keeps its ids apart from other pictures'.

    Nothing in it comes from outside, runs or styles anything else: what matplotlib writes is read as a tree, texts
    stay texts, and metadata and style sheets are left out.
    """
    import matplotlib as mpl

    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        # a letter that the font lacks is drawn by the browser, with a font of its own
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = draw_figure(display)
        figure.patch.set_alpha(0.0)
        for ax in figure.axes:
            ax.patch.set_alpha(0.0)
        text = io.StringIO()
        figure.savefig(text, format="svg", dpi=120, metadata={"Date": None})
    root = ElementTree.fromstring(text.getvalue())
    _settle(root, prefix)
    width, height = (float(root.attrib.pop(side).removesuffix("pt")) for side in ("width", "height"))
    root.set("viewBox", f"0 0 {width:g} {height:g}")
    root.set("style", f"max-width: {width * _SCALE:.0f}px")
    root.attrib.pop("version", None)
    return ElementTree.tostring(root, encoding="unicode")


def _settle(element: Any, prefix: str) -> None:
    """Take names out of their spaces, make ids one's own, and colours those of the page; in place."""
    for child in list(element):
        if _local(child.tag) in _UNWANTED:
            element.remove(child)
        else:
            _settle(child, prefix)
    element.tag = _local(element.tag)
    for name in list(element.attrib):
        value = element.attrib.pop(name)
        local = _local(name)
        if local == "id":
            value = f"{prefix}-{value}"
        elif local == "href" and value.startswith("data:"):
            pass
        elif local in ("href", "clip-path", "style"):
            value = _POINTER.sub(lambda match: _rename_pointer(match, prefix), value)
        if local in ("style", "fill", "stroke"):
            value = _COLOUR.sub(lambda match: _BY_NAME[match.group().lower()], value)
            value = _FONT.sub("", value)
        element.set(local, value)


def _rename_pointer(match: re.Match[str], prefix: str) -> str:
    """A pointer to the id as it is now called."""
    return f"url(#{prefix}-{match.group(1)})" if match.group(1) else f"#{prefix}-{match.group(2)}"


def _local(name: Any) -> str:
    """A name without its space."""
    return str(name).rsplit("}", 1)[-1]
