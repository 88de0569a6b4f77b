"""Bradley-Terry scores from preferences: with three rules for ties, with covariates or strengths, and of resamples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...covariate_design import CovariateDesign, covariate_design
from ...data.consensus import Consensus, Trace
from ...data.index import Items
from ...data.judgments import Preferences, expect, falls_apart
from ...fitting import ascend, newton
from ...pair_counts import PairCounts, apply_ties_rule, count_preferences, one_way_parts, strength_steps, warn_unbounded
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import LearnedQuality, held_out
from ...resampling import Draws, Refitted
from ...standard_errors import ScoreGradients, SharedGradients, score_standard_errors
from ...wording import expect_above, expect_choices

_TIES = ("split", "ignore", "davidson")
_SOLVERS = ("newton", "printed")

_PART = 8
_MIN_PART_ROWS = 20_000
_MIN_PART_ROWS_PER_ITEM = 50
_PART_TOLERANCE = 1e-2
"""Every eighth preference makes a start for all, where these are this many."""

COEFFICIENT_RIDGE = 1e-3
"""Precision of the prior of coefficients, which keeps those finite that decide all preferences."""

_MAX_STEP_LOG_ODDS = 8.0

_MAX_UNIT_CELLS, _MAX_PAIR_CELLS = 1 << 27, 1 << 24
"""Cells of units (a byte or four each), and of pairs (eight), that the resamples fitted at once may take up."""

_MAX_RESAMPLES_AT_ONCE = 32
_MAX_STEPS = 30
_SOLVE_ACCURACY = 1e-2
_MAX_ERROR_SHARE = 1e-2
"""Share of a standard error that a score may be off: by chance it differs from the next resample's far more."""


