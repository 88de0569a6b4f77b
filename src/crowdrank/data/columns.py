"""Which column of a table holds what: names and cells give points, and what stays unclear is asked.

Every role has a row in one matrix of points, roles by columns. Which column is chosen, whether two are too near, and
what is refused are all read off it. No sentence shows who somebody is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..wording import all_at_once, either, first_few, in_python, option
from . import column_names
from .column_names import AHEAD, LISTED, NAMES, NEEDED, OPTIONAL, WEAK, is_aside, key_of, name_points, plain_name
from .presented import is_it_swapped, order_columns
from .words import Code, as_float, bad_word, codes_of, marked_columns, not_supported, unsupported_kind, words_of

_LEAST = {"annotator": 3, "grade": 3, "rank": 3, "item": 2, "query": 2, "left": 2, "right": 2, "winner": 5}
"""Points that a column must have in a role."""

_FEW_ROWS = 5
_MOST_CODED_VALUES = 12
_MOST_CODES = 4
"""Most different numbers that may be codes of left, right and ties; more are a scale."""

_MOST_SHOWN = 12
_MOST_CANDIDATES = 4
_FEWEST_RANKS = 3
_LOOKED_AT = 100
_LARGEST_RATING = 10
"""Ratings mostly go up to 5, 7 or 10; ages, years and percentages beyond."""


_NO = ("0", "0.0", "false", "no", "f", "n")


@dataclass(frozen=True)
class Wishes:
    """What the user has said that bears on which column is which.

    Parameters
    ----------
    annotators
        Whether to look for annotators.
    coded
        Whether codes of winners were given, so that numbers may be winners.
    nominal
        Whether grades may be any words.
    swapped
        Whether it was said in which order answers were shown.
    """

    annotators: bool = True
    coded: bool = False
    nominal: bool = False
    swapped: bool = False


@dataclass(frozen=True)
class Understood:
    """What a table's columns were taken for; judgments are made of it without looking at the columns again.

    Parameters
    ----------
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column of the table.
    ignored
        The columns that are not used.
    notes
        What is to be known about it beside, in sentences.
    table
        The table, unless only its names were given.
    """

    kind: str
    columns: dict[str, str]
    ignored: tuple[str, ...]
    notes: tuple[str, ...] = ()
    table: pl.DataFrame | None = field(default=None, repr=False, compare=False)

    def sentence(self) -> str:
        """Say what was understood, in one line."""
        parts = [word if word == name else f"{word} = {name!r}" for word, name in self.columns.items()]
        left_out = f"; not used: {', '.join(map(repr, self.ignored))}" if self.ignored else ""
        sides = "; which item was shown on which side is not known" if "loser" in self.columns else ""
        return f"read as {self.kind}s: {', '.join(parts)}{left_out}{sides}"


def understand(
    table: pl.DataFrame | Iterable[str],
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    wishes: Wishes | None = None,
) -> Understood:
    """Return the kind of judgment a table holds and the column for each house word.

    Parameters
    ----------
    table
        The table, or its column names only.
    kind
        ``"grade"``, ``"preference"`` or ``"ranking"``; ``None`` tells it from the columns.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for names that are not understood by themselves.
    wishes
        What else the user said.

    Examples
    --------
    >>> understand(["task", "worker", "label"]).sentence()
    "read as grades: item = 'task', grade = 'label', annotator = 'worker'"
    >>> understand({"model_a": ["x", "y"], "model_b": ["y", "z"], "score": [-2, 2]})
    Traceback (most recent call last):
    ...
    crowdrank.errors.JudgmentError: pairs of 'model_a' and 'model_b', but no winner: 'score' holds -2, 2; if ...
    """
    if isinstance(table, Mapping):
        table = pl.DataFrame(table)
    cells = table if isinstance(table, pl.DataFrame) else None
    names = [str(name) for name in (table if cells is None else cells.columns)]
    column_names.check_names(names)
    given = column_names.given_columns(names, columns or {})
    column_names.check_words({}, kind)
    return _Roles(names, given, cells, wishes or Wishes()).understand(kind)


def side_columns(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the columns of the left and the right items; ``None`` where there are none, or it is unclear which.

    Examples
    --------
    >>> side_columns(pl.DataFrame({"model_a": ["x"], "model_b": ["y"], "note": [""]}), {})
    ('model_a', 'model_b')
    """
    known = {word: name for word, name in columns.items() if name in table.columns}
    return _Roles(table.columns, known, table, Wishes(swapped=True)).sides()


