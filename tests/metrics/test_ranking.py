"""Ranking measures against hand-worked values, slow twins, ir-measures (trec_eval) and scikit-learn."""

import json
import tempfile
from math import log2
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import measures as slow

import crowdrank as cr
from crowdrank import metrics
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.metrics import average_precision, dcg, err, ndcg, precision, rbp, recall, reciprocal_rank

TIES = ["average", "first", "worst"]
QUERY = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n), st.lists(st.integers(-2, 2), min_size=n, max_size=n)
    )
)
CUTOFF = st.one_of(st.none(), st.integers(1, 8))


def some_queries(rng, n_queries=40, tied=False):
    """Queries of 1 to 150 items in shuffled order: truth, scores, qid."""
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 150, n_queries))
    rng.shuffle(qid)
    truth = rng.integers(0, 4, len(qid)) * (rng.random(len(qid)) < 0.4)
    scores = rng.integers(0, 9, len(qid)).astype(float) if tied else rng.permutation(len(qid)) / 7.0
    return truth, scores, qid


# --- worked by hand --------------------------------------------------------------------------------------------------


def test_ndcg_by_hand():
    # ranked grades 3 0 2 1
    exponential = (7 + 0 + 3 / 2 + 1 / log2(5)) / (7 + 3 / log2(3) + 1 / 2)
    linear = (3 + 0 + 2 / 2 + 1 / log2(5)) / (3 + 2 / log2(3) + 1 / 2)
    truth, scores = [3, 2, 0, 1], [0.9, 0.2, 0.5, 0.1]
    assert ndcg(truth, scores) == pytest.approx(exponential)
    assert ndcg(truth, scores, gain="linear") == pytest.approx(linear)
    assert ndcg(truth, scores, k=1) == 1
    assert ndcg(truth, scores, k=2) == pytest.approx(7 / (7 + 3 / log2(3)))


def test_the_other_measures_by_hand():
    truth, scores = [0, 1, 0, 2, 1], [5, 4, 3, 2, 1]  # relevant at ranks 2, 4, 5
    assert average_precision(truth, scores) == pytest.approx((1 / 2 + 2 / 4 + 3 / 5) / 3)
    assert average_precision(truth, scores, k=4) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert average_precision(truth, scores, relevant_from=2) == pytest.approx(1 / 4)
    assert precision(truth, scores, k=4) == 0.5
    assert precision(truth, scores, k=10) == pytest.approx(0.3)
    assert recall(truth, scores, k=4) == pytest.approx(2 / 3)
    assert recall(truth, scores, k=None) == 1
    assert reciprocal_rank(truth, scores) == 0.5
    assert reciprocal_rank(truth, scores, k=1) == 0
    assert rbp(truth, scores, p=0.5) == pytest.approx(0.5 * (0.5 + 0.5**3 + 0.5**4))
    # stopping chances 0, 1/4, 0, 3/4, 1/4
    assert err(truth, scores) == pytest.approx(1 / 4 / 2 + 3 / 4 * 3 / 4 / 4 + 3 / 4 * 1 / 4 * 1 / 4 / 5)


def test_expected_values_over_ties_by_hand():
    truth, scores = [1, 0, 0], [1, 1, 1]  # the relevant one is at rank 1, 2 or 3 with the same chance
    ranks = np.array([1, 2, 3])
    assert reciprocal_rank(truth, scores) == pytest.approx((1 / ranks).mean())
    assert average_precision(truth, scores) == pytest.approx((1 / ranks).mean())
    assert ndcg(truth, scores) == pytest.approx((1 / np.log2(1 + ranks)).mean())
    assert precision(truth, scores, k=2) == pytest.approx(1 / 3)
    assert rbp(truth, scores, p=0.5) == pytest.approx((0.5**ranks).mean())
    assert err(truth, scores, max_grade=1) == pytest.approx((0.5 / ranks).mean())
    assert [reciprocal_rank(truth, scores, ties=ties) for ties in ("first", "worst")] == pytest.approx([1, 1 / 3])


