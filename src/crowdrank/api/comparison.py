"""Several methods on the same judgments, against a truth or against judgments they have not seen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments, Mixed, parts_of
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.truth import read_truth
from ..metrics.measures import Measure, parse
from ..protocols import Aggregator, Progress
from ..quality import scores_quietly
from ..registry import label, make
from ..validation.alignment import align
from ..validation.method_comparison import CAVEAT, HELD_OUT, LEVEL, PAIRING_CAVEAT, Comparison, Measured
from ..validation.prediction import Figure, predict_held_out
from ..validation.run_evaluation import Evaluation, check_fit, checked_measures, expect_baseline
from ..validation.scored_items import Scored
from ..validation.splits import N_FOLDS, Split, split_judgments
from ..wording import option
from .aggregation import as_judgments, display_names, methods_for
from .evaluation import evaluate_runs


def compare(
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
) -> pl.DataFrame:
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
    return compare_methods(
        judgments, methods, truth, metrics, unjudged=unjudged, all_queries=all_queries, baseline=baseline, folds=folds,
        seed=seed, progress=progress,
    ).frame()  # fmt: skip


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
    chosen = _aggregators_to_compare(judged, methods, seed)
    if not chosen:
        kinds = " and ".join(f"{part.kind}s" for part in parts_of(judged))
        raise ParameterError(f"no method takes {kinds} as they are")
    if baseline is not None and not isinstance(methods, Mapping):
        baseline = label("aggregator", baseline)
    expect_baseline(baseline, list(chosen), "method")
    if known is not None:
        _check_truth(judged, known, measures, unjudged)
    split = split_judgments(judged, folds, seed) if known is None else None
    steps = _Steps(len(chosen), 1 if split is None else 1 + split.n_folds, progress)
    fitted, seconds = _fits(chosen, judged, steps, skip=not methods)
    chosen = {name: method for name, method in chosen.items() if name in fitted}
    expect_baseline(baseline, list(chosen), "method")
    if split is None:
        evaluation = evaluate_runs(
            fitted, known, metrics, unjudged=unjudged, all_queries=all_queries, baseline=baseline, level=LEVEL,
            seed=seed, bounds=False,
        )  # fmt: skip
        return _against_truth(fitted, seconds, evaluation, baseline)
    say("no truth given: methods are judged on answers held out from them; that shows fit to this crowd, not truth")
    return replace(_held_out_comparison(chosen, split, fitted, seconds, steps), baseline=baseline)


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


def _names(methods: Sequence[str] | Mapping[str, Aggregator] | None) -> list[str]:
    """The names of the methods that were named."""
    if isinstance(methods, Mapping):
        return list(methods)
    return display_names([methods] if isinstance(methods, str) else list(methods or ()))


def _check_truth(judgments: Judgments | Mixed, truth: Truth, measures: Sequence[Measure], unjudged: str) -> None:
    """Refuse, before any fit, a truth that the measures or the judged items do not fit."""
    nominal = truth.nominal or any(isinstance(part, Grades) and part.nominal for part in parts_of(judgments))
    for measure in measures:
        check_fit(measure, truth, nominal)
    align("the judgments", Scored(judgments.items, np.zeros(judgments.n_items)), truth, unjudged, [])


class _Steps:
    """Counts fits, and tells how many are done; each method has the same number of them."""

    def __init__(self, n_methods: int, each: int, progress: Progress | None) -> None:
        self.number, self.total, self.each, self.progress = 0, n_methods * each, each, progress

    def count_fit(self, name: str) -> None:
        """Count one fit of a method."""
        self.number += 1
        if self.progress:
            self.progress(self.number, self.total, name)

    def leave_out(self) -> None:
        """Count on one method less."""
        self.total -= self.each


def _aggregators_to_compare(
    judgments: Judgments | Mixed, methods: Sequence[str] | Mapping[str, Aggregator] | None, seed: int
) -> dict[str, Aggregator]:
    """The aggregators to compare, by name."""
    if isinstance(methods, Mapping):
        return dict(methods)
    names = _names(methods) or methods_for(judgments)
    return {name: make("aggregator", name, seed=seed) for name in names}


def _fits(
    methods: Mapping[str, Aggregator], judgments: Judgments | Mixed, steps: _Steps, *, skip: bool
) -> tuple[dict[str, Consensus], dict[str, float]]:
    """The consensus of all judgments by each method, and how long it took.

    Where nobody named the methods, ``skip`` leaves those out that do not take such judgments, and says why.
    """
    fitted: dict[str, Consensus] = {}
    seconds: dict[str, float] = {}
    for name, method in methods.items():
        try:
            # whatever a method loads or compiles when it is first used is not its speed
            scores_quietly(method, judgments.select(np.arange(min(len(judgments), 2))))
            begin = time.perf_counter()
            fitted[name] = method.fit(judgments)
            seconds[name] = time.perf_counter() - begin
            steps.count_fit(name)
        except (JudgmentError, ParameterError) as error:
            if not skip:
                raise
            say(f"{name} is left out: {error}")
            steps.leave_out()
    if not fitted:
        raise ParameterError(f"none of the methods takes these judgments; name one with {option('methods')} to see why")
    return fitted, seconds


def _held_out_comparison(
    methods: Mapping[str, Aggregator],
    split: Split,
    fitted: dict[str, Consensus],
    seconds: dict[str, float],
    steps: _Steps,
) -> Comparison:
    """The comparison by judgments held out from each fit."""
    figures: dict[str, dict[str, Figure]] = {measure.name: {} for measure in HELD_OUT}
    for name, method in methods.items():
        for measure, figure in predict_held_out(method, split, fitted[name], partial(steps.count_fit, name)).items():
            figures[measure][name] = figure
    measures = tuple(measure for measure in HELD_OUT if figures[measure.name])
    if not measures:
        raise ParameterError(
            "the judgments held out put no two items in order, so nothing can be measured by them; give a truth, "
            "or more judgments"
        )
    held = {"pairs": len(split.pairs.better), "grades": len(split.judgments)}
    counts = {what: held[what] for what in dict.fromkeys(measure.of for measure in measures)}
    return Comparison(
        fitted=fitted, seconds=seconds, measures=measures, figures=figures, unit=split.unit_name, n_held_out=counts,
        caveats=(CAVEAT,) if split.pairing is None else (PAIRING_CAVEAT, CAVEAT),
    )  # fmt: skip


def _against_truth(
    fitted: dict[str, Consensus], seconds: dict[str, float], evaluation: Evaluation, baseline: str | None
) -> Comparison:
    """The comparison by what is known."""
    names = evaluation.table["metric"].unique(maintain_order=True).to_list()
    figures: dict[str, dict[str, Figure]] = {}
    for name in names:
        wide = (
            evaluation.per_query.filter(pl.col("metric") == name)
            .pivot("run", index="query", values="value", maintain_order=True)
            .fill_null(float("nan"))
        )
        columns = {run: wide[run].to_numpy() for run in fitted if run in wide.columns}
        figures[name] = {
            run: Figure(np.where(np.isfinite(values), values, 0.0), np.isfinite(values).astype(np.float64))
            for run, values in columns.items()
            if np.isfinite(values).any()
        }
    measures = tuple(Measured(name, name, parse(name).larger_is_better, "truth") for name in names)
    return Comparison(
        fitted=fitted, seconds=seconds, measures=measures, figures=figures, unit="query", evaluation=evaluation,
        baseline=baseline,
    )  # fmt: skip
