"""Pairs of items: those that were judged, and those that may be asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data.consensus import Consensus
from ..data.judged import pairs_within
from ..data.judgments import Preferences
from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints
from .situation import Situation, falling_order, sorted_unique, thing_keys, tie_draws

_MAX_PAIRS, _MAX_PAIRS_ANY_BUDGET = 5_000_000, 300_000
"""All pairs are candidates up to these numbers, the second one whatever the budget; of more, some are drawn."""

_SPARE_PAIRS, _MIN_FRESH_SHARE = 1_000, 0.05

_NEIGHBOURS_PER_ITEM = 10
"""Each item is paired with this many that follow it in the order."""


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Distinct pairs of items that were judged, whatever their sides.

    Parameters
    ----------
    key
        Number of each pair, rising: that of its lower item times the number of items, plus the higher one.
    count
        How often each was judged.
    """

    key: Counts
    count: Counts

    @classmethod
    def of(cls, preferences: Preferences) -> Self:
        """Return the pairs of preferences."""
        keys = thing_keys({"left": preferences.left, "right": preferences.right}, preferences.n_items)
        return cls(*np.unique(keys, return_counts=True))

    def counts(self, key: Counts) -> Counts:
        """Return how often each of some pairs was judged."""
        place = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        if not len(self.key):
            return np.zeros(len(key), np.int64)
        return np.where(self.key[place] == key, self.count[place], 0)


def pairs_below(situation: Situation, asked: JudgedPairs, k: int) -> tuple[Ints, Ints, Counts]:
    """Return pairs of askable items of one query that were judged less than ``k`` times, and how often each was.

    They come in random order, the least judged first. Where there are many, about twice as many are drawn as the budget
    pays for.
    """
    rng = np.random.default_rng(situation.seed)
    if not len(asked.key) and situation.pairs is None:
        left, right = balanced_pairs(situation, rng)
        return left, right, np.zeros(len(left), np.int64)
    first, second = candidate_pairs(situation, situation.n_to_choose, len(asked.key), rng)
    count = asked.counts(first.astype(np.int64) * situation.judgments.n_items + second)
    keep = np.flatnonzero(count < k)
    keep = keep[np.lexsort((rng.random(len(keep)), count[keep]))]
    return first[keep], second[keep], count[keep]


