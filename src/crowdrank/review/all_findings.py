"""Findings: what there is to say of a consensus and its judgments, as sentences and as data."""

from __future__ import annotations

from .conditions import QUANTITIES, Condition, Outcome, check, parse_condition
from .contested import contested_findings
from .control_habits import control_findings, habit_findings
from .crowd_findings import agreement_findings, annotator_findings, judgment_findings, method_findings
from .facts import Facts, facts_of
from .finding import Finding, Findings
from .item_findings import item_findings

__all__ = [
    "QUANTITIES", "Condition", "Facts", "Finding", "Findings", "Outcome", "check", "facts_of", "findings_of",
    "parse_condition",
]  # fmt: skip


def findings_of(facts: Facts) -> Findings:
    """Return the findings that facts support, in the order of the report."""
    annotators = annotator_findings(facts)
    leaning = [who for one in annotators if one.kind in ("leans", "one_side") for who in one.ids]
    return Findings(
        [
            *item_findings(facts), *annotators, *habit_findings(facts.consensus, leaning=leaning),
            *agreement_findings(facts), *contested_findings(facts),
            *judgment_findings(facts), *method_findings(facts), *control_findings(facts.consensus),
        ]
    )  # fmt: skip
