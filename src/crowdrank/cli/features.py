"""``crowdrank features``: from texts, pages or recordings to a table of numbers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..wording import counted
from .help import examples
from .options import Format, Quiet
from .outputs import check_files, for_people, report_written, write_wanted
from .talk import Talk

EXAMPLES = examples(
    ("style and words of texts: item [, query], text", "crowdrank features answers.csv --of text -o features.parquet"),
    ("then learn from votes", "crowdrank train votes.csv features.parquet --joint latent_score --out m"),
    ("and rank texts that nobody judged", "crowdrank rank m new.csv --of text"),
    ("recordings in a folder, four processes", "crowdrank features clips/ --of speech -o features.csv --jobs 4"),
    (
        "web pages, and three measures of clutter as annotators",
        "crowdrank features sites/ --of page --measures m.csv --subset-size 10 -o f.csv",
    ),
)

_COLUMNS = "Columns"
_SHOWN_COLUMNS = 7


def features(
    *,
    items: Annotated[
        str,
        typer.Argument(
            metavar="ITEMS",
            help="A table with item [, query] and text (or file), or a folder of files.",
            show_default=False,
        ),
    ],
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="text|page|speech", help="What the items are; by default the same as for --like."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="MODEL", help="Make the columns of this model, or of this table of features."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="COLUMN|folder", help="Column of the query; folder takes that of each file."),
    ] = None,
    words: Annotated[
        int | None,
        typer.Option("--words", metavar="N", help="Columns of words at most, 0 for none.", rich_help_panel=_COLUMNS),
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(
            "--embed", metavar="PACKAGE|FOLDER", help="Model for sentence embeddings.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="auto|yes|no",
            help="Render pages in a browser, or count in their source.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Count the first screen of pages too.", rich_help_panel=_COLUMNS)
    ] = False,
    fill: Annotated[
        str | None,
        typer.Option("--fill", metavar="mean|none", help="What replaces missing values.", rich_help_panel=_COLUMNS),
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(
            "--measures",
            metavar="FILE",
            help="Write rankings of the pages by three measures of clutter.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    subset_size: Annotated[
        int | None,
        typer.Option("--subset-size", metavar="N", help="Cut pages into queries of N.", rich_help_panel=_COLUMNS),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, metavar="N", help="Seed of that cut.", rich_help_panel=_COLUMNS),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Processes; -1 for one per core.")] = 1,
    cache: Annotated[
        str | None, typer.Option("--cache", metavar="DIR", help="Keep the row of each item there for the next time.")
    ] = None,
    on_error: Annotated[
        str, typer.Option("--on-error", metavar="stop|skip", help="What to do about files that cannot be read.")
    ] = "stop",
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="How the characters of texts are stored.")
    ] = "utf-8",
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write there and not to standard output, and how they were made to a file .extractor.",
            rich_help_panel="Output",
        ),
    ] = None,
    details: Annotated[
        str | None,
        typer.Option(
            "--details",
            metavar="FILE",
            help="Of pages, write missing_css (style sheets that the folder lacks) and unstable (1 where the height "
            "changed) there.",
            rich_help_panel="Output",
        ),
    ] = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Turn texts, web pages or recordings into features.

    Writes item [, query] and one column per feature, for crowdrank train; a model trained on them ranks raw items too.
    """
    from .. import api
    from ..io.features import extractor_file, write_features
    from .terminal_tables import show_frame

    options: dict[str, Any] = {
        "words": words, "embed": embed, "screen": screen, "first": first or None, "subset_size": subset_size,
        "seed": seed, "fill": fill,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    api.check_extraction(of, like=like, clutter_measures=measures is not None, options=given)
    beside = None if out in (None, "-") else extractor_file(out)
    if details is not None and of != "page":
        raise ParameterError("--details applies to pages; leave it out, or give --of page")
    check_files([items, like], [out, measures, beside, details], format=format, tables=[measures, details])
    with Talk(quiet=quiet) as talk:
        with talk.working("measuring the items") as progress:
            extracted, rankings = api.make_features(
                items, of, like=like, clutter_measures=measures is not None, query=query, encoding=encoding,
                n_jobs=jobs, cache=cache, on_error=on_error, progress=progress, options=given,
            )  # fmt: skip
        talk.say(f"{counted(len(extracted.names), 'column')} of {counted(len(extracted), 'item')}")
        if for_people(out, format):
            table = extracted.frame()
            talk.flush()
            show_frame(table.select(table.columns[:_SHOWN_COLUMNS]), bold="item", cut=("query", "item"))
        else:
            write_features(extracted, out, format)
            report_written(out, talk)
        if rankings is not None:
            write_wanted(measures, rankings.frame, talk)
        if extracted.details is not None:
            kept = extracted.details
            write_wanted(details, lambda: kept, talk)
