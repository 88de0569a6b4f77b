"""Who judges what: designs that give each simulated annotator items, pairs or queries.

A design is a small frozen description; ``rows(items, n_annotators, seed=0)`` draws from it. No annotator gets the same
item, pair or query twice (but see `RoundRobin`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.index import Items
from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints
from .known import Seed, spread_offsets

_LISTED_PAIRS = 1 << 21


class _Design:
    """What all designs check: their numbers are whole and at least 1."""

    def __post_init__(self) -> None:
        for name in ("k", "panel", "length", "n_items", "n_judgments"):
            count = getattr(self, name, None)
            if count is not None and not (count >= 1 and float(count).is_integer()):
                raise ParameterError(f"{name} must be a whole number of at least 1, not {count}")


@dataclass(frozen=True, kw_only=True)
class PerItem(_Design):
    """Every item is graded by k annotators.

    Parameters
    ----------
    k
        Annotators per item.
    panel
        Annotators who work on a query, drawn for each query; an item's k are drawn from them. ``None``: the whole pool.
    """

    k: int = 3
    panel: int | None = None

    def rows(self, items: Items, n_annotators: int, *, seed: Seed = 0) -> tuple[Ints, Ints]:
        """Return item and annotator of each grade to ask for."""
        counts = np.full(len(items), self.k, np.int64)
        annotator = _annotators(counts, items.query, items.n_queries, n_annotators, self.panel, seed)
        return np.repeat(np.arange(len(items), dtype=np.int32), self.k), annotator


@dataclass(frozen=True, kw_only=True)
class RoundRobin(_Design):
    """Grades bought one after the other: items of a random order once each, then the same items again [KumarLease11]_.

    Designs of one seed are nested. The first rows do not change when ``n_judgments`` grows, nor do the first
    ``n_items`` rows when ``n_items`` grows with it, which makes single and repeated labelling comparable in pairs.

    Parameters
    ----------
    n_items
        Items that get a grade.
    n_judgments
        Grades in all; as many as items means each item once.
    distinct
        Whether nobody grades per item twice; the paper draws every annotator from the whole pool.
    """

    n_items: int
    n_judgments: int
    distinct: bool = True

    def rows(self, items: Items, n_annotators: int, *, seed: Seed = 0) -> tuple[Ints, Ints]:
        """Return item and annotator of each grade, in the order asked."""
        if self.n_items > len(items):
            raise ParameterError(f"n_items must be at most {len(items)}, the items there are, not {self.n_items}")
        order_rng, annotator_rng = np.random.default_rng(seed).spawn(2)
        turn = np.arange(self.n_judgments)
        item = order_rng.permutation(len(items)).astype(np.int32)[turn % self.n_items]
        uniform = annotator_rng.random(self.n_judgments)
        if not self.distinct:
            return item, (uniform * n_annotators).astype(np.int32)
        by_item = np.argsort(turn % self.n_items, kind="stable")
        counts = np.bincount(turn % self.n_items, minlength=self.n_items)
        annotator = np.empty(self.n_judgments, np.int32)
        annotator[by_item] = _distinct(uniform[by_item], counts, n_annotators, "item")
        return item, annotator


@dataclass(frozen=True, kw_only=True)
class RandomPairs(_Design):
    """Random pairs of items of one query, each pair by k annotators.

    No pair is drawn twice; where a query has too few pairs, further annotators are asked about them, in turn.
    The sides are drawn by a fair coin.

    Parameters
    ----------
    per_item
        Preferences each item takes part in, on average.
    k
        Annotators per pair.
    panel
        Annotators who work on a query, drawn for each query; ``None``: the whole pool.
    """

    connected: ClassVar[bool] = False
    per_item: float = 10.0
    k: int = 1
    panel: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.per_item < np.inf:
            raise ParameterError(f"per_item must be a positive number, not {self.per_item}")

    def rows(self, items: Items, n_annotators: int, *, seed: Seed = 0) -> tuple[Ints, Ints, Ints]:
        """Return left item, right item and annotator of each preference to ask for."""
        from .kernels.sampling import distinct_draws

        pair_rng, annotator_rng = np.random.default_rng(seed).spawn(2)
        sizes = np.diff(items.offsets)
        possible = sizes * (sizes - 1) // 2
        wanted = np.where(possible > 0, np.ceil(sizes * self.per_item / 2), 0).astype(np.int64)
        tree = np.maximum(sizes - 1, 0) if self.connected else np.zeros_like(sizes)
        n_pairs = np.minimum(np.maximum(-(-wanted // self.k), tree), possible)
        query = np.repeat(np.arange(len(sizes)), n_pairs)
        # distinct pairs, shuffled where they are not too many
        listed = possible <= np.maximum(_LISTED_PAIRS, 4 * n_pairs)
        shuffled, offsets = np.where(listed, n_pairs, 0), spread_offsets(n_pairs)
        uniform = pair_rng.random(int(shuffled.sum()))
        number = np.empty(len(query), np.int64)
        drawn = distinct_draws(uniform, spread_offsets(shuffled), np.where(listed, possible, 0))
        number[np.repeat(listed, n_pairs)] = drawn
        for huge in np.flatnonzero(~listed):
            own = slice(offsets[huge], offsets[huge + 1])
            number[own] = pair_rng.choice(possible[huge], n_pairs[huge], replace=False)
        if tree.any():
            base, tree_query = spread_offsets(possible), np.repeat(np.arange(len(sizes)), tree)
            # a random tree over the items of every query: each item is linked to an earlier one
            offsets, of_item = spread_offsets(sizes), np.repeat(np.arange(len(sizes)), sizes)
            order = np.lexsort((pair_rng.random(len(of_item)), of_item)) - offsets[of_item]
            place = np.arange(len(of_item)) - offsets[of_item]
            parent = order[offsets[of_item] + (pair_rng.random(len(of_item)) * place).astype(np.int64)]
            low, high = np.minimum(order, parent)[place > 0], np.maximum(order, parent)[place > 0]
            tree_number = high * (high - 1) // 2 + low
            # as many pairs were drawn as are wanted, so enough are left beside the tree, whose pairs come first
            fresh = ~np.isin(base[query] + number, base[tree_query] + tree_number)
            query, number = query[fresh], number[fresh]
            kept = np.arange(len(query)) - np.searchsorted(query, query) < (n_pairs - tree)[query]
            query, number = np.concatenate([tree_query, query[kept]]), np.concatenate([tree_number, number[kept]])
            by_query = np.argsort(query, kind="stable")
            query, number = query[by_query], number[by_query]
        # preferences left over once every pair has its share go to the first pairs of the query
        judged = np.maximum(wanted, n_pairs * self.k)
        place = np.arange(len(query)) - spread_offsets(n_pairs)[query]
        counts = judged[query] // n_pairs[query] + (place < judged[query] % n_pairs[query])
        left, right = _sides(items, query, number, counts, pair_rng)
        return left, right, _annotators(counts, query, items.n_queries, n_annotators, self.panel, annotator_rng)


@dataclass(frozen=True, kw_only=True)
class ConnectedPairs(RandomPairs):
    """Random pairs that connect all items of a query: a random tree over its items first, then further pairs.

    Parameters are those of `RandomPairs`; the tree is asked for even where ``per_item`` alone would not pay for it.
    """

    connected: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class AllPairs(_Design):
    """Every pair of items of one query by k annotators; the sides are drawn by a fair coin.

    Parameters
    ----------
    k
        Annotators per pair.
    panel
        Annotators who work on a query, drawn for each query; ``None``: the whole pool.
    """

    k: int = 1
    panel: int | None = None

    def rows(self, items: Items, n_annotators: int, *, seed: Seed = 0) -> tuple[Ints, Ints, Ints]:
        """Return left item, right item and annotator of each preference to ask for."""
        pair_rng, annotator_rng = np.random.default_rng(seed).spawn(2)
        query, number = all_pairs(np.diff(items.offsets))
        counts = np.full(len(query), self.k, np.int64)
        annotator = _annotators(counts, query, items.n_queries, n_annotators, self.panel, annotator_rng)
        return (*_sides(items, query, number, counts, pair_rng), annotator)


@dataclass(frozen=True, kw_only=True)
class PerQuery(_Design):
    """Every query is ranked by k annotators.

    Parameters
    ----------
    k
        Annotators per query.
    length
        Items in a ranking, drawn afresh for each; ``None`` or more than there are: all items of the query.
    """

    k: int = 5
    length: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length == 1:
            raise ParameterError("length must be at least 2: a ranking of one item says nothing")

    def rows(self, items: Items, n_annotators: int, *, seed: Seed = 0) -> tuple[Ints, Ints, Counts, Counts]:
        """Return query and annotator of each ranking, then the places (0 = best) and bounds of its items."""
        annotator_rng, subset_rng = np.random.default_rng(seed).spawn(2)
        filled = np.flatnonzero(np.diff(items.offsets))
        query = np.repeat(filled, self.k).astype(np.int32)
        counts = np.full(len(filled), self.k, np.int64)
        annotator = _distinct(annotator_rng.random(len(query)), counts, n_annotators, "query")
        sizes = np.diff(items.offsets)[query]
        lengths = sizes if self.length is None else np.minimum(sizes, self.length)
        offsets = spread_offsets(lengths)
        ranking = np.repeat(np.arange(len(query)), lengths)
        place = np.arange(len(ranking)) - offsets[ranking]
        if self.length is not None:
            from .kernels.sampling import distinct_draws

            drawn = distinct_draws(subset_rng.random(len(ranking)), offsets, sizes)
            place = drawn[np.lexsort((drawn, ranking))]
        return query, annotator, place, offsets


def all_pairs(sizes: Counts) -> tuple[Ints, Counts]:
    """Return query and number within the query of every pair of items, for queries of the given sizes."""
    possible = sizes * (sizes - 1) // 2
    query = np.repeat(np.arange(len(sizes), dtype=np.int32), possible)
    return query, np.arange(len(query)) - spread_offsets(possible)[query]


def pair_places(number: Counts) -> tuple[Counts, Counts]:
    """Return the two places i < j of each pair, numbered j (j - 1) / 2 + i."""
    later = ((1 + np.sqrt(1 + 8 * number.astype(float))) / 2).astype(np.int64)
    # the square root may be off by one for large numbers
    later -= later * (later - 1) // 2 > number
    later += (later + 1) * later // 2 <= number
    return number - later * (later - 1) // 2, later


def _sides(
    items: Items, query: Ints | Counts, number: Counts, counts: Counts, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Left and right item of each preference: every pair as often as ``counts`` says, sides by a fair coin."""
    start = items.offsets[query]
    first, second = (np.repeat((start + place).astype(np.int32), counts) for place in pair_places(number))
    turned = rng.random(len(first)) < 0.5
    return np.where(turned, second, first), np.where(turned, first, second)


