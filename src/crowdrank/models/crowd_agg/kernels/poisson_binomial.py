"""Preference sets, and the expected discount at a rank that is the number of lost pairs, a Poisson-binomial variable.

A set is what one annotator said of one query, as pairs of which one item is preferred. It has entries, one for each of
its items, and units: entries that the annotator placed equal (a level of grades, a place of a ranking), or single
entries where there are preferences. Sets that prefer no item to another are left out.

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

from functools import lru_cache
from math import exp, gamma, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ....kernels.pairs import concordance
from ....kernels.segments import segment_means
from ....kernels.threads import bind, over_bounds, pair_bounds
from ....protocols import Bools, Counts, Floats, Ints

_MAX_ROW_LENGTH = 128
"""With more pairs than this the mixture is the quicker form."""

_MAX_ITEMS_ONE_BY_ONE = 4
"""Up to this many items in order are quicker one by one."""

_MAX_SHARE_JUDGED = 0.25
"""Up to this share of a query's items, judged on average, the gap ``"auto"`` is the swapped one."""

_STEP, _LOWEST, _HIGHEST = 0.28, -42.0, 3.6
"""Grid of the logarithm of t on which NDCG's discount is a mixture of exp(-t r)."""

_NO_LINKS = (np.zeros(1, np.int64), np.zeros(0, np.int32))


_MAX_ENTRIES_PAIR_BY_PAIR = 300
"""Sets of levels with more entries than this are sorted rather than compared pair by pair."""

_LARGEST_KEY = 2**62
_ROUNDING = 1e-9


class PreferenceSets(NamedTuple):
    """Sets with their units and entries; the units of levels rise by what the annotator thinks of them.

    ``starts`` (n_sets + 1,) bounds the units of each set, ``bounds`` (n_sets + 1,) its entries. Over sets there
    are the ``code`` they were made from, the number of items ``judged`` and the mean ``weight`` of the judgments; over
    units the pairs ``won`` and ``lost`` and the number of entries; over entries the ``unit`` and the ``item``.

    Sets of preferences have ``listed`` pairs, those of set ``s`` from ``pair_starts[s]`` up to
    ``pair_starts[s + 1]``, each with the units of ``winner`` and ``loser``. In sets of levels all entries of
    different units make a pair.
    """

    starts: Counts
    bounds: Counts
    code: Counts
    judged: Counts
    weight: Floats
    won: Ints
    lost: Ints
    n_entries: Ints
    unit: Ints
    item: Ints
    pair_starts: Counts
    winner: Ints
    loser: Ints
    listed: bool

    def links(self) -> tuple[Counts, Ints]:
        """Return the opposing units of each unit in compressed rows, for sets of preferences."""
        here, there = np.concatenate([self.winner, self.loser]), np.concatenate([self.loser, self.winner])
        starts = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=len(self.won)))])
        return starts, there[np.argsort(here, kind="stable")]


def sets_of_levels(code: Counts, item: Ints, grade: Floats, weight: Floats) -> PreferenceSets:
    """Return the sets of rows, each the only one of its item in the set of that code; larger grades are better."""
    order = np.lexsort((grade, code))
    new_set = np.diff(code[order], prepend=-1) != 0
    # means of grades are equal up to rounding only
    slack = _ROUNDING * float(np.max(np.abs(grade), initial=0.0))
    new_unit = new_set | (np.diff(grade[order], prepend=0.0) > slack)
    number = np.cumsum(new_set) - 1
    use = (np.bincount(number[new_unit]) > 1)[number]
    order, new_set, new_unit = order[use], new_set[use], new_unit[use]
    first, bounds = (np.append(np.flatnonzero(new), len(order)) for new in (new_unit, new_set))
    starts, judged = np.searchsorted(first, bounds), np.diff(bounds)
    won = first[:-1] - np.repeat(bounds[:-1], np.diff(starts))
    lost = np.repeat(bounds[1:], np.diff(starts)) - first[1:]
    none = np.zeros(0, np.int32)
    return PreferenceSets(
        starts, bounds, code[order[bounds[:-1]]], judged, _sums(weight[order], bounds) / judged, won.astype(np.int32),
        lost.astype(np.int32), np.diff(first).astype(np.int32), (np.cumsum(new_unit) - 1).astype(np.int32), item[order],
        np.zeros(len(starts), np.int64), none, none, False,
    )  # fmt: skip


