"""Quicksort by majority: examples by hand, the slow twin, and what it does where the majority is silent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.known_preferences import preferences_of, quiet, simulated
from tests.oracles import pair_orders, pairs
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import DataWarning
from crowdrank.kernels.numbering import structure_numbers
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.condorcet import Condorcet


@pytest.mark.parametrize("seed", range(6))
def test_a_majority_that_contradicts_nobody_is_followed_whatever_is_drawn(seed):
    # two of three prefer the earlier letter in each pair
    rows = [
        (who, "q", one, other, one if who != "cy" else other)
        for who in ("ann", "bob", "cy")
        for one, other in ("wx", "wy", "wz", "xy", "xz", "yz")
    ]
    scores = Condorcet(seed=seed).fit(Preferences.from_rows(rows)).scores
    np.testing.assert_allclose(scores, [1, 1 / 3, -1 / 3, -1])


@pytest.mark.parametrize("seed", range(6))
def test_a_winner_above_a_cycle(seed):
    # w beats all; x, y and z beat each other in a circle and share the three places below
    won = [("w", "x"), ("w", "y"), ("w", "z"), ("x", "y"), ("y", "z"), ("z", "x")]
    rows = [("ann", "q", one, other, "left") for one, other in won]
    scores = Condorcet(seed=seed).fit(Preferences.from_rows(rows)).scores
    np.testing.assert_allclose(scores, [1, -1 / 3, -1 / 3, -1 / 3])


@given(preference_rows(), st.integers(0, 5))
def test_equals_the_slow_twin(rows, seed):
    preferences = judgments("preference", rows)
    n = preferences.n_items
    counts = pairs.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    lead = pair_orders.lead_matrix(counts, n)
    first, second = np.nonzero(np.triu(lead))
    starts = np.searchsorted(first, np.arange(n + 1))
    won = lead[first, second] > 0
    numbers = structure_numbers(
        starts, second.astype(np.int32), won.astype(np.uint64), (~won).astype(np.uint64), preferences.items.offsets
    ).tolist()
    salts = np.random.default_rng(seed).integers(0, 2**64, 3, dtype=np.uint64).tolist()
    expected = np.zeros(n)
    for query in range(preferences.n_queries):
        part = range(*preferences.items.offsets[query : query + 2])
        judged = [i for i in part if any(i in pair for pair in counts)]
        for salt in salts:
            expected += pair_orders.standings(pair_orders.majority_order(lead, numbers, salt, judged), n)
    scores = quiet(Condorcet(n_runs=3, seed=seed), preferences).scores
    np.testing.assert_allclose(scores, expected / 3, atol=1e-12)


def test_neighbours_in_the_order_agree_with_the_majority():
    # where every pair has met, each item beats the one right behind it
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(40, 1)
    outcome = rng.choice([-1, 1], len(first))
    scores = Condorcet().fit(preferences_of(40, first, second, outcome)).scores
    lead = np.zeros((40, 40))
    lead[first, second], lead[second, first] = outcome, -outcome
    order = np.argsort(-scores)
    assert len(set(scores)) == 40
    assert (lead[order[:-1], order[1:]] == 1).all()


def test_more_sorts_recover_more():
    preferences, truth = simulated(100, 4_000)
    taus = [kendall_tau(truth, Condorcet(n_runs=n, seed=1).fit(preferences).scores) for n in (1, 10, 300)]
    assert taus[0] < 0.5
    assert taus[0] < taus[1] < taus[2]
    assert taus[2] > 0.75


def test_seeds_differ_only_where_something_is_drawn():
    sparse, _ = simulated(50, 100)
    assert not np.array_equal(quiet(Condorcet(seed=0), sparse).scores, quiet(Condorcet(seed=1), sparse).scores)


def test_ties_make_no_majority():
    rows = [("ann", "q", "x", "y", "tie"), ("ann", "q", "y", "z", "tie"), ("ann", "q", "z", "x", "tie")]
    assert Condorcet().fit(Preferences.from_rows(rows)).scores.tolist() == [0, 0, 0]
    # a win each is even, and of sums of weights too
    weight = np.array([0.1, 0.2, 0.3])
    even = preferences_of(2, [0, 0, 1], [1, 1, 0], weight=weight)
    assert Condorcet().fit(even).scores.tolist() == [0, 0]


def test_queries_do_not_touch_each_other():
    rng = np.random.default_rng(5)
    left, step = rng.integers(0, 12, 80), rng.integers(1, 12, 80)
    one = preferences_of(12, left, (left + step) % 12)
    # a long chain in another query takes more rounds to tell apart
    chain = np.arange(29)
    both = preferences_of(
        42, np.append(left, 12 + chain), np.append((left + step) % 12, 13 + chain), query=[0] * 12 + [1] * 30
    )
    np.testing.assert_array_equal(quiet(Condorcet(), one).scores, quiet(Condorcet(), both).scores[:12])


def test_unjudged_items_are_in_the_middle():
    rows = {"left": ["x"], "right": ["y"], "winner": ["x"], "query": ["q"]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    assert Condorcet().fit(Preferences.from_frame(rows, items=items)).scores.tolist() == [1, -1, 0, 0]


def test_groups_that_never_met_are_named():
    rows = [("ann", "q", "a", "b", "a"), ("ann", "q", "c", "d", "c")]
    with pytest.warns(DataWarning, match="2 groups of items were never compared with each other") as caught:
        scores = Condorcet().fit(Preferences.from_rows(rows)).scores
    assert caught[0].filename == __file__
    # the two winners cannot be told apart, nor the two losers
    np.testing.assert_allclose(scores, [2 / 3, -2 / 3, 2 / 3, -2 / 3])
