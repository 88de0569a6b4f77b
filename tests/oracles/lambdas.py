"""LambdaRank's slopes, pair by pair."""

import numpy as np


def slopes(gain, weight, item, scores, truncation, sigma, normalize):
    """Slope and curvature of each row of one query; ``item`` is the item of each row."""
    items = np.unique(item)
    mean = np.array([np.average(scores[item == one], weights=weight[item == one]) for one in items])
    rank = dict(zip(items[np.argsort(-mean, kind="stable")], range(len(items)), strict=True))
    worth = [np.average(gain[item == one], weights=weight[item == one]) for one in items]
    discount = 1 / np.log2(np.arange(2, len(items) + 2))
    ideal = float(np.sort(worth)[::-1][:truncation] @ discount[:truncation])
    of_item = weight.sum() / len(items)
    slope, bend, total = np.zeros(len(gain)), np.zeros(len(gain)), 0.0
    if ideal == 0:
        return slope, bend
    for a in range(len(gain)):
        for b in range(len(gain)):
            one, other = rank[item[a]], rank[item[b]]
            if item[a] == item[b] or gain[a] <= gain[b] or min(one, other) >= truncation:
                continue
            change = (gain[a] - gain[b]) * abs(discount[one] - discount[other]) / ideal
            change *= weight[a] * weight[b] / of_item**2
            if normalize and scores.min() != scores.max():
                change /= 0.01 + abs(scores[a] - scores[b])
            wrong = 1 / (1 + np.exp(sigma * (scores[a] - scores[b])))
            slope[a] -= sigma * wrong * change
            slope[b] += sigma * wrong * change
            bend[[a, b]] += sigma**2 * wrong * (1 - wrong) * change
            total += 2 * sigma * wrong * change
    factor = of_item * (np.log2(1 + total) / total if normalize and total > 0 else 1.0)
    return factor * slope, factor * bend
