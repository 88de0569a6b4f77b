"""Schemes that look at the grades of one item at a time: those grades in order, expected errors, requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import polars as pl

from ..data.judgments import Grades, Preferences, expect
from ..data.proposals import Requests
from ..errors import JudgmentError, ParameterError
from ..protocols import Counts, Floats, Ints
from ..wording import expect_at_least
from .situation import UNJUDGED, JudgedPairs, Situation, WishList, falling_order, pairs_below, tie_draws

MEASURE = "squared error of the items' gains"

_MAX_GRADE = 500.0
_NOISE_SHARE_OF_SINGLE_GRADES = 0.5


class GradeRule(Protocol):
    """A scheme that says how many grades an item should have from those it has, in the order in which they came."""

    kinds: ClassVar[tuple[str, ...]]

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have in all.

        The grades of item ``i``, first one first, are ``grade[offsets[i]:offsets[i + 1]]``.
        """
        ...

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's first ``k`` grades is asked for, and that it is and is good."""
        ...


@dataclass(frozen=True, eq=False)
class OrderedGrades:
    """The grades of each item in the order in which they were given.

    Parameters
    ----------
    grade
        Grades, item after item; those of an item by time, by row where there is no time.
    offsets
        Grades of item ``i`` are ``grade[offsets[i]:offsets[i + 1]]``.
    """

    grade: Floats
    offsets: Counts

    @classmethod
    def of(cls, grades: Grades) -> Self:
        """Return the grades item after item."""
        order = grades.in_time()
        order = order[np.argsort(grades.item[order], kind="stable")]
        counts = np.bincount(grades.item, minlength=grades.n_items)
        return cls(grades.grade[order], np.concatenate([[0], np.cumsum(counts)]))

    @property
    def counts(self) -> Counts:
        """Number of grades of each item."""
        return np.diff(self.offsets)

    def first(self, number: Counts) -> OrderedGrades:
        """Return the first grades of each item, up to a number."""
        number = np.minimum(number, self.counts)
        place = np.arange(len(self.grade)) - np.repeat(self.offsets[:-1], self.counts)
        keep = place < np.repeat(number, self.counts)
        return OrderedGrades(self.grade[keep], np.concatenate([[0], np.cumsum(number)]))


def ask_by_rule(rule: GradeRule, situation: Situation, reason: str, *, rounds: bool = False) -> Requests:
    """Return the requests of a rule, what promises the largest fall of the error of the gains first.

    ``reason`` says why a judged item is asked about again. With ``rounds`` items with the fewest grades come first, in
    random order.
    """
    grades: Grades = expect(situation.judgments, rule)
    asked = OrderedGrades.of(grades)
    more = np.where(situation.askable, rule.n_wanted(asked.grade, asked.offsets) - asked.counts, 0)
    wanted = units_of(grades, asked.counts, np.maximum(more, 0), reason, situation, rounds=rounds)
    return wanted.requests(rule, situation)


def units_of(
    grades: Grades, counts: Counts, more: Counts, reason: str, situation: Situation, *, rounds: bool = False
) -> WishList:
    """Return the single grades to buy where ``more`` says how many each item should get; see :func:`ask_by_rule`."""
    error = gain_errors(grades)
    item = np.repeat(np.arange(grades.n_items, dtype=np.int32), more)
    number = (np.arange(len(item)) - np.repeat(np.cumsum(more) - more, more)).astype(np.int32)
    gain = error(item, number) - error(item, number + 1)
    draws = tie_draws(situation.seed, grades.n_items)[item]
    order = np.lexsort((draws, counts[item] + number)) if rounds else falling_order(gain, draws)
    item, gain = item[order], gain[order]
    return WishList(
        things={"item": item},
        gain=gain,
        reason=(counts[item] > 0).astype(np.int32),
        reasons=(UNJUDGED, reason),
        measure=MEASURE,
        before=float(error(np.arange(grades.n_items, dtype=np.int32), 0)[situation.askable].sum()),
    )


