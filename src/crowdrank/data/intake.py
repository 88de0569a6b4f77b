"""From the cells of a table to checked columns; every complaint names rows, ids and a remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError, warn
from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from ..wording import either, first_few, one_of, option
from .column_names import plain_name, understand_items
from .columns import Understood, Wishes, understand
from .frames import to_frame
from .index import LONG, NO_QUERY, Index, Items, build_items, compact, factorize, factorize_groups, first_row, id_series
from .words import Order, as_float, codes_of, known_order, plain_word, which_direction

CodedIds: TypeAlias = tuple[dict[str, Ints], pl.Series]
"""Codes by column word, over one series of ids."""

ID_GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "grade": (("item",), ("query",), ("annotator",), ("group",)),
    "preference": (("left", "right"), ("query",), ("annotator",), ("group",), ("winner",), ("judgment",)),
    "ranking": (("item",), ("query",), ("annotator",), ("group",), ("ranking",)),
}
"""Columns of each kind that hold ids, those with common ids together."""

# threshold (equal): cells of a table of bits for repeated judgments
_MOST_BITS = 1 << 31

LARGEST_NUMBER = 1e15
"""Largest size of a grade or rank: whole numbers stay exact, and squares and sums of millions of them stay finite."""

LARGEST_WEIGHT = 1e12
"""A weight lies between one over this and this, and the largest is at most so many times the smallest."""

_LARGEST_TIME = 1e20

R_MISSING = -(2.0**31)
"""What NA in a column of whole numbers becomes on the way from R to Python."""

_SOME_CELLS = 5_000

DROP = "correct them"
"""Remedy of rows that may as well be left out; that is said too where few would be."""

_NOT_GIVEN = ("the grade is blank", "the winner is blank", "the rank is blank")
_FEW_BAD = 0.1
"""Share of the rows from which on bad ones are no slips: the columns may be other ones."""


FIRST_ROW: ContextVar[int | None] = ContextVar("first row", default=None)
"""Rows of a longer table before those at hand; ``None`` where these are all."""


@contextmanager
def counting_from(first: int) -> Iterator[None]:
    """Name rows in messages by their number in a longer table, of which those at hand begin behind ``first``.

    Repeated judgments are not counted meanwhile: some of the rows would say too little of them. Ids are in no order,
    as those of all rows are sorted later.
    """
    token = FIRST_ROW.set(first)
    try:
        yield
    finally:
        FIRST_ROW.reset(token)


class Rows:
    """The rows of one table on their way in, and what is wrong with them."""

    def __init__(
        self, data: Any, kind: str, columns: Mapping[str, str] | None, invalid: str, wishes: Wishes | None = None
    ) -> None:
        check_rules(invalid=invalid)
        understood = data if isinstance(data, Understood) else understand(to_frame(data), kind, columns, wishes=wishes)
        assert understood.table is not None
        self.names = understood.columns
        self.frame = understood.table.select(pl.col(name).alias(word) for word, name in self.names.items())
        self.by_winner = "loser" in self.names
        if self.by_winner:
            self.frame = self.frame.rename({"winner": "left", "loser": "right"})
        self.invalid = invalid
        self.n = len(self.frame)
        self.bad: Bools = np.zeros(self.n, bool)
        self._complaints: list[tuple[str, str]] = []
        if not self.n:
            raise JudgmentError(f"the table has a header but no rows; it should hold one {kind} in each")
        groups = {words: self.frame.select(words).get_columns() for words in ID_GROUPS[kind] if self.has(words[0])}
        coded = factorize_groups(list(groups.values()), ordered=FIRST_ROW.get() is None)
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
        said, remedy = self._complaints[0]
        if self.invalid == "error":
            # a blank answer is one that was not given, however many there are
            few = self.bad.sum() < _FEW_BAD * self.n or (said.startswith(_NOT_GIVEN) and not self.bad.all())
            if remedy.startswith(DROP) and few:
                remedy = f"{DROP}, or leave such rows out with {option('invalid', 'drop')}{remedy.removeprefix(DROP)}"
            raise JudgmentError(f"{said}; {remedy}")
        if self.bad.all():
            raise JudgmentError(f"no row is left once invalid ones are dropped: {said}; give rows with an answer")
        said = " and ".join(text for text, _ in self._complaints)
        warn(f"left out {int(self.bad.sum())} of {self.n} rows: {said}")
        return ~self.bad

    def where(self, mask: Bools) -> str:
        """The first five of the masked rows, with their ids, and a count."""
        rows = np.flatnonzero(mask)
        words = [word for word in ("query", "item", "left", "right", "annotator", "ranking") if self.has(word)]
        first = []
        for row in rows[:5].tolist():
            ids = ", ".join(f"{self.word(word)} {short(self.frame[word][row])}" for word in words)
            first.append(f"row {(FIRST_ROW.get() or 0) + row + 1} ({ids})")
        return first[0] if len(rows) == 1 else f"{len(rows)} rows: {first_few(first, len(rows))}"

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

    def numbers(
        self, word: str, cells: pl.Series | None = None, *, text: str = DROP, largest: float = LARGEST_NUMBER
    ) -> Floats:
        """The column of a word, or the cells of another column, as numbers; what cannot be computed with is blamed.

        That is what is blank, text (remedy ``text``), NaN, infinite or out of bounds.
        """
        what = f"the {word}" if cells is None else repr(word)
        values, empty, words = numbers_of(self.frame[word] if cells is None else cells)
        self.blame(empty, f"{what} is blank", DROP)
        self.blame(words, f"{what} is not a number", text)
        self._bound(what, values, empty | words, largest)
        return values

    def _bound(self, what: str, values: Floats, known_bad: Bools, largest: float) -> None:
        """Blame numbers that cannot be computed with."""
        finite = np.isfinite(values)
        self.blame(~finite & ~known_bad, f"{what} is NaN or infinite", DROP)
        self.blame(values == R_MISSING, f"{what} is {R_MISSING:.0f}, R's missing number,", DROP)
        far = finite & (np.abs(values) > largest)
        self.blame(far, f"{what} is beyond {largest:g}, too large to compute with", "give it in another unit")

    def weight(self) -> Floats | None:
        """The weight column, or ``None`` where there is none or all are 1."""
        if not self.has("weight"):
            return None
        weight = self.numbers("weight", largest=LARGEST_WEIGHT)
        self.blame(np.isfinite(weight) & (weight <= 0), "the weight is zero or negative", "weights must be above 0")
        low = (weight > 0) & (weight < 1 / LARGEST_WEIGHT)
        self.blame(low, f"the weight is below {1 / LARGEST_WEIGHT:g}, too small to compute with", "scale all weights")
        largest, least = weight.max(where=~self.bad, initial=0.0), weight.min(where=~self.bad, initial=np.inf)
        if largest > LARGEST_WEIGHT * least:
            what = f"the weight is less than 1/{LARGEST_WEIGHT:g} of the largest, {largest:g}"
            self.blame(~self.bad & (weight == least), what, "it counts for nothing, so leave that row out")
        return None if (weight == 1.0).all() else weight

    def time(self) -> Floats | None:
        """The time column as seconds (timestamps) or as the numbers given."""
        if not self.has("time"):
            return None
        cells = self.frame["time"]
        if cells.dtype.is_temporal():
            span = isinstance(cells.dtype, pl.Duration) or cells.dtype == pl.Time
            cells = cells.cast(pl.Duration("us") if span else pl.Datetime("us")).to_physical().cast(pl.Float64) / 1e6
        values, empty, text = numbers_of(cells)
        if text.any():
            parsed = _timestamps(cells)
            what = "the time is neither a number nor a date"
            self.blame(parsed.is_null().to_numpy() & ~empty, what, "write 2026-01-31T12:00:00")
            values = (parsed.dt.epoch("us").cast(pl.Float64) / 1e6).fill_null(0.0).to_numpy()
        self.blame(empty, "the time is blank", DROP)
        self._bound("the time", values, empty, _LARGEST_TIME)
        return values

    def duration(self) -> Floats | None:
        """The seconds that each judgment took, NaN where the cell is blank."""
        if not self.has("duration"):
            return None
        values, empty, text = numbers_of(self.frame["duration"])
        self.blame(text, "the duration is not a number of seconds", DROP)
        self._bound("the duration", values, empty | text, LARGEST_NUMBER)
        self.blame(values < 0, "the duration is below 0", DROP)
        return np.where(empty, np.nan, values)


def are_times(cells: pl.Series) -> bool:
    """Return whether a column can be read as times: every cell is a number or a date of a known form.

    Examples
    --------
    >>> are_times(pl.Series(["2024-05-01 10:00:00"])), are_times(pl.Series(["noon"])), are_times(pl.Series([1.5, None]))
    (True, False, False)
    """
    if cells.dtype.is_temporal() or cells.dtype.is_nested() or cells.null_count():
        return cells.dtype.is_temporal() and not cells.null_count()
    # of very many cells some will do
    cells = cells.gather_every(max(len(cells) // _SOME_CELLS, 1))
    _, blank, text = numbers_of(cells)
    return not blank.any() and (not text.any() or _timestamps(cells).null_count() == 0)


def _timestamps(cells: pl.Series) -> pl.Series:
    """Cells as timestamps, with a time zone or without; null where they are none."""
    texts = id_series(cells).cast(pl.String).str.strip_chars()
    for zone in ("UTC", None):
        try:
            parsed = texts.str.to_datetime(time_unit="us", time_zone=zone, strict=False)
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
        values = cells.cast(pl.Float64)
        blank = values.fill_nan(None).is_null()
    else:
        return numbers_of(id_series(cells).cast(pl.String))
    text = values.is_null() & ~blank
    return values.fill_null(float("nan")).to_numpy(), blank.to_numpy(), text.to_numpy()


def shared_fields(rows: Rows, items: Any | None, answers: dict[str, Any], item_codes: CodedIds) -> dict[str, Any]:
    """Settle what is wrong with the rows and return the fields that all kinds have, without dropped rows.

    ``answers`` are the kind's own columns, already read; ``item_codes`` holds the item columns by their words.
    """
    columns: dict[str, Any] = {**answers, "weight": rows.weight(), "time": rows.time(), "duration": rows.duration()}
    # one unnamed query where none is named
    columns["query"] = np.zeros(rows.n, np.int32)
    ids = {"query": pl.Series("id", [NO_QUERY]), "annotator": pl.Series("id", [], dtype=pl.String)}
    for word in ("query", "annotator", "group"):
        if rows.has(word):
            codes, ids[word] = rows.codes(word)
            columns |= codes
    columns |= item_codes[0]
    keep = rows.settle()
    if keep is not None:
        columns = {word: None if column is None else column[keep] for word, column in columns.items()}
        for word in ("query", "annotator"):
            if word in columns:
                columns[word], ids[word] = compact(columns[word], ids[word])
    columns.setdefault("annotator", np.empty(0, np.int32))
    words, query = tuple(item_codes[0]), columns.pop("query")
    parts = [(query, columns[word]) for word in words]
    placed, numbers = build_items(Index(ids["query"]), parts, item_codes[1], complete=keep is None)
    if items is not None:
        placed, moved, _ = place_items(placed, items)
        numbers = [moved[number] for number in numbers]
    columns.update(zip(words, numbers, strict=True))
    if "group" in ids:
        # an annotator may belong to only one group
        if not len(ids["annotator"]):
            raise JudgmentError("there is a group column but no annotator column; groups are families of annotators")
        of_annotator = np.full(len(ids["annotator"]), -1, np.int32)
        of_annotator[columns["annotator"][::-1]] = columns["group"][::-1]  # that of the first row
        expect_one_group(columns["annotator"], columns["group"], of_annotator, ids["annotator"], ids["group"])
        columns["group"], families = compact(of_annotator, ids["group"])
        columns["groups"] = Index(families)
    return columns | {"items": placed, "annotators": Index(ids["annotator"])}


def place_items(old: Items, items: Any) -> tuple[Items, Ints, Bools]:
    """Return items with those of a list (query, item) beside them, the new code of each, and which the list names."""
    table = to_frame(items)
    names = understand_items(table.columns)
    (of_old, of_new), ids = factorize([old.ids, table[names["item"]]])
    queries, query_of_old, query_of_new = old.queries, old.query, np.zeros(len(table), np.int32)
    if "query" in names:
        if old.single:
            raise JudgmentError("the list of items names queries and the judgments do not; add the query column there")
        (to_new, query_of_new), query_ids = factorize([old.queries.ids, table[names["query"]]])
        queries, query_of_old = Index(query_ids), to_new[old.query]
    elif old.n_queries > 1:
        raise JudgmentError("the list of items has no query column but the judgments name several queries; add it")
    if (row := first_row(np.minimum(of_new, query_of_new) < 0)) is not None:
        what = f"row {row + 1} of the list of items has a blank query or item id"
        raise JudgmentError(f"{what}; correct it or leave it out")
    placed, (moved, listed) = build_items(queries, [(query_of_old, of_old), (query_of_new, of_new)], ids)
    chosen = np.zeros(len(placed), bool)
    chosen[listed] = True
    return placed, moved, chosen


def expect_one_group(
    annotator: Ints, group: Ints, of_annotator: Ints, annotator_ids: pl.Series, group_ids: pl.Series
) -> None:
    """Refuse annotators with another group than the one that is theirs, if it is known."""
    theirs = of_annotator[annotator]
    if (row := first_row((theirs >= 0) & (theirs != group))) is not None:
        shown = " and ".join(short(group_ids[int(code)]) for code in (theirs[row], group[row]))
        who = short(annotator_ids[int(annotator[row])])
        raise JudgmentError(f"annotator {who} stands in two groups, {shown}; name one")


def check_rules(duplicates: str = "keep", invalid: str = "error") -> None:
    """Refuse a rule for repeated or unusable rows that there is none of."""
    one_of(duplicates, ("keep", "first", "last", "error"), "duplicates", of_verb=True)
    one_of(invalid, ("error", "drop"), "invalid")


def count_repeats(keys: Sequence[tuple[Ints, int]]) -> int:
    """Return the number of rows that repeat an earlier one; a bit per possible row is quickest for long tables."""
    n_rows = len(keys[0][0])
    cells = math.prod(max(size, 1) for _, size in keys)
    if n_rows < LONG or cells > _MOST_BITS:
        key = row_keys(keys)
        if key.dtype != pl.Int64:
            return n_rows - key.n_unique()
        rising = np.sort(key.to_numpy())  # quicker than a table of hashes
        return int((rising[1:] == rising[:-1]).sum())
    from ..kernels.numbering import count_repeats as count

    (first, _), second, third = [*keys, (np.empty(0, np.int32), 1)][:3]
    return int(count(first, *second, *third, cells))


def row_keys(keys: Sequence[tuple[Ints, int]]) -> pl.Series:
    """Return one integer a row that tells different keys apart."""
    if math.prod(max(size, 1) for _, size in keys) >= 1 << 62:
        return pl.DataFrame({str(number): code for number, (code, _) in enumerate(keys)}).to_struct("key")
    key: Counts = keys[0][0].astype(np.int64)
    for code, size in keys[1:]:
        key *= size
        key += code
    return pl.Series(key)


_ITEM, _NEITHER = "item", 2
_OUTCOMES = {"left": 1, "right": -1, "tie": 0, _ITEM: _NEITHER}
"""What a winner's code may mean; an id of an item is no side."""

