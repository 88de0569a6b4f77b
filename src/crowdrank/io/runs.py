"""Rankings to be evaluated: a consensus, a table of scores, a TREC run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.columns import assign_columns, check_names, quote_names, understand_items
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..errors import JudgmentError
from ..validation.scored_items import Scored
from .results import consensus_of
from .sources import Source, blaming, open_source
from .tables import read_table
from .trec import looks_like_run, run_of


def as_scored(source: Any) -> dict[str, Scored]:
    """Return the scored items by the name of their run; a TREC file may hold several runs."""
    if isinstance(source, Consensus):
        return {source.method: Scored.of(source)}
    if isinstance(source, str | os.PathLike):
        return _from_file(open_source(source))
    return {"scores": _from_frame(to_frame(source), retrieved=False)}


def read_slices(data: Any) -> pl.DataFrame:
    """Return a table of query and the columns that queries are sliced by, from a frame or file.

    Examples
    --------
    >>> read_slices({"qid": [1, 2], "intent": ["buy", "learn"]}).rows()
    [('1', 'buy'), ('2', 'learn')]
    """
    frame = read_table(data) if isinstance(data, str | os.PathLike) else to_frame(data)
    check_names(frame.columns)
    columns = assign_columns(("query",), list(frame.columns), {})
    if "query" not in columns or frame.width < 2:
        raise JudgmentError(
            f"slices need a query column and one column or more to slice by; the table has {quote_names(frame.columns)}"
        )
    query = frame[columns["query"]].cast(pl.String)
    again = (~query.is_first_distinct()).arg_true()
    if len(again):
        raise JudgmentError(f"row {again[0] + 1} repeats query {query[again[0]]!r} in the slices; keep one row of each")
    return frame.drop(columns["query"]).insert_column(0, query.alias("query"))


def _from_file(source: Source) -> dict[str, Scored]:
    """Scored items of a file: the runs of a TREC file by their names, a consensus or a table by the file's."""
    if looks_like_run(source):
        frame = run_of(source)
        names = frame["run"].unique(maintain_order=True).to_list()
        return {name: _from_frame(frame.filter(pl.col("run") == name), retrieved=True) for name in names}
    with blaming(source.name):
        consensus = consensus_of(source)
    return {Path(source.name).stem: Scored.of(consensus)}


def _from_frame(frame: pl.DataFrame, *, retrieved: bool) -> Scored:
    """Scored items of a table with item, score [, query]; a rank will do."""
    columns = understand_items(frame.columns, also=("rank",))
    lower = {name.lower(): name for name in frame.columns}
    if "score" in lower:
        score = frame[lower["score"]].cast(pl.Float64, strict=False)
    elif "rank" in columns:
        score = -frame[columns["rank"]].cast(pl.Float64, strict=False)
    else:
        raise JudgmentError(f"the table has no score column (its columns: {quote_names(frame.columns)}); add one")
    if score.null_count() or not score.is_finite().all():
        row = int((~score.is_finite().fill_null(False)).arg_true()[0]) + 1
        raise JudgmentError(f"the score is blank or not a number in row {row}; fill it in or drop the row")
    query = frame[columns["query"]] if "query" in columns else None
    keys = [columns[word] for word in ("query", "item") if word in columns]
    again = (~frame.select(keys).to_struct("key").is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise JudgmentError(f"row {row + 1} repeats item {frame[columns['item']][row]!r}; keep one row of each item")
    rows = Features.from_arrays(query, frame[columns["item"]], score.to_numpy().reshape(-1, 1))
    return Scored(rows.items, rows.matrix[:, 0].astype(np.float64), retrieved)
