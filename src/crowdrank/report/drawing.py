"""What pictures have in common: colours, axes, names of any length, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from ..data.files import PathLike, plain
from ..errors import ParameterError
from ..io.output import write_with

BLUE, ORANGE = "#0072B2", "#D55E00"
"""Two colours that colour-blind readers tell apart, in print too (Okabe and Ito)."""

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


class Display(Protocol):
    """A picture that can be drawn on axes."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Any:
        """Draw on the axes, on new ones if there are none."""
        ...


def new_axes(width: float, height: float) -> Any:
    """Return axes of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def short(name: Any, longest: int = LONGEST) -> str:
    """Return a name on one line that leaves room for the rest of the picture.

    Examples
    --------
    >>> short("a very long name of an item", 12)
    'a very long…'
    """
    text = plain(" ".join(str(name)[: 4 * longest].split()))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def size_of(display: Display) -> tuple[float, float]:
    """Return the width and height that suit a display, in inches."""
    found: tuple[float, float] = getattr(display, "size", (6.4, 4.0))
    return found


def drawn(display: Display) -> Any:
    """Return a figure with the display on it, in the style of the report; no window is opened."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size_of(display), layout="constrained")
        display.plot(figure.subplots())
    return figure


def save_display(display: Display, path: PathLike) -> None:
    """Draw a display and write it as PNG, PDF or SVG, by the ending of the name; no window is opened."""
    import matplotlib as mpl

    ending = picture_format(path)
    if ending is None:
        raise ParameterError(f"{plain(str(path))} is no picture; let its name end in {', '.join(PICTURES)}")
    figure = drawn(display)

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
