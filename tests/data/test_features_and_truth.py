"""Features and truth from tables."""

import re
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from crowdrank.data.features import Features
from crowdrank.data.grades import Grades
from crowdrank.data.truth import Truth
from crowdrank.errors import DataWarning, JudgmentError


def test_rows_are_put_in_item_order():
    features = Features.from_frame({"query": ["q2", "q1"], "docid": ["d", "d"], "f": ["1.5", ""], "g": [1, 2]})
    assert features.items.frame().rows() == [("q1", "d"), ("q2", "d")]
    np.testing.assert_array_equal(features.matrix, [[np.nan, 2.0], [1.5, 1.0]])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"item": ["x", "x"], "f": [1, 2]}, "row 2 of the features repeats item 'x'"),
        ({"item": ["x"], "f": ["high"]}, "feature 'f' is not a number \\('high'\\) in row 1"),
        ({"item": ["x"]}, "no column besides the ids"),
        ({"item": [], "f": []}, "no rows"),
        ({"f": [1]}, "no item column"),
        ({"item": [None], "f": [1]}, "item id is blank in row 1"),
    ],
)
def test_bad_features_get_one_sentence(table, said):
    with pytest.raises(JudgmentError, match=said):
        Features.from_frame(table)


LEFT_OUT = (
    "grade", "Grade", "label", "rating", "relevance", "rel", "vote", "answer", "truth", "gold", "ground_truth",
    "target", "judgment", "winner", "preferred", "rank", "y", "mean_grade", "gold_label", "relevance_score", "label_2",
    "grade3", "crowd_score", "expert rating", "true.rank", "worker", "WorkerId", "rater", "annotator", "user", "docid",
    "topic", "prompt_id", "task", "group", "id", "seller_id", "sessionId", "Unnamed: 0", "__index_level_0__",
)  # fmt: skip
KEPT = (
    "score", "bm25_score", "value", "position", "place", "count", "weight", "price", "time", "age", "avg_rating",
    "votes", "n_labels_missing", "flesch_kincaid_grade", "grade_level", "text_relevance", "quality", "grid", "valid",
    "paid", "a", "left", "right", "true_positives", "mean_rank", "1", "x",
)  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_ids_judgments_and_truths_are_no_features(name):
    with pytest.warns(DataWarning, match=f"left out of the features: '{re.escape(name)}' .named like"):
        features = Features.from_frame({"query": ["q"], "item": ["x"], "f": [1], name: [2]})
    assert features.names == ("f",)
    assert Features.from_frame({"item": ["x"], "f": [1], name: [2]}, features=[name]).names == (name,)


@pytest.mark.parametrize("name", KEPT)
def test_measurements_are_features(name):
    assert Features.from_frame({"item": ["x"], "f": [1], name: [2]}).names == ("f", name)


def test_which_column_is_the_grade():
    def grade(columns=None, **given):
        with pytest.warns(DataWarning, match="left out") if columns is None else nullcontext():
            found = Features.from_frame({"item": ["x", "y"], "f": [1, 2], **given}, columns=columns).grade
        return None if found is None else found.tolist()

    assert grade(grade=[3, 1], label=[0, 0]) == [3, 1]
    assert grade(relevance=["3", ""], rank=[1, 2])[0] == 3
    assert grade(label=[3, 1], relevance=[3, 1]) is None  # either may be meant
    assert grade(label=["good", "bad"]) is None
    assert grade(rank=[1, 2]) is None
    assert grade({"grade": "stars"}, stars=[4, 5]) == [4, 5]
    both = Features.from_frame({"item": ["x"], "x": [1], "y": [2]})
    assert both.names == ("x", "y")  # coordinates


def test_an_infinite_grade_of_features_is_refused():
    with (
        pytest.warns(DataWarning, match="left out"),
        pytest.raises(JudgmentError, match="grade 'label' is infinite in row 2"),
    ):
        Features.from_frame({"item": ["x", "y"], "f": [1, 2], "label": ["0.5", "inf"]})


