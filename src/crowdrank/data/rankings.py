"""Rankings of several items of one query, best first, possibly partial and with ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from .index import Items
from .intake import Rows, shared_fields, short
from .judged import Judged, check_codes, columns_of, judged_frame
from .pairing import pairs_within
from .preferences import Preferences


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rankings(Judged):
    """Items of one query in order; ``rank`` 1 is best, equal ranks tie, items left out are not judged.

    ``annotator``, ``weight``, ``time`` and ``block`` have one entry per ranking; ``item`` and ``rank`` one per row,
    ranking after ranking and best first, those of ranking ``r`` from ``offsets[r]`` up to ``offsets[r + 1]``.

    Examples
    --------
    >>> table = {"annotator": ["ann"] * 3, "item": ["x", "y", "z"], "rank": [2, 1, 2]}
    >>> rankings = Rankings.from_frame(table)
    >>> rankings.frame()["item"].to_list(), rankings.rank.tolist()
    (['y', 'x', 'z'], [1, 2, 2])
    """

    kind: ClassVar[str] = "ranking"
    answers: ClassVar[tuple[str, ...]] = ("item", "rank", "offsets")

    item: Ints
    rank: Ints
    offsets: Counts

    def __post_init__(self) -> None:
        super().__post_init__()
        check_codes("item", self.item, self.n_items)
        if len(self.item) != len(self.rank) or self.offsets[0] != 0 or self.offsets[-1] != len(self.item):
            raise JudgmentError("item, rank and offsets of the rankings do not match")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def ranking(self) -> Ints:
        """Number of the ranking that each row belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets))

    @property
    def query(self) -> Ints:
        """Query code of each ranking."""
        return self.items.query[self.item[self.offsets[:-1]]]

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        items: Any | None = None,
        invalid: str = "error",
    ) -> Self:
        """Return rankings from a table with columns item and rank [, query, annotator, ranking, weight, time, group].

        Rows of one query and annotator make up a ranking; a ``ranking`` column distinguishes several of them.

        Parameters
        ----------
        data, columns, items, invalid
            As for :meth:`crowdrank.data.grades.Grades.from_frame`.
        """
        rows = Rows(data, "ranking", columns, invalid)
        answers: dict[str, Any] = {"rank": rows.numbers("rank"), "row": np.arange(rows.n)}
        if rows.has("ranking"):
            answers["ranking"] = rows.codes("ranking")[0]["ranking"]
        fields = shared_fields(rows, items, answers, rows.codes("item"))
        return cls(**assemble_rankings(fields))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, Any, Any, Any]]) -> Self:
        """Return rankings from tuples of (annotator, query, item, rank)."""
        return cls.from_frame(columns_of(rows, ("annotator", "query", "item", "rank")))

    @classmethod
    def of_answers(cls, judged: Judged, item: Ints, value: Floats) -> Self:
        """Return one ranking of each annotator's answers to a query, which gave an item a value, larger is better.

        Equal values tie. What was answered twice has the mean value; a ranking weighs the mean of its answers' weights
        and has their latest time. Without annotators all answers to a query are one ranking.
        """
        from ..kernels.ties import join_ties

        keys = [judged.items.query[item], judged.annotator if judged.n_annotators else None, judged.block]
        by = [key for key in keys if key is not None]
        order = np.lexsort((item, *reversed(by)))
        lists = _starts([key[order] for key in by])
        cells = _starts([*(key[order] for key in by), item[order]])
        value, weight = value[order], judged.row_weight[order]
        lowest, highest = np.minimum.reduceat(value, cells), np.maximum.reduceat(value, cells)
        mean = np.add.reduceat(weight * value, cells) / np.add.reduceat(weight, cells)
        mean, codes = np.where(lowest == highest, lowest, mean), item[order][cells]
        number = np.searchsorted(lists, cells, side="right") - 1
        starts = np.searchsorted(number, np.arange(len(lists)))
        # rounding must not tell equal values apart
        mean = join_ties(mean, np.append(starts, len(mean)))
        best = np.lexsort((codes, -mean, number))
        meta = judged.meta(order[lists]) | {"duration": None}
        if judged.weight is not None:
            meta["weight"] = np.add.reduceat(weight, lists) / np.diff(lists, append=len(order))
        if judged.time is not None:
            meta["time"] = np.maximum.reduceat(judged.time[order], lists)
        return cls(
            items=judged.items, annotators=judged.annotators, item=codes[best],
            rank=_dense(-mean[best], starts, number), offsets=np.append(starts, len(codes)), groups=judged.groups,
            group=judged.group, blocks=judged.blocks, **meta,
        )  # fmt: skip

    def select(self, mask: Bools | Counts) -> Self:
        """Return some of the rankings only; items and annotators stay."""
        chosen = np.arange(len(self))[mask]
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return replace(self, item=self.item[rows], rank=self.rank[rows], offsets=offsets, **self.meta(chosen))

    def _n_rows(self) -> int:
        """Number of rows of the table, one for each item of each ranking."""
        return len(self.item)

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids and a number for each ranking."""
        number = self.ranking
        columns = {name: pl.Series(values).gather(number) for name, values in self.meta_frame().items()}
        return judged_frame(self.items, {"item": self.item}, {"rank": self.rank, "ranking": number, **columns})

    def across_queries(self) -> Self:
        """Return the same rankings with equal item ids of different queries taken as one item."""
        items, new, _ = self.merge_queries()
        return replace(self, items=items, item=new[self.item], blocks=self.items.queries, block=self.query)

    def as_rankings(self) -> Rankings:
        """Return the rankings themselves."""
        return self

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return every pair of every ranking as a preference of the ranking's weight; equal ranks tie.

        ``ties=False`` leaves equal ranks out.
        """
        end = np.repeat(self.offsets[1:], np.diff(self.offsets))
        first, second = pairs_within(np.arange(len(self.item)), end)
        outcome = np.sign(self.rank[second] - self.rank[first]).astype(np.int8)
        if not ties:
            keep = outcome != 0
            first, second, outcome = first[keep], second[keep], outcome[keep]
        # the item with the lower code stands left, so the side tells nothing about who won
        swap = self.item[first] > self.item[second]
        left, right = np.where(swap, second, first), np.where(swap, first, second)
        return Preferences(
            items=self.items, annotators=self.annotators, left=self.item[left], right=self.item[right],
            outcome=np.where(swap, -outcome, outcome).astype(np.int8), groups=self.groups, group=self.group,
            blocks=self.blocks, recorded=np.ones(len(first), bool),
            **(self.meta(self.ranking[first]) | {"duration": None}),
        )  # fmt: skip


