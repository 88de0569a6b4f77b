"""Measures of order against hand-worked values, slow twins, scipy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.oracles import measures as slow

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.metrics import footrule, kendall_tau, pair_accuracy, preference_accuracy, spearman, tau_ap, weighted_tau

ALL = [kendall_tau, tau_ap, weighted_tau, spearman, footrule, pair_accuracy]
COLUMN = st.integers(2, 5).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)


def some_queries(rng, tied):
    qid = np.sort(rng.integers(0, 30, 900))
    truth = rng.integers(0, 5, 900) if tied else rng.permutation(900)
    scores = rng.integers(0, 9, 900) if tied else rng.normal(size=900)
    return truth, scores, qid


def test_by_hand():
    truth, scores = [4, 3, 2, 1], [3, 4, 2, 1]  # the two best exchanged
    assert kendall_tau(truth, scores) == pytest.approx(4 / 6)
    assert pair_accuracy(truth, scores) == pytest.approx(5 / 6)
    assert tau_ap(truth, scores) == pytest.approx(2 / 3 * (0 / 1 + 2 / 2 + 3 / 3) - 1)
    assert tau_ap(truth, [4, 3, 1, 2]) == pytest.approx(2 / 3 * (1 / 1 + 2 / 2 + 2 / 3) - 1)
    assert footrule(truth, scores) == pytest.approx(2 / 8)
    assert spearman(truth, scores) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert kendall_tau([1, 1, 0], [2, 1, 0], variant="a") == pytest.approx(2 / 3)
    assert kendall_tau([1, 1, 0], [2, 1, 0], variant="b") == pytest.approx(2 / 6**0.5)


@pytest.mark.parametrize("measure", ALL, ids=lambda f: f.__name__)
def test_same_and_opposite_order(measure):
    truth = np.random.default_rng(0).permutation(31)
    distance = measure is footrule
    assert measure(truth, truth) == pytest.approx(0 if distance else 1)
    lowest = 1 if distance else 0 if measure is pair_accuracy else -1
    assert measure(truth, -truth) == pytest.approx(lowest)


@given(columns=COLUMN)
@settings(deadline=None, max_examples=60)
def test_twins_agree(columns):
    truth, scores = columns
    assume(len(set(truth)) > 1)
    for variant in ("a", "b"):
        assert kendall_tau(truth, scores, variant=variant) == pytest.approx(slow.kendall_tau(truth, scores, variant))
    assert pair_accuracy(truth, scores) == pytest.approx(slow.pair_accuracy(truth, scores))
    assert tau_ap(truth, scores) == pytest.approx(slow.tau_ap(truth, scores))
    assert footrule(truth, scores) == pytest.approx(slow.footrule(truth, scores))
    assert spearman(truth, scores) == pytest.approx(slow.spearman(truth, scores))


@pytest.mark.parametrize("tied", [False, True])
def test_scipy_agrees(tied):
    from scipy.stats import kendalltau, spearmanr, weightedtau

    truth, scores, qid = some_queries(np.random.default_rng(1), tied)
    for ours, theirs in ((kendall_tau, kendalltau), (spearman, spearmanr), (weighted_tau, weightedtau)):
        expected = [theirs(truth[qid == query], scores[qid == query]).statistic for query in np.unique(qid)]
        np.testing.assert_allclose(ours(truth, scores, qid, per_query=True), expected, atol=1e-12)
        assert ours(truth, scores, qid) == pytest.approx(np.mean(expected))


def test_long_query_agrees_with_scipy():
    from scipy.stats import kendalltau, rankdata

    rng = np.random.default_rng(2)
    truth = rng.integers(0, 50, 20_000)
    scores = truth + rng.normal(size=20_000) * 30
    assert kendall_tau(truth, scores) == pytest.approx(kendalltau(truth, scores).statistic)
    ranks = rankdata(-truth), rankdata(-scores)
    assert footrule(truth, scores) == pytest.approx(np.abs(ranks[0] - ranks[1]).sum() / (20_000**2 / 2))


def test_pair_accuracy_of_two_grades_is_the_area_under_the_curve():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 2, 500), rng.integers(0, 20, 500)
    assert pair_accuracy(truth, scores) == pytest.approx(roc_auc_score(truth, scores))


@pytest.mark.parametrize("measure", ALL, ids=lambda f: f.__name__)
def test_truth_that_orders_nothing(measure):
    truth, scores, qid = [1, 1, 2, 0, 5], [0.1, 0.2, 0.9, 0.3, 0.5], [1, 1, 2, 2, 3]
    perfect = measure([2, 0], [0.9, 0.3])
    np.testing.assert_array_equal(measure(truth, scores, qid, per_query=True), [np.nan, perfect, np.nan])
    assert measure(truth, scores, qid) == perfect
    assert measure(truth, scores, qid, empty="zero") == pytest.approx(perfect / 3)
    assert np.isnan(measure([1], [1]))


def test_scores_that_order_nothing_count_as_chance():
    truth, scores = [3, 2, 1, 0], [1, 1, 1, 1]
    for measure in (kendall_tau, tau_ap, weighted_tau, spearman):
        assert measure(truth, scores) == pytest.approx(0)
    assert pair_accuracy(truth, scores) == 0.5
    assert footrule(truth, scores) == 0.5


def test_only_the_order_of_the_truth_counts():
    truth, scores, qid = some_queries(np.random.default_rng(4), tied=True)
    for measure in ALL:
        assert measure(truth, scores, qid) == pytest.approx(measure(np.exp(truth - 9.0), scores * 3.0, qid))


def test_preference_accuracy():
    left, right, outcome = [0.9, 0.5, 0.3, 0.3, -np.inf], [0.1, 0.7, 0.3, 0.2, -np.inf], [1, 1, -1, 0, 1]
    assert preference_accuracy(left, right, outcome) == pytest.approx((1 + 0 + 0.5 + 0.5) / 4)
    assert preference_accuracy(left, right, outcome, weight=[3, 1, 1, 9, 1]) == pytest.approx((3 + 0 + 1) / 6)
    values = preference_accuracy(left, right, outcome, ["b", "a", "b", "c", "b"], per_query=True)
    np.testing.assert_allclose(values, [0, 2 / 3, np.nan])
    assert preference_accuracy(left, right, outcome, ["b", "a", "b", "c", "b"]) == pytest.approx(1 / 3)


def test_preference_accuracy_is_pair_accuracy_over_all_pairs():
    rng = np.random.default_rng(5)
    truth, scores = rng.integers(0, 4, 30), rng.integers(0, 9, 30)
    left, right = np.triu_indices(30, 1)
    known = preference_accuracy(scores[left], scores[right], np.sign(truth[left] - truth[right]))
    assert known == pytest.approx(pair_accuracy(truth, scores))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kendall_tau([1, 2], [1, 2], variant="c"), ParameterError, "'a', 'b'"),
        (lambda: kendall_tau([1, 2], [1, np.nan]), JudgmentError, "scores is missing"),
        (lambda: footrule([], []), JudgmentError, "no item"),
        (lambda: preference_accuracy([1], [1, 2], [1]), JudgmentError, "differ in shape"),
        (lambda: preference_accuracy([], [], []), JudgmentError, "no pair"),
        (lambda: preference_accuracy([1, 2], [3, 4], [1, 2]), JudgmentError, "row 2 is 2"),
        (lambda: preference_accuracy([1, 2], [3, 4], [1, 1], weight=[1, -1]), JudgmentError, "row 2 is negative"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
