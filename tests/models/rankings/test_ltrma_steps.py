"""Weights that make rankings likely: those of list_mle, of several orders, and of random ones."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank.models.rankings.ltrma import LuceWeights
from crowdrank.rankers import ListMLE
from crowdrank.rankers.kernels.losses import likely_orders

SIZES = (3, 4, 2, 4)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
QUERY = np.repeat(np.arange(4), SIZES)


@pytest.fixture
def luce():
    values = np.random.default_rng(0).normal(size=(13, 3))
    return LuceWeights.of(values, QUERY, scale="overall", ridge=0.2, tol=1e-9)


def an_order(seed):
    """A random order of each query's places."""
    rng = np.random.default_rng(seed)
    return np.concatenate([OFFSETS[q] + rng.permutation(n) for q, n in enumerate(SIZES)])


def test_one_order_of_each_query_gives_the_weights_of_list_mle(luce):
    order = an_order(1)
    target = np.empty(13)
    target[order] = -np.arange(13.0)
    ranker = ListMLE(ridge=0.2, tol=1e-9).fit(luce.design.matrix.values, target, qid=QUERY)
    weights = luce.from_orders(order[None], np.zeros(3))
    np.testing.assert_allclose(weights, ranker.weights_, atol=1e-8)
    np.testing.assert_allclose(luce.design.scores(weights), ranker.predict(luce.design.matrix.values), atol=1e-8)
    np.testing.assert_allclose(luce.from_orders(np.stack([order, order]), np.ones(3)), weights, atol=1e-8)
    assert luce.penalty(weights) == pytest.approx(0.1 * 4 * float(weights @ weights))


def test_slopes_and_curvature_of_several_orders(luce):
    orders = np.stack([an_order(seed) for seed in range(3)])
    loss, scores, step = likely_orders(orders, OFFSETS), np.random.default_rng(4).normal(size=13), 1e-6
    moves = step * np.eye(13)
    numeric = [(loss(scores + m).value - loss(scores - m).value) / (2 * step) for m in moves]
    np.testing.assert_allclose(loss(scores).slopes, numeric, atol=1e-7)
    bent = loss(scores).bend(0, 4, np.eye(13))
    numeric = np.array([(loss(scores + m).slopes - loss(scores - m).slopes) / (2 * step) for m in moves])
    np.testing.assert_allclose(bent, numeric, atol=1e-7)
    np.testing.assert_allclose(loss(scores).bend(1, 3, np.eye(13)[3:9]), bent[3:9], atol=1e-12)


def test_random_orders_equal_all_of_them_by_number(luce):
    # each order of a query as often as the others: sets of one size are equally probable
    sets = np.concatenate([[1 / len(list(_choose(n, bin(s).count("1")))) for s in range(2**n)] for n in SIZES])
    all_orders = [[OFFSETS[q] + np.array(order) for order in permutations(range(n))] for q, n in enumerate(SIZES)]
    orders = np.stack([np.concatenate([each[k % len(each)] for each in all_orders]) for k in range(24)])
    start = np.zeros(3)
    np.testing.assert_allclose(luce.from_sets(sets, start), luce.from_orders(orders, start), atol=1e-8)


def _choose(n, k):
    """Sets of k of n."""
    return (s for s in range(2**n) if bin(s).count("1") == k)
