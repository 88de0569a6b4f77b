"""What one more judgment would tell: the exact form against plain sums, and beside the scheme's own."""

import numpy as np
import pytest
from tests.models.latent_score.test_latent_score import some_preferences

from crowdrank import aggregate
from crowdrank.aggregators import LatentScore
from crowdrank.errors import ParameterError
from crowdrank.models.latent_score.information import Answerers, expected_information, pair_spread
from crowdrank.schemes.informative_pairs import _scores
from crowdrank.schemes.kernels.choosing import Pairs, worths


@pytest.fixture(scope="module")
def compared():
    """A consensus of preferences, and all pairs of its first query."""
    drawn, _, _ = some_preferences(1, 600, n_queries=2, n_items=12, n_annotators=10)
    left, right = np.triu_indices(12, 1)
    return LatentScore().fit(drawn), left, right, drawn


def entropy(chances):
    """Entropy of a distribution."""
    chances = np.asarray(chances)
    return -(chances * np.log(chances)).sum(axis=-1)


def worth(consensus, left, right, alpha):
    """What the scheme's own form says of pairs."""
    none, zeros = np.zeros(len(left) + 1, np.int64), np.zeros(len(left), np.int32)
    return worths(Pairs(left, right, zeros, none, np.empty(0, np.int32)), _scores(consensus), alpha**2)


def test_variances_of_differences_have_the_covariance(compared):
    consensus, left, right, _ = compared
    block = consensus.covariance[0]
    np.testing.assert_allclose(
        pair_spread(consensus, left, right)[1], block[left, left] + block[right, right] - 2 * block[left, right]
    )


def test_the_exact_form_is_the_expected_fall_of_entropy(compared):
    consensus, left, right, _ = compared
    gap, variance = pair_spread(consensus, left, right)
    found = expected_information(Answerers.of(consensus), np.full(len(left), 2), gap, variance)
    alpha, bias = (consensus.quality.parameters[name][2] for name in ("alpha", "bias"))
    points = np.linspace(-8, 8, 4001)
    weights = np.exp(-(points**2) / 2) / np.exp(-(points**2) / 2).sum()
    for place in range(0, len(left), 7):
        seen = gap[place] + np.sqrt(variance[place]) * points
        chance = 1 / (1 + np.exp(-(alpha * seen + bias)))
        both = np.stack([chance, 1 - chance], axis=-1)
        expected = entropy(weights @ both) - weights @ entropy(both)
        assert found[place] == pytest.approx(expected, abs=1e-6)
    # the scheme's quick form puts pairs in about the same order
    assert np.corrcoef(found, worth(consensus, left, right, alpha))[0, 1] > 0.95


def test_somebody_not_seen_before_is_the_crowds_mean(compared):
    consensus, left, right, _ = compared
    answerers = Answerers.of(consensus)
    assert answerers.alpha[-1] == pytest.approx(consensus.quality.parameters["alpha"].mean())
    nobody = np.full(len(left), -1)
    assert (expected_information(answerers, nobody, *pair_spread(consensus, left, right)) > 0).all()


def test_information_of_nothing_unknown_is_nothing(compared):
    answerers = Answerers.of(compared[0])
    who = np.zeros(3, int)
    np.testing.assert_allclose(
        expected_information(answerers, who, np.array([0.0, 1.0, 2.0]), np.zeros(3)), 0, atol=1e-12
    )


def test_another_method_is_refused(compared):
    _, left, right, drawn = compared
    with pytest.raises(ParameterError, match="use latent_score"):
        Answerers.of(aggregate(drawn, method="bradley_terry"))
    with pytest.raises(ParameterError, match="use latent_score"):
        pair_spread(aggregate(drawn, method="borda"), left, right)
