"""Judgments of one or several kinds laid out as ordinal responses.

A response, as in item-response theory, is a judgment on an ordinal scale: a level ``0..K-1``, larger is better, about a
cell, which is one item (grades) or a pair of items (preferences: right, tie, left). A ranking is all its pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus
from ...data.frames import to_frame
from ...data.grades import bin_codes, bin_middles
from ...data.index import Index, Items
from ...data.judgments import Grades, Preferences, Rankings, parts_of
from ...data.naming import first_ids
from ...data.truth import Truth
from ...drift import Walk
from ...errors import JudgmentError, ParameterError
from ...kernels.threads import fixed_bounds, read_only
from ...pair_counts import strength_steps
from ...protocols import Bools, Counts, Floats, Ints
from ...wording import option

if TYPE_CHECKING:
    from .kernels.item_systems import Graph
    from .kernels.ordinal import Cells, ResponseModel
    from .steps import FeatureVariances


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
    there are several queries, and grades of several levels. With a ``walk`` annotators are windows of annotators.
    """

    kinds: tuple[Kind, ...]
    graph: Graph
    query: Ints
    judged: Bools
    active: Bools
    named: bool
    has_query_levels: bool
    walk: Walk | None = None

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
        from ...kernels.pairs import connected_groups

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
    judgments: Any, *, bins: int | None = None, lapse: bool | None = None, values: Floats | None = None,
    scale: LevelScale | None = None,
) -> Layout:  # fmt: skip
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
    scale
        That of all judgments, where these are some of those of one kind, or none.
    """
    parts = [judgments] if scale is not None else [part for part in parts_of(judgments) if len(part)]
    unpaired = [_kind_of(part, scale or LevelScale.of(part), bins, values) for part in parts]
    graph, pairs = _pair_graph([kind.cells for kind in unpaired], judgments.items.offsets)
    kinds, active = [], np.zeros(max(judgments.n_annotators, 1), bool)
    for kind, pair in zip(unpaired, pairs, strict=True):
        default = kind.name == "grade" and kind.n_levels <= MAX_LAPSE_LEVELS
        has_lapses = (default if lapse is None else lapse) and kind.n_levels > 1
        kinds.append(replace(kind, pair=pair, has_lapses=has_lapses))
        active |= kind.weight > 0
    query, judged, named = judgments.items.query, judgments.judged_items, judgments.n_annotators > 0
    has_levels = any(not kind.about_pairs and kind.n_levels > 1 for kind in kinds)
    has_levels = has_levels and len(np.unique(query[judged])) > 1
    return Layout(tuple(kinds), graph, query, judged, active, named, has_levels)


def _kind_of(part: Any, scale: LevelScale, bins: int | None, values: Floats | None) -> Kind:
    """Judgments of one kind as responses; their pairs are numbered later, over all kinds."""
    if isinstance(part, Preferences):
        return _pair_kind("preference", part, scale, part.weight, values)
    if isinstance(part, Rankings):
        # every pair of every ranking
        return _pair_kind("ranking", part.as_preferences(), scale, ranking_weights(part))
    if bins is None:
        codes, levels, numbers = part.level_codes()
    else:
        numbers = bin_middles(scale.low, scale.high, bins)
        codes, levels = bin_codes(part.grade, scale.low, scale.high, bins), tuple(numbers.tolist())
    return _sorted_kind("grade", part, (part.item, None, None), codes, len(levels), part.weight, levels, numbers)


def ranking_weights(rankings: Rankings) -> Floats:
    """Return the weight of every pair of every ranking: together they have the information of the ranking.

    At equal scores, pairs of ``m`` items of weight ``4 (m - H_m) / (m (m - 1))`` have the curvature of choosing the
    best, the second best and so on, with ``H_m`` the harmonic number.
    """
    size = np.diff(rankings.offsets).astype(np.float64)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, size.max(initial=1.0) + 1.0)))
    of_ranking = 4.0 * (size - harmonic[size.astype(np.int64)]) / np.maximum(size * (size - 1.0), 1.0)
    weight: Floats = of_ranking if rankings.weight is None else of_ranking * rankings.weight
    return np.repeat(weight, (size * (size - 1.0) / 2.0).astype(np.int64))


def n_held_out_folds(layout: Layout) -> int:
    """Return how often grades are held out, each time others, until there are enough of them."""
    weight = sum(float(kind.weight.sum()) for kind in layout.kinds if not kind.about_pairs)
    return int(np.clip(np.ceil(_HELD_OUT_EVERY * _ENOUGH_HELD_OUT / max(weight, 1.0)), 1, _HELD_OUT_EVERY))


def hold_out_grades(layout: Layout, fold: int) -> tuple[Layout, Layout]:
    """Return the responses without a fifth of the grades, and these grades alone; no item loses all that it has.

    Which fold a grade is held out in follows from those that others gave to the item, and from those that the annotator
    gave to others: neither from itself, which would make some grades rarer among those held out, nor from names or
    order of rows.
    """
    sums = np.zeros(layout.n_annotators)
    for kind in layout.kinds:
        if not kind.about_pairs:
            sums += np.bincount(kind.cells.annotator_side >> 2, _weighted_levels(kind), len(sums))
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
        columns: Any = [*(piece[order] for piece in pieces), np.empty(0) if weight is None else weight[order]]
    else:
        columns = _sort_packed(pieces, widths, weight) if sum(widths) <= _MAX_KEY_BITS else None
    if columns is None:
        # too wide for one number
        keys: Any = tuple(reversed(pieces)) if weight is None else (weight, *reversed(pieces))
        order = np.lexsort(keys)
        columns = [*(piece[order] for piece in pieces), np.empty(0) if weight is None else weight[order]]
    *place, annotator_side, levels, weights = columns
    new = np.ones(len(annotator_side), bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in place])
    starts = np.flatnonzero(new)
    bounds = np.append(starts, len(annotator_side))
    parts = np.searchsorted(bounds, fixed_bounds(len(annotator_side), _ROWS_PER_THREAD))
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


START_LAPSE = 0.02
"""Probability of a lapse before any judgment is seen."""

START_SHARES = (0.75, 0.2, 0.05)
"""Shares of annotators who see, are reversed and guess, before any judgment is seen, in a large crowd."""

START_VARIANCES = {
    "item": 1.0, "alpha": 0.25, "bias": 0.05, "spread": 0.05, "level": 1.0, "weight": 0.1, "difficulty": 0.05,
}  # fmt: skip
"""Prior variances before any judgment is seen; ``level`` is that of queries, ``weight`` that of feature weights."""

MAX_VARIANCES = {
    "item": 36.0, "alpha": 16.0, "bias": 9.0, "spread": 1.0, "level": 36.0, "weight": 36.0, "difficulty": 2.0,
}  # fmt: skip
"""Learned variances stay below these: where judgments hardly contradict each other they would grow without end."""

MAX_FEATURE_VARIANCE = {"start": 1.0, "learned": 36.0}
"""Variance that all features together give to scores at most, at the start and at the end: that of items.

