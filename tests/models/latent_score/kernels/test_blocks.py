"""Matrices of compared items: exact inverses by query, and systems solved by iteration."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from crowdrank.models.latent_score.kernels import blocks


def graph_of(sizes, seed=0):
    """Random pairs within queries, their weights, a diagonal, and the whole matrix."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    pairs = [pair for a, b in pairwise(offsets) for pair in combinations(range(a, b), 2) if rng.random() < 0.7]
    first, second = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    graph = blocks.Graph(np.searchsorted(first, np.arange(offsets[-1] + 1)), first, second, offsets)
    bend, n = rng.uniform(0.1, 1, len(first)), int(offsets[-1])
    diagonal = np.bincount(first, bend, n) + np.bincount(second, bend, n) + 0.5
    matrix = np.diag(diagonal)
    matrix[first, second] = matrix[second, first] = -bend
    return graph, bend, diagonal, matrix


@pytest.mark.parametrize("sizes", [[3, 5, 3, 1, 0, 4], [80, 2]])
def test_blocks_are_the_inverse(sizes):
    graph, bend, diagonal, matrix = graph_of(sizes)
    found, exact = blocks.invert(graph, bend, diagonal, accuracy=1e-4), np.linalg.inv(matrix)
    assert isinstance(found, blocks.DenseBlocks)
    np.testing.assert_allclose(found.variance, np.diag(exact), rtol=1e-9)
    np.testing.assert_allclose(found.covariance, exact[graph.first, graph.second], rtol=1e-9)
    columns = np.random.default_rng(1).normal(size=(len(diagonal), 3))
    np.testing.assert_allclose(found.solve(columns), exact @ columns, rtol=1e-8, atol=1e-10)


def test_large_queries_are_solved_by_iteration(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCK_ITEMS", 10)
    graph, bend, diagonal, matrix = graph_of([40, 5])
    found, exact = blocks.invert(graph, bend, diagonal, accuracy=1e-8), np.linalg.inv(matrix)
    assert isinstance(found, blocks.ConjugateGradients)
    columns = np.random.default_rng(1).normal(size=(len(diagonal), 3))
    np.testing.assert_allclose(found.solve(columns), exact @ columns, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.solve(columns[:, :1]), exact @ columns[:, :1], rtol=1e-5, atol=1e-7)
    # of differences the first terms are near; what all items of a query share they leave out
    variance, true = found.variance, np.diag(exact)
    between = variance[graph.first] + variance[graph.second] - 2 * found.covariance
    wanted = true[graph.first] + true[graph.second] - 2 * exact[graph.first, graph.second]
    assert np.abs(between / wanted - 1).mean() < 0.05


def test_matrices_of_equally_large_queries():
    graph, bend, diagonal, matrix = graph_of([3, 5, 3])
    found = blocks.query_matrices(graph, bend, diagonal, np.array([0, 2]))
    np.testing.assert_array_equal(found[0], matrix[:3, :3])
    np.testing.assert_array_equal(found[1], matrix[8:, 8:])


def test_without_pairs_it_is_a_diagonal():
    none = np.empty(0, np.int32)
    graph = blocks.Graph(np.zeros(4, np.int64), none, none, np.array([0, 3]))
    found = blocks.invert(graph, np.empty(0), np.array([1.0, 2.0, 4.0]), accuracy=1e-4)
    assert found.variance.tolist() == [1.0, 0.5, 0.25]
    assert found.solve(np.ones((3, 1)))[:, 0].tolist() == [1.0, 0.5, 0.25]
