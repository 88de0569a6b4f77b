"""Values of each segment, such as the grades of each item: sums, means, medians, ranges, and ties up to rounding."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Floats, Ints
from . import ROUNDING

# threshold (equal): levels looked up in a table
_TABLE_SIZE = 1000
_MIN_KERNEL_ROWS = 1 << 15
"""Values from which on a kernel sorts them: fewer take a millisecond without, and it takes one to compile."""


def level_places(levels: Floats, grade: Floats) -> Ints:
    """Return the place (rows,) of each grade among the rising levels (n_levels,), which hold all grades."""
    if not len(levels) or levels[-1] - levels[0] >= _TABLE_SIZE or (levels != np.round(levels)).any():
        return np.searchsorted(levels, grade).astype(np.int32)
    # whole numbers of a small range are looked up, which takes a fifth of the time
    table = np.zeros(int(levels[-1] - levels[0]) + 1, np.int32)
    table[(levels - levels[0]).astype(np.int64)] = np.arange(len(levels))
    return table[(grade - levels[0]).astype(np.int64)]


def segment_sums(values: Floats | None, segment: NDArray[np.integer[Any]], weight: Floats | None, n: int) -> Floats:
    """Return the weighted sum of the values (rows,) of each of ``n`` segments; of the weights without values."""
    if values is None:
        return np.bincount(segment, weight, n).astype(np.float64)
    return np.bincount(segment, values if weight is None else values * weight, n).astype(np.float64, copy=False)


def segment_means(
    values: Floats, segment: NDArray[np.integer[Any]], weight: Floats | None, n: int, empty: Floats | float = 0.0
) -> Floats:
    """Return the weighted mean of the values (rows,) of each of ``n`` segments, ``empty`` where there are none.

    Rounding does not grow with the number of rows: the mean of a million equal values is that value.
    """
    weights = segment_sums(None, segment, weight, n)
    means = np.array(np.broadcast_to(empty, n), np.float64)
    np.divide(segment_sums(values, segment, weight, n), weights, out=means, where=weights > 0)
    left_over = segment_sums(values - means[segment], segment, weight, n)
    return means + np.divide(left_over, weights, out=np.zeros(n), where=weights > 0)


def segment_medians(values: Floats, segment: Ints, weight: Floats | None, n: int, empty: float = 0.0) -> Floats:
    """Return the weighted median of the values (rows,) of each of ``n`` segments, ``empty`` where there are none.

    Where half of the weight lies exactly below a value, the median is the mean of the two middle ones.
    """
    medians = np.full(n, empty)
    if not len(values):
        return medians
    order = np.lexsort((values, segment))
    values, segment = values[order], segment[order]
    climbed = np.cumsum(np.ones(len(values)) if weight is None else weight[order])
    counts = np.bincount(segment, minlength=n)
    filled = np.flatnonzero(counts)
    end = np.cumsum(counts)[filled]
    before = np.concatenate([[0.0], climbed])[end - counts[filled]]
    total = climbed[end - 1] - before
    # sums of fractional weights meet the half up to rounding only
    slack = 1e-9 * total
    lower = np.searchsorted(climbed, before + 0.5 * total - slack)
    upper = np.searchsorted(climbed, before + 0.5 * total + slack, side="right")
    medians[filled] = 0.5 * (values[lower] + values[np.minimum(upper, end - 1)])
    return medians


def average_repeats(group: Counts, item: Ints, grade: Floats, weight: Floats) -> tuple[Counts, Ints, Floats, Floats]:
    """Return the grades (rows,) with those of one item in one group averaged and their weights added."""
    # sorting plain keys is ten times faster than finding the order of the rows, and mostly there is nothing to average
    keys = np.sort(group * (int(item.max(initial=0)) + 1) + item)
    if not (keys[1:] == keys[:-1]).any():
        return group, item, grade, weight
    order = np.lexsort((item, group))
    group, item, grade, weight = group[order], item[order], grade[order], weight[order]
    begin = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(item, prepend=-1) != 0))
    weights = np.add.reduceat(weight, begin)
    return group[begin], item[begin], np.add.reduceat(grade * weight, begin) / weights, weights


def fill_from_query(values: Floats, judged: Bools, query: Ints, n_queries: int) -> Floats:
    """Return the values (n_items,) with each unjudged item at the mean of its query's judged ones.

    A query without any takes the mean of all judged items; with no judged item at all the values are 0.
    """
    if judged.all():
        return values
    overall = float(values[judged].mean()) if judged.any() else 0.0
    means = segment_means(values[judged], query[judged], None, n_queries, overall)
    return np.where(judged, values, means[query])


def set_starts(sizes: Counts) -> Counts:
    """Return the bounds of the 2^n sets of each query's n items, (n_queries + 1,)."""
    return np.concatenate([[0], np.cumsum(2**sizes)]).astype(np.int64)


