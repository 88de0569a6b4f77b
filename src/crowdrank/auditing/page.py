"""The audit as one page: the verdicts, the figures, what programs get wrong, and what to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ..report.drawing import BLUE, GREEN, GREY, ORANGE, RowsDisplay, name_rows
from ..report.page import Column, Section, Table, headline, origin, picture, render_page
from ..review.findings import Finding
from ..wording import counted

if TYPE_CHECKING:
    from .program_audit import Audit

_SEVERITY = {"yes": "good", "no": "problem", "undecided": "warning"}
_DIGITS = 3
_MAX_LINES = 24
_COLOURS = {"yes": GREEN, "no": ORANGE, "undecided": GREY, "people alone": GREY, "the program alone": ORANGE,
            "corrected": BLUE}  # fmt: skip
_UNSEEN = ("sentence", "spread", "p_worse", "share_lost", "weight", "labels_to_halve_alone")
"""Columns that a reader of the page does without; JSON and tables have them."""


class IntervalsDisplay(RowsDisplay):
    """A value with its interval in each row, coloured by what it is; rows of one name stand together.

    ``table`` has name, value, lower, upper (null for none) and mark.
    """

    width, margin, min_lines = 7.2, 1.2, 2

    def __init__(self, table: pl.DataFrame, label: str, line: float | None = None) -> None:
        self.table, self.label, self.line = table, label, line

    def _draw(self) -> None:
        """Draw on the axes."""
        for row, one in enumerate(self.table.iter_rows(named=True)):
            colour = _COLOURS[one["mark"]]
            if one["lower"] is not None:
                self.ax_.plot([one["lower"], one["upper"]], [row, row], color=colour, linewidth=1.8)
            self.ax_.plot(one["value"], row, "o", color=colour, markersize=6)
        for mark in self.table["mark"].unique(maintain_order=True):
            self.ax_.plot([], [], "o", color=_COLOURS[mark], label=mark)
        names = self.table.with_columns(first=pl.col("name").is_first_distinct())
        name_rows(self.ax_, names.select(pl.when("first").then("name").otherwise(pl.lit(""))).to_series().to_list())
        if self.line is not None:
            self.ax_.axvline(self.line, color=GREY, linewidth=1, linestyle="--")
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(self.label)
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


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
                 [("People", found.people)], pictures=_verdict_picture(found)),
        _section("quality", "Against the consensus", "How good each program is by the consensus of people alone",
                 [("Programs", programs), ("Labels of people beside each of a program", _matrix(found.confusion))]),
        _section("figures", "Figures", _figures_heading(found), [("Figures", found.corrected)],
                 ("People alone, the program alone, and corrected by prediction-powered inference: the corrected "
                  "interval holds however bad the program is.",), _figures_picture(found)),
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
    key: str, kicker: str, heading: str, tables: list[tuple[str, pl.DataFrame]], sentences: tuple[str, ...] = (),
    pictures: tuple[Any, ...] = (),
) -> Section | None:  # fmt: skip
    """A part of the page with its tables; ``None`` where they are empty."""
    shown = [
        Table.of(f"{key}-{number}", caption, frame, _columns(frame))
        for number, (caption, frame) in enumerate(tables)
        if len(frame)
    ]
    return Section(key, kicker, heading, sentences, pictures, tuple(shown)) if shown else None


def _verdict_picture(found: Audit) -> tuple[Any, ...]:
    """How often each program is as good as a person, coloured by the verdict."""
    rows = [(_of_criterion(row, "program"), row["advantage"], row["low"], row["high"], row["verdict"])
            for row in found.programs.drop_nulls("advantage").head(_MAX_LINES).iter_rows(named=True)]  # fmt: skip
    said = "How often a program agrees with the other people as well as a person does, or better."
    return _picture(rows, "share of items on which it is as good or better", said, "advantage", 0.5)


def _figures_picture(found: Audit) -> tuple[Any, ...]:
    """The figures in three ways, those that the programs sharpen most first."""
    table = found.corrected
    if not len(table) or (table["n_program"] <= table["n_people"]).all():
        return ()
    rows = []
    for row in table.sort("relative_width").head(_MAX_LINES // 3).iter_rows(named=True):
        name = f"{_of_criterion(row, 'figure')}, {row['program']}"
        rows += [(name, row["people"], row["people_lower"], row["people_upper"], "people alone"),
                 (name, row["program_says"], None, None, "the program alone"),
                 (name, row["corrected"], row["lower"], row["upper"], "corrected")]  # fmt: skip
    return _picture(rows, "figure", "Figures by people alone, by the program alone, and corrected.", "corrected")


def _picture(rows: list[Any], label: str, caption: str, key: str, line: float | None = None) -> tuple[Any, ...]:
    """A picture of values with intervals."""
    schema = {"name": pl.String, **dict.fromkeys(("value", "lower", "upper"), pl.Float64), "mark": pl.String}
    return (picture(IntervalsDisplay(pl.DataFrame(rows, schema=schema, orient="row"), label, line), caption, key),)


def _matrix(confusion: pl.DataFrame) -> pl.DataFrame:
    """Labels of people as columns, shares of each label of a program."""
    if not len(confusion):
        return confusion
    keys = [name for name in ("criterion", "program", "program_says") if name in confusion.columns]
    shares = confusion.with_columns(pl.col("n_items") / pl.col("n_items").sum().over(keys))
    wide = shares.pivot("people_say", index=keys, values="n_items", sort_columns=True).sort(keys)
    return wide.with_columns(pl.exclude(keys).fill_null(0.0)).rename({
        name: f"people say {name}" for name in wide.columns if name not in keys
    })  # fmt: skip


def _columns(frame: pl.DataFrame) -> tuple[Column, ...]:
    """The columns of a table, numbers with their decimals."""
    return tuple(
        Column(name, name.replace("_", " "), _DIGITS if dtype.is_float() else 0 if dtype.is_integer() else None)
        for name, dtype in frame.schema.items()
        if name not in _UNSEEN and frame[name].null_count() < len(frame)
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
