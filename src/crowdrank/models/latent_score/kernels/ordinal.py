"""Ordinal responses to scores: passes over all judgments, for scores, for difficulties and for annotators.

A judgment is a level ``y`` of ``0..K-1``, larger is better, about a cell: an item, or a pair of items of which the
first has the lower code. An annotator chooses level ``k`` or below with probability ``sigmoid(h_k - eta)``, where
``eta`` is ``lambda alpha d + b`` at the cell's score (or difference of scores) ``d``, and
``h_k = centre + exp(r) cuts[k]``. Where items differ in difficulty ``z``, both are multiplied by the clarity
``exp(-z)``. Scores and annotators are both known up to a normal distribution. The mean of a
sigmoid over a normal of variance ``V`` is the sigmoid of ``1 / sqrt(1 + pi V / 8)`` times its argument.

What a pass needs of an annotator is one row of ``own`` (n_annotators, 8), see :func:`own_rows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import bind, over_bounds, read_only, sum_over_bounds, views
from ....protocols import Counts, Floats, Ints

_VARIANCE_FACTOR = np.pi / 8
_MIN_PROBABILITY = 1e-12
_MIN_LIKELIHOOD_PRODUCT = 1e-250


class Cells(NamedTuple):
    """Judgments of one kind, sorted by cell.

    Over cells are ``first`` and ``second``, the items (``second`` is empty where a cell is one item). The judgments of
    a cell are those from ``bounds[cell]`` up to the next. Over judgments are ``annotator_side``, four times the
    annotator plus the position of the first item (0 left, 1 not known, 2 right), ``level``, as seen from the first
    item, and ``weight``, empty where all weigh 1. ``parts`` bounds stretches of cells with about equally many
    judgments, one per thread. ``values`` has the covariates of judgments, first against second item, (n_judgments, k).
    """

    first: Ints
    second: Ints
    bounds: Counts
    annotator_side: Ints
    level: Any
    weight: Floats
    parts: Counts
    values: Floats

    @property
    def cell(self) -> Ints:
        """The cell of each judgment."""
        return np.repeat(np.arange(len(self.first), dtype=np.int32), np.diff(self.bounds))


class ResponseModel(NamedTuple):
    """How annotators respond to one kind: ``own`` (n_annotators, 8), ``favourites`` (n_annotators or 0, K), the cuts.

    ``scale`` is the kind's lambda, and ``learns_cuts`` says whether cuts are learned. ``shifts`` (n_judgments or 0, 3)
    is what covariates add, see :func:`covariate_shifts`. ``clarity`` (n_cells or 0) is that of items that differ in it.
    """

    own: Floats
    favourites: Floats
    centre: float
    cuts: Floats
    scale: float
    learns_cuts: bool
    shifts: Floats = np.empty((0, 3))
    clarity: Floats = np.empty(0)

    def views(self) -> ResponseModel:
        """Return the same with read-only arrays, so kernels are compiled for one kind of array only."""
        own, favourites, cuts, *rest = views(self.own, self.favourites, self.cuts, self.shifts, self.clarity)
        return ResponseModel(
            own, favourites, float(self.centre), cuts, float(self.scale), bool(self.learns_cuts), *rest
        )


def own_rows(
    scale: float, alpha: Floats, alpha_variance: Floats, covariance: Floats, bias: Floats, bias_variance: Floats,
    spread: Floats, lapse: Floats,
) -> Floats:  # fmt: skip
    """Return what the passes need of each annotator, 8 numbers: one line of the cache.

    They are the mean slope, its mean square and variance, twice its covariance with the bias, the variance of the bias,
    the bias, the stretch of the cuts, and the probability of a lapse; ``scale`` is the kind's lambda.
    """
    rows = np.empty((len(alpha), 8))
    rows[:, 0] = scale * alpha
    rows[:, 1] = scale**2 * (alpha**2 + alpha_variance)
    rows[:, 2] = scale**2 * alpha_variance
    rows[:, 3] = 2.0 * scale * covariance
    rows[:, 4] = bias_variance
    rows[:, 5] = bias
    rows[:, 6] = np.exp(spread)
    rows[:, 7] = lapse
    return rows


def covariate_shifts(cells: Cells, coefficients: Floats, covariance: Floats, scale: float) -> Floats:
    """Return what covariates add to each judgment, (n_judgments, 3).

    That is the predictor's mean; twice its covariance with the slope; and its variance, with the covariance with the
    bias. ``coefficients`` (n_annotators, k) are those of annotators, ``covariance`` (n_annotators, 2 + k, 2 + k) that
    of discrimination, bias and coefficients.
    """
    shifts = np.empty((len(cells.values), 3))
    over_bounds(bind(_fill_shifts, cells, *views(coefficients, covariance), float(scale), shifts), cells.parts)
    return shifts


@njit(cache=True, nogil=True)
def _fill_shifts(cells, coefficients, covariance, scale, shifts, begin, end):
    """Fill in the shifts of the judgments of cells begin to end."""
    values = cells.values
    for row in range(cells.bounds[begin], cells.bounds[end]):
        a, side = cells.annotator_side[row] >> 2, 1.0 - (cells.annotator_side[row] & 3)
        mean, with_slope, spread = 0.0, 0.0, 0.0
        for c in range(values.shape[1]):
            x = values[row, c]
            mean += x * coefficients[a, c]
            with_slope += x * covariance[a, 0, 2 + c]
            inner = side * covariance[a, 1, 2 + c] + 0.5 * x * covariance[a, 2 + c, 2 + c]
            for other in range(c):
                inner += values[row, other] * covariance[a, 2 + other, 2 + c]
            spread += 2.0 * x * inner
        shifts[row, 0], shifts[row, 1], shifts[row, 2] = mean, 2.0 * scale * with_slope, spread


@njit(cache=True, nogil=True)
def level_probabilities(eta, variance, stretch, centre, cuts, level, clear):
    """Return the slope of what follows, and the probabilities of a level at most this one and of one below it."""
    flat = clear / np.sqrt(1.0 + _VARIANCE_FACTOR * clear * clear * variance)
    upper, lower = 1.0, 0.0
    if level < cuts.size:
        upper = 1.0 / (1.0 + np.exp(-flat * (centre + stretch * cuts[level] - eta)))
    if level > 0:
        lower = 1.0 / (1.0 + np.exp(-flat * (centre + stretch * cuts[level - 1] - eta)))
    return flat, upper, lower


@njit(cache=True, nogil=True)
def lapse_probability(favourites, a, level, mirrored, side):
    """Return the probability of a level, seen from the first item on this side, in a lapse."""
    return 0.5 * ((1.0 + side) * favourites[a, level] + (1.0 - side) * favourites[a, mirrored])


@njit(cache=True, nogil=True)
def _end_turn(flat, upper, lower, variance):
    """Return the mean of a sigmoid's slope over a predictor of this variance, for the lowest or the highest level.

    The slope of the mean, ``flat p (1 - p)``, falls with the probability ``p`` of another level; that of a normal
    predictor falls less, by the ratio of Mills, for which ``(u + sqrt(u^2 + 1)) / 2`` stands. Without it a score whose
    judgments all agree would run away where discriminations are uncertain: a larger gap would seem likelier still,
    although those who may be reversed speak against it.
    """
    other = max(lower, 1.0 - upper)
    if other <= 0.0 or other >= 1.0:
        return 0.0
    blur = _VARIANCE_FACTOR * variance / (1.0 + _VARIANCE_FACTOR * variance)
    u = _VARIANCE_FACTOR * np.log((1.0 - other) / other)
    return flat * other * ((1.0 - blur) * (1.0 - other) + blur * 0.5 * (u + np.sqrt(u * u + 1.0)))


def item_pass(cells: Cells, model: ResponseModel, gap: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return the gradient and the curvature in the score of each cell, (n_cells,) each.

    ``gap`` and ``variance`` (n_cells,) are the cell's score, or difference of scores, and its variance.
    """
    slopes = np.empty((2, len(gap)))
    over_bounds(bind(_fill_item_slopes, cells, model.views(), *views(gap, variance), slopes), cells.parts)
    return slopes[0], slopes[1]


