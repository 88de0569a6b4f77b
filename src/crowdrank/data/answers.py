"""The kind's own cells: grades on their scale, winners of preferences."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Counts, Floats, Ints, Outcomes
from ..wording import either, option
from .coding import factorize
from .columns import plain_name
from .directions import which_direction
from .index import Index
from .intake import DROP, LARGEST_NUMBER, Rows, numbers_of, short
from .winner_codes import codes_of
from .word_scales import Order, known_order, plain_word

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
        raise ParameterError(
            f"{option('small_is_good', True)} applies to numbers; for words give {option('levels')}, worst first"
        )
    if levels is not None:
        levels = checked_levels(levels)
        if not nominal and _rising_numbers(levels):
            return _on_scale(rows, levels)
        return _level_positions(rows, cells, levels), tuple(levels)
    if nominal:
        codes, ids = factorize([cells])
        rows.blame(codes[0] < 0, "the grade is blank", DROP)
        return codes[0].astype(np.float64), tuple(ids.to_list())
    _, blank, text = numbers_of(cells)
    if text.sum() > 0.5 * (~blank).sum():
        first = np.arange(rows.n) == text.argmax()
        said = f"the grades are text ({short(cells[int(text.argmax())])} in {rows.where(first)})"
        raise JudgmentError(f"{said}; {_which_order(cells)}if they have no order: {option('nominal', True)}")
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


def _which_order(cells: pl.Series) -> str:
    """The question after the order of grades in words: both ways of two, the known one, or that of any others."""
    words = [word for word in cells.cast(pl.String).str.strip_chars().unique().drop_nulls().sort().to_list() if word]
    if (known := order_of(cells)) is not None:
        return f"if this is their order, worst first: {option('levels', known.levels)}; "
    if len(words) == 2 and not any("," in word for word in words):
        ways = (f"if {worse!r} is the worse one: {option('levels', [worse, better])}; " for worse, better in
                (words, words[::-1]))  # fmt: skip
        return "".join(ways)
    return f"give their order, worst first, with {option('levels')}; "


def checked_levels(levels: Sequence[Any]) -> list[Any]:
    """The declared levels, stripped and without repeats."""
    if isinstance(levels, str):
        raise ParameterError(
            f"{option('levels', levels)} is one text; give a list, worst first, such as ['Bad', 'Fair', 'Good']"
        )
    cleaned = [level.strip() if isinstance(level, str) else level for level in levels]
    if len(cleaned) < 2 or len({str(level) for level in cleaned}) < len(cleaned):
        raise ParameterError(f"{option('levels', list(levels))} must name at least two different levels, worst first")
    return cleaned


def _rising_numbers(levels: list[Any]) -> bool:
    """Whether the levels are numbers in rising order, so a grade keeps its own value."""
    try:
        values = [float(level) for level in levels]
    except (TypeError, ValueError):
        return False
    if any(abs(value) > LARGEST_NUMBER for value in values):
        raise ParameterError(f"a level is beyond {LARGEST_NUMBER:g}, too large to compute with; use another unit")
    return all(low < high for low, high in itertools.pairwise(values))


def _on_scale(rows: Rows, levels: list[Any]) -> tuple[Floats, tuple[Any, ...]]:
    """Numeric grades that must be among the declared levels."""
    values = rows.numbers("grade")
    scale = np.array([float(level) for level in levels])
    outside = np.isfinite(values) & ~np.isin(values, scale)
    rows.blame(outside, f"the grade is none of the levels {', '.join(str(level) for level in levels)}", DROP)
    return values, numeric_levels(scale)


def numeric_levels(values: Floats) -> tuple[Any, ...]:
    """Values as the user would write them: whole numbers as integers."""
    whole = bool((values == np.round(values)).all())
    return tuple(int(value) if whole else float(value) for value in values)


def _level_positions(rows: Rows, cells: pl.Series, levels: list[Any]) -> Floats:
    """Position of each grade among levels in words."""
    codes, ids = factorize([cells])
    rows.blame(codes[0] < 0, "the grade is blank", DROP)
    position = {str(level): number for number, level in enumerate(levels)}
    # another spelling will do where it means one level only
    plain = [plain_word(level) for level in position]
    spelt = {text: number for number, text in enumerate(plain) if plain.count(text) == 1}
    values = [str(value) for value in ids]
    table = np.array([position.get(value, spelt.get(plain_word(value), -1)) for value in values] + [0])
    grade = table[codes[0]]
    rows.blame((grade < 0) & (codes[0] >= 0), f"the grade is none of the levels {', '.join(position)}", DROP)
    return grade.astype(np.float64)


def read_winners(
    rows: Rows, left: Ints, right: Ints, item_ids: pl.Series, winner_codes: Mapping[Any, str] | None
) -> Outcomes:
    """Return the outcome of each row: 1 where left won, -1 right, 0 a tie.

    ``left`` and ``right`` are codes over ``item_ids``; a winner may be a word, an item's id, or a number.
    """
    if rows.by_winner:
        if winner_codes is not None:
            raise ParameterError(
                "winner_codes= says what a winner column beside left and right means, and the table names winners and "
                "losers; leave it out"
            )
        return _winner_loser_outcomes(rows, left, right)
    number, values = rows.values("winner")
    values = values.cast(pl.String)
    sides = {plain_name(rows.names[side]): side for side in ("left", "right")}
    words = _words(values, winner_codes, sides)
    outcome = _outcomes(words, number)
    as_item = _item_codes(values, item_ids)
    number = _without_blanks(number, values, as_item, winner_codes)
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
                _refuse_ids(values, words, both)
        outcome = np.select(is_item, [np.int8(1), np.int8(-1)], outcome)
    if number.min() < 0:
        rows.blame(number < 0, "the winner is blank", DROP)
    neither = outcome == _NEITHER
    if neither.any():
        if winner_codes is None:
            used = np.unique(number[neither])
            alone = not (np.abs(outcome) == 1).any() and int(neither.sum()) > len(used)
            _refuse_codes(values, used, words=alone)
        rows.blame(neither, _neither_says(values, number[neither]), DROP)
    rows.blame(
        (left == right) & (left >= 0),
        "an item is compared with itself",
        f"that says nothing of the order: drop the row, or all such rows with {option('invalid', 'drop')}",
    )
    return outcome


def _item_codes(values: pl.Series, item_ids: pl.Series) -> Ints:
    """Code of the item that each winner names, -1 where it names none; capital letters count only between items."""
    named = {value.strip().lower() for value in values.to_list()}
    texts = item_ids.cast(pl.String).str.strip_chars()
    lower = texts.str.to_lowercase()
    if len(named) <= _MOST_ARROWS and not lower.is_in(list(named)).any():
        return np.full(len(values), -1, np.int32)
    codes = Index(item_ids).codes(values)
    if (codes >= 0).all():
        return codes
    alone = pl.DataFrame({"id": texts, "lower": lower}).filter(pl.col("lower").is_unique())
    ids = dict(alone.select("lower", "id").iter_rows())
    spelt = values.str.strip_chars().str.to_lowercase().replace_strict(ids, default=None, return_dtype=pl.String)
    return np.where(codes < 0, Index(item_ids).codes(spelt), codes)


def _without_blanks(number: Ints, values: pl.Series, as_item: Ints, winner_codes: Mapping[Any, str] | None) -> Ints:
    """The numbers of winners, -1 where a winner only says that it is blank, is no item and means nothing else.

    ``none`` may mean that none of the two won, so that it is asked about like any other word.
    """
    if len(values) > _MOST_ARROWS:
        return number
    words = [
        word for word in BLANKS if word != "none" and word not in {str(code).lower() for code in winner_codes or ()}
    ]
    blank = values.str.strip_chars().str.to_lowercase().is_in(words).fill_null(False).to_numpy() & (as_item < 0)
    return np.where(np.append(blank, False)[number], np.int32(-1), number) if blank.any() else number


def read_strength(rows: Rows, outcome: Outcomes) -> Floats | None:
    """Return by how much the winner of each row was better, 0 where it is a tie; ``None`` where nobody was asked."""
    if not rows.has("strength"):
        return None if rows.by_winner else _arrow_strength(rows, outcome)
    values, blank, text = numbers_of(rows.frame["strength"])
    rows.blame(text | (blank & (outcome != 0)), "the strength is blank or not a number", DROP)
    values = np.where(blank & (outcome == 0), 0.0, values)
    rows.blame(values < 0, "the strength is below 0", "give its size, and the side in the winner column")
    rows.blame(np.isinf(values) | (np.abs(values) > LARGEST_NUMBER), "the strength is too large", DROP)
    rows.blame((values > 0) & (outcome == 0), "the strength is above 0 where two items tie", DROP)
    rows.blame((values == 0) & (outcome != 0), "the strength is 0 where an item won", DROP)
    return values


def _arrow_strength(rows: Rows, outcome: Outcomes) -> Floats | None:
    """Strengths of winners written as A>>B, or in words; ``None`` unless all that are no ties are written so."""
    number, values = rows.values("winner")
    texts = values.cast(pl.String).to_list() if len(values) <= _MOST_ARROWS else []
    codes = codes_of([text for text in texts if len(text) <= _LONGEST_CODE])
    strengths = {text: code.strength for text, code in codes.items() if code.strength is not None}
    if not strengths:
        return None
    each = [strengths.get(text, np.nan) for text in texts]
    strength: Floats = np.append(np.array(each, np.float64), 0.0)[number]
    strength[outcome == 0] = 0.0
    return None if np.isnan(strength[np.abs(outcome) == 1]).any() else np.where(np.isnan(strength), 0.0, strength)


def read_numbers(rows: Rows) -> Ints | None:
    """Return the number of each row's judgment; ``None`` where each row is one of its own."""
    if not rows.has("judgment"):
        return None
    number = rows.values("judgment")[0].copy()
    blank = number < 0
    number[blank] = number.max(initial=-1) + 1 + np.arange(blank.sum(), dtype=np.int32)
    return None if len(np.unique(number)) == len(number) else number


