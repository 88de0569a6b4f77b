"""Hot loops of simulation: distinct draws, insertions and swaps, list after list."""

from __future__ import annotations

import numpy as np
from numba import njit

from ...protocols import Counts, Floats


@njit(cache=True, nogil=True)
def distinct_draws(uniform: Floats, offsets: Counts, sizes: Counts) -> Counts:
    """Draw distinct numbers below ``sizes[g]`` for each group g.

    Parameters
    ----------
    uniform
        Uniform numbers in [0, 1), one per draw, shape (n_draws,).
    offsets
        Draws of group g are ``offsets[g]:offsets[g + 1]``, shape (n_groups + 1,).
    sizes
        Numbers 0 to ``sizes[g] - 1`` can be drawn, at least as many as there are draws, shape (n_groups,).

    Returns
    -------
    ndarray
        The number of each draw, shape (n_draws,). A draw depends only on the earlier draws of its group.
    """
    drawn = np.empty(len(uniform), np.int64)
    order = np.arange(sizes.max() if len(sizes) else 0)
    for group in range(len(sizes)):
        start, stop = offsets[group], offsets[group + 1]
        for draw in range(start, stop):
            first = draw - start
            second = first + int(uniform[draw] * (sizes[group] - first))
            drawn[draw] = order[second]
            order[second] = order[first]
            order[first] = drawn[draw]
        # undone backwards, so every group starts from 0, 1, 2, ... without a fresh array
        for draw in range(stop - 1, start - 1, -1):
            first = draw - start
            second = first + int(uniform[draw] * (sizes[group] - first))
            order[first], order[second] = order[second], order[first]
    return drawn


@njit(cache=True, nogil=True)
def insert_all(displacement: Counts, offsets: Counts) -> Counts:
    """Arrange each list by inserting its elements one after the other.

    Parameters
    ----------
    displacement
        Number of earlier elements that element i of its list is put in front of, 0 to i, shape (n_elements,).
    offsets
        Elements of list g are ``offsets[g]:offsets[g + 1]``, shape (n_lists + 1,).

    Returns
    -------
    ndarray
        The element (0, 1, ... within its list) at each place, first place first, shape (n_elements,).
    """
    placed = np.empty(len(displacement), np.int64)
    for group in range(len(offsets) - 1):
        start = offsets[group]
        for element in range(offsets[group + 1] - start):
            place = start + element
            goal = place - displacement[start + element]
            while place > goal:
                placed[place] = placed[place - 1]
                place -= 1
            placed[place] = element
    return placed


@njit(cache=True, nogil=True)
def swap_all(first: Counts, second: Counts, swap_offsets: Counts, offsets: Counts) -> Counts:
    """Arrange each list by swapping pairs of places one after the other.

    Parameters
    ----------
    first, second
        Places to swap, counted from 0 within the list; equal places change nothing, shape (n_swaps,).
    swap_offsets
        Swaps of list g are ``swap_offsets[g]:swap_offsets[g + 1]``, shape (n_lists + 1,).
    offsets
        Elements of list g are ``offsets[g]:offsets[g + 1]``, shape (n_lists + 1,).

    Returns
    -------
    ndarray
        The element (0, 1, ... within its list) at each place, first place first, shape (n_elements,).
    """
    placed = np.empty(offsets[-1], np.int64)
    for group in range(len(offsets) - 1):
        start = offsets[group]
        for place in range(start, offsets[group + 1]):
            placed[place] = place - start
        for swap in range(swap_offsets[group], swap_offsets[group + 1]):
            one, other = start + first[swap], start + second[swap]
            placed[one], placed[other] = placed[other], placed[one]
    return placed
