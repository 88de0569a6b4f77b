"""Probability that the order of two scores is wrong, now and after further preferences."""

from __future__ import annotations

import numpy as np

from ..protocols import Floats

_MIN_VARIANCE, _MIN_Z = 1e-12, 1e-6
"""Below these a variance, or a difference in standard deviations, is taken as this small to divide by it."""


def wrong_now(gap: Floats, spread: Floats) -> Floats:
    """Return the probability that the order of two scores is wrong, by their difference and its variance."""
    from scipy.special import ndtr

    probability: Floats = ndtr(-np.abs(gap) / np.sqrt(np.maximum(spread, _MIN_VARIANCE)))
    return probability


def wrong_after(gap: Floats, spread: Floats, left: Floats) -> Floats:
    """Return what that probability is expected to be once preferences have brought the variance down to ``left``.

    With z standard deviations between the scores, and a share r of the variance left, it is 2 T(z, sqrt(r / (1 - r))),
    where T is Owen's function [Owen56]_.
    """
    from scipy.special import owens_t

    probability = wrong_now(gap, spread)
    use = np.flatnonzero(left < spread * (1 - _MIN_VARIANCE))
    before = spread[use]
    probability[use] = 2 * owens_t(np.abs(gap[use]) / np.sqrt(before), np.sqrt(left[use] / (before - left[use])))
    return probability


def order_gain(gap: Floats, sure: Floats, usual: Floats) -> Floats:
    """Return by how much one preference is expected to lower the probability that the order of each pair is wrong.

    ``gap`` is the difference of the scores of a pair, ``sure`` the probability of its likelier order, ``usual`` the
    variance of the difference where the scores are equal; preferences are taken as those of a Bradley-Terry model.
    """
    from scipy.special import expit, ndtri

    z = ndtri(np.clip(sure, 0.5, 1 - _MIN_VARIANCE))
    gap = np.abs(gap)
    spread = np.where(z > _MIN_Z, (gap / np.maximum(z, _MIN_Z)) ** 2, usual)
    chance = expit(gap / np.sqrt(1 + np.pi / 8 * spread))
    left = spread / (1 + chance * (1 - chance) * spread)
    return np.maximum(1 - sure - wrong_after(gap, spread, left), 0.0)
