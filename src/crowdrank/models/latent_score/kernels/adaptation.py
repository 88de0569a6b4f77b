"""What annotators who adapt take off the curvature of scores, from answers sorted by cell.

Each answer ties its cell to two parameters of its annotator, discrimination and bias, by ``ties`` (n_answers, 2),
scaled so that each parameter has variance 1. The tie of an annotator to an item is the sum over the answers about it,
taken negatively for the second item of a pair; with these in the columns of ``U``, what is taken off is ``U U'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import over_bounds, read_only, total
from ....protocols import Counts, Floats
from .ordinal import Answering, Cells, favoured, level_ends, readable

_LEAST_CHANCE = 1e-12
_SMALL_ITEMS = 64


def answer_ties(cells: Cells, answering: Answering, gap: Floats, variance: Floats, adapt: Floats) -> Floats:
    """Return how each answer ties its cell to the parameters of its annotator, (n_answers, 2).

    ``adapt`` (n_annotators, 3) has what the bias moves with the discrimination, and the standard deviations of the
    discrimination, and of the bias where that is known; the rest is as in :func:`~.ordinal.item_pass`.
    """
    ties = np.empty((len(cells.who), 2))
    given = (*cells[2:6], *readable(answering), read_only(gap), read_only(variance), float(answering.scale))
    habits = read_only(adapt)

    def work(begin: int, end: int) -> None:
        _tie(*given, habits, begin, end, ties)

    over_bounds(work, cells.parts)
    return ties


@njit(cache=True, nogil=True)
def _tie(
    bounds: Any, who: Any, level: Any, weight: Any, own: Any, favourites: Any, centre: float, cuts: Any, gap: Any,
    variance: Any, scale: float, adapt: Any, begin: int, end: int, ties: Any,
) -> None:  # fmt: skip
    """Fill in the ties of the answers of cells begin to end."""
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        for row in range(bounds[cell], bounds[cell + 1]):
            a, side, y = who[row] >> 2, 1.0 - (who[row] & 3), level[row]
            eta = own[a, 0] * d + side * own[a, 5]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + side * own[a, 3]) + abs(side) * own[a, 4]
            flat, upper, lower = level_ends(eta, spread, own[a, 6], centre, cuts, y)
            rho, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            if lapse > 0.0:
                meant = (1.0 - lapse) * max(upper - lower, _LEAST_CHANCE)
                rho *= meant / (meant + lapse * favoured(favourites, a, y, cuts.size - y, side))
            h = rho * flat * (upper * (1.0 - upper) + lower * (1.0 - lower))
            of_bias = side * h * own[a, 0]
            of_alpha = h * own[a, 0] * scale * d - rho * scale * (upper + lower - 1.0)
            ties[row, 0] = (of_alpha - adapt[a, 0] * of_bias) * adapt[a, 1]
            ties[row, 1] = of_bias * adapt[a, 2]


def adapted_blocks(cells: Cells, ties: Floats, n_annotators: int, firsts: Counts, size: int) -> Floats:
    """Return what is taken off the matrices of queries of ``size`` items from ``firsts`` on, (n, size, size)."""
    blocks = np.zeros((len(firsts), size, size))
    begins, ends = np.searchsorted(cells.first, firsts), np.searchsorted(cells.first, firsts + size)
    most = int(np.max(cells.bounds[ends] - cells.bounds[begins], initial=0))
    place, who = np.full(n_annotators, -1, np.int64), np.empty(min(most, n_annotators), np.int64)
    rows = np.zeros((2 * len(who), size))
    given = (cells.first, cells.second, cells.bounds, cells.who, read_only(ties))
    if size <= _SMALL_ITEMS:
        _take_off(*given, begins, ends, firsts, place, who, rows, blocks)
        return blocks
    for number, (begin, end, first) in enumerate(zip(begins, ends, firsts, strict=True)):
        n = _gather_rows(*given, begin, end, first, place, who, rows)
        blocks[number] = rows[: 2 * n].T @ rows[: 2 * n]
        _forget(place, who, rows, n)
    return blocks


@njit(cache=True, nogil=True)
def _gather_rows(
    first: Any, second: Any, bounds: Any, who: Any, ties: Any, begin: int, end: int, item: int, place: Any,
    present: Any, rows: Any,
) -> int:  # fmt: skip
    """Add up the ties of each annotator to the items from ``item`` on, two rows each; return how many annotators."""
    n = 0
    for cell in range(begin, end):
        i, j = first[cell] - item, second[cell] - item if second.size else -1
        for row in range(bounds[cell], bounds[cell + 1]):
            a = who[row] >> 2
            if place[a] < 0:
                place[a] = n
                present[n] = a
                n += 1
            at = 2 * place[a]
            rows[at, i] += ties[row, 0]
            rows[at + 1, i] += ties[row, 1]
            if j >= 0:
                rows[at, j] -= ties[row, 0]
                rows[at + 1, j] -= ties[row, 1]
    return n


@njit(cache=True, nogil=True)
def _forget(place: Any, present: Any, rows: Any, n: int) -> None:
    """Make ready for the next query."""
    for number in range(n):
        place[present[number]] = -1
        rows[2 * number] = 0.0
        rows[2 * number + 1] = 0.0


@njit(cache=True, nogil=True)
def _take_off(
    first: Any, second: Any, bounds: Any, who: Any, ties: Any, begins: Any, ends: Any, firsts: Any, place: Any,
    present: Any, rows: Any, blocks: Any,
) -> None:  # fmt: skip
    """Fill in the blocks of small queries, where annotators judge few of the items each."""
    size = blocks.shape[1]
    for query in range(firsts.size):
        n = _gather_rows(
            first, second, bounds, who, ties, begins[query], ends[query], firsts[query], place, present, rows
        )
        for number in range(2 * n):
            for i in range(size):
                value = rows[number, i]
                if value != 0.0:
                    for j in range(size):
                        blocks[query, i, j] += value * rows[number, j]
        _forget(place, present, rows, n)


def adapted_products(parts: list[tuple[Cells, Floats]], n_annotators: int, columns: Floats) -> Floats:
    """Return what is taken off, times columns (n_items, n), for the answers and ties of each kind."""
    image = np.zeros(columns.shape)
    given: Any = read_only(columns)
    n = columns.shape[1]
    for cells, ties in parts:
        rows: Any = (cells.first, cells.second, cells.bounds, cells.who, read_only(ties))

        def gather(begin: int, end: int, rows: Any = rows) -> Floats:
            between = np.zeros((2 * n_annotators, n))
            everything: list[Any] = [*rows, given, begin, end, between]
            _gather(*everything)
            return between

        between = read_only(total(over_bounds(gather, cells.parts)))

        def spread(begin: int, end: int, rows: Any = rows, between: Floats = between) -> Floats:
            part = np.zeros(columns.shape)
            everything: list[Any] = [*rows, between, begin, end, np.empty(n), part]
            _spread(*everything)
            return part

        image += total(over_bounds(spread, cells.parts))
    return image


@njit(cache=True, nogil=True)
def _gather(
    first: Any, second: Any, bounds: Any, who: Any, ties: Any, columns: Any, begin: int, end: int, between: Any
) -> None:
    """Add to each annotator's two parameters what cells begin to end send."""
    for cell in range(begin, end):
        i, j = first[cell], second[cell] if second.size else -1
        for row in range(bounds[cell], bounds[cell + 1]):
            at, one, other = 2 * (who[row] >> 2), ties[row, 0], ties[row, 1]
            for m in range(columns.shape[1]):
                value = columns[i, m] - columns[j, m] if j >= 0 else columns[i, m]
                between[at, m] += one * value
                between[at + 1, m] += other * value


@njit(cache=True, nogil=True)
def _spread(
    first: Any, second: Any, bounds: Any, who: Any, ties: Any, between: Any, begin: int, end: int, sent: Any, image: Any
) -> None:
    """Add to the items of cells begin to end what annotators send."""
    for cell in range(begin, end):
        sent[:] = 0.0
        for row in range(bounds[cell], bounds[cell + 1]):
            at, one, other = 2 * (who[row] >> 2), ties[row, 0], ties[row, 1]
            for m in range(sent.size):
                sent[m] += one * between[at, m] + other * between[at + 1, m]
        i, j = first[cell], second[cell] if second.size else -1
        for m in range(sent.size):
            image[i, m] += sent[m]
            if j >= 0:
                image[j, m] -= sent[m]
