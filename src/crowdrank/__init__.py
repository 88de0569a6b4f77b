"""Consensus rankings, annotator quality and trained rankers from noisy judgments by many annotators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import aggregators, datasets, errors, metrics, simulate
    from .api import aggregate, compare, evaluate
    from .data.consensus import Consensus, Quality, Trace
    from .data.features import Features
    from .data.judgments import Grades, Preferences, Rankings
    from .data.truth import Truth
    from .io import read_consensus, read_features, read_judgments, read_truth

_HOMES = {
    "Consensus": ".data.consensus",
    "Features": ".data.features",
    "Grades": ".data.judgments",
    "Preferences": ".data.judgments",
    "Quality": ".data.consensus",
    "Rankings": ".data.judgments",
    "Trace": ".data.consensus",
    "Truth": ".data.truth",
    "aggregate": ".api",
    "compare": ".api",
    "evaluate": ".api",
    "read_consensus": ".io",
    "read_features": ".io",
    "read_judgments": ".io",
    "read_truth": ".io",
}
_PACKAGES = ("aggregators", "datasets", "errors", "metrics", "simulate")

__all__ = [
    "Consensus",
    "Features",
    "Grades",
    "Preferences",
    "Quality",
    "Rankings",
    "Trace",
    "Truth",
    "aggregate",
    "aggregators",
    "compare",
    "datasets",
    "errors",
    "evaluate",
    "metrics",
    "read_consensus",
    "read_features",
    "read_judgments",
    "read_truth",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that importing the package stays quick."""
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
