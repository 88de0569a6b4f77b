"""Mean gain: worked by hand, weights, what a ranker learns from it, unjudged items."""

import numpy as np
import pytest
from hypothesis import given
from tests.strategies import grade_rows, judgments

import crowdrank as cr
from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError
from crowdrank.joint import TwoStage
from crowdrank.models.averages.mean_grade import MeanGain
from crowdrank.rankers import LambdaMART, ListNet


def test_by_hand():
    # gains 0 1 3 7 15: (15 + 0 + 0) / 3, (3 + 3 + 1) / 3, 7
    rows = [("ann", "q", "x", 4), ("bob", "q", "x", 0), ("cy", "q", "x", 0), ("ann", "q", "y", 2), ("bob", "q", "y", 2)]
    rows += [("cy", "q", "y", 1), ("ann", "q", "z", 3)]
    consensus = MeanGain().fit(Grades.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [5, 7 / 3, 7])
    assert consensus.order("q") == ["z", "x", "y"]


def test_weights_count_as_numbers_of_grades():
    table = {"item": ["x", "x"], "annotator": ["ann", "bob"], "grade": [3, 1], "weight": [3.0, 1.0]}
    np.testing.assert_allclose(MeanGain().fit(Grades.from_frame(table)).scores, [(3 * 7 + 1) / 4])


def test_levels_in_words_count_from_zero():
    rows = [("ann", "q", "x", "Good"), ("bob", "q", "x", "Bad")]
    assert MeanGain().fit(Grades.from_rows(rows, levels=["Bad", "Fair", "Good"])).scores.tolist() == [1.5]


@given(grade_rows())
def test_equals_the_plain_mean(rows):
    grades = judgments("grade", rows)
    expected = [np.mean(2.0 ** grades.grade[grades.item == item] - 1) for item in range(grades.n_items)]
    np.testing.assert_allclose(MeanGain().fit(grades).scores, expected)
    np.testing.assert_allclose(MeanGain().scores_by_weight(grades)(np.ones(len(grades))), expected)


def test_unjudged_items_have_the_mean_of_their_query():
    table = {"query": ["q", "q"], "item": ["x", "y"], "grade": [1, 3]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    assert MeanGain().fit(Grades.from_frame(table, items=items)).scores.tolist() == [1, 7, 4, 4]


def test_grades_that_have_no_gain():
    with pytest.raises(JudgmentError, match=r"a grade of 5000 is too large for a gain of 2 \*\* grade - 1; use mean_"):
        MeanGain().fit(Grades.from_frame({"item": ["x"], "grade": [5000]}))


@pytest.fixture
def case():
    """Four noisy grades each of 80 items of ten queries, and their features."""
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(80, 3))
    truth = np.clip(np.round(1.5 + matrix[:, 0]), 0, 4)
    query, item = np.repeat([f"q{n}" for n in range(10)], 8), [f"i{n:02}" for n in range(80)]
    features = cr.Features.from_arrays(query, item, matrix, grade=truth)
    noisy = np.clip(truth[:, None] + rng.integers(-1, 2, (80, 4)), 0, 4)
    rows = [(f"a{a}", query[i], item[i], noisy[i, a]) for i in range(80) for a in range(4)]
    return Grades.from_rows(rows), features


@pytest.mark.parametrize("gain", [None, "given", "linear"])
def test_trees_learn_the_mean_gain(case, gain):
    grades, features = case
    ranker = LambdaMART(n_trees=5, min_leaf=2)
    fit = TwoStage(aggregator=MeanGain(), ranker=ranker, gain=gain).fit(grades, features)
    gains = MeanGain().fit(grades).scores
    plain = LambdaMART(n_trees=5, min_leaf=2, gain="given").fit(features.matrix, gains, qid=features.items.query)
    np.testing.assert_allclose(fit.ranker.predict(features), plain.predict(features.matrix))


def test_rankers_of_grades_learn_the_grade_of_the_gain(case):
    grades, features = case
    fit = cr.train(grades, features, "list_net", "mean_gain")
    target = np.log2(1 + MeanGain().fit(grades).scores)
    plain = ListNet().fit(features.matrix, target, qid=features.items.query)
    np.testing.assert_allclose(fit.ranker.weights_, plain.weights_, atol=1e-8)


def test_validation_by_grades_is_on_the_same_scale(case):
    grades, features = case
    fit = TwoStage(aggregator=MeanGain(), ranker=LambdaMART(n_trees=20, min_leaf=2)).fit(
        grades, features, validation=features
    )
    found = cr.metrics.ndcg(features.grade, fit.ranker.predict(features), features.items.query, k=10)
    assert fit.ranker.curve_["valid"].max() == pytest.approx(found)
    with_share = TwoStage(aggregator=MeanGain(), ranker=LambdaMART(n_trees=2)).fit(grades, features, validation=0.3)
    assert with_share.n_queries == 7


def test_negative_grades_move_as_the_grades_would(case):
    grades, features = case
    lower = Grades.from_rows([(a, q, i, g - 2) for q, i, g, a in grades.frame().rows()])
    ranker = LambdaMART(n_trees=3, min_leaf=2)
    with pytest.warns(cr.errors.DataWarning, match="moved up by"):
        moved = TwoStage(aggregator=MeanGain(), ranker=ranker).fit(lower, features)
    lowest = np.log2(1 + MeanGain().fit(lower).scores.min())
    gains = (1 + MeanGain().fit(lower).scores) / 2**lowest - 1
    plain = LambdaMART(n_trees=3, min_leaf=2, gain="given").fit(features.matrix, gains, qid=features.items.query)
    np.testing.assert_allclose(moved.ranker.predict(features), plain.predict(features.matrix), rtol=1e-6)
