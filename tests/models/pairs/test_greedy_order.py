"""The greedy order: examples by hand, the slow twins, ties and groups."""

import numpy as np
import pytest
from hypothesis import given
from tests.known_preferences import preferences_of, quiet, simulated
from tests.oracles import pair_orders, pairs
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Grades, Preferences
from crowdrank.errors import DataWarning, JudgmentError
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.greedy_order import GreedyOrder


def test_an_undefeated_item_may_come_late():
    # potentials: b 3 - 1, a 1, the others -1; without b, a has nothing left to win and the others nothing to lose
    rows = [("ann", "q", "a", "b", "a")] + [("ann", "q", "b", other, "b") for other in "cde"]
    np.testing.assert_allclose(GreedyOrder().fit(Preferences.from_rows(rows)).scores, [-0.25, 1, -0.25, -0.25, -0.25])


def test_equal_potentials_go_by_their_own_contests():
    # a and b both have 1: a won against b; then c has 0 + 1 and d -2 + 1
    won = [("a", "b"), ("b", "c"), ("b", "d"), ("c", "d")]
    consensus = GreedyOrder().fit(Preferences.from_rows([("ann", "q", one, other, "left") for one, other in won]))
    assert consensus.order("q") == ["a", "b", "c", "d"]
    np.testing.assert_allclose(consensus.scores, [1, 1 / 3, -1 / 3, -1])


def test_shares_count_and_not_numbers():
    # a won 3 of 4 against b, half a lead; c won its only contest against b, a whole one
    rows = [(who, "q", "a", "b", "a") for who in ("ann", "bob", "cy")]
    preferences = Preferences.from_rows([*rows, ("dan", "q", "a", "b", "b"), ("ann", "q", "c", "b", "c")])
    assert GreedyOrder().fit(preferences).order("q") == ["c", "a", "b"]


@given(preference_rows())
def test_equals_the_slow_twin(rows):
    preferences = judgments("preference", rows)
    counts = pairs.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    expected = np.zeros(preferences.n_items)
    for query in range(preferences.n_queries):
        part = range(*preferences.items.offsets[query : query + 2])
        judged = [i for i in part if any(i in pair for pair in counts)]
        expected += pair_orders.standings(pair_orders.greedy_places(counts, judged), preferences.n_items)
    np.testing.assert_allclose(quiet(GreedyOrder(), preferences).scores, expected, atol=1e-12)


def test_without_equal_potentials_it_is_the_order_of_the_paper():
    rng = np.random.default_rng(2)
    left = rng.integers(0, 60, 3_000)
    right = (left + rng.integers(1, 60, 3_000)) % 60
    preferences = preferences_of(60, left, right, rng.choice([-1, 1], 3_000), weight=rng.random(3_000))
    counts = pairs.count_pairs(left, right, preferences.outcome, preferences.weight)
    order, shared = pair_orders.greedy_one_by_one(pair_orders.lead_matrix(counts, 60))
    assert not shared
    np.testing.assert_array_equal(np.argsort(-GreedyOrder().fit(preferences).scores), order)


def test_recovers_the_order():
    preferences, truth = simulated(200, 20_000)
    assert kendall_tau(truth, GreedyOrder().fit(preferences).scores) > 0.8


def test_many_items_never_make_a_square_table():
    preferences, truth = simulated(30_000, 300_000)
    assert kendall_tau(truth, quiet(GreedyOrder(), preferences).scores) > 0.5


def test_cycles_and_ties_share_a_place():
    cycle = Preferences.from_rows([("ann", "q", one, other, "left") for one, other in ("xy", "yz", "zx")])
    assert GreedyOrder().fit(cycle).scores.tolist() == [0, 0, 0]
    tied = Preferences.from_rows([("ann", "q", one, other, "tie") for one, other in ("xy", "yz")])
    assert GreedyOrder().fit(tied).scores.tolist() == [0, 0, 0]


def test_a_third_thrice_is_one():
    # thirds do not add up to one in binary, but a has to equal d
    rows = [(who, "q", "a", other, "left") for other in "bce" for who in ("ann", "bob")]
    rows += [("cy", "q", "a", other, "right") for other in "bce"] + [("ann", "q", "d", "b", "left")]
    ranks = GreedyOrder().fit(Preferences.from_rows(rows)).ranks().tolist()
    assert ranks[0] == ranks[3] == 1


def test_unjudged_items_are_in_the_middle():
    rows = {"left": ["x"], "right": ["y"], "winner": ["x"], "query": ["q"]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    assert GreedyOrder().fit(Preferences.from_frame(rows, items=items)).scores.tolist() == [1, -1, 0, 0]


def test_groups_that_never_met_are_named():
    with pytest.warns(DataWarning, match="2 groups of items were never compared with each other"):
        GreedyOrder().fit(preferences_of(4, [0, 2], [1, 3]))


def test_wrong_kind():
    with pytest.raises(JudgmentError, match="as_preferences"):
        GreedyOrder().fit(Grades.from_rows([("ann", "q", "x", 1)]))
