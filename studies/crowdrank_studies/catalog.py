"""Every study by name: what it reproduces, the data it needs, how long it takes; read from ``catalog.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from crowdrank.errors import UnknownNameError
from crowdrank.wording import did_you_mean

from .outcomes import DECIDED, Outcome, Verdict
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
    proxies
        How a claim begins, ``""`` for any -> what of the paper's data or truth was never published, and what stands in
        for it. Such a claim is not decidable, whatever is seen.
    exact
        How claims begin that printed formulas decide whatever the data, which are excepted.
    """

    name: str
    title: str
    reference: str
    home: str
    protocol: str
    data: tuple[str, ...] = ()
    minutes: Mapping[str, float] = field(default_factory=dict)
    takes_pages: bool = False
    proxies: Mapping[str, str] = field(default_factory=dict)
    exact: tuple[str, ...] = ()

    def run(self, work: Work) -> Outcome:
        """Do the work."""
        module, _, function = self.home.partition(":")
        run_study: Callable[[Work], Outcome] = getattr(import_module(f".{module}", __package__), function)
        return run_study(work)

    def proxy(self, claim: str) -> str | None:
        """Return what a claim lacks and what stands in for it, ``None`` where it can be decided."""
        if claim.startswith(self.exact):
            return None
        return next((missing for begin, missing in self.proxies.items() if claim.startswith(begin)), None)

    def leave_proxies(self, outcome: Outcome) -> Outcome:
        """Return the outcome with claims that rest on a proxy not decidable, what was seen told as ours."""
        left = []
        for one in outcome.verdicts:
            missing = self.proxy(one.claim) if one.verdict in (*DECIDED, "undecided") else None
            left.append(one if missing is None else Verdict(one.claim, "not decidable", f"{missing} {one.reason}"))
        return replace(outcome, verdicts=left)


def study(name: str) -> Study:
    """Return a study by name, or say which known one is nearest."""
    plain = name.strip().lower().replace("_", "-")
    if plain in STUDIES:
        return STUDIES[plain]
    hint = did_you_mean(plain, STUDIES)
    raise UnknownNameError(f"there is no study {name!r}; {hint}known: {', '.join(STUDIES)}")


_CATALOG = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

STUDIES = {
    name: Study(**{"name": name, **entry, "data": tuple(entry.get("data", ())), "exact": tuple(entry.get("exact", ()))})
    for name, entry in _CATALOG.items()
}
