"""One pass over grades of annotators with confusion matrices: levels of items, and what annotators gave for which.

At the end the loops of the calibration: annotators of each item, tempered levels, and held-out likelihoods.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Bools, Counts, Floats, Ints
from .threads import bind, even_bounds, over_bounds, read_only, sum_over_parts, views

Codes: TypeAlias = NDArray[np.uint32]

EXACT_SUM_SHIFT = 1.5 * 2.0**20
"""Added and taken off again it leaves multiples of 2 ** -32, sums of which below two million are exact in any order."""

_MIN_LOG_PRODUCT = -640.0
"""Products whose logarithm may fall below this could leave the range of numbers; they are taken as sums of logs."""

_MIN_PRODUCT = 1e-100
_MIN_SHARE = 1e-300
_MIN_ITEMS_PER_THREAD = 20_000
_MIN_KERNEL_ROWS = 1 << 13
"""Rows from which on a kernel sorts them: fewer take less than a millisecond without, and it takes one to compile."""

_PART_ROWS = 1 << 15
_ROWS_AT_A_TIME = 1 << 12
_RELATIVE_SLACK = 1e-12
_MAX_HALVINGS = 20
_MAX_LAST_NEWTON_STEP = 1e-6
_RELATIVE_RIDGE = 1e-9
_MAX_NEWTON_STEP = 4.0
_FIRST_AWAY, _N_AWAY_STEPS, _MOST_AWAY = 0.1, 12, 0.999
"""Most is given away while the chosen level stays the most probable."""


class PackedGrades(NamedTuple):
    """Grades by item, then annotator, then level.

    Parameters
    ----------
    starts
        Rows of item ``i`` are ``starts[i]`` up to ``starts[i + 1]``, (n_items + 1,).
    code
        Annotator times number of levels plus level, (n,).
    weight
        Weight of each row, (n,); empty where all weigh one.
    parts
        Bounds of the stretches of items that are added up apart, which depend on the grades only.
    most
        Largest number of rows of an item.
    """

    starts: Counts
    code: Codes
    weight: Floats
    parts: Counts
    most: int


class Tallies(NamedTuple):
    """What a pass finds.

    Parameters
    ----------
    log_likelihood
        Logarithm of the probability of all grades.
    counts
        Expected weight of each annotator's grades by true and given level, (n_annotators, n_levels, n_levels).
    shares
        Expected number of graded items of each level, (n_levels,).
    """

    log_likelihood: float
    counts: Floats
    shares: Floats


def pack_grades(
    item: Ints, annotator: Ints, level: Ints, weight: Floats | None, n_items: int, n_annotators: int, n_levels: int
) -> PackedGrades:
    """Return rows (n,) sorted by item, annotator, level and weight; whatever order they come in, the result is one."""
    n_codes = n_annotators * n_levels
    starts, code = np.zeros(n_items + 1, np.int64), np.empty(len(item), np.uint32)
    amount = np.empty(0)
    if weight is None and len(item) >= _MIN_KERNEL_ROWS:
        columns = (read_only(item), read_only(annotator), read_only(level))
        if not _pack_sorted(*columns, n_levels, starts, code):
            # half as wide where it will do: these are looked up at random, and more of them stay near
            place = np.zeros(n_items, np.int32 if len(item) <= np.iinfo(np.int32).max else np.int64)
            starts[:] = 0
            _pack(*columns, n_levels, n_codes, place, starts, code)
    else:
        np.cumsum(np.bincount(item, minlength=n_items), out=starts[1:])
        code[:] = annotator.astype(np.uint32) * np.uint32(n_levels) + level.astype(np.uint32)
        order = np.lexsort((code, item) if weight is None else (weight, code, item))
        code, amount = code[order], amount if weight is None else weight[order].astype(np.float64)
    # the sums of a part must not take more room than its rows
    n_parts = max(1, len(item) // max(_PART_ROWS, n_codes * n_levels))
    parts = np.searchsorted(starts, np.linspace(0, len(item), n_parts + 1).astype(np.int64))
    parts[0], parts[-1] = 0, n_items
    most = int(np.diff(starts).max(initial=0))
    return PackedGrades(read_only(starts), read_only(code), read_only(amount), parts, most)


@njit(cache=True, nogil=True)
def _pack_sorted(item, annotator, level, n_levels, starts, code):
    """Fill in the same as :func:`_pack` for rows in that order, as packed ones are; return whether they were.

    ``starts`` (n_items + 1,) is 0.
    """
    before, largest = -1, -1
    for begin in range(0, item.size, _ROWS_AT_A_TIME):
        falls = False
        # without branches, most of which would be guessed wrong: an item has few rows
        for row in range(begin, min(begin + _ROWS_AT_A_TIME, item.size)):
            i, k = item[row], annotator[row] * n_levels + level[row]
            falls |= (i < before) | ((i == before) & (k < largest))
            before, largest = i, k
            code[row] = k
            starts[i + 1] = row + 1
        if falls:
            return False
    for one in range(1, starts.size):
        starts[one] = max(starts[one], starts[one - 1])
    return True


@njit(cache=True, nogil=True)
def _pack(item, annotator, level, n_levels, n_codes, place, starts, code):
    """Fill in where items start, (n_items + 1,), and their codes in rising order, (n,); ``place`` (n_items,) is 0."""
    number = np.zeros(n_codes + 1, np.int64)
    for row in range(item.size):
        place[item[row]] += 1
        number[annotator[row] * n_levels + level[row] + 1] += 1
    for i in range(place.size):
        starts[i + 1] = starts[i] + place[i]
        place[i] = starts[i]
    for k in range(n_codes):
        number[k + 1] += number[k]
    # by code and then, in that order, by item
    by_code, after = np.empty(item.size, item.dtype), number[:-1].copy()
    for row in range(item.size):
        k = annotator[row] * n_levels + level[row]
        by_code[after[k]] = item[row]
        after[k] += 1
    for k in range(n_codes):
        for row in range(number[k], number[k + 1]):
            at = place[by_code[row]]
            code[at] = k
            place[by_code[row]] = at + 1


def levels_given(grades: PackedGrades, n_annotators: int, n_levels: int) -> tuple[NDArray[Any], Floats]:
    """Return the level of each row, (n,), and the weight of each annotator's grades, (n_annotators, n_levels)."""
    levels = read_only((grades.code % np.uint32(n_levels)).astype(np.uint8 if n_levels <= 256 else np.uint32))
    counts = np.bincount(grades.code, grades.weight if grades.weight.size else None, n_annotators * n_levels)
    return levels, counts.reshape(n_annotators, n_levels).astype(np.float64)