@njit(cache=True, nogil=True)
def _fill_item_slopes(cells, model, gap, variance, slopes, begin, end):
    """Fill in the gradient and the curvature in the score of each cell from begin to end."""
    _, _, bounds, annotator_side, level, weight, _, _ = cells
    own, favourites, centre, cuts, _, _, shifts, clarity = model
    for cell in range(begin, end):
        d, of_gap, slope, curve = gap[cell], variance[cell], 0.0, 0.0
        clear = clarity[cell] if clarity.size else 1.0
        for row in range(bounds[cell], bounds[cell + 1]):
            # a function of its own for the next lines would take half as long again
            a, side, y = annotator_side[row] >> 2, 1.0 - (annotator_side[row] & 3), level[row]
            tie = side * own[a, 3]
            eta = own[a, 0] * d + side * own[a, 5]
            if shifts.size:
                tie += shifts[row, 1]
                eta += shifts[row, 0]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + tie) + abs(side) * own[a, 4]
            if shifts.size:
                spread += shifts[row, 2]
            flat, upper, lower = level_probabilities(eta, spread, own[a, 6], centre, cuts, y, clear)
            rho, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            if lapse > 0.0:
                seen = (1.0 - lapse) * max(upper - lower, _MIN_PROBABILITY)
                rho *= seen / (seen + lapse * lapse_probability(favourites, a, y, cuts.size - y, side))
            h = rho * clear * flat * (upper * (1.0 - upper) + lower * (1.0 - lower))
            turn = h
            if y == 0 or y == cuts.size:
                turn = rho * clear * _end_turn(flat, upper, lower, clear * clear * spread)
            slope += rho * clear * own[a, 0] * (upper + lower - 1.0) - turn * (own[a, 2] * d + 0.5 * tie)
            curve += h * own[a, 1]
        slopes[0, cell], slopes[1, cell] = slope, curve


