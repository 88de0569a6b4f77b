"""Words that people grade with, in their order: agreement, quality, amount, frequency and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SCALES = (
    "strongly disagree, completely disagree, totally disagree; disagree; somewhat disagree, slightly disagree; "
    "neutral, neither agree nor disagree, neither, undecided; somewhat agree, slightly agree; agree; "
    "strongly agree, completely agree, totally agree",
    "terrible, awful, horrible, very bad, very poor; bad, poor; mediocre; fair, ok, okay, average, acceptable, medium, "
    "neutral, satisfactory; good; very good, great; excellent, perfect, outstanding",
    "very low; low; medium, moderate, mid; high; very high",
    "not at all, none; slightly, a little, a bit; somewhat, moderately; very, quite, mostly; extremely, completely",
    "never; rarely, seldom; sometimes, occasionally; often, frequently, usually; always",
    "not relevant, irrelevant, non relevant; marginally relevant, slightly relevant; partially relevant, "
    "somewhat relevant, partly relevant; relevant; highly relevant, very relevant; perfectly relevant",
    "very dissatisfied; dissatisfied; somewhat dissatisfied; neutral; somewhat satisfied; satisfied; very satisfied",
    "very unlikely; unlikely; neutral; likely; very likely",
    "very negative; negative; neutral; positive; very positive",
    "incorrect, wrong; partially correct, partly correct; correct, right",
    "no; maybe, unsure, partly; yes",
    "false; true",
    "thumbs down, dislike, downvote; thumbs up, like, upvote",
    "fail, failed; pass, passed",
    "small; medium; large",
    "sehr schlecht; schlecht; mittel, mittelmäßig; gut; sehr gut",
)
"""Levels of a scale worst first, divided by ``;``; words of the same meaning by ``,``."""

_LETTER, _FEWEST_LETTERS = re.compile(r"[A-F][+-]?"), 3
"""Marks of schools, of which A is the best; two letters may be anything."""

_PLACES = [
    {word.strip(): place for place, words in enumerate(scale.split(";")) for word in words.split(",")}
    for scale in _SCALES
]


def in_order(words: Iterable[str]) -> list[str] | None:
    """Return words of one well-known scale, worst first; ``None`` where they are none, or two mean the same.

    Examples
    --------
    >>> in_order(["Agree", "Strongly disagree", "Neutral"]), in_order(["cat", "dog"]), in_order(["good", "Bad", "fair"])
    (['Strongly disagree', 'Neutral', 'Agree'], None, ['Bad', 'fair', 'good'])
    """
    plain = {word: re.sub(r"[\s_\-]+", " ", word.strip().lower()) for word in words}
    if len(plain) >= _FEWEST_LETTERS and all(_LETTER.fullmatch(word.strip()) for word in plain):
        return sorted(plain, key=lambda word: (-ord(word.strip()[0]), {"-": -1, "+": 1}.get(word.strip()[1:], 0)))
    for places in _PLACES:
        known = {word: places[text] for word, text in plain.items() if text in places}
        if len(known) == len(plain) > 1 and len(set(known.values())) == len(known):
            return sorted(known, key=lambda word: known[word])
    return None
