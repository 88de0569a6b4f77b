"""The item step: scores given the annotators, with levels of queries and weights of features; then difficulties.

The noise of an item's grades is ``exp(z)`` times the usual, ``z`` normal around 0 with a variance that is learned: the
item's difficulty. Items are equally difficult until the first long steps of a fit are over and the grades speak against
it, held-out ones too; so nothing moves where they do not. Later lapses and flatter scores would have taken the place of
difficulties.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...kernels.threads import dot
from ...protocols import Floats
from .feature_weights import FeatureVariances, query_sums, weight_step
from .layout import Layout
from .state import START_VARIANCES, ItemInputs, State

if TYPE_CHECKING:
    from .kernels.item_systems import Inverse

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


class ItemEstimates(NamedTuple):
    """New scores with their variances, and what the prior variances are learned from.

    ``residual`` and ``residual_variance`` (n_items,) are what neither features nor the query's level explain of a
    score; ``levels`` and ``levels_variance`` (n_queries,) are the levels of queries.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    weights: Floats
    weights_covariance: Floats
    residual: Floats
    residual_variance: Floats
    levels: Floats
    levels_variance: Floats
    cell_curvature: tuple[Floats, ...]
    feature_variances: FeatureVariances | None

    def sums(self, layout: Layout, state: State) -> ItemSums:
        """Return what prior variances are learned from; ``state`` has those so far."""
        judged, here = layout.judged, layout.judged_queries
        of_levels = NO_SUMS
        if state.variance_of_levels > 0.0:
            of_levels = VarianceSums.of(self.levels[here] ** 2, self.levels_variance[here], state.variance_of_levels)
        return ItemSums(
            VarianceSums.of(self.residual[judged] ** 2, self.residual_variance[judged], state.variance_of_items),
            of_levels,
            VarianceSums.of(self.weights**2, np.diag(self.weights_covariance), state.variance_of_weights),
        )


def item_step(layout: Layout, state: State, inputs: ItemInputs) -> ItemEstimates:
    """Return the scores after one Newton step, at most 3 long in each query, with their variances."""
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
        weights, weights_covariance, mean, shift, of_features = weight_step(
            inputs.features, layout.graph, prior, posterior, target, state
        )
        target, residual_variance = target + shift, variance + of_features.of_residuals
        variance, covariance = variance + of_features.of_scores, covariance + of_features.of_pairs
    scores = _cap_steps(layout, state.scores, target)
    levels, levels_variance, residual, residual_variance = _split_off_levels(
        prior, posterior, scores - mean, residual_variance
    )
    return ItemEstimates(
        scores, variance, covariance, weights, weights_covariance, residual, residual_variance, levels, levels_variance,
        curvature.of_cells, of_features,
    )  # fmt: skip


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


def _cap_steps(layout: Layout, before: Floats, after: Floats) -> Floats:
    """The scores after a step, shortened in queries where an item would move too far."""
    longest = np.zeros(len(layout.offsets) - 1)
    np.maximum.at(longest, layout.query, np.abs(after - before))
    if longest.max(initial=0.0) <= MAX_SCORE_STEP:
        return after
    return before + (after - before) * np.minimum(1.0, MAX_SCORE_STEP / np.maximum(longest, 1e-300))[layout.query]


def _split_off_levels(
    prior: ScorePrior, posterior: ScorePosterior, scores: Floats, variance: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Levels of the queries and their variances; the residuals of the scores, and their variances."""
    if prior.of_levels == 0.0:
        return np.zeros(prior.n_queries), np.zeros(prior.n_queries), scores, variance
    levels = prior.level_share * prior.sums(scores)
    sums = prior.sums(posterior.row_sums)
    with_sum = posterior.row_sums * (1.0 + posterior.update * sums)[posterior.query]
    of_levels = prior.level_share**2 * prior.sums(with_sum) + prior.level_variance
    share = prior.level_share[posterior.query]
    residual_variance = variance - 2.0 * share * with_sum + of_levels[posterior.query]
    return levels, of_levels, scores - levels[posterior.query], np.maximum(residual_variance, 0.0)


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