def with_loser(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table with a winner column, where two sides stand beside the one that lost and nothing else is said.

    Examples
    --------
    >>> table = pl.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "z"], "worse": ["model_b", "y"]})
    >>> made, columns = with_loser(table, {"loser": "worse"})
    >>> made[columns["winner"]].to_list()
    ['left', 'right']
    """
    name = columns.get("loser")
    if name is None or name not in table.columns or "winner" in columns:
        return table, dict(columns)
    rest = {word: column for word, column in columns.items() if word != "loser"}
    sides = side_columns(table, rest)
    if sides is None or any(name_points("winner", one) >= LISTED for one in table.columns if one != name):
        return table, dict(columns)
    lost, left, right = (table[one].cast(pl.String, strict=False).str.strip_chars() for one in (name, *sides))
    values = lost.unique().drop_nulls().to_list()
    turned = {text: ("tie", "right", "left")[code.outcome] for text, code in codes_of(values).items()}
    for side, word in zip(sides, ("right", "left"), strict=True):
        turned |= {text: word for text in values if plain_name(text) == plain_name(side)}
    winner = pl.when(lost == left).then(pl.lit("right")).when(lost == right).then(pl.lit("left"))
    made = table.select(winner.otherwise(lost.replace(turned)).alias(f"other than {name}"))
    return table.hstack(made), {**rest, "winner": f"other than {name}"}


def role_candidates(table: pl.DataFrame, columns: Mapping[str, str], wishes: Wishes) -> dict[str, list[str]]:
    """Return the columns that may play each role of a table, the likeliest first; roles without any are left out.

    Examples
    --------
    >>> role_candidates(pl.DataFrame({"doc_id": [1, 2], "model": ["x", "y"], "acc": [0, 1]}), {}, Wishes())
    {'grade': ['acc'], 'item': ['model', 'doc_id']}
    """
    guess = _Roles(table.columns, dict(columns), table, wishes)
    candidates: dict[str, list[str]] = {}
    for role in (*(("left", "right", "winner") if guess.sides() else ("grade", "rank", "item")), "annotator", "query"):
        names = [columns[role]] if role in columns else list(guess.candidates(role))
        if role in ("annotator", "query") and role not in columns:
            taken = {names[0] for names in candidates.values() if len(names) == 1}
            names = [name for name in names if name not in taken]
        if role == "query":
            names = [name for name in names if name not in candidates.get("item", [])]
        if names:
            candidates[role] = names[:_MOST_CANDIDATES]
    return candidates


class _Roles:
    """The roles of one table's columns: points first, then what is chosen, refused and asked."""

    def __init__(self, names: list[str], given: dict[str, str], table: pl.DataFrame | None, wishes: Wishes) -> None:
        self.names = names
        self.given = given
        self.table = table
        self.wishes = wishes
        self.facts = {name: ColumnFacts(name, None if table is None else table[name]) for name in names}
        self.n = 0 if table is None else len(table)
        self.notes: list[str] = []
        self.kind: str | None = None
        self._points: dict[str, dict[str, int]] = {}

    def understand(self, kind: str | None) -> Understood:
        """Return what the table holds, or say what is unclear."""
        self.kind = kind
        by_winner = self._winner_and_loser() if kind in (None, "preference") else {}
        if by_winner and ("loser" in self.given or self.sides() is None or self.best("winner") is None):
            kind, columns = "preference", dict(by_winner)
        else:
            kind = kind or self._kind()
            if kind == "preference":
                columns = self._pick_all(NEEDED["preference"][:2], "preference")
                if len({"left", "right"} & columns.keys()) < 2:
                    raise JudgmentError(self._missing("preference", columns))
                winner = self._pick("winner", columns)
                texts = set() if winner is None else set(self.facts[winner].sample)
                numbers = texts and all(as_float(text) is not None for text in texts)
                meant = not numbers or self.wishes.coded or _are_signs(texts) or texts <= self._items
                if winner is None or not meant:
                    # none, or numbers of which nobody said what they mean
                    raise JudgmentError(self._no_winner(columns, winner))
                columns["winner"] = winner
            else:
                columns = self._item_and_answer(kind)
        # the columns that may be there as well
        columns |= {word: self.given[word] for word in OPTIONAL[kind] if word in self.given}
        for word in OPTIONAL[kind]:
            if word in columns or (word == "annotator" and not self.wishes.annotators):
                continue
            taken = {**self.given, **columns}
            picked = self._pick(word, taken) if word in ("annotator", "query") else self._column_by_name(word, taken)
            if picked is not None and not (word == "query" and self._is_attribute(picked, columns.get("item"))):
                columns[word] = picked
        if {"annotator", "grade"} <= columns.keys():
            people, grades = (self.facts[columns[word]].sample for word in ("annotator", "grade"))
            for mark in ";|":
                counts = [cell.count(mark) for cell in people]
                # the annotators of an item and their grades in one cell each
                if counts and min(counts) > 0 and counts == [cell.count(mark) for cell in grades]:
                    what = f"{columns['annotator']!r} and {columns['grade']!r} hold lists ({grades[0]!r})"
                    raise JudgmentError(f"{what}; write one row for each annotator and item")
        if kind == "preference" and not by_winner and not self.wishes.swapped:
            self._ask_order(columns)
        columns = {word: columns[word] for word in (*NEEDED[kind], "loser", "tie", *OPTIONAL[kind]) if word in columns}
        ignored = tuple(name for name in self.names if name not in columns.values())
        return Understood(kind, columns, ignored, tuple(self.notes), self.table)

    # the matrix of points --------------------------------------------------------------------------------------------

    def best(self, role: str) -> str | None:
        """Return the column with the most points in a role."""
        if role in self.given:
            return self.given[role]
        return next((name for name in self.candidates(role) if name not in self.given.values()), None)

    def sides(self) -> tuple[str, str] | None:
        """Return the columns of left and right; ``None`` where there are no two."""
        if "item" in self.given and not {"left", "right"} & self.given.keys():
            return None
        left, right = self.best("left"), self.best("right")
        return None if left is None or right is None or left == right else (left, right)

    def candidates(self, role: str) -> dict[str, int]:
        """Return the columns that may play a role with their points, the likeliest first; each row is made once.

        They are those with a name for the role, or else those with a word for it in a longer name.
        """
        if role in self._points:
            return self._points[role]
        apart = column_names.listed_sides(self.names) if role in ("left", "right") else ()
        usable = [name for name in self._usable if name not in apart]
        named = [name for name in usable if name_points(role, name)]
        # a document may be the query, where nothing is called one
        if not named or (role == "query" and all(name_points(role, name) <= WEAK for name in named)):
            named = [name for name in usable if column_names.part_role(name) == role] or named
        points = {name: number for name in named if (number := self._name_points(role, name))}
        own = [name for name, number in points.items() if number == column_names.OWN]
        if own:
            # the house's own word needs no further sign
            points[role if role in own else own[0]] += AHEAD
        elif len(points) != 1 or role == "winner" or max(points.values()) < LISTED:
            points = {name: number + self._signs(role, name, number) for name, number in points.items()}
        order = sorted((name for name in points if points[name] > 0), key=lambda name: -points[name])
        if role == "item" and len(order) > 1 and points[order[0]] - points[order[1]] < AHEAD:
            # of items that are even systems go first, then what is no query and differs most
            order.sort(key=lambda name: -self.facts[name].distinct)
            order.sort(key=lambda name: key_of(name).partition("_")[0] not in ("system", "model"))
            order.sort(key=lambda name: (-points[name], name_points("query", name) > 0))
        self._points[role] = {name: points[name] for name in order}
        return self._points[role]

    @cached_property
    def _usable(self) -> list[str]:
        """The columns that may play a role: those of single values, and of some unless the name is a known one."""
        plain = [name for name in self.names if not self.facts[name].is_nested]
        return [name for name in plain if key_of(name) in column_names.FOREIGN or not self.facts[name].empty]

    def _name_points(self, role: str, name: str) -> int:
        """Points of a name in a role, beside the other columns."""
        facts, key = self.facts[name], key_of(name)
        if role == "item" and key in NAMES["versions"]:
            # versions are compared where nothing else is
            return 0 if any(name_points(role, other) >= LISTED for other in self.names) else LISTED
        if role == "item" and key in NAMES["text_answers"]:
            # an answer is an item only where it is a text beside the grades of it
            text = facts.has_cells and not facts.numbers and not facts.truths and not facts.times
            varied = len(set(facts.sample)) > _FEW_WORDS or facts.all_different
            grade = self.best("grade") if text and varied else None
            if grade in (None, name):
                return 0
        if role in ("left", "right") and key in NAMES["bare_sides"] and facts.numbers:
            # marks of a first and a second test, shares of black and white
            return 0
        return name_points(role, name) or column_names.UNKNOWN_ID

    def _signs(self, role: str, name: str, points: int) -> int:
        """Points that the cells of a column give it in a role."""
        facts = self.facts[name]
        if not facts.has_cells:
            return {"grade": 1, "annotator": 1, "winner": 3}.get(role, 0)
        if role == "annotator":
            return facts.has_repeats - 6 * (facts.all_different and self.n > _FEW_ROWS) - 6 * facts.times
        if role == "item":
            rows = points == column_names.UNKNOWN_ID and self.n > _FEW_ROWS and facts.all_different
            # what is ranked, one row each, is different on every row
            ranked = rows and self.best("rank") is not None and self.best("grade") is None
            return -6 * (facts.one_value and self.n > 2) - 6 * (rows and not ranked)
        if role == "grade":
            few = len(set(facts.sample)) <= _FEW_WORDS and not (facts.all_different and self.n > _FEW_ROWS)
            fits = facts.numbers or few or self.wishes.nominal
            return (1 if fits else -3) - 6 * (facts.times and not facts.numbers)
        if role != "winner":
            return 0
        texts, codes = set(facts.sample), facts.codes
        named = {plain_name(text) for text in texts if text not in codes or codes[text].outcome}
        sides = {plain_name(side) for role in ("left", "right") if (side := self.best(role))}
        coded = (self.wishes.coded and len(texts) <= _MOST_CODED_VALUES) or texts <= codes.keys()
        if coded or texts <= self._items or (named and named <= sides):
            return 3
        if not facts.numbers:
            return 3 if texts <= self._items | codes.keys() else 0
        return 3 if _are_signs(texts) and key_of(name) not in NAMES["numbered"] else -1

    @cached_property
    def _items(self) -> set[str]:
        """The ids on both sides."""
        sides = [self.facts[best] for role in ("left", "right") if (best := self.best(role))]
        texts = [one.cells.cast(pl.String, strict=False).unique().drop_nulls() for one in sides if not one.is_nested]
        return {text.strip() for cells in texts for text in cells}

    # which kind, and the columns that it needs -----------------------------------------------------------------------

    def _kind(self) -> str:
        """The kind of the table: preferences where it has two sides, else grades or rankings."""
        if self.sides():
            return "preference"
        asked = [word for word in ("grade", "rank") if word in self.given]
        if len(asked) == 1:
            return "grade" if asked == ["grade"] else "ranking"
        if not asked:
            grade, rank = (self.candidates(role).get(self.best(role) or "", 0) for role in ("grade", "rank"))
            if not rank:
                return "grade"
            if grade < _LEAST["grade"]:
                return "ranking"
            if min(rank, grade) < LISTED or not self.candidates("item"):
                return "grade" if grade > rank else "ranking"
        what = "the table has both a grade and a rank column"
        raise JudgmentError(f"{what}; say which is meant with {option('kind', 'grade')} or {option('kind', 'ranking')}")

    def _winner_and_loser(self) -> dict[str, str]:
        """The columns of a table of winners and losers; empty where it is none."""
        plain = {plain_name(name): name for name in reversed(self.names)}
        for pair in column_names.BY_WINNER:
            names = dict(zip(("winner", "loser"), map(plain.get, pair), strict=True)) | self.given
            both = {word: name for word in ("winner", "loser") if (name := names[word]) is not None}
            if len(set(both.values())) == 2 and not any(self.facts[name].is_nested for name in both.values()):
                tie = self.given.get("tie") or self._column_by_name("tie", both)
                return {**both, "tie": tie} if tie is not None else both
        return {}

    def _item_and_answer(self, kind: str) -> dict[str, str]:
        """The columns of items and of their grades or ranks."""
        answer = "grade" if kind == "grade" else "rank"
        self._refuse_unlisted_sides(kind)
        marks = [name for name in self.names if key_of(name) in ("best", "worst") and self.facts[name].truths]
        if len(marks) == 2 and not {"item", answer} & self.given.keys():
            what = f"{marks[0]!r} and {marks[1]!r} mark one item of a set each, and neither is a grade"
            raise JudgmentError(f"{what}; write one row per set, with columns item1, item2, item3, ..., best and worst")
        logged = [name for name in self.names if key_of(name) in NAMES["clicks"]]
        clicks = next((name for name in logged if self.facts[name].truths), None)
        if kind == "ranking" and clicks is not None and not {"rank", "grade"} & self.given.keys():
            shown = self.best("rank") or "rank"
            said = f"a log of clicks ({clicks!r})? {shown!r} may be where an item was shown, which is not a rank"
            ways = f"if clicks are the judgments: {_assign(grade=clicks)}; if these are ranks: {_assign(rank=shown)}"
            raise JudgmentError(f"{said}; {ways}")
        # a column that can only be the item is none for the answer, and the other way round
        columns = self._pick_all((answer, "item"), kind)
        if kind == "grade":
            self._refuse_marks(columns.get("grade"))
        if len(columns) < 2:
            raise JudgmentError(self._missing(kind, columns))
        if kind == "grade":
            self._refuse_like_grades(columns)
            self._refuse_written_objects(columns["grade"])
        return columns

    def _refuse_written_objects(self, name: str) -> None:
        """Refuse grades that are objects written as text, with the paths of their short values."""
        sample = self.facts[name].sample
        if not sample or not all(cell[:1] == "{" for cell in sample):
            return
        if (kind := unsupported_kind(sample)) is not None:
            raise JudgmentError(not_supported(f"{name!r} holds", kind, other=False))
        try:
            held = json.loads(sample[0])
        except ValueError:
            return
        keys = [key for key, value in held.items() if isinstance(value, str | int | float)]
        more = f" (or {either([f'{name}.{key}' for key in keys[1:6]])})" if len(keys) > 1 else ""
        path = _assign(grade=f"{name}.{keys[0]}" if keys else ...)
        raise JudgmentError(f"{name!r} holds objects; write the path: {path}{more}")

    def _pick_all(self, roles: Sequence[str], kind: str) -> dict[str, str]:
        """The columns of some roles, one after the other, and what else was given that the kind needs."""
        columns = {word: self.given[word] for word in NEEDED[kind] if word in self.given}
        for role in roles:
            if (picked := self._pick(role, columns)) is not None:
                columns[role] = picked
        return columns

    def _pick(self, role: str, taken: Mapping[str, str]) -> str | None:
        """The column of a role, ``None`` where there is none; two that are near are refused."""
        if role in self.given:
            return self.given[role]
        points = {name: number for name, number in self.candidates(role).items() if name not in taken.values()}
        if not points:
            self._refuse_nested(role)
        names, numbers = list(points), [*points.values(), 0]
        if numbers[0] < _LEAST[role]:
            return None
        if numbers[0] - numbers[1] >= AHEAD or numbers[1] < min(_LEAST[role], WEAK + 1):
            return names[0]
        if role == "query":
            one, other = (self.facts[name] for name in names[:2])
            # two columns that divide the rows in the same way
            if self.table is not None and count_cells([one.cells, other.cells]) == one.distinct == other.distinct:
                return names[0]
        stems = {re.sub(r"\d+", "", name) for name in names}
        if role == "rank" and len(names) >= _FEWEST_RANKS and len(stems) == 1 and stems.isdisjoint(names):
            what = f"each row ranks several items: {_quote(names)} hold a rank each"
            raise JudgmentError(f"{what}; write one row per item and rank, with the row's number as query")
        what = f"columns {names[0]!r} and {names[1]!r} could both be the {role}"
        raise JudgmentError(f"{what}; say which: {_assign(**{role: names[0]})}")

    def _column_by_name(self, word: str, taken: Mapping[str, str]) -> str | None:
        """The column with a name of a word that cells say little about; what cannot be used is left."""
        if word == "judgment" and "weight" not in map(key_of, self.names):
            return None
        free = [name for name in self.names if name_points(word, name) and name not in taken.values()]
        for name in sorted(free, key=lambda name: -name_points(word, name)):
            facts = self.facts[name]
            unusable = word in ("strength", "duration") and facts.has_cells and not facts.numbers
            if not (facts.is_nested or facts.empty or unusable):
                return name
        return None

    def _is_attribute(self, query: str, item: str | None) -> bool:
        """Whether a column with a weak name for the query is the same in all rows of each item."""
        if item is None or name_points("query", query) > WEAK or not self.facts[query].has_cells:
            return False
        facts = self.facts[item]
        if count_cells([self.facts[query].cells, facts.cells]) > facts.distinct or facts.all_different:
            return False
        self.notes.append(f"{query!r} is the same in all rows of each {item!r}, so it is not used as the query")
        return True

    def _ask_order(self, columns: Mapping[str, str]) -> None:
        """Ask whether winners are in the order that another column says answers were shown in; ids are in none."""
        sides, winner = (columns["left"], columns["right"]), columns["winner"]
        if self.table is None or not self.n or any(self.facts[name].is_nested for name in (*sides, winner)):
            return
        rest = [name for name in self.names if name not in columns.values()]
        order = next(iter(order_columns(self.table, rest, sides)), None)
        if order is None:
            return
        codes = self.facts[winner].codes
        ids = {text for text in self.facts[winner].sample if text not in codes or codes[text].outcome}
        if not ids <= self._items or any(text in codes for text in ids):
            raise JudgmentError(is_it_swapped(self.table, order, winner, sides))
        said = f"{order!r} is not used; if it says which of two was shown first"
        self.notes.append(f"{said}, {option('swapped', order)} tells who chooses by side")

    # tables that look like judgments and are something else ----------------------------------------------------------

    def _refuse_marks(self, grade: str | None) -> None:
        """Refuse rows that mark a part of an item, whose label is no grade of the item; numbers beside it may be."""
        marked = marked_columns(self.names)
        if marked is None or "grade" in self.given or self.wishes.nominal:
            return
        kind, fields = marked
        numbers = [self.facts[name].numbers for name in fields]
        drawn = kind == "relations" or (all(numbers) if len(fields) > 1 else not numbers[0])
        # start and end may be those of the work
        named = kind != "spans" or (grade is not None and key_of(grade) in NAMES["tags"])
        tagged = grade is None or (not self.facts[grade].numbers and named)
        if drawn and tagged:
            hold = f"{_quote(fields)} {'holds' if len(fields) == 1 else 'hold'}"
            raise JudgmentError(not_supported(hold, kind, other=False))

    def _refuse_unsupported(self, names: list[str]) -> None:
        """Refuse a table of which all that could be the grade is no judgment."""
        each = [self.facts[name] for name in names if self.facts[name].has_cells and not is_aside(name)]
        each = [facts for facts in each if not facts.one_value]
        cells = [facts.cells.head(_LOOKED_AT).to_list() if facts.is_nested else facts.sample for facts in each]
        kinds = [unsupported_kind(some) for some in cells]
        if kinds and None not in kinds:
            raise JudgmentError(not_supported(f"{each[0].name!r} holds", str(kinds[0]), other=False))

    def _refuse_nested(self, role: str) -> None:
        """Refuse a column that holds objects where its name says that it is the one."""
        for facts in self.facts.values() if role != "query" else ():
            name, cells = facts.name, facts.cells
            if not facts.is_nested:
                continue
            if name_points(role, name):
                # a list of names beside a list of graded objects says which they are and no more
                holds = cells.dtype != pl.List(pl.String)
            else:
                # entries that are graded or ranked; what a model predicts or suggests is nobody's judgment
                holds = role in ("grade", "rank") and key_of(name) not in NAMES["predicted"]
                holds = holds and any(n and _is_answer(path) for path, n in short_paths(name, cells).items())
            if holds:
                if role == "grade":
                    self._refuse_nested_pairs()
                    self._refuse_unsupported([name])
                raise JudgmentError(_nested_sentence(role, name, cells))

    def _refuse_nested_pairs(self) -> None:
        """Refuse objects that hold two sides and a winner, with the paths of all three."""
        held = [name for name in self.names if self.facts[name].is_nested]
        paths = [path for name in held for path in short_paths(name, self.facts[name].cells) if "[]" not in path]
        named = [*paths, *(name for name in self.names if name not in held)]
        winner = next((path for path in named if name_points("winner", path.rsplit(".", 1)[-1]) >= LISTED), None)
        for first, second in (("a", "b"), ("left", "right"), ("1", "2")):
            for left in paths if winner is not None else ():
                parts = left.split(".")
                right = ".".join(second if part == first else part for part in parts)
                if first in parts[1:] and right in paths and name_points("item", parts[-1]):
                    sides = _assign(left=left, right=right, winner=winner)
                    raise JudgmentError(f"{left!r} and {right!r} may be two sides, and {winner!r} the winner: {sides}")

    def _refuse_like_grades(self, columns: Mapping[str, str]) -> None:
        """Refuse a grade with a weak name beside columns that nothing is known of with numbers of the same range."""
        name = columns["grade"]
        facts = self.facts[name]
        if "grade" in self.given or name_points("grade", name) > WEAK or not facts.has_cells or not facts.numbers:
            return
        own, taken = facts.number_values, {*columns.values(), *self.given.values()}
        alike = []
        for other in self.names:
            unknown = not column_names.is_known(key_of(other)) or name_points("grade", other)
            fits = other not in taken and unknown and self._is_varied(other) and not self.facts[other].times
            values = self.facts[other].number_values if fits else []
            within = own and values and min(values) >= min(own) - 1 and max(values) <= max(own) + 1
            if other == name or within:
                alike.append(other)
        if len(alike) > 1:
            raise JudgmentError(_which_grade(alike))

    def _refuse_unlisted_sides(self, kind: str) -> None:
        """Refuse grades where two columns of texts may be sides, and no name says what is graded."""
        item = self.best("item")
        if self.kind == kind or "item" in self.given or (item and name_points("item", item) >= LISTED):
            return
        for _, left, right in column_names.side_pairs(self.names):
            both = (self.facts[left], self.facts[right])
            filled = all(facts.has_cells and not facts.is_nested and not facts.empty for facts in both)
            texts = filled and not any(facts.numbers or facts.truths for facts in both)
            if not texts or both[0].times or both[0].sample == both[1].sample:
                continue
            winner = next(iter(self.candidates("winner")), None)
            if winner is None and (scores := self._side_scores(left, right, named=False)) is not None:
                raise JudgmentError(scores)
            answer = winner or self.best("grade") or self.best("rank")
            says = f"{'a column' if answer is None else repr(answer)} says which is better"
            pairs = f"if {says}: {_assign(left=left, right=right, winner=answer or ...)}"
            rows = f"if each row is one item: {_assign(item=... if item in (None, winner) else item)}"
            raise JudgmentError(f"{left!r} and {right!r} may be two sides; {pairs}; {rows}")

    # what is unclear -------------------------------------------------------------------------------------------------

    def _is_varied(self, name: str) -> bool:
        """Whether a column holds different numbers that are neither aside of the judgments nor known to be right."""
        facts = self.facts[name]
        return facts.numbers and not facts.one_value and not is_aside(name) and not column_names.is_gold(name)

    def _unknown_numbers(self, columns: Mapping[str, str]) -> list[str]:
        """Columns of different numbers that are not taken and whose names say nothing."""
        free = [name for name in self.names if name not in columns.values() and not column_names.is_known(key_of(name))]
        return [name for name in free if self._is_varied(name)]

    def _side_scores(self, left: str, right: str, *, named: bool) -> str | None:
        """The question which way a score of either side counts; ``None`` where there are no such scores.

        ``named`` says that the sides are known already.
        """
        both = [pair for pair in column_names.side_scores(self.names) if all(self.facts[name].numbers for name in pair)]
        if not both:
            return None
        one, other = both[0]
        ways = [option("strength", {f"{one}-{other}": side}) for side in ("left", "right")]
        sides = "" if named else f"{_assign(left=left, right=right)} and "
        what = f"pairs of {left!r} and {right!r} with a score each, {one!r} and {other!r}"
        return f"{what}; if the larger one is better: {sides}{ways[0]}, else {ways[1]}"

    def _no_winner(self, columns: Mapping[str, str], picked: str | None) -> str:
        """Sentence for pairs of which it is not known who won."""
        left, right = columns["left"], columns["right"]
        free = [name for name in self.names if name not in columns.values()]
        rivals = [name for name in self.candidates("winner") if name in free]
        numbered = [name for name in rivals if self.facts[name].numbers]
        numbered += [name for name in self._unknown_numbers(columns) if not column_names.is_of_a_side(name)]
        name = picked or next((name for name in numbered if self.facts[name].sample), None)
        if name is not None:
            named = "" if name == picked or name in rivals else f"{_assign(winner=name)} and "
            return what_numbers_mean(name, self.facts[name].values, left, right, named)
        if (scores := self._side_scores(left, right, named=True)) is not None:
            return scores
        said = f"pairs of {left!r} and {right!r}, but no winner"
        for name in free:
            # a column of yes and no of one side, as a_wins is
            if self.facts[name].truths and not self.facts[name].one_value and column_names.is_of_a_side(name):
                yes, no = sorted(self.facts[name].values, key=lambda text: text.lower() in _NO)[:2]
                of_right = re.search(r"(?:_|^)(b|2|right)(?:_|$)", key_of(name)) is not None
                ends = ("right", "left") if of_right != (bad_word(name) is not None) else ("left", "right")
                codes = option("winner_codes", dict(zip((yes, no), ends, strict=True)))
                return f"{said}; if {name!r} says so: {_assign(winner=name)} and {codes}"
        naming = [name for name in free if self._names_winners(name)]
        if len(naming) == 1 and bad_word(naming[0]):
            lost, won = _assign(loser=naming[0]), _assign(winner=naming[0])
            return f"{said}; if {naming[0]!r} names the worse one: {lost}; if it names the better one: {won}"
        winner = _assign(winner=naming[0] if naming else ...)
        more = all_at_once(naming) if len(naming) > 1 else ""
        return f"{said}; say which column tells who won: {winner}{more} ({self._listing(free)})"

    def _names_winners(self, name: str) -> bool:
        """Whether all cells of a column are codes of winners, of both sides."""
        facts, texts = self.facts[name], set(self.facts[name].sample)
        codes = facts.codes if texts and not facts.numbers else {}
        if codes.keys() < texts <= self._items | codes.keys() and name_points("annotator", name) == 0:
            return len(texts - codes.keys()) > 1
        return texts <= codes.keys() and {1, -1} <= {code.outcome for code in codes.values()}

    def _missing(self, kind: str, columns: Mapping[str, str]) -> str:
        """Sentence saying what was understood and what is missing."""
        lacking = [word for word in NEEDED[kind] if word not in columns]
        varied = [name for name in self._unknown_numbers(columns) if self.facts[name].has_cells]
        numeric = [name for name in varied if not self.facts[name].all_different]
        if lacking == ["grade"] and len(numeric) > 1:
            row = columns["item"] if self.facts[columns["item"]].all_different else None
            return _which_grade(self._with_like_names(numeric), row=row)
        several = column_names.listed_sides(self.names)
        graded = all(self.facts[name].has_cells and self.facts[name].numbers for name in several)
        if "item" in lacking and not graded and any(name_points("left", name) for name in several):
            what = f"each row shows several items, {_quote(several)}, and only one or two of a row can be read"
            return f"{what}; write one row per item and rank, or one per pair and winner"
        if kind == "grade" and "item" in lacking and len(varied) > 1 and (said := self._survey_question(varied)):
            return said
        for word in lacking:
            self._refuse_nested(word)
        likeliest = {word: best for word in ("query", "annotator") if (best := self.best(word)) is not None}
        understood = {**columns, **{word: name for word, name in likeliest.items() if name not in columns.values()}}
        free = [name for name in self.names if name not in understood.values()]
        likely = [name for name in free if not is_aside(name) and not self.facts[name].is_nested]
        if lacking == ["grade"]:
            self._refuse_unsupported(free)
            # refuse several labels in a cell, or columns of yes and no, with the option that reads them
            held = [name for name in free if self.facts[name].has_cells and not is_aside(name)]
            flags = [name for name in held if self.facts[name].truths]
            lists = [name for name in held if self.facts[name].lists_labels]
            if len(flags) > 1 or len(lists) == 1:
                names, word = (flags, "columns") if len(flags) > 1 else (lists, "labels")
                one = in_python("cr.aggregate_labels with ")
                read = option(word, names if word == "columns" else names[0]) if one else option("several", names)
                what = f"{either(map(repr, names), 'and')} may hold several labels of one item"
                raise JudgmentError(f"{what}; read them so: {one}{read}")
            likely = numeric if len(numeric) == 1 else likely
            likely = [name for name in likely if not (self.facts[name].one_value or self.facts[name].long_text)]
        known = ", ".join(f"{word} = {name!r}" for word, name in understood.items()) or "nothing"
        has_cells = any(self.facts[name].has_cells for name in free)
        listed = self._listing(free) if has_cells else column_names.could_serve(self.names, columns)
        sole = likely[0] if len(likely) == len(lacking) == 1 else ...
        what = f"the table lacks {' and '.join(lacking)} to be read as {kind}s (understood: {known}"
        return f"{what}; {listed}); name the column with {_assign(**{lacking[0]: sole})}"

    def _survey_question(self, numeric: list[str]) -> str | None:
        """Sentence for columns of numbers that may be one per item; ``None`` where nothing says whose a row is."""
        person = column_names.person_column(self.names)
        whose = person or next((name for name in self.names if self.facts[name].times), None)
        if whose is None:
            return None
        ratings = [name for name in numeric if max(self.facts[name].number_values, default=0.0) <= _LARGEST_RATING]
        others = [name for name in numeric if name not in ratings]
        # numbers up to 10, or those that go beyond, whichever are more
        like = self._with_like_names(max(ratings, others, key=len))
        named = "" if person is not None else f" and {_assign(annotator=whose)}"
        what = f"{_quote(like)} may be one column per item, with {whose!r} in each row"
        return f"{what}; read them so: {option('wide', like)}{named}"

    def _with_like_names(self, names: list[str]) -> list[str]:
        """The columns of numbers called like these too, such as that of an annotator whose grades are all the same."""
        alike = next((test for test in (column_names.is_series, column_names.are_people) if test(names)), None)
        if alike is None:
            return names
        return [name for name in self.names if name in names or (self.facts[name].numbers and alike([*names, name]))]

    def _listing(self, names: list[str]) -> str:
        """Columns with their first value each, which never shows who somebody is."""
        each = []
        for name in names:
            first = self.facts[name].first
            shown = repr(first if len(first) <= 30 else f"{first[:27]}...") if first else "blank"
            each.append(f"{name[:60]!r} ({'not shown' if is_personal(name, first) else shown})")
        return f"columns that could serve: {first_few(each, shown=100)}" if each else "no column is left"


