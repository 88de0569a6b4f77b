"""The most informative grades: items with level probabilities, chosen together with whom to ask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..data.judgments import Grades
from ..data.roster import Roster
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
    "ranker": "expected nDCG@10 to be won, summed over items",
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

    def expected_information(self, confusion: Floats) -> Floats:
        """Return what a grade by an annotator of that confusion is expected to tell of each item."""
        value = value_of(self.posterior, confusion, self.gain)
        return value if self.shown is None else self.shown.change(np.sqrt(value))

    def ceiling(self) -> Floats:
        """Return all that there is to tell of each item."""
        if self.gain is None:
            return _entropy(self.posterior)
        variance: Floats = self.posterior @ self.gain**2 - (self.posterior @ self.gain) ** 2
        variance = np.maximum(variance, 0.0)
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

    def best(self, value: Floats, number: int, draws: Floats) -> Candidates:
        """Return the ``number`` items of the largest value, equal ones as drawn."""
        if len(self.item) <= number:
            return self
        keep = np.sort(np.argpartition(-separate_ties(value, draws), number)[:number])
        shown = None if self.shown is None else self.shown.take(keep)
        return Candidates(self.item[keep], self.posterior[keep], self.gain, self.lacking[keep], self.query[keep], shown)


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
    before = float(items.ceiling().sum())
    if situation.n_to_choose is not None:
        draws = tie_draws_over_queries(situation.seed, items.query)
        number = _SPARE_PER_GRADE * situation.n_to_choose + _SPARE_ITEMS
        items = items.best(urgency(items.expected_information(crowd), items.lacking), number, draws)
    if situation.roster is None:
        place, gains, who = *_by_anybody(situation, items, crowd, limits.most), None
    else:
        confusion = _confusions(grades, known, situation.roster, crowd)
        place, gains, who = _by_graders(situation, situation.roster, items, confusion, limits)
    asked = items.item[place]
    judged = counts[asked] > 0
    sure, ceiling = items.posterior.max(axis=1)[place], items.ceiling()[place]
    expected_cut = np.divide(gains, ceiling, out=np.zeros_like(gains), where=ceiling > 0)
    return WishList(
        things={"item": asked}, gain=gains, annotator=who, reason=judged.astype(np.int32),
        reasons=(UNJUDGED, f"{LIKELIEST}; one more grade is expected to cut the {_DOUBT[about]} by {{:.0f}} %"),
        detail=np.stack([sure, 100 * expected_cut], axis=1), measure=_MEASURE[about], before=before,
    )  # fmt: skip


def _order_shown(situation: Situation, grades: Grades, posterior: Floats, gain: Floats) -> ShownOrder | TaughtOrder:
    """The order by expected gains, or with features that of a ranker which learned them."""
    mean = posterior @ gain
    if situation.features is None:
        return ShownOrder.of(grades.items, mean, tie_draws(situation.seed, len(mean)))
    judged = grades.judged_items
    shares = posterior[judged].mean(axis=0)
    first = float(shares @ gain)
    first_variance = max(float(shares @ gain**2) - first**2, 1e-9)
    variance = np.maximum(posterior @ gain**2 - mean**2, 1e-9 * first_variance)
    known = KnownGains(mean, variance, first, first_variance)
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


def _by_anybody(situation: Situation, items: Candidates, crowd: Floats, most: int) -> tuple[Counts, Floats]:
    """Place of the item of each grade and what it tells, where anybody may give it."""
    n = len(items.item)
    place, number = np.repeat(np.arange(n), most), np.tile(np.arange(most), n)
    gains = items.marginal_information(items.expected_information(crowd)[place], items.ceiling()[place], number)
    urgent = urgency(gains, items.lacking[place] - number)
    order = falling_order(urgent, tie_draws_over_queries(situation.seed, items.query)[place])
    order = order[urgent[order] > 0]
    return place[order], gains[order]


def _by_graders(
    situation: Situation, roster: Roster, items: Candidates, confusion: Floats, limits: Limits
) -> tuple[Counts, Floats, Ints]:
    """Place of the item of each grade, what it tells, and whose it is."""
    from .kernels.assigning import choose_annotators

    most = limits.most
    who, capacity = _graders(situation, roster, items, confusion, limits)
    if not len(who):
        return np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
    information = np.stack([items.expected_information(confusion[a]) for a in who], axis=1)
    ceiling, price = items.ceiling(), roster.price[who]
    urgent = items.marginal_information((information / price).max(axis=1)[:, None], ceiling[:, None], np.arange(most))
    urgent = urgency(urgent, items.lacking[:, None] - np.arange(most))
    draws = tie_draws_over_queries(situation.seed, items.query)
    starts, by = past_annotators(situation, items.item.astype(np.int64))
    places = np.full(len(roster), -1, np.int32)
    places[who] = np.arange(len(who), dtype=np.int32)
    place, chosen, number = choose_annotators(
        falling_order(urgent.ravel(), np.repeat(draws, most)) // most, information, price, capacity, starts, places[by],
        situation.money_to_choose, most,
    )  # fmt: skip
    gains = items.marginal_information(information[place, chosen], ceiling[place], number)
    order = falling_order(urgency(gains / price[chosen], items.lacking[place] - number), draws[place])
    return place[order], gains[order], who[chosen[order]]


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
