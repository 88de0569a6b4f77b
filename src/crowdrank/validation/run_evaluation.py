"""Measures of rankings against a truth, with intervals over queries and paired tests between runs.

Scored items are put beside what is known of them first: grades, winners of pairs, classes, and truths that are unsure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.index import Items, factorize, look_up
from ..data.intake import short
from ..data.showing import ROWS, Shown, html_table
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError, UnknownNameError
from ..metrics.measures import Measure, parse
from ..metrics.ranking import TIES
from ..metrics.significance import bootstrap_interval, expect_level, holm, mean_interval, paired_randomisation, paired_t
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import counted, did_you_mean, one_of, option, percent

N_DRAWS = 200

TIES_BY_ID = ("trec", "gdeval")
"""Rules for ties that go by the ids of items, of which measures of plain arrays know nothing."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """A run's items beside their truth, or its pairs."""

    name: str
    run: Scored
    truth: Truth
    grade: Floats
    """Truth of each of the run's items: NaN where there is none and such items are left out."""
    judged: Bools
    """Mask of the run's items whose truth is known."""
    ranked: Bools
    """Mask of the rows that the run ranked; the rest are judged items it lacks."""
    absent: Ints
    """Codes of the truth's queries that the run lacks and that count as worst."""

    @property
    def queries(self) -> pl.Series:
        """Ids of the queries with a value, in the order of the values."""
        if self.truth.form == "pairs":
            query = self.run.items.query[self.truth.align_pairs(self.run.items)[0]]
        else:
            query = self.run.items.query[np.isfinite(self.grade)]
        ids = self.run.items.queries.ids.gather(np.unique(query)).cast(pl.String)
        return pl.concat([ids, self.truth.items.queries.ids.gather(self.absent).cast(pl.String)]).alias("query")

    def values(self, measure: Measure, grade: Floats | None = None) -> Floats:
        """Return the measure for each query; ``grade`` may stand for the truth of the judged items.

        By a rule of ``TIES_BY_ID`` the last id of tied items comes first. Queries that the run lacks have the worst
        value, or NaN where the measure leaves such a query out.
        """
        rule, query = measure.parameters.get("ties"), self.run.items.query
        worst = np.full(len(self.absent), 0.0 if measure.larger_is_better else 1.0)
        if measure.needs == "pairs":
            left, right, outcome = self.truth.align_pairs(self.run.items)
            both = np.column_stack([self.run.scores[left], self.run.scores[right]])
            return np.concatenate([measure(outcome, both, query[left]), worst])
        use = np.isfinite(self.grade)
        if measure.needs == "class":
            known, chosen = self._classes()
            return np.concatenate([measure(known[use], chosen[use], query[use]), worst])
        scores, rows = np.where(self.ranked, self.run.scores, -np.inf), np.flatnonzero(use)
        if rule in TIES_BY_ID:
            measure = replace(measure, parameters={**measure.parameters, "ties": "first"})
            rows = rows[self.run.items.ids.gather(rows).cast(pl.String).arg_sort(descending=True).to_numpy()]
            rows = rows[np.argsort(query[rows], kind="stable")]
            # trec_eval keeps scores in 32 bits
            scores = scores.astype(np.float32).astype(np.float64) if rule == "trec" else scores
        values = measure((self.grade if grade is None else grade)[rows], scores[rows], query[rows])
        if not len(worst):
            return values
        assert self.truth.grade is not None
        of_truth = self.truth.items.query
        lacking = np.isin(of_truth, self.absent) & np.isfinite(self.truth.grade)
        unranked = np.full(int(lacking.sum()), -np.inf)
        counts = np.isfinite(measure(self.truth.grade[lacking], unranked, of_truth[lacking]))
        return np.concatenate([values, np.where(counts, worst, np.nan)])

    def _classes(self) -> tuple[Ints, Ints]:
        """Codes of the true and of the chosen class of each item, -1 where there is none."""
        if self.run.labels is None:
            way = option("want", "grade")
            raise ParameterError(f"{self.name} chooses no grade; accuracy needs a class method, as with {way}")
        known, chosen = self.truth.labels(self.grade), self.run.labels.cast(pl.String)
        named, answered = known.drop_nulls().unique().sort(), chosen.drop_nulls().unique().sort()
        if len(named) and len(answered) and not named.is_in(answered.implode()).any():
            both = f"the truth names grades such as {named[0]!r}, and {self.name} such as {answered[0]!r}"
            raise ParameterError(f"{both}, with none in common; write both in the same levels")
        return tuple(factorize([known, chosen])[0])  # type: ignore[return-value]

    def places(self) -> Counts:
        """Return the place of each item in its query, from 0, in the order of the run; those not ranked come last."""
        items = self.run.items
        order = np.lexsort((-self.run.scores, ~self.ranked, items.query))
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order)) - items.offsets[items.query[order]]
        return places

    def unjudged_shares(self, measure: Measure) -> Floats | None:
        """Return the share of items without truth among the first k places of each query, NaN where none is ranked."""
        if self.truth.form == "pairs":
            return None
        items, depth = self.run.items, measure.parameters.get("k")
        top = self.ranked & (self.places() < (depth or len(items)))
        number = np.bincount(items.query[top], minlength=items.n_queries)
        shares = np.bincount(items.query[top], ~self.judged[top], items.n_queries) / np.maximum(number, 1)
        known = np.unique(items.query[np.isfinite(self.grade)])
        return np.concatenate([shares[known], np.full(len(self.absent), np.nan)])

    @cached_property
    def unjudged(self) -> Bools:
        """Mask of the ranked items without truth in queries that have some."""
        return self._has_truth & self.ranked & ~self.judged

    @cached_property
    def base(self) -> Floats:
        """The grade of each item, 0 where it is unjudged and NaN in queries without truth."""
        return np.where(self.judged, self.grade, np.where(self._has_truth, 0.0, np.nan))

    @cached_property
    def _has_truth(self) -> Bools:
        """Mask of the items of queries that have any truth."""
        return np.isin(self.run.items.query, self.run.items.query[self.judged])

    def plausible_grades(self, seed: int) -> list[Floats] | None:
        """Return grades that the items may truly have, where the truth is a consensus that says how sure it is.

        They are drawn from its replicates, or from the probabilities of its levels: numbers where they rise, else
        places.
        """
        source = self.truth.source
        if source is None or (source.replicates is None and source.probabilities is None):
            return None
        query = None if self.run.items.single or source.items.single else self.run.items.query_ids()
        codes = source.items.codes(query, self.run.items.ids)
        rng, draws = np.random.default_rng(seed), []
        if source.replicates is not None:
            number = len(source.replicates)
            chosen = rng.choice(number, min(N_DRAWS, number), replace=False)
            draws = [source.replicates[row].astype(np.float64) for row in chosen]
        elif source.probabilities is not None:
            levels = source.levels or ()
            values = np.arange(len(levels), dtype=np.float64)
            if all(isinstance(level, int | float) for level in levels):
                numbers = np.asarray(levels, np.float64)
                values = numbers if (np.diff(numbers) > 0).all() else values
            reach = np.cumsum(source.probabilities, axis=1)
            for _ in range(N_DRAWS):
                passed = rng.random((len(reach), 1)) * reach[:, -1:] > reach
                draws.append(values[np.minimum(passed.sum(axis=1), len(values) - 1)])
        return [np.where(codes >= 0, drawn[codes], self.grade) for drawn in draws]


