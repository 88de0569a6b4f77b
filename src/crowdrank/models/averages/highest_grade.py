"""Highest grade of each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...quality import held_out


@dataclass(frozen=True, kw_only=True)
class HighestGrade:
    """Maximum: the best grade that anyone gave to an item.

    It suits crowds whose errors are oversights, where one annotator who saw the point outweighs several who missed it
    ("Highest-k" of [Yang10]_); a single careless high grade is never corrected.

    When to use
    -----------
    Use it where errors are oversights, so one annotator who saw the point outweighs several who missed it. Avoid
    it with careless or generous annotators: one high grade is never corrected.

    Notes
    -----
    Weights do not matter. The result has a ``grade`` where there are up to 30 different levels. An unjudged item has no
    grade, and the mean score of its query's judged items (of all judged items where the query has none). Annotators are
    not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 1), ("bob", "q", "x", 3), ("ann", "q", "y", 2), ("bob", "q", "y", 2)]
    >>> HighestGrade().fit(Grades.from_rows(rows)).scores.tolist()
    [3.0, 2.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    one_pass: ClassVar[tuple[str, ...]] = ("query",)
    in_grades: ClassVar[bool] = True

    def fit(self, grades: Grades) -> Consensus:
        """Return the highest grade of each item."""
        from ...kernels.segments import fill_from_query

        expect(grades, self)
        highest = np.full(grades.n_items, -np.inf)
        np.maximum.at(highest, grades.item, grades.grade)
        judged = highest > -np.inf
        levels, grade = grades.levels_of(highest, judged)
        scores = fill_from_query(highest, judged, grades.items.query, grades.n_queries)
        return Consensus.of(self, grades, scores, levels=levels, grade=grade, quality=held_out(self, grades))
