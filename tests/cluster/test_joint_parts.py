"""joint_annotators in parts: the same bits in memory, streamed and on Dask, near the plain fit."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cluster.cut_judgments import CutJudgments
from tests.cluster.some_judgments import some_grades, some_preferences
from tests.strategies import preference_rows

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster.dask_executor import Dask
from crowdrank.cluster.executor import InMemory, Streamed
from crowdrank.cluster.packing import pack_judgments
from crowdrank.data.parted import NumberedParts
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.joint import JointAnnotators
from crowdrank.models.joint_annotators import joint_annotators

FORMS = [
    {},
    {"item_effects": False},
    {"item_effects": False, "loss": "hinge", "max_iter": 5},
]


def features_of(preferences, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    items = preferences.items
    columns = {f"f{k}": rng.normal(size=len(items)) for k in range(n_features)}
    return cr.Features.from_frame(pl.DataFrame({"query": items.query_ids(), "item": items.ids, **columns}))


def in_parts_by(executor, method, parts, features, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return executor.run(method.over_blocks(parts, features=features, **given), NumberedParts(parts))


def assert_same_fit(one, other):
    assert (one.consensus.scores == other.consensus.scores).all()
    assert (one.quality.quality == other.quality.quality).all()
    assert one.consensus.trace == other.consensus.trace
    assert (one.pairs.probability == other.pairs.probability).all()
    assert one.ranker is None or (one.ranker.weights_ == other.ranker.weights_).all()


@pytest.mark.parametrize("params", FORMS, ids=str)
@pytest.mark.parametrize("with_features", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_parts_give_the_plain_fit(params, with_features, weighted):
    preferences, method = some_preferences(ties=0.1), JointAnnotators(**params)
    if weighted:
        weight = np.random.default_rng(3).uniform(0.5, 2.0, len(preferences))
        preferences = replace(preferences, weight=weight)
    features = features_of(preferences) if with_features else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = method.fit(preferences, features)
    found = in_parts_by(InMemory(), method, CutJudgments(preferences, 5), features)
    np.testing.assert_allclose(found.consensus.scores, plain.consensus.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.quality.quality, plain.quality.quality, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.quality.n_judgments, plain.quality.n_judgments, rtol=1e-12)
    np.testing.assert_allclose(found.pairs.probability, plain.pairs.probability, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(found.pairs.left, plain.pairs.left)
    assert found.trace.n_iter == plain.trace.n_iter
    assert (found.n_items, found.n_queries, found.n_unjudged) == (plain.n_items, plain.n_queries, plain.n_unjudged)
    if with_features:
        np.testing.assert_allclose(found.ranker.weights_, plain.ranker.weights_, rtol=1e-8, atol=1e-9)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=preference_rows(), n_parts=st.integers(1, 9), item_effects=st.booleans())
def test_memory_and_streaming_agree_to_the_bit(rows, n_parts, item_effects):
    preferences = cr.Preferences.from_rows(rows)
    method, cut = JointAnnotators(item_effects=item_effects, max_iter=5), CutJudgments(preferences, n_parts)
    features = features_of(preferences)
    one = in_parts_by(InMemory(), method, cut, features)
    assert_same_fit(one, in_parts_by(Streamed(), method, cut, features))


@pytest.mark.parametrize("params", FORMS, ids=str)
def test_dask_agrees_to_the_bit(params, client, tmp_path, monkeypatch):
    monkeypatch.setattr(joint_annotators, "_MOST_SPREAD_STEPS", 2)
    preferences, method = some_preferences(300), JointAnnotators(**{"max_iter": 2, **params})
    packed = pack_judgments([preferences], tmp_path / "packed", part_rows=60)
    features = features_of(preferences)
    one = in_parts_by(InMemory(), method, packed, features)
    assert_same_fit(one, in_parts_by(Dask(client, block=2), method, packed, features))


def test_pairs_beyond_what_is_kept_are_left_out(monkeypatch):
    monkeypatch.setattr(joint_annotators, "_MOST_PAIRS", 10)
    preferences = some_preferences(300)
    found = in_parts_by(InMemory(), JointAnnotators(tol=0.2), CutJudgments(preferences, 3), features_of(preferences))
    assert found.pairs is None
    assert np.isfinite(found.consensus.scores).all()


def test_a_trusted_annotator_decides_the_side_in_parts():
    preferences, method = some_preferences(), JointAnnotators()
    features = features_of(preferences)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = method.fit(preferences, features, trusted=[0])
    found = in_parts_by(InMemory(), method, CutJudgments(preferences, 3), features, trusted=[0])
    np.testing.assert_allclose(found.consensus.scores, plain.consensus.scores, rtol=1e-9, atol=1e-9)


def test_train_goes_in_parts_over_many_packed_preferences(client, tmp_path, monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    preferences = some_preferences(300)
    packed = pack_judgments([preferences], tmp_path / "packed", part_rows=100)
    features, wheres = features_of(preferences), ({}, {"stream": True}, {"cluster": client})
    brief = {"params": {"tol": 0.2}}
    fits = [cr.train(packed.path, features, joint="jam", **brief, **where) for where in wheres]
    for fit in fits[1:]:
        assert_same_fit(fits[0], fit)
    assert fits[0].ranker.feature_names_in_.tolist() == ["f0", "f1", "f2"]
    with pytest.raises(ParameterError, match="takes no known= in parts"):
        cr.train(packed, features, joint="jam", known={"query": [0], "item": [0], "grade": [1]})
    with pytest.raises(ParameterError, match="finds clusters among all pairs at once"):
        cr.train(packed, features, joint="vrjam")
    grades = pack_judgments([some_grades()], tmp_path / "grades", part_rows=100)
    with pytest.raises(JudgmentError, match="as_preferences"):
        cr.train(grades, features, joint="jam")


def test_whether_features_overrule_the_preferences_is_looked_at_in_the_largest_part(monkeypatch):
    shares, check = [], joint_annotators.overruled_share

    def kept(*args, **how):
        shares.append(check(*args, **how))
        return shares[-1]

    monkeypatch.setattr(joint_annotators, "overruled_share", kept)
    preferences, method = some_preferences(2000), JointAnnotators(item_effects=False)
    features = features_of(preferences)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method.fit(preferences, features)
    for n_parts in (1, 3):
        in_parts_by(InMemory(), method, CutJudgments(preferences, n_parts), features)
    plain, whole, part = shares
    assert whole.n_pairs == plain.n_pairs > part.n_pairs > 0
    assert whole.observed == pytest.approx(plain.observed)
    assert whole.expected == pytest.approx(plain.expected)
