"""Two runs query by query: who wins, by how much, and whether that is more than chance; also by slices of queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ..metrics.measures import Measure
from ..metrics.significance import holm, mean_interval, paired_randomisation, paired_t
from ..protocols import Floats

TIE = 1e-9
"""Values that differ by no more than this are tied."""

_MAX_SLICES = 12
_N_PARTS = 4

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("metric", "run", "other"), pl.String),
    **dict.fromkeys(("difference", "p_value", "p_holm", "lower", "upper", "p_t"), pl.Float64),
    **dict.fromkeys(("wins", "losses", "ties", "n_queries"), pl.Int64),
}
"""Columns of a table of paired tests."""


def paired_tests(
    per_query: pl.DataFrame,
    runs: Sequence[str],
    measures: Sequence[Measure],
    baseline: str | None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Return paired tests of every two runs, or of each run and the baseline, on the queries that both have."""
    rows = []
    for measure in measures:
        of_metric = per_query.filter(pl.col("metric") == measure.name)
        tests = []
        for run, other in pairs_of(runs, baseline):
            a, b = _common_values(of_metric, run, other)
            names = {"metric": measure.name, "run": run, "other": other}
            tests.append({**names, **_test(a, b, measure.larger_is_better, level, seed)})
        rows += correct_by_holm(tests)
    return pl.DataFrame(rows, schema=SCHEMA)


