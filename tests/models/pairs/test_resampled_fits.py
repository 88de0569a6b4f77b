"""Resamples of preferences fitted many at once: the scores that each would get alone."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Preferences
from crowdrank.errors import DataWarning
from crowdrank.models.pairs import bradley_terry as resamples
from crowdrank.models.pairs.bradley_terry import BradleyTerry
from crowdrank.resampling import plan_draws, replicates


def simulated(sizes, n_rows, *, n_annotators=25, tie=0.1, seed=0):
    """Preferences of known scores in queries of the given sizes."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(0, 1, offsets[-1])
    query = rng.integers(0, len(sizes), n_rows)
    left = rng.integers(0, sizes[query])
    right = (left + rng.integers(1, sizes[query])) % sizes[query] + offsets[query]
    left = left + offsets[query]
    won = rng.random(n_rows) < 1 / (1 + np.exp(scores[right] - scores[left]))
    outcome = np.where(rng.random(n_rows) < tie, 0, np.where(won, 1, -1)).astype(np.int8)
    queries = Index(pl.Series("id", [f"q{k}" for k in range(len(sizes))]))
    items = Items(
        queries,
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        pl.Series("item", [f"i{k:04d}" for k in range(offsets[-1])]),
    )
    return Preferences(
        items=items,
        annotators=Index(pl.Series("id", [f"a{k:03d}" for k in range(n_annotators)])),
        annotator=rng.integers(0, n_annotators, n_rows).astype(np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome,
    )


def refits(method, preferences, n=12, resample="judgment", seed=3):
    """What fits the resamples, and the consensus of all preferences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        draws = plan_draws(preferences, n, resample, seed)
        consensus = method.fit(preferences)
    return method.refits(preferences, draws, consensus)[1], consensus


WEIGHTS = {
    "none": lambda n: None,
    "whole": lambda n: np.random.default_rng(1).integers(1, 4, n).astype(float),
    "fractional": lambda n: np.random.default_rng(1).uniform(0.3, 2, n),
}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("ties", ["split", "ignore", "davidson"])
@pytest.mark.parametrize("resample", ["judgment", "annotator"])
def test_scores_are_those_of_a_fit_to_the_resample(ties, resample, weight):
    preferences = simulated([5, 30, 8], 900)
    preferences = replace(preferences, weight=WEIGHTS[weight](len(preferences)))
    method = BradleyTerry(ties=ties, tol=1e-9)
    fit, consensus = refits(method, preferences, resample=resample)
    found = fit(0, 12)
    spread = consensus.std_error
    for number in range(12):
        weights = fit.draws.weights(fit.draws.counts(number))
        alone = method.scores(preferences.with_weights(weights))
        assert np.abs((found.scores[number] - alone) / spread).max() < 0.01
    assert found.converged.all()


def test_few_steps_are_made_up_for_one_by_one(monkeypatch):
    fit, _ = refits(BradleyTerry(), simulated([12], 150))
    plenty = fit(0, 12)
    monkeypatch.setattr(resamples, "_MAX_STEPS", 1)
    few = fit(0, 12)
    np.testing.assert_allclose(few.scores, plenty.scores, atol=3e-3)
    assert few.converged.all()
    np.testing.assert_array_equal(few.n_lost, plenty.n_lost)
    np.testing.assert_array_equal(few.apart, plenty.apart)


@pytest.mark.parametrize("ties", ["split", "davidson"])
def test_the_order_of_rows_does_not_matter(ties):
    preferences = simulated([20], 400)
    mixed = preferences.select(np.random.default_rng(5).permutation(400))
    for resample in ("judgment", "annotator"):
        one, other = (
            refits(BradleyTerry(ties=ties), given, resample=resample)[0](0, 12) for given in (preferences, mixed)
        )
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_how_many_are_fitted_at_once_does_not_matter(monkeypatch):
    preferences = simulated([6, 40], 1500)
    method = BradleyTerry()
    draws, consensus = plan_draws(preferences, 40), method.fit(preferences)
    together = replicates(method, preferences, draws, consensus).scores
    monkeypatch.setattr(resamples, "_MAX_RESAMPLES_AT_ONCE", 4)
    np.testing.assert_allclose(replicates(method, preferences, draws, consensus).scores, together, atol=1e-6)


def test_large_data_take_fewer_resamples_at_once(monkeypatch):
    fit, _ = refits(BradleyTerry(), simulated([30], 500))
    assert fit.at_once == 32
    monkeypatch.setattr(resamples, "_MAX_PAIR_CELLS", 10 * len(fit.rows.second))
    assert fit.at_once == 8
    monkeypatch.setattr(resamples, "_MAX_UNIT_CELLS", 100)
    assert fit.at_once == 1


@pytest.mark.parametrize("ties", ["split", "davidson"])
def test_items_without_contests_and_groups_apart_are_counted(ties):
    # two pairs of items that a single preference connects, and one item that was compared once
    rows = [("a", "b", w) for w in ("left", "right", "tie") * 8] + [("c", "d", w) for w in ("left", "right", "tie") * 8]
    rows += [("a", "c", "left"), ("e", "a", "left")]
    table = pl.DataFrame(rows, schema=["left", "right", "winner"], orient="row")
    preferences = Preferences.from_frame(table)
    fit, _ = refits(BradleyTerry(ties=ties), preferences, n=60)
    found = fit(0, 60)
    # the bridge, or the only contest of e, is missing from a resample with probability 1 / e
    assert 10 < found.apart.sum() < 35
    assert 10 < found.n_lost.sum() < 35
    assert np.isfinite(found.scores).all()
    lost = found.n_lost > 0
    np.testing.assert_allclose(found.scores[lost, 4], 0, atol=1e-9)
    assert (found.scores[~lost, 4] > 0).all()
    # apart, each group is centred on its own
    alone = found.scores[found.apart]
    np.testing.assert_allclose(alone[:, 2] + alone[:, 3], 0, atol=1e-6)
