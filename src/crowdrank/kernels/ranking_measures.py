"""Ranking measures of many queries at once: items of a query lie side by side, `offsets` says where each query starts.

Everywhere below `scores` and the per-item values are float64 arrays of length n_items, `offsets` is an int64 array of
length n_queries + 1, and `k` is a cutoff of at least 1. `ties` is one of FIRST, AVERAGE, WORST.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..protocols import Counts, Floats
from . import ROUNDING
from .threads import bind

FIRST = 0  # tied items stay in input order
AVERAGE = 1  # expected value when tied items are shuffled
WORST = 2  # of tied items the least valuable comes first

SHORT = 64  # up to this cutoff inserting into a sorted list beats sorting the query (measured, 100 to 1000 items)
LANES = 16  # as many as two registers of the processors we measured on hold


@njit(cache=True, nogil=True)
def _sort_descending(keys, order, spare, n):
    """Stable merge sort of order[:n] by keys[order], largest first; returns how many pairs changed places."""
    moved = 0
    width = 1
    source, target = order, spare
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            left, right = low, middle
            for place in range(low, high):
                if left < middle and (right >= high or keys[source[left]] >= keys[source[right]]):
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
                    moved += middle - left
        source, target = target, source
        width *= 2
    for place in range(n):
        order[place] = source[place]
    return moved


@njit(cache=True, nogil=True)
def _score_bound(scores, low, high, k, peaks):
    """A score that at least k of items low..high-1 reach and few others: the k-th best of the lanes' best.

    Lane l holds items low + l, low + l + LANES, and so on; `peaks` is working space. None of this
    branches, which is what makes it fast.
    """
    for lane in range(LANES):
        peaks[lane] = scores[low + lane]
    for start in range(low + LANES, high - LANES + 1, LANES):
        for lane in range(LANES):
            score = scores[start + lane]
            peaks[lane] = score if score > peaks[lane] else peaks[lane]
    bound = np.inf
    for lane in range(LANES):
        better = 0
        for other in range(LANES):
            better += peaks[other] > peaks[lane]
        bound = peaks[lane] if better < k and peaks[lane] < bound else bound
    return bound


@njit(cache=True, nogil=True)
def _slack(scores, low, high):
    """Largest gap of neighbours of one query that are equal; see :mod:`~crowdrank.kernels.segments`."""
    largest = 0.0
    for item in range(low, high):
        size = abs(scores[item])
        largest = size if largest < size < np.inf else largest
    return ROUNDING * largest


@njit(cache=True, nogil=True)
def _insert_top(items, n, scores, k, slack, order, best):
    """Fill order[:k] with the k best of items[:n], equal scores in the order given; returns how many there are."""
    filled = 0
    for candidate in range(n):
        item = items[candidate]
        score = scores[item]
        if filled == k:
            if score <= best[k - 1] + slack:
                continue
            place = k - 1
        else:
            place = filled
            filled += 1
        while place > 0 and best[place - 1] + slack < score:
            best[place] = best[place - 1]
            order[place] = order[place - 1]
            place -= 1
        best[place] = score
        order[place] = item
    return filled


@njit(cache=True, nogil=True)
def _arrange(values, scores, low, high, k, ties, slack, order, spare, best):
    """Put at least the top k items of one query into `order`, best score first; returns how many were put there.

    With AVERAGE the group of equal scores that crosses the cutoff is there as a whole.
    """
    n = high - low
    if min(k, n) <= SHORT and ties != WORST:
        bound = _score_bound(scores, low, high, k, best) if k <= LANES - 4 and n >= 3 * LANES else -np.inf
        n_candidates = 0
        for item in range(low, high):
            spare[n_candidates] = item
            n_candidates += scores[item] >= bound - slack
        n_placed = _insert_top(spare, n_candidates, scores, min(k, n), slack, order, best)
        if ties == AVERAGE and n_placed < n:
            last = best[n_placed - 1]
            inside = 0
            for place in range(n_placed):
                inside += best[place] <= last + slack
            for candidate in range(n_candidates):
                if last - slack <= scores[spare[candidate]] <= last + slack:
                    if inside > 0:  # the earliest of the equal ones are in already
                        inside -= 1
                    else:
                        order[n_placed] = spare[candidate]
                        n_placed += 1
        return n_placed
    for place in range(n):
        order[place] = low + place
    if ties == WORST:  # items of equal score and value are interchangeable, so reversing does no harm
        _sort_descending(values, order, spare, n)
        order[:n] = order[:n][::-1].copy()
    _sort_descending(scores, order, spare, n)
    _mend_groups(values, scores, order, spare, n, ties, slack)
    return n


@njit(cache=True, nogil=True)
def _sort_query(values, low, n, order, spare):
    """Fill order[:n] with the items of a query, which begin at `low`, the largest value first."""
    for place in range(n):
        order[place] = low + place
    _sort_descending(values, order, spare, n)


@njit(cache=True, nogil=True)
def _mend_groups(values, scores, order, spare, n, ties, slack):
    """Put items of order[:n] that only rounding has ordered into the order of ties."""
    start = 0
    while start < n:
        end = _group_end(scores, order, start, n, AVERAGE, slack)
        if scores[order[end - 1]] < scores[order[start]]:
            group = order[start:end]
            group.sort()
            if ties == WORST:
                _sort_descending(values, group, spare, end - start)
                group[:] = group[::-1].copy()
        start = end


@njit(cache=True, nogil=True)
def _group_end(scores, order, start, n, ties, slack):
    """End of the group of items that share a place with the one at `start`; one item unless ties are averaged."""
    end = start + 1
    if ties == AVERAGE:
        while end < n and scores[order[end]] >= scores[order[end - 1]] - slack:
            end += 1
    return end


def level(values: Floats, offsets: Counts) -> Floats:
    """Values with each group of equal ones of a query at the largest of them: (n_items,)."""
    return bind(_by_groups, values, offsets, False)()


def middle_ranks(values: Floats, offsets: Counts) -> Floats:
    """Rank of each item in its query, 1 for the largest value, equal values sharing their mean rank: (n_items,)."""
    return bind(_by_groups, values, offsets, True)()


@njit(cache=True, nogil=True)
def _by_groups(values, offsets, as_rank):
    """The largest value of each item's group of equal ones, or the mean rank of the group."""
    of_items = np.empty(len(values))
    order, spare, _ = _buffers(offsets, 1)
    for query in range(len(offsets) - 1):
        low = offsets[query]
        n = offsets[query + 1] - low
        slack = _slack(values, low, low + n)
        _sort_query(values, low, n, order, spare)
        start = 0
        while start < n:
            end = _group_end(values, order, start, n, AVERAGE, slack)
            of_group = (start + 1 + end) / 2 if as_rank else values[order[start]]
            for place in range(start, end):
                of_items[order[place]] = of_group
            start = end
    return of_items