def align(
    name: str, run: Scored, truth: Truth, unjudged: str, notes: list[tuple[str, str]], *, all_queries: bool = False
) -> Aligned:
    """Put a run beside the truth and note, with its name, what does not match."""
    absent = np.empty(0, np.int32)
    # where one of them names no query, both have only one
    if not (run.items.single or truth.items.single):
        has_run, has_truth = np.unique(run.items.query), np.unique(truth.items.query)
        of_run, of_truth = run.items.queries.ids.gather(has_run), truth.items.queries.ids.gather(has_truth)
        lacking = look_up([of_run], [of_truth]) < 0
        if lacking.all():
            here, there = (f"{short(ids[0])}{', ...' if len(ids) > 1 else ''}" for ids in (of_run, of_truth))
            what = f"{here} here and {there} in the truth"
            raise JudgmentError(f"{name} and the truth share no query: {what}; make their query ids agree")
        if lacking.any():
            way = option("all_queries", True)
            does = f"count as 0 ({way})" if all_queries else f"are left out ({way} counts them as 0)"
            missing = f"{int(lacking.sum()):,} of {len(of_truth):,} queries of the truth are not ranked and {does}"
            notes.append((name, missing))
        n_extra = int((look_up([of_truth], [of_run]) < 0).sum())
        if n_extra:
            notes.append((name, f"{n_extra:,} of {len(of_run):,} ranked queries have no truth and are left out"))
        absent = has_truth[lacking].astype(np.int32) if all_queries else absent
    everything = np.ones(len(run.items), bool)
    if truth.form == "pairs":
        covered = len(truth.align_pairs(run.items)[0])
        if not covered:
            raise JudgmentError(f"{name} and the truth share no pair of items; check that their ids are the same")
        if covered < len(truth):
            left_out = len(truth) - covered
            notes.append((name, f"{left_out} of {len(truth)} pairs of the truth have an item that is not ranked"))
        return Aligned(name, run, truth, np.zeros(len(run.items)), everything, everything, absent)
    run, ranked = run.with_missing(truth) if run.retrieved else (run, everything)
    grade = truth.align(run.items)
    judged = np.isfinite(grade)
    if not (judged & ranked).any():
        raise JudgmentError(f"{name} and the truth share no item; check that their query and item ids are the same")
    in_truth = np.isin(run.items.query, np.unique(run.items.query[judged]))
    n_unjudged, n_ranked = int((in_truth & ranked & ~judged).sum()), int((in_truth & ranked).sum())
    if n_unjudged:
        does = f"{'are left out' if unjudged == 'drop' else 'count as grade 0'} ({option('unjudged', unjudged)})"
        notes.append((name, f"{n_unjudged} of {n_ranked} items have no truth and {does}"))
    if unjudged == "zero":
        grade = np.where(judged, grade, np.where(in_truth, 0.0, np.nan))
    return Aligned(name, run, truth, grade, judged, ranked, absent)


