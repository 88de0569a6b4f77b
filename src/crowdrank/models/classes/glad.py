"""Levels of items when items differ in difficulty and annotators in ability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...fitting import Step, accelerate, warn_unconverged
from ...protocols import Floats
from ...wording import expect_above, expect_choices
from .class_method import ClassMethod
from .coded_grades import ClassFit, ClassRows, Former, level_counts, log_shares, votes_as_fit, with_known

if TYPE_CHECKING:
    from .kernels.glad import DifficultyPass

_ERRORS = ("even", "own")
_PRIORS = ("uniform", "estimated")
_PRIOR_MEAN = 1.0
_MAX_NUMBER = 20.0
_N_SETTLING_PASSES, _MOST_SETTLING_PASSES = 3, 50
_N_EASE_QUANTILES = 200


@dataclass(frozen=True, kw_only=True)
class GLAD(ClassMethod):
    r"""GLAD: EM over annotator ability and item difficulty.

    Annotator :math:`a` gives item :math:`i` its true level with probability

    .. math:: P(\text{correct}) = \frac{1}{1 + e^{-\alpha_a \beta_i}},

    and each other level with equal probability [Whitehill09]_. The ability :math:`\alpha_a` is 0 for an annotator who
    is right half of the time and negative below that; :math:`1 / \beta_i > 0` is the item's difficulty, which draws
    everybody towards one half. Both have normal priors, :math:`\alpha \sim N(1, \sigma^2)` and :math:`\log \beta \sim
    N(1, \tau^2)`. The score is the expected grade, the grade the most probable level and the confidence its
    probability. The quality of an annotator is that on a random item; ``ability`` is :math:`\alpha_a`.

    When to use
    -----------
    Use it where items differ in difficulty and annotators in ability, and errors are spread over all classes. Where
    annotators favour a class, set ``errors="own"`` and ``prior="estimated"``, or use ``dawid_skene``.

    Parameters
    ----------
    ability_spread
        Standard deviation :math:`\sigma` of the abilities; lower it to shrink annotators with few grades towards the
        mean.
    ease_spread
        Standard deviation :math:`\tau` of :math:`\log \beta`; lower it to take items as equally difficult.
    errors
        What is answered in error: ``"even"``, each wrong level equally often, as published; ``"own"``, see the notes.
    prior
        Shares of the levels: ``"uniform"``, as published, or ``"estimated"`` along with the rest.
    calibrated
        Whether to temper the probabilities so that they mean what they say (see the notes); ``False`` gives the
        model's own.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of an ability or of :math:`\log \beta` in the last pass; raise it to stop earlier.
    max_iter
        Largest number of passes over the grades; raise it where a warning says that the fit did not converge.
    seed
        Seed of the random draws: which of several equally probable levels an item gets.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Abilities and difficulties are those of the largest posterior density, by expectation-maximisation. A pass finds the
    probabilities of the levels, improves each item's :math:`\log \beta` by a Newton step, halved where it would lower
    the objective, and each ability by a step on a parabola that lies below the objective [Jaakkola00]_; passes are
    extrapolated [Varadhan08]_. The objective, which the trace has, never falls.

    Annotators who give one level to most items pass for able with even errors, and their level for that of most items.
    With ``errors="own"`` the formula is the probability of knowing the level; an annotator who does not know it draws
    a level from their own overall answers, which may be the right one: the three-parameter model of item response
    theory [Birnbaum68]_. Of eight public
    sets with gold, this with ``prior="estimated"`` is more accurate on six, by 0.6 to 13 points, and less on two, by
    0.3 and 1.2.

    Where no item was graded by two annotators, or all grades are equal, the grades are kept as they are.

    Probabilities are tempered by what held-out annotators show, as the notes of ``dawid_skene`` say.

    Examples
    --------
    >>> said = {"ann": [2, 2, 1, 1, 0, 0], "bob": [2, 2, 1, 1, 0, 1], "cy": [2, 0, 1, 2, 0, 0]}
    >>> rows = [(who, "q", item, grade) for who, grades in said.items() for item, grade in zip("uvwxyz", grades)]
    >>> consensus = GLAD().fit(Grades.from_rows(rows))
    >>> consensus.frame()["grade"].to_list(), consensus.quality.parameters["ability"].round(2).tolist()
    ([2, 2, 1, 1, 0, 0], [1.26, 0.92, 0.39])
    """

    votes_without_overlap: ClassVar[bool] = False
    starts_from: ClassVar = ("ability",)
    ability_spread: float = 1.0
    ease_spread: float = 1.0
    errors: str = "even"
    prior: str = "uniform"
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        expect_choices(self, errors=_ERRORS, prior=_PRIORS)
        expect_above(self, 0, "ability_spread", "ease_spread")

    def difficulty(self, grades: Grades, consensus: Consensus, *, known: Any | None = None) -> pl.DataFrame:
        r"""Return the difficulty :math:`1 / \beta` of each graded item, the hardest first: query, item, difficulty.

        ``consensus`` is what :meth:`fit` found for these grades (and ``known`` items) with annotators pooled.

        Examples
        --------
        >>> rows = [("ann", "q", "x", 1), ("bob", "q", "x", 0), ("ann", "q", "y", 0), ("bob", "q", "y", 0)]
        >>> grades = Grades.from_rows(rows)
        >>> GLAD().difficulty(grades, GLAD().fit(grades))["item"].to_list()
        ['x', 'y']
        """
        expect(grades, self)
        rows = ClassRows.of(grades, bins=self.bins, known=known)
        former = self._begin_from(Former.of_consensus(consensus, grades, rows), rows, grades)
        problem = _lay_out(rows, self, rows.levels_by_row[1])
        state = problem.settled_state(former, self.max_iter)
        difficulty = np.exp(-state[slice(*problem.parts)])
        table = grades.items.frame().with_columns(difficulty=difficulty).filter(pl.Series(rows.is_graded))
        return table.sort("difficulty", *table.columns[:-1], descending=[True] + [False] * (table.width - 1))

    def _fit_rows(self, rows: Any, begin: Former | None) -> ClassFit:
        """The fit from former abilities and class shares, or from the prior where there are none.

        In memory the log ease of the items is part of the state, which leaps ahead with it. Parts keep that of their
        items, and settle it in each pass for the abilities of now.
        """
        (given,) = rows.total(level_counts)
        n_annotators, n_before, own_grades, reading = rows.n_annotators, 0, np.empty(0), None
        problem = _lay_out(rows, self, given) if isinstance(rows, ClassRows) else None

        def settle_parts(state: Floats) -> Step:
            ability, shares = state[:n_annotators], state[n_annotators:]
            pass_sums = rows.total_with_state(_settled_sums, self, given, ability, log_shares(shares, rows.n_levels))
            return _m_step(self, ability, shares, pass_sums, np.empty(0))

        if problem is None:
            step, start = settle_parts, _first_state(self, begin, rows, 0)
        else:
            is_new = begin is None or np.isnan(begin.of_annotators("ability")).all()
            n_before = 0 if is_new else _N_SETTLING_PASSES
            step, start = problem.step, problem.settled_state(begin, n_before)
            own_grades = np.bincount(rows.item, rows.weight, rows.n_items).astype(np.float64)
        n_free = n_annotators + len(own_grades)
        n_shares = len(start) - n_free
        # entries count by the grades that they rest on, class shares by all
        numbers = rows.annotator_weights, own_grades, np.full(n_shares, rows.annotator_weights.sum())
        lower = np.append(np.full(n_free, -_MAX_NUMBER), np.full(n_shares, 1e-12))
        state, trace = accelerate(
            step, start, lower=lower, upper=_MAX_NUMBER, scale=np.sqrt(np.concatenate(numbers)), tol=self.tol,
            max_iter=self.max_iter,
        )  # fmt: skip
        if not trace.converged:
            warn_unconverged("glad", self.max_iter, trace.change, self.tol)
        last, ability = step(state), state[:n_annotators].copy()
        if problem is None:
            log_ease = np.concatenate([values for (values,) in rows.each_with_state(_graded_ease)])
            reading = EaseReading(self, given, ability, log_shares(state[n_annotators:], rows.n_levels))
            probabilities = rows.read(reading)
        else:
            log_ease, probabilities = state[n_annotators:n_free][rows.is_graded], problem.probabilities
        trace = replace(trace, n_iter=n_before + trace.n_iter)
        confusion = _confusion(ability, log_ease, _guesses(self, given), self)
        return ClassFit(probabilities, last.shares, confusion, trace, {"ability": ability}, reading=reading)

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""
        ability, n_levels = np.full(rows.n_annotators, _PRIOR_MEAN), rows.n_levels
        n_guesses = n_levels if self.errors == "own" else max(n_levels - 1, 1)
        guesses = np.full((rows.n_annotators, n_levels), 1.0 / n_guesses)
        confusion = _confusion(ability, np.full(1, _PRIOR_MEAN), guesses, self)
        votes = votes_as_fit(rows, confusion)
        return replace(votes, parameters={"ability": ability})


def _lay_out(rows: ClassRows, method: GLAD, given: Floats) -> _Problem:
    """The grades by item, and what annotators answer where they do not know."""
    from ...kernels.threads import read_only

    # items that nobody graded are not visited
    probabilities = with_known(np.full((rows.n_items, rows.n_levels), 1.0 / rows.n_levels), rows.known)
    annotators = read_only(rows.packed_rows.code // np.uint32(rows.n_levels))
    return _Problem(method, rows, annotators, rows.levels_by_row[0], _guesses(method, given), probabilities)


def _first_state(method: GLAD, begin: Former | None, rows: ClassRows, n_items: int) -> Floats:
    """Abilities, the log ease of so many items and shares of levels to begin with; the prior's where they are new."""
    ability, shares = np.full(rows.n_annotators, np.nan), np.full(rows.n_levels, np.nan)
    if begin is not None:
        ability, shares = begin.of_annotators("ability"), begin.prior
    ability = np.where(np.isnan(ability), _PRIOR_MEAN, ability)
    shares = np.where(np.isnan(shares), 1.0 / rows.n_levels, shares)
    estimated = shares if method.prior == "estimated" else shares[:0]
    return np.concatenate([ability, np.full(n_items, _PRIOR_MEAN), estimated])


