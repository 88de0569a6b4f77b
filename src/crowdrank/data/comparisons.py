"""Which items judgments are about, which of them they compare, and what is left of that without some of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..protocols import Bools, Counts, Ints
from .judgments import Judgments, Preferences, Rankings
from .mixed import Mixed


class Compared(NamedTuple):
    """Items that judgments are about, and pairs of items that they compare.

    ``places`` are columns of item codes, of judgments or of the rows of judgment ``owner``; ``pairs`` are two columns
    of items that are compared there, likewise. Grades stand on a scale of their own and compare nothing.
    """

    places: tuple[Ints, ...]
    owner: Ints | None
    pairs: tuple[Ints, Ints]
    pair_owner: Ints | None


def comparisons(judgments: Judgments) -> Compared:
    """Return what judgments of one kind are about, and what they compare."""
    if isinstance(judgments, Preferences):
        both = (judgments.left, judgments.right)
        return Compared(both, None, both, None)
    if isinstance(judgments, Rankings):
        owner = judgments.ranking
        first = np.flatnonzero(np.diff(owner) == 0)
        return Compared((judgments.item,), owner, (judgments.item[first], judgments.item[first + 1]), owner[first])
    return Compared((judgments.item,), None, (judgments.item[:0], judgments.item[:0]), None)


def _all_comparisons(parts: list[Compared], offsets: Counts) -> Compared:
    """The same of judgments of several kinds, which are numbered part after part."""

    def owners(owner: Ints | None, start: int, column: Ints) -> Counts:
        return start + (np.arange(len(column)) if owner is None else owner.astype(np.int64))

    starts = offsets[:-1].tolist()
    columns = [
        (column, owners(part.owner, start, column))
        for part, start in zip(parts, starts, strict=True)
        for column in part.places
    ]
    pair_owner = [owners(part.pair_owner, start, part.pairs[0]) for part, start in zip(parts, starts, strict=True)]
    items, owner = (np.concatenate(side) for side in zip(*columns, strict=True))
    left, right = (np.concatenate([part.pairs[side] for part in parts]) for side in (0, 1))
    return Compared((items,), owner, (left, right), np.concatenate(pair_owner))


class Links(NamedTuple):
    """What all judgments tell: which items were judged, and which groups of items they connect."""

    compared: Compared
    judged: Bools
    group: Ints
    n_joins: int

    @classmethod
    def of(cls, judgments: Judgments | Mixed) -> Links:
        """Return what the judgments tell."""
        from ..kernels.resampling import join_rows

        if isinstance(judgments, Mixed):
            each = [comparisons(part) for part in judgments.parts]
            compared = _all_comparisons(each, judgments.offsets)
        else:
            compared = comparisons(judgments)
        pairs = compared.pairs
        group, n_joins = join_rows(*pairs, np.ones(len(pairs[0]), bool), judgments.n_items)
        return cls(compared, judgments.judged_items, group, n_joins)

    def missing_in(self, drawn: Bools) -> tuple[int, bool]:
        """Return how many items are left without a drawn judgment, and whether others are no longer connected."""
        from ..kernels.resampling import join_rows, mark_drawn

        judged = np.zeros(len(self.judged), bool)
        places, owner, pairs, pair_owner = self.compared
        for items in places:
            mark_drawn(items, drawn if owner is None else drawn[owner], judged)
        n_lost = int(self.judged.sum() - judged.sum())
        if not len(pairs[0]):
            return n_lost, False
        compared = drawn if pair_owner is None else drawn[pair_owner]
        group, n_joins = join_rows(*pairs, compared, len(judged), self.n_joins)
        return n_lost, n_joins < self.n_joins and falls_apart(group, self.group, judged)


def falls_apart(group: Ints, whole: Ints, judged: Bools) -> bool:
    """Return whether judged items stand in more groups than they do as a whole."""
    return len(np.unique(group[judged])) > len(np.unique(whole[judged]))
