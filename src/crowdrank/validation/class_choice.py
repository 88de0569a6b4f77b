"""Which class method predicts held-out grades best, and whether rankers learn better from it: what ``auto`` goes by."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..data.features import Features
from ..data.judgments import Grades
from ..protocols import Counts, Floats, Ints
from ..quality import fit_quietly
from ..registry import make
from ..resampling import with_levels
from .prediction import Figure, PredictedGrades, ratio_std_error, without_calibration
from .splits import Pairs, Split

MOST_GRADES = 10_000
"""Of more grades those of a part of the items are looked at."""

FEWEST_HELD_OUT = 250
"""With fewer held-out grades nothing can be said of methods that differ by a few hundredths."""

_N_FOLDS = 5
_TOL, _MAX_ITER, _N_RESTARTS = 1e-3, 60, 2
"""Fits to choose by need no more digits."""

_SIGNIFICANCE_LEVEL = 0.05
"""Another method takes the place of the first one if it is better at this level, two-sided, over all that are tried."""


class Candidate(NamedTuple):
    """A method by its name, and its parameters."""

    name: str
    params: Mapping[str, Any]


class ClassChoice(NamedTuple):
    """The candidate that predicts best, the log-loss of each, and how many grades were held out."""

    best: Candidate
    losses: tuple[float, ...]
    n_held_out: int


def best_class_method(grades: Grades, candidates: Sequence[Candidate]) -> ClassChoice | None:
    """Return the candidate that predicts held-out grades best; ``None`` where there are too few of them.

    Each fifth of the grades is held out in turn; each candidate is fitted to the rest and predicts them by the item's
    probabilities and what the annotator makes of each level (``grade_log_loss`` of ``compare``). The first candidate
    stays unless another is clearly better, annotators being independent and the level corrected for the number of
    candidates. What is held out, and which items are looked at, follows from who gave what, so that neither names nor
    the order of rows matter.
    """
    from scipy.special import ndtri

    known: Any = with_levels(grades)
    item, fold = _draws_and_folds(known)
    if len(grades) > MOST_GRADES:
        use = item < np.uint64(MOST_GRADES / len(grades) * float(np.iinfo(np.uint64).max))
        known, fold = known.select(use), fold[use]
    n_held_out = len(fold)
    if n_held_out < FEWEST_HELD_OUT:
        return None
    nothing = np.empty(0, np.int32)
    pairs = Pairs(nothing, nothing, np.empty(0, np.int64), np.empty(0, np.int64), nothing, np.empty(0))
    split = Split(known, fold, _N_FOLDS, pairs, known.annotator, known.n_annotators, "annotator")
    figures = [_loss(_in_few_passes(candidate), split) for candidate in candidates]
    best = min(range(len(candidates)), key=lambda number: round(figures[number].value, 9))
    rest = figures[0].sums - figures[best].sums
    gain = figures[0].value - figures[best].value
    error = ratio_std_error(rest - gain * figures[0].weight, figures[0].weight)
    if error is None or gain <= -float(ndtri(0.5 * _SIGNIFICANCE_LEVEL / max(len(candidates) - 1, 1))) * error:
        best = 0
    return ClassChoice(candidates[best], tuple(figure.value for figure in figures), n_held_out)


MOST_GRADES_LEARNED = 50_000
"""Of more grades those of a part of the queries are learned from and measured by."""

FEWEST_QUERIES = 20
"""With fewer held-out queries the standard error of a difference is itself a sixth or more off."""

_N_DIVISIONS = 3


@dataclass(frozen=True)
class QueryHalves:
    """Halves of the queries with features: rankers learn from one and are measured on the other, in turns.

    Parameters
    ----------
    grades
        Grades, their levels declared.
    matrix, lists
        Features, and the graded items of each query in them; the target is the mean gain of the grades of an item.
    item
        Item of the grades at each place of the lists.
    halves
        Queries of the lists in both halves, divided in several ways, as which are together is chance.
    """

    grades: Grades
    matrix: Any
    lists: Any
    item: Counts
    halves: Sequence[Sequence[Counts]]

    @classmethod
    def of(cls, grades: Grades, features: Features) -> QueryHalves | None:
        """Return halves alike in number of items and features, which neither names, rows nor grades decide.

        ``None`` where fewer than 20 queries have two graded items, where features are missing, which a linear ranker
        does not take, or where grades are too far apart for gains.
        """
        from ..rankers.held_out import MAX_EXPONENTIAL_TARGET, gains, query_parts, sample_queries
        from ..rankers.training_rows import Lists, Matrix

        known: Any = with_levels(grades)
        with warnings.catch_warnings():
            # the fit to all of them warns of items without features
            warnings.simplefilter("ignore")
            row = features.match(known)
        described = np.flatnonzero(row >= 0)
        item = np.full(len(features), -1)
        item[row[described]] = described
        matrix, nothing = Matrix(features.matrix), np.zeros(len(features))
        lists = Lists.of(len(features), nothing, features.items.query, sample_weight=(item >= 0).astype(np.float64))
        lists = replace(lists, weight=None).take(np.flatnonzero(lists.n_items > 1))
        height = known.grade - known.grade.min()
        if lists.n_queries < FEWEST_QUERIES or height.max() > MAX_EXPONENTIAL_TARGET:
            return None
        lists = sample_queries(matrix, lists, round(MOST_GRADES_LEARNED / len(known) * lists.n_places), seed=0)
        assert lists.rows is not None
        if not np.isfinite(features.matrix[lists.rows]).all():
            return None
        total, weight = (
            np.bincount(known.item, known.row_weight * values, known.n_items)
            for values in (gains(height, "exponential"), 1.0)
        )
        item = item[lists.rows]
        halves = [query_parts(matrix, lists, 2, seed) for seed in range(_N_DIVISIONS)]
        return cls(known, matrix, replace(lists, target=total[item] / weight[item]), item, halves)

    def ndcg(self, candidate: Candidate) -> Floats | None:
        """Return the nDCG@10 of each held-out query, of a linear ranker that learned from a method's consensus.

        The consensus of a half knows nothing of the other, whose grades are measured by as they are: that favours no
        method, or the mean of the grades where annotators share a mistake. ``None`` where nothing can be learned.
        """
        from ..rankers.held_out import Fold, held_out, rows_of
        from ..rankers.list_net import ListNet

        method, folds = _in_few_passes(candidate), []
        turns = [turn for pair in self.halves for turn in (pair, pair[::-1])]
        for learned, held in turns:
            use = np.zeros(self.grades.n_items, np.bool_)
            use[self.item[np.isin(self.lists.query, learned)]] = True
            consensus = fit_quietly(without_calibration(method), self.grades.select(use[self.grades.item]))
            targets = replace(self.lists, target=consensus.scores[self.item])
            folds.append(Fold(rows_of(self.matrix, targets, learned), rows_of(self.matrix, self.lists, held)))
        measured = held_out(ListNet, folds, 10, "given")
        if measured is None:
            return None
        has_gain = np.maximum.reduceat(self.lists.target, self.lists.offsets[:-1]) > 0
        query = np.concatenate([held[has_gain[held]] for _, held in turns])
        mean: Floats = np.bincount(query, measured.by_query[-1], self.lists.n_queries) / len(self.halves)
        return mean[has_gain]


def _draws_and_folds(grades: Grades) -> tuple[Any, Ints]:
    """A random number for the item of each grade, and the fold of each grade, both from who gave what."""
    from ..models.classes.calibration import structure_numbers
    from ..models.classes.class_method import class_rows

    items, annotators = structure_numbers(class_rows(grades), seed=0)
    item = items[grades.item]
    mixed = (item ^ (annotators[grades.annotator] * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    return item, ((mixed >> np.uint64(33)) % np.uint64(_N_FOLDS)).astype(np.int32)


def _in_few_passes(candidate: Candidate) -> Any:
    """The method, in few passes."""
    method = make("aggregator", candidate.name, candidate.params)
    brief = {"tol": _TOL, "max_iter": _MAX_ITER, "n_restarts": _N_RESTARTS}
    return replace(method, **{name: value for name, value in brief.items() if hasattr(method, name)})


def _loss(method: Any, split: Split) -> Figure:
    """The log-loss of held-out grades."""
    predicted = PredictedGrades(split)
    for number in range(_N_FOLDS):
        predicted.add(number, fit_quietly(without_calibration(method), split.outside_fold(number)))
    return predicted.figures()["grade_log_loss"]