def difficulty_pass(cells: Cells, model: ResponseModel, gap: Floats, variance: Floats) -> Floats:
    """Return what judgments say of the difficulty of each graded item, (3, n_cells).

    That is the gradient in it, the curvature, and the curvature in score and difficulty, averaged over what is not
    known of the predictor at two points, a standard deviation above and below its mean. The larger the difficulty, the
    more levels differ for no other reason. Arguments are those of :func:`item_pass`.
    """
    slopes = np.zeros((3, len(gap)))
    over_bounds(bind(_fill_difficulty_slopes, cells, model.views(), *views(gap, variance), slopes), cells.parts)
    return slopes


@njit(cache=True, nogil=True)
def _fill_difficulty_slopes(cells, model, gap, variance, slopes, begin, end):
    """Fill in the slopes of cells begin to end, which are single items."""
    _, _, bounds, annotator_side, level, weight, _, _ = cells
    own, favourites, centre, cuts, _, _, _, clarity = model
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        clear = clarity[cell] if clarity.size else 1.0
        for row in range(bounds[cell], bounds[cell + 1]):
            a, y = annotator_side[row] >> 2, level[row]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + own[a, 3]) + own[a, 4]
            amount, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            for side in (-1.0, 1.0):
                eta = own[a, 0] * d + own[a, 5] + side * np.sqrt(max(spread, 0.0))
                slope, curve, cross, seen = _difficulty_slopes(eta, own[a, 6], centre, cuts, y, clear)
                rho = 0.5 * amount
                if lapse > 0.0:
                    seen *= 1.0 - lapse
                    rho *= seen / (seen + lapse * favourites[a, y])
                slopes[0, cell] += rho * slope
                slopes[1, cell] += rho * curve
                slopes[2, cell] += rho * own[a, 0] * clear * cross


