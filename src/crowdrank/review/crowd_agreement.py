"""How far annotators agree with each other, whatever kind of judgment they gave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.judgments import Grades, Judgments
from ..metrics.agreement import krippendorff_alpha
from ..protocols import Counts, Floats
from .self_consistency import things_of


@dataclass(frozen=True)
class Agreement:
    """Agreement between annotators; where nobody is named, each judgment is by somebody else.

    Parameters
    ----------
    same
        Share of equal answers among all pairs of answers to the same thing by different annotators; NaN where there
        are none.
    alpha
        Krippendorff's alpha: 1 is full agreement, 0 what chance would give; nominal for nominal grades, otherwise
        ordinal. NaN where no two annotators judged the same or all answers are the same.
    n_shared
        Items, or pairs of items, that at least two annotators judged.
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
    level = "nominal" if isinstance(judgments, Grades) and judgments.nominal else "ordinal"
    part, (thing, answer, _) = things_of(judgments)
    own = thing * max(part.n_annotators, 1) + part.annotator if part.n_annotators else np.arange(len(thing))
    pairs = _cross_pairs(thing, own)
    n_shared = int((pairs > 0).sum())
    if not n_shared:
        return Agreement(float("nan"), float("nan"), 0)
    code = np.unique(answer, return_inverse=True)[1]
    cells = (values * (int(code.max()) + 1) + code for values in (thing, own))
    same = float(_cross_pairs(*cells).sum() / pairs.sum())
    who = part.annotator if part.n_annotators else None
    if not isinstance(judgments, Grades):
        # either item may stand first, so each pair counts both ways: chance agreement is then the same for both
        thing, answer = np.append(thing, thing + int(thing.max()) + 1), np.append(answer, -answer)
        who = None if who is None else np.append(who, who)
    return Agreement(same, krippendorff_alpha(thing, who, answer, level=level), n_shared)


def _cross_pairs(cell: Counts, own: Counts) -> Floats:
    """Ordered pairs of answers in each cell that are by different annotators, whose part of the cell is ``own``."""
    of, at, size = np.unique(cell, return_inverse=True, return_counts=True)
    first, again = np.unique(own, return_index=True, return_counts=True)[1:]
    inside = np.bincount(at[first], again.astype(np.float64) ** 2, len(of))
    number: Floats = size.astype(np.float64) ** 2 - inside
    return number
