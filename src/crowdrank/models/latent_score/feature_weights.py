"""Weights of the features in the item step: found exactly in every round, or, with many cells, exactly now and then.

Between two exact rounds weights take Newton steps with the last exact curvature. The gradient is exact, so they end
where exact rounds would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...kernels.threads import one_blas_thread
from ...protocols import Counts, Floats

if TYPE_CHECKING:
    from .items import ScorePosterior, ScorePrior
    from .kernels.item_systems import Graph
    from .state import State

MAX_CELLS_EVERY_ROUND = 1 << 21
"""Cells of features up to which weights are found exactly in every round."""

_MAX_CHANGE = 1.25
"""Factor by which a variance may change before the curvature of weights is computed anew."""

_BLOCK_ROWS = 2048
_ROWS_PER_THREAD = 20_000
_N_PROBES = 8
"""Random combinations of weights by which their part in the variances of scores is estimated, with many cells."""


class FeatureVariances(NamedTuple):
    """What uncertain weights add to the variances of scores and of what features leave, and to covariances of pairs.

    ``n_rounds`` is the number of rounds so far; the two variances are the prior ones that they were computed with.
    ``predicted`` is what the ``weights`` predict, so that the next round need not multiply again.
    """

    of_scores: Floats
    of_residuals: Floats
    of_pairs: Floats
    n_rounds: int
    variance_of_items: float
    variance_of_weights: float
    weights: Floats
    predicted: Floats

    def is_due(self, state: State) -> bool:
        """Whether to compute them anew: after rounds 1, 4, 16, ... and where prior variances have changed."""
        own = self.variance_of_items, self.variance_of_weights
        ratios = np.array([state.variance_of_items, state.variance_of_weights]) / own
        is_power_of_four = self.n_rounds.bit_count() == 1 and self.n_rounds.bit_length() % 2 == 1
        return is_power_of_four or bool((ratios > _MAX_CHANGE).any() or (ratios < 1.0 / _MAX_CHANGE).any())


class WeightStep(NamedTuple):
    """New weights with their covariance, the mean of scores that they predict, and how far scores follow it."""

    weights: Floats
    covariance: Floats
    mean: Floats
    shift: Floats
    variances: FeatureVariances


def weight_step(
    features: Floats, graph: Graph, prior: ScorePrior, posterior: ScorePosterior, target: Floats, state: State
) -> WeightStep:
    """Return the weights that go with the scores ``target`` that items would have without features."""
    former = state.feature_variances
    if former is not None and features.size > MAX_CELLS_EVERY_ROUND and not former.is_due(state):
        return _inexact_step(features, prior, posterior, target, state, former)
    covariance = weights_covariance(features, prior, posterior, state)
    weights = covariance @ transposed_product(features, prior.times(target[:, None])[:, 0])
    mean = product(features, weights)
    along, own = weight_uncertainty(features, prior, posterior, covariance)
    variances = FeatureVariances(
        (own**2).sum(axis=1), ((own - along) ** 2).sum(axis=1),
        (own[graph.first] * own[graph.second]).sum(axis=1), 1 if former is None else former.n_rounds + 1,
        state.variance_of_items, state.variance_of_weights, weights, mean,
    )  # fmt: skip
    return WeightStep(weights, covariance, mean, posterior.solve(prior.times(mean[:, None]))[:, 0], variances)


def weights_covariance(features: Floats, prior: ScorePrior, posterior: ScorePosterior, state: State) -> Floats:
    """Return the covariance of the weights, scores being free to follow them."""
    marginal = posterior.marginal_precision()
    if marginal is None:
        pulled = prior.times(features)
        matrix = pulled.T @ (features - posterior.solve(pulled))
    else:
        matrix = _diagonal_product(features, *marginal, prior)
    matrix = 0.5 * (matrix + matrix.T)
    matrix.flat[:: len(matrix) + 1] += 1.0 / state.variance_of_weights
    with one_blas_thread():
        covariance: Floats = np.linalg.inv(matrix).astype(np.float64, copy=False)
    return covariance


def _diagonal_product(features: Floats, precision: Floats, update: Floats, prior: ScorePrior) -> Floats:
    """Features times the precision of scores given features, judgments only through it, times features.

    Items that are not compared have a precision each, less a matrix of rank one for the level of their query. Rows are
    taken in blocks, and those that nobody judged have no precision.
    """
    root, sums = np.sqrt(precision), np.zeros((prior.n_queries, features.shape[1]))

    def add(first: int, last: int) -> Floats:
        matrix = np.zeros((features.shape[1], features.shape[1]))
        for begin in range(first, last, _BLOCK_ROWS):
            rows = slice(begin, min(begin + _BLOCK_ROWS, last))
            # a matrix times its own transpose is half of the work of another product
            weighted = features[rows] * root[rows, None]
            matrix += weighted.T @ weighted
            query = prior.query[rows]
            starts = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
            sums[query[starts]] += query_sums(weighted, starts, root[rows])
        return matrix

    total = _over_queries(add, prior)
    with one_blas_thread():
        product: Floats = total - sums.T @ (update[:, None] * sums)
    return product


def query_sums(columns: Floats, starts: Counts, weight: Floats) -> Floats:
    """Return the weighted sum of the rows from each start to the next; numpy's own takes several times as long."""
    from scipy.sparse import csr_array

    n_rows = len(columns)
    ends = np.append(starts, n_rows)
    sums: Floats = csr_array((weight, np.arange(n_rows), ends), shape=(len(starts), n_rows)) @ columns
    return sums


