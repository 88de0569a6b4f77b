"""Losses of the scores of lists, with their slopes, whatever gives the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..protocols import Floats
from .lists import Lists


class ScoreLoss(NamedTuple):
    """A convex loss at some scores: its value, its slope in each score, and what multiplies by its curvature."""

    value: float
    slopes: Floats
    bend: Callable[[int, int, Floats], Floats]
    """``bend(first, last, block)``: rows of queries ``first`` up to ``last`` times the second derivative."""


def best_of_query(lists: Lists) -> Callable[[Floats], ScoreLoss]:
    """Return the mean over queries of the cross entropy of the chances to be best that targets and scores give."""
    from ..kernels.list_losses import bend_chances, choice_chances

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
    from ..kernels.list_losses import bend_choices, ordered_choices

    offsets, weight = lists.offsets, lists.weights
    tie = lists.tie_starts() if ties_together else np.arange(lists.n_places)
    # weights are in the sum over places already, so that queries need none of their own
    factor = np.full(lists.n_queries, 1 / lists.item_weights().sum())

    def loss(scores: Floats) -> ScoreLoss:
        value, slopes = ordered_choices(scores, weight, tie, offsets, factor)

        def bend(first: int, last: int, block: Floats) -> Floats:
            return bend_choices(block, scores, weight, tie, offsets, factor, first, last)

        return ScoreLoss(value, slopes, bend)

    return loss


def swap_gains(
    lists: Lists, gain: Floats, *, truncation: int | None, sigma: float, normalize: bool
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return what gives LambdaRank's slopes, and the curvature that goes with them, at scores of the places.

    See :func:`crowdrank.kernels.lambdas.lambda_slopes`; ranks, truncation and the ideal DCG count items.
    """
    from ..kernels.lambdas import lambda_lists, lambda_slopes
    from ..kernels.ranking_measures import ideal_gain

    longest = int(lists.n_items.max())
    places = longest if truncation is None else min(truncation, longest)
    discount = 1.0 / np.log2(np.arange(2.0, places + 2.0))
    ideal = ideal_gain(lists.on_items(gain), lists.item_offsets, places, False, discount)
    laid = lambda_lists(gain, lists.weights, lists.item, lists.offsets, lists.item_offsets, ideal, places)
    return lambda scores: lambda_slopes(laid, scores, sigma, normalize)
