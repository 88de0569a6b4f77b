"""How sure a class method may be: what a crowd of nested models says, each weighed by held-out annotators."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...protocols import Counts, Floats
from .coded_grades import ClassFit, ClassRows, MatrixReading, vote_anchor

_MIN_PROBABILITY = 1e-300
_LOG_MODEL_PRIOR = np.log([4.0, 2.0, 1.0])
"""Prior weights of no information, of one skill per annotator, and of a matrix each: half for each step up."""

_MOST_OF_MATRICES = 0.5
"""Held-out grades show which model predicts grades, not which is right about levels, where annotators share mistakes:
the matrices get at most half, and the skills keep the rest. Over simulated and public crowds the mean of both is more
accurate and its log-loss lower than that of either."""

_N_FOLDS, _MOST_ALONE = 5, 10
"""Annotators are held out one by one where there are no more than ten, so that no name decides; otherwise in fifths."""

_TYPICAL_CORRELATION = 0.2
"""Mean of the exponential prior of both correlations, about that found on eight public sets (0.05 to 0.4); it matters
where items have two or three grades, which cannot show it."""

_CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
_DRAWS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
"""The values that are tried of the two: by which grades say less of a level than they seem to, and by which an item
draws the same answers whatever its level; a grid, so that no last digit of a sum decides."""

_TEMPERINGS = (0.0, *(0.002 * 1.25**power for power in range(28)), 1.0)
"""Of a model too plain for its crowd all grades of an item may count as one."""

_LOG_PRIOR = np.add.outer(
    *(np.log(np.gradient(values)) - values / _TYPICAL_CORRELATION for values in (_CORRELATIONS, _DRAWS))
)
_LOG_PRIOR -= np.log(np.exp(_LOG_PRIOR).sum())

_LEAST_WEIGHT = 1e-3
_SKILL_WEIGHT, _MATRIX_WEIGHT, _MOST_SKILL = 4.0, 5.0, 0.9999
"""Grades that the mean skill is worth in each annotator's, that the crowd's row is worth in each annotator's matrix
(likelihood puts it between 3 and 20 on public sets), and the largest skill."""

_TOL, _MOST_PASSES = 3e-3, 30
"""Of the fits by which others are judged."""

_STRIDE = 4
_N_RIGHT_BEFORE, _N_WRONG_BEFORE = 2.0, 1.0
"""Grades that anybody's accuracy begins with, which is all that is known where no item was graded twice."""

_MOST_SHARED = 0.999
"""Most that is given away to all levels alike, so that the chosen one stays the most probable."""

_LEAST_GAIN = 2.0
"""Log-likelihood of held-out grades that a better fit gains at least."""

_ROW_WEIGHT = 20.0
"""Grades that the crowd's row is worth in each annotator's, where fits are compared."""

_N_STRUCTURE_ROUNDS = 2
"""Rounds in which items and annotators are known by each other: on public sets a third splits no group of items."""

Numbers: TypeAlias = NDArray[np.uint64]


class Calibration(NamedTuple):
    """How the probabilities of a model are tempered.

    ``correlation`` is that by which the grades of one item say less of its level than independent ones, so that
    :math:`n` annotators count as :math:`n / (1 + (n - 1) r)`: its posterior mean, ``likeliest`` its posterior mode;
    ``shared_error`` the expected share of items on which even many such annotators would settle on a wrong level, by
    this correlation or by how far items draw the same answers whatever their level, whichever says more;
    ``no_information`` the probability that the grades say nothing of the items. ``tempering`` and ``given_away`` are
    what the model's own probabilities are tempered by: a correlation, and the share of each item that goes to all
    levels alike.
    """

    correlation: float = 0.0
    shared_error: float = 0.0
    likeliest: float = 0.0
    no_information: float = 0.0
    tempering: float = 0.0
    given_away: float = 0.0