@dataclass(frozen=True, kw_only=True)
class BradleyTerry:
    r"""Bradley-Terry: maximum-likelihood scores whose differences are the log odds of winning.

    Item :math:`i` wins against item :math:`j` of the same query with probability

    .. math:: P(i \succ j) = \frac{e^{s_i}}{e^{s_i} + e^{s_j}},

    where :math:`s` are the scores [BradleyTerry52]_. They maximise the log-likelihood of the preferences less
    :math:`\frac{\lambda}{2} \sum_i s_i^2`, :math:`\lambda` being ``ridge``; they sum to zero in every query. With
    ``ties="davidson"`` a tie has the strength :math:`\nu e^{(s_i + s_j)/2}` beside the two items' own, with one
    :math:`\nu` for the whole crowd, estimated along with the scores [Davidson70]_.

    Preferences with strengths of several sizes are ordinal answers: :math:`i` wins by step :math:`y` or more with
    probability

    .. math:: P(Y \ge y) = \frac{1}{1 + e^{c_y - (s_i - s_j)}},

    a cumulative model [Agresti92]_, where the cuts :math:`c_1 < c_2 < \dots` are shared by the whole crowd, hold for
    both sides, and are estimated along with the scores. Without ties :math:`c_1` is 0, and who wins follows the formula
    above; ties, if there are any, lie between :math:`-c_1` and :math:`c_1`.

    When to use
    -----------
    Use it for leaderboards from preferences when annotators are about equally good, or not named: it is fast, has
    standard errors, and corrects for the strength of opponents. Prefer ``crowd_bt`` or ``latent_score`` where some
    annotators guess or are reversed.

    Parameters
    ----------
    ties
        ``"split"``: half a win for each side; ``"ignore"``: as if not asked; ``"davidson"``: a third outcome that says
        the two are close. With strengths of several sizes they are the step in the middle unless ignored.
    ridge
        Pull of the scores towards each other, as precision of a normal prior. It keeps the scores finite of items
        that won or lost every preference, and of groups that were never compared with each other; raise it where
        preferences are few.
    tol
        Largest change of a score in the last step; raise it to stop earlier.
    max_iter
        Largest number of steps; raise it where a warning says that the fit did not converge.
    solver
        ``"newton"``: to the maximum; ``"printed"``: gradient steps from equal scores at a fixed rate, as [Niu15]_ fits
        its baseline. They have no standard errors.
    learning_rate
        Length of the printed steps per unit of the gradient, which adds up an item's preferences: a rate of 0.1
        overshoots where an item has 80 of them or more.

    Notes
    -----
    ``bt-paper`` is the baseline of [Niu15]_: printed steps at its rate, 0.1, with next to no ridge; how many steps it
    took is not printed.

    The default ridge of 0.1 is a prior with standard deviation 3.2, odds of 24 to 1; it weighs as much as 0.4
    preferences between equals, so it hardly matters once an item has some dozens. Use ``ridge=1e-6`` for maximum
    likelihood.

    Preferences are counted by pair once, and Newton steps are taken on the counts with a step-halving line search. The
    steps solve their linear system by conjugate gradients, so memory grows with the number of distinct pairs.

    Standard errors and covariances are those of the scores centred in their query, from the inverse of the
    curvature, prior included; for Davidson's model they include the uncertainty of :math:`\nu`. Both are exact for
    queries of up to 700 items. Larger ones have no covariance, and their standard errors are estimated from seeded
    random probes of the inverse [Bekas07]_: as many as make them exact to half a per cent, but at most 64, which leaves
    some per cent where items have only a handful of opponents.

    A bootstrap fits many resamples at once, each from the scores of all preferences and to a hundredth of a standard
    error; with strengths, one after the other.

    Of ordinal models the cumulative one keeps differences of scores the log odds of winning, so that they compare with
    those of other preferences; a model of adjacent categories measures them in steps, and counts one answer against a
    score as often as it has steps. The log-likelihood is concave in scores and cuts together [Pratt81]_. More than
    seven strengths are cut into seven steps of about equal weight. The ridge is that of the cuts too, standard errors
    include their uncertainty, and ``estimates["cuts"]`` has them from right to left. An item that won everything, but
    not always by the largest step, has a finite score without the ridge too, as long as other preferences hold the
    cuts.

    An unjudged item has score 0, its query's mean, and the standard error of the prior. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "x"), ("cy", "q", "y", "x", "y")]
    >>> consensus = BradleyTerry().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.scores.round(3).tolist()
    (['x', 'y'], [0.323, -0.323])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    uses_strength: ClassVar[bool] = True
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)
    precision: ClassVar[float] = 1e-10
    ties: str = "split"
    ridge: float = 0.1
    tol: float = 1e-6
    max_iter: int = 100
    solver: str = "newton"
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        expect_choices(self, ties=_TIES, solver=_SOLVERS)
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-6 for none")
        expect_above(self, 0, "learning_rate")

    def fit(self, preferences: Preferences, *, control: Sequence[str] | None = None) -> Consensus:
        """Return scores with standard errors; warns of items and groups that only the ridge keeps finite.

        ``control`` names covariates of the preferences to control for: scores are then those of items that are equal
        in them.
        """
        expect(preferences, self)
        grading = Grading.of(preferences, self.ties)
        decisive = (preferences, self.ties) if grading is None else (grading.decisive(preferences, self.ties), "split")
        counts = count_preferences(*decisive)
        warn_unbounded(preferences.items, counts)
        problem = PairProblem(counts, self.ridge)
        if control or grading is not None:
            problem = PairProblem.of(preferences, self.ties, self.ridge, control or ())
        point, best, trace = self._solve(problem)
        scores, printed = point[: preferences.n_items], self.solver == "printed"
        # printed steps end where they end: there is no maximum whose curvature would say how sure scores are
        errors: Any = (None, None, np.zeros((len(point) - len(scores), len(point) - len(scores))))
        std_error, covariance, own = errors if printed else problem.standard_errors(best, preferences.items.offsets)
        quality: Any = held_out(self, preferences)
        if problem.design is not None and not printed:
            again = partial(_scores_of_part, self, problem, point)
            quality = LearnedQuality(preferences, again, {}) if preferences.n_annotators else None
        consensus = Consensus.of(
            self, preferences, scores, trace=trace, std_error=std_error, covariance=covariance, quality=quality,
            estimates=problem.estimates(point, own),
        )  # fmt: skip
        if problem.design is not None or preferences.strength is not None or printed:
            return consensus
        return replace(consensus, reread=partial(_score_again, self, preferences.items, point))

    def score_gradients(self, preferences: Preferences, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the preferences in the scores, at the consensus."""
        estimates = consensus.estimates
        if "control" in estimates or "cuts" in estimates:
            return _gradients_with_design(preferences, consensus, self.ties, self.ridge)
        gap = consensus.scores[preferences.left] - consensus.scores[preferences.right]
        slope = preferences.row_weight * _slopes(preferences, gap, estimates.get("tie", 0.0))[0]
        slope = np.where(preferences.outcome == 0, 0.0, slope) if self.ties == "ignore" else slope
        return ScoreGradients.of_preferences(preferences.left, preferences.right, slope, self.ridge)

    def scores(self, preferences: Preferences) -> Floats:
        """Return the scores only, without standard errors, for repeated fits."""
        expect(preferences, self)
        return self._solve(PairProblem.of(preferences, self.ties, self.ridge))[0][: preferences.n_items]

    def _solve(self, problem: PairProblem) -> tuple[Floats, _Point, Trace]:
        """The point of the scores: the maximum, or where the printed steps end."""
        if self.solver == "newton":
            return problem.solve(tol=self.tol, max_iter=self.max_iter)
        start = problem.start()
        start[: problem.n_items] = 0.0
        rest: Any = {"tol": self.tol, "max_iter": self.max_iter, "what": "bradley_terry"}
        return ascend(problem.evaluate, start, learning_rate=self.learning_rate, **rest)

    def refits(self, preferences: Preferences, draws: Draws, consensus: Consensus) -> tuple[int, PairRefits] | None:
        """Return what fits many resamples at once, each begun at the scores of all preferences; else ``None``."""
        if "cuts" in consensus.estimates or self.solver == "printed":
            return None
        tie = consensus.estimates.get("tie")
        start = np.append(consensus.scores, [] if tie is None else np.log(tie))
        rows, draws = sort_preferences(preferences, draws, self.ties)
        counts = count_preferences(preferences, self.ties)
        fit = PairRefits(self, rows, draws, counts, preferences.items.offsets, start)
        return fit.at_once, fit


