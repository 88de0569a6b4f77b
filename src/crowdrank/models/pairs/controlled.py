"""Bradley-Terry with covariates or strengths: the problem, its Newton steps, and its standard errors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ...covariate_design import CovariateDesign, covariate_design
from ...data.consensus import Consensus, Trace
from ...data.judgments import Preferences
from ...fitting import newton
from ...pair_counts import PairCounts, count_preferences, one_way_parts, strength_steps
from ...protocols import Counts, Floats, Ints
from ...standard_errors import ScoreGradients, SharedGradients, score_standard_errors

_PART = 8
_MIN_PART_ROWS = 20_000
_MIN_PART_ROWS_PER_ITEM = 50
_PART_TOLERANCE = 1e-2
"""Every eighth preference makes a start for all, where these are this many."""

COEFFICIENT_RIDGE = 1e-3
"""Precision of the prior of coefficients, which keeps those finite that decide all preferences."""


class _Point(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs."""

    value: float
    gradient: Floats
    log_likelihood: float
    bend: Floats
    degree: Floats
    cross: Floats
    curvature: Floats


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

    @property
    def n_cuts(self) -> int:
        """Number of cuts that are parameters."""
        return int(self.step.max()) - 1 + self.has_ties

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

    def decisive(self, preferences: Preferences) -> Preferences:
        """Return the preferences with a tie wherever a score is bounded since the winner could have won by more.

        That needs cuts which cannot grow with the scores: a win by the largest step in a circle of wins.
        """
        signed = self.signed_steps(preferences)
        won, lost = np.where(signed < 0, (preferences.right, preferences.left), (preferences.left, preferences.right))
        decided, largest = signed != 0, np.abs(signed) == self.step.max()
        part = one_way_parts(won[decided], lost[decided], preferences.n_items)[0]
        if not (part[won] == part[lost])[largest].any():
            return replace(preferences, strength=None)
        return replace(preferences, outcome=np.where(largest, preferences.outcome, 0).astype(np.int8), strength=None)


