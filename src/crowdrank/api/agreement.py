"""How far annotators agree with each other, whatever kind of judgment they gave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.judgments import Grades, Judgments
from ..metrics.agreement import krippendorff_alpha
from ..protocols import Counts, Floats


@dataclass(frozen=True)
class Agreement:
    """Agreement between annotators.

    Parameters
    ----------
    same
        Share of equal answers among all pairs of answers to the same thing; NaN where nothing was judged twice.
    alpha
        Krippendorff's alpha: 1 is full agreement, 0 what chance would give; nominal for nominal grades, otherwise
        ordinal. NaN where nothing was judged twice or all answers are the same.
    n_shared
        Items, or pairs of items, that were judged at least twice.
    """

    same: float
    alpha: float
    n_shared: int


def agreement(judgments: Judgments) -> Agreement:
    """Return how far annotators agree on items (grades) or on pairs of items (preferences, rankings as preferences).

    Examples
    --------
    >>> from crowdrank.data.judgments import Preferences
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "x", "x"), ("ann", "q", "x", "z", "x")]
    >>> agreement(Preferences.from_rows(rows))
    Agreement(same=1.0, alpha=1.0, n_shared=1)
    """
    level = "ordinal"
    if isinstance(judgments, Grades):
        thing, answer = judgments.item.astype(np.int64), judgments.grade
        level = "nominal" if judgments.nominal else level
    else:
        thing, answer = _pairs(judgments)
    size = np.bincount(thing)
    twice = size > 1
    if not twice.any():
        return Agreement(float("nan"), float("nan"), 0)
    same = _same(thing, answer, size)
    if not isinstance(judgments, Grades):
        # either item may stand first, so each pair counts both ways: chance agreement is then the same for both
        thing, answer = np.append(thing, thing + len(size)), np.append(answer, -answer)
    return Agreement(same, krippendorff_alpha(thing, grade=answer, level=level), int(twice.sum()))


def _pairs(judgments: Judgments) -> tuple[Counts, Floats]:
    """Number of the pair that each preference is about, and its outcome seen from the pair's first item."""
    chosen = judgments.as_preferences()
    swapped = chosen.left > chosen.right
    first, second = np.where(swapped, chosen.right, chosen.left), np.where(swapped, chosen.left, chosen.right)
    key = first.astype(np.int64) * chosen.n_items + second
    if chosen.block is not None:
        block = chosen.block.astype(np.int64)
        key = np.unique(key, return_inverse=True)[1] * (int(block.max(initial=0)) + 1) + block
    outcome = np.where(swapped, -chosen.outcome, chosen.outcome).astype(np.float64)
    return np.unique(key, return_inverse=True)[1], outcome


def _same(thing: Counts, answer: Floats, size: Counts) -> float:
    """Share of equal answers among all pairs of answers to the same thing."""
    values, code = np.unique(answer, return_inverse=True)
    alike = np.unique(thing * len(values) + code, return_counts=True)[1].astype(np.float64)
    return float((alike * (alike - 1)).sum() / (size.astype(np.float64) * (size - 1)).sum())
