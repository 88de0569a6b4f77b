"""Joint methods by the name of their class (``cr.joint.LTRMA``): judgments and features to consensus and ranker."""

from __future__ import annotations

from typing import Any

from .data.joint_fit import JointFit, PairPosteriors
from .registry import class_named, class_names


def __getattr__(name: str) -> Any:
    """Return a joint method by the name of its class, imported when it is first asked for."""
    return class_named("joint", name)


def __dir__() -> list[str]:
    """List the classes of methods and of what they return."""
    return sorted([*class_names("joint"), JointFit.__name__, PairPosteriors.__name__])
