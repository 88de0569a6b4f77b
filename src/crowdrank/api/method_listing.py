"""The methods there are, as a table, and all there is to know of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import polars as pl

from ..data.showing import Shown, html_table
from ..registry import FAMILIES, Card, card, families_of, names

METHODS = Path(__file__).with_name("methods.csv")
"""The table of all methods."""


@dataclass(frozen=True, eq=False, repr=False)
class Described(Shown):
    """A method in words; its table has a row for each parameter.

    Parameters
    ----------
    cards
        What the registry knows of it, for each family that has a method of this name.
    """

    cards: tuple[Card, ...]

    def __len__(self) -> int:
        return sum(len(one.parameters) for one in self.cards)

    def __repr__(self) -> str:
        return "\n".join(line for one in self.cards for line in _lines(one))

    def _repr_html_(self) -> str:
        """The method in words, and its parameters, for notebooks."""
        return "\n".join(html_table(_lines(one)[0], parameters(one), len(one.parameters)) for one in self.cards)

    def frame(self) -> pl.DataFrame:
        """Return a table of family, parameter, type, default and description."""
        tables = [parameters(one).select(pl.lit(one.family).alias("family"), pl.all()) for one in self.cards]
        return pl.concat(tables)


@overload
def methods(name: None = None) -> pl.DataFrame: ...
@overload
def methods(name: str) -> Described: ...
def methods(name: str | None = None) -> pl.DataFrame | Described:
    """Return a table of all methods, or what there is to know of one.

    Parameters
    ----------
    name
        A method's name or alias; ``None`` lists all: method, family (aggregator, ranker, joint or scheme), kinds (of
        judgment that it takes; features for rankers), summary, aliases and parameters.

    Examples
    --------
    >>> import polars as pl
    >>> methods().filter(pl.col("kinds").str.contains("ranking"), family="aggregator")["method"].to_list()
    ['borda', 'crowd_agg', 'latent_score', 'mallows', 'median_rank', 'plackett_luce']
    >>> methods("mean").frame().row(0, named=True)["parameter"]
    'alpha'
    """
    if name is not None:
        return Described(tuple(card(family, name) for family in families_of(name)))
    # what list_methods gives, kept in a file since it imports every method
    return pl.read_csv(METHODS, infer_schema=False).fill_null("")


def list_methods() -> pl.DataFrame:
    """Return the table of all methods from the methods themselves, for ``docs/make.py``, which keeps it in a file."""
    rows = []
    for one in (card(family, name) for family in FAMILIES for name in names(family)):
        listed = {"kinds": one.kinds, "aliases": one.aliases, "parameters": [p.name for p in one.parameters]}
        row = {"method": one.name, "family": one.family, "summary": plain_marks(one.summary)}
        rows.append(row | {name: ", ".join(words) for name, words in listed.items()})
    return pl.DataFrame(rows).select("method", "family", "kinds", "summary", "aliases", "parameters")


def parameters(card: Card) -> pl.DataFrame:
    """Return the parameters of a method: parameter, type, default and description."""
    rows = [(p.name, p.type, _default(p.default), plain_marks(p.description)) for p in card.parameters]
    schema = dict.fromkeys(("parameter", "type", "default", "description"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def plain_marks(text: str) -> str:
    """Return text without the marks of the documentation's format.

    Examples
    --------
    >>> plain_marks("at most ``k`` times [Elo78]_")
    'at most k times [Elo78]'
    """
    text = re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", text)
    return re.sub(r"\[(\w+)\]_", r"[\1]", text).replace("``", "")


def _lines(card: Card) -> list[str]:
    """A method in lines: what it does, what it takes, its parameters."""
    takes, *more = facts_of_card(card)
    parameters = [f"{p.name}={_default(p.default)}: {plain_marks(p.description)}" for p in card.parameters]
    below = [f"{card.family}, {takes}", *more, *parameters]
    return [f"{card.name}: {plain_marks(card.summary)}", *(f"  {line}" for line in below)]


def facts_of_card(card: Card, *, pages: bool = False) -> list[str]:
    """Return in lines what a method takes, what else it is called and where it is from, with ``pages`` to read on."""
    lines = [f"takes {card.takes}" + (", also without an order" if card.nominal else "")]
    if card.packed:
        lines.append(f"takes {card.packed}{' (docs/scale.md)' if pages else ''}")
    if card.aliases:
        lines.append(f"also called {', '.join(alias + card.settings(alias) for alias in card.aliases)}")
    if card.references:
        lines.append(f"from {', '.join(card.references)}{' (docs/references.md)' if pages else ''}")
    return lines


def _default(value: Any) -> str:
    """A default as it would be written after --set."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
