"""Rankings laid out query by query in an order that depends on who ranked what above what, and on no name.

Random draws go by the numbers of items, so numbering them by their ids would let a name decide on the result. Here
items, rankings and annotators are distinguished by what they are in the rankings: each gets a colour, a hash of the
colours of those it has to do with, again and again until no more colours appear (colour refinement). Items of a
query are then numbered by colour, and its random numbers start from the colours of all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.numbering import mix_bits
from ....kernels.threads import even_bounds, read_only
from ....protocols import AnyFloats, Counts, Floats, Ints

Colours = NDArray[np.uint64]

_MOST_REFINEMENTS = 8


class RankedLists(NamedTuple):
    """Rankings as lists of rows, the lists of a query side by side.

    Parameters
    ----------
    offsets
        Items of query ``q`` are ``offsets[q]`` up to ``offsets[q + 1]``, (n_queries + 1,).
    queries
        Lists of query ``q`` are ``queries[q]`` up to ``queries[q + 1]``, (n_queries + 1,).
    starts
        Rows of list ``l`` are ``starts[l]`` up to ``starts[l + 1]``, (n_lists + 1,).
    item
        Number of the row's item within its query, (n_rows,).
    rank
        Never falling within a list, equal where items tie, (n_rows,).
    """

    offsets: Counts
    queries: Counts
    starts: Counts
    item: Ints
    rank: Ints

    def views(self) -> tuple[Any, ...]:
        """Return read-only views of all, so kernels are compiled for one kind of array only."""
        offsets, queries, starts = map(read_only, (self.offsets, self.queries, self.starts))
        return offsets, queries, starts, read_only(self.item), read_only(self.rank)

    @property
    def sizes(self) -> Counts:
        """Number of items of each query."""
        return np.diff(self.offsets)

    def work(self) -> Counts:
        """Number of pairs of items and of pairs of rows of each query, which is what a pass over them costs."""
        rows = np.diff(self.starts)
        pairs = np.concatenate([[0], np.cumsum(rows * rows)])[self.queries]
        steps: Counts = self.sizes**2 + np.diff(pairs)
        return steps


class RankingLayout(NamedTuple):
    """Rankings laid out, and how to find one's way back.

    Parameters
    ----------
    lists
        The rankings that put some item above another, with the items that they rank.
    item, ranking
        Code of each item and number of each list as they were given, (n_items,) and (n_lists,).
    twin
        The first of the items that an item cannot be distinguished from by any ranking, (n_items,).
    seeds
        Start of each query's random numbers, (n_queries,).
    """

    lists: RankedLists
    item: Counts
    ranking: Counts
    twin: Counts
    seeds: Colours


def arrange(
    item: Ints,
    rank: Ints,
    starts: Counts,
    query: Ints,
    n_queries: int,
    features: tuple[Floats, Ints, Floats],
    seed: int,
    *,
    shades: Colours | None = None,
) -> RankingLayout:
    """Return rankings laid out by structure.

    Parameters
    ----------
    item, rank
        Code of each row's item and its rank, rising within each ranking, (n_rows,).
    starts
        Rows of ranking ``r`` are ``starts[r]`` up to ``starts[r + 1]``, (n_rankings + 1,).
    query, n_queries
        Query of each item, never falling, (n_all_items,), and the number of queries.
    features
        Weight and annotator of each ranking, and a number of each annotator that tells those apart who are not to be
        taken as alike.
    seed
        Decides on the random numbers along with the structure.
    shades
        Equal for items that are alike in all but the rankings, (n_all_items,); ``None`` where all are.
    """
    telling = np.flatnonzero(rank[starts[1:] - 1] != rank[starts[:-1]])
    row, length = _rows_of(starts, telling)
    codes, number = np.unique(item[row].astype(np.int64), return_inverse=True)
    weight, annotator, special = features
    of_ranking = (weight[telling], annotator[telling], special)
    plain = np.zeros(len(codes), np.uint64) if shades is None else shades[codes]
    colours = _colours(np.repeat(np.arange(len(length)), length), number, rank[row], of_ranking, plain)
    by_colour = np.lexsort((colours[0], query[codes]))
    codes, shade = codes[by_colour], colours[0][by_colour]
    within = query[codes]
    offsets = _offsets(np.bincount(within, minlength=n_queries))
    place = np.empty(len(codes), np.int64)
    place[by_colour] = np.arange(len(codes)) - offsets[within]
    of_list = query[item[starts[telling]]] if len(telling) else np.empty(0, np.int64)
    order = np.lexsort((colours[1], of_list))
    queries = _offsets(np.bincount(of_list, minlength=n_queries))
    rows, length = _rows_of(_offsets(length), order)
    placed, ranks = place[number][rows], rank[row][rows]
    # tied items by their new numbers
    again = np.lexsort((placed, ranks, np.repeat(np.arange(len(length)), length)))
    lists = RankedLists(offsets, queries, _offsets(length), placed[again].astype(np.int32), ranks[again])
    same = np.concatenate([[False], (shade[1:] == shade[:-1]) & (within[1:] == within[:-1])])[: len(codes)]
    twin = np.maximum.accumulate(np.where(same, 0, np.arange(len(codes)))) if len(codes) else codes
    of_seed = _mix_each(np.full(n_queries, seed % 2**64, np.uint64))
    seeds = _mix_each(_sums(_mix_each(shade), within, n_queries) + of_seed)
    return RankingLayout(lists, codes, telling[order], twin, seeds)


def row_colours(matrix: AnyFloats, row: Ints) -> Colours:
    """Return a number for each of some rows of a matrix, the same for equal ones, and 0 for row -1; (n,)."""
    colours = np.zeros(len(row), np.uint64)
    for column in matrix.T:
        # adding 0 makes one of the two zeros
        colours = _mix_each(colours ^ (column[row] + 0.0).astype(np.float64).view(np.uint64))
    colours[row < 0] = 0
    return colours


def query_bounds(work: Counts, smallest: int) -> Counts:
    """Return the bounds of stretches of queries with about equal work (n_queries,), one for each thread."""
    climbed = _offsets(work)
    bounds = np.searchsorted(climbed, even_bounds(int(climbed[-1]), smallest))
    bounds[0], bounds[-1] = 0, len(work)
    return bounds


def _offsets(counts: Counts) -> Counts:
    """Bounds of groups of the given sizes."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _rows_of(starts: Counts, chosen: Counts) -> tuple[Counts, Counts]:
    """Rows of the chosen lists, one list after the other, and the length of each."""
    length = np.diff(starts)[chosen]
    head = _offsets(length)
    return np.repeat(starts[:-1][chosen] - head[:-1], length) + np.arange(head[-1]), length


