"""Where results go: a table for people on a terminal, data for programs everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .. import api, io
from ..errors import ParameterError
from ..options import PICTURES, Option
from .talk import Talk
from .votes import Asked

if TYPE_CHECKING:
    import polars as pl


LEVEL = 0.95
"""Level of intervals where none is asked for."""

_SUMMARY_ROWS, _SUMMARY_DIGITS = 20, 4


def check_options(options: Sequence[Option], asked: Asked) -> None:
    """Refuse, before any work, files that options name, and names that do not suit what is written there."""
    given = {**vars(getattr(asked, "reading", asked)), **vars(asked)}
    named = [(option, given[option.name]) for option in options if option.file]
    read: list[str] = []
    written: list[tuple[Option, str, str]] = []
    for option, name in named:
        if option.file == "result":
            io.format_for(name, given.get("format"))
        if option.file == "in":
            read += [name] if isinstance(name, str) else name if isinstance(name, list) else []
        elif name is not None:
            suffix = PurePath(name).suffix.lower()
            written.append((option, name, suffix))
            if option.file == "table" or (option.file == "figure" and suffix not in PICTURES):
                io.format_for(name, None)
    check_files(read, [name for _, name, _ in written])
    for option, name, suffix in written:
        if option.file == "picture" and suffix not in PICTURES:
            remedy = f"end it in {', '.join(PICTURES)}"
            raise ParameterError(f"{option.flags[0]} {name} is not the name of a picture; {remedy}")
        if option.file == "page" and name == "-":
            raise ParameterError("a report is a file to open in a browser; give --report a name, such as report.html")
        if option.file == "page" and suffix not in ("", ".html", ".htm"):
            remedy = "give it a name that ends in .html, which a browser can print as PDF"
            raise ParameterError(f"--report writes a page for browsers, not {PurePath(name).suffix}; {remedy}")


def check_files(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse, before any work, files that are not there or cannot be written, or whose writing would cost the input."""
    written = [name for name in outputs if name != "-"]
    if inputs.count("-") > 1:
        raise ParameterError("standard input (-) can be read only once; give the other input as a file")
    for name in inputs:
        io.check_source(name)

    def is_same(name: str, other: str) -> bool:
        if other == "-" or name.startswith("/dev/"):
            return False
        if os.path.exists(name) and os.path.exists(other):  # names may differ in case and mean the same
            return os.path.samefile(name, other)
        return os.path.normcase(os.path.realpath(name)) == os.path.normcase(os.path.realpath(other))

    for place, name in enumerate(written):
        io.check_target(name)
        if any(is_same(name, other) for other in inputs):
            raise ParameterError(f"{name} is an input and would be overwritten; choose another name for the result")
        if any(is_same(name, other) for other in written[:place]):
            raise ParameterError(f"two results would be written to {name}; choose another name for one of them")


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

    if for_people(asked.out, asked.format):
        from .terminal_tables import show_frame

        talk.flush()
        show_frame(frame if shown is None else shown(), **layout)
        return
    if sheets is not None and io.format_for(asked.out, asked.format) == "xlsx":
        io.write_sheets(sheets(), asked.out)
    else:
        io.write_table(frame, asked.out, asked.format)
    report_written(asked.out, talk)


def write_wanted(name: str | None, table: Callable[[], pl.DataFrame], talk: Talk) -> None:
    """Write a further table to the file that was named for it, if one was."""
    write_file(name, lambda path: io.write_table(table(), path), talk)


def write_file(name: str | None, write: Callable[[str], Any], talk: Talk) -> None:
    """Write a further file and say so, if one was named."""
    if name is not None:
        write(name)
        report_written(name, talk)


def deliver_consensus(
    consensus: api.Consensus, asked: Asked, talk: Talk, about: Callable[[], tuple[api.Consensus, api.Findings | None]],
    ratings: pl.DataFrame | None = None,
) -> Exception | None:  # fmt: skip
    """Write a consensus, or show its best items where people look on; return what went wrong afterwards, if anything.

    ``about`` looks at the annotators, which may fail or take long, and returns the consensus with its diagnostics and
    what JSON holds besides. A consensus that goes to a file is there before that; JSON and Parquet are then written
    anew, with what was found.
    """

    out, format, level = asked.out, asked.format, asked.level
    people = for_people(out, format)
    holds_all = not people and io.format_for(out, format) in ("json", "parquet")
    if people:
        from .terminal_tables import show_ranking

        talk.flush()
        show_ranking(consensus, level or LEVEL, ratings=ratings)
    elif not holds_all or out not in (None, "-"):
        io.write_consensus(consensus, out, format, level=level, quality=False, ratings=ratings)
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
        io.write_consensus(consensus, out, format, quality=failed is None, level=level, findings=plain, ratings=ratings)
    return failed


def write_summary(
    path: str | None, title: str, frame: pl.DataFrame | None, talk: Talk, holding: Sequence[str] = ()
) -> None:
    """Write what was said, the first rows of a table and what --fail-if found as Markdown, if a file was named."""
    if path is None:
        return

    lines = [f"## {io.in_markdown(title)}", ""]
    if holding:
        lines += [f"**Failed**: {io.in_markdown('; '.join(holding))}", ""]
    lines += [f"{'  ' * below}- {io.in_markdown(line)}" for line, below in talk.sentences()]
    if frame is not None:
        shown = frame.head(_SUMMARY_ROWS)
        lines += ["", io.markdown_table(shown.with_columns(api.round_floats(shown.schema, _SUMMARY_DIGITS)))]
        if len(frame) > len(shown):
            lines += [f"first {len(shown)} of {len(frame):,} rows"]
    io.write_text("\n".join(lines).rstrip() + "\n", path)
    report_written(path, talk)


def report_written(out: str | None, talk: Talk) -> None:
    """Say which file was written."""
    if out not in (None, "-"):
        talk.say(f"wrote {out}")
