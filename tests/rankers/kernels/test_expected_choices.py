"""Expected likelihood of random rankings, and stochastic steps on that of given ones, against slow twins."""

from itertools import permutations

import numpy as np
import pytest
from tests.oracles.listwise import of_order

from crowdrank.models.rankings.kernels.true_rankings import descend
from crowdrank.rankers.kernels.losses import bend_sets, choose_from_sets

SIZES = (4, 1, 3)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
FACTOR = np.array([0.5, 0.2, 1.5])


def random_orders(seed=0):
    """Chances of all orders of each query, and of the sets of first ones that they make."""
    rng, chances, sets = np.random.default_rng(seed), [], []
    for n in SIZES:
        orders = list(permutations(range(n)))
        share = rng.dirichlet(np.full(len(orders), 0.3))
        chances.append(dict(zip(orders, share, strict=True)))
        found = np.zeros(2**n)
        for order, part in chances[-1].items():
            for size in range(n + 1):
                found[sum(1 << item for item in order[:size])] += part
        sets.append(found)
    return chances, np.concatenate(sets)


def slow(scores, chances):
    """Expected negative log-likelihood, order by order."""
    return -sum(
        FACTOR[q] * part * of_order(scores[OFFSETS[q] : OFFSETS[q + 1]][list(order)])
        for q, orders in enumerate(chances) for order, part in orders.items()
    )  # fmt: skip


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_equals_the_sum_over_all_orders_with_slopes_and_curvature(spread):
    chances, sets = random_orders()
    rng = np.random.default_rng(1)
    scores, step = rng.normal(0, spread, OFFSETS[-1]), 1e-5
    value, slopes = choose_from_sets(scores, sets, OFFSETS, FACTOR)
    assert value == pytest.approx(slow(scores, chances), abs=1e-10)
    moves = step * np.eye(len(scores))
    numeric = [(slow(scores + m, chances) - slow(scores - m, chances)) / (2 * step) for m in moves]
    np.testing.assert_allclose(slopes, numeric, atol=1e-6)
    block = rng.normal(size=(len(scores), 2))
    bent = bend_sets(scores, sets, OFFSETS, FACTOR, 0, 3, block)
    for along, image in zip(block.T, bent.T, strict=True):
        up, down = (choose_from_sets(scores + sign * step * along, sets, OFFSETS, FACTOR)[1] for sign in (1, -1))
        np.testing.assert_allclose(image, (up - down) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(bend_sets(scores, sets, OFFSETS, FACTOR, 2, 3, block[5:]), bent[5:])


def test_scores_far_apart_stay_finite():
    _, sets = random_orders()
    scores = np.array([900.0, 0.0, -900.0, 1e4, 0.0, 5e3, -1e4, 0.0])
    value, slopes = choose_from_sets(scores, sets, OFFSETS, FACTOR)
    assert np.isfinite(value)
    assert np.isfinite(slopes).all()


def test_stochastic_steps_follow_the_slope_of_each_query_in_turn():
    rng = np.random.default_rng(2)
    matrix, weights = rng.normal(size=(OFFSETS[-1], 2)), np.array([0.3, -0.2])
    order = np.concatenate([OFFSETS[q] + rng.permutation(n) for q, n in enumerate(SIZES)])
    visits = np.array([2, 0, 1])
    expected = weights.copy()
    for _ in range(3):
        for q in visits:
            rows = matrix[order[OFFSETS[q] : OFFSETS[q + 1]]]
            near = [
                (of_order(rows @ (expected + m)) - of_order(rows @ (expected - m))) / 2e-6 for m in 1e-6 * np.eye(2)
            ]
            expected = expected + 0.1 * np.array(near)
    found = descend(matrix, order, OFFSETS, visits, weights, 0.1, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert weights.tolist() == [0.3, -0.2]
