"""A ranker trained on what a setting buys, tuned on the validation queries that all settings share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ...api import train
from ...errors import DataWarning
from ...metrics import ndcg
from .printed import CUTOFFS
from .settings import ALL, TRUTH
from .simulated import Drawn

NEURAL, TREES = "LambdaRank", "LambdaMART"

Grid = Mapping[str, Sequence[Mapping[str, Any]]]
"""Ranker -> parameters that are tried."""


def has_torch() -> bool:
    """Return whether the network can be trained."""
    return find_spec("torch") is not None


def grid(scope: str) -> Grid:
    """Return what is tried for each setting; the number of epochs, or of trees, is chosen besides."""
    trees = {"n_trees": 300, "patience": 40, "n_leaves": 15, "min_leaf": 30, "k": 3, "n_threads": 1}
    rates = {"quick": (0.02,), "default": (0.003, 0.01, 0.03), "full": (0.001, 0.003, 0.01, 0.03)}[scope]
    network = {"n_hidden": 10, "n_epochs": 3 if scope == "quick" else 40, "patience": 12, "batch": 20, "k": 3}
    return {
        NEURAL: [{**network, "learning_rate": rate} for rate in rates],
        TREES: [{**trees, "n_trees": 15} if scope == "quick" else trees],
    }


_NAMES = {NEURAL: "lambda_rank", TREES: "lambda_mart"}


@contextmanager
def _one_thread(ranker: str) -> Iterator[None]:
    """Train a network on one core: sums in another order would round otherwise, and forty epochs magnify that."""
    if ranker != NEURAL:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def learned(
    drawn: Callable[[], Drawn], ranker: str, setting: str, tried: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, float]:
    """Return the nDCG on the test queries, in per cent, of what did best on the validation queries."""
    data = drawn()
    features, chosen = data.described, ALL.get(setting)
    judged = None if chosen is None else chosen.bought(data.grades)
    if setting == TRUTH:
        features = data.train.features
    best: tuple[float, Any, Mapping[str, Any]] | None = None
    with warnings.catch_warnings(), _one_thread(ranker):
        warnings.simplefilter("ignore", DataWarning)
        for params in tried:
            fit = train(
                judged, features, _NAMES[ranker], None if chosen is None else chosen.aggregator, params=params,
                validation=data.vali, seed=seed,
            ).ranker  # fmt: skip
            reached = float(fit.curve_["valid"].max())
            best = (reached, fit, params) if best is None or reached > best[0] else best
    assert best is not None
    scores, grade = best[1].predict(data.test), data.test.grade
    assert grade is not None
    found = {
        f"nDCG@{k}": 100 * float(ndcg(grade, scores, data.test.items.query, k=k)) for k in CUTOFFS
    }  # fmt: skip
    return {**found, "validation": 100 * best[0], "learning rate": float(best[2].get("learning_rate", 0.1))}
