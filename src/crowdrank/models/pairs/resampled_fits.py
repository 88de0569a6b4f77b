"""Resamples of preferences: counted by pair and fitted by the Bradley-Terry model, many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.judgments import Preferences, falls_apart
from ...pair_counts import PairCounts, apply_ties_rule
from ...protocols import Bools, Counts, Floats, Ints
from ...resampling import Draws, Refitted

_MAX_UNIT_CELLS, _MAX_PAIR_CELLS = 1 << 27, 1 << 24
"""Cells of units (a byte or four each), and of pairs (eight), that the resamples fitted at once may take up."""

_MAX_RESAMPLES_AT_ONCE = 32
_MAX_STEPS = 30
_SOLVE_ACCURACY = 1e-2
_MAX_ERROR_SHARE = 1e-2
"""Share of a standard error that a score may be off: by chance it differs from the next resample's far more."""

_MAX_STEP_LOG_ODDS = 8.0


class PairRows(NamedTuple):
    """Preferences sorted by pair and outcome, to be counted again with other weights.

    Pairs are in compressed rows, ``starts`` (n_items + 1,) and ``second`` (n_pairs,); the preferences of a pair are
    those from ``row_starts[pair]`` up to the next, each with its ``unit``, its ``weight`` and what the lower item
    ``won``: 1, 1/2 or 0.
    """

    starts: Counts
    second: Ints
    row_starts: Counts
    unit: Ints
    weight: NDArray[np.float32]
    won: NDArray[np.float32]


def sort_preferences(preferences: Preferences, draws: Draws, ties: str) -> tuple[PairRows, Draws]:
    """Return the preferences by pair, and draws that follow this order; ties are left out if they are to be ignored."""
    n = preferences.n_items
    swapped = preferences.left > preferences.right
    low = np.where(swapped, preferences.right, preferences.left).astype(np.int64)
    cell = (low * n + np.where(swapped, preferences.left, preferences.right)) * 3
    cell += np.where(swapped, -preferences.outcome, preferences.outcome) + 1
    # equal preferences may change places, as long as their weights are equal too
    order = np.argsort(cell) if draws.weight is None and draws.chance is None else np.lexsort(
        (preferences.row_weight, cell)
    )  # fmt: skip
    draws = draws.arrange(order)
    if ties == "ignore":
        order = order[preferences.outcome[order] != 0]
    cell = cell[order]
    pair = cell // 3
    new = np.flatnonzero(np.diff(pair, prepend=-1))
    first, second = np.divmod(pair[new], n)
    assert draws.unit is not None
    weight = np.ones(len(order)) if draws.weight is None else draws.weight[order]
    rows = PairRows(
        np.searchsorted(first, np.arange(n + 1)), second.astype(np.int32), np.append(new, len(order)),
        draws.unit[order], weight.astype(np.float32), (0.5 * (cell - 3 * pair)).astype(np.float32),
    )  # fmt: skip
    return rows, draws