def calibrate(rows: ClassRows, fit: ClassFit) -> Calibration:
    """Return how sure a fit may be: its probabilities are tempered to come closest to those of the judging crowd.

    See :func:`judge_crowd`, which predicts the grades of annotators who are held out. Accuracies that were given are
    not doubted: only the likeliest correlation counts. Where no item was graded twice, annotators are taken to be right
    in two of three grades.
    """
    if fit.kept_all:
        wrong = _N_WRONG_BEFORE / (_N_RIGHT_BEFORE + _N_WRONG_BEFORE)
        return Calibration(given_away=_away_of(wrong, rows.n_levels) if rows.n_levels > 1 else 0.0)
    sample, own = (rows.by_query if fit.by_query else rows).sample, rows.sample_probabilities(fit)
    if not sample.n_items:
        return Calibration()
    judged = judge_crowd(sample)
    calibration = Calibration(judged.correlation, judged.shared_error, judged.likeliest, judged.no_information)
    if fit.is_given:
        return calibration._replace(correlation=calibration.likeliest, tempering=calibration.likeliest)
    calibration = calibration._replace(given_away=judged.given_away)
    return _nearest_tempering(own, _n_voices(sample), judged.probabilities, calibration)


def _away_of(wrong: float, n_levels: int) -> float:
    """The share given away to all levels alike by which a sure level is wrong so often."""
    return min(wrong * n_levels / max(n_levels - 1, 1), _MOST_SHARED)


def temper_probabilities(rows: ClassRows, fit: ClassFit, calibration: Calibration) -> Floats:
    """Return the probabilities of a fit as calibrated, (n_items, n_levels); known items stay."""
    from ...kernels.confusion import flatten

    probabilities = flatten(fit.probabilities, _n_voices(rows), calibration.tempering)
    probabilities *= 1.0 - calibration.given_away
    probabilities += calibration.given_away / rows.n_levels
    rest = np.flatnonzero(~rows.is_graded | (rows.known >= 0))
    probabilities[rest] = fit.probabilities[rest]
    return probabilities


def _nearest_tempering(own: Floats, n_voices: Floats, wanted: Floats, calibration: Calibration) -> Calibration:
    """The tempering by which the own probabilities of a fit come closest to those wanted, by expected log-loss."""
    from ...kernels.confusion import flatten, nearest_away

    @cache
    def loss_and_share(number: int) -> tuple[float, float]:
        loss, away = nearest_away(flatten(own, n_voices, _TEMPERINGS[number]), wanted, calibration.given_away)
        # the last digits depend on the order of the sums
        return round(loss, 7), away

    # the losses fall and then rise: strides find where
    best = min(range(0, len(_TEMPERINGS), _STRIDE), key=loss_and_share)
    near = range(max(best - _STRIDE + 1, 0), min(best + _STRIDE, len(_TEMPERINGS)))
    best = min(near, key=loss_and_share)
    return calibration._replace(tempering=_TEMPERINGS[best], given_away=loss_and_share(best)[1])


def predicts_better(sample: ClassRows, better: Floats, other: Floats, *, n_errors: float = 0.0) -> bool:
    """Return whether probabilities predict grades from others better than others do, by so many standard errors.

    Both are those of the items of a sample, (n_items, n_levels), and items are independent.
    """
    gain = _losses_by_item(sample, other) - _losses_by_item(sample, better)
    # where all items are alike nothing shows what chance is
    least = max(n_errors * float(np.sqrt(((gain - gain.mean()) ** 2).sum())), _LEAST_GAIN)
    return round(float(gain.sum()), 7) > least


def held_out_loss(sample: ClassRows, own: Floats) -> float:
    """Return the log-loss of grades that are each predicted from those of the others by the items' probabilities."""
    # the last digits depend on the order of the sums
    return round(float(_losses_by_item(sample, own).sum()), 7)


def _losses_by_item(sample: ClassRows, own: Floats) -> Floats:
    """Log-loss of the grades of each sampled item, by matrices counted from the probabilities, without the item.

    It compares fits with equally many parameters: what a fit learned from the grades themselves stays in it.
    """
    if not sample.n_items:
        return np.zeros(1)
    grades = _DistinctGrades.of(sample)
    tallies = sample.tallies(own)
    mean = tallies.counts.sum(axis=0) + 1.0
    added = _ROW_WEIGHT * mean / mean.sum(axis=1, keepdims=True)
    probabilities = own[grades.item]
    total = grades.of_voice(grades.weight) if sample.has_annotators else np.minimum(grades.weight, 1.0)
    taken = grades.weight if sample.has_annotators else total
    left = np.maximum(tallies.counts[grades.annotator, :, grades.level] - taken[:, None] * probabilities, 0.0)
    left += added[:, grades.level].T
    rest = tallies.counts.sum(axis=2)[grades.annotator] - total[:, None] * probabilities + _ROW_WEIGHT
    chance = left / np.maximum(rest, left)
    logs = np.log(chance)
    voice = grades.of_voice(grades.weight[:, None] * logs) if sample.has_annotators else logs
    others = np.log(tallies.shares + 1.0) + grades.of_item(grades.weight[:, None] * logs) - voice
    predicted = np.einsum("nk,nk->n", _shares(others), chance)
    losses = -grades.weight * np.log(np.maximum(predicted, _MIN_PROBABILITY))
    return np.bincount(grades.item, losses).astype(np.float64)


