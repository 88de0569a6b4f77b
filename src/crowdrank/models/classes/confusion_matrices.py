"""EM over confusion matrices and shares of levels: E-step, M-step, form of the matrices, and their prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...data.consensus import Trace
from ...fitting import accelerate
from ...protocols import Floats
from .coded_grades import ClassFit, ClassRows, MatrixReading, Step

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies

_MIN_PROBABILITY, _MAX_NUMBER = 1e-9, 50.0
_N_FIRST_NEWTON_STEPS = 20
_ROUGH_TOL, _N_PASSES_A_ROUND, _MOST_ROUNDS = 1e-3, 10, 20
"""Between two rounds of learning the weights of the prior, matrices need no more digits."""

_STILL = 1e-4
"""Where a round moves nothing by more, the weights may still change, of annotators who are all alike, to no effect."""

_N_RIGHT_ADDED, _N_WRONG_ADDED = 2.0, 1.0
"""Grades of each level that are added to the crowd's."""

_NEARLY_NONE = 1e-6
_ROW_WEIGHT, _OWN_WEIGHT, _SPREAD_OF_LOG_WEIGHT = 20.0, 4.0, 1.0
"""Where the learned weights are expected: their hyper-prior is log-normal, worth about one annotator."""

_SPREAD_OF_LOG_SHARE_WEIGHT = 2.0
_N_ROUNDS_BEFORE_OWN_WEIGHT = 4
"""In the first rounds annotators are still much alike by construction, which would make the weight too large."""

_MOST_ANCHOR = 10.0
"""Items that the anchor of the shares is worth at most, for each item."""

_MAX_LOG_CHANGE = 0.02


def fit_matrices(
    rows: ClassRows, form: Form, prior: Prior, begin: Estimate | None, *, tol: float, max_iter: int
) -> ClassFit:
    """Return the fit: rounds that learn the prior, then E-steps and M-steps in turn until nothing changes."""
    # the prior is learned by free matrices: tied rows can be shifted by a level at little loss, and the prior with them
    free = FreeMatrices(rows.n_annotators, rows.n_levels)
    first, n_iter = first_estimate(crowd_shares(rows), begin, rows.n_annotators), 0
    state = free.likeliest_state(first.confusion, first.prior, None)
    if begin is not None and not prior.is_settled:
        prior = prior.of_former().learn(_e_step(rows, free.estimate(state)))
    for _ in range(_MOST_ROUNDS):
        n_passes = min(_N_PASSES_A_ROUND, max_iter - n_iter - 1)
        if prior.is_settled or n_passes < 1:
            break
        rough = _walk(rows, free, prior, state, tol=max(tol, _ROUGH_TOL), max_iter=n_passes)
        moved = float(np.abs(rough.state - state).max())
        state, prior, n_iter = rough.state, prior.learn(rough.expected), n_iter + rough.trace.n_iter
        if moved < _STILL and prior.n_rounds > _N_ROUNDS_BEFORE_OWN_WEIGHT + 1:
            break
    if not isinstance(form, FreeMatrices):
        state = _m_step(_e_step(rows, free.estimate(state)), prior, form, None)
    state, trace = _climb(rows, form, prior, state, tol=tol, max_iter=max_iter - n_iter)
    best, trace = form.estimate(state), replace(trace, n_iter=n_iter + trace.n_iter)
    reading = MatrixReading(best.confusion, best.prior)
    return ClassFit(
        rows.read(reading), best.prior, best.confusion, trace, form.parameters(state), reading=reading, rereads=True
    )


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


def _m_step(expected: Tallies, prior: Prior, form: Form, state: Floats | None) -> Floats:
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
    scale: Floats = np.append(np.repeat(rows.annotator_weights + 1.0, n_numbers), np.full(rows.n_levels, rows.n_graded))
    return np.sqrt(scale)


