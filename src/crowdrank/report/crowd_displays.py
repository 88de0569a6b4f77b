"""Pictures of the crowd and of the fit: agreement between annotators, judgments over time, convergence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus, Trace
from ..data.judgments import Judgments, parts_of
from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats
from ..review.coded_judgments import code_judgments
from .drawing import BLUE, GREY, ORANGE, PAPER, Display, short
from .item_displays import DIVERGING, heat_map

_MOST_ANNOTATORS = 60
_PRIOR_JUDGMENTS = 4.0
"""Things in common that stand for what all pairs of annotators have, so one thing does not make a colour."""

_MOST_NAMES = 40
_MAX_TIME_BINS = 40
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
        if n <= _MOST_NAMES:
            names = [short(one, 18) for one in self.ids]
            self.ax_.set_yticks(range(n), names, parse_math=False, fontsize=8)
            self.ax_.set_xticks(range(n), names, parse_math=False, fontsize=8, rotation=90)
        else:
            self.ax_.set_xticks([])
            self.ax_.set_yticks([])
        self.ax_.tick_params(length=0)
        bar = self.figure_.colorbar(image, ax=self.ax_, shrink=0.8, pad=0.02)
        bar.set_label("share of equal answers")
        bar.outline.set_visible(False)
        rest = f" of {self.n_annotators:,}, those with most judgments" if n < self.n_annotators else ""
        self.ax_.set_xlabel("annotator")
        self.ax_.set_ylabel(f"annotator ({n}{rest})")


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
        the share of judgments that order items as the consensus does, where one is given.

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
    def from_judgments(cls, judgments: Any, consensus: Consensus | None = None) -> Self:
        """Return the display of judgments with times; with their consensus also how far they agree with it."""
        timed = [part for part in parts_of(as_judgments(judgments)) if part.time is not None]
        times = np.concatenate([part.time for part in timed]) if timed else np.zeros(0)
        if not len(times):
            raise ParameterError("the judgments have no time column, so there is nothing to draw over time")
        edges = _edges(times)
        table = pl.DataFrame(
            {"start": edges[:-1], "end": edges[1:], "n_judgments": np.histogram(times, edges)[0].astype(np.int64)}
        )
        if consensus is not None and not consensus.nominal:
            table = table.with_columns(agreement=_agreeing(timed, consensus, edges))
        return cls(table)

    @property
    def has_dates(self) -> bool:
        """Whether times are dates."""
        return bool(self.table["start"][0] > _MIN_UNIX_SECONDS)

    def _draw(self) -> None:
        """Draw on the axes."""
        scale = _SECONDS_PER_DAY if self.has_dates else 1.0
        start, end = self.table["start"].to_numpy() / scale, self.table["end"].to_numpy() / scale
        self.ax_.bar(start, self.table["n_judgments"], end - start, align="edge", color=BLUE, edgecolor=PAPER)
        self.ax_.set_ylabel("judgments")
        self.ax_.set_xlabel("time")
        if self.has_dates:
            from matplotlib import dates

            made: Any = dates
            where = made.AutoDateLocator(minticks=3)
            self.ax_.xaxis.set_major_locator(where)
            self.ax_.xaxis.set_major_formatter(made.ConciseDateFormatter(where))
        if "agreement" in self.table.columns:
            # NaN breaks the line where nothing was judged
            known = self.table["agreement"].fill_null(float("nan"))
            self.agreement_ax_ = self.ax_.twinx()
            self.agreement_ax_.plot((start + end) / 2, known, "-o", color=ORANGE, markersize=4)
            self.agreement_ax_.set_ylim(0, 1)
            self.agreement_ax_.set_ylabel("share that agrees with the consensus", color=ORANGE)
            self.agreement_ax_.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
            self.agreement_ax_.spines["right"].set_visible(True)


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
        many = len(self.values) > 60
        colour = BLUE if self.converged else ORANGE
        self.ax_.plot(range(len(self.values)), self.values, "-" if many else "-o", color=colour, markersize=4)
        self.ax_.grid()
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.ticklabel_format(axis="y", useOffset=False)
        self.ax_.set_xlabel("round" if self.converged else "round (stopped before it converged)")
        self.ax_.set_ylabel("log-likelihood")