def gain_errors(grades: Grades) -> Callable[[Ints, Any], Floats]:
    r"""Return what gives the expected squared error of the mean gain of items once they have so many further grades.

    The mean of :math:`m` grades is off by a variance of :math:`s^2 / m`, where :math:`s^2` is the variance of the
    grades of one item; without a grade, by that of all grades, :math:`v`. Gains :math:`2^g - 1` double with each grade,
    and so does what an error costs:

    .. math:: e(m) = (\ln 2 \cdot 2^g)^2 \, s^2 / m, \qquad e(0) = (\ln 2 \cdot 2^g)^2 \, v,

    with :math:`g` the grade of the item's present mean gain. An item without grades takes the mean of
    :math:`(\ln 2 \cdot 2^g)^2` over those of its query. Where no item has two grades, half of their variance is taken
    for noise.

    Notes
    -----
    What is expected is a guide. Simulated graders had graded every item once; two more grades of the good ones were
    expected to lower the error of the gains by 62 %, and lowered it by 50 to 56 % where errors go both ways, by 70 %
    where they are over-ratings, and by 19 to 25 % where they are misses, which nobody sees in the grades.
    """
    from ..kernels.segments import fill_from_query, segment_means, segment_sums

    if grades.grade.max(initial=0.0) > _MAX_GRADE:
        raise JudgmentError(f"a grade above {_MAX_GRADE:g} has no gain of 2 ** grade - 1; give grades of fewer levels")
    number = segment_sums(None, grades.item, None, grades.n_items)
    judged = number > 0
    means = segment_means(grades.grade, grades.item, None, grades.n_items)
    total = float(grades.grade.var()) if len(grades) else 1.0
    squares = float(((grades.grade - means[grades.item]) ** 2).sum())
    within = (squares + _NOISE_SHARE_OF_SINGLE_GRADES * total) / (len(grades) - int(judged.sum()) + 1)
    total = max(total, within)
    gain = segment_means(np.exp2(grades.grade) - 1, grades.item, None, grades.n_items)
    slope = fill_from_query((np.log(2) * (1 + gain)) ** 2, judged, grades.items.query, grades.n_queries)
    slope = slope if judged.any() else np.ones(len(number))

    def error(item: Ints, further: Any) -> Floats:
        n_grades = number[item] + further
        return slope[item] * np.where(n_grades > 0, within / np.maximum(n_grades, 1), total)

    return error


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
        turned, left, right = has % 2 == 1, left[pair], right[pair]
        return WishList(
            things={"left": np.where(turned, right, left), "right": np.where(turned, left, right)},
            sided=not len(preferences),
            # the variance of a share of wins about one half, begun with one win of each
            gain=0.25 / (has + 3.0) - 0.25 / (has + 4.0),
            reason=(count[pair] > 0).astype(np.int32),
            reasons=(UNJUDGED, reason),
            measure="variance of the pairs' shares of wins",
            before=None,
        ).requests(self, situation)


@dataclass(frozen=True, kw_only=True)
class IfGoodK:
    r"""If-good-k: one grade per item, and ``k - 1`` more where the first is good.

    A share :math:`g` of good first grades makes it cost :math:`1 + (k - 1) g` per item ("if-good-k" of [Yang10]_).
    Gains double with each grade, so an item rated too high costs most; asking again about good ones only buys nearly
    the error of ``k`` grades of everything for half the money. It pays where errors go upwards. Misses, good items
    graded as poor, are never asked about again: where they are many, use ``k_overlap``.

    When to use
    -----------
    Use it for relevance grades where few items are good and errors go upwards. Where good items are often missed use
    ``k_overlap``.

    Parameters
    ----------
    k
        Grades that an item with a good first grade should have; raise it to check good items more.
    good_from
        Lowest good grade: a number, or one of the levels in words; raise it to check fewer items.

    Notes
    -----
    The first grade is the first by ``time``; without times, that of the first row, so the order of rows matters
    then. Grades that arrive later never change what the first one was. What promises the largest fall of the expected
    squared error of an item's gain comes first. Train on ``mean_gain``, not on a row for each grade.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 0), ("ann", "q", "z", 2)])
    >>> IfGoodK().propose(Situation.of(grades)).frame().select("item", "n_more", "reason").rows()
    [('x', 2, 'its first grade is 2 or better'), ('z', 2, 'its first grade is 2 or better')]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 3
    good_from: float | str = 2

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the number of grades of a good item")

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have: ``k`` where the first is good, otherwise one."""
        number = np.ones(len(offsets) - 1, np.int64)
        judged = np.flatnonzero(np.diff(offsets))
        number[judged[grade[offsets[judged]] >= float(self.good_from)]] = self.k
        return number

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's grades is asked for, and that it is and is good."""
        return np.append(runs.exists[:1], runs.good[1:]), runs.first_and_this

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        number = expect(situation.judgments, self).level_number(self.good_from)
        return ask_by_rule(replace(self, good_from=number), situation, f"its first grade is {self.good_from} or better")


