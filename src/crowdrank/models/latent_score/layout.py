"""Judgments of one or several kinds laid out as ordinal responses.

A response, as in item-response theory, is a judgment on an ordinal scale: a level ``0..K-1``, larger is better, about a
cell, which is one item (grades) or a pair of items (preferences: right, tie, left). A ranking is all its pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.grades import bin_codes, bin_middles
from ...data.judgments import Grades, Preferences, Rankings, parts_of
from ...kernels.threads import even_bounds, read_only
from ...pair_counts import strength_steps
from ...protocols import Bools, Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.item_systems import Graph
    from .kernels.ordinal import Cells

_ROWS_PER_THREAD = 100_000
_MAX_KEY_BITS = 62

MAX_LAPSE_LEVELS = 7
"""Lapses are learned by default with grades of at most this many levels."""

_HELD_OUT_EVERY = 5
_ENOUGH_HELD_OUT = 5_000
"""One grade in so many is held out to see how well a fit to the others predicts it, in turn until these are enough."""


@dataclass(frozen=True, eq=False)
class Kind:
    """Responses of one kind.

    Parameters
    ----------
    name
        The kind of the judgments.
    cells
        The responses sorted by cell.
    levels, values
        Grade levels in the user's own values, and the number that each counts as; empty for pairs.
    n_levels
        Number of levels.
    weight
        Weight of the judgments of each annotator, (n_annotators,).
    shares
        Share of each level among all responses, (K,).
    pair
        Which of the graph's pairs each cell is; empty where cells are items.
    has_lapses
        Whether annotators may respond without looking.
    has_sides
        Whether some preferences say which item was shown on the left.
    """

    name: str
    cells: Cells
    levels: tuple[Any, ...]
    values: Floats
    n_levels: int
    weight: Floats
    shares: Floats
    pair: Ints
    has_lapses: bool
    has_sides: bool = False

    @property
    def about_pairs(self) -> bool:
        """Whether a response compares two items."""
        return self.name != "grade"

    @property
    def has_bias(self) -> bool:
        """Whether annotators have a bias: leniency with grades, favour of the left with preferences.

        Where all winners are on one side, a favour of that side cannot be learned.
        """
        if self.about_pairs:
            return self.has_sides and bool(min(self.shares[0], self.shares[-1]) > 0.0)
        return self.n_levels > 1

    @property
    def has_spread(self) -> bool:
        """Whether annotators have a spread of their own: use of the extremes, or width of ties."""
        return self.n_levels > 2

    @property
    def has_difficulty(self) -> bool:
        """Whether items may differ in difficulty: answers of two levels, or about pairs, hardly show it."""
        return self.name == "grade" and self.n_levels > 2

    @property
    def n_covariates(self) -> int:
        """Number of covariates that are controlled for."""
        return int(self.cells.values.shape[1])

    @property
    def has_cuts(self) -> bool:
        """Whether there are cuts to learn."""
        return self.has_spread or (self.name == "grade" and self.n_levels == 2)


@dataclass(frozen=True, eq=False)
class Layout:
    """All responses: a :class:`Kind` for each kind, and the pairs compared in any.

    ``judged`` says which items were judged, ``active`` which annotators judged any. Judgments without annotators count
    as by one annotator, and ``named`` is false. ``has_query_levels`` says whether the levels of queries are learned:
    there are several queries, and grades of several levels.
    """

    kinds: tuple[Kind, ...]
    graph: Graph
    query: Ints
    judged: Bools
    active: Bools
    named: bool
    has_query_levels: bool

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

    @cached_property
    def component(self) -> Ints:
        """The first item that each item is connected to by comparisons, (n_items,)."""
        from ...kernels.laplacian import connected_groups

        return connected_groups(self.graph.starts, self.graph.second, self.graph.offsets)


class LevelScale(NamedTuple):
    """What levels of one kind follow from: the range of grades that are cut into bins, strengths, and whether any tie.

    ``sizes`` are the strengths of decided preferences, rising, and ``steps`` says which step each is.
    """

    low: float
    high: float
    sizes: Floats
    steps: Ints
    has_ties: bool

    @classmethod
    def of(cls, judgments: Any) -> LevelScale:
        """Return the scale of judgments of one kind by themselves."""
        if isinstance(judgments, Grades):
            grade = judgments.grade
            low, high = float(grade.min(initial=np.inf)), float(grade.max(initial=-np.inf))
            return cls(low, high, np.empty(0), np.empty(0, np.int32), False)
        pairs = judgments.as_preferences() if isinstance(judgments, Rankings) else judgments
        return cls(0.0, 0.0, *strength_steps(pairs), bool((pairs.outcome == 0).any()))


def lay_out(
    judgments: Any, *, bins: int | None = None, lapse: bool | None = None, values: Floats | None = None
) -> Layout:
    """Return judgments of one kind, or of several, as responses.

    Parameters
    ----------
    judgments
        Grades, preferences, rankings, or several of them put together.
    bins
        Cut grades into this many equally wide levels.
    lapse
        Whether annotators may respond without looking; ``None``: with grades of at most seven levels.
    values
        Covariates of preferences to control for, left against right, (n_preferences, k).
    """
    parts = [part for part in parts_of(judgments) if len(part)]
    unpaired = [_kind_of(part, LevelScale.of(part), bins, values) for part in parts]
    return _joined_kinds(judgments, unpaired, lapse)


def lay_out_part(judgments: Any, scale: LevelScale, *, bins: int | None, lapse: bool | None) -> Layout:
    """Return some of the judgments of one kind as responses, on the scale of all of them; they may be none."""
    return _joined_kinds(judgments, [_kind_of(judgments, scale, bins, None)], lapse)


def _joined_kinds(judgments: Any, unpaired: list[Kind], lapse: bool | None) -> Layout:
    """The kinds together, with the pairs compared in any."""
    graph, pairs = _pair_graph([kind.cells for kind in unpaired], judgments.items.offsets)
    kinds = tuple(_with_pairs(kind, pair, lapse) for kind, pair in zip(unpaired, pairs, strict=True))
    active = np.zeros(max(judgments.n_annotators, 1), bool)
    for kind in kinds:
        active |= kind.weight > 0
    query, judged, named = judgments.items.query, judgments.judged_items, judgments.n_annotators > 0
    has_levels = any(not kind.about_pairs and kind.n_levels > 1 for kind in kinds)
    has_levels = has_levels and len(np.unique(query[judged])) > 1
    return Layout(kinds, graph, query, judged, active, named, has_levels)


def _kind_of(part: Any, scale: LevelScale, bins: int | None, values: Floats | None) -> Kind:
    """Judgments of one kind as responses; their pairs are numbered later, over all kinds."""
    if isinstance(part, Grades):
        codes, levels, values = _grade_levels(part, scale, bins)
        return _sorted_kind("grade", part, (part.item, None, None), codes, len(levels), part.weight, levels, values)
    if isinstance(part, Preferences):
        return _pair_kind("preference", part, scale, part.weight, values)
    return _ranking_kind(part, scale)


def _grade_levels(grades: Grades, scale: LevelScale, bins: int | None) -> tuple[Ints, tuple[Any, ...], Floats]:
    """The level code of each grade, the levels, and the number each counts as."""
    if bins is None:
        return grades.level_codes()
    middles = bin_middles(scale.low, scale.high, bins)
    return bin_codes(grades.grade, scale.low, scale.high, bins), tuple(middles.tolist()), middles


def _with_pairs(kind: Kind, pair: Ints, lapse: bool | None) -> Kind:
    """The kind with the numbers of its pairs, and whether lapses are learned."""
    default = kind.name == "grade" and kind.n_levels <= MAX_LAPSE_LEVELS
    has_lapses = (default if lapse is None else lapse) and kind.n_levels > 1
    return replace(kind, pair=pair, has_lapses=has_lapses)


def _ranking_kind(rankings: Rankings, scale: LevelScale) -> Kind:
    """Every pair of every ranking, weighted so that together they have the information of the ranking.

    At equal scores, pairs of ``m`` items of weight ``4 (m - H_m) / (m (m - 1))`` have the curvature of choosing the
    best, the second best and so on, with ``H_m`` the harmonic number.
    """
    return _pair_kind("ranking", rankings.as_preferences(), scale, ranking_weights(rankings))


def ranking_weights(rankings: Rankings) -> Floats:
    """Return the weight of every pair of every ranking."""
    size = np.diff(rankings.offsets).astype(np.float64)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, size.max(initial=1.0) + 1.0)))
    of_ranking = 4.0 * (size - harmonic[size.astype(np.int64)]) / np.maximum(size * (size - 1.0), 1.0)
    weight: Floats = of_ranking if rankings.weight is None else of_ranking * rankings.weight
    return np.repeat(weight, (size * (size - 1.0) / 2.0).astype(np.int64))


def level_sums(layout: Layout) -> Floats:
    """Return the sum of the levels of each annotator's grades, (n_annotators,)."""
    sums = np.zeros(layout.n_annotators)
    for kind in layout.kinds:
        if not kind.about_pairs:
            sums += np.bincount(kind.cells.annotator_side >> 2, _weighted_levels(kind), len(sums))
    return sums