@dataclass(frozen=True, eq=False)
class Scored:
    """Items with a score each; ``retrieved`` says that items may be missing because they were not found."""

    items: Items
    scores: Floats
    retrieved: bool = False
    labels: pl.Series | None = None
    """The grade that was chosen for each item, where one was."""
    nominal: bool = False

    @classmethod
    def of(cls, consensus: Consensus) -> Scored:
        """Return the scored items of a consensus."""
        labels = consensus.labels() if consensus.grade is not None and consensus.levels is not None else None
        return cls(consensus.items, consensus.scores, labels=labels, nominal=consensus.nominal)

    def with_missing(self, truth: Truth) -> tuple[Scored, Bools]:
        """Add the items that the truth has of the same queries and that were not retrieved; say which rows were."""
        here = _text_ids(self.items).with_columns(score=pl.Series(self.scores), ranked=pl.lit(1.0))
        there = _text_ids(truth.items)
        if self.items.n_queries == 1 and truth.items.n_queries == 1 and truth.items.single:
            there = there.with_columns(query=pl.lit(here["query"][0]))
        there = there.join(here, on="query", how="semi")
        absent = there.join(here, on=["query", "item"], how="anti").with_columns(score=pl.lit(0.0), ranked=pl.lit(0.0))
        both = pl.concat([here, absent])
        query = None if self.items.single else both["query"]
        rows = Features.from_arrays(query, both["item"], both.select("score", "ranked").to_numpy())
        return replace(self, items=rows.items, scores=rows.matrix[:, 0].astype(np.float64)), rows.matrix[:, 1] > 0


def _text_ids(items: Items) -> pl.DataFrame:
    """Query and item ids as text, so integers meet text."""
    return pl.DataFrame({"query": items.query_ids(), "item": items.ids}).select(pl.all().cast(pl.String))


_MAX_COUNTS = 12
_MAX_LEVELS = 4


