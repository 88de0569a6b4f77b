"""Pictures of the consensus: scores with intervals and ranks, and which item beats which."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats
from ..wording import percent
from .drawing import BLUE, GREY, INK, PAPER, ROW, RULE, SKY, Display, RowsDisplay, name_rows, short

LEVEL = 0.95
MOST_ROWS = 40
_TOP, _BOTTOM = 24, 10
_MATRIX, _MATRIX_TOP = 20, 14

DIVERGING = ("#C9701F", "#EDB57B", "#F7F4EF", "#8FC0E2", "#2774AE")
"""From low through the middle to high."""

RISING = ("#F7F4EF", "#A9D0E8", "#4A96C9", "#15588F")
"""From nothing to all."""


class ConsensusDisplay(RowsDisplay):
    """Scores of the items of a query with intervals, the best on top, and the ranks that each may truly hold.

    Of more than 40 items the best 24 and the last 10 are drawn, and those between as one row: a line over all their
    scores, and a bar over the middle half.

    Parameters
    ----------
    table
        item, score and rank, best first; with lower, upper, rank_lower and rank_upper where they are known.
    query
        The query, where there are several.
    level
        Level of the intervals.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> ConsensusDisplay.from_consensus(aggregate(votes, "mean_grade")).table["item"].to_list()
    ['x', 'y']
    """

    width, margin = 7.2, 0.9

    def __init__(self, table: pl.DataFrame, *, query: Any = None, level: float = LEVEL) -> None:
        self.table, self.query, self.level = table, query, level

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, query: Any = None, level: float = LEVEL) -> Self:
        """Return the display of a consensus; of several queries one has to be named."""
        if consensus.nominal:
            raise ParameterError("classes without an order have no scores to draw; see ConfusionDisplay")
        code = query_code(consensus, query)
        if consensus.uncertainty is not None:
            return cls(consensus.intervals(level, query), query=query, level=level)
        start, stop = (int(bound) for bound in consensus.items.offsets[code : code + 2])
        return cls(consensus.frame()[start:stop], query=query, level=level)

    @property
    def has_own_line(self) -> Bools:
        """Which rows have a line of their own."""
        places = np.arange(len(self.table))
        return (places < _TOP) | (places >= len(places) - _BOTTOM) | (len(places) <= MOST_ROWS)

    @property
    def n_lines(self) -> int:
        """Number of lines, with room for those that are left out."""
        shown = self.has_own_line
        return int(shown.sum()) + 2 * int(not shown.all())

    def _draw(self) -> None:
        """Draw on the axes."""
        shown = self.has_own_line
        rows = self.table.filter(pl.Series(shown))
        places = np.arange(len(rows), dtype=np.float64)
        names = rows["item"].to_list()
        if not shown.all():
            places[_TOP:] += 2
        if "lower" in rows.columns:
            self.ax_.hlines(places, rows["lower"], rows["upper"], color=SKY, linewidth=3.5)
        self.ax_.plot(rows["score"], places, "o", color=BLUE, markersize=5)
        marks = places
        if not shown.all():
            between = self.table.filter(~pl.Series(shown))
            _summary_row(self.ax_, between["score"].to_numpy(), _TOP + 0.5)
            names.insert(_TOP, f"… {len(between):,} items between")
            marks = np.insert(places, _TOP, _TOP + 0.5)
        name_rows(self.ax_, names, marks.tolist())
        _write_ranks(self.ax_, rows, places, self.level)
        self.ax_.grid(axis="x")
        sure = f", with {100 * self.level:g} % interval" if "lower" in rows.columns else ""
        self.ax_.set_xlabel(f"score (larger is better){sure}")
        self.ax_.set_ylabel(_items_label(len(self.table), self.query))


def _summary_row(ax: Any, scores: Floats, place: float) -> None:
    """One row for many items: a line over all scores, a bar over the middle half."""
    low, first, middle, third, high = np.quantile(scores, [0, 0.25, 0.5, 0.75, 1])
    ax.hlines(place, low, high, color=GREY, linewidth=1)
    ax.hlines(place, first, third, color=GREY, linewidth=7)
    ax.plot([middle], [place], "|", color=INK, markersize=9)


def _write_ranks(ax: Any, rows: pl.DataFrame, places: Floats, level: float) -> None:
    """The rank of each row to the right of the axes, with the ranks it may truly hold."""
    known = "rank_lower" in rows.columns
    for row, place in zip(rows.iter_rows(named=True), places, strict=True):
        text = f"{row['rank']:,}"
        if known and row["rank_lower"] != row["rank_upper"]:
            text += f"  ({row['rank_lower']:,}–{row['rank_upper']:,})"
        ax.annotate(
            text, (1, place), xytext=(6, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
            va="center", fontsize=8.5, color=INK,
        )  # fmt: skip
    head = f"rank ({100 * level:g} %)" if known else "rank"
    ax.annotate(
        head, (1, 1), xytext=(6, 3), xycoords="axes fraction", textcoords="offset points", va="bottom", fontsize=8.5,
        color=INK,
    )  # fmt: skip


class BeatsDisplay(Display):
    """The probability that one item is better than another, as a heat map; items stand best first.

    A cell is the probability that the item of its row is better than that of its column. Of more than 20 items the best
    14 and the last 6 are shown.

    Parameters
    ----------
    ids
        The items shown, best first.
    probability
        Of the item of each row being better than that of each column, (n, n); NaN on the diagonal.
    n_items
        How many items there are in all.
    query
        The query, where there are several.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> BeatsDisplay.from_consensus(aggregate(votes, "mean_grade")).probability.shape
    (2, 2)
    """

    def __init__(self, ids: list[Any], probability: Floats, *, n_items: int, query: Any = None) -> None:
        self.ids, self.probability, self.n_items, self.query = ids, probability, n_items, query

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, query: Any = None) -> Self:
        """Return the display of a consensus with uncertainty; of several queries one has to be named."""
        if consensus.nominal:
            raise ParameterError("classes without an order have no item that beats another; see ConfusionDisplay")
        code = query_code(consensus, query)
        start, stop = int(consensus.items.offsets[code]), int(consensus.items.offsets[code + 1])
        order = np.argsort(-consensus.scores[start:stop], kind="stable") + start
        chosen = _ends(order, _MATRIX, _MATRIX_TOP)
        first, second = (each.ravel() for each in np.meshgrid(chosen, chosen, indexing="ij"))
        probability = consensus.beats_each(first, second).reshape(len(chosen), len(chosen))
        np.fill_diagonal(probability, np.nan)
        return cls(consensus.items.ids.gather(chosen).to_list(), probability, n_items=len(order), query=query)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture."""
        n = len(self.ids)
        return 3.2 + 0.34 * n, 1.6 + 0.3 * n

    def _draw(self) -> None:
        """Draw on the axes."""
        n, cut = len(self.ids), _MATRIX_TOP if len(self.ids) < self.n_items else None
        heat_map(self.ax_, self.probability, low=0.0, high=1.0, text=percents(self.probability, of_belief=True))
        names = [short(one, 24) for one in self.ids]
        self.ax_.set_xticks(range(n), names, rotation=45, ha="left", parse_math=False)
        self.ax_.set_yticks(range(n), names, parse_math=False)
        self.ax_.xaxis.tick_top()
        self.ax_.tick_params(length=0)
        if cut is not None:
            for line in (self.ax_.axhline, self.ax_.axvline):
                line(cut - 0.5, color=PAPER, linewidth=5)
        self.ax_.set_xlabel("probability in % that the item of the row\nis better than the item of the column")
        rest = f"{_MATRIX_TOP} best and {n - _MATRIX_TOP} last of {self.n_items:,} items"
        self.ax_.set_ylabel(_items_label(n, self.query) if cut is None else rest)


