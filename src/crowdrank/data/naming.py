"""Items as they are named in sentences: the first five, then a count."""

from __future__ import annotations

import numpy as np

from ..protocols import Bools
from ..wording import SHOWN, first_few
from .index import Items
from .intake import short


def first_ids(items: Items, chosen: Bools) -> str:
    """Return the ids of the first five items chosen, then how many more there are."""
    codes = np.flatnonzero(chosen)
    ids, queries = items.ids.gather(codes[:SHOWN]).to_list(), items.query_ids().gather(codes[:SHOWN]).to_list()
    shown = [short(i) if items.single else f"{short(i)} (query {short(q)})" for i, q in zip(ids, queries, strict=True)]
    return first_few(shown, len(codes))
