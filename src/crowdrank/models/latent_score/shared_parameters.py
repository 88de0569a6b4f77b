"""The steps for what all annotators share: scale, cuts between levels, lambda of each kind, and variances."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...protocols import Bools, Floats
from .annotators import Crowd, Discriminations
from .items import Solved
from .responses import Kind, Layout
from .state import (
    LARGEST_VARIANCES,
    LEAST_GAP,
    MOST_TURNED,
    START_VARIANCES,
    KindState,
    State,
    first_cuts,
    first_shares,
)

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums

LEAST_MEAN = 0.05
"""A crowd whose mean discrimination is below this tells nothing of which way round it is."""

_SHARES_PRIOR = 10.0
_SCALE_PRIOR = 0.5
_LEAST_VARIANCE = 4e-4
_WIDENING = 2.0
_FEW_ITEMS = 50.0
_SCALE_PRECISION = 16.0
_CUT_PRECISION = 0.1
_LONGEST_CUT = 1.0
_PSEUDO = {"item": 4.0, "alpha": 50.0, "bias": 4.0, "spread": 4.0, "level": 4.0, "weight": 4.0}
"""Number of items, annotators, queries and features that the start of a variance counts as."""

_SHARE_SUPPOSED = {"item": 0.05}
"""Share of the items that it counts as besides: where few of them met, nothing else says how wide scores are."""


def scale_step(state: State, found: Discriminations, crowd: Crowd, chosen: Bools) -> State:
    """Return the state with discriminations nearer to a mean of 1, those turned round counted upright.

    ``chosen`` annotators set the scale, each weighing as much as their answers say against the prior; scores are
    stretched along. Guessers do not count.
    """
    prior = crowd.variance(state.variance_of_alpha)
    told = found.group[:2] * np.maximum(1.0 - found.variances[:2] / prior, 0.0)
    beyond = found.group[:2] * (found.means[:2] * np.array([[1.0], [-1.0]]) - crowd.mean)
    mean = 1.0 + float(beyond[:, chosen].sum()) / (float(told[:, chosen].sum()) + _SCALE_PRIOR)
    # where scores are as wide as may be, discriminations stay above 1
    most = np.sqrt(LARGEST_VARIANCES["item"] / state.variance_of_items)
    return state.rescaled(float(min(np.sqrt(max(mean, LEAST_MEAN)), most)))


def mean_discrimination(state: State, chosen: Bools) -> float:
    """Return the mean discrimination of annotators, each weighing as much as is known of them."""
    precision = chosen / state.alpha_variance
    return float((precision * state.alpha).sum() / precision.sum())


def shared_step(layout: Layout, state: State, sums: list[AnnotatorSums], reference: int) -> State:
    """Return the state after one step of each kind's cuts and lambda; that of the kind ``reference`` stays 1."""
    kinds = [
        _cuts(kind, _scaled(habits, of) if place != reference else habits, of)
        for place, (kind, habits, of) in enumerate(zip(layout.kinds, state.kinds, sums, strict=True))
    ]
    return replace(state, kinds=tuple(kinds))


def _scaled(habits: KindState, of: AnnotatorSums) -> KindState:
    """A Newton step of log lambda."""
    step = (of.scale - _SCALE_PRECISION * habits.log_scale) / (of.scale_scale + _SCALE_PRECISION)
    return replace(habits, log_scale=habits.log_scale + float(np.clip(step, -0.5, 0.5)))


def _cuts(kind: Kind, habits: KindState, of: AnnotatorSums) -> KindState:
    """A Newton step of the cuts, shortened until they rise."""
    if not kind.cut:
        return habits
    first = first_cuts(kind)[1]
    slope = of.cuts - _CUT_PRECISION * (habits.cuts - first)
    matrix = (
        np.diag(of.cuts_cuts[0] + _CUT_PRECISION) + np.diag(of.cuts_cuts[1][:-1], 1) + np.diag(of.cuts_cuts[1][:-1], -1)
    )
    if kind.about_pairs:
        # one free width: the cuts lie as far below 0 as above
        turn = np.array([-1.0, 1.0])
        step = turn * (turn @ slope) / (turn @ matrix @ turn)
    else:
        step = np.linalg.solve(matrix, slope)
    step *= min(1.0, _LONGEST_CUT / float(np.max(np.abs(step), initial=1e-300)))
    while len(step) > 1 and np.diff(habits.cuts + step).min() < LEAST_GAP:
        step = step / 2.0
        if np.abs(step).max() < 1e-12:
            return habits
    return replace(habits, cuts=habits.cuts + step)


