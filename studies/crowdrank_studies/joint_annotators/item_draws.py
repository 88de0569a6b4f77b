"""How sure a difference between two schemes is, where pairs share items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.protocols import Bools, Floats, Outcomes

from .schemes import Fused, Pairs


class Difference(NamedTuple):
    """One scheme less another in per cent of pairs, with the bounds of 95 % of the draws."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> int:
        """Sign of a difference whose bounds are on one side of 0, else 0."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True, eq=False)
class ItemDraws:
    """Items drawn again with replacement; a pair counts as often as both of its items were drawn, multiplied.

    Pairs of one item have much in common, so a test over pairs as if each were another observation, McNemar's for
    one, takes almost any difference for a real one.

    Parameters
    ----------
    pairs
        Pairs of items.
    n_items
        Number of items.
    counted
        Which of the pairs count.
    n_draws
        Number of draws.
    seed
        Seed of the draws.
    """

    pairs: Pairs
    n_items: int
    counted: Bools
    n_draws: int = 1000
    seed: int = 0

    @cached_property
    def _copies(self) -> Floats:
        """How often each item is in each draw."""
        rng = np.random.default_rng(self.seed)
        share = np.full(self.n_items, 1 / self.n_items)
        return rng.multinomial(self.n_items, share, size=self.n_draws).astype(np.float64)

    @cached_property
    def _number(self) -> Floats:
        """Pairs in each draw."""
        return self._sums(self.counted.astype(np.float64))

    def difference(self, first: Fused, second: Fused, truth: Outcomes) -> Difference:
        """Return by how much one scheme tells more pairs right than another; a tie counts one half."""
        better = _which_is_right(first, second, truth) * self.counted
        drawn = 100 * self._sums(better) / self._number
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Difference(100 * float(better.sum() / self.counted.sum()), float(low), float(high))

    def _sums(self, values: Floats) -> Floats:
        """Sum over the pairs of each draw."""
        table = np.zeros((self.n_items, self.n_items))
        table[self.pairs.left, self.pairs.right] = values
        sums: Floats = np.einsum("di,di->d", self._copies @ table, self._copies)
        return sums


def mcnemar(first: Fused, second: Fused, truth: Outcomes) -> float:
    """Return McNemar's z over pairs as if they were independent, above 0 where the first scheme is right more often."""
    better = _which_is_right(first, second, truth)
    return float(better.sum() / np.sqrt(max((better**2).sum(), 1.0)))


def _which_is_right(first: Fused, second: Fused, truth: Outcomes) -> Floats:
    """1 for pairs that the first scheme alone tells right, -1 for those of the second; a tie counts one half."""
    better: Floats = (np.sign(first.lead) - np.sign(second.lead)) * truth / 2
    return better
