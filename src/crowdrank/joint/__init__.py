"""Joint methods: judgments and features in, a consensus, the annotators' quality and a ranker out; one per file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..protocols import method_named


def __getattr__(name: str) -> Any:
    """Return a joint method by the name of its class, or what they return."""
    if name in ("JointFit", "PairPosteriors"):
        return getattr(import_module(".fits", __name__), name)
    return method_named(__name__, name)
