"""Measures of rankings against a truth, with intervals over queries and paired tests between runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl

from ..data.showing import ROWS, Shown, html_table
from ..data.truth import Truth
from ..errors import ParameterError, UnknownNameError
from ..metrics.measures import Measure, parse
from ..metrics.ranking import TIES
from ..metrics.significance import bootstrap_interval, holm, mean_interval, paired_randomisation, paired_t
from ..protocols import Floats
from ..wording import counted, did_you_mean, one_of, option, percent
from .alignment import TIES_BY_ID, Aligned, Scored, align, difference_bounds, value_bounds

_DEFAULT_METRICS = {
    "grade": ("ndcg@10", "map", "tau"), "rank": ("tau", "pair_accuracy"), "pairs": ("preference_accuracy",),
    "class": ("accuracy",),
}  # fmt: skip
"""Form of a truth -> the metrics that fit it."""
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
    measures = list(wanted)
    if not measures:
        form = "class" if nominal else known.form
        if form == "grade" and known.grade is not None and known.grade.min(initial=0.0) < 0:
            text = "the truth has negative grades, so only its order counts; ndcg@10(negative=zero) takes them as 0"
            notes.append(("", text))
            form = "rank"
        measures = [parse(name) for name in _DEFAULT_METRICS[form]]
    for parameter, value in (settings or {}).items():
        if not any(measure.takes(parameter) for measure in measures):
            odd = f"{option(parameter, value)} means nothing to {', '.join(measure.name for measure in measures)}"
            example = "err@20" if parameter == "max_grade" else "ndcg@10"
            raise ParameterError(f"{odd}; measure {example}, or leave it out")
        for place, measure in enumerate(measures):
            if measure.takes(parameter):
                measures[place] = replace(measure, parameters={parameter: value, **measure.parameters})
    for measure in measures:
        check_fit(measure, known, nominal)
    tables, values, runs = [], [], {}
    for name, run in scored.items():
        runs[name] = aligned = align(name, run, known, unjudged, notes, all_queries=all_queries)
        draws = aligned.plausible_grades(seed)
        for measure in measures:
            own, (lower, upper) = _measure_queries(measure, aligned, draws, level, seed)
            low, high = (value_bounds(aligned, measure) if bounds else None) or (None, None)
            spread = {"unjudged": aligned.unjudged_shares(measure), "lowest": low, "highest": high}
            what = {"run": name, "metric": measure.name}
            columns = {**what, "query": aligned.queries, "value": own, **spread}
            values.append(pl.DataFrame(columns, schema_overrides=dict.fromkeys(spread, pl.Float64)))
            means = {"value": mean_of(own), "lower": lower, "upper": upper, "n_queries": int(np.isfinite(own).sum())}
            tables.append({**what, **means, **{part: mean_of(each) for part, each in spread.items()}})
    per_query = pl.concat(values)
    numbers = ("value", "lower", "upper", "unjudged", "lowest", "highest")
    pairs = _pairs_of(scored, baseline)
    # metric, run, other, query, value, other_value, difference and outcome, on the queries that both runs have
    compared = [(measure.name, *pair, measure.larger_is_better) for measure in measures for pair in pairs]
    schema: dict[str, Any] = {**dict.fromkeys(("metric", "run", "other"), pl.String), "larger": pl.Boolean}
    first = per_query.select("metric", "run", "query", "value")
    second = first.rename({"run": "other", "value": "other_value"})
    both = pl.DataFrame(compared, schema=schema, orient="row")
    both = both.join(first, on=["metric", "run"], maintain_order="left_right")
    both = both.join(second, on=["metric", "other", "query"], maintain_order="left")
    both = both.with_columns(difference=pl.col("value") - pl.col("other_value"))
    ahead = pl.when("larger").then("difference").otherwise(-pl.col("difference"))
    outcome = pl.when(ahead > TIE).then(pl.lit("win")).when(ahead < -TIE).then(pl.lit("loss")).otherwise(pl.lit("tie"))
    differences = both.filter(pl.col("difference").is_finite()).with_columns(outcome=outcome).drop("larger")
    tests = _correct_by(_tests(differences, pairs, measures, level, seed), "metric")
    # what was noted of runs, once where it is the same of all
    names: dict[str, list[str]] = {}
    for name, text in notes:
        names.setdefault(text, []).append(name)
    every = f"all {len(scored)} runs"
    whose = {text: every if len(of) == len(scored) > 1 else ", ".join(of) for text, of in names.items()}
    table = pl.DataFrame(tables, schema_overrides=dict.fromkeys(numbers, pl.Float64))
    comparisons = pl.DataFrame([{name: row[name] for name in SCHEMA} for row in tests], schema=SCHEMA)
    said = tuple(f"{of}: {text}" if of else text for text, of in whose.items())
    about: dict[str, Any] = {"baseline": baseline, "runs": runs, "bounded": bounds}
    evaluation = Evaluation(table, per_query, comparisons, said, differences, measures=tuple(measures), **about)
    return evaluation if slices is None else replace(evaluation, slices=_slice_results(evaluation, slices, level, seed))


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


def check_fit(measure: Measure, truth: Truth, nominal: bool) -> None:
    """Refuse a measure that the truth's form cannot feed."""
    if nominal and measure.needs != "class":
        raise ParameterError(f"metric {measure.name!r} needs an order, but classes have none; use accuracy")
    about_pairs = truth.form == "pairs"
    if about_pairs != (measure.needs == "pairs"):
        about, fits = ("pairs", "preference_accuracy") if about_pairs else ("items", "pair_accuracy, tau or ndcg@10")
        raise ParameterError(f"metric {measure.name!r} does not fit a truth about {about}; use {fits}")
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
    drawn, rng = np.stack([aligned.values(measure, grade) for grade in draws]), np.random.default_rng(seed)
    n = drawn.shape[1]
    means = [mean_of(row[rng.integers(0, n, n)]) for row in drawn for _ in range(_MEAN_DRAWS)]
    drawn_means = np.array([mean for mean in means if mean is not None])
    counted = np.isfinite(drawn)
    values = np.where(counted, drawn, 0.0).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    values[~counted.any(axis=0)] = np.nan
    if not len(drawn_means):
        return values, (None, None)
    lower, upper = map(float, np.quantile(drawn_means, [(1 - level) / 2, (1 + level) / 2]))
    return values, (lower, upper)


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


