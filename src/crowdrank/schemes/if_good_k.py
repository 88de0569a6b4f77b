"""Second opinions on items whose first grade is good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..data.judgments import expect
from ..data.proposals import Requests
from ..protocols import Counts, Floats
from ..wording import expect_at_least
from .costs import Runs
from .grade_rules import ask_by_rule
from .situation import Situation


@dataclass(frozen=True, kw_only=True)
class IfGoodK:
    r"""If-good-k: one grade per item, and ``k - 1`` more where the first is good.

    A share :math:`g` of good first grades makes it cost :math:`1 + (k - 1) g` per item ("if-good-k" of [Yang10]_).
    Gains double with each grade, so an item rated too high costs most; asking again about good ones only buys nearly
    the error of ``k`` grades of everything for half the money. It pays where errors go upwards. Misses, good items
    graded as poor, are never asked about again: where they are many, use ``k_overlap``.

    When to use
    -----------
    Use it for relevance grades where few items are good and errors go upwards. Where good items are often missed use
    ``k_overlap``.

    Parameters
    ----------
    k
        Grades that an item with a good first grade should have; raise it to check good items more.
    good_from
        Lowest good grade: a number, or one of the levels in words; raise it to check fewer items.

    Notes
    -----
    The first grade is the first by ``time``; without times, that of the first row, so the order of rows matters
    then. Grades that arrive later never change what the first one was. What promises the largest fall of the expected
    squared error of an item's gain comes first. Train on ``mean_gain``, not on a row for each grade.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 0), ("ann", "q", "z", 2)])
    >>> IfGoodK().propose(Situation.of(grades)).frame().select("item", "n_more", "reason").rows()
    [('x', 2, 'its first grade is 2 or better'), ('z', 2, 'its first grade is 2 or better')]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 3
    good_from: float | str = 2

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the number of grades of a good item")

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have: ``k`` where the first is good, otherwise one."""
        number = np.ones(len(offsets) - 1, np.int64)
        judged = np.flatnonzero(np.diff(offsets))
        number[judged[grade[offsets[judged]] >= float(self.good_from)]] = self.k
        return number

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's grades is asked for, and that it is and is good."""
        return np.append(runs.exists[:1], runs.good[1:]), runs.first_and_this

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        number = expect(situation.judgments, self).level_number(self.good_from)
        return ask_by_rule(replace(self, good_from=number), situation, f"its first grade is {self.good_from} or better")
