"""One-coin accuracies, flipped preferences and spammers."""

import numpy as np
import polars as pl
import pytest

from crowdrank import simulate
from crowdrank.errors import ParameterError

N = 200_000


def truth_of(shares, n_items, n_queries=1):
    """Items of given class shares, in equal queries."""
    grade = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_items).astype(int))
    item = [f"i{number:06d}" for number in range(len(grade))]
    query = [f"q{number % n_queries}" for number in range(len(grade))]
    return {"query": query, "item": item, "grade": grade}


def drawn_levels(drawn, truth):
    """Grade given and true grade of each row."""
    known = pl.DataFrame(truth).sort("query", "item")["grade"].to_numpy()
    return drawn.judgments.grade, known[drawn.judgments.item]


def test_normal_accuracies_are_clipped():
    accuracy = simulate.normal(0.7, 0.2, n_annotators=N, seed=1).accuracy
    assert (accuracy >= 0).all()
    assert np.mean(accuracy == 1) == pytest.approx(0.067, abs=0.003)
    assert np.median(accuracy) == pytest.approx(0.7, abs=0.003)
    inside = accuracy[(accuracy > 0.5) & (accuracy < 0.9)]
    assert len(inside) / N == pytest.approx(0.683, abs=0.005)


def test_log_normal_mean_and_sd_are_those_of_the_accuracy():
    # at mean 0.2 next to nothing is clipped
    accuracy = simulate.log_normal(0.2, 0.1, n_annotators=N, seed=1).accuracy
    assert accuracy.mean() == pytest.approx(0.2, abs=0.001)
    assert accuracy.std() == pytest.approx(0.1, abs=0.002)
    assert simulate.log_normal(0.4, 0.2, n_annotators=N, seed=2).accuracy.mean() == pytest.approx(0.4, abs=0.004)


def test_uniform_accuracies():
    accuracy = simulate.uniform(0.2, 0.6, n_annotators=N, seed=1).accuracy
    assert 0.2 <= accuracy.min() < 0.201 < 0.599 < accuracy.max() <= 0.6
    assert accuracy.mean() == pytest.approx(0.4, abs=0.002)


def test_one_coin_grades_are_right_as_often_as_said_and_spread_their_errors():
    truth = truth_of([0.5, 0.3, 0.2], 3000)
    pool = simulate.OneCoin(np.array([0.9, 0.4, 0.0, 1.0]))
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=4), seed=3)
    given, known = drawn_levels(drawn, truth)
    for annotator, accuracy in enumerate(pool.accuracy):
        mine = drawn.judgments.annotator == annotator
        assert np.mean(given[mine] == known[mine]) == pytest.approx(accuracy, abs=0.03)
        for wrong in (0, 2):
            share = np.mean(given[mine & (known == 1)] == wrong)
            assert share == pytest.approx((1 - accuracy) / 2, abs=0.05)


def test_two_grades_with_random_ties_are_right_as_often_as_the_mean_accuracy():
    truth = truth_of([0.7, 0.16, 0.14], 40_000)
    pool = simulate.normal(0.7, 0.2, n_annotators=100, seed=5)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=2), seed=5)
    given, known = drawn_levels(drawn, truth)
    pairs, right = given.reshape(-1, 2), known.reshape(-1, 2)[:, 0]
    coin = np.random.default_rng(0).integers(0, 2, len(pairs))
    vote = pairs[np.arange(len(pairs)), coin]
    assert np.mean(vote == right) == pytest.approx(pool.accuracy.mean(), abs=0.01)


def test_quality_of_one_coin_graders_is_their_share_of_pairs_in_order():
    truth = truth_of([0.5, 0.3, 0.2], 1000)
    pool = simulate.OneCoin(np.array([0.9, 0.6, 1 / 3, 0.1]))
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=4), seed=7)
    given, known = drawn_levels(drawn, truth)
    for annotator, quality in enumerate(drawn.quality["quality"]):
        mine = drawn.judgments.annotator == annotator
        seen = np.sign(np.subtract.outer(given[mine], given[mine]))
        real = np.sign(np.subtract.outer(known[mine], known[mine]))
        ordered = (seen != 0) & (real > 0)
        assert np.mean(seen[ordered] > 0) == pytest.approx(quality, abs=0.02)
    assert drawn.quality["quality"][2] == pytest.approx(0.5)


