"""What to ask next, on 1M judgments of 100,000 items, after the fit: 10,000 requests with prices and capacities.

There is no peer that does the same, so that the floors are seconds. The figure is the share of distinct items or pairs
among what is asked for: ten thousand requests should not be ten thousand times the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, seconds_under

N_ANNOTATORS, PER_QUERY = 500, 100


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(SEED)
    n_items, n_rows = size["n_items"], size["n_rows"]
    score = rng.normal(size=n_items)
    item, who = rng.integers(0, n_items, n_rows), rng.integers(0, N_ANNOTATORS, n_rows)
    other = item // PER_QUERY * PER_QUERY + (item + rng.integers(1, PER_QUERY, n_rows)) % PER_QUERY
    grade = np.clip(np.round(1 + 1.2 * (score[item] + 0.7 * rng.normal(size=n_rows))), 0, 4).astype(int)
    left = rng.random(n_rows) < 1 / (1 + np.exp(score[other] - score[item]))
    shared = {"query": item // PER_QUERY, "annotator": who}
    pl.DataFrame({**shared, "item": item, "grade": grade}).write_parquet(folder / "grades.parquet")
    winner = pl.Series(["right", "left"]).gather(left.astype(int))
    pl.DataFrame({**shared, "left": item, "right": other, "winner": winner}).write_parquet(folder / "pairs.parquet")
    price, capacity = rng.choice([1.0, 2.0, 3.0], N_ANNOTATORS), np.full(N_ANNOTATORS, 1_000)
    pool = {"annotator": np.arange(N_ANNOTATORS), "price": price, "capacity": capacity}
    pl.DataFrame(pool).write_parquet(folder / "pool.parquet")


def _asking(scheme: str, file: str, method: str | None) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a proposal: judgments are read and the consensus is found beforehand."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import warnings

        from crowdrank import aggregate, api, read_judgments

        warnings.simplefilter("ignore")
        judgments = read_judgments(folder / file)
        consensus = None if method is None else aggregate(judgments, method)
        pool = str(folder / "pool.parquet")
        return lambda: api.requests(judgments, scheme, pool=pool, budget=size["n_requests"], consensus=consensus)

    return setup


def _distinct(requests: Any, folder: Path) -> float:
    import numpy as np

    things = np.sort(np.stack(list(requests.things.values())), axis=0)
    return len(np.unique(things, axis=1).T) / max(len(requests), 1)


WORKLOAD = Workload(
    name="propose",
    what="{n_requests:,} requests after {n_rows:,} judgments of {n_items:,} items",
    sizes={
        "tiny": {"n_items": 300, "n_rows": 3_000, "n_requests": 50},
        "small": {"n_items": 10_000, "n_rows": 100_000, "n_requests": 1_000},
        "full": {"n_items": 100_000, "n_rows": 1_000_000, "n_requests": 10_000},
    },
    prepare=_prepare,
    sides={
        "overlap": Call("20-overlap of grades", _asking("20-overlap", "grades.parquet", None), _distinct),
        "agreement": Call("agreement", _asking("agreement", "grades.parquet", "dawid_skene"), _distinct),
        "grades": Call("information, grades", _asking("information", "grades.parquet", "dawid_skene"), _distinct),
        "pairs": Call("information, preferences", _asking("information", "pairs.parquet", "latent_score"), _distinct),
    },
    floors=(
        seconds_under("overlap", 3.0), seconds_under("agreement", 3.0), seconds_under("grades", 3.0),
        seconds_under("pairs", 3.0),
    ),
    figure="share of distinct items or pairs",
)  # fmt: skip