def several_annotators(grades: PackedGrades, n_levels: int, *, named: bool) -> Bools:
    """Return the mask of the items that two annotators graded or more, (n_items,); without names, two rows are."""
    first, last = grades.starts[:-1], grades.starts[1:]
    if not named:
        return last - first > 1
    several = last > first
    place = np.flatnonzero(several)
    # rows of an item go by annotator
    several[place] = grades.code[first[place]] // n_levels != grades.code[last[place] - 1] // n_levels
    return several


def vote_pass(grades: PackedGrades, n_annotators: int, n_levels: int, known: Ints, use: Bools | None = None) -> Tallies:
    """Return the counts when the vote shares of each item are taken for the probabilities of its levels.

    Known items are certain, ``use`` (n_items,) leaves items out, and the log-likelihood is 0.
    """
    given = (*grades[:3], *views(known, np.ones(len(known), bool) if use is None else use))
    sums = sum_over_parts(bind(_vote_pass_for(n_levels), *given), grades.parts, (n_annotators * n_levels + 1, n_levels))
    counts = sums[:-1].reshape(n_annotators, n_levels, n_levels).transpose(0, 2, 1)
    return Tallies(0.0, counts, sums[-1])


def confusion_pass(grades: PackedGrades, confusion: Floats, prior: Floats, known: Ints) -> Tallies:
    """Return the expected counts of levels under confusion matrices.

    ``confusion`` (n_annotators, n_levels, n_levels) is the probability of each given level for each true one, the
    true one first, above 0 throughout; ``prior`` (n_levels,) the share of each level; ``known`` (n_items,) a level or
    -1.
    """
    n_annotators, n_levels = confusion.shape[:2]
    sums = _run(grades, confusion, prior, known, np.empty((0, n_levels)))
    counts = sums[:-2].reshape(n_annotators, n_levels, n_levels).transpose(0, 2, 1)
    return Tallies(float(sums[-1, 0]), counts, sums[-2])


