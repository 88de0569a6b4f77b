"""Covariates of preferences as a model takes them: on a common scale, and checked to be distinguishable from scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .data.covariates import GIVEN
from .data.judgments import Preferences
from .errors import JudgmentError, UnidentifiedError, UnknownNameError, warn
from .pair_counts import count_preferences
from .protocols import Bools, Floats
from .wording import call, did_you_mean, first_few, option

MIN_IDENTIFIED = 0.01
"""Share of a covariate's variation within pairs of items below which scores and coefficient are confounded."""

_WEAKLY_IDENTIFIED = 0.05
_ALIKE = 0.95
_SAME = 1e-9
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
    def of_estimates(cls, preferences: Preferences, estimates: Mapping[str, Mapping[str, Any]]) -> CovariateDesign:
        """Return the covariates that estimates tell of, on their scale."""
        unit = np.array([one["unit"] for one in estimates.values()])
        identified = np.array([one["identified"] for one in estimates.values()])
        transforms = tuple(one.get("transform", GIVEN) for one in estimates.values())
        return cls(tuple(estimates), np.empty((0, len(unit))), unit, identified, transforms).of_part(preferences)

    def of_part(self, preferences: Preferences) -> CovariateDesign:
        """Return the covariates of a part of the preferences on the same scale."""
        if not self.names:
            return replace(self, values=np.empty((len(preferences), 0)))
        assert preferences.covariates is not None
        places = [preferences.covariate_names.index(name) for name in self.names]
        return replace(self, values=_columns(preferences, places) / self.unit)

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
                warn(f"{name} decides nearly all preferences (coefficient {value:.1f}), so its size is not reliable")


def covariate_design(preferences: Preferences, control: Sequence[str], *, refuse: bool = True) -> CovariateDesign:
    """Return the covariates named, scaled; refuse those that scores are confounded with, unless asked not to."""
    from .kernels.laplacian import solve_columns
    from .kernels.pairs import side_moments

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
    values, weight = _columns(preferences, places), preferences.row_weight
    whole = float(weight.sum())
    if not whole > 0:
        raise JudgmentError(
            f"no preference is left to tell the coefficient of {control[0]} from: all are ties that are ignored, or "
            f"weigh nothing; leave {option('control')} out, or count ties"
        )
    differences, sums, products = side_moments(preferences.left, preferences.right, weight, values, preferences.n_items)
    unit = np.sqrt(np.diag(products) / whole)
    none = [repr(name) for name, size in zip(control, unit, strict=True) if not size > 0]
    if none:
        others = ",".join(name for name, size in zip(control, unit, strict=True) if size > 0)
        remedy = f"control for the others: {option('control', others)}" if others else f"leave {option('control')} out"
        which = f"covariate {none[0]} is" if len(none) == 1 else f"covariates {first_few(none)} are"
        raise JudgmentError(f"{which} 0 in all preferences, so there is nothing to control for; {remedy}")
    # 1 - R2 of each covariate regressed on differences between items; scaled, all have the same sum of squares
    differences = differences / unit
    counts, n = count_preferences(preferences, "split"), preferences.n_items
    degree = np.bincount(counts.first, counts.number, n) + np.bincount(counts.second, counts.number, n)
    diagonal = np.asarray(degree * (1 + _RIDGE) + _RIDGE, np.float64)
    fitted = solve_columns(counts.starts, counts.second, counts.number, diagonal, differences)
    rest = whole - (fitted * (differences + (diagonal - degree)[:, None] * fitted)).sum(axis=0)
    identified = np.clip(rest / whole, 0.0, 1.0)
    if refuse:
        alike, together = np.abs(sums / unit / whole), np.abs(products / np.outer(unit, unit) / whole)
        _refuse_confounded(control, identified, alike, together, across=preferences.block is not None)
    transforms = tuple(preferences.covariate_transforms[place] for place in places)
    return CovariateDesign(tuple(control), values / unit, unit, identified, transforms)


def _columns(preferences: Preferences, places: list[int]) -> Floats:
    """Covariates at these places, (n, k)."""
    values = preferences.covariates
    assert values is not None
    return values if places == list(range(values.shape[1])) else np.ascontiguousarray(values[:, places])


def comparable_annotators(preferences: Preferences, values: Floats) -> Bools:
    """Return whose coefficient of each covariate shows in differences to the others, (n_annotators, k).

    It does where the annotator's own values are not explained by the pairs of items they are of: others judged the same
    pairs, or the values vary within them.
    """
    n, k = preferences.n_annotators, values.shape[1]
    turned = preferences.left > preferences.right
    low, high = np.where(turned, (preferences.right, preferences.left), (preferences.left, preferences.right))
    pair = np.unique(low.astype(np.int64) * preferences.n_items + high, return_inverse=True)[1]
    cell, at = np.unique(pair * n + preferences.annotator, return_inverse=True)
    weight, sign = preferences.row_weight, np.where(turned, -1.0, 1.0)
    of_pair = np.bincount(pair, weight)[cell // n]
    comparable = np.zeros((n, k), bool)
    for place in range(k):
        own = np.bincount(preferences.annotator, weight * values[:, place] ** 2, n)
        sums = np.bincount(at, weight * sign * values[:, place], len(cell))
        explained = np.divide(sums**2, of_pair, out=np.zeros(len(cell)), where=of_pair > 0)
        rest = own - np.bincount(cell % n, explained, n)
        comparable[:, place] = rest > MIN_IDENTIFIED * np.maximum(own, 1e-300)
    return comparable


def _refuse_confounded(
    names: Sequence[str], identified: Floats, alike: Floats, together: Floats, *, across: bool
) -> None:
    """Refuse or warn of covariates that judgments cannot tell from scores, from the side, or from each other.

    ``alike`` (k,) is how far each is the same in all preferences, ``together`` (k, k) how far two vary together.
    """
    for name, share in zip(names, identified, strict=True):
        if share < MIN_IDENTIFIED:
            remedy = "leave it out" if across else f"use {call('across_queries')}, or leave it out"
            if name == "self":
                remedy = (
                    "name families of several annotators and items, with people among the annotators, or leave it out"
                )
            raise UnidentifiedError(
                f"{name} does not vary within pairs of items, so scores and {name} are confounded; {remedy}"
            )
        if share < _WEAKLY_IDENTIFIED:
            warn(
                f"only {100 * share:.0f} % of the variation of {name} is within pairs of items, so the prior decides "
                "much of its coefficient"
            )
    for name, share in zip(names, alike, strict=True):
        if share > 1.0 - _SAME:
            raise JudgmentError(
                f"covariate {name!r} is the same in all preferences, which is a favour of one side and no difference "
                "of items; give it left less right, or leave it out"
            )
        if share > _ALIKE:
            warn(f"{name} is nearly the same in all preferences, so it is hardly told from a favour of one side")
    for one, other in zip(*np.nonzero(np.triu(together > _ALIKE, 1)), strict=True):
        warn(f"{names[one]} and {names[other]} vary together, so only their sum is reliable")
