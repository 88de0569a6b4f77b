"""The likeliest weight of a prior against a search by scipy, and the digamma function within it."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma

from crowdrank.models.classes.kernels.own_prior import _digamma, likeliest_weight


def slope(log_weight, counts, centre, expected, spread):
    """Slope of the log-likelihood as written down, of counts above 1 or 0."""
    weight, total = np.exp(log_weight), counts.sum(axis=1)
    cells = counts > 0
    own = weight * centre[cells]
    up = (own * (digamma(counts[cells] + own) - digamma(own))).sum()
    down = (weight * (digamma(total + weight) - digamma(weight))).sum()
    return up - down - (log_weight - np.log(expected)) / spread**2


@pytest.mark.parametrize(("strength", "n_rows"), [(0.3, 5), (3.0, 40), (300.0, 400)])
def test_the_weight_is_where_the_slope_is_zero(strength, n_rows):
    rng = np.random.default_rng(n_rows)
    centre = rng.dirichlet([3.0, 2.0, 1.0], n_rows)
    counts = np.array([rng.multinomial(20, rng.dirichlet(strength * row)) for row in centre]).astype(float)
    weight = likeliest_weight(counts, centre, 4.0, 1.5)
    wanted = np.exp(brentq(slope, np.log(0.05), np.log(1e4), args=(counts, centre, 4.0, 1.5), xtol=1e-13))
    assert weight == pytest.approx(wanted, rel=1e-9)


def test_the_weight_stays_within_bounds():
    one = np.array([[1e7, 0.0], [0.0, 1e7]])
    assert likeliest_weight(one, np.full((2, 2), 0.5), 1e-9, 0.1) == 0.05
    same = np.full((2000, 2), 500.0)
    assert likeliest_weight(same, np.full((2000, 2), 0.5), 1e9, 10.0) == 1e4


def test_digamma_has_all_digits():
    values = np.concatenate([np.geomspace(1e-6, 1e6, 400), [1.461632, 1.0, 9.999999, 10.0]])
    np.testing.assert_allclose([_digamma(value) for value in values], digamma(values), rtol=1e-13, atol=1e-14)
