"""``solver="printed"``: slow twins of the steps, the maximum they lead to, gradients, and what they refuse."""

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

import crowdrank as cr
from crowdrank.errors import ConvergenceWarning, ParameterError
from crowdrank.models.joint_annotators.joint_annotators import JointAnnotators
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.models.pairs.crowd_bt import CrowdBT
from crowdrank.models.pairs.multinomial_preference import MultinomialPreference, count_by_ranks
from crowdrank.rankers import RankSVM
from crowdrank.registry import make

ORDERS = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
ROWS = [(who, "q", *pair, "left") for who, items in ORDERS.items() for pair in combinations(items, 2)]
PREFERENCES = cr.Preferences.from_rows(ROWS)
MATRIX = np.array([[9, 0.3], [7, 0.1], [8, 0.9], [4, 0.2], [3, 0.5], [1, 0.4]])
FEATURES = cr.Features.from_frame(
    {"query": ["q"] * 6, "item": list("uvwxyz"), "long": MATRIX[:, 0], "wide": MATRIX[:, 1]}
)


def quietly(method, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", cr.errors.DataWarning)
        return method.fit(*given)


def rows():
    """Winner, loser and annotator of each preference, as numbers."""
    return [("uvwxyz".index(one), "uvwxyz".index(two), list(ORDERS).index(who)) for who, _, one, two, _ in ROWS]


def test_bradley_terry_takes_the_printed_steps_one_by_one():
    scores = np.zeros(6)
    for _ in range(7):
        slope = -1e-6 * scores
        for winner, loser, _ in rows():
            p = expit(scores[loser] - scores[winner])
            slope[winner] += p
            slope[loser] -= p
        scores = scores + 0.1 * slope
    method = BradleyTerry(solver="printed", learning_rate=0.1, ridge=1e-6, max_iter=7)
    fitted = quietly(method, PREFERENCES)
    np.testing.assert_allclose(fitted.scores, scores, atol=1e-12)
    assert fitted.std_error is None
    assert not fitted.trace.converged


def test_crowd_bt_takes_the_printed_steps_of_scores_and_eta():
    scores, eta = np.zeros(6), np.full(4, 0.8)
    for _ in range(7):
        slope, of_eta = np.zeros(6), np.zeros(4)
        for winner, loser, who in rows():
            ahead = expit(scores[winner] - scores[loser])
            p = eta[who] * ahead + (1 - eta[who]) * (1 - ahead)
            pull = (2 * eta[who] - 1) * ahead * (1 - ahead) / p
            slope[winner] += pull
            slope[loser] -= pull
            of_eta[who] += (2 * ahead - 1) / p
        scores, eta = scores + 0.01 * slope, np.clip(eta + 0.01 * of_eta, 1e-3, 1 - 1e-3)
    fitted = quietly(make("aggregator", "crowd-bt-paper", {"max_iter": 7}), PREFERENCES)
    np.testing.assert_allclose(fitted.scores, scores, atol=1e-6)
    np.testing.assert_allclose(fitted.quality.parameters["eta"], eta, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "rate"),
    [(BradleyTerry(ridge=0.3), 0.05), (CrowdBT(ridge=0.3), 0.002), (MultinomialPreference(ridge=1.0), 0.02)],
)
def test_enough_steps_of_a_small_rate_lead_to_the_maximum(method, rate):
    stepped = replace(method, solver="printed", learning_rate=rate, max_iter=20_000, tol=1e-9)
    best = replace(method, tol=1e-9).fit(PREFERENCES)
    np.testing.assert_allclose(stepped.fit(PREFERENCES).scores, best.scores, atol=1e-4)


def test_the_gradient_of_the_model_with_confidences_is_that_of_its_value():
    rng, trusted = np.random.default_rng(0), np.zeros(4, bool)
    method = MultinomialPreference(solver="printed", confidence=True, count="ranks", ridge=0.2)
    model = method._model(PREFERENCES, PREFERENCES.row_annotator, trusted)
    point = np.concatenate([rng.normal(size=6), rng.normal(1, 0.5, 4), rng.normal(0, 0.3, 6)])
    here, step = model.evaluate(point), 1e-6
    numeric = [
        (model.evaluate(point + step * unit).value - model.evaluate(point - step * unit).value) / (2 * step)
        for unit in np.eye(16)
    ]
    np.testing.assert_allclose(here.gradient, numeric, atol=1e-5)
    # at confidences of 1 it is the model without
    plain = MultinomialPreference(count="ranks", ridge=0.2)._model(PREFERENCES, PREFERENCES.row_annotator, trusted)
    point[10:] = 0.0
    np.testing.assert_allclose(model.evaluate(point).value, plain.evaluate(point[:10]).value, rtol=1e-12)
    np.testing.assert_allclose(model.evaluate(point).gradient[:10], plain.evaluate(point[:10]).gradient, atol=1e-9)


