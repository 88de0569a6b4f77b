"""Repetitions that were measured in pairs: how a mean difference is told, and when it counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def shown(values: ArrayLike, digits: int = 1) -> str:
    """Return a mean difference with its standard error."""
    found = np.asarray(values, float)
    told = f"{found.mean():+.{digits}f}"
    if len(found) < 2:
        return told
    return f"{told} ± {found.std(ddof=1) / np.sqrt(len(found)):.{digits}f}"


def clear(values: ArrayLike, least: float = 2.0) -> int:
    """Return the sign of a mean that is more than so many standard errors from 0, else 0."""
    found = np.asarray(values, float)
    if len(found) < 2:
        return 0
    error = float(found.std(ddof=1) / np.sqrt(len(found)))
    return int(np.sign(found.mean())) if abs(found.mean()) > least * error else 0
