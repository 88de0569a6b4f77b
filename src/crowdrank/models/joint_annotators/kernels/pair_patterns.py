"""E-step of the joint models: preferences on pairs as patterns, and sums over all pairs.

The model needs one number per pattern, where a pattern says which sources preferred which item of a pair. Six sources
give at most 729 patterns however many pairs there are. Where sources are many, every pair has a pattern of its own. A
source is an annotator, an annotator within a cluster of pairs, or what is known of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.laplacian import laplacian_product, laplacian_products
from ....kernels.pairs import row_starts, sort_by_pair
from ....kernels.threads import bind, over_bounds, pair_bounds, read_only, sum_over_bounds, views
from ....protocols import Counts, Floats, Ints, Outcomes

MOST_TABLE_SOURCES = 12
"""Up to this many sources, a pattern is found through a number of two bits per source."""

_MOST_TABLE_CELLS = 2_000_000
_FACTORS_PER_LOG = 64
"""Number of factors between 1/2 and 2 that are multiplied before a logarithm is taken, since logarithms are slow."""

_NORMAL_VARIANCE_SCALE = np.pi / 8
"""The logistic function is closest to the normal one whose variance is 8 / pi."""


@dataclass(frozen=True, eq=False)
class PairPatterns:
    """Judged pairs in compressed rows as in :mod:`~crowdrank.kernels.pairs`, each with its pattern of preferences.

    ``starts`` (n_items + 1,), ``second`` and ``pattern`` (n_pairs,). The preferences of a pattern are those from
    ``bounds[pattern]`` up to the next. ``code`` of each is 4 times its source, plus 2 if it is for the lower item of
    the pair; ``weight`` is empty where all weigh 1. ``number`` (n_patterns,) is the number of pairs with the pattern.
    """

    starts: Counts
    second: Ints
    pattern: Ints
    bounds: Counts
    code: Ints
    weight: Floats
    number: Floats

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.second)

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    @cached_property
    def source(self) -> Ints:
        """The source of each preference of each pattern."""
        return self.code >> 2

    @cached_property
    def owner(self) -> Ints:
        """The pattern that each preference belongs to."""
        return np.repeat(np.arange(len(self.number), dtype=np.int32), np.diff(self.bounds))

    @cached_property
    def total_weight(self) -> Floats:
        """Weight of each preference, summed over all pairs of its pattern."""
        return self.number[self.owner] * (self.weight if self.weight.size else 1.0)

    @cached_property
    def _signed_weight(self) -> Floats:
        """Weight of each preference on one pair, below 0 where it is for the higher item."""
        side = (self.code & 2).astype(np.float64) - 1.0
        return side * self.weight if self.weight.size else side

    def pattern_odds(self, flip_rates: Floats) -> Floats:
        """Return the log odds of the lower item by the preferences of each pattern, (n_patterns,)."""
        terms = self._signed_weight * (np.log1p(-flip_rates) - np.log(flip_rates))[self.source]
        return np.bincount(self.owner, terms, len(self.number)).astype(np.float64)

    def log_likelihood_if_higher(self, flip_rates: Floats) -> float:
        """Return the log-likelihood of all preferences if the higher item of every pair were the better one."""
        if_lower, if_higher = np.log(flip_rates), np.log1p(-flip_rates)
        each = np.where(self._signed_weight > 0, if_lower[self.source], if_higher[self.source])
        return float((self.total_weight * each).sum())

    def flip_counts(self, n_lower: Floats, n_sources: int) -> Floats:
        """Return the expected weight of each source's flipped preferences.

        ``n_lower`` (n_patterns,) is the expected number of pairs of each pattern whose lower item is the better.
        """
        share = np.divide(n_lower, self.number, out=np.zeros_like(n_lower), where=self.number > 0)[self.owner]
        flipped = self.total_weight * np.where(self._signed_weight > 0, 1.0 - share, share)
        return np.bincount(self.source, flipped, n_sources).astype(np.float64, copy=False)

    def source_weights(self, n_sources: int) -> Floats:
        """Return the weight of all preferences of each source, (n_sources,)."""
        return np.bincount(self.source, self.total_weight, n_sources).astype(np.float64, copy=False)

    def expect(self, flip_rates: Floats, scores: Floats, loss: str, variances: Floats | None = None) -> Expectation:
        """Return the sums over pairs at flip rates and scores, with the log-likelihood of all preferences (E-step).

        ``loss`` is ``"equal"`` where all scores are, ``"logistic"`` or ``"hinge"``. With ``variances`` scores are
        normal around those given.
        """
        odds = self.pattern_odds(flip_rates)
        if loss == "equal":
            here = expect_at_equal_scores(self, odds, len(scores))
        else:
            here = expect_at_scores(self, scores, odds, variances, hinge=loss == "hinge")
        return here._replace(log_likelihood=here.log_likelihood + self.log_likelihood_if_higher(flip_rates))

    def multiply(self, curvature: Floats, degree: Floats, columns: Floats) -> Floats:
        """Return the curvature of the pairs in the scores times a vector, or columns side by side."""
        matrix = (self.starts, self.second, curvature, degree)
        if columns.ndim == 1:
            return laplacian_product(*matrix)(columns)
        return laplacian_products(*matrix)(np.ascontiguousarray(columns))

    def probabilities(self, flip_rates: Floats, scores: Floats) -> Floats:
        """Return the probability that the lower item of each pair is the better, (n_pairs,)."""
        return pair_probabilities(self, scores, self.pattern_odds(flip_rates))

    def leads(self, flip_rates: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return the sum of each item's leads in probability over those it was compared with, and their number."""
        lead, n = 2.0 * self.probabilities(flip_rates, scores) - 1.0, len(scores)
        ahead, behind = (np.bincount(side, lead, n) for side in (self.first, self.second))
        sums = (ahead - behind).astype(np.float64, copy=False)
        number = np.bincount(self.first, minlength=n) + np.bincount(self.second, minlength=n)
        return sums, number.astype(np.float64)

    def split_by_cluster(self, cluster: Ints, n_clusters: int) -> PairPatterns:
        """Return the same pairs with sources split by the cluster (n_pairs,) of a pair.

        A preference of source ``k`` on a pair of cluster ``d`` becomes one of source ``k * n_clusters + d``.
        """
        cells, pattern = np.unique(self.pattern.astype(np.int64) * n_clusters + cluster, return_inverse=True)
        former, cluster_of = cells // n_clusters, (cells % n_clusters).astype(np.int32)
        sizes = np.diff(self.bounds)[former]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.bounds[former] - bounds[:-1], sizes) + np.arange(bounds[-1])
        code = self.code[rows]
        code = ((code >> 2) * n_clusters + np.repeat(cluster_of, sizes)) * 4 + (code & 2)
        return replace(
            self,
            pattern=pattern.astype(np.int32),
            bounds=bounds,
            code=code.astype(np.int32),
            weight=self.weight[rows] if self.weight.size else self.weight,
            number=np.bincount(pattern, minlength=len(cells)).astype(np.float64),
        )


