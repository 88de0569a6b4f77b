"""What a change of an item's expected gain would change of the order shown, in nDCG."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.index import Items
from ..protocols import Counts, Floats, Ints

PLACES = 10


@dataclass(frozen=True, eq=False)
class ShownOrder:
    r"""The items of each query as a ranker would show them now, by expected gain.

    Should the expected gain of one item become :math:`m_i + \delta`, and the items be ordered anew, then DCG by the new
    gains grows by :math:`\sum_j (m_i + \delta - m_j) (D_{r_j} - D_{r_j + 1})` over the items :math:`j` it passes
    upwards, where :math:`D_r` is the discount of place :math:`r` (0 after the tenth), and likewise downwards. With
    :math:`\delta` normal of standard deviation :math:`\sigma` each term is :math:`\sigma \psi(|m_i - m_j| / \sigma)`
    times the step, :math:`\psi(z) = \phi(z) - z (1 - \Phi(z))`. Divided by the ideal DCG of the query that
    is the expected change of its nDCG@10.

    Parameters
    ----------
    mean, place, query
        Of each candidate: its expected gain, its place from 0 on, and its query.
    top
        Expected gain of the first items of each query, (n_queries, places), -inf where there are fewer.
    ideal
        DCG of each query as it is shown.
    """

    mean: Floats
    place: Counts
    query: Ints
    top: Floats
    ideal: Floats

    @classmethod
    def of(cls, items: Items, mean: Floats, draws: Floats) -> ShownOrder:
        """Return the order of all items; equal ones stand as drawn."""
        order = np.lexsort((draws, -mean, items.query))
        place = np.empty(len(mean), np.int64)
        place[order] = np.arange(len(mean)) - items.offsets[items.query[order]]
        top = np.full((items.n_queries, PLACES + 1), -np.inf)
        first = place <= PLACES
        top[items.query[first], place[first]] = mean[first]
        ideal = np.where(np.isfinite(top), top, 0.0) @ place_discounts()[: PLACES + 1]
        return cls(mean, place, items.query, top, np.maximum(ideal, 1e-9))

    def take(self, rows: Counts | Ints) -> ShownOrder:
        """Return the order with some of its candidates."""
        return replace(self, mean=self.mean[rows], place=self.place[rows], query=self.query[rows])

    def change(self, spread: Floats) -> Floats:
        """Return the expected change of nDCG if each expected gain moves by that standard deviation."""
        discount = place_discounts()
        others = self.top[self.query]
        seat = np.arange(PLACES + 1)
        above = discount[seat] - discount[seat + 1]
        below = discount[np.maximum(seat - 1, 0)] - discount[seat]
        step = np.where(seat < self.place[:, None], above, np.where(seat > self.place[:, None], below, 0.0))
        known = np.isfinite(others)
        wide = np.maximum(spread, 1e-12)[:, None]
        z = np.abs(self.mean[:, None] - np.where(known, others, 0.0)) / wide
        value = (np.where(known, step, 0.0) * expected_passing(z)).sum(axis=1) * spread
        change: Floats = value / self.ideal[self.query]
        return change


def expected_passing(z: Floats) -> Floats:
    """Return by how much a standard normal number passes ``z`` on average, counted 0 where it does not."""
    from scipy.special import ndtr

    passed: Floats = np.exp(-0.5 * np.minimum(z, 38.0) ** 2) / np.sqrt(2 * np.pi) - z * ndtr(-z)
    return np.maximum(passed, 0.0)


def place_discounts() -> Floats:
    """Return the discount of each place, 0 from the eleventh on."""
    places = np.arange(PLACES + 2)
    discount: Floats = np.where(places < PLACES, 1.0 / np.log2(places + 2.0), 0.0)
    return discount
