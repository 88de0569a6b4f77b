"""How good a consensus or a run is, against a truth that may be partial, about pairs, or itself uncertain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..io.truth import read_truth
from ..metrics.measures import Measure, parse
from ..metrics.significance import bootstrap_interval, holm, paired_randomisation
from ..protocols import Floats
from .scored import Scored, as_scored

DEFAULT_METRICS = {
    "grade": ("ndcg@10", "map", "tau"),
    "rank": ("tau", "pair_accuracy"),
    "pairs": ("preference_accuracy",),
}
N_DRAWS = 200
_MEAN_DRAWS = 20


@dataclass(frozen=True)
class Evaluation:
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
        Known grades, ranks or winners: a frame, a file, qrels, or a consensus. Where that consensus is uncertain
        (replicates or probabilities), the interval includes the uncertainty of the truth.
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
    uncertain = truth if isinstance(truth, Consensus) else None
    measures = [parse(name) for name in metrics or DEFAULT_METRICS[known.form]]
    for measure in measures:
        _check_fit(measure, known)
    scored = _named(runs)
    notes: list[str] = []
    tables, values = [], []
    for name, run in scored.items():
        aligned = _align(name, run, known, unjudged, notes)
        for measure in measures:
            found = aligned.values(measure)
            values.append(pl.DataFrame({"run": name, "metric": measure.name, "query": aligned.queries, "value": found}))
            lower, upper = _interval(measure, aligned, found, uncertain, level, seed)
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


@dataclass(frozen=True)
class _Aligned:
    """A run's items beside their truth, or its pairs."""

    run: Scored
    truth: Truth
    grade: Floats
    """Truth of each of the run's items: NaN where there is none and such items are left out."""
    judged: Any
    """Mask of the run's items whose truth is known."""
    ranked: Any
    """Mask of the rows that the run ranked; the rest are judged items it lacks."""

    @property
    def queries(self) -> pl.Series:
        """Ids of the queries with a value, in the order of the values."""
        return self.run.items.queries.ids.gather(np.unique(self._qid())).cast(pl.String).alias("query")

    def _qid(self) -> Any:
        """Query code of each row that counts."""
        if self.truth.form == "pairs":
            return self.run.items.query[self.truth.align_pairs(self.run.items)[0]]
        return self.run.items.query[np.isfinite(self.grade)]

    def values(self, measure: Measure, grade: Floats | None = None) -> Floats:
        """The measure for each query; ``grade`` may stand for the truth of the judged items."""
        if self.truth.form == "pairs":
            left, right, outcome = self.truth.align_pairs(self.run.items)
            scores = np.column_stack([self.run.scores[left], self.run.scores[right]])
            return measure(outcome, scores, self.run.items.query[left])
        grade = self.grade if grade is None else grade
        use = np.isfinite(self.grade)
        scores = np.where(self.ranked, self.run.scores, -np.inf)
        return measure(grade[use], scores[use], self.run.items.query[use])

    def unjudged_share(self, measure: Measure) -> float | None:
        """Share of items without truth among the first k places of the run, averaged over queries."""
        if self.truth.form == "pairs" or self.judged.all():
            return None if self.truth.form == "pairs" else 0.0
        depth = measure.parameters.get("k")
        items = self.run.items
        order = np.lexsort((-self.run.scores, ~self.ranked, items.query))
        position = np.arange(len(order)) - items.offsets[items.query[order]]
        top = order[self.ranked[order] & (position < depth if depth else True)]
        shares = np.bincount(items.query[top], ~self.judged[top], items.n_queries) / np.maximum(
            np.bincount(items.query[top], minlength=items.n_queries), 1
        )
        return float(shares[np.unique(items.query[np.isfinite(self.grade)])].mean())


def _check_fit(measure: Measure, truth: Truth) -> None:
    """Refuse a measure that the truth's form cannot feed."""
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


