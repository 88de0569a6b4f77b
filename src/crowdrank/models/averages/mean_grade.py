"""Mean grade of each item, optionally drawn towards the mean of its query, and its mean gain."""

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
from ...wording import expect_at_least

_MAX_GAIN_GRADE = 1000.0


@dataclass(frozen=True, kw_only=True)
class MeanGrade:
    r"""Mean: the weighted average of the grades of each item.

    The score of item :math:`i`, with grades :math:`g` of weights :math:`w`, is

    .. math:: s_i = \frac{\sum w g + \alpha\, m}{\sum w + \alpha},

    where :math:`m` is the mean grade of the item's query. Its standard error is
    :math:`\sigma / \sqrt{\sum w + \alpha}` with :math:`\sigma^2` the variance of grades about the mean of their item,
    pooled over all items of the crowd, so an item graded once has one too.

    When to use
    -----------
    Use it where annotators are about equally good, or gave too few grades to distinguish them, and grades are on a
    scale. Where annotators differ in quality or severity use ``latent_score``.

    Parameters
    ----------
    alpha
        Number of grades equal to the query's mean that are added to each item's own. Raise it when items have few
        and unequal numbers of grades, so a single high grade does not win.

    Notes
    -----
    Weights count as numbers of grades. Standard errors are ``None`` when no item has two grades, since nothing then
    tells how far grades scatter. An unjudged item has the mean grade of its query, or of all grades where the query has
    none, and the standard deviation of the judged items' scores as its standard error. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 2), ("ann", "q", "y", 1)]
    >>> consensus = MeanGrade().fit(Grades.from_rows(rows))
    >>> consensus.scores.tolist(), consensus.std_error.round(3).tolist()
    ([2.5, 1.0], [0.5, 0.707])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    one_pass: ClassVar[tuple[str, ...]] = ("query",)
    in_grades: ClassVar[bool] = True
    alpha: float = 0.0

    def __post_init__(self) -> None:
        expect_at_least(self, 0, "alpha")

    def fit(self, grades: Grades) -> Consensus:
        """Return the mean grade of each item and its standard error."""
        expect(grades, self)
        scores, own, totals = _means(grades, grades.weight, self.alpha)
        std_error = self.errors_from_sums(*_squares(grades, own, totals), totals, scores)
        return Consensus.of(self, grades, scores, std_error=std_error, quality=held_out(self, grades))

    def error_sums(self, grades: Grades) -> tuple[float, float, Floats]:
        """Return the sum of squares about the means of items, its degrees of freedom, and the weight of each item."""
        _, own, totals = _means(grades, grades.weight, self.alpha)
        return *_squares(grades, own, totals), totals

    def errors_from_sums(self, squares: float, freedom: float, totals: Floats, scores: Floats) -> Floats | None:
        """Return the standard error of each score from sums over parts of the grades; see :meth:`error_sums`."""
        judged = totals > 0
        if freedom <= 0:
            return None
        variance = squares / freedom
        unknown = float(scores[judged].std(ddof=1)) if judged.sum() > 1 else variance**0.5
        return np.where(judged, np.sqrt(variance / np.maximum(totals + self.alpha, 1e-300)), unknown)

    def scores_by_weight(self, grades: Grades) -> Callable[[Floats], Floats]:
        """Return the function from other weights of the grades to the scores."""
        return lambda weight: _means(grades, weight, self.alpha)[0]


def _means(grades: Grades, weight: Floats | None, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Score of each item, the mean of its own grades, its query's where it has none, and the weight of its grades."""
    from ...kernels.segments import segment_means, segment_sums

    items = grades.items
    totals = segment_sums(None, grades.item, weight, len(items))
    own = segment_means(grades.grade, grades.item, weight, len(items))
    overall = float((totals * own).sum() / totals.sum()) if totals.any() else 0.0
    centre = segment_means(own, items.query, totals, items.n_queries, overall)[items.query]
    own = np.where(totals > 0, own, centre)
    # this way equal grades are exactly their mean
    return own + alpha * (centre - own) / np.maximum(totals + alpha, 1e-300), own, totals


def _squares(grades: Grades, own: Floats, totals: Floats) -> tuple[float, float]:
    """Sum of squares of grades about the mean of their item, and its degrees of freedom."""
    squares = (grades.grade - own[grades.item]) ** 2
    total = float(squares.sum() if grades.weight is None else squares @ grades.weight)
    return total, float(totals.sum()) - int((totals > 0).sum())


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
        return Consensus.of(self, grades, _mean_gains(grades, grades.weight), quality=held_out(self, grades))

    def scores_by_weight(self, grades: Grades) -> Callable[[Floats], Floats]:
        """Return the function from other weights of the grades to the scores."""
        return lambda weight: _mean_gains(grades, weight)


def _mean_gains(grades: Grades, weight: Floats | None) -> Floats:
    """Mean gain of each item; that of its query where nobody graded it."""
    from ...kernels.segments import fill_from_query, segment_means, segment_sums

    highest = float(grades.grade.max(initial=0.0))
    if highest > _MAX_GAIN_GRADE:
        raise JudgmentError(f"a grade of {highest:g} is too large for a gain of 2 ** grade - 1; use mean_grade")
    judged = segment_sums(None, grades.item, weight, grades.n_items) > 0
    means = segment_means(np.exp2(grades.grade) - 1, grades.item, weight, grades.n_items)
    return fill_from_query(means, judged, grades.items.query, grades.n_queries)
