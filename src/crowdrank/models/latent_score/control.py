"""Covariates that are controlled for: each annotator's coefficients, pooled around those of the crowd.

An annotator is a vector of discrimination, bias and coefficients. The coefficients are normal around those of the crowd
with a variance of their own each, which is learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...covariate_design import CovariateDesign
from ...errors import ParameterError
from ...protocols import Bools, Floats, Ints

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums, Cells
    from .layout import Kind

START_VARIANCE = 0.25
"""Variance of the coefficients of annotators before any judgment is seen.

At .05 instead, 90 % intervals of annotators with 30 judgments each cover .66 in simulations, not .81.
"""

PRIOR_ANNOTATORS = 4.0
"""Number of annotators that the start of the variance counts as."""

RESERVED = ("alpha", "bias", "spread", "lapse", "quality", "lower", "upper", "annotator", "n_judgments", "action")
"""Names of other columns about annotators, which no covariate may have."""

_SHARED_PRECISION = 1e-3
_ALONE_VARIANCE = 1e-6
_MIN_VARIANCE = 1e-4
_MAX_VARIANCE = 9.0
_MAX_STEP = 1.5


@dataclass(frozen=True, eq=False)
class ControlState:
    """Coefficients of k covariates.

    Parameters
    ----------
    own
        Those of each annotator, (n_annotators, k).
    covariance
        Covariance of discrimination, bias and coefficients of each, (n_annotators, 2 + k, 2 + k).
    shared, variances
        Mean and variance of the coefficients in the crowd, (k,) each.
    learns_shared
        Whether the mean is learned; otherwise it stays 0, and coefficients are relative to each other.
    curvature
        Curvature of the last round, (n_annotators, k, 2 + k).
    """

    own: Floats
    covariance: Floats
    shared: Floats
    variances: Floats
    learns_shared: bool = True
    curvature: Floats | None = None
    _last_shifts: list[Any] = field(init=False, repr=False, default_factory=list)

    def shifts(self, cells: Cells, scale: float) -> Floats:
        """What covariates add to each judgment, (n_judgments, 3); both steps of a round need the same."""
        from .kernels.ordinal import covariate_shifts

        known = self._last_shifts
        if not known or known[0] is not cells.values or known[1] != scale:
            known[:] = cells.values, scale, covariate_shifts(cells, self.own, self.covariance, scale)
        shifts: Floats = known[2]
        return shifts

    def divide_alpha(self, factor: float) -> ControlState:
        """The same with discriminations divided by a factor."""
        covariance = self.covariance.copy()
        covariance[:, 0, :] /= factor
        covariance[:, :, 0] /= factor
        curvature = self.curvature
        if curvature is not None:
            curvature = curvature.copy()
            curvature[:, :, 0] *= factor
        return replace(self, covariance=covariance, curvature=curvature)

    def forget_curvature(self) -> ControlState:
        """The same as a start of other judgments."""
        return replace(self, curvature=None)


def first_control(kind: Kind) -> ControlState:
    """No covariate matters to anyone."""
    n, k = len(kind.weight), kind.n_covariates
    alone = int((kind.weight > 0).sum()) < 2
    variance = _ALONE_VARIANCE if alone else START_VARIANCE
    return ControlState(np.zeros((n, k)), np.zeros((n, 2 + k, 2 + k)), np.zeros(k), np.full(k, variance))


def former_control(
    first: ControlState, parameters: Mapping[str, Any], estimates: Mapping[str, Any], former: Ints
) -> ControlState:
    """Return the coefficients of a former consensus where it has as many; those of new annotators are the crowd's."""
    former_estimates = estimates.get("control") or {}
    if len(former_estimates) != len(first.shared):
        return first
    shared = np.array([one["coefficient"] for one in former_estimates.values()])
    deviations = np.array([one.get("sd_between_annotators", 0.0) for one in former_estimates.values()])
    own = np.tile(shared, (len(first.own), 1))
    for place, name in enumerate(former_estimates):
        if name in parameters:
            own[:, place] = np.where(former >= 0, np.append(parameters[name], 0.0)[former], own[:, place])
    return replace(first, own=own, shared=shared, variances=np.maximum(deviations**2, _ALONE_VARIANCE))


