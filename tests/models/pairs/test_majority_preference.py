"""Majority vote on pairs: examples by hand, a slow twin, what mv means."""

import numpy as np
import pytest
from hypothesis import given
from tests.known_preferences import quiet, simulated
from tests.oracles import pairs
from tests.strategies import judgments, preference_rows

import crowdrank as cr
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.errors import DataWarning, JudgmentError
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.majority_preference import MajorityPreference


def rows_of(*wins):
    """Preferences by so many annotators: ("x", "y", 2) is x above y by two."""
    return [(f"a{who}", "q", one, other, "left") for one, other, number in wins for who in range(number)]


def test_a_golden_case_by_hand():
    # x beats y 2 to 1 and is even with z at 1 to 1; y beats z 5 to 4; w lost to x only
    rows = rows_of(
        ("x", "y", 2), ("y", "x", 1), ("x", "z", 1), ("z", "x", 1), ("y", "z", 5), ("z", "y", 4), ("x", "w", 1)
    )
    scores = MajorityPreference().fit(Preferences.from_rows(rows))
    by_id = dict(zip(scores.items.ids, scores.scores, strict=True))
    assert by_id == {"x": pytest.approx(2 / 3), "y": 0.0, "z": -0.5, "w": -1.0}


def test_a_wide_majority_counts_as_a_narrow_one():
    narrow, wide = (
        MajorityPreference().fit(Preferences.from_rows(rows_of(("x", "y", number), ("y", "x", 1), ("y", "z", 1))))
        for number in (2, 20)
    )
    np.testing.assert_array_equal(narrow.scores, wide.scores)


def test_ties_and_equal_sums_of_fractions_are_even():
    rows = [("ann", "q", "x", "y", "tie"), ("bob", "q", "x", "y", "tie")]
    assert MajorityPreference().fit(Preferences.from_rows(rows)).scores.tolist() == [0, 0]
    tenths = [(who, "q", "x", "y", "y" if who == "dan" else "x") for who in ("ann", "bob", "cy", "dan")]
    preferences = Preferences.from_rows(tenths).with_weights(np.array([0.1, 0.2, 0.3, 0.6]))
    assert MajorityPreference().fit(preferences).scores.tolist() == [0, 0]


@given(preference_rows())
def test_equals_the_slow_twin(rows):
    preferences = judgments("preference", rows)
    leads = [[] for _ in range(preferences.n_items)]
    counts = pairs.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    for (one, other), (wins, losses, *_) in counts.items():
        leads[one].append(np.sign(wins - losses))
        leads[other].append(np.sign(losses - wins))
    expected = [np.mean(own) if own else 0.0 for own in leads]
    np.testing.assert_allclose(quiet(MajorityPreference(), preferences).scores, expected, atol=1e-12)


def test_mv_means_the_vote_of_the_kind_at_hand():
    preferences = Preferences.from_rows(rows_of(("x", "y", 2), ("y", "x", 1)))
    grades = Grades.from_rows([("ann", "q", "x", 2), ("bob", "q", "x", 2), ("ann", "q", "y", 0)])
    assert cr.aggregate(preferences, "MV").method == "majority_preference"
    assert cr.aggregate(grades, "mv").method == "majority_vote"
    assert "majority_preference" in cr.compare(preferences, ["mv", "borda"])["method"].to_list()
    with pytest.raises(JudgmentError, match=r"choose a method that takes preferences.*majority_preference"):
        cr.aggregate(preferences, "majority_vote")


def test_groups_that_never_met_are_told_of():
    rows = rows_of(("x", "y", 1), ("v", "w", 1))
    with pytest.warns(DataWarning, match="never"):
        MajorityPreference().fit(Preferences.from_rows(rows))


def test_recovers_the_order():
    preferences, truth = simulated(60, 20_000)
    assert kendall_tau(truth, MajorityPreference().fit(preferences).scores) > 0.8
