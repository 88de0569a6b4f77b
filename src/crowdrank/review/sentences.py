"""Sentences about a crowd by their codes, read from ``sentences.toml``: flags of annotators, habits, findings."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from ..wording import counted, of_all, percent

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

SURE = 0.95
"""From this probability on an item is taken to be better than the next."""


@dataclass(frozen=True)
class Flag:
    """One thing that may be said about annotators.

    Parameters
    ----------
    code
        Its name in tables and files, which stays the same from version to version.
    one, several
        What one annotator does or is, and what several do or are; a verb comes first.
    severity
        ``"problem"``, ``"warning"``, ``"info"`` or ``"good"``, as of findings.
    advice
        What to do about it.
    numbers
        The numbers behind it, of one annotator.
    scale
        How to read the numbers behind it, in brackets after the words; empty where they need none.
    empty
        Whether the answers have little to do with the items, so a low quality is enough to leave them out.
    """

    code: str
    one: str
    several: str
    severity: str
    advice: str
    numbers: str = ""
    scale: str = ""
    empty: bool = False

    def words(self, number: int) -> str:
        """Return what this many annotators do."""
        return self.one if number == 1 else self.several

    def sentence(self, who: str, number: int) -> str:
        """Return that annotators, this many and named so, have the flag."""
        scale = f" ({self.scale})" if self.scale else ""
        return f"{who} {self.words(number)}{scale}"

    @property
    def noun(self) -> str:
        """What the annotator is or does without the verb to be, for legends and reasons."""
        return self.one.removeprefix("is ")


class _Sentence(Formatter):
    """Writes shares and numbers of things as the table says after the colon."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a number in words."""
        how, _, rest = format_spec.partition(" ")
        if how in ("percent", "belief"):
            return percent(value, of_belief=how == "belief")
        if how == "count":
            return counted(value, rest)
        if how == "of":
            total, _, word = rest.partition(" ")
            return of_all(value, int(total), word)
        return str(super().format_field(value, format_spec))


def fill(sentence: str, /, **numbers: object) -> str:
    """Return a sentence of the table with its numbers.

    Examples
    --------
    >>> fill("{n:of {total} item} {what} in {share:percent}", n=2, total=2, what="differ", share=0.999)
    'both items differ in over 99 %'
    """
    return _Sentence().vformat(sentence, (), numbers)


FLAGS = {code: Flag(code, **words) for code, words in _TABLE["flags"].items()}
"""Code -> flag, what speaks most against an annotator first."""

DOUBTS = ("unsure", "unmatched")
"""Flags of those who cannot be distinguished from guessing: too few judgments, or nobody to compare with."""

BY_QUALITY = ("reversed", "guessing", "poor")
"""Flags for a low quality, the worst first."""

EMPTY = tuple(flag.code for flag in FLAGS.values() if flag.empty)
"""Flags of those whose answers have little to do with the items."""

HABITS = {kind: (words["one"], words["several"]) for kind, words in _TABLE["habits"].items()}
"""Kind of finding about a covariate -> what one annotator does, and what several do."""

FINDINGS = {kind: (one["about"], one["severity"], one["sentence"]) for kind, one in _TABLE["findings"].items()}
"""Kind of finding, with a variant after the slash -> what it is about, its severity, and its sentence."""

MESSAGES: dict[str, str] = _TABLE["messages"]
"""Sentences of a diagnosis by code."""

ACTIONS: dict[str, str] = _TABLE["actions"]
"""What is suggested about annotators and what comes of it, by code."""

AUDIT: dict[str, str] = _TABLE["audit"]
"""What an audit says of programs, and what it cannot be made of, by code."""

NAME_WORDS: dict[str, list[str]] = _TABLE["names"]
"""Words in ids and groups of annotators that say what they are."""
