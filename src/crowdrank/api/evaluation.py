"""How good a consensus or a run is, against a truth that may be partial, about pairs, or itself uncertain."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..cluster.results import StoredConsensus, is_stored, scan_consensus
from ..data.consensus import Consensus
from ..data.judgments import Grades, Mixed, Preferences, parts_of
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.truth import as_scored, read_slices, read_truth
from ..metrics.measures import Measure, parse
from ..metrics.significance import prediction_powered_mean
from ..protocols import Aggregator, Progress, given_arguments
from ..quality import scores_quietly
from ..registry import label, make, name_for_kind
from ..validation import run_evaluation
from ..validation.method_comparison import CAVEAT, HELD_OUT, LEVEL, PAIRING_CAVEAT, Comparison, Measured
from ..validation.prediction import N_FOLDS, Figure, predict_held_out, split_judgments
from ..validation.run_evaluation import Evaluation, Scored, align, checked_measures, expect_baseline
from ..wording import counted, option
from .aggregation import as_judgments, check_level, methods_for
from .arguments import takes_arguments_of
from .sentences import words_of


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
    scored, files = _runs_by_name(runs, known.items.queries.ids)
    baseline = baseline if baseline is None or baseline in scored else files.get(baseline, baseline)
    expect_baseline(baseline, list(scored), "run")
    evaluation = run_evaluation.measure_runs(
        scored, known, wanted, unjudged=unjudged, all_queries=all_queries, baseline=baseline,
        slices=None if slices is None else read_slices(slices),
        settings=given_arguments(ties=ties, max_grade=max_grade), bounds=bounds, level=level, seed=seed,
    )  # fmt: skip
    for note in evaluation.notes:
        say(note)
    return evaluation


def _scored_runs(run: Any, queries: pl.Series) -> dict[str, Scored]:
    """Runs by their names; of a ranking that stays in Parquet, or of its folder, the queries of the truth."""
    stored = scan_consensus(run) if is_stored(run) else run
    return as_scored(stored.of_queries(queries) if isinstance(stored, StoredConsensus) else stored)


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
    all_verdicts = evaluation.verdicts()
    said: list[str | None] = []
    for row in (one.row for one in all_verdicts[:tests]):
        if row["difference"] is None:
            said.append(f"{row['metric']}: {row['run']} and {row['other']} have no query in common")
            continue
        start = f"{row['metric']}: {row['run']} - {row['other']} = {row['difference']:+.4f}"
        tested = ", too few queries for a test"
        if row["p_holm"] is not None:
            tested = f" ({row['lower']:+.4f} to {row['upper']:+.4f}); {run_evaluation.counts_in_words(row)}; "
            tested += f"p = {row['p_holm']:.3g} after Holm's correction (t: {row['p_t']:.3g})"
        said.append(f"{start}{tested}")
    first = all_verdicts[0] if len(evaluation.runs) == 2 and all_verdicts else None
    if first is not None and first.row["difference"] is not None:
        parts = evaluation.extreme_queries(first.row, queries)
        for words, part in zip(("losses", "gains"), parts, strict=True):
            named = [f"{one['query']} ({one['difference']:+.3f})" for one in part.iter_rows(named=True)]
            of = f"of {first.row['run']} by {first.row['metric']}"
            said += [f"largest {words} {of}: {', '.join(named)}"] if named else []
    said += [sentence for _, sentence in evaluation.slice_sentences()]
    said += [evaluation.unjudged_sentence()] if evaluation.measures else []
    said += [] if first is None else [first.open_sentence]
    return [sentence for sentence in said if sentence is not None]


def _runs_by_name(runs: Any, queries: pl.Series) -> tuple[dict[str, Scored], dict[str, str]]:
    """Runs by name, and the names of those that have a file of their own by that file."""
    if isinstance(runs, Mapping) and not any(word in runs for word in ("item", "score", "rank")):
        return {str(name): next(iter(_scored_runs(run, queries).values())) for name, run in runs.items()}, {}
    several = isinstance(runs, Sequence) and not isinstance(runs, str | os.PathLike)
    listed = list(runs) if several else [runs]
    every_run = []
    for run in listed:
        found = _scored_runs(run, queries)
        # a folder of a ranking that stays in Parquet is one of several runs by its own name
        every_run.append({Path(run).name: one for one in found.values()} if several and is_stored(run) else found)
    number_of = Counter(name for of_file in every_run for name in of_file)
    by_name: dict[str, Scored] = {}
    files: dict[str, str] = {}
    for number, (run, of_file) in enumerate(zip(listed, every_run, strict=True)):
        is_file = isinstance(run, str | os.PathLike) and not is_stored(run)
        for name, scored in of_file.items():
            # two files of the same tag go by the names of the files
            named = Path(run).stem if is_file and number_of[name] > 1 and len(of_file) == 1 else name
            shown = named if named not in by_name else f"{named} ({number + 1})"
            by_name[shown] = scored
            if len(of_file) == 1 and is_file:
                files |= {str(run): shown, Path(run).name: shown}
                files.setdefault(Path(run).stem, shown)
    if not by_name:
        raise ParameterError("there is nothing to evaluate; give a consensus or at least one run")
    return by_name, files


def compare_methods(
    judgments: Any,
    methods: Sequence[str] | Mapping[str, Aggregator] | None = None,
    truth: Any | None = None,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    baseline: str | None = None,
    folds: int = N_FOLDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Return all that :func:`crowdrank.compare` finds: the table, paired tests, and how far orders differ.

    Examples
    --------
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> compare_methods(votes, ["mean_grade", "highest_grade", "borda"]).orders()["tau"].to_list()
    [1.0, 1.0, 1.0]
    """
    measures = check_comparison(methods, metrics, unjudged=unjudged, baseline=baseline)
    known = None if truth is None else read_truth(truth)
    judged = as_judgments(judgments)
    if isinstance(methods, Mapping):
        chosen = dict(methods)
    else:
        baseline = baseline if baseline is None else label("aggregator", baseline)
        names = _names(methods, judged.kind) or methods_for(judged)
        chosen = {name: make("aggregator", name, seed=seed) for name in names}
    if not chosen:
        kinds = " and ".join(f"{part.kind}s" for part in parts_of(judged))
        raise ParameterError(f"no method takes {kinds} as they are")
    expect_baseline(baseline, list(chosen), "method")
    if known is not None:
        # refuse, before any fit, a truth that the measures or the judged items do not fit
        nominal = known.nominal or any(isinstance(part, Grades) and part.nominal for part in parts_of(judged))
        for measure in measures:
            run_evaluation.check_fit(measure, known, nominal)
        align("the judgments", Scored(judged.items, np.zeros(judged.n_items)), known, unjudged, [])
    split = split_judgments(judged, folds, seed) if known is None else None
    # all fits to be made, and those done, of which each method has the same number
    each = 1 if split is None else 1 + split.n_folds
    done, total = 0, len(chosen) * each

    def count_fit(name: str) -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total, name)

    fitted: dict[str, Consensus] = {}
    seconds: dict[str, float] = {}
    for name, method in chosen.items():
        try:
            # whatever a method loads or compiles when it is first used is not its speed
            scores_quietly(method, judged.select(np.arange(min(len(judged), 2))))
            begin = time.perf_counter()
            fitted[name] = method.fit(judged)
            seconds[name] = time.perf_counter() - begin
            count_fit(name)
        except (JudgmentError, ParameterError) as error:
            # only those that nobody named are left out
            if methods:
                raise
            say(f"{name} is left out: {error}")
            total -= each
    if not fitted:
        raise ParameterError(f"none of the methods takes these judgments; name one with {option('methods')} to see why")
    expect_baseline(baseline, list(fitted), "method")
    common: dict[str, Any] = {"fitted": fitted, "seconds": seconds, "baseline": baseline}
    figures: dict[str, dict[str, Figure]] = {}
    if split is None:
        evaluation = evaluate_runs(
            fitted, known, metrics, unjudged=unjudged, all_queries=all_queries, baseline=baseline, level=LEVEL,
            seed=seed, bounds=False,
        )  # fmt: skip
        value = pl.when(pl.col("value").is_finite()).then("value")
        values = evaluation.per_query.select("metric", "run", "query", value)
        for (metric,), table in values.group_by("metric", maintain_order=True):
            wide = table.pivot("run", index="query", values="value", maintain_order=True)
            figures[str(metric)] = {
                run: Figure(wide[run].fill_null(0.0).to_numpy(), wide[run].is_not_null().cast(pl.Float64).to_numpy())
                for run in fitted
                if run in wide.columns and wide[run].null_count() < len(wide)
            }
        of_truth = tuple(Measured(name, name, parse(name).larger_is_better, "truth") for name in figures)
        return Comparison(**common, measures=of_truth, figures=figures, unit="query", evaluation=evaluation)
    say("no truth given: methods are judged on answers held out from them; that shows fit to this crowd, not truth")
    figures = {measure.name: {} for measure in HELD_OUT}
    for name, consensus in fitted.items():
        for metric, figure in predict_held_out(chosen[name], split, consensus, partial(count_fit, name)).items():
            figures[metric][name] = figure
    held_out = tuple(measure for measure in HELD_OUT if figures[measure.name])
    if not held_out:
        raise ParameterError(words_of("no_pairs_held_out"))
    held = {"pairs": len(split.pairs.better), "grades": len(split.judgments)}
    return Comparison(
        **common, measures=held_out, figures=figures, unit=split.unit_name,
        n_held_out={what: held[what] for what in dict.fromkeys(measure.of for measure in held_out)},
        caveats=(CAVEAT,) if split.pairing is None else (PAIRING_CAVEAT, CAVEAT),
    )  # fmt: skip


