"""Difficulty of items: how much more, or less, grades of an item differ than those of others.

The noise of an item's grades is ``exp(z)`` times the usual, ``z`` normal around 0 with a variance that is learned.
Items are equally difficult until the first long steps of a fit are over and the grades speak against it; so nothing
moves where they do not. Later lapses and flatter scores would have taken the place of difficulties.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...protocols import Floats
from .items import NO_SUMS, Curvature, VarianceSums, score_curvature
from .layout import Layout
from .state import START_VARIANCES, ItemInputs, State

MIN_EVIDENCE = 1.645
"""Standard errors by which grades have to speak for differences in difficulty: 5 % by chance at most."""

_MAX_STEP = 0.7
_HERMITE = ((-(3.0**0.5), 1.0 / 6.0), (0.0, 2.0 / 3.0), (3.0**0.5, 1.0 / 6.0))
"""Points, in standard deviations, and weights of the mean over a normal distribution by three points."""

_MIN_SHARE_OF_CURVATURE = 0.1

_MIN_TOLD_SHARE = 0.1
"""Share of the variance of scores that grades have to tell before they tell anything of difficulties.

Of two camps of one size, scores say nothing, and items at the ends of the scale would pass for difficult ones.
"""


class Evidence(NamedTuple):
    """For a variance of difficulties above 0: the sum over items of the likelihood's slope in it, and of squares.

    ``told`` is the sum of the scores' squares, ``untold`` that of their posterior variances.
    """

    slope: float
    squares: float
    told: float
    untold: float

    @property
    def is_enough(self) -> bool:
        """Whether items differ in difficulty beyond chance, and in scores: camps that contradict each other do not."""
        told = self.told > _MIN_TOLD_SHARE * (self.told + self.untold)
        return bool(told and self.slope > MIN_EVIDENCE * self.squares**0.5)


def difficulty_slopes(layout: Layout, state: State) -> Floats:
    """Return gradient and curvature in the difficulty of each item, and curvature with its score, (3, n_items)."""
    from .kernels.difficulty import difficulty_pass

    slopes = np.zeros((3, layout.n_items))
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        if kind.has_difficulty:
            found = difficulty_pass(kind.cells, state.response_model(kind, habits), *state.gaps(kind))
            slopes[:, kind.cells.first] = found
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
    told, untold = float((state.scores[layout.judged] ** 2).sum()), float(state.variance[layout.judged].sum())
    return Evidence(float(slope.sum()), float((slope**2).sum()), told, untold)


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
    difficulty = state.difficulty + np.clip(step, -_MAX_STEP, _MAX_STEP)
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