def _assign(**columns: Any) -> str:
    """The option that names columns; ``...`` stands for one to fill in."""
    return option("columns", columns)


def _quote(names: Sequence[str]) -> str:
    """The first eight names in quotes."""
    return either(map(repr, names[:8]), "and")


def _are_signs(texts: Iterable[str]) -> bool:
    """Whether texts are -1, 0 and 1, which say who won by themselves."""
    values = {as_float(text) for text in texts}
    return -1.0 in values and values <= {-1.0, 0.0, 1.0}


# what the cells of a column say --------------------------------------------------------------------------------------

_SAMPLE = 2_000
_MOST = 0.9
"""Share of the cells that must look like something for the column to count as that."""

_FEW_WORDS = 12
_LONG_TEXT = 60
_TIME = re.compile(r"\d:\d\d|\d{4}-\d\d?-\d\d?|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b")
_NUMBER = re.compile(
    r"[-+]?(\d+([.,]\d+)?|\.\d+)([eE][-+]?\d+)?(\s*/\s*\d+([.,]\d+)?|\s*%|\s*[-:]\s+\S.*|\s*\(.+\)|:\s*\S.*)?"
)
_TRUTHS = {"true", "false", "yes", "no", "0", "1", "0.0", "1.0"}


class ColumnFacts:
    """One column of a table, or of a table of which only the names are known; looked at as far as a question needs."""

    def __init__(self, name: str, cells: pl.Series | None = None) -> None:
        self.name = name
        self.cells = pl.Series(name, [], pl.Null) if cells is None else cells
        self.has_cells = len(self.cells) > 0
        """Whether there are cells to look at."""
        self.is_nested = self.cells.dtype.is_nested()
        """Whether the cells hold objects or lists."""

    @cached_property
    def sample(self) -> list[str]:
        """Filled cells of up to 2,000 rows that are spread evenly, as text."""
        if self.is_nested:
            return []
        some = self.cells.gather_every(max(len(self.cells) // _SAMPLE, 1))
        if some.dtype != pl.String:
            try:
                some = some.cast(pl.String, strict=False)
            except pl.exceptions.PolarsError:  # durations, categories of categories and their like
                some = pl.Series([str(cell) for cell in some.to_list()], dtype=pl.String)
        # of few cells python is quicker than a query each for casting, stripping and filtering
        return [text for cell in some.to_list() if cell is not None and (text := cell.strip())]

    @cached_property
    def values(self) -> list[str]:
        """The different cells of the sample, numbers by value and then text."""
        numbers = {text: as_float(text) for text in self.sample}
        return sorted(numbers, key=lambda text: (numbers[text] is None, numbers[text] or 0.0, text))

    @cached_property
    def number_values(self) -> list[float]:
        """The numbers of the sample."""
        return [value for value in map(as_float, self.sample) if value is not None]

    @cached_property
    def codes(self) -> dict[str, Code]:
        """What cells of the sample mean as winners, those that are codes of one."""
        return codes_of(sorted(set(self.sample)))

    @cached_property
    def distinct(self) -> int:
        """Number of different filled cells."""
        if self.is_nested:
            return 0
        cells = self.cells.drop_nulls()
        return int((cells.filter(cells != "") if cells.dtype == pl.String else cells).n_unique())

    @property
    def empty(self) -> bool:
        """Whether no cell is filled."""
        return self.has_cells and not self.is_nested and not self.sample and self.distinct == 0

    def _mostly(self, test: Any) -> bool:
        """Whether nearly all of the sample passes a test."""
        return bool(self.sample) and float(np.mean([test(text) is not None for text in self.sample])) > _MOST

    @cached_property
    def numbers(self) -> bool:
        """Whether the cells are numbers, or text that holds one such as ``4/5``."""
        return self.cells.dtype.is_numeric() or self._mostly(_NUMBER.fullmatch)

    @cached_property
    def times(self) -> bool:
        """Whether the cells are dates or times of day."""
        kind = self.cells.dtype
        return not kind.is_numeric() and (kind.is_temporal() or self._mostly(_TIME.search))

    @property
    def truths(self) -> bool:
        """Whether the cells are true and false, or 1 and 0."""
        told = bool(self.sample) and {text.lower() for text in self.sample} <= _TRUTHS
        return told or self.cells.dtype == pl.Boolean

    @cached_property
    def all_different(self) -> bool:
        """Whether no filled cell occurs twice."""
        once = len(set(self.sample)) == len(self.sample) and not self.is_nested
        return once and self.distinct == len(self.cells)

    @cached_property
    def one_value(self) -> bool:
        """Whether all filled cells are the same."""
        return len(set(self.sample)) < 2 and self.distinct == 1

    @property
    def has_repeats(self) -> bool:
        """Whether there are several values, each on two rows or more on average."""
        return 1 < self.distinct <= len(self.cells) / 2

    @property
    def long_text(self) -> bool:
        """Whether the cells are sentences rather than names."""
        return bool(self.sample) and sum(map(len, self.sample)) > _LONG_TEXT * len(self.sample)

    @property
    def lists_labels(self) -> bool:
        """Whether the cells are lists of the same few labels again and again."""
        parts = [part for text in self.sample for part in re.split(r"\s*[|;,]\s*", text.strip("[]"))]
        again = len(self.sample) < len(parts) >= 2 * len(set(parts)) and not self.long_text
        return again or self.cells.dtype == pl.List(pl.String)

    @property
    def first(self) -> str:
        """The first filled cell."""
        return "objects" if self.is_nested else next(iter(self.sample), "")


def count_cells(columns: Sequence[pl.Series]) -> int:
    """Return how many different rows some columns have.

    Examples
    --------
    >>> count_cells([pl.Series([1, 1, 2]), pl.Series(["a", "a", "a"])])
    2
    """
    table = pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)])
    return table.n_unique() if columns else 1


