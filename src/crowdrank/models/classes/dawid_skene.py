"""Levels of items when each annotator mixes up levels in a way of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.judgments import Grades
from ...drift import DRIFTS, Walk, fit_with_drift
from ...errors import JudgmentError, ParameterError
from ...fitting import Step, accelerate, warn_unconverged
from ...protocols import BlockFit, Bools, Floats
from ...wording import expect_above, expect_at_least, one_of, option
from .class_method import ClassMethod, class_consensus
from .coded_grades import ClassFit, ClassRows, Former, MatrixReading, vote_anchor, votes_as_fit

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies


_PRIORS = ("own", "crowd", "none")


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
    Use it to choose one class or grade per item where annotators confuse classes in ways of their own; with few grades
    each it comes close to ``naive_bayes`` by itself. With three or more ordered levels set ``ordinal=True``.

    Parameters
    ----------
    prior
        What matrices are shrunk towards: ``"own"``, each annotator's own accuracy and the crowd's errors, by weights
        that are learned; ``"crowd"``, the crowd's matrix by ``alpha``; ``"none"``, as published.
    alpha
        With ``prior="crowd"``: number of grades for each level that the crowd's own habits count for in each
        annotator's matrix; raise it where annotators gave few grades.
    ordinal
        Whether a miss by one level is likelier than one by three: the rows of a matrix are tied by

        .. math:: \pi_{ajl} \propto \exp\left(b_{al} + \delta_a [l = j] - \tfrac{1}{2} \beta_a (l - j)^2\right),

        where :math:`b` is the liking of the annotator for a level, :math:`\delta` (``exactness``) the gain of the true
        one and :math:`\beta` (``closeness``) the loss with distance: agreement and linear-by-linear association
        [Agresti88]_. With five levels that is 6 numbers per annotator instead of 20. Their prior is learned by free
        matrices: a shift by one level is nearly the same as a liking for higher ones, and rows and prior that are both
        tied have no hold.
    calibrated
        Whether to temper the probabilities so that they mean what they say (see the notes); ``False`` gives the
        model's own.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of a probability in the last pass; with ``ordinal``, of a number in the formula; raise it to stop
        earlier.
    max_iter
        Largest number of passes over the grades; raise it where a warning says that the fit did not converge.
    seed
        Seed of the random draws: which of several equally probable levels an item gets.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.
    drift
        Whether the matrices of annotators may change with time, over ``"halves"`` of their grades or ``"smooth"`` over
        windows of about twenty or more. Windows lend each other grades as a random walk does, whose variance is the one
        under which held-out grades are likeliest; there is none where they gain too little by it.

    Notes
    -----
    The published estimate takes an annotator who was right twice for infallible. With ``prior="own"`` row :math:`j` of
    annotator :math:`a` has a Dirichlet prior, worth :math:`s` grades, around

    .. math:: \Bigl( p_{aj} \text{ for } j, \; (1 - p_{aj}) e_{jl} \text{ for } l \ne j \Bigr), \qquad
              \operatorname{logit} p_{aj} = \operatorname{logit} p_a + f_j,

    where :math:`p_a` is the annotator's own accuracy, itself shrunk towards the mean accuracy by a Beta prior worth
    :math:`c` grades, :math:`f_j` how much easier level :math:`j` is than others and :math:`e_{jl}` the crowd's wrong
    grades for it. The shares of the levels have a Dirichlet prior around even ones. All of these are those of largest
    marginal (Dirichlet-multinomial) likelihood of the expected numbers of grades, in rounds between passes; the weights
    have log-normal hyper-priors around 20, 4 and the number of levels. No level is likelier to be given for another
    level than for itself in these. So an annotator with three grades has a matrix near the crowd's, shifted by their
    own hits and misses, and one with hundreds has a matrix of their own. Where items have one or two grades, shares of
    levels cannot be separated from habits of annotators and one level would take nearly all items; so the shares begin
    with the votes, as if there were :math:`n / p^2` more of the :math:`n` items, :math:`p` being the pairs of grades
    that an item has on average. That form was chosen on subsamples of public sets, after :math:`n / p`; over 30
    simulated crowds, of which some lean to a level, weights of a third to none of it were no better.

    With ``prior="crowd"`` each annotator begins with ``alpha`` grades for each level, distributed over true and given
    levels as the crowd's grades are over the vote shares of items with two annotators or more; two right and one wrong
    grade of each level are added to the crowd's. The shares of the levels begin with one item each. The trace has the
    log-likelihood with the last prior, which never falls; passes are extrapolated.

    Probabilities are tempered (``calibrated``), since a model with more parameters than the grades can bear is sure of
    noise, and since grades of one item depend on each other beyond its level: items differ in difficulty, and
    annotators share mistakes. Three nested models say what the levels are: the grades say nothing (all levels are
    equally probable); each annotator knows the level with a probability of their own and otherwise answers as all do
    overall; each has a matrix. They are fitted without some of the annotators, one by one or a fifth at a time, and
    weighed by how likely they make the grades of these, which none of them has seen; each step up begins with half the
    weight, and matrices get at most half, as predicting grades does not prove levels. Two numbers say how grades of an
    item depend on each other, and both are averaged over what held-out grades say of them (exponential priors of mean
    0.2). By the first, :math:`r`, the :math:`n` annotators of an item count as :math:`n / (1 + (n - 1) r)` independent
    ones. By the second, :math:`q`, an item draws the answers that it was given: with chance
    :math:`n q / (1 - q + n q)` the next answer is one of those, as from an urn, and otherwise follows from the level.
    The answers for an item then vary around those for its level as a Dirichlet distribution with :math:`1 / q - 1`
    grades does, from which follows on what share of items even many annotators would settle on a wrong level; that
    share is divided equally among all levels. With
    times, a grade is predicted from those that are not later: where more is asked about items on which the first
    annotators differ, an early grade differs from later ones by that choice alone. The probabilities of a fit, of this
    model and of every other class method, are then tempered by the correlation and the share given away to all levels
    alike that bring them closest to what the three models say together. The order of an item's levels stays. All this
    is in ``estimates["calibration"]`` of the consensus (``correlation``, ``shared_error``, ``no_information``,
    ``tempering``, ``given_away``). Of many grades a part of the items is looked at, drawn by their ids. Mistakes that
    most annotators share cannot be seen in the grades; known items can show them.

    Without annotators in the data all grades share one matrix. Where no item was graded by two annotators, or all
    grades are equal, the grades are kept as they are; each is then said to be right in two of three cases, as nothing
    shows better. A level that nobody gave has probability 0.

    Examples
    --------
    >>> truth = dict(zip("uvwxyz", [2, 2, 1, 1, 0, 0]))
    >>> rows = [(who, "q", item, grade) for who in ("ann", "bob", "cy") for item, grade in truth.items()]
    >>> rows += [("dan", "q", item, 2 - grade) for item, grade in truth.items()]
    >>> consensus = DawidSkene().fit(Grades.from_rows(rows))
    >>> consensus.frame()["grade"].to_list(), consensus.quality.quality.round(2).tolist()
    ([2, 2, 1, 1, 0, 0], [0.96, 0.96, 0.96, 0.08])
    """

    starts_from: ClassVar = ("confusion",)
    prior: str = "own"
    alpha: float = 2.5
    ordinal: bool = False
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None
    drift: str = "none"

    def __post_init__(self) -> None:
        one_of(self.prior, _PRIORS, "prior")
        one_of(self.drift, DRIFTS, "drift")
        expect_above(self, 0, "alpha", hint="use a small one such as 0.01 for nearly none")
        expect_at_least(self, 1, "max_iter")

    def fit(self, grades: Grades, *, known: Any | None = None, start: Consensus | None = None) -> Consensus:
        """Return the levels of the items and the confusion matrices of the annotators.

        ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is a former consensus of
        a class method to go on from; new annotators and items begin with the prior.
        """
        if self.ordinal and isinstance(grades, Grades) and grades.nominal:
            raise JudgmentError(
                f"ordinal=True needs an order and nominal grades have none; leave it out, or give {option('levels')}"
            )
        if self.drift == "none" or not isinstance(grades, Grades) or not len(grades):
            return self._fit(grades, known, start)
        if self.per_query:
            raise ParameterError(f"{option('drift', self.drift)} goes without per_query; leave one out")
        plain = replace(self, drift="none")

        def likelihood(judged: Grades, out: Bools, walk: Walk | None) -> float:
            rows = replace(ClassRows.of(judged, bins=self.bins, known=known), walk=walk)
            part = rows.of_rows(~out)
            if rows.n_levels == 1 or not part.overlap:
                return 0.0
            fit = plain._fit_rows(part, None)
            seen = out & part.is_graded[rows.item]
            given = fit.confusion[rows.annotator[seen], :, rows.level[seen]]
            chance = (fit.probabilities[rows.item[seen]] * given).sum(axis=1)
            return float(np.average(np.log(chance), weights=None if rows.weight is None else rows.weight[seen])
                         * seen.sum())  # fmt: skip

        def fit(judged: Grades, walk: Walk) -> tuple[Consensus, Floats]:
            rows = replace(ClassRows.of(judged, bins=self.bins, known=known), walk=walk)
            found = plain._fit_rows(rows, None)
            right = np.einsum("ajj,j->a", found.confusion, found.prior)
            return class_consensus(self, judged, rows, found, again=plain.fit), right

        return fit_with_drift(self, grades, plain.fit(grades, known=known, start=start), likelihood, fit)

    def over_blocks(self, judged: Any, **given: Any) -> BlockFit:
        """Return the passes of a fit to grades in parts."""
        if self.drift != "none":
            raise ParameterError("drift is learned from all judgments at once; leave it out for packed ones")
        return super().over_blocks(judged, **given)

    def _fit_rows(self, rows: ClassRows, begin: Former | None) -> ClassFit:
        """The fit: rounds that learn the prior, then E-steps and M-steps in turn until nothing changes.

        The prior is learned by a sample first, where there is one; all rows then need but a pass a round.
        """
        sample = rows.first_sample() if begin is None and rows.walk is None and self.prior == "own" else None
        crowd = crowd_shares(rows if sample is None else sample)
        form, first = self._form(rows), first_estimate(crowd, begin, rows.n_annotators)
        # the prior is learned by free matrices: tied rows can be shifted by a level at little loss, and it with them
        free, tol, max_iter = FreeMatrices(rows.n_annotators, rows.n_levels), self.tol, self.max_iter
        state = free.likeliest_state(first.confusion, first.prior, None)
        n_iter, n_passes = 0, _N_PASSES_A_ROUND
        prior: Prior
        if self.prior == "own":
            own = OwnPrior.begin(crowd, rows.n_annotators, vote_anchor(rows))
            if begin is not None:
                # annotators whose matrices are known: their weight can be learned at once
                own = replace(own, n_rounds=_N_ROUNDS_BEFORE_OWN_WEIGHT).learn(_e_step(rows, free.estimate(state)))
            if sample is not None:
                of_sample = replace(own, anchor=vote_anchor(sample))
                learned, state, _ = _learn_prior(sample, free, of_sample, state, n_passes, tol=tol, max_iter=max_iter)
                own, n_passes = replace(learned, anchor=own.anchor, is_settled=False), 1
            own, state, n_iter = _learn_prior(rows, free, own, state, n_passes, tol=tol, max_iter=max_iter)
            prior = own
        elif self.prior == "crowd":
            # the crowd's habits as so many grades of each level, and one item of each
            prior = FixedPrior(crowd[None] * (self.alpha * rows.n_levels), np.ones(rows.n_levels))
        else:
            # next to nothing only says what a row without grades looks like
            prior = FixedPrior(crowd[None] * (_NEARLY_NONE * rows.n_levels), np.full(rows.n_levels, _NEARLY_NONE))
        if not isinstance(form, FreeMatrices):
            state = _m_step(_e_step(rows, free.estimate(state)), prior, form, None)
        if rows.walk is None:
            state, trace = _climb(rows, form, prior, state, tol=tol, max_iter=max_iter - n_iter)
        else:
            # no likelihood rises where windows lend each other grades
            state, _, trace = _walk(rows, form, prior, state, tol=tol, max_iter=max_iter - n_iter)
        best, trace = form.estimate(state), replace(trace, n_iter=n_iter + trace.n_iter)
        if not trace.converged:
            warn_unconverged("dawid_skene", max_iter, trace.change, tol)
        reading = MatrixReading(best.confusion, best.prior)
        return ClassFit(
            rows.read(reading), best.prior, best.confusion, trace, form.parameters(state), reading=reading, rereads=True
        )

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the crowd has them."""
        crowd, form = crowd_shares(rows), self._form(rows)
        first = first_estimate(crowd, None, rows.n_annotators)
        state = form.likeliest_state(first.confusion, first.prior, None)
        return replace(votes_as_fit(rows, first.confusion), parameters=form.parameters(state))

    def _form(self, rows: ClassRows) -> Form:
        """What the confusion matrices may look like."""
        return (OrdinalMatrices if self.ordinal else FreeMatrices)(rows.n_annotators, rows.n_levels)


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

_MAX_LOG_CHANGE = 0.02


def _learn_prior(
    rows: ClassRows, free: FreeMatrices, prior: OwnPrior, state: Floats, most: int, *, tol: float, max_iter: int
) -> tuple[OwnPrior, Floats, int]:
    """The prior after rounds of at most so many passes in which it and the matrices are learned, state and passes."""
    n_iter = 0
    for _ in range(_MOST_ROUNDS):
        n_passes = min(most, max_iter - n_iter - 1)
        if prior.is_settled or n_passes < 1:
            break
        following, expected, trace = _walk(rows, free, prior, state, tol=max(tol, _ROUGH_TOL), max_iter=n_passes)
        moved = float(np.abs(following - state).max())
        state, prior, n_iter = following, prior.learn(expected), n_iter + trace.n_iter
        if moved < _STILL and prior.n_rounds > _N_ROUNDS_BEFORE_OWN_WEIGHT + 1:
            break
    return prior, state, n_iter


class Estimate(NamedTuple):
    """Confusion matrices, (n_annotators, n_levels, n_levels), true level first, and shares of levels, (n_levels,)."""

    confusion: Floats
    prior: Floats


def _walk(
    rows: ClassRows, form: Form, prior: Prior, state: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, Tallies, Trace]:
    """Where E-steps and M-steps end with a given prior, the expected numbers there, and how it went.

    They go without leaps: far from the end these may land elsewhere.
    """
    n_iter, change = 0, np.inf
    while n_iter == 0 or (change > tol and n_iter < max_iter):
        expected = _e_step(rows, form.estimate(state))
        following = _m_step(expected, prior, form, state)
        change, state, n_iter = float(np.abs(following - state).max()), following, n_iter + 1
    return state, expected, Trace(n_iter, change <= tol, change)


def _climb(
    rows: ClassRows, form: Form, prior: Prior, state: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, Trace]:
    """E-steps and M-steps in turn with a given prior, leaping ahead."""

    def step(state: Floats) -> Step:
        here = form.estimate(state)
        expected = _e_step(rows, here)
        favour = float((prior.counts * np.log(here.confusion)).sum() + (prior.shares * np.log(here.prior)).sum())
        # the last digits depend on the order of the sums
        value = round(expected.log_likelihood + favour, 8)
        return Step(value, _m_step(expected, prior, form, state))

    # the number of grades or items that each entry of a state rests on
    number = np.append(np.repeat(rows.annotator_weights + 1.0, form.n_numbers), np.full(rows.n_levels, rows.n_graded))
    return accelerate(
        step, state, lower=form.lower, upper=form.upper, scale=np.sqrt(number), tol=tol, max_iter=max_iter
    )


def _e_step(rows: ClassRows, here: Estimate) -> Tallies:
    """E-step: expected number of grades by annotator, true and given level, and of items of each level."""
    expected = rows.expected_counts(here.confusion, here.prior)
    if rows.walk is None:
        return expected
    return expected._replace(counts=rows.walk.carry(expected.counts, expected.counts.sum(axis=2, keepdims=True)))


def _m_step(expected: Tallies, prior: Prior, form: Form, state: Floats | None) -> Floats:
    """M-step: the state that makes the expected numbers, with those of the prior, likeliest."""
    return form.likeliest_state(expected.counts + prior.counts, expected.shares + prior.shares, state)


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


def first_estimate(crowd: Floats, begin: Former | None, n_annotators: int) -> Estimate:
    """The estimate to start with: the former one, and the crowd's where there is none."""
    level = crowd.sum(axis=1)
    centre, prior = crowd / level[:, None], level / level.sum()
    if begin is None:
        return Estimate(np.broadcast_to(centre, (n_annotators, *centre.shape)), prior)
    former = begin.of_annotators("confusion", 2)
    confusion = np.where(np.isnan(former), centre, former)
    empty = confusion.sum(axis=2, keepdims=True) <= 0.0
    confusion = np.maximum(np.where(empty, centre, confusion), _MIN_PROBABILITY)
    return Estimate(confusion, np.maximum(np.where(np.isnan(begin.prior), prior, begin.prior), _MIN_PROBABILITY))


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
    return confusion * level / level.sum()


