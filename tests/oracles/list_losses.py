"""Losses over lists, the slow and obvious way: every query, every place, every pair."""

import numpy as np


def softmax(values, weight):
    """Weighted shares of the exponentials."""
    e = weight * np.exp(values - values.max())
    return e / e.sum()


def cross_entropy(scores, target, weight, qid, factor):
    """Sum over queries of factor times the cross entropy of the two shares; factor by query id."""
    total = 0.0
    for query in np.unique(qid):
        mine = qid == query
        wanted, chance = softmax(target[mine], weight[mine]), softmax(scores[mine], weight[mine])
        # the weight before the exponential is no part of the score
        total -= factor[query] * (wanted * (np.log(chance) - np.log(weight[mine]))).sum()
    return total


def choices(scores, target, weight, qid, factor):
    """Negative log-likelihood that each place is chosen from those of its own or a lower target, the lowest apart."""
    total = 0.0
    for query in np.unique(qid):
        mine = np.flatnonzero(qid == query)
        for i in mine:
            if target[i] == target[mine].min():
                continue
            left = [k for k in mine if target[k] <= target[i]]
            strength = sum(weight[k] * np.exp(scores[k]) for k in left)
            total += factor[query] * weight[i] * (np.log(strength) - scores[i])
    return total


def pairs(scores, target, weight, qid, factor, loss, item=None):
    """Loss of all pairs of unequal target, by the product of their weights; rows of one item form none."""
    total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if qid[i] != qid[j] or not target[i] > target[j] or (item is not None and item[i] == item[j]):
                continue
            z = scores[i] - scores[j]
            if loss == "logistic":
                height = np.logaddexp(0.0, -z)
            else:
                height = 0.5 - z if z <= 0 else 0.5 * (1 - z) ** 2 if z < 1 else 0.0
            total += factor[qid[i]] * weight[i] * weight[j] * height
    return total


def slopes(function, scores, step=1e-6):
    """Central differences of a function of the scores."""
    found = np.empty_like(scores)
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        found[i] = (function(up) - function(down)) / (2 * step)
    return found