_PERSONAL = re.compile(r"e-?mail|(^|_)ip(_?addr.*)?$|phone|address", re.IGNORECASE)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+|\b\d{1,3}(\.\d{1,3}){3}\b")


def is_personal(name: str, value: str = "") -> bool:
    """Return whether a column, or a cell, may hold somebody's e-mail or address.

    Examples
    --------
    >>> is_personal("RecipientEmail"), is_personal("who", "ann@example.org"), is_personal("who", "ann")
    (True, True, False)
    """
    return bool(_PERSONAL.search(plain_name(name)) or _EMAIL.search(value))


# questions and refusals in words -------------------------------------------------------------------------------------


def what_numbers_mean(name: str, values: list[str], left: str, right: str, named: str = "") -> str:
    """Return the question what the numbers of a column say of two sides; ``named`` goes before codes of winners.

    Examples
    --------
    >>> what_numbers_mean("verdict", ["0", "1"], "model_a", "model_b")
    "'verdict' holds 0 and 1; say what they mean: winner_codes={1: 'left', 0: 'right'} or winner_codes={0: 'left', 1: 'right'}"
    """  # noqa: E501
    numbers = [number for value in values if (number := as_float(value)) is not None]
    if not numbers:
        each = option("winner_codes", dict.fromkeys(values[:_MOST_SHOWN], ...))
        return f"{name!r} holds {first_few(map(repr, values))}; say left, right or tie for each: {named}{each}"
    codes = list(dict.fromkeys(int(number) if number.is_integer() else number for number in numbers))
    plain = [f"{code:g}" for code in codes]
    shown = ", ".join(plain) if len(plain) <= _MOST_SHOWN else f"{', '.join(plain[:5])} ... {plain[-1]}"
    said = f"pairs of {left!r} and {right!r}, but no winner: {name!r} holds {shown}; if"
    if min(codes) < 0 or len(codes) > _MOST_SHOWN:
        to_left, to_right = (option("strength", {name: side}) for side in ("left", "right"))
        if "preference" in words_of(name):
            # a scale from much better on the left to much better on the right
            return f"{said} positive means {right!r} is better, as in HelpSteer: {to_right}; if {left!r} is: {to_left}"
        return f"{said} positive means {left!r} is better: {to_left}, else {to_right}"
    if len(codes) > _MOST_CODES or max(codes) - min(codes) > _MOST_CODES:
        middle = f"{(min(codes) + max(codes)) / 2:g}"
        # a scale mostly begins with the left one
        ways = [option("strength", {f"{name}-{middle}": side}) for side in ("right", "left")]
        return f"{said} more than {middle} means {right!r} is better: {ways[0]}, else {ways[1]}"
    # of two sides called 0 and 1 the number is the side
    flip_first = codes == [0, 1] and left.endswith("0") and right.endswith("1")
    # numbers of the worse side are not those of the better one
    flip_first ^= bad_word(name) is not None
    flips = (flip_first, not flip_first)
    first, second = (named + option("winner_codes", _sides_of_codes(codes, flip)) for flip in flips)
    return f"{name!r} holds {either(plain, 'and')}; say what they mean: {first} or {second}"


