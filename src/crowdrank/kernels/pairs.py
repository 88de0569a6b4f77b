"""Pairs of items: preferences counted, sorted and drawn again by pair, which items they connect, and who agrees.

Pairs are stored by their lower item, in compressed rows: ``second[starts[i]:starts[i + 1]]`` are the items above ``i``
that it was compared with, and every array over pairs has one entry for each of them. Items of different queries never
meet, so all queries are worked on at once; only the table of counts needs to know where a query begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from .threads import bind, even_bounds, over_bounds, read_only, sum_over_bounds, total, views

# threshold (equal): pairs counted in a table
_MAX_TABLE_CELLS = 2_000_000
"""Tables of this many pairs are counted directly however few the rows; larger ones only when the rows are many."""

_MAX_TABLE_CELLS_32_BIT = 500_000_000
"""Cells are numbered in 32 bits."""

# threshold (equal): rows of pairs counted in numpy
_MAX_ROWS_IN_NUMPY = 2_000
# threshold (equal): rows of pairs counted by one thread
_ROWS_PER_THREAD = 500_000
_PREFERENCES_PER_THREAD = 100_000
_BLOCK_ROWS = 1024

Cells: TypeAlias = NDArray[np.uint32]
"""Numbers of items, or of cells of a table."""


class OutcomeCounts(NamedTuple):
    """Weighted counts of each pair of items that was compared, ties included.

    ``starts`` (n_items + 1,), ``second`` (n_pairs,), and over pairs the ``wins`` of the lower item, its ``losses`` and
    the ``ties``.
    """

    starts: Counts
    second: Ints
    wins: Floats
    losses: Floats
    ties: Floats

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    def keep(self, chosen: Bools) -> OutcomeCounts:
        """Return some of the pairs only."""
        starts = np.concatenate([[0], np.cumsum(chosen)])[self.starts]
        return OutcomeCounts(starts, self.second[chosen], self.wins[chosen], self.losses[chosen], self.ties[chosen])


def count_pairs(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, offsets: Counts) -> OutcomeCounts:
    """Return the counts of each pair of items; ``offsets`` (n_queries + 1,) bound the items of the queries.

    A table of all pairs of a query is used where it is small or well filled, sorting otherwise, so memory
    grows with the number of rows and never with the square of many items. Few rows are not worth a compiled pass.
    """
    if len(left) <= _MAX_ROWS_IN_NUMPY:
        return count_few_rows(left, right, outcome, weight, int(offsets[-1]))
    sizes = np.diff(offsets)
    cells = int((sizes * (sizes - 1) // 2).sum())
    if cells <= min(max(_MAX_TABLE_CELLS, len(left) // 2), _MAX_TABLE_CELLS_32_BIT):
        return count_in_table(left, right, outcome, weight, offsets)
    return count_by_sorting(left, right, outcome, weight, int(offsets[-1]))


def count_few_rows(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, n_items: int) -> OutcomeCounts:
    """Counts without a compiled pass."""
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    result = np.where(left < right, outcome, -outcome)
    pairs, number = np.unique(low * n_items + high, return_inverse=True)
    count = np.ones(len(left)) if weight is None else weight
    wins, losses, ties = (
        np.bincount(number, count * (result == kind), len(pairs)).astype(np.float64) for kind in (1, -1, 0)
    )
    starts = np.searchsorted(pairs, np.arange(n_items + 1) * n_items)
    return OutcomeCounts(starts, (pairs % max(n_items, 1)).astype(np.int32), wins, losses, ties)


def count_in_table(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, offsets: Counts) -> OutcomeCounts:
    """Counts by one pass over the rows into a table of three cells for each pair of a query's items."""
    rows = row_starts(offsets)
    n_items, n_cells = len(rows) - 1, int(rows[-1])
    # the tie of the pair (i, j), i < j, is counted in cell base[i] + 3 j, losses and wins beside it
    base = (3 * (rows[:-1] - np.arange(1, n_items + 1)) + 1).astype(np.int32)
    given = views(left.view(np.uint32), right.view(np.uint32), outcome, base)
    add = bind(_tally, *given) if weight is None else bind(_tally_weights, *given, read_only(weight))

    def count(begin: int, end: int) -> Any:
        table: Any = np.zeros(3 * n_cells, np.int32 if weight is None else np.float64)
        add(table, begin, end)
        return table

    table = total(over_bounds(count, even_bounds(len(left), max(_ROWS_PER_THREAD, 2 * n_cells))))
    starts, second, counts = np.empty(n_items + 1, np.int64), np.empty(n_cells, np.int32), np.empty((3, n_cells))
    n_pairs = _compress(table, read_only(rows), starts, second, counts)
    losses, ties, wins = counts[:, :n_pairs]
    return OutcomeCounts(starts, second[:n_pairs], wins, losses, ties)


