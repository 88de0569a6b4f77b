"""The step for items: scores given the annotators, with levels of queries and weights of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...protocols import Bools, Floats
from .responses import Layout
from .state import State

if TYPE_CHECKING:
    from .kernels.blocks import Inverse

_ACCURACY = 1e-4
_LONGEST_STEP = 3.0
_CLAMP = 1e8


@dataclass(frozen=True, eq=False)
class Given:
    """What is given besides the judgments: features of the items, (n_items, n), and scores of clamped items."""

    features: Floats
    clamped: Bools
    known: Floats


class Curve(NamedTuple):
    """Gradient (n_items,) and curvature of the judgments in the scores: ``bend`` of pairs, and its sum at each item.

    ``of_cells`` has the curvature of each kind's cells.
    """

    push: Floats
    bend: Floats
    degree: Floats
    of_cells: tuple[Floats, ...]


class Solved(NamedTuple):
    """New scores with their spread, and what the variances are learned from.

    ``rest`` and ``rest_variance`` (n_items,) are what of a score neither features nor the query's level explain;
    ``levels`` and ``levels_variance`` (n_queries,) the levels.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    weights: Floats
    weights_covariance: Floats
    rest: Floats
    rest_variance: Floats
    levels: Floats
    levels_variance: Floats
    of_cells: tuple[Floats, ...]


def curve_of(layout: Layout, state: State, given: Given, former: tuple[Floats, ...] = ()) -> Curve:
    """Return gradient and curvature of the judgments, and of what is known, at the present scores.

    The curvature is the mean of this one and the ``former`` of each kind, if there is one: a wide spread of scores
    makes for much curvature, which makes for a narrow spread, and back again.
    """
    from .kernels.ordinal import item_pass

    n, push, degree = layout.n_items, np.zeros(layout.n_items), np.zeros(layout.n_items)
    bend, of_cells = np.zeros(len(layout.graph.second)), []
    for number, (kind, habits) in enumerate(zip(layout.kinds, state.kinds, strict=True)):
        answering = habits.answering(kind, state.alpha, state.alpha_variance)
        pushed, bent = item_pass(kind.cells, answering, *state.gaps(layout, kind))
        bent = 0.5 * (bent + former[number]) if former else bent
        of_cells.append(bent)
        first, second = kind.cells.first, kind.cells.second
        if kind.about_pairs:
            bend[kind.pair] += bent
            push += np.bincount(first, pushed, n) - np.bincount(second, pushed, n)
            degree += np.bincount(first, bent, n) + np.bincount(second, bent, n)
        else:
            push[first] += pushed
            degree[first] += bent
    push[given.clamped] += _CLAMP * (given.known - state.scores)[given.clamped]
    degree[given.clamped] += _CLAMP
    return Curve(push, bend, degree, tuple(of_cells))


class Prior:
    """The normal prior of scores around what features say: independent items, and a level that a query shares."""

    def __init__(self, layout: Layout, state: State) -> None:
        self.query, self.n_queries = layout.query, len(layout.offsets) - 1
        self.size = np.diff(layout.offsets)
        self.of_items, self.of_levels = state.variance_of_items, state.variance_of_levels
        whole = self.of_items + self.size * self.of_levels
        self.share = self.of_levels / whole
        """What the sum of a query's scores is multiplied with to give its level."""
        self.pull = self.share / self.of_items
        self.left = self.of_items * self.share
        """Variance of a level given the query's scores."""

    def sums(self, values: Floats) -> Floats:
        """Sum of each query's values."""
        return np.bincount(self.query, values, self.n_queries).astype(np.float64, copy=False)

    def times(self, columns: Floats) -> Floats:
        """Precision matrix times columns, (n_items, n)."""
        image = columns / self.of_items
        if self.of_levels > 0.0:
            sums = np.stack([self.sums(column) for column in columns.T], axis=1)
            image -= (self.pull[:, None] * sums)[self.query]
        return image


