"""The rounds of a fit: items, annotators, scale, what the crowd shares, variances, until nothing moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...protocols import Bools, Floats
from .annotators import Crowd, annotator_step, annotator_sums, smoothed
from .items import Given, Solved, item_step
from .relaxation import Path
from .responses import Layout
from .shared_parameters import mean_discrimination, scale_step, shared_step, variance_step, widened_variance
from .state import State

_STILL = 0.05
_FEW_ROUNDS = 15
_LAST_STEPS = 4
_SETTLING = 0.1
_LONG_ROUNDS = 10
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Anchors:
    """What tells which way round and how wide scores are.

    ``crowd`` is the prior of discriminations, ``chosen`` annotators set the scale, if any, and ``given`` are clamped
    scores and features.
    """

    crowd: Crowd
    chosen: Bools | None
    given: Given


class ScoreFit(NamedTuple):
    """The state at the end, how the fit went, what it rested on, and the mean discrimination before scaling."""

    state: State
    trace: Trace
    anchors: Anchors
    mean_alpha: float


def one_round(layout: Layout, state: State, anchors: Anchors, *, settling: bool = True) -> tuple[State, float]:
    """Return the state after one round, and the log-likelihood within it; ``settling`` after the first long steps."""
    solved = item_step(layout, state, anchors.given)
    state = with_items(state, solved)
    sums = annotator_sums(layout, state)
    sums = smoothed(sums, state)
    state, found = annotator_step(layout, state, sums, anchors.crowd, settling=settling)
    state = shared_step(layout, state, sums, reference(layout))
    state = variance_step(layout, state, solved, found, anchors.crowd)
    if anchors.chosen is not None:
        state = scale_step(state, found, anchors.crowd, anchors.chosen)
    return state, sum(of.log_likelihood for of in sums)


def reference(layout: Layout) -> int:
    """The kind whose lambda is 1: that with most judgments."""
    return int(np.argmax([kind.weight.sum() for kind in layout.kinds]))


def with_items(state: State, solved: Solved) -> State:
    """Return the state with new scores."""
    return replace(
        state, scores=solved.scores, variance=solved.variance, covariance=solved.covariance, weights=solved.weights,
        weights_covariance=solved.weights_covariance, of_cells=solved.of_cells,
    )  # fmt: skip


def run(layout: Layout, state: State, anchors: Anchors, *, tol: float, max_iter: int) -> ScoreFit:
    """Return the state where rounds no longer change it, or no longer explain the answers better.

    That is where no score, in standard deviations, and no number of an annotator or of the crowd changes by more than
    ``tol``, or where over five rounds the mean log-likelihood of an answer stays within 5 % of that.
    """
    values: list[float] = []
    change, path, met = np.inf, Path(layout.judged), False
    still = _STILL * tol * sum(float(kind.weight.sum()) for kind in layout.kinds)
    while not met and len(values) < max_iter:
        settling = change <= _SETTLING or len(values) >= _LONG_ROUNDS
        following, value = one_round(layout, state, anchors, settling=settling)
        values.append(value)
        state, change = path.follow(state, following)
        met = change <= tol or (len(values) > _FEW_ROUNDS and max(values[-6:]) - min(values[-6:]) <= still)
    state = _widened(layout, state, anchors)
    mean = 1.0 if anchors.chosen is None else mean_discrimination(state, anchors.chosen)
    # whoever answered nothing is taken for one of those who answer what they see
    usual = anchors.crowd.variance(state.variance_of_alpha)
    alpha = np.where(layout.active, state.alpha, anchors.crowd.mean)
    state = replace(
        state, alpha=alpha, alpha_variance=np.where(layout.active, state.alpha_variance, usual),
        scores=_without_rounding(state.scores, state.variance_of_items**0.5),
    )  # fmt: skip
    return ScoreFit(state, Trace(len(values), met, change, tuple(values)), anchors, mean)


def _without_rounding(scores: Floats, unit: float) -> Floats:
    """Scores of which those are equal that differ by rounding alone, such as of two items with the same judgments."""
    return np.round(scores / unit, _DIGITS) * unit + 0.0


def _widened(layout: Layout, state: State, anchors: Anchors) -> State:
    """The state with scores as wide as they should be, the annotators as they were found."""
    wide = widened_variance(layout, state, item_step(layout, state, anchors.given))
    if wide == state.variance_of_items:
        return state
    state = replace(state, variance_of_items=wide)
    for _ in range(_LAST_STEPS):
        state = with_items(state, item_step(layout, state, anchors.given))
    return state
