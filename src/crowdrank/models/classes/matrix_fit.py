"""EM over confusion matrices and shares of levels, with a prior that is learned in rounds between passes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...data.consensus import Trace
from ...fitting import accelerate
from ...protocols import Floats
from .class_fit import ClassFit, Step
from .coded_grades import ClassRows, MatrixReading
from .confusion_priors import OwnPrior, Prior, crowd_shares, vote_anchor

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies

_MIN_PROBABILITY, _MAX_NUMBER = 1e-9, 50.0
_N_FIRST_NEWTON_STEPS = 20
_ROUGH_TOL, _N_PASSES_A_ROUND, _MOST_ROUNDS = 1e-3, 10, 20
"""Between two rounds of learning the weights of the prior, matrices need no more digits."""

_TOL, _MOST_PASSES = 1e-5, 300
"""Of the fit by which others are judged."""


def fit_matrices(
    rows: ClassRows, form: Form, prior: Prior, begin: Estimate | None, *, tol: float, max_iter: int
) -> ClassFit:
    """Return the fit: rounds that learn the prior, then E-steps and M-steps in turn until nothing changes."""
    first, n_iter = first_estimate(crowd_shares(rows), begin, rows.n_annotators), 0
    state = form.likeliest_state(first.confusion, first.prior, None)
    if begin is not None and not prior.is_settled:
        prior = prior.of_former().learn(_e_step(rows, form.estimate(state)))
    for _ in range(_MOST_ROUNDS):
        n_passes = min(_N_PASSES_A_ROUND, max_iter - n_iter - 1)
        if prior.is_settled or n_passes < 1:
            break
        rough = _walk(rows, form, prior, state, tol=max(tol, _ROUGH_TOL), max_iter=n_passes)
        state, prior, n_iter = rough.state, prior.learn(rough.expected), n_iter + rough.trace.n_iter
    state, trace = _climb(rows, form, prior, state, tol=tol, max_iter=max_iter - n_iter)
    best, trace = form.estimate(state), replace(trace, n_iter=n_iter + trace.n_iter)
    reading = MatrixReading(best.confusion, best.prior)
    return ClassFit(
        rows.read(reading), best.prior, best.confusion, trace, form.parameters(state), reading=reading, rereads=True
    )


def hierarchical_fit(rows: ClassRows) -> ClassFit:
    """Return matrices around each annotator's own accuracy, by which the doubt of other models is judged."""
    prior = OwnPrior.begin(crowd_shares(rows), rows.n_annotators, vote_anchor(rows))
    form = FreeMatrices(rows.n_annotators, rows.n_levels)
    return fit_matrices(rows, form, prior, None, tol=_TOL, max_iter=_MOST_PASSES)


class Estimate(NamedTuple):
    """Confusion matrices, (n_annotators, n_levels, n_levels), true level first, and shares of levels, (n_levels,)."""

    confusion: Floats
    prior: Floats

    def of(self, annotators: Any) -> Estimate:
        """The estimate for some annotators."""
        return Estimate(self.confusion[annotators], self.prior)


class _Walk(NamedTuple):
    """Where passes ended, the expected numbers there, and how it went."""

    state: Floats
    expected: Tallies
    trace: Trace


def _walk(rows: ClassRows, form: Form, prior: Prior, state: Floats, *, tol: float, max_iter: int) -> _Walk:
    """E-steps and M-steps in turn with a given prior, without leaps: far from the end these may land elsewhere."""
    n_iter, change = 0, np.inf
    while n_iter == 0 or (change > tol and n_iter < max_iter):
        expected = _e_step(rows, form.estimate(state))
        following = _m_step(expected, prior, form, state)
        change, state, n_iter = float(np.abs(following - state).max()), following, n_iter + 1
    return _Walk(state, expected, Trace(n_iter, change <= tol, change))


def _climb(
    rows: ClassRows, form: Form, prior: Prior, state: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, Trace]:
    """E-steps and M-steps in turn with a given prior, leaping ahead."""

    def step(state: Floats) -> Step:
        here = form.estimate(state)
        expected = _e_step(rows, here)
        return Step(_log_posterior(expected, here, prior), _m_step(expected, prior, form, state))

    scale = _scale(rows, form.n_numbers)
    return accelerate(step, state, lower=form.lower, upper=form.upper, scale=scale, tol=tol, max_iter=max_iter)


def _e_step(rows: ClassRows, here: Estimate) -> Tallies:
    """E-step: expected number of grades by annotator, true and given level, and of items of each level."""
    return rows.expected_counts(here.confusion, here.prior)