def _scores_of_part(method: BradleyTerry, problem: PairProblem, point: Floats, part: Preferences) -> Floats:
    """Scores by some of the preferences, with the covariates and steps of all, begun where those ended."""
    again = problem.of_part(part, method.ties)
    alike = len(again.start()) == len(point) and again.design is not None
    return again.solve(point if alike else None, tol=method.tol, max_iter=method.max_iter)[0][: part.n_items]


class Grading(NamedTuple):
    """Which step each strength is, and whether ties are a step too, step 0.

    A preference takes the step that the difference of scores and a standard logistic variable together lie in. Cuts
    between steps are the same on both sides; without ties the first is 0.
    """

    sizes: Floats
    step: Ints
    has_ties: bool

    @classmethod
    def of(cls, preferences: Preferences, ties: str) -> Grading | None:
        """Return the steps of preferences, ``None`` where there is one at most."""
        if preferences.strength is None:
            return None
        sizes, step = strength_steps(preferences)
        has_ties = ties != "ignore" and bool((preferences.outcome == 0).any())
        return cls(sizes, step, has_ties) if step.max(initial=0) > 1 else None

    def cuts(self, own: Floats) -> Floats:
        """Return the cuts above 0, from the first on, for those that are parameters."""
        return own if self.has_ties else np.append(0.0, own)

    def signed_steps(self, preferences: Preferences) -> Floats:
        """Return the step of each preference, positive where left won."""
        assert preferences.strength is not None
        place = np.minimum(np.searchsorted(self.sizes, preferences.strength), len(self.sizes) - 1)
        return np.asarray(preferences.outcome * self.step[place], np.float64)

    def start(self, signed: Floats, weight: Floats) -> Floats:
        """Return the cuts at which equal items take each step as often as is seen, and half a time more."""
        number = np.bincount(np.abs(signed).astype(np.int64), weight, int(self.step.max()) + 1) + 0.5
        number[0] *= self.has_ties
        below = np.cumsum(number)[:-1] / number.sum()
        cuts: Floats = np.log((1.0 + below) / (1.0 - below))
        return cuts if self.has_ties else cuts[1:]

    def slopes(self, part: Preferences, eta: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of each preference in the log odds, and in the cuts, (n, n_cuts)."""
        signed, cuts = self.signed_steps(part), self.cuts(own)
        step, sign = np.abs(signed).astype(np.int64), np.where(signed < 0, -1.0, 1.0)
        lower = np.where(step > 0, cuts[step - 1], -cuts[0])
        upper = np.append(cuts, np.inf)[step]
        above, below = expit(lower - sign * eta), expit(sign * eta - upper)
        ratio = np.exp(lower - upper) / -np.expm1(lower - upper)
        table, row = np.zeros((len(part), len(cuts) + 1)), np.arange(len(part))
        table[row, step] += below + ratio
        table[row, np.maximum(step - 1, 0)] -= np.where(step > 0, 1.0, -1.0) * (above + ratio)
        return sign * (above - below), table[:, 0 if self.has_ties else 1 : -1]

    def decisive(self, preferences: Preferences, ties: str) -> Preferences:
        """Return the preferences with a tie wherever a score is bounded since the winner could have won by more.

        That needs cuts which cannot grow with the scores: a win by the largest step in a circle of wins.
        """
        if ties == "ignore":
            preferences = preferences.select(preferences.outcome != 0)
        signed = self.signed_steps(preferences)
        won, lost = np.where(signed < 0, (preferences.right, preferences.left), (preferences.left, preferences.right))
        decided, largest = signed != 0, np.abs(signed) == self.step.max()
        part = one_way_parts(won[decided], lost[decided], preferences.n_items)[0]
        if not (part[won] == part[lost])[largest].any():
            return replace(preferences, strength=None)
        return replace(preferences, outcome=np.where(largest, preferences.outcome, 0).astype(np.int8), strength=None)


@dataclass(frozen=True, eq=False)
class RowDesign:
    """Preferences one by one, where counts of pairs do not suffice: with covariates, or steps of strength.

    Preferences are turned so that the item of lower code stands first, and covariates with them: exchanging sides
    changes nothing. Where covariates are controlled for and sides vary within pairs, the favour of the left side is one
    more. Rows stand pair by pair; without covariates those of one pair and outcome are added up.
    """

    covariates: CovariateDesign
    has_side: bool
    grading: Grading | None
    pair: Ints
    outcome: Floats
    weight: Floats
    values: Floats

    @classmethod
    def of(
        cls, preferences: Preferences, counts: PairCounts, covariates: CovariateDesign, grading: Grading | None,
        has_side: bool | None,
    ) -> RowDesign:  # fmt: skip
        """Return the rows of preferences; whether sides have a coefficient is asked of them unless it is known."""
        from ...kernels.pairs import pair_numbers
        from .kernels.pair_likelihood import turned_values

        n = preferences.n_items
        small, large = np.minimum(preferences.left, preferences.right), np.maximum(preferences.left, preferences.right)
        key = small.astype(np.int32 if n * n < 2**31 else np.int64) * n + large
        # pair by pair, which makes the passes over them twice as fast
        order = np.argsort(key)
        begins = np.flatnonzero(np.diff(key[order], prepend=-1))
        first = order[begins]
        numbers = pair_numbers(small[first], large[first], counts.starts, counts.second)
        pair = np.repeat(numbers, np.diff(begins, append=len(order)))
        sign = np.where(preferences.left < preferences.right, 1.0, -1.0)
        if has_side is None:
            n_turned = np.bincount(pair, sign[order] < 0, len(counts.second))
            both_ways = (n_turned > 0) & (n_turned < np.bincount(pair, minlength=len(counts.second)))
            has_side = bool(covariates.names) and bool(preferences.shown.all()) and bool(both_ways.any())
        step = preferences.outcome.astype(np.float64) if grading is None else grading.signed_steps(preferences)
        outcome, weight = (sign * step)[order], preferences.row_weight[order]
        if covariates.names or has_side:
            values = turned_values(covariates.values, sign, order, has_side)
            return cls(covariates, has_side, grading, pair, outcome, weight, values)
        most = int(np.abs(outcome).max(initial=0))
        cell = pair.astype(np.int64) * (2 * most + 1) + outcome.astype(np.int64) + most
        weights = np.bincount(cell, weight).astype(np.float64)
        kept = np.flatnonzero(weights)
        pair, signed = np.divmod(kept, 2 * most + 1)
        return cls(
            covariates, has_side, grading, pair.astype(np.int32), (signed - most).astype(np.float64), weights[kept],
            np.empty((0, len(kept))),
        )  # fmt: skip


class _Point(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs.

    ``bend`` of each pair and ``degree`` of each item make the curvature of the scores, ``curvature`` (k, k) is that of
    what stands behind them, and ``cross`` (n_items, k) lies between.
    """

    value: float
    gradient: Floats
    log_likelihood: float
    bend: Floats
    degree: Floats
    cross: Floats
    curvature: Floats


@dataclass(frozen=True, eq=False)
class PairProblem:
    """The penalised likelihood of preferences by pair; a point is scores, coefficients, and log tie parameter or cuts.

    Parameters
    ----------
    counts
        The preferences counted by pair; with the number of ties where Davidson's model explains these.
    ridge
        Precision of the prior of scores, and of the log tie parameter or cuts.
    free
        Which entries of a point are to be found; the others stay as they are at the start. ``None`` for all.
    design
        The preferences one by one, where covariates or steps of strength matter.
    """

    counts: PairCounts
    ridge: float
    free: Bools | None = None
    design: RowDesign | None = None

    @classmethod
    def of(
        cls, preferences: Preferences, ties: str, ridge: float, control: Sequence[str] | CovariateDesign = (),
        has_side: bool | None = None,
    ) -> PairProblem:  # fmt: skip
        """Return the problem of preferences with covariates, named or scaled already."""
        grading = Grading.of(preferences, ties)
        names = control.names if isinstance(control, CovariateDesign) else control
        if grading is None and not names:
            return cls(count_preferences(preferences, ties), ridge)
        if ties == "ignore":
            preferences = preferences.select(preferences.outcome != 0)
        covariates = control if isinstance(control, CovariateDesign) else covariate_design(preferences, control)
        if len(covariates.values) != len(preferences):
            covariates = covariates.of_part(preferences)
        counts = count_preferences(preferences, ties if grading is None else "split")
        design = RowDesign.of(preferences, counts, covariates, grading, has_side)
        return cls(counts, ridge, design=design)

    def of_part(self, preferences: Preferences, ties: str) -> PairProblem:
        """Return the problem of a part of the preferences, with covariates on the same scale."""
        if self.design is None:
            return PairProblem.of(preferences, ties, self.ridge)
        covariates = replace(self.design.covariates, values=np.empty((0, 0)))
        return PairProblem.of(preferences, ties, self.ridge, covariates, self.design.has_side)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.counts.wins)

    @property
    def has_tie(self) -> bool:
        """Whether ties are an outcome with a parameter."""
        return self.counts.n_ties is not None

    def start(self) -> Floats:
        """Return the point to begin with.

        From counts the scores are the log odds of winning, whatever the opponents, which saves the first Newton steps;
        with a design they are zero, and cuts are such that equal items take each step as often as is seen.
        """
        design = self.design
        if design is None:
            scores = self.counts.centre(np.log((self.counts.wins + 0.5) / (self.counts.losses + 0.5)))
            return np.append(scores, 0.0) if self.has_tie else scores
        zeros = np.zeros(self.n_items + len(design.values))
        if design.grading is not None:
            return np.concatenate([zeros, design.grading.start(design.outcome, design.weight)])
        return np.append(zeros, 0.0) if self.has_tie else zeros

    def solve(self, start: Floats | None = None, *, tol: float, max_iter: int) -> tuple[Floats, _Point, Trace]:
        """Return where the penalised log-likelihood is largest, the point evaluated, and how it was reached.

        Of many rows of a design a part is solved first: from there the steps over all of them are few.
        """
        point, design = self.start() if start is None else start, self.design
        few = 0 if design is None else len(design.pair) // _PART
        if design and few >= max(_MIN_PART_ROWS, _MIN_PART_ROWS_PER_ITEM * self.n_items) and not point.any():
            some = replace(
                design, pair=design.pair[::_PART], outcome=design.outcome[::_PART], weight=design.weight[::_PART],
                values=np.ascontiguousarray(design.values[:, ::_PART]),
            )  # fmt: skip
            part = replace(self, design=some)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                point = newton(
                    part.evaluate, partial(part.direction, tol=tol), point, tol=_PART_TOLERANCE,
                    max_iter=max_iter,
                )[0]  # fmt: skip
        direction = partial(self.direction, tol=tol)
        return newton(self.evaluate, direction, point, tol=tol, max_iter=max_iter, what="bradley_terry")

    def evaluate(self, point: Floats) -> _Point:
        """Return the penalised log-likelihood at a point."""
        counts, n, k = self.counts, self.n_items, 0 if self.design is None else len(self.design.values)
        tie = float(np.exp(point[-1])) if self.has_tie else 0.0
        penalty = np.full(len(point), self.ridge)
        penalty[n : n + k] = COEFFICIENT_RIDGE
        if self.design is None:
            from .kernels.pair_likelihood import evaluate_ties

            pairs = (counts.starts, counts.second, counts.margin, counts.number)
            model = evaluate_ties(*pairs, point[:n], tie, counts.n_ties or 0.0)
            log_likelihood, gradient, bend, degree = model.log_likelihood, model.gradient, model.bend, model.degree
            cross, curvature = np.empty((n, 0)), np.empty((0, 0))
            if self.has_tie:
                gradient = np.append(gradient, model.tie_gradient)
                cross, curvature = model.cross[:, None], np.array([[model.tie_bend]])
        else:
            from ...kernels.pairs import side_differences
            from .kernels.pair_likelihood import evaluate_controlled

            design, first = self.design, counts.first
            own, levels = np.split(point[n:], [k])
            graded: tuple[Floats | None, bool] = (None, False)
            if design.grading is not None:
                graded = design.grading.cuts(levels), design.grading.has_ties
            rows = (design.pair, design.outcome, design.weight, design.values)
            of_rows = evaluate_controlled(*rows, point[first] - point[counts.second], own, tie, *graded)
            bend, log_likelihood, curvature = of_rows.bend, of_rows.log_likelihood, of_rows.curvature
            degree = np.asarray(np.bincount(first, bend, n) + np.bincount(counts.second, bend, n), np.float64)
            by_item = side_differences(first, counts.second, np.column_stack([of_rows.pull, of_rows.cross]), n)
            gradient, cross = np.concatenate([by_item[:, 0], of_rows.gradient]), np.ascontiguousarray(by_item[:, 1:])
        gradient = gradient - penalty * point
        if self.free is not None:
            gradient = np.where(self.free, gradient, 0.0)
        value = log_likelihood - 0.5 * float((penalty * point**2).sum())
        return _Point(value, gradient, log_likelihood, bend, degree, cross, curvature + np.diag(penalty[n:]))

    def direction(self, here: _Point, tol: float) -> Floats:
        """Return the Newton step."""
        from ...kernels.laplacian import laplacian_product, newton_step

        n, diagonal, free = self.n_items, here.degree + self.ridge, self.free
        if self.design is not None:
            # the coefficients first, with the scores solved for, then the scores
            aside = self._solve_scores(here, np.column_stack([here.gradient[:n], here.cross]))
            schur = here.curvature - here.cross.T @ aside[:, 1:]
            own = np.linalg.solve(schur, here.gradient[n:] - here.cross.T @ aside[:, 0])
            step = np.concatenate([self.counts.centre(aside[:, 0] - aside[:, 1:] @ own), own])
            return step * min(1.0, _MAX_STEP_LOG_ODDS / float(np.abs(step).max(initial=1.0)))
        of_scores = laplacian_product(self.counts.starts, self.counts.second, here.bend, diagonal)
        diagonal = np.append(diagonal, np.diag(here.curvature))

        def product(vector: Floats) -> Floats:
            if not self.has_tie:
                return of_scores(vector)
            scores, tie, cross = vector[:-1], float(vector[-1]), here.cross[:, 0]
            return np.append(
                of_scores(scores) + tie * cross, float((cross * scores).sum()) + tie * float(here.curvature[0, 0])
            )

        if free is not None:
            return newton_step(
                lambda step: np.where(free, product(np.where(free, step, 0.0)), step),
                np.where(free, diagonal, 1.0), here.gradient, tol=tol,
            )  # fmt: skip
        step = newton_step(product, diagonal, here.gradient, tol=tol)
        # a small ridge would leave the level of a group to rounding
        step[:n] = self.counts.centre(step[:n])
        return step

    def _solve_scores(self, here: _Point, right: Floats) -> Floats:
        """Solve the curvature of the scores for each column."""
        from ...kernels.laplacian import solve_columns

        return solve_columns(self.counts.starts, self.counts.second, here.bend, here.degree + self.ridge, right)

    def standard_errors(self, best: _Point, offsets: Counts) -> tuple[Floats, tuple[Floats | None, ...], Floats]:
        """Return standard errors of centred scores, covariances of queries, and that of what stands behind scores."""
        shift, own = None, np.empty((0, 0))
        if best.cross.shape[1]:
            aside = self._solve_scores(best, best.cross)
            own = np.asarray(np.linalg.inv(best.curvature - best.cross.T @ aside), np.float64)
            shift = aside @ np.linalg.cholesky(own)
        pairs = (self.counts.starts, self.counts.second, best.bend, best.degree)
        return *score_standard_errors(*pairs, self.ridge, offsets, shift), own

    def estimates(self, point: Floats, own: Floats) -> dict[str, Any]:
        """Return coefficients of covariates and of the left side, and the tie parameter or all cuts."""
        table: dict[str, Any] = {}
        if self.design is not None:
            covariates, grading, k = self.design.covariates, self.design.grading, len(self.design.covariates.names)
            values, errors = point[self.n_items :], np.sqrt(np.diag(own))
            covariates.warn(values[:k])
            if k:
                table["control"] = covariates.estimates(values[:k], errors[:k])
            if self.design.has_side:
                table["side"] = {"coefficient": float(values[k]), "std_error": float(errors[k])}
            if grading is not None:
                cuts = values[len(self.design.values) :]
                table["cuts"] = [*(-cuts[::-1]).tolist(), *([] if grading.has_ties else [0.0]), *cuts.tolist()]
        return table | ({"tie": float(np.exp(point[-1]))} if self.has_tie else {})


