"""A whole fit: rounds of the item step, the annotator step and the crowd's, until nothing moves.

It is variational expectation-maximisation. Scores and annotators are normal given the judgments, each averaged over the
uncertainty of the other (E); then what all annotators share, and the prior variances, are learned from both (M).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...protocols import Bools, Floats
from .annotators import (
    annotator_step,
    annotator_sums,
    cut_step,
    damp_curvature,
    mean_discrimination,
    scale_step,
    variance_step,
    widened_variance,
)
from .items import ItemEstimates, item_step
from .layout import Layout
from .state import (
    MAX_MEAN_LAPSE,
    MAX_REVERSED_SHARE,
    MAX_VARIANCES,
    MIN_CUT_GAP,
    Anchors,
    KindState,
    Known,
    State,
    find_anchors,
    first_state,
)

_STILL_SHARE = 0.05
"""Range of the mean log-likelihood over five rounds, as a share of ``tol``, at which a fit stands still."""

_MIN_STILL_ROUNDS = 15
_MAX_LONG_CHANGE = 0.1
_MAX_LONG_ROUNDS = 10
"""The first long steps end where the change falls to the first, or after the second number of rounds."""

_N_LAST_ITEM_STEPS = 4
_SCORE_DIGITS = 9

_MIN_FACTOR = 0.5
_MAX_MEANS_FACTOR = 2.0
_MAX_SHARED_FACTOR = 3.0
"""Bounds of the factors on steps, of scores and annotators and of what they share."""

_MAX_ROOT_MEAN_SQUARES = 5.0
_MIN_DEVIATION = 0.02
_MIN_POSITIVE = 1e-300


class Options(NamedTuple):
    """When to stop: largest change in the last round, and most rounds."""

    tol: float = 5e-3
    max_iter: int = 300


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
    known: Known | None = None,
    trusted: Bools | None = None,
    start: State | None = None,
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
        The state to start from, see :func:`~crowdrank.models.latent_score.state.former_state`.
    """
    features = np.empty((layout.n_items, 0)) if features is None else features
    known = Known.nothing(layout.n_items) if known is None else known
    trusted = np.zeros(layout.n_annotators, bool) if trusted is None else trusted
    anchors = find_anchors(layout, features, known, trusted)
    state = first_state(layout, anchors.prior.mean.copy(), features.shape[1]) if start is None else start
    state = replace(state, scores=np.where(known.clamped, known.scores, state.scores))
    return _run_rounds(layout, state, anchors, options)


def _run_rounds(layout: Layout, state: State, anchors: Anchors, options: Options) -> ScoreFit:
    """The state where rounds no longer change it, or no longer raise the log-likelihood.

    That is where no score, in standard deviations, and no number of an annotator or of the crowd changes by more than
    ``tol``, or where over five rounds the mean log-likelihood of a judgment stays within 5 % of that.
    """
    values: list[float] = []
    change, path, converged = np.inf, Path(layout.judged), False
    still = _STILL_SHARE * options.tol * sum(float(kind.weight.sum()) for kind in layout.kinds)
    while not converged and len(values) < options.max_iter:
        settled = change <= _MAX_LONG_CHANGE or len(values) >= _MAX_LONG_ROUNDS
        following, value = one_round(layout, state, anchors, learn_mean_lapse=settled)
        values.append(value)
        state, change = path.follow(state, following)
        stands_still = len(values) > _MIN_STILL_ROUNDS and max(values[-6:]) - min(values[-6:]) <= still
        converged = change <= options.tol or stands_still
    state = _widen_scores(layout, state, anchors)
    setters, prior = anchors.scale_setters, anchors.prior
    mean = 1.0 if setters is None else mean_discrimination(state, setters)
    # annotators without judgments have the prior of those who see
    variance = prior.variance(state.variance_of_alpha)
    state = replace(
        state, alpha=np.where(layout.active, state.alpha, prior.mean),
        alpha_variance=np.where(layout.active, state.alpha_variance, variance),
        scores=_round_scores(state.scores, state.variance_of_items**0.5),
    )  # fmt: skip
    return ScoreFit(state, Trace(len(values), converged, change, tuple(values)), anchors, mean)


