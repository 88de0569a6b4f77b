"""Measures of clutter as annotators who rank pages."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

from ...data.judgments import Rankings
from ...errors import DataWarning, JudgmentError
from ...protocols import Bools, Floats
from ...wording import first_few
from ..raw_items import RawItems
from .page_features import N_MEASURES
from .screen import MEASURES

_BLANK_SPREAD = 3.0
"""Standard deviation of the pixels up to which a page shows nothing."""


def clutter_rankings(items: RawItems, measured: Floats) -> Rankings:
    """Return a ranking of the pages of each query by each measure, the least cluttered first.

    ``measured`` has a row per page: the measures, the spread of the pixels, and a number that equal pictures share.
    """
    keep = worth_ranking(items, measured)
    if keep.sum() < 2:
        raise JudgmentError("fewer than two pages show something, so there is nothing to rank; give more pages")
    frame = items.items.frame().with_columns(
        pl.Series(name, measured[:, place]) for place, name in enumerate(MEASURES[:N_MEASURES])
    )
    ids = [name for name in ("query", "item") if name in frame.columns]
    long = frame.filter(keep).unpivot(MEASURES, index=ids, variable_name="annotator", value_name="clutter")
    groups = [name for name in ("query", "annotator") if name in long.columns]
    ranked = long.with_columns(rank=pl.col("clutter").rank("min").over(groups).cast(pl.Int64)).drop("clutter")
    return Rankings.from_frame(ranked)


def worth_ranking(items: RawItems, measured: Floats) -> Bools:
    """Return which pages are neither blank nor look like an earlier one."""
    blank = measured[:, N_MEASURES] <= _BLANK_SPREAD
    _, first = np.unique(measured[:, N_MEASURES + 1], return_index=True)
    repeated = ~np.isin(np.arange(len(measured)), first) & ~blank
    for which, what in ((blank, "show nothing"), (repeated, "look like another page")):
        if which.any():
            names = first_few([items.raw[row].name for row in np.flatnonzero(which)])
            warnings.warn(
                f"{int(which.sum()):,} of {len(measured):,} pages {what} and are not ranked: {names}",
                DataWarning,
                stacklevel=4,
            )
    return ~blank & ~repeated
