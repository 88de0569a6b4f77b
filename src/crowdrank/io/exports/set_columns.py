"""Columns of tables that show several items in each row: sets with a best and a worst item, ballots, places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...data.column_names import key_of, listed_sides, name_points

_BEST = ("best", "best_item", "best_option", "best_choice", "most", "most_preferred")
_WORST = ("worst", "worst_item", "worst_option", "worst_choice", "least", "least_preferred")
_ORDERS = ("ranking", "order", "ballot", "ranked", "vote", "preference_order")
_ORDER = re.compile(r"[^<>=]+(?:[>=][^<>=]+)+")
_PLACE_COLUMN = re.compile(
    r"(?i)(?:rank(?:ed)?|place|choice|position)[ _]?\d+|\d+(?:st|nd|rd|th)(?:[ _](?:choice|place))?"
)
_RANK_COLUMN = re.compile(r"(?P<stem>[a-z]+)(?P<number>\d+)rank|rank(?P<last>\d+)")
_PLACE = re.compile(r"(?i)(?:rank(?:ing)?|place|choice|position|#)?\s*(\d+)(?:st|nd|rd|th|\.)?\s*(?:choice|place)?")
"""Rows of a question that are places, such as 1, Rank 2 or 3rd choice."""


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
