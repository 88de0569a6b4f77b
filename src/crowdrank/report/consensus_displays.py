"""Pictures of the consensus: scores with intervals and ranks, and which item beats which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus, Trace
from ..data.judgments import Judgments, parts_of
from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats
from ..review.coded_judgments import code_judgments
from ..wording import percent
from .colours import AMBER, BLUE, DIVERGING, GREEN, GREY, INK, ORANGE, PAPER, PURPLE, RULE, SKY
from .drawing import ROW, Display, RowsDisplay, name_rows, short

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
            # one row for many items: a line over all scores, a bar over the middle half
            low, first, middle, third, high = np.quantile(between["score"].to_numpy(), [0, 0.25, 0.5, 0.75, 1])
            self.ax_.hlines(_TOP + 0.5, low, high, color=GREY, linewidth=1)
            self.ax_.hlines(_TOP + 0.5, first, third, color=GREY, linewidth=7)
            self.ax_.plot([middle], [_TOP + 0.5], "|", color=INK, markersize=9)
            names.insert(_TOP, f"… {len(between):,} items between")
            marks = np.insert(places, _TOP, _TOP + 0.5)
        name_rows(self.ax_, names, marks.tolist())
        _write_ranks(self.ax_, rows, places, self.level)
        self.ax_.grid(axis="x")
        sure = f", with {100 * self.level:g} % interval" if "lower" in rows.columns else ""
        self.ax_.set(xlabel=f"score (larger is better){sure}", ylabel=_items_label(len(self.table), self.query))


def _write_ranks(ax: Any, rows: pl.DataFrame, places: Floats, level: float) -> None:
    """The rank of each row to the right of the axes, with the ranks it may truly hold."""
    known = "rank_lower" in rows.columns
    look = {"textcoords": "offset points", "fontsize": 8.5, "color": INK}
    for row, place in zip(rows.iter_rows(named=True), places, strict=True):
        text = f"{row['rank']:,}"
        if known and row["rank_lower"] != row["rank_upper"]:
            text += f"  ({row['rank_lower']:,}–{row['rank_upper']:,})"
        ax.annotate(text, (1, place), xytext=(6, 0), xycoords=("axes fraction", "data"), va="center", **look)
    head = f"rank ({100 * level:g} %)" if known else "rank"
    ax.annotate(head, (1, 1), xytext=(6, 3), xycoords="axes fraction", va="bottom", **look)


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
        # the whole order, or its first and last items where they are many
        chosen = order if len(order) <= _MATRIX else np.append(order[:_MATRIX_TOP], order[_MATRIX_TOP - _MATRIX :])
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
        n = len(self.ids)
        heat_map(self.ax_, self.probability, low=0.0, high=1.0, text=percents(self.probability, of_belief=True))
        name_cells(self.ax_, [short(one, 24) for one in self.ids], rotation=45, ha="left")
        self.ax_.xaxis.tick_top()
        label = _items_label(n, self.query)
        if n < self.n_items:
            label = f"{_MATRIX_TOP} best and {n - _MATRIX_TOP} last of {self.n_items:,} items"
            for line in (self.ax_.axhline, self.ax_.axvline):
                line(_MATRIX_TOP - 0.5, color=PAPER, linewidth=5)
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
        self.ax_.grid(axis="x")
        what = f"probability that the first item is better than the second (dashed: {self.level:g})"
        self.ax_.set(xlabel=what, xlim=(0.49, 1.01))


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


def query_code(consensus: Consensus, query: Any) -> int:
    """Return the code of a query, which may be left out where there is only one."""
    if query is None and consensus.items.n_queries != 1:
        raise ParameterError(f"there are {consensus.items.n_queries} queries; name the one to draw with query=")
    return 0 if query is None else consensus.items.queries.code(query, "query")


def _items_label(n: int, query: Any) -> str:
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

    def __init__(self, ids: list[Any], agreement: Floats, *, n_annotators: int, mean: float) -> None:
        self.ids, self.agreement, self.n_annotators, self.mean = ids, agreement, n_annotators, mean

    @classmethod
    def from_judgments(cls, judgments: Any) -> Self:
        """Return the display of judgments by two annotators or more."""
        judged: Judgments = max(parts_of(as_judgments(judgments)), key=len)
        number = np.bincount(judged.annotator, minlength=judged.n_annotators)
        chosen = np.sort(np.argsort(-number, kind="stable")[: min(_MOST_ANNOTATORS, int((number > 0).sum()))])
        if len(chosen) < 2:
            raise ParameterError("agreement is between two annotators or more, and the judgments name fewer")
        same, common = _shared_judgments(judged, chosen)
        off = ~np.eye(len(chosen), dtype=bool)
        total = float(common[off].sum())
        if not total:
            raise ParameterError("no two annotators judged the same, so there is no agreement to draw")
        mean = float(same[off].sum()) / total
        agreement = (same + _PRIOR_JUDGMENTS * mean) / (common + _PRIOR_JUDGMENTS)
        order = cluster_order(agreement, off)
        shown = np.where(off & (common > 0), agreement, np.nan)[np.ix_(order, order)]
        ids = judged.annotators.ids.gather(chosen[order]).to_list()
        return cls(ids, shown, n_annotators=int((number > 0).sum()), mean=mean)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the picture."""
        n = len(self.ids)
        side = 0.2 * min(n, _MOST_NAMES) if n <= _MOST_NAMES else 6.0
        return max(4.4, 2.8 + side), max(3.2, 1.6 + side)

    def _draw(self) -> None:
        """Draw on the axes."""
        known = self.agreement[np.isfinite(self.agreement)]
        reach = max(float(np.abs(known - self.mean).max(initial=0.0)), 0.05)
        image = heat_map(self.ax_, self.agreement, low=self.mean - reach, high=self.mean + reach, colours=DIVERGING)
        n = len(self.ids)
        name_cells(self.ax_, [short(one, 18) for one in self.ids] if n <= _MOST_NAMES else [], rotation=90)
        self.ax_.tick_params(labelsize=8)
        add_scale(self.figure_, self.ax_, image, "share of equal answers")
        rest = f" of {self.n_annotators:,}, those with most judgments" if n < self.n_annotators else ""
        self.ax_.set(xlabel="annotator", ylabel=f"annotator ({n}{rest})")


