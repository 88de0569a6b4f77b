"""ListNet."""

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.oracles.linear_rankers import scaled_overall, weights
from tests.oracles.list_losses import cross_entropy

from crowdrank.errors import ParameterError
from crowdrank.metrics import average_precision, ndcg
from crowdrank.rankers import ListNet
from crowdrank.registry import make


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_two_items_by_hand():
    # one feature, 1 and 0: the slope of the loss is sigmoid(w) - sigmoid(y1 - y2), and the ridge adds its own
    ranker = ListNet(scale="none", ridge=0.1, tol=1e-10).fit([[1.0], [0.0]], [1.5, 0.2], qid=[0, 0])
    by_hand = brentq(lambda w: sigmoid(w) - sigmoid(1.3) + 0.1 * w, -5, 5, xtol=1e-12)
    assert ranker.weights_[0] == pytest.approx(by_hand, abs=1e-9)
    assert ListNet(scale="none", ridge=1e-9).fit([[1.0], [0.0]], [1.5, 0.2], qid=[0, 0]).weights_[0] == pytest.approx(
        1.3, abs=1e-6
    )


def test_weights_are_those_of_a_general_minimiser(rows):
    ranker = ListNet(ridge=0.05, tol=1e-9).fit(rows.X, rows.y, qid=rows.qid)
    n_queries = len(np.unique(rows.qid))
    ones, factor = np.ones(len(rows.y)), np.full(n_queries, 1 / n_queries)
    scaled = scaled_overall(rows.X, rows.qid)
    expected = weights(lambda s: cross_entropy(s, rows.y, ones, rows.qid, factor), scaled, 0.05)
    np.testing.assert_allclose(ranker.weights_, expected, atol=1e-5)


def test_scores_that_can_be_met_are_met():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(10), 6)
    y = X @ [1.0, -2.0, 0.5]
    ranker = ListNet(scale="none", ridge=1e-9, tol=1e-9).fit(X, y, qid=qid, sample_weight=rng.uniform(0.5, 2, 60))
    # whatever the weights of the rows: they do not lift an item
    np.testing.assert_allclose(ranker.weights_, [1.0, -2.0, 0.5], atol=1e-5)


def test_several_rows_of_an_item_count_by_their_mean_exponential():
    X = np.array([[1.0], [1.0], [0.0]])
    several = ListNet(scale="none", tol=1e-9).fit(
        X, [2, 0, 1], qid=[0, 0, 0], item=["a", "a", "b"], sample_weight=[1, 1, 2]
    )
    mean = np.log((np.exp(2) + np.exp(0)) / 2)
    one = ListNet(scale="none", tol=1e-9).fit(X[1:], [mean, 1], qid=[0, 0])
    assert several.weights_[0] == pytest.approx(one.weights_[0], abs=1e-8)


def test_the_papers_run_by_hand(rows):
    held = {"eval_set": (rows.X, rows.y), "eval_qid": rows.qid}
    ranker = ListNet(solver="paper", scale="query").fit(rows.X, rows.y, qid=rows.qid, **held)
    newton = ListNet(scale="query").fit(rows.X, rows.y, qid=rows.qid)
    scaled = newton.scaling_.apply(rows.X, np.unique(rows.qid, return_index=True)[1])
    w = speed = np.zeros(4)
    best, kept = -1.0, None
    for step in range(1, 101):
        chance, wanted = (softmax_by_query(values, rows.qid) for values in (scaled @ w, rows.y))
        speed = 0.9 * speed - scaled.T @ (chance - wanted) / 30
        w = w + speed
        value = ndcg(rows.y, scaled @ w, rows.qid)
        if step % 2 == 0 and value > best + 1e-12:
            best, kept = value, w
    np.testing.assert_allclose(ranker.weights_, kept, atol=1e-9)
    assert ranker.curve_["iteration"].to_list() == list(range(2, 101, 2))
    assert ranker.curve_["valid"].max() == pytest.approx(best)


def softmax_by_query(values, qid):
    e = np.exp(values - values.max())
    return e / np.bincount(qid, e)[qid]


def test_the_papers_run_without_validation_rows_keeps_the_last_step(rows):
    ranker = make("ranker", "listnet-paper", {"max_iter": 7}).fit(rows.X, rows.y, qid=rows.qid)
    assert (ranker.solver, ranker.scale, ranker.n_iter_) == ("paper", "query", 7)
    assert ranker.curve_["iteration"].to_list() == [2, 4, 6, 7]
    longer = make("ranker", "listnet-paper", {"max_iter": 8}).fit(rows.X, rows.y, qid=rows.qid)
    assert longer.trace_.log_likelihood[7] == pytest.approx(-ranker.curve_["objective"][-1])


def test_unknown_solvers_are_named(rows):
    with pytest.raises(ParameterError, match="solver='adam' is not known; choose one of 'newton', 'paper'"):
        ListNet(solver="adam").fit(rows.X, rows.y)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least_ndcg", "least_map"), [("letor-ohsumed", 0.450, 0.445), ("letor-mq2008", 0.495, 0.465)]
)
def test_public_folds(folds, name, least_ndcg, least_map):
    found = []
    for fold in folds(name):
        scores = ListNet().fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict(fold.test.X)
        of = (fold.test.y, scores, fold.test.qid)
        found.append([ndcg(*of, per_query=True), average_precision(*of, per_query=True)])
    value, precision = np.concatenate(found, axis=1).mean(1)
    assert value >= least_ndcg
    assert precision >= least_map


@pytest.mark.data
def test_the_papers_run_on_ohsumed(folds):
    fold = folds("letor-ohsumed")[0]
    ranker = make("ranker", "listnet-paper")
    ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid, eval_set=fold.vali[:2], eval_qid=fold.vali.qid)
    assert ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.3
    assert ranker.curve_["valid"].max() == pytest.approx(ranker.score(fold.vali.X, fold.vali.y, qid=fold.vali.qid))
