"""What a scheme proposes to ask, and who can be asked, at what price and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import counted, first_few, option
from .column_names import assign_columns, could_serve
from .frames import to_frame
from .index import Index, Items, factorize
from .intake import numbers_of, short
from .judged import judged_frame
from .showing import Shown

ANYBODY = -1
"""Annotator of a request that leaves open who is asked."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Requests(Shown):
    """What to ask next, the most urgent first.

    Parameters
    ----------
    scheme
        Name of the scheme.
    items, annotators
        What the codes of items and annotators mean.
    things
        Item codes of what is asked about: ``item``, or ``left`` and ``right``.
    annotator
        Whom to ask, ``ANYBODY`` (-1) where the scheme leaves it open.
    n_more
        Number of judgments asked for, by as many annotators.
    reasons, reason, named, detail
        Reasons in words, the number of each request's reason, and what stands in it in place of ``{}``: first the items
        of the codes ``named``, (n_requests, n), then the numbers ``detail``, (n_requests,) or (n_requests, n).
    costs, gains
        What each request costs, and by how much it is expected to lower what ``measure`` names.
    measure, before
        What expected gains are measured in, and its sum over everything that may be asked about, where there is one.
    notes
        What else the user should know, a sentence each.
    n_unaffordable, n_unworthy, n_nobody
        Judgments that the scheme wants and that are not asked for: for want of money; since their expected gain is not
        worth their price; since nobody is left who has not judged the thing, or has not been asked often enough.
    """

    scheme: str
    items: Items
    annotators: Index
    things: dict[str, Ints]
    annotator: Ints
    n_more: Ints
    reasons: tuple[str, ...]
    reason: Ints
    costs: Floats
    gains: Floats
    measure: str
    before: float | None
    named: Ints | None = None
    detail: Floats | None = None
    notes: tuple[str, ...] = ()
    n_unaffordable: int = 0
    n_unworthy: int = 0
    n_nobody: int = 0

    def __len__(self) -> int:
        return len(self.n_more)

    def __repr__(self) -> str:
        return f"Requests({counted(self.n_judgments, 'judgment')}, cost {self.cost:g}, scheme {self.scheme})"

    @property
    def n_judgments(self) -> int:
        """Number of judgments asked for."""
        return int(self.n_more.sum())

    @property
    def cost(self) -> float:
        """What all requests cost together."""
        return float(self.costs.sum())

    @property
    def expected_gain(self) -> float:
        """By how much all requests together are expected to lower what ``measure`` names."""
        return float(self.gains.sum())

    def frame(self) -> pl.DataFrame:
        """Return a table of query, item (or left, right), annotator, n_more, reason, cost and expected_gain."""
        who = pl.repeat(None, len(self), dtype=pl.String, eager=True)
        if len(self.annotators):
            who = self.annotators.ids.gather(np.maximum(self.annotator, 0)).set(pl.Series(self.annotator < 0), None)
        reasons = pl.Series(self.reasons, dtype=pl.String).gather(self.reason)
        if self.detail is not None and len(self):
            numbers, ids = self.detail.reshape(len(self), -1).tolist(), list[Any]([()] * len(self))
            if self.named is not None:
                ids = list(zip(*(self.items.ids.gather(codes).to_list() for codes in self.named.T), strict=True))
            rows = zip(reasons, ids, numbers, strict=True)
            reasons = pl.Series([words.format(*some, *values) for words, some, values in rows], dtype=pl.String)
        rest = {"annotator": who, "n_more": self.n_more, "reason": reasons}
        return judged_frame(self.items, self.things, {**rest, "cost": self.costs, "expected_gain": self.gains})

    def units(self) -> Counts:
        """Return the place of the request that each judgment asked for belongs to."""
        return np.repeat(np.arange(len(self)), self.n_more)

    def sentence(self) -> str:
        """Return how many requests there are, what they cost and what they are expected to change, in one line."""
        if not len(self):
            why = f"{self.scheme} wants nothing more"
            if self.n_unworthy:
                why = "nothing left is worth its price"
            elif self.n_nobody:
                why = f"nobody is left who could be asked about what {self.scheme} wants; add annotators to the pool"
            elif self.n_unaffordable:
                why = "the budget does not pay for a single judgment; raise it"
            return f"nothing to ask: {why}"
        columns: Any = np.sort(np.stack(list(self.things.values()), axis=1), axis=1)
        about = counted(len(np.unique(columns, axis=0)), "item" if len(self.things) == 1 else "pair")
        # money without decimals where it has none
        cost = f"{self.cost:,.0f}" if self.cost == round(self.cost) else f"{self.cost:,.2f}"
        gain = self.expected_gain
        change = f"{gain:.4g}"
        if self.before:
            change = f"{100 * gain / self.before:.1f} % (from {self.before:.4g} to {self.before - gain:.4g})"
        parts = [f"{counted(self.n_judgments, 'request')} about {about}, cost {cost}"]
        parts.append(f"expected to lower the {self.measure} by {change}")
        if self.n_unaffordable:
            parts.append(f"{self.n_unaffordable:,} more would be wanted beyond the budget")
        if self.n_unworthy:
            parts.append("further judgments are not worth their price")
        if self.n_nobody:
            parts.append(f"nobody is left for {self.n_nobody:,} more")
        return "; ".join(parts)


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
        names = assign_columns(("annotator", "price", "capacity", "group"), table.columns, columns)
        if "annotator" not in names:
            what = f"the table has no annotator column ({could_serve(table.columns, names)})"
            raise JudgmentError(f"{what}; rename the one that holds it to annotator")
        if not len(table):
            raise JudgmentError("the pool has no rows; write one row per annotator")
        (codes,), ids = factorize([table[names["annotator"]]])
        _refuse(codes < 0, codes, ids, "the annotator is blank")
        doubled = ~pl.Series(codes).is_first_distinct().to_numpy()
        _refuse(doubled, codes, ids, "the annotator appears twice; keep one row for each")
        prices = _prices(table, names, price, codes, ids)
        capacity = np.full(len(table), UNLIMITED, np.int64)
        if "capacity" in names:
            values, blank, text = numbers_of(table[names["capacity"]])
            wrong = text | (~blank & ~((values >= 0) & (values == np.floor(values))))
            _refuse(wrong, codes, ids, "the capacity is not a whole number of at least 0; leave it empty for no limit")
            capacity[~blank] = np.minimum(values[~blank], UNLIMITED)
        order = np.argsort(codes)
        return cls(Index(ids), prices[order], capacity[order])


