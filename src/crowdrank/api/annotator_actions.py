"""What to do about each annotator, as a verb."""

from __future__ import annotations

from typing import Any

from ..data.consensus import Consensus
from ..review.actions import Actions, suggest_actions
from .aggregation import as_judgments


def actions(
    consensus: Consensus,
    judgments: Any,
    *,
    method: Any | None = None,
    trusted: Any | None = None,
) -> Actions:
    """Return whom to keep, whom to look at and whom to leave out, and what the consensus would become without them.

    Left out are those who guess or answer the wrong way round, if that is certain enough: their quality lies below 0.6
    by more than chance explains, among this many annotators (of those named for this, one in 20 may be named wrongly);
    and those whose answers have little to do with the items: one side, one grade or a tie nearly always, or circles as
    guessing gives them. Nobody is left out for fewer than 20 judgments. To look at are those who may be poor, lean to
    one side, change their mind with the order of items, or make the mistakes of another, as copies do. It is a
    suggestion: nothing is left out of ``consensus`` itself. Who was to be left out for quality, but does better by the
    consensus of the others, is only to be looked at.

    Parameters
    ----------
    consensus
        The consensus of the judgments, from :func:`crowdrank.aggregate`.
    judgments
        The judgments; or a frame, or a file's path.
    method
        Aggregator for the fit without those to be left out, which starts from the consensus where it can; ``None``
        takes the method of the consensus.
    trusted
        Annotators known to be good: they are kept whatever speaks against them.

    Examples
    --------
    >>> from crowdrank.api import aggregate
    >>> rows = [(who, item, item) for who in ("ann", "bob", "cy") for item in range(20)]
    >>> rows += [("eve", item, -item) for item in range(20)]
    >>> votes = dict(zip(("annotator", "item", "grade"), zip(*rows)))
    >>> found = actions(aggregate(votes), votes)
    >>> found.dropped, found.frame()["reason"][0].partition(" (")[0]
    (['eve'], 'answers the wrong way round')
    >>> found.sentence
    'without that one the order would stay as it is, and 19 would still win'
    """
    return suggest_actions(consensus, as_judgments(judgments), method, trusted)
