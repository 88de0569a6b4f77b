"""Median rank: worked by hand, the slow twin, resistance to a minority."""

import numpy as np
import pytest
from hypothesis import given
from tests.oracles import votes as slow
from tests.strategies import grade_rows, judgments, ranking_rows

from crowdrank.data.judgments import Grades, Rankings
from crowdrank.models.averages.borda import MedianRank


def full_rankings(*orders):
    """One ranking an annotator, each given as text with the best item first."""
    rows = [(f"a{k}", "q", item, place) for k, order in enumerate(orders) for place, item in enumerate(order, 1)]
    return Rankings.from_rows(rows)


def expected_of(groups, judged):
    """Minus the median ranks of the items of each query by the slow twin."""
    found = slow.standings(groups)
    own = {k: [(v, w) for item, v, w in found if item == k] for k in range(judged.n_items)}
    n_judged = np.bincount(judged.items.query, [bool(own[k]) for k in own], judged.n_queries)
    scores = []
    for item, pairs in own.items():
        standing = slow.weighted_median(pairs) + 1e-6 * slow.weighted_mean(pairs) if pairs else 0.0
        scores.append(-(1 + max(n_judged[judged.items.query[item]] - 1, 0) * (1 - standing) / 2))
    return scores


def test_full_rankings_by_hand():
    # ranks of w: 1 2 3, x: 2 1 4, y: 3 4 1, z: 4 3 2
    consensus = MedianRank().fit(full_rankings("wxyz", "xwzy", "yzwx"))
    np.testing.assert_allclose(consensus.scores, [-2, -2, -3, -3], atol=1e-5)
    # the mean ranks of w and x are 2 and 7/3, those of y and z 8/3 and 3
    assert consensus.order("q") == ["w", "x", "y", "z"]
    assert len(set(consensus.scores)) == 4


def test_an_even_number_of_rankings_and_ties():
    rows = [
        ("ann", "q", "x", 1),
        ("ann", "q", "y", 2),
        ("ann", "q", "z", 2),
        ("bob", "q", "z", 1),
        ("bob", "q", "x", 2),
        ("bob", "q", "y", 3),
    ]
    consensus = MedianRank().fit(Rankings.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [-1.5, -2.75, -1.75], atol=1e-5)


def test_partial_rankings_are_stretched():
    rows = [
        ("ann", "q", "x", 1),
        ("ann", "q", "y", 2),
        ("bob", "q", "y", 1),
        ("bob", "q", "z", 2),
        ("cid", "q", "v", 1),
        ("cid", "q", "w", 2),
    ]
    consensus = MedianRank().fit(Rankings.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [-1, -5, -1, -3, -5], atol=1e-5)


@given(ranking_rows())
def test_rankings_equal_the_slow_twin(rows):
    rankings = judgments("ranking", rows)
    bounds = zip(rankings.offsets[:-1], rankings.offsets[1:], strict=True)
    groups = [[(rankings.item[k], -rankings.rank[k], 1.0) for k in range(a, b)] for a, b in bounds]
    np.testing.assert_allclose(MedianRank().fit(rankings).scores, expected_of(groups, rankings), atol=1e-5)


@given(grade_rows())
def test_grades_equal_the_slow_twin(rows):
    grades = judgments("grade", rows)
    groups = {}
    for item, annotator, grade in zip(grades.item, grades.annotator, grades.grade, strict=True):
        groups.setdefault((annotator, grades.items.query[item]), []).append((item, grade, 1.0))
    np.testing.assert_allclose(MedianRank().fit(grades).scores, expected_of(groups.values(), grades), atol=1e-5)


def test_weights_count_rankings():
    table = {"ranking": [1, 1, 2, 2], "item": ["x", "y", "x", "y"], "rank": [1, 2, 2, 1], "weight": [3, 3, 1, 1]}
    np.testing.assert_allclose(MedianRank().fit(Rankings.from_frame(table)).scores, [-1, -2], atol=1e-5)


def test_unjudged_items_have_the_middle_rank():
    table = {"item": ["x", "y", "z"], "rank": [1, 2, 3], "annotator": ["ann"] * 3}
    consensus = MedianRank().fit(Rankings.from_frame(table, items={"item": ["w", "x", "y", "z"]}))
    np.testing.assert_allclose(consensus.scores, [-2, -1, -2, -3], atol=1e-5)


@pytest.mark.parametrize("kind", [Grades, Rankings])
def test_nothing_to_compare(kind):
    judged = kind.from_rows([("ann", "q", "x", 1)])
    assert MedianRank().fit(judged).scores.tolist() == [-1]
    assert MedianRank().fit(judged.select(np.zeros(1, bool))).scores.tolist() == [-1]


def test_a_minority_of_reversed_rankings_moves_little():
    rng = np.random.default_rng(0)
    orders = []
    for number in range(50):
        noisy = np.arange(10) + rng.normal(0, 1, 10)
        orders.append("".join("abcdefghij"[k] for k in (np.argsort(noisy) if number % 5 else np.argsort(-noisy))))
    consensus = MedianRank().fit(full_rankings(*orders))
    assert np.corrcoef(consensus.scores, -np.arange(10))[0, 1] > 0.97