With more columns than judgments any column can explain any judgment, and weights grow until annotators with a judgment
or two follow them, in whichever direction.
"""

MIN_CUT_GAP = 0.01
"""Smallest distance of neighbouring cuts."""

MAX_MEAN_LAPSE = 0.25
"""Largest mean probability of a lapse in the crowd."""

MAX_REVERSED_SHARE = 0.45
"""Largest share of reversed annotators: the majority defines the direction of scores."""

START_COEFFICIENT_VARIANCE = 0.25
"""Variance of the coefficients of annotators before any judgment is seen.

At .05 instead, 90 % intervals of annotators with 30 judgments each cover .66 in simulations, not .81.
"""

ALONE_VARIANCE = 1e-6
"""Variance of what is not learned."""

_HALF_SHARE_ANNOTATORS = 10.0
"""Number of annotators at which reversed and guessing ones have half of their start shares."""

_TRUSTED_VARIANCE = 0.04
"""Prior variance of the discrimination of a trusted annotator."""

_MIN_START_LAPSE = 1e-6


# What is known beforehand


class ItemInputs(NamedTuple):
    """What is given of items besides judgments: features (n_items, n), and which are clamped to known scores.

    These are on the model's scale: the user's value is ``middle + unit * known``.
    """

    features: Floats
    clamped: Bools
    known: Floats
    middle: float = 0.0
    unit: float = 1.0

    @classmethod
    def nothing(cls, n_items: int) -> ItemInputs:
        """Return that nothing is given of so many items."""
        return cls(np.empty((n_items, 0)), np.zeros(n_items, bool), np.zeros(n_items))

    @property
    def sets_direction(self) -> bool:
        """Whether the known items have different scores."""
        return bool(np.ptp(self.known[self.clamped]) > 0) if self.clamped.any() else False

    def to_user_scale(self, scores: Floats) -> Floats:
        """Return scores on the user's scale, those of known items exactly as given."""
        exact = self.middle + self.unit * self.known
        return np.where(self.clamped, exact, self.middle + self.unit * scores)


