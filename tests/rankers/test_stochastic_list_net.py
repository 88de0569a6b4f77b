"""ListNet by a step for each query: against a plain loop, and what it refuses."""

import numpy as np
import pytest

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.rankers import ListNet


def made():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(6), [4, 7, 5, 9, 3, 6])
    X = rng.random((len(qid), 3))
    return X, np.round(3 * X[:, 0] + rng.random(len(qid))), qid


def softmax(values):
    power = np.exp(values - values.max())
    return power / power.sum()


def test_passes_are_those_of_a_plain_loop():
    X, y, qid = made()
    ranker = ListNet(solver="stochastic", scale="none", learning_rate=0.1, start=0.2, max_iter=3, seed=5).fit(
        X, y, qid=qid
    )
    rng = np.random.default_rng(5)
    weights = 0.2 * rng.standard_normal(3)
    for _ in range(3):
        for query in rng.permutation(6):
            rows = qid == query
            weights = weights - 0.1 * (softmax(X[rows] @ weights) - softmax(y[rows])) @ X[rows]
    np.testing.assert_allclose(ranker.weights_, weights, rtol=1e-9)


def test_more_passes_lower_the_loss_and_the_best_on_validation_is_kept():
    X, y, qid = made()
    ranker = ListNet(solver="stochastic", scale="none", learning_rate=0.05, max_iter=30).fit(X, y, qid=qid)
    values = ranker.trace_.log_likelihood
    assert values[-1] > values[0]
    held = ListNet(solver="stochastic", scale="none", learning_rate=0.05, max_iter=30)
    held.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert held.score(X, y, qid=qid) == pytest.approx(held.curve_["valid"].max(), abs=1e-9)


def test_what_cannot_be_is_said():
    X, y, qid = made()
    with pytest.raises(ParameterError, match=r"learning_rate=0\.0 must be above 0"):
        ListNet(solver="stochastic", learning_rate=0.0).fit(X, y, qid=qid)
    twice = np.repeat(np.arange(len(y)), 2)
    with pytest.raises(JudgmentError, match="one row per item"):
        ListNet(solver="stochastic").fit(X[twice], y[twice], qid=qid[twice], item=twice)
