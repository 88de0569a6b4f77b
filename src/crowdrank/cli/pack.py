"""``crowdrank pack``: judgments into a folder that is opened a part at a time."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from .help import examples
from .options import Quiet, Reading, spread
from .outputs import check_files
from .talk import Talk
from .votes import options_of, packed_in_words, refuse_unpackable

EXAMPLES = examples(
    ("files of any size into parts, then a ranking of them", "crowdrank pack votes.parquet --out packed"),
    ("one large query, as in an arena", "crowdrank pack battles.csv --out packed --by annotator"),
    ("add what came in since", "crowdrank pack today.csv --out packed --append"),
)


@spread
def pack(
    *,
    votes: Annotated[
        list[str], typer.Argument(metavar="VOTES...", show_default=False, help="Files of one kind of judgment.")
    ],
    folder: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder to write.", show_default=False)],
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="query|annotator",
            help="Keep each query, or each annotator, in one part; use annotator for one large query.",
        ),
    ] = "query",
    append: Annotated[bool, typer.Option("--append", help="Add to the judgments that the folder holds.")] = False,
    part: Annotated[
        int | None, typer.Option("--part", min=1, metavar="N", help="Rows of a part; 1000000 by default.")
    ] = None,
    control: Annotated[
        str | None, typer.Option("--control", metavar="a,b", help="Covariates of preferences to keep, such as length.")
    ] = None,
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Pack votes of any size in parts that aggregate reads in turn.

    Files of any size are read some rows at a time, so that memory stays below 1 GB. The same votes give the same bytes
    in any order, and every file has a checksum.
    """
    from .. import api

    check_files(votes, [])
    refuse_unpackable(reading, "leave it out, or change the file first")
    options = options_of(reading)
    if control is not None:
        options = dataclasses.replace(options, **api.read_covariates_of(control))
    with Talk(quiet=quiet) as talk:
        with talk.working("packing the votes") as progress:
            packed = api.pack(
                votes, folder, options=options, by=by, append=append, part=part,
                across_queries=reading.across_queries, progress=progress,
            )  # fmt: skip
        talk.say(f"{packed_in_words(packed)}, in {folder}")
        talk.say(f"next: crowdrank aggregate {folder}")