def known_scores(items: Items, known: Any | None) -> ItemInputs:
    """Return the clamped items from a table of query, item and score, grade or rank, or from a truth.

    Values are brought to mean 0 and standard deviation 1, the scale that the prior of scores expects.
    """
    if known is None:
        return ItemInputs.nothing(len(items))
    truth = known
    if not isinstance(truth, Truth):
        frame = to_frame(known)
        # the column of numbers may be called score
        lowered = {str(name).strip().lower(): str(name) for name in frame.columns}
        columns = {"grade": lowered["score"]} if "score" in lowered and "grade" not in lowered else None
        if frame.is_empty():
            frame = frame.clear().cast({name: pl.Float64 for name in frame.columns if frame[name].dtype == pl.Null})
        truth = Truth.from_frame(frame, columns=columns)
    if truth.grade is None or truth.nominal:
        raise JudgmentError(
            f"{option('known')} has no numbers for items; give a table of query, item and score or grade"
        )
    codes = items.codes_of(truth.items, "judgments", "known items")
    if (codes < 0).any():
        raise JudgmentError(
            f"known item {first_ids(truth.items, codes < 0)} is not among the judged items; "
            f"leave it out, or list it with {option('items')}"
        )
    clamped, scores = np.zeros(len(items), bool), np.zeros(len(items))
    given = np.isfinite(truth.grade)
    clamped[codes[given]] = True
    middle = float(truth.grade[given].mean()) if given.any() else 0.0
    unit = float(truth.grade[given].std()) if given.any() else 1.0
    unit = unit if unit > 0.0 else 1.0
    scores[codes[given]] = (truth.grade[given] - middle) / unit
    return ItemInputs(np.empty((len(items), 0)), clamped, scores, middle, unit)


@dataclass(frozen=True, eq=False)
class DiscriminationPrior:
    """Prior of the discriminations: their mean and, where it is fixed, their variance, (n_annotators,) each.

    ``fixed_variance`` is NaN for annotators whose variance is learned. With ``groups`` it is a mixture: learned shares
    of the crowd are reversed, with minus the mean, or guess, with mean 0.
    """

    mean: Floats
    fixed_variance: Floats
    groups: bool

    def variance(self, learned: float) -> Floats:
        """Prior variance of each annotator's discrimination within its group."""
        return np.where(np.isnan(self.fixed_variance), learned, self.fixed_variance)

    def shares(self, learned: Floats) -> Floats:
        """Prior probability of each group for each annotator, (3, n_annotators)."""
        free = np.isnan(self.fixed_variance) & self.groups
        return np.where(free, learned[:, None], np.array([1.0, 0.0, 0.0])[:, None])


@dataclass(frozen=True, eq=False)
class Anchors:
    """What sets the direction and the scale of scores.

    ``prior`` is that of the discriminations. The mean discrimination of ``scale_setters`` (n_annotators,) is 1; it is
    ``None`` where known items set the scale.
    """

    prior: DiscriminationPrior
    scale_setters: Bools | None
    inputs: ItemInputs


def find_anchors(layout: Layout, inputs: ItemInputs, trusted: Bools) -> Anchors:
    """Return what sets the direction and the scale of scores.

    By default the mean discrimination of the crowd is 1. With trusted annotators it is theirs, and known items of
    different scores set both; in these cases nothing is assumed of the other annotators, whose prior mean is 0.
    """
    n, fixed = layout.n_annotators, np.full(layout.n_annotators, np.nan)
    mean, setters = np.ones(n), layout.active
    reliable = trusted & layout.active
    if reliable.any():
        mean, setters = trusted.astype(np.float64), reliable
        fixed[trusted] = _TRUSTED_VARIANCE
    if inputs.sets_direction:
        mean = np.where(trusted, 1.0, 0.0) if reliable.any() else np.zeros(n)
    prior = DiscriminationPrior(mean, fixed, not inputs.sets_direction and not reliable.any())
    return Anchors(prior, None if inputs.sets_direction or not setters.any() else setters, inputs)


# The state


