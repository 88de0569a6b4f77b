"""How far agreement with a consensus can be relied on: effective number of pairs, and noise of the consensus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .data.judged import pairs_within
from .protocols import Bools, Counts, Floats

# threshold (equal): pairs compared for quality one by one
FEW_PAIRS = 200_000
"""Up to this many pairs are listed, which is done before a compiled kernel is even loaded."""

_MODEL_ITEMS = 8.0
"""Items that an expected variance is worth if it may be wrong by one half: n tell one within a root of 2 / n."""

_USUAL_GAP = 0.02
"""Variance of the share of pairs about what exactness lets expect, relative to that of a pair: the median of .005 to
.11 that four methods show on seven public sets of grades. It counts as much as eight annotators of many pairs."""

_LEAST_CORRELATION = 0.02
_ROUNDING = 1e-9
_NINETY = 1.6448536269514722
_N_ROUNDS = 6
"""Rounds in which a bound and its own variance settle, to about 1e-3."""

_STUDENT = 0.5 * (_NINETY**2 + 1.0)
"""By this over the degrees of freedom, the square of a quantile of Student's t is larger than that of the normal."""


class Spread(NamedTuple):
    r"""Sums over an annotator's items, of which follows how far chance may move the agreement, (n_annotators,) each.

    With :math:`c_i` of the :math:`u_i` pairs of item :math:`i` in agreement these are the sums of :math:`c_i^2`,
    :math:`c_i u_i` and :math:`u_i^2`, those of :math:`f_i v_i c_i`, :math:`f_i v_i u_i` and :math:`f_i v_i^2` (see
    :func:`item_trend`), what pairs with a common item and pairs alone add to the variance of the number of pairs in
    agreement if the annotator guesses (:func:`guessing_variance`), and the number of items. Pairs that share no item
    have no items here.
    """

    agree_agree: Floats
    agree_total: Floats
    total_total: Floats
    trend_agree: Floats
    trend_total: Floats
    trend_trend: Floats
    triples: Floats
    pairs: Floats
    n_items: Floats

    @classmethod
    def none(cls, n_annotators: int) -> Spread:
        """Return the sums over no item at all."""
        return cls(*np.zeros((9, n_annotators)))

    def plus(self, other: Spread) -> Spread:
        """Return the sums over the items of both."""
        return Spread(*(one + two for one, two in zip(self, other, strict=True)))


def guessing_variance(lean: Floats, total: Floats, ties: ConsensusTies | None = None) -> tuple[Floats, Floats]:
    r"""Return what each row adds to the variance of the number of pairs in agreement, of somebody who guesses.

    The first figure is what pairs with a common row add, the second what pairs have alone.

    With :math:`l_i` the number of rows of the group answered lower than row :math:`i` less those answered higher, and
    :math:`t_i` that of rows answered otherwise, the variance under all orders of the scores is
    :math:`\sum_i (k_1 (l_i^2 - t_i) / 12 + k_2 t_i / 8)`, where :math:`k_1` and :math:`k_2` are 1 unless scores are
    equal [Kendall38]_.
    """
    triples, pairs = (1.0, 1.0) if ties is None else ties
    return triples * (lean * lean - total) / 12.0, pairs * total / 8.0


class ConsensusTies(NamedTuple):
    """How far equal scores lower the variance under guessing, for each row: by its triples and by its pairs."""

    triples: Floats
    pairs: Floats

    @classmethod
    def of(cls, offsets: Counts, place: Counts) -> ConsensusTies:
        """Return the factors of groups of rows by the rows' places."""
        sizes = np.diff(offsets)
        group = np.repeat(np.arange(len(sizes)), sizes)
        level = offsets[:-1][group] + place
        alike = np.bincount(level, minlength=len(place))
        below = np.cumsum(alike) - alike
        lower = below[level] - offsets[:-1][group]
        lean = 2.0 * lower + alike[level] - sizes[group]
        pairs = add_up(sizes[group] - alike[level], group, len(sizes))
        triples = add_up(lean * lean, group, len(sizes)) - pairs
        of_pairs = pairs / np.maximum(sizes * (sizes - 1.0), 1.0)
        of_triples = 3.0 * triples / np.maximum(sizes * (sizes - 1.0) * (sizes - 2.0), 1.0)
        return cls(of_triples[group], of_pairs[group])


