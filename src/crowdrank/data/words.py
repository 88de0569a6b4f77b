"""Words of names and cells: which way a name counts, scales in words, codes of winners, what is no judgment.

The words themselves stand in ``words.toml``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..wording import option

TABLES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""All word tables; those of names of columns are read by :mod:`~crowdrank.data.column_names`."""

_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: snake, camel and other cases, without numbers.

    Examples
    --------
    >>> words_of("WERScore_v2"), words_of("self-harm rating (0-2)")
    (['wer', 'score', 'v'], ['self', 'harm', 'rating'])
    """
    return re.findall(r"[^\W\d_]+", _PARTS.sub(" ", name).lower())


@cache
def _bad_words() -> re.Pattern[str]:
    """Pattern of the words for what nobody wants more of."""
    words = {part: "|".join(text.split()) for part, text in TABLES["bad"].items()}
    around = f"(?:{words['around']})?"
    return re.compile(
        rf"{around}(?:(?:{words['beginnings']})(?!\w*less)\w*"
        rf"|(?:{words['short']})(?:{words['endings']})?{around}|(?:{words['whole']}|{words['falling']}){around})"
    )


@cache
def _directions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of names that say which way numbers count: by what a number means, or by what is better."""
    words = {part: "|".join(text.split()) for part, text in TABLES["direction"].items()}
    means, ends = r"_*(?:=|:|\(|-|is|ist|means)_*(?:the_)?", rf"(?:({words['best']})|({words['worst']}))"
    best_number = rf"(?<!\d)(\d+){means}{ends}(?![^\W_])"
    which = rf"(?:({words['smaller']})|({words['larger']}))"
    better = rf"(?<![^\W_]){which}[_-]*(?:=|:|is|are|ist|means)[_-]*(?:{words['good']})"
    return re.compile(best_number), re.compile(better)


def small_is_said_good(name: str) -> bool | None:
    """Return whether a name says that small numbers are the good ones; ``None`` where it says nothing of it.

    Examples
    --------
    >>> small_is_said_good("Rating (1 = best)"), small_is_said_good("grade: 1=worst, 5=best")
    (True, False)
    >>> small_is_said_good("loss (lower is better)"), small_is_said_good("score") is None
    (True, True)
    """
    text = re.sub(r"\s+", "_", name.lower())
    numbers, better = _directions()
    if match := better.search(text):
        return match[1] is not None
    # a scale begins with 0 or 1
    said = [(int(number) < 2) == bool(best) for number, best, _ in numbers.findall(text)]
    return said[0] if len(set(said)) == 1 else None


def bad_word(name: str) -> str | None:
    """Return the word of a name that says that small numbers may be the good ones, ``None`` where there is none.

    Examples
    --------
    >>> bad_word("error_score"), bad_word("meanToxicity"), bad_word("riskscore"), bad_word("harmlessness")
    ('error', 'toxicity', 'riskscore', None)
    """
    said = small_is_said_good(name)
    if said is not None:
        return name if said else None
    return next((word for word in words_of(name) if _bad_words().fullmatch(word)), None)


def which_direction(names: Iterable[str], levels: Sequence[str] | None = None) -> str | None:
    """Return the question which way grades count, where a name of what is graded has a word for something bad.

    Parameters
    ----------
    names
        What is graded, by all its names: the column, the metric, the question.
    levels
        Grades in words, worst first as far as the words alone tell.

    Examples
    --------
    >>> which_direction(["value", "toxicity"])
    "small numbers of 'toxicity' are likely the good ones: small_is_good=True; if large ones are: small_is_good=False"
    >>> which_direction(["harmful"], ["no", "yes"])
    "'harmful' may be something bad; if 'no' is the best grade: small_is_good=True; if 'yes' is: small_is_good=False"
    >>> which_direction(["quality"])
    """
    name = next((name for name in names if bad_word(name)), None)
    if name is None:
        return None
    small, large = (option("small_is_good", way) for way in (True, False))
    if levels is None:
        return f"small numbers of {name!r} are likely the good ones: {small}; if large ones are: {large}"
    ends = (levels[0], levels[-1])
    return f"{name!r} may be something bad; if {ends[0]!r} is the best grade: {small}; if {ends[1]!r} is: {large}"


