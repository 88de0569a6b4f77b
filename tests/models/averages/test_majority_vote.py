"""Majority vote: golden values of a peer, the slow twin, the tie rules, unjudged items."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.oracles import votes as slow
from tests.strategies import grade_rows, judgments

from crowdrank.data.judgments import Grades
from crowdrank.errors import ParameterError
from crowdrank.models.averages.majority_vote import MajorityVote

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "majority_vote.json").read_text())


def one_item(*grades, **options):
    """Grades of one item by as many annotators."""
    return Grades.from_rows([(f"a{k}", "q", "x", grade) for k, grade in enumerate(grades)], **options)


def test_golden():
    table = pl.DataFrame(GOLDEN["input"]["rows"], schema=GOLDEN["input"]["columns"], orient="row")
    consensus = MajorityVote().fit(Grades.from_frame(table))
    expected = GOLDEN["expected"]
    assert consensus.items.ids.to_list() == expected["item"]
    assert list(consensus.levels) == expected["levels"]
    assert consensus.scores.tolist() == expected["grade"]
    np.testing.assert_allclose(consensus.probabilities, expected["probabilities"])


@pytest.mark.parametrize(
    ("grades", "chosen"),
    [
        ((0, 1), 1),
        ((0, 3, 1), 1),
        ((0, 1, 2, 3), 2),
        ((0, 1, 2, 3, 4), 2),
        ((0, 0, 3, 3, 1), 3),
        ((4,), 4),
    ],
)
def test_of_tied_grades_the_better_middle(grades, chosen):
    assert MajorityVote().fit(one_item(*grades)).scores.tolist() == [chosen]


@given(grade_rows())
def test_equals_the_slow_twin(rows):
    grades = judgments("grade", rows)
    consensus = MajorityVote().fit(grades)
    weight = grades.row_weight
    expected = slow.majority_vote(zip(grades.item.tolist(), grades.grade.tolist(), weight, strict=True))
    for item, (level, shares) in expected.items():
        assert consensus.scores[item] == level
        assert consensus.levels[consensus.grade[item]] == level
        for code, value in enumerate(consensus.levels):
            assert consensus.probabilities[item, code] == pytest.approx(shares.get(value, 0.0))


def test_fractional_weights_tie_as_they_should():
    table = {"item": ["x"] * 4, "grade": [1, 1, 1, 2], "weight": [0.1, 0.1, 0.1, 0.3], "annotator": list("abcd")}
    assert MajorityVote().fit(Grades.from_frame(table)).scores.tolist() == [2]


def test_random_ties_are_seeded_even_and_independent_of_row_order():
    table = pl.DataFrame(
        {"item": [f"i{k:04d}" for k in range(2_000)] * 3, "grade": [0] * 2_000 + [1] * 2_000 + [2] * 2_000}
    )
    one = MajorityVote(ties="random", seed=1).fit(Grades.from_frame(table))
    again = MajorityVote(ties="random", seed=1).fit(Grades.from_frame(table.sample(fraction=1.0, shuffle=True, seed=5)))
    other = MajorityVote(ties="random", seed=2).fit(Grades.from_frame(table))
    np.testing.assert_array_equal(one.scores, again.scores)
    assert (one.scores != other.scores).any()
    np.testing.assert_allclose(np.bincount(one.grade) / 2_000, 1 / 3, atol=0.04)


def test_random_ties_leave_clear_votes_alone():
    assert all(MajorityVote(ties="random", seed=s).fit(one_item(1, 1, 0, 2)).scores[0] == 1 for s in range(20))


def test_nominal_classes_score_by_their_share():
    consensus = MajorityVote().fit(one_item("cat", "dog", "cat", nominal=True))
    assert consensus.frame()["grade"].to_list() == ["cat"]
    np.testing.assert_allclose(consensus.scores, 2 / 3)


def test_levels_in_words():
    consensus = MajorityVote().fit(one_item("Good", "Bad", levels=["Bad", "Fair", "Good"]))
    assert consensus.frame()["grade"].to_list() == ["Good"]
    assert consensus.probabilities.tolist() == [[0.5, 0.0, 0.5]]


def test_many_values_need_bins():
    grades = one_item(*np.linspace(0, 1, 40))
    with pytest.raises(ParameterError, match="bins="):
        MajorityVote().fit(grades)
    consensus = MajorityVote(bins=4).fit(grades)
    assert consensus.probabilities.shape == (1, 4)
    np.testing.assert_allclose(consensus.probabilities, 0.25)


def test_unjudged_items_have_no_grade():
    table = {"query": ["q", "q", "q"], "item": ["x", "x", "y"], "grade": [2, 2, 0]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    consensus = MajorityVote().fit(Grades.from_frame(table, items=items))
    assert consensus.grade.tolist() == [1, 0, -1, -1]
    assert consensus.scores.tolist() == [2, 0, 1, 1]
    np.testing.assert_allclose(consensus.probabilities[2:], [[1 / 3, 2 / 3]] * 2)
    assert consensus.frame()["grade"].null_count() == 2


def test_recovers_grades_of_a_good_crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 300)
    item = np.repeat(np.arange(300), 7)
    right = rng.random(len(item)) < 0.6
    table = {"item": item, "grade": np.where(right, truth[item], rng.integers(0, 5, len(item)))}
    consensus = MajorityVote().fit(Grades.from_frame(table))
    assert np.mean(consensus.scores == truth) > 0.93


def test_wrong_parameters():
    with pytest.raises(ParameterError, match="'better_middle', 'random'"):
        MajorityVote(ties="first")


def test_random_ties_go_by_the_votes_and_not_by_the_ids():
    rng = np.random.default_rng(3)
    # no two items have the same votes: two tied levels, and as many votes of a third level as the item's number
    rows = [(item, level) for item in range(40) for level in [0] * (item + 2) + [1] * (item + 2) + [2] * (item % 7)]
    ids = np.array([f"i{number:02d}" for number in rng.permutation(40)])

    def chosen(names):
        found = MajorityVote(ties="random").fit(
            Grades.from_frame({"item": [names[item] for item, _ in rows], "grade": [level for _, level in rows]})
        )
        return [found.grade[list(found.items.ids).index(name)] for name in names]

    assert chosen([f"i{number:02d}" for number in range(40)]) == chosen(ids)
