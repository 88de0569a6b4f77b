"""Which column of a table holds what: names and cells give points, and what stays unclear is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..wording import either, first_few, option
from .column_names import (
    AHEAD,
    BY_WINNER,
    FOREIGN,
    LISTED,
    NEEDED,
    NUMBERED,
    OPTIONAL,
    OWN,
    UNKNOWN_ID,
    WEAK,
    Understood,
    are_people,
    are_things,
    check_names,
    check_words,
    could_serve,
    given_columns,
    is_aside,
    is_bare_side,
    is_gold,
    is_known,
    is_of_a_side,
    is_series,
    is_system,
    is_text_answer,
    key_of,
    listed_sides,
    name_points,
    part_role,
    person_column,
    plain_name,
    side_pairs,
    side_scores,
)
from .presented import is_it_swapped, order_columns
from .words import as_float, bad_word, codes_of, marked_columns, not_supported, unsupported_kind, words_of

_SAMPLE = 2_000
_MOST = 0.9
"""Share of the cells that must look like something for the column to count as that."""

_FEW_WORDS = 12
_LONG_TEXT = 60
_TIME = re.compile(r"\d:\d\d|\d{4}-\d\d?-\d\d?|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b")
_NUMBER = re.compile(
    r"[-+]?(\d+([.,]\d+)?|\.\d+)([eE][-+]?\d+)?(\s*/\s*\d+([.,]\d+)?|\s*%|\s*[-:]\s+\S.*|\s*\(.+\)|:\s*\S.*)?"
)
_TRUTHS = {"true", "false", "yes", "no"}


class ColumnFacts:
    """One column of a table, or of a table of which only the names are known."""

    def __init__(self, name: str, cells: pl.Series | None = None) -> None:
        self.name = name
        self.cells = cells

    @property
    def has_cells(self) -> bool:
        """Whether there are cells to look at."""
        return self.cells is not None and len(self.cells) > 0

    @property
    def is_nested(self) -> bool:
        """Whether the cells hold objects or lists."""
        return self.cells is not None and self.cells.dtype.is_nested()

    @cached_property
    def sample(self) -> list[str]:
        """Filled cells of up to 2,000 rows that are spread evenly, as text."""
        if self.cells is None or self.is_nested:
            return []
        step = max(len(self.cells) // _SAMPLE, 1)
        some = self.cells.gather_every(step)
        # of few cells python is quicker than a query each for casting, stripping and filtering
        texts = (some if some.dtype == pl.String else _as_text(some)).to_list()
        return [text for cell in texts if cell is not None and (text := cell.strip())]

    @cached_property
    def empty(self) -> bool:
        """Whether no cell is filled."""
        return self.has_cells and not self.is_nested and not self.sample and self.distinct == 0

    @cached_property
    def distinct(self) -> int:
        """Number of different filled cells."""
        if self.cells is None or self.is_nested:
            return 0
        cells = self.cells.drop_nulls()
        return int((cells.filter(cells != "") if cells.dtype == pl.String else cells).n_unique())

    @property
    def values(self) -> list[str]:
        """The different cells of the sample, numbers by value and then text."""
        return sorted(set(self.sample), key=_by_value)

    def _share(self, pattern: re.Pattern[str], *, whole: bool) -> float:
        """Share of the sample that is of a form."""
        test = pattern.fullmatch if whole else pattern.search
        return float(np.mean([test(text) is not None for text in self.sample])) if self.sample else 0.0

    @cached_property
    def numbers(self) -> bool:
        """Whether the cells are numbers, or text that holds one such as ``4/5``."""
        if self.cells is not None and self.cells.dtype.is_numeric():
            return True
        return self._share(_NUMBER, whole=True) > _MOST

    @cached_property
    def times(self) -> bool:
        """Whether the cells are dates or times of day."""
        if self.cells is not None and self.cells.dtype.is_temporal():
            return True
        return (
            not (self.cells is not None and self.cells.dtype.is_numeric()) and self._share(_TIME, whole=False) > _MOST
        )

    @property
    def n_sampled(self) -> int:
        """Number of different cells in the sample."""
        return len(set(self.sample))

    @property
    def few_words(self) -> bool:
        """Whether there are at most twelve different cells."""
        return self.n_sampled <= _FEW_WORDS

    @property
    def truths(self) -> bool:
        """Whether the cells are true and false, or 1 and 0."""
        if self.cells is not None and self.cells.dtype == pl.Boolean:
            return True
        return bool(self.sample) and {text.lower() for text in self.sample} <= _TRUTHS | {"0", "1", "0.0", "1.0"}

    @cached_property
    def all_different(self) -> bool:
        """Whether no filled cell occurs twice."""
        if len(set(self.sample)) < len(self.sample) or self.cells is None or self.is_nested:
            return False
        return self.distinct == len(self.cells)

    @cached_property
    def one_value(self) -> bool:
        """Whether all filled cells are the same."""
        return len(set(self.sample)) < 2 and self.distinct == 1

    @property
    def has_repeats(self) -> bool:
        """Whether there are several values, each on two rows or more on average."""
        return self.cells is not None and 1 < self.distinct <= len(self.cells) / 2

    @property
    def long_text(self) -> bool:
        """Whether the cells are sentences rather than names."""
        return bool(self.sample) and sum(map(len, self.sample)) > _LONG_TEXT * len(self.sample)

    @property
    def first(self) -> str:
        """The first filled cell."""
        if self.is_nested:
            return "objects"
        return self.sample[0] if self.sample else ""


def _as_text(cells: pl.Series) -> pl.Series:
    """Cells of any kind as text."""
    try:
        return cells.cast(pl.String, strict=False)
    except pl.exceptions.PolarsError:  # durations, categories of categories and their like
        return pl.Series([str(cell) for cell in cells.to_list()], dtype=pl.String)


def _by_value(text: str) -> tuple[bool, float, str]:
    """Key that sorts numbers by value before text."""
    number = as_float(text)
    return number is None, number or 0.0, text


def count_cells(columns: Sequence[pl.Series]) -> int:
    """Return how many different rows some columns have.

    Examples
    --------
    >>> count_cells([pl.Series([1, 1, 2]), pl.Series(["a", "a", "a"])])
    2
    """
    if not columns:
        return 1
    return pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)]).n_unique()


_MOST_SHOWN = 12
_MOST_CODE_VALUES = 4
"""Most different numbers that may be codes of left, right and ties; more are a scale."""


def what_numbers_mean(name: str, values: list[str], left: str, right: str) -> str:
    """Return the question what the numbers of a column say of two sides.

    Examples
    --------
    >>> what_numbers_mean("verdict", ["0", "1"], "model_a", "model_b")
    "'verdict' holds 0 and 1; say what they mean: winner_codes={1: 'left', 0: 'right'} or winner_codes={0: 'left', 1: 'right'}"
    """  # noqa: E501
    numbers = [as_float(value) for value in values]
    codes = [int(number) if number is not None and number.is_integer() else number or 0.0 for number in numbers]
    codes = list(dict.fromkeys(codes))
    plain = [f"{code:g}" for code in codes]
    if min(codes) < 0 or len(codes) > _MOST_SHOWN:
        to_left, to_right = (option("strength", {name: side}) for side in ("left", "right"))
        held = f"{name!r} holds {_shorten_values(plain)}"
        said = f"pairs of {left!r} and {right!r}, but no winner: {held}; if positive means"
        if "preference" in words_of(name):
            # a scale from much better on the left to much better on the right
            return f"{said} {right!r} is better, as in HelpSteer: {to_right}; if {left!r} is: {to_left}"
        return f"{said} {left!r} is better: {to_left}, else {to_right}"
    if len(codes) > _MOST_CODE_VALUES or max(codes) - min(codes) > _MOST_CODE_VALUES:
        middle = f"{(min(codes) + max(codes)) / 2:g}"
        # a scale mostly begins with the left one
        ways = [option("strength", {f"{name}-{middle}": side}) for side in ("right", "left")]
        return (
            f"pairs of {left!r} and {right!r}, but no winner: {name!r} holds {_shorten_values(plain)}; if more than "
            f"{middle} means {right!r} is better: {ways[0]}, else {ways[1]}"
        )
    # of two sides called 0 and 1 the number is the side
    flips = (True, False) if codes == [0, 1] and left.endswith("0") and right.endswith("1") else (False, True)
    first, second = (option("winner_codes", _meaning(codes, flip)) for flip in flips)
    return f"{name!r} holds {either(plain, 'and')}; say what they mean: {first} or {second}"


def is_it_a_flag(name: str, values: list[str], left: str, right: str) -> str:
    """Return the question whether a column of yes and no says that one side won.

    Examples
    --------
    >>> is_it_a_flag("a_wins", ["0", "1"], "model_a", "model_b")
    "pairs of 'model_a' and 'model_b', but no winner; if 'a_wins' says so: columns={'winner': 'a_wins'} and winner_codes={'1': 'left', '0': 'right'}"
    """  # noqa: E501
    first = re.search(r"(?:_|^)(b|2|right)(?:_|$)", key_of(name)) is None
    yes, no = sorted(values, key=lambda text: text.lower() in ("0", "0.0", "false", "no", "f", "n"))[:2]
    codes = {yes: "left" if first else "right", no: "right" if first else "left"}
    ways = f"{option('columns', {'winner': name})} and {option('winner_codes', codes)}"
    return f"pairs of {left!r} and {right!r}, but no winner; if {name!r} says so: {ways}"


def which_scores(left: str, right: str, scores: tuple[str, str], *, named: bool) -> str:
    """Return the question which way a score of either side counts; ``named`` says that the sides are known already.

    Examples
    --------
    >>> which_scores("model_a", "model_b", ("score_a", "score_b"), named=True)
    "pairs of 'model_a' and 'model_b' with a score each, 'score_a' and 'score_b'; if the larger one is better: strength={'score_a-score_b': 'left'}, else strength={'score_a-score_b': 'right'}"
    """  # noqa: E501
    ways = [option("strength", {f"{scores[0]}-{scores[1]}": side}) for side in ("left", "right")]
    sides = "" if named else f"{option('columns', {'left': left, 'right': right})} and "
    return (
        f"pairs of {left!r} and {right!r} with a score each, {scores[0]!r} and {scores[1]!r}; if the larger one is "
        f"better: {sides}{ways[0]}, else {ways[1]}"
    )


def _shorten_values(values: list[str]) -> str:
    """Values in a row, the middle of many left out."""
    return ", ".join(values) if len(values) <= _MOST_SHOWN else f"{', '.join(values[:5])} ... {values[-1]}"


def _meaning(codes: list[Any], flip: bool) -> dict[Any, str]:
    """One of the two ways in which numbers may name sides."""
    sides = ("right", "left") if flip else ("left", "right")
    if len(codes) == 2:
        # of 0 and 1 the 1 is the first guess for left, of 1 and 2 it is the 1
        order = codes[::-1] if codes[0] == 0 else codes
        order = order[::-1] if flip else order
        return dict(zip(order, ("left", "right"), strict=True))
    if len(codes) == 3 and codes == [0, 1, 2]:
        return {1: sides[0], 2: sides[1], 0: "tie"}
    if len(codes) == 3 and codes == [1, 2, 3]:
        return {1: sides[0], 2: sides[1], 3: "tie"}
    if len(codes) == 1:
        return {codes[0]: sides[0]}
    half = len(codes) // 2
    low, high = (sides[1], sides[0]) if codes[0] == 0 else sides
    middle = {codes[half]: "tie"} if len(codes) % 2 else {}
    return {**dict.fromkeys(codes[:half], low), **dict.fromkeys(codes[len(codes) - half :], high), **middle}


def which_grade(names: list[str], *, row: str | None = None) -> str:
    """Return the sentence for columns of like numbers, one of which is the grade, or which are one per annotator.

    Numbered columns are taken for annotators too where each ``row`` has its own id, unless they are called like items.
    """
    listed = either(map(repr, names[:8]), "and")
    if row is not None and are_things(names):
        ways = [f"{option('wide', names)} {option('columns', {word: row})}" for word in ("annotator", "item")]
        return (
            f"{listed} may be one column per item or per annotator; if each {row!r} is a person: {ways[0]}; if each is "
            f"an item: {ways[1]}"
        )
    if are_people(names) or (row is not None and is_series(names)):
        return f"{listed} look like one column per annotator; read them so: {option('wide', names)}"
    return f"{listed} hold numbers of the same range; which is the grade? {option('columns', {'grade': names[0]})}"


_FEWEST_RANKS = 3
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


def numbered_ranks(names: list[str]) -> str | None:
    """Return the sentence for columns with the rank of one of several items each; ``None`` where they are no such."""
    stems = {re.sub(r"\d+", "", name) for name in names}
    if len(names) < _FEWEST_RANKS or len(stems) > 1 or not all(re.search(r"\d", name) for name in names):
        return None
    return (
        f"each row ranks several items: {either(map(repr, names[:8]), 'and')} hold a rank each; write one row per item "
        "and rank, with the row's number as query"
    )


def json_sentence(name: str, sample: list[str]) -> str | None:
    """Return the sentence for grades that are objects written as text, with the paths of their short values.

    Examples
    --------
    >>> json_sentence("answers", ['{"quality": 3, "who": {"id": 7}}'])
    "'answers' holds objects; write the path: columns={'grade': 'answers.quality'}"
    >>> json_sentence("answers", ["3"])
    """
    if not sample or not all(cell[:1] == "{" for cell in sample):
        return None
    try:
        held = json.loads(sample[0])
    except ValueError:
        return None
    keys = [key for key, value in held.items() if isinstance(value, str | int | float)]
    more = f" (or {either([f'{name}.{key}' for key in keys[1:6]])})" if len(keys) > 1 else ""
    path = f"{name}.{keys[0]}" if keys else ...
    return f"{name!r} holds objects; write the path: {option('columns', {'grade': path})}{more}"


def shown_cell(facts: ColumnFacts) -> str:
    """The first cell of a column as it may be shown."""
    if is_personal(facts.name, facts.first):
        return "not shown"
    text = facts.first
    return "blank" if not text else repr(text if len(text) <= 30 else f"{text[:27]}...")


def two_sides(left: str, right: str, answer: str | None, item: str | None) -> str:
    """Return the question whether two columns are the sides of a comparison, where no listed name says so."""
    ways = option("columns", {"left": left, "right": right, "winner": answer or ...})
    says = "a column says" if answer is None else f"{answer!r} says"
    return (
        f"{left!r} and {right!r} may be two sides; if {says} which is better: {ways}; if each row is one item: "
        f"{option('columns', {'item': item or ...})}"
    )


def nested_sentence(role: str, name: str, cells: pl.Series | None) -> str:
    """Return the sentence for a column of objects, with paths that lead to short values.

    Examples
    --------
    >>> nested_sentence("grade", "answers", pl.Series([[{"model": "x", "rank": 1}, {"model": "y", "rank": 2}]]))
    "'answers' holds objects; write the path: columns={'rank': 'answers[].rank', 'item': 'answers[].model'}"
    """
    short = short_paths(name, cells)
    # a number is the likelier answer, and one that is called a rank is no grade
    answer = role in ("grade", "rank")
    paths = sorted(
        short,
        key=lambda path: (
            answer and name_points("annotator", _last_step(path)) > 0,
            answer and not short[path],
            answer and not _is_answer(path),
        ),
    )
    if role == "grade" and paths and name_points("rank", _last_step(paths[0])):
        role = "rank"
    if not paths:
        return f"{name!r} holds objects; write the path with {option('columns', {role: ...})}"
    named = {role: paths[0]} | (_roles_in_list(paths, role) if "[]" in paths[0] else {})
    others = [path for path in paths if path not in named.values()]
    more = f" (or {either(others)})" if others else ""
    return f"{name!r} holds objects; write the path: {option('columns', named)}{more}"


def holds_answers(name: str, cells: pl.Series | None) -> bool:
    """Return whether the objects of a column have a number that is called a grade or a rank."""
    return any(number and _is_answer(path) for path, number in short_paths(name, cells).items())


def is_list_of_names(cells: pl.Series | None) -> bool:
    """Return whether a column holds lists of texts."""
    return cells is not None and isinstance(cells.dtype, pl.List) and cells.dtype.inner == pl.String


def _last_step(path: str) -> str:
    """The last name of a path."""
    return re.split(r"[.\]]+", path)[-1]


def _is_answer(path: str) -> bool:
    """Whether the last name of a path is one of a grade or a rank."""
    last = _last_step(path)
    return bool(name_points("grade", last) or name_points("rank", last)) or part_role(last) in ("grade", "rank")


def _roles_in_list(paths: list[str], role: str) -> dict[str, str]:
    """Item and annotator among the entries of a list, each of which becomes a row, by their names."""
    wanted = [word for word in ("item", "annotator") if word != role]
    best = {word: max(paths[1:], key=lambda path: name_points(word, _last_step(path)), default="") for word in wanted}
    return {word: path for word, path in best.items() if path and name_points(word, _last_step(path)) >= LISTED}


def short_paths(name: str, cells: pl.Series | None, most: int = 8) -> dict[str, bool]:
    """Return up to eight paths into a column of objects whose values are short, and whether those are numbers.

    A path through a list with several entries has ``[]`` in it, which reads each entry as a row of its own.

    Examples
    --------
    >>> short_paths("r", pl.Series([{"a": {"quality": 3}, "t": "x" * 200}]))
    {'r.a.quality': True}
    >>> short_paths("r", pl.Series([[{"by": "ann", "n": 1}, {"by": "bob", "n": 2}]]))
    {'r[].by': False, 'r[].n': True}
    """
    if cells is None:
        return {}
    paths: dict[str, bool] = {}
    waiting: list[tuple[str, pl.Series]] = [(name, cells.head(50))]
    while waiting and len(paths) < most:
        path, here = waiting.pop(0)
        if isinstance(here.dtype, pl.Struct):
            waiting[:0] = [(f"{path}.{field.name}", here.struct.field(field.name)) for field in here.dtype.fields]
        elif isinstance(here.dtype, pl.List):
            several = path == name and bool((here.list.len() > 1).any())
            waiting.insert(
                0, (f"{path}[]", here.explode()) if several else (f"{path}.0", here.list.get(0, null_on_oob=True))
            )
        else:
            facts = ColumnFacts(path, here)
            if facts.sample and not facts.long_text:
                paths[path] = facts.numbers
    return paths


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


_LOOKED_AT = 100
_TAGS = ("label", "tag", "entity", "entity_type", "type", "class", "category")
_CLICKS = ("click", "clicked", "is_click", "is_clicked")


class ColumnRefusals(RolePoints):
    """Roles of columns, with what is refused whatever the points say."""

    def refuse_lists(self, columns: Mapping[str, str]) -> None:
        """Refuse cells that hold the annotators of an item and their grades as lists of the same length."""
        if not {"annotator", "grade"} <= columns.keys():
            return
        names = [columns["annotator"], columns["grade"]]
        cells = [self.facts[name].sample for name in names]
        for mark in ";|":
            counts = [[cell.count(mark) for cell in each] for each in cells]
            if counts[0] == counts[1] and counts[0] and min(counts[0]) > 0:
                raise JudgmentError(
                    f"{names[0]!r} and {names[1]!r} hold lists ({cells[1][0]!r}); write one row for each annotator and "
                    "item"
                )

    def refuse_clicks(self, kind: str) -> None:
        """Refuse a log of clicks, whose positions are those that items were shown at and nobody's ranks."""
        clicks = next((name for name in self.names if key_of(name) in _CLICKS and self.facts[name].truths), None)
        if clicks is not None and kind == "ranking" and not {"rank", "grade"} & self.given.keys():
            best = self.best("rank")
            shown = best.name if best is not None else "rank"
            raise JudgmentError(
                f"a log of clicks ({clicks!r})? {shown!r} may be where an item was shown, which is not a rank; if "
                f"clicks are the judgments: {option('columns', {'grade': clicks})}; if these are ranks: "
                f"{option('columns', {'rank': shown})}"
            )

    def refuse_marks(self, columns: Mapping[str, str]) -> None:
        """Refuse rows that mark a part of an item, whose label is no grade of the item; numbers beside it may be."""
        marked, grade = marked_columns(self.names), columns.get("grade")
        if marked is None or "grade" in self.given or self.wishes.nominal:
            return
        kind, fields = marked
        numbers = [self.facts[name].numbers for name in fields]
        drawn = kind == "relations" or (all(numbers) if len(fields) > 1 else not numbers[0])
        # start and end may be those of the work
        tagged = grade is None or (not self.facts[grade].numbers and (kind != "spans" or key_of(grade) in _TAGS))
        if drawn and tagged:
            hold = f"{either(map(repr, fields), 'and')} {'holds' if len(fields) == 1 else 'hold'}"
            raise JudgmentError(not_supported(hold, kind, other=False))

    def refuse_unsupported(self, names: list[str]) -> None:
        """Refuse a table of which all that could be the grade is no judgment."""
        held = {name: self.facts[name] for name in names if self.facts[name].has_cells and not is_aside(name)}
        kinds = {
            name: unsupported_kind(
                one.cells.head(_LOOKED_AT).to_list() if one.is_nested and one.cells is not None else one.sample
            )
            for name, one in held.items()
            if not one.one_value
        }
        if kinds and None not in kinds.values():
            name, kind = next(iter(kinds.items()))
            raise JudgmentError(not_supported(f"{name!r} holds", kind or "", other=False))

    def refuse_best_and_worst(self, columns: Mapping[str, str]) -> None:
        """Refuse a row per item with a mark for the best and for the worst, of which neither is the grade."""
        marks = [name for name in self.names if key_of(name) in ("best", "worst") and self.facts[name].truths]
        if len(marks) == 2 and not columns:
            raise JudgmentError(
                f"{marks[0]!r} and {marks[1]!r} mark one item of a set each, and neither is a grade; write one row per "
                "set, with columns item1, item2, item3, ..., best and worst"
            )

    def names_winners(self, name: str) -> bool:
        """Whether all cells of a column are codes of winners, of both sides."""
        texts = set(self.facts[name].sample)
        codes = codes_of(sorted(texts)) if texts and not self.facts[name].numbers else {}
        if codes.keys() < texts <= self._items | codes.keys() and name_points("annotator", name) == 0:
            return len(texts - codes.keys()) > 1
        return texts <= codes.keys() and {1, -1} <= {code.outcome for code in codes.values()}

    def refuse_nested(self, role: str) -> None:
        """Refuse a column that holds objects where its name says that it is the one."""
        named = [name for name in self.names if self.facts[name].is_nested and self.may_hold(role, name)]
        if not named or role not in ("item", "grade", "rank", "left", "right", "winner", "annotator"):
            return
        if role == "grade":
            self.refuse_nested_pairs()
            self.refuse_unsupported(named[:1])
        raise JudgmentError(nested_sentence(role, named[0], self.facts[named[0]].cells))

    def refuse_nested_pairs(self) -> None:
        """Refuse objects that hold two sides and a winner, with the paths of all three."""
        held = [name for name in self.names if self.facts[name].is_nested]
        paths = [path for name in held for path in short_paths(name, self.facts[name].cells) if "[]" not in path]
        plain = [name for name in self.names if name not in held]
        winner = next((path for path in [*paths, *plain] if name_points("winner", _last(path)) >= LISTED), None)
        for ends in (("a", "b"), ("left", "right"), ("1", "2")):
            lefts = [path for path in paths if ends[0] in path.split(".")[1:] and name_points("item", _last(path))]
            for left in lefts:
                right = ".".join(ends[1] if part == ends[0] else part for part in left.split("."))
                if winner is not None and right in paths:
                    sides = option("columns", {"left": left, "right": right, "winner": winner})
                    raise JudgmentError(f"{left!r} and {right!r} may be two sides, and {winner!r} the winner: {sides}")

    def may_hold(self, role: str, name: str) -> bool:
        """Whether a column of objects has a name for a role, or entries that are graded or ranked where nothing is."""
        if name_points(role, name):
            # a list of names beside a list of graded objects says which they are and no more
            return not is_list_of_names(self.facts[name].cells)
        # what a model predicts or suggests is nobody's judgment
        asked = role in ("grade", "rank") and key_of(name) not in (
            "predictions",
            "prediction",
            "suggestions",
            "suggestion",
        )
        return asked and holds_answers(name, self.facts[name].cells)


