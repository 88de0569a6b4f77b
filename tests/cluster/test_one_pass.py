"""Methods of one pass over packed judgments: the scores of a fit to all judgments at once."""

import numpy as np
import polars as pl
import pytest
from tests.cluster.test_packing import preferences, votes

import crowdrank as cr
from crowdrank.cluster import results
from crowdrank.cluster.packing import pack_judgments
from crowdrank.cluster.results import fit_in_one_pass
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.registry import make, names

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

GRADE_METHODS = ("mean_grade", "majority_vote", "highest_grade", "mean_gain", "borda", "median_rank")
PAIR_METHODS = (
    "bradley_terry",
    "rank_centrality",
    "condorcet",
    "greedy_order",
    "majority_preference",
    "nuclear_norm",
    "borda",
)


def assert_close(found, wanted):
    assert found.items.frame().equals(wanted.items.frame())
    for name in ("scores", "std_error", "probabilities"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    if wanted.grade is not None:
        assert (found.grade == wanted.grade).all()
        assert found.levels == wanted.levels


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    grades = cr.Grades.from_frame(votes())
    return grades, pack_judgments([grades], tmp_path_factory.mktemp("grades"), part_rows=400)


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    chosen = cr.Preferences.from_frame(preferences())
    return chosen, pack_judgments([chosen], tmp_path_factory.mktemp("pairs"), part_rows=400)


@pytest.mark.parametrize("name", GRADE_METHODS)
def test_grades(graded, name):
    grades, packed = graded
    method = make("aggregator", name)
    assert_close(fit_in_one_pass(method, packed), method.fit(grades))


@pytest.mark.parametrize("name", PAIR_METHODS)
def test_preferences_in_queries(paired, name):
    chosen, packed = paired
    method = make("aggregator", name)
    assert_close(fit_in_one_pass(method, packed), method.fit(chosen))


@pytest.mark.parametrize("name", PAIR_METHODS)
def test_preferences_of_one_query_by_annotator(tmp_path, name):
    chosen = cr.Preferences.from_frame(preferences()).across_queries()
    packed = pack_judgments([chosen], tmp_path / "p", by="annotator", part_rows=400)
    assert packed.n_parts > 1
    method = make("aggregator", name)
    assert_close(fit_in_one_pass(method, packed), method.fit(chosen))


@pytest.mark.parametrize("name", ["borda", "median_rank"])
def test_rankings(tmp_path, name):
    rankings = cr.Grades.from_frame(votes()).as_rankings()
    packed = pack_judgments([rankings], tmp_path / "p", part_rows=400)
    method = make("aggregator", name)
    assert_close(fit_in_one_pass(method, packed), method.fit(rankings))


def test_every_method_of_one_pass_is_tested():
    able = {name for name in names("aggregator") if getattr(make("aggregator", name), "one_pass", ())}
    assert able == {*GRADE_METHODS, *PAIR_METHODS}


def test_quality_is_that_of_all_judgments_or_of_a_sample(graded, monkeypatch):
    grades, packed = graded
    method = make("aggregator", "mean_grade")
    whole = method.fit(grades).quality
    found = fit_in_one_pass(method, packed).quality
    np.testing.assert_allclose(found.quality, whole.quality, rtol=1e-9)
    monkeypatch.setattr("crowdrank.data.parted.SAMPLE_ROWS", 1500)
    sampled = fit_in_one_pass(method, packed).quality
    assert np.abs(sampled.quality - whole.quality).mean() < 0.1
    np.testing.assert_allclose(sampled.n_judgments, whole.n_judgments)


def test_more_items_than_are_held_stay_in_parquet(graded, monkeypatch, tmp_path):
    grades, packed = graded
    monkeypatch.setattr(results, "MANY_ITEMS", 10)
    method = make("aggregator", "majority_vote")
    found = fit_in_one_pass(method, packed)
    assert isinstance(found, results.StoredConsensus)
    whole = method.fit(grades)
    keys = ["query", "item"]
    assert found.frame().collect().sort(keys)["rank"].equals(whole.frame().sort(keys)["rank"])
    assert found.order("q3") == whole.order("q3")
    some = found.of_queries(pl.Series(["q3", "q7"]))
    assert some.order("q7") == whole.order("q7")
    truth = pl.DataFrame({"query": ["q3"] * 3, "item": ["i0", "i4", "i8"], "grade": [0, 1, 2]})
    assert cr.evaluate(found, truth, ["tau"])["value"].equals(cr.evaluate(whole, truth, ["tau"])["value"])
    found.write(str(tmp_path / "all.csv"))
    assert len(pl.read_csv(tmp_path / "all.csv")) == len(whole)


def test_what_one_pass_cannot_do(graded, tmp_path):
    grades, packed = graded
    with pytest.raises(JudgmentError, match="takes preferences, not grades"):
        fit_in_one_pass(make("aggregator", "bradley_terry"), packed)
    with pytest.raises(ParameterError, match="bins"):
        fit_in_one_pass(make("aggregator", "majority_vote", {"bins": 3}), packed)
    by_annotator = pack_judgments([grades], tmp_path / "a", by="annotator", part_rows=400)
    with pytest.raises(JudgmentError, match="pack them by query"):
        fit_in_one_pass(make("aggregator", "mean_grade"), by_annotator)


def test_verbs_take_packed_judgments(graded, monkeypatch):
    packed = graded[1]
    methods = ["mean_grade", "majority_vote"]
    assert cr.compare(packed, methods)["method"].equals(cr.compare(packed.path, methods)["method"])
    requests = cr.propose(packed, scheme="k_overlap", budget=5)
    assert len(requests)
    monkeypatch.setattr("crowdrank.data.parted.SAMPLE_ROWS", 1000)
    assert len(cr.compare(packed, methods)) == 2
