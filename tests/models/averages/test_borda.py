"""Borda: worked by hand, the slow twins, recovery."""

import numpy as np
import pytest
from hypothesis import given
from tests.oracles import pairs as slow_pairs
from tests.oracles import votes as slow
from tests.strategies import grade_rows, judgments, preference_rows, ranking_rows

from crowdrank.data.judgments import Grades, Preferences, Rankings
from crowdrank.models.averages.borda import Borda


def full_rankings(*orders):
    """One ranking an annotator, each given as text with the best item first."""
    rows = [(f"a{k}", "q", item, place) for k, order in enumerate(orders) for place, item in enumerate(order, 1)]
    return Rankings.from_rows(rows)


def expected_of(groups, n_items):
    """Mean standings by the slow twin."""
    found = slow.standings(groups)
    own = [[(v, w) for item, v, w in found if item == k] for k in range(n_items)]
    return [slow.weighted_mean(pairs) if pairs else 0.0 for pairs in own]


def test_full_rankings_give_the_borda_count():
    # points for positions 2, 1, 0: x 2+2+0, y 1+0+2, z 0+1+1
    consensus = Borda().fit(full_rankings("xyz", "xzy", "yzx"))
    points = np.array([4, 3, 2]) / 3
    np.testing.assert_allclose(consensus.scores, points - 1)


def test_ties_share_their_middle_and_weights_count():
    table = {
        "ranking": [1, 1, 1, 2, 2],
        "item": ["x", "y", "z", "x", "y"],
        "rank": [1, 2, 2, 2, 1],
        "weight": [2, 2, 2, 1, 1],
    }
    # twice: x above both, y and z middle of the last two; once: y above x
    consensus = Borda().fit(Rankings.from_frame(table))
    np.testing.assert_allclose(consensus.scores, [(2 - 1) / 3, (-1 + 1) / 3, -0.5])


@given(ranking_rows())
def test_rankings_equal_the_slow_twin(rows):
    rankings = judgments("ranking", rows)
    bounds = zip(rankings.offsets[:-1], rankings.offsets[1:], strict=True)
    groups = [[(rankings.item[k], -rankings.rank[k], 1.0) for k in range(a, b)] for a, b in bounds]
    np.testing.assert_allclose(Borda().fit(rankings).scores, expected_of(groups, rankings.n_items), atol=1e-12)


@given(grade_rows())
def test_grades_equal_the_slow_twin(rows):
    grades = judgments("grade", rows)
    groups = {}
    for item, annotator, grade in zip(grades.item, grades.annotator, grades.grade, strict=True):
        groups.setdefault((annotator, grades.items.query[item]), []).append((item, grade, 1.0))
    np.testing.assert_allclose(Borda().fit(grades).scores, expected_of(groups.values(), grades.n_items), atol=1e-12)


@given(preference_rows())
def test_preferences_equal_the_slow_twin(rows):
    judged = judgments("preference", rows)
    expected = slow_pairs.borda(judged.left, judged.right, judged.outcome, None, judged.n_items)
    np.testing.assert_allclose(Borda().fit(judged).scores, expected, atol=1e-12)


def test_a_severe_and_a_mild_annotator_are_equal():
    rows = [("mild", "q", "x", 5), ("mild", "q", "y", 4), ("severe", "q", "y", 1), ("severe", "q", "x", 2)]
    assert Borda().fit(Grades.from_rows(rows)).scores.tolist() == [1, -1]


def test_judgments_that_compare_nothing_say_nothing():
    rows = [("ann", "q", "x", 5), ("bob", "q", "y", 4)]
    assert Borda().fit(Grades.from_rows(rows)).scores.tolist() == [0, 0]
    assert Borda().fit(Rankings.from_rows(rows)).scores.tolist() == [0, 0]


def test_grades_of_one_annotator_are_ranked_within_their_own_query_after_merging():
    rows = [("ann", "p", "x", 1), ("ann", "p", "y", 0), ("ann", "r", "x", 9), ("ann", "r", "y", 10)]
    assert Borda().fit(Grades.from_rows(rows).across_queries()).scores.tolist() == [0, 0]


def test_unjudged_items_are_in_the_middle():
    table = {"left": ["x"], "right": ["y"], "winner": ["x"]}
    consensus = Borda().fit(Preferences.from_frame(table, items={"item": ["x", "y", "z"]}))
    assert consensus.scores.tolist() == [1, -1, 0]


@pytest.mark.parametrize("kind", [Grades, Rankings, Preferences])
def test_nothing_left(kind):
    rows = {Preferences: [("ann", "q", "x", "y", "left")]}.get(kind, [("ann", "q", "x", 1), ("ann", "q", "y", 2)])
    judged = kind.from_rows(rows)
    assert Borda().fit(judged.select(np.zeros(len(judged), bool))).scores.tolist() == [0, 0]


def test_recovers_the_order_of_noisy_partial_rankings():
    rng = np.random.default_rng(0)
    rows = []
    for annotator in range(200):
        seen = rng.choice(12, 5, replace=False)
        noisy = seen + rng.normal(0, 2, 5)
        rows += [
            (annotator, "q", f"i{item:02d}", rank)
            for item, rank in zip(seen, noisy.argsort().argsort() + 1, strict=True)
        ]
    consensus = Borda().fit(Rankings.from_rows(rows))
    assert np.corrcoef(consensus.scores, -np.arange(12))[0, 1] > 0.98
