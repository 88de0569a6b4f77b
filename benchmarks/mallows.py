"""Mallows' model with a dispersion for each annotator, 60 iterations, on the protocol of LTRMA.

No peer fits dispersions of several annotators, so that the floor is in seconds. Annotators swap random places of the
true ranking, the i-th 2 i + 1 times, afresh for each query. The figure is Kendall's tau with the truth; Borda's rule
shows what the dispersions are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, no_lower, seconds_under


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np
    import polars as pl

    from crowdrank import simulate

    n_queries, n_items = size["n_queries"], size["n_items"]
    queries, items = ([f"{letter}{k:05d}" for k in range(n)] for letter, n in (("q", n_queries), ("i", n_items)))
    grade = np.random.default_rng(SEED).permuted(np.tile(np.arange(n_items), (n_queries, 1)), axis=1).ravel()
    truth = pl.DataFrame({"query": np.repeat(queries, n_items).tolist(), "item": items * n_queries, "grade": grade})
    pool = simulate.ltrma_swaps(n_annotators=size["n_annotators"])
    drawn = simulate.rankings(truth, pool, simulate.PerQuery(k=size["n_annotators"]), seed=SEED)
    truth.write_parquet(folder / "truth.parquet")
    drawn.judgments.frame().write_parquet(folder / "rankings.parquet")


def _fit(method: str, params: Mapping[str, Any]) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to rankings that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank import read_judgments
        from crowdrank.registry import make

        rankings, aggregator = read_judgments(folder / "rankings.parquet"), make("aggregator", method, params)
        return lambda: aggregator.fit(rankings)

    return setup


def _tau(consensus: Any, folder: Path) -> float:
    import polars as pl

    from crowdrank.metrics import kendall_tau

    truth = pl.read_parquet(folder / "truth.parquet")
    both = truth.join(consensus.frame(), on=["query", "item"]).sort("query", "item")
    return float(kendall_tau(both["grade"], both["score"], both["query"]))


WORKLOAD = Workload(
    name="mallows",
    what="Mallows, {n_queries:,} queries x {n_items} items x {n_annotators} annotators, 60 iterations",
    sizes={
        "tiny": {"n_queries": 3, "n_items": 10, "n_annotators": 4},
        "small": {"n_queries": 20, "n_items": 15, "n_annotators": 10},
        "full": {"n_queries": 100, "n_items": 15, "n_annotators": 10},
    },
    prepare=_prepare,
    sides={
        "kendall": Call("crowdrank, Kendall distance", _fit("mallows", {}), _tau),
        "cayley": Call("crowdrank, Cayley distance", _fit("mallows", {"distance": "cayley"}), _tau),
        "borda": Call("crowdrank, Borda's rule", _fit("borda", {}), _tau),
    },
    floors=(seconds_under("kendall", 1.0), no_lower("kendall", "borda", 0.0), no_lower("cayley", "borda", 0.0)),
    figure="Kendall's tau with the truth",
)
