"""Pictures of the consensus, of its annotators and of a comparison: computed from results, drawn on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from ..api import Comparison, Evaluation
from ..api.aggregation import as_judgments
from ..data.consensus import Consensus, Diagnostics, Quality, Trace
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings, parts_of
from ..errors import ParameterError, expect_package
from ..protocols import Bools, Counts, Floats
from ..review.coded_judgments import code_judgments
from ..review.diagnosis import rows_with_side_bias
from ..review.findings import NOTABLE_ODDS, Habit, annotator_table, facts_of, quality_flags
from ..review.sentences import BY_QUALITY, FLAGS
from ..simulate import Campaign
from ..validation.method_comparison import LEADING, Measured
from ..validation.run_evaluation import TIE
from ..wording import percent
from .colours import AMBER, BLUE, DIVERGING, GREEN, GREY, INK, ORANGE, PAPER, PURPLE, RISING, RULE, SHADES, SKY
from .drawing import CAPTIONS, ROW, STYLE, Display, RowsDisplay, name_rows, short

LEVEL = 0.95
MOST_ROWS = 40
_TOP, _BOTTOM = 24, 10
_MATRIX, _MATRIX_TOP = 20, 14


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

    def __init__(self, table: pl.DataFrame, *, query: str | int | None = None, level: float = LEVEL) -> None:
        self.table, self.query, self.level = table, query, level

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, query: str | int | None = None, level: float = LEVEL) -> Self:
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
        shown = pl.Series(self.has_own_line)
        rows, between = self.table.filter(shown), self.table.filter(~shown)
        places = np.arange(len(rows), dtype=np.float64)
        places[_TOP:] += 2 * min(len(between), 1)
        names, marks = rows["item"].to_list(), places.tolist()
        if "lower" in rows.columns:
            self.ax_.hlines(places, rows["lower"], rows["upper"], color=SKY, linewidth=3.5)
        self.ax_.plot(rows["score"], places, "o", color=BLUE, markersize=5)
        if len(between):
            # one row for many items: a line over all scores, a bar over the middle half
            low, first, middle, third, high = np.quantile(between["score"].to_numpy(), [0, 0.25, 0.5, 0.75, 1])
            self.ax_.hlines(_TOP + 0.5, low, high, color=GREY, linewidth=1)
            self.ax_.hlines(_TOP + 0.5, first, third, color=GREY, linewidth=7)
            self.ax_.plot([middle], [_TOP + 0.5], "|", color=INK, markersize=9)
            names.insert(_TOP, f"… {len(between):,} items between")
            marks.insert(_TOP, _TOP + 0.5)
        name_rows(self.ax_, names, marks)
        # the rank of each row to the right of the axes, with the ranks it may truly hold
        known, look = "rank_lower" in rows.columns, {"textcoords": "offset points", "fontsize": 8.5, "color": INK}
        beside = {"xytext": (6, 0), "xycoords": ("axes fraction", "data"), "va": "center", **look}
        for row, place in zip(rows.iter_rows(named=True), places, strict=True):
            open_rank = known and row["rank_lower"] != row["rank_upper"]
            may = f"  ({row['rank_lower']:,}–{row['rank_upper']:,})" if open_rank else ""
            self.ax_.annotate(f"{row['rank']:,}{may}", (1, place), **beside)
        head = f"rank ({100 * self.level:g} %)" if known else "rank"
        self.ax_.annotate(head, (1, 1), xytext=(6, 3), xycoords="axes fraction", va="bottom", **look)
        self.ax_.grid(axis="x")
        sure = f", with {100 * self.level:g} % interval" if "lower" in rows.columns else ""
        self.ax_.set(xlabel=f"score (larger is better){sure}", ylabel=_items_label(len(self.table), self.query))


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

    def __init__(self, ids: Sequence[object], probability: Floats, *, n_items: int, query: object = None) -> None:
        self.ids, self.probability, self.n_items, self.query = ids, probability, n_items, query
        self._size = 3.2 + 0.34 * len(ids), 1.6 + 0.3 * len(ids)

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, query: str | int | None = None) -> Self:
        """Return the display of a consensus with uncertainty; of several queries one has to be named."""
        if consensus.nominal:
            raise ParameterError("classes without an order have no item that beats another; see ConfusionDisplay")
        code = query_code(consensus, query)
        start, stop = int(consensus.items.offsets[code]), int(consensus.items.offsets[code + 1])
        order = np.argsort(-consensus.scores[start:stop], kind="stable") + start
        # the whole order, or its first and last items where they are many
        chosen = order if len(order) <= _MATRIX else np.append(order[:_MATRIX_TOP], order[_MATRIX_TOP - _MATRIX :])
        first, second = (each.ravel() for each in np.meshgrid(chosen, chosen, indexing="ij"))
        probability = consensus.beats_each(first, second).reshape(len(chosen), len(chosen))
        np.fill_diagonal(probability, np.nan)
        return cls(consensus.items.ids.gather(chosen).to_list(), probability, n_items=len(order), query=query)

    def _draw(self) -> None:
        """Draw on the axes."""
        n = len(self.ids)
        heat_map(self.ax_, self.probability, low=0.0, high=1.0, text=percents(self.probability, of_belief=True))
        name_cells(self.ax_, [short(one, 24) for one in self.ids], rotation=45, ha="left")
        self.ax_.xaxis.tick_top()
        label = _items_label(n, self.query)
        if n < self.n_items:
            label = f"{_MATRIX_TOP} best and {n - _MATRIX_TOP} last of {self.n_items:,} items"
            self.ax_.axhline(_MATRIX_TOP - 0.5, color=PAPER, linewidth=5)
            self.ax_.axvline(_MATRIX_TOP - 0.5, color=PAPER, linewidth=5)
        what = "probability in % that the item of the row\nis better than the item of the column"
        self.ax_.set(xlabel=what, ylabel=label)


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
        self._size = 7.2, 1.0 + ROW * len(table) if len(table) <= MOST_ROWS else 3.2

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, level: float = LEVEL) -> Self:
        """Return the display of a consensus with uncertainty."""
        items = consensus.items
        order = np.lexsort((np.arange(len(items)), -consensus.scores, items.query))
        start = items.offsets[:-1][np.diff(items.offsets) > 1]
        if not len(start):
            raise ParameterError("no query has two items, so there is no first place to be sure of")
        first, second = order[start], order[start + 1]
        ids = {"query": items.queries.ids.gather(items.query[first]), "item": items.ids.gather(first)}
        ids["second"] = items.ids.gather(second)
        table = pl.DataFrame({**ids, "probability": consensus.beats_each(first, second)})
        return cls(table.sort("probability", maintain_order=True), level=level)

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
        self.ax_.grid(axis="x")
        what = f"probability that the first item is better than the second (dashed: {self.level:g})"
        self.ax_.set(xlabel=what, xlim=(0.49, 1.01))


def heat_map(ax: Any, values: Floats, *, low: float, high: float, text: Any = None, colours: Any = DIVERGING) -> Any:
    """Draw a matrix in colours that colour-blind readers can distinguish, NaN in grey; returns the image."""
    from matplotlib.colors import LinearSegmentedColormap

    palette = LinearSegmentedColormap.from_list("crowdrank", colours).with_extremes(bad=RULE)
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


def name_cells(ax: Any, names: Sequence[str], places: Sequence[int] | None = None, **turned: Any) -> None:
    """Write the names of rows and columns of a matrix, those of the columns ``turned``."""
    where = range(len(names)) if places is None else places
    ax.set_xticks(where, names, parse_math=False, **turned)
    ax.set_yticks(where, names, parse_math=False)
    ax.tick_params(length=0)


def add_scale(figure: Any, ax: Any, image: Any, label: str) -> None:
    """Draw what the colours of a matrix mean beside it."""
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)


def percents(values: Floats, *, of_belief: bool = False) -> list[list[str]]:
    """Return each value in per cent, as short as it can be."""
    return [["" if np.isnan(one) else percent(one, sign=False, of_belief=of_belief) for one in row] for row in values]


def query_code(consensus: Consensus, query: str | int | None) -> int:
    """Return the code of a query, which may be left out where there is only one."""
    if query is None and consensus.items.n_queries != 1:
        raise ParameterError(f"there are {consensus.items.n_queries} queries; name the one to draw with query=")
    return 0 if query is None else consensus.items.queries.code(query, "query")


def _items_label(n: int, query: object) -> str:
    """What the rows of items are."""
    return f"item ({n:,})" if query is None else f"item of query {short(query, 24)} ({n:,})"


_MOST_ANNOTATORS = 60
_PRIOR_JUDGMENTS = 4.0
"""Things in common that stand for what all pairs of annotators have, so one thing does not make a colour."""

_MOST_NAMES = 40
_MAX_TIME_BINS, _MAX_OWN_BINS = 40, 6
_OWN_COLOURS = (GREEN, PURPLE, SKY, AMBER)
_SECONDS_PER_DAY = 86_400.0
_MIN_UNIX_SECONDS = 1e8


class AgreementDisplay(Display):
    """How often two annotators gave the same answer to the same thing, as a matrix; those who agree stand together.

    Shares of few things in common are drawn towards the mean of all pairs; two annotators without any are grey. Of more
    than 60 annotators those with the most judgments are shown.

    Parameters
    ----------
    ids
        The annotators, in the order of the clusters.
    agreement
        Share of equal answers of each two, (n, n); NaN where they have nothing in common.
    n_annotators
        How many annotators there are in all.
    mean
        Share of equal answers over all pairs of annotators.

    Examples
    --------
    >>> votes = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [1, 0, 1, 0, 1, 0, 1, 0, 1]}
    >>> sorted(AgreementDisplay.from_judgments(votes).ids)
    ['a', 'b', 'c']
    """

    def __init__(self, ids: Sequence[object], agreement: Floats, *, n_annotators: int, mean: float) -> None:
        self.ids, self.agreement, self.n_annotators, self.mean = ids, agreement, n_annotators, mean
        side = 0.2 * len(ids) if len(ids) <= _MOST_NAMES else 6.0
        self._size = max(4.4, 2.8 + side), max(3.2, 1.6 + side)

    @classmethod
    def from_judgments(cls, judgments: Any) -> Self:
        """Return the display of judgments by two annotators or more."""
        from scipy.sparse import csr_array

        judged: Judgments = max(parts_of(as_judgments(judgments)), key=len)
        number = np.bincount(judged.annotator, minlength=judged.n_annotators)
        n_judging = int((number > 0).sum())
        chosen = np.sort(np.argsort(-number, kind="stable")[: min(_MOST_ANNOTATORS, n_judging)])
        if len(chosen) < 2:
            raise ParameterError("agreement is between two annotators or more, and the judgments name fewer")
        # number of equal answers, and of things in common, of each two of them
        coded, place = code_judgments(judged), np.full(judged.n_annotators, -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[coded.annotator] >= 0)
        who, thing, code = place[coded.annotator[rows]], coded.thing[rows], coded.code[rows]
        n_things = int(coded.thing.max(initial=-1)) + 1
        pairs = []
        for cells, width in ((thing.astype(np.int64) * coded.n_codes + code, coded.n_codes), (thing, 1)):
            given = csr_array((np.ones(len(rows)), (cells, who)), shape=(n_things * width, len(chosen)))
            pairs.append((given.T @ given).toarray())
        same, common = pairs
        off = ~np.eye(len(chosen), dtype=bool)
        total = float(common[off].sum())
        if not total:
            raise ParameterError("no two annotators judged the same, so there is no agreement to draw")
        mean = float(same[off].sum()) / total
        agreement = (same + _PRIOR_JUDGMENTS * mean) / (common + _PRIOR_JUDGMENTS)
        order = cluster_order(agreement, off)
        shown = np.where(off & (common > 0), agreement, np.nan)[np.ix_(order, order)]
        ids = judged.annotators.ids.gather(chosen[order]).to_list()
        return cls(ids, shown, n_annotators=n_judging, mean=mean)

    def _draw(self) -> None:
        """Draw on the axes."""
        reach = max(float(np.nanmax(np.abs(self.agreement - self.mean), initial=0.0)), 0.05)
        image = heat_map(self.ax_, self.agreement, low=self.mean - reach, high=self.mean + reach)
        n = len(self.ids)
        name_cells(self.ax_, [short(one, 18) for one in self.ids] if n <= _MOST_NAMES else [], rotation=90)
        self.ax_.tick_params(labelsize=8)
        add_scale(self.figure_, self.ax_, image, "share of equal answers")
        rest = f" of {self.n_annotators:,}, those with most judgments" if n < self.n_annotators else ""
        self.ax_.set(xlabel="annotator", ylabel=f"annotator ({n}{rest})")


def cluster_order(agreement: Floats, off: Bools) -> Counts:
    """Return the order in which those who agree stand together, from the agreement of each two and which are two."""
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distance = squareform(np.where(off, np.maximum(1.0 - agreement, 0.0), 0.0), checks=False)
    tree = linkage(distance, "average")
    return np.asarray(leaves_list(optimal_leaf_ordering(tree, distance)), np.int64)


class TimeDisplay(Display):
    """Judgments over time: how many were given when, and how many of them agree with the consensus.

    Parameters
    ----------
    table
        start and end of each stretch of time (seconds since 1970, or the numbers given), n_judgments, and agreement:
        the share of judgments that order items as the consensus does, where one is given; ``agreement of ann`` is that
        of one annotator.

    Attributes
    ----------
    agreement_ax_
        Axes of the agreement, on the right.

    Examples
    --------
    >>> votes = {"item": list("xyxy"), "annotator": list("aabb"), "grade": [1, 0, 1, 0], "time": [1, 2, 3, 9]}
    >>> TimeDisplay.from_judgments(votes).table["n_judgments"].sum()
    4
    """

    agreement_ax_: Any = None
    size = (7.2, 3.0)

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    @classmethod
    def from_judgments(
        cls, judgments: Any, consensus: Consensus | None = None, annotators: Sequence[str | int] = ()
    ) -> Self:
        """Return the display of judgments with times; with their consensus also how far they agree with it.

        ``annotators`` are drawn one by one besides, in at most six stretches of time.
        """
        timed = [part for part in parts_of(as_judgments(judgments)) if part.time is not None]
        times = np.concatenate([part.time for part in timed]) if timed else np.zeros(0)
        if not len(times):
            raise ParameterError("the judgments have no time column, so there is nothing to draw over time")
        # stretches of equal length
        low, high = float(times.min()), float(times.max())
        n_edges = min(_MAX_TIME_BINS, max(4, len(times) // 5)) + 1
        edges = np.linspace(low, high, n_edges) if low < high else np.array([low - 0.5, high + 0.5])
        number = np.histogram(times, edges)[0].astype(np.int64)
        table = pl.DataFrame({"start": edges[:-1], "end": edges[1:], "n_judgments": number})
        if consensus is not None and not consensus.nominal:
            table = table.with_columns(agreement=_agreeing(timed, consensus, edges))
            # of one annotator there is little in a stretch, so that several are taken together
            wide = edges[:: -(-(len(edges) - 1) // _MAX_OWN_BINS)]
            wide = np.unique(np.append(wide, edges[-1]))
            for who in annotators:
                own = [part.select(part.annotator == part.annotators.code(who)) for part in timed]
                share = _agreeing(own, consensus, wide).gather(np.searchsorted(wide, edges[1:]) - 1)
                table = table.with_columns(share.alias(f"agreement of {who}"))
        return cls(table)

    @property
    def has_dates(self) -> bool:
        """Whether times are dates."""
        return bool(self.table["start"][0] > _MIN_UNIX_SECONDS)

    def _draw(self) -> None:
        """Draw on the axes."""
        shared, scale = "agreement" in self.table.columns, _SECONDS_PER_DAY if self.has_dates else 1.0
        start, end = self.table["start"].to_numpy() / scale, self.table["end"].to_numpy() / scale
        look = {"align": "edge", "edgecolor": PAPER, "color": SKY if shared else BLUE, "alpha": 0.5}
        self.ax_.bar(start, self.table["n_judgments"], end - start, **look)
        self.ax_.set(xlabel="time", ylabel="judgments")
        if self.has_dates:
            from matplotlib import dates

            where: Any = dates.AutoDateLocator(minticks=3)  # type: ignore[no-untyped-call]
            self.ax_.xaxis.set_major_locator(where)
            self.ax_.xaxis.set_major_formatter(dates.ConciseDateFormatter(where))  # type: ignore[no-untyped-call]
        if not shared:
            return
        beside = self.agreement_ax_ = self.ax_.twinx()
        # NaN breaks the line where nothing was judged
        lines = {name: self.table[name].fill_null(float("nan")) for name in self.table.columns[3:]}
        beside.plot((start + end) / 2, lines.pop("agreement"), "-o", color=ORANGE, markersize=4, label="all")
        for (name, own), colour in zip(lines.items(), _OWN_COLOURS, strict=False):
            beside.step((start + end) / 2, own, color=colour, where="mid", label=name.removeprefix("agreement of "))
        if lines:
            beside.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=5, fontsize="small", frameon=False)
        beside.set_ylim(0, 1)
        beside.set_ylabel("share that agrees with the consensus", color=ORANGE)
        beside.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
        beside.spines["right"].set_visible(True)


def _agreeing(parts: list[Any], consensus: Consensus, edges: Floats) -> pl.Series:
    """Share of pairs with an answer that the consensus orders alike in each stretch; null where there are few."""
    n = len(edges) - 1
    agree, total = np.zeros(n), np.zeros(n)
    for pairs in (part.as_preferences(ties=False) for part in parts):
        if pairs.time is None:
            continue
        gap = consensus.scores[pairs.left] - consensus.scores[pairs.right]
        right = 0.5 * (1.0 + np.sign(gap) * pairs.outcome)
        where = np.clip(np.searchsorted(edges, pairs.time, side="right") - 1, 0, n - 1)
        agree += np.bincount(where, right, n)
        total += np.bincount(where, minlength=n)
    share = np.divide(agree, total, out=np.full(n, np.nan), where=total >= 5)
    return pl.Series(share).fill_nan(None)


class ConvergenceDisplay(Display):
    """The log-likelihood of a fit, round after round.

    Parameters
    ----------
    values
        Log-likelihood after each round.
    converged
        Whether the fit settled.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyzxyz"), "annotator": list("aaabbb"), "grade": [1, 0, 1, 1, 0, 0]}
    >>> len(ConvergenceDisplay.from_consensus(aggregate(votes, "dawid_skene")).values) > 1
    True
    """

    size = (7.2, 2.6)

    def __init__(self, values: Floats, *, converged: bool = True) -> None:
        self.values, self.converged = values, converged

    @classmethod
    def from_consensus(cls, consensus: Consensus) -> Self:
        """Return the display of a consensus by a method that climbs a likelihood."""
        return cls.from_trace(consensus.trace, consensus.method)

    @classmethod
    def from_trace(cls, trace: Trace, method: str = "this method") -> Self:
        """Return the display of how a fit went, by a method that climbs a likelihood."""
        if trace.log_likelihood is None or len(trace.log_likelihood) < 2:
            raise ParameterError(f"{method} keeps no likelihood of its rounds, so there is no curve")
        return cls(np.array(trace.log_likelihood), converged=trace.converged)

    def _draw(self) -> None:
        """Draw on the axes."""
        line, colour = "-" if len(self.values) > 60 else "-o", BLUE if self.converged else ORANGE
        self.ax_.plot(range(len(self.values)), self.values, line, color=colour, markersize=4)
        self.ax_.grid()
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.ticklabel_format(axis="y", useOffset=False)
        rounds = "round" if self.converged else "round (stopped before it converged)"
        self.ax_.set(xlabel=rounds, ylabel="log-likelihood")


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
_MOST_NAMED = 15
_WIDE_SPREAD = 20
_LINE, _LETTER = 0.05, 0.0125
"""Height of a name and width of its letters, as shares of the axes."""

_MOST_TICKS = 24


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
        return cls(mark_annotators(consensus.quality, _diagnostics(consensus, judgments)))

    @classmethod
    def from_quality(cls, quality: Quality) -> Self:
        """Return the display of the quality alone, without what else is odd about the annotators."""
        return cls(mark_annotators(quality, None))

    @property
    def alike(self) -> bool:
        """Whether all annotators gave as many judgments, so they are drawn side by side."""
        return self.table["n_judgments"].n_unique() == 1 and len(self.table) > 1

    def _draw(self) -> None:
        """Draw on the axes."""
        table = self.table.reverse() if self.alike else self.table
        quality, many = table["quality"].to_numpy(), len(table) > _MOST_LINES
        number = np.arange(1.0, len(table) + 1) if self.alike else table["n_judgments"].to_numpy().astype(np.float64)
        self.ax_.axhline(0.5, color=INK, linewidth=1, linestyle="--")
        for mark, (colour, shape, words) in MARKS.items():
            rows = (table["mark"] == mark).to_numpy()
            if not rows.any():
                continue
            these = table.filter(pl.Series(rows))
            if "lower" in table.columns:
                look = {"color": colour, "linewidth": 1, "alpha": 0.15 if many else 0.4, "rasterized": many}
                self.ax_.vlines(number[rows], these["lower"], these["upper"], **look)
            # a picture in points keeps a file small where points are many
            look = {"color": colour, "markersize": 4 if many else 6, "rasterized": len(these) > _MOST_LINES}
            self.ax_.plot(number[rows], these["quality"], shape, label=f"{words} ({len(these):,})", **look)
        if self.alike:
            each = f"{table['n_judgments'][0]:,g} judgments each"
            self.ax_.set_xlabel(f"annotator, from the worst to the best ({len(number):,}, {each})")
            if len(number) <= _MOST_TICKS:
                names = [short(one, 14) for one in table["annotator"]]
                self.ax_.set_xticks(number, names, parse_math=False, rotation=90 if sum(map(len, names)) > 60 else 0)
        else:
            if number.max() > _WIDE_SPREAD * max(number.min(), 1):
                self.ax_.set_xscale("log")
                self.ax_.xaxis.set_major_formatter("{x:,.0f}")
            self.ax_.set_xlabel("judgments by the annotator")
        leaning = table["leans"].to_numpy()
        if leaning.any():
            ring = {"markersize": 12, "markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.2}
            label = f"{FLAGS['leans'].noun} ({leaning.sum():,})"
            self.ax_.plot(number[leaning], quality[leaning], "o", label=label, **ring)
        self._name(table, number, quality)
        self.ax_.grid()
        interval = ", with 90 % interval" if "lower" in table.columns else ""
        lowest = min(-0.02, float(quality.min()) - 0.02)
        self.ax_.set(ylim=(lowest, 1.03), ylabel=f"quality{interval} (dashed: guessing)")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

    def _name(self, table: pl.DataFrame, number: Floats, quality: Floats) -> None:
        """Names of those worth a look, the worst first, as far as they do not cover each other."""
        rows = np.flatnonzero(table["mark"].is_in(BY_QUALITY).to_numpy() | table["leans"].to_numpy())
        rows = rows[np.argsort(quality[rows], kind="stable")][:_MOST_NAMED]
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
            side = {"xytext": (8, 0), "ha": "left"} if start == x else {"xytext": (-8, 0), "ha": "right"}
            look = {"textcoords": "offset points", "va": "center", "fontsize": 8.5, "color": INK}
            self.ax_.annotate(name, (number[row], y), **side, **look)


def _diagnostics(consensus: Consensus, judgments: Any | None) -> Diagnostics | None:
    """What is odd about the judgments, if that is known or they are at hand."""
    return facts_of(consensus, None if judgments is None else as_judgments(judgments)).diagnostics


def mark_annotators(quality: Quality | None, odd: Diagnostics | None) -> pl.DataFrame:
    """Return the annotators, best first, with a mark for what they are and whether they lean to one side."""
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

    def __init__(self, table: pl.DataFrame, *, leaning: Sequence[object] = ()) -> None:
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
        return min(len(self.table), MOST_ROWS + 2)

    def _draw(self) -> None:
        """Draw on the axes."""
        n, half = len(self.table), MOST_ROWS // 2
        few = n <= MOST_ROWS
        rows = self.table if few else pl.concat([self.table.head(half), self.table.tail(half)])
        places = np.arange(len(rows), dtype=np.float64)
        names, marks = rows["annotator"].to_list(), list(range(self.n_lines - (not few)))
        if not few:
            places[half:] += 1
            between = self.table.slice(half, n - 2 * half)["position_bias"]
            self.ax_.hlines(half, between.min(), between.max(), color=GREY, linewidth=7)
            names.insert(half, f"… {len(between):,} annotators between")
        self.ax_.axvline(0, color=INK, linewidth=1)
        clear, n_leaning = rows["annotator"].is_in(self.leaning).to_numpy(), len(self.leaning)
        value, lower, upper = (rows[f"position_{name}"].to_numpy() for name in ("bias", "lower", "upper"))
        unclear = (~clear, BLUE, "o", f"no clear bias ({n - n_leaning:,})")
        leaning = (clear, ORANGE, "s", f"{FLAGS['leans'].noun} ({n_leaning:,})")
        _draw_groups(self.ax_, places, value, lower, upper, [unclear, leaning])
        name_rows(self.ax_, names, marks, longest=28)
        self.ax_.grid(axis="x")
        what = "position bias, with 90 % interval (1: always left, 0: none, -1: always right)"
        self.ax_.set(xlim=(-1.05, 1.05), xlabel=what, ylabel=f"annotator ({n:,})")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


def _draw_groups(
    ax: Any, places: Floats, value: Floats, lower: Floats, upper: Floats, groups: list[tuple[Bools, str, str, str]]
) -> None:
    """Draw a value with its interval at each place, in the colour, shape and words of its group."""
    for part, colour, shape, label in groups:
        ax.hlines(places[part], lower[part], upper[part], color=colour, linewidth=2, alpha=0.45)
        if part.any():
            ax.plot(value[part], places[part], shape, color=colour, markersize=5, label=label)


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

    def __init__(self, levels: Sequence[object], confusion: Floats, *, annotator: str | int | None = None) -> None:
        self.levels, self.confusion, self.annotator = list(levels), confusion, annotator
        self._size = 2.6 + 0.4 * min(len(levels), 14), 1.5 + 0.34 * min(len(levels), 14)

    @classmethod
    def from_consensus(cls, consensus: Consensus, *, annotator: str | int | None = None) -> Self:
        """Return the display of a consensus by a method that learns confusions, such as ``dawid_skene``."""
        quality, levels = consensus.quality, consensus.levels
        if quality is None or levels is None or "confusion" not in quality.parameters:
            raise ParameterError(f"{consensus.method} learns no confusions; aggregate with dawid_skene")
        each = np.asarray(quality.parameters["confusion"], np.float64)
        if annotator is not None:
            return cls(levels, each[quality.annotators.code(annotator, "annotator")], annotator=annotator)
        weight = quality.n_judgments / max(float(quality.n_judgments.sum()), 1e-12)
        return cls(levels, np.tensordot(weight, each, 1))

    def _draw(self) -> None:
        """Draw on the axes."""
        n = len(self.levels)
        heat_map(self.ax_, self.confusion, low=0.0, high=1.0, text=percents(self.confusion), colours=RISING)
        step = -(-n // 30)
        names = [short(level, 16) for level in self.levels[::step]]
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
        self.table = furthest.head(MOST_ROWS).sort("coefficient", "annotator", descending=[True, False])

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
        groups = [(~(more | less), GREY, "o", "not clear, or little"), (more, ORANGE, "s", "favours it")]
        _draw_groups(self.ax_, places, value, lower, upper, [*groups, (less, BLUE, "D", "favours the other")])
        name_rows(self.ax_, self.table["annotator"].to_list(), places.tolist(), longest=28)
        self.ax_.grid(axis="x")
        self.ax_.xaxis.set_major_locator(MaxNLocator(6))
        self.ax_.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{2.0**place:.2g}"))
        what = f"times that the one {self.habit.favoured_item} wins for each that it loses (90 % interval)"
        furthest = "" if len(self.table) == self.number else f", the {len(self.table)} furthest from 1"
        self.ax_.set(xlabel=what, ylabel=f"annotator ({self.number:,}{furthest})")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


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
            colour = {None: GREY, True: BLUE, False: ORANGE}[one["tied"]]
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
        self._size = 3.0 + 0.42 * len(methods), 2.0 + 0.32 * len(methods)

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison of two methods or more."""
        n, alike = len(comparison.methods), comparison.order_matrix()
        if n < 2:
            raise ParameterError("only one method: there are no orders to compare")
        order = cluster_order(np.nan_to_num(alike), ~np.eye(n, dtype=bool)) if n > 2 else np.arange(n)
        what = "share of items in the same class" if comparison.nominal else "Kendall's tau"
        return cls([comparison.methods[place] for place in order], alike[np.ix_(order, order)], what=what)

    def _draw(self) -> None:
        """Draw on the axes."""
        low = min(float(np.nanmin(self.alike)), 1.0 - _LEAST_SPAN)
        text = [[f"{value:.2f}" for value in row] for row in self.alike]
        image = heat_map(self.ax_, self.alike, low=low, high=1.0, text=text, colours=SHADES)
        name_cells(self.ax_, [short(name, 24) for name in self.methods], rotation=90)
        add_scale(self.figure_, self.ax_, image, self.what)
        self.ax_.set(xlabel="method", ylabel="method")


