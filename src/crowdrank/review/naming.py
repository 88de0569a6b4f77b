"""Annotators as they are named in sentences: the first five, then a count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..data.index import Index
from ..data.intake import short
from ..protocols import Counts

SHOWN = 5


class Named(NamedTuple):
    """How many annotators, and who."""

    number: str
    text: str


def listed(annotators: Index, codes: Counts, told: Sequence[str] = ()) -> Named:
    """Return the number of annotators in words, and the first five with what is told of each in brackets.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> listed(Index(pl.Series(["ann", "bob"])), np.array([1]), ["30 of 31 answers"])
    Named(number='1 annotator', text="'bob' (30 of 31 answers)")
    """
    ids = annotators.ids.gather(codes[:SHOWN]).to_list()
    names = [short(name) for name in ids]
    if told:
        names = [f"{name} ({text})" for name, text in zip(names, told, strict=False)]
    number = f"{len(codes):,} annotator" + ("" if len(codes) == 1 else "s")
    return Named(number, joined(names, len(codes)))


def joined(names: Iterable[str], number: int) -> str:
    """Return names with commas, and how many more there are than five."""
    shown = list(names)[:SHOWN]
    return ", ".join([*shown, *([f"{number - SHOWN:,} more"] if number > SHOWN else [])])


def percent(share: float) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> percent(0.256)
    '26 %'
    """
    return f"{share * 100:.0f} %"
