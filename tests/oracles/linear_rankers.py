"""Weights of linear rankers by a general minimiser over the slow losses."""

import numpy as np
from scipy.optimize import minimize


def scaled_overall(X, qid):
    """Features less their mean, by their standard deviation within queries; constant ones are 0."""
    rest = X.astype(float).copy()
    for query in np.unique(qid):
        rest[qid == query] -= rest[qid == query].mean(0)
    spread = np.sqrt((rest**2).mean(0))
    return np.where(spread > 1e-9, (X - X.mean(0)) / np.where(spread > 1e-9, spread, 1), 0)


def weights(loss, scaled, ridge):
    """Weights with the least loss of their scores plus penalty; ``loss(scores)`` is slow and has no slopes."""

    def objective(w):
        return loss(scaled @ w) + 0.5 * ridge * w @ w

    found = minimize(objective, np.zeros(scaled.shape[1]), method="BFGS", options={"gtol": 1e-7})
    return found.x
