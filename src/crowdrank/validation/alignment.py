"""Scored items beside what is known of them: grades, winners of pairs, classes, and truths that are unsure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.index import Items, factorize, look_up
from ..data.intake import short
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..metrics.measures import Measure
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import option

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
