"""EM and Elo: examples by hand, the slow twins, reversed and trusted annotators, ties."""

import numpy as np
import pytest
from hypothesis import given
from tests.known_preferences import preferences_of, quiet, simulated
from tests.oracles import pair_orders
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.em_elo import EMElo


def test_one_answer_by_hand():
    # the prior says 8 of 10 right, so the pair is worth 2 * 0.8 - 1, and a game between equals moves half of k
    consensus = EMElo(n_passes=1).fit(Preferences.from_rows([("ann", "q", "x", "y", "x")]))
    np.testing.assert_allclose(consensus.scores, [1000 + 32 * 0.6 / 2, 1000 - 32 * 0.6 / 2], atol=1e-4)
    np.testing.assert_allclose(consensus.quality.parameters["eta"], 0.8, atol=1e-9)


def test_two_passes_by_hand():
    consensus = EMElo(n_passes=2, k=100).fit(Preferences.from_rows([("ann", "q", "x", "y", "x")]))
    first = 60 / 2
    second = first + 60 * (1 - 1 / (1 + 10 ** (-2 * first / 400)))
    # the second half is the second pass
    np.testing.assert_allclose(consensus.scores, [1000 + second, 1000 - second], atol=1e-3)


@given(preference_rows())
def test_qualities_equal_the_slow_twin(rows):
    preferences = judgments("preference", rows)
    low = np.minimum(preferences.left, preferences.right)
    columns = (low, preferences.left + preferences.right - low, preferences.annotator)
    lower = (preferences.outcome > 0) == (preferences.left < preferences.right)
    answers = [
        ((i, j), who, won, 1.0)
        for i, j, who, won, y in zip(*(c.tolist() for c in columns), lower, preferences.outcome, strict=True)
        if y
    ]
    n = preferences.n_annotators
    if answers:
        expected, _ = pair_orders.one_coin(answers, [(8.0, 2.0)] * n, n)
        found = quiet(EMElo(tol=1e-10), preferences).quality.parameters["eta"]
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_reversed_annotators_are_used():
    qualities = [0.95] * 16 + [0.05] * 4
    preferences, truth = simulated(20, 6_000, qualities=qualities, ties=0.05)
    consensus = EMElo().fit(preferences)
    eta = consensus.quality.parameters["eta"]
    assert (eta[:16] > 0.6).all()
    assert (eta[16:] < 0.4).all()
    assert kendall_tau(truth, consensus.scores) > 0.85
    assert (consensus.quality.quality[16:] < 0.4).all()
    assert consensus.trace.converged
    assert list(consensus.trace.log_likelihood) == sorted(consensus.trace.log_likelihood)


def test_a_reversed_majority_is_turned_round_by_trusted_annotators():
    preferences, truth = simulated(12, 4_000, qualities=[0.95, 0.95, 0.05, 0.05, 0.05], ties=0.0)
    alone, led = EMElo().fit(preferences), EMElo().fit(preferences, trusted=["a000", "a001"])
    assert kendall_tau(truth, alone.scores) < -0.7
    assert kendall_tau(truth, led.scores) > 0.7
    assert (led.quality.parameters["eta"] > 0.5).tolist() == [True, True, False, False, False]


def test_trusted_annotators_have_to_be_known():
    preferences, _ = simulated(5, 50, qualities=[0.9, 0.9])
    with pytest.raises(UnknownNameError, match="there is no annotator 'a0007'"):
        EMElo().fit(preferences, trusted="a0007")
    nameless, _ = simulated(5, 50)
    with pytest.raises(ParameterError, match="do not say who gave them"):
        EMElo().fit(nameless, trusted="ann")


def test_a_crowd_near_chance_is_told():
    preferences, _ = simulated(6, 3_000, qualities=[0.5] * 10, ties=0.0)
    with pytest.warns(DataWarning, match=r"em_elo finds the annotators hardly better than chance .* trusted="):
        EMElo().fit(preferences)


def test_recovers_the_order_without_annotators():
    preferences, truth = simulated(100, 20_000)
    consensus = EMElo().fit(preferences)
    assert consensus.quality is None
    assert kendall_tau(truth, consensus.scores) > 0.85
    assert consensus.scores.mean() == pytest.approx(1000)


def test_cycles_leave_items_equal():
    rows = [("ann", "q", one, other, "left") for one, other in ("xy", "yz", "zx")]
    np.testing.assert_allclose(EMElo().fit(Preferences.from_rows(rows)).scores, 1000, atol=1e-9)


def test_ties_tell_nothing():
    rows = [("ann", "q", "x", "y", "tie"), ("bob", "q", "x", "y", "tie")]
    assert EMElo().fit(Preferences.from_rows(rows)).scores.tolist() == [1000, 1000]
    decided = [("ann", "q", "x", "z", "x"), ("bob", "q", "z", "x", "x")]
    with_ties, without = (EMElo().fit(Preferences.from_rows(part)) for part in (rows + decided, decided))
    # y is left with ties only
    np.testing.assert_allclose(with_ties.scores[[0, 2]], without.scores, atol=1e-9)
    assert with_ties.scores[1] == 1000