def _starts(keys: list[Any]) -> Counts:
    """Where a row differs from the one before in any of the keys."""
    new = np.ones(len(keys[0]), bool)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(new)


def assemble_rankings(fields: dict[str, Any]) -> dict[str, Any]:
    """Sort rows into rankings, check each, and make its ranks dense; return the fields of rankings."""
    items: Items = fields["items"]
    item, rank, row = fields["item"], fields.pop("rank"), fields.pop("row")
    annotator, number = fields["annotator"], fields.pop("ranking", None)
    keys = [items.query[item]]
    keys += [annotator] if len(annotator) else []
    keys += [number] if number is not None else []
    order = np.lexsort((item, rank, *reversed(keys)))
    starts = _starts([key[order] for key in keys])
    offsets = np.append(starts, len(order))
    number_of = np.repeat(np.arange(len(starts)), np.diff(offsets))
    _check_once(items, item[order], number_of, row[order], number is not None or len(annotator) > 0)
    fields.update(item=item[order], rank=_dense(rank[order], starts, number_of), offsets=offsets)
    for name in ("annotator", "weight", "time", "duration", "block"):
        column = fields.get(name)
        if column is not None and len(column):
            fields[name] = _per_ranking(name, column[order], starts, number_of, row[order])
    return fields


def _dense(rank: Floats, starts: Counts, number: Counts) -> Ints:
    """Ranks 1, 2, ... within each ranking, equal where the given ranks are equal."""
    step = np.ones(len(rank), np.int64)
    step[1:] = rank[1:] != rank[:-1]
    step[starts] = 1
    climbed = np.cumsum(step)
    return (climbed - climbed[starts][number] + 1).astype(np.int32)


def _check_once(items: Items, item: Ints, number: Counts, row: Counts, named: bool) -> None:
    """Refuse an item that appears twice in one ranking."""
    order = np.lexsort((row, item, number))
    again = (np.diff(item[order]) == 0) & (np.diff(number[order]) == 0)
    if again.any():
        place = order[1:][again]
        first = place[np.argmin(row[place])]
        more = f" (and {int(again.sum()) - 1} more rows like it)" if again.sum() > 1 else ""
        remedy = "drop one" if named else "add an annotator or ranking column that distinguishes the rankings"
        raise JudgmentError(
            f"item {short(items.ids[int(item[first])])} appears twice in one ranking, the second time in row "
            f"{int(row[first]) + 1}{more}; {remedy}, or add a ranking column if these are several rankings"
        )


def _per_ranking(name: str, column: Any, starts: Counts, number: Counts, row: Counts) -> Any:
    """The one value that each ranking has; rows of a ranking must agree on its weight."""
    first = column[starts]
    differs = np.flatnonzero(column != first[number])
    if name == "weight" and len(differs):
        raise JudgmentError(
            f"rows of one ranking have different weights (row {int(row[differs[0]]) + 1}); give them one weight"
        )
    return first
