"""Quality of annotators: how often they order two unequal items as the consensus of the others does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from .data.consensus import Quality, settle_ties
from .data.index import Index, run_starts
from .data.judged import pairs_within
from .data.judgments import (
    Grades,
    Judgments,
    Mixed,
    Preferences,
    align_judgments,
    parts_of,
    stack_judgments,
    weight_of_items,
)
from .data.naming import named_annotators
from .data.parted import sampled_rows, share_of_rows
from .errors import warn
from .protocols import Aggregator, Bools, Counts, Floats, Ints, Scorer
from .wording import option

# threshold (sample): fits that leave one annotator out
MAX_FOLDS = 20
"""Annotators are left out one by one up to this many, in this many parts above."""

PULL = 0.5
"""Number of pairs that the pull towards the crowd's mean is worth."""

INTERVAL = 0.90
"""Level of the intervals ``lower`` to ``upper``."""

TRUSTED = (95.0, 5.0)
"""Beta prior of the quality of an annotator named in ``trusted=``: pairs right and wrong before any is seen."""

_NEAR_CHANCE = 0.55

_MARGIN = 0.1
"""Part of the width of an interval that a learned quality keeps off its ends."""

# threshold (equal): preferences counted by pair and fold for quality
MANY_PREFERENCES = 200_000
"""Preferences from which on a method that needs counts of pairs only is given these in place of the preferences."""

# threshold (equal): counts of pairs by fold held at a time
_MOST_CELLS = 16_000_000
"""Counts of pairs by fold that are held at a time."""

# threshold (equal): items whose pairs a table numbers for quality
_MOST_TABLE_ITEMS = 4096
"""Items whose pairs a table numbers."""

# threshold (sample): judgments from which on annotators are left out in five parts, not twenty
MANY_JUDGMENTS = 500_000
_FEW_FOLDS = 5
"""Judgments from which on annotators are left out in fewer parts, so that judging them takes no longer than a fit."""

_MOST_EVIDENCE = 1e8
"""Pairs that count at most, with weights; more would change no interval by 1e-4, and quantiles of beta fail there."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of each annotator with unequal answers: those in agreement, all, and how far chance may move them.

    ``grades`` compares an annotator's grades with those that others gave the same items; there are none of other kinds.
    Variances are of the number of pairs in agreement, relative to that of one pair.
    """

    agree: Floats
    n_pairs: Floats
    spread: Spread
    grades: Association | None = None

    def __add__(self, other: Agreement) -> Agreement:
        grades = self.grades or other.grades
        if self.grades and other.grades:
            grades = Association(*map(np.add, self.grades, other.grades))
        spread = Spread(*map(np.add, self.spread, other.spread))
        return Agreement(self.agree + other.agree, self.n_pairs + other.n_pairs, spread, grades)

    @classmethod
    def none(cls, n_annotators: int) -> Agreement:
        """Return the agreement on no pair at all."""
        none = np.zeros(n_annotators)
        return cls(none, none, Spread(*[none] * 9))

    @property
    def share(self) -> Floats:
        """Share of the pairs that are in agreement, one half where there is none, (n_annotators,)."""
        none = np.full(len(self.agree), 0.5)
        return np.divide(self.agree, self.n_pairs, out=none, where=self.n_pairs > 0)

    @property
    def effective(self) -> Floats:
        """Number of independent pairs that tell as much, (n_annotators,)."""
        return self._worth(self.variance(self._inner_share)[0])

    @cached_property
    def _inner_share(self) -> Floats:
        """Share of agreement that half a pair on either side keeps off 0 and 1."""
        return (self.agree + 0.5) / (self.n_pairs + 1.0)

    @cached_property
    def _own_variance(self) -> Floats:
        r"""Variance as the annotator's own items show it; below 0 it is none.

        Pairs that share an item are not independent. With :math:`e_{ij}` the agreement on a pair less the annotator's
        mean, the variance of the sum is :math:`\sum_i (\sum_j e_{ij})^2 - \sum_{i < j} e_{ij}^2` [Sen60]_. The mean is
        estimated from the same items; all pairs of pairs over those without a common item is the factor that makes up
        for it. What a trend in the items explains is no chance as far as the annotator judged all there are.
        """
        share, total, spread = self._inner_share, self.n_pairs, self.spread
        own = spread.agree_agree - 2.0 * share * spread.agree_total + share**2 * spread.total_total
        own -= self.agree * (1.0 - share) ** 2 + (total - self.agree) * share**2
        trend = (spread.trend_agree - share * spread.trend_total) ** 2
        own -= np.divide(trend, spread.trend_trend, out=np.zeros_like(own), where=spread.trend_trend > 0)
        apart = total**2 - spread.total_total + total
        # what rounding leaves of none is none
        own = np.divide(own * total**2, apart, out=np.zeros_like(own), where=apart > _ROUNDING * total**2)
        return own / (share * (1.0 - share))

    @cached_property
    def _tied(self) -> float:
        """Dependence of pairs with a common item that the items of all annotators show, strong (1) if few do."""
        each = self._inner_share * (1.0 - self._inner_share) / np.maximum(self.n_pairs, 1e-300)
        strong, gap = self.expected_variance(self._inner_share, 1.0), self._gap(self._inner_share)
        reach = float((each * gap * strong).sum())
        if reach <= 0:
            return 1.0
        missing = float((each * (strong - self._own_variance)).sum()) / reach
        worth = float((gap**2 * self._telling).sum())
        return 1.0 - float(np.clip(missing, 0.0, 1.0)) * worth / (worth + _MODEL_ITEMS)

    def _gap(self, quality: Floats) -> Floats:
        """Part of the variance at a quality that strong dependence has more than weak, (n_annotators,)."""
        weak, strong = (self.expected_variance(quality, tied) for tied in (0.0, 1.0))
        return 1.0 - np.divide(weak, strong, out=np.ones_like(weak), where=strong > 0)

    @property
    def _telling(self) -> Floats:
        """Number of items that tell of a variance: hardly any where nearly all agree.

        Single pairs would tell by their variance, means of an item's pairs, which are less skewed, by its root.
        """
        return 2.0 * np.sqrt(self._inner_share * (1.0 - self._inner_share)) * self.spread.n_items

    def expected_variance(self, quality: Floats, tied: float) -> Floats:
        r"""Return the variance at a quality.

        That of a guesser is known. Of better annotators pairs with a common item depend on each other as strongly as of
        a guesser if whole items are mistaken for others. They do so
        :math:`(1 - (6 \arcsin(\rho / 2) / \pi)^2) / (4 q (1 - q))` times as strongly if answers and scores are normal
        with correlation :math:`\rho = \sin(\pi (q - 1/2))` [Esscher24]_. ``tied`` is the share of the former.
        """
        correlation = np.sin(np.pi * (quality - 0.5))
        normal = 1.0 - (6.0 * np.arcsin(0.5 * correlation) / np.pi) ** 2
        # both vanish at qualities of 0 and 1
        normal = normal / np.maximum(4.0 * quality * (1.0 - quality), 1e-12)
        common = tied + (1.0 - tied) * normal
        return 4.0 * (common * self.spread.triples + self.spread.pairs)

    def variance(self, quality: Floats) -> tuple[Floats, Floats]:
        """Return the variance at a quality, and the degrees of freedom it has.

        The variance that items show is averaged with the expected one, which may be wrong by half of the gap between
        strong and weak dependence, each by its precision.
        """
        worth = _MODEL_ITEMS / np.maximum(self._gap(quality), 1e-6) ** 2
        freedom = self._telling + worth
        weight = self._telling / freedom
        own, expected = np.maximum(self._own_variance, 0.0), self.expected_variance(quality, self._tied)
        return weight * own + (1.0 - weight) * expected, freedom

    def _worth(self, variance: Floats) -> Floats:
        """Number of independent pairs that have such a variance."""
        effective = np.divide(self.n_pairs**2, variance, out=np.zeros_like(self.n_pairs), where=variance > 0)
        return np.minimum(effective, self.n_pairs)

    def bounds(self, tail: float, exactness: Exactness | None) -> tuple[Floats, Floats]:
        """Return both quantiles of the quality, Jeffreys' with the pairs that there are if the quality is the quantile.

        ``exactness`` counts as further pairs.

        A quality is excluded where it makes the share improbable: its own variance says so, not that of the share. As
        the variance is estimated, bounds are those of Student's t. Where all pairs agree, or none, Jeffreys' bound is
        too near to the end, and the exact one takes its place [Brown01]_.
        """
        share, limits = self.share, []
        for end in (tail, 1 - tail):
            bound = share
            for _ in range(_N_ROUNDS):
                variance, freedom = self.variance(bound)
                pairs = np.minimum(self._worth(variance), _MOST_EVIDENCE) / (1.0 + _STUDENT / freedom)
                bound = _share_quantile(*((share, pairs) if exactness is None else exactness.add(share, pairs)), end)
            limits.append(bound)
        return limits[0], limits[1]


