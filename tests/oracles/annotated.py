"""Slow, obviously right twins of the models of preferences in which every annotator has a parameter."""

from math import exp, log, log1p

import numpy as np
from tests.oracles.pairs import hessian


def rows_of(preferences, ties="split", annotator=None):
    """(annotator, winner, loser, weight) of each answer, a tie being half of both ways unless it is to be left out."""
    by = preferences.annotator if annotator is None else annotator
    rows = []
    for k, i, j, y, w in zip(
        by, preferences.left, preferences.right, preferences.outcome, preferences.row_weight, strict=True
    ):
        if y:
            rows.append((k, i, j, w) if y > 0 else (k, j, i, w))
        elif ties == "split":
            rows += [(k, i, j, w / 2), (k, j, i, w / 2)]
    return rows


def logistic(x):
    """The logistic function."""
    return 1 / (1 + exp(-x))


def crowd_bt(rows, scores, eta):
    """Log-likelihood of Crowd-BT."""
    total = 0.0
    for k, winner, loser, weight in rows:
        above = logistic(scores[winner] - scores[loser])
        total += weight * log(eta[k] * above + (1 - eta[k]) * (1 - above))
    return total


def tie_or_not(preferences, scores, tie):
    """Log-likelihood of which contests are ties, by Davidson's model."""
    total = 0.0
    for i, j, y, w in zip(
        preferences.left, preferences.right, preferences.outcome, preferences.row_weight, strict=True
    ):
        strengths = exp(scores[i]), exp(scores[j]), tie * exp((scores[i] + scores[j]) / 2)
        share = strengths[2] / sum(strengths)
        total += w * log(1 - share if y else share)
    return total


def crowd_bt_objective(preferences, ties, prior, ridge, annotator=None):
    """The objective of scores, log odds of eta and, with Davidson's model, the log of the tie parameter."""
    n = preferences.n_items
    alpha, beta = (np.asarray(part, float) for part in prior)
    rows = rows_of(preferences, ties, annotator)

    def objective(point):
        scores, odds = point[:n], point[n : n + len(alpha)]
        eta = [logistic(x) for x in odds]
        total = crowd_bt(rows, scores, eta)
        total += sum(a * log(e) + b * log1p(-e) for a, b, e in zip(alpha, beta, eta, strict=True))
        squares = sum(x * x for x in scores)
        if ties == "davidson":
            total += tie_or_not(preferences, scores, exp(point[-1]))
            squares += point[-1] ** 2
        return total - ridge / 2 * squares

    return objective


def slope_objective(preferences, ties, precision, ridge):
    """The objective of scores and slopes when an annotator's log odds are slope times difference."""
    n, rows = preferences.n_items, rows_of(preferences, ties)

    def objective(point):
        scores, slopes = point[:n], point[n:]
        total = sum(w * log(logistic(slopes[k] * (scores[i] - scores[j]))) for k, i, j, w in rows)
        away = sum(p * (x - 1) ** 2 for p, x in zip(precision, slopes, strict=True))
        return total - ridge / 2 * sum(x * x for x in scores) - away / 2

    return objective


def multinomial_objective(preferences, ties, precision, ridge):
    """The objective of scores and adherences when every preference is drawn among all ordered pairs of its query."""
    n, rows, query = preferences.n_items, rows_of(preferences, ties), preferences.items.query
    judged = {item for row in rows for item in row[1:3]}

    def objective(point):
        scores, slopes = point[:n], point[n:]
        total = 0.0
        for k, i, j, weight in rows:
            there = [item for item in judged if query[item] == query[i]]
            norm = sum(exp(slopes[k] * (scores[a] - scores[b])) for a in there for b in there if a != b)
            total += weight * (slopes[k] * (scores[i] - scores[j]) - log(norm))
        away = sum(p * (x - 1) ** 2 for p, x in zip(precision, slopes, strict=True))
        return total - ridge / 2 * sum(x * x for x in scores) - away / 2

    return objective


def gradient(function, point, step=1e-5):
    """First derivatives by central differences."""
    moves = step * np.eye(len(point))
    return np.array([(function(point + move) - function(point - move)) / (2 * step) for move in moves])


def covariance(objective, point, items, fixed):
    """Covariance of the centred scores of some items when all other parameters are free but those in ``fixed``.

    ``None`` where the point is no maximum, but a saddle between several.
    """
    free = [place for place in range(len(point)) if place not in fixed]
    curvature = -hessian(objective, point)[np.ix_(free, free)]
    if np.linalg.eigvalsh(curvature)[0] < 1e-3:
        return None
    inverse = np.linalg.inv(curvature)
    places = [free.index(item) for item in items]
    centre = np.eye(len(items)) - 1 / len(items)
    return centre @ inverse[np.ix_(places, places)] @ centre
