"""The ranker that is chosen by held-out queries, and the sizes of trees that go with the data."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.rankers import Auto, LambdaMART, ListMLE
from crowdrank.rankers.estimator import query_folds, query_parts, sample_queries
from crowdrank.rankers.training_rows import Lists, Matrix
from crowdrank.simulate import draw_corpus


def corpus(n_queries, interactions, seed=0, noise=0.0, n_items=15):
    """Rows of a drawn corpus; a share of the grades is drawn anew."""
    drawn = draw_corpus(n_queries, n_items, 6, interactions=interactions, explained=0.9, seed=seed)
    y = drawn.truth.truth.align(drawn.features.items)
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(y)) < noise, rng.permutation(y), y)
    return drawn.features.matrix, y, drawn.features.items.query


def test_few_noisy_queries_get_a_linear_ranker_and_many_that_interact_get_trees():
    X, y, qid = corpus(30, 0.0, noise=0.4)
    few = Auto().fit(X, y, qid=qid)
    assert type(few.chosen_).__name__ in ("ListMLE", "ListNet", "RankSVM")
    assert "30 queries held out (each fifth in its turn)" in few.reason_
    X, y, qid = corpus(150, 0.9)
    many = Auto().fit(X, y, qid=qid)
    assert isinstance(many.chosen_, LambdaMART)
    assert many.chosen_.n_trees_ == many.chosen_.n_trees > 10
    held_X, held_y, held_qid = corpus(100, 0.9, seed=5)
    assert many.score(held_X, held_y, qid=held_qid) > ListMLE().fit(X, y, qid=qid).score(held_X, held_y, qid=held_qid)


def test_the_choice_is_the_simplest_within_a_standard_error_of_the_best(rows):
    ranker = Auto().fit(rows.X, rows.y, qid=rows.qid)
    table = ranker.choice_
    assert table.columns == ["ranker", "settings", "ndcg", "behind", "std_error", "chosen"]
    assert table["chosen"].sum() == 1
    assert table["behind"].is_sorted()
    assert table["behind"][0] == 0
    chosen = table.filter("chosen")
    assert chosen["behind"][0] <= chosen["std_error"][0] + 1e-12
    assert chosen["settings"][0] in ranker.reason_


def test_order_of_rows_and_names_of_queries_do_not_matter(rows):
    ranker = Auto().fit(rows.X, rows.y, qid=rows.qid)
    shuffle = np.random.default_rng(1).permutation(len(rows.y))
    qid = np.array([f"query {97 * query % 31}" for query in rows.qid])
    again = Auto().fit(rows.X[shuffle], rows.y[shuffle], qid=qid[shuffle])
    np.testing.assert_allclose(again.predict(rows.X), ranker.predict(rows.X), atol=1e-6)


def test_a_saved_one_is_the_ranker_that_was_chosen(rows, tmp_path):
    ranker = Auto().fit(rows.X, rows.y, qid=rows.qid)
    ranker.save(tmp_path / "model")
    again = cr.load_ranker(tmp_path / "model")
    assert type(again) is type(ranker.chosen_)
    np.testing.assert_array_equal(again.predict(rows.X), ranker.predict(rows.X))
    assert again.importance().equals(ranker.importance())


def test_one_query_cannot_be_held_out(rows):
    one = rows.qid == rows.qid[-1]
    ranker = Auto().fit(rows.X[one], rows.y[one], qid=rows.qid[one])
    assert isinstance(ranker.chosen_, ListMLE)
    assert "no query can be held out" in ranker.reason_
    assert ranker.choice_.is_empty()


def test_missing_features_leave_trees(rows):
    X = rows.X.copy()
    X[::7, 1] = np.nan
    ranker = Auto().fit(X, rows.y, qid=rows.qid)
    assert isinstance(ranker.chosen_, LambdaMART)
    assert set(ranker.choice_["ranker"]) == {"lambda_mart"}


def test_validation_rows_decide_where_there_are_any(rows):
    first = rows.qid < 20
    held = {"eval_set": (rows.X[~first], rows.y[~first]), "eval_qid": rows.qid[~first]}
    ranker = Auto().fit(rows.X[first], rows.y[first], qid=rows.qid[first], **held)
    assert "of the validation rows" in ranker.reason_
    assert ranker.chosen_.curve_["valid"].null_count() == 0


def test_parameters_are_checked(rows):
    with pytest.raises(ParameterError, match="max_rows=0 must be at least 1"):
        Auto(max_rows=0).fit(rows.X, rows.y, qid=rows.qid)


def test_folds_keep_queries_together_and_alike():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), rng.integers(2, 12, 40))
    X, y = rng.normal(size=(len(qid), 3)), rng.integers(0, 3, len(qid)).astype(float)
    item = rng.integers(0, 5, len(qid))
    matrix, lists = Matrix(X), Lists.of(len(y), y, qid, item)
    parts = query_parts(matrix, lists, 5, 0)
    assert sorted(np.concatenate(parts)) == list(range(40))
    assert np.ptp([lists.n_items[part].sum() for part in parts]) < 8
    folds = list(query_folds(matrix, lists, 0))
    assert len(folds) == 5
    for learned, held in folds:
        assert learned.lists.n_queries + held.lists.n_queries == 40
        assert len(held.matrix.values) == held.lists.n_places
        for part in (learned, held):
            # items are numbered as if there had never been others
            expected = part.lists.item_offsets[part.lists.query] <= part.lists.item
            assert expected.all()
            assert len(np.unique(part.lists.item)) == part.lists.n_items.sum()
    some = sample_queries(matrix, lists, 60, 0)
    assert 20 < some.n_places < 120


def test_sizes_of_trees_go_with_the_data(rows):
    def sizes(n_queries, n_items, **params):
        n = n_queries * n_items
        return LambdaMART(**params).sizes(Lists.of(n, np.zeros(n), np.repeat(np.arange(n_queries), n_items)))

    assert sizes(20, 5) == (4, 5)
    assert sizes(500, 20) == (10, 20)
    assert sizes(5000, 20) == (31, 20)
    assert sizes(5000, 2) == (31, 20)
    assert sizes(20, 5, n_trees=100) == (31, 20)
    assert sizes(20, 5, n_leaves=7, min_leaf=2) == (7, 2)


def test_noise_gets_few_trees_and_the_truth_more():
    X, y, qid = corpus(60, 0.0)
    noise = np.random.default_rng(0).permutation(y)
    clean, noisy = (LambdaMART().fit(X, target, qid=qid) for target in (y, noise))
    assert noisy.n_trees_ < clean.n_trees_
    one = LambdaMART().fit(X[qid == 0], y[qid == 0], qid=qid[qid == 0])
    assert one.n_trees_ == 100
