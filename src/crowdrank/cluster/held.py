"""Judgments in memory, cut into the parts that packing them would give, so that fits have the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.index import Index, Items
from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..protocols import Counts, Ints
from . import packing
from .packed import PackedJudgments, judgments_of
from .packing import ITEM_COLUMNS, MOST_LEVELS, N_BUCKETS, Chunk, buckets_of, chunk_of, part_table


@dataclass(frozen=True, eq=False, repr=False)
class HeldJudgments(PackedJudgments):
    """Judgments that were read as a whole, in the parts of packed ones.

    ``ordered`` says whether the rows of a part are sorted, as those of packed ones are.
    """

    keeps_ranking: ClassVar[bool] = True
    whole: Judgments = field(kw_only=True)
    part_of_unit: Ints = field(kw_only=True)
    """Part of each query, or of each annotator where parts share queries."""
    ordered: bool = field(default=True, kw_only=True)
    _sorted: dict[int, Judgments] = field(default_factory=dict, init=False)
    """The part that was asked for last: sorting its rows takes longer than most of what is done with it."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return hold_judgments, (self.whole,)

    @property
    def annotators(self) -> Index:
        """All annotators."""
        return self.whole.annotators

    @property
    def groups(self) -> Index | None:
        """Families of annotators."""
        return self.whole.groups

    @property
    def group(self) -> Ints | None:
        """Family of each annotator."""
        return self.whole.group

    @property
    def blocks(self) -> Index | None:
        """Former queries of judgments that were taken across queries."""
        return self.whole.blocks

    @property
    def items(self) -> Items:
        """All items, sorted by query and then item."""
        return self.whole.items

    def item_codes(self, number: int) -> Ints:
        """Return the place among :attr:`items` of each item of a part."""
        if self.by == "annotator" or self.n_parts == 1:
            return np.arange(self.n_items, dtype=np.int32)
        return np.flatnonzero(self.part_of_unit[self.items.query] == number).astype(np.int32)

    def part(self, number: int) -> Judgments:
        """Return the judgments of one part."""
        if self.n_parts == 1 and not self.ordered:
            return self.whole
        part = self._sorted.get(number)
        if part is None:
            part = self._sort_part(number)
            self._sorted.clear()
            self._sorted[number] = part
        return part

    def _sort_part(self, number: int) -> Judgments:
        """The rows of a part, sorted."""
        chunk, bounds = self._rows_by_part
        rows = {name: column[bounds[number] : bounds[number + 1]] for name, column in chunk.columns.items()}
        items = self.items
        if self.by == "query" and self.n_parts > 1:
            items = self._items_in_part(number)
            code = np.empty(self.n_items, np.int32)
            code[self.item_codes(number)] = np.arange(len(items), dtype=np.int32)
            rows |= {name: code[rows[name]] for name in ITEM_COLUMNS if name in rows}
        coded = self.manifest["levels"] is not None
        _, table, levels = part_table(self.kind, rows, items, coded=coded, ordered=self.ordered)
        return judgments_of(self, table, items, {"levels": levels})

    def _items_in_part(self, number: int) -> Items:
        """The items of the queries of a part."""
        inside = self.part_of_unit == number
        code = (np.cumsum(inside) - 1).astype(np.int32)
        chosen = self.item_codes(number)
        queries = Index(self.items.queries.ids.filter(pl.Series(inside)))
        return Items(queries, code[self.items.query[chosen]], self.items.ids.gather(chosen))

    @cached_property
    def _rows_by_part(self) -> tuple[Chunk, Counts]:
        """The columns of all rows, those of a part together, and where each part begins."""
        chunk = chunk_of(self.whole, 0)
        if self.n_parts == 1:
            first = next(name for name in ITEM_COLUMNS if name in chunk.columns)
            return chunk, np.array([0, len(chunk.columns[first])])
        part = self.part_of_unit[_units(chunk, self.by)].astype(np.uint16)
        order = np.argsort(part, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=self.n_parts))])
        return chunk._replace(columns={name: column[order] for name, column in chunk.columns.items()}), bounds


def hold_judgments(judgments: Judgments, *, ordered: bool = True) -> HeldJudgments:
    """Return judgments in the parts that packing them by query would give, or by annotator where a query is too large.

    Examples
    --------
    >>> held = hold_judgments(Grades.from_rows([("ann", "q", "x", 3), ("bob", "q", "x", 2)]))
    >>> held.n_parts, len(held.part(0))
    (1, 2)
    """
    chunk = chunk_of(judgments, 0)
    by = "query"
    sizes = _unit_sizes(chunk, by, judgments.n_queries)
    if judgments.n_annotators and sizes.max(initial=0) > packing.MOST_PART_ROWS:
        by = "annotator"
        sizes = _unit_sizes(chunk, by, judgments.n_annotators)
    bucket = buckets_of(judgments.items.queries.ids if by == "query" else judgments.annotators.ids)
    counts = np.bincount(bucket, sizes, N_BUCKETS).astype(np.int64)
    bounds = packing.part_bounds(counts, packing.PART_ROWS)
    part_of_bucket = np.repeat(np.arange(len(bounds), dtype=np.int32), [high - low for low, high in bounds])
    part = part_of_bucket[bucket]
    rows = [judgments.n_judgments]
    if len(bounds) > 1:
        rows = _judgments_of_parts(judgments, part[_units(chunk, by)], len(bounds))
    return HeldJudgments(
        Path(), _manifest_of(judgments, chunk, by, rows), whole=judgments, part_of_unit=part, ordered=ordered
    )


def _unit_sizes(chunk: Chunk, by: str, n_units: int) -> Counts:
    """Number of rows of each query, or annotator."""
    if by == "query" and n_units == 1:
        return np.array([len(chunk.columns[next(name for name in ITEM_COLUMNS if name in chunk.columns)])])
    return np.bincount(_units(chunk, by), minlength=n_units)


def _units(chunk: Chunk, by: str) -> Ints:
    """Query, or annotator, of each row."""
    first = next(name for name in ITEM_COLUMNS if name in chunk.columns)
    return chunk.columns["annotator"] if by == "annotator" else chunk.items.query[chunk.columns[first]]


def _judgments_of_parts(judgments: Judgments, part: NDArray[np.int32], n_parts: int) -> list[int]:
    """Number of judgments of each part, given the part of each row."""
    if isinstance(judgments, Rankings):
        part = part[judgments.offsets[:-1]]
    elif isinstance(judgments, Preferences) and judgments.judgment is not None:
        part = part[np.unique(judgments.judgment, return_index=True)[1]]
    return np.bincount(part, minlength=n_parts).tolist()


def _manifest_of(judgments: Judgments, chunk: Chunk, by: str, rows: list[int]) -> dict[str, Any]:
    """What the manifest of packed judgments says of them."""
    declared, nominal, covariates = chunk.form
    levels = None
    if isinstance(judgments, Grades):
        levels = declared if declared is not None or len(judgments.levels) >= MOST_LEVELS else judgments.levels
    return {
        "kind": judgments.kind, "by": by, "single": judgments.items.single, "rows": sum(rows),
        "items": judgments.n_items, "queries": judgments.n_queries, "annotators": judgments.n_annotators,
        "groups": None if judgments.groups is None else list(judgments.groups), "levels": levels, "declared": declared,
        "nominal": nominal, "covariates": covariates, "strength_levels": chunk.strength_levels,
        "parts": [{"rows": n} for n in rows],
    }  # fmt: skip
