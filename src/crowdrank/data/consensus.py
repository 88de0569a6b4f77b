"""What comes out: the consensus, the quality of each annotator, and how the fit went."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Counts, Floats, Ints, given_arguments, method_name
from ..wording import counted, in_python, option
from .index import Index, Items, lock_arrays, run_starts, set_fields
from .showing import ROWS, Shown, html_table

# threshold (sample): items of a query with a covariance
COVARIANCE_ITEMS = 700
"""Queries with more items than this have standard errors but no covariance."""

_LOOK_AHEAD = 64
"""Items that are compared at once with the first of a tier."""

N_DRAWS = 1000
# threshold (sample): cells of scores drawn for intervals
_DRAW_CELLS = 20_000_000
# threshold (equal): pairs whose order is computed at once
_PAIRS_AT_ONCE = 10_000
_ROUNDING = 1e-6
# threshold (sample): items that may beat one for the first place, from standard errors
_RIVALS = 1000
# threshold (sample): rivals for the first place, from resamples
_RIVALS_OF_REPLICATES = 100


@dataclass(frozen=True)
class Trace(Shown):
    """How a fit went: rounds, whether the tolerance was met, the last change, the log-likelihood where there is one.

    ``errors`` names the standard errors where they are not the method's own, ``parts`` are the traces of the methods
    that an ensemble is made of.

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
    parts: Mapping[str, Trace] = field(default_factory=dict)

    def __len__(self) -> int:
        return 1

    def _repr_html_(self) -> str:
        """The one row, for notebooks."""
        return html_table("Trace", self.frame(), 1)

    def frame(self) -> pl.DataFrame:
        """Return a table of one row: n_iter, converged, change and the last log_likelihood where there is one."""
        last = self.log_likelihood[-1] if self.log_likelihood else None
        columns = {"n_iter": self.n_iter, "converged": self.converged, "change": self.change}
        return pl.DataFrame([columns | given_arguments(log_likelihood=last, errors=self.errors)])


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
        own = {"annotator": self.annotators.ids, "quality": self.quality, "n_judgments": self.n_judgments}
        further = {name: value for name, value in self.parameters.items() if np.ndim(value) == 1}
        return pl.DataFrame({**own, **further}).sort("quality", "annotator", descending=[True, False])

    def with_parameters(self, /, **parameters: Any) -> Quality:
        """Return the same quality with further parameters."""
        return dataclasses.replace(self, parameters={**self.parameters, **parameters})


