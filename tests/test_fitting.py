"""The shared loops: where they stop, what they say when they do not."""

from typing import NamedTuple

import numpy as np
import pytest

from crowdrank.errors import ConvergenceWarning
from crowdrank.fitting import iterate, newton


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
