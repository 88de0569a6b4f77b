"""Agreement of annotators with a consensus and with each other; who is left out together follows from the latter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .data.judgments import Grades, Judgments, Mixed, Preferences, parts_of
from .protocols import Bools, Counts, Floats
from .reliability import (
    Association,
    ConsensusTies,
    Evidence,
    Spread,
    add_up,
    guessing_variance,
    item_trend,
    pairs_on_one_level,
    places,
    row_sums,
)

# threshold (equal): preferences by which who judges alike is counted in a compiled pass
MANY_PREFERENCES = 200_000
"""Preferences from which on a compiled pass counts who answers alike."""


@dataclass(frozen=True)
class Agreement:
    """Pairs of each annotator with unequal answers: those in agreement, all, and how far chance may move them.

    ``grades`` compares an annotator's grades with those that others gave the same items; there are none of other kinds.
    """

    agree: Floats
    n_pairs: Floats
    spread: Spread
    grades: Association | None = None

    def __add__(self, other: Agreement) -> Agreement:
        grades = self.grades if other.grades is None else other.grades.plus(self.grades)
        return Agreement(self.agree + other.agree, self.n_pairs + other.n_pairs, self.spread.plus(other.spread), grades)

    @classmethod
    def none(cls, n_annotators: int) -> Agreement:
        """Return the agreement on no pair at all."""
        return cls(np.zeros(n_annotators), np.zeros(n_annotators), Spread.none(n_annotators))

    @property
    def evidence(self) -> Evidence:
        """What the pairs are worth."""
        return Evidence.of(self.agree, self.n_pairs, self.spread)

    @property
    def effective(self) -> Floats:
        """Number of independent pairs that tell as much, (n_annotators,)."""
        evidence = self.evidence
        return evidence.pairs(evidence.share)


def pair_agreement(judgments: Judgments | Mixed, scores: Floats, covered: Bools, *, levels: bool = False) -> Agreement:
    """Return, for each annotator, the pairs of covered items with unequal answers and those the scores order alike.

    Equal scores count half, or are no pair where scores are ``levels`` that items may truly share; an annotator's ties
    are no pair. Pairs of several kinds are counted together.
    """
    if isinstance(judgments, Mixed):
        of_parts = (pair_agreement(part, scores, covered) for part in judgments.parts)
        return sum(of_parts, Agreement.none(judgments.n_annotators))
    if isinstance(judgments, Preferences):
        return _of_preferences(judgments, scores, covered)
    query = judgments.items.query
    population = np.bincount(query[covered], minlength=judgments.n_queries)[query[judgments.item]]
    if isinstance(judgments, Grades):
        group = judgments.annotator.astype(np.int64) * judgments.n_queries + judgments.items.query[judgments.item]
        if judgments.blocks is not None and judgments.block is not None:
            group = group * len(judgments.blocks) + judgments.block
        rows = _Rows(group, judgments.item, judgments.grade, judgments.annotator, judgments.row_weight, population)
    else:
        number = judgments.ranking
        rank = -judgments.rank.astype(np.float64)
        each, weight = np.ones(len(number)), judgments.row_weight[number]
        owner = judgments.annotator[number]
        rows = _Rows(number.astype(np.int64), judgments.item, rank, owner, each, population, weight)
    return _of_groups(rows, scores, covered, judgments.n_annotators, levels=levels)


class _Rows(NamedTuple):
    """Items and their grades in groups of answers, with weights of the rows, and of the groups where these have any.

    ``population`` is the number of items of the query that have a score.
    """

    group: Counts
    item: Any
    grade: Floats
    annotator: Any
    weight: Floats
    population: Counts
    of_group: Floats | None = None


def mean_grades(grades: Grades) -> Floats:
    """Return the mean grade of each item, 0 where it has none, (n_items,)."""
    number, sums = (
        add_up(values, grades.item, grades.n_items) for values in (grades.row_weight, grades.row_weight * grades.grade)
    )
    return sums / np.maximum(number, 1e-300)


def grade_association(grades: Grades, levels: Floats, covered: Bools) -> Association:
    """Return how grades go with the levels (n_items,) that others give the items covered, whatever their query."""
    own = np.flatnonzero(covered[grades.item])
    weight, x, y = grades.row_weight[own], grades.grade[own], levels[grades.item[own]]
    products = (np.ones(len(own)), x, y, x * x, y * y, x * y)
    return Association(*(add_up(weight * part, grades.annotator[own], grades.n_annotators) for part in products))


def class_agreement(grades: Grades, inside: Bools, consensus: Any) -> Agreement:
    """Agreement of some answers that name a class with the classes of a consensus."""
    n, n_levels = grades.n_annotators, len(grades.levels)
    if consensus.grade is None or consensus.levels is None or n_levels < 2:
        return Agreement.none(n)
    value = dict(zip(grades.levels, grades.level_values, strict=True))
    chosen = np.array([value[level] for level in consensus.levels])[np.maximum(consensus.grade, 0)]
    use = inside & (consensus.grade[grades.item] >= 0)
    right = use & (chosen[grades.item] == grades.grade)
    total, named = (add_up(grades.row_weight * which, grades.annotator, n) for which in (use, right))
    return independent_agreement(named, total)


def independent_agreement(agree: Floats, total: Floats) -> Agreement:
    """Agreement on pairs that have nothing in common."""
    return Agreement(agree, total, Spread.none(len(total))._replace(pairs=0.25 * total))


def _of_preferences(judgments: Preferences, scores: Floats, covered: Bools) -> Agreement:
    """Agreement of preferences, each a pair of its own."""
    use = (judgments.outcome != 0) & covered[judgments.left] & covered[judgments.right]
    chosen = judgments.select(use)
    gap = scores[chosen.left] - scores[chosen.right]
    right = 0.5 * (1.0 + np.sign(gap) * chosen.outcome)
    n = judgments.n_annotators
    total = add_up(chosen.row_weight, chosen.annotator, n)
    agree = add_up(right * chosen.row_weight, chosen.annotator, n)
    return independent_agreement(agree, total)


def _of_groups(rows: _Rows, scores: Floats, covered: Bools, n: int, *, levels: bool) -> Agreement:
    """Agreement of grades or rankings, whose pairs lie within groups of answers."""
    use = covered[rows.item]
    if not use.any():
        return Agreement.none(n)
    order = np.flatnonzero(use)[np.lexsort((rows.grade[use], rows.group[use]))]
    starts = np.flatnonzero(np.append(True, np.diff(rows.group[order]) != 0))
    offsets = np.append(starts, len(order))
    weight, owner = rows.weight[order], rows.annotator[order]
    grade, place = rows.grade[order], places(offsets, scores[rows.item[order]])
    agree, total, lean = row_sums(offsets, grade, place, weight)
    triples, pairs = guessing_variance(lean, total, ConsensusTies.of(offsets, place) if levels else None)
    if levels:
        same = pairs_on_one_level(offsets, grade, place, weight)
        agree, total = agree - 0.5 * same, total - same
    trend, part = item_trend(offsets, place, weight, rows.population[order])
    weight = weight if rows.of_group is None else weight * rows.of_group[order]
    sums = Spread(
        agree * agree, agree * total, total * total, part * trend * agree, part * trend * total, part * trend**2,
        triples, pairs, (total > 0).astype(np.float64),
    )  # fmt: skip
    spread = Spread(*(add_up(weight * values, owner, n) for values in sums))
    return Agreement(add_up(0.5 * weight * agree, owner, n), add_up(0.5 * weight * total, owner, n), spread)


def annotator_folds(judgments: Judgments | Mixed, most: int, like: tuple[Floats, Floats] | None = None) -> list[Bools]:
    """Return masks of the annotators to leave out together, the busy ones spread evenly, whatever their names."""
    n = judgments.n_annotators
    busy = np.bincount(judgments.annotator, minlength=n)
    order = np.arange(n) if n <= most else np.lexsort((*(like or likeness(judgments)), -busy))
    fold = np.empty(n, np.int64)
    fold[order] = np.arange(n) % min(n, most)
    return [fold == number for number in range(min(n, most))]


def likeness(judgments: Judgments | Mixed) -> tuple[Floats, Floats]:
    """Return how far annotators answer like others, and how often their items are judged, (n_annotators,) each.

    Both stay the same if anybody is renamed, all answers are reversed, or a row stands there twice in place of a weight
    of 2.
    """
    like, company = np.zeros((2, judgments.n_annotators))
    for part in parts_of(judgments):
        if isinstance(part, Preferences) and len(part) >= MANY_PREFERENCES:
            from .kernels.left_out import add_likeness

            add_likeness(
                part.left, part.right, part.outcome, kernel_weights(part), part.annotator, part.n_items, like, company
            )
            continue
        annotator, item, mark, weight = _marks(part)
        of_item = add_up(weight, item, part.n_items)[item]
        cell, owner = np.unique(item.astype(np.int64) * (int(mark.max(initial=0)) + 1) + mark, return_inverse=True)
        alike = add_up(weight, owner, len(cell))[owner]
        like += add_up(weight * alike / np.maximum(of_item, 1e-300), annotator, len(like))
        company += add_up(weight * of_item, annotator, len(company))
    # the last digits depend on the order of the sums
    return np.round(like / max(like.max(initial=0.0), 1e-300), 9), np.round(company / max(company.max(), 1e-300), 9)


def _marks(judgments: Judgments) -> tuple[Any, Any, Any, Floats]:
    """Annotator, item, what the item was given and weight of each answer."""
    if isinstance(judgments, Preferences):
        outcome = judgments.outcome.astype(np.int64)
        item, mark = np.append(judgments.left, judgments.right), np.append(1 + outcome, 1 - outcome)
        return np.tile(judgments.annotator, 2), item, mark, np.tile(judgments.row_weight, 2)
    if isinstance(judgments, Grades):
        level = np.unique(judgments.grade, return_inverse=True)[1]
        return judgments.annotator, judgments.item, level, judgments.row_weight
    number = judgments.ranking
    return judgments.annotator[number], judgments.item, judgments.rank.astype(np.int64), judgments.row_weight[number]


def kernel_weights(preferences: Preferences) -> Floats:
    """Return weights for compiled passes, none where all are 1."""
    return np.empty(0) if preferences.weight is None else preferences.weight