def fill_probabilities(
    grades: PackedGrades, confusion: Floats, prior: Floats, known: Ints, probabilities: Floats
) -> None:
    """Fill in the probability of each level for each item that was graded, (n_items, n_levels).

    The rest as for :func:`confusion_pass`.
    """
    _run(grades, confusion, prior, known, probabilities)


def _run(grades: PackedGrades, confusion: Floats, prior: Floats, known: Ints, probabilities: Floats) -> Floats:
    """Fill in the probabilities where there is room for them; else the counts by code, shares and log-likelihood."""
    n_levels = confusion.shape[1]
    table = read_only(confusion.transpose(0, 2, 1).reshape(-1, n_levels))
    smallest = float(np.log(table.min()))
    longest = int((_MIN_LOG_PRODUCT - np.log(prior.min())) / smallest) if smallest < 0 else len(grades.code)
    by_logs = bool(grades.weight.size) or grades.most > longest
    log_table = read_only(np.log(table)) if by_logs else table
    given = (*grades[:3], read_only(known), table, log_table, read_only(prior), longest, probabilities)
    return sum_over_parts(bind(_pass_for(n_levels, by_logs), *given), grades.parts, (len(table) + 2, n_levels))


def pair_quality(confusion: Floats, prior: Floats, *, nominal: bool) -> Floats:
    """Return the probability of ordering unequal items correctly if their grades are not equal, (n_annotators,).

    Classes without an order count as right where the item of class j alone is called j. One half where grades are
    always equal.
    """
    n_levels = len(prior)
    pairs = np.outer(prior, prior) * (1 - np.eye(n_levels))
    if pairs.sum() < 1e-12:
        # all items of one level: any two levels may meet
        pairs = 1 - np.eye(n_levels)
    if nominal:
        # .5 + .5 (P(j is called j) - P(k is called j))
        slope = 0.5 * (np.diag(pairs.sum(axis=1)) - pairs.T) / max(pairs.sum(), 1e-12)
        return np.clip(0.5 + np.einsum("ajl,jl->a", confusion, slope), 0.0, 1.0)
    above = np.einsum("ajl,akl->ajk", confusion, np.cumsum(confusion, axis=2) - confusion)
    right, wrong = (np.einsum("ajk,jk->a", above, part) for part in (np.tril(pairs), np.triu(pairs)))
    ordered = right + wrong
    return np.divide(right, ordered, out=np.full(len(right), 0.5), where=ordered > 1e-12)


def tied_confusion(numbers: Floats) -> Floats:
    """Return the logarithms of confusion matrices (n_annotators, n_levels, n_levels) whose rows are tied by a formula.

    ``numbers`` (n_annotators, n_levels + 2): what each given level has more than others, what the true one has, and
    what half a squared step away from it costs.
    """
    weights: Floats = np.einsum("ap,pjl->ajl", numbers, _ties(numbers.shape[1] - 2))
    weights -= weights.max(axis=2, keepdims=True)
    weights -= np.log(np.exp(weights).sum(axis=2, keepdims=True))
    return weights


