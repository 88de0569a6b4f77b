"""The audit as one page: the verdicts, the figures, what programs get wrong, and what to ask next."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs

from ..report.colours import BLUE, GREEN, GREY, ORANGE
from ..report.drawing import RowsDisplay, name_rows
from ..report.page import Page, Picture, Section, Table, as_sentences, headline, picture, plain_columns, provenance
from ..review.findings import Finding
from ..review.sentences import fill
from ..wording import counted
from .labels import in_words

if TYPE_CHECKING:
    from .program_audit import Audit

SECTIONS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SEVERITY = {"yes": "good", "no": "problem", "undecided": "warning"}
_MAX_LINES = 24
_MOST_ROWS = 200
"""Rows of a table on the page."""

_COLOURS = {"yes": GREEN, "no": ORANGE, "undecided": BLUE, "a person": GREY}
_COLOURS |= {"people alone": GREY, "the program alone": ORANGE, "corrected": BLUE}
_BOUNDS = {"advantage": ("low", "high"), "corrected": ("lower", "upper")}
"""Columns of the ends of an interval that are not named like their value."""

_UNSEEN = ("sentence", "spread", "p_value", "p_worse", "won", "lost", "share_lost", "weight", "labels_to_halve_alone")
"""Columns that a reader of the page does without; JSON and tables have them."""


class IntervalsDisplay(RowsDisplay):
    """A value with its interval in each row, coloured by what it is; rows of one name stand together.

    ``table`` has name, value, lower, upper (null for none) and mark.
    """

    width, margin, min_lines = 7.2, 1.2, 2

    def __init__(self, table: pl.DataFrame, label: str) -> None:
        self.table, self.label = table, label

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
        self.ax_.grid(axis="x")
        self.ax_.set_xlabel(self.label)
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def render_audit(found: Audit, *, title: str | None = None, command: str | None = None) -> str:
    """Return the page of an audit."""
    programs = found.programs
    number = {verdict: int((programs["verdict"] == verdict).sum()) for verdict in _SEVERITY}
    n_items = int(programs["n_items"].max() or 0)  # type: ignore[arg-type]
    n_programs = programs["program"].n_unique()
    n_criteria = programs["criterion"].n_unique() if "criterion" in programs.columns else 1
    on, each = (f" on {n_criteria} criteria", ", each on one criterion,") if n_criteria > 1 else ("", "")
    undecided = f"; {number['undecided']} not decided" if number["undecided"] else ""
    cards = [(f"{n_programs:,}", "programs"), (f"{found.n_people:,}", "people"), (f"{n_items:,}", "common items")]
    cards += [(f"{number[word]:,}", said) for word, said in (("yes", "may"), ("no", "may not"), ("undecided",) * 2)]
    rows = programs.select("verdict", "sentence", "program").rows()
    findings = [Finding("verdict", "annotators", _SEVERITY[word], said, {}, (who,)) for word, said, who in rows]
    findings += [Finding("habit", "annotators", "info", text) for text in found.habits[:_MAX_LINES]]
    # the narrowest interval against people alone
    figures = "No figure could be corrected"
    if len(found.corrected):
        best = found.corrected.sort("relative_width").row(0, named=True)
        code = "nothing_left" if _nothing_left(found) else "narrowest"
        figures = in_words(code, name=headline(_of_criterion(best, "figure")), **best)
    matrix = {"confusion": _matrix(found.confusion)}
    pictures = {"test": _verdict_picture(found), "figures": _figures_picture(found)}
    sections = []
    for key, one in SECTIONS.items():
        heading = fill(one["heading"], figures=figures, n=len(found.next_labels))
        tables = [(caption, matrix.get(name, getattr(found, name))) for name, caption in one["tables"].items()]
        sections.append(_section(key, one["kicker"], heading, tables, tuple(one["sentences"]), pictures.get(key, ())))
    test = ("test", f"alternative annotator test, margin {found.margin:g}, false discoveries at most .05")
    making = provenance([test, ("intervals", f"{100 * found.level:g} %")], command)
    return Page(
        title=title or "May these programs stand in for people?",
        lead=f"{counted(n_programs, 'program')}{on} against {counted(found.n_people, 'person')}, by {found.kind}s.",
        cards=cards, summary=f"{number['yes']} of {len(programs)}{each} may stand in for people{undecided}",
        advice=as_sentences(_advice(found)), findings=findings,
        sections=[*sections, making],
    ).render()  # fmt: skip


def _section(
    key: str, kicker: str, heading: str, tables: list[Any], sentences: tuple[str, ...], pictures: tuple[Picture, ...]
) -> Section | None:
    """A part of the page with its tables; ``None`` where they are empty."""
    shown = []
    for number, (caption, frame) in enumerate(tables):
        rows = frame.head(_MOST_ROWS)
        # intervals stand beside their values in one column, and who won a comparison in words
        for name in rows.select(cs.numeric()).columns:
            stem = name.removesuffix("_rank")
            low, high = _BOUNDS.get(name, (f"{stem}_lower", f"{stem}_upper"))
            if low in rows.columns and high in rows.columns:
                form = "{:.0f} ({:.0f} to {:.0f})" if name != stem else "{:.3f} ({:.3f} to {:.3f})"
                texts = [None if None in row else form.format(*row) for row in rows.select(name, low, high).iter_rows()]
                rows = rows.with_columns(pl.Series(name, texts, pl.String)).drop(low, high)
        if "won" in rows.columns:
            word = pl.when("won").then(pl.lit("program")).when("lost").then(pl.lit("person")).otherwise(pl.lit("open"))
            rows = rows.with_columns(word.alias("as good or better"))
        columns = plain_columns(rows.drop(_UNSEEN, strict=False))
        more = f": the first {_MOST_ROWS} of {len(frame):,}, JSON has all" if len(frame) > _MOST_ROWS else ""
        if len(rows):
            shown.append(Table.of(f"{key}-{number}", f"{caption}{more}", rows, columns))
    return Section(key, kicker, heading, sentences, pictures, tuple(shown)) if shown else None


def _verdict_picture(found: Audit) -> tuple[Picture, ...]:
    """How often each program agrees as well as a person, coloured by the verdict, and how often people do."""
    rows = []
    keys = [name for name in ("criterion", "program") if name in found.people.columns]
    own = {row[:-1]: row[-1] for row in found.people.group_by(keys).agg(pl.col("person_better").mean()).rows()}
    tested = found.programs.drop_nulls("advantage")
    for row in tested.head(_MAX_LINES // 2).iter_rows(named=True):
        name = _of_criterion(row, "program")
        rows.append((name, row["advantage"], row["low"], row["high"], row["verdict"]))
        rows.append((name, own[tuple(row[key] for key in keys)], None, None, "a person"))
    said, shown = in_words("test"), len(rows) // 2
    said += in_words("test_part", shown=shown, n=len(tested)) if len(tested) > shown else ""
    return _picture(rows, "share of items on which it is as good or better", said, "advantage")


def _figures_picture(found: Audit) -> tuple[Picture, ...]:
    """The figures in three ways, those that the programs sharpen most first; shares and others by themselves."""
    if _nothing_left(found):
        return ()
    table = found.corrected.with_columns(share=pl.max_horizontal("people", "program_says", "corrected") <= 1)
    pictures: tuple[Picture, ...] = ()
    for (share,), part in table.sort("relative_width").group_by("share", maintain_order=True):
        rows = []
        for row in part.head(_MAX_LINES // 3).iter_rows(named=True):
            name = f"{_of_criterion(row, 'figure')}, {row['program']}"
            rows.append((name, row["people"], row["people_lower"], row["people_upper"], "people alone"))
            rows.append((name, row["program_says"], None, None, "the program alone"))
            rows.append((name, row["corrected"], row["lower"], row["upper"], "corrected"))
        said = "Figures by people alone, by the program alone, and corrected."
        pictures += _picture(rows, "figure", said, "corrected-shares" if share else "corrected")
    return pictures


def _nothing_left(found: Audit) -> bool:
    """Whether people judged all that programs did, so that there is nothing to correct."""
    table = found.corrected
    return not len(table) or bool((table["n_program"] <= table["n_people"]).all())


def _picture(rows: list[Any], label: str, caption: str, key: str) -> tuple[Picture, ...]:
    """A picture of values with intervals."""
    schema = {"name": pl.String, **dict.fromkeys(("value", "lower", "upper"), pl.Float64), "mark": pl.String}
    return (picture(IntervalsDisplay(pl.DataFrame(rows, schema=schema, orient="row"), label), caption, key),)


def _matrix(confusion: pl.DataFrame) -> pl.DataFrame:
    """Labels of people as columns, shares of each label of a program."""
    if not len(confusion):
        return confusion
    keys = [name for name in ("criterion", "program", "program_says") if name in confusion.columns]
    shares = confusion.with_columns(pl.col("n_items") / pl.col("n_items").sum().over(keys))
    wide = shares.pivot("people_say", index=keys, values="n_items", sort_columns=True).sort(keys)
    titles = {name: f"people say {name}" for name in wide.columns if name not in keys}
    return wide.with_columns(pl.exclude(keys).fill_null(0.0)).rename(titles)


def _of_criterion(row: dict[str, Any], name: str) -> str:
    """What a column of a row names, with its criterion where there are several."""
    return f"{row[name]} ({row['criterion']})" if "criterion" in row else str(row[name])


def _advice(found: Audit) -> list[str]:
    """What to do, in sentences."""
    refused = found.programs.filter(pl.col("verdict") == "no").group_by("program", maintain_order=True)
    instead = "those of people" if _nothing_left(found) else "the corrected ones"
    advice = []
    for (program,), rows in refused:
        of = f" ({', '.join(rows['criterion'])})" if "criterion" in rows.columns else ""
        advice.append(f"do not report figures by {program}{of} alone; use {instead}")
    best = found.corrected
    if len(best):
        best = best.filter(pl.col("labels_to_halve") < pl.col("labels_to_halve_alone"))
    if len(best):
        row = best.sort("labels_to_halve").row(0, named=True)
        advice.append(in_words("halve", name=_of_criterion(row, "figure"), **row))
    return advice
