"""How far agreement with a consensus can be relied on: effective number of pairs, and noise of the consensus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .data.pairing import pairs_within
from .protocols import Bools, Counts, Floats

FEW_PAIRS = 200_000
"""Up to so many pairs are listed, which is done before a compiled kernel is even loaded."""

_GUESSING_ITEMS = 20.0
"""Items that the spread under guessing counts as, beside the spread that an annotator's items show themselves."""

_LEAST_CORRELATION = 0.02
_NINETY = 1.6448536269514722
_OVERSHOOT = 0.25
"""By so much may a corrected correlation exceed 1 before bounds are set, with an exact consensus: measured."""

_ROUNDS = 6
"""Rounds in which a bound and its own variance settle, to about 1e-3."""

_WIDER = 1.05
"""The consensus without a reversed annotator is better than the crowd's, without a good one worse: measured."""

_STUDENT = 0.5 * (_NINETY**2 + 1.0)
"""By this over the degrees of freedom, the square of a quantile of Student's t is larger than that of the normal."""


class Spread(NamedTuple):
    r"""Sums over an annotator's items, of which follows how far chance may move the agreement, (n_annotators,) each.

    With :math:`c_i` of the :math:`u_i` pairs of item :math:`i` in agreement these are the sums of :math:`c_i^2`,
    :math:`c_i u_i` and :math:`u_i^2`, the variance of the number of pairs in agreement if the annotator guesses
    (:func:`guessing_variance`), and the number of items. Pairs that share no item have no items here.
    """

    agree_agree: Floats
    agree_total: Floats
    total_total: Floats
    guessing: Floats
    n_items: Floats

    @classmethod
    def none(cls, n_annotators: int) -> Spread:
        """Return the sums over no item at all."""
        return cls(*np.zeros((5, n_annotators)))

    def plus(self, other: Spread) -> Spread:
        """Return the sums over the items of both."""
        return Spread(*(one + two for one, two in zip(self, other, strict=True)))


def guessing_variance(lean: Floats, total: Floats, ties: ConsensusTies | None = None) -> Floats:
    r"""Return what each row adds to the variance of the number of pairs in agreement, of somebody who guesses.

    With :math:`l_i` the number of rows of the group answered lower than row :math:`i` less those answered higher, and
    :math:`t_i` that of rows answered otherwise, the variance under all orders of the scores is
    :math:`\sum_i (k_1 (l_i^2 - t_i) / 12 + k_2 t_i / 8)`, where :math:`k_1` and :math:`k_2` are 1 unless scores are
    equal [Kendall38]_.
    """
    triples, pairs = (1.0, 1.0) if ties is None else ties
    found: Floats = triples * (lean * lean - total) / 12.0 + pairs * total / 8.0
    return found


class ConsensusTies(NamedTuple):
    """How far equal scores lower the variance under guessing, for each row: by its triples and by its pairs."""

    triples: Floats
    pairs: Floats

    @classmethod
    def of(cls, offsets: Counts, score: Floats) -> ConsensusTies:
        """Return the factors of groups of rows by the rows' scores."""
        sizes = np.diff(offsets)
        group, place = np.repeat(np.arange(len(sizes)), sizes), places(offsets, score)
        level = offsets[:-1][group] + place
        alike = np.bincount(level, minlength=len(score))
        below = np.cumsum(alike) - alike
        lower = below[level] - offsets[:-1][group]
        lean = 2.0 * lower + alike[level] - sizes[group]
        pairs = add_up(sizes[group] - alike[level], group, len(sizes))
        triples = add_up(lean * lean, group, len(sizes)) - pairs
        of_pairs = pairs / np.maximum(sizes * (sizes - 1.0), 1.0)
        of_triples = 3.0 * triples / np.maximum(sizes * (sizes - 1.0) * (sizes - 2.0), 1.0)
        return cls(of_triples[group], of_pairs[group])


