"""Slow, obviously right twins of the methods for grades and rankings; rows are tuples, results dicts by item."""

from collections import defaultdict
from math import ceil


def majority_vote(rows):
    """(item, level, weight) rows -> item: (chosen level, {level: share}), ties to the better middle."""
    votes = defaultdict(lambda: defaultdict(float))
    for item, level, weight in rows:
        votes[item][level] += weight
    result = {}
    for item, count in votes.items():
        most = max(count.values())
        tied = sorted((level for level, number in count.items() if abs(number - most) < 1e-9), reverse=True)
        total = sum(count.values())
        result[item] = tied[ceil(len(tied) / 2) - 1], {level: number / total for level, number in count.items()}
    return result


def standings(groups):
    """Lists of (item, grade, weight), one list a group -> (item, standing, weight) of every item with a rival."""
    result = []
    for rows in groups:
        own = defaultdict(list)
        for item, grade, weight in rows:
            own[item].append((grade, weight))
        graded = {}
        for item, pairs in own.items():
            total = sum(w for _, w in pairs)
            graded[item] = sum(g * w for g, w in pairs) / total, total
        for item, (grade, weight) in graded.items():
            rivals = [(g, w) for other, (g, w) in graded.items() if other != item]
            if rivals:
                below = sum(w for g, w in rivals if g < grade - 1e-12)
                above = sum(w for g, w in rivals if g > grade + 1e-12)
                result.append((item, (below - above) / sum(w for _, w in rivals), weight))
    return result


def weighted_mean(pairs):
    """Mean of (value, weight) pairs."""
    return sum(v * w for v, w in pairs) / sum(w for _, w in pairs)


def weighted_median(pairs):
    """Median of (value, weight) pairs: the middle of all values that half of the weight lies on either side of."""
    total = sum(w for _, w in pairs)
    fit = [
        v
        for v, _ in pairs
        if sum(w for u, w in pairs if u < v) <= total / 2 + 1e-9
        and sum(w for u, w in pairs if u > v) <= total / 2 + 1e-9
    ]
    return (min(fit) + max(fit)) / 2
