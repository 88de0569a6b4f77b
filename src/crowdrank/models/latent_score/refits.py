"""Fits to a part of the judgments that go on from the fit to all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import JudgmentError
from ...protocols import Floats
from ...quality import MAX_FOLDS
from ...resampling import with_levels
from .anchors import Known
from .fits import Options, fit_scores
from .responses import Layout
from .rounds import ScoreFit
from .state import State, first_state

MANY_JUDGMENTS = 20_000
"""From so many judgments on, annotators are left out in five parts, and fits to a part stop earlier."""

_BRIEFLY, _MORE_BRIEFLY = Options(0.02, 60), Options(0.05, 12)
"""Agreement with scores needs no more digits."""


@dataclass(frozen=True, eq=False)
class Refit:
    """Scores of parts of the judgments.

    Which way round scores are, and what a known item has, stays as in the fit to all.

    Parameters
    ----------
    lay_out
        Turns judgments into answers.
    fit
        The fit to all judgments.
    known
        Clamped items.
    n_folds
        Number of parts that annotators are left out in, fewer than usual where there are many judgments.
    """

    lay_out: Callable[[Any], Layout]
    fit: ScoreFit
    known: Known
    n_folds: int

    def scores(self, judgments: Any) -> Floats:
        """Return the scores that a part of the judgments leads to."""
        if not len(judgments):
            return np.zeros(judgments.n_items)
        layout, anchors = self.lay_out(with_levels(judgments)), self.fit.anchors
        options = _BRIEFLY if self.n_folds == MAX_FOLDS else _MORE_BRIEFLY
        starts = (_begin(layout, self.fit.state), None)
        # rounds that go on from scores of other judgments may run away where weights are huge; a fresh start does not
        for start in starts:
            found = fit_scores(
                layout, options, features=anchors.given.features, known=self.known,
                trusted=~np.isnan(anchors.crowd.fixed), start=start,
            ).state.scores  # fmt: skip
            if np.isfinite(found).all():
                return found
        raise JudgmentError("latent_score finds no finite scores for a part of the judgments; use smaller weights")


def _begin(layout: Layout, state: State) -> State:
    """Scores and discriminations of all judgments, to begin with; habits are learned anew."""
    first = first_state(layout, state.alpha, len(state.weights))
    return replace(
        first, scores=state.scores, variance_of_items=state.variance_of_items,
        variance_of_alpha=state.variance_of_alpha, shares=state.shares, weights=state.weights,
        weights_covariance=state.weights_covariance, variance_of_weights=state.variance_of_weights,
        variance_of_levels=state.variance_of_levels if layout.levelled else 0.0,
    )  # fmt: skip