def value_bounds(aligned: Aligned, measure: Measure) -> tuple[Floats, Floats] | None:
    """Return the lowest and the highest value of each query, whatever grades its unjudged items have.

    With the multiset of grades given, a measure of the top is largest when the best unjudged items are ranked first and
    smallest when they are ranked last. So the first m unjudged items in the places that count get one level of the
    truth and the rest 0, or the last m get the highest, for all m and levels; beyond a dozen the m are spaced evenly in
    their logarithm. ``None`` for a truth about pairs, ranks or classes.
    """
    levels = _value_levels(aligned, measure)
    if levels is None:
        return None
    low = high = replace(aligned, grade=aligned.base).values(measure)
    if not aligned.unjudged.any() or not len(levels):
        return low, high
    items, place = aligned.run.items, aligned.places()
    rows = np.flatnonzero(aligned.unjudged)
    rows = rows[np.lexsort((place[rows], items.query[rows]))]
    number = np.bincount(items.query[rows], minlength=items.n_queries)
    above = np.arange(len(rows)) - (np.cumsum(number) - number)[items.query[rows]]
    below = number[items.query[rows]] - 1 - above
    counts = _spaced_counts(int(number.max()))
    in_reach = place[rows] < (measure.parameters.get("k") or len(items))
    raised = [(rows[in_reach & (above < m)], level) for level in levels for m in counts]
    for which, level in [*raised, *((rows[below < m], levels[-1]) for m in counts)]:
        filled = aligned.base.copy()
        filled[which] = level
        values = replace(aligned, grade=filled).values(measure)
        low, high = np.fmin(low, values), np.fmax(high, values)
    return low, high


def difference_bounds(one: Aligned, other: Aligned, measure: Measure) -> tuple[float, float] | None:
    """Return the lowest and the highest mean difference of two runs, an unjudged item having the same grade in both.

    On each query the unjudged items that ``one`` ranks most above ``other`` are raised to one level of the truth, m of
    them for all m, and the same with the runs exchanged; the ends are the extremes found. An item that a run did not
    retrieve is left out of that run's ideal. ``None`` where all is judged or the queries differ.
    """
    levels = _value_levels(one, measure)
    if levels is None or not one.queries.equals(other.queries) or not (one.unjudged.any() or other.unjudged.any()):
        return None
    discounts, depth = [], measure.parameters.get("k")
    for run in (one, other):
        place = run.places()
        discount = np.where(run.ranked & (place < (depth or len(place))), 1.0 / np.log2(place + 2.0), 0.0)
        discounts.append(np.append(discount, 0.0))
    there = other.run.items.codes_of(one.run.items, "other", "one")
    here = one.run.items.codes_of(other.run.items, "one", "other")
    # how much more each unjudged item of a run counts in one than in other
    leads = [(discounts[0][:-1] - discounts[1][there])[one.unjudged]]
    leads.append((discounts[0][here] - discounts[1][:-1])[other.unjudged])

    def difference(grades: Sequence[Floats]) -> Floats:
        values = [replace(run, grade=own).values(measure) for run, own in zip((one, other), grades, strict=True)]
        return values[0] - values[1]

    ends = []
    for sign in (-1.0, 1.0):
        best = sign * difference([one.base, other.base])
        order = np.unique(sign * np.concatenate(leads))  # equal leads are raised together, so both runs raise the same
        positive = order[order > 0]
        cuts = np.unique(positive[-_spaced_counts(len(positive))]) if len(positive) else positive
        for level, cut in product(levels, cuts):
            grades = [run.base.copy() for run in (one, other)]
            for grade, run, lead in zip(grades, (one, other), leads, strict=True):
                grade[np.flatnonzero(run.unjudged)[sign * lead >= cut]] = level
            best = np.fmax(best, sign * difference(grades))
        finite = best[np.isfinite(best)]
        ends.append(sign * float(finite.mean()) if len(finite) else 0.0)
    return ends[0], ends[1]


def _value_levels(aligned: Aligned, measure: Measure) -> Floats | None:
    """The levels above 0 that unjudged items may have, up to four; ``None`` where a measure reads no grades."""
    known = aligned.truth.grade
    if measure.needs != "grade" or measure.ranks_suffice or aligned.truth.form != "grade" or known is None:
        return None
    levels = np.unique(known[np.isfinite(known)])
    levels = levels[levels > 0]
    return np.unique(levels[np.linspace(0, len(levels) - 1, min(_MAX_LEVELS, len(levels))).round().astype(int)])


def _spaced_counts(most: int) -> Counts:
    """Whole numbers from 1 to the most, all of them where they are few."""
    if most <= _MAX_COUNTS:
        return np.arange(1, most + 1)
    return np.unique(np.geomspace(1, most, _MAX_COUNTS).round().astype(np.int64))