def _score_again(
    method: BradleyTerry, items: Items, point: Floats, preferences: Preferences, free: Bools
) -> tuple[Consensus, Bools]:
    """Scores of the ``free`` items of preferences, the others as a fit has them, and which these say something of.

    Preferences with items that the fit does not know and that are not free do not count.
    """
    expect(preferences, method)
    former = items.codes_of(preferences.items, "consensus", "judgments")
    usable = free | (former >= 0)
    kept = preferences.select(usable[preferences.left] & usable[preferences.right])
    counts = count_preferences(kept, method.ties)
    free = free & (counts.wins + counts.losses > 0)
    rest = point[len(items) :]
    start = np.append(np.where(former >= 0, point[: len(items)][former], 0.0), rest)
    if free.any():
        problem = PairProblem(counts, method.ridge, np.append(free, np.zeros(len(rest), bool)))
        start = problem.solve(start, tol=method.tol, max_iter=method.max_iter)[0]
    return Consensus.of(method, preferences, start[: len(free)]), free


def _gradients_with_design(preferences: Preferences, consensus: Consensus, ties: str, ridge: float) -> ScoreGradients:
    """Gradients of the preferences in scores, coefficients and log tie or cuts, at the consensus."""
    estimates = consensus.estimates
    kept = np.flatnonzero((preferences.outcome != 0) | (ties != "ignore"))
    part = preferences if len(kept) == len(preferences) else preferences.select(kept)
    covariates = CovariateDesign.of_estimates(part, estimates.get("control", {}))
    problem = PairProblem.of(part, ties, ridge, covariates, "side" in estimates)
    design = problem.design
    assert design is not None
    own = [one["coefficient"] for one in estimates.get("control", {}).values()]
    own += [estimates["side"]["coefficient"]] if design.has_side else []
    tie = float(estimates.get("tie", 0.0))
    levels = np.array([cut for cut in estimates.get("cuts", ()) if cut > 0])
    here = problem.evaluate(np.concatenate([consensus.scores, own, [np.log(tie)] if problem.has_tie else levels]))
    values = covariates.values
    values = np.column_stack([values, np.ones(len(part))]) if design.has_side else values
    eta = consensus.scores[part.left] - consensus.scores[part.right] + values @ np.array(own)
    slope, of_levels = _slopes(part, eta, tie) if design.grading is None else design.grading.slopes(part, eta, levels)
    slope = part.row_weight * slope
    columns = slope[:, None] * values
    if problem.has_tie or design.grading is not None:
        columns = np.column_stack([columns, part.row_weight[:, None] * of_levels])
    whole = np.zeros((len(preferences), columns.shape[1]))
    whole[kept] = columns
    shared = SharedGradients.of(whole, here.cross, here.curvature)
    return ScoreGradients.of_preferences(part.left, part.right, slope, ridge, kept)._replace(shared=shared)