class JudgedCrowd(NamedTuple):
    """What the nested models say together: probabilities (n_items, n_levels), and what they rest on.

    ``informed`` are the weights of skills and matrices beside each other; the rest as in :class:`Calibration`.
    """

    probabilities: Floats
    informed: Floats
    no_information: float
    correlation: float
    likeliest: float
    shared_error: float
    given_away: float


def judge_crowd(rows: ClassRows) -> JudgedCrowd:
    """Return the probabilities of levels by three nested models, each weighed by how it predicts held-out annotators.

    The models are: grades say nothing; each annotator knows the level with a probability of their own and otherwise
    answers as all do overall; each has a confusion matrix. Fits without an annotator give the levels of their items,
    tempered by a correlation, and the mean matrix predicts their grades, beside an urn of what the item was given
    (:func:`~crowdrank.kernels.confusion.held_out_likelihoods`): where items draw the same answers beyond what their
    level explains, annotators also err together, and a share of each item is given away for that. Nothing of these fits
    has seen the grades that it is weighed by, so that a model with more parameters than the grades can bear loses its
    weight, and pure noise ends with no information. Both correlations are averaged over their posterior.

    Where times are known, a grade is predicted from those of the others that are not later. What is asked next may
    depend on what was answered before: a first grade that others contradict is a reason to ask for more, so that among
    many grades the first ones would differ from the rest too often, however independent annotators are.
    """
    from ...kernels.confusion import flatten, held_out_likelihoods
    from ...kernels.threads import even_bounds, over_bounds

    named, n_levels, (_, given) = rows.has_annotators, rows.n_levels, rows.levels_by_row
    # with fewer grades than cells not even the crowd's matrix can be learned
    with_matrices = named and given.sum() >= n_levels**2
    folds = _folds(rows, given.sum(axis=1)) if named else np.zeros(1, np.int64)
    times = _row_times(rows) if rows.time is not None and named else None

    def fits(train: Floats) -> list[MatrixReading]:
        skills = _fit_skills(rows, train)
        return [skills, _fit_matrices(rows, train, skills)] if with_matrices else [skills]

    n_folds = int(folds.max()) + 1

    def held_out_logs(begin: int, end: int) -> list[Any]:
        """Likelihoods of the grades of each fold, by each model over the grid and by shares, and the last fits."""
        logs: list[Any] = []
        for fold in range(begin, end):
            # without names each grade is predicted from the rest of its item, and what all share learned with it
            held_out = folds == fold
            train = np.where(held_out[:, None] & named, 0.0, given)
            if fold == n_folds:
                logs.append(fits(given))
                continue
            overall = train.sum(axis=0) + 1.0
            by_model = [
                held_out_likelihoods(
                    rows.packed_rows, fit.confusion, fit.shares, held_out, _mean_matrix(fit, train.sum(axis=1)),
                    overall / overall.sum(), (_CORRELATIONS, _DRAWS), named=named, time=times,
                )
                for fit in fits(train)
            ]  # fmt: skip
            logs.append((np.stack([over_grid for over_grid, _ in by_model]), by_model[0][1]))
        return logs

    # folds know nothing of each other, so threads share them; they are added in their order, whoever was first
    by_thread = over_bounds(held_out_logs, even_bounds(n_folds + 1, 1))
    *by_fold, fits_to_all = [logs for stretch in by_thread for logs in stretch]
    likelihoods: Floats = np.sum([logs for logs, _ in by_fold], axis=0)
    by_shares = sum(alone for _, alone in by_fold)
    # the last digits depend on the order of the sums
    posterior = np.round(likelihoods, 7) + _LOG_PRIOR
    top = posterior.max(axis=(1, 2))
    chances = np.exp(posterior - top[:, None, None])
    evidence = np.append(round(by_shares, 7), top + np.log(chances.sum(axis=(1, 2))))
    evidence += _LOG_MODEL_PRIOR[: 2 + with_matrices]
    chances /= chances.sum(axis=(1, 2), keepdims=True)
    # of the informed models by themselves: heavy grades may leave them no weight beside no information
    informed = np.exp(evidence[1:] - evidence[1:].max())
    informed /= informed.sum()
    if with_matrices:
        informed += (1.0 - _MOST_OF_MATRICES) * informed[1] * np.array([1.0, -1.0])
    weights = np.exp(evidence - evidence.max())
    nothing = float(weights[0] / weights.sum())
    by_correlation, by_draw, voices = chances.sum(axis=2), chances.sum(axis=1), _n_voices(rows)
    probabilities, shared_error, drawn_error = np.zeros((rows.n_items, n_levels)), 0.0, 0.0
    correlations = by_correlation @ _CORRELATIONS
    for number, fit in enumerate(fits_to_all):
        own = rows.read(fit)
        for correlation, chance in zip(_CORRELATIONS.tolist(), by_correlation[number].tolist(), strict=True):
            if chance > _LEAST_WEIGHT:
                probabilities += informed[number] * chance * flatten(own, voices, correlation)
        crowd = _informed_matrix(fit, given.sum(axis=1))
        drawn = sum(
            chance * _shared_error(draw, crowd, fit.shares)
            for draw, chance in zip(_DRAWS.tolist(), by_draw[number].tolist(), strict=True)
            if chance > _LEAST_WEIGHT
        )
        drawn_error += float(informed[number]) * drawn
        shared_error += float(informed[number]) * max(drawn, _shared_error(correlations[number], crowd, fit.shares))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    away = nothing + (1.0 - nothing) * _away_of(drawn_error, n_levels)
    likeliest = (likelihoods[int(informed.argmax())].max(axis=1) - _CORRELATIONS / _TYPICAL_CORRELATION).argmax()
    return JudgedCrowd(
        (1.0 - away) * probabilities + away / n_levels, informed, nothing,
        float(informed @ correlations), float(_CORRELATIONS[likeliest]), shared_error, away,
    )  # fmt: skip


