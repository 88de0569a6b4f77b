"""Errors that annotators share widen intervals: those that show, and the usual ones that cannot."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.review.diagnosis import shared_error_factor

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


def test_families_are_said_to_be_nearly_as_sure_as_they_are_right():
    off = {"none": [], None: []}
    for seed in range(5):
        votes, better = crowd(seed, 3)
        for shared, differences in off.items():
            said, right = said_and_right(cr.aggregate(votes, "bradley_terry", shared=shared), better)
            differences.append(said - right)
    assert np.mean(off["none"]) > 0.06
    assert -0.08 < np.mean(off[None]) < 0.0


def test_errors_found_widen_queries_taken_together_and_independent_annotators_keep_theirs():
    widened = 0
    for seed in range(10):
        consensus = cr.aggregate(crowd(seed, 0)[0].across_queries(), "bradley_terry", robust="none")
        widened += "shared" in consensus.estimates
    assert widened <= 1


def test_intervals_and_covariances_are_widened_alike():
    votes, _ = crowd(0, 3)
    plain = cr.aggregate(votes, "bradley_terry", shared="none")
    wide = cr.aggregate(votes, "bradley_terry", shared="estimated")
    assert wide.estimates["shared"]["wider"] > 1.1
    np.testing.assert_array_equal(wide.scores, plain.scores)
    variances = np.stack([np.diag(block) for block in wide.covariance]).ravel()
    np.testing.assert_allclose(variances, wide.std_error**2)
    np.testing.assert_allclose(np.stack(wide.covariance).sum(axis=1), np.stack(plain.covariance).sum(axis=1), atol=1e-9)
    assert wide.order(0) == plain.order(0)
    assert "err independently" in cr.findings(wide, votes).of("shared").sentence


@pytest.mark.parametrize(("error", "n_annotators"), [(0.75, 3), (0.75, 9), (0.75, 20), (0.5, 9), (1.0, 9)])
@pytest.mark.parametrize("method", ["bradley_terry", "latent_score"])
def test_an_error_of_all_is_allowed_for_where_it_has_the_usual_size(method, error, n_annotators):
    """Error of all of standard deviation .75 beside a truth of 1.5: a fifth of what annotators see."""
    gaps = {"none": [], None: []}
    for seed in range(4):
        votes, better = crowd_with_error(seed, error, n_annotators)
        for shared, found in gaps.items():
            said, right = said_and_right(cr.aggregate(votes, method, shared=shared), better)
            found.append(said - right)
    assert abs(np.mean(gaps[None])) < (0.03 if error == 0.75 else 0.06)
    if n_annotators > 3:
        assert np.mean(gaps["none"]) > np.mean(gaps[None]) + 0.03


def crowd_with_error(seed, error, n_annotators):
    """Preferences about pairs of two items that all annotators see with the same error, and which item is better."""
    rng = np.random.default_rng(seed)
    gap = rng.normal(0, 1.5, N_PAIRS)
    seen = gap + rng.normal(0, error, N_PAIRS)
    won = rng.logistic(size=(N_PAIRS, n_annotators)) < seen[:, None]
    pair, who = np.divmod(np.arange(won.size), n_annotators)
    winner = np.where(won.ravel(), "left", "right")
    votes = pl.DataFrame({"query": pair, "left": "x", "right": "y", "annotator": who, "winner": winner})
    return cr.Preferences.from_frame(votes), gap > 0


def test_no_judgments_tell_an_error_of_all_from_the_truth():
    """Nothing but the usual size of such errors can be said: truth and error have the same judgments."""
    votes, better = crowd_with_error(0, 1.0, 9)
    consensus = cr.aggregate(votes, "bradley_terry", shared="none")
    said, right = said_and_right(consensus, better)
    assert said - right > 0.05
    rng = np.random.default_rng(0)
    seen = rng.normal(0, 1.5, N_PAIRS) + rng.normal(0, 1.0, N_PAIRS)
    assert said == pytest.approx(said_and_right(consensus, seen > 0)[1], abs=0.03)


def test_leaderboards_over_prompts_known_items_and_trusted_annotators_need_no_allowance():
    rng = np.random.default_rng(0)
    rows = [
        (f"a{who}", f"p{prompt}", f"m{left}", f"m{right}", "left" if rng.random() < 0.6 else "right")
        for prompt in range(200)
        for left, right in [sorted(rng.choice(6, 2, replace=False))]
        for who in range(3)
    ]
    votes = cr.Preferences.from_rows(rows)
    board = cr.aggregate(votes.across_queries(), "bradley_terry", robust="none")
    plain = cr.aggregate(votes.across_queries(), "bradley_terry", robust="none", shared="none")
    np.testing.assert_array_equal(board.std_error, plain.std_error)
    assert "shared" in cr.aggregate(votes, "bradley_terry").estimates
    assert "shared" not in cr.aggregate(votes, "latent_score", trusted=["a0"]).estimates
    few = cr.Preferences.from_rows([row for row in rows if int(row[1][1:]) < 19])
    assert "shared" not in cr.aggregate(few, "bradley_terry").estimates


def test_grades_of_a_query_have_the_allowance_and_known_items_none():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(25, 4))
    rows = [
        (f"a{who}", f"q{query}", f"i{item}", float(np.clip(np.round(truth[query, item] + 3 + rng.normal()), 1, 5)))
        for query in range(25)
        for item in range(4)
        for who in range(3)
    ]
    grades = cr.Grades.from_rows(rows)
    plain, wide = (cr.aggregate(grades, "mean_grade", shared=shared) for shared in ("none", None))
    within = plain.scores.reshape(25, 4).var(axis=1, ddof=1).mean()
    np.testing.assert_allclose(wide.std_error**2 - plain.std_error**2, within / 4)
    known = {"query": ["q0", "q0", "q1"], "item": ["i0", "i1", "i2"], "score": truth[[0, 0, 1], [0, 1, 2]]}
    plain, wide = (cr.aggregate(grades, "latent_score", known=known, shared=shared) for shared in ("none", None))
    at_once = wide.covariance[0] - plain.covariance[0]
    np.testing.assert_array_equal(wide.std_error[[0, 1, 6]], plain.std_error[[0, 1, 6]])
    assert (at_once[:2] == 0).all()
    assert (np.diag(at_once)[2:] > 0).all()


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
    votes = cr.Preferences.from_frame(votes)
    consensus = cr.aggregate(votes, "bradley_terry", shared="none")
    # four copies and six others: (16 + 6) / 10 of the variance
    assert shared_error_factor(votes, consensus) == pytest.approx(2.2, abs=0.25)


def test_too_few_annotators_are_refused_when_asked_and_left_alone_otherwise():
    votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    assert "shared" not in cr.aggregate(votes, "mean_grade").estimates
    with pytest.raises(ParameterError, match="at least five annotators"):
        cr.aggregate(votes, "mean_grade", shared="estimated")
    with pytest.raises(ParameterError, match="shared"):
        cr.aggregate(votes, "mean_grade", shared="some")
