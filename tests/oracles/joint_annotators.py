"""JAM as its formulas say, with a row for each pair and a column for each feature."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def jam(differences, votes, *, ridge, alpha, rounds=400, newton=25):
    """Weights, flip rates and log-likelihoods with priors; votes (n_pairs, n_annotators) are 1, -1, or 0 for none.

    The weights are those of the M-step to the end, in every round.
    """
    n_features, n_annotators = differences.shape[1], votes.shape[1]
    weights, flips, values = np.zeros(n_features), np.full(n_annotators, 0.3), []
    for _ in range(rounds):
        values.append(objective(differences, votes, weights, flips, ridge, alpha))
        odds = votes @ np.log((1 - flips) / flips)
        better = sigmoid(differences @ weights + odds)
        wrong = np.where(votes > 0, 1 - better[:, None], better[:, None]) * (votes != 0)
        flips = (wrong.sum(axis=0) + 0.3 * alpha) / ((votes != 0).sum(axis=0) + alpha)
        flips = np.clip(flips, 1e-3, 1 - 1e-3)
        for _ in range(newton):
            before = sigmoid(differences @ weights)
            gradient = differences.T @ (better - before) - ridge * weights
            curvature = (differences * (before * (1 - before))[:, None]).T @ differences + ridge * np.eye(n_features)
            weights = weights + np.linalg.solve(curvature, gradient)
    return weights, flips, values


def objective(differences, votes, weights, flips, ridge, alpha):
    """Log-likelihood of the votes with the priors of weights and flip rates."""
    before = sigmoid(differences @ weights)
    right, wrong = np.log(1 - flips), np.log(flips)
    if_first = np.where(votes > 0, right, np.where(votes < 0, wrong, 0.0)).sum(axis=1)
    if_second = np.where(votes > 0, wrong, np.where(votes < 0, right, 0.0)).sum(axis=1)
    likelihood = np.log(before * np.exp(if_first) + (1 - before) * np.exp(if_second)).sum()
    prior = alpha * (0.3 * wrong + 0.7 * right).sum() - ridge / 2 * weights @ weights
    return likelihood + prior


def one_coin(votes, *, alpha, rounds=400):
    """Flip rates of one-coin Dawid-Skene on pairs, either order being as likely, and the probability of the first."""
    flips = np.full(votes.shape[1], 0.3)
    for _ in range(rounds):
        better = sigmoid(votes @ np.log((1 - flips) / flips))
        wrong = np.where(votes > 0, 1 - better[:, None], better[:, None]) * (votes != 0)
        flips = (wrong.sum(axis=0) + 0.3 * alpha) / ((votes != 0).sum(axis=0) + alpha)
    return flips, sigmoid(votes @ np.log((1 - flips) / flips))