def test_quality_counts_pairs_within_queries_only():
    # query a has levels 0 and 1, query b levels 1 and 2: no pair of 0 and 2
    truth = {"query": ["a", "a", "b", "b"], "item": ["x", "y", "x", "y"], "grade": [0, 1, 1, 2]}
    matrix = np.array([[[0.8, 0.2, 0.0], [0.2, 0.6, 0.2], [0.0, 0.4, 0.6]]])
    quality = simulate.grades(truth, simulate.Confusions(matrix), simulate.PerItem(k=1)).quality["quality"][0]
    first = (0.8 * 0.8 + 0.2 * 0.2, 0.2 * 0.2)
    second = (0.6 * 0.8 + 0.4 * 0.2, 0.4 * 0.2)
    assert quality == pytest.approx((first[0] + second[0]) / (sum(first) + sum(second)))


def test_flip_rates():
    truth = {"item": list(range(60)), "grade": np.arange(60.0)}
    pool = simulate.Flips(np.array([0.0, 0.2, 0.5, 1.0]))
    drawn = simulate.preferences(truth, pool, simulate.AllPairs(k=4), seed=1)
    rows = drawn.judgments
    right = rows.outcome * np.sign(rows.left - rows.right) > 0
    for annotator, flip in enumerate(pool.flip):
        assert np.mean(right[rows.annotator == annotator]) == pytest.approx(1 - flip, abs=0.04)
    assert drawn.quality["quality"].to_list() == [1.0, 0.8, 0.5, 0.0]
    assert np.mean(rows.left < rows.right) == pytest.approx(0.5, abs=0.02)


def test_ties_and_position_bias():
    truth = {"item": list(range(100)), "grade": np.arange(100.0)}
    pool = simulate.Flips(np.full(2, 0.1), tie=0.3, position_bias=np.array([0.4, -0.4]))
    drawn = simulate.preferences(truth, pool, simulate.AllPairs(k=2), seed=1)
    rows = drawn.judgments
    assert np.mean(rows.outcome == 0) == pytest.approx(0.3, abs=0.02)
    for annotator, side in ((0, 0.7), (1, 0.3)):
        answered = rows.outcome[(rows.annotator == annotator) & (rows.outcome != 0)]
        assert np.mean(answered > 0) == pytest.approx(side, abs=0.03)
    right = (rows.outcome * np.sign(rows.left - rows.right))[rows.outcome != 0] > 0
    assert np.mean(right) == pytest.approx(drawn.quality["quality"][0], abs=0.02)
    assert drawn.quality["quality"].to_list() == pytest.approx([0.2 + 0.6 * 0.9] * 2)


def test_equal_items_are_preferred_by_a_coin():
    truth = {"item": list(range(200)), "grade": np.zeros(200)}
    for pool in (simulate.Flips(np.zeros(1)), simulate.OneCoin(np.ones(1))):
        outcome = simulate.preferences(truth, pool, simulate.AllPairs(), seed=2).judgments.outcome
        assert np.mean(outcome == 1) == pytest.approx(0.5, abs=0.02)
        assert (outcome != 0).all()


