"""Uncertainty sampling, for comparison: the least certain items or pairs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..protocols import Floats, Ints
from ..wording import expect_at_least
from .buying import WishList, falling_order, requests_for, tie_draws
from .candidate_pairs import pairs_near
from .class_probabilities import CautiousLevels, confidence_gain
from .order_probabilities import order_gain
from .situation import Situation


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    r"""Uncertainty sampling: ask about what is nearest to a toss-up.

    For comparison only. The least certain pairs or items are often the nearly equal ones, and asking about them again
    teaches little: on simulated preferences it was no better than random pairs (Kendall's tau .729 against .746 after
    1,750 preferences, .823 against .810 after 3,500). Of three recorded crowds it was ahead of random pairs on two
    and level on one in the end, and nowhere ahead of ``information`` by more than the spread. Use ``information``,
    which asks where an answer is expected to decide most.

    When to use
    -----------
    Use it as a baseline. The least certain pairs are often nearly equal, so ``information`` is usually the better
    choice.

    Parameters
    ----------
    k
        Most judgments of an item or pair; raise it to stay longer with the least certain ones.

    Notes
    -----
    Preferences: pairs by :math:`|m_i - m_j| / \mathrm{sd}`, each item with the 10 next in the order of its query.
    Grades: items by the probability of their most probable level, as in ``agreement``. The expected gain is by how much
    a further judgment is expected to lower the probability that this order or level is wrong.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", a, b, "left") for who in ("ann", "bob", "cy") for a, b in ("xy", "yx", "xz", "yz")]
    >>> rows += [("di", "q", "z", b, "left") for b in "xy"]
    >>> votes = crowdrank.Preferences.from_rows(rows)
    >>> consensus = crowdrank.aggregate(votes, "bradley_terry")
    >>> requests = Uncertainty().propose(Situation.of(votes, consensus=consensus, budget=1))
    >>> sorted(requests.frame().select("left", "right").row(0))
    ['x', 'y']
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference")
    needs: ClassVar[Mapping[str, str]] = {"grade": "dawid_skene", "preference": "bradley_terry"}
    k: int = 1_000

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the most judgments of an item or pair")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        judgments = expect(situation.judgments, self)
        things, sure, gain, measure, what = (
            self._items(situation) if isinstance(judgments, Grades) else self._pairs(situation)
        )
        order = falling_order(1 - sure, tie_draws(situation.seed, len(sure)))
        wanted = WishList(
            things={name: codes[order] for name, codes in things.items()}, gain=gain[order],
            reason=np.zeros(len(order), np.int32), reasons=(f"its {what} has a probability of {{:.2f}}",),
            detail=sure[order], measure=measure, before=float((1 - sure).sum()),
        )  # fmt: skip
        return requests_for(self, situation, wanted)

    def _items(self, situation: Situation) -> tuple[dict[str, Ints], Floats, Floats, str, str]:
        """Items, the probability of the most probable level of each, and what a grade is expected to add to it."""
        grades: Grades = expect(situation.judgments, self)
        known = CautiousLevels.of(situation, grades, "uncertainty")
        counts = np.bincount(grades.item, minlength=grades.n_items)
        item = np.flatnonzero(situation.askable & (counts < self.k)).astype(np.int32)
        sure, gain = known.posterior[item].max(axis=1), confidence_gain(known.posterior[item], known.crowd)
        return {"item": item}, sure, gain, "number of items whose grade is wrong", "most probable grade"

    def _pairs(self, situation: Situation) -> tuple[dict[str, Ints], Floats, Floats, str, str]:
        """Pairs near in the order, the probability of the likelier order, and what an answer is expected to add."""
        consensus = situation.expect_consensus("uncertainty")
        left, right = pairs_near(situation, consensus)
        first = consensus.beats_each(left.astype(np.int64), right.astype(np.int64))
        sure = np.maximum(first, 1 - first)
        gap = np.abs(consensus.scores[left] - consensus.scores[right])
        usual = np.ones(len(gap))
        if consensus.std_error is not None:
            usual = consensus.std_error[left] ** 2 + consensus.std_error[right] ** 2
        gain = order_gain(gap, sure, usual)
        return {"left": left, "right": right}, sure, gain, "number of pairs in the wrong order", "likelier order"
