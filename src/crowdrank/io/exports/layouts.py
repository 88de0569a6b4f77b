"""Columns of several items in a row: two sides of a comparison, sets with a best and a worst item, ballots, places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...data.column_names import key_of, listed_sides, name_points, side_pairs
from ...data.words import Code, code_of
from ...errors import JudgmentError
from ...wording import either, option
from .cells import as_text

CONTEXTS = ("prompt", "question", "query", "instruction")
_FIRST = ("model", "system", "item", "id")
_SIDES = {1: "left", -1: "right", 0: "tie"}
_BEST = ("best", "best_item", "best_option", "best_choice", "most", "most_preferred")
_WORST = ("worst", "worst_item", "worst_option", "worst_choice", "least", "least_preferred")
_ORDERS = ("ranking", "order", "ballot", "ranked", "vote", "preference_order")
_ORDER = re.compile(r"[^<>=]+(?:[>=][^<>=]+)+")
_PLACE_COLUMN = re.compile(
    r"(?i)(?:rank(?:ed)?|place|choice|position)[ _]?\d+|\d+(?:st|nd|rd|th)(?:[ _](?:choice|place))?"
)
_RANK_COLUMN = re.compile(r"(?P<stem>[a-z]+)(?P<number>\d+)rank|rank(?P<last>\d+)")
# rows of a question that are places, such as 1, Rank 2 or 3rd choice
_PLACE = re.compile(r"(?i)(?:rank(?:ing)?|place|choice|position|#)?\s*(\d+)(?:st|nd|rd|th|\.)?\s*(?:choice|place)?")


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


class Layout(NamedTuple):
    """The columns of a table of sets."""

    items: tuple[str, ...]
    best: str | None
    worst: str | None
    """``None``, as ``best``, where only the other one was asked for."""

    @property
    def answers(self) -> list[str]:
        """The columns that say the best and the worst."""
        return [name for name in (self.best, self.worst) if name is not None]


def layout_of(names: Iterable[str]) -> Layout | None:
    """Return which columns show items, and which say the best and the worst; ``None`` where it is no such table.

    Examples
    --------
    >>> layout_of(["Annotator", "Item1", "Item2", "Item3", "BestItem", "WorstItem"])
    Layout(items=('Item1', 'Item2', 'Item3'), best='BestItem', worst='WorstItem')
    >>> layout_of(["item1", "item2", "best", "worst"])
    """
    known = list(names)
    keys = {key_of(name): name for name in reversed(known)}
    best, worst = (next((keys[key] for key in wanted if key in keys), None) for wanted in (_BEST, _WORST))
    items = tuple(name for name in listed_sides(known) if name not in (best, worst))
    stems = {key_of(name).rstrip("0123456789abcdefgh_") for name in items}
    return Layout(items, best, worst) if (best or worst) and items and len(stems) == 1 else None


def place_columns(names: Iterable[str]) -> list[str]:
    """Return three or more columns that are called by places, such as 1st, 2nd and 3rd; none where there are fewer.

    Examples
    --------
    >>> place_columns(["voter", "1st choice", "2nd choice", "3rd choice"]), place_columns(["rank1", "rank2"])
    (['1st choice', '2nd choice', '3rd choice'], [])
    """
    known = list(names)
    places = [name for name in known if _PLACE_COLUMN.fullmatch(name.strip())]
    return places if len(places) > 2 and are_places(places) and not ranked_columns(known) else []


def ranked_columns(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return columns of items and of their ranks, three or more of each, such as system1Id with system1rank.

    Examples
    --------
    >>> ranked_columns(["item1", "item2", "item3", "rank1", "rank2", "rank3"])
    [('item1', 'rank1'), ('item2', 'rank2'), ('item3', 'rank3')]
    """
    known = {re.sub(r"[\s_]", "", name).lower(): name for name in names}
    pairs = []
    for squeezed, name in known.items():
        if match := _RANK_COLUMN.fullmatch(squeezed):
            stems = [match["stem"]] if match["stem"] else ["item", "system", "model", "option", "candidate"]
            wanted = [f"{stem}{match['number'] or match['last']}{end}" for stem in stems for end in ("id", "name", "")]
            pairs += [(known[item], name) for item in wanted if item in known][:1]
    return pairs if len(pairs) > 2 else []


def order_column(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """Return the column whose cells are orders such as x>y=z, with a name that says so."""
    if all(any(name_points(side, name) for name in names) for side in ("left", "right")):
        # A>B between two sides says which of them is better
        return None
    for place, name in enumerate(names):
        cells = [row[place] for row in rows if place < len(row) and row[place]]
        if key_of(name) in _ORDERS and cells and all(_ORDER.fullmatch(cell) and ">" in cell for cell in cells):
            return name
    return None


def are_places(names: Sequence[str]) -> bool:
    """Whether names are the places from 1 on, such as Rank 1, 2nd and 3rd choice."""
    numbers = [int(match[1]) for name in names if (match := _PLACE.fullmatch(name.replace("_", " ").strip()))]
    return sorted(numbers) == list(range(1, len(names) + 1))
