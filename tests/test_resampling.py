"""The bootstrap: right spread, right units, nothing dropped in silence, and every method of the registry."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import ROWS, judgments

import crowdrank as cr
from crowdrank.aggregators import BradleyTerry, Elo, MajorityVote, MeanGrade
from crowdrank.data.judgments import Grades, Preferences, Rankings
from crowdrank.errors import ConvergenceWarning, DataWarning, ParameterError, UnknownNameError
from crowdrank.io import from_json, read_consensus, to_json, write_consensus
from crowdrank.protocols import Resampler, Reweighter
from crowdrank.registry import card, make, names
from crowdrank.resampling import Draws, plan_draws

# simulated annotators judge the same pair again and again
pytestmark = pytest.mark.filterwarnings("ignore:.*judgments repeat one by the same annotator")

CASES = [(name, kind) for name in names("aggregator") for kind in card("aggregator", name).kinds]
BY_WEIGHT = [case for case in CASES if isinstance(make("aggregator", case[0]), Reweighter)]


def quiet(judged, method, **settings):
    """Aggregate without the warnings about small data, which tests of their own look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return cr.aggregate(judged, method, **settings)


def contests(scores, n_rows, seed, *, bias=None, n_annotators=20):
    """Preferences by the Bradley-Terry model; ``bias`` is how far annotators' own scores lie from the truth."""
    rng = np.random.default_rng(seed)
    n = len(scores)
    left = rng.integers(0, n, n_rows)
    right = (left + rng.integers(1, n, n_rows)) % n
    annotator = rng.integers(0, n_annotators, n_rows)
    own = np.asarray(scores) + (rng.normal(0, bias, (n_annotators, n)) if bias else np.zeros((n_annotators, n)))
    gap = own[annotator, left] - own[annotator, right]
    winner = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-gap)), "left", "right")
    columns = {"left": left, "right": right, "annotator": annotator, "winner": winner}
    return pl.DataFrame(columns).with_columns(pl.col("left", "right").cast(pl.String).str.zfill(3))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_method_can_be_bootstrapped(name, kind, small):
    for resample in ("judgment", "annotator"):
        consensus = quiet(small[kind], name, bootstrap=5, resample=resample, seed=1)
        assert consensus.replicates.shape == (5, small[kind].n_items)
        assert consensus.replicates.dtype == np.float32
        assert np.isfinite(consensus.replicates).all()
        plain = quiet(small[kind], name, seed=1)
        np.testing.assert_array_equal(consensus.scores, plain.scores)
        assert consensus.uncertainty == "replicates"
        frame = consensus.intervals()
        assert ((frame["lower"] <= frame["score"]) & (frame["score"] <= frame["upper"])).all()
        assert ((frame["rank_lower"] <= frame["rank"]) & (frame["rank"] <= frame["rank_upper"])).all()
        assert 0 <= consensus.beats("a", "e", "q1") <= 1
        # the spread of the replicates lies about the scores, on their scale
        assert np.abs(consensus.replicates.mean(axis=0) - consensus.scores).max() < 6 * np.ptp(consensus.scores) + 1
        assert consensus.quality is not None


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_same_seed_gives_the_same_in_any_order_of_rows(name, kind, small):
    judged = small[kind]
    first = quiet(judged, name, bootstrap=4, seed=2).replicates
    np.testing.assert_array_equal(first, quiet(judged, name, bootstrap=4, seed=2).replicates)
    if name in ("elo", "single"):
        pytest.skip("what comes first is told by the rows where there is no time")
    table = judged.frame()
    mixed = type(judged).from_frame(table.sample(fraction=1, shuffle=True, seed=1))
    np.testing.assert_allclose(quiet(mixed, name, bootstrap=4, seed=2).replicates, first, atol=1e-4)