def test_the_votes_of_a_pair_decide_its_weight():
    # x beats y for certain, z beats w by one of three: the sure winner moves further
    rows = [(who, "q", "x", "y", "x") for who in ("ann", "bob", "cy")]
    rows += [("ann", "r", "z", "w", "z"), ("bob", "r", "z", "w", "w"), ("cy", "r", "z", "w", "z")]
    scores = EMElo().fit(Preferences.from_rows(rows)).scores
    assert scores[0] > scores[3] > 1000


def test_equal_votes_are_no_game():
    rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "y")]
    np.testing.assert_allclose(EMElo().fit(Preferences.from_rows(rows)).scores, 1000, atol=1e-9)


def test_weights_count_as_answers():
    weighted = preferences_of(2, [0, 0], [1, 1], outcome=[1, -1], annotator=[0, 1], weight=np.array([3.0, 1.0]))
    scores = EMElo().fit(weighted).scores
    assert scores[0] > scores[1]


def test_groups_that_never_met_are_named_and_unjudged_items_stay():
    rows = {"left": ["x", "u"], "right": ["y", "v"], "winner": ["x", "u"], "query": ["q", "q"]}
    items = {"query": ["q", "r"], "item": ["z", "w"]}
    with pytest.warns(DataWarning, match="2 groups of items were never compared") as caught:
        consensus = EMElo().fit(Preferences.from_frame(rows, items=items))
    assert caught[0].filename == __file__
    by_item = dict(zip(consensus.items.ids, consensus.scores.tolist(), strict=True))
    assert by_item["z"] == by_item["w"] == 1000
    assert by_item["x"] == by_item["u"] > 1000


def test_too_few_passes_warn():
    preferences, _ = simulated(10, 300, qualities=[0.9, 0.7, 0.6])
    with pytest.warns(ConvergenceWarning, match="em_elo did not converge in 1 steps"):
        assert not EMElo(max_iter=1).fit(preferences).trace.converged


def leaning_crowd(seed: int = 0) -> tuple[Preferences, list[str]]:
    """Preferences on 12 items in a known order, by good annotators, one who says left always, and one reversed."""
    rng, items = np.random.default_rng(seed), [f"i{number:02d}" for number in range(12)]
    rows = []
    for first in range(12):
        for second in range(first + 1, 12):
            for who, right in (("ann", 0.85), ("bob", 0.8), ("cy", 0.75), ("rev", 0.15), ("left", None)):
                left, other = (first, second) if rng.random() < 0.5 else (second, first)
                better, worse = ("left", "right") if left < other else ("right", "left")
                said = "left" if right is None else better if rng.random() < right else worse
                rows.append((who, "q", items[left], items[other], "tie" if rng.random() < 0.1 else said))
    return Preferences.from_rows(rows), items


def test_confusion_matrices_see_sides_and_reversal():
    preferences, items = leaning_crowd()
    consensus = EMElo(model="confusion").fit(preferences)
    eta = dict(zip(preferences.annotators.ids, consensus.quality.parameters["eta"], strict=True))
    assert eta["ann"] > 0.7
    assert eta["rev"] < 0.4
    assert abs(eta["left"] - 0.5) < 0.12

    assert kendall_tau([-items.index(one) for one in preferences.items.ids], consensus.scores) > 0.7


def test_confusion_does_not_depend_on_how_rows_are_written():
    preferences, _ = leaning_crowd(1)
    order = np.random.default_rng(2).permutation(len(preferences))
    first, second = (EMElo(model="confusion").fit(one) for one in (preferences, preferences.select(order)))
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-6)


def test_poor_annotators_are_filtered():
    preferences, _ = leaning_crowd()
    keep = preferences.select(~np.isin(preferences.annotators.ids.to_numpy()[preferences.annotator], ["rev", "left"]))
    method = EMElo(model="confusion", min_quality=0.6)
    eta = EMElo(model="confusion").fit(preferences).quality.parameters["eta"]
    assert (eta < 0.6).sum() == 2
    filtered, whole = method.fit(preferences), EMElo(model="confusion").fit(preferences)
    assert not np.allclose(filtered.scores, whole.scores)
    assert filtered.order("q")[0] == EMElo(model="confusion").fit(keep).order("q")[0]
    with pytest.raises(JudgmentError, match="no annotator has a quality of min_quality"):
        EMElo(min_quality=0.99).fit(preferences)


def test_one_coin_without_side_leanings_agrees_with_the_matrix():
    rng, rows = np.random.default_rng(3), []
    for who, right in (("ann", 0.9), ("bob", 0.8), ("cy", 0.7)):
        for better in range(15):
            for worse in range(better + 1, 15):
                pair = rng.permutation([better, worse])
                said = better if rng.random() < right else worse
                rows.append((who, "q", f"i{pair[0]}", f"i{pair[1]}", f"i{said}"))
    preferences = Preferences.from_rows(rows)
    coin, matrix = (EMElo(model=model).fit(preferences).quality for model in ("one_coin", "confusion"))
    np.testing.assert_allclose(coin.parameters["eta"], matrix.parameters["eta"], atol=0.12)
