"""What latent scores are made of: judgments of any kind as ordinal answers, and the rounds that explain them.

:func:`lay_out` turns judgments into answers, :func:`fit_scores` explains them, and :func:`annotator_quality`,
:func:`read_grades` and :func:`score_spread` say what was found.
"""

from __future__ import annotations

from .anchors import Known, known_scores
from .consensus import latent_consensus
from .fits import Options, fit_scores, warn_about
from .outcomes import annotator_quality, estimates, read_grades
from .responses import Layout, lay_out
from .rounds import ScoreFit
from .spread import score_spread
from .starts import former_state
from .state import State

__all__ = [
    "Known",
    "Layout",
    "Options",
    "ScoreFit",
    "State",
    "annotator_quality",
    "estimates",
    "fit_scores",
    "former_state",
    "known_scores",
    "latent_consensus",
    "lay_out",
    "read_grades",
    "score_spread",
    "warn_about",
]  # fmt: skip