_NUMBERS = {"1": 1, "-1": -1, "0": 0, "1.0": 1, "-1.0": -1, "0.0": 0, "+1": 1}
BLANKS = ("na", "n/a", "null", "none", "nan", "-", "–", "—")
"""Words for nothing, in lower case."""

_YES = ("true", "yes", "y", "t", "1", "1.0", "tie", "tied", "draw")
_NO = ("", "false", "no", "n", "f", "0", "0.0")
_LONGEST_CODE = 60
_MOST_WORDS, _SOME_WORDS = 40, 1_000
"""More different words than this are no scale; so many cells are looked at first."""

_MOST_ARROWS = 100
_MOST_CODES = 4
"""More different winners than this are no codes for left, right and two kinds of tie."""


def read_grades(
    rows: Rows, levels: Sequence[Any] | None, nominal: bool, small_is_good: bool | None = None
) -> tuple[Floats, tuple[Any, ...] | None]:
    """Return the grade of each row as a number, and the levels where they are declared or nominal."""
    cells = rows.frame["grade"]
    if small_is_good and (levels is not None or nominal):
        what = f"{option('small_is_good', True)} applies to numbers"
        raise ParameterError(f"{what}; for words give {option('levels')}, worst first")
    levels = None if levels is None else checked_levels(levels)
    outside = f"the grade is none of the levels {', '.join(map(str, levels or ()))}"
    if levels is not None and not nominal and (scale := _rising_numbers(levels)) is not None:
        values = rows.numbers("grade")
        rows.blame(np.isfinite(values) & ~np.isin(values, scale), outside, DROP)
        return values, numeric_levels(scale)
    if levels is not None or nominal:
        (codes,), ids = factorize([cells])
        rows.blame(codes < 0, "the grade is blank", DROP)
        if levels is None:
            return codes.astype(np.float64), tuple(ids.to_list())
        position = {str(level): number for number, level in enumerate(levels)}
        # another spelling will do where it means one level only
        plain = [plain_word(level) for level in position]
        spelt = {text: number for number, text in enumerate(plain) if plain.count(text) == 1}
        each = [position.get(text, spelt.get(plain_word(text), -1)) for text in map(str, ids)]
        places = np.array([*each, 0])[codes]
        rows.blame((places < 0) & (codes >= 0), outside, DROP)
        return places.astype(np.float64), tuple(levels)
    _, blank, text = numbers_of(cells)
    if text.sum() > 0.5 * (~blank).sum():
        first = int(text.argmax())
        said = f"the grades are text ({short(cells[first])} in {rows.where(np.arange(rows.n) == first)})"
        words = [word for word in cells.cast(pl.String).str.strip_chars().unique().drop_nulls().sort() if word]
        if (known := order_of(cells)) is not None:
            said += f"; if this is their order, worst first: {option('levels', known.levels)}"
        elif len(words) == 2 and not any("," in word for word in words):
            for worse, better in (words, words[::-1]):
                said += f"; if {worse!r} is the worse one: {option('levels', [worse, better])}"
        else:
            said += f"; give their order, worst first, with {option('levels')}"
        raise JudgmentError(f"{said}; if they have no order: {option('nominal', True)}")
    if small_is_good is None and (direction := which_direction([rows.names["grade"]])) is not None:
        raise JudgmentError(direction)
    remedy = f"{DROP}; for grades in words give {option('levels')} or {option('nominal', True)}"
    values = rows.numbers("grade", text=remedy)
    return (0.0 - values if small_is_good else values), None


