"""``crowdrank inspect``: what each column of a file is taken for, before anything is aggregated."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from .help import examples
from .options import Reading, spread
from .votes import options_of, reading_words

EXAMPLES = examples(
    ("what a file would be read as, and the command to type next", "crowdrank inspect votes.csv"),
    ("the same for programs", "crowdrank inspect export.json --format json"),
    ("with a choice of columns tried out", "crowdrank inspect votes.csv --column item=orig_id"),
)


@spread
def inspect(
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files of judgments, of any tool.", show_default=False)
    ],
    reading: Reading,
    format: Annotated[
        str, typer.Option("--format", metavar="text|json", help="Text for people, or JSON.", rich_help_panel="Output")
    ] = "text",
) -> None:
    """Say what each column is taken for, and what to type next.

    Reads files as aggregate does, without aggregating them. Exits with 0 if all files would be
    read, with 2 if not. E-mails and addresses are never shown.
    """
    from ..io.inspection import inspect as look_at

    if format not in ("text", "json"):
        raise ParameterError(f"--format {format} is not known; choose text or json")
    options, given = options_of(reading), reading_words(reading)
    looks = [look_at(name, options, given=given) for name in files]
    if format == "json":
        plain: Any = [dataclasses.asdict(one) for one in looks]
        typer.echo(json.dumps(plain[0] if len(plain) == 1 else plain, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n\n".join(str(one) for one in looks))
    if not all(one.would_read for one in looks):
        raise typer.Exit(2)