def as_float(text: str) -> float | None:
    """Return text as a number, ``None`` where it is none.

    Examples
    --------
    >>> as_float(" 2.0 "), as_float("two")
    (2.0, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


_LETTER, _FEWEST_LETTERS, _MARK_ENDS = re.compile(r"[A-F][+-]?"), 3, {"-": -1, "": 0, "+": 1}
"""Marks of schools, of which A is the best; two letters may be anything."""

_STARS = re.compile(r"[⭐★☆✩✭🌟]+")
_SHADES = re.compile("[\ufe0f\u200d\U0001f3fb-\U0001f3ff]")
"""What makes an emoji another picture of the same meaning."""


def _places(scale: str) -> dict[str, int]:
    """Each word of a scale with the place of its level."""
    return {word.strip(): place for place, words in enumerate(scale.split(";")) for word in words.split(",")}


_PLACES = [(_places(scale), kind) for kind, scales in TABLES["scales"].items() for scale in scales]
_DEGREE_PLACES = _places(TABLES["degrees"]["scale"])


class Order(NamedTuple):
    """The order of words, worst first: each level once, in one of its spellings.

    The kind is ``"grades"``; ``"codes"``, right or wrong; ``"answers"``, yes and no; or ``"sorts"`` that may as well be
    classes.
    """

    levels: list[str]
    kind: str

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
    texts = list(dict.fromkeys(plain.values()))
    if len(texts) < 2:
        return None
    scale = next((scale for scale in _PLACES if scale[0].keys() >= set(texts)), None)
    if scale is not None:
        places, kind = {text: scale[0][text] for text in texts}, scale[1]
    elif all(_STARS.fullmatch(text) for text in texts):
        places, kind = {text: len(re.findall("[⭐★🌟]", text)) for text in texts}, "grades"
    elif len(texts) >= _FEWEST_LETTERS and all(_LETTER.fullmatch(word.strip()) for word in plain):
        places, kind = {text: -3 * ord(text[0]) + _MARK_ENDS[text[1:]] for text in texts}, "sorts"
    else:
        places = _degrees(texts)
        # helpful and unhelpful are yes and no
        kind = "grades" if len(places) > 2 else "answers"
    # two words that mean the same are in no order
    if len(set(places.values())) < len(texts):
        return None
    spelt = {text: word.strip() for word, text in reversed(plain.items())}
    return Order([spelt[text] for text in sorted(places, key=lambda text: places[text])], kind)


def _degrees(texts: list[str]) -> dict[str, int]:
    """Places of words that are degrees of one thing, such as ``not helpful`` and ``very helpful``; of nothing bad."""
    for thing in {text.rsplit(" ", 1)[-1] for text in texts}:
        places: dict[str, int] = {}
        for text in texts:
            degree = text.removesuffix(thing).strip()
            if text in {f"{no}{thing}" for no in TABLES["degrees"]["negations"]}:
                places[text] = 0
            elif text.endswith(thing) and degree in _DEGREE_PLACES and (not degree or text.endswith(f" {thing}")):
                places[text] = _DEGREE_PLACES[degree]
        if len(places) == len(texts):
            return {} if bad_word(thing) else places
    return {}


def plain_word(word: str) -> str:
    """Return a word as it is compared: in lower case, with single spaces, without colons, points and the like.

    Examples
    --------
    >>> plain_word(" Thumbs_Up"), plain_word("👍🏽")
    ('thumbs up', '👍')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", _SHADES.sub("", word))
    return re.sub(r"[\s_\-/:.,!]+", " ", parted.lower()).strip()


