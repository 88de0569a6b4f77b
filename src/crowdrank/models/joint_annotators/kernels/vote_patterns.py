"""Votes on pairs of items, kept as patterns: which voters named which side.

A model in which the votes on a pair tell one hidden answer passes over all pairs again and again. All it needs of the
votes is one number a pattern, and six voters can leave no more than 729 patterns however many pairs there are. Where
voters are many, every pair has a pattern of its own, and nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.pairs import row_starts
from ....kernels.pairs import sort_by_pair as sort_answers
from ....kernels.threads import over_bounds, pair_bounds, read_only, total
from ....protocols import Counts, Floats, Ints, Outcomes

MOST_VOTERS = 12
"""Up to so many voters a pattern is found through a number of two bits a voter."""

_TABLE_CELLS = 2_000_000
_SHARED_LOGS = 64
"""So many factors between 1/2 and 2 are multiplied before a logarithm is taken, which takes long."""

_BLUR = np.pi / 8
"""The logistic function is nearest to the normal one whose variance is 8 / pi."""


@dataclass(frozen=True, eq=False)
class VotePatterns:
    """Pairs in compressed rows as in :mod:`~crowdrank.kernels.pairs`, each with the pattern of its votes.

    ``starts`` (n_items + 1,), ``second`` and ``pattern`` (n_pairs,). The votes of a pattern are those from
    ``bounds[pattern]`` up to the next; of each, ``code`` is 4 times the voter plus 2 for the lower item of the pair and
    0 for the other, and ``weight`` is empty where all weigh 1. ``number`` (n_patterns,) is how many pairs have it.
    """

    starts: Counts
    second: Ints
    pattern: Ints
    bounds: Counts
    code: Ints
    weight: Floats
    number: Floats

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.second)

    @property
    def first(self) -> Ints:
        """The lower item of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))

    @cached_property
    def voter(self) -> Ints:
        """Who gave each vote of each pattern."""
        return self.code >> 2

    @cached_property
    def owner(self) -> Ints:
        """The pattern that each vote belongs to."""
        return np.repeat(np.arange(len(self.number), dtype=np.int32), np.diff(self.bounds))

    @cached_property
    def amount(self) -> Floats:
        """What each vote weighs, over all pairs of its pattern."""
        return self.number[self.owner] * (self.weight if self.weight.size else 1.0)

    @cached_property
    def _side(self) -> Floats:
        """The weight of each vote on one pair, below 0 where it is for the higher item."""
        side = (self.code & 2).astype(np.float64) - 1.0
        return side * self.weight if self.weight.size else side

    def odds(self, log_odds: Floats) -> Floats:
        """Return the log odds of the lower item that the votes of each pattern add up to, (n_patterns,).

        ``log_odds`` (n_voters,) are those that a voter is right.
        """
        return np.bincount(self.owner, self._side * log_odds[self.voter], len(self.number)).astype(np.float64)

    def against(self, if_lower: Floats, if_higher: Floats) -> float:
        """Return the sum over all votes of a number of its voter: one for the lower item, the other one for the other.

        With the logarithms of being wrong and right, it is the log-likelihood if all higher items were the better.
        """
        each = np.where(self._side > 0, if_lower[self.voter], if_higher[self.voter])
        return float((self.amount * each).sum())

    def per_voter(self, lower: Floats, n_voters: int) -> tuple[Floats, Floats]:
        """Return the weight of wrong votes that each voter is expected to have given, and of all votes.

        ``lower`` (n_patterns,) is the expected number of pairs of each pattern whose lower item is the better.
        """
        share = np.divide(lower, self.number, out=np.zeros_like(lower), where=self.number > 0)[self.owner]
        wrong = self.amount * np.where(self._side > 0, 1.0 - share, share)
        return np.bincount(self.voter, wrong, n_voters).astype(np.float64, copy=False), self.sums(n_voters)

    def sums(self, n_voters: int) -> Floats:
        """Return the weight of all votes of each voter, (n_voters,)."""
        return np.bincount(self.voter, self.amount, n_voters).astype(np.float64, copy=False)

    def split(self, part: Ints, n_parts: int) -> VotePatterns:
        """Return the same pairs with voters split by the part (n_pairs,) that a pair belongs to.

        The vote of voter ``k`` on a pair of part ``d`` becomes one of voter ``k * n_parts + d``.
        """
        cells, pattern = np.unique(self.pattern.astype(np.int64) * n_parts + part, return_inverse=True)
        former, part_of = cells // n_parts, (cells % n_parts).astype(np.int32)
        sizes = np.diff(self.bounds)[former]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.bounds[former] - bounds[:-1], sizes) + np.arange(bounds[-1])
        code = self.code[rows]
        code = ((code >> 2) * n_parts + np.repeat(part_of, sizes)) * 4 + (code & 2)
        weight = self.weight[rows] if self.weight.size else self.weight
        number = np.bincount(pattern, minlength=len(cells)).astype(np.float64)
        return replace(
            self,
            pattern=pattern.astype(np.int32),
            bounds=bounds,
            code=code.astype(np.int32),
            weight=weight,
            number=number,
        )


