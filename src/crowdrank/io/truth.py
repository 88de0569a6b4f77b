"""What methods are compared with or evaluated by: known answers, rankings of systems, logs of clicks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.clicks import Clicks
from ..data.column_names import assign_columns, check_names, quote_names, understand_items
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.truth import Truth
from ..errors import JudgmentError
from ..validation.run_evaluation import Scored
from . import exports
from .read_options import ReadOptions
from .results import read_consensus, written_consensus
from .sources import blaming, open_source
from .tables import read_source, read_table, table_format
from .trec import looks_like_qrels, looks_like_run, read_qrels, read_run


def read_truth(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    winner_codes: Mapping[Any, str] | None = None,
    options: ReadOptions | None = None,
) -> Truth:
    """Return the truth in a file or frame: grades or ranks of items, winners of pairs, qrels, or a consensus.

    Of another tool's export it is the gold answers: those marked as ground truth, golden or test questions.

    Parameters
    ----------
    data
        Name of a file (``-`` reads standard input), a frame, or a consensus, whose scores then count as grades.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for names that are not understood by themselves.
    winner_codes
        What the numbers of a numeric winner column mean.
    options
        How the judgments were read, which tells the question where their file is the truth too.

    Examples
    --------
    >>> read_truth({"item": ["x", "y"], "rank": [1, 2]}).grade.tolist()
    [-1.0, -2.0]
    """
    if isinstance(data, Truth):
        return data
    if isinstance(data, Consensus):
        return Truth.from_consensus(data)
    if not isinstance(data, str | os.PathLike):
        return Truth.from_frame(data, columns=columns, winner_codes=winner_codes)
    source = open_source(data, archives=True)
    with blaming(source.name):
        consensus = written_consensus(source)
        if consensus is not None:
            return Truth.from_consensus(consensus)
        if table_format(source) == "csv" and looks_like_qrels(source):
            return Truth.from_frame(read_qrels(source))
        name = None if columns else exports.detect(source)
        if name is not None:
            # the gold answers of another tool's export
            imported = exports.read(source, name, options)
            truth = imported.frame if name in exports.RATED else imported.truth
            if truth is None:
                what = f"{source.name} is {imported.title}, without gold answers"
                raise JudgmentError(f"{what}; give a table with the true answers")
            return Truth.from_frame(truth)
        table = read_source(source)[0]
        # a table that holds judgments as well as the truth has its items where the judgments have theirs
        meant = {} if options is None else {w: n for w, n in options.columns.items() if w in ("item", "query")}
        known = {word: name for word, name in meant.items() if name in table.columns}
        return Truth.from_frame(table, columns={**known, **(columns or {})}, winner_codes=winner_codes)


def as_scored(source: Any) -> dict[str, Scored]:
    """Return the scored items by a name: of the run, of which a TREC file may hold several, or of the file."""
    if isinstance(source, Consensus):
        return {source.method: Scored.of(source)}
    if not isinstance(source, str | os.PathLike):
        return {"scores": _from_frame(to_frame(source), retrieved=False)}
    opened = open_source(source)
    if looks_like_run(opened):
        frame = read_run(opened)
        names = frame["run"].unique(maintain_order=True).to_list()
        return {name: _from_frame(frame.filter(pl.col("run") == name), retrieved=True) for name in names}
    with blaming(opened.name):
        return {Path(opened.name).stem: Scored.of(read_consensus(opened))}


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
        problem = "slices need a query column and one column or more to slice by"
        raise JudgmentError(f"{problem}; the table has {quote_names(frame.columns)}")
    query = frame[columns["query"]].cast(pl.String)
    again = (~query.is_first_distinct()).arg_true()
    if len(again):
        raise JudgmentError(f"row {again[0] + 1} repeats query {query[again[0]]!r} in the slices; keep one row of each")
    return frame.drop(columns["query"]).insert_column(0, query.alias("query"))


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


def read_clicks(data: Any, *, columns: Mapping[str, str] | None = None) -> Clicks:
    """Return a log of clicks: query, item, position (1 is the first), clicked, and impression where it is known.

    Parameters
    ----------
    data
        A frame, or the name of a CSV, Parquet or JSON file, also of events of User Behavior Insights (OpenSearch).
    columns
        Column names of words that are not understood by themselves, such as ``{"position": "slot_nr"}``.

    Examples
    --------
    >>> read_clicks({"query": ["q", "q"], "item": ["x", "y"], "rank": [1, 2], "click": [True, False]})
    Clicks(2 rows, 1 click, 1 query)
    """
    if isinstance(data, Clicks):
        return data
    if not isinstance(data, str | os.PathLike):
        return Clicks.from_frame(data, columns=dict(columns or {}))
    with blaming(str(data)):
        source = open_source(data, archives=True)
        if exports.detect(source) != "ubi":
            return Clicks.from_frame(read_source(source)[0], columns=dict(columns or {}))
        from .exports.search_files import click_events

        return Clicks.from_frame(click_events(source))
