"""The kernels of Plackett-Luce against their slow twins, and derivatives against finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import listwise as slow
from tests.strategies import judgments, ranking_rows

from crowdrank.models.rankings.kernels import plackett_luce as kernel

TIES = ("split", "ignore")
STEP = 1e-5


def random_rankings(seed, n_items=8, n_rankings=20, longest=7, n_ranks=4):
    """Offsets, item, rank and weight of rankings with ties."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, n_rankings)
    item = np.concatenate([rng.choice(n_items, size, replace=False) for size in sizes]).astype(np.int32)
    rank = np.concatenate([np.sort(rng.integers(1, n_ranks, size)) for size in sizes]).astype(np.int32)
    return np.concatenate([[0], np.cumsum(sizes)]), item, rank, rng.uniform(0.5, 1.5, n_rankings)


def random_point(seed, ties, n_items=8):
    """Rows, scores, and factors of either sign."""
    rng = np.random.default_rng(seed + 100)
    rows = kernel.ranked_rows(*random_rankings(seed, n_items), ties)
    return rows, rng.normal(0, 1.5, n_items), rng.normal(1, 0.7, len(rows.weight))


def slopes(function, point):
    """Derivatives by central differences, a row for each entry of the point."""
    return np.array(
        [(function(point + STEP * e) - function(point - STEP * e)) / (2 * STEP) for e in np.eye(len(point))]
    )


def joint_gradient(rows, n_items):
    """The gradient in scores and factors as one function."""

    def gradient(point):
        model = kernel.evaluate_lists(rows, point[:n_items], point[n_items:])
        return np.append(model.gradient, model.slope)

    return gradient


def joint_matrix(rows, scores, factor):
    """The matrix that products multiply with."""
    multiply = kernel.list_product(rows, kernel.evaluate_lists(rows, scores, factor), scores, factor)
    n = len(scores)
    return np.array([np.concatenate(multiply(e[:n].copy(), e[n:].copy())) for e in np.eye(n + len(factor))])


@given(ranking_rows(), st.sampled_from(TIES), st.integers(0, 5))
def test_log_likelihood_equals_the_slow_twin(rows, ties, seed):
    rankings = judgments("ranking", rows)
    rng = np.random.default_rng(seed)
    scores, factor = rng.normal(0, 2, rankings.n_items), rng.normal(1, 1, len(rankings))
    laid_out = kernel.ranked_rows(rankings.offsets, rankings.item, rankings.rank, np.ones(len(rankings)), ties)
    found = kernel.evaluate_lists(laid_out, scores, factor).log_likelihood
    assert found == pytest.approx(slow.log_likelihood(rankings, scores, ties, factor), abs=1e-10)


@pytest.mark.parametrize(
    ("rank", "within"), [([1, 2, 3], 1e-12), ([1, 1, 2], 1e-12), ([1, 2, 2], 1e-12), ([1] * 3, 0.04)]
)
def test_split_ties_are_the_mean_of_all_orders(rank, within):
    scores = [0.7, -0.4, 0.1]
    assert slow.of_ranking(scores, rank, "split") == pytest.approx(slow.of_all_orders(scores, rank), abs=within)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_curvature_by_finite_differences(ties, seed):
    rows, scores, factor = random_point(seed, ties)
    model = kernel.evaluate_lists(rows, scores, factor)
    value = lambda at: kernel.evaluate_lists(rows, at, factor).log_likelihood  # noqa: E731
    np.testing.assert_allclose(model.gradient, slopes(value, scores), atol=1e-7)
    by_factor = lambda at: kernel.evaluate_lists(rows, scores, at).log_likelihood  # noqa: E731
    np.testing.assert_allclose(model.slope, slopes(by_factor, factor), atol=1e-7)
    expected = -slopes(joint_gradient(rows, len(scores)), np.append(scores, factor))
    found = joint_matrix(rows, scores, factor)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(found, found.T, atol=1e-10)
    np.testing.assert_allclose(model.diagonal, np.diag(expected)[: len(scores)], atol=1e-7)