def _shared_judgments(judgments: Judgments, chosen: Counts) -> tuple[Floats, Floats]:
    """Number of equal answers, and of things in common, of each two of the chosen annotators."""
    from scipy.sparse import csr_array

    coded = code_judgments(judgments)
    place = np.full(judgments.n_annotators, -1)
    place[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(place[coded.annotator] >= 0)
    who, thing, code = place[coded.annotator[rows]], coded.thing[rows], coded.code[rows]
    n_things = int(coded.thing.max(initial=-1)) + 1
    same, common = (
        csr_array((np.ones(len(rows)), (cells, who)), shape=(n_things * width, len(chosen)))
        for cells, width in ((thing.astype(np.int64) * coded.n_codes + code, coded.n_codes), (thing, 1))
    )
    return (same.T @ same).toarray(), (common.T @ common).toarray()


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
        edges = _edges(times)
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
        colour = SKY if shared else BLUE
        bars = {"align": "edge", "edgecolor": PAPER, "color": colour, "alpha": 0.5}
        self.ax_.bar(start, self.table["n_judgments"], end - start, **bars)
        self.ax_.set(xlabel="time", ylabel="judgments")
        if self.has_dates:
            from matplotlib import dates

            made: Any = dates
            where = made.AutoDateLocator(minticks=3)
            self.ax_.xaxis.set_major_locator(where)
            self.ax_.xaxis.set_major_formatter(made.ConciseDateFormatter(where))
        if not shared:
            return
        beside = self.agreement_ax_ = self.ax_.twinx()
        # NaN breaks the line where nothing was judged
        lines = {name: self.table[name].fill_null(float("nan")) for name in self.table.columns[3:]}
        beside.plot((start + end) / 2, lines.pop("agreement"), "-o", color=ORANGE, markersize=4, label="all")
        for (name, own), colour in zip(lines.items(), _OWN_COLOURS, strict=False):
            label = name.removeprefix("agreement of ")
            beside.step((start + end) / 2, own, color=colour, where="mid", label=label)
        if lines:
            beside.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=5, fontsize="small", frameon=False)
        beside.set_ylim(0, 1)
        beside.set_ylabel("share that agrees with the consensus", color=ORANGE)
        beside.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
        beside.spines["right"].set_visible(True)


def _edges(times: Floats) -> Floats:
    """Bounds of stretches of equal length."""
    low, high = float(times.min()), float(times.max())
    if low == high:
        return np.array([low - 0.5, high + 0.5])
    return np.linspace(low, high, min(_MAX_TIME_BINS, max(4, len(times) // 5)) + 1)


def _agreeing(parts: list[Any], consensus: Consensus, edges: Floats) -> pl.Series:
    """Share of pairs with an answer that the consensus orders alike in each stretch; null where there are few."""
    n = len(edges) - 1
    agree, total = np.zeros(n), np.zeros(n)
    for part in parts:
        pairs = part.as_preferences(ties=False)
        if pairs.time is None or not len(pairs):
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
