"""Rank centrality: golden values of choix, the dense twin, chains that take long to settle, groups."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.known_preferences import preferences_of, quiet, simulated
from tests.oracles import pair_orders, pairs
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.rank_centrality import RankCentrality

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "rank_centrality.json").read_text())


@pytest.mark.parametrize(("case", "alpha"), [("alpha0", 1e-12), ("alpha0.5", 0.5), ("alpha2", 2)])
def test_golden(case, alpha):
    table = pl.DataFrame(GOLDEN["input"]["rows"], schema=GOLDEN["input"]["columns"], orient="row")
    found = RankCentrality(alpha=alpha).fit(Preferences.from_frame(table)).scores
    np.testing.assert_allclose(found, GOLDEN["expected"][case]["scores"], atol=1e-8)


def test_two_items_by_hand():
    # 3 wins and a tie to 1: 3.5 + 1 to 1.5 + 1, and the walker is at each in that proportion
    rows = [(who, "q", "x", "y", w) for who, w in zip("abcde", ("left", "left", "left", "right", "tie"), strict=True)]
    scores = RankCentrality().fit(Preferences.from_rows(rows)).scores
    np.testing.assert_allclose(scores, [np.log(4.5 / 2.5) / 2, -np.log(4.5 / 2.5) / 2], atol=1e-9)


def test_three_items_by_hand():
    # x beats y, y beats z, z beats x: as much arrives at each from the one it beat
    rows = [("ann", "q", one, other, "left") for one, other in ("xy", "yz", "zx")]
    np.testing.assert_allclose(RankCentrality().fit(Preferences.from_rows(rows)).scores, 0, atol=1e-12)


@given(preference_rows(), st.sampled_from([0.01, 1.0]))
def test_equals_the_dense_twin(rows, alpha):
    preferences = judgments("preference", rows)
    counts = pairs.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    n = preferences.n_items
    expected = pair_orders.walk_scores(counts, n, alpha, pairs.groups(counts, n))
    np.testing.assert_allclose(quiet(RankCentrality(alpha=alpha), preferences).scores, expected, atol=1e-7)


def test_equals_the_dense_twin_with_weights():
    rng = np.random.default_rng(7)
    left = rng.integers(0, 60, 900)
    right = (left + rng.integers(1, 60, 900)) % 60
    preferences = preferences_of(60, left, right, rng.integers(-1, 2, 900), weight=rng.random(900))
    counts = pairs.count_pairs(left, right, preferences.outcome, preferences.weight)
    expected = pair_orders.walk_scores(counts, 60, 0.3, pairs.groups(counts, 60))
    np.testing.assert_allclose(quiet(RankCentrality(alpha=0.3), preferences).scores, expected, atol=1e-8)


def test_recovers_scores_of_the_bradley_terry_model():
    preferences, truth = simulated(30, 60_000, ties=0.0)
    scores = RankCentrality(alpha=1e-6).fit(preferences).scores
    np.testing.assert_allclose(scores, truth - truth.mean(), atol=0.15)
    assert kendall_tau(truth, scores) > 0.93


def test_many_items_never_make_a_square_table():
    preferences, truth = simulated(30_000, 300_000)
    consensus = quiet(RankCentrality(), preferences)
    assert consensus.trace.converged
    assert kendall_tau(truth, consensus.scores) > 0.6


@pytest.mark.parametrize("alpha", [1.0, 1e-6])
def test_a_long_chain_is_solved_though_shares_leave_the_range_of_numbers(alpha):
    # each item beat the next one only, so that neighbours differ by the log odds of that contest
    n = 2_000
    scores = quiet(RankCentrality(alpha=alpha), preferences_of(n, np.arange(n - 1), np.arange(1, n))).scores
    np.testing.assert_allclose(-np.diff(scores), np.log((1 + alpha) / alpha), atol=1e-6)


def test_near_neighbours_only():
    rng = np.random.default_rng(8)
    left = rng.integers(0, 380, 8_000)
    right = left + rng.integers(1, 20, 8_000)
    preferences = preferences_of(400, left, right, rng.choice([-1, 1], 8_000))
    counts = pairs.count_pairs(left, right, preferences.outcome, None)
    consensus = quiet(RankCentrality(max_iter=40), preferences)
    assert consensus.trace.converged
    expected = pair_orders.walk_scores(counts, 400, 1.0, pairs.groups(counts, 400))
    np.testing.assert_allclose(consensus.scores, expected, atol=1e-6)


def test_what_only_alpha_holds_is_named():
    rows = [("ann", "q", "x", "y", "x"), ("ann", "q", "y", "z", "y"), ("ann", "q", "u", "v", "tie")]
    with pytest.warns(DataWarning) as caught:
        consensus = RankCentrality().fit(Preferences.from_rows(rows))
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith("'x' (query 'q') won every preference")
    assert messages[1].startswith("'z' (query 'q') lost every preference")
    assert messages[2].startswith("2 groups of items were never compared with each other")
    assert caught[2].filename == __file__
    by_item = dict(zip(consensus.items.ids, consensus.scores.tolist(), strict=True))
    assert by_item["u"] == by_item["v"] == 0
    assert by_item["x"] == pytest.approx(np.log(2))


def test_all_ties_and_unjudged_items():
    rows = {"left": ["x"], "right": ["y"], "winner": ["tie"], "query": ["q"]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    assert RankCentrality().fit(Preferences.from_frame(rows, items=items)).scores.tolist() == [0, 0, 0, 0]


def test_too_few_steps_warn_where_factorising_would_take_too_long(monkeypatch):
    monkeypatch.setattr("crowdrank.models.pairs.kernels.spectral._MAX_FACTOR_OPERATIONS", 0.0)
    preferences, _ = simulated(50, 500)
    with pytest.warns(ConvergenceWarning, match="rank_centrality did not converge in 5 steps"):
        assert not quiet(RankCentrality(max_iter=5), preferences).trace.converged
