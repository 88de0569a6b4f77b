"""What judgments of every kind have: who judged what, with which weight, when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import polars as pl

from ..errors import JudgmentError, warn
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import first_few, option
from .index import Index, Items, Sized, code_items, lock_arrays, run_starts, set_fields
from .intake import FIRST_ROW, LARGEST_WEIGHT, check_rules, count_repeats, row_keys
from .showing import ROWS, Shown, html_table

_MOST_TIMES = 1e15
"""Most times that the largest weight may be of the smallest; beyond that, rounding of the one hides the other."""


_COLUMNS = ("annotator", "weight", "time", "duration", "block")
"""What every kind may have of each judgment."""

_TYPES = {"recorded": np.bool_, "strength": np.float64, "judgment": np.int32, "covariates": np.float64}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Judged(Sized, Shown):
    """What every kind has: who judged what; arrays are read-only and one entry per judgment.

    ``answers`` are a kind's own columns, ``besides`` those that it may have as well.

    ``duration`` is how many seconds a judgment took, NaN where that is not known.
    """

    kind: ClassVar[str]
    answers: ClassVar[tuple[str, ...]]
    besides: ClassVar[tuple[str, ...]] = ()

    items: Items
    annotators: Index
    annotator: Ints
    weight: Floats | None = None
    time: Floats | None = None
    duration: Floats | None = None
    groups: Index | None = None
    group: Ints | None = None
    blocks: Index | None = None
    block: Ints | None = None

    def __post_init__(self) -> None:
        lock_arrays(self, (*_COLUMNS, "group", *self.answers, *self.besides), _TYPES)
        n = len(self)
        for name in (*_COLUMNS, *self.besides):
            column = getattr(self, name)
            if column is not None and len(column) != n and not (name == "annotator" and not len(self.annotators)):
                raise JudgmentError(f"{name} has {len(column)} entries for {n} {self.kind}s; give one for each")
        if self.weight is not None and len(self.weight):
            low, high = float(self.weight.min()), float(self.weight.max())
            # NaN comes through both
            if not 0 < low <= high < np.inf:
                raise JudgmentError("weights must be finite and above 0")
            # pairs of grades weigh the product of two weights that were read
            if high > LARGEST_WEIGHT**2 or low < LARGEST_WEIGHT**-2 or high > _MOST_TIMES * low:
                what = f"weights from {low:g} to {high:g} are too far apart, or too large or small, to compute with"
                raise JudgmentError(f"{what}; bring them nearer to 1")
        if self.time is not None and not np.isfinite(self.time).all():
            raise JudgmentError("times must be finite numbers")
        if self.duration is not None and (np.isinf(self.duration).any() or (self.duration < 0).any()):
            raise JudgmentError("durations must be seconds of 0 or more, NaN where they are not known")
        for name in ("annotator", *self.item_columns):
            codes, n = getattr(self, name), len(self.annotators if name == "annotator" else self.items)
            if len(codes) and not (codes.min() >= 0 and codes.max() < n):
                raise JudgmentError(f"{name} codes must lie between 0 and {n - 1}")

    def __len__(self) -> int:
        """Number of rows, one for each judgment unless shares of a judgment have rows of their own."""
        return len(getattr(self, self.answers[-1]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sizes({'judgment': self.n_judgments})})"

    def _repr_html_(self) -> str:
        """The first judgments, for notebooks."""
        first = self.select(np.arange(min(len(self), ROWS))).frame().head(ROWS)
        return html_table(repr(self), first, len(getattr(self, self.answers[0])))

    @property
    def n_judgments(self) -> int:
        """Number of judgments."""
        return len(self)

    @property
    def row_weight(self) -> Floats:
        """Weight of each judgment, ones where none were given."""
        return np.broadcast_to(1.0, len(self)) if self.weight is None else self.weight

    @property
    def row_annotator(self) -> Ints:
        """Annotator code of each judgment, 0 for all where the judgments name nobody."""
        return self.annotator if self.n_annotators else np.zeros(len(self), np.int32)

    @property
    def judged_items(self) -> Bools:
        """Whether each item was judged at all."""
        judged = np.zeros(self.n_items, bool)
        for name in self.item_columns:
            judged[getattr(self, name)] = True
        return judged

    @property
    def item_columns(self) -> list[str]:
        """Names of the columns that hold items."""
        return [name for name in self.answers if name in ("item", "left", "right")]

    @property
    def query(self) -> Ints:
        """Query code of each judgment."""
        return self.items.query[getattr(self, self.item_columns[0])]

    def recode(self, items: Items, code: Ints, **fields: Any) -> Self:
        """Return the same judgments of other items, of which these are the codes, with some fields changed."""
        return replace(self, items=items, **{name: code[getattr(self, name)] for name in self.item_columns}, **fields)

    def across_queries(self) -> Self:
        """Return the same judgments with equal item ids of different queries taken as one item."""
        items, code, _ = self.merge_queries()
        return self.recode(items, code, blocks=self.items.queries, block=self.query)

    def merge_queries(self) -> tuple[Items, Ints, Ints]:
        """Items with equal ids of all queries taken as one, the new code of each old item, and the old queries."""
        return *code_items(None, self.items.ids, ""), self.items.query

    def in_time(self) -> Counts:
        """Return the rows in the order in which judgments were given: by time, as they stand where there is none."""
        return np.arange(len(self)) if self.time is None else np.argsort(self.time, kind="stable")

    def first_rows(self) -> Counts:
        """Return one row of each judgment, the first."""
        return np.arange(len(self))

    def with_weights(self, weight: Floats) -> Self:
        """Return the judgments with other weights, those of weight 0 left out; items and annotators stay."""
        changed = copy(self)
        # looked over when the selection is made
        set_fields(changed, weight=weight)
        return changed.select(np.flatnonzero(weight))

    def select(self, mask: Bools | Counts) -> Self:
        """Return some of the judgments only; items and annotators stay."""
        own = {name: getattr(self, name) for name in (*self.answers, *self.besides)}
        kept: dict[str, Any] = {name: None if column is None else column[mask] for name, column in own.items()}
        return replace(self, **kept, **self.meta(mask))

    def meta(self, keep: Any) -> dict[str, Any]:
        """Fields that every kind has: columns at the rows ``keep``, and what their codes mean."""
        fields = {name: getattr(self, name) for name in ("items", "annotators", "groups", "group", "blocks")}
        for name in _COLUMNS:
            column = getattr(self, name)
            nobody = name == "annotator" and not self.n_annotators
            fields[name] = column if column is None or nobody else column[keep]
        return fields

    def meta_frame(self) -> dict[str, Any]:
        """Columns that every kind has, with the user's ids."""
        columns: dict[str, Any] = {"weight": self.weight, "time": self.time}
        if self.n_annotators:
            columns = {"annotator": self.annotators.ids.gather(self.annotator), "group": None, **columns}
            if self.group is not None and self.groups is not None:
                columns["group"] = self.groups.ids.gather(self.group[self.annotator])
        if self.duration is not None:
            columns["duration"] = pl.Series(self.duration).fill_nan(None)
        return {name: column for name, column in columns.items() if column is not None}