def _sides_of_codes(codes: list[Any], flip: bool) -> dict[Any, str]:
    """One of the two ways in which numbers may name sides."""
    sides = ("right", "left") if flip else ("left", "right")
    if codes in ([0, 1, 2], [1, 2, 3]):
        return {1: sides[0], 2: sides[1], 3 if codes[0] else 0: "tie"}
    if len(codes) == 1:
        return {codes[0]: sides[0]}
    half = len(codes) // 2
    # of 0 and 1 the 1 is the first guess for left, of 1 and 2 it is the 1
    low, high = sides[::-1] if codes[0] == 0 else sides
    meant = dict.fromkeys(codes[:half], low) | dict.fromkeys(codes[len(codes) - half :], high)
    meant |= {codes[half]: "tie"} if len(codes) % 2 else {}
    return dict(sorted(meant.items(), key=lambda pair: pair[1])) if len(codes) == 2 else meant


def _which_grade(names: list[str], *, row: str | None = None) -> str:
    """Return the sentence for columns of like numbers, one of which is the grade, or which are one per annotator.

    Numbered columns are taken for annotators too where each ``row`` has its own id, unless they are called like items.
    """
    listed, wide = _quote(names), option("wide", names)
    if row is not None and column_names.are_things(names):
        what = f"{listed} may be one column per item or per annotator; if each {row!r} is a person"
        return f"{what}: {wide} {_assign(annotator=row)}; if each is an item: {wide} {_assign(item=row)}"
    if column_names.are_people(names) or (row is not None and column_names.is_series(names)):
        return f"{listed} look like one column per annotator; read them so: {wide}"
    which = f"{_assign(grade=names[0])}{all_at_once(names)}"
    return f"{listed} hold numbers of the same range; which is the grade? {which}"


