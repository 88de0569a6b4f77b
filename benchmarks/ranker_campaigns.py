"""Grades bought by several schemes at equal cost over MQ2008, and the ranker that is trained on them in the end.

    python -m benchmarks.ranker_campaigns [--queries 150] [--seeds 5]

Forty annotators, who err in about a quarter of grades, grade training queries of a fold, one fold for each seed; a
``list_mle`` is trained on the mean gains, and measured on the fold's test queries with their true grades.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import crowdrank as cr
from crowdrank.data.proposals import Requests
from crowdrank.schemes import IfGoodK, Information, KOverlap
from crowdrank.schemes.situation import Situation
from crowdrank.simulate import SimulatedCrowd, Trained, campaign
from crowdrank.simulate import normal as _normal


class Blind(Information):
    """The scheme as it is where nobody gives features."""

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        return super().propose(replace(situation, features=None))


SCHEMES = {
    "single": KOverlap(k=1),
    "2-overlap": KOverlap(k=2),
    "if-good-3": IfGoodK(k=3),
    "information, grade": Information(about="grade", least=0),
    "information, gain": Information(about="gain", least=0),
    "information, two grades of each item first": Information(),
    "information, goal ranker": Blind(goal="ranker", least=0),
    "information, goal ranker, with features": Information(goal="ranker", least=0),
}


def play(
    seed: int, n_queries: int, per_item: float, schemes: Mapping[str, Any] = SCHEMES
) -> dict[str, dict[str, float]]:
    """Return what each scheme reaches with the same crowd and money."""
    data = cr.datasets.load("letor-mq2008")
    features, fold = data.features, data.folds[seed % len(data.folds)]
    query = features.items.query_ids().cast(pl.String)
    some = np.random.default_rng(seed).permutation(sorted(fold.train))[:n_queries]
    parts = {}
    for name, chosen in (("train", some), ("test", fold.test)):
        mask = query.is_in(list(chosen)).to_numpy()
        ids = features.items.frame().filter(pl.Series(mask))
        parts[name] = cr.Features.from_arrays(
            ids["query"], ids["item"], features.matrix[mask], grade=features.grade[mask]
        )
    train = parts["train"]
    truth = cr.Truth("grade", train.items, train.grade)
    trained = Trained(cr.rankers.ListMLE(), train, parts["test"])
    reached = {}
    for name, scheme in schemes.items():
        crowd = SimulatedCrowd(_normal(0.75, 0.12, n_annotators=40), truth, seed=seed)
        played = campaign(
            scheme, crowd, truth, per_item * len(train), n_rounds=4, trained=trained, measures=["ndcg@10"], seed=seed,
        )  # fmt: skip
        last = played.curve.row(-1, named=True)
        reached[name] = {"cost": last["cost"], "labels": last["ndcg@10"], "ranker": last["ranker"]}
    return reached


def main() -> None:
    """Print a table of means and spreads over the seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--per-item", type=float, default=1.5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = [play(seed, given.queries, given.per_item) for seed in range(given.seeds)]
    print(f"| {given.queries} queries, {given.per_item:g} grades per item | labels, nDCG@10 | ranker, nDCG@10 |")
    print("| --- | --- | --- |")
    for name in SCHEMES:
        labels, ranker = (np.array([one[name][what] for one in runs]) for what in ("labels", "ranker"))
        spread = [values.std(ddof=1) if len(values) > 1 else 0.0 for values in (labels, ranker)]
        print(f"| {name} | {labels.mean():.3f} ± {spread[0]:.3f} | {ranker.mean():.3f} ± {spread[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
