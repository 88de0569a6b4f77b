"""Slow, obviously right twins of the pair counts, of the pairwise models on them, and of Elo."""

from collections import Counter
from math import exp, log

import numpy as np


def count_pairs(left, right, outcome, weight):
    """(lower, higher) -> [wins of the lower item, its losses, ties]."""
    counts = {}
    for row, (i, j, y) in enumerate(zip(left, right, outcome, strict=True)):
        low, high = min(i, j), max(i, j)
        cell = counts.setdefault((low, high), [0.0, 0.0, 0.0])
        won = y if i == low else -y
        cell[{1: 0, -1: 1, 0: 2}[won]] += 1.0 if weight is None else weight[row]
    return dict(sorted(counts.items()))


def log_likelihood(counts, scores, ties="split", log_tie=0.0):
    """Log-likelihood of the counts, by the definition of each outcome's probability."""
    total = 0.0
    for (i, j), (wins, losses, tied) in counts.items():
        first, second, draw = exp(scores[i]), exp(scores[j]), 0.0
        if ties == "davidson":
            draw = exp(log_tie + 0.5 * (scores[i] + scores[j]))
        strength = first + second + draw
        if ties == "split":
            wins, losses = wins + tied / 2, losses + tied / 2
        total += wins * log(first / strength) + losses * log(second / strength)
        if ties == "davidson" and tied:
            total += tied * log(draw / strength)
    return total


def penalised(counts, ties, ridge):
    """The objective as a function of the scores, followed by the log of the tie parameter with Davidson's model."""

    def objective(point):
        scores, log_tie = (point[:-1], point[-1]) if ties == "davidson" else (point, 0.0)
        return log_likelihood(counts, scores, ties, log_tie) - ridge / 2 * sum(x * x for x in point)

    return objective


def hessian(function, point, step=1e-3):
    """Second derivatives by central differences."""
    n = len(point)
    result = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            value = 0.0
            for up in (1, -1):
                for down in (1, -1):
                    moved = np.array(point, float)
                    moved[a] += up * step
                    moved[b] += down * step
                    value += up * down * function(moved)
            result[a, b] = value / (4 * step * step)
    return result


def laplacian(counts_bend, n_items, ridge):
    """Dense matrix from {(i, j): weight}."""
    matrix = np.eye(n_items) * ridge
    for (i, j), bend in counts_bend.items():
        matrix[i, i] += bend
        matrix[j, j] += bend
        matrix[i, j] -= bend
        matrix[j, i] -= bend
    return matrix


def groups(pairs, n_items):
    """Lowest item that each item is connected with, by walking the graph."""
    lowest = list(range(n_items))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            low = min(lowest[i], lowest[j])
            changed |= lowest[i] != low or lowest[j] != low
            lowest[i] = lowest[j] = low
    return lowest


def elo(left, right, outcome, weight, n_items, k=4.0, initial=1000.0, base=10.0, scale=400.0):
    """One preference after the other, by the formula."""
    scores = [initial] * n_items
    for row, (i, j, y) in enumerate(zip(left, right, outcome, strict=True)):
        expected = 1 / (1 + base ** ((scores[j] - scores[i]) / scale))
        move = k * (1.0 if weight is None else weight[row]) * ((y + 1) / 2 - expected)
        scores[i] += move
        scores[j] -= move
    return scores


def borda(left, right, outcome, weight, n_items):
    """(Wins - losses) / contests."""
    lead, contests = Counter(), Counter()
    for row, (i, j, y) in enumerate(zip(left, right, outcome, strict=True)):
        w = 1.0 if weight is None else weight[row]
        lead[i] += w * y
        lead[j] -= w * y
        contests[i] += w
        contests[j] += w
    return [lead[i] / contests[i] if contests[i] else 0.0 for i in range(n_items)]
