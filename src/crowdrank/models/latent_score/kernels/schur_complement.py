"""The Schur complement of annotators: what marginalising them takes off the curvature of scores.

Each judgment has a mixed second derivative in its cell's score and each of two parameters of its annotator,
discrimination and bias. These cross terms (n_judgments, 2) are scaled so that each parameter has variance 1. That of an
annotator and an item is the sum over the annotator's judgments of the item, negative for the second item of a pair.
With these sums in the columns of ``U``, marginalising takes off ``U U'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import over_bounds, read_only, total
from ....protocols import Counts, Floats
from .ordinal import Cells, ResponseModel, kernel_arguments, lapse_probability, level_probabilities

_MIN_PROBABILITY = 1e-12
_MAX_LOOPED_ITEMS = 64


def cross_terms(cells: Cells, model: ResponseModel, gap: Floats, variance: Floats, adapt: Floats) -> Floats:
    """Return the cross term of each judgment in its cell's score and its annotator's parameters, (n_judgments, 2).

    ``adapt`` (n_annotators, 3) has how far the bias moves with the discrimination, the standard deviation of the
    discrimination, and that of the bias given the discrimination; the rest is as in :func:`~.ordinal.item_pass`.
    """
    terms = np.empty((len(cells.annotator_side), 2))
    arguments = (*cells[2:6], *kernel_arguments(model), read_only(gap), read_only(variance), float(model.scale))
    habits = read_only(adapt)

    def work(begin: int, end: int) -> None:
        _fill_cross_terms(*arguments, habits, begin, end, terms)

    over_bounds(work, cells.parts)
    return terms


@njit(cache=True, nogil=True)
def _fill_cross_terms(
    bounds: Any, annotator_side: Any, level: Any, weight: Any, own: Any, favourites: Any, centre: float, cuts: Any,
    gap: Any, variance: Any, scale: float, adapt: Any, begin: int, end: int, terms: Any,
) -> None:  # fmt: skip
    """Fill in the cross terms of the judgments of cells begin to end."""
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        for row in range(bounds[cell], bounds[cell + 1]):
            a, side, y = annotator_side[row] >> 2, 1.0 - (annotator_side[row] & 3), level[row]
            eta = own[a, 0] * d + side * own[a, 5]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + side * own[a, 3]) + abs(side) * own[a, 4]
            flat, upper, lower = level_probabilities(eta, spread, own[a, 6], centre, cuts, y)
            rho, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            if lapse > 0.0:
                seen = (1.0 - lapse) * max(upper - lower, _MIN_PROBABILITY)
                rho *= seen / (seen + lapse * lapse_probability(favourites, a, y, cuts.size - y, side))
            h = rho * flat * (upper * (1.0 - upper) + lower * (1.0 - lower))
            of_bias = side * h * own[a, 0]
            of_alpha = h * own[a, 0] * scale * d - rho * scale * (upper + lower - 1.0)
            terms[row, 0] = (of_alpha - adapt[a, 0] * of_bias) * adapt[a, 1]
            terms[row, 1] = of_bias * adapt[a, 2]


def schur_blocks(cells: Cells, terms: Floats, n_annotators: int, firsts: Counts, size: int) -> Floats:
    """Return what is taken off the matrices of queries of ``size`` items from ``firsts`` on, (n, size, size)."""
    blocks = np.zeros((len(firsts), size, size))
    begins, ends = np.searchsorted(cells.first, firsts), np.searchsorted(cells.first, firsts + size)
    most = int(np.max(cells.bounds[ends] - cells.bounds[begins], initial=0))
    place, present = np.full(n_annotators, -1, np.int64), np.empty(min(most, n_annotators), np.int64)
    rows = np.zeros((2 * len(present), size))
    arguments = (cells.first, cells.second, cells.bounds, cells.annotator_side, read_only(terms))
    if size <= _MAX_LOOPED_ITEMS:
        _fill_blocks(*arguments, begins, ends, firsts, place, present, rows, blocks)
        return blocks
    for number, (begin, end, first) in enumerate(zip(begins, ends, firsts, strict=True)):
        n = _gather_rows(*arguments, begin, end, first, place, present, rows)
        blocks[number] = rows[: 2 * n].T @ rows[: 2 * n]
        _clear_rows(place, present, rows, n)
    return blocks


@njit(cache=True, nogil=True)
def _gather_rows(
    first: Any, second: Any, bounds: Any, annotator_side: Any, terms: Any, begin: int, end: int, item: int, place: Any,
    present: Any, rows: Any,
) -> int:  # fmt: skip
    """Add up the cross terms of each annotator and item from ``item`` on, two rows each; return how many annotators."""
    n = 0
    for cell in range(begin, end):
        i, j = first[cell] - item, second[cell] - item if second.size else -1
        for row in range(bounds[cell], bounds[cell + 1]):
            a = annotator_side[row] >> 2
            if place[a] < 0:
                place[a] = n
                present[n] = a
                n += 1
            at = 2 * place[a]
            rows[at, i] += terms[row, 0]
            rows[at + 1, i] += terms[row, 1]
            if j >= 0:
                rows[at, j] -= terms[row, 0]
                rows[at + 1, j] -= terms[row, 1]
    return n


@njit(cache=True, nogil=True)
def _clear_rows(place: Any, present: Any, rows: Any, n: int) -> None:
    """Clear what the next query starts from."""
    for number in range(n):
        place[present[number]] = -1
        rows[2 * number] = 0.0
        rows[2 * number + 1] = 0.0


@njit(cache=True, nogil=True)
def _fill_blocks(
    first: Any, second: Any, bounds: Any, annotator_side: Any, terms: Any, begins: Any, ends: Any, firsts: Any,
    place: Any, present: Any, rows: Any, blocks: Any,
) -> None:  # fmt: skip
    """Fill in the blocks of small queries, where annotators judge few of the items each."""
    size = blocks.shape[1]
    for query in range(firsts.size):
        n = _gather_rows(
            first,
            second,
            bounds,
            annotator_side,
            terms,
            begins[query],
            ends[query],
            firsts[query],
            place,
            present,
            rows,
        )
        for number in range(2 * n):
            for i in range(size):
                value = rows[number, i]
                if value != 0.0:
                    for j in range(size):
                        blocks[query, i, j] += value * rows[number, j]
        _clear_rows(place, present, rows, n)


def schur_products(parts: list[tuple[Cells, Floats]], n_annotators: int, columns: Floats) -> Floats:
    """Return what is taken off, times columns (n_items, n), from the judgments and cross terms of each kind."""
    image = np.zeros(columns.shape)
    values: Any = read_only(columns)
    n = columns.shape[1]
    for cells, terms in parts:
        rows: Any = (cells.first, cells.second, cells.bounds, cells.annotator_side, read_only(terms))

        def gather(begin: int, end: int, rows: Any = rows) -> Floats:
            between = np.zeros((2 * n_annotators, n))
            everything: list[Any] = [*rows, values, begin, end, between]
            _gather_columns(*everything)
            return between

        between = read_only(total(over_bounds(gather, cells.parts)))

        def spread(begin: int, end: int, rows: Any = rows, between: Floats = between) -> Floats:
            part = np.zeros(columns.shape)
            everything: list[Any] = [*rows, between, begin, end, np.empty(n), part]
            _spread_columns(*everything)
            return part

        image += total(over_bounds(spread, cells.parts))
    return image


@njit(cache=True, nogil=True)
def _gather_columns(
    first: Any,
    second: Any,
    bounds: Any,
    annotator_side: Any,
    terms: Any,
    columns: Any,
    begin: int,
    end: int,
    between: Any,
) -> None:
    """Add to each annotator's two parameters what cells begin to end send."""
    for cell in range(begin, end):
        i, j = first[cell], second[cell] if second.size else -1
        for row in range(bounds[cell], bounds[cell + 1]):
            at, one, other = 2 * (annotator_side[row] >> 2), terms[row, 0], terms[row, 1]
            for m in range(columns.shape[1]):
                value = columns[i, m] - columns[j, m] if j >= 0 else columns[i, m]
                between[at, m] += one * value
                between[at + 1, m] += other * value


@njit(cache=True, nogil=True)
def _spread_columns(
    first: Any,
    second: Any,
    bounds: Any,
    annotator_side: Any,
    terms: Any,
    between: Any,
    begin: int,
    end: int,
    sent: Any,
    image: Any,
) -> None:
    """Add to the items of cells begin to end what annotators send."""
    for cell in range(begin, end):
        sent[:] = 0.0
        for row in range(bounds[cell], bounds[cell + 1]):
            at, one, other = 2 * (annotator_side[row] >> 2), terms[row, 0], terms[row, 1]
            for m in range(sent.size):
                sent[m] += one * between[at, m] + other * between[at + 1, m]
        i, j = first[cell], second[cell] if second.size else -1
        for m in range(sent.size):
            image[i, m] += sent[m]
            if j >= 0:
                image[j, m] -= sent[m]
