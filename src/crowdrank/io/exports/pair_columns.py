"""Two fields that hold the two sides of a comparison, the context they stand in, and what an answer says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...data.column_names import side_pairs
from ...data.words import Code, code_of
from ...errors import JudgmentError
from ...wording import either, option
from .cells import as_text

CONTEXTS = ("prompt", "question", "query", "instruction")
_FIRST = ("model", "system", "item", "id")
_SIDES = {1: "left", -1: "right", 0: "tie"}


def pair_columns(names: Iterable[str], prefix: str = "") -> tuple[str, str] | None:
    """Return the two names that differ only in a last a/b, 1/2, x/y or left/right; ``None`` where there are none.

    Of several such pairs one of models, systems, items or ids goes first; otherwise it is asked which is meant, with
    ``prefix`` before the names. Three or more names such as img1, img2 and img3 are a list and no pair.

    Examples
    --------
    >>> pair_columns(["prompt", "text1", "text2"]), pair_columns(["text_a", "text_b", "model_a", "model_b"])
    (('text1', 'text2'), ('model_a', 'model_b'))
    """
    pairs_of_names = [one for one in side_pairs(names) if not one[1].endswith("0")]
    for word in _FIRST:
        sure = [
            one for one in pairs_of_names if re.split(r"[^a-z]+", one[0].rstrip("_-. ").removesuffix("s"))[-1] == word
        ]
        if len(sure) == 1:
            return sure[0][1:]
    if len(pairs_of_names) > 1:
        pairs = either([f"{left!r} and {right!r}" for _, left, right in pairs_of_names])
        named = option("columns", {"left": prefix + pairs_of_names[0][1], "right": prefix + pairs_of_names[0][2]})
        raise JudgmentError(f"the two sides could be {pairs}; say which with {named}")
    return pairs_of_names[0][1:] if pairs_of_names else None


def context_of(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field that says what two items are compared for, with its value."""
    names = {name.lower(): name for name in record}
    for word in CONTEXTS:
        if word in names and (value := as_text(record[names[word]])) is not None:
            return names[word], value
    return None


def side(
    answer: Any,
    names: tuple[str, str] = ("", ""),
    items: tuple[str | None, str | None] = (None, None),
    codes: Mapping[str, Code] | None = None,
) -> str | None:
    """Return left, right or tie for an answer: one of the two items, the name of a column, or a code.

    Examples
    --------
    >>> side("A"), side("[[B]]"), side("LEFT"), side("B>>A"), side("image_b", ("image_a", "image_b")), side("5")
    ('left', 'right', 'left', 'right', 'right', None)
    """
    text = as_text(answer)
    if text is None:
        return None
    if text in items:
        return "left" if text == items[0] else "right"
    for name, which in zip(names, ("left", "right"), strict=True):
        if name and text.lower() == name.lower():
            return which
    code = code_of(text) if codes is None else codes.get(text)
    return None if code is None else _SIDES[code.outcome]


def verdict(text: Any) -> tuple[str, float] | None:
    """Return who won and how strongly by a verdict such as ``A>>B``; ``None`` where it is none.

    Examples
    --------
    >>> verdict("A>>B"), verdict("[[B>A]]"), verdict("A=B"), verdict("A<B"), verdict("A>A"), verdict("A")
    (('left', 2.0), ('right', 1.0), ('tie', 0.0), ('right', 1.0), None, None)
    """
    code = code_of(text) if isinstance(text, str) else None
    return None if code is None or code.strength is None else (_SIDES[code.outcome], float(code.strength))
