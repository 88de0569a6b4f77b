"""Sheets: what one annotator said of one query, as contests between its items.

A sheet has entries, one for each of its items, and units: entries that the annotator placed equal (a level of grades,
a place of a ranking), or single entries where there are preferences. Sheets that prefer no item to another are left
out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.concordance import concordance
from ....kernels.threads import over_bounds, pair_bounds
from ....protocols import Bools, Counts, Floats, Ints

_LONG_SHEET = 300
"""Sheets of levels with more entries than this are sorted rather than compared pair by pair."""

_LARGEST_KEY = 2**62
_ROUNDING = 1e-9


class Sheets(NamedTuple):
    """Sheets with their units and entries; the units of levels rise by what the annotator thinks of them.

    ``starts`` (n_sheets + 1,) bounds the units of each sheet, ``bounds`` (n_sheets + 1,) its entries. Over sheets there
    are the ``code`` they were made from, the number of items ``judged`` and the mean ``weight`` of the judgments; over
    units the contests ``won`` and ``lost`` and the number of entries; over entries the ``unit`` and the ``item``.

    Sheets of preferences have ``listed`` pairs, those of sheet ``s`` from ``pair_starts[s]`` up to
    ``pair_starts[s + 1]``, each with the units of ``winner`` and ``loser``. In sheets of levels all entries of
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
        """Return the opposing units of each unit in compressed rows, for sheets of preferences."""
        here, there = np.concatenate([self.winner, self.loser]), np.concatenate([self.loser, self.winner])
        starts = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=len(self.won)))])
        return starts, there[np.argsort(here, kind="stable")]


def level_sheets(code: Counts, item: Ints, grade: Floats, weight: Floats) -> Sheets:
    """Return the sheets of rows, each the only one of its item in the sheet of that code; larger grades are better."""
    order = np.lexsort((grade, code))
    new_sheet = np.diff(code[order], prepend=-1) != 0
    # means of grades are equal up to rounding only
    slack = _ROUNDING * float(np.max(np.abs(grade), initial=0.0))
    new_unit = new_sheet | (np.diff(grade[order], prepend=0.0) > slack)
    number = np.cumsum(new_sheet) - 1
    use = (np.bincount(number[new_unit]) > 1)[number]
    order, new_sheet, new_unit = order[use], new_sheet[use], new_unit[use]
    first, bounds = (np.append(np.flatnonzero(new), len(order)) for new in (new_unit, new_sheet))
    starts, judged = np.searchsorted(first, bounds), np.diff(bounds)
    won = first[:-1] - np.repeat(bounds[:-1], np.diff(starts))
    lost = np.repeat(bounds[1:], np.diff(starts)) - first[1:]
    none = np.zeros(0, np.int32)
    return Sheets(
        starts, bounds, code[order[bounds[:-1]]], judged, _sums(weight[order], bounds) / judged, won.astype(np.int32),
        lost.astype(np.int32), np.diff(first).astype(np.int32), (np.cumsum(new_unit) - 1).astype(np.int32), item[order],
        np.zeros(len(starts), np.int64), none, none, False,
    )  # fmt: skip


