"""What one more grade of an item is expected to add to the nDCG of the order shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.features import Features
from ..data.index import Items
from ..kernels.threads import read_only
from ..protocols import Counts, Floats, Ints
from .situation import select_rows, tie_draws

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
    return np.where(places < PLACES, 1.0 / np.log2(places + 2.0), 0.0)


# threshold (sample): neighbours in shown orders that a grade is weighed by, goal `ranker` with features
MAX_PAIRS = 2_000
"""Neighbouring places of shown orders that are looked at; of more, those of queries drawn by the seed."""

_N_ROUNDS = 30
_N_STAGES = 8
"""Number of stages in which requests are chosen, each supposing that those before it are answered."""

_BLOCK_ITEMS = 1_000
_UNJUDGED_VARIANCE_FACTOR = 1e6
"""Noise of what is known of an item that nobody judged, and prior variance of the mean gain, in variances of gains."""


@dataclass(frozen=True, eq=False)
class TaughtOrder:
    r"""The items of each query as a linear ranker of expected gains shows them, and how grades would change it.

    The gain of item :math:`i` is :math:`w \cdot x_i + u_i` with :math:`w \sim N(0, \omega^2)` and
    :math:`u_i \sim N(0, \tau^2)`; grades measure it with an error, and both variances are learned by
    expectation-maximisation. A grade adds the precision :math:`\kappa_i` to what is known of :math:`w \cdot x_i`. The
    difference of two items shown is then expected to move by a standard deviation of
    :math:`|(x_k - x_l)^\top \Sigma x_i| \sqrt{\kappa_i / (1 + \kappa_i x_i^\top \Sigma x_i)}`, where :math:`\Sigma` is
    the covariance of :math:`w`, and where that changes their order, DCG grows.

    Parameters
    ----------
    rows, variance, error
        Of each candidate: its features, the variance of its gain, and that of the error of what grades say of it.
    covariance, item_variance
        Posterior covariance of the weights, and :math:`\tau^2`.
    pairs, gaps, steps
        Of each two neighbouring places: the difference of their features and of their expected gains, and the
        difference of their discounts, in expected nDCG of the query for each unit of its expected DCG.
    discount
        What is left of each candidate's worth once those chosen before it are answered.
    """

    rows: Floats
    variance: Floats
    error: Floats
    covariance: Floats
    item_variance: float
    pairs: Floats
    gaps: Floats
    steps: Floats
    discount: Floats

    @classmethod
    def of(
        cls, items: Items, features: Features, posterior: Floats, gain: Floats, judged: Counts, seed: int
    ) -> TaughtOrder:
        """Return the orders of all items that have features; ``judged`` are the items with grades."""
        row = features.items.codes_of(items, "features", "judgments")
        features.expect_numbers()
        matrix = features.matrix.astype(np.float64)
        spread = matrix.std(axis=0)
        matrix = (matrix - matrix.mean(axis=0)) / np.where(spread > 1e-12 * np.abs(matrix).max(axis=0), spread, 1.0)
        own = np.where(row[:, None] >= 0, matrix[row], 0.0)
        # shares of the levels before any grade, with mean and variance of their gain, and those of each item
        shares, mean = posterior[judged].mean(axis=0), posterior @ gain
        first = float(shares @ gain)
        first_variance = max(float(shares @ gain**2) - first**2, 1e-9)
        variance = np.maximum(posterior @ gain**2 - mean**2, 1e-9 * first_variance)
        # the gain that grades alone measure, and the variance of its error
        before, now = 1.0 / first_variance, 1.0 / np.maximum(variance, 1e-6 * first_variance)
        precision = np.maximum(now - before, 1.0 / (_UNJUDGED_VARIANCE_FACTOR * first_variance))
        measured, error = (mean * now - first * before) / precision, 1.0 / precision
        weights, covariance, of_items = _regression(own[judged], measured[judged], error[judged], first_variance)
        is_judged = np.isin(np.arange(len(items)), judged)
        error = np.where(is_judged, error, _UNJUDGED_VARIANCE_FACTOR * first_variance)
        neighbours = _neighbours(features.items, matrix, matrix @ weights + first, shares, gain, seed)
        return cls(own, variance, error, covariance, of_items, *neighbours, np.ones(len(items)))

    def take(self, rows: Counts | Ints) -> TaughtOrder:
        """Return the same with some of its candidates."""
        return select_rows(self, rows, "rows", "variance", "error", "discount")

    def change(self, spread: Floats) -> Floats:
        """Return the expected change of nDCG, summed over queries, if each gain moves by that standard deviation."""
        return self.discount * self._value(self._precision(spread), self.covariance)

    def in_stages(self, spread: Floats, number: int) -> TaughtOrder:
        """Return the same with what is left of the candidates' worth if the ``number`` best are asked about."""
        precision, covariance = self._precision(spread), self.covariance
        first = value = self._value(precision, covariance)
        left, order = np.ones(len(first), bool), first.copy()
        size = max(1, -(-min(number, len(first)) // _N_STAGES))
        for _ in range(_N_STAGES):
            chosen = np.argsort(np.where(left, -value, np.inf), kind="stable")[: min(size, int(left.sum()))]
            left[chosen], order[chosen] = False, value[chosen]
            if not left.any():
                break
            rows = self.rows[chosen]
            added = np.linalg.inv(covariance) + (rows * precision[chosen, None]).T @ rows
            covariance = np.linalg.inv(0.5 * (added + added.T)).astype(np.float64, copy=False)
            value = self._value(precision, covariance)
            order[left] = value[left]
        left_share = np.divide(order, first, out=np.ones_like(order), where=first > 0)
        return replace(self, discount=np.minimum(left_share, 1.0))

    def _precision(self, spread: Floats) -> Floats:
        """What a measurement that moves each gain by that deviation adds to the precision of ``w x``."""
        fall = np.minimum(spread**2, (1 - 1e-9) * self.variance)
        of_grade = np.divide(fall, self.variance * (self.variance - fall), out=np.zeros_like(fall), where=fall > 0)
        after = 1.0 / (1.0 / self.error + of_grade)
        return 1.0 / (self.item_variance + after) - 1.0 / (self.item_variance + self.error)

    def _value(self, precision: Floats, covariance: Floats) -> Floats:
        """Expected growth of nDCG by each candidate."""
        value = np.zeros(len(precision))
        for begin in range(0, len(value), _BLOCK_ITEMS):
            block = slice(begin, begin + _BLOCK_ITEMS)
            moved = covariance @ self.rows[block].T
            leverage = np.einsum("ij,ji->i", self.rows[block], moved)
            factor = np.sqrt(precision[block] / (1.0 + precision[block] * leverage))
            spread = np.abs(self.pairs @ moved) * factor
            value[block] = self.steps @ (spread * expected_passing(self.gaps[:, None] / np.maximum(spread, 1e-12)))
        return value


def _regression(rows: Floats, gain: Floats, error: Floats, scale: float) -> tuple[Floats, Floats, float]:
    """Weights with their covariance, and the variance of item effects, learned by expectation-maximisation."""
    n_features = rows.shape[1]
    centre = float(np.average(gain, weights=1.0 / (scale + error)))
    of_items, of_weights = scale, scale / max(n_features, 1)
    weights, covariance = np.zeros(n_features), np.eye(n_features)
    for _ in range(_N_ROUNDS):
        precision = 1.0 / (of_items + error)
        matrix = (rows * precision[:, None]).T @ rows + np.eye(n_features) / of_weights
        covariance = np.linalg.inv(matrix).astype(np.float64, copy=False)
        weights = covariance @ (rows.T @ (precision * (gain - centre)))
        rest = gain - rows @ weights
        centre = float(np.average(rest, weights=precision))
        share = of_items * precision
        of_features = np.einsum("ij,jk,ik->i", rows, covariance, rows)
        squares = (share * (rest - centre)) ** 2 + of_items * (1 - share) + share**2 * of_features
        of_items = max(float(squares.mean()), 1e-6 * scale)
        of_weights = max(float((weights**2 + np.diag(covariance)).mean()), 1e-9 * scale)
    return weights, covariance, of_items


def _neighbours(
    items: Items, matrix: Floats, gain: Floats, shares: Floats, level_gain: Floats, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Differences of features and gains of neighbours in the first places, and of discounts, in nDCG for each gain."""
    rng, first = np.random.default_rng(seed), float(shares @ level_gain)
    # levels with these expected gains: their shares, mixed with one of the ends
    up = gain > first
    end = np.where(up, float(level_gain[-1]), float(level_gain[0]))
    mixed = np.divide(gain - first, end - first, out=np.zeros_like(gain), where=end != first)
    mixed = np.clip(mixed, 0.0, 1.0)[:, None]
    ends = np.zeros((len(gain), len(level_gain)))
    ends[np.arange(len(gain)), np.where(up, len(level_gain) - 1, 0)] = 1.0
    shown = ShownOrder.of(items, (1 - mixed) * shares + mixed * ends, level_gain, seed)
    order = np.lexsort((rng.random(len(gain)), -gain, items.query))
    place = np.arange(len(gain)) - items.offsets[items.query[order]]
    discount = place_discounts()
    expected_gain = shown.posterior[order] @ shown.gain
    worth = np.where(place <= PLACES, discount[np.minimum(place, PLACES)] * expected_gain, 0.0)
    dcg = np.bincount(items.query[order], worth, items.n_queries)
    ndcg = shown.take(np.empty(0, np.int32)).change(np.empty((0, len(level_gain), len(level_gain))))[2]
    # where little is relevant the ideal is mostly 0, and a gain brings at most itself over the ideal of one such item
    per_gain = np.divide(ndcg, dcg, out=np.zeros_like(dcg), where=dcg > 0)
    here = np.flatnonzero((place[1:] > 0) & (place[1:] <= PLACES))
    if len(here) > MAX_PAIRS:
        queries = items.query[order[here]]
        keep = np.isin(queries, rng.permutation(np.unique(queries))[: max(1, MAX_PAIRS // PLACES)])
        here, per_gain = here[keep], per_gain * (len(keep) / keep.sum())
    upper, lower = order[here], order[here + 1]
    steps = (discount[place[here]] - discount[place[here] + 1]) * per_gain[items.query[upper]]
    return matrix[upper] - matrix[lower], gain[upper] - gain[lower], steps
