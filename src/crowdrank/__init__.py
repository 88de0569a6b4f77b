"""Consensus rankings, annotator quality and trained rankers from noisy judgments by many annotators.

Public names are imported when they are first asked for, so that importing the package stays quick; their types are in
``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0rc1"

_NAMES = {
    ".api": (
        "Actions Comparison LabelSets Moderation Rubric actions aggregate aggregate_labels campaigns compare "
        "compare_methods credit "
        "describe_evaluation diagnose evaluate evaluate_runs export findings fit_clicks fragility interleave methods "
        "lewidi moderate pack propose rank rubric soft_labels with_classifier "
        "style_counts train win_rate with_families"
    ),
    ".auditing.changes": "changed",
    ".auditing.program_audit": "audit",
    ".cluster.packed": "PackedJudgments scan_judgments",
    ".data.clicks": "Clicks",
    ".data.consensus": "Consensus Diagnostics Quality Trace",
    ".data.features": "Features",
    ".data.judgments": "Grades Mixed Preferences Rankings",
    ".data.truth": "Truth",
    ".integrations.platforms": "push",
    ".integrations.tracking": "log",
    ".integrations.widgets": "widget",
    ".io": "inspect load_ranker read_clicks read_consensus read_features read_judgments read_truth",
    ".judging": "JudgeRun ajudge judge sort",
    ".report": "plot write_report",
}
"""Module -> the names that are had from here."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_PACKAGES = (
    "aggregators", "datasets", "errors", "features", "joint", "metrics", "rankers", "report", "schemes", "simulate",
)  # fmt: skip

__all__ = sorted([*_HOMES, *_PACKAGES])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