@pytest.mark.parametrize(("name", "kind"), BY_WEIGHT)
@given(data=st.data())
def test_scores_by_weight_are_those_of_a_fit(name, kind, data):
    judged = judgments(kind, data.draw(ROWS[kind]()))
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(judged), max_size=len(judged))))
    method = make("aggregator", name)
    assert isinstance(method, Reweighter)
    if not weight.any():
        return
    if isinstance(judged, Grades):
        judged = Grades.from_frame(judged.frame(), levels=range(5))
    expected = method.fit(judged.with_weights(weight)).scores
    np.testing.assert_allclose(method.scores_by_weight(judged)(weight), expected, atol=1e-9)


def test_the_spread_is_that_of_the_information_matrix():
    truth = np.random.default_rng(0).normal(0, 1, 15)
    table = contests(truth, 4000, seed=1)
    known = cr.aggregate(table, "bradley_terry", robust="none").std_error
    found = cr.aggregate(table, "bradley_terry", bootstrap=400)
    ratio = found.std_error / known
    # a standard deviation of 400 draws is off by 3.5 %
    assert np.abs(ratio - 1).max() < 0.16
    assert ratio.mean() == pytest.approx(1, abs=0.04)
    np.testing.assert_allclose(found.replicates.std(axis=0, ddof=1), found.std_error, rtol=1e-5)
    assert found.covariance is None


@pytest.mark.parametrize("method", ["bradley_terry", "mean_grade"])
def test_intervals_hold_the_truth_as_often_as_they_say(method):
    rng = np.random.default_rng(4)
    truth = np.linspace(-1.2, 1.2, 8)
    hits, n_runs = 0, 60
    for run in range(n_runs):
        if method == "bradley_terry":
            judged, aggregator = contests(truth, 500, seed=100 + run), BradleyTerry(ridge=0.01)
        else:
            item, grade = np.repeat(np.arange(8), 25), np.repeat(truth, 25) + rng.exponential(1, 200) - 1
            judged, aggregator = {"item": item, "grade": grade}, MeanGrade()
        frame = quiet(judged, aggregator, bootstrap=200, seed=run).intervals(0.95).sort("item")
        hits += int(((frame["lower"].to_numpy() <= truth) & (truth <= frame["upper"].to_numpy())).sum())
    assert 0.90 <= hits / (8 * n_runs) <= 0.98


def test_annotators_with_biases_of_their_own_widen_the_intervals():
    truth = np.linspace(-1, 1, 6)
    biased, plain = contests(truth, 6000, 1, bias=0.8), contests(truth, 6000, 1)

    def ratio(table):
        one, other = (cr.aggregate(table, "bt", bootstrap=300, resample=unit) for unit in ("annotator", "judgment"))
        return float(np.mean(one.std_error / other.std_error))

    assert ratio(biased) > 2.5
    assert ratio(plain) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("method", ["bradley_terry", "borda", "elo"])
def test_queries_are_drawn_once_items_are_taken_over_them(method):
    # every query has an order of its own, so that more judgments of the same queries help little
    rng = np.random.default_rng(2)
    tables = []
    for query in range(15):
        own = np.linspace(-1, 1, 5) + rng.normal(0, 1.5, 5)
        tables.append(contests(own, 120, seed=query).with_columns(query=pl.lit(f"q{query:02d}")))
    preferences = Preferences.from_frame(pl.concat(tables))
    with pytest.raises(ParameterError, match=r"items live within their query.*across_queries\(\)"):
        cr.aggregate(preferences, method, bootstrap=5, resample="query")
    together = preferences.across_queries()
    wide, narrow = (cr.aggregate(together, method, bootstrap=150, resample=unit) for unit in ("query", "judgment"))
    assert wide.estimates["bootstrap"]["n_units"] == 15
    assert np.mean(wide.std_error / narrow.std_error) > 2
    assert wide.beats("000", "004") == pytest.approx(1 - wide.beats("004", "000"))


