"""Habits of single annotators: sides, ties, changed answers, circles, one grade."""

import numpy as np
import pytest
from tests.review.crowds import panel, preferences

import crowdrank as cr
from crowdrank import simulate
from crowdrank.models.averages.borda import Borda
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.review.coded_judgments import MOST_CLASSES, code_judgments, grade_classes
from crowdrank.review.diagnosis import diagnose
from crowdrank.review.habits import habits


def table_of(judgments, scores=None):
    """Habits by the plainest consensus, by annotator."""
    scores = Borda().fit(judgments).scores if scores is None else scores
    return {row["annotator"]: row for row in habits(judgments, code_judgments(judgments), scores).rows(named=True)}


def test_pairs_in_both_orders_by_hand():
    rows = []
    for pair, (first, second) in enumerate([("left", "left"), ("left", "left"), ("left", "right"), ("right", "left")]):
        rows += [("ann", f"q{pair}", "x", "y", first), ("ann", f"q{pair}", "y", "x", second)]
    row = table_of(cr.Preferences.from_rows(rows), np.zeros(8))["ann"]
    assert (row["n_judgments"], row["n_both_orders"], row["share_tied"]) == (8, 4, 0.0)
    assert row["share_left"] == 0.75
    assert row["share_flipped"] == 0.5
    # eight answers, of which four more went left than right, and one to either side for a start
    assert row["position_bias"] == pytest.approx(4 / 10)
    assert row["position_lower"] < 0.4 < row["position_upper"]
    assert row["flipped_lower"] < 0.5 < row["flipped_upper"]


def test_a_tie_in_one_order_is_half_a_flip():
    rows = [("ann", "q", "x", "y", "left"), ("ann", "q", "y", "x", "tie")]
    assert table_of(cr.Preferences.from_rows(rows))["ann"]["share_flipped"] == 0.5


