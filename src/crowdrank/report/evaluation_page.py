"""Runs against a truth as one page: who is better, on which queries, in which slices, and what is unjudged."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..api import Evaluation
from ..data.files import PathLike
from ..data.index import Index, Items
from ..io.features import describe_items
from ..io.output import check_target, write_text
from ..review.findings import Finding
from ..validation.method_comparison import Measured
from ..validation.run_evaluation import Verdict
from ..wording import counted, percent
from .displays import BoundsDisplay, ComparisonDisplay, DifferencesDisplay, SlicesDisplay
from .drawing import short
from .page import Page, Picture, Section, Table, as_sentences, columns_of, headline, picture, provenance

_SHOWN_PAIRS = 3
_SHOWN_QUERIES = 5
_DEPTH = 10
_NAME = 24
"""Letters of a run's name where there is little room."""


def write_evaluation(
    evaluation: Evaluation,
    path: PathLike,
    *,
    items: Any | None = None,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write what :func:`crowdrank.evaluate_runs` found as one page that a browser opens, without a network.

    Parameters
    ----------
    evaluation
        Runs against a truth.
    path
        Name of the file, which is replaced only once the new one is whole.
    items
        A table or file about the items, whose text and links are shown beside their ranks.
    title
        Title of the page.
    command
        The command that makes it, to stand in the page.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from crowdrank.api import evaluate_runs
    >>> truth = {"query": list("aabb"), "item": list("xyxy"), "grade": [1, 0] * 2}
    >>> runs = {name: {**truth, "score": scores} for name, scores in (("old", [0, 1] * 2), ("new", [1, 0] * 2))}
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "runs.html"
    >>> write_evaluation(evaluate_runs(runs, truth, baseline="old"), target)
    >>> target.read_text()[:15]
    '<!DOCTYPE html>'
    """
    check_target(path)
    write_text(render_evaluation(evaluation, items=items, title=title, command=command), path)


def render_evaluation(
    evaluation: Evaluation, *, items: Any | None = None, title: str | None = None, command: str | None = None
) -> str:
    """Return the page that :func:`write_evaluation` writes."""
    all_verdicts, metric = evaluation.verdicts(), evaluation.measures[0].name
    first = [one for one in all_verdicts if one.row["metric"] == metric]
    names, n_queries = list(evaluation.runs), int(evaluation.table["n_queries"].max() or 0)  # type: ignore[arg-type]
    of_title = f"{len(names)} runs compared" if len(names) > 2 else " and ".join(names)
    if len(names) == 1:
        of_title = f"How good {names[0]} is"
    elif evaluation.baseline is not None:
        others = [name for name in names if name != evaluation.baseline]
        of_title = f"{others[0] if len(others) == 1 else f'{len(others)} runs'} against {evaluation.baseline}"
    summary = "What was measured"
    if len(first) == 1:
        summary = first[0].sentence.split(": ")[0]
    elif first:
        clear = sum(one.clear for one in first)
        summary = f"{clear} of {counted(len(first), 'pair')} of runs are clearly different by {metric}"
    return Page(
        title=title or of_title,
        lead=f"{counted(len(names), 'run')} on {counted(n_queries, 'query')}, by "
        f"{', '.join(measure.name for measure in evaluation.measures)}.",
        cards=[(f"{n_queries:,}", "queries"), *_cards(evaluation, all_verdicts)],
        summary=summary,
        advice=as_sentences(_advice(first)),
        findings=_findings(evaluation, all_verdicts),
        sections=[
            _values(evaluation), *_pairs(evaluation, first, items), _slices(evaluation),
            _unjudged_effect(evaluation, first), _provenance_section(evaluation, command),
        ],
    ).render()  # fmt: skip


def _cards(evaluation: Evaluation, all_verdicts: list[Verdict]) -> list[tuple[str, str]]:
    """The numbers that stand on top."""
    metric = evaluation.measures[0].name
    of_metric = evaluation.table.filter(pl.col("metric") == metric)
    cards = [
        ("none" if row["value"] is None else f"{row['value']:.3f}", f"{metric} of {short(row['run'], _NAME)}")
        for row in of_metric.head(_SHOWN_PAIRS).iter_rows(named=True)
    ]
    if len(evaluation.runs) == 2 and all_verdicts and all_verdicts[0].row["difference"] is not None:
        row = all_verdicts[0].row
        cards.append((f"{row['difference']:+.3f}", f"{short(row['run'], _NAME)} less {short(row['other'], _NAME)}"))
        cards.append((f"{row['wins']:,}/{row['losses']:,}/{row['ties']:,}", "wins, losses, ties"))
        cards += [] if row["p_holm"] is None else [(f"{row['p_holm']:.3g}", "p by randomisation")]
    if of_metric["unjudged"].max():
        cards.append((percent(of_metric["unjudged"].max()), "unjudged at most"))  # type: ignore[arg-type]
    return cards


def _findings(evaluation: Evaluation, all_verdicts: list[Verdict]) -> list[Finding]:
    """What there is to say: verdicts, what could overturn them, slices that lose, what was left out."""
    first, findings = evaluation.measures[0].name, []
    for one in all_verdicts:
        severity = ("good" if one.ahead else "problem") if one.clear else "info"
        findings.append(Finding("verdict", "method", severity, one.sentence))
        overturned = one.clear and one.bounds is not None and one.bounds[0] < 0 < one.bounds[1]
        if overturned and one.open_sentence is not None and one.row["metric"] == first:
            findings.append(Finding("unjudged", "items", "warning", one.open_sentence))
    findings += [Finding("slice", "method", "warning", one) for ahead, one in evaluation.slice_sentences() if not ahead]
    findings += [Finding("left_out", "judgments", "info", note) for note in evaluation.notes]
    if not all_verdicts:
        findings.append(Finding("one_run", "method", "info", "only one run: there is nothing to compare it with"))
    return findings


def _advice(first: list[Verdict]) -> list[str]:
    """What to do, in sentences."""
    said = []
    for one in [one for one in first if one.row["difference"]][:_SHOWN_PAIRS]:
        row, more = one.row, ""
        if not one.clear:
            if row["lower"] is not None and row["n_queries"] > 1:
                # from so many on a t test of level .05 finds a difference of this size and spread four times in five
                spread = (row["upper"] - row["lower"]) / 2 / 1.96 * row["n_queries"] ** 0.5
                n = int(max(row["n_queries"], round((2.8 * spread / abs(row["difference"])) ** 2, -1)))
                more = f"; about {n:,} queries would show a difference of this size"
            said.append(f"{row['run']} and {row['other']} need more queries{more}")
        if one.bounds is not None and one.bounds[0] < 0 < one.bounds[1]:
            said.append(f"judge the unjudged items of {row['run']} and {row['other']} before a decision")
    return said


def _values(evaluation: Evaluation) -> Section:
    """The measures of all runs."""
    pictures: list[Picture] = []
    means = []
    for number, measure in enumerate(evaluation.measures):
        rows = evaluation.table.filter(pl.col("metric") == measure.name, pl.col("value").is_not_null())
        rows = rows.sort("value", descending=measure.larger_is_better, maintain_order=True)
        means.append(rows)
        shown = rows.select("value", "lower", "upper", method="run", best=pl.int_range(pl.len()) == 0)
        shown = shown.with_columns(tied=pl.lit(None, pl.Boolean))
        if len(shown):
            of = Measured(measure.name, measure.description, measure.larger_is_better, "truth")
            caption = f"{headline(measure.description)}: mean over queries, with its interval."
            pictures.append(picture(ComparisonDisplay(shown, of), caption, f"measure-{number}", wide=False))
    tables = [Table.of("measures-table", "Measures", evaluation.table, columns_of("measures"))]
    if len(evaluation.comparisons):
        tables.append(Table.of("tests-table", "Paired tests", evaluation.comparisons, columns_of("tests")))
    heading = "; ".join(f"{row['run']} {row['value']:.4f}" for row in means[0].head(4).iter_rows(named=True))
    heading = f"{evaluation.measures[0].name}: {heading}"
    return Section("values", "Measures", heading, (), tuple(pictures), tuple(tables))


def _pairs(evaluation: Evaluation, first: list[Verdict], items: Any | None) -> list[Section]:
    """The first pairs of runs query by query, with the items of the queries that differ most."""
    metric = evaluation.measures[0].name
    sections = []
    for number, one in enumerate(first[:_SHOWN_PAIRS]):
        row = one.row
        if row["difference"] is None:
            continue
        names = [short(row[name], _NAME) for name in ("run", "other")]
        of_pair = evaluation.differences_of(row).sort("difference", "query")
        display = DifferencesDisplay.from_evaluation(evaluation, run=row["run"], other=row["other"], metric=metric)
        caption = f"Difference in {metric} on each query: {short(row['run'])} less {short(row['other'])}."
        columns = columns_of("queries", run=names[0], other=names[1])
        tables = [Table.of(f"queries-{number}", "All queries", of_pair, columns)]
        tables += _extremes(evaluation, row, items, number)
        heading, _, rest = one.sentence.partition(": ")
        words = (" and ".join(names), heading, as_sentences(text for text in (rest, one.open_sentence) if text))
        drawn = picture(display, caption, f"differences-{number}")
        sections.append(Section(f"pair-{number}", *words, (drawn,), tuple(tables)))
    return sections


def _extremes(evaluation: Evaluation, row: dict[str, Any], items: Any | None, number: int) -> list[Table]:
    """A table of items for each of the queries with the largest losses and gains."""
    depth = evaluation.measures[0].parameters.get("k") or _DEPTH
    run, other = (short(row[name], _NAME) for name in ("run", "other"))
    columns, tables = columns_of("query-items", run=run, other=other), []
    for words, part in zip(("loss", "gain"), evaluation.extreme_queries(row, _SHOWN_QUERIES), strict=True):
        for place, one in enumerate(part.iter_rows(named=True)):
            frame = evaluation.items_of_query(one["query"], (row["run"], row["other"]), depth)
            if items is not None and len(frame):
                wanted = Items(Index(pl.Series([one["query"]])), np.zeros(len(frame), np.int32), frame["item"])
                frame = frame.hstack(describe_items(items, wanted))
            of = ("largest", "2nd largest", "3rd largest", "4th largest", "5th largest")[place]
            caption = f"Query {short(one['query'])}, {of} {words}: {one['value']:.3f} against {one['other_value']:.3f}"
            graded = frame["grade"].drop_nulls()
            if (graded != graded.round()).any():
                columns = tuple(replace(one, digits=2) if one.name == "grade" else one for one in columns)
            tables.append(Table.of(f"{words}-{number}-{place}", caption, frame, columns))
    return tables


def _slices(evaluation: Evaluation) -> Section | None:
    """Results within slices of the queries."""
    if evaluation.slices is None or not len(evaluation.slices):
        return None
    metric = evaluation.measures[0].name
    by_slice = evaluation.slice_sentences()
    pictures: list[Picture] = []
    rows = evaluation.slices.filter(pl.col("metric") == metric, pl.col("difference").is_not_null())
    pairs = rows.select("run", "other").unique(maintain_order=True).rows()
    each = itertools.product(pairs[:_SHOWN_PAIRS], rows["by"].unique(maintain_order=True))
    for number, (pair, by) in enumerate(each):
        of = rows.filter(pl.col("by") == by, pl.col("run") == pair[0], pl.col("other") == pair[1])
        caption = f"{short(pair[0])} less {short(pair[1])} by {short(by)}; grey where the difference is not clear."
        pictures.append(picture(SlicesDisplay(of, metric=metric), caption, f"slices-{number}", wide=False))
    heading = headline(by_slice[0][1]) if by_slice else "No slice shows a clear difference"
    rest = as_sentences(one for _, one in by_slice[1:])
    table = Table.of("slices-table", "Slices", evaluation.slices, columns_of("tests"))
    return Section("slices", "Slices", heading, rest, tuple(pictures), (table,))


def _unjudged_effect(evaluation: Evaluation, first: list[Verdict]) -> Section | None:
    """How far the items without truth could move the values."""
    sentence = evaluation.unjudged_sentence()
    if sentence is None:
        return None
    metric = evaluation.measures[0].name
    rows = evaluation.table.filter(pl.col("metric") == metric).drop_nulls(["value", "lowest", "highest"])
    caption = "The value as measured, and its bounds over all grades that unjudged items may have."
    pictures = (picture(BoundsDisplay(rows, metric=metric), caption, "bounds"),) if len(rows) else ()
    open_ends = [one.open_sentence for one in first if one.open_sentence]
    of_queries = evaluation.per_query.filter((pl.col("metric") == metric) & (pl.col("unjudged") > 0))
    shown, caption = of_queries.sort("unjudged", descending=True), "Queries with unjudged items"
    table = Table.of("unjudged-table", caption, shown, columns_of("unjudged"), 400_000)
    rest = as_sentences(open_ends[:_SHOWN_PAIRS])
    return Section("unjudged", "Unjudged", headline(sentence), rest, pictures, (table,))


def _provenance_section(evaluation: Evaluation, command: str | None) -> Section:
    """How the page was made."""
    first = next(iter(evaluation.runs.values()))
    made = [
        ("truth", f"{len(first.truth):,} {first.truth.form}{'' if first.truth.form == 'pairs' else 's'}"),
        ("runs", ", ".join(f"{name} ({counted(int(a.ranked.sum()), 'item')})" for name, a in evaluation.runs.items())),
        ("metrics", ", ".join(f"{m.name}: {m.description}" for m in evaluation.measures)),
        ("tests", "paired randomisation over queries (two-sided), Holm's correction by metric; Student's t beside"),
    ]
    return provenance(made, command)
