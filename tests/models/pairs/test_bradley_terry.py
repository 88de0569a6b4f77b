"""Bradley-Terry: golden values of peers, the slow twin, recovery, and what it says about difficult data."""

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.oracles import pairs as slow
from tests.strategies import judgments, preference_rows

from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Preferences
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.models.pairs.bradley_terry import BradleyTerry

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "bradley_terry.json").read_text())


def quiet(method, preferences):
    """Fit without the warnings about tiny data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method.fit(preferences)


def simulated(n_items, n_rows, seed=0, tie=0.0, sizes=None):
    """Preferences of known scores, queries of equal size unless sizes are given, and those scores."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes or [n_items])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(0, 1, offsets[-1])
    query = rng.integers(0, len(sizes), n_rows)
    left = rng.integers(0, sizes[query])
    right = (left + rng.integers(1, sizes[query])) % sizes[query]
    left, right = (left + offsets[query]).astype(np.int32), (right + offsets[query]).astype(np.int32)
    root = np.exp(0.5 * (scores[left] - scores[right]))
    total = root + 1 / root + tie
    draw = rng.random(n_rows) * total
    outcome = np.where(draw < root, 1, np.where(draw < root + 1 / root, -1, 0)).astype(np.int8)
    queries = Index(pl.Series("id", [f"q{k}" for k in range(len(sizes))]))
    ids = pl.Series("item", [f"i{k:06d}" for k in range(offsets[-1])])
    items = Items(queries, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), ids)
    centred = scores - (np.add.reduceat(scores, offsets[:-1]) / sizes)[items.query]
    judged = Preferences(
        items=items, annotators=Index.empty(), left=left, right=right, annotator=np.empty(0, np.int32), outcome=outcome
    )
    return judged, centred


@pytest.mark.parametrize(
    ("case", "method"),
    [
        ("bradley_terry_split", BradleyTerry(ridge=1e-9)),
        ("bradley_terry_ignore", BradleyTerry(ties="ignore", ridge=0.1)),
        ("bradley_terry_davidson", BradleyTerry(ties="davidson", ridge=1e-9)),
    ],
)
def test_golden(case, method):
    table = pl.DataFrame(GOLDEN["input"]["rows"], schema=GOLDEN["input"]["columns"], orient="row")
    found = method.fit(Preferences.from_frame(table)).scores
    np.testing.assert_allclose(found, GOLDEN["expected"][case]["scores"], atol=1e-6)


def test_two_items_by_hand():
    # 3 wins to 1 and no prior to speak of: the difference of the scores is log 3
    rows = [(who, "q", "x", "y", w) for who, w in zip("abcd", ("left", "left", "left", "right"), strict=True)]
    consensus = BradleyTerry(ridge=1e-9).fit(Preferences.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, [np.log(3) / 2, -np.log(3) / 2], atol=1e-7)
    # variance of the difference is 1 / (n p (1 - p)) = 4 / 3, and each score is half of it
    np.testing.assert_allclose(consensus.std_error, np.sqrt(4 / 3) / 2, atol=1e-6)
    np.testing.assert_allclose(consensus.covariance[0], np.array([[1, -1], [-1, 1]]) / 3, atol=1e-6)


