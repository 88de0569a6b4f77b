"""ListNet on one fold of OHSUMED, against the same objective in numpy minimised by scipy's L-BFGS.

Where the public set is not at hand, random rows of the same shape stand in for it: 63 queries of 35 to 320 items with
45 features. The two other linear rankers and the paper's own run are shown beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, faster, no_lower, seconds_under

RIDGE = 0.2


def _prepare(folder: Path, size: Size) -> None:
    import numpy as np

    from crowdrank.datasets import load
    from crowdrank.errors import MissingDataError

    try:
        data = load("letor-ohsumed")
        queries = np.array([str(query) for query in data.features.items.queries])[data.features.items.query]
        chosen = np.isin(queries, data.folds[0].train[: size["n_queries"]])
        X, y, qid = data.features.matrix[chosen], data.features.grade[chosen], queries[chosen]
    except MissingDataError:
        rng = np.random.default_rng(SEED)
        qid = np.repeat(np.arange(size["n_queries"]), rng.integers(35, 321, size["n_queries"]))
        X = rng.random((len(qid), 45))
        y = np.clip(np.round(X[:, :5].sum(1) - 2.5 + rng.normal(size=len(qid))), 0, 2)
    np.savez(folder / "rows.npz", X=X, y=y, qid=qid)


def _rows(folder: Path) -> tuple[Any, Any, Any]:
    import numpy as np

    rows = np.load(folder / "rows.npz")
    return rows["X"], rows["y"], rows["qid"]


def _ranker(name: str, **params: Any) -> Callable[[Path, Size], Callable[[], Any]]:
    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from sklearn.base import clone

        from crowdrank.registry import make

        X, y, qid = _rows(folder)
        ranker = make("ranker", name, params)
        return lambda: clone(ranker).fit(X, y, qid=qid)

    return setup


def _plain(folder: Path, size: Size) -> Callable[[], Any]:
    import numpy as np
    from scipy.optimize import minimize

    X, y, qid = _rows(folder)
    _, starts, sizes = np.unique(qid, return_index=True, return_counts=True)

    def softmax(values: Any) -> tuple[Any, Any]:
        top = np.maximum.reduceat(values, starts)
        e = np.exp(values - np.repeat(top, sizes))
        total = np.add.reduceat(e, starts)
        return e / np.repeat(total, sizes), top + np.log(total)

    def fit() -> Any:
        rest = X - np.repeat(np.add.reduceat(X, starts) / sizes[:, None], sizes, axis=0)
        spread = np.sqrt((rest**2).mean(0))
        scaled = (X - X.mean(0)) / np.where(spread > 0, spread, 1)
        wanted, n = softmax(y)[0], len(starts)

        def objective(w: Any) -> tuple[float, Any]:
            scores = scaled @ w
            chances, level = softmax(scores)
            value = (level.sum() - wanted @ scores) / n + 0.5 * RIDGE * w @ w
            return value, scaled.T @ (chances - wanted) / n + RIDGE * w

        # the gradient as small as our last Newton step leaves it
        return minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-6, "ftol": 0})

    return fit


def _reached(result: Any, folder: Path) -> float:
    return -float(result.fun) if hasattr(result, "fun") else -float(result.curve_["objective"][-1])


WORKLOAD = Workload(
    name="list_net",
    what="ListNet on one fold of OHSUMED, {n_queries} queries",
    sizes={"tiny": {"n_queries": 5}, "small": {"n_queries": 20}, "full": {"n_queries": 63}},
    prepare=_prepare,
    sides={
        "list_net": Call("crowdrank", _ranker("list_net", ridge=RIDGE), _reached),
        "lbfgs": Call("numpy and scipy", _plain, _reached),
        "paper": Call("crowdrank, the paper's run", _ranker("listnet-paper")),
        "list_mle": Call("crowdrank, ListMLE", _ranker("list_mle")),
        "rank_svm": Call("crowdrank, RankSVM", _ranker("rank_svm")),
    },
    floors=(
        seconds_under("list_net", 0.035),
        no_lower("list_net", "lbfgs", 1e-9),
        faster("list_net", "lbfgs", None),
        seconds_under("list_mle", 0.1),
        seconds_under("rank_svm", 0.3),
    ),
    figure="objective",
)
