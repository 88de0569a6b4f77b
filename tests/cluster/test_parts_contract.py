"""What holds for every method that can be fitted in parts: the same bits wherever it runs, and near the plain fit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cluster.cut_judgments import CutJudgments
from tests.cluster.some_judgments import (
    assert_same_bits,
    fitted,
    plainly,
    some_grades,
    some_preferences,
    some_rankings,
)
from tests.strategies import grade_rows, preference_rows, ranking_rows

import crowdrank as cr
from crowdrank.cluster.dask_executor import Dask
from crowdrank.cluster.executor import InMemory, Streamed
from crowdrank.cluster.packing import pack_judgments
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.registry import make, method_class, names

ROWS = {"grade": grade_rows(), "preference": preference_rows(), "ranking": ranking_rows()}
KINDS = {"grade": cr.Grades, "preference": cr.Preferences, "ranking": cr.Rankings}

METHODS = {
    ("dawid_skene", "grade"): {},
    ("ensemble", "grade"): {},
    ("naive_bayes", "grade"): {},
    ("mace", "grade"): {"n_restarts": 2},
    ("glad", "grade"): {"tol": 1e-10, "calibrated": False},
    ("latent_score", "grade"): {},
    ("latent_score", "preference"): {},
    ("latent_score", "ranking"): {},
    ("crowd_bt", "preference"): {"tol": 1e-9},
    ("multinomial_preference", "preference"): {"tol": 1e-9},
    ("em_elo", "preference"): {},
    ("crowd_agg", "preference"): {},
    ("crowd_agg", "ranking"): {},
    ("plackett_luce", "ranking"): {"tol": 1e-10},
    ("mallows", "ranking"): {},
}
"""Methods and kinds with parameters for a comparison with the plain fit."""

ARENAS = ("crowd_bt", "multinomial_preference")
"""Methods that also go over one query in parts by annotator."""

OTHER_STEPS = ("glad", "crowd_bt", "multinomial_preference")
"""Methods that take other steps in parts, to the same maximum."""

BRIEF = {
    "glad": {"max_iter": 8},
    "mace": {"n_restarts": 1, "max_iter": 8},
    "dawid_skene": {"max_iter": 8},
    "latent_score": {"max_iter": 4},
}
"""Parameters for comparisons of bits where a fit to the end would take long."""

CASES = [pytest.param(name, kind, id=f"{name}-{kind}") for name, kind in METHODS]


def judgments_of(kind, name="", n_queries=20):
    if kind == "grade":
        return some_grades(200 if name == "glad" else 600)
    return some_preferences(n_queries=n_queries) if kind == "preference" else some_rankings()


def test_every_method_in_parts_is_here():
    in_parts = {
        (name, kind)
        for name in names("aggregator")
        if hasattr(method_class("aggregator", name), "over_blocks")
        for kind in method_class("aggregator", name).kinds
    }
    assert in_parts == set(METHODS) | {("crowd_agg", "grade")}


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), n_parts=st.integers(1, 9))
def test_memory_and_streaming_agree_to_the_bit(name, kind, data, n_parts):
    rows = data.draw(ROWS[kind])
    method, cut = make("aggregator", name, BRIEF.get(name, {})), CutJudgments(KINDS[kind].from_rows(rows), n_parts)
    assert_same_bits(fitted(method, cut, InMemory()), fitted(method, cut, Streamed()))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_dask_agrees_to_the_bit_in_blocks_of_any_size(name, kind, client, tmp_path):
    method = make("aggregator", name, BRIEF.get(name, {}))
    packed = pack_judgments([judgments_of(kind, name)], tmp_path / "packed", part_rows=40)
    assert_same_bits(fitted(method, packed, InMemory()), fitted(method, packed, Dask(client, block=4)))


@pytest.mark.parametrize("name", ARENAS)
def test_dask_agrees_to_the_bit_on_an_arena(name, client, tmp_path):
    method = make("aggregator", name)
    packed = pack_judgments([some_preferences(600, 1)], tmp_path / "packed", part_rows=100, by="annotator")
    assert_same_bits(fitted(method, packed, InMemory()), fitted(method, packed, Dask(client, block=2)))


@pytest.mark.parametrize(
    ("name", "kind", "by"),
    [(*case, "query") for case in METHODS] + [(name, "preference", "annotator") for name in ARENAS],
)
def test_parts_give_the_plain_fit(name, kind, by):
    method = make("aggregator", name, METHODS[name, kind])
    judgments = judgments_of(kind, name, 20 if by == "query" else 1)
    plain, found = plainly(method, judgments), fitted(method, CutJudgments(judgments, 5, by), InMemory())
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    if plain.std_error is not None:
        np.testing.assert_allclose(found.std_error, plain.std_error, rtol=1e-7)
    if plain.grade is not None:
        assert (found.grade == plain.grade).all()
    if plain.probabilities is not None:
        np.testing.assert_allclose(found.probabilities, plain.probabilities, rtol=1e-9, atol=1e-9)
    if name not in OTHER_STEPS and name != "plackett_luce":
        assert found.trace.n_iter == plain.trace.n_iter
    if plain.learned is not None:
        assert set(found.learned[1]) >= set(plain.learned[1])
        for own, values in plain.learned[1].items():
            if name != "glad":
                np.testing.assert_allclose(found.learned[1][own], values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "kind"), [case for case in METHODS if case[0] not in (*OTHER_STEPS, "mace")])
def test_annotators_are_judged_as_in_the_plain_fit(name, kind):
    method, judgments = make("aggregator", name, METHODS[name, kind]), judgments_of(kind, name)
    plain, found = plainly(method, judgments), fitted(method, CutJudgments(judgments, 3), InMemory())
    np.testing.assert_allclose(found.quality.quality, plain.quality.quality, atol=1e-3)
    np.testing.assert_array_equal(found.quality.n_judgments, plain.quality.n_judgments)


@pytest.mark.parametrize(
    "params", [{"n_exact": 3, "max_iter": 20}, {"distance": "cayley", "n_exact": 3, "max_iter": 8}]
)
def test_sampled_queries_draw_the_same_in_every_pass(params):
    method, rankings = make("aggregator", "mallows", params), some_rankings()
    cut = CutJudgments(rankings, 15)
    found = fitted(method, cut, InMemory())
    assert_same_bits(found, fitted(method, cut, Streamed()))
    assert np.corrcoef(found.scores, plainly(method, rankings).scores)[0, 1] > 0.99


@pytest.mark.parametrize(
    "params", [{"model": "confusion"}, {"min_quality": 0.6}, {"model": "confusion", "min_quality": 0.5}]
)
def test_em_elo_in_parts_has_matrices_and_a_least_quality(params):
    method, preferences = make("aggregator", "em_elo", params), some_preferences(ties=0.2)
    plain, cut = plainly(method, preferences), CutJudgments(preferences, 5)
    found = fitted(method, cut, InMemory())
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    assert found.trace.n_iter == plain.trace.n_iter
    assert_same_bits(found, fitted(method, cut, Streamed()))


def test_two_levels_split_all_items_together():
    method, grades = make("aggregator", "latent_score"), some_grades(600, n_levels=2)
    plain, found = plainly(method, grades), fitted(method, CutJudgments(grades, 5), InMemory())
    assert (found.grade == plain.grade).all()
    assert 0.2 < found.grade.mean() < 0.8


KNOWN = {"query": [0, 3, 7], "item": [0, 1, 2], "grade": [1, 3, 0]}


@pytest.mark.parametrize("name", ["dawid_skene", "naive_bayes", "mace", "glad"])
def test_known_items_in_parts_are_those_of_the_plain_fit(name):
    method, grades = make("aggregator", name, METHODS[name, "grade"]), some_grades(300)
    plain = plainly(method, grades, known=KNOWN)
    found = fitted(method, CutJudgments(grades, 9), InMemory(), known=KNOWN)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    assert found.frame().filter(query=3, item=1)["grade"].to_list() == [3]
    if name == "dawid_skene":
        np.testing.assert_allclose(found.quality.quality, plain.quality.quality, atol=1e-9)


@pytest.mark.parametrize(
    ("known", "complaint"),
    [
        ({"query": [0], "item": [99], "grade": [1]}, "item 99 of query 0 .* is not among the judged items"),
        ({"query": [0], "item": [0], "grade": [17]}, "outside the scale 0, 1, 2, 3"),
        ({"query": [0, 0], "item": [0, 0], "grade": [1, 2]}, "two different known grades"),
        ({"item": [0], "grade": [1]}, "without a query column does not fit 20 queries"),
    ],
)
def test_known_items_that_cannot_be_used_are_refused(known, complaint):
    method, cut = make("aggregator", "dawid_skene"), CutJudgments(some_grades(300), 20)
    with pytest.raises(JudgmentError, match=complaint):
        fitted(method, cut, InMemory(), known=known)


def test_ties_have_a_parameter_of_all_parts():
    method = make("aggregator", "crowd_bt", {"ties": "davidson", "tol": 1e-9})
    preferences = some_preferences(ties=0.3)
    plain, cut = plainly(method, preferences), CutJudgments(preferences, 4)
    found = fitted(method, cut, InMemory())
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.std_error, plain.std_error, rtol=1e-7)
    assert found.estimates["tie"] == pytest.approx(plain.estimates["tie"], rel=1e-9)
    assert_same_bits(found, fitted(method, cut, Streamed()))
    np.testing.assert_array_equal(found.quality.n_judgments, plain.quality.n_judgments)
    with pytest.raises(ParameterError, match="packed by query"):
        method.over_blocks(CutJudgments(some_preferences(100, 1, ties=0.3), 2, "annotator"))


def test_strengths_of_preferences_make_the_same_levels_in_parts():
    some = some_preferences(900, ties=0.1)
    strength = np.where(some.outcome == 0, 0, 1 + np.arange(900) % 3).astype(float)
    preferences, method = replace(some, strength=strength), make("aggregator", "latent_score")
    plain, found = plainly(method, preferences), fitted(method, CutJudgments(preferences, 4), InMemory())
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    assert len(found.estimates["cuts"]) == 6


def test_a_trusted_annotator_sets_the_scale_in_parts_too():
    method, preferences = make("aggregator", "latent_score"), some_preferences()
    plain = plainly(method, preferences, trusted=[11])
    found = fitted(method, CutJudgments(preferences, 4), InMemory(), trusted=[11])
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "params", "complaint"),
    [
        ({"known": KNOWN}, {}, "takes no known="),
        ({"control": ["length"]}, {}, "takes no control="),
        ({"trusted": [0]}, {"taste": True}, "taste=False"),
    ],
)
def test_what_latent_score_cannot_do_in_parts_is_refused(given, params, complaint):
    with pytest.raises(ParameterError, match=complaint):
        make("aggregator", "latent_score", params).over_blocks(CutJudgments(some_preferences(100), 2), **given)


STARTED = [case for case in METHODS if "start" in method_class("aggregator", case[0]).fit.__annotations__]


@pytest.mark.parametrize(("name", "kind"), STARTED)
def test_a_warm_start_in_parts_ends_where_the_plain_one_does(name, kind):
    method, judgments = make("aggregator", name, METHODS[name, kind]), judgments_of(kind, name)
    # half of the judgments: new ones, new items perhaps, and annotators known before
    former = plainly(method, judgments.select(np.arange(0, len(judgments), 2)))
    plain = plainly(method, judgments, start=former)
    cut = CutJudgments(judgments, 4)
    found = fitted(method, cut, InMemory(), start=former)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-7, atol=1e-7)
    assert_same_bits(found, fitted(method, cut, Streamed(), start=former))
    again = fitted(method, cut, InMemory(), start=found)
    assert again.trace.n_iter <= found.trace.n_iter
