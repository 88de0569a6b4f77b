"""Buying for a ranker with features: what a grade changes of the orders that a linear ranker shows."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.schemes import information as taught_order
from crowdrank.schemes.information import TaughtOrder


@pytest.fixture(scope="module")
def corpus():
    """Twenty queries of fifteen items whose gains follow two of six columns; 90 items graded, 30 of them twice."""
    rng = np.random.default_rng(0)
    n = 300
    matrix = rng.normal(size=(n, 6))
    query, item = np.repeat(np.arange(20), 15), np.arange(n)
    grade = np.clip(np.round(matrix @ np.array([1, 0.5, 0, 0, 0, 0]) + rng.normal(0, 0.3, n)), 0, 2)
    rows, who = np.resize(rng.permutation(n)[:90], 120), rng.integers(0, 4, 120) + 4 * (np.arange(120) >= 90)
    given = np.where(rng.random(120) < 0.75, grade[rows], rng.integers(0, 3, 120))
    votes = {"annotator": who, "query": query[rows], "item": item[rows], "grade": given}
    return cr.Grades.from_frame(votes), cr.Features.from_arrays(query, item, matrix)


def taught(n_candidates=7, seed=0):
    """An order with random numbers in it."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    return TaughtOrder(
        rows=rng.normal(size=(n_candidates, 4)), variance=np.full(n_candidates, 2.0), error=np.full(n_candidates, 5.0),
        covariance=0.1 * root @ root.T, item_variance=0.3, pairs=rng.normal(size=(12, 4)), gaps=rng.random(12),
        steps=rng.random(12), discount=np.ones(n_candidates),
    )  # fmt: skip


def test_expected_change_is_that_of_draws():
    order, spread = taught(), np.full(7, 1.1)
    draws = np.random.default_rng(1).normal(size=(100_000, 1))
    of_grade = 1 / (2.0 - 1.1**2) - 1 / 2.0
    after = 1 / (1 / 5.0 + of_grade)
    precision = 1 / (0.3 + after) - 1 / (0.3 + 5.0)
    for row, value in zip(order.rows, order.change(spread), strict=True):
        moved = order.covariance @ row
        deviation = moved * np.sqrt(precision / (1 + precision * row @ moved))
        gaps = order.gaps + draws * (order.pairs @ deviation)
        assert value == pytest.approx((np.maximum(-gaps, 0) @ order.steps).mean(), rel=0.03)


def test_regression_recovers_weights_and_variances():
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(2000, 5)), np.array([1.0, -0.5, 0.0, 0.2, 0.0])
    error = rng.uniform(0.2, 1.0, 2000)
    gain = 3 + rows @ weights + rng.normal(0, 0.7, 2000) + rng.normal(0, np.sqrt(error))
    found, covariance, of_items = taught_order._regression(rows, gain, error, 1.0)
    np.testing.assert_allclose(found, weights, atol=4 * np.sqrt(covariance.diagonal().max()))
    assert of_items == pytest.approx(0.49, rel=0.2)


def test_what_others_teach_already_is_worth_less():
    order, spread = taught(60), np.full(60, 1.1)
    plain, staged = order.change(spread), order.in_stages(spread, 40).change(spread)
    assert (staged <= plain * (1 + 1e-12)).all()
    assert staged.sum() < 0.8 * plain.sum()
    assert staged.argmax() == plain.argmax()


def test_unjudged_items_may_be_asked_about(corpus, monkeypatch):
    grades, features = corpus
    settings = {"goal": "ranker", "features": features, "budget": 40}
    found = cr.propose(grades, **settings)
    judged = set(grades.items.frame().iter_rows())
    asked = list(found.select("query", "item").iter_rows())
    assert any(pair not in judged for pair in asked)
    assert found["n_more"].sum() == 40
    assert (found["expected_gain"] > 0).all()
    shuffled = grades.frame().sample(fraction=1.0, shuffle=True, seed=3)
    assert cr.propose(cr.Grades.from_frame(shuffled), **settings)["item"].to_list() == found["item"].to_list()
    # beyond the threshold neighbours are a sample of the queries
    monkeypatch.setattr(taught_order, "MAX_PAIRS", 50)
    fewer = cr.propose(grades, **settings)
    assert fewer["n_more"].sum() == 40
    assert fewer["expected_gain"].is_finite().all()


def test_grades_of_one_level_leave_nothing_to_ask():
    features = cr.Features.from_arrays(["q"] * 5, list("vwxyz"), np.random.default_rng(0).normal(size=(5, 2)))
    grades = cr.Grades.from_rows([(who, "q", item, 1) for who in ("ann", "bob") for item in "vwx"])
    assert cr.propose(grades, goal="ranker", features=features, budget=3).height == 0


def test_features_go_with_the_goal(corpus):
    grades, features = corpus
    with pytest.raises(ParameterError, match=r"features= goes with goal='ranker'"):
        cr.propose(grades, "information", features=features)
