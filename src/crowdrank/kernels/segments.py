"""Sums, means and medians of the values of each segment, such as the grades of each item; numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Floats, Ints

_TABLE_SIZE = 1000


def level_places(levels: Floats, grade: Floats) -> Ints:
    """Return the place (rows,) of each grade among the rising levels (n_levels,), which hold all grades."""
    if not len(levels) or levels[-1] - levels[0] >= _TABLE_SIZE or (levels != np.round(levels)).any():
        return np.searchsorted(levels, grade).astype(np.int32)
    # whole numbers of a small range are looked up, which takes a fifth of the time
    table = np.zeros(int(levels[-1] - levels[0]) + 1, np.int32)
    table[(levels - levels[0]).astype(np.int64)] = np.arange(len(levels))
    places: Ints = table[(grade - levels[0]).astype(np.int64)]
    return places


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
    new = (np.diff(group, prepend=-1) != 0) | (np.diff(item, prepend=-1) != 0)
    begin = np.flatnonzero(new)
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
