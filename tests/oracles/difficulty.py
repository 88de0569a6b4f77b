"""GLAD written out: probabilities and objective as sums over rows."""

from math import exp, log

import numpy as np


def answer_probability(answer, truth, knows, guesses, lucky):
    """Probability of an answer: the truth if known, else a guess, which may be the truth with ``lucky`` only."""
    if lucky:
        return knows * (answer == truth) + (1 - knows) * guesses[answer]
    return knows if answer == truth else (1 - knows) * guesses[answer]


def posteriors(rows, ability, log_ease, guesses, prior, known=None, lucky=False):
    """(item, annotator, level, weight) rows -> log-likelihood, {item: probability of each level}."""
    total, found = 0.0, {}
    for item in sorted({row[0] for row in rows}):
        joint = np.log(prior)
        for _, annotator, level, weight in (row for row in rows if row[0] == item):
            knows = 1 / (1 + exp(-ability[annotator] * exp(log_ease[item])))
            for truth in range(len(prior)):
                joint[truth] += weight * log(answer_probability(level, truth, knows, guesses[annotator], lucky))
        if known and item in known:
            joint[[k for k in range(len(prior)) if k != known[item]]] = -np.inf
        top = joint.max()
        total += top + log(np.exp(joint - top).sum())
        found[item] = np.exp(joint - top) / np.exp(joint - top).sum()
    return total, found


def objective(point, rows, n_annotators, guesses, prior, known=None, lucky=False):
    """Log-likelihood with the priors N(1, 1) of abilities and log ease, which follow each other in ``point``."""
    ability, log_ease = point[:n_annotators], point[n_annotators:]
    value, _ = posteriors(rows, ability, log_ease, guesses, prior, known, lucky)
    return value - 0.5 * float(((point - 1) ** 2).sum())