def price_of(price: Price | None, kind: str) -> float:
    """Return the price of one judgment of a kind where nobody has one of their own; 1 by default."""
    if isinstance(price, Mapping) and kind not in price:
        raise ParameterError(f"there is no price for {kind}s; give {option('price', {kind: ...})}, or one for all")
    return _check_price(price[kind] if isinstance(price, Mapping) else price)


def _check_price(price: float | None) -> float:
    """A price that is above 0; 1 where none is given."""
    price = 1.0 if price is None else price
    if not 0 < float(price) < np.inf:
        raise ParameterError(f"{option('price', price)} must be a number above 0")
    return float(price)


def _prices(table: pl.DataFrame, names: dict[str, str], price: Price | None, codes: Any, ids: pl.Series) -> Floats:
    """Price of each row: its own, that of its group, or that of everybody."""
    if "price" in names:
        values, blank, text = numbers_of(table[names["price"]])
        missing = f"the price is missing; give one, or leave the whole column out and set {option('price')}"
        _refuse(blank, codes, ids, missing)
        _refuse(text | ~(values > 0) | ~np.isfinite(values), codes, ids, "the price is not a number above 0")
        return values
    if not isinstance(price, Mapping):
        return np.full(len(table), _check_price(price))
    if "group" not in names:
        what = f"{option('price')} names groups, and the pool has no group column"
        raise ParameterError(f"{what}; add it, or give one price for all")
    groups = table[names["group"]].cast(pl.String).to_list()
    lacking = np.array([group not in price for group in groups])
    _refuse(lacking, codes, ids, f"the price is missing, as {option('price')} names only {', '.join(map(str, price))}")
    return np.array([_check_price(price[group]) for group in groups])


def _refuse(wrong: Bools, codes: Any, ids: pl.Series, what: str) -> None:
    """Say what is wrong in the first rows of the pool for which it is."""
    rows = np.flatnonzero(wrong)
    if not len(rows):
        return
    shown = [f"{row + 1} ({short(ids[int(codes[row])])})" if codes[row] >= 0 else f"{row + 1}" for row in rows[:5]]
    complaint, _, remedy = what.partition("; ")
    where = f"row {first_few(shown, len(rows))} of the pool"
    raise JudgmentError(f"{complaint} in {where}; {remedy or 'correct the pool'}")