@takes_arguments_of(compare_methods)
def compare(*args: Any, **given: Any) -> pl.DataFrame:
    """Return a table with a row for each method; :func:`crowdrank.compare_methods` tells more.

    With a truth: the metrics asked for, each with its interval over queries. Without: how well the consensus of four
    fifths of the judgments predicts those of the last fifth, each fifth in turn. ``pair_accuracy`` is the share of
    pairs with unequal answers, both held out, in the right order, ties half; ``log_loss`` that of
    ``sigmoid(c * difference of scores)``, the one scale ``c`` estimated from held-out pairs of the other fifths;
    ``annotator_log_loss`` the same with a scale for each annotator, so those who guess count for little; where
    pairs were chosen by earlier answers, the strength of the opponents is used beside the scores of every method;
    ``grade_accuracy`` and ``grade_log_loss`` are about single grades, for methods that choose among the
    levels. Errors are over annotators. In all cases ``tau_to_first`` is Kendall's tau with the order of the first
    method (``same_as_first`` the share of items in the same class), and ``seconds`` the time of one fit.

    Parameters
    ----------
    judgments
        Judgments, a frame or a path, or a list of them.
    methods
        Names of aggregators, or aggregators by the names to show; ``None`` takes all that fit the kind.
    truth, metrics, unjudged, all_queries
        As for :func:`crowdrank.evaluate`.
    baseline
        Name of the method that the others are tested against, see :meth:`Comparison.tests`.
    folds
        In how many parts judgments are held out, without a truth.
    seed
        Seed of the splits and of the methods.
    progress
        Called after each fit with (fits done, fits in all, method).

    Examples
    --------
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> compare(votes, ["mean_grade", "highest_grade"], truth={"item": ["x", "y"], "grade": [1, 0]})["tau"].to_list()
    [1.0, 1.0]
    """
    return compare_methods(*args, **given).frame()


