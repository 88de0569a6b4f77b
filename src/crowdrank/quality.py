"""Quality of annotators: how often they order two unequal items as the consensus of the others does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .data.consensus import Quality
from .data.index import Index
from .data.judgments import Grades, Judgments, Mixed, Preferences
from .data.mixed import parts_of
from .data.ties import settled
from .errors import DataWarning, ParameterError
from .protocols import Aggregator, Bools, Counts, Floats, Scorer
from .reliability import (  # fmt: skip
    EXACT,
    ConsensusTies,
    Evidence,
    Half,
    Halving,
    Reliability,
    Spread,
    add_up,
    guessing_variance,
    pairs_on_one_level,
    reliability,
    row_sums,
)
from .wording import option

MAX_FOLDS = 20
"""Annotators are left out one by one up to this many, in this many parts above."""

PULL = 0.5
"""Number of pairs that the pull towards the crowd's mean is worth."""

INTERVAL = 0.90
"""Level of the intervals ``lower`` to ``upper``."""


TRUSTED = (95.0, 5.0)
"""Beta prior of the quality of an annotator named in ``trusted=``: so many pairs right and wrong before any is seen."""

_NEAR_CHANCE = 0.55

_MOST_EVIDENCE = 1e8
"""Pairs that count at most, with weights; more would change no interval by 1e-4, and quantiles of beta fail there."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of each annotator with unequal answers: those in agreement, all, and how far chance may move them."""

    agree: Floats
    n_pairs: Floats
    spread: Spread

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.agree + other.agree, self.n_pairs + other.n_pairs, self.spread.plus(other.spread))

    @classmethod
    def none(cls, n_annotators: int) -> Agreement:
        """Return the agreement on no pair at all."""
        return cls(np.zeros(n_annotators), np.zeros(n_annotators), Spread.none(n_annotators))

    @property
    def evidence(self) -> Evidence:
        """What the pairs are worth."""
        return Evidence.of(self.agree, self.n_pairs, self.spread)

    @property
    def effective(self) -> Floats:
        """Number of independent pairs that tell as much, (n_annotators,)."""
        evidence = self.evidence
        return evidence.pairs(evidence.share)


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
        Quality as the method has it, or what gives it, which then counts as far as it lies within the interval of
        held-out agreement.
    n_folds
        Number of parts that annotators are left out in, where there are more annotators.
    precision
        How exact scores are, relative to their range; see :func:`~crowdrank.data.ties.score_tolerance`.
    fit
        Gives the consensus that a part of the judgments leads to, which classes without an order need.
    known
        Which items have a score whoever judged them.
    levelled
        Whether scores are levels, so that items of equal ones are no pair.
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

    @property
    def annotators(self) -> Index:
        """Ids of the annotators."""
        return self.judgments.annotators

    def __call__(self) -> Quality | None:
        """Return the quality."""
        method: Any = self
        quality = held_out_quality(method, self.judgments, n_folds=self.n_folds, known=self.known)
        if quality is None:
            return None
        if self.learned is not None:
            learned = self.learned() if callable(self.learned) else self.learned
            within = np.clip(learned, quality.parameters["lower"], quality.parameters["upper"])
            quality = replace(quality, quality=within)
        return quality.with_parameters(**self.parameters)


def held_out_quality(
    method: Aggregator, judgments: Judgments | Mixed, *, n_folds: int = MAX_FOLDS, known: Bools | None = None
) -> Quality | None:
    r"""Return how well each annotator agrees with the consensus that the method finds without that annotator.

    Agreement with a consensus the annotator took part in flatters: alone on an item, anybody is right. So the method is
    fitted again without the annotator (without a twentieth of the annotators where there are more than 20), and
    agreement is counted on pairs of items that others judged too or that are ``known``. The share :math:`k_a / n_a` is
    drawn towards the
    crowd's mean :math:`m` by half a pair,

    .. math:: \text{quality}_a = (k_a + m / 2) / (n_a + 1 / 2).

    ``lower`` and ``upper`` bound the annotator's own share (90 %, Jeffreys), with :math:`n_a` the number of independent
    pairs that the annotator's answers are worth (:class:`~crowdrank.reliability.Evidence`): grading 5 items gives
    10 pairs, but tells no more than 6. The consensus of the others errs as well, and agreement with it is nearer to one
    half than agreement with the truth. How noisy it is comes from halves of the crowd
    (:func:`~crowdrank.reliability.reliability`); shares and bounds are corrected for that.

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
    folds, levels = _folds(judgments, n_folds), bool(getattr(method, "levelled", False))
    for part in folds:
        inside = part[judgments.annotator]
        others = judgments.select(~inside)
        if not len(others):
            continue
        if isinstance(judgments, Grades) and judgments.nominal:
            found += _class_agreement(judgments, inside, fit_quietly(method, others))
            continue
        scores = scores_quietly(method, others)
        found += pair_agreement(judgments.select(inside), scores, _covered(others, known), levels=levels)
    nominal = isinstance(judgments, Grades) and judgments.nominal
    return _shrunk(judgments, found, EXACT if nominal else _reliability(method, judgments, found, n_folds))


def _covered(others: Judgments | Mixed, known: Bools | None) -> Bools:
    """Items that the others' consensus tells of."""
    judged: Bools = others.judged_items
    return judged if known is None else judged | known