def _winner_loser_outcomes(rows: Rows, left: Ints, right: Ints) -> Outcomes:
    """Outcomes of a table of winners and losers: 1, and 0 where its tie column says so."""
    rows.blame((left == right) & (left >= 0), "winner and loser are the same item", "drop that row")
    outcome = np.ones(rows.n, np.int8)
    if rows.has("tie"):
        cells = rows.frame["tie"].cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
        tied, neither = (cells.is_in(list(words)).to_numpy() for words in (_YES, _YES + _NO))
        rows.blame(~neither, "the tie column says neither yes nor no", DROP)
        outcome[tied] = 0
    return outcome


def _outcomes(words: Outcomes, number: Ints) -> Outcomes:
    """What each row's winner value stands for; 0 for a blank one. A comparison a word beats a look-up a row."""
    if len(words) > 8:
        outcomes: Outcomes = np.append(words, np.int8(0))[number]
        return outcomes
    outcome = np.zeros(len(number), np.int8)
    for value, word in enumerate(words):
        if word:
            outcome += word * (number == value).view(np.int8)
    return outcome


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
            raise ParameterError(
                f"{option('winner_codes')} maps {code!r} to {word!r}, which is none of 'left', 'right', 'tie', 'item'"
            )


def _by_value(text: str) -> str:
    """A winner value as it is compared: a number by its value, so 1.0 is 1; text without case."""
    try:
        number = float(text)
    except ValueError:
        return text.strip().lower()
    return str(int(number)) if number.is_integer() else text.strip().lower()


