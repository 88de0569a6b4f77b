"""Pictures as text within a page: scalable, with colours that follow the light or dark of the page."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from typing import Any
from xml.etree import ElementTree

from .drawing import AMBER, BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE, RULE, SKY, STYLE, Display, draw_figure, short

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

NARROW = 3.9
"""Inches of a picture for a telephone: on a screen of 390 pixels its letters have 11 of them."""

_LINE = 0.17
"""Inches of a line of text."""

_LABEL, _NAME = 42, 14
"""Letters that fit beneath the axes of such a picture, and beside a row of it."""

_MATRIX_WIDTH, _NAME_HEIGHT = 160.0, 11.0
"""Points that the columns of a matrix have in such a picture, and that a name beside another needs."""

_UNWANTED = ("metadata", "style")


def inline_svg(display: Display, *, prefix: str, narrow: bool = False) -> str:
    """Return a display as an SVG element to stand within a page; ``prefix`` keeps its ids apart from other pictures'.

    A ``narrow`` one is for telephones; a warning is raised where it would leave no room for what is drawn.

    Nothing in it comes from outside, runs or styles anything else: what matplotlib writes is read as a tree, texts
    stay texts, and metadata and style sheets are left out.
    """
    import matplotlib as mpl

    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        # a letter that the font lacks is drawn by the browser, with a font of its own
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = draw_figure(display)
        if narrow:
            warnings.filterwarnings("error", message="constrained_layout not applied")
            _make_narrow(figure)
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


def _make_narrow(figure: Any) -> None:
    """Give a figure the width of a telephone: labels in lines, and what the legend names beneath each other."""
    n_lines = 0
    for ax in figure.axes:
        ax.set_xlabel(textwrap.fill(ax.get_xlabel(), _LABEL, break_on_hyphens=False))
        n_lines += ax.get_xlabel().count("\n")
        for axis in (ax.xaxis, ax.yaxis):
            names = [label.get_text() for label in axis.get_ticklabels()]
            if any(len(name) > _NAME for name in names):
                axis.set_ticks(axis.get_ticklocs(), [short(name, _NAME) for name in names])
        legend = ax.get_legend()
        if legend is not None:
            texts = [text.get_text() for text in legend.get_texts()]
            ax.legend(legend.legend_handles, texts, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
            n_lines += len(texts)
        if ax.images:
            # a matrix: figures as large as cells allow; names of columns, which are those of the rows, where they fit
            cell = _MATRIX_WIDTH / ax.images[0].get_array().shape[1]
            for text in ax.texts:
                text.set_fontsize(min(text.get_fontsize(), cell / 2))
            if cell < _NAME_HEIGHT:
                ax.set_xticks([])
    figure.set_size_inches(NARROW, figure.get_figheight() + n_lines * _LINE)


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
