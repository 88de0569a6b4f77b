"""Borda's rule: the mean standing of each item among those it was judged with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments, Preferences, expect
from ..protocols import Floats
from ..quality import held_out


@dataclass(frozen=True, kw_only=True)
class Borda:
    r"""Average how many of its rivals each item was placed above, less how many it was placed below.

    A ranking of :math:`m` items that places :math:`b` of them below an item and :math:`a` above gives it the standing

    .. math:: v = \frac{b - a}{m - 1},

    1 for the first and -1 for the last, items placed equal counting as neither; the score is the weighted mean of an
    item's standings [Borda81]_. For full rankings that is the Borda count on another scale.

    A preference is a ranking of two, so that the score is (wins - losses) / contests. Grades are ranked within each
    annotator and query: whether an annotator is severe or mild does not matter, only whom they place above whom.

    Notes
    -----
    Points are shares of the rivals and not sums, so that an item is not better for having been judged more often, or in
    longer rankings, which partial rankings and random pairs leave to chance; in return the mean knows nothing of the
    strength of the rivals, as :class:`~crowdrank.aggregators.bradley_terry.BradleyTerry` does.

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

    def fit(self, judgments: Judgments) -> Consensus:
        """Return the mean standing of each item."""
        expect(judgments, self)
        scores = _of_preferences(judgments) if isinstance(judgments, Preferences) else _of_standings(judgments)
        return Consensus.of(self, judgments, scores, quality=held_out(self, judgments))


def _of_preferences(preferences: Preferences) -> Floats:
    """Wins less losses, as a share of the contests."""
    from ..kernels.segments import segment_sums

    n, weight = preferences.n_items, preferences.weight
    outcome = preferences.outcome.astype(np.float64)
    lead = segment_sums(outcome, preferences.left, weight, n) - segment_sums(outcome, preferences.right, weight, n)
    contests = segment_sums(None, preferences.left, weight, n) + segment_sums(None, preferences.right, weight, n)
    return np.divide(lead, contests, out=np.zeros(n), where=contests > 0)


def _of_standings(judgments: Judgments) -> Floats:
    """Mean standing of each item in rankings or grades."""
    from ..kernels.segments import segment_means
    from ..kernels.standings import grade_standings, group_codes, ranking_standings

    if isinstance(judgments, Grades):
        group = group_codes(judgments.items.query[judgments.item], judgments.annotator, judgments.block)
        item, standing, weight = grade_standings(group, judgments.item, judgments.grade, judgments.weight)
    else:
        assert not isinstance(judgments, Preferences)
        item, standing = judgments.item, ranking_standings(judgments.rank, judgments.offsets)
        weight = judgments.row_weight[judgments.ranking] * (np.diff(judgments.offsets) > 1)[judgments.ranking]
    return segment_means(standing, item, weight, judgments.n_items)
