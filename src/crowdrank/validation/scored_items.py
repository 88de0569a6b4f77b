"""Scored items, whatever they come from: a consensus, a table, a TREC run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.index import Items
from ..data.truth import Truth
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
    """Query and item ids as text, so integers meet text."""
    return pl.DataFrame({"query": items.query_ids(), "item": items.ids}).select(pl.all().cast(pl.String))
