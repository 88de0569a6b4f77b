"""Slow, obviously right: expected nDCG over every combination of levels, before and after an answer."""

import itertools

import numpy as np

from crowdrank.metrics import ndcg


def expected(mean, posterior, gain, weight=None):
    """The expected nDCG@10 of the order by ``mean``; ``weight`` multiplies the probability of each combination."""
    total = 0.0
    for levels in itertools.product(range(len(gain)), repeat=len(posterior)):
        probability = np.prod([row[level] for row, level in zip(posterior, levels, strict=True)])
        if weight is not None:
            probability *= weight(levels)
        if probability > 0:
            total += probability * ndcg(gain[list(levels)], mean, gain="linear")
    return total


def change(posterior, gain, confusion, item):
    """The growth of the expected nDCG by an answer about one item."""
    now = posterior @ gain
    total = 0.0
    for answer in range(len(gain)):
        likelihood = confusion[:, answer]
        own = posterior[item] * likelihood
        after = now.copy()
        after[item] = own @ gain / own.sum()
        total += expected(after, posterior, gain, lambda levels, likelihood=likelihood: likelihood[levels[item]])
    return total - expected(now, posterior, gain)


def possible(posterior, gain):
    """What is lacking of the expected nDCG of the best orders."""
    nothing = np.prod(posterior[:, gain <= 0].sum(axis=1))
    return 1 - nothing - expected(posterior @ gain, posterior, gain)
