"""Discriminations of annotators as a consensus of ``latent_score`` has them, for schemes that choose whom to ask."""

from __future__ import annotations

import numpy as np

from ...data.consensus import Consensus
from ...errors import ParameterError
from ...protocols import Floats

_NEWCOMER_DEVIATION = 0.5


def preference_discriminations(consensus: Consensus) -> tuple[Floats, Floats]:
    """Return the discrimination of each annotator for preferences and its standard deviation, (n_annotators + 1,) each.

    The last entry is that of an annotator without judgments: the crowd's mean and standard deviation.
    """
    learned, estimates = consensus.learned, consensus.estimates
    if learned is None or "alpha" not in learned[1]:
        raise ParameterError(f"a consensus of {consensus.method} has no discriminations; use latent_score")
    alpha, alpha_sd = learned[1]["alpha"], learned[1]["alpha_sd"]
    scale = float(estimates.get("scale_preference", 1.0))
    mean = float(np.mean(alpha)) if len(alpha) else 1.0
    deviation = float(estimates.get("alpha_sd", _NEWCOMER_DEVIATION))
    return scale * np.append(alpha, mean), scale * np.append(alpha_sd, deviation)