def item_trend(offsets: Counts, place: Counts, weight: Floats, population: Counts) -> tuple[Floats, Floats]:
    """Return how far each row stands from the middle of its group, and the part of the population that the group has.

    Items at the ends of the order are easier to place. Which items an annotator got is chance, but not to the extent
    that these are all there are. The distance is the squared one in places, less its mean.
    """
    sizes = np.diff(offsets)
    group = np.repeat(np.arange(len(sizes)), sizes)
    n_places = np.maximum.reduceat(place, offsets[:-1])[group] + 1.0
    trend: Floats = ((2.0 * place + 1.0) / n_places - 1.0) ** 2 - 1.0 / 3.0
    return trend, np.minimum(add_up(weight, group, len(sizes))[group] / population, 1.0)


class Evidence(NamedTuple):
    """Agreement of annotators, and how far chance may move it: as their own items show, and as the crowd's do.

    ``own`` is the variance of the number of pairs in agreement, relative to that of one pair, ``tied`` how strongly
    pairs with a common item depend on each other (:meth:`expected`).
    """

    share: Floats
    total: Floats
    own: Floats
    spread: Spread
    tied: float

    @classmethod
    def of(cls, agree: Floats, total: Floats, spread: Spread) -> Evidence:
        r"""Return the evidence of pairs, given how many agree.

        Pairs that share an item are not independent. With :math:`e_{ij}` the agreement on a pair less the annotator's
        mean, the variance of the sum is :math:`\sum_i (\sum_j e_{ij})^2 - \sum_{i < j} e_{ij}^2` [Sen60]_. The mean is
        estimated from the same items; all pairs of pairs over those without a common item is the factor that makes up
        for it. What a trend in the items explains is no chance as far as the annotator judged all there are.
        """
        share = (agree + 0.5) / (total + 1.0)
        own = spread.agree_agree - 2.0 * share * spread.agree_total + share**2 * spread.total_total
        own -= agree * (1.0 - share) ** 2 + (total - agree) * share**2
        trend = (spread.trend_agree - share * spread.trend_total) ** 2
        own -= np.divide(trend, spread.trend_trend, out=np.zeros_like(own), where=spread.trend_trend > 0)
        apart = total**2 - spread.total_total + total
        # what rounding leaves of none is none
        own = np.divide(own * total**2, apart, out=np.zeros_like(own), where=apart > _ROUNDING * total**2)
        evidence = cls(share, total, own / (share * (1.0 - share)), spread, 1.0)
        return evidence._replace(own=np.maximum(evidence.own, 0.0), tied=evidence._dependence())

    def _dependence(self) -> float:
        """Dependence of pairs with a common item that the items of all annotators show, strong if few do."""
        each = self.share * (1.0 - self.share) / np.maximum(self.total, 1e-300)
        strong, gap = self.expected_variance(self.share), self._gap(self.share)
        reach = float((each * gap * strong).sum())
        if reach <= 0:
            return 1.0
        missing = float((each * (strong - self.own)).sum()) / reach
        worth = float((gap**2 * self.telling).sum())
        return 1.0 - float(np.clip(missing, 0.0, 1.0)) * worth / (worth + _MODEL_ITEMS)

    def _gap(self, quality: Floats) -> Floats:
        """Part of the variance at a quality that strong dependence has more than weak, (n_annotators,)."""
        weak = self._replace(tied=0.0).expected_variance(quality)
        strong = self._replace(tied=1.0).expected_variance(quality)
        return 1.0 - np.divide(weak, strong, out=np.ones_like(weak), where=strong > 0)

    @property
    def telling(self) -> Floats:
        """Number of items that tell of a variance: hardly any where nearly all agree.

        Single pairs would tell by their variance, means of an item's pairs, which are less skewed, by its root.
        """
        return 2.0 * np.sqrt(self.share * (1.0 - self.share)) * self.spread.n_items

    def expected_variance(self, quality: Floats) -> Floats:
        r"""Return the variance of the number of pairs in agreement at a quality, relative to that of one pair.

        That of a guesser is known. Of better annotators pairs with a common item depend on each other as strongly as of
        a guesser if whole items are mistaken for others. They do so
        :math:`(1 - (6 \arcsin(\rho / 2) / \pi)^2) / (4 q (1 - q))` times as strongly if answers and scores are normal
        with correlation :math:`\rho = \sin(\pi (q - 1/2))` [Esscher24]_. ``tied`` is the share of the former.
        """
        correlation = np.sin(np.pi * (quality - 0.5))
        normal = 1.0 - (6.0 * np.arcsin(0.5 * correlation) / np.pi) ** 2
        # both vanish at qualities of 0 and 1
        normal = normal / np.maximum(4.0 * quality * (1.0 - quality), 1e-12)
        common = self.tied + (1.0 - self.tied) * normal
        variance: Floats = 4.0 * (common * self.spread.triples + self.spread.pairs)
        return variance

    def variance(self, quality: Floats) -> tuple[Floats, Floats]:
        """Return the variance at a quality, relative to that of one pair, and the degrees of freedom it has.

        The variance that items show is averaged with the expected one, which may be wrong by half of the gap between
        strong and weak dependence, each by its precision.
        """
        worth = _MODEL_ITEMS / np.maximum(self._gap(quality), 1e-6) ** 2
        freedom = self.telling + worth
        weight = self.telling / freedom
        return weight * self.own + (1.0 - weight) * self.expected_variance(quality), freedom

    def pairs(self, quality: Floats) -> Floats:
        """Return the number of independent pairs that tell as much, if this is the quality, (n_annotators,)."""
        return self._pairs(self.variance(quality)[0])

    def _pairs(self, variance: Floats) -> Floats:
        effective = np.divide(self.total**2, variance, out=np.zeros_like(self.total), where=variance > 0)
        return np.minimum(effective, self.total)

    def bounds(
        self, share: Floats, tails: tuple[float, ...], most: float, exactness: Exactness | None = None
    ) -> tuple[Floats, ...]:
        """Return quantiles of the quality, Jeffreys' with the pairs that there are if the quality is the quantile.

        ``exactness`` counts as further pairs.

        A quality is excluded where it makes the share improbable: its own variance says so, not that of the share. As
        the variance is estimated, bounds are those of Student's t. Where all pairs agree, or none, Jeffreys' bound is
        too near to the end, and the exact one takes its place [Brown01]_.
        """
        limits = []
        for tail in tails:
            bound = share
            for _ in range(_N_ROUNDS):
                variance, freedom = self.variance(bound)
                pairs = np.minimum(self._pairs(variance), most) / (1.0 + _STUDENT / freedom)
                bound = _share_quantile(*((share, pairs) if exactness is None else exactness.add(share, pairs)), tail)
            limits.append(bound)
        return tuple(limits)