@dataclass(frozen=True, kw_only=True)
class GoodTillBad:
    r"""Good-till-bad: ask until the first grade that is not good, at most ``k`` times.

    It costs :math:`1 + \sum_{t=1}^{k-1} P(\text{the first } t \text{ grades are good})` per item ("good-till-bad" of
    [Yang10]_), one grade at a time.

    When to use
    -----------
    Use it where grades that are too high do the harm and answers come one at a time. Where answers come in batches use
    ``if_good_k``.

    Parameters
    ----------
    k
        Most grades of an item; raise it to check items longer that stay good.
    good_from
        Lowest good grade: a number, or one of the levels in words; raise it to check fewer items.

    Notes
    -----
    Grades count in the order of ``time``; without times, in that of the rows. Each call asks for one grade more of an
    item, since the next question depends on the answer. What promises the largest fall of the expected squared error of
    an item's gain comes first. Train on ``mean_gain``, not on a row for each grade.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 2), ("ann", "q", "y", 2), ("bob", "q", "y", 0)]
    >>> GoodTillBad().propose(Situation.of(Grades.from_rows(rows))).frame().select("item", "n_more", "reason").rows()
    [('x', 1, 'every grade is 2 or better')]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 11
    good_from: float | str = 2

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the most grades of an item")

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have: one more where all are good and ``k`` are not reached."""
        counts = np.diff(offsets)
        item = np.repeat(np.arange(len(counts)), counts)
        n_good = np.bincount(item, grade >= float(self.good_from), len(counts))
        return np.where(n_good == counts, np.minimum(counts + 1, self.k), counts)

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's grades is asked for, and that it is and is good."""
        return runs.all_before, runs.all_and_this

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        number = expect(situation.judgments, self).level_number(self.good_from)
        return ask_by_rule(replace(self, good_from=number), situation, f"every grade is {self.good_from} or better")