def _m_step(expected: Tallies, prior: Prior, form: Form, state: Floats) -> Floats:
    """M-step: the state that makes the expected numbers, with those of the prior, likeliest."""
    return form.likeliest_state(expected.counts + prior.counts, expected.shares + prior.shares, state)


def _log_posterior(expected: Tallies, here: Estimate, prior: Prior) -> float:
    """Log-likelihood of the grades with the log density of the prior."""
    favour = float((prior.counts * np.log(here.confusion)).sum() + (prior.shares * np.log(here.prior)).sum())
    # the last digits depend on the order of the sums
    return round(expected.log_likelihood + favour, 8)


class FreeMatrices:
    """Matrices of which any row may be anything; a state holds their probabilities and then the shares of levels."""

    lower, upper = _MIN_PROBABILITY, 1.0

    def __init__(self, n_annotators: int, n_levels: int) -> None:
        self.size, self.n_numbers = (n_annotators, n_levels, n_levels), n_levels**2

    def estimate(self, state: Floats) -> Estimate:
        """The estimate that a state stands for, in which sums are 1 once more."""
        n_levels = self.size[-1]
        confusion, prior = state[:-n_levels].reshape(self.size), state[-n_levels:]
        return Estimate(confusion / confusion.sum(axis=2, keepdims=True), prior / prior.sum())

    def likeliest_state(self, counts: Floats, shares: Floats, near: Floats | None) -> Floats:
        """The state that makes counts of true and given levels and shares of levels likeliest."""
        confusion = counts / counts.sum(axis=2, keepdims=True)
        return np.append(confusion.ravel(), shares / shares.sum())

    def parameters(self, state: Floats) -> dict[str, Floats]:
        """What else is known of the annotators: nothing."""
        return {}


class OrdinalMatrices:
    """Matrices by the formula of ``ordinal``; a state holds its numbers and then the logarithms of the shares."""

    lower, upper = -_MAX_NUMBER, _MAX_NUMBER

    def __init__(self, n_annotators: int, n_levels: int) -> None:
        self.n_annotators, self.n_levels, self.n_numbers = n_annotators, n_levels, n_levels + 2

    def estimate(self, state: Floats) -> Estimate:
        """The estimate that a state stands for."""
        from ...kernels.confusion import tied_confusion

        prior = np.exp(state[-self.n_levels :])
        return Estimate(np.exp(tied_confusion(self.numbers(state))), prior / prior.sum())

    def likeliest_state(self, counts: Floats, shares: Floats, near: Floats | None) -> Floats:
        """The state that makes counts of true and given levels and shares of levels likelier than the near one."""
        from ...kernels.confusion import fit_tied

        numbers = np.zeros((self.n_annotators, self.n_numbers)) if near is None else self.numbers(near)
        # likelier is enough: one step in each pass takes fewer steps in all than going on to the likeliest
        fitted = fit_tied(counts, numbers, max_iter=_N_FIRST_NEWTON_STEPS if near is None else 1)
        return np.append(fitted.ravel(), np.log(shares / shares.sum()))

    def numbers(self, state: Floats) -> Floats:
        """The numbers of each annotator, (n_annotators, n_levels + 2): liking of each level, exactness, closeness."""
        return state[: -self.n_levels].reshape(self.n_annotators, -1)

    def parameters(self, state: Floats) -> dict[str, Floats]:
        """What else is known of the annotators."""
        return {"exactness": self.numbers(state)[:, -2].copy(), "closeness": self.numbers(state)[:, -1].copy()}


Form: TypeAlias = FreeMatrices | OrdinalMatrices


def first_estimate(crowd: Floats, begin: Estimate | None, n_annotators: int) -> Estimate:
    """The estimate to start with: the former one, and the crowd's where there is none."""
    level = crowd.sum(axis=1)
    centre, prior = crowd / level[:, None], level / level.sum()
    if begin is None:
        return Estimate(np.broadcast_to(centre, (n_annotators, *centre.shape)), prior)
    confusion = np.where(np.isnan(begin.confusion), centre, begin.confusion)
    empty = confusion.sum(axis=2, keepdims=True) <= 0.0
    confusion = np.maximum(np.where(empty, centre, confusion), _MIN_PROBABILITY)
    return Estimate(confusion, np.maximum(np.where(np.isnan(begin.prior), prior, begin.prior), _MIN_PROBABILITY))


def _scale(rows: ClassRows, n_numbers: int) -> Floats:
    """Root of the number of grades or items that each entry of a state rests on."""
    scale: Floats = np.append(np.repeat(rows.given + 1.0, n_numbers), np.full(rows.n_levels, rows.n_graded))
    return np.sqrt(scale)