@njit(cache=True, nogil=True)
def _difficulty_slopes(eta, stretch, centre, cuts, level, clear):
    """Slope and curvature of a level's log-probability in the difficulty, that with the predictor; the probability."""
    upper, lower, high, low = 1.0, 0.0, 0.0, 0.0
    if level < cuts.size:
        high = clear * (centre + stretch * cuts[level] - eta)
        upper = 1.0 / (1.0 + np.exp(-high))
    if level > 0:
        low = clear * (centre + stretch * cuts[level - 1] - eta)
        lower = 1.0 / (1.0 + np.exp(-low))
    at, below = high * upper * (1.0 - upper), low * lower * (1.0 - lower)
    probability = max(upper - lower, _MIN_PROBABILITY)
    slope = (below - at) / probability
    turn = at * (1.0 + high * (1.0 - 2.0 * upper)) - below * (1.0 + low * (1.0 - 2.0 * lower))
    return slope, slope * slope - turn / probability, upper + lower - 1.0 + at + below, probability


class AnnotatorSums(NamedTuple):
    """Gradients and curvatures in the parameters of annotators, (n_annotators,) each, and of the crowd.

    ``alpha``, ``bias`` and ``spread`` are gradients; ``alpha_alpha``, ``alpha_bias``, ``bias_bias``,
    ``spread_spread``, ``alpha_spread`` and ``bias_spread`` curvatures. ``alpha_square``, ``alpha_times_spread`` and
    ``spread_square`` are sums over single grades, not pairs, of squares and products of their gradients: in expectation
    the curvature with scores integrated out. ``lapsed`` (n_annotators or 0, K) is the
    expected weight of lapses by level, ``lapse`` and ``lapse_lapse`` (n_annotators or 0) gradient and curvature in the
    probability of one. Of the crowd are the log-likelihood, the weight, gradient and curvature in log lambda, and of
    the cuts the gradient (K-1,), and diagonal and next diagonal of the curvature (2, K-1). With k covariates there are
    the gradient in their coefficients ``control`` (n_annotators, k), and the curvature in these and discrimination,
    bias and coefficients, ``control_curvature`` (n_annotators, k, 2 + k).
    """

    alpha: Floats
    bias: Floats
    alpha_alpha: Floats
    alpha_bias: Floats
    bias_bias: Floats
    spread: Floats
    spread_spread: Floats
    alpha_spread: Floats
    bias_spread: Floats
    alpha_square: Floats
    alpha_times_spread: Floats
    spread_square: Floats
    lapsed: Floats
    lapse: Floats
    lapse_lapse: Floats
    log_likelihood: float
    weight: float
    scale: float
    scale_scale: float
    cuts: Floats
    cuts_cuts: Floats
    control: Floats
    control_curvature: Floats