def _last(path: str) -> str:
    """The last key of a path."""
    return path.rsplit(".", 1)[-1]


__all__ = ["Wishes", "role_candidates", "side_columns", "understand"]

_LARGEST_RATING = 10
"""Ratings mostly go up to 5, 7 or 10; ages, years and percentages beyond."""

_LEAST = {"annotator": 3, "grade": 3, "rank": 3, "item": 2, "query": 2, "left": 2, "right": 2, "winner": 5}


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
    names = [str(name) for name in (table.columns if isinstance(table, pl.DataFrame) else table)]
    check_names(names)
    given = given_columns(names, columns or {})
    check_words({}, kind)
    cells = table if isinstance(table, pl.DataFrame) else None
    return _Guess(names, given, cells, wishes or Wishes()).understand(kind)


def side_columns(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the columns of the left and the right items; ``None`` where there are none, or it is unclear which.

    Examples
    --------
    >>> side_columns(pl.DataFrame({"model_a": ["x"], "model_b": ["y"], "note": [""]}), {})
    ('model_a', 'model_b')
    """
    known = {word: name for word, name in columns.items() if name in table.columns}
    guess = _Guess(table.columns, known, table, Wishes(swapped=True))
    if not guess.has_sides():
        return None
    left, right = (guess.best(role) for role in ("left", "right"))
    return (left.name, right.name) if left is not None and right is not None else None


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
    rest = {word: column for word, column in columns.items() if word != "loser"}
    sides = side_columns(table, rest) if name in table.columns and "winner" not in columns else None
    if (
        name is None
        or sides is None
        or any(name_points("winner", one) >= LISTED for one in table.columns if one != name)
    ):
        return table, dict(columns)
    lost, left, right = (table[one].cast(pl.String, strict=False).str.strip_chars() for one in (name, *sides))
    values = lost.unique().drop_nulls().to_list()
    turned = {text: ("tie", "right", "left")[code.outcome] for text, code in codes_of(values).items()}
    turned |= {text: word for side, word in zip(sides, ("right", "left"), strict=True) for text in values
               if plain_name(text) == plain_name(side)}  # fmt: skip
    winner = pl.when(lost == left).then(pl.lit("right")).when(lost == right).then(pl.lit("left"))
    made = table.select(winner.otherwise(lost.replace(turned)).alias(f"other than {name}"))
    return table.hstack(made), {**rest, "winner": f"other than {name}"}


_MOST_CANDIDATES = 4


def role_candidates(table: pl.DataFrame, columns: Mapping[str, str], wishes: Wishes) -> dict[str, list[str]]:
    """Return the columns that may play each role of a table, the likeliest first; roles without any are left out.

    Examples
    --------
    >>> role_candidates(pl.DataFrame({"doc_id": [1, 2], "model": ["x", "y"], "acc": [0, 1]}), {}, Wishes())
    {'grade': ['acc'], 'item': ['model', 'doc_id']}
    """
    guess = _Guess(table.columns, dict(columns), table, wishes)
    pair = guess.has_sides()
    roles = ("left", "right", "winner") if pair else ("grade", "rank", "item")
    candidates: dict[str, list[str]] = {}
    for role in (*roles, "annotator", "query"):
        taken = (
            {names[0] for names in candidates.values() if len(names) == 1} if role in ("annotator", "query") else set()
        )
        free = [one.name for one in guess.candidates(role) if one.name not in taken]
        names = [columns[role]] if role in columns else free
        if role == "query":
            names = [name for name in names if name not in candidates.get("item", [])]
        if names:
            candidates[role] = names[:_MOST_CANDIDATES]
    return candidates


class _Guess(ColumnRefusals):
    """The roles of one table's columns."""

    def understand(self, kind: str | None) -> Understood:
        """Return what the table holds, or say what is unclear."""
        self.kind = kind
        by_winner = self._by_winner() if kind in (None, "preference") else {}
        by_role = {}
        if by_winner and ("loser" in self.given or not self.has_sides("winner")):
            kind, by_role = "preference", by_winner
        else:
            kind = kind or self._kind()
            by_role = self._required_columns(kind)
        by_role |= self._others(kind, by_role)
        self.refuse_lists(by_role)
        if kind == "preference" and not by_winner and not self.wishes.swapped:
            self._ask_order(by_role)
        words = dict.fromkeys((*NEEDED[kind], *(("loser", "tie") if by_winner else ()), *OPTIONAL[kind]))
        columns = {word: by_role[word] for word in words if word in by_role}
        ignored = tuple(name for name in self.names if name not in columns.values())
        return Understood(kind, columns, ignored, tuple(self.notes))

    # which kind ------------------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        """The kind of the table: preferences where it has two sides, else grades or rankings."""
        if self.has_sides():
            return "preference"
        grade, rank = (self.best(role) for role in ("grade", "rank"))
        if "rank" in self.given or "grade" in self.given:
            if "rank" in self.given and "grade" in self.given:
                raise JudgmentError(self._both())
            return "ranking" if "rank" in self.given else "grade"
        if not rank:
            return "grade"
        if not grade or grade.points < _LEAST["grade"]:
            return "ranking"
        if min(rank.points, grade.points) >= LISTED and self.candidates("item"):
            raise JudgmentError(self._both())
        return "grade" if grade.points > rank.points else "ranking"

    def _both(self) -> str:
        """Sentence for a table of grades that is one of ranks as well."""
        return (
            "the table has both a grade and a rank column; say which is meant "
            f"with {option('kind', 'grade')} or {option('kind', 'ranking')}"
        )

    # the columns that a kind needs -----------------------------------------------------------------------------------

    def _required_columns(self, kind: str) -> dict[str, str]:
        """The columns without which there is no judgment."""
        columns = {word: self.given[word] for word in NEEDED[kind] if word in self.given}
        if kind == "preference":
            return self._preference(columns)
        answer = "grade" if kind == "grade" else "rank"
        self._check_unlisted_sides(kind, columns)
        self.refuse_best_and_worst(columns)
        self.refuse_clicks(kind)
        # a column that can only be the item is none for the answer, and the other way round
        for role in (answer, "item"):
            if role not in columns:
                picked = self._pick(role, columns)
                if picked is not None:
                    columns[role] = picked
        if kind == "grade":
            self.refuse_marks(columns)
        if len(columns) < 2:
            raise JudgmentError(self._missing(kind, columns))
        if kind == "grade" and "grade" not in self.given:
            self._check_like(columns["grade"], columns)
        if (
            kind == "grade"
            and (said := json_sentence(columns["grade"], self.facts[columns["grade"]].sample)) is not None
        ):
            raise JudgmentError(said)
        return columns

    def _preference(self, columns: dict[str, str]) -> dict[str, str]:
        """The columns left, right and winner."""
        for role in ("left", "right"):
            if role not in columns and (picked := self._pick(role, columns)) is not None:
                columns[role] = picked
        if len({"left", "right"} & columns.keys()) < 2:
            raise JudgmentError(self._missing("preference", columns))
        if "winner" not in columns:
            picked = self._pick("winner", columns)
            if picked is None or self._bare(picked):
                raise JudgmentError(self._no_winner(columns, picked))
            columns["winner"] = picked
        elif self._bare(columns["winner"]):
            raise JudgmentError(self._no_winner(columns, columns["winner"]))
        return columns

    def _others(self, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
        """The columns that may be there as well."""
        more = {word: self.given[word] for word in OPTIONAL[kind] if word in self.given}
        for word in OPTIONAL[kind]:
            taken = {**columns, **more, **{role: name for role, name in self.given.items() if role not in more}}
            if word in more or (word == "annotator" and not self.wishes.annotators):
                continue
            picked = self._pick(word, taken) if word in ("annotator", "query") else self._column_by_name(word, taken)
            if picked is not None and not (word == "query" and self._is_attribute(picked, columns)):
                more[word] = picked
        return more

    def _column_by_name(self, word: str, taken: Mapping[str, str]) -> str | None:
        """The column with a name of a word that cells say little about; what cannot be used is left."""
        if word == "judgment" and "weight" not in {key_of(name) for name in self.names}:
            return None
        free = [Seen(p, name) for name in self.names if (p := name_points(word, name)) and name not in taken.values()]
        for _, name in sorted(free, key=lambda seen: -seen.points):
            facts = self.facts[name]
            if facts.is_nested or facts.empty:
                continue
            if word in ("strength", "duration") and facts.has_cells and not facts.numbers:
                continue
            return name
        return None

    def _is_attribute(self, query: str, columns: Mapping[str, str]) -> bool:
        """Whether a column with a weak name for the query is the same in all rows of each item."""
        item, facts = columns.get("item"), self.facts[query]
        if item is None or name_points("query", query) > WEAK or not facts.has_cells or self.facts[item].cells is None:
            return False
        pairs = pl.DataFrame({"query": facts.cells, "item": self.facts[item].cells})
        if pairs.n_unique() > self.facts[item].distinct or self.facts[item].all_different:
            return False
        self.notes.append(f"{query!r} is the same in all rows of each {item!r}, so it is not used as the query")
        return True

    def _by_winner(self) -> dict[str, str]:
        """The columns of a table of winners and losers; empty where it is none."""
        plain = {plain_name(name): name for name in reversed(self.names)}
        for winner, loser in BY_WINNER:
            names = {"winner": plain.get(winner), "loser": plain.get(loser)}
            pair = {word: self.given.get(word, name) for word, name in names.items()}
            both = {word: name for word, name in pair.items() if name is not None}
            if len(set(both.values())) == 2 and not any(self.facts[name].is_nested for name in both.values()):
                tie = self.given.get("tie") or self._column_by_name("tie", both)
                return {**both, "tie": tie} if tie is not None else both
        return {}

    def _ask_order(self, columns: Mapping[str, str]) -> None:
        """Ask whether winners are in the order that another column says answers were shown in; ids are in none."""
        cells = {name: facts.cells for name, facts in self.facts.items() if facts.cells is not None}
        sides = (columns["left"], columns["right"])
        if not {*sides, columns["winner"]} <= cells.keys() or not self.n:
            return
        table = pl.DataFrame({name: column for name, column in cells.items() if not column.dtype.is_nested()})
        free = [name for name in table.columns if name not in columns.values()]
        order = next(iter(order_columns(table, free, sides)), None)
        if order is None:
            return
        texts = set(self.facts[columns["winner"]].sample)
        codes = codes_of(sorted(texts)).items()
        ids = texts - {text for text, code in codes if code.outcome == 0}
        if ids <= self._items and not any(code.outcome for text, code in codes if text in ids):
            self.notes.append(
                f"{order!r} is not used; if it says which of two was shown first, {option('swapped', order)} tells who "
                "chooses by side"
            )
            return
        raise JudgmentError(is_it_swapped(table, order, columns["winner"], sides))

    # points ----------------------------------------------------------------------------------------------------------

    def _pick(self, role: str, taken: Mapping[str, str]) -> str | None:
        """The column of a role, ``None`` where there is none; two that are near are refused."""
        if role in self.given:
            return self.given[role]
        candidates = [one for one in self.candidates(role) if one.name not in taken.values()]
        if not candidates:
            self.refuse_nested(role)
            return None
        best, *rest = candidates
        if best.points < _LEAST[role]:
            return None
        if rest and best.points - rest[0].points < AHEAD and rest[0].points >= min(_LEAST[role], WEAK + 1):
            if role == "query" and self._same_rows(best.name, rest[0].name):
                return best.name
            if role == "rank" and (said := numbered_ranks([one.name for one in candidates])) is not None:
                raise JudgmentError(said)
            raise JudgmentError(
                f"columns {best.name!r} and {rest[0].name!r} could both be the {role}; "
                f"say which: {option('columns', {role: best.name})}"
            )
        return best.name

    # what is unclear -------------------------------------------------------------------------------------------------

    def _bare(self, winner: str) -> bool:
        """Whether winners are numbers of which nobody said what they mean."""
        facts = self.facts[winner]
        if self.wishes.coded or not facts.has_cells or not facts.sample:
            return False
        values = [as_float(text) for text in facts.values]
        if any(value is None for value in values) or set(facts.sample) <= self._items:
            return False
        return not (-1.0 in values and set(values) <= {-1.0, 0.0, 1.0})

    def _no_winner(self, columns: Mapping[str, str], picked: str | None) -> str:
        """Sentence for pairs of which it is not known who won."""
        rivals = [seen.name for seen in self.candidates("winner") if seen.name not in columns.values()]
        numbered = [name for name in rivals if self.facts[name].numbers and self.facts[name].sample]
        others = [
            name for name in self.names
            if name not in columns.values() and name not in rivals and self.facts[name].sample
            and self.facts[name].numbers and not self.facts[name].one_value and not is_aside(name)
            and not is_known(key_of(name)) and not is_of_a_side(name) and not is_gold(name)
        ]  # fmt: skip
        name = picked or next(iter([*numbered, *others]), None)
        left, right = columns["left"], columns["right"]
        flag = next((one for one in self.names if one not in columns.values() and self._is_flag(one)), None)
        if name is None and (scores := self._side_scores()) is not None:
            return which_scores(left, right, scores, named=True)
        if name is None and flag is not None:
            return is_it_a_flag(flag, self.facts[flag].values, left, right)
        if name is None:
            free = [one for one in self.names if one not in columns.values()]
            said = f"pairs of {left!r} and {right!r}, but no winner"
            naming = [one for one in free if self.names_winners(one)]
            if len(naming) == 1 and bad_word(naming[0]):
                lost, won = (option("columns", {word: naming[0]}) for word in ("loser", "winner"))
                return f"{said}; if {naming[0]!r} names the worse one: {lost}; if it names the better one: {won}"
            winner = option("columns", {"winner": naming[0] if len(naming) == 1 else ...})
            return f"{said}; say which column tells who won: {winner} ({self.listing(free)})"
        return what_numbers_mean(name, self.facts[name].values, left, right)

    def _check_like(self, grade: str, columns: Mapping[str, str]) -> None:
        """Refuse a grade with a weak name beside other columns of such numbers."""
        if name_points("grade", grade) > WEAK or not self.facts[grade].has_cells:
            return
        alike = [name for name in self.names if name == grade or self._is_like(name, grade, columns)]
        if len(alike) > 1:
            raise JudgmentError(which_grade(alike))

    def _is_like(self, name: str, grade: str, columns: Mapping[str, str]) -> bool:
        """Whether a column that nothing is known of holds numbers of the range of the grades."""
        facts = self.facts[name]
        if name in columns.values() or name in self.given.values() or is_aside(name) or is_gold(name):
            return False
        if is_known(key_of(name)) and not name_points("grade", name):
            return False
        if not facts.numbers or facts.one_value or facts.times or not self.facts[grade].numbers:
            return False
        own, other = ([v for v in map(as_float, one.sample) if v is not None] for one in (self.facts[grade], facts))
        return bool(own and other) and min(other) >= min(own) - 1 and max(other) <= max(own) + 1

    def _check_unlisted_sides(self, kind: str, columns: Mapping[str, str]) -> None:
        """Refuse grades where two columns of texts may be sides, and no name says what is graded."""
        best = {role: seen.name for role in ("item", "grade", "rank") if (seen := self.best(role))} | dict(columns)
        item = best.get("item")
        if self.kind == kind or "item" in self.given or (item and name_points("item", item) >= LISTED):
            return
        for _, left, right in side_pairs(self.names):
            one, other = self.facts[left], self.facts[right]
            if not all(facts.has_cells and not facts.is_nested and not facts.empty for facts in (one, other)):
                continue
            if one.numbers or other.numbers or one.truths or other.truths or one.times or one.sample == other.sample:
                continue
            winner = next((seen.name for seen in self.candidates("winner")), None)
            if winner is None and (scores := self._side_scores()) is not None:
                raise JudgmentError(which_scores(left, right, scores, named=False))
            item = None if item == winner else item
            raise JudgmentError(two_sides(left, right, winner or best.get("grade") or best.get("rank"), item))

    def _is_flag(self, name: str) -> bool:
        """Whether a column says yes or no of one side, as ``a_wins`` does."""
        return self.facts[name].truths and not self.facts[name].one_value and is_of_a_side(name)

    def _side_scores(self) -> tuple[str, str] | None:
        """Two columns with a score of either side."""
        both = [pair for pair in side_scores(self.names) if all(self.facts[name].numbers for name in pair)]
        return both[0] if both else None

    def _missing(self, kind: str, columns: Mapping[str, str]) -> str:
        """Sentence saying what was understood and what is missing."""
        lacking = [word for word in NEEDED[kind] if word not in columns]
        varied = [
            name for name in self.names
            if name not in columns.values() and self.facts[name].has_cells and self.facts[name].numbers
            and not self.facts[name].one_value
            and not is_aside(name) and not is_gold(name) and not is_known(key_of(name))
        ]  # fmt: skip
        numeric = [name for name in varied if not self.facts[name].all_different]
        if lacking == ["grade"] and len(numeric) > 1:
            row = columns["item"] if self.facts[columns["item"]].all_different else None
            return which_grade(self._with_like_names(numeric), row=row)
        several = listed_sides(self.names)
        if "item" in lacking and any(name_points("left", name) for name in several):
            return (
                f"each row shows several items, {either(map(repr, several[:8]), 'and')}, and only one or two of a row "
                "can be read; write one row per item and rank, or one per pair and winner"
            )
        if kind == "grade" and "item" in lacking and len(varied) > 1 and (said := self._survey_question(varied)):
            return said
        for word in lacking:
            self.refuse_nested(word)
        understood = {**columns, **self._optional_columns(kind, columns)}
        if lacking == ["grade"]:
            self.refuse_unsupported([name for name in self.names if name not in understood.values()])
        known = ", ".join(f"{word} = {name!r}" for word, name in understood.items()) or "nothing"
        free = [name for name in self.names if name not in understood.values()]
        listed = (
            self.listing(free) if any(self.facts[name].has_cells for name in free) else could_serve(self.names, columns)
        )
        likely = [name for name in free if not is_aside(name) and not self.facts[name].is_nested]
        likely = numeric if lacking == ["grade"] and len(numeric) == 1 else likely
        if lacking == ["grade"]:
            likely = [name for name in likely if not (self.facts[name].one_value or self.facts[name].long_text)]
        sole = likely[0] if len(likely) == len(lacking) == 1 else ...
        return (
            f"the table lacks {' and '.join(lacking)} to be read as {kind}s (understood: {known}; {listed}); "
            f"name the column with {option('columns', {lacking[0]: sole})}"
        )

    def _survey_question(self, numeric: list[str]) -> str | None:
        """Sentence for columns of numbers that may be one per item; ``None`` where nothing says whose a row is."""
        person = person_column(self.names)
        whose = person or next((name for name in self.names if self.facts[name].times), None)
        if whose is None:
            return None
        like = self._with_like_names(self._of_one_scale(numeric))
        named = "" if person is not None else f" and {option('columns', {'annotator': whose})}"
        listed = either(map(repr, like[:8]), "and")
        return (
            f"{listed} may be one column per item, with {whose!r} in each row; read them so: {option('wide', like)}"
            f"{named}"
        )

    def _of_one_scale(self, names: list[str]) -> list[str]:
        """Those of the columns whose numbers go up to 10, or those that go beyond, whichever are more."""
        short = [
            name
            for name in names
            if all((as_float(cell) or 0.0) <= _LARGEST_RATING for cell in self.facts[name].values)
        ]
        long = [name for name in names if name not in short]
        return max(short, long, key=len)

    def _with_like_names(self, names: list[str]) -> list[str]:
        """The columns of numbers called like these too, such as that of an annotator whose grades are all the same."""
        alike = is_series if is_series(names) else are_people if are_people(names) else None
        if alike is None:
            return names
        return [name for name in self.names if name in names or (self.facts[name].numbers and alike([*names, name]))]

    def _optional_columns(self, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
        """What else is understood of a table that lacks something."""
        taken = set(columns.values())
        best = {word: self.best(word) for word in OPTIONAL[kind] if word in ("annotator", "query")}
        return {word: one.name for word, one in best.items() if one is not None and one.name not in taken}

    def listing(self, names: list[str]) -> str:
        """Columns with their first value each, which never shows who somebody is."""
        each = [f"{name[:60]!r} ({shown_cell(self.facts[name])})" for name in names]
        return f"columns that could serve: {first_few(each, shown=100)}" if each else "no column is left"
