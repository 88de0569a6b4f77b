"""Measures of rankings against a truth, with intervals over queries and paired tests between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ..data.showing import ROWS, Shown, html_table
from ..data.truth import Truth
from ..errors import ParameterError, UnknownNameError
from ..metrics.measures import Measure, parse
from ..metrics.ranking import TIES
from ..metrics.significance import bootstrap_interval
from ..protocols import Floats
from ..wording import did_you_mean, one_of, option
from .alignment import TIES_BY_ID, Aligned, align
from .paired_tests import mean_of, paired_tests, query_differences, slice_results
from .scored_items import Scored
from .unjudged import value_bounds

DEFAULT_METRICS = {
    "grade": ("ndcg@10", "map", "tau"),
    "rank": ("tau", "pair_accuracy"),
    "pairs": ("preference_accuracy",),
}
_MEAN_DRAWS = 20


@dataclass(frozen=True)
class Evaluation(Shown):
    """Measures of one or several rankings.

    Parameters
    ----------
    table
        run, metric, value, lower, upper, n_queries, unjudged (share without truth among the places the metric reads),
        lowest and highest (the mean over queries if the unjudged items were as bad, or as good, as they can be).
    per_query
        run, metric, query, value, unjudged, lowest, highest.
    comparisons
        metric, run, other, difference, p_value, p_holm, lower, upper, p_t, wins, losses, ties, n_queries: paired
        randomisation of every two runs, or of each run and the baseline (``other``), with Holm's correction over the
        tests of a metric, the interval of the difference, and Student's t test; empty for one run.
    differences
        metric, run, other, query, value, other_value, difference, outcome: the same query by query.
    slices
        by, slice, and the columns of ``comparisons``: the tests within slices of the queries, if any were given.
    notes
        What was left out, in words.
    measures
        The measures, in their order.
    baseline
        The run that the others are tested against, if one was named.
    runs
        The runs beside the truth, by name.
    bounded
        Whether it was computed how far unjudged items could move the values.
    """

    table: pl.DataFrame
    per_query: pl.DataFrame
    comparisons: pl.DataFrame
    notes: tuple[str, ...] = ()
    differences: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    slices: pl.DataFrame | None = field(default=None, repr=False)
    measures: tuple[Measure, ...] = field(default=(), repr=False)
    baseline: str | None = None
    runs: Mapping[str, Aligned] = field(default_factory=dict, repr=False)
    bounded: bool = True

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        runs, metrics = (self.table[name].unique(maintain_order=True).to_list() for name in ("run", "metric"))
        against = "" if self.baseline is None else f" against {self.baseline}"
        return f"Evaluation({', '.join(runs)} by {', '.join(metrics)}{against})"

    def _repr_html_(self) -> str:
        """The first measures, for notebooks."""
        return html_table("Evaluation", self.table.head(ROWS), len(self.table), self.notes)

    def frame(self) -> pl.DataFrame:
        """Return the table of measures."""
        return self.table


def measure_runs(
    scored: Mapping[str, Scored],
    known: Truth,
    wanted: Sequence[Measure] = (),
    *,
    unjudged: str = "drop",
    all_queries: bool = False,
    settings: Mapping[str, Any] | None = None,
    baseline: str | None = None,
    slices: pl.DataFrame | None = None,
    bounds: bool = True,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return the measures of runs by name against a truth; without ``wanted`` ones those that fit the truth.

    ``settings`` are parameters of all measures that have them and do not say otherwise.
    """
    nominal = known.nominal or any(run.nominal for run in scored.values())
    notes: list[tuple[str, str]] = []
    measures = wanted or [parse(name) for name in _default_metrics(known, nominal, notes)]
    for parameter, value in (settings or {}).items():
        if not any(measure.takes(parameter) for measure in measures):
            shown = ", ".join(measure.name for measure in measures)
            example = "err@20" if parameter == "max_grade" else "ndcg@10"
            raise ParameterError(
                f"{option(parameter, value)} means nothing to {shown}; measure {example}, or leave it out"
            )
        measures = [
            replace(measure, parameters={parameter: value, **measure.parameters})
            if measure.takes(parameter)
            else measure
            for measure in measures
        ]
    for measure in measures:
        check_fit(measure, known, nominal)
    tables, values, runs = [], [], {}
    for name, run in scored.items():
        runs[name] = aligned = align(name, run, known, unjudged, notes, all_queries=all_queries)
        draws = aligned.plausible_grades(seed)
        for measure in measures:
            row, of_queries = _measure_run(name, measure, aligned, draws, bounds=bounds, level=level, seed=seed)
            tables.append(row)
            values.append(of_queries)
    per_query, names = pl.concat(values), list(scored)
    numbers = ("value", "lower", "upper", "unjudged", "lowest", "highest")
    cut = None
    if slices is not None:
        cut = slice_results(per_query, slices, names, measures, baseline, level=level, seed=seed)
    return Evaluation(
        pl.DataFrame(tables, schema_overrides=dict.fromkeys(numbers, pl.Float64)),
        per_query,
        paired_tests(per_query, names, measures, baseline, level=level, seed=seed),
        _sentences(notes, len(scored)),
        query_differences(per_query, names, measures, baseline),
        cut,
        tuple(measures),
        baseline,
        runs,
        bounds,
    )


