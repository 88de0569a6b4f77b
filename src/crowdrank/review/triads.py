"""Circular triads: three items of which an annotator chose the first over the second over the third over the first.

Their share says how far somebody has no order in mind [KendallSmith40]_.
"""

from __future__ import annotations

import numpy as np

from ..data.pairing import pairs_within
from ..protocols import Bools, Counts, Ints

MOST_WEDGES = 2_000_000
"""So many times are two pairs with an item in common looked at for a third one; of more, a part is drawn."""

_MOST_KEY = 1 << 62


def count_triads(annotator: Ints, place: Ints, low: Ints, high: Ints, won: Bools, n: int) -> tuple[Counts, Counts]:
    """Return how many triads of pairs each of ``n`` annotators answered, and how many of them are circular.

    Parameters
    ----------
    annotator, place
        Who answered each pair, and what its items are compared in, such as a query, (n_pairs,); triads lie within one.
    low, high
        The two items of each pair, ``low < high``; no annotator has a pair of a place twice.
    won
        Whether the lower item was chosen.
    n
        Number of annotators.

    Examples
    --------
    >>> nobody, items = np.zeros(3, np.int32), np.array([0, 0, 1], np.int32)
    >>> count_triads(nobody, nobody, items, np.array([1, 2, 2], np.int32), np.array([True, False, True]), 1)
    (array([1]), array([1]))
    """
    n_items = int(high.max(initial=0)) + 1
    owner = annotator.astype(np.int64) * (int(place.max(initial=0)) + 1) + place
    if int(owner.max(initial=0)) > _MOST_KEY // n_items**2:
        owner = np.unique(owner, return_inverse=True)[1].astype(np.int64)
    corner = owner * n_items + low
    key = corner * n_items + high
    order = np.argsort(key, kind="stable")
    key, corner, owner = key[order], corner[order], owner[order]
    first, second = _wedges(corner)
    # the pair that closes two pairs from one item to two higher ones
    wanted = (owner[first] * n_items + key[first] % n_items) * n_items + key[second] % n_items
    third = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    closed = np.flatnonzero(key[third] == wanted)
    first, second, third = (order[rows[closed]] for rows in (first, second, third))
    circular = (won[first] == won[third]) & (won[first] != won[second])
    who = annotator[first]
    return np.bincount(who, minlength=n), np.bincount(who[circular], minlength=n)


def _wedges(corner: Counts) -> tuple[Counts, Counts]:
    """Rows of every two pairs with the same lower item, or of a part of them; ``corner`` rises."""
    new = np.flatnonzero(np.diff(corner, prepend=-1))
    ends = np.append(new[1:], len(corner))[: len(new)]
    sizes = ends - new
    n_wedges = int((sizes * (sizes - 1) // 2).sum())
    ends = np.repeat(ends, sizes)
    position = np.arange(len(corner))
    if n_wedges > MOST_WEDGES:
        # the first pair of each wedge is drawn, which leaves the share of circular ones as it is
        kept = np.random.default_rng(0).random(len(corner)) < MOST_WEDGES / n_wedges
        ends = np.where(kept, ends, position + 1)
    return pairs_within(position, ends)
