"""Mean grade of each item, optionally drawn towards the mean of its query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...protocols import Floats
from ...quality import held_out
from ...wording import expect_at_least


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