def _nested_sentence(role: str, name: str, cells: pl.Series) -> str:
    """Return the sentence for a column of objects, with paths that lead to short values.

    Examples
    --------
    >>> _nested_sentence("grade", "answers", pl.Series([[{"model": "x", "rank": 1}, {"model": "y", "rank": 2}]]))
    "'answers' holds objects; write the path: columns={'rank': 'answers[].rank', 'item': 'answers[].model'}"
    """
    short = short_paths(name, cells)
    paths = list(short)
    if not paths:
        return f"{name!r} holds objects; write the path with {_assign(**{role: ...})}"
    if role in ("grade", "rank"):
        # a number is the likelier answer, and one that is called a rank is no grade
        paths.sort(key=lambda path: (_path_points("annotator", path) > 0, not short[path], not _is_answer(path)))
    if role == "grade" and _path_points("rank", paths[0]):
        role = "rank"
    named = {role: paths[0]}
    # item and annotator among the entries of a list, each of which becomes a row, by their names
    for word in ("item", "annotator") if "[]" in paths[0] else ():
        best = max(paths[1:], key=lambda path: _path_points(word, path), default="")
        if word != role and _path_points(word, best) >= LISTED:
            named[word] = best
    others = [path for path in paths if path not in named.values()]
    more = f" (or {either(others)})" if others else ""
    return f"{name!r} holds objects; write the path: {_assign(**named)}{more}"


