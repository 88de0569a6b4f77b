"""Slow, obviously right twins of the Plackett-Luce model with ties."""

from itertools import permutations, product
from math import exp, log

import numpy as np


def ties_of(rank):
    """Places of the rows of each tie, best first."""
    return [[place for place, other in enumerate(rank) if other == value] for value in sorted(set(rank))]


def of_order(scores):
    """Log-probability of items with these scores, best first, by one choice after the other."""
    return sum(scores[p] - log(sum(exp(s) for s in scores[p:])) for p in range(len(scores)))


def of_all_orders(scores, rank):
    """Mean log-probability of all orders that the ranks allow."""
    orders = [[scores[k] for tie in chosen for k in tie] for chosen in product(*map(permutations, ties_of(rank)))]
    return sum(map(of_order, orders)) / len(orders)


def of_ranking(scores, rank, ties):
    """Log-likelihood of one ranking as the kernels have it, from the strengths of each tie and of those below."""
    total = 0.0
    for tie in ties_of(rank):
        own = [exp(scores[k]) for k in tie]
        below = sum(exp(s) for s, r in zip(scores, rank, strict=True) if r > rank[tie[0]])
        n, n_below = len(tie), sum(r > rank[tie[0]] for r in rank)
        for w in own:
            if n == 1:
                total += log(w / (w + below))
            elif ties == "split":
                mean = (sum(own) - w) / (n - 1)
                total += sum(log(w / (w + below + (left - 1) * mean)) for left in range(1, n + 1)) / n
            else:
                told = sum((n_below + 1) / (n_below + place) for place in range(1, n + 1)) / n
                total += told * log(w / (w + below))
    return total


def log_likelihood(rankings, scores, ties="split", factor=None):
    """Log-likelihood of rankings; factors multiply the scores that each of them sees."""
    total = 0.0
    for number, (start, stop) in enumerate(zip(rankings.offsets[:-1], rankings.offsets[1:], strict=True)):
        times = 1.0 if factor is None else factor[number]
        seen = [times * scores[item] for item in rankings.item[start:stop]]
        total += rankings.row_weight[number] * of_ranking(seen, rankings.rank[start:stop].tolist(), ties)
    return total


def penalised(rankings, ties, ridge):
    """The objective as a function of the scores."""
    return lambda scores: log_likelihood(rankings, scores, ties) - 0.5 * ridge * float(np.sum(np.square(scores)))
