"""What pictures have in common: colours, axes, names of any length, and how they are written."""

from __future__ import annotations

import io
import re
import textwrap
import tomllib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self
from xml.etree import ElementTree

from ..data.files import PathLike, plain
from ..errors import ParameterError, expect_package
from ..io.output import write_with
from ..options import PICTURES
from . import colours
from .colours import GREY, INK, PAPER, RULE

if TYPE_CHECKING:
    import polars as pl


CAPTIONS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("captions.toml").read_text(encoding="utf-8"))
"""What stands beneath pictures and above tables, by their name, and words of their axes and columns."""

LONGEST = 40
ROW = 0.24
"""Height of a row with a name, in inches."""

STYLE: Any = {
    "font.size": 9.5, "axes.titlesize": 10.5, "axes.labelsize": 9.5, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "legend.fontsize": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GREY, "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "grid.color": RULE, "grid.linewidth": 0.7,
    "axes.axisbelow": True, "legend.frameon": False, "figure.facecolor": PAPER, "axes.facecolor": PAPER,
    "svg.fonttype": "none", "svg.hashsalt": "crowdrank", "font.sans-serif": ["DejaVu Sans"], "text.parse_math": False,
}  # fmt: skip
"""How pictures of the report look; a display drawn on axes of one's own looks as those do."""


class Display(ABC):
    """A picture of a result: computed by a ``from_...`` method, drawn by ``plot``.

    Attributes
    ----------
    ax_, figure_
        Axes and figure that were drawn on last.
    """

    ax_: Any
    figure_: Any
    _size: tuple[float, float] = (6.4, 4.0)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture, in inches."""
        return self._size

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes, on those of a new figure if there are none."""
        if ax is None:
            expect_package("matplotlib")
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=self.size, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw()
        return self

    def savefig(self, path: PathLike) -> None:
        """Write the figure that was drawn on as PNG, PDF or SVG, by the ending of the name; draw it where none was."""
        write_picture(getattr(self, "figure_", None) or draw_figure(self), path)

    @abstractmethod
    def _draw(self) -> None:
        """Draw on the axes."""


class RowsDisplay(Display):
    """A picture with a line for each row of its table; a subclass says how wide it is and what stands around them."""

    table: pl.DataFrame
    width: ClassVar[float] = 6.4
    margin: ClassVar[float] = 1.1
    """Inches above and below the lines."""

    min_lines: ClassVar[int] = 0

    @property
    def n_lines(self) -> int:
        """Number of lines."""
        return len(self.table)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture, in inches."""
        return self.width, self.margin + ROW * max(self.n_lines, self.min_lines)


def short(name: object, longest: int = LONGEST) -> str:
    """Return a name on one line that leaves room for the rest of the picture.

    Examples
    --------
    >>> short("a very long name of an item", 12)
    'a very long…'
    """
    text = plain(" ".join(str(name)[: 4 * longest].split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def draw_figure(display: Display) -> Any:
    """Return a figure with the display on it, in the style of the report; no window is opened."""
    expect_package("matplotlib")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=display.size, layout="constrained")
        display.plot(figure.subplots())
    return figure


def save_display(display: Display, path: PathLike) -> None:
    """Draw a display and write it as PNG, PDF or SVG, by the ending of the name; no window is opened."""
    write_picture(draw_figure(display), path)


def write_picture(figure: Any, path: PathLike) -> None:
    """Write a figure as PNG, PDF or SVG, by the ending of the name."""
    expect_package("matplotlib")
    import matplotlib as mpl

    ending = picture_format(path)
    if ending is None:
        raise ParameterError(f"{plain(str(path))} is not the name of a picture; end it in {', '.join(PICTURES)}")

    def write(handle: IO[bytes]) -> None:
        with mpl.rc_context(STYLE):
            figure.savefig(handle, format=ending, dpi=150)

    write_with(write, path)


def picture_format(path: PathLike) -> str | None:
    """Return the format that a picture's name says, ``None`` where it is not that of a picture."""
    ending = Path(path).suffix.lower()
    return ending[1:] if ending in PICTURES else None


def name_rows(
    ax: Any, names: Sequence[object], places: Sequence[float] | None = None, *, longest: int = LONGEST
) -> None:
    """Write a name at each row, the first on top."""
    where = range(len(names)) if places is None else places
    ax.set_yticks(list(where), [short(name, longest) for name in names], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(where, default=0) + 0.6, min(where, default=0) - 0.6)


VARIABLES = {colour: name.lower() for name, colour in vars(colours).items() if name in colours.NAMES}
"""Colour of a picture -> variable of the page's style that stands for it."""

_COLOUR = re.compile("|".join(VARIABLES), re.IGNORECASE)
_BY_NAME = {colour.lower(): f"var(--{name})" for colour, name in VARIABLES.items()}
_POINTER = re.compile(r"(url\(|^)#(?=[^)])")
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
    expect_package("matplotlib")
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
        elif local in ("href", "clip-path", "style"):
            value = _POINTER.sub(lambda match: f"{match.group(1)}#{prefix}-", value)
        if local in ("style", "fill", "stroke"):
            value = _COLOUR.sub(lambda match: _BY_NAME[match.group().lower()], value)
            value = _FONT.sub("", value)
        element.set(local, value)


def _local(name: Any) -> str:
    """A name without its space."""
    return str(name).rsplit("}", 1)[-1]
