"""Crowd-BT: worked examples, the slow twin, recovery of scores and annotators, and what it does with difficult data."""

import warnings
from dataclasses import replace

import hypothesis
import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from tests.models.pairs.test_bradley_terry import quiet, simulated
from tests.oracles import annotated as slow
from tests.strategies import judgments, preference_rows

from crowdrank import aggregate
from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Preferences
from crowdrank.errors import DataWarning, ParameterError, UnknownNameError
from crowdrank.models.pairs import crowd_bt as annotated
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.models.pairs.crowd_bt import CrowdBT

FIXED = (8e7, 2e7)
"""A prior that leaves eta at 0.8."""


def crowd(eta, n_items=20, n_rows=4000, seed=0, scale=1.5, tie=0.0, sizes=None):
    """Preferences by annotators of known eta, and the centred scores they are drawn from."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes or [n_items])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(0, scale, offsets[-1])
    query = rng.integers(0, len(sizes), n_rows)
    left = rng.integers(0, sizes[query])
    right = ((left + rng.integers(1, sizes[query])) % sizes[query] + offsets[query]).astype(np.int32)
    left, by = (left + offsets[query]).astype(np.int32), rng.integers(0, len(eta), n_rows).astype(np.int32)
    gap = scores[left] - scores[right]
    says = np.where(rng.random(n_rows) < np.asarray(eta)[by], 1, -1)
    won = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-gap)), 1, -1) * says
    tied = rng.random(n_rows) < tie / (2 * np.cosh(gap / 2) + tie)
    queries = Index(pl.Series("id", [f"q{k:03d}" for k in range(len(sizes))]))
    ids = pl.Series("item", [f"i{k:06d}" for k in range(offsets[-1])])
    items = Items(queries, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), ids)
    names = Index(pl.Series("id", [f"a{k:04d}" for k in range(len(eta))]))
    centred = scores - (np.add.reduceat(scores, offsets[:-1]) / sizes)[items.query]
    return Preferences(
        items=items, annotators=names, left=left, right=right, annotator=by,
        outcome=np.where(tied, 0, won).astype(np.int8),
    ), centred  # fmt: skip


def between(wins, losses, ties=0):
    """Preferences between x and y, each by an annotator of its own."""
    winners = ["left"] * wins + ["right"] * losses + ["tie"] * ties
    return Preferences.from_rows([(f"a{n}", "q", "x", "y", winner) for n, winner in enumerate(winners)])


def given(table):
    """Preferences from rows or a frame in which annotators repeat themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Preferences.from_rows(table) if isinstance(table, list) else Preferences.from_frame(table)


def eta_of(consensus):
    """What the method learned of the annotators."""
    return consensus.quality.parameters["eta"]


def test_two_items_by_hand():
    # 3 of 4 for x by annotators with eta = .8: .8 p + .2 (1 - p) = .75 gives p = 11/12, so that the odds are 11
    consensus = CrowdBT(prior=FIXED, ridge=1e-9, tol=1e-9).fit(between(3, 1))
    np.testing.assert_allclose(consensus.scores, [np.log(11) / 2, -np.log(11) / 2], atol=1e-5)
    # information on the difference: 4 / (.75 * .25) * (.6 * 11/144)^2
    information = 4 / (0.75 * 0.25) * (0.6 * 11 / 144) ** 2
    np.testing.assert_allclose(consensus.std_error, np.sqrt(1 / information) / 2, rtol=1e-4)


def test_ties_of_davidson_by_hand():
    # 6 to 2 decided as above, 2 of 10 tied: nu / (sqrt(11) + 1 / sqrt(11) + nu) = .2
    consensus = CrowdBT(ties="davidson", prior=FIXED, ridge=1e-9, tol=1e-9).fit(between(6, 2, 2))
    np.testing.assert_allclose(consensus.scores[0], np.log(11) / 2, atol=1e-5)
    assert consensus.estimates["tie"] == pytest.approx(0.25 * (np.sqrt(11) + 1 / np.sqrt(11)), rel=1e-5)