def count_by_sorting(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, n_items: int) -> OutcomeCounts:
    """Counts by sorting one key for each row, made of its pair and its outcome."""
    bits, keys = max(n_items, 1).bit_length(), np.empty(len(left), np.int64)
    bind(_make_keys, *views(left, right, outcome), bits, keys)()
    if weight is None:
        keys.sort()
        weights = np.empty(0)
    else:
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], weight[order]
    n_pairs = int(np.count_nonzero(np.diff(keys >> 2))) + 1 if len(keys) else 0
    starts, second, counts = np.empty(n_items + 1, np.int64), np.empty(n_pairs, np.int32), np.zeros((3, n_pairs))
    _merge(keys, weights, bits, starts, second, counts)
    losses, ties, wins = counts
    return OutcomeCounts(starts, second, wins, losses, ties)


def item_totals(counts: OutcomeCounts) -> tuple[Floats, Floats]:
    """Return what each item won and lost in all, (n_items,) each; a tie is half of both."""
    wins, losses = np.zeros(len(counts.starts) - 1), np.zeros(len(counts.starts) - 1)
    bind(_add_up, *views(*counts), wins, losses)()
    return wins, losses


def pair_numbers(left: Ints, right: Ints, starts: Counts, second: Ints) -> Ints:
    """Return which of the pairs, counted in the order of ``second``, each row compares, (n,)."""
    numbers = np.empty(len(left), np.int32)
    find = bind(_find_pairs, *views(left, right, starts, second), numbers)
    over_bounds(find, even_bounds(len(left), _ROWS_PER_THREAD))
    return numbers


def row_starts(offsets: Counts) -> Counts:
    """First cell of each item's pairs with the later items of its query, and the number of cells at the end."""
    last = np.repeat(offsets[1:], np.diff(offsets))
    return np.concatenate([[0], np.cumsum(last - 1 - np.arange(int(offsets[-1])))]).astype(np.int64)


@njit(cache=True, nogil=True)
def _find_cells(left, right, outcome, base, begin, end, cells):
    """Write the cell of each row from begin to end."""
    for place in range(end - begin):
        i, j = left[begin + place], right[begin + place]
        low, high = min(i, j), max(i, j)
        sign = np.int32(1) if i < j else np.int32(-1)
        cells[place] = np.uint32(base[low] + np.int32(3) * np.int32(high) + sign * np.int32(outcome[begin + place]))


@njit(cache=True, nogil=True)
def _find_pairs(left, right, starts, second, numbers, begin, end):
    """Fill in the number of the pair of each row from begin to end, by halving its row of pairs."""
    for row in range(begin, end):
        low, high = min(left[row], right[row]), max(left[row], right[row])
        first, last = starts[low], starts[low + 1]
        while first < last:
            middle = (first + last) // 2
            if second[middle] < high:
                first = middle + 1
            else:
                last = middle
        numbers[row] = first


@njit(cache=True, nogil=True)
def _tally(left, right, outcome, base, table, begin, end):
    """Add the rows from begin to end to the table, (3 n_cells,): losses, ties, wins of the lower item of each pair."""
    # counting in single bytes keeps the cells of 1,000 items within the second-level cache, and finding the cells of a
    # block first lets the compiler use vectors: together 2.5 times faster than the plain loop
    cells, small = np.empty(_BLOCK_ROWS, np.uint32), np.zeros(table.size, np.uint8)
    for start in range(begin, end, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, end)
        _find_cells(left, right, outcome, base, start, stop, cells)
        for place in range(stop - start):
            cell = cells[place]
            count = np.uint8(small[cell] + np.uint8(1))
            small[cell] = count
            if count == 0:
                table[cell] += 256
    for cell in range(small.size):
        table[cell] += small[cell]


