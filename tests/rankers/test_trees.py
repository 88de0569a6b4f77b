"""Trees as plain arrays give what LightGBM gives, to the last bit, and its text is read by a strict parser."""

import pickle
import re
import subprocess
import sys

import lightgbm
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import crowdrank as cr
from crowdrank.datasets import load
from crowdrank.rankers import LambdaMART
from crowdrank.rankers.lambda_mart import Trees
from crowdrank.rankers.training_rows import Matrix

ZERO = float(np.float32(1e-35))


def made(seed=0, n=1500, n_features=5):
    """Rows with zeros, holes, whole numbers and huge values that trees can learn from."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * [1, 1, 1e-36, 1e30, 1][:n_features]
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, -1] = np.round(X[:, -1])
    y = np.clip(rng.integers(0, 3, n) + (np.nan_to_num(X[:, 0]) > 0), 0, 3)
    return X, y, np.arange(n) // 30


def odd_rows(thresholds, n_features, seed=0, n=20_000):
    """Rows of thresholds, their neighbours, and numbers at which something changes."""
    rng = np.random.default_rng(seed)
    finite = thresholds[np.isfinite(thresholds)]
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, ZERO, -ZERO, 1e-36, -1e-36, 5e-324, 1e308, -1e308]
    near = [finite, np.nextafter(finite, np.inf), np.nextafter(finite, -np.inf), np.nextafter([ZERO, -ZERO], np.inf)]
    return rng.choice(np.concatenate([*near, odd]), size=(n, n_features))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"lambdas": "own"},
        {"n_trees": 60, "n_leaves": 2},
        {"n_leaves": 400, "min_leaf": 1, "n_trees": 20},
        {"min_leaf": 10_000},
        {"feature_share": 0.4, "ridge": 3.0, "sigma": 2.0, "n_threads": 2},
    ],
)
@pytest.mark.filterwarnings("ignore:lambda_mart found nothing to split")
def test_sums_equal_lightgbm_to_the_last_bit(params):
    X, y, qid = made()
    ranker = LambdaMART(**{"n_trees": 30, "n_threads": 1} | params).fit(X, y, qid=qid)
    assert len(ranker.trees_) == ranker.booster_.num_trees() == ranker.n_trees_
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), odd_rows(ranker.trees_.threshold, 5)):
        np.testing.assert_array_equal(ranker.trees_.sums(Matrix(rows)), ranker.booster_.predict(rows))
    np.testing.assert_allclose(ranker.trees_.gain, ranker.booster_.feature_importance("gain"), rtol=1e-6)
    thin = sparse.csr_matrix(np.nan_to_num(X))
    np.testing.assert_array_equal(ranker.predict(thin), ranker.booster_.predict(thin))
    np.testing.assert_array_equal(ranker.predict(thin), ranker.predict(thin.toarray()))


def test_trees_that_split_missing_values_from_the_others():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 1)) < 0.5, np.nan, 1.0 + rng.integers(0, 2, (600, 1)))
    ranker = LambdaMART(n_trees=5, n_threads=1).fit(X, np.isnan(X[:, 0]) * 1.0, qid=np.arange(600) // 20)
    rows = np.array([[np.nan], [1.0], [2.0], [0.0], [np.inf], [1e308]])
    np.testing.assert_array_equal(ranker.trees_.sums(Matrix(rows)), ranker.booster_.predict(rows))


@pytest.mark.parametrize("options", [{"zero_as_missing": True}, {"use_missing": False}])
def test_other_notions_of_missing(options):
    X, y, _ = made()
    options = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, **options}
    booster = lightgbm.train(options, lightgbm.Dataset(X, y, group=[30] * 50), 20)
    trees = Trees.from_lightgbm(booster.model_to_string().encode())
    for rows in (X, odd_rows(trees.threshold, 5)):
        np.testing.assert_array_equal(trees.sums(Matrix(rows)), booster.predict(rows))


def test_the_best_trees_are_kept():
    X, y, qid = made()
    held = qid >= 40
    ranker = LambdaMART(n_trees=60, patience=3, n_threads=1)
    ranker.fit(X[~held], y[~held], qid=qid[~held], eval_set=(X[held], y[held]), eval_qid=qid[held])
    assert len(ranker.trees_) == ranker.n_trees_ < 60
    np.testing.assert_array_equal(ranker.predict(X), ranker.booster_.predict(X))


@pytest.mark.data
@pytest.mark.parametrize("name", ["lightgbm-rank-sample", "letor-mq2008"])
def test_sums_equal_lightgbm_on_public_sets(name, data_folder):
    features = load(name, folder=data_folder).features
    ranker = LambdaMART(n_trees=50).fit(features)
    rows = Matrix(features.matrix)
    np.testing.assert_array_equal(ranker.trees_.sums(rows), ranker.booster_.predict(features.matrix))
    odd = odd_rows(ranker.trees_.threshold, features.matrix.shape[1], n=2000)
    np.testing.assert_array_equal(ranker.trees_.sums(Matrix(odd)), ranker.booster_.predict(odd))


@pytest.fixture(scope="module")
def text():
    """LightGBM's text of a small model."""
    X, y, qid = made()
    ranker = LambdaMART(n_trees=3, n_leaves=4, n_threads=1).fit(X, y, qid=qid)
    return ranker.booster_.model_to_string().encode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (rb"^tree\n", b"", "not in LightGBM's format"),
        (rb"version=v4", b"version=v9", "not in LightGBM's format"),
        (rb"\nend of trees\n", b"\n", "not in LightGBM's format"),
        (rb"num_class=1", b"num_class=3", "num_class other than 1"),
        (rb"max_feature_idx=4", b"max_feature_idx=99999999", "does not describe 100000000 features"),
        (rb"Tree=1", b"Tree=7", "tree 1 is not where it should be"),
        (rb"num_leaves=4", b"num_leaves=5", "other split_feature than 4 numbers"),
        (rb"num_leaves=4", b"num_leaves=999999999999", "num_leaves '999999999999'"),
        (rb"num_leaves=4", b"num_leaves=0", "other split_feature than -1"),
        (rb"num_cat=0", b"num_cat=1", "categories or linear leaves"),
        (rb"is_linear=0", b"is_linear=1", "categories or linear leaves"),
        (rb"decision_type=\d+", b"decision_type=1", "splits on categories"),
        (rb"left_child=\S+", b"left_child=0", "child is not below it"),
        (rb"left_child=\S+", b"left_child=-9", "child is not below it"),
        (rb"right_child=\S+ (\S+)", rb"right_child=\1 \1", "two splits share a child|is not below it"),
        (rb"split_feature=\d+", b"split_feature=5", "not among the 5"),
        (rb"split_feature=\d+", b"split_feature=-1", "not among the 5"),
        (rb"leaf_value=\S+", b"leaf_value=nan", "other leaf_value than 4 numbers"),
        (rb"leaf_value=\S+", b"leaf_value=inf", "values that are missing or too large"),
        (rb"leaf_value=\S+", b"leaf_value=1e+308", "values that are missing or too large"),
        (rb"threshold=\S+", b"threshold=1_0", "other threshold than 3 numbers"),
        (rb"threshold=(\S+)", rb"threshold=\1 \1", "other threshold than 3 numbers"),
        (rb"shrinkage=0.1", b"shrinkage=0.1\nshrinkage=0.1", "appears twice"),
        (rb"shrinkage=0.1", b"shrinkage", "not a name and a value"),
    ],
)
def test_what_is_not_as_lightgbm_writes_it_is_refused(text, old, new, message):
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    with pytest.raises(ValueError, match=message):
        Trees.from_lightgbm(changed)


