"""Every study by name: what it reproduces, the data it needs, how long it takes; read from ``catalog.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from crowdrank.errors import UnknownNameError
from crowdrank.wording import did_you_mean

from .outcomes import Outcome
from .work import Work

CORES = 2
"""Cores of the machine that minutes were measured on; it had other work besides."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study.

    Parameters
    ----------
    name, title
        Its name, and what it reproduces.
    reference
        Key of the paper in docs/references.md.
    home
        The function that runs it, as ``module:function``.
    protocol
        What is done, in words.
    data
        Names of the data sets it needs.
    minutes
        Scope -> minutes it took, as measured on a machine of ``CORES`` cores.
    takes_pages
        Whether it works on a folder of web pages too.
    """

    name: str
    title: str
    reference: str
    home: str
    protocol: str
    data: tuple[str, ...] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)
    takes_pages: bool = False

    def run(self, work: Work) -> Outcome:
        """Do the work."""
        module, _, function = self.home.partition(":")
        run_study: Callable[[Work], Outcome] = getattr(import_module(f".{module}", __package__), function)
        return run_study(work)


def study(name: str) -> Study:
    """Return a study by name, or say which known one is nearest."""
    plain = name.strip().lower().replace("_", "-")
    if plain in STUDIES:
        return STUDIES[plain]
    hint = did_you_mean(plain, STUDIES)
    raise UnknownNameError(f"there is no study {name!r}; {hint}known: {', '.join(STUDIES)}")


_CATALOG = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

STUDIES = {
    name: Study(**{"name": name, **entry, "data": tuple(entry.get("data", ()))}) for name, entry in _CATALOG.items()
}
