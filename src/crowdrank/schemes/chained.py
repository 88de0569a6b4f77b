"""Pairs in a chain, so that every item is compared a number of times and judges read one new item at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.judgments import Preferences, expect
from ..data.proposals import Requests
from ..errors import ParameterError
from ..wording import expect_at_least
from .situation import UNJUDGED, JudgedPairs, Situation, WishList, thing_keys


@dataclass(frozen=True, kw_only=True)
class Chained:
    """Chain: pairs until every item was compared at least ``least`` times, each with one item of the last.

    The next pair holds one item of the last pair and a second one, which has the fewest comparisons so far and has met
    the first least often, at random among equals. So a judge who goes along the list reads one new item at a time.
    A chain is connected, and it begins where items have been compared least. Sides are balanced: the item that stood on
    the left more often goes right.

    Pairs do not depend on answers, so reliability computed from them is honest. With ``near`` above 0 that share of
    them is adaptive: the second item is the one nearest by the scores so far of those the first has met least often.
    The others stay random. They join parts of the scale that would drift apart, and keep the scale separation
    reliability from growing where there is nothing to find ([measured](../evidence/comparative-judgement.md)).

    When to use
    -----------
    Use it to begin comparative judgement, and between adaptive rounds, so that no script is left behind.

    Parameters
    ----------
    least
        Comparisons that every item should have; raise it for a surer scale.
    near
        Share of the pairs that are chosen near each other on the scale so far; raise it, to .5 at most, for a somewhat
        surer order. While nothing is judged all pairs are random.

    Notes
    -----
    The expected gain counts the comparisons that items are short of, 1 or 2 for a pair.

    Examples
    --------
    >>> import crowdrank as cr
    >>> asked = cr.propose(None, "chained", {"item": list("abcdef")}, params={"least": 3})
    >>> asked["n_more"].sum() >= 9
    True
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    begins_alone: ClassVar[bool] = True
    least: int = 10
    near: float = 0.0

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "least")
        if not 0 <= self.near <= 1:
            raise ParameterError(f"near={self.near} is no share; give a number from 0 to 1, such as 0.5")

    @property
    def needs(self) -> Mapping[str, str]:
        """The consensus that near items are found by."""
        return {"preference": "bradley_terry"} if self.near > 0 else {}

    def propose(self, situation: Situation) -> Requests:
        """Return pairs that bring every item to its number of comparisons, in a chain through each query."""
        preferences: Preferences = expect(situation.judgments, self)
        n = preferences.n_items
        left, right = (np.bincount(side, minlength=n) for side in (preferences.left, preferences.right))
        asked = JudgedPairs.of(preferences)
        met = dict(zip(asked.key.tolist(), asked.count.tolist(), strict=True))
        rng = np.random.default_rng(situation.seed)
        scores = None if self.near == 0 or situation.consensus is None else situation.consensus.scores
        pairs: list[tuple[int, int]] = []
        gains: list[int] = []
        most = np.inf if situation.n_to_choose is None else situation.n_to_choose
        for query in range(preferences.n_queries):
            span = preferences.items.span(query)
            items = (np.flatnonzero(situation.askable[span]) + span.start).astype(np.int32)
            if len(items) < 2:
                continue
            number = left[items] + right[items]
            here = int(rng.choice(np.flatnonzero(number == number.min())))
            while number.min() < self.least and len(pairs) < most:
                keys = thing_keys({"left": np.full(len(items), items[here]), "right": items}, n)
                before = np.array([met.get(key, 0) for key in keys.tolist()])
                urgent: Any = number
                if scores is not None and rng.random() < self.near:
                    # of those that lack comparisons, if any
                    gap = np.abs(scores[items] - scores[items[here]])
                    urgent = gap + (number >= self.least) * (1 + 2 * gap.max())
                order = np.lexsort((rng.random(len(items)), before, urgent))
                # a pair that was asked already only where nothing else is left
                fresh = order[(before[order] == before[np.arange(len(items)) != here].min()) & (order != here)]
                there = int(fresh[0])
                one, other = int(items[here]), int(items[there])
                turned = left[one] - right[one] > left[other] - right[other]
                pairs.append((other, one) if turned else (one, other))
                left[pairs[-1][0]] += 1
                right[pairs[-1][1]] += 1
                met[int(keys[there])] = met.get(int(keys[there]), 0) + 1
                gains.append(int((number[[here, there]] < self.least).sum()))
                number[[here, there]] += 1
                here = there
        first, second = np.array(pairs, np.int32).reshape(-1, 2).T
        before = np.bincount(preferences.left, minlength=n) + np.bincount(preferences.right, minlength=n)
        short = np.maximum(self.least - before, 0)
        new = (before[first] == 0) | (before[second] == 0)
        return WishList(
            things={"left": first, "right": second}, gain=np.array(gains, np.float64),
            reason=np.where(new, 0, 1).astype(np.int32),
            reasons=(UNJUDGED, f"compared fewer than {self.least} times, or joins those that were"),
            measure="number of comparisons that items are short of", before=float(short[situation.askable].sum()),
            sided=True,
        ).requests(self, situation)  # fmt: skip