class RelativeCoefficients(NamedTuple):
    """Coefficients of annotators against each other, by name, with standard errors such as ``length_sd``.

    ``unit`` (k,) is the root mean square of each covariate, and ``comparable`` (n_annotators, k) says of whom the
    coefficient can be told.
    """

    parameters: dict[str, Floats]
    unit: Floats
    comparable: Bools


class Eliminated(NamedTuple):
    """Bias and coefficients of each annotator given the discrimination, (n_annotators, 1 + k) and square.

    ``cross`` is their curvature with the discrimination, ``inverse`` their covariance, ``newton`` their step at the
    present discrimination, and ``ratio`` how far they move against the discrimination.
    """

    cross: Floats
    inverse: Floats
    newton: Floats
    ratio: Floats

    def covariance(self, alpha_variance: Floats) -> Floats:
        """Return their covariance where the discriminations have these variances."""
        outer: Floats = self.ratio[:, :, None] * self.ratio[:, None, :]
        return self.inverse + outer * alpha_variance[:, None, None]

    @property
    def root(self) -> Floats:
        """A root of the covariance."""
        return np.asarray(np.linalg.cholesky(self.inverse), np.float64)


def eliminate(kind: Kind, control: ControlState, of: AnnotatorSums, bias: tuple[Floats, Floats]) -> Eliminated:
    """Return bias and coefficients given the discrimination; ``bias`` is gradient and curvature, prior included.

    Where no bias is learned it has no variance to speak of.
    """
    n, k = control.own.shape
    precision = 1.0 / control.variances
    cross, matrix = np.empty((n, 1 + k)), np.empty((n, 1 + k, 1 + k))
    gradient = np.empty((n, 1 + k))
    gradient[:, 0], matrix[:, 0, 0] = bias if kind.has_bias else (np.zeros(n), np.full(n, 1.0 / _ALONE_VARIANCE**2))
    gradient[:, 1:] = of.control + precision * (control.shared - control.own)
    cross[:, 0] = of.alpha_bias if kind.has_bias else 0.0
    cross[:, 1:] = of.control_curvature[:, :, 0]
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = of.control_curvature[:, :, 1] if kind.has_bias else 0.0
    matrix[:, 1:, 1:] = of.control_curvature[:, :, 2:] + np.diag(precision)
    both = np.asarray(np.linalg.inv(matrix), np.float64)
    inverse: Floats = 0.5 * (both + both.transpose(0, 2, 1))
    return Eliminated(cross, inverse, _times(inverse, gradient), _times(inverse, cross))


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """Each matrix times its vector."""
    image: Floats = np.einsum("aij,aj->ai", matrices, vectors)
    return image


def control_step(
    control: ControlState, of: AnnotatorSums, rest: Eliminated, alpha_step: Floats, alpha_variance: Floats
) -> tuple[ControlState, Floats]:
    """Return the coefficients after this step of the discriminations, and the step of the biases.

    The crowd's coefficients take a Newton step in which annotators follow: else it would take many rounds where the
    judgments say much less of an annotator than the crowd does.
    """
    step = np.clip(rest.newton - rest.ratio * alpha_step[:, None], -_MAX_STEP, _MAX_STEP)
    n, p = len(step), step.shape[1] + 1
    covariance = np.empty((n, p, p))
    covariance[:, 0, 0] = alpha_variance
    covariance[:, 0, 1:] = covariance[:, 1:, 0] = -rest.ratio * alpha_variance[:, None]
    covariance[:, 1:, 1:] = rest.covariance(alpha_variance)
    own = control.own + step[:, 1:]
    shared = control.shared
    if control.learns_shared:
        precision = 1.0 / control.variances
        pull = precision * (own - shared).sum(axis=0) - _SHARED_PRECISION * shared
        move = np.clip(np.linalg.solve(shared_information(control, rest.inverse), pull), -_MAX_STEP, _MAX_STEP)
        shared = shared + move
        own = own + np.einsum("acd,d->ac", rest.inverse[:, 1:, 1:], precision * move)
        step[:, 0] += np.einsum("ad,d->a", rest.inverse[:, 0, 1:], precision * move)
    return replace(
        control, own=own, covariance=covariance, shared=shared, curvature=of.control_curvature
    ), step[:, 0]  # fmt: skip


