"""Eigenvectors by products equal the dense ones."""

import numpy as np
import pytest

from crowdrank.models.pairs.kernels.spectral import leading_vectors


@pytest.mark.parametrize("seed", range(4))
def test_leading_vectors_of_blocks(seed):
    rng = np.random.default_rng(seed)
    sizes = [1, 2, 5, 40]
    group = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    matrix, start = np.zeros((48, 48)), rng.normal(size=48)
    for number in range(len(sizes)):
        part = np.flatnonzero(group == number)
        block = rng.normal(size=(len(part), len(part)))
        matrix[np.ix_(part, part)] = block @ block.T
    start[group == 1] = 0.0
    found, n_iter, residual = leading_vectors(lambda x: matrix @ x, start, group, tol=1e-10, max_iter=500)
    assert residual <= 1e-10
    assert n_iter < 200
    for number in (0, 2, 3):
        part = np.flatnonzero(group == number)
        best = np.linalg.eigh(matrix[np.ix_(part, part)])[1][:, -1]
        assert abs(best @ found[part]) == pytest.approx(1, abs=1e-9)
        assert found[part] @ start[part] > 0
    assert not found[group == 1].any()


def test_leading_vectors_see_no_further_than_their_start():
    # the largest eigenvalue belongs to a direction that the start has no part in
    matrix, start = np.diag([5.0, 3.0, 2.0]), np.array([0.0, 1.0, 1.0])
    found, _, _ = leading_vectors(lambda x: matrix @ x, start, np.zeros(3, np.int32), tol=1e-12, max_iter=100)
    np.testing.assert_allclose(found, [0, 1, 0], atol=1e-9)
