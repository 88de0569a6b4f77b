"""Labelling schemes played through: what is bought, from whom, what it costs and how it is measured."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import simulate
from crowdrank.aggregators import DawidSkene, MeanGain
from crowdrank.errors import JudgmentError, ParameterError, UnknownNameError
from crowdrank.rankers import ListNet
from crowdrank.report import CampaignDisplay, save_display
from crowdrank.schemes import GoodTillBad, IfGoodK, Information, KOverlap
from crowdrank.simulate import PlackettLuce, Recorded, SimulatedCrowd, Trained, campaign, profile


@pytest.fixture(scope="module")
def truth():
    return simulate.draw_truth(n_queries=12, n_items=10, seed=3)


@pytest.fixture(scope="module")
def graders():
    return profile(n_annotators=15, seed=2)


def test_a_round_spends_its_share(truth, graders):
    played = campaign(KOverlap(k=2), graders, truth, 240, n_rounds=6)
    assert played.curve["cost"].to_list() == [40, 80, 120, 160, 200, 240]
    assert played.curve["n_judgments"].to_list() == [40, 80, 120, 160, 200, 240]
    assert played.stopped == "the budget is spent"
    assert set(played.curve.columns) == {"round", "cost", "n_judgments", "gain_error", "ndcg@10", "tau"}
    counts = np.bincount(played.judgments.item, minlength=120)
    assert (counts == 2).all()
    assert repr(played) == "Campaign(k_overlap: 240 judgments, cost 240; the budget is spent)"


def test_nobody_judges_a_thing_twice(truth, graders):
    bought = campaign(GoodTillBad(), graders, truth, 600, n_rounds=8).judgments
    assert len(np.unique(bought.item.astype(int) * 100 + bought.annotator)) == len(bought)
    few = profile(n_annotators=2, seed=2)
    played = campaign(KOverlap(k=5), few, truth, 600, n_rounds=3)
    assert len(played.judgments) == 240
    assert played.stopped.startswith("nothing is left to ask")


def test_if_good_k_asks_again_about_good_first_grades_only(truth, graders):
    bought = campaign(IfGoodK(k=3), graders, truth, 1000, n_rounds=10).judgments
    order = np.argsort(bought.time, kind="stable")
    first = np.full(120, np.nan)
    for row in order[::-1]:
        first[bought.item[row]] = bought.grade[row]
    counts = np.bincount(bought.item, minlength=120)
    np.testing.assert_array_equal(counts, np.where(first >= 2, 3, 1))


def test_a_price_is_paid_for_each_judgment(truth, graders):
    played = campaign(KOverlap(k=1), graders, truth, 100, n_rounds=4, price=2.5)
    assert len(played.judgments) == 40
    assert played.curve["cost"][-1] == 100


def test_the_same_seed_gives_the_same_campaign(truth, graders):
    one, same, other = (campaign(IfGoodK(k=2), graders, truth, 150, n_rounds=3, seed=seed) for seed in (4, 4, 5))
    assert one.curve.equals(same.curve)
    assert not one.curve.equals(other.curve)


def test_schemes_that_choose_annotators_find_the_good_ones():
    truth = simulate.draw_truth(n_queries=5, n_items=12, seed=1)
    slope = np.concatenate([np.full(8, 2.0), np.zeros(8)])
    crowd = SimulatedCrowd(PlackettLuce(slope), (truth.truth.items, truth.z), kind="preference", chosen=True)
    played = campaign(Information(), crowd, (truth.truth.items, truth.z), 600, n_rounds=6)
    late = played.judgments.annotator[300:]
    assert (late < 8).mean() > 0.75
    assert played.curve["tau"][-1] > 0.6


def test_recorded_grades_are_given_out_as_they_exist(truth, graders):
    recorded = simulate.grades(truth, graders, simulate.PerItem(k=4), seed=7).judgments
    played = campaign(KOverlap(k=6), recorded, truth.truth, 1000, n_rounds=5)
    assert len(played.judgments) == len(recorded)
    key = recorded.frame().select("query", "item", "annotator", "grade").sort(pl.all())
    assert played.judgments.frame().select("query", "item", "annotator", "grade").sort(pl.all()).equals(key)


def test_recorded_preferences_keep_their_sign():
    truth = simulate.draw_truth(n_queries=3, n_items=8, seed=1)
    pool = PlackettLuce(np.full(6, 1.5))
    recorded = simulate.preferences((truth.truth.items, truth.z), pool, simulate.AllPairs(k=2), seed=2).judgments
    played = campaign(Information(), recorded, truth.truth, 100, n_rounds=4, seed=3)
    bought = played.judgments
    said = {}
    for left, right, who, outcome in zip(
        recorded.left, recorded.right, recorded.annotator, recorded.outcome, strict=True
    ):
        said[left, right, who], said[right, left, who] = outcome, -outcome
    for left, right, who, outcome in zip(bought.left, bought.right, bought.annotator, bought.outcome, strict=True):
        assert said[left, right, who] == outcome


def test_class_methods_are_measured_by_their_probabilities(truth, graders):
    measures = ["accuracy", "log_loss", "gain_error"]
    method = DawidSkene(ordinal=True)
    played = campaign(KOverlap(k=4), graders, truth, 480, n_rounds=2, aggregator=method, measures=measures)
    last = played.curve.row(-1, named=True)
    consensus = method.fit(played.judgments)
    level = truth.truth.grade.astype(int)
    assert last["accuracy"] == pytest.approx(np.mean(consensus.grade == level))
    assert last["log_loss"] == pytest.approx(-np.log(consensus.probabilities[np.arange(120), level]).mean())
    gains = consensus.probabilities @ (2.0 ** np.arange(5) - 1)
    assert last["gain_error"] == pytest.approx(np.sqrt(np.mean((gains - 2.0**level + 1) ** 2)))
    with pytest.raises(ParameterError, match="log_loss needs a class method, such as dawid_skene"):
        campaign(KOverlap(k=1), graders, truth, 50, n_rounds=1, measures=["log_loss"])


def test_a_ranker_is_trained_in_every_round(truth, graders):
    rng = np.random.default_rng(0)
    matrix = np.column_stack([truth.z + 0.3 * rng.normal(size=120), rng.normal(size=120)])
    frame = truth.truth.items.frame()
    features = cr.Features.from_arrays(frame["query"], frame["item"], matrix, grade=truth.truth.grade)
    trained = Trained(ListNet(), features, features, k=5)
    played = campaign(KOverlap(k=2), graders, truth, 240, n_rounds=3, aggregator=MeanGain(), trained=trained)
    assert played.curve["ranker"][-1] > 0.8


def test_what_makes_no_sense_is_refused(truth, graders):
    with pytest.raises(ParameterError, match="buys nothing"):
        campaign(KOverlap(k=1), graders, truth, 0)
    with pytest.raises(ParameterError, match="n_rounds=0"):
        campaign(KOverlap(k=1), graders, truth, 10, n_rounds=0)
    recorded = simulate.grades(truth, graders, seed=7).judgments
    with pytest.raises(ParameterError, match="leave chosen=True out"):
        campaign(KOverlap(k=1), recorded, truth.truth, 10, chosen=True)
    rankings = simulate.rankings(truth, PlackettLuce(np.ones(5)), seed=1).judgments
    with pytest.raises(JudgmentError, match="replays grades or preferences, not rankings"):
        Recorded(rankings)


def test_schemes_are_played_by_name(truth, tmp_path):
    curves = cr.campaigns(
        truth.truth, ["single", "if-good-3"], 150, annotators=10, noise="profile()", n_rounds=3, n_seeds=2
    )
    assert curves["scheme"].unique(maintain_order=True).to_list() == ["single", "if-good-3"]
    assert curves["seed"].unique().sort().to_list() == [0, 1]
    ends = cr.api.campaign_ends(curves)
    assert ends.columns[:4] == ["scheme", "cost", "gain_error", "gain_error_spread"]
    display = CampaignDisplay.from_curves(curves, measure="tau").plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["single", "if-good-3"]
    assert display.ax_.get_ylabel() == "Kendall's tau with the truth"
    save_display(CampaignDisplay.from_curves(curves), tmp_path / "curves.png")
    with pytest.raises(ParameterError, match="no measure 'map'; they have gain_error"):
        CampaignDisplay.from_curves(curves, measure="map")
    with pytest.raises(UnknownNameError, match=r"did you mean 'single'\?"):
        cr.campaigns(truth.truth, ["singel"], 10, annotators=3, noise="profile()")
    with pytest.raises(ParameterError, match="say who answers"):
        cr.campaigns(truth.truth, ["single"], 10)


@pytest.mark.parametrize("scheme", ["2-overlap", "agreement", "information"])
def test_classes_without_an_order_are_replayed(scheme):
    from crowdrank import registry
    from crowdrank.data.judgments import Grades

    rng = np.random.default_rng(3)
    names, truth = np.array(["red", "green", "blue"]), rng.integers(0, 3, 40)
    rows = [
        (f"w{a}", "q", f"i{i:02d}", str(names[truth[i] if rng.random() < 0.85 else rng.integers(3)]))
        for a in range(6)
        for i in range(40)
    ]
    gold = {"query": ["q"] * 40, "item": [f"i{i:02d}" for i in range(40)], "grade": names[truth].tolist()}
    known = gold
    grades = Grades.from_rows(rows, nominal=True)
    made = registry.make("scheme", scheme)
    played = campaign(made, grades, known, 120, n_rounds=3, seed=1)
    assert played.judgments.nominal
    assert played.judgments.levels == ("blue", "green", "red")
    assert played.curve["accuracy"][-1] > 0.8
    assert played.curve["log_loss"][-1] < 1.0
    with pytest.raises(ParameterError, match="needs an order"):
        campaign(made, grades, known, 40, n_rounds=1, measures=("tau",))