def _fit_skills(rows: ClassRows, given: Floats) -> MatrixReading:
    """One skill per annotator, who knows the level with it and otherwise answers as all do overall, by EM.

    Skills have a Beta prior around the mean skill, worth four grades; levels have the shares of the grades. ``given``
    (n_annotators, n_levels) is the weight of the grades that count: annotators without any say nothing.
    """
    number, overall = given.sum(axis=1), given.sum(axis=0) + 1.0
    shares, counts = overall / overall.sum(), number > 0.0
    skill = np.where(counts, 0.5, 0.0)

    def confusion() -> Floats:
        return skill[:, None, None] * np.eye(rows.n_levels) + (1.0 - skill)[:, None, None] * shares

    for _ in range(_MOST_PASSES):
        right = np.einsum("ajj->aj", rows.expected_counts(confusion(), shares).counts)
        known = (right * (skill[:, None] / (skill[:, None] + (1.0 - skill)[:, None] * shares))).sum(axis=1)
        mean = (known.sum() + 1.0) / (number.sum() + 2.0)
        following = np.where(counts, (known + _SKILL_WEIGHT * mean) / (number + _SKILL_WEIGHT), 0.0)
        following = np.minimum(following, _MOST_SKILL)
        change, skill = float(np.abs(following - skill).max()), following
        if change < _TOL:
            break
    return MatrixReading(confusion(), shares)