@njit(cache=True, nogil=True)
def _place_query(values, scores, offsets, query, k, ties, order, spare, best):
    """Arrange a query; return how many items were placed, how many places count, and how far equal scores may differ.

    Places down to ``k`` count that hold a ranked item; those with a score of minus infinity were not ranked.
    """
    low, high = offsets[query], offsets[query + 1]
    slack = _slack(scores, low, high)
    n_placed = _arrange(values, scores, low, high, k, ties, slack, order, spare, best)
    depth = min(k, n_placed)
    while depth > 0 and scores[order[depth - 1]] == -np.inf:
        depth -= 1
    return n_placed, depth, slack


@njit(cache=True, nogil=True)
def _buffers(offsets, k):
    """Working space for `_arrange`: items in order, items set aside, scores of the best."""
    longest = 1
    for query in range(len(offsets) - 1):
        longest = max(longest, offsets[query + 1] - offsets[query])
    return np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(max(min(k, longest), LANES))


@njit(cache=True, nogil=True)
def discounted_gain(values, scores, offsets, k, ties, exponential, discount):
    """Sum over the top k of gain times discount, for each query.

    The gain of an item is its value, or 2 ** value - 1 if `exponential`; `discount` has an entry for each of the first
    min(k, items of the largest query) places. Returns (n_queries,).
    """
    total = np.zeros(len(offsets) - 1)
    order, spare, best = _buffers(offsets, k)
    for query in range(len(total)):
        n_placed, depth, slack = _place_query(values, scores, offsets, query, k, ties, order, spare, best)
        start = 0
        while start < depth:
            end = _group_end(scores, order, start, n_placed, ties, slack)
            gain = 0.0
            for place in range(start, end):
                value = values[order[place]]
                gain += 2.0**value - 1.0 if exponential else value
            weight = 0.0
            for place in range(start, min(end, depth)):
                weight += discount[place]
            total[query] += gain / (end - start) * weight
            start = end
    return total


