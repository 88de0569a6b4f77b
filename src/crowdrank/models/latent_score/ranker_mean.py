"""Any ranker as the mean of latent scores, in alternation with the scores themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.features import Features
from ...data.judgments import Grades, Judgments, Mixed
from ...data.mixed import parts_of
from ...protocols import Counts, Floats, Ints

_N_PARTS = 5
_MIN_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class RankerMean:
    """A ranker that learns expected scores of judged items and predicts those of all.

    Parameters
    ----------
    ranker
        The ranker; copies of it are fitted.
    features
        Features of items.
    judgments
        What the scores are learned from.
    row
        Row of the features of each item of the judgments, -1 without any.
    """

    ranker: Any
    features: Features
    judgments: Judgments | Mixed
    row: Ints

    @property
    def learned_items(self) -> Counts:
        """Items that were judged and have features."""
        return np.flatnonzero(self.judgments.judged_items & (self.row >= 0))

    def fit_copy(self, items: Counts, target: Floats) -> Any:
        """Return a copy of the ranker that learned the targets of some items."""
        from sklearn.base import clone

        ranker = clone(self.ranker)
        if not self._has_grades and "gain" in ranker.get_params():
            ranker.set_params(gain="linear")
        query = self.judgments.items.query[items]
        ranker.fit(self.features.matrix[self.row[items]], target[items], qid=query)
        return ranker.scorer

    def targets(self, scores: Floats) -> Floats:
        """Return what the ranker learns: expected grades that rise with the scores, or scores above the query's least.

        Grades of judgments are averaged along the scores by isotonic regression.
        """
        for part in parts_of(self.judgments):
            if isinstance(part, Grades):
                from sklearn.isotonic import IsotonicRegression

                curve = IsotonicRegression(out_of_bounds="clip")
                curve.fit(scores[part.item], part.grade, sample_weight=part.row_weight)
                expected: Floats = curve.predict(scores)
                return expected - min(float(expected.min()), 0.0)
        items = self.judgments.items
        lowest = np.full(items.n_queries, np.inf)
        np.minimum.at(lowest, items.query, scores)
        above: Floats = scores - lowest[items.query]
        return above

    def column(self, target: Floats) -> Floats:
        """Return the predicted score of each item, (n_items, 1), by rankers that did not learn from its query.

        Items of queries without judgments have the score of a ranker that learned from all. The column has mean 0 and
        standard deviation 1 over the judged items; items without features have 0.
        """
        items, learned = self.judgments.items, self.learned_items
        described = np.flatnonzero(self.row >= 0)
        part = np.full(len(items), -1)
        part[described] = self._parts(target)[described]
        column = np.zeros(len(items))
        for number in np.unique(part[described]).tolist():
            here = described[part[described] == number]
            others = learned[part[learned] != number]
            ranker = self.fit_copy(others if _has_contrast(target[others], items.query[others]) else learned, target)
            matrix = self.features.matrix[self.row[here]]
            column[here] = ranker.predict(matrix, qid=items.query[here])
        centre, spread = float(column[learned].mean()), float(column[learned].std())
        column[described] = (column[described] - centre) / (spread if spread > _MIN_SPREAD else 1.0)
        return column[:, None]

    def _parts(self, target: Floats) -> Ints:
        """Part of each item: that of its query, -1 where nobody judged in it; with one query, parts of its items."""
        items, learned = self.judgments.items, self.learned_items
        part = np.full(len(items), -1, np.int32)
        if len(np.unique(items.query[learned])) < 2:
            part[learned[np.argsort(target[learned], kind="stable")]] = np.arange(len(learned)) % _N_PARTS
            return part
        from ...rankers.held_out import query_parts
        from ...rankers.lists import Lists
        from ...rankers.matrix import Matrix

        query = items.query[learned]
        lists = Lists.of(len(learned), target[learned], query)
        parts = query_parts(Matrix(self.features.matrix[self.row[learned]]), lists, min(_N_PARTS, lists.n_queries), 0)
        of_query = np.full(items.n_queries, -1, np.int32)
        for number, chosen in enumerate(parts):
            of_query[np.unique(query)[chosen]] = number
        return of_query[items.query]

    @property
    def _has_grades(self) -> bool:
        """Whether some judgments are grades."""
        return any(isinstance(part, Grades) for part in parts_of(self.judgments))


def _has_contrast(target: Floats, query: Ints) -> bool:
    """Whether some query has items of different targets."""
    order = np.lexsort((target, query))
    return bool(((np.diff(target[order]) > 0) & (np.diff(query[order]) == 0)).any())
