"""Levels of items when each annotator mixes up levels in a way of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades
from ...errors import JudgmentError
from ...fitting import warn_unconverged
from ...protocols import Floats
from ...wording import expect_above, expect_at_least, one_of, option
from .class_method import ClassMethod
from .coded_grades import ClassFit, ClassRows, Former, votes_as_fit
from .confusion_matrices import (
    Estimate,
    FixedPrior,
    Form,
    FreeMatrices,
    OrdinalMatrices,
    OwnPrior,
    Prior,
    crowd_shares,
    first_estimate,
    fit_matrices,
    vote_anchor,
)

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
    weight, and matrices get at most half, as predicting grades does not prove levels. In the last two the :math:`n`
    annotators of an item count as :math:`n / (1 + (n - 1) r)` independent ones; the correlation :math:`r` has an
    exponential prior of mean 0.2 and is averaged over what held-out grades say of it. From :math:`r` follows on what
    share of items even many annotators would settle on a wrong level; half of it is shared equally among all levels, as
    tempering by :math:`r` lowers the same probabilities. With
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

    prior: str = "own"
    alpha: float = 2.5
    ordinal: bool = False
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        one_of(self.prior, _PRIORS, "prior")
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
        return self._fit(grades, known, start)

    def _begin_from(self, former: Former | None, rows: ClassRows, grades: Grades) -> Estimate | None:
        """The estimate of a former consensus for the annotators and levels of now, NaN where they are new."""
        if former is None:
            return None
        if not rows.has_annotators:
            return Estimate(np.full((1, rows.n_levels, rows.n_levels), np.nan), former.prior)
        return Estimate(former.of_annotators("confusion", by_level=True), former.prior)

    def _fit_rows(self, rows: ClassRows, begin: Estimate | None) -> ClassFit:
        """The matrices, shrunk towards the prior."""
        prior = self._prior(crowd_shares(rows), rows)
        fit = fit_matrices(rows, self._form(rows), prior, begin, tol=self.tol, max_iter=self.max_iter)
        if not fit.trace.converged:
            warn_unconverged("dawid_skene", self.max_iter, fit.trace.change, self.tol)
        return fit

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the crowd has them."""
        crowd, form = crowd_shares(rows), self._form(rows)
        first = first_estimate(crowd, None, rows.n_annotators)
        state = form.likeliest_state(first.confusion, first.prior, None)
        return replace(votes_as_fit(rows, first.confusion), parameters=form.parameters(state))

    def _prior(self, crowd: Floats, rows: ClassRows) -> Prior:
        """What matrices and shares begin with."""
        if self.prior == "own":
            return OwnPrior.begin(crowd, rows.n_annotators, vote_anchor(rows))
        return FixedPrior.none(crowd) if self.prior == "none" else FixedPrior.of_crowd(crowd, self.alpha)

    def _form(self, rows: ClassRows) -> Form:
        """What the confusion matrices may look like."""
        return (OrdinalMatrices if self.ordinal else FreeMatrices)(rows.n_annotators, rows.n_levels)