def order_of(cells: pl.Series) -> Order | None:
    """Return the order of grades that are words of one well-known scale; ``None`` where they are none.

    Examples
    --------
    >>> order_of(pl.Series(["fail", "pass", "Pass"])).levels, order_of(pl.Series(["1", "2"]))
    (['fail', 'Pass'], None)
    """
    if not isinstance(cells.dtype, pl.String | pl.Categorical | pl.Enum):
        return None
    some = cells.head(_SOME_WORDS).cast(pl.String).unique().drop_nulls()
    if len(some) > _MOST_WORDS or some.cast(pl.Float64, strict=False).null_count() < len(some):
        return None
    words = cells.cast(pl.String).str.strip_chars().unique().drop_nulls().to_list()
    return known_order(word for word in words if word) if len(words) <= _MOST_WORDS else None


def checked_levels(levels: Sequence[Any]) -> list[Any]:
    """The declared levels, stripped and without repeats."""
    if isinstance(levels, str):
        what = f"{option('levels', levels)} is one text"
        raise ParameterError(f"{what}; give a list, worst first, such as ['Bad', 'Fair', 'Good']")
    cleaned = [level.strip() if isinstance(level, str) else level for level in levels]
    if len(cleaned) < 2 or len({str(level) for level in cleaned}) < len(cleaned):
        raise ParameterError(f"{option('levels', list(levels))} must name at least two different levels, worst first")
    return cleaned


