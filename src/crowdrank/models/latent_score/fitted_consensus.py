"""The consensus that a fit of latent scores stands for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...data.consensus import Consensus
from ...protocols import Floats
from ...quality import MAX_FOLDS
from .anchors import Known
from .outcomes import annotator_quality, estimates, read_grades
from .refits import MANY_JUDGMENTS, Refit
from .responses import Layout, lay_out
from .rounds import ScoreFit
from .standard_errors import score_spread

_FEW_FOLDS = 5


def latent_consensus(method: Any, judgments: Any, layout: Layout, fit: ScoreFit, known: Known) -> Consensus:
    """Return scores with their spread, quality of annotators and grades; known items have the scores given for them."""
    std_error, blocks, of_scale = score_spread(layout, fit)
    if known.unit != 1.0:
        std_error = known.unit * std_error
        blocks = blocks and tuple(None if block is None else known.unit**2 * block for block in blocks)
    graded = read_grades(layout, fit.state)
    found = {**estimates(layout, fit.state, known), "scale_error": of_scale}
    n_folds = MAX_FOLDS if len(judgments) <= MANY_JUDGMENTS else _FEW_FOLDS
    again = Refit(partial(lay_out, bins=method.bins, lapse=method.lapse), fit, known, n_folds)
    quality = annotator_quality(judgments, layout, fit.state, again, known.unit)
    return Consensus.of(
        method, judgments, _shown(fit.state.scores, known), trace=fit.trace, std_error=std_error, covariance=blocks,
        quality=quality, estimates=found, grade=None if graded is None else graded[0],
        levels=None if graded is None else graded[1],
    )  # fmt: skip


def _shown(scores: Floats, known: Known) -> Floats:
    """Scores on the scale of the known ones."""
    given = known.middle + known.unit * known.scores
    return np.where(known.clamped, given, known.middle + known.unit * scores)
