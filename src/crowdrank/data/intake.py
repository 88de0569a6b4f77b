"""From the cells of a table to checked columns; every complaint names rows, ids and a remedy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from ..errors import DataWarning, JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import first_few, one_of, option
from .coding import LONG, compact, factorize, factorize_groups, id_series
from .columns import understand_items
from .frames import to_frame
from .guessing import Wishes, understand
from .index import NO_QUERY, Index, Items, build_items

CodedIds: TypeAlias = tuple[dict[str, Ints], pl.Series]
"""Codes by column word, over one series of ids."""

ID_GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "grade": (("item",), ("query",), ("annotator",), ("group",)),
    "preference": (("left", "right"), ("query",), ("annotator",), ("group",), ("winner",), ("judgment",)),
    "ranking": (("item",), ("query",), ("annotator",), ("group",), ("ranking",)),
}
"""Columns of each kind that hold ids, those with common ids together."""

_MOST_BITS = 1 << 31

LARGEST_NUMBER = 1e15
"""Largest size of a grade or rank: whole numbers stay exact, and squares and sums of millions of them stay finite."""

LARGEST_WEIGHT = 1e12
"""A weight lies between one over this and this, and the largest is at most so many times the smallest."""

_LARGEST_TIME = 1e20
_SOME_CELLS = 5_000

DROP = "correct them"
"""Remedy of rows that may as well be left out; that is said too where few would be."""

_NOT_GIVEN = ("the grade is blank", "the winner is blank", "the rank is blank")
_FEW_BAD = 0.1
"""Share of the rows from which on bad ones are no slips: the columns may be other ones."""


_FIRST_ROW: ContextVar[int | None] = ContextVar("first row", default=None)
"""Rows of a longer table before those at hand; ``None`` where these are all."""


@contextmanager
def counting_from(first: int) -> Iterator[None]:
    """Name rows in messages by their number in a longer table, of which those at hand begin behind ``first``.

    Repeated judgments are not counted meanwhile: some of the rows would say too little of them. Ids are in no order,
    as those of all rows are sorted later.
    """
    token = _FIRST_ROW.set(first)
    try:
        yield
    finally:
        _FIRST_ROW.reset(token)


class Rows:
    """The rows of one table on their way in, and what is wrong with them."""

    def __init__(
        self, data: Any, kind: str, columns: Mapping[str, str] | None, invalid: str, wishes: Wishes | None = None
    ) -> None:
        check_rules(invalid=invalid)
        table = to_frame(data)
        understood = understand(table, kind, columns, wishes=wishes)
        self.names = understood.columns
        self.frame = table.select([pl.col(name).alias(word) for word, name in self.names.items()])
        self.by_winner = "loser" in self.names
        if self.by_winner:
            self.frame = self.frame.rename({"winner": "left", "loser": "right"})
        self.invalid = invalid
        self.n = len(self.frame)
        self.bad: Bools = np.zeros(self.n, bool)
        self._complaints: list[tuple[str, str]] = []
        if not self.n:
            raise JudgmentError(f"the table has a header but no rows; it should hold one {kind} in each")
        groups = [words for words in ID_GROUPS[kind] if self.has(words[0])]
        columns_of_groups = [[self.frame[word] for word in words] for words in groups]
        coded = factorize_groups(columns_of_groups, ordered=_FIRST_ROW.get() is None)
        self._coded = dict(zip(groups, coded, strict=True))

    def has(self, word: str) -> bool:
        """Whether the table has a column for this word."""
        return word in self.frame.columns

    def blame(self, mask: Bools, what: str, remedy: str) -> None:
        """Note that ``what`` is wrong in the masked rows."""
        if mask.any():
            remedy = remedy.replace("that row", "those rows") if mask.sum() > 1 else remedy
            self._complaints.append((f"{what} in {self.where(mask)}", remedy))
            self.bad |= mask

    def settle(self) -> Bools | None:
        """Raise, or return the mask of the rows to keep (``None``: all)."""
        if not self._complaints:
            return None
        if self.invalid == "error":
            said, remedy = self._complaints[0]
            # a blank answer is one that was not given, however many there are
            few = self.bad.sum() < _FEW_BAD * self.n or (said.startswith(_NOT_GIVEN) and not self.bad.all())
            if remedy.startswith(DROP) and few:
                dropped = f"{DROP}, or leave such rows out with {option('invalid', 'drop')}"
                remedy = dropped + remedy.removeprefix(DROP)
            raise JudgmentError(f"{said}; {remedy}")
        if self.bad.all():
            said = self._complaints[0][0]
            raise JudgmentError(f"no row is left once invalid ones are dropped: {said}; give rows with an answer")
        said = " and ".join(text for text, _ in self._complaints)
        warnings.warn(f"left out {int(self.bad.sum())} of {self.n} rows: {said}", DataWarning, stacklevel=5)
        return ~self.bad

    def where(self, mask: Bools) -> str:
        """The first five of the masked rows, with their ids, and a count."""
        rows = np.flatnonzero(mask)
        first = [self._describe(int(row)) for row in rows[:5]]
        if len(rows) == 1:
            return first[0]
        return f"{len(rows)} rows: {first_few(first, len(rows))}"

    def _describe(self, row: int) -> str:
        """A row by its number and ids."""
        words = [w for w in ("query", "item", "left", "right", "annotator", "ranking") if self.has(w)]
        named = [f"{self.word(w)} {short(self.frame[w][row])}" for w in words]
        return f"row {(_FIRST_ROW.get() or 0) + row + 1} ({', '.join(named)})"

    def word(self, word: str) -> str:
        """The house word that the table itself has for a column."""
        return {"left": "winner", "right": "loser"}.get(word, word) if self.by_winner else word

    def codes(self, *words: str) -> CodedIds:
        """Codes of id columns over their common ids; rows with a blank id are blamed."""
        codes, ids = self._coded[words]
        for word, code in zip(words, codes, strict=True):
            if code.min() < 0:
                self.blame(code < 0, f"the {self.word(word)} id is blank", DROP)
        return dict(zip(words, codes, strict=True)), ids

    def values(self, word: str) -> tuple[Ints, pl.Series]:
        """Codes of a column over its distinct values; -1, without blame, where it is blank."""
        codes, ids = self._coded[word,]
        return codes[0], ids

    def numbers(self, word: str, *, text: str = DROP, largest: float = LARGEST_NUMBER) -> Floats:
        """A column of numbers; what is blank, text (remedy ``text``), NaN, infinite or out of bounds is blamed."""
        values, empty, words = numbers_of(self.frame[word])
        self.blame(empty, f"the {word} is blank", DROP)
        self.blame(words, f"the {word} is not a number", text)
        self._bound(word, values, empty | words, largest)
        return values

    def _bound(self, word: str, values: Floats, known_bad: Bools, largest: float) -> None:
        """Blame numbers that cannot be computed with."""
        finite = np.isfinite(values)
        self.blame(~finite & ~known_bad, f"the {word} is NaN or infinite", DROP)
        far = finite & (np.abs(values) > largest)
        self.blame(far, f"the {word} is beyond {largest:g}, too large to compute with", "give it in another unit")

    def weight(self) -> Floats | None:
        """The weight column, or ``None`` where there is none or all are 1."""
        if not self.has("weight"):
            return None
        weight = self.numbers("weight", largest=LARGEST_WEIGHT)
        self.blame(np.isfinite(weight) & (weight <= 0), "the weight is zero or negative", "weights must be above 0")
        low = (weight > 0) & (weight < 1 / LARGEST_WEIGHT)
        self.blame(low, f"the weight is below {1 / LARGEST_WEIGHT:g}, too small to compute with", "scale all weights")
        fine = weight[~self.bad] if self.bad.any() else weight
        if len(fine) and fine.max() > LARGEST_WEIGHT * fine.min():
            lightest = ~self.bad & (weight == fine.min())
            self.blame(
                lightest,
                f"the weight is less than 1/{LARGEST_WEIGHT:g} of the largest, {fine.max():g}",
                "it counts for nothing, so leave that row out",
            )
        return None if (weight == 1.0).all() else weight

    def time(self) -> Floats | None:
        """The time column as seconds (timestamps) or as the numbers given."""
        if not self.has("time"):
            return None
        cells = self.frame["time"]
        if cells.dtype.is_temporal():
            if isinstance(cells.dtype, pl.Duration) or cells.dtype == pl.Time:
                seconds = cells.cast(pl.Duration("us")).dt.total_microseconds().cast(pl.Float64) / 1e6
            else:
                seconds = cells.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 1e6
            self.blame(seconds.is_null().to_numpy(), "the time is blank", DROP)
            return seconds.fill_null(0.0).to_numpy()
        values, empty, text = numbers_of(cells)
        if text.any():
            parsed = _timestamps(id_series(cells).cast(pl.String).str.strip_chars())
            self.blame(
                parsed.is_null().to_numpy() & ~empty,
                "the time is neither a number nor a date",
                "write 2026-01-31T12:00:00",
            )
            values = (parsed.dt.epoch("us").cast(pl.Float64) / 1e6).fill_null(0.0).to_numpy()
        self.blame(empty, "the time is blank", DROP)
        self._bound("time", values, empty, _LARGEST_TIME)
        return values

    def duration(self) -> Floats | None:
        """The seconds that each judgment took, NaN where the cell is blank."""
        if not self.has("duration"):
            return None
        values, empty, text = numbers_of(self.frame["duration"])
        self.blame(text, "the duration is not a number of seconds", DROP)
        self._bound("duration", values, empty | text, LARGEST_NUMBER)
        self.blame(values < 0, "the duration is below 0", DROP)
        return np.where(empty, np.nan, values)


def are_times(cells: pl.Series) -> bool:
    """Return whether a column can be read as times: every cell is a number or a date of a known form.

    Examples
    --------
    >>> are_times(pl.Series(["2024-05-01 10:00:00"])), are_times(pl.Series(["noon"])), are_times(pl.Series([1.5, None]))
    (True, False, False)
    """
    if cells.dtype.is_temporal():
        return cells.null_count() == 0
    if cells.dtype.is_nested() or cells.null_count():
        return False
    # of very many cells some will do
    cells = cells.gather_every(max(len(cells) // _SOME_CELLS, 1))
    _, blank, text = numbers_of(cells)
    if blank.any() or not text.any():
        return not blank.any()
    return _timestamps(id_series(cells).cast(pl.String).str.strip_chars()).null_count() == 0


def _timestamps(cells: pl.Series) -> pl.Series:
    """Cells as timestamps, with a time zone or without; null where they are none."""
    for zone in ("UTC", None):
        try:
            parsed = cells.str.to_datetime(time_unit="us", time_zone=zone, strict=False)
        except pl.exceptions.ComputeError:
            continue  # the first cells are of no form that polars knows
        if parsed.null_count() < len(cells):
            return parsed
    return pl.Series([None] * len(cells), dtype=pl.Datetime("us"))


def short(value: object) -> str:
    """An id as it is shown in messages."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}...{text[-1]}"


