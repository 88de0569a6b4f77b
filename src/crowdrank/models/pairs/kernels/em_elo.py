"""Elo scores of items from games of known result, played over and over in orders that do not depend on names.

Items whose contests look alike, see :mod:`~crowdrank.kernels.structure`, have one score between them, and the games
between two such classes are one game. Where a player has part in several of these at once, they are played together in
small steps, which is what all orders of playing them come to on average. So is a game together with that which takes
its place when all results are turned round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.structure import Numbers, mixed, structure_numbers
from ....kernels.threads import read_only
from ....kernels.ties import join_ties
from ....protocols import Bools, Counts, Floats, Ints
from .elo import excess, logistic_table

_BITS = 10
_BUCKETS = 1 << _BITS
_SHIFT = np.uint64(64 - _BITS)

_EQUAL_LEADS = 1e-8
"""Leads of a query that differ by no more than this are one: what a fit leaves open must not tell games apart."""


class Games(NamedTuple):
    """Games of classes of items, those played together one after the other.

    ``player`` (n_items,) is the class of each item. Over games are the ``winner`` and ``loser``, the ``weight``, and in
    how many of them each member of the winning and of the losing class has part, ``of_winner`` and ``of_loser``. Those
    from ``starts[b]`` up to ``starts[b + 1]`` are played together, and ``key`` (n_batches,) is what the order is drawn
    from. Where every game is played alone, by items of their own class, ``starts`` and the two before it are empty.
    """

    player: Ints
    winner: Ints
    loser: Ints
    weight: Floats
    of_winner: Floats
    of_loser: Floats
    starts: Counts
    key: Numbers


def arrange_games(starts: Counts, second: Ints, lead: Floats, offsets: Counts) -> Games:
    """Return the games of pairs in compressed rows; ``lead`` (n_pairs,), -1 to 1, weighs them, above 0 the lower won.

    ``offsets`` bound the items of the queries. Pairs without a lead are not played.
    """
    decided = np.abs(lead) > _EQUAL_LEADS
    if not decided.all():
        starts = np.concatenate([[0], np.cumsum(decided)])[starts]
        second, lead = second[decided], lead[decided]
    won, first = lead > 0, np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    weight, size = _sizes(np.abs(lead), starts[offsets])
    key, numbers = _keys(starts, second, size, won, winner, loser, offsets)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    player, sizes = _classes(numbers, query)
    order = np.argsort(key)
    key = key[order]
    if len(sizes) == len(query) and not (key[1:] == key[:-1]).any():
        winner, loser, none = player[winner[order]], player[loser[order]], np.empty(0)
        return Games(player, winner, loser, weight[order], none, none, np.empty(0, np.int64), key)
    order = order[np.lexsort((player[loser[order]], player[winner[order]], query[winner[order]], key))]
    return _merged(player, sizes, winner[order], loser[order], weight[order], key, query)


def _sizes(lead: Floats, bounds: Counts) -> tuple[Floats, Ints]:
    """Leads with equal ones of a query made one, and the place of each among those of its query, from 1."""
    weight = join_ties(lead, bounds, np.full(len(bounds) - 1, _EQUAL_LEADS))
    query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    order = np.lexsort((weight, query))
    climbed = np.cumsum(np.append(True, np.diff(weight[order]) != 0)[: len(order)])
    size = np.empty(len(order), np.int32)
    size[order] = climbed - climbed[bounds[:-1][query]] + 1
    return weight, size


def _keys(
    starts: Counts, second: Ints, size: Ints, won: Bools, winner: Ints, loser: Ints, offsets: Counts
) -> tuple[Numbers, Numbers]:
    """A key for each game, the same when all results are turned round, and the structure number of each item."""
    label = 2 * size.astype(np.uint64)
    sides = (label + won, label + ~won)
    numbers = structure_numbers(starts, second, *sides, offsets)
    turned = structure_numbers(starts, second, *sides[::-1], offsets)
    key = np.empty(len(second), np.uint64)
    _fill_keys(winner, loser, read_only(size), read_only(numbers), read_only(turned), key)
    return key, numbers


def _classes(numbers: Numbers, query: Counts) -> tuple[Ints, Counts]:
    """Class of each item, (n_items,), those without a number being of their own, and the size of each class."""
    alone = np.where(numbers != 0, 0, 1 + np.arange(len(numbers)))
    order = np.lexsort((alone, numbers, query))
    new = np.zeros(len(order), bool)
    for values in (query, numbers, alone):
        new[1:] |= values[order][1:] != values[order][:-1]
    player = np.empty(len(order), np.int32)
    player[order] = np.cumsum(new)
    return player, np.bincount(player)


def _merged(
    player: Ints, sizes: Counts, winner: Ints, loser: Ints, weight: Floats, key: Numbers, query: Counts
) -> Games:
    """Games in their order with equal ones made one, and the bounds of those that are played together."""
    where, winner, loser = query[winner], player[winner], player[loser]
    together = np.ones(len(key), bool)
    together[1:] = (key[1:] != key[:-1]) | (where[1:] != where[:-1])
    new = together.copy()
    new[1:] |= (winner[1:] != winner[:-1]) | (loser[1:] != loser[:-1])
    begin = np.flatnonzero(new)
    number = np.diff(np.append(begin, len(key)))
    winner, loser = winner[begin], loser[begin]
    batch = np.flatnonzero(together[begin])
    bounds, shares = np.append(batch, len(begin)), (number / sizes[winner], number / sizes[loser])
    return Games(player, winner, loser, weight[begin], shares[0], shares[1], bounds, key[begin][batch])


@njit(cache=True, nogil=True)
def _fill_keys(winner: Ints, loser: Ints, size: Any, numbers: Any, turned: Any, key: Any) -> None:
    """Fill in a key for each game, (n,), that is the same when all results are turned round."""
    for game in range(winner.size):
        i, j = winner[game], loser[game]
        here = mixed(numbers[i] + mixed(numbers[j]))
        there = mixed(turned[j] + mixed(turned[i]))
        key[game] = mixed(here + there + mixed(np.uint64(size[game])))


def play(games: Games, gain: float, salts: Numbers, n_kept: int) -> Floats:
    """Return each item's mean score (n_items,), in natural log odds, over the last ``n_kept`` passes over the games.

    There is a pass for each of the salts, which its order is drawn from. A game moves its winner up and its loser down
    by ``gain`` times its weight times the probability that the loser had of winning.
    """
    n_players = int(games.player.max(initial=-1)) + 1
    scores, sums = np.zeros(n_players), np.zeros(n_players)
    key, starts, moves = read_only(games.key), read_only(games.starts), read_only(gain * games.weight)
    winner, loser, table = read_only(games.winner), read_only(games.loser), read_only(logistic_table().ravel())
    of_winner, of_loser = read_only(games.of_winner), read_only(games.of_loser)
    order = np.empty(len(key), np.int32)
    dealt: Any = [np.empty_like(part) for part in (winner, loser, moves)] if not len(starts) else []
    for number, salt in enumerate(salts):
        if dealt:
            _play_alone(key, salt, winner, loser, moves, dealt[0], dealt[1], dealt[2], table, scores)
        else:
            _play_together(key, salt, starts, winner, loser, of_winner, of_loser, moves, order, table, scores)
        if number >= len(salts) - n_kept:
            sums += scores
    mean: Floats = sums[games.player] / n_kept
    return mean


@njit(cache=True, nogil=True)
def _places(key: Any, salt: Any) -> Any:
    """Where the bucket of the first bits of a number drawn for each begins, (n_buckets,)."""
    place = np.zeros(_BUCKETS + 1, np.int64)
    for game in range(key.size):
        place[np.int64(mixed(key[game] ^ salt) >> _SHIFT) + 1] += 1
    for bucket in range(_BUCKETS):
        place[bucket + 1] += place[bucket]
    return place


@njit(cache=True, nogil=True)
def _play_alone(
    key: Any, salt: Any, winner: Ints, loser: Ints, move: Floats, dealt_winner: Ints, dealt_loser: Ints,
    dealt_move: Floats, table: Floats, scores: Floats,
) -> None:  # fmt: skip
    """Move the scores, (n_players,), game after game, (n,), in an order that the salt draws."""
    place = _places(key, salt)
    # dealing out the games is quicker than looking up each at random
    for game in range(key.size):
        bucket = np.int64(mixed(key[game] ^ salt) >> _SHIFT)
        at = place[bucket]
        dealt_winner[at], dealt_loser[at], dealt_move[at] = winner[game], loser[game], move[game]
        place[bucket] = at + 1
    for game in range(key.size):
        i, j = np.uint32(dealt_winner[game]), np.uint32(dealt_loser[game])
        up = dealt_move[game] * (0.5 - excess(scores[i] - scores[j], table))
        scores[i] += up
        scores[j] -= up


@njit(cache=True, nogil=True)
def _play_together(
    key: Any, salt: Any, starts: Counts, winner: Ints, loser: Ints, of_winner: Floats, of_loser: Floats, move: Floats,
    order: Any, table: Floats, scores: Floats,
) -> None:  # fmt: skip
    """Move the scores, (n_players,), batch after batch, as many small steps each as a player has games at most."""
    place, moved = _places(key, salt), np.empty(winner.size)
    for batch in range(key.size):
        bucket = np.int64(mixed(key[batch] ^ salt) >> _SHIFT)
        order[place[bucket]] = batch
        place[bucket] += 1
    for batch in order:
        n_steps = 0.0
        for game in range(starts[batch], starts[batch + 1]):
            n_steps += max(of_winner[game], of_loser[game])
        n_steps = np.ceil(n_steps)
        for _ in range(int(n_steps)):
            for game in range(starts[batch], starts[batch + 1]):
                gap = scores[winner[game]] - scores[loser[game]]
                moved[game] = move[game] * (0.5 - excess(gap, table)) / n_steps
            for game in range(starts[batch], starts[batch + 1]):
                scores[winner[game]] += moved[game] * of_winner[game]
                scores[loser[game]] -= moved[game] * of_loser[game]
