"""Highest grade: worked by hand, its level, unjudged items."""

import numpy as np
from hypothesis import given
from tests.strategies import grade_rows, judgments

from crowdrank.data.judgments import Grades
from crowdrank.models.averages.majority_vote import HighestGrade


def test_by_hand():
    rows = [("ann", "q", "x", -2), ("bob", "q", "x", -1), ("ann", "q", "y", 0), ("ann", "r", "x", -3)]
    consensus = HighestGrade().fit(Grades.from_rows(rows))
    assert consensus.scores.tolist() == [-1, 0, -3]
    assert consensus.frame()["grade"].to_list() == [0, -1, -3]


@given(grade_rows())
def test_equals_the_plain_maximum(rows):
    grades = judgments("grade", rows)
    found = HighestGrade().fit(grades).scores
    assert found.tolist() == [grades.grade[grades.item == item].max() for item in range(grades.n_items)]


def test_levels_in_words():
    rows = [("ann", "q", "x", "Fair"), ("bob", "q", "x", "Good"), ("ann", "q", "y", "Bad")]
    consensus = HighestGrade().fit(Grades.from_rows(rows, levels=["Bad", "Fair", "Good"]))
    assert consensus.frame()["grade"].to_list() == ["Good", "Bad"]


def test_more_than_thirty_values_have_no_level():
    consensus = HighestGrade().fit(Grades.from_frame({"item": ["x"] * 40, "grade": np.linspace(0, 1, 40)}))
    assert consensus.scores.tolist() == [1]
    assert consensus.grade is None


def test_unjudged_items():
    table = {"query": ["q", "q", "q"], "item": ["x", "x", "y"], "grade": [1, 3, 0]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    consensus = HighestGrade().fit(Grades.from_frame(table, items=items))
    assert consensus.scores.tolist() == [3, 0, 1.5, 1.5]
    assert consensus.grade.tolist() == [2, 0, -1, -1]
