"""What one more judgment would tell: both forms against plain sums, and batches."""

import numpy as np
import pytest
from tests.aggregators.test_latent_score import some_grades, some_preferences

from crowdrank import aggregate
from crowdrank.aggregators import LatentScore
from crowdrank.errors import ParameterError
from crowdrank.score_models.information import (
    Answerers,
    PairBatch,
    answer_chances,
    expected_information,
    grade_information,
    pair_spread,
    score_information,
)


@pytest.fixture(scope="module")
def compared():
    """A consensus of preferences, and all pairs of its first query."""
    drawn, _, _ = some_preferences(1, 600, n_queries=2, n_items=12, n_annotators=10)
    left, right = np.triu_indices(12, 1)
    return LatentScore().fit(drawn), left, right, drawn


@pytest.fixture(scope="module")
def graded():
    """A consensus of grades."""
    drawn, _, _ = some_grades(2, 500, n_queries=1, n_items=30, n_annotators=10)
    return LatentScore().fit(drawn), drawn


def entropy(chances):
    """Entropy of a distribution."""
    chances = np.asarray(chances)
    return -(chances * np.log(chances)).sum(axis=-1)


def test_the_quick_form_is_its_formula(compared):
    consensus, left, right, _ = compared
    batch = PairBatch(consensus, left, right)
    gap, variance = pair_spread(consensus, left, right)
    block = consensus.covariance[0]
    np.testing.assert_allclose(variance, block[left, left] + block[right, right] - 2 * block[left, right])
    alpha, bias = (consensus.quality.parameters[name][3] for name in ("alpha", "bias"))
    chance = 1 / (1 + np.exp(-(alpha * gap + bias) / np.sqrt(1 + np.pi / 8 * alpha**2 * variance)))
    np.testing.assert_allclose(batch.information(3), np.log(1 + alpha**2 * variance * chance * (1 - chance)))


def test_the_exact_form_is_the_expected_fall_of_entropy(compared):
    consensus, left, right, _ = compared
    batch = PairBatch(consensus, left, right)
    found = batch.information(2, exact=True)
    alpha, bias = (consensus.quality.parameters[name][2] for name in ("alpha", "bias"))
    points = np.linspace(-8, 8, 4001)
    weights = np.exp(-(points**2) / 2) / np.exp(-(points**2) / 2).sum()
    for place in range(0, len(left), 7):
        seen = batch.gap[place] + np.sqrt(batch.variance[place]) * points
        chance = 1 / (1 + np.exp(-(alpha * seen + bias)))
        both = np.stack([chance, 1 - chance], axis=-1)
        expected = entropy(weights @ both) - weights @ entropy(both)
        assert found[place] == pytest.approx(expected, abs=1e-6)
    assert np.corrcoef(found, batch.information(2))[0, 1] > 0.98


def test_what_is_asked_already_tells_less(compared):
    consensus, left, right, _ = compared
    batch = PairBatch(consensus, left, right)
    before, variance = batch.information(1), batch.variance.copy()
    batch.ask(5, 1)
    after = batch.information(1)
    assert after[5] < before[5]
    np.testing.assert_array_equal(np.delete(after, 5), np.delete(before, 5))
    alpha, bias = (consensus.quality.parameters[name][1] for name in ("alpha", "bias"))
    flat = 1 / np.sqrt(1 + np.pi / 8 * alpha**2 * variance[5])
    chance = 1 / (1 + np.exp(-flat * (alpha * batch.gap[5] + bias)))
    assert 1 / batch.variance[5] == pytest.approx(1 / variance[5] + alpha**2 * chance * (1 - chance))


def test_somebody_not_seen_before_is_the_crowds_mean(compared):
    consensus, left, right, _ = compared
    answerers = Answerers.of(consensus)
    assert answerers.alpha[-1] == pytest.approx(consensus.quality.parameters["alpha"].mean())
    assert (PairBatch(consensus, left, right).information(-1) > 0).all()


def test_a_grade_tells_more_of_the_score_than_of_the_grade(graded):
    consensus, _ = graded
    items = np.arange(30)
    score, grade = score_information(consensus, items, 4), grade_information(consensus, items, 4)
    assert ((grade > 0) & (grade < score + 1e-3)).all()
    # what is little known tells more
    few = np.argsort(consensus.std_error)
    assert score[few[-5:]].mean() > score[few[:5]].mean()


def test_chances_sum_to_one_and_are_calibrated(compared, graded):
    for consensus, drawn in ((compared[0], compared[3]), graded):
        chances = answer_chances(consensus, drawn)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        level = drawn.level_codes()[0] if drawn.kind == "grade" else (drawn.outcome > 0).astype(int)
        got = chances[np.arange(len(level)), level]
        assert got.mean() > 1 / chances.shape[1]


def test_information_of_nothing_unknown_is_nothing(compared):
    answerers = Answerers.of(compared[0])
    who = np.zeros(3, int)
    np.testing.assert_allclose(
        expected_information(answerers, who, np.array([0.0, 1.0, 2.0]), np.zeros(3)), 0, atol=1e-12
    )


def test_another_method_is_refused(compared):
    _, left, right, drawn = compared
    with pytest.raises(ParameterError, match="use latent_score"):
        PairBatch(aggregate(drawn, method="bradley_terry"), left, right)