def _slopes(part: Preferences, eta: Floats, tie: float) -> tuple[Floats, Floats]:
    """Slopes of the log-likelihood in the log odds, and in the log tie parameter, (n, 1), of Davidson's model."""
    upper, lower = np.exp(-np.maximum(-eta, 0.0)), np.exp(-np.maximum(eta, 0.0))
    middle = tie * np.exp(-0.5 * np.abs(eta))
    total = upper + lower + middle
    # wins and half of the ties, less what the model expects of them
    won = 0.5 * (1.0 + part.outcome) - (upper + 0.5 * middle) / total
    return won, ((part.outcome == 0) - middle / total)[:, None]


# Resamples, many at once


class PairRows(NamedTuple):
    """Preferences sorted by pair and outcome, to be counted again with other weights.

    Pairs are in compressed rows, ``starts`` (n_items + 1,) and ``second`` (n_pairs,); the preferences of a pair are
    those from ``row_starts[pair]`` up to the next, each with its ``unit``, its ``weight`` and what the lower item
    ``won``: 1, 1/2 or 0.
    """

    starts: Counts
    second: Ints
    row_starts: Counts
    unit: Ints
    weight: NDArray[np.float32]
    won: NDArray[np.float32]


def sort_preferences(preferences: Preferences, draws: Draws, ties: str) -> tuple[PairRows, Draws]:
    """Return the preferences by pair, and draws that follow this order; ties are left out if they are to be ignored."""
    n = preferences.n_items
    swapped = preferences.left > preferences.right
    low = np.where(swapped, preferences.right, preferences.left).astype(np.int64)
    cell = (low * n + np.where(swapped, preferences.left, preferences.right)) * 3
    cell += np.where(swapped, -preferences.outcome, preferences.outcome) + 1
    # equal preferences may change places, as long as their weights are equal too
    order = np.argsort(cell) if draws.weight is None and draws.chance is None else np.lexsort(
        (preferences.row_weight, cell)
    )  # fmt: skip
    draws = draws.arrange(order)
    if ties == "ignore":
        order = order[preferences.outcome[order] != 0]
    cell = cell[order]
    pair = cell // 3
    new = np.flatnonzero(np.diff(pair, prepend=-1))
    first, second = np.divmod(pair[new], n)
    assert draws.unit is not None
    weight = np.ones(len(order)) if draws.weight is None else draws.weight[order]
    rows = PairRows(
        np.searchsorted(first, np.arange(n + 1)), second.astype(np.int32), np.append(new, len(order)),
        draws.unit[order], weight.astype(np.float32), (0.5 * (cell - 3 * pair)).astype(np.float32),
    )  # fmt: skip
    return rows, draws


