"""How much each annotator may be asked for, where a scheme chooses among them."""

from __future__ import annotations

import numpy as np

from ..data.roster import Roster
from ..protocols import Counts, Ints

_SLACK = 1.25


def even_loads(roster: Roster, order: Ints, share: float, number: int) -> Counts:
    """Return the most judgments of each annotator, where ``number`` are to be bought.

    The first ``share`` of the order (those with any capacity) work about evenly; the rest join, best first, where those
    cannot do it all.
    """
    capacity = np.zeros(len(roster), np.int64)
    order = order[roster.capacity[order] > 0]
    if not len(order):
        return capacity
    best = order[: max(1, int(np.ceil(share * len(order))))]
    even = max(1, int(np.ceil(_SLACK * number / len(best))))
    capacity[best] = np.minimum(roster.capacity[best], even)
    lacking = number - int(capacity.sum())
    for who in order.tolist():
        if lacking <= 0:
            break
        more = min(int(roster.capacity[who] - capacity[who]), lacking)
        capacity[who] += more
        lacking -= more
    return capacity
