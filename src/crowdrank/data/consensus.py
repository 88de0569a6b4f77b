"""What comes out: the consensus, the quality of each annotator, and how the fit went."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Counts, Floats, Ints, method_name
from ..wording import counted, in_python, option
from .diagnostics import Diagnostics
from .index import Index, Items
from .log_odds import RATING_CENTRE, RATING_UNIT, OddsScale, odds_scale
from .showing import Shown, html_table
from .ties import settle_ties
from .uncertainty import Uncertainty

COVARIANCE_ITEMS = 700
"""Queries with more items than this have standard errors but no covariance."""

_LOOK_AHEAD = 64
"""Items that are compared at once with the first of a tier."""


@dataclass(frozen=True)
class Trace(Shown):
    """How a fit went: rounds, whether the tolerance was met, the last change, the log-likelihood where there is one.

    ``errors`` names the standard errors where they are not the method's own.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> cr.aggregate(votes, "dawid_skene").trace.converged
    True
    """

    n_iter: int = 1
    converged: bool = True
    change: float = 0.0
    log_likelihood: tuple[float, ...] | None = None
    errors: str | None = None

    def __len__(self) -> int:
        return 1

    def _repr_html_(self) -> str:
        """The one row, for notebooks."""
        return html_table("Trace", self.frame(), 1)

    def frame(self) -> pl.DataFrame:
        """Return a table of one row: n_iter, converged, change and the last log_likelihood where there is one."""
        last = {} if not self.log_likelihood else {"log_likelihood": [self.log_likelihood[-1]]}
        errors = {} if self.errors is None else {"errors": [self.errors]}
        columns = {"n_iter": [self.n_iter], "converged": [self.converged], "change": [self.change]}
        return pl.DataFrame({**columns, **last, **errors})


@dataclass(frozen=True, eq=False)
class Quality(Shown):
    """Quality of each annotator: the probability of ordering a random pair of unequal items correctly.

    1 is perfect, 0.5 is guessing, below 0.5 reversed. ``parameters`` holds what else is known, one entry per annotator.
    ``n_sampled`` is the number of judgments that it was measured by, where that was a sample of them.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> cr.aggregate(votes, "mean_grade").quality.frame().columns[:3]
    ['annotator', 'quality', 'n_judgments']
    """

    annotators: Index
    quality: Floats
    n_judgments: Floats
    parameters: Mapping[str, Any] = field(default_factory=dict)
    n_sampled: int | None = None

    def __len__(self) -> int:
        return len(self.quality)

    def __repr__(self) -> str:
        return f"Quality({counted(len(self), 'annotator')})"

    def frame(self) -> pl.DataFrame:
        """Return a table of annotator, quality, n_judgments and the one-number parameters, best annotator first."""
        columns: dict[str, Any] = {
            "annotator": self.annotators.ids,
            "quality": self.quality,
            "n_judgments": self.n_judgments,
        }
        columns |= {name: value for name, value in self.parameters.items() if np.ndim(value) == 1}
        return pl.DataFrame(columns).sort("quality", "annotator", descending=[True, False])

    def with_parameters(self, /, **parameters: Any) -> Quality:
        """Return the same quality with further parameters."""
        return dataclasses.replace(self, parameters={**self.parameters, **parameters})


def computed_quality(result: Any) -> Quality | None:
    """Return the quality of a result, computed by its ``quality_source`` when it is asked for first."""
    source: Quality | Callable[[], Quality | None] | None = result.quality_source
    if source is not None and not isinstance(source, Quality):
        source = source()
        object.__setattr__(result, "quality_source", source)
    return source


@dataclass(frozen=True, eq=False, kw_only=True)
class Consensus(Shown):
    """The estimated truth for every item: a score, larger is better, and what else the method estimated.

    Parameters
    ----------
    items, scores
        Items within their queries, and the score of each.
    method, params
        Name of the method and its parameters.
    trace
        How the fit went.
    std_error
        Standard error of each score.
    covariance
        Covariance of the scores, a block for each query (``None`` for a query above 700 items).
    replicates
        Scores of bootstrap replicates, or drawn given the judgments, (n_replicates, n_items).
    probabilities
        Probability of each level for each item, (n_items, n_levels).
    levels
        The levels in the user's own values, worst first.
    grade
        Code of the level chosen for each item, -1 where there is none.
    confidence
        Probability of the chosen level, where the probabilities of the others are not known.
    nominal
        Whether the levels are classes without an order, so scores say nothing of it.
    estimates
        What the method estimated besides, such as a tie parameter of the whole crowd.
    diagnostics
        What is odd about the judgments, where a file that was read holds it; :func:`crowdrank.diagnose` computes it.
    reread
        Gives, of all judgments of some items and a mask of these items, their consensus and which of them it could
        read, with annotators and other items as they are here; no file holds it.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> consensus = cr.aggregate(votes, "mean_grade")
    >>> consensus.order(), consensus.frame()["rank"].to_list(), consensus.beats("x", "y") > 0.9
    (['x', 'y'], [1, 2], True)
    """

    items: Items
    scores: Floats
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    std_error: Floats | None = None
    covariance: tuple[Floats | None, ...] | None = None
    replicates: NDArray[np.float32] | None = None
    probabilities: Floats | None = None
    levels: tuple[Any, ...] | None = None
    grade: Ints | None = None
    confidence: Floats | None = None
    nominal: bool = False
    estimates: Mapping[str, Any] = field(default_factory=dict)
    quality_source: Quality | Callable[[], Quality | None] | None = field(default=None, repr=False)
    diagnostics: Diagnostics | None = field(default=None, repr=False)
    reread: Callable[[Any, Bools], tuple[Consensus, Bools]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("scores", "std_error", "replicates", "probabilities", "grade"):
            values = getattr(self, name)
            if values is not None:
                view = np.asarray(values).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)
        if len(self.scores) != len(self.items):
            raise JudgmentError(f"{len(self.scores)} scores do not match {len(self.items)} items; give one for each")
        for name in ("scores", "probabilities", "replicates", "confidence"):
            self._expect_finite(name)
        self._expect_shapes()

    def _expect_shapes(self) -> None:
        """Refuse parts that do not fit each other, as in a file that was changed by hand."""
        n, n_levels = len(self.items), None if self.levels is None else len(self.levels)
        shapes: dict[str, tuple[int | None, ...]] = {
            "std_error": (n,), "grade": (n,), "confidence": (n,), "replicates": (None, n),
            "probabilities": (n, n_levels),
        }  # fmt: skip
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is None:
                continue
            fits = len(shape) == np.ndim(values)
            if not fits or any(want not in (None, have) for want, have in zip(shape, np.shape(values), strict=True)):
                raise JudgmentError(
                    f"{name} of the consensus does not fit its {n} items and its levels; write it again"
                )
        if self.grade is not None and n_levels is not None and np.max(self.grade, initial=-1) >= n_levels:
            raise JudgmentError("a grade of the consensus is none of its levels; write it again")

    def _expect_finite(self, name: str) -> None:
        """Refuse a result with a figure that is NaN or infinite, however it came about."""
        values = getattr(self, name)
        if values is not None and not np.isfinite(values).all():
            raise JudgmentError(
                f"{self.method} found {name} that are not finite numbers; grades, weights or parameters are too "
                "extreme for it: bring them to a usual size, or choose another method"
            )

    @classmethod
    def of(
        cls,
        method: Any,
        judgments: Any,
        scores: Floats,
        *,
        trace: Trace | None = None,
        quality: Quality | Callable[[], Quality | None] | None = None,
        std_error: Floats | None = None,
        covariance: tuple[Floats | None, ...] | None = None,
        replicates: NDArray[np.float32] | None = None,
        probabilities: Floats | None = None,
        levels: tuple[Any, ...] | None = None,
        grade: Ints | None = None,
        estimates: Mapping[str, Any] | None = None,
        unit: float = 1.0,
    ) -> Consensus:
        """Return the consensus that a method found for judgments, scores that differ only by rounding made equal.

        ``unit`` is what 1 on the method's own scale is in these scores.
        """
        return cls(
            items=judgments.items,
            scores=settle_ties(method, judgments, np.asarray(scores, np.float64), unit),
            method=method_name(method),
            params=dataclasses.asdict(method),
            trace=trace or Trace(),
            std_error=std_error,
            covariance=covariance,
            replicates=replicates,
            probabilities=probabilities,
            levels=levels,
            grade=grade,
            nominal=bool(getattr(judgments, "nominal", False)),
            estimates=estimates or {},
            quality_source=quality,
        )

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Give (item, score), best first; of several queries (query, item, score), one query after another."""
        names = ["item", "score"] if self.items.single else ["query", "item", "score"]
        return self.frame().select(names).iter_rows()

    def __repr__(self) -> str:
        counts = f"{counted(len(self), 'item')}, {counted(self.items.n_queries, 'query')}"
        return f"Consensus({counts}, method {self.method})"

    def labels(self) -> pl.Series:
        """Return the chosen level of each item in the user's own values, null where there is none."""
        if self.grade is None or self.levels is None:
            raise ParameterError(
                f"{self.method} chooses no grade; use a class method, as with {option('want', 'grade')}"
            )
        chosen = pl.Series(self.levels).gather(np.maximum(self.grade, 0))
        return chosen.set(pl.Series(self.grade < 0), None)

    @property
    def quality(self) -> Quality | None:
        """Quality of each annotator, computed on first access; ``None`` where the judgments name no annotators."""
        return computed_quality(self)

    @property
    def learned(self) -> tuple[Index, Mapping[str, Any]] | None:
        """Annotators and what the method itself learned of them; ``None`` where it learned nothing yet.

        Unlike ``quality`` this never measures how they agree with the others.
        """
        source: Any = self.quality_source
        return (source.annotators, source.parameters) if hasattr(source, "parameters") else None

    def frame(self) -> pl.DataFrame:
        """Return a table of query, item, score, rank [, grade, confidence] [, std_error], best first in each query."""
        columns: dict[str, Any] = {} if self.items.single else {"query": self.items.query_ids()}
        columns |= {"item": self.items.ids, "score": self.scores, "rank": self.ranks()}
        if self.grade is not None and self.levels is not None:
            columns["grade"] = self.labels()
            confidence = self.confidence
            if self.probabilities is not None:
                confidence = self.probabilities[np.arange(len(self.items)), np.maximum(self.grade, 0)]
            if confidence is not None:
                columns["confidence"] = pl.Series(confidence).set(pl.Series(self.grade < 0), None)
        if self.std_error is not None:
            columns["std_error"] = self.std_error
        return pl.DataFrame(columns)[self._best_first()]

    def _best_first(self) -> Counts:
        """Item codes, query after query, best first; equal scores keep the order of their ids."""
        return np.lexsort((np.arange(len(self.items)), -self.scores, self.items.query))

    def ranks(self) -> Ints:
        """Return the rank of each item within its query: 1 is best, equal scores share the better rank."""
        order = self._best_first()
        query, score = self.items.query[order], self.scores[order]
        start = self.items.offsets[query]
        position = np.arange(len(order)) - start
        new = np.ones(len(order), bool)
        new[1:] = (query[1:] != query[:-1]) | (score[1:] != score[:-1])
        shared = position[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
        ranks = np.empty(len(order), np.int32)
        ranks[order] = shared + 1
        return ranks

    def order(self, query: str | int | None = None) -> list[str | int]:
        """Return the item ids of a query, best first; the query may be left out where there is only one."""
        if query is None and self.items.n_queries != 1:
            raise ParameterError(f"there are {self.items.n_queries} queries; name one, as in order('q1')")
        where = 0 if query is None else self.items.queries.code(query, "query")
        start, stop = self.items.offsets[where], self.items.offsets[where + 1]
        best = np.argsort(-self.scores[start:stop], kind="stable") + start
        return self.items.ids.gather(best).to_list()

    @property
    def uncertainty(self) -> str | None:
        """What intervals and comparisons are computed from: replicates, covariance, std_error, or nothing."""
        return self._uncertainty().basis

    def intervals(self, level: float = 0.95, query: str | int | None = None) -> pl.DataFrame:
        """Return intervals of scores and ranks: query, item, score, lower, upper, rank, rank_lower, rank_upper, basis.

        They come from the replicates, else from the covariance, else from the standard errors taken as independent;
        the column ``basis`` says which. With a ``query`` only its items are looked at, which is quicker. Rank intervals
        begin at 1 where an item may be first: where no other item beats it with a probability of ``(1 + level) / 2``.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level={level} must lie between 0 and 1")
        where = None if query is None else self.items.queries.code(query, "query")
        bounds = self._uncertainty().intervals(level, where)
        columns: dict[str, Any] = {} if self.items.single else {"query": self.items.query_ids()}
        columns |= {"item": self.items.ids, "score": self.scores, "lower": bounds["lower"], "upper": bounds["upper"]}
        columns |= {"rank": self.ranks(), "rank_lower": bounds["rank_lower"], "rank_upper": bounds["rank_upper"]}
        basis = pl.repeat(self.uncertainty, len(self.items), eager=True)
        table = pl.DataFrame({**columns, "basis": basis})[self._best_first()]
        if where is None:
            return table
        start, stop = self.items.offsets[where], self.items.offsets[where + 1]
        return table.slice(int(start), int(stop - start))

    def beats(self, a: str | int, b: str | int, query: str | int | None = None) -> float:
        """Return the probability that item ``a`` stands above item ``b``; see ``uncertainty`` for its basis."""
        return self._uncertainty().beats(self.items.code(a, query), self.items.code(b, query))

    def beats_each(self, first: Counts, second: Counts) -> Floats:
        """Return :meth:`beats` of many pairs at once, given as item codes; the two of a pair are of one query."""
        return self._uncertainty().beats_each(first, second)

    def rating(
        self, anchor: str | int | None = None, *, level: float = 0.95, query: str | int | None = None
    ) -> pl.DataFrame:
        """Return ratings on the scale of chess, best first: item, rating, lower, upper, tier.

        A rating is 1000 plus 400 / ln 10 times the log-odds of winning against the ``anchor``, or against the mean item
        where there is none. The interval is that of this difference, so the anchor itself has none. A tier ends where
        an item is below the first of the tier with a probability beyond that of the interval's end. Only scores that
        are log-odds have ratings, such as those of ``bradley_terry`` and ``latent_score``.

        Examples
        --------
        >>> from crowdrank import Preferences, aggregators
        >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "x"), ("cy", "q", "y", "x", "y")]
        >>> consensus = aggregators.BradleyTerry().fit(Preferences.from_rows(rows))
        >>> consensus.rating(anchor="y")["rating"].round().to_list()
        [1112.0, 1000.0]
        """
        number, part = self._one_query(query, "rating('gpt-4', query='q1')")
        unit = RATING_UNIT * self._odds_scale().per_score
        place = None if anchor is None else self.items.code(anchor, query) - part.start
        scores, known = self.scores[part], self._uncertainty()
        columns: dict[str, Any] = {"item": self.items.ids[part]}
        base = scores.mean() if place is None else scores[place]
        columns["rating"] = RATING_CENTRE + unit * (scores - base)
        order = np.argsort(-scores, kind="stable")
        if known.basis is None:
            return pl.DataFrame(columns)[order]
        lower, upper = known.contrasts(level, number, place)
        columns |= {"lower": RATING_CENTRE + unit * lower, "upper": RATING_CENTRE + unit * upper}
        return pl.DataFrame(columns)[order].with_columns(tier=pl.Series(_tiers(known, part.start + order, level)))

    def tiers(self, level: float = 0.95) -> pl.DataFrame:
        """Return a table of query, item, score, rank and tier, best first in each query.

        A tier ends where an item is below the first of the tier with a probability beyond ``(1 + level) / 2``, so items
        of one tier may be equals.

        Examples
        --------
        >>> import crowdrank as cr
        >>> votes = {"item": list("xyzxyzxyz"), "annotator": list("aaabbbccc"), "grade": [3, 3, 1, 2, 3, 0, 3, 2, 1]}
        >>> cr.aggregate(votes, "mean_grade").tiers().select("item", "tier").rows()
        [('x', 1), ('y', 1), ('z', 2)]
        """
        known = self._uncertainty()
        if known.basis is None:
            raise ParameterError(
                f"{self.method} does not say how sure its scores are, so there are no tiers; give "
                f"{option('bootstrap', 200)}"
            )
        if not 0 < level < 1:
            raise ParameterError(f"level={level} must lie between 0 and 1")
        frame, order = self.frame(), self._best_first()
        bounds = zip(self.items.offsets[:-1], self.items.offsets[1:], strict=True)
        tiers = [_tiers(known, order[start:stop], level) for start, stop in bounds]
        names = [name for name in ("query", "item", "score", "rank") if name in frame.columns]
        return frame.select(names).with_columns(tier=pl.Series(np.concatenate([np.empty(0, np.int64), *tiers])))

    def win_rate(
        self, a: str | int, b: str | int | None = None, *, level: float = 0.95, query: str | int | None = None
    ) -> dict[str, float]:
        """Return the share of wins of ``a`` against ``b``, or against all others, with its interval.

        The judge is a typical annotator without a favourite side; a tie is half a win. Keys: share, lower, upper.
        """
        number, part = self._one_query(query, "win_rate('a', 'b', query='q1')")
        first = self.items.code(a, query) - part.start
        if b is None:
            others = np.delete(np.arange(part.stop - part.start), first)
        else:
            others = np.array([self.items.code(b, query) - part.start])
        if not len(others) or others[0] == first:
            raise ParameterError("an item has no win rate against itself; name two items")
        scale, scores = self._odds_scale(), self.scores[part]
        share = float(scale.share(scores[first] - scores[others]).mean())
        drawn = self._uncertainty().draws(number)
        shares = scale.share(drawn[:, [first]] - drawn[:, others]).mean(axis=1)
        lower, upper = np.quantile(shares, [0.5 - 0.5 * level, 0.5 + 0.5 * level]).tolist()
        return {"share": share, "lower": min(lower, share), "upper": max(upper, share)}

    def _odds_scale(self) -> OddsScale:
        """How scores become log-odds."""
        return odds_scale(self.method, self.params, self.estimates)

    def _one_query(self, query: str | int | None, example: str) -> tuple[int, slice]:
        """Number and items of the query named, or of the only one."""
        if query is None and self.items.n_queries != 1:
            raise ParameterError(
                f"there are {self.items.n_queries} queries; rank items over all of them with "
                f"{option('across_queries', True)}{in_python(f', or name one, as in {example}')}"
            )
        number = 0 if query is None else self.items.queries.code(query, "query")
        return number, slice(int(self.items.offsets[number]), int(self.items.offsets[number + 1]))

    def _uncertainty(self) -> Uncertainty:
        """The scores with whatever says how sure they are."""
        return Uncertainty(self.method, self.items, self.scores, self.std_error, self.covariance, self.replicates)


def _tiers(known: Uncertainty, order: Counts, level: float) -> Counts:
    """Tier of each item of one query, given best first; a tier ends where an item is clearly below its first."""
    tiers, start, tier = np.ones(len(order), np.int64), 0, 1
    while start < len(order):
        end, ahead = start + 1, _LOOK_AHEAD
        while end < len(order):
            others = order[end : end + ahead]
            below = known.beats_each(np.full(len(others), order[start]), others) > 0.5 + 0.5 * level
            end += int(below.argmax()) if below.any() else len(others)
            if below.any():
                break
            ahead *= 2
        tiers[start:end] = tier
        start, tier = end, tier + 1
    return tiers
