"""What there is to say of a consensus, as sentences and as data."""

from __future__ import annotations

from typing import Any

from ..data.consensus import Consensus
from ..review.facts import facts_of
from ..review.findings import Findings, findings_of
from .aggregation import as_judgments


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
    'x is first of 2 items: better than the next, y, with a probability of over 99 %'
    >>> found.of("judgments").numbers["n_judgments"]
    6
    """
    judged = None if judgments is None else as_judgments(judgments)
    return findings_of(facts_of(consensus, judged))