AnyJudged = TypeVar("AnyJudged", bound=Judged)


def columns_of(rows: Iterable[tuple[Any, ...]], words: tuple[str, ...]) -> dict[str, list[Any]]:
    """Columns from tuples."""
    rows = list(rows)
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(words)), None)
    if wrong is not None:
        raise JudgmentError(f"row {wrong + 1} has {len(rows[wrong])} values; each row is ({', '.join(words)})")
    return {word: [row[place] for row in rows] for place, word in enumerate(words)}


def judged_frame(items: Items, coded: dict[str, Ints], rest: dict[str, Any]) -> pl.DataFrame:
    """Table with ids in place of item codes; the query stands first unless it is only the unnamed one."""
    first = next(iter(coded.values()))
    columns = {name: items.ids.gather(codes) for name, codes in coded.items()}
    return pl.DataFrame({**items.query_column(first), **columns, **rest})


def without_repeats(judged: AnyJudged, duplicates: str, *what: tuple[Ints, int]) -> AnyJudged:
    """The same judgments after the rule for an annotator who judges the same thing twice."""
    if not judged.n_annotators:
        return judged
    keys = [(judged.annotator, judged.n_annotators), *what]
    number, rows = getattr(judged, "judgment", None), None
    if number is not None:
        # shares of one judgment are no repeats of each other
        _, rows, number = np.unique(number, return_index=True, return_inverse=True)
        keys = [(code[rows], size) for code, size in keys]
    check_rules(duplicates)
    n_again = 0 if duplicates == "keep" and FIRST_ROW.get() is not None else count_repeats(keys)
    if not n_again:
        return judged
    if duplicates == "error":
        again = np.flatnonzero(~row_keys(keys).is_first_distinct().to_numpy())
        again = again if rows is None else rows[again]
        table = judged.select(again[:5]).frame()
        table = table.drop(set(table.columns) - {"query", "item", "left", "right", "annotator"})
        shown = [", ".join(f"{word} {one!r}" for word, one in ids.items()) for ids in table.iter_rows(named=True)]
        named = [f"{row + 1} ({ids})" for row, ids in zip(again[:5].tolist(), shown, strict=True)]
        where = f"{'row' if len(again) == 1 else 'rows'} {first_few(named, len(again))}"
        remedy = f"drop them or choose {option('duplicates', 'first')} or {option('duplicates', 'last')}"
        raise JudgmentError(f"an annotator judged the same thing twice in {where}; {remedy}")
    said = {"keep": "each counts", "first": "the first was kept", "last": "the last was kept"}[duplicates]
    complaint = f"{n_again} of {len(keys[0][0])} judgments repeat one by the same annotator on the same thing"
    warn(f"{complaint}; {said} ({option('duplicates')} chooses keep, first, last or error)")
    if duplicates == "keep":
        return judged
    key = row_keys(keys)
    keep = (key.is_first_distinct() if duplicates == "first" else key.is_last_distinct()).to_numpy()
    return judged.select(keep if number is None else keep[number])


def pairs_of_groups(keys: Sequence[Ints]) -> tuple[Counts, Counts]:
    """Return the two row numbers of every pair of rows with equal keys, the first row being the earlier one.

    Examples
    --------
    >>> first, second = pairs_of_groups([np.array([0, 1, 0, 0], np.int32)])
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = np.lexsort(keys[::-1])
    starts = run_starts([key[order] for key in keys])
    ends = np.append(starts[1:], len(order))
    return pairs_within(order, np.repeat(ends, ends - starts))


def row_codes(*keys: Any) -> Counts:
    """Return a number for each row, equal where all keys are equal."""
    code: Counts = np.unique(keys[0], return_inverse=True)[1].astype(np.int64)
    for key in keys[1:]:
        code = np.unique(code * (int(np.max(key, initial=0)) + 1) + key, return_inverse=True)[1].astype(np.int64)
    return code


def pairs_within(order: Counts, end: Counts) -> tuple[Counts, Counts]:
    """Pair each position with the later ones of its group, which stops before ``end``, and return them by ``order``."""
    position = np.arange(len(order))
    followers = end - position - 1
    first = np.repeat(position, followers)
    before = np.repeat(np.cumsum(followers) - followers, followers)
    second = first + 1 + (np.arange(len(first)) - before)
    return order[first], order[second]
