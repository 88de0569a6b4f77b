"""Best-worst scaling (MaxDiff): a table with the items of a set in each row, and which of them is best and worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ...data.column_names import LISTED, key_of, name_points, person_column
from ...errors import JudgmentError
from ...wording import either, first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .set_columns import Layout, layout_of
from .streaming import text_table

_TITLE = "best-worst answers (several items in a row, and which is best and worst)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return preferences: the best item of each set over every other, and every other over the worst."""
    rows = Collector(source, options, unit="set")
    frame = chosen_rows(rows, text_table(source))
    layout = layout_of(frame.columns)
    if layout is None:
        raise JudgmentError(
            "a column best and three or more columns of items are needed; rename the columns to best, item1, item2 "
            "and item3"
        )
    records = list(frame.iter_rows(named=True))
    places = _are_places(records, layout)
    who = None if "annotator" in options.columns else _who(rows, frame, layout)
    free = [name for name in frame.columns if name not in (*layout.items, *layout.answers)]
    query = next((name for name in free if name_points("query", name) >= LISTED), None)
    for number, record in enumerate(records, 1):
        items = list(dict.fromkeys(record[name] for name in layout.items if record[name] is not None))
        chosen = [name and _chosen_item(record, name, layout, places) for name in (layout.best, layout.worst)]
        if chosen == [None, None]:
            rows.drop("without an answer")
        elif any(one is not None and one not in items for one in chosen):
            _blame(rows, number, "the best or the worst is not among the items that were shown")
        elif chosen[0] == chosen[1]:
            _blame(rows, number, "the same item is the best and the worst")
        else:
            for winner, loser in _pairs(items, *chosen):
                cells = {word: record[name] for word, name in (("annotator", who), ("query", query)) if name}
                rows.add(record, winner=winner, loser=loser, judgment=number, weight=1, **cells)
    rows.roles |= {"winner": layout.best or "the others", "loser": layout.worst or "the others"}
    rows.roles |= {"annotator": who or "", "query": query or ""}
    shown = first_few(map(repr, layout.items), shown=8)
    rows.notes.append(f"each set of {shown} gives pairs: the best over the others, and the others over the worst")
    rows.notes.append("pairs of one set count as one judgment, and which item was shown on which side is not known")
    return rows.finish("preference", title=_TITLE)


def _who(rows: Collector, frame: pl.DataFrame, layout: Layout) -> str | None:
    """The column that says who answered; one that may say so is named where none is called so."""
    rest = [name for name in frame.columns if name not in (*layout.items, *layout.answers)]
    named = person_column(rest) or next((name for name in rest if name_points("annotator", name)), None)
    repeated = [name for name in rest if 1 < frame[name].n_unique() < frame.height]
    if named is None and repeated:
        rows.notes.append(
            f"no annotator is named; if {repeated[0]!r} does so: {option('columns', {'annotator': repeated[0]})}"
        )
    return named


def _pairs(items: list[str], best: str | None, worst: str | None) -> Iterator[tuple[str, str]]:
    """Winner and loser of each pair that an answer decides."""
    if best is not None:
        yield from ((best, item) for item in items if item != best)
    if worst is not None:
        yield from ((item, worst) for item in items if item not in (best, worst))


def _blame(rows: Collector, number: int, what: str) -> None:
    """Refuse a set, or leave it out where that was asked for."""
    if rows.options.invalid != "drop":
        raise JudgmentError(f"row {number}: {what}; correct it, or leave such rows out: {option('invalid', 'drop')}")
    rows.drop(f"where {what}")


def _are_places(records: list[dict[str, Any]], layout: Layout) -> bool:
    """Whether answers name the columns and not the items in them; refused where they may mean either."""
    asked = [(record, record[name]) for record in records for name in layout.answers if record[name]]
    place_of = _place_names(layout)
    items = all(value in [record[name] for name in layout.items] for record, value in asked)
    places = all(value.lower() in place_of for _, value in asked)
    if items and places and any(record[place_of[value.lower()]] != value for record, value in asked):
        values = first_few(map(repr, sorted({value for _, value in asked})))
        raise JudgmentError(
            f"{either(map(repr, layout.answers), 'and')} hold {values}, which may be items or places; rename the items"
        )
    return places and not items


def _place_names(layout: Layout) -> Mapping[str, str]:
    """Names for a place in the row, in small letters -> its column: its name, or the number or letter it ends in."""
    ends = {key_of(name)[-1]: name for name in layout.items}
    return {**ends, **{name.lower(): name for name in layout.items}, **{key_of(name): name for name in layout.items}}


def _chosen_item(record: Mapping[str, Any], name: str, layout: Layout, places: bool) -> str | None:
    """The item that was chosen, by itself or by its place."""
    value: str | None = record[name]
    if value is None or not places:
        return value
    item: str | None = record[_place_names(layout)[value.lower()]]
    return item
