"""Mean gain of each item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...errors import JudgmentError
from ...protocols import Floats
from ...quality import held_out

_MAX_GRADE = 1000.0


@dataclass(frozen=True, kw_only=True)
class MeanGain:
    r"""Mean gain: the average of 2^grade - 1 over the grades of each item.

    The score of item :math:`i`, with grades :math:`g` of weights :math:`w`, is

    .. math:: s_i = \frac{\sum w\, (2^g - 1)}{\sum w},

    the mean of the gains that nDCG gives to the grades. Since gains double with each grade, one careless high grade
    costs more than several low ones, and this is where asking again pays [Yang10]_.

    When to use
    -----------
    Use it as the target of a ranker that is measured by nDCG, where items have several grades. For a consensus on the
    scale of the grades use ``mean_grade``.

    Notes
    -----
    A ranker learns the mean gain itself: it is given :math:`\log_2(1 + s_i)`, the grade of that gain, so its own
    :math:`2^y - 1` gives :math:`s_i` back, on validation queries too, and rankers that read grades get grades. One row
    per item avoids the trouble of one row per grade, where copies of an item fill places of the ranking. A ranker with
    ``gain="given"`` or ``"linear"`` learns the score as it is.

    Scores have no standard error, as errors grow with the gain; ``bootstrap=`` gives intervals. An unjudged item has
    the mean score of its query's judged items (of all judged items where the query has none). Annotators are not
    needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 0), ("ann", "q", "y", 2), ("bob", "q", "y", 2)]
    >>> MeanGain().fit(Grades.from_rows(rows)).scores.tolist()
    [3.5, 3.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    one_pass: ClassVar[tuple[str, ...]] = ("query",)
    scale: ClassVar[str] = "gain"

    def fit(self, grades: Grades) -> Consensus:
        """Return the mean gain of each item."""
        expect(grades, self)
        return Consensus.of(self, grades, _means(grades, grades.weight), quality=held_out(self, grades))

    def scores_by_weight(self, grades: Grades) -> Callable[[Floats], Floats]:
        """Return the function from other weights of the grades to the scores."""
        return lambda weight: _means(grades, weight)


def _means(grades: Grades, weight: Floats | None) -> Floats:
    """Mean gain of each item; that of its query where nobody graded it."""
    from ...kernels.segments import fill_from_query, segment_means, segment_sums

    highest = float(grades.grade.max(initial=0.0))
    if highest > _MAX_GRADE:
        raise JudgmentError(f"a grade of {highest:g} is too large for a gain of 2 ** grade - 1; use mean_grade")
    judged = segment_sums(None, grades.item, weight, grades.n_items) > 0
    means = segment_means(np.exp2(grades.grade) - 1, grades.item, weight, grades.n_items)
    return fill_from_query(means, judged, grades.items.query, grades.n_queries)
