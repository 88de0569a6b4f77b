"""Longer steps along what creeps, shorter ones along what swings, between the rounds of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...protocols import Bools, Floats
from .state import LARGEST_VARIANCES, LEAST_GAP, MOST_LAPSES, MOST_TURNED, KindState, State

_LONGEST = 3.0
_LONGEST_MEANS = 2.0
_MANY_TIMES = 5.0
_LEAST_DEVIATION = 0.02
_LEAST = 1e-300


class Relaxation:
    """A factor on the steps of some numbers, from how the last two steps compare: a secant along them.

    A step in the direction of the last and almost as long means creeping, one the other way means swinging.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self.shortest, self.longest, self.factor = shortest, longest, 1.0
        self.before: Floats | None = None

    def step(self, step: Floats) -> Floats:
        """Return the step to take instead of a step."""
        if self.before is not None:
            turn = self.before - step
            square = float(turn @ turn)
            wanted = self.factor * float(self.before @ turn) / square if square > _LEAST else self.longest
            wanted = min(max(wanted, 0.5 * self.factor), 2.0 * self.factor) if wanted > 0.0 else 2.0 * self.factor
            self.factor = min(max(wanted, self.shortest), self.longest)
        self.before = step
        return self.factor * step


class Path:
    """The path of a fit: from a state and what a round makes of it to the next."""

    def __init__(self, judged: Bools) -> None:
        self.means, self.shared = Relaxation(0.5, _LONGEST_MEANS), Relaxation(0.5, _LONGEST)
        self.unjudged = np.flatnonzero(~judged)

    def follow(self, state: State, following: State) -> tuple[State, float]:
        """Return the state to go on from, and the largest change in the round, each number in its own unit."""
        step, n = _means(following) - _means(state), len(state.alpha)
        # scores of items that nobody judged follow the others, and their number changes nothing
        free, step[self.unjudged] = step[self.unjudged], 0.0
        drift = _shared(following) - _shared(state)
        judged = len(state.scores) - len(self.unjudged)
        change = max(float(np.abs(drift).max(initial=0.0)), _typical(step[: len(state.scores)], judged))
        change = max(change, *(_typical(part, len(part)) for part in step[len(state.scores) :].reshape(-1, n)))
        step = self.means.step(step)
        step[self.unjudged] = free
        moved = _with_means(following, _means(state) + step)
        return _with_shared(moved, _shared(state) + self.shared.step(drift)), change


def _typical(step: Floats, number: int) -> float:
    """The largest change, or five times the root of their mean square where one of thousands still moves."""
    largest = float(np.abs(step).max(initial=0.0))
    return min(largest, _MANY_TIMES * float(np.sqrt(step @ step / max(number, 1))))


def _means(state: State) -> Floats:
    """Scores in standard deviations, discriminations, biases and spreads, one after the other."""
    habits = [part for kind in state.kinds for part in (kind.bias, kind.spread)]
    return np.concatenate([state.scores / state.variance_of_items**0.5, state.alpha, *habits])


def _with_means(state: State, values: Floats) -> State:
    """The state with other means."""
    n_items, n = len(state.scores), len(state.alpha)
    scores, alpha = values[:n_items] * state.variance_of_items**0.5, values[n_items : n_items + n]
    rest = values[n_items + n :].reshape(-1, n)
    kinds = tuple(
        replace(kind, bias=rest[2 * number], spread=rest[2 * number + 1]) for number, kind in enumerate(state.kinds)
    )
    return replace(state, scores=scores, alpha=alpha, kinds=kinds)


def _shared(state: State) -> Floats:
    """What all share: standard deviations, of scores and discriminations as logarithms, shares, scales and cuts."""
    levels = np.log(max(state.variance_of_levels, _LEAST)) / 2.0
    own = [np.log(state.variance_of_items) / 2.0, np.log(state.variance_of_alpha) / 2.0, levels]
    own += [np.log(state.variance_of_weights) / 2.0 if len(state.weights) else 0.0, *state.shares[1:]]
    return np.concatenate([own, *(_shared_habits(kind) for kind in state.kinds)])


def _shared_habits(kind: KindState) -> Floats:
    """The same of one kind."""
    deviations = np.sqrt([kind.variance_of_bias, kind.variance_of_spread])
    return np.concatenate([[kind.mean_bias], deviations, [kind.log_scale, kind.mean_lapse**0.5], kind.cuts])


def _with_shared(state: State, values: Floats) -> State:
    """The state with other shared numbers, within their bounds; cuts that would not rise stay as they are."""
    items, alpha, levels, weights = np.exp(2.0 * np.minimum(values[:4], _bounds("item", "alpha", "level", "weight")))
    shares = np.clip(values[4:6], 0.0, MOST_TURNED)
    place, kinds = 6, []
    for kind in state.kinds:
        kinds.append(_with_habits(kind, values[place : place + 5 + len(kind.cuts)]))
        place += 5 + len(kind.cuts)
    return replace(
        state, variance_of_items=float(items), variance_of_alpha=float(alpha),
        variance_of_levels=float(levels) if state.variance_of_levels > 0.0 else 0.0,
        variance_of_weights=float(weights) if len(state.weights) else state.variance_of_weights,
        shares=np.append(1.0 - shares.sum(), shares), kinds=tuple(kinds),
    )  # fmt: skip


def _with_habits(kind: KindState, values: Floats) -> KindState:
    """The same for one kind."""
    most = np.exp(_bounds("bias", "spread"))
    of_bias, of_spread = np.clip(values[1:3], _LEAST_DEVIATION, most) ** 2
    cuts = values[5:]
    return replace(
        kind, mean_bias=float(values[0]), variance_of_bias=float(of_bias), variance_of_spread=float(of_spread),
        log_scale=float(values[3]), mean_lapse=float(np.clip(values[4], 0.0, MOST_LAPSES**0.5) ** 2),
        cuts=cuts if np.diff(cuts).min(initial=1.0) >= LEAST_GAP else kind.cuts,
    )  # fmt: skip


def _bounds(*names: str) -> Floats:
    """Logarithms of the largest standard deviations."""
    return np.log([LARGEST_VARIANCES[name] for name in names]) / 2.0
