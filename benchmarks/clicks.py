"""What rankers learn from simulated clicks over MQ2008: plain, freed of position bias, and against graded labels.

    python -m benchmarks.clicks [--impressions 30]

Three features of the items (BM25, a language model, the length of the url) rank what is shown, in turn; users examine
position k with probability 1/k and click an examined item by its grade, with 10 % noise. Each fold's test queries are
measured against the true grades.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import polars as pl

import crowdrank as cr
from crowdrank.simulate import draw_clicks

LOGGERS = (24, 39, 44)
"""Columns of MQ2008 whose rankings are shown: BM25, a language model of the whole page, the length of the url."""


def measure(data: Any, fold: int, n_impressions: int, model: str) -> dict[str, float]:
    """Return nDCG@10 of each way to learn on the test queries of a fold."""
    features, folds = data.features, data.folds[fold]
    query = features.items.query_ids().cast(pl.String)
    train, test = (query.is_in(list(part)).to_numpy() for part in (folds.train, folds.test))
    ids = features.items.frame()
    part = ids.filter(pl.Series(train))
    truth = cr.Truth.from_frame(part.with_columns(grade=pl.Series(features.grade[train])))
    x = cr.Features.from_arrays(part["query"], part["item"], features.matrix[train])
    log = draw_clicks(truth, [x.matrix[:, c] for c in LOGGERS], n_impressions=n_impressions, model=model, seed=fold)
    held = cr.Truth.from_frame(ids.filter(pl.Series(test)).with_columns(grade=pl.Series(features.grade[test])))
    scores = {}
    shown, clicks = log.counts()
    plain = log.items.frame().with_columns(grade=pl.Series(clicks / shown), weight=pl.Series(shown))
    targets = {
        "plain clicks": cr.Grades.from_frame(plain.with_columns(annotator=pl.lit("clicks"))),
        "position bias": cr.fit_clicks(log).grades(),
        "position bias, EM": cr.fit_clicks(log, propensity="em").grades(),
        "cascade": cr.fit_clicks(log, "cascade").grades(),
        "dependent clicks": cr.fit_clicks(log, "dependent_click").grades(),
        "graded labels": cr.Grades.from_frame(truth.frame().with_columns(annotator=pl.lit("truth"))),
    }
    for ranker in ("list_net", "lambda_mart"):
        for name, grades in targets.items():
            trees = {"n_trees": 100, "n_leaves": 8} if ranker == "lambda_mart" else None
            fit = cr.train(grades, x, ranker=ranker, aggregator=None, params=trees)
            scores[f"{ranker}: {name}"] = _ndcg(fit.ranker, features, test, held)
    rows = truth.items.codes_of(log.items, "truth", "log")[log.item]
    by_position = cr.rankers.LambdaMART(n_trees=100, n_leaves=8)
    by_position.fit_clicks(x.matrix[rows], log.clicked, qid=log.impression, position=log.position)
    scores["lambda_mart: raw clicks, LightGBM's position"] = _ndcg(by_position, features, test, held)
    plainly = cr.rankers.LambdaMART(n_trees=100, n_leaves=8)
    plainly.fit(x.matrix[rows], log.clicked.astype(float), qid=log.impression)
    scores["lambda_mart: raw clicks"] = _ndcg(plainly, features, test, held)
    return scores


def _ndcg(ranker: object, features: cr.Features, test: np.ndarray, held: cr.Truth) -> float:
    """nDCG@10 of a ranker on held-out queries."""
    table = features.items.frame().filter(pl.Series(test))
    run = table.with_columns(score=pl.Series(np.asarray(ranker.predict(features.matrix[test]), float)))
    return cr.evaluate(run, held, ["ndcg@10"])["value"].item()


def main() -> None:
    """Print a table of means and spreads over the five folds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--impressions", type=int, default=30)
    parser.add_argument("--model", default="position_bias")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = cr.datasets.load("letor-mq2008")
    folds = [measure(data, fold, given.impressions, given.model) for fold in range(5)]
    print(f"| {given.impressions} impressions a query, clicks by {given.model} | nDCG@10 | spread over folds |")
    print("| --- | --- | --- |")
    for name in folds[0]:
        values = np.array([one[name] for one in folds])
        print(f"| {name} | {values.mean():.3f} | {values.std(ddof=1):.3f} |")


if __name__ == "__main__":
    main()