class Evidence(NamedTuple):
    """Independent pairs that an annotator's items are worth as they show it themselves, and what guessing has."""

    share: Floats
    total: Floats
    own: Floats
    spread: Spread

    @classmethod
    def of(cls, agree: Floats, total: Floats, spread: Spread) -> Evidence:
        r"""Return the evidence of pairs of which so many agree.

        Pairs that share an item are not independent. With :math:`e_{ij}` the agreement on a pair less the annotator's
        mean, the variance of the sum is :math:`\sum_i (\sum_j e_{ij})^2 - \sum_{i < j} e_{ij}^2` [Sen60]_.
        """
        share = (agree + 0.5) / (total + 1.0)
        own = spread.agree_agree - 2.0 * share * spread.agree_total + share**2 * spread.total_total
        own -= agree * (1.0 - share) ** 2 + (total - agree) * share**2
        # the mean is estimated from the same items
        own *= spread.n_items / np.maximum(spread.n_items - 2.0, 1.0)
        return cls(share, total, np.maximum(own, 0.0) / (share * (1.0 - share)), spread)

    def trust(self, quality: Floats) -> Floats:
        """Return the weight of the variance that items show themselves, if this is the quality.

        Few items hardly show it, nor do many that nearly all agree: single pairs would tell by their variance, means of
        an item's pairs, which are less skewed, by its root. Of a guesser it is known.
        """
        telling = 2.0 * np.sqrt(self.share * (1.0 - self.share)) * self.spread.n_items
        weight: Floats = np.minimum(2.0 * np.abs(2.0 * quality - 1.0), 1.0) * telling / (telling + _GUESSING_ITEMS)
        return weight

    def pairs(self, quality: Floats) -> Floats:
        """Return the number of independent pairs that tell as much, if this is the quality, (n_annotators,).

        The variance that items show, relative to that of independent pairs, is averaged with that under guessing, which
        counts as 20 items.
        """
        weight = self.trust(quality)
        variance = weight * self.own + (1.0 - weight) * 4.0 * self.spread.guessing
        found = np.divide(self.total**2, variance, out=np.zeros_like(self.total), where=variance > 0)
        return np.minimum(found, self.total)

    def bounds(self, share: Floats, tails: tuple[float, ...], most: float) -> tuple[Floats, ...]:
        """Return quantiles of the quality, Jeffreys' with the pairs that there are if the quality is the quantile.

        A quality is excluded where it makes the share improbable: its own variance says so, not that of the share.
        """
        from scipy.special import betaincinv

        found = []
        for tail in tails:
            bound = share
            for _ in range(_ROUNDS):
                pairs = self._cautious_pairs(bound, most)
                bound = np.asarray(betaincinv(share * pairs + 0.5, (1.0 - share) * pairs + 0.5, tail), np.float64)
            found.append(bound)
        return tuple(found)

    def _cautious_pairs(self, quality: Floats, most: float) -> Floats:
        """Number of pairs for bounds: fewer, as their variance is estimated and consensuses differ."""
        pairs = np.minimum(self.pairs(quality), most)
        freedom = np.maximum(np.maximum(self.spread.n_items, pairs), 1.0)
        return pairs / (_WIDER + _STUDENT / freedom)


