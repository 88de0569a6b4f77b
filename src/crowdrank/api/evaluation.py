"""How good a consensus or a run is, against a truth that may be partial, about pairs, or itself uncertain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..errors import ParameterError
from ..io.notices import say
from ..io.runs import as_scored
from ..io.truth import read_truth
from ..validation.evaluation import Evaluation, checked_measures, expect_baseline, measure_runs
from ..validation.scored_items import Scored


def evaluate(
    consensus: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Return the measures of a consensus against a truth: run, metric, value, lower, upper, n_queries, unjudged.

    Parameters
    ----------
    consensus
        A consensus, a frame of query, item and score, a file of either, a TREC run, or a list or dict of these.
    truth
        Known grades, ranks or winners: a frame, a file, qrels, or a consensus or its file. Where that consensus says
        how sure it is (replicates or probabilities), the value is the mean over plausible truths and the interval
        covers them.
    metrics
        Names such as ``"ndcg@10"``, ``"map"``, ``"rbp@0.95"``, ``"tau"``.
    unjudged
        Items without truth are left out (``"drop"``) or count as grade 0 (``"zero"``).
    all_queries
        By default the mean is over the queries of both sides, as trec_eval has it. True counts queries of the truth
        that are not ranked too, with the worst value (0, but 1 for a distance), as ``trec_eval -c`` does.
    level, seed
        Level of the intervals (over queries), and the seed of their draws.

    Examples
    --------
    >>> scores = {"item": ["x", "y", "z"], "score": [0.9, 0.5, 0.1]}
    >>> evaluate(scores, {"item": ["x", "y", "z"], "grade": [2, 0, 1]}, ["ndcg@10"])["value"].round(4).to_list()
    [0.9639]
    """
    return evaluate_runs(
        consensus, truth, metrics, unjudged=unjudged, all_queries=all_queries, level=level, seed=seed
    ).table


def evaluate_runs(
    runs: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    baseline: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return all that :func:`evaluate` finds: the table, the values per query, and tests between runs.

    ``baseline`` names the run, or its file, that the others are tested against; without it every two are tested.

    Examples
    --------
    >>> truth = {"query": list("aabbcc"), "item": list("xyxyxy"), "grade": [1, 0] * 3}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 3), ("new", [1, 0] * 3))}
    >>> evaluate_runs(runs, truth, ["tau"], baseline="old").comparisons.row(0)
    ('tau', 'new', 'old', 2.0, 0.25, 0.25)
    """
    wanted = checked_measures(metrics, unjudged, level)
    known = read_truth(truth)
    scored, files = _named(runs)
    baseline = baseline if baseline is None or baseline in scored else files.get(baseline, baseline)
    expect_baseline(baseline, list(scored), "run")
    found = measure_runs(
        scored, known, wanted, unjudged=unjudged, all_queries=all_queries, baseline=baseline, level=level, seed=seed
    )
    for note in found.notes:
        say(note)
    return found


def _named(runs: Any) -> tuple[dict[str, Scored], dict[str, str]]:
    """Runs by name, and the names of those that have a file of their own by that file."""
    if isinstance(runs, Mapping) and not any(word in runs for word in ("item", "score", "rank")):
        return {str(name): next(iter(as_scored(run).values())) for name, run in runs.items()}, {}
    listed = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str | os.PathLike) else [runs]
    found: dict[str, Scored] = {}
    files: dict[str, str] = {}
    for number, run in enumerate(listed):
        of_file = as_scored(run)
        for name, scored in of_file.items():
            shown = name if name not in found else f"{name} ({number + 1})"
            found[shown] = scored
            if len(of_file) == 1 and isinstance(run, str | os.PathLike):
                files[str(run)] = shown
    if not found:
        raise ParameterError("there is nothing to evaluate; give a consensus or at least one run")
    return found, files