def test_one_item_and_cutoffs_beyond_the_end():
    for name in ("ndcg", "average_precision", "reciprocal_rank", "recall"):
        assert getattr(metrics, name)([1], [0.3], k=50) == 1
        assert getattr(metrics, name)([0], [0.3], k=50) == 0
    assert precision([1], [0.3], k=50) == pytest.approx(1 / 50)
    assert dcg([2], [0.3], k=None) == 3


# --- slow twins ------------------------------------------------------------------------------------------------------


@given(query=QUERY, k=CUTOFF, gain=st.sampled_from(["exponential", "linear"]), ties=st.sampled_from(TIES))
@settings(deadline=None)
def test_ndcg_equals_its_twin(query, k, gain, ties):
    truth, scores = query
    assert ndcg(truth, scores, k=k, gain=gain, ties=ties) == pytest.approx(slow.ndcg(truth, scores, k, gain, ties))
    plain = slow.over_ties(lambda g: slow.dcg(g, k, gain), truth, scores, ties)
    assert dcg(truth, scores, k=k, gain=gain, ties=ties) == pytest.approx(plain)


@given(query=QUERY, k=CUTOFF, ties=st.sampled_from(TIES))
@settings(deadline=None)
def test_other_measures_equal_their_twins(query, k, ties):
    truth, scores = query

    def twin(measure, *parameters):
        return pytest.approx(slow.over_ties(lambda g: measure(g, *parameters), truth, scores, ties))

    assert average_precision(truth, scores, k=k, ties=ties) == twin(slow.average_precision, k)
    assert reciprocal_rank(truth, scores, k=k, ties=ties) == twin(slow.reciprocal_rank, k)
    assert recall(truth, scores, k=k, ties=ties) == twin(slow.recall, k)
    assert precision(truth, scores, k=k or 3, ties=ties) == twin(slow.precision, k or 3)
    assert rbp(truth, scores, k=k, p=0.8, ties=ties) == twin(slow.rbp, k, 0.8)
    assert err(truth, scores, k=k, max_grade=3, ties=ties) == twin(slow.err, k, 3)


@pytest.mark.parametrize("ties", ["first", "worst"])
@pytest.mark.parametrize("k", [None, 1, 10, 64, 65, 100])
def test_long_queries_equal_their_twins(k, ties):
    truth, scores, qid = some_queries(np.random.default_rng(1), tied=True)
    values = ndcg(truth, scores, qid, k=k, ties=ties, per_query=True)
    precisions = average_precision(truth, scores, qid, k=k, ties=ties, per_query=True)
    for query in range(40):
        own = qid == query
        grades, points = truth[own].tolist(), scores[own].tolist()
        assert values[query] == pytest.approx(slow.ndcg(grades, points, k, "exponential", ties))
        twin = slow.over_ties(lambda g: slow.average_precision(g, k), grades, points, ties)
        assert precisions[query] == pytest.approx(twin)


