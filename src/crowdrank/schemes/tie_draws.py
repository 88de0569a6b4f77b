"""Ties between equally urgent things, drawn by the seed."""

from __future__ import annotations

import numpy as np

from ..protocols import Counts, Floats

_EQUAL = 1e-9
"""Gains that differ by less than this share of the largest are equal: they may differ by rounding alone."""


def tie_draws(seed: int, number: int) -> Floats:
    """Return a random share of the largest gain for each of some things, too small to change more than ties."""
    return _EQUAL * np.random.default_rng([seed, 2]).random(number)


def by_falling(gain: Floats, draws: Floats) -> Counts:
    """Return the places of things by falling gain, equal ones as their :func:`tie_draws` say."""
    return np.argsort(-drawn_apart(gain, draws), kind="stable")


def drawn_apart(gain: Floats, draws: Floats) -> Floats:
    """Return gains with equal ones told apart by their :func:`tie_draws`."""
    apart: Floats = gain + np.abs(gain).max(initial=0.0) * draws
    return apart
