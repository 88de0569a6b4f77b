"""Levels of items when items differ in difficulty and annotators in ability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Trace
from ...data.judgments import Grades, expect
from ...errors import ParameterError
from ...fitting import accelerate, warn_unconverged
from ...protocols import Floats
from .class_fit import ClassFit, class_consensus, joined_fit, votes_as_fit
from .coded_grades import ClassRows, clamped, class_rows, former_fit, identified, query_parts

_ERRORS = ("even", "own")
_PRIORS = ("uniform", "estimated")
_MEAN = 1.0
_RANGE = 20.0
_SETTLING = 3
_QUANTILES = 200


@dataclass(frozen=True, kw_only=True)
class GLAD:
    r"""GLAD: EM over annotator ability and item difficulty.

    Annotator :math:`a` gives item :math:`i` its true level with probability

    .. math:: P(\text{correct}) = \frac{1}{1 + e^{-\alpha_a \beta_i}},

    and each other level alike [Whitehill09]_. The ability :math:`\alpha_a` is 0 for one who is right half of the time
    and negative below that; :math:`1 / \beta_i > 0` is the item's difficulty, which draws everybody towards one half.
    Both have normal priors, :math:`\alpha \sim N(1, \sigma^2)` and :math:`\log \beta \sim N(1, \tau^2)`. The score is
    the expected grade, the grade the most probable level and the confidence its probability. The quality of an
    annotator is that on a random item; ``ability`` is :math:`\alpha_a`.

    When to use
    -----------
    Use it where items differ in difficulty and annotators in ability, and errors are spread over all classes. Where
    annotators favour a class, set ``errors="own"`` and ``prior="estimated"``, or use ``dawid_skene``.

    Parameters
    ----------
    ability_spread
        Standard deviation :math:`\sigma` of the abilities; lower it to draw annotators with few grades to the mean.
    ease_spread
        Standard deviation :math:`\tau` of :math:`\log \beta`; lower it to take items as equally difficult.
    errors
        What is answered in error: ``"even"``, each wrong level alike, as published; ``"own"``, see the notes.
    prior
        Shares of the levels: ``"uniform"``, as published, or ``"estimated"`` along with the rest.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change of an ability or of :math:`\log \beta` in the last pass.
    max_iter
        Most passes over the grades.
    seed
        Start of the random draws: which of several equally probable levels is taken, for all items alike.
    bins
        Cut grades into so many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Abilities and difficulties are those of the largest posterior density, by expectation-maximisation. A pass finds the
    probabilities of the levels, improves each item's :math:`\log \beta` by a Newton step, halved where it would lower
    the objective, and each ability by a step on a parabola that lies below the objective [Jaakkola00]_; passes are
    extrapolated [Varadhan08]_. The objective, which the trace has, never falls.

    Annotators who give one level to most items pass for able with even errors, and their level for that of most items.
    With ``errors="own"`` the formula is the probability of knowing the level, and who does not know answers as they
    answer overall, by luck rightly: the three-parameter model of item response theory [Birnbaum68]_. Of eight public
    sets with gold, this with ``prior="estimated"`` is more accurate on six, by 0.6 to 13 points, and less on two, by
    0.3 and 1.2.

    Where no item was graded by two annotators, or all grades are equal, the grades come back as they are.

    Examples
    --------
    >>> said = {"ann": [2, 2, 1, 1, 0, 0], "bob": [2, 2, 1, 1, 0, 1], "cy": [2, 0, 1, 2, 0, 0]}
    >>> rows = [(who, "q", item, grade) for who, grades in said.items() for item, grade in zip("uvwxyz", grades)]
    >>> consensus = GLAD().fit(Grades.from_rows(rows))
    >>> consensus.frame()["grade"].to_list(), consensus.quality.parameters["ability"].round(2).tolist()
    ([2, 2, 1, 1, 0, 0], [1.26, 0.92, 0.39])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    in_grades: ClassVar[bool] = True
    precision: ClassVar[float] = 1e-11
    ability_spread: float = 1.0
    ease_spread: float = 1.0
    errors: str = "even"
    prior: str = "uniform"
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("errors", _ERRORS), ("prior", _PRIORS)):
            if getattr(self, name) not in known:
                choice = ", ".join(map(repr, known))
                raise ParameterError(f"{name}={getattr(self, name)!r} is not known; use one of {choice}")
        for name in ("ability_spread", "ease_spread"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")

    def fit(self, grades: Grades, *, known: Any | None = None, start: Consensus | None = None) -> Consensus:
        """Return the levels of the items and the abilities of the annotators.

        ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is a former consensus of
        this method to go on from; annotators and items that are new begin with the prior.
        """
        expect(grades, self)
        if not len(grades):
            return Consensus.of(self, grades, np.zeros(grades.n_items))
        again = partial(self.fit, known=known)
        rows = class_rows(grades, bins=self.bins, known=known)
        ability, shares = np.full(rows.n_annotators, np.nan), np.full(rows.n_levels, np.nan)
        if start is not None:
            former = former_fit(start, grades, rows)
            ability, shares = former.of_annotators("ability"), former.prior
        if rows.n_levels == 1 or not identified(rows, "glad"):
            found = _unlearned(rows, self)
        elif self.per_query:
            parts = query_parts(rows, grades.items.offsets)
            fits = [(part, _fitted(part.rows, self, ability[part.annotators], shares)) for part in parts]
            found = joined_fit(rows, fits, _unlearned(rows, self))
        else:
            found = _fitted(rows, self, ability, shares)
        return class_consensus(self, grades, rows, found, again=again)

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
        rows = class_rows(grades, bins=self.bins, known=known)
        former = former_fit(consensus, grades, rows)
        problem = _laid_out(rows, self)
        state = problem.settled(former.of_annotators("ability"), former.prior, self.max_iter)
        difficulty = np.exp(-state[slice(*problem.parts)])
        table = grades.items.frame().with_columns(difficulty=difficulty).filter(pl.Series(rows.graded))
        return table.sort("difficulty", *table.columns[:-1], descending=[True] + [False] * (table.width - 1))


class _Pass(NamedTuple):
    """The objective at a state, the following state, and the shares of the levels."""

    value: float
    following: Floats
    shares: Floats


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

    def step(self, state: Floats) -> _Pass:
        """One expectation and one maximisation."""
        from .kernels.glad import difficulty_pass

        n_levels, (ease_at, shares_at) = self.rows.n_levels, self.parts
        ability, log_ease, shares = np.split(state, self.parts)
        log_prior = np.log(shares / shares.sum()) if len(shares) else np.full(n_levels, -np.log(n_levels))
        favour = float(log_prior.sum()) if len(shares) else 0.0
        pull, following = self.method.ability_spread**-2, state.copy()
        found = difficulty_pass(
            self.rows.packed, self.annotators, self.levels, ability, log_ease, np.log(self.guesses), log_prior,
            self.rows.known, (_MEAN, self.method.ease_spread**-2), self.probabilities, following[ease_at:shares_at],
            lucky=self.method.errors == "own",
        )  # fmt: skip
        off = ability - _MEAN
        following[:ease_at] += (found.slope - pull * off) / (found.bend + pull)
        # one item more of each level keeps those possible that are never the likeliest
        following[shares_at:] = ((found.shares + 1.0) / (found.shares.sum() + n_levels))[: len(shares)]
        value = found.objective - 0.5 * pull * float(np.einsum("a,a->", off, off)) + favour
        return _Pass(value, following, found.shares / found.shares.sum())

    def settled(self, ability: Floats, shares: Floats, n_passes: int) -> Floats:
        """The state with these abilities and class shares (the prior's where NaN), and the log ease that fits them."""
        (ease_at, shares_at), n_levels = self.parts, self.rows.n_levels
        shares = shares if self.method.prior == "estimated" else np.empty(0)
        parts = (ability, _MEAN), (np.full(self.rows.n_items, _MEAN), _MEAN), (shares, 1.0 / n_levels)
        state = np.concatenate([np.where(np.isnan(part), prior, part) for part, prior in parts])
        for _ in range(n_passes):
            following = self.step(state).following[ease_at:shares_at]
            change = float(np.abs(following - state[ease_at:shares_at]).max(initial=0.0))
            state[ease_at:shares_at] = following
            if change <= self.method.tol:
                break
        return state


def _laid_out(rows: ClassRows, method: GLAD) -> _Problem:
    """The grades by item, and what annotators answer where they do not know."""
    from ...kernels.threads import read_only
    from .kernels.mace import levels_given

    levels, given = levels_given(rows.packed, rows.n_annotators, rows.n_levels)
    guesses = np.full(given.shape, 1.0 / (rows.n_levels - 1))
    if method.errors == "own":
        guesses = (given + 1.0) / (given + 1.0).sum(axis=1, keepdims=True)
    # items that nobody graded are not visited
    probabilities = clamped(np.full((rows.n_items, rows.n_levels), 1.0 / rows.n_levels), rows.known)
    return _Problem(
        method, rows, read_only(rows.packed.code // np.uint32(rows.n_levels)), levels, guesses, probabilities
    )


def _fitted(rows: ClassRows, method: GLAD, ability: Floats, shares: Floats) -> ClassFit:
    """The fit from former abilities and class shares, or from the prior where they are NaN."""
    problem = _laid_out(rows, method)
    n_before = 0 if np.isnan(ability).all() else _SETTLING
    start = problem.settled(ability, shares, n_before)
    n_free, n_shares = problem.parts[1], len(start) - problem.parts[1]
    # entries count by the grades that they rest on, class shares by all
    of_annotators = np.bincount(rows.annotator, rows.weight, rows.n_annotators)
    numbers = of_annotators, np.bincount(rows.item, rows.weight, rows.n_items), np.full(n_shares, of_annotators.sum())
    state, trace = accelerate(
        problem.step, start, lower=np.append(np.full(n_free, -_RANGE), np.full(n_shares, 1e-12)), upper=_RANGE,
        scale=np.sqrt(np.concatenate(numbers)), tol=method.tol, max_iter=method.max_iter,
    )  # fmt: skip
    if not trace.converged:
        warn_unconverged("glad", method.max_iter, trace.change, method.tol)
    return _read_out(problem, state, replace(trace, n_iter=n_before + trace.n_iter))


def _read_out(problem: _Problem, state: Floats, trace: Trace) -> ClassFit:
    """Levels and abilities at a state."""
    rows, found = problem.rows, problem.step(state)
    ability, log_ease, _ = np.split(state, problem.parts)
    evidence = np.outer(np.bincount(rows.annotator, rows.weight, rows.n_annotators) + 1.0, found.shares)
    confusion = _confusion(ability, log_ease[rows.graded], problem.guesses, problem.method)
    return ClassFit(problem.probabilities, found.shares, confusion, evidence, trace, {"ability": ability.copy()})


def _confusion(ability: Floats, log_ease: Floats, guesses: Floats, method: GLAD) -> Floats:
    """Probability of each answer for each true level of a random item, from quantiles of the items' ease."""
    from scipy.special import expit

    from .kernels.mace import guessing_confusion

    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    ease = np.exp(np.quantile(log_ease, places)) if len(log_ease) > _QUANTILES else np.exp(np.sort(log_ease))
    knowing = sum((expit(ability * each) for each in ease), np.zeros(len(ability))) / len(ease)
    confusion = guessing_confusion(knowing, guesses)
    if method.errors == "even" and guesses.shape[1] > 1:
        level = np.arange(guesses.shape[1])
        confusion[:, level, level] = knowing[:, None]
    return confusion


def _unlearned(rows: ClassRows, method: GLAD) -> ClassFit:
    """The grades as they are, by annotators as the prior has them."""
    ability, n_levels = np.full(rows.n_annotators, _MEAN), rows.n_levels
    n_answers = n_levels if method.errors == "own" else max(n_levels - 1, 1)
    guesses = np.full((rows.n_annotators, n_levels), 1.0 / n_answers)
    confusion = _confusion(ability, np.full(1, _MEAN), guesses, method)
    votes = votes_as_fit(rows, confusion, np.full(confusion.shape[:2], 1.0 / n_levels))
    return replace(votes, parameters={"ability": ability})
