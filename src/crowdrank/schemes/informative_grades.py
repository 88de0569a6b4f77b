"""The most informative grades: items with level probabilities, chosen together with whom to ask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..data.judgments import Grades
from ..data.proposals import Roster
from ..protocols import Counts, Floats, Ints
from .buying import (
    WishList,
    even_loads,
    falling_order,
    past_annotators,
    separate_ties,
    tie_draws,
    tie_draws_over_queries,
)
from .class_probabilities import LIKELIEST, CautiousLevels
from .grade_rules import UNJUDGED
from .shown_order import ShownOrder
from .situation import Situation
from .taught_order import KnownGains, TaughtOrder

_MEASURE = {
    "grade": "uncertainty of the grades (in nats)",
    "gain": "squared error of the items' gains",
    "ranker": "nDCG@10 that the orders shown lose against the best ones, summed over queries",
}
_DOUBT = {
    "grade": "entropy of its grade",
    "gain": "variance of its gain",
    "ranker": "nDCG@10 that its query may lose by it",
}
_SPARE_PER_GRADE, _SPARE_ITEMS = 2, 2_000
"""Of many items only this many for each grade wanted, and this many besides, are weighed for every annotator."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Items that may be asked about, with what is known of their levels.

    Parameters
    ----------
    item
        Their codes, rising.
    posterior
        Probability of each level, (n_candidates, n_levels).
    gain
        Gain of each level where grades should tell of gains, ``None`` where they should tell of the level itself.
    lacking
        How many grades each lacks of its fewest.
    query
        Query of each, for ties.
    shown
        The order that would be shown, by expected gains or by a ranker, where grades should tell of that.
    """

    item: Ints
    posterior: Floats
    gain: Floats | None
    lacking: Counts
    query: Ints
    shown: ShownOrder | TaughtOrder | None = None

    def expected_information(self, confusions: Floats) -> tuple[Floats, Floats | None]:
        """Return what a grade by annotators of these confusions tells of each item, (n_candidates, n_annotators).

        The second array is what each query could gain, where orders are shown by gains.
        """
        if isinstance(self.shown, ShownOrder):
            return self.shown.change(confusions)[:2]
        value = np.empty((len(self.item), len(confusions)))
        for who, confusion in enumerate(confusions):
            of_one = value_of(self.posterior, confusion, self.gain)
            value[:, who] = of_one if self.shown is None else self.shown.change(np.sqrt(of_one))
        return value, None

    def ceiling(self) -> Floats:
        """Return all that there is to tell of each item."""
        if self.gain is None:
            return _entropy(self.posterior)
        if isinstance(self.shown, ShownOrder):
            return self.shown.change(np.eye(len(self.gain))[None])[0][:, 0]
        variance: Floats = np.maximum(self.posterior @ self.gain**2 - (self.posterior @ self.gain) ** 2, 0.0)
        return variance if self.shown is None else self.shown.change(np.sqrt(variance))

    def marginal_information(self, information: Floats, ceiling: Floats, number: Counts) -> Floats:
        """Return what grade ``number`` (0 the first) of items tells once those before it are there.

        Repeated grades are taken as repeated measurements of a normal quantity: ``n`` grades tell ``log(1 + n x)``
        where one tells ``log(1 + x)``, and leave ``1 / (1 + n x)`` of a variance.
        """
        if self.gain is None:
            x = np.expm1(information)
            return np.log1p((number + 1) * x) - np.log1p(number * x)
        x = np.divide(
            information,
            ceiling - information,
            out=np.full_like(information, 1e9),
            where=ceiling > information * (1 + 1e-9),
        )
        more: Floats = ceiling * (1 / (1 + number * x) - 1 / (1 + (number + 1) * x))
        return more

    def take(self, rows: Counts) -> Candidates:
        """Return some of the items."""
        return replace(
            self, item=self.item[rows], posterior=self.posterior[rows], lacking=self.lacking[rows],
            query=self.query[rows], shown=None if self.shown is None else self.shown.take(rows),
        )  # fmt: skip


class Limits(NamedTuple):
    """The share of a pool that is asked, the most grades of an item asked for in one call, and its fewest in all."""

    share: float
    most: int
    least: int


def choose_graders(situation: Situation, grades: Grades, about: str, limits: Limits) -> WishList:
    """Return the grades that tell most, one after the other; items without their fewest grades come first."""
    known = CautiousLevels.of(situation, grades, "information")
    levels = grades.level_codes()[2]
    posterior, gain = known.posterior, None if about == "grade" else np.exp2(levels) - 1
    crowd = known.crowd
    item = np.flatnonzero(situation.askable).astype(np.int32)
    query, shown = grades.items.query, None
    if about == "ranker":
        assert gain is not None
        shown = _order_shown(situation, grades, posterior, gain).take(item)
    counts = np.bincount(grades.item, minlength=grades.n_items)
    if isinstance(shown, TaughtOrder):
        # not every item need be graded, and another item teaches more than the same again
        limits = Limits(limits.share, most=1, least=0)
    lacking = np.maximum(limits.least - counts[item], 0)
    items = Candidates(item, posterior[item], gain, lacking, query[item], shown)
    if isinstance(shown, TaughtOrder) and situation.n_to_choose is not None:
        fall = value_of(items.posterior, crowd, gain)
        items = replace(items, shown=shown.in_stages(np.sqrt(fall), situation.n_to_choose))
    by_crowd, possible = items.expected_information(crowd[None])
    information = by_crowd[:, 0]
    before = None if possible is None else float(possible.sum())
    if shown is None:
        before = float(items.ceiling().sum())
    elif possible is not None and situation.roster is None:
        # of the others, which tell nothing, the ceiling need not be known
        keep = np.flatnonzero((information > 0) | (lacking > 0))
        items, information = items.take(keep), information[keep]
    if situation.n_to_choose is not None:
        number = _SPARE_PER_GRADE * situation.n_to_choose + _SPARE_ITEMS
        draws = tie_draws_over_queries(situation.seed, items.query)
        if len(information) > number:
            value = separate_ties(urgency(information, items.lacking), draws)
            keep = np.sort(np.argpartition(-value, number)[:number])
            items, information = items.take(keep), information[keep]
    ceiling = items.ceiling()
    if situation.roster is None:
        wished = _by_anybody(situation, items, information, ceiling, crowd, limits.most)
    else:
        confusion = _confusions(grades, known, situation.roster, crowd)
        wished = _by_graders(situation, situation.roster, items, confusion, ceiling, limits)
    if isinstance(items.shown, ShownOrder):
        assert possible is not None
        wished = wished.together(situation, items, possible)
    place, gains = wished.place, wished.gains
    who = None if situation.roster is None else wished.by
    asked = items.item[place]
    judged = counts[asked] > 0
    sure = items.posterior.max(axis=1)[place]
    expected_cut = np.divide(gains, ceiling[place], out=np.zeros_like(gains), where=ceiling[place] > 0)
    return WishList(
        things={"item": asked}, gain=gains, annotator=who, reason=judged.astype(np.int32),
        reasons=(UNJUDGED, f"{LIKELIEST}; one more grade is expected to cut the {_DOUBT[about]} by {{:.0f}} %"),
        detail=np.stack([sure, 100 * expected_cut], axis=1), measure=_MEASURE[about], before=before,
    )  # fmt: skip


def _order_shown(situation: Situation, grades: Grades, posterior: Floats, gain: Floats) -> ShownOrder | TaughtOrder:
    """The order by expected gains, or with features that of a ranker which learned them."""
    mean = posterior @ gain
    if situation.features is None:
        return ShownOrder.of(grades.items, posterior, gain, situation.seed)
    judged = grades.judged_items
    shares = posterior[judged].mean(axis=0)
    first = float(shares @ gain)
    first_variance = max(float(shares @ gain**2) - first**2, 1e-9)
    variance = np.maximum(posterior @ gain**2 - mean**2, 1e-9 * first_variance)
    known = KnownGains(mean, variance, first, first_variance, shares, gain)
    return TaughtOrder.of(grades.items, situation.features, known, np.flatnonzero(judged), situation.seed)


def urgency(value: Floats, lacking: Counts) -> Floats:
    """Return how urgent grades are: by what they tell, after those of items that lack some of their fewest.

    Of the latter all are equally urgent that lack as many: until annotators are known by items that several graded,
    what a model expects an answer to tell is not to be relied on.
    """
    urgent: Floats = np.where(lacking > 0, (1.0 + lacking) * max(float(value.max(initial=0.0)), 1.0), value)
    return urgent


def value_of(posterior: Floats, confusion: Floats, gain: Floats | None) -> Floats:
    """Return what a grade by an annotator of that confusion is expected to tell of each item, (n_items,).

    Nats about its level; with gains of the levels, the expected fall of the variance of its gain.
    """
    if gain is None:
        noise: Floats = posterior @ _entropy(confusion)
        return np.maximum(_entropy(posterior @ confusion) - noise, 0.0)
    chance, mean = posterior @ confusion, (posterior * gain) @ confusion
    squares = np.divide(mean**2, chance, out=np.zeros_like(mean), where=chance > 0)
    fall: Floats = squares.sum(axis=1) - (posterior @ gain) ** 2
    return np.maximum(fall, 0.0)


def _entropy(shares: Floats) -> Floats:
    """Entropy of each row in nats."""
    entropy: Floats = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=-1)
    return entropy


@dataclass(frozen=True, eq=False)
class Wished:
    """Grades that are wished for, the most urgent first.

    Parameters
    ----------
    place, gains
        Place of each among the candidates, and what it tells.
    lacking, draws, price
        How many grades its item then lacks of its fewest, its draw for ties, and its price.
    by, confusions
        Whose it is, and the confusion matrices of all of them.
    """

    place: Counts
    gains: Floats
    lacking: Counts
    draws: Floats
    price: Floats
    by: Ints
    confusions: Floats

    def in_order(self) -> Wished:
        """Return the grades by falling urgency, those that tell nothing left out."""
        urgent = urgency(self.gains / self.price, self.lacking)
        order = falling_order(urgent, self.draws)
        order = order[urgent[order] > 0]
        return replace(
            self, place=self.place[order], gains=self.gains[order], lacking=self.lacking[order],
            draws=self.draws[order], price=self.price[order], by=self.by[order],
        )  # fmt: skip

    def together(self, situation: Situation, items: Candidates, possible: Floats) -> Wished:
        """Return the same with what each adds to the nDCG of its query once those before it are there.

        A grade that alone brings a share of all that its query could gain brings that share of what is left by then.
        What those that are bought bring together is drawn, and all but the first of each query share the difference.
        """
        assert isinstance(items.shown, ShownOrder)
        query = items.query[self.place]
        share = np.divide(self.gains, possible[query], out=np.zeros_like(self.gains), where=possible[query] > 0)
        by_query = np.argsort(query, kind="stable")
        rest = np.log1p(-np.minimum(share[by_query], 1 - 1e-9))
        before = np.cumsum(rest) - rest
        left = np.empty_like(share)
        left[by_query] = np.exp(before - before[np.searchsorted(query[by_query], query[by_query])])
        wished = replace(self, gains=np.minimum(self.gains, possible[query]) * left).in_order()
        query, gains = items.query[wished.place], wished.gains
        bought = np.flatnonzero(gains >= situation.least_gain * wished.price)[: situation.n_to_choose]
        later = np.ones(len(gains), bool)
        later[bought[np.unique(query[bought], return_index=True)[1]]] = False
        bought = bought[np.isin(query[bought], query[bought[later[bought]]])]
        total = float(gains[bought[later[bought]]].sum())
        if total <= 0:
            return wished
        drawn = items.shown.joint_change(items.item[wished.place[bought]], wished.confusions, wished.by[bought])
        factor = (drawn - float(gains[bought[~later[bought]]].sum())) / total
        return replace(wished, gains=np.where(later, gains * np.clip(factor, 0.0, 1.0), gains)).in_order()


def _by_anybody(
    situation: Situation, items: Candidates, information: Floats, ceiling: Floats, crowd: Floats, most: int
) -> Wished:
    """The grades that tell most, where anybody may give them."""
    n = len(items.item)
    place, number = np.repeat(np.arange(n), most), np.tile(np.arange(most), n)
    return Wished(
        place=place, gains=items.marginal_information(information[place], ceiling[place], number),
        lacking=items.lacking[place] - number, draws=tie_draws_over_queries(situation.seed, items.query)[place],
        price=np.full(len(place), situation.price), by=np.zeros(len(place), np.int32), confusions=crowd[None],
    ).in_order()  # fmt: skip


def _by_graders(
    situation: Situation, roster: Roster, items: Candidates, confusion: Floats, ceiling: Floats, limits: Limits
) -> Wished:
    """The grades that tell most for their price, and whose they are."""
    from .kernels.assigning import choose_annotators

    most = limits.most
    who, capacity = _graders(situation, roster, items, confusion, limits)
    information = items.expected_information(confusion[who])[0]
    price = roster.price[who]
    draws = tie_draws_over_queries(situation.seed, items.query)
    place, chosen, number = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if len(who):
        best = (information / price).max(axis=1)[:, None]
        urgent = items.marginal_information(best, ceiling[:, None], np.arange(most))
        urgent = urgency(urgent, items.lacking[:, None] - np.arange(most))
        starts, by = past_annotators(situation, items.item.astype(np.int64))
        places = np.full(len(roster), -1, np.int32)
        places[who] = np.arange(len(who), dtype=np.int32)
        place, chosen, number = choose_annotators(
            falling_order(urgent.ravel(), np.repeat(draws, most)) // most, information, price, capacity, starts,
            places[by], situation.money_to_choose, most,
        )  # fmt: skip
    return Wished(
        place=place, gains=items.marginal_information(information[place, chosen], ceiling[place], number),
        lacking=items.lacking[place] - number, draws=draws[place], price=price[chosen], by=who[chosen],
        confusions=confusion,
    ).in_order()  # fmt: skip


def _graders(
    situation: Situation, roster: Roster, items: Candidates, confusion: Floats, limits: Limits
) -> tuple[Ints, Counts]:
    """Who is asked, those who tell most for their price first, and how much of each."""
    sample = np.random.default_rng(situation.seed).permutation(items.posterior)[:_SPARE_ITEMS]
    worth = np.array([value_of(sample, matrix, items.gain).sum() for matrix in confusion]) / roster.price
    order = falling_order(worth, tie_draws(situation.seed, len(worth))).astype(np.int32)
    number = limits.most * len(items.item)
    if situation.n_to_choose is not None:
        number = min(number, situation.n_to_choose)
    capacity = even_loads(roster, order, limits.share, number)
    who = order[capacity[order] > 0]
    return who, capacity[who]


def _confusions(grades: Grades, known: CautiousLevels, roster: Roster, crowd: Floats) -> Floats:
    """Confusion matrix of each annotator of the roster, that of the crowd for those nothing is known of."""
    if not grades.n_annotators:
        return np.broadcast_to(crowd, (len(roster), *crowd.shape))
    matrices: Floats = np.concatenate([known.confusion, crowd[None]])
    return matrices[grades.annotators.codes(roster.annotators.ids)]
