import numpy as np
import pytest

from crowdrank.errors import ParameterError
from crowdrank.metrics import prediction_powered_mean

MEASURED = [1, 0, 1, 1, 0, 0.5, 1, 1, 0, 1]
PREDICTED = [0.9, 0.2, 0.8, 0.7, 0.4, 0.5, 0.6, 0.9, 0.3, 0.6]
ELSEWHERE = [0.7, 0.3, 0.9, 0.2, 0.1, 0.4, 0.8, 0.6, 0.5, 0.35, 0.65, 0.15, 0.95, 0.45, 0.55]


def test_equals_the_peer():
    peer = (0.5789320388349514, 0.36747093868804837, 0.7903931389818544)
    # ppi-python 0.2.3: ppi_mean_ci(h, f, other, alpha=0.05) and ppi_mean_pointestimate(h, f, other)
    found = prediction_powered_mean(MEASURED, PREDICTED, ELSEWHERE, level=0.95)
    assert (found.mean, found.lower, found.upper) == pytest.approx(peer, abs=1e-10)


def test_useless_predictions_leave_the_mean():
    found = prediction_powered_mean([1, 0, 1, 0], [0, 1, 0, 1], [0.2, 0.8])
    assert found.lam == 0.0
    assert found.mean == 0.5
    assert prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 0], []).mean == 0.75
    assert prediction_powered_mean([1, 0, 1, 1], [0.5] * 4, [0.5] * 3).mean == 0.75


def test_intervals_cover_and_are_narrower_than_without_predictions():
    rng, covered, width, alone = np.random.default_rng(3), 0, 0.0, 0.0
    for _ in range(400):
        chance = rng.uniform(0, 1, 1200)
        h, f = rng.uniform(size=1200) < chance, np.clip(chance + 0.15, 0, 1)
        found = prediction_powered_mean(h[:200], f[:200], f[200:])
        plain = prediction_powered_mean(h[:200], f[:200], f[200:], lam=0.0)
        covered += found.lower <= 0.5 <= found.upper
        width, alone = width + found.upper - found.lower, alone + plain.upper - plain.lower
    assert 0.92 <= covered / 400 <= 0.98
    assert width < 0.9 * alone


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError, match="2 measured values do not match 3"):
        prediction_powered_mean([1, 0], [1, 0, 1], [1])
    with pytest.raises(ParameterError, match="at least 2"):
        prediction_powered_mean([1], [1], [1, 0])
    with pytest.raises(ParameterError, match="no further predictions"):
        prediction_powered_mean([1, 0], [1, 0], [], lam=1.0)
