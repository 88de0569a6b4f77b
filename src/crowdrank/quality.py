"""Quality of annotators: how often they order two unequal items as the consensus of the others does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .data.consensus import Quality
from .data.judgments import Grades, Judgments, Mixed, Preferences
from .data.pairing import pairs_within
from .errors import DataWarning, ParameterError
from .protocols import Aggregator, Bools, Counts, Floats, Scorer

MAX_FOLDS = 20
"""Annotators are left out one by one up to this many, in this many parts above."""

PULL = 0.5
"""Number of pairs that the pull towards the crowd's mean is worth."""

_FEW_PAIRS = 200_000

INTERVAL = 0.90
"""Level of the intervals ``lower`` to ``upper``."""


TRUSTED = (95.0, 5.0)
"""Beta prior of the quality of an annotator named in ``trusted=``: so many pairs right and wrong before any is seen."""

_NEAR_CHANCE = 0.55

_MOST_EVIDENCE = 1e8
"""Pairs that count at most, with weights; more would change no interval by 1e-4, and quantiles of beta fail there."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of each annotator with unequal answers: those in agreement, all, and their effective number."""

    agree: Floats
    n_pairs: Floats
    effective: Floats

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.agree + other.agree, self.n_pairs + other.n_pairs, self.effective + other.effective)

    @classmethod
    def none(cls, n_annotators: int) -> Agreement:
        """Return the agreement on no pair at all."""
        return cls(np.zeros(n_annotators), np.zeros(n_annotators), np.zeros(n_annotators))


def held_out(method: Aggregator, judgments: Judgments | Mixed) -> Callable[[], Quality | None]:
    """Return a function that computes the held-out quality when it is first asked for."""
    return partial(held_out_quality, method, judgments)


def held_out_quality(method: Aggregator, judgments: Judgments | Mixed) -> Quality | None:
    r"""Return how well each annotator agrees with the consensus that the method finds without that annotator.

    Agreement with a consensus the annotator took part in flatters: alone on an item, anybody is right. So the method is
    fitted again without the annotator (without a twentieth of the annotators where there are more than 20), and
    agreement is counted on pairs of items that others judged too. The share :math:`k_a / n_a` is drawn towards the
    crowd's mean :math:`m` by half a pair,

    .. math:: \text{quality}_a = (k_a + m / 2) / (n_a + 1 / 2).

    ``lower`` and ``upper`` bound the annotator's own share (90 %, Jeffreys), with :math:`n_a` the number of independent
    pairs that the annotator's answers are worth: grading 5 items gives 10 pairs, but tells no more than 6.

    Classes without an order are right or wrong one by one: from the share :math:`s` of an annotator's :math:`n_a`
    answers that name the class which the others' consensus chose of :math:`K`, the quality of one whose mistakes fall
    on all other classes alike is :math:`(1 + s - (1 - s) / (K - 1)) / 2`.

    ``None`` where the judgments do not name annotators.

    Notes
    -----
    A pull as strong as the spread of the crowd suggests (beta-binomial likelihood) hides those who guessed a few times:
    12 of them with five preferences each among 48 good annotators came out at .77 on average. Half a pair keeps the
    shares off 0 and 1, gives the crowd's mean to whom nothing is known of, and leaves a guesser near .5.
    """
    if not judgments.n_annotators:
        return None
    found = Agreement.none(judgments.n_annotators)
    for part in _folds(judgments):
        inside = part[judgments.annotator]
        others = judgments.select(~inside)
        if not len(others):
            continue
        if isinstance(judgments, Grades) and judgments.nominal:
            found += _class_agreement(judgments, inside, fit_quietly(method, others))
            continue
        scores = scores_quietly(method, others)
        found += pair_agreement(judgments.select(inside), scores, others.judged_items)
    return _shrunk(judgments, found)


def trusted_annotators(judgments: Judgments | Mixed, trusted: Any | None) -> Bools:
    """Return which annotators are named as trusted, (n_annotators,)."""
    mask = np.zeros(judgments.n_annotators, bool)
    if trusted is None:
        return mask
    if not judgments.n_annotators:
        raise ParameterError("trusted= names annotators, but the judgments do not say who gave them; leave it out")
    for name in [trusted] if isinstance(trusted, str | int) else trusted:
        mask[judgments.annotators.code(name, "annotator")] = True
    return mask