class Association(NamedTuple):
    """Sums over an annotator's grades x of items that others graded y on average, (n_annotators,) each."""

    number: Floats
    x: Floats
    y: Floats
    xx: Floats
    yy: Floats
    xy: Floats

    def plus(self, other: Association | None) -> Association:
        """Return the sums over the grades of both."""
        return self if other is None else Association(*(one + two for one, two in zip(self, other, strict=True)))

    def correlations(self) -> tuple[Floats, Floats]:
        """Return the correlation of each annotator's grades with those of others, and how many grades tell of it.

        Half a grade like those of the crowd keeps it off -1 and 1. The variance of Fisher's z of n pairs of numbers is
        1 / (n - 3), so that three grades tell nothing; nor do grades that are all the same, or items that are.
        """
        number = np.maximum(self.number, 1e-300)
        spread_x, spread_y = self.xx - self.x**2 / number, self.yy - self.y**2 / number
        together = self.xy - self.x * self.y / number
        total = max(float(self.number.sum()), 1e-300)
        x, y, xy = (float(sums.sum()) / total for sums in (spread_x, spread_y, together))
        if x <= _ROUNDING or y <= _ROUNDING:
            return np.zeros_like(number), np.zeros_like(number)
        correlation = (together + 0.5 * xy) / np.sqrt((spread_x + 0.5 * x) * (spread_y + 0.5 * y))
        lively = np.clip(spread_x / (number * x), 0.0, 1.0) * np.clip(spread_y / (number * y), 0.0, 1.0)
        return np.clip(correlation, -0.999, 0.999), lively * np.maximum(self.number - 3.0, 0.0)


