"""Repetitions that were measured in pairs: how a mean difference is reported, and when it counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def difference_text(values: ArrayLike, digits: int = 1) -> str:
    """Return a mean difference with its standard error."""
    differences = np.asarray(values, float)
    mean = f"{differences.mean():+.{digits}f}"
    if len(differences) < 2:
        return mean
    return f"{mean} ± {differences.std(ddof=1) / np.sqrt(len(differences)):.{digits}f}"


def clear(values: ArrayLike, least: float = 2.0) -> int:
    """Return the sign of a mean that is more than this many standard errors from 0, else 0."""
    differences = np.asarray(values, float)
    if len(differences) < 2:
        return 0
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return int(np.sign(differences.mean())) if abs(differences.mean()) > least * error else 0
