"""Pictures of annotators: their quality, their habits, what they mix up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus, Diagnostics, Quality
from ..errors import ParameterError
from ..protocols import Floats
from ..review.diagnosis import rows_with_side_bias
from ..review.facts import annotator_table, facts_of, quality_flags
from ..review.findings import NOTABLE_ODDS, Habit, annotator_habits
from ..review.sentences import BY_QUALITY, FLAGS
from .colours import AMBER, BLUE, GREY, INK, ORANGE, PURPLE, RISING
from .consensus_displays import heat_map, name_cells, percents
from .drawing import Display, RowsDisplay, name_rows, short

MARKS = {
    "good": (BLUE, "o", "better than guessing"),
    "unsure": (GREY, "o", FLAGS["unsure"].noun),
    "unmatched": (GREY, "^", FLAGS["unmatched"].noun),
    "poor": (AMBER, "D", FLAGS["poor"].noun),
    "guessing": (ORANGE, "s", FLAGS["guessing"].noun),
    "reversed": (PURPLE, "v", FLAGS["reversed"].noun),
}
"""What an annotator is -> colour, shape and words."""

_MOST_LINES = 400
_MOST_NAMES = 15
_WIDE_SPREAD = 20
_LINE, _LETTER = 0.05, 0.0125
"""Height of a name and width of its letters, as shares of the axes."""

_MOST_TICKS = 24
_MOST_ROWS = 40


class QualityDisplay(Display):
    """Quality of each annotator with its interval against the number of judgments; those worth a look are named.

    Shapes and colours tell annotators who guess, who are reversed, who are barely better than guessing and who judged
    too little; a ring is around those who lean to one side.

    Parameters
    ----------
    table
        annotator, quality and n_judgments, with lower and upper where they are known, mark and leans.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> QualityDisplay.from_consensus(aggregate(votes, "mean_grade")).table["mark"].to_list()
    ['unsure', 'unsure', 'unsure']
    """

    size = (7.2, 4.2)

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    @classmethod
    def from_consensus(cls, consensus: Consensus, judgments: Any | None = None) -> Self:
        """Return the display of a consensus whose judgments name annotators; with them, of who leans to a side."""
        return cls(mark_annotators(consensus, judgments))

    @classmethod
    def from_quality(cls, quality: Quality) -> Self:
        """Return the display of the quality alone, without what else is odd about the annotators."""
        return cls(_mark_quality(quality, None))

    @property
    def alike(self) -> bool:
        """Whether all annotators gave as many judgments, so they are drawn side by side."""
        return self.table["n_judgments"].n_unique() == 1 and len(self.table) > 1

    def _draw(self) -> None:
        """Draw on the axes."""
        table = self.table.reverse() if self.alike else self.table
        quality = table["quality"].to_numpy()
        number = np.arange(1.0, len(table) + 1) if self.alike else table["n_judgments"].to_numpy().astype(np.float64)
        self.ax_.axhline(0.5, color=INK, linewidth=1, linestyle="--")
        for mark, (colour, shape, words) in MARKS.items():
            rows = (table["mark"] == mark).to_numpy()
            if rows.any():
                label = f"{words} ({rows.sum():,})"
                self._draw_marked(table.filter(pl.Series(rows)), number[rows], colour, shape, label)
        self._label_x(number)
        leaning = table["leans"].to_numpy()
        if leaning.any():
            ring = {"markersize": 12, "markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.2}
            label = f"{FLAGS['leans'].noun} ({leaning.sum():,})"
            self.ax_.plot(number[leaning], quality[leaning], "o", label=label, **ring)
        self._name(table, number, quality)
        self.ax_.set_ylim(min(-0.02, float(quality.min()) - 0.02), 1.03)
        self.ax_.grid()
        interval = ", with 90 % interval" if "lower" in table.columns else ""
        self.ax_.set_ylabel(f"quality{interval} (dashed: guessing)")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

    def _draw_marked(self, rows: pl.DataFrame, number: Floats, colour: str, shape: str, label: str) -> None:
        """Draw those with the same mark."""
        many = len(self.table) > _MOST_LINES
        if "lower" in rows.columns:
            look = {"color": colour, "linewidth": 1, "alpha": 0.15 if many else 0.4, "rasterized": many}
            self.ax_.vlines(number, rows["lower"], rows["upper"], **look)
        # a picture in points keeps a file small where points are many
        look = {"color": colour, "markersize": 4 if many else 6, "rasterized": len(rows) > _MOST_LINES}
        self.ax_.plot(number, rows["quality"], shape, label=label, **look)

    def _label_x(self, number: Floats) -> None:
        """What stands along the axis: the number of judgments, or annotators one after the other."""
        if self.alike:
            each = f"{self.table['n_judgments'][0]:,g} judgments each"
            self.ax_.set_xlabel(f"annotator, from the worst to the best ({len(number):,}, {each})")
            if len(number) <= _MOST_TICKS:
                names = [short(one, 14) for one in self.table["annotator"].reverse()]
                turned = sum(map(len, names)) > 60
                self.ax_.set_xticks(number, names, parse_math=False, rotation=90 if turned else 0)
            return
        if number.max() > _WIDE_SPREAD * max(number.min(), 1):
            self.ax_.set_xscale("log")
            self.ax_.xaxis.set_major_formatter("{x:,.0f}")
        self.ax_.set_xlabel("judgments by the annotator")

    def _name(self, table: pl.DataFrame, number: Floats, quality: Floats) -> None:
        """Names of those worth a look, the worst first, as far as they do not cover each other."""
        rows = np.flatnonzero(table["mark"].is_in(BY_QUALITY).to_numpy() | table["leans"].to_numpy())
        rows = rows[np.argsort(quality[rows], kind="stable")][:_MOST_NAMES]
        names = table["annotator"].to_list()
        across = np.log(np.maximum(number, 1e-9)) if self.ax_.get_xscale() == "log" else number
        across = (across - across.min()) / max(float(np.ptp(across)), 1e-9)
        taken: list[tuple[float, float, float]] = []
        for row in rows.tolist():
            x, y, name = float(across[row]), float(quality[row]), short(names[row], 20)
            width = _LETTER * (len(name) + 2)
            start = x if x < 1 - width else x - width
            if any(abs(y - other) < _LINE and start < stop and begin < start + width for begin, stop, other in taken):
                continue
            taken.append((start, start + width, y))
            self.ax_.annotate(
                name, (number[row], y), xytext=(8 if start == x else -8, 0), textcoords="offset points", va="center",
                ha="left" if start == x else "right", fontsize=8.5, color=INK,
            )  # fmt: skip


def mark_annotators(consensus: Consensus, judgments: Any | None = None) -> pl.DataFrame:
    """Return the annotators, best first, with a mark for what they are and whether they lean to one side."""
    return _mark_quality(consensus.quality, _diagnostics(consensus, judgments))


def _diagnostics(consensus: Consensus, judgments: Any | None) -> Diagnostics | None:
    """What is odd about the judgments, if that is known or they are at hand."""
    return facts_of(consensus, None if judgments is None else as_judgments(judgments)).diagnostics


def _mark_quality(quality: Quality | None, odd: Diagnostics | None) -> pl.DataFrame:
    """The annotators of a quality, with their marks."""
    table = annotator_table(quality, odd)
    if table is None or not len(table):
        raise ParameterError("the judgments name no annotators, so there is no quality to draw")
    marks = pl.Series([code or "good" for code in quality_flags(table)])
    leans = table["annotator"].clear()
    if odd is not None and "position_bias" in odd.annotators().columns:
        leans = odd.annotators()["annotator"].gather(rows_with_side_bias(odd.annotators()))
    return table.with_columns(mark=marks, leans=pl.col("annotator").is_in(leans.implode()))


class PositionBiasDisplay(RowsDisplay):
    """How far each annotator would choose the left or the right one of two equal items, with its interval.

    Of more than 40 annotators the 20 who lean most to either side are drawn, and the others as one row.

    Parameters
    ----------
    table
        annotator, position_bias, position_lower and position_upper, the furthest to the left first.
    leaning
        The annotators whose bias is large and clear.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"left": list("xyx"), "right": list("yxy"), "annotator": list("abb"), "winner": list("xxx")}
    >>> found = PositionBiasDisplay.from_consensus(aggregate(votes, "borda"), votes)
    >>> sorted(found.table["annotator"])
    ['a', 'b']
    """

    width, margin = 7.2, 1.0

    def __init__(self, table: pl.DataFrame, *, leaning: Sequence[Any] = ()) -> None:
        self.table, self.leaning = table, list(leaning)

    @classmethod
    def from_consensus(cls, consensus: Consensus, judgments: Any | None = None) -> Self:
        """Return the display of a consensus of preferences by named annotators, and of these preferences."""
        odd = _diagnostics(consensus, judgments)
        table = None if odd is None else odd.annotators()
        if table is None or "position_bias" not in table.columns or table["annotator"].null_count():
            raise ParameterError("position bias is known of preferences by named annotators only")
        known = table.drop_nulls("position_bias").sort("position_bias", descending=True, maintain_order=True)
        if not len(known):
            raise ParameterError("the judgments do not say which item was shown on which side")
        return cls(known, leaning=table["annotator"].gather(rows_with_side_bias(table)).to_list())

    @property
    def n_lines(self) -> int:
        """Number of lines; of many annotators, those at both ends."""
        return min(len(self.table), _MOST_ROWS + 2)

    def _draw(self) -> None:
        """Draw on the axes."""
        n, half = len(self.table), _MOST_ROWS // 2
        few = n <= _MOST_ROWS
        rows = self.table if few else pl.concat([self.table.head(half), self.table.tail(half)])
        places = np.arange(len(rows), dtype=np.float64)
        names = rows["annotator"].to_list()
        if not few:
            places[half:] += 1
            between = self.table.slice(half, n - 2 * half)["position_bias"]
            self.ax_.hlines(half, between.min(), between.max(), color=GREY, linewidth=7)
            names.insert(half, f"… {len(between):,} annotators between")
        self.ax_.axvline(0, color=INK, linewidth=1)
        clear = rows["annotator"].is_in(self.leaning).to_numpy()
        for part, colour, shape in ((~clear, BLUE, "o"), (clear, ORANGE, "s")):
            lower, upper = (rows[name].to_numpy()[part] for name in ("position_lower", "position_upper"))
            self.ax_.hlines(places[part], lower, upper, color=colour, linewidth=2, alpha=0.45)
            n_leaning = len(self.leaning)
            label = f"{FLAGS['leans'].noun} ({n_leaning:,})" if shape == "s" else f"no clear bias ({n - n_leaning:,})"
            if part.any():
                bias = rows["position_bias"].to_numpy()[part]
                self.ax_.plot(bias, places[part], shape, color=colour, markersize=5, label=label)
        name_rows(self.ax_, names, (places if few else np.insert(places, half, half)).tolist(), longest=28)
        self.ax_.grid(axis="x")
        what = "position bias, with 90 % interval (1: always left, 0: none, -1: always right)"
        self.ax_.set(xlim=(-1.05, 1.05), xlabel=what, ylabel=f"annotator ({n:,})")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


class ConfusionDisplay(Display):
    """Which grades are given to items of each true grade: by one annotator, or by all together.

    Parameters
    ----------
    levels
        The grades, worst first.
    confusion
        Probability of each answer (column) to items of each true grade (row).
    annotator
        Whose it is; ``None`` for all annotators by the number of their judgments.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyzxyz"), "annotator": list("aaabbb"), "grade": [1, 0, 1, 1, 0, 0]}
    >>> ConfusionDisplay.from_consensus(aggregate(votes, "dawid_skene")).confusion.shape
    (2, 2)
    """

    def __init__(self, levels: Sequence[Any], confusion: Floats, *, annotator: Any = None) -> None:
        self.levels, self.confusion, self.annotator = list(levels), confusion, annotator

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, annotator: Any = None) -> Self:
        """Return the display of a consensus by a method that learns confusions, such as ``dawid_skene``."""
        quality, levels = consensus.quality, consensus.levels
        if quality is None or levels is None or "confusion" not in quality.parameters:
            raise ParameterError(f"{consensus.method} learns no confusions; aggregate with dawid_skene")
        each = np.asarray(quality.parameters["confusion"], np.float64)
        if annotator is not None:
            return cls(levels, each[quality.annotators.code(annotator, "annotator")], annotator=annotator)
        weight = quality.n_judgments / max(float(quality.n_judgments.sum()), 1e-12)
        return cls(levels, np.tensordot(weight, each, 1))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture."""
        n = min(len(self.levels), 14)
        return 2.6 + 0.4 * n, 1.5 + 0.34 * n

    def _draw(self) -> None:
        """Draw on the axes."""
        n = len(self.levels)
        heat_map(self.ax_, self.confusion, low=0.0, high=1.0, text=percents(self.confusion), colours=RISING)
        step = -(-n // 30)
        names = [short(level, 16) for level in self.levels][::step]
        turn = max(map(len, names), default=0) * len(names) > 24
        turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if turn else {}
        name_cells(self.ax_, names, range(0, n, step), **turned)
        self.ax_.set(xlabel="grade given (in % of each row)", ylabel="grade of the consensus")
        who = "all annotators" if self.annotator is None else short(self.annotator, 24)
        self.ax_.set_title(who, parse_math=False)


_MOST_LOG_ODDS = 7.0
"""Log-odds beyond which nothing is drawn: a thousand times as often."""


class HabitDisplay(RowsDisplay):
    """Coefficient of each annotator with its interval, one panel of rows per covariate.

    Of more than 40 annotators those with the largest coefficients in size are drawn.

    Parameters
    ----------
    habit
        The coefficients, as :func:`~crowdrank.review.findings.annotator_habits` has them.
    """

    width, margin = 7.2, 1.0

    def __init__(self, habit: Habit) -> None:
        furthest = habit.table.sort(pl.col("coefficient").abs(), "annotator", descending=[True, False])
        self.habit, self.number = habit, len(habit.table)
        self.table = furthest.head(_MOST_ROWS).sort("coefficient", "annotator", descending=[True, False])

    @classmethod
    def from_consensus(cls, consensus: Consensus, covariate: str) -> Self:
        """Return the display of one covariate of a consensus that is controlled for it."""
        for habit in annotator_habits(consensus):
            if habit.covariate == covariate:
                return cls(habit)
        raise ParameterError(f"annotators have no coefficients of {covariate}; use latent_score with control")

    def _draw(self) -> None:
        """Draw on the axes, in the words and by the rule of the sentences: times as often, at the usual difference."""
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        places = np.arange(len(self.table), dtype=np.float64)
        value, lower, upper = (
            np.clip(self.habit.step * self.table[name].to_numpy(), -_MOST_LOG_ODDS, _MOST_LOG_ODDS) / np.log(2.0)
            for name in ("coefficient", "lower", "upper")
        )
        notable = float(np.log2(NOTABLE_ODDS))
        more, less = (lower > 0.0) & (value > notable), (upper < 0.0) & (value < -notable)
        self.ax_.axvline(0, color=INK, linewidth=1)
        for part, colour, shape, label in (
            (~(more | less), GREY, "o", "not clear, or little"),
            (more, ORANGE, "s", "favours it"),
            (less, BLUE, "D", "favours the other"),
        ):
            self.ax_.hlines(places[part], lower[part], upper[part], color=colour, linewidth=2, alpha=0.45)
            if part.any():
                self.ax_.plot(value[part], places[part], shape, color=colour, markersize=5, label=label)
        name_rows(self.ax_, self.table["annotator"].to_list(), places.tolist(), longest=28)
        self.ax_.grid(axis="x")
        self.ax_.xaxis.set_major_locator(MaxNLocator(6))
        self.ax_.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{2.0**place:.2g}"))
        what = f"times that the one {self.habit.favoured_item} wins for each that it loses (90 % interval)"
        furthest = "" if len(self.table) == self.number else f", the {len(self.table)} furthest from 1"
        self.ax_.set(xlabel=what, ylabel=f"annotator ({self.number:,}{furthest})")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
