"""A consensus of more items than memory should hold, which stays in Parquet, beside the judgments it was made of."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Quality, QualitySource, Trace
from ..data.files import PathLike, plain, refusal, whole_file
from ..data.index import Items
from ..data.showing import round_floats
from ..errors import JudgmentError, ParameterError, UnknownNameError
from ..protocols import method_name
from .packed import PackedJudgments, items_of

MANY_ITEMS = 5_000_000
"""Items above which a consensus of packed judgments stays in Parquet."""


@dataclass(frozen=True, eq=False)
class StoredConsensus:
    """The consensus of packed judgments in Parquet files, one for each part; ``frame()`` scans them lazily.

    Rows stand query by query and best first, queries in the order of the parts.
    """

    path: Path
    n_items: int
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    quality_source: QualitySource | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        return f"StoredConsensus({self.n_items:,} items, method {self.method}, in {self.path})"

    @property
    def quality(self) -> Quality | None:
        """Quality of each annotator, computed on first access; ``None`` where the judgments name no annotators."""
        return None if self.quality_source is None else self.quality_source.quality

    def frame(self) -> pl.LazyFrame:
        """Return the lazy table of query, item, score, rank [, grade, confidence] [, std_error]."""
        return pl.scan_parquet(self.path / "part-*.parquet")

    def order(self, query: str | int) -> list[str | int]:
        """Return the item ids of a query, best first."""
        chosen = self.frame().filter(pl.col("query").cast(pl.String) == str(query)).select("item").collect()
        if not len(chosen):
            raise UnknownNameError(f"there is no query {query!r}")
        return chosen["item"].to_list()

    def of_queries(self, queries: pl.Series) -> Consensus:
        """Return the consensus of some queries, in memory."""
        scan = self.frame()
        keys = [name for name in ("query", "item") if name in scan.collect_schema().names()]
        if "query" in keys:
            wanted = queries.cast(pl.String).unique()
            scan = scan.filter(pl.col("query").cast(pl.String).is_in(wanted.implode()))
        table = scan.collect().sort(keys)
        items: Items = items_of(table.select(keys))
        return Consensus(
            items=items, scores=table["score"].to_numpy(), method=self.method, params=self.params, trace=self.trace,
            std_error=table["std_error"].to_numpy() if "std_error" in table.columns else None,
            quality_source=self.quality_source,
        )  # fmt: skip

    def write(self, path: str) -> None:
        """Write the whole table as CSV or Parquet, without holding it."""
        target = Path(path)
        table = self.frame()
        try:
            with whole_file(target) as handle:
                if target.suffix in (".parquet", ".pq"):
                    table.sink_parquet(handle)
                else:
                    table.with_columns(round_floats(table.collect_schema())).sink_csv(handle)
        except OSError as error:
            raise ParameterError(refusal(plain(path), target, error)) from None


def store_scores(
    method: Any, packed: PackedJudgments, parts: Iterable[tuple[Items, dict[str, Any]]], quality: Any = None
) -> StoredConsensus:
    """Write the columns of the items of each part in turn, and return the consensus that they are.

    Columns are ``scores``, ``ranks`` and what else a consensus has of each item.
    """
    folder = packed.path / "results" / method_name(method)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for former in folder.glob("part-*.parquet"):
            former.unlink()
        for number, (items, columns) in enumerate(parts):
            table = {} if items.single else {"query": items.query_ids()}
            table |= {"item": items.ids, "score": columns["scores"], "rank": columns["ranks"]}
            if "grade" in columns and packed.levels is not None:
                chosen = pl.Series(packed.levels).gather(np.maximum(columns["grade"], 0))
                table["grade"] = chosen.set(pl.Series(columns["grade"] < 0), None)
            table |= {name: columns[name] for name in ("confidence", "std_error") if name in columns}
            best = np.lexsort((np.arange(len(items)), -columns["scores"], items.query))
            with whole_file(folder / f"part-{number:05d}.parquet") as handle:
                pl.DataFrame(table)[best].write_parquet(handle)
    except OSError as error:
        raise ParameterError(refusal(plain(str(folder)), folder / "part", error)) from None
    source = None if quality is None else QualitySource(quality)
    return StoredConsensus(folder, packed.n_items, method_name(method), dataclasses.asdict(method), Trace(), source)


def is_stored(path: Any) -> bool:
    """Return whether a path is a folder of a ranking that stays in Parquet."""
    return isinstance(path, str | os.PathLike) and Path(path).is_dir() and any(Path(path).glob("part-*.parquet"))


def scan_consensus(path: PathLike) -> StoredConsensus:
    """Return the ranking of a folder such as ``packed/results/mean_grade``, whose name is that of the method."""
    folder = Path(path)
    try:
        n_items = int(pl.scan_parquet(folder / "part-*.parquet").select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):
        raise JudgmentError(f"{plain(str(path))} holds no ranking in Parquet; make one with aggregate") from None
    return StoredConsensus(folder, n_items, folder.name)
