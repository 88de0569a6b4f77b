"""How far rankings lie from the truth on average, given an annotator's dispersion, and the dispersion from that.

A ranking of n items has the probability exp(theta d) / Z(n, theta), d being its distance to the truth: the Kendall
distance counts the pairs in the wrong order, the Cayley distance the fewest swaps of two items that put it right, the
footrule how far items are from their places, and the Spearman distance the squares of that. The last two have no
closed form: rankings are counted by their distance. The more negative theta, the better the annotator; 0 is
guessing, above 0 reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import bind, views
from ....protocols import Counts, Floats, Ints

_SERIES_BELOW = 0.01
"""Where l theta is below this, differences of nearly equal numbers are replaced by the first terms of their series."""

_LARGEST_EXPONENT = 700.0
"""Exponentials of more would overflow; what is divided by them is 0 anyway."""

_LEAST_GRID_THETA = 1e-7
_N_GRID = 1200
_N_HALVINGS = 50


class DistanceTable(NamedTuple):
    """Expected distances on a grid of dispersions, for rankings of several sizes.

    Parameters
    ----------
    theta
        Rising dispersions, (n_grid,).
    mean, slope
        Expected distance and its derivative, (n_sizes, n_grid).
    """

    theta: Floats
    mean: Floats
    slope: Floats

    @property
    def guessing(self) -> Floats:
        """Expected distance of rankings drawn at random, (n_sizes,)."""
        return self.mean[:, np.searchsorted(self.theta, 0.0)]


class SizeCounts(NamedTuple):
    """Weight of each annotator's rankings by size, in compressed rows.

    Entries of annotator ``j`` are ``starts[j]`` up to ``starts[j + 1]``, (n_annotators + 1,); ``row`` is that of the
    table of distances and ``weight`` the number of such rankings, (n_entries,) each.
    """

    starts: Counts
    row: Counts
    weight: Floats


def size_cells(
    starts: Counts, rank: Ints, annotator: Ints, weight: Floats, *, ties: bool
) -> tuple[Ints, Counts, Floats]:
    """Return annotator, size and weight of each ranking, and of what rankings tie with negative weight.

    Items that a ranking ties are a ranking of their own whose order is unknown: their expected distance is taken off,
    so that what remains is that of the pairs in an order, as long as the distance is a sum over pairs.

    Parameters
    ----------
    starts, rank
        Rows of ranking ``l`` are ``starts[l]`` up to ``starts[l + 1]``, their ranks rise.
    annotator, weight
        Of each ranking, (n_lists,).
    ties
        Whether to take off those of tied items.
    """
    length = np.diff(starts)
    if not ties:
        return annotator, length, weight
    number = np.repeat(np.arange(len(length)), length)
    new = np.append(True, (np.diff(rank) != 0) | (np.diff(number) != 0))[: len(rank)]
    begin = np.flatnonzero(new)
    run, of = np.diff(begin, append=len(rank)), number[begin]
    columns = (annotator, annotator[of]), (length, run), (weight, -weight[of])
    who, what, much = (np.concatenate(column) for column in columns)
    return who, what, much


def count_cells(cells_of: Sequence[tuple[Any, Any, Floats]], n: int) -> tuple[Counts, SizeCounts]:
    """Return the rising sizes, 2 among them, and how many of each size each of ``n`` annotators gave, from cells."""
    who, what, much = (np.concatenate(column) for column in zip(*cells_of, strict=True))
    sizes, row = np.unique(np.append(what, 2), return_inverse=True)
    use = (what > 1) & (much != 0)
    cells, entry = np.unique(who[use].astype(np.int64) * len(sizes) + row[:-1][use], return_inverse=True)
    totals = np.bincount(entry, much[use], len(cells)).astype(np.float64, copy=False)
    return sizes, SizeCounts(np.searchsorted(cells, np.arange(n + 1) * len(sizes)), cells % len(sizes), totals)


def kendall_terms(theta: Floats, size: int) -> tuple[Floats, Floats]:
    """Return what the ``size``-th item adds to the expected Kendall distance, and the derivative of that."""
    x = np.abs(theta)
    near = x * size < _SERIES_BELOW
    safe = np.where(near, 1.0, x)
    one, all_of_them = np.minimum(safe, _LARGEST_EXPONENT), np.minimum(size * safe, _LARGEST_EXPONENT)
    mean = 1.0 / np.expm1(one) - size / np.expm1(all_of_them)
    slope = 0.25 / np.sinh(one / 2) ** 2 - 0.25 * size**2 / np.sinh(all_of_them / 2) ** 2
    series = (size - 1) / 2 - x * (size**2 - 1) / 12 + x**3 * (size**4 - 1) / 720
    # far out both parts are limited to the same exponential, the second a little above the first
    mean = np.where(near, series, np.maximum(mean, 0.0))
    slope = np.where(near, (size**2 - 1) / 12 - x**2 * (size**4 - 1) / 240, slope)
    # turned over, a ranking is as far from the turned truth, where theta has the other sign
    return np.where(theta > 0, (size - 1) - mean, mean), slope


def cayley_terms(theta: Floats, size: int) -> tuple[Floats, Floats]:
    """Return what the ``size``-th item adds to the expected Cayley distance, and the derivative of that."""
    stays = 1.0 / (1.0 + (size - 1) * np.exp(np.minimum(theta, _LARGEST_EXPONENT)))
    return 1.0 - stays, stays * (1.0 - stays)


TERMS: dict[str, Callable[[Floats, int], tuple[Floats, Floats]]] = {"kendall": kendall_terms, "cayley": cayley_terms}
"""Distances whose expectation is a sum over items."""


@cache
def distance_counts(size: int, distance: str) -> tuple[Floats, Floats]:
    """Return the footrule or Spearman distances that rankings of some items have to one, and how many have each.

    Places are filled one after the other, and what the next one adds depends on which items are left and not on their
    order, so that counting n! rankings takes 2^n n steps for each distance.
    """
    power = {"footrule": 1, "spearman": 2}[distance]
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) ** power
    most = int(steps[np.arange(size), np.arange(size)[::-1]].sum())
    counts = _count_orders(steps.astype(np.int64), most)
    reached = np.flatnonzero(counts)
    return reached.astype(np.float64), counts[reached]


@njit(cache=True, nogil=True)
def _count_orders(steps, most):
    """Number of permutations by the sum of what each place adds, (most + 1,)."""
    n = steps.shape[0]
    counts = np.zeros((1 << n, most + 1))
    counts[0, 0] = 1.0
    for used in range((1 << n) - 1):
        place = 0
        for item in range(n):
            place += (used >> item) & 1
        for item in range(n):
            if not (used >> item) & 1:
                step = steps[place, item]
                for total in range(most + 1 - step):
                    counts[used | (1 << item), total + step] += counts[used, total]
    return counts[(1 << n) - 1]


def _weighed_counts(theta: Floats, size: int, distance: str) -> tuple[Floats, Floats, Floats]:
    """Distances, the probability of each at each dispersion, (n_theta, n_distances), and the logarithm of Z."""
    far, number = distance_counts(size, distance)
    logs = np.log(number) + theta[:, None] * far
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return far, weights / total, (top + np.log(total))[:, 0]


def _counted_moments(theta: Floats, size: int, distance: str) -> tuple[Floats, Floats]:
    """Expected distance of rankings of a size at each dispersion, and its derivative, the variance."""
    far, chance, _ = _weighed_counts(theta, size, distance)
    mean = chance @ far
    return mean, np.maximum(chance @ far**2 - mean**2, 0.0)


def expected_distance(theta: Floats | float, n_items: int, distance: str = "kendall") -> Floats:
    """Return the expected distance to the truth of a ranking of this many items, for each dispersion."""
    theta = np.asarray(theta, np.float64)
    if distance not in TERMS:
        mean = _counted_moments(theta.ravel(), n_items, distance)[0] if n_items > 1 else 0.0 * theta.ravel()
        return mean.reshape(theta.shape)
    terms = [TERMS[distance](theta, size)[0] for size in range(2, n_items + 1)]
    return np.sum(terms or [0.0 * theta], axis=0)


def log_normalisers(theta: Floats, n_items: int, distance: str = "kendall") -> Floats:
    """Return log Z for 0 up to ``n_items`` items, (n_annotators, n_items + 1)."""
    size = np.arange(1, max(n_items, 1) + 1)
    if distance == "cayley":
        terms = np.log1p((size - 1) * np.exp(np.minimum(theta, _LARGEST_EXPONENT))[:, None])
    elif distance == "kendall":
        terms = _kendall_normalisers(theta, size)
    else:
        logs = [_weighed_counts(theta, one, distance)[2] for one in size[1:].tolist()]
        return np.stack([np.zeros(len(theta))] * 2 + logs, axis=1)[:, : n_items + 1]
    return np.concatenate([np.zeros((len(theta), 1)), np.cumsum(terms, axis=1)], axis=1)[:, : n_items + 1]


def _kendall_normalisers(theta: Floats, size: Counts) -> Floats:
    """What each item adds to log Z of the Kendall distance, (n_annotators, n_sizes)."""
    x = np.abs(theta)[:, None]
    near = x * size < _SERIES_BELOW
    safe = np.where(near, 1.0, x)
    ratio = np.log(
        np.expm1(-np.minimum(safe * size, _LARGEST_EXPONENT)) / np.expm1(-np.minimum(safe, _LARGEST_EXPONENT))
    )
    terms = np.where(near, np.log(size) - x * (size - 1) / 2 + x**2 * (size**2 - 1) / 24, ratio)
    return terms + np.maximum(theta, 0.0)[:, None] * (size - 1)


def distance_table(sizes: Counts, bound: float, *, both: bool, distance: str) -> DistanceTable:
    """Return expected distances for rankings of rising sizes, from ``bound`` up to 0, or -``bound`` if ``both``.

    The grid is dense at 0 on the scale of logarithms, since with many items the distance falls fast there.
    """
    steps = np.geomspace(min(_LEAST_GRID_THETA, -bound / 2), -bound, _N_GRID)
    theta = np.concatenate([-steps[::-1], [0.0], steps if both else []])
    mean, slope = np.zeros((2, len(sizes), len(theta)))
    if distance not in TERMS:
        for place, size in enumerate(sizes.tolist()):
            if size > 1:
                mean[place], slope[place] = _counted_moments(theta, size, distance)
        return DistanceTable(theta, mean, slope)
    total, change = np.zeros((2, len(theta)))
    terms, place = TERMS[distance], 0
    for size in range(1, int(sizes[-1]) + 1):
        if size > 1:
            more, steeper = terms(theta, size)
            total, change = total + more, change + steeper
        if size == sizes[place]:
            mean[place], slope[place] = total, change
            place += 1
    return DistanceTable(theta, mean, slope)


def solve_dispersions(table: DistanceTable, counts: SizeCounts, wanted: Floats, former: Floats) -> Floats:
    """Return the dispersion at which each annotator's expected distances add up to what is wanted, (n_annotators,).

    Beyond either end of the grid it is that end; annotators without rankings keep the former one. Between two points of
    the grid the expectation is taken as the cubic with its values and slopes there, which is right to some 1e-7 of it.
    """
    solved = former.copy()
    bind(_solve, *views(*table, *counts, wanted), solved)()
    return solved


@njit(cache=True, nogil=True)
def _weighted_sum(values, row, weight, first, last, point):
    """Sum of an annotator's entries of a table at a point of the grid."""
    total = 0.0
    for entry in range(first, last):
        total += weight[entry] * values[row[entry], point]
    return total


