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
        return replace(self, values=preferences.covariate_columns(self.names) / self.unit)

    def estimates(self, coefficients: Floats, std_error: Floats) -> dict[str, dict[str, Any]]:
        """Return what is estimated of each covariate, by name, for the coefficients of scaled values."""
        columns = {"coefficient": coefficients, "std_error": std_error}
        columns |= {"unit": self.unit, "identified": self.identified}
        rows: dict[str, dict[str, Any]] = {}
        for place, (name, transform) in enumerate(zip(self.names, self.transforms, strict=True)):
            rows[name] = {what: float(values[place]) for what, values in columns.items()} | {"transform": transform}
        return rows

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
    transform_of = dict(zip(preferences.covariate_names, preferences.covariate_transforms, strict=True))
    absent = next((name for name in control if name not in transform_of), None)
    if absent is not None:
        known, hint = ", ".join(transform_of) or "none", did_you_mean(absent, transform_of)
        what = f"the preferences have no covariate {absent!r}; {hint}there are: {known}"
        example = f"Preferences.from_frame(table, covariates=[{absent!r}])"
        raise UnknownNameError(f"{what}. Name it when they are read, as in {example}")
    values, weight = preferences.covariate_columns(control), preferences.row_weight
    whole = float(weight.sum())
    if not whole > 0:
        what = f"no preference is left to tell the coefficient of {control[0]} from: all are ties that are ignored"
        raise JudgmentError(f"{what}, or weigh nothing; leave {option('control')} out, or count ties")
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
    transforms = tuple(transform_of[name] for name in control)
    return CovariateDesign(tuple(control), values / unit, unit, identified, transforms)


def comparable_annotators(preferences: Preferences, values: Floats) -> Bools:
    """Return whose coefficient of each covariate shows in differences to the others, (n_annotators, k).

    It does where the annotator's own values are not explained by the pairs of items they are of: others judged the same
    pairs, or the values vary within them.
    """
    n, k = preferences.n_annotators, values.shape[1]
    pair = np.unique(preferences.pair, return_inverse=True)[1]
    cell, at = np.unique(pair * n + preferences.annotator, return_inverse=True)
    weight, sign = preferences.row_weight, np.where(preferences.left > preferences.right, -1.0, 1.0)
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
                families = "name families of several annotators and items, with people among the annotators"
                remedy = f"{families}, or leave it out"
            what = f"{name} does not vary within pairs of items, so scores and {name} are confounded"
            raise UnidentifiedError(f"{what}; {remedy}")
        if share < _WEAKLY_IDENTIFIED:
            what = f"only {100 * share:.0f} % of the variation of {name} is within pairs of items"
            warn(f"{what}, so the prior decides much of its coefficient")
    for name, share in zip(names, alike, strict=True):
        if share > 1.0 - _SAME:
            why = "which is a favour of one side and no difference of items"
            remedy = "give it left less right, or leave it out"
            raise JudgmentError(f"covariate {name!r} is the same in all preferences, {why}; {remedy}")
        if share > _ALIKE:
            warn(f"{name} is nearly the same in all preferences, so it is hardly told from a favour of one side")
    for one, other in zip(*np.nonzero(np.triu(together > _ALIKE, 1)), strict=True):
        warn(f"{names[one]} and {names[other]} vary together, so only their sum is reliable")