def check_comparison(
    methods: Sequence[str] | Mapping[str, Aggregator] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    baseline: str | None = None,
) -> list[Measure]:
    """Refuse what :func:`compare` would refuse whatever the judgments are; return the measures asked for."""
    named = _names(methods)
    if baseline is not None:
        own = baseline if isinstance(methods, Mapping) else label("aggregator", baseline)
        expect_baseline(own, named or [own, ""], "method")
    return checked_measures(metrics, unjudged, LEVEL)


def _names(methods: Sequence[str] | Mapping[str, Aggregator] | None, kind: str = "") -> list[str]:
    """The names of the methods that were named, as they mean for a kind of judgment."""
    if isinstance(methods, Mapping):
        return list(methods)
    given = [methods] if isinstance(methods, str) else methods or ()
    return list(dict.fromkeys(label("aggregator", name_for_kind(name, kind)) for name in given))


_FEW_QUERIES = 30
"""Queries that people judged below which the normal interval is too narrow."""


def win_rate(people: Any, judge: Any, a: Any, b: Any, *, level: float = 0.95) -> dict[str, float]:
    r"""Return how often people prefer item ``a`` to item ``b``, with the help of a judge that need not be right.

    The people judged few queries, the judge (a language model, say) these and many more. Where both judged, it is seen
    how far the judge is off, and what the judge says of all queries is corrected by that: prediction-powered inference
    [PPI23]_, which assumes no model of judge or items. The interval holds however bad the judge is, and is narrower
    than that of the people alone where the judge agrees with them.

    All answers of a side about a query are averaged first: both orders, repeats and several people. A tie is half a
    win.

    Parameters
    ----------
    people, judge
        Preferences with queries, or a frame or path of them.
    a, b
        Ids of the items.
    level
        Of the interval.

    Returns
    -------
    dict
        ``share`` with ``lower`` and ``upper``; ``people_share``, ``people_lower``, ``people_upper`` from people alone;
        ``judge_share``, over all queries that the judge judged; ``lam``, how much the judge counts (0 to 1);
        ``n_both`` and ``n_judge``, the queries judged by both and by the judge only.

    Examples
    --------
    >>> rows = [("ann", f"q{i}", "x", "y", "x" if i % 3 else "y") for i in range(30)]
    >>> said = [("bot", f"q{i}", "x", "y", "x" if i % 3 else "y") for i in range(300)]
    >>> import crowdrank as cr
    >>> found = win_rate(cr.Preferences.from_rows(rows), cr.Preferences.from_rows(said), "x", "y")
    >>> round(found["share"], 3), round(found["lam"], 2), found["n_judge"]
    (0.667, 0.9, 270)
    """
    check_level(level, "level")
    if str(a) == str(b):
        raise ParameterError("an item has no win rate against itself; name two items")
    measured, predicted = _shares(people, "people", a, b), _shares(judge, "judge", a, b)
    both = measured.join(predicted, on="query", suffix="_judge").sort("query")
    rest = predicted.join(measured, on="query", how="anti").sort("query")
    if len(both) < 2:
        raise JudgmentError(words_of("few_in_common", queries=counted(len(both), "query"), a=a, b=b))
    if len(measured) > len(both):
        say(f"{counted(len(measured) - len(both), 'query')} that only people judged left out")
    if len(both) < _FEW_QUERIES:
        say(f"only {len(both)} queries were judged by people and judge: the interval is rough below {_FEW_QUERIES}")
    h, f, other = both["share"].to_numpy(), both["share_judge"].to_numpy(), rest["share"].to_numpy()
    joint = prediction_powered_mean(h, f, other, level=level)
    alone = prediction_powered_mean(h, f, other, level=level, lam=0.0)
    shares = {"share": joint.mean, "lower": joint.lower, "upper": joint.upper}
    shares |= {"people_share": alone.mean, "people_lower": alone.lower, "people_upper": alone.upper}
    within = {name: min(max(value, 0.0), 1.0) for name, value in shares.items()}
    within["judge_share"] = float(np.concatenate([f, other]).mean())
    return within | {"lam": joint.lam, "n_both": len(both), "n_judge": len(rest)}


