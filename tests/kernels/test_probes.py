"""Many systems solved side by side, and diagonals of inverses from them, equal those of the dense matrix."""

import numpy as np
import pytest
from tests.kernels.test_laplacian import centred, graph
from tests.oracles import pairs as slow

from crowdrank.kernels import probes as kernel
from crowdrank.kernels import threads
from crowdrank.kernels.laplacian import solve_together


@pytest.mark.parametrize("n_threads", [1, 3])
def test_columns_are_multiplied_and_solved_as_one_would_alone(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    starts, second, bend, degree, _, pairs = graph(0, [12, 7])
    matrix, columns = slow.laplacian(pairs, 19, 0.2), np.random.default_rng(1).normal(size=(19, 5))
    columns[:, 2] = 0.0
    products = kernel.laplacian_products(starts, second, bend, degree + 0.2)
    np.testing.assert_allclose(products(columns), matrix @ columns, atol=1e-12)
    solution = solve_together(products, (degree + 0.2)[:, None], columns, accuracy=1e-12)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, columns), atol=1e-9)


@pytest.mark.parametrize("wide", [False, True])
def test_the_diagonal_of_the_inverse(wide):
    starts, second, bend, degree, offsets, pairs = graph(2, [60, 90], density=0.5)
    matrix = slow.laplacian(pairs, 150, 0.3)
    direction = np.random.default_rng(1).normal(size=150)
    direction[:60] -= direction[:60].mean()
    direction[60:] -= direction[60:].mean()
    products, diagonal, along = kernel.laplacian_products(starts, second, bend, degree + 0.3), degree + 0.3, None
    if wide:
        # take off nearly all of the curvature along one direction
        image = matrix @ direction
        taken = 0.95 * np.outer(image, image) / (direction @ image)
        matrix, plain, along = matrix - taken, products, direction
        diagonal = diagonal - np.diag(taken)

        def products(columns):
            return plain(columns) - taken @ columns

    found = kernel.probed_diagonal(products, diagonal, offsets, n_probes=64, along=along)
    query = np.repeat([0, 1], [60, 90])
    centre = np.eye(150) - (query[:, None] == query) / np.array([60, 90])[query]
    expected = np.diag(centre @ np.linalg.inv(matrix) @ centre)
    if not wide:
        np.testing.assert_allclose(expected[:60], np.diag(centred(matrix[:60, :60])), rtol=1e-9)
    assert np.sqrt(np.mean((np.sqrt(found / expected) - 1) ** 2)) < 0.02