def find_patterns(
    left: Ints, right: Ints, outcome: Outcomes, voter: Ints, *, weight: Floats | None, offsets: Counts, n_voters: int
) -> VotePatterns:
    """Return the votes on each pair as patterns; ``offsets`` (n_queries + 1,) bound the items of the queries.

    An outcome of 0 is no vote, but the pair is one of the pairs. Two votes of a voter on one pair are two votes.
    """
    few = weight is None and n_voters <= MOST_VOTERS
    sizes = np.diff(offsets)
    if few and int((sizes * (sizes - 1) // 2).sum()) <= max(_TABLE_CELLS, len(left)):
        found = _from_table(left, right, outcome, voter, offsets, n_voters)
        if found is not None:
            return found
    answers = sort_answers(left, right, outcome, voter, weight, int(offsets[-1]), ties=False)[0]
    own = np.arange(len(answers.second), dtype=np.int32)
    ones = np.ones(len(own))
    return VotePatterns(answers.starts, answers.second, own, answers.bounds, answers.code, answers.weight, ones)


def _from_table(
    left: Ints, right: Ints, outcome: Outcomes, voter: Ints, offsets: Counts, n_voters: int
) -> VotePatterns | None:
    """Patterns through a table with a cell for each pair; ``None`` where a voter voted twice on a pair."""
    rows = row_starts(offsets)
    marks = np.zeros(int(rows[-1]), np.uint32)
    columns = (read_only(left), read_only(right), read_only(outcome), read_only(voter))
    if _mark_votes(*columns, read_only(rows), marks):
        return None
    n_pairs, n_items = int(np.count_nonzero(marks)), len(rows) - 1
    starts, second, pattern = np.empty(n_items + 1, np.int64), np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32)
    known, number_of = _pattern_numbers(marks, n_voters)
    _gather_pairs(marks, read_only(rows), number_of, known, starts, second, pattern)
    bits = (known[:, None] >> (2 * np.arange(n_voters, dtype=np.uint32))) & 3
    # 1 is a vote for the lower item, 2 for the other, 3 none of both
    owner, who = np.nonzero((bits == 1) | (bits == 2))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(known)))]).astype(np.int64)
    code = (4 * who + 2 * (bits[owner, who] == 1)).astype(np.int32)
    number = np.bincount(pattern, minlength=len(known)).astype(np.float64)
    return VotePatterns(starts, second, pattern, bounds, code, np.empty(0), number)


def _pattern_numbers(marks: NDArray[np.uint32], n_voters: int) -> tuple[NDArray[np.uint32], Ints]:
    """The marks that occur, rising, and a table from mark to place among them, empty where that would be too long."""
    size = 4**n_voters
    if size > max(1 << 16, len(marks)):
        found = np.unique(marks)
        return found[found > 0], np.empty(0, np.int32)
    table = np.zeros(size, np.int32)
    _note(marks, table)
    table[0] = 0
    known = np.flatnonzero(table).astype(np.uint32)
    table[known] = np.arange(len(known), dtype=np.int32)
    return known, table


@njit(cache=True, nogil=True)
def _mark_votes(left: Ints, right: Ints, outcome: Outcomes, voter: Ints, rows: Counts, marks: Any) -> bool:
    """Set the two bits of each vote in the cell of its pair; return whether a voter voted twice on some pair."""
    for row in range(left.size):
        low, high, won = left[row], right[row], outcome[row]
        if low > high:
            low, high, won = high, low, -won
        cell = rows[low] + high - low - 1
        bits = np.uint32(1 if won > 0 else 2 if won < 0 else 3) << np.uint32(2 * voter[row])
        if marks[cell] & (np.uint32(3) << np.uint32(2 * voter[row])):
            return True
        marks[cell] |= bits
    return False