def row_sums(offsets: Counts, grade: Floats, score: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each row's pairs in agreement, all its pairs with unequal grades, and those it is above less those below.

    Pairs are of rows of one group, which rise by grade; a row's pair weighs as much as the other row. Equal scores are
    half in agreement.
    """
    sizes = np.diff(offsets)
    if int((sizes * (sizes - 1) // 2).sum()) > FEW_PAIRS:
        from .kernels.concordance import row_concordance

        found: tuple[Floats, Floats, Floats]
        found = row_concordance(offsets, grade, places(offsets, score), weight.astype(np.float64))
        return found
    first, second = pairs_within(np.arange(len(grade)), np.repeat(offsets[1:], sizes))
    way = np.sign(grade[second] - grade[first])
    right = 0.5 * np.abs(way) * (1.0 + way * np.sign(score[second] - score[first]))

    def both(of_first: Floats, of_second: Floats) -> Floats:
        n = len(grade)
        return add_up(weight[second] * of_first, first, n) + add_up(weight[first] * of_second, second, n)

    return both(right, right), both(np.abs(way), np.abs(way)), both(-way, way)


def places(offsets: Counts, score: Floats) -> Counts:
    """Return the place of each row by its score within its group, 0 for the lowest; equal scores share one."""
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((score, group))
    climbed = np.cumsum(np.append(False, np.diff(score[order]) != 0))
    place = np.empty(len(order), np.int64)
    place[order] = climbed - climbed[offsets[:-1]][group]
    return place


def pairs_on_one_level(offsets: Counts, grade: Floats, score: Floats, weight: Floats) -> Floats:
    """Return the pairs of each row with rows of its group that are answered otherwise and have the same score."""
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    level = offsets[:-1][group] + places(offsets, score)
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(level[order]) != 0))
    within = np.append(starts, len(order))
    same = np.empty(len(order))
    same[order] = row_sums(within, grade[order], score[order], weight[order])[1]
    return same


@dataclass(frozen=True)
class Reliability:
    """Correlation of a consensus with the truth, with the ends of its 90 % interval."""

    middle: float
    lower: float
    upper: float

    def corrected(self, share: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        r"""Return shares of agreement with the consensus, and bounds of them, as those with the truth would be.

        A share :math:`a` of pairs in agreement stands for a correlation :math:`\sin(\pi (a - 1/2))` [Greiner09]_, which
        the noise of the consensus makes smaller by its own correlation with the truth [Spearman04]_. What is not known
        of that makes the bounds wider.
        """
        centre, low, high = (np.sin(np.pi * (one - 0.5)) for one in (share, lower, upper))
        # of a positive correlation the upper bound is that of a noisier consensus, and the lower that of a better one
        least, most = (centre / end - centre / self.middle for end in (self.lower, self.upper))
        # more than a noisy consensus lets anybody agree is chance, which bounds have on either side
        most_found = 1.0 + _OVERSHOOT * self.middle**2
        found = np.clip(centre / self.middle, -most_found, most_found)
        up = np.hypot((high - centre) / self.middle, np.maximum(least, most))
        down = np.hypot((centre - low) / self.middle, np.minimum(least, most))
        return _as_share(found), _as_share(found - down), _as_share(found + up)

    def at_least(self, share: Floats, effective: Floats) -> Reliability:
        """Return the same, but no less than annotators' agreement shows: nobody agrees with noise, or contradicts it.

        Halves of a small crowd may contradict each other though all but one annotator agree.
        """
        correlation = np.sin(np.pi * (share - 0.5))
        noise = np.pi**2 * (1.0 - correlation**2) * share * (1.0 - share)
        total = max(float(effective.sum()), 1e-12)
        square = float((effective * correlation**2).sum() - noise[effective > 0].sum()) / total
        floor = float(np.sqrt(max(square, 0.0)))
        return Reliability(max(self.middle, floor), max(self.lower, floor), max(self.upper, floor))


EXACT = Reliability(1.0, 1.0, 1.0)
"""That of a truth."""


def _as_share(correlation: Floats) -> Floats:
    """Share of pairs in agreement at a correlation."""
    share: Floats = 0.5 + np.arcsin(np.clip(correlation, -1.0, 1.0)) / np.pi
    return share


class Half(NamedTuple):
    """Scores that half of the annotators lead to, and how many judgments of theirs each item has, (n_items,) each."""

    scores: Floats
    n_judgments: Floats


class Halving(NamedTuple):
    """How a crowd is cut into halves.

    Parameters
    ----------
    order
        Codes of the annotators who judged, such that neighbours are alike.
    offsets, n_judgments
        First item of each query, and how many judgments each item has.
    left_out
        Share of the judgments that the consensus does without.
    n_ways
        Number of ways to cut the crowd in two.
    levelled
        Whether scores are levels, so that items of equal ones are no pair.
    """

    order: Counts
    offsets: Counts
    n_judgments: Floats
    left_out: float
    n_ways: int
    levelled: bool


def reliability(half: Callable[[Bools], Half], cut: Halving) -> Reliability:
    """Return how well the consensus of all but a few annotators correlates with the truth.

    The crowd is cut into halves, in up to three ways, and the correlation of their consensus, by the pairs of items
    that both order alike, is that of one half with the truth, squared; from there on it grows with the number of
    judgments an item has [Spearman10]_ [Brown10]_. ``half`` gives what the annotators of a mask lead to.
    """
    agree, total, each, items = 0.0, 0.0, [], []
    for part in _parts(len(cut.order))[: cut.n_ways]:
        mask = np.zeros(int(cut.order.max(initial=-1)) + 1, bool)
        mask[cut.order[part]] = True
        one, two = half(mask), half(~mask)
        both = (one.n_judgments > 0) & (two.n_judgments > 0)
        if both.any():
            same, of = _order_alike(one.scores, two.scores, both, cut)
            agree, total = agree + same, total + of
            each.append(0.5 * float((one.n_judgments + two.n_judgments)[both].mean()))
            query = np.searchsorted(cut.offsets, np.flatnonzero(both), side="right") - 1
            items.append(float(np.maximum(np.bincount(query) - 1, 0).sum()))
    if total <= 0:
        return Reliability(_LEAST_CORRELATION, _LEAST_CORRELATION, 1.0)
    judged = cut.n_judgments > 0
    longer = (1.0 - cut.left_out) * float(cut.n_judgments[judged].mean()) / float(np.mean(each))
    middle = np.arctanh(np.clip(np.sin(np.pi * (agree / total - 0.5)), -0.999, 0.999))
    reach = _NINETY / np.sqrt(max(float(np.mean(items)) - 2.0, 1.0))
    ends = (_grown(float(np.tanh(middle + by)), longer) for by in (0.0, -reach, reach))
    return Reliability(*ends)


def _grown(correlation: float, longer: float) -> float:
    """Correlation with the truth of a consensus of so many times the judgments, from that between two consensuses."""
    between = max(correlation, _LEAST_CORRELATION**2)
    return max(float(np.sqrt(longer * between / (1.0 + (longer - 1.0) * between))), _LEAST_CORRELATION)


def _parts(n: int) -> list[Bools]:
    """Three ways of halving so many things that are in order, each way alike in it; of three things, all ways."""
    number = np.arange(n)
    first, second = number & 1, number >> 1 & 1
    ways = [(way == 1) for way in (first, second, first ^ second)]
    return [way for way in ways if way.any() and not way.all()]


def _order_alike(one: Floats, two: Floats, both: Bools, cut: Halving) -> tuple[float, float]:
    """Number of pairs of items of one query that two consensuses order alike, and of all that the second orders."""
    item = np.flatnonzero(both)
    query = np.searchsorted(cut.offsets, item, side="right") - 1
    order = np.lexsort((two[item], query))
    item, query = item[order], query[order]
    starts = np.flatnonzero(np.append(True, np.diff(query) != 0))
    queries = np.append(starts, len(item)), two[item], one[item], np.ones(len(item))
    agree, total, _ = row_sums(*queries)
    if cut.levelled:
        same = pairs_on_one_level(*queries)
        agree, total = agree - 0.5 * same, total - same
    return 0.5 * float(agree.sum()), 0.5 * float(total.sum())


def add_up(values: Any, owner: Any, n: int) -> Floats:
    """Return the sum of the values of each annotator."""
    return np.bincount(owner, values, minlength=n).astype(np.float64, copy=False)