def _pairs_of(runs: Iterable[str], baseline: str | None) -> list[tuple[str, str]]:
    """Pairs of runs that are tested: every two, or each and the baseline."""
    return list(combinations(runs, 2)) if baseline is None else [(run, baseline) for run in runs if run != baseline]


def _tests(
    differences: pl.DataFrame, pairs: Sequence[tuple[str, str]], measures: Sequence[Measure], level: float, seed: int
) -> list[dict[str, Any]]:
    """Paired tests of all pairs of runs by all measures, before their correction, with the means of both."""
    rows = []
    parts = differences.partition_by("metric", "run", "other", as_dict=True)
    for key in ((measure.name, *pair) for measure in measures for pair in pairs):
        part = parts.get(key, differences.clear())
        a, b, difference = (part[name].to_numpy() for name in ("value", "other_value", "difference"))
        row: dict[str, Any] = dict(zip(("metric", "run", "other"), key, strict=True))
        row |= {"value": mean_of(a), "other_value": mean_of(b), "difference": mean_of(difference)}
        row |= dict.fromkeys(("p_value", "lower", "upper", "p_t"))
        if len(part) > 1:
            row["p_value"], row["p_t"] = paired_randomisation(a, b, seed=seed), paired_t(a, b)
            row["lower"], row["upper"] = mean_interval(difference, level)
        words = {"wins": "win", "losses": "loss", "ties": "tie"}
        row |= {name: int((part["outcome"] == word).sum()) for name, word in words.items()}
        rows.append(row | {"n_queries": len(part)})
    return rows


def _slice_results(evaluation: Evaluation, slices: pl.DataFrame, level: float, seed: int) -> pl.DataFrame:
    """The tests within each slice of the queries, corrected over the slices of a column.

    ``slices`` has a query column and one column or more that say what slice a query is in. Numbers of many values are
    cut into quarters, and of words of many values the commonest are kept. With one run its mean stands alone.
    """
    names, measures = list(evaluation.runs), evaluation.measures
    pairs, place = _pairs_of(names, evaluation.baseline), [measure.name for measure in measures]
    schema = {"slice": pl.String, "value": pl.Float64, "other_value": pl.Float64, **SCHEMA}
    tables = [pl.DataFrame(schema={"by": pl.String, **schema})]
    for column in slices.drop("query").columns:
        part_of = pl.DataFrame({"query": slices["query"], "slice": _parts(slices[column])}).drop_nulls()
        frames = (evaluation.per_query, evaluation.differences)
        values, gaps = (frame.join(part_of, on="query", maintain_order="left") for frame in frames)
        rows: list[dict[str, Any]] = []
        for name in part_of["slice"].unique(maintain_order=True).sort():
            tests = _tests(gaps.filter(pl.col("slice") == name), pairs, measures, level, seed)
            rows += [{"slice": name, **row} for row in tests]
            for measure in measures if len(names) == 1 else ():
                own = values.filter(pl.col("slice") == name, pl.col("metric") == measure.name)["value"].to_numpy()
                lone = {"slice": name, "metric": measure.name, "run": names[0], "value": mean_of(own)}
                rows.append({**dict.fromkeys(SCHEMA), **lone, "n_queries": int(np.isfinite(own).sum())})
        rows.sort(key=lambda row: (place.index(row["metric"]), str((row["run"], row["other"]))))
        corrected = _correct_by(rows, "metric", "run", "other")
        tables.append(pl.DataFrame(corrected, schema=schema).select(pl.lit(column).alias("by"), pl.all()))
    return pl.concat(tables)