def n_held_out_folds(layout: Layout) -> int:
    """Return how often grades are held out, each time others, until there are enough of them."""
    weight = sum(float(kind.weight.sum()) for kind in layout.kinds if not kind.about_pairs)
    return int(np.clip(np.ceil(_HELD_OUT_EVERY * _ENOUGH_HELD_OUT / max(weight, 1.0)), 1, _HELD_OUT_EVERY))


def hold_out_grades(layout: Layout, fold: int, sums: Floats | None = None) -> tuple[Layout, Layout]:
    """Return the responses without a fifth of the grades, and these grades alone; no item loses all that it has.

    Which fold a grade is held out in follows from those that others gave to the item, and from those that the annotator
    gave to others: neither from itself, which would make some grades rarer among those held out, nor from names, order
    of rows, or the parts that judgments come in. ``sums`` are those of :func:`level_sums` of all parts.
    """
    sums = level_sums(layout) if sums is None else sums
    learned, held = [], []
    for kind in layout.kinds:
        out = np.zeros(len(kind.cells.level), bool)
        if not kind.about_pairs:
            cell, n_cells, level = kind.cells.cell, len(kind.cells.bounds) - 1, _weighted_levels(kind)
            who = kind.cells.annotator_side >> 2
            own = np.unique(cell.astype(np.int64) * len(sums) + who, return_inverse=True)[1]
            others = np.bincount(cell, level, n_cells)[cell] + sums[who] - 2.0 * np.bincount(own, level)[own]
            # weights need not be whole numbers
            out = np.floor(others + 1e-6).astype(np.int64) % _HELD_OUT_EVERY == fold
            out &= (np.bincount(cell, ~out, n_cells) > 0)[cell]
        learned.append(_some_responses(kind, ~out) if out.any() else kind)
        held.append(_some_responses(kind, out))
    active = np.logical_or.reduce([kind.weight > 0 for kind in learned])
    return replace(layout, kinds=tuple(learned), active=active), replace(layout, kinds=tuple(held))


