"""How features were made of raw items, so that the same columns can be made of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Extractor:
    """What makes a row of numbers of a text, a page or a recording; it is saved with the ranker that learns from them.

    Parameters
    ----------
    kind
        ``"text"``, ``"page"`` or ``"speech"``.
    version
        Number that is raised when a column of that kind changes its meaning.
    params
        How the columns are made: plain values by name.
    names
        Names of the columns, in their order.
    facts
        What was fitted that is no array, such as the vocabulary of the columns of words.
    numbers
        What was fitted, as arrays by name: weights, and what is put in the place of missing values.
    """

    kind: str
    version: int
    params: Mapping[str, Any]
    names: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Extractor({self.kind}, version {self.version}, {len(self.names):,} columns)"
