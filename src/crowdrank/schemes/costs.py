"""What schemes cost on grades that were given several times over: by formula, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from ..data.judgments import Grades
from ..errors import JudgmentError
from ..protocols import Counts, Floats
from .grade_rules import GradeRule, OrderedGrades


@dataclass(frozen=True, eq=False)
class Runs:
    r"""How the grades of an item begin if its annotators are asked in random order.

    Entry :math:`t` of each array is the mean over items of a probability about the :math:`(t + 1)`-th grade, 0 where
    there is no such grade. An item with :math:`G` good grades of :math:`m` begins with :math:`t` good ones with
    probability :math:`\binom{G}{t} / \binom{m}{t}`.

    Parameters
    ----------
    exists
        There is such a grade.
    good
        It is good; in random order each is as the first.
    first_and_this
        The first grade and this one are good.
    all_before
        All grades before it are good.
    all_and_this
        It and all grades before it are good.
    """

    exists: Floats
    good: Floats
    first_and_this: Floats
    all_before: Floats
    all_and_this: Floats

    @classmethod
    def of(cls, grades: Grades, good_from: Any, k: int) -> Self:
        """Return the runs of up to ``k`` grades."""
        number = np.bincount(grades.item, minlength=grades.n_items).astype(np.float64)
        n_good = np.bincount(grades.item, grades.at_least(good_from), grades.n_items)[number > 0]
        number = number[number > 0]
        if not len(number):
            raise JudgmentError("there are no grades to count costs on; give at least one")
        has = (np.arange(k)[:, None] < number).astype(np.float64)
        share = n_good / number
        two = np.divide(n_good * (n_good - 1), number * (number - 1), out=share.copy(), where=number > 1)
        steps = np.maximum(n_good - np.arange(k)[:, None], 0) / np.maximum(number - np.arange(k)[:, None], 1)
        through = np.cumprod(steps, axis=0)
        before = np.concatenate([np.ones((1, len(number))), through[:-1]])
        pairs = np.where(np.arange(k)[:, None] > 0, two, share)
        return cls(*((has * chances).mean(axis=1) for chances in (np.ones_like(has), share, pairs, before, through)))


class Priced(GradeRule, Protocol):
    """A rule whose cost is known by formula."""

    k: int

    def asking_probabilities(self, runs: Runs) -> tuple[Floats, Floats]:
        """Return the probability that each of an item's first ``k`` grades is asked for, and that it is and is good."""
        ...


def cost_table(grades: Grades, rules: Mapping[str, Priced], *, good_from: Any, n_draws: int, seed: int) -> pl.DataFrame:
    """Return what each scheme costs an item.

    The columns are scheme, labelling, training and ratio (counted over ``n_draws`` random orders of each item's grades)
    and the same with ``_exact``, by formula: grades asked for an item, training rows per item where every grade is a
    row, and rows below ``good_from`` for each one that is not.
    """
    rows = []
    for name, rule in rules.items():
        asked, good = (float(part.sum()) for part in rule.asking_probabilities(Runs.of(grades, good_from, rule.k)))
        labelling, share = _counted_costs(grades, rule, good_from, n_draws, seed)
        rows.append({
            "scheme": name, "labelling": labelling, "labelling_exact": asked, "training": labelling,
            "training_exact": asked, "ratio": _ratio(labelling, share), "ratio_exact": _ratio(asked, good),
        })  # fmt: skip
    return pl.DataFrame(rows)


def _ratio(rows: float, good: float) -> float | None:
    """Rows that are not good for each good one, where there is any."""
    return (rows - good) / good if good > 0 else None


def _counted_costs(grades: Grades, rule: GradeRule, good_from: Any, n_draws: int, seed: int) -> tuple[float, float]:
    """Grades asked for an item, and how many of them are good, if the grades come in random order."""
    rng = np.random.default_rng(seed)
    n_asked = n_good = 0
    for _ in range(n_draws):
        shuffled = grades.select(rng.permutation(len(grades)))
        asked = OrderedGrades.of(_without_times(shuffled))
        number = n_asked_by_rule(rule, asked)
        n_asked += int(number.sum())
        n_good += int((asked.first(number).grade >= grades.level_number(good_from)).sum())
    n_items = n_draws * int(grades.judged_items.sum())
    return n_asked / n_items, n_good / n_items


def n_asked_by_rule(rule: GradeRule, asked: OrderedGrades) -> Counts:
    """Return how many of its grades each item would have been asked for, one after the other, under a rule."""
    number = np.minimum(1, asked.counts)
    while True:
        so_far = asked.first(number)
        further = np.minimum(np.maximum(rule.n_wanted(so_far.grade, so_far.offsets), number), asked.counts)
        if (further == number).all():
            return number
        number = further


def replay(rule: GradeRule, grades: Grades) -> Grades:
    """Return those of recorded grades that a rule would have asked for, item after item, the first one first.

    An item that has fewer grades than the rule wants keeps all that it has.
    """
    asked = OrderedGrades.of(grades)
    order = grades.in_time()
    order = order[np.argsort(grades.item[order], kind="stable")]
    place = np.arange(len(order)) - np.repeat(asked.offsets[:-1], asked.counts)
    return grades.select(order[place < np.repeat(n_asked_by_rule(rule, asked), asked.counts)])


def _without_times(grades: Grades) -> Grades:
    """The grades without their times, so their order is that of the rows."""
    return replace(grades, time=None)
