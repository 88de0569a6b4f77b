"""nDCG@10 of 10,000 queries with 100 items each, against scikit-learn told that there are no ties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, faster, same


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np

    rng = np.random.default_rng(SEED)
    truth = rng.choice(5, size=(size["n_queries"], size["n_items"]), p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    np.savez(folder / "tables.npz", truth=truth, scores=truth + 2 * rng.normal(size=truth.shape))


def _ours(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    from crowdrank.metrics import ndcg

    tables = np.load(folder / "tables.npz")
    truth, scores = tables["truth"], tables["scores"]
    return lambda: ndcg(truth, scores, k=10, gain="linear", ties="first")


def _ours_flat(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np

    from crowdrank.metrics import ndcg

    tables = np.load(folder / "tables.npz")
    truth, scores = tables["truth"].ravel(), tables["scores"].ravel()
    qid = np.repeat(np.arange(size["n_queries"]), size["n_items"])
    return lambda: ndcg(truth, scores, qid, k=10, gain="linear")


def _scikit_learn(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np
    from sklearn.metrics import ndcg_score

    tables = np.load(folder / "tables.npz")
    truth, scores = tables["truth"], tables["scores"]
    return lambda: ndcg_score(truth, scores, k=10, ignore_ties=True)


def _value(result: Any, folder: Path) -> float:
    return float(result)


WORKLOAD = Workload(
    name="ndcg",
    what="nDCG@10, {n_queries:,} queries x {n_items:,} items",
    sizes={
        "tiny": {"n_queries": 20, "n_items": 30},
        "small": {"n_queries": 1_000, "n_items": 100},
        "full": {"n_queries": 10_000, "n_items": 100},
    },
    prepare=_prepare,
    sides={
        "tables": Call("crowdrank, ties='first'", _ours, _value),
        "flat": Call("crowdrank, flat with qid, ties averaged", _ours_flat, _value),
        "scikit_learn": Call("scikit-learn, ignore_ties=True", _scikit_learn, _value),
    },
    floors=(
        faster("tables", "scikit_learn", 3),
        same("tables", "scikit_learn", 1e-9),
        faster("flat", "scikit_learn", None),
    ),
    figure="nDCG@10",
    needs=("sklearn",),
)
