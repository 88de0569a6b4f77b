"""ListMLE."""

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.oracles.linear_rankers import scaled_overall, weights
from tests.oracles.list_losses import choices

from crowdrank.errors import ParameterError
from crowdrank.metrics import ndcg
from crowdrank.rankers import ListMLE, RankSVM


def test_two_items_by_hand():
    ranker = ListMLE(scale="none", ridge=0.1, tol=1e-10).fit([[1.0], [0.0]], [7, 3], qid=[0, 0])
    by_hand = brentq(lambda w: -1 / (1 + np.exp(w)) + 0.1 * w, -5, 9, xtol=1e-12)
    assert ranker.weights_[0] == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("continuous", [True, False])
def test_weights_are_those_of_a_general_minimiser(rows, continuous):
    y = rows.y + np.random.default_rng(4).random(len(rows.y)) if continuous else rows.y
    ranker = ListMLE(ridge=0.5, tol=1e-9).fit(rows.X, y, qid=rows.qid)
    ones, factor = np.ones(len(y)), np.full(30, 1 / 30)
    scaled = scaled_overall(rows.X, rows.qid)
    expected = weights(lambda s: choices(s, y, ones, rows.qid, factor), scaled, 0.5)
    np.testing.assert_allclose(ranker.weights_, expected, atol=1e-5)


def test_rankings_without_ties_are_the_same_either_way(rows):
    y = np.random.default_rng(4).random(len(rows.y))
    together, random = (ListMLE(ties=ties).fit(rows.X, y, qid=rows.qid) for ties in ("together", "random"))
    np.testing.assert_allclose(together.weights_, random.weights_, atol=1e-9)


def test_only_the_order_of_targets_matters(rows):
    one, other = (ListMLE().fit(rows.X, y, qid=rows.qid) for y in (rows.y, 10 * rows.y**3 - 5))
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_random_orders_follow_the_seed(rows):
    first, again, other = (ListMLE(ties="random", seed=s).fit(rows.X, rows.y, qid=rows.qid) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.weights_, again.weights_)
    assert abs(first.weights_ - other.weights_).max() > 1e-4


def test_relevant_or_not_is_a_choice_among_pairs():
    # with two items and unequal grades the choice is that of a pair
    rng = np.random.default_rng(5)
    X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(20), 2)
    y = rng.integers(0, 2, 40)
    y[1::2] = 1 - y[::2]
    pairs = RankSVM(loss="logistic", ridge=0.3, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(ListMLE(ridge=0.3, tol=1e-9).fit(X, y, qid=qid).weights_, pairs.weights_, atol=1e-7)


def test_several_rankings_of_a_query():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(50, 2))
    truth = X @ [2.0, -1.0]
    rows, qid, rank = [], [], []
    for number in range(60):
        # Plackett-Luce: the order of scores with noise of Gumbel's distribution
        order = np.argsort(-(truth + rng.gumbel(size=50)))
        rows += order.tolist()
        qid += [number] * 50
        rank += range(1, 51)
    ranker = ListMLE(scale="none", ridge=1e-6).fit(X[rows], -np.array(rank), qid=qid)
    np.testing.assert_allclose(ranker.weights_, [2.0, -1.0], atol=0.06)


def test_unknown_ties_are_named(rows):
    with pytest.raises(ParameterError, match="ties='drop' is not known; choose one of 'together', 'random'"):
        ListMLE(ties="drop").fit(rows.X, rows.y)


@pytest.mark.data
def test_ohsumed(folds):
    found = []
    for fold in folds("letor-ohsumed"):
        scores = ListMLE().fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict(fold.test.X)
        found.append(ndcg(fold.test.y, scores, fold.test.qid, per_query=True))
    assert np.concatenate(found).mean() >= 0.44
