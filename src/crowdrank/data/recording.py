"""Whose order left and right are: that in which an annotator saw two items, or that in which a recorder wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from .coding import LONG

if TYPE_CHECKING:
    from .preferences import Preferences

FEWEST = 20
"""Of fewer answers nothing is said; an annotator with more counts no more than one with this many."""

NEARLY_ALL = 0.95
"""Share of an annotator's answers, or of a file's, on one side that is nearly all."""

_NEARLY_EVERYONE = 0.9
_SLACK = 1 - 1e-9
_FEW_ANNOTATORS = 3
_MIN_ANSWERS = 8
"""Fewest answers; this many coins fall on one side less than once in a hundred times."""

_FEWEST_BOTH = 5
_WITH_THE_SIDE = 0.75


def shown_sides(preferences: Preferences) -> Bools:
    """Return which rows have left and right as the annotator saw them, as far as that is known, (n,).

    Not those known to be written by a recorder, nor any where nearly everybody has all their winners on one side. That
    is how tables of winners and losers are written, and no crowd clicks so. Everybody is 90 % of the annotators, each
    counted by up to 20 answers, and nearly all winners of an annotator are 95 %, or those of all on average; of fewer
    than three annotators, who may all be careless, all winners have to stand on that side. Fewer than eight answers
    may do so by chance.

    Sides are as seen after all where the same pairs were asked in both orders and the answers went with the side in at
    least three of four cases: a recorder would write down one winner twice, and guessing gives one half.
    """
    known = preferences.recorded
    shown: Bools = np.ones(len(preferences), bool) if known is None else ~known
    if not shown.any():
        return shown
    rest = preferences if shown.all() else preferences.select(shown)
    return np.zeros(len(shown), bool) if _one_side_wins(rest) else shown


def _one_side_wins(preferences: Preferences) -> bool:
    """Whether nearly everybody's winners stand on one side, and not because nearly everybody goes by the side."""
    n = max(preferences.n_annotators, 1)
    who = preferences.row_annotator
    right, _, left = _outcome_weights(who, preferences, n).T
    decided = left + right
    busy = decided > 0
    if max(float(decided.sum()), float(np.count_nonzero(preferences.outcome))) < _MIN_ANSWERS:
        return False
    side = left if left.sum() >= right.sum() else right
    several = bool(busy.sum() >= _FEW_ANNOTATORS)
    evidence, share = np.minimum(decided, FEWEST)[busy], side[busy] / decided[busy]
    alike = (
        evidence[share >= _SLACK * (NEARLY_ALL if several else 1.0)].sum() >= _SLACK * _NEARLY_EVERYONE * evidence.sum()
    )
    together = several and evidence @ share >= _SLACK * NEARLY_ALL * evidence.sum()
    return bool(alike or together) and not _goes_with_the_side(preferences, who)


def _goes_with_the_side(preferences: Preferences, who: Ints) -> bool:
    """Whether answers to the same pair by the same annotator mostly change with the sides."""
    low, high = np.minimum(preferences.left, preferences.right), np.maximum(preferences.left, preferences.right)
    pair = low.astype(np.int64) * preferences.n_items + high
    # of very many answers those to some pairs will do
    some = pair % max(-(-len(pair) // LONG), 1) == 0
    chosen = np.flatnonzero(some & (preferences.outcome != 0))
    pair, left, right = pair[chosen], preferences.left[chosen], preferences.right[chosen]
    if preferences.block is not None:
        pair = np.unique(pair, return_inverse=True)[1] * len(preferences.blocks or ()) + preferences.block[chosen]
    pair = np.unique(pair, return_inverse=True)[1]
    cell = np.unique(pair * (int(who.max()) + 1) + who[chosen], return_inverse=True)[1]
    low_won = (preferences.outcome[chosen] > 0) == (left < right)
    weight = preferences.row_weight[chosen]
    for_low, for_high = np.bincount(cell, weight * low_won), np.bincount(cell, weight * ~low_won)
    changed = for_low * for_high
    kept = np.maximum(for_low * (for_low - 1.0) + for_high * (for_high - 1.0), 0.0) / 2.0
    both = int((changed > 0).sum())
    return both >= _FEWEST_BOTH and bool(changed.sum() >= _WITH_THE_SIDE * (changed.sum() + kept.sum()))


def _outcome_weights(who: Ints, preferences: Preferences, n: int) -> Floats:
    """Weight of the answers right, tie and left of each annotator, (n, 3)."""
    if preferences.weight is None:
        return outcome_counts(who, preferences.outcome, n).astype(np.float64)
    cell = who * np.int64(3) + preferences.outcome + 1
    return np.bincount(cell, preferences.weight, 3 * n).astype(np.float64).reshape(n, 3)


def outcome_counts(annotator: Ints, outcome: Outcomes, n: int, *, step: int = 1) -> Counts:
    """Return how often each of ``n`` annotators chose right, tied and chose left, (n, 3); of one block in ``step``."""
    if len(outcome) >= LONG:
        from ..kernels.outcomes import count_outcomes

        return count_outcomes(annotator, outcome, n, step)
    return np.bincount(annotator * np.int64(3) + outcome + 1, minlength=3 * n).reshape(n, 3)