def _rising_numbers(levels: list[Any]) -> Floats | None:
    """The levels where they are numbers in rising order, so that a grade keeps its own value."""
    try:
        values = np.array([float(level) for level in levels])
    except (TypeError, ValueError):
        return None
    if (np.abs(values) > LARGEST_NUMBER).any():
        raise ParameterError(f"a level is beyond {LARGEST_NUMBER:g}, too large to compute with; use another unit")
    return values if (np.diff(values) > 0).all() else None


def numeric_levels(values: Floats) -> tuple[Any, ...]:
    """Values as the user would write them: whole numbers as integers."""
    whole = bool((values == np.round(values)).all())
    return tuple(int(value) if whole else float(value) for value in values)


def read_winners(
    rows: Rows, left: Ints, right: Ints, item_ids: pl.Series, winner_codes: Mapping[Any, str] | None
) -> Outcomes:
    """Return the outcome of each row: 1 where left won, -1 right, 0 a tie.

    ``left`` and ``right`` are codes over ``item_ids``; a winner may be a word, an item's id, or a number.
    """
    if rows.by_winner:
        if winner_codes is not None:
            what = "winner_codes= says what a winner column beside left and right means"
            raise ParameterError(f"{what}, and the table names winners and losers; leave it out")
        rows.blame((left == right) & (left >= 0), "winner and loser are the same item", "drop that row")
        outcome = np.ones(rows.n, np.int8)
        if rows.has("tie"):
            cells = rows.frame["tie"].cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
            rows.blame(~cells.is_in([*_YES, *_NO]).to_numpy(), "the tie column says neither yes nor no", DROP)
            outcome[cells.is_in(list(_YES)).to_numpy()] = 0
        return outcome
    number, values = rows.values("winner")
    values = values.cast(pl.String)
    words = _words(values, winner_codes, {plain_name(rows.names[side]): side for side in ("left", "right")})
    outcome = np.append(words, np.int8(0))[number]
    as_item = _item_codes(values, item_ids)
    if len(values) <= _MOST_ARROWS:
        # none may mean that none of the two won, so that it is asked about like any other word
        said = {"none", *(str(code).lower() for code in winner_codes or ())}
        lower = values.str.strip_chars().str.to_lowercase()
        blank = lower.is_in([word for word in BLANKS if word not in said]).fill_null(False).to_numpy() & (as_item < 0)
        if blank.any():
            number = np.where(np.append(blank, False)[number], np.int32(-1), number)
    outcome[number < 0] = 0
    if winner_codes is not None:
        # what the user says a value means goes before an id that is spelt alike
        as_item = np.where(words == _NEITHER, as_item, np.int32(-1))
    if (as_item >= 0).any():
        # blank winners have number -1 and so take the last entry
        named = np.append(as_item, np.int32(-1))[number]
        is_item = [named == left, named == right]
        both = np.flatnonzero((as_item >= 0) & (np.abs(words) == 1))
        if len(both):
            # of two models called A and B either reading fits each row, and they differ where B stands left
            ids = item_ids.cast(pl.String).to_list() if len(item_ids) == 2 else []
            only = {code.outcome for code in codes_of(ids).values()} == {1, -1}
            turned = (is_item[0] & (outcome == -1)) | (is_item[1] & (outcome == 1))
            if (only and turned.any()) or not (is_item[0] | is_item[1] | (outcome == 0)).all():
                meant = {values[int(one)]: "left" if words[one] > 0 else "right" for one in both}
                ways = [option("winner_codes", codes) for codes in (meant, dict.fromkeys(meant, _ITEM))]
                what = f"the winners {either(map(short, list(meant)[:5]), 'and')} are codes for a side and ids of items"
                raise JudgmentError(f"{what} as well; if they mean the side: {ways[0]}; if the item: {ways[1]}")
        outcome = np.select(is_item, [np.int8(1), np.int8(-1)], outcome)
    rows.blame(number < 0, "the winner is blank", DROP)
    neither = outcome == _NEITHER
    if neither.any():
        used = np.unique(number[neither])
        if winner_codes is None:
            alone = not (np.abs(outcome) == 1).any() and int(neither.sum()) > len(used)
            _refuse_codes(values, used, words=alone)
        examples = ", ".join(short(values[int(one)]) for one in used[:3])
        rows.blame(neither, f"the winner ({examples}) is neither of the two items nor left, right or tie", DROP)
    remedy = f"that says nothing of the order: drop the row, or all such rows with {option('invalid', 'drop')}"
    rows.blame((left == right) & (left >= 0), "an item is compared with itself", remedy)
    return outcome


