"""Pictures of studies: lines with their spread, bars beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A", "#7F7F7F")
"""Colours that colour-blind readers can distinguish (Okabe and Ito, and two more)."""

_MARKS = "osD^vPX*<"


def panels(n: int, *, rows: int | None = None, width: float = 4.2, height: float = 3.2) -> tuple[Any, list[Any]]:
    """Return a figure with a row of axes; in two rows, or as many as said, where there are more than three."""
    from matplotlib.figure import Figure

    across = -(-n // rows) if rows is not None else n if n <= 3 else -(-n // 2)
    down = -(-n // across)
    # a figure by itself asks for no window system
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for spare in axes.flat[n:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:n])


def lines(
    ax: Any,
    x: Sequence[float],
    series: Mapping[str, Sequence[Sequence[float]]],
    *,
    xlabel: str,
    ylabel: str,
    error: bool = False,
    legend: bool = True,
    among: Sequence[str] | None = None,
) -> None:
    """Draw a line for each series, with the standard deviation of its repetitions, or of their mean, as a band.

    ``series`` is name -> for each place on the x axis the repetitions there; ``error`` draws the standard error.
    ``among`` are the names that share colours over several axes, where not all of them stand in each.
    """
    for name, repeated in series.items():
        place = list(series if among is None else among).index(name)
        mean = np.array([np.mean(values) for values in repeated])
        spread = np.array([np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in repeated])
        spread /= np.sqrt([len(values) for values in repeated]) if error else 1.0
        colour = COLOURS[place % len(COLOURS)]
        ax.plot(x, mean, color=colour, marker=_MARKS[place % len(_MARKS)], markersize=4, linewidth=1.4, label=name)
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False, fontsize=8)


def bars(
    ax: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]], *, ylabel: str, legend: bool = True
) -> None:
    """Draw bars beside each other: a group for each name on the x axis, a bar in it for each series."""
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width
        ax.bar(at, values, width, color=COLOURS[place % len(COLOURS)], label=name)
    ax.set_xticks(np.arange(len(groups)), groups)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        # above the axes, where no bar stands
        ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def common_legend(figure: Any, *axes: Any, across: int = 3) -> None:
    """Put one legend of the names in some of the axes below all of them, this many names beside each other."""
    handles = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=across, frameon=False, fontsize=8)