def _over_queries(add: Callable[[int, int], Floats], prior: ScorePrior) -> Floats:
    """The sum of what threads find, whose stretches of rows end where a query does."""
    from ...kernels.threads import even_bounds, over_bounds, total

    n_items = len(prior.query)
    bounds = prior.starts[np.searchsorted(prior.starts, even_bounds(n_items, _ROWS_PER_THREAD)[1:-1], "right") - 1]
    with one_blas_thread():
        return total(over_bounds(add, np.concatenate([[0], bounds, [n_items]])))


def product(features: Floats, columns: Floats) -> Floats:
    """Return features times a vector or columns."""
    from ...kernels.threads import even_bounds, over_bounds

    image = np.empty((len(features), *columns.shape[1:]))

    def fill(begin: int, end: int) -> None:
        np.matmul(features[begin:end], columns, out=image[begin:end])

    with one_blas_thread():
        over_bounds(fill, even_bounds(len(features), _ROWS_PER_THREAD))
    return image


def transposed_product(features: Floats, values: Floats) -> Floats:
    """Return the transpose of features times a vector."""
    from ...kernels.threads import even_bounds, over_bounds, total

    with one_blas_thread():
        bounds = even_bounds(len(features), _ROWS_PER_THREAD)
        return total(over_bounds(lambda begin, end: features[begin:end].T @ values[begin:end], bounds))


def weight_uncertainty(
    features: Floats, prior: ScorePrior, posterior: ScorePosterior, covariance: Floats
) -> tuple[Floats, Floats]:
    """Return by how much uncertain weights move what features predict and the scores, (n_items, n) each.

    Products of rows are variances and covariances: exact ones, or with many cells estimates from random combinations.
    """
    with one_blas_thread():
        root = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
    if features.size > MAX_CELLS_EVERY_ROUND:
        probes = np.random.default_rng(0).normal(size=(len(root), _N_PROBES))
        root = root @ probes / _N_PROBES**0.5
    along = product(features, root)
    return along, posterior.solve(prior.times(along))


def _inexact_step(
    features: Floats,
    prior: ScorePrior,
    posterior: ScorePosterior,
    target: Floats,
    state: State,
    former: FeatureVariances,
) -> WeightStep:
    """Weights after a Newton step with the last exact curvature; a few columns are multiplied, not all pairs."""

    def times_prior(values: Floats) -> Floats:
        return prior.times(values[:, None])

    known = np.array_equal(former.weights, state.weights)
    mean = former.predicted if known else product(features, state.weights)
    left = target - mean + posterior.solve(times_prior(mean))[:, 0]
    gradient = transposed_product(features, times_prior(left)[:, 0]) - state.weights / state.variance_of_weights
    weights = state.weights + state.weights_covariance @ gradient
    mean = product(features, weights)
    return WeightStep(
        weights, state.weights_covariance, mean, posterior.solve(times_prior(mean))[:, 0],
        former._replace(n_rounds=former.n_rounds + 1, weights=weights, predicted=mean),
    )  # fmt: skip
