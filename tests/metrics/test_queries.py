"""Queries however the user has them give the same values."""

import numpy as np
import polars as pl
import pytest

from crowdrank import metrics
from crowdrank.metrics import ndcg


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, (50, 12)), rng.normal(size=(50, 12))


def flat(table):
    truth, scores = table
    return truth.ravel(), scores.ravel(), np.repeat(np.arange(50), 12)


def forms(qid):
    text = [f"q{query:03d}" for query in qid.tolist()]
    stamps = np.datetime64("2024-01-01") + qid.astype("timedelta64[D]")
    return {
        "integer": qid,
        "unsigned": qid.astype(np.uint64) + np.uint64(2**63),
        "float": qid.astype(float),
        "fraction": qid + 0.5 + 100,
        "text list": text,
        "text array": np.array(text),
        "objects": np.array(text, object),
        "bytes order": np.array(text).astype("S"),
        "dates": stamps,
        "polars text": pl.Series(text),
        "polars category": pl.Series(text, dtype=pl.Categorical),
        "polars integer": pl.Series(qid),
    }


@pytest.mark.parametrize("form", forms(np.arange(2)))
@pytest.mark.parametrize("order", ["sorted", "blocks", "shuffled"])
def test_ids_of_any_type_in_any_order(table, form, order):
    truth, scores, qid = flat(table)
    expected = ndcg(*table, per_query=True)
    rng = np.random.default_rng(1)
    rows = {
        "sorted": np.arange(len(qid)),
        "blocks": np.arange(len(qid)).reshape(50, 12)[rng.permutation(50)].ravel(),
        "shuffled": rng.permutation(len(qid)),
    }[order]
    values = ndcg(truth[rows], scores[rows], forms(qid[rows])[form], per_query=True)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert ndcg(truth[rows], scores[rows], forms(qid[rows])[form]) == pytest.approx(expected.mean())


def test_other_containers(table):
    pandas = pytest.importorskip("pandas")
    truth, scores, qid = flat(table)
    expected = ndcg(truth, scores, qid)
    frame = pandas.DataFrame({"truth": truth, "scores": scores, "qid": [f"q{q}" for q in qid]})
    assert ndcg(frame["truth"], frame["scores"], frame["qid"]) == pytest.approx(expected)
    shown = pl.DataFrame(frame.to_dict("list"))
    assert ndcg(shown["truth"], shown["scores"], shown["qid"]) == pytest.approx(expected)
    assert ndcg(truth.tolist(), scores.tolist(), frame["qid"].tolist()) == pytest.approx(expected)


def test_arrays_of_other_layout_and_type(table):
    truth, scores = table
    expected = ndcg(truth, scores)
    assert ndcg(np.asfortranarray(truth), np.asfortranarray(scores)) == pytest.approx(expected)
    assert ndcg(truth.astype(np.int8), np.repeat(scores, 2, 1)[:, ::2]) == pytest.approx(expected)
    locked = scores.copy()
    locked.flags.writeable = False
    assert ndcg(truth, locked) == pytest.approx(expected)
    assert ndcg(truth > 1, scores) == pytest.approx(ndcg((truth > 1) * 1, scores))


@pytest.mark.parametrize("cores", [2, 3, 200])
def test_threads_give_the_same_values(monkeypatch, cores):
    rng = np.random.default_rng(2)
    qid = np.sort(rng.integers(0, 40, 900))
    truth, scores = rng.integers(0, 4, 900), rng.integers(0, 20, 900)
    measures = [metrics.parse(name) for name in metrics.names() if metrics.parse(name).needs == "grade"]
    alone = [measure(truth, scores, qid) for measure in measures]
    monkeypatch.setattr("crowdrank.metrics.queries._ITEMS_PER_THREAD", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores), raising=False)
    for measure, values in zip(measures, alone, strict=True):
        np.testing.assert_array_equal(measure(truth, scores, qid), values)
    one = np.r_[np.zeros(890, int), np.arange(1, 11)]
    assert len(ndcg(truth, scores, one, per_query=True)) == 11