def test_eta_by_hand():
    # items so far apart that every answer is right or wrong for sure: eta has the beta posterior's mean
    rows = [("ann", "q", "x", "y", "x")] * 3 + [("bob", "q", "x", "y", "y")] * 2
    rows += [("judge", "q", "x", "y", "x")] * 100_000
    consensus = quiet(CrowdBT(ridge=1e-6, tol=1e-8), given(rows))
    gap = np.tanh((consensus.scores[0] - consensus.scores[1]) / 2)
    assert gap > 0.99
    np.testing.assert_allclose(eta_of(consensus)[:2], [(8 + 3) / (10 + 3), 8 / (10 + 2)], atol=0.003)


@hypothesis.given(
    preference_rows(min_size=3), st.sampled_from(["split", "ignore", "davidson"]), st.sampled_from([0.25, 1.0]),
    st.sampled_from([None, (3.0, 1.0)]),
)  # fmt: skip
def test_equals_the_slow_twin(rows, ties, ridge, prior):
    preferences = judgments("preference", rows)
    method = CrowdBT(ties=ties, ridge=ridge, prior=prior, tol=1e-9)
    consensus = quiet(method, preferences)
    eta, n = eta_of(consensus), preferences.n_items
    alpha, beta = (np.full(len(eta), value) for value in prior or (8.0, 2.0))
    objective = slow.crowd_bt_objective(preferences, ties, (alpha, beta), ridge)
    point = np.concatenate([consensus.scores, np.log(eta / (1 - eta))])
    if ties == "davidson":
        point = np.append(point, np.log(consensus.estimates["tie"]))
    np.testing.assert_allclose(slow.gradient(objective, point), 0, atol=1e-6)
    assert consensus.trace.log_likelihood[-1] == pytest.approx(objective(point), abs=1e-9)
    for query, block in enumerate(consensus.covariance):
        part = range(*preferences.items.offsets[query : query + 2])
        expected = slow.covariance(objective, point, list(part), set(range(n)) - set(part))
        if expected is not None:
            np.testing.assert_allclose(block, expected, atol=1e-4 / ridge)
        np.testing.assert_allclose(consensus.std_error[list(part)] ** 2, np.diag(block), atol=1e-12)


@pytest.mark.parametrize("ties", ["split", "ignore", "davidson"])
def test_recovers_scores_within_their_standard_errors_and_annotators(ties):
    eta = np.array([0.95] * 6 + [0.8] * 6 + [0.5] * 4 + [0.1] * 3)
    preferences, truth = crowd(eta, n_items=40, n_rows=30_000, tie=0.0 if ties == "split" else 0.6)
    consensus = CrowdBT(ties=ties, prior=(2.0, 1.0), ridge=0.5).fit(preferences)
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.99
    np.testing.assert_allclose(eta_of(consensus), eta, atol=0.08)
    np.testing.assert_array_equal(eta_of(consensus)[-3:] < 0.25, True)
    if ties == "davidson":
        assert consensus.estimates["tie"] == pytest.approx(0.6, rel=0.15)


def test_reversed_annotators_help_and_guessing_ones_do_not_hurt():
    good, truth = crowd([0.9] * 10, n_items=60, n_rows=3000)
    half, _ = crowd([0.9] * 5 + [0.1] * 5, n_items=60, n_rows=3000)
    named = half.annotators.ids.head(2).to_list()
    with_good = CrowdBT().fit(good).scores
    with_reversed = CrowdBT().fit(half, trusted=named).scores
    plain = BradleyTerry().fit(half).scores
    for scores, least in ((with_good, 0.9), (with_reversed, 0.85)):
        assert np.corrcoef(scores, truth)[0, 1] > least
    assert abs(np.corrcoef(plain, truth)[0, 1]) < 0.6
    spam, truth = crowd([0.9] * 10 + [0.5] * 10, n_items=60, n_rows=6000)
    gain = (
        np.corrcoef(CrowdBT().fit(spam).scores, truth)[0, 1] - np.corrcoef(BradleyTerry().fit(spam).scores, truth)[0, 1]
    )
    assert gain > 0


def test_standard_errors_cover_the_truth_when_annotators_answer_little():
    eta = np.random.default_rng(3).uniform(0.55, 1.0, 60)
    squares = []
    for seed in range(6):
        preferences, truth = crowd(eta, n_items=30, n_rows=1500, seed=seed, scale=2.0)
        consensus = quiet(CrowdBT(), preferences)
        squares.append(np.mean(((consensus.scores - truth) / consensus.std_error) ** 2))
    assert 0.6 < np.sqrt(np.mean(squares)) < 1.4


