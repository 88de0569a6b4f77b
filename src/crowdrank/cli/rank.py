"""``crowdrank rank``: items by a trained ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..wording import counted
from .help import examples
from .options import Format, Out, Quiet
from .outputs import check_files, deliver, report_written
from .talk import Talk

EXAMPLES = examples(
    ("score and rank items by a model of crowdrank train", "crowdrank rank model features.csv -o ranks.csv"),
    ("as a TREC run", "crowdrank rank model test.txt -o test.run"),
    ("texts, pages or recordings, by a model that learned from such", "crowdrank rank model new.csv --of text"),
    ("straight into a measure", "crowdrank rank model test.txt | crowdrank evaluate - truth.csv"),
)

_RAW = "Raw items"


def rank(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="What crowdrank train wrote.", show_default=False)],
    features: Annotated[
        str,
        typer.Argument(
            metavar="FEATURES",
            help="Query, item and the numbers it was trained on, or LETOR; or raw items as for crowdrank features.",
            show_default=False,
        ),
    ],
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="text|page|speech", help="What raw items are; by default found from the table."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="COLUMN|folder", help="The column of the query, or folder.", rich_help_panel=_RAW
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", help="Processes; -1 for one per core.", rich_help_panel=_RAW)
    ] = 1,
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="DIR", help="Keep the row of each item there.", rich_help_panel=_RAW),
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", metavar="stop|skip", help="What to do about files that cannot be read.", rich_help_panel=_RAW
        ),
    ] = "stop",
    encoding: Annotated[
        str,
        typer.Option("--encoding", metavar="NAME", help="How characters of texts are stored.", rich_help_panel=_RAW),
    ] = "utf-8",
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Rank items, judged or not, by a trained ranker.

    Writes query, item, score and rank, best first; a TREC run where FILE ends in .run.
    """
    import polars as pl

    from .. import api
    from ..errors import ParameterError
    from ..io.output import write_run
    from .terminal_tables import show_frame

    check_files([model, features], [out], format=format)
    if model == "-":
        raise ParameterError(
            "the model cannot be read from -; name a file that crowdrank train wrote, and read the features from -"
        )
    with Talk(quiet=quiet) as talk:
        with talk.working("ranking") as progress:
            table = api.rank(
                model, features, of=of, query=query, encoding=encoding, n_jobs=jobs, cache=cache, on_error=on_error,
                progress=progress,
            )  # fmt: skip
        n_queries = table["query"].n_unique() if "query" in table.columns else 1
        talk.say(f"{counted(len(table), 'item')} of {counted(n_queries, 'query')} ranked by {model}")
        if format is not None or out is None or not out.lower().endswith((".run", ".run.gz")):
            deliver(table, out, format, talk, lambda: show_frame(table, bold="item", cut=("query", "item")))
            return
        if "query" not in table.columns:
            raise ParameterError(f"{out} needs a query on each line, but the features have none; write .csv instead")
        write_run(table.with_columns(pl.lit(_name(model)).alias("run")), out)
        report_written(out, talk)


def _name(model: str) -> str:
    """The name of a run: that of the model's file, without white space."""
    return "_".join(Path(model).stem.split()) or "crowdrank"
