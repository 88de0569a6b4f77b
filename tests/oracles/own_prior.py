"""Slow twin of the hierarchy of confusion matrices: plain loops over annotators, levels and cells."""

from math import exp, log

from scipy.optimize import minimize_scalar
from scipy.special import gammaln


def centre(ability, ease, errors):
    """Rows that the matrices of annotators are drawn to."""
    found = []
    for own in ability:
        rows = []
        for j, easier in enumerate(ease):
            right = 1 / (1 + exp(-own - easier))
            rows.append([right if k == j else (1 - right) * errors[j][k] for k in range(len(ease))])
        found.append(rows)
    return found


def log_evidence(counts, rows, weight):
    """Dirichlet-multinomial log-likelihood of whole counts by annotator and row, up to what the weight leaves alone."""
    total = 0.0
    for own, centres in zip(counts, rows, strict=True):
        for given, mean in zip(own, centres, strict=True):
            total += gammaln(weight) - gammaln(weight + sum(given))
            total += sum(gammaln(n + weight * m) - gammaln(weight * m) for n, m in zip(given, mean, strict=True))
    return total


def likeliest_weight(counts, rows, expected, spread):
    """Weight of a prior around rows with the largest evidence and log-normal hyper-prior, by a search."""
    best = minimize_scalar(
        lambda x: -log_evidence(counts, rows, exp(x)) + 0.5 * ((x - log(expected)) / spread) ** 2,
        bounds=(log(0.05), log(1e4)), method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    return exp(best.x)