def _path_points(role: str, path: str) -> int:
    """Points of the last name of a path in a role."""
    return name_points(role, re.split(r"[.\]]+", path)[-1])


def _is_answer(path: str) -> bool:
    """Whether the last name of a path is one of a grade or a rank."""
    last = re.split(r"[.\]]+", path)[-1]
    return any(name_points(role, last) or column_names.part_role(last) == role for role in ("grade", "rank"))


def short_paths(name: str, cells: pl.Series) -> dict[str, bool]:
    """Return up to eight paths into a column of objects whose values are short, and whether those are numbers.

    A path through a list with several entries has ``[]`` in it, which reads each entry as a row of its own.

    Examples
    --------
    >>> short_paths("r", pl.Series([{"a": {"quality": 3}, "t": "x" * 200}]))
    {'r.a.quality': True}
    >>> short_paths("r", pl.Series([[{"by": "ann", "n": 1}, {"by": "bob", "n": 2}]]))
    {'r[].by': False, 'r[].n': True}
    """
    paths: dict[str, bool] = {}
    waiting: list[tuple[str, pl.Series]] = [(name, cells.head(50))]
    while waiting and len(paths) < 8:
        path, here = waiting.pop(0)
        if isinstance(here.dtype, pl.Struct):
            waiting[:0] = [(f"{path}.{field.name}", here.struct.field(field.name)) for field in here.dtype.fields]
        elif isinstance(here.dtype, pl.List):
            several = path == name and bool((here.list.len() > 1).any())
            entry = (f"{path}[]", here.explode()) if several else (f"{path}.0", here.list.get(0, null_on_oob=True))
            waiting.insert(0, entry)
        elif (facts := ColumnFacts(path, here)).sample and not facts.long_text:
            paths[path] = facts.numbers
    return paths
