"""Judgments by what was asked: a thing is an item that was graded, or a pair of items that was compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from .sentences import MESSAGES, fill

MOST_CLASSES = 7
"""Grades of more levels are cut into this many classes."""

# threshold (sample): judgments diagnosed without a sample of items
MOST_JUDGMENTS = 500_000
"""Of more grades, preferences or pairs of rankings, those on a part of the items are looked at."""

NOT_ASKED = 2.0
"""Stands where nothing was asked in an order, since leads lie between -1 and 1."""

Halves: TypeAlias = NDArray[np.float32]

# threshold (equal): pairs and annotators numbered in one integer
_MOST_KEY = 1 << 60


@dataclass(frozen=True, eq=False)
class CodedJudgments:
    """One judgment for each thing and annotator, by thing and then annotator.

    Parameters
    ----------
    thing
        What was asked, numbered from 0 in rising order, (n,).
    annotator
        Who judged, (n,); all 0 where nobody is named.
    code
        The judgment, (n,): the class of the grade; or 0, 1, 2 where the second item was preferred, neither, the first.
        Given several times, it is the mean, so a choice that goes with the side is no choice.
    n_codes
        Number of codes there are.
    first, second
        For preferences and rankings the two items of each thing, (n_things,), the first being the lower; for grades
        the item, twice.
    place
        What the items are compared in, (n_things,): the query, or its block.
    low_left, high_left
        For pairs how far left was chosen, its share less that of right, when the first item stood left, and when the
        second did, (n,); 2 where nothing was asked so. Empty for grades.
    classes
        For grades each distinct grade that was looked at, its class, and the number that stands for each class;
        otherwise ``None``. Rows of a sample are not those of all grades, so nothing here is by row.
    note
        What was left out, in a sentence.
    """

    thing: Ints
    annotator: Ints
    code: Ints
    n_codes: int
    first: Ints
    second: Ints
    place: Ints
    low_left: Halves
    high_left: Halves
    classes: tuple[Floats, Ints, Floats] | None = None
    note: str | None = None


def code_judgments(judgments: Judgments, most: int | None = None) -> CodedJudgments:
    """Return judgments by what was asked, on some of the items where there are more than ``most``."""
    fewer, note = fewer_items(judgments, most)
    coded = _graded_items(fewer) if isinstance(fewer, Grades) else _compared_pairs(fewer.as_preferences())
    return replace(coded, note=note)


def _graded_items(grades: Grades) -> CodedJudgments:
    """Grades by item and annotator, repeated ones averaged."""
    classes, values = grade_classes(grades)
    n_annotators = max(grades.n_annotators, 1)
    number = grades.item.astype(np.int64)
    if grades.block is not None:
        number += grades.block.astype(np.int64) * grades.n_items
    keys = np.sort((number * n_annotators + grades.row_annotator) * MOST_CLASSES + classes)
    own = keys // MOST_CLASSES
    begin = np.flatnonzero(np.diff(own, prepend=-1))
    sums = np.add.reduceat(keys % MOST_CLASSES, begin) if len(begin) else np.zeros(0, np.int64)
    code = np.round(sums / np.diff(begin, append=len(keys))).astype(np.int32)
    if grades.nominal:
        # classes have no mean, so of several the first counts
        code = (keys[begin] % MOST_CLASSES).astype(np.int32)
    things, thing = _number_values(own[begin] // n_annotators)
    item = (things % grades.n_items).astype(np.int32)
    where = (things // grades.n_items).astype(np.int32) if grades.block is not None else grades.items.query[item]
    who, nothing = (own[begin] % n_annotators).astype(np.int32), np.zeros(0, np.float32)
    given, at = np.unique(grades.grade, return_index=True)
    sizes = (given, classes[at], values)
    return CodedJudgments(thing, who, code, len(values), item, item, where, nothing, nothing, classes=sizes)


def grade_classes(grades: Grades) -> tuple[Ints, Floats]:
    """Return the class of each grade, and the number that stands for each class; at most seven of them."""
    values, code = np.unique(grades.grade, return_inverse=True)
    if len(values) <= MOST_CLASSES:
        return code.astype(np.int32), values
    counts = np.bincount(code)
    if grades.nominal:
        # the rare ones are taken as one class
        rank = np.empty(len(values), np.int32)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(values))
        merged = np.minimum(rank, MOST_CLASSES - 1)
    else:
        middle = np.cumsum(counts) - 0.5 * counts
        merged = np.unique((middle / counts.sum() * MOST_CLASSES).astype(np.int32), return_inverse=True)[1]
    return merged[code].astype(np.int32), np.bincount(merged, values * counts) / np.bincount(merged, counts)


def _compared_pairs(preferences: Preferences) -> CodedJudgments:
    """Preferences by pair and annotator."""
    turned = preferences.left > preferences.right
    # where nobody knows how items were shown, all preferences are about one order
    outcome = np.where(turned & ~preferences.shown, -preferences.outcome, preferences.outcome)
    low = np.where(turned, preferences.right, preferences.left)
    span = int(np.diff(preferences.items.offsets).max(initial=1))
    n_items, n_annotators = max(preferences.n_items, 1), max(preferences.n_annotators, 1)
    number = low.astype(np.int64)
    if preferences.block is not None:
        number += preferences.block.astype(np.int64) * n_items
    number = number * span + np.where(turned, preferences.left, preferences.right) - low
    names: Counts | None = None
    if int(number.max(initial=0)) > _MOST_KEY // (8 * n_annotators):
        names, numbered = np.unique(number, return_inverse=True)
        number = numbered.astype(np.int64)
    number = number * n_annotators + preferences.row_annotator
    own, low_left, high_left = leads_of_left(number, turned & preferences.shown, outcome)
    things, thing = _number_values(own // n_annotators)
    things = things if names is None else names[things]
    first = (things // span % n_items).astype(np.int32)
    second = (first + things % span).astype(np.int32)
    place = preferences.items.query[first]
    if preferences.block is not None:
        place = (things // span // n_items).astype(np.int32)
    lead = np.where(low_left == NOT_ASKED, 0, low_left) - np.where(high_left == NOT_ASKED, 0, high_left)
    who, code = (own % n_annotators).astype(np.int32), (np.sign(lead) + 1).astype(np.int32)
    return CodedJudgments(thing, who, code, 3, first, second, place, low_left, high_left)


def leads_of_left(key: Counts, turned: Bools, outcome: Outcomes) -> tuple[Counts, Halves, Halves]:
    """Return the distinct keys, and how far left was chosen when the lower item stood left, and when the higher did.

    ``turned`` (rows,) tells where the higher item stood left; a lead is 2 where nothing was asked so.
    """
    # sorting plain numbers is ten times as fast as finding an order
    rows = np.sort((key << 3) + np.where(turned, 5, 1) + outcome)
    own = rows >> 3
    begin = np.flatnonzero(np.diff(own, prepend=-1))
    if not len(begin):
        return own, np.zeros(0, np.float32), np.zeros(0, np.float32)
    right = (rows & 4) > 0
    lead = (rows & 3).astype(np.float32) - 1
    halves = []
    for chosen in (~right, right):
        number = np.add.reduceat(chosen, begin, dtype=np.float32)
        sums = np.add.reduceat(np.where(chosen, lead, 0), begin, dtype=np.float32)
        halves.append(np.divide(sums, number, out=np.full(len(begin), NOT_ASKED, np.float32), where=number > 0))
    return own[begin], halves[0], halves[1]


def _number_values(rising: Counts) -> tuple[Counts, Ints]:
    """The distinct values of a rising array, and the number of each entry's value."""
    new = np.diff(rising, prepend=-1) != 0
    return rising[new], (np.cumsum(new) - 1).astype(np.int32)


