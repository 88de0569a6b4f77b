"""Pairs in compressed rows as both of their items see them: products with a weight for each way, and neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.laplacian import Product
from ....kernels.threads import over_bounds, pair_bounds, read_only, total
from ....protocols import Counts, Floats, Ints


class Links(NamedTuple):
    """Every pair twice, once with each of its items.

    The neighbours of item ``i`` are ``other[starts[i]:starts[i + 1]]``, in rising order; ``lead`` is over links, what
    the item has over the neighbour, and has the opposite sign on the way back.
    """

    starts: Counts
    other: Ints
    lead: NDArray[Any]


def link_product(starts: Counts, second: Ints, up: Floats, down: Floats) -> Product:
    """Return the function that sums over each item's neighbours the vector there times the weight of the link.

    ``up`` (n_pairs,) weighs what the lower item of a pair gets from the other, ``down`` what the other gets from it.
    """
    rows, columns, forth, back = read_only(starts), read_only(second), read_only(up), read_only(down)
    bounds = pair_bounds(starts)

    def product(vector: Floats) -> Floats:
        def work(begin: int, end: int) -> Floats:
            sums = np.zeros(len(vector))
            _add_links(rows, columns, forth, back, read_only(vector), begin, end, sums)
            return sums

        image: Floats = total(over_bounds(work, bounds))
        return image

    return product


@njit(cache=True, nogil=True)
def _add_links(
    starts: Counts, second: Ints, up: Floats, down: Floats, vector: Floats, begin: int, end: int, sums: Floats
) -> None:
    """Add to each item, (n_items,), the vector at its neighbours times the weight of the link."""
    for i in range(begin, end):
        value, received = vector[i], 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            received += up[pair] * vector[j]
            sums[j] += down[pair] * value
        sums[i] += received


def both_ways(starts: Counts, second: Ints, lead: NDArray[Any]) -> Links:
    """Return the links of all pairs, given the lead of the lower item in each, (n_pairs,)."""
    n_items = len(starts) - 1
    numbers = np.diff(starts) + np.bincount(second, minlength=n_items)
    places = np.concatenate([[0], np.cumsum(numbers)])
    other, ahead = np.empty(2 * len(second), np.int32), np.empty(2 * len(second), lead.dtype)
    _fill_links(read_only(starts), read_only(second), read_only(lead), places[:-1].copy(), other, ahead)
    return Links(places, other, ahead)


@njit(cache=True, nogil=True)
def _fill_links(starts: Counts, second: Ints, lead: Any, place: Counts, other: Ints, ahead: Any) -> None:
    """Fill in both links of each pair, first those that lead down; ``place`` (n_items,) is where an item's begin."""
    for i in range(place.size):
        for pair in range(starts[i], starts[i + 1]):
            at = place[second[pair]]
            other[at], ahead[at] = i, -lead[pair]
            place[second[pair]] = at + 1
    for i in range(place.size):
        for pair in range(starts[i], starts[i + 1]):
            at = place[i]
            other[at], ahead[at] = second[pair], lead[pair]
            place[i] = at + 1
