"""Scores as log-odds of winning: ratings on the scale of chess, and shares of wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..protocols import Floats

RATING_UNIT = 400.0 / float(np.log(10.0))
"""Points of rating for one unit of log-odds: a lead of 400 wins ten times as often as it loses."""

RATING_CENTRE = 1000.0

_METHODS = ("bradley_terry", "crowd_bt", "plackett_luce", "latent_score", "elo", "em_elo")
"""Methods whose differences of scores are log-odds, or a multiple of them."""


@dataclass(frozen=True)
class OddsScale:
    """From differences of scores to log-odds, and from these to shares of wins in which a tie is half a win.

    ``per_score`` is the log-odds of one unit of score. ``davidson`` is the tie parameter of Davidson's model, ``tie``
    the half width of the ties of an ordinal model; at most one of them is not 0.
    """

    per_score: float
    davidson: float = 0.0
    tie: float = 0.0

    def share(self, difference: Floats) -> Floats:
        """Return the share of wins at these differences of scores."""
        half = 0.5 * self.per_score * np.asarray(difference, np.float64)
        if self.davidson:
            # divided through by exp(half), so that nothing overflows
            up, down = np.exp(np.minimum(2 * half, 0)), np.exp(np.minimum(-2 * half, 0))
            even = self.davidson * np.exp(-np.abs(half))
            return (up + 0.5 * even) / (up + down + even)
        return 0.5 + 0.25 * (np.tanh(half + 0.5 * self.tie) + np.tanh(half - 0.5 * self.tie))


def odds_scale(method: str, params: Mapping[str, Any], estimates: Mapping[str, Any]) -> OddsScale:
    """Return how the scores of a method become log-odds; refuse methods whose scores are something else."""
    if method not in _METHODS:
        raise ParameterError(
            f"scores of {method} are not log-odds of winning, so they have no rating or win rate; take one of "
            f"{', '.join(_METHODS)}"
        )
    own = estimates.get("cuts") if method in ("latent_score", "bradley_terry") else None
    cuts = estimates.get("cuts_preference", own)
    middle = 0 if cuts is None else len(cuts) // 2
    # an even number of cuts has a level in the middle: the ties
    tie = 0.5 * (cuts[middle] - cuts[middle - 1]) if cuts is not None and middle and len(cuts) == 2 * middle else 0.0
    davidson = estimates.get("tie", 0.0) if method in ("bradley_terry", "crowd_bt") else 0.0
    return OddsScale(_per_score(method, params, estimates), float(davidson), float(tie))


def _per_score(method: str, params: Mapping[str, Any], estimates: Mapping[str, Any]) -> float:
    """Log-odds of one unit of score."""
    if method in ("elo", "em_elo"):
        return float(np.log(params["base"]) / params["scale"])
    if method == "latent_score":
        scale = estimates.get("scale_preference", estimates.get("scale_ranking", 1.0))
        return float(scale / estimates.get("unit", 1.0))
    return 1.0