_LOOKS = tuple(zip((BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY), "osD^vPX", strict=True))


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
        self.ax_.set(xlabel="cost (judgments)", ylabel=CAPTIONS["measures"].get(self.measure, self.measure))
        self.ax_.legend(title="scheme", frameon=False)
        self.ax_.grid(axis="y", alpha=0.4)


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
        for name in self.measured_sets:
            label, style = {"train": ("training", "--"), "valid": ("validation", "-")}[name]
            self.ax_.plot(steps, self.curve[name], style, color=BLUE, label=f"nDCG, {label} queries")
        self.ax_.set(xlabel=self.step, ylabel="mean nDCG")
        lines = list(self.ax_.get_lines())
        if self.has_objective:
            self.objective_ax_ = self.ax_.twinx() if self.measured_sets else self.ax_
            lines += self.objective_ax_.plot(steps, self.curve["objective"], ":", color=ORANGE, label="objective")
            self.objective_ax_.set_ylabel("objective (lower is better)")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        # above the axes, where no line runs through it
        self.ax_.legend(handles=lines, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def _kind(ranker: Any) -> tuple[str, str]:
    """What the steps and importances of a fitted ranker are."""
    step, importance = next(kind for learned, kind in CAPTIONS["learned"].items() if hasattr(ranker, learned))
    return step, importance


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

    _size = (6.4, 2.8)

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
        table = evaluation.differences_of(row).sort(["difference", "query"], descending=[True, False])
        table = table.select("query", "difference", "outcome")
        larger = evaluation.measure(row["metric"]).larger_is_better
        return cls(table if larger else table.reverse(), **{name: row[name] for name in wanted})

    def _draw(self) -> None:
        """Draw a bar for each query."""
        values, outcome = self.table["difference"].to_numpy(), self.table["outcome"].to_numpy()
        n = len(values)
        chosen = np.linspace(0, n - 1, min(n, _MAX_BARS)).round().astype(int)
        values, outcome, places = values[chosen], outcome[chosen], np.linspace(1, n, len(chosen))
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
        name_rows(self.ax_, [f"{one['slice']} ({one['n_queries']:,})" for one in self.table.iter_rows(named=True)])
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
                band = {"color": ORANGE, "linewidth": 5, "alpha": 0.35, "solid_capstyle": "butt"}
                self.ax_.plot([one["lowest"], one["highest"]], [row, row], **band)
            self.ax_.plot(one["value"], row, "o", color=BLUE, markersize=6, zorder=3)
        name_rows(self.ax_, self.table["run"].to_list())
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(f"{self.metric}: as measured (dot), and whatever the unjudged items are (band)")


_CURVES = {"scheme", "seed", "round", "cost"}
_DRAWN = (
    "a consensus, its quality or trace, a comparison of methods (compare_methods), two runs (evaluate_runs), "
    "curves of campaigns, and a trained ranker"
)


def plot(result: Any, ax: Any = None, *, query: str | int | None = None) -> Display:
    """Draw the picture that fits a result, and return its display, whose ``ax_`` and ``figure_`` are what was drawn on.

    The scores of a consensus with their intervals; of several queries how sure the first item of each is, or the scores
    of the one named; of classes which are mixed up. The quality of annotators against the number of their judgments;
    methods by the first measure of a comparison; what schemes reach for what they cost; the log-likelihood of a fit;
    the features that count most for a ranker.

    Parameters
    ----------
    result
        What :func:`crowdrank.aggregate`, :func:`crowdrank.compare_methods`, :func:`crowdrank.campaigns` or
        :func:`crowdrank.train` returned; or the ``quality`` or ``trace`` of a consensus.
    ax
        Axes of matplotlib to draw on; ``None`` makes a new figure.
    query
        The query to draw, for a consensus of several.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> from matplotlib.figure import Figure
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> display = plot(aggregate(votes, "mean_grade"), Figure().subplots())
    >>> type(display).__name__, display.ax_.get_xlabel()
    ('ConsensusDisplay', 'score (larger is better), with 95 % interval')
    """
    expect_package("matplotlib")
    import matplotlib as mpl

    word = "table" if isinstance(result, pl.DataFrame) else type(result).__name__
    name = "nothing (None)" if result is None else f"{'an' if word[0] in 'AEIOUaeiou' else 'a'} {word}"
    if query is not None and not isinstance(result, Consensus):
        raise ParameterError(f"query= is for a consensus, not for {name}; leave it out")
    with mpl.rc_context({} if ax is not None else STYLE):
        return _display(result, query, name).plot(ax)


def _display(result: Any, query: Any, name: str) -> Display:
    """The display that fits a result of this name."""
    columns = set(result.columns) if isinstance(result, pl.DataFrame) else set()
    match result:
        case Consensus(nominal=True):
            return ConfusionDisplay.from_consensus(result)
        case Consensus() if query is None and result.items.n_queries > 1 and result.uncertainty is not None:
            return QueriesDisplay.from_consensus(result)
        case Consensus():
            return ConsensusDisplay.from_consensus(result, query=query)
        case Quality():
            return QualityDisplay.from_quality(result)
        case Trace():
            return ConvergenceDisplay.from_trace(result)
        case Comparison():
            return ComparisonDisplay.from_comparison(result)
        case Evaluation() if len(result.comparisons):
            return DifferencesDisplay.from_evaluation(result)
        case pl.DataFrame() if columns >= _CURVES:
            return CampaignDisplay.from_curves(result)
        case Campaign():
            return CampaignDisplay.from_curves(result.curve.with_columns(scheme=pl.lit(result.scheme), seed=pl.lit(0)))
        case _ if hasattr(getattr(result, "ranker", result), "importance"):
            return ImportanceDisplay.from_ranker(result)
        case Grades() | Preferences() | Rankings() | Mixed():
            instead = "draw what comes of them, as in plot(aggregate(judgments))"
        case _ if isinstance(result, Evaluation) or "metric" in columns:
            instead = "methods are drawn side by side with plot(compare_methods(judgments, truth=truth))"
        case _ if "method" in columns:
            instead = "draw plot(compare_methods(judgments)), which holds what is behind the table"
        case _:
            instead = f"drawn are {_DRAWN}"
    raise ParameterError(f"there is no picture of {name}; {instead}")
