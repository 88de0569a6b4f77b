"""The steps of a round, in their order: scores given the annotators, with query levels and features; difficulties.

The noise of an item's grades is ``exp(z)`` times the usual, ``z`` normal around 0 with a variance that is learned: the
item's difficulty. Items are equally difficult until the first long steps of a fit are over and the grades speak against
it, held-out ones too; so nothing moves where they do not. Later lapses and flatter scores would have taken the place of
difficulties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...covariate_design import CovariateDesign
from ...data.consensus import Trace
from ...errors import ParameterError
from ...kernels.threads import dot, one_blas_thread
from ...protocols import Bools, Counts, Floats, Progress
from .model import (
    ALONE_VARIANCE,
    MAX_MEAN_LAPSE,
    MAX_REVERSED_SHARE,
    MAX_VARIANCES,
    MIN_CUT_GAP,
    START_COEFFICIENT_VARIANCE,
    START_LAPSE,
    START_VARIANCES,
    Anchors,
    ControlState,
    DiscriminationPrior,
    ItemInputs,
    Kind,
    KindState,
    Layout,
    State,
    find_anchors,
    first_cuts,
    first_shares,
    first_state,
    hold_out_grades,
    n_held_out_folds,
    weight_variances,
)

if TYPE_CHECKING:
    from .kernels.item_systems import Graph, Inverse
    from .kernels.ordinal import AnnotatorSums


_SOLVER_ACCURACY = 1e-4
MAX_SCORE_STEP = 3.0
_CLAMP_PRECISION = 1e8
"""Precision of the score of a known item."""

MIN_EVIDENCE = 1.645
"""Standard errors by which grades have to speak for differences in difficulty: 5 % by chance at most."""

_MAX_DIFFICULTY_STEP = 0.7
_HERMITE = ((-(3.0**0.5), 1.0 / 6.0), (0.0, 2.0 / 3.0), (3.0**0.5, 1.0 / 6.0))
"""Points, in standard deviations, and weights of the mean over a normal distribution by three points."""

_MIN_SHARE_OF_CURVATURE = 0.1

_MIN_SCORE_SHARE = 0.1
"""Share of the variance of scores that grades have to tell before they tell anything of difficulties.

Of two camps of one size, scores say nothing, and items at the ends of the scale would pass for difficult ones.
"""


class Curvature(NamedTuple):
    """Gradient (n_items,) and negative Hessian of the log-likelihood in the scores.

    The Hessian has ``diagonal`` (n_items,), and minus ``pair_weight`` at each compared pair, (n_pairs,). ``of_cells``
    has the curvature of each kind's cells.
    """

    gradient: Floats
    pair_weight: Floats
    diagonal: Floats
    of_cells: tuple[Floats, ...]


class VarianceSums(NamedTuple):
    """What a prior variance is learned from: sums over values around 0.

    ``number`` of values, or their weight, their squares, their posterior ``variances``, and the share of the prior
    variance that judgments ``explained``.
    """

    number: float
    squares: float
    variances: float
    explained: float

    @classmethod
    def of(cls, squares: Floats, variances: Floats, prior: float, weight: Floats | None = None) -> VarianceSums:
        """Return the sums over values of these squares and variances, with a prior variance so far."""
        weight = np.ones(len(squares)) if weight is None else weight
        explained = dot(weight, np.maximum(1.0 - variances / prior, 0.0))
        return cls(float(weight.sum()), dot(weight, squares), dot(weight, variances), explained)


NO_SUMS = VarianceSums(0.0, 0.0, 0.0, 0.0)


class ItemSums(NamedTuple):
    """What the prior variances of scores, levels of queries, weights of features and difficulties are learned from."""

    items: VarianceSums
    levels: VarianceSums = NO_SUMS
    weights: VarianceSums = NO_SUMS
    difficulties: VarianceSums = NO_SUMS


def item_step(layout: Layout, state: State, inputs: ItemInputs) -> tuple[State, ItemSums]:
    """Return the state after one Newton step of the scores, and what prior variances are learned from.

    The step is at most 3 long in each query.
    """
    prior = ScorePrior(layout, state)
    curvature = score_curvature(layout, state, inputs, state.cell_curvature)
    posterior = ScorePosterior(layout, curvature, prior)
    gradient = curvature.gradient - prior.times(state.scores[:, None])[:, 0]
    target = state.scores + posterior.solve(gradient[:, None])[:, 0]
    variance, covariance = posterior.variance, posterior.covariance
    weights, weights_covariance = state.weights, state.weights_covariance
    residual_variance, mean = variance, np.zeros(layout.n_items)
    of_features = state.feature_variances
    if inputs.features.shape[1]:
        step = weight_step(inputs.features, layout.graph, posterior, target, state)
        weights_covariance, shift, of_features = step
        weights, mean = of_features.weights, of_features.predicted
        target, residual_variance = target + shift, variance + of_features.of_residuals
        variance, covariance = variance + of_features.of_scores, covariance + of_features.of_pairs
    longest = np.zeros(prior.n_queries)
    np.maximum.at(longest, layout.query, np.abs(target - state.scores))
    if longest.max(initial=0.0) > MAX_SCORE_STEP:
        share = np.minimum(1.0, MAX_SCORE_STEP / np.maximum(longest, 1e-300))[layout.query]
        target = state.scores + (target - state.scores) * share
    # what neither features nor the query's level explain of a score
    residual, of_levels = target - mean, NO_SUMS
    if prior.of_levels > 0.0:
        levels = prior.level_share * prior.sums(residual)
        with_sum = posterior.row_sums * (1.0 + posterior.update * prior.sums(posterior.row_sums))[layout.query]
        levels_variance = prior.level_share**2 * prior.sums(with_sum) + prior.level_variance
        residual = residual - levels[layout.query]
        residual_variance = residual_variance - 2.0 * prior.level_share[layout.query] * with_sum
        residual_variance = np.maximum(residual_variance + levels_variance[layout.query], 0.0)
        here = layout.judged_queries
        of_levels = VarianceSums.of(levels[here] ** 2, levels_variance[here], prior.of_levels)
    judged = layout.judged
    of_items = VarianceSums.of(residual[judged] ** 2, residual_variance[judged], state.variance_of_items)
    of_weights = VarianceSums.of(weights**2, np.diag(weights_covariance), state.variance_of_weights)
    state = replace(state, weights=weights, weights_covariance=weights_covariance, feature_variances=of_features)
    state = replace(state, scores=target, variance=variance, covariance=covariance, cell_curvature=curvature.of_cells)
    return state, ItemSums(of_items, of_levels, of_weights)


def score_curvature(layout: Layout, state: State, inputs: ItemInputs, former: tuple[Floats, ...] = ()) -> Curvature:
    """Return gradient and curvature of the judgments, and of known items, at the present scores.

    The curvature is averaged with the ``former`` of each kind, if there is one, which damps a cycle: a large variance
    of scores gives a large curvature, which gives a small variance, and so on.
    """
    from .kernels.ordinal import item_pass

    n, gradient, diagonal = layout.n_items, np.zeros(layout.n_items), np.zeros(layout.n_items)
    pair_weight, of_cells = np.zeros(len(layout.graph.second)), []
    for number, (kind, habits) in enumerate(zip(layout.kinds, state.kinds, strict=True)):
        model = state.response_model(kind, habits)
        slope, curve = item_pass(kind.cells, model, *state.gaps(kind))
        curve = 0.5 * (curve + former[number]) if former else curve
        of_cells.append(curve)
        first, second = kind.cells.first, kind.cells.second
        if kind.about_pairs:
            pair_weight[kind.pair] += curve
            gradient += np.bincount(first, slope, n) - np.bincount(second, slope, n)
            diagonal += np.bincount(first, curve, n) + np.bincount(second, curve, n)
        else:
            gradient[first] += slope
            diagonal[first] += curve
    gradient[inputs.clamped] += _CLAMP_PRECISION * (inputs.known - state.scores)[inputs.clamped]
    diagonal[inputs.clamped] += _CLAMP_PRECISION
    return Curvature(gradient, pair_weight, diagonal, tuple(of_cells))


class ScorePrior:
    """The normal prior of scores around what features predict: independent items, and a level per query."""

    def __init__(self, layout: Layout, state: State) -> None:
        self.query, self.n_queries = layout.query, len(layout.offsets) - 1
        self.size, self.starts = np.diff(layout.offsets), layout.offsets[:-1]
        self.of_items, self.of_levels = state.variance_of_items, state.variance_of_levels
        of_sums = self.of_items + self.size * self.of_levels
        self.level_share = self.of_levels / of_sums
        """The level of a query is this times the sum of its scores."""
        self.pull = self.level_share / self.of_items
        self.level_variance = self.of_items * self.level_share
        """Variance of a level given the query's scores."""

    def sums(self, values: Floats) -> Floats:
        """Sum of each query's values."""
        return np.bincount(self.query, values, self.n_queries).astype(np.float64, copy=False)

    def column_sums(self, columns: Floats) -> Floats:
        """Sum of each query's rows of columns, (n_queries, n); the items of a query stand side by side."""
        sums, starts = np.zeros((self.n_queries, columns.shape[1])), self.starts[self.size > 0]
        if columns.shape[1] > 1:
            sums[self.size > 0] = query_sums(columns, starts, np.ones(len(columns)))
        else:
            sums[self.size > 0] = np.add.reduceat(columns, starts, axis=0)
        return sums

    def times(self, columns: Floats) -> Floats:
        """Precision matrix times columns, (n_items, n)."""
        image = columns / self.of_items
        if self.of_levels > 0.0:
            image -= np.repeat(self.pull[:, None] * self.column_sums(columns), self.size, axis=0)
        return image


