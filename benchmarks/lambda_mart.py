"""LambdaMART against LightGBM by itself, with LightGBM's slopes and with our own, and its memory at a million rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import linear_rankers
from .data import SEED
from .workload import Call, Size, Workload, at_most_times, no_lower, peak_under

N_TREES = 50
N_FEATURES = 40


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np

    rng = np.random.default_rng(SEED)
    qid = np.repeat(np.arange(size["n_queries"]), size["n_items"])
    X = rng.random((len(qid), N_FEATURES), dtype=np.float32)
    strength = X[:, :5] @ np.array([1, 2, -1, 0.5, 1]) + 0.4 * rng.normal(size=len(qid))
    y = np.digitize(strength, np.quantile(strength, [0.6, 0.8, 0.92, 0.98]))
    np.savez(folder / "rows.npz", X=X, y=y, qid=qid)


def _rows(folder: Path) -> tuple[Any, Any, Any]:
    import numpy as np

    rows = np.load(folder / "rows.npz")
    return rows["X"], rows["y"], rows["qid"]


def _ranker(**params: Any) -> Callable[[Path, Size], Callable[[], Any]]:
    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from sklearn.base import clone

        from crowdrank.rankers import LambdaMART

        X, y, qid = _rows(folder)
        ranker = LambdaMART(n_trees=N_TREES, **params)
        return lambda: clone(ranker).fit(X, y, qid=qid)

    return setup


def _bare(folder: Path, size: Size) -> Callable[[], Any]:
    import lightgbm
    import numpy as np

    X, y, qid = _rows(folder)
    group = np.bincount(qid)
    # as many threads as OpenMP gives our side; left out, LGBMRanker asks for every core, whatever the environment says
    return lambda: lightgbm.LGBMRanker(n_estimators=N_TREES, n_jobs=0, verbosity=-1).fit(X, y, group=group)


def _ndcg(result: Any, folder: Path) -> float:
    from crowdrank.metrics import ndcg

    X, y, qid = _rows(folder)
    return float(ndcg(y, result.predict(X), qid=qid, k=10))


WORKLOAD = Workload(
    name="lambda_mart",
    what="LambdaMART, {n_queries:,} queries x {n_items} items x 40 features, 50 trees",
    sizes={
        "tiny": {"n_queries": 20, "n_items": 20},
        "small": {"n_queries": 200, "n_items": 50},
        "full": {"n_queries": 2_000, "n_items": 50},
    },
    prepare=_prepare,
    sides={
        "lambda_mart": Call("crowdrank, LightGBM's slopes", _ranker(), _ndcg),
        "own": Call("crowdrank, its own slopes", _ranker(lambdas="own"), _ndcg),
        "bare": Call("LightGBM by itself", _bare, _ndcg),
    },
    floors=(
        at_most_times("lambda_mart", "bare", 1.05),
        at_most_times("own", "bare", 1.5),
        no_lower("lambda_mart", "bare", 1e-6),
        no_lower("own", "bare", 0.005),
    ),
    figure="nDCG@10",
    needs=("lightgbm",),
)


def _predict(sparse: bool) -> Callable[[Path, Size], Callable[[], Any]]:
    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        ranker, X = _fitted_and_rows(folder, sparse)
        return lambda: ranker.predict(X)

    return setup


def _predict_bare(sparse: bool) -> Callable[[Path, Size], Callable[[], Any]]:
    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        ranker, X = _fitted_and_rows(folder, sparse)
        return lambda: ranker.booster_.predict(X, num_threads=ranker.n_threads)

    return setup


def _fitted_and_rows(folder: Path, sparse: bool) -> tuple[Any, Any]:
    from scipy.sparse import csr_matrix

    from crowdrank.rankers import LambdaMART

    X, y, qid = _rows(folder)
    if sparse:
        X[X < 0.7] = 0.0
    first = qid < 200
    ranker = LambdaMART(n_trees=100).fit(X[first], y[first], qid=qid[first])
    return ranker, csr_matrix(X) if sparse else X


PREDICT = Workload(
    name="lambda_mart_predict",
    what="Scores of {n_queries:,} queries x {n_items} items x 40 features by 100 trees, equal to the last bit",
    sizes=WORKLOAD.sizes,
    prepare=_prepare,
    sides={
        "lambda_mart": Call("crowdrank, dense rows", _predict(False)),
        "bare": Call("LightGBM by itself, dense rows", _predict_bare(False)),
        "sparse": Call("crowdrank, sparse rows", _predict(True)),
        "bare_sparse": Call("LightGBM by itself, sparse rows", _predict_bare(True)),
    },
    floors=(at_most_times("lambda_mart", "bare", 1.0), at_most_times("sparse", "bare_sparse", 1.5)),
    needs=("lightgbm",),
)


MEMORY = Workload(
    name="lambda_mart_memory",
    what="LambdaMART, {n_rows:,} scattered rows x 136 features of 32 bits, 100 trees",
    sizes=linear_rankers.WORKLOAD.sizes,
    prepare=linear_rankers.WORKLOAD.prepare,
    sides={"lambda_mart": Call("lambda_mart", linear_rankers.ranker("lambda_mart"))},
    floors=(peak_under("lambda_mart", linear_rankers.MOST),),
    needs=("lightgbm",),
)
