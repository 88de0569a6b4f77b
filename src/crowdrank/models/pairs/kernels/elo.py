"""Elo scores: from preferences in their order, and from decided pairs in random orders that do not depend on names.

For the second, items with the same structure number, see :mod:`~crowdrank.kernels.numbering`, form a
class with one score, and the pairs between two classes are one pair. Where a class has part in several pairs with the
same key, these are applied together in small steps, which is what all their orders come to on average. So is a pair
together with the one that takes its place when all outcomes are reversed.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.numbering import Numbers, mix_bits, structure_numbers
from ....kernels.segments import join_ties
from ....kernels.threads import bind, read_only, views
from ....protocols import Counts, Floats, Ints, Outcomes

_CELLS_PER_UNIT = 128.0
_MAX_GAP = 36.0
_LAST_PLACE = 2 * _MAX_GAP * _CELLS_PER_UNIT - 1e-9

_BUCKET_BITS = 10
_N_BUCKETS = 1 << _BUCKET_BITS
_BUCKET_SHIFT = np.uint64(64 - _BUCKET_BITS)

_MIN_LEAD = 1e-8
"""Leads of a query that differ by no more than this are one: the tolerance of a fit must not distinguish pairs."""


def elo_scores(left: Ints, right: Ints, outcome: Outcomes, weight: Floats | None, n_items: int, gain: float) -> Floats:
    """Return the scores (n_items,) in natural log odds after all rows (n,), beginning with 0.

    A row moves its left item up, and its right item down, by ``gain`` times its weight times what the outcome (1, 1/2
    or 0) exceeds the expectation ``1 / (1 + exp(right - left))`` by.
    """
    scores, gains, table = np.zeros(n_items), np.empty(0), logistic_table()
    if weight is None:
        table, half = gain * table, 0.5 * gain
    else:
        gains, half = gain * weight, 0.5
    sides = left.view(np.uint32), right.view(np.uint32)
    bind(_update, *views(*sides, outcome, gains, table), half, scores)()
    return scores


@cache
def logistic_table() -> Floats:
    """Return coefficients, lowest first, of a cubic for the logistic function less one half on each cell, (4 n_cells,).

    Cells are 1/128 wide, from -36 to 36, and the variable runs from 0 to 1 in each. The cubic meets the function at the
    cell's Chebyshev nodes, and is within 1e-12 of it between them.
    """
    begin = np.arange(2 * _MAX_GAP * _CELLS_PER_UNIT) / _CELLS_PER_UNIT - _MAX_GAP
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)
    values = 0.5 * np.tanh(0.5 * (begin[:, None] + nodes / _CELLS_PER_UNIT))
    return read_only((values @ np.linalg.inv(np.vander(nodes, increasing=True)).T).ravel())


@njit(cache=True, nogil=True, fastmath={"contract"})
def logistic_excess(gap, table):
    """Return the logistic function of the gap less one half, times the factor of the table."""
    # a call of exp for each row would take three times as long as all the rest
    place = gap * _CELLS_PER_UNIT + _MAX_GAP * _CELLS_PER_UNIT
    # a branch that is hardly ever taken, since what follows need not wait for it
    if not abs(gap) < _MAX_GAP - 1.0:
        place = place if place > 0.0 else 0.0
        place = place if place < _LAST_PLACE else _LAST_PLACE
    x = place - np.floor(place)
    at = np.uint64(4) * np.uint64(np.int64(place))
    return table[at] + x * (table[at + np.uint64(1)] + x * (table[at + np.uint64(2)] + x * table[at + np.uint64(3)]))


@njit(cache=True, nogil=True, fastmath={"contract"})
def _update(left, right, outcome, gain, table, half, scores):
    """Move the scores, (n_items,), row after row, (n,), each with a gain of its own where there are any."""
    for row in range(left.size):
        i, j = left[row], right[row]
        a, b = scores[i], scores[j]
        move = half * outcome[row] - logistic_excess(a - b, table)
        if gain.size:
            move *= gain[row]
        scores[i] = a + move
        scores[j] = b - move


class DecidedPairs(NamedTuple):
    """Pairs of classes of items with a known winner; those applied together follow each other.

    ``item_class`` (n_items,) is the class of each item. Over pairs are the ``winner`` and ``loser``, the ``weight``,
    and how many pairs each member of the winning and of the losing class has part in, ``per_winner`` and ``per_loser``.
    Those from ``starts[b]`` up to ``starts[b + 1]`` are applied together, and ``key`` (n_batches,) decides on their
    place in a random order. Where every pair is applied alone, ``starts`` and the two before it are empty.
    """

    item_class: Ints
    winner: Ints
    loser: Ints
    weight: Floats
    per_winner: Floats
    per_loser: Floats
    starts: Counts
    key: Numbers


def arrange_pairs(starts: Counts, second: Ints, lead: Floats, offsets: Counts) -> DecidedPairs:
    """Return decided pairs from compressed rows; ``lead`` (n_pairs,), -1 to 1, weighs them, above 0 if the lower won.

    ``offsets`` bound the items of the queries. Pairs without a lead are not applied.
    """
    decided, n_items = np.abs(lead) > _MIN_LEAD, len(starts) - 1
    if not decided.all():
        starts = np.concatenate([[0], np.cumsum(decided)])[starts]
        second, lead = second[decided], lead[decided]
    won, first = lead > 0, np.repeat(np.arange(n_items, dtype=np.int32), np.diff(starts))
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    # leads that are equal up to rounding are made equal, and each has a place among those of its query, from 1
    bounds = starts[offsets]
    weight = join_ties(np.abs(lead), bounds, np.full(len(bounds) - 1, _MIN_LEAD))
    of_pair = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    order = np.lexsort((weight, of_pair))
    climbed = np.cumsum(np.append(True, np.diff(weight[order]) != 0)[: len(order)])
    size = np.empty(len(order), np.int32)
    size[order] = climbed - climbed[bounds[:-1][of_pair]] + 1
    # a key for each pair, the same when all outcomes are reversed
    label = 2 * size.astype(np.uint64)
    numbers = structure_numbers(starts, second, label + won, label + ~won, offsets)
    reverse_numbers = structure_numbers(starts, second, label + ~won, label + won, offsets)
    key = np.empty(len(second), np.uint64)
    bind(_fill_keys, winner, loser, *views(size, numbers, reverse_numbers), key)()
    # classes of items with one structure number; items without a number are of their own
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    alone = np.where(numbers != 0, 0, 1 + np.arange(n_items))
    order, new = np.lexsort((alone, numbers, query)), np.zeros(n_items, bool)
    for values in (query, numbers, alone):
        new[1:] |= values[order][1:] != values[order][:-1]
    item_class = np.empty(n_items, np.int32)
    item_class[order] = np.cumsum(new)
    sizes = np.bincount(item_class)
    order = np.argsort(key)
    key = key[order]
    if len(sizes) == n_items and not (key[1:] == key[:-1]).any():
        winner, loser, none = item_class[winner[order]], item_class[loser[order]], np.empty(0)
        return DecidedPairs(item_class, winner, loser, weight[order], none, none, np.empty(0, np.int64), key)
    # equal pairs are merged, and those with one key in one query applied together
    order = order[np.lexsort((item_class[loser[order]], item_class[winner[order]], query[winner[order]], key))]
    where, weight = query[winner[order]], weight[order]
    winner, loser = item_class[winner[order]], item_class[loser[order]]
    together = np.ones(len(key), bool)
    together[1:] = (key[1:] != key[:-1]) | (where[1:] != where[:-1])
    differs = together.copy()
    differs[1:] |= (winner[1:] != winner[:-1]) | (loser[1:] != loser[:-1])
    begin = np.flatnonzero(differs)
    number = np.diff(np.append(begin, len(key)))
    winner, loser, batch = winner[begin], loser[begin], np.flatnonzero(together[begin])
    shares, bounds = (number / sizes[winner], number / sizes[loser]), np.append(batch, len(begin))
    return DecidedPairs(item_class, winner, loser, weight[begin], *shares, bounds, key[begin][batch])


@njit(cache=True, nogil=True)
def _fill_keys(winner, loser, size, numbers, reverse_numbers, key):
    """Fill in a key for each pair, (n,), that is the same when all outcomes are reversed."""
    for pair in range(winner.size):
        i, j = winner[pair], loser[pair]
        here = mix_bits(numbers[i] + mix_bits(numbers[j]))
        there = mix_bits(reverse_numbers[j] + mix_bits(reverse_numbers[i]))
        key[pair] = mix_bits(here + there + mix_bits(np.uint64(size[pair])))


def mean_elo_scores(pairs: DecidedPairs, gain: float, salts: Numbers, n_kept: int) -> Floats:
    """Return each item's mean score (n_items,), in natural log odds, over the last ``n_kept`` passes over the pairs.

    There is a pass for each of the salts, which its order is drawn from. A pair moves its winner up and its loser down
    by ``gain`` times its weight times the probability that the loser had of winning.
    """
    n_classes = int(pairs.item_class.max(initial=-1)) + 1
    scores, sums = np.zeros(n_classes), np.zeros(n_classes)
    _, winner, loser, moves, per_winner, per_loser, starts, key = views(*pairs)
    moves, table = read_only(gain * moves), logistic_table()
    order = np.empty(len(key), np.int32)
    in_order: Any = [np.empty_like(part) for part in (winner, loser, moves)] if not len(starts) else []
    for number, salt in enumerate(salts):
        if in_order:
            _update_one_by_one(key, salt, winner, loser, moves, in_order[0], in_order[1], in_order[2], table, scores)
        else:
            _update_batches(key, salt, starts, winner, loser, per_winner, per_loser, moves, order, table, scores)
        if number >= len(salts) - n_kept:
            sums += scores
    return sums[pairs.item_class] / n_kept


@njit(cache=True, nogil=True)
def _bucket_starts(key, salt):
    """First place of each bucket, (n_buckets,), by the first bits of a number drawn for each key."""
    place = np.zeros(_N_BUCKETS + 1, np.int64)
    for pair in range(key.size):
        place[np.int64(mix_bits(key[pair] ^ salt) >> _BUCKET_SHIFT) + 1] += 1
    for bucket in range(_N_BUCKETS):
        place[bucket + 1] += place[bucket]
    return place


@njit(cache=True, nogil=True)
def _update_one_by_one(key, salt, winner, loser, move, sorted_winner, sorted_loser, sorted_move, table, scores):
    """Move the scores, (n_classes,), pair after pair, (n,), in an order that the salt draws."""
    place = _bucket_starts(key, salt)
    # dealing out the pairs is quicker than looking up each at random
    for pair in range(key.size):
        bucket = np.int64(mix_bits(key[pair] ^ salt) >> _BUCKET_SHIFT)
        at = place[bucket]
        sorted_winner[at], sorted_loser[at], sorted_move[at] = winner[pair], loser[pair], move[pair]
        place[bucket] = at + 1
    for pair in range(key.size):
        i, j = np.uint32(sorted_winner[pair]), np.uint32(sorted_loser[pair])
        up = sorted_move[pair] * (0.5 - logistic_excess(scores[i] - scores[j], table))
        scores[i] += up
        scores[j] -= up


@njit(cache=True, nogil=True)
def _update_batches(key, salt, starts, winner, loser, per_winner, per_loser, move, order, table, scores):
    """Move the scores, (n_classes,), batch after batch, each in as many small steps as a class has pairs at most."""
    place, moved = _bucket_starts(key, salt), np.empty(winner.size)
    for batch in range(key.size):
        bucket = np.int64(mix_bits(key[batch] ^ salt) >> _BUCKET_SHIFT)
        order[place[bucket]] = batch
        place[bucket] += 1
    for batch in order:
        n_steps = 0.0
        for pair in range(starts[batch], starts[batch + 1]):
            n_steps += max(per_winner[pair], per_loser[pair])
        n_steps = np.ceil(n_steps)
        for _ in range(int(n_steps)):
            for pair in range(starts[batch], starts[batch + 1]):
                gap = scores[winner[pair]] - scores[loser[pair]]
                moved[pair] = move[pair] * (0.5 - logistic_excess(gap, table)) / n_steps
            for pair in range(starts[batch], starts[batch + 1]):
                scores[winner[pair]] += moved[pair] * per_winner[pair]
                scores[loser[pair]] -= moved[pair] * per_loser[pair]