def _parts(values: pl.Series) -> pl.Series:
    """The slice of each query as text: the words of a column, or the quarters of its numbers."""
    text = values.cast(pl.String)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() == text.null_count() and number.n_unique() > _MAX_SLICES:
        cuts = np.unique(np.quantile(number.drop_nulls().to_numpy(), np.linspace(0, 1, _N_PARTS + 1)))
        places = np.searchsorted(cuts[1:-1], number.fill_null(cuts[0]).to_numpy(), side="right")
        names = [f"{place}: {low:g} to {high:g}" for place, (low, high) in enumerate(pairwise(cuts), 1)]
        return pl.Series(names).gather(places).set(number.is_null(), None)
    common = text.drop_nulls().value_counts(sort=True).sort(["count", text.name], descending=[True, False])
    kept = common[text.name].head(_MAX_SLICES - 1 if len(common) > _MAX_SLICES else _MAX_SLICES).to_list()
    return text.set(text.is_not_null() & ~text.is_in(kept), "(others)")


def mean_of(values: Floats | None) -> float | None:
    """Return the mean over the queries that have a value."""
    finite = np.zeros(0) if values is None else values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _correct_by(rows: Sequence[dict[str, Any]], *by: str) -> list[dict[str, Any]]:
    """Tests with p values after Holm's correction over those that have the same of some columns."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [row for tests in groups.values() for row in correct_by_holm(tests)]


def correct_by_holm(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tests with p values after Holm's correction over all of them."""
    tested = [row["p_value"] for row in rows if row["p_value"] is not None]
    adjusted = iter(holm(tested).tolist() if tested else [])
    return [{**row, "p_holm": None if row["p_value"] is None else next(adjusted)} for row in rows]


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
        found = f"{row['difference']:+.4f} ({row['lower']:+.4f} to {row['upper']:+.4f}); {counts_in_words(row)}"
        tested = f"p = {row['p_holm']:.3g} by randomisation with Holm's correction, {row['p_t']:.3g} by a t test alone"
        return f"{what}: {found}; {tested}"

    @property
    def open_sentence(self) -> str | None:
        """What the unjudged items could change, ``None`` where nothing."""
        if self.bounds is None:
            return None
        low, high = self.bounds
        pair = f"{self.row['run']} - {self.row['other']}"
        could = ", so they could turn the order round; judge them first" if low < 0 < high else ""
        between = f"{pair} lies between {low:+.4f} and {high:+.4f} by {self.row['metric']}"
        return f"depending on the unjudged items, {between}{could}"


def counts_in_words(row: dict[str, Any]) -> str:
    """Return wins, losses and ties in words."""
    return ", ".join(counted(row[name], word) for name, word in (("wins", "win"), ("losses", "loss"), ("ties", "tie")))


def verdicts(evaluation: Evaluation) -> list[Verdict]:
    """Return what was found of each tested pair of runs, metric by metric."""
    measures = {measure.name: measure for measure in evaluation.measures}
    all_verdicts = []
    for row in evaluation.comparisons.iter_rows(named=True):
        measure, one, other = measures[row["metric"]], evaluation.runs[row["run"]], evaluation.runs[row["other"]]
        ahead = ((row["difference"] or 0.0) > 0) == measure.larger_is_better
        bounds = difference_bounds(one, other, measure) if evaluation.bounded else None
        all_verdicts.append(Verdict(row, ahead, row["p_holm"] is not None and row["p_holm"] <= CLEAR, bounds))
    return all_verdicts


def slice_sentences(evaluation: Evaluation) -> list[tuple[bool, str]]:
    """Return the slices of the first metric with a clear difference: whether the run is ahead, and a sentence."""
    sentences = []
    for row in evaluation.slices.iter_rows(named=True) if evaluation.slices is not None else ():
        measure = evaluation.measures[0]
        if row["metric"] == measure.name and row["p_holm"] is not None and row["p_holm"] <= CLEAR:
            ahead = (row["difference"] > 0) == measure.larger_is_better
            what = f"{row['run']} is {'better' if ahead else 'worse'} than {row['other']} by {measure.name}"
            found = f"{row['difference']:+.4f} on {counted(row['n_queries'], 'query')}, p = {row['p_holm']:.3g}"
            sentences.append((ahead, f"where {row['by']} is {row['slice']}, {what}: {found} over the slices"))
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
    of_pair = evaluation.differences.filter(pl.col(name) == row[name] for name in ("metric", "run", "other"))
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
        items = aligned.run.items
        grade = np.where(aligned.judged, aligned.grade, np.nan)
        frame = pl.DataFrame({"item": items.ids.cast(pl.String), "grade": grade, "rank": aligned.places() + 1})
        here = items.query_ids().cast(pl.String) == query if not items.single else pl.lit(True)
        tables.append(frame.filter(here, pl.Series(aligned.ranked)))
    both = tables[0].join(tables[1], on="item", how="full", coalesce=True)
    both = both.select("item", pl.coalesce("grade", "grade_right").fill_nan(None).alias("grade"), "rank", "rank_right")
    near = both.filter((pl.col("rank") <= depth) | (pl.col("rank_right") <= depth))
    return near.sort(["rank", "rank_right", "item"], nulls_last=True)
