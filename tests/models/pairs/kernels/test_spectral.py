"""Systems and eigenvectors by products equal the dense solutions."""

import numpy as np
import pytest

from crowdrank.models.pairs.kernels.spectral import leading_vectors, minimal_residual


def test_minimal_residual_solves_what_can_be_solved():
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(20, 20)) + 6 * np.eye(20), rng.normal(size=20)
    solution, n_taken = minimal_residual(lambda x: matrix @ x, right, accuracy=1e-12, most=40)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), atol=1e-9)
    assert n_taken <= 21
    nothing, n_taken = minimal_residual(lambda x: matrix @ x, np.zeros(20), accuracy=1e-12, most=40)
    assert not nothing.any()
    assert n_taken == 0


def test_minimal_residual_solves_a_singular_system():
    rates = np.random.default_rng(1).random((12, 12))
    matrix = np.diag(rates.sum(axis=1)) - rates
    right = matrix @ np.arange(12.0)
    solution, _ = minimal_residual(lambda x: matrix @ x, right, accuracy=1e-13, most=30)
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-9)


def test_minimal_residual_stops_when_told():
    matrix = np.diag(np.arange(1.0, 101))
    solution, n_taken = minimal_residual(lambda x: matrix @ x, np.ones(100), accuracy=1e-12, most=7)
    assert n_taken == 7
    assert np.linalg.norm(matrix @ solution - 1) < np.linalg.norm(np.ones(100))


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
