"""Slow, obviously right: pairs and annotators chosen one after the other by what each answer decides for its price."""

import math

import numpy as np


def weight(gap, spread, alpha, square):
    """Curvature of an answer in the difference of two scores."""
    kappa = 1 / math.sqrt(1 + math.pi / 8 * square * spread)
    chance = 1 / (1 + math.exp(-kappa * alpha * gap))
    return square * chance * (1 - chance)


def spread_of(covariance, i, j):
    """Variance of the difference of two scores."""
    return covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]


def stakes(pairs, score, covariance, counts=None):
    """How fast the number of wrong orders falls with the variance of each pair, ``counts`` how much each counts."""
    found = []
    for p, (i, j) in enumerate(pairs):
        spread = spread_of(covariance, i, j)
        density = math.exp(-((score[i] - score[j]) ** 2) / (2 * spread)) / math.sqrt(2 * math.pi * spread)
        # the slope of density * sqrt(2 v / pi) at v = spread
        found.append(density / math.sqrt(2 * math.pi * spread) * (1 if counts is None else counts[p]))
    return found


def choose(pairs, score, covariance, annotators, asked, budget, number, counts=None):
    """Return (pair, annotator, worth) of each choice, and the covariance at the end; all is weighed anew each time.

    ``pairs`` are all pairs of the queries, ``covariance`` is that of all items, ``annotators`` a list of (alpha,
    square, price, capacity), ``asked`` a set of (pair, annotator).
    """
    worth_of = stakes(pairs, score, covariance, counts)
    covariance, asked = covariance.copy(), set(asked)
    left = [capacity for *_, capacity in annotators]
    chosen = []
    while len(chosen) < number:
        options = []
        for p, (i, j) in enumerate(pairs):
            spread, pull = spread_of(covariance, i, j), covariance[:, i] - covariance[:, j]
            reach = sum(worth * (pull[k] - pull[m]) ** 2 for worth, (k, m) in zip(worth_of, pairs, strict=True))
            for a, (alpha, square, price, _) in enumerate(annotators):
                if left[a] > 0 and price <= budget and (p, a) not in asked:
                    heavy = weight(score[i] - score[j], spread, alpha, square)
                    share = heavy / (1 + heavy * spread)
                    options.append((share * reach / price, p, a, share, pull))
        if not options:
            break
        worth, p, a, share, pull = max(options, key=lambda option: option[0])
        chosen.append((p, a, worth * annotators[a][2]))
        asked.add((p, a))
        left[a] -= 1
        budget -= annotators[a][2]
        covariance -= share * np.outer(pull, pull)
    return chosen, covariance


def wrong(gap, spread, left, n_points=4001):
    """Expected probability that an order is wrong once its variance is ``left``, by adding up where the mean may be."""
    if left >= spread:
        return 0.5 * math.erfc(abs(gap) / math.sqrt(2 * spread))
    sd = math.sqrt(spread - left)
    points = np.linspace(-8, 8, n_points)
    density = np.exp(-0.5 * points**2)
    after = [0.5 * math.erfc(abs(gap + sd * point) / math.sqrt(2 * left)) for point in points]
    return float((density * after).sum() / density.sum())
