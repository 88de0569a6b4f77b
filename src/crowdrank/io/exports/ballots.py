"""Ballots: tables with one row per voter and a column for each place, or the whole order in one cell."""

from __future__ import annotations

import polars as pl

from ...data.column_names import person_column
from ...errors import JudgmentError
from ...wording import either
from ..read_options import ReadOptions
from ..sources import Source
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .set_columns import order_column, place_columns
from .streaming import text_table
from .surveys import add_survey, places_of

_TITLE = "ballots (a column for each place, or an order such as x>y=z)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the ranking of each ballot."""
    rows = Collector(source, options, unit="ballot")
    frame = chosen_rows(rows, text_table(source))
    who = None if "annotator" in options.columns else person_column(frame.columns)
    if places := place_columns(frame.columns):
        named = {name: name.replace("_", " ") for name in places}
        if places_of(frame, named) is None:
            raise JudgmentError(
                f"{either(map(repr, places[:8]), 'and')} hold numbers, or an item twice, so it is not clear whether "
                "cells are items or ranks; write one row per item and rank"
            )
        voters = frame[who] if who else pl.Series([str(number) for number in range(1, frame.height + 1)])
        rows.roles["annotator"] = who or "number of the row"
        return rows.finish(add_survey(rows, frame, named, {"annotator": voters}), title=_TITLE)
    column = order_column(frame.columns, frame.fill_null("").rows())
    if column is None:
        raise JudgmentError(
            "no columns are named after places (1st, 2nd, ...), and none holds orders such as x>y=z; "
            "write one row per item and rank"
        )
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        if record[column] is None:
            rows.drop("without an order")
            continue
        voter = record[who] if who else None
        levels = [[item.strip() for item in level.split("=")] for level in record[column].split(">")]
        items = [item for level in levels for item in level]
        if not all(items) or len(set(items)) < len(items):
            raise JudgmentError(f"row {number}: {record[column]!r} names an item twice, or none; correct it")
        for place, level in enumerate(levels):
            before = sum(map(len, levels[:place]))
            for item in level:
                rows.add(record, item=item, rank=before + 1, ranking=str(number), annotator=voter)
    rows.roles |= {"item": column, "rank": f"place in {column}", "annotator": who or ""}
    return rows.finish("ranking", title=_TITLE)
