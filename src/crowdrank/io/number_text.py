"""Grades that are numbers in other clothes: 4/5, 80%, 1,5 and 4 - ok."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ..data.intake import BLANKS
from ..data.words import as_float
from ..errors import JudgmentError
from ..wording import counted, either, option

_NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
_FORMS = {
    "comma": re.compile(r"([-+]?\d+)(?:,(\d+))?"),
    "share": re.compile(rf"({_NUMBER})\s*(?:/|out of|of)\s*(\d+(?:[.,]\d+)?)"),
    "percent": re.compile(rf"({_NUMBER})\s*%"),
    "worded": re.compile(rf"({_NUMBER})\s*(?:[-–—:=]\s+|:\s*|\(\s*)(\D.*?)\)?"),
}
_MOST_VALUES = 10_000
_LONGEST_BLANK = 12


class Numbers(NamedTuple):
    """Cells as numbers, or as words with the order that their numbers give."""

    cells: pl.Series
    levels: list[str] | None = None
    note: str | None = None


def without_blanks(cells: pl.Series) -> pl.Series:
    """Return the cells with those that only say that they are blank as null."""
    if cells.dtype != pl.String:
        return cells
    some = cells.unique().drop_nulls()
    short = some.filter(some.str.len_bytes() <= _LONGEST_BLANK)
    return cells.set(_are_blank(cells), None) if _are_blank(short).any() else cells


def _are_blank(cells: pl.Series) -> pl.Series:
    """Whether each cell only says that it is blank."""
    return cells.str.strip_chars().str.to_lowercase().is_in(list(BLANKS)).fill_null(False)


def without_endings(cells: pl.Series) -> pl.Series:
    """Return places such as 1st and 2nd as numbers; other cells as they are."""
    if cells.dtype != pl.String:
        return cells
    numbers = cells.str.extract(r"(?i)^\s*(\d+)\s*(?:st|nd|rd|th|\.|º|ª|er|e)\s*$")
    return numbers if numbers.null_count() == cells.null_count() < len(cells) else cells


def without_missing(
    frame: pl.DataFrame, missing: Sequence[str] | None, words: Sequence[str] = ("grade", "winner", "rank")
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows whose answer is none of those that mean that there is none, and what is said of the others.

    Examples
    --------
    >>> without_missing(pl.DataFrame({"item": ["x", "y"], "grade": ["3", "-1"]}), ["-1"])[1]
    ["1 row left out, whose answer is '-1'"]
    """
    word = next((word for word in words if word in frame.columns), None)
    if missing is None or word is None:
        return frame, []
    texts = frame[word].cast(pl.String).str.strip_chars()
    numbers = [number for value in missing if (number := as_float(value)) is not None]
    left_out = texts.str.to_lowercase().is_in([value.strip().lower() for value in missing])
    left_out = (left_out | texts.cast(pl.Float64, strict=False).is_in(numbers)).fill_null(False)
    listed = either(map(repr, missing))
    if left_out.all():
        raise JudgmentError(f"each answer is {listed}, so {option('missing')} leaves none; name fewer of them")
    return frame.filter(~left_out), [f"{counted(int(left_out.sum()), 'row')} left out, whose answer is {listed}"]


# numbers that forms and scripts write where there is no answer
_NO_ANSWER = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)
_LARGEST_SCALE, _FEWEST_LEVELS, _MOST_LEVELS = 10.0, 3, 20


def no_answer_note(name: str, cells: pl.Series) -> list[str]:
    """Return the note on numbers that may say that there is no answer: -1, 99 or a far one beside a scale up to 10.

    Examples
    --------
    >>> no_answer_note("score", pl.Series([1, 2, 5, 3, -1]))
    ["'score' is -1 in 1 of 5 rows; if that means that there is no answer: missing=['-1']"]
    >>> no_answer_note("score", pl.Series([1, 2, 5, 3, 500, 500]))
    ["'score' is 500 in 2 of 6 rows; if that means that there is no answer: missing=['500']"]
    >>> no_answer_note("score", pl.Series([-1, 0, 1])), no_answer_note("score", pl.Series([-2, -1, 1, 2]))
    ([], [])
    """
    if not cells.dtype.is_numeric():
        return []
    cells = cells.cast(pl.Float64)
    lowest, highest = cells.min(), cells.max()
    if not isinstance(lowest, float) or not isinstance(highest, float) or 0 <= lowest <= highest <= _LARGEST_SCALE:
        return []
    odd, values = [value for value in _NO_ANSWER if bool((cells == value).any())], cells.unique().drop_nulls().sort()
    if not odd and _FEWEST_LEVELS < len(values) <= _MOST_LEVELS:
        # a number that recurs at an end of a scale, farther away than the others reach thrice
        ends = ((values[0], values[1], values[-1]), (values[-1], values[-2], values[0]))
        odd = [one for one, near, far in ends if abs(one - near) > 3 * abs(near - far) and (cells == one).sum() > 1]
    if not odd:
        return []
    rest = cells.filter(~cells.is_in(odd)).drop_nulls()
    low, high, distinct = rest.min(), rest.max(), rest.n_unique()
    if not isinstance(low, float) or not isinstance(high, float) or distinct < _FEWEST_LEVELS:
        return []
    if low < 0 or high > _LARGEST_SCALE or (low == 0 and high < _FEWEST_LEVELS):
        return []
    n, listed = int(cells.is_in(odd).sum()), [f"{value:g}" for value in odd]
    rows = counted(len(cells), "row")
    way = option("missing", listed)
    return [f"{name!r} is {either(listed)} in {n:,} of {rows}; if that means that there is no answer: {way}"]


