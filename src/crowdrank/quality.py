"""Quality of annotators: how often they order two unequal items as the consensus of the others does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .agreement import (
    Agreement,
    annotator_folds,
    class_agreement,
    grade_association,
    independent_agreement,
    kernel_weights,
    likeness,
    mean_grades,
    pair_agreement,
)
from .data.consensus import Quality, settle_ties
from .data.index import Index
from .data.judgments import Grades, Judgments, Mixed, Preferences, align_judgments, parts_of, stack_judgments
from .data.naming import named_annotators
from .data.parted import sampled_rows, share_of_rows
from .errors import DataWarning
from .protocols import Aggregator, Bools, Floats, Ints, Scorer
from .reliability import EXACT, Exactness, Half, Halving, Reliability, add_up, class_reliability, reliability
from .wording import option

if TYPE_CHECKING:
    from .kernels.pairs import OutcomeCounts

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
            quality = replace(quality, quality=_well_within(learned, quality))
        if self.n_judgments is not None:
            quality = replace(quality, n_judgments=self.n_judgments)
        return quality.with_parameters(**self.parameters)


def _well_within(learned: Floats, held_out: Quality) -> Floats:
    """Learned qualities, but no nearer to an end of the interval than a tenth of its width, or the held-out quality is.

    The interval is that of held-out agreement. A learned quality beyond it is contradicted, and at its very end it
    would look as if it were certain on one side.
    """
    middle, lower, upper = held_out.quality, held_out.parameters["lower"], held_out.parameters["upper"]
    margin = _MARGIN * (upper - lower)
    within: Floats = np.clip(learned, np.minimum(lower + margin, middle), np.maximum(upper - margin, middle))
    return within


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
) -> Quality | None:
    r"""Return how well each annotator agrees with the consensus that the method finds without that annotator.

    Agreement with a consensus the annotator took part in flatters: alone on an item, anybody is right. So the method is
    fitted again without the annotator (without a twentieth of the annotators where there are more than 20), and
    agreement is counted on pairs of items that others judged too or that are ``known``. The share :math:`k_a / n_a` is
    drawn towards the crowd's mean :math:`m` by half a pair,

    .. math:: \text{quality}_a = (k_a + m / 2) / (n_a + 1 / 2).

    ``lower`` and ``upper`` bound the annotator's own share (90 %, Jeffreys), with :math:`n_a` the number of independent
    pairs that the annotator's answers are worth (:class:`~crowdrank.reliability.Evidence`): grading 5 items by guessing
    gives 10 pairs, but tells no more than 6. The consensus of the others errs as well, and agreement with it is nearer
    to one half than agreement with the truth. How noisy it is comes from halves of the crowd
    (:func:`~crowdrank.reliability.reliability`); shares and bounds are corrected for that.

    Where grades have few pairs within a query, their correlation with the mean grades of the others over all queries
    tells of the share to expect, and counts as further pairs (:class:`~crowdrank.reliability.Exactness`).

    Classes without an order are right or wrong one by one: from the share :math:`s` of an annotator's :math:`n_a`
    answers that name the class which the others' consensus chose of :math:`K`, the quality of one whose mistakes fall
    on all other classes alike is :math:`(1 + s - (1 - s) / (K - 1)) / 2`.

    ``None`` where the judgments do not name annotators. Of more than a million judgments a sample is taken
    (:func:`~crowdrank.data.parted.sampled_rows`), unless they are ``sampled`` already. ``everything`` yields all
    preferences that a sample was taken from, with the same items and annotators: where the method needs counts of pairs
    only, the sample gives the consensus of the others, and each annotator is judged by all of their own.

    Notes
    -----
    A pull as strong as the spread of the crowd suggests (beta-binomial likelihood) hides those who guessed a few times:
    12 of them with five preferences each among 48 good annotators came out at .77 on average. Half a pair keeps the
    shares off 0 and 1, gives the crowd's mean to those nothing is known of, and leaves a guesser near .5.
    """
    if not judgments.n_annotators:
        return None
    counted = _FoldedPairs.of(method, judgments, n_folds) if isinstance(judgments, Preferences) else None
    if counted is not None and known is None:
        return counted.quality(method, everything)
    if len(judgments) > MANY_JUDGMENTS:
        n_folds = min(n_folds, _FEW_FOLDS)
    if not sampled and share_of_rows(len(judgments)) < 1.0:
        return _quality_of_sample(method, judgments, n_folds, known)
    return _fold_by_fold(method, judgments, n_folds, known)


def _fold_by_fold(method: Aggregator, judgments: Judgments | Mixed, n_folds: int, known: Bools | None) -> Quality:
    """Quality from a fit without each fold of the annotators."""
    agreement = Agreement.none(judgments.n_annotators)
    folds, levels = annotator_folds(judgments, n_folds), bool(getattr(method, "levelled", False))
    for part in folds:
        inside = part[judgments.annotator]
        others = judgments.select(~inside)
        if not len(others):
            continue
        if isinstance(judgments, Grades) and judgments.nominal:
            agreement += class_agreement(judgments, inside, fit_quietly(method, others))
            continue
        scores = scores_quietly(method, others)
        own, covered = judgments.select(inside), _items_with_scores(others, known)
        found = pair_agreement(own, scores, covered, levels=levels)
        if isinstance(own, Grades) and isinstance(others, Grades):
            # not scores: these need not be on one scale, and what is wrong with them would be shared with the pairs
            found = replace(found, grades=grade_association(own, mean_grades(others), others.judged_items))
        agreement += found
    nominal = isinstance(judgments, Grades) and judgments.nominal
    noise = _class_reliability(judgments, agreement) if nominal else _reliability(method, judgments, agreement, n_folds)
    return _shrink_shares(judgments, agreement, noise)


def _quality_of_sample(
    method: Aggregator, judgments: Judgments | Mixed, n_folds: int, known: Bools | None
) -> Quality | None:
    """Quality as a sample shows it; counts are those of all judgments."""
    share, n = share_of_rows(len(judgments)), judgments.n_annotators
    counts: Any = np.bincount(judgments.annotator, judgments.weight, minlength=n)
    rows = np.concatenate([sampled_rows(part, counts.astype(np.float64), share) for part in parts_of(judgments)])
    sample = judgments.select(np.flatnonzero(rows))
    if not len(sample):
        return None
    quality = _fold_by_fold(method, sample, n_folds, known)
    return replace(quality, n_judgments=counts, n_sampled=len(sample))


@dataclass(frozen=True, eq=False)
class _FoldedPairs:
    """Preferences of many annotators on few items, counted by pair and by the fold that the annotator is left out with.

    Methods that need counts of pairs only are fitted to one preference for each pair and outcome, which weighs as much
    as all such ones: the same scores, without going through all preferences again for each fold.
    """

    preferences: Preferences
    counts: OutcomeCounts
    numbers: Ints
    fold: Any
    n_folds: int
    like: tuple[Floats, Floats]

    @classmethod
    def of(cls, method: Any, preferences: Preferences, n_folds: int) -> _FoldedPairs | None:
        """Return the preferences so counted, ``None`` where that would not be quicker."""
        few = len(preferences) < MANY_PREFERENCES or preferences.n_items > _MOST_TABLE_ITEMS
        graded = preferences.strength is not None and getattr(method, "uses_strength", False)
        if few or graded or "pairs" not in getattr(method, "one_pass", ()) or preferences.block is not None:
            return None
        from .kernels.left_out import number_pairs
        from .kernels.pairs import count_pairs

        columns = (preferences.left, preferences.right, preferences.outcome, preferences.weight)
        counts = count_pairs(*columns, preferences.items.offsets)
        like = likeness(preferences)
        folds = annotator_folds(preferences, n_folds, like)
        if 3 * len(counts.second) * len(folds) > min(_MOST_CELLS, 10 * len(preferences)):
            return None
        fold = np.argmax(np.stack(folds), axis=0).astype(np.int8)
        return cls(preferences, counts, number_pairs(counts.starts, counts.second), fold, len(folds), like)

    def tables(self, fold: Any, n_folds: int) -> Floats:
        """Return the weight of each outcome of each pair by fold of the annotator, (n_folds, n_pairs, 3)."""
        from .kernels.left_out import count_by_fold

        p = self.preferences
        counts = np.zeros((n_folds, len(self.counts.second), 3))
        count_by_fold(p.left, p.right, p.outcome, kernel_weights(p), fold[p.annotator], self.numbers, counts)
        return counts

    def without(self, counts: Floats, number: int) -> Floats:
        """Return the weights of all folds but one; whole numbers may be taken away, others would leave rounding."""
        if self.preferences.weight is None:
            rest: Floats = self.total - counts[number]
        else:
            rest = counts[:number].sum(axis=0) + counts[number + 1 :].sum(axis=0)
        return rest

    @cached_property
    def total(self) -> Floats:
        """Weight of each outcome of each pair, (n_pairs, 3)."""
        return np.stack([self.counts.losses, self.counts.ties, self.counts.wins], axis=1).astype(np.float64)

    def condense(self, counts: Floats) -> Preferences:
        """Return one preference for each pair and outcome that has a weight."""
        first, second = self.counts.first, self.counts.second
        weight = np.ascontiguousarray(counts.T).ravel()
        given = weight > 0
        return Preferences(
            items=self.preferences.items, annotators=Index.empty(), annotator=np.empty(0, np.int32),
            left=np.tile(first, 3)[given], right=np.tile(second, 3)[given],
            outcome=np.repeat(np.array([-1, 0, 1], np.int8), len(first))[given], weight=weight[given],
        )  # fmt: skip

    def quality(self, method: Aggregator, everything: Callable[[], Iterable[Preferences]] | None = None) -> Quality:
        """Return the held-out quality of each annotator, by all preferences where these are a sample of them."""
        from .kernels.left_out import add_agreement

        p, n = self.preferences, self.preferences.n_annotators
        counts = self.tables(self.fold, self.n_folds)
        scores, covered = np.zeros((self.n_folds, p.n_items)), np.zeros((self.n_folds, p.n_items), bool)
        for number in range(self.n_folds):
            others = self.condense(self.without(counts, number))
            if len(others):
                scores[number], covered[number] = scores_quietly(method, others), others.judged_items
        agree, total = np.zeros(n), np.zeros(n)
        for q in (p,) if everything is None else everything():
            add_agreement(
                q.left, q.right, q.outcome, kernel_weights(q), q.annotator, self.fold, scores, covered, agree, total
            )
        agreement = independent_agreement(agree, total)

        last: list[tuple[Bools, Floats]] = []

        def half(mask: Bools) -> Half:
            if last and p.weight is None and (last[0][0] == ~mask).all():
                # the other half is what is left, as all who judged are in one of them
                table = self.total - last[0][1]
            else:
                inside = np.append(mask, np.zeros(n - len(mask), bool)).astype(np.int8) - np.int8(1)
                table = self.tables(inside, 1)[0]
            last[:] = [(mask, table)]
            part = self.condense(table)
            return Half(scores_quietly(method, part), _per_item(part))

        return _shrink_shares(p, agreement, _reliability(method, p, agreement, self.n_folds, half, self.like))


def _items_with_scores(others: Judgments | Mixed, known: Bools | None) -> Bools:
    """Items that the others' consensus has a score of."""
    judged: Bools = others.judged_items
    return judged if known is None else judged | known


