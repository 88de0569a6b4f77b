"""``--report`` and ``--fail-if``: what ``aggregate`` does besides writing a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ParameterError
from ..registry import resolve
from .outputs import report_written
from .running import FAILED, command_line
from .talk import complain
from .votes import column_names
from .words import split_list

if TYPE_CHECKING:
    from ..review.conditions import Condition
    from ..review.facts import Facts
    from .options import Reading
    from .talk import Talk

Report = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a report there for any browser: ranking, annotators, agreement; --items adds text and links.",
        rich_help_panel="Output",
    ),
]
Compared = Annotated[
    str | None,
    typer.Option(
        "--compare", metavar="LIST", help="Methods to compare in the report; all for all that fit.",
        rich_help_panel="Output",
    ),
]  # fmt: skip
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if this holds, such as 'quality<0.6' or 'alpha<0.2 and n_suspects>3'; repeatable.",
        rich_help_panel="Output",
    ),
]


class Conditions:
    """What a command fails on; a condition that cannot be read is refused before any work."""

    def __init__(self, texts: Sequence[str] | None) -> None:
        self.texts = list(texts or ())
        self.parsed: list[tuple[tuple[Condition, ...], ...]] = []
        if self.texts:
            from ..review.conditions import parse_condition

            self.parsed = [parse_condition(text) for text in self.texts]

    def sentences_that_hold(self, facts: Facts) -> list[str]:
        """Return those that hold, with what they hold of."""
        if not self.parsed:
            return []
        from ..review.conditions import check

        outcomes = [check(one, facts) for one in self.parsed]
        return [outcome.sentence for outcome in outcomes if outcome.holds]


def leave_if(holding: Sequence[str]) -> None:
    """Leave with the code for a condition that holds, and say which."""
    if holding:
        complain(f"--fail-if: {'; '.join(holding)}")
        raise typer.Exit(FAILED)


def check_report(report: str | None, compared: str | None) -> None:
    """Refuse, before any work, what cannot be made."""
    if report == "-":
        raise ParameterError("a report is a file to open in a browser; give --report a name, such as report.html")
    if report is not None and PurePath(report).suffix.lower() not in ("", ".html", ".htm"):
        raise ParameterError(
            f"--report writes a page for browsers, not {PurePath(report).suffix}; give it a name that ends in .html, "
            "which a browser can print as PDF"
        )
    if compared is not None and report is None:
        raise ParameterError("--compare adds a section to the report; give --report FILE.html too, or use compare")
    for name in () if compared in (None, "all") else split_list(compared) or ():
        resolve("aggregator", name)


def write_report(
    facts: Facts, report: str, votes: Sequence[str], reading: Reading, compared: str | None, seed: int, talk: Talk,
    *, title: str | None = None,
) -> None:  # fmt: skip
    """Write the report of a consensus; text and links of items come from --items, else from the votes themselves."""
    from .. import report as reports
    from ..api import compare_methods
    from ..io.features import describe_votes

    comparison: Any = None
    if compared is not None:
        with talk.working("comparing methods") as progress:
            methods = None if compared == "all" else split_list(compared)
            comparison = compare_methods(facts.judgments, methods, seed=seed, progress=progress)
    with talk.working("writing the report"):
        about: Any = None if reading.items == "-" else reading.items
        if about is None:
            about = describe_votes(votes, reading.kind, column_names(reading.column))
        reports.write(
            facts.reviewed_consensus, facts.judgments, report, items=about, comparison=comparison,
            command=command_line(), title=title,
        )  # fmt: skip
    report_written(report, talk)
