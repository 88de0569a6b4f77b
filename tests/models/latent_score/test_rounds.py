"""The rounds of a fit: they settle, whatever annotators do with ties and extremes, and rounding orders nothing."""

import numpy as np
import pytest
from tests.models.latent_score.test_latent_score import some_grades, some_preferences

from crowdrank import Preferences
from crowdrank.aggregators import LatentScore
from crowdrank.errors import DataWarning


def with_ties(seed, n=1500):
    """Preferences of which annotators call some ties, each as many as suits them."""
    drawn, _, _ = some_preferences(seed, n, n_queries=1, n_items=15, n_annotators=60)
    rng = np.random.default_rng(seed)
    often = rng.choice([0.0, 0.1, 0.5], 60)
    outcome = np.where(rng.random(n) < often[drawn.annotator], 0, drawn.outcome).astype(np.int8)
    return Preferences(
        items=drawn.items, annotators=drawn.annotators, annotator=drawn.annotator, left=drawn.left, right=drawn.right,
        outcome=outcome,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_annotators_who_use_ties_differently_settle(seed):
    consensus = LatentScore(tol=1e-5).fit(with_ties(seed))
    assert consensus.trace.converged
    assert consensus.trace.n_iter < 100
    # the cuts of the crowd are those of its mean annotator
    assert np.log(consensus.quality.parameters["spread"]).mean() == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_log_likelihood_rises_until_it_stands_still(seed):
    drawn, _, _ = some_grades(seed, 4000, n_items=100, n_annotators=100)
    trace = LatentScore().fit(drawn).trace
    assert trace.converged
    assert trace.n_iter < 40
    assert (np.diff(trace.log_likelihood[:6]) > 0).all()
    last = np.array(trace.log_likelihood[-3:])
    assert np.ptp(last) < 1e-3 * len(drawn)


def test_opposite_judgments_make_equal_scores():
    """Rounding must not decide which of two items is better."""
    drawn, _, _ = some_preferences(3, 400, n_queries=1, n_items=10, n_annotators=4)
    who, left, right = (drawn.annotators.ids[drawn.annotator].to_list(), drawn.left.tolist(), drawn.right.tolist())
    won = np.where(drawn.outcome > 0, "left", "right").tolist()
    rows = [(a, "q", f"i{x}", f"i{y}", winner) for a, x, y, winner in zip(who, left, right, won, strict=True)]
    # each contradicts himself on a pair of his own, on either side
    for number, annotator in enumerate(drawn.annotators.ids):
        sides = [("u", "v", "left"), ("u", "v", "right"), ("v", "u", "left"), ("v", "u", "right")]
        rows += [(annotator, f"even {number}", *side) for side in sides]
    with pytest.warns(DataWarning, match="repeat one by the same annotator"):
        judgments = Preferences.from_rows(rows)
    consensus = LatentScore().fit(judgments)
    assert len(set(consensus.scores[consensus.items.query == judgments.items.queries.code("q")])) == 10
    for number in range(4):
        u, v = (consensus.items.code(item, f"even {number}") for item in "uv")
        assert consensus.scores[u] == consensus.scores[v]