def test_whole_groups_of_annotators_are_drawn():
    truth = np.linspace(-1, 1, 5)
    rng = np.random.default_rng(3)
    # twelve families of three annotators who are all of one mind
    tables = []
    for family in range(12):
        table = contests(truth + rng.normal(0, 1, 5), 250, seed=family, n_annotators=3)
        table = table.with_columns(
            annotator=pl.format("{}-{}", pl.lit(family), "annotator"), group=pl.lit(f"f{family}")
        )
        tables.append(table)
    preferences = Preferences.from_frame(pl.concat(tables))
    found = {
        unit: cr.aggregate(preferences, "bradley_terry", bootstrap=200, resample=unit)
        for unit in ("group", "annotator", "judgment")
    }
    spread = {unit: float(np.mean(consensus.std_error)) for unit, consensus in found.items()}
    assert spread["group"] > 1.3 * spread["annotator"] > 1.3 * spread["judgment"]
    assert found["group"].estimates["bootstrap"]["n_units"] == 12
    with pytest.raises(ParameterError, match="add a group column, or use resample='annotator'"):
        cr.aggregate(contests(truth, 50, 1), "bt", bootstrap=5, resample="group")


def test_whole_weights_are_so_many_judgments():
    table = contests(np.linspace(-1, 1, 5), 400, 1)
    counts = table.group_by("left", "right", "winner", maintain_order=True).len("weight")
    single, counted = (
        cr.aggregate(given, "bradley_terry", bootstrap=400) for given in (table.drop("annotator"), counts)
    )
    np.testing.assert_allclose(single.scores, counted.scores, atol=1e-6)
    assert np.abs(counted.std_error / single.std_error - 1).max() < 0.2
    # borda takes the road of any method
    single, counted = (cr.aggregate(given, "borda", bootstrap=300) for given in (table.drop("annotator"), counts))
    assert np.abs(counted.std_error / single.std_error - 1).max() < 0.25
    # other weights go along with their judgment
    halves = counts.with_columns(pl.col("weight") / 2 + 0.25)
    assert plan_draws(Preferences.from_frame(halves), 5).chance is None


@pytest.mark.parametrize("name", ["bradley_terry", "borda", "elo"])
def test_lost_items_and_groups_apart_are_counted_and_said(name):
    rows = [("a", "b", w) for w in ("left", "right") * 15] + [("c", "d", w) for w in ("left", "right") * 15]
    rows += [("b", "c", "left"), ("e", "a", "right")]
    table = pl.DataFrame(rows, schema=["left", "right", "winner"], orient="row")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = cr.aggregate(table, name, bootstrap=100, seed=1)
    said = [str(warning.message) for warning in caught]
    summary = found.estimates["bootstrap"]
    assert 25 < summary["with_lost_items"] < 50
    assert summary["most_lost_items"] == 1
    assert 25 < summary["apart"] < 50
    assert any(
        f"{summary['with_lost_items']} of 100 resamples left items without a judgment, up to 1" in s for s in said
    )
    assert any(
        f"{summary['apart']} of 100 resamples broke the comparisons into groups that never met" in s for s in said
    )
    # they are kept: the item without judgments has the score of an unjudged one
    assert found.replicates.shape == (100, 5)
    neutral = {"bradley_terry": 0.0, "borda": 0.0, "elo": 1000.0}[name]
    assert (np.abs(found.replicates[:, 4] - neutral) < 1e-6).sum() == summary["with_lost_items"]


def test_grades_of_few_items_lose_some_but_fall_into_no_groups():
    grades = {"item": ["x", "x", "x", "y", "z", "z"], "grade": [1, 2, 3, 5, 1, 0]}
    with pytest.warns(DataWarning, match="left items without a judgment"):
        found = cr.aggregate(grades, "mean_grade", bootstrap=50)
    assert found.estimates["bootstrap"]["apart"] == 0
    # the item graded once has the mean of the others where its grade was not drawn: its spread is not nothing
    assert found.std_error[1] > 0.5


def test_rankings_connect_what_they_place():
    rows = [(f"a{k}", "q", item, rank + 1) for k in range(8) for rank, item in enumerate("xy" if k % 2 else "yx")]
    rows += [("b", "q", "y", 1), ("b", "q", "z", 2)] + [(f"c{k}", "q", "zw"[k % 2], 1) for k in range(2)]
    rows += [(f"d{k}", "q", item, rank + 1) for k in range(6) for rank, item in enumerate("zw")]
    with pytest.warns(DataWarning) as caught:
        found = cr.aggregate(Rankings.from_rows(rows), "borda", bootstrap=60)
    assert 10 < found.estimates["bootstrap"]["apart"] < 35
    assert any("groups that never met" in str(warning.message) for warning in caught)


