"""Preferences sorted by pair of items, each with who gave it.

Models in which every annotator has a parameter pass over all preferences again and again. In this order a pass works
out once for each pair what depends on its items only, and reads memory from front to back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from .pairs import PairCounts
from .threads import even_bounds, read_only

_ANSWERS_PER_THREAD = 100_000


class Answers(NamedTuple):
    """Preferences by pair, the pairs in compressed rows as in :mod:`~crowdrank.kernels.pairs`.

    The answers about a pair are those from ``bounds[pair]`` up to the next, ``bounds`` (n_pairs + 1,). Over answers are
    ``code``, 4 times the annotator plus 0, 1 or 2 for a loss, tie or win of the lower item, and ``weight``, empty where
    all weigh 1. ``parts`` bounds stretches of items with about equally many answers, one for each thread.
    """

    starts: Counts
    second: Ints
    bounds: Counts
    code: Ints
    weight: Floats
    parts: Counts

    @classmethod
    def of(cls, starts: Counts, second: Ints, bounds: Counts, code: Ints, weight: Floats) -> Answers:
        """Return the answers with the parts for threads."""
        begins = bounds[starts]
        parts = np.searchsorted(begins, even_bounds(len(code), _ANSWERS_PER_THREAD))
        parts[0], parts[-1] = 0, len(begins) - 1
        columns = read_only(starts), read_only(second), read_only(bounds), read_only(code), read_only(weight)
        return cls(*columns, parts)

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    @property
    def pair(self) -> Ints:
        """The pair that each answer is about."""
        return np.repeat(np.arange(len(self.second), dtype=np.int32), np.diff(self.bounds))

    @property
    def annotator(self) -> Ints:
        """Who gave each answer."""
        return self.code >> 2

    @property
    def outcome(self) -> Floats:
        """1 where the lower item won, -1 where it lost, 0 for a tie, of each answer."""
        return (self.code & 3).astype(np.float64) - 1.0

    def every(self, step: int) -> Answers:
        """Return the answers about every so many-th pair only."""
        chosen = np.arange(0, len(self.second), step)
        sizes = np.diff(self.bounds)[chosen]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.bounds[chosen] - bounds[:-1], sizes) + np.arange(bounds[-1])
        weight = self.weight[rows] if self.weight.size else self.weight
        return Answers.of(-(-self.starts // step), self.second[chosen], bounds, self.code[rows], weight)

    def without(self, annotators: Bools) -> Answers:
        """Return the answers of other annotators only; the pairs stay."""
        keep = ~annotators[self.annotator]
        bounds = np.concatenate([[0], np.cumsum(keep)])[self.bounds]
        weight = self.weight[keep] if self.weight.size else self.weight
        return Answers.of(self.starts, self.second, bounds, self.code[keep], weight)


def sort_answers(
    left: Ints, right: Ints, outcome: Outcomes, annotator: Ints, weight: Floats | None, n_items: int, *, ties: bool
) -> tuple[Answers, PairCounts]:
    """Return the preferences by pair, and the counts of each pair; ties are no answers unless they are wanted."""
    n = len(left)
    amount = read_only(np.empty(0) if weight is None else weight)
    moved, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    heavy, heavier = np.empty(len(amount)), np.empty(len(amount))
    begins = np.zeros(n_items + 1, np.int64)
    columns = (read_only(left), read_only(right), read_only(outcome), read_only(annotator))
    _sort_by_pair(*columns, amount, moved, heavier, begins, spare, heavy)
    starts, second, bounds = np.empty(n_items + 1, np.int64), np.empty(n, np.int32), np.empty(n + 1, np.int64)
    code, counts = np.empty(n, np.int32), np.zeros((3, n))
    n_pairs = _mark_pairs(begins, moved, heavier, ties, starts, second, bounds, code, heavy, counts)
    losses, tied, wins = counts[:, :n_pairs].copy()
    second, bounds = second[:n_pairs].copy(), bounds[: n_pairs + 1].copy()
    code, heavy = code[: bounds[-1]], heavy[: bounds[-1]]
    answers = Answers.of(starts, second, bounds, code, heavy)
    return answers, PairCounts(starts, second, wins, losses, tied)


@njit(cache=True, nogil=True)
def _sort_by_pair(
    left: Ints, right: Ints, outcome: Outcomes, annotator: Ints, weight: Floats,
    moved: Counts, heavy: Floats, begins: Counts, halfway: Counts, half: Floats,
) -> None:  # fmt: skip
    """Fill moved with rows (higher item, code) sorted by pair, heavy with their weights, begins by lower item.

    Rows are sorted by counting: by the higher item, and then, in that order, by the lower one.
    """
    n_items = begins.size - 1
    after = np.zeros(n_items + 1, np.int64)
    for row in range(left.size):
        low, high = min(left[row], right[row]), max(left[row], right[row])
        after[high + 1] += 1
        begins[low + 1] += 1
    for i in range(n_items):
        after[i + 1] += after[i]
        begins[i + 1] += begins[i]
    for row in range(left.size):
        low, high, won = left[row], right[row], outcome[row]
        if low > high:
            low, high, won = high, low, -won
        place = after[high]
        after[high] = place + 1
        halfway[place] = (np.int64(low) << 32) | np.int64(4 * annotator[row] + won + 1)
        if weight.size:
            half[place] = weight[row]
    place_of, row = begins[:n_items].copy(), 0
    for high in range(n_items):
        while row < after[high]:
            low = halfway[row] >> 32
            place = place_of[low]
            place_of[low] = place + 1
            moved[place] = (np.int64(high) << 32) | (halfway[row] & 0xFFFFFFFF)
            if weight.size:
                heavy[place] = half[row]
            row += 1


@njit(cache=True, nogil=True)
def _mark_pairs(
    begins: Counts, moved: Counts, heavy: Floats, ties: bool,
    starts: Counts, second: Ints, bounds: Counts, code: Ints, weight: Floats, counts: Floats,
) -> int:  # fmt: skip
    """Fill in pairs, bounds, codes, weights and, (3, n), losses, ties and wins; return how many pairs there are."""
    n_pairs = n_answers = 0
    for i in range(begins.size - 1):
        starts[i] = n_pairs
        last = -1
        for row in range(begins[i], begins[i + 1]):
            high, given = moved[row] >> 32, moved[row] & 0xFFFFFFFF
            if high != last:
                last = high
                second[n_pairs], bounds[n_pairs] = high, n_answers
                n_pairs += 1
            kind = given & 3
            counts[kind, n_pairs - 1] += heavy[row] if heavy.size else 1.0
            if kind != 1 or ties:
                code[n_answers] = given
                if heavy.size:
                    weight[n_answers] = heavy[row]
                n_answers += 1
    starts[begins.size - 1] = n_pairs
    bounds[n_pairs] = n_answers
    return n_pairs
