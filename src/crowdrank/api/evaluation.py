"""How good a consensus or a run is, against a truth that may be partial, about pairs, or itself uncertain."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..cluster.stored import StoredConsensus, is_stored, scan_consensus
from ..errors import ParameterError
from ..io.notices import say
from ..io.truth import as_scored, read_slices, read_truth
from ..validation.run_evaluation import Evaluation, checked_measures, expect_baseline, measure_runs
from ..validation.run_verdicts import counts_in_words, extreme_queries, slice_sentences, unjudged_sentence, verdicts
from ..validation.scored_items import Scored


def evaluate(
    consensus: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    ties: str | None = None,
    max_grade: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Return the measures of a consensus against a truth: run, metric, value, lower, upper, n_queries, unjudged.

    Two more columns, lowest and highest, are the value if the items without truth were as bad or as good as they can
    be.

    Parameters
    ----------
    consensus
        A consensus, a frame of query, item and score, a file of either, a TREC run, or a list or dict of these. Of
        one that stays in Parquet, the queries of the truth are read.
    truth
        Known grades, ranks or winners: a frame, a file, qrels, or a consensus or its file. Where that consensus says
        how sure it is (replicates or probabilities), the value is the mean over plausible truths and the interval
        covers them.
    metrics
        Names such as ``"ndcg@10"``, ``"map"``, ``"rbp@0.95"``, ``"tau"``.
    unjudged
        Items without truth are left out (``"drop"``) or count as grade 0 (``"zero"``).
    all_queries
        By default the mean is over the queries of both sides, as in trec_eval. True counts queries of the truth
        that are not ranked too, with the worst value (0, but 1 for a distance), as ``trec_eval -c`` does.
    ties
        What equal scores mean: ``"average"`` over their orders (the default), ``"first"``, ``"worst"``, or ``"trec"``
        or ``"gdeval"``, where the last id comes first as in these programs.
    max_grade
        Highest grade of the scale, for ERR and graded RBP; by default that of the truth. gdeval takes 4.
    level, seed
        Level of the intervals (over queries), and the seed of their draws.

    Examples
    --------
    >>> scores = {"item": ["x", "y", "z"], "score": [0.9, 0.5, 0.1]}
    >>> evaluate(scores, {"item": ["x", "y", "z"], "grade": [2, 0, 1]}, ["ndcg@10"])["value"].round(4).to_list()
    [0.9639]
    """
    return evaluate_runs(
        consensus, truth, metrics, unjudged=unjudged, all_queries=all_queries, ties=ties, max_grade=max_grade,
        level=level, seed=seed,
    ).table  # fmt: skip