def find_patterns(
    left: Ints, right: Ints, outcome: Outcomes, source: Ints, *, weight: Floats | None, offsets: Counts, n_sources: int
) -> PairPatterns:
    """Return the judged pairs with their patterns; ``offsets`` (n_queries + 1,) bound the items of the queries.

    A tie is no preference, but its pair is one of the pairs. Two preferences of a source on one pair count as two.
    """
    few = weight is None and n_sources <= MOST_TABLE_SOURCES
    sizes = np.diff(offsets)
    if few and int((sizes * (sizes - 1) // 2).sum()) <= max(_MOST_TABLE_CELLS, len(left)):
        patterns = _patterns_by_table(left, right, outcome, source, offsets, n_sources)
        if patterns is not None:
            return patterns
    rows = sort_by_pair(left, right, outcome, source, weight, int(offsets[-1]), ties=False)[0]
    own = np.arange(len(rows.second), dtype=np.int32)
    return PairPatterns(rows.starts, rows.second, own, rows.bounds, rows.code, rows.weight, np.ones(len(own)))


def _patterns_by_table(
    left: Ints, right: Ints, outcome: Outcomes, source: Ints, offsets: Counts, n_sources: int
) -> PairPatterns | None:
    """Patterns through a table with a cell for each pair; ``None`` where a source judged a pair twice."""
    rows = row_starts(offsets)
    marks = np.zeros(int(rows[-1]), np.uint32)
    if bind(_mark_preferences, *views(left, right, outcome, source, rows), marks)():
        return None
    n_pairs, n_items = int(np.count_nonzero(marks)), len(rows) - 1
    starts, second, pattern = np.empty(n_items + 1, np.int64), np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32)
    distinct, place_of = _distinct_marks(marks, n_sources)
    _gather_pairs(marks, read_only(rows), place_of, distinct, starts, second, pattern)
    bits = (distinct[:, None] >> (2 * np.arange(n_sources, dtype=np.uint32))) & 3
    # 1 is a preference for the lower item, 2 for the other, 3 a tie
    owner, who = np.nonzero((bits == 1) | (bits == 2))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(distinct)))]).astype(np.int64)
    code = (4 * who + 2 * (bits[owner, who] == 1)).astype(np.int32)
    number = np.bincount(pattern, minlength=len(distinct)).astype(np.float64)
    return PairPatterns(starts, second, pattern, bounds, code, np.empty(0), number)