# --- other libraries -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trec():
    """Queries, qrels and runs for ir-measures; item ids fall, as trec_eval breaks ties by larger id first."""
    ir_measures = pytest.importorskip("ir_measures")
    truth, scores, qid = some_queries(np.random.default_rng(2), tied=True)
    items = [f"d{len(qid) - row:06d}" for row in range(len(qid))]
    rows = list(zip(qid.tolist(), items, truth.tolist(), scores.tolist(), strict=True))
    qrels = [ir_measures.Qrel(str(100 + query), item, grade) for query, item, grade, _ in rows]
    run = [ir_measures.ScoredDoc(str(100 + query), item, score) for query, item, _, score in rows]
    return ir_measures, qrels, run, (truth, scores, qid)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("nDCG@10", lambda *a: ndcg(*a, gain="linear", ties="first", per_query=True)),
        ("nDCG", lambda *a: ndcg(*a, k=None, gain="linear", ties="first", per_query=True)),
        ("AP", lambda *a: average_precision(*a, ties="first", per_query=True)),
        ("AP@20", lambda *a: average_precision(*a, k=20, ties="first", per_query=True)),
        ("AP(rel=2)", lambda *a: average_precision(*a, relevant_from=2, ties="first", per_query=True)),
        ("P@5", lambda *a: precision(*a, k=5, ties="first", per_query=True)),
        ("R@5", lambda *a: recall(*a, k=5, ties="first", per_query=True)),
        ("RR", lambda *a: reciprocal_rank(*a, ties="first", per_query=True)),
    ],
)
def test_trec_eval_agrees(trec, theirs, ours):
    ir_measures, qrels, run, arrays = trec
    measure = ir_measures.parse_measure(theirs)
    values = {m.query_id: m.value for m in ir_measures.pytrec_eval.iter_calc([measure], qrels, run)}
    np.testing.assert_allclose(ours(*arrays), [values[query] for query in sorted(values)], atol=1e-12)


def test_err_agrees_with_gdeval_at_five_places(trec):
    ir_measures, qrels, run, arrays = trec
    if not ir_measures.gdeval.is_available():
        pytest.skip("gdeval needs perl")
    values = {m.query_id: m.value for m in ir_measures.gdeval.iter_calc([ir_measures.ERR @ 20], qrels, run)}
    ours = err(*arrays, max_grade=4, ties="first", per_query=True)
    np.testing.assert_allclose(ours, [values[query] for query in sorted(values)], atol=1e-5)


@pytest.mark.parametrize("k", [1, 10, 64, 65, 100, None])
def test_scikit_learn_agrees_with_and_without_ties(k):
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 4, (20, 150)), rng.normal(size=(20, 150)).round(1)
    assert ndcg(truth, scores, k=k, gain="linear") == pytest.approx(ndcg_score(truth, scores, k=k))
    untied = rng.permutation(truth.size).reshape(truth.shape)
    theirs = ndcg_score(truth, untied, k=k, ignore_ties=True)
    for ties in TIES:
        assert ndcg(truth, untied, k=k, gain="linear", ties=ties) == pytest.approx(theirs)
    assert ndcg(truth, untied, k=k) == pytest.approx(ndcg_score(2**truth - 1, untied, k=k))


# --- rules -----------------------------------------------------------------------------------------------------------

ALL = [ndcg, average_precision, precision, recall, rbp, err, reciprocal_rank]


@pytest.mark.parametrize("measure", ALL, ids=lambda f: f.__name__)
def test_a_query_without_relevant_items(measure):
    truth, scores, qid = [0, 0, 1], [0.2, 0.1, 0.3], ["b", "b", "a"]
    one = measure([1], [0.3])
    assert measure(truth, scores, qid) == pytest.approx(one / 2)
    assert measure(truth, scores, qid, empty="one") == pytest.approx((one + 1) / 2)
    assert measure(truth, scores, qid, empty="skip") == pytest.approx(one)
    np.testing.assert_array_equal(measure(truth, scores, qid, empty="skip", per_query=True), [one, np.nan])
    assert np.isnan(measure([0, 0], [1, 2], empty="skip"))


@pytest.mark.parametrize("measure", ALL, ids=lambda f: f.__name__)
def test_worst_is_never_above_average_and_row_order_does_not_matter(measure):
    rng = np.random.default_rng(4)
    truth, scores, qid = some_queries(rng, tied=True)
    average, worst = (measure(truth, scores, qid, ties=ties, per_query=True) for ties in ("average", "worst"))
    assert (worst <= average + 1e-12).all()
    shuffle = rng.permutation(len(qid))
    for ties, values in (("average", average), ("worst", worst)):
        again = measure(truth[shuffle], scores[shuffle], qid[shuffle], ties=ties, per_query=True)
        np.testing.assert_allclose(again, values, atol=1e-12)


