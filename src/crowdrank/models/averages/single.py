"""One grade of each item, the first, one at random or the highest; the others are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...protocols import Counts, Floats
from ...quality import held_out
from ...wording import one_of
from .adversaries import check_adversaries, exchange_levels

_PICKS = ("first", "random")


@dataclass(frozen=True, kw_only=True)
class Single:
    """Single labelling: one grade of each item as its score.

    What single labelling would have bought: the baseline that overlapping grades are compared with ([Yang10]_,
    [KumarLease11]_).

    When to use
    -----------
    Use it as the baseline that shows what buying a single grade per item would have given. For a result use
    ``mean_grade`` or a method that weighs annotators.

    Parameters
    ----------
    pick
        Which grade: ``"first"`` by time, by row where there are no times; or ``"random"``, drawn with ``seed`` in
        proportion to the weights.
    adversaries
        What becomes of grades by annotators whose accuracy is below one in as many as there are levels. ``"keep"``:
        they count as they are; ``"exchange"``: each is replaced by one of the other levels at random [KumarLease11]_.
    seed
        Seed of the random draws; one is made for each item.

    Notes
    -----
    ``accuracies=`` of ``fit`` says who is adversarial; for others, the mean share of the other grades of their items
    that agree with them does. Annotators whose items have no other grade are kept. See ``majority_vote``.

    The result has a ``grade`` where there are up to 30 different levels. An unjudged item has no grade, and the mean
    score of its query's judged items (of all judged items where the query has none). Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 0), ("ann", "q", "y", 2)]
    >>> Single().fit(Grades.from_rows(rows)).scores.tolist()
    [3.0, 2.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    in_grades: ClassVar[bool] = True
    pick: str = "first"
    adversaries: str = "keep"
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.pick, _PICKS, "pick")
        check_adversaries(self.adversaries, None)

    def fit(self, grades: Grades, *, accuracies: Any | None = None) -> Consensus:
        """Return the one grade of each item.

        ``accuracies`` maps annotators to the probability of being right, or is a table of annotator and accuracy;
        adversaries are those whose accuracy is below chance.
        """
        from ...kernels.segments import fill_from_query

        expect(grades, self)
        check_adversaries(self.adversaries, accuracies)
        quality = held_out(self, grades)
        if self.adversaries == "exchange" and len(grades):
            codes, _, numbers = grades.level_codes()
            codes = exchange_levels(grades, codes, len(numbers), accuracies, self.seed)
            grades = replace(grades, grade=numbers[codes])
        if self.pick == "first":
            order = grades.in_time()
            chosen: Counts = order[np.unique(grades.item[order], return_index=True)[1]]
        else:
            draws = np.random.default_rng(self.seed).random(grades.n_items)
            # rows in an order of their own, so the order of the table does not matter
            order = np.lexsort((grades.grade, grades.row_annotator, grades.item))
            items, starts = np.unique(grades.item[order], return_index=True)
            climbed: Floats = np.concatenate([[0.0], np.cumsum(grades.row_weight[order])])
            ends = np.append(starts[1:], len(order))
            # one row of each judged item in proportion to the weights
            wanted = climbed[starts] + draws[items] * (climbed[ends] - climbed[starts])
            place = np.searchsorted(climbed, wanted, side="right") - 1
            chosen = order[np.clip(place, starts, ends - 1)]
        values, judged = np.zeros(grades.n_items), np.zeros(grades.n_items, bool)
        values[grades.item[chosen]], judged[grades.item[chosen]] = grades.grade[chosen], True
        levels, grade = grades.levels_of(values, judged)
        scores = fill_from_query(values, judged, grades.items.query, grades.n_queries)
        return Consensus.of(self, grades, scores, levels=levels, grade=grade, quality=quality)


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
