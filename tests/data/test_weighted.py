"""Grades of good items that weigh more."""

import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError, ParameterError

ROWS = [("ann", "q", "x", 3), ("ann", "q", "y", 1), ("ann", "q", "z", 2)]


def test_good_grades_weigh_the_factor():
    grades = Grades.from_rows(ROWS)
    assert grades.weighted().weight.tolist() == [3, 1, 3]
    assert grades.weighted(good_from=3, factor=1.5).weight.tolist() == [1.5, 1, 1]
    assert grades.weight is None


def test_weights_multiply():
    table = {"item": ["x", "y"], "grade": [2, 0], "weight": [2.0, 5.0]}
    assert Grades.from_frame(table).weighted(factor=2).weight.tolist() == [4, 5]


def test_levels_in_words():
    grades = Grades.from_rows([("ann", "q", "x", "Good"), ("ann", "q", "y", "Bad")], levels=["Bad", "Fair", "Good"])
    assert grades.weighted("Good").weight.tolist() == [3, 1]
    assert grades.weighted(1).weight.tolist() == [3, 1]
    with pytest.raises(ParameterError, match="there is no level 'Great'; name one of Bad, Fair, Good, or a number"):
        grades.weighted("Great")


@pytest.mark.parametrize("factor", [0, -1, float("inf"), float("nan")])
def test_weights_must_be_above_zero(factor):
    with pytest.raises(ParameterError, match="must be a number above 0; it multiplies weights"):
        Grades.from_rows(ROWS).weighted(factor=factor)


def test_classes_without_an_order():
    with pytest.raises(JudgmentError, match="nominal grades have no order"):
        Grades.from_rows([("ann", "q", "x", "cat")], nominal=True).weighted()
