"""Ranks before control are by the same annotators as those after it."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.review.findings import Facts


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(
    "given",
    [{"trusted": ["ann", "bob"]}, {"known": {"item": ["m0", "m2", "m5"], "score": [1.5, 0.3, -1.5]}}],
    ids=["trusted annotators", "known scores"],
)
def test_scores_without_control_follow_what_is_known_beforehand(given):
    rng = np.random.default_rng(3)
    truth = np.linspace(1.5, -1.5, 6)
    rows = []
    for who, sign in [("ann", 1), ("bob", 1), ("bot0", -1), ("bot1", -1), ("bot2", -1)]:
        for _ in range(60):
            (left, right), length = rng.choice(6, 2, replace=False), rng.normal()
            wins = rng.random() < 1 / (1 + np.exp(-sign * (truth[left] - truth[right]) - 0.3 * length))
            rows.append((who, f"m{left}", f"m{right}", "left" if wins else "right", length))
    frame = pl.DataFrame(rows, schema=["annotator", "left", "right", "winner", "length"], orient="row")
    preferences = cr.Preferences.from_frame(frame, covariates=["length"])
    consensus = cr.aggregate(preferences, "latent_score", control=["length"], **given)
    before = Facts(consensus, preferences).uncontrolled_scores
    # three programs of five are reversed, so that otherwise the order would be too
    assert np.corrcoef(before, truth)[0, 1] > 0.9
    assert np.corrcoef(before, consensus.scores)[0, 1] > 0.99
