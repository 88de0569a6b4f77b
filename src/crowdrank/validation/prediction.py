"""How well a method predicts judgments that its fit has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..data.consensus import Consensus
from ..data.judgments import Grades
from ..protocols import Aggregator, Bools, Counts, Floats, Ints
from ..quality import fit_quietly, scores_quietly
from .pairing import fit_leads
from .splits import Pairs, Split

OWN_PULL = 4.0
"""Precision of the annotators' scales around the common one, differences of scores having a mean square of 1."""

OWN_COUNTS = 5.0
"""Answers at each level that the crowd's habits count as, beside an annotator's own."""

_MAX_CELLS_AT_ONCE = 4_000_000
_MIN_PROBABILITY = 1e-12


class Figure(NamedTuple):
    """One measure of one method: its sum over the judgments of each unit, and their weight, (n_units,) each."""

    sums: Floats
    weight: Floats

    @classmethod
    def of(cls, unit: Ints, weight: Floats, value: Floats, n: int) -> Figure:
        """Return the figure of values with weights that belong to ``n`` units."""
        sums, total = (np.bincount(unit, part, n).astype(np.float64) for part in (weight * value, weight))
        return cls(sums, total)

    @property
    def value(self) -> float:
        """The mean over all judgments."""
        return float(self.sums.sum() / self.weight.sum())

    @property
    def parts(self) -> Floats:
        """What each unit that has any weight adds to the value, times their number: their mean is the value."""
        some = self.weight > 0
        parts: Floats = self.sums[some] * (some.sum() / self.weight.sum())
        return parts

    @property
    def error(self) -> float | None:
        """Standard error of the value, units being independent; ``None`` for a single one."""
        return ratio_std_error(self.sums - self.value * self.weight, self.weight)


def ratio_std_error(rest: Floats, weight: Floats) -> float | None:
    """Return the standard error of a ratio from what is left of each unit's sum; ``None`` for a single unit."""
    n = int((weight > 0).sum())
    if n < 2:
        return None
    return float(np.sqrt((rest**2).sum() * n / (n - 1)) / weight.sum())


def predict_held_out(
    method: Aggregator, split: Split, consensus: Consensus, step: Callable[[], None] | None = None
) -> dict[str, Figure]:
    """Return the figures of a method, by measure.

    Parameters
    ----------
    method, split
        What is fitted to the judgments outside of each fold in turn.
    consensus
        What the method finds for all judgments; says whether it chooses grades.
    step
        Called after each fit.
    """
    classes = _chooses(consensus, split)
    order, grades = _PredictedOrder(split), PredictedGrades(split)
    for number in range(split.n_folds):
        seen = split.outside_fold(number)
        if classes:
            fitted = fit_quietly(without_calibration(method), seen)
            grades.add(number, fitted)
            scores = fitted.scores
        else:
            scores = scores_quietly(method, seen)
        order.add(number, scores)
        if step:
            step()
    return {**order.figures(), **(grades.figures() if classes else {})}


def without_calibration(method: Any) -> Any:
    """Return the method with its model's own probabilities: calibrated ones allow for mistakes that the crowd shares,
    which its answers repeat.
    """
    return replace(method, calibrated=False) if getattr(method, "calibrated", False) else method


def _chooses(consensus: Consensus, split: Split) -> bool:
    """Whether the method chooses among the levels that the judgments have."""
    judgments = split.judgments
    if not isinstance(judgments, Grades) or judgments.declared is None:
        return False
    return consensus.grade is not None and consensus.levels == judgments.levels


