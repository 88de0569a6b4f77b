"""Losses of the scores of lists, with their slopes, whatever gives the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..protocols import Counts, Floats
from .training_rows import Lists


class ScoreLoss(NamedTuple):
    """A convex loss at some scores: its value, its slope in each score, and what multiplies by its curvature."""

    value: float
    slopes: Floats
    bend: Callable[[int, int, Floats], Floats]
    """``bend(first, last, block)``: rows of queries ``first`` up to ``last`` times the second derivative."""


def best_of_query(lists: Lists) -> Callable[[Floats], ScoreLoss]:
    """Return the mean over queries of the cross entropy of the chances to be best that targets and scores give."""
    from .kernels.losses import bend_chances, choice_chances

    offsets, weight, factor = lists.offsets, lists.weights, lists.query_weights()
    on_places = np.repeat(factor, np.diff(offsets))
    wanted = on_places * choice_chances(lists.target, weight, offsets)[0]

    def loss(scores: Floats) -> ScoreLoss:
        chances, level = choice_chances(scores, weight, offsets)

        def bend(first: int, last: int, block: Floats) -> Floats:
            return bend_chances(block, chances, factor, offsets, first, last)

        return ScoreLoss(float(factor @ level - wanted @ scores), on_places * chances - wanted, bend)

    return loss


def better_first(lists: Lists, *, ties_together: bool = True) -> Callable[[Floats], ScoreLoss]:
    """Return the negative log-likelihood that better items are chosen before lower ones, for lists best first."""
    from .kernels.losses import bend_choices, ordered_choices

    offsets, weight = lists.offsets, lists.weights
    tie = lists.tie_starts() if ties_together else np.arange(lists.n_places)
    # weights are in the sum over places already, so queries need none of their own
    factor = np.full(lists.n_queries, 1 / lists.item_weights().sum())

    def loss(scores: Floats) -> ScoreLoss:
        value, slopes = ordered_choices(scores, weight, tie, offsets, factor)

        def bend(first: int, last: int, block: Floats) -> Floats:
            return bend_choices(block, scores, weight, tie, offsets, factor, first, last)

        return ScoreLoss(value, slopes, bend)

    return loss


def likely_orders(orders: Counts, offsets: Counts) -> Callable[[Floats], ScoreLoss]:
    """Return the negative log-likelihood of whole orders of each query's places, the mean over queries and orders.

    ``orders`` (n_orders, n_places) hold the places of each query, best first; those of query ``q`` are ``offsets[q]``
    up to ``offsets[q + 1]``.
    """
    from .kernels.losses import bend_choices, ordered_choices

    weight, alone = np.ones(orders.shape[1]), np.arange(orders.shape[1])
    factor = np.full(len(offsets) - 1, 1 / (len(orders) * (len(offsets) - 1)))

    def loss(scores: Floats) -> ScoreLoss:
        total, slopes = 0.0, np.zeros(len(scores))
        for order in orders:
            value, along = ordered_choices(scores[order], weight, alone, offsets, factor)
            slopes[order] += along
            total += value

        def bend(first: int, last: int, block: Floats) -> Floats:
            bent, here = np.zeros_like(block), slice(offsets[first], offsets[last])
            for order in orders:
                rows = order[here] - offsets[first]
                bent[rows] += bend_choices(block[rows], scores[order], weight, alone, offsets, factor, first, last)
            return bent

        return ScoreLoss(total, slopes, bend)

    return loss


def likely_sets(sets: Floats, offsets: Counts) -> Callable[[Floats], ScoreLoss]:
    """Return the expected negative log-likelihood of the orders of each query's places, the mean over queries.

    ``sets`` are the chances of each query's 2^n sets of places to be the first ones of its order.
    """
    from .kernels.losses import bend_sets, choose_from_sets

    factor = np.full(len(offsets) - 1, 1 / (len(offsets) - 1))

    def loss(scores: Floats) -> ScoreLoss:
        value, slopes = choose_from_sets(scores, sets, offsets, factor)

        def bend(first: int, last: int, block: Floats) -> Floats:
            return bend_sets(block, scores, sets, offsets, factor, first, last)

        return ScoreLoss(value, slopes, bend)

    return loss


def swap_gains(
    lists: Lists, gain: Floats, *, truncation: int | None, sigma: float, normalize: bool
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return what gives LambdaRank's slopes, and the curvature that goes with them, at scores of the places.

    See :func:`crowdrank.rankers.kernels.losses.lambda_slopes`; ranks, truncation and the ideal DCG count items.
    """
    from ..kernels.ranking_measures import ideal_gain
    from .kernels.losses import lambda_lists, lambda_slopes

    longest = int(lists.n_items.max())
    places = longest if truncation is None else min(truncation, longest)
    discount = 1.0 / np.log2(np.arange(2.0, places + 2.0))
    ideal = ideal_gain(lists.on_items(gain), lists.item_offsets, places, False, discount)
    layout = lambda_lists(gain, lists.weights, lists.item, lists.offsets, lists.item_offsets, ideal, places)
    return lambda scores: lambda_slopes(layout, scores, sigma, normalize)