class ScorePosterior:
    """The inverse of curvature and prior precision together, without features.

    Levels add a matrix of rank one to each query's, by the Sherman-Morrison formula after the rest is inverted.
    """

    def __init__(self, layout: Layout, curvature: Curvature, prior: ScorePrior) -> None:
        from .kernels.item_systems import invert

        self.prior, self.query = prior, layout.query
        diagonal = curvature.diagonal + 1.0 / prior.of_items
        self.inverse: Inverse = invert(layout.graph, curvature.pair_weight, diagonal, accuracy=_SOLVER_ACCURACY)
        self.variance, self.covariance = self.inverse.variance, self.inverse.covariance
        self.row_sums = np.zeros(layout.n_items)
        self.update = np.zeros(prior.n_queries)
        if prior.of_levels > 0.0:
            self.row_sums = self.inverse.solve(np.ones((layout.n_items, 1)))[:, 0]
            self.update = prior.pull / (1.0 - prior.pull * prior.sums(self.row_sums))
            first, second = layout.graph.first, layout.graph.second
            self.variance = self.variance + self.update[self.query] * self.row_sums**2
            between = self.row_sums[first] * self.row_sums[second]
            self.covariance = self.covariance + self.update[self.query[first]] * between

    def marginal_precision(self) -> tuple[Floats, Floats] | None:
        """Return the precision of judgments about what features and levels predict, where no items are compared.

        It is diagonal, (n_items,), less the outer product of each query's part with itself times a factor,
        (n_queries,).
        """
        if len(self.covariance):
            return None
        of_items = 1.0 - self.inverse.variance / self.prior.of_items
        precision = np.maximum(of_items, 0.0) / self.prior.of_items
        return precision, self.prior.of_levels / (1.0 + self.prior.of_levels * self.prior.sums(precision))

    def solve(self, columns: Floats) -> Floats:
        """Return the inverse times columns, (n_items, n)."""
        image = self.inverse.solve(columns)
        if self.prior.of_levels > 0.0:
            level = np.repeat(self.update[:, None] * self.prior.column_sums(image), self.prior.size, axis=0)
            image += level * self.row_sums[:, None]
        return image


# Difficulties: how much more, or less, grades of an item differ than those of others


class Evidence(NamedTuple):
    """For a variance of difficulties above 0: the sum over items of the likelihood's slope in it, and of squares.

    ``score_squares`` is the sum of the scores' squares, ``score_variances`` that of their posterior variances.
    """

    slope: float
    squares: float
    score_squares: float
    score_variances: float

    @property
    def is_enough(self) -> bool:
        """Whether items differ in difficulty beyond chance, and in scores: camps that contradict each other do not."""
        differ = self.score_squares > _MIN_SCORE_SHARE * (self.score_squares + self.score_variances)
        return bool(differ and self.slope > MIN_EVIDENCE * self.squares**0.5)


def difficulty_slopes(layout: Layout, state: State) -> Floats:
    """Return gradient and curvature in the difficulty of each item, and curvature with its score, (3, n_items)."""
    from .kernels.ordinal import difficulty_pass

    slopes = np.zeros((3, layout.n_items))
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        if kind.has_difficulty:
            of_kind = difficulty_pass(kind.cells, state.response_model(kind, habits), *state.gaps(kind))
            slopes[:, kind.cells.first] = of_kind
    return slopes


def difficulty_evidence(layout: Layout, state: State) -> Evidence:
    """Return what grades say for differences in difficulty where a fit has none yet: a score test.

    The slope is averaged over what is not known of the scores, by a rule of three points: scores that follow the
    grades make these look more alike than they are.
    """
    slope, deviation = np.zeros(layout.n_items), np.sqrt(state.variance)
    for point, weight in _HERMITE:
        moved = replace(state, scores=state.scores + point * deviation, variance=np.zeros(layout.n_items))
        gradient, curvature, _ = difficulty_slopes(layout, moved)
        slope += weight * (gradient**2 - curvature)
    score_squares, score_variances = (state.scores[layout.judged] ** 2).sum(), state.variance[layout.judged].sum()
    return Evidence(float(slope.sum()), float((slope**2).sum()), float(score_squares), float(score_variances))


def with_difficulties(layout: Layout, state: State) -> State:
    """Return the state from which rounds go on with difficulties."""
    start = START_VARIANCES["difficulty"]
    none = np.zeros(layout.n_items)
    return replace(state, difficulty=none, difficulty_variance=none + start, variance_of_difficulty=start)


def difficulty_step(layout: Layout, state: State) -> tuple[State, VarianceSums]:
    """Return the state after one Newton step of the difficulties, and what their variance is learned from."""
    prior = state.variance_of_difficulty
    if prior == 0.0:
        return state, NO_SUMS
    gradient, curvature, _ = difficulty_slopes(layout, state)
    precision = np.maximum(curvature, 0.0) + 1.0 / prior
    step = (gradient - state.difficulty / prior) / precision
    difficulty = state.difficulty + np.clip(step, -_MAX_DIFFICULTY_STEP, _MAX_DIFFICULTY_STEP)
    judged = layout.judged
    sums = VarianceSums.of(difficulty[judged] ** 2, 1.0 / precision[judged], prior)
    return replace(state, difficulty=difficulty, difficulty_variance=1.0 / precision), sums


def blurred_curvature(layout: Layout, state: State, inputs: ItemInputs) -> Curvature:
    """Return gradient and curvature in the scores with difficulties marginalised, as with annotators in the end.

    The variance of a score is averaged over what is not known of its item's difficulty, by a rule of three points, and
    the score moves with it by what curves in both.
    """
    curvature = score_curvature(layout, state, inputs)
    if state.variance_of_difficulty == 0.0:
        return curvature
    prior, deviation = 1.0 / state.variance_of_items, np.sqrt(state.difficulty_variance)
    variance = np.zeros(layout.n_items)
    for point, weight in _HERMITE:
        moved = replace(state, difficulty=state.difficulty + point * deviation)
        variance += weight / (score_curvature(layout, moved, inputs).diagonal + prior)
    cross = difficulty_slopes(layout, state)[2]
    diagonal = 1.0 / variance - prior - cross**2 * state.difficulty_variance
    lost = curvature.diagonal - np.maximum(diagonal, _MIN_SHARE_OF_CURVATURE * curvature.diagonal)
    return curvature._replace(diagonal=curvature.diagonal - lost)


# threshold (sample): cells of features up to which latent_score finds weights exactly in every round
MAX_CELLS_EVERY_ROUND = 1 << 21
"""Cells of features up to which weights are found exactly in every round."""

_MAX_VARIANCE_RATIO = 1.25
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
        return is_power_of_four or bool(
            (ratios > _MAX_VARIANCE_RATIO).any() or (ratios < 1.0 / _MAX_VARIANCE_RATIO).any()
        )


def weight_step(
    features: Floats, graph: Graph, posterior: ScorePosterior, target: Floats, state: State
) -> tuple[Floats, Floats, FeatureVariances]:
    """Return the covariance of the weights, how far scores follow what they predict, and the weights with variances.

    They go with the scores ``target`` that items would have without features.
    """
    former, prior = state.feature_variances, posterior.prior
    if former is not None and features.size > MAX_CELLS_EVERY_ROUND and not former.is_due(state):
        return _inexact_step(features, posterior, target, state, former)
    covariance = weights_covariance(features, posterior, state)
    weights = covariance @ transposed_product(features, prior.times(target[:, None])[:, 0])
    mean = product(features, weights)
    along, own = weight_uncertainty(features, posterior, covariance)
    variances = FeatureVariances(
        (own**2).sum(axis=1), ((own - along) ** 2).sum(axis=1),
        (own[graph.first] * own[graph.second]).sum(axis=1), 1 if former is None else former.n_rounds + 1,
        state.variance_of_items, state.variance_of_weights, weights, mean,
    )  # fmt: skip
    return covariance, posterior.solve(prior.times(mean[:, None]))[:, 0], variances


