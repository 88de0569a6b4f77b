"""GLAD on 100k grades against crowd-kit, both as they come."""

from __future__ import annotations

from .grade_models import against_crowd_kit

WORKLOAD = against_crowd_kit(
    "glad",
    "GLAD",
    ("glad", {}),
    ("GLAD", {}),
    times=50,
    sizes={"tiny": {"n_rows": 2_000}, "small": {"n_rows": 10_000}, "full": {"n_rows": 100_000}},
)
