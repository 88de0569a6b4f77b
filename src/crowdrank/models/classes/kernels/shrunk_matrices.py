"""The step of the calibration's matrices: expected counts, shrunk towards annotators' own accuracies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import read_only
from ....protocols import Floats

_MIN_NUMBER = 1e-300
"""Shares of heavy grades may round to 1, of which the odds are as large as numbers go."""


def shrink_matrices(
    counts: Floats, given: Floats, before: Floats, *, skill_weight: float, matrix_weight: float
) -> tuple[Floats, float]:
    """Return the matrices that follow from expected counts (n_annotators, n_levels, n_levels), and the largest change.

    ``given`` (n_annotators,) is the weight of each annotator's grades: one without any says nothing, and has ones
    throughout. The weights are grades that the mean accuracy is worth in each annotator's own, and the crowd's row in
    each annotator's.
    """
    n_levels = counts.shape[1]
    crowd = np.where(np.eye(n_levels, dtype=bool), 2.0, 1.0 / max(n_levels - 1, 1))
    matrices = np.ones(counts.shape)
    change = _shrink(
        read_only(counts), read_only(given), read_only(before), skill_weight, matrix_weight, crowd, matrices
    )
    return matrices, float(change)


@njit(cache=True, nogil=True)
def _shrink(
    counts: Any, given: Any, before: Any, skill_weight: float, matrix_weight: float, crowd: Any, matrices: Any
) -> float:  # fmt: skip
    """Fill in the matrices, which are 1; ``crowd`` has what is added to the crowd's counts."""
    n_annotators, n_levels = matrices.shape[0], matrices.shape[1]
    right, total = 2.0, 3.0
    for a in range(n_annotators):
        total += given[a]
        for j in range(n_levels):
            if given[a] > 0.0:
                right += counts[a, j, j]
                for k in range(n_levels):
                    crowd[j, k] += counts[a, j, k]
    mean, change = right / total, 0.0
    for j in range(n_levels):
        wrong = 0.0
        for k in range(n_levels):
            wrong += crowd[j, k] if k != j else 0.0
        # log odds of being right at this level beside those of the mean, then the shares of the levels where wrong
        crowd[j, j] = math.log(crowd[j, j] / max(wrong, _MIN_NUMBER)) - math.log(mean / max(1.0 - mean, _MIN_NUMBER))
        for k in range(n_levels):
            crowd[j, k] /= wrong if k != j else 1.0
    for a in range(n_annotators):
        own = 0.0
        for j in range(n_levels):
            own += counts[a, j, j]
        own = (own + skill_weight * mean) / (given[a] + skill_weight)
        ability = math.log(own / max(1.0 - own, _MIN_NUMBER))
        for j in range(n_levels):
            # the annotator's log odds, and by how much the level is easier than others
            chance = 1.0 / (1.0 + math.exp(-ability - crowd[j, j]))
            number = matrix_weight
            for k in range(n_levels):
                number += counts[a, j, k]
            for k in range(n_levels):
                centre = chance if j == k else (1.0 - chance) * crowd[j, k]
                if given[a] > 0.0:
                    matrices[a, j, k] = (counts[a, j, k] + matrix_weight * centre) / number
                change = max(change, abs(matrices[a, j, k] - before[a, j, k]))
    return change
