"""Studies of joint annotator models: quick runs, printed figures, and the crowds they are of."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from crowdrank import Features, Preferences, Truth
from crowdrank.datasets import Dataset
from crowdrank_studies import Work
from crowdrank_studies.joint_annotators.cellars import DECISIVE, VARYING, Cellar, Tasters, limits
from crowdrank_studies.joint_annotators.gupta_figures import SINGLE_RANKERS, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from crowdrank_studies.joint_annotators.item_draws import ItemDraws, mcnemar
from crowdrank_studies.joint_annotators.machines import Machines
from crowdrank_studies.joint_annotators.rated import EMOTIONS, FUSED, headlines, submissions
from crowdrank_studies.joint_annotators.schemes import (
    BORDA,
    EFFECTS,
    IAM,
    JAM,
    LEARNED_PAIRS,
    MV,
    PAPER,
    VOTES,
    VRJAM,
    Fused,
    Pairs,
    fuse,
    independent,
)


@pytest.mark.data
def test_printed_figures_of_wine_stand_in_the_table(ran):
    frame = ran("wine").outcome.frame().filter(pl.col("paper").is_not_null())
    table_1 = frame.filter(place="table 1", wine="red").select("scheme", "annotator", "paper").rows()
    assert table_1 == [(one, str(k + 1), rate) for one, rates in TABLE_1.items() for k, rate in enumerate(rates)]
    table_2 = frame.filter(place="table 2").select("wine", "scheme", "paper").rows()
    assert sorted(table_2) == sorted((wine, one, value) for wine, of in TABLE_2.items() for one, value in of.items())
    assert frame.filter(place="section 4.1.1")["paper"].to_list() == list(SINGLE_RANKERS)


@pytest.mark.data
def test_printed_figures_of_digits_stand_in_the_table(ran):
    frame = ran("digits").outcome.frame().filter(pl.col("paper").is_not_null())
    table_3 = dict(frame.filter(place="table 3").select("of", "paper").rows())
    table_4 = dict(frame.filter(pl.col("of").is_in(PAPER)).select("of", "paper").rows())
    assert (table_3, table_4) == (TABLE_3, TABLE_4)


@pytest.mark.data
def test_wine_goes_as_it_must(ran):
    frame = ran("wine").outcome.frame()
    rates = frame.filter(place="table 1", wine="red", scheme=JAM)["ours"].to_numpy()
    assert np.abs(rates - np.arange(1, 7) / 20).max() < 0.025
    right = {
        (place, one): value
        for place, one, value in frame.filter(wine="red", measure="right pairs in %")
        .select("place", "scheme", "ours")
        .rows()
    }
    assert right["table 2", MV] < right["table 2", VOTES] < right["table 2", JAM] < right["table 2", EFFECTS]
    assert right["table 2", IAM] == pytest.approx(79.9, abs=0.5)
    words = {verdict.claim: verdict.verdict for verdict in ran("wine").outcome.verdicts}
    # a quick run decides nothing
    assert words["figure 2: MV, JAM and VRJAM converge as the noise of annotators increases"] == "undecided"


@pytest.mark.data
def test_private_table_is_not_reproducible(ran):
    first = ran("rated-speech").outcome.verdicts[0]
    assert (first.claim[:7], first.verdict) == ("table 5", "not decidable")
    assert "private" in first.reason


@pytest.mark.data
def test_headlines_are_fused_and_described_by_different_people(data_folder):
    found = headlines(Work("quick", folder=data_folder), 3)
    assert [one.name.split()[0] for one in found] == list(EMOTIONS[:-1])
    joy = found[3]
    assert joy.judgments.n_queries == 5
    assert len(joy.judgments) == 5 * FUSED * 20 * 19 // 2
    assert joy.features.names == ("anger", "disgust", "fear", "sadness", "surprise")
    assert np.isnan(joy.higher).sum() < 10
    # what is measured of joy and of sadness is the same pairs of groups, the other way round
    known = ~np.isnan(joy.higher)
    assert (joy.higher[known] + found[4].higher[known] == 1).all()
    assert np.corrcoef(joy.gold[known], joy.higher[known])[0, 1] > 0.5


@pytest.mark.data
def test_students_work_has_features_everywhere(data_folder):
    work = submissions(Work("quick", folder=data_folder))
    assert np.isfinite(work.features.matrix).all()
    assert work.features.items.ids.to_list() == work.judgments.items.ids.to_list()
    assert 0.4 < np.nanmean(work.higher) < 0.6


def test_limits_by_hand():
    assert limits(np.array([0.1])) == pytest.approx((90, 90))
    # an even crowd tosses a coin, one who knows the rates goes by the better annotator
    assert limits(np.array([0.1, 0.3])) == pytest.approx((100 * (0.63 + 0.5 * 0.34), 90))
    assert limits(np.array([0.9])) == pytest.approx((10, 90))
    assert limits(np.arange(1, 7) / 20) == pytest.approx((96.366, 98.2535), abs=1e-3)


def test_pairs_add_votes_of_either_side():
    rows = [
        ("ann", "q", "b", "a", "left"),
        ("bob", "q", "a", "b", "left"),
        ("cy", "q", "b", "a", "left"),
        ("ann", "q", "a", "c", "tie"),
        ("bob", "q", "c", "a", "right"),
    ]
    pairs = Pairs.of(Preferences.from_rows(rows))
    assert (pairs.left.tolist(), pairs.right.tolist(), pairs.net.tolist()) == ([0, 0], [1, 2], [-1.0, 1.0])
    truth = pairs.truth(np.array([2.0, 3.0, 2.0]))
    assert truth.tolist() == [-1, 0]
    assert Fused(pairs.net).accuracy(truth) == 100.0
    assert Fused(np.zeros(2)).accuracy(truth) == 50.0


@pytest.fixture(scope="module")
def cellar():
    """120 wines whose quality follows from two of five measurements."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(120, 5))
    ids = [f"{number:03d}" for number in range(120)]
    grade = np.clip(np.round(4 + 2 * matrix[:, 0] + matrix[:, 1] + 0.5 * rng.normal(size=120)), 0, 8)
    return Cellar(Features.from_arrays(None, ids, matrix, names=(*DECISIVE, "pH")), grade)


