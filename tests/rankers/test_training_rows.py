"""Features on one scale: what is learned of it, and the products of scaled features."""

import numpy as np
import pytest
from scipy import sparse

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.rankers import training_rows
from crowdrank.rankers.training_rows import Design, Lists, Matrix, learn_scaling

RNG = np.random.default_rng(3)
QID = np.array([4, 4, 4, 1, 1, 1, 1, 2])
X = np.column_stack([RNG.normal(size=8), 100 + RNG.normal(size=8), QID, np.full(8, 7.0)])


def lists_of(weight=None):
    return Lists.of(8, np.arange(8.0), QID, sample_weight=weight)


def within(values, qid, weight):
    """Standard deviation about the mean of each query, the slow way."""
    rest = values.astype(float).copy()
    for query in np.unique(qid):
        mine = qid == query
        rest[mine] -= np.average(values[mine], weights=weight[mine], axis=0)
    return np.sqrt(np.average(rest**2, weights=weight, axis=0))


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2, 1, 3, 1, 1, 0, 2])])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_overall_scale_is_the_spread_within_queries(weight, form):
    scaling = learn_scaling("overall", Matrix(form(X)), lists_of(weight))
    counts = np.ones(8) if weight is None else weight
    expected = within(X, QID, counts)
    np.testing.assert_allclose(scaling.spread[:2], expected[:2], rtol=1e-7)
    # a feature of the query has the spread over all rows, a constant one has none
    level = np.average(X[:, 2], weights=counts)
    np.testing.assert_allclose(scaling.spread[2], np.sqrt(np.average((X[:, 2] - level) ** 2, weights=counts)))
    assert scaling.spread[3] == 1
    np.testing.assert_allclose(scaling.centre, np.average(X, weights=counts, axis=0))


def test_query_scale_runs_from_zero_to_one():
    scaled = learn_scaling("query", Matrix(X), lists_of()).apply(X, np.array([0, 3, 7]))
    for begin, end in ((0, 3), (3, 7)):
        assert scaled[begin:end, :2].min(0).tolist() == [0, 0]
        assert scaled[begin:end, :2].max(0).tolist() == [1, 1]
    assert not scaled[:, 2:].any()
    assert not scaled[7].any()


def test_missing_values_stay_missing_and_count_for_nothing():
    holes = X.copy()
    holes[1, 0], holes[:, 1] = np.nan, np.nan
    overall = learn_scaling("overall", Matrix(holes), lists_of())
    keep = np.arange(8) != 1
    np.testing.assert_allclose(overall.spread[0], within(X[keep], QID[keep], np.ones(7))[0])
    assert np.isfinite(overall.centre).all()
    assert overall.spread[1] == 1
    for kind in ("overall", "query", "none"):
        scaled = learn_scaling(kind, Matrix(holes), lists_of()).apply(holes, np.array([0, 3, 7]))
        np.testing.assert_array_equal(np.isnan(scaled), np.isnan(holes))


def test_sparse_features_are_not_scaled_within_queries():
    with pytest.raises(ParameterError, match=r"scale='query' .* fills a sparse matrix; use scale='overall'"):
        learn_scaling("query", Matrix(sparse.csr_matrix(X)), lists_of())


def test_unknown_scales_name_the_known_ones():
    with pytest.raises(ParameterError, match="scale='log' is not known; choose one of 'overall', 'query', 'none'"):
        learn_scaling("log", Matrix(X), lists_of())


@pytest.mark.parametrize("kind", ["overall", "query", "none"])
@pytest.mark.parametrize("order", ["grouped", "scattered"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_give_what_the_whole_gives(kind, order, dtype, monkeypatch):
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(9), rng.integers(1, 6, 9))
    values = rng.normal(size=(len(qid), 5)).astype(dtype)
    if order == "scattered":
        shuffle = rng.permutation(len(qid))
        qid, values = qid[shuffle], values[shuffle]
    lists = Lists.of(len(qid), rng.integers(0, 3, len(qid)), qid)
    weights, slopes = rng.normal(size=5), rng.normal(size=len(qid))
    slopes -= np.repeat(np.add.reduceat(slopes, lists.offsets[:-1]) / lists.n_items, lists.n_items)

    def bend(first, last, block):
        return block * np.arange(lists.offsets[first], lists.offsets[last])[:, None]

    def products(form):
        given = Matrix(form(values))
        made = Design(given, lists.rows, lists.offsets, learn_scaling(kind, given, lists))
        return made.scores(weights), made.pulls(slopes), made.curvature(bend), made.squares(abs(slopes))

    ready = products(np.asarray)
    monkeypatch.setattr(training_rows, "_READY_CELLS", 0)
    monkeypatch.setattr(training_rows, "BLOCK_CELLS", 20)
    monkeypatch.setattr(training_rows, "_BLOCKS_PER_THREAD", 1)
    for one, other in zip(ready, products(np.asarray), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 if dtype == np.float32 else 1e-12)
    if kind != "query":
        for one, other in zip(ready[:3], products(sparse.csr_matrix)[:3], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-1e200, "-1e[+]200, which")])
def test_what_is_no_number_is_named_by_column_and_row(form, value, word, monkeypatch):
    monkeypatch.setattr(training_rows, "BLOCK_CELLS", 8)
    holes = X.copy()
    holes[5, 1] = value
    with pytest.raises(JudgmentError, match=rf"column 2 \('age'\) of X is {word}.* in row 6; "):
        Matrix(form(holes), ("length", "age", "query", "one")).expect_finite()
    if np.isnan(value):
        Matrix(form(holes)).expect_finite(missing=True)