def weights_covariance(features: Floats, posterior: ScorePosterior, state: State) -> Floats:
    """Return the covariance of the weights, scores being free to follow them."""
    marginal, prior = posterior.marginal_precision(), posterior.prior
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
    from ...kernels.threads import even_bounds, over_bounds, total

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

    # stretches of rows end where a query does
    ends = np.searchsorted(prior.starts, even_bounds(len(features), _ROWS_PER_THREAD)[1:-1], "right")
    bounds = np.concatenate([[0], prior.starts[ends - 1], [len(features)]])
    with one_blas_thread():
        product: Floats = total(over_bounds(add, bounds)) - sums.T @ (update[:, None] * sums)
    return product


def query_sums(columns: Floats, starts: Counts, weight: Floats) -> Floats:
    """Return the weighted sum of the rows from each start to the next; numpy's own takes several times as long."""
    from scipy.sparse import csr_array

    n_rows = len(columns)
    ends = np.append(starts, n_rows)
    return csr_array((weight, np.arange(n_rows), ends), shape=(len(starts), n_rows)) @ columns


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


def weight_uncertainty(features: Floats, posterior: ScorePosterior, covariance: Floats) -> tuple[Floats, Floats]:
    """Return by how much uncertain weights move what features predict and the scores, (n_items, n) each.

    Products of rows are variances and covariances: exact ones, or with many cells estimates from random combinations.
    """
    with one_blas_thread():
        root = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
    if features.size > MAX_CELLS_EVERY_ROUND:
        probes = np.random.default_rng(0).normal(size=(len(root), _N_PROBES))
        root = root @ probes / _N_PROBES**0.5
    along = product(features, root)
    return along, posterior.solve(posterior.prior.times(along))


def _inexact_step(
    features: Floats, posterior: ScorePosterior, target: Floats, state: State, former: FeatureVariances
) -> tuple[Floats, Floats, FeatureVariances]:
    """Weights after a Newton step with the last exact curvature; a few columns are multiplied, not all pairs."""

    def times_prior(values: Floats) -> Floats:
        return posterior.prior.times(values[:, None])

    known = np.array_equal(former.weights, state.weights)
    mean = former.predicted if known else product(features, state.weights)
    left = target - mean + posterior.solve(times_prior(mean))[:, 0]
    gradient = transposed_product(features, times_prior(left)[:, 0]) - state.weights / state.variance_of_weights
    weights = state.weights + state.weights_covariance @ gradient
    mean = product(features, weights)
    following = former._replace(n_rounds=former.n_rounds + 1, weights=weights, predicted=mean)
    return state.weights_covariance, posterior.solve(times_prior(mean))[:, 0], following


MIN_MEAN_ALPHA = 0.05
"""Below this mean discrimination of the crowd, the direction of scores cannot be known."""

_GUESSING_VARIANCE = 0.04
"""Variance of the discriminations of those who guess."""

_MAX_STEP = 1.5
"""Longest step of a discrimination or bias."""

_MAX_LOG_SPREAD_STEP = 0.5
_MIN_CURVATURE_LEFT = 0.02
"""Share of the curvature in a parameter of an annotator that is left at least where others follow it."""

_MAX_LOG_SCALE_STEP = 0.5
_MAX_CUT_STEP = 1.0
_MIN_CUT_STEP = 1e-12

_LAPSE_PRIOR_JUDGMENTS = 10.0
_MEAN_LAPSE_PRIOR_JUDGMENTS = 20.0
_FAVOURITE_PRIOR_JUDGMENTS = 3.0
_MIN_LAPSE = 1e-6
_MAX_LAPSE = 0.9
_MAX_LAPSE_RATIO = 4.0
"""A probability of a lapse changes by at most this factor in a round."""

_LOG_SCALE_PRECISION = 16.0
_CUT_PRECISION = 0.1
_SHARES_PRIOR_ANNOTATORS = 10.0
_SCALE_PRIOR_ANNOTATORS = 0.5
_MIN_RESCALING = 0.7
_MIN_VARIANCE = 4e-4

_PRIOR_COUNTS = {"item": 4.0, "alpha": 50.0, "bias": 4.0, "spread": 4.0, "level": 4.0, "weight": 4.0, "difficulty": 4.0}
"""Number of items, annotators, queries and features that the start of a variance counts as."""

_PRIOR_COUNT_SHARES = {"item": 0.05, "weight": 0.05}
"""Share of them that it counts as besides: with few comparisons nothing else bounds the variance of scores."""

_WIDENING = 2.0
_WIDENING_ITEMS = 50.0
"""Number of items at which the variance of scores is widened by half of the full factor."""


# Annotators

_CURVATURES = (
    "alpha_alpha", "alpha_bias", "alpha_spread", "bias_bias", "bias_spread", "spread_spread",
    "alpha_square", "alpha_times_spread", "spread_square",
)  # fmt: skip


def annotator_sums(layout: Layout, state: State) -> list[AnnotatorSums]:
    """Return the gradients and curvatures of annotators and crowd at the present scores, for each kind."""
    from .kernels.ordinal import annotator_pass

    return [
        annotator_pass(kind.cells, state.response_model(kind, habits), *state.gaps(kind))
        for kind, habits in zip(layout.kinds, state.kinds, strict=True)
    ]


def damp_curvature(sums: list[AnnotatorSums], state: State) -> list[AnnotatorSums]:
    """Return the sums with their curvature averaged with that of the last round, so that it does not oscillate."""
    damped = []
    for of, habits in zip(sums, state.kinds, strict=True):
        if habits.curvature is not None:
            means: Any = dict(zip(_CURVATURES, 0.5 * (_curvatures(of) + habits.curvature), strict=True))
            of = of._replace(**means)
        if habits.control is not None and habits.control.curvature is not None:
            of = of._replace(control_curvature=0.5 * (of.control_curvature + habits.control.curvature))
        damped.append(of)
    return damped


def _curvatures(of: AnnotatorSums) -> Floats:
    """The curvatures of annotators that are damped, (6, n_annotators)."""
    return np.stack([getattr(of, name) for name in _CURVATURES])


class Discriminations(NamedTuple):
    """Posterior mean and variance of each annotator's discrimination, overall and within each group.

    ``variance`` is that at given spreads, as the passes take it. The groups are those who see, are reversed, and guess:
    ``group`` has the probability of each, ``means`` and ``variances`` are those within it, whatever the spreads,
    (3, n_annotators) each. ``open_variances`` are the latter where scores are integrated out, which prior variances are
    learned from, and ``open_marginal`` is the variance over all groups by them.
    """

    mean: Floats
    variance: Floats
    group: Floats
    means: Floats
    variances: Floats
    open_variances: Floats
    open_marginal: Floats


def annotator_step(
    layout: Layout, state: State, sums: list[AnnotatorSums], prior: DiscriminationPrior, *, learn_mean_lapse: bool
) -> tuple[State, Discriminations]:
    """Return the annotators after one Newton step of discrimination and biases, and one of each spread.

    The crowd's mean lapse is learned only after the first long steps: before, scores are too close to each other, and
    lapses look rarer than they are.
    """
    gradient, curvature, explained, missing = np.zeros((4, layout.n_annotators))
    n_windows = 1 if layout.walk is None else layout.walk.n_windows
    rests = [
        eliminated_habits(kind, habits, of) for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True)
    ]
    spreads = list[_Spreads]()
    for kind, habits, of, rest in zip(layout.kinds, state.kinds, sums, rests, strict=True):
        spread = _spreads(kind, habits, of, n_windows, follow=rest is None and layout.walk is None)
        spreads.append(spread)
        gradient = gradient + of.alpha - spread.cross * spread.newton
        curvature, explained = curvature + of.alpha_alpha, explained + spread.cross * spread.ratio
        missing = missing + spread.open_cross**2 / spread.open_curvature
        if not kind.about_pairs:
            missing = missing + of.alpha_alpha - of.alpha_square
        if rest is not None:
            gradient = gradient - (rest.cross * rest.newton).sum(axis=1)
            curvature = curvature - (rest.cross * rest.ratio).sum(axis=1)
        elif kind.has_bias:
            # the bias is eliminated: it moves with the discrimination
            ratio = of.alpha_bias / bias_curvature(habits, of)
            gradient = gradient - ratio * _bias_gradient(habits, of)
            curvature = curvature - ratio * of.alpha_bias
    curvature = np.maximum(curvature, 0.0)
    if layout.walk is not None:
        pull = layout.walk.carry(gradient + curvature * state.alpha, curvature)
        curvature = layout.walk.carry(curvature, curvature)
        gradient = pull - curvature * state.alpha
    posterior = _discriminations(state, gradient, curvature, explained, missing, prior)
    step = np.clip(posterior.mean - state.alpha, -_MAX_STEP, _MAX_STEP)
    kinds = tuple(
        _habit_step(kind, habits, of, rest, spread, step, posterior, learn_mean_lapse, n_windows)
        for kind, habits, of, rest, spread in zip(layout.kinds, state.kinds, sums, rests, spreads, strict=True)
    )
    if layout.walk is not None:
        kinds = tuple(replace(habits, bias=layout.walk.pool(habits.bias) / n_windows) for habits in kinds)
    return replace(state, alpha=state.alpha + step, alpha_variance=posterior.variance, kinds=kinds), posterior