def _reliability(method: Aggregator, judgments: Judgments | Mixed, found: Agreement, n_folds: int) -> Reliability:
    """How well the consensus without an annotator correlates with the truth."""
    n = judgments.n_annotators
    share = np.divide(found.agree, found.n_pairs, out=np.full(n, 0.5), where=found.n_pairs > 0)
    busy = np.bincount(judgments.annotator, minlength=n)
    # by what they answered, so that names do not matter
    keys = (found.spread.total_total, found.spread.agree_agree, busy, found.n_pairs, share)
    order = np.lexsort([np.round(key, 6) for key in keys])
    order = order[busy[order] > 0]

    def half(mask: Bools) -> Half:
        part = judgments.select(np.append(mask, np.zeros(n - len(mask), bool))[judgments.annotator])
        return Half(scores_quietly(method, part), _per_item(part))

    levelled = bool(getattr(method, "levelled", False))
    n_ways = 3 if n_folds == MAX_FOLDS else 1
    left_out = 1.0 / min(n, n_folds)
    cut = Halving(order, judgments.items.offsets, _per_item(judgments), left_out, n_ways, levelled)
    found_of_halves = reliability(half, cut)
    return found_of_halves.at_least(share, found.effective)


def _per_item(judgments: Judgments | Mixed) -> Floats:
    """Weight of the judgments that each item is part of."""
    found = np.zeros(judgments.n_items)
    for part in parts_of(judgments):
        if isinstance(part, Preferences):
            found += add_up(part.row_weight, part.left, len(found)) + add_up(part.row_weight, part.right, len(found))
        else:
            weight = part.row_weight if isinstance(part, Grades) else part.row_weight[part.ranking]
            found += add_up(weight, part.item, len(found))
    return found


def trusted_annotators(judgments: Judgments | Mixed, trusted: Any | None) -> Bools:
    """Return which annotators are named as trusted, (n_annotators,)."""
    mask = np.zeros(judgments.n_annotators, bool)
    if trusted is None:
        return mask
    if not judgments.n_annotators:
        raise ParameterError(
            f"{option('trusted')} names annotators, but the judgments do not say who gave them; leave it out"
        )
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
            "majority is reversed looks like a good one turned round: name annotators known to be good with "
            f"{option('trusted')}",
            DataWarning,
            stacklevel=3,
        )


def pair_accuracy(judgments: Judgments | Mixed, scores: Floats) -> Quality | None:
    """Return how well each annotator agrees with given scores, such as a truth, drawn towards the crowd's mean."""
    if not judgments.n_annotators:
        return None
    everything = np.ones(judgments.n_items, bool)
    return _shrunk(judgments, pair_agreement(judgments, scores, everything))


