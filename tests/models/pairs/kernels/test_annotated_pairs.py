"""Models with a parameter for each annotator: values by definition, derivatives by finite differences."""

import numpy as np
import pytest
from tests.kernels.test_answers import preferences
from tests.oracles import annotated as slow

from crowdrank.kernels import threads
from crowdrank.kernels.answers import sort_answers
from crowdrank.models.pairs.kernels import annotated_pairs as kernel

N_ITEMS, N_ANNOTATORS = 6, 4


@pytest.fixture(params=[True, False], ids=["weighted", "plain"])
def answers(request):
    columns = preferences(3, 50)
    weight = columns[-1] if request.param else None
    return sort_answers(*columns[:4], weight, N_ITEMS, ties=True)[0], columns[:4], weight


def point(seed=0):
    """Scores and parameters."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=N_ITEMS), rng.uniform(-0.9, 0.9, N_ANNOTATORS)


def dense_curvature(curve, answers):
    """The whole matrix of negated second derivatives."""
    matrix = np.zeros((N_ITEMS + N_ANNOTATORS,) * 2)
    for i, j, bend in zip(answers.first, answers.second, curve.bend, strict=True):
        matrix[i, j] = matrix[j, i] = -bend
    matrix[:N_ITEMS, N_ITEMS:] = curve.cross
    matrix[N_ITEMS:, :N_ITEMS] = curve.cross.T
    return matrix + np.diag(np.concatenate([curve.degree, curve.own_bend]))


@pytest.mark.parametrize("model", ["mixture", "slope"])
def test_the_value_is_that_of_the_definition(answers, model):
    sorted_answers, (left, right, outcome, by), weight = answers
    scores, own = point()
    total = 0.0
    for i, j, y, k, w in zip(left, right, outcome, by, np.ones(50) if weight is None else weight, strict=True):
        if model == "mixture":
            above = slow.logistic(scores[i] - scores[j])
            chance = (1 + own[k]) / 2 * above + (1 - own[k]) / 2 * (1 - above)
        else:
            chance = slow.logistic(own[k] * (scores[i] - scores[j]))
        total += w * ((1 + y) / 2 * np.log(chance) + (1 - y) / 2 * np.log(1 - chance))
    curve = kernel.evaluate_answers(sorted_answers, model, scores, own, dense=True)
    assert curve.log_likelihood == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("model", ["mixture", "slope"])
def test_derivatives_are_those_of_finite_differences(answers, model, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    sorted_answers = answers[0]

    def at(x):
        return kernel.evaluate_answers(sorted_answers, model, x[:N_ITEMS], x[N_ITEMS:], dense=True)

    def slopes(x):
        return np.concatenate([at(x).gradient, at(x).own_gradient])

    here = np.concatenate(point())
    np.testing.assert_allclose(slopes(here), slow.gradient(lambda x: at(x).log_likelihood, here), atol=1e-7)
    matrix = -np.array([(slopes(here + move) - slopes(here - move)) / 2e-5 for move in 1e-5 * np.eye(len(here))])
    np.testing.assert_allclose(dense_curvature(at(here), sorted_answers), matrix, atol=1e-7)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_list_stands_for_the_same_matrix(answers, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    sorted_answers, (scores, own), rng = answers[0], point(), np.random.default_rng(1)
    cross = kernel.evaluate_answers(sorted_answers, "mixture", scores, own, dense=True).cross
    curve = kernel.evaluate_answers(sorted_answers, "mixture", scores, own, dense=False)
    items, annotators, room = rng.normal(size=N_ITEMS), rng.normal(size=N_ANNOTATORS), rng.random(N_ANNOTATORS)
    to_items, to_own = kernel.joint_product(sorted_answers, curve, curve.bend, items, annotators)
    matrix = dense_curvature(curve._replace(cross=cross), sorted_answers)
    np.fill_diagonal(matrix, 0.0)
    image = matrix @ np.concatenate([items, annotators])
    np.testing.assert_allclose(np.concatenate([to_items, to_own]), image, atol=1e-12)
    blocks = kernel.explained_curvature(sorted_answers, curve.tie_in, room, np.array([0]), N_ITEMS)
    np.testing.assert_allclose(blocks[0], (cross * room) @ cross.T, atol=1e-12)


def test_curvature_explained_in_several_queries():
    left, right, outcome, by, _ = preferences(5, 60, n_items=3)
    shift = 3 * np.random.default_rng(0).integers(0, 2, 60).astype(np.int32)
    sorted_answers, _ = sort_answers(left + shift, right + shift, outcome, by, None, N_ITEMS, ties=True)
    scores, own = point()
    cross = kernel.evaluate_answers(sorted_answers, "mixture", scores, own, dense=True).cross
    curve = kernel.evaluate_answers(sorted_answers, "mixture", scores, own, dense=False)
    room = np.arange(1.0, 5.0)
    blocks = kernel.explained_curvature(sorted_answers, curve.tie_in, room, np.array([0, 3]), 3)
    for block, part in zip(blocks, (cross[:3], cross[3:]), strict=True):
        np.testing.assert_allclose(block, (part * room) @ part.T, atol=1e-12)


def test_margins_of_turned_annotators(answers):
    sorted_answers = answers[0]
    turned = np.array([True, False, False, True])
    change = kernel.turned_margins(sorted_answers, turned)
    weight = sorted_answers.weight if sorted_answers.weight.size else np.ones(50)
    signed = weight * sorted_answers.outcome * turned[sorted_answers.annotator]
    np.testing.assert_allclose(change, -2 * np.bincount(sorted_answers.pair, signed, len(change)), atol=1e-12)


def test_many_surprising_answers_do_not_underflow():
    n = 5000
    columns = (np.zeros(n, np.int32), np.ones(n, np.int32), -np.ones(n, np.int8), np.zeros(n, np.int32))
    sorted_answers, _ = sort_answers(*columns, None, 2, ties=True)
    curve = kernel.evaluate_answers(sorted_answers, "mixture", np.array([9.0, -9.0]), np.array([0.999]), dense=True)
    assert curve.log_likelihood == pytest.approx(n * np.log((1 - 0.999 * np.tanh(9.0)) / 2), rel=1e-9)
