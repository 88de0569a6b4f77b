"""``crowdrank simulate``: votes of annotators whose quality is known."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import Format, Out, Quiet, Seed
from .outputs import check_files, report_written
from .talk import Talk
from .words import count

EXAMPLES = examples(
    (
        "by 40 annotators, a tenth of whom answer at random",
        'crowdrank simulate truth.csv -n 40 --noise "normal(0.7,0.2)+random(0.1)" -o v.csv',
    ),
    (
        "preferences, and the true quality of each annotator",
        'crowdrank simulate truth.csv -n 20 --noise "flip(0.1..0.4)" --quality who.csv',
    ),
    ("every noise there is", "crowdrank simulate --noises"),
)


def _list_noises(wanted: bool) -> None:
    """Print the noise models, and leave."""
    if not wanted:
        return
    from rich.text import Text

    from ..simulate import NOISES
    from .tables import console, grid

    heads = ("noise", "kinds", "what such annotators do")
    rows = [[Text(m.signature), Text(", ".join(m.kinds)), Text(m.description)] for m in NOISES.values()]
    console().print(grid(heads, rows, fill=heads))
    raise typer.Exit


def simulate(
    *,
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="Query, item and grade (or rank); or qrels.")],
    annotators: Annotated[
        int, typer.Option("--annotators", "-n", min=1, metavar="N", help="How many, spammers included.")
    ],
    noise: Annotated[str, typer.Option("--noise", metavar="SPEC", help="What they are like; --noises lists all.")],
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="grade, preference or ranking; else the usual one.")
    ] = None,
    per_item: Annotated[
        float | None,
        typer.Option(
            "--per-item", metavar="K", help="Grades (5) or preferences (10) an item gets; rankings a query (5)."
        ),
    ] = None,
    seed: Seed = 0,
    noises: Annotated[
        bool, typer.Option("--noises", is_eager=True, callback=_list_noises, help="List the noise models and leave.")
    ] = False,
    quality: Annotated[
        str | None,
        typer.Option(
            "--quality", metavar="FILE", help="Write the true quality of each annotator.", rich_help_panel="Output"
        ),
    ] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Draw votes from annotators of known quality.

    The truth is what such annotators see more or less well. Feed the votes to aggregate and its result to evaluate, to
    learn what a method, a crowd or a number of votes is worth before paying for it.
    """
    from .. import simulate as simulation
    from ..io.output import write_table
    from ..io.truth import read_truth

    check_files([truth], [out, quality], format=format)
    with Talk(quiet=quiet) as talk:
        with talk.working("drawing votes"):
            drawn = simulation.simulate(
                read_truth(truth), annotators=annotators, noise=noise, kind=kind, per_item=per_item, seed=seed
            )
        judgments = drawn.judgments
        write_table(judgments.frame(), out, format)
        report_written(out, talk)
        if quality is not None:
            write_table(drawn.quality, quality)
            report_written(quality, talk)
        by = count(annotators, "annotator")
        talk.say(f"{count(len(judgments), judgments.kind)} by {by} on {count(judgments.n_items, 'item')}")