def _colours(
    number: Counts, item: Counts, rank: Ints, features: tuple[Floats, Ints, Floats], of_item: Colours
) -> tuple[Colours, Colours]:
    """Colours of items and lists, refined from those of items until no more of them are distinguished."""
    weight, annotator, special = features
    of_list, of_annotator = weight.view(np.uint64), special.view(np.uint64)
    place, known = _mix_each(rank.astype(np.uint64)), 0
    for _ in range(_MOST_REFINEMENTS):
        rows = _sums(_mix_each(of_item[item] ^ place), number, len(of_list))
        of_list = _mix_each(of_list + rows + _mix_each(of_annotator)[annotator])
        of_item = _mix_each(of_item + _sums(_mix_each(of_list[number] ^ place), item, len(of_item)))
        of_annotator = _mix_each(of_annotator + _sums(of_list, annotator, len(of_annotator)))
        n_colours = len(np.unique(of_item)) + len(np.unique(of_list))
        if n_colours == known:
            break
        known = n_colours
    return of_item, of_list


def _mix_each(values: Colours) -> Colours:
    """Hash of each value; this short a sum is not worth compiling."""
    mixed: Colours = mix_bits.py_func(values)
    return mixed


def _sums(values: Colours, group: Counts | Ints, n: int) -> Colours:
    """Sums over groups, which wrap, so their order does not matter; exact for two million values each."""
    parts = (values >> np.uint64(32), values & np.uint64(0xFFFFFFFF))
    high, low = (np.bincount(group, part.astype(np.float64), n).astype(np.uint64) for part in parts)
    return (high << np.uint64(32)) + low
