"""Schemes that look at one item's grades: worked by hand, in the order of time, with words for levels."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.schemes import GoodTillBad, IfGoodK, KOverlap
from crowdrank.schemes.grade_rules import OrderedGrades, n_asked_by_rule, replay
from crowdrank.schemes.situation import Situation

ROWS = [
    ("ann", "q", "good", 3), ("ann", "q", "poor", 1), ("bob", "q", "poor", 4), ("ann", "q", "twice", 2),
    ("bob", "q", "twice", 0), ("ann", "q", "thrice", 2), ("bob", "q", "thrice", 2), ("cy", "q", "thrice", 3),
]  # fmt: skip


def asked(scheme, grades, **situation):
    """How many more grades each item is asked for, by item."""
    frame = scheme.propose(Situation.of(grades, **situation)).frame()
    return dict(frame.group_by("item").agg(pl.col("n_more").sum()).rows())


def listed(grades):
    """The grades with one more item that nobody judged, and everything askable."""
    items = {"query": ["q"], "item": ["new"]}
    return Grades.from_frame(grades.frame(), items=items), np.ones(grades.n_items + 1, bool)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (KOverlap(k=1), {"new": 1}),
        (KOverlap(k=3), {"new": 3, "good": 2, "poor": 1, "twice": 1}),
        (IfGoodK(k=3), {"new": 1, "good": 2, "twice": 1}),
        (IfGoodK(k=2), {"new": 1, "good": 1}),
        (IfGoodK(k=1), {"new": 1}),
        (IfGoodK(k=3, good_from=3), {"new": 1, "good": 2}),
        (GoodTillBad(), {"new": 1, "good": 1, "thrice": 1}),
        (GoodTillBad(k=3), {"new": 1, "good": 1}),
    ],
)
def test_by_hand(scheme, expected):
    grades, everything = listed(Grades.from_rows(ROWS))
    assert asked(scheme, grades, askable=everything) == expected


def test_if_good_looks_at_the_first_grade_by_time_also_when_later_ones_stand_first():
    rows = {"item": ["x", "x", "y", "y"], "annotator": ["ann", "bob"] * 2, "grade": [4, 0, 0, 4]}
    by_row = Grades.from_frame(rows)
    assert asked(IfGoodK(), by_row) == {"x": 1}
    by_time = Grades.from_frame({**rows, "time": [2, 1, 2, 1]})
    assert asked(IfGoodK(), by_time) == {"y": 1}
    assert asked(IfGoodK(), by_time.select(np.array([3, 1, 0, 2]))) == {"y": 1}


def test_a_rule_is_asked_about_one_item_as_a_service_would():
    grades, bounds = np.array([3.0, 0.0]), np.array([0, 2])
    assert IfGoodK(k=3).n_wanted(grades, bounds).tolist() == [3]
    assert GoodTillBad().n_wanted(grades, bounds).tolist() == [2]
    assert GoodTillBad().n_wanted(grades[:1], np.array([0, 1])).tolist() == [2]
    assert KOverlap(k=4).n_wanted(grades, bounds).tolist() == [4]
    nothing = np.empty(0), np.array([0, 0])
    assert [scheme.n_wanted(*nothing).tolist() for scheme in (IfGoodK(), GoodTillBad(), KOverlap(k=2))] == [
        [1],
        [1],
        [2],
    ]


def test_levels_in_words():
    rows = [("ann", "q", "x", "Good"), ("ann", "q", "y", "Fair")]
    grades = Grades.from_rows(rows, levels=["Bad", "Fair", "Good"])
    assert asked(IfGoodK(good_from="Good"), grades) == {"x": 2}
    requests = IfGoodK(good_from="Fair").propose(Situation.of(grades))
    assert set(requests.frame()["reason"]) == {"its first grade is Fair or better"}
    with pytest.raises(ParameterError, match="there is no level 'Great'"):
        IfGoodK(good_from="Great").propose(Situation.of(grades))


def test_better_items_come_first_where_their_errors_cost_more():
    grades = Grades.from_rows([("ann", "q", "x", 2), ("ann", "q", "y", 4), ("ann", "q", "z", 3), ("ann", "q", "w", 0)])
    requests = IfGoodK().propose(Situation.of(grades, budget=3))
    assert requests.frame()["item"].to_list() == ["y", "z"]
    assert requests.frame()["n_more"].to_list() == [2, 1]
    assert (requests.gains > 0).all()
    whole = dict(IfGoodK().propose(Situation.of(grades)).frame().select("item", "expected_gain").rows())
    # a gain of 2 ** g - 1 is twice as steep a grade higher, and errors count squared
    assert whole["y"] / whole["z"] == pytest.approx(4)
    assert whole["z"] / whole["x"] == pytest.approx(4)


def test_only_askable_items_are_asked_about():
    grades = Grades.from_rows(ROWS)
    only = grades.items.ids.to_list().index("good")
    assert asked(KOverlap(k=9), grades, askable=np.arange(grades.n_items) == only) == {"good": 8}


def test_other_kinds_are_refused(small):
    for scheme in (IfGoodK(), GoodTillBad()):
        with pytest.raises(JudgmentError, match="takes grades, not preferences; choose a method for preferences"):
            scheme.propose(Situation.of(small["preference"]))
    with pytest.raises(JudgmentError, match="not rankings"):
        KOverlap().propose(Situation.of(small["ranking"]))


def test_classes_without_an_order_are_refused():
    grades = Grades.from_rows([("ann", "q", "x", "cat")], nominal=True)
    with pytest.raises(JudgmentError, match="needs an order and nominal grades have none"):
        IfGoodK().propose(Situation.of(grades))


@pytest.mark.parametrize("scheme", [KOverlap, IfGoodK, GoodTillBad])
def test_wrong_parameters(scheme):
    with pytest.raises(ParameterError, match="k=0 must be at least 1"):
        scheme(k=0)


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=13), min_size=1, max_size=6), st.integers(1, 12))
def test_replays_equal_asking_one_after_the_other(items, k):
    bounds = np.concatenate([[0], np.cumsum([len(grades) for grades in items])])
    laid = OrderedGrades(np.concatenate([np.array(grades, float) for grades in items]), bounds)
    for scheme in (KOverlap(k=k), IfGoodK(k=k), GoodTillBad(k=k)):
        assert n_asked_by_rule(scheme, laid).tolist() == [slow_length(scheme, grades) for grades in items]


def test_replayed_grades_are_the_first_by_time():
    table = {
        "item": list("xyxzxyy"), "annotator": list("abbacac"), "grade": [3, 0, 2, 2, 1, 4, 4],
        "time": [3, 1, 1, 1, 2, 2, 3],
    }  # fmt: skip
    grades = Grades.from_frame(table)
    for scheme, expected in (
        (KOverlap(k=1), [2, 0, 2]),
        (KOverlap(k=2), [2, 1, 0, 4, 2]),
        (IfGoodK(k=3), [2, 1, 3, 0, 2]),
        (GoodTillBad(), [2, 1, 0, 2]),
    ):
        found = replay(scheme, grades)
        assert found.grade.tolist() == expected
        assert found.items is grades.items


def slow_length(scheme, grades):
    """Number of grades that are asked for, the rules written out."""
    if isinstance(scheme, KOverlap):
        return min(scheme.k, len(grades))
    if isinstance(scheme, IfGoodK):
        return min(scheme.k, len(grades)) if grades[0] >= 2 else 1
    n = 1
    while n < min(scheme.k, len(grades)) and grades[n - 1] >= 2:
        n += 1
    return n


def test_overlap_goes_in_rounds_in_random_order():
    items = {"query": ["q"] * 50, "item": [f"i{n:02}" for n in range(50)]}
    grades = Grades.from_frame({"query": ["q"], "item": ["i00"], "annotator": ["ann"], "grade": [4]}, items=items)
    everything = np.ones(50, bool)
    first, other = (
        KOverlap(k=3).propose(Situation.of(grades, askable=everything, budget=49, seed=seed)).frame()["item"].to_list()
        for seed in (0, 1)
    )
    assert set(first) == {f"i{n:02}" for n in range(1, 50)}
    assert first not in (other, sorted(first))
    more = KOverlap(k=3).propose(Situation.of(grades, askable=everything, budget=99))
    assert more.frame()["n_more"].value_counts().sort("n_more").rows() == [(1, 1), (2, 49)]