@dataclass(frozen=True, eq=False)
class FixedPrior:
    """The same grades added for everybody, and the same number of items of each level."""

    counts: Floats
    shares: Floats


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

    def learn(self, expected: Tallies) -> OwnPrior:
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
        row_weight = likeliest_weight(
            expected.counts, learned.centre, _ROW_WEIGHT, _SPREAD_OF_LOG_WEIGHT, self.row_weight
        )
        own_weight = self.own_weight
        if self.n_rounds >= _N_ROUNDS_BEFORE_OWN_WEIGHT:
            share = (swept.right.sum() + _N_RIGHT_ADDED) / (swept.total.sum() + _N_RIGHT_ADDED + _N_WRONG_ADDED)
            pairs = np.stack([swept.right, swept.total - swept.right], axis=1)
            even = np.broadcast_to([share, 1 - share], pairs.shape)
            own_weight = likeliest_weight(pairs, even, _OWN_WEIGHT, _SPREAD_OF_LOG_WEIGHT, self.own_weight)
        even = np.full((1, len(self.ease)), 1.0 / len(self.ease))
        # how many items even shares of the levels are worth
        share_weight = likeliest_weight(expected.shares[None], even, float(len(self.ease)), _SPREAD_OF_LOG_SHARE_WEIGHT)
        before = np.log([self.row_weight, self.own_weight])
        near = bool((np.abs(np.log([row_weight, own_weight]) - before) < _MAX_LOG_CHANGE).all())
        return replace(
            learned, row_weight=row_weight, own_weight=own_weight, share_weight=share_weight,
            n_rounds=self.n_rounds + 1, is_settled=near and self.n_rounds > _N_ROUNDS_BEFORE_OWN_WEIGHT,
        )  # fmt: skip


Prior: TypeAlias = FixedPrior | OwnPrior


def _probability(log_odds: Floats) -> Floats:
    """Probability of log odds."""
    return 0.5 + 0.5 * np.tanh(0.5 * log_odds)


def _log_odds(probability: Floats) -> Floats:
    """Log odds of probabilities, kept off 0 and 1."""
    inside = np.clip(probability, 1e-9, 1 - 1e-9)
    return np.log(inside / (1.0 - inside))