def fewer_items(judgments: Judgments, most: int | None = None) -> tuple[Judgments, str | None]:
    """Return judgments without some items where they are very many, and what to say of that.

    Leaving out items and not judgments keeps what several annotators judged, and what hangs together in triads.
    """
    n_judgments = len(judgments)
    if isinstance(judgments, Rankings):
        lengths = np.diff(judgments.offsets)
        n_judgments = int((lengths * (lengths - 1) // 2).sum())
    most = MOST_JUDGMENTS if most is None else most
    if n_judgments <= most:
        return judgments, None
    share = most / n_judgments
    drawn = np.random.default_rng(0).random(judgments.n_items)
    kept = drawn < (share if judgments.kind == "grade" else np.sqrt(share))
    # of very few items with very many judgments each, at least two are looked at
    kept[np.argsort(drawn)[:2]] = True
    note = fill(MESSAGES["fewer_items"], n=n_judgments, n_items=int(kept.sum()))
    if isinstance(judgments, Preferences):
        return judgments.select(kept[judgments.left] & kept[judgments.right]), note
    rows = kept[judgments.item]
    if isinstance(judgments, Grades):
        return judgments.select(rows), note
    offsets = np.concatenate([[0], np.cumsum(rows)])[judgments.offsets]
    return replace(judgments, item=judgments.item[rows], rank=judgments.rank[rows], offsets=offsets), note