def _discriminations(
    state: State, gradient: Floats, curvature: Floats, explained: Floats, missing: Floats, crowd: DiscriminationPrior
) -> Discriminations:
    """Posterior of the discriminations given gradient and curvature of the judgments: a mixture of normals, exactly.

    The curvature is that at the present spreads, ``explained`` how much of it these take where they follow, and
    ``missing`` how much they and what is not known of the scores take.
    """
    given_spreads = curvature
    curvature, of_open = (
        np.maximum(curvature - less, _MIN_CURVATURE_LEFT * curvature) for less in (explained, missing)
    )
    own = crowd.variance(state.variance_of_alpha)
    prior = np.stack([own, own, np.minimum(own, _GUESSING_VARIANCE)])
    middle = np.stack([crowd.mean, -crowd.mean, np.zeros(len(own))])
    share = crowd.shares(state.shares)
    pull = curvature * state.alpha + gradient
    variances = 1.0 / (curvature + 1.0 / prior)
    means = variances * (pull + middle / prior)
    log_odds = 0.5 * (np.log(variances / prior) + means**2 / variances - middle**2 / prior)
    # with large weights a group without a share would win over any logarithm of it
    log_odds = np.where(share > 0.0, log_odds + np.log(np.maximum(share, 1e-300)), -np.inf)
    group = np.exp(log_odds - log_odds.max(axis=0))
    group /= group.sum(axis=0)
    mean = (group * means).sum(axis=0)
    between = (group * (means - mean) ** 2).sum(axis=0)
    variance = (group / (given_spreads + 1.0 / prior)).sum(axis=0) + between
    open_variances = 1.0 / (of_open + 1.0 / prior)
    open_marginal = (group * open_variances).sum(axis=0) + between
    return Discriminations(mean, variance, group, means, variances, open_variances, open_marginal)


def bias_curvature(habits: KindState, of: AnnotatorSums) -> Floats:
    """Return the curvature in the bias, prior included."""
    return of.bias_bias + 1.0 / habits.variance_of_bias


def _bias_gradient(habits: KindState, of: AnnotatorSums) -> Floats:
    """Gradient in the bias, prior included."""
    return of.bias + (habits.mean_bias - habits.bias) / habits.variance_of_bias


class _Spreads(NamedTuple):
    """How log-spreads of one kind move: ``newton`` at the present discriminations, less ``ratio`` times their steps.

    ``cross`` is the curvature with the discriminations, biases eliminated as in :class:`Eliminated`; ``on_bias`` is how
    far biases move against spreads. ``open_cross`` and ``open_curvature`` are those where scores are integrated out.
    """

    cross: Floats
    newton: Floats
    ratio: Floats
    on_bias: Floats
    open_cross: Floats
    open_curvature: Floats


def _spreads(kind: Kind, habits: KindState, of: AnnotatorSums, n_windows: int, *, follow: bool) -> _Spreads:
    """How spreads move; where they do not ``follow`` discriminations and biases, each moves alone.

    Whoever answers more exactly has a larger discrimination and wider cuts; either alone would hardly move.
    """
    none = np.zeros(len(of.alpha))
    if not kind.has_spread:
        return _Spreads(none, none, none, none, none, none + 1.0)
    # the mean spread is the scale of the cuts, which have a prior of their own; each window has the sums of all windows
    share = n_windows * _CUT_PRECISION * of.spread_spread / max(float(of.spread_spread.sum()), _MIN_POSITIVE)
    curvature = of.spread_spread + 1.0 / habits.variance_of_spread + share * float(habits.cuts @ habits.cuts)
    gradient = of.spread - habits.spread / habits.variance_of_spread
    gradient = gradient - share * float(habits.cuts @ (habits.cuts - first_cuts(kind)[1]))
    cross, on_bias = (of.alpha_spread, none) if follow else (none, none)
    if follow and kind.has_bias:
        on_bias = of.bias_spread / bias_curvature(habits, of)
        cross = cross - of.alpha_bias * on_bias
        gradient = gradient - on_bias * _bias_gradient(habits, of)
        curvature = np.maximum(curvature - on_bias * of.bias_spread, _MIN_CURVATURE_LEFT * curvature)
    open_curvature, open_cross = curvature, cross
    if not kind.about_pairs:
        # given the scores, grades of three or four to an item seem to say several times as much as they do
        open_curvature = np.maximum(curvature - of.spread_spread + of.spread_square, _MIN_CURVATURE_LEFT * curvature)
        open_cross = cross - of.alpha_spread + of.alpha_times_spread if follow else none
    return _Spreads(cross, gradient / curvature, cross / curvature, on_bias, open_cross, open_curvature)


def _habit_step(
    kind: Kind, habits: KindState, of: AnnotatorSums, rest: Eliminated | None, spread: _Spreads, alpha_step: Floats,
    posterior: Discriminations, learn_mean_lapse: bool, n_windows: int,
) -> KindState:  # fmt: skip
    """Bias, coefficients of covariates, spread and lapses after this step of the discriminations."""
    habits, alpha_variance = replace(habits, curvature=_curvatures(of)), posterior.variance
    spread_step = np.clip(spread.newton - spread.ratio * alpha_step, -_MAX_LOG_SPREAD_STEP, _MAX_LOG_SPREAD_STEP)
    if rest is not None and habits.control is not None:
        control, step = control_step(habits.control, of, rest, alpha_step, alpha_variance)
        habits = replace(habits, control=control)
        if kind.has_bias:
            variance, covariance = control.covariance[:, 1, 1], control.covariance[:, 0, 1]
            habits = replace(habits, bias=habits.bias + step, bias_variance=variance, covariance=covariance)
    elif kind.has_bias:
        curvature = bias_curvature(habits, of)
        ratio = of.alpha_bias / curvature
        step = _bias_gradient(habits, of) / curvature - ratio * alpha_step - spread.on_bias * spread_step
        step = np.clip(step, -_MAX_STEP, _MAX_STEP)
        habits = replace(
            habits, bias=habits.bias + step, covariance=-ratio * alpha_variance,
            bias_variance=1.0 / curvature + ratio**2 * alpha_variance,
        )  # fmt: skip
    if kind.has_spread:
        moved = habits.spread + spread_step
        common = float(moved[kind.weight > 0].mean())
        # cuts stay as far apart as their own steps have to leave them
        common = max(common, min(0.0, float(np.log(MIN_CUT_GAP / np.diff(habits.cuts).min()))))
        moved = np.where(kind.weight > 0, moved - common, 0.0)
        ratio = spread.open_cross / spread.open_curvature
        variance = 1.0 / spread.open_curvature + ratio**2 * posterior.open_marginal
        habits = replace(habits, spread=moved, spread_variance=variance, cuts=habits.cuts * np.exp(common))
    return _lapse_step(kind, habits, of, learn_mean_lapse, n_windows) if kind.has_lapses else habits


def _lapse_step(kind: Kind, habits: KindState, of: AnnotatorSums, learn_mean_lapse: bool, n_windows: int) -> KindState:
    """Probability of a lapse of each annotator, and the levels then given.

    Newton steps: expectation-maximisation is slow where lapses are rare.
    """
    total, count = float(kind.weight.sum()), _MEAN_LAPSE_PRIOR_JUDGMENTS
    # each window has the lapses of all windows of its annotator
    lapses = float(of.lapsed.sum()) / n_windows
    mean = min((lapses + count * START_LAPSE) / (total + count), MAX_MEAN_LAPSE)
    mean, before = mean if learn_mean_lapse else habits.mean_lapse, habits.lapse
    gradient = of.lapse + _LAPSE_PRIOR_JUDGMENTS * (mean / before - (1.0 - mean) / (1.0 - before))
    curvature = of.lapse_lapse + _LAPSE_PRIOR_JUDGMENTS * (mean / before**2 + (1.0 - mean) / (1.0 - before) ** 2)
    lowest = np.maximum(before / _MAX_LAPSE_RATIO, _MIN_LAPSE)
    lapse = np.clip(before + gradient / curvature, lowest, np.minimum(_MAX_LAPSE_RATIO * before, _MAX_LAPSE))
    favourites = of.lapsed + _FAVOURITE_PRIOR_JUDGMENTS * kind.shares
    favourites /= favourites.sum(axis=1, keepdims=True)
    return replace(habits, lapse=lapse, favourites=favourites, mean_lapse=mean)


