"""How sure a class method may be: dependence within items, held-out grades, and mistakes that annotators share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...protocols import Bools, Counts, Floats
from .coded_grades import ClassFit, ClassRows
from .confusion_matrices import OwnPrior, Prior, crowd_shares, hierarchical_fit

MOST_CELLS = 200_000
"""Grades times levels that the calibration looks at; of more, those of a part of the items."""

_MIN_PROBABILITY = 1e-300
_MOST_ROUNDS = 10
_TYPICAL_CORRELATION = 0.1
"""Mean of the exponential prior of the correlation; it matters only where there are few grades."""

_CORRELATIONS = (0.0, *(0.002 * 1.25**power for power in range(28)))
"""The values that are tried, up to 0.83; a grid, so that no last digit of a sum decides."""

_TEMPERINGS = (*_CORRELATIONS, 1.0)
"""Of a model too plain for its crowd all grades of an item may count as one."""

_STRIDE = 4
_N_ERRORS = 2.0
"""The largest correlation is taken whose predictions are within this many standard errors of the best."""

_LEAST_GAIN = 2.0
"""Log-likelihood of held-out grades that a better fit gains at least."""

_MOST_SHARED = 0.9
"""Most that is given away to all levels alike, so that the chosen one stays the most probable."""

_FIRST_AWAY, _N_NEWTON_STEPS = 0.1, 12
_N_STRUCTURE_ROUNDS = 2
"""Rounds in which items and annotators are known by each other: on public sets a third splits no group of items."""

Numbers: TypeAlias = NDArray[np.uint64]


class Calibration(NamedTuple):
    """How the probabilities of a model are tempered.

    ``correlation`` is that of the grades of one item beyond what its level and the annotators explain, so that
    :math:`n` annotators count as :math:`n / (1 + (n - 1) r)`; ``shared_error`` the expected share of items on which
    even many such annotators would settle on a wrong level. Both are as large as held-out grades allow; ``likeliest``
    is the correlation that predicts these best. ``tempering`` and ``given_away`` are what the model's own probabilities
    are tempered by: the correlation, and the share of each item that goes to all levels alike.
    """

    correlation: float = 0.0
    shared_error: float = 0.0
    likeliest: float = 0.0
    tempering: float = 0.0
    given_away: float = 0.0


def calibrate(rows: ClassRows, fit: ClassFit) -> Calibration:
    """Return how sure a fit may be, found from grades that are each predicted from those of the others.

    Confusion matrices are counted by the probabilities of a fit. The item's probabilities without an annotator,
    tempered, and that annotator's matrix predict the grade, all matrices without the item. Taken is the largest
    correlation that these predictions do not speak against: grades of one crowd cannot show the mistakes it shares, so
    that the doubt goes to the cautious side.

    Where times are known, a grade is predicted from those of the others that are not later. What is asked next may
    depend on what was answered before: a first grade that others contradict is a reason to ask for more, so that among
    many grades the first ones would differ from the rest too often, however independent annotators are.

    That fit is the hierarchy of confusion matrices, whatever the model: a model of annotators that is too plain agrees
    with itself and finds no doubt. Its own probabilities are then tempered as comes closest to those of the hierarchy.
    """
    if not rows.any_several or fit.kept_all:
        return Calibration()
    judge = fit if fit.own_doubt else hierarchical_fit(rows)
    crowd = _Crowd.of(rows, judge)
    held_out = _HeldOut.of(rows, judge, crowd)
    if not len(held_out.weight):
        return Calibration()
    likeliest, largest = _correlations(held_out)
    shared_error = _shared_error(largest, crowd)
    given_away = min(shared_error * rows.n_levels / max(rows.n_levels - 1, 1), _MOST_SHARED)
    calibration = Calibration(largest, shared_error, likeliest, largest, given_away)
    return calibration if fit.own_doubt else _nearest_tempering(rows, fit, judge, calibration)


def held_out_loss(rows: ClassRows, fit: ClassFit) -> float:
    """Return the log-loss of grades that are each predicted from those of the others, as :func:`calibrate` does."""
    # the last digits depend on the order of the sums
    return round(float(_held_out_losses(rows, fit).sum()), 7)


def predicts_better(rows: ClassRows, fit: ClassFit, other: ClassFit, *, n_errors: float = 0.0) -> bool:
    """Return whether a fit predicts held-out grades better than another, by this many standard errors over items."""
    gain = _held_out_losses(rows, other) - _held_out_losses(rows, fit)
    # where all items are alike nothing shows what chance is
    least = max(n_errors * float(np.sqrt(((gain - gain.mean()) ** 2).sum())), _LEAST_GAIN)
    return round(float(gain.sum()), 7) > least


def _held_out_losses(rows: ClassRows, fit: ClassFit) -> Floats:
    """Log-loss of the grades of each item; none where nothing can be predicted."""
    held_out = _HeldOut.of(rows, fit, _Crowd.of(rows, fit))
    return held_out.losses(0.0) if len(held_out.weight) else np.zeros(1)


def temper_probabilities(rows: ClassRows, fit: ClassFit, found: Calibration) -> Floats:
    """Return the probabilities of a fit as calibrated, (n_items, n_levels); known items and kept grades stay."""
    use = rows.is_graded & (rows.known < 0) & ~fit.kept
    probabilities = fit.probabilities.copy()
    own = _flatter(probabilities[use], _n_voices(rows)[use], found.tempering)
    probabilities[use] = (1.0 - found.given_away) * own + found.given_away / rows.n_levels
    return probabilities


def _flatter(probabilities: Floats, n_voices: Floats, correlation: float) -> Floats:
    """Probabilities by as many annotators as count with a correlation, (n, n_levels)."""
    power = 1.0 / (1.0 + np.maximum(n_voices - 1.0, 0.0) * correlation)
    return _shares(np.log(np.maximum(probabilities, _MIN_PROBABILITY)) * power[:, None])


def _nearest_tempering(rows: ClassRows, fit: ClassFit, judge: ClassFit, found: Calibration) -> Calibration:
    """The tempering by which the probabilities of a fit come closest to the tempered ones of the judge.

    Closest is the smallest log-loss expected by the judge; for each correlation it has one least in the share given
    away.
    """
    part, probabilities, use = _sample(rows, fit)
    n_voices, own = _n_voices(part)[use], probabilities[use]
    wanted = _flatter(_sample(rows, judge)[1][use], n_voices, found.tempering)
    wanted = (1.0 - found.given_away) * wanted + found.given_away / rows.n_levels

    @cache
    def loss_and_share(number: int) -> tuple[float, float]:
        flat = _flatter(own, n_voices, _TEMPERINGS[number])
        away = _likeliest_away(flat, wanted, found.given_away)
        loss = -float((wanted * np.log((1.0 - away) * flat + away / rows.n_levels + _MIN_PROBABILITY)).sum())
        loss += 0.5 * (away - found.given_away) ** 2
        # the last digits depend on the order of the sums
        return round(loss, 7), away

    best = _least_of(lambda number: loss_and_share(number)[0], len(_TEMPERINGS))
    return found._replace(tempering=_TEMPERINGS[best], given_away=loss_and_share(best)[1])


def _likeliest_away(flat: Floats, wanted: Floats, expected: float) -> float:
    """The share given away to all levels alike that makes the wanted probabilities likeliest, by Newton steps.

    It has a normal prior around the expected one, worth about one item: where the probabilities are even anyway,
    nothing but their last digits would tell it.
    """
    even, away = 1.0 / flat.shape[1], _FIRST_AWAY
    for _ in range(_N_NEWTON_STEPS):
        ratio = (even - flat) / ((1.0 - away) * flat + away * even)
        slope, bend = float((wanted * ratio).sum()), float((wanted * ratio**2).sum())
        away = min(max(away + (slope - (away - expected)) / (bend + 1.0), 0.5 * away), _MOST_SHARED)
    return away


def _least_of(value: Callable[[int], float], n: int) -> int:
    """Number of the least of values that fall and then rise, looked for in strides."""
    best = min(range(0, n, _STRIDE), key=value)
    return min(range(max(best - _STRIDE + 1, 0), min(best + _STRIDE, n)), key=value)


class _Crowd(NamedTuple):
    """Confusion matrices by the probabilities of a fit, whatever its own model of annotators.

    ``counts`` (n_annotators, n_levels, n_levels) are expected grades by true and given level, ``prior`` those that the
    hierarchy of :class:`~.confusion_matrices.OwnPrior` adds, ``shares`` (n_levels,) of the levels.
    """

    counts: Floats
    prior: Floats
    shares: Floats

    @classmethod
    def of(cls, rows: ClassRows, fit: ClassFit) -> _Crowd:
        """Count grades by the probabilities, and learn the prior that they suggest."""
        expected = rows.tallies(fit)
        prior: Prior = OwnPrior.begin(crowd_shares(rows), rows.n_annotators)
        for _ in range(_MOST_ROUNDS):
            prior = prior.learn(expected)
            if prior.is_settled:
                break
        shares = expected.shares + prior.shares
        return cls(expected.counts, prior.counts, shares / shares.sum())

    @property
    def totals(self) -> Floats:
        """Grades that each row of a matrix rests on, (n_annotators, n_levels)."""
        total: Floats = (self.counts + self.prior).sum(axis=2)
        return total

    @property
    def mean(self) -> Floats:
        """The mean matrix of all grades, (n_levels, n_levels)."""
        confusion = (self.counts + self.prior) / self.totals[:, :, None]
        given = self.counts.sum(axis=(1, 2))
        mean: Floats = np.einsum("ajl,a->jl", confusion, given / given.sum())
        return mean


class _HeldOut(NamedTuple):
    """Grades of which each is predicted from the others on its item; with times, from those that are not later.

    ``others`` (n, n_levels) is the logarithm of the item's probabilities without the annotator, up to a constant;
    ``chance`` (n, n_levels) that of the grade for each true level, learned without the item; ``n_others`` (n,) the
    annotators left, ``weight`` (n,) the weight of the grade and ``item`` (n,) its item.
    """

    others: Floats
    chance: Floats
    n_others: Floats
    weight: Floats
    item: Counts

    @classmethod
    def of(cls, rows: ClassRows, fit: ClassFit, crowd: _Crowd) -> _HeldOut:
        """Lay out the grades of items with two annotators or more."""
        rows, probabilities, use = _sample(rows, fit)
        n_voices, grades = _n_voices(rows), _DistinctGrades.of(rows)
        grades = grades.some(use[grades.item])
        probabilities = probabilities[grades.item]
        # of the grades of nobody one is taken out, of those of an annotator all
        total = grades.of_voice(grades.weight) if rows.has_annotators else np.minimum(grades.weight, 1.0)
        own = grades.weight if rows.has_annotators else total
        # the item is taken out of all matrices, or these would have learned from the grade
        left = np.maximum(crowd.counts[grades.annotator, :, grades.level] - own[:, None] * probabilities, 0.0)
        left += crowd.prior[grades.annotator, :, grades.level]
        chance = left / np.maximum(crowd.totals[grades.annotator] - total[:, None] * probabilities, left)
        logs = np.log(chance)
        if rows.time is not None and rows.has_annotators:
            told, n_others = grades.not_later(grades.weight[:, None] * logs, _voice_times(rows, use))
            return cls(np.log(crowd.shares) + told, chance, n_others, grades.weight, grades.item)
        voice = grades.of_voice(grades.weight[:, None] * logs) if rows.has_annotators else logs
        others = np.log(crowd.shares) + grades.of_item(grades.weight[:, None] * logs) - voice
        return cls(others, chance, n_voices[grades.item] - 1.0, grades.weight, grades.item)

    def losses(self, correlation: float) -> Floats:
        """Log-loss of the grades of each item with this correlation, (n_items,)."""
        power = 1.0 / (1.0 + np.maximum(self.n_others - 1.0, 0.0) * correlation)
        chance = np.einsum("nk,nk->n", _shares(self.others * power[:, None]), self.chance)
        summed: Floats = np.bincount(self.item, -self.weight * np.log(np.maximum(chance, _MIN_PROBABILITY))).astype(
            np.float64
        )
        return summed


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

    def not_later(self, values: Floats, times: Floats) -> tuple[Floats, Floats]:
        """Return for each grade the sum of values over others' grades of its item that are not later, and how many.

        ``times`` are when each annotator graded each item, in the order of the voices.
        """
        starts = self.voice_starts
        item, voice = self.item[starts], np.add.reduceat(values, starts, axis=0) if len(starts) else values
        order = np.lexsort((times, item))
        new_item = np.diff(item[order], prepend=-1) != 0
        new_time = new_item | (np.diff(times[order], prepend=0.0) != 0)
        begin = np.flatnonzero(new_item)[np.cumsum(new_item) - 1]
        end = np.append(np.flatnonzero(new_time), len(order))[np.cumsum(new_time)]
        so_far = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(voice[order], axis=0)])
        told, number = np.empty_like(voice), np.empty(len(order))
        told[order], number[order] = so_far[end] - so_far[begin] - voice[order], end - begin - 1.0
        n_grades = np.diff(np.append(starts, len(self.item)))
        return np.repeat(told, n_grades, axis=0), np.repeat(number, n_grades)

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

    def some(self, use: Bools) -> _DistinctGrades:
        """Some of the grades."""
        return _DistinctGrades(self.item[use], self.annotator[use], self.level[use], self.weight[use])


def _sums(values: Floats, starts: Counts) -> Floats:
    """Sums of stretches of values, for each of their entries."""
    if not len(values):
        return values
    sums: Floats = np.repeat(np.add.reduceat(values, starts, axis=0), np.diff(np.append(starts, len(values))), axis=0)
    return sums


def _voice_times(rows: ClassRows, use: Bools) -> Floats:
    """When each annotator first graded each of some items, by item and annotator."""
    assert rows.time is not None
    chosen = np.flatnonzero(use[rows.item])
    order = chosen[np.lexsort((rows.annotator[chosen], rows.item[chosen]))]
    new = (np.diff(rows.item[order], prepend=-1) != 0) | (np.diff(rows.annotator[order], prepend=-1) != 0)
    return np.minimum.reduceat(rows.time[order], np.flatnonzero(new)) if len(order) else np.empty(0)


def _n_voices(rows: ClassRows) -> Floats:
    """Number of annotators who graded each item, (n_items,); the weight of its grades where nobody is named."""
    grades = _DistinctGrades.of(rows)
    if not rows.has_annotators:
        return np.bincount(grades.item, grades.weight, rows.n_items).astype(np.float64)
    return np.bincount(grades.item[grades.voice_starts], minlength=rows.n_items).astype(np.float64)


def _sample(rows: Any, fit: ClassFit) -> tuple[ClassRows, Floats, Bools]:
    """Rows, probabilities, and the items to look at: all, or a part chosen by who graded them how, not by names."""
    if not isinstance(rows, ClassRows):
        sample: tuple[ClassRows, Floats, Bools] = rows.sample(fit)
        return sample
    use, n_grades = grades_to_predict(rows)
    use, share = use & ~fit.kept, share_to_predict(n_grades, rows.n_levels)
    return rows, fit.probabilities, use if share >= 1.0 else use & chosen_share(structure_numbers(rows, 0)[0], share)


def grades_to_predict(rows: ClassRows) -> tuple[Bools, int]:
    """Return the items whose grades can be predicted from others, and the number of these grades."""
    use = (_n_voices(rows) > 1.0) & (rows.known < 0)
    return use, int(np.count_nonzero(use[_DistinctGrades.of(rows).item]))


def share_to_predict(n_grades: int, n_levels: int) -> float:
    """Return the share of the items that is looked at."""
    return MOST_CELLS / max(n_grades * n_levels, 1)


def chosen_share(numbers: Numbers, share: float) -> Bools:
    """Return the items whose random number falls into a share of all."""
    return numbers < np.uint64(share * float(np.iinfo(np.uint64).max))


def _shares(logs: Floats) -> Floats:
    """Probabilities that are proportional to exponentials, (n, n_levels)."""
    shares: Floats = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _correlations(held_out: _HeldOut) -> tuple[float, float]:
    """The correlation that predicts best, and the largest that is no worse by more than chance, items independent."""

    @cache
    def losses(number: int) -> Floats:
        return held_out.losses(_CORRELATIONS[number])

    def total(number: int) -> float:
        # the last digits depend on the order of the sums
        return round(float(losses(number).sum()) + _CORRELATIONS[number] / _TYPICAL_CORRELATION, 7)

    best = _least_of(total, len(_CORRELATIONS))
    largest, refused = best, len(_CORRELATIONS)
    while refused - largest > 1:
        number = (largest + refused) // 2
        gap = losses(number) - losses(best)
        error = float(np.sqrt(((gap - gap.mean()) ** 2).sum()))
        if total(number) - total(best) > _N_ERRORS * error:
            refused = number
        else:
            largest = number
    return _CORRELATIONS[best], _CORRELATIONS[largest]


def _shared_error(correlation: float, crowd: _Crowd) -> float:
    """Expected share of items on which even many annotators would settle on a wrong level.

    Many grades of an item of level j have shares that vary around row j of the crowd's matrix with this correlation.
    The model settles on another level k where the mean log ratio of the two rows is below 0. That mean is taken as
    Beta distributed between the least and the largest ratio, which is exact for two levels.
    """
    from scipy.special import betainc

    if correlation <= 0.0:
        return 0.0
    mean_matrix = np.maximum(crowd.mean, _MIN_PROBABILITY)
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
    return float((crowd.shares * wrong).sum())


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
    from ...kernels.structure import mix_bits

    salt = np.random.default_rng(seeds).integers(0, 2**64, 1, np.uint64)
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, there, mix_bits(mix_bits(numbers + salt) + level))
    return sums