class Exactness(NamedTuple):
    r"""What grades without a pair say of quality: the share of pairs expected of how exact they are, (n_annotators,).

    Parameters
    ----------
    share
        Expected share of pairs in agreement.
    chance, gap
        Variance of it, relative to that of one pair: by chance, and by what ordering has beside exactness.
    common
        Correlation of its error with that of the pairs, which some of the same grades are in.
    """

    share: Floats
    chance: Floats
    gap: float
    common: Floats

    @classmethod
    def of(cls, grades: Association, level_shares: Floats, share: Floats, pairs: Floats, n_items: Floats) -> Exactness:
        r"""Return what the correlation of grades with those of others says of pairs.

        If an answer names the true level with probability :math:`\lambda` and one of all that are given otherwise,
        :math:`\lambda` is the correlation with the truth, and the probability :math:`q(\lambda)` of ordering a pair
        follows from the shares of levels. The crowd's own ``pairs`` say how far that holds for them: log odds of a
        share are taken to be those of :math:`q` times a constant, about which annotators vary like a beta distribution.
        """
        correlation, number = grades.correlations()
        expected, slope = _order_of_exact(correlation, level_shares)
        log_odds = np.log(expected / (1.0 - expected))
        factor, worth = 1.0, _MODEL_ITEMS * float(np.mean(0.25 * log_odds**2))
        for _ in range(_N_ROUNDS):
            fitted = 1.0 / (1.0 + np.exp(-factor * log_odds))
            push = float((pairs * log_odds * (share - fitted)).sum()) - worth * (factor - 1.0)
            pull = float((pairs * log_odds**2 * fitted * (1.0 - fitted)).sum()) + worth
            factor = float(np.clip(factor + push / max(pull, 1e-12), 0.0, 2.0))
        # nobody is expected to order all pairs: one who does not would make the gap of all others large
        fitted = np.clip(1.0 / (1.0 + np.exp(-factor * log_odds)), 0.01, 0.99)
        each = fitted * (1.0 - fitted)
        chance = each * (factor * slope) ** 2 / np.maximum(number, 1e-9)
        common = np.sqrt(np.clip(n_items / np.maximum(grades.number, 1e-9), 0.0, 1.0))
        of_pairs = 1.0 / np.maximum(pairs, 1e-9)
        noise = of_pairs + chance - 2.0 * common * np.sqrt(of_pairs * chance)
        weight = np.where(pairs > 0, (_USUAL_GAP / (noise + _USUAL_GAP)) ** 2, 0.0)
        excess = float((weight * ((share - fitted) ** 2 / each - noise)).sum())
        gap = (excess + _MODEL_ITEMS * _USUAL_GAP) / (float(weight.sum()) + _MODEL_ITEMS)
        return cls(fitted, chance, float(np.clip(gap, 1e-3, 1.0)), common)

    def add(self, share: Floats, pairs: Floats) -> tuple[Floats, Floats]:
        """Return the share of pairs and exactness together, and the number of pairs that tell as much."""
        own, beside = 1.0 / np.maximum(pairs, 1e-9), self.chance + self.gap
        both = self.common * np.sqrt(own * self.chance)
        weight = np.clip((beside - both) / (own + beside - 2.0 * both), 0.0, 1.0)
        variance = weight**2 * own + (1.0 - weight) ** 2 * beside + 2.0 * weight * (1.0 - weight) * both
        return weight * share + (1.0 - weight) * self.share, 1.0 / variance


def _order_of_exact(correlation: Floats, level_shares: Floats) -> tuple[Floats, Floats]:
    """Probability of ordering a pair at a correlation with the truth, and how its log odds rise with Fisher's z."""
    above = 1.0 - np.cumsum(level_shares)
    below = 1.0 - above - level_shares
    pairs = float(level_shares @ above)
    right = 0.5 * float(level_shares @ (above**2 + below**2))
    wrong = float(level_shares @ (above * below))

    def log_odds(z: Floats) -> Floats:
        exact = np.tanh(np.abs(z))
        both, one, none = exact**2, 2.0 * exact * (1.0 - exact), (1.0 - exact) ** 2
        odds = (both * pairs + one * right + none * pairs**2) / (one * wrong + none * pairs**2)
        return np.sign(z) * np.log(odds)

    z = np.arctanh(correlation)
    slope = (log_odds(z + 0.05) - log_odds(z - 0.05)) / 0.1
    return 1.0 / (1.0 + np.exp(-log_odds(z))), slope


