"""Rankers: scikit-learn estimators from features to scores, one per file, imported on first use; see estimator.py."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..protocols import method_named

_CLASSES = ("Auto", "LambdaMART", "LambdaRank", "ListMLE", "ListNet", "RankSVM")
_SCORERS = ("NDCGScorer", "ndcg_scorer")


def __dir__() -> list[str]:
    return sorted((*_CLASSES, *_SCORERS))


def __getattr__(name: str) -> Any:
    """Return a ranker by the name of its class, or the nDCG scorer."""
    if name in _SCORERS:
        return getattr(import_module(".estimator", __name__), name)
    return method_named(__name__, name)
