"""Levels of items when each annotator mixes up levels in a way of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades
from ...errors import JudgmentError, ParameterError
from ...fitting import accelerate, warn_unconverged
from ...protocols import Floats
from ...wording import option
from .class_fit import ClassFit, ClassMethod, votes_as_fit
from .coded_grades import ClassRows, Former, with_known

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies

_N_RIGHT_ADDED, _N_WRONG_ADDED = 2.0, 1.0
"""Grades of each level that are added to the crowd's."""

_MIN_PROBABILITY, _MAX_NUMBER = 1e-9, 50.0
_N_FIRST_NEWTON_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class DawidSkene(ClassMethod):
    r"""Dawid-Skene: EM over a confusion matrix per annotator.

    Annotator :math:`a` gives an item of true level :math:`j` the level :math:`l` with probability :math:`\pi_{ajl}`, a
    confusion matrix of their own, and items are of level :math:`j` with probability :math:`\rho_j` [DawidSkene79]_:

    .. math:: P(j \mid \text{grades of } i) \propto \rho_j \prod_{(a, l) \in i} \pi_{ajl}.

    Matrices, shares and levels are estimated together by expectation-maximisation. The score is the expected grade, the
    grade the most probable level and the confidence its probability. The quality of an annotator is
    the matrix's, within the bounds of agreement with the others; ``confusion`` is the matrix, ``accuracy`` the
    probability of the true level and ``bias`` the mean error.

    When to use
    -----------
    Use it to choose one class or grade per item where annotators confuse classes in ways of their own and gave some
    dozens of grades each. With three or more ordered levels set ``ordinal=True``. With very few grades each
    ``majority_vote`` or ``naive_bayes`` has less to learn.

    Parameters
    ----------
    alpha
        Number of grades for each level that the crowd's own habits count for in each annotator's matrix; raise it where
        annotators gave few grades.
    ordinal
        Whether a miss by one level is likelier than by three: the rows of a matrix are tied by

        .. math:: \pi_{ajl} \propto \exp\left(b_{al} + \delta_a [l = j] - \tfrac{1}{2} \beta_a (l - j)^2\right),

        where :math:`b` is the liking of the annotator for a level, :math:`\delta` (``exactness``) the gain of the true
        one and :math:`\beta` (``closeness``) the loss with distance: agreement and linear-by-linear association
        [Agresti88]_. With five levels that is 6 numbers an annotator instead of 20.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of a probability in the last pass; with ``ordinal``, of a number in the formula.
    max_iter
        Most passes over the grades.
    seed
        Seed of the random draws: which of several equally probable levels an item gets.
    bins
        Cut grades into so many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    The paper's estimate is that of ``alpha=0``, which takes somebody who was right twice as infallible. Here each
    annotator begins with ``alpha`` grades for each level, distributed over true and given levels as the crowd's grades
    are over the vote shares of items with two annotators or more; two right and one wrong grade of each level are
    added to the crowd's. No level is likelier to be given for another level than for itself in these. The shares of
    the levels begin with one item each. The trace has the log-likelihood with these priors, which never falls; passes
    are extrapolated.

    On eight public sets with gold this is 0.4 to 1.2 points more accurate than nearly no prior (``alpha=0.01``) on five
    and one to three items less on three, with a smaller log-loss on all; values from 2 to 4 differ by little.

    Without annotators in the data all grades share one matrix. Where no item was graded by two annotators, or all
    grades are equal, the grades are kept as they are. A level that nobody gave has probability 0.

    Examples
    --------
    >>> truth = dict(zip("uvwxyz", [2, 2, 1, 1, 0, 0]))
    >>> rows = [(who, "q", item, grade) for who in ("ann", "bob", "cy") for item, grade in truth.items()]
    >>> rows += [("dan", "q", item, 2 - grade) for item, grade in truth.items()]
    >>> consensus = DawidSkene().fit(Grades.from_rows(rows))
    >>> consensus.frame()["grade"].to_list(), consensus.quality.quality.round(2).tolist()
    ([2, 2, 1, 1, 0, 0], [0.85, 0.85, 0.85, 0.3])
    """

    alpha: float = 2.5
    ordinal: bool = False
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < np.inf:
            raise ParameterError(f"alpha={self.alpha} must be above 0; use a small one such as 0.01 for nearly none")
        if self.max_iter < 1:
            raise ParameterError(f"max_iter={self.max_iter} must be at least 1")

    def fit(self, grades: Grades, *, known: Any | None = None, start: Consensus | None = None) -> Consensus:
        """Return the levels of the items and the confusion matrices of the annotators.

        ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is a former consensus of
        a class method to go on from; new annotators and items begin with the prior.
        """
        if self.ordinal and isinstance(grades, Grades) and grades.nominal:
            raise JudgmentError(
                f"ordinal=True needs an order and nominal grades have none; leave it out, or give {option('levels')}"
            )
        return self._fit(grades, known, start)

    def _begin_from(self, former: Former | None, rows: ClassRows, grades: Grades) -> _Estimate | None:
        """The estimate of a former consensus for the annotators and levels of now, NaN where they are new."""
        if former is None:
            return None
        if not rows.named:
            return _Estimate(np.full((1, rows.n_levels, rows.n_levels), np.nan), former.prior)
        return _Estimate(former.of_annotators("confusion", by_level=True), former.prior)

    def _fit_rows(self, rows: ClassRows, begin: _Estimate | None) -> ClassFit:
        """E-steps and M-steps in turn until the estimate no longer changes."""
        form, crowd = self._form(rows), _crowd_shares(rows) * (self.alpha * rows.n_levels)
        evidence = np.empty((rows.n_annotators, rows.n_levels))

        def step(state: Floats) -> _Step:
            here = form.estimate(state)
            expected = _e_step(rows, here)
            # the last step is taken from the state that is returned
            evidence[:] = expected.counts.sum(axis=2) + crowd.sum(axis=1)
            return _Step(_log_posterior(expected, here, crowd), _m_step(expected, crowd, form, state))

        first = _first_estimate(crowd, begin, rows.n_annotators)
        state, trace = accelerate(
            step, form.likeliest_state(first.confusion, first.prior, None), lower=form.lower, upper=form.upper,
            scale=_scale(rows, form.n_numbers), tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        if not trace.converged:
            warn_unconverged("dawid_skene", self.max_iter, trace.change, self.tol)
        best = form.estimate(state)
        probabilities = _level_probabilities(rows, best)
        return ClassFit(probabilities, best.prior, best.confusion, evidence, trace, form.parameters(state))

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the crowd has them."""
        crowd, form = _crowd_shares(rows), self._form(rows)
        first, level = _first_estimate(crowd, None, rows.n_annotators), crowd.sum(axis=1)
        evidence = np.broadcast_to(self.alpha * rows.n_levels * level, (rows.n_annotators, rows.n_levels))
        state = form.likeliest_state(first.confusion, first.prior, None)
        return replace(votes_as_fit(rows, first.confusion, evidence), parameters=form.parameters(state))

    def _form(self, rows: ClassRows) -> _FreeMatrices | _OrdinalMatrices:
        """What the confusion matrices may look like."""
        return (_OrdinalMatrices if self.ordinal else _FreeMatrices)(rows.n_annotators, rows.n_levels)


class _Estimate(NamedTuple):
    """Confusion matrices, (n_annotators, n_levels, n_levels), true level first, and shares of levels, (n_levels,)."""

    confusion: Floats
    prior: Floats

    def of(self, annotators: Any) -> _Estimate:
        """The estimate for some annotators."""
        return _Estimate(self.confusion[annotators], self.prior)


class _Step(NamedTuple):
    """The objective at a state, and the state that follows from an E-step and an M-step."""

    value: float
    following: Floats


def _e_step(rows: ClassRows, here: _Estimate) -> Tallies:
    """E-step: expected number of grades by annotator, true and given level, and of items of each level."""
    from ...kernels.confusion import confusion_pass

    return confusion_pass(rows.packed, here.confusion, here.prior, rows.known)


def _m_step(expected: Tallies, crowd: Floats, form: _FreeMatrices | _OrdinalMatrices, state: Floats) -> Floats:
    """M-step: the state that makes the expected numbers, with those of the priors, likeliest."""
    return form.likeliest_state(expected.counts + crowd, expected.shares + 1.0, state)


def _log_posterior(expected: Tallies, here: _Estimate, crowd: Floats) -> float:
    """Log-likelihood of the grades with the log density of the priors."""
    favour = float((crowd * np.log(here.confusion)).sum() + np.log(here.prior).sum())
    # the last digits depend on the order of the sums
    return round(expected.log_likelihood + favour, 8)


def _level_probabilities(rows: ClassRows, best: _Estimate) -> Floats:
    """Probability of each level for each item, (n_items, n_levels)."""
    from ...kernels.confusion import fill_probabilities

    probabilities = with_known(np.zeros((rows.n_items, rows.n_levels)), rows.known)
    fill_probabilities(rows.packed, best.confusion, best.prior, rows.known, probabilities)
    return probabilities


class _FreeMatrices:
    """Matrices of which any row may be anything; a state holds their probabilities and then the shares of levels."""

    lower, upper = _MIN_PROBABILITY, 1.0

    def __init__(self, n_annotators: int, n_levels: int) -> None:
        self.size, self.n_numbers = (n_annotators, n_levels, n_levels), n_levels**2

    def estimate(self, state: Floats) -> _Estimate:
        """The estimate that a state stands for, in which sums are 1 once more."""
        n_levels = self.size[-1]
        confusion, prior = state[:-n_levels].reshape(self.size), state[-n_levels:]
        return _Estimate(confusion / confusion.sum(axis=2, keepdims=True), prior / prior.sum())

    def likeliest_state(self, counts: Floats, shares: Floats, near: Floats | None) -> Floats:
        """The state that makes counts of true and given levels and shares of levels likeliest."""
        confusion = counts / counts.sum(axis=2, keepdims=True)
        return np.append(confusion.ravel(), shares / shares.sum())

    def parameters(self, state: Floats) -> dict[str, Floats]:
        """What else is known of the annotators: nothing."""
        return {}


class _OrdinalMatrices:
    """Matrices by the formula of ``ordinal``; a state holds its numbers and then the logarithms of the shares."""

    lower, upper = -_MAX_NUMBER, _MAX_NUMBER

    def __init__(self, n_annotators: int, n_levels: int) -> None:
        self.n_annotators, self.n_levels, self.n_numbers = n_annotators, n_levels, n_levels + 2

    def estimate(self, state: Floats) -> _Estimate:
        """The estimate that a state stands for."""
        from ...kernels.confusion import tied_confusion

        prior = np.exp(state[-self.n_levels :])
        return _Estimate(np.exp(tied_confusion(self.numbers(state))), prior / prior.sum())

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


def _crowd_shares(rows: ClassRows) -> Floats:
    """The crowd's grades by true and given level, as shares of all, the vote shares of items taken for the truth.

    Only items with a second opinion count, since alone on an item anybody is right.
    """
    from ...kernels.confusion import vote_pass

    use = rows.several | (rows.known >= 0)
    joint = vote_pass(rows.packed, rows.n_annotators, rows.n_levels, rows.known, use).counts.sum(axis=0)
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


def _first_estimate(crowd: Floats, begin: _Estimate | None, n_annotators: int) -> _Estimate:
    """The estimate to start with: the former one, and the crowd's where there is none."""
    level = crowd.sum(axis=1)
    centre, prior = crowd / level[:, None], level / level.sum()
    if begin is None:
        return _Estimate(np.broadcast_to(centre, (n_annotators, *centre.shape)), prior)
    confusion = np.where(np.isnan(begin.confusion), centre, begin.confusion)
    empty = confusion.sum(axis=2, keepdims=True) <= 0.0
    confusion = np.maximum(np.where(empty, centre, confusion), _MIN_PROBABILITY)
    return _Estimate(confusion, np.maximum(np.where(np.isnan(begin.prior), prior, begin.prior), _MIN_PROBABILITY))


def _scale(rows: ClassRows, n_numbers: int) -> Floats:
    """Root of the number of grades or items that each entry of a state rests on."""
    given = np.bincount(rows.annotator, rows.weight, rows.n_annotators)
    scale: Floats = np.append(np.repeat(given + 1.0, n_numbers), np.full(rows.n_levels, float(rows.graded.sum())))
    return np.sqrt(scale)
