"""Whether a difference between two rankings' measures is more than chance, and means with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import JudgmentError, ParameterError
from ..protocols import Floats

_MAX_RANDOM_NUMBERS = 1 << 22  # random numbers held at a time, 32 MB
# threshold (equal): cases that only one of two gets right, up to which McNemar's test is exact
_FEW_DISCORDANT = 1000
"""Cases that only one of two gets right, up to which McNemar's test is exact."""


class McNemar(NamedTuple):
    """McNemar's test: cases that only the first or only the second gets right, chi-square and two-sided p value."""

    only_first: int
    only_second: int
    chi_square: float
    p_value: float


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """McNemar's test of whether two classifiers are right equally often on the same cases [McNemar47]_.

    Cases that both get right, or neither, say nothing. Of the :math:`b + c` others each is as likely the first's as
    the second's if both are equally good, so :math:`b` is binomial. The p value is exact up to 1,000 such cases;
    beyond that it is that of :math:`\\chi^2 = (b - c)^2 / (b + c)` with one degree of freedom.

    The test takes cases for independent. Pairs of the same items are not: draw items again instead.

    Parameters
    ----------
    first, second
        Whether each case is right, in the same order.

    Examples
    --------
    >>> mcnemar([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 1, 1])
    McNemar(only_first=6, only_second=1, chi_square=3.5714285714285716, p_value=0.125)
    """
    from scipy.stats import binom, chi2

    right, other = np.asarray(first), np.asarray(second)
    for name, cases in (("first", right), ("second", other)):
        if cases.ndim != 1 or not (cases.dtype == bool or np.isin(cases, (0, 1)).all()):
            raise JudgmentError(f"{name} has to be a list of 1 for right and 0 for wrong cases")
    right, other = right.astype(bool), other.astype(bool)
    if right.shape != other.shape:
        raise JudgmentError(f"first has {len(right)} cases and second {len(other)}; give the same cases")
    b, c = int((right & ~other).sum()), int((other & ~right).sum())
    if not b + c:
        return McNemar(0, 0, 0.0, 1.0)
    chi_square = (b - c) ** 2 / (b + c)
    p = min(1.0, 2 * binom.cdf(min(b, c), b + c, 0.5)) if b + c <= _FEW_DISCORDANT else chi2.sf(chi_square, 1)
    return McNemar(b, c, chi_square, float(p))


def coefficient_of_variation(values: ArrayLike) -> float:
    """Coefficient of variation: standard deviation as a share of the mean; small where what is varied hardly matters.

    [Niu15]_ takes it over shares of spammers. NaN is left out; of one value it is 0.

    Examples
    --------
    >>> coefficient_of_variation([0.9, 1.0, 1.1])
    0.1
    """
    sample = _values(values, "values", drop_missing=True)
    if not len(sample):
        raise JudgmentError("there is no value; give at least one")
    if not (mean := abs(float(sample.mean()))) > 0:
        raise JudgmentError("the mean of the values is 0, so a spread relative to it does not exist")
    return round(float(sample.std(ddof=1)) / mean, 15) if len(sample) > 1 else 0.0


