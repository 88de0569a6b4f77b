"""LambdaMART on a Dask cluster: as good as on one machine, and an end within bounded time where a worker dies."""

import contextlib
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import crowdrank as cr
from crowdrank.cluster import ranker as on_cluster
from crowdrank.cluster.dask_executor import dask_client
from crowdrank.cluster.ranker import ClusterLambdaMART
from crowdrank.errors import ClusterError, ParameterError
from crowdrank.rankers.lambda_mart import LambdaMART, Trees
from crowdrank.rankers.training_rows import Matrix

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(n_queries=120, seed=0):
    rng = np.random.default_rng(seed)
    n = 20 * n_queries
    X, qid = rng.random((n, 5)), np.repeat(np.arange(n_queries), 20)
    worth = 2 * X[:, 0] + np.sin(5 * X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.digitize(worth, np.quantile(worth, [0.5, 0.8, 0.95])), qid


@pytest.fixture(scope="module")
def client():
    with dask_client("local:2") as found:
        yield found


def test_trees_of_a_cluster_rank_as_well_as_those_of_one_machine(client, monkeypatch, tmp_path):
    monkeypatch.setattr(on_cluster, "SLICE_TREES", 10)
    X, y, qid = rows()
    alone = LambdaMART(n_trees=20).fit(X, y, qid=qid)
    found = clone(ClusterLambdaMART(n_trees=20, cluster=client)).fit(X, y, qid=qid)
    unseen = rows(seed=1)
    one, other = (ranker.score(unseen[0], unseen[1], qid=unseen[2]) for ranker in (alone, found))
    assert abs(one - other) < 0.02
    assert found.n_trees_ == 20
    plain = found.scorer
    assert type(plain) is LambdaMART
    plain.save(tmp_path / "ranker")
    again = cr.load_ranker(tmp_path / "ranker")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def test_a_killed_worker_ends_in_trees_or_in_a_sentence(client):
    X, y, qid = rows(300)
    victim = next(iter(client.run(os.getpid).values()))
    threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
    begun, found = time.monotonic(), ClusterLambdaMART(n_trees=60, cluster=client)
    with contextlib.suppress(ClusterError):
        found.fit(X, y, qid=qid)
        assert found.n_trees_ == 60
    # for ever, were the loss not noticed; a busy machine needs its time to grow the trees again
    assert time.monotonic() - begun < 240


def test_a_training_that_hangs_is_ended_and_said(monkeypatch):
    monkeypatch.setattr(on_cluster, "_POLL", 0.05)
    monkeypatch.setattr(on_cluster, "_WAIT_FOR_END", 0.1)
    number = itertools.count()
    monkeypatch.setattr(on_cluster, "_workers", lambda client: {f"worker {next(number)}"})
    monkeypatch.setattr(on_cluster._Training, "_grow_slice", lambda self, n, attempt: time.sleep(30))
    restarts = []

    class Quiet:
        def restart(self, **how):
            restarts.append(how)

    training = on_cluster._Training(Quiet(), {}, "", np.empty(0), np.empty(0), 0)
    with pytest.raises(ClusterError, match=r"a worker was lost in each of 3 attempts.*leave .*cluster.* out"):
        training._slice(10)
    assert len(restarts) == 3


def test_joined_trees_add_up():
    X, y, qid = rows(20)
    parts = [LambdaMART(n_trees=n).fit(X, y, qid=qid).trees_ for n in (2, 3)]
    joined, matrix = Trees.join(parts), Matrix(X, None)
    assert len(joined) == 5
    np.testing.assert_allclose(joined.sums(matrix), sum(part.sums(matrix) for part in parts), atol=1e-12)


def test_what_a_cluster_does_not_train(client):
    X, y, qid = rows(10)
    with pytest.raises(ParameterError, match="equal weights"):
        ClusterLambdaMART(n_trees=5, cluster=client).fit(X, y, qid=qid, sample_weight=np.arange(1, len(y) + 1))
    votes = {"item": ["x", "y"], "annotator": ["ann", "ann"], "grade": [3, 1]}
    with pytest.raises(ParameterError, match="is for linear rankers and lambda_mart"):
        cr.train(votes, {"item": ["x", "y"], "length": [3, 1]}, ranker="lambda_rank", cluster="local:2")
