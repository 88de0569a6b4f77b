"""Features of the items that judgments are about, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data.features import Features
from ...data.judgments import Judgments
from ...protocols import Bools, Counts, Floats, Ints
from ...rankers.lists import Lists
from ...rankers.matrix import Matrix
from ...rankers.scaling import Scaling, learn_scaling


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Scaled features of each item of some judgments.

    Parameters
    ----------
    names
        Names of the features.
    scaling
        What brings features to their scale.
    values
        Scaled features of each item, (n_items, n_features), 0 for items without any.
    row
        Row of each item in the features, -1 for items without any.
    """

    names: tuple[str, ...]
    scaling: Scaling
    values: Floats
    row: Ints

    @classmethod
    def of(cls, features: Features, judgments: Judgments) -> ItemTable:
        """Return the features of the items, with the scale of those that were judged; missing numbers are refused."""
        row = np.asarray(features.items.codes_of(judgments.items, "features", "judgments"))
        used = np.flatnonzero(features.match(judgments, so="are taken as average ones") >= 0)
        features.expect_numbers(row[row >= 0])
        matrix = Matrix(np.ascontiguousarray(features.matrix[row[used]]))
        lists = Lists.of(len(used), np.zeros(len(used)), judgments.items.query[used])
        scaling = learn_scaling("overall", matrix, lists)
        values = np.zeros((len(row), len(features.names)))
        found = np.flatnonzero(row >= 0)
        values[found] = scaling.apply(features.matrix[row[found]], np.zeros(1, np.int64))
        return cls(features.names, scaling, values, row.astype(np.int32))

    def within_queries(self, judged: Bools, offsets: Counts) -> Floats:
        """Return the values less the mean of the judged items of each query, 0 for items without features."""
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        has = self.row >= 0
        use = judged & has
        number = np.maximum(np.bincount(query[use], minlength=len(offsets) - 1), 1)
        found = np.zeros_like(self.values)
        for column, values in zip(found.T, self.values.T, strict=True):
            means = np.bincount(query[use], values[use], len(number)) / number
            column[has] = values[has] - means[query[has]]
        return found
