"""When two scores are equal: the one rule that ranks, orders, quality and measures go by; numpy only.

Sums of the same numbers in another order, on another processor or under other names differ in their last digits.
Sorted within their segment (the items of a query), neighbours no further apart than a tolerance are one group, and a
group has one score. The tolerance lies far above what rounding does and far below what a judgment changes, so that
chains of neighbours do not grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Counts, Floats

ROUNDING = 1e-13
"""Rounding of a sum, relative to the largest size of what is added: some hundred units in the last place."""

SINGLE = 2.0**-21
"""The same of numbers that were kept in single precision: four units in the last place."""


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
        Largest gap of neighbours that are equal; without it :data:`ROUNDING` times the largest size in the segment.

    Examples
    --------
    >>> join_ties(np.array([0.3, 0.1 + 0.2, 0.4]), np.array([0, 3])).tolist()
    [0.3, 0.3, 0.4]
    """
    if tolerance is None:
        tolerance = ROUNDING * segment_sizes(values, offsets)
    lengths = np.diff(offsets)
    segment = np.repeat(np.arange(len(lengths)), lengths)
    order = np.argsort(values) if len(lengths) == 1 else np.lexsort((values, segment))
    ranked = values[order]
    # a sum and not a difference, which two infinities do not have
    joined = ranked[1:] <= ranked[:-1] + tolerance[segment[1:]]
    starts = offsets[1:-1]
    joined[starts[(starts > 0) & (starts < len(values))] - 1] = False
    if not (joined & (ranked[1:] != ranked[:-1])).any():
        return values
    first = np.maximum.accumulate(np.where(np.append(True, ~joined), np.arange(len(order)), 0))
    settled = np.empty(len(order))
    settled[order] = ranked[first]
    return settled


def _over_segments(reduce: np.ufunc, values: NDArray[np.floating[Any]], offsets: Counts) -> Floats:
    """What a ufunc makes of each segment, 0 of an empty one."""
    reduced = np.zeros(len(offsets) - 1)
    filled = np.diff(offsets) > 0
    if filled.any():
        reduced[filled] = reduce.reduceat(values, offsets[:-1][filled])
    return reduced
