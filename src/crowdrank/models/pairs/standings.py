"""Scores from the places that items take in an order."""

from __future__ import annotations

import numpy as np

from ...data.index import Items
from ...protocols import Floats, Ints


def place_standings(ranks: Ints, items: Items) -> Floats:
    """Return the standing of each item among the ranked ones of its query, 1 for the first and -1 for the last.

    ``ranks`` (n_items,) count from 1 within a query, equal ones share a place; items with rank 0 have standing 0.
    """
    from ...kernels.standings import ranking_standings

    ranked = np.flatnonzero(ranks)
    query = items.query[ranked]
    order = ranked[np.lexsort((ranks[ranked], query))]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=items.n_queries))])
    standings = np.zeros(len(ranks))
    standings[order] = ranking_standings(ranks[order], bounds)
    return standings
