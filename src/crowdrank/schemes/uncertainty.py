"""Uncertainty sampling, for comparison: the least certain items or pairs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..errors import ParameterError
from ..wording import expect_at_least
from .class_probabilities import LIKELIEST, CautiousLevels, confidence_gain
from .situation import UNJUDGED, Situation, WishList, order_gain, pairs_near, separate_ties, tie_draws


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
        if isinstance(judgments, Grades):
            known = CautiousLevels.of(situation, judgments, "uncertainty")
            counts = np.bincount(judgments.item, minlength=judgments.n_items)
            item = np.flatnonzero(situation.askable & (counts < self.k)).astype(np.int32)
            sure, gain = known.posterior[item].max(axis=1), confidence_gain(known.posterior[item], known.crowd)
            things, measure, what = {"item": item}, "number of items whose grade is wrong", "most probable grade"
        else:
            consensus = situation.expect_consensus("uncertainty")
            left, right = pairs_near(situation, consensus)
            first = consensus.beats_each(left.astype(np.int64), right.astype(np.int64))
            sure = np.maximum(first, 1 - first)
            gap = np.abs(consensus.scores[left] - consensus.scores[right])
            usual = np.ones(len(gap))
            if consensus.std_error is not None:
                usual = consensus.std_error[left] ** 2 + consensus.std_error[right] ** 2
            gain, things = order_gain(gap, sure, usual), {"left": left, "right": right}
            measure, what = "number of pairs in the wrong order", "likelier order"
        order = situation.falling_order(1 - sure)
        return WishList(
            things={name: codes[order] for name, codes in things.items()},
            gain=gain[order],
            reason=np.zeros(len(order), np.int32),
            reasons=(f"its {what} has a probability of {{:.2f}}",),
            detail=sure[order],
            measure=measure,
            before=float((1 - sure).sum()),
        ).requests(self, situation)


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
        return WishList(
            things={"item": item},
            gain=gain,
            reason=(counts[item] > 0).astype(np.int32),
            reasons=(UNJUDGED, LIKELIEST),
            detail=sure[item],
            measure="number of items whose grade is wrong",
            before=float((1 - sure[situation.askable]).sum()),
        ).requests(self, situation)