def _weighted_levels(kind: Kind) -> Floats:
    """Level of each response times its weight."""
    level: Floats = kind.cells.level.astype(np.float64)
    return level * kind.cells.weight if len(kind.cells.weight) else level


def _some_responses(kind: Kind, rows: Bools) -> Kind:
    """Some of the grades, or none of the responses about pairs."""
    cells = kind.cells
    weight = cells.weight[rows] if len(cells.weight) else cells.weight
    who, level = cells.annotator_side[rows], cells.level[rows]
    values = cells.values[rows] if len(cells.values) else cells.values
    bounds = np.append(0, np.cumsum(rows))[cells.bounds]
    some = cells._replace(bounds=bounds, annotator_side=who, level=level, weight=weight, values=values)
    given = weight if len(cells.weight) else np.ones(len(level))
    by_level = np.bincount(level, given, kind.n_levels)
    by_annotator = np.bincount(who >> 2, given, len(kind.weight)).astype(np.float64)
    return replace(kind, cells=some, weight=by_annotator, shares=by_level / max(float(by_level.sum()), 1e-300))


def preference_levels(preferences: Preferences, scale: LevelScale | None = None) -> tuple[Ints, int]:
    """Return the level of each preference, from right to left, and how many there are; ties are in the middle.

    Preferences with strengths have a level per strength and side, of at most seven strengths; beyond that they are
    cut into seven parts of about equal weight. ``scale`` is that of all preferences where these are a part of them.
    """
    scale = LevelScale.of(preferences) if scale is None else scale
    outcome = preferences.outcome.astype(np.int32)
    steps = np.ones(len(outcome), np.int32)
    if preferences.strength is not None:
        steps[outcome != 0] = scale.steps[np.searchsorted(scale.sizes, preferences.strength[outcome != 0])]
    most, has_ties = int(scale.steps.max(initial=1)), scale.has_ties
    signed = outcome * steps
    level = signed + most if has_ties else np.where(signed > 0, signed + most - 1, signed + most)
    return level.astype(np.int32), 2 * most + has_ties