@njit(cache=True, nogil=True)
def _note(marks: Any, table: Ints) -> None:
    """Set the table to 1 at each mark."""
    for cell in range(marks.size):
        table[marks[cell]] = 1


@njit(cache=True, nogil=True)
def _gather_pairs(
    marks: Any, rows: Counts, number_of: Ints, known: Any, starts: Counts, second: Ints, pattern: Ints
) -> None:
    """Fill in the pairs that have a mark, with the number of its pattern."""
    n_pairs = 0
    for i in range(rows.size - 1):
        starts[i] = n_pairs
        for cell in range(rows[i], rows[i + 1]):
            mark = marks[cell]
            if mark:
                second[n_pairs] = i + 1 + cell - rows[i]
                pattern[n_pairs] = number_of[mark] if number_of.size else np.searchsorted(known, mark)
                n_pairs += 1
    starts[rows.size - 1] = n_pairs


class VotePass(NamedTuple):
    """What a pass over the pairs finds at some scores and odds of votes.

    ``log_likelihood`` is that of the votes, less what it would be if all higher items were the better; ``pull``
    (n_items,) is its derivative in the scores, ``bend`` (n_pairs,) the curvature of each pair, ``degree`` the sum of
    that at each item, ``seen`` the sum of the curvature that is left because the better item is hidden, and ``lower``
    (n_patterns,) the expected number of pairs whose lower item is the better.
    """

    log_likelihood: float
    pull: Floats
    bend: Floats
    degree: Floats
    seen: Floats
    lower: Floats


def flat_pass(votes: VotePatterns, odds: Floats, n_items: int) -> VotePass:
    """Return what the votes alone say, all scores being equal; pairs need not be gone through for that."""
    gain = np.logaddexp(0.0, odds) - np.log(2.0)
    lower = votes.number * (0.5 + 0.5 * np.tanh(0.5 * odds))
    nothing = np.zeros(n_items)
    return VotePass(float((votes.number * gain).sum()), nothing, np.empty(0), nothing, nothing, lower)


def vote_pass(votes: VotePatterns, scores: Floats, odds: Floats, *, hinge: bool = False) -> VotePass:
    r"""Return what the pairs say of scores (n_items,) and odds of votes (n_patterns,).

    With :math:`a = s_i - s_j` and :math:`\lambda` the odds of the votes, the lower item is better with probability
    :math:`\sigma(a)` before votes and :math:`q = \sigma(a + \lambda)` after. The bend is what it would be if the better
    item were known. With ``hinge`` pull and bend are those of the smoothed hinge, with weights q and 1 - q for both
    orders.
    """
    return _passed(votes, scores, odds, np.empty(0), hinge)


def blurred_pass(votes: VotePatterns, scores: Floats, variance: Floats, odds: Floats) -> VotePass:
    """Return the same as means over independent normal scores with these means and variances, (n_items,) each.

    The logistic function is taken as a normal one for that, which is off by a hundredth at most.
    """
    return _passed(votes, scores, odds, variance, False)


def _passed(votes: VotePatterns, scores: Floats, odds: Floats, variance: Floats, hinge: bool) -> VotePass:
    """A pass over all pairs, in threads."""
    pairs = (read_only(votes.starts), read_only(votes.second), read_only(votes.pattern))
    values = (read_only(scores), read_only(odds), read_only(variance))
    bend, n_items = np.empty(votes.n_pairs), len(scores)

    def work(begin: int, end: int) -> list[Floats]:
        sums, lower, value = np.zeros((3, n_items)), np.zeros(len(odds)), np.zeros(1)
        _vote_pass(*pairs, *values, hinge, begin, end, bend, sums, lower, value)
        return [sums, lower, value]

    parts = over_bounds(work, pair_bounds(votes.starts))
    sums, lower, value = (total([part[which] for part in parts]) for which in range(3))
    return VotePass(float(value[0]), sums[0], bend, sums[1], sums[2], lower)