def test_spammers_have_their_share_and_their_quality():
    truth = truth_of([0.4, 0.3, 0.3], 200)
    crowd = simulate.with_spammers(simulate.OneCoin(np.full(40, 1.0)), random=0.25, malicious=0.1, seed=4)
    drawn = simulate.grades(truth, crowd, simulate.PerItem(k=40), seed=4)
    table = drawn.quality
    counts = {role: table.filter(pl.col("role") == role).height for role in ("honest", "random", "malicious")}
    assert counts == {"honest": 26, "random": 10, "malicious": 4}
    for role, quality in (("honest", 1.0), ("random", 0.5), ("malicious", 0.0)):
        assert table.filter(pl.col("role") == role)["quality"].to_list() == pytest.approx([quality] * counts[role])
    assert table["accuracy"].null_count() == 14
    given, known = drawn_levels(drawn, truth)
    role = crowd.role[drawn.judgments.annotator]
    assert (given[role == 0] == known[role == 0]).all()
    assert (given[role == 2] == 2 - known[role == 2]).all()
    shares = np.bincount(given[role == 1].astype(int)) / np.sum(role == 1)
    assert shares == pytest.approx(np.full(3, 1 / 3), abs=0.04)


def test_spammers_of_preferences():
    truth = {"item": list(range(50)), "grade": np.arange(50.0)}
    crowd = simulate.with_spammers(simulate.Flips(np.zeros(20)), random=0.5, malicious=0.25, seed=4)
    rows = simulate.preferences(truth, crowd, simulate.AllPairs(k=10), seed=4).judgments
    right = rows.outcome * np.sign(rows.left - rows.right) > 0
    role = crowd.role[rows.annotator]
    assert right[role == 0].all()
    assert not right[role == 2].any()
    assert np.mean(right[role == 1]) == pytest.approx(0.5, abs=0.03)


def test_spammers_of_rankings():
    truth = {
        "query": np.repeat(np.arange(300), 6),
        "item": np.tile(np.arange(6), 300),
        "grade": np.tile(np.arange(6), 300),
    }
    crowd = simulate.with_spammers(simulate.Swaps(np.zeros(12, int)), random=0.5, malicious=0.25, seed=4)
    drawn = simulate.rankings(truth, crowd, simulate.PerQuery(k=12), seed=4)
    rows = drawn.judgments
    within = (rows.item % 6).reshape(-1, 6)
    role = crowd.role[rows.annotator]
    assert (within[role == 0] == np.arange(5, -1, -1)).all()
    assert (within[role == 2] == np.arange(6)).all()
    shares = np.bincount(within[role == 1][:, 0], minlength=6) / np.sum(role == 1)
    assert shares == pytest.approx(np.full(6, 1 / 6), abs=0.03)
    assert drawn.quality["quality"].value_counts().height == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.OneCoin(np.array([0.5, 1.2])), "accuracy must be between 0 and 1, not 1.2"),
        (lambda: simulate.OneCoin(np.array([np.nan])), "accuracy must be between 0 and 1, not nan"),
        (lambda: simulate.Flips(np.array([-0.1])), "flip must be between 0 and 1, not -0.1"),
        (lambda: simulate.Flips(np.array([0.1]), tie=1.5), "tie must be between 0 and 1"),
        (lambda: simulate.Flips(np.array([0.1]), position_bias=-2), "position_bias must be between -1 and 1"),
        (lambda: simulate.normal(1.7, 0.2, n_annotators=3), "mean must be between 0 and 1"),
        (lambda: simulate.normal(0.7, -0.2, n_annotators=3), "sd must be 0 or more"),
        (lambda: simulate.normal(0.7, 0.2, n_annotators=0), "at least 1 annotator"),
        (lambda: simulate.log_normal(0, 0.2, n_annotators=3), "mean must lie above 0"),
        (lambda: simulate.uniform(0.6, 0.2, n_annotators=3), "low must not be above high"),
        (lambda: simulate.with_spammers(simulate.OneCoin(np.ones(2)), random=0.7, malicious=0.5), "above 1"),
        (lambda: simulate.with_spammers(simulate.OneCoin(np.ones(2)), random=-1), "random must be between 0 and 1"),
    ],
)
def test_bad_parameters_are_named_with_their_range(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_pool_of_the_wrong_kind_is_refused():
    with pytest.raises(ParameterError, match="Flips annotators give preferences, not grades"):
        simulate.grades({"item": [1, 2], "grade": [0, 1]}, simulate.Flips(np.zeros(5)))