def crowd_shares(rows: ClassRows) -> Floats:
    """Return the crowd's grades by true and given level, as shares of all, vote shares of items taken for the truth.

    Only items with a second opinion count, since alone on an item anybody is right.
    """
    joint = rows.votes(second_opinions=True).counts.sum(axis=0)
    joint += np.where(np.eye(rows.n_levels, dtype=bool), _N_RIGHT_ADDED, _N_WRONG_ADDED / max(rows.n_levels - 1, 1))
    level = joint.sum(axis=1, keepdims=True)
    confusion = joint / level
    for k in range(rows.n_levels):
        # a grade must not speak against the level that it names
        own, most = confusion[k, k], np.delete(confusion[:, k], k).max(initial=0.0)
        if own < most:
            confusion[k] *= (1.0 - most) / (1.0 - own)
            confusion[k, k] = most
    shares: Floats = confusion * level / level.sum()
    return shares


def vote_anchor(rows: ClassRows) -> Floats:
    """Return items of each level, in the shares of the grades, that a fit begins with, (n_levels,).

    Only pairs of grades of the same item tell shares of levels from habits of annotators. With few of them one level
    can take nearly all items at no loss of likelihood. The anchor is worth as many items as there are at one pair each,
    and fades with the square of the pairs that an item has on average, so that it is gone where these are many.
    """
    (pairs,) = rows.total(_n_pairs)
    shares = rows.level_weights
    # the weight is bounded, or passes could not move the shares at all
    worth = min((rows.n_graded / max(float(pairs), 1e-9)) ** 2, _MOST_ANCHOR)
    anchor: Floats = shares / shares.sum() * worth * rows.n_graded
    return anchor


def _n_pairs(rows: ClassRows) -> tuple[float]:
    """Number of pairs of grades of the same item."""
    number = np.bincount(rows.item, rows.weight, rows.n_items)
    return (float((number * np.maximum(number - 1.0, 0.0)).sum()) / 2.0,)


@dataclass(frozen=True, eq=False)
class FixedPrior:
    """The same grades added for everybody, and the same number of items of each level."""

    counts: Floats
    shares: Floats
    n_rounds: ClassVar[int] = 0

    @classmethod
    def of_crowd(cls, crowd: Floats, alpha: float) -> FixedPrior:
        """Return the crowd's habits as ``alpha`` grades of each level, and one item of each."""
        return cls(crowd[None] * (alpha * len(crowd)), np.ones(len(crowd)))

    @classmethod
    def none(cls, crowd: Floats) -> FixedPrior:
        """Return next to nothing: it only says what a row without grades looks like."""
        return cls(crowd[None] * (_NEARLY_NONE * len(crowd)), np.full(len(crowd), _NEARLY_NONE))

    @property
    def is_settled(self) -> bool:
        """Nothing is learned."""
        return True

    def of_former(self) -> Prior:
        """Return the same."""
        return self

    def learn(self, expected: Tallies) -> Prior:
        """Return the same."""
        return self


