"""TREC files as judgments: qrels are grades, a run is the ranking of a system."""

from __future__ import annotations

import polars as pl

from ..read_options import ReadOptions
from ..sources import Source
from ..trec import looks_like_run, qrels_of, run_of
from .imported import Collector, Imported


def read(source: Source, options: ReadOptions) -> Imported:
    """Return a grade for each line of qrels, or a ranking for each query and run; the run is the annotator."""
    rows = Collector(source, options, unit="line")
    if not looks_like_run(source):
        frame = qrels_of(source)
        rows.n_read = len(frame)
        rows.add_frame(frame)
        rows.roles |= {"query": "column 1", "item": "column 3", "grade": "column 4"}
        return rows.finish("grade", title="TREC qrels (query, iteration, item, grade)")
    run = run_of(source)
    rows.n_read = len(run)
    # trec_eval orders by score, and so do we; the rank column of a file may say something else
    rank = pl.col("score").rank("min", descending=True).over("run", "query").cast(pl.Float64)
    rows.add_frame(run.select("query", "item", rank=rank, annotator="run"))
    rows.roles |= {"query": "column 1", "item": "column 3", "rank": "order of column 5", "annotator": "column 6"}
    return rows.finish("ranking", title="TREC run (query, Q0, item, rank, score, run)")