def _share_quantile(share: Floats, pairs: Floats, tail: float) -> Floats:
    """Jeffreys' quantile of a share of this many pairs, the exact one where all or none are in agreement."""
    from scipy.special import betaincinv

    # sums of weights may be off by rounding
    none, all_ = share <= _ROUNDING, share >= 1.0 - _ROUNDING
    right = np.where(none, 1.0, np.where(all_, np.maximum(pairs, 1e-12), share * pairs + 0.5))
    wrong = np.where(all_, 1.0, np.where(none, np.maximum(pairs, 1e-12), (1.0 - share) * pairs + 0.5))
    quantile = np.asarray(betaincinv(right, wrong, tail), np.float64)
    end = np.where(none, 0.0, 1.0)
    return np.where((none & (tail < 0.5)) | (all_ & (tail > 0.5)), end, quantile)


def row_sums(offsets: Counts, grade: Floats, place: Counts, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each row's pairs in agreement, all its pairs with unequal grades, and those it is above less those below.

    Pairs are of rows of one group, which rise by grade; a row's pair weighs as much as the other row. Equal places by
    score (:func:`places`) are half in agreement.
    """
    sizes = np.diff(offsets)
    if int((sizes * (sizes - 1) // 2).sum()) > FEW_PAIRS:
        from .kernels.concordance import row_concordance

        sums: tuple[Floats, Floats, Floats]
        sums = row_concordance(offsets, grade, place, weight.astype(np.float64))
        return sums
    first, second = pairs_within(np.arange(len(grade)), np.repeat(offsets[1:], sizes))
    way = np.sign(grade[second] - grade[first])
    right = 0.5 * np.abs(way) * (1.0 + way * np.sign(place[second] - place[first]))

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


def pairs_on_one_level(offsets: Counts, grade: Floats, place: Counts, weight: Floats) -> Floats:
    """Return the pairs of each row with rows of its group that are answered otherwise and have the same place."""
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    level = offsets[:-1][group] + place
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(level[order]) != 0))
    within = np.append(starts, len(order))
    same = np.empty(len(order))
    same[order] = row_sums(within, grade[order], np.zeros_like(place), weight[order])[1]
    return same


@dataclass(frozen=True)
class Reliability:
    """Correlation of a consensus with the truth, with the ends of its 90 % interval.

    With ``n_classes``, agreement is on single answers that name one of this many classes, not on pairs in order.
    """

    middle: float
    lower: float
    upper: float
    n_classes: int = 0

    def correct_shares(self, share: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        r"""Return shares of agreement with the consensus, and bounds of them, as those with the truth would be.

        A share :math:`a` of pairs in agreement stands for a correlation :math:`\sin(\pi (a - 1/2))` [Greiner09]_, which
        the noise of the consensus makes smaller by its own correlation with the truth [Spearman04]_. What is not known
        of that makes the bounds wider; where it may be none at all, nothing shows which way round the consensus is, and
        bounds are all that there can be. A share of answers with the same class of :math:`K` stands for
        :math:`(K a - 1) / (K - 1)`, and comes back as the quality of one whose mistakes fall on all classes alike.
        """
        centre, low, high = (self._correlation(one) for one in (share, lower, upper))
        # of a positive correlation the upper bound is that of a noisier consensus, and the lower that of a better one
        least, most = (centre / end - centre / self.middle for end in (self.lower, self.upper))
        # more agreement than the best consensus within its interval lets anybody have is chance
        shares = np.clip(centre, -self.upper, self.upper) / self.middle
        up = np.hypot((high - centre) / self.middle, np.maximum(least, most))
        down = np.hypot((centre - low) / self.middle, np.minimum(least, most))
        if self.lower <= _LEAST_CORRELATION:
            up = down = np.full_like(shares, np.inf)
        return self._as_share(shares), self._as_share(shares - down), self._as_share(shares + up)

    def _correlation(self, share: Floats) -> Floats:
        """Correlation that a share in agreement stands for."""
        classes = self.n_classes
        correlation: Floats = chance_corrected(share, classes) if classes else np.sin(np.pi * (share - 0.5))
        return correlation

    def _as_share(self, correlation: Floats) -> Floats:
        """Share of pairs in agreement at a correlation."""
        if self.n_classes:
            return 0.5 + 0.5 * np.clip(correlation, -1.0 / (self.n_classes - 1), 1.0)
        share: Floats = 0.5 + np.arcsin(np.clip(correlation, -1.0, 1.0)) / np.pi
        return share

    def at_least(self, share: Floats, effective: Floats) -> Reliability:
        """Return the same, but no less than annotators' agreement shows: nobody agrees with noise, or contradicts it.

        Halves of a small crowd may contradict each other though all but one annotator agree. Where those who contradict
        the others outweigh those who agree with them, nothing shows which way round the consensus is.
        """
        from scipy.special import erf

        correlation = np.sin(np.pi * (share - 0.5))
        noise = np.pi**2 * (1.0 - correlation**2) * share * (1.0 - share)
        total = max(float(effective.sum()), 1e-12)
        # how far beyond chance each agrees (1) or contradicts (-1)
        clearly = erf(correlation * np.sqrt(0.5 * effective / np.maximum(noise, 1e-12)))
        if float((effective * clearly).sum()) <= 0.0:
            return self
        square = float((effective * correlation**2).sum() - noise[effective > 0].sum()) / total
        floor = float(np.sqrt(max(square, 0.0)))
        return Reliability(max(self.middle, floor), max(self.lower, floor), max(self.upper, floor))


EXACT = Reliability(1.0, 1.0, 1.0)
"""That of a truth."""


def chance_corrected(share: Any, n_classes: int) -> Any:
    """Return shares of agreement on one of this many classes, 0 for guessing and 1 for full agreement."""
    return (n_classes * share - 1.0) / (n_classes - 1.0)


def class_reliability(item: Counts, level: Counts, weight: Floats, n_classes: int, share: float) -> Reliability:
    """Return how well a consensus of classes agrees with the truth, from answers to the same item.

    Two annotators agree on an item, corrected for chance, as the product of their agreement with the truth; an
    annotator and a consensus do so too. Hence the square root of the agreement between annotators is their mean
    agreement with the truth, and their agreement with the consensus over it is that of the consensus. ``share`` is the
    share of all answers that name the class of the consensus without their annotator.
    """
    cell, owner = np.unique(item * n_classes + level, return_inverse=True)
    n_items = int(item.max(initial=-1)) + 1
    n, squares = add_up(weight, item, n_items), add_up(weight**2, item, n_items)
    same = add_up(add_up(weight, owner, len(cell)) ** 2, cell // n_classes, n_items) - squares
    pairs = n**2 - squares
    several = pairs > 1e-9 * n**2
    if not several.any():
        return Reliability(_LEAST_CORRELATION, _LEAST_CORRELATION, 1.0, n_classes)
    same, n = (same[several] / pairs[several]) * n[several], n[several]
    between = float(same.sum() / n.sum())
    error = np.sqrt(((same - between * n) ** 2).sum() * len(n) / max(len(n) - 1.0, 1.0)) / n.sum()
    corrected = max(float(chance_corrected(share, n_classes)), 0.0)

    def of_consensus(agreement: float) -> float:
        mean = np.sqrt(max(float(chance_corrected(agreement, n_classes)), _LEAST_CORRELATION**2))
        return float(np.clip(corrected / mean, _LEAST_CORRELATION, 1.0))

    middle, lower, upper = (of_consensus(between + by * _NINETY * float(error)) for by in (0.0, 1.0, -1.0))
    return Reliability(middle, lower, upper, n_classes)


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
    # a correlation from pairs in order errs by pi / 3 times as much as one from products
    reach = _NINETY * (np.pi / 3.0) / np.sqrt(max(float(np.mean(items)) - 2.0, 1.0))
    centre, lower, upper = (_spearman_brown(float(np.tanh(middle + by)), longer) for by in (0.0, -reach, reach))
    return Reliability(centre, lower, upper)


def _spearman_brown(correlation: float, longer: float) -> float:
    """Correlation with the truth of a consensus of this many times the judgments, from that between two consensuses."""
    if correlation <= _LEAST_CORRELATION**2:
        return _LEAST_CORRELATION
    return max(float(np.sqrt(longer * correlation / (1.0 + (longer - 1.0) * correlation))), _LEAST_CORRELATION)


def _parts(n: int) -> list[Bools]:
    """Three ways to halve this many ordered things, each half spread over the order; of three things, all ways."""
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
    offsets = np.append(starts, len(item))
    queries = offsets, two[item], places(offsets, one[item]), np.ones(len(item))
    agree, total, _ = row_sums(*queries)
    if cut.levelled:
        same = pairs_on_one_level(*queries)
        agree, total = agree - 0.5 * same, total - same
    return 0.5 * float(agree.sum()), 0.5 * float(total.sum())


def add_up(values: Any, owner: Any, n: int) -> Floats:
    """Return the sum of the values of each annotator."""
    return np.bincount(owner, values, minlength=n).astype(np.float64, copy=False)
