"""Whether rankers learn better from a class method than from mean grades: what ``auto`` goes by."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.features import Features
from ..data.judgments import Grades
from ..protocols import Counts, Floats
from ..quality import fit_quietly
from ..registry import make
from ..resampling import with_levels
from .prediction import without_calibration

MOST_GRADES_LEARNED = 50_000
"""Of more grades those of a part of the queries are learned from and measured by."""

FEWEST_QUERIES = 20
"""With fewer held-out queries the standard error of a difference is itself a sixth or more off."""

_N_DIVISIONS = 3
_TOL, _MAX_ITER = 1e-3, 60


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
        from ..rankers.estimator import MAX_EXPONENTIAL_TARGET, gains, query_parts, sample_queries
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

    def ndcg(self, name: str) -> Floats | None:
        """Return the nDCG@10 of each held-out query, of a linear ranker that learned from a method's consensus.

        The consensus of a half knows nothing of the other, whose grades are measured by as they are: that favours no
        method, or the mean of the grades where annotators share a mistake. ``None`` where nothing can be learned.
        """
        from ..rankers.estimator import held_out, rows_of
        from ..rankers.list_net import ListNet

        method, folds = make("aggregator", name), []
        # fits to choose by need no more digits
        brief = {"tol": _TOL, "max_iter": _MAX_ITER}
        method = replace(method, **{name: value for name, value in brief.items() if hasattr(method, name)})
        turns = [turn for pair in self.halves for turn in (pair, pair[::-1])]
        for learned, held in turns:
            use = np.zeros(self.grades.n_items, np.bool_)
            use[self.item[np.isin(self.lists.query, learned)]] = True
            consensus = fit_quietly(without_calibration(method), self.grades.select(use[self.grades.item]))
            targets = replace(self.lists, target=consensus.scores[self.item])
            folds.append((rows_of(self.matrix, targets, learned), rows_of(self.matrix, self.lists, held)))
        measured = held_out(ListNet, folds, 10, "given")
        if measured is None:
            return None
        has_gain = np.maximum.reduceat(self.lists.target, self.lists.offsets[:-1]) > 0
        query = np.concatenate([held[has_gain[held]] for _, held in turns])
        mean: Floats = np.bincount(query, measured[0][-1], self.lists.n_queries) / len(self.halves)
        return mean[has_gain]