@njit(cache=True, nogil=True)
def _solve(theta, mean, slope, starts, row, weight, wanted, solved):
    """Fill in the dispersions."""
    last = theta.size - 1
    for one in range(solved.size):
        entries = (starts[one], starts[one + 1])
        if entries[0] == entries[1]:
            continue
        low, high = 0, last
        if wanted[one] <= _weighted_sum(mean, row, weight, entries[0], entries[1], low):
            solved[one] = theta[low]
            continue
        if wanted[one] >= _weighted_sum(mean, row, weight, entries[0], entries[1], high):
            solved[one] = theta[high]
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _weighted_sum(mean, row, weight, entries[0], entries[1], middle) <= wanted[one]:
                low = middle
            else:
                high = middle
        width = theta[high] - theta[low]
        begin = _weighted_sum(mean, row, weight, entries[0], entries[1], low)
        rise = _weighted_sum(mean, row, weight, entries[0], entries[1], high) - begin
        enter = _weighted_sum(slope, row, weight, entries[0], entries[1], low) * width
        leave = _weighted_sum(slope, row, weight, entries[0], entries[1], high) * width
        solved[one] = theta[low] + width * _crossing(wanted[one] - begin, rise, enter, leave)


@njit(cache=True, nogil=True)
def _crossing(goal, rise, enter, leave):
    """Where in 0 to 1 the rising cubic from 0 to ``rise``, with these slopes at its ends, reaches the goal."""
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        height = middle * (enter + middle * (3 * rise - 2 * enter - leave + middle * (enter + leave - 2 * rise)))
        if height <= goal:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
