"""How good a consensus or a run is, against a truth that may be partial, about pairs, or itself uncertain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ..data.showing import ROWS, Shown, html_table
from ..data.truth import Truth
from ..errors import ParameterError
from ..io.notices import say
from ..io.truth import read_truth
from ..metrics.measures import Measure, parse
from ..metrics.significance import bootstrap_interval, holm, paired_randomisation
from ..protocols import Floats
from .alignment import Aligned, align
from .scored import Scored, as_scored

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
        metric, run, other, difference, p_value, p_holm (paired randomisation, Holm over all pairs); empty for one run.
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


def evaluate(
    consensus: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
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
    level, seed
        Level of the intervals (over queries), and the seed of their draws.

    Examples
    --------
    >>> scores = {"item": ["x", "y", "z"], "score": [0.9, 0.5, 0.1]}
    >>> evaluate(scores, {"item": ["x", "y", "z"], "grade": [2, 0, 1]}, ["ndcg@10"])["value"].round(4).to_list()
    [0.9639]
    """
    return evaluate_runs(consensus, truth, metrics, unjudged=unjudged, level=level, seed=seed).table


def evaluate_runs(
    runs: Any,
    truth: Any,
    metrics: Sequence[str] | None = None,
    *,
    unjudged: str = "drop",
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Return all that :func:`evaluate` finds: the table, the values per query, and tests between runs."""
    if unjudged not in ("drop", "zero"):
        raise ParameterError(f"unjudged={unjudged!r} is neither 'drop' nor 'zero'")
    known = read_truth(truth)
    scored = _named(runs)
    nominal = known.nominal or any(run.nominal for run in scored.values())
    notes: list[str] = []
    wanted = [metrics] if isinstance(metrics, str) else metrics
    measures = [parse(name) for name in wanted or _default_metrics(known, nominal, notes)]
    for measure in measures:
        _check_fit(measure, known, nominal)
    tables, values = [], []
    for name, run in scored.items():
        aligned = align(name, run, known, unjudged, notes)
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
    for note in notes:
        say(note)
    table = pl.DataFrame(tables, schema_overrides={"lower": pl.Float64, "upper": pl.Float64, "unjudged": pl.Float64})
    return Evaluation(table, per_query, _comparisons(per_query, list(scored), measures, seed), tuple(notes))


def _default_metrics(truth: Truth, nominal: bool, notes: list[str]) -> tuple[str, ...]:
    """The metrics that fit the truth."""
    if nominal:
        return ("accuracy",)
    if truth.form == "grade" and truth.grade is not None and truth.grade.min(initial=0.0) < 0:
        notes.append("the truth has negative grades, so only its order counts; ndcg@10(negative=zero) takes them as 0")
        return DEFAULT_METRICS["rank"]
    return DEFAULT_METRICS[truth.form]


def _check_fit(measure: Measure, truth: Truth, nominal: bool) -> None:
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


def _named(runs: Any) -> dict[str, Scored]:
    """Runs by name."""
    if isinstance(runs, Mapping) and not any(word in runs for word in ("item", "score", "rank")):
        return {str(name): next(iter(as_scored(run).values())) for name, run in runs.items()}
    listed = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str | os.PathLike) else [runs]
    found: dict[str, Scored] = {}
    for number, run in enumerate(listed):
        for name, scored in as_scored(run).items():
            found[name if name not in found else f"{name} ({number + 1})"] = scored
    if not found:
        raise ParameterError("there is nothing to evaluate; give a consensus or at least one run")
    return found


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


def _comparisons(per_query: pl.DataFrame, runs: list[str], measures: list[Measure], seed: int) -> pl.DataFrame:
    """Paired tests between every two runs, on the queries that both have."""
    rows = []
    for measure in measures:
        of_metric = per_query.filter(pl.col("metric") == measure.name)
        for run, other in combinations(runs, 2):
            both = of_metric.filter(pl.col("run") == run).join(of_metric.filter(pl.col("run") == other), on="query")
            a, b = both["value"].to_numpy(), both["value_right"].to_numpy()
            difference = _mean(a - b)
            p_value = paired_randomisation(a, b, seed=seed) if len(a) > 1 else None
            rows.append(
                {"metric": measure.name, "run": run, "other": other, "difference": difference, "p_value": p_value}
            )
    schema = {
        "metric": pl.String,
        "run": pl.String,
        "other": pl.String,
        "difference": pl.Float64,
        "p_value": pl.Float64,
    }
    table = pl.DataFrame(rows, schema=schema)
    tested = table["p_value"].is_not_null().to_numpy()
    adjusted = np.full(len(table), np.nan)
    if tested.any():
        adjusted[tested] = holm(table["p_value"].drop_nulls().to_numpy())
    return table.with_columns(p_holm=pl.Series(adjusted, dtype=pl.Float64).fill_nan(None))
