"""Tests and intervals against hand-worked values, scipy and their own promises."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.metrics import bootstrap_interval, holm, paired_randomisation


@given(differences=st.lists(st.integers(-3, 3), min_size=1, max_size=8))
@settings(deadline=None)
def test_few_queries_are_exact(differences):
    seen = abs(sum(differences))
    patterns = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    expected = sum(total >= seen for total in patterns) / len(patterns)
    tenths = np.array(differences) / 10
    assert paired_randomisation(tenths, np.zeros(len(tenths))) == pytest.approx(expected)


def test_many_queries_agree_with_scipy():
    from scipy.stats import permutation_test

    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    b = a + rng.normal(0.2, 0.6, 60)
    peer = permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=20_000, vectorized=False, rng=1
    )
    ours = paired_randomisation(a, b, n=20_000)
    assert ours == pytest.approx(peer.pvalue, abs=4 * (peer.pvalue / 20_000) ** 0.5 + 1e-3)
    assert paired_randomisation(b, a, n=20_000) == ours
    assert paired_randomisation(a, b, n=20_000, seed=1) == pytest.approx(ours, abs=0.01)


def test_randomisation_in_chunks_and_its_ends(monkeypatch):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 40))
    whole = paired_randomisation(a, b, n=1001)
    monkeypatch.setattr("crowdrank.metrics.significance._MAX_RANDOM_NUMBERS", 4000)
    assert paired_randomisation(a, b, n=1001) == whole
    assert paired_randomisation(a, a) == 1
    assert paired_randomisation(a + 5, a, n=999) == pytest.approx(1 / 1000)
    assert paired_randomisation([1, np.nan, 2], [0, 1, 0]) == paired_randomisation([1, 2], [0, 0]) == 0.5


def test_p_values_are_uniform_without_a_difference():
    rng = np.random.default_rng(2)
    p = [paired_randomisation(*rng.normal(size=(2, 30)), n=199, seed=seed) for seed in range(400)]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.035)


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1, 1])
    assert len(holm([])) == 0


def test_statsmodels_agrees_on_holm():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(3).random(20) ** 3
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1])


def test_bootstrap_interval_covers_and_narrows():
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(200):
        lower, upper = bootstrap_interval(rng.normal(1, 1, 60), 0.9, n=400, seed=seed)
        covered += lower <= 1 <= upper
    assert 0.83 <= covered / 200 <= 0.96
    values = rng.random(100)
    wide, narrow = bootstrap_interval(values, 0.99), bootstrap_interval(values, 0.5)
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]
    assert bootstrap_interval([*values, np.nan]) == bootstrap_interval(values)
    assert bootstrap_interval([0.3]) == (0.3, 0.3)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: paired_randomisation([1], [1, 2]), JudgmentError),
        (lambda: paired_randomisation([[1]], [[2]]), JudgmentError),
        (lambda: paired_randomisation(["x"], [1]), JudgmentError),
        (lambda: paired_randomisation([1], [2], n=0), ParameterError),
        (lambda: holm([0.1, 1.2]), ParameterError),
        (lambda: bootstrap_interval([]), JudgmentError),
        (lambda: bootstrap_interval([1, 2], 1.0), ParameterError),
        (lambda: bootstrap_interval([1, 2], n=0), ParameterError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error, match=";"):
        call()


def test_mcnemar_against_scipy_and_by_hand():
    from scipy.stats import binomtest

    from crowdrank.metrics import mcnemar

    first, second = np.array([1] * 9 + [0] * 3 + [1] * 5), np.array([0] * 9 + [1] * 3 + [1] * 5)
    found = mcnemar(first, second)
    assert (found.only_first, found.only_second) == (9, 3)
    assert found.chi_square == pytest.approx(36 / 12)
    assert found.p_value == pytest.approx(binomtest(3, 12).pvalue)
    many = mcnemar(np.repeat([1, 0], [900, 800]), np.repeat([0, 1], [900, 800]))
    assert many.p_value == pytest.approx(0.0153, abs=1e-3)
    assert mcnemar([1, 0], [1, 0]).p_value == 1.0
    with pytest.raises(JudgmentError, match="1 for right and 0 for wrong"):
        mcnemar([0.5], [1])


def test_coefficient_of_variation_by_hand():
    from crowdrank.metrics import coefficient_of_variation

    assert coefficient_of_variation([2.0, 4.0]) == pytest.approx(np.sqrt(2) / 3)
    assert coefficient_of_variation([0.7]) == 0.0
    with pytest.raises(JudgmentError, match="mean of the values is 0"):
        coefficient_of_variation([-1.0, 1.0])


def test_quality_divergence_by_hand():
    from crowdrank.metrics import quality_divergence

    shares = np.array([1.5, 0.5]) / 2, np.array([0.5, 1.5]) / 2
    by_hand = float((shares[0] * np.log(shares[0] / shares[1])).sum())
    assert quality_divergence([0.2], [0.8], bins=2) == pytest.approx(by_hand)
    assert quality_divergence([0.2, 0.9], [0.9, 0.2]) == pytest.approx(0.0)
    with pytest.raises(JudgmentError, match="between 0 and 1"):
        quality_divergence([1.2], [0.8])
