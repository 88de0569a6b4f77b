"""Buying for the ranker: expected changes of nDCG, ties over queries, the stop rule."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data.features import Features
from crowdrank.errors import ParameterError
from crowdrank.schemes.buying import tie_draws_over_queries
from crowdrank.schemes.shown_order import PLACES, ShownOrder


def drawn_change(means, item, spread, n=100_000):
    """The mean growth of nDCG when one gain is drawn anew and the items are ordered by it."""
    discount = np.where(np.arange(len(means)) < PLACES, 1 / np.log2(np.arange(len(means)) + 2), 0)
    new = np.tile(means, (n, 1))
    new[:, item] += np.random.default_rng(0).normal(0, spread, n)
    before = np.argsort(-means, kind="stable")
    growth = (np.sort(new, axis=1)[:, ::-1] - new[:, before]) @ discount
    return growth.mean() / (means[before] @ discount)


@pytest.mark.parametrize("item", [0, 3, 11])
def test_expected_change_is_that_of_draws(item):
    means = np.linspace(6, 0.5, 14)
    features = Features.from_arrays(["q"] * 14, [f"d{n:02d}" for n in range(14)], np.zeros((14, 1)))
    shown = ShownOrder.of(features.items, means, np.zeros(14))
    assert shown.change(np.full(14, 1.5))[item] == pytest.approx(drawn_change(means, item, 1.5), rel=0.04)


def test_equal_things_are_taken_from_one_query_after_the_other():
    query = np.repeat(np.arange(20), [1, 30] * 10)
    order = np.argsort(-tie_draws_over_queries(5, query), kind="stable")
    assert sorted(query[order[:20]].tolist()) == list(range(20))
    assert set(query[order[20:30]].tolist()) == set(range(1, 20, 2))
    assert order.tolist() != np.argsort(-tie_draws_over_queries(6, query), kind="stable").tolist()


@pytest.fixture(scope="module")
def grades():
    rng = np.random.default_rng(1)
    rows = [
        (f"a{who}", f"q{query}", f"d{item:02d}", int(np.clip(item % 4 + rng.integers(-1, 2), 0, 3)))
        for query in range(12)
        for item in range(15)
        for who in rng.choice(6, 1 + item % 2, replace=False)
    ]
    return cr.Grades.from_rows(rows)


def test_goal_ranker_asks_about_the_top_and_stops_by_ndcg(grades):
    settings = {"goal": "ranker", "scheme": "information", "params": {"least": 0}, "budget": 40}
    found = cr.propose(grades, **settings)
    consensus = cr.aggregate(grades, "dawid_skene")
    top = {(query, item) for query in consensus.items.queries for item in consensus.order(query)[:11]}
    asked = set(found.select("query", "item").iter_rows())
    assert len(asked & top) / len(asked) > len(top) / len(consensus.items)
    assert np.diff(found["expected_gain"] / found["n_more"]).max() < 1e-6
    dear = float(found["expected_gain"][10] / found["n_more"][10])
    fewer = cr.propose(grades, **settings, least_gain=dear)
    assert 0 < fewer["n_more"].sum() < found["n_more"].sum()
    assert cr.propose(grades, **settings, least_gain=1.0).height == 0
    # by default two grades of every item come first, as for every goal
    first = cr.propose(grades, goal="ranker", budget=40)
    once = grades.frame().group_by("query", "item").len().filter(len=1).select("query", "item")
    assert first.join(once, on=["query", "item"]).height == first.height


def test_grades_are_asked_for_what_they_tell_of_the_grade_unless_gains_are_wanted(grades):
    plain = cr.propose(grades, "information", budget=20, params={"least": 0})
    gain = cr.propose(grades, "information", budget=20, params={"about": "gain", "least": 0})
    level = cr.propose(grades, "information", budget=20, params={"about": "grade", "least": 0})
    assert plain.equals(level)
    assert not plain.equals(gain)


def test_goal_ranker_is_about_grades():
    votes = cr.Preferences.from_rows([("ann", "q", "x", "y", "left"), ("bob", "q", "x", "y", "left")])
    with pytest.raises(ParameterError, match="applies to grades"):
        cr.propose(votes, goal="ranker")
