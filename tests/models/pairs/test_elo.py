"""Elo: golden values of a peer, the slow twin, order and time."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.oracles import pairs as slow
from tests.strategies import judgments, preference_rows

from crowdrank.data.judgments import Preferences
from crowdrank.errors import ParameterError
from crowdrank.models.pairs.elo import Elo

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "elo.json").read_text())


@pytest.mark.parametrize("k", [4, 32])
def test_golden(k):
    table = pl.DataFrame(GOLDEN["input"]["rows"], schema=GOLDEN["input"]["columns"], orient="row")
    found = Elo(k=k).fit(Preferences.from_frame(table)).scores
    np.testing.assert_allclose(found, GOLDEN["expected"][f"k{k}"]["scores"], rtol=1e-11)


@given(preference_rows())
def test_equals_the_slow_twin(rows):
    preferences = judgments("preference", rows)
    columns = (preferences.left, preferences.right, preferences.outcome, None, preferences.n_items)
    for k, initial, base, scale in ((4, 1000, 10, 400), (20, 0, 2.0, 50)):
        found = Elo(k=k, initial=initial, base=base, scale=scale).fit(preferences).scores
        np.testing.assert_allclose(found, slow.elo(*columns, k, initial, base, scale), rtol=1e-9, atol=1e-9)


def test_time_orders_the_preferences_and_rows_do_not():
    rows = {"left": ["x", "y", "x"], "right": ["y", "z", "z"], "winner": ["x", "y", "z"], "time": [3, 1, 2]}
    table = pl.DataFrame(rows)
    found = Elo(k=32).fit(Preferences.from_frame(table)).scores
    shuffled = Elo(k=32).fit(Preferences.from_frame(table[[2, 0, 1]])).scores
    sequence = Elo(k=32).fit(Preferences.from_frame(table.sort("time").drop("time"))).scores
    np.testing.assert_array_equal(found, shuffled)
    np.testing.assert_array_equal(found, sequence)


def test_without_time_the_rows_are_the_order():
    table = pl.DataFrame({"left": ["x"] * 2, "right": ["y"] * 2, "winner": ["x", "y"]})
    one, other = (Elo(k=32).fit(Preferences.from_frame(t)).scores for t in (table, table.reverse()))
    np.testing.assert_allclose(one, other[::-1])
    assert one[0] < 1000 < one[1]


def test_the_sum_of_scores_stays_and_unjudged_items_stay_at_the_start():
    rows = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "tie"], "weight": [2, 0.5]}
    consensus = Elo().fit(Preferences.from_frame(rows, items={"item": ["x", "y", "z"]}))
    assert consensus.scores.sum() == pytest.approx(3000)
    assert consensus.scores[2] == 1000
    assert consensus.std_error is None


def test_a_weight_multiplies_k():
    rows = {"left": ["x"], "right": ["y"], "winner": ["x"], "weight": [3.0]}
    assert Elo(k=4).fit(Preferences.from_frame(rows)).scores.tolist() == pytest.approx([1006, 994])


def test_recovers_the_order():
    rng = np.random.default_rng(0)
    scores = np.linspace(2, -2, 20)
    left = rng.integers(0, 20, 20_000)
    right = (left + rng.integers(1, 20, 20_000)) % 20
    won = rng.random(20_000) < 1 / (1 + np.exp(scores[right] - scores[left]))
    table = pl.DataFrame({"left": left, "right": right, "winner": np.where(won, "left", "right")})
    consensus = Elo().fit(Preferences.from_frame(table))
    assert np.corrcoef(consensus.scores, scores)[0, 1] > 0.98


@pytest.mark.parametrize("wrong", [{"k": 0}, {"base": 1}, {"scale": -1}])
def test_wrong_parameters(wrong):
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))}="):
        Elo(**wrong)
