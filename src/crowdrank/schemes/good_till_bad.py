"""Further opinions on an item until one of them is not good."""

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
class GoodTillBad:
    r"""Good-till-bad: ask until the first grade that is not good, at most ``k`` times.

    It costs :math:`1 + \sum_{t=1}^{k-1} P(\text{the first } t \text{ grades are good})` per item ("good-till-bad" of
    [Yang10]_), one grade at a time.

    When to use
    -----------
    Use it where grades that are too high do the harm and answers come one at a time. Where answers come in batches use
    ``if_good_k``.

    Parameters
    ----------
    k
        Most grades of an item; raise it to check items longer that stay good.
    good_from
        Lowest good grade: a number, or one of the levels in words; raise it to check fewer items.

    Notes
    -----
    Grades count in the order of ``time``; without times, in that of the rows. Each call asks for one grade more of an
    item, since the next question depends on the answer. What promises the largest fall of the expected squared error of
    an item's gain comes first. Train on ``mean_gain``, not on a row for each grade.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 2), ("ann", "q", "y", 2), ("bob", "q", "y", 0)]
    >>> GoodTillBad().propose(Situation.of(Grades.from_rows(rows))).frame().select("item", "n_more", "reason").rows()
    [('x', 1, 'every grade is 2 or better')]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    needs: ClassVar[Mapping[str, str]] = {}
    k: int = 11
    good_from: float | str = 2

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "k", hint="it is the most grades of an item")

    def n_wanted(self, grade: Floats, offsets: Counts) -> Counts:
        """Return the number of grades each item should have: one more where all are good and ``k`` are not reached."""
        counts = np.diff(offsets)
        item = np.repeat(np.arange(len(counts)), counts)
        n_good = np.bincount(item, grade >= float(self.good_from), len(counts))
        return np.where(n_good == counts, np.minimum(counts + 1, self.k), counts)

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's grades is asked for, and that it is and is good."""
        return runs.all_before, runs.all_and_this

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next."""
        number = expect(situation.judgments, self).level_number(self.good_from)
        return ask_by_rule(replace(self, good_from=number), situation, f"every grade is {self.good_from} or better")
