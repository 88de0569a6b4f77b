"""Likelihood of rankings around truths that features tell something of, summed over all truths."""

from itertools import permutations

import numpy as np

from . import orders


def log_likelihood(queries, features, theta, weights):
    """Log probability of what annotators ranked: a list of (annotator, items, ranks) of each query, without ties.

    ``features`` are a matrix for each query, ``weights`` those of the Plackett-Luce scores.
    """
    total = 0.0
    for lists, matrix in zip(queries, features, strict=True):
        n, plain = len(matrix), [(items, ranks) for _, items, ranks in lists]
        pulls = [theta[who] for who, _, _ in lists]
        logs = [
            orders.log_weight(order, plain, pulls, np.asarray(matrix) @ weights) for order in permutations(range(n))
        ]
        total += np.logaddexp.reduce(logs)
        total -= sum(orders.log_normaliser(theta[who], len(items)) for who, items, _ in lists)
    return total
