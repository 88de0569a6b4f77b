"""Hot loop of buying for a ranker: what an answer is expected to add to the nDCG of the order shown."""

from __future__ import annotations

import numpy as np
from numba import njit

_MIN_LEVEL_PROBABILITY = 1e-6
"""A level of the item asked about that is less probable than this is not looked at."""

_EQUAL_MEANS = 1e-9
"""Expected gains that differ by less than this share of the largest gain are equal, and their items share places."""


@njit(cache=True, nogil=True)
def _draw_levels(posterior, weights, uniforms, shift, levels):
    """Set a level for each draw, by probabilities in proportion to posterior times weights."""
    total = 0.0
    for level in range(len(posterior)):
        total += posterior[level] * weights[level]
    n_draws = len(levels)
    for draw in range(n_draws):
        left = uniforms[(draw + shift) % n_draws] * total
        level = 0
        while level < len(posterior) - 1 and left >= posterior[level] * weights[level]:
            left -= posterior[level] * weights[level]
            level += 1
        # rounding may leave the last level, which may be impossible
        while level > 0 and posterior[level] * weights[level] == 0.0:
            level -= 1
        levels[draw] = level


@njit(cache=True, nogil=True)
def _mean_inverse_ideal(at_least, known, level, own, drawn, steps, ideal):
    """Mean over draws of 1 / ideal DCG, the item of levels ``known`` having ``level``, and that of ``own`` ``drawn``.

    ``at_least`` (n_draws, n_levels) counts the items of each level or above; ``steps`` are the differences of the gains
    of levels, and ``ideal`` the sum of the discounts of the first places.
    """
    total = 0.0
    most = len(ideal) - 1
    for draw in range(len(known)):
        value = 0.0
        for of_level in range(len(steps)):
            number = at_least[draw, of_level]
            number += (level >= of_level) - (known[draw] >= of_level)
            number += (drawn[draw] >= of_level) - (own[draw] >= of_level)
            value += steps[of_level] * ideal[min(number, most)]
        total += 1.0 / value
    return total / len(known)


@njit(cache=True, nogil=True)
def _mean_loss(at_least, own, drawn, here, steps, ideal):
    """Mean over draws of (discount of an item's place in the best order - ``here``) / ideal DCG; its levels as above.

    Items of one level share the places that they have in the best order.
    """
    total = 0.0
    most, n_levels = len(ideal) - 1, len(steps)
    for draw in range(len(own)):
        value, level = 0.0, drawn[draw]
        above = up_to = 0
        for of_level in range(n_levels):
            number = at_least[draw, of_level] + (level >= of_level) - (own[draw] >= of_level)
            value += steps[of_level] * ideal[min(number, most)]
            if of_level == level:
                up_to = number
            elif of_level == level + 1:
                above = number
        best = (ideal[min(up_to, most)] - ideal[min(above, most)]) / (up_to - above)
        total += (best - here) / value
    return total / len(own)


@njit(cache=True, nogil=True)
def _shown_ndcg(sizes, values, group, alone, own, ideal):
    """Expected nDCG of groups of equal items, one more item of value ``own`` standing in a group, or before it."""
    total, place, most = 0.0, 0, len(ideal) - 1
    for number in range(len(sizes) + 1):
        if number == group and alone:
            total += own * (ideal[min(place + 1, most)] - ideal[min(place, most)])
            place += 1
        if number == len(sizes):
            break
        size, value = sizes[number], sizes[number] * values[number]
        if number == group and not alone:
            size += 1
            value += own
        if size > 0:
            total += value / size * (ideal[min(place + size, most)] - ideal[min(place, most)])
        place += size
    return total


