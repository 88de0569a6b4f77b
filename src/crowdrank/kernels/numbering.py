"""Numbers for texts and rows by hashes, and numbers of items that follow from who met whom."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Counts, Ints
from .threads import even_bounds, over_bounds, read_only

_ROWS_PER_THREAD = 250_000


@njit(cache=True, nogil=True)
def number_hashes(known, known_check, hashes, checks, capacity, numbers):
    """Number texts by their pair of hashes: known ones first, then others in order of first appearance.

    Parameters
    ----------
    known, known_check : (n_known,) uint64
        Two independent hashes of texts that are all different.
    hashes, checks : (n,) uint64
        The same two of each row's text.
    capacity : int
        Most distinct texts there is room for; a small one keeps the table in the cache.
    numbers : (n,) int32
        Filled with the number of each row's text.

    Returns
    -------
    (n_new,) int64
        The row in which each text that was not known first appears; a single -1 where there was too little room.
    """
    size = 1
    while size < 2 * capacity:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    # side by side, as they are looked up together
    hashes_of = np.empty((capacity, 2), np.uint64)
    first = np.empty(capacity, np.int64)
    n_known, n_distinct = len(known), 0
    for row in range(-n_known, len(hashes)):
        one = known[row + n_known] if row < 0 else hashes[row]
        two = known_check[row + n_known] if row < 0 else checks[row]
        place = one & mask
        while True:
            number = slots[place]
            if number < 0:
                if n_distinct == capacity:
                    return np.full(1, -1, np.int64)
                number = n_distinct
                slots[place] = number
                hashes_of[number, 0], hashes_of[number, 1], first[number] = one, two, row
                n_distinct += 1
                break
            if hashes_of[number, 0] == one and hashes_of[number, 1] == two:
                break
            place = (place + np.uint64(1)) & mask
        if row >= 0:
            numbers[row] = number
    return first[n_known:n_distinct].copy()


@njit(cache=True, nogil=True)
def hash_texts(data, ends):
    """Hash texts by FNV-1a and the finishing steps of SplitMix64: the same on every machine and in every version.

    Parameters
    ----------
    data : (n_bytes,) uint8
        The texts in UTF-8, one behind the other.
    ends : (n,) int64
        Where each text ends.

    Returns
    -------
    (n,) uint64
    """
    hashes = np.empty(len(ends), np.uint64)
    start = 0
    for row in range(len(ends)):
        state = np.uint64(0xCBF29CE484222325)
        for place in range(start, ends[row]):
            state = (state ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
        hashes[row] = mix_bits(state - _STEP)
        start = ends[row]
    return hashes


@njit(cache=True, nogil=True)
def count_before(numbers):
    """Count how many earlier rows have the same number.

    Parameters
    ----------
    numbers : (n,) uint64
        Well mixed numbers, since their last bits say where they are looked up.

    Returns
    -------
    (n,) int64
    """
    size = 1
    while size < 2 * len(numbers):
        size *= 2
    mask = np.uint64(size - 1)
    row_of, seen = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    before = np.empty(len(numbers), np.int64)
    for row in range(len(numbers)):
        place = numbers[row] & mask
        while row_of[place] >= 0 and numbers[row_of[place]] != numbers[row]:
            place = (place + np.uint64(1)) & mask
        row_of[place] = row
        before[row] = seen[place]
        seen[place] += 1
    return before


def mix_column(state: NDArray[np.uint64], column: NDArray[Any]) -> None:
    """Mix a column of whole numbers (n,) into the state (n,) uint64 of each row, in place (SplitMix64)."""
    values = read_only(column)
    over_bounds(lambda begin, end: _mix_rows(state, values, begin, end), even_bounds(len(state), _ROWS_PER_THREAD))


@njit(cache=True, nogil=True)
def _mix_rows(state, column, begin, end):
    """Mix the rows from ``begin`` up to ``end``."""
    for row in range(begin, end):
        state[row] = mix_bits(state[row] ^ np.uint64(column[row]))


@njit(cache=True, nogil=True)
def mark_cells(row, column, table):
    """Set the cells (row, column) of a table, (n_rows, n_columns) int32, to 1; row and column are int32, (n,)."""
    for place in range(len(row)):
        table[row[place], column[place]] = 1


@njit(cache=True, nogil=True)
def number_cells(table):
    """Number the cells of a table that are 1 from 0 on, in place; return the row and the column of each, (n,) int32."""
    n = table.sum()
    rows, columns = np.empty(n, np.int32), np.empty(n, np.int32)
    number = 0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            if table[row, column]:
                table[row, column] = number
                rows[number], columns[number] = row, column
                number += 1
    return rows, columns


@njit(cache=True, nogil=True)
def read_cells(row, column, table):
    """Return what stands in the cells (row, column) of a table, (n,) int32."""
    values = np.empty(len(row), np.int32)
    for place in range(len(row)):
        values[place] = table[row[place], column[place]]
    return values


@njit(cache=True, nogil=True)
def count_repeats(first, second, n_second, third, n_third, n_cells):
    """Count the rows whose three codes stood together in an earlier row.

    Rows are put together by their first code, so that one small table of bits serves each of them in turn: a table of
    all combinations is read at random places, which takes three times as long.

    Parameters
    ----------
    first, second, third : (n_rows,) int32
        Codes; ``third`` may be empty, with ``n_third`` 1.
    n_second, n_third : int
        Number of codes of the second and third column.
    n_cells : int
        Number of possible combinations.
    """
    width = n_second * n_third
    start = np.zeros(n_cells // width + 1, np.int64)
    for row in range(len(first)):
        start[first[row] + 1] += 1
    for code in range(1, len(start)):
        start[code] += start[code - 1]
    place = start[:-1].copy()
    keys = np.empty(len(first), np.int64)
    for row in range(len(first)):
        key = np.int64(second[row])
        if n_third > 1:
            key = key * n_third + third[row]
        keys[place[first[row]]] = key
        place[first[row]] += 1
    seen = np.zeros((width + 7) >> 3, np.uint8)
    repeats = 0
    for code in range(len(start) - 1):
        for row in range(start[code], start[code + 1]):
            bit = np.uint8(1 << (keys[row] & 7))
            if seen[keys[row] >> 3] & bit:
                repeats += 1
            seen[keys[row] >> 3] |= bit
        for row in range(start[code], start[code + 1]):
            seen[keys[row] >> 3] = 0
    return repeats


Numbers: TypeAlias = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HIGH, _MIDDLE, _LOW = np.uint64(30), np.uint64(27), np.uint64(31)

_MAX_PAIR_VISITS = 1 << 27
"""Pairs looked at in all rounds together; long chains of preferences may need more, and then names decide."""


@njit(cache=True, nogil=True)
def mix_bits(value):
    """Return a number whose every bit depends on all bits of the value [Steele14]_."""
    value = value + _STEP
    value = (value ^ (value >> _HIGH)) * _FIRST
    value = (value ^ (value >> _MIDDLE)) * _SECOND
    return value ^ (value >> _LOW)


def structure_numbers(starts: Counts, second: Ints, up: Numbers, down: Numbers, offsets: Counts) -> Numbers:
    """Return a number for each item, (n_items,), the same for items of a query whose preferences look alike.

    ``up`` and ``down`` (n_pairs,) label a pair as its lower item and as the other one sees it; ``offsets`` bound the
    items of the queries. What other queries hold changes nothing.
    """
    rows, columns, above, below = read_only(starts), read_only(second), read_only(up), read_only(down)
    n_items, query = len(starts) - 1, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    linked = np.diff(starts) > 0
    linked[second] = True
    sizes = np.bincount(query[linked], minlength=len(offsets) - 1)
    numbers, before = np.zeros(n_items, np.uint64), np.minimum(sizes, 1)
    active, rounds, visits = sizes > 1, 1, 0
    while active.any():
        # looking for what is new takes longer than a round, so it is done after 1, 2, 4, ... of them
        for _ in range(rounds):
            following = numbers.copy()
            chosen, sums = read_only(active[query] & linked), np.zeros(n_items, np.uint64)
            _refine(rows, columns, above, below, read_only(numbers), chosen, sums, following)
            numbers = following
        rounds, visits = 2 * rounds, visits + rounds * len(second)
        # how many different numbers the linked items of each query have
        order = np.lexsort((numbers[linked], query[linked]))
        ranked, of_query = numbers[linked][order], query[linked][order]
        new = np.append(True, (of_query[1:] != of_query[:-1]) | (ranked[1:] != ranked[:-1]))
        distinct = np.bincount(of_query[new], minlength=len(sizes))
        active &= (distinct > before) & (distinct < sizes)
        before = distinct
        if visits > _MAX_PAIR_VISITS and active.any():
            open_items = np.flatnonzero(active[query] & linked)
            numbers[open_items] += open_items.astype(np.uint64)
            break
    return numbers


@njit(cache=True, nogil=True)
def _refine(starts, second, up, down, numbers, active, sums, following):
    """Fill in the following number of each active item, (n_items,); sums that wrap do not depend on their order."""
    for i in range(active.size):
        if active[i]:
            for pair in range(starts[i], starts[i + 1]):
                j = second[pair]
                sums[i] += mix_bits(numbers[j] ^ up[pair])
                sums[j] += mix_bits(numbers[i] ^ down[pair])
    for i in range(active.size):
        if active[i]:
            following[i] = mix_bits(mix_bits(numbers[i]) + sums[i])
