"""Words that people grade with, in their order: agreement, quality, amount, frequency, thumbs, right and wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .directions import bad_word

_SCALES = (
    "strongly disagree, completely disagree, totally disagree, disagree strongly, disagree completely; disagree; "
    "somewhat disagree, slightly disagree, tend to disagree, mildly disagree, disagree somewhat, disagree slightly; "
    "neutral, neither agree nor disagree, neither, neither nor, undecided, unsure; "
    "somewhat agree, slightly agree, tend to agree, mildly agree, agree somewhat, agree slightly; agree; "
    "strongly agree, completely agree, totally agree, agree strongly, agree completely",
    "terrible, awful, horrible, very bad, very poor; bad, poor, below average; mediocre; "
    "fair, ok, okay, average, acceptable, medium, neutral, satisfactory, so so; good, above average; "
    "very good, great; excellent, perfect, outstanding",
    "very low; low; medium, moderate, mid, average, neutral; high; very high",
    "not at all, none; slightly, a little, a bit; somewhat, moderately, partially, partly; very, quite, mostly, "
    "very much; extremely, completely, fully",
    "never; rarely, seldom, almost never; sometimes, occasionally; often, frequently, usually; almost always; always",
    "very dissatisfied; dissatisfied; somewhat dissatisfied; neutral, neither satisfied nor dissatisfied; "
    "somewhat satisfied; satisfied; very satisfied",
    "very unlikely; unlikely; somewhat unlikely; neutral; somewhat likely; likely; very likely",
    "much worse, far worse, significantly worse; worse; slightly worse, somewhat worse, a bit worse; "
    "same, about the same, the same, equal, no change; slightly better, somewhat better, a bit better; better; "
    "much better, far better, significantly better",
    "worst; best",
    "irrelevant, not relevant, non relevant; related; relevant; highly relevant; perfectly relevant, perfect",
    "😡, 😠, 😢, 😭, ☹; 🙁, 😞, 😕; 😐, 😶; 🙂, 😊; 😀, 😃, 😄, 😍, 🤩",
    "stimme überhaupt nicht zu, stimme gar nicht zu, stimme absolut nicht zu, stimme ganz und gar nicht zu, "
    "lehne stark ab, lehne voll ab, lehne völlig ab; stimme nicht zu, lehne ab; "
    "stimme eher nicht zu, lehne eher ab; neutral, teils teils, weder noch, unentschieden, teilweise; "
    "stimme eher zu, stimme teilweise zu; stimme zu; "
    "stimme voll zu, stimme voll und ganz zu, stimme völlig zu, stimme vollkommen zu, stimme stark zu, "
    "stimme absolut zu, stimme sehr zu",
    "trifft überhaupt nicht zu, trifft gar nicht zu; trifft nicht zu; trifft eher nicht zu, trifft wenig zu; "
    "teils teils, neutral, weder noch, unentschieden, trifft teilweise zu; trifft eher zu; trifft zu; "
    "trifft voll zu, trifft voll und ganz zu, trifft völlig zu, trifft vollkommen zu",
    "sehr schlecht, ungenügend; schlecht, mangelhaft; mittel, mittelmäßig, neutral, ausreichend, geht so; "
    "befriedigend; gut; sehr gut; ausgezeichnet, hervorragend, perfekt",
    "sehr unzufrieden; unzufrieden; eher unzufrieden; neutral, teils teils, weder noch; eher zufrieden; zufrieden; "
    "sehr zufrieden",
    "nie, niemals; selten, fast nie; manchmal, gelegentlich, ab und zu; oft, häufig, meistens; fast immer; immer",
    "gar nicht, überhaupt nicht; kaum, wenig; etwas, teilweise, mittelmäßig; ziemlich, überwiegend; sehr; "
    "äußerst, völlig, voll und ganz",
    "sehr niedrig, sehr gering; niedrig, gering; mittel; hoch; sehr hoch",
)
"""Levels of a scale worst first, divided by ``;``; words of the same meaning by ``,``."""

_CODES = (
    "incorrect, wrong; partially correct, partly correct, partial; correct, right",
    "i; p; c",
    "false, f; true, t",
    "thumbs down, thumbsdown, thumb down, dislike, downvote, downvoted, down, 👎; "
    "thumbs up, thumbsup, thumb up, like, upvote, upvoted, up, 👍",
    "❌, ✗, ✘, ✖; ✅, ✓, ✔, ☑",
    "fail, failed, failure; pass, passed, success",
    "lose, loss, lost, loses; tie, draw, tied; win, won, wins",
    "reject, rejected; revise, major revision; minor revision, borderline; accept, accepted, approve, approved",
    "hallucinated, hallucination, unfaithful; factual, faithful, grounded",
    "falsch; teilweise richtig, teilweise korrekt; richtig, korrekt",
    "daumen runter, daumen nach unten; daumen hoch, daumen rauf, daumen nach oben",
    "nicht bestanden, durchgefallen; bestanden",
)
"""The same of what was found, or clicked, which is one of two or three."""

_ANSWERS = (
    "no, n; maybe, unsure, partly, partially, somewhat; yes, y",
    "nein; vielleicht, teilweise, unsicher; ja",
)
"""The same of answers, which are grades in a table of grades and classes in a tool for labels."""

_SORTS = (
    "very negative; negative; neutral; positive; very positive",
    "sehr negativ; negativ; neutral; positiv; sehr positiv",
    "small; medium; large",
    "klein; mittel; groß",
)
"""Words that have an order and may as well be classes, of which none is the best."""

_DEGREES = (
    "not at all, not, gar nicht, überhaupt nicht, nicht; hardly, barely, kaum; "
    "slightly, a little, a bit, marginally, minimally, etwas, wenig; "
    "somewhat, partially, partly, moderately, teilweise, mäßig, mittelmäßig, weder noch; "
    "fairly, mostly, quite, rather, reasonably, ziemlich, überwiegend, eher; ; "
    "very, highly, strongly, sehr; extremely, completely, perfectly, totally, fully, exceptionally, absolutely, "
    "äußerst, völlig, vollkommen, voll"
)
"""What stands before one word that all levels have in common, least first; the word alone is among them."""

_NEGATIONS = ("un", "in", "ir", "im", "il", "dis", "non ", "non", "nicht ", "no ", "no longer ", "ill")
_LETTER, _FEWEST_LETTERS = re.compile(r"[A-F][+-]?"), 3
"""Marks of schools, of which A is the best; two letters may be anything."""

_STARS = re.compile(r"[⭐★☆✩✭🌟]+")
_SHADES = re.compile("[\ufe0f\u200d\U0001f3fb-\U0001f3ff]")
"""What makes an emoji another picture of the same meaning."""


def _places(scale: str) -> dict[str, int]:
    """Each word of a scale with the place of its level."""
    return {word.strip(): place for place, words in enumerate(scale.split(";")) for word in words.split(",")}


_PLACES = [
    (_places(scale), kind)
    for kind, scales in (("grades", _SCALES), ("codes", _CODES), ("answers", _ANSWERS), ("sorts", _SORTS))
    for scale in scales
]
_DEGREE_PLACES = _places(_DEGREES)


class Order(NamedTuple):
    """The order of words, worst first."""

    levels: list[str]
    """Each level once, in one of its spellings."""
    kind: str
    """``"grades"``; ``"codes"``, right or wrong; ``"answers"``, yes and no; ``"sorts"`` that may as well be classes."""

    @property
    def sure(self) -> bool:
        """Whether the order is that of the grades in a table of grades."""
        return self.kind != "sorts"


def known_order(words: Iterable[str]) -> Order | None:
    """Return the order of words that are of one well-known scale, worst first; ``None`` where it is not known.

    It is not known either where two different words mean the same, as nobody knows which of them is the better one.

    Examples
    --------
    >>> known_order(["Agree", "Strongly disagree", "Neutral", "agree"]).levels
    ['Strongly disagree', 'Neutral', 'Agree']
    >>> known_order(["👍", "👎"]).levels, known_order(["C", "I"]).levels, known_order(["very useful", "useless"])
    (['👎', '👍'], ['I', 'C'], None)
    >>> known_order(["Somewhat helpful", "helpful", "Unhelpful", "extremely helpful"]).levels
    ['Unhelpful', 'Somewhat helpful', 'helpful', 'extremely helpful']
    >>> known_order(["cat", "dog"]) is known_order(["spam", "not spam"]) is None
    True
    """
    plain = {word: plain_word(word) for word in sorted(words)}
    texts = dict.fromkeys(plain.values())
    if len(texts) < 2:
        return None
    for places, kind in _PLACES:
        if texts.keys() <= places.keys():
            return _order(plain, {text: places[text] for text in texts}, kind)
    if all(_STARS.fullmatch(text) for text in texts):
        return _order(plain, {text: len(re.findall("[⭐★🌟]", text)) for text in texts}, "grades")
    if len(texts) >= _FEWEST_LETTERS and all(_LETTER.fullmatch(word.strip()) for word in plain):
        ends = {"-": -1, "": 0, "+": 1}
        return _order(plain, {text: -3 * ord(text[0]) + ends[text[1:]] for text in texts}, "sorts")
    degrees = _degrees(list(texts))
    # helpful and unhelpful are yes and no
    return None if degrees is None else _order(plain, degrees, "grades" if len(degrees) > 2 else "answers")


def _order(plain: dict[str, str], places: dict[str, int], kind: str) -> Order | None:
    """The words by their places, unless two of them have the same."""
    if len(set(places.values())) < len(places):
        return None
    spelt = {text: word.strip() for word, text in reversed(plain.items())}
    return Order([spelt[text] for text in sorted(places, key=lambda text: places[text])], kind)


def _degrees(texts: list[str]) -> dict[str, int] | None:
    """Places of words that are degrees of one thing, such as ``not helpful`` and ``very helpful``; of nothing bad."""
    for thing in {text.rsplit(" ", 1)[-1] for text in texts}:
        places: dict[str, int] = {}
        for text in texts:
            degree = text.removesuffix(thing).strip()
            if text in {f"{no}{thing}" for no in _NEGATIONS}:
                places[text] = 0
            elif text.endswith(thing) and degree in _DEGREE_PLACES and (not degree or text.endswith(f" {thing}")):
                places[text] = _DEGREE_PLACES[degree]
        if len(places) == len(texts):
            return None if bad_word(thing) else places
    return None


def plain_word(word: str) -> str:
    """Return a word as it is compared: in lower case, with single spaces, without colons, points and shades of emojis.

    Examples
    --------
    >>> plain_word(" Thumbs_Up"), plain_word("👍🏽")
    ('thumbs up', '👍')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _SHADES.sub("", word))
    return re.sub(r"[\s_\-/:.!]+", " ", parted.lower()).strip()
