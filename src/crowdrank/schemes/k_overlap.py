"""Every item graded, or pair of items compared, the same number of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.judgments import Preferences, expect
from ..data.proposals import Requests
from ..protocols import Counts, Floats
from ..wording import expect_at_least
from .buying import WishList, requests_for
from .candidate_pairs import JudgedPairs, pairs_below
from .costs import Runs
from .grade_rules import UNJUDGED, ask_by_rule
from .situation import Situation


@dataclass(frozen=True, kw_only=True)
class KOverlap:
    r"""K-overlap: ask about every item, or every pair, ``k`` times.

    With ``k=1`` this is single labelling: of grades, one for each item; of preferences, random pairs. It costs
    :math:`k` per item ("k-overlap" of [Yang10]_).

    When to use
    -----------
    Use it to start a campaign, and where every item must be treated the same. It spends the same on easy and on
    disputed items.

    Parameters
    ----------
    k
        Judgments that each item or pair should have; raise it for surer labels at a higher cost.

    Notes
    -----
    The least judged items or pairs come first, in random order drawn with the seed, so all are judged once before
    any is twice. Where nothing is judged yet, pairs come in rounds: in each of them every item stands once on the left
    and once on the right, and the first one connects all items of a query. The expected gain is the fall of the
    expected squared error of an item's gain; of preferences, that of the variance of a pair's share of wins, before
    anything is known of it.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("bob", "q", "x", 2), ("ann", "q", "y", 0)])
    >>> KOverlap(k=2).propose(Situation.of(grades)).frame().select("item", "n_more").rows()
    [('y', 1)]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference")
    nominal: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 3

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the number of judgments of each item")

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have: ``k``."""
        return np.full(len(offsets) - 1, self.k)

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's grades is asked for, and that it is and is good."""
        return runs.exists, runs.good

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        reason, preferences = f"fewer than {self.k} judgments", expect(situation.judgments, self)
        if not isinstance(preferences, Preferences):
            return ask_by_rule(self, situation, reason, rounds=True)
        left, right, count = pairs_below(situation, JudgedPairs.of(preferences), self.k)
        more = self.k - count
        pair = np.repeat(np.arange(len(left)), more)
        has = count[pair] + np.arange(len(pair)) - np.repeat(np.cumsum(more) - more, more)
        # rounds: every pair once before any twice
        order = np.argsort(has, kind="stable")
        pair, has = pair[order], has[order]
        turned = has % 2 == 1
        wanted = WishList(
            things={
                "left": np.where(turned, right[pair], left[pair]), "right": np.where(turned, left[pair], right[pair]),
            },
            sided=not len(preferences), gain=_share_variance(has) - _share_variance(has + 1),
            reason=(count[pair] > 0).astype(np.int32), reasons=(UNJUDGED, reason),
            measure="variance of the pairs' shares of wins", before=None,
        )  # fmt: skip
        return requests_for(self, situation, wanted)


def _share_variance(number: Counts) -> Floats:
    """Variance of the share of wins of a pair judged so often, about one half, begun with one win of each."""
    return np.asarray(0.25 / (number + 3.0), np.float64)
