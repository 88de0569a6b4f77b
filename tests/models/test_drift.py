"""Quality that changes with time: found and used where held-out judgments ask for it, and nowhere else."""

import numpy as np
import polars as pl
import pytest
from tests.tiring_crowds import order_right, share_right, tiring_classes, tiring_preferences

import crowdrank as cr
from crowdrank.drift import Walk
from crowdrank.errors import JudgmentError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

CASES = {"dawid_skene": (tiring_classes, share_right, 0.02), "latent_score": (tiring_preferences, order_right, 0.03)}


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("drift", ["halves", "smooth"])
def test_a_crowd_that_tires_is_used_better(method, drift):
    make, measure, least = CASES[method]
    gains = []
    for seed in range(5):
        judged, truth = make(seed, tired=True)
        fits = [cr.aggregate(judged, method, params={"drift": one}) for one in ("none", drift)]
        gains.append(measure(fits[1], truth) - measure(fits[0], truth))
        found = fits[1].estimates["drift"]
        assert found["variance"] > 0
        assert found["gain"] > 3
        table = pl.DataFrame({name: found[name] for name in ("annotator", "window", "quality", "n_judgments")})
        by_window = table.group_by("window").agg(pl.col("quality").mean()).sort("window")["quality"].to_list()
        assert by_window[0] > by_window[-1] + 0.05
        assert table["n_judgments"].sum() == len(judged)
        # annotators are who they were
        assert fits[1].quality.frame()["annotator"].to_list() == fits[0].quality.frame()["annotator"].to_list()
    assert np.mean(gains) > least


@pytest.mark.parametrize("method", CASES)
def test_constant_annotators_have_one_quality(method):
    used = 0
    for seed in range(10):
        judged, _ = CASES[method][0](seed, tired=False)
        fits = [cr.aggregate(judged, method, params={"drift": drift}) for drift in ("none", "halves")]
        used += fits[1].estimates["drift"]["variance"] > 0
        if not fits[1].estimates["drift"]["variance"]:
            assert fits[0].frame().equals(fits[1].frame())
    assert used <= 2


def test_neither_names_nor_the_order_of_rows_matter():
    judged, _ = tiring_preferences(0, tired=True)
    frame = judged.frame()
    renamed = frame.reverse().with_columns(annotator=19 - pl.col("annotator").cast(int))
    scores = [
        cr.aggregate(cr.Preferences.from_frame(rows), "latent_score", params={"drift": "smooth"}).frame().sort("item")
        for rows in (frame, renamed)
    ]
    np.testing.assert_allclose(*(one["score"].to_numpy() for one in scores), atol=1e-6)


def test_evidence_is_carried_as_by_the_kalman_smoother():
    """A walk over three windows with known observations: the posterior is that of the joint normal."""
    variance, noise, seen = 0.5, np.array([1.0, 0.25, 2.0]), np.array([1.0, -2.0, 0.5])
    steps = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    precision = np.diag(1 / noise) + steps.T @ steps / variance
    wanted = np.linalg.solve(precision, seen / noise), 1 / np.diag(np.linalg.inv(precision))
    walk = Walk(3, variance)
    weight = walk.carry(1 / noise, 1 / noise)
    np.testing.assert_allclose(walk.carry(seen / noise, 1 / noise) / weight, wanted[0])
    np.testing.assert_allclose(weight, wanted[1])


def test_what_has_no_times_is_refused():
    votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    for method in CASES:
        with pytest.raises(JudgmentError, match="add a time column"):
            cr.aggregate(votes, method, params={"drift": "halves"})
    with pytest.raises(ParameterError, match="drift"):
        cr.aggregate(votes, "latent_score", params={"drift": "half"})
