"""The audit as one page: the verdicts, the figures, what programs get wrong, and what to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ..report.page import Column, Section, Table, headline, origin, render_page
from ..review.findings import Finding
from ..wording import counted

if TYPE_CHECKING:
    from .program_audit import Audit

_SEVERITY = {"yes": "good", "no": "problem", "undecided": "warning"}
_DIGITS = 3


def render_audit(found: Audit, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page of an audit."""
    programs = found.programs
    number = {verdict: int((programs["verdict"] == verdict).sum()) for verdict in _SEVERITY}
    n_items = int(programs["n_items"].max() or 0)  # type: ignore[arg-type]
    cards = [(f"{len(programs):,}", "programs"), (f"{found.n_people:,}", "people"), (f"{n_items:,}", "common items")]
    cards += [(f"{number[word]:,}", said) for word, said in (("yes", "may"), ("no", "may not"), ("undecided",) * 2)]
    findings = [Finding("verdict", "annotators", _SEVERITY[row["verdict"]], row["sentence"], {}, (row["program"],))
                for row in programs.iter_rows(named=True)]  # fmt: skip
    findings += [Finding("habit", "annotators", "info", text) for text in found.habits]
    sections = [
        _section("test", "The test", "How often each program agrees with people as well as a person does",
                 [("People", found.people)]),
        _section("quality", "Against the consensus", "How good each program is by the consensus of people alone",
                 [("Programs", programs.drop("sentence")), ("What people say beside each program", found.confusion)]),
        _section("figures", "Figures", _figures_heading(found), [("Figures", found.corrected)],
                 ("People alone, the program alone, and corrected by prediction-powered inference: the corrected "
                  "interval holds however bad the program is.",)),
        _section("leaderboard", "Leaderboard", "Ranks by people, by the program, and with its help",
                 [("Ranks", found.leaderboard)]),
        _section("slices", "Parts", _slices_heading(found), [("Parts", found.slices)]),
        _section("items", "Disagreements", "Items on which programs and people differ most",
                 [("Items", found.disagreements)]),
        _section("next", "What to ask next", f"{counted(len(found.next_labels), 'label')} of people to buy, best first",
                 [("Labels", found.next_labels)]),
    ]  # fmt: skip
    facts = [("test", f"alternative annotator test, margin {found.margin:g}, false discoveries at most .05"),
             ("intervals", f"{100 * found.level:g} %"), *origin()]  # fmt: skip
    commands = (command,) if command else ()
    making = Section("making", "How this was made", "How this was made", facts=tuple(facts), commands=commands)
    advice = [f"{headline(text)}." for text in _advice(found)]
    return render_page(
        title=title or "May these programs stand in for people?",
        lead=f"{counted(len(programs), 'program')} against {counted(found.n_people, 'person')}, by {found.kind}s.",
        cards=cards, summary=f"{number['yes']} of {len(programs)} may stand in for people",
        advice=advice, findings=findings, sections=[*[one for one in sections if one is not None], making],
    )  # fmt: skip


def _section(
    key: str, kicker: str, heading: str, tables: list[tuple[str, pl.DataFrame]], sentences: tuple[str, ...] = ()
) -> Section | None:
    """A part of the page with its tables; ``None`` where they are empty."""
    shown = [
        Table.of(f"{key}-{number}", caption, frame, _columns(frame))
        for number, (caption, frame) in enumerate(tables)
        if len(frame)
    ]
    return Section(key, kicker, heading, sentences, (), tuple(shown)) if shown else None


def _columns(frame: pl.DataFrame) -> tuple[Column, ...]:
    """The columns of a table, numbers with their decimals."""
    return tuple(
        Column(name, name.replace("_", " "), _DIGITS if dtype.is_float() else 0 if dtype.is_integer() else None)
        for name, dtype in frame.schema.items()
    )


def _figures_heading(found: Audit) -> str:
    """The narrowest interval against people alone, in a sentence."""
    if not len(found.corrected):
        return "No figure could be corrected"
    best = found.corrected.sort("relative_width").row(0, named=True)
    figure = headline(_of_criterion(best, "figure"))
    said = f"{figure} is {best['corrected']:.3g} ({best['lower']:.3g} to {best['upper']:.3g})"
    if (found.corrected["n_program"] <= found.corrected["n_people"]).all():
        return f"{said}; people judged all that programs did, so nothing is left to correct"
    width = best["relative_width"]
    return f"{said} with {best['program']}; the interval is {width:.2f} times as wide as that of people alone"


def _of_criterion(row: dict[str, Any], name: str) -> str:
    """What a column of a row names, with its criterion where there are several."""
    return f"{row[name]} ({row['criterion']})" if "criterion" in row else str(row[name])


def _slices_heading(found: Audit) -> str:
    """How many parts differ, in a sentence."""
    if not len(found.slices):
        return "Parts"
    n = int(found.slices["differs"].sum())
    return f"{counted(n, 'part')} of {len(found.slices)} differ clearly" if n else "No part differs clearly"


def _advice(found: Audit) -> list[str]:
    """What to do, in sentences."""
    refused = found.programs.filter(pl.col("verdict") == "no")
    advice = [f"do not report figures by {_of_criterion(row, 'program')} alone; use the corrected ones"
              for row in refused.iter_rows(named=True)]  # fmt: skip
    best = found.corrected
    if len(best):
        best = best.filter(pl.col("labels_to_halve") < pl.col("labels_to_halve_alone"))
    if len(best):
        row = best.sort("labels_to_halve").row(0, named=True)
        advice.append(
            f"{row['labels_to_halve']:,} labels of people with {row['program']} would halve the interval of "
            f"{_of_criterion(row, 'figure')}; people alone need {row['labels_to_halve_alone']:,}"
        )
    return advice
