"""The joint likelihood of scores and adherences: derivatives, free scale, and the spread of a crowd."""

import numpy as np
import pytest
from tests.known_rankings import simulated

from crowdrank.models.rankings.plackett_luce import AdherencePrior, PlackettLuce

STEP = 1e-6
TRUST = [None, ["a1"], ["a1", "a3"], ["a0", "a1", "a2", "a3", "a4"]]


def problem_of(trusted, *, adherence=(1.2, -0.5, 0.1, 0.9, 1.5), n_rankings=40, seed=0):
    """The problem of rankings by five annotators, and a point away from its best one."""
    rankings, _ = simulated(6, n_rankings, 4, adherence=np.array(adherence), seed=seed)
    names = None if trusted is None else [f"a0{name[1:]}" for name in trusted]
    problem, start = PlackettLuce(annotators="weighted", alpha=2.0)._problem(rankings, names)
    return problem, start, np.random.default_rng(seed).normal(0.4, 0.8, 6 + len(start))


def slopes(function, point):
    """Derivatives by central differences, a row for each entry of the point."""
    steps = STEP * np.eye(len(point))
    return np.array([(function(point + step) - function(point - step)) / (2 * STEP) for step in steps])


@pytest.mark.parametrize("trusted", TRUST)
def test_gradient_by_finite_differences_and_free_scale(trusted):
    problem, _, point = problem_of(trusted)
    found = problem.evaluate(point).gradient
    np.testing.assert_allclose(found, slopes(lambda at: problem.evaluate(at).value, point), atol=1e-6)
    other = np.append(3.0 * point[:6], point[6:] / 3.0)
    assert problem.evaluate(other).value == pytest.approx(problem.evaluate(point).value, rel=1e-12)
    assert found @ np.append(point[:6], -point[6:]) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("trusted", TRUST)
def test_curvature_by_finite_differences(trusted):
    problem, _, point = problem_of(trusted)
    here = problem.evaluate(point)
    product, diagonal = problem._curvature_product(here)
    free = np.append(here.scores, -here.habits)
    found = np.array([product(unit) for unit in np.eye(len(point))])
    # the product is stiff where the scale is free
    found -= np.outer(free, free) / (free**2 / diagonal).sum()
    np.testing.assert_allclose(found, -slopes(lambda at: problem.evaluate(at).gradient, point), atol=1e-6)


def test_the_spread_of_a_crowd_is_estimated():
    alphas = {}
    for name, adherence in (("alike", np.ones(40)), ("apart", np.random.default_rng(1).normal(1, 0.7, 40))):
        rankings, _ = simulated(30, 1200, 5, adherence=adherence)
        alphas[name] = PlackettLuce(annotators="weighted").fit(rankings).estimates["alpha"]
    assert alphas["alike"] > 30
    assert 1 < alphas["apart"] < 4


def test_habits_of_trusted_annotators_are_their_own():
    prior = AdherencePrior(2.0, np.full(3, 1 / 3), np.array([True, False, False]))
    assert prior.adherence(np.array([1.0, 0.2, -0.1, 0.5])).tolist() == [1.0, 0.7, 0.4]
    assert prior.by_habit(np.array([1.0, 2.0, 4.0])).tolist() == [1.0, 2.0, 4.0, 6.0]
    assert prior.value(np.array([0.8, 0.0, 0.0, 0.8])) == pytest.approx(0)
