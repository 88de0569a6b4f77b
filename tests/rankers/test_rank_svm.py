"""RankSVM."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.oracles.linear_rankers import scaled_overall, weights
from tests.oracles.list_losses import pairs

from crowdrank.errors import DataWarning, ParameterError
from crowdrank.metrics import ndcg
from crowdrank.rankers import RankSVM, rank_svm
from crowdrank.registry import make


def differences(X, y, qid):
    """Features of the better item less those of the worse, for every pair."""
    better, worse = np.nonzero((qid[:, None] == qid[None, :]) & (y[:, None] > y[None, :]))
    return X[better] - X[worse]


@pytest.mark.parametrize("ridge", [0.1, 1.0, 4.0])
def test_one_pair_by_hand(ridge):
    # between 0 and 1 the loss is (1 - w)**2 / 2, so that w = 1 / (1 + ridge)
    ranker = RankSVM(scale="none", ridge=ridge, tol=1e-10).fit([[2.0], [1.0]], [1, 0], qid=[0, 0])
    assert ranker.weights_[0] == pytest.approx(1 / (1 + ridge), abs=1e-9)


def test_two_pairs_at_odds_by_hand():
    # z = w for two pairs and -w for one: 2 (1 - w)**2 / 2 + 1/2 + w has its minimum at w = 1/2 where there is no ridge
    X, y, qid = [[1.0], [0.0]] * 3, [1, 0, 1, 0, 0, 1], [1, 1, 2, 2, 3, 3]
    assert RankSVM(scale="none", ridge=1e-12).fit(X, y, qid=qid).weights_[0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("ridge", [0.001, 0.1, 2.0])
def test_the_logistic_loss_is_logistic_regression_on_differences(rows, ridge):
    ranker = RankSVM(loss="logistic", scale="none", ridge=ridge, tol=1e-10)
    ranker.fit(rows.X, rows.y, qid=rows.qid)
    pairs = differences(rows.X, rows.y, rows.qid)
    both, side = np.vstack([pairs, -pairs]), np.repeat([1, 0], len(pairs))
    peer = LogisticRegression(
        C=1 / (2 * ridge * len(pairs)), fit_intercept=False, tol=1e-10, max_iter=10_000, solver="newton-cholesky"
    )
    np.testing.assert_allclose(ranker.weights_, peer.fit(both, side).coef_[0], atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("balance", ["pairs", "queries"])
def test_weights_are_those_of_a_general_minimiser(rows, loss, balance):
    ranker = RankSVM(loss=loss, ridge=0.05, balance=balance, tol=1e-9).fit(rows.X, rows.y, qid=rows.qid)
    n_pairs = np.array([len(differences(*(part[rows.qid == q] for part in rows))) for q in range(30)])
    some = n_pairs > 0
    factor = some / n_pairs.sum() if balance == "pairs" else some / np.maximum(n_pairs, 1) / some.sum()
    scaled, ones = scaled_overall(rows.X, rows.qid), np.ones(len(rows.y))
    expected = weights(lambda s: pairs(s, rows.y, ones, rows.qid, factor, loss), scaled, 0.05)
    np.testing.assert_allclose(ranker.weights_, expected, atol=2e-5)


def test_rows_of_one_item_form_no_pair():
    X = np.array([[1.0], [1.0], [0.0]])
    # as if the two grades of the item came from two items that are alike, but for the pair of the two
    with_item = RankSVM(scale="none").fit(X, [3, 1, 2], qid=[0, 0, 0], item=["a", "a", "b"])
    assert with_item.weights_[0] == pytest.approx(0, abs=1e-9)
    assert with_item.trace_.log_likelihood[0] == pytest.approx(-0.5)


def test_very_many_pairs_are_spoken_of(rows, monkeypatch):
    monkeypatch.setattr(rank_svm, "_SLOW_FROM_PAIRS", 100)
    with pytest.warns(DataWarning, match="186 rows are of one query; that will take long: give qid"):
        RankSVM().fit(rows.X, rows.y, qid=np.zeros(len(rows.y)))


def test_only_the_order_of_targets_matters(rows):
    one, other = (RankSVM().fit(rows.X, y, qid=rows.qid) for y in (rows.y, 10 * rows.y**3 - 5))
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_the_registry_knows_the_logistic_loss_by_name():
    assert make("ranker", "rank-logistic").loss == "logistic"
    assert make("ranker", "RankSVM").loss == "hinge"


@pytest.mark.parametrize(("name", "value"), [("loss", "squared"), ("balance", "rows")])
def test_unknown_choices_are_named(rows, name, value):
    with pytest.raises(ParameterError, match=f"{name}='{value}' is not known; choose one of"):
        RankSVM(**{name: value}).fit(rows.X, rows.y)


@pytest.mark.data
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_ohsumed(folds, loss):
    found = []
    for fold in folds("letor-ohsumed"):
        scores = RankSVM(loss=loss).fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict(fold.test.X)
        found.append(ndcg(fold.test.y, scores, fold.test.qid, per_query=True))
    assert np.concatenate(found).mean() >= 0.44
