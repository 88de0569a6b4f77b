"""Models with a parameter for each annotator: values by definition, derivatives by finite differences."""

import numpy as np
import pytest
from tests.kernels.test_pair_sorting import preferences
from tests.oracles import annotated as slow

from crowdrank.kernels import threads
from crowdrank.kernels.laplacian import laplacian_products
from crowdrank.kernels.pairs import sort_by_pair
from crowdrank.models.pairs.kernels import pair_likelihood as kernel

N_ITEMS, N_ANNOTATORS = 6, 4


@pytest.fixture(params=[True, False], ids=["weighted", "plain"])
def by_pair(request):
    columns = preferences(3, 50)
    weight = columns[-1] if request.param else None
    return sort_by_pair(*columns[:4], weight, N_ITEMS, ties=True)[0], columns[:4], weight


def point(seed=0):
    """Scores and parameters."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=N_ITEMS), rng.uniform(-0.9, 0.9, N_ANNOTATORS)


def dense_curvature(curve, by_pair):
    """The whole matrix of negated second derivatives."""
    matrix = np.zeros((N_ITEMS + N_ANNOTATORS,) * 2)
    for i, j, bend in zip(by_pair.first, by_pair.second, curve.bend, strict=True):
        matrix[i, j] = matrix[j, i] = -bend
    matrix[:N_ITEMS, N_ITEMS:] = curve.cross
    matrix[N_ITEMS:, :N_ITEMS] = curve.cross.T
    return matrix + np.diag(np.concatenate([curve.degree, curve.own_bend]))


@pytest.mark.parametrize("model", ["mixture", "slope"])
def test_the_value_is_that_of_the_definition(by_pair, model):
    sorted_preferences, (left, right, outcome, by), weight = by_pair
    scores, own = point()
    total = 0.0
    for i, j, y, k, w in zip(left, right, outcome, by, np.ones(50) if weight is None else weight, strict=True):
        if model == "mixture":
            above = slow.logistic(scores[i] - scores[j])
            chance = (1 + own[k]) / 2 * above + (1 - own[k]) / 2 * (1 - above)
        else:
            chance = slow.logistic(own[k] * (scores[i] - scores[j]))
        total += w * ((1 + y) / 2 * np.log(chance) + (1 - y) / 2 * np.log(1 - chance))
    curve = kernel.evaluate_preferences(sorted_preferences, model, scores, own, dense=True)
    assert curve.log_likelihood == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("model", ["mixture", "slope"])
def test_derivatives_are_those_of_finite_differences(by_pair, model, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    sorted_preferences = by_pair[0]

    def at(x):
        return kernel.evaluate_preferences(sorted_preferences, model, x[:N_ITEMS], x[N_ITEMS:], dense=True)

    def slopes(x):
        return np.concatenate([at(x).gradient, at(x).own_gradient])

    here = np.concatenate(point())
    np.testing.assert_allclose(slopes(here), slow.gradient(lambda x: at(x).log_likelihood, here), atol=1e-7)
    matrix = -np.array([(slopes(here + move) - slopes(here - move)) / 2e-5 for move in 1e-5 * np.eye(len(here))])
    np.testing.assert_allclose(dense_curvature(at(here), sorted_preferences), matrix, atol=1e-7)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_list_stands_for_the_same_matrix(by_pair, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    sorted_preferences, (scores, own), rng = by_pair[0], point(), np.random.default_rng(1)
    cross = kernel.evaluate_preferences(sorted_preferences, "mixture", scores, own, dense=True).cross
    curve = kernel.evaluate_preferences(sorted_preferences, "mixture", scores, own, dense=False)
    items, annotators, room = rng.normal(size=N_ITEMS), rng.normal(size=N_ANNOTATORS), rng.random(N_ANNOTATORS)
    to_items, to_own = kernel.joint_product(sorted_preferences, curve, curve.bend, items, annotators)
    matrix = dense_curvature(curve._replace(cross=cross), sorted_preferences)
    np.fill_diagonal(matrix, 0.0)
    image = matrix @ np.concatenate([items, annotators])
    np.testing.assert_allclose(np.concatenate([to_items, to_own]), image, atol=1e-12)
    blocks = kernel.explained_curvature(sorted_preferences, curve.tie_in, room, np.array([0]), N_ITEMS)
    np.testing.assert_allclose(blocks[0], (cross * room) @ cross.T, atol=1e-12)


def test_curvature_explained_in_several_queries():
    left, right, outcome, by, _ = preferences(5, 60, n_items=3)
    shift = 3 * np.random.default_rng(0).integers(0, 2, 60).astype(np.int32)
    sorted_preferences, _ = sort_by_pair(left + shift, right + shift, outcome, by, None, N_ITEMS, ties=True)
    scores, own = point()
    cross = kernel.evaluate_preferences(sorted_preferences, "mixture", scores, own, dense=True).cross
    curve = kernel.evaluate_preferences(sorted_preferences, "mixture", scores, own, dense=False)
    room = np.arange(1.0, 5.0)
    blocks = kernel.explained_curvature(sorted_preferences, curve.tie_in, room, np.array([0, 3]), 3)
    for block, part in zip(blocks, (cross[:3], cross[3:]), strict=True):
        np.testing.assert_allclose(block, (part * room) @ part.T, atol=1e-12)


def test_many_surprising_preferences_do_not_underflow():
    n = 5000
    columns = (np.zeros(n, np.int32), np.ones(n, np.int32), -np.ones(n, np.int8), np.zeros(n, np.int32))
    by_pair, _ = sort_by_pair(*columns, None, 2, ties=True)
    curve = kernel.evaluate_preferences(by_pair, "mixture", np.array([9.0, -9.0]), np.array([0.999]), dense=True)
    assert curve.log_likelihood == pytest.approx(n * np.log((1 - 0.999 * np.tanh(9.0)) / 2), rel=1e-9)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_annotators_adapt(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    by_pair, _ = sort_by_pair(*preferences(3, 50), 6, ties=True)
    rng = np.random.default_rng(0)
    scores, own, variances, columns = (
        rng.normal(size=6),
        rng.uniform(-0.9, 0.9, 4),
        rng.random(4),
        rng.normal(size=(6, 3)),
    )
    cross = kernel.evaluate_preferences(by_pair, "mixture", scores, own, dense=True).cross
    curve = kernel.evaluate_preferences(by_pair, "mixture", scores, own, dense=False)
    expected = (cross * variances) @ cross.T @ columns
    np.testing.assert_allclose(kernel.adapted_table_products(cross, variances, columns), expected, atol=1e-12)
    plain = laplacian_products(by_pair.starts, by_pair.second, curve.bend, curve.degree + 0.3)
    products = kernel.adapted_products(by_pair, curve.tie_in, curve.bend, curve.degree + 0.3, variances)
    np.testing.assert_allclose(products(columns), plain(columns) - expected, atol=1e-12)