def one_round(layout: Layout, state: State, anchors: Anchors, *, learn_mean_lapse: bool = True) -> tuple[State, float]:
    """Return the state after one round, and the log-likelihood within it."""
    # E: scores given annotators, then annotators given scores
    items = item_step(layout, state, anchors.inputs)
    state = with_items(state, items)
    sums = damp_curvature(annotator_sums(layout, state), state)
    state, discriminations = annotator_step(layout, state, sums, anchors.prior, learn_mean_lapse=learn_mean_lapse)
    # M: cuts and lambda, prior variances and shares, scale
    state = cut_step(layout, state, sums)
    state = variance_step(layout, state, items, discriminations, anchors.prior)
    if anchors.scale_setters is not None:
        state = scale_step(state, discriminations, anchors.prior, anchors.scale_setters)
    return state, sum(of.log_likelihood for of in sums)


def with_items(state: State, items: ItemEstimates) -> State:
    """Return the state with new scores."""
    return replace(
        state, scores=items.scores, variance=items.variance, covariance=items.covariance, weights=items.weights,
        weights_covariance=items.weights_covariance, cell_curvature=items.cell_curvature,
    )  # fmt: skip


def _round_scores(scores: Floats, unit: float) -> Floats:
    """Scores of which those are equal that differ by rounding alone, as those of two items with the same judgments."""
    return np.round(scores / unit, _SCORE_DIGITS) * unit + 0.0


def _widen_scores(layout: Layout, state: State, anchors: Anchors) -> State:
    """The state with scores of the widened variance, the annotators unchanged."""
    variance = widened_variance(layout, state, item_step(layout, state, anchors.inputs))
    if variance == state.variance_of_items:
        return state
    state = replace(state, variance_of_items=variance)
    for _ in range(_N_LAST_ITEM_STEPS):
        state = with_items(state, item_step(layout, state, anchors.inputs))
    return state


# Over-relaxation


class Relaxation:
    """A factor on the steps of some numbers, from how the last two steps compare: a secant along them.

    A step in the direction of the last and almost as long means slow convergence, the opposite means oscillation.
    """

    def __init__(self, largest: float) -> None:
        self.largest, self.factor = largest, 1.0
        self.before: Floats | None = None

    def step(self, step: Floats) -> Floats:
        """Return the step to take instead of this one."""
        if self.before is not None:
            turn = self.before - step
            square = float(turn @ turn)
            wanted = self.factor * float(self.before @ turn) / square if square > _MIN_POSITIVE else self.largest
            wanted = min(max(wanted, 0.5 * self.factor), 2.0 * self.factor) if wanted > 0.0 else 2.0 * self.factor
            self.factor = min(max(wanted, _MIN_FACTOR), self.largest)
        self.before = step
        return self.factor * step


class Path:
    """The path of a fit: from a state and what a round makes of it to the next."""

    def __init__(self, judged: Bools) -> None:
        self.means, self.shared = Relaxation(_MAX_MEANS_FACTOR), Relaxation(_MAX_SHARED_FACTOR)
        self.unjudged = np.flatnonzero(~judged)

    def follow(self, state: State, following: State) -> tuple[State, float]:
        """Return the state to continue from, and the largest change in the round, each number in its own unit."""
        step, n = _means(following) - _means(state), len(state.alpha)
        # scores of unjudged items follow the others, and their number changes nothing
        free, step[self.unjudged] = step[self.unjudged], 0.0
        drift = _shared_numbers(following) - _shared_numbers(state)
        n_judged = len(state.scores) - len(self.unjudged)
        change = max(float(np.abs(drift).max(initial=0.0)), _typical_change(step[: len(state.scores)], n_judged))
        change = max(change, *(_typical_change(part, len(part)) for part in step[len(state.scores) :].reshape(-1, n)))
        step = self.means.step(step)
        step[self.unjudged] = free
        moved = _with_means(following, _means(state) + step)
        return _with_shared_numbers(moved, _shared_numbers(state) + self.shared.step(drift)), change


