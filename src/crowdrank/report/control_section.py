"""The part of a report on covariates that are controlled for: in words, who likes what, and what it moves."""

from __future__ import annotations

from typing import Self

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..errors import ParameterError
from ..protocols import Floats
from ..review.facts import Facts
from ..review.findings import NOTABLE_ODDS, Finding, Findings, Habit, annotator_habits
from .drawing import BLUE, GREY, INK, ORANGE, RowsDisplay, name_rows
from .page import Picture, Section, headline, picture
from .page_tables import Column, Table

_MOST_ROWS = 40
_SHOWN_MOVES = 5
_LEVEL = 0.95
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
        self.ax_.set_xlabel(
            f"times that the one {self.habit.favoured_item} wins for each that it loses (90 % interval)"
        )
        furthest = "" if len(self.table) == self.number else f", the {len(self.table)} furthest from 1"
        self.ax_.set_ylabel(f"annotator ({self.number:,}{furthest})")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def control_section(consensus: Consensus, facts: Facts, findings: Findings) -> Section | None:
    """Return what control for covariates means and moves; ``None`` where nothing is controlled for."""
    if not consensus.estimates.get("control"):
        return None
    about_control = [one for one in findings if one.kind.startswith("control_") or one.kind in ("robust", "by_query")]
    habits = [one for one in findings if is_habit(one)]
    tables = [] if facts.uncontrolled_scores is None else _rank_moves(consensus, facts.uncontrolled_scores)
    sentences = (
        *(f"{headline(one.sentence)}." for one in (*about_control[1:], *habits)),
        "Control asks who wins between items that are equal in these; it does not say that longer or more formatted "
        "items win because of it, since they may be better.",
    )
    return Section(
        "control", "Control", headline(about_control[0].sentence), sentences,
        _habit_pictures(consensus, sides=findings.of("leans", "one_side") is None), tuple(tables),
    )  # fmt: skip


def is_habit(finding: Finding) -> bool:
    """Return whether a finding is about what annotators like, which this section shows."""
    return finding.kind.startswith(("likes_", "prefers_own", "leans_left"))


def _habit_pictures(consensus: Consensus, *, sides: bool) -> tuple[Picture, ...]:
    """What each annotator likes; favour of a ``side`` only where no other picture shows it."""
    pictures = []
    for habit in annotator_habits(consensus):
        if habit.covariate == "side" and not sides:
            continue
        what = {"side": "the left side", "self": "their own family"}.get(habit.covariate, habit.covariate)
        caption = f"How far each annotator favours {what} between equal items, with 90 % interval."
        pictures.append(picture(HabitDisplay(habit), caption, f"habit-{habit.covariate}"))
    return tuple(pictures)


def _rank_moves(consensus: Consensus, plain: Floats) -> list[Table]:
    """Ranks before and after control, the largest moves first."""
    items, query = consensus.items, consensus.items.query
    frame = pl.DataFrame({
        "query": items.query_ids(), "item": items.ids, "code": query, "before": -plain, "after": -consensus.scores,
    })  # fmt: skip
    ranked = frame.with_columns(
        pl.col("before", "after").round(9).rank("min").over("code").cast(pl.Int64)
    ).with_columns(moved=pl.col("before") - pl.col("after"))
    largest = ranked.filter(pl.col("moved") != 0).sort(pl.col("moved").abs(), "after", descending=[True, False])
    shown = largest.head(_SHOWN_MOVES).drop("code")
    shown = shown.drop("query") if items.n_queries == 1 else shown
    if not len(shown):
        return []
    mean = float(np.abs(ranked["moved"].to_numpy()).mean())
    caption = f"Largest moves by control ({len(largest):,} of {len(ranked):,} items move, {mean:.1f} ranks on average)"
    return [Table.of("control-moves", caption, shown, _MOVE_COLUMNS, 50_000)]


_MOVE_COLUMNS = (
    Column("query", "query"),
    Column("item", "item"),
    Column("before", "rank without control", 0),
    Column("after", "rank with control", 0),
    Column("moved", "places up", 0, hint="negative: down"),
)


def leaderboard_tables(consensus: Consensus) -> list[Table]:
    """Return the items as differences to the leader with intervals, and in tiers; none where scores are no log-odds."""
    if consensus.items.n_queries != 1 or consensus.uncertainty is None or len(consensus.items) < 2:
        return []
    try:
        ratings = consensus.rating(consensus.items.ids[int(np.argmax(consensus.scores))], level=_LEVEL)
    except ParameterError:
        return []
    frame = ratings.with_columns(pl.col("rating", "lower", "upper") - 1000.0)
    caption = (
        "Leaderboard: ratings less that of the leader (400 points are odds of 10 to 1), and tiers clearly below the "
        "first of the tier above"
    )
    return [Table.of("leaderboard", caption, frame, _LEADER_COLUMNS, 200_000)]


_LEADER_COLUMNS = (
    Column("tier", "tier", 0),
    Column("item", "item"),
    Column("rating", "difference", 0, hint="rating less that of the leader; 400 less are odds of 1 to 10"),
    Column("lower", "from", 0, hint="95 % interval of the difference"),
    Column("upper", "to", 0, hint="95 % interval of the difference"),
)