def shared_information(control: ControlState, inverse: Floats) -> Floats:
    """Return the curvature in the crowd's coefficients with annotators marginalised, given their discriminations."""
    precision = 1.0 / control.variances
    number = len(inverse)
    total = np.diag(number * precision + _SHARED_PRECISION)
    total -= precision[:, None] * inverse[:, 1:, 1:].sum(axis=0) * precision
    return 0.5 * (total + total.T)


def learned_variances(control: ControlState, active: Bools) -> ControlState:
    """Return the state with the variance of each coefficient in the crowd; one annotator alone is the crowd."""
    number = int(active.sum())
    if number < 2:
        return control
    squares = ((control.own - control.shared)[active] ** 2).sum(axis=0)
    spread = np.diagonal(control.covariance, axis1=1, axis2=2)[active, 2:]
    total = squares + PRIOR_ANNOTATORS * START_VARIANCE
    by_expectation = (total + spread.sum(axis=0)) / (number + PRIOR_ANNOTATORS)
    known = np.maximum(1.0 - spread / control.variances, 0.0).sum(axis=0)
    by_mackay = total / (known + PRIOR_ANNOTATORS)
    variances = np.clip(np.sqrt(by_expectation * by_mackay), _MIN_VARIANCE, _MAX_VARIANCE)
    return replace(control, variances=variances)


# What is reported of them


def check_names(names: Sequence[str]) -> None:
    """Refuse covariates whose name is that of another column about annotators."""
    for name in names:
        if name in RESERVED or (name.removesuffix("_sd") in (*RESERVED, *names) and name.endswith("_sd")):
            raise ParameterError(
                f"a covariate cannot be called {name!r}, which is a column about annotators; rename it"
            )


def control_parameters(
    design: CovariateDesign, control: ControlState, of_shared: Floats, of_scale: float = 0.0
) -> dict[str, Floats]:
    """Return each annotator's coefficients and their standard errors, by name.

    ``of_scale`` is the standard error of their common scale, as a share of them.
    """
    inner = control.covariance[:, 2:, 2:]
    # an annotator follows the crowd as far as their own judgments leave that open
    follow = inner / control.variances
    variance = np.diagonal(inner + follow @ of_shared @ follow.transpose(0, 2, 1), axis1=1, axis2=2)
    variance = variance + of_scale**2 * control.own**2
    parameters: dict[str, Floats] = {}
    for place, name in enumerate(design.names):
        parameters |= {name: control.own[:, place], f"{name}_sd": np.sqrt(variance[:, place])}
    return parameters


def control_estimates(
    design: CovariateDesign, control: ControlState, of_shared: Floats, active: Bools
) -> dict[str, dict[str, Any]]:
    """Return the crowd's coefficients by name, with how far annotators differ in them.

    Intervals of several annotators are those of Student's t with ``degrees`` one less than their number.
    """
    by_name = design.estimates(control.shared, np.sqrt(np.diag(of_shared)))
    n = int(active.sum())
    for place, estimate in enumerate(by_name.values()):
        estimate["sd_between_annotators"] = float(np.sqrt(control.variances[place])) if n > 1 else 0.0
        estimate["degrees"] = n - 1 if n > 1 else None
    return by_name