def annotator_pass(cells: Cells, model: ResponseModel, gap: Floats, variance: Floats) -> AnnotatorSums:
    """Return gradients and curvatures of annotators and crowd over all judgments; arguments as in :func:`item_pass`."""
    (n, n_levels), k = (len(model.own), len(model.cuts) + 1), cells.values.shape[1]
    slopes, at = np.empty((len(model.shifts), 2)), read_only(gap)
    # of each annotator's levels between two cuts; where items differ in clarity, each judgment has its own
    apart = np.zeros((0 if len(model.clarity) else n, n_levels))
    apart[:, 1:-1] = 1.0 / np.expm1(model.own[: len(apart), 6:7] * np.diff(model.cuts))
    of_annotators, lapsed, crowd, of_cuts = sum_over_bounds(
        bind(_add_annotator_sums, cells, model.views(), at, *views(variance, apart), slopes), cells.parts,
        (n, 12), (len(model.favourites), n_levels + 2), 4, (3, n_levels),
    )  # fmt: skip
    control, control_curvature = np.empty((0, 0)), np.empty((0, 0, 0))
    if k:
        add = bind(_add_control_sums, cells, slopes, at, float(model.scale))
        control, control_curvature = sum_over_bounds(add, cells.parts, (n, k), (n, k, 2 + k))
        for c in range(k):
            control_curvature[:, :c, 2 + c] = control_curvature[:, c, 2 : 2 + c]
    columns: Any = (*np.ascontiguousarray(of_annotators.T), lapsed[:, :-2], lapsed[:, -2], lapsed[:, -1])
    columns = (*columns, *map(float, crowd), of_cuts[0, :-1], of_cuts[1:, :-1], control, control_curvature)
    return AnnotatorSums(*columns)


@njit(cache=True, nogil=True)
def _add_annotator_sums(cells, model, gap, variance, apart, slopes, begin, end, sums, lapsed, crowd, of_cuts):
    """Add the sums of cells begin to end, of annotators (n_annotators, 12), lapses, crowd (4,) and cuts (3, K).

    With covariates ``slopes`` (n_judgments, 2) is filled with gradient and curvature in the predictor.
    """
    _, _, bounds, annotator_side, level, weight, _, _ = cells
    own, favourites, centre, cuts, scale, learns_cuts, shifts, clarity = model
    product, logs, graded = 1.0, 0.0, cells.second.size == 0
    total, of_scale, turn_of_scale = 0.0, 0.0, 0.0
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        clear = clarity[cell] if clarity.size else 1.0
        square = scale * scale * (d * d + of_gap)
        for row in range(bounds[cell], bounds[cell + 1]):
            a, side, y = annotator_side[row] >> 2, 1.0 - (annotator_side[row] & 3), level[row]
            tie = side * own[a, 3]
            eta = own[a, 0] * d + side * own[a, 5]
            if shifts.size:
                tie += shifts[row, 1]
                eta += shifts[row, 0]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + tie)
            around = spread + abs(side) * own[a, 4]
            if shifts.size:
                around += shifts[row, 2]
            flat, upper, lower = level_probabilities(eta, around, own[a, 6], centre, cuts, y, clear)
            probability, lapse = max(upper - lower, _MIN_PROBABILITY), own[a, 7]
            amount = weight[row] if weight.size else 1.0
            rho, likely = amount, probability
            if lapse > 0.0:
                usual = lapse_probability(favourites, a, y, cuts.size - y, side)
                rho, likely = _add_lapse(probability, lapse, usual, amount, side, y, lapsed[a])
            if weight.size:
                logs += amount * np.log(likely)
            else:
                product *= likely
                if product < _MIN_LIKELIHOOD_PRODUCT:
                    logs += np.log(product)
                    product = 1.0
            g = rho * clear * (upper + lower - 1.0)
            h = rho * clear * flat * (upper * (1.0 - upper) + lower * (1.0 - lower))
            if slopes.size:
                slopes[row, 0], slopes[row, 1] = g, h
            slope = scale * d * g - h * scale * own[a, 0] * of_gap
            sums[a, 0] += slope
            if graded:
                sums[a, 9] += slope * slope / amount
            sums[a, 1] += side * g
            sums[a, 2] += h * square
            sums[a, 3] += side * h * scale * d
            sums[a, 4] += abs(side) * h
            total += amount
            of_scale += own[a, 0] * d * g - h * (spread - 0.5 * d * tie)
            turn_of_scale += h * own[a, 1] * (of_gap + d * d)
            if not learns_cuts:
                continue
            kept, widen = flat / clear, clear * own[a, 6]
            if apart.size:
                gap_term = apart[a, y]
            else:
                gap_term = 1.0 / np.expm1(widen * (cuts[y] - cuts[y - 1])) if 0 < y < cuts.size else 0.0
            spread_slope, curve, cross = _add_cut_slopes(upper, lower, kept, widen, gap_term, rho, cuts, y, of_cuts)
            cross *= clear
            sums[a, 5] += spread_slope
            sums[a, 6] += curve
            sums[a, 7] += cross * scale * d
            sums[a, 8] += cross * side
            if graded:
                sums[a, 10] += slope * spread_slope / amount
                sums[a, 11] += spread_slope * spread_slope / amount
    crowd[0] += logs + np.log(product)
    crowd[1] += total
    crowd[2] += of_scale
    crowd[3] += turn_of_scale


