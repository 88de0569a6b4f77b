"""Findings: what there is to say of a consensus and its judgments, as sentences and as data."""

from __future__ import annotations

import polars as pl

from ..data.consensus import Consensus
from ..data.index import Items
from ..data.judgments import Judgments, Mixed
from ..errors import ParameterError
from .conditions import QUANTITIES, Condition, Outcome, check, parse_condition
from .contested import contested_findings
from .crowd_findings import agreement_findings, annotator_findings, judgment_findings, method_findings
from .facts import Facts
from .finding import Finding, Findings
from .item_findings import item_findings

__all__ = [
    "QUANTITIES", "Condition", "Facts", "Finding", "Findings", "Outcome", "check", "facts_of", "findings_of",
    "parse_condition",
]  # fmt: skip


def facts_of(consensus: Consensus, judgments: Judgments | Mixed | None) -> Facts:
    """Return what findings are made of."""
    if not isinstance(consensus, Consensus):
        raise ParameterError(
            f"findings are about a consensus, not about a {type(consensus).__name__}; make one with aggregate"
        )
    if judgments is not None and not _same_items(consensus.items, judgments.items):
        raise ParameterError(
            f"the consensus has {len(consensus.items):,} items and the judgments {judgments.n_items:,}, which are not "
            "the same; give the judgments it was made from"
        )
    return Facts(consensus, judgments)


def _same_items(one: Items, other: Items) -> bool:
    """Whether items are the same, so that their codes are too."""
    if one is other:
        return True
    return len(one) == len(other) and all(
        mine.cast(pl.String).equals(theirs.cast(pl.String), check_names=False)
        for mine, theirs in ((one.ids, other.ids), (one.query_ids(), other.query_ids()))
    )


def findings_of(facts: Facts) -> Findings:
    """Return the findings that facts support, in the order in which they are told."""
    return Findings(
        [
            *item_findings(facts), *annotator_findings(facts), *agreement_findings(facts), *contested_findings(facts),
            *judgment_findings(facts), *method_findings(facts),
        ]
    )  # fmt: skip
