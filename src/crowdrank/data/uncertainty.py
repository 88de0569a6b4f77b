"""Intervals and comparisons of scores, from replicates, covariance or standard errors, whichever is at hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import option
from .index import Items

N_DRAWS = 1000
_DRAW_CELLS = 20_000_000
_PAIRS_AT_ONCE = 10_000
_ROUNDING = 1e-6
_RIVALS = 1000
_RIVALS_OF_REPLICATES = 100


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Scores of items and what is known of their spread."""

    method: str
    items: Items
    scores: Floats
    std_error: Floats | None
    covariance: tuple[Floats | None, ...] | None
    replicates: NDArray[np.float32] | None

    @property
    def basis(self) -> str | None:
        """Name of the best source there is."""
        if self.replicates is not None:
            return "replicates"
        if self.covariance is not None and all(block is not None for block in self.covariance):
            return "covariance"
        if self.covariance is not None and self.std_error is not None:
            return "covariance, std_error in large queries"
        return "std_error" if self.std_error is not None else None

    def intervals(self, level: float, query: int | None = None) -> dict[str, Floats]:
        """Return lower and upper score and rank of each item, (n_items,) each; of one query only those of its items."""
        from ..kernels.ties import ROUNDING, SINGLE

        self._require()
        tail = (1 - level) / 2
        bounds = {name: np.zeros(len(self.scores)) for name in ("lower", "upper", "rank_lower", "rank_upper")}
        for number in range(self.items.n_queries) if query is None else (query,):
            part = slice(int(self.items.offsets[number]), int(self.items.offsets[number + 1]))
            if part.start == part.stop:
                continue
            draws, scores = self.draws(number), self.scores[part]
            if self.replicates is not None:
                lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
                # where scores are shrunk towards the middle, most replicates may lie to one side of the estimate
                bounds["lower"][part], bounds["upper"][part] = np.minimum(lower, scores), np.maximum(upper, scores)
            else:
                half = _normal_quantile(1 - tail) * self._query_std_errors(number)
                bounds["lower"][part], bounds["upper"][part] = scores - half, scores + half
            equal = (ROUNDING if self.replicates is None else SINGLE) * float(np.abs(draws).max())
            lower, upper = _rank_bounds(draws, scores, tail, equal)
            # one of many near-equal items is hardly ever first in a draw, though nothing speaks against it
            bounds["rank_lower"][part] = np.where(self.may_be_first(level, number), 1, np.maximum(lower, 2))
            bounds["rank_upper"][part] = upper
        return {name: values.astype(np.int32) if "rank" in name else values for name, values in bounds.items()}

    def contrasts(self, level: float, query: int, anchor: int | None) -> tuple[Floats, Floats]:
        """Return bounds of the scores of a query less that of its item number ``anchor``, or less their mean."""
        self._require()
        if not 0 < level < 1:
            raise ParameterError(f"level={level} must lie between 0 and 1")
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
        scores = self.scores[part]
        gap = scores - (scores.mean() if anchor is None else scores[anchor])
        if self.replicates is not None:
            drawn = self.draws(query)
            drawn = drawn - (drawn.mean(axis=1) if anchor is None else drawn[:, anchor])[:, None]
            lower, upper = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
            return np.minimum(lower, gap), np.maximum(upper, gap)
        if anchor is not None:
            variance = self._pair_variances(query, np.array([anchor]))[0]
            variance[anchor] = 0.0
        else:
            block = self._block(query)
            squares = self._query_std_errors(query) ** 2
            means = squares / len(squares) if block is None else block.mean(axis=1)
            variance = np.maximum(squares - 2 * means + means.mean(), 0.0)
        half = _normal_quantile(0.5 + 0.5 * level) * np.sqrt(variance)
        return gap - half, gap + half

    def may_be_first(self, level: float, query: int) -> Bools:
        """Return which items of a query may be the best: those that no other item surely beats.

        Surely is with a probability of ``(1 + level) / 2``, so a two-sided interval of this level is meant. Of
        large queries, the other items are those that are best for sure: whose lower bounds are highest.
        """
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
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
        possible: Bools = ~beaten | (scores == scores.max(initial=-np.inf))
        return possible

    def _pair_variances(self, query: int, rivals: Counts) -> Floats:
        """Variance of the difference between some items of a query and each of them, (n_rivals, items of the query)."""
        block = self._block(query)
        squares = self._query_std_errors(query) ** 2 if block is None else np.diag(block)
        together = 0.0 if block is None else 2.0 * block[rivals]
        return np.maximum(squares[rivals, None] + squares - together, 0.0)

    def beats(self, a: int, b: int) -> float:
        """Return the probability that item code ``a`` scores above item code ``b``; ties count half."""
        if a == b:
            raise ParameterError("an item cannot be compared with itself; name two items")
        return float(self.beats_each(np.array([a]), np.array([b]))[0])

    def beats_each(self, first: Counts, second: Counts) -> Floats:
        """Return, for pairs of item codes of the same query, the probability that the first scores above the second."""
        from scipy.special import ndtr

        from ..kernels.ties import SINGLE

        self._require()
        if self.replicates is not None:
            probabilities = np.empty(len(first))
            for start in range(0, len(first), _PAIRS_AT_ONCE):
                part = slice(start, start + _PAIRS_AT_ONCE)
                one, other = self.replicates[:, first[part]], self.replicates[:, second[part]]
                equal = SINGLE * np.maximum(np.abs(one).max(axis=0), np.abs(other).max(axis=0))
                difference = one - other
                probabilities[part] = 0.5 * np.mean(1.0 + (difference > equal) - (difference < -equal), axis=0)
            return probabilities
        gap, variance = self.scores[first] - self.scores[second], self._variances(first, second)
        root = np.sqrt(np.maximum(variance, 0.0))
        spread = root > 0
        return np.where(spread, ndtr(gap / np.where(spread, root, 1.0)), 0.5 * (1 + np.sign(gap)))

    def _variances(self, first: Counts, second: Counts) -> Floats:
        """Variance of the difference of the scores of each pair."""
        variance = np.zeros(len(first))
        if self.std_error is not None:
            variance = self.std_error[first] ** 2 + self.std_error[second] ** 2
        query = self.items.query[first]
        order = np.argsort(query, kind="stable")
        bounds = np.searchsorted(query[order], np.arange(self.items.n_queries + 1))
        for number in np.unique(query).tolist():
            block = self._block(number)
            if block is not None:
                pairs = order[bounds[number] : bounds[number + 1]]
                i, j = first[pairs] - self.items.offsets[number], second[pairs] - self.items.offsets[number]
                variance[pairs] = block[i, i] + block[j, j] - 2 * block[i, j]
        return variance

    def draws(self, query: int, n_draws: int = N_DRAWS, seed: int = 0) -> Floats:
        """Return plausible scores of the items of a query, (n_draws, items of the query)."""
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
        if self.replicates is not None:
            return self._with_noise(self.replicates[:, part].astype(np.float64), query, seed)
        rng = np.random.default_rng([seed, query])
        n = part.stop - part.start
        n_draws = max(100, min(n_draws, _DRAW_CELLS // max(n, 1)))
        noise = rng.standard_normal((n_draws, n))
        block = self._block(query)
        if block is None:
            return self.scores[part] + noise * self._query_std_errors(query)
        values, vectors = np.linalg.eigh(block)
        correlated: Floats = noise @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return self.scores[part] + correlated

    def _with_noise(self, drawn: Floats, query: int, seed: int) -> Floats:
        """Replicates of a query that scatter as their standard errors say, which may be more [SilvermanYoung87]_."""
        if self.std_error is None or len(drawn) < 2:
            return drawn
        lacking = self._query_std_errors(query) ** 2 - drawn.var(axis=0, ddof=1)
        few = lacking > _ROUNDING * self._query_std_errors(query) ** 2
        if few.any():
            noise = np.random.default_rng([seed, query]).standard_normal((len(drawn), int(few.sum())))
            drawn[:, few] += np.sqrt(lacking[few]) * noise
        return drawn

    def _block(self, query: int) -> Floats | None:
        """Covariance of a query's scores, if there is one."""
        return None if self.covariance is None else self.covariance[query]

    def _query_std_errors(self, query: int) -> Floats:
        """Standard error of each item of a query."""
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
        if self.std_error is not None:
            return self.std_error[part]
        block = self._block(query)
        assert block is not None
        return np.sqrt(np.maximum(np.diag(block), 0.0))

    def _require(self) -> None:
        """Say what to do when nothing is known of the spread."""
        if self.basis is None:
            raise ParameterError(
                f"{self.method} gives no uncertainty of its own; aggregate with {option('bootstrap', 200)}"
            )


def _rank_bounds(draws: Floats, scores: Floats, tail: float, equal: float) -> tuple[Ints, Ints]:
    """Bounds of the rank of each item: of the better ranks of ties below, of the worse ones above."""
    better, worse = _ranks_of_draws(draws, equal)
    own_better, own_worse = _ranks_of_draws(scores[None, :])
    lower = np.quantile(better, tail, axis=0, method="nearest")
    upper = np.quantile(worse, 1 - tail, axis=0, method="nearest")
    return np.minimum(lower, own_better[0]), np.maximum(upper, own_worse[0])


def _ranks_of_draws(draws: Floats, equal: float = 0.0) -> tuple[Ints, Ints]:
    """Better and worse rank of each item in each draw, which are one where no other item has the same score.

    Neighbours that differ by no more than ``equal`` have the same.
    """
    order = np.argsort(-draws, axis=1, kind="stable")
    ranked = np.take_along_axis(draws, order, axis=1)
    place = np.broadcast_to(np.arange(1, draws.shape[1] + 1, dtype=np.int32), draws.shape)
    apart = ranked[:, :-1] - ranked[:, 1:] > equal
    if not apart.all():
        new = np.ones(draws.shape, bool)
        new[:, 1:] = apart
        last = np.ones(draws.shape, bool)
        last[:, :-1] = new[:, 1:]
        better = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        worse = np.minimum.accumulate(np.where(last, place, draws.shape[1])[:, ::-1], axis=1)[:, ::-1]
    else:
        better = worse = place
    ranks = np.empty((2, *draws.shape), np.int32)
    for number, sorted_ranks in enumerate((better, worse)):
        np.put_along_axis(ranks[number], order, sorted_ranks, axis=1)
    return ranks[0], ranks[1]


def _normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
