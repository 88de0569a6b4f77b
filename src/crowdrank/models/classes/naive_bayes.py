"""Levels of items when each annotator is right with a probability of their own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades
from ...data.truth import given_accuracies
from ...errors import DataWarning, ParameterError
from ...fitting import Step, accelerate, warn_unconverged
from ...protocols import Counts, Floats
from ...wording import expect_above, expect_at_least, one_of, option
from .class_method import ClassMethod, held_out_loss, is_identified, predicts_better
from .coded_grades import ClassFit, ClassRows, Former, MatrixReading, level_counts, votes_as_fit

_MARGIN_LEARNED, _MARGIN_GIVEN = 1e-4, 1e-6
"""Least distance of an accuracy from 0 and 1, so that two who are sure and disagree do not rule out every level."""

_ERRORS = ("learned", "even", "own")
_N_ERRORS = 2.0
"""Standard errors by which own errors must predict held-out grades better than even ones."""

_STRENGTHS = (0.0, 0.1, 1.0)
"""What even shares are worth against those of the items, from nothing to as much; the fourth is even shares alone."""

_KNOWN_AT_FIRST = np.full(1, 0.5)
"""Share of right grades that come of knowing, before the first pass."""

_MIN_PROBABILITY = 1e-9
_MIN_GAIN_OVER_GUESSING = 0.1
_MAX_SHARE_OF_LEVEL, _MAX_SHARE_OF_ITEMS, _MAX_SHARE_OF_GRADES = 0.99, 0.95, 0.9


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(ClassMethod):
    r"""Naive Bayes (one-coin Dawid-Skene): EM over one accuracy per annotator.

    Annotator :math:`a` gives the true level with probability :math:`p_a` and each of the other :math:`K - 1` levels
    equally often, and items are of level :math:`j` with probability :math:`\rho_j`, so that [KumarLease11]_

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
        Shares of the levels: ``"uniform"``; ``"estimated"`` along with the rest; ``"learned"``: estimated and shrunk
        towards even ones as strongly as predicts held-out grades best; or a number for each level, worst
        first, such as ``(0.7, 0.2, 0.1)``.
    errors
        Where wrong grades fall: ``"even"``, on the other levels equally often; ``"own"``, drawn from the annotator's
        overall answers; ``"learned"``: even ones unless own ones predict held-out grades clearly better.
    calibrated
        Whether to temper the probabilities so that they mean what they say (see the notes); ``False`` gives the
        model's own.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of an accuracy or share in the last pass; raise it to stop earlier.
    max_iter
        Largest number of passes over the grades; raise it where a warning says that the fit did not converge.
    seed
        Seed of the random draws: which of several equally probable levels an item gets.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    The paper does not say where accuracies come from. Learned ones stay between 0.0001 and 0.9999, given ones between
    0.000001 and 0.999999. The first pass takes vote shares for the levels. The trace has the log-likelihood with the
    priors, which never falls; passes are extrapolated.

    The right prior depends on who errs how. Where errors fall on all other levels equally often, as the model assumes,
    ``"estimated"`` is much better on uneven levels. Real annotators lean towards some levels, which an estimated prior
    takes for the truth; in the end all items may be of one level, and a warning says so. So ``"learned"`` fits four
    strengths of a Dirichlet prior, from one item of each level to even shares alone, leaves out those where one level
    takes nearly all items, and keeps the one by which held-out grades are likeliest. Where all accuracies are given it
    is ``"uniform"``.

    Even errors take those who give one level to most items for able, and their level for that of most items, whatever
    the shares: on two public sets of a crowd that leans to "relevant" they end 7 and 9 points below the majority. With
    ``"own"`` annotator :math:`a` knows the level with probability :math:`p_a` and otherwise answers :math:`l` as often
    as overall, :math:`P(l \mid j) = p_a [l = j] + (1 - p_a) g_{al}`. Given accuracies have even errors.

    Probabilities are tempered by what held-out annotators show, as the notes of ``dawid_skene`` say. Given accuracies
    are not doubted.

    Without annotators in the data all grades share one accuracy. Where no item was graded by two annotators, or all
    grades are equal, the grades are kept as they are unless accuracies were given. A level that nobody gave
    has probability 0. An accuracy below :math:`1 / K` counts against the level given.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 2), ("bob", "q", "x", 0), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 1), ("bob", "q", "y", 1), ("cy", "q", "y", 0)]
    >>> accuracies = {"ann": 0.9, "bob": 0.6, "cy": 0.4}
    >>> consensus = NaiveBayes().fit(Grades.from_rows(rows), accuracies=accuracies)
    >>> consensus.frame()["grade"].to_list(), consensus.probabilities.round(2).tolist()
    ([2, 1], [[0.17, 0.04, 0.78], [0.02, 0.96, 0.02]])
    """

    starts_from: ClassVar = ("accuracy",)
    a0: float = 2.0
    b0: float = 1.0
    prior: str | tuple[float, ...] = "learned"
    errors: str = "learned"
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-6
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        expect_above(self, 0, "a0", "b0")
        expect_at_least(self, 1, "max_iter")
        one_of(self.errors, _ERRORS, "errors")
        if self.prior not in ("learned", "uniform", "estimated"):
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
        super()._begin_from(former, rows, grades)
        unknown, prior = np.full(rows.n_annotators, np.nan), np.full(rows.n_levels, np.nan)
        given = unknown
        if accuracies is not None:
            given = np.clip(given_accuracies(accuracies, grades), _MARGIN_GIVEN, 1 - _MARGIN_GIVEN)
        if former is None:
            return _Beginning(given, unknown, prior)
        if self.prior in ("learned", "estimated"):
            prior = np.maximum(former.prior, _MIN_PROBABILITY)
        accuracy = np.clip(former.of_annotators("accuracy"), _MARGIN_LEARNED, 1 - _MARGIN_LEARNED)
        return _Beginning(given, accuracy, prior)

    def _fit_rows(self, rows: ClassRows, begin: _Beginning) -> ClassFit:
        """The fit, by the errors and the strength of even shares that predict held-out grades best where learned."""
        given = np.isfinite(begin.given)
        if given.any() and self.errors == "own":
            raise ParameterError("accuracies= have even errors; leave errors='own' out, or the accuracies")
        from ...kernels.threads import in_order

        guesses, sample = None if given.any() or self.errors == "even" else _guesses(rows), rows.sample
        strength = 0.0 if self.prior == "estimated" else None
        if guesses is not None and self.errors == "learned":
            either, better = (guesses, None), False
            if sample.n_items:
                own, even = in_order(lambda one: self._fit_shares(sample, begin, either[one], strength), range(2))
                better = predicts_better(sample, own.probabilities, even.probabilities, n_errors=_N_ERRORS)
            guesses = guesses if better else None
        if self.prior == "learned" and not given.all():
            strength = self._strength(sample, begin, guesses) if sample.n_items else _STRENGTHS[0]
        fit = self._fit_shares(rows, begin, guesses, strength)
        if not fit.trace.converged:
            warn_unconverged("naive_bayes", self.max_iter, fit.trace.change, self.tol)
        return replace(fit, is_given=bool(given.any()))

    def _strength(self, sample: ClassRows, begin: _Beginning, guesses: Floats | None) -> float | None:
        """What even shares are worth by which grades of the sample are predicted best; ``None`` for even ones alone."""
        from ...kernels.threads import in_order

        strengths = (*_STRENGTHS, None)

        def loss(number: int) -> float:
            fit = self._fit_shares(sample, begin, guesses, strengths[number])
            # a level that takes nearly all items predicts what annotators answer overall, and nothing of items
            if _takes_nearly_all(sample, fit, _MAX_SHARE_OF_ITEMS):
                return np.inf
            return held_out_loss(sample, fit.probabilities)

        losses = list(in_order(loss, range(len(strengths))))
        best = int(np.argmin(losses))
        return strengths[best] if losses[best] < np.inf else None

    def _fit_shares(
        self, rows: ClassRows, begin: _Beginning, guesses: Floats | None, strength: float | None
    ) -> ClassFit:
        """E-steps and M-steps in turn until accuracies and shares no longer change.

        Where shares are estimated, even ones are worth ``strength`` times the items, at least one of each level;
        ``None`` where they are fixed.
        """
        n_levels, fixed, number = rows.n_levels, _fixed_shares(rows, self), rows.annotator_weights
        more = None if strength is None else max(1.0, strength * rows.n_graded / n_levels)

        def m_step(counts: Floats, shares: Floats, before: Floats | None = None) -> Floats:
            right = np.einsum("ajj->aj", counts)
            if guesses is not None:
                # of right grades some are luck
                known = (_KNOWN_AT_FIRST if before is None else before)[:, None] * np.ones(n_levels)
                right = right * known / (known + (1.0 - known) * guesses)
            accuracy = (self.a0 + right.sum(axis=1)) / (self.a0 + self.b0 + number)
            accuracy = np.clip(accuracy, _MARGIN_LEARNED, 1 - _MARGIN_LEARNED)
            accuracy = np.where(np.isfinite(begin.given), begin.given, accuracy)
            return np.append(accuracy, fixed if more is None else (shares + more) / (shares.sum() + n_levels * more))

        def step(state: Floats) -> Step:
            accuracy, shares = state[:-n_levels], state[-n_levels:] / state[-n_levels:].sum()
            expected = rows.expected_counts(_confusion(accuracy, n_levels, guesses), shares)
            favour = self.a0 * np.log(accuracy).sum() + self.b0 * np.log(1.0 - accuracy).sum()
            favour += more * np.log(shares).sum() if more is not None else 0.0
            # the last digits depend on the order of the sums
            value = round(expected.log_likelihood + float(favour), 8)
            return Step(value, m_step(expected.counts, expected.shares, accuracy))

        # the former state, and what follows from vote shares where there is none
        votes, former = rows.votes(), begin.with_errors(guesses)
        first = np.append(np.where(np.isfinite(begin.given), np.nan, former.accuracy), former.prior)
        first = np.where(np.isfinite(first), first, m_step(votes.counts, votes.shares))
        scale = np.sqrt(np.append(number + 1.0, np.full(n_levels, rows.n_graded)))
        lower = np.append(np.full(rows.n_annotators, _MARGIN_GIVEN), np.full(n_levels, _MIN_PROBABILITY))
        state, trace = accelerate(
            step, first, lower=lower, upper=1.0 - lower, scale=scale, tol=self.tol, max_iter=self.max_iter
        )
        accuracy, shares = state[:-n_levels], state[-n_levels:] / state[-n_levels:].sum()
        reading = MatrixReading(_confusion(accuracy, n_levels, guesses), shares)
        return ClassFit(rows.read(reading), shares, reading.confusion, trace, reading=reading, rereads=True)

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""
        accuracy = np.full(rows.n_annotators, self.a0 / (self.a0 + self.b0))
        return votes_as_fit(rows, _confusion(accuracy, rows.n_levels))


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

    def with_errors(self, guesses: Floats | None) -> _Beginning:
        """The same with former accuracies as probabilities of knowing the level, where luck counts."""
        if guesses is None:
            return self
        even = np.full(len(self.prior), 1.0 / len(self.prior))
        luck = guesses @ np.where(np.isfinite(self.prior), self.prior, even)
        knowing = np.clip((self.accuracy - luck) / (1.0 - luck), _MARGIN_LEARNED, 1 - _MARGIN_LEARNED)
        return self._replace(accuracy=knowing)


def _guesses(rows: ClassRows) -> Floats:
    """What annotators answer overall, (n_annotators, n_levels)."""
    (given,) = rows.total(level_counts)
    return (given + 1.0) / (given + 1.0).sum(axis=1, keepdims=True)


def _confusion(accuracy: Floats, n_levels: int, guesses: Floats | None = None) -> Floats:
    """Probability of each given level for each true one, (n_annotators, n_levels, n_levels)."""
    if guesses is not None:
        from .kernels.mace import guessing_confusion

        return guessing_confusion(accuracy, guesses)
    wrong = (1.0 - accuracy) / max(n_levels - 1, 1)
    return np.where(np.eye(n_levels, dtype=bool), accuracy[:, None, None], wrong[:, None, None])


def _fixed_shares(rows: ClassRows, method: NaiveBayes) -> Floats:
    """Shares of the levels in use where they are fixed: those given, or even ones."""
    if method.prior in ("uniform", "learned", "estimated"):
        return np.full(rows.n_levels, 1.0 / rows.n_levels)
    shares, shown = _given_shares(method.prior), ", ".join(map(str, rows.scale))
    if len(shares) != len(rows.scale):
        raise ParameterError(f"prior= has {len(shares)} shares for the {len(rows.scale)} levels {shown}; give one each")
    used = np.maximum(shares[rows.used_levels], _MIN_PROBABILITY * shares.sum())
    return used / used.sum()


def _given_shares(prior: str | tuple[float, ...]) -> Floats:
    """The shares that a prior names, as numbers or in text with commas."""
    try:
        parts = prior.strip("()[] ").split(",") if isinstance(prior, str) else prior
        shares = np.array([float(part) for part in parts])
    except (TypeError, ValueError):
        shares = np.empty(0)
    if not len(shares) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum() > 0:
        raise ParameterError(
            f"prior={prior!r} is not known; use 'learned', 'uniform', 'estimated', or shares of the levels, worst first"
        )
    return shares


def _takes_nearly_all(rows: ClassRows, fit: ClassFit, limit: float) -> bool:
    """Whether a larger share of the items than this came out as one level although many grades say otherwise."""
    votes, items = rows.level_weights, rows.mean_probabilities(fit)
    most = int(items.argmax())
    return bool(items[most] > limit and votes[most] < _MAX_SHARE_OF_GRADES * votes.sum())


def _warn_of_guessing(rows: ClassRows, method: NaiveBayes, fit: ClassFit) -> None:
    """Warn of a crowd close to guessing, and of an estimated prior that gives nearly all items one level."""
    number = rows.annotator_weights
    mean = float(np.average(np.einsum("ajj,j->a", fit.confusion, fit.prior), weights=number))
    said = []
    if mean < _MIN_GAIN_OVER_GUESSING + (1.0 - _MIN_GAIN_OVER_GUESSING) / rows.n_levels:
        said.append(
            f"the annotators are right {mean:.0%} of the time, close to guessing among {rows.n_levels} levels, so that "
            f"the levels may be permuted: give {option('known')} or accuracies=, or raise a0"
        )
    votes, most = rows.level_weights / number.sum(), int(fit.prior.argmax())
    if method.prior == "estimated" and _takes_nearly_all(rows, fit, _MAX_SHARE_OF_LEVEL):
        said.append(
            f"nearly all items came out as level {rows.levels[most]!r}, which {votes[most]:.0%} of the grades say; "
            "this happens with an estimated prior where annotators lean to a level: use prior='uniform', or dawid_skene"
        )
    for sentence in said:
        warnings.warn(f"naive_bayes: {sentence}", DataWarning, stacklevel=3)