@njit(cache=True, nogil=True)
def _tally_weights(left, right, outcome, base, weight, table, begin, end):
    """Add the weights of the rows from begin to end to the table."""
    cells = np.empty(_BLOCK_ROWS, np.uint32)
    for start in range(begin, end, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, end)
        _find_cells(left, right, outcome, base, start, stop, cells)
        for place in range(stop - start):
            table[cells[place]] += weight[start + place]


@njit(cache=True, nogil=True)
def _compress(table, rows, starts, second, counts):
    """Fill starts, second and counts with the pairs that have any rows; return how many there are."""
    n_pairs = 0
    for i in range(rows.size - 1):
        starts[i] = n_pairs
        for cell in range(rows[i], rows[i + 1]):
            losses, ties, wins = table[3 * cell], table[3 * cell + 1], table[3 * cell + 2]
            if losses + ties + wins > 0:
                second[n_pairs] = i + 1 + cell - rows[i]
                counts[0, n_pairs], counts[1, n_pairs], counts[2, n_pairs] = losses, ties, wins
                n_pairs += 1
    starts[rows.size - 1] = n_pairs
    return n_pairs


@njit(cache=True, nogil=True)
def _make_keys(left, right, outcome, bits, keys):
    """Write a key for each row: its lower item, the other one, and 0, 1 or 2 for loss, tie or win of the lower one."""
    for row in range(left.size):
        low, high = np.int64(min(left[row], right[row])), np.int64(max(left[row], right[row]))
        kind = outcome[row] if left[row] < right[row] else -outcome[row]
        keys[row] = (((low << bits) | high) << 2) + 1 + kind


@njit(cache=True, nogil=True)
def _merge(keys, weight, bits, starts, second, counts):
    """Fill starts, second and counts from sorted keys; each row counts 1 where there are no weights."""
    item, n_pairs, last = 0, 0, -1
    for row in range(keys.size):
        pair = keys[row] >> 2
        if pair != last:
            while item <= pair >> bits:
                starts[item] = n_pairs
                item += 1
            second[n_pairs] = pair & ((1 << bits) - 1)
            n_pairs += 1
            last = pair
        counts[keys[row] & 3, n_pairs - 1] += weight[row] if weight.size else 1.0
    starts[item:] = n_pairs


@njit(cache=True, nogil=True)
def _add_up(starts, second, won, lost, tied, wins, losses):
    """Add the wins and losses of each pair, (n_pairs,), to those of its two items, (n_items,)."""
    for i in range(wins.size):
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            up, down = won[pair] + 0.5 * tied[pair], lost[pair] + 0.5 * tied[pair]
            wins[i] += up
            losses[i] += down
            wins[j] += down
            losses[j] += up


