"""Levels of items when each annotator is right with a probability of their own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades
from ...errors import DataWarning, ParameterError
from ...fitting import accelerate, warn_unconverged
from ...protocols import Counts, Floats
from ...wording import option
from .class_fit import ClassFit, ClassMethod, votes_as_fit
from .coded_grades import ClassRows, Former, given_accuracies, is_identified, with_known

_MARGIN_LEARNED, _MARGIN_GIVEN = 1e-4, 1e-6
"""Least distance of an accuracy from 0 and 1, so that two who are sure and disagree do not rule out every level."""

_MIN_PROBABILITY = 1e-9
_MIN_GAIN_OVER_GUESSING = 0.1
_MAX_SHARE_OF_LEVEL, _MAX_SHARE_OF_GRADES = 0.99, 0.9


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(ClassMethod):
    r"""Naive Bayes (one-coin Dawid-Skene): EM over one accuracy per annotator.

    Annotator :math:`a` gives the true level with probability :math:`p_a` and each of the other :math:`K - 1` levels
    alike, and items are of level :math:`j` with probability :math:`\rho_j`, so that [KumarLease11]_

    .. math:: P(j \mid \text{grades of } i) \propto \rho_j \prod_{(a, l) \in i}
              \begin{cases} p_a & l = j \\ (1 - p_a) / (K - 1) & l \ne j. \end{cases}

    Accuracies are given, or learned along with the levels by expectation-maximisation, the Dawid-Skene model with one
    number for each annotator [DawidSkene79]_: :math:`p_a` is then :math:`(a_0 + r_a) / (a_0 + b_0 + n_a)` with
    :math:`r_a` of their :math:`n_a` grades expected to be right. The score is the expected grade, the grade the most
    probable level and the confidence its probability. The quality of an annotator is that of
    ``accuracy``, within the bounds of agreement with the others.

    When to use
    -----------
    Use it for classes where annotators gave few grades each, or where accuracies are known beforehand. With some dozens
    of grades each, ``dawid_skene`` also learns which classes are confused.

    Parameters
    ----------
    a0, b0
        Number of right and of wrong grades that each annotator begins with; raise both where annotators gave few
        grades. Keep :math:`a_0 > b_0`, or the levels of a poor crowd may come out permuted.
    prior
        Shares of the levels: ``"uniform"``; ``"estimated"`` along with the rest; or a number for each level, worst
        first, such as ``(0.7, 0.2, 0.1)``.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of an accuracy or share in the last pass.
    max_iter
        Most passes over the grades.
    seed
        Seed of the random draws: which of several equally probable levels an item gets.
    bins
        Cut grades into so many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    The paper does not say where accuracies come from. Learned ones stay between 0.0001 and 0.9999, given ones between
    0.000001 and 0.999999. The first pass takes vote shares for the levels. The trace has the log-likelihood with the
    priors, which never falls; passes are extrapolated.

    The right prior depends on who errs how. Where errors fall on all other levels alike, as the model has it,
    ``"estimated"`` is much better on uneven levels. Real annotators lean towards some levels, which an estimated prior
    takes for the truth: of eight public sets with gold ``"uniform"`` is better on all, and on two the estimated
    prior ends with all items on one level, of which there is a warning. Where that matters, use dawid_skene.

    Without annotators in the data all grades share one accuracy. Where no item was graded by two annotators, or all
    grades are equal, the grades are kept as they are unless accuracies were given. A level that nobody gave
    has probability 0. Below :math:`1 / K` an accuracy speaks against the level given.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 2), ("bob", "q", "x", 0), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 1), ("bob", "q", "y", 1), ("cy", "q", "y", 0)]
    >>> accuracies = {"ann": 0.9, "bob": 0.6, "cy": 0.4}
    >>> consensus = NaiveBayes().fit(Grades.from_rows(rows), accuracies=accuracies)
    >>> consensus.frame()["grade"].to_list(), consensus.probabilities.round(2).tolist()
    ([2, 1], [[0.17, 0.04, 0.78], [0.02, 0.96, 0.02]])
    """

    a0: float = 2.0
    b0: float = 1.0
    prior: str | tuple[float, ...] = "uniform"
    per_query: bool = False
    tol: float = 1e-6
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        for name in ("a0", "b0"):
            if not 0 < getattr(self, name) < np.inf:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")
        if self.max_iter < 1:
            raise ParameterError(f"max_iter={self.max_iter} must be at least 1")
        if self.prior not in ("uniform", "estimated"):
            _given_shares(self.prior)

    def fit(
        self,
        grades: Grades,
        *,
        accuracies: Any | None = None,
        known: Any | None = None,
        start: Consensus | None = None,
    ) -> Consensus:
        """Return the levels of the items and the accuracies of the annotators.

        ``accuracies`` maps annotators to the probability of being right, or is a table of annotator and accuracy; those
        not in it are learned. ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is
        a former consensus of a class method to go on from; annotators and items that are new begin with the prior.
        """
        return self._fit(grades, known, start, accuracies=accuracies)

    def _estimate(self, rows: ClassRows, offsets: Counts, begin: _Beginning) -> ClassFit:
        """The estimate of all grades; what was given is used where nothing can be learned."""
        given = np.isfinite(begin.given)
        if given.all() and rows.n_levels > 1:
            return self._fit_rows(rows, begin)
        if given.any() and rows.n_levels > 1 and not self.per_query and not is_identified(rows, "naive_bayes"):
            begin = begin._replace(given=np.where(given, begin.given, self.a0 / (self.a0 + self.b0)))
            fit = self._fit_rows(rows, begin)
        else:
            fit = super()._estimate(rows, offsets, begin)
        if rows.n_levels > 1 and (rows.overlap or given.any()):
            _warn_of_guessing(rows, self, fit)
        return fit

    def _begin_from(
        self, former: Former | None, rows: ClassRows, grades: Grades, accuracies: Any | None = None
    ) -> _Beginning:
        """What is known of annotators and shares before the first pass."""
        unknown, prior = np.full(rows.n_annotators, np.nan), np.full(rows.n_levels, np.nan)
        given = unknown
        if accuracies is not None:
            given = np.clip(given_accuracies(accuracies, grades), _MARGIN_GIVEN, 1 - _MARGIN_GIVEN)
        if former is None:
            return _Beginning(given, unknown, prior)
        accuracy = former.of_annotators("accuracy") if rows.named else unknown
        if self.prior == "estimated":
            prior = np.maximum(former.prior, _MIN_PROBABILITY)
        return _Beginning(given, np.clip(accuracy, _MARGIN_LEARNED, 1 - _MARGIN_LEARNED), prior)

    def _fit_rows(self, rows: ClassRows, begin: _Beginning) -> ClassFit:
        """E-steps and M-steps in turn until the accuracies and the shares of levels no longer change."""
        from ...kernels.confusion import confusion_pass, fill_probabilities

        n_levels, prior, packed = rows.n_levels, _fixed_shares(rows, self), rows.packed
        number = np.bincount(rows.annotator, rows.weight, rows.n_annotators).astype(np.float64)

        def m_step(counts: Floats, shares: Floats) -> Floats:
            right = np.einsum("ajj->a", counts)
            accuracy = (self.a0 + right) / (self.a0 + self.b0 + number)
            accuracy = np.clip(accuracy, _MARGIN_LEARNED, 1 - _MARGIN_LEARNED)
            accuracy = np.where(np.isfinite(begin.given), begin.given, accuracy)
            return np.append(accuracy, (shares + 1.0) / (shares.sum() + n_levels) if prior is None else prior)

        evidence = np.empty((rows.n_annotators, n_levels))

        def step(state: Floats) -> _Step:
            accuracy, shares = state[:-n_levels], state[-n_levels:] / state[-n_levels:].sum()
            expected = confusion_pass(packed, _confusion(accuracy, n_levels), shares, rows.known)
            # the last step is taken from the state that is returned
            evidence[:] = expected.counts.sum(axis=2) + (self.a0 + self.b0) / n_levels
            favour = self.a0 * np.log(accuracy).sum() + self.b0 * np.log(1.0 - accuracy).sum()
            favour += np.log(shares).sum() if prior is None else 0.0
            # the last digits depend on the order of the sums
            value = round(expected.log_likelihood + float(favour), 8)
            return _Step(value, m_step(expected.counts, expected.shares))

        first = _first_state(rows, begin, m_step)
        scale = np.sqrt(np.append(number + 1.0, np.full(n_levels, float(rows.graded.sum()))))
        lower = np.append(np.full(rows.n_annotators, _MARGIN_GIVEN), np.full(n_levels, _MIN_PROBABILITY))
        state, trace = accelerate(
            step, first, lower=lower, upper=1.0 - lower, scale=scale, tol=self.tol, max_iter=self.max_iter
        )
        if not trace.converged:
            warn_unconverged("naive_bayes", self.max_iter, trace.change, self.tol)
        accuracy, shares = state[:-n_levels], state[-n_levels:] / state[-n_levels:].sum()
        probabilities = with_known(np.zeros((rows.n_items, n_levels)), rows.known)
        confusion = _confusion(accuracy, n_levels)
        fill_probabilities(packed, confusion, shares, rows.known, probabilities)
        return ClassFit(probabilities, shares, confusion, evidence, trace)

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""
        accuracy = np.full(rows.n_annotators, self.a0 / (self.a0 + self.b0))
        evidence = np.full((rows.n_annotators, rows.n_levels), (self.a0 + self.b0) / rows.n_levels)
        return votes_as_fit(rows, _confusion(accuracy, rows.n_levels), evidence)


class _Beginning(NamedTuple):
    """What is known before the first pass, NaN where nothing is.

    ``given`` (n_annotators,) are accuracies that stay; ``accuracy`` (n_annotators,) and ``prior`` (n_levels,) former
    ones.
    """

    given: Floats
    accuracy: Floats
    prior: Floats

    def of(self, annotators: Any) -> _Beginning:
        """The same for some annotators."""
        return _Beginning(self.given[annotators], self.accuracy[annotators], self.prior)


class _Step(NamedTuple):
    """The objective at a state, and the state that follows from an E-step and an M-step."""

    value: float
    following: Floats


def _first_state(rows: ClassRows, begin: _Beginning, m_step: Any) -> Floats:
    """The state to start with: the former one, and what follows from vote shares where there is none."""
    from ...kernels.confusion import vote_pass

    votes = vote_pass(rows.packed, rows.n_annotators, rows.n_levels, rows.known)
    state: Floats = m_step(votes.counts, votes.shares)
    former = np.append(begin.accuracy, begin.prior)
    former = np.where(np.append(np.isfinite(begin.given), np.zeros(rows.n_levels, bool)), np.nan, former)
    return np.where(np.isfinite(former), former, state)


def _confusion(accuracy: Floats, n_levels: int) -> Floats:
    """Probability of each given level for each true one, (n_annotators, n_levels, n_levels)."""
    wrong = (1.0 - accuracy) / max(n_levels - 1, 1)
    confusion: Floats = np.where(np.eye(n_levels, dtype=bool), accuracy[:, None, None], wrong[:, None, None])
    return confusion


def _fixed_shares(rows: ClassRows, method: NaiveBayes) -> Floats | None:
    """Shares of the levels in use where they are fixed; ``None`` where they are estimated."""
    if method.prior == "estimated":
        return None
    if method.prior == "uniform":
        return np.full(rows.n_levels, 1.0 / rows.n_levels)
    shares, shown = _given_shares(method.prior), ", ".join(map(str, rows.scale))
    if len(shares) != len(rows.scale):
        raise ParameterError(f"prior= has {len(shares)} shares for the {len(rows.scale)} levels {shown}; give one each")
    used = np.maximum(shares[rows.used], _MIN_PROBABILITY * shares.sum())
    given: Floats = used / used.sum()
    return given


def _given_shares(prior: str | tuple[float, ...]) -> Floats:
    """The shares that a prior names, as numbers or in text with commas."""
    try:
        parts = prior.strip("()[] ").split(",") if isinstance(prior, str) else prior
        shares = np.array([float(part) for part in parts])
    except (TypeError, ValueError):
        shares = np.empty(0)
    if not len(shares) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum() > 0:
        raise ParameterError(
            f"prior={prior!r} is not known; use 'uniform', 'estimated', or a share for each level, worst first"
        )
    return shares


def _warn_of_guessing(rows: ClassRows, method: NaiveBayes, fit: ClassFit) -> None:
    """Warn of a crowd close to guessing, and of an estimated prior that has swallowed the other levels."""
    number = np.bincount(rows.annotator, rows.weight, rows.n_annotators)
    mean = float(np.average(fit.confusion[:, 0, 0], weights=number))
    said = []
    if mean < _MIN_GAIN_OVER_GUESSING + (1.0 - _MIN_GAIN_OVER_GUESSING) / rows.n_levels:
        said.append(
            f"the annotators are right {mean:.0%} of the time, close to guessing among {rows.n_levels} levels, so that "
            f"the levels may be permuted: give {option('known')} or accuracies=, or raise a0"
        )
    votes = np.bincount(rows.level, rows.weight, rows.n_levels) / number.sum()
    most = int(fit.prior.argmax())
    if method.prior == "estimated" and fit.prior[most] > _MAX_SHARE_OF_LEVEL and votes[most] < _MAX_SHARE_OF_GRADES:
        said.append(
            f"nearly all items came out as level {rows.levels[most]!r}, which {votes[most]:.0%} of the grades say; "
            "a crowd that leans to a level does this to an estimated prior: use prior='uniform', or dawid_skene"
        )
    for sentence in said:
        warnings.warn(f"naive_bayes: {sentence}", DataWarning, stacklevel=3)
