"""Which annotators are left out together when the others' consensus is what each is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data.judgments import Grades, Judgments, Mixed, Preferences
from .data.mixed import parts_of
from .protocols import Bools, Floats
from .reliability import add_up

MANY_PREFERENCES = 200_000
"""Preferences from which on a compiled pass counts who answers alike."""


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
