"""The verbs: what people do with judgments. Each is imported when it is first used, with what it alone needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..review.actions import Actions
    from ..review.finding import Finding, Findings
    from ..validation.comparison import Comparison
    from ..validation.evaluation import Evaluation
    from .aggregation import aggregate, as_judgments, check_aggregation, check_level, expect_one_kind
    from .annotator_actions import actions
    from .campaigns import campaign_ends, campaign_sentences, campaigns
    from .choosing import Choice, auto_method
    from .comparison import check_comparison, compare, compare_methods
    from .consensus_findings import findings
    from .diagnosis import diagnose
    from .evaluation import evaluate, evaluate_runs
    from .method_listing import Described, methods
    from .proposals import check_requests, propose, requests, scheme_costs
    from .training import as_features, check_training, rank, train

_HOMES = {
    "Actions": "..review.actions",
    "Choice": ".choosing",
    "Comparison": "..validation.comparison",
    "Described": ".method_listing",
    "Evaluation": "..validation.evaluation",
    "Finding": "..review.finding",
    "Findings": "..review.finding",
    "actions": ".annotator_actions",
    "aggregate": ".aggregation",
    "as_features": ".training",
    "as_judgments": ".aggregation",
    "auto_method": ".choosing",
    "campaign_ends": ".campaigns",
    "campaign_sentences": ".campaigns",
    "campaigns": ".campaigns",
    "check_aggregation": ".aggregation",
    "check_comparison": ".comparison",
    "check_level": ".aggregation",
    "check_requests": ".proposals",
    "check_training": ".training",
    "compare": ".comparison",
    "compare_methods": ".comparison",
    "diagnose": ".diagnosis",
    "evaluate": ".evaluation",
    "evaluate_runs": ".evaluation",
    "expect_one_kind": ".aggregation",
    "findings": ".consensus_findings",
    "methods": ".method_listing",
    "propose": ".proposals",
    "rank": ".training",
    "requests": ".proposals",
    "scheme_costs": ".proposals",
    "train": ".training",
}
_VERBS = (
    "actions", "aggregate", "campaigns", "compare", "compare_methods", "diagnose", "evaluate", "evaluate_runs",
    "findings", "propose", "rank", "train",
)  # fmt: skip
"""Verbs that say what to write in place of an argument they do not have."""

__all__ = [
    "Actions",
    "Choice",
    "Comparison",
    "Described",
    "Evaluation",
    "Finding",
    "Findings",
    "actions",
    "aggregate",
    "as_features",
    "as_judgments",
    "auto_method",
    "campaign_ends",
    "campaign_sentences",
    "campaigns",
    "check_aggregation",
    "check_comparison",
    "check_level",
    "check_requests",
    "check_training",
    "compare",
    "compare_methods",
    "diagnose",
    "evaluate",
    "evaluate_runs",
    "expect_one_kind",
    "findings",
    "methods",
    "propose",
    "rank",
    "requests",
    "scheme_costs",
    "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a verb, or what goes with one, when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    if name in _VERBS:
        from .door import at_the_door

        value = at_the_door(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the verbs and what goes with them."""
    return sorted(__all__)
