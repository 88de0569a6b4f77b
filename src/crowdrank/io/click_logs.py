"""Logs of clicks from files and frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..data.clicks import Clicks
from .sources import blaming
from .tables import read_table


def read_clicks(data: Any, *, columns: Mapping[str, str] | None = None) -> Clicks:
    """Return a log of clicks: query, item, position (1 is the first), clicked, and impression where it is known.

    Parameters
    ----------
    data
        A frame, or the name of a CSV, Parquet or JSON file.
    columns
        Column names of words that are not understood by themselves, such as ``{"position": "slot_nr"}``.

    Examples
    --------
    >>> read_clicks({"query": ["q", "q"], "item": ["x", "y"], "rank": [1, 2], "click": [True, False]})
    Clicks(2 rows, 1 click, 1 query)
    """
    if isinstance(data, Clicks):
        return data
    if not isinstance(data, str | os.PathLike):
        return Clicks.from_frame(data, columns=dict(columns or {}))
    with blaming(str(data)):
        return Clicks.from_frame(read_table(data), columns=dict(columns or {}))
