"""How well a method predicts judgments that its fit has not seen, and from which target rankers learn best."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.judged import row_codes
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings, parts_of, with_levels
from ..errors import ParameterError
from ..protocols import Aggregator, Bools, Counts, Floats, Ints
from ..quality import fit_quietly, scores_quietly
from ..registry import make
from ..resampling import canonical_order, judgment_numbers

N_FOLDS = 5

PARTNERS = 5
"""Each grade, and each item of a ranking, is compared with this many others of its group on either side."""

# threshold (sample): pairs of judgments held out
MOST_PAIRS = 200_000
"""Of more pairs than this a random part is looked at."""

# threshold (sample): copies of judgments held out
_MOST_COPIES = 1_000_000


class Pairs(NamedTuple):
    """Pairs of items with unequal answers: better and worse item, the judgments they come from, who, what weight."""

    better: Ints
    worse: Ints
    first: Counts
    second: Counts
    annotator: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class Split:
    """Judgments in folds.

    Parameters
    ----------
    judgments
        The judgments, with all levels of their grades declared, and copies where weights count anonymous ones.
    fold, n_folds
        Fold of each judgment, and their number.
    pairs
        Pairs of items that judgments put in order; none for classes.
    unit, n_units, unit_name
        What is taken as independent in standard errors, for each judgment: its annotator, its query, or its fold.
    """

    judgments: Judgments | Mixed
    fold: Ints
    n_folds: int
    pairs: Pairs
    unit: Ints
    n_units: int
    unit_name: str

    @property
    def pair_fold(self) -> Ints:
        """Fold of each pair, in which both its answers are."""
        return self.fold[self.pairs.first]

    def figure(self, rows: Any, weight: Floats, value: Floats) -> Figure:
        """Return the figure of values with weights that belong to judgments."""
        unit = self.unit[rows]
        sums, total = (np.bincount(unit, part, self.n_units).astype(np.float64) for part in (weight * value, weight))
        return Figure(sums, total)

    @cached_property
    def pairing(self) -> Floats | None:
        """What the choice of opponents tells of each pair's answer; ``None`` where it tells nothing.

        Column by column, (n_pairs, 2), better less worse item, of fits that have not seen the pair: the difference of
        unshrunk Bradley-Terry scores, and of the mean such score of the other items that each was compared with.
        """
        pairs, judgments = self.pairs, self.judgments
        if not isinstance(judgments, Preferences) or not len(pairs.better):
            return None
        terms = np.zeros((len(pairs.better), 3))
        methods = [make("aggregator", "bradley_terry", params) for params in ({}, {"ridge": _UNSHRUNK_RIDGE})]
        for number in range(self.n_folds):
            seen: Any = judgments.select(self.fold != number)
            rows = np.flatnonzero(self.pair_fold == number)
            better, worse = pairs.better[rows], pairs.worse[rows]
            usual, unshrunk = (scores_quietly(method, seen) for method in methods)
            terms[rows, 0] = usual[better] - usual[worse]
            terms[rows, 1] = unshrunk[better] - unshrunk[worse]
            levels = [_opponent_levels(seen, unshrunk, *two) for two in ((better, worse), (worse, better))]
            terms[rows, 2] = levels[0] - levels[1]
        coefficients, errors = fit_leads(terms[:, [0, 2]], pairs.weight)
        return terms[:, 1:] if coefficients[1] > _MIN_STANDARD_ERRORS * errors[1] else None


def split_judgments(judgments: Judgments | Mixed, n_folds: int = N_FOLDS, seed: int = 0) -> Split:
    """Return judgments dealt into folds.

    What an annotator said of one item, or of one pair in either order, stays together, and each annotator's judgments
    are spread evenly over the folds (each query's where nobody is named). Grades of a query are dealt two or more at a
    time, so there are pairs of which neither grade is seen: beside a grade that was seen, methods that use
    everybody alike know something of their annotator too. The order of the rows does not matter. What is independent
    are annotators if there are several, else queries, else folds.
    """
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or n_folds < 2:
        raise ParameterError(f"folds={n_folds!r} must be a whole number of at least 2, such as {N_FOLDS}")
    laid_out: Any = with_levels(judgments)
    weight = judgments.weight
    lone = not judgments.n_annotators and not isinstance(judgments, Mixed) and len(judgments) <= judgments.n_judgments
    if lone and weight is not None and (weight == np.round(weight)).all() and weight.sum() <= _MOST_COPIES:
        # judgments of nobody are by different annotators, so those of a whole weight may be parted
        laid_out = replace(laid_out.select(np.repeat(np.arange(len(judgments)), weight.astype(np.int64))), weight=None)
    rng = np.random.default_rng(seed)
    folds, pairs, start = [], [], 0
    for part in parts_of(laid_out):
        order = canonical_order(part)
        folds.append(_folds(part, order, int(n_folds), rng))
        pairs.append(_pairs(part, order, folds[-1], start, rng))
        start += len(part)
    fold, all_pairs = np.concatenate(folds), Pairs(*map(np.concatenate, zip(*pairs, strict=True)))
    if len(np.unique(fold)) < 2:
        raise ParameterError("there are too few judgments to hold some out; give a truth, or more judgments")
    if len(all_pairs.better) > MOST_PAIRS:
        some = np.sort(rng.choice(len(all_pairs.better), MOST_PAIRS, replace=False))
        all_pairs = Pairs._make(column[some] for column in all_pairs)
    n, query = int(fold.max()) + 1, np.concatenate([_query(part) for part in parts_of(laid_out)])
    if len(np.unique(laid_out.annotator)) > 1:
        return Split(laid_out, fold, n, all_pairs, laid_out.annotator, laid_out.n_annotators, "annotator")
    if len(np.unique(query)) > 1:
        return Split(laid_out, fold, n, all_pairs, query, int(query.max()) + 1, "query")
    return Split(laid_out, fold, n, all_pairs, fold, n, "fold")


def _folds(judgments: Judgments, order: Counts, n_folds: int, rng: np.random.Generator) -> Ints:
    """Fold of each judgment."""
    named, query_of_row = judgments.n_annotators > 0, _query(judgments)
    if named:
        # answers to one question stay together
        if isinstance(judgments, Preferences):
            asked = [np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)]
        else:
            asked = [judgments.query if isinstance(judgments, Rankings) else judgments.item]
        thing = row_codes(judgments.annotator, *asked, *([] if judgments.block is None else [judgments.block]))
    else:
        number = judgment_numbers(judgments)
        thing = np.asarray(np.argsort(order) if number is None else number, np.int64)
    n_things = int(thing.max(initial=-1)) + 1
    stratum, query = np.zeros(n_things, np.int64), np.zeros(n_things, np.int64)
    stratum[thing], query[thing] = judgments.annotator if named else query_of_row, query_of_row
    shuffled = rng.permutation(n_things)
    in_order = shuffled[np.lexsort((query[shuffled], stratum[shuffled]))]
    hand = np.arange(n_things)
    if isinstance(judgments, Grades):
        # two or more of one annotator and query are dealt in one hand, a fold's share of many
        new = (np.diff(stratum[in_order], prepend=-1) != 0) | (np.diff(query[in_order], prepend=-1) != 0)
        place, size = _places_in_groups(new)
        part = place * np.clip(size // 2, 1, n_folds) // np.maximum(size, 1)
        hand = np.cumsum(new | (np.diff(part, prepend=0) != 0)) - 1
    fold = np.empty(n_things, np.int32)
    fold[in_order] = hand % n_folds
    return fold[thing]


def _places_in_groups(new: Bools) -> tuple[Counts, Counts]:
    """Place of each row in its group, and the size of that; ``new`` are the first rows of groups."""
    begin = np.flatnonzero(new)
    sizes = np.diff(begin, append=len(new))
    return np.arange(len(new)) - np.repeat(begin, sizes), np.repeat(sizes, sizes)


def _query(judgments: Judgments) -> Any:
    """Query of each judgment, the former one where queries were taken together."""
    if judgments.block is not None:
        return judgments.block
    if isinstance(judgments, Rankings):
        return judgments.query
    return judgments.items.query[judgments.left if isinstance(judgments, Preferences) else judgments.item]


def _pairs(judgments: Judgments, order: Counts, fold: Ints, start: int, rng: np.random.Generator) -> Pairs:
    """Pairs of items with unequal answers in the same fold, of judgments numbered from ``start``."""
    who, weight = judgments.row_annotator, judgments.row_weight
    if isinstance(judgments, Preferences):
        rows = order[judgments.outcome[order] != 0]
        won, left, right = judgments.outcome[rows] > 0, judgments.left[rows], judgments.right[rows]
        better, worse = np.where(won, left, right), np.where(won, right, left)
        return Pairs(better, worse, rows + start, rows + start, who[rows], weight[rows])
    item = judgments.item
    if isinstance(judgments, Grades):
        grade, owner = judgments.grade, np.arange(len(item))
        first, second = (order[rows] for rows in _partners(row_codes(*[_query(judgments), who, fold])[order], rng))
    else:
        grade, owner = -judgments.rank.astype(np.float64), judgments.ranking.astype(np.int64)
        first, second = _partners(owner, rng)
    use = (grade[first] != grade[second]) & (item[first] != item[second])
    if isinstance(judgments, Grades) and judgments.nominal:
        use[:] = False
    first, second = first[use], second[use]
    swap = grade[first] < grade[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    one, other = owner[better], owner[worse]
    both = weight[one] * weight[other] if isinstance(judgments, Grades) else weight[one]
    return Pairs(item[better], item[worse], one + start, other + start, who[one], both)


def _partners(group: Counts, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Pairs of rows of one group: each with its next few, the group standing in a circle in random order."""
    shuffled = rng.permutation(len(group))
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    place, size = _places_in_groups(np.diff(group[order], prepend=-1) != 0)
    start, first, second = np.arange(len(order)) - place, [], []
    for step in range(1, PARTNERS + 1):
        # in a circle of an even number, those opposite each other meet but once
        use = (2 * step < size) | ((2 * step == size) & (place < step))
        first.append(order[use])
        second.append(order[(start + (place + step) % np.maximum(size, 1))[use]])
    return np.concatenate(first), np.concatenate(second)


_UNSHRUNK_RIDGE = 0.01
"""Ridge of the Bradley-Terry scores that show the level of opponents: small, so that levels are not shrunk."""

_MIN_STANDARD_ERRORS = 4.0
"""Pairs count as chosen by earlier answers where the level of opponents predicts answers by this many standard errors.

Of 15,000 designs without adaptation, one reaches this by chance.
"""

_PRIOR_PRECISION = 0.01
_MAX_STEPS = 50


def _opponent_levels(preferences: Preferences, scores: Floats, item: Ints, besides: Ints) -> Floats:
    """Mean score of the items that each ``item`` was compared with, the item ``besides`` left out; else its own."""
    n, weight = preferences.n_items, np.tile(preferences.row_weight, 2)
    first, second = np.append(preferences.left, preferences.right), np.append(preferences.right, preferences.left)
    sums, counts = np.bincount(first, weight * scores[second], n), np.bincount(first, weight, n)
    key: Counts = first.astype(np.int64) * n + second
    known, place = np.unique(key, return_inverse=True)
    of_pair = np.append(np.bincount(place, weight, len(known)), 0.0)
    wanted = item.astype(np.int64) * n + besides
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    met = of_pair[np.where(known[position] == wanted, position, len(known))]
    others = counts[item] - met
    # items that met nobody else have no level of opponents: both items of such a pair get the pair's own middle
    middle = 0.5 * (scores[item] + scores[besides])
    total = sums[item] - met * scores[besides]
    return np.divide(total, others, out=middle, where=others > 1e-9 * np.maximum(counts[item], 1.0))


def fit_leads(terms: Floats, weight: Floats, start: float = 0.0) -> tuple[Floats, Floats]:
    """Return the coefficients that make sigmoid(terms @ coefficients) likeliest, and their standard errors.

    Newton steps on terms of mean square 1, with a weak prior that keeps coefficients finite.
    """
    from scipy.special import expit

    size = np.sqrt(np.average(terms**2, axis=0, weights=weight))
    unit = np.divide(terms, size, out=np.zeros_like(terms), where=size > 0.0)
    point = start * size
    for _ in range(_MAX_STEPS):
        behind = expit(-(unit @ point))
        bend = weight * behind * (1.0 - behind)
        matrix = (unit * bend[:, None]).T @ unit + _PRIOR_PRECISION * np.eye(len(point))
        step = np.linalg.solve(matrix, unit.T @ (weight * behind) - _PRIOR_PRECISION * point)
        point = point + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-6:
            break
    scale = np.where(size > 0.0, size, 1.0)
    return point / scale, np.sqrt(np.diag(np.linalg.inv(matrix))) / scale


OWN_PULL = 4.0
"""Precision of the annotators' scales around the common one, differences of scores having a mean square of 1."""

OWN_COUNTS = 5.0
"""Answers at each level that the crowd's habits count as, beside an annotator's own."""

# threshold (equal): cells of predictions computed at once
_MAX_CELLS_AT_ONCE = 4_000_000
_MIN_PROBABILITY = 1e-12


class Figure(NamedTuple):
    """One measure of one method: its sum over the judgments of each unit, and their weight, (n_units,) each."""

    sums: Floats
    weight: Floats

    @property
    def value(self) -> float:
        """The mean over all judgments."""
        return float(self.sums.sum() / self.weight.sum())

    @property
    def parts(self) -> Floats:
        """What each unit that has any weight adds to the value, times their number: their mean is the value."""
        some = self.weight > 0
        return self.sums[some] * (some.sum() / self.weight.sum())

    @property
    def error(self) -> float | None:
        """Standard error of the value, units being independent; ``None`` for a single one."""
        return ratio_std_error(self.sums - self.value * self.weight, self.weight)


def ratio_std_error(rest: Floats, weight: Floats) -> float | None:
    """Return the standard error of a ratio from what is left of each unit's sum; ``None`` for a single unit."""
    n = int((weight > 0).sum())
    return float(np.sqrt((rest**2).sum() * n / (n - 1)) / weight.sum()) if n > 1 else None


def predict_held_out(
    method: Aggregator, split: Split, consensus: Consensus, step: Callable[[], None] | None = None
) -> dict[str, Figure]:
    """Return the figures of a method, by measure.

    Parameters
    ----------
    method, split
        What is fitted to the judgments outside of each fold in turn.
    consensus
        What the method finds for all judgments; says whether it chooses grades.
    step
        Called after each fit.
    """
    judgments: Any = split.judgments
    pairs = split.pairs
    # whether the method chooses among the levels that the judgments have
    classes = isinstance(judgments, Grades) and judgments.declared is not None and consensus.grade is not None
    classes = classes and consensus.levels == judgments.levels
    gap, chosen = np.empty(len(pairs.better)), np.empty(len(judgments) if classes else 0, np.int64)
    shares: Floats | None = None
    for number in range(split.n_folds):
        seen, here = judgments.select(split.fold != number), split.fold == number
        if classes:
            fitted = fit_quietly(without_calibration(method), seen)
            scores, item = fitted.scores, judgments.item[here]
            chosen[here] = fitted.grade[item]
            if fitted.probabilities is not None:
                shares = np.empty((len(chosen), fitted.probabilities.shape[1])) if shares is None else shares
                shares[here] = fitted.probabilities[item]
        else:
            scores = scores_quietly(method, seen)
        rows = np.flatnonzero(here[pairs.first])
        gap[rows] = scores[pairs.better[rows]] - scores[pairs.worse[rows]]
        if step:
            step()
    figures = {}
    if len(gap):
        common, own = _pair_losses(split, gap)
        values = {"pair_accuracy": 0.5 * (1.0 + np.sign(gap)), "log_loss": common}
        values |= {"annotator_log_loss": own} if split.unit_name == "annotator" else {}
        figures = {name: split.figure(pairs.first, pairs.weight, value) for name, value in values.items()}
    known = np.flatnonzero(chosen >= 0)
    if len(known):
        right, weight = chosen == judgments.level_codes()[0], judgments.row_weight
        figures["grade_accuracy"] = split.figure(known, weight[known], right[known].astype(np.float64))
        if shares is not None:
            # an item that the fit has not seen is predicted from the shares of all
            figures["grade_log_loss"] = split.figure(slice(None), weight, _grade_losses(split, shares))
    return figures


def without_calibration(method: Any) -> Any:
    """Return the method with its model's own probabilities: calibrated ones allow for mistakes that the crowd shares,
    which its answers repeat.
    """
    return replace(method, calibrated=False) if getattr(method, "calibrated", False) else method


def _pair_losses(split: Split, gap: Floats) -> tuple[Floats, Floats]:
    """Log-loss of each pair with one scale for all, and with a scale for each annotator.

    Scales are estimated from pairs of other folds and their fits. On pairs that a fit has seen, its scores look
    surer than they are, and those annotators look best whom it believed most.
    """
    common_loss, own_loss = np.empty((2, len(gap)))
    who, weight, n = split.pairs.annotator, split.pairs.weight, max(split.judgments.n_annotators, 1)
    lead, start = gap, own_scales(gap, weight, who, n) if split.pairing is None else None
    for number in range(split.n_folds):
        here, use = split.pair_fold == number, split.pair_fold != number
        if split.pairing is not None:
            # the likeliest combination of terms, the scores never counted the other way round
            terms = np.column_stack([gap, split.pairing])
            coefficients = fit_leads(terms[use], weight[use])[0]
            if coefficients[0] < 0.0:
                coefficients = np.append(0.0, fit_leads(terms[use, 1:], weight[use])[0])
            lead = terms @ coefficients
        common, scales = own_scales(lead[use], weight[use], who[use], n, start=start)
        common_loss[here] = np.logaddexp(0.0, -common * lead[here])
        own_loss[here] = np.logaddexp(0.0, -scales[who[here]] * lead[here])
    return common_loss, own_loss


def common_scale(gap: Floats, weight: Floats, start: float = 0.0) -> float:
    """Return the c of 0 or more that makes sigmoid(c * gap) likeliest.

    Scores that most answers contradict say nothing: turned round they would be another order.
    """
    return max(float(fit_leads(gap[:, None], weight, start)[0][0]), 0.0) if len(gap) else 0.0


def own_scales(
    gap: Floats, weight: Floats, annotator: Ints, n: int, start: tuple[float, Floats] | None = None
) -> tuple[float, Floats]:
    """Return the common scale, and that of each of ``n`` annotators, drawn towards it.

    The scale of those who guess is near 0, so their answers count for little whatever the scores; those who answer
    the wrong way round have one below 0. ``start`` are scales to start from.
    """
    from scipy.special import expit

    common = common_scale(gap, weight, 0.0 if start is None else start[0])
    if common == 0.0:
        return 0.0, np.zeros(n)
    size = float(np.sqrt(np.average(gap**2, weights=weight)))
    unit, middle = gap / size, common * size
    scales = np.full(n, middle) if start is None else start[1] * size
    for _ in range(_MAX_STEPS):
        p = expit(-scales[annotator] * unit)
        slope = np.bincount(annotator, weight * p * unit, n) - OWN_PULL * (scales - middle)
        change = np.clip(slope / (np.bincount(annotator, weight * p * (1 - p) * unit**2, n) + OWN_PULL), -2.0, 2.0)
        scales = scales + change
        if np.abs(change).max() < 1e-3:
            break
    return common, scales / size


def _grade_losses(split: Split, shares: Floats) -> Floats:
    """Log-loss of each grade, told from the item's levels and from what its annotator makes of each level.

    That is estimated from grades of other folds as predicted by their fits, and drawn towards what all make of it.
    """
    grades: Any = split.judgments
    code, who = grades.level_codes()[0], grades.row_annotator
    n, n_levels, loss = max(grades.n_annotators, 1), shares.shape[1], np.empty(len(shares))
    step = max(1, _MAX_CELLS_AT_ONCE // n_levels**2)
    for number in range(split.n_folds):
        here, elsewhere = split.fold == number, split.fold != number
        crowd = _level_counts(shares[elsewhere], 0 * who[elsewhere], code[elsewhere], 1)[0] + 1.0 / n_levels
        crowd /= crowd.sum(axis=1, keepdims=True)
        for start in range(0, n, step):
            block = (who >= start) & (who < start + step)
            learn, tell = np.flatnonzero(block & elsewhere), np.flatnonzero(block & here)
            own = _level_counts(shares[learn], who[learn] - start, code[learn], min(step, n - start))
            own += OWN_COUNTS * crowd
            own /= own.sum(axis=2, keepdims=True)
            chance = (shares[tell] * own[who[tell] - start, :, code[tell]]).sum(axis=1)
            loss[tell] = -np.log(np.maximum(chance, _MIN_PROBABILITY))
    return loss


def _level_counts(shares: Floats, who: Any, code: Ints, n: int) -> Floats:
    """How often each of ``n`` annotators gave each level to items of each level, (n, n_levels, n_levels)."""
    n_levels = shares.shape[1]
    cell = who.astype(np.int64) * n_levels + code
    sums = [np.bincount(cell, share, n * n_levels) for share in shares.T]
    return np.stack([column.reshape(n, n_levels) for column in sums], axis=1)


MOST_GRADES_LEARNED = 50_000
"""Of more grades those of a part of the queries are learned from and measured by."""

FEWEST_QUERIES = 20
"""With fewer held-out queries the standard error of a difference is itself a sixth or more off."""

_N_DIVISIONS = 3
_TARGET_TOL, _TARGET_MAX_ITER = 1e-3, 60


@dataclass(frozen=True)
class QueryHalves:
    """Halves of the queries with features: rankers learn from one and are measured on the other, in turns.

    Parameters
    ----------
    grades
        Grades, their levels declared.
    matrix, lists
        Features, and the graded items of each query in them; the target is the mean gain of the grades of an item.
    item
        Item of the grades at each place of the lists.
    halves
        Queries of the lists in both halves, divided in several ways, as which are together is chance.
    """

    grades: Grades
    matrix: Any
    lists: Any
    item: Counts
    halves: Sequence[Sequence[Counts]]

    @classmethod
    def of(cls, grades: Grades, features: Features) -> QueryHalves | None:
        """Return halves alike in number of items and features, which neither names, rows nor grades decide.

        ``None`` where fewer than 20 queries have two graded items, where features are missing, which a linear ranker
        does not take, or where grades are too far apart for gains.
        """
        from ..rankers.estimator import MAX_EXPONENTIAL_TARGET, gains, query_parts, sample_queries
        from ..rankers.training_rows import Lists, Matrix

        known: Any = with_levels(grades)
        with warnings.catch_warnings():
            # the fit to all of them warns of items without features
            warnings.simplefilter("ignore")
            row = features.match(known)
        described = np.flatnonzero(row >= 0)
        item = np.full(len(features), -1)
        item[row[described]] = described
        matrix, nothing = Matrix(features.matrix), np.zeros(len(features))
        lists = Lists.of(len(features), nothing, features.items.query, sample_weight=(item >= 0).astype(np.float64))
        lists = replace(lists, weight=None).take(np.flatnonzero(lists.n_items > 1))
        height = known.grade - known.grade.min()
        if lists.n_queries < FEWEST_QUERIES or height.max() > MAX_EXPONENTIAL_TARGET:
            return None
        lists = sample_queries(matrix, lists, round(MOST_GRADES_LEARNED / len(known) * lists.n_places), seed=0)
        assert lists.rows is not None
        if not np.isfinite(features.matrix[lists.rows]).all():
            return None
        total = np.bincount(known.item, known.row_weight * gains(height, "exponential"), known.n_items)
        weight = np.bincount(known.item, known.row_weight, known.n_items)
        item = item[lists.rows]
        halves = [query_parts(matrix, lists, 2, seed) for seed in range(_N_DIVISIONS)]
        return cls(known, matrix, replace(lists, target=total[item] / weight[item]), item, halves)

    def ndcg(self, name: str) -> Floats | None:
        """Return the nDCG@10 of each held-out query, of a linear ranker that learned from a method's consensus.

        The consensus of a half knows nothing of the other, whose grades are measured by as they are: that favours no
        method, or the mean of the grades where annotators share a mistake. ``None`` where nothing can be learned.
        """
        from ..rankers.estimator import held_out, rows_of
        from ..rankers.list_net import ListNet

        method, folds = make("aggregator", name), []
        # fits to choose by need no more digits
        brief = {"tol": _TARGET_TOL, "max_iter": _TARGET_MAX_ITER}
        method = replace(method, **{name: value for name, value in brief.items() if hasattr(method, name)})
        turns = [turn for pair in self.halves for turn in (pair, pair[::-1])]
        for learned, held in turns:
            use = np.zeros(self.grades.n_items, np.bool_)
            use[self.item[np.isin(self.lists.query, learned)]] = True
            consensus = fit_quietly(without_calibration(method), self.grades.select(use[self.grades.item]))
            targets = replace(self.lists, target=consensus.scores[self.item])
            folds.append((rows_of(self.matrix, targets, learned), rows_of(self.matrix, self.lists, held)))
        measured = held_out(ListNet, folds, 10, "given")
        if measured is None:
            return None
        has_gain = np.maximum.reduceat(self.lists.target, self.lists.offsets[:-1]) > 0
        query = np.concatenate([held[has_gain[held]] for _, held in turns])
        mean: Floats = np.bincount(query, measured[0][-1], self.lists.n_queries) / len(self.halves)
        return mean[has_gain]