def pair_agreement(judgments: Judgments | Mixed, scores: Floats, covered: Bools, *, levels: bool = False) -> Agreement:
    """Return, for each annotator, the pairs of covered items with unequal answers and those the scores order alike.

    Equal scores count half, or are no pair where scores are ``levels`` that items may truly share; an annotator's ties
    are no pair. Pairs of several kinds are counted together.
    """
    if isinstance(judgments, Mixed):
        of_parts = (pair_agreement(part, scores, covered) for part in judgments.parts)
        return sum(of_parts, Agreement.none(judgments.n_annotators))
    n = judgments.n_annotators
    if isinstance(judgments, Preferences):
        # each a pair of its own
        chosen = judgments.select((judgments.outcome != 0) & covered[judgments.left] & covered[judgments.right])
        right = 0.5 * (1.0 + np.sign(scores[chosen.left] - scores[chosen.right]) * chosen.outcome)
        agree, total = (add_up(each * chosen.row_weight, chosen.annotator, n) for each in (right, 1.0))
        return independent_agreement(agree, total)
    use = covered[judgments.item]
    if not use.any():
        return Agreement.none(n)
    # pairs lie within groups of answers, which may have a weight of their own
    group: Any
    if isinstance(judgments, Grades):
        group = judgments.annotator.astype(np.int64) * judgments.n_queries + judgments.query
        if judgments.blocks is not None and judgments.block is not None:
            group = group * len(judgments.blocks) + judgments.block
        grade, owner, weight, of_group = judgments.grade, judgments.annotator, judgments.row_weight, None
    else:
        group = judgments.ranking
        grade, owner = -judgments.rank.astype(np.float64), judgments.annotator[group]
        weight, of_group = np.ones(len(group)), judgments.row_weight[group]
    order = np.flatnonzero(use)[np.lexsort((grade[use], group[use]))]
    offsets = np.append(run_starts([group[order]]), len(order))
    item, weight, owner, grade = judgments.item[order], weight[order], owner[order], grade[order]
    place = places(offsets, scores[item])
    agree, total, lean = row_sums(offsets, grade, place, weight)
    # what each row adds to the variance under guessing [Kendall38]_
    of_triples, of_pairs = tie_factors(offsets, place) if levels else (1.0, 1.0)
    triples, pairs = of_triples * (lean * lean - total) / 12.0, of_pairs * total / 8.0
    if levels:
        same = pairs_on_one_level(offsets, grade, place, weight)
        agree, total = agree - 0.5 * same, total - same
    query = judgments.items.query
    population = np.bincount(query[covered], minlength=judgments.n_queries)[query[item]]
    trend, part = item_trend(offsets, place, weight, population)
    weight = weight if of_group is None else weight * of_group[order]
    sums = Spread(
        agree * agree, agree * total, total * total, part * trend * agree, part * trend * total, part * trend**2,
        triples, pairs, (total > 0).astype(np.float64),
    )  # fmt: skip
    spread = Spread(*(add_up(weight * values, owner, n) for values in sums))
    return Agreement(add_up(0.5 * weight * agree, owner, n), add_up(0.5 * weight * total, owner, n), spread)


