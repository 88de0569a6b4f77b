"""What an evaluation of runs says, in sentences: who is better, how sure that is, and what could overturn it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..wording import counted, percent
from .run_evaluation import Evaluation
from .unjudged import difference_bounds

CLEAR = 0.05
"""Differences with a p value up to this, after correction, are called clear."""


@dataclass(frozen=True)
class Verdict:
    """Two runs by one metric: what was found, and whether it is clear."""

    row: dict[str, Any]
    ahead: bool
    clear: bool
    bounds: tuple[float, float] | None
    """Between which ends the difference lies by what the unjudged items are; ``None`` where all are judged."""

    @property
    def sentence(self) -> str:
        """The finding in words."""
        row = self.row
        pair = f"{row['run']} and {row['other']}"
        if row["difference"] is None:
            return f"{row['metric']}: {pair} have no query in common"
        if row["p_holm"] is None:
            return f"{row['metric']}: {row['run']} - {row['other']} = {row['difference']:+.4f}; too few queries to test"
        if self.clear:
            what = f"{row['run']} is {'better' if self.ahead else 'worse'} than {row['other']} by {row['metric']}"
        else:
            what = f"{pair} are not clearly different by {row['metric']}"
        return (
            f"{what}: {row['difference']:+.4f} ({row['lower']:+.4f} to {row['upper']:+.4f}); {counts_in_words(row)}; "
            f"p = {row['p_holm']:.3g} by randomisation with Holm's correction, {row['p_t']:.3g} by a t test alone"
        )

    @property
    def open_sentence(self) -> str | None:
        """What the unjudged items could change, ``None`` where nothing."""
        if self.bounds is None:
            return None
        low, high = self.bounds
        rest = (
            f"{self.row['run']} - {self.row['other']} lies between {low:+.4f} and {high:+.4f} by {self.row['metric']}"
        )
        could = ", so they could turn the order round; judge them first" if low < 0 < high else ""
        return f"depending on the unjudged items, {rest}{could}"


def counts_in_words(row: dict[str, Any]) -> str:
    """Return wins, losses and ties in words."""
    parts = [
        counted(row["wins"], "win"),
        f"{row['losses']:,} loss{'' if row['losses'] == 1 else 'es'}",
        counted(row["ties"], "tie"),
    ]
    return ", ".join(parts)


def verdicts(evaluation: Evaluation) -> list[Verdict]:
    """Return what was found of each tested pair of runs, metric by metric."""
    larger = {measure.name: measure.larger_is_better for measure in evaluation.measures}
    all_verdicts = []
    for row in evaluation.comparisons.iter_rows(named=True):
        difference = row["difference"] or 0.0
        ahead = (difference > 0) == larger.get(row["metric"], True)
        clear = row["p_holm"] is not None and row["p_holm"] <= CLEAR
        bounds = None
        if evaluation.bounded:
            measure = next(one for one in evaluation.measures if one.name == row["metric"])
            bounds = difference_bounds(evaluation.runs[row["run"]], evaluation.runs[row["other"]], measure)
        all_verdicts.append(Verdict(row, ahead, clear, bounds))
    return all_verdicts


def slice_sentences(evaluation: Evaluation) -> list[tuple[bool, str]]:
    """Return the slices of the first metric with a clear difference: whether the run is ahead, and a sentence."""
    if evaluation.slices is None or not len(evaluation.slices):
        return []
    measure = evaluation.measures[0]
    sentences = []
    for row in evaluation.slices.filter(pl.col("metric") == measure.name).iter_rows(named=True):
        if row["p_holm"] is not None and row["p_holm"] <= CLEAR:
            ahead = (row["difference"] > 0) == measure.larger_is_better
            word = "better" if ahead else "worse"
            sentences.append(
                (
                    ahead,
                    f"where {row['by']} is {row['slice']}, {row['run']} is {word} than {row['other']} by "
                    f"{measure.name}: {row['difference']:+.4f} on {counted(row['n_queries'], 'query')}, "
                    f"p = {row['p_holm']:.3g} over the slices",
                )
            )
    return sentences


def unjudged_sentence(evaluation: Evaluation) -> str | None:
    """Return how much of what the first metric reads is unjudged, ``None`` where all of it is judged."""
    rows = evaluation.table.filter(pl.col("metric") == evaluation.measures[0].name).drop_nulls("unjudged")
    if not len(rows) or not rows["unjudged"].max():
        return None
    depth = evaluation.measures[0].parameters.get("k")
    where = f"in the first {depth} places" if depth else "in all places"
    shares = ", ".join(f"{row['run']} {percent(row['unjudged'])}" for row in rows.iter_rows(named=True))
    return f"unjudged items {where}: {shares}"


def extreme_queries(evaluation: Evaluation, row: dict[str, Any], number: int = 5) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the queries of the largest losses and of the largest gains of a tested pair, the extreme first."""
    keys = [pl.col(name) == row[name] for name in ("metric", "run", "other")]
    of_pair = evaluation.differences.filter(*keys)
    larger = {measure.name: measure.larger_is_better for measure in evaluation.measures}[row["metric"]]
    parts = []
    for outcome, falling in (("loss", not larger), ("win", larger)):
        part = of_pair.filter(pl.col("outcome") == outcome)
        parts.append(part.sort(["difference", "query"], descending=[falling, False]).head(number))
    return parts[0], parts[1]


def items_of_query(evaluation: Evaluation, query: str, names: tuple[str, str], depth: int = 10) -> pl.DataFrame:
    """Return the items that one of two runs has among the first: item, grade, and the rank in each run.

    Examples
    --------
    >>> from crowdrank.api import evaluate_runs
    >>> truth = {"query": list("aabb"), "item": list("xyxy"), "grade": [1, 0] * 2}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 2), ("new", [1, 0] * 2))}
    >>> items_of_query(evaluate_runs(runs, truth), "a", ("new", "old")).rows()
    [('x', 1.0, 1, 2), ('y', 0.0, 2, 1)]
    """
    tables = []
    for name in names:
        aligned = evaluation.runs[name]
        items, places = aligned.run.items, aligned.places()
        here = items.query_ids().cast(pl.String) == query if not items.single else pl.Series([True] * len(items))
        mask = here.to_numpy() & aligned.ranked
        grade = np.where(aligned.judged, aligned.grade, np.nan)
        frame = pl.DataFrame({"item": items.ids.cast(pl.String), "grade": grade, "rank": places + 1})
        tables.append(frame.filter(pl.Series(mask)))
    both = tables[0].join(tables[1], on="item", how="full", coalesce=True)
    both = both.select("item", pl.coalesce("grade", "grade_right").fill_nan(None).alias("grade"), "rank", "rank_right")
    return both.filter((pl.col("rank") <= depth) | (pl.col("rank_right") <= depth)).sort(
        ["rank", "rank_right", "item"], nulls_last=True
    )