def test_ids_in_words_are_left_out_without_a_word():
    features = Features.from_frame({"query": ["tea"], "docno": ["D1"], "url": ["http://x"], "f": [1]})
    assert features.names == ("f",)
    with pytest.raises(JudgmentError, match=r"besides the ids and 'label'; add .* with features= \(--features\)"):
        Features.from_frame({"item": ["x"], "label": [1]})


ODD = {
    "lists": pl.Series([[1], [2]]),
    "structs": pl.Series([{"a": 1}, {"a": 2}]),
    "bytes": pl.Series([b"a", b"\xff"]),
    "objects": pl.Series([object(), object()], dtype=pl.Object),
    "words": pl.Series(["a", "b"], dtype=pl.Categorical),
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_that_hold_no_numbers(kind):
    table = pl.DataFrame({"item": ["x", "y"], "f": [1, 2]})
    with pytest.raises(
        JudgmentError,
        match=r"feature 'f2' is not a number \(.*\) in row 1; correct it, or name the columns|column 'f2' holds ",
    ):
        Features.from_frame(table.with_columns(ODD[kind].alias("f2")))
    assert Features.from_frame(table.with_columns(ODD[kind].alias("f2")), features=["f"]).names == ("f",)
    assert Features.from_frame(table.with_columns(ODD[kind].alias("url"))).names == ("f",)
    with pytest.warns(DataWarning, match="'grade'"):
        assert Features.from_frame(table.with_columns(ODD[kind].alias("grade"))).grade is None


@pytest.mark.parametrize("numbers", [pl.Series([True, False]), pl.Series([1, 0]).cast(pl.Decimal(9, 2)), ["1", " 0 "]])
def test_numbers_of_other_types(numbers):
    with pytest.warns(DataWarning, match="'grade'"):
        features = Features.from_frame({"item": ["x", "y"], "f": numbers, "grade": numbers})
    assert features.matrix.ravel().tolist() == features.grade.tolist() == [1, 0]


def test_the_matrix_must_fit():
    features = Features.from_frame({"item": ["x"], "f": [1]})
    with pytest.raises(JudgmentError, match="2 x 1 for 1 items"):
        Features(features.items, np.ones((2, 1)), ("f",))


def test_truth_has_three_forms():
    assert Truth.from_frame({"item": ["x"], "relevance": [2]}).form == "grade"
    ranks = Truth.from_frame({"item": ["x", "y"], "rank": [2, 1]})
    assert ranks.form == "rank"
    assert ranks.grade.tolist() == [-2, -1]
    pairs = Truth.from_frame({"query": ["q"], "left": ["x"], "right": ["y"], "winner": ["x"]})
    assert pairs.form == "pairs"
    assert len(pairs) == 1
    for truth in (ranks, pairs):
        assert Truth.from_frame(truth.frame()).form == truth.form


def test_truth_may_cover_a_part_and_ids_meet_as_text():
    grades = Grades.from_rows([("a", 1, 7, 1), ("a", 1, 8, 2), ("a", 2, 7, 0)])
    truth = Truth.from_frame({"query": ["1", "2", "3"], "item": ["8", "7", "7"], "grade": [4, 2, 1]})
    np.testing.assert_array_equal(truth.align(grades.items), [np.nan, 4, 2])
    pairs = Truth.from_frame(
        {"query": ["1", "1"], "left": ["7", "7"], "right": ["8", "9"], "winner": ["left", "right"]}
    )
    left, right, outcome = pairs.align_pairs(grades.items)
    assert (left.tolist(), right.tolist(), outcome.tolist()) == ([0], [1], [1])


def test_bad_truth():
    with pytest.raises(JudgmentError, match="two different grades"):
        Truth.from_frame({"item": ["x", "x"], "grade": [1, 2]})
    with pytest.raises(JudgmentError, match="no grade, rank or winner column"):
        Truth.from_frame({"item": ["x"], "color": ["red"]})
