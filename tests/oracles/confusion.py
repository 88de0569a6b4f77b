"""Slow, obviously right twins of class models, on lists and dicts; rows are (item, annotator, level, weight)."""

from collections import defaultdict
from itertools import product
from math import exp, fsum, log


def posterior(own, confusion, prior, known=-1):
    """Rows of one item -> its probabilities by level, and the logarithm of the probability of its grades."""
    logs = [
        log(share) + fsum(w * log(confusion[a][j][level]) for _, a, level, w in own) for j, share in enumerate(prior)
    ]
    if known >= 0:
        return [float(j == known) for j in range(len(prior))], logs[known]
    top = max(logs)
    norm = fsum(exp(value - top) for value in logs)
    return [exp(value - top) / norm for value in logs], top + log(norm)


def confusion_pass(rows, confusion, prior, known):
    """Probabilities by item, expected counts by annotator, true and given level, shares, and log-likelihood."""
    of_item = defaultdict(list)
    for row in rows:
        of_item[row[0]].append(row)
    levels = range(len(prior))
    counts = [[[0.0 for _ in levels] for _ in levels] for _ in confusion]
    shares, likelihood, probabilities = [0.0 for _ in levels], 0.0, {}
    for item, own in of_item.items():
        probabilities[item], found = posterior(own, confusion, prior, known.get(item, -1))
        likelihood += found
        for j in levels:
            shares[j] += probabilities[item][j]
            for _, a, level, weight in own:
                counts[a][j][level] += weight * probabilities[item][j]
    return probabilities, counts, shares, likelihood


def vote_shares(rows, n_levels, known):
    """Share of each level in the weight of each item's grades, by item."""
    votes = defaultdict(lambda: [0.0] * n_levels)
    for item, _, level, weight in rows:
        votes[item][level] += weight
    shares = {item: [value / sum(own) for value in own] for item, own in votes.items()}
    for item, level in known.items():
        shares[item] = [float(j == level) for j in range(n_levels)]
    return shares


def vote_counts(rows, n_annotators, n_levels, known, use):
    """Counts by annotator, true and given level when vote shares are taken for the truth, over the items to use."""
    shares = vote_shares(rows, n_levels, known)
    counts = [[[0.0] * n_levels for _ in range(n_levels)] for _ in range(n_annotators)]
    for item, a, level, weight in rows:
        for j in range(n_levels) if item in use else ():
            counts[a][j][level] += weight * shares[item][j]
    return counts


def several(rows):
    """Items that two annotators graded or more."""
    who = defaultdict(set)
    for item, a, _, _ in rows:
        who[item].add(a)
    return {item for item, annotators in who.items() if len(annotators) > 1}


def crowd(rows, n_annotators, n_levels, known):
    """All grades by true and given level as shares, two right and one wrong grade a level added, diagonal raised."""
    counts = vote_counts(rows, n_annotators, n_levels, known, several(rows) | set(known))
    joint = [
        [sum(own[j][k] for own in counts) + (2.0 if j == k else 1.0 / (n_levels - 1)) for k in range(n_levels)]
        for j in range(n_levels)
    ]
    level = [sum(row) for row in joint]
    table = [[value / total for value in row] for row, total in zip(joint, level, strict=True)]
    for k in range(n_levels):
        most = max(table[j][k] for j in range(n_levels) if j != k)
        if table[k][k] < most:
            rest = (1 - most) / (1 - table[k][k])
            table[k] = [most if j == k else value * rest for j, value in enumerate(table[k])]
    return [[value * total / sum(level) for value in row] for row, total in zip(table, level, strict=True)]


def dawid_skene(rows, n_annotators, n_levels, alpha, known, n_iter):
    """Plain passes from the crowd's matrix: confusion, prior, probabilities by item, and the objective of each pass."""
    joint = [[alpha * n_levels * value for value in row] for row in crowd(rows, n_annotators, n_levels, known)]
    confusion = [[[v / sum(row) for v in row] for row in joint] for _ in range(n_annotators)]
    total = sum(map(sum, joint))
    prior, values = [sum(row) / total for row in joint], []
    levels = range(n_levels)
    for _ in range(n_iter):
        probabilities, counts, shares, value = confusion_pass(rows, confusion, prior, known)
        values.append(
            value
            + fsum(joint[j][k] * log(own[j][k]) for own in confusion for j in levels for k in levels)
            + fsum(map(log, prior))
        )
        more = [[[own[j][k] + joint[j][k] for k in levels] for j in levels] for own in counts]
        confusion = [[[v / sum(row) for v in row] for row in own] for own in more]
        prior = [(share + 1) / (sum(shares) + n_levels) for share in shares]
    return confusion, prior, probabilities, values


def one_coin(rows, n_annotators, n_levels, a0, b0, prior, known, n_iter):
    """Plain passes from vote shares: accuracies, prior, probabilities by item; ``prior`` None is estimated."""
    shares = vote_shares(rows, n_levels, known)
    graded = {row[0] for row in rows}
    for _ in range(n_iter + 1):
        accuracy = []
        for who in range(n_annotators):
            own = [(item, level, weight) for item, a, level, weight in rows if a == who]
            right = fsum(weight * shares[item][level] for item, level, weight in own)
            number = fsum(weight for _, _, weight in own)
            accuracy.append(min(max((a0 + right) / (a0 + b0 + number), 1e-4), 1 - 1e-4))
        sums = [sum(shares[item][j] for item in graded) + 1 for j in range(n_levels)]
        rho = prior or [value / sum(sums) for value in sums]
        confusion = coin(accuracy, n_levels)
        shares = confusion_pass(rows, confusion, rho, known)[0]
    return accuracy, rho, shares


def coin(accuracy, n_levels):
    """Confusion matrices of annotators who are right with a probability and otherwise wrong in any way."""
    return [
        [[p if j == k else (1 - p) / (n_levels - 1) for k in range(n_levels)] for j in range(n_levels)]
        for p in accuracy
    ]


def pair_quality(confusion, prior, nominal):
    """Probability of ordering two items of unequal level right; with an order, if the answers are unequal."""
    n_levels = len(prior)
    right = total = 0.0
    for j, k in product(range(n_levels), repeat=2):
        if j == k:
            continue
        for one, other in product(range(n_levels), repeat=2):
            p = prior[j] * prior[k] * confusion[j][one] * confusion[k][other]
            better = (one == j) - (other == j) if nominal else ((one > other) - (one < other)) * (1 if j > k else -1)
            right += p * (0.5 + 0.5 * better) * (nominal or one != other)
            total += p * (nominal or one != other)
    return right / total