def numbers_of(cells: pl.Series) -> tuple[Floats, Bools, Bools]:
    """Cells as numbers, with masks of the blank ones and of those that are text."""
    if cells.dtype == pl.String:
        stripped = cells.str.strip_chars()
        blank = stripped.is_null() | (stripped == "").fill_null(True)
        values = stripped.cast(pl.Float64, strict=False)
    elif cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        blank = cells.is_null() if not cells.dtype.is_float() else cells.is_null() | cells.is_nan().fill_null(True)
        values = cells.cast(pl.Float64)
    else:
        return numbers_of(id_series(cells).cast(pl.String))
    text = values.is_null() & ~blank
    return values.fill_null(float("nan")).to_numpy(), blank.to_numpy(), text.to_numpy()


def shared_fields(rows: Rows, items: Any | None, answers: dict[str, Any], item_codes: CodedIds) -> dict[str, Any]:
    """Settle what is wrong with the rows and return the fields that all kinds have, without dropped rows.

    ``answers`` are the kind's own columns, already read; ``item_codes`` holds the item columns by their words.
    """
    columns: dict[str, Any] = {**answers, "weight": rows.weight(), "time": rows.time(), "duration": rows.duration()}
    query, query_ids = (
        rows.codes("query") if rows.has("query") else ({"query": np.zeros(rows.n, np.int32)}, _no_query())
    )
    annotator, annotator_ids = rows.codes("annotator") if rows.has("annotator") else ({}, _no_ids())
    group, group_ids = rows.codes("group") if rows.has("group") else ({}, _no_ids())
    columns.update(item_codes[0] | query | annotator | group)
    keep = rows.settle()
    if keep is not None:
        columns = {word: None if column is None else column[keep] for word, column in columns.items()}
        query_ids = _recode_used("query", columns, query_ids)
        annotator_ids = _recode_used("annotator", columns, annotator_ids)
    columns.setdefault("annotator", np.empty(0, np.int32))
    words = tuple(item_codes[0])
    parts = [(columns["query"], columns[word]) for word in words]
    if items is None:
        coded = build_items(Index(query_ids), parts, item_codes[1], complete=keep is None)
    else:
        coded = _with_extra_items(parts, query_ids, item_codes[1], items)
    del columns["query"]
    columns.update(zip(words, coded[1], strict=True))
    columns.update(_groups(columns.pop("group", None), group_ids, columns["annotator"], annotator_ids))
    return columns | {"items": coded[0], "annotators": Index(annotator_ids)}


