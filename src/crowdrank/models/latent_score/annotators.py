"""The annotator step and the crowd's: discriminations and habits given the scores, then what annotators share.

In the order of a round: sums over judgments; discrimination, bias, spread and lapses of each annotator; cuts and lambda
of each kind; prior variances and shares of groups; the scale.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...protocols import Bools, Floats
from .control import Eliminated, control_step, eliminate, learned_variances
from .items import ItemSums, VarianceSums
from .layout import Kind, Layout
from .state import (
    MAX_MEAN_LAPSE,
    MAX_REVERSED_SHARE,
    MAX_VARIANCES,
    MIN_CUT_GAP,
    START_LAPSE,
    START_VARIANCES,
    DiscriminationPrior,
    KindState,
    State,
    first_cuts,
    first_shares,
    weight_variances,
)

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums

MIN_MEAN_ALPHA = 0.05
"""Below this mean discrimination of the crowd, the direction of scores cannot be known."""

_GUESSING_VARIANCE = 0.04
"""Variance of the discriminations of those who guess."""

_MAX_STEP = 1.5
"""Longest step of a discrimination or bias."""

_MAX_LOG_SPREAD_STEP = 0.5
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
            one, two, three, four = 0.5 * (_curvature(of) + habits.curvature)
            of = of._replace(alpha_alpha=one, alpha_bias=two, bias_bias=three, spread_spread=four)
        if habits.control is not None and habits.control.curvature is not None:
            of = of._replace(control_curvature=0.5 * (of.control_curvature + habits.control.curvature))
        damped.append(of)
    return damped


def _curvature(of: AnnotatorSums) -> Floats:
    """Curvature in discrimination, discrimination and bias, bias, and spread, (4, n_annotators)."""
    return np.stack([of.alpha_alpha, of.alpha_bias, of.bias_bias, of.spread_spread])


class Discriminations(NamedTuple):
    """Posterior mean and variance of each annotator's discrimination, overall and within each group.

    The groups are those who see, are reversed, and guess: ``group`` has the probability of each, ``means`` and
    ``variances`` are those within it, (3, n_annotators) each.
    """

    mean: Floats
    variance: Floats
    group: Floats
    means: Floats
    variances: Floats


def annotator_step(
    layout: Layout, state: State, sums: list[AnnotatorSums], prior: DiscriminationPrior, *, learn_mean_lapse: bool
) -> tuple[State, Discriminations]:
    """Return the annotators after one Newton step of discrimination and biases, and one of each spread.

    The crowd's mean lapse is learned only after the first long steps: before, scores are too close to each other, and
    lapses look rarer than they are.
    """
    gradient, curvature = np.zeros(layout.n_annotators), np.zeros(layout.n_annotators)
    rests = [
        eliminated_habits(kind, habits, of) for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True)
    ]
    for kind, habits, of, rest in zip(layout.kinds, state.kinds, sums, rests, strict=True):
        gradient, curvature = gradient + of.alpha, curvature + of.alpha_alpha
        if rest is not None:
            gradient = gradient - (rest.cross * rest.newton).sum(axis=1)
            curvature = curvature - (rest.cross * rest.ratio).sum(axis=1)
        elif kind.has_bias:
            # the bias is eliminated: it moves with the discrimination
            ratio = of.alpha_bias / bias_curvature(habits, of)
            gradient = gradient - ratio * _bias_gradient(habits, of)
            curvature = curvature - ratio * of.alpha_bias
    posterior = _discriminations(state, gradient, np.maximum(curvature, 0.0), prior)
    step = np.clip(posterior.mean - state.alpha, -_MAX_STEP, _MAX_STEP)
    kinds = tuple(
        _habit_step(kind, habits, of, rest, step, posterior.variance, learn_mean_lapse)
        for kind, habits, of, rest in zip(layout.kinds, state.kinds, sums, rests, strict=True)
    )
    return replace(state, alpha=state.alpha + step, alpha_variance=posterior.variance, kinds=kinds), posterior


def _discriminations(state: State, gradient: Floats, curvature: Floats, crowd: DiscriminationPrior) -> Discriminations:
    """Posterior of the discriminations given gradient and curvature of the judgments: a mixture of normals, exactly."""
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
    variance = (group * (variances + (means - mean) ** 2)).sum(axis=0)
    return Discriminations(mean, variance, group, means, variances)


def eliminated_habits(kind: Kind, habits: KindState, of: AnnotatorSums) -> Eliminated | None:
    """Return bias and coefficients of covariates given the discrimination; ``None`` without covariates."""
    if habits.control is None:
        return None
    return eliminate(kind, habits.control, of, (_bias_gradient(habits, of), bias_curvature(habits, of)))


def bias_curvature(habits: KindState, of: AnnotatorSums) -> Floats:
    """Return the curvature in the bias, prior included."""
    return of.bias_bias + 1.0 / habits.variance_of_bias


def _bias_gradient(habits: KindState, of: AnnotatorSums) -> Floats:
    """Gradient in the bias, prior included."""
    return of.bias + (habits.mean_bias - habits.bias) / habits.variance_of_bias


def _habit_step(
    kind: Kind, habits: KindState, of: AnnotatorSums, rest: Eliminated | None, alpha_step: Floats,
    alpha_variance: Floats, learn_mean_lapse: bool,
) -> KindState:  # fmt: skip
    """Bias, coefficients of covariates, spread and lapses after this step of the discriminations."""
    habits = replace(habits, curvature=_curvature(of))
    if rest is not None and habits.control is not None:
        control, step = control_step(habits.control, of, rest, alpha_step, alpha_variance)
        habits = replace(habits, control=control)
        if kind.has_bias:
            variance, covariance = control.covariance[:, 1, 1], control.covariance[:, 0, 1]
            habits = replace(habits, bias=habits.bias + step, bias_variance=variance, covariance=covariance)
    elif kind.has_bias:
        curvature = bias_curvature(habits, of)
        ratio = of.alpha_bias / curvature
        step = np.clip(_bias_gradient(habits, of) / curvature - ratio * alpha_step, -_MAX_STEP, _MAX_STEP)
        habits = replace(
            habits, bias=habits.bias + step, covariance=-ratio * alpha_variance,
            bias_variance=1.0 / curvature + ratio**2 * alpha_variance,
        )  # fmt: skip
    if kind.has_spread:
        curvature = of.spread_spread + 1.0 / habits.variance_of_spread
        step = (of.spread - habits.spread / habits.variance_of_spread) / curvature
        # the mean spread is left to the cuts, which would otherwise move for the same reason
        step -= float(curvature @ step) / float(curvature.sum())
        spread = habits.spread + np.clip(step, -_MAX_LOG_SPREAD_STEP, _MAX_LOG_SPREAD_STEP)
        common = float(spread[kind.weight > 0].mean())
        spread = np.where(kind.weight > 0, spread - common, 0.0)
        habits = replace(habits, spread=spread, spread_variance=1.0 / curvature, cuts=habits.cuts * np.exp(common))
    return _lapse_step(kind, habits, of, learn_mean_lapse) if kind.has_lapses else habits


def _lapse_step(kind: Kind, habits: KindState, of: AnnotatorSums, learn_mean_lapse: bool) -> KindState:
    """Probability of a lapse of each annotator, and the levels then given.

    Newton steps: expectation-maximisation is slow where lapses are rare.
    """
    total, count = float(kind.weight.sum()), _MEAN_LAPSE_PRIOR_JUDGMENTS
    mean = min((float(of.lapses.sum()) + count * START_LAPSE) / (total + count), MAX_MEAN_LAPSE)
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
    reference = reference_kind(layout)
    kinds = [
        _move_cuts(kind, _move_scale(habits, of) if place != reference else habits, of)
        for place, (kind, habits, of) in enumerate(zip(layout.kinds, state.kinds, sums, strict=True))
    ]
    return replace(state, kinds=tuple(kinds))


def reference_kind(layout: Layout) -> int:
    """The kind whose lambda is 1: that with most judgments."""
    return int(np.argmax([kind.weight.sum() for kind in layout.kinds]))


def _move_scale(habits: KindState, of: AnnotatorSums) -> KindState:
    """A Newton step of log lambda."""
    step = (of.scale - _LOG_SCALE_PRECISION * habits.log_scale) / (of.scale_scale + _LOG_SCALE_PRECISION)
    return replace(habits, log_scale=habits.log_scale + float(np.clip(step, -_MAX_LOG_SCALE_STEP, _MAX_LOG_SCALE_STEP)))


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
    of_alpha = _variance_of_alpha(state, posterior, prior, free)
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
        shares=_group_shares(posterior, free) if prior.groups else state.shares,
        variance_of_levels=of_levels, variance_of_weights=of_weights, variance_of_difficulty=of_difficulty,
        kinds=tuple(_habit_variances(kind, habits) for kind, habits in zip(layout.kinds, state.kinds, strict=True)),
    )  # fmt: skip


def _variance_of_alpha(state: State, posterior: Discriminations, prior: DiscriminationPrior, free: Bools) -> float:
    """Variance of the discriminations of those who do not guess, around the mean of their group."""
    middle = np.stack([prior.mean, -prior.mean])
    weight = posterior.group[:2, free].ravel()
    squares, variances = (posterior.means[:2] - middle)[:, free].ravel() ** 2, posterior.variances[:2, free].ravel()
    return _variance("alpha", VarianceSums.of(squares, variances, state.variance_of_alpha, weight))


def _group_shares(posterior: Discriminations, free: Bools) -> Floats:
    """Shares of those who see, are reversed, and guess."""
    prior = _SHARES_PRIOR_ANNOTATORS * first_shares(int(free.sum()))
    shares: Floats = (posterior.group[:, free].sum(axis=1) + prior) / (int(free.sum()) + _SHARES_PRIOR_ANNOTATORS)
    most = MAX_REVERSED_SHARE * (shares[0] + shares[1])
    shares[:2] = shares[0] + max(shares[1] - most, 0.0), min(shares[1], most)
    return shares


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


def mean_discrimination(state: State, setters: Bools) -> float:
    """Return the precision-weighted mean discrimination of annotators."""
    precision = setters / state.alpha_variance
    return float((precision * state.alpha).sum() / precision.sum())
