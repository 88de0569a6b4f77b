"""The verbs: what people do with judgments. Each is imported when it is first used, with what it alone needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..review.actions import Actions
    from ..review.findings import Finding, Findings
    from ..validation.method_comparison import Comparison
    from ..validation.run_evaluation import Evaluation
    from .aggregation import aggregate, as_judgments, check_aggregation, check_level, expect_one_kind, settle_swaps
    from .annotator_actions import actions
    from .campaigns import campaign_ends, campaign_sentences, campaigns
    from .choosing import Choice, auto_method
    from .click_relevance import fit_clicks
    from .collecting import TargetRule, agreement_interval, disputed_targets, reads_anew, target_rule, touched_items
    from .comparison import check_comparison, compare, compare_methods
    from .consensus_findings import findings
    from .control import (
        expect_self,
        names_to_control,
        read_covariates_of,
        style_counts,
        with_families,
        zero_covariates,
    )
    from .diagnosis import diagnose
    from .evaluation import describe_evaluation, evaluate, evaluate_runs
    from .exporting import Exported, export
    from .extraction import check_extraction, make_features
    from .in_parts import hold_many
    from .interleaving import credit, interleave
    from .method_listing import Described, methods
    from .packing import pack, pack_aside
    from .proposals import check_requests, propose, requests, scheme_costs
    from .scale import Advice, advice, facts_of_sample, file_advice, sampled_facts
    from .several_fits import CategoryFit, category_table, criteria_table, fit_category
    from .training import as_features, check_training, rank, train
    from .win_rates import win_rate

_HOMES = {
    "Actions": "..review.actions",
    "Advice": ".scale",
    "CategoryFit": ".several_fits",
    "Choice": ".choosing",
    "Comparison": "..validation.method_comparison",
    "Described": ".method_listing",
    "Evaluation": "..validation.run_evaluation",
    "Exported": ".exporting",
    "Finding": "..review.findings",
    "Findings": "..review.findings",
    "TargetRule": ".collecting",
    "actions": ".annotator_actions",
    "advice": ".scale",
    "agreement_interval": ".collecting",
    "aggregate": ".aggregation",
    "as_features": ".training",
    "as_judgments": ".aggregation",
    "auto_method": ".choosing",
    "campaign_ends": ".campaigns",
    "campaign_sentences": ".campaigns",
    "campaigns": ".campaigns",
    "category_table": ".several_fits",
    "check_aggregation": ".aggregation",
    "check_comparison": ".comparison",
    "check_extraction": ".extraction",
    "check_level": ".aggregation",
    "check_requests": ".proposals",
    "check_training": ".training",
    "compare": ".comparison",
    "compare_methods": ".comparison",
    "credit": ".interleaving",
    "criteria_table": ".several_fits",
    "describe_evaluation": ".evaluation",
    "diagnose": ".diagnosis",
    "disputed_targets": ".collecting",
    "evaluate": ".evaluation",
    "evaluate_runs": ".evaluation",
    "expect_one_kind": ".aggregation",
    "expect_self": ".control",
    "export": ".exporting",
    "file_advice": ".scale",
    "findings": ".consensus_findings",
    "fit_category": ".several_fits",
    "fit_clicks": ".click_relevance",
    "hold_many": ".in_parts",
    "interleave": ".interleaving",
    "make_features": ".extraction",
    "methods": ".method_listing",
    "names_to_control": ".control",
    "pack": ".packing",
    "pack_aside": ".packing",
    "propose": ".proposals",
    "rank": ".training",
    "read_covariates_of": ".control",
    "requests": ".proposals",
    "facts_of_sample": ".scale",
    "sampled_facts": ".scale",
    "scheme_costs": ".proposals",
    "settle_swaps": ".aggregation",
    "style_counts": ".control",
    "target_rule": ".collecting",
    "reads_anew": ".collecting",
    "touched_items": ".collecting",
    "train": ".training",
    "with_families": ".control",
    "win_rate": ".win_rates",
    "zero_covariates": ".control",
}
_VERBS = (
    "actions", "aggregate", "campaigns", "compare", "compare_methods", "credit", "diagnose", "evaluate",
    "evaluate_runs", "export", "findings", "fit_clicks", "interleave", "pack", "propose", "rank", "train", "win_rate",
)  # fmt: skip
"""Verbs that say what to write in place of an argument they do not have."""

__all__ = [
    "Actions",
    "Advice",
    "CategoryFit",
    "Choice",
    "Comparison",
    "Described",
    "Evaluation",
    "Exported",
    "Finding",
    "Findings",
    "TargetRule",
    "actions",
    "advice",
    "aggregate",
    "agreement_interval",
    "as_features",
    "as_judgments",
    "auto_method",
    "campaign_ends",
    "campaign_sentences",
    "campaigns",
    "category_table",
    "check_aggregation",
    "check_comparison",
    "check_extraction",
    "check_level",
    "check_requests",
    "check_training",
    "compare",
    "compare_methods",
    "credit",
    "criteria_table",
    "describe_evaluation",
    "diagnose",
    "disputed_targets",
    "evaluate",
    "evaluate_runs",
    "expect_one_kind",
    "expect_self",
    "export",
    "facts_of_sample",
    "file_advice",
    "findings",
    "fit_category",
    "fit_clicks",
    "hold_many",
    "interleave",
    "make_features",
    "methods",
    "names_to_control",
    "pack",
    "pack_aside",
    "propose",
    "rank",
    "read_covariates_of",
    "reads_anew",
    "requests",
    "sampled_facts",
    "scheme_costs",
    "settle_swaps",
    "style_counts",
    "target_rule",
    "touched_items",
    "train",
    "win_rate",
    "with_families",
    "zero_covariates",
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