def pairs_of(runs: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return the pairs of runs that are tested."""
    if baseline is None:
        return list(combinations(runs, 2))
    return [(run, baseline) for run in runs if run != baseline]


def query_differences(
    per_query: pl.DataFrame, runs: Sequence[str], measures: Sequence[Measure], baseline: str | None
) -> pl.DataFrame:
    """Return metric, run, other, query, value, other_value, difference and outcome (win, loss or tie of the run)."""
    parts = []
    for measure in measures:
        of_metric = per_query.filter(pl.col("metric") == measure.name)
        sign = 1.0 if measure.larger_is_better else -1.0
        for run, other in pairs_of(runs, baseline):
            first = of_metric.filter(pl.col("run") == run).select("metric", "run", "query", "value")
            second = of_metric.filter(pl.col("run") == other).select("query", other_value="value")
            ahead = sign * pl.col("difference")
            outcome = pl.when(ahead > TIE).then(pl.lit("win")).when(ahead < -TIE).then(pl.lit("loss"))
            parts.append(
                first.join(second, on="query", maintain_order="left")
                .with_columns(difference=pl.col("value") - pl.col("other_value"), other=pl.lit(other))
                .filter(pl.col("difference").is_finite())
                .with_columns(outcome=outcome.otherwise(pl.lit("tie")))
            )
    columns = ["metric", "run", "other", "query", "value", "other_value", "difference", "outcome"]
    if not parts:
        numbers = ("value", "other_value", "difference")
        return pl.DataFrame(schema={name: pl.Float64 if name in numbers else pl.String for name in columns})
    return pl.concat(parts).select(columns)


def slice_results(
    per_query: pl.DataFrame,
    slices: pl.DataFrame,
    runs: Sequence[str],
    measures: Sequence[Measure],
    baseline: str | None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Return the tests within each slice of the queries, corrected over the slices of a column.

    ``slices`` has a query column and one column or more that say what slice a query is in. Numbers of many values are
    cut into quarters, and of words of many values the commonest are kept. With one run its mean stands alone.
    """
    tables = []
    for column in slices.columns:
        if column == "query":
            continue
        part_of = pl.DataFrame({"query": slices["query"], "slice": _parts(slices[column])}).drop_nulls()
        joined = per_query.join(part_of, on="query", maintain_order="left")
        names = part_of["slice"].unique(maintain_order=True).sort().to_list()
        rows = [row for name in names for row in _slice_rows(joined, name, runs, measures, baseline, level, seed)]
        corrected: list[dict[str, Any]] = []
        for measure in measures:
            for pair in sorted({(row["run"], row["other"]) for row in rows}, key=str):
                same = [r for r in rows if r["metric"] == measure.name and (r["run"], r["other"]) == pair]
                corrected += correct_by_holm(same)
        tables.append(pl.DataFrame(corrected, schema={"slice": pl.String, "value": pl.Float64,
                                                      "other_value": pl.Float64, **SCHEMA})
                      .with_columns(by=pl.lit(column)))  # fmt: skip
    if not tables:
        return pl.DataFrame(schema={"by": pl.String, "slice": pl.String, **SCHEMA})
    return pl.concat(tables).select("by", "slice", pl.all().exclude("by", "slice"))


def _slice_rows(
    joined: pl.DataFrame, name: str, runs: Sequence[str], measures: Sequence[Measure], baseline: str | None,
    level: float, seed: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """The tests of one slice, before their correction."""
    rows = []
    for measure in measures:
        here = joined.filter((pl.col("slice") == name) & (pl.col("metric") == measure.name))
        if len(runs) == 1:
            values = here["value"].to_numpy()
            lone: dict[str, Any] = {"difference": None, "p_value": None, "p_t": None, "lower": None, "upper": None}
            lone |= {"wins": None, "losses": None, "ties": None, "n_queries": int(np.isfinite(values).sum())}
            rows.append({"slice": name, "metric": measure.name, "run": runs[0], "other": None,
                         "value": mean_of(values), "other_value": None, **lone})  # fmt: skip
        for run, other in pairs_of(runs, baseline):
            a, b = _common_values(here, run, other)
            means = {"value": mean_of(a), "other_value": mean_of(b)}
            names = {"slice": name, "metric": measure.name, "run": run, "other": other}
            rows.append({**names, **means, **_test(a, b, measure.larger_is_better, level, seed)})
    return rows


def _parts(values: pl.Series) -> pl.Series:
    """The slice of each query as text: the words of a column, or the quarters of its numbers."""
    text = values.cast(pl.String)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() == text.null_count() and number.n_unique() > _MAX_SLICES:
        cuts = np.unique(np.quantile(number.drop_nulls().to_numpy(), np.linspace(0, 1, _N_PARTS + 1)))
        places = np.clip(
            np.searchsorted(cuts, number.fill_null(cuts[0]).to_numpy(), side="right") - 1, 0, len(cuts) - 2
        )
        names = [f"{place + 1}: {cuts[place]:g} to {cuts[place + 1]:g}" for place in range(len(cuts) - 1)]
        return pl.Series(names).gather(places).set(number.is_null(), None)
    common = text.drop_nulls().value_counts(sort=True).sort(["count", text.name], descending=[True, False])
    kept = common[text.name].head(_MAX_SLICES - 1 if len(common) > _MAX_SLICES else _MAX_SLICES).to_list()
    others = text.is_not_null() & ~text.is_in(kept)
    return text.set(others, "(others)")


def _common_values(of_metric: pl.DataFrame, run: str, other: str) -> tuple[Floats, Floats]:
    """The values of two runs on the queries that both have."""
    first, second = (of_metric.filter(pl.col("run") == name).select("query", "value") for name in (run, other))
    both = first.join(second, on="query", maintain_order="left")
    a, b = both["value"].to_numpy(), both["value_right"].to_numpy()
    finite = np.isfinite(a) & np.isfinite(b)
    return a[finite], b[finite]


def _test(a: Floats, b: Floats, larger_is_better: bool, level: float, seed: int) -> dict[str, Any]:
    """All that is said of two columns of paired values."""
    difference = a - b
    ahead = difference if larger_is_better else -difference
    several = len(difference) > 1
    lower, upper = mean_interval(difference, level) if several else (None, None)
    return {
        "difference": mean_of(difference), "p_value": paired_randomisation(a, b, seed=seed) if several else None,
        "lower": lower, "upper": upper, "p_t": paired_t(a, b) if several else None,
        "wins": int((ahead > TIE).sum()), "losses": int((ahead < -TIE).sum()),
        "ties": int((np.abs(ahead) <= TIE).sum()), "n_queries": len(difference),
    }  # fmt: skip


def mean_of(values: Floats) -> float | None:
    """Return the mean over the queries that have a value."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def correct_by_holm(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tests with p values after Holm's correction over all of them."""
    tested = [row["p_value"] for row in rows if row["p_value"] is not None]
    adjusted = iter(holm(tested).tolist() if tested else [])
    return [{**row, "p_holm": None if row["p_value"] is None else next(adjusted)} for row in rows]
