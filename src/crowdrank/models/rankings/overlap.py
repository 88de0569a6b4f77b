"""Whether rankings have enough in common to tell how good annotators are."""

from __future__ import annotations

import warnings

import numpy as np

from ...data.judgments import Rankings
from ...data.pairing import pairs_within
from ...errors import DataWarning
from .mallows_crowd import MallowsCrowd

_LISTED_PAIRS = 20_000_000
"""Where there are more, some will be shared."""


def warn_unidentified(method: str, rankings: Rankings, crowd: MallowsCrowd) -> None:
    """Warn where agreement between rankings cannot tell, or hardly, how good annotators are."""
    n = len(np.unique(crowd.annotator)) if rankings.n_annotators else 0
    if len(crowd.weight) and not shared_pairs(crowd):
        text = "no two rankings share two items, so that nothing tells how good annotators are"
    elif n == 2:
        text = "only two annotators ranked anything, so that little tells which of them is right where they differ"
    else:
        return
    warnings.warn(f"{method}: {text}; have items ranked by more annotators", DataWarning, stacklevel=3)


def warn_few(method: str, rankings: Rankings, crowd: MallowsCrowd) -> None:
    """Warn where little but what features tell says how good annotators are."""
    n = len(np.unique(crowd.annotator)) if rankings.n_annotators else len(crowd.annotator)
    if n <= 2:
        number, what = ("one", "two")[n - 1], "annotator" if rankings.n_annotators else "ranking"
        warnings.warn(
            f"{method}: only {number} {what}{'s' if n > 1 else ''} put items in an order, so that little but the "
            "features tells how good annotators are; have items ranked by more of them",
            DataWarning, stacklevel=3,
        )  # fmt: skip


def shared_pairs(crowd: MallowsCrowd) -> bool:
    """Return whether two rankings put the same two items in an order."""
    lists = crowd.arranged.lists
    length = np.diff(lists.starts)
    query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))
    pairs = np.bincount(query, length * (length - 1) // 2, len(lists.sizes))
    if (pairs > lists.sizes * (lists.sizes - 1) // 2).any() or pairs.sum() > _LISTED_PAIRS:
        return True
    first, second = pairs_within(np.arange(len(lists.item)), np.repeat(lists.starts[1:], length))
    untied = lists.rank[first] != lists.rank[second]
    item = lists.item + lists.offsets[np.repeat(query, length)]
    one, other = item[first[untied]], item[second[untied]]
    keys = np.minimum(one, other) * len(crowd.arranged.item) + np.maximum(one, other)
    return len(np.unique(keys)) < len(keys)