def warn_near_chance(method: str, quality: Floats, n_judgments: Floats) -> None:
    """Warn where annotators of these learned qualities agree hardly more than guessing would let them."""
    total = float(np.sum(n_judgments))
    mean = float(np.sum(quality * n_judgments)) / total if total > 0 else 1.0
    if mean < _NEAR_CHANCE:
        warnings.warn(
            f"{method} finds the annotators hardly better than chance (mean quality {mean:.2f}), and a crowd whose "
            "majority is reversed looks like a good one turned round: name annotators known to be good with trusted=",
            DataWarning,
            stacklevel=3,
        )


def pair_accuracy(judgments: Judgments | Mixed, scores: Floats) -> Quality | None:
    """Return how well each annotator agrees with given scores, such as a truth, drawn towards the crowd's mean."""
    if not judgments.n_annotators:
        return None
    everything = np.ones(judgments.n_items, bool)
    return _shrunk(judgments, pair_agreement(judgments, scores, everything))


def pair_agreement(judgments: Judgments | Mixed, scores: Floats, covered: Bools) -> Agreement:
    """Return, for each annotator, the pairs of covered items with unequal answers and those the scores order alike.

    Equal scores count half; an annotator's ties are no pair. Pairs of several kinds are counted together.
    """
    if isinstance(judgments, Mixed):
        of_parts = (pair_agreement(part, scores, covered) for part in judgments.parts)
        return sum(of_parts, Agreement.none(judgments.n_annotators))
    if isinstance(judgments, Preferences):
        return _of_preferences(judgments, scores, covered)
    if isinstance(judgments, Grades):
        group = judgments.annotator.astype(np.int64) * judgments.n_queries + judgments.items.query[judgments.item]
        if judgments.blocks is not None and judgments.block is not None:
            group = group * len(judgments.blocks) + judgments.block
        return _of_answers(
            judgments,
            scores,
            covered,
            group,
            judgments.item,
            judgments.grade,
            judgments.annotator,
            judgments.row_weight,
        )
    number = judgments.ranking
    # the two weights of a pair multiply, so each row of a ranking carries the root of the ranking's weight
    weight = np.sqrt(judgments.row_weight)[number]
    return _of_answers(
        judgments, scores, covered, number.astype(np.int64), judgments.item, -judgments.rank.astype(np.float64),
        judgments.annotator[number], weight,
    )  # fmt: skip


def _class_agreement(grades: Grades, inside: Bools, consensus: Any) -> Agreement:
    """Agreement of some answers that name a class with the classes of a consensus, as of pairs of items."""
    n, n_levels = grades.n_annotators, len(grades.levels)
    if consensus.grade is None or consensus.levels is None or n_levels < 2:
        return Agreement.none(n)
    value = dict(zip(grades.levels, grades.level_values, strict=True))
    chosen = np.array([value[level] for level in consensus.levels])[np.maximum(consensus.grade, 0)]
    use = inside & (consensus.grade[grades.item] >= 0)
    right = use & (chosen[grades.item] == grades.grade)
    total, named = (_sums(grades.annotator, grades.row_weight * which, n) for which in (use, right))
    return Agreement(0.5 * (total + named - (total - named) / (n_levels - 1)), total, total)


def _of_preferences(judgments: Preferences, scores: Floats, covered: Bools) -> Agreement:
    """Agreement of preferences, each a pair of its own."""
    use = (judgments.outcome != 0) & covered[judgments.left] & covered[judgments.right]
    chosen = judgments.select(use)
    gap = scores[chosen.left] - scores[chosen.right]
    right = 0.5 * (1.0 + np.sign(gap) * chosen.outcome)
    n = judgments.n_annotators
    total = _sums(chosen.annotator, chosen.row_weight, n)
    agree = _sums(chosen.annotator, right * chosen.row_weight, n)
    return Agreement(agree, total, total)


