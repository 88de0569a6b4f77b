"""The five papers: everything in them, where it is in the package, and what is wrong in print."""

from __future__ import annotations

from crowdrank.errors import UnknownNameError
from crowdrank.wording import did_you_mean

from . import gupta, kumar, niu, wu, yang
from .entries import KINDS, Entry, Erratum, Paper, find_symbol

PAPERS: dict[str, Paper] = {one.PAPER.name: one.PAPER for one in (wu, kumar, gupta, niu, yang)}


def paper(name: str) -> Paper:
    """Return a paper by its first author, or by its key in the references."""
    plain = name.strip().lower()
    for known in PAPERS.values():
        if plain in (known.name, known.reference.lower()):
            return known
    raise UnknownNameError(f"there is no paper {name!r}; {did_you_mean(plain, PAPERS)}known: {', '.join(PAPERS)}")


__all__ = ["KINDS", "PAPERS", "Entry", "Erratum", "Paper", "find_symbol", "paper"]