@njit(cache=True, nogil=True)
def ideal_gain(values, offsets, k, exponential, discount):
    """Largest possible sum over the top k of gain times discount, for each query.

    Whole values below 64, which grades are, are counted and not sorted. Returns (n_queries,).
    """
    total = np.zeros(len(offsets) - 1)
    order, spare, best = _buffers(offsets, k)
    counts = np.zeros(64, np.int64)
    for query in range(len(total)):
        low, high = offsets[query], offsets[query + 1]
        counts[:] = 0
        whole = True
        for item in range(low, high):
            value = values[item]
            level = int(value) if 0.0 <= value < 64.0 else 0
            whole = whole and level == value
            counts[level] += 1
        place, depth = 0, min(k, high - low)
        if whole:
            level = 63
            while level > 0 and place < depth:
                if counts[level] > 0:
                    gain = 2.0**level - 1.0 if exponential else float(level)
                    end = min(place + counts[level], depth)
                    while place < end:
                        total[query] += gain * discount[place]
                        place += 1
                level -= 1
            continue
        _arrange(values, values, low, high, k, FIRST, 0.0, order, spare, best)
        for place in range(depth):
            value = values[order[place]]
            total[query] += (2.0**value - 1.0 if exponential else value) * discount[place]
    return total


@njit(cache=True, nogil=True)
def average_precision(relevant, scores, offsets, k, ties):
    """Sum over relevant items in the top k of the precision at their place, by the number of relevant items.

    `relevant` holds 0 and 1; a query without relevant items gets 0. Within a tied group of n items, r of them relevant,
    a place holds a relevant item with probability r / n, and then the i - 1 group places above it hold
    (i - 1) (r - 1) / (n - 1) relevant ones on average, which makes the expected value exact. Returns (n_queries,).
    """
    result = np.zeros(len(offsets) - 1)
    order, spare, best = _buffers(offsets, k)
    for query in range(len(result)):
        n_relevant = relevant[offsets[query] : offsets[query + 1]].sum()
        if n_relevant == 0:
            continue
        n_placed, depth, slack = _place_query(relevant, scores, offsets, query, k, ties, order, spare, best)
        above = 0.0
        start = 0
        while start < depth:
            end = _group_end(scores, order, start, n_placed, ties, slack)
            n = end - start
            here = 0.0
            for place in range(start, end):
                here += relevant[order[place]]
            slope = (here - 1) / (n - 1) if n > 1 else 0.0
            for place in range(start, min(end, depth)):
                result[query] += here / n * (above + 1 + (place - start) * slope) / (place + 1)
            above += here
            start = end
        result[query] /= n_relevant
    return result


@njit(cache=True, nogil=True)
def reciprocal_rank(relevant, scores, offsets, k, ties):
    """One by the rank of the first relevant item if that is among the top k, else 0.

    In a tied group of n items, r of them relevant, the first relevant one is at place i with probability
    C(n - i, r - 1) / C(n, r). Returns (n_queries,).
    """
    result = np.zeros(len(offsets) - 1)
    order, spare, best = _buffers(offsets, k)
    for query in range(len(result)):
        n_placed, depth, slack = _place_query(relevant, scores, offsets, query, k, ties, order, spare, best)
        start = 0
        while start < depth:
            end = _group_end(scores, order, start, n_placed, ties, slack)
            n = end - start
            here = 0.0
            for place in range(start, end):
                here += relevant[order[place]]
            if here > 0:
                chance = here / n
                for place in range(start, min(end, depth)):
                    result[query] += chance / (place + 1)
                    behind = end - place - 1
                    chance *= (behind - here + 1) / behind if behind > 0 else 0.0
                break
            start = end
    return result


