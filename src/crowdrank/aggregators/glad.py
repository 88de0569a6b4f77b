"""Levels of items when items differ in difficulty and annotators in ability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ..class_models import (
    ClassFit,
    ClassRows,
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

_ERRORS = ("even", "own")
_PRIORS = ("uniform", "estimated")
_MEAN = 1.0
_RANGE = 20.0
_SETTLING = 3
_QUANTILES = 200


@dataclass(frozen=True, kw_only=True)
class GLAD:
    r"""Weigh grades by the ability of annotators and the difficulty of items, both estimated.

    Annotator :math:`a` gives item :math:`i` its true level with probability

    .. math:: P(\text{correct}) = \frac{1}{1 + e^{-\alpha_a \beta_i}},

    and each other level alike [Whitehill09]_. The ability :math:`\alpha_a` is 0 for one who is right half of the time
    and negative below that; :math:`1 / \beta_i > 0` is the item's difficulty, which draws everybody towards one half.
    Both have normal priors, :math:`\alpha \sim N(1, \sigma^2)` and :math:`\log \beta \sim N(1, \tau^2)`. The score is
    the expected grade, the grade the most probable level and the confidence its probability. The quality of an
    annotator is that on a random item; ``ability`` is :math:`\alpha_a`.

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
        Largest change of an ability or of :math:`\log \beta` in the last step.
    max_iter
        Most passes over the grades.
    seed
        Start of the random draws between equally probable levels.
    bins
        Cut grades into so many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Abilities and difficulties are those of the largest posterior density, by expectation-maximisation: a pass finds
    the probabilities of the levels and improves each item's :math:`\log \beta` by Newton steps with step halving, then
    each ability by a step on a parabola that lies below the objective [Jaakkola00]_. Passes are extrapolated. The
    objective, which the trace has, never falls.

    Where no item was graded by two annotators, or all grades are equal, the grades come back as they are.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 1), ("bob", "q", "x", 1), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 0), ("bob", "q", "y", 0), ("cy", "q", "y", 1)]
    >>> rows += [("ann", "q", "z", 1), ("bob", "q", "z", 0), ("cy", "q", "z", 0)]
    >>> consensus = GLAD().fit(Grades.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["ability"].round(2).tolist()
    (['x', 'z', 'y'], [0.83, 1.07, 0.24])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    ability_spread: float = 1.0
    ease_spread: float = 1.0
    errors: str = "even"
    prior: str = "uniform"
    per_query: bool = False
    tol: float = 1e-7
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
        rows = class_rows(grades, bins=self.bins, known=known)
        former = None if start is None else former_fit(start, grades, rows)
        if not identified(rows, "glad") or rows.n_levels == 1:
            return class_consensus(self, grades, rows, _unlearned(rows, self), seed=self.seed)
        ability = None if former is None else former.of_annotators("ability")
        shares = None if former is None else former.prior
        if self.per_query:
            fits = [
                (part, _fitted(part.rows, self, None if ability is None else ability[part.annotators], shares))
                for part in query_parts(rows, grades.items.offsets)
            ]
            found = joined_fit(rows, fits, _unlearned(rows, self))
        else:
            found = _fitted(rows, self, ability, shares)
        return class_consensus(self, grades, rows, found, seed=self.seed)

    def difficulty(self, grades: Grades, consensus: Consensus) -> pl.DataFrame:
        r"""Return the difficulty :math:`1 / \beta` of each graded item, the hardest first: query, item, difficulty.

        ``consensus`` is what :meth:`fit` found for the grades, with annotators pooled over queries.

        Examples
        --------
        >>> rows = [("ann", "q", "x", 1), ("bob", "q", "x", 0), ("ann", "q", "y", 0), ("bob", "q", "y", 0)]
        >>> grades = Grades.from_rows(rows)
        >>> GLAD().difficulty(grades, GLAD().fit(grades))["item"].to_list()
        ['x', 'y']
        """
        expect(grades, self)
        rows = class_rows(grades, bins=self.bins)
        former = former_fit(consensus, grades, rows)
        problem = _laid_out(rows, self)
        log_ease = _settled(problem, former.of_annotators("ability"), former.prior, self.max_iter)
        table = grades.items.frame().with_columns(difficulty=np.exp(-log_ease)).filter(pl.Series(rows.graded))
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
    grades: PackedGrades
    annotators: Any
    levels: Any
    known: Any
    guesses: Floats
    probabilities: Floats

    @property
    def parts(self) -> tuple[int, int]:
        """Where the log ease and the class shares begin in a state."""
        n_annotators = len(self.guesses)
        return n_annotators, n_annotators + len(self.probabilities)

    def step(self, state: Floats) -> _Pass:
        """One expectation and one maximisation."""
        from ..kernels.difficulty import difficulty_pass

        n_levels, (ease_at, shares_at) = self.guesses.shape[1], self.parts
        ability, log_ease, shares = np.split(state, self.parts)
        log_prior, favour = np.full(n_levels, -np.log(n_levels)), 0.0
        if len(shares):
            log_prior = np.log(shares / shares.sum())
            favour = float(log_prior.sum())
        pull, following = self.method.ability_spread**-2, state.copy()
        found = difficulty_pass(
            self.grades, self.annotators, self.levels, ability, log_ease, np.log(self.guesses), log_prior, self.known,
            (_MEAN, self.method.ease_spread**-2), self.probabilities, following[ease_at:shares_at],
            lucky=self.method.errors == "own",
        )  # fmt: skip
        off = ability - _MEAN
        following[:ease_at] += (found.slope - pull * off) / (found.bend + pull)
        if len(shares):
            # one item more of each level keeps a level that is never the likeliest possible
            following[shares_at:] = (found.shares + 1.0) / (found.shares.sum() + n_levels)
        value = found.objective - 0.5 * pull * float(np.einsum("a,a->", off, off)) + favour
        return _Pass(value, following, found.shares / found.shares.sum())

    def state(self, ability: Floats, log_ease: Floats, shares: Floats) -> Floats:
        """The state with these parts; what is NaN begins with the prior."""
        if self.method.prior == "uniform":
            shares = np.empty(0)
        parts = (ability, _MEAN), (log_ease, _MEAN), (shares, 1.0 / self.guesses.shape[1])
        return np.concatenate([np.where(np.isnan(part), default, part) for part, default in parts])


def _laid_out(rows: ClassRows, method: GLAD) -> _Problem:
    """The grades by item, and what annotators answer where they do not know."""
    from ..kernels.confusion import pack_grades
    from ..kernels.threads import read_only

    shape = rows.n_annotators, rows.n_levels
    packed = pack_grades(rows.item, rows.annotator, rows.level, rows.weight, rows.n_items, *shape)
    annotators, levels = np.divmod(packed.code, np.uint32(rows.n_levels))
    guesses = np.full(shape, 1.0 / (rows.n_levels - 1))
    if method.errors == "own":
        weight = packed.weight if len(packed.weight) else None
        given = np.bincount(packed.code, weight, shape[0] * shape[1]).reshape(shape) + 1.0
        guesses = given / given.sum(axis=1, keepdims=True)
    # items that nobody graded are not visited
    probabilities = clamped(np.full((rows.n_items, rows.n_levels), 1.0 / rows.n_levels), rows.known)
    return _Problem(
        method, packed, read_only(annotators), read_only(levels.astype(np.uint8)), rows.known, guesses, probabilities
    )


def _fitted(rows: ClassRows, method: GLAD, ability: Floats | None, shares: Floats | None) -> ClassFit:
    """The fit from the prior, or from former abilities and class shares."""
    problem = _laid_out(rows, method)
    log_ease = np.full(rows.n_items, _MEAN)
    if ability is None or shares is None:
        ability, shares = np.full(rows.n_annotators, _MEAN), np.full(rows.n_levels, 1.0 / rows.n_levels)
    else:
        log_ease = _settled(problem, ability, shares, _SETTLING)
    start = problem.state(ability, log_ease, shares)
    n_free, n_shares = problem.parts[1], len(start) - problem.parts[1]
    # entries count by the grades that they rest on, class shares by all
    numbers = [np.bincount(rows.annotator, rows.weight, rows.n_annotators), np.bincount(rows.item, rows.weight)]
    numbers += [np.zeros(rows.n_items - len(numbers[1])), np.full(n_shares, float(len(rows)))]
    state, trace = accelerate(
        problem.step, start, lower=np.append(np.full(n_free, -_RANGE), np.full(n_shares, 1e-12)), upper=_RANGE,
        scale=np.sqrt(np.concatenate(numbers)), tol=method.tol, max_iter=method.max_iter,
    )  # fmt: skip
    if not trace.converged:
        warn_unconverged("glad", method.max_iter, trace.change, method.tol)
    return _read_out(problem, rows, state, trace)


def _settled(problem: _Problem, ability: Floats, shares: Floats, n_passes: int) -> Floats:
    """Log ease of each item, the abilities held at what they are."""
    ease_at, shares_at = problem.parts
    state = problem.state(ability, np.full(shares_at - ease_at, _MEAN), shares)
    log_ease = state[ease_at:shares_at]
    for _ in range(n_passes):
        following = problem.step(state).following[ease_at:shares_at]
        change = float(np.abs(following - log_ease).max(initial=0.0))
        log_ease[:] = following
        if change <= problem.method.tol:
            break
    return log_ease


def _read_out(problem: _Problem, rows: ClassRows, state: Floats, trace: Trace) -> ClassFit:
    """Levels and abilities at a state."""
    found = problem.step(state)
    ability, log_ease, _ = np.split(state, problem.parts)
    evidence = np.outer(np.bincount(rows.annotator, rows.weight, rows.n_annotators) + 1.0, found.shares)
    confusion = _confusion(_knowing(ability, log_ease[rows.graded]), problem.guesses, problem.method)
    return ClassFit(problem.probabilities.copy(), found.shares, confusion, evidence, trace, {"ability": ability.copy()})


def _knowing(ability: Floats, log_ease: Floats) -> Floats:
    """Probability that each annotator knows the level of a random item, from quantiles of the items' ease."""
    from scipy.special import expit

    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    ease = np.exp(np.quantile(log_ease, places)) if len(log_ease) > _QUANTILES else np.exp(np.sort(log_ease))
    known: Floats = expit(ability[:, None] * ease).mean(axis=1)
    return known


def _confusion(knowing: Floats, guesses: Floats, method: GLAD) -> Floats:
    """Probability of each answer for each true level, (n_annotators, n_levels, n_levels)."""
    n_levels = guesses.shape[1]
    guessed = ((1.0 - knowing)[:, None] * guesses)[:, None, :] * np.ones((n_levels, 1))
    if method.errors == "even":
        guessed *= 1.0 - np.eye(n_levels)
    confusion: Floats = knowing[:, None, None] * np.eye(n_levels) + guessed
    return confusion


def _unlearned(rows: ClassRows, method: GLAD) -> ClassFit:
    """The grades as they are, by annotators as the prior has them."""
    ability, n_levels = np.full(rows.n_annotators, _MEAN), rows.n_levels
    guesses = np.full(
        (rows.n_annotators, n_levels), 1.0 / (n_levels if method.errors == "own" else max(n_levels - 1, 1))
    )
    confusion = _confusion(_knowing(ability, np.full(1, _MEAN)), guesses, method)
    confusion /= confusion.sum(axis=2, keepdims=True)
    votes = votes_as_fit(rows, confusion, np.full(confusion.shape[:2], 1.0 / n_levels))
    return replace(votes, parameters={"ability": ability})
