"""Further opinions on an item until its most probable grade is probable enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..errors import ParameterError
from .buying import WishList, requests_for, separate_ties, tie_draws
from .class_probabilities import LIKELIEST, CautiousLevels, confidence_gain
from .grade_rules import UNJUDGED
from .situation import Situation


@dataclass(frozen=True, kw_only=True)
class Agreement:
    r"""Stop at confidence: ask again until the most probable level of an item is sure enough.

    The probabilities are those of the consensus of a class method, which weighs each grade by its annotator, with the
    doubt about annotators whose grades few others repeat, as in ``information``. The expected gain of further grades is
    how much they are expected to raise the probability that the chosen level is right; of one,

    .. math:: \sum_l \max_j p_j \pi_{jl} - \max_j p_j,

    where :math:`p` are the item's probabilities and :math:`\pi` is how the crowd as a whole mixes up levels. Where one
    grade cannot change the choice, two or three may: the largest mean of one, two or three counts.

    When to use
    -----------
    Use it for classes or grades where each item must be right with a stated probability. To spend a fixed budget where
    it helps most use ``information``.

    Parameters
    ----------
    confidence
        Probability at which an item is settled; raise it for surer and costlier labels.
    least
        Fewest grades of an item, however sure it is; raise it where the first annotators may be wrong together.
    k
        Most grades of an item, however unsure it is; raise it to spend more on disputed items.

    Notes
    -----
    Each call asks for one grade more of an item, as the answer may settle it. Items without their fewest grades come
    first, in random order, then the largest expected gain.
    Works for classes without an order too.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", item, int(item in "xy")) for who in ("ann", "bob", "cy") for item in "vwxy"]
    >>> grades = crowdrank.Grades.from_rows([*rows, ("ann", "q", "z", 1), ("bob", "q", "z", 0)])
    >>> consensus = crowdrank.aggregate(grades, "dawid_skene")
    >>> Agreement().propose(Situation.of(grades, consensus=consensus)).frame()["item"].to_list()
    ['z']
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {"grade": "dawid_skene"}
    confidence: float = 0.95
    least: int = 2
    k: int = 11

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ParameterError(f"confidence={self.confidence} must lie between 0 and 1")
        if not 1 <= self.least <= self.k:
            raise ParameterError(f"least={self.least} must be at least 1 and not above k={self.k}, the most grades")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        grades: Grades = expect(situation.judgments, self)
        known = CautiousLevels.of(situation, grades, "agreement")
        counts = np.bincount(grades.item, minlength=grades.n_items)
        sure = known.posterior.max(axis=1)
        open_ones = situation.askable & (counts < self.k) & ((sure < self.confidence) | (counts < self.least))
        item = np.flatnonzero(open_ones).astype(np.int32)
        gain = confidence_gain(known.posterior[item], known.crowd)
        draws = tie_draws(situation.seed, len(item))
        # those without their fewest grades come first, the least judged of them before others
        lacking = np.maximum(self.least - counts[item], 0)
        order = np.lexsort((np.where(lacking > 0, draws, -separate_ties(gain, draws)), -lacking))
        item, gain = item[order], gain[order]
        wanted = WishList(
            things={"item": item}, gain=gain, reason=(counts[item] > 0).astype(np.int32),
            reasons=(UNJUDGED, LIKELIEST), detail=sure[item],
            measure="number of items whose grade is wrong", before=float((1 - sure[situation.askable]).sum()),
        )  # fmt: skip
        return requests_for(self, situation, wanted)