def ranking_standings(rank: Ints, offsets: Counts) -> Floats:
    """Return the standing of each row of rankings, 0 in a ranking of one item.

    ``rank`` (rows,) rises within each ranking, whose rows are ``offsets[r]:offsets[r + 1]``.
    """
    sizes = np.diff(offsets)
    starts = np.repeat(offsets[:-1], sizes)
    first, after = _runs(rank, starts)
    others = np.maximum(np.repeat(sizes, sizes) - 1, 1)
    below, above = np.repeat(offsets[1:], sizes) - after, first - starts
    return (below - above) / others


def grade_standings(group: Counts, item: Ints, grade: Floats, weight: Floats | None) -> tuple[Ints, Floats, Floats]:
    """Return item, standing and weight of each item of each group of grades that has other items to compare it with.

    ``group`` (rows,) tells which grades are compared, such as those of one annotator in one query; the weight of
    a grade is also that of the item's being there for others. Several grades of an item in a group are averaged.
    """
    group, item, grade, weight = average_repeats(group, item, grade, np.ones(len(grade)) if weight is None else weight)
    order = np.lexsort((grade, group))
    group, item, grade, weight = group[order], item[order], grade[order], weight[order]
    begin = np.flatnonzero(np.diff(group, prepend=-1) != 0)
    sizes = np.diff(begin, append=len(group))
    starts, ends = np.repeat(begin, sizes), np.repeat(begin + sizes, sizes)
    # grades that were averaged differ by rounding
    first, after = _runs(join_ties(grade, np.append(begin, len(group))), starts)
    # weights of a group up to each row but for a constant, as a sum over all rows would carry the rounding of all
    steps = weight.copy()
    if len(begin) > 1:
        steps[begin[1:]] -= np.add.reduceat(weight, begin)[:-1]
    climbed: Floats = np.cumsum(steps)
    base = climbed - weight
    below = np.where(first > starts, climbed[first - 1] - base[starts], 0.0)
    above = climbed[ends - 1] - climbed[after - 1]
    alike = np.where(after - first > 1, climbed[after - 1] - base[starts] - below - weight, 0.0)
    use = ends - starts > 1
    return item[use], ((below - above)[use] / (below + above + alike)[use]), weight[use]


def _runs(values: Ints | Floats, starts: Counts) -> tuple[Counts, Counts]:
    """First row of each row's run of equal values in its group, which begins at ``starts``, and the row after it."""
    begin = np.flatnonzero((np.diff(values, prepend=0) != 0) | (np.arange(len(values)) == starts))
    lengths = np.diff(begin, append=len(values))
    return np.repeat(begin, lengths), np.repeat(begin + lengths, lengths)


def group_codes(query: Ints, annotator: Ints, block: Ints | None) -> Counts:
    """Return a code (rows,) for each combination of query, annotator and block; the last two may be missing."""
    group = query.astype(np.int64)
    for codes in (annotator, block):
        if codes is not None and len(codes):
            group = group * (int(codes.max()) + 1) + codes
    return group


SINGLE = 2.0**-21
"""As ``ROUNDING``, of numbers that were kept in single precision: four units in the last place."""


def segment_sizes(values: NDArray[np.floating[Any]], offsets: Counts) -> Floats:
    """Return the largest size of a finite value of each segment, 0 where there is none; see :func:`join_ties`."""
    size = np.abs(values)
    return _over_segments(np.maximum, np.where(np.isfinite(size), size, 0.0), offsets)


