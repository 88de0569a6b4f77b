"""Uncertainty: the least sure first, of pairs and of items."""

import numpy as np
import pytest
from scipy.stats import norm
from tests.oracles import choosing as slow

import crowdrank as cr
from crowdrank import simulate
from crowdrank.errors import ParameterError
from crowdrank.schemes import Uncertainty
from crowdrank.schemes.situation import Situation


@pytest.fixture(scope="module")
def votes():
    """Preferences between the items of three queries."""
    truth = {"query": [f"q{n // 8}" for n in range(24)], "item": [f"i{n}" for n in range(24)], "grade": range(24)}
    return simulate.simulate(truth, annotators=10, noise="flip(0.25)", per_item=20, seed=1).judgments


def test_the_pair_nearest_to_a_toss_up_comes_first(votes):
    consensus = cr.aggregate(votes, "bradley_terry")
    requests = Uncertainty().propose(Situation.of(votes, consensus=consensus))
    # every pair of a query of eight lies within the ten next
    assert len(requests) == 3 * 28
    sure = requests.detail
    assert (np.diff(sure) >= -1e-8).all()
    a, b = requests.things["left"], requests.things["right"]
    query, start = consensus.items.query[a], consensus.items.offsets
    variance = [
        consensus.covariance[q][i, i] + consensus.covariance[q][j, j] - 2 * consensus.covariance[q][i, j]
        for q, i, j in zip(query, a - start[query], b - start[query], strict=True)
    ]
    expected = norm.cdf(np.abs(consensus.scores[a] - consensus.scores[b]) / np.sqrt(variance))
    np.testing.assert_allclose(sure, expected)
    # what an answer of the Bradley-Terry model brings the order of each pair, by adding up where scores may be
    gap = np.abs(consensus.scores[a] - consensus.scores[b])
    for n in np.flatnonzero(gap > 1e-3)[::7]:
        chance = 1 / (1 + np.exp(-gap[n] / np.sqrt(1 + np.pi / 8 * variance[n])))
        left = variance[n] / (1 + chance * (1 - chance) * variance[n])
        fall = slow.wrong(gap[n], variance[n], variance[n]) - slow.wrong(gap[n], variance[n], left)
        assert requests.gains[n] == pytest.approx(fall, abs=1e-4)


def test_the_least_sure_items_come_first():
    rows = [(f"a{a}", "q", f"i{n}", int(a < n)) for n in range(6) for a in range(5)]
    grades = cr.Grades.from_rows(rows)
    consensus = cr.aggregate(grades, "majority_vote")
    requests = Uncertainty().propose(Situation.of(grades, consensus=consensus, budget=2))
    assert set(requests.frame()["item"]) == {"i2", "i3"}
    assert requests.frame()["reason"][0].startswith("its most probable grade has a probability of 0.")
    assert len(Uncertainty(k=5).propose(Situation.of(grades, consensus=consensus))) == 0


def test_a_consensus_without_errors(votes):
    with pytest.raises(ParameterError, match="borda gives no uncertainty of its own; aggregate with bootstrap=200"):
        Uncertainty().propose(Situation.of(votes, consensus=cr.aggregate(votes, "borda")))
    with pytest.raises(ParameterError, match="k=0 must be at least 1"):
        Uncertainty(k=0)
