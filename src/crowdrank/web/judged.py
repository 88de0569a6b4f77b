"""The counted judgments of a campaign as the verbs take them: the same rows that an export holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from .campaign_file import Settings

ANSWER_COLUMNS: dict[str, dict[str, Any]] = {
    "grade": {"item": pl.String, "grade": pl.Int64},
    "preference": {"left": pl.String, "right": pl.String, "winner": pl.String},
    "ranking": {"item": pl.String, "rank": pl.Int64, "ranking": pl.String},
}
"""Columns of each kind of judgment besides query, annotator and time."""


def judgment_frame(settings: Settings, rows: Sequence[dict[str, Any]], *, single: bool | None = None) -> pl.DataFrame:
    """Return judgments in the owner's ids as the table that ``crowdrank aggregate`` reads.

    Without a query where there is one without a name only; ``single`` says so of rows that are some of them.
    """
    kind = settings.kind
    if kind == "ranking":
        rows = [
            {**row, "item": item, "rank": rank, "ranking": row["submission"]}
            for row in rows
            for rank, group in enumerate(row["order"], 1)
            for item in group
        ]
    schema: dict[str, Any] = {"query": pl.String, **ANSWER_COLUMNS[kind], "annotator": pl.String, "time": pl.Float64}
    frame = pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)
    # one query without a name is no query at all
    single = bool((frame["query"] == "").all()) if single is None else single
    return frame.drop("query") if single else frame