def _reliability(
    method: Aggregator,
    judgments: Judgments | Mixed,
    agreement: Agreement,
    n_folds: int,
    fit_half: Callable[[Bools], Half] | None = None,
    like: tuple[Floats, Floats] | None = None,
) -> Reliability:
    """How well the consensus without an annotator correlates with the truth; ``fit_half`` fits some annotators."""
    n = judgments.n_annotators
    share = np.divide(agreement.agree, agreement.n_pairs, out=np.full(n, 0.5), where=agreement.n_pairs > 0)
    busy = np.bincount(judgments.annotator, minlength=n)
    # by what they answered, so that names do not matter
    keys = (
        *(like or likeness(judgments)),
        agreement.spread.total_total,
        agreement.spread.agree_agree,
        busy,
        agreement.n_pairs,
        share,
    )
    order = np.lexsort([np.round(key, 6) for key in keys])
    order = order[busy[order] > 0]

    def half(mask: Bools) -> Half:
        part = judgments.select(np.append(mask, np.zeros(n - len(mask), bool))[judgments.annotator])
        return Half(scores_quietly(method, part), _per_item(part))

    def half_across_queries(mask: Bools) -> Half:
        part = judgments.select(np.append(mask, np.zeros(n - len(mask), bool))[judgments.annotator])
        return Half(mean_grades(part), _per_item(part))  # type: ignore[arg-type]

    levelled = bool(getattr(method, "levelled", False))
    n_ways = 3 if n_folds == MAX_FOLDS else 1
    left_out, per_item = 1.0 / min(n, n_folds), _per_item(judgments)
    cut = Halving(order, judgments.items.offsets, per_item, left_out, n_ways, levelled)
    judged = np.bincount(judgments.items.query[per_item > 0])
    if isinstance(judgments, Grades) and judged.sum() < 2 * np.count_nonzero(judged):
        # with less than two items a query, halves have hardly a pair; grades are on one scale in all queries
        cut = cut._replace(offsets=np.array([0, judgments.n_items]), levelled=False)
        fit_half = half_across_queries
    of_halves = reliability(fit_half or half, cut)
    return of_halves.at_least(share, agreement.effective)