class QueriesDisplay(Display):
    """How sure the first item of each query is: the probability that it is better than the second.

    Up to 40 queries have a row each, the least sure on top; more are drawn as a histogram.

    Parameters
    ----------
    table
        query, item (the first one), second and probability.
    level
        From which probability on a first item is taken to be sure.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> rows = [(who, query, item, grade) for who in "ab" for query in "pq" for item, grade in (("x", 3), ("y", 1))]
    >>> votes = dict(zip(("annotator", "query", "item", "grade"), zip(*rows)))
    >>> QueriesDisplay.from_consensus(aggregate(votes, "mean_grade")).table["query"].to_list()
    ['p', 'q']
    """

    def __init__(self, table: pl.DataFrame, *, level: float = LEVEL) -> None:
        self.table, self.level = table, level

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, level: float = LEVEL) -> Self:
        """Return the display of a consensus with uncertainty."""
        items = consensus.items
        order = np.lexsort((np.arange(len(items)), -consensus.scores, items.query))
        start = items.offsets[:-1][np.diff(items.offsets) > 1]
        if not len(start):
            raise ParameterError("no query has two items, so there is no first place to be sure of")
        first, second = order[start], order[start + 1]
        table = pl.DataFrame(
            {
                "query": items.queries.ids.gather(items.query[first]),
                "item": items.ids.gather(first),
                "second": items.ids.gather(second),
                "probability": consensus.beats_each(first, second),
            }
        )
        return cls(table.sort("probability", maintain_order=True), level=level)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture."""
        return 7.2, 1.0 + ROW * len(self.table) if len(self.table) <= MOST_ROWS else 3.2

    def _draw(self) -> None:
        """Draw on the axes."""
        probability = self.table["probability"].to_numpy()
        if len(self.table) <= MOST_ROWS:
            places = np.arange(len(self.table))
            self.ax_.hlines(places, 0.5, probability, color=SKY, linewidth=2.5)
            self.ax_.plot(probability, places, "o", color=BLUE, markersize=5)
            rows = self.table.iter_rows(named=True)
            name_rows(self.ax_, [f"{short(row['query'], 26)}: {short(row['item'], 22)}" for row in rows], longest=60)
            self.ax_.set_ylabel(f"query: its first item ({len(self.table)} queries)")
        else:
            self.ax_.hist(probability, bins=np.linspace(0.5, 1, 26), color=BLUE, edgecolor=PAPER, linewidth=0.5)
            self.ax_.set_ylabel(f"queries ({len(self.table):,})")
        self.ax_.axvline(self.level, color=INK, linewidth=1, linestyle="--")
        self.ax_.set_xlim(0.49, 1.01)
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(f"probability that the first item is better than the second (dashed: {self.level:g})")


def heat_map(ax: Any, values: Floats, *, low: float, high: float, text: Any = None, colours: Any = None) -> Any:
    """Draw a matrix in colours that colour-blind readers can distinguish, NaN in grey; returns the image."""
    from matplotlib.colors import LinearSegmentedColormap

    palette = LinearSegmentedColormap.from_list("crowdrank", colours or DIVERGING).with_extremes(bad=RULE)
    image = ax.imshow(values, cmap=palette, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if text is not None and values.size <= _MATRIX**2:
        shade = palette((values - low) / max(high - low, 1e-12))
        # how bright the eye takes a colour to be
        bright = shade[..., :3] @ np.array([0.299, 0.587, 0.114])
        for row, column in np.ndindex(*values.shape):
            if np.isfinite(values[row, column]):
                colour = "#111111" if bright[row, column] > 0.55 else "#FEFEFE"
                ax.text(column, row, text[row][column], ha="center", va="center", fontsize=7.5, color=colour)
    return image


def percents(values: Floats, *, of_belief: bool = False) -> list[list[str]]:
    """Return each value in per cent, as short as it can be."""
    return [["" if np.isnan(one) else percent(one, sign=False, of_belief=of_belief) for one in row] for row in values]


def query_code(consensus: Consensus, query: Any) -> int:
    """Return the code of a query, which may be left out where there is only one."""
    if query is None and consensus.items.n_queries != 1:
        raise ParameterError(f"there are {consensus.items.n_queries} queries; name the one to draw with query=")
    return 0 if query is None else consensus.items.queries.code(query, "query")


def _ends(order: Counts, most: int, top: int) -> Counts:
    """The whole order, or its first and last items where they are many."""
    return order if len(order) <= most else np.append(order[:top], order[top - most :])


def _items_label(n: int, query: Any) -> str:
    """What the rows of items are."""
    return f"item ({n:,})" if query is None else f"item of query {short(query, 24)} ({n:,})"