def _align(name: str, run: Scored, truth: Truth, unjudged: str, notes: list[str]) -> _Aligned:
    """Put a run beside the truth and note what does not match."""
    if truth.form == "pairs":
        covered = len(truth.align_pairs(run.items)[0])
        if not covered:
            raise JudgmentError(f"{name} and the truth share no pair of items; check that their ids are the same")
        if covered < len(truth):
            notes.append(
                f"{name}: {len(truth) - covered} of {len(truth)} pairs of the truth have an item that is not ranked"
            )
        everything = np.ones(len(run.items), bool)
        return _Aligned(run, truth, np.zeros(len(run.items)), everything, everything)
    if run.retrieved:
        run, ranked = run.with_missing(truth)
    else:
        ranked = np.ones(len(run.items), bool)
    grade = truth.align(run.items)
    judged = np.isfinite(grade)
    if not judged.any():
        raise JudgmentError(f"{name} and the truth share no item; check that their query and item ids are the same")
    n_without = int((~judged).sum())
    if n_without:
        does = "are left out (unjudged='drop')" if unjudged == "drop" else "count as grade 0 (unjudged='zero')"
        notes.append(f"{name}: {n_without} of {len(judged)} items have no truth and {does}")
    if unjudged == "zero":
        in_truth = np.isin(run.items.query, np.unique(run.items.query[judged]))
        grade = np.where(judged, grade, np.where(in_truth, 0.0, np.nan))
    return _Aligned(run, truth, grade, judged, ranked)


def _mean(values: Floats) -> float | None:
    """Mean over the queries that have a value."""
    found = values[np.isfinite(values)]
    return float(found.mean()) if len(found) else None


def _interval(
    measure: Measure, aligned: _Aligned, values: Floats, uncertain: Consensus | None, level: float, seed: int
) -> tuple[float | None, float | None]:
    """Interval of the mean over queries, and over plausible truths where the truth is uncertain."""
    found = values[np.isfinite(values)]
    draws = None if uncertain is None else _plausible_grades(uncertain, aligned, seed)
    if draws is None:
        return bootstrap_interval(found, level, seed=seed) if len(found) > 1 else (None, None)
    rng = np.random.default_rng(seed)
    means = []
    for grade in draws:
        per_query = aligned.values(measure, grade)
        per_query = per_query[np.isfinite(per_query)]
        chosen = rng.integers(0, len(per_query), (_MEAN_DRAWS, len(per_query)))
        means.append(per_query[chosen].mean(axis=1))
    lower, upper = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _plausible_grades(truth: Consensus, aligned: _Aligned, seed: int) -> list[Floats] | None:
    """Grades the items may truly have, drawn from the replicates or probabilities of a consensus."""
    if truth.replicates is None and truth.probabilities is None:
        return None
    query = None if aligned.run.items.single and truth.items.n_queries == 1 else aligned.run.items.query_ids()
    codes = truth.items.codes(query, aligned.run.items.ids)
    known = codes >= 0
    rng = np.random.default_rng(seed)
    if truth.replicates is not None:
        chosen = rng.choice(len(truth.replicates), min(N_DRAWS, len(truth.replicates)), replace=False)
        drawn = [truth.replicates[row].astype(np.float64) for row in chosen]
    else:
        assert truth.probabilities is not None
        assert truth.levels is not None
        numeric = all(isinstance(level, int | float) for level in truth.levels)
        level_values = (
            np.array([float(v) for v in truth.levels]) if numeric else np.arange(len(truth.levels), dtype=float)
        )
        reach = np.cumsum(truth.probabilities, axis=1)
        drawn = [
            level_values[
                np.minimum((rng.random((len(reach), 1)) * reach[:, -1:] > reach).sum(axis=1), len(level_values) - 1)
            ]
            for _ in range(N_DRAWS)
        ]
    return [np.where(known, grades[codes], aligned.grade) for grades in drawn]


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