def test_pairs_of_wines_have_unequal_quality(cellar):
    left, _ = cellar.all_pairs
    assert len(left) == cellar.n_pairs == sum(a != b for a, b in combinations(cellar.grade, 2))
    some = cellar.draw_pairs(50, np.random.default_rng(1))
    assert len(set(zip(*(side.tolist() for side in some), strict=True))) == 50
    assert (cellar.grade[some[0]] != cellar.grade[some[1]]).all()


def test_tasters_flip_as_often_as_they_should(cellar):
    rates = np.array([0.1, 0.2, 0.4])
    tasters = Tasters(cellar, rates, None, 0)
    assert len(tasters.judgments) == 3 * len(tasters.pairs) == 3 * cellar.n_pairs
    truth = np.sign(cellar.grade[tasters.judgments.left] - cellar.grade[tasters.judgments.right])
    wrong = tasters.judgments.outcome != truth
    assert np.bincount(tasters.judgments.annotator, wrong) / cellar.n_pairs == pytest.approx(rates, abs=0.02)
    found = {one: tasters.measure(one) for one in (MV, IAM, JAM, VRJAM, EFFECTS, BORDA)}
    assert found[MV]["pairs"] == pytest.approx(limits(rates)[0], abs=1)
    assert found[JAM]["flips"] == pytest.approx(rates, abs=0.02)
    assert found[MV]["pairs"] < found[JAM]["pairs"]
    assert (found[MV]["order"], found[BORDA]["pairs"]) == (None, None)
    assert found[IAM]["pairs"] == found[IAM]["order"] > 85