def pair_agreement(judgments: Judgments | Mixed, scores: Floats, covered: Bools, *, levels: bool = False) -> Agreement:
    """Return, for each annotator, the pairs of covered items with unequal answers and those the scores order alike.

    Equal scores count half, or are no pair where scores are ``levels`` that items may truly share; an annotator's ties
    are no pair. Pairs of several kinds are counted together.
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
        rows = _Rows(group, judgments.item, judgments.grade, judgments.annotator, judgments.row_weight, None)
    else:
        number = judgments.ranking
        rank = -judgments.rank.astype(np.float64)
        each, weight = np.ones(len(number)), judgments.row_weight[number]
        rows = _Rows(number.astype(np.int64), judgments.item, rank, judgments.annotator[number], each, weight)
    return _of_answers(rows, scores, covered, judgments.n_annotators, levels=levels)


class _Rows(NamedTuple):
    """Items and their grades in groups of answers, with weights of the rows, and of the groups where these have any."""

    group: Counts
    item: Any
    grade: Floats
    annotator: Any
    weight: Floats
    of_group: Floats | None


def _class_agreement(grades: Grades, inside: Bools, consensus: Any) -> Agreement:
    """Agreement of some answers that name a class with the classes of a consensus, as of pairs of items."""
    n, n_levels = grades.n_annotators, len(grades.levels)
    if consensus.grade is None or consensus.levels is None or n_levels < 2:
        return Agreement.none(n)
    value = dict(zip(grades.levels, grades.level_values, strict=True))
    chosen = np.array([value[level] for level in consensus.levels])[np.maximum(consensus.grade, 0)]
    use = inside & (consensus.grade[grades.item] >= 0)
    right = use & (chosen[grades.item] == grades.grade)
    total, named = (add_up(grades.row_weight * which, grades.annotator, n) for which in (use, right))
    return _independent(0.5 * (total + named - (total - named) / (n_levels - 1)), total)


def _independent(agree: Floats, total: Floats) -> Agreement:
    """Agreement on pairs that have nothing in common."""
    none = np.zeros_like(total)
    return Agreement(agree, total, Spread(none, none, none, 0.25 * total, none))


def _of_preferences(judgments: Preferences, scores: Floats, covered: Bools) -> Agreement:
    """Agreement of preferences, each a pair of its own."""
    use = (judgments.outcome != 0) & covered[judgments.left] & covered[judgments.right]
    chosen = judgments.select(use)
    gap = scores[chosen.left] - scores[chosen.right]
    right = 0.5 * (1.0 + np.sign(gap) * chosen.outcome)
    n = judgments.n_annotators
    total = add_up(chosen.row_weight, chosen.annotator, n)
    agree = add_up(right * chosen.row_weight, chosen.annotator, n)
    return _independent(agree, total)


def _of_answers(rows: _Rows, scores: Floats, covered: Bools, n: int, *, levels: bool) -> Agreement:
    """Agreement of grades or rankings, whose pairs lie within groups of answers."""
    use = covered[rows.item]
    if not use.any():
        return Agreement.none(n)
    order = np.flatnonzero(use)[np.lexsort((rows.grade[use], rows.group[use]))]
    starts = np.flatnonzero(np.append(True, np.diff(rows.group[order]) != 0))
    offsets = np.append(starts, len(order))
    weight, owner = rows.weight[order], rows.annotator[order]
    grade, score = rows.grade[order], scores[rows.item[order]]
    agree, total, lean = row_sums(offsets, grade, score, weight)
    guessing = guessing_variance(lean, total, ConsensusTies.of(offsets, score) if levels else None)
    if levels:
        same = pairs_on_one_level(offsets, grade, score, weight)
        agree, total = agree - 0.5 * same, total - same
    weight = weight if rows.of_group is None else weight * rows.of_group[order]
    sums = (agree * agree, agree * total, total * total, guessing, (total > 0).astype(np.float64))
    spread = Spread(*(add_up(weight * values, owner, n) for values in sums))
    return Agreement(add_up(0.5 * weight * agree, owner, n), add_up(0.5 * weight * total, owner, n), spread)


def _folds(judgments: Judgments | Mixed, most: int) -> list[Bools]:
    """Masks of the annotators to leave out together, the busy ones spread evenly."""
    n = judgments.n_annotators
    busy = np.bincount(judgments.annotator, minlength=n)
    fold = np.empty(n, np.int64)
    fold[np.argsort(-busy, kind="stable")] = np.arange(n) % min(n, most)
    return [fold == number for number in range(min(n, most))]


def scores_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Floats:
    """Scores of a part of the judgments, without the warnings that the fit to all of them gave already.

    A method that can do with less than a whole fit has ``scores`` for it.
    """
    if not isinstance(method, Scorer):
        found: Floats = fit_quietly(method, judgments).scores
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return settled(method, judgments, method.scores(judgments))


def fit_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Any:
    """Consensus of a part of the judgments, without the warnings that the fit to all of them gave already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(judgments)


def _shrunk(judgments: Judgments | Mixed, found: Agreement, consensus: Reliability = EXACT) -> Quality:
    """Shares of agreement drawn towards the crowd's mean, with intervals of their own evidence.

    Both are those of agreement with the truth, of which the consensus of the others is a noisy copy.
    """
    share = np.divide(found.agree, found.n_pairs, out=np.full(len(found.agree), 0.5), where=found.n_pairs > 0)
    n, tail = np.minimum(found.effective, _MOST_EVIDENCE), (1 - INTERVAL) / 2
    bounds = found.evidence.bounds(share, (tail, 1 - tail), _MOST_EVIDENCE)
    share, lower, upper = consensus.corrected(share, *bounds)
    worth = n * consensus.middle**2
    # two pairs at one half stand for the crowd before anything is known of it
    mean = (float((worth * share).sum()) + 1.0) / (float(worth.sum()) + 2.0)
    quality = (worth * share + PULL * mean) / (worth + PULL)
    weight = judgments.weight
    counts: Any = np.bincount(judgments.annotator, weight, minlength=judgments.n_annotators)
    parameters = {
        "n_pairs": found.n_pairs if weight is not None else np.round(found.n_pairs).astype(np.int64),
        "lower": np.minimum(lower, quality),
        "upper": np.maximum(upper, quality),
    }
    return Quality(judgments.annotators, quality, counts, parameters)
