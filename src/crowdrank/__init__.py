"""Consensus rankings, annotator quality and trained rankers from noisy judgments by many annotators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc1"

if TYPE_CHECKING:
    from . import aggregators, datasets, errors, features, joint, metrics, rankers, report, schemes, simulate
    from .api import (
        Actions,
        Comparison,
        actions,
        aggregate,
        campaigns,
        compare,
        compare_methods,
        credit,
        describe_evaluation,
        diagnose,
        evaluate,
        evaluate_runs,
        export,
        findings,
        fit_clicks,
        interleave,
        methods,
        pack,
        propose,
        rank,
        style_counts,
        train,
        win_rate,
        with_families,
    )
    from .cluster.packed import PackedJudgments, scan_judgments
    from .data.clicks import Clicks
    from .data.consensus import Consensus, Diagnostics, Quality, Trace
    from .data.features import Features
    from .data.judgments import Grades, Mixed, Preferences, Rankings
    from .data.truth import Truth
    from .io import inspect, load_ranker, read_clicks, read_consensus, read_features, read_judgments, read_truth
    from .report import plot, write_report

_HOMES = {
    "Actions": ".api",
    "Clicks": ".data.clicks",
    "Comparison": ".api",
    "Consensus": ".data.consensus",
    "Diagnostics": ".data.consensus",
    "Features": ".data.features",
    "Grades": ".data.judgments",
    "Mixed": ".data.judgments",
    "PackedJudgments": ".cluster.packed",
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
    "credit": ".api",
    "describe_evaluation": ".api",
    "diagnose": ".api",
    "evaluate": ".api",
    "evaluate_runs": ".api",
    "export": ".api",
    "findings": ".api",
    "fit_clicks": ".api",
    "inspect": ".io",
    "interleave": ".api",
    "load_ranker": ".io",
    "methods": ".api",
    "pack": ".api",
    "plot": ".report",
    "propose": ".api",
    "rank": ".api",
    "read_clicks": ".io",
    "read_consensus": ".io",
    "read_features": ".io",
    "read_judgments": ".io",
    "read_truth": ".io",
    "scan_judgments": ".cluster.packed",
    "style_counts": ".api",
    "train": ".api",
    "win_rate": ".api",
    "with_families": ".api",
    "write_report": ".report",
}
_PACKAGES = (
    "aggregators", "datasets", "errors", "features", "joint", "metrics", "rankers", "report", "schemes", "simulate",
)  # fmt: skip

__all__ = [
    "Actions",
    "Clicks",
    "Comparison",
    "Consensus",
    "Diagnostics",
    "Features",
    "Grades",
    "Mixed",
    "PackedJudgments",
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
    "credit",
    "datasets",
    "describe_evaluation",
    "diagnose",
    "errors",
    "evaluate",
    "evaluate_runs",
    "export",
    "features",
    "findings",
    "fit_clicks",
    "inspect",
    "interleave",
    "joint",
    "load_ranker",
    "methods",
    "metrics",
    "pack",
    "plot",
    "propose",
    "rank",
    "rankers",
    "read_clicks",
    "read_consensus",
    "read_features",
    "read_judgments",
    "read_truth",
    "report",
    "scan_judgments",
    "schemes",
    "simulate",
    "style_counts",
    "train",
    "win_rate",
    "with_families",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so importing the package stays quick."""
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