# The crowd


def cut_step(layout: Layout, state: State, sums: list[AnnotatorSums]) -> State:
    """Return the state after one step of each kind's cuts and lambda; the reference kind's lambda stays 1."""
    reference, kinds = reference_kind(layout), []
    for place, (kind, habits, of) in enumerate(zip(layout.kinds, state.kinds, sums, strict=True)):
        if place != reference:
            step = (of.scale - _LOG_SCALE_PRECISION * habits.log_scale) / (of.scale_scale + _LOG_SCALE_PRECISION)
            step = float(np.clip(step, -_MAX_LOG_SCALE_STEP, _MAX_LOG_SCALE_STEP))
            habits = replace(habits, log_scale=habits.log_scale + step)
        kinds.append(_move_cuts(kind, habits, of))
    return replace(state, kinds=tuple(kinds))


def reference_kind(layout: Layout) -> int:
    """The kind whose lambda is 1: that with most judgments."""
    return int(np.argmax([kind.weight.sum() for kind in layout.kinds]))


def _move_cuts(kind: Kind, habits: KindState, of: AnnotatorSums) -> KindState:
    """A Newton step of the cuts, halved until they increase."""
    if not kind.has_cuts:
        return habits
    first = first_cuts(kind)[1]
    gradient = of.cuts - _CUT_PRECISION * (habits.cuts - first)
    matrix = (
        np.diag(of.cuts_cuts[0] + _CUT_PRECISION) + np.diag(of.cuts_cuts[1][:-1], 1) + np.diag(of.cuts_cuts[1][:-1], -1)
    )
    if kind.about_pairs:
        # the cuts lie as far below 0 as above
        mirrored = np.eye(len(gradient))[:, : len(gradient) // 2]
        mirrored = mirrored[::-1] - mirrored
        step = mirrored @ np.linalg.solve(mirrored.T @ matrix @ mirrored, mirrored.T @ gradient)
    else:
        step = np.linalg.solve(matrix, gradient)
    if kind.has_spread:
        # their scale is left to the mean spread, which moves with discriminations
        along = habits.cuts @ matrix
        step -= float(along @ step) / float(along @ habits.cuts) * habits.cuts
    step *= min(1.0, _MAX_CUT_STEP / float(np.max(np.abs(step), initial=1e-300)))
    while len(step) > 1 and np.diff(habits.cuts + step).min() < MIN_CUT_GAP:
        step = step / 2.0
        if np.abs(step).max() < _MIN_CUT_STEP:
            return habits
    return replace(habits, cuts=habits.cuts + step)


def variance_step(
    layout: Layout, state: State, items: ItemSums, posterior: Discriminations, prior: DiscriminationPrior
) -> State:
    """Return the state with the prior variances of scores, annotators, levels and weights learned from these."""
    free = layout.active & np.isnan(prior.fixed_variance)
    # of those who do not guess, around the mean of their group
    squares = (posterior.means[:2] - np.stack([prior.mean, -prior.mean]))[:, free].ravel() ** 2
    variances, weight = posterior.open_variances[:2, free].ravel(), posterior.group[:2, free].ravel()
    of_alpha = _variance("alpha", VarianceSums.of(squares, variances, state.variance_of_alpha, weight))
    shares = state.shares
    if prior.groups:
        # those who see, are reversed, and guess
        n, before = int(free.sum()), _SHARES_PRIOR_ANNOTATORS * first_shares(int(free.sum()))
        shares = (posterior.group[:, free].sum(axis=1) + before) / (n + _SHARES_PRIOR_ANNOTATORS)
        most = MAX_REVERSED_SHARE * (shares[0] + shares[1])
        shares[:2] = shares[0] + max(shares[1] - most, 0.0), min(shares[1], most)
    of_levels, of_weights = state.variance_of_levels, state.variance_of_weights
    if of_levels > 0.0:
        of_levels = _variance("level", items.levels)
    of_difficulty = state.variance_of_difficulty
    if of_difficulty > 0.0:
        of_difficulty = _variance("difficulty", items.difficulties)
    if len(state.weights):
        of_weights = _variance("weight", items.weights, bounds=weight_variances(len(state.weights)))
    return replace(
        state, variance_of_items=_variance("item", items.items), variance_of_alpha=of_alpha,
        shares=shares,
        variance_of_levels=of_levels, variance_of_weights=of_weights, variance_of_difficulty=of_difficulty,
        kinds=tuple(_habit_variances(kind, habits) for kind, habits in zip(layout.kinds, state.kinds, strict=True)),
    )  # fmt: skip


def _habit_variances(kind: Kind, habits: KindState) -> KindState:
    """Mean and variance of the crowd's biases, variance of its spreads."""
    active = kind.weight > 0
    if kind.has_bias:
        # a normal prior of the mean, of variance 1
        weight = int(active.sum()) + habits.variance_of_bias
        mean = float(habits.bias[active].sum()) / weight if kind.about_pairs else 0.0
        squares = (habits.bias[active] - mean) ** 2
        sums = VarianceSums.of(squares, habits.bias_variance[active], habits.variance_of_bias)
        variance = _variance("bias", sums)
        habits = replace(habits, mean_bias=mean, variance_of_bias=variance)
    if kind.has_spread:
        squares = habits.spread[active] ** 2
        sums = VarianceSums.of(squares, habits.spread_variance[active], habits.variance_of_spread)
        habits = replace(habits, variance_of_spread=_variance("spread", sums))
    if habits.control is not None:
        habits = replace(habits, control=learned_variances(habits.control, active))
    return habits


def _variance(name: str, sums: VarianceSums, bounds: tuple[float, float] | None = None) -> float:
    """The prior variance of values with these sums; ``bounds`` are its start and most.

    Expectation-maximisation and MacKay's update have the same fixed point; the first is slow, the second overshoots,
    and their geometric mean needs fewer rounds than either.
    """
    count = _PRIOR_COUNTS[name] + _PRIOR_COUNT_SHARES.get(name, 0.0) * sums.number
    start, most = (START_VARIANCES[name], MAX_VARIANCES[name]) if bounds is None else bounds
    total = sums.squares + count * start
    by_expectation = (total + sums.variances) / (sums.number + count)
    by_mackay = total / (sums.explained + count)
    return min(max(float(np.sqrt(by_expectation * by_mackay)), _MIN_VARIANCE), most)


def widened_variance(layout: Layout, state: State, items: VarianceSums) -> float:
    """Return the variance of scores that a fit to comparisons ends with; what is learned is too small.

    Taking scores and annotators as independent shrinks scores, the more the larger their posterior variance is against
    the prior's. The factor is measured on simulated crowds, and small for few items. It is applied once, at the end: in
    every round it would grow without end where comparisons have little information.
    """
    n, before = items.number, state.variance_of_items
    if not n or not all(kind.about_pairs for kind in layout.kinds):
        return before
    share = min(items.variances / n / before, 1.0)
    return min(before * (1.0 + _WIDENING * n / (n + _WIDENING_ITEMS) * share**2), MAX_VARIANCES["item"])


def scale_step(
    state: State, posterior: Discriminations, prior: DiscriminationPrior, setters: Bools
) -> tuple[State, float]:
    """Return the state with discriminations closer to a mean of 1, reversed ones counted positive, and scores' factor.

    The annotators ``setters`` set the scale, each with the weight of their judgments against the prior; guessers do not
    count. Where these are some of the annotators, scores are rescaled to match. Where they are the whole crowd, scores
    stay, and the next round finds those that fit discriminations of mean 1. Moving both at once would follow the
    discriminations alone; taken as independent of the scores they would be too large where items have few judgments,
    round after round, and scores would grow without end.
    """
    variance = prior.variance(state.variance_of_alpha)
    weight = posterior.group[:2] * np.maximum(1.0 - posterior.variances[:2] / variance, 0.0)
    excess = posterior.group[:2] * (posterior.means[:2] * np.array([[1.0], [-1.0]]) - prior.mean)
    mean = 1.0 + float(excess[:, setters].sum()) / (float(weight[:, setters].sum()) + _SCALE_PRIOR_ANNOTATORS)
    factor = float(np.sqrt(max(mean, MIN_MEAN_ALPHA)))
    if prior.groups:
        return state.divide_alpha(factor), 1.0
    # a few judgments of trusted annotators would move the scale back and forth, ever further
    factor = min(max(factor, _MIN_RESCALING), 1.0 / _MIN_RESCALING)
    # at the largest variance of scores, discriminations stay above 1
    factor = min(factor, float(np.sqrt(MAX_VARIANCES["item"] / state.variance_of_items)))
    return state.rescale(factor), factor


PRIOR_ANNOTATORS = 4.0
"""Number of annotators that the start of the variance counts as."""

RESERVED = ("alpha", "bias", "spread", "lapse", "quality", "lower", "upper", "annotator", "n_judgments", "action")
"""Names of other columns about annotators, which no covariate may have."""

_SHARED_PRECISION = 1e-3
_MIN_COEFFICIENT_VARIANCE = 1e-4
_MAX_COEFFICIENT_VARIANCE = 9.0


class RelativeCoefficients(NamedTuple):
    """Coefficients of annotators against each other, by name, with standard errors such as ``length_sd``.

    ``unit`` (k,) is the root mean square of each covariate, and ``comparable`` (n_annotators, k) says of whom the
    coefficient can be told.
    """

    parameters: dict[str, Floats]
    unit: Floats
    comparable: Bools


class Eliminated(NamedTuple):
    """Bias and coefficients of each annotator given the discrimination, (n_annotators, 1 + k) and square.

    ``cross`` is their curvature with the discrimination, ``inverse`` their covariance, ``newton`` their step at the
    present discrimination, and ``ratio`` how far they move against the discrimination.
    """

    cross: Floats
    inverse: Floats
    newton: Floats
    ratio: Floats

    def covariance(self, alpha_variance: Floats) -> Floats:
        """Return their covariance where the discriminations have these variances."""
        outer: Floats = self.ratio[:, :, None] * self.ratio[:, None, :]
        return self.inverse + outer * alpha_variance[:, None, None]


def eliminated_habits(kind: Kind, habits: KindState, of: AnnotatorSums) -> Eliminated | None:
    """Return bias and coefficients of covariates given the discrimination; ``None`` without covariates.

    Where no bias is learned it has no variance to speak of.
    """
    control = habits.control
    if control is None:
        return None
    n, k = control.own.shape
    precision = 1.0 / control.variances
    cross, matrix, gradient = np.zeros((n, 1 + k)), np.zeros((n, 1 + k, 1 + k)), np.zeros((n, 1 + k))
    matrix[:, 0, 0] = 1.0 / ALONE_VARIANCE**2
    if kind.has_bias:
        gradient[:, 0], matrix[:, 0, 0] = _bias_gradient(habits, of), bias_curvature(habits, of)
        cross[:, 0] = of.alpha_bias
        matrix[:, 0, 1:] = matrix[:, 1:, 0] = of.control_curvature[:, :, 1]
    gradient[:, 1:] = of.control + precision * (control.shared - control.own)
    cross[:, 1:] = of.control_curvature[:, :, 0]
    matrix[:, 1:, 1:] = of.control_curvature[:, :, 2:] + np.diag(precision)
    both = np.asarray(np.linalg.inv(matrix), np.float64)
    inverse: Floats = 0.5 * (both + both.transpose(0, 2, 1))
    newton, ratio = (np.einsum("aij,aj->ai", inverse, vectors) for vectors in (gradient, cross))
    return Eliminated(cross, inverse, newton, ratio)


def control_step(
    control: ControlState, of: AnnotatorSums, rest: Eliminated, alpha_step: Floats, alpha_variance: Floats
) -> tuple[ControlState, Floats]:
    """Return the coefficients after this step of the discriminations, and the step of the biases.

    The crowd's coefficients take a Newton step in which annotators follow: else it would take many rounds where the
    judgments say much less of an annotator than the crowd does.
    """
    step = np.clip(rest.newton - rest.ratio * alpha_step[:, None], -_MAX_STEP, _MAX_STEP)
    n, p = len(step), step.shape[1] + 1
    covariance = np.empty((n, p, p))
    covariance[:, 0, 0] = alpha_variance
    covariance[:, 0, 1:] = covariance[:, 1:, 0] = -rest.ratio * alpha_variance[:, None]
    covariance[:, 1:, 1:] = rest.covariance(alpha_variance)
    own = control.own + step[:, 1:]
    shared = control.shared
    if control.learns_shared:
        precision = 1.0 / control.variances
        pull = precision * (own - shared).sum(axis=0) - _SHARED_PRECISION * shared
        move = np.clip(np.linalg.solve(shared_information(control, rest.inverse), pull), -_MAX_STEP, _MAX_STEP)
        shared = shared + move
        own = own + np.einsum("acd,d->ac", rest.inverse[:, 1:, 1:], precision * move)
        step[:, 0] += np.einsum("ad,d->a", rest.inverse[:, 0, 1:], precision * move)
    return replace(
        control, own=own, covariance=covariance, shared=shared, curvature=of.control_curvature
    ), step[:, 0]  # fmt: skip


def shared_information(control: ControlState, inverse: Floats) -> Floats:
    """Return the curvature in the crowd's coefficients with annotators marginalised, given their discriminations."""
    precision = 1.0 / control.variances
    number = len(inverse)
    total = np.diag(number * precision + _SHARED_PRECISION)
    total -= precision[:, None] * inverse[:, 1:, 1:].sum(axis=0) * precision
    return 0.5 * (total + total.T)


def learned_variances(control: ControlState, active: Bools) -> ControlState:
    """Return the state with the variance of each coefficient in the crowd; one annotator alone is the crowd."""
    number = int(active.sum())
    if number < 2:
        return control
    squares = ((control.own - control.shared)[active] ** 2).sum(axis=0)
    spread = np.diagonal(control.covariance, axis1=1, axis2=2)[active, 2:]
    total = squares + PRIOR_ANNOTATORS * START_COEFFICIENT_VARIANCE
    by_expectation = (total + spread.sum(axis=0)) / (number + PRIOR_ANNOTATORS)
    known = np.maximum(1.0 - spread / control.variances, 0.0).sum(axis=0)
    by_mackay = total / (known + PRIOR_ANNOTATORS)
    variances = np.clip(np.sqrt(by_expectation * by_mackay), _MIN_COEFFICIENT_VARIANCE, _MAX_COEFFICIENT_VARIANCE)
    return replace(control, variances=variances)


# What is reported of them


def check_names(names: Sequence[str]) -> None:
    """Refuse covariates whose name is that of another column about annotators."""
    for name in names:
        if name in RESERVED or (name.removesuffix("_sd") in (*RESERVED, *names) and name.endswith("_sd")):
            raise ParameterError(
                f"a covariate cannot be called {name!r}, which is a column about annotators; rename it"
            )


def control_parameters(
    design: CovariateDesign, control: ControlState, of_shared: Floats, of_scale: float = 0.0
) -> dict[str, Floats]:
    """Return each annotator's coefficients and their standard errors, by name.

    ``of_scale`` is the standard error of their common scale, as a share of them.
    """
    inner = control.covariance[:, 2:, 2:]
    # an annotator follows the crowd as far as their own judgments leave that open
    follow = inner / control.variances
    variance = np.diagonal(inner + follow @ of_shared @ follow.transpose(0, 2, 1), axis1=1, axis2=2)
    variance = variance + of_scale**2 * control.own**2
    parameters: dict[str, Floats] = {}
    for place, name in enumerate(design.names):
        parameters |= {name: control.own[:, place], f"{name}_sd": np.sqrt(variance[:, place])}
    return parameters


def control_estimates(
    design: CovariateDesign, control: ControlState, of_shared: Floats, active: Bools
) -> dict[str, dict[str, Any]]:
    """Return the crowd's coefficients by name, with how far annotators differ in them.

    Intervals of several annotators are those of Student's t with ``degrees`` one less than their number.
    """
    by_name = design.estimates(control.shared, np.sqrt(np.diag(of_shared)))
    n = int(active.sum())
    for place, estimate in enumerate(by_name.values()):
        estimate["sd_between_annotators"] = float(np.sqrt(control.variances[place])) if n > 1 else 0.0
        estimate["degrees"] = n - 1 if n > 1 else None
    return by_name


_STILL_SHARE = 0.05
"""Range of the mean log-likelihood over five rounds, as a share of ``tol``, at which a fit stands still."""

_LAPSE_TOL_SHARE = 0.01
"""Share of ``tol`` at which rounds end where lapses in preferences are learned.

In simulations of 20 annotators with 500 preferences each, a tenth of them lapses, rounds that end at ``tol`` find .03.
"""

_MIN_STILL_ROUNDS = 15
_MAX_LONG_CHANGE = 0.1
_MAX_LONG_ROUNDS = 10
"""The first long steps end where the change falls to the first, or after the second number of rounds."""

_N_LAST_ITEM_STEPS = 4
_SCORE_DIGITS = 9
_LIKELIHOOD_DIGITS = 6

_MIN_FACTOR = 0.5
_MAX_FACTOR = 3.0
"""Bounds of the factor on steps."""

_MAX_ROOT_MEAN_SQUARES = 5.0
_MIN_DEVIATION = 0.02
_MIN_COEFFICIENT_DEVIATION = 1e-3
_MIN_POSITIVE = 1e-300


_COARSE_TOL_FACTOR = 4.0
_MAX_COARSE_ROUNDS = 60
"""Rounds of fits to a sample, or that predict held-out grades, end at so many times ``tol``, or after this number."""


class Options(NamedTuple):
    """When to stop: largest change in the last round, most rounds, and fewest before a fit may stand still.

    ``difficulty`` says whether items differ in difficulty; ``None``: where held-out grades are predicted better so.
    """

    tol: float = 5e-3
    max_iter: int = 300
    min_still_rounds: int = _MIN_STILL_ROUNDS
    difficulty: bool | None = None


class ScoreFit(NamedTuple):
    """The state at the end, the trace, the anchors, and the mean discrimination of those who set the scale."""

    state: State
    trace: Trace
    anchors: Anchors
    mean_alpha: float


def fit_scores(
    layout: Layout,
    options: Options,
    *,
    features: Floats | None = None,
    known: ItemInputs | None = None,
    trusted: Bools | None = None,
    start: State | None = None,
    progress: Progress | None = None,
) -> ScoreFit:
    """Return the estimates of scores, annotators and crowd.

    Parameters
    ----------
    layout
        The responses.
    options
        When to stop.
    features
        Features of each item, (n_items, n), columns of mean 0 and standard deviation 1.
    known
        Clamped items.
    trusted
        Annotators known to be good, (n_annotators,).
    start
        The state to start from, see :func:`~crowdrank.models.latent_score.model.former_state`.
    progress
        Called after each round, with the mean log-likelihood of a judgment.
    """
    inputs = ItemInputs.nothing(layout.n_items) if known is None else known
    inputs = inputs if features is None else inputs._replace(features=features)
    anchors = find_anchors(layout, inputs, np.zeros(layout.n_annotators, bool) if trusted is None else trusted)
    state = first_state(layout, anchors.prior.mean.copy(), inputs.features.shape[1]) if start is None else start
    state = replace(state, scores=np.where(inputs.clamped, inputs.known, state.scores))
    state, trace = _run_rounds(layout, state, anchors, options, progress)
    if all(kind.about_pairs for kind in layout.kinds):
        variance = widened_variance(layout, state, item_step(layout, state, anchors.inputs)[1].items)
        # the annotators stay as they are
        state = last_scores(layout, replace(state, variance_of_items=variance), anchors.inputs)
    return finished_fit(layout, state, anchors, trace)


def _run_rounds(
    layout: Layout, begin: State, anchors: Anchors, options: Options, progress: Progress | None = None
) -> tuple[State, Trace]:
    """The state where rounds no longer change it, or no longer raise the log-likelihood, and how it went.

    That is where no score, in standard deviations, and no number of an annotator or of the crowd changes by more than
    ``tol``, or where over five rounds the mean log-likelihood of a judgment stays within 5 % of that.
    """
    values: list[float] = []
    state, change, path, converged = begin, np.inf, Path(layout.judged), False
    may_differ = may_have_difficulties(layout, state, options)
    total, tol = sum(float(kind.weight.sum()) for kind in layout.kinds), tolerance(layout, options.tol)
    while not converged and len(values) < options.max_iter:
        following, items, sums = score_round(layout, state, anchors.inputs)
        settled = has_settled(change, values)
        following = annotator_round(layout, following, items, sums, anchors, learn_mean_lapse=settled)[0]
        value = float(sum(of.log_likelihood for of in sums))
        values.append(value)
        if progress is not None:
            said = f"latent_score, log-likelihood of a judgment {value / total:.4f}"
            progress(len(values), options.max_iter, said)
        state, change = path.follow(state, following)
        converged = has_converged(change, values, tol, total, options.min_still_rounds)
        if may_differ and has_settled(change, values):
            may_differ = False
            evident = options.difficulty or difficulty_evidence(layout, state).is_enough
            if evident and (options.difficulty or _are_predicted_better(layout, begin, anchors, options)):
                state, path, converged = with_difficulties(layout, state), Path(layout.judged), False
    return state, Trace(len(values), converged, change, tuple(values))


def finished_fit(layout: Layout, state: State, anchors: Anchors, trace: Trace) -> ScoreFit:
    """Return the fit that ends in a state."""
    setters, prior = anchors.scale_setters, anchors.prior
    mean = 1.0
    if setters is not None:
        precision = setters / state.alpha_variance
        mean = float((precision * state.alpha).sum() / precision.sum())
    # annotators without judgments have the prior of those who see
    variance = prior.variance(state.variance_of_alpha)
    state = replace(
        state, alpha=np.where(layout.active, state.alpha, prior.mean),
        alpha_variance=np.where(layout.active, state.alpha_variance, variance),
        scores=round_scores(state.scores, state.variance_of_items**0.5),
    )  # fmt: skip
    return ScoreFit(state, trace, anchors, mean)


def has_settled(change: float, values: list[float]) -> bool:
    """Return whether the first long steps are over, after a change in the last round and these log-likelihoods."""
    return change <= _MAX_LONG_CHANGE or len(values) >= _MAX_LONG_ROUNDS


def may_have_difficulties(layout: Layout, state: State, options: Options) -> bool:
    """Return whether to look, once the first long steps are over, if items differ in difficulty."""
    graded = any(kind.has_difficulty for kind in layout.kinds)
    return options.difficulty is not False and graded and state.variance_of_difficulty == 0.0


def _are_predicted_better(layout: Layout, begin: State, anchors: Anchors, options: Options) -> bool:
    """Whether grades that a fit has not seen are likelier after one with difficulties than after one without.

    Where annotators lapse, or mistakes are at random altogether, grades of some items differ more than those of others
    all the same: difficulties then follow the grades that they are learned from, and mislead about the others.
    """
    likelihoods = {False: 0.0, True: 0.0}
    for fold in range(n_held_out_folds(layout)):
        learned, held = hold_out_grades(layout, fold)
        for difficulty in likelihoods:
            state = _run_rounds(learned, begin, anchors, trial_options(options, difficulty=difficulty))[0]
            likelihoods[difficulty] += log_likelihood(held, state)
    return are_likelier(likelihoods[True], likelihoods[False])


def are_likelier(one: float, other: float) -> bool:
    """Return whether a log-likelihood is above another by more than rounding."""
    return round(one - other, _LIKELIHOOD_DIGITS) > 0.0


def coarse_options(options: Options) -> Options:
    """Return when a fit ends that need not be followed to the end."""
    return options._replace(tol=_COARSE_TOL_FACTOR * options.tol, max_iter=min(options.max_iter, _MAX_COARSE_ROUNDS))


def trial_options(options: Options, *, difficulty: bool) -> Options:
    """Return when a fit ends that is to predict held-out grades."""
    return coarse_options(options)._replace(difficulty=difficulty)


def log_likelihood(layout: Layout, state: State) -> float:
    """Return the log-likelihood of judgments, averaged over what is not known of scores and annotators."""
    return float(sum(of.log_likelihood for of in annotator_sums(layout, state)))


def tolerance(layout: Layout, tol: float) -> float:
    """Return the change at which rounds end: less where lapses in preferences are learned.

    These and flatter scores look much alike, so that rounds move slowly long before they end.
    """
    return _LAPSE_TOL_SHARE * tol if any(kind.about_pairs and kind.has_lapses for kind in layout.kinds) else tol


def has_converged(
    change: float, values: list[float], tol: float, weight: float, min_still_rounds: int = _MIN_STILL_ROUNDS
) -> bool:
    """Return whether a fit to judgments of so much weight in all may end."""
    stands_still = max(values[-6:]) - min(values[-6:]) <= _STILL_SHARE * tol * weight
    return change <= tol or (len(values) > min_still_rounds and stands_still)


def score_round(layout: Layout, state: State, inputs: ItemInputs) -> tuple[State, ItemSums, list[AnnotatorSums]]:
    """Return the state with scores given annotators, and the sums that annotators and variances are learned from."""
    following, items = item_step(layout, state, inputs)
    following, difficulties = difficulty_step(layout, following)
    return following, items._replace(difficulties=difficulties), annotator_sums(layout, following)


def annotator_round(
    layout: Layout, state: State, items: ItemSums, sums: list[AnnotatorSums], anchors: Anchors, *,
    learn_mean_lapse: bool,
) -> tuple[State, float]:  # fmt: skip
    """Return the state with annotators and crowd given scores, by sums over judgments, and the factor on scores."""
    if layout.walk is not None:
        # only the discrimination walks: the windows of an annotator have one bias, spread and probability of a lapse
        same = ("bias", "bias_bias", "spread", "spread_spread", "bias_spread", "lapsed", "lapse", "lapse_lapse")
        pooled: list[AnnotatorSums] = []
        for of in sums:
            numbers: dict[str, Any] = {
                name: layout.walk.pool(getattr(of, name)) for name in same if getattr(of, name).size
            }
            pooled.append(of._replace(**numbers))
        sums = pooled
    sums = damp_curvature(sums, state)
    state, discriminations = annotator_step(layout, state, sums, anchors.prior, learn_mean_lapse=learn_mean_lapse)
    # M: cuts and lambda, prior variances and shares, scale
    state = cut_step(layout, state, sums)
    state = variance_step(layout, state, items, discriminations, anchors.prior)
    if anchors.scale_setters is None:
        return state, 1.0
    return scale_step(state, discriminations, anchors.prior, anchors.scale_setters)


def round_scores(scores: Floats, unit: float) -> Floats:
    """Return scores, equal where they differ by rounding alone, as those of two items with the same judgments."""
    return np.round(scores / unit, _SCORE_DIGITS) * unit + 0.0


def last_scores(layout: Layout, state: State, inputs: ItemInputs) -> State:
    """Return the state with scores of another variance, the annotators unchanged."""
    for _ in range(_N_LAST_ITEM_STEPS):
        state = item_step(layout, state, inputs)[0]
    return state


# Over-relaxation


class Path:
    """The path of a fit: from a state and what a round makes of it to the next.

    Steps are multiplied by a factor, from how the last two compare: a secant along them. A step in the direction of the
    last and almost as long means slow convergence, the opposite means oscillation. What annotators share counts as much
    as their own numbers and the scores together: where a fit is slow, these follow variances and cuts.
    """

    def __init__(self, judged: Bools) -> None:
        self.unjudged, self.factor = np.flatnonzero(~judged), 1.0
        self.before: Floats | None = None

    def change_of_step(self, change: float) -> float:
        """Return a change by the last round as large as the step that was taken."""
        return max(self.factor, 1.0) * change

    def follow(
        self, state: State, following: State, elsewhere: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> tuple[State, float]:
        """Return the state to continue from, and the largest change in the round, each number in its own unit.

        ``elsewhere`` has, of scores that move along but are kept elsewhere, their number and the products of the last
        step and of its difference to this one with that difference.
        """
        step, n = _means(following) - _means(state), len(state.alpha)
        # scores of unjudged items follow the others, and their number changes nothing
        free, step[self.unjudged] = step[self.unjudged], 0.0
        drift = _shared_numbers(following) - _shared_numbers(state)
        n_judged = len(state.scores) - len(self.unjudged)
        change = max(float(np.abs(drift).max(initial=0.0)), _change_of(step[: len(state.scores)], n_judged))
        change = max(change, *(_change_of(part, len(part)) for part in step[len(state.scores) :].reshape(-1, n)))
        number, *products = elsewhere
        whole = np.append(step, drift * np.sqrt(len(step) - len(self.unjudged) + number))
        if self.before is not None:
            turn = self.before - whole
            along, square = dot(self.before, turn) + products[0], dot(turn, turn) + products[1]
            wanted = self.factor * along / square if square > _MIN_POSITIVE else _MAX_FACTOR
            wanted = min(max(wanted, 0.5 * self.factor), 2.0 * self.factor) if wanted > 0.0 else 2.0 * self.factor
            self.factor = min(max(wanted, _MIN_FACTOR), _MAX_FACTOR)
        self.before = whole
        step = self.factor * step
        step[self.unjudged] = free
        moved = _with_means(following, _means(state) + step)
        return _with_shared_numbers(moved, _shared_numbers(state) + self.factor * drift), self.change_of_step(change)


def _change_of(step: Floats, number: int) -> float:
    """The typical change of some numbers by a step."""
    return typical_change(float(np.abs(step).max(initial=0.0)), dot(step, step), number)


def typical_change(largest: float, squares: float, number: float) -> float:
    """Return the largest change, or five times their root mean square where only a few of thousands still move."""
    return min(largest, _MAX_ROOT_MEAN_SQUARES * float(np.sqrt(squares / max(number, 1))))


def _means(state: State) -> Floats:
    """Scores in standard deviations, discriminations, biases, spreads and coefficients, one after the other."""
    habits = [
        row
        for kind in state.kinds
        for row in (kind.bias, kind.spread, *(() if kind.control is None else kind.control.own.T))
    ]
    return np.concatenate([state.scores / state.variance_of_items**0.5, state.alpha, *habits])


def _with_means(state: State, values: Floats) -> State:
    """The state with these means."""
    n_items, kinds = len(state.scores), []
    alpha, *rows = values[n_items:].reshape(-1, len(state.alpha))
    for kind in state.kinds:
        bias, spread, *rows = rows
        control = kind.control
        if control is not None:
            k = len(control.shared)
            control, rows = replace(control, own=np.stack(rows[:k], axis=1)), rows[k:]
        kinds.append(replace(kind, bias=bias, spread=spread, control=control))
    return replace(state, scores=values[:n_items] * state.variance_of_items**0.5, alpha=alpha, kinds=tuple(kinds))


def _shared_numbers(state: State) -> Floats:
    """What annotators share: standard deviations, of scores and discriminations as logarithms, shares, scales, cuts."""
    variances = [state.variance_of_items, state.variance_of_alpha, max(state.variance_of_levels, _MIN_POSITIVE)]
    variances.append(state.variance_of_weights if len(state.weights) else 1.0)
    own = [*(np.log(variances) / 2.0), *state.shares[1:], state.variance_of_difficulty**0.5]
    return np.concatenate([own, *(_shared_habits(kind) for kind in state.kinds)])


def _shared_habits(kind: KindState) -> Floats:
    """The same of one kind."""
    deviations = np.sqrt([kind.variance_of_bias, kind.variance_of_spread])
    own = [] if kind.control is None else [kind.control.shared, np.sqrt(kind.control.variances)]
    return np.concatenate([[kind.mean_bias], deviations, [kind.log_scale, kind.mean_lapse**0.5], kind.cuts, *own])


def _with_shared_numbers(state: State, values: Floats) -> State:
    """The state with these shared numbers, within their bounds; cuts that would not increase stay as they are."""
    most = [MAX_VARIANCES["item"], MAX_VARIANCES["alpha"], MAX_VARIANCES["level"]]
    most.append(weight_variances(len(state.weights))[1])
    items, alpha, levels, weights = np.exp(2.0 * np.minimum(values[:4], np.log(most) / 2.0)).tolist()
    shares = np.clip(values[4:6], 0.0, MAX_REVERSED_SHARE)
    of_difficulty = float(np.clip(values[6], _MIN_DEVIATION, MAX_VARIANCES["difficulty"] ** 0.5)) ** 2
    sizes = [len(_shared_habits(kind)) for kind in state.kinds]
    of_kinds = zip(state.kinds, np.split(values[7:], np.cumsum(sizes)[:-1]), strict=True)
    return replace(
        state, variance_of_items=items, variance_of_alpha=alpha,
        variance_of_levels=levels if state.variance_of_levels > 0.0 else 0.0,
        variance_of_weights=weights if len(state.weights) else state.variance_of_weights,
        shares=np.append(1.0 - shares.sum(), shares),
        kinds=tuple(_with_shared_habits(kind, own) for kind, own in of_kinds),
        variance_of_difficulty=of_difficulty if state.variance_of_difficulty > 0.0 else 0.0,
    )  # fmt: skip


def _with_shared_habits(kind: KindState, values: Floats) -> KindState:
    """The same for one kind."""
    most = np.sqrt([MAX_VARIANCES["bias"], MAX_VARIANCES["spread"]])
    of_bias, of_spread = np.clip(values[1:3], _MIN_DEVIATION, most) ** 2
    cuts, of_control = np.split(values[5:], [len(kind.cuts)])
    control = kind.control
    if control is not None:
        shared, deviations = np.split(of_control, 2)
        control = replace(control, shared=shared, variances=np.maximum(deviations, _MIN_COEFFICIENT_DEVIATION) ** 2)
    return replace(
        kind, mean_bias=float(values[0]), variance_of_bias=float(of_bias), variance_of_spread=float(of_spread),
        log_scale=float(values[3]), mean_lapse=float(np.clip(values[4], 0.0, MAX_MEAN_LAPSE**0.5) ** 2),
        cuts=cuts if np.diff(cuts).min(initial=1.0) >= MIN_CUT_GAP else kind.cuts, control=control,
    )  # fmt: skip
