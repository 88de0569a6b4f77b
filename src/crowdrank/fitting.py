"""The loops that iterative methods share, each with one convergence rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from .data.consensus import Trace
from .errors import ConvergenceWarning
from .protocols import Floats

_MOST_HALVINGS = 40
_ENOUGH_GAIN = 1e-4
_LEAP_GROWTH = 4.0
_ROUNDING = 1e-10


def iterate(
    step: Callable[[Floats], Floats],
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    what: str = "",
) -> tuple[Floats, Trace]:
    """Apply ``step`` to its own result until no entry changes by more than ``tol``.

    Parameters
    ----------
    step
        Returns the next state from the present one.
    start
        The state to begin with.
    tol
        Converged when the largest absolute change of an entry is at most this.
    max_iter
        Stop after so many steps, with a :class:`~crowdrank.errors.ConvergenceWarning`.
    what
        Name of the method, for the warning.

    Returns
    -------
    tuple
        The last state and its trace.

    Examples
    --------
    >>> root, trace = iterate(lambda x: (x + 2 / x) / 2, np.array([1.0]), tol=1e-12, max_iter=20)
    >>> round(float(root[0]), 6), trace.converged
    (1.414214, True)
    """
    state, change = start, np.inf
    for n_iter in range(1, max_iter + 1):
        following = step(state)
        change = _largest(following - state)
        state = following
        if change <= tol:
            return state, Trace(n_iter, True, change)
    warn_unconverged(what, max_iter, change, tol)
    return state, Trace(max_iter, False, change)


class Objective(Protocol):
    """One evaluation of a concave objective: its value, its gradient, and the log-likelihood within it."""

    @property
    def value(self) -> float:
        """The objective, penalties included."""
        ...

    @property
    def gradient(self) -> Floats:
        """Gradient of the objective."""
        ...

    @property
    def log_likelihood(self) -> float:
        """The objective without penalties, which is what the trace reports."""
        ...


Evaluated = TypeVar("Evaluated", bound=Objective)


def newton(
    evaluate: Callable[[Floats], Evaluated],
    direction: Callable[[Evaluated], Floats],
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    what: str = "",
) -> tuple[Floats, Evaluated, Trace]:
    """Maximise a concave objective by Newton steps, each halved until the objective rises enough.

    Parameters
    ----------
    evaluate
        Returns the objective at a point, with whatever ``direction`` needs of it.
    direction
        Returns the Newton step from an evaluated point; it may be inexact as long as it leads upwards.
    start
        The point to begin with.
    tol
        Converged when the largest absolute entry of a full step is at most this; that step is still taken.
    max_iter
        Stop after so many steps, with a :class:`~crowdrank.errors.ConvergenceWarning`.
    what
        Name of the method, for the warning.

    Returns
    -------
    tuple
        The last point, the objective there, and the trace with the log-likelihood at each point.
    """
    point, here = start, evaluate(start)
    likelihoods, change = [here.log_likelihood], np.inf
    for n_iter in range(1, max_iter + 1):
        step = direction(here)
        change = _largest(step)
        point, here = _climb(evaluate, point, here, step)
        likelihoods.append(here.log_likelihood)
        if change <= tol:
            return point, here, Trace(n_iter, True, change, tuple(likelihoods))
    warn_unconverged(what, max_iter, change, tol)
    return point, here, Trace(max_iter, False, change, tuple(likelihoods))


def _climb(
    evaluate: Callable[[Floats], Evaluated], point: Floats, here: Evaluated, step: Floats
) -> tuple[Floats, Evaluated]:
    """The point along the step, halved as often as needed, where the objective has risen enough."""
    slope = float((here.gradient * step).sum())
    # near the top the true gain drowns in rounding, and a full step is right
    rounding = 1e-12 * (1.0 + abs(here.value))
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        there = evaluate(point + length * step)
        if there.value >= here.value + _ENOUGH_GAIN * length * slope - rounding:
            return point + length * step, there
        length /= 2
    return point, here


class Step(Protocol):
    """One step of an expectation-maximisation: the objective where it began, and the state it leads to."""

    @property
    def value(self) -> float:
        """The objective at the state that the step was taken from."""
        ...

    @property
    def following(self) -> Floats:
        """The next state."""
        ...


def accelerate(
    step: Callable[[Floats], Step],
    start: Floats,
    *,
    lower: Floats | float,
    upper: Floats | float,
    tol: float,
    max_iter: int,
) -> tuple[Floats, Trace]:
    """Apply ``step`` until no entry changes by more than ``tol``, leaping ahead along the path of two steps.

    Where the steps of an expectation-maximisation shrink slowly, a leap saves most of them (squared extrapolation,
    Varadhan and Roland 2008). A leap that lowers the objective is not taken, so that the objective never falls.

    Parameters
    ----------
    step
        Returns the objective at a state and the following state; a plain step never lowers the objective.
    start
        The state to begin with.
    lower, upper
        Bounds of the entries, within which a leap stays.
    tol
        Converged when the largest absolute change of an entry in a plain step is at most this.
    max_iter
        Stop after so many evaluations. There is no warning: of several starts only the one that is kept matters.

    Returns
    -------
    tuple
        The last state and its trace, which has the objective at each state.
    """
    state, here = start, step(start)
    values, n_iter, longest = [here.value], 1, _LEAP_GROWTH
    while True:
        change = _largest(here.following - state)
        if change <= tol or n_iter >= max_iter:
            break
        second = step(here.following)
        values.append(_risen(values[-1], second.value))
        n_iter += 1
        change = _largest(second.following - here.following)
        if change <= tol or n_iter >= max_iter:
            state = here.following
            break
        leap, length = _leap(state, here.following, second.following, longest)
        leap = np.clip(leap, lower, upper)
        there = step(leap)
        n_iter += 1
        if not there.value >= second.value and length > 1.0:
            longest = max(1.0, longest / _LEAP_GROWTH)
            leap, there = second.following, step(second.following)
            n_iter += 1
        elif length == longest:
            longest *= _LEAP_GROWTH
        state, here = leap, there
        values.append(_risen(values[-1], here.value))
    return state, Trace(n_iter, change <= tol, change, tuple(values))


def _leap(state: Floats, first: Floats, second: Floats, longest: float) -> tuple[Floats, float]:
    """Where the path of two steps leads when it goes on, and how far that is; length 1 is the second step itself."""
    move = first - state
    turn = second - first - move
    bent = float(np.sqrt(np.einsum("i,i->", turn, turn)))
    length = float(np.sqrt(np.einsum("i,i->", move, move))) / bent if bent > 0.0 else 1.0
    length = min(max(length, 1.0), longest)
    return (second if length == 1.0 else state + 2.0 * length * move + length**2 * turn), length


def _risen(before: float, value: float) -> float:
    """The value, or the one before it where it is lower by no more than rounding."""
    return max(before, value) if value >= before - _ROUNDING * (1.0 + abs(before)) else value


def warn_unconverged(what: str, max_iter: int, change: float, tol: float) -> None:
    """Warn that a fit used up its steps; every loop says it in these words."""
    warnings.warn(
        f"{what or 'the fit'} did not converge in {max_iter} steps (last change {change:.3g}, tol={tol:g}); "
        "the last estimate was kept: raise max_iter or tol",
        ConvergenceWarning,
        stacklevel=4,
    )


def _largest(values: Any) -> float:
    """Largest absolute entry, 0 where there is none."""
    return float(np.max(np.abs(values), initial=0.0))