def segment_ranges(values: Floats, offsets: Counts) -> Floats:
    """Return the difference of the largest and the smallest value of each segment, 0 where there is none."""
    return _over_segments(np.maximum, values, offsets) - _over_segments(np.minimum, values, offsets)


def join_ties(values: Floats, offsets: Counts, tolerance: Floats | None = None) -> Floats:
    """Return the values with each group of equal ones at the lowest of them.

    Parameters
    ----------
    values : (n,)
        May hold infinities.
    offsets : (n_segments + 1,)
        Values of segment s are ``offsets[s]`` to ``offsets[s + 1]``.
    tolerance : (n_segments,)
        Largest gap of neighbours that are equal; without it ``ROUNDING`` times the largest size in the segment.

    Examples
    --------
    >>> join_ties(np.array([0.3, 0.1 + 0.2, 0.4]), np.array([0, 3])).tolist()
    [0.3, 0.3, 0.4]
    """
    if tolerance is None:
        tolerance = ROUNDING * segment_sizes(values, offsets)
    lengths, largest_gap = np.diff(offsets), tolerance
    order: NDArray[Any]
    if len(lengths) > 1:
        segment = np.repeat(np.arange(len(lengths)), lengths)
        order, largest_gap = np.lexsort((values, segment)), tolerance[segment[1:]]
    elif len(values) < _MIN_KERNEL_ROWS:
        order = np.argsort(values)
    else:
        order = sort_order(values)
    ranked = values[order]
    # a sum and not a difference, which two infinities do not have
    joined = ranked[1:] <= ranked[:-1] + largest_gap
    starts = offsets[1:-1]
    joined[starts[(starts > 0) & (starts < len(values))] - 1] = False
    if not (joined & (ranked[1:] != ranked[:-1])).any():
        return values
    first = np.maximum.accumulate(np.where(np.append(True, ~joined), np.arange(len(order)), 0))
    settled = np.empty(len(order))
    settled[order] = ranked[first]
    return settled


def sort_order(values: Floats) -> Ints:
    """Return the places of numbers in rising order, equal ones by place: a fifth of the time of a sort by comparing."""
    bits = values.view(np.uint64)
    # as whole numbers these are in the order of the numbers that they stand for
    return key_order(np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63)))


def key_order(keys: NDArray[np.uint64]) -> Ints:
    """Return the places of keys in rising order, equal ones by place; the keys are overwritten."""
    places = np.arange(len(keys), dtype=np.int32)
    return _digit_sort()(keys, places, np.empty_like(keys), np.empty_like(places))


@cache
def _digit_sort() -> Any:
    """The compiled sort; few values do without it, and without numba, which takes a while to import."""
    from numba import njit

    @njit(cache=True, nogil=True)
    def sort(keys, places, spare_keys, spare_places):
        """Sort keys by six digits of eleven bits, the lowest first; return the places that they came from."""
        numbers = np.zeros((6, 2048), np.int64)
        for row in range(keys.size):
            for digit in range(6):
                numbers[digit, (keys[row] >> np.uint64(11 * digit)) & np.uint64(2047)] += 1
        for digit in range(6):
            after, begin, shift = numbers[digit], 0, np.uint64(11 * digit)
            for value in range(2048):
                after[value], begin = begin, begin + after[value]
            for row in range(keys.size):
                value = (keys[row] >> shift) & np.uint64(2047)
                spare_keys[after[value]], spare_places[after[value]] = keys[row], places[row]
                after[value] += 1
            keys, spare_keys, places, spare_places = spare_keys, keys, spare_places, places
        return places

    return sort


def _over_segments(reduce: np.ufunc, values: NDArray[np.floating[Any]], offsets: Counts) -> Floats:
    """What a ufunc makes of each segment, 0 of an empty one."""
    reduced = np.zeros(len(offsets) - 1)
    filled = np.diff(offsets) > 0
    if filled.any():
        reduced[filled] = reduce.reduceat(values, offsets[:-1][filled])
    return reduced