def mean_grades(grades: Grades) -> Floats:
    """Return the mean grade of each item, 0 where it has none, (n_items,)."""
    number = add_up(grades.row_weight, grades.item, grades.n_items)
    return add_up(grades.row_weight * grades.grade, grades.item, grades.n_items) / np.maximum(number, 1e-300)


def grade_association(grades: Grades, levels: Floats, covered: Bools, chosen: Floats) -> Association:
    """Return how grades go with the levels (n_items,) that others give the items covered, whatever their query.

    ``chosen`` (n_items,) is the grade that the others settle on.
    """
    own = np.flatnonzero(covered[grades.item])
    weight, x, y = grades.row_weight[own], grades.grade[own], levels[grades.item[own]]
    right = x == chosen[grades.item[own]]
    products = (np.ones(len(own)), x, y, x * x, y * y, x * y, right)
    return Association(*(add_up(weight * part, grades.annotator[own], grades.n_annotators) for part in products))


def class_agreement(grades: Grades, inside: Bools, consensus: Any) -> Agreement:
    """Agreement of some answers that name a class with the classes of a consensus."""
    n, n_levels = grades.n_annotators, len(grades.levels)
    if consensus.grade is None or consensus.levels is None or n_levels < 2:
        return Agreement.none(n)
    value = dict(zip(grades.levels, grades.level_values, strict=True))
    chosen = np.array([value[level] for level in consensus.levels])[np.maximum(consensus.grade, 0)]
    use = inside & (consensus.grade[grades.item] >= 0)
    right = use & (chosen[grades.item] == grades.grade)
    total, named = (add_up(grades.row_weight * which, grades.annotator, n) for which in (use, right))
    return independent_agreement(named, total)


def independent_agreement(agree: Floats, total: Floats) -> Agreement:
    """Agreement on pairs that have nothing in common."""
    return Agreement(agree, total, Agreement.none(len(total)).spread._replace(pairs=0.25 * total))


def annotator_folds(judgments: Judgments | Mixed, most: int, like: tuple[Floats, Floats] | None = None) -> list[Bools]:
    """Return masks of the annotators to leave out together, the busy ones spread evenly, whatever their names."""
    n = judgments.n_annotators
    busy = np.bincount(judgments.annotator, minlength=n)
    order = np.arange(n) if n <= most else np.lexsort((*(like or likeness(judgments)), -busy))
    fold = np.empty(n, np.int64)
    fold[order] = np.arange(n) % min(n, most)
    return [fold == number for number in range(min(n, most))]


def likeness(judgments: Judgments | Mixed) -> tuple[Floats, Floats]:
    """Return how far annotators answer like others, and how often their items are judged, (n_annotators,) each.

    Both stay the same if anybody is renamed, all answers are reversed, or a row stands there twice in place of a weight
    of 2.
    """
    like, company = np.zeros((2, judgments.n_annotators))
    for part in parts_of(judgments):
        if isinstance(part, Preferences) and len(part) >= MANY_PREFERENCES:
            from .kernels.pairs import add_likeness

            columns = (part.left, part.right, part.outcome, kernel_weights(part), part.annotator)
            add_likeness(*columns, part.n_items, like, company)
            continue
        annotator, item, mark, weight = _marks(part)
        of_item = add_up(weight, item, part.n_items)[item]
        cell, owner = np.unique(item.astype(np.int64) * (int(mark.max(initial=0)) + 1) + mark, return_inverse=True)
        alike = add_up(weight, owner, len(cell))[owner]
        like += add_up(weight * alike / np.maximum(of_item, 1e-300), annotator, len(like))
        company += add_up(weight * of_item, annotator, len(company))
    # the last digits depend on the order of the sums
    return np.round(like / max(like.max(initial=0.0), 1e-300), 9), np.round(company / max(company.max(), 1e-300), 9)


def _marks(judgments: Judgments) -> tuple[Any, Any, Any, Floats]:
    """Annotator, item, what the item was given and weight of each answer."""
    if isinstance(judgments, Preferences):
        outcome = judgments.outcome.astype(np.int64)
        item, mark = np.append(judgments.left, judgments.right), np.append(1 + outcome, 1 - outcome)
        return np.tile(judgments.annotator, 2), item, mark, np.tile(judgments.row_weight, 2)
    if isinstance(judgments, Grades):
        level = np.unique(judgments.grade, return_inverse=True)[1]
        return judgments.annotator, judgments.item, level, judgments.row_weight
    number = judgments.ranking
    return judgments.annotator[number], judgments.item, judgments.rank.astype(np.int64), judgments.row_weight[number]


def kernel_weights(preferences: Preferences) -> Floats:
    """Return weights for compiled passes, none where all are 1."""
    return np.empty(0) if preferences.weight is None else preferences.weight


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
    agreement if the annotator guesses, and the number of items. Pairs that share no item have no items here.

    With :math:`l_i` the number of rows of the group answered lower than row :math:`i` less those answered higher, and
    :math:`t_i` that of rows answered otherwise, that variance under all orders of the scores is
    :math:`\sum_i (k_1 (l_i^2 - t_i) / 12 + k_2 t_i / 8)`, where :math:`k_1` and :math:`k_2` are 1 unless scores are
    equal [Kendall38]_ (:func:`tie_factors`).
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


def tie_factors(offsets: Counts, place: Counts) -> tuple[Floats, Floats]:
    """Return how far equal scores lower the variance under guessing, for each row: by its triples and by its pairs."""
    sizes, group = np.diff(offsets), _group_of(offsets)
    level = offsets[:-1][group] + place
    alike = np.bincount(level, minlength=len(place))
    lower = (np.cumsum(alike) - alike)[level] - offsets[:-1][group]
    lean = 2.0 * lower + alike[level] - sizes[group]
    pairs = add_up(sizes[group] - alike[level], group, len(sizes))
    triples = add_up(lean * lean, group, len(sizes)) - pairs
    of_pairs = pairs / np.maximum(sizes * (sizes - 1.0), 1.0)
    of_triples = 3.0 * triples / np.maximum(sizes * (sizes - 1.0) * (sizes - 2.0), 1.0)
    return of_triples[group], of_pairs[group]