def fit_tied(counts: Floats, numbers: Floats, *, max_iter: int) -> Floats:
    """Return the numbers of :func:`tied_confusion` that make counts (n_annotators, n_levels, n_levels) likeliest.

    At most this many Newton steps from the given numbers, each halved for annotators whose likelihood it would lower.
    """
    totals, ties = counts.sum(axis=2), _ties(counts.shape[1])
    logs = tied_confusion(numbers)
    value = np.einsum("ajl,ajl->a", counts, logs)
    for _ in range(max_iter):
        confusion = np.exp(logs)
        slope = np.einsum("ajl,pjl->ap", counts - totals[:, :, None] * confusion, ties)
        mean = np.einsum("ajl,pjl->ajp", confusion, ties)
        bend = np.einsum("ajl,pjl,qjl->apq", totals[:, :, None] * confusion, ties, ties, optimize=True)
        bend -= np.einsum("aj,ajp,ajq->apq", totals, mean, mean, optimize=True)
        # nothing is lost by the ridge: all levels more is no change, and with two levels the last two numbers are one
        bend[:, np.arange(len(ties)), np.arange(len(ties))] += _RELATIVE_RIDGE * (1.0 + totals.sum(axis=1))[:, None]
        step: Floats = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        # far from the top the curvature may all but vanish
        step *= _MAX_NEWTON_STEP / np.maximum(np.max(np.abs(step), axis=1, keepdims=True), _MAX_NEWTON_STEP)
        for _ in range(_MAX_HALVINGS):
            there = tied_confusion(numbers + step)
            risen = np.einsum("ajl,ajl->a", counts, there)
            lower = risen < value - _RELATIVE_SLACK * np.abs(value)
            if not lower.any():
                break
            step[lower] /= 2
        step[lower] = 0.0
        numbers, logs, value = numbers + step, np.where(lower[:, None, None], logs, there), np.maximum(value, risen)
        if np.max(np.abs(step), initial=0.0) < _MAX_LAST_NEWTON_STEP:
            break
    return numbers


@cache
def _ties(n_levels: int) -> Floats:
    """What each number of :func:`tied_confusion` multiplies, (n_levels + 2, n_levels, n_levels)."""
    place = np.arange(n_levels)
    given = np.broadcast_to(np.eye(n_levels)[:, None, :], (n_levels, n_levels, n_levels))
    distance = -0.5 * np.subtract.outer(place, place).astype(np.float64) ** 2
    return np.concatenate([given, np.eye(n_levels)[None], distance[None]])


