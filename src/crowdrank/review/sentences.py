"""The flags of annotators: code, words for one and for several, severity, what to do; the one place for these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """One thing that may be said about annotators.

    Parameters
    ----------
    code
        Its name in tables and files, which stays the same from version to version.
    singular, plural
        What one annotator does or is, and what several do or are; a verb comes first.
    severity
        ``"problem"``, ``"warning"``, ``"info"`` or ``"good"``, as of findings.
    remedy
        What to do about it; empty where nothing is.
    scale
        How to read the numbers behind it, in brackets after the words; empty where they need none.
    empty
        Whether the answers have little to do with the items, so a low quality is enough to leave them out.
    """

    code: str
    singular: str
    plural: str
    severity: str
    remedy: str = ""
    scale: str = ""
    empty: bool = False

    def words(self, number: int) -> str:
        """Return what this many annotators do."""
        return self.singular if number == 1 else self.plural

    @property
    def noun(self) -> str:
        """What the annotator is or does without the verb to be, for legends and reasons."""
        return self.singular.removeprefix("is ")


_UNMATCHED = "may be guessing: others agree too little, or judged too little of the same, to rule it out"

_ALL = (
    Flag(
        "reversed", "answers the wrong way round", "answer the wrong way round", "problem",
        "leave them out, or check that they understood the scale",
    ),
    Flag("guessing", "is no better than guessing", "are no better than guessing", "problem", "leave them out"),
    Flag(
        "poor", "is barely better than guessing", "are barely better than guessing", "warning",
        "look at their answers, or ask somebody else",
    ),
    Flag(
        "unsure", "judged too little to rule out guessing",
        "judged too little to rule out guessing", "info", "ask them for more judgments",
    ),
    Flag(
        "unmatched", _UNMATCHED, _UNMATCHED, "info",
        "ask others about the same items, or, where camps contradict each other, name the one to follow as trusted",
    ),
    Flag(
        "one_side", "chooses one side whatever the items", "choose one side whatever the items", "warning",
        "leave them out, or ask somebody else", empty=True,
    ),
    Flag(
        "always_ties", "ties nearly always", "tie nearly always", "warning",
        "leave them out, since such ties say nothing about the items", empty=True,
    ),
    Flag(
        "leans", "leans to one side", "lean to one side", "warning", "ask each pair in both orders",
        "position bias: +1 is always left, -1 always right",
    ),
    Flag(
        "flips", "often changes the answer when the items change sides",
        "often change the answer when the items change sides", "warning",
        "take a pair with two different answers as a tie",
    ),
    Flag(
        "circular", "answers in circles as often as guessing", "answer in circles as often as guessing", "warning",
        "leave them out", "guessing gives 25 %", empty=True,
    ),
    Flag(
        "one_grade", "gives one grade nearly always", "give one grade nearly always", "warning",
        "leave them out, or ask somebody else", empty=True,
    ),
    Flag(
        "copies", "makes the mistakes of another", "make the mistakes of others", "warning",
        "keep one of them, or give them a group and draw resamples by group",
    ),
    Flag(
        "better", "is better by the consensus without those left out",
        "are better by the consensus without those left out", "info", "look at their answers",
    ),
)  # fmt: skip

FLAGS = {flag.code: flag for flag in _ALL}
"""Code -> flag, what speaks most against an annotator first."""

DOUBTS = ("unsure", "unmatched")
"""Flags of those who cannot be distinguished from guessing: too few judgments, or nobody to compare with."""

BY_QUALITY = ("reversed", "guessing", "poor")
"""Flags for a low quality, the worst first."""

EMPTY = tuple(flag.code for flag in _ALL if flag.empty)
"""Flags of those whose answers have little to do with the items."""