def _distinct_marks(marks: NDArray[np.uint32], n_sources: int) -> tuple[NDArray[np.uint32], Ints]:
    """The marks that occur, rising, and a table from mark to place among them, empty where it would be too long."""
    size = 4**n_sources
    if size > max(1 << 16, len(marks)):
        distinct = np.unique(marks)
        return distinct[distinct > 0], np.empty(0, np.int32)
    table = np.zeros(size, np.int32)
    table[marks] = 1
    table[0] = 0
    occurring = np.flatnonzero(table).astype(np.uint32)
    table[occurring] = np.arange(len(occurring), dtype=np.int32)
    return occurring, table


@njit(cache=True, nogil=True)
def _mark_preferences(left, right, outcome, source, rows, marks):
    """Set the two bits of each preference in the cell of its pair; return whether a source judged a pair twice."""
    for row in range(left.size):
        low, high, won = left[row], right[row], outcome[row]
        if low > high:
            low, high, won = high, low, -won
        cell = rows[low] + high - low - 1
        bits = np.uint32(1 if won > 0 else 2 if won < 0 else 3) << np.uint32(2 * source[row])
        if marks[cell] & (np.uint32(3) << np.uint32(2 * source[row])):
            return True
        marks[cell] |= bits
    return False


@njit(cache=True, nogil=True)
def _gather_pairs(marks, rows, place_of, distinct, starts, second, pattern):
    """Fill in the pairs that have a mark, with the number of its pattern."""
    n_pairs = 0
    for i in range(rows.size - 1):
        starts[i] = n_pairs
        for cell in range(rows[i], rows[i + 1]):
            mark = marks[cell]
            if mark:
                second[n_pairs] = i + 1 + cell - rows[i]
                pattern[n_pairs] = place_of[mark] if place_of.size else np.searchsorted(distinct, mark)
                n_pairs += 1
    starts[rows.size - 1] = n_pairs


class Expectation(NamedTuple):
    """Sums over the pairs at some scores and pattern odds: the E-step, and what a Newton step of the scores needs.

    ``log_likelihood`` is that of the preferences, less what it would be if all higher items were the better ones.
    ``gradient`` (n_items,) is its derivative in the scores, ``curvature`` (n_pairs,) the expected curvature of each
    pair as if the better item were known, ``degree`` (n_items,) the sum of that over an item's pairs, and
    ``observed_degree`` the sum of the curvature that is left since the better item is hidden. ``n_lower``
    (n_patterns,) is the expected number of pairs whose lower item is the better.
    """

    log_likelihood: float
    gradient: Floats
    curvature: Floats
    degree: Floats
    observed_degree: Floats
    n_lower: Floats


def expect_at_equal_scores(pairs: PairPatterns, odds: Floats, n_items: int) -> Expectation:
    """Return the expectation at equal scores, which needs the patterns only."""
    gain = np.logaddexp(0.0, odds) - np.log(2.0)
    n_lower = pairs.number * (0.5 + 0.5 * np.tanh(0.5 * odds))
    zeros = np.zeros(n_items)
    return Expectation(float((pairs.number * gain).sum()), zeros, np.empty(0), zeros, zeros, n_lower)


def expect_at_scores(
    pairs: PairPatterns, scores: Floats, odds: Floats, variances: Floats | None = None, *, hinge: bool = False
) -> Expectation:
    r"""Return the expectation at scores (n_items,) and pattern odds (n_patterns,).

    With :math:`a = s_i - s_j` and :math:`\lambda` the odds of the pattern, the lower item is better with probability
    :math:`\sigma(a)` before and :math:`q = \sigma(a + \lambda)` after the preferences. With ``hinge``, gradient and
    curvature are those of the smoothed hinge, with weights q and 1 - q for the two orders. With ``variances``
    (n_items,) it is the mean over independent normal scores; the logistic function is then replaced by a normal one,
    with an error of 0.01 at most.
    """
    given = (pairs.starts, pairs.second, pairs.pattern, scores, odds, np.empty(0) if variances is None else variances)
    curvature = np.empty(pairs.n_pairs)
    add = bind(_add_pairs, *views(*given), hinge, curvature)
    sums, n_lower, value = sum_over_bounds(add, pair_bounds(pairs.starts), (3, len(scores)), len(odds), 1)
    return Expectation(float(value[0]), sums[0], curvature, sums[1], sums[2], n_lower)


