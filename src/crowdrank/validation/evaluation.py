"""Measures of rankings against a truth, with intervals over queries and paired tests between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ..data.showing import ROWS, Shown, html_table
from ..data.truth import Truth
from ..errors import ParameterError, UnknownNameError
from ..metrics.measures import Measure, parse
from ..metrics.significance import bootstrap_interval, holm, paired_randomisation
from ..protocols import Floats
from ..wording import did_you_mean
from .alignment import Aligned, align
from .scored_items import Scored

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
        run, metric, value, lower, upper, n_queries, unjudged (share without truth among the places the metric reads).
    per_query
        run, metric, query, value.
    comparisons
        metric, run, other, difference, p_value, p_holm: paired randomisation of every two runs, or of each run and the
        baseline (``other``), with Holm's correction over the tests of a metric; empty for one run.
    notes
        What was left out, in words.
    """

    table: pl.DataFrame
    per_query: pl.DataFrame
    comparisons: pl.DataFrame
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

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
    baseline: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return the measures of runs by name against a truth; without ``wanted`` ones those that fit the truth."""
    nominal = known.nominal or any(run.nominal for run in scored.values())
    notes: list[tuple[str, str]] = []
    measures = wanted or [parse(name) for name in _default_metrics(known, nominal, notes)]
    for measure in measures:
        check_fit(measure, known, nominal)
    tables, values = [], []
    for name, run in scored.items():
        aligned = align(name, run, known, unjudged, notes, all_queries=all_queries)
        draws = aligned.plausible_grades(seed)
        for measure in measures:
            found, (lower, upper) = _measured(measure, aligned, draws, level, seed)
            values.append(pl.DataFrame({"run": name, "metric": measure.name, "query": aligned.queries, "value": found}))
            tables.append(
                {
                    "run": name, "metric": measure.name, "value": _mean(found), "lower": lower, "upper": upper,
                    "n_queries": int(np.isfinite(found).sum()), "unjudged": aligned.unjudged_share(measure),
                }
            )  # fmt: skip
    per_query = pl.concat(values)
    said = _sentences(notes, len(scored))
    table = pl.DataFrame(tables, schema_overrides={"lower": pl.Float64, "upper": pl.Float64, "unjudged": pl.Float64})
    return Evaluation(table, per_query, _comparisons(per_query, list(scored), measures, baseline, seed), said)


def checked_measures(metrics: Sequence[str] | None, unjudged: str, level: float) -> list[Measure]:
    """Return the measures asked for, before any work; refuse a rule or a level that is none."""
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
        raise ParameterError(f"metric {measure.name!r} is about an order, and classes have none; use accuracy")
    wants_pairs = measure.needs == "pairs"
    if wants_pairs != (truth.form == "pairs"):
        fitting = "preference_accuracy" if truth.form == "pairs" else "pair_accuracy, tau or ndcg@10"
        about = "pairs" if truth.form == "pairs" else "items"
        raise ParameterError(f"metric {measure.name!r} does not fit a truth about {about}; use {fitting}")
    if truth.form == "rank" and not measure.ranks_suffice:
        raise ParameterError(f"metric {measure.name!r} needs grades and the truth has ranks; use tau or pair_accuracy")


def _mean(values: Floats) -> float | None:
    """Mean over the queries that have a value."""
    found = values[np.isfinite(values)]
    return float(found.mean()) if len(found) else None


def _measured(
    measure: Measure, aligned: Aligned, draws: list[Floats] | None, level: float, seed: int
) -> tuple[Floats, tuple[float | None, float | None]]:
    """The measure for each query, and the interval of its mean over queries.

    Where the truth is unsure, the value is the mean over plausible truths, and the interval covers them too.
    """
    if draws is None or measure.needs != "grade":
        values = aligned.values(measure)
        found = values[np.isfinite(values)]
        return values, bootstrap_interval(found, level, seed=seed) if len(found) > 1 else (None, None)
    drawn = np.stack([aligned.values(measure, grade) for grade in draws])
    rng = np.random.default_rng(seed)
    n = drawn.shape[1]
    means = [_mean(row[rng.integers(0, n, n)]) for row in drawn for _ in range(_MEAN_DRAWS)]
    found = np.array([mean for mean in means if mean is not None])
    counted = np.isfinite(drawn)
    values = np.where(counted, drawn, 0.0).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    values[~counted.any(axis=0)] = np.nan
    if not len(found):
        return values, (None, None)
    lower, upper = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return values, (float(lower), float(upper))


def _comparisons(
    per_query: pl.DataFrame, runs: list[str], measures: Sequence[Measure], baseline: str | None, seed: int
) -> pl.DataFrame:
    """Paired tests of every two runs, or of each and the baseline, on the queries that both have."""
    pairs = list(combinations(runs, 2)) if baseline is None else [(run, baseline) for run in runs if run != baseline]
    rows = []
    for measure in measures:
        of_metric = per_query.filter(pl.col("metric") == measure.name)
        tests = []
        for run, other in pairs:
            both = of_metric.filter(pl.col("run") == run).join(of_metric.filter(pl.col("run") == other), on="query")
            a, b = both["value"].to_numpy(), both["value_right"].to_numpy()
            p_value = paired_randomisation(a, b, seed=seed) if np.isfinite(a - b).sum() > 1 else None
            tests.append(
                {"metric": measure.name, "run": run, "other": other, "difference": _mean(a - b), "p_value": p_value}
            )
        rows += corrected(tests)
    numbers = ("difference", "p_value", "p_holm")
    schema: dict[str, Any] = {
        **dict.fromkeys(("metric", "run", "other"), pl.String),
        **dict.fromkeys(numbers, pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema)


def corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tests with p values after Holm's correction over all of them."""
    tested = [row["p_value"] for row in rows if row["p_value"] is not None]
    adjusted = iter(holm(tested).tolist() if tested else [])
    return [{**row, "p_holm": None if row["p_value"] is None else next(adjusted)} for row in rows]
