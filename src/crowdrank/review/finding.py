"""One finding, and all findings of a consensus in the order of the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ..data.intake import short
from ..data.showing import Shown, html_table
from ..errors import ParameterError
from ..wording import SHOWN, either, first_few

SEVERITIES = ("problem", "warning", "info", "good")
"""From what calls for action to what is well."""

ABOUT = ("items", "annotators", "agreement", "judgments", "method")
"""What findings are about, in the order of the report."""

_PLAIN = re.compile(r"(?=.*[^\W\d])[\w.+:/@-]{1,40}")


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing, as a sentence and as data.

    Parameters
    ----------
    kind
        What was found, in one word that stays the same from version to version, such as ``"guessing"``.
    about
        What it is about: ``"items"``, ``"annotators"``, ``"agreement"``, ``"judgments"`` or ``"method"``.
    severity
        ``"problem"``, ``"warning"``, ``"info"`` or ``"good"``.
    sentence
        The finding in words.
    numbers
        The numbers in the sentence, and some behind it, by name.
    ids
        The items, queries or annotators meant, all of them.
    """

    kind: str
    about: str
    severity: str
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    ids: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        assert self.severity in SEVERITIES
        assert self.about in ABOUT

    def plain(self) -> dict[str, Any]:
        """Return the finding as values that JSON can hold."""
        return {
            "kind": self.kind,
            "about": self.about,
            "severity": self.severity,
            "sentence": self.sentence,
            "numbers": {key: value.item() if hasattr(value, "item") else value for key, value in self.numbers.items()},
            "ids": list(self.ids),
        }


class Findings(Shown, Sequence[Finding]):
    """All that was found, in the order of the report.

    Examples
    --------
    >>> found = Findings([Finding("unjudged", "items", "warning", "1 item was never judged: x", {"n": 1}, ("x",))])
    >>> found.of("unjudged").sentence, found.of("guessing")
    ('1 item was never judged: x', None)
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._all = tuple(findings)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, place: Any) -> Any:
        return self._all[place]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._all)

    def __repr__(self) -> str:
        return "\n".join([f"Findings({len(self)})", *(f"  {one.severity}: {one.sentence}" for one in self)])

    def _repr_html_(self) -> str:
        """All findings in words, for notebooks."""
        return html_table(f"Findings({len(self)})", self.frame().select("severity", "about", "sentence"), len(self))

    def about(self, *what: str) -> Findings:
        """Return the findings about items, annotators, agreement, judgments or the method."""
        for one in what:
            if one not in ABOUT:
                raise ParameterError(f"findings are about {either(ABOUT)}, not about {one!r}")
        return Findings(one for one in self if one.about in what)

    def of(self, *kinds: str) -> Finding | None:
        """Return the first finding of one of these kinds, ``None`` where there is none."""
        return next((one for one in self if one.kind in kinds), None)

    def worst_first(self) -> Findings:
        """Return the same findings, those that call for action first."""
        return Findings(sorted(self, key=lambda one: SEVERITIES.index(one.severity)))

    def frame(self) -> pl.DataFrame:
        """Return a table of kind, about, severity, sentence, ids (as text) and numbers (as JSON text)."""
        import json

        rows = [
            {**one.plain(), "ids": [str(i) for i in one.ids], "numbers": json.dumps(one.plain()["numbers"])}
            for one in self
        ]
        words = ("kind", "about", "severity", "sentence", "numbers")
        return pl.DataFrame(rows, schema={**dict.fromkeys(words, pl.String), "ids": pl.List(pl.String)})

    def plain(self) -> list[dict[str, Any]]:
        """Return the findings as values that JSON can hold."""
        return [one.plain() for one in self]


def name_ids(ids: Sequence[Any]) -> str:
    """Return the first five ids in words, then how many more there are; quoted where they are no plain word.

    Examples
    --------
    >>> name_ids(["ann", "bob"]), name_ids(["<b>"]), name_ids(list("abcdefg"))
    ('ann and bob', "'<b>'", 'a, b, c, d, e and 2 more')
    >>> name_ids(["7", "8"])
    "'7' and '8'"
    """
    return first_few([name(one) for one in ids[:SHOWN]], len(ids))


def name(one: Any) -> str:
    """Return one id in words, quoted where it is no plain word."""
    return str(one) if _PLAIN.fullmatch(str(one)) else short(one)