def _recode_used(word: str, columns: dict[str, Any], ids: pl.Series) -> pl.Series:
    """Recode a column over those ids only that dropped rows have left, and return them."""
    if word in columns:
        columns[word], ids = compact(columns[word], ids)
    return ids


def _with_extra_items(
    parts: list[tuple[Ints, Ints]], query_ids: pl.Series, item_ids: pl.Series, items: Any
) -> tuple[Items, list[Ints]]:
    """Items of the rows, with those of the extra list ``items`` (query, item) that nobody judged."""
    table = to_frame(items)
    names = understand_items(table.columns)
    if "query" in names:
        (of_rows, of_extra), query_ids = factorize([query_ids, table[names["query"]]])
        parts = [(of_rows[query], code) for query, code in parts]
    elif len(query_ids) == 1:
        of_extra = np.zeros(len(table), np.int32)
    else:
        raise JudgmentError("the list of items has no query column but the judgments name several queries; add it")
    (of_ids, extra), item_ids = factorize([item_ids, table[names["item"]]])
    if (extra < 0).any() or (of_extra < 0).any() or any((query < 0).any() for query, _ in parts):
        raise JudgmentError("the list of items has a blank query or item id, or queries the judgments lack; correct it")
    parts = [(query, of_ids[code]) for query, code in parts]
    placed, numbers = build_items(Index(query_ids), [*parts, (of_extra, extra)], item_ids)
    return placed, numbers[:-1]