@dataclass(frozen=True, eq=False)
class PairRefits:
    """What fits resamples of preferences, each from the scores of all of them.

    Of plain Bradley-Terry many are fitted at once. With a tie parameter, and where fitting many at once does not manage
    a resample, each is a :class:`PairProblem`.

    Parameters
    ----------
    method
        The method.
    rows, draws
        The preferences by pair, and how they are drawn.
    pair_counts
        The pair counts of all preferences.
    offsets
        Bounds of the items of each query.
    start
        Parameters that fit all preferences.
    """

    method: BradleyTerry
    rows: PairRows
    draws: Draws
    pair_counts: PairCounts
    offsets: Counts
    start: Floats

    @cached_property
    def whole(self) -> tuple[Floats, Floats, NDArray[np.float32]]:
        """Chance of the lower item of each pair, curvature at each item, and what each row won beyond expectation.

        All are those of the scores that fit all preferences.
        """
        pair_counts, n = self.pair_counts, len(self.start)
        first = pair_counts.first
        chance = 1.0 / (1.0 + np.exp(self.start[pair_counts.second] - self.start[first]))
        bend = pair_counts.number * chance * (1.0 - chance)
        degree = np.asarray(np.bincount(first, bend, n) + np.bincount(pair_counts.second, bend, n), np.float64)
        return chance, degree, self.rows.won - np.repeat(chance.astype(np.float32), np.diff(self.rows.row_starts))

    @property
    def at_once(self) -> int:
        """How many resamples to fit at once: a power of two, for vectors, that takes up some 100 megabytes at most."""
        room = min(
            _MAX_UNIT_CELLS // self.draws.n_units,
            _MAX_PAIR_CELLS // max(len(self.rows.second), 1),
            _MAX_RESAMPLES_AT_ONCE,
        )
        return 1 << max(room.bit_length() - 1, 0)

    def __call__(self, first: int, stop: int) -> Refitted:
        """Return the scores of the resamples from ``first`` to before ``stop``."""
        drawn = self.draws.copies(first)
        copies = np.empty((stop - first, len(drawn)), np.uint8 if drawn.dtype == np.uint8 else np.float32)
        copies[0] = drawn
        for number in range(first + 1, stop):
            copies[number - first] = self.draws.copies(number)
        if self.pair_counts.n_ties is not None:
            return self._fit_alone(copies, np.arange(stop - first))
        refitted = self._fit_together(copies)
        late = np.flatnonzero(~refitted.converged)
        if len(late):
            for whole, part in zip(refitted, self._fit_alone(copies, late), strict=True):
                whole[late] = part
        return refitted

    def _fit_alone(self, copies: NDArray[Any], chosen: Counts) -> Refitted:
        """Scores of some of the resamples, one after the other."""
        from ...kernels.pairs import OutcomeCounts

        rows, n_pairs, parts = self.rows, len(self.rows.second), list[tuple[Floats, int, bool, bool]]()
        pair = np.repeat(np.arange(n_pairs), np.diff(rows.row_starts))
        for number in chosen:
            weight = np.multiply(rows.weight, copies[number][rows.unit], dtype=np.float64)
            wins, losses, ties = (
                np.bincount(pair, weight * (rows.won == won), n_pairs).astype(np.float64) for won in (1.0, 0.0, 0.5)
            )
            counts = OutcomeCounts(rows.starts, rows.second, wins, losses, ties).keep(wins + losses + ties > 0)
            pair_counts = apply_ties_rule(counts, self.method.ties, self.offsets)
            judged = pair_counts.wins + pair_counts.losses > 0
            n_lost = int(((self.pair_counts.wins + self.pair_counts.losses > 0) & ~judged).sum())
            start = self.start.copy()
            start[: len(judged)] = pair_counts.centre(start[: len(judged)])
            problem = PairProblem(pair_counts, self.method.ridge)
            point, _, trace = problem.solve(start, tol=self.method.tol, max_iter=self.method.max_iter)
            apart = falls_apart(pair_counts.group, self.pair_counts.group, judged)
            parts.append((point[: len(judged)], n_lost, apart, trace.converged))
        return Refitted(*(np.array(column) for column in zip(*parts, strict=True)))

    def _fit_together(self, copies: NDArray[Any]) -> Refitted:
        """Scores of all the resamples by Newton steps, which each takes as it would alone."""
        from .kernels.pair_likelihood import count_resamples, evaluate_resamples, join_pairs, solve_resamples

        rows, ridge, n_items, n_resamples = self.rows, self.method.ridge, len(self.start), len(copies)
        starts, second = rows.starts, rows.second
        expected, degree, surprise = self.whole
        # preferences of each pair, and what each item won beyond expectation
        number, lead = np.zeros((len(second), n_resamples), np.float32), np.zeros((n_items, n_resamples), np.float32)
        count_resamples(copies, rows.unit, rows.weight, surprise, rows.row_starts, starts, second, number, lead)
        most = n_items - len(np.unique(self.pair_counts.group))
        group = np.repeat(np.arange(n_items, dtype=np.int32)[:, None], n_resamples, axis=1)
        n_joins = np.zeros(n_resamples, np.int64)
        join_pairs(starts, second, number, group, most, n_joins)
        # one step with the diagonal of the curvature that all preferences have costs nothing and saves a Newton step
        ahead = (lead - ridge * self.start[:, None]) / (degree + ridge)[:, None]
        scores = _centre(self.start[:, None] + ahead, group)
        judged, live, bend = np.ones(scores.shape, bool), np.ones(len(copies), bool), np.empty_like(number)
        for n_steps in range(_MAX_STEPS):
            drift, bent = np.zeros(scores.shape), np.zeros(scores.shape)
            evaluate_resamples(starts, second, number, expected, np.exp(scores), drift, bend, bent)
            judged = bent > 0 if n_steps == 0 else judged
            gradient = lead - drift - ridge * scores
            step = solve_resamples(starts, second, bend, bent + ridge, gradient, accuracy=_SOLVE_ACCURACY)
            step = _centre(step, group)
            size = np.abs(step).max(axis=0)
            scores += step * (live * np.minimum(1.0, _MAX_STEP_LOG_ODDS / np.maximum(size, 1.0)))
            # what is left after a Newton step is of the order of its square, or of its inexactness
            left = np.abs(step) * np.sqrt(bent + ridge) * (size + _SOLVE_ACCURACY)
            live &= left.max(axis=0) > _MAX_ERROR_SHARE
            if not live.any():
                break
        known = (self.pair_counts.wins + self.pair_counts.losses > 0)[:, None]
        apart = [
            not alike and falls_apart(own, self.pair_counts.group, seen)
            for alike, own, seen in zip(n_joins == most, group.T, judged.T, strict=True)
        ]
        return Refitted(scores.T.copy(), (known & ~judged).sum(axis=0), np.array(apart), ~live)


def _centre(values: Floats, group: Ints) -> Floats:
    """Values (n_items, n_resamples) less the mean of their group."""
    code = (group + len(group) * np.arange(group.shape[1])).ravel()
    sums, sizes = np.bincount(code, values.ravel()), np.bincount(code)
    return values - (sums / np.maximum(sizes, 1))[code].reshape(values.shape)