@dataclass(frozen=True, eq=False)
class ControlState:
    """Coefficients of k covariates.

    Parameters
    ----------
    own
        Those of each annotator, (n_annotators, k).
    covariance
        Covariance of discrimination, bias and coefficients of each, (n_annotators, 2 + k, 2 + k).
    shared, variances
        Mean and variance of the coefficients in the crowd, (k,) each.
    learns_shared
        Whether the mean is learned; otherwise it stays 0, and coefficients are relative to each other.
    curvature
        Curvature of the last round, (n_annotators, k, 2 + k).
    """

    own: Floats
    covariance: Floats
    shared: Floats
    variances: Floats
    learns_shared: bool = True
    curvature: Floats | None = None
    _last_shifts: list[Any] = field(init=False, repr=False, default_factory=list)

    def shifts(self, cells: Cells, scale: float) -> Floats:
        """What covariates add to each judgment, (n_judgments, 3); both steps of a round need the same."""
        from .kernels.ordinal import covariate_shifts

        known = self._last_shifts
        if not known or known[0] is not cells.values or known[1] != scale:
            known[:] = cells.values, scale, covariate_shifts(cells, self.own, self.covariance, scale)
        return known[2]

    def divide_alpha(self, factor: float) -> ControlState:
        """The same with discriminations divided by a factor."""
        covariance = self.covariance.copy()
        covariance[:, 0, :] /= factor
        covariance[:, :, 0] /= factor
        curvature = self.curvature
        if curvature is not None:
            curvature = curvature.copy()
            curvature[:, :, 0] *= factor
        return replace(self, covariance=covariance, curvature=curvature)


@dataclass(frozen=True, eq=False)
class KindState:
    """How annotators respond to one kind; arrays are (n_annotators,) unless said otherwise.

    Parameters
    ----------
    bias, bias_variance, covariance
        Bias of each annotator, its variance, and its covariance with the annotator's discrimination.
    mean_bias, variance_of_bias
        Mean and variance of biases in the crowd.
    spread, spread_variance, variance_of_spread
        Log-spread of each annotator, its variance, and the variance of log-spreads in the crowd.
    lapse, favourites, mean_lapse
        Probability of a lapse, the levels then given (n_annotators or 0, K), and the crowd's mean probability.
    centre, cuts
        The cuts between levels are at ``centre + exp(spread) cuts``, (K-1,).
    log_scale
        Logarithm of lambda, the factor of discriminations for this kind.
    curvature
        Curvature of the last round in discrimination, bias and spread, each with itself and those after it,
        (6, n_annotators).
    control
        Coefficients of the covariates that are controlled for.
    """

    bias: Floats
    bias_variance: Floats
    covariance: Floats
    mean_bias: float
    variance_of_bias: float
    spread: Floats
    spread_variance: Floats
    variance_of_spread: float
    lapse: Floats
    favourites: Floats
    mean_lapse: float
    centre: float
    cuts: Floats
    log_scale: float
    curvature: Floats | None = None
    control: ControlState | None = None

    def level_bounds(self, who: Ints, level: Ints) -> tuple[Floats, Floats]:
        """Return the cuts below and above the level that each annotator gave."""
        cuts = self.centre + np.exp(self.spread[who])[:, None] * self.cuts
        bounds, row = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf)), np.arange(len(level))
        return bounds[row, level], bounds[row, level + 1]

    def lapse_probabilities(self, who: Ints, level: Ints, side: Floats) -> Floats:
        """Return the probability of each level in a lapse, seen from the first item on this side."""
        mirrored: Floats = self.favourites[who, len(self.cuts) - level]
        return 0.5 * ((1.0 + side) * self.favourites[who, level] + (1.0 - side) * mirrored)

    def response_model(self, kind: Kind, alpha: Floats, alpha_variance: Floats) -> ResponseModel:
        """What the passes over judgments need."""
        from .kernels.ordinal import ResponseModel, own_rows

        scale = float(np.exp(self.log_scale))
        rows = own_rows(
            scale, alpha, alpha_variance, self.covariance, self.bias, self.bias_variance, self.spread, self.lapse
        )
        model = ResponseModel(rows, self.favourites, self.centre, self.cuts, scale, kind.has_cuts)
        return model if self.control is None else model._replace(shifts=self.control.shifts(kind.cells, scale))


