"""Single grades: the first by time or row, a seeded one, unjudged items."""

import numpy as np
import polars as pl
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import ParameterError
from crowdrank.models.averages.majority_vote import Single

ROWS = {"item": ["x", "y", "x", "y"], "annotator": ["ann", "ann", "bob", "bob"], "grade": [3, 1, 0, 2]}


def test_the_first_row_where_there_is_no_time():
    consensus = Single().fit(Grades.from_frame(ROWS))
    assert consensus.scores.tolist() == [3, 1]
    assert consensus.frame()["grade"].to_list() == [3, 1]


def test_the_first_by_time_whatever_the_order_of_rows():
    table = pl.DataFrame({**ROWS, "time": [5, 1, 2, 7]})
    assert Single().fit(Grades.from_frame(table)).scores.tolist() == [0, 1]
    assert Single().fit(Grades.from_frame(table.reverse())).scores.tolist() == [0, 1]


def test_a_random_one_is_seeded_even_and_independent_of_row_order():
    n = 3_000
    items = [f"i{k:04d}" for k in range(n)] * 3
    table = pl.DataFrame(
        {"item": items, "annotator": ["a"] * n + ["b"] * n + ["c"] * n, "grade": [0] * n + [1] * n + [2] * n}
    )
    one = Single(pick="random", seed=1).fit(Grades.from_frame(table))
    again = Single(pick="random", seed=1).fit(Grades.from_frame(table.sample(fraction=1.0, shuffle=True, seed=5)))
    np.testing.assert_array_equal(one.scores, again.scores)
    assert (one.scores != Single(pick="random", seed=2).fit(Grades.from_frame(table)).scores).any()
    np.testing.assert_allclose(np.bincount(one.grade) / n, 1 / 3, atol=0.03)


def test_heavier_grades_are_drawn_more_often():
    n = 2_000
    table = {"item": [*range(n), *range(n)], "grade": [0] * n + [1] * n, "weight": [1.0] * n + [4.0] * n}
    assert Single(pick="random").fit(Grades.from_frame(table)).scores.mean() == pytest.approx(0.8, abs=0.03)


def test_unjudged_items_have_no_grade():
    table = {"query": ["q", "q", "q"], "item": ["x", "x", "y"], "grade": [2, 0, 1]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    consensus = Single().fit(Grades.from_frame(table, items=items))
    assert consensus.scores.tolist() == [2, 1, 1.5, 1.5]
    assert consensus.grade.tolist() == [2, 1, -1, -1]


@pytest.mark.parametrize("pick", ["first", "random"])
def test_no_grades_left(pick):
    grades = Grades.from_rows([("ann", "q", "x", 4)])
    assert Single(pick=pick).fit(grades.select(np.zeros(1, bool))).scores.tolist() == [0]


def test_wrong_parameters():
    with pytest.raises(ParameterError, match="pick='last' is not known; choose one of 'first', 'random'"):
        Single(pick="last")