def _fit_matrices(rows: ClassRows, given: Floats, skills: MatrixReading) -> MatrixReading:
    """A confusion matrix per annotator, by EM from their skills.

    Row j of an annotator has a Dirichlet prior, worth five grades, around the crowd's errors and the annotator's own
    accuracy; that has a Beta prior around the mean, worth four. Both are taken from the grades in each pass. Shares of
    levels begin with those of the grades (:func:`~.coded_grades.vote_anchor`).
    """
    from .kernels.shrunk_matrices import shrink_matrices

    number, anchor = given.sum(axis=1), vote_anchor(rows) + 1.0
    confusion, shares = skills
    for _ in range(_MOST_PASSES):
        expected = rows.expected_counts(confusion, shares)
        confusion, change = shrink_matrices(
            expected.counts, number, confusion, skill_weight=_SKILL_WEIGHT, matrix_weight=_MATRIX_WEIGHT
        )
        shares = (expected.shares + anchor) / (expected.shares + anchor).sum()
        if change < _TOL:
            break
    return MatrixReading(confusion, shares)


def _informed_matrix(fit: MatrixReading, given: Floats) -> Floats:
    """The mean matrix in which annotators count by what their grades tell of the level, as they do in a fit."""
    matrices = np.maximum(fit.confusion, _MIN_PROBABILITY)
    answers = np.einsum("j,ajl->al", fit.shares, matrices)
    information = np.einsum("j,ajl->a", fit.shares, matrices * (np.log(matrices) - np.log(answers)[:, None, :]))
    return np.maximum(_mean_matrix(fit, given * np.maximum(information, 1e-12)), _MIN_PROBABILITY)


def _folds(rows: ClassRows, given: Floats) -> Counts:
    """The fold of each annotator: by who graded what, then by name, so that neither answers nor row order matter."""
    active = np.flatnonzero(given > 0)
    folds = np.full(rows.n_annotators, -1, np.int64)
    n_folds = len(active) if len(active) <= _MOST_ALONE else _N_FOLDS
    asked = replace(rows, level=np.zeros_like(rows.level), levels=rows.levels[:1])
    numbers = structure_numbers(asked, 0)[1][active]
    folds[active[np.lexsort((active, numbers))]] = np.arange(len(active)) % max(n_folds, 1)
    return folds


def _mean_matrix(fit: MatrixReading, weights: Floats) -> Floats:
    """The mean of the annotators' matrices by these weights, (n_levels, n_levels)."""
    return np.einsum("ajl,a->jl", fit.confusion, weights / weights.sum())


class _DistinctGrades(NamedTuple):
    """What each annotator gave each item, equal rows as one: item, annotator, level and weight, (n,), in that order."""

    item: Counts
    annotator: Counts
    level: Counts
    weight: Floats

    @property
    def voice_starts(self) -> Counts:
        """Where the grades of the next annotator or item begin."""
        new = (np.diff(self.item, prepend=-1) != 0) | (np.diff(self.annotator, prepend=-1) != 0)
        return np.flatnonzero(new)

    def of_voice(self, values: Floats) -> Floats:
        """Return for each grade the sum of values over all that its annotator gave its item."""
        return _sums(values, self.voice_starts)

    def of_item(self, values: Floats) -> Floats:
        """Return for each grade the sum of values over all that its item was given."""
        return _sums(values, np.flatnonzero(np.diff(self.item, prepend=-1) != 0))

    @classmethod
    def of(cls, rows: ClassRows) -> _DistinctGrades:
        """The grades of grades."""
        packed = rows.packed_rows
        item = np.repeat(np.arange(rows.n_items), np.diff(packed.starts))
        weight = packed.weight if packed.weight.size else np.ones(len(item))
        code = packed.code.astype(np.int64)
        first = np.flatnonzero((np.diff(item, prepend=-1) != 0) | (np.diff(code, prepend=-1) != 0))
        total = np.add.reduceat(weight, first) if len(first) else weight
        annotator, level = np.divmod(code[first], rows.n_levels)
        return cls(item[first], annotator, level, total)


def _sums(values: Floats, starts: Counts) -> Floats:
    """Sums of stretches of values, for each of their entries."""
    if not len(values):
        return values
    return np.repeat(np.add.reduceat(values, starts, axis=0), np.diff(np.append(starts, len(values))), axis=0)


def _row_times(rows: ClassRows) -> Floats:
    """When the annotator of each packed row first graded its item."""
    assert rows.time is not None
    order = np.lexsort((rows.annotator, rows.item))
    new = (np.diff(rows.item[order], prepend=-1) != 0) | (np.diff(rows.annotator[order], prepend=-1) != 0)
    first: Floats = np.minimum.reduceat(rows.time[order], np.flatnonzero(new)) if len(order) else np.empty(0)
    return np.repeat(first, np.diff(np.append(np.flatnonzero(new), len(order))))


