"""Where each judgment places its item among those it was judged together with; numpy only.

The standing of an item is the share of the others that it was placed above, less the share that it was placed below:
1 is first, -1 is last, 0 the middle; items placed equal count in neither share.
"""

from __future__ import annotations

import numpy as np

from ..protocols import Counts, Floats, Ints
from .segments import average_repeats
from .ties import join_ties


def ranking_standings(rank: Ints, offsets: Counts) -> Floats:
    """Return the standing of each row of rankings, 0 in a ranking of one item.

    ``rank`` (rows,) rises within each ranking, whose rows are ``offsets[r]:offsets[r + 1]``.
    """
    sizes = np.diff(offsets)
    starts = np.repeat(offsets[:-1], sizes)
    first, after = _runs(rank, starts)
    others = np.maximum(np.repeat(sizes, sizes) - 1, 1)
    below, above = np.repeat(offsets[1:], sizes) - after, first - starts
    standings: Floats = (below - above) / others
    return standings


def grade_standings(group: Counts, item: Ints, grade: Floats, weight: Floats | None) -> tuple[Ints, Floats, Floats]:
    """Return item, standing and weight of each item of each group of grades that has other items to compare it with.

    ``group`` (rows,) tells which grades are compared, such as those of one annotator in one query; the weight of
    a grade is also that of the item's being there for others. Several grades of an item in a group are averaged.
    """
    group, item, grade, weight = average_repeats(group, item, grade, np.ones(len(grade)) if weight is None else weight)
    order = np.lexsort((grade, group))
    group, item, grade, weight = group[order], item[order], grade[order], weight[order]
    new = np.diff(group, prepend=-1) != 0
    begin = np.flatnonzero(new)
    sizes = np.diff(begin, append=len(group))
    starts, ends = np.repeat(begin, sizes), np.repeat(begin + sizes, sizes)
    # grades that were averaged differ by rounding
    first, after = _runs(join_ties(grade, np.append(begin, len(group))), starts)
    climbed, base = _running_weights(weight, begin)
    below = np.where(first > starts, climbed[first - 1] - base[starts], 0.0)
    above = climbed[ends - 1] - climbed[after - 1]
    alike = np.where(after - first > 1, climbed[after - 1] - base[starts] - below - weight, 0.0)
    use = ends - starts > 1
    return item[use], ((below - above)[use] / (below + above + alike)[use]), weight[use]


def _running_weights(weight: Floats, begin: Counts) -> tuple[Floats, Floats]:
    """Sum of the weights of a group up to each row, up to a constant of the group, and that constant at its first row.

    One sum over all rows would carry the rounding of all groups before.
    """
    steps = weight.copy()
    if len(begin) > 1:
        steps[begin[1:]] -= np.add.reduceat(weight, begin)[:-1]
    climbed: Floats = np.cumsum(steps)
    return climbed, climbed - weight


def _runs(values: Ints | Floats, starts: Counts) -> tuple[Counts, Counts]:
    """First row of each row's run of equal values in its group, which begins at ``starts``, and the row after it."""
    row = np.arange(len(values))
    new = (np.diff(values, prepend=0) != 0) | (row == starts)
    begin = np.flatnonzero(new)
    lengths = np.diff(begin, append=len(values))
    return np.repeat(begin, lengths), np.repeat(begin + lengths, lengths)


def group_codes(query: Ints, annotator: Ints, block: Ints | None) -> Counts:
    """Return a code (rows,) for each combination of query, annotator and block; the last two may be missing."""
    group = query.astype(np.int64)
    for codes in (annotator, block):
        if codes is not None and len(codes):
            group = group * (int(codes.max()) + 1) + codes
    return group