@dataclass(frozen=True, eq=False)
class State:
    """All estimates of a fit.

    Parameters
    ----------
    scores, variance
        Score of each item and its variance, (n_items,).
    covariance
        Covariance of the scores of each compared pair, (n_pairs,).
    alpha, alpha_variance
        Discrimination of each annotator and its variance, (n_annotators,).
    kinds
        How annotators respond to each kind.
    variance_of_items, variance_of_alpha, variance_of_levels, variance_of_weights
        Variances of scores within queries, discriminations, levels of queries and feature weights.
    shares
        Shares of the annotators who see, are reversed, and guess, (3,).
    weights, weights_covariance
        Weights of the features, (n_features,), and their covariance.
    cell_curvature
        Curvature in the scores of each kind's cells, in the last round.
    feature_variances
        What uncertain weights add to the variances of scores, where there are features.
    difficulty, difficulty_variance
        Log of the noise of grades of each item against the usual one and its variance, (n_items or 0,).
    variance_of_difficulty
        Variance of difficulties, 0 where items are taken as equally difficult.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    alpha: Floats
    alpha_variance: Floats
    kinds: tuple[KindState, ...]
    variance_of_items: float
    variance_of_alpha: float
    shares: Floats
    variance_of_levels: float
    variance_of_weights: float
    weights: Floats
    weights_covariance: Floats
    cell_curvature: tuple[Floats, ...] = ()
    feature_variances: FeatureVariances | None = None
    difficulty: Floats = field(default_factory=lambda: np.empty(0))
    difficulty_variance: Floats = field(default_factory=lambda: np.empty(0))
    variance_of_difficulty: float = 0.0

    def response_model(self, kind: Kind, habits: KindState) -> ResponseModel:
        """What the passes over judgments of a kind need."""
        model = habits.response_model(kind, self.alpha, self.alpha_variance)
        if not kind.has_difficulty or not len(self.difficulty):
            return model
        return model._replace(clarity=np.exp(-self.difficulty[kind.cells.first]))

    def gaps(self, kind: Kind) -> tuple[Floats, Floats]:
        """Score, or difference of scores, of each cell and its variance."""
        first, second = kind.cells.first, kind.cells.second
        if not kind.about_pairs:
            return self.scores[first], self.variance[first]
        between = self.covariance if len(kind.pair) == len(self.covariance) else self.covariance[kind.pair]
        variance = self.variance[first] + self.variance[second] - 2.0 * between
        return self.scores[first] - self.scores[second], np.maximum(variance, 0.0)

    def divide_alpha(self, factor: float) -> State:
        """The same with discriminations divided by a factor."""
        powers = np.array([factor**2, factor, factor, 1.0, 1.0, 1.0, factor**2, factor, 1.0])[:, None]
        kinds = tuple(
            replace(
                kind, covariance=kind.covariance / factor,
                curvature=None if kind.curvature is None else powers * kind.curvature,
                control=None if kind.control is None else kind.control.divide_alpha(factor),
            )
            for kind in self.kinds
        )  # fmt: skip
        return replace(
            self, alpha=self.alpha / factor, alpha_variance=self.alpha_variance / factor**2, kinds=kinds
        )  # fmt: skip

    def rescale(self, factor: float) -> State:
        """The same with scores multiplied and discriminations divided by a factor, which predicts the same."""
        square = factor**2
        return replace(
            self.divide_alpha(factor), scores=self.scores * factor, variance=self.variance * square,
            covariance=self.covariance * square, variance_of_items=self.variance_of_items * square,
            variance_of_levels=self.variance_of_levels * square,
            variance_of_weights=self.variance_of_weights * square, weights=self.weights * factor,
            weights_covariance=self.weights_covariance * square,
            cell_curvature=tuple(curvature / square for curvature in self.cell_curvature), feature_variances=None,
        )  # fmt: skip


# The start


def first_state(layout: Layout, alpha: Floats, n_features: int) -> State:
    """The state before any judgment is seen: equal scores, and these discriminations without bias or spread."""
    variances = START_VARIANCES
    return State(
        scores=np.zeros(layout.n_items), variance=np.zeros(layout.n_items),
        covariance=np.zeros(len(layout.graph.second)), alpha=alpha, alpha_variance=np.zeros(layout.n_annotators),
        kinds=tuple(_first_kind(kind, layout.n_annotators) for kind in layout.kinds),
        variance_of_items=variances["item"], variance_of_alpha=variances["alpha"],
        shares=first_shares(int(layout.active.sum())),
        variance_of_levels=variances["level"] if layout.has_query_levels else 0.0,
        variance_of_weights=weight_variances(n_features)[0],
        weights=np.zeros(n_features), weights_covariance=np.zeros((n_features, n_features)),
    )  # fmt: skip


def weight_variances(n_features: int) -> tuple[float, float]:
    """Return the variance of feature weights before any judgment is seen, and the largest that is learned."""
    n = max(n_features, 1)
    return (
        min(START_VARIANCES["weight"], MAX_FEATURE_VARIANCE["start"] / n),
        min(MAX_VARIANCES["weight"], MAX_FEATURE_VARIANCE["learned"] / n),
    )


def first_shares(n: int) -> Floats:
    """Return the shares of those who see, are reversed, and guess, in a crowd of ``n`` annotators.

    The smaller the crowd, the fewer are reversed or guess.
    """
    others = np.array(START_SHARES[1:]) * n / (n + _HALF_SHARE_ANNOTATORS)
    return np.append(1.0 - others.sum(), others)


def _first_kind(kind: Kind, n: int) -> KindState:
    """Annotators without bias or spread, and cuts from the shares of the levels."""
    zeros = np.zeros(n)
    centre, cuts = first_cuts(kind)
    lapse = START_LAPSE if kind.has_lapses else 0.0
    favourites = np.tile(kind.shares, (n if kind.has_lapses else 0, 1))
    return KindState(
        bias=zeros, bias_variance=zeros, covariance=zeros, mean_bias=0.0, variance_of_bias=START_VARIANCES["bias"],
        spread=zeros, spread_variance=zeros, variance_of_spread=START_VARIANCES["spread"], lapse=np.full(n, lapse),
        favourites=favourites, mean_lapse=lapse, centre=centre, cuts=cuts, log_scale=0.0,
        control=first_control(kind) if kind.n_covariates else None,
    )  # fmt: skip


def first_control(kind: Kind) -> ControlState:
    """No covariate matters to anyone."""
    n, k = len(kind.weight), kind.n_covariates
    alone = int((kind.weight > 0).sum()) < 2
    variance = ALONE_VARIANCE if alone else START_COEFFICIENT_VARIANCE
    return ControlState(np.zeros((n, k)), np.zeros((n, 2 + k, 2 + k)), np.zeros(k), np.full(k, variance))


def former_control(
    first: ControlState, parameters: Mapping[str, Any], estimates: Mapping[str, Any], former: Ints
) -> ControlState:
    """Return the coefficients of a former consensus where it has as many; those of new annotators are the crowd's."""
    former_estimates = estimates.get("control") or {}
    if len(former_estimates) != len(first.shared):
        return first
    shared = np.array([one["coefficient"] for one in former_estimates.values()])
    deviations = np.array([one.get("sd_between_annotators", 0.0) for one in former_estimates.values()])
    own = np.tile(shared, (len(first.own), 1))
    for place, name in enumerate(former_estimates):
        if name in parameters:
            own[:, place] = np.where(former >= 0, np.append(parameters[name], 0.0)[former], own[:, place])
    return replace(first, own=own, shared=shared, variances=np.maximum(deviations**2, ALONE_VARIANCE))