def item_trend(offsets: Counts, place: Counts, weight: Floats, population: Counts) -> tuple[Floats, Floats]:
    """Return how far each row stands from the middle of its group, and the part of the population that the group has.

    Items at the ends of the order are easier to place. Which items an annotator got is chance, but not to the extent
    that these are all there are. The distance is the squared one in places, less its mean.
    """
    group = _group_of(offsets)
    n_places = np.maximum.reduceat(place, offsets[:-1])[group] + 1.0
    trend: Floats = ((2.0 * place + 1.0) / n_places - 1.0) ** 2 - 1.0 / 3.0
    return trend, np.minimum(add_up(weight, group, len(offsets) - 1)[group] / population, 1.0)


class Association(NamedTuple):
    """Sums over an annotator's grades x of items that others graded y on average, (n_annotators,) each.

    ``right`` is the weight of those that are the level which the others' consensus has chosen or their mean is near.
    """

    number: Floats
    x: Floats
    y: Floats
    xx: Floats
    yy: Floats
    xy: Floats
    right: Floats

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
        r"""Return what the correlation of grades with those of others says of pairs, or the share of exact ones.

        If an answer names the true level with probability :math:`\lambda` and one of all that are given otherwise,
        :math:`\lambda` is the correlation with the truth, and the probability :math:`q(\lambda)` of ordering a pair
        follows from the shares of levels. With two levels a wrong answer is a reversed one, and log odds of :math:`q`
        are twice those of the share of answers that name the level on which the others settle: of a level
        that is seldom the true one few pairs tell, but all answers show how exact an annotator is. Of the two, that is
        used which says more. The crowd's own ``pairs`` say how far it holds for them: log odds of a share are taken to
        be those of :math:`q` times a constant, about which annotators vary like a beta distribution.
        """
        common = np.sqrt(np.clip(n_items / np.maximum(grades.number, 1e-9), 0.0, 1.0))
        of_pairs = 1.0 / np.maximum(pairs, 1e-9)

        def expect(expected: Floats, slope: Floats | float, number: Floats) -> Exactness:
            """The share expected where its log odds vary by the square of the slope over the number of grades."""
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
            noise = of_pairs + chance - 2.0 * common * np.sqrt(of_pairs * chance)
            weight = np.where(pairs > 0, (_USUAL_GAP / (noise + _USUAL_GAP)) ** 2, 0.0)
            excess = float((weight * ((share - fitted) ** 2 / each - noise)).sum())
            gap = (excess + _MODEL_ITEMS * _USUAL_GAP) / (float(weight.sum()) + _MODEL_ITEMS)
            return cls(fitted, chance, float(np.clip(gap, 1e-3, 1.0)), common)

        correlation, number = grades.correlations()
        found = [expect(*_order_of_exact(correlation, level_shares), number)]
        if len(level_shares) == 2:
            share_right = grades.right.sum() / max(grades.number.sum(), 1.0)
            named = (grades.right + 0.5 * share_right) / (grades.number + 0.5)
            named = np.clip(named, 1e-3, 1.0 - 1e-3)
            ordered = named**2 / (named**2 + (1.0 - named) ** 2)
            found.append(expect(ordered, 2.0, grades.number * named * (1.0 - named)))
        # medians: one who gave a single grade may have any variance
        return min(found, key=lambda one: round(float(np.median(one.chance)) + one.gap, 9))

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
    return np.where((none & (tail < 0.5)) | (all_ & (tail > 0.5)), np.where(none, 0.0, 1.0), quantile)


