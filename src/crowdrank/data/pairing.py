"""All pairs of rows that stand in the same group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..protocols import Counts, Ints


def pairs_of_groups(keys: Sequence[Ints]) -> tuple[Counts, Counts]:
    """Return the two row numbers of every pair of rows with equal keys, the first row being the earlier one.

    Examples
    --------
    >>> first, second = pairs_of_groups([np.array([0, 1, 0, 0], np.int32)])
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    by: list[Any] = [np.arange(len(keys[0])), *reversed(keys)]
    order = np.lexsort(by)
    new = np.ones(len(order), bool)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(order))
    return pairs_within(order, np.repeat(ends, ends - starts))


def pairs_within(order: Counts, end: Counts) -> tuple[Counts, Counts]:
    """Pair each position with the later ones of its group, which stops before ``end``, and return them by ``order``."""
    position = np.arange(len(order))
    followers = end - position - 1
    first = np.repeat(position, followers)
    before = np.repeat(np.cumsum(followers) - followers, followers)
    second = first + 1 + (np.arange(len(first)) - before)
    return order[first], order[second]