def _item_codes(values: pl.Series, item_ids: pl.Series) -> Ints:
    """Code of the item that each winner names, -1 where it names none; capital letters count only between items."""
    named = values.str.strip_chars().str.to_lowercase()
    texts = item_ids.cast(pl.String).str.strip_chars()
    lower = texts.str.to_lowercase()
    if len(named) <= _MOST_ARROWS and not lower.is_in(named.to_list()).any():
        return np.full(len(values), -1, np.int32)
    codes = Index(item_ids).codes(values)
    if (codes >= 0).all():
        return codes
    alone = pl.DataFrame({"id": texts, "lower": lower}).filter(pl.col("lower").is_unique())
    spelt = named.replace_strict(alone["lower"], alone["id"], default=None, return_dtype=pl.String)
    return np.where(codes < 0, Index(item_ids).codes(spelt), codes)


def read_strength(rows: Rows, outcome: Outcomes) -> Floats | None:
    """Return by how much the winner of each row was better, 0 where it is a tie; ``None`` where nobody was asked."""
    if not rows.has("strength"):
        if rows.by_winner:
            return None
        # of winners written as A>>B, or in words; none unless all that are no ties are written so
        number, winners = rows.values("winner")
        texts = winners.cast(pl.String).to_list() if len(winners) <= _MOST_ARROWS else []
        codes = codes_of([text for text in texts if len(text) <= _LONGEST_CODE])
        each = [(code.strength if (code := codes.get(text)) is not None else None) for text in texts]
        if each.count(None) == len(each):
            return None
        strength: Floats = np.append(np.array(each, np.float64), 0.0)[number]
        strength[outcome == 0] = 0.0
        return None if np.isnan(strength[np.abs(outcome) == 1]).any() else np.where(np.isnan(strength), 0.0, strength)
    values, blank, text = numbers_of(rows.frame["strength"])
    rows.blame(text | (blank & (outcome != 0)), "the strength is blank or not a number", DROP)
    values = np.where(blank & (outcome == 0), 0.0, values)
    rows.blame(values < 0, "the strength is below 0", "give its size, and the side in the winner column")
    rows.blame(np.isinf(values) | (np.abs(values) > LARGEST_NUMBER), "the strength is too large", DROP)
    rows.blame((values > 0) & (outcome == 0), "the strength is above 0 where two items tie", DROP)
    rows.blame((values == 0) & (outcome != 0), "the strength is 0 where an item won", DROP)
    return values


