"""Slow, plain twins of `crowdrank.metrics`: one query at a time, by definition, ties by trying every order."""

from itertools import groupby, permutations, product
from math import floor, log2


def orders(scores):
    """Every order of the items (positions, best first) that agrees with the scores."""
    ranked = sorted(range(len(scores)), key=lambda i: -scores[i])
    groups = [list(group) for _, group in groupby(ranked, key=lambda i: scores[i])]
    for choice in product(*(permutations(group) for group in groups)):
        yield [i for group in choice for i in group]


def over_ties(measure, truth, scores, ties):
    """A measure of the grades in ranked order, under a rule for ties."""
    if ties == "average":
        values = [measure([truth[i] for i in order]) for order in orders(scores)]
        return sum(values) / len(values)
    second = (lambda i: truth[i]) if ties == "worst" else (lambda i: i)
    return measure([truth[i] for i in sorted(range(len(scores)), key=lambda i: (-scores[i], second(i)))])


def dcg(grades, k, gain):
    value = (lambda g: 2**g - 1) if gain == "exponential" else (lambda g: g)
    return sum(value(g) / log2(rank + 1) for rank, g in enumerate(grades[:k], 1))


def ndcg(truth, scores, k, gain, ties):
    best = dcg(sorted(truth, reverse=True), k, gain)
    return over_ties(lambda g: dcg(g, k, gain), truth, scores, ties) / best if best > 0 else 0.0


def precision(grades, k):
    return sum(g >= 1 for g in grades[:k]) / k


def recall(grades, k):
    relevant = sum(g >= 1 for g in grades)
    return sum(g >= 1 for g in grades[:k]) / relevant if relevant else 0.0


def rbp(grades, k, p):
    return (1 - p) * sum(p ** (rank - 1) for rank, g in enumerate(grades[:k], 1) if g >= 1)


def average_precision(grades, k):
    relevant = sum(g >= 1 for g in grades)
    hits = [precision(grades, rank) for rank, g in enumerate(grades[:k], 1) if g >= 1]
    return sum(hits) / relevant if relevant else 0.0


def reciprocal_rank(grades, k):
    return next((1 / rank for rank, g in enumerate(grades[:k], 1) if g >= 1), 0.0)


def err(grades, k, max_grade):
    value, reading = 0.0, 1.0
    for rank, g in enumerate(grades[:k], 1):
        stop = (2**g - 1) / 2**max_grade
        value += reading * stop / rank
        reading *= 1 - stop
    return value


def sign(x):
    return (x > 0) - (x < 0)


def pairs(n):
    return [(i, j) for i in range(n) for j in range(i)]


def kendall_tau(truth, scores, variant):
    signs = [(sign(truth[i] - truth[j]), sign(scores[i] - scores[j])) for i, j in pairs(len(truth))]
    total = sum(a * b for a, b in signs)
    if variant == "a":
        return total / len(signs)
    left, right = sum(a * a for a, _ in signs), sum(b * b for _, b in signs)
    return total / (left * right) ** 0.5 if right else 0.0


def pair_accuracy(truth, scores):
    unequal = [(i, j) for i, j in pairs(len(truth)) if truth[i] != truth[j]]
    right = [(1 + sign(truth[i] - truth[j]) * sign(scores[i] - scores[j])) / 2 for i, j in unequal]
    return sum(right) / len(right)


def tau_ap(truth, scores):
    """Mean over every way of breaking ties in truth and in scores."""
    values = []
    for true_order in orders(truth):
        place = {item: rank for rank, item in enumerate(true_order)}
        for order in orders(scores):
            shares = [sum(place[a] < place[order[r]] for a in order[:r]) / r for r in range(1, len(order))]
            values.append(2 * sum(shares) / len(shares) - 1)
    return sum(values) / len(values)


def middle_ranks(values):
    return [sum(w > v for w in values) + (1 + sum(w == v for w in values)) / 2 for v in values]


def footrule(truth, scores):
    total = sum(abs(a - b) for a, b in zip(middle_ranks(truth), middle_ranks(scores), strict=True))
    return total / floor(len(truth) ** 2 / 2)


def spearman(truth, scores):
    left, right = middle_ranks(truth), middle_ranks(scores)
    middle = (len(truth) + 1) / 2
    cross = sum((a - middle) * (b - middle) for a, b in zip(left, right, strict=True))
    squares = sum((a - middle) ** 2 for a in left) * sum((b - middle) ** 2 for b in right)
    return cross / squares**0.5 if squares else 0.0


def krippendorff_alpha(items, values, level):
    """From the coincidence matrix, as the textbook writes it down; None where it is undefined."""
    units = {}
    for item, value in zip(items, values, strict=True):
        units.setdefault(item, []).append(value)
    units = [unit for unit in units.values() if len(unit) > 1]
    levels = sorted({value for unit in units for value in unit})
    together = {(c, d): 0.0 for c in levels for d in levels}
    for unit in units:
        for i, c in enumerate(unit):
            for j, d in enumerate(unit):
                if i != j:
                    together[c, d] += 1 / (len(unit) - 1)
    count = {c: sum(together[c, d] for d in levels) for c in levels}
    n = sum(count.values())

    def apart(c, d):
        if level == "nominal":
            return float(c != d)
        if level == "interval":
            return (c - d) ** 2
        low, high = min(c, d), max(c, d)
        return (sum(count[g] for g in levels if low <= g <= high) - (count[c] + count[d]) / 2) ** 2

    observed = sum(together[c, d] * apart(c, d) for c in levels for d in levels)
    expected = sum(count[c] * count[d] * apart(c, d) for c in levels for d in levels) / (n - 1)
    return 1 - observed / expected if expected else None


def fleiss_kappa(table):
    """From a table of items x levels, with the same number of grades in every row."""
    n_items, n_grades = len(table), sum(table[0])
    agreement = sum(sum(c * (c - 1) for c in row) / (n_grades * (n_grades - 1)) for row in table) / n_items
    shares = [sum(column) / (n_items * n_grades) for column in zip(*table, strict=True)]
    chance = sum(share**2 for share in shares)
    return (agreement - chance) / (1 - chance)