@dataclass(frozen=True, kw_only=True)
class Pilot:
    r"""Pilot: overlap on a share of the items to learn annotators, single grades on the rest.

    The overlap tells how good each annotator is; with that known, a single grade is worth its posterior mean, a poor
    annotator's grade pulled to the middle, and grades of many items teach a ranker more than many grades of a few
    [KumarLease11]_. Half of the money at five grades per item, half as single grades, gained 3.5 points of nDCG@10 over
    single grades alone on OHSUMED with simulated annotators. Aggregate with ``dawid_skene`` or ``naive_bayes``, and
    train on the expected grades.

    When to use
    -----------
    Use it to train a ranker from a fixed budget with annotators of unknown quality. It needs items enough for the pilot
    to distinguish annotators.

    Parameters
    ----------
    k
        Grades of an item that is graded several times; raise it to learn annotators from fewer items.
    share
        Share of all grades that goes to such items; raise it where annotators differ much in quality.

    Notes
    -----
    Items that have several grades already are the first to be graded several times; others are drawn with the seed.
    Requests of both parts alternate so that whatever the budget, the shares hold, the grades bought before included.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> grades = Grades.from_rows([("ann", "q", f"i{n}", 1) for n in range(12)])
    >>> requests = Pilot(k=3).propose(Situation.of(grades))
    >>> requests.frame().select("n_more", "reason").rows()[0], len(requests)
    ((2, 'one of the items that are graded 3 times'), 3)
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 5
    share: float = 0.5

    def __post_init__(self) -> None:
        expect_at_least(self, 2, "k", hint="annotators are learned where several grade an item")
        if not 0 < self.share < 1:
            raise ParameterError(f"share={self.share} must lie between 0 and 1; it is the share of grades that overlap")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        grades: Grades = expect(situation.judgments, self)
        counts = np.bincount(grades.item, minlength=grades.n_items)
        draws = np.random.default_rng(situation.seed).random(grades.n_items)
        # the most graded items are graded several times, then others as drawn
        several, single = self.share / self.k, 1 - self.share
        items = np.flatnonzero(situation.askable)
        number = max(1, round(len(items) * several / (several + single))) if len(items) else 0
        chosen = np.zeros(len(counts), bool)
        chosen[items[np.lexsort((draws[items], -counts[items]))][:number]] = True
        more = np.where(situation.askable, np.maximum(np.where(chosen, self.k, 1) - counts, 0), 0)
        wanted = units_of(grades, counts, more, f"one of the items that are graded {self.k} times", situation)
        # in such an order that at each point the share of either part is kept as far as it can
        item = wanted.things["item"]
        overlap = chosen[item]
        # whole items one after the other, those begun first
        order = np.lexsort((draws[item], -counts[item], ~overlap))
        n_overlap = int(overlap.sum())
        spent = float(counts[chosen].sum()), float(counts[~chosen].sum())
        first = np.arange(len(item)) < n_overlap
        places = np.concatenate([np.arange(1, n_overlap + 1), np.arange(1, len(item) - n_overlap + 1)])
        before, share = np.where(first, *spent), np.where(first, self.share, 1 - self.share)
        order = order[np.argsort((before + places) / share, kind="stable")]
        things, of_part = {"item": item[order]}, overlap[order].astype(np.int32)
        wanted = replace(wanted, things=things, gain=wanted.gain[order], reason=of_part)
        return wanted.requests(self, situation)


@dataclass(frozen=True, eq=False)
class Runs:
    r"""How the grades of an item begin if its annotators are asked in random order.

    Entry :math:`t` of each array is the mean over items of a probability about the :math:`(t + 1)`-th grade, 0 where
    there is no such grade. An item with :math:`G` good grades of :math:`m` begins with :math:`t` good ones with
    probability :math:`\binom{G}{t} / \binom{m}{t}`.

    Parameters
    ----------
    exists
        There is such a grade.
    good
        It is good; in random order each is as the first.
    first_and_this
        The first grade and this one are good.
    all_before
        All grades before it are good.
    all_and_this
        It and all grades before it are good.
    """

    exists: Floats
    good: Floats
    first_and_this: Floats
    all_before: Floats
    all_and_this: Floats

    @classmethod
    def of(cls, grades: Grades, good_from: Any, k: int) -> Self:
        """Return the runs of up to ``k`` grades."""
        number = np.bincount(grades.item, minlength=grades.n_items).astype(np.float64)
        n_good = np.bincount(grades.item, grades.at_least(good_from), grades.n_items)[number > 0]
        number = number[number > 0]
        if not len(number):
            raise JudgmentError("there are no grades to count costs on; give at least one")
        has = (np.arange(k)[:, None] < number).astype(np.float64)
        share = n_good / number
        two = np.divide(n_good * (n_good - 1), number * (number - 1), out=share.copy(), where=number > 1)
        steps = np.maximum(n_good - np.arange(k)[:, None], 0) / np.maximum(number - np.arange(k)[:, None], 1)
        through = np.cumprod(steps, axis=0)
        before = np.concatenate([np.ones((1, len(number))), through[:-1]])
        pairs = np.where(np.arange(k)[:, None] > 0, two, share)
        return cls(*((has * chances).mean(axis=1) for chances in (np.ones_like(has), share, pairs, before, through)))


def cost_table(grades: Grades, rules: Mapping[str, Any], *, good_from: Any, n_draws: int, seed: int) -> pl.DataFrame:
    """Return what each scheme costs an item.

    The columns are scheme, labelling, training and ratio (counted over ``n_draws`` random orders of each item's grades)
    and the same with ``_exact``, by formula: grades asked for an item, training rows per item where every grade is a
    row, and rows below ``good_from`` for each one that is not.
    """
    table = []
    n_items = n_draws * int(grades.judged_items.sum())
    for name, rule in rules.items():
        asked, good = (float(part.sum()) for part in rule.asking_probabilities(Runs.of(grades, good_from, rule.k)))
        rng, n_asked, n_good = np.random.default_rng(seed), 0, 0
        for _ in range(n_draws):
            # without times their order is that of the rows
            shuffled = OrderedGrades.of(replace(grades.select(rng.permutation(len(grades))), time=None))
            number = n_asked_by_rule(rule, shuffled)
            n_asked += int(number.sum())
            n_good += int((shuffled.first(number).grade >= grades.level_number(good_from)).sum())
        labelling, share = n_asked / n_items, n_good / n_items
        # rows that are not good for each good one, where there is any
        ratios = [(rows - good) / good if good > 0 else None for rows, good in ((labelling, share), (asked, good))]
        table.append((name, labelling, asked, labelling, asked, *ratios))
    columns = ["scheme", "labelling", "labelling_exact", "training", "training_exact", "ratio", "ratio_exact"]
    return pl.DataFrame(table, schema=columns, orient="row")


def n_asked_by_rule(rule: GradeRule, asked: OrderedGrades) -> Counts:
    """Return how many of its grades each item would have been asked for, one after the other, under a rule."""
    number = np.minimum(1, asked.counts)
    while True:
        so_far = asked.first(number)
        further = np.minimum(np.maximum(rule.n_wanted(so_far.grade, so_far.offsets), number), asked.counts)
        if (further == number).all():
            return number
        number = further


def replay(rule: GradeRule, grades: Grades) -> Grades:
    """Return those of recorded grades that a rule would have asked for, item after item, the first one first.

    An item that has fewer grades than the rule wants keeps all that it has.
    """
    asked = OrderedGrades.of(grades)
    order = grades.in_time()
    order = order[np.argsort(grades.item[order], kind="stable")]
    place = np.arange(len(order)) - np.repeat(asked.offsets[:-1], asked.counts)
    return grades.select(order[place < np.repeat(n_asked_by_rule(rule, asked), asked.counts)])