def read_numbers(rows: Rows) -> Ints | None:
    """Return the number of each row's judgment; ``None`` where each row is one of its own."""
    if not rows.has("judgment"):
        return None
    number = rows.values("judgment")[0].copy()
    blank = number < 0
    number[blank] = number.max(initial=-1) + 1 + np.arange(blank.sum(), dtype=np.int32)
    return None if len(np.unique(number)) == len(number) else number


def _words(values: pl.Series, winner_codes: Mapping[Any, str] | None, sides: Mapping[str, str]) -> Outcomes:
    """Outcome that each distinct winner value stands for by itself; 2 where it may be an item's id.

    ``sides`` are the table's own names of the two columns, which some tables give as the winner.
    """
    texts = [text for text in values.to_list() if len(text) <= _LONGEST_CODE]
    table: dict[str, int] = {name: _OUTCOMES[side] for name, side in sides.items()}
    codes = codes_of(texts)
    # a letter among ids may be an id as well
    letters = len(codes) == len(values)
    table |= {text.lower(): code.outcome for text, code in codes.items() if letters or len(text.strip("[] ")) > 1}
    if winner_codes is not None:
        check_codes(winner_codes)
        table |= {_by_value(str(code)): _OUTCOMES[word] for code, word in winner_codes.items()}
    elif any(value in ("-1", "-1.0") for value in values):
        table |= _NUMBERS
    by_name = {name: table[name] for name in sides}
    each = [table.get(v.lower(), table.get(_by_value(v), by_name.get(plain_name(v), _NEITHER))) for v in values]
    return np.array(each, np.int8)


