"""Scored items, whatever they come from: a consensus, a table, a TREC run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.columns import quoted, understand_items
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.index import Items
from ..data.truth import Truth
from ..errors import JudgmentError
from ..io.results import consensus_of
from ..io.sources import Source, blaming, open_source
from ..io.trec import looks_like_run, run_of
from ..protocols import Bools, Floats


@dataclass(frozen=True, eq=False)
class Scored:
    """Items with a score each; ``retrieved`` says that items may be missing because they were not found."""

    items: Items
    scores: Floats
    retrieved: bool = False
    labels: pl.Series | None = None
    """The grade that was chosen for each item, where one was."""
    nominal: bool = False

    @classmethod
    def of(cls, consensus: Consensus) -> Scored:
        """Return the scored items of a consensus."""
        labels = consensus.labels() if consensus.grade is not None and consensus.levels is not None else None
        return cls(consensus.items, consensus.scores, labels=labels, nominal=consensus.nominal)

    def with_missing(self, truth: Truth) -> tuple[Scored, Bools]:
        """Add the items that the truth has of the same queries and that were not retrieved; say which rows were."""
        here = _text_ids(self.items).with_columns(score=pl.Series(self.scores), ranked=pl.lit(1.0))
        there = _text_ids(truth.items)
        if self.items.n_queries == 1 and truth.items.n_queries == 1 and truth.items.single:
            there = there.with_columns(query=pl.lit(here["query"][0]))
        there = there.join(here, on="query", how="semi")
        absent = there.join(here, on=["query", "item"], how="anti").with_columns(score=pl.lit(0.0), ranked=pl.lit(0.0))
        both = pl.concat([here, absent])
        query = None if self.items.single else both["query"]
        rows = Features.from_arrays(query, both["item"], both.select("score", "ranked").to_numpy())
        return replace(self, items=rows.items, scores=rows.matrix[:, 0].astype(np.float64)), rows.matrix[:, 1] > 0


def _text_ids(items: Items) -> pl.DataFrame:
    """Query and item ids as text, so that integers meet text."""
    return pl.DataFrame({"query": items.query_ids(), "item": items.ids}).select(pl.all().cast(pl.String))


def as_scored(source: Any) -> dict[str, Scored]:
    """Return the scored items by the name of their run; a TREC file may hold several runs."""
    if isinstance(source, Consensus):
        return {source.method: Scored.of(source)}
    if isinstance(source, str | os.PathLike):
        return _from_file(open_source(source))
    return {"scores": _from_frame(to_frame(source), retrieved=False)}


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
    found = understand_items(frame.columns, also=("rank",))
    lower = {name.lower(): name for name in frame.columns}
    if "score" in lower:
        score = frame[lower["score"]].cast(pl.Float64, strict=False)
    elif "rank" in found:
        score = -frame[found["rank"]].cast(pl.Float64, strict=False)
    else:
        raise JudgmentError(f"the table has no score column (its columns: {quoted(frame.columns)}); add one")
    if score.null_count() or not score.is_finite().all():
        row = int((~score.is_finite().fill_null(False)).arg_true()[0]) + 1
        raise JudgmentError(f"the score is blank or not a number in row {row}; fill it in or drop the row")
    query = frame[found["query"]] if "query" in found else None
    keys = [found[word] for word in ("query", "item") if word in found]
    again = (~frame.select(keys).to_struct("key").is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise JudgmentError(f"row {row + 1} repeats item {frame[found['item']][row]!r}; keep one row of each item")
    rows = Features.from_arrays(query, frame[found["item"]], score.to_numpy().reshape(-1, 1))
    return Scored(rows.items, rows.matrix[:, 0].astype(np.float64), retrieved)