@given(preference_rows(min_size=3), st.sampled_from(["split", "ignore", "davidson"]), st.sampled_from([0.1, 1.0]))
def test_equals_the_slow_twin(rows, ties, ridge):
    preferences = judgments("preference", rows)
    consensus = quiet(BradleyTerry(ties=ties, ridge=ridge, tol=1e-9), preferences)
    counts = slow.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    if ties == "ignore":
        counts = {pair: [w, lost, 0.0] for pair, (w, lost, _) in counts.items()}
    objective = slow.penalised(counts, ties, ridge)
    n = preferences.n_items
    start = np.zeros(n + (ties == "davidson"))
    best = minimize(lambda x: -objective(x), start, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(consensus.scores, best.x[:n], atol=2e-5)
    assert objective(np.append(consensus.scores, best.x[n:])) >= objective(best.x) - 1e-8
    curvature = -slow.hessian(objective, best.x)
    for query, block in enumerate(consensus.covariance):
        part = slice(*preferences.items.offsets[query : query + 2])
        size = part.stop - part.start
        centre = np.eye(size) - 1 / size
        expected = centre @ np.linalg.inv(curvature)[part, part] @ centre
        np.testing.assert_allclose(block, expected, atol=2e-3 / ridge)
        np.testing.assert_allclose(consensus.std_error[part] ** 2, np.diag(block), atol=1e-12)


@given(preference_rows(), st.sampled_from(["split", "davidson"]), st.sampled_from([0.1, 1e-9]))
def test_scores_are_centred_in_each_query_and_each_group(rows, ties, ridge):
    preferences = judgments("preference", rows)
    scores = quiet(BradleyTerry(ties=ties, ridge=ridge), preferences).scores
    pairs = set(zip(preferences.left.tolist(), preferences.right.tolist(), strict=True))
    groups = np.array(slow.groups(pairs, preferences.n_items))
    # scores that are equal within the tolerance of the fit become ties, which moves their sum as much
    np.testing.assert_allclose(np.bincount(groups, scores), 0, atol=1e-7)


@pytest.mark.parametrize("ties", ["split", "davidson"])
def test_recovers_scores_within_their_standard_errors(ties):
    preferences, truth = simulated(40, 20_000, tie=0.8 if ties == "davidson" else 0.0)
    consensus = BradleyTerry(ties=ties).fit(preferences)
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.99


def test_the_default_ridge_hardly_costs_likelihood():
    preferences, _ = simulated(50, 20_000)
    with_ridge, without = BradleyTerry().fit(preferences), BradleyTerry(ridge=1e-9).fit(preferences)
    loss = without.trace.log_likelihood[-1] - with_ridge.trace.log_likelihood[-1]
    assert 0 <= loss / len(preferences) < 1e-6


def test_the_log_likelihood_rises_and_is_that_of_the_scores():
    preferences, _ = simulated(20, 500)
    consensus = BradleyTerry().fit(preferences)
    counts = slow.count_pairs(preferences.left, preferences.right, preferences.outcome, None)
    likelihoods = consensus.trace.log_likelihood
    assert likelihoods[-1] == pytest.approx(slow.log_likelihood(counts, consensus.scores))
    assert likelihoods[-1] >= likelihoods[0]
    assert consensus.trace.converged


def test_queries_are_fitted_apart():
    together, _ = simulated(0, 600, sizes=[5, 80, 5])
    consensus = quiet(BradleyTerry(), together)
    for query in range(3):
        alone = quiet(BradleyTerry(), together.select(together.items.query[together.left] == query))
        part = slice(*together.items.offsets[query : query + 2])
        np.testing.assert_allclose(consensus.scores[part], alone.scores[part], atol=1e-7)
        np.testing.assert_allclose(consensus.covariance[query], alone.covariance[query], atol=1e-7)


def test_undefeated_and_winless_items_are_finite_and_named():
    rows = [("ann", "q", "x", "y", "x"), ("ann", "q", "y", "z", "y"), ("bob", "q", "x", "z", "x")]
    preferences = Preferences.from_rows(rows)
    with pytest.warns(DataWarning) as caught:
        consensus = BradleyTerry().fit(preferences)
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith("'x' (query 'q') won every preference")
    assert messages[1].startswith("'z' (query 'q') lost every preference")
    assert len(messages) == 2
    assert consensus.order("q") == ["x", "y", "z"]
    assert np.abs(consensus.scores).max() < 5


def test_a_tie_is_a_point_for_both_unless_ignored():
    rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "tie")]
    BradleyTerry().fit(Preferences.from_rows(rows))
    BradleyTerry(ties="davidson").fit(Preferences.from_rows(rows))
    with (
        pytest.warns(DataWarning, match="won every preference"),
        pytest.warns(DataWarning, match="lost every preference"),
    ):
        ignored = BradleyTerry(ties="ignore").fit(Preferences.from_rows(rows))
    alone = quiet(BradleyTerry(), Preferences.from_rows(rows[:1]))
    np.testing.assert_allclose(ignored.scores, alone.scores)


