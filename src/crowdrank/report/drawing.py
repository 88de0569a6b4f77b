"""What pictures have in common: colours, axes, names of any length, and how they are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

from ..data.files import PathLike, plain
from ..errors import ParameterError
from ..io.output import write_with

if TYPE_CHECKING:
    import polars as pl

BLUE, ORANGE = "#0072B2", "#D55E00"
"""Two colours that colour-blind readers can distinguish, in print too (Okabe and Ito)."""

GREEN, PURPLE, SKY, AMBER = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Four more of the same palette; where a picture uses them, shapes differ too."""

GREY, INK, RULE, PAPER = "#8A8A8A", "#222222", "#D8D8D8", "#FFFFFF"
"""Of what matters less, of text and axes, of grid lines, and of what lies behind them."""

PICTURES = (".png", ".pdf", ".svg")

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

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture, in inches."""
        return 6.4, 4.0

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes, on those of a new figure if there are none."""
        if ax is None:
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


def short(name: Any, longest: int = LONGEST) -> str:
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


def name_rows(ax: Any, names: Sequence[Any], places: Sequence[float] | None = None, *, longest: int = LONGEST) -> None:
    """Write a name at each row, the first on top."""
    where = range(len(names)) if places is None else places
    ax.set_yticks(list(where), [short(name, longest) for name in names], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(where, default=0) + 0.6, min(where, default=0) - 0.6)