def _typical_change(step: Floats, number: int) -> float:
    """The largest change, or five times their root mean square where only a few of thousands still move."""
    largest = float(np.abs(step).max(initial=0.0))
    return min(largest, _MAX_ROOT_MEAN_SQUARES * float(np.sqrt(step @ step / max(number, 1))))


def _means(state: State) -> Floats:
    """Scores in standard deviations, discriminations, biases and spreads, one after the other."""
    habits = [part for kind in state.kinds for part in (kind.bias, kind.spread)]
    return np.concatenate([state.scores / state.variance_of_items**0.5, state.alpha, *habits])


def _with_means(state: State, values: Floats) -> State:
    """The state with these means."""
    n_items, n = len(state.scores), len(state.alpha)
    scores, alpha = values[:n_items] * state.variance_of_items**0.5, values[n_items : n_items + n]
    rest = values[n_items + n :].reshape(-1, n)
    kinds = tuple(
        replace(kind, bias=rest[2 * number], spread=rest[2 * number + 1]) for number, kind in enumerate(state.kinds)
    )
    return replace(state, scores=scores, alpha=alpha, kinds=kinds)


def _shared_numbers(state: State) -> Floats:
    """What annotators share: standard deviations, of scores and discriminations as logarithms, shares, scales, cuts."""
    levels = np.log(max(state.variance_of_levels, _MIN_POSITIVE)) / 2.0
    own = [np.log(state.variance_of_items) / 2.0, np.log(state.variance_of_alpha) / 2.0, levels]
    own += [np.log(state.variance_of_weights) / 2.0 if len(state.weights) else 0.0, *state.shares[1:]]
    return np.concatenate([own, *(_shared_habits(kind) for kind in state.kinds)])


def _shared_habits(kind: KindState) -> Floats:
    """The same of one kind."""
    deviations = np.sqrt([kind.variance_of_bias, kind.variance_of_spread])
    return np.concatenate([[kind.mean_bias], deviations, [kind.log_scale, kind.mean_lapse**0.5], kind.cuts])


def _with_shared_numbers(state: State, values: Floats) -> State:
    """The state with these shared numbers, within their bounds; cuts that would not increase stay as they are."""
    most = _log_max_deviations("item", "alpha", "level", "weight")
    items, alpha, levels, weights = np.exp(2.0 * np.minimum(values[:4], most))
    shares = np.clip(values[4:6], 0.0, MAX_REVERSED_SHARE)
    place, kinds = 6, []
    for kind in state.kinds:
        kinds.append(_with_shared_habits(kind, values[place : place + 5 + len(kind.cuts)]))
        place += 5 + len(kind.cuts)
    return replace(
        state, variance_of_items=float(items), variance_of_alpha=float(alpha),
        variance_of_levels=float(levels) if state.variance_of_levels > 0.0 else 0.0,
        variance_of_weights=float(weights) if len(state.weights) else state.variance_of_weights,
        shares=np.append(1.0 - shares.sum(), shares), kinds=tuple(kinds),
    )  # fmt: skip


def _with_shared_habits(kind: KindState, values: Floats) -> KindState:
    """The same for one kind."""
    most = np.exp(_log_max_deviations("bias", "spread"))
    of_bias, of_spread = np.clip(values[1:3], _MIN_DEVIATION, most) ** 2
    cuts = values[5:]
    return replace(
        kind, mean_bias=float(values[0]), variance_of_bias=float(of_bias), variance_of_spread=float(of_spread),
        log_scale=float(values[3]), mean_lapse=float(np.clip(values[4], 0.0, MAX_MEAN_LAPSE**0.5) ** 2),
        cuts=cuts if np.diff(cuts).min(initial=1.0) >= MIN_CUT_GAP else kind.cuts,
    )  # fmt: skip


def _log_max_deviations(*names: str) -> Floats:
    """Logarithms of the largest standard deviations."""
    return np.log([MAX_VARIANCES[name] for name in names]) / 2.0
