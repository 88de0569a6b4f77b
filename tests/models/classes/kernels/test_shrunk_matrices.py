"""The step of the calibration's matrices against the same in plain numpy, and with heavy grades."""

import numpy as np
from scipy.special import expit, logit

from crowdrank.models.classes.kernels.own_prior import shrink_matrices


def shrink_slowly(counts, given, skill_weight, matrix_weight):
    eye = np.eye(counts.shape[1], dtype=bool)
    counts = np.where((given > 0)[:, None, None], counts, 0.0)
    crowd = counts.sum(axis=0) + np.where(eye, 2.0, 1.0 / (len(eye) - 1))
    crowd /= crowd.sum(axis=1, keepdims=True)
    right = np.einsum("ajj->a", counts)
    mean = (right.sum() + 2.0) / (given.sum() + 3.0)
    own = (right + skill_weight * mean) / (given + skill_weight)
    chance = expit((logit(own) - logit(mean))[:, None] + logit(np.diag(crowd)))
    errors = np.where(eye, 0.0, crowd)
    errors /= errors.sum(axis=1, keepdims=True)
    centre = np.where(eye, chance[:, :, None], (1.0 - chance)[:, :, None] * errors)
    matrices = (counts + matrix_weight * centre) / (counts.sum(axis=2, keepdims=True) + matrix_weight)
    return np.where((given > 0)[:, None, None], matrices, 1.0)


def test_matrices_follow_the_formula():
    counts = np.random.default_rng(3).gamma(1.0, 4.0, (7, 4, 4))
    given = counts.sum(axis=(1, 2))
    given[2] = 0.0
    before = np.full(counts.shape, 0.25)
    matrices, change = shrink_matrices(counts, given, before, skill_weight=4.0, matrix_weight=5.0)
    wanted = shrink_slowly(counts, given, 4.0, 5.0)
    np.testing.assert_allclose(matrices, wanted, rtol=1e-12)
    assert np.isclose(change, np.abs(wanted - before).max())


def test_an_annotator_without_an_error_among_heavy_grades_has_rows_that_add_up():
    counts = np.stack([np.eye(2) * 1e20, np.ones((2, 2))])
    matrices, _ = shrink_matrices(
        counts, counts.sum(axis=(1, 2)), np.full(counts.shape, 0.5), skill_weight=4.0, matrix_weight=5.0
    )
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0)
