"""The verbs: what people do with judgments. Each is imported when it is first used, with what it alone needs.

The types of the names are in ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    ".aggregation": (
        "Choice aggregate as_judgments auto_method check_aggregation check_level expect_one_kind expect_self "
        "names_to_control read_covariates_of settle_swaps style_counts with_families zero_covariates"
    ),
    ".clicks": "credit fit_clicks interleave",
    ".diagnosis": "actions diagnose findings fragility",
    ".evaluation": "check_comparison compare compare_methods describe_evaluation evaluate evaluate_runs win_rate",
    ".exporting": "Exported export",
    ".in_parts": "Advice advice facts_of_sample file_advice hold_many pack pack_aside sampled_facts",
    ".method_listing": "Described methods",
    ".moderation": "Moderation moderate",
    ".proposals": (
        "TargetRule agreement_interval campaign_ends campaign_sentences campaigns check_requests disputed_targets "
        "propose reads_anew requests scheme_costs target_rule touched_items"
    ),
    ".several_rankings": "CategoryFit Rubric category_table criteria_weights fit_category rubric say_rubric",
    ".labels": "LabelSets aggregate_labels difficulty informed_by_difficulty lewidi soft_labels with_classifier",
    ".training": "as_features check_extraction check_training make_features rank train",
    "..review.actions": "Actions",
    "..review.findings": "Finding Findings",
    "..validation.method_comparison": "Comparison",
    "..validation.run_evaluation": "Evaluation",
}
"""Module -> the names that are had from here."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_VERBS = (
    "actions", "aggregate", "campaigns", "compare", "compare_methods", "credit", "diagnose", "evaluate",
    "evaluate_runs", "export", "findings", "fit_clicks", "fragility", "interleave", "moderate", "pack", "propose",
    "rank", "train", "win_rate",
)  # fmt: skip
"""Verbs that say what to write in place of an argument they do not have."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a verb, or what goes with one, when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    if name in _VERBS:
        from .arguments import explain_unknown

        value = explain_unknown(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the verbs and what goes with them."""
    return list(__all__)
