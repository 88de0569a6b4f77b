"""The singular vector of the preference matrix: examples by hand, the dense twin, sign, scale and groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.known_preferences import preferences_of, quiet, simulated
from tests.oracles import pair_orders, pairs
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.metrics import kendall_tau
from crowdrank.models.pairs.singular_vector import SingularVector


def test_three_items_by_hand():
    # the vector is (1, 0, -1) by symmetry; its gaps 1, 2, 1 fit three entries of 1 best when stretched by 4 / 6
    rows = [("ann", "q", one, other, "left") for one, other in ("xy", "xz", "yz")]
    scores = SingularVector().fit(Preferences.from_rows(rows)).scores
    np.testing.assert_allclose(scores, [2 / 3, 0, -2 / 3], atol=1e-9)


@pytest.mark.parametrize("balanced", [True, False])
def test_a_matrix_of_differences_gives_them_back(balanced):
    # of 20 contests each the margins are 20 times the difference of the scores, so that the matrix has rank two
    truth = np.array([0.4, 0.1, 0.0, -0.2, -0.3])
    first, second = np.triu_indices(5, 1)
    wins = np.rint(10 * (1 + truth[first] - truth[second])).astype(int)
    left, right = np.repeat(first, 20), np.repeat(second, 20)
    outcome = np.concatenate([[1] * w + [-1] * (20 - w) for w in wins])
    scores = SingularVector(balanced=balanced).fit(preferences_of(5, left, right, outcome)).scores
    np.testing.assert_allclose(scores, truth, atol=1e-9)


@given(st.integers(0, 2**32), st.booleans())
def test_equals_the_dense_twin(seed, balanced):
    rng = np.random.default_rng(seed)
    n, n_rows = int(rng.integers(3, 12)), int(rng.integers(20, 80))
    left = rng.integers(0, n, n_rows)
    right = (left + rng.integers(1, n, n_rows)) % n
    preferences = preferences_of(n, left, right, rng.integers(-1, 2, n_rows), weight=rng.random(n_rows) + 0.1)
    counts = pairs.count_pairs(left, right, preferences.outcome, preferences.weight)
    lead, met = pair_orders.lead_matrix(counts, n), np.zeros((n, n))
    for i, j in counts:
        met[i, j] = met[j, i] = 1
    groups = pairs.groups(counts, n)
    values = np.linalg.svd(lead)[1]
    expected = pair_orders.singular_scores(lead, met, groups, balanced=balanced)
    found = quiet(SingularVector(balanced=balanced, max_iter=5_000), preferences).scores
    if n > 3 and values[2] > 0.97 * values[0]:
        # two planes of nearly the same size: whichever
        return
    np.testing.assert_allclose(found, expected, atol=1e-5)


@given(preference_rows(), st.booleans())
def test_scores_are_centred_and_agree_with_the_preferences_on_the_whole(rows, balanced):
    preferences = judgments("preference", rows)
    scores = quiet(SingularVector(balanced=balanced), preferences).scores
    counts = pairs.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    lead = pair_orders.lead_matrix(counts, preferences.n_items)
    assert (np.subtract.outer(scores, scores) * lead).sum() >= -1e-9
    np.testing.assert_allclose(np.bincount(pairs.groups(counts, preferences.n_items), scores), 0, atol=1e-9)


def test_recovers_the_order():
    preferences, truth = simulated(200, 20_000)
    assert kendall_tau(truth, SingularVector().fit(preferences).scores) > 0.85


def test_uneven_numbers_of_opponents_need_balance():
    # a fifth of the items is compared ten times as often
    rng = np.random.default_rng(4)
    chance = np.where(np.arange(300) < 60, 10.0, 1.0)
    left, right = rng.choice(300, (2, 9_000), p=chance / chance.sum())
    left, right = left[left != right], right[left != right]
    truth = rng.normal(0, 1, 300)
    outcome = np.where(rng.random(len(left)) < 1 / (1 + np.exp(truth[right] - truth[left])), 1, -1)
    preferences = preferences_of(300, left, right, outcome)
    balanced, plain = (quiet(SingularVector(balanced=b), preferences).scores for b in (True, False))
    assert kendall_tau(truth, balanced) > 0.6
    assert kendall_tau(truth, balanced) > kendall_tau(truth, plain)


def test_many_items_never_make_a_square_table():
    preferences, truth = simulated(20_000, 800_000)
    consensus = SingularVector().fit(preferences)
    assert consensus.trace.converged
    assert kendall_tau(truth, consensus.scores) > 0.7


def test_cycles_and_ties_have_no_direction():
    for outcome in ("left", "tie"):
        rows = [("ann", "q", one, other, outcome) for one, other in ("xy", "yz", "zx")]
        np.testing.assert_allclose(SingularVector().fit(Preferences.from_rows(rows)).scores, 0, atol=1e-12)


def test_groups_have_planes_of_their_own():
    with pytest.warns(DataWarning, match="2 groups of items were never compared with each other"):
        scores = SingularVector().fit(preferences_of(8, [0, 0, 1, 3, 3, 4], [1, 2, 2, 4, 5, 5])).scores
    np.testing.assert_allclose(scores, [2 / 3, 0, -2 / 3, 2 / 3, 0, -2 / 3, 0, 0], atol=1e-9)


def test_too_few_steps_warn():
    preferences, _ = simulated(50, 500)
    with pytest.warns(ConvergenceWarning, match="singular_vector did not converge in 2 steps"):
        assert not SingularVector(max_iter=2).fit(preferences).trace.converged
