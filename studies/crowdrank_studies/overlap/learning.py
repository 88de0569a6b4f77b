"""A ranker trained on what a setting buys, tuned on the validation queries that all settings share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crowdrank.api import train
from crowdrank.data.judgments import Grades
from crowdrank.errors import DataWarning
from crowdrank.metrics import ndcg
from crowdrank.registry import make

from .settings import ALL, TRUTH
from .simulated import Drawn
from .yang_figures import CUTOFFS

NEURAL, TREES = "LambdaRank", "LambdaMART"
SINGLE = "nDCG@3, single judges"
"""Measured by test grades of one annotator each in place of the truth."""

Grid = Mapping[str, Sequence[Mapping[str, Any]]]
"""Ranker -> parameters that are tried."""


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


def learn_best(
    drawn: Callable[[], Drawn], ranker: str, setting: str, tried: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, float]:
    """Return the nDCG on the test queries, in per cent, of what did best on the validation queries."""
    data = drawn()
    features, chosen = data.training_features, ALL.get(setting)
    judged = None if chosen is None else chosen.buy(data.grades)
    if setting == TRUTH:
        features = data.train.features
    best: tuple[float, Any, Mapping[str, Any]] | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for params in tried:
            if chosen is not None and chosen.copies:
                assert judged is not None
                fit = _fit_copies(judged, data, _NAMES[ranker], params, seed)
            else:
                fit = train(
                    judged, features, _NAMES[ranker], None if chosen is None else chosen.aggregator, params=params,
                    validation=data.vali, seed=seed,
                ).ranker  # fmt: skip
            reached = float(fit.curve_["valid"].max())
            best = (reached, fit, params) if best is None or reached > best[0] else best
    assert best is not None
    scores, grade = best[1].predict(data.test), data.test.grade
    assert grade is not None
    query = data.test.items.query
    measured = {f"nDCG@{k}": 100 * float(ndcg(grade, scores, query, k=k)) for k in CUTOFFS}
    measured[SINGLE] = 100 * float(ndcg(data.single, scores, query, k=3))
    return {**measured, "validation": 100 * best[0], "learning rate": float(best[2].get("learning_rate", 0.1))}


def _fit_copies(judged: Grades, data: Drawn, name: str, params: Mapping[str, Any], seed: int) -> Any:
    """A ranker that takes every grade for an item of its own."""
    features, vali = data.training_features, data.vali
    row = features.match(judged)[judged.item]
    ranker = make("ranker", name, params, seed=seed)
    return ranker.fit(
        features.matrix[row], judged.grade, qid=features.items.query[row], sample_weight=judged.weight,
        eval_set=(vali.matrix, vali.grade), eval_qid=vali.items.query,
    )  # fmt: skip
