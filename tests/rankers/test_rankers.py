"""What every ranker promises, taken from the registry; what cannot hold is skipped by name, with the reason."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import crowdrank as cr
from crowdrank.rankers import linear, training_rows
from crowdrank.rankers.linear import LinearRanker
from crowdrank.registry import card, make, method_class, names

ALONE = "a row without an item is an item of its own, so that twice the row is two items"
QUERIES = "a score needs the query of each row"

UNSCORED = {"check_fit_score_takes_y": QUERIES, "check_pipeline_consistency": QUERIES}
EXPECTED_TO_FAIL = {
    "list_mle": {
        "check_sample_weight_equivalence_on_dense_data": ALONE,
        "check_sample_weight_equivalence_on_sparse_data": ALONE,
    },
}
"""Checks of scikit-learn that do not apply to a ranker, with the reason."""

RANKERS = names("ranker")
LINEAR = [name for name in RANKERS if issubclass(method_class("ranker", name), LinearRanker)]
VARIANTS = [*((name, {}) for name in LINEAR), ("rank_svm", {"loss": "logistic"}), ("rank_svm", {"balance": "queries"})]


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_query")
def test_checks_of_scikit_learn(name):
    expected = UNSCORED | EXPECTED_TO_FAIL.get(name, {})
    failed = {}
    for estimator, check in estimator_checks_generator(make("ranker", name), mark=None):
        what = getattr(check, "func", check).__name__
        try:
            check(estimator)
        except pytest.skip.Exception:
            continue
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                failed[what] = error
    assert set(failed) == set(expected), failed


@pytest.mark.parametrize("name", RANKERS)
def test_the_registry_knows_it(name):
    found = card("ranker", name)
    assert found.kinds == ("features",)
    assert found.references
    ranker = make("ranker", name)
    assert type(clone(ranker)) is type(ranker)
    assert set(ranker.get_params()) == {parameter.name for parameter in found.parameters}
    assert getattr(cr.rankers, type(ranker).__name__) is type(ranker)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
@pytest.mark.parametrize("scale", ["overall", "query", "none"])
def test_order_of_rows_and_names_of_queries_do_not_matter(name, params, scale, rows):
    ranker = make("ranker", name, params | {"scale": scale})
    ranker.fit(rows.X, rows.y, qid=rows.qid)
    shuffle = np.random.default_rng(1).permutation(len(rows.y))
    qid = np.array([f"query {97 * query % 31}" for query in rows.qid])
    again = clone(ranker).fit(rows.X[shuffle], rows.y[shuffle], qid=qid[shuffle])
    np.testing.assert_allclose(again.weights_, ranker.weights_, atol=1e-7)
    expected = ranker.predict(rows.X, qid=rows.qid)
    np.testing.assert_allclose(again.predict(rows.X[shuffle], qid=qid[shuffle]), expected[shuffle], atol=1e-6)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
@pytest.mark.parametrize("scale", ["overall", "query"])
def test_a_row_twice_is_weight_two(name, params, scale, rows):
    ranker = make("ranker", name, params | {"scale": scale, "tol": 1e-9})
    rng = np.random.default_rng(2)
    # some items have several rows with grades of their own to begin with
    again = np.sort(np.concatenate([np.arange(len(rows.y)), rng.choice(len(rows.y), 40)]))
    X, qid, item = rows.X[again], rows.qid[again], again
    y = np.clip(rows.y[again] + rng.integers(-1, 2, len(again)), 0, 3)
    times = rng.integers(0, 4, len(again))
    times[np.unique(qid, return_index=True)[1]] = 1
    weighted = clone(ranker).fit(X, y, qid=qid, item=item, sample_weight=times)
    repeated = np.repeat(np.arange(len(again)), times)
    ranker.fit(X[repeated], y[repeated], qid=qid[repeated], item=item[repeated])
    np.testing.assert_allclose(weighted.weights_, ranker.weights_, atol=1e-8)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_a_constant_weight_of_rows_is_a_weight_of_the_query(name, params, rows):
    ranker = make("ranker", name, params | {"tol": 1e-9})
    weighted = clone(ranker).fit(rows.X, rows.y, qid=rows.qid, sample_weight=np.where(rows.qid < 7, 3.0, 1.0))
    first = np.flatnonzero(rows.qid < 7)
    all_rows = np.concatenate([np.arange(len(rows.y)), first, first])
    qid = np.concatenate([rows.qid, rows.qid[first] + 100, rows.qid[first] + 200])
    ranker.fit(rows.X[all_rows], rows.y[all_rows], qid=qid)
    np.testing.assert_allclose(weighted.weights_, ranker.weights_, atol=1e-8)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_only_ratios_of_weights_matter(name, params, rows):
    weight = np.random.default_rng(3).uniform(0.5, 2, len(rows.y))
    ranker = make("ranker", name, params | {"tol": 1e-9}).fit(rows.X, rows.y, qid=rows.qid, sample_weight=weight)
    tenfold = clone(ranker).fit(rows.X, rows.y, qid=rows.qid, sample_weight=10 * weight)
    np.testing.assert_allclose(tenfold.weights_, ranker.weights_, atol=1e-8)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_reversed_targets_reverse_the_weights_of_pairs(name, params, rows):
    if name != "rank_svm":
        pytest.skip("the chance of being the best is not that of being the worst")
    ranker = make("ranker", name, params).fit(rows.X, rows.y, qid=rows.qid)
    turned = clone(ranker).fit(rows.X, 3 - rows.y, qid=rows.qid)
    np.testing.assert_allclose(turned.weights_, -ranker.weights_, atol=1e-6)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_many_features_are_solved_by_conjugate_gradients(name, params, rows, monkeypatch):
    ranker = make("ranker", name, params | {"tol": 1e-8}).fit(rows.X, rows.y, qid=rows.qid)
    monkeypatch.setattr(linear, "_MAX_DIRECT_FEATURES", 0)
    inexact = clone(ranker).fit(rows.X, rows.y, qid=rows.qid)
    np.testing.assert_allclose(inexact.weights_, ranker.weights_, atol=1e-7)
    monkeypatch.setattr(training_rows, "_READY_CELLS", 0)
    thin = clone(ranker).fit(sparse.csr_matrix(rows.X), rows.y, qid=rows.qid)
    np.testing.assert_allclose(thin.weights_, ranker.weights_, atol=1e-7)


@pytest.mark.parametrize("name", LINEAR)
def test_scaling_travels_with_the_ranker(name, rows, tmp_path):
    ranker = make("ranker", name).fit(rows.X, rows.y, qid=rows.qid)
    scores = ranker.predict(rows.X)
    # one row alone, and units of measurement that another fit would take off again
    assert ranker.predict(rows.X[5:6])[0] == pytest.approx(scores[5])
    bent = clone(ranker).fit(1000 * rows.X + 3, rows.y, qid=rows.qid)
    np.testing.assert_allclose(bent.predict(1000 * rows.X + 3), scores, atol=1e-6)
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(cr.load_ranker(tmp_path / "model").predict(rows.X), scores)


@pytest.mark.parametrize("name", LINEAR)
def test_scaling_within_queries_leaves_their_levels_aside(name, rows):
    ranker = make("ranker", name, {"scale": "query"}).fit(rows.X, rows.y, qid=rows.qid)
    moved = rows.X * (1 + rows.qid % 3)[:, None] + rows.qid[:, None]
    np.testing.assert_allclose(ranker.predict(moved, qid=rows.qid), ranker.predict(rows.X, qid=rows.qid), atol=1e-9)
    one = rows.qid == 4
    np.testing.assert_allclose(ranker.predict(rows.X[one]), ranker.predict(rows.X, qid=rows.qid)[one])


@pytest.mark.parametrize("name", LINEAR)
def test_constant_features_and_those_of_the_query_weigh_nothing(name, rows):
    X = np.column_stack([rows.X, rows.qid])
    for scale in ("overall", "query", "none"):
        ranker = make("ranker", name, {"scale": scale}).fit(X, rows.y, qid=rows.qid)
        assert ranker.weights_[3] == pytest.approx(0, abs=1e-9)
        assert ranker.weights_[4] == pytest.approx(0, abs=1e-9)
        assert (abs(ranker.weights_[:2]) > 0.01).all()


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ridge": 0.0}, "ridge=0.0 must be above 0; use a small one such as 1e-9 for none"),
        ({"ridge": float("nan")}, "ridge=nan must be above 0"),
        ({"tol": 0.0}, "tol=0.0 must be above 0"),
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"scale": "log"}, "scale='log' is not known"),
    ],
)
def test_parameters_are_checked_when_fitting(name, params, message, rows):
    # the registry refuses some of these itself
    ranker = type(make("ranker", name))(**params)
    with pytest.raises(cr.errors.ParameterError, match=message):
        ranker.fit(rows.X, rows.y, qid=rows.qid)


@pytest.mark.parametrize("name", LINEAR)
def test_too_few_steps_warn_and_keep_the_last(name, rows):
    with pytest.warns(cr.errors.ConvergenceWarning, match=f"{name} did not converge in 1 steps"):
        ranker = make("ranker", name, {"max_iter": 1}).fit(rows.X, rows.y, qid=rows.qid)
    assert not ranker.trace_.converged
    assert np.isfinite(ranker.predict(rows.X)).all()


@pytest.mark.parametrize("name", LINEAR)
def test_separable_rows_have_finite_weights(name):
    X = np.arange(12.0)[:, None]
    ranker = make("ranker", name, {"ridge": 1e-6}).fit(X, np.arange(12), qid=np.arange(12) // 4)
    assert np.isfinite(ranker.weights_).all()
    assert (np.diff(ranker.predict(X)) > 0).all()


@pytest.mark.parametrize("name", LINEAR)
def test_importance_names_the_weightiest_first(name, rows):
    ranker = make("ranker", name).fit(rows.X, rows.y, qid=rows.qid)
    found = ranker.importance()
    assert found.columns == ["feature", "weight"]
    assert set(found["feature"][:2]) == {"1", "2"}
    assert found["weight"].abs().is_sorted(descending=True)
