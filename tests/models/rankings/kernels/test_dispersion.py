"""Expected distances, their inverse and normalising sums against enumeration."""

import numpy as np
import pytest
from tests.oracles import orders as slow

from crowdrank.models.rankings.kernels.true_rankings import (
    SizeCounts,
    count_cells,
    distance_table,
    expected_distance,
    log_normalisers,
    size_cells,
    solve_dispersions,
)

THETAS = [-800.0, -12.0, -1.0, -0.1, -1e-3, -1e-9, 0.0, 1e-9, 0.5, 3.0]


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
@pytest.mark.parametrize("n", range(1, 7))
def test_expected_distance_equals_enumeration(n, distance):
    for theta in THETAS:
        found = expected_distance(theta, n, distance)
        assert found == pytest.approx(slow.expected_distance(theta, n, distance), abs=1e-9)


@pytest.mark.parametrize("theta", [-1e-12, -1e-10, -1e-8, -1e-6, 1e-8])
def test_near_guessing_nothing_cancels(theta):
    # the formula as printed gives 53.9 at -1e-8 and -9534 at -1e-10
    assert expected_distance(theta, 15) == pytest.approx(52.5 + theta * (15 * 14 * 35 / 72), rel=1e-12)


def test_the_series_meets_the_formula_where_it_takes_over():
    for n in (15, 300):
        around = -0.01 / n * np.array([1 - 1e-9, 1 + 1e-9])
        below, above = expected_distance(around, n)
        assert below == pytest.approx(above, rel=1e-8)


def test_distances_fall_with_theta_and_stay_within_their_range():
    theta = -np.geomspace(1e-9, 800, 400)
    for distance, most in (("kendall", 15 * 14 / 4), ("cayley", 15 - np.sum(1 / np.arange(1, 16)))):
        found = expected_distance(theta, 15, distance)
        assert (np.diff(found) <= 1e-12 * most).all()
        assert found[0] == pytest.approx(most)
        assert 0 <= found[-1] < 1e-9


@pytest.mark.parametrize("n", range(1, 7))
def test_normalising_sums_equal_enumeration(n):
    theta = np.array([-12.0, -1.0, -1e-9, 0.0, 1e-4, 0.7])
    expected = [slow.log_normaliser(t, n) for t in theta]
    np.testing.assert_allclose(log_normalisers(theta, n)[:, n], expected, atol=1e-9)


def test_the_derivative_of_the_normaliser_is_the_expected_distance():
    theta, step = np.array([-2.0, -0.3, -1e-5, 0.4]), 1e-5
    slope = (log_normalisers(theta + step, 20)[:, 20] - log_normalisers(theta - step, 20)[:, 20]) / (2 * step)
    np.testing.assert_allclose(slope, expected_distance(theta, 20), rtol=1e-6)


@pytest.mark.parametrize("distance", ["kendall", "cayley"])
@pytest.mark.parametrize("n", [2, 5, 15, 150, 1000])
def test_the_inverse_gives_back_the_dispersion(n, distance):
    theta = np.concatenate([-np.geomspace(1e-6, 8, 60), [0.0], np.geomspace(1e-6, 8, 60)])
    wanted = expected_distance(theta, n, distance)
    counts = SizeCounts(np.arange(len(theta) + 1), np.zeros(len(theta), np.int64), np.ones(len(theta)))
    table = distance_table(np.array([n]), -12.0, both=True, distance=distance)
    found = solve_dispersions(table, counts, wanted, np.zeros(len(theta)))
    np.testing.assert_allclose(expected_distance(found, n, distance), wanted, rtol=5e-7)
    np.testing.assert_allclose(found, theta, rtol=2e-7, atol=1e-12)


def test_the_inverse_ends_at_the_bounds():
    table = distance_table(np.array([2, 15]), -12.0, both=False, distance="kendall")
    counts = SizeCounts(np.array([0, 1, 2, 3, 3]), np.array([1, 1, 0]), np.array([1.0, 1.0, 2.0]))
    found = solve_dispersions(table, counts, np.array([0.0, 60.0, 0.4, 0.0]), np.full(4, -0.3))
    # perfect, worse than guessing, two pairs of which 0.4 are wrong, nothing known
    np.testing.assert_allclose(found, [-12.0, 0.0, np.log(0.2 / 0.8), -0.3], atol=1e-7)


def test_rankings_of_several_sizes_share_one_dispersion():
    sizes = np.array([3, 8])
    table = distance_table(sizes, -12.0, both=False, distance="kendall")
    counts = SizeCounts(np.array([0, 2]), np.array([0, 1]), np.array([5.0, 2.0]))
    wanted = 5 * expected_distance(-0.7, 3) + 2 * expected_distance(-0.7, 8)
    assert solve_dispersions(table, counts, np.array([wanted]), np.zeros(1))[0] == pytest.approx(-0.7, rel=1e-7)


def test_ties_are_taken_off_and_what_the_prior_adds_is_there():
    # annotator 0: a ranking of 5 with ties of 3 and 1 and 1; annotator 1: two of 2, weights 2 and 3; 2: the prior only
    starts, rank = np.array([0, 5, 7, 9]), np.array([1, 1, 1, 2, 3, 1, 2, 1, 2], np.int32)
    annotator, weight = np.array([0, 1, 1], np.int32), np.array([4.0, 2.0, 3.0])
    usual, more = np.array([5, 2, 4]), np.array([0.5, 0.0, 0.5])
    prior = (np.arange(3), usual, more)

    def counts_of(ties):
        return count_cells([size_cells(starts, rank, annotator, weight, ties=ties), prior], 3)

    sizes, counts = counts_of(ties=True)

    def of(one):
        part = slice(counts.starts[one], counts.starts[one + 1])
        return dict(zip(sizes[counts.row[part]].tolist(), counts.weight[part].tolist(), strict=True))

    assert [of(0), of(1), of(2)] == [{3: -4.0, 5: 4.5}, {2: 5.0}, {4: 0.5}]
    assert counts_of(ties=False)[1].weight.tolist() == [4.5, 5.0, 0.5]


@pytest.mark.parametrize("ranks", [[1, 1, 2, 3], [1, 2, 2, 2], [1, 1, 2, 2]])
def test_tied_rankings_have_the_distance_of_what_they_order(ranks):
    # the chance of a tied ranking is that of all rankings it stands for
    theta, n = -0.8, 4
    whole = expected_distance(theta, n) - sum(expected_distance(theta, ranks.count(r)) for r in set(ranks))
    far, total = 0.0, 0.0
    for truth in slow.permutations(range(n)):
        chance = sum(np.exp(theta * slow.kendall(truth, one)) for one in slow.extensions(range(n), ranks))
        far += chance * sum(ranks[a] > ranks[b] for p, a in enumerate(truth) for b in truth[p + 1 :])
        total += chance
    assert whole == pytest.approx(far / total, abs=1e-12)
