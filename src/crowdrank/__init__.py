"""Consensus rankings, annotator quality and trained rankers from noisy judgments by many annotators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import aggregators, datasets, errors, joint, metrics, rankers, report, schemes, simulate
    from .api import (
        Actions,
        Comparison,
        actions,
        aggregate,
        campaigns,
        compare,
        compare_methods,
        diagnose,
        evaluate,
        evaluate_runs,
        findings,
        methods,
        propose,
        rank,
        train,
    )
    from .data.consensus import Consensus, Quality, Trace
    from .data.diagnostics import Diagnostics
    from .data.features import Features
    from .data.judgments import Grades, Mixed, Preferences, Rankings
    from .data.truth import Truth
    from .io import load_ranker, read_consensus, read_features, read_judgments, read_truth
    from .report import plot

_HOMES = {
    "Actions": ".api",
    "Comparison": ".api",
    "Consensus": ".data.consensus",
    "Diagnostics": ".data.diagnostics",
    "Features": ".data.features",
    "Grades": ".data.judgments",
    "Mixed": ".data.mixed",
    "Preferences": ".data.judgments",
    "Quality": ".data.consensus",
    "Rankings": ".data.judgments",
    "Trace": ".data.consensus",
    "Truth": ".data.truth",
    "actions": ".api",
    "aggregate": ".api",
    "campaigns": ".api",
    "compare": ".api",
    "compare_methods": ".api",
    "diagnose": ".api",
    "evaluate": ".api",
    "evaluate_runs": ".api",
    "findings": ".api",
    "load_ranker": ".io",
    "methods": ".api",
    "plot": ".report",
    "propose": ".api",
    "rank": ".api",
    "read_consensus": ".io",
    "read_features": ".io",
    "read_judgments": ".io",
    "read_truth": ".io",
    "train": ".api",
}
_PACKAGES = ("aggregators", "datasets", "errors", "joint", "metrics", "rankers", "report", "schemes", "simulate")

__all__ = [
    "Actions",
    "Comparison",
    "Consensus",
    "Diagnostics",
    "Features",
    "Grades",
    "Mixed",
    "Preferences",
    "Quality",
    "Rankings",
    "Trace",
    "Truth",
    "actions",
    "aggregate",
    "aggregators",
    "campaigns",
    "compare",
    "compare_methods",
    "datasets",
    "diagnose",
    "errors",
    "evaluate",
    "evaluate_runs",
    "findings",
    "joint",
    "load_ranker",
    "methods",
    "metrics",
    "plot",
    "propose",
    "rank",
    "rankers",
    "read_consensus",
    "read_features",
    "read_judgments",
    "read_truth",
    "report",
    "schemes",
    "simulate",
    "train",
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
