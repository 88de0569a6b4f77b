"""Rankings by several annotators: machine translation, PrefLib's dots, puzzles and skating judges."""

from __future__ import annotations

import polars as pl

from ..data.judgments import Rankings
from ..data.truth import Truth
from ..io.preflib import read_preflib
from .dataset import Dataset
from .store import Store

SYSTEMS = range(1, 6)


def translations(store: Store, *, file: str = "sample-fr-en-train.csv") -> Dataset:
    """Rankings of five translations of a segment, with ties, by turkers and researchers."""
    ids = {f"item{n}": f"system{n}Id" for n in SYSTEMS}
    ranks = {f"rank{n}": f"system{n}rank" for n in SYSTEMS}
    wide = store.table(file, {"query": "segmentId", "annotator": "judgeId", **ids, **ranks}, numbers=list(ranks))
    wide = wide.with_row_index("ranking").with_columns(group=pl.col("annotator").str.split("_").list.first())
    meta = ("ranking", "query", "annotator", "group")
    long = pl.concat([wide.select(*meta, item=f"item{n}", rank=f"rank{n}") for n in SYSTEMS])
    again = len(wide) - wide.n_unique([word for word in wide.columns if word != "ranking"])
    notes = (f"{again} rankings are exact repeats; all are kept",) if again else ()
    return store.dataset(judgments=Rankings.from_frame(long), notes=notes)


def preflib(store: Store, *, ordered: bool = False) -> Dataset:
    """Rankings of several PrefLib files, each file a query; how often an order was given is its weight.

    With ``ordered`` the items are called by a number (of dots, of moves) and the smallest is truly first.
    """
    parts = []
    for file in store.terms.files:
        rows = read_preflib(store.path(file)).frame()
        weight = pl.col("weight") if "weight" in rows.columns else pl.lit(1.0)
        parts.append(rows.select("ranking", "item", "rank", weight=weight, query=pl.lit(file.split(".")[0])))
    rows = pl.concat(parts)
    truth = None
    if ordered:
        items = rows.select("query", "item").unique().with_columns(rank=pl.col("item").cast(pl.Int64, strict=False))
        if items["rank"].null_count():
            store.refuse_damaged(next(iter(store.terms.files)), "its alternatives are not numbered")
        truth = Truth.from_frame(items.with_columns(pl.col("rank").rank("dense").over("query")))
    return store.dataset(judgments=Rankings.from_frame(rows), truth=truth)
