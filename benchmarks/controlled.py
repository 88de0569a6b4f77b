"""Control for five covariates of 1M preferences, against logistic regressions of the same design.

arena-rank pins jax and numpy, so it runs in an interpreter of its own, see ``--peer-python``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .workload import Call, Peer, Size, Workload, at_most_times, faster, same

NAMES = ("length", "headers", "bold", "lists", "quotes")
_TRUE = np.array([0.3, 0.1, 0.05, 0.05, -0.1])


def _prepare(folder: Path, size: Size) -> None:
    rng = np.random.default_rng(0)
    n, m = size["n_rows"], size["n_items"]
    scores, habit = rng.normal(0, 0.7, m), rng.normal(0, 0.5, (m, len(NAMES)))
    left = rng.integers(0, m, n)
    right = (left + rng.integers(1, m, n)) % m
    x = habit[left] - habit[right] + rng.normal(0, 1, (n, len(NAMES)))
    x /= np.sqrt((x**2).mean(axis=0))
    won = rng.logistic(size=n) + scores[left] - scores[right] + x @ _TRUE > 0
    np.savez(folder / "rows.npz", left=left, right=right, x=x, won=won, annotator=rng.integers(0, 50, n))


def _preferences(folder: Path) -> Any:
    import crowdrank as cr

    rows = np.load(folder / "rows.npz")
    n = len(rows["left"])
    columns = {name: rows["x"][:, place] for place, name in enumerate(NAMES)}
    table = {
        "query": np.arange(n), "left": rows["left"], "right": rows["right"], "annotator": rows["annotator"],
        "winner": np.where(rows["won"], "left", "right"), **columns,
    }  # fmt: skip
    return cr.Preferences.from_frame(table, covariates=list(NAMES)).across_queries()


def _bradley_terry(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank.aggregators import BradleyTerry

    preferences = _preferences(folder)
    return lambda: BradleyTerry(ridge=1e-3).fit(preferences, control=list(NAMES))


def _latent(control: list[str] | None) -> Callable[[Path, Size], Callable[[], Any]]:
    def prepare(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank.aggregators import LatentScore

        preferences = _preferences(folder)
        return lambda: LatentScore().fit(preferences, control=control)

    return prepare


def _scikit_learn(folder: Path, size: Size) -> Callable[[], Any]:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    rows, m = np.load(folder / "rows.npz"), size["n_items"]
    n = len(rows["left"])
    place = np.repeat(np.arange(n), 2), np.column_stack([rows["left"], rows["right"]]).ravel()
    pairs = csr_matrix((np.tile([1.0, -1.0], n), place), shape=(n, m))
    design = hstack([pairs, csr_matrix(np.column_stack([rows["x"], np.ones(n)]))]).tocsr()
    model = LogisticRegression(C=1000, fit_intercept=False, tol=1e-8, max_iter=1000)
    return lambda: model.fit(design, rows["won"])


def _our_length(consensus: Any, folder: Path) -> float:
    return float(consensus.estimates["control"]["length"]["coefficient"])


def _their_length(model: Any, folder: Path) -> float:
    return float(model.coef_[0][-len(NAMES) - 1])


WORKLOAD = Workload(
    name="controlled",
    what="control for 5 covariates, {n_items:,} items, {n_rows:,} preferences",
    sizes={
        "tiny": {"n_items": 10, "n_rows": 2_000},
        "small": {"n_items": 100, "n_rows": 100_000},
        "full": {"n_items": 300, "n_rows": 1_000_000},
    },
    prepare=_prepare,
    sides={
        "built": Call("crowdrank, bradley_terry", _bradley_terry, _our_length),
        "scikit-learn": Call("scikit-learn, sparse lbfgs", _scikit_learn, _their_length),
        "arena-rank": Peer("arena-rank, reg=1e-15", "arena_rank", "arena-rank"),
        "plain": Call("latent_score without covariates", _latent(None)),
        "annotators": Call("latent_score with 5 covariates per annotator", _latent(list(NAMES))),
    },
    floors=(
        faster("built", "scikit-learn", 8), same("built", "scikit-learn", 1e-3), faster("built", "arena-rank", 10),
        same("built", "arena-rank", 5e-3),
        at_most_times("annotators", "plain", 2.5),
    ),
    figure="coefficient of length",
    needs=("sklearn",),
)  # fmt: skip
