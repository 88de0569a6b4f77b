"""Expected discount at a rank that is the number of lost pairs, a Poisson-binomial variable.

An item with ``c`` known pairs and ``u`` coins loses ``r`` of them, and wanted is the mean of a discount D(r). Two
exact forms give it without going through the distribution of r:

- T[c, k] is the mean discount once the coins are thrown, ``c`` pairs are open and ``k`` are lost. Each pair turns
  a row of T into a shorter one of means of neighbours, until one number is left: c^2 / 2 steps.
- Every discount here is a mixture of geometric ones, D(r) = constant + sum of w x^r, and the mean of x^r is the product
  of 1 - loss (1 - x) over the pairs. Rank-biased precision has one term; 163 terms give NDCG's to 13 digits.

Items that one annotator has placed equal share their pairs, and are evaluated once. Where no two are equal, the
pairs of neighbours differ by one, and all items together take no more steps than three of them would.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, gamma, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ....kernels.segments import segment_means, segment_sums
from ....kernels.threads import bind, over_bounds, pair_bounds
from ....protocols import Bools, Counts, Floats, Ints
from .preference_sets import Agreement, PreferenceSets

_MAX_ROW_LENGTH = 128
"""With more pairs than this the mixture is the quicker form."""

_MAX_ITEMS_ONE_BY_ONE = 4
"""Up to this many items in order are quicker one by one."""

_MAX_SHARE_JUDGED = 0.25
"""Up to this share of a query's items, judged on average, the gap ``"auto"`` is the swapped one."""

_MIN_PAIRS = 1e-12
"""Added to numbers of pairs, so an annotator without any has a mean quality."""

_STEP, _LOWEST, _HIGHEST = 0.28, -42.0, 3.6
"""Grid of the logarithm of t on which NDCG's discount is a mixture of exp(-t r)."""

_NO_LINKS = (np.zeros(1, np.int64), np.zeros(0, np.int32))


class Mixture(NamedTuple):
    """A discount D(r) = constant + sum of ``weight`` (1 - ``drop``)^r, over terms."""

    weight: Floats
    drop: Floats


@lru_cache(maxsize=1)
def ndcg_mixture() -> Mixture:
    """Return NDCG's discount 1 / log2(2 + r) as a mixture, right to 13 digits for all r up to 10^7.

    The integral of y^-s over s is 1 / ln y, and that of t^(s-1) exp(-t y) over t is Gamma(s) y^-s; the trapezoidal rule
    for the logarithms of s and t converges geometrically. What lies below the grid of t is the constant.
    """
    power = np.exp(np.arange(-19.0, log(165.0), 0.1))
    density = 0.1 * np.array([s / gamma(s) for s in power])
    place = np.arange(_LOWEST, _HIGHEST, _STEP)
    rate = np.exp(place)
    weight = log(2.0) * _STEP * np.exp(-2.0 * rate) * (np.exp(np.outer(place, power)) @ density)
    return Mixture(weight, -np.expm1(-rate))


@lru_cache(maxsize=64)
def rbp_mixture(rho: float) -> Mixture:
    """Return the discount rho^r of rank-biased precision."""
    return Mixture(np.ones(1), np.array([1.0 - rho]))


class Gap(NamedTuple):
    """Probability of placing an item above another one of the set that won ``d`` pairs fewer.

    It is ``ahead + slope d`` for positive d, ``behind + slope d`` for negative d, and 1/2 for none; ``slope`` is over
    sets. Where that is empty it is ``ahead`` for a pair won and ``behind`` for a pair lost.
    """

    ahead: float
    behind: float
    slope: Floats


def pair_gap(name: str, sets: PreferenceSets, query: Ints, size: Counts) -> Gap:
    """Return the gap of a name, for sets of these queries with this many items, (n_sets,) each.

    ``"auto"`` is swapped in queries of whose items a set has a quarter or less on average, and hard in others.
    """
    if name == "linear":
        return Gap(0.5, 0.5, 0.5 / (sets.judged - 1))
    if name == "printed":
        return Gap(0.0, 1.0, 1.0 / size)
    swapped = np.full(len(size), name == "swapped")
    if name == "auto":
        swapped = (segment_means(sets.judged / size, query, None, int(query.max(initial=0)) + 1) <= _MAX_SHARE_JUDGED)[
            query
        ]
    return Gap(1.0, 0.0, np.where(swapped, -1.0 / size, 0.0) if swapped.any() else np.zeros(0))