def test_noise_that_depends_on_the_pair(cellar):
    tasters = Tasters(cellar, None, None, 4)
    assert len(tasters.judgments) == len(VARYING) * cellar.n_pairs
    group = cellar.group(tasters.judgments.left, tasters.judgments.right)
    truth = np.sign(cellar.grade[tasters.judgments.left] - cellar.grade[tasters.judgments.right])
    wrong = pl.DataFrame(
        {"group": group, "who": tasters.judgments.annotator, "wrong": tasters.judgments.outcome != truth}
    )
    rates = wrong.group_by("group", "who").agg(pl.col("wrong").mean()).pivot(on="who", index="group", values="wrong")
    table = rates.sort("group").drop("group").to_numpy()
    assert np.sort(table, axis=1) == pytest.approx(np.tile(VARYING, (len(DECISIVE), 1)), abs=0.06)
    assert len({tuple(row.argsort()) for row in table}) > 1


def test_rankers_of_single_annotators_learn_from_some_pairs(cellar, monkeypatch):
    tasters = Tasters(cellar, np.array([0.1, 0.3]), None, 0)
    assert tasters.fewer().n_pairs == LEARNED_PAIRS
    assert Tasters(cellar, None, 30, 0).fewer().n_pairs == 30
    monkeypatch.setattr("crowdrank_studies.joint_annotators.schemes.LEARNED_PAIRS", 400)
    some = independent(tasters.judgments, cellar.features, tasters.pairs, only=0)
    assert np.corrcoef(some, cellar.grade)[0, 1] > 0.8
    assert (some != independent(tasters.judgments, cellar.features, tasters.pairs, only=1)).any()


def test_items_drawn_again_as_by_hand():
    left, right = (np.array(side, np.int32) for side in zip(*combinations(range(6), 2), strict=True))
    pairs = Pairs(left, right, np.zeros(15))
    rng = np.random.default_rng(2)
    first, second = (Fused(rng.choice([-1.0, 0.0, 1.0], 15)) for _ in range(2))
    truth = rng.choice(np.array([-1, 1], np.int8), 15)
    draws = ItemDraws(pairs, 6, np.ones(15, bool), n_draws=50, seed=1)
    found = draws.difference(first, second, truth)
    copies = np.random.default_rng(1).multinomial(6, np.full(6, 1 / 6), size=50)
    better = [(np.sign(a) - np.sign(b)) * t / 2 for a, b, t in zip(first.lead, second.lead, truth, strict=True)]
    by_hand = []
    for copy in copies:
        weights = [copy[i] * copy[j] for i, j in combinations(range(6), 2)]
        by_hand.append(100 * np.dot(weights, better) / np.sum(weights))
    assert found == pytest.approx((100 * np.mean(better), *np.quantile(by_hand, [0.025, 0.975])))
    assert draws.difference(first, first, truth) == (0, 0, 0)


def test_mcnemar_by_hand():
    truth = np.ones(10, np.int8)
    first, second = Fused(np.array([1.0] * 6 + [-1.0] * 4)), Fused(np.array([-1.0] * 5 + [1.0] * 3 + [-1.0] * 2))
    # five pairs gained and two lost
    assert mcnemar(first, second, truth) == pytest.approx(3 / np.sqrt(7))
    assert mcnemar(first, first, truth) == 0


def test_classifiers_as_annotators():
    rng = np.random.default_rng(0)
    digit = np.repeat(np.arange(4.0), 20)
    matrix = rng.normal(size=(80, 6)) + digit[:, None]
    ids = [f"{number:02d}" for number in range(80)]
    data = Dataset(
        name="small",
        features=Features.from_arrays(None, ids, matrix),
        truth=Truth.from_frame({"item": ids, "grade": digit}),
    )
    machines = Machines.draw(data, 60, 1)
    assert machines.predictions.shape == (60, 5)
    assert (machines.digit[machines.judgments.left] != machines.digit[machines.judgments.right]).all()
    assert (machines.judgments.outcome == 0).any()
    assert not (machines.with_coin_tosses.outcome == 0).any()
    pairs = Pairs.of(machines.judgments)
    vote = fuse(MV, machines.judgments, machines.features, pairs).accuracy(pairs.truth(machines.digit))
    assert vote > 80
    wrong, half = machines._annotator(0, pairs)
    assert wrong < half < vote + 20
