"""Judgments of one or several kinds laid out as ordinal answers about scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.judgments import Grades, Preferences, Rankings
from ...data.mixed import parts_of
from ...protocols import Bools, Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.blocks import Graph
    from .kernels.ordinal import Cells

FEW_LEVELS = 7
"""Up to so many grade levels lapses are learned unless said otherwise."""


@dataclass(frozen=True, eq=False)
class Kind:
    """Judgments of one kind as answers 0..K-1 about cells, which are items (grades) or pairs of items.

    Parameters
    ----------
    name
        The kind of the judgments.
    cells
        The answers sorted by cell.
    levels, values
        Grade levels in the user's own values, and the number that each counts as; empty for pairs.
    n_levels
        Number of levels.
    weight
        Weight of the judgments of each annotator, (n_annotators,).
    shares
        Share of each level among all answers, (K,).
    pair
        Which of the graph's pairs each cell is; empty where cells are items.
    lapses
        Whether annotators may answer without looking.
    sided
        Whether any answers tell which item the annotator saw on the left.
    """

    name: str
    cells: Cells
    levels: tuple[Any, ...]
    values: Floats
    n_levels: int
    weight: Floats
    shares: Floats
    pair: Ints
    lapses: bool
    sided: bool = False

    @property
    def about_pairs(self) -> bool:
        """Whether an answer compares two items."""
        return self.name != "grade"

    @property
    def biased(self) -> bool:
        """Whether annotators have an offset: leniency with grades, favour of the left with preferences.

        Where all winners stand on one side, nothing tells a favour of it.
        """
        if self.about_pairs:
            return self.sided and bool(min(self.shares[0], self.shares[-1]) > 0.0)
        return self.n_levels > 1

    @property
    def stretched(self) -> bool:
        """Whether annotators have a spread of their own: use of the extremes, or width of ties."""
        return self.n_levels > 2

    @property
    def cut(self) -> bool:
        """Whether there are cuts to learn."""
        return self.stretched or (self.name == "grade" and self.n_levels == 2)


@dataclass(frozen=True, eq=False)
class Layout:
    """All answers: a :class:`Kind` for each kind, the pairs compared in any, and the sizes of things.

    ``judged`` tells which items were judged, ``active`` which annotators gave any answer. Judgments without annotators
    are all by one, and ``named`` is false.
    """

    kinds: tuple[Kind, ...]
    graph: Graph
    query: Ints
    judged: Bools
    active: Bools
    named: bool

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.judged)

    @property
    def n_annotators(self) -> int:
        """Number of annotators, at least one."""
        return len(self.active)

    @property
    def offsets(self) -> Counts:
        """Bounds of the queries' items."""
        return self.graph.offsets

    @cached_property
    def judged_queries(self) -> Ints:
        """Codes of the queries of judged items."""
        return np.unique(self.query[self.judged])

    @property
    def levelled(self) -> bool:
        """Whether queries have levels of their own to learn: there are several, and grades that tell."""
        several = len(self.judged_queries) > 1
        return several and any(not kind.about_pairs and kind.n_levels > 1 for kind in self.kinds)

    @cached_property
    def group(self) -> Ints:
        """The lowest item that each item is connected with by comparisons, (n_items,)."""
        from ...kernels.laplacian import connected_groups

        return connected_groups(self.graph.starts, self.graph.second, self.graph.offsets)


def lay_out(judgments: Any, *, bins: int | None = None, lapse: bool | None = None) -> Layout:
    """Return judgments of one kind, or of several, as answers.

    Parameters
    ----------
    judgments
        Grades, preferences, rankings, or several of them put together.
    bins
        Cut grades into so many equally wide levels.
    lapse
        Whether annotators may answer without looking; ``None``: with grades of at most seven levels.
    """
    parts = [part for part in parts_of(judgments) if len(part)]
    found = [_kind_of(part, bins) for part in parts]
    graph, pairs = _joined_pairs([kind.cells for kind in found], judgments.items.offsets)
    kinds = tuple(_finished(kind, pair, lapse) for kind, pair in zip(found, pairs, strict=True))
    active = np.zeros(max(judgments.n_annotators, 1), bool)
    for kind in kinds:
        active |= kind.weight > 0
    named = judgments.n_annotators > 0
    return Layout(kinds, graph, judgments.items.query, judgments.judged_items, active, named)


def _kind_of(part: Any, bins: int | None) -> Kind:
    """One kind of judgments as answers."""
    if isinstance(part, Grades):
        return _of_grades(part, bins)
    return _of_preferences(part) if isinstance(part, Preferences) else _of_rankings(part)


