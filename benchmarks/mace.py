"""MACE on 1M grades, one restart each, against crowd-kit (50 iterations, its default; it has no tolerance)."""

from __future__ import annotations

from .grade_models import against_crowd_kit

WORKLOAD = against_crowd_kit(
    "mace", "MACE, one restart", ("mace", {"n_restarts": 1}), ("MACE", {"n_restarts": 1}), times=50
)