def first_cuts(kind: Kind) -> tuple[float, Floats]:
    """Return the centre and the cuts that predict the observed shares of levels for items of score 0."""
    counts = kind.shares * kind.weight.sum() + 0.5
    below = np.cumsum(counts)[:-1] / counts.sum()
    cuts = np.log(below / (1.0 - below))
    if kind.about_pairs:
        # either side alike
        below = np.cumsum(counts + counts[::-1])[:-1] / (2.0 * counts.sum())
        cuts = np.log(below / (1.0 - below))
        return 0.0, 0.5 * (cuts - cuts[::-1])
    centre = float(cuts.mean()) if len(cuts) else 0.0
    return centre, cuts - centre


def former_state(start: Consensus, judgments: Any, layout: Layout, n_features: int = 0) -> State:
    """Return the state of a former consensus, new items and annotators as in :func:`first_state`.

    Items and annotators are matched by id. Cuts are taken over where the number of levels is the same.
    """
    state = former_habits(start, judgments.annotators, layout, n_features)
    item = start.items.codes_of(judgments.items, "start", "judgments")
    return replace(state, scores=np.where(item >= 0, former_scores(start)[item], 0.0))


def former_scores(start: Consensus) -> Floats:
    """Return the scores of a former consensus on the scale of the model."""
    unit, middle = float(start.estimates.get("unit", 1.0)), float(start.estimates.get("middle", 0.0))
    return (start.scores - middle) / unit