def check_codes(winner_codes: Mapping[Any, str]) -> None:
    """Refuse codes for anything but left, right, a tie and the id of an item."""
    for code, word in winner_codes.items():
        if word not in _OUTCOMES:
            what = f"{option('winner_codes')} maps {code!r} to {word!r}"
            raise ParameterError(f"{what}, which is none of 'left', 'right', 'tie', 'item'")


def _by_value(text: str) -> str:
    """A winner value as it is compared: a number by its value, so 1.0 is 1; text without case."""
    number = as_float(text)
    return str(int(number)) if number is not None and number.is_integer() else text.strip().lower()


def _refuse_codes(values: pl.Series, used: Ints, *, words: bool) -> None:
    """Ask what winners mean that are bare numbers, true and false, or any few ``words`` where no row names a side."""
    size = {text: as_float(text) for text in values.gather(used).to_list()}
    given = sorted(size, key=lambda text: (size[text] is None, size[text] or 0.0, _by_value(text)))
    numbers = all(number is not None or text.lower() in ("true", "false") for text, number in size.items())
    if len(given) > _MOST_CODES or not (numbers or words):
        return
    said = f"the winners are given as {either(map(short, given), 'and')}, which could mean anything"
    if numbers:
        plain = [_by_value(one) for one in given]
        codes: list[Any] = [int(p) if p.removeprefix("-").isdigit() else g for p, g in zip(plain, given, strict=True)]
        if "true" in map(str.lower, given):
            codes.reverse()
        if len(codes) > 2 and codes[0] == 0:
            codes = [*codes[1:], 0]
        sides = (("left", "right", "tie", "tie"), ("right", "left", "tie", "tie"))
        ways = [option("winner_codes", dict(zip(codes, meant, strict=False))) for meant in sides]
        raise JudgmentError(f"{said}; say what they mean: {either(ways)}")
    known = {text: ("tie", "left", "right")[code.outcome] for text, code in codes_of(given).items()}
    if not {"left", "right"} <= set(known.values()):
        each = option("winner_codes", dict.fromkeys(given, ...))
        raise JudgmentError(f"{said}; say left, right or tie for each of them: {each}")
    meant = {text: known.get(text, "tie") for text in given}
    raise JudgmentError(f"{said}; say what with {option('winner_codes', meant)}, if that is what they mean")