def _guesses(method: GLAD, given: Floats) -> Floats:
    """What annotators answer where they do not know, (n_annotators, n_levels), from the weight of their grades."""
    if method.errors != "own":
        return np.full(given.shape, 1.0 / (given.shape[1] - 1))
    return (given + 1.0) / (given + 1.0).sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Grades laid out for the passes. A state is the abilities, the items' log ease, then estimated class shares."""

    method: GLAD
    rows: ClassRows
    annotators: Any
    levels: Any
    guesses: Floats
    probabilities: Floats

    @property
    def parts(self) -> tuple[int, int]:
        """Where the log ease and the class shares begin in a state."""
        return self.rows.n_annotators, self.rows.n_annotators + self.rows.n_items

    def step(self, state: Floats) -> Step:
        """One E-step and one M-step."""
        ability, log_ease, shares = np.split(state, self.parts)
        sums, better = self.e_step(ability, log_ease, log_shares(shares, self.rows.n_levels))
        return _m_step(self.method, ability, shares, tuple(sums), better)

    def e_step(self, ability: Floats, log_ease: Floats, log_prior: Floats) -> tuple[DifficultyPass, Floats]:
        """What a pass finds, and the better log ease of each item."""
        from .kernels.glad import difficulty_pass

        better = log_ease.copy()
        passed = difficulty_pass(
            self.rows.packed_rows, self.annotators, self.levels, ability, log_ease, np.log(self.guesses), log_prior,
            self.rows.known, (_PRIOR_MEAN, self.method.ease_spread**-2), self.probabilities, better,
            lucky=self.method.errors == "own",
        )  # fmt: skip
        return passed, better

    def settled_state(self, begin: Former | None, n_passes: int) -> Floats:
        """The state with former abilities and class shares, or the prior's, and the log ease that fits them."""
        (ease_at, shares_at), state = self.parts, _first_state(self.method, begin, self.rows, self.rows.n_items)
        for _ in range(n_passes):
            following = self.step(state).following[ease_at:shares_at]
            change = float(np.abs(following - state[ease_at:shares_at]).max(initial=0.0))
            state[ease_at:shares_at] = following
            if change <= self.method.tol:
                break
        return state


