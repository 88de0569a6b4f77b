"""The loops that iterative methods share, each with one convergence rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .data.consensus import Trace
from .errors import ConvergenceWarning, warn
from .protocols import BlockStep, Floats, Statistics

_MOST_HALVINGS = 40
_ENOUGH_GAIN = 1e-4
_BINARY_DIGITS, _MIN_EXPONENT = 40, -900
_LEAP_GROWTH = 4.0
_LEAP_SLACK = 1e-13
# threshold (equal): entries of a state compared in digits
_MANY = 1 << 16
_MEMORY = 5
_MOST_FAILURES = 6
_RIDGE = 1e-8
_ROUNDING = 1e-9
_MIN_DIVISOR = 1e-300


def iterate(
    step: Callable[[Floats], Floats], start: Floats, *, tol: float, max_iter: int, what: str = ""
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
        Stop after this many steps, with a :class:`~crowdrank.errors.ConvergenceWarning`.
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


class OneBlock:
    """Judgments in memory as the only block of a fit (:class:`~crowdrank.protocols.Blocks`).

    Examples
    --------
    >>> blocks = OneBlock(np.array([1.0, 2.0]))
    >>> blocks.total(lambda block, state: ((float(block.sum()),), "seen")), blocks.state
    ((3.0,), 'seen')
    """

    def __init__(self, block: Any, state: Any = None) -> None:
        self.block, self.state = block, state

    def total(self, step: BlockStep) -> Statistics:
        """Return the statistics of a step."""
        statistics, state = step(self.block, self.state)
        self.state = self.state if state is None else state
        return statistics

    def each(self, step: BlockStep) -> list[Statistics]:
        """Return the statistics of a step in a list."""
        return [self.total(step)]

    def read(self, step: BlockStep) -> Iterator[Statistics]:
        """Yield what a step reads."""
        yield step(self.block, self.state)[0]


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
        Stop after this many steps, with a :class:`~crowdrank.errors.ConvergenceWarning`.
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
        change, slope, length = _largest(step), float((here.gradient * step).sum()), 1.0
        # near the top the true gain drowns in rounding, and a full step is right
        rounding = 1e-12 * (1.0 + abs(here.value))
        for _ in range(_MOST_HALVINGS):
            there = evaluate(point + length * step)
            gains = there.value >= here.value + _ENOUGH_GAIN * length * slope - rounding
            if gains:
                point, here = point + length * step, there
                break
            length /= 2
        likelihoods.append(here.log_likelihood)
        if change <= tol:
            return point, here, Trace(n_iter, True, change, tuple(likelihoods))
        if not gains:
            break  # no length of the step gains, and the next one would be the same
    warn_unconverged(what, n_iter, change, tol)
    return point, here, Trace(n_iter, False, change, tuple(likelihoods))


def ascend(
    evaluate: Callable[[Floats], Evaluated],
    start: Floats,
    *,
    learning_rate: float,
    tol: float,
    max_iter: int,
    move: Callable[[Floats, Floats], Floats] = np.add,
    what: str = "",
) -> tuple[Floats, Evaluated, Trace]:
    """Take gradient steps of a fixed rate, as papers print them, until no entry changes by more than ``tol``.

    ``move`` returns the next point from one and its step, where points have bounds or another scale.
    Returns what :func:`newton` does; the objective may fall where the rate is too large for it.
    """
    point, here = start, evaluate(start)
    likelihoods, change = [here.log_likelihood], np.inf
    for n_iter in range(1, max_iter + 1):
        following = move(point, learning_rate * here.gradient)
        change, point = _largest(following - point), following
        here = evaluate(point)
        likelihoods.append(here.log_likelihood)
        if change <= tol:
            return point, here, Trace(n_iter, True, change, tuple(likelihoods))
    warn_unconverged(what, max_iter, change, tol)
    return point, here, Trace(max_iter, False, change, tuple(likelihoods))


class Step(NamedTuple):
    """One step of an expectation-maximisation: the objective where it began, and the state it leads to.

    ``shares`` are those of the classes where a method asks for them.
    """

    value: float
    following: Floats
    shares: Floats = np.empty(0)


def accelerate(
    step: Callable[[Floats], Step],
    start: Floats,
    *,
    lower: Floats | float,
    upper: Floats | float,
    scale: Floats | float,
    tol: float,
    max_iter: int,
) -> tuple[Floats, Trace]:
    """Apply ``step`` until no entry changes by more than ``tol``, leaping ahead along the path of the last steps.

    Where the steps of an expectation-maximisation shrink slowly, leaps save most of them. A leap that lowers the
    objective is not taken, so the objective never falls.

    Parameters
    ----------
    step
        Returns the objective at a state and the following state; a plain step never lowers the objective.
    start
        The state to begin with.
    lower, upper
        Bounds of the entries, within which a leap stays.
    scale
        How much an entry counts, such as the root of the number of observations it rests on.
    tol
        Converged when the largest absolute change of an entry in a plain step is at most this.
    max_iter
        Stop after this many evaluations. There is no warning: of several starts only the one that is kept matters.

    Returns
    -------
    tuple
        The last state and its trace, which has the objective at each state.
    """
    state, here = start, step(start)
    values, n_iter, path = [here.value], 1, _Path(np.broadcast_to(scale, start.shape))
    while True:
        move = here.following - state
        change = _largest(move)
        if change <= tol or n_iter >= max_iter:
            return state, Trace(n_iter, change <= tol, change, tuple(values))
        target, there = path.ahead(state, move), None
        if target is not None:
            target = np.clip(target, lower, upper)
            there = step(target)
            n_iter += 1
            # not below: an objective that is not a number is no gain either
            there = there if there.value >= here.value - _LEAP_SLACK * abs(here.value) else None
            path.learn(there is not None)
        if target is None or there is None:
            target, there = here.following, step(here.following)
            n_iter += 1
        path.add(target - state, there.following - target - move, leapt=target is not here.following)
        state, here = target, there
        # a value that is lower by no more than rounding has not fallen
        level = here.value >= values[-1] - _ROUNDING * (1.0 + abs(values[-1]))
        values.append(max(values[-1], here.value) if level else here.value)


class _Path:
    """The last steps, and where they lead.

    A leap goes where the last steps, combined, would change least (Anderson 1965). That fails where the path still
    leads away from a saddle; then, for a while, a leap goes on along the last two steps (squared extrapolation,
    Varadhan and Roland 2008).
    """

    def __init__(self, scale: Floats) -> None:
        self.scale = scale
        self.moves: list[Floats] = []
        self.turns: list[Floats] = []
        self.weighed: list[Floats] = []
        self.squares: Floats = np.empty((0, 0))
        self.failures, self.wait, self.longest = 0, 0, _LEAP_GROWTH
        self.length, self.leapt = 0.0, False

    def ahead(self, state: Floats, move: Floats) -> Floats | None:
        """Return the target of a leap, ``None`` where a plain step is due."""
        self.wait -= 1
        self.length = 0.0
        if not self.moves:
            return None
        if self.wait < 0:
            # where a combination of the last steps would not change
            squares = self.squares.copy()
            squares.flat[:: len(squares) + 1] += _RIDGE * np.trace(squares) + _MIN_DIVISOR
            shares = np.linalg.solve(squares, _dots(self.weighed, move * self.scale))
            target = state + move
            for share, past, turn in zip(shares, self.moves, self.turns, strict=True):
                target = target - share * (past + turn)
            return target
        if self.leapt:
            return None
        # where the last two plain steps lead when they go on
        last = self.moves[-1]
        size, turn = (_dots([part], part)[0] ** 0.5 for part in (last * self.scale, (move - last) * self.scale))
        self.length = min(size / (turn + _MIN_DIVISOR), self.longest)
        if self.length <= 1.0:
            return None
        return state + (2.0 * self.length - 1.0) * last + self.length**2 * (move - last)

    def learn(self, taken: bool) -> None:
        """Take note of whether the last leap was taken."""
        if self.length == 0.0:
            self.failures = max(self.failures - 1, 0) if taken else min(self.failures + 1, _MOST_FAILURES)
            self.wait = self.wait if taken else 2**self.failures
        elif not taken:
            self.longest = max(self.longest / _LEAP_GROWTH, 1.0)
        elif self.length == self.longest:
            self.longest *= _LEAP_GROWTH

    def add(self, move: Floats, turn: Floats, *, leapt: bool) -> None:
        """Take note of a step, of how the next one differs from it, and of whether it was a leap."""
        self.leapt = leapt
        self.moves, self.turns = [*self.moves, move][-_MEMORY:], [*self.turns, turn][-_MEMORY:]
        self.weighed = [*self.weighed, turn * self.scale][-_MEMORY:]
        edge = _dots(self.weighed, self.weighed[-1])
        squares = np.empty((len(edge), len(edge)))
        squares[:-1, :-1] = self.squares[len(self.squares) + 1 - len(edge) :, len(self.squares) + 1 - len(edge) :]
        squares[-1], squares[:, -1] = edge, edge
        self.squares = squares


def _dots(first: list[Floats], second: Floats) -> Floats:
    """Inner products; of some thousand entries the same in whatever order they come, so names change nothing."""
    if len(second) > _MANY:
        return np.array([np.einsum("i,i->", one, second) for one in first])
    products = np.array(first) * second
    top = np.abs(products).max(axis=1, initial=0.0)
    # multiples of a power of two below the largest: their sum is exact
    unit = np.ldexp(1.0, np.maximum(np.frexp(top)[1], _MIN_EXPONENT) - _BINARY_DIGITS)[:, None]
    with np.errstate(invalid="ignore"):
        sums: Floats = (np.rint(products / unit) * unit).sum(axis=1)
    return np.where(top < np.inf, sums, top)


def warn_unconverged(what: str, max_iter: int, change: float, tol: float) -> None:
    """Warn that a fit used up its steps; every loop says it in these words."""
    said = f"{what or 'the fit'} did not converge in {max_iter} steps (last change {change:.3g}, tol={tol:g})"
    warn(f"{said}; the last estimate was kept: raise max_iter or tol", ConvergenceWarning)


def _largest(values: Any) -> float:
    """Largest absolute entry, 0 where there is none."""
    return float(np.max(np.abs(values), initial=0.0))