@dataclass(frozen=True, eq=False)
class QualitySource:
    """Quality that is measured when it is first asked for; copies of a result share what was measured."""

    measure: Callable[[], Quality | None]

    @cached_property
    def quality(self) -> Quality | None:
        """What was measured."""
        return self.measure()


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
    quality_source: Quality | QualitySource | Callable[[], Quality | None] | None = field(default=None, repr=False)
    diagnostics: Diagnostics | None = field(default=None, repr=False)
    reread: Callable[[Any, Bools], tuple[Consensus, Bools]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        lock_arrays(self, ("scores", "std_error", "replicates", "probabilities", "grade"))
        if callable(self.quality_source):
            set_fields(self, quality_source=QualitySource(self.quality_source))
        n, n_levels = len(self.items), None if self.levels is None else len(self.levels)
        if len(self.scores) != n:
            raise JudgmentError(f"{len(self.scores)} scores do not match {n} items; give one for each")
        for name in ("scores", "probabilities", "replicates", "confidence"):
            values = getattr(self, name)
            if values is not None and not np.isfinite(values).all():
                why = "grades, weights or parameters are too extreme for it"
                remedy = "bring them to a usual size, or choose another method"
                raise JudgmentError(f"{self.method} found {name} that are not finite numbers; {why}: {remedy}")
        # parts may not fit each other in a file that was changed by hand
        shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys(("std_error", "grade", "confidence"), (n,))
        for name, shape in (shapes | {"replicates": (None, n), "probabilities": (n, n_levels)}).items():
            have = np.shape(getattr(self, name))
            fits = len(shape) == len(have) and all(want in (None, size) for want, size in zip(shape, have, strict=True))
            if getattr(self, name) is not None and not fits:
                what = f"{name} of the consensus does not fit its {n} items and its levels"
                raise JudgmentError(f"{what}; write it again")
        if self.grade is not None and n_levels is not None and np.max(self.grade, initial=-1) >= n_levels:
            raise JudgmentError("a grade of the consensus is none of its levels; write it again")

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
        items, queries = counted(len(self), "item"), counted(self.items.n_queries, "query")
        return f"Consensus({items}, {queries}, method {self.method})"

    def labels(self) -> pl.Series:
        """Return the chosen level of each item in the user's own values, null where there is none."""
        if self.grade is None or self.levels is None:
            what = f"{self.method} chooses no grade"
            raise ParameterError(f"{what}; use a class method, as with {option('want', 'grade')}")
        return pl.Series(self.levels).gather(np.maximum(self.grade, 0)).set(pl.Series(self.grade < 0), None)

    @property
    def quality(self) -> Quality | None:
        """Quality of each annotator, computed on first access; ``None`` where the judgments name no annotators."""
        source: Any = self.quality_source
        return source.quality if isinstance(source, QualitySource) else source

    @property
    def learned(self) -> tuple[Index, Mapping[str, Any]] | None:
        """Annotators and what the method itself learned of them; ``None`` where it learned nothing yet.

        Unlike ``quality`` this never measures how they agree with the others.
        """
        source: Any = self.quality_source
        if isinstance(source, QualitySource):
            source = source.quality if "quality" in vars(source) else source.measure
        return (source.annotators, source.parameters) if hasattr(source, "parameters") else None

    def frame(self) -> pl.DataFrame:
        """Return a table of query, item, score, rank [, grade, confidence] [, std_error], best first in each query."""
        columns: dict[str, Any] = {**self.items.id_columns(), "score": self.scores, "rank": self.ranks()}
        if self.grade is not None and self.levels is not None:
            columns["grade"] = self.labels()
            confidence = self.confidence
            if self.probabilities is not None:
                confidence = self.probabilities[np.arange(len(self.items)), np.maximum(self.grade, 0)]
            if confidence is not None:
                columns["confidence"] = pl.Series(confidence).set(pl.Series(self.grade < 0), None)
        if self.std_error is not None:
            columns["std_error"] = self.std_error
        order = self._best_first()
        # column by column: to wait for polars' threads takes longer than a few items
        table = {name: c.gather(order) if isinstance(c, pl.Series) else c[order] for name, c in columns.items()}
        return pl.DataFrame(table)

    def _best_first(self) -> Counts:
        """Return item codes, query after query, best first; equal scores keep the order of their ids."""
        return np.lexsort((-self.scores, self.items.query))

    def ranks(self) -> Ints:
        """Return the rank of each item within its query: 1 is best, equal scores share the better rank."""
        order = self._best_first()
        query = self.items.query[order]
        first = run_starts([query, self.scores[order]])
        shared = np.repeat(first, np.diff(first, append=len(order)))
        ranks = np.empty(len(order), np.int32)
        ranks[order] = shared - self.items.offsets[query] + 1
        return ranks

    def order(self, query: str | int | None = None) -> list[str | int]:
        """Return the item ids of a query, best first; the query may be left out where there is only one."""
        if query is None and self.items.n_queries != 1:
            raise ParameterError(f"there are {self.items.n_queries} queries; name one, as in order('q1')")
        span = self.items.span(self.items.query_number(query))
        return self.items.ids[span].gather(np.argsort(-self.scores[span], kind="stable")).to_list()

    @property
    def uncertainty(self) -> str | None:
        """What intervals and comparisons are computed from: replicates, covariance, std_error, or nothing."""
        if self.replicates is not None:
            return "replicates"
        if self.covariance is not None and all(block is not None for block in self.covariance):
            return "covariance"
        if self.covariance is not None and self.std_error is not None:
            return "covariance, std_error in large queries"
        return "std_error" if self.std_error is not None else None

    def intervals(self, level: float = 0.95, query: str | int | None = None) -> pl.DataFrame:
        """Return intervals of scores and ranks: query, item, score, lower, upper, rank, rank_lower, rank_upper, basis.

        They come from the replicates, else from the covariance, else from the standard errors taken as independent;
        the column ``basis`` says which. With a ``query`` only its items are looked at, which is quicker. Rank intervals
        begin at 1 where an item may be first: where no other item beats it with a probability of ``(1 + level) / 2``.
        """
        from ..kernels import ROUNDING
        from ..kernels.segments import SINGLE

        _expect_level(level)
        where = None if query is None else self.items.queries.code(query, "query")
        self._expect_spread()
        tail = (1 - level) / 2
        score_bounds = np.zeros((2, len(self.scores)))
        rank_bounds = np.zeros((2, len(self.scores)), np.int32)
        for number in range(self.items.n_queries) if where is None else (where,):
            part = self.items.span(number)
            if part.start == part.stop:
                continue
            draws, scores = self._draws(number), self.scores[part]
            if self.replicates is not None:
                lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
                # where scores are shrunk towards the middle, most replicates may lie to one side of the estimate
                score_bounds[:, part] = np.minimum(lower, scores), np.maximum(upper, scores)
            else:
                half = _normal_quantile(1 - tail) * self._query_std_errors(number)
                score_bounds[:, part] = scores - half, scores + half
            # bounds of ranks: of the better ranks of ties below, of the worse ones above
            equal = (ROUNDING if self.replicates is None else SINGLE) * float(np.abs(draws).max())
            (better, worse), (own_better, own_worse) = _ranks_of_draws(draws, equal), _ranks_of_draws(scores[None, :])
            lower = np.minimum(np.quantile(better, tail, axis=0, method="nearest"), own_better[0])
            upper = np.maximum(np.quantile(worse, 1 - tail, axis=0, method="nearest"), own_worse[0])
            # one of many near-equal items is hardly ever first in a draw, though nothing speaks against it
            rank_bounds[:, part] = np.where(self._may_be_first(level, number), 1, np.maximum(lower, 2)), upper
        of_scores = {"score": self.scores, "lower": score_bounds[0], "upper": score_bounds[1]}
        of_ranks = {"rank": self.ranks(), "rank_lower": rank_bounds[0], "rank_upper": rank_bounds[1]}
        basis = pl.repeat(self.uncertainty, len(self.items), eager=True)
        table = pl.DataFrame({**self.items.id_columns(), **of_scores, **of_ranks, "basis": basis})[self._best_first()]
        return table if where is None else table[self.items.span(where)]

    def beats(self, a: str | int, b: str | int, query: str | int | None = None) -> float:
        """Return the probability that item ``a`` stands above item ``b``; see ``uncertainty`` for its basis."""
        first, second = self.items.code(a, query), self.items.code(b, query)
        if first == second:
            raise ParameterError("an item cannot be compared with itself; name two items")
        return float(self.beats_each(np.array([first]), np.array([second]))[0])

    def beats_each(self, first: Counts, second: Counts) -> Floats:
        """Return :meth:`beats` of many pairs at once, given as item codes; the two of a pair are of one query."""
        from scipy.special import ndtr

        from ..kernels.segments import SINGLE

        self._expect_spread()
        if self.replicates is not None:
            probabilities = np.empty(len(first))
            for start in range(0, len(first), _PAIRS_AT_ONCE):
                part = slice(start, start + _PAIRS_AT_ONCE)
                one, other = self.replicates[:, first[part]], self.replicates[:, second[part]]
                equal = SINGLE * np.maximum(np.abs(one).max(axis=0), np.abs(other).max(axis=0))
                difference = one - other
                probabilities[part] = 0.5 * np.mean(1.0 + (difference > equal) - (difference < -equal), axis=0)
            return probabilities
        variance = np.zeros(len(first))
        if self.std_error is not None:
            variance = self.std_error[first] ** 2 + self.std_error[second] ** 2
        query = self.items.query[first]
        order = np.argsort(query, kind="stable")
        bounds = np.searchsorted(query[order], np.arange(self.items.n_queries + 1))
        for number in np.unique(query).tolist():
            if (block := self._block(number)) is not None:
                pairs = order[bounds[number] : bounds[number + 1]]
                i, j = first[pairs] - self.items.offsets[number], second[pairs] - self.items.offsets[number]
                variance[pairs] = block[i, i] + block[j, j] - 2 * block[i, j]
        gap, root = self.scores[first] - self.scores[second], np.sqrt(np.maximum(variance, 0.0))
        spread = root > 0
        return np.where(spread, ndtr(gap / np.where(spread, root, 1.0)), 0.5 * (1 + np.sign(gap)))

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
        unit = RATING_UNIT * odds_scale(self.method, self.params, self.estimates).per_score
        place = None if anchor is None else self.items.code(anchor, query) - part.start
        scores = self.scores[part]
        # scores less that of the anchor, or less their mean
        gap = scores - (scores.mean() if place is None else scores[place])
        order = np.argsort(-scores, kind="stable")
        columns: dict[str, Any] = {"item": self.items.ids[part], "rating": RATING_CENTRE + unit * gap}
        if self.uncertainty is None:
            return pl.DataFrame(columns)[order]
        _expect_level(level)
        if self.replicates is not None:
            drawn = self._draws(number)
            drawn = drawn - (drawn.mean(axis=1) if place is None else drawn[:, place])[:, None]
            lower, upper = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
            lower, upper = np.minimum(lower, gap), np.maximum(upper, gap)
        else:
            if place is not None:
                variance = self._pair_variances(number, np.array([place]))[0]
                variance[place] = 0.0
            else:
                block, squares = self._block(number), self._query_std_errors(number) ** 2
                means = squares / len(squares) if block is None else block.mean(axis=1)
                variance = np.maximum(squares - 2 * means + means.mean(), 0.0)
            half = _normal_quantile(0.5 + 0.5 * level) * np.sqrt(variance)
            lower, upper = gap - half, gap + half
        columns |= {"lower": RATING_CENTRE + unit * lower, "upper": RATING_CENTRE + unit * upper}
        return pl.DataFrame(columns)[order].with_columns(tier=pl.Series(self._tiers(part.start + order, level)))

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
        if self.uncertainty is None:
            what = f"{self.method} does not say how sure its scores are, so there are no tiers"
            raise ParameterError(f"{what}; give {option('bootstrap', 200)}")
        _expect_level(level)
        frame, order = self.frame(), self._best_first()
        tiers = [self._tiers(order[self.items.span(query)], level) for query in range(self.items.n_queries)]
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
        others = np.delete(np.arange(part.stop - part.start), first)
        if b is not None:
            others = np.array([self.items.code(b, query) - part.start])
        if not len(others) or others[0] == first:
            raise ParameterError("an item has no win rate against itself; name two items")
        scale, scores = odds_scale(self.method, self.params, self.estimates), self.scores[part]
        share = float(scale.share(scores[first] - scores[others]).mean())
        drawn = self._draws(number)
        shares = scale.share(drawn[:, [first]] - drawn[:, others]).mean(axis=1)
        lower, upper = np.quantile(shares, [0.5 - 0.5 * level, 0.5 + 0.5 * level]).tolist()
        return {"share": share, "lower": min(lower, share), "upper": max(upper, share)}

    def _tiers(self, order: Counts, level: float) -> Counts:
        """Tier of each item of one query, given best first; a tier ends where an item is clearly below its first."""
        begins, start = np.zeros(len(order), np.int64), 0
        while start < len(order):
            begins[start] = 1
            end, ahead = start + 1, _LOOK_AHEAD
            while end < len(order):
                others = order[end : end + ahead]
                below = self.beats_each(np.full(len(others), order[start]), others) > 0.5 + 0.5 * level
                if below.any():
                    end += int(below.argmax())
                    break
                end, ahead = end + len(others), 2 * ahead
            start = end
        return np.cumsum(begins)

    def _one_query(self, query: str | int | None, example: str) -> tuple[int, slice]:
        """Number and items of the query named, or of the only one."""
        if query is None and self.items.n_queries != 1:
            remedy = f"{option('across_queries', True)}{in_python(f', or name one, as in {example}')}"
            raise ParameterError(f"there are {self.items.n_queries} queries; rank items over all of them with {remedy}")
        number = self.items.query_number(query)
        return number, self.items.span(number)

    def _may_be_first(self, level: float, query: int) -> Bools:
        """Return which items of a query may be the best: those that no other item surely beats.

        Surely is with a probability of ``(1 + level) / 2``, so a two-sided interval of this level is meant. Of
        large queries, the other items are those that are best for sure: whose lower bounds are highest.
        """
        part = self.items.span(query)
        sure, scores = 0.5 + 0.5 * level, self.scores[part]
        if self.replicates is None:
            reach = _normal_quantile(sure)
            rivals = np.argsort(reach * self._query_std_errors(query) - scores, kind="stable")[:_RIVALS]
            gap, variance = scores[rivals, None] - scores, self._pair_variances(query, rivals)
            beaten = ((gap > 0) & (gap >= reach * np.sqrt(variance))).any(axis=0)
        else:
            drawn = self.replicates[:, part]
            rivals = np.argsort(-np.quantile(drawn, 1 - sure, axis=0), kind="stable")[:_RIVALS_OF_REPLICATES]
            beaten = np.zeros(len(scores), bool)
            for rival in rivals:
                ahead = drawn[:, [rival]] - drawn
                beaten |= np.mean((ahead > 0) + 0.5 * (ahead == 0), axis=0) >= sure
        # nothing speaks against the items of the highest score
        return ~beaten | (scores == scores.max(initial=-np.inf))

    def _pair_variances(self, query: int, rivals: Counts) -> Floats:
        """Variance of the difference between some items of a query and each of them, (n_rivals, items of the query)."""
        block = self._block(query)
        squares = self._query_std_errors(query) ** 2 if block is None else np.diag(block)
        together = 0.0 if block is None else 2.0 * block[rivals]
        return np.maximum(squares[rivals, None] + squares - together, 0.0)

    def _draws(self, query: int) -> Floats:
        """Return plausible scores of the items of a query, (n_draws, items of the query)."""
        part = self.items.span(query)
        rng = np.random.default_rng([0, query])
        if self.replicates is not None:
            drawn = self.replicates[:, part].astype(np.float64)
            if self.std_error is not None and len(drawn) > 1:
                # they scatter as the standard errors say, which may be more [SilvermanYoung87]_
                lacking = self._query_std_errors(query) ** 2 - drawn.var(axis=0, ddof=1)
                few = lacking > _ROUNDING * self._query_std_errors(query) ** 2
                if few.any():
                    drawn[:, few] += np.sqrt(lacking[few]) * rng.standard_normal((len(drawn), int(few.sum())))
            return drawn
        n, block = part.stop - part.start, self._block(query)
        noise = rng.standard_normal((max(100, min(N_DRAWS, _DRAW_CELLS // max(n, 1))), n))
        if block is None:
            return self.scores[part] + noise * self._query_std_errors(query)
        values, vectors = np.linalg.eigh(block)
        correlated: Floats = noise @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return self.scores[part] + correlated

    def _block(self, query: int) -> Floats | None:
        """Covariance of a query's scores, if there is one."""
        return None if self.covariance is None else self.covariance[query]

    def _query_std_errors(self, query: int) -> Floats:
        """Standard error of each item of a query."""
        if self.std_error is not None:
            return self.std_error[self.items.span(query)]
        block = self._block(query)
        assert block is not None
        return np.sqrt(np.maximum(np.diag(block), 0.0))

    def _expect_spread(self) -> None:
        """Say what to do when nothing is known of the spread."""
        if self.uncertainty is None:
            what = f"{self.method} gives no uncertainty of its own"
            raise ParameterError(f"{what}; aggregate with {option('bootstrap', 200)}")


def _expect_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level} must lie between 0 and 1")


def _ranks_of_draws(draws: Floats, equal: float = 0.0) -> tuple[Ints, Ints]:
    """Better and worse rank of each item in each draw, which are one where no other item has the same score.

    Neighbours that differ by no more than ``equal`` have the same.
    """
    order = np.argsort(-draws, axis=1, kind="stable")
    ranked = np.take_along_axis(draws, order, axis=1)
    better = worse = np.broadcast_to(np.arange(1, draws.shape[1] + 1, dtype=np.int32), draws.shape)
    apart = ranked[:, :-1] - ranked[:, 1:] > equal
    if not apart.all():
        new, last = np.ones((2, *draws.shape), bool)
        new[:, 1:], last[:, :-1] = apart, apart
        place = better
        better = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        worse = np.minimum.accumulate(np.where(last, place, draws.shape[1])[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty((2, *draws.shape), np.int32)
    for number, sorted_ranks in enumerate((better, worse)):
        np.put_along_axis(ranks[number], order, sorted_ranks, axis=1)
    return ranks[0], ranks[1]


def _normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist  # slow to load

    return NormalDist().inv_cdf(probability)


RATING_UNIT = 400.0 / float(np.log(10.0))
"""Points of rating for one unit of log-odds: a lead of 400 wins ten times as often as it loses."""

RATING_CENTRE = 1000.0

_METHODS = ("bradley_terry", "crowd_bt", "plackett_luce", "latent_score", "elo", "em_elo")
"""Methods whose differences of scores are log-odds, or a multiple of them."""


@dataclass(frozen=True)
class OddsScale:
    """From differences of scores to log-odds, and from these to shares of wins in which a tie is half a win.

    ``per_score`` is the log-odds of one unit of score. ``davidson`` is the tie parameter of Davidson's model, ``tie``
    the half width of the ties of an ordinal model; at most one of them is not 0.
    """

    per_score: float
    davidson: float = 0.0
    tie: float = 0.0

    def share(self, difference: Floats) -> Floats:
        """Return the share of wins at these differences of scores."""
        half = 0.5 * self.per_score * np.asarray(difference, np.float64)
        if self.davidson:
            # divided through by exp(half), so that nothing overflows
            up, down = np.exp(np.minimum(2 * half, 0)), np.exp(np.minimum(-2 * half, 0))
            even = self.davidson * np.exp(-np.abs(half))
            return (up + 0.5 * even) / (up + down + even)
        return 0.5 + 0.25 * (np.tanh(half + 0.5 * self.tie) + np.tanh(half - 0.5 * self.tie))


def odds_scale(method: str, params: Mapping[str, Any], estimates: Mapping[str, Any]) -> OddsScale:
    """Return how the scores of a method become log-odds; refuse methods whose scores are something else."""
    if method not in _METHODS:
        what = f"scores of {method} are not log-odds of winning, so they have no rating or win rate"
        raise ParameterError(f"{what}; take one of {', '.join(_METHODS)}")
    own = estimates.get("cuts") if method in ("latent_score", "bradley_terry") else None
    cuts = estimates.get("cuts_preference", own)
    middle = 0 if cuts is None else len(cuts) // 2
    # an even number of cuts has a level in the middle: the ties
    tie = 0.5 * (cuts[middle] - cuts[middle - 1]) if cuts is not None and middle and len(cuts) == 2 * middle else 0.0
    davidson = estimates.get("tie", 0.0) if method in ("bradley_terry", "crowd_bt") else 0.0
    per_score = 1.0
    if method in ("elo", "em_elo"):
        per_score = np.log(params["base"]) / params["scale"]
    elif method == "latent_score":
        per_score = estimates.get("scale_preference", estimates.get("scale_ranking", 1.0)) / estimates.get("unit", 1.0)
    return OddsScale(float(per_score), float(davidson), float(tie))


def settle_ties(method: Any, judgments: Any, scores: Floats, unit: float = 1.0) -> Floats:
    """Return the scores of judged items, equal where they differ by less than the method can tell.

    Everything that compares scores of a consensus compares these, so equal ones share a rank on every machine,
    under every name and in every order of the rows.
    """
    from ..kernels.segments import join_ties

    return join_ties(scores, judgments.items.offsets, score_tolerance(method, judgments, scores, unit))


def score_tolerance(method: Any, judgments: Any, scores: Floats, unit: float = 1.0) -> Floats:
    """Return the largest difference of scores that means nothing, (n_queries,).

    It is what rounding does to numbers as large as those that were added, and the ``precision`` that a method states of
    its scores relative to their range. Where a method has its scores ``in_grades`` they are as large as the grades;
    otherwise they are numbers near ``unit``, which is 1 for log-odds and shares and the user's where scores are known,
    and 0 is 0 up to that.
    """
    from ..kernels import ROUNDING
    from ..kernels.segments import segment_ranges, segment_sizes

    offsets = judgments.items.offsets
    in_grades = getattr(method, "in_grades", False) and not getattr(judgments, "nominal", False)
    largest: Any = unit
    if in_grades:
        largest = np.zeros(judgments.n_queries)
        if len(judgments) and judgments.grade.min() < 0 < judgments.grade.max():
            # grades of both signs may cancel
            np.maximum.at(largest, judgments.items.query[judgments.item], np.abs(judgments.grade))
    tolerance: Floats = ROUNDING * np.maximum(segment_sizes(scores, offsets), largest)
    precision = getattr(method, "precision", 0.0)
    if precision and len(judgments):
        unit = float(np.ptp(judgments.grade)) if in_grades else unit
        tolerance += precision * np.maximum(segment_ranges(scores, offsets), unit)
    return tolerance


@dataclass(frozen=True, eq=False, kw_only=True)
class Diagnostics(Shown):
    """What is odd about judgments, as tables and as sentences; :func:`crowdrank.diagnose` makes it.

    Parameters
    ----------
    kind
        Kind of the judgments.
    n_annotators
        Annotators who judged something; 0 where the judgments do not name them.
    effective_annotators
        Number of independent annotators who would be as informative as these: the square of their number divided
        by the sum of the correlations of their errors. ``None`` without annotators.
    annotator_messages, group_messages
        What there is to say of annotators and of groups of items, one sentence each, with ids and what to do.
    notes
        What could not be looked at, and why.
    annotator_table, dependence_table, family_table, group_table
        The tables that the methods of these names return. Files hold neither pairs of annotators nor groups of items,
        which may be very many: read from a file, these two are ``None``.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> cr.diagnose(votes).kind
    'grade'
    """

    kind: str
    n_annotators: int
    effective_annotators: float | None
    annotator_messages: tuple[str, ...]
    group_messages: tuple[str, ...]
    notes: tuple[str, ...]
    annotator_table: pl.DataFrame
    family_table: pl.DataFrame
    dependence_table: pl.DataFrame | None = None
    group_table: pl.DataFrame | None = None

    def __repr__(self) -> str:
        worth = "" if self.effective_annotators is None else f" worth {self.effective_annotators:.1f}"
        return f"Diagnostics({self.n_annotators:,} annotators{worth}, {len(self.messages)} messages)"

    def __len__(self) -> int:
        return len(self.annotator_table)

    def _repr_html_(self) -> str:
        """All there is to say, and the first annotators, for notebooks."""
        bounds = [name for name in self.annotator_table.columns if name.endswith(("_lower", "_upper"))]
        return html_table(repr(self), self.annotator_table.drop(bounds).head(ROWS), len(self), self.messages)

    def frame(self) -> pl.DataFrame:
        """Return a row for each annotator, as :meth:`annotators` does."""
        return self.annotators()

    @property
    def messages(self) -> tuple[str, ...]:
        """All there is to say, a sentence each."""
        return self.group_messages + self.annotator_messages + self.notes

    @property
    def sample_notes(self) -> tuple[str, ...]:
        """The notes that say which sample was looked at."""
        return tuple(note for note in self.notes if "were looked at on" in note)

    def annotators(self) -> pl.DataFrame:
        """Return a row for each annotator; all intervals are of 90 %.

        For preferences: n_judgments; share_left (of the answers that are no tie); position_bias, position_lower,
        position_upper (chosen left less chosen right, between equal items); share_tied; n_both_orders, share_flipped,
        flipped_lower, flipped_upper (pairs asked in both orders, and the share whose answer went with the side);
        n_swapped, share_swapped, swapped_lower, swapped_upper (pairs asked with the sides swapped, and the share of
        equal answers); n_triads, share_circular, circular_lower, circular_upper (three items with answers in a circle;
        guessing gives a quarter). For grades: n_judgments, same_grade, share_same, share_same_others (the commonest
        grade, its share, and its share among the grades of all others); repeated_difference (mean difference of two
        grades of the same item). Always: n_repeated, share_repeated, repeated_lower, repeated_upper (what was asked
        again in the same order, and the share of equal answers); family, the number of the family in :meth:`families`.
        A cell is null where there is nothing to compute it from.
        """
        return self.annotator_table

    def dependence(self) -> pl.DataFrame:
        """Return a row for each pair of annotators with enough in common, the largest excess first.

        annotator, other, n_common, agreement, expected (of independent annotators this good), excess, excess_lower,
        excess_upper (90 %), correlation (of their errors; 1 for copies), p_value, false_discovery (the share of false
        alarms to expect among all pairs with a value as small), agreement_when_wrong (share of the same wrong answer
        where either is wrong).
        """
        return _expect_table(self.dependence_table)

    def families(self) -> pl.DataFrame:
        """Return a row for each group of annotators, those given with the judgments first, then those found.

        family, origin (given or found), n_annotators, n_pairs (compared with each other), correlation (mean, of their
        errors), effective_annotators, annotators (the first five).
        """
        return self.family_table

    def groups(self) -> pl.DataFrame:
        """Return the items whose scores, relative to others of their query, the judgments do not determine.

        query, item, group (a number), relation: ``apart`` (never compared with the query's other groups), ``won`` or
        ``lost`` (all comparisons with others).
        """
        return _expect_table(self.group_table)


def _expect_table(table: pl.DataFrame | None) -> pl.DataFrame:
    """The table, unless it was left behind when the result was written to a file."""
    if table is None:
        raise ParameterError("files do not hold this table; make it with crowdrank.diagnose(judgments, consensus)")
    return table