def _no_query() -> pl.Series:
    """Ids of the one unnamed query."""
    return pl.Series("id", [NO_QUERY])


def _no_ids() -> pl.Series:
    """No ids at all."""
    return pl.Series("id", [], dtype=pl.String)


def _groups(group: Ints | None, group_ids: pl.Series, annotator: Ints, annotator_ids: pl.Series) -> dict[str, Any]:
    """The group of each annotator, who may belong to only one."""
    if group is None:
        return {}
    if not len(annotator_ids):
        raise JudgmentError("there is a group column but no annotator column; groups are families of annotators")
    of_annotator = np.full(len(annotator_ids), -1, np.int32)
    of_annotator[annotator] = group
    wrong = np.flatnonzero(of_annotator[annotator] != group)
    if len(wrong):
        who = int(annotator[wrong[0]])
        named = [group_ids[int(code)] for code in (group[wrong[0]], of_annotator[who])]
        shown = f"{short(named[0])} and {short(named[1])}"
        raise JudgmentError(f"annotator {short(annotator_ids[who])} stands in two groups, {shown}; name one")
    used, group_ids = compact(of_annotator, group_ids)
    return {"group": used, "groups": Index(group_ids)}


def handle_duplicates(keys: Sequence[tuple[Ints, int]], duplicates: str, describe: str, where: Any) -> Bools | None:
    """Count rows in which an annotator judges the same thing again; return the rows to keep (``None``: all).

    ``keys`` holds (codes, number of codes) of what makes two rows the same judgment; ``where(mask)`` names rows.
    """
    check_rules(duplicates)
    n_rows = len(keys[0][0])
    n_again = 0 if duplicates == "keep" and _FIRST_ROW.get() is not None else count_repeats(keys)
    if not n_again:
        return None
    key = _row_keys(keys) if duplicates != "keep" else pl.Series()
    if duplicates == "error":
        again = ~key.is_first_distinct().to_numpy()
        raise JudgmentError(
            f"{describe} in {where(again)}; drop them or choose {option('duplicates', 'first')} "
            f"or {option('duplicates', 'last')}"
        )
    said = {"keep": "each counts", "first": "the first was kept", "last": "the last was kept"}[duplicates]
    warnings.warn(
        f"{n_again} of {n_rows} judgments repeat one by the same annotator on the same thing; {said} "
        f"({option('duplicates')} chooses keep, first, last or error)",
        DataWarning,
        stacklevel=5,
    )
    if duplicates == "keep":
        return None
    return (key.is_first_distinct() if duplicates == "first" else key.is_last_distinct()).to_numpy()


def check_rules(duplicates: str = "keep", invalid: str = "error") -> None:
    """Refuse a rule for repeated or unusable rows that there is none of."""
    one_of(duplicates, ("keep", "first", "last", "error"), "duplicates", of_verb=True)
    one_of(invalid, ("error", "drop"), "invalid")


def count_repeats(keys: Sequence[tuple[Ints, int]]) -> int:
    """Return the number of rows that repeat an earlier one; a bit per possible row is quickest for long tables."""
    n_rows = len(keys[0][0])
    cells = math.prod(max(size, 1) for _, size in keys)
    if n_rows < LONG or cells > _MOST_BITS:
        key = _row_keys(keys)
        if key.dtype != pl.Int64:
            return n_rows - key.n_unique()
        rising = np.sort(key.to_numpy())  # quicker than a table of hashes
        return int((rising[1:] == rising[:-1]).sum())
    from ..kernels.repeats import count_repeats as count

    third = keys[2] if len(keys) > 2 else (np.empty(0, np.int32), 1)
    return int(count(keys[0][0], keys[1][0], keys[1][1], third[0], third[1], cells))


def _row_keys(keys: Sequence[tuple[Ints, int]]) -> pl.Series:
    """One integer a row that tells different keys apart."""
    if math.prod(max(size, 1) for _, size in keys) >= 1 << 62:
        return pl.DataFrame({str(number): code for number, (code, _) in enumerate(keys)}).to_struct("key")
    key: Counts = keys[0][0].astype(np.int64)
    for code, size in keys[1:]:
        key *= size
        key += code
    return pl.Series(key)
