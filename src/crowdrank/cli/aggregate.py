"""``crowdrank aggregate``: from votes to a ranking."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import Format, Out, Quiet, Reading, Seed, spread
from .outputs import LEVEL, check_files, deliver_consensus, report_written
from .talk import Talk
from .words import complete_method, pairs

EXAMPLES = examples(
    ("rank what was judged; the method fits the kind of judgment", "crowdrank aggregate votes.csv"),
    (
        "twelve models over many prompts, with intervals",
        "crowdrank aggregate votes.csv --across-queries --intervals 0.95",
    ),
    (
        "how sure that is if other annotators had judged",
        "crowdrank aggregate votes.csv --bootstrap 200 --resample annotator",
    ),
    (
        "one grade for each item, from grades in words",
        "crowdrank aggregate grades.csv --want grade --levels Bad,Fair,Good",
    ),
    ("choose a method and its parameters", "crowdrank aggregate votes.csv --method bradley_terry --set ties=davidson"),
    (
        "the annotators too, and results for another program",
        "crowdrank aggregate a.csv b.csv -o ranks.csv --annotators who.csv",
    ),
    ("from standard input, in a pipe", "zcat votes.jsonl.gz | crowdrank aggregate - --format json > ranks.json"),
)


@spread
def aggregate(
    *,
    votes: Annotated[
        list[str],
        typer.Argument(metavar="VOTES...", help="Files of judgments, - for standard input.", show_default=False),
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", autocompletion=complete_method, help="See crowdrank methods."),
    ] = "auto",
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the method; repeatable.")
    ] = None,
    want: Annotated[
        str, typer.Option("--want", metavar="order|grade", help="What a method is to be chosen for, with auto.")
    ] = "order",
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap", metavar="N", help="Intervals of any method from N resamples of the votes, say 200."
        ),
    ] = None,
    resample: Annotated[
        str,
        typer.Option("--resample", metavar="UNIT", help="What is drawn again: judgment, annotator, query or group."),
    ] = "judgment",
    seed: Seed = 0,
    reading: Reading,
    intervals: Annotated[
        float | None,
        typer.Option(
            "--intervals",
            metavar="LEVEL",
            help="Add intervals of score and rank, such as 0.95 (which --bootstrap does).",
            rich_help_panel="Output",
        ),
    ] = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            "--annotators",
            metavar="FILE",
            help="Write the quality and habits of each annotator there.",
            rich_help_panel="Output",
        ),
    ] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Turn votes into a ranking, and say which annotators to look at.

    Writes query, item, score and rank, best first, with grade and confidence, std_error or intervals where the method
    gives them. A terminal shows the best items; everything else gets CSV. Grades, preferences and rankings are told
    apart by their columns, and common column names of other tools are understood.
    """
    from .. import api
    from ..errors import ParameterError
    from ..io.output import format_for, write_table
    from . import annotators as of_annotators

    check_files([*votes, reading.items], [out, annotators], format=format)
    with Talk(quiet=quiet) as talk:
        judgments = reading.judgments(votes, talk)
        if annotators and not judgments.n_annotators:
            raise ParameterError("the votes name no annotators to write a table of; leave --annotators out")
        with talk.working("finding the consensus") as progress:
            consensus = api.aggregate(
                judgments, method, params=pairs(setting, "--set", "alpha=2"), seed=seed, want=want, bootstrap=bootstrap,
                resample=resample, progress=progress,
            )  # fmt: skip
        if method != "auto":
            talk.say(f"method {consensus.method}")
        table = None
        if annotators or not quiet or format_for(out, format) in ("json", "parquet"):
            with talk.working("judging the annotators"):
                table = of_annotators.table(consensus.quality, consensus.diagnostics)
        deliver_consensus(consensus, out, format, LEVEL if bootstrap and intervals is None else intervals, talk)
        if annotators and table is not None:
            write_table(table, annotators)
            report_written(annotators, talk)
        for line in of_annotators.sentences(table):
            talk.say(line)
        if not quiet:
            of_annotators.tell(consensus.diagnostics, talk)
