"""Pictures of a comparison of methods: how good each is by a measure, and how far their orders differ."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl

from ..api import Evaluation
from ..errors import ParameterError
from ..protocols import Floats
from ..validation.method_comparison import LEADING, Comparison, Measured
from ..validation.run_evaluation import TIE
from .colours import AMBER, BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SHADES, SKY
from .consensus_displays import add_scale, cluster_order, heat_map, name_cells
from .drawing import Display, RowsDisplay, name_rows, short

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
            # what the dots mean, above the axes, where none of them is
            for label, colour, face in (("best, or not clearly worse", BLUE, BLUE), ("clearly worse", ORANGE, "none")):
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
        image = heat_map(self.ax_, self.alike, low=low, high=1.0, text=text, colours=SHADES)
        name_cells(self.ax_, [short(name, 24) for name in self.methods], rotation=90)
        add_scale(self.figure_, self.ax_, image, self.what)
        self.ax_.set(xlabel="method", ylabel="method")


_LOOKS = tuple(zip((BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY), "osD^vPX", strict=True))

_NAMES = {
    "gain_error": "root mean square error of the gain",
    "log_loss": "log-loss of the true grade",
    "accuracy": "share of items with the true grade",
    "tau": "Kendall's tau with the truth",
    "ranker": "nDCG of a ranker trained on it",
}


class CampaignDisplay(Display):
    """Learning curves of labelling schemes: a measure against what was spent, with its spread over repetitions.

    Parameters
    ----------
    curves
        scheme, seed, round, cost and measures, as :func:`crowdrank.api.campaigns` returns them.
    measure
        The column to draw.
    """

    size = (6.4, 4.2)

    def __init__(self, curves: pl.DataFrame, *, measure: str) -> None:
        self.curves, self.measure = curves, measure

    @classmethod
    def from_curves(cls, curves: pl.DataFrame, *, measure: str | None = None) -> Self:
        """Return the display of one measure; by default the first one."""
        known = [name for name in curves.columns if name not in ("scheme", "seed", "round", "cost", "n_judgments")]
        chosen = known[0] if measure is None else measure
        if chosen not in known:
            raise ParameterError(f"the curves have no measure {chosen!r}; they have {', '.join(known)}")
        return cls(curves, measure=chosen)

    def _draw(self) -> None:
        """Draw on the axes."""
        of_rounds = {"spread": pl.std(self.measure), "n": pl.len()}
        for place, (name, mine) in enumerate(self.curves.group_by("scheme", maintain_order=True)):
            colour, mark = _LOOKS[place % len(_LOOKS)]
            table = mine.group_by("round").agg(pl.mean("cost", self.measure), **of_rounds)
            # a round that only some repetitions reached is another crowd's
            table = table.filter(pl.col("n") == pl.col("n").max()).sort("cost")
            cost, mean = table["cost"].to_numpy(), table[self.measure].to_numpy()
            spread = np.nan_to_num(table["spread"].to_numpy().astype(float))
            self.ax_.plot(cost, mean, color=colour, marker=mark, markersize=3.5, linewidth=1.5, label=str(name[0]))
            self.ax_.fill_between(cost, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)
        self.ax_.set(xlabel="cost (judgments)", ylabel=_NAMES.get(self.measure, self.measure))
        self.ax_.legend(title="scheme", frameon=False)
        self.ax_.grid(axis="y", alpha=0.4)


_KINDS = {
    "n_trees_": ("tree", "share of the gain of all splits"),
    "n_epochs_": ("epoch", "slope of the score where features are at their mean"),
    "": ("step", "weight of the scaled feature"),
}
"""What a ranker has learned -> what its steps are, and what its importances are."""


class ImportanceDisplay(RowsDisplay):
    """The features of a ranker by what they count for, the largest on top.

    Weights of a linear ranker are drawn with their sign, in blue above 0 and orange below; a ranker of trees has the
    share of each feature in what its splits gained.

    Parameters
    ----------
    table
        feature and weight, the largest first.
    n_features
        How many features the ranker has in all.
    what
        What the weights are.

    Examples
    --------
    >>> from crowdrank.rankers import ListNet
    >>> ranker = ListNet().fit([[1, 0.5], [0, 0.1], [0, 0.9]], [2, 0, 1], qid=[1, 1, 1])
    >>> ImportanceDisplay.from_ranker(ranker, top=1).table["feature"].to_list()
    ['1']
    """

    margin = 1.2

    def __init__(self, table: pl.DataFrame, *, n_features: int, what: str = "weight") -> None:
        self.table, self.n_features, self.what = table, n_features, what

    @classmethod
    def from_ranker(cls, ranker: Any, *, top: int = 20) -> Self:
        """Return the display of a fitted ranker, or of what :func:`crowdrank.train` returned, with its top features."""
        if top < 1:
            raise ParameterError(f"top={top} must be at least 1")
        fitted = getattr(ranker, "ranker", ranker)
        table = fitted.importance()
        return cls(table.head(top), n_features=len(table), what=_kind(fitted)[1])

    def _draw(self) -> None:
        """Draw a bar for each feature on the axes."""
        names, weights = self.table["feature"].to_list(), self.table["weight"].to_list()
        places = range(len(names))
        self.ax_.barh(places, weights, color=[BLUE if weight >= 0 else ORANGE for weight in weights])
        self.ax_.set_yticks(places, [short(name) for name in names], parse_math=False)
        self.ax_.invert_yaxis()
        of = f"{len(names)} of {self.n_features}" if len(names) < self.n_features else str(self.n_features)
        self.ax_.set(xlabel=self.what, ylabel=f"feature ({of})")
        if any(weight < 0 for weight in weights):
            self.ax_.axvline(0, color=INK, linewidth=0.8)


class LearningCurveDisplay(Display):
    """The learning curve of a ranker: what it minimises, and nDCG of validation queries, step after step.

    Parameters
    ----------
    curve
        iteration, objective, train and valid, as rankers keep it in ``curve_``; empty columns are left out.
    step
        What an iteration is.

    Attributes
    ----------
    objective_ax_
        Axes of the objective, on the right where nDCG is drawn too.

    Examples
    --------
    >>> from crowdrank.rankers import ListNet
    >>> X, y, qid = [[1, 0.5], [0, 0.1], [0, 0.9]], [2, 0, 1], [1, 1, 1]
    >>> LearningCurveDisplay.from_ranker(ListNet().fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)).measured_sets
    ['valid']
    """

    objective_ax_: Any = None

    def __init__(self, curve: pl.DataFrame, *, step: str = "step") -> None:
        self.curve, self.step = curve, step

    @classmethod
    def from_ranker(cls, ranker: Any) -> Self:
        """Return the display of a fitted ranker, or of what :func:`crowdrank.train` returned."""
        fitted = getattr(ranker, "ranker", ranker)
        display = cls(fitted.curve_, step=_kind(fitted)[0])
        if not display.measured_sets and not display.has_objective:
            raise ParameterError("nothing was measured while this ranker learned; train it with validation queries")
        return display

    @property
    def measured_sets(self) -> list[str]:
        """Which queries nDCG was measured on."""
        return [name for name in ("train", "valid") if self.curve[name].null_count() < len(self.curve)]

    @property
    def has_objective(self) -> bool:
        """Whether the objective is known."""
        return self.curve["objective"].null_count() < len(self.curve)

    def _draw(self) -> None:
        """Draw on the axes."""
        steps = self.curve["iteration"]
        names = {"train": ("training queries", "--"), "valid": ("validation queries", "-")}
        for name in self.measured_sets:
            label, style = names[name]
            self.ax_.plot(steps, self.curve[name], style, color=BLUE, label=f"nDCG, {label}")
        self.ax_.set(xlabel=self.step, ylabel="mean nDCG")
        lines = list(self.ax_.get_lines())
        if self.has_objective:
            self.objective_ax_ = self.ax_.twinx() if self.measured_sets else self.ax_
            lines += self.objective_ax_.plot(steps, self.curve["objective"], ":", color=ORANGE, label="objective")
            self.objective_ax_.set_ylabel("objective (lower is better)")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        # above the axes, where no line runs through it
        labels = [line.get_label() for line in lines]
        self.ax_.legend(lines, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def _kind(ranker: Any) -> tuple[str, str]:
    """What the steps and importances of a fitted ranker are."""
    return next(kind for attribute, kind in _KINDS.items() if not attribute or hasattr(ranker, attribute))


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
        what = f"{n:,} queries, from the largest gain to the largest loss"
        self.ax_.set(xlabel=what, ylabel=f"difference in {self.metric}")


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
