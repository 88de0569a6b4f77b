"""The five papers: everything in them, where it is in the package, and what is wrong in print; a TOML file each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from crowdrank import registry
from crowdrank.datasets.catalog import entry
from crowdrank.errors import UnknownNameError
from crowdrank.wording import did_you_mean

from ..catalog import study

KINDS = (
    "model",
    "algorithm",
    "baseline",
    "simulation",
    "metric",
    "data set",
    "table",
    "figure",
    "application",
    "outlook",
)
"""Kinds of entries; an outlook is what a paper leaves to others or to later. Claims are those that studies decide."""

METHOD_KINDS = KINDS[:3]

TOLD_BY_CLAIMS = ("table", "figure")
"""Kinds of entries of which the claims tell what differs."""


@dataclass(frozen=True)
class Entry:
    """One thing in a paper.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    name, place
        As the paper calls it, and where it stands there.
    where
        Symbols of the package: ``"aggregator:crowdagg-paper"`` (a method by its family and name), ``"study:wine"``,
        ``"data:pendigits"``, or ``"crowdrank.metrics:rbp"`` (module and attribute); none where it is missing.
    printed
        What the paper says it is.
    changed
        What is different here by default, and why; ``"nothing"`` where nothing is. Of tables and figures the claims
        tell.
    """

    kind: str
    name: str
    place: str
    where: tuple[str, ...]
    printed: str
    changed: str = ""

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind
        assert self.changed or self.kind in TOLD_BY_CLAIMS, f"{self.name}: say what is changed"


@dataclass(frozen=True)
class Erratum:
    """Something that cannot be right as printed: where it stands, what is printed, and why it cannot be."""

    place: str
    printed: str
    derivation: str


@dataclass(frozen=True)
class Paper:
    """A paper: short name, key in docs/references.md, title, its entries, errata and studies."""

    name: str
    reference: str
    title: str
    entries: tuple[Entry, ...]
    errata: tuple[Erratum, ...]
    studies: tuple[str, ...]

    def methods(self) -> list[Entry]:
        """Return models, algorithms and baselines."""
        return [one for one in self.entries if one.kind in METHOD_KINDS]


def find_symbol(symbol: str) -> Any:
    """Return what a symbol of the catalogue stands for, or say that there is no such thing."""
    home, _, name = symbol.partition(":")
    if home in registry.FAMILIES:
        return registry.method_class(home, name)
    if home == "study":
        return study(name)
    if home == "data":
        return entry(name)
    value = getattr(import_module(home), name, None)
    if value is None:
        raise UnknownNameError(f"{home} has no {name!r}, which the catalogue of the papers names")
    return value


def _read(name: str) -> Paper:
    """A paper from its file."""
    content = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
    entries = tuple(Entry(**{**one, "where": tuple(one["where"])}) for one in content["entries"])
    errata = tuple(Erratum(**one) for one in content["errata"])
    return Paper(**{**content, "studies": tuple(content["studies"]), "entries": entries, "errata": errata})


PAPERS = {name: _read(name) for name in ("wu", "kumar", "gupta", "niu", "yang")}


def paper(name: str) -> Paper:
    """Return a paper by its first author, or by its key in the references."""
    plain = name.strip().lower()
    for known in PAPERS.values():
        if plain in (known.name, known.reference.lower()):
            return known
    raise UnknownNameError(f"there is no paper {name!r}; {did_you_mean(plain, PAPERS)}known: {', '.join(PAPERS)}")
