"""Levels of items when annotators now and then answer without looking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..class_models import (
    ClassFit,
    ClassRows,
    Former,
    clamped,
    class_consensus,
    class_rows,
    former_fit,
    identified,
    joined_fit,
    query_parts,
    votes_as_fit,
)
from ..data.consensus import Consensus, Trace
from ..data.judgments import Grades, expect
from ..errors import ParameterError
from ..fitting import accelerate, warn_unconverged
from ..protocols import Floats

if TYPE_CHECKING:
    from ..kernels.confusion import PackedGrades

_INFERENCES = ("variational", "em")
_PRIORS = ("uniform", "estimated")
_CLEARLY_BETTER = 1e-9
_ROUGHLY = 1e-5
"""Tolerance that is good enough to compare climbs; only the best goes on from there."""


@dataclass(frozen=True, kw_only=True)
class MACE:
    r"""Take each grade as either the item's true level or an answer given without looking at the item.

    Annotator :math:`a` does not look with probability :math:`\theta_a`, and then answers level :math:`l` with
    probability :math:`\xi_{al}` whatever the item; otherwise the answer is the true level [Hovy13]_,

    .. math:: P(l \mid k, a) = (1 - \theta_a) [l = k] + \theta_a \xi_{al},

    where :math:`k` is the item's true level. The score is the expected grade, the grade the most probable level and the
    confidence its probability. The quality of an annotator follows from this distribution; ``spam_probability`` is
    :math:`\theta_a` and ``spam_answers`` are :math:`\xi_a`.

    Parameters
    ----------
    inference
        ``"variational"``: average over what the annotators may be like, given a Beta prior of :math:`\theta` and a
        Dirichlet prior of :math:`\xi`; ``"em"``: take the likeliest annotators.
    alpha
        Both parameters of the Beta prior of :math:`\theta`; raise it to draw annotators with few grades towards one half.
    answer_alpha
        Parameter of the Dirichlet prior of :math:`\xi`; raise it to take answers without looking as more even.
    smoothing
        For ``"em"``: number of grades, split over the levels, that are added to the expected ones of each kind.
    prior
        Shares of the levels: ``"uniform"``, as published, or ``"estimated"`` along with the rest.
    n_restarts
        How many different starts to climb from; the best objective wins.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change, in the last step, of the share of an annotator's grades that are true levels.
    max_iter
        Most passes over the grades from each start.
    seed
        Start of the random draws: of restarts, and between equally probable levels.
    bins
        Cut grades into so many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Defaults are the paper's. Each pass is one expectation and one maximisation, and passes are extrapolated; the trace
    has the bound of the log evidence (``"variational"``) or the log-likelihood with its priors (``"em"``).

    The first start takes half of each annotator's grades as true levels, each further one a random share of them. The
    share is drawn for each different record: annotators with equally many grades, as often in agreement with
    others and as evenly spread over the levels, have the same. So no order of the rows and no name changes the
    result. With ``start=`` there are no restarts.

    Where no item was graded by two annotators, or all grades are equal, the grades come back as they are.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 2), ("bob", "q", "x", 2), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 1), ("bob", "q", "y", 1), ("cy", "q", "y", 0)]
    >>> rows += [("ann", "q", "z", 0), ("bob", "q", "z", 0), ("cy", "q", "z", 0)]
    >>> consensus = MACE().fit(Grades.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["spam_probability"].round(2).tolist()
    (['x', 'y', 'z'], [0.25, 0.25, 0.81])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    inference: str = "variational"
    alpha: float = 0.5
    answer_alpha: float = 10.0
    smoothing: float = 0.01
    prior: str = "uniform"
    n_restarts: int = 10
    per_query: bool = False
    tol: float = 1e-8
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("inference", _INFERENCES), ("prior", _PRIORS)):
            if getattr(self, name) not in known:
                choice = ", ".join(map(repr, known))
                raise ParameterError(f"{name}={getattr(self, name)!r} is not known; use one of {choice}")
        for name in ("alpha", "answer_alpha", "smoothing"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")
        if self.n_restarts < 1:
            raise ParameterError(f"n_restarts={self.n_restarts} must be at least 1")

    def fit(self, grades: Grades, *, known: Any | None = None, start: Consensus | None = None) -> Consensus:
        """Return the levels of the items and the habits of the annotators.

        ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is a former consensus of
        this method to go on from; annotators and items that are new begin with the prior.
        """
        expect(grades, self)
        if not len(grades):
            return Consensus.of(self, grades, np.zeros(grades.n_items))
        rows = class_rows(grades, bins=self.bins, known=known)
        former = None if start is None else former_fit(start, grades, rows)
        if not identified(rows, "mace") or rows.n_levels == 1:
            return class_consensus(self, grades, rows, _unlearned(rows, self), seed=self.seed)
        begin = None if former is None else _former_habits(former)
        if self.per_query:
            fits = [
                (part, _fitted(part.rows, self, None if begin is None else begin.of(part.annotators)))
                for part in query_parts(rows, grades.items.offsets)
            ]
            found = joined_fit(rows, fits, _unlearned(rows, self))
        else:
            found = _fitted(rows, self, begin)
        return class_consensus(self, grades, rows, found, seed=self.seed)


class _Habits(NamedTuple):
    """What annotators do: probability of spamming, (n_annotators,), the answers then, (n_annotators, n_levels)."""

    spam: Floats
    answers: Floats
    prior: Floats

    def of(self, annotators: Any) -> _Habits:
        """The habits of some annotators."""
        return _Habits(self.spam[annotators], self.answers[annotators], self.prior)


class _Model(NamedTuple):
    """Expected logarithms of the probabilities, and what the priors add to the objective."""

    log_spam: Floats
    log_know: Floats
    log_answers: Floats
    log_prior: Floats
    penalty: float


class _Pass(NamedTuple):
    """The objective at a state, the following state, and the shares of the levels."""

    value: float
    following: Floats
    shares: Floats


@dataclass(frozen=True, eq=False)
class _Problem:
    """Grades laid out for the passes. A state is each annotator's share of true levels by level, then class shares."""

    method: MACE
    grades: PackedGrades
    levels: Any
    known: Any
    counts: Floats
    totals: Floats

    def split(self, state: Floats) -> tuple[Floats, Floats | None]:
        """Expected number of true levels by annotator and level, and class shares where they are estimated."""
        n_cells = self.counts.size
        knowing = state[:n_cells].reshape(self.counts.shape) * self.totals[:, None]
        return knowing, state[n_cells:] if self.method.prior == "estimated" else None

    def step(self, state: Floats, probabilities: Floats | None = None) -> _Pass:
        """One maximisation and one expectation."""
        knowing, shares = self.split(state)
        learn = _averaged if self.method.inference == "variational" else _likeliest
        return self.advance(learn(knowing, self.counts - knowing, shares, self.method), probabilities)

    def advance(self, model: _Model, probabilities: Floats | None = None) -> _Pass:
        """One expectation: the objective of the model, and the state that follows from it."""
        from ..kernels.spamming import spam_pass

        blind = model.log_spam[:, None] + model.log_answers
        hit = np.logaddexp(blind, model.log_know[:, None])
        found = spam_pass(self.grades, self.levels, hit - blind, model.log_prior, self.known, probabilities)
        value = found.log_likelihood + float(np.einsum("al,al->", self.counts, blind)) + model.penalty
        state = (found.matched * np.exp(model.log_know[:, None] - hit) / self.totals[:, None]).ravel()
        shares = found.shares / found.shares.sum()
        if self.method.prior == "estimated":
            # one item more of each level keeps a level that nobody gave possible
            more = found.shares + 1.0
            state = np.append(state, more / more.sum())
        return _Pass(value, state, shares)


def _averaged(knowing: Floats, spamming: Floats, shares: Floats | None, method: MACE) -> _Model:
    """Posterior expectation of the logarithms; the penalty is the divergence from the priors."""
    from scipy.special import betaln, digamma, gammaln

    strength, even = method.alpha, method.answer_alpha
    spam, know = spamming.sum(axis=1) + strength, knowing.sum(axis=1) + strength
    answers = spamming + even
    both, all_answers = digamma(spam + know), answers.sum(axis=1)
    log_spam, log_know = digamma(spam) - both, digamma(know) - both
    log_answers = digamma(answers) - digamma(all_answers)[:, None]
    n_levels = answers.shape[1]
    gap = betaln(strength, strength) - betaln(spam, know) + (spam - strength) * log_spam + (know - strength) * log_know
    gap += gammaln(all_answers) - gammaln(answers).sum(axis=1) + (spamming * log_answers).sum(axis=1)
    gap += n_levels * gammaln(even) - gammaln(n_levels * even)
    log_prior, favour = _log_prior(shares, n_levels)
    return _Model(log_spam, log_know, log_answers, log_prior, favour - float(gap.sum()))


def _likeliest(knowing: Floats, spamming: Floats, shares: Floats | None, method: MACE) -> _Model:
    """Logarithms of the smoothed shares; the penalty is the log density that the smoothing stands for."""
    n_levels = knowing.shape[1]
    more = method.smoothing / n_levels
    spam, know, answers = spamming.sum(axis=1) + more, knowing.sum(axis=1) + more, spamming + more
    log_spam, log_know = np.log(spam / (spam + know)), np.log(know / (spam + know))
    log_answers = np.log(answers / answers.sum(axis=1, keepdims=True))
    log_prior, favour = _log_prior(shares, n_levels)
    penalty = more * float(log_spam.sum() + log_know.sum() + log_answers.sum())
    return _Model(log_spam, log_know, log_answers, log_prior, penalty + favour)


def _log_prior(shares: Floats | None, n_levels: int) -> tuple[Floats, float]:
    """Logarithm of the class prior, and of the density of its own prior."""
    if shares is None:
        return np.full(n_levels, -np.log(n_levels)), 0.0
    log_prior: Floats = np.log(shares / shares.sum())
    return log_prior, float(log_prior.sum())


def _fitted(rows: ClassRows, method: MACE, begin: _Habits | None) -> ClassFit:
    """The best of the climbs from all starts, or the one from a former fit."""
    problem = _laid_out(rows, method)
    upper, scale = (problem.counts / problem.totals[:, None]).ravel(), np.sqrt(problem.totals).repeat(rows.n_levels)
    lower = np.zeros(len(upper))
    if method.prior == "estimated":
        ones = np.ones(rows.n_levels)
        lower, upper = np.append(lower, 1e-12 * ones), np.append(upper, ones)
        scale = np.append(scale, np.sqrt(len(rows)) * ones)
    climb = partial(accelerate, problem.step, lower=lower, upper=upper, scale=scale, max_iter=method.max_iter)
    starts = list(_starts(problem, rows)) if begin is None else [_continued(problem, begin)]
    climbs = [climb(start, tol=max(method.tol, _ROUGHLY)) for start in starts]
    state, rough = climbs[0]
    for other, trace in climbs[1:]:
        if _objective(trace) > _objective(rough) + _CLEARLY_BETTER * abs(_objective(rough)):
            state, rough = other, trace
    state, fine = climb(state, tol=method.tol)
    if not fine.converged:
        warn_unconverged("mace", method.max_iter, fine.change, method.tol)
    assert rough.log_likelihood is not None
    assert fine.log_likelihood is not None
    values = rough.log_likelihood + fine.log_likelihood[1:]
    return _read_out(problem, rows, state, replace(fine, n_iter=rough.n_iter + fine.n_iter, log_likelihood=values))


def _objective(trace: Trace) -> float:
    """The objective at the end of a climb."""
    assert trace.log_likelihood is not None
    return trace.log_likelihood[-1]


def _laid_out(rows: ClassRows, method: MACE) -> _Problem:
    """The grades by item, and the counts that no pass changes."""
    from ..kernels.confusion import pack_grades
    from ..kernels.spamming import levels_of

    shape = rows.n_annotators, rows.n_levels
    packed = pack_grades(rows.item, rows.annotator, rows.level, rows.weight, rows.n_items, *shape)
    weight = packed.weight if len(packed.weight) else None
    counts = np.bincount(packed.code, weight, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    # those who gave no grade have a share of nothing
    totals = np.maximum(counts.sum(axis=1), 1e-300)
    return _Problem(method, packed, levels_of(packed, rows.n_levels), rows.known, counts, totals)


def _starts(problem: _Problem, rows: ClassRows) -> Iterator[Floats]:
    """States to begin with: half of the grades true, then random shares of them, equal for equal records."""
    method, n_levels = problem.method, rows.n_levels
    record = np.unique(_records(problem, rows), axis=0, return_inverse=True)[1].ravel()
    rng = np.random.default_rng(method.seed)
    share = problem.counts / problem.totals[:, None]
    classes = np.full(n_levels if method.prior == "estimated" else 0, 1.0 / n_levels)
    for number in range(method.n_restarts):
        true = np.full(len(record), 0.5) if number == 0 else rng.random(int(record.max()) + 1)[record]
        yield np.append((true[:, None] * share).ravel(), classes)


def _records(problem: _Problem, rows: ClassRows) -> Floats:
    """What is known of each annotator without any name: weight of grades, evenness, agreement with others."""
    n_annotators, n_levels = problem.counts.shape
    at = rows.item.astype(np.int64) * n_levels + rows.level
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    votes = np.bincount(at, weight, rows.n_items * n_levels)
    agreement = np.bincount(rows.annotator, weight * votes[at], n_annotators)
    record = np.stack([problem.counts.sum(axis=1), (problem.counts**2).sum(axis=1), agreement], axis=1)
    # sums of fractional weights are equal up to rounding only
    rounded: Floats = np.round(record, 6)
    return rounded


def _former_habits(former: Former) -> _Habits:
    """Habits of the annotators of a former fit, NaN where they are new."""
    return _Habits(
        former.of_annotators("spam_probability"), former.of_annotators("spam_answers", by_level=True), former.prior
    )


def _continued(problem: _Problem, habits: _Habits) -> Floats:
    """The state that follows from the habits of a former fit; new annotators half spam, with the answers they gave."""
    spam = np.clip(np.where(np.isnan(habits.spam), 0.5, habits.spam), 1e-6, 1 - 1e-6)
    own = (problem.counts + 1.0) / (problem.counts + 1.0).sum(axis=1, keepdims=True)
    answers = np.maximum(np.where(np.isnan(habits.answers), own, habits.answers), 1e-3)
    answers /= answers.sum(axis=1, keepdims=True)
    n_levels = own.shape[1]
    shares = None
    if problem.method.prior == "estimated":
        shares = np.maximum(np.where(np.isnan(habits.prior), 1 / n_levels, habits.prior), 1e-9)
    log_prior, _ = _log_prior(shares, n_levels)
    return problem.advance(_Model(np.log(spam), np.log1p(-spam), np.log(answers), log_prior, 0.0)).following


def _read_out(problem: _Problem, rows: ClassRows, state: Floats, trace: Trace) -> ClassFit:
    """Levels and habits at a state."""
    method = problem.method
    # items that nobody graded are not visited
    probabilities = clamped(np.full((rows.n_items, rows.n_levels), 1.0 / rows.n_levels), rows.known)
    found = problem.step(state, probabilities)
    knowing, _ = problem.split(state)
    more = (method.alpha, method.answer_alpha)
    if method.inference == "em":
        more = (method.smoothing / rows.n_levels,) * 2
    spamming = problem.counts - knowing
    spam = (spamming.sum(axis=1) + more[0]) / (problem.counts.sum(axis=1) + 2 * more[0])
    answers = (spamming + more[1]) / (spamming + more[1]).sum(axis=1, keepdims=True)
    evidence = np.outer(problem.counts.sum(axis=1) + 2 * more[0], found.shares)
    return ClassFit(
        probabilities, found.shares, _confusion(spam, answers), evidence, trace, _habits(spam, answers, rows)
    )  # fmt: skip


def _habits(spam: Floats, answers: Floats, rows: ClassRows) -> dict[str, Floats]:
    """The parameters that the user sees, with the answers over the whole scale."""
    wide = np.zeros((len(spam), len(rows.scale)))
    wide[:, rows.used] = answers
    return {"spam_probability": spam, "spam_answers": wide}


def _confusion(spam: Floats, answers: Floats) -> Floats:
    """Probability of each answer for each true level, (n_annotators, n_levels, n_levels)."""
    n_levels = answers.shape[1]
    looked: Floats = (1.0 - spam)[:, None, None] * np.eye(n_levels) + (spam[:, None] * answers)[:, None, :]
    return looked


def _unlearned(rows: ClassRows, method: MACE) -> ClassFit:
    """The grades as they are, by annotators as the prior has them."""
    n_annotators, n_levels = rows.n_annotators, rows.n_levels
    spam, answers = np.full(n_annotators, 0.5), np.full((n_annotators, n_levels), 1.0 / n_levels)
    evidence = np.full((n_annotators, n_levels), 2 * method.alpha / n_levels)
    votes = votes_as_fit(rows, _confusion(spam, answers), evidence)
    return replace(votes, parameters=_habits(spam, answers, rows))