@pytest.mark.parametrize("ties", TIES)
def test_bends_are_those_of_the_matrix(ties):
    rows, scores, factor = random_point(4, ties)
    n = len(scores)
    starts = np.concatenate([[0], np.cumsum(n - 1 - np.arange(n))])
    model = kernel.evaluate_lists(rows, scores, factor)
    found = kernel.list_bends(rows, model, factor, starts, np.ones(n, bool))
    expected = joint_matrix(rows, scores, factor)[:n, :n]
    np.testing.assert_allclose(found, -expected[np.triu_indices(n, 1)], atol=1e-10)
    # a Laplacian: the rows sum to zero and no pair pulls the wrong way
    np.testing.assert_allclose(expected.sum(axis=1), 0, atol=1e-10)
    assert found.min() >= 0
    assert not kernel.list_bends(rows, model, factor, starts, np.zeros(n, bool)).any()


def test_long_ties_are_near_the_whole_sum():
    rng = np.random.default_rng(3)
    scores, rank = rng.normal(size=45), np.repeat([1, 2, 3], [5, 30, 10]).astype(np.int32)
    rows = kernel.ranked_rows(np.array([0, 45]), np.arange(45, dtype=np.int32), rank, np.ones(1), "split")
    found = kernel.evaluate_lists(rows, scores, np.ones(1)).log_likelihood
    assert found == pytest.approx(slow.of_ranking(scores.tolist(), rank.tolist(), "split"), rel=2e-3)


@pytest.mark.parametrize("far", [50.0, 2000.0])
def test_scores_may_lie_far_apart(far):
    scores = np.array([far, 0.0, -far, 1.0])
    rank = np.array([1, 2, 3, 4, 1, 2, 3, 4, 1, 1, 2, 2], np.int32)
    item = np.array([0, 3, 1, 2, 2, 1, 3, 0, 0, 2, 1, 3], np.int32)
    rows = kernel.ranked_rows(np.array([0, 4, 8, 12]), item, rank, np.ones(3), "split")
    model = kernel.evaluate_lists(rows, scores, np.ones(3))
    # the first ranking is all but certain, the others cost about as much as the scores lie apart
    assert np.isfinite(model.log_likelihood)
    for values in (model.gradient, model.diagonal, model.share, model.rest):
        assert np.isfinite(values).all()
    first = kernel.evaluate_lists(
        kernel.ranked_rows(np.array([0, 4]), item[:4], rank[:4], np.ones(1), "split"), scores, np.ones(1)
    )
    assert first.log_likelihood == pytest.approx(-np.log1p(np.exp(-1.0)), abs=1e-9)


def test_threads_change_nothing_but_rounding(monkeypatch):
    offsets, item, rank, weight = random_rankings(1, n_items=30, n_rankings=200)
    scores, factor = np.random.default_rng(2).normal(size=30), np.ones(200)
    rows = kernel.ranked_rows(offsets, item, rank, weight, "split")
    several = rows._replace(bounds=np.array([0, 17, 120, 200]))
    one, other = (kernel.evaluate_lists(part, scores, factor) for part in (rows, several))
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-12)
    images = [kernel.list_product(part, one, scores, factor)(scores, factor) for part in (rows, several)]
    np.testing.assert_allclose(images[0][0], images[1][0], atol=1e-11)
    np.testing.assert_array_equal(images[0][1], images[1][1])


def test_rows_of_their_own_are_scores_in_ranked_order():
    offsets, item, rank, weight = random_rankings(5)
    scores = np.random.default_rng(6).normal(size=8)
    factor = np.ones(len(weight))
    by_item = kernel.evaluate_lists(kernel.ranked_rows(offsets, item, rank, weight, "split"), scores, factor)
    places = np.arange(len(item), dtype=np.int32)
    by_row = kernel.evaluate_lists(kernel.ranked_rows(offsets, places, rank, weight, "split"), scores[item], factor)
    assert by_row.log_likelihood == pytest.approx(by_item.log_likelihood, rel=1e-13)
    np.testing.assert_allclose(np.bincount(item, by_row.gradient, 8), by_item.gradient, atol=1e-12)
