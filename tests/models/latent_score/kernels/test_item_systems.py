"""Matrices of compared items: inverses by query, systems solved by iteration, and marginal annotators."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from tests.models.latent_score.kernels.test_ordinal import Case

from crowdrank.models.latent_score.kernels import item_systems


def graph_of(sizes, seed=0):
    """Random pairs within queries, their weights, a diagonal, and the whole matrix."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    pairs = [pair for a, b in pairwise(offsets) for pair in combinations(range(a, b), 2) if rng.random() < 0.7]
    first, second = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    graph = item_systems.Graph(np.searchsorted(first, np.arange(offsets[-1] + 1)), first, second, offsets)
    bend, n = rng.uniform(0.1, 1, len(first)), int(offsets[-1])
    diagonal = np.bincount(first, bend, n) + np.bincount(second, bend, n) + 0.5
    matrix = np.diag(diagonal)
    matrix[first, second] = matrix[second, first] = -bend
    return graph, bend, diagonal, matrix


@pytest.mark.parametrize("sizes", [[3, 5, 3, 1, 0, 4], [80, 2]])
def test_blocks_are_the_inverse(sizes):
    graph, bend, diagonal, matrix = graph_of(sizes)
    found, exact = item_systems.invert(graph, bend, diagonal, accuracy=1e-4), np.linalg.inv(matrix)
    assert isinstance(found, item_systems.DenseBlocks)
    np.testing.assert_allclose(found.variance, np.diag(exact), rtol=1e-9)
    np.testing.assert_allclose(found.covariance, exact[graph.first, graph.second], rtol=1e-9)
    columns = np.random.default_rng(1).normal(size=(len(diagonal), 3))
    np.testing.assert_allclose(found.solve(columns), exact @ columns, rtol=1e-8, atol=1e-10)


def test_large_queries_are_solved_by_iteration(monkeypatch):
    monkeypatch.setattr(item_systems, "MAX_BLOCK_ITEMS", 10)
    graph, bend, diagonal, matrix = graph_of([40, 5])
    found, exact = item_systems.invert(graph, bend, diagonal, accuracy=1e-8), np.linalg.inv(matrix)
    assert isinstance(found, item_systems.ConjugateGradients)
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
    found = item_systems.query_matrices(graph, bend, diagonal, np.array([0, 2]))
    np.testing.assert_array_equal(found[0], matrix[:3, :3])
    np.testing.assert_array_equal(found[1], matrix[8:, 8:])


def test_without_pairs_it_is_a_diagonal():
    none = np.empty(0, np.int32)
    graph = item_systems.Graph(np.zeros(4, np.int64), none, none, np.array([0, 3]))
    found = item_systems.invert(graph, np.empty(0), np.array([1.0, 2.0, 4.0]), accuracy=1e-4)
    assert found.variance.tolist() == [1.0, 0.5, 0.25]
    assert found.solve(np.ones((3, 1)))[:, 0].tolist() == [1.0, 0.5, 0.25]


def summed(cells, terms, n_items, n_annotators):
    """Ties of each item to both parameters of each annotator, (n_items, 2 n_annotators)."""
    table = np.zeros((n_items, 2 * n_annotators))
    for cell in range(len(cells.first)):
        for row in range(cells.bounds[cell], cells.bounds[cell + 1]):
            at = 2 * (cells.annotator_side[row] >> 2)
            table[cells.first[cell], at : at + 2] += terms[row]
            if len(cells.second):
                table[cells.second[cell], at : at + 2] -= terms[row]
    return table


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("small", [64, 0])
def test_blocks_and_products_are_plain_sums(pairs, small, monkeypatch):
    monkeypatch.setattr(item_systems, "_MAX_LOOPED_ITEMS", small)
    case = Case(3, pairs)
    terms = np.random.default_rng(0).normal(size=(len(case.cells.annotator_side), 2))
    table = summed(case.cells, terms, 8, 5)
    found = item_systems.schur_blocks(case.cells, terms, 5, np.array([0]), 8)
    np.testing.assert_allclose(found[0], table @ table.T, atol=1e-10)
    columns = np.random.default_rng(1).normal(size=(8, 3))
    products = item_systems.schur_products([(case.cells, terms)], 5, columns)
    np.testing.assert_allclose(products, table @ (table.T @ columns), atol=1e-10)


@pytest.mark.parametrize("pairs", [True, False])
def test_ties_are_mixed_second_derivatives(pairs):
    case, step = Case(3, pairs, n=60), 1e-4
    adapt = np.tile([0.0, 1.0, 1.0], (5, 1))
    terms = item_systems.cross_terms(case.cells, case.model(), case.gap(), np.zeros(len(case.cells.first)), adapt)
    table = summed(case.cells, terms, 8, 5)
    for item in range(8):
        for a in range(5):
            for number, name in enumerate(("alpha", "bias")):
                ends = []
                for one in (1, -1):
                    for other in (1, -1):
                        scores, own = case.scores.copy(), getattr(case, name).copy()
                        scores[item] += one * step
                        own[a] += other * step
                        ends.append(one * other * case.value(scores=scores, **{name: own}))
                assert table[item, 2 * a + number] == pytest.approx(-sum(ends) / (4 * step**2), abs=2e-4)