def test_unconnected_groups_are_named_five_at_most():
    rows = [("ann", "", f"a{k}", f"b{k}", "tie") for k in range(8)]
    with pytest.warns(DataWarning, match=r"8 groups .* those of 'a0', 'a1', 'a2', 'a3', 'a4' and 3 more; ") as caught:
        consensus = BradleyTerry().fit(Preferences.from_frame(pl.DataFrame(
            [row[2:] for row in rows], schema=["left", "right", "winner"], orient="row")))  # fmt: skip
    assert len(caught) == 1
    np.testing.assert_allclose(consensus.scores, 0, atol=1e-12)


def test_groups_that_won_or_lost_everything_together_are_named():
    inside = [(who, "q", *pair, pair[who == "bob"]) for pair in ("ab", "yz") for who in ("ann", "bob")]
    across = [("ann", "q", "a", "y", "a"), ("ann", "q", "b", "z", "b")]
    with pytest.warns(DataWarning) as caught:
        BradleyTerry().fit(Preferences.from_rows(inside + across))
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith(
        "the 2 items 'a' (query 'q') and 'b' (query 'q') won every preference against the others"
    )
    assert len(messages) == 1, "that the others lost is the same"
    assert caught[0].filename == __file__
    BradleyTerry().fit(Preferences.from_rows([*inside, *across, ("bob", "q", "a", "z", "tie")]))


def test_all_ties():
    rows = [(who, "q", "x", "y", "tie") for who in ("ann", "bob")]
    for ties in ("split", "davidson", "ignore"):
        consensus = BradleyTerry(ties=ties).fit(Preferences.from_rows(rows))
        np.testing.assert_allclose(consensus.scores, 0, atol=1e-9)
        assert np.isfinite(consensus.std_error).all()


def test_unjudged_items_have_the_prior():
    rows = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "y"], "query": ["q", "q"]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    consensus = BradleyTerry().fit(Preferences.from_frame(rows, items=items))
    assert consensus.scores[2:].tolist() == [0, 0]
    # z is drawn from the prior, less its share of the mean of the query; w is alone and its own mean
    np.testing.assert_allclose(consensus.std_error[2:] ** 2, [10 * (1 - 1 / 3), 0], atol=1e-9)


def test_large_queries_have_standard_errors_but_no_covariance(monkeypatch):
    preferences, _ = simulated(0, 60_000, sizes=[800, 20])
    estimated = quiet(BradleyTerry(), preferences)
    assert estimated.covariance[0] is None
    assert estimated.covariance[1].shape == (20, 20)
    monkeypatch.setattr("crowdrank.standard_errors.COVARIANCE_ITEMS", 800)
    exact = quiet(BradleyTerry(), preferences)
    np.testing.assert_allclose(estimated.std_error[800:], exact.std_error[800:], rtol=1e-9)
    error = estimated.std_error[:800] / exact.std_error[:800] - 1
    assert np.sqrt(np.mean(error**2)) < 0.006


def test_many_items_never_make_a_square_table():
    preferences, truth = simulated(30_000, 300_000)
    consensus = quiet(BradleyTerry(), preferences)
    assert consensus.trace.converged
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.8
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.1


def test_too_few_steps_warn():
    preferences, _ = simulated(10, 200)
    with pytest.warns(ConvergenceWarning, match="bradley_terry did not converge in 1 steps"):
        consensus = BradleyTerry(max_iter=1).fit(preferences)
    assert not consensus.trace.converged


@pytest.mark.parametrize("ridge", [1e-9, 1e3])
def test_any_ridge_converges_on_separated_items(ridge):
    rows = [("ann", "q", f"i{a:02d}", f"i{b:02d}", "left") for a in range(12) for b in range(a + 1, 12)]
    consensus = quiet(BradleyTerry(ridge=ridge), Preferences.from_rows(rows))
    assert consensus.trace.converged
    assert consensus.order("q") == [f"i{a:02d}" for a in range(12)]