def test_circles_by_hand():
    rows = [("ann", "q", "x", "y", "x"), ("ann", "q", "y", "z", "y"), ("ann", "q", "z", "x", "z")]
    rows += [("bob", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("bob", "q", "z", "x", "x")]
    # the circle of the third goes through two queries, and that of the fourth is broken by a tie
    rows += [("cid", "q", "x", "y", "x"), ("cid", "q", "y", "z", "y"), ("cid", "r", "z", "x", "z")]
    rows += [("dan", "q", "x", "y", "x"), ("dan", "q", "y", "z", "tie"), ("dan", "q", "z", "x", "z")]
    found = table_of(cr.Preferences.from_rows(rows))
    assert [found[who]["n_triads"] for who in ("ann", "bob", "cid", "dan")] == [1, 1, 0, 0]
    assert [found[who]["share_circular"] for who in ("ann", "bob", "cid", "dan")] == [1.0, 0.0, None, None]


def test_circles_stay_within_a_block_when_queries_are_merged():
    rows = [("ann", "q", "x", "y", "x"), ("ann", "q", "y", "z", "y"), ("ann", "r", "z", "x", "z")]
    merged = cr.Preferences.from_rows(rows).across_queries()
    assert table_of(merged)["ann"]["n_triads"] == 0


def covered(pool, drawn):
    """Whether each annotator's interval holds the true bias, which is that of answers that are no tie."""
    found = habits(drawn, code_judgments(drawn), BradleyTerry().scores(drawn))
    truth = pool.position_bias * (1 - pool.tie)
    return (found["position_lower"].to_numpy() <= truth) & (truth <= found["position_upper"].to_numpy())


def test_intervals_cover_the_true_position_bias():
    inside = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        pool = simulate.Flips(rng.uniform(0.05, 0.4, 20), rng.uniform(0, 0.3, 20), rng.uniform(-0.6, 0.6, 20))
        truth = {"query": np.repeat(range(20), 8), "item": np.tile(range(8), 20), "grade": rng.normal(size=160)}
        inside.append(covered(pool, simulate.preferences(truth, pool, simulate.AllPairs(k=6), seed=seed).judgments))
    # 300 intervals of 90 %
    assert 0.85 <= np.mean(inside) <= 0.96


def test_intervals_cover_the_bias_of_those_who_never_look():
    inside = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        pool = simulate.Flips(np.full(10, 0.2), 0.0, rng.choice([-1.0, -0.9, 0.0, 0.9, 1.0], 10))
        truth = {"query": np.repeat(range(10), 6), "item": np.tile(range(6), 10), "grade": rng.normal(size=60)}
        inside.append(covered(pool, simulate.preferences(truth, pool, simulate.AllPairs(k=5), seed=seed).judgments))
    assert np.mean(inside) >= 0.87


def test_left_items_that_are_better_make_no_bias():
    rng = np.random.default_rng(1)
    truth = {"item": range(12), "grade": np.arange(12.0)}
    drawn = simulate.preferences(
        truth, simulate.PlackettLuce(np.full(10, 0.7)), simulate.AllPairs(k=10), seed=1
    ).judgments
    better = drawn.left > drawn.right
    turn = ~better & (rng.random(len(drawn)) < 0.5)
    sided = cr.Preferences(
        items=drawn.items, annotators=drawn.annotators, annotator=drawn.annotator,
        left=np.where(turn, drawn.right, drawn.left), right=np.where(turn, drawn.left, drawn.right),
        outcome=np.where(turn, -drawn.outcome, drawn.outcome).astype(np.int8),
    )  # fmt: skip
    found = habits(sided, code_judgments(sided), BradleyTerry().scores(sided))
    assert found["share_left"].mean() > 0.6
    assert abs(found["position_bias"].mean()) < 0.05


def test_always_left_and_always_tie_are_named():
    given, _ = panel(np.random.default_rng(1), n=6, things=60)
    table = preferences(given).frame().to_dict(as_series=False)
    table["winner"] = [
        "left" if who == "a1" else "tie" if who == "a2" else winner
        for who, winner in zip(table["annotator"], table["winner"], strict=True)
    ]
    judged = cr.Preferences.from_frame(table)
    with pytest.warns(cr.errors.DataWarning) as caught:
        consensus = cr.aggregate(judged)
    told = [str(one.message) for one in caught]
    left = [
        text for text in told if text.startswith("1 annotator chooses one side whatever the items: 'a1' (left in 60 of")
    ]
    tied = [text for text in told if text.startswith("1 annotator ties nearly always: 'a2' (60 of 60 answers")]
    assert len(left) == len(tied) == 1
    odd = cr.diagnose(judged, consensus)
    assert {left[0], tied[0]} <= set(odd.annotator_messages)
    row = {row["annotator"]: row for row in odd.annotators().rows(named=True)}
    assert row["a1"]["position_lower"] > 0.8
    assert row["a2"]["share_tied"] == 1.0
    assert row["a2"]["share_left"] is None


def test_a_crowd_that_is_shown_the_better_item_left_is_not_accused():
    rows = [(who, f"q{i}", "x", "y", "left") for i in range(40) for who in ("ann", "bob", "cid")]
    judged = cr.Preferences.from_rows(rows)
    assert diagnose(judged, Borda().fit(judged)).annotator_messages == ()


def test_guessing_goes_in_circles():
    rng = np.random.default_rng(2)
    truth = {"item": range(9), "grade": np.arange(9.0)}
    pool = simulate.Flips(np.array([0.02, 0.05, 0.03, 0.5]))
    drawn = simulate.preferences(truth, pool, simulate.AllPairs(k=4), seed=int(rng.integers(100))).judgments
    found = diagnose(drawn, Borda().fit(drawn))
    table = found.annotators()
    assert table["n_triads"].to_list() == [84] * 4
    assert table["share_circular"].to_list()[3] > 0.15
    assert table["share_circular"].head(3).max() < 0.1
    assert any("in circles as often as guessing" in text for text in found.annotator_messages)


def test_one_grade_for_everything_is_named():
    rng = np.random.default_rng(3)
    rows = [(who, "q", f"i{i}", int(rng.integers(0, 4))) for i in range(30) for who in ("ann", "bob", "cid")]
    rows += [("eve", "q", f"i{i}", 2) for i in range(30)]
    judged = cr.Grades.from_rows(rows)
    found = diagnose(judged, Borda().fit(judged))
    row = found.annotators().filter(found.annotators()["annotator"] == "eve").row(0, named=True)
    assert (row["same_grade"], row["share_same"]) == (2, 1.0)
    assert row["share_same_others"] == pytest.approx(np.mean([row[3] == 2 for row in rows[:90]]))
    assert found.annotator_messages[0].startswith("1 annotator gives one grade nearly always: 'eve' (2 in 100 % of 30")


def test_grades_in_words_are_told_in_words():
    rows = [("ann", "q", f"i{i}", "Good") for i in range(3)]
    judged = cr.Grades.from_rows(rows, levels=["Bad", "Good"])
    assert table_of(judged)["ann"]["same_grade"] == "Good"


def test_many_levels_are_cut_into_few_classes():
    rng = np.random.default_rng(4)
    grades = cr.Grades.from_frame({"item": range(500), "grade": rng.normal(size=500)})
    classes, values = grade_classes(grades)
    assert len(values) == MOST_CLASSES
    assert (np.diff(values) > 0).all()
    assert np.bincount(classes).min() >= 60
    order = np.argsort(grades.grade)
    assert (np.diff(classes[order]) >= 0).all()
    names = cr.Grades.from_frame({"item": range(200), "grade": [f"c{i % 20:02d}" for i in range(200)]}, nominal=True)
    assert np.bincount(grade_classes(names)[0]).tolist() == [10] * 6 + [140]