def _finished(kind: Kind, pair: Ints, lapse: bool | None) -> Kind:
    """A kind with the places of its pairs, and whether lapses are learned."""
    usual = kind.name == "grade" and kind.n_levels <= FEW_LEVELS
    lapses = (usual if lapse is None else lapse) and kind.n_levels > 1
    return replace(kind, pair=pair, lapses=lapses)


def _of_grades(grades: Grades, bins: int | None) -> Kind:
    """Grades as answers about items."""
    codes, levels, values = grades.level_codes(bins)
    return _kind("grade", grades, (grades.item, None, None), codes, len(levels), grades.weight, levels, values)


def _of_preferences(preferences: Preferences) -> Kind:
    """Preferences as answers about pairs: right, tie, left, or without ties in the data right, left."""
    return _pairs("preference", preferences, preferences.weight)


def _of_rankings(rankings: Rankings) -> Kind:
    """Every pair of every ranking, weighted so that all together tell as much as the ranking does.

    At equal scores, pairs of ``m`` items of weight ``4 (m - H_m) / (m (m - 1))`` have the curvature of choosing the
    best, the second best and so on, with ``H_m`` the harmonic number.
    """
    size = np.diff(rankings.offsets).astype(np.float64)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, size.max(initial=1.0) + 1.0)))
    worth = 4.0 * (size - harmonic[size.astype(np.int64)]) / np.maximum(size * (size - 1.0), 1.0)
    pairs = rankings.as_preferences()
    share = np.repeat(worth, (size * (size - 1.0) / 2.0).astype(np.int64))
    weight = share if pairs.weight is None else share * pairs.weight
    return _pairs("ranking", pairs, weight)


def _pairs(name: str, judged: Preferences, weight: Floats | None) -> Kind:
    """Outcomes of pairs as answers, seen from the item of the lower code."""
    left, right = judged.left, judged.right
    turned = left > right
    n_levels = 3 if (judged.outcome == 0).any() else 2
    level = (judged.outcome.astype(np.int32) + 1) // (4 - n_levels)
    level = np.where(turned, n_levels - 1 - level, level)
    stood = np.where(judged.shown, 2 * turned, 1).astype(np.int32)
    cell = (np.minimum(left, right), np.maximum(left, right), stood)
    return _kind(name, judged, cell, level, n_levels, weight, (), np.empty(0))


def _kind(
    name: str, judged: Any, place: tuple[Ints, Ints | None, Ints | None], level: Ints, n_levels: int,
    weight: Floats | None, levels: tuple[Any, ...], values: Floats,
) -> Kind:  # fmt: skip
    """Answers sorted, counted by annotator and by level."""
    from .kernels.ordinal import sort_cells

    n_annotators = max(judged.n_annotators, 1)
    annotator = judged.annotator if judged.n_annotators else np.zeros(len(level), np.int32)
    first, second, stood = place
    cells = sort_cells(first, second, annotator, stood, level, weight)
    by_annotator = np.bincount(annotator, weight, n_annotators).astype(np.float64)
    # as annotators gave them: mirrored where the first item stood right, both ways where nobody knows
    at = level if stood is None else stood * n_levels + level
    on_left, unknown, on_right = np.bincount(at, weight, 3 * n_levels).reshape(3, n_levels)
    by_level = on_left + on_right[::-1] + 0.5 * (unknown + unknown[::-1])
    shares = by_level / max(float(by_level.sum()), 1e-300)
    sided = stood is not None and bool((stood != 1).any())
    return Kind(name, cells, levels, values, n_levels, by_annotator, shares, np.empty(0, np.int32), False, sided)


def _joined_pairs(cells: list[Cells], offsets: Counts) -> tuple[Graph, list[Ints]]:
    """The pairs of any kind in compressed rows, and which of them each cell of each kind is."""
    from .kernels.blocks import Graph

    n_items = int(offsets[-1])
    paired = [of.first.astype(np.int64) * n_items + of.second for of in cells if len(of.second)]
    keys = paired[0] if len(paired) == 1 else np.unique(np.concatenate(paired)) if paired else np.empty(0, np.int64)
    first = (keys // max(n_items, 1)).astype(np.int32)
    second = (keys % max(n_items, 1)).astype(np.int32)
    graph = Graph(np.searchsorted(first, np.arange(n_items + 1)), first, second, offsets)
    places = []
    for of in cells:
        own = of.first.astype(np.int64) * n_items + of.second if len(of.second) else np.empty(0, np.int64)
        places.append(np.searchsorted(keys, own).astype(np.int32))
    return graph, places