def test_fits_that_do_not_converge_are_counted():
    table = contests(np.linspace(-1, 1, 5), 300, 1)
    with pytest.warns(ConvergenceWarning), pytest.warns(DataWarning, match="the fits of 10 of 10 resamples did not"):
        found = cr.aggregate(table, BradleyTerry(ties="davidson", max_iter=1), bootstrap=10)
    assert found.estimates["bootstrap"]["not_converged"] == 10


def test_few_units_are_warned_about():
    table = contests(np.linspace(-1, 1, 5), 600, 1, n_annotators=4)
    with pytest.warns(DataWarning, match="there are only 4 annotators to draw from"):
        cr.aggregate(table, "bt", bootstrap=5, resample="annotator")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bootstrap": 1}, "bootstrap=1 is not a number of resamples; use 2 or more"),
        ({"bootstrap": 0}, "bootstrap=0 is not a number"),
        ({"bootstrap": 2.5}, "bootstrap=2.5 is not a number"),
        ({"bootstrap": True}, "bootstrap=True is not a number"),
        ({"bootstrap": 5, "resample": "rows"}, "choose one of 'judgment', 'annotator', 'query', 'group'"),
        ({"resample": "annotator"}, r"give bootstrap=200 too"),
        ({"bootstrap": 5, "resample": "query"}, "there is only one query"),
        ({"bootstrap": 5, "resample": "group"}, "name no families of annotators"),
    ],
)
def test_what_cannot_be_drawn_is_said(settings, said, small):
    judged = Grades.from_frame({"item": ["x", "y"], "annotator": ["ann", "bob"], "grade": [1, 2]})
    with pytest.raises(ParameterError, match=said):
        cr.aggregate(judged, "mean_grade", **settings)


def test_too_little_to_draw_from_is_said():
    nameless = {"item": ["x", "y"], "grade": [1, 2]}
    for resample, said in (("annotator", "annotators cannot be drawn: "), ("group", "groups cannot be drawn: ")):
        with pytest.raises(ParameterError, match=f"{said}the judgments do not say who gave them"):
            cr.aggregate(nameless, "mean_grade", bootstrap=5, resample=resample)
    alone = {**nameless, "annotator": ["ann", "ann"]}
    with pytest.raises(ParameterError, match=r"there is only one annotator to draw from.* use resample='judgment'"):
        cr.aggregate(alone, "mean_grade", bootstrap=5, resample="annotator")
    with pytest.raises(ParameterError, match="there is only one judgment to draw from"):
        cr.aggregate({"item": ["x"], "grade": [1]}, "mean_grade", bootstrap=5)
    # annotators without a judgment left are not drawn
    judged = Grades.from_frame({"item": ["x", "y", "z"], "annotator": ["ann", "bob", "cid"], "grade": [1, 2, 3]})
    with pytest.warns(DataWarning, match="there are only 2 annotators"):
        assert plan_draws(judged.select(np.array([0, 2])), 5, "annotator").n_units == 2


def test_comparisons_need_their_query_when_there_are_several(small):
    found = cr.aggregate(small["preference"], "borda", bootstrap=20)
    with pytest.raises(UnknownNameError, match=r"item 'a' needs its query \(query=...\): there are 2 queries"):
        found.beats("a", "b")
    assert found.beats("a", "e", "q1") > 0.9
    assert cr.aggregate(small["preference"].across_queries(), "borda", bootstrap=20).beats("a", "e") > 0.9


def test_equal_scores_share_their_ranks_in_intervals():
    votes = {"item": list("xyz") * 20, "grade": [1, 1, 0] * 20}
    frame = quiet(votes, MajorityVote(), bootstrap=20).intervals().sort("item")
    # x and y are never distinguished, so either may be second
    assert frame.select("rank", "rank_lower", "rank_upper").rows() == [(1, 1, 2), (1, 1, 2), (3, 3, 3)]


