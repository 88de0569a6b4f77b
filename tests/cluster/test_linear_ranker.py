"""Linear rankers in parts: the same bits here and on Dask, near the plain fit, from packed judgments too."""

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cluster.some_judgments import some_grades

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster import ranker as cluster_ranker
from crowdrank.cluster.executor import InMemory, Streamed
from crowdrank.cluster.packing import pack_judgments
from crowdrank.cluster.ranker import HeldParts, PartedLinear, StoredParts
from crowdrank.errors import JudgmentError
from crowdrank.rankers import LambdaMART, ListMLE, ListNet, RankSVM
from crowdrank.rankers.training_rows import Lists, Matrix

RANKERS = [
    ListNet(tol=1e-10),
    ListNet(scale="query", tol=1e-10),
    ListMLE(tol=1e-10),
    ListMLE(ties="random", scale="none", tol=1e-10),
    RankSVM(loss="logistic", tol=1e-10),
    RankSVM(balance="queries", tol=1e-10),
]


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(cluster_ranker, "MANY_ROWS", 10)
    monkeypatch.setattr(cluster_ranker, "_PART_ROWS", 25)


def some_rows(seed=0, n_queries=40, n_features=4, shuffled=False):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries))
    X = rng.normal(size=(len(qid), n_features)) * np.array([1.0, 10.0, 0.1, 3.0])[:n_features] + 5
    y = np.clip(np.round(X[:, 0] - 4 + rng.normal(size=len(qid))), 0, 3)
    order = rng.permutation(len(qid)) if shuffled else np.arange(len(qid))
    return X[order], y[order], qid[order]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
@pytest.mark.parametrize("shuffled", [False, True])
def test_parts_give_the_plain_weights(ranker, shuffled):
    X, y, qid = some_rows(shuffled=shuffled)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    parted = PartedLinear(ranker=type(ranker)(**ranker.get_params())).fit(X, y, qid=qid, sample_weight=weight).scorer
    plain = type(ranker)(**ranker.get_params()).fit(X, y, qid=qid, sample_weight=weight)
    np.testing.assert_allclose(parted.weights_, plain.weights_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parted.scaling_.spread, plain.scaling_.spread, rtol=1e-12)
    np.testing.assert_allclose(parted.predict(X, qid), plain.predict(X, qid), rtol=1e-8, atol=1e-8)
    assert parted.n_iter_ == plain.n_iter_
    assert len(parted.curve_) == len(plain.curve_)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_a_cluster_changes_no_bit(ranker, client):
    X, y, qid = some_rows()
    here = PartedLinear(ranker=type(ranker)(**ranker.get_params())).fit(X, y, qid=qid).scorer
    there = PartedLinear(ranker=type(ranker)(**ranker.get_params()), cluster=client).fit(X, y, qid=qid).scorer
    assert (here.weights_ == there.weights_).all()
    assert here.trace_ == there.trace_


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1000), n_queries=st.integers(2, 60))
def test_memory_and_streaming_agree_to_the_bit(seed, n_queries, tmp_path_factory):
    X, y, qid = some_rows(seed, n_queries)
    ranker = ListNet(max_iter=4, tol=1e-3)
    parts = HeldParts(Matrix(X), Lists.of(len(y), y, qid))
    stored = StoredParts.of(parts, str(tmp_path_factory.mktemp("rows")))
    fit = ranker.over_blocks(X.shape[1], lambda scaling: lambda *step: True)
    (weights, _, trace), (streamed, _, of_streamed) = InMemory().run(fit, parts), Streamed().run(fit, stored)
    assert (weights == streamed).all()
    assert trace == of_streamed


def test_many_features_go_by_conjugate_gradients(monkeypatch):
    from crowdrank.rankers import linear

    monkeypatch.setattr(linear, "_MAX_DIRECT_FEATURES", 2)
    X, y, qid = some_rows()
    parted = PartedLinear(ranker=ListNet(tol=1e-9)).fit(X, y, qid=qid).scorer
    plain = ListNet(tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(parted.weights_, plain.weights_, rtol=1e-8, atol=1e-8)


def test_the_curve_of_validation_rows_is_that_of_the_plain_fit():
    X, y, qid = some_rows()
    held = {"eval_set": some_rows(1)[:2], "eval_qid": some_rows(1)[2]}
    parted = PartedLinear(ranker=ListNet()).fit(X, y, qid=qid, **held).scorer
    plain = ListNet().fit(X, y, qid=qid, **held)
    np.testing.assert_allclose(parted.curve_["valid"].to_numpy(), plain.curve_["valid"].to_numpy(), rtol=1e-9)


def test_a_part_that_is_missing_is_spoken_of(tmp_path):
    X, y, qid = some_rows()
    stored = StoredParts.of(HeldParts(Matrix(X), Lists.of(len(y), y, qid)), str(tmp_path))
    (tmp_path / "part-00001.npz").unlink()
    with pytest.raises(JudgmentError, match=r"part-00001.npz cannot be read .*TMPDIR"):
        stored.part(1)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    return pack_judgments([some_grades()], tmp_path / "packed", part_rows=100)


def some_features():
    rng = np.random.default_rng(2)
    items = some_grades().items
    return pl.DataFrame(
        {"query": items.query_ids(), "item": items.ids, "a": rng.normal(size=len(items)), "b": rng.random(len(items))}
    )


@pytest.mark.parametrize("aggregator", ["dawid_skene", "mean_grade"])
def test_packed_judgments_are_all_learned_from(packed, client, aggregator):
    how = {"ranker": "list_net", "aggregator": aggregator}
    whole = cr.train(some_grades(), some_features(), **how)
    fits = [cr.train(packed, some_features(), **how, **where) for where in ({}, {"stream": True}, {"cluster": client})]
    np.testing.assert_allclose(fits[0].ranker.weights_, whole.ranker.weights_, rtol=1e-6)
    assert all((fit.ranker.weights_ == fits[0].ranker.weights_).all() for fit in fits)
    assert len(fits[0].consensus) == 100
    assert isinstance(fits[0].ranker, ListNet)


def test_trees_learn_from_packed_judgments_too(packed):
    fit = cr.train(packed, some_features(), "lambda_mart", "mean_grade", params={"n_trees": 3})
    assert isinstance(fit.ranker, LambdaMART)
    assert fit.n_items == 100