def _pair_kind(
    name: str, preferences: Preferences, scale: LevelScale, weight: Floats | None, values: Floats | None = None
) -> Kind:
    """Preferences as responses, from right to left, seen from the item of lower code."""
    left, right = preferences.left, preferences.right
    turned = left > right
    level, n_levels = preference_levels(preferences, scale)
    level = np.where(turned, n_levels - 1 - level, level)
    position = np.where(preferences.shown, 2 * turned, 1).astype(np.int32)
    cell = (np.minimum(left, right), np.maximum(left, right), position)
    if values is not None:
        values = np.where(turned, -1.0, 1.0)[:, None] * values
    return _sorted_kind(name, preferences, cell, level, n_levels, weight, (), np.empty(0), values)


def _sorted_kind(
    name: str, judgments: Any, place: tuple[Ints, Ints | None, Ints | None], level: Ints, n_levels: int,
    weight: Floats | None, levels: tuple[Any, ...], numbers: Floats, values: Floats | None = None,
) -> Kind:  # fmt: skip
    """Responses sorted by cell, with their weight by annotator and by level."""
    n_annotators = max(judgments.n_annotators, 1)
    annotator = judgments.annotator if judgments.n_annotators else np.zeros(len(level), np.int32)
    first, second, position = place
    cells = sort_cells(first, second, annotator, position, level, weight, values)
    by_annotator = np.bincount(annotator, weight, n_annotators).astype(np.float64)
    # as annotators gave them: mirrored where the first item was on the right, half each where that is not known
    at = level if position is None else position * n_levels + level
    on_left, unknown, on_right = np.bincount(at, weight, 3 * n_levels).reshape(3, n_levels)
    by_level = on_left + on_right[::-1] + 0.5 * (unknown + unknown[::-1])
    shares = by_level / max(float(by_level.sum()), 1e-300)
    has_sides = position is not None and bool((position != 1).any())
    return Kind(name, cells, levels, numbers, n_levels, by_annotator, shares, np.empty(0, np.int32), False, has_sides)