def _annotators(
    counts: Counts, query: Ints | Counts, n_queries: int, n_annotators: int, panel: int | None, seed: Seed
) -> Ints:
    """Distinct annotators of each thing, ``counts`` of them, from the panel of its query or from the whole pool."""
    panel_rng, rng = np.random.default_rng(seed).spawn(2)
    uniform = rng.random(int(counts.sum()))
    if panel is None:
        return _distinct(uniform, counts, n_annotators, "item or pair")
    sizes = np.full(n_queries, panel, np.int64)
    panels = _distinct(panel_rng.random(n_queries * panel), sizes, n_annotators, "query").reshape(n_queries, panel)
    return panels[np.repeat(query, counts), _distinct(uniform, counts, panel, "item or pair")]


def _distinct(uniform: Floats, counts: Counts, size: int, what: str) -> Ints:
    """Distinct annotators below ``size`` for each thing; an error where there are too few."""
    most = int(counts.max(initial=1))
    if most > size:
        odd = f"{most} annotators per {what} cannot be drawn from {size}"
        raise ParameterError(f"{odd}; ask for fewer or simulate more annotators")
    if most == 1:
        return (uniform * size).astype(np.int32)
    from .kernels.sampling import distinct_draws

    return distinct_draws(uniform, spread_offsets(counts), np.full(len(counts), size, np.int64)).astype(np.int32)
