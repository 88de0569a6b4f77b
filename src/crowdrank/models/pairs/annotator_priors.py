"""Priors of annotators' parameters, and how the parameters enter the likelihood of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from ...protocols import Bools, Floats
from ...quality import TRUSTED

_USUAL_SURPLUS = 0.6
_SURPLUS_STRENGTH = 10.0
_TRUSTED_PRECISION = 40.0


class OwnPrior(Protocol):
    """What is known of annotators before they answer.

    ``model`` names the likelihood in the kernel ``annotated_pairs``; parameters stay between ``low`` and ``high``.
    ``sure`` (n_annotators,) marks those who are known to be good.
    """

    model: ClassVar[str]
    low: ClassVar[float]
    high: ClassVar[float]

    @property
    def sure(self) -> Bools:
        """Who is known to be good."""
        ...

    @property
    def favour(self) -> Floats:
        """What the log prior loses for each unit of a parameter whose sign is turned, (n_annotators,)."""
        ...

    def usual_own(self) -> Floats:
        """Return the parameter of a usual annotator without answers, ()."""
        ...

    def natural(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the parameter of the likelihood, and its first and second derivatives."""
        ...

    def penalty(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        ...

    def unsure(self) -> OwnPrior:
        """Return the prior with nobody known to be good."""
        ...

    def guess(self) -> tuple[Floats, Floats]:
        """Return the expected surplus of right answers over wrong ones, -1 to 1, and how many answers that is worth."""
        ...

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return parameters that fit a surplus of right answers over wrong ones."""
        ...


@dataclass(frozen=True, eq=False)
class BetaPrior:
    r"""Probabilities :math:`\eta` with beta priors; the parameters are their log odds.

    The density is that of the log odds, so that without answers the likeliest :math:`\eta` is the mean of the prior.

    Parameters
    ----------
    usual
        The two parameters of the beta distribution.
    sure
        Who is known to be good, (n_annotators,), and has the prior of the trusted.
    """

    model: ClassVar[str] = "mixture"
    low: ClassVar[float] = -30.0
    high: ClassVar[float] = 30.0
    usual: tuple[float, float]
    sure: Bools

    @cached_property
    def alpha(self) -> Floats:
        """First parameter of each annotator's prior."""
        return np.where(self.sure, TRUSTED[0], self.usual[0])

    @cached_property
    def beta(self) -> Floats:
        """Second parameter of each annotator's prior."""
        return np.where(self.sure, TRUSTED[1], self.usual[1])

    @property
    def favour(self) -> Floats:
        """What the log prior loses for each unit of log odds whose sign is turned."""
        return self.alpha - self.beta

    def usual_own(self) -> Floats:
        """Return the log odds of the prior's mean."""
        return np.asarray(np.log(self.usual[0] / self.usual[1]))

    def natural(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return 2 eta - 1 and its derivatives."""
        value = np.tanh(0.5 * own)
        slope = 0.5 * (1.0 - value**2)
        return value, slope, -value * slope

    def penalty(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        share = 0.5 + 0.5 * np.tanh(0.5 * own)
        logs = self.alpha * np.logaddexp(0.0, -own) + self.beta * np.logaddexp(0.0, own)
        strength = self.alpha + self.beta
        return -float(logs.sum()), self.alpha - strength * share, strength * share * (1.0 - share)

    def unsure(self) -> BetaPrior:
        """Return the prior with nobody known to be good."""
        return BetaPrior(self.usual, np.zeros_like(self.sure))

    def guess(self) -> tuple[Floats, Floats]:
        """Return the mean surplus, and the reciprocal of its variance."""
        strength = self.alpha + self.beta
        surplus = self.favour / strength
        return surplus, (strength + 1.0) / np.maximum(1.0 - surplus**2, 1e-6)

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return log odds."""
        return 2.0 * np.arctanh(surplus)


@dataclass(frozen=True, eq=False)
class NormalPrior:
    r"""Slopes with normal priors around 1, kept between -3 and 5.

    Parameters
    ----------
    usual
        Reciprocal of the variance.
    sure
        Who is known to be good, (n_annotators,): their slopes vary as little, for their size, as the log odds of the
        trusted do.
    """

    model: ClassVar[str] = "slope"
    low: ClassVar[float] = -3.0
    high: ClassVar[float] = 5.0
    usual: float
    sure: Bools

    @cached_property
    def precision(self) -> Floats:
        """Precision of each annotator's prior."""
        return np.where(self.sure, np.maximum(_TRUSTED_PRECISION, self.usual), self.usual)

    @property
    def favour(self) -> Floats:
        """What the log prior loses for each unit of slope whose sign is turned."""
        return 2.0 * self.precision

    def usual_own(self) -> Floats:
        """Return a slope of 1."""
        return np.array(1.0)

    def natural(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the slopes themselves."""
        return own, np.ones(len(own)), np.zeros(len(own))

    def penalty(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        away = own - 1.0
        return -0.5 * float((self.precision * away**2).sum()), -self.precision * away, self.precision

    def unsure(self) -> NormalPrior:
        """Return the prior with nobody known to be good."""
        return NormalPrior(self.usual, np.zeros_like(self.sure))

    def guess(self) -> tuple[Floats, Floats]:
        """Return the surplus of a usual annotator."""
        return np.full(len(self.precision), _USUAL_SURPLUS), _SURPLUS_STRENGTH * self.precision

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return slopes in proportion."""
        return surplus / _USUAL_SURPLUS