def sets_of_preferences(code: Counts, left: Ints, right: Ints, outcome: Floats, n_items: int) -> PreferenceSets:
    """Return the sets of preferences, those for the same pair in the set of one code added up.

    ``outcome`` (rows,) is the weight of the preference, negative for the right item and 0 for a tie. A pair without a
    winner is left out; a set weighs the mean margin of its pairs.
    """
    code, low, high, net = _net(code, left, right, outcome)
    rows = np.append(np.flatnonzero(np.diff(code, prepend=-1) != 0), len(code))
    starts, pair_starts, judged, kept = (np.zeros(len(rows), np.int64) for _ in range(4))
    item, won, lost = (np.empty(2 * len(code), np.int32) for _ in range(3))
    winner, loser = np.empty(len(code), np.int32), np.empty(len(code), np.int32)
    place, seen = np.full(n_items, -1, np.int32), np.full(n_items, -1, np.int64)
    n = _enter(rows, low, high, net, place, seen, starts, pair_starts, judged, kept, item, won, lost, winner, loser)
    starts, pair_starts = starts[: n + 1], pair_starts[: n + 1]
    n_units, n_pairs = int(starts[n]), int(pair_starts[n])
    weight = _sums(np.abs(net[net != 0]), pair_starts) / np.diff(pair_starts)
    return PreferenceSets(
        starts, starts, code[rows[kept[:n]]], judged[:n], weight, won[:n_units], lost[:n_units],
        np.ones(n_units, np.int32), np.arange(n_units, dtype=np.int32), item[:n_units],
        pair_starts, winner[:n_pairs], loser[:n_pairs], True,
    )  # fmt: skip


