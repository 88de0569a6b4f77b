"""What is asked of the user where a table leaves it open which column is which; no sentence shows who somebody is."""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl

from ..wording import either, option
from .column_facts import ColumnFacts, as_float
from .column_names import LISTED, are_people, are_things, is_series, key_of, name_points, part_role
from .columns import plain_name
from .directions import words_of

_MOST_SHOWN = 12
_MOST_CODES = 4
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
    if len(codes) > _MOST_CODES or max(codes) - min(codes) > _MOST_CODES:
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
