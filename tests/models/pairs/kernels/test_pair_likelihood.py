"""The pairwise models: their value by definition, their derivatives by finite differences."""

import numpy as np
import pytest
from tests.oracles import pairs as slow

from crowdrank.kernels import threads
from crowdrank.kernels.pairs import count_pairs
from crowdrank.models.pairs.kernels.pair_likelihood import evaluate_ties

N_ITEMS = 6


def case(ties, seed=0):
    """Counts as a dict and as the arguments of the kernel."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, N_ITEMS, 80)
    right = (left + rng.integers(1, N_ITEMS, 80)) % N_ITEMS
    outcome = rng.integers(-1, 2, 80).astype(np.int8)
    weight = rng.random(80) + 0.5
    counts = count_pairs(left.astype(np.int32), right.astype(np.int32), outcome, weight, np.array([0, N_ITEMS]))
    number = counts.wins + counts.losses + (counts.ties if ties != "ignore" else 0)
    arguments = (counts.starts, counts.second, counts.wins - counts.losses, number)
    n_ties = float(counts.ties.sum()) if ties == "davidson" else 0.0
    return slow.count_pairs(left, right, outcome, weight), arguments, n_ties


def evaluate(arguments, point, ties, n_ties):
    tie = float(np.exp(point[-1])) if ties == "davidson" else 0.0
    return evaluate_ties(*arguments, np.array(point[:N_ITEMS]), tie, n_ties)


@pytest.fixture(params=["split", "ignore", "davidson"])
def ties(request):
    return request.param


@pytest.fixture
def point(ties):
    return np.random.default_rng(9).normal(0, 1.5, N_ITEMS + (ties == "davidson"))


def test_value_is_the_log_likelihood(ties, point):
    counts, arguments, n_ties = case(ties)
    found = evaluate(arguments, point, ties, n_ties)
    expected = slow.log_likelihood(counts, point[:N_ITEMS], ties, point[-1])
    assert found.log_likelihood == pytest.approx(expected, rel=1e-12)


def test_gradient_is_that_of_finite_differences(ties, point):
    _, arguments, n_ties = case(ties)
    found = evaluate(arguments, point, ties, n_ties)
    gradient = np.append(found.gradient, found.tie_gradient)[: len(point)]
    for place in range(len(point)):
        step = np.zeros(len(point))
        step[place] = 1e-5
        up, down = (evaluate(arguments, point + sign * step, ties, n_ties).log_likelihood for sign in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


def test_curvature_is_that_of_finite_differences(ties, point):
    counts, arguments, n_ties = case(ties)
    found = evaluate(arguments, point, ties, n_ties)
    matrix = np.zeros((len(point), len(point)))
    pairs = dict(zip(counts, found.bend, strict=True))
    matrix[:N_ITEMS, :N_ITEMS] = slow.laplacian(pairs, N_ITEMS, 0.0)
    np.testing.assert_allclose(np.diag(matrix)[:N_ITEMS], found.degree, rtol=1e-12)
    if ties == "davidson":
        matrix[-1, :-1] = matrix[:-1, -1] = found.cross
        matrix[-1, -1] = found.tie_bend
    expected = -slow.hessian(slow.penalised(counts, ties, 0.0), point)
    np.testing.assert_allclose(matrix, expected, rtol=1e-4, atol=1e-4)


def test_threads_add_up_to_the_same(ties, point, monkeypatch):
    _, arguments, n_ties = case(ties)
    one = evaluate(arguments, point, ties, n_ties)
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 3)
    other = evaluate(arguments, point, ties, n_ties)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_far_apart_scores_neither_overflow_nor_lose_their_curvature():
    starts, second = np.array([0, 1, 1]), np.array([1], np.int32)
    found = evaluate_ties(starts, second, np.array([1.0]), np.array([1.0]), np.array([150.0, -150.0]), 0.0, 0.0)
    assert found.log_likelihood == pytest.approx(0.0, abs=1e-12)
    assert found.bend[0] == pytest.approx(np.exp(-300.0), rel=1e-9)