def balanced_pairs(situation: Situation, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return pairs of askable items in rounds, in each of which every item stands once on either side.

    Items of a query stand in a random circle, and those of round ``d`` are paired with the ``d``-th after them. The
    first round connects all items. There are as many rounds as the budget pays for.
    """
    items = np.flatnonzero(situation.askable).astype(np.int32)
    query = situation.judgments.items.query[items]
    items = items[np.lexsort((rng.random(len(items)), query))]
    sizes = np.bincount(query, minlength=situation.judgments.n_queries)
    number = situation.n_to_choose
    total = int((sizes * (sizes - 1) // 2).sum())
    if number is None and total > _MAX_PAIRS:
        raise ParameterError(f"there are {total:,} pairs that could be asked about; give a budget")
    size, start = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(items)) - start
    rounds: list[tuple[Ints, Ints]] = []
    n_pairs = 0
    for distance in range(1, int(sizes.max(initial=0)) // 2 + 1):
        # half way round the circle each pair comes up twice
        here = np.flatnonzero((2 * distance < size) | ((2 * distance == size) & (place < distance)))
        here = rng.permutation(here)
        rounds.append((items[here], items[start[here] + (place[here] + distance) % size[here]]))
        n_pairs += len(here)
        if number is not None and n_pairs >= number:
            break
    nothing = np.empty(0, np.int32)
    left, right = (np.concatenate([nothing, *(one[side] for one in rounds)]) for side in (0, 1))
    return left, right


def listed_pairs(pairs: tuple[Ints, Ints], n_items: int) -> tuple[Ints, Ints]:
    """Return each of some pairs once, the lower item first, in rising order."""
    keys = sorted_unique(thing_keys({"left": pairs[0], "right": pairs[1]}, n_items))
    return (keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32)


def candidate_pairs(
    situation: Situation, number: int | None, n_asked: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return pairs of askable items of one query, the lower item first, in rising order.

    All of them; or, where there are many, so many at random that twice ``number`` are fresh if ``n_asked`` are not.
    """
    if situation.pairs is not None:
        return listed_pairs(situation.pairs, situation.judgments.n_items)
    items = np.flatnonzero(situation.askable).astype(np.int32)
    sizes = np.bincount(situation.judgments.items.query[items], minlength=situation.judgments.n_queries)
    n_pairs = sizes * (sizes - 1) // 2
    total = int(n_pairs.sum())
    fresh = max(1 - n_asked / max(total, 1), _MIN_FRESH_SHARE)
    drawn = _MAX_PAIRS if number is None else int((2 * number + _SPARE_PAIRS) / fresh)
    if total <= (_MAX_PAIRS if number is None else min(max(drawn, _MAX_PAIRS_ANY_BUDGET), _MAX_PAIRS)):
        ends = np.repeat(np.cumsum(sizes), sizes)
        first, second = pairs_within(np.arange(len(items)), ends)
        return items[first], items[second]
    if number is None:
        raise ParameterError(f"there are {total:,} pairs that could be asked about; give a budget")
    drawn = min(drawn, _MAX_PAIRS)
    of = rng.choice(len(sizes), drawn, p=n_pairs / total)
    one = (rng.random(drawn) * sizes[of]).astype(np.int64)
    other = (one + 1 + (rng.random(drawn) * (sizes[of] - 1)).astype(np.int64)) % sizes[of]
    start = (np.cumsum(sizes) - sizes)[of]
    low, high = listed_pairs(((one + start).astype(np.int32), (other + start).astype(np.int32)), len(items))
    return items[low], items[high]


def pairs_near(situation: Situation, consensus: Consensus) -> tuple[Ints, Ints]:
    """Return pairs of askable items of one query that stand near each other in the order."""
    if situation.pairs is not None:
        return listed_pairs(situation.pairs, situation.judgments.n_items)
    items = np.flatnonzero(situation.askable)
    query = consensus.items.query[items]
    by_score = falling_order(consensus.scores[items], tie_draws(situation.seed, len(items)))
    order = items[by_score[np.argsort(query[by_score], kind="stable")]]
    query = consensus.items.query[order]
    pairs = [
        (order[:-step], order[step:], query[:-step] == query[step:]) for step in range(1, _NEIGHBOURS_PER_ITEM + 1)
    ]
    left = np.concatenate([one[same] for one, _, same in pairs])
    right = np.concatenate([other[same] for _, other, same in pairs])
    return left.astype(np.int32), right.astype(np.int32)


_MIN_VARIANCE, _MIN_Z = 1e-12, 1e-6
"""Below these a variance, or a difference in standard deviations, is taken as this small to divide by it."""


def wrong_now(gap: Floats, spread: Floats) -> Floats:
    """Return the probability that the order of two scores is wrong, by their difference and its variance."""
    from scipy.special import ndtr

    probability: Floats = ndtr(-np.abs(gap) / np.sqrt(np.maximum(spread, _MIN_VARIANCE)))
    return probability


def wrong_after(gap: Floats, spread: Floats, left: Floats) -> Floats:
    """Return what that probability is expected to be once preferences have brought the variance down to ``left``.

    With z standard deviations between the scores, and a share r of the variance left, it is 2 T(z, sqrt(r / (1 - r))),
    where T is Owen's function [Owen56]_.
    """
    from scipy.special import owens_t

    probability = wrong_now(gap, spread)
    use = np.flatnonzero(left < spread * (1 - _MIN_VARIANCE))
    before = spread[use]
    probability[use] = 2 * owens_t(np.abs(gap[use]) / np.sqrt(before), np.sqrt(left[use] / (before - left[use])))
    return probability


def order_gain(gap: Floats, sure: Floats, usual: Floats) -> Floats:
    """Return by how much one preference is expected to lower the probability that the order of each pair is wrong.

    ``gap`` is the difference of the scores of a pair, ``sure`` the probability of its likelier order, ``usual`` the
    variance of the difference where the scores are equal; preferences are taken as those of a Bradley-Terry model.
    """
    from scipy.special import expit, ndtri

    z = ndtri(np.clip(sure, 0.5, 1 - _MIN_VARIANCE))
    gap = np.abs(gap)
    spread = np.where(z > _MIN_Z, (gap / np.maximum(z, _MIN_Z)) ** 2, usual)
    chance = expit(gap / np.sqrt(1 + np.pi / 8 * spread))
    left = spread / (1 + chance * (1 - chance) * spread)
    return np.maximum(1 - sure - wrong_after(gap, spread, left), 0.0)