_WINNERS = TABLES["winners"]
_TIES, _LEFT, _RIGHT, _THINGS, _SLIGHTLY, _MUCH = (
    _WINNERS[name].split() for name in ("ties", "left", "right", "things", "slightly", "much")
)
_TIE = re.compile(
    r"(?:(?:they|both)_are_|it_s_a_|about_|roughly_|both_)?(?:the_|about_the_|a_)?(?:tie|same|equal|draw|equally_(?:good|bad))"
    r"|both_are_(?:good|bad)|neither_is_(?:good|better)|no_(?:clear_)?(?:preference|difference|winner)"
)
_ONE_SIDE = rf"(?:the_)?(?:(?P<thing>{'|'.join(_THINGS)})_?)?(?P<side>{'|'.join(_LEFT + _RIGHT)})"
_ONE_SIDE += rf"(?:_(?:one|{'|'.join(_THINGS)}))?"
_SIDE = re.compile(_ONE_SIDE)
_ADVERBS = dict.fromkeys(_SLIGHTLY, 1) | dict.fromkeys(_MUCH, 3)
"""How strong a preference in words is; one without any such word is between them."""

_PLAIN_STRENGTH = 2
_HOW = rf"(?:(?P<how>{'|'.join(_ADVERBS)})_)?"
_SENTENCES = (
    re.compile(rf"{_ONE_SIDE}_(?:is_|was_|)(?:the_)?{_HOW}(?:better|preferred|best|wins|winner)"),
    re.compile(rf"(?:i_)?{_HOW}prefer_{_ONE_SIDE}"),
)
_ARROW = re.compile(r"([ab])\s*(>{1,3}|<{1,3}|={1,2})\s*([ab])")
_OUTCOMES = dict.fromkeys(_LEFT, 1) | dict.fromkeys(_RIGHT, -1)


class Code(NamedTuple):
    """What a winner's code means: 1 left, -1 right, 0 a tie; with the strength where it tells one.

    ``how`` is the adverb of a preference in words, such as ``slightly``; empty where it has none.
    """

    outcome: int
    strength: int | None = None
    how: str | None = None


def code_of(text: str) -> Code | None:
    """Return what a text means as a winner, whatever the items are; ``None`` where it may be an id or a number.

    The letter C is a tie only beside A and B, which :func:`codes_of` looks for.

    Examples
    --------
    >>> [code_of(text)[:2] for text in ("[[A]]", "model_2", "first_item", "B>>A", "tie (bothbad)")]
    [(1, None), (-1, None), (1, None), (-1, 2), (0, None)]
    >>> code_of("1") is code_of("gpt-4") is None
    True
    """
    bare = _bare(text)
    if arrow := _ARROW.fullmatch(bare):
        first, sign, second = arrow.groups()
        if first == second:
            return None
        return Code(0, 0) if sign[0] == "=" else Code(1 if (sign[0] == ">") == (first == "a") else -1, len(sign))
    if bare in _WINNERS["games"]:
        return Code(_WINNERS["games"][bare])
    plain = re.sub(r"[\s.\-()/=]+", "_", bare).strip("_")
    if plain in _TIES or _TIE.fullmatch(plain):
        return Code(0)
    said = next((match for sentence in _SENTENCES if (match := sentence.fullmatch(plain))), None)
    if said is not None:
        return Code(_OUTCOMES[said["side"]], _ADVERBS.get(said["how"], _PLAIN_STRENGTH), said["how"] or "")
    side = _SIDE.fullmatch(plain)
    if side is None or (side["thing"] is None and side["side"] in ("1", "2")):
        return None
    return Code(_OUTCOMES[side["side"]])


def _bare(text: str) -> str:
    """A winner as it is compared: without brackets, in lower case."""
    return text.strip().strip("[]").strip().lower()


def codes_of(texts: list[str]) -> dict[str, Code]:
    """Return what those of the texts mean that are codes.

    Strengths in words are counted from 1 on; without any adverb among them there is no strength.

    Examples
    --------
    >>> codes_of(["A", "B", "C"])["C"].outcome, "C" in codes_of(["C", "D"])
    (0, False)
    >>> found = codes_of(["A is better", "B is much better", "About the same"])
    >>> [(code.outcome, code.strength) for code in found.values()]
    [(1, 1), (-1, 2), (0, None)]
    """
    codes = {text: code for text in texts if (code := code_of(text)) is not None}
    worded = {text: code for text, code in codes.items() if code.how is not None}
    levels = sorted({code.strength for code in worded.values() if code.strength is not None})
    told = any(code.how for code in worded.values())
    for text, code in worded.items():
        codes[text] = code._replace(strength=levels.index(code.strength) + 1 if told and code.strength else None)
    letters = {text: _bare(text) for text in texts}
    known = set(letters.values())
    if "c" in known and known & {"a", "b"} and known - set(_TIES) <= {"a", "b", "c"}:
        codes |= {text: Code(0) for text, letter in letters.items() if letter == "c"}
    return codes


