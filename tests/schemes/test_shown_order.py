"""Buying for the ranker: expected changes of nDCG, ties over queries, the stop rule."""

import numpy as np
import pytest
from tests.oracles import expected_ndcg as slow

import crowdrank as cr
from crowdrank.data.features import Features
from crowdrank.errors import ParameterError
from crowdrank.schemes import Information
from crowdrank.schemes import information as shown_order
from crowdrank.schemes.class_probabilities import CautiousLevels
from crowdrank.schemes.information import ShownOrder
from crowdrank.schemes.situation import Situation, tie_draws_over_queries


def order_of(posterior, gain):
    """The order shown of the items of one query."""
    n = len(posterior)
    features = Features.from_arrays(["q"] * n, [f"d{number:02d}" for number in range(n)], np.zeros((n, 1)))
    return ShownOrder.of(features.items, posterior, np.array(gain, float), seed=0)


@pytest.mark.parametrize(
    ("gain", "pull", "tied"),
    [((0, 1, 3), (1, 1, 1), False), ((1, 3, 7), (1, 1, 1), False), ((0, 1, 3), (30, 0.5, 0.3), True)],
)
def test_expected_change_is_that_of_all_combinations_of_levels(gain, pull, tied, monkeypatch):
    monkeypatch.setattr(shown_order, "_N_DRAWS", 4096)
    posterior = np.random.default_rng(0).dirichlet(pull, 5)
    if tied:
        posterior[[1, 3]] = posterior[0]
    confusion = 0.7 * np.eye(3) + 0.1
    changes, possible, expected = order_of(posterior, gain).change(np.stack([confusion, np.eye(3)]))
    gain = np.array(gain, float)
    assert possible[0] == pytest.approx(slow.possible(posterior, gain), rel=0.1)
    assert expected[0] == pytest.approx(slow.expected(posterior @ gain, posterior, gain), rel=0.01)
    for item in range(5):
        for who, matrix in enumerate([confusion, np.eye(3)]):
            exact = slow.change(posterior, gain, matrix, item)
            assert changes[item, who] == pytest.approx(exact, rel=0.1, abs=2e-4)
            assert changes[item, who] <= possible[0] * 1.1


def test_a_query_in_which_nothing_is_relevant_promises_almost_nothing():
    sparse = np.tile([0.99, 0.01], (12, 1)) + np.linspace(-0.002, 0.002, 12)[:, None] * [-1, 1]
    changes, possible, _ = order_of(sparse, [0, 1]).change(np.stack([0.8 * np.eye(2) + 0.1, np.eye(2)]))
    any_relevant = 1 - np.prod(sparse[:, 0])
    assert 0 < changes.max() <= possible[0] < any_relevant < 0.12
    assert changes[:, 1].max() <= sparse[:, 1].max()


def crowd_grades(shares, seed):
    """Sixty queries of fifteen items graded one to three times; ``shares`` are those of relevant items, in turn."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(60):
        for item in range(15):
            level = int(rng.integers(1, 3)) if rng.random() < shares[query % len(shares)] else 0
            for who in rng.choice(12, int(rng.integers(1, 4)), replace=False):
                given = level if rng.random() < 0.8 else int(rng.integers(0, 3))
                rows.append((f"a{who}", f"q{query:02}", f"d{item:02}", given))
    return cr.Grades.from_rows(rows)


def realised(grades, known, asked, n_worlds, seed):
    """The mean growth of nDCG, summed over queries, in worlds drawn from the posterior, by all answers together."""
    rng = np.random.default_rng(seed)
    levels = grades.level_codes()[2].astype(float)
    gain, query = np.exp2(levels) - 1, grades.items.query
    growth = []
    for _ in range(n_worlds):
        level = (rng.random((len(query), 1)) > known.posterior.cumsum(axis=1)[:, :-1]).sum(axis=1)
        answer = (rng.random((len(asked), 1)) > known.crowd[level[asked]].cumsum(axis=1)[:, :-1]).sum(axis=1)
        after = known.posterior.copy()
        for item, given in zip(asked, answer, strict=True):
            after[item] *= known.crowd[:, given]
        after /= after.sum(axis=1, keepdims=True)
        means = (cr.metrics.ndcg(levels[level], each @ gain, query) for each in (known.posterior, after))
        before, later = means
        growth.append((later - before) * grades.n_queries)
    return np.mean(growth), np.std(growth) / np.sqrt(n_worlds)


@pytest.mark.parametrize("shares", [(0.01,), (0.01, 0.05, 0.3, 0.6)])
@pytest.mark.parametrize("least", [0, 2])
def test_two_hundred_requests_bring_what_they_promise(shares, least):
    grades = crowd_grades(shares, seed=1)
    situation = Situation.of(grades, consensus=cr.aggregate(grades, "dawid_skene"), budget=200)
    proposed = Information(goal="ranker", least=least).propose(situation)
    known = CautiousLevels.of(situation, grades, "information")
    asked = np.repeat(proposed.things["item"], proposed.n_more)
    assert len(asked) == 200
    brought, error = realised(grades, known, asked, n_worlds=250, seed=2)
    assert abs(proposed.expected_gain - brought) < 0.2 * brought + 2 * error
    assert proposed.expected_gain < proposed.before
    assert proposed.gains.max() < 0.15


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
