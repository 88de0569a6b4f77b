"""In which order two answers were shown: columns that say so, what their cells mean, and sides turned to that order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from ..errors import JudgmentError
from ..wording import counted, either, first_few, option
from .column_names import is_aside, key_of, side_pairs
from .words import TABLES, as_float, code_of, words_of

NOT_SWAPPED = "none"
"""What ``swapped`` says of a table whose winners are about its columns as they stand."""

_SWAPPED, _SHOWN, _AS_WRITTEN, _TURNED, _NO, _YES = (
    set(TABLES["order"][name].split()) for name in ("swapped", "shown", "as_written", "turned", "no", "yes")
)
_TURNED |= _SWAPPED
_MOST_VALUES = 2
_LOOKED_AT = 100


def may_tell_order(name: str) -> bool:
    """Return whether a column is called like one that says in which order two answers were shown.

    Examples
    --------
    >>> [may_tell_order(name) for name in ("is_flipped", "presentation_order", "aFirst", "order_id", "model_a")]
    [True, True, True, False, False]
    """
    words = set(words_of(name))
    # what is named after a side alone, such as left_text, is about that side
    placed = {"left", "right"} & words and {"is", "a", "b"} & words
    return bool(words & (_SWAPPED | _SHOWN) or placed) and not is_aside(name)


def order_columns(table: pl.DataFrame, names: Iterable[str], sides: tuple[str, str]) -> list[str]:
    """Return those of some columns that may say in which order the two sides were shown, by names and cells.

    They have two values, or one that means that all rows are exchanged.

    Examples
    --------
    >>> table = pl.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "swapped": [0, 1], "order": [1, 2], "side": ["?", "!"]})
    >>> order_columns(table, ["swapped", "order", "side"], ("a", "b"))
    ['swapped', 'order']
    >>> order_columns(table.with_columns(seen=pl.Series(["xy", "yx"])), ["seen"], ("a", "b"))
    ['seen']
    """
    found = []
    for name in names:
        if table[name].dtype.is_nested() or is_aside(name):
            continue
        # AB and BA are an order whatever their column is called; the first cells spare a look at all of long texts
        named, first = may_tell_order(name), table[name].head(_LOOKED_AT)
        if not named and (first.dtype != pl.String or first.str.len_chars().max() != 2):
            continue
        values = _values(table[name])
        mirrored = len(values) == 2 and values[0] == values[1][::-1] and len(values[0]) == 2
        ids = (named or mirrored) and _are_items(table, name, sides)
        if not (named or mirrored) or not values or (len(values) > _MOST_VALUES and not ids):
            continue
        turned = _turned_values(name, values)
        coded = all(as_float(value) is not None or value.lower() in ("l", "r") for value in values)
        numbers = len(values) == _MOST_VALUES and (coded or mirrored)
        if ids or (turned is None and numbers) or (turned and (len(values) > 1 or set(words_of(name)) & _SWAPPED)):
            found.append(name)
    return found


def is_it_swapped(table: pl.DataFrame, name: str, winner: str, sides: tuple[str, str]) -> str:
    """Return the question whether winners are in the order shown, with the option for each answer."""
    left, right = sides
    values = _values(table[name])
    stands = f"if {winner!r} is about {left!r} and {right!r} as they stand: {option('swapped', NOT_SWAPPED)}"
    said = f"{name!r} may say which of two was shown first, and {winner!r} which of the two shown is better"
    turned = _turned_rows(table, name, sides)
    if turned is None:
        ways = [f"if {right!r} was first where it is {value}: {option('swapped', {name: value})}; " for value in values]
        return f"{said}; {''.join(ways)}{stands}"
    n = int(turned.sum())
    rows = counted(len(table), "row")
    return f"{said}; if so, {right!r} was first in {n:,} of {rows}: {option('swapped', name)}; {stands}"


def swapped_rows(table: pl.DataFrame, swapped: str, sides: tuple[str, str]) -> pl.Series:
    """Return in which rows the right item was shown first: as ``COLUMN`` says, or where ``COLUMN=VALUE``.

    Examples
    --------
    >>> table = pl.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "order": ["AB", "BA"], "first": ["y", "y"]})
    >>> [swapped_rows(table, how, ("a", "b")).to_list() for how in ("order", "order=AB", "first")]
    [[False, True], [True, False], [True, False]]
    """
    name, value = (swapped, None) if swapped in table.columns else (*swapped.rpartition("=")[::2],)
    if name not in table.columns:
        known = first_few(map(repr, table.columns), shown=100)
        raise JudgmentError(f"{option('swapped', swapped)} names no column; the table's columns are {known}")
    if table[name].dtype.is_nested():
        raise JudgmentError(f"{option('swapped')} names {name!r}, which holds objects; name a column of plain values")
    values = _values(table[name])
    if value is not None:
        if _plain(value) not in map(_plain, values):
            held = first_few(map(repr, values))
            raise JudgmentError(f"no row has {value!r} in {name!r}, as {option('swapped')} says; it holds {held}")
        return _texts(table[name]).is_in([one for one in values if _plain(one) == _plain(value)])
    turned = _turned_rows(table, name, sides)
    if turned is None:
        ways = [option("swapped", {name: one}) for one in values[:_MOST_VALUES]]
        what = f"{name!r} holds {first_few(map(repr, values))}, which may mean anything"
        raise JudgmentError(f"{what}; say which means that {sides[1]!r} was shown first: {either(ways)}")
    return turned


def _turned_rows(table: pl.DataFrame, name: str, sides: tuple[str, str]) -> pl.Series | None:
    """In which rows the right item was shown first, as a column says; ``None`` where its values may mean anything."""
    if _are_items(table, name, sides):
        return _texts(table[name]) == _texts(table[sides[1]])
    turned = _turned_values(name, _values(table[name]))
    return None if turned is None else _texts(table[name]).is_in(turned).fill_null(False)


def as_shown(
    table: pl.DataFrame, swapped: str, sides: tuple[str, str], covariates: Sequence[str] = ()
) -> tuple[pl.DataFrame, str]:
    """Return the table with left and right exchanged where they were shown so, and what is to be said.

    A winner given as A or B then is the one that was shown as such. ``covariates`` are columns that change with the
    sides: pairs such as ``length_a`` and ``length_b``, or one column that is left less right.
    """
    turned = swapped_rows(table, swapped, sides)
    pairs = [sides, *((left, right) for _, left, right in side_pairs(covariates))]
    cells: list[pl.Expr] = []
    for left, right in pairs:
        one, other = pl.col(left), pl.col(right)
        if table.schema[left] != table.schema[right]:
            one, other = one.cast(pl.String), other.cast(pl.String)
        cells.append(pl.when(turned).then(other).otherwise(one).alias(left))
        cells.append(pl.when(turned).then(one).otherwise(other).alias(right))
    for name in covariates:
        if not any(name in pair for pair in pairs):
            number = pl.col(name)
            cells.append(pl.when(turned).then(-number.cast(pl.Float64)).otherwise(number).alias(name))
    rows = counted(len(table), "row")
    note = f"{sides[1]!r} was shown first in {int(turned.sum()):,} of {rows}, and is read as the left one there"
    return table.with_columns(cells), note


def _texts(cells: pl.Series) -> pl.Series:
    """Cells as text without white space around it."""
    return cells.cast(pl.String, strict=False).str.strip_chars().fill_null("")


def _values(cells: pl.Series) -> list[str]:
    """The different filled cells in their order as text."""
    return sorted({value for value in _texts(cells.unique()).to_list() if value})


def _plain(value: str) -> str:
    """A value as it is compared."""
    number = as_float(value)
    return value.strip().lower() if number is None else f"{number:g}"


def _are_items(table: pl.DataFrame, name: str, sides: tuple[str, str]) -> bool:
    """Whether each cell of a column is one of its row's two items."""
    for rows in (table.head(_LOOKED_AT), table):  # the first rows mostly spare a look at all
        texts, left, right = (_texts(rows[one]) for one in (name, *sides))
        if not ((texts == left) | (texts == right) | (texts == "")).all():
            return False
    return bool((texts != "").any()) and bool((left != right).any())


