"""Tables with one column per annotator or per item, as ``--wide`` names them, with one row per answer."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

import polars as pl

from ..data.column_names import are_people, is_surely_item, key_of, person_column, thing_column
from ..data.wide import refuse_ranks, survey_rows, unpivot
from ..errors import JudgmentError
from ..wording import either, first_few, option
from .number_text import without_blanks
from .read_options import ReadOptions
from .sources import Source


def long_table(
    table: pl.DataFrame, columns: dict[str, str], options: ReadOptions, source: Source
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return one row per filled cell of the columns that hold answers, and which column is which."""
    assert options.wide is not None
    wide = wide_columns(table.columns, options.wide)
    rest = [name for name in table.columns if name not in wide]
    table = table.with_columns(without_blanks(table[name]) for name in wide)
    left, right = (next((name for name in rest if key_of(name) in (side, f"model_{end}", f"item_{end}")), None)
                   for side, end in (("left", "a"), ("right", "b")))  # fmt: skip
    if {"left", "right"} <= columns.keys() or (left and right):
        return unpivot(table, wide, "winner"), {**columns, "annotator": "annotator", "winner": "winner"}
    people = _rows_are_people(wide, rest, columns, source)
    word = "rank" if options.kind == "ranking" else "grade"
    if options.kind is None:
        refuse_ranks([table[name] for name in wide], by="respondent" if people else "annotator", across=people)
    if people:
        who = columns.get("annotator")
        long = survey_rows(table, wide, {**columns, **({"annotator": who} if who else {})})
        kept = {word: name for word, name in columns.items() if word != "annotator"}
        return long.rename({"grade": word}), {**kept, "item": "item", word: word, "annotator": "annotator"}
    clash: dict[str, str] = {name: f"{name} column" for name in ("annotator", word) if name in rest}
    table = table.rename(clash)
    item = columns.get("item") or thing_column([name for name in rest if name not in clash])
    named = {**columns, **({"item": item} if item else {})}
    return unpivot(table, wide, word), {**named, word: word, "annotator": "annotator"}


def wide_columns(names: list[str], wanted: Any) -> list[str]:
    """Return the columns that names or patterns such as ``Q1_*`` mean, in the order of the table.

    Examples
    --------
    >>> wide_columns(["id", "Q1_2", "Q1_1", "Q2"], ["Q1_*"])
    ['Q1_2', 'Q1_1']
    >>> wide_columns(["id", "tea, hot", "tea"], ["tea", "hot", "tea"])
    ['tea, hot', 'tea']
    """
    chosen: set[str] = set()
    for pattern in _whole_names(names, list(wanted)):
        hits = [name for name in names if name == pattern] or [n for n in names if fnmatch.fnmatchcase(n, pattern)]
        if not hits:
            raise JudgmentError(
                f"{option('wide')} names {pattern!r}, which is not a column; the columns are "
                f"{first_few([repr(name[:60]) for name in names], shown=100)}"
            )
        chosen.update(hits)
    return [name for name in names if name in chosen]


def _whole_names(names: list[str], parts: list[str]) -> list[str]:
    """The names, those with commas put together again where a list was cut at commas."""
    by_parts = {tuple(part.strip() for part in name.split(",")): name for name in names}
    whole: list[str] = []
    at = 0
    while at < len(parts):
        ends = (end for end in range(len(parts), at, -1) if tuple(parts[at:end]) in by_parts)
        end = next(ends, at + 1)
        whole.append(by_parts.get(tuple(parts[at:end]), parts[at]))
        at = end
    return whole


def _rows_are_people(wide: list[str], rest: list[str], columns: Mapping[str, str], source: Source) -> bool:
    """Whether a row holds the answers of one person; whatever does not say so is asked."""
    if "annotator" in columns or "item" in columns:
        return "annotator" in columns
    person, thing = person_column(rest), thing_column(rest)
    judges = are_people(wide)
    if person is not None and not judges and not (thing is not None and is_surely_item(thing)):
        return True
    if person is None and (judges or (thing is not None and is_surely_item(thing))):
        return False
    name = thing or person or (rest[0] if rest else None)
    if name is None:
        raise JudgmentError(
            f"the rows of {source.name} have no id, since all columns hold answers; leave the column of ids out of "
            f"{option('wide')}"
        )
    ways = [option("columns", {word: name}) for word in ("item", "annotator")]
    raise JudgmentError(f"are the rows of {source.name} items or people? {either(ways)}")
