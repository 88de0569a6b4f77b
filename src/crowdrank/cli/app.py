"""The program: its verbs and what they have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from . import aggregate, compare, datasets, demo, diagnose, evaluate, methods, propose, rank, simulate, study, train
from .help import Program, Verb, examples
from .options import with_safe_csv

EXAMPLES = examples(
    ("see it work on a small data set", "crowdrank demo"),
    ("rank what was judged in a file of votes", "crowdrank aggregate votes.csv"),
    ("every method there is", "crowdrank methods"),
)

app = typer.Typer(
    cls=Program,
    name="crowdrank",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _verb, _examples in (
    (aggregate.aggregate, aggregate.EXAMPLES),
    (compare.compare, compare.EXAMPLES),
    (evaluate.evaluate, evaluate.EXAMPLES),
    (diagnose.diagnose, diagnose.EXAMPLES),
    (train.train, train.EXAMPLES),
    (rank.rank, rank.EXAMPLES),
    (propose.propose, propose.EXAMPLES),
    (simulate.simulate, simulate.EXAMPLES),
    (study.study, study.EXAMPLES),
    (methods.methods, methods.EXAMPLES),
    (datasets.datasets, datasets.EXAMPLES),
    (demo.demo, demo.EXAMPLES),
):
    app.command(cls=Verb, epilog=_examples)(with_safe_csv(_verb))


def _version(wanted: bool) -> None:
    """Print the version, and leave."""
    if wanted:
        from .. import __version__

        typer.echo(f"crowdrank {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """From noisy votes of many annotators to a ranking, with the bad annotators named.

    Data goes to standard output, talk to standard error; - reads standard input.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
