"""Pictures of a trained ranker: what its features count for, and how it learned."""

from __future__ import annotations

from typing import Any, Self

import polars as pl

from ..errors import ParameterError
from .drawing import BLUE, INK, ORANGE, Display, RowsDisplay, short

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
        self.ax_.set_xlabel(self.what)
        of = f"{len(names)} of {self.n_features}" if len(names) < self.n_features else str(self.n_features)
        self.ax_.set_ylabel(f"feature ({of})")
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
        self.ax_.set_xlabel(self.step)
        self.ax_.set_ylabel("mean nDCG")
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
