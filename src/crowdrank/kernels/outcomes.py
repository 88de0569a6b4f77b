"""How often each annotator chose which side."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..protocols import Counts, Ints, Outcomes
from .threads import even_bounds, over_bounds, read_only, total

_ROWS_PER_THREAD = 2_000_000
_BLOCK = 256
"""Rows that are read together, enough for memory to be read ahead."""


def count_outcomes(annotator: Ints, outcome: Outcomes, n: int, step: int = 1) -> Counts:
    """Return how often each of ``n`` annotators chose right, tied and chose left, (n, 3).

    With a ``step`` of 2 or more it looks at one in ``step`` blocks of 256 rows.
    """
    who, result = read_only(annotator), read_only(outcome)

    def count(begin: int, end: int) -> Ints:
        counts = np.zeros(3 * n, np.int32)
        _tally(who, result, begin, end, step, counts)
        return counts

    counts = total(over_bounds(count, even_bounds(len(outcome), step * max(_ROWS_PER_THREAD, 3 * n))))
    return counts.reshape(n, 3).astype(np.int64)


@njit(cache=True, nogil=True)
def _tally(annotator: Ints, outcome: Outcomes, begin: int, end: int, step: int, counts: Ints) -> None:
    """Add the rows from begin to end, or some blocks of them, to the counts, (3 n,)."""
    # numbers without a sign need no look for places counted from the end, which halves the time
    for start in range(begin, end, _BLOCK * step):
        for row in range(start, min(start + _BLOCK, end)):
            cell = np.uint64(annotator[row]) * np.uint64(3) + np.uint64(outcome[row] + 1)
            counts[cell] += np.int32(1)