@njit(cache=True, nogil=True)
def expected_changes(order, offsets, candidate, posterior, gain, confusions, discount, uniforms):
    """Return the growth of expected nDCG by an answer about each candidate; of each query what it can gain at all.

    The last array is the expected nDCG of each query.

    Expectations are over independent levels of the items and over the answer; items are shown by falling expected gain,
    and equal ones in random order.

    Parameters
    ----------
    order, offsets
        Items as they are shown, query after query; those of query ``q`` are ``order[offsets[q]:offsets[q + 1]]``.
    candidate
        Row of each item in the result, -1 for those that are not asked about, shape (n_items,).
    posterior, gain
        Probability of each level, (n_items, n_levels), and the gain of each, rising and not below 0, (n_levels,).
    confusions
        Probability of each answer for each true level by each annotator, (n_annotators, n_levels, n_levels).
    discount
        Discounts of the places that count, (n_places,).
    uniforms
        Numbers between 0 and 1 that draw levels, (n_rows, n_draws), each row spread evenly; an even number of rows.
    """
    n_levels, n_places, n_draws = len(gain), len(discount), uniforms.shape[1]
    n_candidates = 0
    for row in candidate:
        n_candidates = max(n_candidates, row + 1)
    changes = np.zeros((n_candidates, len(confusions)))
    possible, expected = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1)
    steps = gain.copy()
    steps[1:] = np.diff(gain)
    ideal = np.zeros(n_places + 1)
    ideal[1:] = np.cumsum(discount)
    half = len(uniforms) // 2
    ones, nothing = np.ones(n_levels), np.zeros(n_draws, np.int32)
    worth, after = np.empty(n_levels), np.empty(n_levels)
    near = _EQUAL_MEANS * gain[n_levels - 1]
    for query in range(len(offsets) - 1):
        shown = order[offsets[query] : offsets[query + 1]]
        if gain[n_levels - 1] <= 0.0 or not len(shown):
            continue
        means = posterior[shown] @ gain
        starts = np.zeros(len(shown), np.int64)
        group_of = np.zeros(len(shown), np.int64)
        for place in range(1, len(shown)):
            new = means[place] < means[starts[place - 1]] - near
            starts[place] = place if new else starts[place - 1]
            group_of[place] = group_of[place - 1] + new
        n_groups = group_of[min(len(shown), n_places) - 1] + 1
        sizes = np.bincount(group_of)[:n_groups]
        first = np.zeros(n_groups, np.int64)
        for place in range(len(shown) - 1, -1, -1):
            if group_of[place] < n_groups:
                first[group_of[place]] = place
        levels = np.empty((len(shown), n_draws), np.int32)
        at_least = np.zeros((n_draws, n_levels), np.int32)
        for place in range(len(shown)):
            _draw_levels(posterior[shown[place]], ones, uniforms[place % half], place // half, levels[place])
            for draw in range(n_draws):
                for level in range(levels[place, draw] + 1):
                    at_least[draw, level] += 1
        # levels weighed by their gains: E[g / ideal] = E[g] E'[1 / ideal], which rare levels do not make uncertain
        biased = np.empty((len(shown), n_draws), np.int32)
        for place in range(len(shown)):
            if means[place] <= 0.0:
                continue
            _draw_levels(posterior[shown[place]], gain, uniforms[half + place % half], place // half, biased[place])
            here, group = 0.0, group_of[place]
            if group < n_groups:
                end = min(first[group] + sizes[group], n_places)
                here = (ideal[end] - ideal[first[group]]) / sizes[group]
            possible[query] += means[place] * _mean_loss(at_least, levels[place], biased[place], here, steps, ideal)
            if here > 0.0:
                expected[query] += here * means[place] * _mean_inverse_ideal(
                    at_least, nothing, 0, levels[place], biased[place], steps, ideal
                )  # fmt: skip
        possible[query] = max(possible[query], 0.0)
        inverse, values = np.zeros((n_groups, n_levels)), np.zeros(n_groups)
        for place in range(len(shown)):
            row = candidate[shown[place]]
            if row < 0:
                continue
            own, own_group = posterior[shown[place]], min(group_of[place], n_groups)
            # groups without the item, and where it stands after each answer
            others = sizes.copy()
            if own_group < n_groups:
                others[own_group] -= 1
            moves = False
            seats = np.empty((len(confusions), n_levels), np.int64)
            joins = np.zeros((len(confusions), n_levels), np.bool_)
            for who in range(len(confusions)):
                for answer in range(n_levels):
                    total, mean = 0.0, 0.0
                    for level in range(n_levels):
                        joint = own[level] * confusions[who, level, answer]
                        total += joint
                        mean += joint * gain[level]
                    mean = mean / total if total > 0.0 else means[place]
                    seat = 0
                    while seat < n_groups and means[first[seat]] > mean + near:
                        seat += 1
                    seats[who, answer] = seat
                    joins[who, answer] = seat < n_groups and means[first[seat]] >= mean - near
                    stays = (joins[who, answer] and seat == own_group) or seat == n_groups == own_group
                    moves = moves or not stays
            if not moves:
                continue
            for level in range(n_levels):
                inverse[:, level] = 0.0
                worth[level] = 0.0
                if own[level] < _MIN_LEVEL_PROBABILITY:
                    continue
                for group in range(n_groups):
                    n_looked_at = 0
                    for other in range(first[group], min(first[group] + sizes[group], n_places + 1)):
                        if other != place and means[other] > 0.0:
                            n_looked_at += 1
                            inverse[group, level] += means[other] * _mean_inverse_ideal(
                                at_least, levels[place], level, levels[other], biased[other], steps, ideal
                            )  # fmt: skip
                    inverse[group, level] /= max(n_looked_at, 1)
                if gain[level] > 0.0:
                    worth[level] = gain[level] * _mean_inverse_ideal(
                        at_least, levels[place], level, nothing, nothing, steps, ideal
                    )  # fmt: skip
            for who in range(len(confusions)):
                value = 0.0
                for answer in range(n_levels):
                    for level in range(n_levels):
                        after[level] = own[level] * confusions[who, level, answer]
                    for group in range(n_groups):
                        values[group] = 0.0
                        for level in range(n_levels):
                            values[group] += after[level] * inverse[group, level]
                    of_own = 0.0
                    for level in range(n_levels):
                        of_own += after[level] * worth[level]
                    alone = not joins[who, answer]
                    value += _shown_ndcg(others, values, seats[who, answer], alone, of_own, ideal)
                    value -= _shown_ndcg(others, values, own_group, own_group == n_groups, of_own, ideal)
                changes[row, who] = max(value, 0.0)
    return changes, possible, expected