@pytest.mark.parametrize("method", ["bradley_terry", "mean_grade"])
def test_replicates_go_to_files_and_come_back(method, tmp_path, small):
    found = quiet(small["preference" if method == "bradley_terry" else "grade"], method, bootstrap=30)
    whole = from_json(json.loads(json.dumps(to_json(found, replicates=True), allow_nan=False)))
    write_consensus(found, tmp_path / "found.parquet")
    for again in (whole, read_consensus(tmp_path / "found.parquet")):
        np.testing.assert_array_equal(again.replicates, found.replicates)
        assert again.replicates.dtype == np.float32
        assert again.intervals().equals(found.intervals())
        assert again.estimates["bootstrap"] == found.estimates["bootstrap"]
    # without the replicates, which JSON leaves out unless asked, the standard errors are still those of the bootstrap
    plain = from_json(to_json(found))
    assert plain.replicates is None
    np.testing.assert_allclose(plain.std_error, found.std_error)
    assert plain.uncertainty == "std_error"


def test_files_stay_small():
    rng = np.random.default_rng(0)
    votes = {"item": np.repeat(np.arange(500), 4), "grade": rng.normal(0, 1, 2000)}
    found = quiet(votes, "mean_grade", bootstrap=200)
    text = json.dumps(to_json(found, replicates=True)["replicates"])
    assert len(text) < 14 * found.replicates.size


@pytest.mark.parametrize("method", ["borda", "bradley_terry"])
def test_progress_is_told(method, small):
    steps = []
    cr.aggregate(small["preference"], method, bootstrap=70, progress=lambda *step: steps.append(step))
    assert steps[-1] == (70, 70, "resamples")
    assert [step[0] for step in steps] == sorted({step[0] for step in steps})


def test_what_a_method_is_told_goes_to_its_resamples():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 30)
    rows = [
        (f"a{k}", "q", f"i{i:02d}", int(t if rng.random() < 0.8 else 1 - t))
        for k in range(5)
        for i, t in enumerate(truth)
    ]
    grades = Grades.from_rows(rows)
    known = {"query": ["q"], "item": ["i00"], "grade": [int(1 - truth[0])]}
    told = quiet(grades, "dawid_skene", known=known, bootstrap=5)
    assert (told.replicates[:, 0].round() == 1 - truth[0]).all()


def test_a_resample_without_some_level_still_knows_of_it():
    grades = {"item": ["x"] * 9 + ["y"] * 9, "annotator": list("abcdefghi") * 2, "grade": [0] * 8 + [2] + [1] * 9}
    found = quiet(grades, "majority_vote", bootstrap=30)
    assert set(np.unique(found.replicates)) <= {0.0, 1.0, 2.0}


def test_methods_of_every_road_are_tested():
    methods = [make("aggregator", name) for name in names("aggregator")]
    assert any(isinstance(method, Resampler) for method in methods)
    assert any(isinstance(method, Reweighter) for method in methods)
    assert not isinstance(Elo(), Resampler | Reweighter)


@pytest.mark.parametrize("method", ["bradley_terry", "borda"])
def test_a_larger_number_goes_on_where_a_smaller_one_ended(method, small):
    few, many = (quiet(small["preference"], method, bootstrap=n).replicates for n in (10, 40))
    np.testing.assert_allclose(many[:10], few, atol=1e-6)


def test_of_few_units_one_less_is_drawn():
    assert all(Draws(10, "annotator", 3, 5).copies(number).sum() == 4 for number in range(10))


def test_resamples_have_random_numbers_of_their_own():
    draws = Draws(10, "judgment", 3, 50)
    np.testing.assert_array_equal(draws.copies(4), Draws(99, "judgment", 3, 50).copies(4))
    assert (draws.copies(4) != draws.copies(5)).any()
    assert (draws.copies(4) != Draws(10, "judgment", 4, 50).copies(4)).any()
    assert all(draws.copies(number).sum() == 50 for number in range(10))