@dataclass(frozen=True, eq=False)
class OwnPrior:
    """Rows around the annotator's own accuracy and the crowd's errors, by weights that the grades tell.

    Parameters
    ----------
    ability
        Log odds of each annotator's accuracy, (n_annotators,).
    ease
        Log odds by which each level is easier than others, (n_levels,).
    errors
        Share of each level among the crowd's wrong grades for a level, (n_levels, n_levels), the true one first.
    mean
        Log odds of the mean accuracy.
    row_weight, own_weight, share_weight
        Grades that the prior of a row is worth, that the mean accuracy is worth in one's own, and items that even
        shares of the levels are worth.
    anchor
        Items added for each level besides (:func:`vote_anchor`), (n_levels,), or 0.
    n_rounds
        How often it was learned.
    is_settled
        Whether the last round changed the weights by little.
    """

    ability: Floats
    ease: Floats
    errors: Floats
    mean: float
    row_weight: float
    own_weight: float
    share_weight: float
    anchor: Floats | float = 0.0
    n_rounds: int = 0
    is_settled: bool = False

    @classmethod
    def begin(cls, crowd: Floats, n_annotators: int, anchor: Floats | float = 0.0) -> OwnPrior:
        """Return what the vote shares suggest, everybody being alike."""
        centre, level = crowd / crowd.sum(axis=1, keepdims=True), crowd.sum(axis=1) / crowd.sum()
        right = np.clip(np.diag(centre), 1e-4, 1 - 1e-4)
        mean = float(_log_odds(np.array([right @ level]))[0])
        wrong = np.where(np.eye(len(level), dtype=bool), 0.0, centre)
        errors = wrong / np.maximum(wrong.sum(axis=1, keepdims=True), 1e-300)
        return cls(
            np.full(n_annotators, mean), _log_odds(right) - mean, errors, mean, _ROW_WEIGHT, _OWN_WEIGHT,
            float(len(level)), anchor,
        )  # fmt: skip

    def of_former(self) -> OwnPrior:
        """Return the same for annotators whose former matrices are known, of whom the weight can be learned at once."""
        return replace(self, n_rounds=_N_ROUNDS_BEFORE_OWN_WEIGHT)

    @cached_property
    def centre(self) -> Floats:
        """The rows that matrices are shrunk towards, (n_annotators, n_levels, n_levels)."""
        right = _probability(self.ability[:, None] + self.ease)
        eye = np.eye(len(self.ease), dtype=bool)
        return np.where(eye, right[:, :, None], (1.0 - right)[:, :, None] * self.errors)

    @cached_property
    def counts(self) -> Floats:
        """Grades added for each annotator by true and given level."""
        return self.row_weight * self.centre

    @property
    def shares(self) -> Floats:
        """Items added for each level."""
        return np.full(len(self.ease), self.share_weight / len(self.ease)) + self.anchor

    def learn(self, expected: Tallies) -> Prior:
        """Return the prior of largest marginal likelihood for the expected numbers, by a few sweeps.

        Rows are Dirichlet-multinomial. Of the n grades in a cell whose prior is worth b grades only
        :math:`b (\\psi(n + b) - \\psi(b))` count one level up, where rows of one annotator differ by chance [Minka00]_;
        these are what accuracies, errors and ease are estimated from, and in the same way the mean accuracy.
        """
        from .kernels.own_prior import likeliest_weight, sweep_accuracies

        swept = sweep_accuracies(
            expected.counts, expected.shares, (self.ability, self.mean, self.ease, self.errors),
            row_weight=self.row_weight, own_weight=self.own_weight, added=(_N_RIGHT_ADDED, _N_WRONG_ADDED),
        )  # fmt: skip
        learned = replace(self, ability=swept.ability, mean=swept.mean, ease=swept.ease, errors=swept.errors)
        row_weight = likeliest_weight(expected.counts, learned.centre, _ROW_WEIGHT, _SPREAD_OF_LOG_WEIGHT)
        own_weight = self.own_weight
        if self.n_rounds >= _N_ROUNDS_BEFORE_OWN_WEIGHT:
            share = (swept.right.sum() + _N_RIGHT_ADDED) / (swept.total.sum() + _N_RIGHT_ADDED + _N_WRONG_ADDED)
            pairs = np.stack([swept.right, swept.total - swept.right], axis=1)
            even = np.broadcast_to([share, 1 - share], pairs.shape)
            own_weight = likeliest_weight(pairs, even, _OWN_WEIGHT, _SPREAD_OF_LOG_WEIGHT)
        share_weight = likeliest_share_weight(expected.shares)
        before = np.log([self.row_weight, self.own_weight])
        near = bool((np.abs(np.log([row_weight, own_weight]) - before) < _MAX_LOG_CHANGE).all())
        return replace(
            learned, row_weight=row_weight, own_weight=own_weight, share_weight=share_weight,
            n_rounds=self.n_rounds + 1, is_settled=near and self.n_rounds > _N_ROUNDS_BEFORE_OWN_WEIGHT,
        )  # fmt: skip


Prior: TypeAlias = FixedPrior | OwnPrior


def likeliest_share_weight(shares: Floats) -> float:
    """Return how many items even shares of the levels are worth, from the expected number of items of each."""
    from .kernels.own_prior import likeliest_weight

    even = np.full((1, len(shares)), 1.0 / len(shares))
    return likeliest_weight(shares[None], even, float(len(shares)), _SPREAD_OF_LOG_SHARE_WEIGHT)


def _probability(log_odds: Floats) -> Floats:
    """Probability of log odds."""
    probability: Floats = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
    return probability


def _log_odds(probability: Floats) -> Floats:
    """Log odds of probabilities, kept off 0 and 1."""
    inside = np.clip(probability, 1e-9, 1 - 1e-9)
    log_odds: Floats = np.log(inside / (1.0 - inside))
    return log_odds
