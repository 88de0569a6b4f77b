"""Annotators who are not independent: found where they are, not where they are not, and what a crowd is worth."""

import numpy as np
import polars as pl
import pytest
from tests.review.crowds import panel, preferences, winners

import crowdrank as cr
from crowdrank import simulate
from crowdrank.models.averages.borda import Borda
from crowdrank.review.dependence import (
    FALSE_DISCOVERY,
    Panel,
    effective_number,
    expected_classes,
    false_discovery_rates,
)
from crowdrank.review.diagnosis import diagnose


def look(judgments, truth=None):
    """Diagnostics with the plainest consensus."""
    return diagnose(judgments, Borda().fit(judgments), None if truth is None else cr.Truth.from_frame(truth))


def named(found):
    """The pairs that are named, as a set."""
    table = found.dependence()
    clear = (table["false_discovery"] <= FALSE_DISCOVERY) & (table["correlation"] >= 0.1)
    return set(table.filter(clear).select("annotator", "other").rows())


def test_a_copy_is_found_among_independent_annotators():
    given, _ = panel(np.random.default_rng(1), n=8, things=200, copies=2)
    found = look(preferences(given))
    assert named(found) == {("a0", "a1")}
    best = found.dependence().row(0, named=True)
    assert (best["annotator"], best["other"]) == ("a0", "a1")
    assert best["agreement"] == best["agreement_when_wrong"] == 1.0
    assert best["correlation"] == pytest.approx(1.0, abs=0.05)
    assert best["expected"] == pytest.approx(best["agreement"] - best["excess"])
    assert best["excess_lower"] < best["excess"] < best["excess_upper"]
    # 8 annotators of whom two are one: 64 / (8 + 2)
    assert found.effective_annotators == pytest.approx(6.4, abs=0.1)
    assert found.annotators()["family"].to_list() == [1, 1, None, None, None, None, None, None]


def test_copies_in_number_do_not_pass_for_the_truth():
    given, _ = panel(np.random.default_rng(2), n=20, things=300, copies=8)
    found = look(preferences(given))
    copies = {(f"a{i}", f"a{j}") for i in range(8) for j in range(i + 1, 8)}
    assert copies <= named(found)
    assert found.effective_annotators == pytest.approx(400 / (12 + 64), abs=0.4)
    row = found.families().row(0, named=True)
    assert (row["origin"], row["n_annotators"]) == ("found", 8)
    assert row["effective_annotators"] == pytest.approx(1.0, abs=0.05)


def test_a_family_of_three_is_found():
    hits = 0
    for seed in range(10):
        given, _ = panel(np.random.default_rng(seed), n=8, things=400, accuracy=(0.7, 0.9), family=3, shared=0.7)
        hits += len(named(look(preferences(given))) & {("a0", "a1"), ("a0", "a2"), ("a1", "a2")})
    assert hits >= 27