@njit(cache=True, nogil=True)
def _vote_pass(
    starts: Counts, second: Ints, pattern: Ints, scores: Floats, odds: Floats, variance: Floats, hinge: bool,
    begin: int, end: int, bend: Floats, sums: Floats, lower: Floats, value: Floats,
) -> None:  # fmt: skip
    """Add the pairs of items begin to end to pull, degree and seen, (3, n_items), to lower and the log-likelihood."""
    straight, factor, waiting, blurred = 0.0, 1.0, 0, variance.size > 0
    for i in range(begin, end):
        mine, pulled, bent, left = scores[i], 0.0, 0.0, 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, m = second[pair], pattern[pair]
            sharp = 1.0 / np.sqrt(1.0 + _BLUR * (variance[i] + variance[j])) if blurred else 1.0
            a = sharp * (mine - scores[j])
            b = a + sharp * odds[m]
            one, other = np.exp(-abs(a)), np.exp(-abs(b))
            before = (1.0 if a > 0 else one) / (1.0 + one)
            after = (1.0 if b > 0 else other) / (1.0 + other)
            straight += max(b, 0.0) - max(a, 0.0)
            factor *= (1.0 + other) / (1.0 + one)
            waiting += 1
            if waiting == _SHARED_LOGS:
                straight, factor, waiting = straight + np.log(factor), 1.0, 0
            lower[m] += after
            push, curve = after - before, before * (1.0 - before)
            if hinge:
                push = after * min(max(1.0 - a, 0.0), 1.0) - (1.0 - after) * min(max(1.0 + a, 0.0), 1.0)
                curve = (after if 0.0 <= a < 1.0 else 0.0) + (1.0 - after if -1.0 < a <= 0.0 else 0.0)
            curve *= sharp
            rest = curve - sharp * after * (1.0 - after)
            bend[pair] = curve
            pulled += push
            bent += curve
            left += rest
            sums[0, j] -= push
            sums[1, j] += curve
            sums[2, j] += rest
        sums[0, i] += pulled
        sums[1, i] += bent
        sums[2, i] += left
    value[0] += straight + np.log(factor)


def pair_probabilities(votes: VotePatterns, scores: Floats, odds: Floats) -> Floats:
    """Return the probability that the lower item of each pair is the better, (n_pairs,)."""
    found = np.empty(votes.n_pairs)
    columns = (read_only(votes.starts), read_only(votes.second), read_only(votes.pattern))
    _fill_probabilities(*columns, read_only(scores), read_only(odds), found)
    return found


@njit(cache=True, nogil=True)
def _fill_probabilities(
    starts: Counts, second: Ints, pattern: Ints, scores: Floats, odds: Floats, found: Floats
) -> None:
    """Fill in the probability of each pair."""
    for i in range(starts.size - 1):
        for pair in range(starts[i], starts[i + 1]):
            found[pair] = 0.5 + 0.5 * np.tanh(0.5 * (scores[i] - scores[second[pair]] + odds[pattern[pair]]))


def nearest_centres(votes: VotePatterns, along: Floats, squares: Floats, *, folded: bool) -> Ints:
    """Return the centre that the difference of each pair's items is nearest to, (n_pairs,).

    ``along`` (n_items, n_centres) are products of items and centres and ``squares`` those of centres with themselves;
    ``folded``, a difference counts as its negative where that is nearer.
    """
    found = np.empty(votes.n_pairs, np.int32)
    columns = (read_only(votes.starts), read_only(votes.second), read_only(along), read_only(squares))

    def work(begin: int, end: int) -> None:
        _fill_nearest(*columns, folded, begin, end, found)

    over_bounds(work, pair_bounds(votes.starts))
    return found


@njit(cache=True, nogil=True)
def _fill_nearest(
    starts: Counts, second: Ints, along: Floats, squares: Floats, folded: bool, begin: int, end: int, found: Ints
) -> None:
    """Fill in the nearest centre of each pair of items begin to end."""
    for i in range(begin, end):
        for pair in range(starts[i], starts[i + 1]):
            j, least = second[pair], np.inf
            for centre in range(squares.size):
                product = along[i, centre] - along[j, centre]
                distance = squares[centre] - 2.0 * (abs(product) if folded else product)
                if distance < least:
                    least, found[pair] = distance, centre