def former_habits(start: Consensus, annotators: Index, layout: Layout, n_features: int = 0) -> State:
    """Return the state of a former consensus without its scores."""
    learned, estimates = start.learned, start.estimates
    if "score_sd" not in estimates or (layout.named and (learned is None or "alpha" not in learned[1])):
        raise ParameterError(
            f"start= is a consensus of {start.method}, which has no discriminations of annotators; "
            "start from a consensus of latent_score, or leave start= out"
        )
    state = first_state(layout, np.ones(layout.n_annotators), n_features)
    unit = float(estimates.get("unit", 1.0))
    state = replace(
        state, variance_of_items=float(estimates["score_sd"]) ** 2,
        variance_of_alpha=float(estimates["alpha_sd"]) ** 2,
    )  # fmt: skip
    if layout.has_query_levels and "query_sd" in estimates:
        state = replace(state, variance_of_levels=float(estimates["query_sd"]) ** 2)
    former: Ints = np.full(layout.n_annotators, -1, np.int32)
    parameters: Mapping[str, Any] = {}
    if learned is not None and layout.named:
        former, parameters = learned[0].codes(annotators.ids), learned[1]
        state = replace(state, alpha=_former_or_new(parameters["alpha"], former, state.alpha / unit) * unit)
    kinds = zip(layout.kinds, state.kinds, strict=True)
    return replace(state, kinds=tuple(_former_kind(kind, own, parameters, estimates, former) for kind, own in kinds))


def _former_or_new(values: Any, former: Ints, new: Floats) -> Floats:
    """The value of each annotator in the former consensus, by its code there, or the new value without one."""
    return np.where(former >= 0, np.append(values, 0.0)[former], new)


def _former_kind(
    kind: Kind, habits: KindState, parameters: Mapping[str, Any], estimates: Mapping[str, Any], former: Ints
) -> KindState:
    """How annotators respond to one kind, as far as the former consensus has it."""

    def of_kind(table: Mapping[str, Any], name: str) -> Any:
        return table.get(f"{name}_{kind.name}", table.get(name))

    changes: dict[str, Any] = {}
    bias, spread, lapse = (of_kind(parameters, name) for name in ("bias", "spread", "lapse"))
    if bias is not None and kind.has_bias:
        changes["bias"] = _former_or_new(bias, former, habits.bias)
    if spread is not None and kind.has_spread:
        changes["spread"] = _former_or_new(np.log(spread), former, habits.spread)
    if lapse is not None and kind.has_lapses:
        changes["lapse"] = np.maximum(_former_or_new(lapse, former, habits.lapse), _MIN_START_LAPSE)
    cuts = of_kind(estimates, "cuts")
    if cuts is not None and kind.has_cuts and len(cuts) == len(habits.cuts):
        # the centre stays that of these judgments
        changes["cuts"] = np.array(cuts) - habits.centre
    if habits.control is not None:
        changes["control"] = former_control(habits.control, parameters, estimates, former)
    scale = estimates.get(f"scale_{kind.name}")
    return replace(habits, **changes, log_scale=0.0 if scale is None else float(np.log(scale)))


def refit_state(layout: Layout, state: State, *, with_habits: bool) -> State:
    """Return the start of a fit to a part of the judgments: what all say of scores, annotators and crowd.

    ``with_habits`` saves rounds. Without, or where the part has other levels, habits of annotators begin anew: where
    two camps contradict each other, rounds that begin with those of all hardly move.
    """
    first = first_state(layout, state.alpha, len(state.weights))
    shapes = [[(kind.cuts.shape, kind.favourites.shape) for kind in own.kinds] for own in (first, state)]
    keep = with_habits and shapes[0] == shapes[1]
    kinds = tuple(replace(kind, curvature=None) for kind in (state if keep else first).kinds)
    if kinds and state.kinds[0].control is not None:
        kinds = (replace(kinds[0], control=replace(state.kinds[0].control, curvature=None)),)
    return replace(
        state, variance=first.variance, covariance=first.covariance, kinds=kinds,
        alpha_variance=state.alpha_variance if with_habits else first.alpha_variance,
        variance_of_levels=state.variance_of_levels if layout.has_query_levels else 0.0,
        cell_curvature=(), feature_variances=None,
    )  # fmt: skip