CROWDS = {
    "panel": {},
    "hard and easy": {"n": 10, "hard": True},
    "good": {"accuracy": (0.9, 0.98), "things": 400},
    "ties": {"ties": 0.2},
    "few": {"n": 12, "things": 40},
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_independent_annotators_are_left_alone(crowd):
    alarms, worth = 0, []
    for seed in range(40):
        given, _ = panel(np.random.default_rng(seed), **CROWDS[crowd])
        found = look(preferences(given))
        alarms += bool(named(found))
        worth.append(found.effective_annotators / found.n_annotators)
    # at a true rate of 5 % more than 5 in 40 are seen once in a hundred runs
    assert alarms <= 5
    assert np.mean(worth) > 0.99


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_independent_simulated_crowds_are_left_alone(kind):
    alarms = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = {"query": np.repeat(range(10), 8), "item": np.tile(range(8), 10), "grade": rng.normal(size=80)}
        slopes = simulate.PlackettLuce(rng.uniform(0.5, 3, 10))
        if kind == "grade":
            levels = {"item": range(300), "grade": rng.integers(0, 5, 300)}
            pool = simulate.profile(n_annotators=10, seed=seed)
            drawn = simulate.grades(levels, pool, simulate.PerItem(k=6), seed=seed)
        elif kind == "preference":
            drawn = simulate.preferences(truth, slopes, simulate.AllPairs(k=6), seed=seed)
        else:
            drawn = simulate.rankings(truth, slopes, simulate.PerQuery(k=10), seed=seed)
        alarms += bool(named(look(drawn.judgments)))
    assert alarms <= 4


def test_copied_grades_and_rankings_are_found():
    rng = np.random.default_rng(5)
    truth = {"item": range(150), "grade": rng.integers(0, 4, 150)}
    drawn = simulate.grades(truth, simulate.OneCoin(np.full(6, 0.6)), simulate.PerItem(k=6), seed=1).judgments
    table = drawn.frame()
    copy = table.filter(table["annotator"] == drawn.annotators.ids[0]).with_columns(annotator=pl.lit("copy"))
    assert {(drawn.annotators.ids[0], "copy")} <= sorted_pairs(named(look(cr.Grades.from_frame(table.vstack(copy)))))
    truth = {"query": np.repeat(range(12), 8), "item": np.tile(range(8), 12), "grade": rng.normal(size=96)}
    drawn = simulate.rankings(truth, simulate.Mallows(np.full(6, 0.6)), simulate.PerQuery(k=6), seed=1).judgments
    table = drawn.frame().drop("ranking")
    copy = table.filter(table["annotator"] == drawn.annotators.ids[0]).with_columns(annotator=pl.lit("copy"))
    assert {(drawn.annotators.ids[0], "copy")} == sorted_pairs(named(look(cr.Rankings.from_frame(table.vstack(copy)))))


def sorted_pairs(pairs):
    """Pairs with the copy last."""
    return {tuple(sorted(pair, key=lambda name: name == "copy")) for pair in pairs}


def test_a_truth_shows_what_all_have_in_common():
    given, truth = panel(np.random.default_rng(3), n=6, things=400, accuracy=(0.8, 0.8), copies=6)
    alone, told = look(preferences(given)), look(preferences(given), winners(truth))
    # nothing but a truth tells a crowd of copies from a crowd that is always right
    assert alone.effective_annotators == 6.0
    assert told.effective_annotators == pytest.approx(1.0, abs=0.01)
    assert told.dependence()["correlation"].min() > 0.99
    given, truth = panel(np.random.default_rng(4), n=6, things=400)
    assert look(preferences(given), winners(truth)).effective_annotators > 5.5


def test_given_groups_have_a_row_each():
    given, _ = panel(np.random.default_rng(6), n=8, things=400, accuracy=(0.7, 0.9), family=3, shared=0.8)
    groups = ["gpt"] * 3 + ["human"] * 5
    table = look(preferences(given, groups)).families()
    rows = {row["family"]: row for row in table.filter(table["origin"] == "given").rows(named=True)}
    assert rows["gpt"]["n_pairs"] == 3
    assert rows["gpt"]["effective_annotators"] < 2.0
    assert rows["human"]["effective_annotators"] > 4.0
    assert rows["gpt"]["annotators"] == "'a0', 'a1', 'a2'"


def test_order_and_names_of_the_rows_do_not_matter():
    given, _ = panel(np.random.default_rng(7), n=6, things=100, copies=2, ties=0.1)
    judged = preferences(given)
    shuffled = cr.Preferences.from_frame(judged.frame().sample(fraction=1.0, shuffle=True, seed=1))
    one, other = look(judged).dependence(), look(shuffled).dependence()
    assert one.equals(other)


def test_a_sample_of_things_is_said_to_be_one(monkeypatch):
    given, _ = panel(np.random.default_rng(8), n=8, things=400, copies=2)
    monkeypatch.setattr("crowdrank.review.dependence._MOST_WORK", 150_000.0)
    found = look(preferences(given))
    assert named(found) == {("a0", "a1")}
    assert any("a sample of" in note and "of the 400 things" in note for note in found.notes)


def test_very_many_judgments_are_looked_at_in_part(monkeypatch):
    given, _ = panel(np.random.default_rng(8), n=8, things=400, copies=2)
    monkeypatch.setattr("crowdrank.review.coded_judgments.MOST_JUDGMENTS", 1600)
    found = look(preferences(given))
    assert found.dependence()["n_common"].max() < 300
    assert "there are 3,200 answers" in found.notes[0]
    assert found.annotators()["n_judgments"].sum() == 3200


def test_nothing_in_common_is_said():
    rows = [(f"a{i}", "q", f"x{i}", f"y{i}", "left") for i in range(30)]
    found = look(cr.Preferences.from_rows(rows))
    assert found.dependence().is_empty()
    assert found.effective_annotators == 30.0
    assert any("no two annotators judged 10 things in common" in note for note in found.notes)


def test_false_discovery_rates_by_hand():
    rates = false_discovery_rates(np.array([0.5, 0.001, 0.04, 0.02]))
    np.testing.assert_allclose(rates, [0.5, 0.004, 0.04 * 4 / 3, 0.04])


def test_effective_number_by_hand():
    assert effective_number(4, 0.0) == 4.0
    assert effective_number(4, 1.0) == 1.0
    assert effective_number(5, 0.25) == 2.5
    assert effective_number(3, -0.2) == 3.0


def test_confusions_are_those_of_a_plain_expectation_maximisation(monkeypatch):
    monkeypatch.setattr("crowdrank.review.dependence._MAX_ITER", 5000)
    monkeypatch.setattr("crowdrank.review.dependence._TOL", 1e-9)
    rng = np.random.default_rng(9)
    given, _ = panel(rng, n=5, things=200, ties=0.15)
    thing, who = (x.ravel().astype(np.int32) for x in np.meshgrid(np.arange(200), np.arange(5), indexing="ij"))
    code = (given.T.ravel() + 1).astype(np.int32)
    sizes = {"n_things": 200, "n_annotators": 5, "n_classes": 3, "mirrored": True}
    answers = Panel(thing=thing, annotator=who, code=code, wrong=np.zeros(1000, bool), **sizes)
    found = expected_classes(answers, np.arange(5, dtype=np.int32))
    confusion, prior = found.confusion, np.exp(found.whole - found.parts.reshape(200, 5, 3).sum(axis=1))[0]
    # at the end another round changes nothing: classes from confusions, and confusions from classes
    log = np.log(prior) + np.array(
        [sum(np.log(confusion[a, :, code[5 * t + a]]) for a in range(5)) for t in range(200)]
    )
    classes = np.exp(log - log.max(axis=1, keepdims=True))
    classes /= classes.sum(axis=1, keepdims=True)
    counts = np.array([[classes[code[a::5] == y].sum(axis=0) for y in range(3)] for a in range(5)]).transpose(0, 2, 1)
    counts = counts + counts[:, ::-1, ::-1]
    crowd = counts.sum(axis=0) + 1 / 3
    crowd /= crowd.sum(axis=1, keepdims=True)
    again = (counts + 4 * crowd) / (counts.sum(axis=2, keepdims=True) + 4)
    np.testing.assert_allclose(confusion, again, atol=1e-6)
    np.testing.assert_allclose(confusion, confusion[:, ::-1, ::-1], atol=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_few_answers_are_counted_like_many(known, monkeypatch):
    given, truth = panel(np.random.default_rng(10), n=8, things=200, copies=3, ties=0.1)
    judged = preferences(given)
    few = look(judged, winners(truth) if known else None).dependence()
    monkeypatch.setattr("crowdrank.review.dependence.FEW", 0)
    many = look(judged, winners(truth) if known else None).dependence()
    assert few.select("annotator", "other", "n_common").equals(many.select("annotator", "other", "n_common"))
    np.testing.assert_allclose(few["excess"], many["excess"], atol=1e-6)
    np.testing.assert_allclose(few["excess_upper"], many["excess_upper"], atol=1e-6)
