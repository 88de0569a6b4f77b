"""Errors that annotators share widen intervals, and nothing else does."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

N_PAIRS, N_ANNOTATORS = 300, 12


def crowd(seed, n_families):
    """Preferences about pairs of two items, and which item is better: annotators of a family see each pair alike."""
    rng = np.random.default_rng(seed)
    gap = rng.normal(0, 1.5, N_PAIRS)
    seen_by_family = gap[:, None] + rng.normal(0, 1.5, (N_PAIRS, max(n_families, 1)))
    seen = seen_by_family[:, np.arange(N_ANNOTATORS) % n_families] if n_families else np.tile(gap, (N_ANNOTATORS, 1)).T
    won = rng.logistic(size=seen.shape) < 1.5 * seen
    pair, who = np.divmod(np.arange(seen.size), N_ANNOTATORS)
    votes = pl.DataFrame({"query": pair, "left": "x", "right": "y", "annotator": who, "winner": won.ravel()})
    votes = votes.with_columns(winner=pl.when("winner").then(pl.lit("left")).otherwise(pl.lit("right")))
    return cr.Preferences.from_frame(votes), gap > 0


def said_and_right(consensus, better):
    """Mean probability of the order that is said, and how often it is right."""
    first = np.arange(0, 2 * N_PAIRS, 2)
    chance = consensus.beats_each(first, first + 1)
    return np.maximum(chance, 1 - chance).mean(), ((chance > 0.5) == better).mean()


def test_families_are_said_to_be_as_sure_as_they_are_right():
    off = {"none": [], None: []}
    for seed in range(5):
        votes, better = crowd(seed, 3)
        for shared, differences in off.items():
            said, right = said_and_right(cr.aggregate(votes, "bradley_terry", shared=shared), better)
            differences.append(said - right)
    assert np.mean(off["none"]) > 0.06
    assert abs(np.mean(off[None])) < 0.04


def test_independent_annotators_keep_their_errors():
    widened = 0
    for seed in range(10):
        consensus = cr.aggregate(crowd(seed, 0)[0], "bradley_terry")
        widened += consensus.estimates.get("shared", {"wider": 1.0})["wider"] > 1.02
    assert widened <= 1


def test_intervals_and_covariances_are_widened_alike():
    votes, _ = crowd(0, 3)
    plain = cr.aggregate(votes, "bradley_terry", shared="none")
    wide = cr.aggregate(votes, "bradley_terry", shared="estimated")
    wider = wide.estimates["shared"]["wider"]
    assert wider > 1.1
    np.testing.assert_allclose(wide.std_error, wider * plain.std_error)
    np.testing.assert_allclose(np.stack(wide.covariance), wider**2 * np.stack(plain.covariance))
    assert wide.order(0) == plain.order(0)
    assert "err together" in cr.findings(wide, votes).of("shared").sentence


def test_a_copy_many_times_over_is_one_voice():
    """Four copies of one annotator among six others count as one."""
    rng = np.random.default_rng(1)
    gap = rng.normal(0, 1.5, 200)
    own = rng.logistic(size=(200, 4)) < gap[:, None]
    won = np.concatenate(
        [np.repeat(own[:, :1], 4, axis=1), own[:, 1:], rng.logistic(size=(200, 3)) < gap[:, None]], axis=1
    )
    pair, who = np.divmod(np.arange(won.size), won.shape[1])
    winner = np.where(won.ravel(), "left", "right")
    votes = pl.DataFrame({"query": pair, "left": "x", "right": "y", "annotator": who, "winner": winner})
    consensus = cr.aggregate(cr.Preferences.from_frame(votes), "bradley_terry")
    # four copies and six others: (16 + 6) / 10 of the variance
    assert consensus.estimates["shared"]["wider"] ** 2 == pytest.approx(2.2, abs=0.25)


def test_too_few_annotators_are_refused_when_asked_and_left_alone_otherwise():
    votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    assert "shared" not in cr.aggregate(votes, "mean_grade").estimates
    with pytest.raises(ParameterError, match="at least five annotators"):
        cr.aggregate(votes, "mean_grade", shared="estimated")
    with pytest.raises(ParameterError, match="shared"):
        cr.aggregate(votes, "mean_grade", shared="some")