def _refuse_ids(values: pl.Series, words: Outcomes, both: Counts) -> None:
    """Ask what winners mean that are ids of items as well as codes for a side."""
    named = {1: "left", -1: "right"}
    meant = {values[int(number)]: named[int(words[number])] for number in both}
    raise JudgmentError(
        f"the winners {either(map(short, list(meant)[:5]), 'and')} are codes for a side and ids of items as well; if "
        f"they mean the side: {option('winner_codes', meant)}; if the item: "
        f"{option('winner_codes', dict.fromkeys(meant, _ITEM))}"
    )


def _refuse_codes(values: pl.Series, used: Ints, *, words: bool) -> None:
    """Ask what winners mean that are bare numbers, true and false, or any few ``words`` where no row names a side."""
    given = sorted((values[int(number)] for number in used), key=_code_order)
    numbers = all(not isinstance(_code_order(value)[1], str) or value.lower() in ("true", "false") for value in given)
    if len(given) > _MOST_CODES or not (numbers or words):
        return
    meant = _side_of_each(given) if numbers else _side_of_words(given)
    said = f"the winners are given as {either(map(short, given), 'and')}, which could mean anything"
    if meant is None:
        each = option("winner_codes", dict.fromkeys(given, ...))
        raise JudgmentError(f"{said}; say left, right or tie for each of them: {each}")
    raise JudgmentError(f"{said}; say what with {option('winner_codes', meant)}, if that is what they mean")


def _side_of_each(given: list[str]) -> dict[Any, str]:
    """What numbers, or true and false, are likeliest to mean as winners."""
    codes = [int(_by_value(value)) if _by_value(value).removeprefix("-").isdigit() else value for value in given]
    if "true" in map(str.lower, given):
        codes.reverse()
    meanings = {2: ("left", "right"), 3: ("left", "right", "tie"), 4: ("left", "right", "tie", "tie")}
    if len(codes) > 2 and codes[0] == 0:
        codes = [*codes[1:], 0]
    return dict(zip(codes, meanings.get(len(codes), ("left",)), strict=True))


def _side_of_words(given: list[str]) -> dict[Any, str] | None:
    """What words are likeliest to mean of which some are codes of both sides; ``None`` where nothing tells."""
    named = {1: "left", -1: "right", 0: "tie"}
    known = {text: named[code.outcome] for text, code in codes_of(given).items()}
    return {text: known.get(text, "tie") for text in given} if {"left", "right"} <= set(known.values()) else None


def _code_order(value: str) -> tuple[bool, float | str]:
    """Key that sorts numbers by value before text."""
    plain = _by_value(value)
    try:
        return False, float(plain)
    except ValueError:
        return True, plain


def _neither_says(values: pl.Series, used: Ints) -> str:
    """Complaint about winners that are neither item, with the first few values."""
    examples = [short(values[int(number)]) for number in np.unique(used)[:3]]
    return f"the winner ({', '.join(examples)}) is neither of the two items nor left, right or tie"
