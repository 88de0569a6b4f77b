"""A user's program, checked by mypy as strictly as the package: the public names have types."""

from typing import Any

import polars as pl

import crowdrank as cr


def use(path: str) -> None:
    """Call the verbs."""
    votes = cr.Grades.from_frame({"item": ["x", "y"], "annotator": ["a", "a"], "grade": [2, 1]})
    consensus: cr.Consensus = cr.aggregate(votes, method="mean_grade", seed=0)
    frame: pl.DataFrame = consensus.frame()
    order: list[Any] = consensus.order()
    sure: float = consensus.beats("x", "y")
    quality: cr.Quality | None = consensus.quality
    table: pl.DataFrame = cr.evaluate(consensus, {"item": ["x", "y"], "grade": [1, 0]}, metrics=["tau"])
    comparison: cr.Comparison = cr.compare_methods(votes, methods=["mean_grade", "borda"])
    requests: pl.DataFrame = cr.propose(votes, scheme="k-overlap", budget=1)
    advice: cr.Actions = cr.actions(consensus, votes)
    value = float(cr.metrics.ndcg([1, 0], [0.4, 0.2]))
    read: cr.Truth = cr.read_truth(path)
