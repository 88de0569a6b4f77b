"""Schemes that look at the grades of one item at a time: what they see, and what comes of what they want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..protocols import Counts, Floats
from .buying import Wanted, bought
from .gains import MEASURE, GainErrors
from .situation import Situation
from .tie_draws import by_falling, tie_draws

UNJUDGED = "not judged yet"


class GradeRule(Protocol):
    """A scheme that says how many grades an item should have from those it has, in the order in which they came."""

    kinds: ClassVar[tuple[str, ...]]

    def wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have in all.

        The grades of item ``i``, first one first, are ``grade[offsets[i]:offsets[i + 1]]``.
        """
        ...


@dataclass(frozen=True, eq=False)
class GradesAsked:
    """The grades of each item in the order in which they were given.

    Parameters
    ----------
    grade
        Grades, item after item; those of an item by time, by row where there is no time.
    offsets
        Grades of item ``i`` are ``grade[offsets[i]:offsets[i + 1]]``.
    """

    grade: Floats
    offsets: Counts

    @classmethod
    def of(cls, grades: Grades) -> Self:
        """Return the grades item after item."""
        order = grades.in_time()
        order = order[np.argsort(grades.item[order], kind="stable")]
        counts = np.bincount(grades.item, minlength=grades.n_items)
        return cls(grades.grade[order], np.concatenate([[0], np.cumsum(counts)]))

    @property
    def counts(self) -> Counts:
        """Number of grades of each item."""
        return np.diff(self.offsets)

    def first(self, number: Counts) -> GradesAsked:
        """Return the first so many grades of each item."""
        number = np.minimum(number, self.counts)
        place = np.arange(len(self.grade)) - np.repeat(self.offsets[:-1], self.counts)
        keep = place < np.repeat(number, self.counts)
        return GradesAsked(self.grade[keep], np.concatenate([[0], np.cumsum(number)]))


def ask_by_rule(rule: GradeRule, situation: Situation, reason: str, *, rounds: bool = False) -> Requests:
    """Return the requests of a rule, what promises the largest fall of the error of the gains first.

    ``reason`` says why a judged item is asked about again. With ``rounds`` items with the fewest grades come first, in
    random order.
    """
    grades: Grades = expect(situation.judgments, rule)
    asked = GradesAsked.of(grades)
    more = np.where(situation.askable, rule.wanted(asked.grade, asked.offsets) - asked.counts, 0)
    wanted = units_of(grades, asked.counts, np.maximum(more, 0), reason, situation, rounds=rounds)
    return bought(rule, situation, wanted)


def units_of(
    grades: Grades, counts: Counts, more: Counts, reason: str, situation: Situation, *, rounds: bool = False
) -> Wanted:
    """Return the single grades to buy where ``more`` says how many each item should get; see :func:`ask_by_rule`."""
    errors = GainErrors.of(grades)
    item = np.repeat(np.arange(grades.n_items, dtype=np.int32), more)
    number = (np.arange(len(item)) - np.repeat(np.cumsum(more) - more, more)).astype(np.int32)
    gain = errors.of_next(item, number)
    draws = tie_draws(situation.seed, grades.n_items)[item]
    order = np.lexsort((draws, counts[item] + number)) if rounds else by_falling(gain, draws)
    judged: Any = counts[item] > 0
    return Wanted(
        things={"item": item[order]}, gain=gain[order], reason=judged[order].astype(np.int32),
        reasons=(UNJUDGED, reason), measure=MEASURE, before=float(errors.now()[situation.askable].sum()),
    )  # fmt: skip
