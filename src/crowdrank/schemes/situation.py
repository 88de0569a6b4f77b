"""What a scheme goes by: judgments so far, who and what can be asked, money; how what it wants is bought; pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from ..data.column_names import understand_items, understand_pairs
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.index import Index
from ..data.judged import pairs_within
from ..data.judgments import Grades, Judgments, Preferences
from ..data.proposals import ANYBODY, Requests, Roster
from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Counts, Floats, Ints, method_name
from ..wording import option


def check_limits(budget: float | None = None, least_gain: float = 0.0, price: float = 1.0) -> None:
    """Refuse limits under which nothing could be asked."""
    if budget is not None and not budget > 0:
        raise ParameterError(f"{option('budget', budget)} buys nothing; give a budget above 0")
    if not least_gain >= 0:
        raise ParameterError(f"{option('least_gain', least_gain)} must not be below 0")
    if not 0 < price < np.inf:
        raise ParameterError(f"{option('price', price)} must be a number above 0")


@dataclass(frozen=True, eq=False)
class OpenRequests:
    """Judgments that were asked for and have not come in yet, one entry each.

    Parameters
    ----------
    things
        Item codes of what each is about: ``item``, or ``left`` and ``right``.
    annotator
        Ids of those who were asked, blank where that is not known; ``None`` where it is known of none.
    """

    things: dict[str, Ints]
    annotator: pl.Series | None = None

    def __len__(self) -> int:
        return len(next(iter(self.things.values())))


@dataclass(frozen=True, eq=False, kw_only=True)
class Situation:
    """All that a scheme may look at.

    Parameters
    ----------
    judgments
        The judgments so far; their items hold everything that may be asked about.
    askable
        Which items may be asked about.
    pairs
        Left and right items of the pairs that may be asked about; ``None`` for all pairs of askable items of a query.
    roster
        Who can be asked, ``None`` where that is left open.
    budget
        What may be spent, ``None`` for no limit.
    price
        What a judgment costs where there is no roster.
    consensus
        The consensus of the judgments, for schemes that go by one.
    least_gain
        Expected gain for each unit of money below which nothing is bought.
    open
        What was asked for and has not come in yet; it is neither asked for nor paid again.
    features
        Features of items, where grades are bought for the ranker that learns from them.
    seed
        Seed of the random draws, such as between equally urgent things.
    repeats
        Whether an annotator may be asked about the same pair again, since it is another text each time.
    """

    judgments: Judgments
    askable: Bools
    pairs: tuple[Ints, Ints] | None = None
    roster: Roster | None = None
    budget: float | None = None
    price: float = 1.0
    consensus: Consensus | None = None
    least_gain: float = 0.0
    open: OpenRequests | None = None
    features: Features | None = None
    seed: int = 0
    repeats: bool = False

    def __post_init__(self) -> None:
        check_limits(self.budget, self.least_gain, self.price)

    @classmethod
    def of(cls, judgments: Judgments, *, askable: Bools | None = None, **rest: object) -> Self:
        """Return the situation in which everything that was judged may be asked about, unless ``askable`` says."""
        return cls(judgments=judgments, askable=judgments.judged_items if askable is None else askable, **rest)  # type: ignore[arg-type]

    @property
    def n_affordable(self) -> int | None:
        """Judgments that the budget pays for at the lowest price, ``None`` where there is no limit."""
        if self.budget is None:
            return None
        lowest = self.price if self.roster is None else float(self.roster.price.min(initial=np.inf))
        return int(self.budget / lowest * (1 + 1e-12))

    @property
    def n_to_choose(self) -> int | None:
        """Judgments that a scheme should choose so that the budget is used after those open already are left out."""
        number = self.n_affordable
        return number if number is None or self.open is None else number + len(self.open)

    @property
    def money_to_choose(self) -> float:
        """The budget with what such judgments would cost, which are paid already; infinite without a limit."""
        if self.budget is None:
            return float("inf")
        highest = self.price if self.roster is None else float(self.roster.price.max(initial=0.0))
        return self.budget + (0.0 if self.open is None else highest * len(self.open))

    def askable_items(self) -> tuple[Ints, Ints, Counts]:
        """Return the items that may be asked about, the query of each, and the number of them of each query."""
        items = np.flatnonzero(self.askable).astype(np.int32)
        query = self.judgments.items.query[items]
        return items, query, np.bincount(query, minlength=self.judgments.n_queries)

    def falling_order(self, gain: Floats) -> Counts:
        """Return the places of things by falling gain, equal ones as drawn."""
        return falling_order(gain, tie_draws(self.seed, len(gain)))

    def expect_consensus(self, scheme: str) -> Consensus:
        """Return the consensus, which must be of the items of the judgments."""
        if self.consensus is None:
            raise ParameterError(f"{scheme} needs a consensus; call crowdrank.propose, which computes one, or give one")
        same = self.consensus.items is self.judgments.items
        if not same and not self.consensus.items.frame().equals(self.judgments.items.frame()):
            raise ParameterError(
                "the consensus is of other items than the judgments and the list of items; leave it out"
            )
        return self.consensus


def open_requests(judgments: Any, table: Any) -> OpenRequests:
    """Return what a table says was asked for: [query,] item (or left, right) [, annotator] [, n_more].

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 0)])
    >>> open_requests(grades, {"query": ["q"], "item": ["x"], "n_more": [2]}).things["item"].tolist()
    [0, 0]
    """
    frame = to_frame(table)
    if isinstance(judgments, Grades):
        names = understand_items(frame.columns)
        sides = {"item": names["item"]}
    else:
        columns = understand_pairs(frame.columns)
        if columns is None:
            raise JudgmentError("the open requests name no left and right item; preferences are asked about pairs")
        names, sides = columns, {"left": columns["left"], "right": columns["right"]}
    if not judgments.items.single and "query" not in names:
        raise JudgmentError("the open requests have no query column but the judgments name queries; add it")
    query = frame[names["query"]] if "query" in names and not judgments.items.single else None
    codes = {side: judgments.items.codes(query, frame[name]) for side, name in sides.items()}
    for side, of_side in codes.items():
        if len(of_side) and of_side.min() < 0:
            row = int(np.argmin(of_side))
            raise JudgmentError(
                f"row {row + 1} of the open requests asks about {frame[sides[side]][row]!r}, which is not a known "
                "item; leave it out, or name it in the list of items"
            )
    number = np.ones(len(frame), np.int64)
    if "n_more" in frame.columns:
        wanted = frame["n_more"].cast(pl.Int64, strict=False)
        bad = wanted.is_null() | (wanted < 0)
        if bad.any():
            raise JudgmentError(
                f"row {int(bad.arg_max() or 0) + 1} of the open requests has an n_more that is not a whole number; "
                "correct it"
            )
        number = wanted.to_numpy()
    things: dict[str, Ints] = {side: np.repeat(of_side, number) for side, of_side in codes.items()}
    who = frame["annotator"].gather(np.repeat(np.arange(len(frame)), number)) if "annotator" in frame.columns else None
    return OpenRequests(things, None if who is None or who.dtype == pl.Null else who)


T = TypeVar("T", bound="Any")

UNJUDGED = "not judged yet"
"""Why something is asked about that nobody judged."""

_TIE_SHARE = 1e-9
"""Gains that differ by less than this share of the largest are equal: they may differ by rounding alone."""

_LOAD_SLACK = 1.25


@dataclass(frozen=True, eq=False, kw_only=True)
class WishList:
    """Judgments that a scheme would buy one by one, the most urgent first.

    Parameters
    ----------
    things
        Item codes of what each is about: ``item``, or ``left`` and ``right``.
    gain
        What each is expected to lower the measure by, once those before it are there.
    reason, reasons, named, detail
        Number of the reason of each, the reasons in words, and the items and then the numbers that stand in them,
        (n, n_items) codes and (n, n_numbers).
    measure, before
        What gains are measured in, and its sum now.
    annotator
        Whom to ask, over the roster, where the scheme chooses; ``None`` leaves it to the price.
    sided
        Whether the scheme chose the sides of pairs; they are drawn otherwise.
    """

    things: dict[str, Ints]
    gain: Floats
    reason: Ints
    reasons: tuple[str, ...]
    measure: str
    before: float | None
    named: Ints | None = None
    detail: Floats | None = None
    annotator: Ints | None = None
    sided: bool = False

    def __len__(self) -> int:
        return len(self.gain)

    def requests(self, scheme: Any, situation: Situation) -> Requests:
        """Return the requests for a wish list: by named annotators if there is a roster, otherwise open to anyone."""
        if situation.roster is not None and situation.judgments.n_judgments and not situation.judgments.n_annotators:
            raise JudgmentError(
                "the judgments do not say who gave them, so nobody can be kept from being asked twice; "
                "add an annotator column, or leave the pool out"
            )
        from .kernels.assigning import NOBODY, UNAFFORDABLE, UNWORTHY, assign

        wanted, roster = self._without_open(situation), situation.roster
        n_items, budget = situation.judgments.n_items, np.inf if situation.budget is None else float(situation.budget)
        if roster is not None and wanted.annotator is None:
            distinct, thing = np.unique(thing_keys(wanted.things, n_items), return_inverse=True)
            starts, by = past_annotators(situation, distinct)
            by_price = np.argsort(roster.price, kind="stable").astype(np.int32)
            rising = roster.price[by_price]
            tiers = np.append(np.flatnonzero(np.append(True, rising[1:] != rising[:-1])), len(rising))
            draws = np.random.default_rng(situation.seed).random(len(wanted))
            offers = (by_price, tiers, roster.price, roster.capacity, budget, situation.least_gain, draws)
            status = assign(thing.astype(np.int64), wanted.gain, starts, by, *offers)
            price = roster.price[np.maximum(status, 0)]
        else:
            # open to anyone, or the scheme's own choice of annotators: cut where the budget ends
            price = np.full(len(wanted), situation.price) if roster is None else roster.price[wanted.annotator]
            worth = wanted.gain >= situation.least_gain * price
            affordable: Bools = np.cumsum(np.where(worth, price, 0.0)) <= budget * (1 + 1e-12)
            if roster is None and situation.n_affordable is not None:
                affordable = np.cumsum(worth) <= situation.n_affordable
            who = 0 if wanted.annotator is None else wanted.annotator
            status = np.where(worth, np.where(affordable, who, UNAFFORDABLE), UNWORTHY).astype(np.int32)
        keep = np.flatnonzero(status >= 0)
        asked = np.full(len(keep), ANYBODY, np.int32) if roster is None else status[keep]
        first: Counts = np.arange(len(keep))
        row = first
        if roster is None:
            # those of one thing by anybody are one request, as they come
            key = thing_keys({name: codes[keep] for name, codes in wanted.things.items()}, n_items)
            _, begin, thing = np.unique(key, return_index=True, return_inverse=True)
            order = np.argsort(begin)
            first, row = begin[order], np.argsort(order)[thing]
        rows = keep[first]
        things = {name: codes[rows] for name, codes in wanted.things.items()}
        if not wanted.sided and "left" in things:
            # sides by a fair coin, so a liking for one side cannot favour the better item
            left, right = things["left"], things["right"]
            turned = np.random.default_rng([situation.seed, 1]).random(len(left)) < 0.5
            things = {"left": np.where(turned, right, left), "right": np.where(turned, left, right)}
        return Requests(
            scheme=method_name(scheme),
            items=situation.judgments.items,
            annotators=Index.empty() if roster is None else roster.annotators,
            things=things,
            annotator=asked[first],
            n_more=np.bincount(row, minlength=len(first)).astype(np.int32),
            reasons=wanted.reasons,
            reason=wanted.reason[rows],
            named=None if wanted.named is None else wanted.named[rows],
            detail=None if wanted.detail is None else wanted.detail[rows],
            costs=np.bincount(row, price[keep], len(first)).astype(np.float64, copy=False),
            gains=np.bincount(row, wanted.gain[keep], len(first)).astype(np.float64, copy=False),
            measure=wanted.measure,
            before=wanted.before,
            n_unaffordable=int((status == UNAFFORDABLE).sum()),
            n_unworthy=int((status == UNWORTHY).sum()),
            n_nobody=int((status == NOBODY).sum()),
        )

    def _without_open(self, situation: Situation) -> WishList:
        """The wish list without as many judgments of each thing as were asked for before and have not come in yet."""
        if situation.open is None or not len(situation.open) or not len(self):
            return self
        n_items = situation.judgments.n_items
        keys = thing_keys(self.things, n_items)
        open_things, n_open = np.unique(thing_keys(situation.open.things, n_items), return_counts=True)
        position = np.minimum(np.searchsorted(open_things, keys), len(open_things) - 1)
        keep = count_before(keys) >= np.where(open_things[position] == keys, n_open[position], 0)
        wanted = replace(self, things={name: codes[keep] for name, codes in self.things.items()})
        return select_rows(wanted, keep, "gain", "reason", "named", "detail", "annotator")


def select_rows(table: T, rows: Any, *columns: str) -> T:
    """Return a dataclass with some rows of its columns; those that are ``None`` stay so."""
    values = {name: getattr(table, name) for name in columns}
    chosen: Any = {name: None if column is None else column[rows] for name, column in values.items()}
    return replace(table, **chosen)


def count_before(keys: NDArray[np.integer[Any]]) -> Counts:
    """Return how many equal ones stand before each of some numbers."""
    return pl.DataFrame({"key": keys}).select(pl.int_range(pl.len()).over("key")).to_series().to_numpy()


def past_annotators(situation: Situation, things: Counts, order: Ints | None = None) -> tuple[Counts, Ints]:
    """Return the annotators of the roster who judged each of some things, whose rising numbers are given.

    Those of thing ``t`` are ``by[starts[t]:starts[t + 1]]`` of the two arrays ``starts`` and ``by``: codes of the
    roster, or places in an ``order`` of some of these, -1 for others.
    """
    judgments, roster = situation.judgments, situation.roster
    assert roster is not None
    words = ("item",) if isinstance(judgments, Grades) else ("left", "right")
    done = thing_keys({word: getattr(judgments, word) for word in words}, judgments.n_items)
    who = roster.annotators.codes(judgments.annotators.ids)[judgments.annotator] if len(done) else done.astype(np.int32)
    if situation.open is not None and situation.open.annotator is not None:
        # anyone who was asked and has not answered yet is not asked again
        done = np.append(done, thing_keys(situation.open.things, judgments.n_items))
        who = np.append(who, roster.annotators.codes(situation.open.annotator))
    place = np.searchsorted(things, done)
    known = (place < len(things)) & (who >= 0)
    known[known] = things[place[known]] == done[known]
    place, who = place[known], who[known]
    rising = np.argsort(place, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(things)))])
    by = who[rising].astype(np.int32)
    if order is not None:
        places = np.full(len(roster), -1, np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        by = places[by]
    return starts.astype(np.int64), by


def thing_keys(things: dict[str, Ints], n_items: int) -> Counts:
    """Return one number for each item or unordered pair of items."""
    if "item" in things:
        return things["item"].astype(np.int64)
    left, right = things["left"], things["right"]
    return np.minimum(left, right).astype(np.int64) * n_items + np.maximum(left, right)


def even_loads(roster: Roster, order: Ints, share: float, number: int) -> Counts:
    """Return the most judgments of each annotator, where ``number`` are to be bought.

    The first ``share`` of the order (those with any capacity) work about evenly; the rest join, best first, where those
    cannot do it all.
    """
    capacity = np.zeros(len(roster), np.int64)
    order = order[roster.capacity[order] > 0]
    if not len(order):
        return capacity
    best = order[: max(1, int(np.ceil(share * len(order))))]
    even = max(1, int(np.ceil(_LOAD_SLACK * number / len(best))))
    capacity[best] = np.minimum(roster.capacity[best], even)
    lacking = number - int(capacity.sum())
    for who in order.tolist():
        if lacking <= 0:
            break
        more = min(int(roster.capacity[who] - capacity[who]), lacking)
        capacity[who] += more
        lacking -= more
    return capacity


def tie_draws(seed: int, number: int) -> Floats:
    """Return a random share of the largest gain for each of some things, too small to change more than ties."""
    return _TIE_SHARE * np.random.default_rng([seed, 2]).random(number)


def tie_draws_over_queries(seed: int, query: Ints) -> Floats:
    """Return draws as :func:`tie_draws` does, by which equal things are taken from one query after the other."""
    rng = np.random.default_rng([seed, 2])
    shuffled = rng.permutation(len(query))
    turn = np.empty(len(query))
    turn[shuffled] = count_before(query[shuffled])
    return _TIE_SHARE / (1.0 + turn + rng.random(len(query)))


def falling_order(gain: Floats, draws: Floats) -> Counts:
    """Return the places of things by falling gain, equal ones as their :func:`tie_draws` say."""
    return np.argsort(-separate_ties(gain, draws), kind="stable")


def separate_ties(gain: Floats, draws: Floats) -> Floats:
    """Return gains with ties broken by their :func:`tie_draws`."""
    return gain + np.abs(gain).max(initial=0.0) * draws


_MAX_PAIRS, _MAX_PAIRS_ANY_BUDGET = 5_000_000, 300_000
"""All pairs are candidates up to these numbers, the second one whatever the budget; of more, some are drawn."""

_SPARE_PAIRS, _MIN_FRESH_SHARE = 1_000, 0.05

_NEIGHBOURS_PER_ITEM = 10
"""Each item is paired with this many that follow it in the order."""


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Distinct pairs of items that were judged, whatever their sides.

    Parameters
    ----------
    key
        Number of each pair, rising: that of its lower item times the number of items, plus the higher one.
    count
        How often each was judged.
    """

    key: Counts
    count: Counts

    @classmethod
    def of(cls, preferences: Preferences) -> Self:
        """Return the pairs of preferences."""
        keys = thing_keys({"left": preferences.left, "right": preferences.right}, preferences.n_items)
        return cls(*np.unique(keys, return_counts=True))

    def counts(self, key: Counts) -> Counts:
        """Return how often each of some pairs was judged."""
        place = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        if not len(self.key):
            return np.zeros(len(key), np.int64)
        return np.where(self.key[place] == key, self.count[place], 0)


