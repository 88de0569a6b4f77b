"""Borda's rule and median rank: the mean or median standing of each item among those it was judged with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, Judgments, Preferences, Rankings, expect
from ...protocols import Floats, Ints
from ...quality import held_out

_TIE_BREAK = 1e-6


@dataclass(frozen=True, kw_only=True)
class Borda:
    r"""Borda count: the mean share of rivals placed below an item, less the share placed above.

    A ranking of :math:`m` items that places :math:`b` of them below an item and :math:`a` above gives it the standing

    .. math:: v = \frac{b - a}{m - 1},

    1 for the first and -1 for the last, items placed equal counting as neither; the score is the weighted mean of an
    item's standings [Borda81]_. For full rankings that is the Borda count on another scale.

    A preference is a ranking of two, so the score is (wins - losses) / preferences. Grades are ranked within each
    annotator and query: whether an annotator is severe or mild does not matter, only which item they place above which.

    When to use
    -----------
    Use it for a fast first order from rankings, and for grades by annotators whose scales differ: only each annotator's
    own order counts. Prefer ``plackett_luce`` or ``bradley_terry`` where items met rivals of unequal strength, since
    Borda gives no credit for strong rivals, and ``latent_score`` where annotators differ in quality, since Borda counts
    all of them equally.

    Notes
    -----
    Points are shares of the rivals and not sums, so an item is not better for having been judged more often, or in
    longer rankings, which partial rankings and random pairs leave to chance; in return the mean knows nothing of the
    strength of the rivals, as :class:`~crowdrank.models.pairs.bradley_terry.BradleyTerry` does.

    Rankings of one item, and an annotator's only grade in a query, say nothing and are left out. In a group of grades
    each rival counts by its weight, and several grades of one item by one annotator are averaged first. An unjudged
    item has score 0, the middle. Grades without annotators are ranked together in each query.

    Examples
    --------
    >>> from crowdrank.data.judgments import Rankings
    >>> rows = [("ann", "q", "x", 1), ("ann", "q", "y", 2), ("ann", "q", "z", 3)]
    >>> rows += [("bob", "q", "y", 1), ("bob", "q", "z", 2)]
    >>> Borda().fit(Rankings.from_rows(rows)).scores.tolist()
    [1.0, 0.5, -1.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking", "preference", "grade")
    one_pass: ClassVar[tuple[str, ...]] = ("query", "pairs")

    def fit(self, judgments: Judgments) -> Consensus:
        """Return the mean standing of each item."""
        expect(judgments, self)
        if isinstance(judgments, Preferences):
            scores = _of_preferences(judgments, judgments.weight)
        else:
            scores = _of_grades(judgments) if isinstance(judgments, Grades) else _of_rankings(judgments)(None)
        return Consensus.of(self, judgments, scores, quality=held_out(self, judgments))

    def scores_by_weight(self, judgments: Judgments) -> Callable[[Floats], Floats]:
        """Return the function from other weights of the judgments to the scores."""
        if isinstance(judgments, Preferences):
            return partial(_of_preferences, judgments)
        if isinstance(judgments, Grades):
            # rivals count by their weights, so standings change too
            return lambda weight: _of_grades(judgments.with_weights(weight))
        return _of_rankings(judgments)


@dataclass(frozen=True, kw_only=True)
class MedianRank:
    r"""Median rank aggregation: the median of the ranks given to each item.

    A ranking of :math:`m` items that places :math:`b` of them below an item and :math:`a` above gives it the rank

    .. math:: r = 1 + (n - 1) \frac{1}{2} \left(1 - \frac{b - a}{m - 1}\right),

    where :math:`n` is the number of items of the query that anybody judged. For a ranking of all of them that is the
    rank itself, tied items sharing the middle of their ranks; a partial ranking is stretched to the same length. The
    score is minus the weighted median rank. The median of full rankings is within a constant factor of the order
    nearest to all rankings, and a minority of bad rankings cannot move it far [Fagin03]_.

    When to use
    -----------
    Use it where a minority of rankings may be far off and everyone ranked most of the items. With short partial
    rankings the median is coarse; use ``borda`` or ``plackett_luce``.

    Notes
    -----
    Items with equal medians are ordered by their mean rank, of which a millionth is added to the median; an even
    number of rankings gives the mean of the two middle ranks. Grades are ranked within each annotator and query,
    several grades of one item by one annotator being averaged first; without annotators, all of a query together.
    Rankings of one item, and an annotator's only grade in a query, say nothing and are left out. An unjudged item has
    the middle rank.

    Examples
    --------
    >>> rows = [(who, "q", item, rank + 1) for who, order in [("ann", "xyz"), ("bob", "xzy"), ("cy", "zyx")]
    ...         for rank, item in enumerate(order)]
    >>> MedianRank().fit(Rankings.from_rows(rows)).scores.round(3).tolist()
    [-1.0, -2.0, -2.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking", "grade")
    one_pass: ClassVar[tuple[str, ...]] = ("query",)

    def fit(self, judgments: Rankings | Grades) -> Consensus:
        """Return minus the median rank of each item."""
        from ...kernels.segments import segment_means, segment_medians

        expect(judgments, self)
        items = judgments.items
        item, standing, weight = _standings(judgments)
        judged = np.bincount(item, minlength=len(items)) > 0
        longest = np.bincount(items.query, judged, items.n_queries)[items.query]
        # the stretch is the same for all ranks of an item, so it can follow the median
        median = segment_medians(standing, item, weight, len(items))
        mean = segment_means(standing, item, weight, len(items))
        standing = (median + _TIE_BREAK * mean) / (1 + _TIE_BREAK)
        scores = -(1 + np.maximum(longest - 1, 0) * 0.5 * (1 - standing))
        return Consensus.of(self, judgments, scores, quality=held_out(self, judgments))


def _of_preferences(preferences: Preferences, weight: Floats | None) -> Floats:
    """Wins less losses, as a share of the preferences."""
    from ...kernels.segments import segment_sums

    n = preferences.n_items
    outcome = preferences.outcome.astype(np.float64)
    lead = segment_sums(outcome, preferences.left, weight, n) - segment_sums(outcome, preferences.right, weight, n)
    n_preferences = segment_sums(None, preferences.left, weight, n) + segment_sums(None, preferences.right, weight, n)
    return np.divide(lead, n_preferences, out=np.zeros(n), where=n_preferences > 0)


def _of_grades(grades: Grades) -> Floats:
    """Mean standing of each item among an annotator's grades."""
    from ...kernels.segments import segment_means

    item, standing, weight = _standings(grades)
    return segment_means(standing, item, weight, grades.n_items)


def _of_rankings(rankings: Rankings) -> Callable[[Floats | None], Floats]:
    """Function from the weights of the rankings, their own without any, to the mean standing of each item."""
    from ...kernels.segments import ranking_standings, segment_means

    standing, number = ranking_standings(rankings.rank, rankings.offsets), rankings.ranking
    several = np.diff(rankings.offsets) > 1

    def means(weight: Floats | None) -> Floats:
        weight = rankings.row_weight if weight is None else weight
        return segment_means(standing, rankings.item, (weight * several)[number], rankings.n_items)

    return means


def _standings(judgments: Rankings | Grades) -> tuple[Ints, Floats, Floats]:
    """Item, standing and weight of each judgment that compares the item with another."""
    from ...kernels.segments import grade_standings, group_codes, ranking_standings

    if isinstance(judgments, Grades):
        group = group_codes(judgments.query, judgments.annotator, judgments.block)
        return grade_standings(group, judgments.item, judgments.grade, judgments.weight)
    standing = ranking_standings(judgments.rank, judgments.offsets)
    use = (np.diff(judgments.offsets) > 1)[judgments.ranking]
    return judgments.item[use], standing[use], judgments.row_weight[judgments.ranking][use]