_DEFAULT_METRICS = {"grade": ("ndcg@10", "map", "tau"), "rank": ("tau", "pair_accuracy")}
_DEFAULT_METRICS |= {"pairs": ("preference_accuracy",), "class": ("accuracy",)}
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

    def measure(self, name: str) -> Measure:
        """Return the measure of this name."""
        return next(measure for measure in self.measures if measure.name == name)

    def differences_of(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """Return the differences of the metric and the two runs that a row of tests is about."""
        return self.differences.filter(pl.col(name) == row[name] for name in ("metric", "run", "other"))

    def verdicts(self) -> list[Verdict]:
        """Return what was found of each tested pair of runs, metric by metric."""
        all_verdicts = []
        for row in self.comparisons.iter_rows(named=True):
            measure = self.measure(row["metric"])
            ahead = ((row["difference"] or 0.0) > 0) == measure.larger_is_better
            bounds = (
                difference_bounds(self.runs[row["run"]], self.runs[row["other"]], measure) if self.bounded else None
            )
            all_verdicts.append(Verdict(row, ahead, row["p_holm"] is not None and row["p_holm"] <= CLEAR, bounds))
        return all_verdicts

    def slice_sentences(self) -> list[tuple[bool, str]]:
        """Return the slices of the first metric with a clear difference: whether the run is ahead, and a sentence."""
        sentences = []
        for row in self.slices.iter_rows(named=True) if self.slices is not None else ():
            measure = self.measures[0]
            if row["metric"] == measure.name and row["p_holm"] is not None and row["p_holm"] <= CLEAR:
                ahead = (row["difference"] > 0) == measure.larger_is_better
                what = f"{row['run']} is {'better' if ahead else 'worse'} than {row['other']} by {measure.name}"
                found = f"{row['difference']:+.4f} on {counted(row['n_queries'], 'query')}, p = {row['p_holm']:.3g}"
                sentences.append((ahead, f"where {row['by']} is {row['slice']}, {what}: {found} over the slices"))
        return sentences

    def unjudged_sentence(self) -> str | None:
        """Return how much of what the first metric reads is unjudged, ``None`` where all of it is judged."""
        rows = self.table.filter(pl.col("metric") == self.measures[0].name).drop_nulls("unjudged")
        if not len(rows) or not rows["unjudged"].max():
            return None
        depth = self.measures[0].parameters.get("k")
        where = f"in the first {depth} places" if depth else "in all places"
        shares = ", ".join(f"{row['run']} {percent(row['unjudged'])}" for row in rows.iter_rows(named=True))
        return f"unjudged items {where}: {shares}"

    def extreme_queries(self, row: dict[str, Any], number: int = 5) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the queries of the largest losses and of the largest gains of a tested pair, the extreme first."""
        larger, parts = self.measure(row["metric"]).larger_is_better, []
        for outcome, falling in (("loss", not larger), ("win", larger)):
            part = self.differences_of(row).filter(pl.col("outcome") == outcome)
            parts.append(part.sort(["difference", "query"], descending=[falling, False]).head(number))
        return parts[0], parts[1]

    def items_of_query(self, query: str, names: tuple[str, str], depth: int = 10) -> pl.DataFrame:
        """Return the items that one of two runs has among the first: item, grade, and the rank in each run.

        Examples
        --------
        >>> from crowdrank.api import evaluate_runs
        >>> truth = {"query": list("aabb"), "item": list("xyxy"), "grade": [1, 0] * 2}
        >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 2), ("new", [1, 0] * 2))}
        >>> evaluate_runs(runs, truth).items_of_query("a", ("new", "old")).rows()
        [('x', 1.0, 1, 2), ('y', 0.0, 2, 1)]
        """
        tables = []
        for name in names:
            aligned = self.runs[name]
            items = aligned.run.items
            grade = np.where(aligned.judged, aligned.grade, np.nan)
            frame = pl.DataFrame({"item": items.ids.cast(pl.String), "grade": grade, "rank": aligned.places() + 1})
            here = items.query_ids().cast(pl.String) == query if not items.single else pl.lit(True)
            tables.append(frame.filter(here, pl.Series(aligned.ranked)))
        both = tables[0].join(tables[1], on="item", how="full", coalesce=True)
        known = pl.coalesce("grade", "grade_right").fill_nan(None).alias("grade")
        both = both.select("item", known, "rank", "rank_right")
        near = both.filter((pl.col("rank") <= depth) | (pl.col("rank_right") <= depth))
        return near.sort(["rank", "rank_right", "item"], nulls_last=True)


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
    expect_level(level)
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