@njit(cache=True, nogil=True)
def _add_cut_slopes(upper, lower, kept, widen, apart, rho, cuts, level, of_cuts):
    """Add a judgment's gradient and curvature in the cuts, (3, K); return those in the logarithm of their stretch.

    The last is the curvature in it and the predictor. A level's probability is that of an answer not above it, times
    that of one not below it, times ``1 - exp(-gap)`` of its cuts: the slopes of its logarithm are linear in ``upper``
    and ``lower``, so that their means over the predictor are as exact as these. Slopes of the mean probability's
    logarithm instead would not go with those in the predictor, and exact annotators would run away from the others.
    """
    slope, curve, cross = 0.0, 0.0, 0.0
    joint = rho * widen * widen * apart * (1.0 + apart)
    if level < cuts.size:
        cut, along = cuts[level], rho * widen * (1.0 - upper + apart)
        turn = rho * widen * kept * upper * (1.0 - upper)
        slope += cut * along
        curve += cut * cut * (widen * turn + joint)
        cross -= cut * turn
        of_cuts[0, level] += along
        of_cuts[1, level] += widen * turn + joint
    if level > 0:
        cut, along = cuts[level - 1], rho * widen * (lower + apart)
        turn = rho * widen * kept * lower * (1.0 - lower)
        slope -= cut * along
        curve += cut * cut * (widen * turn + joint)
        cross -= cut * turn
        of_cuts[0, level - 1] -= along
        of_cuts[1, level - 1] += widen * turn + joint
        if level < cuts.size:
            curve -= 2.0 * cuts[level] * cut * joint
            of_cuts[2, level - 1] -= joint
    return slope, curve, cross


@njit(cache=True, nogil=True)
def _add_lapse(probability, lapse, usual, amount, side, level, lapsed):
    """Add a judgment's part in the lapses of its annotator, (K + 3,); return its weight as no lapse, and its chance.

    ``usual`` is the chance of the level in a lapse.
    """
    top = lapsed.size - 3
    likely = (1.0 - lapse) * probability + lapse * usual
    rho = amount * ((1.0 - lapse) * probability / likely)
    lapsed[level] += 0.5 * (1.0 + side) * (amount - rho)
    if side < 1.0:
        lapsed[top - level] += 0.5 * (1.0 - side) * (amount - rho)
    more = (usual - probability) / likely
    lapsed[top + 1] += amount * more
    lapsed[top + 2] += amount * more * more
    return rho, likely


@njit(cache=True, nogil=True)
def _add_control_sums(cells, slopes, gap, scale, begin, end, control, curvature):
    """Add the sums of cells begin to end; of the coefficients' own curvature the lower half."""
    values = cells.values
    for cell in range(begin, end):
        slope = scale * gap[cell]
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            a, side = cells.annotator_side[row] >> 2, 1.0 - (cells.annotator_side[row] & 3)
            g, h = slopes[row, 0], slopes[row, 1]
            for c in range(values.shape[1]):
                x = values[row, c]
                control[a, c] += g * x
                curvature[a, c, 0] += h * x * slope
                curvature[a, c, 1] += h * x * side
                for other in range(c + 1):
                    curvature[a, c, 2 + other] += h * x * values[row, other]
