"""Rankers of other libraries, given as objects; their parameters by their own names; sizes of queries."""

import lightgbm
import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.rankers import LambdaMART, ListMLE, ListNet, RankSVM
from crowdrank.rankers.foreign_ranker import ForeignRanker
from crowdrank.registry import make


def others():
    """Objects of other libraries, those that are not installed left out."""
    yield Ridge()
    yield lightgbm.LGBMRanker(n_estimators=10, verbosity=-1, min_child_samples=2)
    try:
        import xgboost

        yield xgboost.XGBRanker(n_estimators=10)
    except ImportError:
        pass
    try:
        import catboost

        yield catboost.CatBoostRanker(iterations=20, verbose=False, allow_writing_files=False)
    except ImportError:
        pass


@pytest.mark.parametrize("estimator", list(others()), ids=lambda one: type(one).__name__)
def test_an_object_is_trained_as_a_ranker(estimator, rows):
    features = cr.Features.from_arrays(rows.qid, np.arange(len(rows.y)), rows.X, grade=rows.y)
    fit = cr.train(None, features, ranker=estimator)
    ranked = cr.rank(fit, features)
    assert cr.evaluate(ranked, features.items.frame().with_columns(grade=rows.y), ["ndcg@10"])["value"][0] > 0.8
    assert fit.ranker.importance().height == 4
    assert not hasattr(estimator, "n_features_in_") or isinstance(fit.ranker, ForeignRanker)
    with pytest.raises(ParameterError, match="which alone can be saved"):
        fit.save("model")


def test_lightgbm_as_an_object_is_lightgbm(rows):
    plain = lightgbm.LGBMRanker(n_estimators=5, verbosity=-1, min_child_samples=2)
    expected = clone(plain).fit(rows.X, rows.y, group=np.bincount(rows.qid)).predict(rows.X)
    found = ForeignRanker(estimator=plain).fit(rows.X, rows.y, qid=rows.qid).predict(rows.X)
    np.testing.assert_allclose(found, expected)


def test_what_is_no_ranker_is_refused_and_failures_are_said_in_a_sentence(rows):
    features = cr.Features.from_arrays(rows.qid, np.arange(len(rows.y)), rows.X, grade=rows.y)
    with pytest.raises(ParameterError, match="int is not a ranker of crowdrank"):
        cr.train(None, features, ranker=3)
    with pytest.raises(ParameterError, match="Ridge could not be fitted"):
        cr.train(None, features, ranker=Ridge(alpha=-1.0))


def test_parameters_of_lightgbm_by_their_own_names(tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(1000, 4)), np.repeat(np.arange(20), 50)
    X[:, 1] = rng.integers(0, 70, 1000)
    y = np.clip(np.round(X[:, 0] + 2 * np.isin(X[:, 1] % 7, [2, 5])), 0, 3)
    names = {
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "monotone_constraints": [1, 0, 0, 0],
        "categorical_feature": [1],
    }
    ranker = LambdaMART(n_estimators=10, num_leaves=15, **names).fit(X, y, qid=qid)
    assert (ranker.n_trees, ranker.n_leaves, ranker.lightgbm) == (10, 15, names)
    assert clone(ranker).get_params() == ranker.get_params()
    assert clone(ranker).set_params(bagging_fraction=0.5).lightgbm["bagging_fraction"] == 0.5
    # categories never seen, missing and negative ones, and fractions
    X[::3, 1], X[1::5, 1], X[2::7, 1], X[4::9, 1] = np.nan, -3, 500, 2.7
    np.testing.assert_array_equal(ranker.predict(X), ranker.booster_.predict(X))
    line = np.zeros((50, 4))
    line[:, 0] = np.linspace(-2, 2, 50)
    assert (np.diff(ranker.predict(line)) >= 0).all()
    ranker.save(tmp_path / "model")
    again = cr.load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    assert again.lightgbm == names
    assert make("ranker", "lambda_mart", {"bagging_fraction": ".8", "reg_lambda": "2"}).get_params()["ridge"] == 2


def test_categories_by_name():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"site": rng.integers(0, 5, 200), "length": rng.normal(size=200)})
    y = (X["site"] == 3).cast(int).to_numpy()
    params = {"n_trees": 5, "categorical_feature": "name:site", "min_data_per_group": 5, "cat_smooth": 1}
    ranker = LambdaMART(**params).fit(X, y, group=[50] * 4)
    assert len(ranker.trees_.category_words)
    with pytest.raises(ParameterError, match="'sites', which is not a feature"):
        LambdaMART(n_trees=5, categorical_feature=["sites"]).fit(X, y, group=[50] * 4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bagging_fracton": 0.5}, "lambda_mart has no parameter 'bagging_fracton', nor has LightGBM; did you mean"),
        ({"objective": "rank_xendcg"}, "objective cannot be set"),
        ({"num_leaves": 3, "n_leaves": 3}, "n_leaves is given twice"),
        ({"reg_lambda": 1.0, "lambda_l2": 1.0}, "given twice, under two of its names"),
    ],
)
def test_names_that_cannot_be_taken(params, message):
    with pytest.raises(ParameterError, match=message):
        LambdaMART(**params)


def test_sizes_of_queries_do_as_well_as_their_ids(rows):
    group = np.bincount(rows.qid)
    for ranker in (ListNet(), ListMLE(), RankSVM(), LambdaMART(n_trees=3, min_leaf=2)):
        expected = clone(ranker).fit(rows.X, rows.y, qid=rows.qid).predict(rows.X)
        frame = pl.DataFrame(rows.X, schema=["a", "b", "c", "d"])
        held = {"eval_set": (frame, rows.y), "eval_group": group}
        found = ranker.fit(frame, rows.y, group=group, **held)
        if not isinstance(ranker, LambdaMART):
            np.testing.assert_allclose(found.predict(frame), expected)
        assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ParameterError, match="qid and group both say"):
        ListNet().fit(rows.X, rows.y, qid=rows.qid, group=group)
    with pytest.raises(ParameterError, match="group must have the number of rows of each query"):
        ListNet().fit(rows.X, rows.y, group=group[:-1])


def test_names_of_rankers_can_be_completed():
    assert {"Auto", "LambdaMART", "ListMLE", "ListNet", "RankSVM", "ndcg_scorer"} <= set(dir(cr.rankers))
    assert all(hasattr(cr.rankers, name) for name in dir(cr.rankers) if name != "LambdaRank")
