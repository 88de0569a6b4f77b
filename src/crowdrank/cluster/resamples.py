"""Resamples of packed judgments: the same parts under other weights, so that no more than a part is ever held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.judgments import Judgments, Links, Preferences, comparisons, falls_apart, weight_of_items
from ..data.parted import MANY_ITEMS
from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints
from ..resampling import Draws, check_draws, expect_room_for_scores, expect_units, unit_codes
from ..wording import option
from .packed import PackedJudgments

_MOST_COPIES = 20
_CHANCE_OF_COPIES = np.cumsum(np.exp(-1.0) / np.cumprod(np.append(1.0, np.arange(1.0, _MOST_COPIES))))
"""Probability of at most 0, 1, 2, ... copies of one judgment."""


@dataclass(frozen=True, eq=False)
class PartDraws:
    """How packed judgments are drawn again.

    Each judgment has a number of copies of its own, from a hash of its number, that of the resample and the seed: one
    on average, as many as in drawing all of them with replacement where they are many (Poisson). Annotators, groups and
    queries are drawn as :class:`~crowdrank.resampling.Draws` draws them of judgments in memory.

    Parameters
    ----------
    draws
        Number of resamples, what is drawn, and the seed.
    unit
        Unit of each annotator, group or query by its code, ``None`` where each judgment is its own.
    starts
        Number of judgments before each part.
    counted
        Whether weights are numbers of equal judgments, each of which is drawn by itself.
    """

    draws: Draws
    unit: Ints | None
    starts: Counts
    counted: bool

    def weights(self, part: Judgments, number: int, resample: int) -> Floats:
        """Return the weight of each judgment of a part in one of the resamples; 0 where it was not drawn."""
        from ..kernels.numbering import mix_bits

        if self.unit is not None:
            copies = self.draws.copies(resample)[self.unit[unit_codes(part, self.draws.resample)]]
            return np.asarray(copies * part.row_weight, np.float64)
        own = part.judgment if isinstance(part, Preferences) and part.judgment is not None else np.arange(len(part))
        # a number from 0 to 1 for each judgment, the same on every machine
        key = mix_bits(mix_bits(np.array([self.draws.seed], np.uint64)) + np.uint64(resample))
        bits = mix_bits(mix_bits(own.astype(np.uint64) + np.uint64(self.starts[number])) + key)
        chance = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
        if self.counted and part.weight is not None:
            from scipy.stats import poisson

            return np.asarray(poisson.ppf(chance, part.weight), np.float64)
        return np.searchsorted(_CHANCE_OF_COPIES, chance, side="right") * part.row_weight


@dataclass(frozen=True, eq=False)
class ResampledJudgments:
    """Packed judgments in one of the resamples; all but the weights is that of the packed ones."""

    packed: PackedJudgments
    plan: PartDraws
    resample: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("packed", "plan", "resample"):
            raise AttributeError(name)
        return getattr(self.packed, name)

    def __len__(self) -> int:
        return len(self.packed)

    def part(self, number: int) -> Judgments:
        """Return the judgments of one part that were drawn, with their weights."""
        part = self.packed.part(number)
        return part.with_weights(self.plan.weights(part, number, self.resample))

    def parts(self) -> Iterator[Judgments]:
        """Yield the drawn judgments of each part in turn."""
        for number in range(self.packed.n_parts):
            yield self.part(number)


def plan_part_draws(packed: PackedJudgments, n: int, resample: str, seed: int) -> PartDraws:
    """Return how packed judgments are to be drawn again ``n`` times, or say why they cannot be."""
    check_draws(n, resample, seed)
    if packed.n_items > MANY_ITEMS and not packed.keeps_ranking:
        raise ParameterError(
            f"{option('bootstrap')} holds the scores of every resample, and these {packed.n_items:,} items stay in "
            f"Parquet; leave it out, or pack up to {MANY_ITEMS:,} items at a time"
        )
    expect_room_for_scores(n, packed.n_items)
    starts = np.concatenate([[0], np.cumsum(packed.rows_of_parts)])
    if resample == "judgment":
        weights = (part.weight for part in packed.parts())
        counted = all(weight is None or bool((weight == np.round(weight)).all()) for weight in weights)
        return PartDraws(Draws(int(n), resample, seed, packed.rows), None, starts, counted)
    used = np.bincount(np.concatenate([np.unique(unit_codes(part, resample)) for part in packed.parts()])) > 0
    expect_units(int(used.sum()), resample)
    unit = (np.cumsum(used) - 1).astype(np.int32)
    return PartDraws(Draws(int(n), resample, seed, int(used.sum())), unit, starts, counted=False)


def lost_and_apart(packed: PackedJudgments, plan: PartDraws, resample: int) -> tuple[int, bool]:
    """Return how many items a resample leaves without a judgment, and whether others are no longer connected."""
    if packed.by == "query":
        n_lost, apart = 0, False
        for number, part in enumerate(packed.parts()):
            lost, falls = Links.of(part).missing_in(plan.weights(part, number, resample) > 0)
            n_lost, apart = n_lost + lost, apart or falls
        return n_lost, apart
    n = packed.n_items
    whole, drawn = (_Joined(np.zeros(n, bool), np.arange(n, dtype=np.int32)) for _ in range(2))
    for number, part in enumerate(packed.parts()):
        whole.add(part)
        drawn.add(part.select(np.flatnonzero(plan.weights(part, number, resample))))
    lost = int(whole.judged.sum() - drawn.judged.sum())
    return lost, falls_apart(drawn.group, whole.group, drawn.judged)


@dataclass
class _Joined:
    """Which items were judged, and the group that each is connected with, over the parts added so far."""

    judged: Any
    group: Any

    def add(self, part: Judgments) -> None:
        """Take in the judgments of a part."""
        from ..kernels.pairs import join_rows

        self.judged |= part.judged_items
        places = np.arange(len(self.group), dtype=np.int32)
        first, second = comparisons(part).pairs
        first, second = np.append(first, places), np.append(second, self.group)
        self.group = join_rows(first, second, np.ones(len(first), bool), len(self.group))[0]


def weight_of_packed_items(packed: PackedJudgments) -> Floats:
    """Return the weight of the judgments that each item is part of, (n_items,)."""
    total = np.zeros(packed.n_items)
    for number, part in enumerate(packed.parts()):
        total[packed.item_codes(number)] += weight_of_items(part)
    return total