def pairs_below(situation: Situation, asked: JudgedPairs, k: int) -> tuple[Ints, Ints, Counts]:
    """Return pairs of askable items of one query that were judged less than ``k`` times, and how often each was.

    They come in random order, the least judged first. Where there are many, about twice as many are drawn as the budget
    pays for.
    """
    rng = np.random.default_rng(situation.seed)
    if not len(asked.key) and situation.pairs is None:
        left, right = balanced_pairs(situation, rng)
        return left, right, np.zeros(len(left), np.int64)
    first, second = candidate_pairs(situation, situation.n_to_choose, len(asked.key), rng)
    count = asked.counts(first.astype(np.int64) * situation.judgments.n_items + second)
    keep = np.flatnonzero(count < k)
    keep = keep[np.lexsort((rng.random(len(keep)), count[keep]))]
    return first[keep], second[keep], count[keep]


def balanced_pairs(situation: Situation, rng: Generator) -> tuple[Ints, Ints]:
    """Return pairs of askable items in rounds, in each of which every item stands once on either side.

    Items of a query stand in a random circle, and those of round ``d`` are paired with the ``d``-th after them. The
    first round connects all items. There are as many rounds as the budget pays for.
    """
    items, query, sizes = situation.askable_items()
    items = items[np.lexsort((rng.random(len(items)), query))]
    number = situation.n_to_choose
    total = int((sizes * (sizes - 1) // 2).sum())
    if number is None and total > _MAX_PAIRS:
        raise ParameterError(f"there are {total:,} pairs that could be asked about; give a budget")
    size, start = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(items)) - start
    rounds: list[tuple[Ints, Ints]] = []
    n_pairs = 0
    for distance in range(1, int(sizes.max(initial=0)) // 2 + 1):
        # half way round the circle each pair comes up twice
        here = np.flatnonzero((2 * distance < size) | ((2 * distance == size) & (place < distance)))
        here = rng.permutation(here)
        rounds.append((items[here], items[start[here] + (place[here] + distance) % size[here]]))
        n_pairs += len(here)
        if number is not None and n_pairs >= number:
            break
    left, right = (np.concatenate([items[:0], *(one[side] for one in rounds)]) for side in (0, 1))
    return left, right


def listed_pairs(pairs: tuple[Ints, Ints], n_items: int) -> tuple[Ints, Ints]:
    """Return each of some pairs once, the lower item first, in rising order."""
    # by sorting, as numpy's own hashing takes ten times as long
    rising = np.sort(thing_keys({"left": pairs[0], "right": pairs[1]}, n_items))
    keys = rising[np.flatnonzero(np.diff(rising, prepend=-1))]
    return (keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32)


def candidate_pairs(situation: Situation, number: int | None, n_asked: int, rng: Generator) -> tuple[Ints, Ints]:
    """Return pairs of askable items of one query, the lower item first, in rising order.

    All of them; or, where there are many, so many at random that twice ``number`` are fresh if ``n_asked`` are not.
    """
    if situation.pairs is not None:
        return listed_pairs(situation.pairs, situation.judgments.n_items)
    items, _, sizes = situation.askable_items()
    n_pairs = sizes * (sizes - 1) // 2
    total = int(n_pairs.sum())
    fresh = max(1 - n_asked / max(total, 1), _MIN_FRESH_SHARE)
    drawn = _MAX_PAIRS if number is None else int((2 * number + _SPARE_PAIRS) / fresh)
    if total <= (_MAX_PAIRS if number is None else min(max(drawn, _MAX_PAIRS_ANY_BUDGET), _MAX_PAIRS)):
        first, second = pairs_within(np.arange(len(items)), np.repeat(np.cumsum(sizes), sizes))
        return items[first], items[second]
    if number is None:
        raise ParameterError(f"there are {total:,} pairs that could be asked about; give a budget")
    drawn = min(drawn, _MAX_PAIRS)
    of = rng.choice(len(sizes), drawn, p=n_pairs / total)
    one = (rng.random(drawn) * sizes[of]).astype(np.int64)
    other = (one + 1 + (rng.random(drawn) * (sizes[of] - 1)).astype(np.int64)) % sizes[of]
    start = (np.cumsum(sizes) - sizes)[of]
    low, high = listed_pairs(((one + start).astype(np.int32), (other + start).astype(np.int32)), len(items))
    return items[low], items[high]


def pairs_near(situation: Situation, consensus: Consensus) -> tuple[Ints, Ints]:
    """Return pairs of askable items of one query that stand near each other in the order."""
    if situation.pairs is not None:
        return listed_pairs(situation.pairs, situation.judgments.n_items)
    items = np.flatnonzero(situation.askable)
    query = consensus.items.query[items]
    by_score = situation.falling_order(consensus.scores[items])
    order = items[by_score[np.argsort(query[by_score], kind="stable")]]
    query = consensus.items.query[order]
    first = [np.flatnonzero(query[:-step] == query[step:]) for step in range(1, _NEIGHBOURS_PER_ITEM + 1)]
    second = np.concatenate([place + step for step, place in enumerate(first, 1)])
    return order[np.concatenate(first)].astype(np.int32), order[second].astype(np.int32)


_MIN_VARIANCE, _MIN_Z = 1e-12, 1e-6
"""Below these a variance, or a difference in standard deviations, is taken as this small to divide by it."""


def wrong_now(gap: Floats, spread: Floats) -> Floats:
    """Return the probability that the order of two scores is wrong, by their difference and its variance."""
    from scipy.special import ndtr

    return ndtr(-np.abs(gap) / np.sqrt(np.maximum(spread, _MIN_VARIANCE)))


def wrong_after(gap: Floats, spread: Floats, left: Floats) -> Floats:
    """Return what that probability is expected to be once preferences have brought the variance down to ``left``.

    With z standard deviations between the scores, and a share r of the variance left, it is 2 T(z, sqrt(r / (1 - r))),
    where T is Owen's function [Owen56]_.
    """
    from scipy.special import owens_t

    probability = wrong_now(gap, spread)
    use = np.flatnonzero(left < spread * (1 - _MIN_VARIANCE))
    before = spread[use]
    probability[use] = 2 * owens_t(np.abs(gap[use]) / np.sqrt(before), np.sqrt(left[use] / (before - left[use])))
    return probability


def order_gain(gap: Floats, sure: Floats, usual: Floats) -> Floats:
    """Return by how much one preference is expected to lower the probability that the order of each pair is wrong.

    ``gap`` is the difference of the scores of a pair, ``sure`` the probability of its likelier order, ``usual`` the
    variance of the difference where the scores are equal; preferences are taken as those of a Bradley-Terry model.
    """
    from scipy.special import expit, ndtri

    z = ndtri(np.clip(sure, 0.5, 1 - _MIN_VARIANCE))
    gap = np.abs(gap)
    spread = np.where(z > _MIN_Z, (gap / np.maximum(z, _MIN_Z)) ** 2, usual)
    chance = expit(gap / np.sqrt(1 + np.pi / 8 * spread))
    left = spread / (1 + chance * (1 - chance) * spread)
    return np.maximum(1 - sure - wrong_after(gap, spread, left), 0.0)
