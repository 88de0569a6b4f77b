"""Who can be asked for judgments, at what price, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Counts, Floats
from ..wording import first_few, option
from .coding import factorize
from .columns import understand_annotators
from .frames import to_frame
from .index import Index
from .intake import numbers_of, short

UNLIMITED = 2**62
"""Capacity where none is named."""

Price = float | Mapping[str, float]
"""One price for all, or a price for each group of annotators or kind of judgment."""


@dataclass(frozen=True, eq=False)
class Roster:
    """Annotators who can be asked, with the price of one judgment and how many each may still be asked for.

    Parameters
    ----------
    annotators
        Who can be asked.
    price
        What one judgment of each costs.
    capacity
        How many judgments each may be asked for; ``UNLIMITED`` where nothing is said.

    Examples
    --------
    >>> roster = Roster.from_frame({"annotator": ["bob", "ann"], "price": [2, 1], "capacity": [10, None]})
    >>> list(roster.annotators), roster.price.tolist(), roster.capacity.tolist()[1]
    (['ann', 'bob'], [1.0, 2.0], 10)
    """

    annotators: Index
    price: Floats
    capacity: Counts

    def __len__(self) -> int:
        return len(self.annotators)

    @classmethod
    def from_frame(cls, data: Any, *, price: Price | None = None, columns: Mapping[str, str] | None = None) -> Self:
        """Return the roster in a table of annotator [, price] [, capacity] [, group].

        Where the table has no prices, ``price`` is that of everybody (1 by default), or gives the price of each group.
        An empty capacity means that there is no limit.
        """
        table = to_frame(data)
        names = understand_annotators(table.columns, columns)
        if not len(table):
            raise JudgmentError("the pool has no rows; write one row per annotator")
        (codes,), ids = factorize([table[names["annotator"]]])
        _refuse(codes < 0, codes, ids, "the annotator is blank")
        doubled = ~pl.Series(codes).is_first_distinct().to_numpy()
        _refuse(doubled, codes, ids, "the annotator appears twice; keep one row for each")
        prices = _prices(table, names, price, codes, ids)
        capacity = _capacities(table, names, codes, ids)
        order = np.argsort(codes)
        return cls(Index(ids), prices[order], capacity[order])


def price_of(price: Price | None, kind: str) -> float:
    """Return the price of one judgment of a kind where nobody has one of their own; 1 by default."""
    if isinstance(price, Mapping):
        if kind not in price:
            raise ParameterError(f"there is no price for {kind}s; give {option('price', {kind: ...})}, or one for all")
        price = price[kind]
    return _check_price(1.0 if price is None else price)


def _check_price(price: float) -> float:
    """A price that is above 0."""
    if not 0 < float(price) < np.inf:
        raise ParameterError(f"{option('price', price)} must be a number above 0")
    return float(price)


def _prices(table: pl.DataFrame, names: dict[str, str], price: Price | None, codes: Any, ids: pl.Series) -> Floats:
    """Price of each row: its own, that of its group, or that of everybody."""
    if "price" in names:
        values, blank, text = numbers_of(table[names["price"]])
        _refuse(
            blank,
            codes,
            ids,
            "the price is missing; give one, or leave the whole column out and set " + option("price"),
        )
        _refuse(text | ~(values > 0) | ~np.isfinite(values), codes, ids, "the price is not a number above 0")
        return values
    if not isinstance(price, Mapping):
        return np.full(len(table), _check_price(1.0 if price is None else price))
    if "group" not in names:
        raise ParameterError(
            f"{option('price')} names groups, and the pool has no group column; add it, or give one price for all"
        )
    groups = table[names["group"]].cast(pl.String).to_list()
    lacking = np.array([group not in price for group in groups])
    _refuse(lacking, codes, ids, f"the price is missing, as {option('price')} names only {', '.join(map(str, price))}")
    return np.array([_check_price(price[group]) for group in groups])


def _capacities(table: pl.DataFrame, names: dict[str, str], codes: Any, ids: pl.Series) -> Counts:
    """How many judgments each row allows."""
    if "capacity" not in names:
        return np.full(len(table), UNLIMITED, np.int64)
    values, blank, text = numbers_of(table[names["capacity"]])
    wrong = text | (~blank & ~((values >= 0) & (values == np.floor(values))))
    _refuse(wrong, codes, ids, "the capacity is not a whole number of at least 0; leave it empty for no limit")
    return np.where(blank, UNLIMITED, np.where(blank, 0, np.minimum(values, UNLIMITED))).astype(np.int64)


def _refuse(wrong: Bools, codes: Any, ids: pl.Series, what: str) -> None:
    """Say what is wrong in the first rows of the pool for which it is."""
    rows = np.flatnonzero(wrong)
    if not len(rows):
        return
    shown = [f"{row + 1} ({short(ids[int(codes[row])])})" if codes[row] >= 0 else f"{row + 1}" for row in rows[:5]]
    complaint, _, remedy = what.partition("; ")
    remedy = remedy or "correct the pool"
    raise JudgmentError(f"{complaint} in row {first_few(shown, len(rows))} of the pool; {remedy}")
