"""The least sure things first, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..asking import Situation, Wanted, bought, pairs_near
from ..asking.classes import level_posteriors
from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    r"""Uncertainty sampling: ask about what is nearest to a toss-up.

    For comparison only. What is least sure is often what cannot be told apart, and asking about it again and again
    teaches little: on simulated preferences it ended far below random pairs (Kendall's tau .655 against .829 after
    3,500 preferences). Use ``information``, which asks where an answer is expected to tell most.

    When to use
    -----------
    Use it as a baseline. What is least sure is often what cannot be told apart, so that ``information`` is usually the
    better choice.

    Parameters
    ----------
    k
        Most judgments of an item or pair.

    Notes
    -----
    Preferences: pairs by :math:`|m_i - m_j| / \mathrm{sd}`, each item with the 10 next in the order of its query.
    Grades: items by the probability of their most probable level. The expected gain is how far the probability of the
    likelier answer is from 1, which is not what a further judgment brings.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", a, b, "left") for who in ("ann", "bob", "cy") for a, b in ("xy", "yx", "xz", "yz", "zx")]
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
        if self.k < 1:
            raise ParameterError(f"k={self.k} must be at least 1; it is the most judgments of an item or pair")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        judgments = expect(situation.judgments, self)
        things, sure, measure, what = (
            self._items(situation) if isinstance(judgments, Grades) else self._pairs(situation)
        )
        draws = np.random.default_rng(situation.seed).random(len(sure))
        order = np.lexsort((draws, sure))
        wanted = Wanted(
            things={name: codes[order] for name, codes in things.items()}, gain=1 - sure[order],
            reason=np.zeros(len(order), np.int32), reasons=(f"its {what} has a probability of {{:.2f}}",),
            detail=sure[order], measure=measure, before=float((1 - sure).sum()),
        )  # fmt: skip
        return bought(self, situation, wanted)

    def _items(self, situation: Situation) -> tuple[dict[str, Any], Any, str, str]:
        """Items, and the probability of the most probable level of each."""
        sure = level_posteriors(situation, "uncertainty").max(axis=1)
        counts = np.bincount(situation.judgments.item, minlength=len(sure))  # type: ignore[union-attr]
        item = np.flatnonzero(situation.askable & (counts < self.k)).astype(np.int32)
        return {"item": item}, sure[item], "number of items whose grade is wrong", "most probable grade"

    def _pairs(self, situation: Situation) -> tuple[dict[str, Any], Any, str, str]:
        """Pairs near in the order, and the probability of the likelier order of each."""
        consensus = situation.expect_consensus("uncertainty")
        left, right = pairs_near(situation, consensus)
        first = consensus.beats_each(left.astype(np.int64), right.astype(np.int64))
        sure = np.maximum(first, 1 - first)
        return {"left": left, "right": right}, sure, "number of pairs in the wrong order", "likelier order"