def test_the_objective_never_falls_and_is_that_of_the_trace():
    preferences, _ = crowd([0.9, 0.8, 0.2], n_rows=600)
    trace = CrowdBT().fit(preferences).trace
    values = np.array(trace.log_likelihood)
    assert trace.converged
    assert len(values) == trace.n_iter + 1
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()


def test_scores_alone_are_those_of_the_fit():
    preferences, _ = crowd([0.9, 0.7, 0.4], n_rows=800)
    np.testing.assert_array_equal(CrowdBT().scores(preferences), CrowdBT().fit(preferences).scores)


@pytest.mark.parametrize("ties", ["split", "davidson"])
def test_large_data_begin_on_a_part_and_end_at_the_same_point(ties, monkeypatch):
    preferences, _ = crowd([0.9, 0.8, 0.3], n_items=15, n_rows=5000, tie=0.3)
    plain = CrowdBT(ties=ties, tol=1e-9).fit(preferences)
    monkeypatch.setattr(annotated, "_MIN_PREFERENCES_TO_THIN", 100)
    monkeypatch.setattr(annotated, "_table_fits", lambda n_items, n_own, n_preferences: False)
    other = CrowdBT(ties=ties, tol=1e-9).fit(preferences)
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-8)
    np.testing.assert_allclose(other.std_error, plain.std_error, rtol=1e-8)
    np.testing.assert_allclose(eta_of(other), eta_of(plain), atol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_large_queries_have_probed_standard_errors(dense, monkeypatch):
    preferences, _ = crowd([0.9, 0.8, 0.3] * 10, n_items=150, n_rows=6000)
    exact = CrowdBT().fit(preferences)
    monkeypatch.setattr("crowdrank.standard_errors.COVARIANCE_ITEMS", 100)
    monkeypatch.setattr(annotated, "_table_fits", lambda n_items, n_own, n_preferences: dense)
    probed = CrowdBT().fit(preferences)
    assert probed.covariance == (None,)
    ratio = probed.std_error / exact.std_error
    assert np.sqrt(np.mean((ratio - 1) ** 2)) < 0.05
    assert abs(np.mean(ratio) - 1) < 0.02


def test_annotators_are_pooled_over_queries_unless_told_otherwise():
    # ann says the reverse where there is company to tell, and is alone in the other query
    rows = [(who, "q1", a, b, a) for who in ("bob", "cy", "dee") for a, b in ("xy", "yz", "xz")] * 6
    rows += [("ann", "q1", a, b, b) for a, b in ("xy", "yz", "xz")] * 6
    rows += [("ann", "q2", "u", "v", "u")] * 6
    preferences = given(rows)
    pooled, apart = quiet(CrowdBT(), preferences), quiet(CrowdBT(per_query=True), preferences)
    assert pooled.order("q1") == apart.order("q1") == ["x", "y", "z"]
    assert pooled.order("q2") == ["v", "u"]
    assert apart.order("q2") == ["u", "v"]
    assert eta_of(pooled)[0] < 0.3 < eta_of(apart)[0]
    alone = quiet(CrowdBT(), preferences.select(preferences.items.query[preferences.left] == 0))
    np.testing.assert_allclose(
        apart.scores[preferences.items.query == 0], alone.scores[alone.items.query == 0], atol=1e-5
    )


def test_a_group_is_turned_round_by_annotators_known_from_elsewhere():
    # three reversed annotators and one good one in q2, all of them known from q1, where good ones are many
    rows = [(who, "q1", a, b, a) for who in "abcdefg" for a, b in ("xy", "yz", "xz", "wx")] * 10
    rows += [(who, "q1", a, b, b) for who in "rst" for a, b in ("xy", "yz", "xz", "wx")] * 10
    rows += [(who, "q2", "u", "v", "v") for who in "rst"] * 40 + [("a", "q2", "u", "v", "u")] * 10
    consensus = quiet(CrowdBT(), given(rows))
    assert consensus.order("q2") == ["u", "v"]
    assert (eta_of(consensus)[-3:] < 0.2).all()


def test_a_reversed_majority_is_found_out_by_whom_to_trust():
    preferences, truth = crowd([0.95] * 3 + [0.05] * 7, n_items=30, n_rows=2000)
    fooled = CrowdBT().fit(preferences)
    assert np.corrcoef(fooled.scores, truth)[0, 1] < -0.9
    told = CrowdBT().fit(preferences, trusted=["a0000"])
    assert np.corrcoef(told.scores, truth)[0, 1] > 0.9
    np.testing.assert_array_equal(eta_of(told) > 0.5, [True] * 3 + [False] * 7)
    # held-out refits keep to that side, also without the one who is trusted
    np.testing.assert_array_equal(told.quality.quality > 0.5, [True] * 3 + [False] * 7)
    assert eta_of(told)[0] > 0.9
    by_name = aggregate(preferences, "crowd-bt", trusted="a0000")
    np.testing.assert_array_equal(by_name.scores, told.scores)


def test_one_trusted_annotator_outweighs_any_number_of_others():
    preferences, truth = crowd([0.95] * 20 + [0.05] * 40, n_items=30, n_rows=9000)
    assert np.corrcoef(CrowdBT().fit(preferences, trusted=["a0003"]).scores, truth)[0, 1] > 0.9


def test_a_crowd_at_odds_with_itself_is_warned_of():
    preferences, _ = crowd([0.95] * 5 + [0.05] * 5, n_items=30, n_rows=2000)
    with pytest.warns(DataWarning, match="hardly better than chance.*trusted="):
        CrowdBT().fit(preferences)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrowdBT().fit(preferences, trusted=["a0000"])


def test_trusted_annotators_must_be_known():
    preferences, _ = crowd([0.9, 0.9], n_rows=100)
    with pytest.raises(UnknownNameError, match="'a0001'"):
        CrowdBT().fit(preferences, trusted=["a001"])


def test_a_former_consensus_is_a_start():
    preferences, _ = crowd([0.95, 0.9, 0.1, 0.6], n_items=30, n_rows=2000)
    former = CrowdBT(tol=1e-9).fit(preferences)
    again = CrowdBT(tol=1e-9).fit(preferences, start=former)
    assert again.trace.n_iter <= 2
    np.testing.assert_allclose(again.scores, former.scores, atol=1e-8)
    more, _ = crowd([0.95, 0.9, 0.1, 0.6, 0.8], n_items=35, n_rows=3000)
    grown = CrowdBT(tol=1e-9).fit(more, start=former)
    np.testing.assert_allclose(grown.scores, CrowdBT(tol=1e-9).fit(more).scores, atol=1e-6)
    with pytest.raises(ParameterError, match="has no eta"):
        CrowdBT().fit(preferences, start=_read_from(BradleyTerry().fit(preferences)))


def _read_from(consensus):
    """The consensus with its quality computed, as after a file."""
    assert consensus.quality is not None
    return consensus


def test_an_annotator_with_one_preference_or_none_stays_with_the_prior():
    rows = [(who, "q", a, b, a) for who in ("ann", "bob") for a, b in ("xy", "yz", "xz")] * 5
    preferences = given([*rows, ("cy", "q", "z", "x", "z"), ("dee", "q", "x", "y", "tie")])
    consensus = quiet(CrowdBT(ties="ignore"), preferences)
    ann, bob, cy, dee = eta_of(consensus)
    assert 0.7 < cy < 0.8 < ann == pytest.approx(bob)
    assert dee == pytest.approx(0.8)


@pytest.mark.parametrize("ties", ["split", "ignore", "davidson"])
def test_nothing_but_ties(ties):
    rows = [(who, "q", a, b, "tie") for who in ("ann", "bob") for a, b in ("xy", "yz")]
    consensus = quiet(CrowdBT(ties=ties), given(rows))
    np.testing.assert_allclose(consensus.scores, 0, atol=1e-12)
    assert np.isfinite(consensus.std_error).all()
    np.testing.assert_allclose(eta_of(consensus), 0.8, atol=1e-6)


def test_no_preferences_at_all():
    preferences, _ = crowd([0.9, 0.9], n_rows=10)
    consensus = CrowdBT().fit(preferences.select(np.zeros(10, bool)))
    assert not consensus.scores.any()
    assert consensus.trace.converged
    np.testing.assert_allclose(consensus.std_error, np.sqrt((1 - 1 / 20) / 0.25))


def test_two_who_contradict_each_other_leave_items_equal_with_finite_errors():
    # turning either of them round is equally good, and nothing says whom: the scores stay between the two maxima
    rows = [("ann", "q", "x", "y", "x")] * 40 + [("bob", "q", "x", "y", "y")] * 40
    consensus = quiet(CrowdBT(), given(rows))
    np.testing.assert_allclose(consensus.scores, 0, atol=1e-9)
    np.testing.assert_allclose(eta_of(consensus), 0.8, atol=1e-6)
    # as if annotators were known: 80 answers of (0.6 / 2)^2 each, and the ridge
    np.testing.assert_allclose(consensus.std_error, np.sqrt(1 / (2 * 80 * 0.09 + 0.25) / 2), rtol=1e-6)


def test_one_annotator_alone():
    preferences, truth = crowd([0.9], n_items=10, n_rows=2000)
    consensus = CrowdBT().fit(preferences)
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.95
    assert 0.6 < eta_of(consensus)[0] < 1


def test_preferences_without_annotators_are_all_by_one():
    preferences, _ = crowd([0.9], n_items=10, n_rows=500)
    nameless = given(preferences.frame().drop("annotator"))
    consensus = CrowdBT().fit(nameless)
    assert consensus.quality is None
    np.testing.assert_allclose(consensus.scores, CrowdBT().fit(preferences).scores, atol=1e-9)
    assert CrowdBT(per_query=True).fit(nameless).quality is None


def test_groups_never_compared_are_named_and_centred_apart():
    rows = [(who, "q", a, b, a) for who in ("ann", "bob") for a, b in ("xy", "yx", "uv", "vu", "xy", "uv")]
    with pytest.warns(DataWarning, match="2 groups of items were never compared"):
        consensus = CrowdBT().fit(given(rows))
    np.testing.assert_allclose(consensus.scores.reshape(2, 2).sum(axis=1), 0, atol=1e-9)


def test_who_won_every_contest_is_told_with_reversed_annotators_turned_round():
    rows = [(who, "q", a, b, a) for who in "abcde" for a, b in ("xy", "yz", "zy", "xz")] * 4
    rows += [("r", "q", a, b, b) for a, b in ("xy", "yz", "zy", "xz")] * 4
    with pytest.warns(DataWarning, match=r"'x' \(query 'q'\) won every preference"):
        quiet_but_winners(given(rows))


def quiet_but_winners(preferences):
    """Fit with the warnings about winners alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the 2 items")
        return CrowdBT().fit(preferences)


def test_reversing_one_annotator_reverses_their_eta_alone():
    preferences, _ = crowd([0.9, 0.9, 0.9, 0.8], n_items=12, n_rows=1500)
    last = preferences.annotator == 3
    turned = replace(preferences, outcome=np.where(last, -1, 1).astype(np.int8) * preferences.outcome)
    plain, other = CrowdBT(prior=(1.001, 1.0)).fit(preferences), CrowdBT(prior=(1.001, 1.0)).fit(turned)
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-3)
    np.testing.assert_allclose(eta_of(other), np.where(np.arange(4) == 3, 1 - eta_of(plain), eta_of(plain)), atol=1e-3)


def test_weights_are_repeats():
    preferences, _ = crowd([0.9, 0.7, 0.2], n_items=8, n_rows=200)
    times = np.random.default_rng(0).integers(1, 4, 200)
    frame = preferences.frame()
    repeated = given(frame[np.repeat(np.arange(200), times)])
    weighted = given(frame.with_columns(weight=pl.Series(times)))
    one, other = CrowdBT().fit(repeated), CrowdBT().fit(weighted)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)
    np.testing.assert_allclose(one.std_error, other.std_error, atol=1e-9)
    np.testing.assert_allclose(eta_of(one), eta_of(other), atol=1e-9)


def test_agreed_answers_of_everybody_reduce_to_bradley_terry():
    preferences, _ = simulated(10, 3000)
    named = given(preferences.frame().with_columns(annotator=pl.lit("ann")))
    sure = CrowdBT(prior=(1e9, 1e-3), ridge=0.1).fit(named)
    np.testing.assert_allclose(sure.scores, BradleyTerry(ridge=0.1).fit(named).scores, atol=1e-4)
