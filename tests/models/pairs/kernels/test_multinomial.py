"""The multinomial preference model: value by definition, derivatives and products by finite differences."""

import numpy as np
import pytest
from tests.models.pairs.test_crowd_bt import crowd
from tests.oracles import annotated as slow

from crowdrank.kernels import threads
from crowdrank.kernels.pairs import sort_by_pair
from crowdrank.models.pairs.kernels import pair_likelihood as kernel

N_OWN = 4


@pytest.fixture(params=[True, False], ids=["weighted", "plain"])
def data(request):
    preferences, _ = crowd([0.9, 0.8, 0.3, 0.6], sizes=[5, 4, 6], n_rows=60, tie=0.4)
    weight = np.random.default_rng(1).random(60) + 0.2 if request.param else None
    object.__setattr__(preferences, "weight", weight)
    columns = (preferences.left, preferences.right, preferences.outcome, preferences.annotator, weight)
    by_pair, _ = sort_by_pair(*columns, preferences.n_items, ties=True)
    batches = kernel.batch_preferences(by_pair, N_OWN, preferences.items.query, preferences.n_queries)
    rng = np.random.default_rng(2)
    return preferences, batches, np.concatenate([rng.normal(size=preferences.n_items), rng.uniform(-0.5, 2.0, N_OWN)])


def gradient(batches, point):
    """The gradient of the log-likelihood."""
    found = kernel.evaluate_adherence(batches, point[:-N_OWN], point[-N_OWN:])
    return np.concatenate([found.gradient, found.own_gradient])


def curvature(batches, point):
    """Negated second derivatives by differences of gradients."""
    moves = 1e-5 * np.eye(len(point))
    return -np.array([(gradient(batches, point + move) - gradient(batches, point - move)) / 2e-5 for move in moves])


def test_value_and_gradient_are_those_of_the_definition(data):
    preferences, batches, point = data
    objective = slow.multinomial_objective(preferences, "split", np.zeros(N_OWN), 0.0)
    found = kernel.evaluate_adherence(batches, point[:-N_OWN], point[-N_OWN:])
    assert found.log_likelihood == pytest.approx(objective(point), rel=1e-12)
    np.testing.assert_allclose(gradient(batches, point), slow.gradient(objective, point), atol=1e-6)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_products_are_those_of_the_curvature(data, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    _, batches, point = data
    scores, own = point[:-N_OWN], point[-N_OWN:]
    here, matrix = kernel.evaluate_adherence(batches, scores, own), curvature(batches, point)
    vector = np.random.default_rng(3).normal(size=len(point))
    items, annotators, _ = kernel.adherence_product(
        batches, here, scores, own, vector[:-N_OWN], vector[-N_OWN:], np.empty(0)
    )
    image = np.concatenate([items, annotators + here.own_bend * vector[-N_OWN:]])
    np.testing.assert_allclose(image, matrix @ vector, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([here.degree, here.own_bend]), np.diag(matrix), atol=1e-7)


def test_annotators_adapt_to_each_query(data):
    preferences, batches, point = data
    scores, own, query = point[:-N_OWN], point[-N_OWN:], preferences.items.query
    here, matrix, room = kernel.evaluate_adherence(batches, scores, own), curvature(batches, point), np.arange(1.0, 5.0)
    cross, whole = matrix[:-N_OWN, -N_OWN:], matrix[:-N_OWN, :-N_OWN].copy()
    # with several queries an entry of cross belongs to the item's own query
    whole -= ((cross * room) @ cross.T) * (query[:, None] == query)
    vector, nobody = np.random.default_rng(3).normal(size=len(scores)), np.zeros(N_OWN)
    image, _, taken = kernel.adherence_product(batches, here, scores, own, vector, nobody, room)
    np.testing.assert_allclose(image, whole @ vector, atol=1e-6)
    np.testing.assert_allclose(taken, (cross**2 * room).sum(axis=1), atol=1e-7)
    keep = batches.query == 2
    part = batches.only(keep)
    image, _, _ = kernel.adherence_product(part, here._replace(sums=here.sums[keep]), scores, own, vector, nobody, room)
    np.testing.assert_allclose(image, np.where(query == 2, whole @ vector, 0), atol=1e-6)


def test_many_items_and_annotators_are_numbered_without_a_table(data, monkeypatch):
    preferences, batches, _ = data
    columns = (preferences.left, preferences.right, preferences.outcome, preferences.annotator, preferences.weight)
    by_pair, _ = sort_by_pair(*columns, preferences.n_items, ties=True)
    monkeypatch.setattr(kernel, "_MAX_TABLE_CELLS", 0)
    monkeypatch.setattr(kernel, "_CELLS_PER_KEY", 0)
    other = kernel.batch_preferences(by_pair, N_OWN, preferences.items.query, preferences.n_queries)
    for one, two in zip(batches, other, strict=True):
        np.testing.assert_array_equal(one, two)
