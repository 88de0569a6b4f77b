"""Mean grade: worked by hand, shrinkage, standard errors that cover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import votes as slow
from tests.strategies import grade_rows, judgments

from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.models.averages.mean_grade import MeanGrade


def test_by_hand():
    table = {"item": ["x", "x", "y", "z", "z"], "grade": [1, 3, 4, 2, 2], "weight": [1, 1, 1, 3, 1]}
    consensus = MeanGrade().fit(Grades.from_frame(table))
    assert consensus.scores.tolist() == [2, 4, 2]
    # squares about the items' means: 2 from x, none elsewhere; 7 grades by weight, 3 means
    np.testing.assert_allclose(consensus.std_error, np.sqrt(2 / 4 / np.array([2, 1, 4])))


def test_shrinkage_by_hand():
    rows = [("ann", "q", "x", 4), ("ann", "q", "y", 1), ("bob", "q", "y", 1), ("ann", "r", "x", 3)]
    consensus = MeanGrade(alpha=2).fit(Grades.from_rows(rows))
    # the mean grade of q is 2, so x has (4 + 2 * 2) / 3 and y has (2 + 2 * 2) / 4
    np.testing.assert_allclose(consensus.scores, [8 / 3, 1.5, 3])


@given(grade_rows(), st.sampled_from([0.0, 0.5, 3.0]))
def test_equals_the_plain_mean(rows, alpha):
    grades = judgments("grade", rows)
    consensus = MeanGrade(alpha=alpha).fit(grades)
    for item in range(grades.n_items):
        query = grades.items.query[item]
        own = [(g, 1.0) for g in grades.grade[grades.item == item]]
        centre = grades.grade[grades.items.query[grades.item] == query].mean()
        assert consensus.scores[item] == pytest.approx(slow.weighted_mean([*own, (centre, alpha)]))


def test_one_grade_each_has_no_standard_error():
    rows = [("ann", "q", "x", 4), ("bob", "q", "y", 1)]
    assert MeanGrade().fit(Grades.from_rows(rows)).std_error is None


def test_unjudged_items_have_the_mean_of_their_query_else_of_all():
    table = {"query": ["q", "q", "q", "s"], "item": ["x", "x", "y", "v"], "grade": [1, 2, 3, 6]}
    items = {"query": ["q", "q", "q", "r", "s"], "item": ["x", "y", "z", "w", "v"]}
    for alpha in (0, 1):
        consensus = MeanGrade(alpha=alpha).fit(Grades.from_frame(table, items=items))
        np.testing.assert_allclose(consensus.scores[[2, 3]], [2, 3])
        assert np.isfinite(consensus.std_error).all()
        assert (
            consensus.std_error[2] == consensus.std_error[3] == pytest.approx(consensus.scores[[0, 1, 4]].std(ddof=1))
        )


def test_intervals_cover_the_truth():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 1, 2_000)
    item = np.repeat(np.arange(2_000), rng.integers(1, 6, 2_000))
    consensus = MeanGrade().fit(Grades.from_frame({"item": item, "grade": truth[item] + rng.normal(0, 0.8, len(item))}))
    covered = np.abs(consensus.scores - truth) < 1.645 * consensus.std_error
    assert abs(covered.mean() - 0.9) < 0.02
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.8


def test_wrong_parameters_and_nominal_grades():
    with pytest.raises(ParameterError, match="alpha=-1"):
        MeanGrade(alpha=-1)
    with pytest.raises(JudgmentError, match="nominal"):
        MeanGrade().fit(Grades.from_rows([("ann", "q", "x", "cat")], nominal=True))
