"""The spamming model: annotators from expected counts, and one pass over grades by item for the next counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ....kernels.confusion import EXACT_SUM_SHIFT, PackedGrades
from ....kernels.threads import bind, sum_over_parts, views
from ....protocols import Counts, Floats, Ints

_MAX_LOG_PRODUCT = 640.0
"""Products whose logarithm may rise above this could leave the range of numbers; they are taken as sums of logs."""

_MAX_PRODUCT = 1e100


class SpamModel(NamedTuple):
    """Expected logarithms of what annotators do, and what the priors add to the objective.

    Parameters
    ----------
    log_spam, log_know
        Of the probability that an annotator answers without looking, and that they do look, (n_annotators,).
    log_answers
        Of the probability of each answer without looking, (n_annotators, n_levels).
    penalty
        Log density of the parameters, or the divergence from the priors, negated.
    """

    log_spam: Floats
    log_know: Floats
    log_answers: Floats
    penalty: float


class SpamPass(NamedTuple):
    """What a pass finds.

    Parameters
    ----------
    log_likelihood
        Logarithm of the grades' marginal likelihood.
    knowing
        Expected weight of each annotator's grades at each level that come of looking, (n_annotators, n_levels).
    shares
        Expected number of graded items of each level, (n_levels,).
    """

    log_likelihood: float
    knowing: Floats
    shares: Floats


def averaged_model(knowing: Floats, spamming: Floats, alpha: float, answer_alpha: float) -> SpamModel:
    """Return posterior expectations given the expected counts with and without looking, (n_annotators, n_levels).

    The priors are Beta(alpha, alpha) for spamming and Dirichlet(answer_alpha, ...) for the answers.
    """
    from scipy.special import betaln, digamma, gammaln

    spam, know, answers = _row_sums(spamming) + alpha, _row_sums(knowing) + alpha, spamming + answer_alpha
    both, all_answers, n_levels = digamma(spam + know), _row_sums(answers), answers.shape[1]
    log_spam, log_know = digamma(spam) - both, digamma(know) - both
    log_answers = digamma(answers) - digamma(all_answers)[:, None]
    gap = betaln(alpha, alpha) - betaln(spam, know) + (spam - alpha) * log_spam + (know - alpha) * log_know
    gap += gammaln(all_answers) - gammaln(answers).sum(axis=1) + (spamming * log_answers).sum(axis=1)
    gap += n_levels * gammaln(answer_alpha) - gammaln(n_levels * answer_alpha)
    return SpamModel(log_spam, log_know, log_answers, -float(gap.sum()))


def likeliest_model(knowing: Floats, spamming: Floats, alpha: float, answer_alpha: float) -> SpamModel:
    """Return the likeliest parameters given the expected counts, to which as much is added as the two numbers say."""
    spam, know, answers = _row_sums(spamming) + alpha, _row_sums(knowing) + alpha, spamming + answer_alpha
    log_spam, log_know = np.log(spam / (spam + know)), np.log(know / (spam + know))
    log_answers = np.log(answers / _row_sums(answers)[:, None])
    penalty = alpha * float(log_spam.sum() + log_know.sum()) + answer_alpha * float(log_answers.sum())
    return SpamModel(log_spam, log_know, log_answers, penalty)


def _row_sums(values: Floats) -> Floats:
    """Sum of each row, the same whichever way the levels are turned."""
    return np.sort(values, axis=1).sum(axis=1)


def guessing_confusion(knowing: Floats, answers: Floats) -> Floats:
    """Return the probability of each answer for each true level, (n_annotators, n_levels, n_levels), true level first.

    ``knowing`` (n_annotators,) is the probability of the true level for sure, ``answers`` (n_annotators, n_levels)
    what is answered otherwise.
    """
    sure = knowing[:, None, None] * np.eye(answers.shape[1])
    return sure + ((1.0 - knowing)[:, None] * answers)[:, None, :]


def agreements(grades: PackedGrades, levels: NDArray[np.uint8], n_annotators: int, n_levels: int) -> Floats:
    """Return how often others gave the items of each annotator the same level, (n_annotators,), by weight."""
    item = np.repeat(np.arange(len(grades.starts) - 1), np.diff(grades.starts))
    at, weight = item * n_levels + levels, grades.weight if grades.weight.size else np.ones(len(levels))
    votes = np.bincount(at, weight)
    return np.bincount(grades.code // np.uint32(n_levels), weight * votes[at], n_annotators).astype(np.float64)


def record_numbers(counts: Floats, agreement: Floats) -> Counts:
    """Return a number for each annotator, (n_annotators,), the same for equal records, that depends on no name.

    A record is the weight of the annotator's grades, how even ``counts`` (n_annotators, n_levels) are over the levels,
    and how often others gave an item the same level.
    """
    records = np.stack([counts.sum(axis=1), (counts**2).sum(axis=1), agreement], axis=1)
    # sums of fractional weights are equal up to rounding only
    return np.unique(np.round(records, 6), axis=0, return_inverse=True)[1].ravel()


def mean_habits(knowing: Floats, spamming: Floats, alpha: float, answer_alpha: float) -> tuple[Floats, Floats]:
    """Return the mean probability of spamming, (n_annotators,), and of each answer then, (n_annotators, n_levels)."""
    spam, answers = spamming.sum(axis=1) + alpha, spamming + answer_alpha
    return spam / (spam + knowing.sum(axis=1) + alpha), answers / answers.sum(axis=1, keepdims=True)


def spam_pass(
    grades: PackedGrades,
    levels: NDArray[np.uint8],
    counts: Floats,
    model: SpamModel,
    log_prior: Floats,
    known: Ints,
    probabilities: Floats | None = None,
) -> SpamPass:
    """Return sums over the rows; fill in the probability of each level for each graded item where asked.

    ``levels`` (n,) are those of the rows, ``counts`` (n_annotators, n_levels) their weights; ``log_prior``
    (n_levels,); ``known`` (n_items,) is a level or -1; ``probabilities`` (n_items, n_levels).
    """
    (n_annotators, n_levels), n_cells = counts.shape, counts.size
    blind = model.log_spam[:, None] + model.log_answers
    hit = np.logaddexp(blind, model.log_know[:, None])
    # how much likelier a level is given where it is the true one
    logs = (hit - blind).ravel()
    largest = float(logs.max(initial=0.0))
    longest = int(_MAX_LOG_PRODUCT / largest) if largest > 0 else len(grades.code)
    given = views(np.exp(np.minimum(logs, _MAX_LOG_PRODUCT)), logs, np.exp(log_prior), log_prior, known)
    wanted = np.empty((0, n_levels)) if probabilities is None else probabilities
    add = bind(_spam_pass, grades.starts, grades.code, levels, grades.weight, *given, longest, wanted)
    sums = sum_over_parts(add, grades.parts, n_cells + n_levels + 1)
    matched = sums[:n_cells].reshape(n_annotators, n_levels)
    value = float(sums[-1]) + float(np.einsum("al,al->", counts, blind))
    return SpamPass(value, matched * np.exp(model.log_know[:, None] - hit), sums[n_cells:-1])


@njit(cache=True, nogil=True)
def _spam_pass(
    starts, cell, level, weight, ratio, gain, prior, log_prior, known, longest, probabilities, begin, end, sums
):
    """Fill probabilities of items begin to end; add matched, shares and log-likelihood to sums, one after the other."""
    n_levels, n_cells = prior.size, gain.size
    weighted, wanted = weight.size > 0, probabilities.shape[0] > 0
    mass, shares = np.empty(n_levels), np.zeros(n_levels)
    likelihood, product = 0.0, 1.0
    for item in range(begin, end):
        first, last = starts[item], starts[item + 1]
        if first == last:
            continue
        if weighted or last - first > longest:
            likelihood += _summed_logs(level[first:last], cell[first:last], weight[first:last], gain, log_prior, mass)
        else:
            for k in range(n_levels):
                mass[k] = prior[k]
            for row in range(first, last):
                mass[level[row]] *= ratio[cell[row]]
        fixed, norm = known[item], 0.0
        for k in range(n_levels):
            mass[k] = 0.0 if fixed >= 0 and k != fixed else mass[k]
            norm += mass[k]
        # one logarithm for many items
        product *= norm
        if product > _MAX_PRODUCT or product < 1.0 / _MAX_PRODUCT:
            likelihood += np.log(product)
            product = 1.0
        for k in range(n_levels):
            mass[k] /= norm
            if wanted:
                probabilities[item, k] = mass[k]
            mass[k] = (mass[k] + EXACT_SUM_SHIFT) - EXACT_SUM_SHIFT
            shares[k] += mass[k]
        if weighted:
            for row in range(first, last):
                sums[cell[row]] += weight[row] * mass[level[row]]
        else:
            for row in range(first, last):
                sums[cell[row]] += mass[level[row]]
    for k in range(n_levels):
        sums[n_cells + k] += shares[k]
    sums[n_cells + n_levels] += likelihood + np.log(product)


@njit(cache=True, nogil=True)
def _summed_logs(level, cell, weight, gain, log_prior, mass):
    """Fill in the likelihood of each level, the largest being 1, and return the logarithm of what was taken out."""
    for k in range(log_prior.size):
        mass[k] = log_prior[k]
    for row in range(level.size):
        mass[level[row]] += weight[row] * gain[cell[row]] if weight.size else gain[cell[row]]
    top = mass[0]
    for k in range(1, log_prior.size):
        top = max(top, mass[k])
    for k in range(log_prior.size):
        mass[k] = np.exp(mass[k] - top)
    return top
