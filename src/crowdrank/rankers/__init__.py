"""Rankers: scikit-learn estimators from features to scores, one per file, imported on first use; see estimator.py."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..protocols import method_named


def __getattr__(name: str) -> Any:
    """Return a ranker by the name of its class, or the nDCG scorer."""
    if name in ("NDCGScorer", "ndcg_scorer"):
        return getattr(import_module(".scoring", __name__), name)
    return method_named(__name__, name)
