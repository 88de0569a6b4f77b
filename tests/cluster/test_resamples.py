"""Bootstrap of packed judgments: other weights of the same parts, as in memory."""

import warnings

import numpy as np
import pytest
from tests.cluster.some_judgments import some_grades, some_preferences

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster.packing import pack_judgments
from crowdrank.cluster.resamples import ResampledJudgments, lost_and_apart, plan_part_draws
from crowdrank.data.judgments import Links
from crowdrank.errors import ParameterError
from crowdrank.resampling import plan_draws

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


@pytest.fixture(autouse=True)
def many(monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)


def aggregate_whole(monkeypatch, *args, **kwargs):
    """A fit that does not go in parts."""
    with monkeypatch.context() as patch:
        patch.setattr(in_parts, "MANY_ROWS", 10**9)
        return cr.aggregate(*args, **kwargs)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return pack_judgments([some_grades()], tmp_path_factory.mktemp("grades"), part_rows=200)


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    return pack_judgments(
        [some_preferences(n_queries=1)], tmp_path_factory.mktemp("arena"), part_rows=300, by="annotator"
    )


@pytest.mark.parametrize("method", ["mean_grade", "dawid_skene"])
def test_annotators_are_drawn_as_in_memory(packed, method, monkeypatch):
    params = {} if method == "mean_grade" else {"calibrated": False, "tol": 1e-8}
    how = {"params": params, "bootstrap": 4, "resample": "annotator", "seed": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = aggregate_whole(monkeypatch, some_grades(), method, **how)
        warm = cr.aggregate(packed, method, **how)
        monkeypatch.setattr(in_parts, "takes_argument", lambda method, name: False)
        cold = cr.aggregate(packed, method, **how)
    np.testing.assert_allclose(cold.replicates, whole.replicates, atol=1e-5)
    np.testing.assert_allclose(cold.std_error, whole.std_error, atol=1e-5)
    assert cold.estimates["bootstrap"] == whole.estimates["bootstrap"]
    # from the fit to all judgments on, EM may end in another maximum where annotators are as few as here
    assert np.corrcoef(warm.replicates.ravel(), whole.replicates.ravel())[0, 1] > 0.97


@pytest.mark.parametrize("name", ["packed", "arena"])
def test_single_judgments_are_drawn_once_on_average_and_scatter_as_in_memory(name, request, monkeypatch):
    given = request.getfixturevalue(name)
    method = "mean_grade" if name == "packed" else "bradley_terry"
    judgments = some_grades() if name == "packed" else some_preferences(n_queries=1)
    found = cr.aggregate(given, method, bootstrap=60)
    whole = aggregate_whole(monkeypatch, judgments, method, bootstrap=60)
    ratio = found.std_error / whole.std_error
    assert 0.9 < np.median(ratio) < 1.1
    again = cr.aggregate(given, method, bootstrap=60, stream=True)
    assert (again.replicates == found.replicates).all()
    plan = plan_part_draws(given, 5, "judgment", 0)
    drawn = [len(ResampledJudgments(given, plan, number).part(0)) / len(given.part(0)) for number in range(5)]
    assert 0.55 < np.mean(drawn) < 0.72


def test_what_a_resample_lacks_is_counted_over_parts(packed, arena):
    for given in (packed, arena):
        plan = plan_part_draws(given, 3, "annotator", 0)
        for number in range(3):
            parts = list(ResampledJudgments(given, plan, number).parts())
            judged = np.zeros(given.n_items, bool)
            for place, part in enumerate(parts):
                judged[given.item_codes(place)] |= part.judged_items
            lost, apart = lost_and_apart(given, plan, number)
            assert lost == given.n_items - judged.sum()
            assert not apart
    few = some_preferences(40, n_queries=1).select(np.arange(12))
    draws = plan_draws(few, 3, "judgment", 0)
    assert isinstance(Links.of(few).missing_in(draws.counts(0) > 0)[1], bool)


def test_weights_that_count_equal_judgments_are_drawn_one_by_one(tmp_path):
    grades = some_grades()
    weighted = grades.with_weights(np.full(len(grades), 4.0))
    packed = pack_judgments([weighted], tmp_path / "w", part_rows=300)
    plan = plan_part_draws(packed, 2, "judgment", 0)
    weights = np.concatenate([plan.weights(part, number, 0) for number, part in enumerate(packed.parts())])
    assert plan.counted
    assert abs(weights.mean() - 4.0) < 0.3
    assert abs(weights.var() - 4.0) < 0.8


def test_resamples_that_do_not_fit_are_refused(packed, monkeypatch):
    monkeypatch.setattr("crowdrank.cluster.resamples.MANY_ITEMS", 10)
    with pytest.raises(ParameterError, match="stay in Parquet; leave it out"):
        cr.aggregate(packed, "mean_grade", bootstrap=10)
    monkeypatch.undo()
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    with pytest.raises(ParameterError, match="queries cannot be drawn"):
        cr.aggregate(packed, "mean_grade", bootstrap=10, resample="query")


def test_what_needs_all_judgments_at_once_is_fitted_so_or_refused(arena, monkeypatch):
    whole = cr.aggregate(some_preferences(n_queries=1), "bradley_terry", robust="annotator")
    found = cr.aggregate(arena, "bradley_terry", robust="annotator")
    np.testing.assert_allclose(found.std_error, whole.std_error, rtol=1e-6)
    with pytest.raises(ParameterError, match=r"robust.* needs all judgments at once.*stream.* does not"):
        cr.aggregate(arena, "bradley_terry", robust="annotator", stream=True)
    monkeypatch.setattr("crowdrank.data.files.available_memory", lambda: 10_000)
    with pytest.raises(ParameterError, match=r"needs all 1,200 judgments at once.*bootstrap.*annotator"):
        cr.aggregate(arena, "bradley_terry", robust="annotator")
