"""Slow, obviously right: pairs and annotators chosen one after the other by information for a unit of money."""

import math

import numpy as np


def weight(gap, spread, alpha, square):
    """Curvature of an answer in the difference of two scores."""
    kappa = 1 / math.sqrt(1 + math.pi / 8 * square * spread)
    chance = 1 / (1 + math.exp(-kappa * alpha * gap))
    return square * chance * (1 - chance)


def choose(pairs, score, covariance, annotators, asked, budget, number):
    """Return (pair, annotator, information) of each choice; everything is weighed anew each time.

    ``covariance`` is that of all items, ``annotators`` a list of (alpha, square, price, capacity), ``asked`` a set of
    (pair, annotator).
    """
    covariance, asked = covariance.copy(), set(asked)
    left = [capacity for *_, capacity in annotators]
    chosen = []
    while len(chosen) < number:
        options = []
        for p, (i, j) in enumerate(pairs):
            spread = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
            for a, (alpha, square, price, _) in enumerate(annotators):
                if left[a] > 0 and price <= budget and (p, a) not in asked:
                    heavy = weight(score[i] - score[j], spread, alpha, square)
                    options.append((math.log(1 + heavy * spread) / price, p, a, heavy, spread))
        if not options:
            break
        worth, p, a, heavy, spread = max(options, key=lambda option: option[0])
        chosen.append((p, a, worth * annotators[a][2]))
        asked.add((p, a))
        left[a] -= 1
        budget -= annotators[a][2]
        pull = covariance[:, pairs[p][0]] - covariance[:, pairs[p][1]]
        covariance -= heavy / (1 + heavy * spread) * np.outer(pull, pull)
    return chosen