def row_sums(offsets: Counts, grade: Floats, place: Counts, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each row's pairs in agreement, all its pairs with unequal grades, and those it is above less those below.

    Pairs are of rows of one group, which rise by grade; a row's pair weighs as much as the other row. Equal places by
    score (:func:`places`) are half in agreement.
    """
    sizes, n = np.diff(offsets), len(grade)
    if int((sizes * (sizes - 1) // 2).sum()) > FEW_PAIRS:
        from .kernels.pairs import row_concordance

        sums: tuple[Floats, Floats, Floats] = row_concordance(offsets, grade, place, weight.astype(np.float64))
        return sums
    first, second = pairs_within(np.arange(n), np.repeat(offsets[1:], sizes))
    way = np.sign(grade[second] - grade[first])
    right = 0.5 * np.abs(way) * (1.0 + way * np.sign(place[second] - place[first]))

    def both(of_first: Floats, of_second: Floats) -> Floats:
        return add_up(weight[second] * of_first, first, n) + add_up(weight[first] * of_second, second, n)

    return both(right, right), both(np.abs(way), np.abs(way)), both(-way, way)


def places(offsets: Counts, score: Floats) -> Counts:
    """Return the place of each row by its score within its group, 0 for the lowest; equal scores share one."""
    group = _group_of(offsets)
    order = np.lexsort((score, group))
    climbed = np.cumsum(np.append(False, np.diff(score[order]) != 0))
    place = np.empty(len(order), np.int64)
    place[order] = climbed - climbed[offsets[:-1]][group]
    return place


def pairs_on_one_level(offsets: Counts, grade: Floats, place: Counts, weight: Floats) -> Floats:
    """Return the pairs of each row with rows of its group that are answered otherwise and have the same place."""
    level = offsets[:-1][_group_of(offsets)] + place
    order = np.argsort(level, kind="stable")
    within = np.append(run_starts([level[order]]), len(order))
    same = np.empty(len(order))
    same[order] = row_sums(within, grade[order], np.zeros_like(place), weight[order])[1]
    return same


def _group_of(offsets: Counts) -> Counts:
    """Group of each row, given their bounds."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


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
        n = self.n_classes
        shares = (share, lower, upper)
        centre, low, high = (chance_corrected(one, n) if n else np.sin(np.pi * (one - 0.5)) for one in shares)
        # of a positive correlation the upper bound is that of a noisier consensus, and the lower that of a better one
        least, most = (centre / end - centre / self.middle for end in (self.lower, self.upper))
        # more agreement than the best consensus within its interval lets anybody have is chance
        middle = np.clip(centre, -self.upper, self.upper) / self.middle
        up = np.hypot((high - centre) / self.middle, np.maximum(least, most))
        down = np.hypot((centre - low) / self.middle, np.minimum(least, most))
        if self.lower <= _LEAST_CORRELATION:
            up = down = np.full_like(middle, np.inf)

        def as_share(correlation: Floats) -> Floats:
            if n:
                return 0.5 + 0.5 * np.clip(correlation, -1.0 / (n - 1), 1.0)
            return np.asarray(0.5 + np.arcsin(np.clip(correlation, -1.0, 1.0)) / np.pi, np.float64)

        return as_share(middle), as_share(middle - down), as_share(middle + up)

    def at_least(self, share: Floats, effective: Floats) -> Reliability:
        """Return the same, but no less than annotators' agreement shows: nobody agrees with noise, or contradicts it.

        Halves of a small crowd may contradict each other though all but one annotator agree. Where those who contradict
        the others outweigh those who agree with them, nothing shows which way round the consensus is.
        """
        from scipy.special import erf

        correlation = np.sin(np.pi * (share - 0.5))
        noise = np.pi**2 * (1.0 - correlation**2) * share * (1.0 - share)
        # how far beyond chance each agrees (1) or contradicts (-1)
        clearly = erf(correlation * np.sqrt(0.5 * effective / np.maximum(noise, 1e-12)))
        if float((effective * clearly).sum()) <= 0.0:
            return self
        square = float((effective * correlation**2).sum() - noise[effective > 0].sum())
        floor = float(np.sqrt(max(square / max(float(effective.sum()), 1e-12), 0.0)))
        middle, lower, upper = (max(value, floor) for value in (self.middle, self.lower, self.upper))
        return Reliability(middle, lower, upper)


EXACT = Reliability(1.0, 1.0, 1.0)
"""That of a truth."""


def chance_corrected(share: Any, n_classes: int) -> Any:
    """Return shares of agreement on one of this many classes, 0 for guessing and 1 for full agreement."""
    return (n_classes * share - 1.0) / (n_classes - 1.0)


def _class_reliability(grades: Grades, agreement: Agreement) -> Reliability:
    """How well the classes of the consensus without an annotator agree with the true ones, by answers to the same item.

    Two annotators agree on an item, corrected for chance, as the product of their agreement with the truth; an
    annotator and a consensus do so too. Hence the square root of the agreement between annotators is their mean
    agreement with the truth, and their agreement with the consensus over it is that of the consensus.
    """
    if not agreement.n_pairs.any():
        return EXACT
    # of all answers, those that name the class of the consensus without their annotator
    share = float(agreement.agree.sum() / agreement.n_pairs.sum())
    item, weight, n_classes = grades.item.astype(np.int64), grades.row_weight, len(grades.levels)
    level = np.searchsorted(grades.level_values, grades.grade)
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


def _spearman_brown(correlation: float, longer: float) -> float:
    """Correlation with the truth of a consensus of this many times the judgments, from that between two consensuses."""
    if correlation <= _LEAST_CORRELATION**2:
        return _LEAST_CORRELATION
    return max(float(np.sqrt(longer * correlation / (1.0 + (longer - 1.0) * correlation))), _LEAST_CORRELATION)


def _parts(n: int) -> list[Bools]:
    """Three ways to halve this many ordered things, each half spread over the order; of three things, all ways."""
    first, second = np.arange(n) & 1 == 1, np.arange(n) >> 1 & 1 == 1
    return [way for way in (first, second, first ^ second) if way.any() and not way.all()]


def _order_alike(one: Floats, two: Floats, query: Ints, levelled: bool) -> tuple[float, float]:
    """Number of pairs of items of one query that two consensuses order alike, and of all that the second orders."""
    order = np.lexsort((two, query))
    offsets = np.append(run_starts([query[order]]), len(order))
    queries = offsets, two[order], places(offsets, one[order]), np.ones(len(order))
    agree, total, _ = row_sums(*queries)
    if levelled:
        same = pairs_on_one_level(*queries)
        agree, total = agree - 0.5 * same, total - same
    return 0.5 * float(agree.sum()), 0.5 * float(total.sum())


def add_up(values: Any, owner: Any, n: int) -> Floats:
    """Return the sum of the values of each annotator."""
    return np.bincount(owner, values, minlength=n).astype(np.float64, copy=False)


def held_out(method: Aggregator, judgments: Judgments | Mixed) -> Callable[[], Quality | None]:
    """Return a function that computes the held-out quality when it is first asked for."""
    return partial(held_out_quality, method, judgments)


@dataclass(frozen=True, eq=False)
class LearnedQuality:
    """Held-out quality, computed when first asked for, with parameters that are known at once.

    Parameters
    ----------
    judgments
        All judgments.
    scores
        Gives the scores that a part of the judgments leads to.
    parameters
        What the method knows of each annotator, (n_annotators, ...).
    learned
        Quality by the method's own model, or what gives it, which then counts as far as it lies well within the
        interval of held-out agreement.
    n_folds
        Number of parts that annotators are left out in, where there are more annotators.
    precision
        How exact scores are, relative to their range; see :func:`~crowdrank.data.consensus.score_tolerance`.
    fit
        Gives the consensus that a part of the judgments leads to, which classes without an order need.
    known
        Which items have a score, judged or not.
    levelled
        Whether scores are levels, so that items of equal ones are no pair.
    n_judgments
        Weight of each annotator's judgments where ``judgments`` are a sample, (n_annotators,).
    """

    judgments: Judgments | Mixed
    scores: Callable[[Any], Floats]
    parameters: Mapping[str, Any]
    learned: Callable[[], Floats] | Floats | None = None
    n_folds: int = MAX_FOLDS
    precision: float = 1e-10
    fit: Callable[[Any], Any] | None = None
    known: Bools | None = None
    levelled: bool = False
    n_judgments: Floats | None = None

    @property
    def annotators(self) -> Index:
        """Ids of the annotators."""
        return self.judgments.annotators

    def __call__(self) -> Quality | None:
        """Return the quality."""
        method: Any = self
        sampled = self.n_judgments is not None
        quality = held_out_quality(method, self.judgments, n_folds=self.n_folds, known=self.known, sampled=sampled)
        if quality is None:
            return None
        if self.learned is not None:
            learned = self.learned() if callable(self.learned) else self.learned
            # a learned quality beyond the interval of held-out agreement is contradicted, and at its very end it would
            # look as if it were certain on one side
            middle, lower, upper = quality.quality, quality.parameters["lower"], quality.parameters["upper"]
            margin = _MARGIN * (upper - lower)
            within = np.clip(learned, np.minimum(lower + margin, middle), np.maximum(upper - margin, middle))
            quality = replace(quality, quality=within)
        counts = quality.n_judgments if self.n_judgments is None else self.n_judgments
        return replace(quality, n_judgments=counts, parameters={**quality.parameters, **self.parameters})


def quality_of_sample(
    method: Any, parts: Sequence[Any], n_judgments: Floats, parameters: Mapping[str, Any]
) -> LearnedQuality | None:
    """Return the held-out quality by the sampled judgments of parts, which may be of some queries only.

    ``n_judgments`` (n_annotators,) is the weight of all judgments of each annotator.
    """
    if not parts[0].n_annotators:
        return None
    sample = stack_judgments(align_judgments([part for part in parts if len(part)] or list(parts[:1])))
    precision = getattr(method, "precision", 1e-10)
    scores = partial(scores_quietly, method)
    return LearnedQuality(sample, scores, parameters, precision=precision, n_judgments=n_judgments)


def held_out_quality(
    method: Aggregator,
    judgments: Judgments | Mixed,
    *,
    n_folds: int = MAX_FOLDS,
    known: Bools | None = None,
    sampled: bool = False,
    everything: Callable[[], Iterable[Preferences]] | None = None,
    left_out: Bools | None = None,
) -> Quality | None:
    r"""Return how well each annotator agrees with the consensus that the method finds without that annotator.

    Agreement with a consensus the annotator took part in flatters: alone on an item, anybody is right. So the method is
    fitted again without the annotator (without a twentieth of the annotators where there are more than 20), and
    agreement is counted on pairs of items that others judged too or that are ``known``. The share :math:`k_a / n_a` is
    drawn towards the crowd's mean :math:`m` by half a pair,

    .. math:: \text{quality}_a = (k_a + m / 2) / (n_a + 1 / 2).

    ``lower`` and ``upper`` bound the annotator's own share (90 %, Jeffreys), with :math:`n_a` the number of independent
    pairs that the annotator's answers are worth (:class:`~crowdrank.quality.Agreement`): grading 5 items by guessing
    gives 10 pairs, but tells no more than 6. The consensus of the others errs as well, and agreement with it is nearer
    to one half than agreement with the truth. How noisy it is comes from halves of the crowd
    (:func:`_reliability`); shares and bounds are corrected for that.

    Where grades have few pairs within a query, their correlation with the mean grades of the others over all queries
    tells of the share to expect, and counts as further pairs (:class:`~crowdrank.quality.Exactness`).

    Classes without an order are right or wrong one by one: from the share :math:`s` of an annotator's :math:`n_a`
    answers that name the class which the others' consensus chose of :math:`K`, the quality of one whose mistakes fall
    on all other classes alike is :math:`(1 + s - (1 - s) / (K - 1)) / 2`.

    ``None`` where the judgments do not name annotators. Of more than a million judgments a sample is taken
    (:func:`~crowdrank.data.parted.sampled_rows`), unless they are ``sampled`` already. ``everything`` yields all
    preferences that a sample was taken from, with the same items and annotators: where the method needs counts of pairs
    only, the sample gives the consensus of the others, and each annotator is judged by all of their own. ``left_out``
    annotators, (n_annotators,), are judged by the consensus of all others, and these not at all; not for classes.

    Notes
    -----
    A pull as strong as the spread of the crowd suggests (beta-binomial likelihood) hides those who guessed a few times:
    12 of them with five preferences each among 48 good annotators came out at .77 on average. Half a pair keeps the
    shares off 0 and 1, gives the crowd's mean to those nothing is known of, and leaves a guesser near .5.
    """
    if not judgments.n_annotators:
        return None
    if left_out is not None:
        return _fold_by_fold(method, judgments, n_folds, known, left_out)
    if isinstance(judgments, Preferences) and known is None:
        quality = _quality_by_counts(method, judgments, n_folds, everything)
        if quality is not None:
            return quality
    if len(judgments) > MANY_JUDGMENTS:
        n_folds = min(n_folds, _FEW_FOLDS)
    share = 1.0 if sampled else share_of_rows(len(judgments))
    if share >= 1.0:
        return _fold_by_fold(method, judgments, n_folds, known)
    # quality as a sample shows it; counts are those of all judgments
    counts: Any = np.bincount(judgments.annotator, judgments.weight, minlength=judgments.n_annotators)
    rows = np.concatenate([sampled_rows(part, counts.astype(np.float64), share) for part in parts_of(judgments)])
    sample = judgments.select(np.flatnonzero(rows))
    if not len(sample):
        return None
    return replace(_fold_by_fold(method, sample, n_folds, known), n_judgments=counts, n_sampled=len(sample))


def _fold_by_fold(
    method: Aggregator, judgments: Judgments | Mixed, n_folds: int, known: Bools | None, left_out: Bools | None = None
) -> Quality:
    """Quality from a fit without each fold of the annotators, or without those left out."""
    agreement, levels = Agreement.none(judgments.n_annotators), bool(getattr(method, "levelled", False))
    folds = annotator_folds(judgments, n_folds) if left_out is None else [left_out]
    for part in folds:
        inside = part[judgments.annotator]
        others = judgments.select(~inside)
        if not len(others):
            continue
        if isinstance(judgments, Grades) and judgments.nominal:
            agreement += class_agreement(judgments, inside, fit_quietly(method, others))
            continue
        scores = scores_quietly(method, others)
        own, covered = judgments.select(inside), others.judged_items if known is None else others.judged_items | known
        found = pair_agreement(own, scores, covered, levels=levels)
        if isinstance(judgments, Grades) and isinstance(own, Grades) and isinstance(others, Grades):
            # not scores: these need not be on one scale, and what is wrong with them would be shared with the pairs
            means, values = mean_grades(others), judgments.level_values
            place = scores if levels else np.searchsorted(0.5 * (values[1:] + values[:-1]), means)
            chosen = values.take(place.astype(np.int64), mode="clip")
            found = replace(found, grades=grade_association(own, means, others.judged_items, chosen))
        agreement += found
    heard = judgments if left_out is None else judgments.select(~left_out[judgments.annotator])
    if isinstance(heard, Grades) and heard.nominal:
        return _shrink_shares(judgments, agreement, _class_reliability(heard, agreement))
    return _shrink_shares(judgments, agreement, _reliability(method, heard, agreement, n_folds))


def _quality_by_counts(
    method: Any, p: Preferences, n_folds: int, everything: Callable[[], Iterable[Preferences]] | None
) -> Quality | None:
    """Held-out quality by preferences counted by pair and by the fold that the annotator is left out with.

    Methods that need counts of pairs only are fitted to one preference for each pair and outcome, which weighs as much
    as all such ones: the same scores, without going through all preferences again for each fold. ``None`` where that
    would not be quicker: where annotators are few or items many.
    """
    few = len(p) < MANY_PREFERENCES or p.n_items > _MOST_TABLE_ITEMS
    graded = p.strength is not None and getattr(method, "uses_strength", False)
    if few or graded or "pairs" not in getattr(method, "one_pass", ()) or p.block is not None:
        return None
    from .kernels.pairs import add_agreement, count_by_fold, count_pairs

    pairs = count_pairs(p.left, p.right, p.outcome, p.weight, p.items.offsets)
    like, n = likeness(p), p.n_annotators
    folds = annotator_folds(p, n_folds, like)
    if 3 * len(pairs.second) * len(folds) > min(_MOST_CELLS, 10 * len(p)):
        return None
    # of each pair of items, lower and higher; -1 where the two were never compared
    numbers = np.full((p.n_items, p.n_items), -1, np.int32)
    numbers[pairs.first, pairs.second] = np.arange(len(pairs.second))
    first, second = np.tile(pairs.first, 3), np.tile(pairs.second, 3)
    outcome = np.repeat(np.array([-1, 0, 1], np.int8), len(pairs.second))
    # weight of each outcome of each pair, (n_pairs, 3)
    total = np.stack([pairs.losses, pairs.ties, pairs.wins], axis=1).astype(np.float64)

    def tables(fold: Any, n_folds: int) -> Floats:
        """Weight of each outcome of each pair by fold of the annotator, (n_folds, n_pairs, 3)."""
        counts = np.zeros((n_folds, len(pairs.second), 3))
        count_by_fold(p.left, p.right, p.outcome, kernel_weights(p), fold[p.annotator], numbers, counts)
        return counts

    def condense(counts: Floats) -> Preferences:
        """One preference for each pair and outcome that has a weight."""
        weight = np.ascontiguousarray(counts.T).ravel()
        given = weight > 0
        return Preferences(
            items=p.items, annotators=Index.empty(), annotator=np.empty(0, np.int32), left=first[given],
            right=second[given], outcome=outcome[given], weight=weight[given],
        )  # fmt: skip

    fold = np.argmax(np.stack(folds), axis=0).astype(np.int8)
    counts = tables(fold, len(folds))
    scores, covered = np.zeros((len(folds), p.n_items)), np.zeros((len(folds), p.n_items), bool)
    for number in range(len(folds)):
        # whole numbers may be taken away, others would leave rounding
        rest = total - counts[number]
        if p.weight is not None:
            rest = counts[:number].sum(axis=0) + counts[number + 1 :].sum(axis=0)
        others = condense(rest)
        if len(others):
            scores[number], covered[number] = scores_quietly(method, others), others.judged_items
    agree, compared = np.zeros((2, n))
    for q in (p,) if everything is None else everything():
        judged = (q.left, q.right, q.outcome, kernel_weights(q), q.annotator)
        add_agreement(*judged, fold, scores, covered, agree, compared)
    agreement = independent_agreement(agree, compared)
    last: list[tuple[Bools, Floats]] = []

    def half(mask: Bools) -> Preferences:
        if last and p.weight is None and (last[0][0] == ~mask).all():
            # the other half is what is left, as all who judged are in one of them
            table = total - last[0][1]
        else:
            inside = np.append(mask, np.zeros(n - len(mask), bool)).astype(np.int8) - np.int8(1)
            table = tables(inside, 1)[0]
        last[:] = [(mask, table)]
        return condense(table)

    return _shrink_shares(p, agreement, _reliability(method, p, agreement, n_folds, half, like))


def _reliability(
    method: Aggregator,
    judgments: Judgments | Mixed,
    agreement: Agreement,
    n_folds: int,
    half: Callable[[Bools], Any] | None = None,
    like: tuple[Floats, Floats] | None = None,
) -> Reliability:
    """How well the consensus without an annotator correlates with the truth.

    The crowd is cut into halves, in up to three ways, and the correlation of their consensus, by the pairs of items
    that both order alike, is that of one half with the truth, squared; from there on it grows with the number of
    judgments an item has [Spearman10]_ [Brown10]_. ``half`` gives the judgments of the annotators of a mask.
    """
    n, share, spread = judgments.n_annotators, agreement.share, agreement.spread

    def own_half(mask: Bools) -> Any:
        return judgments.select(np.append(mask, np.zeros(n - len(mask), bool))[judgments.annotator])

    half = half or own_half
    busy = np.bincount(judgments.annotator, minlength=n)
    # such that neighbours are alike, by what they answered, so that names do not matter
    keys = (*(like or likeness(judgments)), spread.total_total, spread.agree_agree, busy, agreement.n_pairs, share)
    order = np.lexsort([np.round(key, 6) for key in keys])
    order = order[busy[order] > 0]
    per_item, query = weight_of_items(judgments), judgments.items.query
    judged = np.bincount(query[per_item > 0])
    # with less than two items a query, halves have hardly a pair; grades are on one scale in all queries
    across = isinstance(judgments, Grades) and judged.sum() < 2 * np.count_nonzero(judged)
    query, levelled = (np.zeros_like(query), False) if across else (query, bool(getattr(method, "levelled", False)))
    agree, total, each, items = 0.0, 0.0, [], []
    for way in _parts(len(order))[: 3 if n_folds == MAX_FOLDS else 1]:
        mask = np.zeros(int(order.max(initial=-1)) + 1, bool)
        mask[order[way]] = True
        halves = [half(some) for some in (mask, ~mask)]
        one, two = (mean_grades(part) if across else scores_quietly(method, part) for part in halves)
        of_one, of_two = map(weight_of_items, halves)
        both = np.flatnonzero((of_one > 0) & (of_two > 0))
        if len(both):
            same, of = _order_alike(one[both], two[both], query[both], levelled)
            agree, total = agree + same, total + of
            each.append(0.5 * float((of_one + of_two)[both].mean()))
            items.append(float(np.maximum(np.bincount(query[both]) - 1, 0).sum()))
    found = Reliability(_LEAST_CORRELATION, _LEAST_CORRELATION, 1.0)
    if total > 0:
        longer = (1.0 - 1.0 / min(n, n_folds)) * float(per_item[per_item > 0].mean()) / float(np.mean(each))
        middle = np.arctanh(np.clip(np.sin(np.pi * (agree / total - 0.5)), -0.999, 0.999))
        # a correlation from pairs in order errs by pi / 3 times as much as one from products
        reach = _NINETY * (np.pi / 3.0) / np.sqrt(max(float(np.mean(items)) - 2.0, 1.0))
        centre, lower, upper = (_spearman_brown(float(np.tanh(middle + by)), longer) for by in (0.0, -reach, reach))
        found = Reliability(centre, lower, upper)
    return found.at_least(share, agreement.effective)


def trusted_annotators(judgments: Judgments | Mixed, trusted: Any | None) -> Bools:
    """Return which annotators are named as trusted, (n_annotators,)."""
    if trusted is None:
        return np.zeros(judgments.n_annotators, bool)
    return named_annotators(judgments, trusted, "trusted")


def warn_near_chance(method: str, quality: Floats, n_judgments: Floats) -> None:
    """Warn where annotators of these learned qualities agree hardly more than guessing would let them."""
    total = float(np.sum(n_judgments))
    mean = float(np.sum(quality * n_judgments)) / total if total > 0 else 1.0
    if mean < _NEAR_CHANCE:
        what = f"{method} finds the annotators hardly better than chance (mean quality {mean:.2f})"
        remedy = "and a crowd whose majority is reversed looks like a good one turned round"
        warn(f"{what}, {remedy}: name annotators known to be good with {option('trusted')}")


def pair_accuracy(judgments: Judgments | Mixed, scores: Floats) -> Quality | None:
    """Return how well each annotator agrees with given scores, such as a truth, drawn towards the crowd's mean."""
    if not judgments.n_annotators:
        return None
    return _shrink_shares(judgments, pair_agreement(judgments, scores, np.ones(judgments.n_items, bool)))


def scores_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Floats:
    """Scores of a part of the judgments, without the warnings that the fit to all of them gave already.

    A method that can do with less than a whole fit has ``scores`` for it.
    """
    if not isinstance(method, Scorer):
        return fit_quietly(method, judgments).scores
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return settle_ties(method, judgments, method.scores(judgments))


def fit_quietly(method: Any, judgments: Judgments | Mixed, **extra: Any) -> Any:
    """Consensus of a part of the judgments, without the warnings that the fit to all of them gave already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(judgments, **extra)


def _shrink_shares(judgments: Judgments | Mixed, agreement: Agreement, consensus: Reliability = EXACT) -> Quality:
    """Shares of agreement drawn towards the crowd's mean, with intervals of their own evidence.

    Both are those of agreement with the truth, of which the consensus of the others is a noisy copy.
    """
    share = agreement.share
    n, tail = np.minimum(agreement.effective, _MOST_EVIDENCE), (1 - INTERVAL) / 2
    exactness = None
    if agreement.grades is not None and isinstance(judgments, Grades):
        shares = add_up(judgments.row_weight, np.unique(judgments.grade, return_inverse=True)[1], 0)
        if len(shares) > 1:
            exactness = Exactness.of(agreement.grades, shares / shares.sum(), share, n, agreement.spread.n_items)
    bounds = agreement.bounds(tail, exactness)
    if exactness is not None:
        share, n = exactness.add(share, n)
    share, lower, upper = consensus.correct_shares(share, *bounds)
    worth = n * consensus.middle**2
    # two pairs at one half stand for the crowd before anything is known of it
    mean = (float((worth * share).sum()) + 1.0) / (float(worth.sum()) + 2.0)
    quality = (worth * share + PULL * mean) / (worth + PULL)
    weight = judgments.weight
    counts: Any = np.bincount(judgments.annotator, weight, minlength=judgments.n_annotators)
    n_pairs: Any = agreement.n_pairs if weight is not None else np.round(agreement.n_pairs).astype(np.int64)
    parameters = {"n_pairs": n_pairs, "lower": np.minimum(lower, quality), "upper": np.maximum(upper, quality)}
    return Quality(judgments.annotators, quality, counts, parameters)
