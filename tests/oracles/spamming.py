"""MACE written out: whoever looks gives the truth, whoever does not answers by habit; each row on its own."""

import numpy as np
from scipy.special import digamma


def pass_over(rows, spam, look, answers, prior, known=None):
    """(item, annotator, level, weight) rows -> log-likelihood, {item: levels}, expected looks (annotator, level).

    ``spam`` and ``look`` need not sum to one, as in variational inference.
    """
    total, found, looks = 0.0, {}, np.zeros(answers.shape)
    for item in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == item]
        joint = np.array(prior, float)
        for _, a, level, weight in own:
            for truth in range(len(prior)):
                joint[truth] *= (spam[a] * answers[a, level] + look[a] * (level == truth)) ** weight
        if known and item in known:
            joint *= np.arange(len(prior)) == known[item]
        total += np.log(joint.sum())
        found[item] = joint / joint.sum()
        for _, a, level, weight in own:
            looked = look[a] / (look[a] + spam[a] * answers[a, level])
            looks[a, level] += weight * found[item][level] * looked
    return total, found, looks


def counts_of(rows, n_annotators, n_levels):
    """Weight of each annotator's grades at each level."""
    counts = np.zeros((n_annotators, n_levels))
    for _, annotator, level, weight in rows:
        counts[annotator, level] += weight
    return counts


def averages(looks, counts, alpha, answer_alpha):
    """Exponentials of the expected logarithms of spamming, looking and answers (Hovy et al. 2013, their code)."""
    spammed = counts - looks
    both = np.stack([spammed.sum(axis=1), looks.sum(axis=1)], axis=1) + alpha
    both = np.exp(digamma(both) - digamma(both.sum(axis=1, keepdims=True)))
    answers = spammed + answer_alpha
    return both[:, 0], both[:, 1], np.exp(digamma(answers) - digamma(answers.sum(axis=1, keepdims=True)))


def likeliest(looks, counts, more):
    """Smoothed shares of spamming, looking and answers."""
    spammed = counts - looks
    both = np.stack([spammed.sum(axis=1), looks.sum(axis=1)], axis=1) + more
    both /= both.sum(axis=1, keepdims=True)
    answers = spammed + more
    return both[:, 0], both[:, 1], answers / answers.sum(axis=1, keepdims=True)


def fit(rows, n_annotators, n_levels, learn, n_passes=5000):
    """Level probabilities after so many passes, half of the grades taken as looked at to begin with."""
    counts = counts_of(rows, n_annotators, n_levels)
    looks, prior = 0.5 * counts, np.full(n_levels, 1 / n_levels)
    for _ in range(n_passes):
        _, found, looks = pass_over(rows, *learn(looks, counts), prior)
    return found, looks
