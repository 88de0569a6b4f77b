"""Linear rankers on a million rows of 136 features, as MSLR-WEB has them: the features are read and never copied.

The limit of 2.5 times the features is for the whole process, interpreter and libraries included.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, peak_under, seconds_under

N_FEATURES = 136
MOST = 2.5 * 1_000_000 * N_FEATURES * 4 / 1e9
"""Gigabytes."""


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np

    rng = np.random.default_rng(SEED)
    n_rows = size["n_rows"]
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n_rows, N_FEATURES))
    y = np.empty(n_rows)
    for begin in range(0, n_rows, 10_000):
        part = rng.random((min(10_000, n_rows - begin), N_FEATURES), dtype=np.float32)
        X[begin : begin + len(part)] = part
        noise = rng.normal(scale=0.3, size=len(part))
        y[begin : begin + len(part)] = np.floor(2 * np.clip(part[:, :5].sum(1) - 2.5 + noise, 0, 2))
    X.flush()
    np.save(folder / "y.npy", y)


def ranker(name: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """A side that fits the ranker of that name."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import numpy as np
        from sklearn.base import clone

        from crowdrank.registry import make

        X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
        # queries of 100 items whose rows lie scattered
        qid = np.random.default_rng(SEED).permutation(np.arange(len(y)) // 100)
        made = make("ranker", name)
        return lambda: clone(made).fit(X, y, qid=qid)

    return setup


WORKLOAD = Workload(
    name="linear_rankers",
    what="linear rankers, {n_rows:,} scattered rows x 136 features of 32 bits",
    sizes={"tiny": {"n_rows": 2_000}, "small": {"n_rows": 100_000}, "full": {"n_rows": 1_000_000}},
    prepare=_prepare,
    sides={name: Call(name, ranker(name)) for name in ("list_net", "list_mle", "rank_svm")},
    floors=(
        peak_under("list_net", MOST),
        peak_under("list_mle", MOST),
        peak_under("rank_svm", MOST),
        seconds_under("list_net", 60.0),
    ),
)
