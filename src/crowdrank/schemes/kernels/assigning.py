"""Hot loop of buying judgments: who is asked about what."""

from __future__ import annotations

import numpy as np
from numba import njit

NOBODY, UNWORTHY, UNAFFORDABLE = -1, -2, -3
"""Why a judgment is not asked for."""


@njit(cache=True, nogil=True)
def _free(who, judged, latest, former, chosen):
    """Whether an annotator neither judged a thing nor is asked about it yet; ``former`` chains the thing's choices."""
    for other in judged:
        if other == who:
            return False
    while latest >= 0:
        if chosen[latest] == who:
            return False
        latest = former[latest]
    return True


@njit(cache=True, nogil=True)
def assign(thing, gain, starts, judged_by, by_price, tiers, price, capacity, budget, least, draws):
    """Give each judgment, in turn, to one of the cheapest annotators who can still be asked about its thing.

    Parameters
    ----------
    thing
        What each judgment is about, shape (n_judgments,).
    gain
        What each is expected to be worth, shape (n_judgments,).
    starts, judged_by
        Annotators who judged thing t already are ``judged_by[starts[t]:starts[t + 1]]``.
    by_price
        Annotators by rising price, shape (n_annotators,).
    tiers
        Those of equal price are ``by_price[tiers[p]:tiers[p + 1]]``; who of them is asked is drawn.
    price, capacity
        Price of each annotator, and how many judgments each may be asked for, shape (n_annotators,).
    budget
        What may be spent.
    least
        Gain for each unit of money below which nothing is bought.
    draws
        Uniform numbers in [0, 1), shape (n_judgments,).

    Returns
    -------
    ndarray
        The annotator of each judgment, or why there is none, shape (n_judgments,).
    """
    members, left = by_price.copy(), capacity.copy()
    live = tiers[1:] - tiers[:-1]
    for tier in range(len(live)):
        for place in range(tiers[tier + 1] - 1, tiers[tier] - 1, -1):
            if left[members[place]] <= 0:
                last = tiers[tier] + live[tier] - 1
                members[place], members[last] = members[last], members[place]
                live[tier] -= 1
    chosen = np.full(len(thing), NOBODY, np.int32)
    latest = np.full(len(starts) - 1, -1, np.int64)
    former = np.full(len(thing), -1, np.int64)
    for unit in range(len(thing)):
        of = thing[unit]
        for tier in range(len(live)):
            size, first = live[tier], tiers[tier]
            begin, free_place = int(draws[unit] * size), -1
            for step in range(size):
                place = first + (begin + step) % size
                judged = judged_by[starts[of] : starts[of + 1]]
                if _free(members[place], judged, latest[of], former, chosen):
                    free_place = place
                    break
            if free_place < 0:
                continue
            who = members[free_place]
            if gain[unit] < least * price[who]:
                chosen[unit] = UNWORTHY
            elif price[who] > budget * (1 + 1e-12):
                chosen[unit] = UNAFFORDABLE
            else:
                chosen[unit], former[unit], latest[of] = who, latest[of], unit
                budget -= price[who]
                left[who] -= 1
                if left[who] <= 0:
                    last = first + size - 1
                    members[free_place], members[last] = members[last], members[free_place]
                    live[tier] -= 1
            break
    return chosen


@njit(cache=True, nogil=True)
def choose_annotators(item, information, price, capacity, starts, judged_by, budget, most):
    """Give each item, in turn, the annotator who tells most of it for the price among those who can be asked.

    Parameters
    ----------
    item
        Row of the item of each grade to buy, the most urgent first, shape (n_grades,).
    told
        What a grade of each annotator tells of each item, shape (n_items, n_annotators).
    price, capacity
        Price of each annotator, and how many grades each may be asked for, shape (n_annotators,).
    starts, judged_by
        Annotators who graded item i already are ``judged_by[starts[i]:starts[i + 1]]``.
    budget
        What may be spent.
    most
        Most grades of one item.

    Returns
    -------
    tuple
        Row of the item, annotator, and how many grades of the item were chosen before, of each grade that somebody can
        give, shape (n_chosen,) each.
    """
    left, number = capacity.copy(), np.zeros(len(information), np.int64)
    asked = np.full((len(information), most), -1, np.int64)
    row, by, before = np.empty(len(item), np.int64), np.empty(len(item), np.int64), np.empty(len(item), np.int64)
    n_chosen = 0
    for unit in range(len(item)):
        of = item[unit]
        best, chosen = 0.0, -1
        for who in range(len(price)):
            if left[who] <= 0 or price[who] > budget * (1 + 1e-12) or information[of, who] / price[who] <= best:
                continue
            free = True
            for place in range(starts[of], starts[of + 1]):
                free = free and judged_by[place] != who
            for place in range(number[of]):
                free = free and asked[of, place] != who
            if free:
                best, chosen = information[of, who] / price[who], who
        if chosen >= 0:
            row[n_chosen], by[n_chosen], before[n_chosen] = of, chosen, number[of]
            n_chosen += 1
            asked[of, number[of]] = chosen
            number[of] += 1
            left[chosen] -= 1
            budget -= price[chosen]
    return row[:n_chosen], by[:n_chosen], before[:n_chosen]
