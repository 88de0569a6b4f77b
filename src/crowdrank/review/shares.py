"""Shares and their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocols import Floats
from ..quality import INTERVAL


def share_of(part: Any, whole: Any) -> Floats:
    """Return a part of a whole, NaN where that is nothing."""
    shares: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return shares


def jeffreys(part: Any, whole: Any) -> tuple[Floats, Floats]:
    """Return the bounds of a share by Jeffreys' interval; it holds 0 and 1 where these were seen, NaN of nothing."""
    from scipy.special import betaincinv

    tail = (1 - INTERVAL) / 2
    lower, upper = (betaincinv(part + 0.5, whole - part + 0.5, p) for p in (tail, 1 - tail))
    none = np.asarray(whole) <= 0
    lower = np.where(none, np.nan, np.where(np.asarray(part) <= 0, 0.0, lower))
    return lower, np.where(none, np.nan, np.where(np.asarray(part) >= whole, 1.0, upper))
