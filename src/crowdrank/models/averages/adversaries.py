"""Grades of annotators who are right less often than a guess, exchanged for another level at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.judgments import Grades
from ...data.truth import given_accuracies
from ...errors import JudgmentError
from ...protocols import Bools, Floats, Ints
from ...wording import one_of, option

ADVERSARIES = ("keep", "exchange")


def check_adversaries(adversaries: str, accuracies: Any | None) -> None:
    """Refuse accuracies that nothing is done with."""
    one_of(adversaries, ADVERSARIES, "adversaries")
    if accuracies is not None and adversaries == "keep":
        raise JudgmentError(f"{option('accuracies')} has no use with adversaries='keep'; set adversaries='exchange'")


def exchange_levels(grades: Grades, codes: Ints, n_levels: int, accuracies: Any | None, seed: int) -> Ints:
    """Return the level code of each grade, those of adversarial annotators exchanged for one of the others at random.

    Adversarial is whose accuracy is below one in ``n_levels``: as given, else by agreement. ``codes`` (n,) are the
    levels as they were given.
    """
    if not grades.n_annotators:
        raise JudgmentError("adversaries='exchange' needs to know who gave each grade; add the annotator column")
    if n_levels < 2:
        return codes
    accuracy = _agreement(grades, codes, n_levels)
    if accuracies is not None:
        given = given_accuracies(accuracies, grades)
        accuracy = np.where(np.isfinite(given), given, accuracy)
    adverse: Bools = (accuracy < 1 / n_levels)[grades.annotator]
    steps = np.empty(len(codes), np.int64)
    # drawn in an order of their own, so the order of the table does not matter
    order = np.lexsort((codes, grades.annotator, grades.item))
    steps[order] = np.random.default_rng(seed).integers(1, n_levels, len(codes))
    return np.where(adverse, (codes + steps) % n_levels, codes).astype(codes.dtype)


def _agreement(grades: Grades, codes: Ints, n_levels: int) -> Floats:
    """Mean share of the other grades of an item that agree with each annotator's, 1 where there are none.

    If errors fall on all other levels alike, and the others are right more often than a guess, the share is below
    one in ``n_levels`` exactly where the annotator's accuracy is.
    """
    weight, cell = grades.row_weight, codes + grades.item.astype(np.int64) * n_levels
    votes = np.bincount(cell, weight, n_levels * grades.n_items)
    others = np.bincount(grades.item, weight, grades.n_items)[grades.item] - weight
    has_others = others > 0
    share = np.divide(votes[cell] - weight, others, out=np.ones(len(codes)), where=has_others)
    total = np.bincount(grades.annotator, np.where(has_others, weight, 0.0), grades.n_annotators)
    agreed = np.bincount(grades.annotator, np.where(has_others, weight * share, 0.0), grades.n_annotators)
    # a share of exactly 1 / n_levels is a guess, whatever the order of the sums
    mean: Floats = np.divide(agreed, total, out=np.ones(grades.n_annotators), where=total > 0)
    return mean.round(12)
