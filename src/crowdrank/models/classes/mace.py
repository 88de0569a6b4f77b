"""Levels of items when annotators now and then answer without looking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...fitting import Step, accelerate, warn_unconverged
from ...protocols import Floats
from ...wording import expect_above, expect_at_least, expect_choices
from .class_method import ClassMethod, predicts_better
from .coded_grades import ClassFit, ClassRows, Former, level_counts, log_shares, votes_as_fit, with_known

if TYPE_CHECKING:
    from .kernels.mace import SpamModel, SpamPass

_INFERENCES = ("variational", "em")
_PRIORS = ("learned", "uniform", "estimated")
_MIN_RELATIVE_GAIN = 1e-9
_ROUGH_TOL = 1e-5
"""Tolerance that is good enough to compare climbs; only the best goes on from there."""

_N_ROUGH_PASSES = 100
"""Most passes from each start before the best one alone goes on; very uneven weights make all of them slow."""


@dataclass(frozen=True, kw_only=True)
class MACE(ClassMethod):
    r"""MACE: EM or variational Bayes over annotators who spam part of the time.

    Annotator :math:`a` does not look with probability :math:`\theta_a`, and then answers level :math:`l` with
    probability :math:`\xi_{al}` whatever the item; otherwise the answer is the true level :math:`k` [Hovy13]_,

    .. math:: P(l \mid k, a) = (1 - \theta_a) [l = k] + \theta_a \xi_{al}.

    The score is the expected grade, the grade the most probable level and the confidence its probability. The quality
    of an annotator follows from it, within the bounds of agreement with the others; ``spam_probability`` is
    :math:`\theta_a`, ``spam_answers`` are :math:`\xi_a`.

    When to use
    -----------
    Use it where the main problem is annotators who click without looking, each with a habit of their own. Where careful
    annotators confuse similar classes, ``dawid_skene`` fits better.

    Parameters
    ----------
    inference
        ``"variational"``: average over what annotators may be like, given a Beta prior of :math:`\theta` and a
        Dirichlet prior of :math:`\xi`; ``"em"``: take the likeliest annotators.
    alpha
        Parameter of the Beta prior; raise it to shrink annotators with few grades towards spamming half of the time.
    answer_alpha
        Parameter of the Dirichlet prior; raise it to take answers without looking as more even.
    smoothing
        For ``"em"``: number of grades, split over the levels, that are added to those expected of each kind.
    prior
        Shares of the levels: ``"uniform"``, as published; ``"estimated"`` along with the rest; ``"learned"``: uniform
        unless estimated ones predict held-out grades better.
    n_restarts
        How many different starts to climb from; the best objective wins.
    calibrated
        Whether to temper the probabilities so that they mean what they say (see the notes); ``False`` gives the
        model's own.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of the share of an annotator's grades that are true levels, in the last pass; raise it to stop
        earlier.
    max_iter
        Largest number of passes over the grades from each start; raise it where a warning says that the fit did not
        converge.
    seed
        Seed of the random draws: of restarts, and which of several equally probable levels an item gets.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Priors and number of starts are the paper's. The trace has the bound of the log evidence (``"variational"``) or the
    log-likelihood with its priors (``"em"``), which never falls; passes are extrapolated [Varadhan08]_.

    The first start takes half of each annotator's grades as true levels, each further one a random share of them, the
    same for annotators with equally many grades, as evenly spread over the levels and as often in agreement with
    others. So neither the order of the rows nor a name changes the result. With ``start=`` there is one start.

    Where one level is much more frequent than others estimated shares are better: on a public set with 88 % of one
    level they raise the accuracy from 84 to 93 %. Without annotators in the data all grades are by one. Where no item
    was graded by two annotators, or all grades are equal, the grades are kept as they are.

    Probabilities are tempered by what held-out annotators show, as the notes of ``dawid_skene`` say.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> rows = [("ann", "q", "x", 2), ("bob", "q", "x", 2), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 1), ("bob", "q", "y", 1), ("cy", "q", "y", 0)]
    >>> rows += [("ann", "q", "z", 0), ("bob", "q", "z", 0), ("cy", "q", "z", 0)]
    >>> consensus = MACE().fit(Grades.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["spam_probability"].round(2).tolist()
    (['x', 'y', 'z'], [0.14, 0.14, 0.82])
    """

    votes_without_overlap: ClassVar[bool] = False
    starts_from: ClassVar = ("spam_answers", "spam_probability")
    inference: str = "variational"
    alpha: float = 0.5
    answer_alpha: float = 10.0
    smoothing: float = 0.01
    prior: str = "learned"
    n_restarts: int = 10
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-6
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        expect_choices(self, inference=_INFERENCES, prior=_PRIORS)
        expect_above(self, 0, "alpha", "answer_alpha", "smoothing")
        expect_at_least(self, 1, "n_restarts")

    def _fit_rows(self, rows: ClassRows, former: Former | None) -> ClassFit:
        """The fit with the shares wanted; learned ones are uniform unless estimated ones predict held-out grades best.

        Estimated ones go on from the habits found with uniform ones.
        """
        begin = None
        if former is not None and rows.has_annotators:
            answers = former.of_annotators("spam_answers", 1)
            begin = _Habits(former.of_annotators("spam_probability"), answers, former.prior)
        if self.prior != "learned":
            fit = self._fit_shares(rows, begin)
        else:
            fit, prior = replace(self, prior="uniform")._fit_shares(rows, begin), np.full(rows.n_levels, np.nan)
            spam, answers = (fit.parameters[name] for name in ("spam_probability", "spam_answers"))
            habits = _Habits(spam, answers[:, rows.used_levels], prior if begin is None else begin.prior)
            estimated = replace(self, prior="estimated")._fit_shares(rows, habits)
            better, other = rows.sample_probabilities(estimated), rows.sample_probabilities(fit)
            fit = estimated if predicts_better(rows.sample, better, other) else fit
        if not fit.trace.converged:
            warn_unconverged("mace", self.max_iter, fit.trace.change, self.tol)
        return fit

    def _fit_shares(self, rows: ClassRows, begin: _Habits | None) -> ClassFit:
        """The best of the climbs from all starts, or the one from a former fit."""
        from .kernels.mace import guessing_confusion, mean_habits

        (counts,) = rows.total(level_counts)
        # those who gave no grade have a share of nothing
        problem = _Problem(self, rows, counts, np.maximum(counts.sum(axis=1), 1e-300))
        upper, scale = (counts / problem.totals[:, None]).ravel(), np.sqrt(problem.totals).repeat(rows.n_levels)
        ones = np.ones(rows.n_levels if self.prior == "estimated" else 0)
        climb = partial(
            accelerate, problem.step, lower=np.append(0.0 * upper, 1e-12 * ones), upper=np.append(upper, ones),
            scale=np.append(scale, np.sqrt(counts.sum()) * ones),
        )  # fmt: skip
        rough_iter = min(self.max_iter, _N_ROUGH_PASSES)
        climbs = [climb(start, tol=max(self.tol, _ROUGH_TOL), max_iter=rough_iter) for start in _starts(problem, begin)]
        state, rough = climbs[_best_climb([trace for _, trace in climbs])]
        state, fine = climb(state, tol=self.tol, max_iter=self.max_iter)
        values = (rough.log_likelihood or ()) + (fine.log_likelihood or ())[1:]
        trace = replace(fine, n_iter=rough.n_iter + fine.n_iter - 1, log_likelihood=values)
        knowing, reading = problem.knowing(state), SpamReading(*problem.model(state))
        spam, answers = mean_habits(knowing, counts - knowing, *problem.more)
        return ClassFit(
            rows.read(reading), problem.step(state).shares, guessing_confusion(1.0 - spam, answers), trace,
            _parameters(spam, answers, rows), reading=reading, rereads=True,
        )  # fmt: skip

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""
        from .kernels.mace import guessing_confusion

        n_annotators, n_levels = rows.n_annotators, rows.n_levels
        spam, answers = np.full(n_annotators, 0.5), np.full((n_annotators, n_levels), 1.0 / n_levels)
        votes = votes_as_fit(rows, guessing_confusion(1.0 - spam, answers))
        return replace(votes, parameters=_parameters(spam, answers, rows))


class _Habits(NamedTuple):
    """What annotators do: probability of spamming, (n_annotators,), the answers then, and shares of the levels.

    NaN where annotators or levels are new.
    """

    spam: Floats
    answers: Floats
    prior: Floats


@dataclass(frozen=True, eq=False)
class _Problem:
    """Grades laid out for the passes. A state is each annotator's share of true levels by level, then class shares."""

    method: MACE
    rows: ClassRows
    counts: Floats
    totals: Floats

    @property
    def more(self) -> tuple[float, float]:
        """What the priors add to the counts of spamming and looking, and to those of each answer."""
        even = self.method.smoothing / self.rows.n_levels
        variational = self.method.inference == "variational"
        return (self.method.alpha, self.method.answer_alpha) if variational else (even, even)

    def knowing(self, state: Floats) -> Floats:
        """Expected number of true levels by annotator and level."""
        return state[: self.counts.size].reshape(self.counts.shape) * self.totals[:, None]

    def model(self, state: Floats) -> tuple[SpamModel, Floats]:
        """M-step: what the annotators do, and the logarithms of the shares of levels."""
        from .kernels.mace import averaged_model, likeliest_model

        knowing, shares = self.knowing(state), state[self.counts.size :]
        learn = averaged_model if self.method.inference == "variational" else likeliest_model
        return learn(knowing, self.counts - knowing, *self.more), log_shares(shares, self.rows.n_levels)

    def step(self, state: Floats) -> Step:
        """One M-step and one E-step."""
        shares, n_levels, (model, log_prior) = state[self.counts.size :], self.rows.n_levels, self.model(state)
        favour = float(log_prior.sum()) if len(shares) else 0.0
        likelihood, knowing, counts = self.rows.total(_spam_sums, model, log_prior)
        # one item more of each level keeps those possible that are never the likeliest
        more = (counts + 1.0) / (counts.sum() + n_levels)
        state = np.append(knowing / self.totals[:, None], more[: len(shares)])
        return Step(likelihood + model.penalty + favour, state, counts / counts.sum())


def _agreements(rows: ClassRows) -> tuple[Floats]:
    """How often others gave the items of each annotator the same level."""
    from .kernels.mace import agreements

    return (agreements(rows.packed_rows, rows.levels_by_row[0], rows.n_annotators, rows.n_levels),)


def _spam_sums(rows: ClassRows, model: SpamModel, log_prior: Floats, probabilities: Floats | None = None) -> SpamPass:
    """E-step: log-likelihood, expected grades that come of looking, and expected items of each level."""
    from .kernels.mace import spam_pass

    return spam_pass(rows.packed_rows, *rows.levels_by_row, model, log_prior, rows.known, probabilities)


class SpamReading(NamedTuple):
    """Levels by what annotators do."""

    model: SpamModel
    log_prior: Floats

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the probability of each level for each item; items that nobody graded are not visited."""
        probabilities = with_known(np.full((rows.n_items, rows.n_levels), 1.0 / rows.n_levels), rows.known)
        _spam_sums(rows, self.model, self.log_prior, probabilities)
        return probabilities


def _best_climb(traces: Sequence[Trace]) -> int:
    """Number of the climb that ended clearly highest, the first of equal ones."""
    ends = [trace.log_likelihood[-1] if trace.log_likelihood else -np.inf for trace in traces]
    best = 0
    for number, end in enumerate(ends):
        best = number if end > ends[best] + _MIN_RELATIVE_GAIN * abs(ends[best]) else best
    return best


def _starts(problem: _Problem, begin: _Habits | None) -> Iterator[Floats]:
    """The state to go on from; or half of the grades true, then random shares of them, equal for equal records."""
    from .kernels.mace import record_numbers

    if begin is not None:
        yield _state_of(problem, begin)
        return
    method, n_levels = problem.method, problem.rows.n_levels
    record = record_numbers(problem.counts, problem.rows.total(_agreements)[0])
    rng = np.random.default_rng(method.seed)
    share = problem.counts / problem.totals[:, None]
    classes = np.full(n_levels if method.prior == "estimated" else 0, 1.0 / n_levels)
    for number in range(method.n_restarts):
        true = np.full(len(record), 0.5) if number == 0 else rng.random(int(record.max()) + 1)[record]
        yield np.append((true[:, None] * share).ravel(), classes)


def _state_of(problem: _Problem, habits: _Habits) -> Floats:
    """The state that the habits of a former fit stand for; of the grades of new annotators half are true."""
    n_levels, (more, even) = problem.rows.n_levels, problem.more
    spam = np.where(np.isnan(habits.spam), 0.5, habits.spam)
    own = (problem.counts + 1.0) / (problem.counts + 1.0).sum(axis=1, keepdims=True)
    answers = np.where(np.isnan(habits.answers), own, habits.answers)
    # the means of a fit, solved for the counts they come from
    blind = spam * (problem.counts.sum(axis=1) + 2 * more) - more
    spamming = np.clip(answers * (blind + n_levels * even)[:, None] - even, 0.0, problem.counts)
    shares = np.maximum(np.where(np.isnan(habits.prior), 1.0 / n_levels, habits.prior), 1e-9)
    known = (problem.counts - spamming) / problem.totals[:, None]
    return np.append(known, shares if problem.method.prior == "estimated" else shares[:0])


def _parameters(spam: Floats, answers: Floats, rows: ClassRows) -> dict[str, Floats]:
    """The parameters that the user sees, with the answers over the whole scale."""
    wide = np.zeros((len(spam), len(rows.scale)))
    wide[:, rows.used_levels] = answers
    return {"spam_probability": spam, "spam_answers": wide}
