"""Pictures of runs against a truth: differences by query, by slice, and how far unjudged items could move them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl

from ..api import Evaluation
from ..errors import ParameterError
from ..validation.paired_tests import TIE
from .drawing import BLUE, GREY, INK, ORANGE, Display, RowsDisplay, name_rows

_MAX_BARS = 400


class DifferencesDisplay(Display):
    """The difference of two runs on each query, the largest gain first.

    Bars above 0 are queries that the run wins, in blue; those below it loses, in orange. Of more than 400 queries every
    bar stands for several, in order.

    Parameters
    ----------
    table
        query, difference and outcome, the largest gain first.
    run, other, metric
        What is compared.

    Examples
    --------
    >>> truth = {"query": list("aabbcc"), "item": list("xyxyxy"), "grade": [1, 0] * 3}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 3), ("new", [1, 0, 0, 1, 1, 0]))}
    >>> from crowdrank.api import evaluate_runs
    >>> found = evaluate_runs(runs, truth, ["ndcg@10"], baseline="old")
    >>> DifferencesDisplay.from_evaluation(found).table["outcome"].to_list()
    ['win', 'win', 'tie']
    """

    def __init__(self, table: pl.DataFrame, *, run: str, other: str, metric: str) -> None:
        self.table, self.run, self.other, self.metric = table, run, other, metric

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, run: str | None = None, other: str | None = None, metric: str | None = None
    ) -> Self:
        """Return the display of two runs of an evaluation by one metric; by default the first that were tested."""
        tests = evaluation.comparisons
        wanted = {"run": run, "other": other, "metric": metric}
        for name, value in wanted.items():
            tests = tests if value is None else tests.filter(pl.col(name) == value)
        if not len(tests):
            raise ParameterError("there are no such two runs to compare; evaluate two runs or more")
        row = tests.row(0, named=True)
        keys = [pl.col(name) == row[name] for name in wanted]
        of_pair = evaluation.differences.filter(*keys).sort(["difference", "query"], descending=[True, False])
        sign = {m.name: m.larger_is_better for m in evaluation.measures}[row["metric"]]
        table = of_pair.select("query", "difference", "outcome")
        return cls(table if sign else table.reverse(), run=row["run"], other=row["other"], metric=row["metric"])

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture, in inches."""
        return 6.4, 2.8

    def _draw(self) -> None:
        """Draw a bar for each query."""
        values, outcome = self.table["difference"].to_numpy(), self.table["outcome"].to_numpy()
        n = len(values)
        if n > _MAX_BARS:
            chosen = np.linspace(0, n - 1, _MAX_BARS).round().astype(int)
            values, outcome = values[chosen], outcome[chosen]
        places = np.linspace(1, n, len(values))
        colours = [BLUE if word == "win" else ORANGE if word == "loss" else GREY for word in outcome]
        self.ax_.bar(places, values, width=0.9 * n / len(values), color=colours)
        self.ax_.axhline(0, color=INK, linewidth=0.8)
        self.ax_.grid(axis="y")
        self.ax_.set_xlabel(f"{n:,} queries, from the largest gain to the largest loss")
        self.ax_.set_ylabel(f"difference in {self.metric}")


class _MetricDisplay(RowsDisplay):
    """A line for each row of a table of one metric."""

    min_lines = 3

    def __init__(self, table: pl.DataFrame, *, metric: str) -> None:
        self.table, self.metric = table, metric


class SlicesDisplay(_MetricDisplay):
    """The mean difference of two runs within each slice of the queries, with its interval.

    Parameters
    ----------
    table
        slice, difference, lower, upper, p_holm and n_queries.
    metric
        What is measured.

    Examples
    --------
    >>> rows = {"slice": ["buy", "learn"], "difference": [0.1, -0.1], "lower": [0.0, -0.2], "upper": [0.2, 0.0]}
    >>> SlicesDisplay(pl.DataFrame({**rows, "p_holm": [0.04, None], "n_queries": [40, 1]}), metric="map").size[0]
    6.4
    """

    def _draw(self) -> None:
        """Draw a dot and a line for each slice."""
        for row, one in enumerate(self.table.iter_rows(named=True)):
            clear = one["p_holm"] is not None and one["p_holm"] <= 0.05
            colour = GREY if not clear else BLUE if one["difference"] > 0 else ORANGE
            if one["lower"] is not None:
                self.ax_.plot([one["lower"], one["upper"]], [row, row], color=colour, linewidth=1.6)
            if one["difference"] is not None:
                self.ax_.plot(one["difference"], row, "o", color=colour, markersize=6, zorder=3)
        self.ax_.axvline(0, color=INK, linewidth=0.8)
        names = [f"{one['slice']} ({one['n_queries']:,})" for one in self.table.iter_rows(named=True)]
        name_rows(self.ax_, names)
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(f"difference in {self.metric}, with its interval")


class BoundsDisplay(_MetricDisplay):
    """The value of each run, and between what bounds it lies whatever the unjudged items are.

    Parameters
    ----------
    table
        run, value, lowest and highest.
    metric
        What is measured.

    Examples
    --------
    >>> rows = {"run": ["old"], "value": [0.4], "lowest": [0.3], "highest": [0.6]}
    >>> BoundsDisplay(pl.DataFrame(rows), metric="map").table.height
    1
    """

    def _draw(self) -> None:
        """Draw a dot and a band for each run."""
        for row, one in enumerate(self.table.iter_rows(named=True)):
            if one["highest"] - one["lowest"] > TIE:
                ends: Any = [one["lowest"], one["highest"]]
                self.ax_.plot(ends, [row, row], color=ORANGE, linewidth=5, alpha=0.35, solid_capstyle="butt")
            self.ax_.plot(one["value"], row, "o", color=BLUE, markersize=6, zorder=3)
        name_rows(self.ax_, self.table["run"].to_list())
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(f"{self.metric}: as measured (dot), and whatever the unjudged items are (band)")
