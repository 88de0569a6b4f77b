"""Median rank of each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, Rankings, expect
from ...protocols import Floats, Ints
from ...quality import held_out

_TIE_BREAK = 1e-6


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


def _standings(judgments: Rankings | Grades) -> tuple[Ints, Floats, Floats]:
    """Item, standing and weight of each judgment that compares the item with another."""
    from ...kernels.segments import grade_standings, group_codes, ranking_standings

    if isinstance(judgments, Grades):
        group = group_codes(judgments.query, judgments.annotator, judgments.block)
        return grade_standings(group, judgments.item, judgments.grade, judgments.weight)
    standing = ranking_standings(judgments.rank, judgments.offsets)
    use = (np.diff(judgments.offsets) > 1)[judgments.ranking]
    return judgments.item[use], standing[use], judgments.row_weight[judgments.ranking][use]