def variance_step(layout: Layout, state: State, solved: Solved, found: Discriminations, crowd: Crowd) -> State:
    """Return the state with the variances of scores, annotators, levels and weights as these suggest."""
    judged, active = layout.judged, layout.active
    learned = active & np.isnan(crowd.fixed)
    of_items = _learned("item", solved.rest[judged] ** 2, solved.rest_variance[judged], state.variance_of_items)
    of_alpha = _variance_of_alpha(state, found, crowd, learned)
    of_levels, of_weights = state.variance_of_levels, state.variance_of_weights
    if of_levels > 0.0:
        here = layout.judged_queries
        of_levels = _learned("level", solved.levels[here] ** 2, solved.levels_variance[here], of_levels)
    if len(solved.weights):
        of_weights = _learned("weight", solved.weights**2, np.diag(solved.weights_covariance), of_weights)
    return replace(
        state, variance_of_items=of_items, variance_of_alpha=of_alpha,
        shares=_shares(found, learned) if crowd.grouped else state.shares,
        variance_of_levels=of_levels, variance_of_weights=of_weights,
        kinds=tuple(_habit_variances(kind, habits) for kind, habits in zip(layout.kinds, state.kinds, strict=True)),
    )  # fmt: skip


def widened_variance(layout: Layout, state: State, solved: Solved) -> float:
    """Return the variance of scores that a fit to comparisons ends with, which learning alone leaves too small.

    Taking scores and annotators for independent draws scores together, the more so the more of the prior variance is
    left; the number is measured on simulated crowds, and of few items nothing is made. It is applied once: in every
    round it would grow without end where comparisons say next to nothing.
    """
    left, before = solved.rest_variance[layout.judged], state.variance_of_items
    if not len(left) or not all(kind.about_pairs for kind in layout.kinds):
        return before
    share = min(float(left.mean()) / before, 1.0)
    return min(before * (1.0 + _WIDENING * len(left) / (len(left) + _FEW_ITEMS) * share**2), LARGEST_VARIANCES["item"])


def _variance_of_alpha(state: State, found: Discriminations, crowd: Crowd, learned: Bools) -> float:
    """Variance of the discriminations of those who do not guess, around the mean of their group."""
    middle = np.stack([crowd.mean, -crowd.mean])
    weight = found.group[:2, learned].ravel()
    squares, variances = (found.means[:2] - middle)[:, learned].ravel() ** 2, found.variances[:2, learned].ravel()
    return _learned("alpha", squares, variances, state.variance_of_alpha, weight)


def _shares(found: Discriminations, learned: Bools) -> Floats:
    """Shares of the groups."""
    prior = _SHARES_PRIOR * first_shares(int(learned.sum()))
    shares: Floats = (found.group[:, learned].sum(axis=1) + prior) / (int(learned.sum()) + _SHARES_PRIOR)
    most = MOST_TURNED * (shares[0] + shares[1])
    shares[:2] = shares[0] + max(shares[1] - most, 0.0), min(shares[1], most)
    return shares


def _habit_variances(kind: Kind, habits: KindState) -> KindState:
    """Mean and variance of the crowd's biases, variance of its spreads."""
    gave = kind.weight > 0
    if kind.biased:
        # a normal prior of the mean, of variance 1
        weight = int(gave.sum()) + habits.variance_of_bias
        mean = float(habits.bias[gave].sum()) / weight if kind.about_pairs else 0.0
        learned = _learned("bias", (habits.bias[gave] - mean) ** 2, habits.bias_variance[gave], habits.variance_of_bias)
        habits = replace(habits, mean_bias=mean, variance_of_bias=learned)
    if kind.stretched:
        learned = _learned("spread", habits.spread[gave] ** 2, habits.spread_variance[gave], habits.variance_of_spread)
        habits = replace(habits, variance_of_spread=learned)
    return habits


def _learned(name: str, squares: Floats, variances: Floats, before: float, weight: Floats | None = None) -> float:
    """The variance of values of given squares, known up to variances of their own.

    Expectation-maximisation and MacKay's update have the same fixed point; one creeps, the other overshoots, and their
    geometric mean needs fewer rounds than either.
    """
    weight = np.ones(len(squares)) if weight is None else weight
    start = START_VARIANCES[name]
    number = _PSEUDO[name] + _SHARE_SUPPOSED.get(name, 0.0) * float(weight.sum())
    whole = float(weight @ squares) + number * start
    by_expectation = (whole + float(weight @ variances)) / (float(weight.sum()) + number)
    by_freedom = whole / (float(weight @ np.maximum(1.0 - variances / before, 0.0)) + number)
    return min(max(float(np.sqrt(by_expectation * by_freedom)), _LEAST_VARIANCE), LARGEST_VARIANCES[name])
