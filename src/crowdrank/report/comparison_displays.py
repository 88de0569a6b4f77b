"""Pictures of a comparison of methods: how good each is by a measure, and how far their orders differ."""

from __future__ import annotations

from typing import Self

import numpy as np
import polars as pl

from ..errors import ParameterError
from ..protocols import Floats
from ..validation.method_comparison import LEADING, Comparison, Measured
from .crowd_displays import cluster_order
from .drawing import BLUE, GREY, ORANGE, Display, RowsDisplay, name_rows, short
from .item_displays import heat_map

_SHADES = ("#F7F4EF", "#8FC0E2", "#2774AE")
_LEAST_SPAN = 0.1


class ComparisonDisplay(RowsDisplay):
    """Methods by one measure, the best on top, with intervals of 95 % where there are any.

    A full blue dot is the best, or a method that a paired test does not show to be worse; an open orange one is clearly
    worse. Where nothing can be tested all dots are grey but the best.

    Parameters
    ----------
    table
        method, value, lower, upper, best and tied, the best first.
    measure
        What the methods are measured by.

    Examples
    --------
    >>> from crowdrank.api import compare_methods
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> found = compare_methods(votes, ["mean_grade", "borda"], truth={"item": ["x", "y"], "grade": [1, 0]})
    >>> ComparisonDisplay.from_comparison(found, measure="tau").table["value"].to_list()
    [1.0, 1.0]
    """

    margin, min_lines = 1.2, 3

    def __init__(self, table: pl.DataFrame, measure: Measured) -> None:
        self.table, self.measure = table, measure

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, measure: str | None = None) -> Self:
        """Return the display of a comparison by one of its measures; ``None`` takes that which it speaks of first."""
        names = comparison.names
        if measure is None:
            measure = next((name for name in LEADING if name in names), names[0])
        if measure not in names:
            raise ParameterError(f"the comparison has no measure {measure!r}; it has {', '.join(names)}")
        rows = comparison.scores().filter(pl.col("measure") == measure).drop("measure")
        return cls(rows, comparison.measures[names.index(measure)])

    def _draw(self) -> None:
        """Draw on the axes."""
        for row, one in enumerate(self.table.iter_rows(named=True)):
            colour = GREY if one["tied"] is None else BLUE if one["tied"] else ORANGE
            face = "none" if one["tied"] is False else colour
            if one["lower"] is not None:
                self.ax_.plot([one["lower"], one["upper"]], [row, row], color=colour, linewidth=1.6)
            self.ax_.plot(one["value"], row, "o", color=colour, markerfacecolor=face, markersize=6.5, zorder=3)
        name_rows(self.ax_, self.table["method"].to_list())
        self.ax_.grid(axis="x")
        better = "larger" if self.measure.larger_is_better else "smaller"
        title = self.measure.title if self.measure.of != "truth" else f"{self.measure.name}, mean over queries"
        self.ax_.set_xlabel(f"{title.replace(', ', chr(10), 1)} ({better} is better)")
        if self.table["tied"].null_count() == 0 and not self.table["tied"].all():
            self._explain()

    def _explain(self) -> None:
        """Say what the dots mean, above the axes, where none of them is."""
        marks = [("best, or not clearly worse", BLUE, BLUE), ("clearly worse", ORANGE, "none")]
        for label, colour, face in marks:
            self.ax_.plot([], [], "o", color=colour, markerfacecolor=face, label=label)
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)


class OrdersDisplay(Display):
    """How far the orders of methods are alike, as a matrix of Kendall's tau; those alike stand together.

    For classes the share of items that two methods put into the same class.

    Parameters
    ----------
    methods
        The methods, in the order of the clusters.
    alike
        Tau of each two, (n, n).
    what
        What the numbers are.

    Examples
    --------
    >>> from crowdrank.api import compare_methods
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> found = compare_methods(votes, ["mean_grade", "borda", "median_rank"])
    >>> float(OrdersDisplay.from_comparison(found).alike.min())
    1.0
    """

    def __init__(self, methods: list[str], alike: Floats, *, what: str = "Kendall's tau") -> None:
        self.methods, self.alike, self.what = methods, alike, what

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison of two methods or more."""
        n, alike = len(comparison.methods), comparison.order_matrix()
        if n < 2:
            raise ParameterError("only one method: there are no orders to compare")
        order = cluster_order(np.nan_to_num(alike), ~np.eye(n, dtype=bool)) if n > 2 else np.arange(n)
        what = "share of items in the same class" if comparison.nominal else "Kendall's tau"
        return cls([comparison.methods[place] for place in order], alike[np.ix_(order, order)], what=what)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the display, in inches."""
        n = len(self.methods)
        return 3.0 + 0.42 * n, 2.0 + 0.32 * n

    def _draw(self) -> None:
        """Draw on the axes."""
        low = min(float(np.nanmin(self.alike)), 1.0 - _LEAST_SPAN)
        text = [[f"{value:.2f}" for value in row] for row in self.alike]
        image = heat_map(self.ax_, self.alike, low=low, high=1.0, text=text, colours=_SHADES)
        names = [short(name, 24) for name in self.methods]
        self.ax_.set_yticks(range(len(names)), names, parse_math=False)
        self.ax_.set_xticks(range(len(names)), names, parse_math=False, rotation=90)
        self.ax_.tick_params(length=0)
        bar = self.figure_.colorbar(image, ax=self.ax_, shrink=0.8, pad=0.02)
        bar.set_label(self.what)
        bar.outline.set_visible(False)
        self.ax_.set_xlabel("method")
        self.ax_.set_ylabel("method")