def test_an_infinite_score_is_a_score():
    assert ndcg([1, 0], [np.inf, -np.inf]) == 1
    assert reciprocal_rank([1, 0, 0], [np.inf, np.inf, 0]) == pytest.approx((1 + 1 / 2) / 2)


def test_negative_grades_are_refused_or_count_zero():
    with pytest.raises(JudgmentError, match="negative grade"):
        ndcg([-2, 1], [1, 2])
    with pytest.raises(JudgmentError, match="negative grade"):
        err([-2, 1], [1, 2])
    assert ndcg([-2, 1], [2, 1], negative="zero") == ndcg([0, 1], [2, 1])
    assert err([-2, 1], [2, 1], negative="zero") == err([0, 1], [2, 1])
    assert average_precision([-2, 1], [1, 2]) == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ndcg([1, 2], [1.0]), JudgmentError, "shape"),
        (lambda: ndcg([1, 2], [1.0, np.nan]), JudgmentError, "row 2"),
        (lambda: ndcg([[1, 2], [1, 2]], [[1.0, 2], [np.nan, 1]]), JudgmentError, "row 2, column 1"),
        (lambda: ndcg([1, None], [1.0, 2.0]), JudgmentError, "row 2"),
        (lambda: ndcg(["good", "bad"], [1.0, 2.0]), JudgmentError, "numbers"),
        (lambda: ndcg([], []), JudgmentError, "no item"),
        (lambda: ndcg(np.ones((2, 2, 2)), np.ones((2, 2, 2))), JudgmentError, "dimensions"),
        (lambda: ndcg([1, 2000], [1, 2]), JudgmentError, "gain='linear'"),
        (lambda: ndcg([1, np.inf], [1, 2], gain="linear"), JudgmentError, "infinite"),
        (lambda: ndcg([1, 2], [1, 2], k=0), ParameterError, "k=0"),
        (lambda: ndcg([1, 2], [1, 2], k=2.5), ParameterError, "whole number"),
        (lambda: ndcg([1, 2], [1, 2], gain="log"), ParameterError, "'exponential', 'linear'"),
        (lambda: ndcg([1, 2], [1, 2], ties="random"), ParameterError, "'average'"),
        (lambda: ndcg([1, 2], [1, 2], empty="nan"), ParameterError, "'skip'"),
        (lambda: ndcg([[1, 2]], [[1, 2]], qid=[1, 1]), ParameterError, "qid"),
        (lambda: ndcg([1, 2], [1, 2], qid=[1]), JudgmentError, "qid"),
        (lambda: ndcg([1, 2], [1, 2], qid=["a", None]), JudgmentError, "qid is missing in row 2"),
        (lambda: ndcg([1, 2], [1, 2], qid=np.array([1, {}], object)), JudgmentError, "qid mixes"),
        (lambda: precision([1, 2], [1, 2], k=None), ParameterError, "cutoff"),
        (lambda: rbp([1, 2], [1, 2], p=1), ParameterError, "between 0 and 1"),
        (lambda: err([1, 2], [1, 2], max_grade=1), ParameterError, "max_grade=1"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_input_is_left_alone():
    truth, scores, qid = np.array([1.0, 0.0, 2.0]), np.array([1.0, 2.0, 0.5]), np.array([2, 1, 2])
    before = truth.copy(), scores.copy(), qid.copy()
    ndcg(truth, scores, qid)
    err(truth, scores, qid, negative="zero")
    for array, kept in zip((truth, scores, qid), before, strict=True):
        np.testing.assert_array_equal(array, kept)
        assert array.flags.writeable


@pytest.mark.parametrize("ties", ["average", "first", "worst"])
def test_items_of_score_minus_infinity_were_not_retrieved(ties):
    truth, scores = [1, 0, 1, 1], [0.9, 0.5, -np.inf, -np.inf]
    assert average_precision(truth, scores, ties=ties) == pytest.approx(1 / 3)
    assert reciprocal_rank([0, 0, 1, 1], scores, ties=ties) == 0
    assert ndcg(truth, scores, k=4, ties=ties) == pytest.approx(1 / (1 + 1 / np.log2(3) + 0.5))
    assert recall(truth, scores, k=4, ties=ties) == pytest.approx(1 / 3)
    assert err([0, 0, 1, 1], scores, ties=ties) == 0
    assert precision(truth, scores, k=4, ties=ties) == pytest.approx(0.25)


TREC = json.loads((Path(__file__).parents[1] / "golden" / "trec_eval.json").read_text())
"""Runs with ties, and what trec_eval and gdeval say of them."""

TREC_NAMES = {
    "ndcg@5(linear,negative=zero)": "ndcg_cut_5",
    "ndcg@10(linear,negative=zero)": "ndcg_cut_10",
    "ndcg@1000(linear,negative=zero)": "ndcg",
    "map": "map",
    "p@5": "P_5",
    "recall@10": "recall_10",
    "rr": "recip_rank",
}


def by_query(wanted, reverse=False, **settings):
    """Values of the golden run, by metric and query; the rows of its file may come in reverse."""
    rows = [(query, item, score) for query, items in TREC["run"].items() for item, score in items.items()]
    known = [(query, item, grade) for query, items in TREC["qrels"].items() for item, grade in items.items()]
    run = pl.DataFrame(rows[::-1] if reverse else rows, ["query", "item", "score"], orient="row")
    truth = pl.DataFrame(known, ["query", "item", "grade"], orient="row")
    lines = [
        f"{query} Q0 {item} {place} {score!r} tag\n" for place, (query, item, score) in enumerate(run.iter_rows(), 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.run"
        path.write_text("".join(lines))
        found = cr.evaluate_runs(str(path), truth, wanted, unjudged="zero", **settings)
    return {(row["metric"], row["query"]): row["value"] for row in found.per_query.iter_rows(named=True)}


@pytest.mark.parametrize("reverse", [False, True])
def test_ties_as_in_trec_eval_give_its_figures(reverse):
    values = by_query(list(TREC_NAMES), reverse, ties="trec")
    for query, known in TREC["trec_eval"].items():
        for name, peer in TREC_NAMES.items():
            assert values[name, query] == pytest.approx(known[peer], abs=1e-12), (name, query)
    assert by_query(["map"])["map", "101"] != values["map", "101"]


def test_ties_and_highest_grade_as_in_gdeval_give_its_figures():
    wanted = [f"{name}@{k}(negative=zero)" for name in ("ndcg", "err") for k in (5, 20)]
    values = by_query(wanted, ties="gdeval", max_grade=4)
    for query, known in TREC["gdeval"].items():
        for name in wanted:
            assert round(values[name, query], 5) == pytest.approx(known[name.partition("(")[0]], abs=1e-9), (
                name,
                query,
            )
    # 32-bit scores tie where 64-bit ones do not
    assert by_query(wanted, ties="trec", max_grade=4) != values


def test_settings_that_no_metric_takes_are_refused():
    with pytest.raises(ParameterError, match=r"max_grade=4 means nothing to map; measure err@20"):
        by_query(["map"], max_grade=4)
    with pytest.raises((ParameterError, LookupError), match="ties"):
        by_query(["map"], ties="docno")


def test_graded_rbp_counts_grades_over_the_highest():
    truth, scores = [4, 0, 2, 1], [4, 3, 2, 1]
    value = metrics.rbp(truth, scores, p=0.8, gain="linear", max_grade=4)
    assert value == pytest.approx(0.2 * (1 + 0.8**2 * 0.5 + 0.8**3 * 0.25))
    assert metrics.rbp(truth, scores, p=0.8, gain="linear") == pytest.approx(value)
    assert metrics.rbp([0, 0], [1, 2], p=0.8, gain="linear") == 0
    with pytest.raises(ParameterError, match="max_grade=3"):
        metrics.rbp(truth, scores, p=0.8, gain="linear", max_grade=3)