def sort_cells(
    first: Ints, second: Ints | None, annotator: Ints, position: Ints | None, level: Ints, weight: Floats | None,
    values: Floats | None = None,
) -> Cells:  # fmt: skip
    """Return the judgments by cell; within a cell by annotator and level, so that the order of rows never matters.

    ``position`` is where the first item was shown: 0 left, 1 not known, 2 right; ``None`` where a cell is one item.
    ``values`` (n_judgments, k) are covariates, first against second item.
    """
    from .kernels.ordinal import Cells

    pieces = [first] if second is None else [first, second]
    pieces += [4 * annotator if position is None else 4 * annotator + position, level]
    widths = [int(piece.max(initial=0)).bit_length() for piece in pieces]
    if values is not None:
        order = _order_with_values(pieces, widths, weight, values)
        values = np.ascontiguousarray(values)[order]
        columns: list[Any] = [*(piece[order] for piece in pieces), np.empty(0) if weight is None else weight[order]]
    else:
        packs = sum(widths) <= _MAX_KEY_BITS
        columns = _sort_packed(pieces, widths, weight) if packs else _sort_columns(pieces, weight)
    *place, annotator_side, levels, weights = columns
    new = np.ones(len(annotator_side), bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in place])
    starts = np.flatnonzero(new)
    bounds = np.append(starts, len(annotator_side))
    parts = np.searchsorted(bounds, even_bounds(len(annotator_side), _ROWS_PER_THREAD))
    parts[0], parts[-1] = 0, len(starts)
    ends = [column[starts].astype(np.int32) for column in place]
    other = ends[1] if second is not None else np.empty(0, np.int32)
    rows = read_only(annotator_side.astype(np.int32)), read_only(levels.astype(np.int8)), read_only(weights)
    kept = np.empty((0, 0)) if values is None else values
    return Cells(read_only(ends[0]), read_only(other), read_only(bounds), *rows, parts, read_only(kept))


def _order_with_values(pieces: list[Ints], widths: list[int], weight: Floats | None, values: Floats) -> Counts:
    """The order by columns; rows that differ in covariates alone stand in the order of these."""
    last = [*([] if weight is None else [weight]), *values.T[::-1]]
    if sum(widths) > _MAX_KEY_BITS:
        return np.lexsort([*last, *reversed(pieces)])
    keys = _pack_columns(pieces, widths)
    order: Counts = np.argsort(keys)
    same = np.diff(keys[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort([*(column[rows] for column in last), keys[rows]])]
    return order


def _pack_columns(pieces: list[Ints], widths: list[int]) -> Counts:
    """One number per row from columns of so many bits."""
    keys = np.zeros(len(pieces[0]), np.int64)
    for piece, width in zip(pieces, widths, strict=True):
        keys <<= width
        keys |= piece
    return keys


def _sort_packed(pieces: list[Ints], widths: list[int], weight: Floats | None) -> list[Any]:
    """Sort columns packed into one number per row; return them with their weights."""
    keys, weights = _pack_columns(pieces, widths), np.empty(0)
    if weight is None:
        keys.sort()
    else:
        # of equal rows the lighter stands first, whatever the order they came in
        order = np.lexsort((weight, keys))
        keys, weights = keys[order], weight[order]
    columns = []
    for width in reversed(widths):
        columns.append(keys & ((1 << width) - 1))
        keys >>= width
    return [*reversed(columns), weights]


def _sort_columns(pieces: list[Ints], weight: Floats | None) -> list[Any]:
    """Do the same with columns too wide for one number."""
    keys: Any = tuple(reversed(pieces)) if weight is None else (weight, *reversed(pieces))
    order = np.lexsort(keys)
    return [*(piece[order] for piece in pieces), np.empty(0) if weight is None else weight[order]]


def _pair_graph(cells: list[Cells], offsets: Counts) -> tuple[Graph, list[Ints]]:
    """The pairs compared in any kind in compressed rows, and the number of the pair of each cell of each kind."""
    from .kernels.item_systems import Graph

    n_items = int(offsets[-1])
    paired = [of.first.astype(np.int64) * n_items + of.second for of in cells if len(of.second)]
    keys = paired[0] if len(paired) == 1 else np.unique(np.concatenate(paired)) if paired else np.empty(0, np.int64)
    first = (keys // max(n_items, 1)).astype(np.int32)
    second = (keys % max(n_items, 1)).astype(np.int32)
    graph = Graph(np.searchsorted(first, np.arange(n_items + 1)), first, second, offsets)
    numbers = []
    for of in cells:
        own = of.first.astype(np.int64) * n_items + of.second if len(of.second) else np.empty(0, np.int64)
        numbers.append(np.searchsorted(keys, own).astype(np.int32))
    return graph, numbers