def numbers_in(name: str, cells: pl.Series, *, commas: bool = True) -> Numbers:
    """Return the numbers in a column of text whose cells are all of one form; other columns as they are.

    Without ``commas`` a comma in a number means nothing that is known, as in tables that commas separate.

    Examples
    --------
    >>> found = numbers_in("rating", pl.Series(["4/5", "2/5"]))
    >>> found.cells.to_list(), found.note
    ([4.0, 2.0], "'rating': 2 cells such as '4/5' read as 4")
    >>> numbers_in("rating", pl.Series(["1 - bad", "2 - ok"])).levels
    ['bad', 'ok']
    """
    if cells.dtype != pl.String:
        return Numbers(cells)
    plain = cells.cast(pl.Float64, strict=False)
    if plain.null_count() == cells.null_count() and not plain.is_nan().any():
        return Numbers(plain)
    cells = without_blanks(cells)
    texts = [text for text in cells.drop_nulls().str.strip_chars().unique().to_list() if text]
    if not texts or len(texts) > _MOST_VALUES or all(as_float(text) is not None for text in texts):
        return Numbers(cells)
    for form, pattern in _FORMS.items():
        matches = {text: match for text in texts if (match := pattern.fullmatch(text))}
        if len(matches) == len(texts) and (commas or form != "comma"):
            break
    else:
        return Numbers(cells)
    if form == "comma":
        behind = {text: match[2] for text, match in matches.items() if match[2] is not None}
        if all(len(digits) == 3 for digits in behind.values()):
            text = min(behind)
            ways = f"{_number(text):g} or {text.replace(',', '')}"
            raise JudgmentError(f"{name!r} holds {text!r}, which may mean {ways}; write it as one of them")
    values = {text: _number(text if form == "comma" else match[1]) for text, match in matches.items()}
    if form == "share":
        # the number itself where all are out of the same, else the fraction
        whole = {text: _number(match[2]) for text, match in matches.items()}
        if not all(whole.values()):
            return Numbers(cells)
        several = len(set(whole.values())) > 1
        values = {text: value / (whole[text] if several else 1.0) for text, value in values.items()}
    words = {text: match[2].strip() for text, match in matches.items()} if form == "worded" else {}
    pairs = sorted({(values[text], word) for text, word in words.items()})
    if len({number for number, _ in pairs}) < len(pairs) or len({word for _, word in pairs}) < len(pairs):
        return Numbers(cells)
    stripped = cells.str.strip_chars()
    plain_texts = [text for text in values if as_float(text) is not None]
    changed = stripped.filter(~stripped.is_in([*plain_texts, ""])).drop_nulls()
    note = f"{name!r}: {counted(len(changed), 'cell')} such as {changed[0]!r} read as {values[changed[0]]:g}"
    if len(pairs) > 1 and all(high - low == 1 for (low, _), (high, _) in itertools.pairwise(pairs)):
        # words with a number each are levels in the order of the numbers
        in_words = stripped.replace_strict(words, default=None, return_dtype=pl.String)
        return Numbers(in_words, [word for _, word in pairs], note)
    return Numbers(stripped.replace_strict(values, default=None, return_dtype=pl.Float64), None, note)


def _number(text: str) -> float:
    """A number with a decimal point or comma."""
    return float(text.replace(",", "."))


def negative_numbers(name: str, cells: pl.Series) -> pl.Series:
    """Return numbers with the sign changed, for grades of which small is good."""
    if cells.dtype != pl.String:
        return 0.0 - cells.cast(pl.Float64)
    numbers = cells.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() == len(cells) > cells.null_count():
        problem = f"{option('small_is_good', True)} applies to numbers, but {name!r} holds words"
        raise JudgmentError(f"{problem}; give their order, worst first, with {option('levels')} in its place")
    if numbers.null_count() == cells.null_count():
        return 0.0 - numbers
    # what is no number stays, to be named with its row
    return (0.0 - numbers).cast(pl.String).fill_null(cells)


def order_note(grades: str, levels: list[str]) -> str:
    """Return what is said of grades in words whose order is known; ``grades`` begins the sentence."""
    found = f"{grades} in words, worst first {', '.join(map(repr, levels))}"
    return f"{found}; for another order: {option('levels')}, for none: {option('nominal', True)}"
