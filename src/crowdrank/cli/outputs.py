"""Where results go: a table for people on a terminal, data for programs everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .. import io
from ..errors import ParameterError
from .talk import Talk
from .votes import Asked

if TYPE_CHECKING:
    import polars as pl

    from ..data.consensus import Consensus
    from ..review.findings import Findings

LEVEL = 0.95
"""Level of intervals where none is asked for."""

_SUMMARY_ROWS, _SUMMARY_DIGITS = 20, 4


def check_files(
    inputs: Sequence[str | None],
    outputs: Sequence[str | None],
    *,
    format: str | None = None,
    tables: Sequence[str | None] = (),
) -> None:
    """Refuse, before any work, files that are not there or cannot be written, or whose writing would cost the input.

    ``format`` is that of the first output; ``tables`` are those of the others whose name says the format.
    """
    from ..io.output import check_target, format_for
    from ..io.sources import check_source

    format_for(outputs[0] if outputs else None, format)
    for table in tables:
        format_for(table, None)
    read = [name for name in inputs if name is not None]
    written = [name for name in outputs if name is not None and name != "-"]
    if read.count("-") > 1:
        raise ParameterError("standard input (-) can be read only once; give the other input as a file")
    for name in read:
        check_source(name)

    def is_same(name: str, other: str) -> bool:
        if other == "-" or name.startswith("/dev/"):
            return False
        if os.path.exists(name) and os.path.exists(other):  # names may differ in case and mean the same
            return os.path.samefile(name, other)
        return os.path.normcase(os.path.realpath(name)) == os.path.normcase(os.path.realpath(other))

    for place, name in enumerate(written):
        check_target(name)
        if any(is_same(name, other) for other in read):
            raise ParameterError(f"{name} is an input and would be overwritten; choose another name for the result")
        if any(is_same(name, other) for other in written[:place]):
            raise ParameterError(f"two results would be written to {name}; choose another name for one of them")


def check_report(report: str | None) -> None:
    """Refuse, before any work, a report that no browser opens."""
    if report == "-":
        raise ParameterError("a report is a file to open in a browser; give --report a name, such as report.html")
    if report is not None and PurePath(report).suffix.lower() not in ("", ".html", ".htm"):
        raise ParameterError(
            f"--report writes a page for browsers, not {PurePath(report).suffix}; give it a name that ends in .html, "
            "which a browser can print as PDF"
        )


def check_picture(name: str | None, option: str) -> None:
    """Refuse, before any work, a picture whose name does not say its format."""
    if name is None:
        return
    from ..report.drawing import PICTURES, picture_format

    if picture_format(name) is None:
        raise ParameterError(f"{option} {name} is not the name of a picture; end it in {', '.join(PICTURES)}")


def for_people(out: str | None, format: str | None) -> bool:
    """Return whether a result goes to a terminal as a table for people."""
    if out not in (None, "-") or not sys.stdout.isatty():
        return False
    if format == "parquet":
        raise ParameterError("a terminal cannot show parquet; give a file with --out, or choose --format csv")
    return format is None


def deliver(
    frame: pl.DataFrame, asked: Asked, talk: Talk, shown: Callable[[], pl.DataFrame] | None = None, *,
    sheets: Callable[[], dict[str, pl.DataFrame]] | None = None, **layout: Any,
) -> None:  # fmt: skip
    """Write a table, as one of several sheets into a workbook; where people look on, show it, or what is ``shown``."""
    from ..io.output import format_for, write_sheets

    if for_people(asked.out, asked.format):
        from .terminal_tables import show_frame

        talk.flush()
        show_frame(frame if shown is None else shown(), **layout)
        return
    if sheets is not None and format_for(asked.out, asked.format) == "xlsx":
        write_sheets(sheets(), asked.out)
    else:
        io.write_table(frame, asked.out, asked.format)
    report_written(asked.out, talk)


def write_wanted(name: str | None, table: Callable[[], pl.DataFrame], talk: Talk) -> None:
    """Write a further table to the file that was named for it, if one was."""
    if name is None:
        return

    io.write_table(table(), name)
    report_written(name, talk)


def deliver_consensus(
    consensus: Consensus, asked: Asked, talk: Talk, about: Callable[[], tuple[Consensus, Findings | None]],
    ratings: pl.DataFrame | None = None,
) -> Exception | None:  # fmt: skip
    """Write a consensus, or show its best items where people look on; return what went wrong afterwards, if anything.

    ``about`` looks at the annotators, which may fail or take long, and returns the consensus with its diagnostics and
    what JSON holds besides. A consensus that goes to a file is there before that; JSON and Parquet are then written
    anew, with what was found.
    """
    from ..io.output import format_for
    from ..io.results import write_consensus

    out, format, level = asked.out, asked.format, asked.level
    people = for_people(out, format)
    holds_all = not people and format_for(out, format) in ("json", "parquet")
    if people:
        from .terminal_tables import show_ranking

        talk.flush()
        show_ranking(consensus, level or LEVEL, ratings=ratings)
    elif not holds_all or out not in (None, "-"):
        write_consensus(consensus, out, format, level=level, quality=False, ratings=ratings)
        if out not in (None, "-"):
            report_written(out, talk)
            talk.flush()
    findings, failed = None, None
    try:
        consensus, findings = about()
    except Exception as error:
        failed = error
    if holds_all and (failed is None or out in (None, "-")):
        plain = None if findings is None else findings.plain()
        write_consensus(consensus, out, format, quality=failed is None, level=level, findings=plain, ratings=ratings)
    return failed


def write_summary(
    path: str | None, title: str, frame: pl.DataFrame | None, talk: Talk, holding: Sequence[str] = ()
) -> None:
    """Write what was said, the first rows of a table and what --fail-if found as Markdown, if a file was named."""
    if path is None:
        return
    from ..data.showing import round_floats
    from ..io.output import in_markdown, markdown_table, write_text

    lines = [f"## {in_markdown(title)}", ""]
    if holding:
        lines += [f"**Failed**: {in_markdown('; '.join(holding))}", ""]
    lines += [f"{'  ' * below}- {in_markdown(line)}" for line, below in talk.sentences()]
    if frame is not None:
        shown = frame.head(_SUMMARY_ROWS)
        lines += ["", markdown_table(shown.with_columns(round_floats(shown.schema, _SUMMARY_DIGITS)))]
        if len(frame) > len(shown):
            lines += [f"first {len(shown)} of {len(frame):,} rows"]
    write_text("\n".join(lines).rstrip() + "\n", path)
    report_written(path, talk)


def report_written(out: str | None, talk: Talk) -> None:
    """Say which file was written."""
    if out not in (None, "-"):
        talk.say(f"wrote {out}")
