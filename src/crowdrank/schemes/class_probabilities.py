"""Probabilities of the levels of an item, and what one more grade is expected to add to them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from ..data.judgments import Grades
from ..errors import ParameterError
from ..protocols import Floats
from .situation import Situation

_PRIOR_ACCURACY, _PRIOR_GRADES = 0.7, 20.0
"""Prior share of right answers of an annotator, and the number of shared grades that the prior counts for."""


_MAX_LEVELS_OF_THREE_GRADES = 7
"""Up to this many levels every outcome of three further grades is looked at, beyond it those of two."""

LIKELIEST = "its most probable grade has a probability of {:.2f}"


def pooled_confusion(grades: Grades, posterior: Floats) -> Floats:
    """Return how likely the crowd as a whole is to give each level for each true one, (n_levels, n_levels).

    Grades are counted by the probability of each true level; one right grade of each level is added.
    """
    n_levels = posterior.shape[1]
    codes, levels, _ = grades.level_codes()
    if len(levels) != n_levels:
        raise ParameterError(
            f"the consensus has {n_levels} levels and the grades {len(levels)}; aggregate the same grades, without bins"
        )
    of_levels = [np.bincount(codes, posterior[grades.item, level], n_levels) for level in range(n_levels)]
    counts = np.stack(of_levels) + np.eye(n_levels)
    return counts / counts.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class CautiousLevels:
    """Level probabilities and confusion matrices, no surer than grades of items that several annotators graded allow.

    A class method believes an annotator who is never contradicted: where every item has one grade, each is taken for
    certain, and nothing seems left to learn. Here an annotator's matrix is averaged with one of ``_PRIOR_ACCURACY``
    right answers, which counts as ``_PRIOR_GRADES`` grades of items that others graded too.

    Parameters
    ----------
    posterior
        Probability of each level for each item, (n_items, n_levels).
    confusion
        Probability of each grade for each true level, (n_annotators, n_levels, n_levels).
    crowd
        The same for an annotator not seen before, (n_levels, n_levels).
    """

    posterior: Floats
    confusion: Floats
    crowd: Floats

    @classmethod
    def of(cls, situation: Situation, grades: Grades, scheme: str) -> CautiousLevels:
        """Return what the consensus of the grades says, taken with caution, for a scheme of that name."""
        consensus = situation.expect_consensus(scheme)
        if consensus.probabilities is None:
            raise ParameterError(
                f"{scheme} needs the probabilities of grades, which {consensus.method} does not give; "
                "use a consensus of a class method such as dawid_skene"
            )
        codes = grades.level_codes()[0]
        crowd = pooled_confusion(grades, consensus.probabilities)
        n_annotators = max(grades.n_annotators, 1)
        annotator = grades.row_annotator
        shared = np.bincount(grades.item, minlength=grades.n_items)[grades.item] > 1
        number = np.bincount(annotator[shared], minlength=n_annotators)[:, None, None]
        own = np.broadcast_to(crowd, (n_annotators, *crowd.shape))
        learned = consensus.learned
        if learned is not None and "confusion" in learned[1]:
            own = learned[1]["confusion"]
        supposed = _prior_confusion(len(crowd), grades.nominal)
        confusion = (number * own + _PRIOR_GRADES * supposed) / (number + _PRIOR_GRADES)
        shares = consensus.probabilities.mean(axis=0) + 1.0 / len(grades)
        weighed = np.tile(np.log(shares), (grades.n_items, 1))
        for level in range(len(crowd)):
            weighed[:, level] += np.bincount(
                grades.item, grades.row_weight * np.log(confusion[annotator, level, codes]), grades.n_items
            )
        likely = np.exp(weighed - weighed.max(axis=1, keepdims=True))
        n_grades = np.bincount(annotator, minlength=n_annotators)
        crowd = np.average(confusion, axis=0, weights=n_grades if len(grades) else None)
        return cls(likely / likely.sum(axis=1, keepdims=True), confusion, crowd)


def _prior_confusion(n_levels: int, nominal: bool) -> Floats:
    """How an annotator is supposed to mix up levels: near ones more than far ones, unless they have no order."""
    if n_levels == 1:
        return np.ones((1, 1))
    places = np.arange(n_levels)
    apart = np.abs(places[:, None] - places)
    wrong = np.where(apart == 0, 0.0, 1.0 if nominal else np.exp(1.0 - apart))
    return (1 - _PRIOR_ACCURACY) * wrong / wrong.sum(axis=1, keepdims=True) + _PRIOR_ACCURACY * np.eye(n_levels)


def expected_confidence(posterior: Floats, confusion: Floats, number: int = 1) -> Floats:
    """Return the expected probability of the most probable level after ``number`` more grades, (n_items,)."""
    confidence = np.zeros(len(posterior))
    for given in combinations_with_replacement(range(confusion.shape[1]), number):
        orders = factorial(number)
        for level in set(given):
            orders //= factorial(given.count(level))
        confidence += orders * (posterior * confusion[:, given].prod(axis=1)).max(axis=1)
    return confidence


def confidence_gain(posterior: Floats, confusion: Floats) -> Floats:
    """Return how much a further grade is expected to raise the probability of the most probable level, (n_items,).

    One grade alone often cannot change which level that is, where two or three can: this is the largest mean over the
    next one, two or three (two where there are many levels).
    """
    sure, gain = posterior.max(axis=1), np.zeros(len(posterior))
    for number in range(1, 4 if confusion.shape[1] <= _MAX_LEVELS_OF_THREE_GRADES else 3):
        gain = np.maximum(gain, (expected_confidence(posterior, confusion, number) - sure) / number)
    # what is left of the sums is rounding
    return np.where(gain > 1e-12, gain, 0.0)