def _of_answers(
    judgments: Judgments,
    scores: Floats,
    covered: Bools,
    group: Counts,
    item: Any,
    grade: Floats,
    annotator: Any,
    weight: Floats,
) -> Agreement:
    """Agreement of grades or rankings, whose pairs lie within groups of answers."""
    n = judgments.n_annotators
    use = covered[item]
    if not use.any():
        return Agreement.none(n)
    order = np.flatnonzero(use)[np.lexsort((grade[use], group[use]))]
    starts = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    offsets = np.append(starts, len(order))
    sizes = np.diff(offsets)
    few = int((sizes * (sizes - 1) // 2).sum()) <= _FEW_PAIRS
    agree, total = (_listed if few else _counted)(offsets, grade[order], scores[item[order]], weight[order])
    owner = annotator[order[starts]]
    # variance of Kendall's tau under guessing: n items are worth 9 / (2 n + 5) independent pairs a pair
    worth = 9.0 / (2.0 * sizes + 5.0)
    return Agreement(_sums(owner, agree, n), _sums(owner, total, n), _sums(owner, total * worth, n))


def _listed(offsets: Counts, grade: Floats, score: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weight of the agreeing pairs and of all pairs with unequal grades in each group, by listing every pair.

    For small data this is done before a compiled kernel is even loaded.
    """
    first, second = pairs_within(np.arange(len(grade)), np.repeat(offsets[1:], np.diff(offsets)))
    group = np.searchsorted(offsets, first, side="right") - 1
    total = weight[first] * weight[second] * (grade[first] != grade[second])
    agree = total * 0.5 * (1.0 + np.sign(grade[first] - grade[second]) * np.sign(score[first] - score[second]))
    n = len(offsets) - 1
    return _sums(group, agree, n), _sums(group, total, n)


def _counted(offsets: Counts, grade: Floats, score: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The same in n log n steps, for rows that rise by grade within each group."""
    from .kernels.concordance import concordance

    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((score, group))
    climbed = np.cumsum(np.append(False, np.diff(score[order]) != 0))
    place = np.empty(len(order), np.int64)
    place[order] = climbed - climbed[offsets[:-1]][group]
    agree, total = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1)
    concordance(offsets, grade, place, weight.astype(np.float64), agree, total)
    return agree, total


def _sums(owner: Any, values: Floats, n: int) -> Floats:
    """Sum of the values of each annotator."""
    return np.bincount(owner, values, minlength=n).astype(np.float64, copy=False)


def _folds(judgments: Judgments | Mixed) -> list[Bools]:
    """Masks of the annotators to leave out together, the busy ones spread evenly."""
    n = judgments.n_annotators
    busy = np.bincount(judgments.annotator, minlength=n)
    fold = np.empty(n, np.int64)
    fold[np.argsort(-busy, kind="stable")] = np.arange(n) % min(n, MAX_FOLDS)
    return [fold == number for number in range(min(n, MAX_FOLDS))]


def scores_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Floats:
    """Scores of a part of the judgments, without the warnings that the fit to all of them gave already.

    A method that can do with less than a whole fit has ``scores`` for it.
    """
    if not isinstance(method, Scorer):
        found: Floats = fit_quietly(method, judgments).scores
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.scores(judgments)


def fit_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Any:
    """Consensus of a part of the judgments, without the warnings that the fit to all of them gave already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(judgments)


def _shrunk(judgments: Judgments | Mixed, found: Agreement) -> Quality:
    """Shares of agreement drawn towards the crowd's mean, with intervals of their own evidence."""
    from scipy.special import betaincinv

    share = np.divide(found.agree, found.n_pairs, out=np.full(len(found.agree), 0.5), where=found.n_pairs > 0)
    n = np.minimum(found.effective, _MOST_EVIDENCE)
    k = share * n
    # two pairs at one half stand for the crowd before anything is known of it
    mean = (float(k.sum()) + 1.0) / (float(n.sum()) + 2.0)
    quality = (k + PULL * mean) / (n + PULL)
    tail = (1 - INTERVAL) / 2
    lower, upper = (betaincinv(k + 0.5, n - k + 0.5, p) for p in (tail, 1 - tail))
    weight = judgments.weight
    counts: Any = np.bincount(judgments.annotator, weight, minlength=judgments.n_annotators)
    parameters = {
        "n_pairs": found.n_pairs if weight is not None else np.round(found.n_pairs).astype(np.int64),
        "lower": np.minimum(lower, quality),
        "upper": np.maximum(upper, quality),
    }
    return Quality(judgments.annotators, quality, counts, parameters)