def test_ranking_needs_no_lightgbm(tmp_path):
    X, y, qid = made()
    ranker = LambdaMART(n_trees=5, n_threads=1).fit(X, y, qid=qid)
    ranker.save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    script = (
        "import sys; sys.modules['lightgbm'] = None; import numpy as np, crowdrank as cr;"
        "ranker = cr.load_ranker(sys.argv[1] + '/model'); ranker.importance();"
        "np.save(sys.argv[1] + '/scores.npy', ranker.predict(np.load(sys.argv[1] + '/rows.npy')))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), ranker.booster_.predict(X))


def test_queries_longer_than_lightgbm_takes():
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 2))
    y = np.floor(4 * X[:, 0])
    ranker = LambdaMART(n_trees=3, n_threads=1).fit(X, y, qid=np.zeros(len(y)))
    assert np.corrcoef(ranker.predict(X), y)[0, 1] > 0.8
    with pytest.raises(cr.errors.ParameterError, match=r"cannot take a query of 20,000 rows; use lambdas='auto', or"):
        LambdaMART(lambdas="lightgbm").fit(X, y, qid=np.zeros(len(y)))


def test_what_lightgbm_refuses_is_said_in_our_words():
    X, y = np.random.default_rng(0).random((30, 2)), np.arange(30) % 3
    with pytest.raises(cr.errors.ParameterError, match="no feature can be split with min_leaf=20 items"):
        LambdaMART(lambdas="own", min_leaf=20, n_threads=1).fit(X, y, qid=np.zeros(len(y)))


def test_a_fitted_ranker_is_cloned_and_pickled_whole():
    X, y, qid = made()
    ranker = LambdaMART(n_trees=3, n_threads=1).fit(X, y, qid=qid)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(again.booster_.predict(X), ranker.predict(X))
    assert not hasattr(clone(again), "trees_")


@pytest.mark.filterwarnings("ignore:lambda_mart found nothing to split")
def test_lightgbm_says_nothing_on_standard_output(capfd):
    X, y, qid = made()
    for params in ({"min_leaf": 10_000}, {"n_leaves": 2, "learning_rate": 1e-6}, {"lambdas": "own", "ridge": 1e9}):
        LambdaMART(n_trees=3, n_threads=1, **params).fit(np.c_[X, np.ones(len(X))], y, qid=qid).predict(
            np.c_[X, np.ones(len(X))]
        )
    assert capfd.readouterr().out == ""
