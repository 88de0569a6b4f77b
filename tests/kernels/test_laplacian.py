"""Products, systems and inverses of graph Laplacians equal those of the dense matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pairs as slow

from crowdrank.kernels import laplacian as kernel
from crowdrank.kernels import threads
from crowdrank.kernels.pairs import connected_groups, reachable_items


def graph(seed, sizes, density=0.6):
    """Pairs of random graphs, one for each query, in compressed rows; their weights; and the dense matrix."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query = np.repeat(np.arange(len(sizes)), sizes)
    i, j = np.triu_indices(offsets[-1], 1)
    use = (query[i] == query[j]) & (rng.random(len(i)) < density)
    i, j, bend = i[use], j[use].astype(np.int32), rng.random(use.sum()) + 0.1
    starts = np.searchsorted(i, np.arange(offsets[-1] + 1))
    pairs = dict(zip(zip(i, j, strict=True), bend, strict=True))
    degree = np.diag(slow.laplacian(pairs, offsets[-1], 0.0)).copy()
    return starts, j, bend, degree, offsets, pairs


@pytest.mark.parametrize("n_threads", [1, 3])
def test_product_and_solution(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    starts, second, bend, degree, _, pairs = graph(0, [12, 7])
    matrix = slow.laplacian(pairs, 19, 0.2)
    vector = np.random.default_rng(1).normal(size=19)
    product = kernel.laplacian_product(starts, second, bend, degree + 0.2)
    np.testing.assert_allclose(product(vector), matrix @ vector, rtol=1e-12, atol=1e-12)
    solution = kernel.conjugate_gradient(product, degree + 0.2, vector, accuracy=1e-12)[0]
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, vector), rtol=1e-9, atol=1e-9)


def test_a_solution_cut_short_still_leads_upwards():
    starts, second, bend, degree, *_ = graph(3, [40], density=0.1)
    vector = np.random.default_rng(1).normal(size=40)
    product = kernel.laplacian_product(starts, second, bend, degree + 1e-3)
    for max_iter in range(1, 5):
        step = kernel.conjugate_gradient(product, degree + 1e-3, vector, accuracy=0.0, max_iter=max_iter)[0]
        assert vector @ step > 0


def centred(matrix):
    """Inverse of a matrix on centred vectors, by projection."""
    n = len(matrix)
    projection = np.eye(n) - 1 / n
    return projection @ np.linalg.inv(matrix) @ projection


def test_a_matrix_that_is_not_definite_still_gives_a_way_upwards():
    matrix, right = np.diag([3.0, 1.0, -0.5]), np.array([1.0, 2.0, 1.0])
    for onwards in (False, True):
        solution = kernel.conjugate_gradient(matrix.dot, np.ones(3), right, accuracy=1e-9, onwards=onwards)[0]
        assert solution @ right > 0
    # going on climbs higher where the curvature is the other way round
    steps = [kernel.newton_step(matrix.dot, np.ones(3), right, tol=1e-9, onwards=bold) for bold in (False, True)]
    rise = [float(right @ step - 0.5 * step @ matrix @ step) for step in steps]
    assert rise[1] > rise[0]


@pytest.mark.parametrize("sizes", [[4, 4, 1, 1, 4], [70, 70], [3]])
@pytest.mark.parametrize("ridge", [0.1, 1e-3])
def test_inverses_are_those_of_centred_scores(sizes, ridge):
    starts, second, bend, degree, offsets, pairs = graph(5, sizes)
    matrix = slow.laplacian(pairs, offsets[-1], ridge)
    for size in set(sizes):
        queries = np.flatnonzero(np.array(sizes) == size)
        found = kernel.centred_inverses(starts, second, bend, degree, ridge, offsets, queries)
        for query, inverse in zip(queries, found, strict=True):
            part = slice(offsets[query], offsets[query + 1])
            expected = centred(matrix[part, part])
            np.testing.assert_allclose(inverse, expected, rtol=1e-7, atol=1e-9 / ridge)


def test_a_vanishing_ridge_does_not_spoil_the_inverse():
    starts, second, bend, degree, offsets, pairs = graph(5, [30])
    found = kernel.centred_inverses(starts, second, bend, degree, 1e-9, offsets, np.array([0]))[0]
    expected = np.linalg.pinv(slow.laplacian(pairs, 30, 0.0))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("density", "bound"), [(0.5, 0.005), (0.1, 0.006), (0.02, 0.05)])
def test_estimated_diagonal_is_near_the_exact_one(density, bound):
    starts, second, bend, degree, offsets, pairs = graph(8, [200, 150], density)
    product = kernel.laplacian_product(starts, second, bend, degree + 0.1)
    found = kernel.centred_inverse_diagonal(product, degree + 0.1, offsets)
    matrix = slow.laplacian(pairs, 350, 0.1)
    exact = np.concatenate([np.diag(centred(matrix[:200, :200])), np.diag(centred(matrix[200:, 200:]))])
    error = np.sqrt(found / exact) - 1
    assert np.sqrt(np.mean(error**2)) < bound
    assert np.abs(error).max() < 8 * bound


@given(st.integers(0, 2**32), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.floats(0, 0.6))
def test_connected_groups(seed, sizes, density):
    starts, second, _, _, offsets, pairs = graph(seed, sizes, density)
    found = connected_groups(starts, second, offsets)
    assert found.tolist() == slow.groups(pairs, offsets[-1])


@given(seed=st.integers(0, 10_000), density=st.sampled_from([0.05, 0.15, 0.5]))
def test_reached_equals_the_closure(seed, density):
    starts, second, _, _, offsets, pairs = graph(seed, [9, 1, 6], density)
    rng = np.random.default_rng(seed)
    up, down = rng.random((2, len(second))) < 0.6
    seeds = np.zeros(offsets[-1], bool)
    seeds[rng.integers(offsets[-1], size=2)] = True
    step = np.eye(offsets[-1], dtype=bool)
    for (i, j), forth, back in zip(pairs, up, down, strict=True):
        step[i, j] |= forth
        step[j, i] |= back
    closure = np.linalg.matrix_power(step.astype(float), offsets[-1]) > 0
    np.testing.assert_array_equal(reachable_items(starts, second, up, down, seeds), closure[seeds].any(axis=0))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_columns_are_multiplied_and_solved_as_one_would_alone(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    starts, second, bend, degree, _, pairs = graph(0, [12, 7])
    matrix, columns = slow.laplacian(pairs, 19, 0.2), np.random.default_rng(1).normal(size=(19, 5))
    columns[:, 2] = 0.0
    products = kernel.laplacian_products(starts, second, bend, degree + 0.2)
    np.testing.assert_allclose(products(columns), matrix @ columns, atol=1e-12)
    solution = kernel.solve_together(products, (degree + 0.2)[:, None], columns, accuracy=1e-12)
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
