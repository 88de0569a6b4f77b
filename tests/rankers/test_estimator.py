"""What the estimator reads: names, frames, features, validation rows, and what it refuses."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.rankers import LambdaMART, ListNet, RankSVM

NAMES = ["length", "age", "clicks", "one"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_kept(frame, rows):
    table = frame(rows.X, columns=NAMES) if frame is pd.DataFrame else frame(rows.X, schema=NAMES)
    ranker = ListNet().fit(table, rows.y, qid=rows.qid)
    assert ranker.feature_names_in_.tolist() == NAMES
    assert sorted(ranker.importance()["feature"]) == sorted(NAMES)
    np.testing.assert_allclose(ranker.predict(table), ListNet().fit(rows.X, rows.y, qid=rows.qid).predict(rows.X))
    turned = table[NAMES[::-1]]
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(turned)


def test_names_stand_in_messages(rows):
    rows.X[4, 1] = np.nan
    with pytest.raises(JudgmentError, match=r"column 2 \('age'\) of X is NaN in row 5; give it a number"):
        ListNet().fit(pl.DataFrame(rows.X, schema=NAMES), rows.y, qid=rows.qid)


def features(rows, names=NAMES):
    """The rows as features, with the grades that came with them."""
    item = [f"i{number:03d}" for number in range(len(rows.y))]
    return cr.Features.from_arrays([f"q{q:02d}" for q in rows.qid], item, rows.X, names=names, grade=rows.y)


@pytest.mark.parametrize("scale", ["overall", "query"])
def test_features_bring_queries_names_and_grades(rows, scale):
    given = features(rows)
    ranker = ListNet(scale=scale).fit(given)
    plain = ListNet(scale=scale).fit(rows.X, rows.y, qid=rows.qid)
    assert ranker.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(ranker.predict(given), plain.predict(rows.X, qid=rows.qid), atol=1e-9)
    with pytest.raises(JudgmentError, match="the features lack 'age'; add it or name other columns"):
        ranker.predict(features(rows, ["length", "size", "clicks", "one"]))
    turned = cr.Features(given.items, given.matrix[:, ::-1], given.names[::-1])
    np.testing.assert_array_equal(ranker.predict(turned), ranker.predict(given))


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array])
def test_sparse_rows_give_what_dense_ones_give(rows, form):
    dense = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    thin = ListNet().fit(form(rows.X), rows.y, qid=rows.qid)
    np.testing.assert_allclose(thin.weights_, dense.weights_, atol=1e-8)
    np.testing.assert_allclose(thin.predict(form(rows.X)), dense.predict(rows.X), atol=1e-7)


def test_rows_without_queries_are_not_learned_from(rows):
    with pytest.raises(ParameterError, match=r"ListNet\.fit does not know the query of each row; give qid="):
        ListNet().fit(rows.X, rows.y)


def test_own_held_out_queries_are_not_called_an_eval_set(rows):
    with pytest.raises(JudgmentError, match=r"^y has a negative target"):
        LambdaMART().fit(rows.X, -rows.y, qid=rows.qid)


def test_columns_of_a_frame_that_are_no_numbers_are_named(rows):
    frame = pd.DataFrame(rows.X[:, :1], columns=["length"])
    kinds = frame.assign(kind=pd.Categorical(np.resize(["news", "shop"], len(frame))))
    for ranker in (ListNet(), LambdaMART()):
        with pytest.raises(
            JudgmentError, match=r"column 'kind' of X has categories such as 'news', 'shop', .*cat\.codes"
        ):
            ranker.fit(kinds, rows.y, qid=rows.qid)
    with pytest.raises(JudgmentError, match=r"column 'word' of X is not a number \('tea'\) in row 1"):
        ListNet().fit(frame.assign(word="tea"), rows.y, qid=rows.qid)
    # categories that are numbers are numbers
    codes = frame.assign(kind=pd.Categorical(np.resize([1, 5], len(frame))))
    assert ListNet().fit(codes, rows.y, qid=rows.qid).n_features_in_ == 2


def test_validation_rows_have_queries_if_training_rows_have(rows):
    with pytest.raises(ParameterError, match="eval_set comes without the query of each row; give eval_qid="):
        ListNet().fit(rows.X, rows.y, qid=rows.qid, eval_set=(rows.X, rows.y))
    one = ListNet().fit(rows.X, rows.y, qid=rows.qid, eval_set=(rows.X, rows.y), eval_qid=np.zeros(len(rows.y)))
    assert one.curve_["valid"].null_count() == 0


def test_numbers_of_32_bits_stay_so(rows):
    narrow = rows.X.astype(np.float32)
    ranker = ListNet().fit(narrow, rows.y, qid=rows.qid)
    assert ranker.predict(narrow).dtype == np.float32
    assert ranker.predict(rows.X).dtype == np.float64
    np.testing.assert_allclose(ranker.weights_, ListNet().fit(rows.X, rows.y, qid=rows.qid).weights_, atol=1e-5)


def test_nothing_writes_to_what_was_given(rows):
    given = [rows.X.copy(), rows.y.copy(), rows.qid.copy()]
    for array in rows:
        array.flags.writeable = False
    RankSVM(scale="query").fit(rows.X, rows.y, qid=rows.qid).predict(rows.X, qid=rows.qid)
    for before, after in zip(given, rows, strict=True):
        np.testing.assert_array_equal(before, after)


def test_another_number_of_columns_is_refused(rows):
    ranker = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    message = "X has 3 features, but ListNet is expecting 4 features as input; give the columns that it was trained on"
    with pytest.raises(JudgmentError, match=message):
        ranker.predict(rows.X[:, :3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"qid": [1, 2]}, "qid has 2 entries for 8 rows of X; give one id for each row"),
        ({"y": np.ones(8)}, "nothing to learn: the targets y of all items are equal within each of the 4 queries"),
        ({"qid": np.arange(8)}, "nothing to learn: .* equal within each of the 8 queries"),
        ({"sample_weight": [1, -1, 1, 1, 1, 1, 1, 1]}, r"sample_weight is negative \(-1\) in row 2"),
        (
            {"X": [[1, np.inf]] * 8},
            r"column 2 of X is infinity \(inf\) in row 1; give it another number",
        ),
        ({"X": [[np.nan, 1]] * 8}, "column 1 of X is NaN in row 1"),
        ({"eval_qid": [1]}, r"eval_qid and eval_item go with eval_set=\(X, y\)"),
        ({"eval_set": [1, 2, 3]}, r"eval_set takes one pair \(X, y\)"),
        ({"eval_set": ([[1, 2]], [1, 2]), "eval_qid": [0]}, "eval_y has 2 entries for 1 rows of X"),
        ({"eval_set": ([[1, 2], [3, 4]], [-1, 2]), "eval_qid": [0, 0]}, r"y of eval_set has a negative target \(-1\)"),
        ({"eval_set": ([[1], [3]], [1, 2])}, "X has 1 features, but ListNet is expecting 2"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_one_sentence(given, message):
    base = {"X": np.random.default_rng(0).normal(size=(8, 2)), "y": np.arange(8), "qid": np.arange(8) // 2}
    with pytest.raises((JudgmentError, ParameterError), match=message) as caught:
        ListNet().fit(**base | given)
    assert "\n" not in str(caught.value)


def test_a_fit_that_fails_leaves_nothing_behind(rows):
    ranker = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    with pytest.raises(JudgmentError):
        ranker.fit(rows.X[:, :2], np.ones(len(rows.y)), qid=rows.qid)
    with pytest.raises(NotFittedError):
        ranker.predict(rows.X[:, :2])
    with pytest.raises(NotFittedError):
        ListNet().importance()


def test_a_query_with_one_item_teaches_nothing(rows):
    alone = ListNet().fit(
        np.vstack([rows.X, [[9, 9, 9, 5]]]), np.append(rows.y, 3), qid=np.append(rows.qid, 99), sample_weight=None
    )
    plain = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    # it counts as a query, so that the ridge weighs a little more
    assert np.corrcoef(alone.weights_, plain.weights_)[0, 1] > 0.999


def test_validation_rows_are_measured_at_every_step(rows):
    ranker = ListNet()
    ranker.fit(rows.X, rows.y, qid=rows.qid, eval_set=[(rows.X, rows.y)], eval_qid=[rows.qid])
    assert ranker.curve_["valid"].null_count() == 0
    assert ranker.curve_["objective"].is_sorted(descending=True)
    assert ranker.curve_["valid"][-1] == pytest.approx(ranker.score(rows.X, rows.y, qid=rows.qid))
    told = []
    ranker.fit(rows.X, rows.y, qid=rows.qid, progress=lambda *step: told.append(step))
    assert told[-1] == (ranker.n_iter_, 100, "list_net")


def test_copies_of_validation_items_count_once(rows):
    twice = np.repeat(np.arange(len(rows.y)), 2)
    once = ListNet().fit(rows.X, rows.y, qid=rows.qid, eval_set=(rows.X, rows.y), eval_qid=rows.qid)
    held = {"eval_set": (rows.X[twice], rows.y[twice]), "eval_qid": rows.qid[twice], "eval_item": twice}
    copies = ListNet().fit(rows.X, rows.y, qid=rows.qid, **held)
    np.testing.assert_allclose(copies.curve_["valid"], once.curve_["valid"])
    assert copies.score(rows.X[twice], rows.y[twice], qid=rows.qid[twice], item=twice) == pytest.approx(
        once.score(rows.X, rows.y, qid=rows.qid)
    )


def test_reading_files_and_help_load_no_estimators():
    heavy = ["sklearn", "lightgbm", "torch", "numba"]
    for use in ("import crowdrank.io, crowdrank.rankers", "from crowdrank.cli.app import app"):
        script = f"import sys; {use}; print([name for name in {heavy!r} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", use


LOADING = """
import sys
import crowdrank as cr

ranker = cr.load_ranker(sys.argv[1])
cr.rank(ranker, {"item": ["a", "b"], "1": [0.0, 1.0], "2": [1.0, 0.0]})
heavy = {"sklearn", "scipy.stats", "pandas", "lightgbm"} & set(sys.modules)
from sklearn.base import BaseEstimator, clone
same = clone(ranker).get_params() == ranker.get_params() and isinstance(ranker, BaseEstimator)
print(sorted(heavy), same, repr(ranker))
"""


@pytest.mark.parametrize("ranker", [ListNet(ridge=0.3), LambdaMART(n_trees=2, min_leaf=1)])
def test_a_saved_ranker_scores_without_scikit_learn_and_is_an_estimator_all_the_same(ranker, tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    ranker.fit(cr.Features.from_arrays(qid, np.arange(60), X), (X[:, 0] > 0).astype(int))
    ranker.save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"[] True {ranker!r}"
