"""Annotators who always choose one side or always tie: what a glance at the answers shows, with what to do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.coding import LONG
from ..data.index import Index
from ..data.judgments import Preferences
from ..protocols import Counts, Floats, Ints, Outcomes
from .naming import listed, percent

FEWEST = 20
"""Of fewer answers nothing is said."""

NEARLY_ALL = 0.95
GLANCE = 300_000
"""So many preferences are looked at for a glance."""

_FEWEST_SEEN = 10
_LIKELY = 0.9
_MOST_CROWD_TIES = 0.5
_FEWEST_AGAINST = 5
_AGAINST = 0.8


def side_sentences(preferences: Preferences, scores: Floats, *, glance: bool = False) -> list[str]:
    """Return a sentence on those who always choose one side, and one on those who always tie, where there are any.

    A ``glance`` at many preferences looks at a sample first, and at all of them only where that shows somebody: so it
    takes 2 % of the quickest fit and not 10 %, but may miss annotators with fewer than some hundred answers.
    """
    n = preferences.n_annotators
    if not n:
        return []
    if glance and len(preferences) > GLANCE:
        seen = outcome_counts(preferences.annotator, preferences.outcome, n, step=-(-len(preferences) // GLANCE))
        total = seen.sum(axis=1)
        if not ((total >= _FEWEST_SEEN) & (seen.max(axis=1) >= _LIKELY * total)).any():
            return []
    counts = outcome_counts(preferences.annotator, preferences.outcome, n)
    return [*_one_side(preferences, scores, counts), *_all_ties(preferences.annotators, counts)]


class Told(NamedTuple):
    """Codes of some annotators, and what is told of each."""

    codes: Counts
    words: list[str]

    @classmethod
    def none(cls) -> Told:
        """Return nobody."""
        return cls(np.zeros(0, np.int64), [])


def outcome_counts(annotator: Ints, outcome: Outcomes, n: int, *, step: int = 1) -> Counts:
    """Return how often each of ``n`` annotators chose right, tied and chose left, (n, 3); of one block in ``step``."""
    if len(outcome) >= LONG:
        from ..kernels.outcomes import count_outcomes

        return count_outcomes(annotator, outcome, n, step)
    return np.bincount(annotator * np.int64(3) + outcome + 1, minlength=3 * n).reshape(n, 3)


def one_side(preferences: Preferences, scores: Floats, counts: Counts) -> Told:
    """Return those who choose one side, also where the other item has the higher score.

    ``counts`` are those of :func:`outcome_counts`.
    """
    decided, left = counts[:, 0] + counts[:, 2], counts[:, 2]
    most = np.maximum(left, decided - left)
    near = (decided >= FEWEST) & (most >= NEARLY_ALL * decided)
    if not near.any():
        return Told.none()
    rows = np.flatnonzero(near[preferences.annotator])
    who, outcome = preferences.annotator[rows], preferences.outcome[rows]
    side = np.where(2 * left >= decided, 1, -1)
    behind = (scores[preferences.left[rows]] - scores[preferences.right[rows]]) * side[who] < 0
    behind &= outcome != 0
    against = np.bincount(who[behind], minlength=len(near))
    kept = np.bincount(who[behind], outcome[behind] == side[who[behind]], len(near)).astype(np.int64)
    found = np.flatnonzero(near & (against >= _FEWEST_AGAINST) & (kept >= _AGAINST * against))
    told = [
        f"{'left' if side[a] > 0 else 'right'} in {most[a]:,} of {decided[a]:,} answers, "
        f"also in {kept[a]:,} of {against[a]:,} where the other item scores higher"
        for a in found.tolist()
    ]
    return Told(found, told)


def _one_side(preferences: Preferences, scores: Floats, counts: Counts) -> list[str]:
    """A sentence on those who choose one side."""
    found, told = one_side(preferences, scores, counts)
    if not len(found):
        return []
    verb = "chooses" if len(found) == 1 else "choose"
    named = listed(preferences.annotators, found, told)
    return [f"{named.number} {verb} one side whatever the items: {named.text}; leave them out, or ask somebody else"]


def all_ties(counts: Counts) -> Told:
    """Return those who tie nearly always where others do not; ``counts`` are those of :func:`outcome_counts`."""
    number, tied = counts.sum(axis=1), counts[:, 1]
    rest = (tied.sum() - tied) / np.maximum(number.sum() - number, 1)
    found = np.flatnonzero((number >= FEWEST) & (tied >= NEARLY_ALL * number) & (rest <= _MOST_CROWD_TIES))
    told = [f"{tied[a]:,} of {number[a]:,} answers, others tie in {percent(rest[a])}" for a in found.tolist()]
    return Told(found, told)


def _all_ties(annotators: Index, counts: Counts) -> list[str]:
    """A sentence on those who tie nearly always."""
    found, told = all_ties(counts)
    if not len(found):
        return []
    named = listed(annotators, found, told)
    verb = "ties" if len(found) == 1 else "tie"
    return [f"{named.number} {verb} nearly always: {named.text}; leave them out, since such ties tell nothing"]
