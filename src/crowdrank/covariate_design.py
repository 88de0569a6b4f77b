"""Covariates of preferences as a model takes them: on a common scale, and checked to be distinguishable from scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .data.covariates import GIVEN
from .data.judgments import Preferences
from .errors import DataWarning, JudgmentError, UnidentifiedError, UnknownNameError
from .pair_counts import count_preferences
from .protocols import Floats
from .wording import did_you_mean

MIN_IDENTIFIED = 0.01
"""Share of a covariate's variation within pairs of items below which scores and coefficient are confounded."""

_WEAKLY_IDENTIFIED = 0.05
_ALIKE = 0.95
_LARGE_COEFFICIENT = 5.0
_RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class CovariateDesign:
    """Covariates to control for.

    Parameters
    ----------
    names
        Their names.
    values
        Left against right, divided by ``unit``, (n_preferences, n_covariates). They are scaled and never centred, so
        that they change their sign with the sides.
    unit
        Root mean square of each.
    identified
        Share of the variation of each that differences between items do not explain.
    transforms
        How each was made of two numbers.
    """

    names: tuple[str, ...]
    values: Floats
    unit: Floats
    identified: Floats
    transforms: tuple[str, ...] = ()

    @classmethod
    def of_estimates(cls, preferences: Preferences, found: Mapping[str, Mapping[str, Any]]) -> CovariateDesign:
        """Return the covariates that estimates tell of, on their scale."""
        unit = np.array([one["unit"] for one in found.values()])
        identified = np.array([one["identified"] for one in found.values()])
        transforms = tuple(one.get("transform", GIVEN) for one in found.values())
        return cls(tuple(found), np.empty((0, len(unit))), unit, identified, transforms).of_part(preferences)

    def of_part(self, preferences: Preferences) -> CovariateDesign:
        """Return the covariates of a part of the preferences on the same scale."""
        if not self.names:
            return replace(self, values=np.empty((len(preferences), 0)))
        assert preferences.covariates is not None
        places = [preferences.covariate_names.index(name) for name in self.names]
        return replace(self, values=np.ascontiguousarray(preferences.covariates[:, places]) / self.unit)

    def estimates(self, coefficients: Floats, std_error: Floats) -> dict[str, dict[str, Any]]:
        """Return what is estimated of each covariate, by name, for the coefficients of scaled values."""
        return {
            name: {
                "coefficient": float(coefficients[place]), "std_error": float(std_error[place]),
                "unit": float(self.unit[place]), "identified": float(self.identified[place]),
                "transform": self.transforms[place],
            }
            for place, name in enumerate(self.names)
        }  # fmt: skip

    def warn(self, coefficients: Floats) -> None:
        """Warn of coefficients that only the prior keeps finite."""
        for name, value in zip(self.names, coefficients, strict=True):
            if abs(value) > _LARGE_COEFFICIENT:
                _warn(f"{name} decides nearly all preferences (coefficient {value:.1f}), so its size is not reliable")


def covariate_design(preferences: Preferences, control: Sequence[str], *, refuse: bool = True) -> CovariateDesign:
    """Return the covariates named, scaled; refuse those that scores are confounded with, unless asked not to."""
    if not control:
        return CovariateDesign((), np.empty((len(preferences), 0)), np.empty(0), np.empty(0))
    places = []
    for name in control:
        if name not in preferences.covariate_names:
            known = ", ".join(preferences.covariate_names) or "none"
            raise UnknownNameError(
                f"the preferences have no covariate {name!r}; {did_you_mean(name, preferences.covariate_names)}"
                f"there are: {known}. Name it when they are read, as in Preferences.from_frame(table, "
                f"covariates=[{name!r}])"
            )
        places.append(preferences.covariate_names.index(name))
    assert preferences.covariates is not None
    values, weight = np.ascontiguousarray(preferences.covariates[:, places]), preferences.row_weight
    unit = np.sqrt(_squares(values, weight) / weight.sum())
    for name, size in zip(control, unit, strict=True):
        if not size > 0:
            raise JudgmentError(f"covariate {name!r} is 0 in all preferences; there is nothing to control for")
    values = values / unit
    transforms = tuple(preferences.covariate_transforms[place] for place in places)
    design = CovariateDesign(tuple(control), values, unit, _identified_shares(preferences, values), transforms)
    if refuse:
        _check(design, weight)
    return design


def _identified_shares(preferences: Preferences, values: Floats) -> Floats:
    """1 - R2 of each covariate regressed on differences between items."""
    from .kernels.laplacian import solve_columns
    from .kernels.pairs import side_differences

    counts, weight = count_preferences(preferences, "split"), preferences.row_weight
    left, right, n = preferences.left, preferences.right, preferences.n_items
    sums = side_differences(left, right, weight, values, n)
    first = np.repeat(np.arange(n), np.diff(counts.starts))
    degree = np.bincount(first, counts.number, n) + np.bincount(counts.second, counts.number, n)
    diagonal = np.asarray(degree * (1 + _RIDGE) + _RIDGE, np.float64)
    fitted = solve_columns(counts.starts, counts.second, counts.number, diagonal, sums)
    squares = _squares(values, weight)
    # what differences leave of the squares, where they solve the equations above
    rest = squares - (fitted * (sums + (diagonal - degree)[:, None] * fitted)).sum(axis=0)
    shares: Floats = np.clip(rest / squares, 0.0, 1.0)
    return shares


def _squares(values: Floats, weight: Floats) -> Floats:
    """Weighted sum of the squares of each column."""
    squares: Floats = np.einsum("n,nk,nk->k", weight, values, values)
    return squares


def _check(design: CovariateDesign, weight: Floats) -> None:
    """Refuse or warn of covariates that judgments cannot tell from scores, or from each other."""
    for name, share in zip(design.names, design.identified, strict=True):
        if share < MIN_IDENTIFIED:
            remedy = (
                "name families of several annotators and items, with people among the annotators"
                if name == "self" else "use across_queries() (--across-queries)"
            )  # fmt: skip
            raise UnidentifiedError(
                f"{name} does not vary within pairs of items, so scores and {name} are confounded; {remedy}, or "
                "leave it out"
            )
        if share < _WEAKLY_IDENTIFIED:
            _warn(
                f"only {100 * share:.0f} % of the variation of {name} is within pairs of items, so the prior decides "
                "much of its coefficient"
            )
    weighted = design.values if (weight == 1.0).all() else design.values * weight[:, None]
    together = np.abs(weighted.T @ design.values) / weight.sum()
    for one, other in zip(*np.nonzero(np.triu(together > _ALIKE, 1)), strict=True):
        _warn(f"{design.names[one]} and {design.names[other]} vary together, so only their sum is reliable")


def _warn(message: str) -> None:
    """Warn the caller of ``fit``."""
    warnings.warn(message, DataWarning, stacklevel=5)
