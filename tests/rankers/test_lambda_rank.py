"""LambdaRank learns, stops, is repeated by its seed, and is saved; only several hidden layers need torch."""

import sys

import numpy as np
import pytest
from sklearn.base import clone

import crowdrank as cr
from crowdrank.errors import MissingExtraError, ParameterError
from crowdrank.rankers import LambdaRank, lambda_rank


@pytest.fixture
def made():
    """Forty queries of 5 to 24 items, graded 0 to 3 by a function that is not linear."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), rng.integers(5, 25, 40))
    X = rng.random((len(qid), 4))
    strength = np.abs(X[:, 0] - 0.5) + 0.5 * X[:, 1] + 0.05 * rng.normal(size=len(qid))
    return X, np.digitize(strength, [0.4, 0.6, 0.75]).astype(float), qid


def test_training_without_torch_says_how_to_get_it(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"n_layers=1, or install it with pip install 'crowdrank\[neural\]'"):
        LambdaRank(n_layers=2).fit(made[0], made[1], qid=made[2])
    LambdaRank(n_epochs=1).fit(made[0], made[1], qid=made[2])


def test_slopes_by_hand_are_those_of_torch(made):
    pytest.importorskip("torch", reason="the neural extra is not installed")
    rng = np.random.default_rng(1)
    first = rng.uniform(-0.5, 0.5, (6, 4)), np.zeros(6), rng.uniform(-0.4, 0.4, 6)
    target = rng.normal(size=50)
    batch = made[0][:50], lambda scores: scores - target
    networks = [
        kind(tuple(map(np.copy, first)), 0.05, 0.01) for kind in (lambda_rank._Network, lambda_rank._DeepNetwork)
    ]
    for _ in range(30):
        for network in networks:
            network.step(*batch)
    for by_hand, by_torch in zip(networks[0].layers(), networks[1].layers(), strict=True):
        np.testing.assert_allclose(by_hand, by_torch, rtol=1e-8, atol=1e-10)


def test_several_layers_learn_and_are_saved(made, tmp_path):
    pytest.importorskip("torch", reason="the neural extra is not installed")
    X, y, qid = made
    ranker = LambdaRank(n_layers=2, n_epochs=60, learning_rate=0.03).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > 0.75
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(cr.load_ranker(tmp_path / "model").predict(X), ranker.predict(X))
    assert len(ranker.importance()) == 4


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_hidden": 0}, "n_hidden=0 must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be above 0"),
        ({"loss": "mse"}, "loss='mse' is not known"),
        ({"ridge": -1.0}, "ridge=-1.0 must be at least 0"),
        ({"patience": 3}, "give eval_set="),
    ],
)
def test_parameters_are_checked_when_fitting(params, message, made):
    with pytest.raises(ParameterError, match=message):
        LambdaRank(**params).fit(made[0], made[1], qid=made[2])


@pytest.mark.parametrize("loss", ["lambda_rank", "list_net", "list_mle"])
def test_it_learns_what_no_linear_ranker_can(loss, made):
    X, y, qid = made
    ranker = LambdaRank(loss=loss, n_epochs=150, learning_rate=0.03).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > cr.rankers.ListNet().fit(X, y, qid=qid).score(X, y, qid=qid) + 0.05
    again = clone(ranker).fit(X, y, qid=qid)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


def test_copies_change_little_and_shuffled_rows_nothing(made):
    X, y, qid = made
    ranker = LambdaRank(n_epochs=20).fit(X, y, qid=qid)
    shuffle = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(
        clone(ranker).fit(X[shuffle], y[shuffle], qid=qid[shuffle]).predict(X), ranker.predict(X), atol=1e-3
    )
    three = np.repeat(np.arange(len(y)), 3)
    copied = clone(ranker).fit(X[three], y[three], qid=qid[three], item=three)
    np.testing.assert_allclose(copied.predict(X), ranker.predict(X), atol=1e-2)


def test_early_stopping_saving_and_predicting_without_torch(made, tmp_path, monkeypatch):
    X, y, qid = made
    train, held = qid < 30, qid >= 30
    valid = {"eval_set": (X[held], y[held]), "eval_qid": qid[held]}
    ranker = LambdaRank(n_epochs=300, learning_rate=0.05, patience=10)
    ranker.fit(X[train], y[train], qid=qid[train], **valid)
    assert len(ranker.curve_) == min(300, ranker.n_epochs_ + 10)
    assert ranker.score(X[held], y[held], qid=qid[held]) == pytest.approx(ranker.curve_["valid"].max(), abs=1e-9)
    ranker.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "torch", None)
    np.testing.assert_array_equal(cr.load_ranker(tmp_path / "model").predict(X), ranker.predict(X))
    assert len(ranker.importance()) == 4
