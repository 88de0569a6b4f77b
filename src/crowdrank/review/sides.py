"""Annotators who always choose one side or always tie, and sides that nobody saw: what a glance at answers shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.index import Index
from ..data.intake import short
from ..data.judgments import Preferences
from ..data.recording import FEWEST, NEARLY_ALL, outcome_counts
from ..protocols import Bools, Counts, Floats
from ..wording import SHOWN, counted, first_few, percent
from .flags import FLAGS

GLANCE = 300_000
"""Preferences in the sample that a glance looks at."""

_MIN_ANSWERS = 10
_MIN_SHARE_OF_SAMPLE = 0.9
_MOST_CROWD_TIES = 0.5
_MIN_ANSWERS_AGAINST = 5
_MIN_SHARE_AGAINST = 0.8
_MAX_SHARE_OF_EXPECTED = 0.5
_MAX_SHARE_OF_CROWD = 0.8
_MIN_ANNOTATORS = 3
_TURNED = 0.1
"""Share of those who keep to one side that may keep to the other where somebody wrote winners down on one."""

_FAR_BELOW = 2.33
"""Standard errors below what a share should be of which only one in a hundred is."""


def side_sentences(preferences: Preferences, scores: Floats, *, glance: bool = False) -> list[str]:
    """Return a sentence on those who always choose one side, and one on those who always tie, where there are any.

    A ``glance`` at many preferences looks at a sample first, and at all of them only where that shows somebody: so it
    takes 2 % of the quickest fit and not 10 %, but may miss annotators with fewer than some hundred answers.
    """
    n = preferences.n_annotators
    if not n:
        return []
    if glance and not _seen_at_a_glance(preferences):
        return []
    counts = outcome_counts(preferences.annotator, preferences.outcome, n)
    annotators = preferences.annotators
    return [
        *flag_sentence("one_side", annotators, one_side(preferences, scores)),
        *flag_sentence("always_ties", annotators, all_ties(counts)),
    ]


def _seen_at_a_glance(preferences: Preferences) -> bool:
    """Whether anybody in a sample of many preferences gives nearly always the same answer."""
    if len(preferences) <= GLANCE:
        return True
    n = max(preferences.n_annotators, 1)
    who = preferences.row_annotator
    seen = outcome_counts(who, preferences.outcome, n, step=-(-len(preferences) // GLANCE))
    total = seen.sum(axis=1)
    return bool(((total >= _MIN_ANSWERS) & (seen.max(axis=1) >= _MIN_SHARE_OF_SAMPLE * total)).any())


def recorded_sentences(preferences: Preferences, *, glance: bool = False) -> list[str]:
    """Return a sentence that sides are not those that annotators saw, where that is known or shows."""
    n, known = len(preferences), preferences.recorded
    if known is not None and known.any():
        how = "the preferences do not say" if known.all() else f"{int(known.sum()):,} of {n:,} preferences do not say"
        rest = "nothing can be said" if known.all() else "they say nothing"
        return [f"{how} which item was shown on which side, so {rest} about choosing by side"]
    if glance and not _seen_at_a_glance(preferences):
        return []
    n_left, n_right = int((preferences.outcome > 0).sum()), int((preferences.outcome < 0).sum())
    if preferences.shown.any() or n_left + n_right < FEWEST:
        return []
    side, won = ("left", n_left) if n_left >= n_right else ("right", n_right)
    n_annotators = len(np.unique(preferences.annotator))
    whom = "" if n_annotators < 2 else f" of {n_annotators:,} annotators"
    return [
        f"the {side} item won in {won:,} of {n_left + n_right:,} preferences{whom}: that is taken for the order in "
        "which winners were written down, so no side bias is estimated; give left and right as they were shown "
        "if sides matter"
    ]


class Flagged(NamedTuple):
    """Codes of the annotators with a flag, and the numbers behind it for each, in words."""

    codes: Counts
    words: list[str]


def flag_sentence(code: str, annotators: Index, flagged: Flagged, remedy: str | None = None) -> list[str]:
    """Return the sentence that annotators have a flag: how many, who with which numbers, what to do; none of nobody.

    ``remedy`` stands in for that of the flag.
    """
    n, flag = len(flagged.codes), FLAGS[code]
    if not n:
        return []
    ids = annotators.ids.gather(flagged.codes[:SHOWN]).to_list()
    names = [f"{short(who)} ({numbers})" for who, numbers in zip(ids, flagged.words, strict=False)]
    scale = f" ({flag.scale})" if flag.scale else ""
    return [f"{counted(n, 'annotator')} {flag.words(n)}{scale}: {first_few(names, n)}; {remedy or flag.remedy}"]


class OneSided(NamedTuple):
    """What the sides of each annotator's answers are, (n_annotators,) each.

    Parameters
    ----------
    decided, most, side
        Answers that are no tie, how many of them are on the side of most, and that side: 1 left, -1 right.
    always
        Whether nearly all are on that side.
    against, kept
        Of those, in how many answers the other item scores higher, and in how many of these the side was kept to.
    looks
        Of those, whose winners are the better items far more often than on that side, so it is the winner who was
        put there.
    """

    decided: Counts
    most: Counts
    side: Counts
    always: Bools
    against: Counts
    kept: Counts
    looks: Bools

    @classmethod
    def of(cls, preferences: Preferences, scores: Floats) -> OneSided:
        """Return what the answers with sides as they were shown tell."""
        rows, n = np.flatnonzero(preferences.shown & (preferences.outcome != 0)), preferences.n_annotators
        who, outcome = preferences.annotator[rows], preferences.outcome[rows]
        right, _, left = outcome_counts(who, outcome, n).T
        decided, most, side = left + right, np.maximum(left, right), np.where(left >= right, 1, -1)
        always = (decided >= FEWEST) & (most >= NEARLY_ALL * decided)
        if not always.any():
            none = np.zeros(n, np.int64)
            return cls(decided, most, side, always, none, none, always)
        lead = np.sign(scores[preferences.left[rows]] - scores[preferences.right[rows]])
        behind = always[who] & (lead * side[who] < 0)
        against = np.bincount(who[behind], minlength=n)
        kept = np.bincount(who[behind], outcome[behind] == side[who[behind]], n).astype(np.int64)
        # the others show how often the worse item stands on a side, which is how often one who goes by it is wrong
        others = lead[~always[who]]
        worse_left, worse_right = (others < 0).sum() + FEWEST / 2, (others > 0).sum() + FEWEST / 2
        wrong = decided * np.where(side > 0, worse_left, worse_right) / (worse_left + worse_right)
        # who writes winners down has one side for all of them
        turned = min(int((side[always] > 0).sum()), int((side[always] < 0).sum()))
        one_recorder = turned < _TURNED * always.sum()
        looks = _look(always, against, wrong, decided) if one_recorder else np.zeros(n, bool)
        return cls(decided, most, side, always, against, kept, looks)


def _look(always: Bools, against: Counts, wrong: Floats, decided: Counts) -> Bools:
    """Which of those who always keep to a side are wrong far less often than they would be if they went by it.

    By half at least, since their own answers move the scores; or by a standard error where several together clearly
    are, since several who go by the side would not be.
    """
    variance = wrong * (1.0 - wrong / np.maximum(decided, 1))
    looks = (against < _MAX_SHARE_OF_EXPECTED * wrong) & (against < wrong - _FAR_BELOW * np.sqrt(variance))
    of_all, expected = float(against[always].sum()), float(wrong[always].sum())
    together = of_all < min(
        _MAX_SHARE_OF_CROWD * expected, expected - _FAR_BELOW * float(variance[always].sum()) ** 0.5
    )
    if always.sum() >= _MIN_ANNOTATORS and together:
        looks |= against < wrong - np.sqrt(variance)
    return always & looks


def one_side(preferences: Preferences, scores: Floats) -> Flagged:
    """Return those who choose one side, also where the other item has the higher score."""
    of = OneSided.of(preferences, scores)
    places = np.flatnonzero(
        of.always & ~of.looks & (of.against >= _MIN_ANSWERS_AGAINST) & (of.kept >= _MIN_SHARE_AGAINST * of.against)
    )
    numbers = [
        f"{'left' if of.side[a] > 0 else 'right'} in {of.most[a]:,} of {of.decided[a]:,} answers, "
        f"also in {of.kept[a]:,} of {of.against[a]:,} where the other item scores higher"
        for a in places.tolist()
    ]
    return Flagged(places, numbers)


def all_ties(counts: Counts) -> Flagged:
    """Return those who tie nearly always where others do not; ``counts`` are those of :func:`outcome_counts`."""
    number, tied = counts.sum(axis=1), counts[:, 1]
    rest = (tied.sum() - tied) / np.maximum(number.sum() - number, 1)
    places = np.flatnonzero((number >= FEWEST) & (tied >= NEARLY_ALL * number) & (rest <= _MOST_CROWD_TIES))
    numbers = [f"{tied[a]:,} of {number[a]:,} answers, others tie in {percent(rest[a])}" for a in places.tolist()]
    return Flagged(places, numbers)