class Posterior:
    """The inverse of curvature and prior together, features apart.

    Levels of queries add to each query's matrix one of rank one, taken account of after the rest is inverted.
    """

    def __init__(self, layout: Layout, curve: Curve, prior: Prior) -> None:
        from .kernels.blocks import invert

        self.prior, self.query = prior, layout.query
        diagonal = curve.degree + 1.0 / prior.of_items
        self.inverse: Inverse = invert(layout.graph, curve.bend, diagonal, accuracy=_ACCURACY)
        self.variance, self.covariance = self.inverse.variance, self.inverse.covariance
        self.row_sums = np.zeros(layout.n_items)
        self.more = np.zeros(prior.n_queries)
        if prior.of_levels > 0.0:
            self.row_sums = self.inverse.solve(np.ones((layout.n_items, 1)))[:, 0]
            self.more = prior.pull / (1.0 - prior.pull * prior.sums(self.row_sums))
            first, second = layout.graph.first, layout.graph.second
            self.variance = self.variance + self.more[self.query] * self.row_sums**2
            between = self.row_sums[first] * self.row_sums[second]
            self.covariance = self.covariance + self.more[self.query[first]] * between

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        image = self.inverse.solve(columns)
        if self.prior.of_levels > 0.0:
            sums = np.stack([self.prior.sums(column) for column in image.T], axis=1)
            image += (self.more[:, None] * sums)[self.query] * self.row_sums[:, None]
        return image


def item_step(layout: Layout, state: State, given: Given) -> Solved:
    """Return the scores after one Newton step, longest 3 in each query, with their spread."""
    prior = Prior(layout, state)
    curve = curve_of(layout, state, given, state.of_cells)
    posterior = Posterior(layout, curve, prior)
    uphill = curve.push - prior.times(state.scores[:, None])[:, 0]
    target = state.scores + posterior.solve(uphill[:, None])[:, 0]
    variance, covariance = posterior.variance, posterior.covariance
    weights, spread_of_weights = state.weights, state.weights_covariance
    rest_variance, mean = variance, np.zeros(layout.n_items)
    if given.features.shape[1]:
        weights, spread_of_weights, along = weights_along(given.features, prior, posterior, target, state)
        target = target + along @ weights
        first, second = layout.graph.first, layout.graph.second
        spread_along = along @ spread_of_weights
        rest_variance = variance + _quadratic(along - given.features, spread_of_weights)
        variance = variance + (spread_along * along).sum(axis=1)
        covariance = covariance + (spread_along[first] * along[second]).sum(axis=1)
        mean = given.features @ weights
    scores = _capped(layout, state.scores, target)
    levels, levels_variance, rest, rest_variance = _explained(prior, posterior, scores - mean, rest_variance)
    return Solved(
        scores, variance, covariance, weights, spread_of_weights, rest, rest_variance, levels, levels_variance,
        curve.of_cells,
    )  # fmt: skip


def weights_along(
    features: Floats, prior: Prior, posterior: Posterior, target: Floats, state: State
) -> tuple[Floats, Floats, Floats]:
    """Return the weights of the features, their covariance, and how scores move with them, (n_items, n)."""
    pulled = prior.times(features)
    along = posterior.solve(pulled)
    matrix = pulled.T @ (features - along)
    matrix = 0.5 * (matrix + matrix.T)
    matrix.flat[:: len(matrix) + 1] += 1.0 / state.variance_of_weights
    spread: Floats = np.linalg.inv(matrix).astype(np.float64, copy=False)
    return spread @ (pulled.T @ target), spread, along


def _quadratic(rows: Floats, matrix: Floats) -> Floats:
    """The quadratic form of each row."""
    forms: Floats = (rows @ matrix * rows).sum(axis=1)
    return forms


def _capped(layout: Layout, before: Floats, after: Floats) -> Floats:
    """The scores after a step, shortened in queries where an item would move too far."""
    longest = np.zeros(len(layout.offsets) - 1)
    np.maximum.at(longest, layout.query, np.abs(after - before))
    if longest.max(initial=0.0) <= _LONGEST_STEP:
        return after
    return before + (after - before) * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))[layout.query]


def _explained(
    prior: Prior, posterior: Posterior, scores: Floats, variance: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Levels of the queries and their variances; what they leave of the scores, and its variance."""
    if prior.of_levels == 0.0:
        return np.zeros(prior.n_queries), np.zeros(prior.n_queries), scores, variance
    levels = prior.share * prior.sums(scores)
    sums = prior.sums(posterior.row_sums)
    with_all = posterior.row_sums * (1.0 + posterior.more * sums)[posterior.query]
    of_levels = prior.share**2 * prior.sums(with_all) + prior.left
    share = prior.share[posterior.query]
    left = variance - 2.0 * share * with_all + of_levels[posterior.query]
    return levels, of_levels, scores - levels[posterior.query], np.maximum(left, 0.0)