@dataclass(frozen=True, eq=False)
class Controlled:
    """A Bradley-Terry problem with covariates or strengths; a point is scores, coefficients and log tie or cuts.

    Preferences are turned so that the item of lower code stands first, and covariates with them: exchanging sides
    changes nothing. Where covariates are controlled for and sides vary within pairs, the favour of the left side is one
    more. Davidson's model has the log of the tie parameter, graded preferences have cuts.
    """

    counts: PairCounts
    design: CovariateDesign
    has_side: bool
    pair: Ints
    outcome: Floats
    weight: Floats
    values: Floats
    ridge: float
    grading: Grading | None = None

    @classmethod
    def of(cls, preferences: Preferences, control: Any, ties: str, ridge: float) -> Controlled:
        """Return the problem of these preferences."""
        if ties == "ignore":
            preferences = preferences.select(preferences.outcome != 0)
        design = covariate_design(preferences, control)
        return cls._of_design(preferences, design, ties, ridge, Grading.of(preferences, ties))

    def with_preferences(self, preferences: Preferences, ties: str) -> Controlled:
        """Return the problem of a part of the preferences, with covariates on the same scale."""
        if ties == "ignore":
            preferences = preferences.select(preferences.outcome != 0)
        design = self.design.of_part(preferences)
        return self._of_design(preferences, design, ties, self.ridge, Grading.of(preferences, ties), self.has_side)

    @classmethod
    def _of_design(
        cls, preferences: Preferences, design: CovariateDesign, ties: str, ridge: float, grading: Grading | None,
        has_side: bool | None = None,
    ) -> Controlled:  # fmt: skip
        """The problem of preferences whose covariates are scaled."""
        from .kernels.controlled import turned_values

        counts = count_preferences(preferences, ties if grading is None else "split")
        # pair by pair, which makes the passes over them twice as fast
        order, pair = _sort_pairs(preferences, counts)
        sign = np.where(preferences.left < preferences.right, 1.0, -1.0)
        if has_side is None:
            asked = bool(design.names) and bool(preferences.shown.all())
            has_side = asked and _varies_within_pairs(pair, sign[order], len(counts.second))
        step = preferences.outcome.astype(np.float64) if grading is None else grading.signed_steps(preferences)
        turned, weight = (sign * step)[order], preferences.row_weight[order]
        if not design.names and not has_side:
            rows = _add_equal(pair, turned, weight)
        else:
            rows = pair, turned, weight, turned_values(design.values, sign, order, has_side)
        return cls(counts, design, has_side, *rows, ridge, grading)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.counts.wins)

    @property
    def has_tie(self) -> bool:
        """Whether ties are an outcome with a parameter."""
        return self.counts.n_ties is not None

    @property
    def n_levels(self) -> int:
        """Number of parameters beside scores and coefficients."""
        return int(self.has_tie) if self.grading is None else self.grading.n_cuts

    @classmethod
    def of_consensus(cls, preferences: Preferences, consensus: Consensus, ties: str, ridge: float) -> Controlled:
        """Return the problem that a consensus solves."""
        design = CovariateDesign.of_estimates(preferences, consensus.estimates.get("control", {}))
        grading = Grading.of(preferences, ties)
        return cls._of_design(preferences, design, ties, ridge, grading, "side" in consensus.estimates)

    def start(self) -> Floats:
        """Return scores, coefficients and log tie parameter of zero, and cuts as the steps are of equal items."""
        n, k = self.n_items, len(self.values)
        if self.grading is not None:
            return np.concatenate([np.zeros(n + k), self.grading.start(self.outcome, self.weight)])
        return np.zeros(n + k + self.has_tie)

    def maximise(self, start: Floats, tol: float, max_iter: int) -> tuple[Floats, _Point, Trace]:
        """Return where the penalised log-likelihood is largest.

        Of many preferences a part is solved first: from there the steps over all of them are few.
        """
        few = len(self.pair) // _PART
        if few >= max(_MIN_PART_ROWS, _MIN_PART_ROWS_PER_ITEM * self.n_items) and not start.any():
            part = replace(
                self, pair=self.pair[::_PART], outcome=self.outcome[::_PART], weight=self.weight[::_PART],
                values=np.ascontiguousarray(self.values[:, ::_PART]),
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = newton(
                    part.evaluate, part.direction, start, tol=_PART_TOLERANCE, max_iter=max_iter, what="bradley_terry"
                )[0]
        return newton(self.evaluate, self.direction, start, tol=tol, max_iter=max_iter, what="bradley_terry")

    def evaluate(self, point: Floats) -> _Point:
        """Return the penalised log-likelihood at a point."""
        from ...kernels.pairs import side_differences
        from .kernels.controlled import evaluate_controlled

        n, counts = self.n_items, self.counts
        first = np.repeat(np.arange(n, dtype=np.int32), np.diff(counts.starts))
        own, levels = np.split(point[n:], [len(self.values)])
        tie = float(np.exp(point[-1])) if self.has_tie else 0.0
        graded = (None, False) if self.grading is None else (self.grading.cuts(levels), self.grading.has_ties)
        gap = point[first] - point[counts.second]
        model = evaluate_controlled(self.pair, self.outcome, self.weight, self.values, gap, own, tie, *graded)
        degree = np.asarray(np.bincount(first, model.bend, n) + np.bincount(counts.second, model.bend, n), np.float64)
        by_item = side_differences(first, counts.second, np.column_stack([model.pull, model.cross]), n)
        of_items, cross = by_item[:, 0], np.ascontiguousarray(by_item[:, 1:])
        penalty = self._penalty()
        return _Point(
            model.log_likelihood - 0.5 * float((penalty * point**2).sum()),
            np.concatenate([of_items, model.gradient]) - penalty * point,
            model.log_likelihood, model.bend, degree, cross, model.curvature + np.diag(penalty[n:]),
        )  # fmt: skip

    def _penalty(self) -> Floats:
        """Precision of the prior of each entry of a point."""
        k = len(self.values)
        return np.concatenate([
            np.full(self.n_items, self.ridge), np.full(k, COEFFICIENT_RIDGE), np.full(self.n_levels, self.ridge)
        ])  # fmt: skip

    def direction(self, here: _Point) -> Floats:
        """Return the Newton step: the coefficients first, with the scores solved for, then the scores."""
        n = self.n_items
        aside = self._solve(here, np.column_stack([here.gradient[:n], here.cross]))
        from_scores, from_cross = aside[:, 0], aside[:, 1:]
        schur = here.curvature - here.cross.T @ from_cross
        coefficients = np.linalg.solve(schur, here.gradient[n:] - here.cross.T @ from_scores)
        scores = self.counts.centre(from_scores - from_cross @ coefficients)
        step = np.concatenate([scores, coefficients])
        return step * min(1.0, 8.0 / float(np.abs(step).max(initial=1.0)))

    def _solve(self, here: _Point, right: Floats) -> Floats:
        """Solve the curvature of the scores for each column."""
        from ...kernels.laplacian import solve_columns

        return solve_columns(self.counts.starts, self.counts.second, here.bend, here.degree + self.ridge, right)

    def standard_errors(self, best: _Point, offsets: Any) -> tuple[Floats, tuple[Floats | None, ...], Floats]:
        """Return standard errors of the scores, covariances of queries, and the covariance of the coefficients."""
        counts = self.counts
        std_error, blocks = score_standard_errors(
            counts.starts, counts.second, best.bend, best.degree, self.ridge, offsets
        )
        aside = self._solve(best, best.cross)
        own = np.asarray(np.linalg.inv(best.curvature - best.cross.T @ aside), np.float64)
        shift = aside @ np.linalg.cholesky(own)
        whole = []
        for query, block in enumerate(blocks):
            part = shift[int(offsets[query]) : int(offsets[query + 1])]
            whole.append(None if block is None else block + part @ part.T)
        return np.sqrt(std_error**2 + (shift**2).sum(axis=1)), tuple(whole), own

    def estimates(self, point: Floats, own: Floats) -> dict[str, Any]:
        """Return coefficients of covariates and of the left side, and the tie parameter or all cuts."""
        k = len(self.design.names)
        values, errors = point[self.n_items :], np.sqrt(np.diag(own))
        self.design.warn(values[:k])
        table: dict[str, Any] = {"control": self.design.estimates(values[:k], errors[:k])} if k else {}
        if self.has_side:
            table["side"] = {"coefficient": float(values[k]), "std_error": float(errors[k])}
        if self.grading is not None:
            own = values[len(self.values) :]
            table["cuts"] = [*(-own[::-1]).tolist(), *([] if self.grading.has_ties else [0.0]), *own.tolist()]
        return table | ({"tie": float(np.exp(point[-1]))} if self.has_tie else {})


def controlled_gradients(preferences: Preferences, consensus: Consensus, ties: str, ridge: float) -> ScoreGradients:
    """Return the gradients of the preferences in scores, coefficients and log tie or cuts, at the consensus."""
    estimates = consensus.estimates
    kept = np.flatnonzero((preferences.outcome != 0) | (ties != "ignore"))
    part = preferences if len(kept) == len(preferences) else preferences.select(kept)
    problem = Controlled.of_consensus(part, consensus, ties, ridge)
    own = [one["coefficient"] for one in estimates.get("control", {}).values()]
    own += [estimates["side"]["coefficient"]] if problem.has_side else []
    tie, grading = float(estimates.get("tie", 0.0)), problem.grading
    levels = np.array([cut for cut in estimates.get("cuts", ()) if cut > 0])
    point = np.concatenate([consensus.scores, own, [np.log(tie)] if problem.has_tie else levels])
    here, values = problem.evaluate(point), problem.design.values
    values = np.column_stack([values, np.ones(len(part))]) if problem.has_side else values
    eta = consensus.scores[part.left] - consensus.scores[part.right] + values @ np.array(own)
    rest, surplus = _surplus(part, eta, tie) if grading is None else grading.slopes(part, eta, levels)
    rest = part.row_weight * rest
    columns = rest[:, None] * values
    if problem.n_levels:
        columns = np.column_stack([columns, part.row_weight[:, None] * surplus])
    whole = np.zeros((len(preferences), columns.shape[1]))
    whole[kept] = columns
    shared = SharedGradients.of(whole, here.cross, here.curvature)
    items = np.concatenate([part.left, part.right])
    return ScoreGradients(np.tile(kept, 2), items, np.concatenate([rest, -rest]), ridge, shared)


def _surplus(part: Preferences, eta: Floats, tie: float) -> tuple[Floats, Floats]:
    """Slopes in the log odds, and in the log tie parameter, (n, 1), of Davidson's model."""
    upper, lower = np.exp(-np.maximum(-eta, 0.0)), np.exp(-np.maximum(eta, 0.0))
    middle = tie * np.exp(-0.5 * np.abs(eta))
    total = upper + lower + middle
    won = 0.5 * (1.0 + part.outcome) - (upper + 0.5 * middle) / total
    return won, ((part.outcome == 0) - middle / total)[:, None]


def _sort_pairs(preferences: Preferences, counts: PairCounts) -> tuple[Counts, Ints]:
    """Order of the preferences pair by pair, and the number of each one's pair in that order."""
    from ...kernels.pairs import pair_numbers

    n = preferences.n_items
    small, large = np.minimum(preferences.left, preferences.right), np.maximum(preferences.left, preferences.right)
    key = small.astype(np.int32 if n * n < 2**31 else np.int64) * n + large
    order = np.argsort(key)
    begins = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[begins]
    numbers = pair_numbers(small[first], large[first], counts.starts, counts.second)
    return order, np.repeat(numbers, np.diff(begins, append=len(order)))


def _varies_within_pairs(pair: Ints, sign: Floats, n_pairs: int) -> bool:
    """Whether some pair was asked both ways round."""
    total, turned = np.bincount(pair, minlength=n_pairs), np.bincount(pair, sign < 0, n_pairs)
    return bool(((turned > 0) & (turned < total)).any())


def _add_equal(pair: Ints, outcome: Floats, weight: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """Preferences pair by pair, without covariates: those of one pair and outcome are added up."""
    most = int(np.abs(outcome).max(initial=0))
    number_of_cell = pair.astype(np.int64) * (2 * most + 1) + outcome.astype(np.int64) + most
    cells: Floats = np.bincount(number_of_cell, weight).astype(np.float64)
    kept = np.flatnonzero(cells)
    number, signed = np.divmod(kept, 2 * most + 1)
    return number.astype(np.int32), (signed - most).astype(np.float64), cells[kept], np.empty((0, len(kept)))
