"""The shared loops: where they stop, what they say when they do not."""

from typing import NamedTuple

import numpy as np
import pytest

from crowdrank.errors import ConvergenceWarning
from crowdrank.fitting import accelerate, iterate, newton


class Point(NamedTuple):
    """A concave objective at one point."""

    value: float
    gradient: np.ndarray
    log_likelihood: float
    bend: np.ndarray


def log_cosh(point):
    """Minus the sum of log cosh(x - 3): Newton overshoots far from its top, so that steps have to be halved."""
    gap = point - 3
    value = -float((np.logaddexp(gap, -gap) - np.log(2)).sum())
    return Point(value, -np.tanh(gap), value, 1 - np.tanh(gap) ** 2)


def step(here):
    return here.gradient / here.bend


def test_newton_finds_the_top_from_afar():
    top, here, trace = newton(log_cosh, step, np.array([-3.0, 5.0]), tol=1e-9, max_iter=50)
    np.testing.assert_allclose(top, [3, 3], atol=1e-9)
    assert trace.converged
    assert trace.change <= 1e-9
    assert len(trace.log_likelihood) == trace.n_iter + 1
    assert (np.diff(trace.log_likelihood) >= -1e-12).all()
    assert here.value == trace.log_likelihood[-1]


def test_newton_warns_and_keeps_the_last_point():
    with pytest.warns(ConvergenceWarning, match="slow did not converge in 2 steps.*raise max_iter or tol"):
        top, _, trace = newton(log_cosh, step, np.array([-3.0]), tol=1e-9, max_iter=2, what="slow")
    assert not trace.converged
    assert trace.n_iter == 2
    assert top[0] > -3


def test_newton_without_parameters():
    _, _, trace = newton(log_cosh, step, np.empty(0), tol=1e-9, max_iter=5)
    assert trace.converged


def test_iterate_stops_when_nothing_changes_any_more():
    state, trace = iterate(lambda x: 0.5 * x + 1, np.array([0.0, 8.0]), tol=1e-8, max_iter=100)
    np.testing.assert_allclose(state, 2, atol=2e-8)
    assert trace.converged
    assert trace.change <= 1e-8


def test_iterate_warns_and_keeps_the_last_state():
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 steps"):
        state, trace = iterate(lambda x: x + 1, np.array([0.0]), tol=1e-8, max_iter=3)
    assert state[0] == 3
    assert (trace.n_iter, trace.converged, trace.change) == (3, False, 1.0)


class Passed(NamedTuple):
    """One step of a contraction, with an objective."""

    value: float
    following: np.ndarray


def slow_climb(state):
    """Steps that shrink by a hundredth and by a half, towards (2, 1); the objective is minus the distance."""
    gap = state - np.array([2.0, 1.0])
    return Passed(-float(gap @ gap), state - np.array([0.01, 0.5]) * gap)


def test_leaps_save_most_steps_and_the_objective_never_falls():
    state, trace = accelerate(slow_climb, np.zeros(2), lower=-9.0, upper=9.0, scale=1.0, tol=1e-8, max_iter=500)
    np.testing.assert_allclose(state, [2, 1], atol=1e-5)
    assert trace.converged
    assert trace.n_iter < 30
    assert (np.diff(trace.log_likelihood) >= 0).all()


def test_leaps_stay_within_bounds():
    seen = []

    def noted(state):
        seen.append(state)
        return slow_climb(state)

    accelerate(noted, np.zeros(2), lower=0.0, upper=np.array([2.0, 1.0]), scale=1.0, tol=1e-6, max_iter=500)
    assert (np.stack(seen) <= [2, 1]).all()
    assert (np.stack(seen) >= 0).all()


def test_leaps_away_from_a_saddle_are_not_taken_back():
    def away(state):
        # a step grows with the distance from 0 until it nears 1
        return Passed(float(state[0] ** 2 - 0.5 * state[0] ** 4), state + 0.3 * state * (1 - state**2))

    state, trace = accelerate(away, np.array([1e-3]), lower=-5.0, upper=5.0, scale=1.0, tol=1e-9, max_iter=200)
    assert state[0] == pytest.approx(1, abs=1e-6)
    assert trace.converged
    assert (np.diff(trace.log_likelihood) >= 0).all()


def test_too_few_steps_are_told_by_the_trace():
    _, trace = accelerate(slow_climb, np.zeros(2), lower=-9.0, upper=9.0, scale=1.0, tol=1e-8, max_iter=3)
    assert not trace.converged
    assert trace.change > 1e-8
    assert trace.n_iter >= 3