def _net(code: Counts, left: Ints, right: Ints, outcome: Floats) -> tuple[Counts, Ints, Ints, Floats]:
    """Code, lower item, higher item and net outcome for the lower one, of each pair of each set in order."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    n_items, span = int(high.max(initial=0)) + 1, int((high - low).max(initial=0)) + 1
    if (int(code.max(initial=0)) + 1) * n_items * span < _LARGEST_KEY:
        order = np.argsort((code * n_items + low) * span + (high - low))
    else:
        order = np.lexsort((high, low, code))
    code, low, high = code[order], low[order], high[order]
    new = (np.diff(code, prepend=-1) != 0) | (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0)
    begin = np.flatnonzero(new)
    bounds = np.append(begin, len(code))
    signed = np.where(left < right, outcome, -outcome)[order]
    net = _sums(signed, bounds)
    # equal sums of weights for either side meet up to rounding only
    net[np.abs(net) <= _ROUNDING * _sums(np.abs(signed), bounds)] = 0.0
    return code[begin], low[begin], high[begin], net


def _sums(values: Floats, bounds: Counts) -> Floats:
    """Sums of the values between neighbouring bounds, which all differ."""
    return np.add.reduceat(values, bounds[:-1]) if len(bounds) > 1 else np.zeros(0)


class Agreement(NamedTuple):
    """Pairs of sets to count: those of two entries in ``use``. ``long`` sets are sorted for it."""

    sets: PreferenceSets
    use: Bools
    long: Counts
    parts: Counts

    @classmethod
    def between(cls, sets: PreferenceSets, use: Bools) -> Agreement:
        """Return the pairs of entries in ``use`` (n_entries,)."""
        if sets.listed:
            keep = use[sets.winner] & use[sets.loser]
            starts = np.concatenate([[0], np.cumsum(keep)])[sets.pair_starts]
            sets = sets._replace(pair_starts=starts, winner=sets.winner[keep], loser=sets.loser[keep])
            return cls(sets, use, np.zeros(0, np.int64), pair_bounds(starts))
        sizes = np.diff(sets.bounds)
        long = sizes > _MAX_ENTRIES_PAIR_BY_PAIR
        return cls(sets, use, np.flatnonzero(long), pair_bounds(np.append(0, np.cumsum(np.where(long, 0, sizes**2)))))

    def n_pairs(self) -> Floats:
        """Return the number of pairs of each set."""
        sets = self.sets
        if sets.listed:
            return np.diff(sets.pair_starts).astype(np.float64)
        n = np.bincount(sets.unit, self.use, len(sets.won)).astype(np.float64)
        return 0.5 * (_sums(n, sets.starts) ** 2 - _sums(n**2, sets.starts))

    def alike(self, lead: Floats, slack: float) -> Floats:
        """Return the number of pairs of each set that ``lead`` (n_entries,) orders as the set does.

        Differences of up to ``slack`` count half.
        """
        sets, alike = self.sets, np.zeros(len(self.sets.code))
        if sets.listed:
            pairs = (sets.pair_starts, sets.winner, sets.loser)
            over_bounds(bind(_pairs_alike, *pairs, lead, slack, alike), self.parts)
            return alike
        over_bounds(bind(_levels_alike, sets.bounds, sets.unit, self.use, lead, slack, alike), self.parts)
        if not len(self.long):
            return alike
        # long sets in n log n steps
        first, sizes = sets.bounds[self.long], np.diff(sets.bounds)[self.long]
        offsets = np.append(0, np.cumsum(sizes))
        group = np.repeat(np.arange(len(sizes)), sizes)
        entry = np.arange(offsets[-1]) + (first - offsets[:-1])[group]
        order = np.lexsort((lead[entry], group))
        climbed = np.cumsum(np.append(False, np.diff(lead[entry][order]) > slack))
        place = np.empty(len(order), np.int64)
        place[order] = climbed - climbed[offsets[:-1]][group]
        of_long, total = np.zeros(len(sizes)), np.zeros(len(sizes))
        share = self.use[entry].astype(np.float64)
        concordance(offsets, sets.unit[entry].astype(np.float64), place, share, of_long, total)
        alike[self.long] = of_long
        return alike


@njit(cache=True, nogil=True)
def _enter(rows, low, high, net, place, seen, starts, pair_starts, judged, kept, item, won, lost, winner, loser):
    """Number the entries of each set and count their pairs; return how many sets have any."""
    n_sets = n_units = n_pairs = 0
    for s in range(rows.size - 1):
        judged[n_sets] = 0
        for row in range(rows[s], rows[s + 1]):
            for i in (low[row], high[row]):
                if seen[i] != s:
                    seen[i] = s
                    judged[n_sets] += 1
                # entries of earlier sets have smaller numbers
                if net[row] != 0 and place[i] < starts[n_sets]:
                    place[i] = n_units
                    item[n_units], won[n_units], lost[n_units] = i, 0, 0
                    n_units += 1
            if net[row] != 0:
                i, j = place[low[row]], place[high[row]]
                winner[n_pairs], loser[n_pairs] = (i, j) if net[row] > 0 else (j, i)
                won[winner[n_pairs]] += 1
                lost[loser[n_pairs]] += 1
                n_pairs += 1
        if n_units > starts[n_sets]:
            kept[n_sets] = s
            n_sets += 1
            starts[n_sets], pair_starts[n_sets] = n_units, n_pairs
    return n_sets


@njit(cache=True, nogil=True)
def _pairs_alike(starts, winner, loser, lead, slack, alike, begin, end):
    """Count the listed pairs of the sets from begin to end."""
    for s in range(begin, end):
        for pair in range(starts[s], starts[s + 1]):
            gap = lead[winner[pair]] - lead[loser[pair]]
            alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5


@njit(cache=True, nogil=True)
def _levels_alike(bounds, unit, use, lead, slack, alike, begin, end):
    """Count the pairs between levels of those sets from begin to end that are not long."""
    for s in range(begin, end):
        if bounds[s + 1] - bounds[s] > _MAX_ENTRIES_PAIR_BY_PAIR:
            continue
        for better in range(bounds[s], bounds[s + 1]):
            for worse in range(bounds[s], better if use[better] else 0):
                if use[worse] and unit[worse] != unit[better]:
                    gap = lead[better] - lead[worse]
                    alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5


# Expected discounts


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