def _class_reliability(grades: Any, agreement: Agreement) -> Reliability:
    """How well the classes of the consensus without an annotator agree with the true ones."""
    if not agreement.n_pairs.any():
        return EXACT
    level = np.searchsorted(grades.level_values, grades.grade)
    share = float(agreement.agree.sum() / agreement.n_pairs.sum())
    return class_reliability(grades.item.astype(np.int64), level, grades.row_weight, len(grades.levels), share)


def _per_item(judgments: Judgments | Mixed) -> Floats:
    """Weight of the judgments that each item is part of."""
    weights = np.zeros(judgments.n_items)
    for part in parts_of(judgments):
        if isinstance(part, Preferences):
            left, right = (add_up(part.row_weight, side, len(weights)) for side in (part.left, part.right))
            weights += left + right
        else:
            weight = part.row_weight if isinstance(part, Grades) else part.row_weight[part.ranking]
            weights += add_up(weight, part.item, len(weights))
    return weights


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
    return _shrink_shares(judgments, pair_agreement(judgments, scores, everything))


def scores_quietly(method: Aggregator, judgments: Judgments | Mixed) -> Floats:
    """Scores of a part of the judgments, without the warnings that the fit to all of them gave already.

    A method that can do with less than a whole fit has ``scores`` for it.
    """
    if not isinstance(method, Scorer):
        scores: Floats = fit_quietly(method, judgments).scores
        return scores
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
    share = np.divide(
        agreement.agree, agreement.n_pairs, out=np.full(len(agreement.agree), 0.5), where=agreement.n_pairs > 0
    )
    n, tail = np.minimum(agreement.effective, _MOST_EVIDENCE), (1 - INTERVAL) / 2
    exactness = None
    if agreement.grades is not None and isinstance(judgments, Grades):
        shares = add_up(judgments.row_weight, np.unique(judgments.grade, return_inverse=True)[1], 0)
        if len(shares) > 1:
            exactness = Exactness.of(agreement.grades, shares / shares.sum(), share, n, agreement.spread.n_items)
    bounds = agreement.evidence.bounds(share, (tail, 1 - tail), _MOST_EVIDENCE, exactness)
    if exactness is not None:
        share, n = exactness.add(share, n)
    share, lower, upper = consensus.correct_shares(share, *bounds)
    worth = n * consensus.middle**2
    # two pairs at one half stand for the crowd before anything is known of it
    mean = (float((worth * share).sum()) + 1.0) / (float(worth.sum()) + 2.0)
    quality = (worth * share + PULL * mean) / (worth + PULL)
    weight = judgments.weight
    counts: Any = np.bincount(judgments.annotator, weight, minlength=judgments.n_annotators)
    parameters = {
        "n_pairs": agreement.n_pairs if weight is not None else np.round(agreement.n_pairs).astype(np.int64),
        "lower": np.minimum(lower, quality),
        "upper": np.maximum(upper, quality),
    }
    return Quality(judgments.annotators, quality, counts, parameters)
