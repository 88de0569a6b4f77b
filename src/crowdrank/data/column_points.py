"""How well each column of a table fits each role: points for its name and for what its cells hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from .column_facts import ColumnFacts, as_float
from .column_names import (
    AHEAD,
    LISTED,
    NUMBERED,
    OWN,
    UNKNOWN_ID,
    WEAK,
    is_bare_side,
    is_system,
    is_text_answer,
    key_of,
    listed_sides,
    name_points,
    part_role,
)
from .columns import FOREIGN, plain_name
from .winner_codes import codes_of

_FEW_ROWS = 5
_MOST_CODES = 12
_VERSIONS = ("version", "variant", "checkpoint")


class Seen(NamedTuple):
    """A column that may play a role, with its points."""

    points: int
    name: str


@dataclass(frozen=True)
class Wishes:
    """What the user has said that bears on which column is which."""

    annotators: bool = True
    """Whether to look for annotators."""
    coded: bool = False
    """Whether codes of winners were given, so that numbers may be winners."""
    nominal: bool = False
    """Whether grades may be any words."""
    swapped: bool = False
    """Whether it was said in which order answers were shown."""


class RolePoints:
    """The points of one table's columns in every role."""

    def __init__(self, names: list[str], given: dict[str, str], table: pl.DataFrame | None, wishes: Wishes) -> None:
        self.names = names
        self.given = given
        self.wishes = wishes
        self.facts = {name: ColumnFacts(name, None if table is None else table[name]) for name in names}
        self.n = 0 if table is None else len(table)
        self.notes: list[str] = []
        self.kind: str | None = None

    def has_sides(self, *also: str) -> bool:
        """Return whether there are columns for left and right, and for further roles."""
        if "item" in self.given and not {"left", "right"} & self.given.keys():
            return False
        left, right = self.best("left"), self.best("right")
        return bool(left and right and left.name != right.name) and all(self.best(role) for role in also)

    def best(self, role: str) -> Seen | None:
        """Return the column with the most points in a role."""
        if role in self.given:
            return Seen(OWN, self.given[role])
        free = [seen for seen in self.candidates(role) if seen.name not in self.given.values()]
        return free[0] if free else None

    def candidates(self, role: str) -> list[Seen]:
        """Return the columns that may play a role, the likeliest first."""
        named = [(points, name) for name in self._columns_named(role) if (points := self._name_points(role, name))]
        own = sorted((name for points, name in named if points == OWN), key=lambda name: name != role)
        if own:
            # the house's own word needs no further sign
            rest = [Seen(points, name) for points, name in named if name != own[0]]
            return [Seen(OWN + AHEAD, own[0]), *sorted(rest, key=lambda columns: -columns.points)]
        alone = len(named) == 1 and named[0][0] >= LISTED and role != "winner"
        columns = [Seen(points if alone else points + self._signs(role, name, points), name) for points, name in named]
        columns = sorted((one for one in columns if one.points > 0), key=lambda one: -one.points)
        if role != "item" or len(columns) < 2 or columns[0].points - columns[1].points >= AHEAD:
            return columns
        return sorted(columns, key=self._item_order)

    def _columns_named(self, role: str) -> list[str]:
        """The columns with a name for a role, or else those with a word for it in a longer name."""
        apart = set(listed_sides(self.names)) if role in ("left", "right") else set()
        usable = [name for name in self.names if name not in apart and self._usable(name)]
        named = [name for name in usable if name_points(role, name)]
        if role == "query" and all(name_points(role, name) <= WEAK for name in named):
            # a document may be the query, where nothing is called one
            return [name for name in usable if part_role(name) == role] or named
        return named or [name for name in usable if part_role(name) == role]

    def _name_points(self, role: str, name: str) -> int:
        """Points of a name in a role; an answer is an item only where it is a text beside the grades of it."""
        points = name_points(role, name)
        if role == "item" and key_of(name) in _VERSIONS:
            # versions are compared where nothing else is
            return 0 if any(name_points(role, other) >= LISTED for other in self.names) else LISTED
        if role == "item" and is_text_answer(name) and not self._is_graded_text(name):
            return 0
        if role in ("left", "right") and is_bare_side(name) and self.facts[name].numbers:
            # marks of a first and a second test, shares of black and white
            return 0
        return points or UNKNOWN_ID

    def _is_graded_text(self, name: str) -> bool:
        """Whether a column holds texts, and another one their grades."""
        facts, grade = self.facts[name], self.best("grade")
        texts = facts.has_cells and not facts.numbers and not facts.truths and not facts.times
        return texts and (not facts.few_words or facts.all_different) and grade is not None and grade.name != name

    def _item_order(self, one: Seen) -> tuple[int, bool, bool, int]:
        """Key that sorts by points; of items that are even systems go first, then what is no query and differs most."""
        is_query = name_points("query", one.name) > 0
        return -one.points, is_query, not is_system(one.name), -self.facts[one.name].distinct

    def _usable(self, name: str) -> bool:
        """Whether a column has cells that may be an id or an answer."""
        return not self.facts[name].is_nested and (key_of(name) in FOREIGN or not self.facts[name].empty)

    def _signs(self, role: str, name: str, points: int) -> int:
        """Points that the cells of a column give it in a role."""
        facts = self.facts[name]
        if not facts.has_cells:
            return {"grade": 1, "annotator": 1, "winner": 3}.get(role, 0)
        if role == "annotator":
            return facts.has_repeats - 6 * (facts.all_different and self.n > _FEW_ROWS) - 6 * facts.times
        if role == "item":
            only = facts.one_value and self.n > 2
            # what is ranked, one row each, is different on every row
            rows = points == UNKNOWN_ID and self.n > _FEW_ROWS and facts.all_different and not self._is_ranked
            return -6 * only - 6 * rows
        if role == "grade":
            few = facts.few_words and not (facts.all_different and self.n > _FEW_ROWS)
            fits = facts.numbers or few or self.wishes.nominal
            return (1 if fits else -3) - 6 * (facts.times and not facts.numbers)
        return self._winner_signs(name) if role == "winner" else 0

    @cached_property
    def _is_ranked(self) -> bool:
        """Whether there are ranks and no grades."""
        return self.best("rank") is not None and self.best("grade") is None

    def _winner_signs(self, name: str) -> int:
        """Points that the cells of a column give it as the winner."""
        facts, texts = self.facts[name], set(self.facts[name].sample)
        if self.wishes.coded and len(texts) <= _MOST_CODES:
            return 3
        if texts <= codes_of(sorted(texts)).keys() or texts <= self._items or self._name_sides(texts):
            return 3
        if not facts.numbers:
            return 3 if texts <= self._items | codes_of(sorted(texts)).keys() else 0
        values = {as_float(text) for text in texts}
        if -1.0 in values and values <= {-1.0, 0.0, 1.0} and key_of(name) not in NUMBERED:
            return 3
        return -1

    def _name_sides(self, texts: set[str]) -> bool:
        """Whether winners are given by the names of the two columns, or as ties."""
        sides = {plain_name(best.name) for role in ("left", "right") if (best := self.best(role))}
        ties = {text for text, code in codes_of(sorted(texts)).items() if code.outcome == 0}
        named = {plain_name(text) for text in texts - ties}
        return bool(named) and named <= sides

    @cached_property
    def _items(self) -> set[str]:
        """The ids on both sides."""
        sides = [best.name for role in ("left", "right") if (best := self.best(role))]
        columns = [self.facts[name].cells for name in sides]
        return {
            str(value).strip()
            for cells in columns if cells is not None and not cells.dtype.is_nested()
            for value in cells.cast(pl.String, strict=False).unique().drop_nulls()
        }  # fmt: skip

    def _same_rows(self, one: str, other: str) -> bool:
        """Whether two columns divide the rows in the same way."""
        first, second = self.facts[one], self.facts[other]
        if first.cells is None or second.cells is None or first.distinct != second.distinct:
            return False
        return pl.DataFrame({"a": first.cells, "b": second.cells}).n_unique() == first.distinct
