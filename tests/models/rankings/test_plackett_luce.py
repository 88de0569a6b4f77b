"""Plackett-Luce: golden values of a peer, the slow twin, recovery, annotators, and what it says of difficult data."""

import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import kendalltau
from tests.known_rankings import simulated
from tests.oracles import listwise as slow
from tests.oracles.pairs import hessian
from tests.strategies import judgments, preference_rows, ranking_rows

from crowdrank import datasets, evaluate
from crowdrank.data.judgments import Preferences, Rankings
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError, UnknownNameError
from crowdrank.models.averages.borda import Borda
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.models.rankings import plackett_luce
from crowdrank.models.rankings.plackett_luce import PlackettLuce

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "plackett_luce.json").read_text())
TIES = ("split", "ignore")


def quiet(method, rankings, **more):
    """Fit without the warnings about tiny data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method.fit(rankings, **more)


def as_rankings(rows):
    """Preferences as rankings of two."""
    columns = {"ranking": [], "query": [], "item": [], "rank": []}
    for number, (_, query, left, right, winner) in enumerate(rows):
        ranks = {"left": (1, 2), "right": (2, 1), "tie": (1, 1)}[winner]
        for item, rank in zip((left, right), ranks, strict=True):
            for name, value in zip(columns, (number, query, item, rank), strict=True):
                columns[name].append(value)
    return Rankings.from_frame(columns)


def shape_error(consensus, truth):
    """Root mean square of the error in standard errors, whatever the scale of the scores."""
    slope = (consensus.scores @ truth) / (truth @ truth)
    return np.sqrt(np.mean(((consensus.scores - slope * truth) / consensus.std_error) ** 2))


@pytest.mark.parametrize(("case", "ridge"), [("likeliest", 1e-9), ("pulled", 0.5)])
def test_golden(case, ridge):
    table = pl.DataFrame(GOLDEN["input"]["rows"], schema=GOLDEN["input"]["columns"], orient="row")
    found = PlackettLuce(ridge=ridge).fit(Rankings.from_frame(table)).scores
    np.testing.assert_allclose(found, GOLDEN["expected"][case]["scores"], atol=1e-6)


def test_one_choice_by_hand():
    # x is chosen before y and z in 3 of 4 rankings, each of them once in the other; the rest is tied and not looked at
    rows = [
        (who, "q", item, 1 if item == first else 2)
        for who, first in zip("abcdefgh", "xxxxxxyz", strict=True)
        for item in "xyz"
    ]
    consensus = PlackettLuce(ridge=1e-9, ties="ignore").fit(Rankings.from_rows(rows))
    expected = np.log([6, 1, 1]) - np.log(6) / 3
    np.testing.assert_allclose(consensus.scores, expected, atol=1e-6)


@given(ranking_rows(), st.sampled_from(TIES), st.sampled_from([0.1, 1.0]))
def test_equals_the_slow_twin(rows, ties, ridge):
    rankings = judgments("ranking", rows)
    consensus = quiet(PlackettLuce(ties=ties, ridge=ridge, tol=1e-9), rankings)
    objective = slow.penalised(rankings, ties, ridge)
    best = minimize(lambda x: -objective(x), np.zeros(rankings.n_items), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(consensus.scores, best.x, atol=2e-5)
    assert objective(consensus.scores) >= objective(best.x) - 1e-8
    assert consensus.trace.log_likelihood[-1] == pytest.approx(objective(consensus.scores), abs=1e-9)
    curvature = -hessian(objective, best.x)
    for query, block in enumerate(consensus.covariance):
        part = slice(*rankings.items.offsets[query : query + 2])
        size = part.stop - part.start
        centre = np.eye(size) - 1 / size
        expected = centre @ np.linalg.inv(curvature)[part, part] @ centre
        np.testing.assert_allclose(block, expected, atol=2e-3 / ridge)
        np.testing.assert_allclose(consensus.std_error[part] ** 2, np.diag(block), atol=1e-12)


@given(preference_rows(), st.sampled_from(TIES), st.sampled_from([0.1, 1e-6]))
def test_rankings_of_two_are_preferences(rows, ties, ridge):
    one = quiet(PlackettLuce(ties=ties, ridge=ridge, tol=1e-9), as_rankings(rows))
    other = quiet(BradleyTerry(ties=ties, ridge=ridge, tol=1e-9), judgments("preference", rows))
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
    np.testing.assert_allclose(one.std_error, other.std_error, rtol=1e-4, atol=1e-7)
    for block, expected in zip(one.covariance, other.covariance, strict=True):
        np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-5 / ridge)


@pytest.mark.parametrize("size", [3, 12])
def test_recovers_scores_within_their_standard_errors(size):
    rankings, truth = simulated(40, 20_000 // size, size)
    consensus = PlackettLuce().fit(rankings)
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.99


def test_the_objective_never_falls():
    rankings, _ = simulated(30, 150, 5, adherence=np.linspace(-0.5, 2, 12))
    for annotators in ("equal", "weighted"):
        for ridge in (1e-6, 10.0):
            trace = quiet(PlackettLuce(annotators=annotators, ridge=ridge), rankings).trace
            assert trace.converged
            assert np.diff(trace.log_likelihood).min() >= -1e-9 * abs(trace.log_likelihood[-1])


def test_queries_are_fitted_apart():
    together, _ = simulated(0, 600, 4, sizes=[5, 80, 5])
    consensus = quiet(PlackettLuce(), together)
    for query in range(3):
        alone = quiet(PlackettLuce(), together.select(together.query == query))
        part = slice(*together.items.offsets[query : query + 2])
        np.testing.assert_allclose(consensus.scores[part], alone.scores[part], atol=1e-7)
        np.testing.assert_allclose(consensus.covariance[query], alone.covariance[query], atol=1e-7)
        assert consensus.scores[part].sum() == pytest.approx(0, abs=1e-9)


def test_products_and_the_kernel_give_the_same_covariance(monkeypatch):
    rankings, _ = simulated(0, 200, 4, sizes=[6, 12])
    few = quiet(PlackettLuce(), rankings)
    monkeypatch.setattr("crowdrank.models.rankings.plackett_luce._FEW_STEPS", 0)
    many = quiet(PlackettLuce(), rankings)
    for one, other in zip(few.covariance, many.covariance, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_weight_is_that_many_rankings():
    rows = {"ranking": [0, 0, 0, 1, 1, 1], "item": list("xyzzxy"), "rank": [1, 2, 2, 1, 2, 3]}
    again = {"ranking": [2, 2, 2], "item": list("xyz"), "rank": [1, 2, 2]}
    twice = {name: rows[name] + again[name] for name in rows}
    weighted = quiet(PlackettLuce(), Rankings.from_frame({**rows, "weight": [2, 2, 2, 1, 1, 1]}))
    np.testing.assert_allclose(weighted.scores, quiet(PlackettLuce(), Rankings.from_frame(twice)).scores, atol=1e-7)


def test_split_ties_draw_items_together_and_ignored_ones_do_not():
    rankings, _ = simulated(4, 40, 4)
    table = rankings.frame()
    tied = pl.DataFrame(
        {"query": "q0", "item": ["i00000", "i00001"] * 30, "rank": 1, "ranking": np.repeat(range(40, 70), 2)}
    )
    more = Rankings.from_frame(pl.concat([table, tied.select(table.columns)], how="vertical_relaxed"))
    gap = {}
    for ties in TIES:
        without, with_ties = (np.abs(np.diff(PlackettLuce(ties=ties).fit(r).scores[:2]))[0] for r in (rankings, more))
        gap[ties] = with_ties / without
    assert gap["split"] < 0.8
    assert gap["ignore"] == pytest.approx(1, abs=1e-6)


def test_ignored_ties_keep_the_scale_where_only_the_best_are_told():
    rankings, truth = simulated(20, 1500, 6)
    best_two = Rankings.from_frame(rankings.frame().with_columns(pl.col("rank").clip(upper_bound=3)))
    slope = {}
    for ties in TIES:
        consensus = PlackettLuce(ties=ties).fit(best_two)
        slope[ties] = (consensus.scores @ truth) / (truth @ truth)
    assert slope["ignore"] == pytest.approx(1, abs=0.12)
    assert slope["split"] < 0.7


@pytest.mark.parametrize("ties", TIES)
def test_everything_tied(ties):
    rows = [(who, "q", item, 1) for who in ("ann", "bob") for item in "xyz"]
    consensus = PlackettLuce(ties=ties).fit(Rankings.from_rows(rows))
    np.testing.assert_allclose(consensus.scores, 0, atol=1e-9)
    assert np.isfinite(consensus.std_error).all()


def test_rankings_of_one_item_say_nothing():
    rankings, _ = simulated(5, 60, 3)
    table = rankings.frame()
    alone = pl.DataFrame({"query": "q0", "item": ["i00003", "zz"], "rank": 1, "ranking": [100, 101]})
    more = PlackettLuce().fit(
        Rankings.from_frame(pl.concat([table, alone.select(table.columns)], how="vertical_relaxed"))
    )
    plain = PlackettLuce().fit(rankings)
    np.testing.assert_allclose(more.scores[:5] - more.scores[0], plain.scores - plain.scores[0], atol=1e-6)
    assert more.scores[5] == pytest.approx(0, abs=1e-9)


def test_items_always_first_or_last_are_finite_and_named():
    rows = [("ann", "q", "x", 1), ("ann", "q", "y", 2), ("ann", "q", "z", 3), ("ann", "q", "w", 4)]
    rows += [("bob", "q", "x", 1), ("bob", "q", "z", 2), ("bob", "q", "y", 3), ("bob", "q", "w", 4)]
    with pytest.warns(DataWarning) as caught:
        consensus = PlackettLuce().fit(Rankings.from_rows(rows))
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith("'x' (query 'q') won every preference")
    assert messages[1].startswith("'w' (query 'q') lost every preference")
    assert len(messages) == 2
    assert consensus.order("q")[0] == "x"
    assert consensus.order("q")[-1] == "w"
    assert np.abs(consensus.scores).max() < 8


def test_one_way_groups_and_groups_apart_are_named():
    rows = [("ann", "q", "a", 1), ("ann", "q", "b", 2), ("ann", "q", "c", 3), ("ann", "q", "d", 4)]
    rows += [("bob", "q", "b", 1), ("bob", "q", "a", 2), ("bob", "q", "d", 3), ("bob", "q", "c", 4)]
    with pytest.warns(DataWarning) as caught:
        PlackettLuce().fit(Rankings.from_rows(rows))
    messages = [str(w.message) for w in caught]
    assert messages[0].startswith("the 2 items 'a' (query 'q') and 'b' (query 'q') won every preference")
    assert len(messages) == 1, "that the others lost is the same"
    apart = [(who, "q", item, 1) for who, pair in (("ann", "ab"), ("bob", "cd")) for item in pair]
    with pytest.warns(DataWarning, match="2 groups of items were never compared"):
        PlackettLuce().fit(Rankings.from_rows(apart))


def test_ignored_ties_connect_a_tie_with_all_of_the_next():
    # d lost to the whole first tie, not only to its last item, so that a, b and d go round in a circle with c
    rows = [("ann", "q", "a", 1), ("ann", "q", "b", 1), ("ann", "q", "c", 2), ("ann", "q", "d", 2)]
    rows += [("bob", "q", "d", 1), ("bob", "q", "a", 2), ("cid", "q", "c", 1), ("cid", "q", "b", 2)]
    consensus = PlackettLuce(ties="ignore").fit(Rankings.from_rows(rows))
    assert consensus.trace.converged


def test_unjudged_items_have_the_prior():
    rows = {"query": ["q"] * 4, "annotator": list("aabb"), "item": list("xyyx"), "rank": [1, 2, 1, 2]}
    items = {"query": ["q", "q", "q", "r"], "item": ["x", "y", "z", "w"]}
    consensus = PlackettLuce().fit(Rankings.from_frame(rows, items=items))
    np.testing.assert_allclose(consensus.scores[2:], 0, atol=1e-12)
    # z is drawn from the prior, less its share of the mean of the query; w is alone and its own mean
    np.testing.assert_allclose(consensus.std_error[2:] ** 2, [10 * (1 - 1 / 3), 0], atol=1e-6)


@pytest.mark.parametrize("annotators", ["equal", "weighted"])
def test_no_rankings_left(annotators):
    rankings, _ = simulated(4, 50, 3, adherence=np.ones(3))
    consensus = PlackettLuce(annotators=annotators).fit(rankings.select(np.zeros(50, bool)))
    assert consensus.scores.tolist() == [0] * 4
    assert consensus.trace.converged


def test_large_queries_have_standard_errors_but_no_covariance(monkeypatch):
    rankings, _ = simulated(0, 12_000, 6, sizes=[800, 20])
    estimated = quiet(PlackettLuce(), rankings)
    assert estimated.covariance[0] is None
    assert estimated.covariance[1].shape == (20, 20)
    monkeypatch.setattr(plackett_luce, "score_standard_errors", partial(plackett_luce.score_standard_errors, exact=800))
    for module in ("models.rankings.plackett_luce", "standard_errors"):
        monkeypatch.setattr(f"crowdrank.{module}.COVARIANCE_ITEMS", 800)
    exact = quiet(PlackettLuce(), rankings)
    np.testing.assert_allclose(estimated.std_error[800:], exact.std_error[800:], rtol=1e-9)
    error = estimated.std_error[:800] / exact.std_error[:800] - 1
    assert np.sqrt(np.mean(error**2)) < 0.006


def test_many_items_never_make_a_square_table():
    rankings, truth = simulated(20_000, 40_000, 5)
    consensus = quiet(PlackettLuce(), rankings)
    assert consensus.trace.converged
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.85
    z = (consensus.scores - truth) / consensus.std_error
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.1


def test_too_few_steps_warn():
    rankings, _ = simulated(10, 200, 4)
    with pytest.warns(ConvergenceWarning, match="plackett_luce did not converge in 1 steps"):
        consensus = PlackettLuce(max_iter=1).fit(rankings)
    assert not consensus.trace.converged


@pytest.mark.parametrize("ridge", [1e-9, 1e3])
def test_any_ridge_converges_on_separated_items(ridge):
    rows = [(who, "q", f"i{a:02d}", a) for who in ("ann", "bob") for a in range(12)]
    consensus = quiet(PlackettLuce(ridge=ridge), Rankings.from_rows(rows))
    assert consensus.trace.converged
    assert consensus.order("q") == [f"i{a:02d}" for a in range(12)]


def test_wrong_parameters_and_kinds():
    rankings, _ = simulated(4, 20, 3)
    with pytest.raises(ParameterError, match="'split', 'ignore'"):
        PlackettLuce(ties="davidson")
    with pytest.raises(ParameterError, match="'equal', 'weighted'"):
        PlackettLuce(annotators="learned")
    with pytest.raises(ParameterError, match="ridge=0 must be above 0"):
        PlackettLuce(ridge=0)
    with pytest.raises(ParameterError, match="alpha=0 must be above 0; leave it out"):
        PlackettLuce(alpha=0)
    with pytest.raises(JudgmentError, match="not preferences"):
        PlackettLuce().fit(Preferences.from_rows([("ann", "q", "x", "y", "left")]))
    with pytest.raises(ParameterError, match="needs to know who gave each ranking"):
        PlackettLuce(annotators="weighted").fit(rankings)
    with pytest.raises(ParameterError, match="trusted= is for annotators='weighted'"):
        PlackettLuce().fit(rankings, trusted=["ann"])


CROWD = np.concatenate([np.zeros(4), np.full(3, -1.0), np.linspace(0.6, 1.8, 23)])
"""Four guess, three rank the wrong way round, the others differ in care."""


def test_annotators_are_recovered():
    rankings, truth = simulated(40, 900, 6, adherence=CROWD)
    equal, weighted = PlackettLuce().fit(rankings), PlackettLuce(annotators="weighted").fit(rankings)
    adherence = weighted.quality.parameters["adherence"]
    assert np.corrcoef(adherence, CROWD)[0, 1] > 0.96
    assert np.abs(adherence[:4]).max() < 0.35
    assert adherence[4:7].max() < -0.5
    assert adherence[7:].min() > 0.2
    quality = weighted.quality
    assert np.abs(quality.quality[:4] - 0.5).max() < 0.1
    assert quality.quality[4:7].max() < 0.4
    assert (quality.parameters["lower"] < quality.quality).all()
    assert (quality.quality < quality.parameters["upper"]).all()
    taus = [kendalltau(consensus.scores, truth)[0] for consensus in (equal, weighted)]
    assert taus[1] > taus[0] + 0.03
    assert 0.75 < shape_error(weighted, truth) < 1.25


def test_the_mean_square_of_adherences_over_rankings_is_one():
    rankings, _ = simulated(30, 400, 5, adherence=CROWD)
    adherence = PlackettLuce(annotators="weighted").fit(rankings).quality.parameters["adherence"]
    assert np.mean(adherence[rankings.annotator] ** 2) == pytest.approx(1)


def test_equal_annotators_stay_equal():
    rankings, truth = simulated(30, 300, 5, adherence=np.ones(15))
    equal, weighted = PlackettLuce().fit(rankings), PlackettLuce(annotators="weighted").fit(rankings)
    np.testing.assert_allclose(weighted.scores, equal.scores, atol=0.05)
    held = PlackettLuce(annotators="weighted", alpha=1e9).fit(rankings)
    np.testing.assert_allclose(held.scores, equal.scores, atol=1e-5)
    np.testing.assert_allclose(held.quality.parameters["adherence"], 1, atol=1e-5)
    np.testing.assert_allclose(held.std_error, equal.std_error, rtol=1e-3)
    assert kendalltau(weighted.scores, truth)[0] > 0.8


def test_one_annotator_is_as_good_as_equal_ones():
    rankings, _ = simulated(10, 60, 4, adherence=np.ones(1))
    equal, weighted = (PlackettLuce(annotators=how).fit(rankings) for how in ("equal", "weighted"))
    np.testing.assert_allclose(weighted.scores, equal.scores, atol=1e-5)
    assert weighted.quality.parameters["adherence"].tolist() == [pytest.approx(1)]


def test_a_reversed_majority_needs_trusted_annotators():
    rankings, truth = simulated(30, 400, 5, adherence=np.repeat([-1.0, 1.0], [11, 9]))
    method = PlackettLuce(annotators="weighted")
    with pytest.warns(DataWarning, match="hardly better than chance .* trusted="):
        alone = method.fit(rankings)
    assert kendalltau(alone.scores, truth)[0] < -0.7
    with_trust = method.fit(rankings, trusted=["a18", "a19"])
    assert kendalltau(with_trust.scores, truth)[0] > 0.7
    adherence = with_trust.quality.parameters["adherence"]
    assert adherence[:11].max() < 0 < adherence[11:].min()
    assert adherence[18:] == pytest.approx(1, abs=0.4)
    with pytest.raises(UnknownNameError, match="a99"):
        method.fit(rankings, trusted="a99")


def test_trusted_annotators_without_rankings_change_nothing():
    rankings, _ = simulated(20, 200, 4, adherence=CROWD[7:])
    part = rankings.select(rankings.annotator != 3)
    method = PlackettLuce(annotators="weighted")
    np.testing.assert_allclose(method.fit(part, trusted="a03").scores, method.fit(part).scores, atol=1e-7)


def test_annotators_are_pooled_over_queries():
    rankings, truth = simulated(0, 600, 5, adherence=CROWD, sizes=[12] * 10)
    consensus = PlackettLuce(annotators="weighted").fit(rankings)
    assert np.corrcoef(consensus.quality.parameters["adherence"], CROWD)[0, 1] > 0.9
    assert np.corrcoef(consensus.scores, truth)[0, 1] > 0.9
    for part in np.split(consensus.scores, 10):
        assert part.sum() == pytest.approx(0, abs=1e-6)
    for block in consensus.covariance:
        np.testing.assert_allclose(block.sum(axis=1), 0, atol=1e-8)


@given(ranking_rows(), st.sampled_from(TIES))
def test_annotators_of_tiny_data(rows, ties):
    rankings = judgments("ranking", rows)
    method = PlackettLuce(annotators="weighted", ties=ties)
    consensus = quiet(method, rankings)
    assert np.isfinite(consensus.scores).all()
    assert np.isfinite(consensus.std_error).all()
    assert consensus.quality.frame()["adherence"].is_finite().all()
    np.testing.assert_allclose(consensus.scores, method.scores(rankings), atol=1e-12)


@pytest.mark.parametrize("name", ["preflib/dots", "preflib/puzzle"])
def test_known_orders_come_back(data_folder, name):
    data = datasets.load(name)
    assert evaluate(PlackettLuce().fit(data.judgments), data.truth, metrics=["tau"])["value"].to_list() == [1.0]


def test_search_results_fused(data_folder):
    data = datasets.load("letor-mq2008-agg")
    found = [
        evaluate(quiet(method, data.judgments), data.truth, metrics=["ndcg@10"])["value"][0]
        for method in (Borda(), PlackettLuce(), PlackettLuce(annotators="weighted"))
    ]
    # measured .377, .393 and .444
    assert found[1] > found[0] + 0.01
    assert found[2] > found[1] + 0.04


def test_translation_systems(data_folder):
    rankings = datasets.load("wmt13-fr-en-rankings").judgments.across_queries()
    order = PlackettLuce().fit(rankings).scores
    assert kendalltau(order, Borda().fit(rankings).scores)[0] > 0.9
