"""Judgments of one kind or several: brought onto one numbering, put together, and what they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import polars as pl

from ..errors import JudgmentError, warn
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import call, counted, method_label, option
from .column_names import understand_pairs
from .frames import to_frame
from .grades import MAX_LEVELS, Grades
from .index import NO_QUERY, Index, Items, Sized, build_items, factorize, first_row
from .intake import expect_one_group, place_items, short
from .judged import AnyJudged, row_codes
from .preferences import Preferences, Rankings
from .showing import Shown

Judgments: TypeAlias = Grades | Preferences | Rankings

Kind: TypeAlias = type[Grades] | type[Preferences] | type[Rankings]
KINDS: dict[str, Kind] = {"grade": Grades, "preference": Preferences, "ranking": Rankings}

__all__ = ["KINDS", "Grades", "Judgments", "Mixed", "Preferences", "Rankings", "expect"]


def expect(judgments: Any, method: Any, *, instead: Sequence[str] = (), what: str = "method") -> Any:
    """Return the judgments if the method takes their kind; otherwise say which call to make, or which methods do.

    ``what`` is the word for the method and those ``instead`` of it.
    """
    name = method_label(method)
    mixed, nominal = isinstance(judgments, Mixed), bool(getattr(judgments, "nominal", False))
    others = ""
    if instead:
        kinds = "them together" if mixed else "classes" if nominal else f"{judgments.kind}s"
        others = f", or choose a {what} that takes {kinds}: {', '.join(instead)}"
    if mixed:
        if not getattr(method, "mixes", False):
            several = " and ".join(f"{kind}s" for kind in judgments.kinds)
            remedy = f"give it one kind{others or ', or use latent_score, which takes them'}"
            raise JudgmentError(f"{name} takes one kind of judgment, not {several} together; {remedy}")
        lacking = next((kind for kind in judgments.kinds if kind not in method.kinds), None)
        if lacking is not None:
            raise JudgmentError(f"{name} takes no {lacking}s; leave them out{others or ', or choose another method'}")
        return judgments
    if not isinstance(judgments, Grades | Preferences | Rankings):
        said = f"{name} takes judgments, not a {type(judgments).__name__}; make them with Grades.from_frame"
        raise JudgmentError(f"{said}, Preferences.from_frame, Rankings.from_frame or read_judgments")
    if judgments.kind not in method.kinds:
        takes = " or ".join(f"{kind}s" for kind in method.kinds)
        # to rankings only where nothing else is taken: what every pair of a ranking says may also be preferences
        goal = next((kind for kind in ("preference", "ranking") if kind in method.kinds), None)
        remedy = f"turn them into {goal}s first with {call(f'as_{goal}s')}{others}" if goal else others[5:]
        said = f"{name} takes {takes}, not {judgments.kind}s"
        raise JudgmentError(f"{said}; {remedy or f'choose a {what} for {judgments.kind}s'}")
    if nominal and not getattr(method, "nominal", False):
        remedy = others or ", or use a class method such as majority_vote"
        remedy = f"give {option('levels')} from worst to best{remedy}"
        raise JudgmentError(f"{name} needs an order and nominal grades have none; {remedy}")
    return judgments


@dataclass(frozen=True, eq=False, repr=False)
class Mixed(Sized, Shown):
    """Grades, preferences and rankings together, with one numbering of items and of annotators.

    ``parts`` holds one set of judgments of each kind that occurs, in the order grades, preferences, rankings. A
    judgment's place is that in its part, the parts taken one after the other.

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)])
    >>> preferences = Preferences.from_rows([("bob", "q", "x", "z", "left")])
    >>> mixed = Mixed.of([preferences, Grades.from_rows([("bob", "q", "y", 2)]), grades])
    >>> mixed
    Mixed(3 grades, 1 preference, 3 items, 1 query, 2 annotators)
    >>> mixed.kinds, mixed.parts[1].items is mixed.items
    (('grade', 'preference'), True)
    """

    kind: ClassVar[str] = "mixed"

    parts: tuple[Judgments, ...]

    @classmethod
    def of(cls, judgments: Sequence[Judgments]) -> Self:
        """Return judgments together: ids that are equal mean the same item or annotator, whatever the kind.

        Judgments of one kind given in several pieces become one part. A warning says which parts have neither an item
        nor an annotator in common with the others.
        """
        if not judgments:
            raise JudgmentError("there are no judgments to put together; give at least one set of them")
        for part in judgments:
            what = f"a {type(part).__name__}"
            if not isinstance(part, Judgments):
                raise JudgmentError(f"{what} is not a set of judgments; give grades, preferences or rankings")
            if isinstance(part, Grades) and part.nominal:
                why = "nominal grades have no order and do not say which item is better"
                remedy = f"give {option('levels')} from worst to best, or aggregate them by themselves"
                raise JudgmentError(f"{why}, so they cannot stand beside other judgments; {remedy}")
        aligned = align_judgments(judgments)
        pieces = [[part for part in aligned if isinstance(part, kind)] for kind in KINDS.values()]
        parts = [stack_judgments(same) for same in pieces if same]
        # warn of parts that share neither an item nor an annotator with the others, directly or through a third
        busy = [np.bincount(part.annotator, minlength=part.n_annotators) > 0 for part in parts]
        touched = [np.append(part.judged_items, own) for part, own in zip(parts, busy, strict=True)]
        reached, near = {0}, touched[0]
        for _ in parts:
            reached |= {number for number, own in enumerate(touched) if (own & near).any()}
            near = np.logical_or.reduce([touched[number] for number in reached])
        apart = [f"{part.kind}s" for number, part in enumerate(parts) if number not in reached]
        if apart:
            rest = " and ".join(f"{part.kind}s" for number, part in enumerate(parts) if number in reached)
            who = "item and no annotator" if len(parts[0].annotators) else "item"
            so = "scores of the two are only tied by the prior and cannot be compared"
            remedy = "use the same ids where they mean the same, or aggregate each by itself"
            warn(f"the {' and '.join(apart)} share no {who} with the {rest}: {so}; {remedy}")
        return cls(tuple(parts))

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def __repr__(self) -> str:
        return f"Mixed({self._sizes({part.kind: part.n_judgments for part in self.parts})})"

    @property
    def items(self) -> Items:
        """Items of all parts, within their queries."""
        return self.parts[0].items

    @property
    def annotators(self) -> Index:
        """Annotators of all parts."""
        return self.parts[0].annotators

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each part."""
        return tuple(part.kind for part in self.parts)

    @property
    def n_judgments(self) -> int:
        """Number of judgments, a ranking counted as one."""
        return sum(part.n_judgments for part in self.parts)

    @property
    def annotator(self) -> Ints:
        """Annotator code of each judgment, part after part."""
        return np.concatenate([part.annotator for part in self.parts])

    @property
    def weight(self) -> Floats | None:
        """Weight of each judgment, ``None`` where none were given."""
        return None if all(part.weight is None for part in self.parts) else self.row_weight

    @property
    def row_weight(self) -> Floats:
        """Weight of each judgment, ones where none were given."""
        return np.concatenate([part.row_weight for part in self.parts])

    @property
    def groups(self) -> Index | None:
        """Families of annotators."""
        return self.parts[0].groups

    @property
    def group(self) -> Ints | None:
        """Family of each annotator."""
        return self.parts[0].group

    @property
    def block(self) -> Ints | None:
        """Former query of each judgment, after :meth:`across_queries`."""
        blocks = [part.block for part in self.parts if part.block is not None]
        return np.concatenate(blocks) if len(blocks) == len(self.parts) else None

    @property
    def judged_items(self) -> Bools:
        """Whether each item was judged at all, in any part."""
        return np.logical_or.reduce([part.judged_items for part in self.parts])

    @property
    def offsets(self) -> Counts:
        """Bounds of the parts: the judgments of part ``p`` are ``offsets[p]`` up to ``offsets[p + 1]``."""
        return np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)

    def select(self, mask: Bools | Counts) -> Self:
        """Return some of the judgments only; items and annotators stay, a part without a judgment does not."""
        chosen = np.arange(len(self))[mask]
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        places = [chosen[(chosen >= start) & (chosen < stop)] - start for start, stop in bounds]
        kept = tuple(part.select(place) for part, place in zip(self.parts, places, strict=True) if len(place))
        return type(self)(kept or (self.parts[0].select(places[0]),))

    def with_weights(self, weight: Floats) -> Self:
        """Return the judgments with other weights, those of weight 0 left out; items and annotators stay."""
        of_parts = np.split(weight, self.offsets[1:-1])
        parts = [part.with_weights(own) for part, own in zip(self.parts, of_parts, strict=True)]
        return type(self)(tuple(part for part in parts if len(part)) or (parts[0],))

    def _repr_html_(self) -> str:
        """The first judgments of each kind, for notebooks."""
        return "\n".join(part._repr_html_() for part in self.parts)

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids and a column that names the kind; other kinds' columns are null."""
        frames = [part.frame().select(pl.lit(part.kind).alias("kind"), pl.all()) for part in self.parts]
        return pl.concat(frames, how="diagonal_relaxed")

    def across_queries(self) -> Self:
        """Return the same judgments with equal item ids of different queries taken as one item."""
        parts = [part.across_queries() for part in self.parts]
        # the parts have the same items, so the first one's numbering is that of all
        return type(self)(tuple(replace(part, items=parts[0].items) for part in parts))

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return every part as preferences, in one set of them; with times only if every part has them."""
        return self._together([part.as_preferences(ties=ties) for part in self.parts])

    def as_rankings(self) -> Rankings:
        """Return every part as rankings, in one set of them; with times only if every part has them."""
        return self._together([part.as_rankings() for part in self.parts])

    def _together(self, parts: list[AnyJudged]) -> AnyJudged:
        """The parts, now of one kind, as one."""
        if any(part.time is None for part in parts):
            parts = [replace(part, time=None) for part in parts]
        return stack_judgments(parts)


def parts_of(judgments: Judgments | Mixed) -> tuple[Judgments, ...]:
    """Return the parts of judgments of several kinds, or the judgments as the only part."""
    return judgments.parts if isinstance(judgments, Mixed) else (judgments,)


def with_levels(judgments: Judgments | Mixed) -> Judgments | Mixed:
    """Return the judgments with the levels of their grades declared, so a part without one still knows of it."""
    parts = list(parts_of(judgments))
    for number, part in enumerate(parts):
        if isinstance(part, Grades) and part.declared is None and len(part.levels) <= MAX_LEVELS:
            parts[number] = replace(part, declared=part.levels)
    return Mixed(tuple(parts)) if isinstance(judgments, Mixed) else parts[0]


def count_kinds(judgments: Judgments | Mixed) -> str:
    """Return how many judgments of each kind there are, in words."""
    return " and ".join(counted(part.n_judgments, part.kind) for part in parts_of(judgments))


def together(judgments: Sequence[Judgments]) -> Judgments | Mixed:
    """Return several sets of judgments as one: of their kind if that is the same, otherwise mixed."""
    mixed = Mixed.of(judgments)
    return mixed.parts[0] if len(mixed.parts) == 1 else mixed


def align_judgments(sets: Sequence[AnyJudged]) -> list[AnyJudged]:
    """Return the sets of judgments with codes over the items and annotators of all of them.

    Where one names no query, all may have only one, and items alone are compared.
    """
    ids, item_ids = factorize([judged.items.ids for judged in sets])
    bare = [judged for judged in sets if judged.items.single]
    query_ids, of_queries = pl.Series("id", [NO_QUERY]), [np.zeros(1, np.int32) for _ in sets]
    if len(bare) < len(sets):
        several = [number for number, judged in enumerate(sets) if not judged.items.single]
        named, query_ids = factorize([sets[number].items.queries.ids for number in several])
        if bare and len(query_ids) > 1:
            what = f"there is no query in the {bare[0].kind}s but several in the {sets[several[0]].kind}s"
            raise JudgmentError(f"{what}; add the query column")
        for number, codes in zip(several, named, strict=True):
            of_queries[number] = codes
    placed = [(of_query[judged.items.query], own) for of_query, judged, own in zip(of_queries, sets, ids, strict=True)]
    items, item_codes = build_items(Index(query_ids), placed, item_ids)
    named_by = {bool(judged.n_annotators): judged.kind for judged in reversed(sets)}
    if len(named_by) > 1:
        what = f"the {named_by[False]}s do not say who gave them but the {named_by[True]}s do"
        raise JudgmentError(f"{what}; add an annotator column, in which one name may stand for all")
    annotator_codes, annotator_ids = factorize([judged.annotators.ids for judged in sets])
    fields: dict[str, Any] = {"annotators": Index(annotator_ids)}
    pairs = zip(sets, annotator_codes, strict=True)
    grouped = [(judged.groups.ids, judged.group, code) for judged, code in pairs if judged.groups is not None]
    if grouped:
        of_sets, group_ids = factorize([groups for groups, _, _ in grouped])
        group = np.full(len(annotator_ids), -1, np.int32)
        for (_, own, code), of_groups in zip(grouped, of_sets, strict=True):
            expect_one_group(code, of_groups[own], group, annotator_ids, group_ids)
            group[code] = of_groups[own]
        fields |= {"groups": Index(group_ids), "group": group}
        if (group < 0).any():
            lacking = short(annotator_ids[int(np.argmin(group))])
            some = f"{int((group < 0).sum())} of {len(group)} annotators have none, {lacking} the first"
            warn(f"the groups of annotators are left out, since {some}; add the group column to all judgments")
            fields |= {"groups": None, "group": None}
    # former queries of the sets whose queries were taken together
    block_ids = [judged.blocks.ids for judged in sets if judged.blocks is not None]
    if len({series.dtype for series in block_ids}) > 1:
        block_ids = [series.cast(pl.String) for series in block_ids]
    blocks = Index(pl.concat(block_ids).unique().sort()) if block_ids else Index.empty()
    aligned_sets = []
    for judged, of_items, of_annotators in zip(sets, item_codes, annotator_codes, strict=True):
        columns = dict(fields)
        if len(annotator_ids):
            columns["annotator"] = of_annotators[judged.annotator]
        if judged.blocks is not None and judged.block is not None:
            columns |= {"blocks": blocks, "block": blocks.codes(judged.blocks.ids)[judged.block]}
        aligned_sets.append(judged.recode(items, of_items, **columns))
    return aligned_sets


_FILL = {"weight": 1.0, "duration": np.nan, "recorded": False}
"""What stands for a column that some of the sets lack."""


def stack_judgments(sets: Sequence[AnyJudged]) -> AnyJudged:
    """Return the judgments of several sets of one kind, numbered by :func:`align_judgments`, as one set."""
    first = sets[0]
    if len(sets) == 1:
        return first
    answers = [name for name in ("annotator", *first.answers) if name != "offsets"]
    columns: dict[str, Any] = {name: np.concatenate([getattr(judged, name) for judged in sets]) for name in answers}
    for name in ("weight", "time", "duration", "block", *first.besides):
        each = [getattr(judged, name) for judged in sets]
        n_lacking = sum(len(judged) for judged in sets if getattr(judged, name) is None)
        if name in ("judgment", "covariates") or all(column is None for column in each):
            continue
        if n_lacking and name == "block":
            what = f"some {first.kind}s have queries that were taken together and others do not"
            raise JudgmentError(f"{what}; give it to all of them, or to none of them")
        if n_lacking and name in ("time", "strength"):
            columns[name] = None
            more = "; only who won is used" if name == "strength" else ""
            warn(f"the {name}s of {first.kind}s are left out, since {n_lacking} {first.kind}s have none{more}")
        else:
            pairs = zip(sets, each, strict=True)
            columns[name] = np.concatenate([np.full(len(s), _FILL.get(name, 0)) if c is None else c for s, c in pairs])
    preferences = [judged for judged in sets if isinstance(judged, Preferences)]
    if preferences:
        columns["strength_levels"] = max(judged.strength_levels or 0.0 for judged in preferences)
        if any(judged.judgment is not None for judged in preferences):
            numbers = [np.arange(len(j)) if j.judgment is None else row_codes(j.judgment) for j in preferences]
            starts = np.cumsum([0, *map(len, preferences[:-1])])
            together = [number + start for number, start in zip(numbers, starts, strict=True)]
            columns["judgment"] = np.concatenate(together).astype(np.int32)
        if any(judged.covariate_names for judged in preferences):
            columns |= _covariates(preferences)
    if isinstance(first, Rankings):
        lengths = np.concatenate([np.diff(judged.offsets) for judged in sets if isinstance(judged, Rankings)])
        columns["offsets"] = np.concatenate([[0], np.cumsum(lengths)])
    if isinstance(first, Grades) and len({judged.declared for judged in sets if isinstance(judged, Grades)}) > 1:
        what = "the sets of grades have different levels"
        raise JudgmentError(f"{what}; give each the same {option('levels')} from worst to best")
    return replace(first, **columns)


def _covariates(sets: Sequence[Preferences]) -> dict[str, Any]:
    """Covariates of the preferences of all sets, those that all have, in the order of the first."""
    ways = [dict(zip(judged.covariate_names, judged.covariate_transforms, strict=True)) for judged in sets]
    lost = sorted({name for own in ways for name in own if any(name not in other for other in ways)})
    if lost:
        what = f"covariate {lost[0]!r} stands in some sets of preferences and not in others"
        raise JudgmentError(f"{what}; add it to all of them, or leave it out")
    for own in ways:
        for name, way in ways[0].items():
            if way != own[name]:
                what = f"covariate {name!r} is made in two ways, {way} and {own[name]}"
                raise JudgmentError(f"{what}; read all sets of preferences with the same columns and transform")
    columns = [judged.covariate_columns(list(ways[0])) for judged in sets]
    fields = {"covariate_names": tuple(ways[0]), "covariate_transforms": tuple(ways[0].values())}
    return {"covariates": np.concatenate(columns), **fields}


def with_items(judged: AnyJudged, items: Any) -> tuple[AnyJudged, Bools]:
    """Return the judgments with a place for every item of a list (query, item), and which items the list names.

    Examples
    --------
    >>> from crowdrank.data.judgments import Grades
    >>> grades = Grades.from_rows([("ann", "q", "x", 3)])
    >>> more, listed = with_items(grades, {"query": ["q", "r"], "item": ["y", "z"]})
    >>> more.items.ids.to_list(), listed.tolist()
    (['x', 'y', 'z'], [False, True, True])
    """
    placed, moved, chosen = place_items(judged.items, items)
    return judged.recode(placed, moved), chosen


def with_described_items(judged: Any, items: Items) -> Any:
    """Return judgments of one kind or several with a place for each of some items, such as those that have features."""
    if len(items) <= len(judged.items) and (judged.items.codes_of(items, "judgments", "items") >= 0).all():
        return judged
    return with_listed_items(judged, {"item": items.ids} if judged.items.single else items.id_columns())


def with_listed_items(judged: Any, table: Any) -> Any:
    """Return judgments of one kind or several with a place for each item of a list (query, item)."""
    if not isinstance(judged, Mixed):
        return with_items(judged, table)[0]
    parts = [with_items(part, table)[0] for part in judged.parts]
    return Mixed(tuple(replace(part, items=parts[0].items) for part in parts))


def with_pairs(judged: AnyJudged, pairs: Any) -> tuple[AnyJudged, tuple[Ints, Ints]] | None:
    """Return the judgments with a place for every item of a list of pairs (query, left, right), and the pairs.

    ``None`` where the table has no left and right.
    """
    table = to_frame(pairs)
    names = understand_pairs(table.columns)
    if names is None:
        return None
    query = table[names["query"]] if "query" in names else None
    columns = {} if query is None else {"query": query}
    sides = [table[names[side]] for side in ("left", "right")]
    more, _ = with_items(judged, pl.concat([pl.DataFrame({**columns, "item": one}) for one in sides]))
    left, right = (more.items.codes(query, one) for one in sides)
    if (row := first_row(left == right)) is not None:
        raise JudgmentError(f"row {row + 1} of the list of pairs has the same item on both sides; leave it out")
    return more, (left, right)


AnyJudgments = TypeVar("AnyJudgments", bound=Judgments | Mixed)


def with_pseudonyms(judgments: AnyJudgments) -> AnyJudgments:
    """Return the judgments with annotators called A1, A2, ... in the order of their ids.

    Examples
    --------
    >>> from .judgments import Grades
    >>> rows = [("bob@example.org", "q", "x", 2), ("ann@example.org", "q", "x", 1)]
    >>> with_pseudonyms(Grades.from_rows(rows)).frame()["annotator"].to_list()
    ['A2', 'A1']
    """
    if isinstance(judgments, Mixed):
        return type(judgments)(tuple(with_pseudonyms(part) for part in judgments.parts))
    n = judgments.n_annotators
    names = np.array([f"A{number + 1}" for number in range(n)])
    order = np.argsort(names)
    annotators = Index(pl.Series("id", names[order].tolist(), dtype=pl.String))
    annotator = np.argsort(order).astype(np.int32)[judgments.annotator] if n else judgments.annotator
    group = None if judgments.group is None else judgments.group[order]
    return replace(judgments, annotators=annotators, annotator=annotator, group=group)


class Compared(NamedTuple):
    """Items that judgments are about, and pairs of items that they compare.

    ``places`` are columns of item codes, of judgments or of the rows of judgment ``owner``; ``pairs`` are two columns
    of items that are compared there, likewise. Grades stand on a scale of their own and compare nothing.
    """

    places: tuple[Ints, ...]
    owner: Ints | None
    pairs: tuple[Ints, Ints]
    pair_owner: Ints | None


def comparisons(judgments: Judgments | Mixed) -> Compared:
    """Return what judgments are about, and what they compare; those of several kinds are numbered part after part."""
    if isinstance(judgments, Mixed):
        columns, pairs = list[Any](), list[Any]()
        for part, start in zip(map(comparisons, judgments.parts), judgments.offsets.tolist(), strict=False):
            rows = np.arange(len(part.places[0])) if part.owner is None else part.owner
            columns += [(column, start + rows) for column in part.places]
            rows = np.arange(len(part.pairs[0])) if part.pair_owner is None else part.pair_owner
            pairs.append((*part.pairs, start + rows))
        items, owner = (np.concatenate(side) for side in zip(*columns, strict=True))
        left, right, pair_owner = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return Compared((items,), owner, (left, right), pair_owner)
    if isinstance(judgments, Preferences):
        both = (judgments.left, judgments.right)
        return Compared(both, None, both, None)
    if isinstance(judgments, Rankings):
        owner = judgments.ranking
        first = np.flatnonzero(np.diff(owner) == 0)
        return Compared((judgments.item,), owner, (judgments.item[first], judgments.item[first + 1]), owner[first])
    return Compared((judgments.item,), None, (judgments.item[:0], judgments.item[:0]), None)


def weight_of_items(judgments: Judgments | Mixed) -> Floats:
    """Return the weight of the judgments that each item is part of."""
    counts = np.zeros(judgments.n_items)
    for part in parts_of(judgments):
        compared = comparisons(part)
        weight = part.row_weight if compared.owner is None else part.row_weight[compared.owner]
        for column in compared.places:
            counts += np.bincount(column, weight, len(counts))
    return counts


class Links(NamedTuple):
    """What all judgments tell: which items were judged, and which groups of items they connect."""

    compared: Compared
    judged: Bools
    group: Ints
    n_joins: int

    @classmethod
    def of(cls, judgments: Judgments | Mixed) -> Links:
        """Return what the judgments tell."""
        from ..kernels.pairs import join_rows

        compared = comparisons(judgments)
        pairs = compared.pairs
        group, n_joins = join_rows(*pairs, np.ones(len(pairs[0]), bool), judgments.n_items)
        return cls(compared, judgments.judged_items, group, n_joins)

    def missing_in(self, drawn: Bools) -> tuple[int, bool]:
        """Return how many items are left without a drawn judgment, and whether others are no longer connected."""
        from ..kernels.pairs import join_rows, mark_drawn

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