def paired_randomisation(a: ArrayLike, b: ArrayLike, *, n: int = 10_000, seed: int = 0) -> float:
    """Paired randomisation test: p value of the mean difference under random exchange in each query [Smucker07]_.

    If both rankings were equally good, each query's difference could as well have the other sign. The p value is the
    share of sign patterns whose mean difference is at least as large as the one seen. All patterns are tried when they
    are no more than `n`, which makes it exact; otherwise `n` random ones, the seen one counted among them so that it is
    never 0.

    Parameters
    ----------
    a, b
        Values of the two rankings for the same queries in the same order; a query with NaN in either is left out.
    n
        Number of random patterns; raising it makes small p values sharper.
    seed
        Seed of the random patterns.

    Examples
    --------
    >>> paired_randomisation([0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4])
    0.125
    """
    difference = _differences(a, b)
    if n < 1:
        raise ParameterError(f"n={n} is not a number of random patterns; give at least 1")
    difference = difference[difference != 0]  # a query without a difference is the same under either sign
    if not len(difference):
        return 1.0
    # the same sum reached in another order of addition may differ in its last digits
    observed = abs(difference.sum()) - 1e-12 * np.abs(difference).sum()
    if len(difference) < 63 and 2 ** len(difference) <= n:
        sums = np.zeros(1)  # under every pattern of signs
        for value in difference:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= observed))
    rng = np.random.default_rng(seed)
    larger = 0
    for start in range(0, n, step := max(1, _MAX_RANDOM_NUMBERS // len(difference))):
        flip = rng.integers(0, 2, (min(step, n - start), len(difference)), dtype=np.int8).astype(np.float64)
        larger += int(np.sum(np.abs(2 * (flip @ difference) - difference.sum()) >= observed))
    return (larger + 1) / (n + 1)


def paired_t(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p value of Student's t test of the mean difference of paired values.

    It takes the mean difference over queries as normal; of many queries it is near :func:`paired_randomisation`, which
    takes nothing for granted. Values that differ by the same amount everywhere have p value 0, equal ones 1.

    Parameters
    ----------
    a, b
        Values of the two rankings for the same queries in the same order; a query with NaN in either is left out.

    Examples
    --------
    >>> round(paired_t([0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.6, 0.4]), 3)
    0.082
    """
    from scipy.special import stdtr

    difference = _differences(a, b)
    if len(difference) < 2:
        raise JudgmentError("a t test needs at least two queries with both values")
    mean, spread = float(difference.mean()), float(difference.std(ddof=1))
    size = float(np.abs(difference).max())
    if size <= 1e-12 * max(1.0, float(np.nanmax(np.abs(_values(a, "a"))))):
        return 1.0
    if spread <= 1e-12 * size:  # the same difference everywhere, but for rounding
        return 0.0
    return float(2 * stdtr(len(difference) - 1, -abs(mean) / (spread / np.sqrt(len(difference)))))


def holm(p_values: ArrayLike) -> Floats:
    """Holm's correction: p values adjusted for testing several hypotheses at once [Holm79]_.

    Rejecting those at most 0.05 keeps the chance of any false rejection at most 0.05.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _values(p_values, "p_values")
    if not ((p >= 0) & (p <= 1)).all():
        raise ParameterError(f"p_values has {p[~((p >= 0) & (p <= 1))][0]:g}; p values lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def mean_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean of values, the one that goes with :func:`paired_t`.

    Parameters
    ----------
    values
        Two values or more, such as differences of two rankings by query; NaN is left out.
    level
        Chance that the interval covers the mean; raising it widens the interval.

    Examples
    --------
    >>> [round(end, 3) for end in mean_interval([0.1, 0.2, 0.3])]
    [-0.048, 0.448]
    """
    from scipy.special import stdtrit

    sample = _values(values, "values", drop_missing=True)
    if len(sample) < 2:
        raise JudgmentError("an interval of a mean needs at least two values")
    expect_level(level)
    reach = float(stdtrit(len(sample) - 1, (1 + level) / 2) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return float(sample.mean()) - reach, float(sample.mean()) + reach


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, *, n: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the mean over queries: percentiles of the means of queries drawn with replacement.

    Parameters
    ----------
    values
        One value per query; NaN is left out.
    level
        Chance that the interval covers the mean over all queries that could have been asked; raising it widens the
        interval.
    n
        Number of draws; raise it for a steadier interval.
    seed
        Seed of the draws.

    Examples
    --------
    >>> bootstrap_interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    sample = _values(values, "values", drop_missing=True)
    if not len(sample):
        raise JudgmentError("there is no value to draw from; give at least one query's value")
    expect_level(level)
    if n < 1:
        raise ParameterError(f"n={n} is not a number of draws; give at least 1")
    rng = np.random.default_rng(seed)
    means = np.empty(n)
    for start in range(0, n, step := max(1, _MAX_RANDOM_NUMBERS // len(sample))):
        stop = min(start + step, n)
        means[start:stop] = sample[rng.integers(0, len(sample), (stop - start, len(sample)))].mean(axis=1)
    lower, upper = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """Differences of the values of two rankings for the same queries, without those of which one is missing."""
    first, second = _values(a, "a"), _values(b, "b")
    if first.shape != second.shape:
        raise JudgmentError(f"a has {len(first)} queries and b {len(second)}; give values of the same queries")
    return (first - second)[~np.isnan(first - second)]


def expect_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} is not a probability; give a number between 0 and 1, for example 0.95")


def _values(values: ArrayLike, name: str, *, drop_missing: bool = False) -> Floats:
    """One-dimensional array of numbers; NaN may be among them unless it is dropped."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise JudgmentError(f"{name} cannot be read as numbers ({error}); give one number per query") from error
    if array.ndim != 1:
        raise JudgmentError(f"{name} has {array.ndim} dimensions; give one number per query")
    return array[~np.isnan(array)] if drop_missing else array


@dataclass(frozen=True)
class PoweredMean:
    """A mean with its interval; ``lam`` is how much the predictions count, 0 is not at all and 1 is fully."""

    mean: float
    lower: float
    upper: float
    lam: float


def prediction_powered_mean(
    measured: ArrayLike, predicted: ArrayLike, elsewhere: ArrayLike, *, level: float = 0.95, lam: float | None = None,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
) -> PoweredMean:  # fmt: skip
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
    clusters
        Numbers of what the cases, and the others, belong to, such as queries: cases of one are not independent.

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
    own, apart = (None, None) if clusters is None else clusters
    mean, variance = float(h.mean()), _variance_of_mean(h - lam * f, own)
    if lam:
        mean += lam * float(other.mean() - f.mean())
        variance += lam**2 * _variance_of_mean(other, apart)
    half = NormalDist().inv_cdf(0.5 + 0.5 * level) * variance**0.5
    return PoweredMean(mean, mean - half, mean + half, lam)


def _variance_of_mean(values: Floats, cluster: ArrayLike | None) -> float:
    """Variance of the mean of values, which are independent unless they are of one cluster."""
    if cluster is None:
        return float(np.var(values)) / len(values)
    sums = np.bincount(np.unique(np.asarray(cluster), return_inverse=True)[1], values - values.mean())
    n = len(sums)
    return float((sums**2).sum()) / len(values) ** 2 * (n / (n - 1) if n > 1 else 1.0)