def evaluate_runs(
    runs: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    ties: str | None = None,
    max_grade: float | None = None,
    baseline: str | None = None,
    slices: Any | None = None,
    bounds: bool = True,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return all that :func:`evaluate` finds: the table, the values per query, and tests between runs.

    Parameters
    ----------
    runs, truth, metrics, unjudged, all_queries, ties, max_grade, level, seed
        As for :func:`evaluate`.
    baseline
        The run, or its file, that the others are tested against; without it every two are tested.
    slices
        A table or file of query and what it is sliced by, such as intent or language; results come within each slice
        too.
    bounds
        Whether to compute how far the items without truth could move each value.

    Examples
    --------
    >>> truth = {"query": list("aabbcc"), "item": list("xyxyxy"), "grade": [1, 0] * 3}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 3), ("new", [1, 0] * 3))}
    >>> found = evaluate_runs(runs, truth, ["ndcg@10"], baseline="old").comparisons.row(0, named=True)
    >>> found["run"], round(found["difference"], 3), found["p_value"], found["wins"], found["losses"]
    ('new', 0.369, 0.25, 3, 0)
    """
    wanted = checked_measures(metrics, unjudged, level, ties)
    known = read_truth(truth)
    runs = _read_stored(runs, known.items.queries.ids)
    scored, files = _runs_by_name(runs)
    baseline = baseline if baseline is None or baseline in scored else files.get(baseline, baseline)
    expect_baseline(baseline, list(scored), "run")
    cut = None if slices is None else read_slices(slices)
    evaluation = measure_runs(
        scored, known, wanted, unjudged=unjudged, all_queries=all_queries, baseline=baseline, slices=cut,
        settings={name: value for name, value in (("ties", ties), ("max_grade", max_grade)) if value is not None},
        bounds=bounds, level=level, seed=seed,
    )  # fmt: skip
    for note in evaluation.notes:
        say(note)
    return evaluation


def _read_stored(runs: Any, queries: pl.Series) -> Any:
    """Runs with the queries of the truth in place of a ranking that stays in Parquet, or of its folder."""
    if isinstance(runs, Mapping):
        stored = any(isinstance(run, StoredConsensus) or is_stored(run) for run in runs.values())
        return {name: _read_stored(run, queries) for name, run in runs.items()} if stored else runs
    if isinstance(runs, list | tuple):
        folders = {Path(run).name: run for run in runs if is_stored(run)}
        rest = [_read_stored(run, queries) for run in runs if not is_stored(run)]
        if not folders:
            return rest
        read = {name: _read_stored(run, queries) for name, run in folders.items()}
        return {**read, **{name: run for run in rest for name, run in as_scored(run).items()}} if rest else read
    if is_stored(runs):
        runs = scan_consensus(runs)
    return runs.of_queries(queries) if isinstance(runs, StoredConsensus) else runs


def describe_evaluation(evaluation: Evaluation, *, tests: int = 12, queries: int = 3) -> list[str]:
    """Return in sentences what an evaluation of several runs found.

    Parameters
    ----------
    evaluation
        What :func:`evaluate_runs` returned.
    tests
        Number of paired tests to describe.
    queries
        Number of queries with the largest losses and gains to name, where two runs are compared.

    Examples
    --------
    >>> truth = {"query": list("aabbcc"), "item": list("xyxyxy"), "grade": [1, 0] * 3}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 3), ("new", [1, 0] * 3))}
    >>> print(describe_evaluation(evaluate_runs(runs, truth, ["ndcg@10"], baseline="old"))[0])
    ndcg@10: new - old = +0.3691 (+0.3691 to +0.3691); 3 wins, 0 losses, 0 ties; p = 0.25 after Holm's correction (t: 0)
    """
    all_verdicts = verdicts(evaluation)
    said = [_test_sentence(one.row) for one in all_verdicts[:tests]]
    if len(evaluation.runs) == 2 and all_verdicts and all_verdicts[0].row["difference"] is not None:
        row = all_verdicts[0].row
        for words, part in zip(("losses", "gains"), extreme_queries(evaluation, row, queries), strict=True):
            named = [f"{one['query']} ({one['difference']:+.3f})" for one in part.iter_rows(named=True)]
            said += [f"largest {words} of {row['run']} by {row['metric']}: {', '.join(named)}"] if named else []
    said += [sentence for _, sentence in slice_sentences(evaluation)]
    unjudged = unjudged_sentence(evaluation) if evaluation.measures else None
    said += [] if unjudged is None else [unjudged]
    if len(evaluation.runs) == 2 and all_verdicts and all_verdicts[0].open_sentence is not None:
        said.append(all_verdicts[0].open_sentence)
    return said


def _test_sentence(row: dict[str, Any]) -> str:
    """A paired test in words."""
    if row["difference"] is None:
        return f"{row['metric']}: {row['run']} and {row['other']} have no query in common"
    start = f"{row['metric']}: {row['run']} - {row['other']} = {row['difference']:+.4f}"
    if row["p_holm"] is None:
        return f"{start}, too few queries for a test"
    return (
        f"{start} ({row['lower']:+.4f} to {row['upper']:+.4f}); {counts_in_words(row)}; "
        f"p = {row['p_holm']:.3g} after Holm's correction (t: {row['p_t']:.3g})"
    )


def _runs_by_name(runs: Any) -> tuple[dict[str, Scored], dict[str, str]]:
    """Runs by name, and the names of those that have a file of their own by that file."""
    if isinstance(runs, Mapping) and not any(word in runs for word in ("item", "score", "rank")):
        return {str(name): next(iter(as_scored(run).values())) for name, run in runs.items()}, {}
    listed = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str | os.PathLike) else [runs]
    every_run = [as_scored(run) for run in listed]
    repeated = {
        name for name, number in Counter(name for of_file in every_run for name in of_file).items() if number > 1
    }
    by_name: dict[str, Scored] = {}
    files: dict[str, str] = {}
    for number, (run, of_file) in enumerate(zip(listed, every_run, strict=True)):
        is_file = isinstance(run, str | os.PathLike)
        for name, scored in of_file.items():
            # two files of the same tag go by the names of the files
            named = Path(run).stem if is_file and name in repeated and len(of_file) == 1 else name
            shown = named if named not in by_name else f"{named} ({number + 1})"
            by_name[shown] = scored
            if len(of_file) == 1 and is_file:
                files |= {str(run): shown, Path(run).name: shown}
                files.setdefault(Path(run).stem, shown)
    if not by_name:
        raise ParameterError("there is nothing to evaluate; give a consensus or at least one run")
    return by_name, files
