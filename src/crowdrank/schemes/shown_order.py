"""What one more grade of an item is expected to add to the nDCG of the order shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.index import Items
from ..kernels.threads import read_only
from ..protocols import Counts, Floats, Ints
from .buying import tie_draws

PLACES = 10

_N_DRAWS, _N_DRAW_ROWS = 64, 1024
"""Draws of the levels of a query, and how many items have draws of their own; further ones have them shifted."""

_N_WORLDS, _MIN_WORLDS = 20_000, 16
"""Orders that are drawn to learn what answers bring together, over all queries, and the fewest of each query."""


@dataclass(frozen=True, eq=False)
class ShownOrder:
    r"""The items of each query as a ranker would show them now, by expected gain.

    nDCG@10 of an order is :math:`\sum_j D_{r_j} g_j / I`, with :math:`D_r` the discount of place :math:`r` (0 after the
    tenth), :math:`g_j` the gain of item :math:`j` and :math:`I` the DCG of the best order, and 0 where no item has
    a gain. Gains are uncertain, and so is :math:`I`: expectations are over draws of the levels of all items. An answer
    about item :math:`i` changes the probabilities of its levels, and by them its place and :math:`E[g_j / I]` of all
    items; it is worth the mean over answers of the expected nDCG of the new order, less that of the present one.

    Parameters
    ----------
    items, posterior, gain
        All items, the probability of each level of each, (n_items, n_levels), and the gain of each level.
    order
        Items as they are shown, query after query.
    candidate
        The items that may be asked about.
    seed
        Seed of the draws.
    """

    items: Items
    posterior: Floats
    gain: Floats
    order: Counts
    candidate: Ints
    seed: int

    @classmethod
    def of(cls, items: Items, posterior: Floats, gain: Floats, seed: int) -> ShownOrder:
        """Return the order of all items; equal ones stand as drawn, and gains below 0 count as 0."""
        gain = np.maximum(gain, 0.0)
        order = np.lexsort((tie_draws(seed, len(items)), -(posterior @ gain), items.query))
        return cls(items, posterior, gain, order, np.arange(len(items), dtype=np.int32), seed)

    def take(self, rows: Counts | Ints) -> ShownOrder:
        """Return the order with some of its candidates."""
        return replace(self, candidate=self.candidate[rows])

    def change(self, confusions: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what an answer about each candidate by each annotator adds to the expected nDCG of its query.

        Then what each query could gain if all levels were known, and its expected nDCG now.
        """
        from .kernels.expected_ndcg import expected_changes

        rng = np.random.default_rng([self.seed, 3])
        strata = rng.permuted(np.tile(np.arange(_N_DRAWS), (_N_DRAW_ROWS, 1)), axis=1)
        row = np.full(len(self.items), -1, np.int64)
        row[self.candidate] = np.arange(len(self.candidate))
        return expected_changes(
            self.order.astype(np.int64), self.items.offsets.astype(np.int64), row,
            np.ascontiguousarray(self.posterior), self.gain, np.ascontiguousarray(confusions),
            place_discounts()[:PLACES], (strata + rng.random(strata.shape)) / _N_DRAWS,
        )  # fmt: skip

    def joint_change(self, item: Ints, confusions: Floats, by: Ints) -> float:
        """Return the growth of nDCG, summed over queries, by answers about these items taken together.

        It is the mean over draws of all levels and answers. ``by`` is the annotator of each answer, whose confusion is
        ``confusions[by]``.
        """
        from ..kernels.ranking_measures import AVERAGE, discounted_gain, ideal_gain

        queries, sizes = np.unique(self.items.query[item]), np.diff(self.items.offsets)
        offsets = np.append(0, np.cumsum(sizes[queries]))
        rows = np.arange(offsets[-1]) + np.repeat(self.items.offsets[queries] - offsets[:-1], sizes[queries])
        asked = np.searchsorted(rows, item)
        posterior = self.posterior[rows]
        reach, answers = posterior.cumsum(axis=1)[:, :-1], confusions.cumsum(axis=2)[:, :, :-1]
        with np.errstate(divide="ignore"):  # an impossible level stays impossible
            prior, likelihood = np.log(posterior), np.log(confusions)
        bounds, discount = read_only(offsets.astype(np.int64)), read_only(place_discounts()[:PLACES])
        shown = read_only(posterior @ self.gain)
        rng = np.random.default_rng([self.seed, 4])
        n_worlds, total = max(_MIN_WORLDS, _N_WORLDS // len(queries)), 0.0
        for _ in range(n_worlds):
            level = (rng.random((len(rows), 1)) >= reach).sum(axis=1)
            answer = (rng.random((len(item), 1)) >= answers[by, level[asked]]).sum(axis=1)
            after = prior.copy()
            np.add.at(after, asked, likelihood[by, :, answer])
            after = np.exp(after - after.max(axis=1, keepdims=True))
            mean = (after @ self.gain) / after.sum(axis=1)
            gains = read_only(self.gain[level])
            best = ideal_gain(gains, bounds, PLACES, False, discount)
            growth = discounted_gain(gains, read_only(mean), bounds, PLACES, AVERAGE, False, discount)
            growth = growth - discounted_gain(gains, shown, bounds, PLACES, AVERAGE, False, discount)
            total += float(np.divide(growth, best, out=np.zeros_like(best), where=best > 0).sum())
        return total / n_worlds


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