class PreferencesByPair(NamedTuple):
    """Preferences sorted by pair, for models that pass over all of them again and again.

    Pairs are in compressed rows. The preferences about a pair are those from ``bounds[pair]`` up to the next,
    ``bounds`` (n_pairs + 1,). Over preferences are ``code``, 4 times the annotator plus 0, 1 or 2 for a loss, tie or
    win of the lower item, and ``weight``, empty where all weigh 1. ``parts`` bounds stretches of items with about
    equally many preferences, one for each thread.
    """

    starts: Counts
    second: Ints
    bounds: Counts
    code: Ints
    weight: Floats
    parts: Counts

    @classmethod
    def of(cls, starts: Counts, second: Ints, bounds: Counts, code: Ints, weight: Floats) -> PreferencesByPair:
        """Return the preferences with the parts for threads."""
        begins = bounds[starts]
        parts = np.searchsorted(begins, even_bounds(len(code), _PREFERENCES_PER_THREAD))
        parts[0], parts[-1] = 0, len(begins) - 1
        columns: Any = (*views(starts, second, bounds, code, weight), parts)
        return cls(*columns)

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    @property
    def pair(self) -> Ints:
        """The pair that each preference is about."""
        return np.repeat(np.arange(len(self.second), dtype=np.int32), np.diff(self.bounds))

    @property
    def annotator(self) -> Ints:
        """Who gave each preference."""
        return self.code >> 2

    @property
    def outcome(self) -> Floats:
        """1 where the lower item won, -1 where it lost, 0 for a tie, of each preference."""
        return (self.code & 3).astype(np.float64) - 1.0

    @property
    def amount(self) -> Floats | float:
        """Weight of each preference, or the 1 that all weigh where none was given."""
        return self.weight if self.weight.size else 1.0

    def every(self, step: int) -> PreferencesByPair:
        """Return the preferences about every n-th pair only."""
        chosen = np.arange(0, len(self.second), step)
        sizes = np.diff(self.bounds)[chosen]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.bounds[chosen] - bounds[:-1], sizes) + np.arange(bounds[-1])
        return self._with_rows(-(-self.starts // step), self.second[chosen], bounds, rows)

    def without(self, annotators: Bools) -> PreferencesByPair:
        """Return the preferences of other annotators only; the pairs stay."""
        keep = ~annotators[self.annotator]
        return self._with_rows(self.starts, self.second, np.concatenate([[0], np.cumsum(keep)])[self.bounds], keep)

    def _with_rows(self, starts: Counts, second: Ints, bounds: Counts, rows: Counts | Bools) -> PreferencesByPair:
        """Some of the preferences, about these pairs."""
        weight = self.weight[rows] if self.weight.size else self.weight
        return PreferencesByPair.of(starts, second, bounds, self.code[rows], weight)


def sort_by_pair(
    left: Ints, right: Ints, outcome: Outcomes, annotator: Ints, weight: Floats | None, n_items: int, *, ties: bool
) -> tuple[PreferencesByPair, OutcomeCounts]:
    """Return the preferences by pair, and the counts of each pair; ties are no preferences unless they are wanted."""
    n = len(left)
    amount = read_only(np.empty(0) if weight is None else weight)
    moved, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    spare_weight, moved_weight = np.empty(len(amount)), np.empty(len(amount))
    begins = np.zeros(n_items + 1, np.int64)
    columns = views(left, right, outcome, annotator)
    bind(_sort_rows, *columns, amount, moved, moved_weight, begins, spare, spare_weight)()
    starts, second, bounds = np.empty(n_items + 1, np.int64), np.empty(n, np.int32), np.empty(n + 1, np.int64)
    code, counts = np.empty(n, np.int32), np.zeros((3, n))
    n_pairs = _mark_pairs(begins, moved, moved_weight, ties, starts, second, bounds, code, spare_weight, counts)
    losses, tied, wins = counts[:, :n_pairs].copy()
    second, bounds = second[:n_pairs].copy(), bounds[: n_pairs + 1].copy()
    code, spare_weight = code[: bounds[-1]], spare_weight[: bounds[-1]]
    preferences = PreferencesByPair.of(starts, second, bounds, code, spare_weight)
    return preferences, OutcomeCounts(starts, second, wins, losses, tied)


@njit(cache=True, nogil=True)
def _sort_rows(left, right, outcome, annotator, weight, moved, spare_weight, begins, by_high, by_high_weight):
    """Fill moved with rows (higher item, code) sorted by pair, spare_weight with their weights, begins by lower item.

    Rows are sorted by counting: by the higher item, and then, in that order, by the lower one.
    """
    n_items = begins.size - 1
    after = np.zeros(n_items + 1, np.int64)
    for row in range(left.size):
        low, high = min(left[row], right[row]), max(left[row], right[row])
        after[high + 1] += 1
        begins[low + 1] += 1
    for i in range(n_items):
        after[i + 1] += after[i]
        begins[i + 1] += begins[i]
    for row in range(left.size):
        low, high, won = left[row], right[row], outcome[row]
        if low > high:
            low, high, won = high, low, -won
        place = after[high]
        after[high] = place + 1
        by_high[place] = (np.int64(low) << 32) | np.int64(4 * annotator[row] + won + 1)
        if weight.size:
            by_high_weight[place] = weight[row]
    place_of, row = begins[:n_items].copy(), 0
    for high in range(n_items):
        while row < after[high]:
            low = by_high[row] >> 32
            place = place_of[low]
            place_of[low] = place + 1
            moved[place] = (np.int64(high) << 32) | (by_high[row] & 0xFFFFFFFF)
            if weight.size:
                spare_weight[place] = by_high_weight[row]
            row += 1


@njit(cache=True, nogil=True)
def _mark_pairs(begins, moved, spare_weight, ties, starts, second, bounds, code, weight, counts):
    """Fill in pairs, bounds, codes, weights and, (3, n), losses, ties and wins; return how many pairs there are."""
    n_pairs = n_kept = 0
    for i in range(begins.size - 1):
        starts[i] = n_pairs
        last = -1
        for row in range(begins[i], begins[i + 1]):
            high, given = moved[row] >> 32, moved[row] & 0xFFFFFFFF
            if high != last:
                last = high
                second[n_pairs], bounds[n_pairs] = high, n_kept
                n_pairs += 1
            kind = given & 3
            counts[kind, n_pairs - 1] += spare_weight[row] if spare_weight.size else 1.0
            if kind != 1 or ties:
                code[n_kept] = given
                if spare_weight.size:
                    weight[n_kept] = spare_weight[row]
                n_kept += 1
    starts[begins.size - 1] = n_pairs
    bounds[n_pairs] = n_kept
    return n_pairs


def side_differences(left: Ints, right: Ints, values: Floats, n_items: int) -> Floats:
    """Return for each item the sums of rows of ``values`` (n, k) where it stands left less those right."""
    sums = np.zeros((n_items, values.shape[1]))
    bind(_add_differences, *views(left, right, values), sums)()
    return sums


def side_moments(
    left: Ints, right: Ints, weight: Floats, values: Floats, n_items: int
) -> tuple[Floats, Floats, Floats]:
    """Return weighted sums of rows of ``values`` (n, k): by item, left less right, in all, and of products of columns.

    They have the shapes (n_items, k), (k,) and (k, k).
    """
    k, bounds = values.shape[1], even_bounds(len(left), max(_PREFERENCES_PER_THREAD, n_items))
    add = bind(_add_moments, *views(left, right, weight, values))
    differences, sums, lower = sum_over_bounds(add, bounds, (n_items, k), k, (k, k))
    return differences, sums, lower + np.tril(lower, -1).T


@njit(cache=True, nogil=True)
def _add_differences(left, right, values, sums):
    """Add each row to the sums of its left item, and take it from those of its right item."""
    for row in range(len(left)):
        for c in range(values.shape[1]):
            sums[left[row], c] += values[row, c]
            sums[right[row], c] -= values[row, c]


@njit(cache=True, nogil=True)
def _add_moments(left, right, weight, values, begin, end, items, sums, products):
    """Add the rows from begin to end; of products only the lower triangle."""
    for row in range(begin, end):
        for c in range(values.shape[1]):
            value = weight[row] * values[row, c]
            items[left[row], c] += value
            items[right[row], c] -= value
            sums[c] += value
            for other in range(c + 1):
                products[c, other] += value * values[row, other]


_OUTCOMES_PER_THREAD = 2_000_000
_OUTCOMES_PER_BLOCK = 256
"""Rows that are read together, enough for memory to be read ahead."""


def count_outcomes(annotator: Ints, outcome: Outcomes, n: int, step: int = 1) -> Counts:
    """Return how often each of ``n`` annotators chose right, tied and chose left, (n, 3).

    With a ``step`` of 2 or more it looks at one in ``step`` blocks of 256 rows.
    """
    who, result = read_only(annotator), read_only(outcome)

    def count(begin: int, end: int) -> Ints:
        counts = np.zeros(3 * n, np.int32)
        _tally_outcomes(who, result, begin, end, step, counts)
        return counts

    counts = total(over_bounds(count, even_bounds(len(outcome), step * max(_OUTCOMES_PER_THREAD, 3 * n))))
    return counts.reshape(n, 3).astype(np.int64)


@njit(cache=True, nogil=True)
def _tally_outcomes(annotator, outcome, begin, end, step, counts):
    """Add the rows from begin to end, or some blocks of them, to the counts, (3 n,)."""
    # numbers without a sign need no look for places counted from the end, which halves the time
    for start in range(begin, end, _OUTCOMES_PER_BLOCK * step):
        for row in range(start, min(start + _OUTCOMES_PER_BLOCK, end)):
            cell = np.uint64(annotator[row]) * np.uint64(3) + np.uint64(outcome[row] + 1)
            counts[cell] += np.int32(1)


@njit(cache=True, nogil=True)
def concordance(offsets, grade, place, weight, agree, total):
    """Weigh the pairs of each group with unequal grades, and those that the places order the same way.

    Rows are sorted by group and then by grade. A pair weighs the product of its weights; equal places count half.

    Parameters
    ----------
    offsets : (n_groups + 1,) int64
        Rows of group g are ``offsets[g]`` to ``offsets[g + 1]``.
    grade : (n_rows,) float64
        Never falling within a group.
    place : (n_rows,) int64
        Place of each row by the other order, 0 (worst) to the group's size less one; equal where that order ties.
    weight : (n_rows,) float64
    agree, total : (n_groups,) float64
        Filled with the weight of the agreeing pairs and of all pairs.
    """
    tree = _empty_tree(offsets)
    for g in range(len(offsets) - 1):
        start, stop = offsets[g], offsets[g + 1]
        n = stop - start
        tree[: n + 1] = 0.0
        below = 0.0
        i = start
        while i < stop:
            j = i
            while j < stop and grade[j] == grade[i]:
                agree[g] += weight[j] * _weight_below(tree, place[j])
                total[g] += weight[j] * below
                j += 1
            for row in range(i, j):
                below += weight[row]
                _add(tree, n, place[row], weight[row])
            i = j


@njit(cache=True, nogil=True)
def row_concordance(offsets, grade, place, weight):
    """Return each row's pairs in agreement, all its pairs, and those it is above less those below, (n_rows,) each.

    Arguments are as in :func:`concordance`; a row's pair weighs as much as the other row.
    """
    n_rows = len(grade)
    agree, total, lean = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
    tree = _empty_tree(offsets)
    for g in range(len(offsets) - 1):
        start, stop = offsets[g], offsets[g + 1]
        n = stop - start
        for upward in (True, False):
            tree[: n + 1] = 0.0
            seen = 0.0
            i = 0
            while i < n:
                j = i
                level = grade[start + i if upward else stop - 1 - i]
                while j < n and grade[start + j if upward else stop - 1 - j] == level:
                    row = start + j if upward else stop - 1 - j
                    lower = _weight_below(tree, place[row])
                    agree[row] += lower if upward else seen - lower
                    total[row] += seen
                    lean[row] += seen if upward else -seen
                    j += 1
                for step in range(i, j):
                    row = start + step if upward else stop - 1 - step
                    seen += weight[row]
                    _add(tree, n, place[row], weight[row])
                i = j
    return agree, total, lean


@njit(cache=True, nogil=True)
def _empty_tree(offsets):
    """Return a Fenwick tree with room for the largest group."""
    largest = 0
    for g in range(len(offsets) - 1):
        largest = max(largest, offsets[g + 1] - offsets[g])
    return np.zeros(largest + 1)


@njit(cache=True, nogil=True)
def _weight_below(tree, place):
    """Return the weight that was added at lower places, and half of that at this one."""
    up_to, before, k = 0.0, 0.0, place + 1
    while k > 0:
        up_to += tree[k]
        k -= k & -k
    k = place
    while k > 0:
        before += tree[k]
        k -= k & -k
    return 0.5 * (up_to + before)


@njit(cache=True, nogil=True)
def _add(tree, n, place, weight):
    """Add weight at one of n places."""
    k = place + 1
    while k <= n:
        tree[k] += weight
        k += k & -k


@njit(cache=True, nogil=True)
def count_by_fold(left, right, outcome, weight, fold, numbers, counts):
    """Add the weight of each preference to its fold, pair and outcome (loss, tie, win of the lower item).

    Parameters
    ----------
    left, right : (n,) int32, outcome : (n,) int8, fold : (n,) int8
        Preferences, and the fold of each; below 0 for none.
    weight : (n,) or (0,) float64
        Weights; none are ones.
    numbers : (n_items, n_items) int32
        Numbers of the pairs.
    counts : (n_folds, n_pairs, 3) float64
        Added to.
    """
    weighted = len(weight) > 0
    for row in range(len(left)):
        if fold[row] < 0:
            continue
        one, other, result = left[row], right[row], outcome[row]
        if one > other:
            one, other, result = other, one, -result
        counts[fold[row], numbers[one, other], result + 1] += weight[row] if weighted else 1.0


@njit(cache=True, nogil=True)
def add_agreement(left, right, outcome, weight, annotator, fold, scores, covered, agree, total):
    """Add up, for each annotator, the preferences that the scores of the others order alike, and all that can be told.

    Parameters
    ----------
    left, right, annotator : (n,) int32, outcome : (n,) int8, weight : (n,) or (0,) float64
        Preferences.
    fold : (n_annotators,) int8
        Fold of each annotator.
    scores, covered : (n_folds, n_items) float64, bool
        Scores without each fold, and which items these tell of.
    agree, total : (n_annotators,) float64
        Added to; equal scores count half.
    """
    weighted = len(weight) > 0
    for row in range(len(left)):
        part = fold[annotator[row]]
        one, other = left[row], right[row]
        if outcome[row] == 0 or not (covered[part, one] and covered[part, other]):
            continue
        each = weight[row] if weighted else 1.0
        gap = scores[part, one] - scores[part, other]
        total[annotator[row]] += each
        if gap == 0.0:
            agree[annotator[row]] += 0.5 * each
        elif (gap > 0.0) == (outcome[row] > 0):
            agree[annotator[row]] += each


@njit(cache=True, nogil=True)
def add_likeness(left, right, outcome, weight, annotator, n_items, like, company):
    """Add up, for each annotator, the share of preferences about their items like theirs, and the weight of all these.

    Parameters
    ----------
    left, right, annotator : (n,) int32, outcome : (n,) int8, weight : (n,) or (0,) float64
        Preferences, each of which counts for both its items; no weights are ones.
    n_items : int
        Number of items.
    like, company : (n_annotators,) float64
        Added to.
    """
    weighted = len(weight) > 0
    cells, of_item = np.zeros((n_items, 3)), np.zeros(n_items)
    for row in range(len(left)):
        each = weight[row] if weighted else 1.0
        cells[left[row], 1 + outcome[row]] += each
        cells[right[row], 1 - outcome[row]] += each
    for item in range(n_items):
        of_item[item] = cells[item, 0] + cells[item, 1] + cells[item, 2]
    for row in range(len(left)):
        each = weight[row] if weighted else 1.0
        one, other = left[row], right[row]
        like[annotator[row]] += each * (
            cells[one, 1 + outcome[row]] / of_item[one] + cells[other, 1 - outcome[row]] / of_item[other]
        )
        company[annotator[row]] += each * (of_item[one] + of_item[other])


# Which items pairs connect


@njit(cache=True, nogil=True)
def group_leader(group, item):
    """Return the item that leads the group of an item; shortens the way to it."""
    while group[item] != item:
        group[item] = group[group[item]]
        item = group[item]
    return item


@njit(cache=True, nogil=True)
def settle_groups(group):
    """Name each item's group by its leader; leaders come first, so theirs is settled."""
    for item in range(group.size):
        group[item] = group[group[item]]


def connected_groups(starts: Counts, second: Ints, offsets: Counts) -> Ints:
    """Return for each item the lowest item it is connected with, (n_items,).

    Stops once each query is one group: 0.5 ms for a million pairs, against 29 ms for ``connected_components`` of scipy.
    """
    n_items = len(starts) - 1
    first, other = views(np.repeat(np.arange(n_items, dtype=np.int32), np.diff(starts)), second)
    most = n_items - int(np.count_nonzero(np.diff(offsets)))
    return join_rows(first, other, np.ones(len(second), bool), n_items, most)[0]


def reachable_items(starts: Counts, second: Ints, up: Bools, down: Bools, seeds: Bools) -> Bools:
    """Return which items can be reached from the seeds, (n_items,).

    ``up`` says of each pair whether it may be followed from its lower item to the other, ``down`` the way back.
    """
    is_reached, news = seeds.copy(), 1
    follow = bind(_follow, *views(starts, second, up, down), is_reached)
    while news:
        news = follow(len(is_reached) - int(np.count_nonzero(is_reached)))
    return is_reached


@njit(cache=True, nogil=True)
def _follow(starts, second, up, down, is_reached, left):
    """Follow every pair once, from the first item on and then back, while items are left; return how many it found."""
    news = 0
    for step in range(2 * is_reached.size):
        if news == left:
            break
        i = step if step < is_reached.size else 2 * is_reached.size - 1 - step
        for pair in range(starts[i], starts[i + 1]):
            j = second[pair]
            if up[pair] and is_reached[i] and not is_reached[j]:
                is_reached[j] = True
                news += 1
            elif down[pair] and is_reached[j] and not is_reached[i]:
                is_reached[i] = True
                news += 1
    return news


# Rows drawn again: how often, what is judged in them, and which items they connect

_DRAW_BITS = 13
_DRAW_BLOCK = 1 << _DRAW_BITS
"""Units whose draws are tallied together, so their counters stay in the nearest cache."""


def draw_alike(n_units: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return how often each of ``n_units`` is drawn when as many are drawn with replacement, (n_units,).

    How many draws fall into each block of 8192 units is multinomial, and where within it takes 13 random bits a draw:
    a third of the time of drawing from all units at once.
    """
    sizes = np.full(-(-n_units // _DRAW_BLOCK), _DRAW_BLOCK)
    sizes[-1] += n_units - int(sizes.sum())
    ends = np.cumsum(rng.multinomial(n_units, sizes / n_units))
    n_full = int(ends[-2]) if len(ends) > 1 else 0
    counts = np.zeros(n_units, np.uint8)
    _tally_draws(rng.bit_generator.random_raw(-(-n_full // 4)).view(np.uint16), ends[:-1], counts)
    last = rng.integers(0, sizes[-1], n_units - n_full, dtype=np.uint16)
    _tally_draws(last, np.array([len(last)]), counts[(len(sizes) - 1) << _DRAW_BITS :])
    return counts


@njit(cache=True, nogil=True)
def _tally_draws(places, ends, counts):
    """Add the draws of each block, (n_draws,), to the counts of its units, (n_units,)."""
    begin = 0
    for block in range(ends.size):
        within = counts[block << _DRAW_BITS :]
        for draw in range(begin, ends[block]):
            within[places[draw] & (_DRAW_BLOCK - 1)] += np.uint8(1)
        begin = ends[block]


@njit(cache=True, nogil=True)
def mark_drawn(items, drawn, judged):
    """Mark the items, (n_items,), of the rows that were drawn, (n_rows,)."""
    for row in range(items.size):
        # without a branch, which could not be foreseen
        judged[items[row]] |= drawn[row]


def join_rows(first: Ints, second: Ints, drawn: Bools, n_items: int, most: int | None = None) -> tuple[Ints, int]:
    """Return the lowest item that each item is connected with by drawn rows, (n_items,), and how many joins it took.

    With ``most`` joins nothing is left to join, and the rest of the rows is not looked at.
    """
    group = np.arange(n_items, dtype=np.int32)
    return group, _join_rows(first, second, drawn, group, n_items if most is None else most)


@njit(cache=True, nogil=True)
def _join_rows(first, second, drawn, group, most):
    """Join the groups of the two items of each drawn row; return how often there were two."""
    n_joins = 0
    for row in range(first.size):
        if n_joins >= most:
            break
        if not drawn[row]:
            continue
        a, b = group_leader(group, first[row]), group_leader(group, second[row])
        if a != b:
            n_joins += 1
            group[max(a, b)] = min(a, b)
    settle_groups(group)
    return n_joins