def _m_step(method: GLAD, ability: Floats, shares: Floats, pass_sums: Any, better_ease: Floats) -> Step:
    """The objective where a pass was made, and better abilities, log ease and shares."""
    objective, slope, bend, sums = pass_sums
    n_levels, pull, off = len(sums), method.ability_spread**-2, ability - _PRIOR_MEAN
    favour = float(log_shares(shares, n_levels).sum()) if len(shares) else 0.0
    # one item more of each level keeps those possible that are never the likeliest
    more = ((sums + 1.0) / (sums.sum() + n_levels))[: len(shares)]
    following = np.concatenate([ability + (slope - pull * off) / (bend + pull), better_ease, more])
    value = objective - 0.5 * pull * float(np.einsum("a,a->", off, off)) + favour
    return Step(value, following, sums / sums.sum())


def _confusion(ability: Floats, log_ease: Floats, guesses: Floats, method: GLAD) -> Floats:
    """Probability of each answer for each true level of a random item, from quantiles of the items' ease."""
    from scipy.special import expit

    from .kernels.mace import guessing_confusion

    places = (np.arange(_N_EASE_QUANTILES) + 0.5) / _N_EASE_QUANTILES
    ease = np.exp(np.quantile(log_ease, places)) if len(log_ease) > _N_EASE_QUANTILES else np.exp(np.sort(log_ease))
    knowing = sum((expit(ability * each) for each in ease), np.zeros(len(ability))) / len(ease)
    confusion = guessing_confusion(knowing, guesses)
    if method.errors == "even" and guesses.shape[1] > 1:
        level = np.arange(guesses.shape[1])
        confusion[:, level, level] = knowing[:, None]
    return confusion