class _PredictedOrder:
    """Pairs of items whose order a fit predicts from its scores, fold after fold."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.gaps: list[Floats] = []
        self.pair: list[Counts] = []
        self.right: list[Floats] = []

    def add(self, number: int, scores: Floats) -> None:
        """Take in the scores of the fit without a fold."""
        pairs, out = self.split.pairs, self.split.pair_fold == number
        rows = np.flatnonzero(out)
        gap = scores[pairs.better[rows]] - scores[pairs.worse[rows]]
        self.gaps.append(gap)
        self.pair.append(rows)
        self.right.append(0.5 * (1.0 + np.sign(gap)))

    def figures(self) -> dict[str, Figure]:
        """Return the measures of all folds together."""
        pair, gap = np.concatenate(self.pair), np.concatenate(self.gaps)
        if not len(pair):
            return {}
        fold = np.repeat(np.arange(len(self.pair)), [len(rows) for rows in self.pair])
        pairs = self.split.pairs.some(pair)
        common, own = self._losses(pairs, gap, fold, pair)
        figures = {
            "pair_accuracy": self._figure(pairs, np.concatenate(self.right)),
            "log_loss": self._figure(pairs, common),
        }
        if self.split.unit_name == "annotator":
            figures["annotator_log_loss"] = self._figure(pairs, own)
        return figures

    def _figure(self, pairs: Pairs, value: Floats) -> Figure:
        """The sums of a value over the pairs of each unit."""
        return Figure.of(self.split.unit[pairs.first], pairs.weight, value, self.split.n_units)

    def _losses(self, pairs: Pairs, gap: Floats, fold: Counts, pair: Counts) -> tuple[Floats, Floats]:
        """Log-loss of each pair with one scale for all, and with a scale for each annotator.

        Scales are estimated from pairs of other folds and their fits. On pairs that a fit has seen, its scores look
        surer than they are, and those annotators look best whom it believed most.
        """
        common_loss, own_loss = np.empty(len(gap)), np.empty(len(gap))
        n = max(self.split.judgments.n_annotators, 1)
        pairing = self.split.pairing
        terms = None if pairing is None else np.column_stack([gap, pairing[pair]])
        start = own_scales(gap, pairs.weight, pairs.annotator, n) if terms is None else None
        for number in range(self.split.n_folds):
            here, elsewhere = fold == number, fold != number
            lead = gap if terms is None else _leads(terms, pairs.weight, elsewhere)
            rest = (lead[elsewhere], pairs.weight[elsewhere])
            common, scales = own_scales(*rest, pairs.annotator[elsewhere], n, start=start)
            common_loss[here] = np.logaddexp(0.0, -common * lead[here])
            own_loss[here] = np.logaddexp(0.0, -scales[pairs.annotator[here]] * lead[here])
        return common_loss, own_loss


def _leads(terms: Floats, weight: Floats, use: Bools) -> Floats:
    """The likeliest combination of terms, the first of them never counted the other way round."""
    coefficients = fit_leads(terms[use], weight[use])[0]
    if coefficients[0] < 0.0:
        coefficients = np.append(0.0, fit_leads(terms[use, 1:], weight[use])[0])
    leads: Floats = terms @ coefficients
    return leads


def common_scale(gap: Floats, weight: Floats, start: float | None = None) -> float:
    """Return the c of 0 or more that makes sigmoid(c * gap) likeliest, by Newton steps; a weak prior keeps it finite.

    Scores that most answers contradict say nothing: turned round they would be another order.
    """
    size = _size(gap, weight)
    if size == 0.0:
        return 0.0
    unit = gap / size
    scale = 1.0 if start is None else start * size
    for _ in range(50):
        p = _probability_not_chosen(scale * unit)
        slope = float((weight * p * unit).sum()) - 0.01 * scale
        curve = float((weight * p * (1 - p) * unit**2).sum()) + 0.01
        change = float(np.clip(slope / curve, -2.0, 2.0))
        scale += change
        if abs(change) < 1e-6:
            break
    return max(scale, 0.0) / size


def own_scales(
    gap: Floats, weight: Floats, annotator: Ints, n: int, start: tuple[float, Floats] | None = None
) -> tuple[float, Floats]:
    """Return the common scale, and that of each of ``n`` annotators, drawn towards it.

    The scale of those who guess is near 0, so their answers count for little whatever the scores; those who answer
    the wrong way round have one below 0. ``start`` are scales to start from.
    """
    common = common_scale(gap, weight, None if start is None else start[0])
    if common == 0.0:
        return 0.0, np.zeros(n)
    size = _size(gap, weight)
    unit, middle = gap / size, common * size
    scales = np.full(n, middle) if start is None else start[1] * size
    for _ in range(50):
        p = _probability_not_chosen(scales[annotator] * unit)
        slope = np.bincount(annotator, weight * p * unit, n) - OWN_PULL * (scales - middle)
        curve = np.bincount(annotator, weight * p * (1 - p) * unit**2, n) + OWN_PULL
        change = np.clip(slope / curve, -2.0, 2.0)
        scales = scales + change
        if np.abs(change).max() < 1e-3:
            break
    return common, scales / size


def _size(gap: Floats, weight: Floats) -> float:
    """Root of the mean square of the differences."""
    return float(np.sqrt(np.average(gap**2, weights=weight))) if len(gap) else 0.0


def _probability_not_chosen(lead: Floats) -> Floats:
    """Probability that the item with this lead is not chosen."""
    behind: Floats = 1.0 / (1.0 + np.exp(np.clip(lead, -500.0, 500.0)))
    return behind


class PredictedGrades:
    """Grades that a fit predicts from the level it chose and from the probabilities of all, fold after fold."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.rows: list[Counts] = []
        self.right: list[Floats] = []
        self.known: list[Bools] = []
        self.shares: list[Floats] = []

    def add(self, number: int, consensus: Consensus) -> None:
        """Take in the fit without a fold."""
        grades: Any = self.split.judgments
        rows = np.flatnonzero(self.split.fold == number)
        item = grades.item[rows]
        assert consensus.grade is not None
        self.rows.append(rows)
        self.right.append((consensus.grade[item] == grades.level_codes()[0][rows]).astype(np.float64))
        self.known.append(consensus.grade[item] >= 0)
        if consensus.probabilities is not None:
            self.shares.append(consensus.probabilities[item])

    def figures(self) -> dict[str, Figure]:
        """Return the measures of all folds together."""
        rows, known = np.concatenate(self.rows), np.concatenate(self.known)
        if not known.any():
            return {}
        figures = {"grade_accuracy": self._figure(rows[known], np.concatenate(self.right)[known])}
        if len(self.shares) == len(self.rows):
            # an item that the fit has not seen is predicted from the shares of all
            figures["grade_log_loss"] = self._figure(rows, self._losses(rows, np.concatenate(self.shares)))
        return figures

    def _figure(self, rows: Counts, value: Floats) -> Figure:
        """The sums of a value over the grades of each unit."""
        return Figure.of(self.split.unit[rows], self.split.judgments.row_weight[rows], value, self.split.n_units)

    def _losses(self, rows: Counts, shares: Floats) -> Floats:
        """Log-loss of each grade, told from the item's levels and from what its annotator makes of each level.

        That is estimated from grades of other folds as predicted by their fits, and drawn towards what all make of it.
        """
        grades: Any = self.split.judgments
        code, fold = grades.level_codes()[0][rows], self.split.fold[rows]
        who = grades.row_annotator[rows]
        n, n_levels, loss = max(grades.n_annotators, 1), shares.shape[1], np.empty(len(rows))
        step = max(1, _MAX_CELLS_AT_ONCE // n_levels**2)
        for number in range(self.split.n_folds):
            here, elsewhere = fold == number, fold != number
            crowd = _level_counts(shares[elsewhere], np.zeros(int(elsewhere.sum()), np.int64), code[elsewhere], 1)[0]
            crowd += 1.0 / n_levels
            crowd /= crowd.sum(axis=1, keepdims=True)
            for start in range(0, n, step):
                block = (who >= start) & (who < start + step)
                learn, tell = np.flatnonzero(block & elsewhere), np.flatnonzero(block & here)
                own = _level_counts(shares[learn], who[learn] - start, code[learn], min(step, n - start))
                own += OWN_COUNTS * crowd
                own /= own.sum(axis=2, keepdims=True)
                chance = (shares[tell] * own[who[tell] - start, :, code[tell]]).sum(axis=1)
                loss[tell] = -np.log(np.maximum(chance, _MIN_PROBABILITY))
        return loss


def _level_counts(shares: Floats, who: Any, code: Ints, n: int) -> Floats:
    """How often each of ``n`` annotators gave each level to items of each level, (n, n_levels, n_levels)."""
    n_levels = shares.shape[1]
    cell = who.astype(np.int64) * n_levels + code
    sums = [np.bincount(cell, shares[:, level], n * n_levels) for level in range(n_levels)]
    return np.stack([column.reshape(n, n_levels) for column in sums], axis=1)