@cache
def _vote_pass_for(n_levels: int) -> Any:
    """The pass by vote shares for this many levels."""

    @njit(cache=True, nogil=True)
    def run(starts, code, weight, known, use, begin, end, sums):
        """Add the counts by code, and the shares of levels, of items begin to end to the rows of ``sums``."""
        votes = np.empty(n_levels)
        weighted = weight.size > 0
        for item in range(begin, end):
            first, last = starts[item], starts[item + 1]
            if first == last or not use[item]:
                continue
            norm = 0.0
            for k in range(n_levels):
                votes[k] = 0.0
            for row in range(first, last):
                amount = weight[row] if weighted else 1.0
                votes[code[row] % np.uint32(n_levels)] += amount
                norm += amount
            for k in range(n_levels):
                share = votes[k] / norm
                if known[item] >= 0:
                    share = 1.0 if known[item] == k else 0.0
                votes[k] = (share + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
                sums[sums.shape[0] - 1, k] += votes[k]
            for row in range(first, last):
                at, amount = np.uint64(code[row]), weight[row] if weighted else 1.0
                for k in range(n_levels):
                    sums[at, k] += amount * votes[k]

    return run


@cache
def _pass_for(n_levels: int, by_logs: bool) -> Any:
    """The pass for this many levels; with their number fixed, the loops over levels are unrolled.

    Sums of logarithms are compiled only where some items need them.
    """

    @njit(cache=True, nogil=True)
    def run(starts, code, weight, known, table, log_table, prior, longest, probabilities, begin, end, sums):
        """Add the counts by code, the shares and the log-likelihood of items begin to end to the rows of ``sums``.

        Where there is room for probabilities, (n_items, n_levels), fill these in instead.
        """
        posterior, shares, product = np.empty(n_levels), np.zeros(n_levels), 1.0
        wanted, weighted, last_row = probabilities.shape[0] > 0, weight.size > 0, sums.shape[0] - 1
        for item in range(begin, end):
            first, last, fixed = starts[item], starts[item + 1], known[item]
            if first == last:
                continue
            if by_logs:  # noqa: SIM102 - a constant, by which the compiler leaves the rest out
                if weighted or last - first > longest:
                    _add_by_logs(
                        code, weight, known, log_table, prior, item, first, last, probabilities, posterior, sums
                    )
                    continue
            at = np.uint64(code[first])
            for k in range(n_levels):
                posterior[k] = prior[k] * table[at, k]
            for row in range(first + 1, last):
                at = np.uint64(code[row])
                for k in range(n_levels):
                    posterior[k] *= table[at, k]
            norm = 0.0
            if fixed >= 0:
                for k in range(n_levels):
                    posterior[k] = posterior[k] if fixed == k else 0.0
            for k in range(n_levels):
                norm += posterior[k]
            # one logarithm for many items
            product *= max(norm, _MIN_PRODUCT)
            if norm < _MIN_PRODUCT or product < _MIN_PRODUCT:
                sums[last_row, 0] += np.log(product) + np.log(norm / max(norm, _MIN_PRODUCT))
                product = 1.0
            norm = 1.0 / norm
            if wanted:
                for k in range(n_levels):
                    probabilities[item, k] = posterior[k] * norm
                continue
            for k in range(n_levels):
                posterior[k] = (posterior[k] * norm + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
                shares[k] += posterior[k]
            # two rows at a time: what is added is read anew for each, as it might be what sums are written to
            for row in range(first, last - 1, 2):
                at, to = np.uint64(code[row]), np.uint64(code[row + 1])
                for k in range(n_levels):
                    share = posterior[k]
                    sums[at, k] += share
                    sums[to, k] += share
            if (last - first) % 2:
                at = np.uint64(code[last - 1])
                for k in range(n_levels):
                    sums[at, k] += posterior[k]
        sums[last_row, 0] += np.log(product)
        for k in range(n_levels):
            sums[last_row - 1, k] += shares[k]

    return run


@njit(cache=True, nogil=True)
def _add_by_logs(code, weight, known, log_table, prior, item, first, last, probabilities, posterior, sums):
    """Do the same for one item by sums of logarithms, which weights and many grades need."""
    n_levels, weighted = posterior.size, weight.size > 0
    for k in range(n_levels):
        posterior[k] = np.log(prior[k])
    for row in range(first, last):
        at, amount = np.uint64(code[row]), weight[row] if weighted else 1.0
        for k in range(n_levels):
            posterior[k] += amount * log_table[at, k]
    top = posterior[max(known[item], 0)]
    for k in range(n_levels):
        top = max(top, posterior[k]) if known[item] < 0 else top
    norm = 0.0
    for k in range(n_levels):
        posterior[k] = np.exp(posterior[k] - top) if known[item] < 0 else 1.0 * (k == known[item])
        norm += posterior[k]
    for k in range(n_levels):
        posterior[k] /= norm
        if probabilities.shape[0] > 0:
            probabilities[item, k] = posterior[k]
        posterior[k] = (posterior[k] + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
        sums[sums.shape[0] - 2, k] += posterior[k]
    sums[sums.shape[0] - 1, 0] += top + np.log(norm)
    for row in range(first, last):
        at, amount = np.uint64(code[row]), weight[row] if weighted else 1.0
        for k in range(n_levels):
            sums[at, k] += amount * posterior[k]


@njit(cache=True, nogil=True)
def most_probable(probabilities, margin):
    """Return the last level of each item within a margin of its largest probability, and how many are, (n_items,)."""
    chosen, n_tied = np.zeros(len(probabilities), np.int64), np.zeros(len(probabilities), np.int64)
    for item in range(chosen.size):
        top = probabilities[item, 0]
        for k in range(1, probabilities.shape[1]):
            top = max(top, probabilities[item, k])
        top -= margin
        for k in range(probabilities.shape[1]):
            if probabilities[item, k] >= top:
                chosen[item] = k
                n_tied[item] += 1
    return chosen, n_tied


@njit(cache=True, nogil=True)
def count_voices(grades, n_levels, named):
    """Return the number of annotators who graded each item, (n_items,); the weight of its grades without names."""
    starts, code, weight = grades.starts, grades.code, grades.weight
    voices = np.zeros(starts.size - 1)
    for item in range(voices.size):
        before = np.int64(-1)
        for row in range(starts[item], starts[item + 1]):
            if not named:
                voices[item] += weight[row] if weight.size else 1.0
                continue
            annotator = np.int64(code[row]) // n_levels
            # rows of an item go by annotator
            voices[item] += annotator != before
            before = annotator
    return voices


def flatten(probabilities: Floats, n_voices: Floats, correlation: float) -> Floats:
    """Return probabilities by as many annotators as count with a correlation, (n, n_levels)."""
    flat = np.empty_like(probabilities)
    fill = bind(_flatten, *views(probabilities, n_voices), correlation, flat)
    over_bounds(fill, even_bounds(len(flat), _MIN_ITEMS_PER_THREAD))
    return flat


@njit(cache=True, nogil=True)
def _flatten(probabilities, n_voices, correlation, flat, begin, end):
    """Fill in powers of the probabilities of items begin to end that add up to 1."""
    n_levels = probabilities.shape[1]
    for item in range(begin, end):
        power, top, norm = 1.0 / (1.0 + max(n_voices[item] - 1.0, 0.0) * correlation), 0.0, 0.0
        for k in range(n_levels):
            top = max(top, probabilities[item, k])
        top = max(top, _MIN_SHARE)
        for k in range(n_levels):
            ratio = max(probabilities[item, k], _MIN_SHARE) / top
            # twice as fast as a power
            flat[item, k] = ratio if power == 1.0 or ratio == 1.0 else np.exp(power * np.log(ratio))
            norm += flat[item, k]
        for k in range(n_levels):
            flat[item, k] /= norm


def held_out_likelihoods(
    grades: PackedGrades,
    confusion: Floats,
    prior: Floats,
    held_out: Bools,
    mean: Floats,
    overall: Floats,
    grid: tuple[Floats, Floats],
    *,
    named: bool,
    time: Floats | None = None,
) -> tuple[Floats, float]:
    """Return the log-likelihood of the grades of held-out annotators at each point of a grid, and by overall shares.

    The others say of an item's level what ``confusion`` and ``prior`` make of their grades, tempered by a correlation,
    the first of the ``grid``, and ``mean`` (n_levels, n_levels) what is given for it. Beyond its level an item draws
    the answers that it was given, as in an urn, by the second; ``overall`` (n_levels,) are the shares of all grades.
    With ``time`` (n,) of the rows only grades that are not later speak. Without names all grades are held out in turn,
    each from the rest of its item.
    """
    n_levels, sums = len(prior), np.zeros(len(grid[0]) * len(grid[1]) + 1)
    table = np.log(confusion.transpose(0, 2, 1).reshape(-1, n_levels))
    given = views(table, np.log(prior), held_out, mean, np.log(overall), *grid, np.empty(0) if time is None else time)
    bind(_held_out, *grades[:3], *given, named, sums)()
    return sums[:-1].reshape(len(grid[0]), len(grid[1])), float(sums[-1])


@njit(cache=True, nogil=True)
def _held_out(
    starts, code, weight, table, log_prior, held_out, mean, log_overall, correlations, draws, time, named, sums
):
    """Add up the log-likelihood of held-out grades at each point of the grid, by overall shares at the end."""
    n_levels, by_time, products = log_prior.size, time.size > 0, np.ones(sums.size - 1)
    logs, own, given = np.empty(n_levels), np.empty((correlations.size, n_levels)), np.empty(n_levels)
    for item in range(starts.size - 1):
        ready = False
        for row in range(starts[item], starts[item + 1]):
            amount, at = weight[row] if weight.size else 1.0, np.int64(code[row])
            if not held_out[at // n_levels]:
                continue
            if by_time or not named or not ready:
                n_others, n_given, before = 0.0, 0.0, np.int64(-1)
                for k in range(n_levels):
                    logs[k], given[k] = log_prior[k], 0.0
                for other in range(starts[item], starts[item + 1]):
                    there, speaks = np.int64(code[other]), weight[other] if weight.size else 1.0
                    if named:
                        if held_out[there // n_levels] or (by_time and time[other] > time[row]):
                            continue
                        n_others += there // n_levels != before
                        before = there // n_levels
                    else:
                        speaks -= min(speaks, 1.0) if other == row else 0.0
                        n_others += speaks
                    given[there % n_levels] += speaks
                    n_given += speaks
                    for k in range(n_levels):
                        logs[k] += speaks * table[there, k]
                top = logs[0]
                for k in range(1, n_levels):
                    top = max(top, logs[k])
                for place in range(correlations.size):
                    power, norm = 1.0 / (1.0 + max(n_others - 1.0, 0.0) * correlations[place]), 0.0
                    for k in range(n_levels):
                        own[place, k] = np.exp((logs[k] - top) * power)
                        norm += own[place, k]
                    for k in range(n_levels):
                        own[place, k] /= norm
                ready = True
            if n_others <= 0.0:
                continue
            sums[sums.size - 1] += amount * log_overall[at % n_levels]
            for place in range(correlations.size):
                predicted = 0.0
                for k in range(n_levels):
                    predicted += own[place, k] * mean[k, at % n_levels]
                for one in range(draws.size):
                    drawn = n_others * draws[one] / (1.0 - draws[one] + n_others * draws[one])
                    chance = max(predicted + drawn * (given[at % n_levels] / n_given - predicted), _MIN_PRODUCT)
                    cell = place * draws.size + one
                    # one logarithm for many grades
                    products[cell] *= chance if amount == 1.0 else chance**amount
                    if products[cell] < _MIN_PRODUCT:
                        sums[cell] += np.log(max(products[cell], _MIN_SHARE))
                        products[cell] = 1.0
    for cell in range(products.size):
        sums[cell] += np.log(products[cell])


@njit(cache=True, nogil=True)
def nearest_away(flat, wanted, expected):
    """Return the loss, and the share given away to all levels by which probabilities come closest to those wanted.

    It has a normal prior around the expected one, worth about one item: where probabilities are even anyway, nothing
    but their last digits would tell it.
    """
    even, away = 1.0 / flat.shape[1], _FIRST_AWAY
    for _ in range(_N_AWAY_STEPS):
        slope, bend = expected - away, 1.0
        for item in range(flat.shape[0]):
            for k in range(flat.shape[1]):
                ratio = (even - flat[item, k]) / ((1.0 - away) * flat[item, k] + away * even)
                slope += wanted[item, k] * ratio
                bend += wanted[item, k] * ratio * ratio
        away = min(max(away + slope / bend, 0.5 * away), _MOST_AWAY)
    loss = 0.5 * (away - expected) ** 2
    for item in range(flat.shape[0]):
        for k in range(flat.shape[1]):
            loss -= wanted[item, k] * np.log((1.0 - away) * flat[item, k] + away * even + _MIN_SHARE)
    return loss, away