_UNSUPPORTED: dict[str, dict[str, Any]] = TABLES["unsupported"]
_FIELDS = {kind: [set(fields.split()) for fields in facts["fields"]] for kind, facts in _UNSUPPORTED.items()}
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d{1,2}[/.]\d{1,2}[/.]\d{4}([, ].*)?")
_FEWEST_WORDS = 3
_MOSTLY = 0.9


def unsupported_kind(values: Iterable[Any]) -> str | None:
    """Return what kind of answers most values are that cannot be aggregated; ``None`` where they are none of these.

    Examples
    --------
    >>> unsupported_kind([[{"x": 1, "y": 2, "width": 3, "label": "car"}]]), unsupported_kind([[[0, 4, "PER"]]])
    ('regions', 'spans')
    >>> unsupported_kind(["2026-01-31"]), unsupported_kind(["it is good", "not so good"]), unsupported_kind(["good"])
    ('dates', 'texts', None)
    """
    filled = [value for value in values if value not in (None, "", [], {})]
    kinds = [_kind(value) for value in filled]
    texts = [value for value in filled if isinstance(value, str)]
    # texts are free where hardly two are the same, and phrases rather than names
    free = len(texts) == len(filled) > 1 and 2 * len(set(texts)) > len(texts)
    if free and sum(len(text.split()) >= _FEWEST_WORDS for text in texts) >= _MOSTLY * len(texts):
        kinds = [kind or "texts" for kind in kinds]
    return next((kind for kind in _UNSUPPORTED if filled and kinds.count(kind) >= _MOSTLY * len(kinds)), None)


def marked_columns(names: Iterable[str]) -> tuple[str, list[str]] | None:
    """Return what rows of a table mark, with the columns that say so: the corners of a box or the ends of a span.

    Examples
    --------
    >>> marked_columns(["image", "label", "xmin", "ymin", "xmax", "ymax"]), marked_columns(["item", "x", "grade"])
    (('regions', ['xmin', 'ymin']), None)
    """
    known = {name.strip().lower(): name for name in names}
    for kind in ("regions", "spans", "relations"):
        for fields in _FIELDS[kind]:
            if fields <= known.keys():
                return kind, [known[key] for key in known if key in fields]
    return None


def not_supported(what: str, kind: str, *, other: bool = True) -> str:
    """Return the sentence for answers that are not supported, with what to use; ``other`` may be questions to choose.

    Examples
    --------
    >>> not_supported("'when' holds", "dates", other=False)
    "'when' holds dates: not supported, as judgments are grades, classes, preferences and rankings; write a number, such as days since the first, to grade by it"
    """  # noqa: E501
    remedy = _UNSUPPORTED[kind]["remedy"].format(nominal=option("nominal", True))
    chosen = f"choose a question with grades, choices or rankings ({option('answer')}), or " if other else ""
    said = f"{what} {_UNSUPPORTED[kind]['words']}"
    return f"{said}: not supported, as judgments are grades, classes, preferences and rankings; {chosen}{remedy}"


def _kind(value: Any) -> str | None:
    """What one answer is."""
    if isinstance(value, str):
        if value[:1] in "[{" and len(value) > 1:
            try:
                return _kind(json.loads(value))
            except (ValueError, RecursionError):
                return None
        return "dates" if _DATE.fullmatch(value.strip()) else None
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(value) == 3 and len(numbers) == 2 and isinstance(value[2], str):
            return "spans"
        return next((kind for one in value if isinstance(one, list | Mapping) and (kind := _kind(one))), None)
    if not isinstance(value, Mapping):
        return None
    keys = {str(key).lower() for key, held in value.items() if held is not None}
    return next((kind for kind, forms in _FIELDS.items() if any(fields <= keys for fields in forms)), None)