class Tables(NamedTuple):
    """The rows T[c] for queries of several sizes, less the mean discount of an item without known pairs.

    For size number ``z``, T[c, k] is ``values[starts[z] + c * side[z] + k]``, and ``neutral[z]`` is what was taken off.
    ``half`` is the logarithm of a coin's factor, over the terms of the mixture.
    """

    values: Floats
    starts: Counts
    side: Counts
    neutral: Floats
    half: Floats


class Discounts(NamedTuple):
    """What it takes to evaluate the expected discounts of sets again and again.

    Over sets there are whether they are ``in_order``, without ties, the ``size`` of the query and the ``number`` of
    that size among the tables; ``steps`` is about how many multiplications an evaluation takes.
    """

    sets: PreferenceSets
    in_order: Bools
    links: tuple[Counts, Ints]
    number: Counts
    size: Counts
    gap: Gap
    mixture: Mixture
    tables: Tables
    parts: Counts
    steps: float

    @classmethod
    def of(cls, sets: PreferenceSets, size: Counts, gap: Gap, mixture: Mixture) -> Discounts:
        """Prepare the evaluation; ``size`` (n_sets,) is the number of items of each set's query."""
        sizes, number = np.unique(size, return_inverse=True)
        units, pairs = np.diff(sets.starts), (sets.won + sets.lost).astype(np.int64)
        longest = np.zeros(len(sizes), np.int64)
        np.maximum.at(longest, np.repeat(number, units), pairs)
        in_order = (units == np.diff(sets.bounds)) & (units > _MAX_ITEMS_ONE_BY_ONE) & (not sets.listed)
        links = sets.links() if len(gap.slope) and sets.listed else _NO_LINKS
        groups = np.full(len(pairs), 2) if not len(gap.slope) else np.repeat(units, units)
        groups = pairs if len(links[1]) else groups
        row, n_terms = (pairs <= _MAX_ROW_LENGTH) & (len(mixture.weight) > 1), len(mixture.weight)
        one_by_one = np.where(row, pairs**2 // 2, n_terms * groups)
        steps = np.where(np.repeat(in_order, units), np.where(row, pairs, n_terms), one_by_one)
        cost = np.concatenate([[0], np.cumsum(steps)])[sets.starts]
        tables = _tables(sizes, longest, mixture)
        return cls(sets, in_order, links, number, size, gap, mixture, tables, pair_bounds(cost), float(steps.sum()))

    def expected_discounts(self, trust: Floats) -> Floats:
        """Return the expected discount of each unit, less that of an item without pairs.

        ``trust`` (n_sets,) is the probability that a pair counts as it was judged, and not reversed.
        """
        sets, tables, out = self.sets, self.tables, np.empty(len(self.sets.won))
        terms = (self.number, self.size, *self.gap, trust, *tables[:4], *self.mixture, tables.half)
        plain = (sets.starts, sets.won, sets.lost, sets.n_entries, self.in_order, *self.links)
        over_bounds(bind(_expect, plain, terms, out), self.parts)
        if self.in_order.any():
            over_bounds(bind(_expect_in_order, sets.starts, self.in_order, terms, out), self.parts)
        return out


@dataclass(frozen=True, eq=False)
class Crowd:
    """Preference sets and who owns them: annotators, or annotators in each query.

    ``weight`` is over entries, ``owner`` over sets, ``annotator`` and the number of ``pairs`` over owners, ``query``
    over items. ``cell`` tells which entries are of the same annotator and item, ``None`` if no two are. Totals that
    differ by ``slack`` or less are equal.
    """

    discounts: Discounts
    agreement: Agreement
    weight: Floats
    owner: Counts
    annotator: Counts
    pairs: Floats
    query: Ints
    cell: Counts | None
    slack: float

    def totals(self, eta: Floats) -> tuple[Floats, Floats]:
        """What each entry adds, and the sum for each item."""
        sets = self.discounts.sets
        own = self.discounts.expected_discounts(eta[self.owner])[sets.unit] * self.weight
        return own, segment_sums(own, sets.item, None, len(self.query))

    def agree(self, own: Floats | None, totals: Floats) -> Floats:
        """Number of pairs of each owner that the totals, less the annotator's own part if given, order alike."""
        sets = self.discounts.sets
        lead = totals[sets.item]
        if own is not None:
            lead -= own if self.cell is None else np.bincount(self.cell, own)[self.cell]
        alike = self.agreement.alike(lead, self.slack)
        return segment_sums(alike * sets.weight, self.owner, None, len(self.annotator))

    def mean_quality(self, eta: Floats) -> Floats:
        """Quality of each annotator, over all queries."""
        return segment_means(eta, self.annotator, self.pairs + _MIN_PAIRS, int(self.annotator.max()) + 1)

    def places(self, totals: Floats) -> tuple[Counts, Counts]:
        """Items from worst to best in each query, and a number for each of these that rises where the totals do."""
        order = np.lexsort((totals, self.query))
        new = (np.diff(totals[order], prepend=0.0) > self.slack) | (np.diff(self.query[order], prepend=-1) != 0)
        return order, np.cumsum(new)

    def scores(self, eta: Floats) -> Floats:
        """Totals, the same for items whose totals differ by rounding only."""
        totals = self.totals(eta)[1]
        order, place = self.places(totals)
        scores = np.empty(len(totals))
        scores[order] = totals[order][np.searchsorted(place, place)]
        scores[np.abs(scores) <= self.slack] = 0.0
        return scores


def _tables(sizes: Counts, longest: Counts, mixture: Mixture) -> Tables:
    """The rows for queries of these sizes with at most this many known pairs."""
    # a single term is quicker than any row
    side = np.where(len(mixture.weight) > 1, np.minimum(longest, _MAX_ROW_LENGTH) + 1, 0)
    starts = np.concatenate([[0], np.cumsum(side**2)])
    half = np.log1p(-0.5 * mixture.drop)
    values, neutral = np.empty(int(starts[-1])), np.empty(len(sizes))
    _fill_tables(sizes, side, starts, *mixture, half, values, neutral)
    return Tables(values, starts, side, neutral, half)


@njit(cache=True, nogil=True)
def _fill_tables(sizes, side, starts, weight, drop, half, values, neutral):
    """Write the rows of every size: the longest by the mixture, the shorter ones as means of neighbours."""
    term = np.empty(weight.size)
    for z in range(sizes.size):
        n, at = side[z], starts[z]
        neutral[z] = 0.0
        for q in range(weight.size):
            neutral[z] += weight[q] * exp((sizes[z] - 1) * half[q])
            term[q] = weight[q] * exp((sizes[z] - n) * half[q])
        for k in range(n):
            total = 0.0
            for q in range(weight.size):
                total += term[q]
                term[q] *= 1.0 - drop[q]
            values[at + (n - 1) * n + k] = total - neutral[z]
        for c in range(n - 1, 0, -1):
            for k in range(c):
                values[at + (c - 1) * n + k] = 0.5 * (values[at + c * n + k] + values[at + c * n + k + 1])


@njit(cache=True, nogil=True)
def _expect(sets, terms, out, begin, end):
    """Write the expected discounts of the units of those sets from begin to end that are not in order."""
    starts, won, lost, n_entries, in_order, link_starts, links = sets
    number, size, ahead, behind, slope, trust, values, table_starts, side, neutral, weight, drop, half = terms
    # handing arrays to functions of its own, even inlined ones, made this three times slower
    hard, listed = slope.size == 0, links.size > 0
    state = np.empty(max(weight.size, _MAX_ROW_LENGTH + 1))
    for s in range(begin, end):
        z, eta, turn = number[s], trust[s], 1.0 - 2.0 * trust[s]
        for unit in range(starts[s], starts[s] if in_order[s] else starts[s + 1]):
            c = won[unit] + lost[unit]
            row = c < side[z]
            length = c + 1 if row else weight.size
            for k in range(length):
                if row:
                    state[k] = values[table_starts[z] + c * side[z] + k]
                else:
                    state[k] = weight[k] * exp((size[s] - 1 - c) * half[k])
            first, last = (0, 2) if hard else (starts[s], starts[s + 1])
            if listed:
                first, last = link_starts[unit], link_starts[unit + 1]
            for place in range(first, last):
                if hard:
                    p, times = (behind, lost[unit]) if place else (ahead, won[unit])
                else:
                    other = links[place] if listed else place
                    gap, times = won[unit] - won[other], 1 if listed else n_entries[other]
                    p = 0.5 if gap == 0 else (ahead if gap > 0 else behind) + slope[s] * gap
                    times = 0 if other == unit else times
                loss = eta + turn * p
                if row:
                    for _ in range(times):
                        length -= 1
                        for k in range(length):
                            state[k] += loss * (state[k + 1] - state[k])
                elif times == 1:
                    for q in range(length):
                        state[q] *= 1.0 - loss * drop[q]
                else:
                    for q in range(length):
                        state[q] *= (1.0 - loss * drop[q]) ** times
            out[unit] = state[0] if row else -neutral[z]
            for q in range(0 if row else length):
                out[unit] += state[q]


@njit(cache=True, nogil=True)
def _expect_in_order(starts, in_order, terms, out, begin, end):
    """Write the expected discounts of the units of those sets from begin to end that are in order, worst first."""
    number, size, ahead, behind, slope, trust, values, table_starts, side, neutral, weight, drop, half = terms
    rows = np.empty((_MAX_ROW_LENGTH + 1, _MAX_ROW_LENGTH + 1))
    for s in range(begin, end):
        if not in_order[s]:
            continue
        z, c = number[s], starts[s + 1] - starts[s] - 1
        gap = np.arange(1, c + 1) * (slope[s] if slope.size else 0.0)
        above = trust[s] + (1.0 - 2.0 * trust[s]) * (behind - gap)
        below = trust[s] + (1.0 - 2.0 * trust[s]) * (ahead + gap)
        if c < side[z]:
            at = table_starts[z] + c * side[z]
            _play_in_order(values[at : at + c + 1], above, below, rows, out[starts[s] : starts[s + 1]])
        else:
            state = weight * np.exp((size[s] - 1 - c) * half)
            _multiply_in_order(state, drop, above, below, neutral[z], out[starts[s] : starts[s + 1]])


@njit(cache=True, nogil=True)
def _play_in_order(start, above, below, rows, out):
    """Write what the pairs leave of a row of T, for all items of a set in order at once.

    ``above`` and ``below`` (c,) are the probabilities of losing to the item 1, 2, ... places above or below.
    """
    c = above.size
    rows[0, : c + 1] = start
    for j in range(c):
        for k in range(c - j):
            rows[j + 1, k] = rows[j, k] + above[j] * (rows[j, k + 1] - rows[j, k])
    chance = np.zeros(c + 1)
    chance[0] = 1.0
    for w in range(c + 1):
        total = 0.0
        for k in range(w + 1):
            total += chance[k] * rows[c - w, k]
        out[w] = total
        if w < c:
            for k in range(w + 1, 0, -1):
                chance[k] += below[w] * (chance[k - 1] - chance[k])
            chance[0] *= 1.0 - below[w]


@njit(cache=True, nogil=True)
def _multiply_in_order(start, drop, above, below, neutral, out):
    """Write what the pairs leave of the terms of the mixture, for all items of a set in order at once."""
    c = above.size
    products = np.empty(c + 1)
    out[:] = -neutral
    for q in range(drop.size):
        products[0] = start[q]
        for j in range(c):
            products[j + 1] = products[j] * (1.0 - above[j] * drop[q])
        product = 1.0
        for w in range(c):
            out[w] += product * products[c - w]
            product *= 1.0 - below[w] * drop[q]
        out[c] += product * products[0]
