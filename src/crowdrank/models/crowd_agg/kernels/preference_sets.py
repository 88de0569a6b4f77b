"""Preference sets: what one annotator said of one query, as pairs of which one item is preferred.

A set has entries, one for each of its items, and units: entries that the annotator placed equal (a level of grades,
a place of a ranking), or single entries where there are preferences. Sets that prefer no item to
another are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ....kernels.pairs import concordance
from ....kernels.threads import over_bounds, pair_bounds
from ....protocols import Bools, Counts, Floats, Ints

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
            over_bounds(lambda begin, end: _pairs_alike(*pairs, lead, slack, begin, end, alike), self.parts)
            return alike
        levels = (sets.bounds, sets.unit, self.use)
        over_bounds(lambda begin, end: _levels_alike(*levels, lead, slack, begin, end, alike), self.parts)
        if len(self.long):
            alike[self.long] = self._long_alike(lead, slack)
        return alike

    def _long_alike(self, lead: Floats, slack: float) -> Floats:
        """The same for long sets, in n log n steps."""
        sets, first = self.sets, self.sets.bounds[self.long]
        sizes = np.diff(sets.bounds)[self.long]
        offsets = np.append(0, np.cumsum(sizes))
        group = np.repeat(np.arange(len(sizes)), sizes)
        entry = np.arange(offsets[-1]) + (first - offsets[:-1])[group]
        order = np.lexsort((lead[entry], group))
        climbed = np.cumsum(np.append(False, np.diff(lead[entry][order]) > slack))
        place = np.empty(len(order), np.int64)
        place[order] = climbed - climbed[offsets[:-1]][group]
        alike, total = np.zeros(len(sizes)), np.zeros(len(sizes))
        share = self.use[entry].astype(np.float64)
        concordance(offsets, sets.unit[entry].astype(np.float64), place, share, alike, total)
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
def _pairs_alike(starts, winner, loser, lead, slack, begin, end, alike):
    """Count the listed pairs of the sets from begin to end."""
    for s in range(begin, end):
        for pair in range(starts[s], starts[s + 1]):
            gap = lead[winner[pair]] - lead[loser[pair]]
            alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5


@njit(cache=True, nogil=True)
def _levels_alike(bounds, unit, use, lead, slack, begin, end, alike):
    """Count the pairs between levels of those sets from begin to end that are not long."""
    for s in range(begin, end):
        if bounds[s + 1] - bounds[s] > _MAX_ENTRIES_PAIR_BY_PAIR:
            continue
        for better in range(bounds[s], bounds[s + 1]):
            for worse in range(bounds[s], better if use[better] else 0):
                if use[worse] and unit[worse] != unit[better]:
                    gap = lead[better] - lead[worse]
                    alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5