def pair_sheets(code: Counts, left: Ints, right: Ints, outcome: Floats, n_items: int) -> Sheets:
    """Return the sheets of preferences, those for the same pair in the sheet of one code added up.

    ``outcome`` (rows,) is the weight of the preference, negative for the right item and 0 for a tie. A pair without a
    winner is no contest; a sheet weighs the mean margin of its pairs.
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
    return Sheets(
        starts, starts, code[rows[kept[:n]]], judged[:n], weight, won[:n_units], lost[:n_units],
        np.ones(n_units, np.int32), np.arange(n_units, dtype=np.int32), item[:n_units],
        pair_starts, winner[:n_pairs], loser[:n_pairs], True,
    )  # fmt: skip


def _net(code: Counts, left: Ints, right: Ints, outcome: Floats) -> tuple[Counts, Ints, Ints, Floats]:
    """Code, lower item, higher item and net outcome for the lower one, of each pair of each sheet in order."""
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
    """Pairs of sheets to count: those of two entries in ``use``. ``long`` sheets are sorted for it."""

    sheets: Sheets
    use: Bools
    long: Counts
    parts: Counts

    @classmethod
    def between(cls, sheets: Sheets, use: Bools) -> Agreement:
        """Return the pairs of entries in ``use`` (n_entries,)."""
        if sheets.listed:
            keep = use[sheets.winner] & use[sheets.loser]
            starts = np.concatenate([[0], np.cumsum(keep)])[sheets.pair_starts]
            sheets = sheets._replace(pair_starts=starts, winner=sheets.winner[keep], loser=sheets.loser[keep])
            return cls(sheets, use, np.zeros(0, np.int64), pair_bounds(starts))
        sizes = np.diff(sheets.bounds)
        long = sizes > _LONG_SHEET
        return cls(sheets, use, np.flatnonzero(long), pair_bounds(np.append(0, np.cumsum(np.where(long, 0, sizes**2)))))

    def n_pairs(self) -> Floats:
        """Return the number of pairs of each sheet."""
        sheets = self.sheets
        if sheets.listed:
            return np.diff(sheets.pair_starts).astype(np.float64)
        n = np.bincount(sheets.unit, self.use, len(sheets.won)).astype(np.float64)
        return 0.5 * (_sums(n, sheets.starts) ** 2 - _sums(n**2, sheets.starts))

    def alike(self, lead: Floats, slack: float) -> Floats:
        """Return the number of pairs of each sheet that ``lead`` (n_entries,) orders as the sheet does.

        Differences of up to ``slack`` count half.
        """
        sheets, alike = self.sheets, np.zeros(len(self.sheets.code))
        if sheets.listed:
            pairs = (sheets.pair_starts, sheets.winner, sheets.loser)
            over_bounds(lambda begin, end: _pairs_alike(*pairs, lead, slack, begin, end, alike), self.parts)
            return alike
        levels = (sheets.bounds, sheets.unit, self.use)
        over_bounds(lambda begin, end: _levels_alike(*levels, lead, slack, begin, end, alike), self.parts)
        if len(self.long):
            alike[self.long] = self._long_alike(lead, slack)
        return alike

    def _long_alike(self, lead: Floats, slack: float) -> Floats:
        """The same for long sheets, in n log n steps."""
        sheets, first = self.sheets, self.sheets.bounds[self.long]
        sizes = np.diff(sheets.bounds)[self.long]
        offsets = np.append(0, np.cumsum(sizes))
        group = np.repeat(np.arange(len(sizes)), sizes)
        entry = np.arange(offsets[-1]) + (first - offsets[:-1])[group]
        order = np.lexsort((lead[entry], group))
        climbed = np.cumsum(np.append(False, np.diff(lead[entry][order]) > slack))
        place = np.empty(len(order), np.int64)
        place[order] = climbed - climbed[offsets[:-1]][group]
        alike, total = np.zeros(len(sizes)), np.zeros(len(sizes))
        share = self.use[entry].astype(np.float64)
        concordance(offsets, sheets.unit[entry].astype(np.float64), place, share, alike, total)
        return alike


@njit(cache=True, nogil=True)
def _enter(
    rows: Any, low: Any, high: Any, net: Any, place: Any, seen: Any, starts: Any, pair_starts: Any, judged: Any,
    kept: Any, item: Any, won: Any, lost: Any, winner: Any, loser: Any,
) -> int:  # fmt: skip
    """Number the entries of each sheet and count their contests; return how many sheets have any."""
    n_sheets = n_units = n_pairs = 0
    for s in range(rows.size - 1):
        judged[n_sheets] = 0
        for row in range(rows[s], rows[s + 1]):
            for i in (low[row], high[row]):
                if seen[i] != s:
                    seen[i] = s
                    judged[n_sheets] += 1
                # entries of earlier sheets have smaller numbers
                if net[row] != 0 and place[i] < starts[n_sheets]:
                    place[i] = n_units
                    item[n_units], won[n_units], lost[n_units] = i, 0, 0
                    n_units += 1
            if net[row] != 0:
                i, j = place[low[row]], place[high[row]]
                winner[n_pairs], loser[n_pairs] = (i, j) if net[row] > 0 else (j, i)
                won[winner[n_pairs]] += 1
                lost[loser[n_pairs]] += 1
                n_pairs += 1
        if n_units > starts[n_sheets]:
            kept[n_sheets] = s
            n_sheets += 1
            starts[n_sheets], pair_starts[n_sheets] = n_units, n_pairs
    return n_sheets


@njit(cache=True, nogil=True)
def _pairs_alike(
    starts: Any, winner: Any, loser: Any, lead: Any, slack: float, begin: int, end: int, alike: Any
) -> None:
    """Count the listed pairs of the sheets from begin to end."""
    for s in range(begin, end):
        for pair in range(starts[s], starts[s + 1]):
            gap = lead[winner[pair]] - lead[loser[pair]]
            alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5


@njit(cache=True, nogil=True)
def _levels_alike(bounds: Any, unit: Any, use: Any, lead: Any, slack: float, begin: int, end: int, alike: Any) -> None:
    """Count the pairs between levels of those sheets from begin to end that are not long."""
    for s in range(begin, end):
        if bounds[s + 1] - bounds[s] > _LONG_SHEET:
            continue
        for better in range(bounds[s], bounds[s + 1]):
            for worse in range(bounds[s], better if use[better] else 0):
                if use[worse] and unit[worse] != unit[better]:
                    gap = lead[better] - lead[worse]
                    alike[s] += 1.0 if gap > slack else 0.0 if gap < -slack else 0.5
