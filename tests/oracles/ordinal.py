"""Slow, obviously right twins of ordinal answers about latent scores."""

from math import exp, log, pi, sqrt

import numpy as np


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + exp(-x)) if x > -700 else 0.0


def chance(level, eta, cuts, flat=1.0):
    """Probability of a level, and those of a level at most this one and below it."""
    upper = 1.0 if level == len(cuts) else sigmoid(flat * (cuts[level] - eta))
    lower = 0.0 if level == 0 else sigmoid(flat * (cuts[level - 1] - eta))
    return upper - lower, upper, lower


def log_likelihood(
    rows, scores, alpha, bias, spread, centre, cuts, scale=1.0, lapse=None, favourites=None, difficulty=None
):
    """Of rows (annotator, first, second or -1, side, level, weight).

    ``side`` is -1 where the second stood left, 0 where nobody knows.
    """
    total = 0.0
    for a, i, j, side, y, w in rows:
        d = scores[i] - (scores[j] if j >= 0 else 0.0)
        h = [centre + exp(spread[a]) * cut for cut in cuts]
        p = chance(y, scale * alpha[a] * d + side * bias[a], h, 1.0 if difficulty is None else exp(-difficulty[i]))[0]
        if lapse is not None:
            mirrored = favourites[a][len(cuts) - y]
            p = (1 - lapse[a]) * p + lapse[a] * ((1 + side) * favourites[a][y] + (1 - side) * mirrored) / 2
        total += w * log(p)
    return total


def averaged_push(d, vd, mu, va, bias, vb, cab, cuts, level):
    """Gradient and curvature in a score that is known up to ``vd``, of an annotator known up to va, vb and cab."""
    v = (mu**2 + va) * vd + va * d**2 + 2 * d * cab + vb
    flat = 1 / sqrt(1 + pi * v / 8)
    _, upper, lower = chance(level, mu * d + bias, cuts, flat)
    g, h = upper + lower - 1, flat * (upper * (1 - upper) + lower * (1 - lower))
    turn = h
    if level in (0, len(cuts)):
        # by the ratio of Mills as far as the variance is that of a normal predictor
        other = 1 - (upper - lower)
        u, blur = pi / 8 * log((1 - other) / other), pi * v / 8 / (1 + pi * v / 8)
        turn = flat * other * ((1 - blur) * (1 - other) + blur * (u + sqrt(u**2 + 1)) / 2)
    return mu * g - turn * (va * d + cab), h * (mu**2 + va)


def scores_of_known_annotators(rows, n_items, alpha, variance, rounds=200):
    """Scores of preferences without ties or bias, by dense Newton steps with the inverse matrix kept: (scores, it)."""
    scores, cov = np.zeros(n_items), np.zeros((n_items, n_items))
    former = None
    for _ in range(rounds):
        push, matrix = np.zeros(n_items), np.zeros((n_items, n_items))
        for a, i, j, _side, y, w in rows:
            vd = cov[i, i] + cov[j, j] - 2 * cov[i, j]
            g, e = averaged_push(scores[i] - scores[j], vd, alpha[a], 0.0, 0.0, 0.0, 0.0, [0.0], y)
            push[i] += w * g
            push[j] -= w * g
            matrix[i, i] += w * e
            matrix[j, j] += w * e
            matrix[i, j] -= w * e
            matrix[j, i] -= w * e
        matrix = matrix if former is None else (matrix + former) / 2
        former = matrix
        cov = np.linalg.inv(matrix + np.eye(n_items) / variance)
        scores = scores + cov @ (push - scores / variance)
    return scores, cov