@njit(cache=True, nogil=True)
def expected_reciprocal_rank(stop, scores, offsets, k, ties):
    """Expected 1 / rank at which a reader stops who stops at an item with probability `stop`.

    In a tied group the mean product of m of the n chances to go on is built up item by item,
    M(m, n) = (n - m) / n M(m, n - 1) + m / n (1 - stop) M(m - 1, n - 1), in time n min(n, k). Returns (n_queries,).
    """
    result = np.zeros(len(offsets) - 1)
    order, spare, best = _buffers(offsets, k)
    product = np.empty(len(best) + 1)
    for query in range(len(result)):
        n_placed, depth, slack = _place_query(stop, scores, offsets, query, k, ties, order, spare, best)
        reading = 1.0
        start = 0
        while start < depth and reading > 0:
            end = _group_end(scores, order, start, n_placed, ties, slack)
            kept = min(end, depth) - start
            product[: kept + 1] = 0.0
            product[0] = 1.0
            for n in range(1, end - start + 1):
                go_on = 1.0 - stop[order[start + n - 1]]
                for m in range(min(n, kept), 0, -1):
                    product[m] = ((n - m) * product[m] + m * go_on * product[m - 1]) / n
            for m in range(1, kept + 1):
                result[query] += reading * (product[m - 1] - product[m]) / (start + m)
            reading *= product[kept]
            start = end
    return result


@njit(cache=True, nogil=True)
def pair_counts(truth, scores, offsets):
    """Pairs of items tied in truth, tied in scores, tied in both, and ordered in opposite ways (Knight 1966).

    Both are what `level` makes of them. Time is n log n. Returns (n_queries, 4).
    """
    counts = np.zeros((len(offsets) - 1, 4), np.int64)
    order, spare, _ = _buffers(offsets, 1)
    for query in range(len(counts)):
        low = offsets[query]
        n = offsets[query + 1] - low
        _sort_query(scores, low, n, order, spare)
        same = 0
        for place in range(1, n):
            same = same + 1 if scores[order[place]] == scores[order[place - 1]] else 0
            counts[query, 1] += same
        _sort_descending(truth, order, spare, n)
        same, both = 0, 0
        for place in range(1, n):
            tied = truth[order[place]] == truth[order[place - 1]]
            same = same + 1 if tied else 0
            both = both + 1 if tied and scores[order[place]] == scores[order[place - 1]] else 0
            counts[query, 0] += same
            counts[query, 2] += both
        counts[query, 3] = _sort_descending(scores, order, spare, n)
    return counts


@njit(cache=True, nogil=True)
def _above(tree, place):
    """Sum of the first `place` counts of a Fenwick tree."""
    total = 0
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


@njit(cache=True, nogil=True)
def precise_above(truth_ranks, scores, offsets):
    """Sum over the items below the top of the share of items above them that belong above, for each query.

    `truth_ranks` are `middle_ranks` of the truth. A pair tied in truth counts one half, a group of equal scores counts
    with its expected value in random order: at its place j, after `start` items, on average `belong` / n + (j - 1) / 2
    of the items above belong there, where `belong` sums, over the n items of the group, the earlier groups' items that
    belong above. Returns (n_queries,).
    """
    result = np.zeros(len(offsets) - 1)
    order, spare, _ = _buffers(offsets, 1)
    tree = np.empty(len(order) + 1, np.int64)
    for query in range(len(result)):
        low = offsets[query]
        n = offsets[query + 1] - low
        tree[: n + 1] = 0
        _sort_query(scores, low, n, order, spare)
        slack = _slack(scores, low, low + n)
        start = 0
        while start < n:
            end = _group_end(scores, order, start, n, AVERAGE, slack)
            belong = 0.0
            for place in range(start, end):
                middle = int(truth_ranks[order[place]])
                belong += (_above(tree, middle - 1) + _above(tree, middle)) / 2
            for place in range(max(start, 1), end):
                result[query] += (belong / (end - start) + (place - start) / 2) / place
            for place in range(start, end):
                middle = int(truth_ranks[order[place]])
                while middle <= n:
                    tree[middle] += 1
                    middle += middle & -middle
            start = end
    return result


@njit(cache=True, nogil=True)
def gather(codes, n_codes):
    """Bring equal codes side by side: where each code starts, (n_codes + 1,), and the rows in that order, (n_rows,)."""
    offsets = np.zeros(n_codes + 1, np.int64)
    for row in range(len(codes)):
        offsets[codes[row] + 1] += 1
    for code in range(n_codes):
        offsets[code + 1] += offsets[code]
    rows = np.empty(len(codes), np.int64)
    free = offsets[:-1].copy()
    for row in range(len(codes)):
        rows[free[codes[row]]] = row
        free[codes[row]] += 1
    return offsets, rows
