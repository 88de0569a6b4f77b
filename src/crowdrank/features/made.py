"""What the columns of a kind of items come to, before missing values are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from numpy.typing import NDArray

from ..protocols import Floats
from .raw_items import RawItems


@dataclass(frozen=True)
class Made:
    """Items that could be used, their columns (NaN where missing), and what was fitted on the way."""

    items: RawItems
    matrix: Floats
    names: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    measures: Floats | None = None
    """Clutter of pages by each measure, where it was asked for."""
    details: pl.DataFrame | None = None
    """What is kept of each item besides its columns: item [, query] and more."""
