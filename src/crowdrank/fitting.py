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