def _settled_sums(
    rows: ClassRows, state: Any, method: GLAD, given: Floats, ability: Floats, log_prior: Floats
) -> tuple[Any, tuple[Floats]]:
    """What a pass finds in one part once the log ease of its items fits the abilities; it is the part's new state."""
    problem, log_ease = _lay_out(rows, method, given), _ease_of(rows, state)
    for _ in range(_MOST_SETTLING_PASSES):
        sums, better = problem.e_step(ability, log_ease, log_prior)
        change = float(np.abs(better - log_ease).max(initial=0.0))
        log_ease = better
        if change <= 0.1 * method.tol:
            break
    return tuple(sums), (log_ease,)


def _ease_of(rows: ClassRows, state: Any) -> Floats:
    """The log ease of the items of a part, the prior's before the first pass."""
    return np.full(rows.n_items, _PRIOR_MEAN) if state is None else state[0]


def _graded_ease(rows: ClassRows, state: Any) -> tuple[tuple[Floats], None]:
    """The log ease of the graded items of a part."""
    return (_ease_of(rows, state)[rows.is_graded],), None


class EaseReading(NamedTuple):
    """Levels by abilities and the log ease that a part keeps."""

    method: GLAD
    given: Floats
    ability: Floats
    log_prior: Floats

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the probability of each level for each item."""
        problem = _lay_out(rows, self.method, self.given)
        problem.e_step(self.ability, _ease_of(rows, state), self.log_prior)
        return problem.probabilities