def _shares(judgments: Any, who: str, a: Any, b: Any) -> pl.DataFrame:
    """Mean share of wins of ``a`` against ``b`` in each query: query, share."""
    preferences = as_judgments(judgments)
    if isinstance(preferences, Mixed) or not isinstance(preferences, Preferences):
        raise JudgmentError(f"win_rate takes preferences, and {who} gave {preferences.kind}s; call as_preferences()")
    query = preferences.items.query_ids().gather(preferences.left)
    if preferences.block is not None and preferences.blocks is not None:
        query = preferences.blocks.ids.gather(preferences.block)
    ids, (one, other) = preferences.items.ids.cast(pl.String), (str(a), str(b))
    left, right = ids.gather(preferences.left), ids.gather(preferences.right)
    sign = np.where((left == one) & (right == other), 1, 0) - np.where((left == other) & (right == one), 1, 0)
    share = 0.5 + 0.5 * sign * preferences.outcome
    columns = {"query": query.cast(pl.String), "share": share, "weight": preferences.row_weight}
    table = pl.DataFrame(columns).filter(pl.Series(sign != 0))
    if not len(table):
        raise JudgmentError(f"{who} never compared {a!r} with {b!r}; name two items that were compared")
    mean = (pl.col("share") * pl.col("weight")).sum() / pl.col("weight").sum()
    return table.group_by("query").agg(mean.alias("share"))