def _turned_values(name: str, values: Sequence[str]) -> list[str] | None:
    """The values of a column that mean that the right one was shown first; ``None`` where that is not known."""
    parts = set(key_of(name).split("_"))
    plain, second = {value: _plain(value) for value in values}, _of_second(parts)
    if set(plain.values()) <= _YES | _NO:
        if set(words_of(name)) & _SWAPPED:
            second = True
        return None if second is None else [v for v, text in plain.items() if text in (_YES if second else _NO)]
    if set(plain.values()) <= {"1", "2"}:
        # which of 1 and 2 was first is told where the name says that it is about that
        if second is None and "first" not in parts:
            return None
        return [value for value, text in plain.items() if text == ("1" if second else "2")]
    sides = {value: _first_side(value) for value in values}
    return None if None in sides.values() else [value for value, side in sides.items() if side == -1]


def _of_second(parts: set[str]) -> bool | None:
    """Whether a name says that the second one was first, as ``left_is_b`` does; ``None`` where it says neither."""
    letter = parts & {"a", "b", "1", "2"}
    place = parts & {"left", "right"}
    if len(letter) > 1 or len(place) > 1:
        return None
    if letter:
        return bool(letter & {"b", "2"}) != bool(place & {"right"})
    return bool(place & {"right"}) if place and "first" in parts else None


def _first_side(value: str) -> int | None:
    """Which side a cell says was shown first: 1 the left one, -1 the right one; ``None`` where it says neither."""
    words = [word for word in re.split(r"[^a-z0-9]+", value.strip().lower()) if word]
    if not words:
        return None
    whole = "".join(words)
    if whole in (*_AS_WRITTEN, "unswapped", "unflipped") or words[0] in ("not", "un"):
        return 1
    if {*words, whole} & _TURNED:
        return -1
    if set(words) & _AS_WRITTEN:
        return 1
    for text in ("_".join(words[:2]), words[0]):
        if (code := code_of(text)) is not None and code.outcome:
            return code.outcome
    return {"1": 1, "2": -1}.get(words[0])
