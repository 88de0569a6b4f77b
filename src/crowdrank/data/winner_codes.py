"""What a winner is called where it is not called by its id: left, A, [[B]], model_1, A>>B, tie."""

from __future__ import annotations

import re
from typing import NamedTuple

_TIES = {
    "tie", "ties", "tied", "same", "equal", "equally_good", "draw", "both", "neither", "both_good", "bothgood",
    "both_bad", "bothbad", "tie_bothbad", "tie_both_bad", "tie_bothgood", "tie_both_good", "no_preference",
    "gleich", "unentschieden", "egalite", "égalité", "empate",
}  # fmt: skip
_THINGS = (
    "model|response|option|system|answer|candidate|item|output|assistant|text|image|generator|summary|translation|"
    "choice|player|side|completion"
)
_TIE = re.compile(
    r"(?:(?:they|both)_are_|it_s_a_|about_|roughly_|both_)?(?:the_|about_the_|a_)?(?:tie|same|equal|draw|equally_(?:good|bad))"
    r"|both_are_(?:good|bad)|neither_is_(?:good|better)|no_(?:clear_)?(?:preference|difference|winner)"
)
_SIDES = "left|right|first|second|white|black|home|away|a|b|1|2|links|rechts|gauche|droite|izquierda|derecha"
_ONE_SIDE = rf"(?:the_)?(?:(?P<thing>{_THINGS})_?)?(?P<side>{_SIDES})"
_SIDE = re.compile(rf"{_ONE_SIDE}(?:_(?:one|{_THINGS}))?")
_ADVERBS = {
    **dict.fromkeys(("slightly", "somewhat", "marginally", "a_bit", "a_little", "weakly"), 1),
    **dict.fromkeys(("much", "far", "significantly", "strongly", "clearly", "definitely", "a_lot"), 3),
}
"""How strong a preference in words is; one without any such word is between them."""

_PLAIN_STRENGTH = 2
_HOW = rf"(?:(?P<how>{'|'.join(_ADVERBS)})_)?"
_SENTENCES = (
    re.compile(
        rf"{_ONE_SIDE}(?:_(?:one|{_THINGS}))?_(?:is_|was_|)(?:the_)?{_HOW}(?:better|preferred|best|wins|winner)"
    ),
    re.compile(rf"(?:i_)?{_HOW}prefer_{_ONE_SIDE}(?:_(?:one|{_THINGS}))?"),
)
_ARROW = re.compile(r"([ab])\s*(>{1,3}|<{1,3}|={1,2})\s*([ab])")
_OUTCOMES = {
    **dict.fromkeys(("left", "first", "white", "home", "a", "1", "links", "gauche", "izquierda"), 1),
    **dict.fromkeys(("right", "second", "black", "away", "b", "2", "rechts", "droite", "derecha"), -1),
}
_GAMES = {"1-0": 1, "0-1": -1, "1/2-1/2": 0, "½-½": 0, "0.5-0.5": 0}
"""Results of games, those of the left player first."""


class Code(NamedTuple):
    """What a winner's code means: 1 left, -1 right, 0 a tie; with the strength where it tells one."""

    outcome: int
    strength: int | None = None
    how: str | None = None
    """The adverb of a preference in words, such as ``slightly``; empty where it has none."""


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
    bare = text.strip().strip("[]").strip().lower()
    arrow = _ARROW.fullmatch(bare)
    if arrow:
        return _arrow(*arrow.groups())
    if bare in _GAMES:
        return Code(_GAMES[bare])
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
    codes = _with_levels({text: code for text in texts if (code := code_of(text)) is not None})
    letters = {text.strip().strip("[]").strip().lower() for text in texts}
    if "c" in letters and letters & {"a", "b"} and letters - _TIES <= {"a", "b", "c"}:
        codes |= {text: Code(0) for text in texts if text.strip().strip("[]").strip().lower() == "c"}
    return codes


def _with_levels(codes: dict[str, Code]) -> dict[str, Code]:
    """The codes with the strengths of preferences in words as 1, 2, ... where an adverb tells them apart."""
    worded = {text: code for text, code in codes.items() if code.how is not None}
    levels = sorted({code.strength for code in worded.values() if code.strength is not None})
    has_adverbs = any(code.how for code in worded.values())
    named = {
        text: code._replace(
            strength=levels.index(code.strength) + 1 if has_adverbs and code.strength is not None else None
        )
        for text, code in worded.items()
    }
    return codes | named


def _arrow(first: str, sign: str, second: str) -> Code | None:
    """The meaning of A>>B and its like."""
    if first == second:
        return None
    if sign[0] == "=":
        return Code(0, 0)
    wins = (sign[0] == ">") == (first == "a")
    return Code(1 if wins else -1, len(sign))