def test_preferences_count_by_differences_of_ranks_by_hand():
    # ann orders a > b > c whole, so a and c are two ranks apart; bob's circle has all items equal, which counts nothing
    told = [("ann", "q", "a", "b", "left"), ("ann", "q", "b", "c", "left"), ("ann", "q", "c", "a", "right")]
    told += [("bob", "q", "a", "b", "left"), ("bob", "q", "b", "c", "left"), ("bob", "q", "c", "a", "left")]
    told += [("cy", "q", "b", "a", "left"), ("cy", "q", "b", "c", "left"), ("dee", "q", "a", "c", "tie")]
    weighed, kept = count_by_ranks(cr.Preferences.from_rows(told))
    assert kept.tolist() == [0, 1, 2, 6, 7, 8]
    assert weighed.weight.tolist() == [1, 1, 2, 1.5, 1.5, 1]


def smooth_hinge_slope(gap):
    return np.where(gap <= 0, -1.0, np.where(gap < 1, gap - 1.0, 0.0))


def test_rank_svm_steps_from_a_random_start():
    X, y = MATRIX, np.array([2.0, 1, 2, 1, 0, 0])
    start = 0.01 * np.random.default_rng(3).standard_normal(2)
    differences = np.array([X[i] - X[j] for i in range(6) for j in range(6) if y[i] > y[j]])
    weights = start - 0.05 * (smooth_hinge_slope(differences @ start) @ differences / len(differences) + 1e-9 * start)
    params = {"learning_rate": 0.05, "max_iter": 1, "seed": 3}
    with pytest.warns(ConvergenceWarning):
        fitted = make("ranker", "rank-svm-paper", params).fit(X, y, qid=["q"] * 6)
    np.testing.assert_allclose(fitted.weights_, weights, atol=1e-12)


def test_jam_takes_the_printed_steps_on_raw_features_from_a_random_start():
    rng = np.random.default_rng(1)
    weights, flip = 0.01 * np.random.default_rng(1).standard_normal(2), rng.random(4)
    pairs = list(combinations(range(6), 2))
    votes = np.zeros((len(pairs), 4))
    for winner, loser, who in rows():
        pair, sign = ((winner, loser), 1) if winner < loser else ((loser, winner), -1)
        votes[pairs.index(pair), who] = sign
    differences = np.array([MATRIX[i] - MATRIX[j] for i, j in pairs])
    for _ in range(3):
        gap = differences @ weights
        first = expit(gap + votes @ np.log((1 - flip) / flip))
        pull = first * -smooth_hinge_slope(gap) - (1 - first) * -smooth_hinge_slope(-gap)
        weights = weights + 0.002 * (differences.T @ pull - 1e-9 * weights) / len(pairs)
        flip = np.clip(np.where(votes > 0, (1 - first)[:, None], first[:, None]).mean(axis=0), 1e-3, 1 - 1e-3)
    params = {"learning_rate": 0.002, "max_iter": 3, "seed": 1}
    fitted = quietly(make("joint", "jam-paper", params), PREFERENCES, FEATURES)
    assert flip.mean() < 0.5  # else the majority would turn everything round
    np.testing.assert_allclose(fitted.quality.parameters["flip"], flip, atol=1e-9)
    np.testing.assert_allclose(fitted.ranker.weights_, weights, atol=1e-9)


def test_what_printed_steps_are_not_for():
    with pytest.raises(ParameterError, match="item_effects=False"):
        JointAnnotators(solver="printed")
    with pytest.raises(ParameterError, match="confidence=True goes with"):
        MultinomialPreference(confidence=True)
    for method in (BradleyTerry, CrowdBT, MultinomialPreference):
        with pytest.raises(ParameterError, match="learning_rate=0 must be above 0"):
            method(solver="printed", learning_rate=0)
    with pytest.raises(ParameterError, match="learning_rate=0 must be above 0"):
        RankSVM(learning_rate=0).fit(MATRIX, MATRIX[:, 0], qid=["q"] * 6)
