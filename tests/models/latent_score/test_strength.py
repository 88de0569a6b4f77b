"""Preferences that say by how much the winner is better."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

import crowdrank as cr
from crowdrank.aggregators import LatentScore
from crowdrank.models.latent_score.model import preference_levels


def graded(seed, n=600, n_items=30, n_annotators=12, ties=True):
    """Preferences in five levels (four without ties) drawn from the model, and the true scores."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n_items)
    left = rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    who = rng.integers(0, n_annotators, n)
    alpha = np.exp(rng.normal(0, 0.3, n_annotators))
    seen = alpha[who] * (truth[left] - truth[right]) + rng.logistic(size=n)
    cuts = np.array([-2.0, -0.4, 0.4, 2.0]) if ties else np.array([-2.0, 0.0, 2.0])
    level = np.searchsorted(cuts, seen)
    signed = level - 2 if ties else np.where(level >= 2, level - 1, level - 2)
    table = {
        "left": left, "right": right, "annotator": who, "query": np.arange(n), "strength": np.abs(signed),
        "winner": np.array(["right", "tie", "left"])[np.sign(signed) + 1],
    }  # fmt: skip
    return cr.Preferences.from_frame(table).across_queries(), truth


def only_winners(preferences):
    return replace(preferences, strength=None)


def test_levels():
    preferences, _ = graded(0)
    level, n_levels = preference_levels(preferences)
    assert n_levels == 5
    assert (level - 2 == preferences.outcome * preferences.strength).all()
    level, n_levels = preference_levels(only_winners(preferences))
    assert n_levels == 3
    assert (level - 1 == preferences.outcome).all()
    level, n_levels = preference_levels(graded(0, ties=False)[0])
    assert n_levels == 4
    many = replace(preferences, strength=np.abs(preferences.outcome) * (1.0 + np.arange(len(preferences))))
    level, n_levels = preference_levels(many)
    assert n_levels == 15
    assert np.bincount(level, minlength=15).min() > 10


@pytest.mark.parametrize("ties", [True, False])
def test_strength_brings_scores_nearer_to_the_truth(ties):
    gains = []
    for seed in range(6):
        preferences, truth = graded(seed, ties=ties)
        with_strength = kendalltau(LatentScore().fit(preferences).scores, truth).statistic
        without = kendalltau(LatentScore().fit(only_winners(preferences)).scores, truth).statistic
        gains.append(with_strength - without)
    assert np.mean(gains) > 0.01
    assert np.mean(np.array(gains) > 0) >= 0.5


def test_sides_exchanged_change_nothing():
    preferences, _ = graded(1)
    turned = replace(
        preferences, left=preferences.right, right=preferences.left, outcome=(-preferences.outcome).astype(np.int8)
    )
    one, other = (LatentScore(tol=1e-5).fit(p) for p in (preferences, turned))
    assert other.scores == pytest.approx(one.scores, abs=1e-3)
    cuts = np.array(one.estimates["cuts"])
    assert cuts == pytest.approx(-cuts[::-1])
    assert cuts == pytest.approx([-2.0, -0.4, 0.4, 2.0], abs=0.5)


def test_win_rates_know_the_ties():
    preferences, truth = graded(2, n=4000)
    consensus = LatentScore().fit(preferences)
    best, worst = int(np.argmax(truth)), int(np.argmin(truth))
    assert consensus.win_rate(best, worst)["share"] > 0.95
    assert consensus.win_rate(best, worst)["share"] + consensus.win_rate(worst, best)["share"] == pytest.approx(1.0)


@pytest.mark.parametrize(("method", "lost"), [("latent_score", False), ("bradley_terry", False), ("crowd_bt", True)])
def test_whether_strengths_are_lost_is_said(method, lost):
    from crowdrank.io import listen

    said = []
    listen(said.append)
    try:
        cr.aggregate(graded(3)[0], method)
    finally:
        listen(None)
    assert any("only who won" in text for text in said) == lost
