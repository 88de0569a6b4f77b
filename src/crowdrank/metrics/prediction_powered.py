"""A mean that few measured values and many predicted ones tell together: prediction-powered inference."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ParameterError


@dataclass(frozen=True)
class PoweredMean:
    """A mean with its interval; ``lam`` is how much the predictions count, 0 is not at all and 1 is fully."""

    mean: float
    lower: float
    upper: float
    lam: float


def prediction_powered_mean(
    measured: ArrayLike, predicted: ArrayLike, elsewhere: ArrayLike, *, level: float = 0.95, lam: float | None = None
) -> PoweredMean:
    r"""Return the prediction-powered mean: what was measured, sharpened by predictions [PPI23]_.

    With :math:`h` measured and :math:`f` predicted for the same :math:`n` cases, and :math:`f'` predicted for :math:`N`
    others, it is

    .. math:: \bar h + \lambda (\bar f' - \bar f), \qquad
              \lambda = \frac{\mathrm{Cov}(h, f)}{(1 + n / N) \mathrm{Var}(f)} \text{ within } 0 \ldots 1,

    whatever the predictions are worth: useless ones have :math:`\lambda = 0`, which leaves the mean of :math:`h`.

    Parameters
    ----------
    measured, predicted
        Both values of the same cases.
    elsewhere
        Predictions of the other cases.
    level
        Of the normal interval.
    lam
        Weight of the predictions in place of the best one; 0 does without them.

    Examples
    --------
    >>> found = prediction_powered_mean([1, 0, 1, 1], [0.9, 0.2, 0.8, 0.9], [0.7, 0.3, 0.9, 0.2, 0.1, 0.4])
    >>> round(found.mean, 3)
    0.567
    """
    h, f, other = (np.asarray(values, np.float64) for values in (measured, predicted, elsewhere))
    if h.shape != f.shape or h.ndim != 1:
        raise ParameterError(f"{len(h)} measured values do not match {len(f)} predicted ones; give both of each case")
    if len(h) < 2:
        raise ParameterError(f"{len(h)} measured values do not show a spread; measure at least 2 cases")
    n, n_other = len(h), len(other)
    if lam is None:
        variance = np.var(np.concatenate([f, other]), ddof=1)
        covariance = float((h - h.mean()) @ (f - f.mean())) / n
        lam = 0.0 if not n_other or variance == 0 else covariance / ((1 + n / n_other) * float(variance))
        lam = min(max(lam, 0.0), 1.0)
    elif lam and not n_other:
        raise ParameterError("there are no further predictions; leave lam out")
    mean, variance = float(h.mean()), float(np.var(h - lam * f)) / n
    if lam:
        mean += lam * float(other.mean() - f.mean())
        variance += lam**2 * float(np.var(other)) / n_other
    half = NormalDist().inv_cdf(0.5 + 0.5 * level) * variance**0.5
    return PoweredMean(mean, mean - half, mean + half, lam)