def _n_voices(rows: ClassRows) -> Floats:
    """Number of annotators who graded each item, (n_items,); the weight of its grades where nobody is named."""
    from ...kernels.confusion import count_voices

    return count_voices(rows.packed_rows, rows.n_levels, named=rows.has_annotators)


def _shares(logs: Floats) -> Floats:
    """Probabilities that are proportional to exponentials, (n, n_levels)."""
    shares: Floats = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _shared_error(correlation: float, mean_matrix: Floats, shares: Floats) -> float:
    """Expected share of items on which even many annotators would settle on a wrong level.

    Many grades of an item of level j have shares that vary around row j of the crowd's matrix with this correlation.
    The model settles on another level k where the mean log ratio of the two rows is below 0. That mean is taken as
    Beta distributed between the least and the largest ratio, which is exact for two levels.
    """
    from scipy.special import betainc

    if correlation <= 0.0:
        return 0.0
    wrong = np.zeros(len(mean_matrix))
    for level, row in enumerate(mean_matrix):
        ratio = np.log(row) - np.log(mean_matrix)
        low, span = ratio.min(axis=1), np.ptp(ratio, axis=1)
        apart = span > 1e-9
        span = np.where(apart, span, 1.0)
        mean = np.einsum("l,kl->k", row, ratio)
        variance = np.maximum(np.einsum("l,kl->k", row, ratio**2) - mean**2, 1e-12)
        place = np.clip((mean - low) / span, 1e-6, 1.0 - 1e-6)
        weight = np.maximum(place * (1.0 - place) * span**2 / (correlation * variance) - 1.0, 1e-6)
        below = betainc(place * weight, (1.0 - place) * weight, np.clip(-low / span, 0.0, 1.0))
        wrong[level] = min(float(below[apart].sum()), 1.0)
    return float((shares * wrong).sum())


def structure_numbers(rows: ClassRows, seed: int) -> tuple[Numbers, Numbers]:
    """Return a random number for each item and for each annotator, from who gave what, whatever names and row order.

    Annotators are known by the items that they gave each level, and items by the annotators, in turn [Weisfeiler68]_;
    items that are alike in this share a number.
    """
    annotators = np.zeros(rows.n_annotators, np.uint64)
    for number in range(_N_STRUCTURE_ROUNDS):
        items = item_numbers(rows, annotators, seed, number)
        annotators = annotator_numbers(rows, items, seed, number)
    return items, annotators


def item_numbers(rows: ClassRows, annotators: Numbers, seed: int, number: int) -> Numbers:
    """Return the number of each item in a round, from those of the annotators who gave it each level."""
    item, annotator, level = _distinct_codes(rows)
    return _sums_of_draws(annotators[annotator], level, item, rows.n_items, (seed, 2 * number))


def annotator_numbers(rows: ClassRows, items: Numbers, seed: int, number: int) -> Numbers:
    """Return the number of each annotator in a round; over parts of the grades these add up."""
    item, annotator, level = _distinct_codes(rows)
    return _sums_of_draws(items[item], level, annotator, rows.n_annotators, (seed, 2 * number + 1))


def _distinct_codes(rows: ClassRows) -> tuple[Counts, Counts, Numbers]:
    """Item, annotator and level of each grade; a level given twice counts once, as one of twice the weight does."""
    packed = rows.packed_rows
    item = np.repeat(np.arange(rows.n_items), np.diff(packed.starts))
    new = np.append(True, (np.diff(packed.code) != 0) | (np.diff(item) != 0))[: len(item)]
    annotator, level = np.divmod(packed.code[new], np.uint32(rows.n_levels))
    return item[new], annotator.astype(np.int64), level.astype(np.uint64)


def _sums_of_draws(numbers: Numbers, level: Numbers, there: Counts, size: int, seeds: tuple[int, int]) -> Numbers:
    """Sums of draws that numbers and levels decide; sums that wrap do not depend on their order."""
    from ...kernels.numbering import mix_bits

    salt = np.random.default_rng(seeds).integers(0, 2**64, 1, np.uint64)
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, there, mix_bits(mix_bits(numbers + salt) + level))
    return sums
