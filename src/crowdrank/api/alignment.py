"""Scored items beside what is known of them: grades, winners of pairs, classes, and truths that are unsure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.coding import factorize
from ..data.consensus import Consensus
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..metrics.measures import Measure
from ..protocols import Bools, Floats, Ints
from ..wording import option
from .scored import Scored

N_DRAWS = 200


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

    @property
    def queries(self) -> pl.Series:
        """Ids of the queries with a value, in the order of the values."""
        if self.truth.form == "pairs":
            query = self.run.items.query[self.truth.align_pairs(self.run.items)[0]]
        else:
            query = self.run.items.query[np.isfinite(self.grade)]
        return self.run.items.queries.ids.gather(np.unique(query)).cast(pl.String).alias("query")

    def values(self, measure: Measure, grade: Floats | None = None) -> Floats:
        """Return the measure for each query; ``grade`` may stand for the truth of the judged items."""
        query = self.run.items.query
        if measure.needs == "pairs":
            left, right, outcome = self.truth.align_pairs(self.run.items)
            return measure(outcome, np.column_stack([self.run.scores[left], self.run.scores[right]]), query[left])
        use = np.isfinite(self.grade)
        if measure.needs == "class":
            known, chosen = self._classes()
            return measure(known[use], chosen[use], query[use])
        scores = np.where(self.ranked, self.run.scores, -np.inf)
        return measure((self.grade if grade is None else grade)[use], scores[use], query[use])

    def _classes(self) -> tuple[Ints, Ints]:
        """Codes of the true and of the chosen class of each item, -1 where there is none."""
        if self.run.labels is None:
            raise ParameterError(
                f"{self.name} chooses no grade; accuracy needs a class method, as with {option('want', 'grade')}"
            )
        known, chosen = self.truth.labels(self.grade), self.run.labels.cast(pl.String)
        named, found = known.drop_nulls().unique(), chosen.drop_nulls().unique()
        if len(named) and len(found) and not named.is_in(found.implode()).any():
            raise ParameterError(
                f"the truth names grades such as {named.sort()[0]!r}, and {self.name} such as {found.sort()[0]!r}, "
                "with none in common; write both in the same levels"
            )
        return tuple(factorize([known, chosen])[0])  # type: ignore[return-value]

    def unjudged_share(self, measure: Measure) -> float | None:
        """Return the share of items without truth among the first k places, averaged over queries."""
        if self.truth.form == "pairs":
            return None
        items, depth = self.run.items, measure.parameters.get("k")
        order = np.lexsort((-self.run.scores, ~self.ranked, items.query))
        position = np.arange(len(order)) - items.offsets[items.query[order]]
        top = order[self.ranked[order] & (position < (depth or len(order)))]
        number = np.bincount(items.query[top], minlength=items.n_queries)
        shares = np.bincount(items.query[top], ~self.judged[top], items.n_queries) / np.maximum(number, 1)
        return float(shares[np.unique(items.query[np.isfinite(self.grade)])].mean())

    def plausible_grades(self, seed: int) -> list[Floats] | None:
        """Return grades that the items may truly have, where the truth is a consensus that says how sure it is."""
        source = self.truth.source
        if source is None or (source.replicates is None and source.probabilities is None):
            return None
        query = None if self.run.items.single or source.items.single else self.run.items.query_ids()
        codes = source.items.codes(query, self.run.items.ids)
        return [np.where(codes >= 0, drawn[codes], self.grade) for drawn in _draws(source, seed)]


def _draws(source: Consensus, seed: int) -> list[Floats]:
    """Scores or levels of all items, drawn from the replicates or from the probabilities."""
    rng = np.random.default_rng(seed)
    if source.replicates is not None:
        chosen = rng.choice(len(source.replicates), min(N_DRAWS, len(source.replicates)), replace=False)
        return [source.replicates[row].astype(np.float64) for row in chosen]
    assert source.probabilities is not None
    values = _level_values(source)
    reach = np.cumsum(source.probabilities, axis=1)
    drawn = []
    for _ in range(N_DRAWS):
        passed = rng.random((len(reach), 1)) * reach[:, -1:] > reach
        drawn.append(values[np.minimum(passed.sum(axis=1), len(values) - 1)])
    return drawn


def _level_values(source: Consensus) -> Floats:
    """The number that each level counts as: its own where numbers rise, else its place."""
    levels = source.levels or ()
    if all(isinstance(level, int | float) for level in levels):
        values = np.array([float(level) for level in levels])
        if (np.diff(values) > 0).all():
            return values
    return np.arange(len(levels), dtype=np.float64)


def align(name: str, run: Scored, truth: Truth, unjudged: str, notes: list[str]) -> Aligned:
    """Put a run beside the truth and note what does not match."""
    everything = np.ones(len(run.items), bool)
    if truth.form == "pairs":
        covered = len(truth.align_pairs(run.items)[0])
        if not covered:
            raise JudgmentError(f"{name} and the truth share no pair of items; check that their ids are the same")
        if covered < len(truth):
            left_out = len(truth) - covered
            notes.append(f"{name}: {left_out} of {len(truth)} pairs of the truth have an item that is not ranked")
        return Aligned(name, run, truth, np.zeros(len(run.items)), everything, everything)
    run, ranked = run.with_missing(truth) if run.retrieved else (run, everything)
    grade = truth.align(run.items)
    judged = np.isfinite(grade)
    if not judged.any():
        raise JudgmentError(f"{name} and the truth share no item; check that their query and item ids are the same")
    if not judged.all():
        does = "are left out" if unjudged == "drop" else "count as grade 0"
        count = f"{int((~judged).sum())} of {len(judged)}"
        notes.append(f"{name}: {count} items have no truth and {does} ({option('unjudged', unjudged)})")
    if unjudged == "zero":
        in_truth = np.isin(run.items.query, np.unique(run.items.query[judged]))
        grade = np.where(judged, grade, np.where(in_truth, 0.0, np.nan))
    return Aligned(name, run, truth, grade, judged, ranked)