@dataclass(frozen=True, eq=False)
class PairRefits:
    """What fits resamples of preferences, each from the scores of all of them.

    Parameters
    ----------
    rows, draws
        The preferences by pair, and how they are drawn.
    pair_counts
        The pair counts of all preferences.
    offsets
        Bounds of the items of each query.
    start
        Parameters that fit all preferences.
    ties, ridge
        As the method has them.
    alone
        Returns the parameters that fit pair counts best, from a start, and whether that converged: for models with
        parameters beside the scores, and for a resample that fitting many at once does not manage.
    together
        Whether the model is plain Bradley-Terry, of which many are fitted at once.
    """

    rows: PairRows
    draws: Draws
    pair_counts: PairCounts
    offsets: Counts
    start: Floats
    ties: str
    ridge: float
    alone: Callable[[PairCounts, Floats], tuple[Floats, bool]]
    together: bool

    @cached_property
    def whole(self) -> tuple[Floats, Floats, NDArray[np.float32]]:
        """Chance of the lower item of each pair, curvature at each item, and what each row won beyond expectation.

        All are those of the scores that fit all preferences.
        """
        from ...kernels.segments import segment_sums

        pair_counts, n = self.pair_counts, len(self.start)
        first = np.repeat(np.arange(n), np.diff(pair_counts.starts))
        chance = 1.0 / (1.0 + np.exp(self.start[pair_counts.second] - self.start[first]))
        bend = pair_counts.number * chance * (1.0 - chance)
        degree = segment_sums(bend, first, None, n) + segment_sums(bend, pair_counts.second, None, n)
        return chance, degree, self.rows.won - np.repeat(chance.astype(np.float32), np.diff(self.rows.row_starts))

    @property
    def at_once(self) -> int:
        """How many resamples to fit at once: a power of two, for vectors, that takes up some 100 megabytes at most."""
        room = min(
            _MAX_UNIT_CELLS // self.draws.n_units,
            _MAX_PAIR_CELLS // max(len(self.rows.second), 1),
            _MAX_RESAMPLES_AT_ONCE,
        )
        return 1 << max(room.bit_length() - 1, 0)

    def __call__(self, first: int, stop: int) -> Refitted:
        """Return the scores of the resamples from ``first`` to before ``stop``."""
        drawn = self.draws.copies(first)
        copies = np.empty((stop - first, len(drawn)), np.uint8 if drawn.dtype == np.uint8 else np.float32)
        copies[0] = drawn
        for number in range(first + 1, stop):
            copies[number - first] = self.draws.copies(number)
        if not self.together:
            return self._fit_alone(copies, np.arange(stop - first))
        refitted = self._fit_together(copies)
        late = np.flatnonzero(~refitted.converged)
        if len(late):
            for whole, part in zip(refitted, self._fit_alone(copies, late), strict=True):
                whole[late] = part
        return refitted

    def _fit_alone(self, copies: NDArray[Any], chosen: Counts) -> Refitted:
        """Scores of some of the resamples, one after the other."""
        parts: list[tuple[Floats, int, bool, bool]] = []
        for number in chosen:
            pair_counts = self._pair_counts(copies[number])
            judged = pair_counts.wins + pair_counts.losses > 0
            n_lost = int(((self.pair_counts.wins + self.pair_counts.losses > 0) & ~judged).sum())
            start = self.start.copy()
            start[: len(judged)] = pair_counts.centre(start[: len(judged)])
            point, converged = self.alone(pair_counts, start)
            apart = falls_apart(pair_counts.group, self.pair_counts.group, judged)
            parts.append((point[: len(judged)], n_lost, apart, converged))
        return Refitted(*(np.array(column) for column in zip(*parts, strict=True)))

    def _pair_counts(self, copies: NDArray[Any]) -> PairCounts:
        """The pair counts of one resample."""
        from ...kernels.pairs import OutcomeCounts
        from ...kernels.segments import segment_sums

        rows, n_pairs = self.rows, len(self.rows.second)
        pair = np.repeat(np.arange(n_pairs), np.diff(rows.row_starts))
        weight = np.multiply(rows.weight, copies[rows.unit], dtype=np.float64)
        wins, losses, ties = (segment_sums(weight * (rows.won == won), pair, None, n_pairs) for won in (1.0, 0.0, 0.5))
        counts = OutcomeCounts(rows.starts, rows.second, wins, losses, ties)
        return apply_ties_rule(counts.keep(wins + losses + ties > 0), self.ties, self.offsets)

    def _fit_together(self, copies: NDArray[Any]) -> Refitted:
        """Scores of all the resamples by Newton steps, which each takes as it would alone."""
        from .kernels.resampled_pairs import evaluate_resamples, solve_resamples

        starts, second = self.rows.starts, self.rows.second
        expected, degree, surprise = self.whole
        number, lead = _count_resamples(self.rows, copies, surprise)
        group, same = _join_groups(self.rows, number, self.pair_counts.group)
        # one step with the diagonal of the curvature that all preferences have costs nothing and saves a Newton step
        ahead = (lead - self.ridge * self.start[:, None]) / (degree + self.ridge)[:, None]
        scores = _centre(self.start[:, None] + ahead, group)
        judged, live, bend = np.ones(scores.shape, bool), np.ones(len(copies), bool), np.empty_like(number)
        for n_steps in range(_MAX_STEPS):
            drift, bent = np.zeros(scores.shape), np.zeros(scores.shape)
            evaluate_resamples(starts, second, number, expected, np.exp(scores), drift, bend, bent)
            judged = bent > 0 if n_steps == 0 else judged
            gradient = lead - drift - self.ridge * scores
            step = solve_resamples(starts, second, bend, bent + self.ridge, gradient, accuracy=_SOLVE_ACCURACY)
            step = _centre(step, group)
            size = np.abs(step).max(axis=0)
            scores += step * (live * np.minimum(1.0, _MAX_STEP_LOG_ODDS / np.maximum(size, 1.0)))
            # what is left after a Newton step is of the order of its square, or of its inexactness
            left = np.abs(step) * np.sqrt(bent + self.ridge) * (size + _SOLVE_ACCURACY)
            live &= left.max(axis=0) > _MAX_ERROR_SHARE
            if not live.any():
                break
        known = (self.pair_counts.wins + self.pair_counts.losses > 0)[:, None]
        apart = [
            not alike and falls_apart(own, self.pair_counts.group, seen)
            for alike, own, seen in zip(same, group.T, judged.T, strict=True)
        ]
        return Refitted(scores.T.copy(), (known & ~judged).sum(axis=0), np.array(apart), ~live)


def _count_resamples(
    rows: PairRows, copies: NDArray[Any], surprise: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Contests of each pair, (n_pairs, n_resamples), and what each item won beyond expectation."""
    from .kernels.resampled_pairs import count_resamples

    number = np.zeros((len(rows.second), len(copies)), np.float32)
    lead = np.zeros((len(rows.starts) - 1, len(copies)), np.float32)
    count_resamples(
        copies, rows.unit, rows.weight, surprise, rows.row_starts, rows.starts, rows.second, number, lead
    )  # fmt: skip
    return number, lead


def _join_groups(rows: PairRows, number: NDArray[np.float32], group: Ints) -> tuple[Ints, Bools]:
    """Group of each item in each resample, (n_items, n_resamples), and whether they are those of all preferences."""
    from .kernels.resampled_pairs import join_pairs

    n_items, n_resamples = len(group), number.shape[1]
    most = n_items - len(np.unique(group))
    groups = np.repeat(np.arange(n_items, dtype=np.int32)[:, None], n_resamples, axis=1)
    n_joins = np.zeros(n_resamples, np.int64)
    join_pairs(rows.starts, rows.second, number, groups, most, n_joins)
    return groups, n_joins == most


def _centre(values: Floats, group: Ints) -> Floats:
    """Values (n_items, n_resamples) less the mean of their group."""
    code = (group + len(group) * np.arange(group.shape[1])).ravel()
    sums, sizes = np.bincount(code, values.ravel()), np.bincount(code)
    centred: Floats = values - (sums / np.maximum(sizes, 1))[code].reshape(values.shape)
    return centred