def _measure_run(
    name: str, measure: Measure, run: Aligned, draws: list[Floats] | None, *, bounds: bool, level: float, seed: int
) -> tuple[dict[str, Any], pl.DataFrame]:
    """One measure of one run: its row of the table, and its values by query."""
    values, (lower, upper) = _measure_queries(measure, run, draws, level, seed)
    shares, extremes = run.unjudged_shares(measure), value_bounds(run, measure) if bounds else None
    low, high = (None, None) if extremes is None else extremes
    per_query = pl.DataFrame(
        {
            "run": name, "metric": measure.name, "query": run.queries, "value": values, "unjudged": shares,
            "lowest": low, "highest": high,
        },
        schema_overrides=dict.fromkeys(("unjudged", "lowest", "highest"), pl.Float64),
    )  # fmt: skip
    row = {
        "run": name, "metric": measure.name, "value": mean_of(values), "lower": lower, "upper": upper,
        "n_queries": int(np.isfinite(values).sum()), "unjudged": _mean_or_none(shares),
        "lowest": _mean_or_none(low), "highest": _mean_or_none(high),
    }  # fmt: skip
    return row, per_query


def _mean_or_none(values: Floats | None) -> float | None:
    """Mean of values that there may be none of."""
    return None if values is None else mean_of(values)


def checked_measures(
    metrics: Sequence[str] | None, unjudged: str, level: float, ties: str | None = None
) -> list[Measure]:
    """Return the measures asked for, before any work; refuse a rule or a level that is none."""
    if ties is not None:
        one_of(ties, (*TIES, *TIES_BY_ID), "ties")
    if unjudged not in ("drop", "zero"):
        raise ParameterError(f"unjudged={unjudged!r} is neither 'drop' nor 'zero'")
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} is not a probability; give a number between 0 and 1, for example 0.95")
    return [parse(name) for name in ([metrics] if isinstance(metrics, str) else metrics or ())]


def expect_baseline(baseline: str | None, names: Sequence[str], what: str) -> None:
    """Refuse a baseline that is not among the names, or that there is nothing to compare with."""
    if baseline is None:
        return
    if baseline not in names:
        hint = did_you_mean(baseline, names)
        raise UnknownNameError(f"there is no {what} {baseline!r} for a baseline; {hint}known: {', '.join(names)}")
    if len(names) < 2:
        raise ParameterError(f"{baseline!r} is the only {what}, so there is nothing to compare it with; give another")


def _sentences(notes: Sequence[tuple[str, str]], n_runs: int) -> tuple[str, ...]:
    """What was noted of runs, once where it is the same of all."""
    names: dict[str, list[str]] = {}
    for name, text in notes:
        names.setdefault(text, []).append(name)
    every = f"all {n_runs} runs"
    return tuple(
        f"{every if len(of) == n_runs > 1 else ', '.join(of)}: {text}" if any(of) else text
        for text, of in names.items()
    )


def _default_metrics(truth: Truth, nominal: bool, notes: list[tuple[str, str]]) -> tuple[str, ...]:
    """The metrics that fit the truth."""
    if nominal:
        return ("accuracy",)
    if truth.form == "grade" and truth.grade is not None and truth.grade.min(initial=0.0) < 0:
        text = "the truth has negative grades, so only its order counts; ndcg@10(negative=zero) takes them as 0"
        notes.append(("", text))
        return DEFAULT_METRICS["rank"]
    return DEFAULT_METRICS[truth.form]


def check_fit(measure: Measure, truth: Truth, nominal: bool) -> None:
    """Refuse a measure that the truth's form cannot feed."""
    if nominal and measure.needs != "class":
        raise ParameterError(f"metric {measure.name!r} needs an order, but classes have none; use accuracy")
    wants_pairs = measure.needs == "pairs"
    if wants_pairs != (truth.form == "pairs"):
        fitting = "preference_accuracy" if truth.form == "pairs" else "pair_accuracy, tau or ndcg@10"
        about = "pairs" if truth.form == "pairs" else "items"
        raise ParameterError(f"metric {measure.name!r} does not fit a truth about {about}; use {fitting}")
    if truth.form == "rank" and not measure.ranks_suffice:
        raise ParameterError(f"metric {measure.name!r} needs grades and the truth has ranks; use tau or pair_accuracy")


def _measure_queries(
    measure: Measure, aligned: Aligned, draws: list[Floats] | None, level: float, seed: int
) -> tuple[Floats, tuple[float | None, float | None]]:
    """The measure for each query, and the interval of its mean over queries.

    Where the truth is unsure, the value is the mean over plausible truths, and the interval covers them too.
    """
    if draws is None or measure.needs != "grade":
        values = aligned.values(measure)
        drawn_means = values[np.isfinite(values)]
        return values, bootstrap_interval(drawn_means, level, seed=seed) if len(drawn_means) > 1 else (None, None)
    drawn = np.stack([aligned.values(measure, grade) for grade in draws])
    rng = np.random.default_rng(seed)
    n = drawn.shape[1]
    means = [mean_of(row[rng.integers(0, n, n)]) for row in drawn for _ in range(_MEAN_DRAWS)]
    drawn_means = np.array([mean for mean in means if mean is not None])
    counted = np.isfinite(drawn)
    values = np.where(counted, drawn, 0.0).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    values[~counted.any(axis=0)] = np.nan
    if not len(drawn_means):
        return values, (None, None)
    lower, upper = np.quantile(drawn_means, [(1 - level) / 2, (1 + level) / 2])
    return values, (float(lower), float(upper))