@njit(cache=True, nogil=True)
def _add_pairs(starts, second, pattern, scores, odds, variance, hinge, curvature, begin, end, sums, n_lower, value):
    """Add the pairs of items begin to end to gradient, degree and observed degree, (3, n_items), n_lower and value."""
    linear, factor, n_factors, averaged = 0.0, 1.0, 0, variance.size > 0
    for i in range(begin, end):
        score, slope, degree, observed = scores[i], 0.0, 0.0, 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, m = second[pair], pattern[pair]
            scale = 1.0 / np.sqrt(1.0 + _NORMAL_VARIANCE_SCALE * (variance[i] + variance[j])) if averaged else 1.0
            a = scale * (score - scores[j])
            b = a + scale * odds[m]
            exp_a, exp_b = np.exp(-abs(a)), np.exp(-abs(b))
            before = (1.0 if a > 0 else exp_a) / (1.0 + exp_a)
            after = (1.0 if b > 0 else exp_b) / (1.0 + exp_b)
            linear += max(b, 0.0) - max(a, 0.0)
            factor *= (1.0 + exp_b) / (1.0 + exp_a)
            n_factors += 1
            if n_factors == _FACTORS_PER_LOG:
                linear, factor, n_factors = linear + np.log(factor), 1.0, 0
            n_lower[m] += after
            push, curve = after - before, before * (1.0 - before)
            if hinge:
                push = after * min(max(1.0 - a, 0.0), 1.0) - (1.0 - after) * min(max(1.0 + a, 0.0), 1.0)
                curve = (after if 0.0 <= a < 1.0 else 0.0) + (1.0 - after if -1.0 < a <= 0.0 else 0.0)
            curve *= scale
            rest = curve - scale * after * (1.0 - after)
            curvature[pair] = curve
            slope += push
            degree += curve
            observed += rest
            sums[0, j] -= push
            sums[1, j] += curve
            sums[2, j] += rest
        sums[0, i] += slope
        sums[1, i] += degree
        sums[2, i] += observed
    value[0] += linear + np.log(factor)


def pair_probabilities(pairs: PairPatterns, scores: Floats, odds: Floats) -> Floats:
    """Return the probability that the lower item of each pair is the better, (n_pairs,)."""
    probability = np.empty(pairs.n_pairs)
    bind(_fill_probabilities, *views(pairs.starts, pairs.second, pairs.pattern, scores, odds), probability)()
    return probability


@njit(cache=True, nogil=True)
def _fill_probabilities(starts, second, pattern, scores, odds, probability):
    """Fill in the probability of each pair."""
    for i in range(starts.size - 1):
        for pair in range(starts[i], starts[i + 1]):
            probability[pair] = 0.5 + 0.5 * np.tanh(0.5 * (scores[i] - scores[second[pair]] + odds[pattern[pair]]))


def nearest_centres(pairs: PairPatterns, products: Floats, squares: Floats, *, folded: bool) -> Ints:
    """Return the centre that the feature difference of each pair is nearest to, (n_pairs,).

    ``products`` (n_items, n_centres) are those of items and centres and ``squares`` those of centres with themselves;
    if ``folded``, a difference counts as its negative where that is nearer.
    """
    nearest = np.empty(pairs.n_pairs, np.int32)
    given = views(pairs.starts, pairs.second, products, squares)
    over_bounds(bind(_fill_nearest, *given, folded, nearest), pair_bounds(pairs.starts))
    return nearest


@njit(cache=True, nogil=True)
def _fill_nearest(starts, second, products, squares, folded, nearest, begin, end):
    """Fill in the nearest centre of each pair of items begin to end."""
    for i in range(begin, end):
        for pair in range(starts[i], starts[i + 1]):
            j, least = second[pair], np.inf
            for centre in range(squares.size):
                product = products[i, centre] - products[j, centre]
                distance = squares[centre] - 2.0 * (abs(product) if folded else product)
                if distance < least:
                    least, nearest[pair] = distance, centre
