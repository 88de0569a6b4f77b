"""Sums over all rankings of a few items, one after the other, and the plainest of samplers."""

from itertools import permutations, product

import numpy as np


def kendall(one, other):
    """Pairs that two rankings of the same items order differently."""
    place = {item: p for p, item in enumerate(other)}
    return sum(place[a] > place[b] for p, a in enumerate(one) for b in one[p + 1 :])


def cayley(one, other):
    """Fewest swaps that make one ranking of the other: each step puts one item where it belongs."""
    one, swaps = list(one), 0
    for p, item in enumerate(other):
        if one[p] != item:
            q = one.index(item)
            one[p], one[q] = one[q], one[p]
            swaps += 1
    return swaps


def footrule(one, other):
    """How far all items are from their places."""
    return sum(abs(place - list(other).index(item)) for place, item in enumerate(one))


def spearman(one, other):
    """Squares of how far all items are from their places."""
    return sum((place - list(other).index(item)) ** 2 for place, item in enumerate(one))


DISTANCES = {"kendall": kendall, "cayley": cayley, "footrule": footrule, "spearman": spearman}


def extensions(items, ranks):
    """All rankings without ties that agree with one that may have some."""
    groups = [[i for i, r in zip(items, ranks, strict=True) if r == rank] for rank in sorted(set(ranks))]
    return [[i for part in parts for i in part] for parts in product(*(permutations(group) for group in groups))]


def expected_distance(theta, n, distance):
    """Mean distance of all rankings of n items to one of them, weighed by Mallows' model."""
    far = np.array([DISTANCES[distance](y, range(n)) for y in permutations(range(n))], float)
    chance = np.exp(theta * far - (theta * far).max())
    return float(chance @ far / chance.sum())


def log_normaliser(theta, n):
    """Logarithm of the sum of weights of all rankings of n items, Kendall distance."""
    return float(np.log(sum(np.exp(theta * kendall(y, range(n))) for y in permutations(range(n)))))


def posterior(n, lists, pulls, scores=None, distance="kendall"):
    """Log sum of weights, expected distance to each list, mean and variance of places, P(a above b).

    A list is a pair of items and ranks. A list with ties stands for all its extensions; with Kendall distance what is
    counted is the pairs that it does order.
    """
    orders = list(permutations(range(n)))
    logs, far = np.zeros(len(orders)), np.zeros((len(orders), len(lists)))
    for number, order in enumerate(orders):
        if scores is not None:
            weight = np.exp(np.asarray(scores, float))[list(order)]
            logs[number] += sum(np.log(weight[p] / weight[p:].sum()) for p in range(n))
        for which, (items, ranks) in enumerate(lists):
            own = [item for item in order if item in set(items)]
            if distance == "kendall":
                rank = dict(zip(items, ranks, strict=True))
                far[number, which] = sum(rank[a] > rank[b] for p, a in enumerate(own) for b in own[p + 1 :])
                logs[number] += pulls[which] * far[number, which]
            else:
                each = np.array([DISTANCES[distance](own, whole) for whole in extensions(items, ranks)], float)
                chance = np.exp(pulls[which] * each)
                far[number, which] = chance @ each / chance.sum()
                logs[number] += np.log(chance.sum())
    total = np.log(np.exp(logs - logs.max()).sum()) + logs.max()
    chance = np.exp(logs - total)
    place = np.array([[order.index(item) for item in range(n)] for order in orders])
    mean = chance @ place
    above = np.einsum("o,oab->ab", chance, place[:, :, None] < place[:, None, :])
    return total, chance @ far, mean, chance @ place**2 - mean**2, above


def log_weight(order, lists, pulls, scores=None, distance="kendall"):
    """Logarithm of what one ranking weighs, up to a constant; lists with ties go with Kendall distance only."""
    order = [int(item) for item in order]
    total = 0.0
    if scores is not None:
        left = np.asarray(scores, float)[order]
        total += sum(left[p] - np.log(np.exp(left[p:]).sum()) for p in range(len(left)))
    for (items, ranks), pull in zip(lists, pulls, strict=True):
        own, rank = [item for item in order if item in set(items)], dict(zip(items, ranks, strict=True))
        if distance == "kendall":
            total += pull * sum(rank[a] > rank[b] for p, a in enumerate(own) for b in own[p + 1 :])
        else:
            total += pull * cayley(own, items)
    return total


def random_swaps(n, lists, pulls, n_steps, rng):
    """Mean distance to each full list over a chain that swaps two random places by Metropolis' rule."""
    order, sums = list(range(n)), np.zeros(len(lists))
    far = np.array([kendall(order, items) for items, _ in lists])
    for _ in range(n_steps):
        p, q = rng.choice(n, 2, replace=False)
        other = order.copy()
        other[p], other[q] = other[q], other[p]
        now = np.array([kendall(other, items) for items, _ in lists])
        if rng.random() < np.exp(min(0.0, float(pulls @ (now - far)))):
            order, far = other, now
        sums += far
    return sums / n_steps


def likelihood(n, lists, thetas):
    """Log probability of lists of one query, ties included, under Mallows' model with Kendall distance."""
    total = posterior(n, lists, thetas)[0] - np.log(np.arange(1, n + 1)).sum()
    for (_, ranks), theta in zip(lists, thetas, strict=True):
        total -= log_normaliser(theta, len(ranks))
        total += sum(log_normaliser(theta, list(ranks).count(rank)) for rank in set(ranks))
    return total
