"""LTRMA-ML and LTRMA-D on the synthetic protocol of their paper.

The truth is x1 + 10 x2 of features on the unit square, but for a little noise; annotators swap random places of it, the
i-th 2 i + 1 times, afresh for each query. No peer learns from rankings of several annotators, so that the floor is in
seconds. The figure is the nDCG@3 of unseen queries, an item of true rank r having the grade n + 1 - r; Borda's rule
with the same ranker shows what the rest is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, no_lower, seconds_under

_UNSEEN = 500


def synthetic(n_queries: int, n_items: int, n_unseen: int, seed: int) -> Any:
    """Return a table of query, item, both features, grade, and whether the query is to be learned from."""
    import numpy as np
    import polars as pl

    rng, n = np.random.default_rng(seed), n_queries + n_unseen
    matrix = rng.random((n, n_items, 2))
    score = matrix @ [1.0, 10.0] + rng.normal(0, 0.005, (n, n_items))
    return pl.DataFrame(
        {
            "query": np.repeat([f"q{k:05d}" for k in range(n)], n_items),
            "item": np.tile([f"i{k:03d}" for k in range(n_items)], n),
            "near": matrix[..., 0].ravel(),
            "wide": matrix[..., 1].ravel(),
            "grade": (score.argsort(axis=1).argsort(axis=1) + 1.0).ravel(),
            "seen": np.repeat(np.arange(n) < n_queries, n_items),
        }
    )


def _prepare(folder: Path, size: Size) -> None:
    import polars as pl

    from crowdrank import simulate

    n = size["n_annotators"]
    table = synthetic(size["n_queries"], size["n_items"], _UNSEEN, SEED)
    truth = table.filter(pl.col("seen")).select("query", "item", "grade")
    drawn = simulate.rankings(truth, simulate.ltrma_swaps(n_annotators=n), simulate.PerQuery(k=n), seed=SEED)
    table.write_parquet(folder / "items.parquet")
    drawn.judgments.frame().write_parquet(folder / "rankings.parquet")


def _features(folder: Path, seen: bool) -> Any:
    """Features of the queries to learn from, or of the others."""
    import polars as pl

    from crowdrank import Features

    return Features.from_frame(
        pl.read_parquet(folder / "items.parquet").filter(pl.col("seen") == seen).select("query", "item", "near", "wide")
    )


def _fit(method: str, params: Mapping[str, Any]) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to rankings that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank import read_judgments
        from crowdrank.registry import make

        rankings, features = read_judgments(folder / "rankings.parquet"), _features(folder, True)
        joint = make("joint", method, params)
        return lambda: joint.fit(rankings, features)

    return setup


def _unseen_gain(fit: Any, folder: Path) -> float:
    import polars as pl

    from crowdrank.metrics import ndcg

    both = pl.read_parquet(folder / "items.parquet").join(fit.predict(_features(folder, False)), on=["query", "item"])
    return float(ndcg(both["grade"], both["score"], both["query"], k=3))


WORKLOAD = Workload(
    name="ltrma",
    what="LTRMA, {n_queries:,} queries x {n_items} items x {n_annotators} annotators, 60 iterations",
    sizes={
        "tiny": {"n_queries": 5, "n_items": 10, "n_annotators": 3},
        "small": {"n_queries": 20, "n_items": 15, "n_annotators": 9},
        "full": {"n_queries": 100, "n_items": 15, "n_annotators": 15},
    },
    prepare=_prepare,
    sides={
        "ml": Call("LTRMA-ML", _fit("ltrma", {}), _unseen_gain),
        "hard": Call("LTRMA-ML, hard steps", _fit("ltrma", {"step": "hard"}), _unseen_gain),
        "d": Call("LTRMA-D", _fit("ltrma-d", {}), _unseen_gain),
        "borda": Call(
            "Borda's rule and ListMLE", _fit("two_stage", {"aggregator": "borda", "ranker": "list_mle"}), _unseen_gain
        ),
    },
    floors=(
        seconds_under("ml", 1.0),
        no_lower("ml", "d", 0.0),
        no_lower("hard", "d", 0.0),
        no_lower("ml", "borda", 0.0),
    ),
    figure="nDCG@3 of unseen queries",
)
