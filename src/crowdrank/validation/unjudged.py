"""How far items without truth could move a measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..metrics.measures import Measure
from ..protocols import Bools, Counts, Floats
from .alignment import Aligned

_MAX_COUNTS = 12
_MAX_LEVELS = 4


def value_bounds(aligned: Aligned, measure: Measure) -> tuple[Floats, Floats] | None:
    """Return the lowest and the highest value of each query, whatever grades its unjudged items have.

    With the multiset of grades given, a measure of the top is largest when the best unjudged items are ranked first and
    smallest when they are ranked last. So the first m unjudged items in the places that count get one level of the
    truth and the rest 0, or the last m get the highest, for all m and levels; beyond a dozen the m are spaced evenly in
    their logarithm. ``None`` for a truth about pairs, ranks or classes.
    """
    levels = value_levels(aligned, measure)
    if levels is None:
        return None
    unjudged, base = _unjudged_mask(aligned), _without_unjudged(aligned)
    low = replace(aligned, grade=base).values(measure)
    high = low.copy()
    if unjudged.any() and len(levels):
        for filled in _fillings(aligned, unjudged, base, levels, measure.parameters.get("k")):
            values = replace(aligned, grade=filled).values(measure)
            low, high = np.fmin(low, values), np.fmax(high, values)
    return low, high


def difference_bounds(one: Aligned, other: Aligned, measure: Measure) -> tuple[float, float] | None:
    """Return the lowest and the highest mean difference of two runs, an unjudged item having the same grade in both.

    On each query the unjudged items that ``one`` ranks most above ``other`` are raised to one level of the truth, m of
    them for all m, and the same with the runs exchanged; the ends are the extremes found. An item that a run did not
    retrieve is left out of that run's ideal. ``None`` where all is judged or the queries differ.
    """
    if value_levels(one, measure) is None or not one.queries.equals(other.queries):
        return None
    masks = [_unjudged_mask(run) for run in (one, other)]
    if not any(mask.any() for mask in masks):
        return None
    leads, ends = _count_differences(one, other, masks, measure.parameters.get("k")), []
    for sign in (1.0, -1.0):
        best: Floats | None = None
        for grades in _raised_together(one, other, masks, sign * leads, measure):
            values = [replace(run, grade=g).values(measure) for run, g in zip((one, other), grades, strict=True)]
            gap = sign * (values[0] - values[1])
            best = gap if best is None else np.fmax(best, gap)
        assert best is not None
        finite = best[np.isfinite(best)]
        ends.append(sign * float(finite.mean()) if len(finite) else 0.0)
    return ends[1], ends[0]


def value_levels(aligned: Aligned, measure: Measure) -> Floats | None:
    """Return the levels above 0 that unjudged items may have, up to four; ``None`` where a measure reads no grades."""
    known = aligned.truth.grade
    if measure.needs != "grade" or measure.ranks_suffice or aligned.truth.form != "grade" or known is None:
        return None
    levels = np.unique(known[np.isfinite(known)])
    levels = levels[levels > 0]
    return np.unique(levels[np.linspace(0, len(levels) - 1, min(_MAX_LEVELS, len(levels))).round().astype(int)])


def _unjudged_mask(aligned: Aligned) -> Bools:
    """Mask of the ranked items without truth in queries that have some."""
    query = aligned.run.items.query
    mask: Bools = np.isin(query, query[aligned.judged]) & aligned.ranked & ~aligned.judged
    return mask


def _without_unjudged(aligned: Aligned) -> Floats:
    """The grade of each item, 0 where it is unjudged and NaN in queries without truth."""
    query = aligned.run.items.query
    counted = np.isin(query, query[aligned.judged])
    return np.where(aligned.judged, aligned.grade, np.where(counted, 0.0, np.nan))


def _count_differences(one: Aligned, other: Aligned, masks: list[Bools], depth: int | None) -> Floats:
    """How much more each unjudged item counts in one run than in the other: those of one, then those of the other."""
    discounts = []
    for run in (one, other):
        place = run.places()
        discount = np.where(run.ranked & (place < (depth or len(place))), 1.0 / np.log2(place + 2.0), 0.0)
        discounts.append(np.append(discount, 0.0))
    there = other.run.items.codes_of(one.run.items, "other", "one")
    here = one.run.items.codes_of(other.run.items, "one", "other")
    leads: Floats = np.concatenate(
        [
            (discounts[0][:-1] - discounts[1][there])[masks[0]],
            (discounts[0][here] - discounts[1][:-1])[masks[1]],
        ]
    )
    return leads


def _raised_together(
    one: Aligned, other: Aligned, masks: list[Bools], leads: Floats, measure: Measure
) -> Iterator[tuple[Floats, Floats]]:
    """Grades in both runs with the unjudged items of the largest leads raised, the same items in both."""
    base = [_without_unjudged(run) for run in (one, other)]
    yield base[0], base[1]
    rows = [np.flatnonzero(mask) for mask in masks]
    order = np.unique(leads)  # equal leads are raised together, so both runs raise the same items
    levels = value_levels(one, measure)
    assert levels is not None
    positive = order[order > 0]
    if not len(positive):
        return
    cuts = np.unique(positive[::-1][np.minimum(_spaced_counts(len(positive)), len(positive)) - 1])
    for level in levels:
        for cut in cuts:
            raised = leads >= cut
            filled = [part.copy() for part in base]
            filled[0][rows[0][raised[: len(rows[0])]]] = level
            filled[1][rows[1][raised[len(rows[0]) :]]] = level
            yield filled[0], filled[1]


def _fillings(aligned: Aligned, unjudged: Bools, base: Floats, levels: Floats, depth: int | None) -> Iterator[Floats]:
    """Grades of all items with some of the unjudged ones raised: from the top, then from the bottom."""
    items, place = aligned.run.items, aligned.places()
    rows = np.flatnonzero(unjudged)
    rows = rows[np.lexsort((place[rows], items.query[rows]))]
    number = np.bincount(items.query[rows], minlength=items.n_queries)
    starts = np.concatenate([[0], np.cumsum(number)[:-1]])
    above = np.arange(len(rows)) - starts[items.query[rows]]
    below = number[items.query[rows]] - 1 - above
    counts = _spaced_counts(int(number.max()))
    in_reach = place[rows] < (depth or len(items))
    raised = [(rows[in_reach & (above < m)], level) for level in levels for m in counts]
    raised += [(rows[below < m], levels[-1]) for m in counts]
    for which, level in raised:
        filled = base.copy()
        filled[which] = level
        yield filled


def _spaced_counts(most: int) -> Counts:
    """Whole numbers from 1 to the most, all of them where they are few."""
    if most <= _MAX_COUNTS:
        return np.arange(1, most + 1)
    return np.unique(np.geomspace(1, most, _MAX_COUNTS).round().astype(np.int64))
