"""Findings: what there is to say of a consensus and its judgments, as sentences and as data."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus
from ..data.index import Items
from ..errors import ParameterError
from .conditions import Condition, Outcome, check, parse_condition
from .contested import contested_findings
from .crowd_findings import agreement_findings, annotator_findings, judgment_findings, method_findings
from .facts import Facts
from .finding import Finding, Findings
from .item_findings import item_findings
from .quantities import QUANTITIES

__all__ = [
    "QUANTITIES", "Condition", "Facts", "Finding", "Findings", "Outcome", "check", "facts_of", "findings",
    "findings_of", "parse_condition",
]  # fmt: skip


def findings(consensus: Consensus, judgments: Any | None = None) -> Findings:
    """Return what there is to say of a consensus: what won and how sure that is, whom to look at, what is missing.

    Parameters
    ----------
    consensus
        What a method found, best from :func:`crowdrank.aggregate`, which adds what is odd about the judgments.
    judgments
        The judgments it was made from; a frame, or a file's path; ``None`` leaves out what only they can tell.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 3, 1, 3, 1]}
    >>> found = findings(aggregate(votes), votes)
    >>> found.of("winner").sentence
    'x is first of 2 items: better than the next, y, with a probability of 100 %'
    >>> found.of("judgments").numbers["n_judgments"]
    6
    """
    return findings_of(facts_of(consensus, judgments))


def facts_of(consensus: Consensus, judgments: Any | None) -> Facts:
    """Return what findings are made of."""
    if not isinstance(consensus, Consensus):
        raise ParameterError(
            f"findings are about a consensus, not about a {type(consensus).__name__}; make one with aggregate"
        )
    judged = None if judgments is None else as_judgments(judgments)
    if judged is not None and not _same_items(consensus.items, judged.items):
        raise ParameterError(
            f"the consensus has {len(consensus.items):,} items and the judgments {judged.n_items:,}, which are not the "
            "same; give the judgments it was made from"
        )
    return Facts(consensus, judged)


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
